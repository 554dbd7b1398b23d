//! The calibration: the regulariser and the noises.

use dp_accountant::{AdjacencyKind, Delta, DpEvent, ZeroOut};

use super::objective::{Certification, Objective};
use super::{ObjPert, Part, RECIPE};
use crate::error::Error;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::problem::Problem;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, least_scale};

/// Limit of the noise on a centre, relative to that of a single release, beyond which the centre is useless.
const MOST_NOISE_OF_MOMENTS: f64 = 1000.0;

/// Relative increases of the noise, tried until the event, with numbers rounded to the units of the data, keeps the promise.
const MORE_NOISE: [f64; 3] = [1e-12, 1e-10, 1e-8];

/// The result of calibration: the regulariser, and the noise in the objective, on the minimiser and on the centre.
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
    /// The noise on the moments from which the centre `c` is solved; if `None`, `c` is 0.
    pub centre: Option<NoiseScale>,
    /// The certification of the released point.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Certification::is_plain"))]
    pub certification: Certification,
}

impl Perturbation {
    /// Calibrates the least noise, or that of a paper if larger, with which `copies` releases stay within the budget.
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
        // A single release that needs no delta promises delta = 0.
        let delta = if part.pure && copies == 1 { Delta::ZERO } else { budget.delta };
        let budget_of_calibration = Budget { delta, ..budget };
        let mut found = loop {
            let at = |scale: f64| {
                let noise = unit.with_scale(scale);
                let certification = Certification::Compensated;
                Self { regularization, noise, release: noise, centre, certification }
            };
            at(1.0).event_in_units(recipe, problem)?;
            // Invalid events count as non-private.
            let event_at = |scale| at(scale).event_in_units(recipe, problem).unwrap_or(DpEvent::NonPrivate);
            match (least_scale(budget_of_calibration, copies, event_at), centre) {
                (Ok(scale), _) => break at(scale),
                // The centre alone exceeds the bounds for compositions: add noise to it.
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
                // Rounded to the release's units, the noise costs slightly more than in calibration.
                (Err(_), Some(more)) => found.noise = least.with_scale(least.scale() * (1.0 + more)),
                (Err(error), None) => return Err(error),
            }
        }
    }

    pub(super) fn objective<'o>(&self, recipe: &'o ObjPert, problem: &'o Problem) -> Objective<'o> {
        let Self { regularization, noise, certification, .. } = *self;
        Objective { recipe, problem, regularization, noise, centred: self.centre.is_some(), certification }
    }

    pub(super) fn event(&self, recipe: &ObjPert, problem: &Problem) -> Result<DpEvent, Error> {
        let exact = recipe.calibration.is_exact();
        if self.centre.is_some() != (recipe.centre_share > 0.0) {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "noise on the centre must be given if and only if there is a centre",
            });
        }
        // A published calibration may need more.
        let follows = |given: f64| self.regularization == given || !exact && self.regularization > given;
        if recipe.lambda.is_some_and(|lambda| !follows(lambda * problem.n as f64)) {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "the regularization must be that of the given lambda",
            });
        }
        self.event_of(recipe, problem, self.objective(recipe, problem).events(self.release)?)
    }

    /// Returns the event with noise on the minimiser in units of its sensitivity, for calibration.
    fn event_in_units(&self, recipe: &ObjPert, problem: &Problem) -> Result<DpEvent, Error> {
        self.event_of(recipe, problem, self.objective(recipe, problem).events_in_units()?)
    }

    /// Returns the event of a release: the composition of the centre's event and `events`, of the exact minimiser and of the
    /// noise that hides the solver's error.
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

/// Returns the noise, or the published one of the same law if larger.
fn at_least(noise: NoiseScale, published: Option<f64>) -> NoiseScale {
    noise.with_scale(published.unwrap_or(0.0).max(noise.scale()))
}

/// Converts the event for a record's presence to this relation: a replacement is a removal and an addition.
pub(in crate::recipes) fn under_relation(relation: AdjacencyKind, event: DpEvent) -> DpEvent {
    if relation == AdjacencyKind::ZeroOut { event } else { DpEvent::AddRemoveTwice { event: Box::new(event) } }
}
