//! A clipping norm that follows a quantile of the norms of the gradients.

use dp_accountant::{Adjacency, DpEvent};
use dp_mechanisms::clip::follow_quantile;
use dp_mechanisms::steps::NoisySteps;
use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, Mechanism, PrivacyEvent, ReleaseRng};

use super::step_search::StepSearcher;
use crate::error::Error;

/// The range of the factor on the first clipping norm.
pub(crate) const SCALES: (f64, f64) = (1.0 / 1_048_576.0, 1024.0);

/// Roundings of a squared norm, in units of the float's roundoff, that the factor adds: three for the inverse of its square and the
/// product with the squared norm, and two for the inverse and its product with the coefficient, which count twice.
const ROUNDINGS: f64 = 7.0;

/// The release of a step beside its sum.
pub(crate) enum Beside<A: Adjacency> {
    /// None.
    Nothing,
    /// The choice of the step's size.
    Search(Box<StepSearcher<A>>),
    /// The count of gradients below the clipping norm.
    Count(NormFollower<A>),
}

impl<A: Adjacency> Beside<A> {
    /// Returns the roundings that it adds to squared norms.
    pub(super) fn roundings(&self) -> f64 {
        if matches!(self, Self::Count(_)) { ROUNDINGS } else { 0.0 }
    }

    /// Returns its event.
    pub(super) fn event(&self) -> Option<DpEvent> {
        match self {
            Self::Nothing => None,
            Self::Search(search) => Some(search.searcher.event()),
            Self::Count(follower) => Some(follower.count.event()),
        }
    }
}

/// The rule by which the clipping norm follows a quantile: after each step it falls if more gradients are below it than the quantile,
/// by a noisy count.
///
/// # Formula
/// ```text
/// count = Σ_i (b_i - 1/2) + N(0, s²),    b_i = 1 if ‖g_i‖ <= C, else 0
/// C <- C exp(-rate (count / b + 1/2 - quantile)),    b the mean number of samples of a batch
/// ```
///
/// # Privacy
/// A sample moves the count by 1/2, a replaced one by at most 1; null samples are not counted, and a norm that is not finite is above
/// `C`. The norm is a function of noisy counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NormFollower<A: Adjacency> {
    count: Gaussian<A>,
    /// C: the first clipping norm.
    first: f64,
    quantile: f64,
    rate: f64,
    expected: f64,
}

impl<A: Adjacency> NormFollower<A> {
    /// Creates the rule with the first norm, the quantile and the rate, for a count of this sensitivity and noise.
    pub(crate) fn new(
        first: f64,
        (quantile, rate): (f64, f64),
        (sensitivity, std_dev): (f64, f64),
        expected: f64,
    ) -> Result<Self, Error> {
        let count = Gaussian::from_std_dev(L2Sensitivity::new(sensitivity)?, std_dev)?;
        Ok(Self { count, first, quantile, rate, expected })
    }

    /// Returns the square of the first norm.
    pub(super) fn first_square(&self) -> f64 {
        self.first * self.first
    }

    /// Releases the count, and returns the factor on the first norm in the next step.
    pub(super) fn next<R: ReleaseRng + ?Sized>(
        &self,
        scale: f64,
        halves: i64,
        steps: &mut NoisySteps<A>,
        rng: &mut R,
    ) -> Result<f64, Error> {
        let count = Bounded::with_proven_sensitivity(vec![0.5 * halves as f64], self.count.sensitivity());
        let noisy = steps.beside(rng, |log, rng| Ok::<_, Error>(self.count.release(count, log, rng)?.into_inner()))?;
        let fraction = noisy.first().copied().unwrap_or(0.0) / self.expected + 0.5;
        Ok(follow_quantile(scale, self.rate, fraction - self.quantile, SCALES))
    }
}
