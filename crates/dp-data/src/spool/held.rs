//! Records of a file, in memory as far as there is room, otherwise in a spool.

use super::{Spool, SpoolOptions, SpoolWriter, unread};
use crate::block::Block;
use crate::encode::{CurveRows, Encoder, Encoding, LibsvmFormat, Stage, Stored, encode_coordinates};
use crate::error::{DataError, DataErrorKind};
use crate::examples::{Builder, Examples, OrderError, ShapeError};
use crate::memory::left;
use crate::read::{CsvOptions, CuratorWarning, Input, ReadRows, provisional, read};
use crate::source::{Order, PassRequest, RowSource, Unexpanded as _};
use crate::units::{Selected, UnitBound, select};
use crate::workers::Workers;

/// The memory for rows, and the place of rows that exceed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// Number of bytes.
    pub memory: u64,
    /// The place of rows that exceed the memory.
    pub spool: SpoolOptions,
}

impl Default for Room {
    /// Half of the memory that the system has left, to its knowledge; then the default [`SpoolOptions`].
    fn default() -> Self {
        Self { memory: left().map_or(u64::MAX, |bytes| bytes / 2), spool: SpoolOptions::default() }
    }
}

/// Rows in memory or in a spool, which are the same and come in the same order; or rows that stay where they are.
pub enum Held<F> {
    /// In memory.
    Memory(Examples<F>),
    /// In memory; features are computed when they are read.
    Curves(Box<CurveRows<F>>),
    /// In a temporary file.
    Spool(Box<Spool<F>>),
    /// A source that answers with sums over all its records, and their number.
    Elsewhere(Box<dyn RowSource<F>>, u64),
}

impl<F> core::fmt::Debug for Held<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Memory(_) => "Held::Memory",
            Self::Curves(_) => "Held::Curves",
            Self::Spool(_) => "Held::Spool",
            Self::Elsewhere(..) => "Held::Elsewhere",
        })
    }
}

impl<F: Stored> Held<F> {
    /// Reads a file with labels in the input format of `encoder`, and returns its rows with warnings for the curator. Rows that
    /// are spooled have the encoder's bounds. `options` are used for tables only.
    ///
    /// # Errors
    /// As [`load`](crate::read::load); `spool.*`.
    ///
    /// # Examples
    /// ```
    /// use dp_data::spool::{Held, Room, SpoolOptions};
    /// use dp_data::{Encoder, Encoding, Schema, read::Input};
    ///
    /// let schema = Schema::parse(
    ///     "toy.toml",
    ///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
    ///      columns.age = { type = 'numeric', min = 0, max = 100 }",
    /// )?;
    /// let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS)?;
    /// let table: String = (0..3000).map(|i| format!("{},yes\n", i % 100)).collect();
    /// let input = || Input::from_bytes("toy.csv", format!("age,y\n{table}").into_bytes());
    /// let room = |memory| Room { memory, spool: SpoolOptions::default() };
    /// let (some, _) = Held::<f64>::read(input(), &encoder, &Default::default(), &room(1 << 20))?;
    /// let (more, _) = Held::<f64>::read(input(), &encoder, &Default::default(), &room(1 << 10))?;
    /// assert!(matches!(some, Held::Memory(_)) && matches!(more, Held::Spool(_)));
    /// assert_eq!((some.len(), more.len()), (3000, 3000));
    /// # Ok::<(), dp_data::DataError>(())
    /// ```
    pub fn read(
        input: Input,
        encoder: &Encoder,
        options: &CsvOptions,
        room: &Room,
    ) -> Result<(Self, Vec<CuratorWarning>), DataError> {
        Self::read_units(input, encoder, options, room, None)
    }

