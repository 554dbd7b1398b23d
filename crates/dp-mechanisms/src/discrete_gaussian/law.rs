//! The discrete Gaussian law with masses `exp(-k²/(2 s²))`: normaliser, tail and variance, accurate for every scale.
//!
//! For a small scale these are sums of a few terms. For a large scale, Poisson's summation formula turns the sum over the
//! integers into one over frequencies, of which only one contributes, and a tail is compared with its integral.

use core::f64::consts::{PI, TAU};

use crate::gamma_law;

/// Scale from which on tails are computed from integrals: sums would have tens of thousands of terms, and the expansion around
/// the integral has an error below 1e-13.
const LARGE: f64 = 1024.0;

/// Returns `exp(-k²/(2 s²))`.
pub(super) fn mass(scale: f64, k: i64) -> f64 {
    at(scale, k as f64)
}

fn at(scale: f64, x: f64) -> f64 {
    let x = x / scale;
    (-0.5 * x * x).exp()
}

/// Returns the sum of `g(k)` over `k = first, first + 1, ...`, for terms that vanish within 40 scales.
fn sum(scale: f64, first: f64, g: impl Fn(f64) -> f64) -> f64 {
    let mut total = 0.0;
    for step in 0..=(40.0 * scale).ceil() as u64 {
        let term = g(first + step as f64);
        total += term;
        if term <= total * 1e-18 {
            break;
        }
    }
    total
}

/// Returns the sum of all masses.
///
/// # Formula
/// ```text
/// sum exp(-k²/(2 s²)) = s sqrt(2 pi) sum exp(-2 pi² s² k²)
/// ```
pub(super) fn normaliser(scale: f64) -> f64 {
    if scale < 1.0 { 1.0 + 2.0 * sum(scale, 1.0, |k| at(scale, k)) } else { scale * TAU.sqrt() * dual(scale) }
}

/// Returns `sum exp(-2 pi² s² k²)` for `s >= 1`, to which the second frequency adds less than 1e-34.
fn dual(scale: f64) -> f64 {
    1.0 + 2.0 * frequency(scale)
}

fn frequency(scale: f64) -> f64 {
    (-2.0 * (PI * scale) * (PI * scale)).exp()
}

/// Returns the sum of the masses from `k >= 1` on.
///
/// # Formula
/// From the scale [`LARGE`] on, with `f` the mass as a function of a real number and `x = k - 1/2`,
/// ```text
/// sum_{j >= k} f(j) = integral from x of f + f'(x)/24 - 7 f'''(x)/5760 + ...
/// ```
pub(super) fn tail(scale: f64, k: u64) -> f64 {
    let first = k as f64;
    if scale < LARGE {
        return sum(scale, first, |k| at(scale, k));
    }
    let x = (first - 0.5) / scale;
    // The upper tail of the gamma law of shape 1/2 at x²/2 is that of the absolute value of a normal deviate at x.
    let integral = scale * (0.5 * PI).sqrt() * gamma_law::tails(0.5, 0.5 * x * x).1;
    let mass = (-0.5 * x * x).exp();
    let slope = -x * mass / scale;
    let third = (3.0 * x - x * x * x) * mass / (scale * scale * scale);
    (integral + slope / 24.0 - 7.0 * third / 5760.0).max(0.0)
}

/// Returns the variance.
///
/// # Formula
/// ```text
/// s² - 8 pi² s⁴ sum_{k >= 1} k² exp(-2 pi² s² k²) / sum exp(-2 pi² s² k²)
/// ```
/// from the derivative of the logarithm of the [`normaliser`] by `-1/(2 s²)`.
pub(super) fn variance(scale: f64) -> f64 {
    if scale < 1.0 {
        2.0 * sum(scale, 1.0, |k| k * k * at(scale, k)) / normaliser(scale)
    } else {
        let square = scale * scale;
        // The exponential first: it is 0 if the square of the square overflows.
        let loss = 8.0 * PI * PI * square * (square * (frequency(scale) / dual(scale)));
        if loss > 0.0 { square - loss } else { square }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branches_meet() {
        // Both forms at scales for which both converge.
        for scale in [1.0, 1.3, 2.0] {
            let direct = 1.0 + 2.0 * sum(scale, 1.0, |k| at(scale, k));
            assert!((normaliser(scale) / direct - 1.0).abs() < 1e-14, "{scale}");
            let direct = 2.0 * sum(scale, 1.0, |k| k * k * at(scale, k)) / direct;
            assert!((variance(scale) / direct - 1.0).abs() < 1e-14, "{scale}");
        }
        for k in [1, 2, 100, 1000, 3000, 10_000, 35_000] {
            let direct = sum(LARGE, f64::from(k), |k| at(LARGE, k));
            let found = tail(LARGE, k as u64);
            assert!((found / direct - 1.0).abs() < 1e-12, "{k}: {found} {direct}");
        }
    }

    #[test]
    fn extreme_scales() {
        assert_eq!(variance(1e-3), 0.0);
        assert_eq!(normaliser(1e-3), 1.0);
        assert_eq!(variance(1e6), 1e12);
        assert_eq!(variance(1e200), f64::INFINITY);
        assert_eq!(tail(1e-3, 1), 0.0);
        assert!((tail(1e9, 1) / normaliser(1e9) - 0.5).abs() < 1e-9);
        assert_eq!(tail(1e6, u64::MAX), 0.0);
    }
}
