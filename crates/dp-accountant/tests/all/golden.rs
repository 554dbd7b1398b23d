//! High-precision values (40-digit arithmetic): `accountant.json`, `mechanisms.json` and `optim-erm.json` in the directory
//! `DP_GOLDEN_DIR`, or in the tree's own copy.
//!
//! Each kind of case has one evaluation below; with the tree's own files the test fails if a kind of case is missing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dp_accountant::rdp::{RdpCurve, conversion};
use dp_accountant::{Delta, DpEvent, Epsilon, RdpOrder, Rho, bound, calibrate, gaussian, zcdp};
use serde_json::Value;

mod batch_scale;
mod calibration;
mod exact;
mod laws;
mod ranking;
mod response;
mod sampling;

fn load(name: &str) -> Value {
    let directory = std::env::var_os("DP_GOLDEN_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden")), PathBuf::from);
    let path = directory.join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(!file["cases"].as_array().unwrap().is_empty(), "{} has no case at all", path.display());
    file
}

/// Returns whether the values are from another folder: such a file need not have every kind of case, but must have some.
fn another_folder() -> bool {
    std::env::var_os("DP_GOLDEN_DIR").is_some()
}

/// Returns the number called `name`; a failure names the case that lacks it.
fn number(object: &Value, name: &str) -> f64 {
    object[name].as_f64().unwrap_or_else(|| panic!("no number {name} in {object}"))
}

fn numbers(object: &Value, name: &str) -> Vec<f64> {
    let list = object[name].as_array().unwrap_or_else(|| panic!("no list {name} in {object}"));
    list.iter().map(|value| value.as_f64().unwrap()).collect()
}

fn delta(object: &Value) -> Delta {
    Delta::new(number(object, "delta")).unwrap()
}

fn curve_at(event: &DpEvent, order: f64) -> f64 {
    RdpCurve::new(event).unwrap().at(RdpOrder::new(order).unwrap())
}

#[track_caller]
fn check(id: &Value, what: &str, got: f64, expected: f64, relative: f64, absolute: f64) {
    assert!(
        (got - expected).abs() <= absolute + relative * expected.abs(),
        "{id} {what}: got {got}, expected {expected} (relative {relative}, absolute {absolute})"
    );
}

/// Returns the value of one case of `accountant.json`, or `None` for a kind that its own module evaluates.
fn accountant_value(kind: &str, input: &Value) -> Option<f64> {
    let order = || number(input, "alpha");
    let real_order = || RdpOrder::new(order()).unwrap();
    let noise = |event: fn(f64, f64) -> DpEvent, scale: &str| event(number(input, scale), number(input, "sensitivity"));
    let gaussian_event = |std_dev, sensitivity| DpEvent::Gaussian { std_dev, sensitivity };
    let laplace_event = |scale, sensitivity| DpEvent::Laplace { scale, sensitivity };
    let mu = || number(input, "sensitivity") / number(input, "sigma");
    Some(match kind {
        "rdp_randomized_response" | "rdp_kary_randomized_response" => response::divergence(kind, input),
        "rdp_gaussian" => curve_at(&noise(gaussian_event, "sigma"), order()),
        "rdp_laplace" => curve_at(&noise(laplace_event, "scale"), order()),
        "puredp_to_rdp_tight" => curve_at(&DpEvent::PureDp { epsilon: number(input, "epsilon") }, order()),
        "rdp_to_eps_mironov" => conversion::epsilon_mironov(real_order(), number(input, "rdp"), delta(input)).unwrap(),
        "rdp_to_eps_improved" => {
            conversion::epsilon_improved(real_order(), number(input, "rdp"), delta(input)).unwrap()
        }
        "rdp_to_log_delta_improved" => {
            conversion::log_delta_improved(real_order(), number(input, "rdp"), number(input, "epsilon")).unwrap()
        }
        "rdp_to_log_delta_centred" => {
            conversion::log_delta_centred(real_order(), number(input, "rdp"), number(input, "epsilon")).unwrap()
        }
        "zcdp_to_eps_simple" => zcdp::epsilon_simple(number(input, "rho"), delta(input)).unwrap(),
        "gaussian_log_delta" => gaussian::log_delta(mu(), number(input, "epsilon")).unwrap(),
        "gaussian_epsilon" => gaussian::epsilon(mu(), delta(input)).unwrap(),
        "gaussian_sigma" => {
            let epsilon = Epsilon::new(number(input, "epsilon")).unwrap();
            gaussian::noise_multiplier(epsilon, delta(input)).unwrap().get() * number(input, "sensitivity")
        }
        "gdp_compose_mu" => gaussian::compose_mu(&numbers(input, "mus")).unwrap(),
        "gdp_epsilon" => {
            gaussian::epsilon(gaussian::compose_mu(&numbers(input, "mus")).unwrap(), delta(input)).unwrap()
        }
        "rdp_shuffled_output_mixture" => {
            let sensitivities = numbers(input, "sensitivities");
            let weights = vec![1.0 / sensitivities.len() as f64; sensitivities.len()];
            let event = DpEvent::GaussianMixture { std_dev: number(input, "sigma"), sensitivities, weights };
            curve_at(&event, order())
        }
        "puredp_composition_epsilon" => {
            let event = DpEvent::PureDp { epsilon: number(input, "epsilon") };
            let count = input["count"].as_u64().unwrap();
            bound::epsilon(&DpEvent::SelfComposed { event: Box::new(event), count }, delta(input)).unwrap().value
        }
        "laplace_single_delta" => bound::delta(&noise(laplace_event, "scale"), number(input, "epsilon")).unwrap().value,
        _ => return None,
    })
}

