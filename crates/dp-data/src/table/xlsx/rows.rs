//! The rows of a sheet that are not empty.

use std::fs::File;
use std::io::BufReader;

use calamine::{DataRef, XlsxCellReader};

use super::region::Region;
use super::{Workbook, damaged};
use crate::error::{DataError, DataErrorKind};

/// A cell, and its column in the sheet.
pub(super) struct SheetCell<'a> {
    pub(super) column: u32,
    pub(super) value: DataRef<'a>,
    pub(super) has_formula: bool,
}

impl SheetCell<'_> {
    /// Returns whether it shows nothing.
    pub(super) fn is_blank(&self) -> bool {
        match &self.value {
            DataRef::Empty => !self.has_formula,
            DataRef::String(text) => text.trim().is_empty(),
            DataRef::SharedString(text) => text.trim().is_empty(),
            _ => false,
        }
    }
}

/// The rows of a region that are not empty, in their order.
pub(super) struct SheetRows<'a> {
    cells: XlsxCellReader<'a, BufReader<File>>,
    region: Region,
    /// The first cell of the next row.
    ahead: Option<(u32, SheetCell<'a>)>,
}

impl<'a> SheetRows<'a> {
    pub(super) fn new(workbook: &'a mut Workbook, sheet: &str, region: &Region) -> Result<Self, DataError> {
        let cells = workbook.worksheet_cells_reader(sheet).map_err(|error| damaged(&error))?;
        let mut rows = Self { cells, region: region.clone(), ahead: None };
        rows.ahead = rows.next_cell()?;
        Ok(rows)
    }

    /// Reads the next row with a cell that is not blank; returns its number from 0, or `None` at the end. Its cells are in the
    /// order of their columns, without some or all of those that are empty.
    pub(super) fn next_row(&mut self, cells: &mut Vec<SheetCell<'a>>) -> Result<Option<u32>, DataError> {
        while let Some((row, first)) = self.ahead.take() {
            cells.clear();
            cells.push(first);
            loop {
                self.ahead = self.next_cell()?;
                let is_ordered = match &self.ahead {
                    Some((next, cell)) if *next == row => cells.last().is_none_or(|last| last.column < cell.column),
                    Some((next, _)) => *next > row,
                    None => true,
                };
                if !is_ordered {
                    let message = "the sheet cannot be read to its end: its cells are not in order";
                    return Err(DataError::new(DataErrorKind::TableRead, message).at_line(u64::from(row) + 1));
                }
                match self.ahead.take_if(|(next, _)| *next == row) {
                    Some((_, cell)) => cells.push(cell),
                    None => break,
                }
            }
            // Formats can make cells of blanks.
            while cells.last().is_some_and(SheetCell::is_blank) {
                cells.pop();
            }
            let blank = cells.iter().take_while(|cell| cell.is_blank()).count();
            cells.drain(..blank);
            if !cells.is_empty() {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Returns the next cell of the region, with its row.
    fn next_cell(&mut self) -> Result<Option<(u32, SheetCell<'a>)>, DataError> {
        while let Some(cell) = self.cells.next_cell_with_formula_metadata().map_err(|error| damaged(&error))? {
            let (row, column) = cell.pos;
            if !(Region::WHOLE.rows.contains(&row) && Region::WHOLE.columns.contains(&column)) {
                // A number that is too large may also have wrapped around.
                let message = "the sheet cannot be read to its end: a cell is beyond the last row or column";
                return Err(DataError::new(DataErrorKind::TableRead, message));
            }
            if self.region.rows.contains(&row) && self.region.columns.contains(&column) {
                return Ok(Some((row, SheetCell { column, value: cell.value, has_formula: cell.formula.is_some() })));
            }
        }
        Ok(None)
    }
}
