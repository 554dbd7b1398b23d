//! The records of a risk: all of them, or a sample that is held in memory.

use core::marker::PhantomData;
use core::ops::Range;

use dp_data::{Block, BlockBuffer, Unexpanded, Workers};
use dp_losses::Model;
use nalgebra::RealField;

use super::full_gradient::{CHUNK, Chunked};
use crate::engine::batches::{BatchSizes, Batches, Piece, Pieces, Visit};
use crate::engine::chunks::{Divided as _, Part, UnexpandedPart, each_chunk};
use crate::engine::control::{Control, Pace};
use crate::engine::{expect_rows, expect_unexpanded};
use crate::error::Error;

/// Examples that threads divide between two checks for cancellation.
const GROUP: usize = 64 * CHUNK;
const GROUP_OF_SAMPLE: usize = 16 * CHUNK;

/// Records of a sample: `RECORDS_PER_FEATURE` for each feature, and at least `RECORDS`.
const RECORDS: u64 = 1 << 14;
const RECORDS_PER_FEATURE: u64 = 64;
/// Minimum number of records for each feature: with fewer, the minimiser of a sample is no better than any other start.
const LEAST_PER_FEATURE: u64 = 16;
/// Numbers in a sample, 32 MiB in double precision: whole strides exceed them by an eighth at most.
const NUMBERS: u64 = 1 << 22;
/// Minimum number of records for each sampled one.
const LEAST_STRIDE: u64 = 8;
/// Neighbouring records that are sampled together.
const NEIGHBOURS: u64 = 8;

/// The records of a risk.
pub(super) enum Records<'b, F, B> {
    All(&'b mut B),
    Sample { rows: BlockBuffer<F>, dim: usize },
}

/// Returns about how many numbers a sample of `n` records takes, twice as many as it holds: its memory doubles when it is full.
pub(crate) fn sampled_numbers(features: u64, n: u64) -> u64 {
    stride(features, n).map_or(0, |stride| (n / stride).saturating_mul(features).saturating_mul(2))
}

/// Returns the number of records for each one of a sample, if a sample pays. Depends on public numbers only.
fn stride(features: u64, n: u64) -> Option<u64> {
    let features = features.max(1);
    let wanted = features.saturating_mul(RECORDS_PER_FEATURE).max(RECORDS).min(NUMBERS / features);
    let stride = n / wanted.max(1);
    (stride >= LEAST_STRIDE && wanted >= features.saturating_mul(LEAST_PER_FEATURE)).then_some(stride)
}

/// Returns the ranges of records within `positions` that are in the sample: of each `stride` groups of neighbours one, at a
/// pseudo-random place, so that the sample does not follow a period of the records.
fn sampled(positions: Range<u64>, stride: u64) -> impl Iterator<Item = Range<u64>> {
    let span = stride * NEIGHBOURS;
    (positions.start / span..positions.end.div_ceil(span)).filter_map(move |index| {
        // The mixing function of SplitMix64.
        let mut hash = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let first = index * span + ((hash ^ (hash >> 31)) % stride) * NEIGHBOURS;
        let range = first.max(positions.start)..(first + NEIGHBOURS).min(positions.end);
        (!range.is_empty()).then_some(range)
    })
}

impl<F: RealField + Copy, B> Records<'_, F, B> {
    /// Copies a sample of all records, if one pays.
    ///
    /// # Errors
    /// A source that fails or delivers a number of examples other than described; [`OutOfMemory`](dp_data::OutOfMemory);
    /// [`Error::Interrupted`].
    pub(super) fn sample<M: Chunked<F>>(
        batches: &mut B,
        model: &M,
        n: u64,
        control: &mut Control<'_>,
    ) -> Result<Option<Self>, Error>
    where
        B: Batches<F, M>,
    {
        let dim = model.features();
        // The coupling between the blocks of several classes is learnt from the gradients of all records, whatever the start.
        if model.parameters() != dim {
            return Ok(None);
        }
        let Some(stride) = stride(dim as u64, n) else { return Ok(None) };
        let mut sample = Gather { stride, position: 0, rows: BlockBuffer::default(), pace: Pace::quiet(control) };
        if let Some(rows) = checked_unexpanded(batches, n)? {
            let mut features = Vec::new();
            for range in sampled(0..n, stride) {
                sample.rows.push(&rows.block(range.start as usize..range.end as usize, &mut features))?;
            }
        } else {
            let all = BatchSizes::Equal(usize::try_from(n).unwrap_or(usize::MAX));
            expect_rows(n, batches.pass(0, &all, &mut sample)?)?;
        }
        Ok(Some(Self::Sample { rows: sample.rows, dim }))
    }

    /// Returns the number of records of a sample, 0 if these are all records.
    pub(super) fn sampled(&self) -> u64 {
        match self {
            Self::All(_) => 0,
            Self::Sample { rows, .. } => rows.rows() as u64,
        }
    }
}

