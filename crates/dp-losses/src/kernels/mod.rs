//! The inner loops over rows, one call per batch.
//!
//! [`Kernels`] holds the instruction set detected at run time (AVX-512, AVX2 with FMA, NEON, or plain), so that an ordinary
//! release build is as fast as one compiled for the machine. Dense rows call code compiled for that set once per batch;
//! everything below is inlined there. So do sparse rows, except in a batch of one, where latency dominates and the call costs
//! more than it gains. `reference.rs` contains the same functions as plain loops, and a property test checks that the two agree
//! within rounding.

mod class_tiles;
mod classes;
mod compensated;
mod dense;
mod lanes;
mod of_loss;
#[cfg(test)]
mod reference;
mod sparse;
mod squares;

use dp_data::Rows;
use pulp::{Arch, Simd, WithSimd};

pub(crate) use classes::{ClassScratch, ClassStep};
pub use lanes::Lanes;
pub use of_loss::{Compiled, LossKernel};

use crate::linear::is_double;
use crate::loss::Loss;
use crate::real::Real;
use sparse::Compressed;

/// The kernels for the machine's instruction set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernels {
    arch: Arch,
}

/// Buffers for a batch.
#[derive(Debug, Clone)]
pub(crate) struct Scratch<F> {
    pub(crate) predictions: Vec<F>,
    pub(crate) derivatives: Vec<F>,
    pub(crate) weights: Vec<F>,
    /// Predictions before rounding.
    pub(crate) in_two_parts: Vec<(f64, f64)>,
    /// Targets for losses of the residual: zeros.
    pub(crate) origin: Vec<F>,
    /// A batch's sum, before it is added to a vector in two parts, or derivatives computed with the predictions.
    pub(crate) sum: Vec<F>,
    selected: Vec<usize>,
}

impl<F: Real> Scratch<F> {
    pub(crate) fn with_capacity(examples: usize) -> Self {
        Self {
            predictions: Vec::with_capacity(examples),
            derivatives: Vec::with_capacity(examples),
            weights: Vec::with_capacity(examples),
            in_two_parts: Vec::new(),
            origin: Vec::new(),
            sum: Vec::new(),
            selected: Vec::with_capacity(examples),
        }
    }
}

/// One whole step: predictions at `scale · v`, then `v += coefficient · Σ_i ℓ'_i x_i`, with `|v|²` updated on request.
pub(crate) struct Step<'a, F> {
    pub(crate) scale: F,
    pub(crate) coefficient: F,
    pub(crate) targets: &'a [F],
    pub(crate) valid: Option<&'a [bool]>,
    pub(crate) scratch: &'a mut Scratch<F>,
    pub(crate) v: &'a mut [F],
    pub(crate) squared_norm: Option<&'a mut F>,
}

impl Kernels {
    /// Detects the instruction set.
    pub(crate) fn new() -> Self {
        Self { arch: Arch::new() }
    }

