//! Rows of curves that are kept as one number per column.

use core::marker::PhantomData;
use core::ops::Range;

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::__m256d;

use pulp::{Arch, Simd, WithSimd};
#[cfg(target_arch = "x86_64")]
use pulp::{NullaryFnOnce, x86::V3};

use super::feature_map::{COEFFICIENTS, Numeric};
use super::norm::{factor, factor_of};
use super::{Encoder, Stored};
use crate::block::{Block, Rows};
use crate::error::DataError;
use crate::examples::{Feature, clip_factor};
use crate::memory::{OutOfMemory, reserve};
use crate::source::Unexpanded;
use crate::workers::Workers;

/// Records of a table whose numeric columns have several functions each. A record keeps one number per such column, its other
/// features, and the factors that bound its norm; its functions are computed when it is read.
///
/// # Formula
/// Chebyshev's recurrence from the first cosine, as in [`FeatureMap`](super::FeatureMap), then a product with each factor: the
/// features equal those of [`Coordinates::encode`](super::Coordinates::encode) with their bounds enforced, bit by bit.
///
/// # Privacy
/// Rows and targets are bounded as by [`Examples::enforce_bounds`](crate::Examples::enforce_bounds).
#[derive(Debug)]
pub struct CurveRows<F> {
    shape: Shape,
    records: Records<F>,
    /// False if all records count, and none had a mark.
    marks: bool,
}

/// The encoding of all records.
#[derive(Debug)]
struct Shape {
    /// The columns with functions, by increasing feature.
    columns: Vec<Column>,
    /// `1/sqrt(j)` for j = 1, 2, ...
    decay: Vec<f64>,
    /// The features of other columns.
    others: Vec<Range<usize>>,
    dim: usize,
    /// Value of the intercept, the last feature; 0 for none.
    intercept: f64,
}

/// A column with functions.
#[derive(Debug)]
struct Column {
    /// Its first feature.
    first: usize,
    /// The number of its cosines; 0 if it has one feature, which is the number itself.
    cosines: usize,
}

/// Number of records whose features are computed side by side.
pub(super) const LANES: usize = 8;

/// One number of each record of a group.
pub(super) type Lanes<F> = [F; LANES];

/// The numbers of some records: of groups of [`LANES`] records, the last one filled up with null records.
#[derive(Debug, Default)]
struct Records<F> {
    /// For each group a number per column with functions: the first cosine, or the only feature.
    numbers: Vec<Lanes<f64>>,
    /// For each group the two factors that bound the norm, applied one after the other.
    factors: Vec<[Lanes<f64>; 2]>,
    /// The features of other columns that are not 0: the end of each record's, their indices and their values.
    ends: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
    targets: Vec<F>,
    valid: Vec<bool>,
}

/// The contents, for messages.
const ROWS: &str = "the rows";

/// Number of records that a thread takes at a time: a multiple of [`LANES`].
const PART: usize = 1024;

/// Parts of each thread that wait to be appended.
const PARTS_AHEAD: usize = 4;

/// Least ratio of the size of a record's features to that of its numbers.
const LEAST_RATIO: usize = 2;

impl Shape {
    /// Returns the shape of an encoder's rows, if their features are computed from single columns, and kept numbers are so many
    /// fewer that computing them pays. Depends on public numbers only.
    fn of<F>(encoder: &Encoder) -> Option<Self> {
        let (numeric, decay) = encoder.map.as_ref()?.curves()?;
        if encoder.projection.is_some() || encoder.prefers_sparse() {
            return None;
        }
        let (mut shift, mut end) = (0, 0);
        let (mut columns, mut others) = (Vec::with_capacity(numeric.len()), Vec::new());
        for column in numeric {
            let cosines = column.functions.cosines;
            let first = (column.feature + shift) as usize;
            others.push(end..first);
            end = first + cosines.max(1) as usize;
            columns.push(Column { first, cosines: cosines as usize });
            shift += cosines.saturating_sub(1);
        }
        others.push(end..encoder.input_features());
        let kept = columns.len() * size_of::<f64>()
            + (encoder.used_columns() - columns.len()) * (size_of::<f64>() + size_of::<u32>())
            + size_of::<usize>()
            + 2 * size_of::<f64>();
        (LEAST_RATIO * kept <= encoder.dim() * size_of::<F>()).then(|| Self {
            columns,
            decay: decay.to_vec(),
            others,
            dim: encoder.dim(),
            intercept: encoder.encoding.intercept,
        })
    }

