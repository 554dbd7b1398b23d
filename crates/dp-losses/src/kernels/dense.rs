//! Inner products and weighted sums of dense rows.
//!
//! If the number of features is not a multiple of the lanes, the remainder is the *last* register of a row, which overlaps the
//! one before: its overlapping lanes are multiplied by zeros in the inner product and dropped from the sum.

use pulp::Simd;

use crate::real::Real;

/// Largest number of lanes of any instruction set.
pub(super) const MAX_LANES: usize = 64;
/// Number of registers of the sum held at once: half of the sixteen that AVX2 has.
const HELD: usize = 8;

/// Returns the last register of `slice` with zeros where it overlaps the whole registers before it.
#[inline(always)]
fn rest<S: Simd, F: Real>(simd: S, slice: &[F]) -> F::Vector<S> {
    let lanes = F::lanes::<S>().min(MAX_LANES);
    let count = slice.len() % lanes;
    let mut buffer = [F::zero(); MAX_LANES];
    for (lane, &value) in buffer[..lanes].iter_mut().rev().zip(slice[slice.len() - count..].iter().rev()) {
        *lane = value;
    }
    F::last(simd, &buffer[..lanes])
}

/// Adds to the end of `slice` the lanes of `register` that do not overlap the whole registers before it.
#[inline(always)]
pub(super) fn add_rest<S: Simd, F: Real>(simd: S, register: F::Vector<S>, slice: &mut [F]) {
    let lanes = F::lanes::<S>().min(MAX_LANES);
    let count = slice.len() % lanes;
    let start = slice.len() - count;
    let mut buffer = [F::zero(); MAX_LANES];
    if let Some(place) = F::whole_mut::<S>(&mut buffer[..lanes]).first_mut() {
        *place = F::plus(simd, *place, register);
    }
    for (sum, &value) in slice[start..].iter_mut().zip(&buffer[lanes - count..lanes]) {
        *sum += value;
    }
}

/// Returns the inner product of the elements after the whole registers, four numbers at a time.
#[inline(always)]
fn short_dot<F: Real>(row: &[F], w: &[F]) -> F {
    let mut sums = [F::zero(); 4];
    let (x_blocks, x_left) = row.as_chunks::<4>();
    let (w_blocks, w_left) = w.as_chunks::<4>();
    for (x, w) in x_blocks.iter().zip(w_blocks) {
        for k in 0..4 {
            sums[k] += x[k] * w[k];
        }
    }
    let mut left = F::zero();
    for (&x, &w) in x_left.iter().zip(w_left) {
        left += x * w;
    }
    ((sums[0] + sums[1]) + (sums[2] + sums[3])) + left
}

/// Returns one inner product, with four accumulators.
///
/// A batch of one waits for this: it reads `w` in the pieces in which [`add_row`] wrote it, since a load that spans two recent
/// stores waits for both to reach the cache.
#[inline(always)]
pub(super) fn dot<S: Simd, F: Real>(simd: S, row: &[F], w: &[F]) -> F {
    let zero = F::broadcast(simd, F::zero());
    let (x, w_whole) = (F::whole::<S>(row), F::whole::<S>(w));
    let done = x.len().min(w_whole.len()) * F::lanes::<S>();
    let rest = short_dot(&row[done..], &w[done..]);
    if done == 0 {
        return rest;
    }
    let mut sums = [zero; 4];
    let (x_blocks, x_left) = x.as_chunks::<4>();
    let (w_blocks, w_left) = w_whole.as_chunks::<4>();
    for (x, w) in x_blocks.iter().zip(w_blocks) {
        for k in 0..4 {
            sums[k] = F::times_plus(simd, x[k], w[k], sums[k]);
        }
    }
    let mut left = zero;
    for (&x, &w) in x_left.iter().zip(w_left) {
        left = F::times_plus(simd, x, w, left);
    }
    let sum = F::plus(simd, F::plus(simd, sums[0], sums[1]), F::plus(simd, sums[2], sums[3]));
    F::total(simd, F::plus(simd, sum, left)) + rest
}

