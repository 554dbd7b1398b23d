//! Layers whose per-example gradients are stored: convolutions, group norm, and all if an example has several views.
//!
//! The norm is that of the stored numbers, and exactly these numbers enter the weighted sum. A norm from inner products of
//! inputs and gradients would need less memory for some layers, but it cancels: in `f32` it can be too small for an image that
//! somebody chooses for it.

use crate::float::Float;
use crate::kernels::{add_scaled, add_scaled_wide, squared_norm, vectorised};

/// Writes the squared norm of each example's gradient of `length` numbers, in double precision.
pub(crate) fn squared_norms<'a, F: Float>(gradients: &[F], length: usize, norms: impl Iterator<Item = &'a mut f64>) {
    vectorised(
        #[inline(always)]
        || {
            for (norm, gradient) in norms.zip(gradients.chunks_exact(length)) {
                *norm = squared_norm(gradient);
            }
        },
    );
}

/// Computes `sum += Σ_i c_i gradient_i`; a coefficient 0 adds nothing, whatever the gradient is.
pub(crate) fn add_weighted<F: Float>(gradients: &[F], coefficients: &[F], sum: &mut [F]) {
    vectorised(
        #[inline(always)]
        || {
            for (gradient, c) in chosen(gradients, coefficients, sum.len()) {
                add_scaled(c, gradient, sum);
            }
        },
    );
}

/// As [`add_weighted`], with products rounded to `F` and a sum in double precision.
pub(crate) fn add_weighted_in_double<F: Float>(gradients: &[F], coefficients: &[F], sum: &mut [f64]) {
    vectorised(
        #[inline(always)]
        || {
            for (gradient, c) in chosen(gradients, coefficients, sum.len()) {
                add_scaled_wide(c, gradient, sum);
            }
        },
    );
}

#[inline(always)]
fn chosen<'a, F: Float>(
    gradients: &'a [F],
    coefficients: &'a [F],
    length: usize,
) -> impl Iterator<Item = (&'a [F], F)> {
    gradients.chunks_exact(length).zip(coefficients.iter().copied()).filter(|(_, c)| *c != F::zero())
}
