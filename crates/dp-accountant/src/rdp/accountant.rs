//! The Renyi accountant.

use core::marker::PhantomData;

use super::RdpCurve;
use crate::accountant::Accountant;
use crate::adjacency::Adjacency;
use crate::error::Error;
use crate::event::DpEvent;
use crate::leaves::leaves_under;
use crate::params::Delta;

/// Adds up Renyi curves under the relation `A` and converts at the best real order.
///
/// Covers every event except approximate guarantees. [`bound`](crate::bound) is tighter if the tree has an exact curve; this
/// accountant can be extended release by release.
///
/// # Examples
/// ```
/// use dp_accountant::{Accountant, Delta, DpEvent, ReplaceOne, rdp::RdpAccountant};
///
/// let mut accountant = RdpAccountant::<ReplaceOne>::new();
/// accountant.compose(&DpEvent::Gaussian { std_dev: 10.0, sensitivity: 1.0 }, 100)?;
/// accountant.compose(&DpEvent::PureDp { epsilon: 0.1 }, 3)?;
/// let epsilon = accountant.epsilon(Delta::new(1e-6)?);
/// assert!(epsilon > 4.8865 && epsilon < 5.5); // the Gaussians alone cost exactly 4.8866
/// # Ok::<(), dp_accountant::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RdpAccountant<A: Adjacency> {
    curve: RdpCurve,
    relation: PhantomData<A>,
}

impl<A: Adjacency> Default for RdpAccountant<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Adjacency> RdpAccountant<A> {
    /// Creates an accountant without any release.
    pub fn new() -> Self {
        Self { curve: RdpCurve::default(), relation: PhantomData }
    }

    /// Returns the curve of everything composed so far.
    pub fn curve(&self) -> &RdpCurve {
        &self.curve
    }
}

impl<A: Adjacency> Accountant<A> for RdpAccountant<A> {
    fn compose(&mut self, event: &DpEvent, count: u64) -> Result<(), Error> {
        self.curve.compose(&RdpCurve::from_leaves(leaves_under(event, count, A::KIND)?)?);
        Ok(())
    }

    fn epsilon(&self, delta: Delta) -> f64 {
        self.curve.epsilon(delta)
    }

    fn delta(&self, epsilon: f64) -> Result<f64, Error> {
        self.curve.delta(epsilon)
    }
}
