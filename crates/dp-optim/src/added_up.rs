//! A source that answers with sums only, for tests and audits of training on another engine's sums.

use dp_data::sums::{IntegerSums, SumRequest, SumSource};
use dp_data::{Description, Examples, PassRequest, RowSource, RowStream, SourceError};

use crate::engine::rows::copy_row;

const ENGINE: &str = "added-up";

/// Records in memory, in place of an engine that keeps its rows: it adds up in doubles, and returns no row.
pub struct AddedUp {
    examples: Examples<f64>,
    row_norm: f64,
    target_bound: f64,
}

impl AddedUp {
    /// Keeps records whose rows and targets are within these bounds.
    pub fn new(examples: Examples<f64>, row_norm: f64, target_bound: f64) -> Self {
        Self { examples, row_norm, target_bound }
    }
}

impl RowSource<f64> for AddedUp {
    fn describe(&mut self) -> Result<Description, SourceError> {
        let Self { examples, row_norm, target_bound } = self;
        let (n, dim) = (examples.len() as u64, examples.dim());
        Ok(Description { n, dim, row_norm: *row_norm, target_bound: *target_bound, engine: ENGINE })
    }

    fn open_pass(&mut self, _: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        Err(SourceError::SumsOnly { engine: ENGINE })
    }

    fn sums(&mut self) -> Option<&mut dyn SumSource> {
        Some(self)
    }
}

impl SumSource for AddedUp {
    fn sums(&mut self, request: &SumRequest<'_>) -> Result<IntegerSums, SourceError> {
        let block = self.examples.block();
        let (mut steps, mut row) = (vec![0; request.kind.numbers(block.dim())], vec![0.0; block.dim()]);
        for (i, &target) in block.targets.iter().enumerate() {
            if block.valid.is_none_or(|valid| valid.get(i) == Some(&true)) {
                copy_row(&block.rows, i, &mut row);
                request.add(&row, target, &mut steps);
            }
        }
        Ok(IntegerSums { records: block.len() as u64, steps })
    }
}
