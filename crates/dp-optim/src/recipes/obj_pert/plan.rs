//! Objective perturbation with everything derived that does not need data, and the training that follows it.

use core::marker::PhantomData;

use dp_accountant::{Delta, DpEvent, EventLog, ZeroOut};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;

use super::{Certification, ObjPert, ObjPertDerivation, Part};
use crate::engine::{Control, project};
use crate::error::Error;
use crate::float::FloatKind;
use crate::recipes::AnyDerivation;
use crate::recipes::linear::size;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Expected, Planned, RecordAdjacency, Summary, least_scale};
use crate::trained::Trained;

/// A centre with noise of this many times that of a single release is none.
const MOST_NOISE_OF_MOMENTS: f64 = 1000.0;
/// A release by objective perturbation, planned: noise, event and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: ObjPertDerivation,
    tolerance: f64,
    promise: Promise,
    relation: PhantomData<A>,
}

/// By what shares the noise is raised until its event, with numbers rounded to the units of the data, keeps the promise.
const MORE_NOISE: [f64; 3] = [1e-12, 1e-10, 1e-8];

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
                ObjPertDerivation {
                    recipe,
                    relation: A::KIND,
                    n,
                    dim,
                    regularization,
                    noise,
                    release: noise,
                    centre,
                    certification: Certification::Compensated,
                }
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
        let of_linear = published.map(|published| published.noise.scale() * recipe.row_norm);
        derivation.noise = Self::at_least(derivation.noise, of_linear);
        let tolerance = derivation.objective().tolerance()?;
        let of_release =
            published.and_then(|published| published.release).map(|multiplier| 2.0 * tolerance * multiplier);
        let least = derivation.noise;
        let mut more = MORE_NOISE.into_iter();
        let promise = loop {
            derivation.release = Self::at_least(derivation.objective().release_noise()?, of_release);
            let event = dp_accountant::certificate::Derivation::event(&derivation)?;
            match (Promise::new(event, budget, copies), more.next()) {
                // Rounded to the release's units, the noise costs a hair more than what it was calibrated by.
                (Err(_), Some(more)) => derivation.noise = least.with_scale(least.scale() * (1.0 + more)),
                (promise, _) => break promise?,
            }
        };
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
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        FloatKind::F64.expect::<F>()?;
        let ObjPertDerivation { recipe, n, dim, release, .. } = &self.derivation;
        let (row_norm, target_bound, mode) = (recipe.row_norm, recipe.target_bound, recipe.noise_mode);
        Expected { n: *n, dim: *dim, row_norm, target_bound }.check(&source.describe()?)?;
        control.check()?;
        // What the releases cost together is the event's to say.
        let mut unsaid = EventLog::<ZeroOut>::new();
        let centre = self.centre::<F>(source, &mut unsaid, rng, control)?;
        let weights =
            self.derivation.objective().release::<F, _>(*release, source, &centre, &mut unsaid, rng, control)?;
        source.finish()?;
        let mut log = EventLog::<A>::new();
        log.record(self.promise.event().clone(), 1);
        if !unsaid.is_private() {
            log.mark_not_private();
        }
        unsaid.assumptions().iter().for_each(|assumption| log.assume(assumption.clone()));
        self.promise.kept(weights, log, AnyDerivation::ObjPert(self.derivation.clone()), mode)
    }

    /// The minimiser for a given linear term, not released.
    #[cfg(any(test, feature = "audit"))]
    pub(crate) fn minimiser<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        noise: &[f64],
        centre: &[f64],
        control: &mut Control<'_>,
    ) -> Result<Vec<F>, Error> {
        self.derivation.objective().minimiser(self.tolerance, source, noise, centre, control)
    }

    /// The centre: released least squares within its ball, or the origin.
    fn centre<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
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
        project(&mut centre, self.derivation.objective().centre_radius() * (1.0 - 1e-12));
        Ok(centre)
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    type Derivation = AnyDerivation;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> AnyDerivation {
        AnyDerivation::ObjPert(self.derivation.clone())
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
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        self.train(source, rng, control)
    }
}