    /// Computes the features of a group, multiplied by `factors`; `others` are the lanes, indices and values of features of other
    /// columns.
    fn write(
        &self,
        arch: Arch,
        numbers: &[Lanes<f64>],
        factors: &Lanes<f64>,
        others: impl Iterator<Item = (usize, u32, f64)>,
        features: &mut [Lanes<f64>],
    ) {
        arch.dispatch(Group { shape: self, numbers, factors, features });
        for range in &self.others {
            features[range.clone()].fill([0.0; LANES]);
        }
        for (lane, index, value) in others {
            features[index as usize][lane] = value * factors[lane];
        }
        if self.intercept > 0.0 {
            features[self.dim - 1] = factors.map(|factor| self.intercept * factor);
        }
    }
}

impl<F: Stored> Records<F> {
    /// Creates the numbers of `n` null records of `columns` columns, to which others are added.
    fn nulls(n: usize, columns: usize) -> Self {
        let groups = n.div_ceil(LANES);
        Self {
            numbers: vec![[0.0; LANES]; groups * columns],
            factors: vec![[[0.0; LANES]; 2]; groups],
            ends: Vec::with_capacity(n),
            indices: Vec::new(),
            values: Vec::new(),
            targets: vec![F::narrow(0.0); n],
            valid: vec![false; n],
        }
    }

    /// Reserves memory for `n` more records of `columns` columns.
    fn reserve(&mut self, n: usize, columns: usize) -> Result<(), OutOfMemory> {
        reserve(&mut self.numbers, n.div_ceil(LANES).saturating_mul(columns), ROWS)?;
        reserve(&mut self.factors, n.div_ceil(LANES), ROWS)?;
        reserve(&mut self.ends, n, ROWS)?;
        reserve(&mut self.targets, n, ROWS)?;
        reserve(&mut self.valid, n, ROWS)
    }

    /// Adds the records of another part, for which memory is reserved except for the features of other columns.
    fn append(&mut self, other: &Self) -> Result<(), OutOfMemory> {
        let before = self.indices.len();
        reserve(&mut self.indices, other.indices.len(), ROWS).map_err(OutOfMemory::without_sizes)?;
        reserve(&mut self.values, other.values.len(), ROWS).map_err(OutOfMemory::without_sizes)?;
        self.numbers.extend_from_slice(&other.numbers);
        self.factors.extend_from_slice(&other.factors);
        self.ends.extend(other.ends.iter().map(|end| before + end));
        self.indices.extend_from_slice(&other.indices);
        self.values.extend_from_slice(&other.values);
        self.targets.extend_from_slice(&other.targets);
        self.valid.extend_from_slice(&other.valid);
        Ok(())
    }

    /// Returns the lanes, indices and values of the features of other columns, for records of one group.
    fn others_of(&self, records: Range<usize>) -> impl Iterator<Item = (usize, u32, f64)> + '_ {
        records.flat_map(move |record| {
            let start = if record == 0 { 0 } else { self.ends[record - 1] };
            (start..self.ends[record]).map(move |k| (record % LANES, self.indices[k], self.values[k]))
        })
    }
}