#[test]
fn accountant_cases() {
    let file = load("accountant.json");
    let mut seen = BTreeMap::new();
    for case in file["cases"].as_array().unwrap() {
        let (id, kind, input) = (&case["id"], case["kind"].as_str().unwrap(), &case["inputs"]);
        let (relative, absolute) = (number(&case["tol"], "rel"), number(&case["tol"], "abs"));
        *seen.entry(kind.to_owned()).or_insert(0) += 1;
        let expected = || case["expected"].as_f64().unwrap_or_else(|| panic!("{id}: no expected number"));
        match kind {
            // The published value is an upper bound, and ours may be lower, by the best order and the centred conversion.
            "zcdp_to_eps_optimal" => {
                let got = zcdp::epsilon(number(input, "rho"), delta(input)).unwrap();
                let exact = gaussian::epsilon((2.0 * number(input, "rho")).sqrt(), delta(input)).unwrap();
                assert!(got <= expected() * (1.0 + relative) + absolute, "{id}: {got} > {}", expected());
                assert!(got >= exact, "{id}: {got} is below the exact Gaussian's {exact}");
            }
            "zcdp_to_log_delta" => {
                let (rho, epsilon) = (number(input, "rho"), number(input, "epsilon"));
                let got = zcdp::log_delta(rho, epsilon).unwrap();
                let exact = gaussian::log_delta((2.0 * rho).sqrt(), epsilon).unwrap();
                assert!(got <= expected() + relative * expected().abs() + absolute, "{id}: {got} > {}", expected());
                assert!(got >= exact * (1.0 + 1e-12) - 1e-15, "{id}: {got} is below the exact Gaussian's {exact}");
            }
            "puredp_to_rdp_quadratic" => {
                let tight = curve_at(&DpEvent::PureDp { epsilon: number(input, "epsilon") }, number(input, "alpha"));
                assert!(tight <= expected() * (1.0 + relative), "{id}: {tight}");
            }
            _ if sampling::check_case(id, kind, input, &case["expected"], relative, absolute) => {}
            _ => {
                if let Some(got) = accountant_value(kind, input) {
                    check(id, kind, got, expected(), relative, absolute);
                }
                if kind == "gaussian_sigma" {
                    let got = accountant_value(kind, input).unwrap();
                    assert!(got >= expected() * (1.0 - 1e-12), "{id}: {got} is too little noise");
                }
            }
        }
    }
    for kind in [
        "rdp_gaussian",
        "rdp_laplace",
        "puredp_to_rdp_tight",
        "puredp_to_rdp_quadratic",
        "rdp_to_eps_mironov",
        "rdp_to_eps_improved",
        "rdp_to_log_delta_improved",
        "rdp_to_log_delta_centred",
        "zcdp_to_eps_simple",
        "zcdp_to_eps_optimal",
        "zcdp_to_log_delta",
        "gaussian_log_delta",
        "gaussian_epsilon",
        "gaussian_sigma",
        "gdp_compose_mu",
        "gdp_epsilon",
        "rdp_shuffled_output_mixture",
        "puredp_composition_epsilon",
        "laplace_single_delta",
        "rdp_randomized_response",
        "rdp_kary_randomized_response",
    ]
    .into_iter()
    .chain(sampling::KINDS)
    {
        assert!(seen.contains_key(kind) || another_folder(), "no case of {kind}");
    }
}

