//! `pnsgd` and `snowball-sgd`: noise on every iterate, and only the last one released.

use dp_optim::FloatKind;
use dp_optim::recipes::pnsgd::Batching;
use dp_optim::recipes::snowball_sgd::SnowballSteps;
use dp_optim::recipes::{Pnsgd, SnowballSgd};

use super::{Built, PrivateAlgorithm, Request, steps};
use crate::args::{self, Adjacency};
use crate::failure::Failure;
use crate::input::conflict;

/// Records of a batch, and passes, unless others are asked for: passes beyond the first cost next to nothing.
const BATCH_SIZE: u64 = 50;
const PASSES: u64 = 10;

pub(super) const PNSGD: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::Pnsgd,
    relations: &[Adjacency::ReplaceOne, Adjacency::AddRemove],
    flags: &["--lambda", "--passes", "--batch-size", "--radius", "--step-size", "--schedule"],
    records_to_check: |settings| settings.batch_size.unwrap_or(BATCH_SIZE),
    build: pnsgd,
};

pub(super) const SNOWBALL_SGD: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::SnowballSgd,
    flags: &["--lambda", "--radius", "--schedule"],
    // Enough for the batches of a small budget, and for short steps.
    records_to_check: |_| 1 << 20,
    build: snowball_sgd,
    ..PNSGD
};

fn pnsgd(request: &Request<'_>) -> Result<Built, Failure> {
    check_float(request)?;
    let &Request { config, shape, .. } = request;
    let settings = &config.settings;
    let usual = Pnsgd::new(config.loss);
    let lambda = settings.lambda.unwrap_or(usual.lambda);
    let recipe = Pnsgd {
        lambda,
        passes: settings.passes.unwrap_or(PASSES),
        batching: Batching::Equal { size: settings.batch_size.unwrap_or(BATCH_SIZE) },
        schedule: steps::schedule(config, lambda, shape.n)?,
        distance: settings.radius.unwrap_or(usual.distance),
        radius: settings.radius,
        noise_mode: config.noise,
        ..usual
    };
    Ok(recipe.into())
}

fn snowball_sgd(request: &Request<'_>) -> Result<Built, Failure> {
    check_float(request)?;
    let config = request.config;
    let settings = &config.settings;
    let usual = SnowballSgd::new(config.loss);
    let steps = match settings.schedule {
        None | Some(args::Schedule::Constant) => SnowballSteps::Constant,
        Some(args::Schedule::Halving) => SnowballSteps::Halving,
        Some(_) => {
            return Err(conflict("--schedule", "snowball-sgd has schedules of its own").expected("constant or halving"));
        }
    };
    let recipe = SnowballSgd {
        lambda: settings.lambda.unwrap_or(usual.lambda),
        steps,
        distance: settings.radius.unwrap_or(usual.distance),
        radius: settings.radius,
        noise_mode: config.noise,
        ..usual
    };
    Ok(recipe.into())
}

/// Noise on every iterate is proved for double precision.
fn check_float(request: &Request<'_>) -> Result<(), Failure> {
    if request.config.float == FloatKind::F64 {
        return Ok(());
    }
    Err(conflict("--float", "this algorithm trains in double precision").expected("f64").help("leave --float away"))
}
