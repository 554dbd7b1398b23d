//! Phases against values computed elsewhere to 50 digits.

use crate::support::{close, count, golden, number, numbers};
use dp_accountant::ReplaceOne;
use dp_losses::{HuberSvm, LossKind};
use dp_optim::recipes::phases::{PhasedProblem, localising};
use dp_optim::recipes::{Budget, PhasedErm, PhasedSgd, Recipe};
use serde_json::Value;

fn problem(input: &Value, distance: f64) -> PhasedProblem {
    let lipschitz = number(&input["L"]);
    let (dim, rho) = (count(&input["d"]), number(&input["rho"]));
    PhasedProblem { lipschitz, gradient_difference: 2.0 * lipschitz, distance, dim, rho }
}

fn budget() -> Budget {
    Budget::new(1.0, 1e-6).unwrap()
}

/// Compares `found` with the list of the case.
#[track_caller]
fn all_close(found: impl IntoIterator<Item = f64>, expected: &Value, tolerance: f64, id: &str) {
    let (found, expected): (Vec<f64>, Vec<f64>) = (found.into_iter().collect(), numbers(expected));
    assert_eq!(found.len(), expected.len(), "{id}");
    for (&found, &expected) in found.iter().zip(&expected) {
        close(found, expected, tolerance, id);
    }
}

#[test]
fn phases_of_gradient_descent() {
    for case in golden("phased_sgd") {
        let (id, tolerance) = (case["id"].as_str().unwrap(), number(&case["rtol"]));
        let (input, out) = (&case["in"], &case["out"]);
        let (n, dim) = (count(&input["n"]), count(&input["d"]));
        let problem = problem(input, number(&input["D"]));
        let step = problem.step(n);
        close(step, number(&out["eta"]), tolerance, id);
        let phases = localising(n, step);
        assert_eq!(phases.len() as u64, count(&out["phases"]), "{id}");
        all_close(phases.iter().map(|phase| phase.records as f64), &out["n_i"], tolerance, id);
        all_close(phases.iter().map(|phase| phase.step), &out["eta_i"], tolerance, id);
        close(2.0 / phases[0].step, number(&out["beta_max"]), tolerance, id);
        close(problem.excess_bound(&phases), number(&out["bound"]), tolerance, id);
        let deviation = |step: f64| problem.gradient_difference * step / problem.rho;
        all_close(phases.iter().map(|phase| deviation(phase.step)), &out["sigma_i"], tolerance, id);
        all_close(phases.iter().map(|phase| 2.0 * deviation(phase.step)), &out["sigma_i_paper"], tolerance, id);

        // The recipe runs them: its sensitivities are 2Lη_i minus the contribution of the start, plus rounding.
        if problem.lipschitz > 1.0 {
            continue;
        }
        let smooth = LossKind::HuberSvm(HuberSvm::new(0.5).unwrap());
        let recipe = PhasedSgd { row_norm: problem.lipschitz, step: Some(step), ..PhasedSgd::new(smooth, 1.0) };
        let plan = recipe.plan::<ReplaceOne>(n, dim, budget()).unwrap();
        let run = plan.run();
        for (found, expected) in run.phases().iter().zip(&phases) {
            assert_eq!(found, expected, "{id}");
        }
        for (phase, &sensitivity) in run.phases().iter().zip(run.sensitivities()) {
            let exact = problem.gradient_difference * phase.step * (1.0 - 1.0 / phase.records as f64);
            let rounding = 1e-12 * phase.records as f64;
            assert!(sensitivity >= exact * (1.0 - 1e-14) && sensitivity <= exact * (1.0 + 1e-9) + rounding, "{id}");
        }
    }
}

#[test]
fn phases_of_minimisation() {
    for case in golden("phased_erm") {
        let (id, tolerance) = (case["id"].as_str().unwrap(), number(&case["rtol"]));
        let (input, out) = (&case["in"], &case["out"]);
        let (n, dim) = (count(&input["n"]), count(&input["d"]));
        let problem = problem(input, number(&input["D"]));
        let step = problem.step(n);
        close(step, number(&out["eta"]), tolerance, id);
        if problem.lipschitz > 1.0 {
            continue;
        }
        // The published tolerance triples the sensitivity.
        let published = PhasedErm {
            row_norm: problem.lipschitz,
            step: Some(step),
            slack: 2.0,
            ..PhasedErm::new(LossKind::Hinge, 1e-3)
        };
        let plan = published.plan::<ReplaceOne>(n, dim, budget()).unwrap();
        let run = plan.run();
        assert_eq!(run.phases().len() as u64, count(&out["phases"]), "{id}");
        all_close(run.phases().iter().map(|phase| phase.records as f64), &out["n_i"], tolerance, id);
        all_close(run.moduli(), &out["lambda_i"], tolerance, id);
        all_close(run.sensitivities().iter().copied(), &out["sens_inexact_i"], tolerance, id);
        all_close(run.sensitivities().iter().map(|s| s / problem.rho), &out["sigma_i"], tolerance, id);
        let apart = run.sensitivities().iter().zip(run.tolerances()).map(|(s, tau)| s - 2.0 * tau);
        all_close(apart, &out["sens_exact_i"], 10.0 * tolerance, id);
        let gaps = run.moduli().into_iter().zip(run.tolerances()).map(|(modulus, tau)| modulus * tau * tau / 2.0);
        all_close(gaps, &out["gap_i"], 10.0 * tolerance, id);
    }
}

#[test]
fn stages_that_use_strong_convexity() {
    for case in golden("sc_reduction") {
        let (id, tolerance) = (case["id"].as_str().unwrap(), number(&case["rtol"]));
        let (input, out) = (&case["in"], &case["out"]);
        let strong_convexity = number(&input["lam"]);
        let problem = problem(input, 2.0 * number(&input["L"]) / strong_convexity);
        let found = problem.reduction(count(&input["n"]), strong_convexity, number(&input["c_alg"])).unwrap();
        assert_eq!((found.stages, found.records), (count(&out["stages"]), count(&out["n_stage"])), "{id}");
        all_close(found.radii, &out["radii"], tolerance, id);
        close(found.excess_bound, number(&out["excess_bound"]), tolerance, id);
    }
}