    /// Computes `scratch.predictions[i] = scale · ⟨w, x_i⟩`.
    pub(crate) fn predictions<F: Real>(&self, rows: Rows<'_, F>, scale: F, w: &[F], scratch: &mut Scratch<F>) {
        struct Predictions<'a, F>(Rows<'a, F>, F, &'a [F], &'a mut [F]);
        impl<F: Real> WithSimd for Predictions<'_, F> {
            type Output = ();
            #[inline(always)]
            fn with_simd<S: Simd>(self, simd: S) {
                let Self(rows, scale, w, out) = self;
                match rows {
                    Rows::Dense { values, .. } => dense::predictions(simd, values, scale, w, out),
                    Rows::Sparse { offsets, indices, values, .. } => {
                        sparse::predictions(Compressed { offsets, indices, values }, scale, w, out);
                    }
                }
            }
        }
        let out = &mut scratch.predictions;
        out.resize(rows.len(), F::zero());
        self.arch.dispatch(Predictions(rows, scale, w, out));
    }

    /// Computes `scratch.derivatives[i] = ∂ℓ/∂p` at `scratch.predictions[i]`; 0 for examples that `valid` excludes.
    pub(crate) fn derivatives<F: Real, L: Loss<F>>(
        &self,
        loss: L,
        targets: &[F],
        valid: Option<&[bool]>,
        scratch: &mut Scratch<F>,
    ) {
        let Scratch { predictions, derivatives, .. } = scratch;
        self.arch.dispatch(Derivatives { loss, coefficient: F::one(), predictions, targets, valid, out: derivatives });
    }

    /// Computes `sum += Σ_i scratch.weights[i] · x_i`; a weight 0 adds nothing of its row. Updates `squared_norm = |sum|²` on
    /// request.
    pub(crate) fn add_rows<F: Real>(
        &self,
        rows: Rows<'_, F>,
        scratch: &mut Scratch<F>,
        sum: &mut [F],
        squared_norm: Option<&mut F>,
    ) {
        struct Sum<'a, F>(Rows<'a, F>, &'a mut Scratch<F>, &'a mut [F], Option<&'a mut F>);
        impl<F: Real> WithSimd for Sum<'_, F> {
            type Output = ();
            #[inline(always)]
            fn with_simd<S: Simd>(self, simd: S) {
                let Self(rows, scratch, sum, squared_norm) = self;
                match rows {
                    Rows::Dense { values, .. } => {
                        let Scratch { weights, selected, .. } = scratch;
                        add_selected_rows(simd, values, weights, selected, sum, squared_norm);
                    }
                    Rows::Sparse { offsets, indices, values, .. } => {
                        let rows = Compressed { offsets, indices, values };
                        sparse::add_rows(rows, &scratch.weights, sum, squared_norm);
                    }
                }
            }
        }
        self.arch.dispatch(Sum(rows, scratch, sum, squared_norm));
    }

    /// Computes `out[i] = own(|x_i|², out[i])`, in `F` if that is double precision, otherwise by `wide` in double precision and
    /// rounded once: squares are then exact and no intermediate result over- or underflows.
    pub(crate) fn scale_by_squared_row_norms<F: Real>(
        &self,
        rows: Rows<'_, F>,
        out: &mut [F],
        own: impl Fn(F, F) -> F,
        wide: impl Fn(f64, f64) -> f64,
    ) {
        struct Op<'a, F, O, W>(Rows<'a, F>, &'a mut [F], O, W);
        impl<F: Real, O: Fn(F, F) -> F, W: Fn(f64, f64) -> f64> WithSimd for Op<'_, F, O, W> {
            type Output = ();
            #[inline(always)]
            fn with_simd<S: Simd>(self, simd: S) {
                let Self(rows, out, own, wide) = self;
                let scale = |row: &[F], factor: F| -> F {
                    if is_double::<F>() {
                        own(dense::squared_norm(simd, row), factor)
                    } else {
                        let factor: f64 = factor.to_subset_unchecked();
                        nalgebra::convert(wide(dense::squared_norm_in_double(row), factor))
                    }
                };
                match rows {
                    Rows::Dense { values, dim } => {
                        for (out, row) in out.iter_mut().zip(values.chunks_exact(dim.max(1))) {
                            *out = scale(row, *out);
                        }
                    }
                    Rows::Sparse { offsets, values, .. } => {
                        for (out, ends) in out.iter_mut().zip(offsets.windows(2)) {
                            *out = scale(&values[ends[0]..ends[1]], *out);
                        }
                    }
                }
            }
        }
        self.arch.dispatch(Op(rows, out, own, wide));
    }

    /// Computes `sum += Σ_i weights[i] · x_i` in double precision, in which products of two single-precision numbers are exact; a
    /// weight 0 adds nothing of its row.
    pub(crate) fn add_rows_in_double<F: Real>(&self, rows: Rows<'_, F>, weights: &[F], sum: &mut [f64]) {
        struct Sum<'a, F>(Rows<'a, F>, &'a [F], &'a mut [f64]);
        impl<F: Real> WithSimd for Sum<'_, F> {
            type Output = ();
            #[inline(always)]
            fn with_simd<S: Simd>(self, _simd: S) {
                let Self(rows, weights, sum) = self;
                match rows {
                    Rows::Dense { values, .. } => dense::add_rows_in_double(values, weights, sum),
                    Rows::Sparse { offsets, indices, values, .. } => {
                        sparse::add_rows_in_double(Compressed { offsets, indices, values }, weights, sum);
                    }
                }
            }
        }
        self.arch.dispatch(Sum(rows, weights, sum));
    }

    /// Makes one whole step.
    pub(crate) fn step<F: Real, L: Loss<F>>(&self, loss: L, rows: Rows<'_, F>, step: Step<'_, F>) {
        struct Dense<'a, F, L>(L, &'a [F], Step<'a, F>);
        impl<F: Real, L: Loss<F>> WithSimd for Dense<'_, F, L> {
            type Output = ();
            #[inline(always)]
            fn with_simd<S: Simd>(self, simd: S) {
                dense_step(simd, self.0, self.1, self.2);
            }
        }
        struct Sparse<'a, F, L>(L, Compressed<'a, F>, Step<'a, F>);
        impl<F: Real, L: Loss<F>> WithSimd for Sparse<'_, F, L> {
            type Output = ();
            #[inline(always)]
            fn with_simd<S: Simd>(self, simd: S) {
                sparse_step(simd, self.0, self.1, self.2);
            }
        }
        match (rows, step.targets, step.valid) {
            (Rows::Dense { values, .. }, ..) => self.arch.dispatch(Dense(loss, values, step)),
            (Rows::Sparse { offsets, indices, values, .. }, &[target], None) => {
                sparse_single_step(loss, Compressed { offsets, indices, values }, target, step);
            }
            (Rows::Sparse { offsets, indices, values, .. }, ..) => {
                self.arch.dispatch(Sparse(loss, Compressed { offsets, indices, values }, step));
            }
        }
    }
}

/// Makes a step of one sparse row, without a buffer and without a call to code for the instruction set.
#[inline(always)]
fn sparse_single_step<F: Real, L: Loss<F>>(loss: L, rows: Compressed<'_, F>, target: F, step: Step<'_, F>) {
    let Step { scale, coefficient, v, squared_norm, .. } = step;
    let mut prediction = [F::zero()];
    sparse::predictions(rows, scale, v, &mut prediction);
    let weight = coefficient * loss.derivative(prediction[0], target);
    sparse::add_rows(rows, &[weight], v, squared_norm);
}

