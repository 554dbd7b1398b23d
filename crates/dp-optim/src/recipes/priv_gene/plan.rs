//! PrivGene with everything derived that does not need data, and the training that follows it.

use core::marker::PhantomData;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Epsilon, EventLog};
use dp_data::{RowSource, Rows};
use dp_losses::{Loss, LossVisitor, Real, ScalarLoss};
use dp_mechanisms::scores::Scores;
use dp_mechanisms::{Bounded, Exponential, LInfSensitivity, Mechanism, ReleaseRng, Released};
use nalgebra::convert;

use super::{PrivGene, PrivGeneDerivation, event, sensitivity};
use crate::engine::Control;
use crate::engine::grid_sum::{GridSum, counts, each_record};
use crate::error::Error;
use crate::recipes::AnyDerivation;
use crate::recipes::linear::size;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Expected, Planned, RecordAdjacency, Summary, least_scale};
use crate::trained::Trained;

/// A release by PrivGene, planned: rounds, their cost and the guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: PrivGeneDerivation,
    loss: ScalarLoss,
    slope: f64,
    choice: Exponential<A>,
    promise: Promise,
    relation: PhantomData<A>,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(super) fn new(recipe: &PrivGene, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        let (loss, slope) = recipe.check(n, dim)?;
        let rounds = recipe.rounds(n, budget.epsilon.get() / copies as f64);
        let inverse = least_scale(budget, copies, |scale| event(rounds, scale.recip()))?;
        // The reciprocal of a reciprocal may be an ulp more.
        let epsilon_of_round = inverse.recip() * (1.0 - 2.0 * f64::EPSILON);
        let units = LInfSensitivity::<A>::new(sensitivity(A::KIND)?)?;
        let choice = Exponential::new(units, Epsilon::new(epsilon_of_round)?)?;
        let promise = Promise::new(event(rounds, epsilon_of_round), budget, copies)?;
        GridSum::new(n)?;
        let derivation =
            PrivGeneDerivation { recipe: recipe.clone(), relation: A::KIND, n, dim, rounds, epsilon_of_round };
        Ok(Self { derivation, loss, slope, choice, promise, relation: PhantomData })
    }

    /// r.
    pub fn rounds(&self) -> u64 {
        self.derivation.rounds
    }

    /// e: the range of a round's privacy loss.
    pub fn epsilon_of_round(&self) -> f64 {
        self.derivation.epsilon_of_round
    }

    /// The mechanism that chooses, for utilities in units of `C s`.
    pub fn choice(&self) -> &Exponential<A> {
        &self.choice
    }

    /// How the release follows from public parameters.
    pub fn derivation(&self) -> &PrivGeneDerivation {
        &self.derivation
    }

    /// Trains on `source` and releases the model.
    ///
    /// # Privacy
    /// As [`Planned::train`].
    ///
    /// # Errors
    /// A source of another shape or with wider bounds than planned or that fails, [`Error::Interrupted`].
    pub fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        let PrivGeneDerivation { recipe, n, dim, rounds, .. } = &self.derivation;
        let (row_norm, target_bound) = (recipe.row_norm, recipe.target_bound);
        Expected { n: *n, dim: *dim, row_norm, target_bound }.check(&source.describe()?)?;
        control.check()?;
        let mut weights = vec![0.0f64; size("dimension", *dim)?];
        let mut last: Option<Released<usize>> = None;
        let mut unsaid = EventLog::<A>::new();
        for (round, step) in (0u32..).zip(recipe.steps(*rounds)) {
            let utilities = self.utilities::<F>(source, &weights, step, round, control)?;
            let scores = Bounded::with_proven_sensitivity(Scores::new(utilities)?, self.choice.sensitivity());
            let chosen = self.choice.release(scores, &mut unsaid, rng)?;
            if let Some(weight) = weights.get_mut(*chosen.get() / 2) {
                *weight += if chosen.get().is_multiple_of(2) { step } else { -step };
            }
            last = Some(chosen);
        }
        source.finish()?;
        let Some(last) = last else {
            return Err(Error::Count { name: "steps", value: 0, range: "1 or more" });
        };
        let mut log = EventLog::<A>::new();
        log.record(self.promise.event().clone(), 1);
        if !unsaid.is_private() {
            log.mark_not_private();
        }
        // A function of what all rounds released.
        let weights = last.map(|_| weights.into_iter().map(convert).collect());
        self.promise.kept(weights, log, AnyDerivation::PrivGene(self.derivation.clone()), NoiseMode::Exact)
    }

    /// The utility of every candidate in units of `C s`, the step along coordinate `j` at `2 j` and the one back at
    /// `2 j + 1`: as private as the data.
    pub(crate) fn utilities<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        weights: &[f64],
        step: f64,
        round: u32,
        control: &mut Control<'_>,
    ) -> Result<Vec<f64>, Error> {
        let utilities =
            Utilities { source, weights, step, unit: self.slope * step, n: self.derivation.n, round, control };
        Loss::<f64>::resolve(self.loss, utilities)
    }
}

/// Receives the loss as a type.
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
        each_record(source, round, control, |block| {
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
        })?;
        Ok(cells.into_iter().map(|cells| grid.value(cells)).collect())
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    type Derivation = AnyDerivation;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> AnyDerivation {
        AnyDerivation::PrivGene(self.derivation.clone())
    }

    fn summary(&self) -> Summary {
        let PrivGeneDerivation { recipe, n, dim, rounds, epsilon_of_round, .. } = &self.derivation;
        Summary {
            sensitivity: Some(self.choice.sensitivity().get()),
            rows: n.saturating_mul(*rounds),
            text: format!(
                "{rounds} choices among {} steps, noise of range {epsilon_of_round:.4e} on each, first step {:e}",
                2 * dim,
                recipe.step
            ),
        }
    }

    fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        self.train(source, rng, control)
    }
}