impl<F: Stored> CurveRows<F> {
    /// Keeps the numbers of records that are given by their coordinates. Returns `None` if the encoder's features are better stored,
    /// or if two factors do not bound the norm of some record, whose squares over- or underflow.
    ///
    /// # Errors
    /// `memory.exhausted`.
    pub(crate) fn of_coordinates(
        block: &Block<'_, F>,
        encoder: &Encoder,
        workers: Workers,
    ) -> Result<Option<Self>, DataError> {
        let Some(shape) = Shape::of::<F>(encoder).filter(|_| block.dim() == encoder.coordinates()) else {
            return Ok(None);
        };
        let mut records = Records::<F>::default();
        records.reserve(block.len(), shape.columns.len())?;
        let part = |scratch: &mut Scratch, position: usize| {
            let part = block.slice(position * PART..block.len().min((position + 1) * PART));
            records_of(&part, &shape, encoder, scratch)
        };
        // `Err(None)`: a record does not fit.
        let append = |part: Option<Records<F>>| records.append(&part.ok_or(None)?).map_err(Some);
        let (parts, ahead) = (block.len().div_ceil(PART), PARTS_AHEAD * workers.threads());
        match workers.for_each(0..parts, ahead, || Scratch::new(&shape), part, append) {
            Ok(()) => {}
            Err(None) => return Ok(None),
            Err(Some(error)) => return Err(error.into()),
        }
        let marks = block.valid.is_some() || records.valid.contains(&false);
        Ok(Some(Self { shape, records, marks }))
    }

    /// Writes the features of some records; `group` is memory for those of a group.
    fn write(&self, range: Range<usize>, group: &mut Vec<Lanes<f64>>, mut rows: &mut [F]) {
        let Self { shape, records, .. } = self;
        group.resize(shape.dim, [0.0; LANES]);
        let arch = Arch::new();
        for index in range.start / LANES..range.end.div_ceil(LANES) {
            let start = index * LANES;
            let lanes = range.start.max(start) - start..range.end.min(start + LANES) - start;
            let numbers = &records.numbers[index * shape.columns.len()..(index + 1) * shape.columns.len()];
            let [encoding, bound] = &records.factors[index];
            let others = records.others_of(start + lanes.start..start + lanes.end);
            shape.write(arch, numbers, encoding, others, group);
            let (these, rest) = core::mem::take(&mut rows).split_at_mut(lanes.len() * shape.dim);
            rows = rest;
            if lanes.len() == LANES {
                F::write_rows(group, bound, these);
            } else {
                for (row, lane) in these.chunks_exact_mut(shape.dim).zip(lanes) {
                    write_row(group, (lane, bound[lane]), row);
                }
            }
        }
    }
}

/// The features of a group's columns with functions, multiplied by the first factor.
struct Group<'a> {
    shape: &'a Shape,
    numbers: &'a [Lanes<f64>],
    factors: &'a Lanes<f64>,
    features: &'a mut [Lanes<f64>],
}

impl WithSimd for Group<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { shape, numbers, factors, features } = self;
        let (zero, one) = (simd.splat_f64s(0.0), simd.splat_f64s(1.0));
        for (column, first) in shape.columns.iter().zip(numbers) {
            // Vectors side by side: one of eight lanes, two of four, eight numbers.
            for vector in 0..LANES / S::F64_LANES {
                let factor = S::as_simd_f64s(factors).0[vector];
                let first = S::as_simd_f64s(first).0[vector];
                // A zero is never negative, as it is not stored.
                let scaled = |value| simd.add_f64s(simd.mul_f64s(value, factor), zero);
                if column.cosines == 0 {
                    S::as_mut_simd_f64s(&mut features[column.first]).0[vector] = scaled(first);
                    continue;
                }
                let places = &mut features[column.first..column.first + column.cosines];
                let (twice, mut before, mut now) = (simd.add_f64s(first, first), one, first);
                for (place, &decay) in places.iter_mut().zip(&shape.decay) {
                    let value = simd.mul_f64s(simd.splat_f64s(decay), now);
                    S::as_mut_simd_f64s(place).0[vector] = scaled(value);
                    (before, now) = (now, simd.sub_f64s(simd.mul_f64s(twice, now), before));
                }
            }
        }
    }
}

/// Writes the row of one record of a group, multiplied by its second factor.
#[inline(always)]
fn write_row<F: Feature>(group: &[Lanes<f64>], (lane, bound): (usize, f64), row: &mut [F]) {
    for (place, lanes) in row.iter_mut().zip(group) {
        *place = F::narrow(F::narrow(lanes[lane]).widen() * bound);
    }
}

