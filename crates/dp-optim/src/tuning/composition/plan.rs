//! The joint plan of candidates and scores, and the trainings.

use dp_accountant::certificate::{Derivation as Derives, NoiseMode};
use dp_accountant::{Epsilon, EventLog, bound};
use dp_data::{KeyedOrder, RowSource};
use dp_losses::Real;
use dp_mechanisms::{Exponential, LInfSensitivity, LentRng, ReleaseRng, Released};

use super::{Candidate, Composition, CompositionDerivation, RECIPE};
use crate::derivation::DerivesModel as _;
use crate::engine::Control;
use crate::engine::trainings::{Sizes, Trainings};
use crate::error::Error;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Planned, Recipe, RecordAdjacency, Summary};
use crate::trained::Trained;
use crate::tuning::agreement::{agreement, choose, sensitivity};
use crate::tuning::calibration;
use crate::tuning::portion::Portion;

/// The fraction of the budget at which the search for the noise ends.
const CLOSE: f64 = 1.0 - 1e-4;

/// The range of an epsilon.
const REACHABLE: &str = "the range that these trainings together can reach: raise epsilon, or use fewer candidates";

/// The plan of the best of several trainings.
#[derive(Debug, Clone, PartialEq)]
pub struct CompositionPlan<P: Planned<A>, A: RecordAdjacency> {
    candidates: Vec<P>,
    choice: Exponential<A>,
    derivation: CompositionDerivation<P::Derivation>,
    noise_mode: NoiseMode,
    promise: Promise,
}

struct Outcome<F, A: RecordAdjacency> {
    weights: Released<Vec<F>>,
    chosen: u32,
    log: EventLog<A>,
}

impl<P: Planned<A>, A: RecordAdjacency> CompositionPlan<P, A> {
    pub(super) fn new<R: Recipe<Plan<A> = P>>(
        recipe: &Composition<R>,
        n: u64,
        dim: u64,
        budget: Budget,
    ) -> Result<Self, Error> {
        let of_training = n.saturating_sub(Composition::records_of_choice(n));
        if of_training == 0 {
            let range = "one for training and one for the choice, or more";
            return Err(Error::Count { name: "number of records", value: n, range });
        }
        let plan = |candidate: &Candidate<R>, epsilon: f64| {
            let of_model = Budget { epsilon: Epsilon::new(epsilon * candidate.weight)?, ..budget };
            let dim = candidate.encoding.map_or(dim, |other| other.dim);
            candidate.recipe.plan_copies::<A>(of_training, dim, of_model, 1)
        };
        let number = |candidate: &Candidate<R>| candidate.encoding.map_or(0, |other| other.number.saturating_add(1));
        let encodings: Vec<u32> = recipe.candidates.iter().map(number).collect();
        let attempt = |epsilon: Epsilon| {
            let candidates: Vec<P> =
                recipe.candidates.iter().map(|candidate| plan(candidate, epsilon.get())).collect::<Result<_, _>>()?;
            let derivation = CompositionDerivation {
                n,
                choice_epsilon: budget.epsilon.get(),
                each: candidates.iter().map(Planned::derivation).collect(),
                encodings: encodings.clone(),
                chosen: None,
            };
            derivation.terms()?;
            let cost = bound::epsilon(&derivation.event_of_trainings()?, budget.delta)?.value;
            Ok(((candidates, derivation), cost))
        };
        let first = recipe.first_unit(budget)?;
        let ((candidates, derivation), _) = calibration::largest(budget.epsilon, first, CLOSE, REACHABLE, attempt)?;
        // An integer that a double represents exactly.
        let scores = LInfSensitivity::<A>::new(sensitivity(RECIPE, A::KIND)? as f64)?;
        Ok(Self {
            candidates,
            choice: Exponential::new(scores, budget.epsilon)?,
            noise_mode: derivation.terms()?.noise_mode,
            promise: Promise::new(derivation.event()?, budget, 1)?,
            derivation,
        })
    }

    /// Returns the planned candidates.
    pub fn candidates(&self) -> &[P] {
        &self.candidates
    }

    /// Returns the mechanism of the choice, whose score is a candidate's number of correct minus incorrect predictions.
    pub fn choice(&self) -> &Exponential<A> {
        &self.choice
    }

