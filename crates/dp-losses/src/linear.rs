//! Linear models: the prediction of a row is its inner product with the parameters.

use core::marker::PhantomData;

use dp_data::{Block, Rows};
use nalgebra::convert;

use crate::compensated::{CompensatedGradient, CompensatedSum, two_sum};
use crate::curved::Curved;
use crate::differences::Differences;
use crate::kernels::{Kernels, LossKernel, Scratch, Step};
use crate::loss::Loss;
use crate::model::{Model, ParameterBlock};
use crate::real::Real;
use crate::scaled_steps::ScaledSteps;

/// The linear model `p = ⟨w, x⟩` under a loss of `p` and the target; one parameter block, `weights`.
///
/// For dense and sparse rows; an example marked invalid has loss 0 and gradient 0. The kernels are chosen for the machine's
/// instruction set when the model is created; their cost is proportional to the stored values of the rows.
///
/// # Formula
/// ```text
/// gradient of example i   ℓ'(⟨w, x_i⟩, y_i) · x_i        squared norm   ℓ'² |x_i|²
/// ```
///
/// # Shapes
/// A batch is a [`Block`] of `n` examples of `dim` features, each contiguous; the parameters are `dim` numbers.
///
/// # Panics
/// The methods panic if parameters, coefficients or outputs have lengths other than those of the batch and the model, or if a
/// sparse row has a column that is not below `dim`; [`dp_data::Examples`] does not create such rows.
///
/// # Examples
/// ```
/// use dp_data::Examples;
/// use dp_losses::{LinearModel, Logistic, Model};
///
/// let data = Examples::dense(vec![0.6, 0.8, 1.0, 0.0], vec![1.0, -1.0], 2)?;
/// let model = LinearModel::new(data.dim(), Logistic);
/// let (w, mut pass) = ([0.0_f64; 2], model.pass(2));
/// model.forward(&w, data.block(), &mut pass);
/// model.backward(&w, data.block(), &mut pass);
/// let mut gradient = [0.0; 2];
/// model.add_weighted(data.block(), &mut pass, &[1.0, 1.0], &mut gradient);
/// assert!((gradient[0] - 0.2).abs() < 1e-15 && (gradient[1] + 0.4).abs() < 1e-15);
/// # Ok::<(), dp_data::examples::ShapeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct LinearModel<F, L> {
    loss: L,
    blocks: [ParameterBlock; 1],
    kernels: Kernels,
    float: PhantomData<fn() -> F>,
}

/// Buffers of a [`LinearModel`] for one microbatch.
#[derive(Clone)]
pub struct LinearPass<F> {
    scratch: Scratch<F>,
}

impl<F> core::fmt::Debug for LinearPass<F> {
    // Predictions and derivatives are functions of records: never printed.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LinearPass").finish_non_exhaustive()
    }
}

impl<F: Real, L: Loss<F>> LinearModel<F, L> {
    /// Creates a model of rows with `dim` features.
    pub fn new(dim: usize, loss: L) -> Self {
        let blocks = [ParameterBlock { name: "weights".to_owned(), range: 0..dim }];
        Self { loss, blocks, kernels: Kernels::new(), float: PhantomData }
    }

    /// Returns the loss.
    pub fn loss(&self) -> L {
        self.loss
    }

    fn check(&self, batch: &Block<'_, F>, parameters: &[F]) {
        let dim = self.blocks[0].range.end;
        assert!(parameters.len() == dim && batch.rows.dim() == dim, "parameters and rows have the model's dimension");
        assert!(batch.rows.len() == batch.targets.len(), "one target per row");
        assert!(batch.valid.is_none_or(|valid| valid.len() == batch.targets.len()), "one validity mark per row");
    }

    fn step(
        &self,
        scale: F,
        coefficient: F,
        batch: Block<'_, F>,
        pass: &mut LinearPass<F>,
        direction: &mut [F],
        squared_norm: Option<&mut F>,
    ) {
        self.check(&batch, direction);
        let Block { rows, targets, valid } = batch;
        let scratch = &mut pass.scratch;
        let step = Step { scale, coefficient, targets, valid, scratch, v: direction, squared_norm };
        self.loss.compute(LossKernel::step(self.kernels, rows, step));
    }
}

impl<F: Real> LinearPass<F> {
    /// Returns the predictions of the last [`Model::forward`] or [`ScaledSteps::forward_scaled`], one per example.
    pub fn predictions(&self) -> &[F] {
        &self.scratch.predictions
    }

    /// Sets `weights[i] = coefficients[i] · derivatives[i]`, where a coefficient 0 gives 0 for any derivative.
    fn set_weights(&mut self, coefficients: &[F]) {
        let Scratch { derivatives, weights, .. } = &mut self.scratch;
        assert_eq!(coefficients.len(), derivatives.len(), "one coefficient per example of the last backward");
        weights.clear();
        weights.extend(derivatives.iter().zip(coefficients).map(|(&derivative, &coefficient)| {
            if coefficient == F::zero() { F::zero() } else { coefficient * derivative }
        }));
    }
}

