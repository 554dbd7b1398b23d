//! The plan of any algorithm.

use core::marker::PhantomData;

use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;

use super::algorithm::{Algorithm, Run};
use super::bolt_on::OutputRun;
use super::problem::Problem;
use super::promise::Promise;
use super::recipe::{Budget, Planned, Recipe, RecordAdjacency, Summary, check_copies, memory_of_training};
use crate::derivation::{Derivation, DerivesModel as _};
use crate::engine::Control;
use crate::error::Error;
use crate::trained::Trained;

/// A planned release by the algorithm `R` under the relation `A`: sensitivity, noise, event and guarantee, from public
/// parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<R: Algorithm, A: RecordAdjacency> {
    derivation: Derivation<R>,
    problem: Problem,
    run: R::Run,
    promise: Promise,
    relation: PhantomData<A>,
}

impl<R: Algorithm, A: RecordAdjacency> Plan<R, A> {
    /// Returns the derivation of the release.
    pub fn derivation(&self) -> &Derivation<R> {
        &self.derivation
    }

    /// Returns the public parameters of the plan.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns the resolved run.
    pub fn run(&self) -> &R::Run {
        &self.run
    }

    /// As [`Planned::train`], without the trait in scope.
    ///
    /// # Privacy
    /// As [`Planned::train`].
    ///
    /// # Errors
    /// As [`Planned::train`].
    pub fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, Derivation<R>>, Error> {
        let rows = self.problem.admit::<F, A>(&mut *source)?;
        control.check()?;
        let (weights, log) = self.run.train(rows, &mut rng.lend(), control)?;
        source.finish()?;
        self.promise.kept(weights, log, self.derivation.clone(), self.problem.setting.noise_mode)
    }
}

impl<R: Algorithm> Recipe for R {
    type Plan<A: RecordAdjacency> = Plan<R, A>;

    fn plan_copies<A: RecordAdjacency>(
        &self,
        n: u64,
        dim: u64,
        budget: Budget,
        copies: u64,
    ) -> Result<Plan<R, A>, Error> {
        check_copies(copies)?;
        let problem = Problem::new(self, n, dim, A::KIND)?;
        let (calibrated, run) = self.calibrate(&problem, budget, copies)?;
        let promise = Promise::new(run.event()?, budget, copies)?;
        let derivation = Derivation { recipe: self.clone(), relation: A::KIND, n, dim, calibrated };
        Ok(Plan { derivation, problem, run, promise, relation: PhantomData })
    }

    fn plan_joint<A: RecordAdjacency>(
        &self,
        n: u64,
        dim: u64,
        classes: u32,
        budget: Budget,
        copies: u64,
    ) -> Result<(OutputRun, Derivation<R>), Error> {
        self.calibrate_joint(&Problem::new(self, n, dim, A::KIND)?, classes, budget, copies)
    }
}

impl<R: Algorithm, A: RecordAdjacency> Planned<A> for Plan<R, A> {
    type Derivation = Derivation<R>;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> Derivation<R> {
        self.derivation.clone()
    }

    fn summary(&self) -> Summary {
        self.run.summary()
    }

    fn memory(&self) -> u64 {
        memory_of_training(&self.derivation.model_terms(), self.derivation.records(), self.run.holds_square())
    }

    fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, Derivation<R>>, Error> {
        self.train(source, rng, control)
    }
}
