//! A run with its noise and step sizes, checked.

use dp_accountant::certificate::NoiseMode;
use dp_data::SampleSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;

use super::{Following, NoisyRun};
use crate::averaging::{Averaging, AveragingWeights};
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::error::Error;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, RecordAdjacency, Summary};
use crate::schedule::{Schedule, StepSizes};
use crate::trained::Trained;

/// What plans of such runs consist of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NoisyPlan {
    pub(crate) run: NoisyRun,
    pub(in crate::recipes) promise: Promise,
    sensitivity: f64,
    std_dev: f64,
    noise_mode: NoiseMode,
    steps: StepSizes,
    weights: AveragingWeights,
}

impl NoisyPlan {
    pub(in crate::recipes) fn new(
        run: NoisyRun,
        schedule: &Schedule,
        averaging: &Averaging,
        std_dev: f64,
        noise_mode: NoiseMode,
        budget: Budget,
        copies: u64,
    ) -> Result<Self, Error> {
        run.check_noise_mode(noise_mode)?;
        let (steps, weights) = run.prepare(schedule, averaging, std_dev)?;
        let promise = Promise::new(run.event(std_dev)?, budget, copies)?;
        let sensitivity = run.sensitivity()?;
        Ok(Self { run, promise, sensitivity, std_dev, noise_mode, steps, weights })
    }

    pub(crate) fn sensitivity(&self) -> f64 {
        self.sensitivity
    }

    /// Standard deviation of the noise on a step's sum.
    #[cfg(feature = "audit")]
    pub(crate) fn std_dev(&self) -> f64 {
        self.std_dev
    }

    /// The size of the first step.
    #[cfg(feature = "audit")]
    pub(crate) fn first_step(&self) -> f64 {
        self.steps.at(1)
    }

    pub(in crate::recipes) fn summary(&self) -> Summary {
        let noise_norm = self.std_dev * (self.run.parameters() as f64).sqrt();
        let mut momentum = self.run.descent.in_words();
        if let Some(penalty) = &self.run.penalty {
            momentum.push_str(&format!(", penalty {penalty}"));
        }
        Summary {
            sensitivity: Some(self.sensitivity),
            rows: self.run.rows(),
            text: format!(
                "sensitivity {:.4e} of each sum, noise of norm {noise_norm:.4e} on each, {}{momentum}, lambda {:e}",
                self.sensitivity,
                self.run.describe_batches(),
                self.run.lambda,
            ),
        }
    }

    pub(in crate::recipes) fn train<F, A, S, R>(
        &self,
        derivation: Derivation,
        source: &mut S,
        rng: &mut R,
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A>, Error>
    where
        F: Real,
        A: RecordAdjacency,
        S: SampleSource<F> + ?Sized,
        R: ReleaseRng + ?Sized,
    {
        let Self { std_dev, noise_mode, steps, weights, .. } = self;
        let following = Following { std_dev: *std_dev, noise_mode: *noise_mode, steps, weights };
        let (weights, log) = self.run.train(&following, source, rng, control)?;
        Ok(self.promise.kept(weights, log, derivation, *noise_mode))
    }
}
