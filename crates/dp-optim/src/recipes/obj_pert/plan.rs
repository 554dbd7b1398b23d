//! Objective perturbation with everything derived that does not need data, and the training that follows it.

use core::marker::PhantomData;

use dp_accountant::{AdjacencyKind, Delta, DpEvent, Epsilon, EventLog, MarginLoss, ZeroOut, gaussian};
use dp_data::{Block, Order, PassSource, SampleSource};
use dp_losses::{Model, ModelVisitor, Real, ScaledSteps};
use dp_mechanisms::grid::MAX_BITS;
use dp_mechanisms::{Bounded, L2Sensitivity, ReleaseRng};
use nalgebra::convert;

use super::published::{Published, published};
use super::{ObjPert, ObjPertDerivation, RECIPE};
use crate::derivation::Derivation;
use crate::engine::{Control, RowBatches, minimise, project};
use crate::error::Error;
use crate::float::FloatKind;
use crate::recipes::bolt_on::OutputNoise;
use crate::recipes::linear::size;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Expected, Planned, RecordAdjacency, Summary, least_scale};
use crate::trained::Trained;

/// A centre with noise of this many times that of a single release is none.
const MOST_NOISE_OF_MOMENTS: f64 = 1000.0;
/// Λ over `n q^{3/2}`: what served best at small budgets.
const BALANCE: f64 = 0.3;
/// The same around a centre.
const CENTRED_BALANCE: f64 = 0.35;

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
        let part = Part::of(recipe, dim, budget, A::KIND, copies)?;
        let noise_of_one = part.multiplier;
        let unit = NoiseScale::new(part.pure, 1.0);
        let asked = match recipe.lambda {
            Some(lambda) => lambda * n as f64,
            None => part.regularization(recipe, n, dim)?,
        };
        let published = part.published(recipe, asked, budget, A::KIND, copies)?;
        let unit_row = recipe.row_norm * recipe.row_norm;
        let regularization = published.map_or(asked, |published| (published.regularization * unit_row).max(asked));
        let mut centre = match recipe.centre_share {
            0.0 => None,
            share => Some(unit.with_scale(part.of_moments(share) * recipe.stage(n, dim).sensitivity::<ZeroOut>()?)),
        };
        // One release that needs no delta promises none.
        let delta = if part.pure && copies == 1 { Delta::ZERO } else { budget.delta };
        let budget_of_calibration = Budget { delta, ..budget };
        let mut derivation = loop {
            let at = |scale: f64| {
                let noise = unit.with_scale(scale);
                let recipe = recipe.clone();
                ObjPertDerivation { recipe, relation: A::KIND, n, dim, regularization, noise, release: noise, centre }
            };
            at(1.0).event_in_units()?;
            // What cannot be stated protects nothing.
            let event_at = |scale| at(scale).event_in_units().unwrap_or(DpEvent::NonPrivate);
            match (least_scale(budget_of_calibration, copies, event_at), centre) {
                (Ok(scale), _) => break at(scale),
                // The centre alone is more than the bounds of compositions allow: less of it.
                (Err(_), Some(noise)) if noise.scale() < MOST_NOISE_OF_MOMENTS * noise_of_one => {
                    centre = Some(noise.with_scale(2.0 * noise.scale()));
                }
                (Err(error), _) => return Err(error),
            }
        };
        derivation.noise =
            Self::at_least(derivation.noise, published.map(|published| published.noise.scale() * recipe.row_norm));
        let tolerance = derivation.tolerance()?;
        let of_release =
            published.and_then(|published| published.release).map(|multiplier| 2.0 * tolerance * multiplier);
        derivation.release = Self::at_least(derivation.release_noise()?, of_release);
        let promise = Promise::new(dp_accountant::certificate::Derivation::event(&derivation)?, budget, copies)?;
        Ok(Self { derivation, tolerance, promise, relation: PhantomData })
    }

    /// The noise, or as much of the same law as a paper prescribes where that is more.
    fn at_least(noise: NoiseScale, published: Option<f64>) -> NoiseScale {
        noise.with_scale(published.unwrap_or(0.0).max(noise.scale()))
    }

    /// Λ: coefficient of `‖w - c‖²/2` in the sum over records.
    pub fn regularization(&self) -> f64 {
        self.derivation.regularization
    }

    /// The noise in the linear term: the law and scale of `b`.
    pub fn noise(&self) -> NoiseScale {
        self.derivation.noise
    }

    /// τ: how near the minimiser a point is certified to be before it is released.
    pub fn tolerance(&self) -> f64 {
        self.tolerance
    }

    /// The noise on the minimiser.
    pub fn release_noise(&self) -> NoiseScale {
        self.derivation.release
    }

    /// The noise on the moments from which the centre is solved, if there is one.
    pub fn centre_noise(&self) -> Option<NoiseScale> {
        self.derivation.centre
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
        let ObjPertDerivation { recipe, n, dim, noise, release, .. } = &self.derivation;
        let (row_norm, target_bound, mode) = (recipe.row_norm, recipe.target_bound, recipe.noise_mode);
        Expected { n: *n, dim: *dim, row_norm, target_bound }.check(&source.describe()?)?;
        control.check()?;
        // What the releases cost together is the event's to say.
        let mut unsaid = EventLog::<ZeroOut>::new();
        let centre = self.centre::<F>(source, &mut unsaid, rng, control)?;
        // The linear term is a release of nothing: of zeros, under noise.
        let parameters = recipe.loss.parameters(*dim);
        let of_gradient = L2Sensitivity::<ZeroOut>::new(row_norm)?;
        let zeros = Bounded::with_proven_sensitivity(vec![0.0f64; size("dimension", parameters)?], of_gradient);
        let noise = noise.release(zeros, parameters, mode, Some(MAX_BITS), &mut unsaid, rng)?;
        let weights = self.minimiser::<F>(source, noise.get(), &centre, control)?;
        source.finish()?;
        let apart = L2Sensitivity::<ZeroOut>::new(2.0 * self.tolerance)?;
        let weights = Bounded::with_proven_sensitivity(weights, apart);
        let weights = release.release(weights, parameters, mode, None, &mut unsaid, rng)?;
        let mut log = EventLog::<A>::new();
        log.record(self.promise.event().clone(), 1);
        if !unsaid.is_private() {
            log.mark_not_private();
        }
        unsaid.assumptions().iter().for_each(|assumption| log.assume(assumption.clone()));
        Ok(self.promise.kept(weights, log, Derivation::ObjPert(self.derivation.clone()), mode))
    }

    /// The centre: released least squares within its ball, or the origin.
    fn centre<F: Real>(
        &self,
        source: &mut dyn PassSource<F>,
        log: &mut EventLog<ZeroOut>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Vec<f64>, Error> {
        let ObjPertDerivation { recipe, n, dim, centre, .. } = &self.derivation;
        let Some(noise) = *centre else {
            return Ok(vec![0.0; size("dimension", recipe.loss.parameters(*dim))?]);
        };
        let stage = recipe.stage(*n, *dim);
        let moments = stage.moments_released::<F, ZeroOut>(noise, recipe.noise_mode, source, log, rng, control)?;
        let mut centre = stage.solve(moments, noise, 0.0)?.into_inner();
        project(&mut centre, self.derivation.centre_radius() * (1.0 - 1e-12));
        Ok(centre)
    }

    /// A point within the tolerance of the minimiser of the objective with the linear term `⟨noise - Λ centre, w⟩` in the sum
    /// over records, looked for from the centre: as private as the data.
    pub(crate) fn minimiser<F: Real>(
        &self,
        source: &mut dyn PassSource<F>,
        noise: &[f64],
        centre: &[f64],
        control: &mut Control<'_>,
    ) -> Result<Vec<F>, Error> {
        let ObjPertDerivation { recipe, n, dim, regularization, .. } = &self.derivation;
        let n = *n as f64;
        let norm = |vector: &[f64]| vector.iter().fold(0.0f64, |norm, entry| norm.hypot(*entry)) * (1.0 + 1e-12);
        // Of the terms, not of their sum: what rounds is each of them.
        let largest = (norm(noise) + regularization * norm(centre)) / n;
        let certificate = minimise::Certificate::new(&self.derivation.risk(largest)?, self.tolerance)?;
        let linear: Vec<F> = noise.iter().zip(centre).map(|(b, c)| convert((b - regularization * c) / n)).collect();
        let start = centre.iter().map(|&weight| convert(weight)).collect();
        let visitor = Minimise { source, linear: &linear, start, certificate: &certificate, control };
        recipe.loss.visit_model(size("dimension", *dim)?, visitor)
    }
}

