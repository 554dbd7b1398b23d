//! `non-private`: the non-private baseline.

use dp_losses::LossKind;

use super::{Settings, Stop, arithmetic, conflict, steps};
use crate::FloatKind;
use crate::defaults::{BASELINE_LAMBDA, passes_to_converge};
use crate::error::Error;
use crate::recipes::non_private::NonPrivateDerivation;

/// The settings of the baseline.
pub static NON_PRIVATE: &[&str] =
    &["lambda", "passes", "batch-size", "radius", "step-size", "schedule", "averaging", "stop"];

/// Builds the non-private baseline for `n` records.
///
/// # Errors
/// [`Error::Setting`] for settings that contradict each other or that it does not take, and parameters outside their range.
pub fn non_private(
    settings: &Settings,
    loss: LossKind,
    float: FloatKind,
    sparse: bool,
    n: u64,
) -> Result<NonPrivateDerivation, Error> {
    if let Some(name) = settings.given().find(|name| !NON_PRIVATE.contains(name)) {
        return Err(conflict(name, "training without privacy has no such setting"));
    }
    let mut recipe = NonPrivateDerivation::new(loss, settings.lambda.unwrap_or(BASELINE_LAMBDA));
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    recipe.passes = match settings.passes {
        Some(passes) => passes,
        None if recipe.lambda > 0.0 => passes_to_converge(loss, recipe.lambda, n, recipe.batch_size)?,
        None => recipe.passes,
    };
    recipe.radius = settings.radius;
    recipe.arithmetic = arithmetic(sparse);
    recipe.averaging = steps::averaging(settings, n, recipe.batch_size, recipe.passes);
    recipe.schedule = steps::schedule(settings, loss, n, recipe.lambda)?;
    if settings.stop == Some(Stop::Certified) {
        if !(recipe.lambda > 0.0) {
            return Err(conflict("stop", "`stop certified` needs `lambda`"));
        }
        recipe.minimiser_within = Some(1e-3);
    }
    if float == FloatKind::F32 && recipe.minimiser_within.is_some() {
        return Err(conflict("stop", "single precision cannot certify a minimiser"));
    }
    Ok(recipe)
}