    /// As [`read`](Self::read) for a table in which several rows belong to one unit, such as a patient. With a bound, at most
    /// that many rows of each unit are used, and null records fill up units with fewer. Without a bound, every row is a unit.
    ///
    /// # Errors
    /// As [`read`](Self::read); `csv.missing_column` for a file without the column.
    ///
    /// # Examples
    /// ```
    /// use dp_data::spool::Held;
    /// use dp_data::{Encoder, Encoding, Schema, UnitBound, read::Input};
    ///
    /// let schema = Schema::parse(
    ///     "toy.toml",
    ///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
    ///      columns.age = { type = 'numeric', min = 0, max = 100 }",
    /// )?;
    /// let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS)?;
    /// let input = Input::from_bytes("toy.csv", b"id,age,y\n7,40,yes\n8,20,no\n7,41,yes\n7,41,no\n".to_vec());
    /// let bound = UnitBound { column: "id".to_owned(), most: 2, key: [1; 32] };
    /// let (rows, _) = Held::<f64>::read_units(input, &encoder, &Default::default(), &Default::default(), Some(&bound))?;
    /// // Two rows of 7, the row of 8, and a null record.
    /// assert_eq!(rows.len(), 4);
    /// # Ok::<(), dp_data::DataError>(())
    /// ```
    pub fn read_units(
        input: Input,
        encoder: &Encoder,
        options: &CsvOptions,
        room: &Room,
        bound: Option<&UnitBound>,
    ) -> Result<(Self, Vec<CuratorWarning>), DataError> {
        Self::read_stage(input, encoder, options, Stage::Features, room, bound)
    }

    fn read_stage(
        input: Input,
        encoder: &Encoder,
        options: &CsvOptions,
        stage: Stage,
        room: &Room,
        bound: Option<&UnitBound>,
    ) -> Result<(Self, Vec<CuratorWarning>), DataError> {
        let (file, unit) = (input.name().to_owned(), bound.map(|bound| bound.column.as_str()));
        if let Some(label) = unit.filter(|unit| encoder.schema().is_some() && *unit == encoder.label().column) {
            return Err(DataError::new(
                DataErrorKind::SchemaLabel,
                format!("column `{label}` is the label and names no unit"),
            )
            .in_file(&file)
            .at_column(label)
            .expected("the column that names the unit of each row, such as the number of a patient"));
        }
        // The rows of the file and those of the units are there at the same time.
        let memory = if bound.is_some() { room.memory / 2 } else { room.memory };
        let room = &Room { memory, ..room.clone() };
        let mut shelf = Shelf::of_stage(encoder, stage, room);
        let ReadRows { loaded, units, .. } =
            read(input, encoder, options, stage, unit, &mut |rows| shelf.settle(rows))?;
        let (mut held, mut warnings) = (shelf.finish(loaded.examples)?, loaded.warnings);
        if let Some(bound) = bound {
            let selected = select(&units, bound).map_err(|error| error.in_file(&file))?;
            drop(units);
            held = held.selected(&selected, Shelf::of_stage(encoder, stage, room))?;
            warnings.extend(selected.warning);
            if held.is_empty() {
                return Err(DataError::new(DataErrorKind::CsvNoRows, "no row names a unit")
                    .in_file(&file)
                    .at_column(&bound.column)
                    .expected("the unit of each row, such as the number of a patient"));
            }
        }
        Ok((held, warnings))
    }

    /// Returns the records of all units.
    fn selected(self, selected: &Selected, mut shelf: Shelf<'_, F>) -> Result<Self, DataError> {
        let mut rows = Builder::new(shelf.dim, shelf.sparse, true)?;
        let mut whole = self;
        for slots in selected.slots.chunks(WRITTEN) {
            let positions: Vec<u32> = slots.iter().flatten().copied().collect();
            let gathered;
            let block = match &mut whole {
                Self::Memory(examples) => {
                    gathered = examples.gather(&positions).map_err(|error| match error {
                        OrderError::Memory(error) => DataError::from(error.without_sizes()),
                        error => DataError::of_table(&error.to_string()),
                    })?;
                    gathered.block()
                }
                Self::Curves(curves) => {
                    let (mut chosen, mut features) = (Builder::new(curves.dim(), false, true)?, Vec::new());
                    for position in positions.iter().map(|&position| position as usize) {
                        let row = curves.block(position..position + 1, &mut features);
                        // The number of records that were chosen is secret.
                        chosen.push_block(&row).map_err(|error| match error {
                            ShapeError::Memory(error) => ShapeError::Memory(error.without_sizes()),
                            error => error,
                        })?;
                    }
                    gathered = chosen.finish();
                    gathered.block()
                }
                Self::Spool(spool) => spool.gather(&positions).map_err(unread)?,
                Self::Elsewhere(source, _) => source.gather(&positions).map_err(unread)?,
            };
            let mut places = 0..block.len();
            for slot in slots {
                match slot.and_then(|_| places.next()) {
                    Some(place) => rows.push_block(&block.slice(place..place + 1))?,
                    None => rows.push_null()?,
                }
            }
            shelf.settle(&mut rows)?;
        }
        drop(whole);
        shelf.finish(rows.finish())
    }

