//! `phased-sgd` and `phased-erm`: phases on fresh records, each released.

use dp_optim::FloatKind;
use dp_optim::growth::Arithmetic;
use dp_optim::recipes::{PhasedErm, PhasedSgd};

use super::{Built, PrivateAlgorithm, Request};
use crate::args::{self, Adjacency};
use crate::failure::Failure;
use crate::input::conflict;

/// The ball unless another is asked for: for classes, whose weights grow with what separates them, and for numbers, which
/// lie in [-1, 1].
const RADIUS_FOR_CLASSES: f64 = 10.0;
const RADIUS_FOR_NUMBERS: f64 = 1.0;

pub(super) const SGD: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::PhasedSgd,
    relations: &[Adjacency::ReplaceOne, Adjacency::AddRemove],
    flags: &["--lambda", "--radius", "--step-size", "--schedule"],
    // Enough for each stage.
    records_to_check: |_| 1 << 10,
    build: sgd,
};

pub(super) const ERM: PrivateAlgorithm = PrivateAlgorithm { name: args::Algorithm::PhasedErm, build: erm, ..SGD };

fn sgd(request: &Request<'_>) -> Result<Built, Failure> {
    let (config, settings) = (request.config, &request.config.settings);
    let usual = PhasedSgd::new(config.loss, radius(request)?);
    let recipe = PhasedSgd {
        lambda: settings.lambda.unwrap_or(usual.lambda),
        step: settings.step_size,
        restarts: restarts(request)?,
        noise_mode: config.noise,
        arithmetic: Arithmetic::suited_to(request.shape.sparse, 1),
        ..usual
    };
    Ok(recipe.into())
}

fn erm(request: &Request<'_>) -> Result<Built, Failure> {
    let (config, settings) = (request.config, &request.config.settings);
    let usual = PhasedErm::new(config.loss, radius(request)?);
    let recipe = PhasedErm {
        lambda: settings.lambda.unwrap_or(usual.lambda),
        step: settings.step_size,
        restarts: restarts(request)?,
        noise_mode: config.noise,
        ..usual
    };
    Ok(recipe.into())
}

/// The radius; and single precision is refused, which is proved for neither.
fn radius(request: &Request<'_>) -> Result<f64, Failure> {
    let config = request.config;
    if config.float != FloatKind::F64 {
        return Err(conflict("--float", "this algorithm trains in double precision")
            .expected("f64")
            .help("leave --float away"));
    }
    let usual = if config.loss.classes().is_some() { RADIUS_FOR_CLASSES } else { RADIUS_FOR_NUMBERS };
    Ok(config.settings.radius.unwrap_or(usual))
}

/// Whether the phases run in stages that use the regulariser's strong convexity.
fn restarts(request: &Request<'_>) -> Result<bool, Failure> {
    match request.config.settings.schedule {
        None | Some(args::Schedule::Constant) => Ok(false),
        Some(args::Schedule::StronglyConvex) => Ok(true),
        Some(_) => Err(conflict("--schedule", "the phases have schedules of their own")
            .expected("constant, or strongly-convex with --lambda")),
    }
}
