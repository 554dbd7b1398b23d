//! The law of the privacy loss of one release, as used by the composition of privacy loss distributions.
//!
//! For a pair of laws `(P, Q)` that dominates a release, the loss is `L = ln dP/dQ`. Every pair is stated once, in the direction
//! in which `P` is the law with the record (under add/remove), and for all real thresholds, including negative ones: then `(Q,
//! P)` dominates the other direction, whose loss law is this one [`reversed`](Direction::Add).
//!
//! A law comes in one of two forms:
//!
//! - [`LossLaw`]: the tails of the loss under both laws are known. They give an upper and a lower bound on the composition.
//! - [`DominatingCurve`]: only an upper bound on the hockey-stick curve is known, so only an upper bound follows.
//!
//! # References
//! Zhu, Dong and Wang 2022, "Optimal accounting of differential privacy via characteristic function", Definition 7 and
//! Lemma 28 (dominating pairs, and the reversed pair), arXiv:2106.08567.

use core::fmt::Debug;
use std::sync::Arc;

mod atoms;
pub(crate) mod discrete;
mod gaussian;
mod laplace;
mod poisson;
pub(crate) mod response;
mod reversed;
pub(crate) mod shuffled;

pub(crate) use gaussian::{Gaussian, Mixture};
pub(crate) use laplace::Laplace;
pub(crate) use poisson::Sampled;
use reversed::{Reversed, ReversedCurve};

/// Probabilities that the loss exceeds a threshold, and that it does not, under both laws.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tails {
    /// `P(L > loss)`, including infinite losses.
    pub(crate) p_above: f64,
    /// `P(L <= loss)`.
    pub(crate) p_below: f64,
    /// `Q(L > loss)`.
    pub(crate) q_above: f64,
    /// `Q(L <= loss)`, including outcomes that `P` cannot produce.
    pub(crate) q_below: f64,
}

impl Tails {
    /// Returns the tails of the reversed pair at the opposite loss.
    pub(crate) fn reversed(self) -> Self {
        Self { p_above: self.q_below, p_below: self.q_above, q_above: self.p_below, q_below: self.p_above }
    }
}

/// Probabilities of losses between two thresholds, under both laws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Between {
    /// Under `P`.
    pub(crate) p: f64,
    /// Under `Q`.
    pub(crate) q: f64,
    /// Bound on the relative error of each.
    pub(crate) relative_error: f64,
}

/// The privacy loss of a pair of laws, by its tails.
///
/// An atom exactly at a threshold may count as above or as below it, as long as `P` and `Q` agree.
pub(crate) trait LossLaw: Debug + Send + Sync {
    /// Returns the tails at a finite `loss`, each with a relative error of at most [`relative_error`](Self::relative_error) (plus
    /// an absolute error of 1e-300, for underflow). Complements are given separately because neither follows from the other
    /// without cancellation.
    fn tails(&self, loss: f64) -> Tails;

    /// Returns both laws' probabilities of `low < L <= high`, finite losses only, and a bound on their relative error, if they
    /// are known otherwise than as differences of tails. The thresholds may be infinite.
    fn between(&self, low: f64, high: f64) -> Option<Between> {
        let _ = (low, high);
        None
    }

    /// Returns whether [`between`](Self::between) gives a result everywhere; if not, it may give none anywhere.
    fn knows_cells(&self) -> bool {
        false
    }

    /// Returns the least and the largest finite loss; infinite if there is none.
    fn support(&self) -> (f64, f64);

    /// Returns a bound on the relative error of each tail, including rounding; if it varies, that of tails near a loss of zero.
    fn relative_error(&self) -> f64;

    /// Returns the bound on the relative error at one `loss`.
    fn relative_error_at(&self, loss: f64) -> f64 {
        let _ = loss;
        self.relative_error()
    }

    /// Returns the approximate number of [`work`](crate::work) steps for the tails at one threshold.
    fn steps(&self) -> f64 {
        250.0
    }

    /// Returns the largest distance from `loss` of the threshold actually used for the tails, which is the same for all four.
    fn threshold_error(&self, loss: f64) -> f64 {
        let _ = loss;
        0.0
    }

    /// Returns [`tails`](Self::tails), [`relative_error_at`](Self::relative_error_at) and
    /// [`threshold_error`](Self::threshold_error) together. Laws that find the threshold once for all three override this.
    fn threshold(&self, loss: f64) -> (Tails, f64, f64) {
        (self.tails(loss), self.relative_error_at(loss), self.threshold_error(loss))
    }

    /// Returns `P(L = inf)`, rounded up: the probability of outcomes that `Q` cannot produce.
    fn p_infinite(&self) -> f64 {
        0.0
    }

    /// Returns `Q(L = -inf)`, rounded up: the probability of outcomes that `P` cannot produce.
    fn q_infinite(&self) -> f64 {
        0.0
    }

