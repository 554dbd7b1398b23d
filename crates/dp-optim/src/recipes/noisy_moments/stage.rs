//! One noisy release of the second moments and the least-squares solution: a model itself, and the start or centre of others.

use core::marker::PhantomData;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, EventLog};
use dp_data::memory::{self, OutOfMemory};
use dp_data::sums::{SumKind, SumSource};
use dp_data::{Block, RowSource};
use dp_losses::{LossKind, Real};
use dp_mechanisms::clip::{ClippingNorm, MomentSum, Moments};
use dp_mechanisms::{Bounded, ReleaseRng, Released};
use nalgebra::{DMatrix, SymmetricEigen};

use crate::engine::grid_sum::{ExactSums, add_up, counts};
use crate::engine::rows::copy_row;
use crate::engine::{Control, sums};
use crate::error::Error;
use crate::recipes::linear::size;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::problem::{Problem, Setting};

/// The ridge divided by `σ √d`, σ the noise's standard deviation: about a third of the noise matrix's norm `√2 σ √d`.
const RIDGE: f64 = 0.4;

/// Checks that memory suffices for the moments of `dim` features with `outputs` targets: exact, released, and as a factorised
/// matrix.
pub(crate) fn check_square(dim: usize, outputs: usize) -> Result<(), OutOfMemory> {
    let numbers = dim.saturating_mul(dim.saturating_add(outputs));
    memory::check(numbers.saturating_mul(3 * size_of::<f64>()), "the second moments of this many features")
}

/// The public numbers that determine the moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stage {
    pub(in crate::recipes) loss: LossKind,
    pub(in crate::recipes) n: u64,
    pub(in crate::recipes) dim: u64,
    pub(in crate::recipes) row_norm: f64,
    pub(in crate::recipes) target_bound: f64,
}

impl Stage {
    pub(in crate::recipes) fn of(problem: &Problem) -> Self {
        let Problem { setting: Setting { loss, row_norm, target_bound, .. }, n, dim, .. } = *problem;
        Self { loss, n, dim, row_norm, target_bound }
    }

    /// Creates an empty sum of the moments.
    fn sum<A: Adjacency>(&self) -> Result<MomentSum<A>, Error> {
        let outputs = self.loss.outputs() as usize;
        // A class is encoded as a unit vector.
        let target_norm = if outputs > 1 { 1.0 } else { self.target_bound };
        let (rows, targets) = (ClippingNorm::new(self.row_norm)?, ClippingNorm::new(target_norm)?);
        let dim = size("dimension", self.dim)?;
        check_square(dim, outputs)?;
        Ok(MomentSum::new(dim, outputs, rows, targets, self.n)?)
    }

    pub(crate) fn sensitivity<A: Adjacency>(&self) -> Result<f64, Error> {
        Ok(self.sum::<A>()?.sensitivity().get())
    }

    pub(in crate::recipes) fn moments(&self) -> u64 {
        let square = u128::from(self.dim) * (u128::from(self.dim) + 1) / 2;
        let moments = square + u128::from(self.dim) * u128::from(self.loss.outputs());
        u64::try_from(moments).unwrap_or(u64::MAX)
    }

    /// Returns the factor from least-squares solutions to weights of the loss: the slopes at prediction 0 agree then.
    ///
    /// For targets `y` of -1 and +1, least squares estimates `E y`, and the logistic loss the logarithm of the odds, which is
    /// twice `E y`, and more for larger ones. For one of `C` classes least squares estimates the probability less `1/C`, and
    /// softmax the logarithm of the probability, `C` times that.
    fn to_weights(self) -> f64 {
        match self.loss {
            LossKind::Logistic => 2.0,
            LossKind::Softmax(softmax) => f64::from(softmax.classes()),
            _ => 1.0,
        }
    }

