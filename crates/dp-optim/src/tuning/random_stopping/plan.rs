//! The plan of the candidates for a repetition, and the repetitions.

use core::cmp::Reverse;
use std::sync::{Mutex, PoisonError};

use dp_accountant::certificate::Derivation as Derives;
use dp_accountant::{Delta, Epsilon, EventLog, Repetitions, bound};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::scores::Scores;
use dp_mechanisms::{Bounded, Exponential, LInfSensitivity, LentRng, Mechanism, ReleaseRng, Released, exact};

use super::score::{Score, ScoreNoise};
use super::{RECIPE, RandomStopping, RandomStoppingDerivation};
use crate::derivation::ModelTerms;
use crate::engine::Control;
use crate::engine::trainings::Trainings;
use crate::error::Error;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Planned, Recipe, RecordAdjacency, Summary};
use crate::trained::Trained;
use crate::tuning::agreement::{agreement, sensitivity};
use crate::tuning::portion::Unfinished;
use crate::tuning::{calibration, repetitions};

/// The fraction of the budget at which the search for the noise ends.
const CLOSE: f64 = 0.99;

/// The range of an epsilon.
const REACHABLE: &str =
    "the range that the best of these repetitions can reach: raise epsilon, or use fewer repetitions";

/// The plan of the best of a random number of repetitions.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomStoppingPlan<P: Planned<A>, A: RecordAdjacency> {
    candidates: Vec<P>,
    score: Score<A>,
    repetition_epsilon: f64,
    derivation: RandomStoppingDerivation<P::Derivation>,
    terms: ModelTerms,
    promise: Promise,
}

struct Outcome<F, A: RecordAdjacency> {
    score: i64,
    /// Number of the repetition.
    number: u64,
    candidate: u32,
    weights: Released<Vec<F>>,
    log: EventLog<A>,
}

impl<F, A: RecordAdjacency> Outcome<F, A> {
    /// The best is the largest: the first of equal scores.
    fn rank(&self) -> (i64, Reverse<u64>) {
        (self.score, Reverse(self.number))
    }
}