impl<F: Real, L: Loss<F>> Model<F> for LinearModel<F, L> {
    type Batch<'a> = Block<'a, F>;
    type Pass = LinearPass<F>;

    fn blocks(&self) -> &[ParameterBlock] {
        &self.blocks
    }

    fn pass(&self, microbatch: usize) -> LinearPass<F> {
        LinearPass { scratch: Scratch::with_capacity(microbatch) }
    }

    fn forward(&self, parameters: &[F], batch: Block<'_, F>, pass: &mut LinearPass<F>) {
        self.forward_scaled(F::one(), parameters, batch, pass);
    }

    fn losses(&self, batch: Block<'_, F>, pass: &LinearPass<F>, out: &mut [F]) {
        assert_eq!(out.len(), pass.scratch.predictions.len(), "one loss per example of the last forward");
        for (i, loss) in out.iter_mut().enumerate() {
            let valid = batch.valid.is_none_or(|valid| valid[i]);
            *loss = if valid { self.loss.value(pass.scratch.predictions[i], batch.targets[i]) } else { F::zero() };
        }
    }

    fn backward(&self, _parameters: &[F], batch: Block<'_, F>, pass: &mut LinearPass<F>) {
        let Block { targets, valid, .. } = batch;
        self.loss.compute(LossKernel::derivatives(self.kernels, targets, valid, &mut pass.scratch));
    }

    fn squared_norms(&self, batch: Block<'_, F>, pass: &mut LinearPass<F>, out: &mut [F]) {
        assert_eq!(out.len(), pass.scratch.derivatives.len(), "one norm per example of the last backward");
        out.copy_from_slice(&pass.scratch.derivatives);
        // More than squares of entries lose that underflow, as the derivative may be large.
        let lost: F = convert::<f64, F>(self.blocks[0].range.end as f64) * smallest_normal();
        self.kernels.scale_by_squared_row_norms(
            batch.rows,
            out,
            |norm: F, derivative: F| {
                if derivative == F::zero() { F::zero() } else { (norm + lost) * derivative * derivative }
            },
            |norm, derivative| if derivative == 0.0 { 0.0 } else { norm * derivative * derivative },
        );
    }

    /// # Formula
    /// In double precision `dim`: at most that many roundings of a sum of squares in any order, and two of the products, while
    /// clipping leaves room for eight. In single precision all is computed in double precision, in which squares are exact, and
    /// rounded once: `1 + (d + 2) 2^-29`.
    fn norm_roundings(&self) -> f64 {
        let dim = self.blocks[0].range.end as f64;
        if is_double::<F>() { dim } else { 2.0 + dim * 2f64.powi(-29) }
    }

    fn add_weighted(&self, batch: Block<'_, F>, pass: &mut LinearPass<F>, coefficients: &[F], sum: &mut [F]) {
        self.check(&batch, sum);
        pass.set_weights(coefficients);
        self.kernels.add_rows(batch.rows, &mut pass.scratch, sum, None);
    }

    fn add_weighted_in_double(
        &self,
        batch: Block<'_, F>,
        pass: &mut LinearPass<F>,
        coefficients: &[F],
        sum: &mut [f64],
    ) {
        if let Some(sum) = F::from_doubles(sum) {
            return self.add_weighted(batch, pass, coefficients, sum);
        }
        assert!(sum.len() == self.blocks[0].range.end, "a sum has the model's dimension");
        pass.set_weights(coefficients);
        self.kernels.add_rows_in_double(batch.rows, &pass.scratch.weights, sum);
    }
}

/// Returns whether `F` is double precision.
pub(crate) fn is_double<F: Real>() -> bool {
    F::from_doubles(&mut []).is_some()
}

/// Returns the smallest positive normal number.
pub(crate) fn smallest_normal<F: Real>() -> F {
    convert(if is_double::<F>() { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) })
}

impl<F: Real, L: Loss<F>> CompensatedGradient<F> for LinearModel<F, L> {
    fn add_compensated(
        &self,
        parameters: (&[F], &[F]),
        batch: Block<'_, F>,
        pass: &mut LinearPass<F>,
        sum: &mut CompensatedSum,
    ) {
        self.check(&batch, parameters.0);
        let scratch = &mut pass.scratch;
        scratch.in_two_parts.clear();
        self.kernels.predictions_in_two_parts(batch.rows, parameters, &mut scratch.in_two_parts);
        let parameters = parameters.0;
        let (parts, predictions) = (&scratch.in_two_parts, &mut scratch.predictions);
        predictions.clear();
        if self.loss.is_of_residual() {
            predictions.extend(parts.iter().zip(batch.targets).map(|(&(high, low), &target)| {
                let target: f64 = target.to_subset_unchecked();
                let (residual, rest) = two_sum(high, -target);
                convert::<f64, F>(residual + (rest + low))
            }));
            let mut origin = core::mem::take(&mut scratch.origin);
            origin.resize(batch.targets.len(), F::zero());
            self.backward(parameters, Block { targets: &origin, ..batch }, pass);
            pass.scratch.origin = origin;
        } else {
            predictions.extend(parts.iter().map(|&(high, low)| convert::<f64, F>(high + low)));
            self.backward(parameters, batch, pass);
        }
        self.kernels.add_rows_in_two_parts(batch.rows, &pass.scratch.derivatives, sum, 0);
    }
}