    /// Returns the derivation of the release.
    pub fn derivation(&self) -> &CompositionDerivation<P::Derivation> {
        &self.derivation
    }

    /// Returns the positions of the records of the trainings, and of those of the choice: cut at random, ascending in each part.
    pub(super) fn cut(&self, rng: &mut impl ReleaseRng) -> Result<(Vec<u32>, Vec<u32>), Error> {
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        let n = self.derivation.n;
        let records =
            u32::try_from(n).map_err(|_| Error::Count { name: "number of records", value: n, range: "below 2^32" })?;
        let mut of_training = KeyedOrder::new(records, key, 0).positions()?;
        // It is below n.
        let mut of_choice = of_training.split_off((n - Composition::records_of_choice(n)) as usize);
        of_training.sort_unstable();
        of_choice.sort_unstable();
        Ok((of_training, of_choice))
    }

    /// Trains every candidate, then chooses one.
    fn release<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<Outcome<F, A>, Error> {
        let (of_training, of_choice) = self.cut(rng)?;
        let n = self.derivation.n;
        let encoding_of = |i: u64| self.derivation.encodings[i as usize];
        let trainings = Trainings {
            number: self.candidates.len() as u64,
            memory: self.memory(),
            sizes: Some(Sizes {
                records: n,
                records_of_each: of_training.len() as u64,
                rows: &|i| self.candidates[i as usize].summary().rows,
            }),
        };
        let trained = trainings.collect(source, rng, control, |i, source, rng, control| {
            let source = encoded(source, encoding_of(i))?;
            // A pointer keeps the type of nested sources finite.
            let portion: &mut dyn RowSource<F> = &mut Portion::new(&mut *source, &of_training);
            let Trained { weights, log, .. } = self.candidates[i as usize].train::<F>(portion, rng, control)?;
            let right = agreement(&mut Portion::new(source, &of_choice), weights.get(), control)?;
            Ok((weights, log, right))
        })?;
        let (mut models, mut of_trainings, mut agreements) = (Vec::new(), EventLog::new(), Vec::new());
        for (weights, log, right) in trained {
            models.push(weights);
            of_trainings.record_all(log);
            agreements.push(right);
        }
        let (chosen, of_choice) = choose(&self.choice, agreements, rng)?;
        let mut log = EventLog::new();
        log.record_parallel([of_trainings, of_choice]);
        Ok(Outcome { weights: models.swap_remove(chosen), chosen: chosen as u32, log })
    }
}

/// Returns the records in an encoding: 0 is that of the source itself.
fn encoded<F>(source: &mut dyn RowSource<F>, encoding: u32) -> Result<&mut dyn RowSource<F>, Error> {
    let Some(number) = encoding.checked_sub(1) else { return Ok(source) };
    source.alternative(number as usize).ok_or(Error::Shape {
        name: "encodings besides the source's own",
        planned: encoding.into(),
        found: 0,
    })
}

impl<P: Planned<A>, A: RecordAdjacency> Planned<A> for CompositionPlan<P, A> {
    type Derivation = CompositionDerivation<P::Derivation>;

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
        let of_choice = Composition::records_of_choice(self.derivation.n);
        let text = format!(
            "{} candidates on the same {} records, chosen on {of_choice} others; the first with {first}",
            each.len(),
            self.derivation.n - of_choice
        );
        Summary { sensitivity: None, rows: each.iter().fold(0, |sum, each| sum.saturating_add(each.rows)), text }
    }

    fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, Self::Derivation>, Error> {
        for (&encoding, candidate) in self.derivation.encodings.iter().zip(&self.derivation.each) {
            let found = encoded(source, encoding)?.describe()?;
            if found.n != self.derivation.n {
                return Err(Error::Shape { name: "n", planned: self.derivation.n, found: found.n });
            }
            // Before anything is trained.
            let (planned, found) = (candidate.model_terms().dim(), found.dim as u64);
            if found != planned {
                return Err(Error::Shape { name: "dim", planned, found });
            }
        }
        let Outcome { weights, chosen, log } = self.release(source, &mut rng.lend(), control)?;
        source.finish()?;
        let derivation = CompositionDerivation { chosen: Some(chosen), ..self.derivation.clone() };
        self.promise.kept(weights, log, derivation, self.noise_mode)
    }
}
