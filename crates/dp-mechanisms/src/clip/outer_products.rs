//! Sums of the outer products of rows of short whole numbers with themselves, in tiles that registers hold: four times as many
//! products at a time as in double precision.

use pulp::{Arch, Simd, WithSimd};
#[cfg(target_arch = "x86_64")]
use pulp::{NullaryFnOnce, x86::V3};

use crate::error::Error;

/// Length of a tile's side, in entries.
const SIDE: usize = 8;

/// Maximum number of pairs of rows multiplied together, one for each bit of a mask.
const PAIRS: usize = 64;

/// Maximum number of bits of an entry's magnitude. The magnitude itself may be `2^14`.
pub(super) const MOST_BITS: u32 = 14;

/// `Σ x xᵀ` and `Σ x tᵀ` over rows and targets of whole numbers. The entries of rows have magnitude at most `2^14`.
///
/// # Formula
/// An instruction multiplies the entries of two rows and adds both products, and another one adds that to a sum of 32 bits. The
/// rows of such a sum have `Σ_r max_i x_ri² < 2^31`, so that by the Cauchy-Schwarz inequality no partial sum overflows. Targets as
/// large as their norm would fill such a sum in seven rows: their products are summed in double precision, where sums of fewer
/// than `2^53` steps do not round.
pub(super) struct OuterProducts {
    arch: Arch,
    /// Number of tiles of a row.
    tiles: usize,
    dim: usize,
    /// One row, while it is added, with zeros up to the end of its last tile; and its targets.
    row: Vec<f64>,
    targets: Vec<f64>,
    /// The entries of that row.
    entries: Vec<i32>,
    /// `Σ x t` for each target.
    vectors: Vec<f64>,
    /// Rows not yet multiplied: for each tile of a row, a line for each pair of rows. The low half of a number is an entry of
    /// the first row, the high half the same entry of the second one.
    pending: Vec<[i32; SIDE]>,
    /// Number of pending rows.
    rows: usize,
    /// Sum of the squares of the largest entries of the pending rows and of those in `sums`.
    squares: i32,
    /// For each tile of a row, the pending pairs with a non-zero there, as bits.
    masks: Vec<u64>,
    /// The tiles on the diagonal and above, row by row: of the last rows, and of those before.
    sums: Vec<Tile<i32>>,
    total: Vec<Tile<i64>>,
}

type Tile<T> = [[T; SIDE]; SIDE];

impl OuterProducts {
    /// Creates an empty sum over rows of `dim` entries with `outputs` targets.
    pub(super) fn new(dim: usize, outputs: usize) -> Self {
        let tiles = dim.div_ceil(SIDE);
        Self {
            arch: Arch::new(),
            tiles,
            dim,
            row: vec![0.0; tiles * SIDE],
            entries: vec![0; tiles * SIDE],
            targets: vec![0.0; outputs],
            vectors: vec![0.0; dim * outputs],
            pending: vec![[0; SIDE]; tiles * PAIRS],
            rows: 0,
            squares: 0,
            masks: vec![0; tiles],
            sums: vec![[[0; SIDE]; SIDE]; tiles * (tiles + 1) / 2],
            total: vec![[[0; SIDE]; SIDE]; tiles * (tiles + 1) / 2],
        }
    }

    /// Adds a row: `fill` writes its entries and its targets, whole numbers of magnitude at most `2^14`.
    ///
    /// # Errors
    /// That of `fill`; in this case nothing is added.
    pub(super) fn add(&mut self, fill: impl FnOnce(&mut [f64], &mut [f64]) -> Result<(), Error>) -> Result<(), Error> {
        fill(&mut self.row[..self.dim], &mut self.targets)?;
        let Self { arch, row, targets, vectors, entries, .. } = self;
        let largest = arch.dispatch(Shorten { row, targets, vectors, entries });
        debug_assert!(largest <= 1 << MOST_BITS);
        let square = largest * largest;
        if self.squares.checked_add(square).is_none() {
            self.widen();
        } else if self.rows == 2 * PAIRS {
            self.multiply();
        }
        self.squares += square;
        self.arch.dispatch(Pair { entries: &self.entries, row: self.rows, pending: &mut self.pending });
        self.rows += 1;
        Ok(())
    }