    pub(crate) fn moments_released<F: Real, A: Adjacency>(
        &self,
        noise: NoiseScale,
        mode: NoiseMode,
        source: &mut dyn RowSource<F>,
        log: &mut EventLog<A>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Released<Vec<f64>>, Error> {
        let sums = match source.sums() {
            Some(elsewhere) => self.sum_elsewhere::<A>(elsewhere)?,
            None => add_up(&OfRecords::<A>(self, PhantomData), source, 0, control)?.finish(),
        };
        noise.release(sums, self.moments(), mode, None, log, rng)
    }

    fn sum_elsewhere<A: Adjacency>(&self, source: &mut dyn SumSource) -> Result<Bounded<Vec<f64>, A>, Error> {
        // A class is encoded as a vector of norm below 1.
        if self.row_norm != 1.0 || self.loss.outputs() == 1 && self.target_bound != 1.0 {
            return Err(Error::NotProved {
                recipe: super::RECIPE,
                why: "another engine adds up rows and targets of norm at most 1",
            });
        }
        let mut sum = self.sum::<A>()?;
        let kind = SumKind::Moments { outputs: self.loss.outputs() };
        sums::once(source, (kind, sum.bits()), self.n, |found| {
            sum.add_from_elsewhere(&found.steps, found.records)?;
            Ok(sum.finish())
        })
    }

    /// Solves released moments for the model's weights.
    ///
    /// # Formula
    /// ```text
    /// w = c (A₊ + (ridge + 0.4 σ √d) I)⁻¹ v
    /// ```
    /// `A₊` is the matrix nearest to the noisy `Σ x xᵀ` that has no negative eigenvalue and a trace of at most `n X²`, as every sum
    /// over `n` rows of norm `X` has. Without the bound on the trace the noise alone has positive eigenvalues of `0.3 σ d^{3/2}` in
    /// sum, which exceeds `n X²` for few records.
    pub(in crate::recipes) fn solve(
        &self,
        released: Released<Vec<f64>>,
        noise: NoiseScale,
        ridge: f64,
    ) -> Result<Released<Vec<f64>>, Error> {
        let (dim, outputs) = (size("dimension", self.dim)?, self.loss.outputs() as usize);
        let ridge = ridge + RIDGE * noise.coordinate_std_dev(self.moments()) * (self.dim as f64).sqrt();
        let (scale, most) = (self.to_weights(), self.n as f64 * self.row_norm * self.row_norm);
        Ok(released.map(|numbers| {
            let weights = Moments::new(&numbers, dim, outputs).map(|moments| least_squares(moments, most, ridge));
            // Class after class: column after column.
            weights.map_or_else(Vec::new, |weights| weights.iter().map(|weight| scale * weight).collect())
        }))
    }

    /// Encodes a record's target: its number, or its class as a unit vector minus the mean of all unit vectors. Returns
    /// `false` for a target that is no class index, whose record does not count.
    pub(super) fn code<F: Real>(&self, target: F, coded: &mut [f64]) -> bool {
        let number: f64 = target.to_subset_unchecked();
        if let [only] = coded {
            *only = number;
            return true;
        }
        let classes = coded.len() as f64;
        coded.fill(-1.0 / classes);
        let is_class = number >= 0.0 && number < classes && number.fract() == 0.0;
        if is_class && let Some(own) = coded.get_mut(number as usize) {
            *own += 1.0;
        }
        is_class
    }
}

/// The moments of records.
struct OfRecords<'s, A>(&'s Stage, PhantomData<fn() -> A>);

impl<F: Real, A: Adjacency> ExactSums<F> for OfRecords<'_, A> {
    type Sums = MomentSum<A>;

    fn numbers(&self) -> u64 {
        self.0.moments()
    }

    fn empty(&self) -> Result<MomentSum<A>, Error> {
        self.0.sum()
    }

    fn add_block(&self, block: &Block<'_, F>, sum: &mut MomentSum<A>) -> Result<(), Error> {
        let Self(stage, _) = self;
        let (dim, outputs) = (size("dimension", stage.dim)?, stage.loss.outputs() as usize);
        let (mut row, mut coded) = (vec![0.0; dim], vec![0.0; outputs]);
        for (i, &target) in (0..).zip(block.targets).filter(|(i, _)| counts(block, *i)) {
            if !stage.code(target, &mut coded) {
                continue;
            }
            copy_row(&block.rows, i, &mut row);
            sum.add(&row, &coded)?;
        }
        Ok(())
    }

    fn merge(&self, sum: &mut MomentSum<A>, part: MomentSum<A>) -> Result<(), Error> {
        Ok(sum.merge(part)?)
    }
}

/// Returns `(A₊ + ridge I)⁻¹ V`, with a trace of `A₊` of at most `most`.
fn least_squares(moments: Moments, most: f64, ridge: f64) -> DMatrix<f64> {
    let SymmetricEigen { eigenvectors, eigenvalues } = SymmetricEigen::new(moments.matrix);
    let excess = excess(eigenvalues.iter().copied().collect(), most);
    let mut along = eigenvectors.tr_mul(&moments.vectors);
    for (mut row, eigenvalue) in along.row_iter_mut().zip(&eigenvalues) {
        row /= (eigenvalue - excess).max(0.0) + ridge;
    }
    eigenvectors * along
}

/// Returns the smallest `t >= 0` for which the positive parts of `values - t` add up to at most `most`: subtracting it is the
/// Euclidean projection onto non-negative values with that sum.
///
/// # References
/// Held, Wolfe, Crowder, "Validation of subgradient optimization", Mathematical Programming 1974.
fn excess(mut values: Vec<f64>, most: f64) -> f64 {
    values.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut excess) = (0.0, 0.0f64);
    for (&value, count) in values.iter().zip(1u32..) {
        sum += value;
        // The mean by which the largest values exceed the bound grows as long as each of them exceeds it.
        excess = excess.max((sum - most) / f64::from(count));
    }
    excess
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum_above(values: &[f64], threshold: f64) -> f64 {
        values.iter().map(|value| (value - threshold).max(0.0)).sum()
    }

    proptest! {
        #[test]
        fn the_excess_leaves_the_largest_allowed_sum(
            values in proptest::collection::vec(-10.0f64..10.0, 1..20), most in 0.0f64..20.0,
        ) {
            let excess = excess(values.clone(), most);
            let left = sum_above(&values, excess);
            prop_assert!(excess >= 0.0 && left <= most + 1e-12);
            prop_assert!(excess == 0.0 || left >= most - 1e-12);
        }
    }

    /// Noise that is large beside the records: the matrix that is solved has at most their trace, so that the solution along an
    /// eigenvector is at least what that trace allows.
    #[test]
    fn a_matrix_of_noise_is_reduced_to_the_trace_of_the_records() {
        let matrix = DMatrix::from_diagonal(&vec![900.0, 300.0, -500.0].into());
        let vectors = DMatrix::from_element(3, 1, 10.0);
        let found = least_squares(Moments { matrix, vectors }, 800.0, 100.0);
        // 900 + 300 exceeds 800 by 200 for each.
        let expected = [10.0 / 800.0, 10.0 / 200.0, 10.0 / 100.0];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-14, "{found} {expected}");
        }
    }
}
