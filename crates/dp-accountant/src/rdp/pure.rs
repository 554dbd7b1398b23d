//! Any pure guarantee: the curve of binary randomised response, the worst `epsilon`-DP mechanism.

use crate::logspace::log_one_plus_exp;

/// Product from which on `e^(-epsilon order)` is below 1e-13 and the exponent is factored out before the logarithm.
const LARGE: f64 = 30.0;

/// Returns the least upper bound on the Renyi divergences of order `order >= 1` between outputs of `epsilon`-DP mechanisms.
///
/// # Formula
/// ```text
/// 1/(a-1) ln( cosh((a - 1/2) epsilon) / cosh(epsilon/2) ),    a = order;    epsilon tanh(epsilon/2) at a = 1,
/// ```
///
/// the divergence of randomised response with truth probability `e^epsilon / (1 + e^epsilon)`, which dominates every `epsilon`-DP
/// mechanism. Evaluated from `moment - 1 = expm1(a epsilon) (1 - e^(-(a-1) epsilon)) / (1 + e^epsilon)`, a product of positive
/// factors, so nothing cancels at small epsilon or at orders close to 1.
///
/// # References
/// Bun and Steinke 2016, Proposition 3.3 (the same in `sinh`), arXiv:1605.02065; domination: Kairouz, Oh and
/// Viswanath 2015.
pub(crate) fn rdp(order: f64, epsilon: f64) -> f64 {
    let excess_order = order - 1.0;
    if excess_order == 0.0 {
        return epsilon * (0.5 * epsilon).tanh();
    }
    let exponent = excess_order * epsilon;
    if order * epsilon < LARGE {
        let excess = (order * epsilon).exp_m1() * -(-exponent).exp_m1() / (1.0 + epsilon.exp());
        excess.ln_1p() / excess_order
    } else {
        let correction = log_one_plus_exp(-(2.0 * order - 1.0) * epsilon) - log_one_plus_exp(-epsilon);
        epsilon + correction / excess_order
    }
}

#[cfg(test)]
mod tests {
    use super::rdp;

    #[test]
    fn is_that_of_randomised_response() {
        for epsilon in [0.01f64, 0.5, 2.0, 8.0] {
            let p = epsilon.exp() / (1.0 + epsilon.exp());
            for order in [1.01, 1.5, 2.0, 7.3] {
                let moment = p.powf(order) * (1.0 - p).powf(1.0 - order) + (1.0 - p).powf(order) * p.powf(1.0 - order);
                let expected = moment.ln() / (order - 1.0);
                assert!((rdp(order, epsilon) - expected).abs() < 1e-10 * expected.max(1e-3), "{epsilon} {order}");
            }
        }
    }

    #[test]
    fn is_below_both_simple_bounds_and_branches_meet() {
        for epsilon in [1e-8, 0.1, 1.0, 29.9, 700.0] {
            for order in [1.0, 1.0 + 1e-9, 1.1, 2.0, 40.0, 1e6] {
                let value = rdp(order, epsilon);
                let quadratic = 0.5 * order * epsilon * epsilon;
                assert!(value <= epsilon.min(quadratic) * (1.0 + 1e-14) && value > 0.0, "{epsilon} {order} {value}");
            }
        }
        for order in [1.2, 3.0, 500.0] {
            let epsilon = super::LARGE / order;
            let (below, above) = (rdp(order, epsilon * (1.0 - 1e-12)), rdp(order, epsilon * (1.0 + 1e-12)));
            assert!((above / below - 1.0).abs() < 1e-11, "{order}");
        }
    }
}
