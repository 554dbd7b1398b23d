//! Linear models: the prediction of a row is its inner product with the parameters.

use core::marker::PhantomData;

use dp_data::Block;

use crate::kernels::reference as kernels;
use crate::loss::Loss;
use crate::model::{Model, ParameterBlock};
use crate::real::Real;
use crate::scaled_steps::ScaledSteps;

/// The linear model `p = ⟨w, x⟩` under a loss of `p` and the target; one parameter block, `weights`.
#[derive(Debug, Clone)]
pub struct LinearModel<F, L> {
    loss: L,
    blocks: [ParameterBlock; 1],
    float: PhantomData<fn() -> F>,
}

/// Buffers of a [`LinearModel`] for one microbatch.
#[derive(Debug, Clone)]
pub struct LinearPass<F> {
    predictions: Vec<F>,
    derivatives: Vec<F>,
    weights: Vec<F>,
}

impl<F: Real, L: Loss<F>> LinearModel<F, L> {
    /// A model of rows with `dim` features.
    pub fn new(dim: usize, loss: L) -> Self {
        Self { loss, blocks: [ParameterBlock { name: "weights".to_owned(), range: 0..dim }], float: PhantomData }
    }

    /// The loss.
    pub fn loss(&self) -> L {
        self.loss
    }
}

impl<F: Real> LinearPass<F> {
    /// The predictions of the last `forward`, one per example.
    pub fn predictions(&self) -> &[F] {
        &self.predictions
    }

    fn set_weights(&mut self, coefficients: &[F]) {
        self.weights.clear();
        self.weights.extend(self.derivatives.iter().zip(coefficients).map(|(&derivative, &coefficient)| {
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
        let buffer = || Vec::with_capacity(microbatch);
        LinearPass { predictions: buffer(), derivatives: buffer(), weights: buffer() }
    }

    fn forward(&self, parameters: &[F], batch: Block<'_, F>, pass: &mut LinearPass<F>) {
        self.forward_scaled(F::one(), parameters, batch, pass);
    }

    fn losses(&self, batch: Block<'_, F>, pass: &LinearPass<F>, out: &mut [F]) {
        for (i, loss) in out.iter_mut().enumerate() {
            let valid = batch.valid.is_none_or(|valid| valid[i]);
            *loss = if valid { self.loss.value(pass.predictions[i], batch.targets[i]) } else { F::zero() };
        }
    }

    fn backward(&self, _parameters: &[F], batch: Block<'_, F>, pass: &mut LinearPass<F>) {
        pass.derivatives.clear();
        pass.derivatives.extend(pass.predictions.iter().zip(batch.targets).enumerate().map(|(i, (&p, &y))| {
            if batch.valid.is_none_or(|valid| valid[i]) { self.loss.derivative(p, y) } else { F::zero() }
        }));
    }

    fn squared_norms(&self, batch: Block<'_, F>, pass: &mut LinearPass<F>, out: &mut [F]) {
        kernels::squared_row_norms(&batch.rows, out);
        for (norm, &derivative) in out.iter_mut().zip(&pass.derivatives) {
            *norm = if derivative == F::zero() { F::zero() } else { *norm * derivative * derivative };
        }
    }

    fn add_weighted(&self, batch: Block<'_, F>, pass: &mut LinearPass<F>, coefficients: &[F], sum: &mut [F]) {
        pass.set_weights(coefficients);
        kernels::add_rows(&batch.rows, &pass.weights, sum);
    }
}

impl<F: Real, L: Loss<F>> ScaledSteps<F> for LinearModel<F, L> {
    fn forward_scaled(&self, scale: F, direction: &[F], batch: Block<'_, F>, pass: &mut LinearPass<F>) {
        pass.predictions.clear();
        pass.predictions.resize(batch.len(), F::zero());
        kernels::predictions(&batch.rows, scale, direction, &mut pass.predictions);
    }

    fn step_scaled(
        &self,
        scale: F,
        coefficient: F,
        batch: Block<'_, F>,
        pass: &mut LinearPass<F>,
        direction: &mut [F],
    ) {
        self.forward_scaled(scale, direction, batch, pass);
        self.backward(direction, batch, pass);
        pass.weights.clear();
        pass.weights.extend(pass.derivatives.iter().map(|&derivative| coefficient * derivative));
        kernels::add_rows(&batch.rows, &pass.weights, direction);
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
        self.step_scaled(scale, coefficient, batch, pass, direction);
        *squared_norm = kernels::squared_norm(direction);
    }

    fn add_weighted_tracking_norm(
        &self,
        batch: Block<'_, F>,
        pass: &mut LinearPass<F>,
        coefficients: &[F],
        direction: &mut [F],
        squared_norm: &mut F,
    ) {
        self.add_weighted(batch, pass, coefficients, direction);
        *squared_norm = kernels::squared_norm(direction);
    }
}
