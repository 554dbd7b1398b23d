//! Scores and sums of outer products of dense rows for several classes at once, so that a row is read once for a tile of them.

use pulp::Simd;

use super::dense::{MAX_LANES, add_rest};
use crate::prefetch::{LINE, fetch_line};
use crate::real::Real;

/// Least number of rows for which weights are rearranged: with fewer, this takes longer than it saves.
const PACKED_FROM: usize = 4;

/// Numbers of rows and of registers of classes in a tile of scores: twelve sums, which fit the sixteen registers of AVX2.
const ROWS: usize = 6;
const REGISTERS: usize = 2;

/// Number of rows from the one that is read to the one that is fetched.
const AHEAD: usize = 3 * ROWS;

/// Number of rows whose scores are computed before they are stored class by class.
const TRANSPOSED: usize = 16 * ROWS;

/// Number of classes whose scores of one row are summed side by side.
const SIDE_BY_SIDE: usize = 8;

/// Number of classes in a tile of sums, of three registers each.
const CLASSES: usize = 4;

/// Computes `scores[c, i] = scale · ⟨w_c, x_i⟩`, with a class in each lane.
///
/// A score is the sum of its products in the order of the features, each product added with one rounding where the instruction
/// set allows it: it does not depend on the other rows of the batch.
#[inline(always)]
pub(super) fn scores<S: Simd, F: Real>(
    simd: S,
    (values, dim): (&[F], usize),
    scale: F,
    w: &[F],
    [packed, by_row]: [&mut Vec<F>; 2],
    scores: &mut [F],
) {
    let n = values.len() / dim;
    if n < PACKED_FROM {
        return few_rows(simd, (values, dim), scale, w, scores);
    }
    let lanes = F::lanes::<S>();
    let of_tile = dim * REGISTERS * lanes;
    let tiles = (w.len() / dim).div_ceil(REGISTERS * lanes);
    packed.clear();
    packed.resize(tiles * of_tile, F::zero());
    for (class, w) in w.chunks_exact(dim).enumerate() {
        let (tile, lane) = (class / (REGISTERS * lanes), class % (REGISTERS * lanes));
        let places = packed[tile * of_tile + lane..].iter_mut().step_by(REGISTERS * lanes);
        places.zip(w).for_each(|(place, &w)| *place = w);
    }
    let classes = scores.chunks_mut(n * REGISTERS * lanes);
    for (scores, w) in classes.zip(packed.chunks_exact(of_tile)) {
        if scores.len() / n <= lanes {
            tile_of_scores::<S, F, 1>(simd, (values, dim), scale, w, scores, by_row);
        } else {
            tile_of_scores::<S, F, REGISTERS>(simd, (values, dim), scale, w, scores, by_row);
        }
    }
}

/// Computes the scores of the classes in `K` registers.
#[inline(always)]
fn tile_of_scores<S: Simd, F: Real, const K: usize>(
    simd: S,
    (values, dim): (&[F], usize),
    scale: F,
    w: &[F],
    scores: &mut [F],
    by_row: &mut Vec<F>,
) {
    let (n, width) = (values.len() / dim, K * F::lanes::<S>());
    by_row.resize(TRANSPOSED * width, F::zero());
    let all = values;
    for (block, values) in values.chunks(TRANSPOSED * dim).enumerate() {
        let (rows, start) = (values.len() / dim, block * TRANSPOSED);
        let groups = rows / ROWS * ROWS;
        for r in (0..groups).step_by(ROWS) {
            let ahead = all.get((start + r + AHEAD) * dim..).unwrap_or_default();
            rows_of_scores::<S, F, K, ROWS>(simd, (&values[r * dim..], dim), w, ahead, &mut by_row[r * width..]);
        }
        for r in groups..rows {
            rows_of_scores::<S, F, K, 1>(simd, (&values[r * dim..], dim), w, &[], &mut by_row[r * width..]);
        }
        for (class, scores) in scores.chunks_exact_mut(n).enumerate() {
            for (score, sums) in scores[start..start + rows].iter_mut().zip(by_row.chunks_exact(width)) {
                *score = scale * sums[class];
            }
        }
    }
}

