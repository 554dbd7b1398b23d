//! The accountant based on the exact privacy curve.

use core::marker::PhantomData;

use super::PrivacyCurve;
use crate::accountant::Accountant;
use crate::adjacency::Adjacency;
use crate::error::Error;
use crate::event::DpEvent;
use crate::leaves::{Leaves, leaves_under};
use crate::params::Delta;

/// Collects releases under the relation `A` and returns the upper ends of their [`PrivacyCurve`].
///
/// # Examples
/// ```
/// use dp_accountant::{Accountant, AddRemoveOne, Delta, DpEvent, exact::ExactAccountant};
///
/// let gaussian = DpEvent::Gaussian { std_dev: 4.0, sensitivity: 1.0 };
/// let step = DpEvent::PoissonSampled { sampling_rate: 0.01, event: Box::new(gaussian) };
/// let mut accountant = ExactAccountant::<AddRemoveOne>::new();
/// accountant.compose(&step, 10_000)?;
/// assert!((accountant.epsilon(Delta::new(1e-10)?) - 1.52821847666).abs() < 1e-8);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ExactAccountant<A: Adjacency> {
    leaves: Leaves,
    relation: PhantomData<A>,
}

impl<A: Adjacency> Default for ExactAccountant<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Adjacency> ExactAccountant<A> {
    /// Creates an accountant without any release.
    pub fn new() -> Self {
        Self { leaves: Leaves::new(), relation: PhantomData }
    }

    /// Returns the curve of everything composed so far, with both ends.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if no engine covers the whole.
    pub fn curve(&self) -> Result<PrivacyCurve, Error> {
        PrivacyCurve::from_leaves(self.leaves.clone())
    }
}

impl<A: Adjacency> Accountant<A> for ExactAccountant<A> {
    fn compose(&mut self, event: &DpEvent, count: u64) -> Result<(), Error> {
        let mut all = self.leaves.clone();
        for (leaf, times) in leaves_under(event, count, A::KIND)? {
            match all.last_mut() {
                Some((last, before)) if *last == leaf && before.checked_add(times).is_some() => *before += times,
                _ => all.push((leaf, times)),
            }
        }
        PrivacyCurve::from_leaves(all.clone())?;
        self.leaves = all;
        Ok(())
    }

    fn epsilon(&self, delta: Delta) -> f64 {
        self.curve().and_then(|curve| curve.epsilon(delta)).map_or(f64::INFINITY, |bracket| bracket.upper)
    }

    fn delta(&self, epsilon: f64) -> Result<f64, Error> {
        crate::error::non_negative("epsilon", epsilon)?;
        Ok(self.curve().and_then(|curve| curve.delta(epsilon)).map_or(1.0, |bracket| bracket.upper))
    }
}
