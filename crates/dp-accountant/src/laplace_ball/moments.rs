//! The Renyi divergence of the ball, from modified Bessel functions.
//!
//! With `p(z) = z^-v I_v(z)`, `v = d/2 - 1`, proportional to `int e^(z t) (1 - t²)^(v - 1/2) dt` over `[-1, 1]`, and `r(z) =
//! p'(z)/(z p(z)) = I_(v+1)(z)/(z I_v(z))`,
//!
//! ```text
//! G(z) = int e^(z t) (1 - t²)^(v - 1/2) (m + 1 - t²) dt  ~  p(z) (m + (d-1) r(z))
//! ```
//!
//! by parts, and the moment `E e^((a-1) L)` is `G((a - 1/2) x)/G(x/2)`, since `L = x t` has density proportional to
//! `e^(x t/2)` times the rest.
//!
//! **`D_a/a` decreases in the order `a`.** `G(z)` is even and entire, of order 1. Its zeros are imaginary: at `z = i y`
//! it vanishes where `sum_k 2/(y² - j_k²) = m/(d-1)` over the zeros `j_k` of `J_v`; for `y²` off the real line the left
//! side has an imaginary part of one sign, and for `y² <= 0` it is negative. By Hadamard's product `ln G(s x)` is a sum of
//! terms `ln(1 + s² x²/y²)`, concave in `s²`; and `a(a-1) = s² - 1/4` for `s = a - 1/2`. So `rho` of zero-concentrated
//! differential privacy is the divergence at order 1.

use super::{Ball, bessel};
use crate::quadrature;

/// Excess of the order over 1 below which the derivative is integrated instead of taking a difference.
const NEARLY_ONE: f64 = 0.05;

/// Largest ratio for which the derivative is exact to rounding near order 1; beyond, a slightly larger order is used.
const LARGEST_FOR_DERIVATIVE: f64 = 150.0;

/// Factor that covers the error of the expansions and of rounding, both below 1e-12 (tested against 40-digit arithmetic).
const ROUND_UP: f64 = 1.0 + 4e-12;

/// Returns an upper bound on the divergence of order `order >= 1`, exact up to rounding.
pub(super) fn divergence(ball: &Ball, order: f64) -> f64 {
    let (x, excess_order) = (ball.x, order - 1.0);
    if excess_order > NEARLY_ONE || x > LARGEST_FOR_DERIVATIVE {
        let excess_order = excess_order.max(NEARLY_ONE);
        let order = 1.0 + excess_order;
        let (start, end) = (bessel::growth(ball.power, 0.5 * x), bessel::growth(ball.power, (order - 0.5) * x));
        // The divergence grows with m, so the smaller bound on 1/m is on the safe side.
        let weight = ball.weight.0 * (ball.power + 1.0);
        let factor = (weight * (end.ratio - start.ratio) / (1.0 + weight * start.ratio)).ln_1p();
        return (end.log - start.log + factor) / excess_order * ROUND_UP;
    }
    if excess_order == 0.0 {
        return x * log_derivative(ball, 0.5 * x) * ROUND_UP;
    }
    // The mean of the logarithmic derivative over [x/2, (a - 1/2) x].
    let (low, high) = (0.5 * x, (order - 0.5) * x);
    quadrature::short(low, high, |z| log_derivative(ball, z)) * x * ROUND_UP
}

/// Returns `G'(z)/G(z)`.
fn log_derivative(ball: &Ball, z: f64) -> f64 {
    let dim = ball.power + 2.0;
    let ratio = bessel::growth(ball.power, z).ratio;
    let weight = ball.weight.0 * (ball.power + 1.0);
    // r' = (1 - d r - z² r²)/z, from Bessel's equation.
    let derivative = (1.0 - dim * ratio - (z * ratio).powi(2)) / z;
    z * ratio + weight * derivative / (1.0 + weight * ratio)
}
