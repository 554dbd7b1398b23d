//! Predictions and sums in two parts, for [`CompensatedGradient`](crate::CompensatedGradient).
//!
//! Plain arithmetic on numbers, in lanes that the compiler maps to registers of the caller's instruction set. A row's product
//! with the weights is exact in two parts if products and sums are rounded once each.

use dp_data::Rows;
use nalgebra::convert;
use pulp::{Simd, WithSimd};

use super::Kernels;
use super::sparse::Compressed;
use crate::compensated::{CompensatedSum, add, two_sum};
use crate::real::Real;

/// Number of products summed side by side.
const LANES: usize = 8;

#[inline(always)]
fn double<F: Real>(number: F) -> f64 {
    number.to_subset_unchecked()
}

/// Products summed so far, in two parts each.
struct Parts {
    high: [f64; LANES],
    low: [f64; LANES],
}

impl Parts {
    #[inline(always)]
    fn add(&mut self, lane: usize, x: f64, w: f64) {
        let product = x * w;
        let rest = x.mul_add(w, -product);
        let (sum, lost) = two_sum(self.high[lane], product);
        self.high[lane] = sum;
        self.low[lane] += lost + rest;
    }

    /// Returns the sum over all lanes.
    #[inline(always)]
    fn total(self) -> (f64, f64) {
        let [mut high, mut low] = [self.high[0], self.low[0]];
        for (&term, &rest) in self.high[1..].iter().zip(&self.low[1..]) {
            add(&mut high, &mut low, term);
            low += rest;
        }
        (high, low)
    }
}

/// Returns `⟨x, w⟩` in two parts.
#[inline(always)]
fn dense_dot<F: Real>(x: &[F], w: &[F]) -> (f64, f64) {
    let mut parts = Parts { high: [0.0; LANES], low: [0.0; LANES] };
    let ((x_blocks, x_left), (w_blocks, w_left)) = (x.as_chunks::<LANES>(), w.as_chunks::<LANES>());
    for (x, w) in x_blocks.iter().zip(w_blocks) {
        for k in 0..LANES {
            parts.add(k, double(x[k]), double(w[k]));
        }
    }
    for (k, (&x, &w)) in x_left.iter().zip(w_left).enumerate() {
        parts.add(k, double(x), double(w));
    }
    parts.total()
}

#[inline(always)]
fn sparse_dot<F: Real>(columns: &[u32], x: &[F], w: &[F]) -> (f64, f64) {
    let mut parts = Parts { high: [0.0; LANES], low: [0.0; LANES] };
    for (k, (&column, &x)) in columns.iter().zip(x).enumerate() {
        parts.add(k % LANES, double(x), double(w[column as usize]));
    }
    parts.total()
}

/// Appends `⟨w, x_i⟩` in two parts for each row.
struct Predictions<'a, F> {
    rows: Rows<'a, F>,
    w: &'a [F],
    out: &'a mut Vec<(f64, f64)>,
}

impl<F: Real> WithSimd for Predictions<'_, F> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { rows, w, out } = self;
        match rows {
            Rows::Dense { values, dim } if dim > 0 => {
                out.extend(values.chunks_exact(dim).map(|row| dense_dot(row, w)));
            }
            Rows::Dense { .. } => {}
            Rows::Sparse { offsets, indices, values, .. } => {
                let rows = Compressed { offsets, indices, values }.rows();
                out.extend(rows.map(|(columns, row)| sparse_dot(columns, row, w)));
            }
        }
    }
}

/// Computes `sum += Σ_i weights[i] x_i`; a weight 0 adds nothing of its row.
struct Sum<'a, F, A> {
    rows: Rows<'a, F>,
    weights: &'a [F],
    high: &'a mut [A],
    low: &'a mut [A],
}

impl<F: Real, A: Real> WithSimd for Sum<'_, F, A> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { rows, weights, high, low } = self;
        match rows {
            Rows::Dense { values, dim } if dim > 0 => {
                for (row, &weight) in values.chunks_exact(dim).zip(weights) {
                    if weight == F::zero() {
                        continue;
                    }
                    let weight = double(weight);
                    for ((high, low), &x) in high.iter_mut().zip(&mut *low).zip(row) {
                        add(high, low, convert(weight * double(x)));
                    }
                }
            }
            Rows::Dense { .. } => {}
            Rows::Sparse { offsets, indices, values, .. } => {
                let rows = Compressed { offsets, indices, values }.rows();
                for ((columns, row), &weight) in rows.zip(weights) {
                    if weight == F::zero() {
                        continue;
                    }
                    let weight = double(weight);
                    for (&column, &x) in columns.iter().zip(row) {
                        let column = column as usize;
                        add(&mut high[column], &mut low[column], convert(weight * double(x)));
                    }
                }
            }
        }
    }
}

impl Kernels {
    /// Appends `⟨w, x_i⟩` in two parts for each row.
    pub(crate) fn predictions_in_two_parts<F: Real>(&self, rows: Rows<'_, F>, w: &[F], out: &mut Vec<(f64, f64)>) {
        self.arch.dispatch(Predictions { rows, w, out });
    }

    /// Adds `Σ_i weights[i] x_i` to `sum[from..]` in two parts, for as many coordinates as the row has.
    pub(crate) fn add_rows_in_two_parts<F: Real, A: Real>(
        &self,
        rows: Rows<'_, F>,
        weights: &[F],
        sum: &mut CompensatedSum<A>,
        from: usize,
    ) {
        let places = from..from + rows.dim();
        let (high, low) = (&mut sum.high[places.clone()], &mut sum.low[places]);
        self.arch.dispatch(Sum { rows, weights, high, low });
    }
}