/// Writes the rows of a group in double precision, multiplied by their second factors.
pub(super) fn write_rows(group: &[Lanes<f64>], bound: &Lanes<f64>, rows: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = V3::try_new() {
        return simd.vectorize(Transpose { simd, group, bound, rows });
    }
    write_each_row(group, bound, rows);
}

/// Writes the rows of a group one after the other, multiplied by their second factors.
pub(super) fn write_each_row<F: Feature>(group: &[Lanes<f64>], bound: &Lanes<f64>, rows: &mut [F]) {
    for (lane, row) in rows.chunks_exact_mut(group.len()).enumerate() {
        write_row(group, (lane, bound[lane]), row);
    }
}

/// The same in squares of four numbers that registers hold.
#[cfg(target_arch = "x86_64")]
struct Transpose<'a> {
    simd: V3,
    group: &'a [Lanes<f64>],
    bound: &'a Lanes<f64>,
    rows: &'a mut [f64],
}

#[cfg(target_arch = "x86_64")]
impl NullaryFnOnce for Transpose<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { simd: V3 { avx, .. }, group, bound, rows } = self;
        let dim = group.len();
        let (squares, last) = group.as_chunks::<4>();
        for (half, rows) in rows.chunks_exact_mut(4 * dim).enumerate() {
            let bound: [f64; 4] = core::array::from_fn(|lane| bound[4 * half + lane]);
            let factors = bound.map(|factor| avx._mm256_set1_pd(factor));
            let (one, rest) = rows.split_at_mut(dim);
            let (two, rest) = rest.split_at_mut(dim);
            let (three, four) = rest.split_at_mut(dim);
            let places = one.as_chunks_mut::<4>().0.iter_mut().zip(two.as_chunks_mut::<4>().0);
            let places = places.zip(three.as_chunks_mut::<4>().0.iter_mut().zip(four.as_chunks_mut::<4>().0));
            for (square, ((one, two), (three, four))) in squares.iter().zip(places) {
                // Four features of four records each.
                let [a, b, c, d] = square.map(|lanes| pulp::cast::<[f64; 4], __m256d>(lanes.as_chunks::<4>().0[half]));
                let (ab_even, ab_odd) = (avx._mm256_unpacklo_pd(a, b), avx._mm256_unpackhi_pd(a, b));
                let (cd_even, cd_odd) = (avx._mm256_unpacklo_pd(c, d), avx._mm256_unpackhi_pd(c, d));
                let rows = [
                    avx._mm256_permute2f128_pd::<0x20>(ab_even, cd_even),
                    avx._mm256_permute2f128_pd::<0x20>(ab_odd, cd_odd),
                    avx._mm256_permute2f128_pd::<0x31>(ab_even, cd_even),
                    avx._mm256_permute2f128_pd::<0x31>(ab_odd, cd_odd),
                ];
                for ((place, row), factor) in [one, two, three, four].into_iter().zip(rows).zip(factors) {
                    *place = pulp::cast(avx._mm256_mul_pd(row, factor));
                }
            }
        }
        let done = dim - last.len();
        for ((lane, row), &bound) in rows.chunks_exact_mut(dim).enumerate().zip(bound) {
            write_row(last, (lane, bound), &mut row[done..]);
        }
    }
}

impl<F: Stored> Unexpanded<F> for CurveRows<F> {
    fn dim(&self) -> usize {
        self.shape.dim
    }

    fn targets(&self) -> &[F] {
        &self.records.targets
    }

    fn valid(&self) -> Option<&[bool]> {
        self.marks.then_some(&self.records.valid[..])
    }

    fn expand(&self, range: Range<usize>, features: &mut Vec<F>) {
        features.resize(range.len() * self.shape.dim, F::narrow(0.0));
        self.write(range, &mut Vec::new(), features);
    }
}

/// Memory of one group.
struct Scratch {
    features: Vec<Lanes<f64>>,
    /// The features of a record that are not 0.
    nonzero: Vec<f64>,
}

