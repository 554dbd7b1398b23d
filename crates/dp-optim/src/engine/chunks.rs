//! Chunks of rows, computed by several threads and used in the order of the rows.

use core::ops::Range;

use dp_data::{Block, Rows, Selection, Unexpanded, Workers};

use crate::error::Error;

/// Maximum number of numbers in results that wait for their turn: 16 MiB, in few long results 512 MiB.
const WAITING_NUMBERS: usize = 1 << 21;
const WAITING_NUMBERS_OF_FEW: usize = 1 << 26;
/// Number of results that are few.
const FEW: usize = 16;

/// Number of stored entries from which more than one thread is worth starting: about 0.2 ms of work.
const ENTRIES_FOR_THREADS: usize = 1 << 18;

/// About as many numbers are in near rows: 128 KiB in double precision. Their number is a multiple of `LEAST_NEAR`.
const NEAR: usize = 1 << 14;
const LEAST_NEAR: usize = 64;

/// Rows that are divided among threads.
pub(super) trait Divided: Copy + Sync {
    /// Returns the number of rows.
    fn rows(&self) -> usize;

    /// Returns the approximate number of stored entries whose computation takes as long.
    fn entries(&self) -> usize;

    /// Returns the rows of a range.
    fn part(&self, range: Range<usize>) -> Self;
}

impl<F: Copy + Sync> Divided for Block<'_, F> {
    fn rows(&self) -> usize {
        self.len()
    }

    fn entries(&self) -> usize {
        match self.rows {
            Rows::Dense { values, .. } => values.len(),
            Rows::Sparse { offsets, .. } => offsets.last().zip(offsets.first()).map_or(0, |(end, start)| end - start),
        }
    }

    fn part(&self, range: Range<usize>) -> Self {
        self.slice(range)
    }
}

impl<F: Copy + Sync> Divided for Selection<'_, F> {
    fn rows(&self) -> usize {
        self.len()
    }

    fn entries(&self) -> usize {
        // Rows from random places take several times as long as rows in order.
        self.len().saturating_mul(4 * self.stored_features())
    }

    fn part(&self, range: Range<usize>) -> Self {
        self.slice(range)
    }
}

/// Records whose features are [computed when they are read](Unexpanded).
#[derive(Clone, Copy)]
pub(super) struct UnexpandedPart<'a, F> {
    rows: &'a dyn Unexpanded<F>,
    start: usize,
    len: usize,
}

impl<'a, F> UnexpandedPart<'a, F> {
    /// Takes all records.
    pub(super) fn all(rows: &'a dyn Unexpanded<F>) -> Self {
        Self { rows, start: 0, len: rows.len() }
    }
}

impl<F: Copy> Divided for UnexpandedPart<'_, F> {
    fn rows(&self) -> usize {
        self.len
    }

    fn entries(&self) -> usize {
        self.len.saturating_mul(self.rows.dim())
    }

    fn part(&self, range: Range<usize>) -> Self {
        Self { start: self.start + range.start, len: range.len(), ..*self }
    }
}

/// Rows of a part, stored or with features that are computed when they are asked for.
pub(super) enum Part<'a, 'b, F> {
    Stored(Block<'a, F>),
    Unexpanded(UnexpandedPart<'a, F>, &'b mut Vec<F>),
}

impl<F: Copy> Part<'_, '_, F> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Stored(block) => block.len(),
            Self::Unexpanded(part, _) => part.len,
        }
    }

    /// Returns the rows of a range.
    pub(super) fn block(&mut self, range: Range<usize>) -> Block<'_, F> {
        match self {
            Self::Stored(block) => block.slice(range),
            Self::Unexpanded(part, features) => {
                part.rows.block(part.start + range.start..part.start + range.end, features)
            }
        }
    }

    /// Returns the number of rows that are near in a cache when they are read again. Depends on the shape of the rows only, not on
    /// how they are stored.
    pub(super) fn near(&self) -> usize {
        let dim = match self {
            Self::Stored(Block { rows: Rows::Sparse { .. }, .. }) => return usize::MAX,
            Self::Stored(block) => block.dim(),
            Self::Unexpanded(part, _) => part.rows.dim(),
        };
        (NEAR / dim.max(1)).max(1).next_multiple_of(LEAST_NEAR)
    }
}

