//! Noisy sums of batches of rows, which may come in pieces.

use core::ops::Range;

use dp_accountant::Adjacency;
use dp_data::{Block, BlockBuffer, OutOfMemory, Selection, Workers};
use dp_losses::{Differences, Model};
use dp_mechanisms::ReleaseRng;
use nalgebra::RealField;

use super::{Between, NoisyGradient, set_squared_norms};
use crate::engine::batches::{Piece, Pieces};
use crate::engine::chunks::{Divided, each_chunk, workers_for};
use crate::engine::gradient::GradientEstimate;
use crate::engine::rows::gathered;
use crate::engine::step_batches::Driven;
use crate::error::Error;

impl<F, M, A, R> NoisyGradient<'_, F, M, A, R>
where
    F: RealField + Copy,
    M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    A: Adjacency,
    R: ReleaseRng + ?Sized,
{
    /// Adds the gradients of rows of the step's batch, which may be many microbatches; several threads sum those of many rows.
    /// Selected rows are copied microbatch by microbatch: into `buffer`, or by each thread into its own.
    ///
    /// Null records are omitted before the batch is cut into microbatches, so that a drawn null record leaves the same bits as
    /// one that is not drawn. Amplification by sampling requires this: with a null record in a neighbour, the sum has one
    /// distribution, not two that differ by the boundaries of the microbatches. For the same reason the boundaries do not
    /// depend on the pieces in which the batch comes.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(super) fn add_rows(
        &mut self,
        model: &M,
        parameters: &[F],
        rows: &BatchRows<'_, F>,
        buffer: &mut BlockBuffer<F>,
        ends: bool,
    ) -> Result<(), Error> {
        self.each_microbatch(rows, buffer, ends, |gradient, rows, buffer| {
            gradient.add_microbatches(model, parameters, rows, buffer)
        })
    }

    /// As [`add_differences`](Self::add_differences), for rows cut as in [`add_rows`](Self::add_rows).
    ///
    /// # Errors
    /// As [`add_differences`](Self::add_differences).
    pub(crate) fn add_differences_of_rows(
        &mut self,
        model: &M,
        between: Between<'_, F>,
        there: &mut M::Pass,
        rows: Block<'_, F>,
        ends: bool,
    ) -> Result<(), Error>
    where
        M: Differences<F>,
    {
        self.each_microbatch(&BatchRows::Block(rows), &mut BlockBuffer::default(), ends, |gradient, rows, buffer| {
            gradient.each_piece(rows, buffer, |gradient, piece| {
                gradient.add_differences(model, between, there, piece, piece.len())
            })
        })
    }

    /// Passes the rows that count to `add`, as whole microbatches of the step's batch. The rest is kept for the next rows of the
    /// batch; where the batch ends, it is the last microbatch.
    fn each_microbatch(
        &mut self,
        rows: &BatchRows<'_, F>,
        buffer: &mut BlockBuffer<F>,
        ends: bool,
        mut add: impl FnMut(&mut Self, &BatchRows<'_, F>, &mut BlockBuffer<F>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut positions = core::mem::take(&mut self.positions);
        let mut carry = core::mem::take(&mut self.carry);
        let (rows, microbatch) = (rows.valid(&mut positions)?, self.microbatch);
        let (length, mut start) = (rows.rows(), 0);
        if carry.rows() > 0 {
            start = length.min(microbatch - carry.rows());
            rows.part(0..start).append_to(&mut carry)?;
            if ends || carry.rows() == microbatch {
                add(self, &BatchRows::Block(carry.block(rows.dim())), buffer)?;
                carry.clear();
            }
        }
        let whole = if ends { length } else { start + (length - start) / microbatch * microbatch };
        if start < whole {
            add(self, &rows.part(start..whole), buffer)?;
        }
        if whole < length {
            rows.part(whole..length).append_to(&mut carry)?;
        }
        (self.positions, self.carry) = (positions, carry);
        Ok(())
    }

    /// Adds the gradients of rows that all count, from the start of a microbatch on.
    fn add_microbatches(
        &mut self,
        model: &M,
        parameters: &[F],
        rows: &BatchRows<'_, F>,
        buffer: &mut BlockBuffer<F>,
    ) -> Result<(), Error> {
        if rows.rows() <= self.microbatch || workers_for(rows, self.workers) == Workers::ONE {
            return self
                .each_piece(rows, buffer, |gradient, piece| gradient.add(model, parameters, piece, piece.len()));
        }
        let (microbatch, microbatches) = (self.microbatch, self.sum.microbatches());
        let buffers = || (model.pass(microbatch), Vec::new(), Vec::new(), BlockBuffer::default());
        let of_chunk = |(pass, squared_norms, coefficients, buffer): &mut (M::Pass, Vec<F>, Vec<F>, BlockBuffer<F>),
                        piece: BatchRows<'_, F>| {
            let piece = piece.block(buffer)?;
            model.forward(parameters, piece, pass);
            model.backward(parameters, piece, pass);
            set_squared_norms(model, piece, piece.len(), microbatches.clips(), pass, squared_norms);
            Ok::<_, Error>(microbatches.sum(squared_norms, coefficients, |coefficients, sum| {
                model.add_weighted_in_double(piece, pass, coefficients, sum);
            }))
        };
        let chunks = (microbatch, model.parameters());
        each_chunk(rows, chunks, self.workers, buffers, of_chunk, |part| Ok(self.sum.append(part??)?))
    }

    /// Passes rows that all count to `add`, microbatch by microbatch.
    fn each_piece(
        &mut self,
        rows: &BatchRows<'_, F>,
        buffer: &mut BlockBuffer<F>,
        mut add: impl FnMut(&mut Self, Block<'_, F>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for start in (0..rows.rows()).step_by(self.microbatch.max(1)) {
            let piece = rows.part(start..rows.rows().min(start.saturating_add(self.microbatch)));
            add(self, piece.block(buffer)?)?;
        }
        Ok(())
    }
}

