//! The inner loops of a model with one score per class: scores, residuals and the sum of outer products.
//!
//! Scores and residuals are stored class by class, so that their computation vectorises over examples. Dense rows are read once
//! for a [tile](super::class_tiles) of classes, sparse rows once for each class; sums take rows in groups that fit a near cache.

use dp_data::Rows;
use pulp::{Simd, WithSimd};

use super::compensated::double;
use super::sparse::Compressed;
use super::{BLOCK, Kernels, Lanes, add_selected_rows, class_tiles, dense, has_no_zero, sparse};
use crate::real::Real;

/// Number of values in a group of dense rows: 128 KiB in double precision.
const GROUP: usize = 1 << 14;

/// Buffers for a batch: `classes x examples` numbers each, class by class.
#[derive(Debug, Clone)]
pub(crate) struct ClassScratch<F> {
    pub(crate) scores: Vec<F>,
    pub(crate) residuals: Vec<F>,
    pub(crate) weights: Vec<F>,
    /// Scores before rounding, class by class.
    pub(crate) in_two_parts: Vec<(f64, f64)>,
    /// A batch's sum, before it is added to a vector in two parts.
    pub(crate) sum: Vec<F>,
    /// A group of rows and its weights in double precision.
    doubles: [Vec<f64>; 2],
    selected: Vec<usize>,
    /// The classes' weights and some rows' scores, with neighbouring classes side by side.
    packed: Vec<F>,
    by_row: Vec<F>,
}

impl<F: Real> ClassScratch<F> {
    pub(crate) fn with_capacity(examples: usize, classes: usize) -> Self {
        let room = || Vec::with_capacity(examples.saturating_mul(classes));
        Self {
            scores: room(),
            residuals: room(),
            weights: room(),
            in_two_parts: Vec::new(),
            sum: Vec::new(),
            doubles: [Vec::new(), Vec::new()],
            selected: Vec::with_capacity(examples),
            packed: Vec::new(),
            by_row: Vec::new(),
        }
    }
}

/// Computes `sum[c] += Σ_i scratch.weights[c, i] · x_i` for every class, and updates `|sum|²` on request.
pub(crate) struct ClassStep<'a, F> {
    pub(crate) rows: Rows<'a, F>,
    pub(crate) scratch: &'a mut ClassScratch<F>,
    pub(crate) sum: &'a mut [F],
    pub(crate) squared_norm: Option<&'a mut F>,
}

impl Kernels {
    /// Computes `scratch.scores[c, i] = scale · ⟨w_c, x_i⟩`.
    pub(crate) fn class_scores<F: Real>(
        &self,
        rows: Rows<'_, F>,
        scale: F,
        w: &[F],
        classes: usize,
        scratch: &mut ClassScratch<F>,
    ) {
        struct Scores<'a, F>(Rows<'a, F>, F, &'a [F], &'a mut ClassScratch<F>);
        impl<F: Real> WithSimd for Scores<'_, F> {
            type Output = ();
            #[inline(always)]
            fn with_simd<S: Simd>(self, simd: S) {
                let Self(rows, scale, w, ClassScratch { scores, packed, by_row, .. }) = self;
                let (n, dim) = (rows.len(), rows.dim());
                if n == 0 || dim == 0 {
                    scores.fill(F::zero());
                    return;
                }
                match rows {
                    Rows::Dense { values, .. } => {
                        class_tiles::scores(simd, (values, dim), scale, w, [packed, by_row], scores);
                    }
                    Rows::Sparse { offsets, indices, values, .. } => {
                        for (w, scores) in w.chunks_exact(dim).zip(scores.chunks_exact_mut(n)) {
                            sparse::predictions(Compressed { offsets, indices, values }, scale, w, scores);
                        }
                    }
                }
            }
        }
        scratch.scores.resize(classes * rows.len(), F::zero());
        self.arch.dispatch(Scores(rows, scale, w, scratch));
    }

    /// Computes `scratch.residuals[c, i] = p_c - [c = y_i]` at `scratch.scores`; the result for targets that are not a class is
    /// meaningless.
    ///
    /// Every residual lies exactly in [-1, 1], that of the target in [-1, 0], the others in [0, 1], each with a relative error of
    /// a few units and one more for each class.
    pub(crate) fn class_residuals<F: Real>(&self, targets: &[F], scratch: &mut ClassScratch<F>) {
        let ClassScratch { scores, residuals, .. } = scratch;
        residuals.resize(scores.len(), F::zero());
        self.arch.dispatch(Residuals { targets, scores, residuals });
    }

    /// Adds one sum of outer products in double precision, in which the products of numbers in single precision are exact.
    pub(crate) fn add_outer_in_double<F: Real>(
        &self,
        rows: Rows<'_, F>,
        scratch: &mut ClassScratch<F>,
        sum: &mut [f64],
    ) {
        self.arch.dispatch(ClassStepInDouble { rows, scratch, sum });
    }

    /// Adds one sum of outer products.
    pub(crate) fn add_outer<F: Real>(&self, step: ClassStep<'_, F>) {
        self.arch.dispatch(step);
    }
}

