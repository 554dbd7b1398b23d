//! The exact engine compared with closed forms and high-precision contour integrals. Every certified lower end must be at most
//! the upper end of the interval known to hold the true value, every upper end at least its lower end, and the two must be close
//! to each other.

use std::collections::BTreeMap;

use dp_accountant::exact::{Bracket, PrivacyCurve, single_step};
use dp_accountant::{Delta, DpEvent};
use serde_json::Value;

use super::{another_folder, delta, load, number, numbers};

fn repeated(event: DpEvent, count: u64) -> DpEvent {
    DpEvent::SelfComposed { event: Box::new(event), count }
}

fn dp_sgd(sampling_rate: f64, std_dev: f64, steps: u64) -> DpEvent {
    let event = Box::new(DpEvent::Gaussian { std_dev, sensitivity: 1.0 });
    repeated(DpEvent::PoissonSampled { sampling_rate, event }, steps)
}

fn phase(input: &Value) -> DpEvent {
    let steps = input["steps"].as_u64().unwrap();
    dp_sgd(number(input, "sampling_rate"), number(input, "noise_multiplier"), steps)
}

fn epsilon_at(event: &DpEvent, delta: Delta) -> Bracket {
    PrivacyCurve::new(event).unwrap().epsilon(delta).unwrap()
}

/// Checks a bracket. The true value lies in `[lower, upper]`; its best estimate is `value`, accurate to 2e-7 in the tree's own
/// file, and to a tolerance given by the case in another. The width of the bracket depends on the case; the tree's own are
/// narrow.
#[track_caller]
fn check(case: &Value, got: Bracket, [value, lower, upper]: [f64; 3]) {
    let id = &case["id"];
    let [relative, absolute] = if another_folder() { tolerance(case) } else { [2e-7, 0.0] };
    assert!(got.lower <= got.upper, "{id}: {got:?}");
    assert!(got.lower <= upper && got.upper >= lower, "{id}: {got:?} misses [{lower}, {upper}]");
    assert!((got.upper - value).abs() <= absolute + relative * value.abs(), "{id}: {got:?} is not {value}");
    assert!(got.upper - got.lower <= 1e-9 * got.upper || another_folder(), "{id}: {got:?} is wide");
}

fn tolerance(case: &Value) -> [f64; 2] {
    ["rel", "abs"].map(|name| number(&case["tol"], name))
}

fn interval(expected: &Value) -> [f64; 3] {
    ["value", "lower", "upper"].map(|name| number(expected, name))
}

