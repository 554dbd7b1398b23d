//! A portion of a source's records as a separate source.

#[cfg(test)]
mod tests;

use core::ops::DerefMut;

use dp_data::memory::{OutOfMemory, collect, reserve};
use dp_data::{
    Block, Description, KeyedOrder, PassReceipt, PassRequest, Reader, RowSource, RowStream, Selection, SourceError,
};

use crate::error::Error;

const ROWS: usize = 4096;
/// The name of the buffer in error messages.
const POSITIONS: &str = "the positions of a portion of the rows";

/// The records at given positions, in this order; a keyed pass permutes them like a source in memory.
///
/// Finishing it does not finish the underlying source: other portions are still to be read.
pub(super) struct Portion<'s, S> {
    source: S,
    positions: &'s [u32],
    /// The positions in the underlying source of the records requested last.
    asked: Vec<u32>,
}

impl<'s, S> Portion<'s, S> {
    pub(super) fn new(source: S, positions: &'s [u32]) -> Self {
        Self { source, positions, asked: Vec::new() }
    }

    /// Translates positions among these records to those in the underlying source.
    fn ask<F>(&mut self, positions: &[u32]) -> Result<(), SourceError>
    where
        S: DerefMut<Target: RowSource<F>>,
    {
        self.asked.clear();
        // The number of records of a random batch is secret.
        reserve(&mut self.asked, positions.len(), POSITIONS).map_err(OutOfMemory::without_sizes)?;
        for &position in positions {
            let Some(&at) = self.positions.get(position as usize) else {
                let engine = self.source.describe()?.engine;
                return Err(SourceError::Shape { engine, what: "positions lie beyond its last row" });
            };
            self.asked.push(at);
        }
        Ok(())
    }
}

/// Cuts the positions `0..n`, in a random order under `key`, into `portions` parts of equal length; remaining positions are in
/// none. Positions ascend within each part.
///
/// The parts depend on the key and on the number of records alone, so that neighbours share them.
pub(super) fn portions(n: u64, portions: usize, key: [u8; 32]) -> Result<Vec<Vec<u32>>, Error> {
    let n = u32::try_from(n).map_err(|_| Error::Count { name: "number of records", value: n, range: "below 2^32" })?;
    let length = n as usize / portions.max(1);
    let order = KeyedOrder::new(n, key, 0).positions()?;
    order
        .chunks_exact(length.max(1))
        .take(portions)
        .map(|portion| {
            let mut portion = collect(portion.iter().copied(), POSITIONS)?;
            portion.sort_unstable();
            Ok(portion)
        })
        .collect()
}

impl<F: 'static, S: DerefMut<Target: RowSource<F>>> RowSource<F> for Portion<'_, S> {
    fn describe(&mut self) -> Result<Description, SourceError> {
        Ok(Description { n: self.positions.len() as u64, ..self.source.describe()? })
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<F> + '_>, SourceError> {
        self.asked.clear();
        reserve(&mut self.asked, self.positions.len(), POSITIONS)?;
        match KeyedOrder::of_pass(self.positions.len() as u32, request) {
            None => self.asked.extend_from_slice(self.positions),
            Some(order) => self.asked.extend(order.positions()?.iter().map(|&i| self.positions[i as usize])),
        }
        Ok(Box::new(PortionPass { source: &mut *self.source, left: &self.asked, rows: 0 }))
    }

    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, F>, SourceError> {
        self.ask(positions)?;
        self.source.gather(&self.asked)
    }

    fn select<'a>(&'a mut self, positions: &'a [u32]) -> Result<Option<Selection<'a, F>>, SourceError> {
        self.ask(positions)?;
        self.source.select(&self.asked)
    }

    fn readers(&mut self, number: usize) -> Result<Option<Vec<Reader<'_, F>>>, SourceError> {
        let (readers, positions) = (self.source.readers(number)?, self.positions);
        let portion = |source| Box::new(Portion::new(source, positions)) as Reader<'_, F>;
        Ok(readers.map(|readers| readers.into_iter().map(portion).collect()))
    }
}

struct PortionPass<'a, S: ?Sized> {
    source: &'a mut S,
    left: &'a [u32],
    rows: u64,
}

impl<F, S: RowSource<F> + ?Sized> RowStream<F> for PortionPass<'_, S> {
    fn next_block(&mut self) -> Result<Option<Block<'_, F>>, SourceError> {
        let (now, later) = self.left.split_at(self.left.len().min(ROWS));
        if now.is_empty() {
            return Ok(None);
        }
        self.left = later;
        let block = self.source.gather(now)?;
        self.rows += block.len() as u64;
        Ok(Some(block))
    }

    fn receipt(self: Box<Self>) -> Result<PassReceipt, SourceError> {
        Ok(PassReceipt { rows: self.rows })
    }
}

/// A source that outlives its reader: [`finish`](RowSource::finish) is not forwarded.
pub(super) struct Unfinished<'s, F>(pub(super) &'s mut dyn RowSource<F>);

impl<F> RowSource<F> for Unfinished<'_, F> {
    fn describe(&mut self) -> Result<Description, SourceError> {
        self.0.describe()
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<F> + '_>, SourceError> {
        self.0.open_pass(request)
    }

    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, F>, SourceError> {
        self.0.gather(positions)
    }

    fn select<'a>(&'a mut self, positions: &'a [u32]) -> Result<Option<Selection<'a, F>>, SourceError> {
        self.0.select(positions)
    }

    fn readers(&mut self, number: usize) -> Result<Option<Vec<Reader<'_, F>>>, SourceError> {
        self.0.readers(number)
    }
}