/// Returns the workers for some rows: one if they are few.
pub(super) fn workers_for(rows: &impl Divided, workers: Workers) -> Workers {
    if rows.entries() < ENTRIES_FOR_THREADS { Workers::ONE } else { workers }
}

/// Computes `of_chunk` for each `chunk` rows on the workers, and passes the results, of `numbers` numbers each, to `add` in the
/// order of the rows. No bit depends on the number of threads.
///
/// # Errors
/// The first error of `add`.
pub(super) fn each_chunk<R: Divided, P, T: Send>(
    rows: &R,
    (chunk, numbers): (usize, usize),
    workers: Workers,
    buffers: impl Fn() -> P + Sync,
    of_chunk: impl Fn(&mut P, R) -> T + Sync,
    add: impl FnMut(T) -> Result<(), Error>,
) -> Result<(), Error> {
    let workers = workers_for(rows, workers);
    let chunk = chunk.max(1);
    let of_chunk = |buffers: &mut P, position: usize| {
        let start = position * chunk;
        of_chunk(buffers, rows.part(start..rows.rows().min(start.saturating_add(chunk))))
    };
    let numbers = numbers.max(1);
    let waiting = (WAITING_NUMBERS / numbers).max(FEW.min(WAITING_NUMBERS_OF_FEW / numbers));
    workers.for_each(0..rows.rows().div_ceil(chunk), waiting, buffers, of_chunk, add)
}

#[cfg(test)]
mod tests {
    use dp_data::Examples;

    use super::*;

    /// Dense and sparse rows, results so long that only one or two wait, a last chunk that is short: every chunk comes once, in
    /// order, and an error ends the computation.
    #[test]
    fn chunks_come_in_order() {
        let (n, dim) = (1000, 300);
        let targets: Vec<f64> = (0..n).map(f64::from).collect();
        let dense = Examples::dense(vec![0.0; n as usize * dim], targets.clone(), dim).unwrap();
        let offsets = (0..=n as usize).map(|i| i * dim).collect();
        let indices = (0..n as usize * dim).map(|k| (k % dim) as u32).collect();
        let sparse = Examples::sparse(offsets, indices, vec![1.0; n as usize * dim], targets.clone(), dim).unwrap();
        for block in [dense.block(), sparse.block()] {
            let three = Workers::new(3.try_into().unwrap());
            assert_eq!((workers_for(&block, three), workers_for(&block.slice(3..800), three)), (three, Workers::ONE));
            let few = [(64, WAITING_NUMBERS + 1), (64, WAITING_NUMBERS_OF_FEW / 2)];
            let many = [(64, 1), (64, WAITING_NUMBERS / 2), (64, usize::MAX), (2000, 1), (0, 1)];
            for (chunk, numbers) in few.into_iter().chain(many) {
                let mut seen = Vec::new();
                let of_chunk = |(): &mut (), chunk: Block<'_, f64>| chunk.targets.to_vec();
                let add = |targets: Vec<f64>| {
                    assert!(targets.len() <= chunk.max(1));
                    seen.extend(targets);
                    Ok(())
                };
                each_chunk(&block, (chunk, numbers), three, || (), of_chunk, add).unwrap();
                assert_eq!(seen, targets);
            }
            let mut left = 2;
            let add = |_: ()| {
                left -= 1;
                if left == 0 { Err(Error::Interrupted) } else { Ok(()) }
            };
            assert!(each_chunk(&block, (64, 1), three, || (), |(), _| (), add).is_err() && left == 0);
        }
    }
}
