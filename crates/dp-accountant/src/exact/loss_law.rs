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

use crate::leaves::Leaf;

mod poisson;
mod reversed;

pub(crate) use poisson::Sampled;
pub(crate) use reversed::{Reversed, ReversedCurve};

/// What the loss exceeds, and does not exceed, under both laws.
#[derive(Debug, Clone, Copy, PartialEq)]
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

/// The loss of a pair of laws, by its tails.
///
/// An atom exactly at a threshold may count as above or as below it, as long as `P` and `Q` agree.
pub(crate) trait LossLaw: Debug + Send + Sync {
    /// The tails at a finite `loss`, each with a relative error of at most [`relative_error`](Self::relative_error) (an
    /// absolute one of 1e-300 besides, for underflow). Complements are given apart because neither follows from the
    /// other without cancellation.
    fn tails(&self, loss: f64) -> Tails;

    /// The least and the largest finite loss; infinite where there is none.
    fn support(&self) -> (f64, f64);

    /// Bound of the relative error of each tail, rounding included.
    fn relative_error(&self) -> f64;

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

    /// The finite losses of a law of a few atoms, on which a grid can be aligned; empty for any other law.
    fn atoms(&self) -> Vec<f64> {
        Vec::new()
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
        match leaf {
            Leaf::Poisson { rate, base } => match base.as_slice() {
                [(base, 1)] => match Self::of(base)? {
                    Self::Known(base) => Some(Self::known(Sampled::new(*rate, base))),
                    Self::Bounded(_) => None,
                },
                _ => None,
            },
            _ => None,
        }
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
            (Direction::Add, Self::Bounded(curve)) => Self::Bounded(Arc::new(ReversedCurve(curve))),
        }
    }

    /// Whether both directions have the same law.
    pub(crate) fn is_symmetric(&self) -> bool {
        match self {
            Self::Known(law) => law.is_symmetric(),
            Self::Bounded(curve) => curve.is_symmetric(),
        }
    }
}