/// Computes `out[i] = scale · ⟨w, x_i⟩`.
///
/// Rows are read one after another, the order in which memory is prefetched: four rows at once reached two thirds of the speed on
/// rows that come from memory. Short parameter vectors stay in registers.
#[inline(always)]
pub(super) fn predictions<S: Simd, F: Real>(simd: S, values: &[F], scale: F, w: &[F], out: &mut [F]) {
    if w.is_empty() {
        out.fill(F::zero());
        return;
    }
    let out = out.iter_mut().zip(values.chunks_exact(w.len()));
    match w.len() / F::lanes::<S>() {
        1 => short_rows::<S, F, 1>(simd, scale, w, out),
        2 => short_rows::<S, F, 2>(simd, scale, w, out),
        3 => short_rows::<S, F, 3>(simd, scale, w, out),
        4 => short_rows::<S, F, 4>(simd, scale, w, out),
        5 => short_rows::<S, F, 5>(simd, scale, w, out),
        6 => short_rows::<S, F, 6>(simd, scale, w, out),
        7 => short_rows::<S, F, 7>(simd, scale, w, out),
        8 => short_rows::<S, F, 8>(simd, scale, w, out),
        9 => short_rows::<S, F, 9>(simd, scale, w, out),
        10 => short_rows::<S, F, 10>(simd, scale, w, out),
        11 => short_rows::<S, F, 11>(simd, scale, w, out),
        12 => short_rows::<S, F, 12>(simd, scale, w, out),
        13 => short_rows::<S, F, 13>(simd, scale, w, out),
        14 => short_rows::<S, F, 14>(simd, scale, w, out),
        15 => short_rows::<S, F, 15>(simd, scale, w, out),
        16 => short_rows::<S, F, 16>(simd, scale, w, out),
        _ => {
            // A closure here would not be compiled for the instruction set.
            for (out, row) in out {
                *out = scale * dot(simd, row, w);
            }
        }
    }
}

/// [`predictions`] for `w` with `K` whole registers.
#[inline(always)]
fn short_rows<'a, S: Simd, F: Real, const K: usize>(
    simd: S,
    scale: F,
    w: &[F],
    out: impl Iterator<Item = (&'a mut F, &'a [F])>,
) {
    let Some(held) = F::whole::<S>(w).first_chunk::<K>() else { return };
    let zero = F::broadcast(simd, F::zero());
    let has_rest = !w.len().is_multiple_of(F::lanes::<S>());
    let last = if has_rest { rest(simd, w) } else { zero };
    for (out, row) in out {
        let mut sums = [zero; 2];
        if let Some(x) = F::whole::<S>(row).first_chunk::<K>() {
            for k in 0..K {
                sums[k & 1] = F::times_plus(simd, x[k], held[k], sums[k & 1]);
            }
        }
        if has_rest {
            sums[K & 1] = F::times_plus(simd, F::last(simd, row), last, sums[K & 1]);
        }
        *out = scale * F::total(simd, F::plus(simd, sums[0], sums[1]));
    }
}

/// Computes `sum += weight · row`.
#[inline(always)]
pub(super) fn add_row<S: Simd, F: Real>(simd: S, weight: F, row: &[F], sum: &mut [F]) {
    let whole = F::broadcast(simd, weight);
    for (sum, &x) in F::whole_mut::<S>(sum).iter_mut().zip(F::whole::<S>(row)) {
        *sum = F::times_plus(simd, whole, x, *sum);
    }
    let done = row.len() - row.len() % F::lanes::<S>();
    let (x_blocks, x_left) = row[done..].as_chunks::<4>();
    let (sum_blocks, sum_left) = sum[done..].as_chunks_mut::<4>();
    for (sum, x) in sum_blocks.iter_mut().zip(x_blocks) {
        for k in 0..4 {
            sum[k] += weight * x[k];
        }
    }
    for (sum, &x) in sum_left.iter_mut().zip(x_left) {
        *sum += weight * x;
    }
}

