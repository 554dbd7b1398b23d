//! Softmax regression as a [`Model`], with its scaled steps.

use core::marker::PhantomData;

use dp_data::{Block, Rows};
use nalgebra::convert;

use super::Softmax;
use crate::compensated::{CompensatedGradient, CompensatedSum, two_sum};
use crate::curved::Curved;
use crate::differences::Differences;
use crate::kernels::{ClassScratch, ClassStep, Kernels};
use crate::linear::{is_double, smallest_normal, subtract};
use crate::model::{Model, ParameterBlock};
use crate::real::Real;
use crate::scaled_steps::ScaledSteps;

/// Softmax regression on dense or sparse rows; one parameter block, `weights`: the classes' weights, class by class.
///
/// An example that is marked invalid, or whose target is not a class index, has loss 0 and gradient 0. The cost of a step is that
/// of a [`LinearModel`](crate::LinearModel) for each class.
///
/// # Formula
/// ```text
/// gradient of example i   (p_i - e_{y_i}) x_iᵀ        squared norm   |p_i - e_{y_i}|² |x_i|²
/// ```
///
/// # Shapes
/// A batch is a [`Block`] of `n` examples of `dim` features; the parameters are `classes x dim` numbers, row-major.
///
/// # Panics
/// As those of [`LinearModel`](crate::LinearModel).
///
/// # Examples
/// ```
/// use dp_data::Examples;
/// use dp_losses::{Model, Softmax, SoftmaxModel};
///
/// let data = Examples::dense(vec![0.6, 0.8], vec![2.0], 2)?;
/// let model = SoftmaxModel::new(2, Softmax::new(3)?);
/// let (w, mut pass, mut gradient) = ([0.0_f64; 6], model.pass(1), [0.0; 6]);
/// model.forward(&w, data.block(), &mut pass);
/// model.backward(&w, data.block(), &mut pass);
/// model.add_weighted(data.block(), &mut pass, &[1.0], &mut gradient);
/// // Away from the classes 0 and 1 by a third of the row each, towards class 2 by two thirds.
/// assert!((gradient[0] - 0.2).abs() < 1e-15 && (gradient[5] + 0.8 * 2.0 / 3.0).abs() < 1e-15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct SoftmaxModel<F> {
    loss: Softmax,
    dim: usize,
    blocks: [ParameterBlock; 1],
    kernels: Kernels,
    float: PhantomData<fn() -> F>,
}

/// Buffers of a [`SoftmaxModel`] for one microbatch.
#[derive(Clone)]
pub struct SoftmaxPass<F> {
    scratch: ClassScratch<F>,
}

impl<F> core::fmt::Debug for SoftmaxPass<F> {
    // Scores and residuals are functions of records: never printed.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SoftmaxPass").finish_non_exhaustive()
    }
}

impl<F: Real> SoftmaxPass<F> {
    /// Returns the scores of the last [`Model::forward`], class by class: those of class `c` are the `n` numbers from `c·n`.
    pub fn scores(&self) -> &[F] {
        &self.scratch.scores
    }
}

impl<F: Real> SoftmaxModel<F> {
    /// Creates a model of rows with `dim` features.
    pub fn new(dim: usize, loss: Softmax) -> Self {
        let parameters = dim.saturating_mul(loss.classes() as usize);
        let blocks = [ParameterBlock { name: "weights".to_owned(), range: 0..parameters }];
        Self { loss, dim, blocks, kernels: Kernels::new(), float: PhantomData }
    }

    /// Returns the loss.
    pub fn loss(&self) -> Softmax {
        self.loss
    }

    fn classes(&self) -> usize {
        self.loss.classes() as usize
    }

    fn check(&self, batch: &Block<'_, F>, parameters: &[F]) {
        assert!(
            parameters.len() == self.blocks[0].range.end && batch.rows.dim() == self.dim,
            "parameters and rows have the model's dimension"
        );
        assert!(batch.rows.len() == batch.targets.len(), "one target per row");
        assert!(batch.valid.is_none_or(|valid| valid.len() == batch.targets.len()), "one validity mark per row");
    }

