//! The release of a constant prediction: noise on the sum of the targets.

use dp_accountant::{DpEvent, EventLog};
use dp_data::RowSource;
use dp_data::sums::{SumKind, SumSource};
use dp_losses::Real;
use dp_mechanisms::{Bounded, L2Sensitivity, LaplaceBall, LentRng, Mechanism, Released};
use nalgebra::convert;

use super::{Majority, SumNoise};
use crate::engine::grid_sum::{GridSum, counts, each_block};
use crate::engine::{Control, sums};
use crate::error::Error;
use crate::recipes::algorithm::Run;
use crate::recipes::linear::size;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::problem::Admitted;
use crate::recipes::recipe::{RecordAdjacency, Summary};

/// A run of the constant prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerRun {
    pub(super) recipe: Majority,
    pub(super) n: u64,
    pub(super) dim: u64,
    pub(super) sensitivity: f64,
    pub(super) noise: SumNoise,
}

impl AnswerRun {
    /// Returns the scale of the noise on the sum of the targets, in units of their bound.
    pub fn scale(&self) -> f64 {
        self.noise.scale
    }

    /// Returns the sensitivity of that sum.
    pub fn sensitivity(&self) -> f64 {
        self.sensitivity
    }

    /// Returns the noisy sum of the targets, in units of their bound.
    pub(crate) fn noisy_sum<F: Real, A: RecordAdjacency>(
        &self,
        source: &mut dyn RowSource<F>,
        log: &mut EventLog<A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<Released<Vec<f64>>, Error> {
        let sensitivity = L2Sensitivity::new(self.sensitivity)?;
        let bounded = |sum: f64| Bounded::with_proven_sensitivity(vec![sum], sensitivity);
        let sum = match source.sums() {
            Some(elsewhere) => self.sum_elsewhere(elsewhere, bounded)?,
            None => bounded(self.sum(source, control)?),
        };
        let noise =
            LaplaceBall::from_scale(sensitivity, self.noise.scale, 1)?.with_noise_mode(self.recipe.noise_mode)?;
        Ok(noise.release(sum, log, rng)?)
    }

    fn sum_elsewhere<A: RecordAdjacency>(
        &self,
        source: &mut dyn SumSource,
        bounded: impl Fn(f64) -> Bounded<Vec<f64>, A>,
    ) -> Result<Bounded<Vec<f64>, A>, Error> {
        if self.recipe.target_bound != 1.0 {
            let why = "another engine adds up targets of size at most 1";
            return Err(Error::NotProved { recipe: super::RECIPE, why });
        }
        let grid = GridSum::new(self.n)?;
        sums::once(source, (SumKind::Targets, grid.bits()), self.n, |found| match *found.steps {
            [cells] if cells.unsigned_abs() <= self.n << grid.bits() => Ok(bounded(grid.value(cells))),
            _ => Err(dp_mechanisms::Error::ImpossibleSum),
        })
    }

    /// Returns the intercept's weight for a noisy sum.
    pub(crate) fn answer<F: Real>(&self, sum: &[f64]) -> F {
        let mean = sum.first().copied().unwrap_or(0.0) / self.n as f64;
        convert(self.recipe.answer(mean, self.n))
    }

    /// Returns the sum of the targets, in units of their bound: as private as the data.
    pub(crate) fn sum<F: Real>(&self, source: &mut dyn RowSource<F>, control: &mut Control<'_>) -> Result<f64, Error> {
        let grid = GridSum::new(self.n)?;
        let mut cells = 0;
        each_block(source, 0, control, &mut |block| {
            for (_, &target) in (0..).zip(block.targets).filter(|(i, _)| counts(block, *i)) {
                let target: f64 = target.to_subset_unchecked();
                cells += grid.cell(target / self.recipe.target_bound);
            }
            Ok(())
        })?;
        Ok(grid.value(cells))
    }
}

impl Run for AnswerRun {
    fn event(&self) -> Result<DpEvent, Error> {
        Ok(NoiseScale::LaplaceBall { scale: self.noise.scale }.event(self.sensitivity, 1))
    }

    fn summary(&self) -> Summary {
        let bound = self.recipe.target_bound;
        let scale = self.noise.scale * bound;
        Summary {
            sensitivity: Some(self.sensitivity * bound),
            rows: self.n,
            text: format!("noise of scale {scale:.4e} on the sum of the targets, the same answer for everyone"),
        }
    }

    fn train<F: Real, A: RecordAdjacency>(
        &self,
        rows: Admitted<'_, F, A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let source = rows.into_source();
        let mut log = EventLog::new();
        let sum = self.noisy_sum(source, &mut log, rng, control)?;
        let mut weights = vec![F::zero(); size("dimension", self.dim)?];
        let weights = sum.map(|sum| {
            if let Some(intercept) = weights.last_mut() {
                *intercept = self.answer(&sum);
            }
            weights
        });
        Ok((weights, log))
    }
}
