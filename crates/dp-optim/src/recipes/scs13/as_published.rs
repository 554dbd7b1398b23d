//! The published noise, on the *mean* gradient of a batch, for tables and comparisons.
//!
//! All are sound for gradients of norm at most `lipschitz` under replace-one (they differ by at most `G = 2 lipschitz`); the
//! Gaussian only if each pass's epsilon is below 1. They are larger than needed, since the passes are composed by adding up
//! and the Gaussian is the classical one.

use dp_accountant::{Delta, Epsilon};

use crate::error::{Error, positive};

/// Returns the epsilon of each of `passes` passes that add up to `epsilon`.
///
/// # Examples
/// ```
/// use dp_accountant::Epsilon;
/// use dp_optim::recipes::scs13::as_published;
/// assert_eq!(as_published::epsilon_per_pass(2, Epsilon::new(1.0)?), 0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn epsilon_per_pass(passes: u64, epsilon: Epsilon) -> f64 {
    epsilon.get() / passes.max(1) as f64
}

/// Returns the scale `θ` of the density `exp(-‖z‖/θ)` of the noise on a mean gradient.
///
/// # Formula
/// ```text
/// θ = k G / (b ε),   G = 2L
/// ```
/// For one pass over single records and L = 1 the density is `exp(-(ε/2)‖z‖)`.
///
/// # Errors
/// A constant or a batch size that is not positive.
///
/// # References
/// Song, Chaudhuri, Sarwate 2013, updates (1) and (2).
pub fn laplace_ball_scale(passes: u64, batch_size: u64, lipschitz: f64, epsilon: Epsilon) -> Result<f64, Error> {
    let difference = 2.0 * positive("Lipschitz constant", lipschitz)?;
    let batch_size = positive("batch size", batch_size as f64)?;
    Ok(difference / (batch_size * epsilon_per_pass(passes, epsilon)))
}

/// Returns the standard deviation of the noise on a mean gradient, by basic composition and the classical Gaussian.
///
/// # Formula
/// ```text
/// σ = (G/b) (k/ε) √(2 ln(1.25 k/δ)),   G = 2L
/// ```
/// Proved for `ε/k < 1`; the value is returned for any ε/k, for tables.
///
/// # Errors
/// A constant or a batch size that is not positive, and delta = 0.
///
/// # References
/// Wu et al. 2017, section 4; Dwork, Roth 2014, Theorem A.1.
pub fn gaussian_std_dev(
    passes: u64,
    batch_size: u64,
    lipschitz: f64,
    epsilon: Epsilon,
    delta: Delta,
) -> Result<f64, Error> {
    let difference = 2.0 * positive("Lipschitz constant", lipschitz)?;
    let batch_size = positive("batch size", batch_size as f64)?;
    let delta = positive("delta", delta.get())? / passes.max(1) as f64;
    Ok(difference / batch_size / epsilon_per_pass(passes, epsilon) * (2.0 * (1.25f64.ln() - delta.ln())).sqrt())
}
