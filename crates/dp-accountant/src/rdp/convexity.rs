//! The effect of sampling on any divergence, by convexity alone.

use crate::logspace::log_mixed;

/// Returns the Renyi divergence if, with probability `1 - rate`, the releases do not differ, from the divergence otherwise.
///
/// # Formula
/// ```text
/// ln( 1 - q + q e^((a-1) rdp) ) / (a-1),    q rdp at a = 1,
/// ```
///
/// because `e^((a-1) D_a(P||Q)) = E_Q[(P/Q)^a]` is jointly convex in `(P, Q)`, as is the Kullback-Leibler divergence. It holds in
/// both directions, under every relation, and for Poisson samples as well as those of fixed size.
pub(crate) fn mixed_with_nothing(order: f64, rate: f64, rdp: f64) -> f64 {
    let excess = order - 1.0;
    let exponent = excess * rdp;
    let mixed = if exponent < 1e-16 {
        // ln(1 + q (e^x - 1)) <= q (e^x - 1) <= q x (1 + x) for x <= 1.
        rate * rdp * (1.0 + exponent)
    } else if exponent < 700.0 {
        (rate * exponent.exp_m1()).ln_1p() / excess
    } else {
        // The logarithm of the rate has a relative rounding error of one unit.
        (log_mixed(rate, exponent) + 4.0 * f64::EPSILON * rate.ln().abs()) / excess
    };
    // NaN, from an infinite divergence, fails the comparison.
    let rounded = mixed * (1.0 + 8.0 * f64::EPSILON) + f64::MIN_POSITIVE;
    if rounded < rdp { rounded } else { rdp }
}

#[cfg(test)]
mod tests {
    use super::mixed_with_nothing;

    #[test]
    fn branches_meet_and_lie_below_the_unsampled() {
        for order in [1.0, 1.001, 2.0, 50.0, 1e6] {
            for rate in [1e-9, 0.01, 0.5, 0.999] {
                let mut before = 0.0;
                for i in -300..300 {
                    let rdp = (0.1 * f64::from(i)).exp();
                    let value = mixed_with_nothing(order, rate, rdp);
                    assert!(value <= rdp && value >= rate * rdp && value >= before, "{order} {rate} {rdp}: {value}");
                    before = value;
                }
            }
        }
        assert_eq!(mixed_with_nothing(2.0, 0.5, f64::INFINITY), f64::INFINITY);
        // A rate so small that the exponential does not dominate: ln(1 + e^(701 + ln 1e-305)) at order 2.
        let exact = (701.0f64 - 305.0 * 10f64.ln()).exp().ln_1p();
        let got = mixed_with_nothing(2.0, 1e-305, 701.0);
        assert!(got >= exact * (1.0 - 1e-13) && got <= exact * (1.0 + 1e-10), "{got} {exact}");
        assert!((mixed_with_nothing(2.0, 0.5, 1.0) - (0.5 + 0.5 * 1f64.exp()).ln()).abs() < 1e-14);
    }
}
