//! What calibration finds: the regulariser and the noises.

use dp_accountant::{AdjacencyKind, Delta, DpEvent, ZeroOut};

use super::objective::{Certification, Objective};
use super::{ObjPert, Part, RECIPE};
use crate::error::Error;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::problem::Problem;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, least_scale};

/// A centre with noise of this many times that of a single release is none.
const MOST_NOISE_OF_MOMENTS: f64 = 1000.0;

/// By what shares the noise is raised until its event, with numbers rounded to the units of the data, keeps the promise.
const MORE_NOISE: [f64; 3] = [1e-12, 1e-10, 1e-8];

/// What calibration found: the regulariser and the noises.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Perturbation {
    /// Λ: coefficient of `‖w - c‖²/2` in the sum over records.
    pub regularization: f64,
    /// The noise in the linear term: the law and scale of `b`.
    pub noise: NoiseScale,
    /// The noise on the minimiser.
    pub release: NoiseScale,
    /// The noise on the moments from which the centre `c` is solved; without them it is 0.
    pub centre: Option<NoiseScale>,
    /// How the released point was certified to be near the minimiser.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Certification::is_plain"))]
    pub certification: Certification,
}

impl Perturbation {
    /// With the least noise, or as much as a paper prescribes, with which `copies` releases stay within the budget.
    pub(super) fn calibrated(recipe: &ObjPert, problem: &Problem, budget: Budget, copies: u64) -> Result<Self, Error> {
        let Problem { n, relation, .. } = *problem;
        let part = Part::of(recipe, problem, budget, copies)?;
        let noise_of_one = part.multiplier;
        let unit = NoiseScale::new(part.pure, 1.0);
        let asked = match recipe.lambda {
            Some(lambda) => lambda * n as f64,
            None => part.regularization(recipe, problem)?,
        };
        let published = part.published(recipe, asked, budget, relation, copies)?;
        let unit_row = recipe.row_norm * recipe.row_norm;
        let regularization = published.map_or(asked, |published| (published.regularization * unit_row).max(asked));
        let mut centre = match recipe.centre_share {
            0.0 => None,
            share => Some(unit.with_scale(part.of_moments(share) * recipe.stage(problem).sensitivity::<ZeroOut>()?)),
        };
        // One release that needs no delta promises none.
        let delta = if part.pure && copies == 1 { Delta::ZERO } else { budget.delta };
        let budget_of_calibration = Budget { delta, ..budget };
        let mut found = loop {
            let at = |scale: f64| {
                let noise = unit.with_scale(scale);
                let certification = Certification::Compensated;
                Self { regularization, noise, release: noise, centre, certification }
            };
            at(1.0).event_in_units(recipe, problem)?;
            // What cannot be stated protects nothing.
            let event_at = |scale| at(scale).event_in_units(recipe, problem).unwrap_or(DpEvent::NonPrivate);
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
        found.noise = at_least(found.noise, of_linear);
        let tolerance = found.objective(recipe, problem).tolerance()?;
        let of_release =
            published.and_then(|published| published.release).map(|multiplier| 2.0 * tolerance * multiplier);
        let least = found.noise;
        let mut more = MORE_NOISE.into_iter();
        loop {
            found.release = at_least(found.objective(recipe, problem).release_noise()?, of_release);
            match (Promise::new(found.event(recipe, problem)?, budget, copies), more.next()) {
                (Ok(_), _) => return Ok(found),
                // Rounded to the release's units, the noise costs a hair more than what it was calibrated by.
                (Err(_), Some(more)) => found.noise = least.with_scale(least.scale() * (1.0 + more)),
                (Err(error), None) => return Err(error),
            }
        }
    }

    /// The objective, as public numbers.
    pub(super) fn objective<'o>(&self, recipe: &'o ObjPert, problem: &'o Problem) -> Objective<'o> {
        let Self { regularization, noise, certification, .. } = *self;
        Objective { recipe, problem, regularization, noise, centred: self.centre.is_some(), certification }
    }

    /// The event of a release.
    pub(super) fn event(&self, recipe: &ObjPert, problem: &Problem) -> Result<DpEvent, Error> {
        if self.centre.is_some() != (recipe.centre_share > 0.0) {
            return Err(Error::NotProved { recipe: RECIPE, why: "there is noise on a centre where there is a centre" });
        }
        self.event_of(recipe, problem, self.objective(recipe, problem).events(self.release)?)
    }

    /// The event with noise on the minimiser in units of its sensitivity, for calibration.
    fn event_in_units(&self, recipe: &ObjPert, problem: &Problem) -> Result<DpEvent, Error> {
        self.event_of(recipe, problem, self.objective(recipe, problem).events_in_units()?)
    }

    /// The event of a release: composed of the centre's and of `events`, of the exact minimiser's and of the noise that hides
    /// how that was approached.
    fn event_of(&self, recipe: &ObjPert, problem: &Problem, events: [DpEvent; 2]) -> Result<DpEvent, Error> {
        let stage = recipe.stage(problem);
        let of_centre = |noise: NoiseScale| -> Result<DpEvent, Error> {
            noise.check()?;
            Ok(noise.plain_event(stage.sensitivity::<ZeroOut>()?, stage.moments()))
        };
        let centre = self.centre.map(of_centre).transpose()?;
        let all = DpEvent::Composed { events: centre.into_iter().chain(events).collect() };
        Ok(under_relation(problem.relation, all))
    }
}

/// The noise, or as much of the same law as a paper prescribes where that is more.
fn at_least(noise: NoiseScale, published: Option<f64>) -> NoiseScale {
    noise.with_scale(published.unwrap_or(0.0).max(noise.scale()))
}

/// The event under this relation of one of a record's presence: a replacement takes one record out and puts another in.
pub(in crate::recipes) fn under_relation(relation: AdjacencyKind, event: DpEvent) -> DpEvent {
    if relation == AdjacencyKind::ZeroOut { event } else { DpEvent::AddRemoveTwice { event: Box::new(event) } }
}
