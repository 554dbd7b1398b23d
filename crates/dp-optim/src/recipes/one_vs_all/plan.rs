//! The joint plan of the models of all classes, and their training.

use dp_accountant::EventLog;
use dp_data::RowSource;
use dp_losses::{Real, Softmax};
use dp_mechanisms::{LentRng, ReleaseRng, Released};

use super::derivation::OneVsAllDerivation;
use super::source::OneAgainstRest;
use super::{OneVsAll, Share};
use crate::derivation::{DerivesModel as _, ModelTerms};
use crate::engine::Control;
use crate::engine::trainings::{Sizes, Trainings};
use crate::error::Error;
use crate::recipes::algorithm::Run as _;
use crate::recipes::bolt_on::OutputRun;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Planned, Recipe, RecordAdjacency, Summary, memory_of_training, repeated};
use crate::trained::Trained;

/// The plan of one model for each class.
#[derive(Debug, Clone, PartialEq)]
pub struct OneVsAllPlan<P: Planned<A>, A: RecordAdjacency> {
    classes: Softmax,
    models: Models<P>,
    derivation: OneVsAllDerivation<P::Derivation>,
    terms: ModelTerms,
    promise: Promise,
}

#[derive(Debug, Clone, PartialEq)]
enum Models<P> {
    Each(Box<P>),
    Joint(Box<OutputRun>),
}

impl<P: Planned<A>, A: RecordAdjacency> OneVsAllPlan<P, A> {
    pub(super) fn new<R: Recipe<Plan<A> = P>>(
        recipe: &OneVsAll<R>,
        n: u64,
        dim: u64,
        budget: Budget,
        copies: u64,
    ) -> Result<Self, Error> {
        let softmax = Softmax::new(recipe.classes)?;
        let classes = u64::from(recipe.classes);
        let all = copies.checked_mul(classes).ok_or(Error::Count {
            name: "copies",
            value: copies,
            range: "such that copies times classes stays below 2^64",
        })?;
        let (models, each) = match recipe.share {
            Share::Joint => {
                let (joint, each) = recipe.recipe.plan_joint::<A>(n, dim, recipe.classes, budget, copies)?;
                (Models::Joint(Box::new(joint)), each)
            }
            Share::Composed => {
                let plan = recipe.recipe.plan_copies::<A>(n, dim, budget, all)?;
                let each = plan.derivation();
                (Models::Each(Box::new(plan)), each)
            }
            Share::Split => {
                let plan = recipe.recipe.plan_copies::<A>(n, dim, part(budget, classes)?, copies)?;
                let each = plan.derivation();
                (Models::Each(Box::new(plan)), each)
            }
        };
        let derivation = OneVsAllDerivation { classes: recipe.classes, share: recipe.share, each: Box::new(each) };
        let terms = derivation.terms_of_each()?;
        let event = match &models {
            Models::Joint(joint) => joint.event()?,
            Models::Each(plan) => repeated(plan.event(), classes),
        };
        let promise = Promise::new(event, budget, copies)?;
        Ok(Self { classes: softmax, models, derivation, terms, promise })
    }

    /// Returns the derivation of the release.
    pub fn derivation(&self) -> &OneVsAllDerivation<P::Derivation> {
        &self.derivation
    }

    /// Trains the models of all classes, and releases each or all of them together.
    fn release<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let records = source.describe()?.n;
        let classes = self.classes;
        let trainings = |memory, rows| Trainings {
            number: classes.classes().into(),
            memory,
            sizes: Some(Sizes { records, records_of_each: records, rows }),
        };
        match &self.models {
            Models::Each(plan) => {
                let rows = plan.summary().rows;
                let train = |class, source: &mut dyn RowSource<F>, rng: &mut LentRng<'_>, control: &mut Control<'_>| {
                    // A pointer keeps the type of nested sources finite.
                    let source: &mut dyn RowSource<F> = &mut OneAgainstRest::new(source, classes, class as usize);
                    let Trained { weights, log, .. } = plan.train::<F>(source, rng, control)?;
                    Ok((weights, log))
                };
                let models = trainings(plan.memory(), &|_| rows).collect(source, rng, control, train)?;
                let mut log = EventLog::new();
                let weights = models.into_iter().map(|(weights, of_class)| {
                    log.record_all(of_class);
                    weights
                });
                let stack = weights.reduce(|stack, weights| {
                    stack.map(|mut stack| {
                        stack.extend(weights.into_inner());
                        stack
                    })
                });
                let none = Error::Count { name: "classes", value: 0, range: "2 or more" };
                Ok((stack.ok_or(none)?, log))
            }
            Models::Joint(joint) => {
                let rows = joint.summary().rows;
                let train = |class, source: &mut dyn RowSource<F>, rng: &mut LentRng<'_>, control: &mut Control<'_>| {
                    let mut source = OneAgainstRest::new(source, classes, class as usize);
                    let rows = joint.problem().admit::<F, A>(&mut source)?;
                    joint.train_unreleased(rows.into_source(), rng, control)
                };
                let models = trainings(Planned::memory(self), &|_| rows).collect(source, rng, control, train)?;
                joint.release(models.concat(), rng)
            }
        }
    }
}

/// Returns an equal part of a budget, rounded down.
fn part(budget: Budget, parts: u64) -> Result<Budget, Error> {
    let down = 1.0 - 4.0 * f64::EPSILON;
    Ok(Budget::new(budget.epsilon.get() / parts as f64 * down, budget.delta.get() / parts as f64 * down)?)
}

impl<P: Planned<A>, A: RecordAdjacency> Planned<A> for OneVsAllPlan<P, A> {
    type Derivation = OneVsAllDerivation<P::Derivation>;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> Self::Derivation {
        self.derivation.clone()
    }

    fn summary(&self) -> Summary {
        let classes = self.classes.classes();
        let (each, shown, share) = match &self.models {
            Models::Joint(joint) => {
                let each = joint.summary();
                let shown =
                    format!("sensitivity {:.4e}, noise of norm {:.4e}", joint.sensitivity(), joint.noise_norm());
                (each, shown, "released together")
            }
            Models::Each(plan) => {
                let each = plan.summary();
                let shown = format!("each with {}", each.text);
                let split = self.derivation.share == Share::Split;
                (each, shown, if split { "an equal part of the budget each" } else { "within one budget" })
            }
        };
        let text = format!("{classes} models, one for each class against the rest, {share}: {shown}");
        Summary { sensitivity: each.sensitivity, rows: each.rows.saturating_mul(u64::from(classes)), text }
    }

    fn memory(&self) -> u64 {
        let of_all = memory_of_training(&self.terms, self.derivation.records(), false);
        match &self.models {
            Models::Each(plan) => of_all.max(plan.memory()),
            Models::Joint(_) => of_all,
        }
    }

    fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, Self::Derivation>, Error> {
        let last = f64::from(self.classes.classes() - 1);
        let target_bound = source.describe()?.target_bound;
        if !(target_bound >= last) {
            return Err(Error::OutOfRange {
                name: "the source's target bound",
                value: target_bound,
                range: "at least the largest class index, or classes would be taken for one another",
            });
        }
        let (weights, log) = self.release(source, &mut rng.lend(), control)?;
        source.finish()?;
        self.promise.kept(weights, log, self.derivation.clone(), self.terms.noise_mode)
    }
}
