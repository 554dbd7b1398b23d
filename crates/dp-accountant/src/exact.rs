//! The privacy curve itself, between two certified bounds.
//!
//! Where a tree is made of releases whose dominating pairs of laws are known, delta at epsilon is a number and not only
//! bounded by one: a closed form, a contour integral or a composed loss distribution gives it as a [`Bracket`], both
//! ends of which account for every error made on the way. What is promised is the upper end.

// Read by the curve once the composition answers.
#[allow(dead_code)]
pub(crate) mod loss_law;
#[allow(dead_code)]
mod pld;

use crate::adjacency::AdjacencyKind;
use crate::error::{Error, non_negative};
use crate::event::DpEvent;
use crate::leaves::{Leaves, leaves, leaves_under};
use crate::params::Delta;

/// A number and how well it is known: the true value lies between `lower` and `upper`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bracket {
    /// Certified lower bound.
    pub lower: f64,
    /// Certified upper bound: what may be promised.
    pub upper: f64,
    /// What computed it.
    pub engine: Engine,
}

/// How a [`Bracket`] was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// A closed form.
    ClosedForm,
    /// The contour integral of the moment function.
    Contour,
    /// Composition of discretised privacy loss distributions.
    LossDistribution,
}

/// The exact privacy curve of an event tree, prepared for several questions.
#[derive(Debug, Clone)]
pub struct PrivacyCurve {
    leaves: Leaves,
}

impl PrivacyCurve {
    /// Prepares the curve.
    ///
    /// # Errors
    /// A number out of range; [`Error::Unsupported`] where no dominating pair is known for a part.
    pub fn new(event: &DpEvent) -> Result<Self, Error> {
        Self::from_leaves(leaves(event, 1)?)
    }

    /// Prepares the curve, under one relation.
    ///
    /// # Errors
    /// Those of [`new`](Self::new), and [`Error::NotUnderRelation`].
    pub fn new_under(event: &DpEvent, relation: AdjacencyKind) -> Result<Self, Error> {
        Self::from_leaves(leaves_under(event, 1, relation)?)
    }

    pub(crate) fn from_leaves(leaves: Leaves) -> Result<Self, Error> {
        Ok(Self { leaves })
    }

    /// Epsilon at `delta`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where no engine answers.
    pub fn epsilon(&self, _delta: Delta) -> Result<Bracket, Error> {
        Err(self.unsupported())
    }

    /// Delta at `epsilon`.
    ///
    /// # Errors
    /// `epsilon` negative, NaN or infinite; [`Error::Unsupported`] where no engine answers.
    pub fn delta(&self, epsilon: f64) -> Result<Bracket, Error> {
        let bracket = self.log_delta(epsilon)?;
        Ok(Bracket { lower: bracket.lower.exp(), upper: bracket.upper.exp(), ..bracket })
    }

    /// The natural logarithm of delta at `epsilon`.
    ///
    /// # Errors
    /// Those of [`delta`](Self::delta).
    pub fn log_delta(&self, epsilon: f64) -> Result<Bracket, Error> {
        non_negative("epsilon", epsilon)?;
        Err(self.unsupported())
    }

    fn unsupported(&self) -> Error {
        let event = self.leaves.first().map_or("no-op", |(leaf, _)| leaf.name());
        Error::Unsupported { accountant: "exact", event }
    }
}

/// Epsilon of an event tree at `delta`; see [`PrivacyCurve`].
///
/// # Errors
/// Those of [`PrivacyCurve::new`] and [`PrivacyCurve::epsilon`].
pub fn epsilon(event: &DpEvent, delta: Delta) -> Result<Bracket, Error> {
    PrivacyCurve::new(event)?.epsilon(delta)
}

/// Delta of an event tree at `epsilon`; see [`PrivacyCurve`].
///
/// # Errors
/// Those of [`PrivacyCurve::new`] and [`PrivacyCurve::delta`].
pub fn delta(event: &DpEvent, epsilon: f64) -> Result<Bracket, Error> {
    PrivacyCurve::new(event)?.delta(epsilon)
}
