//! Sensitivity of a list's gradient to its grades: bounds from public values alone.
//!
//! Take one list with scores `s`, score gradients `φ_i = ∂f(x_i, θ)/∂θ` and a loss with the parameter gradient
//! `g(y) = Σ_i g_i(s, y) φ_i`. The set of these gradients over all grades `y` is the *image* of the list. Its diameter bounds the
//! effect of a change of grades; its radius about a public centre bounds the list's whole contribution. Noise and amplification
//! by sampling are computed from the two ([`ImageBounds`]).
//!
//! For [`BayesRank`](crate::loss::BayesRank), `g = -Σ_i c_i v_i` with coefficients `c ∈ [0,1]^n` determined by the grades and
//! public vectors `v_i` with `Σ_i v_i = 0`; for k = 1, `v_i = p_i (φ_i - φ̄)`. The image lies in a zonotope that is symmetric
//! about 0:
//! ```text
//! diameter = max_{s ∈ {-1,1}^n} ‖Σ_i s_i v_i‖,   radius = diameter / 2
//! ```
//! and for k = 1 all its vertices are attained, as `y ∈ {0,1}^n` gives every `c ∈ {0,1}^n`. [`Contributions`] bounds it:
//!
//! | bound | formula | cost |
//! |---|---|---|
//! | [`exact`](Contributions::exact) | all sign vectors | `O(2^n n)`, n <= 20 |
//! | [`weighted`](Contributions::weighted) | `sqrt(Σ_i ‖v_i‖ · λ_max(W^-1/2 G W^-1/2))`, `W = diag ‖v_i‖` | `O(n³)` |
//! | [`covariance`](Contributions::covariance) | `sqrt(λ_max(Cov_p(φ)))` | `O(n³)` |
//! | [`half_diameter`] | `½ max ‖φ_a - φ_b‖` | `O(n²)` |
//! | [`triangle`](Contributions::triangle) | `Σ_i ‖v_i‖`, the published bound | `O(n)` |
//!
//! `exact <= weighted <= triangle` and `exact <= covariance <= half_diameter`. Under label thinning, where only one document of
//! the largest grade keeps its label, the image is `{0, v_1 .. v_n}` ([`thinned_exact`](Contributions::thinned_exact) and
//! others).
//!
//! # Rounding
//! The bounds hold for gradients *as computed in floating point*, provided that the Gram matrix is that of the score gradients up
//! to the error of inner products of [`Gram::terms`] terms and that the gradient is accumulated document by document or by a
//! matrix product. Largest eigenvalues are certified upper bounds, not power iterations. If a bound cannot be computed (overflow,
//! NaN), it is infinity.
//!
//! # References
//! The setting is private ranking with lists as units. The triangle inequality's bound is the published one. The others follow
//! from `‖Σ s_i v_i‖² = sᵀ G s <= (Σ_i w_i) λ_max(W^-1/2 G W^-1/2)` and the Cauchy–Schwarz inequality;
//! `covariance <= half_diameter` is Popoviciu's inequality.

mod contributions;
mod gram;
mod list_net;
mod prefixes;
#[cfg(test)]
mod tests;

pub use contributions::Contributions;
pub use gram::{Gram, half_diameter};
pub use list_net::list_net;
pub use prefixes::triangle_over_prefixes;

/// Bounds on the gradients of one list over all its grades.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImageBounds {
    /// Upper bound on the distance between the gradients of any two vectors of grades, in units of the gradient's norm.
    pub diameter: f64,
    /// Upper bound on the distance of any such gradient from the loss's public centre.
    pub radius: f64,
}