/// Rows of a batch, which a model reads one microbatch at a time.
#[derive(Clone, Copy)]
pub(super) enum BatchRows<'a, F> {
    Block(Block<'a, F>),
    Selected(Selection<'a, F>),
}

impl<'a, F: Copy> BatchRows<'a, F> {
    fn dim(&self) -> usize {
        match self {
            Self::Block(block) => block.dim(),
            Self::Selected(rows) => rows.dim(),
        }
    }

    /// Returns those that count; `positions` is used if some do not.
    fn valid<'b>(&self, positions: &'b mut Vec<u32>) -> Result<BatchRows<'b, F>, OutOfMemory>
    where
        'a: 'b,
    {
        match self {
            Self::Block(block) => Ok(match block.valid(positions)? {
                None => BatchRows::Block(*block),
                Some(rows) => BatchRows::Selected(rows),
            }),
            Self::Selected(rows) => rows.valid(positions).map(BatchRows::Selected),
        }
    }

    /// Returns them as a block; selected rows are copied into `buffer`.
    fn block<'b>(&'b self, buffer: &'b mut BlockBuffer<F>) -> Result<Block<'b, F>, OutOfMemory> {
        match self {
            Self::Block(block) => Ok(*block),
            Self::Selected(rows) => gathered(rows, buffer),
        }
    }

    fn append_to(&self, buffer: &mut BlockBuffer<F>) -> Result<(), OutOfMemory> {
        match self {
            Self::Block(block) => buffer.push(block),
            Self::Selected(rows) => (0..rows.len()).try_for_each(|i| buffer.push(&rows.example(i))),
        }
    }
}

impl<F: Copy + Sync> Divided for BatchRows<'_, F> {
    fn rows(&self) -> usize {
        match self {
            Self::Block(block) => block.rows(),
            Self::Selected(rows) => rows.rows(),
        }
    }

    fn entries(&self) -> usize {
        match self {
            Self::Block(block) => block.entries(),
            Self::Selected(rows) => rows.entries(),
        }
    }

    fn part(&self, range: Range<usize>) -> Self {
        match self {
            Self::Block(block) => Self::Block(block.part(range)),
            Self::Selected(rows) => Self::Selected(rows.part(range)),
        }
    }
}

impl<F, M, A, R> GradientEstimate<F, M> for NoisyGradient<'_, F, M, A, R>
where
    F: RealField + Copy,
    M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    A: Adjacency,
    R: ReleaseRng + ?Sized,
{
    fn begin(&mut self, driven: &Driven<'_>) -> Result<(), Error> {
        if self.sum.is_in_float() {
            let why = "rows are summed in double precision";
            return Err(Error::NotProved { recipe: "noise in every step", why });
        }
        self.begin_run(driven)
    }

    fn end(&mut self) {
        self.end_run();
    }

    fn pieces(&self) -> Pieces {
        Pieces::MultiplesOf(1)
    }

    #[inline]
    fn estimate(
        &mut self,
        model: &M,
        parameters: &[F],
        batch: Block<'_, F>,
        piece: Piece,
        sum: &mut [F],
    ) -> Result<(), Error> {
        self.expect_driven()?;
        self.add_rows(model, parameters, &BatchRows::Block(batch), &mut BlockBuffer::default(), piece.ends)?;
        if piece.ends { self.release(sum) } else { Ok(()) }
    }

    fn estimate_selected(
        &mut self,
        model: &M,
        parameters: &[F],
        rows: &Selection<'_, F>,
        buffer: &mut BlockBuffer<F>,
        piece: Piece,
        sum: &mut [F],
    ) -> Result<(), Error> {
        self.expect_driven()?;
        self.add_rows(model, parameters, &BatchRows::Selected(*rows), buffer, piece.ends)?;
        if piece.ends { self.release(sum) } else { Ok(()) }
    }
}
