//! Randomised responses.

use dp_accountant::DpEvent;
use serde_json::Value;

use super::{check, curve_at, number};

/// Returns the Renyi divergence of one record's answer.
pub fn divergence(kind: &str, input: &Value) -> f64 {
    let (buckets, noise) = match kind {
        "rdp_randomized_response" => (2, 2.0 * (1.0 - number(input, "truth_probability"))),
        _ => (input["buckets"].as_u64().unwrap(), number(input, "noise")),
    };
    curve_at(&DpEvent::RandomizedResponse { buckets, noise }, number(input, "alpha"))
}

/// Checks a case of `mechanisms.json`: the divergence of order 2.
pub fn check_case(id: &Value, input: &Value, out: &Value, relative: f64, absolute: f64) {
    let (buckets, epsilon) = (input["k"].as_u64().unwrap(), number(input, "eps"));
    let noise = buckets as f64 / (epsilon.exp() + buckets as f64 - 1.0);
    let got = curve_at(&DpEvent::RandomizedResponse { buckets, noise }, 2.0);
    // The event states the noise, whose rounding matters near 1: the divergence depends on its complement.
    let relative = relative + 2.0 * f64::EPSILON / (1.0 - noise);
    check(id, "rdp2", got, number(out, "rdp2"), relative, absolute);
}