/// Computes the products of the first `R` rows with the weights, row by row, and fetches a cache line of `ahead` with each
/// feature, which suffices for `R` rows.
#[inline(always)]
fn rows_of_scores<S: Simd, F: Real, const K: usize, const R: usize>(
    simd: S,
    (rows, dim): (&[F], usize),
    w: &[F],
    ahead: &[F],
    by_row: &mut [F],
) {
    let mut sums = [[F::broadcast(simd, F::zero()); K]; R];
    let mut each = [rows; R];
    for r in 0..R {
        each[r] = &rows[r * dim..(r + 1) * dim];
    }
    for (j, w) in F::whole::<S>(w).as_chunks::<REGISTERS>().0.iter().enumerate().take(dim) {
        if let Some(x) = ahead.get(j * LINE / size_of::<F>()) {
            fetch_line(x);
        }
        for r in 0..R {
            let x = F::broadcast(simd, each[r][j]);
            for k in 0..K {
                sums[r][k] = F::times_plus(simd, x, w[k], sums[r][k]);
            }
        }
    }
    for (place, sums) in F::whole_mut::<S>(by_row).as_chunks_mut::<K>().0.iter_mut().zip(sums) {
        *place = sums;
    }
}

/// Computes the scores of a few rows, with the same roundings: a class in all lanes of a register.
#[inline(always)]
fn few_rows<S: Simd, F: Real>(simd: S, (values, dim): (&[F], usize), scale: F, w: &[F], scores: &mut [F]) {
    let n = values.len() / dim;
    for (i, row) in values.chunks_exact(dim).enumerate() {
        let tiles = w.chunks_exact(SIDE_BY_SIDE * dim);
        let (left, done) = (tiles.remainder(), tiles.len() * SIDE_BY_SIDE);
        for (tile, w) in tiles.enumerate() {
            row_of_scores::<S, F, SIDE_BY_SIDE>(simd, row, scale, w, &mut scores[tile * SIDE_BY_SIDE * n..], (n, i));
        }
        for (class, w) in left.chunks_exact(dim).enumerate() {
            row_of_scores::<S, F, 1>(simd, row, scale, w, &mut scores[(done + class) * n..], (n, i));
        }
    }
}

/// Computes the scores of row `i` of `n` for `C` classes.
#[inline(always)]
fn row_of_scores<S: Simd, F: Real, const C: usize>(
    simd: S,
    row: &[F],
    scale: F,
    w: &[F],
    scores: &mut [F],
    (n, i): (usize, usize),
) {
    let mut sums = [F::broadcast(simd, F::zero()); C];
    let mut each = [w; C];
    for c in 0..C {
        each[c] = &w[c * row.len()..(c + 1) * row.len()];
    }
    for (j, &x) in row.iter().enumerate() {
        let x = F::broadcast(simd, x);
        for c in 0..C {
            sums[c] = F::times_plus(simd, x, F::broadcast(simd, each[c][j]), sums[c]);
        }
    }
    let mut buffer = [F::zero(); MAX_LANES];
    for c in 0..C {
        if let Some(place) = F::whole_mut::<S>(&mut buffer).first_mut() {
            *place = sums[c];
        }
        scores[c * n + i] = scale * buffer[0];
    }
}

/// Computes `sum[c] += Σ_i weights[c, i] · x_i`, as [`dense::add_rows`](super::dense::add_rows) does for each class, bit for bit;
/// the weights of successive classes are `stride` numbers apart, and none is 0. A row fills at least one register.
#[inline(always)]
pub(super) fn add_rows<S: Simd, F: Real>(
    simd: S,
    (values, dim): (&[F], usize),
    (weights, stride): (&[F], usize),
    sums: &mut [F],
) {
    add_columns(simd, (values, dim), (weights, stride), |_| dim, sums);
}

/// As [`add_rows`], where class `c` has the columns up to `c`: the lower triangle of a square matrix. What is added above it has
/// no meaning.
#[inline(always)]
pub(super) fn add_lower_triangle<S: Simd, F: Real>(
    simd: S,
    (values, dim): (&[F], usize),
    (weights, stride): (&[F], usize),
    sums: &mut [F],
) {
    add_columns(simd, (values, dim), (weights, stride), |classes| classes, sums);
}