/// What one of the copies may cost of a record's presence, for what is recommended: that it is enough is the
/// calibration's to see to.
struct Part {
    epsilon: Epsilon,
    /// The noise multiplier of a Gaussian release at that cost, or the inverse of epsilon.
    multiplier: f64,
    pure: bool,
    /// Whether others are composed with it.
    composed: bool,
}

impl Part {
    /// Under the law that was chosen: by default the one with less noise, and around a centre the Gaussian, which the centre
    /// needs.
    fn of(recipe: &ObjPert, dim: u64, budget: Budget, relation: AdjacencyKind, copies: u64) -> Result<Self, Error> {
        let under = |pure| Self::new(pure, budget, relation, copies);
        if !recipe.calibration.is_exact() {
            return under(recipe.calibration.is_pure());
        }
        match recipe.law {
            OutputNoise::LaplaceBall => under(true),
            OutputNoise::Gaussian => under(false),
            OutputNoise::Least if !(budget.delta.get() > 0.0) => under(true),
            OutputNoise::Least if recipe.centre_share > 0.0 => under(false),
            OutputNoise::Least => {
                let (ball, gaussian) = (under(true)?, under(false)?);
                let parameters = recipe.loss.parameters(dim);
                Ok(if ball.length(parameters) < gaussian.length(parameters) { ball } else { gaussian })
            }
        }
    }

