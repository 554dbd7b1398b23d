//! Noise correlated over the steps of passes in one order.

use dp_accountant::{Adjacency, DpEvent, NoiseMultiplier, ZeroOut};
use dp_mechanisms::L2Sensitivity;
use dp_mechanisms::continual::{Factor, MatrixFactorisation, Participation};
use dp_mechanisms::steps::StepPlan;

use super::{Batching, NoisyRun};
use crate::error::Error;
use crate::recipes::linear::size;
use crate::recipes::recipe::{Budget, least_scale};

impl NoisyRun {
    /// Correlates the noise of the run's steps by a factor of as many steps.
    ///
    /// Batches must be parts of a pass in the same order in each pass: then a record takes part once per pass, at a distance
    /// of the number of steps per pass, whatever the records are.
    pub(in crate::recipes) fn correlated(self, factor: Factor) -> Result<Self, Error> {
        let Batching::Passes { .. } = self.batching else {
            let why = "correlated noise is for batches that are pieces of a pass";
            return Err(Error::NotProved { recipe: self.recipe, why });
        };
        Ok(Self { factor: Some(factor), ..self })
    }

    /// Returns how often and how far apart a record takes part.
    ///
    /// # Errors
    /// Batches whose records come in another order in each pass.
    pub fn participation(&self) -> Result<Participation, Error> {
        Ok(match self.sums.plan {
            StepPlan::DisjointBatches { passes, steps_per_pass } => Participation::repeated(passes, steps_per_pass)?,
            _ => Participation::repeated(self.updates(), 1)?,
        })
    }

    /// Returns the mechanism of all steps, if their noise is correlated.
    pub(super) fn stream<A: Adjacency>(&self, std_dev: f64) -> Result<Option<MatrixFactorisation<A>>, Error> {
        let Some(factor) = &self.factor else { return Ok(None) };
        let each = L2Sensitivity::<A>::new(self.sensitivity()?)?;
        let (participation, dim) = (self.participation()?, size("dimension", self.parameters())?);
        Ok(Some(MatrixFactorisation::from_std_dev(factor.clone(), participation, each, dim, std_dev)?))
    }

    /// Returns the least standard deviation of a row's noise with which all copies meet the budget: the whole stream is one
    /// Gaussian.
    pub(super) fn least_std_dev_of_stream(&self, factor: &Factor, budget: Budget, copies: u64) -> Result<f64, Error> {
        let one = |multiplier| DpEvent::Gaussian { std_dev: multiplier, sensitivity: 1.0 };
        let multiplier = NoiseMultiplier::new(least_scale(budget, copies, one)?)?;
        // The sensitivity of a step already accounts for the relation.
        let each = L2Sensitivity::<ZeroOut>::new(self.sensitivity()?)?;
        let (participation, dim) = (self.participation()?, size("dimension", self.parameters())?);
        let stream = MatrixFactorisation::from_noise_multiplier(factor.clone(), participation, each, dim, multiplier)?;
        Ok(stream.std_dev())
    }
}
