//! The release of a constant prediction: noise on two counts.

use dp_accountant::{DpEvent, EventLog};
use dp_data::RowSource;
use dp_data::sums::{SumKind, SumSource};
use dp_losses::Real;
use dp_mechanisms::{Bounded, L2Sensitivity, LaplaceBall, LentRng, Mechanism, Released};
use nalgebra::convert;

use super::{Majority, SumNoise};
use crate::engine::grid_sum::{self, GridSum, each_block};
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
    /// Returns the scale of the noise on the two counts.
    pub fn scale(&self) -> f64 {
        self.noise.scale
    }

    /// Returns the L2 sensitivity of the counts.
    pub fn sensitivity(&self) -> f64 {
        self.sensitivity
    }

    /// Returns the noisy counts.
    pub(crate) fn noisy_counts<F: Real, A: RecordAdjacency>(
        &self,
        source: &mut dyn RowSource<F>,
        log: &mut EventLog<A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<Released<Vec<f64>>, Error> {
        let sensitivity = L2Sensitivity::new(self.sensitivity)?;
        let bounded = |counts: [f64; 2]| Bounded::with_proven_sensitivity(counts.to_vec(), sensitivity);
        let counts = match source.sums() {
            Some(elsewhere) => self.counts_elsewhere(elsewhere, bounded)?,
            None => bounded(self.counts(source, control)?),
        };
        let noise =
            LaplaceBall::from_scale(sensitivity, self.noise.scale, 2)?.with_noise_mode(self.recipe.noise_mode)?;
        Ok(noise.release(counts, log, rng)?)
    }

    fn counts_elsewhere<A: RecordAdjacency>(
        &self,
        source: &mut dyn SumSource,
        bounded: impl Fn([f64; 2]) -> Bounded<Vec<f64>, A>,
    ) -> Result<Bounded<Vec<f64>, A>, Error> {
        if self.recipe.target_bound != 1.0 {
            let why = "another engine adds up targets of size at most 1";
            return Err(Error::NotProved { recipe: super::RECIPE, why });
        }
        let grid = GridSum::new(self.n)?;
        sums::once(source, (SumKind::Targets, grid.bits()), self.n, |found| match *found.steps {
            [cells, records]
                if u64::try_from(records)
                    .is_ok_and(|records| records <= self.n && cells.unsigned_abs() <= records << grid.bits()) =>
            {
                Ok(bounded(halves(grid, cells, records)))
            }
            _ => Err(dp_mechanisms::Error::ImpossibleSum),
        })
    }

    /// Returns the intercept's weight for noisy counts.
    pub(crate) fn answer<F: Real>(&self, counts: &[f64]) -> F {
        convert(self.recipe.answer(counts, self.n))
    }

    /// Returns the counts: as private as the data.
    pub(crate) fn counts<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        control: &mut Control<'_>,
    ) -> Result<[f64; 2], Error> {
        let grid = GridSum::new(self.n)?;
        let (mut cells, mut records) = (0, 0);
        each_block(source, 0, control, &mut |block| {
            for (_, &target) in (0..).zip(block.targets).filter(|(i, _)| grid_sum::counts(block, *i)) {
                let target: f64 = target.to_subset_unchecked();
                cells += grid.cell(target / self.recipe.target_bound);
                records += 1;
            }
            Ok(())
        })?;
        Ok(halves(grid, cells, records))
    }
}

/// Returns `Σ (1 ± y)/2` over so many records, whose targets have this sum in cells: exactly, as no cell is larger than 1.
fn halves(grid: GridSum, cells: i64, records: i64) -> [f64; 2] {
    let all = records << grid.bits();
    [all + cells, all - cells].map(|twice| 0.5 * grid.value(twice))
}

impl Run for AnswerRun {
    fn event(&self) -> Result<DpEvent, Error> {
        Ok(NoiseScale::LaplaceBall { scale: self.noise.scale }.event(self.sensitivity, 2))
    }

    fn summary(&self) -> Summary {
        Summary {
            sensitivity: Some(self.sensitivity),
            rows: self.n,
            text: format!("noise of scale {:.4e} on two counts, the same answer for everyone", self.noise.scale),
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
        let counts = self.noisy_counts(source, &mut log, rng, control)?;
        let mut weights = vec![F::zero(); size("dimension", self.dim)?];
        let weights = counts.map(|counts| {
            if let Some(intercept) = weights.last_mut() {
                *intercept = self.answer(&counts);
            }
            weights
        });
        Ok((weights, log))
    }
}
