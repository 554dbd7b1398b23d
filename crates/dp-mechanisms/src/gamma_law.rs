//! The gamma distribution with integer or half-integer shape: its distribution function, for the law of a norm.
//!
//! Implemented here and not taken from a library because shapes go up to `2^32`, for which `a ln x - x - ln Gamma(a)` loses most
//! digits to cancellation; here that expression is never computed.

/// Returns `ln Gamma(x)` for `x >= 1/2`, with an error of about 1e-14 or, if that is more, a relative 1e-15.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    // Gamma(x) = Gamma(x + n) / (x (x + 1) ... (x + n - 1)), up to where Stirling's series is exact in doubles.
    let (mut shifted, mut product) = (x, 1.0);
    while shifted < 16.0 {
        product *= shifted;
        shifted += 1.0;
    }
    let half_ln_two_pi = 0.5 * core::f64::consts::TAU.ln();
    (shifted - 0.5) * shifted.ln() - shifted + half_ln_two_pi + stirling_remainder(shifted) - f64::ln(product)
}

/// Returns `ln Gamma(x) - ((x - 1/2) ln x - x + ln(2 pi)/2)` for `x >= 16`: Stirling's series, next term below 1e-16.
fn stirling_remainder(x: f64) -> f64 {
    let y = 1.0 / (x * x);
    (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y * (1.0 / 1188.0))))) / x
}

/// Returns `x/a - 1 - ln(x/a)`, without cancellation near `x = a`.
fn excess(a: f64, x: f64) -> f64 {
    let t = (x - a) / a;
    if t.abs() > 0.1 {
        return t - (x / a).ln();
    }
    // t - ln(1 + t) = t²/2 - t³/3 + ...; 17 terms leave 0.1^19.
    let mut sum = 0.0;
    for power in (2..=18).rev() {
        sum = 1.0 / f64::from(power) - t * sum;
    }
    t * t * sum
}

/// Returns `x^a e^(-x) / Gamma(a)` for `a >= 1`, `x > 0`.
fn scaled_density(a: f64, x: f64) -> f64 {
    if a < 16.0 {
        return (a * x.ln() - x - ln_gamma(a)).exp();
    }
    // a ln x - x - ln Gamma(a) = -a (λ - 1 - ln λ) + ln(a / (2 pi)) / 2 - remainder, λ = x / a.
    let exponent = -a * excess(a, x) - stirling_remainder(a);
    (a / core::f64::consts::TAU).sqrt() * exponent.exp()
}

/// Returns the lower and the upper tail of the gamma distribution with shape `a >= 1` and scale 1 at `x`.
///
/// The smaller of the two is computed, and the other is its complement. The relative error of the smaller one is about 1e-14, if
/// it is a normal number.
pub(crate) fn tails(a: f64, x: f64) -> (f64, f64) {
    if !(x > 0.0) {
        return (0.0, 1.0);
    }
    if x == f64::INFINITY {
        return (1.0, 0.0);
    }
    let density = scaled_density(a, x);
    if x <= a {
        let lower = (density * lower_series(a, x)).min(1.0);
        (lower, 1.0 - lower)
    } else {
        let upper = (density * upper_fraction(a, x)).min(1.0);
        (1.0 - upper, upper)
    }
}

/// Returns `P(a, x) Gamma(a) / (x^a e^-x) = 1/a + x/(a (a+1)) + x²/(a (a+1) (a+2)) + ...`, for `x <= a`.
fn lower_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut denominator) = (1.0 / a, 1.0 / a, a);
    // Terms fall at least as fast as exp(-k² / (2 (a + k))): about 9 √a + 40 of them contribute.
    let cap = 10_000 + 20 * a.sqrt() as u64;
    for _ in 0..cap {
        denominator += 1.0;
        term *= x / denominator;
        sum += term;
        if term <= sum * 1e-17 {
            break;
        }
    }
    sum
}

/// Returns `Q(a, x) Gamma(a) / (x^a e^-x)` for `x > a`: Legendre's continued fraction by the modified Lentz method.
fn upper_fraction(a: f64, x: f64) -> f64 {
    let mut b = x + 1.0 - a;
    let mut c = f64::INFINITY;
    let mut d = 1.0 / b;
    let mut fraction = d;
    let cap = 10_000 + 20 * a.sqrt() as u64;
    for k in 1..=cap {
        let k = k as f64;
        let numerator = -k * (k - a);
        b += 2.0;
        d = 1.0 / (numerator * d + b);
        c = b + numerator / c;
        let factor = c * d;
        fraction *= factor;
        if (factor - 1.0).abs() <= 1e-16 {
            break;
        }
    }
    fraction
}

