//! ADMM by objective perturbation: the run, with all numbers that do not depend on data, and its training.

use dp_accountant::{Delta, DpEvent, EventLog, ZeroOut};
use dp_losses::Real;
use dp_mechanisms::{LentRng, Prepaid, Released};

use super::AdmmObjPert;
use crate::engine::{AdmmOutput, Control, LinearisedAdmm, UpdateRule, project};
use crate::error::{Error, positive};
use crate::recipes::algorithm::Run;
use crate::recipes::linear::size;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::obj_pert::{Certification, ObjPert, Objective, Part, RELEASES, under_relation};
use crate::recipes::problem::{Admitted, Problem};
use crate::recipes::recipe::{Budget, RecordAdjacency, Summary, least_scale, repeated};

/// Minimum of the fraction ρ/(λ + ρ) for the recommended ρ.
const LEAST_SHARE: f64 = 0.1;

/// The result of calibration: ρ and the noise of each iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct AdmmPerturbation {
    /// ρ of the run.
    pub rho: f64,
    /// The noise in each linear term: the law and scale of `b`.
    pub noise: NoiseScale,
    /// The noise on each minimiser.
    pub release: NoiseScale,
    /// The certification of the released point.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Certification::is_plain"))]
    pub certification: Certification,
}

/// A run of ADMM by objective perturbation.
#[derive(Debug, Clone, PartialEq)]
pub struct AdmmObjPertRun {
    recipe: AdmmObjPert,
    /// The recipe of each iteration's objective.
    each: ObjPert,
    problem: Problem,
    found: AdmmPerturbation,
}

impl AdmmObjPertRun {
    /// Calibrates the least noise with which `copies` trainings stay within the budget.
    pub(super) fn calibrated(
        recipe: &AdmmObjPert,
        problem: &Problem,
        budget: Budget,
        copies: u64,
    ) -> Result<Self, Error> {
        recipe.check()?;
        let each = recipe.each();
        let all = copies.checked_mul(recipe.iterations).ok_or(Error::Count {
            name: "copies",
            value: copies,
            range: "such that copies times steps stays below 2^64",
        })?;
        let part = Part::of(&each, problem, budget, all)?;
        let rho = match recipe.rho {
            Some(rho) => positive("rho", rho)?,
            None => {
                let whole = part.regularization(&each, problem)? / problem.n as f64;
                (whole - recipe.lambda).max(LEAST_SHARE * whole)
            }
        };
        let unit = NoiseScale::new(part.pure, 1.0);
        // A single release that needs no delta promises delta = 0.
        let delta = if part.pure && copies == 1 { Delta::ZERO } else { budget.delta };
        let at = |scale: f64| {
            let noise = unit.with_scale(scale);
            AdmmPerturbation { rho, noise, release: noise, certification: Certification::Compensated }
        };
        let mut run = Self::new(recipe, problem, at(1.0))?;
        run.event_in_units()?;
        // Invalid events count as non-private.
        let event_at = |scale| Self { found: at(scale), ..run.clone() }.event_in_units().unwrap_or(DpEvent::NonPrivate);
        run.found = at(least_scale(Budget { delta, ..budget }, copies, event_at)?);
        run.found.release = run.objective().release_noise()?;
        Ok(run)
    }

    /// Creates the run with this ρ and this noise.
    pub(super) fn new(recipe: &AdmmObjPert, problem: &Problem, found: AdmmPerturbation) -> Result<Self, Error> {
        recipe.check()?;
        recipe.map(problem.dim, positive("rho", found.rho)?)?;
        Ok(Self { recipe: recipe.clone(), each: recipe.each(), problem: *problem, found })
    }

    pub(super) fn found(&self) -> AdmmPerturbation {
        self.found
    }

    /// Returns ρ.
    pub fn rho(&self) -> f64 {
        self.found.rho
    }

