//! Renyi curves under sampling.

use dp_accountant::rdp::{self, RdpCurve};
use dp_accountant::{Delta, DpEvent, NoiseMultiplier, RdpOrder, SamplingRate, exact, gaussian, gdp};
use serde_json::Value;

use super::{check, curve_at, number, numbers};

fn value(kind: &str, input: &Value) -> Option<f64> {
    let order = || number(input, "alpha");
    let rate = || SamplingRate::new(number(input, "sampling_rate")).unwrap();
    Some(match kind {
        "rdp_poisson_gaussian" => {
            let noise = NoiseMultiplier::new(number(input, "noise_multiplier")).unwrap();
            rdp::poisson_sampled_gaussian(RdpOrder::new(order()).unwrap(), rate(), noise)
        }
        "rdp_poisson_general" => rdp::poisson_sampled_as_published(order() as u32, rate(), base_curve(input)),
        "rdp_wor" => rdp::without_replacement_as_published(order() as u32, rate(), f64::INFINITY, base_curve(input)),
        "rdp_wor_full" => {
            rdp::without_replacement_as_published(order() as u32, rate(), pure_epsilon(input), base_curve(input))
        }
        "pnsgd_iteration_rho" => {
            let (steps, noise, batches) =
                (numbers(input, "step_sizes"), numbers(input, "noise_std"), numbers(input, "batch_sizes"));
            let lipschitz = number(input, "lipschitz");
            iteration_rho(
                steps.iter().zip(&batches).map(|(step, batch)| 2.0 * lipschitz * step / batch).collect(),
                steps.iter().zip(&noise).map(|(step, noise)| step * noise).collect(),
                1.0,
            )
        }
        _ => return None,
    })
}

fn base(input: &Value) -> DpEvent {
    let base = &input["base"];
    match base["type"].as_str().unwrap() {
        "gaussian" => DpEvent::Gaussian { std_dev: number(base, "sigma"), sensitivity: 1.0 },
        "laplace" => DpEvent::Laplace { scale: number(base, "scale"), sensitivity: 1.0 },
        "puredp" => DpEvent::PureDp { epsilon: number(base, "epsilon") },
        other => panic!("no base {other}"),
    }
}

fn base_curve(input: &Value) -> impl Fn(f64) -> f64 {
    let curve = RdpCurve::new(&base(input)).unwrap();
    move |order| curve.at(RdpOrder::new(order).unwrap())
}

fn pure_epsilon(input: &Value) -> f64 {
    match base(input) {
        DpEvent::Laplace { scale, .. } => 1.0 / scale,
        DpEvent::PureDp { epsilon } => epsilon,
        _ => f64::INFINITY,
    }
}

fn iteration_rho(sensitivities: Vec<f64>, std_devs: Vec<f64>, contraction: f64) -> f64 {
    dp_accountant::zcdp::rho(&DpEvent::AmplifiedByIteration { sensitivities, std_devs, contraction }).unwrap()
}

