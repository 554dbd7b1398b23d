//! The quadratic model that a step minimises, computed from releases and public numbers.

use dp_mechanisms::clip::Moments;
use nalgebra::{DMatrix, DVector, Dyn, SymmetricEigen};

/// A symmetric matrix with its negative eigenvalues set to 0.
pub(super) struct Bend(SymmetricEigen<f64, Dyn>);

impl Bend {
    pub(super) fn new(matrix: DMatrix<f64>) -> Self {
        Self(SymmetricEigen::new(matrix))
    }

    /// Returns `(H₊ + ridge I)⁻¹ v`.
    fn solve(&self, ridge: f64, v: &DVector<f64>) -> DVector<f64> {
        let mut along = self.0.eigenvectors.tr_mul(v);
        for (entry, eigenvalue) in along.iter_mut().zip(&self.0.eigenvalues) {
            *entry /= eigenvalue.max(0.0) + ridge;
        }
        &self.0.eigenvectors * along
    }
}

pub(super) struct Model {
    dim: usize,
    /// Λ
    regularization: f64,
    /// The ridge for the noise of one Hessian.
    ridge: f64,
    curvature: Known,
}

enum Known {
    /// An upper bound for all points.
    Bound(Bend),
    /// The mean of the Hessians of the steps so far, and their number; each is released times ω.
    Mean { weight: f64, mean: DMatrix<f64>, count: f64 },
}

impl Model {
    pub(super) fn bounded(dim: usize, regularization: f64, ridge: f64, bound: Bend) -> Self {
        Self { dim, regularization, ridge, curvature: Known::Bound(bound) }
    }

    pub(super) fn of_steps(dim: usize, regularization: f64, ridge: f64, weight: f64) -> Self {
        let curvature = Known::Mean { weight, mean: DMatrix::zeros(dim, dim), count: 0.0 };
        Self { dim, regularization, ridge, curvature }
    }

    /// Updates the weights by `-η (H₊ + (Λ + ridge) I)⁻¹ (g + Λ w)`, with the sums that a step released.
    pub(super) fn step(&mut self, released: &[f64], length: f64, weights: &mut [f64]) {
        let (gradient, squares) = released.split_at(self.dim.min(released.len()));
        let here = DVector::from_column_slice(weights);
        let gradient = DVector::from_column_slice(gradient) + here * self.regularization;
        let direction = match &mut self.curvature {
            Known::Bound(bend) => bend.solve(self.ridge + self.regularization, &gradient),
            Known::Mean { weight, mean, count } => {
                let Some(moments) = Moments::new(squares, self.dim, 0) else { return };
                *count += 1.0;
                let off = moments.matrix / *weight - &*mean;
                *mean += off / *count;
                Bend::new(mean.clone()).solve(self.ridge / count.sqrt() + self.regularization, &gradient)
            }
        };
        weights.iter_mut().zip(&direction).for_each(|(weight, by)| *weight -= length * by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_the_formula_and_negative_eigenvalues_are_none() {
        // Eigenvalues 3 along (1, 1) and -1 along (1, -1).
        let matrix = DMatrix::from_row_slice(2, 2, &[1.0, 2.0, 2.0, 1.0]);
        let mut bounded = Model::bounded(2, 0.5, 0.5, Bend::new(matrix.clone()));
        let mut weights = [2.0, 0.0];
        bounded.step(&[3.0, 4.0], 0.5, &mut weights);
        // g + Λw = (4, 4): 4/(3 + 1), half of it.
        assert!(weights.iter().zip([1.5, -0.5]).all(|(w, e)| (w - e).abs() < 1e-12), "{weights:?}");
        bounded.step(&[-0.75 + 2.0, 0.25 - 2.0], 1.0, &mut weights);
        // (2, -2): no curvature there, 2/(0 + 1).
        assert!(weights.iter().zip([-0.5, 1.5]).all(|(w, e)| (w - e).abs() < 1e-12), "{weights:?}");
    }

    #[test]
    fn curvatures_of_steps_are_averaged_and_their_ridge_falls() {
        let mut model = Model::of_steps(1, 0.0, 4.0, 2.0);
        let mut weights = [0.0];
        // 2 H = 12, then 4: the mean of H is 6, then 4.
        model.step(&[-10.0, 12.0], 1.0, &mut weights);
        assert!((weights[0] - 1.0).abs() < 1e-12);
        model.step(&[-10.0, 4.0], 1.0, &mut weights);
        assert!((weights[0] - 1.0 - 10.0 / (4.0 + 4.0 / 2f64.sqrt())).abs() < 1e-12);
    }
}