/// Returns the `p` quantile for shape `a >= 1` and scale 1, for `p` in (0, 1).
///
/// Uses Newton's method on the logarithm of the smaller tail: of the lower one in `ln x`, of the upper one in `x`. Both are
/// concave (the density is log-concave for `a >= 1`), so that from the second step on the iterates approach the root from one
/// side, and never beyond `(p Gamma(a + 1))^(1/a)`, which is below the root since `P(a, x) <= x^a / Gamma(a + 1)`. A step so long
/// that the tail underflows is halved. After 100 steps the last iterate is returned.
pub(crate) fn quantile(a: f64, p: f64) -> f64 {
    let below = ((p.ln() + ln_gamma(a + 1.0)) / a).exp() * (1.0 - 1e-9);
    let (mut x, mut safe) = (a, a);
    for _ in 0..100 {
        let (lower, upper) = tails(a, x);
        let next = if p < 0.5 {
            if lower.is_normal() {
                safe = x;
                // d ln P / d ln x = density / P
                x * (-(lower / p).ln() * lower / scaled_density(a, x)).exp()
            } else {
                (x * safe).sqrt()
            }
        } else if upper.is_normal() {
            safe = x;
            // d ln Q / dx = -density / (x Q)
            x + (upper / (1.0 - p)).ln() * x * upper / scaled_density(a, x)
        } else {
            0.5 * (x + safe)
        };
        let next = next.max(below);
        let change = (next - x).abs();
        x = next;
        if change <= 2.0 * f64::EPSILON * x {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_gamma_at_known_points() {
        let mut ln_factorial = 0.0f64;
        for n in 1..60 {
            assert!((ln_gamma(f64::from(n)) - ln_factorial).abs() <= 1e-14 * ln_factorial.max(1.0), "{n}");
            ln_factorial += f64::from(n).ln();
        }
        let half_ln_pi = 0.5 * core::f64::consts::PI.ln();
        assert!((ln_gamma(0.5) - half_ln_pi).abs() < 2e-14);
        assert!((ln_gamma(1.5) - (half_ln_pi - 2f64.ln())).abs() < 2e-14);
        // To 40 digits, by mpmath: 1051293.465435139380015...
        assert!((ln_gamma(100_000.5) / 1_051_293.465_435_139_4 - 1.0).abs() < 1e-15);
    }

    #[test]
    fn excess_joins_its_branches() {
        for t in [0.1, -0.1] {
            assert!((excess(2.0, 2.0 + 2.0 * t) - (t - f64::ln_1p(t))).abs() < 1e-16, "{t}");
        }
        assert!((excess(1.0, 1.0 + 2f64.powi(-26)) / 1.110_223_013_596_081_9e-16 - 1.0).abs() < 1e-14);
        assert_eq!(excess(1.0, 1e-300), 1e-300 - 1.0 - 1e-300f64.ln());
    }

    #[test]
    fn one_degree_is_the_exponential() {
        for x in [1e-12f64, 0.1, 0.7, 1.0, 1.5, 10.0, 700.0] {
            let (lower, upper) = tails(1.0, x);
            assert!((lower + (-x).exp_m1()).abs() <= 4e-15 * lower, "{x} {lower}");
            assert!((upper - (-x).exp()).abs() <= 1e-13 * upper.max(1e-300), "{x} {upper}");
        }
    }

    #[test]
    fn agrees_with_statrs_at_moderate_shapes() {
        for a in [1.0, 1.5, 2.0, 7.5, 30.0, 100.5] {
            for ratio in [0.2, 0.5, 0.9, 1.0, 1.1, 2.0, 3.0] {
                let (lower, upper) = tails(a, a * ratio);
                let expected_lower = statrs::function::gamma::gamma_lr(a, a * ratio);
                let expected_upper = statrs::function::gamma::gamma_ur(a, a * ratio);
                assert!((lower / expected_lower - 1.0).abs() < 1e-10, "{a} {ratio}");
                assert!((upper / expected_upper - 1.0).abs() < 1e-10, "{a} {ratio}");
            }
        }
    }

    #[test]
    fn quantiles_invert_the_tails() {
        for a in [1.0, 2.0, 17.0, 1e3, 1e6, 4_294_967_296.0] {
            for p in [1e-300, 1e-9, 0.001, 0.3, 0.5, 0.9, 0.999, 1.0 - 1e-12] {
                let (lower, upper) = tails(a, quantile(a, p));
                let (found, expected) = if p < 0.5 { (lower, p) } else { (upper, 1.0 - p) };
                assert!((found / expected - 1.0).abs() < 1e-9 * a.sqrt().max(1.0), "{a} {p} {found} {expected}");
            }
        }
    }

    #[test]
    fn ends() {
        assert_eq!(tails(3.0, 0.0), (0.0, 1.0));
        assert_eq!(tails(3.0, -1.0), (0.0, 1.0));
        assert_eq!(tails(3.0, f64::INFINITY), (1.0, 0.0));
        assert_eq!(tails(1e6, 9e5).0, 0.0);
        assert_eq!(tails(1.0, f64::MAX), (1.0, 0.0));
    }
}
