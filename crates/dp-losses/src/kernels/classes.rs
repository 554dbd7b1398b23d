//! The inner loops of a model with one score per class: scores, residuals and the sum of outer products.
//!
//! Scores and residuals are stored class by class, so that their computation vectorises over examples. Rows are processed in
//! groups that fit a near cache, since each is read once for each class.

use dp_data::Rows;
use pulp::{Simd, WithSimd};

use super::sparse::Compressed;
use super::{Kernels, add_selected_rows, dense, sparse};
use crate::real::Real;

/// Number of values in a group of dense rows: 128 KiB in double precision.
const GROUP: usize = 1 << 14;

/// Buffers for a batch: `classes x examples` numbers each, class by class.
#[derive(Debug, Clone)]
pub(crate) struct ClassScratch<F> {
    pub(crate) scores: Vec<F>,
    pub(crate) residuals: Vec<F>,
    pub(crate) weights: Vec<F>,
    /// Three numbers per example.
    per_example: Vec<F>,
    /// Scores before rounding, class by class.
    pub(crate) in_two_parts: Vec<(f64, f64)>,
    /// A batch's sum, before it is added to a vector in two parts.
    pub(crate) sum: Vec<F>,
    selected: Vec<usize>,
}

impl<F: Real> ClassScratch<F> {
    pub(crate) fn with_capacity(examples: usize, classes: usize) -> Self {
        let room = || Vec::with_capacity(examples.saturating_mul(classes));
        Self {
            scores: room(),
            residuals: room(),
            weights: room(),
            per_example: Vec::with_capacity(3 * examples),
            in_two_parts: Vec::new(),
            sum: Vec::new(),
            selected: Vec::with_capacity(examples),
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
        struct Scores<'a, F>(Rows<'a, F>, F, &'a [F], &'a mut [F]);
        impl<F: Real> WithSimd for Scores<'_, F> {
            type Output = ();
            #[inline(always)]
            fn with_simd<S: Simd>(self, simd: S) {
                let Self(rows, scale, w, scores) = self;
                let (n, dim) = (rows.len(), rows.dim());
                if n == 0 || dim == 0 {
                    scores.fill(F::zero());
                    return;
                }
                let size = group_size(&rows);
                for start in (0..n).step_by(size) {
                    let end = n.min(start + size);
                    let group = rows.slice(start..end);
                    for (w, scores) in w.chunks_exact(dim).zip(scores.chunks_exact_mut(n)) {
                        let out = &mut scores[start..end];
                        match group {
                            Rows::Dense { values, .. } => dense::predictions(simd, values, scale, w, out),
                            Rows::Sparse { offsets, indices, values, .. } => {
                                sparse::predictions(Compressed { offsets, indices, values }, scale, w, out);
                            }
                        }
                    }
                }
            }
        }
        let scores = &mut scratch.scores;
        scores.resize(classes * rows.len(), F::zero());
        self.arch.dispatch(Scores(rows, scale, w, scores));
    }

    /// Computes `scratch.residuals[c, i] = p_c - [c = y_i]` at `scratch.scores`; the result for targets that are not a class is
    /// meaningless.
    ///
    /// Every residual lies exactly in [-1, 1], that of the target in [-1, 0], the others in [0, 1], each with a relative error of
    /// a few units and one more for each class.
    pub(crate) fn class_residuals<F: Real>(&self, targets: &[F], classes: usize, scratch: &mut ClassScratch<F>) {
        let ClassScratch { scores, residuals, per_example, .. } = scratch;
        residuals.resize(scores.len(), F::zero());
        per_example.resize(3 * targets.len(), F::zero());
        self.arch.dispatch(Residuals { targets, classes, scores, residuals, per_example });
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
    classes: usize,
    scores: &'a [F],
    residuals: &'a mut [F],
    per_example: &'a mut [F],
}

impl<F: Real> WithSimd for Residuals<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { targets, classes, scores, residuals, per_example } = self;
        let n = targets.len();
        if n == 0 || classes == 0 {
            return;
        }
        let (largest, sums) = per_example.split_at_mut(n);
        let (own, others) = sums.split_at_mut(n);
        largest.copy_from_slice(&scores[..n]);
        for scores in scores.chunks_exact(n) {
            for (largest, &score) in largest.iter_mut().zip(scores) {
                *largest = if score > *largest { score } else { *largest };
            }
        }
        own.fill(F::zero());
        others.fill(F::zero());
        let mut class = F::zero();
        for (scores, powers) in scores.chunks_exact(n).zip(residuals.chunks_exact_mut(n)) {
            for i in 0..n {
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
        let mut class = F::zero();
        for residuals in residuals.chunks_exact_mut(n) {
            for i in 0..n {
                // The target's residual from the other classes' sum: 1 - p would cancel.
                let numerator = if targets[i] == class { -others[i] } else { residuals[i] };
                residuals[i] = numerator / (own[i] + others[i]);
            }
            class += F::one();
        }
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
