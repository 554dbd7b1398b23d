//! Derivation of a private ranker's noise from public numbers.

use dp_accountant::certificate::{Assumption, Derivation, NoiseMode};
use dp_accountant::guarantee::Unit;
use dp_accountant::{Adjacency, AdjacencyKind, ChangeListLabels, DpEvent, ReplaceOne, ZeroOut};
use dp_mechanisms::clip::{ClippingNorm, ExactSum};
use dp_mechanisms::steps::StepPlan;
use dp_mechanisms::{Gaussian, L2Sensitivity, PrivacyEvent as _};
use dp_optim::engine::BatchLaw;

use super::scaling::Scaling;
use crate::error::Error;
use crate::train::error::TrainError;
use crate::train::protect::Protected;

/// The derivation of a private ranker's noise from public numbers, which
/// [`verify`](dp_accountant::certificate::Certificate::verify) recomputes.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RankingDerivation {
    /// m: number of lists.
    pub lists: u64,
    /// Number of parameters.
    pub parameters: u64,
    /// b: mean number of lists in a batch.
    pub batch_size: u64,
    /// T: number of updates.
    pub updates: u64,
    /// C: the clipping norm.
    pub clipping: f64,
    /// σ: standard deviation of the noise on each coordinate of a batch's sum.
    pub std_dev: f64,
    /// True if the noise is sampled exactly.
    pub exact_noise: bool,
    /// The protected data.
    #[cfg_attr(feature = "serde", serde(default))]
    pub protects: Protected,
    /// The bound on a list's contribution.
    #[cfg_attr(feature = "serde", serde(default))]
    pub scaling: Scaling,
}

impl RankingDerivation {
    /// Returns the unit of privacy.
    pub fn unit(&self) -> Unit {
        self.protects.unit()
    }

    /// Returns the distance of two neighbouring sums up to rounding: `2C`, `C` for the presence of a list, or `dC` with weights.
    pub(crate) fn distance(&self) -> f64 {
        match self.scaling {
            Scaling::Clip => self.protects.lists_moved() * self.clipping,
            Scaling::Public { distance } => distance * self.clipping,
        }
    }

    pub(crate) fn law(&self) -> BatchLaw {
        BatchLaw::Poisson { mean_darts: self.batch_size.min(self.lists) }
    }

    pub(crate) fn gaussian<A: Adjacency>(&self) -> Result<Gaussian<A>, TrainError> {
        let mode = if self.exact_noise { NoiseMode::Exact } else { NoiseMode::Rounded };
        let of = |sensitivity| -> Result<_, TrainError> {
            Ok(Gaussian::from_std_dev(sensitivity, self.std_dev)?.with_noise_mode(mode)?)
        };
        ClippingNorm::new(self.clipping)?;
        // The sum's own sensitivity may be larger due to rounding, which depends only on the grid.
        let first = of(L2Sensitivity::new(self.distance())?)?;
        of(self.sum(&first)?.sensitivity())
    }

    /// Returns an empty sum of lists on the grid of the noise.
    pub(crate) fn sum<A: Adjacency>(&self, gaussian: &Gaussian<A>) -> Result<ExactSum<A>, TrainError> {
        let clipped = self.clipped(gaussian)?;
        Ok(match self.scaling {
            Scaling::Clip => clipped,
            Scaling::Public { .. } => clipped.within(self.distance())?,
        })
    }

    /// Returns such a sum for lists that are only clipped.
    fn clipped<A: Adjacency>(&self, gaussian: &Gaussian<A>) -> Result<ExactSum<A>, TrainError> {
        let norm = ClippingNorm::new(self.clipping)?;
        Ok(ExactSum::for_release(self.dim()?, norm.into(), gaussian, self.lists)?)
    }

    fn dim(&self) -> Result<usize, TrainError> {
        usize::try_from(self.parameters).map_err(|_| Error::Zero { what: "the number of parameters" }.into())
    }

    pub(crate) fn plan<A: Adjacency>(&self, gaussian: &Gaussian<A>) -> Result<StepPlan, TrainError> {
        let (sampling_rate, steps) = (self.law().sampling_rate(self.lists)?, self.updates);
        if self.protects == Protected::ListPresence {
            return Ok(StepPlan::PoissonSampled { sampling_rate, steps });
        }
        let (sensitivity, clipped) = (gaussian.sensitivity().get(), self.clipped(gaussian)?.sensitivity().get());
        // The rounding that is added to the distance of two lists may be added to the norm of one.
        let rounded = clipped > 2.0 * self.clipping;
        let radius = if rounded { (clipped - self.clipping).next_up() } else { self.clipping };
        Ok(StepPlan::PoissonSampledReplacement { sampling_rate, radius: radius.min(sensitivity), steps })
    }

    /// Refuses settings whose proof needs public features if features are protected.
    fn check(&self) -> Result<(), TrainError> {
        self.scaling.check()?;
        if self.scaling != Scaling::Clip && !self.protects.has_public_features() {
            return Err(TrainError::Protected { what: "a list's weight" });
        }
        Ok(())
    }

    fn event_under<A: Adjacency>(&self) -> Result<DpEvent, TrainError> {
        self.check()?;
        let gaussian = self.gaussian::<A>()?;
        Ok(self.plan(&gaussian)?.event(gaussian.event()))
    }
}

impl Derivation for RankingDerivation {
    type Error = TrainError;

    fn event(&self) -> Result<DpEvent, TrainError> {
        match self.protects {
            Protected::Grades => self.event_under::<ChangeListLabels>(),
            Protected::ListPresence => self.event_under::<ZeroOut>(),
            Protected::WholeList | Protected::Document => self.event_under::<ReplaceOne>(),
        }
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.protects.adjacency()
    }

    fn assumptions(&self) -> Vec<Assumption> {
        let text = self.protects.trusted().to_owned();
        let mut assumptions = vec![Assumption::PublicN, Assumption::Other { text }];
        if !self.exact_noise {
            assumptions.push(Assumption::IdealisedFloat);
        }
        assumptions
    }
}
