//! The plan of the candidates on their portions, and the training.

use dp_accountant::EventLog;
use dp_accountant::certificate::Derivation as Derives;
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::{Exponential, LInfSensitivity, LentRng, ReleaseRng, Released};
use rand::Rng as _;

use super::{Portions, PortionsDerivation, RECIPE};
use crate::derivation::ModelTerms;
use crate::engine::Control;
use crate::engine::trainings::{Sizes, Trainings};
use crate::error::Error;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Planned, Recipe, RecordAdjacency, Summary};
use crate::trained::Trained;
use crate::tuning::agreement::{agreement, choose, sensitivity};
use crate::tuning::portion::{Portion, portions};

/// The plan of a choice on portions.
#[derive(Debug, Clone, PartialEq)]
pub struct PortionsPlan<P: Planned<A>, A: RecordAdjacency> {
    candidates: Vec<P>,
    choice: Exponential<A>,
    derivation: PortionsDerivation<P::Derivation>,
    terms: ModelTerms,
    promise: Promise,
}

struct Outcome<F, A: RecordAdjacency> {
    weights: Released<Vec<F>>,
    chosen: u32,
    log: EventLog<A>,
}

impl<P: Planned<A>, A: RecordAdjacency> PortionsPlan<P, A> {
    pub(super) fn new<R: Recipe<Plan<A> = P>>(
        recipe: &Portions<R>,
        n: u64,
        dim: u64,
        budget: Budget,
    ) -> Result<Self, Error> {
        let portion = Portions::records_of_portion(n, recipe.candidates.len());
        if portion == 0 {
            return Err(Error::Count {
                name: "number of records",
                value: n,
                range: "at least one for each candidate and one more",
            });
        }
        let candidates: Vec<P> = recipe
            .candidates
            .iter()
            .map(|candidate| candidate.plan_copies::<A>(portion, dim, budget, 1))
            .collect::<Result<_, _>>()?;
        let derivation = PortionsDerivation {
            n,
            choice_epsilon: budget.epsilon.get(),
            each: candidates.iter().map(Planned::derivation).collect(),
            chosen: None,
        };
        let terms = derivation.terms()?;
        // An integer that a double represents exactly.
        let scores = LInfSensitivity::<A>::new(sensitivity(RECIPE, A::KIND)? as f64)?;
        let promise = Promise::new(derivation.event()?, budget, 1)?;
        let choice = Exponential::new(scores, budget.epsilon)?;
        Ok(Self { candidates, choice, derivation, terms, promise })
    }

    /// Returns the number of records of each portion.
    pub fn portion(&self) -> u64 {
        Portions::records_of_portion(self.derivation.n, self.candidates.len())
    }

    /// Returns the candidates, each planned for its portion.
    pub fn candidates(&self) -> &[P] {
        &self.candidates
    }

    /// Returns the mechanism of the choice, whose score is a candidate's number of correct minus incorrect predictions.
    pub fn choice(&self) -> &Exponential<A> {
        &self.choice
    }

    /// Returns the derivation of the release.
    pub fn derivation(&self) -> &PortionsDerivation<P::Derivation> {
        &self.derivation
    }

    /// Trains every candidate and chooses one.
    fn release<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<Outcome<F, A>, Error> {
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        let positions = portions(self.derivation.n, self.candidates.len() + 1, key)?;
        let none = || Error::Count { name: "candidates", value: 0, range: "1 or more" };
        let (of_choice, of_training) = positions.split_last().ok_or_else(none)?;
        let trainings = Trainings {
            number: self.candidates.len() as u64,
            memory: self.memory(),
            sizes: Some(Sizes {
                records: self.derivation.n,
                records_of_each: self.portion(),
                rows: &|i| self.candidates[i as usize].summary().rows,
            }),
        };
        let trained = trainings.collect(source, rng, control, |i, source, rng, control| {
            // A pointer keeps the type of nested sources finite.
            let portion: &mut dyn RowSource<F> = &mut Portion::new(&mut *source, &of_training[i as usize]);
            let Trained { weights, log, .. } = self.candidates[i as usize].train::<F>(portion, rng, control)?;
            let right = agreement(&mut Portion::new(source, of_choice), weights.get(), control)?;
            Ok((weights, log, right))
        })?;
        let (mut models, mut logs, mut agreements) = (Vec::new(), Vec::new(), Vec::new());
        for (weights, log, right) in trained {
            models.push(weights);
            logs.push(log);
            agreements.push(right);
        }
        let (chosen, of_choice) = choose(&self.choice, agreements, rng)?;
        logs.push(of_choice);
        let mut all = EventLog::new();
        all.record_parallel(logs);
        Ok(Outcome { weights: models.swap_remove(chosen), chosen: chosen as u32, log: all })
    }
}

impl<P: Planned<A>, A: RecordAdjacency> Planned<A> for PortionsPlan<P, A> {
    type Derivation = PortionsDerivation<P::Derivation>;

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
        let first = each.first().map_or("", |first| &first.text);
        let text = format!(
            "{} candidates, each on a portion of {} records, chosen on another; the first with {first}",
            each.len(),
            self.portion()
        );
        Summary { sensitivity: None, rows: each.iter().fold(0, |sum, each| sum.saturating_add(each.rows)), text }
    }

    fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, Self::Derivation>, Error> {
        let found = source.describe()?.n;
        if found != self.derivation.n {
            return Err(Error::Shape { name: "n", planned: self.derivation.n, found });
        }
        let Outcome { weights, chosen, log } = self.release(source, &mut rng.lend(), control)?;
        source.finish()?;
        let derivation = PortionsDerivation { chosen: Some(chosen), ..self.derivation.clone() };
        self.promise.kept(weights, log, derivation, self.terms.noise_mode)
    }
}
