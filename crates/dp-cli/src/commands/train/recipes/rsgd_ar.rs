//! `rsgd-ar`, `nsgd` and `out-pert-gd`.

use dp_optim::recipes::{PassSteps, RsgdAr};

use super::{Built, PrivateAlgorithm, Request, private_arithmetic, refusal};
use crate::args::{self, Adjacency, Algorithm};
use crate::failure::Failure;
use crate::input::conflict;

pub(super) const RSGD_AR: PrivateAlgorithm = PrivateAlgorithm {
    name: Algorithm::RsgdAr,
    relations: &[Adjacency::ReplaceOne, Adjacency::AddRemove],
    flags: &["--lambda", "--passes", "--batch-size", "--radius", "--step-size", "--schedule", "--restart-every"],
    records_to_check: |settings| settings.batch_size.unwrap_or(1),
    build: |request| build(request, Algorithm::RsgdAr),
};

pub(super) const NSGD: PrivateAlgorithm = PrivateAlgorithm {
    name: Algorithm::Nsgd,
    flags: &["--lambda", "--passes", "--batch-size", "--radius", "--step-size", "--schedule"],
    build: |request| build(request, Algorithm::Nsgd),
    ..RSGD_AR
};

pub(super) const OUT_PERT_GD: PrivateAlgorithm = PrivateAlgorithm {
    name: Algorithm::OutPertGd,
    flags: &["--lambda", "--passes", "--radius", "--step-size"],
    records_to_check: |_| 1,
    build: |request| build(request, Algorithm::OutPertGd),
    ..RSGD_AR
};

fn build(request: &Request<'_>, algorithm: Algorithm) -> Result<Built, Failure> {
    let &Request { config, budget, relation, shape } = request;
    let settings = &config.settings;
    let lambda = settings.lambda.unwrap_or(0.0);
    let mut recipe = match algorithm {
        Algorithm::Nsgd => RsgdAr::nsgd(config.loss, lambda),
        Algorithm::OutPertGd => RsgdAr::full_gradient(config.loss, lambda),
        _ => RsgdAr::new(config.loss, lambda),
    };
    recipe.passes = settings.passes.unwrap_or(recipe.passes);
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    if let (Algorithm::RsgdAr, Some(passes)) = (algorithm, settings.passes) {
        recipe.restart_every = Some(passes.div_ceil(2));
    }
    recipe.restart_every = settings.restart_every.or(recipe.restart_every);
    recipe.steps = match settings.schedule {
        None => recipe.steps,
        Some(args::Schedule::Constant) => PassSteps::Constant,
        Some(args::Schedule::PerPass) => PassSteps::Falling,
        Some(args::Schedule::Restart) if recipe.restart_every.is_some() => PassSteps::Restarted,
        Some(_) => {
            return Err(conflict("--schedule", "this --schedule does not count passes").expected(
                if recipe.restart_every.is_some() { "restart, per-pass or constant" } else { "per-pass or constant" },
            ));
        }
    };
    recipe.radius = settings.radius;
    recipe.noise_mode = config.noise;
    recipe.float = config.float;
    recipe.arithmetic = private_arithmetic(config, shape, recipe.passes, recipe.batch_size, recipe.radius);
    // For the passes and the schedule that were asked for.
    recipe = recipe.with_suited_steps(shape.n, shape.dim, budget, relation).map_err(|error| refusal(&error))?;
    if let Some(step) = settings.step_size {
        recipe.step = step;
    }
    Ok(recipe.into())
}
