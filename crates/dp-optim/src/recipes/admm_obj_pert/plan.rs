//! Perturbed ADMM with everything derived that does not need data, and the training that follows it.

use core::marker::PhantomData;

use dp_accountant::certificate::Derivation as _;
use dp_accountant::{Delta, DpEvent, EventLog, ZeroOut};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;

use super::{AdmmObjPert, AdmmObjPertDerivation};
use crate::engine::{AdmmOutput, Control, LinearisedAdmm, UpdateRule, project};
use crate::error::{Error, positive};
use crate::float::FloatKind;
use crate::recipes::AnyDerivation;
use crate::recipes::linear::size;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::obj_pert::{Certification, Part};
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Expected, Planned, RecordAdjacency, Summary, least_scale};
use crate::trained::Trained;

/// The least share of Λ that is ρ's where it is recommended.
const LEAST_SHARE: f64 = 0.1;

/// A release by perturbed ADMM, planned: noise, event and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: AdmmObjPertDerivation,
    promise: Promise,
    relation: PhantomData<A>,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(super) fn new(recipe: &AdmmObjPert, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        recipe.check(n, dim)?;
        let each = recipe.each();
        let all = copies.checked_mul(recipe.iterations).ok_or(Error::Count {
            name: "copies",
            value: copies,
            range: "such that copies times steps stays below 2^64",
        })?;
        let part = Part::of(&each, dim, budget, A::KIND, all)?;
        let rho = match recipe.rho {
            Some(rho) => positive("rho", rho)?,
            None => {
                let whole = part.regularization(&each, n, dim)? / n as f64;
                (whole - recipe.lambda).max(LEAST_SHARE * whole)
            }
        };
        recipe.map(dim, rho)?;
        let unit = NoiseScale::new(part.pure, 1.0);
        // Releases that need no delta promise none.
        let delta = if part.pure && copies == 1 { Delta::ZERO } else { budget.delta };
        let at = |scale: f64| {
            let noise = unit.with_scale(scale);
            AdmmObjPertDerivation {
                recipe: recipe.clone(),
                relation: A::KIND,
                n,
                dim,
                rho,
                noise,
                release: noise,
                certification: Certification::Compensated,
            }
        };
        at(1.0).event_in_units()?;
        // What cannot be stated protects nothing.
        let event_at = |scale| at(scale).event_in_units().unwrap_or(DpEvent::NonPrivate);
        let mut derivation = at(least_scale(Budget { delta, ..budget }, copies, event_at)?);
        derivation.release = derivation.objective(&each).release_noise()?;
        let promise = Promise::new(derivation.event()?, budget, copies)?;
        Ok(Self { derivation, promise, relation: PhantomData })
    }

    /// ρ.
    pub fn rho(&self) -> f64 {
        self.derivation.rho
    }

    /// Λ: coefficient of `‖x - c‖²/2` in the sum over records.
    pub fn regularization(&self) -> f64 {
        self.derivation.regularization()
    }

    /// The noise in each linear term: the law and scale of `b`.
    pub fn noise(&self) -> NoiseScale {
        self.derivation.noise
    }

    /// The noise on each minimiser.
    pub fn release_noise(&self) -> NoiseScale {
        self.derivation.release
    }

    /// How the release follows from public parameters.
    pub fn derivation(&self) -> &AdmmObjPertDerivation {
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
    /// probability below `e^-32` in each iteration. Nothing has been released then.
    pub fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        FloatKind::F64.expect::<F>()?;
        let AdmmObjPertDerivation { recipe, n, dim, rho, release, .. } = &self.derivation;
        let (row_norm, target_bound) = (recipe.row_norm, recipe.target_bound);
        Expected { n: *n, dim: *dim, row_norm, target_bound }.check(&source.describe()?)?;
        let each = recipe.each();
        let objective = self.derivation.objective(&each);
        let within = objective.centre_radius() * (1.0 - 1e-12);
        let parameters = size("dimension", recipe.loss.parameters(*dim))?;
        let mut split = LinearisedAdmm::new(*rho, recipe.map(*dim, *rho)?, recipe.output, &vec![0.0; parameters]);
        // What the releases cost together is the event's to say.
        let mut unsaid = EventLog::<ZeroOut>::new();
        let mut released = None;
        for _ in 0..recipe.iterations {
            control.check()?;
            let pull = |(z, y): (&f64, &f64)| (rho * z - y) / (rho + recipe.lambda);
            let mut centre: Vec<f64> = split.sparse().iter().zip(split.dual()).map(pull).collect();
            project(&mut centre, within);
            let x = objective.release::<F, _>(*release, source, &centre, &mut unsaid, rng, control)?;
            released = Some(x.map(|x| {
                let wide: Vec<f64> = x.into_iter().map(|weight| weight.to_subset_unchecked()).collect();
                split.split(&wide);
                split.point(&wide).iter().map(|&weight| nalgebra::convert(weight)).collect()
            }));
        }
        source.finish()?;
        let none = Error::Count { name: "steps", value: 0, range: "1 or more" };
        let weights = released.ok_or(none)?;
        let mut log = EventLog::<A>::new();
        log.record(self.promise.event().clone(), 1);
        if !unsaid.is_private() {
            log.mark_not_private();
        }
        unsaid.assumptions().iter().for_each(|assumption| log.assume(assumption.clone()));
        self.promise.kept(weights, log, AnyDerivation::AdmmObjPert(self.derivation.clone()), recipe.noise_mode)
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    type Derivation = AnyDerivation;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> AnyDerivation {
        AnyDerivation::AdmmObjPert(self.derivation.clone())
    }

    fn summary(&self) -> Summary {
        let AdmmObjPertDerivation { recipe, n, dim, rho, noise, .. } = &self.derivation;
        let of_a_coordinate = noise.coordinate_std_dev(recipe.loss.parameters(*dim));
        let copy = match recipe.output {
            AdmmOutput::Sparse => "sparse",
            AdmmOutput::Smooth => "smooth",
        };
        Summary {
            sensitivity: Some(recipe.row_norm),
            rows: n.saturating_mul(recipe.iterations),
            text: format!(
                "{} perturbed minimisers, linear terms of standard deviation {of_a_coordinate:.4}, rho {rho:.4e}, lambda \
                 {:e}, penalty {}, the {copy} copy released",
                recipe.iterations, recipe.lambda, recipe.penalty
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
