//! The law of the privacy loss of one release, as the composition of loss distributions reads it.
//!
//! For a pair of laws `(P, Q)` that dominates a release, the loss is `L = ln dP/dQ`. Every pair is stated once, in the
//! direction in which `P` is the law with the record (under add/remove), and for all real thresholds, also those below
//! zero: then `(Q, P)` dominates the other direction, whose loss law is this one [`reversed`](Direction::Add).
//!
//! A law comes in one of two forms:
//!
//! - [`LossLaw`]: both laws' tails of the loss are known. From it follow an upper and a lower bound of the composition.
//! - [`DominatingCurve`]: only an upper bound of the hockey-stick curve is known, so only an upper bound follows.
//!
//! # References
//! Zhu, Dong and Wang 2022, "Optimal accounting of differential privacy via characteristic function", Definition 7 and
//! Lemma 28 (dominating pairs, and the reversed pair), arXiv:2106.08567.

use core::fmt::Debug;
use std::sync::Arc;

use crate::laplace_ball::BallLaw;
use crate::leaves::Leaf;
use crate::objective_perturbation;

mod atoms;
mod discrete;
mod gaussian;
mod laplace;
mod poisson;
mod response;
mod reversed;
mod shuffled;

pub(crate) use gaussian::Gaussian;
use gaussian::Mixture;
use laplace::Laplace;
use poisson::Sampled;
use reversed::{Reversed, ReversedCurve};

/// What the loss exceeds, and does not exceed, under both laws.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tails {
    /// `P(L > loss)`, with what has an infinite loss.
    pub(crate) p_above: f64,
    /// `P(L <= loss)`.
    pub(crate) p_below: f64,
    /// `Q(L > loss)`.
    pub(crate) q_above: f64,
    /// `Q(L <= loss)`, with what `P` cannot produce.
    pub(crate) q_below: f64,
}

/// Probabilities of losses between two thresholds, under both laws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Between {
    /// Under `P`.
    pub(crate) p: f64,
    /// Under `Q`.
    pub(crate) q: f64,
    /// Bound of the relative error of each.
    pub(crate) relative_error: f64,
}

/// The loss of a pair of laws, by its tails.
///
/// An atom exactly at a threshold may count as above or as below it, as long as `P` and `Q` agree.
pub(crate) trait LossLaw: Debug + Send + Sync {
    /// The tails at a finite `loss`, each with a relative error of at most [`relative_error`](Self::relative_error) (an
    /// absolute one of 1e-300 besides, for underflow). Complements are given apart because neither follows from the
    /// other without cancellation.
    fn tails(&self, loss: f64) -> Tails;

    /// Both laws' probabilities of `low < L <= high`, finite losses only, and a bound of their relative error, where they
    /// are known otherwise than as differences of tails. The thresholds may be infinite.
    fn between(&self, low: f64, high: f64) -> Option<Between> {
        let _ = (low, high);
        None
    }

    /// Whether [`between`](Self::between) has an answer everywhere; if not, it may have none anywhere.
    fn knows_cells(&self) -> bool {
        false
    }

    /// The least and the largest finite loss; infinite where there is none.
    fn support(&self) -> (f64, f64);

    /// Bound of the relative error of each tail, rounding included; where it varies, of those near no loss.
    fn relative_error(&self) -> f64;

    /// The same at one `loss`.
    fn relative_error_at(&self, loss: f64) -> f64 {
        let _ = loss;
        self.relative_error()
    }

    /// About how many steps of [`work`](crate::work) the tails at one threshold take.
    fn steps(&self) -> f64 {
        250.0
    }

    /// How far the threshold at which the tails were in truth taken, the same for all four, may be from `loss`.
    fn threshold_error(&self, loss: f64) -> f64 {
        let _ = loss;
        0.0
    }

    /// `P(L = inf)`, rounded up: what `Q` cannot produce.
    fn p_infinite(&self) -> f64 {
        0.0
    }

    /// `Q(L = -inf)`, rounded up: what `P` cannot produce.
    fn q_infinite(&self) -> f64 {
        0.0
    }

    /// The finite losses of positive probability, on which a grid is best aligned, unless there are too many for that;
    /// and whether those are all losses.
    fn atoms(&self) -> (Vec<f64>, bool) {
        (Vec::new(), false)
    }

    /// Whether the reversed law is the same one, so that one direction answers for both.
    fn is_symmetric(&self) -> bool {
        false
    }
}

/// An upper bound of a pair's hockey-stick curve, `F(l) >= sup_S P(S) - e^l Q(S)`, that is itself the curve of some
/// pair: convex and nonincreasing in `e^l`, between `max(0, 1 - e^l)` and 1.
pub(crate) trait DominatingCurve: Debug + Send + Sync {
    /// `F(loss)`.
    fn delta(&self, loss: f64) -> f64;

    /// `F(loss) - 1 + e^loss`, without cancellation: what vanishes as the loss falls.
    fn shortfall(&self, loss: f64) -> f64;

    /// Losses outside of which the pair has none, infinite where there are no such: `F = 0` above, `shortfall = 0`
    /// below.
    fn support(&self) -> (f64, f64);

    /// Bound of the relative error of both functions.
    fn relative_error(&self) -> f64;

    /// Whether the reversed curve is the same one.
    fn is_symmetric(&self) -> bool {
        false
    }
}

