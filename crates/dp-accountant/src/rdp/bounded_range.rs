//! A privacy loss of bounded range: the exponential mechanism, report-noisy-max with Gumbel noise, and similar mechanisms.
//!
//! The loss `L = ln P/Q` of each pair of neighbours lies in an interval `[t - r, t]`, of length `r`. As `E_Q e^L = 1`, and
//! `e^(order L)` is convex in `e^L`, no law with losses in that interval has a larger moment than the law on its two ends. So the
//! divergence is at most that of the worst two-point pair, which is itself a mechanism of range `r`. Both directions have the
//! same bound, since `-L` has the same range.
//!
//! **The supremum over `t` in closed form.** With `a` the order, the moment of the two-point pair is
//! `(A u^(a-1) - B u^a)/(1 - e^-r)` in `u = e^t`, with `A = 1 - e^(-a r)` and `B = e^-r - e^(-a r)`: it is largest at
//! `u = (a-1) A/(a B)`, inside the interval. In terms of `g(x) = ln(sinh(x/2)/(x/2))`, even, the result is
//!
//! ```text
//! D = ( a g(a r) - (a-1) g((a-1) r) - g(r) ) / (a-1).
//! ```
//!
//! **`D` over the order decreases**, so that `rho` of zero-concentrated differential privacy is the limit at order 1. By the
//! product of `sinh`, `g(x)` is a sum of terms `ln(1 + c x²)`, so it suffices to consider one of them. With `s = a - 1/2` the
//! numerator is then `F(s) = (1/2 + s) h(1/2 + s) + (1/2 - s) h(1/2 - s)`, `h(x) = ln(1 + c x²)`, minus its value at `s = 1/2`,
//! and `a (a-1) = s² - 1/4`; the claim follows if `F` is concave in `s²`, that is, if `F'(s)/s` decreases for `s >= 1/2`. It is
//! twice the mean over `[s - 1/2, s + 1/2]` of `x p(x)` with `p` positive and
//! decreasing, and its derivative has the sign of
//!
//! ```text
//! integral of p + x p' - x p/s  =  integral of -p' (W - x),    W(x) = (1/4 - (x - s)²)/(2 s),
//! ```
//!
//! after integration by parts, while `W(x) <= x` there: at `s = 1/2` it says `0 <= (1/2 + (x - s))²`, and the gap grows
//! with `s`.

use crate::error::{Error, non_negative};
use crate::params::RdpOrder;

/// Product of order and range below which the closed form is expanded in powers.
const SMALL: f64 = 0.5;

/// Covers the rounding of a dozen operations, relative to the sum of the absolute terms.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

/// Coefficients of `x^2, x^4, ...` in `ln(sinh(x/2)/(x/2))`: `B_2k / (2k (2k)!)`. The first dropped is below 1e-13,
/// against 0.04, and `x^16` is below 2e-5.
const SERIES: [f64; 7] = [
    1.0 / 24.0,
    -1.0 / 2880.0,
    1.0 / 181_440.0,
    -1.0 / 9_676_800.0,
    1.0 / 479_001_600.0,
    -691.0 / 15_692_092_416_000.0,
    1.0 / 1_046_139_494_400.0,
];

/// Returns the least upper bound on the Renyi divergences between neighbours' outputs of a mechanism whose privacy loss has a
/// range of at most `range`.
///
/// # Formula
/// ```text
/// ( a g(a r) - (a-1) g((a-1) r) - g(r) ) / (a-1),    a = order, r = range, g(x) = ln(sinh(x/2)/(x/2))
/// ```
///
/// # Errors
/// `range` negative, NaN or infinite.
///
/// # Examples
/// ```
/// use dp_accountant::{RdpOrder, rdp};
/// // The exponential mechanism with epsilon = 1, at order 8; the worst epsilon-DP mechanism costs 0.95.
/// let cost = rdp::bounded_range(RdpOrder::new(8.0)?, 1.0)?;
/// assert!((cost - 0.6354593985644067).abs() < 1e-14);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Dong, Durfee and Rogers 2020, "Optimal differential privacy composition for exponential mechanisms", Lemma 3.2 (the
/// two-point pairs), arXiv:1909.13830; Cesar and Rogers 2021 have `order range^2 / 8`, which this never exceeds.
pub fn bounded_range(order: RdpOrder, range: f64) -> Result<f64, Error> {
    Ok(rdp(order.get(), non_negative("range", range)?))
}