    fn check_examples(&self, batch: &Block<'_, F>, held: usize) {
        assert_eq!(held, self.classes() * batch.targets.len(), "the batch of the last forward");
    }

    /// Returns whether an example is valid.
    fn counts(&self, batch: &Block<'_, F>, i: usize) -> bool {
        batch.valid.is_none_or(|valid| valid[i]) && self.loss.class_index(batch.targets[i]).is_some()
    }

    fn step(
        &self,
        scale: F,
        coefficient: F,
        batch: Block<'_, F>,
        pass: &mut SoftmaxPass<F>,
        direction: &mut [F],
        squared_norm: Option<&mut F>,
    ) {
        self.forward_scaled(scale, direction, batch, pass);
        self.backward(direction, batch, pass);
        let scratch = &mut pass.scratch;
        scratch.weights.clear();
        scratch.weights.extend(scratch.residuals.iter().map(|&residual| coefficient * residual));
        self.kernels.add_outer(ClassStep { rows: batch.rows, scratch, sum: direction, squared_norm });
    }
}

impl<F: Real> Model<F> for SoftmaxModel<F> {
    type Batch<'a> = Block<'a, F>;
    type Pass = SoftmaxPass<F>;

    fn blocks(&self) -> &[ParameterBlock] {
        &self.blocks
    }

    fn pass(&self, microbatch: usize) -> SoftmaxPass<F> {
        SoftmaxPass { scratch: ClassScratch::with_capacity(microbatch, self.classes()) }
    }

    fn forward(&self, parameters: &[F], batch: Block<'_, F>, pass: &mut SoftmaxPass<F>) {
        self.forward_scaled(F::one(), parameters, batch, pass);
    }

    fn losses(&self, batch: Block<'_, F>, pass: &SoftmaxPass<F>, out: &mut [F]) {
        let (scores, n) = (&pass.scratch.scores, batch.targets.len());
        self.check_examples(&batch, scores.len());
        assert_eq!(out.len(), n, "one loss per example of the last forward");
        for (i, loss) in out.iter_mut().enumerate() {
            *loss = match self.loss.class_index(batch.targets[i]) {
                Some(class) if self.counts(&batch, i) => {
                    let of_example = scores.iter().skip(i).step_by(n).copied();
                    let largest = of_example.clone().fold(scores[i], |m, z| if z > m { z } else { m });
                    let total = of_example.fold(F::zero(), |sum, z| sum + (z - largest).exponential());
                    (largest - scores[class * n + i]) + total.ln()
                }
                _ => F::zero(),
            };
        }
    }

    fn backward(&self, _parameters: &[F], batch: Block<'_, F>, pass: &mut SoftmaxPass<F>) {
        self.check_examples(&batch, pass.scratch.scores.len());
        self.kernels.class_residuals(batch.targets, &mut pass.scratch);
        let n = batch.targets.len();
        for i in (0..n).filter(|&i| !self.counts(&batch, i)) {
            pass.scratch.residuals.iter_mut().skip(i).step_by(n).for_each(|residual| *residual = F::zero());
        }
    }

    fn squared_norms(&self, batch: Block<'_, F>, pass: &mut SoftmaxPass<F>, out: &mut [F]) {
        let (residuals, n) = (&pass.scratch.residuals, batch.targets.len());
        self.check_examples(&batch, residuals.len());
        assert_eq!(out.len(), n, "one norm per example of the last backward");
        // Residuals lose no squares that underflow, as the row may be long. Those of a row do not matter: residuals are at most 1.
        let smallest = smallest_normal::<F>();
        let squared = |r: F| if r * r < smallest && r != F::zero() { smallest } else { r * r };
        for (i, square) in out.iter_mut().enumerate() {
            *square = residuals.iter().skip(i).step_by(n).fold(F::zero(), |sum, &r| sum + squared(r));
        }
        self.kernels.scale_by_squared_row_norms(
            batch.rows,
            out,
            |norm: F, square: F| if square == F::zero() { F::zero() } else { norm * square },
            |norm, square| if square == 0.0 { 0.0 } else { norm * square },
        );
    }

