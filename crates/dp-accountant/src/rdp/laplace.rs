//! Coordinate-wise Laplace noise.

/// Number of terms of the power series in `order x`; the first dropped is below `0.5^18 / 20!`.
const SERIES_TERMS: u32 = 20;

/// Returns the Renyi divergence of order `order >= 1` between Laplace laws `x` scales apart.
///
/// # Formula
/// ```text
/// 1/(a-1) ln( a/(2a-1) e^((a-1)x) + (a-1)/(2a-1) e^(-a x) ),    a = order;    x + e^-x - 1 at a = 1.
/// ```
///
/// Written as `x + ln(1 + (a-1) expm1(-(2a-1)x)/(2a-1)) / (a-1)` it is stable unless `a x` is small, when the leading terms
/// cancel. In that case the moment is expanded in `x`: its excess over 1 is `p sum_(k>=2) s_k x^k/k!` with `p = a(a-1)`, `s_1 =
/// 0`, `s_2 = 1`, `s_(k+1) = p s_(k-1) - s_k`.
///
/// A shift of L1 norm `x` over several coordinates costs no more: the exponential of `(a-1)` times this is a positive
/// sum of exponentials of `x`, so this is convex in `x`, and 0 at 0, hence superadditive.
///
/// # References
/// Mironov 2017, Proposition 6, arXiv:1702.07476.
pub(crate) fn rdp(order: f64, x: f64) -> f64 {
    let excess_order = order - 1.0;
    if order * x < 0.5 {
        let p = order * excess_order;
        let (mut before, mut now) = (0.0, 1.0);
        let mut power = 0.5 * x * x;
        let mut sum = power;
        for k in 3..SERIES_TERMS {
            (before, now) = (now, p * before - now);
            power *= x / f64::from(k);
            sum += now * power;
        }
        let excess = p * sum;
        // ln(1 + p S)/(a - 1) = a S ln(1 + p S)/(p S).
        let shrink = if excess > 0.0 { excess.ln_1p() / excess } else { 1.0 };
        return order * sum * shrink;
    }
    let tail = (-(2.0 * order - 1.0) * x).exp_m1() / (2.0 * order - 1.0);
    if excess_order == 0.0 {
        return x + tail;
    }
    x + (excess_order * tail).ln_1p() / excess_order
}

#[cfg(test)]
mod tests {
    use super::rdp;

    #[test]
    fn by_integration() {
        let (order, x, step) = (2.5f64, 0.7f64, 1e-4);
        let moment: f64 = (-300_000..300_000)
            .map(|i| (f64::from(i) + 0.5) * step)
            .map(|z: f64| 0.5 * (-order * z.abs() + (order - 1.0) * (z - x).abs()).exp() * step)
            .sum();
        assert!((moment.ln() / (order - 1.0) - rdp(order, x)).abs() < 1e-7);
    }

    #[test]
    fn series_and_closed_form_meet() {
        for order in [1.0, 1.001, 1.5, 2.0, 17.3, 1e4] {
            let x = 0.5 / order;
            let (below, above) = (rdp(order, x * (1.0 - 1e-9)), rdp(order, x * (1.0 + 1e-9)));
            assert!((above / below - 1.0).abs() < 1e-8, "order {order}: {below} {above}");
        }
    }

    #[test]
    fn limits() {
        assert!((rdp(1.0, 1.0) - (-1f64).exp()).abs() < 1e-16);
        assert!((rdp(1e6, 3.0) - 3.0).abs() < 1e-5);
        // order x^2 / 2 for a small shift.
        assert!((rdp(4.0, 1e-9) / 2e-18 - 1.0).abs() < 1e-8);
        // The Kullback-Leibler limit is approached continuously.
        assert!((rdp(1.0 + 1e-9, 0.3) / rdp(1.0, 0.3) - 1.0).abs() < 1e-8);
    }
}
