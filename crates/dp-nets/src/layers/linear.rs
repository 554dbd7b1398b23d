//! The linear layer.
//!
//! # Formula
//! ```text
//! z = a Wᵀ + b        ∂/∂a = g W        ∂/∂(W, b) = (gᵀ a, g)        |∂/∂(W, b)|² = (|a|² + 1) |g|²
//! ```
//! for one example with input `a` (`I` numbers) and gradient `g` of its loss with respect to `z` (`O` numbers); `W` is `O x I`,
//! row by row, and `b` follows it. With one view of an example, the norm needs no gradient: it is that of an outer product
//! (Goodfellow, 2015, arXiv:1510.01799).

use crate::float::Float;
use crate::kernels::{add, add_wide, is_finite, squared_norm, squared_norm_roundings, vectorised};
use crate::product::{Matrix, Output, multiply, multiply_rows};

/// A linear layer of `inputs` numbers and `outputs` units.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
}

impl Linear {
    fn split<'a, T>(&self, parameters: &'a [T]) -> (&'a [T], &'a [T]) {
        parameters.split_at(self.inputs * self.outputs)
    }

    fn rows<T>(&self, outputs: &[T]) -> usize {
        outputs.len() / self.outputs
    }

    pub(crate) fn forward<F: Float>(&self, parameters: &[F], input: &[F], spare: &mut Vec<F>, output: &mut [F]) {
        let (weights, bias) = self.split(parameters);
        output.chunks_exact_mut(self.outputs).for_each(|row| row.copy_from_slice(bias));
        let input = Matrix::new(input, self.rows(output), self.inputs);
        let weights = Matrix::new(weights, self.outputs, self.inputs).transposed();
        multiply_rows(input, weights, Output::Add, output, spare);
    }

    pub(crate) fn backward<F: Float>(
        &self,
        parameters: &[F],
        gradient: &[F],
        spare: &mut Vec<F>,
        input_gradient: &mut [F],
    ) {
        let (weights, _) = self.split(parameters);
        let gradient = Matrix::new(gradient, self.rows(gradient), self.outputs);
        let weights = Matrix::new(weights, self.outputs, self.inputs);
        multiply_rows(gradient, weights, Output::Set, input_gradient, spare);
    }

    /// Returns the number of parameters.
    pub(crate) fn parameters(&self) -> usize {
        self.outputs * (self.inputs + 1)
    }

    /// Writes the gradient of each example's loss with respect to the parameters: the sum over its `views` rows.
    pub(crate) fn per_example<F: Float>(&self, input: &[F], gradient: &[F], views: usize, per_example: &mut [F]) {
        let examples = input.chunks_exact(views * self.inputs).zip(gradient.chunks_exact(views * self.outputs));
        for ((input, gradient), own) in examples.zip(per_example.chunks_exact_mut(self.parameters())) {
            let (weights, bias) = own.split_at_mut(self.inputs * self.outputs);
            let gradients = Matrix::new(gradient, views, self.outputs).transposed();
            multiply(gradients, Matrix::new(input, views, self.inputs), Output::Set, weights);
            bias.fill(F::zero());
            gradient.chunks_exact(self.outputs).for_each(|row| add(row, bias));
        }
    }

    /// Writes the squared norm of each example's gradient, in double precision.
    pub(crate) fn squared_norms<'a, F: Float>(
        &self,
        input: &[F],
        gradient: &[F],
        norms: impl Iterator<Item = &'a mut f64>,
    ) {
        let examples = input.chunks_exact(self.inputs).zip(gradient.chunks_exact(self.outputs));
        // Squares that underflow lose no more, which matters where the input is large.
        let lost = self.outputs as f64 * f64::MIN_POSITIVE;
        let squared = |gradient: &[F]| match squared_norm(gradient) {
            small if small < lost / f64::EPSILON && gradient.iter().any(|&entry| entry != F::zero()) => small + lost,
            square => square,
        };
        vectorised(
            #[inline(always)]
            || {
                for (norm, (a, g)) in norms.zip(examples) {
                    *norm = (squared_norm(a) + 1.0) * squared(g);
                }
            },
        );
    }

    /// Returns a bound on the roundings of [`squared_norms`](Self::squared_norms), in double precision.
    pub(crate) fn norm_roundings(&self) -> f64 {
        squared_norm_roundings(self.inputs) + squared_norm_roundings(self.outputs) + 2.0
    }

    /// Computes `sum += Σ_i c_i gradient_i`.
    ///
    /// Where `c_i` is 0 and the input is not finite, the input is replaced by zeros, because its product with 0 would be NaN,
    /// and the gradient by NaN, so that the example stays excluded.
    pub(crate) fn add_weighted<F: Float>(
        &self,
        input: &mut [F],
        gradient: &mut [F],
        coefficients: &[F],
        scaled: &mut [F],
        sum: &mut [F],
    ) {
        self.scale(gradient, coefficients, scaled);
        let examples = input.chunks_exact_mut(self.inputs).zip(gradient.chunks_exact_mut(self.outputs));
        vectorised(
            #[inline(always)]
            || {
                for ((a, g), _) in examples.zip(coefficients).filter(|(_, c)| **c == F::zero()) {
                    if !is_finite(a) {
                        a.fill(F::zero());
                        g.fill(F::narrow(f64::NAN));
                    }
                }
            },
        );
        let (weights, bias) = sum.split_at_mut(self.inputs * self.outputs);
        vectorised(
            #[inline(always)]
            || {
                for row in scaled.chunks_exact(self.outputs) {
                    add(row, bias);
                }
            },
        );
        let n = coefficients.len();
        let input = Matrix::new(input, n, self.inputs);
        multiply(Matrix::new(scaled, n, self.outputs).transposed(), input, Output::Add, weights);
    }

    /// As [`add_weighted`](Self::add_weighted), with the products of the rounded `c_i g_i` and the inputs, and the sum, in
    /// double precision. `wide_input` and `wide` are buffers of as many numbers as `input` and `scaled`.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn add_weighted_in_double<F: Float>(
        &self,
        input: &[F],
        gradient: &[F],
        coefficients: &[F],
        scaled: &mut [F],
        wide_input: &mut [f64],
        wide: &mut [f64],
        sum: &mut [f64],
    ) {
        self.scale(gradient, coefficients, scaled);
        let rows = wide_input.chunks_exact_mut(self.inputs).zip(input.chunks_exact(self.inputs)).zip(coefficients);
        let (weights, bias) = sum.split_at_mut(self.inputs * self.outputs);
        vectorised(
            #[inline(always)]
            || {
                for ((wide, a), &c) in rows {
                    if c == F::zero() {
                        wide.fill(0.0);
                    } else {
                        for (wide, a) in wide.iter_mut().zip(a) {
                            *wide = a.wide();
                        }
                    }
                }
                for (wide, g) in wide.iter_mut().zip(&*scaled) {
                    *wide = g.wide();
                }
                for row in scaled.chunks_exact(self.outputs) {
                    add_wide(row, bias);
                }
            },
        );
        let n = coefficients.len();
        let input = Matrix::new(wide_input, n, self.inputs);
        multiply(Matrix::new(wide, n, self.outputs).transposed(), input, Output::Add, weights);
    }

    /// Sets row `i` of `scaled` to `c_i` times that of the gradient; zeros for a coefficient 0, whatever the gradient is.
    fn scale<F: Float>(&self, gradient: &[F], coefficients: &[F], scaled: &mut [F]) {
        let rows = scaled.chunks_exact_mut(self.outputs).zip(gradient.chunks_exact(self.outputs)).zip(coefficients);
        vectorised(
            #[inline(always)]
            || {
                for ((scaled, g), &c) in rows {
                    if c == F::zero() {
                        scaled.fill(F::zero());
                    } else {
                        for (scaled, &g) in scaled.iter_mut().zip(g) {
                            *scaled = c * g;
                        }
                    }
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gradients whose squares underflow, beside an input that makes those of the weights large.
    #[test]
    fn no_factor_of_a_norm_underflows() {
        let layer = Linear { inputs: 1, outputs: 2 };
        for (input, gradient) in [(1e140, 1e-163), (1e100, 1e-155)] {
            let mut norm = [0.0];
            layer.squared_norms::<f64>(&[input], &[gradient, -gradient], norm.iter_mut());
            assert!(norm[0].sqrt() >= 2f64.sqrt() * input * gradient * (1.0 - 1e-15), "{input}: {}", norm[0]);
        }
        let mut norm = [1.0];
        layer.squared_norms::<f64>(&[1e140], &[0.0, 0.0], norm.iter_mut());
        assert_eq!(norm, [0.0]);
    }
}
