//! RSGD-AR with everything derived that does not need data, and the training that follows it.

use dp_data::{PassSource, SampleSource};
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;

use super::RsgdAr;
use super::derivation::RsgdArDerivation;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::error::Error;
use crate::growth::Growth;
use crate::recipes::bolt_on::{self, NoiseScale};
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Planned, RecordAdjacency, Summary};
use crate::trained::Trained;

/// A release by RSGD-AR, planned: sensitivities, noise, event and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: RsgdArDerivation,
    planned: bolt_on::Plan<A>,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(super) fn new(recipe: &RsgdAr, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        recipe.check()?;
        let planned = bolt_on::Plan::new(&recipe.as_bolt_on(n), n, dim, budget, copies)?;
        let noise = planned.derivation().noise;
        Ok(Self { derivation: RsgdArDerivation { recipe: recipe.clone(), relation: A::KIND, n, dim, noise }, planned })
    }

    /// The L2 sensitivity of the model before noise at the worst position, rounding allowed for.
    pub fn sensitivity(&self) -> f64 {
        self.planned.sensitivity()
    }

    /// Standard deviation of the noise on each coordinate.
    pub fn std_dev(&self) -> f64 {
        match self.derivation.noise {
            NoiseScale::Gaussian { std_dev } | NoiseScale::HiddenPositionGaussian { std_dev } => std_dev,
            NoiseScale::LaplaceBall { .. } => f64::NAN,
        }
    }

    /// Root of the expected squared norm of the noise.
    pub fn noise_norm(&self) -> f64 {
        self.planned.noise_norm()
    }

    /// The recursion's input: schedule, batches, constants.
    pub fn growth(&self) -> &Growth {
        self.planned.growth()
    }

    /// How the release follows from public parameters.
    pub fn derivation(&self) -> &RsgdArDerivation {
        &self.derivation
    }

    /// The run itself.
    #[cfg(feature = "audit")]
    pub(crate) fn planned(&self) -> &bolt_on::Plan<A> {
        &self.planned
    }

    /// Trains on `source` and releases the model: nothing else of the run leaves this call.
    ///
    /// # Privacy
    /// The order of the rows and the noise are drawn from `rng`; a generator that is not secret marks the result as not
    /// private. The source must keep the bounds on rows and targets that its description states
    /// ([`MemorySource`](crate::MemorySource) enforces them) and deliver the same records in every pass.
    ///
    /// # Errors
    /// A source of another shape or with wider bounds than planned or that fails, [`Error::Interrupted`], a
    /// floating-point type other than planned. Nothing has been released then.
    pub fn train<F: Real>(
        &self,
        source: &mut dyn PassSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A>, Error> {
        let trained = self.planned.train(source, rng, control)?;
        Ok(Trained { derivation: Derivation::RsgdAr(self.derivation.clone()), ..trained })
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    fn promise(&self) -> &Promise {
        self.planned.promise()
    }

    fn derivation(&self) -> Derivation {
        Derivation::RsgdAr(self.derivation.clone())
    }

    fn summary(&self) -> Summary {
        let summary = Planned::<A>::summary(&self.planned);
        let restarts = match self.derivation.recipe.restart_every {
            Some(passes) => format!(", averaged every {passes} passes"),
            None => String::new(),
        };
        Summary { text: format!("{}{restarts}", summary.text), ..summary }
    }

    fn train<F: Real>(
        &self,
        source: &mut dyn SampleSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A>, Error> {
        self.train(source, rng, control)
    }
}