    /// Adds the sums over other rows.
    pub(super) fn merge(&mut self, mut other: Self) {
        other.widen();
        let sums = self.total.iter_mut().flatten().flatten();
        sums.zip(other.total.iter().flatten().flatten()).for_each(|(sum, other)| *sum += other);
        self.vectors.iter_mut().zip(&other.vectors).for_each(|(sum, other)| *sum += other);
    }

    /// Returns the sums `Σ x_i x_j` for `j >= i` as a function of `i` and `j`, where targets follow the entries of a row, and
    /// resets them to zero.
    pub(super) fn finish(&mut self) -> impl Fn(usize, usize) -> f64 + use<> {
        self.widen();
        let (dim, tiles) = (self.dim, self.tiles);
        let none = vec![0.0; self.vectors.len()];
        let vectors = core::mem::replace(&mut self.vectors, none);
        let total = core::mem::replace(&mut self.total, vec![[[0; SIDE]; SIDE]; tiles * (tiles + 1) / 2]);
        // Fewer than 2^53 steps.
        move |i, j| match j.checked_sub(dim) {
            Some(k) => vectors[k * dim + i],
            None => total[place(tiles, i / SIDE, j / SIDE)][i % SIDE][j % SIDE] as f64,
        }
    }

    /// Adds to `Σ x_i x_j`, `j >= i`.
    pub(super) fn add_to(&mut self, i: usize, j: usize, sum: i64) {
        match j.checked_sub(self.dim) {
            Some(k) => self.vectors[k * self.dim + i] += sum as f64,
            None => self.total[place(self.tiles, i / SIDE, j / SIDE)][i % SIDE][j % SIDE] += sum,
        }
    }

    /// Adds the products of all rows to the total.
    fn widen(&mut self) {
        self.multiply();
        self.squares = 0;
        let sums = self.sums.as_flattened_mut().as_flattened_mut().iter_mut();
        let totals = self.total.as_flattened_mut().as_flattened_mut().iter_mut();
        totals.zip(sums).for_each(|(total, sum)| *total += i64::from(core::mem::take(sum)));
    }

    /// Adds the products of the pending rows.
    fn multiply(&mut self) {
        let pairs = self.rows.div_ceil(2);
        for (mask, lines) in self.masks.iter_mut().zip(self.pending.chunks_exact(PAIRS)) {
            let pairs = lines[..pairs].iter().enumerate();
            *mask = pairs.fold(0, |mask, (pair, line)| mask | u64::from(line.iter().any(|&x| x != 0)) << pair);
        }
        let panel = Panel { pairs: &self.pending, masks: &self.masks, sums: &mut self.sums };
        self.rows = 0;
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = V3::try_new() {
            return simd.vectorize(WithPairs { simd, panel });
        }
        panel.add(plain);
    }
}

/// Returns the index of tile `(row, column)`, `column >= row`, among the tiles on the diagonal and above.
fn place(tiles: usize, row: usize, column: usize) -> usize {
    row * (2 * tiles - row + 1) / 2 + (column - row)
}

