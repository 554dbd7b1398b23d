//! The rounds of PrivGene.

use dp_accountant::{DpEvent, Epsilon, EventLog};
use dp_data::RowSource;
use dp_losses::{Loss, Real, ScalarLoss};
use dp_mechanisms::scores::Scores;
use dp_mechanisms::{Bounded, Exponential, LInfSensitivity, LentRng, Mechanism, Prepaid, Released};
use nalgebra::convert;

use super::{PrivGene, Rounds, event, sensitivity};
use crate::engine::Control;
use crate::engine::grid_sum::{GridSum, counts, each_block};
use crate::engine::rows::features;
use crate::error::Error;
use crate::recipes::algorithm::Run;
use crate::recipes::linear::size;
use crate::recipes::problem::{Admitted, Problem};
use crate::recipes::recipe::{RecordAdjacency, Summary};

/// A run of PrivGene: rounds of choices among steps along the coordinates.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneRun {
    pub(super) recipe: PrivGene,
    pub(super) problem: Problem,
    pub(super) rounds: Rounds,
    pub(super) loss: ScalarLoss,
    pub(super) slope: f64,
}

impl GeneRun {
    /// Returns r, the number of rounds.
    pub fn rounds(&self) -> u64 {
        self.rounds.rounds
    }

    /// Returns e, the range of a round's privacy loss.
    pub fn epsilon_of_round(&self) -> f64 {
        self.rounds.epsilon_of_round
    }

    /// Returns the mechanism of the choices, for utilities in units of `C s`.
    ///
    /// # Errors
    /// None for a run that was planned.
    pub fn choice<A: RecordAdjacency>(&self) -> Result<Exponential<A>, Error> {
        let units = LInfSensitivity::<A>::new(sensitivity(A::KIND)?)?;
        Ok(Exponential::new(units, Epsilon::new(self.rounds.epsilon_of_round)?)?)
    }

    /// Returns the utility of every candidate in units of `C s`, at `2 j` for the positive step along coordinate `j` and at
    /// `2 j + 1` for the negative one: as private as the data.
    pub(crate) fn utilities<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        weights: &[f64],
        step: f64,
        round: u32,
        control: &mut Control<'_>,
    ) -> Result<Vec<f64>, Error> {
        let (loss, unit) = (self.loss, self.slope * step);
        let grid = GridSum::new(self.problem.n)?;
        let mut cells = vec![0i64; 2 * weights.len()];
        each_block(source, round, control, &mut |block| {
            for (i, &target) in (0..).zip(block.targets).filter(|(i, _)| counts(block, *i)) {
                let target = target.to_subset_unchecked();
                let mut score = 0.0;
                features(&block.rows, i, |j, x| score += x * weights.get(j).copied().unwrap_or(0.0));
                let here = loss.value(score, target);
                features(&block.rows, i, |j, x| {
                    for (side, moved) in [(0, score + step * x), (1, score - step * x)] {
                        if let Some(cells) = cells.get_mut(2 * j + side).filter(|_| x != 0.0) {
                            *cells += grid.cell((here - loss.value(moved, target)) / unit);
                        }
                    }
                });
            }
            Ok(())
        })?;
        Ok(cells.into_iter().map(|cells| grid.value(cells)).collect())
    }
}

impl Run for GeneRun {
    fn event(&self) -> Result<DpEvent, Error> {
        Ok(event(self.rounds.rounds, self.rounds.epsilon_of_round))
    }

    fn summary(&self) -> Summary {
        let Self { recipe, problem, rounds: Rounds { rounds, epsilon_of_round }, .. } = self;
        Summary {
            sensitivity: sensitivity(problem.relation).ok(),
            rows: problem.n.saturating_mul(*rounds),
            text: format!(
                "{rounds} choices among {} steps, noise of range {epsilon_of_round:.4e} on each, first step {:e}",
                2 * problem.dim,
                recipe.step
            ),
        }
    }

    fn train<F: Real, A: RecordAdjacency>(
        &self,
        rows: Admitted<'_, F, A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let source = rows.into_source();
        let choice = self.choice::<A>()?;
        let mut weights = vec![0.0f64; size("dimension", self.problem.dim)?];
        let mut rounds = Prepaid::<A>::new(self.event()?);
        let mut last: Option<Released<usize>> = None;
        for (round, step) in (0u32..).zip(self.recipe.steps(self.rounds.rounds)) {
            let utilities = self.utilities::<F>(source, &weights, step, round, control)?;
            let scores = Bounded::with_proven_sensitivity(Scores::new(utilities)?, choice.sensitivity());
            let chosen = choice.release(scores, rounds.log(), rng)?;
            if let Some(weight) = weights.get_mut(*chosen.get() / 2) {
                *weight += if chosen.get().is_multiple_of(2) { step } else { -step };
            }
            last = Some(chosen);
        }
        let last = last.ok_or(Error::Count { name: "steps", value: 0, range: "1 or more" })?;
        // A function of the choices of all rounds.
        let weights = last.map(|_| weights.into_iter().map(convert).collect());
        Ok(rounds.finish(weights, self.rounds.rounds)?)
    }
}