    /// Returns the parts of [`p_infinite`](Self::p_infinite) and [`q_infinite`](Self::q_infinite), rounded up, of outcomes whose
    /// loss is only too large for doubles: a lower bound omits them.
    fn beyond_doubles(&self) -> (f64, f64) {
        (0.0, 0.0)
    }

    /// Returns the finite losses of positive probability, on which a grid is best aligned, unless there are too many; and whether
    /// these are all losses.
    fn atoms(&self) -> (Vec<f64>, bool) {
        (Vec::new(), false)
    }

    /// Returns whether the reversed law is the same, so that one direction suffices.
    fn is_symmetric(&self) -> bool {
        false
    }
}

/// An upper bound on a pair's hockey-stick curve, `F(l) >= sup_S P(S) - e^l Q(S)`, that is itself the curve of some pair: convex
/// and nonincreasing in `e^l`, between `max(0, 1 - e^l)` and 1.
pub(crate) trait DominatingCurve: Debug + Send + Sync {
    /// Returns `F(loss)`.
    fn delta(&self, loss: f64) -> f64;

    /// Returns `F(loss) - 1 + e^loss`, without cancellation; it vanishes as the loss falls.
    fn shortfall(&self, loss: f64) -> f64;

    /// Returns the range of the pair's losses, infinite if unbounded: `F = 0` above it, `shortfall = 0` below it.
    fn support(&self) -> (f64, f64);

    /// Returns a bound on the relative error of both functions.
    fn relative_error(&self) -> f64;

    /// Returns whether the reversed curve is the same.
    fn is_symmetric(&self) -> bool {
        false
    }
}

/// The known information on the privacy loss of one release.
#[derive(Debug, Clone)]
pub(crate) enum Law {
    /// The tails under both laws.
    Known(Arc<dyn LossLaw>),
    /// A law that dominates the release and one that it dominates, each by its tails.
    Between {
        /// A law that dominates the release's pair.
        above: Arc<dyn LossLaw>,
        /// A law that the release's pair dominates.
        below: Arc<dyn LossLaw>,
    },
    /// An upper bound on the curve.
    Bounded(Arc<dyn DominatingCurve>),
}

/// The order of two neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The neighbour with the record first: the pair as stated.
    Remove,
    /// The neighbour without the record first: the pair reversed.
    Add,
}

impl Law {
    /// Wraps a law that is known by its tails.
    pub(crate) fn known(law: impl LossLaw + 'static) -> Self {
        Self::Known(Arc::new(law))
    }

    /// Returns this law in one direction.
    pub(crate) fn directed(self, direction: Direction) -> Self {
        match (direction, self) {
            (Direction::Remove, law) => law,
            (Direction::Add, Self::Known(law)) => Self::Known(Arc::new(Reversed(law))),
            (Direction::Add, Self::Between { above, below }) => {
                Self::Between { above: Arc::new(Reversed(above)), below: Arc::new(Reversed(below)) }
            }
            (Direction::Add, Self::Bounded(curve)) => Self::Bounded(Arc::new(ReversedCurve(curve))),
        }
    }

    /// Returns the approximate number of steps for one threshold, summed over the laws.
    pub(crate) fn steps(&self) -> f64 {
        match self {
            Self::Known(law) => law.steps(),
            Self::Between { above, below } => above.steps() + below.steps(),
            Self::Bounded(_) => 500.0,
        }
    }

    /// Returns whether both directions have the same law.
    pub(crate) fn is_symmetric(&self) -> bool {
        match self {
            Self::Known(law) => law.is_symmetric(),
            Self::Between { above, below } => above.is_symmetric() && below.is_symmetric(),
            Self::Bounded(curve) => curve.is_symmetric(),
        }
    }

    /// Returns the range of the losses.
    pub(crate) fn support(&self) -> (f64, f64) {
        match self {
            Self::Known(law) => law.support(),
            Self::Between { above, below } => {
                let (above, below) = (above.support(), below.support());
                (above.0.min(below.0), above.1.max(below.1))
            }
            Self::Bounded(curve) => curve.support(),
        }
    }

    /// Returns upper bounds on the probability of a finite loss above `loss`, and of one at most `loss`.
    pub(crate) fn mass_outside(&self, loss: f64) -> (f64, f64) {
        let tails = |law: &dyn LossLaw| {
            let tails = law.tails(loss);
            (tails.p_above - law.p_infinite(), tails.p_below)
        };
        match self {
            Self::Known(law) => tails(law.as_ref()),
            Self::Between { above, below } => {
                let (above, below) = (tails(above.as_ref()), tails(below.as_ref()));
                (above.0.max(below.0), above.1.max(below.1))
            }
            Self::Bounded(curve) => (curve.delta(loss), curve.shortfall(loss)),
        }
    }

    /// Returns the finite losses of positive probability, unless there are too many; and whether these are all losses.
    pub(crate) fn atoms(&self) -> (Vec<f64>, bool) {
        match self {
            Self::Known(law) => law.atoms(),
            Self::Between { .. } | Self::Bounded(_) => (Vec::new(), false),
        }
    }
}
