//! Encoding of one record: from its cells to coordinates, and from these to features of bounded norm.

#[cfg(feature = "files")]
use super::Inspected;
use super::plan::CellOutcome;
use super::{Cell, Encoder, RowBuffer, bound_norm};
use crate::error::DataError;
#[cfg(feature = "files")]
use crate::error::DataErrorKind;

impl Encoder {
    /// Encodes one record of a table: `cell(i)` is its cell for column `i` of the schema, as text or with a type. It does not
    /// allocate once the buffer has its size.
    ///
    /// # Errors
    /// `csv.bad_number`, `csv.missing_value`, `csv.unknown_category`, `label.unknown` or `label.missing`, with the column, if the
    /// schema says `error`.
    pub fn encode_row<'c, C: Into<Cell<'c>>>(
        &self,
        cell: impl Fn(usize) -> C,
        label: Option<C>,
        row: &mut RowBuffer,
    ) -> Result<(), DataError> {
        self.encode_coordinates(cell, label, row)?;
        self.finish_features(row);
        Ok(())
    }

    /// Encodes one record of a table, without map, projection, intercept and norm bound.
    pub(crate) fn encode_coordinates<'c, C: Into<Cell<'c>>>(
        &self,
        cell: impl Fn(usize) -> C,
        label: Option<C>,
        row: &mut RowBuffer,
    ) -> Result<(), DataError> {
        let neutral = self.encode_cells(cell, row)?;
        self.encode_label(label.map(Into::into), neutral, row)
    }

    /// Encodes one record of a table as far as `stage`.
    #[cfg(feature = "files")]
    pub(crate) fn encode_stage<'c, C: Into<Cell<'c>>>(
        &self,
        stage: Stage,
        cell: impl Fn(usize) -> C,
        label: Option<C>,
        row: &mut RowBuffer,
    ) -> Result<(), DataError> {
        match stage {
            Stage::Coordinates => self.encode_coordinates(cell, label, row),
            Stage::Features => self.encode_row(cell, label, row),
        }
    }

    /// Encodes the cells of one record as coordinates, and returns whether one of them makes it a null record.
    fn encode_cells<'c, C: Into<Cell<'c>>>(
        &self,
        cell: impl Fn(usize) -> C,
        row: &mut RowBuffer,
    ) -> Result<bool, DataError> {
        row.prepare(self.columns.len());
        let mut neutral = false;
        for (position, plan) in self.columns.iter().enumerate() {
            // Whether a record is refused must not depend on its other cells, so a null record is read to its end.
            if plan.width() > 0 {
                neutral |= self.encode_cell(position, cell(position).into(), row)?;
            }
        }
        Ok(neutral)
    }

    /// Encodes a cell of the column at this position, and returns whether it makes its record a null record.
    #[inline(always)]
    pub(super) fn encode_cell(&self, position: usize, cell: Cell<'_>, row: &mut RowBuffer) -> Result<bool, DataError> {
        match self.columns[position].encode(cell, row, position) {
            CellOutcome::Encoded => Ok(false),
            CellOutcome::Neutral => Ok(true),
            CellOutcome::Refused(kind) => Err(self.refuse_cell(kind, position, cell)),
        }
    }

    /// Returns what becomes of a cell of the column at this position.
    #[cfg(feature = "files")]
    pub(crate) fn inspect(&self, position: usize, cell: Cell<'_>) -> Inspected {
        self.columns[position].inspect(cell)
    }

    /// Returns what becomes of a label.
    #[cfg(feature = "files")]
    pub(crate) fn inspect_label(&self, cell: Cell<'_>) -> Inspected {
        self.label.inspect(cell)
    }

    /// Refuses a libsvm line that does not begin with a label: otherwise a file of another format would get scores. Whether a
    /// required label is a declared one is checked when it is encoded.
    #[cfg(feature = "files")]
    pub(crate) fn check_libsvm_label(&self, part: &[u8], needed: bool) -> Result<(), DataError> {
        if self.label.may_be(part, needed) {
            return Ok(());
        }
        Err(DataError::new(DataErrorKind::LibsvmSyntax, "a line does not begin with a label")
            .found_cell(part)
            .expected("label index:value index:value ..., the label a number or a declared class")
            .help("check that this is a libsvm file; where labels are not known, put any number"))
    }

    /// Adds label, projection, intercept and norm bound to the features collected in `row`.
    #[cfg(feature = "files")]
    pub(crate) fn finish_row(&self, label: Option<Cell<'_>>, row: &mut RowBuffer) -> Result<(), DataError> {
        self.encode_label(label, false, row)?;
        self.finish_features(row);
        Ok(())
    }

    /// Adds the target; a neutral record, or one with a neutral label, becomes null.
    pub(super) fn encode_label(
        &self,
        label: Option<Cell<'_>>,
        mut neutral: bool,
        row: &mut RowBuffer,
    ) -> Result<(), DataError> {
        let mut target = None;
        if let Some(cell) = label {
            target = self.label.target(cell, row.label_tally_mut()).map_err(|kind| self.refuse_label(kind, cell))?;
            neutral |= target.is_none();
        }
        if neutral {
            row.make_null();
        } else {
            row.set_target(target);
        }
        Ok(())
    }

    /// Turns coordinates into features of bounded norm, unless the record is null.
    pub(super) fn finish_features(&self, row: &mut RowBuffer) {
        if row.is_null() {
            return;
        }
        if let Some(map) = &self.map {
            map.apply(row);
        }
        if let Some(projection) = &self.projection {
            projection.apply(row);
        }
        if self.encoding.intercept > 0.0 {
            row.push(self.dim as u32 - 1, self.encoding.intercept);
        }
        bound_norm(row.values_mut(), self.encoding.row_norm);
    }
}

/// The extent of the encoding of records.
#[cfg(feature = "files")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Stage {
    /// Without map, projection, intercept and norm bound.
    Coordinates,
    /// As features of bounded norm.
    Features,
}
