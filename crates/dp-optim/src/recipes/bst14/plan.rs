//! BST14 with everything derived that does not need data, and the training that follows it.

use core::marker::PhantomData;

use dp_data::SampleSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;

use super::as_published::{Bst14Constants, Bst14Input, Inversion};
use super::derivation::Bst14Derivation;
use super::{Bst14, Bst14Calibration};
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::error::Error;
use crate::recipes::noisy_run::{NoisyPlan, NoisyRun};
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Planned, RecordAdjacency, Summary};
use crate::trained::Trained;

/// A release by BST14, planned: sensitivity, noise, event and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: Bst14Derivation,
    planned: NoisyPlan,
    relation: PhantomData<A>,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(super) fn new(recipe: &Bst14, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        let run = recipe.run(n, dim, A::KIND)?;
        let std_dev = match recipe.calibration {
            Bst14Calibration::Accountant => run.least_std_dev(budget, copies)?,
            Bst14Calibration::AsPublished { .. } if copies != 1 => {
                let why = "the published noise is that of one release: calibrate by the accountant for several";
                return Err(Error::NotProved { recipe: super::RECIPE, why });
            }
            Bst14Calibration::AsPublished { iota } => {
                let input = Bst14Input {
                    n,
                    passes: recipe.passes,
                    batch_size: recipe.batch_size.min(n),
                    dim: run.parameters(),
                    epsilon: budget.epsilon,
                    delta: budget.delta,
                    lipschitz: recipe.lipschitz()?,
                    iota,
                };
                Bst14Constants::new(&input, Inversion::Linear)?.std_dev()
            }
        };
        let schedule = recipe.schedule(&run, std_dev)?;
        let planned = NoisyPlan::new(run, &schedule, &recipe.averaging, std_dev, recipe.noise_mode, budget, copies)?;
        let derivation = Bst14Derivation { recipe: recipe.clone(), relation: A::KIND, n, dim, std_dev };
        Ok(Self { derivation, planned, relation: PhantomData })
    }

    /// The L2 sensitivity of a step's sum, rounding allowed for: to a record's presence under Poisson sampling, else to
    /// the relation's change of a record.
    pub fn sensitivity(&self) -> f64 {
        self.planned.sensitivity()
    }

    /// Standard deviation of the noise on each coordinate of a step's sum.
    pub fn std_dev(&self) -> f64 {
        self.derivation.std_dev
    }

    /// Number of steps.
    pub fn steps(&self) -> u64 {
        self.run().updates()
    }

    /// What a step's sum is divided by: the mean number of records in a batch.
    pub fn divisor(&self) -> f64 {
        self.run().divisor
    }

    /// How the release follows from public parameters.
    pub fn derivation(&self) -> &Bst14Derivation {
        &self.derivation
    }

    /// The Lipschitz constant that its step sizes rest on.
    #[cfg(feature = "audit")]
    pub(crate) fn lipschitz(&self) -> Result<f64, Error> {
        self.derivation.recipe.lipschitz()
    }

    /// What it consists of.
    #[cfg(feature = "audit")]
    pub(crate) fn planned(&self) -> &NoisyPlan {
        &self.planned
    }

    fn run(&self) -> &NoisyRun {
        &self.planned.run
    }

    /// Trains on `source` and releases the model.
    ///
    /// # Privacy
    /// The source must keep the bounds on rows and targets that its description states
    /// ([`MemorySource`](crate::MemorySource) enforces them) and deliver the same records in every step. Batches and
    /// noise are drawn from `rng`, each from a key of its own; a generator that is not secret marks the result as not
    /// private.
    ///
    /// # Errors
    /// A source of another shape or with wider bounds than planned or that fails, [`Error::Interrupted`], a
    /// floating-point type other than planned. Nothing has been released then.
    pub fn train<F: Real>(
        &self,
        source: &mut dyn SampleSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A>, Error> {
        self.planned.train(Derivation::Bst14(self.derivation.clone()), source, &mut rng.lend(), control)
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    fn promise(&self) -> &Promise {
        &self.planned.promise
    }

    fn derivation(&self) -> Derivation {
        Derivation::Bst14(self.derivation.clone())
    }

    fn summary(&self) -> Summary {
        self.planned.summary()
    }

    fn train<F: Real>(
        &self,
        source: &mut dyn SampleSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A>, Error> {
        self.train(source, rng, control)
    }
}
