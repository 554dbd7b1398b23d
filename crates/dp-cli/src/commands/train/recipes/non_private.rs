//! `non-private`: the baseline.

use dp_optim::FloatKind;
use dp_optim::defaults::{BASELINE_LAMBDA, passes_to_converge};
use dp_optim::recipes::Stopping;
use dp_optim::recipes::non_private::NonPrivateDerivation;

use super::{Shape, arithmetic, refusal, steps};
use crate::commands::train::config::TrainConfig;
use crate::failure::Failure;
use crate::input::conflict;

/// Flags that the baseline takes, of those that not every algorithm takes.
pub(super) const FLAGS: &[&str] =
    &["--lambda", "--passes", "--batch-size", "--radius", "--step-size", "--schedule", "--averaging", "--stop"];

/// The baseline without privacy.
pub(in crate::commands::train) fn non_private(
    config: &TrainConfig,
    shape: Shape,
) -> Result<NonPrivateDerivation, Failure> {
    let settings = &config.settings;
    let mut recipe = NonPrivateDerivation::new(config.loss, settings.lambda.unwrap_or(BASELINE_LAMBDA));
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    recipe.passes = match settings.passes {
        Some(passes) => passes,
        None if recipe.lambda > 0.0 => passes_to_converge(config.loss, recipe.lambda, shape.n, recipe.batch_size)
            .map_err(|error| refusal(&error))?,
        None => recipe.passes,
    };
    recipe.radius = settings.radius;
    recipe.arithmetic = arithmetic(shape);
    recipe.averaging = steps::averaging(settings, shape.n, recipe.batch_size, recipe.passes);
    recipe.schedule = steps::schedule(config, recipe.lambda, shape.n)?;
    if let Some(Stopping::CertifiedMinimiser { .. }) = settings.stopping {
        if !(recipe.lambda > 0.0) {
            return Err(conflict("--stop", "--stop certified needs --lambda"));
        }
        recipe.minimiser_within = Some(1e-3);
    }
    if config.float == FloatKind::F32 && recipe.minimiser_within.is_some() {
        return Err(conflict("--stop", "single precision cannot certify a minimiser"));
    }
    Ok(recipe)
}