#[inline(always)]
fn sparse_step<S: Simd, F: Real, L: Loss<F>>(simd: S, loss: L, rows: Compressed<'_, F>, step: Step<'_, F>) {
    let Step { scale, coefficient, targets, valid, scratch, v, squared_norm } = step;
    let Scratch { predictions, weights, .. } = scratch;
    predictions.resize(targets.len(), F::zero());
    sparse::predictions(rows, scale, v, predictions);
    Derivatives { loss, coefficient, predictions, targets, valid, out: weights }.with_simd(simd);
    sparse::add_rows(rows, weights, v, squared_norm);
}

#[inline(always)]
fn dense_step<S: Simd, F: Real, L: Loss<F>>(simd: S, loss: L, values: &[F], step: Step<'_, F>) {
    let Step { scale, coefficient, targets, valid, scratch, v, squared_norm } = step;
    if let (&[target], None, true) = (targets, valid, values.len() == v.len()) {
        // A batch of one needs no buffer; only latency matters.
        let weight = coefficient * loss.derivative(scale * dense::dot(simd, values, v), target);
        if weight != F::zero() {
            dense::add_row(simd, weight, values, v);
        }
        if let Some(squared_norm) = squared_norm {
            *squared_norm = dense::squared_norm(simd, v);
        }
        return;
    }
    let Scratch { predictions, weights, selected, .. } = scratch;
    predictions.resize(targets.len(), F::zero());
    dense::predictions(simd, values, scale, v, predictions);
    Derivatives { loss, coefficient, predictions, targets, valid, out: weights }.with_simd(simd);
    add_selected_rows(simd, values, weights, selected, v, squared_norm);
}

/// Computes `out[i] = coefficient · ∂ℓ/∂p`; 0 for examples that `valid` excludes.
struct Derivatives<'a, F, L> {
    loss: L,
    coefficient: F,
    predictions: &'a [F],
    targets: &'a [F],
    valid: Option<&'a [bool]>,
    out: &'a mut Vec<F>,
}

impl<F: Real, L: Loss<F>> WithSimd for Derivatives<'_, F, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { loss, coefficient, predictions, targets, valid, out } = self;
        out.resize(predictions.len(), F::zero());
        let derivative = |prediction, target| coefficient * loss.derivative(prediction, target);
        let blocks = out.as_chunks_mut().0.iter_mut().zip(predictions.as_chunks().0).zip(targets.as_chunks().0);
        for ((out, predictions), targets) in blocks {
            in_block(derivative, predictions, targets, out);
        }
        // The remainder is computed with the numbers before it, again as a whole block: one by one it takes as long as all blocks
        // of a small batch together.
        match (out.last_chunk_mut(), predictions.last_chunk(), targets.last_chunk()) {
            (Some(out), Some(predictions), Some(targets)) => {
                in_block(derivative, predictions, targets, out);
            }
            _ => {
                for ((out, &prediction), &target) in out.iter_mut().zip(predictions).zip(targets) {
                    *out = derivative(prediction, target);
                }
            }
        }
        if let Some(valid) = valid {
            for (out, &valid) in out.iter_mut().zip(valid) {
                if !valid {
                    *out = F::zero();
                }
            }
        }
    }
}

/// Number of derivatives computed together.
const BLOCK: usize = 16;

#[inline(always)]
fn in_block<F: Real>(
    derivative: impl Fn(F, F) -> F,
    predictions: &[F; BLOCK],
    targets: &[F; BLOCK],
    out: &mut [F; BLOCK],
) {
    for i in 0..BLOCK {
        out[i] = derivative(predictions[i], targets[i]);
    }
}

/// Returns whether no weight is 0.
#[inline(always)]
fn has_no_zero<F: Real>(weights: &[F]) -> bool {
    weights.iter().fold(true, |all, weight| all & (*weight != F::zero()))
}

/// Computes `sum += Σ_i weights[i] · x_i` over the rows with nonzero weight.
#[inline(always)]
fn add_selected_rows<S: Simd, F: Real>(
    simd: S,
    values: &[F],
    weights: &[F],
    selected: &mut Vec<usize>,
    sum: &mut [F],
    squared_norm: Option<&mut F>,
) {
    let dim = sum.len();
    if dim == 0 {
        return;
    }
    if has_no_zero(weights) {
        dense::add_rows(simd, weights.iter().copied().zip(values.chunks_exact(dim)), sum);
    } else {
        selected.clear();
        selected.extend((0..).zip(weights).filter(|(_, weight)| **weight != F::zero()).map(|(i, _)| i));
        let rows = selected.iter().map(|&i: &usize| (weights[i], &values[i * dim..(i + 1) * dim]));
        dense::add_rows(simd, rows, sum);
    }
    if let Some(squared_norm) = squared_norm {
        *squared_norm = dense::squared_norm(simd, sum);
    }
}

#[cfg(test)]
mod tests;