    /// Returns Λ, the coefficient of `‖x - c‖²/2` in the sum over records.
    pub fn regularization(&self) -> f64 {
        self.problem.n as f64 * (self.found.rho + self.recipe.lambda)
    }

    /// Returns the noise in each linear term: the law and scale of `b`.
    pub fn noise(&self) -> NoiseScale {
        self.found.noise
    }

    /// Returns the noise on each minimiser.
    pub fn release_noise(&self) -> NoiseScale {
        self.found.release
    }

    fn objective(&self) -> Objective<'_> {
        let Self { each: recipe, problem, found: AdmmPerturbation { noise, certification, .. }, .. } = self;
        let (regularization, centred) = (self.regularization(), true);
        Objective { recipe, problem, regularization, noise: *noise, centred, certification: *certification }
    }

    /// Returns the event of all iterations, given the two events of one.
    fn event_of(&self, events: [DpEvent; 2]) -> DpEvent {
        let each = DpEvent::Composed { events: events.into() };
        under_relation(self.problem.relation, repeated(each, self.recipe.iterations))
    }

    /// Returns the event with noise on the minimisers in units of their sensitivity, for calibration.
    fn event_in_units(&self) -> Result<DpEvent, Error> {
        Ok(self.event_of(self.objective().events_in_units()?))
    }
}

impl Run for AdmmObjPertRun {
    fn event(&self) -> Result<DpEvent, Error> {
        Ok(self.event_of(self.objective().events(self.found.release)?))
    }

    fn summary(&self) -> Summary {
        let Self { recipe, problem, found: AdmmPerturbation { rho, noise, .. }, .. } = self;
        let of_a_coordinate = noise.coordinate_std_dev(problem.parameters());
        let copy = match recipe.output {
            AdmmOutput::Sparse => "sparse",
            AdmmOutput::Smooth => "smooth",
        };
        Summary {
            sensitivity: Some(recipe.row_norm),
            rows: problem.n.saturating_mul(recipe.iterations),
            text: format!(
                "{} perturbed minimisers, linear terms of standard deviation {of_a_coordinate:.4}, rho {rho:.4e}, lambda \
                 {:e}, penalty {}, the {copy} copy released",
                recipe.iterations, recipe.lambda, recipe.penalty
            ),
        }
    }

    /// Fails for noise too long to certify rounding errors, independently of the records, with probability below `e^-32` in
    /// each iteration.
    fn train<F: Real, A: RecordAdjacency>(
        &self,
        rows: Admitted<'_, F, A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let source = rows.into_source();
        let Self { recipe, problem, found: AdmmPerturbation { rho, release, .. }, .. } = self;
        let objective = self.objective();
        let within = objective.centre_radius() * (1.0 - 1e-12);
        let parameters = size("dimension", problem.parameters())?;
        let mut split =
            LinearisedAdmm::new(*rho, recipe.map(problem.dim, *rho)?, recipe.output, &vec![0.0; parameters]);
        let mut iterations = Prepaid::<ZeroOut>::new(self.event()?);
        let mut released = None;
        for _ in 0..recipe.iterations {
            control.check()?;
            let pull = |(z, y): (&f64, &f64)| (rho * z - y) / (rho + recipe.lambda);
            let mut centre: Vec<f64> = split.sparse().iter().zip(split.dual()).map(pull).collect();
            project(&mut centre, within);
            let x = objective.release::<F, _>(*release, source, &centre, iterations.log(), rng, control)?;
            released = Some(x.map(|x| {
                let wide: Vec<f64> = x.into_iter().map(|weight| weight.to_subset_unchecked()).collect();
                split.split(&wide);
                split.point(&wide).iter().map(|&weight| nalgebra::convert(weight)).collect()
            }));
        }
        let weights = released.ok_or(Error::Count { name: "steps", value: 0, range: "1 or more" })?;
        Ok(iterations.finish(weights, recipe.iterations.saturating_mul(RELEASES))?)
    }
}