/// Calls `f` for each bit that is set.
#[inline(always)]
fn each_bit(mut bits: u64, mut f: impl FnMut(usize)) {
    while bits != 0 {
        f(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

/// Adds the products of a row and its targets, and turns its entries into integers. Returns the largest magnitude.
struct Shorten<'a> {
    row: &'a [f64],
    targets: &'a [f64],
    vectors: &'a mut [f64],
    entries: &'a mut [i32],
}

impl WithSimd for Shorten<'_> {
    type Output = i32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> i32 {
        let Self { row, targets, vectors, entries } = self;
        if !targets.is_empty() {
            for (vector, &target) in vectors.chunks_exact_mut(vectors.len() / targets.len()).zip(targets) {
                vector.iter_mut().zip(row).for_each(|(sum, entry)| *sum += target * entry);
            }
        }
        // The low bits of 1.5 * 2^52 plus a small whole number are its two's complement.
        const INTEGERS: f64 = 6_755_399_441_055_744.0;
        let mut largest = 0;
        for (place, entry) in entries.iter_mut().zip(row) {
            *place = (entry + INTEGERS).to_bits() as i32;
            largest = if place.abs() > largest { place.abs() } else { largest };
        }
        largest
    }
}

/// Writes a row into the pending pairs.
struct Pair<'a> {
    entries: &'a [i32],
    /// Number of rows before this one.
    row: usize,
    pending: &'a mut [[i32; SIDE]],
}

impl WithSimd for Pair<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { entries, row, pending } = self;
        let lines = pending.chunks_exact_mut(PAIRS).map(|lines| &mut lines[row / 2]).zip(entries.as_chunks::<SIDE>().0);
        // The first row of a pair also clears what the last panel left.
        if row % 2 == 0 {
            lines.for_each(|(line, entries)| *line = entries.map(|entry| entry & 0xffff));
        } else {
            lines.for_each(|(line, entries)| *line = core::array::from_fn(|i| line[i] | entries[i] << 16));
        }
    }
}

struct Panel<'a> {
    /// [`PAIRS`] lines for each of the masks.
    pairs: &'a [[i32; SIDE]],
    masks: &'a [u64],
    sums: &'a mut [Tile<i32>],
}

impl Panel<'_> {
    /// Calls `add_to` for each tile with pairs of rows that are not 0 in both of its sides: with its sums, these pairs and the sides.
    #[inline(always)]
    fn add(self, add_to: impl Fn(&mut Tile<i32>, u64, &[[i32; SIDE]], &[[i32; SIDE]])) {
        let Self { pairs, masks, sums } = self;
        let side = |i: usize| &pairs[i * PAIRS..(i + 1) * PAIRS];
        let mut sums = sums.iter_mut();
        for (i, &left) in masks.iter().enumerate() {
            for ((j, &right), sums) in (i..).zip(&masks[i..]).zip(&mut sums) {
                if left & right != 0 {
                    add_to(sums, left & right, side(i), side(j));
                }
            }
        }
    }
}

/// Adds the products of a tile without special instructions.
#[inline(always)]
fn plain(sums: &mut Tile<i32>, pairs: u64, left: &[[i32; SIDE]], right: &[[i32; SIDE]]) {
    let halves = |pair: i32| (i32::from(pair as i16), pair >> 16);
    each_bit(pairs, |p| {
        for (sums, &factors) in sums.iter_mut().zip(&left[p]) {
            let (first, second) = halves(factors);
            for (sum, &entries) in sums.iter_mut().zip(&right[p]) {
                let (x, y) = halves(entries);
                *sum += first * x + second * y;
            }
        }
    });
}

/// A panel, for the instruction that multiplies pairs.
#[cfg(target_arch = "x86_64")]
struct WithPairs<'a> {
    simd: V3,
    panel: Panel<'a>,
}

