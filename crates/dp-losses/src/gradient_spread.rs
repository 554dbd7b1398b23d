//! The largest distance between the gradients of two examples: the constant to which the noise is proportional.
//!
//! Replacing one record changes a mean gradient by `∇ℓ(w, z) - ∇ℓ(w, z')`, whose norm is at most twice the Lipschitz constant.
//! For some losses this is not the least bound: a steep gradient needs a row along `w`, and two rows along `w` do not point in
//! opposite directions. Both proofs below find the smallest ball that contains every data gradient.

use crate::rounding::{inflate, sum_up};

/// Returns `G_log(R) = sup |∇ℓ(w, z) - ∇ℓ(w, z')|` of the logistic loss over `|w| <= R`, rows in the unit ball, targets ±1;
/// rounded up. Increases from 1 at `R = 0` to 2; for rows of norm at most `X` it is `X · G_log(R X)`.
///
/// # Formula
/// ```text
/// G_log(R) = max over θ in [0, π/2] of  2 sin θ / (1 + e^{-R cos θ})
///          = 2 σ(t) sqrt(1 - t²/R²)   at the root t of   t² + t (1 + e^t) = R²
/// ```
/// Derivation. With `u = y·x` the negative gradient is `f(u) = σ(-⟨w, u⟩) u`, `|u| <= 1`. Two mirror images about `w` at angle
/// `π - θ` from it are `2 sin θ σ(R cos θ)` apart, and setting the derivative to zero gives the root `t` with `cos θ = t/R`,
/// `s* = σ(t)`, and the radius `q = s* sin θ`. No pair is farther apart, because every `f(u)` lies within `q` of the point
/// `c = -κ w/R`, `κ = s* t/R`: for a given `a = ⟨w, u⟩/R` the distance is largest at `|u| = 1`, where with `s = σ(-R a)` it is
/// ```text
/// |f(u) - c|² = H(s) = s² - (2κ/R) s logit(s) + κ²,        H'(s) / 2 = s - (κ/R) m(s),   m(s) = logit(s) + 1/(1-s).
/// ```
/// `H'(s*) = 0` is the equation of the root, and `H(s*) = q²`. On `[1/3, 1)` `m` is convex (`m' = 1/(s(1-s)²)` increases), so
/// `H'` is concave there; as `κ/R = s*(1-s*)/(1 + t(1-s*)) <= 1/4` and `m(1/3) < 0.81`, `H'(1/3) > 0`: `H` increases up to
/// `s* >= 1/2` and decreases after it. On `(0, 1/3)` either `m(s) <= 0` or `s >= 0.217 > m(1/3)/4`, so `H' > 0` there too. For a
/// smaller `|w|` the same holds with a smaller `q`. In one dimension the bound holds but is not attained.
///
/// # Examples
/// ```
/// use dp_losses::logistic_gradient_difference;
/// assert!((logistic_gradient_difference(2.0) - 1.2698411).abs() < 1e-7);
/// assert_eq!(logistic_gradient_difference(f64::INFINITY), 2.0);
/// ```
pub fn logistic_gradient_difference(radius: f64) -> f64 {
    // Also for NaN. Beyond 1e100 the difference from 2 is far below one rounding.
    if !(radius < 1e100) {
        return 2.0;
    }
    if radius < 1e-9 {
        return 1.0_f64.next_up(); // G = 1 + R²/8 + ..., and R²/8 < 1.3e-19
    }
    // `reached` increases from 0 and is at least t, so the root lies in [0, R]. The maximum is flat: an error in t of relative
    // size e changes the result by a multiple of e².
    let reached = |t: f64| (t * t + t * (1.0 + t.exp())).sqrt();
    let (mut low, mut high) = (0.0, radius.min(500.0));
    for _ in 0..120 {
        let middle = 0.5 * (low + high);
        if reached(middle) < radius {
            low = middle;
        } else {
            high = middle;
        }
    }
    let cosine = low / radius;
    let steepness = 1.0 / (1.0 + (-low).exp());
    inflate(2.0 * steepness * ((1.0 - cosine) * (1.0 + cosine)).sqrt()).min(2.0)
}

/// Returns `G_sq(R, Y) = sup |∇ℓ(w, z) - ∇ℓ(w, z')|` of the squared loss over `|w| <= R`, rows in the unit ball, `|y| <= Y`;
/// rounded up. Twice the Lipschitz constant `R + Y` at `R = 0`, half of that for `R` much larger than `Y`; for rows of norm at
/// most `X` it is `X · G_sq(R X, Y)`. Infinite for an infinite radius.
///
/// # Formula
/// ```text
/// G_sq(R, Y) = 2 sqrt(1 - a²) (R a + Y),     a = 2R / (Y + sqrt(Y² + 8R²))
/// ```
/// Derivation. The gradient is `f = t x` with `t = ⟨w, x⟩ - y`. Two mirror images about `w` with `⟨w, x⟩ = R a`,
/// `y = -Y` are `2 sqrt(1 - a²)(R a + Y)` apart, which is largest at the `a` above, where `R (1 - a²) = a (R a + Y)`. No pair
/// is farther apart, because every gradient lies within half of that of the point `c = κ w/R`, `κ = a (R a + Y) = R (1 - a²)`:
/// the squared distance `t² |x|² - 2κ t ⟨w, x⟩/R + κ²` is largest at `|x| = 1`, is convex in `t` and so largest at `t = R b ±
/// Y` with `b = ⟨w, x⟩/R`, and by the symmetry `(x, y) -> (-x, -y)` at `t = R b + Y`; there it is a quadratic in `b` whose
/// leading coefficient `R² - 2κR` is not positive (`a² <= 1/2`, so `κ >= R/2`) and whose derivative is 0 at `b = a`.
///
/// # Examples
/// ```
/// use dp_losses::squared_gradient_difference;
/// assert_eq!(squared_gradient_difference(0.0, 1.0), 2.0);
/// assert!((squared_gradient_difference(1e6, 1.0) / 1e6 - 1.0).abs() < 1e-5); // not 2·(R + Y)
/// ```
pub fn squared_gradient_difference(radius: f64, target_bound: f64) -> f64 {
    // Also for NaN.
    if !(radius.is_finite() && target_bound.is_finite()) {
        return f64::INFINITY;
    }
    if radius == 0.0 {
        return 2.0 * target_bound;
    }
    let cosine = 2.0 * radius / (target_bound + target_bound.hypot(8.0_f64.sqrt() * radius));
    let half = ((1.0 - cosine) * (1.0 + cosine)).sqrt() * (radius * cosine + target_bound);
    inflate(2.0 * half).min(2.0 * sum_up(radius, target_bound))
}

#[cfg(test)]
mod tests;
