//! Sums of the outer products of rows with themselves, in tiles that registers hold.

use pulp::{Arch, Simd, WithSimd};

use crate::error::Error;

/// Length of a tile's side, in entries.
const SIDE: usize = 8;

/// Maximum number of rows multiplied together, one for each bit of a mask.
const PANEL: usize = 64;

/// `Σ x xᵀ` over rows of whole numbers, so small that no product and no partial sum rounds.
///
/// # Formula
/// Rows are padded to tiles of 8 x 8 entries. A tile of 64 rows' products is summed in registers, over the rows that have a
/// non-zero in both of its sides, and then added to the total. Since nothing rounds, neither the tiles nor the order of the rows
/// nor fused operations change a bit.
pub(super) struct OuterProducts {
    arch: Arch,
    /// Number of tiles of a row.
    tiles: usize,
    /// Rows not yet multiplied, at most [`PANEL`].
    pending: Vec<f64>,
    /// For each tile of a row, the pending rows with a non-zero there, as bits.
    masks: Vec<u64>,
    /// The tiles on the diagonal and above, row by row.
    total: Vec<[[f64; SIDE]; SIDE]>,
}

impl OuterProducts {
    /// Creates an empty sum over rows of `width` entries.
    pub(super) fn new(width: usize) -> Self {
        let tiles = width.div_ceil(SIDE);
        let total = vec![[[0.0; SIDE]; SIDE]; tiles * (tiles + 1) / 2];
        Self { arch: Arch::new(), tiles, pending: Vec::new(), masks: vec![0; tiles], total }
    }

    /// Adds a row: `fill` writes its entries over zeros.
    ///
    /// # Errors
    /// That of `fill`; in this case nothing is added.
    pub(super) fn add(&mut self, fill: impl FnOnce(&mut [f64]) -> Result<(), Error>) -> Result<(), Error> {
        let start = self.pending.len();
        self.pending.resize(start + self.tiles * SIDE, 0.0);
        if let Err(error) = fill(&mut self.pending[start..]) {
            self.pending.truncate(start);
            return Err(error);
        }
        if self.pending.len() == PANEL * self.tiles * SIDE {
            self.multiply();
        }
        Ok(())
    }

    /// Adds the sums over other rows.
    pub(super) fn merge(&mut self, mut other: Self) {
        other.multiply();
        let sums = self.total.iter_mut().flatten().flatten();
        sums.zip(other.total.iter().flatten().flatten()).for_each(|(sum, other)| *sum += other);
    }

    /// Returns the sums `Σ x_i x_j` for `j >= i` as a function of `i` and `j`, and resets them to zero.
    pub(super) fn finish(&mut self) -> impl Fn(usize, usize) -> f64 + use<> {
        self.multiply();
        let tiles = self.tiles;
        let total = core::mem::replace(&mut self.total, vec![[[0.0; SIDE]; SIDE]; tiles * (tiles + 1) / 2]);
        move |i, j| total[place(tiles, i / SIDE, j / SIDE)][i % SIDE][j % SIDE]
    }

    /// Adds the products of the pending rows.
    fn multiply(&mut self) {
        let (rows, _) = self.pending.as_chunks::<SIDE>();
        self.masks.fill(0);
        for (r, row) in rows.chunks_exact(self.tiles).enumerate() {
            for (mask, entries) in self.masks.iter_mut().zip(row) {
                *mask |= u64::from(entries.iter().any(|&x| x != 0.0)) << r;
            }
        }
        self.arch.dispatch(Panel { rows, masks: &self.masks, total: &mut self.total });
        self.pending.clear();
    }

    /// Adds to `Σ x_i x_j`, `j >= i`.
    pub(super) fn add_to(&mut self, i: usize, j: usize, sum: f64) {
        self.total[place(self.tiles, i / SIDE, j / SIDE)][i % SIDE][j % SIDE] += sum;
    }
}

/// Returns the index of tile `(row, column)`, `column >= row`, among the tiles on the diagonal and above.
pub(super) fn place(tiles: usize, row: usize, column: usize) -> usize {
    row * (2 * tiles - row + 1) / 2 + (column - row)
}