/// The δ of the difference quotients for the curvature.
const DIFFERENCE: f64 = 1.0 / 1024.0;

impl<F: Real, L: Loss<F>> Curved<F> for LinearModel<F, L> {
    fn features(&self) -> usize {
        self.blocks[0].range.end
    }

    fn add_curvature(
        &self,
        parameters: &[F],
        batch: Block<'_, F>,
        pass: &mut LinearPass<F>,
        blocks: &mut [F],
    ) -> usize {
        let dim = self.features();
        assert_eq!(blocks.len(), dim * dim, "a square matrix of the features");
        self.forward(parameters, batch, pass);
        let difference: F = convert(DIFFERENCE);
        pass.scratch.predictions.iter_mut().for_each(|p| *p += difference);
        self.backward(parameters, batch, pass);
        let Scratch { predictions, derivatives, sum: above, .. } = &mut pass.scratch;
        core::mem::swap(derivatives, above);
        predictions.iter_mut().for_each(|p| *p -= difference + difference);
        self.backward(parameters, batch, pass);
        let Scratch { derivatives, sum: above, .. } = &mut pass.scratch;
        let per_difference: F = convert(0.5 / DIFFERENCE);
        above.iter_mut().zip(&*derivatives).for_each(|(above, &below)| *above = per_difference * (*above - below));
        self.kernels.add_squares(batch.rows, above, blocks)
    }
}

impl<F: Real, L: Loss<F>> Differences<F> for LinearModel<F, L> {
    fn difference(&self, scale: F, other: &LinearPass<F>, pass: &mut LinearPass<F>) {
        subtract(scale, &other.scratch.derivatives, &mut pass.scratch.derivatives);
    }
}

/// Sets `v <- scale (v - other)`.
pub(crate) fn subtract<F: Real>(scale: F, other: &[F], v: &mut [F]) {
    assert_eq!(v.len(), other.len(), "the same batch in both passes");
    v.iter_mut().zip(other).for_each(|(v, &other)| *v = scale * (*v - other));
}

impl<F: Real, L: Loss<F>> ScaledSteps<F> for LinearModel<F, L> {
    fn forward_scaled(&self, scale: F, direction: &[F], batch: Block<'_, F>, pass: &mut LinearPass<F>) {
        self.check(&batch, direction);
        self.kernels.predictions(batch.rows, scale, direction, &mut pass.scratch);
    }

    fn step_scaled(
        &self,
        scale: F,
        coefficient: F,
        batch: Block<'_, F>,
        pass: &mut LinearPass<F>,
        direction: &mut [F],
    ) {
        self.step(scale, coefficient, batch, pass, direction, None);
    }

    fn step_scaled_tracking_norm(
        &self,
        scale: F,
        coefficient: F,
        batch: Block<'_, F>,
        pass: &mut LinearPass<F>,
        direction: &mut [F],
        squared_norm: &mut F,
    ) {
        self.step(scale, coefficient, batch, pass, direction, Some(squared_norm));
    }

    fn add_weighted_tracking_norm(
        &self,
        batch: Block<'_, F>,
        pass: &mut LinearPass<F>,
        coefficients: &[F],
        direction: &mut [F],
        squared_norm: &mut F,
    ) {
        self.check(&batch, direction);
        pass.set_weights(coefficients);
        self.kernels.add_rows(batch.rows, &mut pass.scratch, direction, Some(squared_norm));
    }

    fn add_weighted_in_two_parts(
        &self,
        batch: Block<'_, F>,
        pass: &mut LinearPass<F>,
        coefficients: &[F],
        direction: &mut CompensatedSum<F>,
    ) {
        self.check(&batch, direction.high());
        if let Rows::Sparse { .. } = batch.rows {
            pass.set_weights(coefficients);
            return self.kernels.add_rows_in_two_parts(batch.rows, &pass.scratch.weights, direction, 0);
        }
        let mut buffer = core::mem::take(&mut pass.scratch.sum);
        direction.add_summed(&mut buffer, |sum| self.add_weighted(batch, pass, coefficients, sum));
        pass.scratch.sum = buffer;
    }
}

#[cfg(test)]
mod tests;
