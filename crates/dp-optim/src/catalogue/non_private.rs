//! `non-private`: the baseline.

use crate::FloatKind;
use crate::defaults::{BASELINE_LAMBDA, passes_to_converge};
use crate::recipes::non_private::NonPrivateDerivation;

use super::{Request, Stop, conflict, steps};
use crate::error::Error;

/// The settings that the baseline takes.
pub static NON_PRIVATE: &[&str] =
    &["lambda", "passes", "batch-size", "radius", "step-size", "schedule", "averaging", "stop"];

/// The baseline without privacy; budget, relation and noise of the request are not looked at.
///
/// # Errors
/// [`Error::Setting`] for settings that contradict each other or that it does not take, and parameters outside their range.
pub fn non_private(request: &Request<'_>) -> Result<NonPrivateDerivation, Error> {
    let settings = request.settings;
    if let Some(name) = settings.given().find(|name| !NON_PRIVATE.contains(name)) {
        return Err(conflict(name, "training without privacy has no such setting"));
    }
    let mut recipe = NonPrivateDerivation::new(request.loss, settings.lambda.unwrap_or(BASELINE_LAMBDA));
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    recipe.passes = match settings.passes {
        Some(passes) => passes,
        None if recipe.lambda > 0.0 => passes_to_converge(request.loss, recipe.lambda, request.n, recipe.batch_size)?,
        None => recipe.passes,
    };
    recipe.radius = settings.radius;
    recipe.arithmetic = request.arithmetic();
    recipe.averaging = steps::averaging(settings, request.n, recipe.batch_size, recipe.passes);
    recipe.schedule = steps::schedule(request, recipe.lambda)?;
    if settings.stop == Some(Stop::Certified) {
        if !(recipe.lambda > 0.0) {
            return Err(conflict("stop", "`stop certified` needs `lambda`"));
        }
        recipe.minimiser_within = Some(1e-3);
    }
    if request.float == FloatKind::F32 && recipe.minimiser_within.is_some() {
        return Err(conflict("stop", "single precision cannot certify a minimiser"));
    }
    Ok(recipe)
}