/// Returns the number of rows processed together.
fn group_size<F>(rows: &Rows<'_, F>) -> usize {
    match rows {
        Rows::Dense { dim, .. } => (GROUP / (*dim).max(1)).max(1),
        Rows::Sparse { .. } => 256,
    }
}

struct Residuals<'a, F> {
    targets: &'a [F],
    scores: &'a [F],
    residuals: &'a mut [F],
}

impl<F: Real> WithSimd for Residuals<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { targets, scores, residuals } = self;
        let n = targets.len();
        let Some(last) = n.checked_sub(BLOCK) else {
            return (0..n).for_each(|i| residuals_of_block::<F, 1>(targets, scores, residuals, i));
        };
        for start in (0..last).step_by(BLOCK) {
            residuals_of_block::<F, BLOCK>(targets, scores, residuals, start);
        }
        // The last block overlaps the one before.
        residuals_of_block::<F, BLOCK>(targets, scores, residuals, last);
    }
}

/// Computes the residuals of the `B` examples from `start` on.
#[inline(always)]
fn residuals_of_block<F: Real, const B: usize>(targets: &[F], scores: &[F], residuals: &mut [F], start: usize) {
    let n = targets.len();
    let Some(targets) = targets[start..].first_chunk::<B>() else { return };
    let mut largest = [F::zero(); B];
    for (class, scores) in scores.chunks_exact(n).enumerate() {
        let Some(scores) = scores[start..].first_chunk::<B>() else { return };
        for i in 0..B {
            largest[i] = if class == 0 || scores[i] > largest[i] { scores[i] } else { largest[i] };
        }
    }
    let [mut own, mut others] = [[F::zero(); B]; 2];
    let mut class = F::zero();
    for (scores, powers) in scores.chunks_exact(n).zip(residuals.chunks_exact_mut(n)) {
        let Some(scores) = scores[start..].first_chunk::<B>() else { return };
        let Some(powers) = powers[start..].first_chunk_mut::<B>() else { return };
        for i in 0..B {
            // Two infinities count as equal.
            let gap = if scores[i] == largest[i] { F::zero() } else { scores[i] - largest[i] };
            let power = gap.exponential();
            let is_own = targets[i] == class;
            own[i] += if is_own { power } else { F::zero() };
            others[i] += if is_own { F::zero() } else { power };
            powers[i] = power;
        }
        class += F::one();
    }
    let mut totals = own;
    for i in 0..B {
        totals[i] += others[i];
    }
    let mut class = F::zero();
    for residuals in residuals.chunks_exact_mut(n) {
        let Some(residuals) = residuals[start..].first_chunk_mut::<B>() else { return };
        let mut numerators = *residuals;
        for i in 0..B {
            // The target's residual from the other classes' sum: 1 - p would cancel.
            numerators[i] = if targets[i] == class { -others[i] } else { numerators[i] };
        }
        for i in 0..B {
            residuals[i] = numerators[i] / totals[i];
        }
        class += F::one();
    }
}