/// Returns the records whose features are computed when they are read, if they are, checked.
fn checked_unexpanded<F, M: Model<F>, B: Batches<F, M>>(
    batches: &mut B,
    n: u64,
) -> Result<Option<&dyn Unexpanded<F>>, Error> {
    if batches.unexpanded().is_none() {
        return Ok(None);
    }
    let description = batches.describe()?;
    expect_rows(n, description.n)?;
    let rows = batches.unexpanded();
    rows.map_or(Ok(()), |rows| expect_unexpanded(rows, &description))?;
    Ok(rows)
}

/// Copies the sampled records of a pass.
struct Gather<'s, 'c, F> {
    stride: u64,
    position: u64,
    rows: BlockBuffer<F>,
    pace: Pace<'s, 'c>,
}

impl<F, M> Visit<F, M> for Gather<'_, '_, F>
where
    F: RealField + Copy,
    M: Chunked<F>,
{
    fn pieces(&self) -> Pieces {
        Pieces::MultiplesOf(1)
    }

    fn batch(&mut self, rows: Block<'_, F>, piece: Piece) -> Result<(), Error> {
        let start = self.position;
        self.position += piece.examples as u64;
        for range in sampled(start..self.position, self.stride) {
            self.rows.push(&rows.slice((range.start - start) as usize..(range.end - start) as usize))?;
        }
        self.pace.advance(piece.examples)
    }
}

/// Passes the `n` records to `of_part` in parts, on the control's workers, and its results to `add` in the order of the records.
/// `size` is the number of records of a part, and of numbers of its result.
pub(super) fn pass<F, M, B, P, T>(
    records: &mut Records<'_, F, B>,
    n: u64,
    size: (usize, usize),
    buffers: impl Fn() -> P + Sync,
    of_part: impl Fn(&mut P, Part<'_, '_, F>) -> T + Sync,
    add: impl FnMut(T) -> Result<(), Error>,
    control: &mut Control<'_>,
) -> Result<(), Error>
where
    F: RealField + Copy,
    M: Chunked<F>,
    B: Batches<F, M>,
    T: Send,
{
    let workers = control.workers;
    let batches = match records {
        Records::All(batches) => &mut **batches,
        Records::Sample { rows, dim } => {
            let (mut add, rows) = (add, rows.block(*dim));
            for start in (0..rows.len()).step_by(GROUP_OF_SAMPLE) {
                control.check()?;
                let group = rows.slice(start..rows.len().min(start + GROUP_OF_SAMPLE));
                let of_part = |buffers: &mut P, rows| of_part(buffers, Part::Stored(rows));
                each_chunk(&group, size, workers, &buffers, of_part, &mut add)?;
            }
            return control.check();
        }
    };
    if let Some(rows) = checked_unexpanded(batches, n)? {
        let rows = UnexpandedPart::all(rows);
        let (mut add, mut pace) = (add, Pace::quiet(control));
        for start in (0..rows.rows()).step_by(GROUP) {
            let group = rows.part(start..rows.rows().min(start + GROUP));
            let buffers = || (buffers(), Vec::new());
            let of_part = |(buffers, features): &mut (P, Vec<F>), part: UnexpandedPart<'_, F>| {
                of_part(buffers, Part::Unexpanded(part, features))
            };
            each_chunk(&group, size, workers, buffers, of_part, &mut add)?;
            pace.advance(group.rows())?;
        }
        return Ok(());
    }
    // The order does not matter: a source has pass 0 at hand under a fixed order.
    let mut groups = Groups { size, buffers, of_part, add, workers, pace: Pace::quiet(control), types: PhantomData };
    let all = BatchSizes::Equal(usize::try_from(n).unwrap_or(usize::MAX));
    let rows = batches.pass(0, &all, &mut groups)?;
    expect_rows(n, rows)
}

