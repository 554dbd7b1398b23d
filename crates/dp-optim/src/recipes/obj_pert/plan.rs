//! Objective perturbation with everything derived that does not need data, and the training that follows it.

use core::marker::PhantomData;

use dp_accountant::{AdjacencyKind, DpEvent, Epsilon, EventLog, MarginLoss, ZeroOut, gaussian};
use dp_data::{Block, Order, PassSource, SampleSource};
use dp_losses::{Model, ModelVisitor, Real, ScaledSteps};
use dp_mechanisms::grid::MAX_BITS;
use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, Mechanism, ReleaseRng};
use nalgebra::convert;

use super::{ObjPert, ObjPertDerivation, RECIPE};
use crate::derivation::Derivation;
use crate::engine::{Control, RowBatches, minimise};
use crate::error::Error;
use crate::float::FloatKind;
use crate::recipes::linear::size;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Expected, Planned, RecordAdjacency, Summary, least_scale};
use crate::trained::Trained;

/// A release by objective perturbation, planned: noise, event and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: ObjPertDerivation,
    tolerance: f64,
    promise: Promise,
    relation: PhantomData<A>,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(super) fn new(recipe: &ObjPert, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        recipe.check(n, dim)?;
        if !(budget.delta.get() > 0.0) {
            return Err(Error::NotProved { recipe: RECIPE, why: "Gaussian noise needs delta > 0" });
        }
        let regularization = match recipe.lambda {
            Some(lambda) => lambda * n as f64,
            None => recommended(recipe, n, dim, budget, A::KIND, copies)?,
        };
        let event_at = |std_dev| {
            let release = ObjPertDerivation::release_of(recipe, std_dev);
            // What cannot be stated protects nothing.
            ObjPertDerivation::event_of(recipe, A::KIND, regularization, std_dev, release)
                .unwrap_or(DpEvent::NonPrivate)
        };
        recipe.margin_loss()?;
        let std_dev = least_scale(budget, copies, event_at)?;
        let mut derivation = ObjPertDerivation {
            recipe: recipe.clone(),
            relation: A::KIND,
            n,
            dim,
            regularization,
            std_dev,
            release_std_dev: 0.0,
        };
        derivation.release_std_dev = derivation.release_std_dev()?;
        let tolerance = derivation.tolerance()?;
        let promise = Promise::new(dp_accountant::certificate::Derivation::event(&derivation)?, budget, copies)?;
        Ok(Self { derivation, tolerance, promise, relation: PhantomData })
    }

    /// Λ: coefficient of `‖w‖²/2` in the sum over records.
    pub fn regularization(&self) -> f64 {
        self.derivation.regularization
    }

    /// σ: standard deviation of each coordinate of the linear term.
    pub fn std_dev(&self) -> f64 {
        self.derivation.std_dev
    }

    /// τ: how near the minimiser a point is certified to be before it is released.
    pub fn tolerance(&self) -> f64 {
        self.tolerance
    }

    /// s: standard deviation of the noise on the minimiser.
    pub fn release_std_dev(&self) -> f64 {
        self.derivation.release_std_dev
    }

    /// How the release follows from public parameters.
    pub fn derivation(&self) -> &ObjPertDerivation {
        &self.derivation
    }

    /// Trains on `source` and releases the model.
    ///
    /// # Privacy
    /// As [`Planned::train`].
    ///
    /// # Errors
    /// A source of another shape or with wider bounds than planned or that fails, [`Error::Interrupted`], single
    /// precision, and noise so long that rounding could not be told from it, which depends on no record and has
    /// probability below `e^-32`. Nothing has been released then.
    pub fn train<F: Real>(
        &self,
        source: &mut dyn PassSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A>, Error> {
        FloatKind::F64.expect::<F>()?;
        let ObjPertDerivation { recipe, n, dim, std_dev, release_std_dev, .. } = &self.derivation;
        let (row_norm, target_bound) = (recipe.row_norm, recipe.target_bound);
        Expected { n: *n, dim: *dim, row_norm, target_bound }.check(&source.describe()?)?;
        control.check()?;
        // The linear term is a release of nothing: of zeros, under noise. What it costs is the event's to say.
        let mut unsaid = EventLog::<ZeroOut>::new();
        let of_gradient = L2Sensitivity::<ZeroOut>::new(row_norm)?;
        let zeros = Bounded::with_proven_sensitivity(vec![0.0f64; size("dimension", *dim)?], of_gradient);
        let perturbation = Gaussian::from_std_dev(of_gradient, *std_dev)?.with_grid_bits(MAX_BITS)?;
        let noise = perturbation.with_noise_mode(recipe.noise_mode)?.release(zeros, &mut unsaid, rng)?;
        let weights = self.minimiser::<F>(source, noise.get(), control)?;
        source.finish()?;
        let apart = L2Sensitivity::<ZeroOut>::new(2.0 * self.tolerance)?;
        let release = Gaussian::from_std_dev(apart, *release_std_dev)?.with_noise_mode(recipe.noise_mode)?;
        let weights = release.release(Bounded::with_proven_sensitivity(weights, apart), &mut unsaid, rng)?;
        let mut log = EventLog::<A>::new();
        log.record(self.promise.event().clone(), 1);
        if !unsaid.is_private() {
            log.mark_not_private();
        }
        unsaid.assumptions().iter().for_each(|assumption| log.assume(assumption.clone()));
        Ok(self.promise.kept(weights, log, Derivation::ObjPert(self.derivation.clone()), recipe.noise_mode))
    }

    /// A point within the tolerance of the minimiser of the objective with this linear term (in the sum over records): as
    /// private as the data.
    pub(crate) fn minimiser<F: Real>(
        &self,
        source: &mut dyn PassSource<F>,
        linear: &[f64],
        control: &mut Control<'_>,
    ) -> Result<Vec<F>, Error> {
        let n = self.derivation.n as f64;
        let linear: Vec<f64> = linear.iter().map(|b| b / n).collect();
        let norm = linear.iter().fold(0.0f64, |norm, b| norm.hypot(*b)) * (1.0 + 1e-12);
        let certificate = minimise::Certificate::new(&self.derivation.risk(norm)?, self.tolerance)?;
        let linear: Vec<F> = linear.into_iter().map(convert).collect();
        let visitor = Minimise { source, linear: &linear, certificate: &certificate, control };
        self.derivation.recipe.loss.visit_model(size("dimension", self.derivation.dim)?, visitor)
    }
}