/// As [`add_rows`], with at least the first `columns(c)` columns of class `c - 1`.
#[inline(always)]
fn add_columns<S: Simd, F: Real>(
    simd: S,
    (values, dim): (&[F], usize),
    (weights, stride): (&[F], usize),
    columns: impl Fn(usize) -> usize,
    sums: &mut [F],
) {
    let tiled = sums.len() / (CLASSES * dim) * CLASSES;
    let (tiles, left) = sums.split_at_mut(tiled * dim);
    for (tile, sums) in tiles.chunks_exact_mut(CLASSES * dim).enumerate() {
        let (first, columns) = (tile * CLASSES, columns((tile + 1) * CLASSES));
        tile_of_sums::<S, F, CLASSES>(simd, (values, dim), (&weights[first * stride..], stride), columns, sums);
    }
    for (class, sums) in left.chunks_exact_mut(dim).enumerate() {
        let (class, columns) = (tiled + class, columns(tiled + class + 1));
        tile_of_sums::<S, F, 1>(simd, (values, dim), (&weights[class * stride..], stride), columns, sums);
    }
}

/// Computes the sums of `C` classes, the first `columns` columns of them at least.
#[inline(always)]
fn tile_of_sums<S: Simd, F: Real, const C: usize>(
    simd: S,
    (values, dim): (&[F], usize),
    (weights, stride): (&[F], usize),
    columns: usize,
    sums: &mut [F],
) {
    let (n, lanes) = (values.len() / dim, F::lanes::<S>());
    let mut of_class = [weights; C];
    for c in 0..C {
        of_class[c] = &weights[c * stride..c * stride + n];
    }
    let registers = columns.div_ceil(lanes).min(dim / lanes);
    let mut first = 0;
    while registers - first >= 3 {
        registers_of_sums::<S, F, C, 3>(simd, first, (values, dim), of_class, sums);
        first += 3;
    }
    match registers - first {
        2 => registers_of_sums::<S, F, C, 2>(simd, first, (values, dim), of_class, sums),
        1 => registers_of_sums::<S, F, C, 1>(simd, first, (values, dim), of_class, sums),
        _ => {}
    }
    if columns > registers * lanes {
        let mut last = [F::broadcast(simd, F::zero()); C];
        for (i, row) in values.chunks_exact(dim).enumerate() {
            let x = F::last(simd, row);
            for c in 0..C {
                last[c] = F::times_plus(simd, F::broadcast(simd, of_class[c][i]), x, last[c]);
            }
        }
        for (last, sum) in last.into_iter().zip(sums.chunks_exact_mut(dim)) {
            add_rest(simd, last, sum);
        }
    }
}

/// Computes registers `first .. first + K` of the sums of `C` classes.
#[inline(always)]
fn registers_of_sums<S: Simd, F: Real, const C: usize, const K: usize>(
    simd: S,
    first: usize,
    (values, dim): (&[F], usize),
    weights: [&[F]; C],
    sums: &mut [F],
) {
    let mut held = [[F::broadcast(simd, F::zero()); K]; C];
    for c in 0..C {
        if let Some(sum) = F::whole::<S>(&sums[c * dim..(c + 1) * dim])[first..].first_chunk::<K>() {
            held[c] = *sum;
        }
    }
    for (i, row) in values.chunks_exact(dim).enumerate() {
        let Some(x) = F::whole::<S>(row)[first..].first_chunk::<K>() else { return };
        for c in 0..C {
            let weight = F::broadcast(simd, weights[c][i]);
            for k in 0..K {
                held[c][k] = F::times_plus(simd, weight, x[k], held[c][k]);
            }
        }
    }
    for c in 0..C {
        if let Some(sum) = F::whole_mut::<S>(&mut sums[c * dim..(c + 1) * dim])[first..].first_chunk_mut::<K>() {
            *sum = held[c];
        }
    }
}
