//! Accounting of steps on a Poisson sample of lists, where the labels of one list change: `ranking.json`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use dp_accountant::calibrate::Evaluator;
use dp_accountant::exact::PrivacyCurve;
use dp_accountant::rdp::conversion;
use dp_accountant::{AdjacencyKind, Delta, DpEvent, RdpOrder, SamplingRate, gaussian, rdp};
use serde_json::Value;

use super::{another_folder, check, delta, load, number, numbers};

fn steps(input: &Value, rate: &str, radius: f64) -> DpEvent {
    let event = DpEvent::PoissonSampledReplacement {
        sampling_rate: number(input, rate),
        std_dev: number(input, "sigma"),
        distance: 1.0,
        radius,
    };
    DpEvent::SelfComposed { event: Box::new(event), count: input["steps"].as_u64().unwrap() }
}

/// The values are upper bounds on a grid: ours may be lower by that grid's slack, and higher only by our own slack.
#[track_caller]
fn check_steps(id: &Value, event: &DpEvent, input: &Value, expected: f64, relative: f64, absolute: f64) {
    let found = PrivacyCurve::new_under(event, AdjacencyKind::ChangeListLabels).unwrap().epsilon(delta(input)).unwrap();
    check(id, "upper end", found.upper, expected, relative, absolute);
    assert!(found.upper <= expected * (1.0 + 2e-4) + 1e-12, "{id}: {found:?} is above {expected}");
    assert!(found.lower <= found.upper, "{id}: {found:?}");
    assert!(found.lower > 0.8 * found.upper || another_folder(), "{id}: {found:?} is wide");
    let renyi = Evaluator::Renyi.epsilon(event, delta(input)).unwrap();
    assert!(renyi >= found.lower, "{id}: by Renyi divergence only {renyi}, below {found:?}");
}

/// Published accounting: integer orders only, and the classic conversion.
pub fn by_integer_orders(
    orders: RangeInclusive<u32>,
    steps: f64,
    delta: Delta,
    divergence: impl Fn(u32) -> f64,
) -> f64 {
    orders
        .map(|order| {
            let at = RdpOrder::new(f64::from(order)).unwrap();
            conversion::epsilon_mironov(at, steps * divergence(order), delta).unwrap()
        })
        .fold(f64::INFINITY, f64::min)
}

fn published(input: &Value, divergence: impl Fn(u32) -> f64) -> f64 {
    let orders = numbers(input, "integer_orders");
    by_integer_orders(orders[0] as u32..=orders[1] as u32, number(input, "steps"), delta(input), divergence)
}

#[test]
fn accounting_of_ranking() {
    let file = load("ranking.json");
    let mut seen = BTreeMap::new();
    for case in file["cases"].as_array().unwrap() {
        let (id, function, input, out) = (&case["id"], case["fn"].as_str().unwrap(), &case["in"], &case["out"]);
        let (relative, absolute) = (number(case, "rtol"), number(case, "atol"));
        *seen.entry(function.to_owned()).or_insert(0) += 1;
        match function {
            "accounting_symmetric" => {
                check_steps(id, &steps(input, "rate", 0.5), input, number(out, "eps"), relative, absolute);
            }
            "accounting" => {
                check_steps(id, &steps(input, "gamma", 1.0), input, number(out, "pld_two_sided"), relative, absolute);
                let (rate, sigma) = (SamplingRate::new(number(input, "gamma")).unwrap(), number(input, "sigma"));
                let curve = |order: f64| 0.5 * order / (sigma * sigma);
                let fixed =
                    published(input, |order| rdp::without_replacement_as_published(order, rate, f64::INFINITY, curve));
                check(id, "wang_wor_rdp_classic", fixed, number(out, "wang_wor_rdp_classic"), 1e-9, 0.0);
                // The same with the sampled Gaussian's own divergence.
                let poisson = published(input, |order| {
                    let noise = dp_accountant::NoiseMultiplier::new(sigma).unwrap();
                    rdp::poisson_sampled_gaussian(RdpOrder::new(f64::from(order)).unwrap(), rate, noise)
                });
                check(id, "poisson_rdp_classic", poisson, number(out, "poisson_rdp_classic"), 1e-9, 0.0);
            }
            "accounting_cyclic" => {
                let mu = number(input, "uses").sqrt() / number(input, "sigma");
                check(id, "eps", gaussian::epsilon(mu, delta(input)).unwrap(), number(out, "eps"), relative, absolute);
                let step = DpEvent::Gaussian { std_dev: number(input, "sigma"), sensitivity: 1.0 };
                let event = DpEvent::SelfComposed { event: Box::new(step), count: input["uses"].as_u64().unwrap() };
                let found = Evaluator::Tightest.epsilon(&event, delta(input)).unwrap();
                check(id, "eps", found, number(out, "eps"), relative, absolute);
            }
            _ => {}
        }
    }
    for function in ["accounting", "accounting_symmetric", "accounting_cyclic"] {
        assert!(seen.contains_key(function) || another_folder(), "no case of {function}");
    }
}