    /// # Formula
    /// In double precision the number of parameters, which is more than the required `d + C + 1`. In single precision `C` for the
    /// residuals and, since the rest is computed in double precision and rounded once, `1 + (d + 1) 2^-29`.
    fn norm_roundings(&self) -> f64 {
        if is_double::<F>() {
            self.parameters() as f64
        } else {
            f64::from(self.loss.classes()) + 2.0 + self.dim as f64 * 2f64.powi(-29)
        }
    }

    fn add_weighted(&self, batch: Block<'_, F>, pass: &mut SoftmaxPass<F>, coefficients: &[F], sum: &mut [F]) {
        self.check(&batch, sum);
        pass.set_weights(&batch, coefficients);
        self.kernels.add_outer(ClassStep { rows: batch.rows, scratch: &mut pass.scratch, sum, squared_norm: None });
    }

    fn add_weighted_in_double(
        &self,
        batch: Block<'_, F>,
        pass: &mut SoftmaxPass<F>,
        coefficients: &[F],
        sum: &mut [f64],
    ) {
        if let Some(sum) = F::from_doubles(sum) {
            return self.add_weighted(batch, pass, coefficients, sum);
        }
        assert!(sum.len() == self.blocks[0].range.end, "a sum has the model's dimension");
        pass.set_weights(&batch, coefficients);
        self.kernels.add_outer_in_double(batch.rows, &mut pass.scratch, sum);
    }
}

impl<F: Real> SoftmaxPass<F> {
    /// Sets `weights[c, i] = coefficients[i] · residuals[c, i]`, where a coefficient 0 gives 0 for any residual.
    fn set_weights(&mut self, batch: &Block<'_, F>, coefficients: &[F]) {
        let ClassScratch { residuals, weights, .. } = &mut self.scratch;
        assert_eq!(coefficients.len(), batch.targets.len(), "one coefficient per example");
        weights.clear();
        if coefficients.is_empty() {
            return;
        }
        assert!(residuals.len().is_multiple_of(coefficients.len()), "the batch of the last backward");
        for of_class in residuals.chunks_exact(coefficients.len()) {
            weights.extend(of_class.iter().zip(coefficients).map(|(&residual, &coefficient)| {
                if coefficient == F::zero() { F::zero() } else { coefficient * residual }
            }));
        }
    }
}

impl<F: Real> CompensatedGradient<F> for SoftmaxModel<F> {
    fn add_compensated(
        &self,
        (parameters, rest): (&[F], &[F]),
        batch: Block<'_, F>,
        pass: &mut SoftmaxPass<F>,
        sum: &mut CompensatedSum,
    ) {
        self.check(&batch, parameters);
        let (n, dim, scratch) = (batch.targets.len(), self.dim, &mut pass.scratch);
        scratch.in_two_parts.clear();
        if n == 0 || dim == 0 {
            return;
        }
        let mut rests = rest.chunks_exact(dim);
        for weights in parameters.chunks_exact(dim) {
            let weights = (weights, rests.next().unwrap_or_default());
            self.kernels.predictions_in_two_parts(batch.rows, weights, &mut scratch.in_two_parts);
        }
        let parts = &scratch.in_two_parts;
        // The residuals depend on the scores by their distances from the largest, which are computed before rounding.
        scratch.scores.clear();
        scratch.scores.resize(parts.len(), F::zero());
        for i in 0..n {
            let of_example = parts.iter().skip(i).step_by(n);
            let largest = of_example.clone().fold(parts[i], |m, &z| if z.0 + z.1 > m.0 + m.1 { z } else { m });
            for (score, &(high, low)) in scratch.scores.iter_mut().skip(i).step_by(n).zip(of_example) {
                let (gap, rest) = two_sum(high, -largest.0);
                *score = convert(gap + (rest + (low - largest.1)));
            }
        }
        self.backward(parameters, batch, pass);
        for (class, residuals) in pass.scratch.residuals.chunks_exact(n).enumerate() {
            self.kernels.add_rows_in_two_parts(batch.rows, residuals, sum, class * dim);
        }
    }
}

