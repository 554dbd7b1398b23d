//! Records of a table in memory before their feature map is chosen.

use super::{Encoder, RowBuffer, Stage, Stored, is_sparse};
use crate::block::{Block, Rows};
use crate::error::{DataError, DataErrorKind};
use crate::examples::{Builder, Examples};
use crate::workers::Workers;

/// Number of features that a thread encodes at a time: at most 128 KiB.
const NUMBERS_OF_A_PART: usize = 1 << 14;

/// Number of records that one thread encodes before they may be taken elsewhere.
const ROWS_OF_A_PART: usize = 1024;

/// Parts of each thread that wait to be appended.
const PARTS_AHEAD: usize = 4;

/// Records with one number per numeric column and indicator, and one per category: the input of a feature map.
///
/// The map can thus be chosen by the number of records, which is public, although the file is read once. Rows have no
/// intercept, and their norm is **not** bounded: [`encode`](Self::encode) makes examples of them.
///
/// # Examples
/// ```
/// use dp_data::encode::{Encoder, Encoding, FeatureMap};
/// use dp_data::{Schema, Workers, read};
///
/// let schema = Schema::parse(
///     "toy.toml",
///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
///      columns.age = { type = 'numeric', min = 0, max = 100 }",
/// )?;
/// let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS)?;
/// let input = read::Input::from_bytes("toy.csv", b"age,y\n0,no\n100,yes\n".to_vec());
/// let (coordinates, _) = read::load_coordinates::<f64>(input, &encoder, &Default::default())?;
/// let cosines = coordinates.len() as u32; // chosen by the number of records
/// let encoder = encoder.with_map(FeatureMap { cosines, ..FeatureMap::LINEAR })?;
/// let examples = coordinates.encode(&encoder, Workers::ONE)?;
/// assert_eq!((examples.len(), examples.dim()), (2, 3));
/// # Ok::<(), dp_data::DataError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Coordinates<F> {
    rows: Examples<F>,
}

impl<F: Stored> Coordinates<F> {
    pub(crate) fn new(rows: Examples<F>) -> Self {
        Self { rows }
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Encodes the records by an encoder that differs from the reading one in its map and its Fourier features only. In double
    /// precision, the rows equal those of [`Encoder::encode_row`] bit by bit, with any number of threads.
    ///
    /// # Errors
    /// `schema.columns` for an encoder of other columns; `memory.exhausted`.
    pub fn encode(self, encoder: &Encoder, workers: Workers) -> Result<Examples<F>, DataError> {
        let block = self.rows.block();
        let mut rows = Builder::new(encoder.dim(), encoder.prefers_sparse(), block.valid.is_some())?;
        encode_coordinates(&block, encoder, workers, &mut rows, |_| Ok(()))?;
        Ok(rows.finish())
    }
}

/// Encodes coordinates and adds them to `rows`; after each part `settle` may take them elsewhere.
///
/// # Errors
/// As [`Coordinates::encode`], and those of `settle`.
pub(crate) fn encode_coordinates<F: Stored>(
    block: &Block<'_, F>,
    encoder: &Encoder,
    workers: Workers,
    rows: &mut Builder<F>,
    mut settle: impl FnMut(&mut Builder<F>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    if block.dim() != encoder.coordinates() {
        let message = format!("records with {} coordinates, an encoder of {}", block.dim(), encoder.coordinates());
        return Err(DataError::new(DataErrorKind::SchemaColumns, message));
    }
    if workers == Workers::ONE {
        let mut row = RowBuffer::new(encoder);
        for start in (0..block.len()).step_by(ROWS_OF_A_PART) {
            let part = block.slice(start..block.len().min(start + ROWS_OF_A_PART));
            encode_block(&part, encoder, &mut row, rows)?;
            settle(rows)?;
        }
        return Ok(());
    }
    let of_part = (NUMBERS_OF_A_PART / encoder.dim()).max(1);
    let part = |row: &mut RowBuffer, position: usize| {
        let start = position * of_part;
        let mut rows = Builder::new(encoder.dim(), encoder.prefers_sparse(), block.valid.is_some())?;
        encode_block(&block.slice(start..block.len().min(start + of_part)), encoder, row, &mut rows)?;
        Ok::<_, DataError>(rows)
    };
    let (parts, ahead) = (block.len().div_ceil(of_part), PARTS_AHEAD * workers.threads());
    workers.for_each(
        0..parts,
        ahead,
        || RowBuffer::new(encoder),
        part,
        |part| {
            rows.append(part?)?;
            settle(rows)
        },
    )
}

/// Encodes the records of a block and adds them to `rows`.
fn encode_block<F: Stored>(
    block: &Block<'_, F>,
    encoder: &Encoder,
    row: &mut RowBuffer,
    rows: &mut Builder<F>,
) -> Result<(), DataError> {
    for (i, target) in block.targets.iter().enumerate() {
        row.clear();
        if block.valid.is_some_and(|valid| !valid[i]) {
            rows.push_null()?;
            continue;
        }
        match block.rows {
            Rows::Dense { values, dim } => {
                (0..).zip(&values[i * dim..(i + 1) * dim]).for_each(|(index, value)| row.push(index, value.widen()));
            }
            Rows::Sparse { offsets, indices, values, .. } => {
                let place = offsets[i]..offsets[i + 1];
                let entries = indices[place.clone()].iter().zip(&values[place]);
                entries.for_each(|(&index, value)| row.push(index, value.widen()));
            }
        }
        encoder.finish_features(row);
        rows.push(row.indices(), row.values(), *target)?;
    }
    Ok(())
}

impl Encoder {
    /// Returns the dimension of a record at this stage, and whether records are best stored as compressed rows.
    pub(crate) fn shape_of(&self, stage: Stage) -> (usize, bool) {
        match stage {
            Stage::Coordinates => (self.coordinates(), is_sparse(self.used_columns(), self.coordinates())),
            Stage::Features => (self.dim(), self.prefers_sparse()),
        }
    }
}
