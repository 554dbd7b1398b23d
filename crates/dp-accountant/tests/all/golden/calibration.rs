//! Calibration of every quantity compared with two-sided bounds on the true value.

use dp_accountant::calibrate::{Calibration, Evaluator};
use dp_accountant::{AdjacencyKind, Epsilon, NoiseMultiplier, SamplingRate};
use serde_json::Value;

use super::{another_folder, delta, load, number};

/// Largest relative excess of a tight result over the true value.
const TIGHT: f64 = 1e-4;

fn calibration(epsilon: f64, input: &Value, evaluator: Evaluator) -> Calibration {
    Calibration::new(Epsilon::new(epsilon).unwrap(), delta(input))
        .with_evaluator(evaluator)
        .under(AdjacencyKind::AddRemoveOne)
}

fn cases(kind: &str) -> Vec<Value> {
    let file = load("accountant.json");
    let cases: Vec<Value> =
        file["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == kind).cloned().collect();
    assert!(!cases.is_empty() || another_folder(), "no case of {kind}");
    cases
}

/// Checks the noise for a target; `tight` results must be close.
fn noise_cases(evaluator: Evaluator, tight: bool) {
    for case in cases("dpsgd_sigma") {
        let (id, input, expected) = (&case["id"], &case["inputs"], &case["expected"]);
        let rate = SamplingRate::new(number(input, "sampling_rate")).unwrap();
        let epsilon = number(input, "epsilon");
        let found = calibration(epsilon, input, evaluator)
            .certifying()
            .dp_sgd_noise_multiplier(rate, input["steps"].as_u64().unwrap())
            .unwrap();
        assert!(found.value >= number(expected, "lower"), "{id}: {found:?} is too little noise");
        assert!(found.evaluations <= 8 || another_folder(), "{id}: {found:?}");
        if tight {
            assert!(found.value <= number(expected, "value") * (1.0 + TIGHT), "{id}: {found:?} is too much noise");
            let beyond = found.beyond.unwrap();
            assert!(
                beyond.value < found.value && beyond.epsilon_lower > epsilon,
                "{id}: {found:?} is not proved tight"
            );
        }
    }
}

/// Checks noise, rate and steps for the epsilon of known runs: never better than the run, and, if `tight`, not much worse.
fn round_trips(evaluator: Evaluator, tight: bool) {
    for case in cases("dpsgd_epsilon") {
        let (id, input, expected) = (&case["id"], &case["inputs"], &case["expected"]);
        let (sigma, rate) = (number(input, "noise_multiplier"), number(input, "sampling_rate"));
        let steps = input["steps"].as_u64().unwrap();
        let (multiplier, probability) = (NoiseMultiplier::new(sigma).unwrap(), SamplingRate::new(rate).unwrap());
        let at = |epsilon: f64| {
            let calibration = calibration(epsilon, input, evaluator);
            (
                calibration.dp_sgd_noise_multiplier(probability, steps).unwrap(),
                calibration.dp_sgd_sampling_rate(multiplier, steps).unwrap(),
                calibration.dp_sgd_steps(multiplier, probability).unwrap(),
            )
        };
        if number(expected, "lower") < 1e-9 {
            continue; // No finite epsilon, so no target.
        }
        let (noise, largest, most) = at(number(expected, "lower") * (1.0 - 1e-9));
        assert!(noise.value >= sigma * (1.0 - 1e-9), "{id}: {noise:?}");
        assert!(largest.value <= rate * (1.0 + 1e-9), "{id}: {largest:?}");
        assert!(most.value <= steps, "{id}: {most:?}");
        for evaluations in [noise.evaluations, largest.evaluations, most.evaluations] {
            assert!(evaluations <= 10 || another_folder(), "{id}: {evaluations} evaluations");
        }
        if tight {
            let (noise, largest, most) = at(number(expected, "upper") * (1.0 + 1e-6));
            assert!(noise.value <= sigma * (1.0 + TIGHT), "{id}: {noise:?}");
            assert!(largest.value >= rate * (1.0 - TIGHT), "{id}: {largest:?}");
            assert!(most.value as f64 >= steps as f64 * (1.0 - TIGHT) - 1.0, "{id}: {most:?}");
        }
    }
}

#[test]
fn noise_by_renyi_curves_is_enough() {
    noise_cases(Evaluator::Renyi, false);
}

#[test]
fn round_trips_by_renyi_curves_are_safe() {
    round_trips(Evaluator::Renyi, false);
}

#[test]
fn noise_by_the_tightest_bound_is_enough_and_tight() {
    noise_cases(Evaluator::Tightest, true);
}

#[test]
fn round_trips_by_the_tightest_bound_are_safe_and_tight() {
    round_trips(Evaluator::Tightest, true);
}