/// What is known of the loss of one release.
#[derive(Debug, Clone)]
pub(crate) enum Law {
    /// Both laws' tails.
    Known(Arc<dyn LossLaw>),
    /// A law above, and a law below, each by its tails.
    Between {
        /// Dominates the release's pair.
        above: Arc<dyn LossLaw>,
        /// Is dominated by it.
        below: Arc<dyn LossLaw>,
        /// Whether both are so close that a finer grid brings the answers together.
        are_close: bool,
    },
    /// An upper bound of the curve.
    Bounded(Arc<dyn DominatingCurve>),
}

/// Which of two neighbours comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The one with the record: the pair as stated.
    Remove,
    /// The one without: the pair reversed.
    Add,
}

impl Law {
    /// The law of one release in the first direction; `None` where no dominating pair is known that could be composed.
    pub(crate) fn of(leaf: &Leaf) -> Option<Self> {
        Some(match leaf {
            Leaf::Gaussian { mu } => Self::known(Gaussian::new(*mu)),
            Leaf::PoissonGaussian { rate, mu } => Self::known(Sampled::new(*rate, Arc::new(Gaussian::new(*mu)))),
            Leaf::Mixture(mixture) => {
                let components = mixture.components().iter();
                Self::known(Mixture::new(components.map(|&(mu, weight)| (weight, mu))))
            }
            Leaf::Laplace { x } => Self::known(Laplace::new(*x)),
            Leaf::LaplaceBall { x, dim } => match BallLaw::new(*x, *dim) {
                Some(law) => Self::known(law),
                None => Self::known(Laplace::new(*x)),
            },
            Leaf::Pure { epsilon } => Self::known(response::pure(*epsilon)),
            Leaf::Approximate { epsilon, delta } => Self::known(response::approximate(*epsilon, *delta)),
            Leaf::RandomizedResponse { buckets, noise } => Self::known(response::randomized(*buckets, *noise)),
            Leaf::Pair(pair) => Self::known(response::pair(pair)),
            Leaf::DiscreteLaplace { scale, sensitivity } => Self::known(discrete::laplace(*scale, *sensitivity)?),
            Leaf::DiscreteGaussian { scale, sensitivity, dim: 1 } => {
                Self::known(discrete::gaussian(*scale, *sensitivity)?)
            }
            Leaf::ObjectivePerturbation { std_dev, regularization, loss } => {
                objective_perturbation::law(*std_dev, *regularization, *loss)?
            }
            Leaf::PoissonReplacement(pair) => pair.law(),
            Leaf::Shuffled { epsilon, records } => shuffled::law(*epsilon, *records)?,
            Leaf::Poisson { rate, base } => {
                let [(base, 1)] = base.as_slice() else { return None };
                let sampled = |base| -> Arc<dyn LossLaw> { Arc::new(Sampled::new(*rate, base)) };
                match Self::of(base)? {
                    Self::Known(base) => Self::Known(sampled(base)),
                    Self::Between { above, below, are_close } => {
                        Self::Between { above: sampled(above), below: sampled(below), are_close }
                    }
                    Self::Bounded(_) => return None,
                }
            }
            _ => return None,
        })
    }

    /// A law that is known by its tails.
    pub(crate) fn known(law: impl LossLaw + 'static) -> Self {
        Self::Known(Arc::new(law))
    }

    /// This law, in one direction.
    pub(crate) fn directed(self, direction: Direction) -> Self {
        match (direction, self) {
            (Direction::Remove, law) => law,
            (Direction::Add, Self::Known(law)) => Self::Known(Arc::new(Reversed(law))),
            (Direction::Add, Self::Between { above, below, are_close }) => {
                Self::Between { above: Arc::new(Reversed(above)), below: Arc::new(Reversed(below)), are_close }
            }
            (Direction::Add, Self::Bounded(curve)) => Self::Bounded(Arc::new(ReversedCurve(curve))),
        }
    }

    /// About how many steps one threshold takes, of all laws.
    pub(crate) fn steps(&self) -> f64 {
        match self {
            Self::Known(law) => law.steps(),
            Self::Between { above, below, .. } => above.steps() + below.steps(),
            Self::Bounded(_) => 500.0,
        }
    }

    /// Whether both directions have the same law.
    pub(crate) fn is_symmetric(&self) -> bool {
        match self {
            Self::Known(law) => law.is_symmetric(),
            Self::Between { above, below, .. } => above.is_symmetric() && below.is_symmetric(),
            Self::Bounded(curve) => curve.is_symmetric(),
        }
    }

    /// Losses outside of which there is none.
    pub(crate) fn support(&self) -> (f64, f64) {
        match self {
            Self::Known(law) => law.support(),
            Self::Between { above, below, .. } => {
                let (above, below) = (above.support(), below.support());
                (above.0.min(below.0), above.1.max(below.1))
            }
            Self::Bounded(curve) => curve.support(),
        }
    }

    /// Upper bounds of what has a finite loss above, and a loss at most, this one.
    pub(crate) fn mass_outside(&self, loss: f64) -> (f64, f64) {
        let tails = |law: &dyn LossLaw| {
            let tails = law.tails(loss);
            (tails.p_above - law.p_infinite(), tails.p_below)
        };
        match self {
            Self::Known(law) => tails(law.as_ref()),
            Self::Between { above, below, .. } => {
                let (above, below) = (tails(above.as_ref()), tails(below.as_ref()));
                (above.0.max(below.0), above.1.max(below.1))
            }
            Self::Bounded(curve) => (curve.delta(loss), curve.shortfall(loss)),
        }
    }

    /// The finite losses of positive probability, unless there are too many; and whether those are all.
    pub(crate) fn atoms(&self) -> (Vec<f64>, bool) {
        match self {
            Self::Known(law) => law.atoms(),
            Self::Between { .. } | Self::Bounded(_) => (Vec::new(), false),
        }
    }
}