impl<F: Real> WithSimd for ClassStep<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, scratch, sum, squared_norm } = self;
        let ClassScratch { weights, selected, .. } = scratch;
        let (n, dim) = (rows.len(), rows.dim());
        if n == 0 || dim == 0 {
            return;
        }
        // All changes of the norm are summed before they are added to it, so that it rounds once.
        let mut change = F::zero();
        let tracked = squared_norm.is_some();
        let size = group_size(&rows);
        for start in (0..n).step_by(size) {
            let end = n.min(start + size);
            let group = rows.slice(start..end);
            if let Rows::Dense { values, .. } = group
                && dim >= F::lanes::<S>()
                && weights.chunks_exact(n).all(|weights| has_no_zero(&weights[start..end]))
            {
                class_tiles::add_rows(simd, (values, dim), (&weights[start..], n), sum);
                continue;
            }
            for (weights, sum) in weights.chunks_exact(n).zip(sum.chunks_exact_mut(dim)) {
                let weights = &weights[start..end];
                match group {
                    Rows::Dense { values, .. } => add_selected_rows(simd, values, weights, selected, sum, None),
                    Rows::Sparse { offsets, indices, values, .. } => {
                        let rows = Compressed { offsets, indices, values };
                        sparse::add_rows(rows, weights, sum, tracked.then_some(&mut change));
                    }
                }
            }
        }
        if let Some(squared_norm) = squared_norm {
            match rows {
                Rows::Dense { .. } => *squared_norm = dense::squared_norm(simd, sum),
                Rows::Sparse { .. } => *squared_norm += change,
            }
        }
    }
}

struct ClassStepInDouble<'a, F> {
    rows: Rows<'a, F>,
    scratch: &'a mut ClassScratch<F>,
    sum: &'a mut [f64],
}

impl<F: Real> WithSimd for ClassStepInDouble<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, scratch: ClassScratch { weights, doubles: [wide, wide_weights], .. }, sum } = self;
        let (n, dim) = (rows.len(), rows.dim());
        if n == 0 || dim == 0 {
            return;
        }
        let size = group_size(&rows);
        for start in (0..n).step_by(size) {
            let end = n.min(start + size);
            let of_group = weights.chunks_exact(n).map(|weights| &weights[start..end]);
            match rows.slice(start..end) {
                Rows::Dense { values, .. }
                    if dim >= f64::lanes::<S>() && of_group.clone().all(|weights| has_no_zero(weights)) =>
                {
                    widen(values, wide);
                    wide_weights.clear();
                    of_group.for_each(|weights| wide_weights.extend(weights.iter().map(|&weight| double(weight))));
                    class_tiles::add_rows(simd, (wide, dim), (wide_weights, end - start), sum);
                }
                Rows::Dense { values, .. } => {
                    for (weights, sum) in of_group.zip(sum.chunks_exact_mut(dim)) {
                        dense::add_rows_in_double(values, weights, sum);
                    }
                }
                Rows::Sparse { offsets, indices, values, .. } => {
                    for (weights, sum) in of_group.zip(sum.chunks_exact_mut(dim)) {
                        sparse::add_rows_in_double(Compressed { offsets, indices, values }, weights, sum);
                    }
                }
            }
        }
    }
}

/// Copies numbers to double precision.
#[inline(always)]
fn widen<F: Real>(numbers: &[F], wide: &mut Vec<f64>) {
    wide.resize(numbers.len(), 0.0);
    for (wide, &number) in wide.iter_mut().zip(numbers) {
        *wide = double(number);
    }
}
