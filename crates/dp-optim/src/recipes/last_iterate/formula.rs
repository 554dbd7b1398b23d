//! The theorem's formula as published, for tables and comparisons.

use crate::growth::expansion;

/// The cost of a record that is read in one batch, as the rate `ε(α)/α` of a Renyi guarantee: the ρ of zCDP.
pub type Zcdp = f64;

/// Returns the cost of each batch's records, by the formula of Theorem 3.1 in ordinary arithmetic: not rounded up, and without
/// the allowance for rounding in the run. The last iterate costs the maximum.
///
/// # Formula
/// ```text
/// ε_t(α)/α = (η_t G/B_t)² / (2 Σ_{s >= t} η_s² σ_s² / Π_{t < u <= s} ρ_u²),   ρ_u = max(|1 - η_u γ|, |1 - η_u β|)
/// ```
/// `steps` are `(η_t, B_t, σ_t)`, with `σ_t` the standard deviation of the noise on the mean gradient. For a step longer than
/// `2/β` nothing is proved, and the batches up to it cost infinity.
///
/// # Examples
/// ```
/// use dp_optim::recipes::pnsgd::per_batch;
/// let costs = per_batch(&[(0.1, 1, 1.0); 3], 1.0, 0.0, 2.0);
/// assert!((costs[2] - 2.0).abs() < 1e-12); // the last batch: hidden by its own noise alone
/// assert!((costs[0] - 2.0 / 3.0).abs() < 1e-12); // the first: hidden by three draws
/// ```
///
/// # References
/// Feldman, Koren, Talwar 2020, Theorem 3.1, arXiv 2005.04763, with `G` for `2L`; contractions as derived at
/// [`LastIterate`](dp_mechanisms::last_iterate::LastIterate).
pub fn per_batch(
    steps: &[(f64, u64, f64)],
    smoothness: f64,
    strong_convexity: f64,
    gradient_difference: f64,
) -> Vec<Zcdp> {
    let mut costs = vec![0.0; steps.len()];
    let mut noise = 0.0;
    for (cost, &(step, batch, std_dev)) in costs.iter_mut().zip(steps).rev() {
        noise += (step * std_dev).powi(2);
        let shift = step * gradient_difference / batch as f64;
        *cost = shift * shift / (2.0 * noise);
        let contraction = expansion(step, smoothness, strong_convexity);
        // The more a step contracts, the better later noise hides earlier records.
        noise = if contraction <= 1.0 { noise / (contraction * contraction) } else { 0.0 };
    }
    costs
}