impl<P: Planned<A>, A: RecordAdjacency> RandomStoppingPlan<P, A> {
    pub(super) fn new<R: Recipe<Plan<A> = P>>(
        recipe: &RandomStopping<R>,
        n: u64,
        dim: u64,
        budget: Budget,
    ) -> Result<Self, Error> {
        if matches!(recipe.repetitions, Repetitions::Poisson { .. }) && budget.delta == Delta::ZERO {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "the best of a Poisson number of repetitions has no pure guarantee: allow a delta, or choose the \
                      truncated negative binomial law",
            });
        }
        let moves = sensitivity(RECIPE, A::KIND)?;
        let attempt = |epsilon: Epsilon| {
            let of_model = Budget { epsilon, delta: budget.delta };
            let candidates = recipe
                .candidates
                .iter()
                .map(|candidate| candidate.plan_copies::<A>(n, dim, of_model, 1))
                .collect::<Result<Vec<_>, _>>()?;
            let of_score = Epsilon::new(epsilon.get() * recipe.score_share)?;
            let derivation = RandomStoppingDerivation {
                n,
                repetitions: recipe.repetitions,
                score: ScoreNoise::for_budget(moves, of_score, budget.delta)?,
                each: candidates.iter().map(Planned::derivation).collect(),
                chosen: None,
            };
            let event = derivation.event()?;
            let cost = bound::epsilon(&event, budget.delta)?.value;
            Ok(((candidates, derivation, event), cost))
        };
        let ((candidates, derivation, event), repetition_epsilon) =
            calibration::largest(budget.epsilon, budget.epsilon.get() / 3.0, CLOSE, REACHABLE, attempt)?;
        Ok(Self {
            candidates,
            score: Score::new(derivation.score, moves),
            repetition_epsilon,
            terms: derivation.terms()?,
            promise: Promise::new(event, budget, 1)?,
            derivation,
        })
    }

    /// Returns the candidates, each planned for one repetition.
    pub fn candidates(&self) -> &[P] {
        &self.candidates
    }

    /// Returns the epsilon at which each candidate is planned, at the budget's delta; the score's cost is added.
    pub fn repetition_epsilon(&self) -> f64 {
        self.repetition_epsilon
    }

    /// Returns the derivation of the release.
    pub fn derivation(&self) -> &RandomStoppingDerivation<P::Derivation> {
        &self.derivation
    }

    fn repeat<F: Real>(
        &self,
        number: u64,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<Outcome<F, A>, Error> {
        let candidate = exact::uniform_below(self.candidates.len() as u128, rng)? as usize;
        // A pointer keeps the type of nested sources finite.
        let all: &mut dyn RowSource<F> = &mut Unfinished(&mut *source);
        let Trained { weights, mut log, .. } = self.candidates[candidate].train::<F>(all, rng, control)?;
        let right = agreement(&mut Unfinished(source), weights.get(), control)?;
        let score = self.score.release(right, &mut log, rng)?.into_inner();
        Ok(Outcome { score, number, candidate: candidate as u32, weights, log })
    }

    /// Runs all repetitions, and returns the best, the first of equal ones.
    fn best<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<Option<Outcome<F, A>>, Error> {
        let number = repetitions::draw(self.derivation.repetitions, rng)?;
        let memory = self.memory();
        // Progress would reveal the number of repetitions.
        let trainings = Trainings { number, memory, sizes: None };
        let best: Mutex<Option<Outcome<F, A>>> = Mutex::new(None);
        trainings.run(source, rng, control, &|i, source, rng, control| {
            let outcome = self.repeat(i, source, rng, control)?;
            let mut best = best.lock().unwrap_or_else(PoisonError::into_inner);
            if best.as_ref().is_none_or(|best| outcome.rank() > best.rank()) {
                *best = Some(outcome);
            }
            Ok(())
        })?;
        Ok(best.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Releases the model of zeros: a choice with one outcome, so that it comes from a mechanism like every release.
fn zeros<F: Real, A: RecordAdjacency>(
    weights: u64,
    rng: &mut impl ReleaseRng,
) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
    let weights = usize::try_from(weights).map_err(|_| Error::Count {
        name: "weights",
        value: weights,
        range: "what memory can address",
    })?;
    let one = LInfSensitivity::<A>::new(1.0)?;
    let mut log = EventLog::new();
    let chosen = Exponential::new(one, Epsilon::new(1.0)?)?.release(
        Bounded::with_proven_sensitivity(Scores::new(vec![0.0])?, one),
        &mut log,
        rng,
    )?;
    Ok((chosen.map(|_| vec![F::zero(); weights]), log))
}

impl<P: Planned<A>, A: RecordAdjacency> Planned<A> for RandomStoppingPlan<P, A> {
    type Derivation = RandomStoppingDerivation<P::Derivation>;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> Self::Derivation {
        self.derivation.clone()
    }

    /// That of the largest candidate.
    fn memory(&self) -> u64 {
        self.candidates.iter().map(Planned::memory).max().unwrap_or(0)
    }

    fn summary(&self) -> Summary {
        let each: Vec<Summary> = self.candidates.iter().map(Planned::summary).collect();
        let mean = repetitions::mean(self.derivation.repetitions);
        let rows: f64 = each.iter().map(|each| each.rows as f64).sum::<f64>() / each.len().max(1) as f64;
        let first = each.first().map_or("", |first| &first.text);
        let text = format!(
            "the best of {mean:.3} repetitions on average, each of one of {} candidates at epsilon {:.4}, judged by a \
             count with noise of scale {:.4}; the first with {first}",
            each.len(),
            self.repetition_epsilon,
            self.derivation.score.scale()
        );
        // Conversion saturates.
        Summary { sensitivity: None, rows: (mean * rows) as u64, text }
    }

    fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, Self::Derivation>, Error> {
        let rng = &mut rng.lend();
        let found = source.describe()?.n;
        if found != self.derivation.n {
            return Err(Error::Shape { name: "n", planned: self.derivation.n, found });
        }
        let best = self.best(source, rng, control)?;
        source.finish()?;
        let (weights, chosen, of_best) = match best {
            Some(Outcome { weights, candidate, log, .. }) => (weights, Some(candidate), log),
            None => {
                let (zeros, log) = zeros(self.terms.weights, rng)?;
                (zeros, None, log)
            }
        };
        // The theorem's event accounts for all repetitions. Only the best one's assumptions are kept, so that the log does
        // not reveal which others were tried.
        let log = EventLog::accounting_for(self.promise.event().clone(), &of_best, &[]);
        let derivation = RandomStoppingDerivation { chosen, ..self.derivation.clone() };
        self.promise.kept(weights, log, derivation, self.terms.noise_mode)
    }
}

#[cfg(test)]
mod tests {
    use dp_accountant::ZeroOut;
    use dp_data::{Examples, Workers};
    use dp_losses::LossKind;
    use dp_mechanisms::SeededRng;

    use super::*;
    use crate::memory::MemorySource;
    use crate::recipes::{AnyRecipe, BoltOn};

    /// The best of the repetitions, each with the generator of its number, is the first with the largest score: the scores of two
    /// records are often equal.
    #[test]
    fn the_first_of_equal_repetitions_is_the_best() {
        let mut source = MemorySource::new(Examples::dense(vec![0.5, -0.5], vec![1.0, -1.0], 1).unwrap(), 1.0, 1.0);
        let candidate: AnyRecipe = BoltOn::strongly_convex(LossKind::Logistic, 0.1).into();
        let repetitions = Repetitions::Poisson { mean: 20.0 };
        let recipe = RandomStopping { repetitions, score_share: 1e3, ..RandomStopping::new([candidate], 2.0) };
        let budget = Budget::new(100.0, 1e-5).unwrap();
        let plan = recipe.plan_copies::<ZeroOut>(2, 1, budget, 1).unwrap();
        let mut ties = 0;
        for seed in 0..20 {
            let mut rng = SeededRng::new(seed);
            let mut lent = rng.lend();
            let mut all = Vec::new();
            for number in 0..repetitions::draw(repetitions, &mut lent).unwrap() {
                let (mut child, control) = (lent.child(), &mut Control::default());
                all.push(plan.repeat::<f64>(number, &mut source, &mut child.lend(), control).unwrap());
            }
            let largest = all.iter().map(|outcome| outcome.score).max();
            let mut first = all.iter().filter(|outcome| Some(outcome.score) == largest);
            let expected = first.next().map(|outcome| outcome.weights.get().clone());
            ties += first.count();
            for threads in [1, 3] {
                let control = &mut Control { workers: Workers::new(threads.try_into().unwrap()), ..Control::default() };
                let found = plan.best(&mut source, &mut SeededRng::new(seed).lend(), control).unwrap();
                assert_eq!(found.map(|best| best.weights.into_inner()), expected, "seed {seed}, {threads} threads");
            }
        }
        assert!(ties > 20, "{ties}");
    }
}