impl Scratch {
    fn new(shape: &Shape) -> Self {
        Self { features: vec![[0.0; LANES]; shape.dim], nonzero: Vec::new() }
    }

    /// Returns the factors that bound the norms of the records in these lanes; `None` if there are no such factors.
    fn factors<F: Stored>(&mut self, arch: Arch, lanes: Lanes<bool>, encoder: &Encoder) -> Option<[Lanes<f64>; 2]> {
        let Self { features, nonzero, .. } = self;
        let (row_norm, dim) = (encoder.encoding.row_norm, features.len());
        let (squares, zeros) = arch.dispatch(Squares(features));
        let [mut first, mut second] = [[0.0; LANES]; 2];
        for lane in (0..LANES).filter(|&lane| lanes[lane]) {
            first[lane] = if zeros[lane] {
                // The sum has the bits of that over features that are not 0.
                nonzero.clear();
                nonzero.extend(features.iter().map(|feature| feature[lane]).filter(|&value| value != 0.0));
                factor(nonzero, row_norm)
            } else {
                factor_of(squares[lane], dim, row_norm)
            }?;
        }
        let squares = arch.dispatch(BoundedSquares { features, factors: &first, stored: PhantomData::<F> });
        for lane in (0..LANES).filter(|&lane| lanes[lane]) {
            second[lane] = clip_factor(squares[lane], dim, encoder.row_bound())?;
        }
        Some([first, second])
    }
}

/// The sums of the squares of each lane's features, in the order of [`factor`], and whether one of them is 0.
struct Squares<'a>(&'a [Lanes<f64>]);

impl WithSimd for Squares<'_> {
    type Output = (Lanes<f64>, Lanes<bool>);

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        let (fours, rest) = self.0.as_chunks::<4>();
        let (mut sums, mut zeros) = ([[0.0; LANES]; 4], [false; LANES]);
        for four in fours {
            for (sums, values) in sums.iter_mut().zip(four) {
                for lane in 0..LANES {
                    sums[lane] += values[lane] * values[lane];
                    zeros[lane] |= values[lane] == 0.0;
                }
            }
        }
        let [a, b, c, d] = sums;
        let mut total = [0.0; LANES];
        for lane in 0..LANES {
            total[lane] = (a[lane] + b[lane]) + (c[lane] + d[lane]);
        }
        for values in rest {
            for lane in 0..LANES {
                total[lane] += values[lane] * values[lane];
                zeros[lane] |= values[lane] == 0.0;
            }
        }
        (total, zeros)
    }
}

/// The sums of the squares of each lane's features times its factor, as stored, one after the other.
struct BoundedSquares<'a, F> {
    features: &'a [Lanes<f64>],
    factors: &'a Lanes<f64>,
    stored: PhantomData<F>,
}

impl<F: Stored> WithSimd for BoundedSquares<'_, F> {
    type Output = Lanes<f64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Lanes<f64> {
        let (mut sums, factors) = ([0.0; LANES], *self.factors);
        for values in self.features {
            for lane in 0..LANES {
                let stored = F::narrow(values[lane] * factors[lane]).widen();
                sums[lane] += stored * stored;
            }
        }
        sums
    }
}