#[test]
fn exact_cases() {
    let file = load("accountant.json");
    let mut seen = BTreeMap::new();
    for case in file["cases"].as_array().unwrap() {
        let (id, kind, input) = (&case["id"], case["kind"].as_str().unwrap(), &case["inputs"]);
        let expected = &case["expected"];
        let exactly = || expected.as_f64().unwrap();
        *seen.entry(kind.to_owned()).or_insert(0) += 1;
        match kind {
            "dpsgd_epsilon" => {
                let got = epsilon_at(&phase(input), delta(input));
                check(case, got, interval(expected));
            }
            "dpsgd_epsilon_heterogeneous" => {
                let events = input["phases"].as_array().unwrap().iter().map(phase).collect();
                check(case, epsilon_at(&DpEvent::Composed { events }, delta(input)), interval(expected));
            }
            "dpsgd_sigma" => {
                // At the interval's ends epsilon lies on both sides of the target.
                let (rate, steps) = (number(input, "sampling_rate"), input["steps"].as_u64().unwrap());
                let at = |noise| epsilon_at(&dp_sgd(rate, noise, steps), delta(input));
                let (more, less) = (at(number(expected, "upper")), at(number(expected, "lower")));
                assert!(more.upper <= number(input, "epsilon"), "{id}: {more:?}");
                assert!(less.lower >= number(input, "epsilon"), "{id}: {less:?}");
            }
            "laplace_composition_epsilon" => {
                let laplace =
                    DpEvent::Laplace { scale: number(input, "scale"), sensitivity: number(input, "sensitivity") };
                let got = epsilon_at(&repeated(laplace, input["count"].as_u64().unwrap()), delta(input));
                check(case, got, interval(expected));
            }
            "puredp_composition_epsilon" => {
                let pure = DpEvent::PureDp { epsilon: number(input, "epsilon") };
                let got = epsilon_at(&repeated(pure, input["count"].as_u64().unwrap()), delta(input));
                check_point(case, got, exactly(), 1e-9);
            }
            "gaussian_epsilon" => {
                let gaussian =
                    DpEvent::Gaussian { std_dev: number(input, "sigma"), sensitivity: number(input, "sensitivity") };
                check_point(case, epsilon_at(&gaussian, delta(input)), exactly(), 1e-12);
            }
            "gdp_epsilon" => {
                let events = numbers(input, "mus").into_iter().map(|mu| DpEvent::Gdp { mu }).collect();
                check_point(case, epsilon_at(&DpEvent::Composed { events }, delta(input)), exactly(), 1e-12);
            }
            "gaussian_log_delta" => {
                let gaussian =
                    DpEvent::Gaussian { std_dev: number(input, "sigma"), sensitivity: number(input, "sensitivity") };
                let got = PrivacyCurve::new(&gaussian).unwrap().log_delta(number(input, "epsilon")).unwrap();
                check_point(case, got, exactly(), 1e-11);
            }
            "laplace_single_delta" => {
                let laplace =
                    DpEvent::Laplace { scale: number(input, "scale"), sensitivity: number(input, "sensitivity") };
                let got = PrivacyCurve::new(&laplace).unwrap().delta(number(input, "epsilon")).unwrap();
                check_point(case, got, exactly(), 1e-13);
            }
            "poisson_gaussian_single_step_log_delta" => {
                let (rate, sigma) = (number(input, "sampling_rate"), number(input, "noise_multiplier"));
                let epsilon = number(input, "epsilon");
                let remove = single_step::log_delta_remove(rate, 1.0 / sigma, epsilon).unwrap();
                let add = single_step::log_delta_add(rate, 1.0 / sigma, epsilon).unwrap();
                for (name, got) in [("remove", remove), ("add", add)] {
                    // `None`: delta is exactly 0.
                    match expected[name].as_f64() {
                        Some(value) => {
                            let near = 1e-10 * value.abs().max(1.0);
                            assert!((got - value).abs() < near, "{id}: {name} {got}, expected {value}");
                        }
                        None => assert_eq!(got, f64::NEG_INFINITY, "{id}: {name}"),
                    }
                }
                if let Some(value) = expected["remove"].as_f64() {
                    let got = PrivacyCurve::new(&dp_sgd(rate, sigma, 1)).unwrap().log_delta(epsilon).unwrap();
                    check_point(case, got, value, 1e-11);
                }
            }
            _ => {}
        }
    }
    for kind in [
        "dpsgd_epsilon",
        "dpsgd_epsilon_heterogeneous",
        "dpsgd_sigma",
        "laplace_composition_epsilon",
        "puredp_composition_epsilon",
        "gaussian_epsilon",
        "gdp_epsilon",
        "gaussian_log_delta",
        "laplace_single_delta",
        "poisson_gaussian_single_step_log_delta",
    ] {
        assert!(seen.contains_key(kind) || another_folder(), "no case of {kind}");
    }
}

/// Checks against the true value to 16 digits: both ends enclose it, up to its own rounding, and are close.
#[track_caller]
fn check_point(case: &Value, got: Bracket, value: f64, accuracy: f64) {
    let id = &case["id"];
    let accuracy = if another_folder() { accuracy.max(tolerance(case)[0]) } else { accuracy };
    let last_digit = 4.0 * f64::EPSILON * value.abs();
    assert!(got.lower <= value + last_digit && got.upper >= value - last_digit, "{id}: {got:?} {value}");
    let width = accuracy * value.abs().max(if value < 0.0 { 1.0 } else { 0.0 });
    assert!(got.upper - got.lower <= 2.0 * width, "{id}: {got:?} is wide");
}
