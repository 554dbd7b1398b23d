//! A run with its noise and step sizes.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{DpEvent, EventLog};
use dp_losses::Real;
use dp_mechanisms::{LentRng, Released};

use super::{Following, NoisyRun};
use crate::averaging::{Averaging, AveragingWeights};
use crate::engine::Control;
use crate::error::Error;
use crate::recipes::algorithm::Run;
use crate::recipes::problem::Admitted;
use crate::recipes::recipe::{RecordAdjacency, Summary};
use crate::schedule::{Schedule, StepSizes};

/// A training with Gaussian noise on the sum of every step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepsRun {
    pub(crate) run: NoisyRun,
    sensitivity: f64,
    std_dev: f64,
    noise_mode: NoiseMode,
    pub(crate) steps: StepSizes,
    weights: AveragingWeights,
}

impl StepsRun {
    pub(in crate::recipes) fn new(
        run: NoisyRun,
        schedule: &Schedule,
        averaging: &Averaging,
        std_dev: f64,
        noise_mode: NoiseMode,
    ) -> Result<Self, Error> {
        let (steps, weights) = run.prepare(schedule, averaging, std_dev)?;
        let sensitivity = run.sensitivity()?;
        Ok(Self { run, sensitivity, std_dev, noise_mode, steps, weights })
    }

    /// Returns the L2 sensitivity of a step's sum, rounding included: to a record's presence under Poisson sampling, otherwise
    /// to the relation's change of a record.
    pub fn sensitivity(&self) -> f64 {
        self.sensitivity
    }

    /// Returns the noise's standard deviation on each coordinate of a step's sum.
    pub fn std_dev(&self) -> f64 {
        self.std_dev
    }

    /// Returns the number of steps.
    pub fn steps(&self) -> u64 {
        self.run.updates()
    }

    /// Returns the divisor of a step's sum, the mean number of records in a batch.
    pub fn divisor(&self) -> f64 {
        self.run.divisor
    }

    /// Returns the maximum over the steps of the standard deviation of the noise in the sum of all steps so far, for
    /// correlated noise; otherwise NaN.
    pub fn error_of_sums(&self) -> f64 {
        self.run.factor.as_ref().map_or(f64::NAN, |factor| self.std_dev * factor.largest_error())
    }
}

impl Run for StepsRun {
    fn event(&self) -> Result<DpEvent, Error> {
        self.run.event(self.std_dev)
    }

    fn summary(&self) -> Summary {
        let root = (self.run.parameters() as f64).sqrt();
        let noise_norm = self.std_dev * root;
        let mut momentum = self.run.descent.in_words();
        if let Some(penalty) = &self.run.penalty {
            momentum.push_str(&format!(", penalty {penalty}"));
        }
        let mut text = format!(
            "sensitivity {:.4e} of each sum, noise of norm {noise_norm:.4e} on each, {}{momentum}, lambda {:e}",
            self.sensitivity,
            self.run.describe_batches(),
            self.run.lambda,
        );
        if let Some(factor) = &self.run.factor {
            let norm = self.error_of_sums() * root;
            let bands = factor.bands();
            text.push_str(&format!(", {bands} bands, noise of norm {norm:.4e} on the sum of all gradients"));
        }
        Summary { sensitivity: Some(self.sensitivity), rows: self.run.rows(), text }
    }

    fn train<F: Real, A: RecordAdjacency>(
        &self,
        rows: Admitted<'_, F, A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let source = rows.into_source();
        let Self { std_dev, noise_mode, steps, weights, .. } = self;
        let following = Following { std_dev: *std_dev, noise_mode: *noise_mode, steps, weights };
        self.run.train(&following, source, rng, control)
    }
}