/// Calls `f` for each bit that is set.
#[inline(always)]
pub(super) fn each_bit(mut bits: u64, mut f: impl FnMut(usize)) {
    while bits != 0 {
        f(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

struct Panel<'a> {
    /// Rows of `masks.len()` tiles each.
    rows: &'a [[f64; SIDE]],
    masks: &'a [u64],
    total: &'a mut [[[f64; SIDE]; SIDE]],
}

impl WithSimd for Panel<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, masks, total } = self;
        let (tiles, mut total) = (masks.len(), total.iter_mut());
        // Without vector instructions a fused operation would be a function call.
        let add_product = |factor, entries, sum| {
            if S::IS_SCALAR {
                simd.add_f64s(simd.mul_f64s(factor, entries), sum)
            } else {
                simd.mul_add_f64s(factor, entries, sum)
            }
        };
        for (i, &left) in masks.iter().enumerate() {
            for ((j, &right), total) in (i..).zip(&masks[i..]).zip(&mut total) {
                let both = left & right;
                if both == 0 {
                    continue;
                }
                // Vectors side by side in a tile: one of eight lanes, two of four, eight numbers.
                for vector in 0..SIDE / S::F64_LANES {
                    let mut sums = [simd.splat_f64s(0.0); SIDE];
                    each_bit(both, |r| {
                        let entries = S::as_simd_f64s(&rows[r * tiles + j]).0[vector];
                        for (sum, &factor) in sums.iter_mut().zip(&rows[r * tiles + i]) {
                            *sum = add_product(simd.splat_f64s(factor), entries, *sum);
                        }
                    });
                    for (line, sum) in total.iter_mut().zip(sums) {
                        let place = &mut S::as_mut_simd_f64s(line).0[vector];
                        *place = simd.add_f64s(*place, sum);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::rng::SeededRng;

    /// Rows of any width, dense, sparse or zero, in one panel or several: the sums are those of integers.
    #[test]
    fn sums_are_exact() {
        let mut rng = SeededRng::new(2);
        for (width, count, share) in
            [(1, 3, 1.0), (8, 64, 1.0), (9, 65, 0.5), (30, 200, 1.0), (61, 130, 0.1), (17, 64, 0.02), (24, 0, 1.0)]
        {
            let mut entry = || if rng.random_bool(share) { rng.random_range(-1_000_000i64..1_000_000) } else { 0 };
            let rows: Vec<Vec<i64>> = (0..count).map(|_| (0..width).map(|_| entry()).collect()).collect();
            let mut sums = [0, 1].map(|_| OuterProducts::new(width));
            let mut add = |of: usize, row: &[i64]| {
                let fill = |place: &mut [f64]| {
                    place.iter_mut().zip(row).for_each(|(place, &x)| *place = x as f64);
                    Ok(())
                };
                sums[of].add(fill).unwrap();
            };
            // The second sum has the last rows.
            rows.iter().enumerate().for_each(|(r, row)| add(usize::from(3 * r > 2 * count), row));
            assert!(sums[0].add(|_| Err(Error::SumsDiffer)).is_err());
            let [mut all, rest] = sums;
            all.merge(rest);
            for _ in 0..2 {
                let found = all.finish();
                for i in 0..width {
                    for j in i..width {
                        let exact: i64 = rows.iter().map(|row| row[i] * row[j]).sum();
                        assert_eq!(found(i, j), exact as f64, "{width} {count}: {i} {j}");
                    }
                }
                // Once more, after a reset.
                rows.iter().for_each(|row| {
                    all.add(|place| {
                        place.iter_mut().zip(row).for_each(|(place, &x)| *place = x as f64);
                        Ok(())
                    })
                    .unwrap();
                });
            }
        }
    }

    /// The plain code and the code for the machine's instructions give the same bits.
    #[test]
    fn instruction_sets_agree() {
        let mut rng = SeededRng::new(7);
        let (tiles, count) = (4, 50);
        let rows: Vec<[f64; SIDE]> =
            (0..tiles * count).map(|_| core::array::from_fn(|_| f64::from(rng.random_range(-65536..65536)))).collect();
        let masks = [u64::MAX >> 14, 0x2_5a5a_5a5a_5a5a, 0, u64::MAX >> 14];
        let mut totals = [0, 1].map(|_| vec![[[0.5f64; SIDE]; SIDE]; tiles * (tiles + 1) / 2]);
        let [plain, fast] = &mut totals;
        Panel { rows: &rows, masks: &masks, total: plain }.with_simd(pulp::Scalar);
        Arch::new().dispatch(Panel { rows: &rows, masks: &masks, total: fast });
        assert_eq!(plain, fast);
        assert!(plain[0][0][0] != 0.5 && plain[place(tiles, 2, 3)] == [[0.5; SIDE]; SIDE]);
    }
}