    /// As [`read`](Self::read) for a libsvm file whose number of features may be unknown; also returns its encoder.
    ///
    /// # Errors
    /// As [`load_libsvm`](crate::read::load_libsvm); `spool.*`.
    ///
    /// # Privacy
    /// As [`load_libsvm`](crate::read::load_libsvm).
    pub fn read_libsvm(
        input: Input,
        format: &LibsvmFormat,
        encoding: Encoding,
        room: &Room,
    ) -> Result<(Encoder, Self, Vec<CuratorWarning>), DataError> {
        let encoder = Encoder::libsvm(provisional(format), encoding)?;
        let mut shelf = Shelf::of_stage(&encoder, Stage::Features, room);
        let ReadRows { loaded, widest, .. } =
            read(input, &encoder, &CsvOptions::default(), Stage::Features, None, &mut |rows| shelf.settle(rows))?;
        let mut held = shelf.finish(loaded.examples)?;
        if format.features.is_some() {
            return Ok((encoder, held, loaded.warnings));
        }
        let found = LibsvmFormat { features: Some(widest), features_from_data: true, ..format.clone() };
        let narrowed = Encoder::libsvm(found, encoding)?;
        let narrow = |rows: Examples<F>| rows.narrowed(narrowed.dim(), narrowed.intercept_index());
        let held = match held {
            Self::Memory(rows) => Self::Memory(narrow(rows)),
            Self::Curves(_) | Self::Spool(_) | Self::Elsewhere(..) => {
                let mut writer = Shelf::of_stage(&narrowed, Stage::Features, room).create()?;
                held.for_each_block(|block| Ok(writer.append(narrow(Examples::of_block(block)?))?))?;
                Self::Spool(Box::new(writer.finish()?))
            }
        };
        Ok((narrowed, held, loaded.warnings))
    }

    /// Returns the number of rows.
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(examples) => examples.len() as u64,
            Self::Curves(rows) => rows.len() as u64,
            Self::Spool(spool) => spool.len(),
            Self::Elsewhere(_, n) => *n,
        }
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Passes the rows to `each`, in their order of arrival.
    ///
    /// # Errors
    /// `spool.read`, and those of `each`.
    pub fn for_each_block(
        &mut self,
        mut each: impl FnMut(&Block<'_, F>) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let source: &mut dyn RowSource<F> = match self {
            Self::Memory(examples) => return each(&examples.block()),
            Self::Curves(rows) => {
                let mut features = Vec::new();
                return (0..rows.len())
                    .step_by(WRITTEN)
                    .try_for_each(|start| each(&rows.block(start..rows.len().min(start + WRITTEN), &mut features)));
            }
            Self::Spool(spool) => &mut **spool,
            Self::Elsewhere(source, _) => &mut **source,
        };
        let request = PassRequest { pass: 0, order: Order::Declared };
        let mut pass = source.open_pass(&request).map_err(unread)?;
        while let Some(block) = pass.next_block().map_err(unread)? {
            each(&block)?;
        }
        Ok(())
    }
}

/// Records before their feature map is chosen, in memory or in a spool: see [`Coordinates`](crate::encode::Coordinates).
#[derive(Debug)]
pub struct HeldCoordinates<F>(Held<F>);

