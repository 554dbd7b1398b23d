//! Predictions and sums in two parts, for [`CompensatedGradient`](crate::CompensatedGradient).
//!
//! Plain arithmetic on numbers, in lanes that the compiler maps to registers of the caller's instruction set. A row's product
//! with the weights is exact in two parts if products and sums are rounded once each.

use dp_data::Rows;
use nalgebra::convert;
use pulp::{Simd, WithSimd};

use super::sparse::Compressed;
use super::{Kernels, Lanes};
use crate::compensated::{CompensatedSum, add, two_sum};
use crate::real::Real;

/// Number of products summed side by side.
const LANES: usize = 8;

#[inline(always)]
pub(super) fn double<F: Real>(number: F) -> f64 {
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

    /// Returns the sum over all lanes, added in pairs.
    #[inline(always)]
    fn total(&self) -> (f64, f64) {
        let lane = |k: usize| (self.high[k], self.low[k]);
        let pair = |a: (f64, f64), b: (f64, f64)| {
            let (sum, lost) = two_sum(a.0, b.0);
            (sum, (a.1 + b.1) + lost)
        };
        let quarter = |k: usize| pair(lane(k), lane(k + LANES / 2));
        pair(pair(quarter(0), quarter(2)), pair(quarter(1), quarter(3)))
    }
}

/// Returns `⟨x, w⟩` in two parts; the vectors are filled up with zeros to whole blocks of lanes.
#[inline(always)]
fn dense_dot<S: Simd>(simd: S, x: &[f64], w: &[f64]) -> (f64, f64) {
    let registers = LANES / S::F64_LANES;
    let mut high = [simd.splat_f64s(0.0); LANES];
    let mut low = high;
    let blocks = f64::whole::<S>(x).chunks_exact(registers).zip(f64::whole::<S>(w).chunks_exact(registers));
    for (x, w) in blocks {
        for k in 0..registers {
            let product = simd.mul_f64s(x[k], w[k]);
            let rest = simd.mul_add_f64s(x[k], w[k], simd.neg_f64s(product));
            let (sum, lost) = two_sums::<S, f64>(simd, high[k], product);
            high[k] = sum;
            low[k] = simd.add_f64s(low[k], simd.add_f64s(lost, rest));
        }
    }
    let mut parts = Parts { high: [0.0; LANES], low: [0.0; LANES] };
    f64::whole_mut::<S>(&mut parts.high).copy_from_slice(&high[..registers]);
    f64::whole_mut::<S>(&mut parts.low).copy_from_slice(&low[..registers]);
    parts.total()
}

/// [`two_sum`] in each lane.
#[inline(always)]
fn two_sums<S: Simd, A: Real>(simd: S, a: A::Vector<S>, b: A::Vector<S>) -> (A::Vector<S>, A::Vector<S>) {
    let sum = A::plus(simd, a, b);
    let z = A::minus(simd, sum, a);
    (sum, A::plus(simd, A::minus(simd, a, A::minus(simd, sum, z)), A::minus(simd, b, z)))
}

/// Adds the rows of `group`, a few columns at a time, to a sum in two parts; the second part collects the rounding errors of
/// the first.
#[inline(always)]
fn add_group<S: Simd, A: Real>(simd: S, group: &[A], high: &mut [A], low: &mut [A]) {
    const HELD: usize = 2;
    let (width, rows) = (high.len(), A::whole::<S>(group));
    let registers = width / A::lanes::<S>();
    let columns = A::whole_mut::<S>(high).as_chunks_mut::<HELD>().0.iter_mut();
    for (block, (high, low)) in columns.zip(A::whole_mut::<S>(low).as_chunks_mut::<HELD>().0).enumerate() {
        let (mut highs, mut lows) = (*high, *low);
        for row in rows.chunks_exact(registers) {
            let Some(terms) = row[block * HELD..].first_chunk::<HELD>() else { return };
            for k in 0..HELD {
                let (sum, lost) = two_sums::<S, A>(simd, highs[k], terms[k]);
                highs[k] = sum;
                lows[k] = A::plus(simd, lows[k], lost);
            }
        }
        (*high, *low) = (highs, lows);
    }
}

/// Number of dense rows that are copied to whole registers together.
const GROUP: usize = 32;

/// Returns zeros for some rows of `dim` numbers, each filled up to two whole registers of any instruction set; the largest hold
/// sixteen numbers in single precision.
fn filled_up<A: Real>(rows: usize, dim: usize) -> Vec<A> {
    vec![A::zero(); rows * dim.next_multiple_of(32)]
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
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, w, out } = self;
        out.reserve(rows.len());
        match rows {
            Rows::Dense { values, dim } if dim > 0 => {
                let mut weights = filled_up(1, dim);
                weights.iter_mut().zip(w).for_each(|(place, &w)| *place = double(w));
                let width = weights.len();
                let mut group = filled_up(GROUP, dim);
                // Plain loops: a closure would not be compiled for the instruction set.
                for rows in values.chunks(GROUP * dim) {
                    for (place, row) in group.chunks_exact_mut(width).zip(rows.chunks_exact(dim)) {
                        for (place, &x) in place.iter_mut().zip(row) {
                            *place = double(x);
                        }
                    }
                    for x in group.chunks_exact(width).take(rows.len() / dim) {
                        out.push(dense_dot(simd, x, &weights));
                    }
                }
            }
            Rows::Dense { .. } => {}
            Rows::Sparse { offsets, indices, values, .. } => {
                let rows = Compressed { offsets, indices, values }.rows();
                for (columns, row) in rows {
                    out.push(sparse_dot(columns, row, w));
                }
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
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, weights, high, low } = self;
        match rows {
            Rows::Dense { values, dim } if dim > 0 => {
                let [mut highs, mut lows] = [high.to_vec(), low.to_vec()];
                let mut group = filled_up(GROUP, dim);
                let width = group.len() / GROUP;
                highs.resize(width, A::zero());
                lows.resize(width, A::zero());
                for (rows, weights) in values.chunks(GROUP * dim).zip(weights.chunks(GROUP)) {
                    let mut counted = 0;
                    for (row, &weight) in rows.chunks_exact(dim).zip(weights) {
                        if weight == F::zero() {
                            continue;
                        }
                        let weight = double(weight);
                        for (place, &x) in group[counted * width..].iter_mut().zip(row) {
                            *place = convert(weight * double(x));
                        }
                        counted += 1;
                    }
                    add_group::<S, A>(simd, &group[..counted * width], &mut highs, &mut lows);
                }
                for j in 0..dim {
                    (high[j], low[j]) = two_sum(highs[j], lows[j]);
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
    /// Appends `⟨w, x_i⟩` in two parts for each row, for weights in two parts, of which the second may be empty.
    pub(crate) fn predictions_in_two_parts<F: Real>(
        &self,
        rows: Rows<'_, F>,
        (w, rest): (&[F], &[F]),
        out: &mut Vec<(f64, f64)>,
    ) {
        let start = out.len();
        self.arch.dispatch(Predictions { rows, w, out: &mut *out });
        if !rest.is_empty() {
            let mut of_rest = Vec::with_capacity(out.len() - start);
            self.arch.dispatch(Predictions { rows, w: rest, out: &mut of_rest });
            out[start..].iter_mut().zip(of_rest).for_each(|((_, low), (rest, _))| *low += rest);
        }
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
