//! Plain steps applied directly to the parameters: no gradient buffer, and sparse rows change only their non-zeros.

use crate::compensated::{CompensatedGradient, CompensatedSum};
use crate::curved::Curved;
use crate::differences::Differences;
#[cfg(doc)]
use crate::model::Model;

/// A model whose parameters may be stored as `w = scale · v`, so that shrinking (L2 regularisation) and projection onto a ball
/// change one number, and a plain gradient step (not clipped, without noise) writes only the non-zeros of a row.
///
/// A step of size `η` on a batch of `b` examples with L2 coefficient `λ` is
/// ```text
/// scale' = (1 - ηλ) scale
/// v'     = v - η / (b scale') · Σ_i ∇ℓ_i(scale · v)            step_scaled(scale, -η / (b scale'), ..)
/// ```
/// and a projection onto the ball of radius `R` is `scale'' = min(scale', R / |v'|)`. The caller multiplies the scale into `v`
/// before it becomes tiny.
///
/// # Examples
/// ```
/// use dp_data::Examples;
/// use dp_losses::{LinearModel, Model, ScaledSteps, Squared};
///
/// let data = Examples::dense(vec![1.0, 2.0], vec![0.0], 2)?;
/// let model = LinearModel::new(2, Squared);
/// let mut pass = model.pass(1);
/// let mut v = [1.0, 1.0];
/// // w = 0.5 v predicts 1.5; the step adds -0.1 · 1.5 · x to v.
/// model.step_scaled(0.5, -0.1, data.block(), &mut pass, &mut v);
/// assert!((v[0] - 0.85_f64).abs() < 1e-15 && (v[1] - 0.7).abs() < 1e-15);
/// # Ok::<(), dp_data::examples::ShapeError>(())
/// ```
pub trait ScaledSteps<F>: Differences<F> + CompensatedGradient<F> + Curved<F> {
    /// [`forward`](Model::forward) at `w = scale · direction`.
    fn forward_scaled(&self, scale: F, direction: &[F], batch: Self::Batch<'_>, pass: &mut Self::Pass);

    /// Makes one whole step: predictions at `w = scale · direction`, then `direction += coefficient · Σ_i ∇ℓ_i(w)`.
    fn step_scaled(&self, scale: F, coefficient: F, batch: Self::Batch<'_>, pass: &mut Self::Pass, direction: &mut [F]);

    /// As [`step_scaled`](Self::step_scaled), and also updates `squared_norm = |direction|²`.
    ///
    /// On sparse rows the cost stays proportional to the non-zeros: the change of each touched entry is added, so that rounding
    /// accumulates at about one unit in the last place of the largest norm per touched entry. A caller that runs millions of
    /// steps should recompute the norm occasionally. On dense rows it is recomputed.
    fn step_scaled_tracking_norm(
        &self,
        scale: F,
        coefficient: F,
        batch: Self::Batch<'_>,
        pass: &mut Self::Pass,
        direction: &mut [F],
        squared_norm: &mut F,
    );

    /// As [`add_weighted`](Model::add_weighted), added to `direction`, updating `squared_norm = |direction|²`.
    fn add_weighted_tracking_norm(
        &self,
        batch: Self::Batch<'_>,
        pass: &mut Self::Pass,
        coefficients: &[F],
        direction: &mut [F],
        squared_norm: &mut F,
    );

    /// As [`add_weighted`](Model::add_weighted), added to a vector in two parts: the only error is the rounding of the products
    /// and of the batch's sum, for any size of the vector and any number of additions.
    fn add_weighted_in_two_parts(
        &self,
        batch: Self::Batch<'_>,
        pass: &mut Self::Pass,
        coefficients: &[F],
        direction: &mut CompensatedSum<F>,
    );
}
