//! The literature's sensitivities in closed form, corrected: the recursion's values for the last iterate when the batch size
//! divides the number of records. The engine does not use them; they are for reference and comparison.
//!
//! `G` is the gradient-difference bound, at most twice the Lipschitz constant in the papers.
//!
//! # References
//! Wu et al. 2017 (Bolt-on), Corollaries 1 to 3, Lemmas 7 and 8. Their batch forms count updates as if each held one example,
//! the forms here count updates; [`as_published`](super::as_published) has the original ones.

/// Convex, constant step `η ≤ 2/β`: `k G η / b` (Corollary 1).
///
/// # Examples
/// ```
/// let bound = dp_optim::growth::closed_form::convex_constant(20, 0.01, 50, 2.0);
/// assert!((bound - 0.008).abs() < 1e-15);
/// ```
pub fn convex_constant(passes: u64, step: f64, batch_size: u64, gradient_difference: f64) -> f64 {
    passes as f64 * gradient_difference * step / batch_size as f64
}

/// Convex, `η_t = 2/(β(t + m^c))`: `(2G/(βb)) Σ_{j<k} 1/(m^c + j m/b + 1)` (Corollary 2, counting updates).
pub fn convex_decreasing(n: u64, batch_size: u64, passes: u64, power: f64, smoothness: f64, g: f64) -> f64 {
    let per_pass = n as f64 / batch_size as f64;
    let offset = (n as f64).powf(power);
    let sum: f64 = (0..passes).map(|j| 1.0 / (offset + j as f64 * per_pass + 1.0)).sum();
    2.0 * g / (smoothness * batch_size as f64) * sum
}

/// Convex, `η_t = 2/(β(√t + m^c))`: `(2G/(βb)) Σ_{j<k} 1/(m^c + √(j m/b + 1))` (Corollary 3, counting updates).
pub fn convex_square_root(n: u64, batch_size: u64, passes: u64, power: f64, smoothness: f64, g: f64) -> f64 {
    let per_pass = n as f64 / batch_size as f64;
    let offset = (n as f64).powf(power);
    let sum: f64 = (0..passes).map(|j| 1.0 / (offset + (j as f64 * per_pass + 1.0).sqrt())).sum();
    2.0 * g / (smoothness * batch_size as f64) * sum
}

/// Strongly convex, constant step `η ≤ 2/(β + γ)`, `k` passes:
/// `(ηG/b) (1 - (1-ηγ)^{uk}) / (1 - (1-ηγ)^u)` with `u = m/b` (Lemma 7, exponent counting updates).
pub fn strongly_convex_constant(n: u64, batch_size: u64, passes: u64, step: f64, gamma: f64, g: f64) -> f64 {
    let log_factor = (-step * gamma).ln_1p();
    let per_pass = n as f64 / batch_size as f64;
    let (all, one) = (-(log_factor * per_pass * passes as f64).exp_m1(), -(log_factor * per_pass).exp_m1());
    step * g / batch_size as f64 * all / one
}

/// As `strongly_convex_constant`, for any number of passes: `(ηG/b) / (1 - (1-ηγ)^u)`.
pub fn strongly_convex_constant_supremum(n: u64, batch_size: u64, step: f64, gamma: f64, g: f64) -> f64 {
    let log_factor = (-step * gamma).ln_1p();
    let one = -(log_factor * n as f64 / batch_size as f64).exp_m1();
    step * g / batch_size as f64 / one
}

/// Strongly convex, `η_t = min(1/β, 1/(γt))`: `G/(γ m)` for every batch size and number of passes (Lemma 8).
///
/// # Examples
/// ```
/// let bound = dp_optim::growth::closed_form::strongly_convex_decreasing(60_000, 1e-3, 2.0);
/// assert!((bound - 1.0 / 30.0).abs() < 1e-12);
/// ```
pub fn strongly_convex_decreasing(n: u64, gamma: f64, g: f64) -> f64 {
    g / (gamma * n as f64)
}

/// Any solver whose output is certified within `tolerance` of the minimiser of a γ-strongly convex risk:
/// `G/(γ m) + 2 τ`.
///
/// The minimisers of neighbouring data sets are within `G/(γ m)`: by strong convexity
/// `γ ‖w* - w'*‖ ≤ ‖∇F'(w*) - ∇F(w*)‖ ≤ G/m`.
pub fn approximate_minimiser(n: u64, gamma: f64, g: f64, tolerance: f64) -> f64 {
    strongly_convex_decreasing(n, gamma, g) + 2.0 * tolerance
}
