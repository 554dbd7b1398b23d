//! Exact sums of bounded numbers, one from each record, on a grid.

use core::ops::Range;
use core::sync::atomic::Ordering;

use dp_accountant::Adjacency;
use dp_data::{Block, Order, PassRequest, RowSource, Workers};
use dp_mechanisms::clip::{ClippingNorm, ExactSum};

use super::batches::check_shape;
use super::control::{Control, Pace};
use super::{EXPANDED, expect_rows, expect_unexpanded};
use crate::error::Error;

/// Maximum number of fraction bits of a number.
const MOST_BITS: u32 = 30;
/// Maximum number of records, which leaves at least 20 bits for each.
const MOST_RECORDS: u64 = 1 << 32;

/// A grid for numbers in `[-1, 1]` on which the sum of one number from each record is exact in any order.
///
/// # Formula
/// ```text
/// k = min(30, 52 - ⌈log₂ n⌉)      cell(x) = ⌊x 2^k⌋      value = Σ cells / 2^k
/// ```
/// Cells are integers of magnitude at most `2^k`, so that sums of `n` of them stay below `2^52`: neither the sum nor its value
/// is rounded.
///
/// # Privacy
/// A record changes the value by at most the change of its own number, for any value of the record; NaN counts as 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GridSum {
    bits: u32,
}

impl GridSum {
    pub(crate) fn new(n: u64) -> Result<Self, Error> {
        if !(1..=MOST_RECORDS).contains(&n) {
            return Err(Error::Count { name: "number of records", value: n, range: "1 to 2^32" });
        }
        let bits_of_n = u64::BITS - (n - 1).leading_zeros();
        Ok(Self { bits: MOST_BITS.min(52 - bits_of_n) })
    }

    /// Returns the number of fraction bits of a number.
    pub(crate) fn bits(self) -> u32 {
        self.bits
    }

    /// Returns the size of a cell, a power of two.
    pub(crate) fn cell_size(self) -> f64 {
        self.value(1)
    }

    /// Returns the number of a record, clamped to `[-1, 1]`, in cells.
    #[inline]
    pub(crate) fn cell(self, x: f64) -> i64 {
        let x = if x.is_nan() { 1.0 } else { x.clamp(-1.0, 1.0) };
        (x * (1u64 << self.bits) as f64).floor() as i64
    }

    /// Converts a sum of cells to a number, exactly.
    pub(crate) fn value(self, cells: i64) -> f64 {
        cells as f64 / (1u64 << self.bits) as f64
    }

    /// Rounds `x` to the grid, clamped so that its difference from any sum is a double.
    pub(crate) fn public(self, x: f64) -> f64 {
        let most = (1u64 << 52) as f64;
        self.value((x * (1u64 << self.bits) as f64).floor().clamp(-most, most) as i64)
    }
}

/// Returns the grid step of [`exact_sum`], small enough that sums of `n` vectors of at most this norm are exact doubles.
pub(crate) fn exact_step(norm: ClippingNorm, n: u64) -> Result<f64, Error> {
    Ok(GridSum::new(n)?.cell_size() * 2f64.powi(norm.get().log2().floor() as i32))
}

/// Creates an exact sum of at most `n` records' vectors of at most this norm.
pub(crate) fn exact_sum<A: Adjacency>(dim: usize, norm: ClippingNorm, n: u64) -> Result<ExactSum<A>, Error> {
    Ok(ExactSum::new(dim, norm.into(), exact_step(norm, n)?, n)?)
}

/// Maximum number of numbers in the sums of all threads of a training together: 64 MiB, or 96 MiB for second moments.
const MOST_OF_THREADS: u64 = 1 << 23;
/// Minimum number of records of a thread; fewer are not worth starting one.
const LEAST_FOR_A_THREAD: usize = 4096;

/// Exact addition of the records of a pass.
pub(crate) trait ExactSums<F>: Sync {
    /// The sums.
    type Sums: Send;

    /// Returns the number of numbers in the sums.
    fn numbers(&self) -> u64;

    /// Creates sums of no records.
    fn empty(&self) -> Result<Self::Sums, Error>;

    /// Adds the records of a block.
    fn add_block(&self, block: &Block<'_, F>, sums: &mut Self::Sums) -> Result<(), Error>;

    /// Adds the sums of other records.
    fn merge(&self, sums: &mut Self::Sums, part: Self::Sums) -> Result<(), Error>;
}

/// Returns the sums of a pass. Several threads add up the parts of a long block; no bit depends on their number, since the sums
/// are exact.
pub(crate) fn add_up<F: Copy + Sync + 'static, S: ExactSums<F>>(
    sums: &S,
    source: &mut dyn RowSource<F>,
    pass: u32,
    control: &mut Control<'_>,
) -> Result<S::Sums, Error> {
    let mut total = sums.empty()?;
    let workers = control.workers;
    let description = if source.unexpanded().is_some() { Some(source.describe()?) } else { None };
    if let Some((rows, description)) = source.unexpanded().zip(description) {
        expect_unexpanded(rows, &description)?;
        let cancelled = control.cancelled;
        let mut pace = Pace::new(control, pass.into());
        let add = |range: Range<usize>, sum: &mut S::Sums| {
            let mut features = Vec::new();
            range.clone().step_by(EXPANDED).try_for_each(|start| {
                if cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                    return Err(Error::Interrupted);
                }
                let end = range.end.min(start + EXPANDED);
                sums.add_block(&rows.block(start..end, &mut features), sum)
            })
        };
        add_up_parts(sums, rows.len(), workers, &mut total, add)?;
        pace.advance(rows.len())?;
        pace.finish()?;
        return Ok(total);
    }
    each_block(source, pass, control, &mut |block| add_up_block(sums, block, workers, &mut total))?;
    Ok(total)
}

