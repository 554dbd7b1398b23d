//! `phased-sgd` and `phased-erm`: phases on fresh records, each released.

use dp_accountant::AdjacencyKind;

use super::{Built, Entry, Request, Steps, conflict};
use crate::FloatKind;
use crate::error::Error;
use crate::growth::Arithmetic;
use crate::recipes::{PhasedErm, PhasedSgd};

/// Default radius for classification, where weights grow with the separation of the classes, and for regression, where targets
/// lie in [-1, 1].
const RADIUS_FOR_CLASSES: f64 = 10.0;
const RADIUS_FOR_NUMBERS: f64 = 1.0;

pub(super) const SGD: Entry = Entry {
    name: "phased-sgd",
    docs: include_str!("../recipes/phased_sgd.rs"),
    about: "One pass in phases, each half as long as the one before with a smaller learning rate, and noise at the \
            end of each phase (Feldman et al. 2020, Algorithm 2)",
    relations: &[AdjacencyKind::ReplaceOne, AdjacencyKind::ZeroOut],
    settings: &["lambda", "radius", "step-size", "schedule"],
    // For `records_to_check`: enough for each stage.
    data_dependent_time: false,
    records_to_check: |_| 1 << 10,
    build: sgd,
};

pub(super) const ERM: Entry = Entry {
    name: "phased-erm",
    docs: include_str!("../recipes/phased_erm.rs"),
    about: "Phased empirical risk minimisation: a certified minimiser in each phase, also for non-smooth losses \
            (Feldman et al. 2020, section 4.2)",
    data_dependent_time: true,
    build: erm,
    ..SGD
};

fn sgd(request: &Request<'_>) -> Result<Built, Error> {
    let settings = request.settings;
    let usual = PhasedSgd::new(request.loss, radius(request)?);
    let recipe = PhasedSgd {
        lambda: settings.lambda.unwrap_or(usual.lambda),
        step: settings.step_size,
        restarts: restarts(request)?,
        noise_mode: request.noise_mode,
        arithmetic: Arithmetic::suited_to(request.sparse, 1),
        ..usual
    };
    Ok(recipe.into())
}

fn erm(request: &Request<'_>) -> Result<Built, Error> {
    let settings = request.settings;
    let usual = PhasedErm::new(request.loss, radius(request)?);
    let recipe = PhasedErm {
        lambda: settings.lambda.unwrap_or(usual.lambda),
        step: settings.step_size,
        restarts: restarts(request)?,
        noise_mode: request.noise_mode,
        ..usual
    };
    Ok(recipe.into())
}

/// Returns the radius; refuses single precision, for which neither is proved.
fn radius(request: &Request<'_>) -> Result<f64, Error> {
    if request.float != FloatKind::F64 {
        return Err(conflict("float", "this algorithm trains in double precision")
            .expected("f64")
            .help("omit `float`"));
    }
    let usual = if request.loss.classes().is_some() { RADIUS_FOR_CLASSES } else { RADIUS_FOR_NUMBERS };
    Ok(request.settings.radius.unwrap_or(usual))
}

/// Returns whether the phases run in stages that use the regulariser's strong convexity.
fn restarts(request: &Request<'_>) -> Result<bool, Error> {
    match request.settings.schedule {
        None | Some(Steps::Constant) => Ok(false),
        Some(Steps::StronglyConvex) => Ok(true),
        Some(_) => Err(conflict("schedule", "the phases have schedules of their own")
            .expected("constant, or strongly-convex with `lambda`")),
    }
}