    fn new(pure: bool, budget: Budget, relation: AdjacencyKind, copies: u64) -> Result<Self, Error> {
        if !pure && !(budget.delta.get() > 0.0) {
            return Err(Error::NotProved { recipe: RECIPE, why: "Gaussian noise needs delta > 0" });
        }
        let twice = relation == AdjacencyKind::ReplaceOne;
        let copies = if pure { copies as f64 } else { (copies as f64).sqrt() };
        let epsilon = Epsilon::new(budget.epsilon.get() / copies / if twice { 2.0 } else { 1.0 })?;
        let multiplier = if pure {
            epsilon.get().recip()
        } else {
            let delta = if twice { budget.delta.get() / (1.0 + epsilon.get().exp()) } else { budget.delta.get() };
            gaussian::noise_multiplier(epsilon, Delta::new(delta)?)?.get()
        };
        Ok(Self { epsilon, multiplier, pure, composed: copies > 1.0 })
    }

    /// What a paper prescribes, if one was asked: each copy has its part of the budget.
    fn published(
        &self,
        recipe: &ObjPert,
        regularization: f64,
        budget: Budget,
        relation: AdjacencyKind,
        copies: u64,
    ) -> Result<Option<Published>, Error> {
        if recipe.calibration.is_exact() {
            return Ok(None);
        }
        let copies = copies as f64;
        let of_one = Budget {
            epsilon: Epsilon::new(budget.epsilon.get() / copies)?,
            delta: Delta::new(budget.delta.get() / copies)?,
        };
        let in_units = regularization / (recipe.row_norm * recipe.row_norm);
        published(recipe.calibration, recipe.margin_loss()?, in_units, of_one, relation).map(Some)
    }

    /// The noise multiplier of the moments at this share of the cost: of the squares of multipliers' inverses, or of
    /// epsilon.
    fn of_moments(&self, share: f64) -> f64 {
        self.multiplier / if self.pure { share } else { share.sqrt() }
    }

    /// The root of the mean squared norm of the noise on a gradient of that many parameters.
    fn length(&self, parameters: u64) -> f64 {
        NoiseScale::new(self.pure, self.multiplier).coordinate_std_dev(parameters) * (parameters as f64).sqrt()
    }

    /// Λ from public numbers.
    fn regularization(&self, recipe: &ObjPert, n: u64, dim: u64) -> Result<f64, Error> {
        let loss = recipe.margin_loss()?;
        let of_gradient = if matches!(loss, MarginLoss::Softmax { .. }) { core::f64::consts::SQRT_2 } else { 1.0 };
        let noise = of_gradient * self.length(recipe.loss.parameters(dim)) / n as f64;
        let centred = recipe.centre_share > 0.0;
        let least = match loss {
            // At half of 1/ε the noise is a seventh more, and the model better.
            MarginLoss::Logistic if self.pure => 0.5 - recipe.centre_share,
            // Composed releases are charged for both directions at once, which is dear below this.
            MarginLoss::Logistic if self.composed => 3.0,
            MarginLoss::Logistic => {
                if centred {
                    0.8
                } else {
                    0.7
                }
            }
            MarginLoss::HuberSvm { width } => 5.0 / width,
            MarginLoss::BoundedSlope { curvature, .. } => 10.0 * curvature,
            MarginLoss::Softmax { classes } => 10.0 * (1.0 - f64::from(classes).recip()),
            _ => 10.0,
        };
        let balance = if centred { CENTRED_BALANCE } else { BALANCE };
        let in_units = (balance * n as f64 * noise.powf(1.5)).max(least / self.epsilon.get());
        Ok(in_units * recipe.row_norm * recipe.row_norm)
    }
}

/// Receives the model as a type.
struct Minimise<'t, 'c, 'd, F> {
    source: &'t mut dyn PassSource<F>,
    linear: &'t [F],
    start: Vec<F>,
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
        minimise::certified(&model, &mut batches, self.start, self.linear, self.certificate, self.control)
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
        let ObjPertDerivation { recipe, n, dim, regularization, noise, centre, .. } = &self.derivation;
        let of_a_coordinate = noise.coordinate_std_dev(recipe.loss.parameters(*dim));
        Summary {
            sensitivity: Some(recipe.row_norm),
            rows: *n,
            text: format!(
                "linear term of standard deviation {of_a_coordinate:.4}, lambda {:.4e} around {}, minimiser certified to \
                 within {:.1e}",
                regularization / *n as f64,
                if centre.is_some() { "least squares on noisy moments" } else { "0" },
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