/// Adds the records of a block to `total`, as [`add_up`] does.
pub(crate) fn add_up_block<F: Copy + Sync, S: ExactSums<F>>(
    sums: &S,
    block: &Block<'_, F>,
    workers: Workers,
    total: &mut S::Sums,
) -> Result<(), Error> {
    add_up_parts(sums, block.len(), workers, total, |range, sum| sums.add_block(&block.slice(range), sum))
}

/// Adds `n` records to `total`: `add` adds those of a range to a sum.
fn add_up_parts<F: Copy, S: ExactSums<F>>(
    sums: &S,
    n: usize,
    workers: Workers,
    total: &mut S::Sums,
    add: impl Fn(Range<usize>, &mut S::Sums) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let fitting = usize::try_from(MOST_OF_THREADS / sums.numbers().max(1)).unwrap_or(usize::MAX);
    let parts = workers.threads().min(fitting).min(n / LEAST_FOR_A_THREAD);
    if parts <= 1 {
        return add(0..n, total);
    }
    let of_part = n.div_ceil(parts).next_multiple_of(EXPANDED);
    let of_part = |(): &mut (), part: usize| {
        let (mut sum, start) = (sums.empty()?, n.min(part * of_part));
        add(start..n.min(start + of_part), &mut sum)?;
        Ok::<_, Error>(sum)
    };
    workers.map(parts, || (), of_part).into_iter().try_for_each(|part| sums.merge(total, part?))
}

/// Passes every block to `of_block`, in the source's own order; sums on a grid do not depend on the order.
pub(crate) fn each_block<F: Copy + 'static>(
    source: &mut dyn RowSource<F>,
    pass: u32,
    control: &mut Control<'_>,
    of_block: &mut dyn FnMut(&Block<'_, F>) -> Result<(), Error>,
) -> Result<(), Error> {
    let description = source.describe()?;
    let mut pace = Pace::new(control, pass.into());
    let (mut rows, mut sparse) = (0u64, None);
    let mut stream = source.open_pass(&PassRequest { pass, order: Order::Declared })?;
    while let Some(block) = stream.next_block()? {
        check_shape(&block, description.dim, &mut sparse, description.engine)?;
        rows += block.len() as u64;
        if rows > description.n {
            break;
        }
        of_block(&block)?;
        pace.advance(block.len())?;
    }
    stream.receipt()?;
    expect_rows(description.n, rows)?;
    pace.finish()
}

pub(crate) fn counts<F>(block: &Block<'_, F>, i: usize) -> bool {
    block.valid.is_none_or(|valid| valid.get(i).copied().unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_record_moves_a_sum_by_what_it_moves(
            numbers in prop::collection::vec(-2.0..2.0f64, 1..40), other in prop_oneof![-2.0..2.0f64, Just(f64::NAN)],
            at in 0usize..40, n in 1u64..(1 << 32),
        ) {
            let grid = GridSum::new(n.max(40)).unwrap();
            let sum = |numbers: &[f64]| grid.value(numbers.iter().map(|&x| grid.cell(x)).sum());
            let mut neighbour = numbers.clone();
            let at = at % numbers.len();
            neighbour[at] = other;
            let moved = sum(&numbers) - sum(&neighbour);
            prop_assert!(moved.abs() <= 2.0);
            prop_assert_eq!(moved, grid.value(grid.cell(numbers[at]) - grid.cell(other)));
            let backwards: Vec<f64> = numbers.iter().rev().copied().collect();
            prop_assert_eq!(sum(&numbers), sum(&backwards));
        }
    }

    #[test]
    fn the_largest_sums_are_exact() {
        for n in [1, 2, 3, 1 << 22, (1 << 22) + 1, 1 << 32] {
            let grid = GridSum::new(n).unwrap();
            let most = grid.cell(1.0) * n as i64;
            assert!(most <= 1 << 52, "{n}");
            assert_eq!(grid.value(most), n as f64);
            assert_eq!(grid.value(most - 1) - grid.value(most), -grid.value(1));
            assert_eq!(grid.public(1e300), (1u64 << 52) as f64 / (1u64 << grid.bits) as f64);
        }
        assert!(GridSum::new(0).is_err() && GridSum::new((1 << 32) + 1).is_err());
        let grid = GridSum::new(10).unwrap();
        assert_eq!(grid.cell(f64::INFINITY), grid.cell(1.0));
        assert_eq!(grid.cell(f64::NEG_INFINITY), -grid.cell(1.0));
        assert_eq!(grid.cell(f64::NAN), grid.cell(1.0));
    }
}
