//! The exact sums of a step: a record changes them by its own part only.

use core::marker::PhantomData;

use dp_accountant::{Adjacency, AdjacencyKind};
use dp_data::{Block, RowSource};
use dp_losses::{Loss, Real, ScalarLoss};
use dp_mechanisms::clip::{ClippingNorm, ExactSum, MomentSum};
use dp_mechanisms::{Bounded, L2Sensitivity};
use pulp::{Arch, Simd, WithSimd};

use super::RECIPE;
use super::joint::Joint;
use crate::engine::Control;
use crate::engine::grid_sum::{ExactSums, add_up, counts, exact_step, exact_sum};
use crate::engine::rows::{copy_row, dot};
use crate::error::Error;
use crate::recipes::noisy_moments::stage::check_square;

pub(super) struct StepSums<'s, 'c, F> {
    pub(super) source: &'s mut dyn RowSource<F>,
    pub(super) control: &'s mut Control<'c>,
    pub(super) pass: u32,
    pub(super) n: u64,
    pub(super) dim: usize,
    pub(super) loss: ScalarLoss,
    pub(super) joint: Joint,
    /// True if Hessians are summed as well.
    pub(super) curvature: bool,
}

/// Creates the sum of the rows' squares, weighted by their curvatures.
pub(super) fn squares<A: Adjacency>(joint: Joint, dim: usize, n: u64) -> Result<MomentSum<A>, Error> {
    let longest = (joint.weight() * joint.margin.largest()).sqrt() * joint.row_norm;
    check_square(dim, 0)?;
    Ok(MomentSum::squares(dim, ClippingNorm::new(longest)?, n)?)
}

/// Returns the sensitivity of both sums together, with an allowance for truncation and rounding.
pub(super) fn together<A: Adjacency>(joint: Joint, dim: usize, n: u64, squares: &MomentSum<A>) -> Result<f64, Error> {
    let norm = ClippingNorm::new(joint.row_norm)?;
    let root = (dim as f64).sqrt();
    let (of_gradient, of_row) = (exact_step(norm, n)? * root, squares.row_grid().step() * root);
    let longest = joint.weight() * joint.margin.largest() * joint.row_norm * joint.row_norm;
    let slack = 4.0 * of_gradient * joint.row_norm + 8.0 * of_row * longest.powf(1.5);
    Ok(joint.truncated(A::KIND, slack)? + squares.rounding())
}

impl<F: Real> StepSums<'_, '_, F> {
    /// Computes `(Σ a x, ω Σ a' x xᵀ)` at these weights, or the first part alone.
    pub(super) fn at<A: Adjacency>(self, weights: &[f64]) -> Result<Bounded<Vec<f64>, A>, Error> {
        let StepSums { source, control, pass, n, dim, loss, joint, curvature } = self;
        let sums = OfRecords::<A> { loss, weights, n, dim, joint, curvature, relation: PhantomData };
        let (mut gradient, squares) = add_up(&sums, source, pass, control)?;
        let Some(mut squares) = squares else { return Ok(gradient.finish()) };
        let sensitivity = L2Sensitivity::new(together(joint, dim, n, &squares)?)?;
        Ok(gradient.finish().followed_by_with_proven_sensitivity(squares.finish(), sensitivity))
    }
}

/// The sums of records, at these weights.
struct OfRecords<'w, A> {
    loss: ScalarLoss,
    weights: &'w [f64],
    n: u64,
    dim: usize,
    joint: Joint,
    curvature: bool,
    relation: PhantomData<fn() -> A>,
}

impl<F: Real, A: Adjacency> ExactSums<F> for OfRecords<'_, A> {
    type Sums = (ExactSum<A>, Option<MomentSum<A>>);

    fn numbers(&self) -> u64 {
        let dim = self.dim as u64;
        dim.saturating_mul(if self.curvature { dim } else { 1 })
    }

    fn empty(&self) -> Result<Self::Sums, Error> {
        let Self { n, dim, joint, .. } = *self;
        let gradient = exact_sum::<A>(dim, ClippingNorm::new(joint.row_norm)?, n)?;
        Ok((gradient, self.curvature.then(|| squares::<A>(joint, dim, n)).transpose()?))
    }

    fn add_block(&self, block: &Block<'_, F>, sums: &mut Self::Sums) -> Result<(), Error> {
        Arch::new().dispatch(AddBlock { of: self, block, sums })
    }

    fn merge(&self, (gradient, squares): &mut Self::Sums, part: Self::Sums) -> Result<(), Error> {
        gradient.merge(part.0)?;
        match (squares, part.1) {
            (Some(squares), Some(part)) => Ok(squares.merge(part)?),
            _ => Ok(()),
        }
    }
}

/// Adds the records of a block.
struct AddBlock<'a, 'w, 'b, F, A: Adjacency> {
    of: &'a OfRecords<'w, A>,
    block: &'a Block<'b, F>,
    sums: &'a mut (ExactSum<A>, Option<MomentSum<A>>),
}

impl<F: Real, A: Adjacency> WithSimd for AddBlock<'_, '_, '_, F, A> {
    type Output = Result<(), Error>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Result<(), Error> {
        let Self { of, block, sums: (gradient, squares) } = self;
        let OfRecords { loss, weights, dim, joint, .. } = *of;
        let (weight, mut row, mut scaled) = (joint.weight(), vec![0.0; dim], vec![0.0; dim]);
        for (i, &target) in block.targets.iter().enumerate() {
            if !counts(block, i) {
                continue;
            }
            let slope = loss.derivative(dot(&block.rows, i, weights), target.to_subset_unchecked());
            // A NaN slope would count in one sum and not in the other: it is 0 in both.
            let slope = if slope.is_nan() { 0.0 } else { slope.clamp(-1.0, 1.0) };
            copy_row(&block.rows, i, &mut row);
            // Errors of shape and number only, which were checked.
            multiply(slope, &row, &mut scaled);
            gradient.add(&scaled)?;
            if let Some(squares) = squares {
                multiply((weight * joint.margin.curvature(slope.abs())).sqrt(), &row, &mut scaled);
                squares.add(&scaled, &[])?;
            }
        }
        Ok(())
    }
}

#[inline(always)]
fn multiply(factor: f64, row: &[f64], scaled: &mut [f64]) {
    for (scaled, x) in scaled.iter_mut().zip(row) {
        *scaled = factor * x;
    }
}

/// Returns the sensitivity of the sum of gradients alone.
pub(super) fn of_gradient(joint: Joint, relation: AdjacencyKind) -> Result<f64, Error> {
    match relation {
        AdjacencyKind::ZeroOut => Ok(joint.row_norm),
        AdjacencyKind::ReplaceOne => Ok(2.0 * joint.row_norm),
        adjacency => Err(Error::Adjacency { recipe: RECIPE, adjacency }),
    }
}