impl<F: Real> Curved<F> for SoftmaxModel<F> {
    fn features(&self) -> usize {
        self.dim
    }

    fn add_curvature(
        &self,
        parameters: &[F],
        batch: Block<'_, F>,
        pass: &mut SoftmaxPass<F>,
        blocks: &mut [F],
    ) -> usize {
        let (n, of_block) = (batch.rows.len(), self.dim * self.dim);
        assert_eq!(blocks.len(), self.classes() * of_block, "a square matrix of the features for each class");
        if n == 0 || of_block == 0 {
            return 0;
        }
        self.forward(parameters, batch, pass);
        self.backward(parameters, batch, pass);
        // A residual is p or p - 1.
        let residuals = &mut pass.scratch.residuals;
        residuals.iter_mut().for_each(|residual| *residual = residual.abs() * (F::one() - residual.abs()));
        self.kernels.add_squares(batch.rows, residuals, blocks)
    }
}

impl<F: Real> Differences<F> for SoftmaxModel<F> {
    fn difference(&self, scale: F, other: &SoftmaxPass<F>, pass: &mut SoftmaxPass<F>) {
        subtract(scale, &other.scratch.residuals, &mut pass.scratch.residuals);
    }
}

impl<F: Real> ScaledSteps<F> for SoftmaxModel<F> {
    fn forward_scaled(&self, scale: F, direction: &[F], batch: Block<'_, F>, pass: &mut SoftmaxPass<F>) {
        self.check(&batch, direction);
        self.kernels.class_scores(batch.rows, scale, direction, self.classes(), &mut pass.scratch);
    }

    fn step_scaled(
        &self,
        scale: F,
        coefficient: F,
        batch: Block<'_, F>,
        pass: &mut SoftmaxPass<F>,
        direction: &mut [F],
    ) {
        self.step(scale, coefficient, batch, pass, direction, None);
    }

    fn step_scaled_tracking_norm(
        &self,
        scale: F,
        coefficient: F,
        batch: Block<'_, F>,
        pass: &mut SoftmaxPass<F>,
        direction: &mut [F],
        squared_norm: &mut F,
    ) {
        self.step(scale, coefficient, batch, pass, direction, Some(squared_norm));
    }

    fn add_weighted_tracking_norm(
        &self,
        batch: Block<'_, F>,
        pass: &mut SoftmaxPass<F>,
        coefficients: &[F],
        direction: &mut [F],
        squared_norm: &mut F,
    ) {
        self.check(&batch, direction);
        pass.set_weights(&batch, coefficients);
        let (rows, scratch) = (batch.rows, &mut pass.scratch);
        self.kernels.add_outer(ClassStep { rows, scratch, sum: direction, squared_norm: Some(squared_norm) });
    }

    fn add_weighted_in_two_parts(
        &self,
        batch: Block<'_, F>,
        pass: &mut SoftmaxPass<F>,
        coefficients: &[F],
        direction: &mut CompensatedSum<F>,
    ) {
        self.check(&batch, direction.high());
        let (n, dim) = (batch.rows.len(), self.dim);
        if n == 0 || dim == 0 {
            return;
        }
        if let Rows::Sparse { .. } = batch.rows {
            pass.set_weights(&batch, coefficients);
            for (class, weights) in pass.scratch.weights.chunks_exact(n).enumerate() {
                self.kernels.add_rows_in_two_parts(batch.rows, weights, direction, class * dim);
            }
            return;
        }
        let mut buffer = core::mem::take(&mut pass.scratch.sum);
        direction.add_summed(&mut buffer, |sum| self.add_weighted(batch, pass, coefficients, sum));
        pass.scratch.sum = buffer;
    }
}
