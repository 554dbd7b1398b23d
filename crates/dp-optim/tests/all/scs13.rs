//! The noise of SCS13 against values computed elsewhere to 50 digits.

use crate::support::{count, golden, number};
use dp_accountant::{Delta, Epsilon, ReplaceOne};
use dp_losses::LossKind;
use dp_mechanisms::clip::ClippingNorm;
use dp_optim::recipes::scs13::{NoiseScale, StepLaw, as_published};
use dp_optim::recipes::{Budget, Recipe, Scs13};
use serde_json::Value;

#[test]
fn golden_noise() {
    for case in golden("scs13_noise") {
        let (id, input, out) = (case["id"].as_str().unwrap(), &case["in"], &case["out"]);
        let (passes, batch) = (count(&input["passes"]), count(&input["batch"]));
        let (lipschitz, epsilon) = (number(&input["lipschitz"]), Epsilon::new(number(&input["eps"])).unwrap());
        let close = |found: f64, expected: &Value, tolerance: f64| {
            crate::support::close(found, number(expected), tolerance, id)
        };
        let tolerance = number(&case["rtol"]);
        close(as_published::epsilon_per_pass(passes, epsilon), &out["eps_per_pass"], tolerance);
        let theta = as_published::laplace_ball_scale(passes, batch, lipschitz, epsilon).unwrap();
        close(theta, &out["theta_per_update"], tolerance);
        // The plan's own noise is on the sum of gradients clipped to the Lipschitz constant, rounding included.
        let clipping = Some(ClippingNorm::new(lipschitz).unwrap());
        let recipe = Scs13 { passes, batch_size: batch, clipping, ..Scs13::new(LossKind::Logistic) };
        let scale = |law, delta: f64| {
            let recipe = Scs13 { law, ..recipe.clone() };
            match recipe
                .plan::<ReplaceOne>(
                    batch.saturating_mul(10).max(1000),
                    5,
                    Budget { epsilon, delta: Delta::new(delta).unwrap() },
                )
                .unwrap()
                .run()
                .noise()
            {
                NoiseScale::LaplaceBall { scale } => scale / batch as f64,
                NoiseScale::Gaussian { std_dev } => std_dev / batch as f64,
            }
        };
        close(scale(StepLaw::LaplaceBall, 0.0), &out["theta_per_update"], 1e-10);
        if let Some(delta) = input["delta"].as_f64() {
            let found =
                as_published::gaussian_std_dev(passes, batch, lipschitz, epsilon, Delta::new(delta).unwrap()).unwrap();
            close(found, &out["sigma_basic"], tolerance);
            close(scale(StepLaw::Gaussian, delta), &out["sigma_analytic_joint"], 1e-9);
        }
    }
}