struct Groups<'s, 'c, F, P, T, N, C, A> {
    /// Records of a part, numbers of its result.
    size: (usize, usize),
    buffers: N,
    of_part: C,
    add: A,
    workers: Workers,
    pace: Pace<'s, 'c>,
    types: PhantomData<fn(F, P) -> T>,
}

impl<F, M, P, T, N, C, A> Visit<F, M> for Groups<'_, '_, F, P, T, N, C, A>
where
    F: RealField + Copy,
    M: Chunked<F>,
    T: Send,
    N: Fn() -> P + Sync,
    C: Fn(&mut P, Part<'_, '_, F>) -> T + Sync,
    A: FnMut(T) -> Result<(), Error>,
{
    fn pieces(&self) -> Pieces {
        Pieces::MultiplesOf(self.size.0)
    }

    fn batch(&mut self, rows: Block<'_, F>, piece: Piece) -> Result<(), Error> {
        let Self { size, buffers, of_part, add, workers, pace, .. } = self;
        for start in (0..piece.examples).step_by(GROUP) {
            let group = rows.slice(start..piece.examples.min(start + GROUP));
            let of_part = |buffers: &mut P, rows| of_part(buffers, Part::Stored(rows));
            each_chunk(&group, *size, *workers, &*buffers, of_part, &mut *add)?;
            pace.advance(group.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_sample_is_large_enough_and_small() {
        assert_eq!([1, 55].map(|dim| stride(dim, 500_000)), [Some(30); 2]);
        assert_eq!(stride(325, 500_000), Some(500_000 / (NUMBERS / 325)));
        // With 16 records for each feature it takes all the memory that it may.
        assert_eq!([512, 513].map(|dim| stride(dim, u64::MAX).is_some()), [true, false]);
        // An eighth of the records at most.
        assert_eq!([8, 7].map(|times| stride(3, times * RECORDS + 7)), [Some(8), None]);
        assert_eq!([0, 1].map(|n| stride(3, n)), [None; 2]);
        assert_eq!([stride(0, 1 << 20), stride(u64::MAX, u64::MAX)], [Some(64), None]);
        assert_eq!([sampled_numbers(55, 500_000), sampled_numbers(55, 100_000)], [2 * 55 * (500_000 / 30), 0]);
        assert!([1, 7, 55, 325, 512].iter().all(|dim| sampled_numbers(*dim, 123_456_789) <= 2 * NUMBERS * 9 / 8));
    }

    proptest! {
        /// Whatever blocks the records come in, the sample is the same: of each `stride` groups of neighbours one.
        #[test]
        fn one_group_of_each_stride_is_sampled(n in 0u64..20_000, stride in 8u64..50, cuts in prop::collection::vec(0u64..20_000, 0..9)) {
            let all: Vec<u64> = sampled(0..n, stride).flatten().collect();
            let mut cuts: Vec<u64> = cuts.into_iter().map(|cut| cut.min(n)).chain([0, n]).collect();
            cuts.sort_unstable();
            let in_blocks: Vec<u64> = cuts.windows(2).flat_map(|pair| sampled(pair[0]..pair[1], stride)).flatten().collect();
            prop_assert_eq!(&in_blocks, &all);
            prop_assert!(all.is_sorted_by(|a, b| a < b) && all.iter().all(|position| *position < n));
            for span in 0..n / (stride * NEIGHBOURS) {
                let within: Vec<u64> = all.iter().copied().filter(|i| i / (stride * NEIGHBOURS) == span).collect();
                prop_assert_eq!(within.len() as u64, NEIGHBOURS);
                prop_assert_eq!(within[0] % NEIGHBOURS, 0);
                prop_assert_eq!(within[NEIGHBOURS as usize - 1], within[0] + NEIGHBOURS - 1);
            }
        }
    }

    /// The places in a stride differ from one to the next, and all occur.
    #[test]
    fn places_have_no_period() {
        let places: Vec<u64> = sampled(0..8 * 16 * 1000, 16).map(|range| range.start / NEIGHBOURS % 16).collect();
        for place in 0..16 {
            let count = places.iter().filter(|found| **found == place).count();
            // Binomial with mean 62.5 and standard deviation 7.7.
            assert!((25..100).contains(&count), "{place}: {count}");
        }
        assert!((1..40).all(|period| places.windows(period + 1).any(|pair| pair[0] != pair[period])));
    }
}
