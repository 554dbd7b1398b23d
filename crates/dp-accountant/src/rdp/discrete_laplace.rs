//! The discrete Laplace law.

use super::pure;

/// Returns the Renyi divergence of order `order >= 1` between discrete Laplace laws of scale `t`, `sensitivity` steps apart.
///
/// # Formula
/// With `q = e^(-1/t)`, `x = sensitivity/t` and a = order,
///
/// ```text
/// x + 1/(a-1) ln( 1 + B expm1(-(2a-1) x) ),    B = q/(1+q) (1 - q^(2a-2))/(1 - q^(2a-1)).
/// ```
///
/// It is `ln(A e^((a-1)x) + B e^(-a x))/(a-1)` with `A + B = 1`, from the sums over the outcomes below 0, above the sensitivity
/// and between; it is larger than that of the continuous law at the same x. The exponential of `(a-1)` times it is convex in the
/// sensitivity and 1 at 0, so that a shift split over several coordinates costs no more.
pub(crate) fn rdp(order: f64, scale: f64, sensitivity: u64) -> f64 {
    let x = crate::rounding::count_up(sensitivity) / scale;
    let excess_order = order - 1.0;
    let ratio = (-1.0 / scale).exp();
    // B/(a-1), which is finite at a = 1.
    let numerator =
        if excess_order == 0.0 { 2.0 / scale } else { -(-2.0 * excess_order / scale).exp_m1() / excess_order };
    let per_order = ratio / (1.0 + ratio) * numerator / -(-(2.0 * order - 1.0) / scale).exp_m1();
    let fall = per_order * (-(2.0 * order - 1.0) * x).exp_m1();
    let logarithm = if excess_order == 0.0 { fall } else { (excess_order * fall).ln_1p() / excess_order };
    // For a small x nearly everything cancels: the remainder is rounded up, and the bound for any x-DP law applies.
    (x + logarithm + 16.0 * f64::EPSILON * x).max(0.0).min(pure::rdp(order, x))
}

#[cfg(test)]
mod tests {
    use super::rdp;
    use crate::rdp::laplace;

    fn by_summation(order: f64, scale: f64, sensitivity: u64) -> f64 {
        let norm = (1.0 - (-1.0 / scale).exp()) / (1.0 + (-1.0 / scale).exp());
        let moment: f64 = (-40_000i32..40_000)
            .map(|k| {
                let (near, far) = (f64::from(k).abs(), (f64::from(k) - sensitivity as f64).abs());
                norm * (-(order * near - (order - 1.0) * far) / scale).exp()
            })
            .sum();
        moment.ln() / (order - 1.0)
    }

    #[test]
    fn by_enumeration() {
        for (order, scale, sensitivity) in
            [(2.0, 1.0, 1), (2.0, 10.0, 10), (1.3, 4.0, 3), (20.0, 7.0, 2), (5.5, 0.4, 2)]
        {
            let (got, expected) = (rdp(order, scale, sensitivity), by_summation(order, scale, sensitivity));
            assert!((got / expected - 1.0).abs() < 1e-11, "{order} {scale} {sensitivity}: {got} {expected}");
        }
        // One step is a binary randomised response: 0.7353, where the continuous law has 0.6191.
        assert!((rdp(2.0, 1.0, 1) - 0.7353).abs() < 5e-5);
    }

    #[test]
    fn tends_to_the_continuous_law_from_above() {
        for (order, steps) in [(1.5, 100u64), (8.0, 1000), (300.0, 10_000)] {
            let scale = steps as f64 * 1.7;
            let (got, limit) = (rdp(order, scale, steps), laplace::rdp(order, 1.0 / 1.7));
            assert!(got >= limit && got < limit * (1.0 + order / steps as f64), "{order} {steps}: {got} {limit}");
        }
    }

    #[test]
    fn limits() {
        assert!((rdp(1.0 + 1e-9, 3.0, 2) - rdp(1.0, 3.0, 2)).abs() < 1e-8);
        assert!((rdp(1e6, 3.0, 2) - 2.0 / 3.0).abs() < 1e-5);
        assert_eq!(rdp(4.0, 1e38, 1), crate::rdp::pure::rdp(4.0, 1e-38));
        let tiny = rdp(4.0, 1e9, 1);
        assert!(tiny > 0.0 && tiny < 1e-17, "{tiny}");
    }
}
