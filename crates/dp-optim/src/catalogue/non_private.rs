//! `non-private`: the non-private baseline.

use dp_losses::LossKind;

use super::{Settings, Stop, arithmetic, conflict, steps};
use crate::FloatKind;
use crate::defaults::{baseline_lambda, passes_to_converge};
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
    let lambda = settings.lambda.unwrap_or_else(|| baseline_lambda(n));
    let shaped = settings.given().find(|name| !["lambda", "stop"].contains(name));
    let certified = match settings.stop {
        Some(Stop::Certified) if !(lambda > 0.0) => return Err(conflict("stop", "`stop certified` needs `lambda`")),
        Some(Stop::Certified) if float == FloatKind::F32 => {
            return Err(conflict("stop", "single precision cannot certify a minimiser"));
        }
        Some(Stop::Certified) if settings.radius.is_some() => {
            return Err(conflict("radius", "the certified minimiser has no radius"));
        }
        Some(Stop::Certified) => match shaped {
            Some(name) if !loss.is_smooth() => {
                return Err(conflict(name, "the certified minimiser of a loss with a kink has no such setting"));
            }
            _ => true,
        },
        Some(Stop::Passes) => false,
        None => lambda > 0.0 && float == FloatKind::F64 && shaped.is_none(),
    };
    let mut recipe = NonPrivateDerivation::new(loss, lambda);
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    if certified {
        let NonPrivateDerivation { passes, minimiser_within, .. } = NonPrivateDerivation::minimiser(loss, lambda);
        (recipe.passes, recipe.minimiser_within) = (settings.passes.unwrap_or(passes), minimiser_within);
    } else {
        recipe.passes = match settings.passes {
            Some(passes) => passes,
            None if lambda > 0.0 => passes_to_converge(loss, lambda, n, recipe.batch_size)?,
            None => recipe.passes,
        };
    }
    recipe.radius = settings.radius;
    recipe.arithmetic = arithmetic(sparse);
    recipe.averaging = steps::averaging(settings, n, recipe.batch_size, recipe.passes);
    recipe.schedule = steps::schedule(settings, loss, n, lambda)?;
    Ok(recipe)
}