/// Returns an upper bound on the Renyi divergence of order `order >= 1`, exact up to rounding.
pub(crate) fn rdp(order: f64, range: f64) -> f64 {
    let excess_order = order - 1.0;
    let quadratic = 0.125 * order * range * range;
    let exact = if order * range < SMALL {
        series(excess_order, range)
    } else if excess_order == 0.0 {
        kullback_leibler(range)
    } else {
        // g(a r) - g((a-1) r) and g(a r) - g(r), each a difference of numbers of the same sign.
        let lower = sinh_ratio(excess_order * range, range);
        let upper = sinh_ratio(range, excess_order * range);
        let logs = excess_order.recip().ln_1p() + excess_order.ln_1p() / excess_order;
        let total = lower + upper / excess_order;
        (total - logs) + ROUNDING * (total + logs)
    };
    // NaN, which a product that overflows can give, is ignored by `min`.
    exact.min(quadratic).min(range)
}

/// Returns `ln(sinh((x + y)/2) / sinh(x/2))`, a sum of positive terms.
fn sinh_ratio(x: f64, y: f64) -> f64 {
    0.5 * y + (-(-y).exp_m1() / x.exp_m1()).ln_1p()
}

/// Returns `rho` of zero-concentrated differential privacy, which is the divergence at order 1: `g(r) + r g'(r)`.
pub(crate) fn kullback_leibler(range: f64) -> f64 {
    let quadratic = 0.125 * range * range;
    if range < SMALL {
        return series(0.0, range).min(quadratic);
    }
    let half = 0.5 * range;
    let positive = half + half / half.tanh();
    let negative = 1.0 - (-(-range).exp_m1() / range).ln();
    (positive - negative + ROUNDING * (positive + negative)).min(quadratic).min(range)
}

/// Returns the power series: `((1 + h)^n - h^n - 1)/h` for each odd power, by its binomial terms, all positive.
fn series(excess_order: f64, range: f64) -> f64 {
    let mut sum = 0.0;
    let mut power = 1.0;
    for (index, coefficient) in SERIES.iter().enumerate() {
        power *= range * range;
        let n = 2 * index + 3;
        let (mut binomial, mut of_order, mut bracket) = (1.0, 1.0, 0.0);
        for k in 1..n {
            binomial *= (n + 1 - k) as f64 / k as f64;
            bracket += binomial * of_order;
            of_order *= excess_order;
        }
        sum += coefficient * power * bracket;
    }
    sum * (1.0 + 64.0 * f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::{SMALL, kullback_leibler, rdp};
    use crate::rdp::pure;

    /// Returns the moment of the two-point pair with losses `t` and `t - r`.
    fn two_point(order: f64, range: f64, t: f64) -> f64 {
        let upper_mass = -(t - range).exp_m1() / (t.exp() - (t - range).exp());
        let moment = upper_mass * (order * t).exp() + (1.0 - upper_mass) * (order * (t - range)).exp();
        moment.ln() / (order - 1.0)
    }

    #[test]
    fn is_the_supremum_over_two_point_pairs() {
        for range in [0.3, 1.0, 4.0, 12.0] {
            for order in [1.01, 1.5, 2.0, 7.3, 40.0] {
                let steps = 20_000;
                let largest = (1..steps)
                    .map(|i| two_point(order, range, range * f64::from(i) / f64::from(steps)))
                    .fold(0.0, f64::max);
                let got = rdp(order, range);
                assert!(got >= largest * (1.0 - 1e-12) && got <= largest * (1.0 + 1e-6), "{range} {order}");
            }
        }
    }

    #[test]
    fn branches_meet_and_order_one_is_a_limit() {
        for order in [1.0, 1.0 + 1e-8, 1.3, 5.0, 1e4, 1e9] {
            let range = SMALL / order;
            let (below, above) = (rdp(order, range * (1.0 - 1e-12)), rdp(order, range * (1.0 + 1e-12)));
            assert!((above / below - 1.0).abs() < 1e-10, "{order}: {below} {above}");
        }
        for range in [0.1, 2.0, 30.0] {
            assert!((rdp(1.0 + 1e-7, range) / kullback_leibler(range) - 1.0).abs() < 1e-6, "{range}");
        }
    }

    #[test]
    fn lies_below_the_simple_bounds_and_costs_less_per_order_as_the_order_grows() {
        for range in [1e-9, 0.1, 1.0, 5.0, 60.0, 900.0] {
            let mut before = kullback_leibler(range) * (1.0 + 1e-9);
            let mut last = 0.0;
            for step in 0..200 {
                let order = 1.0 + (-9.0 + 0.15 * f64::from(step)).exp();
                let value = rdp(order, range);
                assert!(value <= pure::rdp(order, range) * (1.0 + 1e-12) && value <= range, "{range} {order}");
                assert!(value / order <= before * (1.0 + 1e-9), "{range} {order}: {} {before}", value / order);
                assert!(value >= last * (1.0 - 1e-9), "{range} {order}");
                (before, last) = (value / order, value);
            }
        }
    }
}