/// Λ from public numbers.
fn recommended(
    recipe: &ObjPert,
    n: u64,
    dim: u64,
    budget: Budget,
    relation: AdjacencyKind,
    copies: u64,
) -> Result<f64, Error> {
    // Of one of so many releases of a record's presence.
    let shares = (copies as f64).sqrt() * if relation == AdjacencyKind::ReplaceOne { 2.0 } else { 1.0 };
    let epsilon = Epsilon::new(budget.epsilon.get() / shares)?;
    let multiplier = gaussian::noise_multiplier(epsilon, budget.delta)?.get();
    let (n, dim) = (n as f64, dim as f64);
    let noise = multiplier * dim.sqrt() / n;
    let least = match recipe.margin_loss()? {
        // Composed releases are charged for both directions at once, which is dear below this.
        MarginLoss::Logistic => {
            if copies > 1 {
                3.0
            } else {
                0.7
            }
        }
        MarginLoss::HuberSvm { width } => 5.0 / width,
        MarginLoss::BoundedSlope { curvature, .. } => 10.0 * curvature,
        _ => 10.0,
    };
    let in_units = (0.3 * n * noise.powf(1.5)).max(least / epsilon.get());
    Ok(in_units * recipe.row_norm * recipe.row_norm)
}

/// Receives the model as a type.
struct Minimise<'t, 'c, 'd, F> {
    source: &'t mut dyn PassSource<F>,
    linear: &'t [F],
    certificate: &'t minimise::Certificate,
    control: &'c mut Control<'d>,
}

impl<F: Real> ModelVisitor<F> for Minimise<'_, '_, '_, F> {
    type Output = Result<Vec<F>, Error>;

    fn visit<M>(self, model: M) -> Self::Output
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        let mut batches = RowBatches::new(self.source, Order::Declared);
        let start = vec![F::zero(); model.parameters()];
        minimise::certified(&model, &mut batches, start, self.linear, self.certificate, self.control)
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> Derivation {
        Derivation::ObjPert(self.derivation.clone())
    }

    fn summary(&self) -> Summary {
        let ObjPertDerivation { recipe, n, regularization, std_dev, .. } = &self.derivation;
        Summary {
            sensitivity: Some(recipe.row_norm),
            rows: *n,
            text: format!(
                "linear term of standard deviation {std_dev:.4}, lambda {:.4e}, minimiser certified to within {:.1e}",
                regularization / *n as f64,
                self.tolerance
            ),
        }
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