/// Checks a case of this part; returns whether it is one.
pub fn check_case(id: &Value, kind: &str, input: &Value, expected: &Value, relative: f64, absolute: f64) -> bool {
    let rate = || number(input, "sampling_rate");
    let poisson = |event| DpEvent::PoissonSampled { sampling_rate: rate(), event: Box::new(event) };
    let fixed = |event| DpEvent::SampledWithoutReplacement { sampling_rate: rate(), event: Box::new(event) };
    // A smaller value is right if it comes from another theorem; it never exceeds the stated one.
    let at_most = |got: f64| {
        let expected = expected.as_f64().unwrap();
        assert!(got <= expected * (1.0 + relative) + absolute, "{id} {kind}: {got} > {expected}");
        assert!(got >= 0.0, "{id} {kind}: {got}");
    };
    let stated = value(kind, input);
    if let Some(got) = stated {
        check(id, kind, got, expected.as_f64().unwrap(), relative, absolute);
    }
    match kind {
        "rdp_poisson_tight" => {
            let (order, expected) = (number(input, "alpha"), expected.as_f64().unwrap());
            let curve = base_curve(input);
            let sum = rdp::poisson_sampled(RdpOrder::new(order).unwrap(), SamplingRate::new(rate()).unwrap(), &curve);
            // Convexity alone is better only for a large privacy loss of the base.
            let convex = ((order - 1.0) * curve(order)).exp_m1() * rate();
            let capped = (convex.ln_1p() / (order - 1.0)).min(curve(order)).min(expected);
            check(id, kind, sum, capped, relative, absolute);
            at_most(curve_at(&poisson(base(input)), order));
        }
        "rdp_wor" | "rdp_wor_full" => at_most(curve_at(&fixed(base(input)), number(input, "alpha"))),
        "rdp_wor_fractional" => {
            let order = number(input, "alpha");
            let rate = SamplingRate::new(rate()).unwrap();
            let got = rdp::without_replacement(RdpOrder::new(order).unwrap(), rate, f64::INFINITY, base_curve(input));
            check(id, kind, got, expected.as_f64().unwrap(), relative, absolute);
            at_most(curve_at(&fixed(base(input)), order));
        }
        "contractive_iteration_rho" => {
            let contraction = number(input, "contraction");
            let noise = numbers(input, "noise_std");
            let mut sensitivities = vec![0.0; noise.len()];
            sensitivities[input["differing_index"].as_u64().unwrap() as usize] = number(input, "shift");
            let got = iteration_rho(sensitivities, noise, contraction);
            check(id, kind, got, expected.as_f64().unwrap(), relative, absolute);
        }
        "dpsgd_rdp_epsilon_best_order" => {
            let (noise, steps) = (number(input, "noise_multiplier"), input["steps"].as_u64().unwrap());
            let step = poisson(DpEvent::Gaussian { std_dev: noise, sensitivity: 1.0 });
            let curve = RdpCurve::new(&DpEvent::SelfComposed { event: Box::new(step), count: steps }).unwrap();
            let delta = Delta::new(number(input, "delta")).unwrap();
            let order = RdpOrder::new(number(expected, "alpha")).unwrap();
            let improved = rdp::conversion::epsilon_improved(order, curve.at(order), delta).unwrap();
            check(id, kind, improved, number(expected, "epsilon"), relative, absolute);
            // The centred conversion may be smaller.
            let got = curve.epsilon(delta);
            assert!(got <= number(expected, "epsilon") * (1.0 + 1e-9), "{id}: {got}");
            let step = poisson(DpEvent::Gaussian { std_dev: noise, sensitivity: 1.0 });
            let exact = exact::epsilon(&DpEvent::SelfComposed { event: Box::new(step), count: steps }, delta).unwrap();
            assert!(got >= exact.lower, "{id}: Renyi's {got} is below {exact:?}");
        }
        // If the central limit's value is too small, it must not be taken as a bound.
        "dpsgd_epsilon" => {
            let noise = NoiseMultiplier::new(number(input, "noise_multiplier")).unwrap();
            let steps = input["steps"].as_u64().unwrap();
            let mu = gdp::central_limit_approximation(SamplingRate::new(rate()).unwrap(), noise, steps);
            let limit = gaussian::epsilon(mu, Delta::new(number(input, "delta")).unwrap()).unwrap();
            let truth = number(expected, "lower");
            if (rate(), noise.get(), steps) == (0.001, 0.6, 20_000) {
                assert!((limit - 2.76).abs() < 0.01 && truth > 4.45, "{id}: {limit} {truth}");
            }
            let step = poisson(DpEvent::Gaussian { std_dev: noise.get(), sensitivity: 1.0 });
            let curve = RdpCurve::new(&DpEvent::SelfComposed { event: Box::new(step), count: steps }).unwrap();
            let renyi = curve.epsilon(Delta::new(number(input, "delta")).unwrap());
            assert!(renyi >= truth, "{id}: Renyi's {renyi} is below the truth {truth}");
            return false;
        }
        _ => return stated.is_some(),
    }
    true
}

pub const KINDS: [&str; 9] = [
    "rdp_poisson_gaussian",
    "rdp_poisson_general",
    "rdp_poisson_tight",
    "rdp_wor",
    "rdp_wor_full",
    "rdp_wor_fractional",
    "pnsgd_iteration_rho",
    "contractive_iteration_rho",
    "dpsgd_rdp_epsilon_best_order",
];