/// Computes `sum += Σ weight · row` over pairs of a weight and a row.
///
/// A few registers of the sum are held while all rows are read, then the next few: a batch fits a near cache, and the sum is
/// written once.
#[inline(always)]
pub(super) fn add_rows<'a, S: Simd, F: Real>(simd: S, rows: impl Iterator<Item = (F, &'a [F])> + Clone, sum: &mut [F]) {
    let lanes = F::lanes::<S>();
    let registers = sum.len() / lanes;
    let mut first = 0;
    while registers - first >= HELD {
        sweep::<S, F, HELD>(simd, first, rows.clone(), sum);
        first += HELD;
    }
    match registers - first {
        7 => sweep::<S, F, 7>(simd, first, rows.clone(), sum),
        6 => sweep::<S, F, 6>(simd, first, rows.clone(), sum),
        5 => sweep::<S, F, 5>(simd, first, rows.clone(), sum),
        4 => sweep::<S, F, 4>(simd, first, rows.clone(), sum),
        3 => sweep::<S, F, 3>(simd, first, rows.clone(), sum),
        2 => sweep::<S, F, 2>(simd, first, rows.clone(), sum),
        1 => sweep::<S, F, 1>(simd, first, rows.clone(), sum),
        _ => {}
    }
    if registers == 0 {
        for (weight, row) in rows {
            for (sum, &x) in sum.iter_mut().zip(row) {
                *sum += weight * x;
            }
        }
    } else if !sum.len().is_multiple_of(lanes) {
        let mut last = F::broadcast(simd, F::zero());
        for (weight, row) in rows {
            last = F::times_plus(simd, F::broadcast(simd, weight), F::last(simd, row), last);
        }
        add_rest(simd, last, sum);
    }
}

/// Computes registers `first .. first + K` of [`add_rows`].
#[inline(always)]
fn sweep<'a, S: Simd, F: Real, const K: usize>(
    simd: S,
    first: usize,
    rows: impl Iterator<Item = (F, &'a [F])>,
    sum: &mut [F],
) {
    let Some(place) = F::whole_mut::<S>(sum)[first..].first_chunk_mut::<K>() else { return };
    let mut held = *place;
    for (weight, row) in rows {
        let weight = F::broadcast(simd, weight);
        if let Some(x) = F::whole::<S>(row)[first..].first_chunk::<K>() {
            for k in 0..K {
                held[k] = F::times_plus(simd, weight, x[k], held[k]);
            }
        }
    }
    *place = held;
}

/// Returns `|v|²`.
#[inline(always)]
pub(super) fn squared_norm<S: Simd, F: Real>(simd: S, v: &[F]) -> F {
    dot(simd, v, v)
}

/// Returns `|v|²` in double precision.
#[inline(always)]
pub(super) fn squared_norm_in_double<F: Real>(v: &[F]) -> f64 {
    let square = |x: F| -> f64 {
        let x: f64 = x.to_subset_unchecked();
        x * x
    };
    let mut sums = [0.0; 16];
    let (blocks, left) = v.as_chunks::<16>();
    for x in blocks {
        for k in 0..16 {
            sums[k] += square(x[k]);
        }
    }
    let left: f64 = left.iter().map(|&x| square(x)).sum();
    sums.iter().sum::<f64>() + left
}

/// Computes `sum += Σ weights[i] · x_i` in double precision, a few columns at a time as in [`add_rows`].
#[inline(always)]
pub(super) fn add_rows_in_double<F: Real>(values: &[F], weights: &[F], sum: &mut [f64]) {
    const COLUMNS: usize = 32;
    let dim = sum.len();
    if dim == 0 {
        return;
    }
    let wide = |x: F| -> f64 { x.to_subset_unchecked() };
    let rows = || values.chunks_exact(dim).zip(weights).filter(|(_, weight)| **weight != F::zero());
    let (blocks, left) = sum.as_chunks_mut::<COLUMNS>();
    for (b, place) in blocks.iter_mut().enumerate() {
        let mut held = *place;
        for (row, &weight) in rows() {
            let weight = wide(weight);
            if let Some(x) = row[b * COLUMNS..].first_chunk::<COLUMNS>() {
                for k in 0..COLUMNS {
                    held[k] += weight * wide(x[k]);
                }
            }
        }
        *place = held;
    }
    let done = dim - left.len();
    if !left.is_empty() {
        for (row, &weight) in rows() {
            let weight = wide(weight);
            for (sum, &x) in left.iter_mut().zip(&row[done..]) {
                *sum += weight * wide(x);
            }
        }
    }
}
