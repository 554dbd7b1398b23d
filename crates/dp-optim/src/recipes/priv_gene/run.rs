//! The rounds of PrivGene.

use dp_accountant::{DpEvent, Epsilon, EventLog};
use dp_data::{RowSource, Rows};
use dp_losses::{Loss, LossVisitor, Real, ScalarLoss};
use dp_mechanisms::scores::Scores;
use dp_mechanisms::{Bounded, Exponential, LInfSensitivity, LentRng, Mechanism, Prepaid, Released};
use nalgebra::convert;

use super::{PrivGene, Rounds, event, sensitivity};
use crate::engine::Control;
use crate::engine::grid_sum::{GridSum, counts, each_block};
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
        let utilities = Utilities { source, weights, step, unit: self.slope * step, n: self.problem.n, round, control };
        Loss::<f64>::resolve(self.loss, utilities)
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

struct Utilities<'t, 'c, F> {
    source: &'t mut dyn RowSource<F>,
    weights: &'t [f64],
    step: f64,
    unit: f64,
    n: u64,
    round: u32,
    control: &'t mut Control<'c>,
}

impl<F: Real> LossVisitor<f64> for Utilities<'_, '_, F> {
    type Output = Result<Vec<f64>, Error>;

    fn visit<L: Loss<f64>>(self, loss: L) -> Self::Output {
        let Self { source, weights, step, unit, n, round, control } = self;
        let grid = GridSum::new(n)?;
        let mut cells = vec![0i64; 2 * weights.len()];
        each_block(source, round, control, &mut |block| {
            let double = |x: F| -> f64 { x.to_subset_unchecked() };
            for (i, &target) in (0..).zip(block.targets).filter(|(i, _)| counts(block, *i)) {
                let target = double(target);
                let mut add = |features: &mut dyn Iterator<Item = (usize, f64)>, score: f64| {
                    let here = loss.value(score, target);
                    for (j, x) in features.filter(|(_, x)| *x != 0.0) {
                        for (side, moved) in [(0, score + step * x), (1, score - step * x)] {
                            if let Some(cells) = cells.get_mut(2 * j + side) {
                                *cells += grid.cell((here - loss.value(moved, target)) / unit);
                            }
                        }
                    }
                };
                match block.rows {
                    Rows::Dense { values, dim } => {
                        let row = values.get(i * dim..(i + 1) * dim).unwrap_or_default();
                        let score = row.iter().zip(weights).map(|(&x, w)| double(x) * w).sum();
                        add(&mut row.iter().map(|&x| double(x)).enumerate(), score);
                    }
                    Rows::Sparse { offsets, indices, values, .. } => {
                        let (Some(&start), Some(&end)) = (offsets.get(i), offsets.get(i + 1)) else { continue };
                        let entries = || {
                            let entries = indices[start..end].iter().zip(&values[start..end]);
                            entries.map(|(&j, &x)| (j as usize, double(x)))
                        };
                        let score = entries().map(|(j, x)| x * weights.get(j).copied().unwrap_or(0.0)).sum();
                        add(&mut entries(), score);
                    }
                }
            }
            Ok(())
        })?;
        Ok(cells.into_iter().map(|cells| grid.value(cells)).collect())
    }
}
