//! `rsgd-ar`, `nsgd` and `out-pert-gd`.

use dp_accountant::AdjacencyKind;
use dp_losses::LossKind;

use super::{Built, Entry, Request, Steps, conflict};
use crate::error::Error;
use crate::recipes::{PassSteps, RsgdAr};

pub(super) const RSGD_AR: Entry = Entry {
    name: "rsgd-ar",
    docs: include_str!("../recipes/rsgd_ar.rs"),
    about: "Gradient descent on the same batches in each pass, with averaging and restarts; output perturbation, \
            for a record at a secret position",
    relations: &[AdjacencyKind::ReplaceOne, AdjacencyKind::ZeroOut],
    settings: &["lambda", "passes", "batch-size", "radius", "step-size", "schedule", "restart-every"],
    data_dependent_time: false,
    records_to_check: |settings| settings.batch_size.unwrap_or(1),
    build: |request| build(request, RsgdAr::new),
};

pub(super) const NSGD: Entry = Entry {
    name: "nsgd",
    docs: include_str!("../recipes/rsgd_ar.rs"),
    about: "SGD without averaging or restarts; output perturbation for the worst position of a record",
    settings: &["lambda", "passes", "batch-size", "radius", "step-size", "schedule"],
    build: |request| build(request, RsgdAr::nsgd),
    ..RSGD_AR
};

pub(super) const OUT_PERT_GD: Entry = Entry {
    name: "out-pert-gd",
    docs: include_str!("../recipes/rsgd_ar.rs"),
    about: "Full-batch gradient descent with output perturbation (Zhang et al. 2017)",
    settings: &["lambda", "passes", "radius", "step-size"],
    data_dependent_time: false,
    records_to_check: |_| 1,
    build: |request| build(request, RsgdAr::full_gradient),
    ..RSGD_AR
};

fn build(request: &Request<'_>, usual: fn(LossKind, f64) -> RsgdAr) -> Result<Built, Error> {
    let &Request { settings, budget, relation, n, dim, .. } = request;
    let lambda = settings.lambda.unwrap_or(0.0);
    let mut recipe = usual(request.loss, lambda);
    recipe.passes = settings.passes.unwrap_or(recipe.passes);
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    if let (Some(_), Some(passes)) = (recipe.restart_every, settings.passes) {
        recipe.restart_every = Some(passes.div_ceil(2));
    }
    recipe.restart_every = settings.restart_every.or(recipe.restart_every);
    recipe.steps = match settings.schedule {
        None => recipe.steps,
        Some(Steps::Constant) => PassSteps::Constant,
        Some(Steps::PerPass) => PassSteps::Falling,
        Some(Steps::Restart) if recipe.restart_every.is_some() => PassSteps::Restarted,
        Some(_) => {
            return Err(conflict("schedule", "this `schedule` does not count passes").expected(
                if recipe.restart_every.is_some() { "restart, per-pass or constant" } else { "per-pass or constant" },
            ));
        }
    };
    recipe.radius = settings.radius;
    recipe.noise_mode = request.noise_mode;
    recipe.float = request.float;
    recipe.arithmetic = request.private_arithmetic(recipe.passes, recipe.batch_size, recipe.radius);
    // Depends on the requested passes and schedule.
    recipe = recipe.with_suited_steps(n, dim, budget, relation)?;
    if let Some(step) = settings.step_size {
        recipe.step = step;
    }
    Ok(recipe.into())
}
