//! DP-FTRL with everything derived that does not need data, and the training that follows it.

use core::marker::PhantomData;

use dp_data::SampleSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;

use super::DpFtrl;
use super::derivation::DpFtrlDerivation;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::error::Error;
use crate::recipes::noisy_run::{NoisyPlan, NoisyRun};
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Planned, RecordAdjacency, Summary};
use crate::trained::Trained;

/// A release by DP-FTRL, planned: sensitivity, noise, event and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: DpFtrlDerivation,
    planned: NoisyPlan,
    relation: PhantomData<A>,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(super) fn new(recipe: &DpFtrl, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        let bands = recipe.resolved_bands(n, dim, A::KIND)?;
        let run = recipe.run(n, dim, A::KIND, bands)?;
        let std_dev = run.least_std_dev(budget, copies)?;
        let schedule = recipe.resolved_schedule(run.updates());
        let planned = NoisyPlan::new(run, &schedule, &recipe.averaging, std_dev, recipe.noise_mode, budget, copies)?;
        let derivation = DpFtrlDerivation { recipe: recipe.clone(), relation: A::KIND, n, dim, bands, std_dev };
        Ok(Self { derivation, planned, relation: PhantomData })
    }

    /// The L2 sensitivity of a step's sum, rounding allowed for.
    pub fn sensitivity(&self) -> f64 {
        self.planned.sensitivity()
    }

    /// Standard deviation of the noise on each coordinate of each row of `Cf G`.
    pub fn std_dev(&self) -> f64 {
        self.derivation.std_dev
    }

    /// Diagonals of the factor.
    pub fn bands(&self) -> u64 {
        self.derivation.bands
    }

    /// The largest standard deviation of the noise on a coordinate of the sum of all gradients so far.
    pub fn error_of_sums(&self) -> f64 {
        self.run().factor.as_ref().map_or(f64::NAN, |factor| self.std_dev() * factor.largest_error())
    }

    /// Number of steps.
    pub fn steps(&self) -> u64 {
        self.run().updates()
    }

    /// b: what a step's sum is divided by.
    pub fn divisor(&self) -> f64 {
        self.run().divisor
    }

    /// How the release follows from public parameters.
    pub fn derivation(&self) -> &DpFtrlDerivation {
        &self.derivation
    }

    /// What it consists of.
    #[cfg(feature = "audit")]
    pub(crate) fn planned(&self) -> &NoisyPlan {
        &self.planned
    }

    fn run(&self) -> &NoisyRun {
        &self.planned.run
    }

    /// Trains on `source` and releases the model.
    ///
    /// # Privacy
    /// The source must keep the bounds on rows and targets that its description states
    /// ([`MemorySource`](crate::MemorySource) enforces them) and deliver the same records in every step. Batches and
    /// noise are drawn from `rng`, each from a key of its own; a generator that is not secret marks the result as not
    /// private.
    ///
    /// # Errors
    /// A source of another shape or with wider bounds than planned or that fails, [`Error::Interrupted`], a
    /// floating-point type other than planned. Nothing has been released then.
    pub fn train<F: Real>(
        &self,
        source: &mut dyn SampleSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A>, Error> {
        self.planned.train(Derivation::DpFtrl(self.derivation.clone()), source, &mut rng.lend(), control)
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    fn promise(&self) -> &Promise {
        &self.planned.promise
    }

    fn derivation(&self) -> Derivation {
        Derivation::DpFtrl(self.derivation.clone())
    }

    fn summary(&self) -> Summary {
        let Summary { sensitivity, rows, mut text } = self.planned.summary();
        let norm = self.error_of_sums() * (self.run().parameters() as f64).sqrt();
        text.push_str(&format!(", {} bands, noise of norm {norm:.4e} on the sum of all gradients", self.bands()));
        Summary { sensitivity, rows, text }
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