impl<F: Stored> HeldCoordinates<F> {
    /// Reads a table with labels, and returns its records with warnings for the curator.
    ///
    /// # Errors
    /// As [`load_coordinates`](crate::read::load_coordinates); `spool.*`.
    pub fn read(
        input: Input,
        encoder: &Encoder,
        options: &CsvOptions,
        room: &Room,
    ) -> Result<(Self, Vec<CuratorWarning>), DataError> {
        Self::read_units(input, encoder, options, room, None)
    }

    /// As [`read`](Self::read) for a table in which several rows belong to one unit: see [`Held::read_units`].
    ///
    /// # Errors
    /// As there.
    pub fn read_units(
        input: Input,
        encoder: &Encoder,
        options: &CsvOptions,
        room: &Room,
        bound: Option<&UnitBound>,
    ) -> Result<(Self, Vec<CuratorWarning>), DataError> {
        let read = Held::read_stage(input, encoder, options, Stage::Coordinates, room, bound)?;
        Ok((Self(read.0), read.1))
    }

    /// Returns the number of records.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Encodes the records, as [`Coordinates::encode`](crate::encode::Coordinates::encode) does; several times, if wanted. If all
    /// features would fit into memory, curves are computed only when rows are read.
    ///
    /// # Errors
    /// As there; `spool.*`.
    pub fn encode(&mut self, encoder: &Encoder, workers: Workers, room: &Room) -> Result<Held<F>, DataError> {
        if let Held::Memory(coordinates) = &self.0
            && let Some(bytes) = encoder.row_bytes::<F>(Stage::Features)
            && bytes.saturating_mul(self.len()) <= room.memory
            && let Some(rows) = CurveRows::of_coordinates(&coordinates.block(), encoder, workers)?
        {
            return Ok(Held::Curves(Box::new(rows)));
        }
        let mut shelf = Shelf::of_stage(encoder, Stage::Features, room);
        let mut rows = Builder::new(encoder.dim(), encoder.prefers_sparse(), encoder.can_be_neutral())?;
        self.0.for_each_block(|block| {
            encode_coordinates(block, encoder, workers, &mut rows, |rows| shelf.settle(rows))
        })?;
        shelf.finish(rows.finish())
    }
}

/// Takes the rows that are read: they stay in memory until there is no room, and are then written.
struct Shelf<'r, F> {
    room: &'r Room,
    dim: usize,
    sparse: bool,
    bounds: (f64, f64),
    /// The size of a row as far as it is public: whether rows are spooled should not depend on what they hold.
    row_bytes: Option<u64>,
    writer: Option<SpoolWriter<F>>,
}

/// Number of rows that are written together.
const WRITTEN: usize = 1024;

impl<'r, F: Stored> Shelf<'r, F> {
    fn of_stage(encoder: &Encoder, stage: Stage, room: &'r Room) -> Self {
        let (dim, sparse) = encoder.shape_of(stage);
        let bounds = match stage {
            Stage::Coordinates => (f64::INFINITY, f64::INFINITY),
            Stage::Features => (encoder.row_bound(), encoder.target_bound()),
        };
        Self { room, dim, sparse, bounds, row_bytes: encoder.row_bytes::<F>(stage), writer: None }
    }

    fn create(&self) -> Result<SpoolWriter<F>, DataError> {
        let writer = SpoolWriter::create(&self.room.spool, self.dim, self.sparse)?;
        Ok(writer.with_bounds(self.bounds.0, self.bounds.1))
    }

    fn settle(&mut self, rows: &mut Builder<F>) -> Result<(), DataError> {
        match &mut self.writer {
            Some(_) if rows.len() < WRITTEN => {}
            Some(writer) => writer.append(rows.take()?)?,
            None if self.row_bytes.map_or_else(|| rows.bytes(), |bytes| bytes * rows.len() as u64)
                > self.room.memory =>
            {
                let mut writer = self.create()?;
                writer.append(rows.take()?)?;
                self.writer = Some(writer);
            }
            None => {}
        }
        Ok(())
    }

    fn finish(self, left: Examples<F>) -> Result<Held<F>, DataError> {
        let Some(mut writer) = self.writer else { return Ok(Held::Memory(left)) };
        writer.append(left)?;
        Ok(Held::Spool(Box::new(writer.finish()?)))
    }
}

#[cfg(test)]
mod tests;
