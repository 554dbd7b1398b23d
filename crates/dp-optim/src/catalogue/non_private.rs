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
    // Settings for passes, batches, step sizes or a radius select SGD.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn built(settings: Settings, loss: LossKind, float: FloatKind) -> Result<NonPrivateDerivation, Error> {
        non_private(&settings, loss, float, false, 1000)
    }

    #[test]
    fn the_baseline_is_the_minimiser_unless_settings_ask_for_steps() {
        let none = Settings::default;
        for loss in [LossKind::Logistic, LossKind::Hinge, LossKind::Squared] {
            let usual = built(none(), loss, FloatKind::F64).unwrap();
            assert_eq!(usual, NonPrivateDerivation::minimiser(loss, 1e-4), "{loss}");
            let strong = built(Settings { lambda: Some(0.5), ..none() }, loss, FloatKind::F64).unwrap();
            assert_eq!(strong, NonPrivateDerivation::minimiser(loss, 0.5), "{loss}");
            for settings in [
                Settings { passes: Some(3), ..none() },
                Settings { batch_size: Some(7), ..none() },
                Settings { radius: Some(2.0), ..none() },
                Settings { lambda: Some(0.0), ..none() },
                Settings { stop: Some(Stop::Passes), ..none() },
            ] {
                assert_eq!(built(settings, loss, FloatKind::F64).unwrap().minimiser_within, None, "{loss}");
            }
            assert_eq!(built(none(), loss, FloatKind::F32).unwrap().minimiser_within, None);
        }
    }

    #[test]
    fn a_certified_stop_is_refused_where_nothing_is_certified() {
        let certified = || Settings { stop: Some(Stop::Certified), ..Settings::default() };
        let radius = || Settings { radius: Some(2.0), ..certified() };
        let refused = |settings, loss, float| match built(settings, loss, float) {
            Err(Error::Setting { name, .. }) => name,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(radius(), LossKind::Logistic, FloatKind::F64), "radius");
        assert_eq!(refused(certified(), LossKind::Logistic, FloatKind::F32), "stop");
        let flat = Settings { lambda: Some(0.0), ..certified() };
        assert_eq!(refused(flat, LossKind::Logistic, FloatKind::F64), "stop");
        let passes = Settings { passes: Some(3), ..certified() };
        assert_eq!(refused(passes.clone(), LossKind::Hinge, FloatKind::F64), "passes");
        let start = built(passes, LossKind::Logistic, FloatKind::F64).unwrap();
        assert!(start.passes == 3 && start.minimiser_within.is_some(), "passes before the search");
    }
}
