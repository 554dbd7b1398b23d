//! `pnsgd` and `snowball-sgd`: noise on every iterate, of which only the last is released.

use dp_accountant::AdjacencyKind;

use super::{Built, Entry, Request, Steps, conflict};
use crate::FloatKind;
use crate::error::Error;
use crate::recipes::pnsgd::Batching;
use crate::recipes::snowball_sgd::SnowballSteps;
use crate::recipes::{Pnsgd, SnowballSgd};

/// Default batch size and number of passes: passes beyond the first cost next to nothing.
const BATCH_SIZE: u64 = 50;
const PASSES: u64 = 10;

pub(super) const PNSGD: Entry = Entry {
    name: "pnsgd",
    docs: include_str!("../recipes/pnsgd.rs"),
    about: "Projected noisy SGD of which only the last iterate is released: privacy amplification by iteration \
            (Feldman et al. 2020, Algorithm 1)",
    relations: &[AdjacencyKind::ReplaceOne, AdjacencyKind::ZeroOut],
    settings: &["lambda", "passes", "batch-size", "radius", "step-size", "schedule"],
    data_dependent_time: false,
    records_to_check: |settings| settings.batch_size.unwrap_or(BATCH_SIZE),
    build: pnsgd,
};

pub(super) const SNOWBALL_SGD: Entry = Entry {
    name: "snowball-sgd",
    docs: include_str!("../recipes/snowball_sgd.rs"),
    about: "Projected noisy SGD in one pass, with batch sizes that grow towards the end (Feldman et al. 2020, \
            Theorems 3.5, 3.6)",
    settings: &["lambda", "radius", "schedule"],
    // For `records_to_check`: enough for the batches of a small budget, and for short steps.
    data_dependent_time: false,
    records_to_check: |_| 1 << 20,
    build: snowball_sgd,
    ..PNSGD
};

fn pnsgd(request: &Request<'_>) -> Result<Built, Error> {
    check_float(request)?;
    let &Request { settings, .. } = request;
    let usual = Pnsgd::new(request.loss);
    let lambda = settings.lambda.unwrap_or(usual.lambda);
    let recipe = Pnsgd {
        lambda,
        passes: settings.passes.unwrap_or(PASSES),
        batching: Batching::Equal { size: settings.batch_size.unwrap_or(BATCH_SIZE) },
        schedule: request.schedule(lambda)?,
        distance: settings.radius.unwrap_or(usual.distance),
        radius: settings.radius,
        noise_mode: request.noise_mode,
        ..usual
    };
    Ok(recipe.into())
}

fn snowball_sgd(request: &Request<'_>) -> Result<Built, Error> {
    check_float(request)?;
    let usual = SnowballSgd::new(request.loss);
    let settings = request.settings;
    let steps = match settings.schedule {
        None | Some(Steps::Constant) => SnowballSteps::Constant,
        Some(Steps::Halving) => SnowballSteps::Halving,
        Some(_) => {
            return Err(conflict("schedule", "snowball-sgd has schedules of its own").expected("constant or halving"));
        }
    };
    let recipe = SnowballSgd {
        lambda: settings.lambda.unwrap_or(usual.lambda),
        steps,
        distance: settings.radius.unwrap_or(usual.distance),
        radius: settings.radius,
        noise_mode: request.noise_mode,
        ..usual
    };
    Ok(recipe.into())
}

/// Refuses single precision: noise on every iterate is proved for double precision.
fn check_float(request: &Request<'_>) -> Result<(), Error> {
    if request.float == FloatKind::F64 {
        return Ok(());
    }
    Err(conflict("float", "this algorithm trains in double precision").expected("f64").help("omit `float`"))
}
