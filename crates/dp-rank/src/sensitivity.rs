//! How far a list's gradient can move when its grades change: bounds from public values alone.
//!
//! Take one list with scores `s`, score gradients `φ_i = ∂f(x_i, θ)/∂θ` and a loss with the parameter gradient
//! `g(y) = Σ_i g_i(s, y) φ_i`. Over all grades `y` these form the *image* of the list. Its diameter is what a change of
//! the grades can do, its radius about a public centre is what the list can add at all; noise and amplification by
//! sampling rest on the two ([`ImageBounds`]).
//!
//! For [`BayesRank`](crate::loss::BayesRank), `g = -Σ_i c_i v_i` with coefficients `c ∈ [0,1]^n` that hold the grades and
//! public vectors `v_i` with `Σ_i v_i = 0`; for k = 1, `v_i = p_i (φ_i - φ̄)`. The image lies in a zonotope that is
//! symmetric about 0:
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
//! `exact <= weighted <= triangle` and `exact <= covariance <= half_diameter`. Under label thinning, where only one
//! document of the top grade keeps its label, the image is `{0, v_1 .. v_n}`
//! ([`thinned_exact`](Contributions::thinned_exact) and others).
//!
//! # Rounding
//! Everything is on the safe side: the bounds hold for gradients *as computed in floating point*, provided that the
//! Gram matrix is that of the score gradients up to the error of inner products of [`Gram::terms`] terms and that the
//! gradient is added up document by document or by a matrix product. Largest eigenvalues are certified upper bounds,
//! never power iterations. What cannot be computed (overflow, NaN) is bounded by infinity.
//!
//! # References
//! Privacy for ranking with lists as units; the triangle inequality's bound is the published one, the others follow from
//! `‖Σ s_i v_i‖² = sᵀ G s <= (Σ_i w_i) λ_max(W^-1/2 G W^-1/2)`, Cauchy and Schwarz; Popoviciu's inequality orders the
//! last two.

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

/// Bounds of what the grades of one list can make of its gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImageBounds {
    /// No two vectors of grades give gradients further apart. In units of the gradient's norm.
    pub diameter: f64,
    /// No grades give a gradient further from the loss's public centre.
    pub radius: f64,
}
