//! Differences of one example's gradients at two points, for variance reduction.

use crate::model::Model;

/// A model whose gradients at two points can be subtracted, example by example, before they are clipped and summed.
///
/// For linear models both gradients are multiples of the row, and so is the difference: `(ℓ'(⟨w, x⟩) - ℓ'(⟨w̃, x⟩)) x`. Only one
/// number per example, or one per example and class, is stored.
///
/// # Laws
/// After [`backward`](Model::backward) on the same batch into two passes, and [`difference`](Self::difference):
/// 1. [`add_weighted`](Model::add_weighted) adds `scale` times the difference of the two original gradients;
/// 2. [`squared_norms`](Model::squared_norms) are those of these differences;
/// 3. an invalid example, or one whose two gradients have the same bits, adds exactly nothing.
///
/// # Examples
/// ```
/// use dp_data::Examples;
/// use dp_losses::{Differences, LinearModel, Model, Squared};
///
/// let data = Examples::dense(vec![1.0, 2.0], vec![0.0], 2)?;
/// let model = LinearModel::new(2, Squared);
/// let [mut here, mut there] = [[1.0_f64, 1.0], [1.0, 0.5]].map(|w| {
///     let mut pass = model.pass(1);
///     model.forward(&w, data.block(), &mut pass);
///     model.backward(&w, data.block(), &mut pass);
///     pass
/// });
/// // Predictions 3 and 2: the gradients are 3 x and 2 x.
/// model.difference(10.0, &there, &mut here);
/// let (mut sum, mut norm) = ([0.0; 2], [0.0]);
/// model.squared_norms(data.block(), &mut here, &mut norm);
/// model.add_weighted(data.block(), &mut here, &[1.0], &mut sum);
/// assert_eq!((sum, norm), ([10.0, 20.0], [500.0]));
/// # Ok::<(), dp_data::examples::ShapeError>(())
/// ```
///
/// # References
/// Johnson, Zhang, "Accelerating stochastic gradient descent using predictive variance reduction", NIPS 2013.
pub trait Differences<F>: Model<F> {
    /// Sets `pass <- scale · (pass - other)`, after [`backward`](Model::backward) on one batch into both.
    ///
    /// # Panics
    /// If the passes have processed different numbers of examples.
    fn difference(&self, scale: F, other: &Self::Pass, pass: &mut Self::Pass);
}

#[cfg(test)]
mod tests {
    use dp_data::Examples;

    use super::*;
    use crate::{HuberSvm, LinearModel, Logistic, Real, Softmax, SoftmaxModel};

    /// Sums and norms of the differences compared with those of the two gradients, example by example.
    fn keeps_its_laws<F: Real, M>(model: &M, targets: [f64; 4])
    where
        M: Differences<F> + for<'a> Model<F, Batch<'a> = dp_data::Block<'a, F>>,
    {
        let number = |x: f64| -> F { nalgebra::convert(x) };
        let wide = |x: F| -> f64 { x.to_subset_unchecked() };
        let rows: Vec<F> = (0..12).map(|i| number(((i * 7 + 3) % 11) as f64 / 11.0 - 0.5)).collect();
        let examples = Examples::dense(rows, targets.map(number).to_vec(), 3).unwrap();
        let valid = [true, true, false, true];
        let batch = dp_data::Block { valid: Some(&valid), ..examples.block() };
        let points = [1.0, -0.4].map(|by| -> Vec<F> {
            (0..model.parameters()).map(|j| number(by * ((j * 5 + 1) % 7) as f64 / 3.0)).collect()
        });
        let gradients = |i: usize, point: &[F]| {
            let one = batch.slice(i..i + 1);
            let (mut pass, mut sum) = (model.pass(1), vec![F::zero(); model.parameters()]);
            model.forward(point, one, &mut pass);
            model.backward(point, one, &mut pass);
            model.add_weighted(one, &mut pass, &[F::one()], &mut sum);
            sum.into_iter().map(wide).collect::<Vec<f64>>()
        };
        let mut passes = points.each_ref().map(|point| {
            let mut pass = model.pass(4);
            model.forward(point, batch, &mut pass);
            model.backward(point, batch, &mut pass);
            pass
        });
        let [here, there] = &mut passes;
        model.difference(number(3.0), there, here);
        let mut norms = vec![F::zero(); 4];
        model.squared_norms(batch, here, &mut norms);
        for i in 0..4 {
            let mut coefficients = [F::zero(); 4];
            coefficients[i] = number(0.5);
            let mut sum = vec![F::zero(); model.parameters()];
            model.add_weighted(batch, here, &coefficients, &mut sum);
            let (one, two) = (gradients(i, &points[0]), gradients(i, &points[1]));
            let mut square = 0.0;
            for ((found, one), two) in sum.into_iter().zip(one).zip(two) {
                let expected = 3.0 * (one - two);
                assert!((wide(found) - 0.5 * expected).abs() < 1e-5, "{i}: {expected}");
                square += expected * expected;
            }
            assert!((wide(norms[i]) - square).abs() < 1e-5 && (i == 2) == (square == 0.0), "{i}: {square}");
        }
        // The same point on both sides gives exactly zero.
        let [mut here, there] = [0, 1].map(|_| {
            let mut pass = model.pass(4);
            model.forward(&points[0], batch, &mut pass);
            model.backward(&points[0], batch, &mut pass);
            pass
        });
        model.difference(number(1e9), &there, &mut here);
        let mut sum = vec![F::zero(); model.parameters()];
        model.add_weighted(batch, &mut here, &[F::one(); 4], &mut sum);
        assert!(sum.into_iter().all(|entry| entry == F::zero()));
    }

    #[test]
    fn differences_keep_their_laws() {
        let labels = [1.0, -1.0, 1.0, -1.0];
        keeps_its_laws::<f64, _>(&LinearModel::new(3, Logistic), labels);
        keeps_its_laws::<f32, _>(&LinearModel::new(3, Logistic), labels);
        keeps_its_laws::<f64, _>(&LinearModel::new(3, HuberSvm::new(2.0).unwrap()), labels);
        keeps_its_laws::<f64, _>(&SoftmaxModel::new(3, Softmax::new(3).unwrap()), [0.0, 2.0, 1.0, 1.0]);
    }
}
