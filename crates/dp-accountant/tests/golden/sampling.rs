//! Renyi curves under sampling.

use dp_accountant::{NoiseMultiplier, RdpOrder, SamplingRate, rdp};
use serde_json::Value;

use super::number;

pub fn value(kind: &str, input: &Value) -> Option<f64> {
    let order = || RdpOrder::new(number(input, "alpha")).unwrap();
    let rate = || SamplingRate::new(number(input, "sampling_rate")).unwrap();
    Some(match kind {
        "rdp_poisson_gaussian" => {
            let noise = NoiseMultiplier::new(number(input, "noise_multiplier")).unwrap();
            rdp::poisson_sampled_gaussian(order(), rate(), noise)
        }
        _ => return None,
    })
}

pub const KINDS: [&str; 1] = ["rdp_poisson_gaussian"];