#[test]
fn mechanism_cases() {
    let file = load("mechanisms.json");
    let mut seen = BTreeMap::new();
    for case in file["cases"].as_array().unwrap() {
        let (id, function, input, out) = (&case["id"], case["fn"].as_str().unwrap(), &case["in"], &case["out"]);
        let (relative, absolute) = (number(case, "rtol"), number(case, "atol"));
        *seen.entry(function.to_owned()).or_insert(0) += 1;
        let epsilon = || Epsilon::new(number(input, "eps")).unwrap();
        match function {
            "analytic_gaussian" => {
                let (expected, sensitivity) = (number(out, "sigma"), number(input, "sensitivity"));
                let closed = gaussian::noise_multiplier(epsilon(), delta(input)).unwrap().get() * sensitivity;
                let searched = calibrate::least_scale(epsilon(), delta(input), |std_dev| DpEvent::Gaussian {
                    std_dev,
                    sensitivity,
                });
                for sigma in [closed, searched.unwrap()] {
                    check(id, "sigma", sigma, expected, relative, absolute);
                    assert!(sigma >= expected * (1.0 - 1e-12), "{id}: {sigma} is too little noise");
                }
            }
            "gaussian_delta" => {
                let mu = number(input, "sensitivity") / number(input, "sigma");
                let got = gaussian::delta(mu, number(input, "eps")).unwrap();
                check(id, "delta", got, number(out, "delta"), relative, absolute);
            }
            "classical_gaussian" => {
                let multiplier = gaussian::classical_noise_multiplier(epsilon(), delta(input)).unwrap().get();
                let sigma = multiplier * number(input, "sensitivity");
                check(id, "sigma", sigma, number(out, "sigma"), relative, absolute);
            }
            "laplace_rdp" => {
                let event = DpEvent::Laplace { scale: 1.0, sensitivity: number(input, "eps") };
                let got = curve_at(&event, number(input, "alpha"));
                check(id, "rdp", got, number(out, "rdp"), relative, absolute);
            }
            "randomized_response" => response::check_case(id, input, out, relative, absolute),
            "laplace_delta" => {
                let event = DpEvent::Laplace { scale: 1.0, sensitivity: number(input, "eps") };
                let got = bound::delta(&event, number(input, "eps_at")).unwrap().value;
                check(id, "delta", got, number(out, "delta"), relative, absolute);
            }
            "pure_rdp_bound" => {
                let got = curve_at(&DpEvent::PureDp { epsilon: number(input, "eps") }, number(input, "alpha"));
                check(id, "rdp", got, number(out, "rdp"), relative, absolute);
            }
            // The exact curves of the ball: their bounds must not be below.
            "laplace_ball_rdp" => {
                let got = curve_at(&ball(input), number(input, "alpha"));
                let exact = number(out, "rdp");
                assert!(got >= exact * (1.0 - relative), "{id}: {got} is below the exact {exact}");
            }
            "laplace_ball_delta" => {
                let got = bound::delta(&ball(input), number(input, "eps_at")).unwrap().value;
                let exact = number(out, "delta");
                assert!(got >= exact * (1.0 - relative), "{id}: {got} is below the exact {exact}");
            }
            _ => {}
        }
    }
    for function in [
        "analytic_gaussian",
        "gaussian_delta",
        "classical_gaussian",
        "laplace_rdp",
        "laplace_delta",
        "pure_rdp_bound",
        "randomized_response",
        "laplace_ball_rdp",
        "laplace_ball_delta",
    ] {
        assert!(seen.contains_key(function) || another_folder(), "no case of {function}");
    }
}

fn ball(input: &Value) -> DpEvent {
    DpEvent::LaplaceBall { scale: 1.0, sensitivity: number(input, "eps"), dim: input["d"].as_u64().unwrap() }
}

#[test]
fn output_perturbation_cases() {
    let file = load("optim-erm.json");
    let mut seen = BTreeMap::new();
    for case in file["cases"].as_array().unwrap() {
        let (id, function, input, out) = (&case["id"], case["fn"].as_str().unwrap(), &case["in"], &case["out"]);
        let relative = number(case, "rtol");
        *seen.entry(function.to_owned()).or_insert(0) += 1;
        let check = |what: &str, got: f64| check(id, what, got, number(out, what), relative, 1e-12);
        match function {
            "output_gaussian_sigma" => {
                let (epsilon, sensitivity) =
                    (Epsilon::new(number(input, "eps")).unwrap(), number(input, "sensitivity"));
                let multiplier = gaussian::noise_multiplier(epsilon, delta(input)).unwrap();
                check("analytic", multiplier.get() * sensitivity);
                let classical = gaussian::classical_noise_multiplier(epsilon, delta(input));
                assert_eq!(classical.is_ok(), out["classical_valid"].as_bool().unwrap(), "{id}");
                if let Ok(multiplier) = classical {
                    check("classical", multiplier.get() * sensitivity);
                }
            }
            "output_gaussian_zcdp" => {
                let sensitivity = number(input, "sensitivity");
                let std_dev =
                    zcdp::noise_multiplier(Rho::new(number(input, "rho")).unwrap()).unwrap().get() * sensitivity;
                check("sigma", std_dev);
                check("rdp_at_8", curve_at(&DpEvent::Gaussian { std_dev, sensitivity }, 8.0));
            }
            "fkt_rho_to_dp" => {
                // That paper's rho is sensitivity over standard deviation.
                let mu = number(input, "rho");
                check("eps", zcdp::epsilon_simple(0.5 * mu * mu, delta(input)).unwrap());
            }
            _ => {}
        }
    }
    for function in ["output_gaussian_sigma", "output_gaussian_zcdp", "fkt_rho_to_dp"] {
        assert!(seen.contains_key(function) || another_folder(), "no case of {function}");
    }
}