/// Returns the numbers of a part's records.
fn records_of<F: Stored>(
    block: &Block<'_, F>,
    shape: &Shape,
    encoder: &Encoder,
    scratch: &mut Scratch,
) -> Option<Records<F>> {
    let (numeric, _) = encoder.map.as_ref()?.curves()?;
    let (arch, target_bound) = (Arch::new(), encoder.target_bound());
    let mut records = Records::<F>::nulls(block.len(), numeric.len());
    for group in 0..block.len().div_ceil(LANES) {
        let start = group * LANES;
        let numbers = &mut records.numbers[group * numeric.len()..(group + 1) * numeric.len()];
        let mut lanes = [false; LANES];
        for (lane, i) in (start..block.len().min(start + LANES)).enumerate() {
            let number = block.targets[i].widen();
            if block.valid.is_none_or(|valid| valid[i]) && number.is_finite() {
                lanes[lane] = true;
                records.targets[i] = if number.abs() > target_bound {
                    F::narrow(number.signum() * target_bound)
                } else {
                    block.targets[i]
                };
                records.valid[i] = true;
                let keep = |index: u32, value: f64| {
                    records.indices.push(index);
                    records.values.push(value);
                };
                match block.rows {
                    Rows::Dense { values, dim } => {
                        let values = values[i * dim..(i + 1) * dim].iter().map(|value| value.widen());
                        divide((0..).zip(values), numeric, lane, numbers, keep);
                    }
                    Rows::Sparse { offsets, indices, values, .. } => {
                        let place = offsets[i]..offsets[i + 1];
                        let values = values[place.clone()].iter().map(|value| value.widen());
                        divide(indices[place].iter().copied().zip(values), numeric, lane, numbers, keep);
                    }
                }
            }
            records.ends.push(records.indices.len());
        }
        arch.dispatch(FirstCosines { numeric, numbers });
        let others = records.others_of(start..block.len().min(start + LANES));
        let numbers = &records.numbers[group * numeric.len()..(group + 1) * numeric.len()];
        shape.write(arch, numbers, &[1.0; LANES], others, &mut scratch.features);
        records.factors[group] = scratch.factors::<F>(arch, lanes, encoder)?;
    }
    Some(records)
}

/// Writes the coordinates of a record, in the order of their indices, to its lane of the numbers, and passes those of other columns
/// that are not 0 to `keep`, with the indices of their features.
#[inline]
fn divide(
    mut entries: impl Iterator<Item = (u32, f64)>,
    numeric: &[Numeric],
    lane: usize,
    numbers: &mut [Lanes<f64>],
    mut keep: impl FnMut(u32, f64),
) {
    let (mut shift, mut next) = (0, entries.next());
    for (column, place) in numeric.iter().zip(numbers) {
        while let Some((index, value)) = next.filter(|(index, _)| *index < column.feature) {
            if value != 0.0 {
                keep(index + shift, value);
            }
            next = entries.next();
        }
        place[lane] = 0.0;
        if let Some((_, value)) = next.filter(|(index, _)| *index == column.feature) {
            // A zero is never negative.
            place[lane] += value;
            next = entries.next();
        }
        shift += column.functions.cosines.saturating_sub(1);
    }
    for (index, value) in next.into_iter().chain(entries) {
        if value != 0.0 {
            keep(index + shift, value);
        }
    }
}

/// Replaces coordinates by the first cosines, or by the only features.
struct FirstCosines<'a> {
    numeric: &'a [Numeric],
    numbers: &'a mut [Lanes<f64>],
}

impl WithSimd for FirstCosines<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (column, lanes) in self.numeric.iter().zip(self.numbers) {
            for value in &mut *lanes {
                *value = column.share(*value);
            }
            column.functions.coordinate.replace(lanes);
            if column.functions.cosines == 0 {
                for z in lanes {
                    *z = column.single_feature(*z);
                }
                continue;
            }
            // Plainly written, the loop would be unrolled and not vectorised.
            for z in S::as_mut_simd_f64s(lanes).0 {
                let v = simd.sub_f64s(simd.add_f64s(*z, *z), simd.splat_f64s(1.0));
                *z = simd.neg_f64s(sin_half_pi(simd, v));
            }
        }
    }
}

/// [`sin_half_pi`](super::feature_map::sin_half_pi) in each lane.
#[inline(always)]
fn sin_half_pi<S: Simd>(simd: S, v: S::f64s) -> S::f64s {
    let (square, mut sum) = (simd.mul_f64s(v, v), simd.splat_f64s(0.0));
    for &coefficient in COEFFICIENTS.iter().rev() {
        sum = simd.add_f64s(simd.mul_f64s(sum, square), simd.splat_f64s(coefficient));
    }
    let (least, most) = (simd.splat_f64s(-1.0), simd.splat_f64s(1.0));
    simd.max_f64s(simd.min_f64s(simd.mul_f64s(v, sum), most), least)
}