#[cfg(target_arch = "x86_64")]
impl NullaryFnOnce for WithPairs<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { simd: V3 { avx, avx2, .. }, panel } = self;
        panel.add(|place, pairs, left, right| {
            let mut sums = place.map(pulp::cast);
            each_bit(pairs, |p| {
                let entries = pulp::cast(right[p]);
                for (sum, &factors) in sums.iter_mut().zip(&left[p]) {
                    let products = avx2._mm256_madd_epi16(avx._mm256_set1_epi32(factors), entries);
                    *sum = avx2._mm256_add_epi32(*sum, products);
                }
            });
            *place = sums.map(pulp::cast);
        });
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::rng::SeededRng;

    const LARGEST: i32 = 1 << MOST_BITS;

    /// Rows of any width, dense or sparse, in part of a panel or several, with entries as large as they may be: the sums are
    /// those of integers.
    #[test]
    fn sums_are_exact() {
        let mut rng = SeededRng::new(2);
        for (dim, outputs, count, share, size) in [
            (1, 0, 3, 1.0, 100),
            (8, 1, 128, 1.0, 2000),
            (9, 3, 129, 0.5, 2000),
            (30, 1, 500, 1.0, 3000),
            (61, 1, 261, 0.1, LARGEST),
            (17, 2, 64, 0.02, LARGEST),
            (24, 1, 0, 1.0, 1),
            // Only seven rows of this size fit into one sum.
            (3, 1, 100, 1.0, LARGEST),
        ] {
            let mut entry = || if rng.random_bool(share) { rng.random_range(-size..=size) } else { 0 };
            let mut rows: Vec<Vec<i32>> = (0..count).map(|_| (0..dim + outputs).map(|_| entry()).collect()).collect();
            // Entries of one sign and the largest magnitude: the diagonal is as large as it may be.
            rows.iter_mut().take(20).for_each(|row| row[0] = -size);
            rows.iter_mut().skip(2).take(20).for_each(|row| row[dim - 1] = size);
            // Targets are as large as they may be.
            rows.iter_mut().for_each(|row| row[dim..].fill(LARGEST));
            let add = |sum: &mut OuterProducts, row: &[i32]| {
                let write = |place: &mut [f64], row: &[i32]| {
                    assert_eq!(place.len(), row.len());
                    place.iter_mut().zip(row).for_each(|(place, &x)| *place = f64::from(x));
                };
                let fill = |place: &mut [f64], targets: &mut [f64]| {
                    write(place, &row[..dim]);
                    write(targets, &row[dim..]);
                    Ok(())
                };
                sum.add(fill).unwrap();
            };
            let mut sums = [0, 1].map(|_| OuterProducts::new(dim, outputs));
            // The second sum has the last rows.
            rows.iter().enumerate().for_each(|(r, row)| add(&mut sums[usize::from(3 * r > 2 * count)], row));
            assert!(sums[0].add(|_, _| Err(Error::SumsDiffer)).is_err());
            let [mut all, rest] = sums;
            all.merge(rest);
            let exact = |i: usize, j: usize| rows.iter().map(|row| i64::from(row[i]) * i64::from(row[j])).sum::<i64>();
            for _ in 0..2 {
                let found = all.finish();
                for i in 0..dim {
                    for j in i..dim + outputs {
                        assert_eq!(found(i, j), exact(i, j) as f64, "{dim} {count}: {i} {j}");
                    }
                }
                // Once more, after a reset.
                rows.iter().for_each(|row| add(&mut all, row));
            }
        }
    }

    /// The plain code and the code for the machine's instructions give the same sums.
    #[test]
    fn instruction_sets_agree() {
        let mut rng = SeededRng::new(7);
        let tiles = 4;
        let mut entry = || rng.random_range(-4000..4000i32) & 0xffff | rng.random_range(-4000..4000i32) << 16;
        let pairs: Vec<[i32; SIDE]> = (0..tiles * PAIRS).map(|_| core::array::from_fn(|_| entry())).collect();
        let masks = [u64::MAX >> 14, 0x2_5a5a_5a5a_5a5a, 0, u64::MAX];
        let mut totals = [0, 1].map(|_| vec![[[5i32; SIDE]; SIDE]; tiles * (tiles + 1) / 2]);
        let [by_plain, fast] = &mut totals;
        Panel { pairs: &pairs, masks: &masks, sums: by_plain }.add(plain);
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = V3::try_new() {
            simd.vectorize(WithPairs { simd, panel: Panel { pairs: &pairs, masks: &masks, sums: fast } });
            assert_eq!(by_plain, fast);
        }
        let _ = fast;
        assert!(by_plain[0][0][0] != 5 && by_plain[place(tiles, 2, 3)] == [[5; SIDE]; SIDE]);
    }
}
