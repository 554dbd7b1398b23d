//! The published accounting: each iteration satisfies pure differential privacy by the theorem of Chaudhuri, Monteleoni and
//! Sarwate, the iterations compose, and the x-problem is solved by twenty steps of gradient descent.
//!
//! That theorem holds for the *exact* minimiser. After twenty steps the point depends on the records in other ways than
//! through the minimiser, which the published accounting ignores. So the result here is no guarantee, and no training uses it.

use crate::error::{Error, positive};

/// Returns the scale `2/ε'` of the linear term's norm in one iteration (Gamma distributed, with the dimension as shape) and
/// the ρ that it needs: the given one, or a larger one if the iteration's budget is too small for it.
///
/// # Formula
/// With `ε` of the iteration, `c` the curvature of a loss with slopes of at most 1 on rows of norm 1:
/// ```text
/// ε' = ε - ln(1 + 2c/(nρ) + c²/(nρ)²)          where that is positive, else ρ <- c/(n (e^{ε/4} - 1)) and ε' = ε/2
/// ```
///
/// # Errors
/// Parameters that are not positive and finite.
///
/// # Examples
/// ```
/// use dp_optim::recipes::admm_obj_pert::as_published::noise_and_rho;
/// let (scale, rho) = noise_and_rho(0.5, 1000, 0.1, 0.25)?;
/// assert!(scale > 4.0 && scale < 4.05 && rho == 0.1);
/// let (scale, rho) = noise_and_rho(0.5, 1000, 1e-4, 0.25)?;
/// assert!(scale == 8.0 && rho > 1e-4);
/// # Ok::<(), dp_optim::Error>(())
/// ```
///
/// # References
/// Chaudhuri, Monteleoni, Sarwate, "Differentially private empirical risk minimization", JMLR 2011, Algorithm 2.
pub fn noise_and_rho(epsilon: f64, n: u64, rho: f64, curvature: f64) -> Result<(f64, f64), Error> {
    positive("epsilon", epsilon)?;
    positive("rho", rho)?;
    positive("curvature", curvature)?;
    positive("number of records", n as f64)?;
    let share = curvature / (n as f64 * rho);
    // (1 + share)²
    let left = epsilon - 2.0 * share.ln_1p();
    Ok(if left > 0.0 {
        (2.0 / left, rho)
    } else {
        (4.0 / epsilon, rho.max(curvature / (n as f64 * (epsilon / 4.0).exp_m1())))
    })
}
