//! The types of Parquet columns, and their cells.

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::reader::RowGroupReader;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use super::{Batch, Columns};
use crate::encode::Cell;
use crate::error::{DataError, DataErrorKind};

/// Maximum number of digits of a decimal, which then fits in 128 bits.
const MOST_DIGITS: i32 = 38;

/// A column whose cells can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// Its number among the leaf columns of the file.
    leaf: usize,
    physical: Physical,
    /// The definition level of a cell that is not missing; 0 if none can be.
    present: i16,
    meaning: Meaning,
}

impl Kind {
    /// Returns the type of dates and times; `None` of others.
    pub(super) fn of_dates(&self) -> Option<&'static str> {
        match self.meaning {
            Meaning::Date => Some("DATE"),
            Meaning::Moment { .. } => Some("TIMESTAMP"),
            _ => None,
        }
    }
}

/// The kind of the stored values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Boolean,
    Signed,
    Unsigned,
    Real,
    Text,
    Decimal {
        scale: i32,
    },
    Date,
    /// Times of this many in a second.
    Moment {
        in_second: i64,
    },
}

/// Returns the columns of a file.
pub(super) fn columns(schema: &SchemaDescriptor) -> Columns {
    let fields = schema.root_schema().get_fields();
    let mut columns: Columns =
        fields.iter().map(|field| (field.name().to_owned(), Err("record or list".to_owned()))).collect();
    for leaf in 0..schema.num_columns() {
        let root = schema.get_column_root_idx(leaf);
        if let (Some(field), Some((_, kind))) = (fields.get(root), columns.get_mut(root))
            && field.is_primitive()
        {
            *kind = kind_of(leaf, &schema.column(leaf));
        }
    }
    columns
}

fn kind_of(leaf: usize, column: &ColumnDescriptor) -> Result<Kind, String> {
    if column.max_rep_level() > 0 {
        return Err("list".to_owned());
    }
    let physical = column.physical_type();
    let decimal = |scale: i32, digits: i32| {
        if (0..=MOST_DIGITS).contains(&digits) && (0..=MOST_DIGITS).contains(&scale) {
            Ok(Meaning::Decimal { scale })
        } else {
            Err(format!("DECIMAL({digits}, {scale})"))
        }
    };
    let meaning = match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::String | LogicalType::Enum), _) => Meaning::Text,
        (Some(LogicalType::Integer(kind)), _) if kind.is_signed => Meaning::Signed,
        (Some(LogicalType::Integer(_)), _) => Meaning::Unsigned,
        (Some(LogicalType::Decimal(kind)), _) => decimal(kind.scale, kind.precision)?,
        (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => Meaning::Date,
        (Some(LogicalType::Timestamp(kind)), _) => Meaning::Moment {
            in_second: match kind.unit {
                TimeUnit::MILLIS => 1_000,
                TimeUnit::MICROS => 1_000_000,
                TimeUnit::NANOS => 1_000_000_000,
            },
        },
        (None, ConvertedType::TIMESTAMP_MILLIS) => Meaning::Moment { in_second: 1_000 },
        (None, ConvertedType::TIMESTAMP_MICROS) => Meaning::Moment { in_second: 1_000_000 },
        (Some(kind), _) => return Err(name_of(kind)),
        (None, ConvertedType::UTF8 | ConvertedType::ENUM) => Meaning::Text,
        (None, ConvertedType::DECIMAL) => decimal(column.type_scale(), column.type_precision())?,
        (None, ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64) => {
            Meaning::Unsigned
        }
        (None, ConvertedType::INT_8 | ConvertedType::INT_16 | ConvertedType::INT_32 | ConvertedType::INT_64) => {
            Meaning::Signed
        }
        (None, ConvertedType::NONE) => match physical {
            Physical::BOOLEAN => Meaning::Boolean,
            Physical::INT32 | Physical::INT64 => Meaning::Signed,
            Physical::FLOAT | Physical::DOUBLE => Meaning::Real,
            Physical::BYTE_ARRAY => Meaning::Text,
            Physical::INT96 => return Err("INT96 (a time)".to_owned()),
            Physical::FIXED_LEN_BYTE_ARRAY => return Err("bytes of a fixed length".to_owned()),
        },
        (None, other) => return Err(other.to_string()),
    };
    let fits = match meaning {
        Meaning::Boolean => physical == Physical::BOOLEAN,
        Meaning::Signed | Meaning::Unsigned => matches!(physical, Physical::INT32 | Physical::INT64),
        Meaning::Real => matches!(physical, Physical::FLOAT | Physical::DOUBLE),
        Meaning::Text => physical == Physical::BYTE_ARRAY,
        Meaning::Date => physical == Physical::INT32,
        Meaning::Moment { .. } => physical == Physical::INT64,
        Meaning::Decimal { .. } => matches!(
            physical,
            Physical::INT32 | Physical::INT64 | Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY
        ),
    };
    let present = column.max_def_level();
    if fits { Ok(Kind { leaf, physical, present, meaning }) } else { Err(format!("{meaning:?} stored as {physical}")) }
}

fn name_of(kind: &LogicalType) -> String {
    let name = match kind {
        LogicalType::Time(_) => "TIME",
        LogicalType::Json => "JSON",
        LogicalType::Bson => "BSON",
        LogicalType::Uuid => "UUID",
        LogicalType::Float16 => "FLOAT16",
        _ => "another type",
    };
    name.to_owned()
}

/// The next cells of a column.
pub(super) struct ColumnCells {
    kind: Kind,
    reader: ColumnReader,
    /// A definition level for each row, unless no cell can be missing.
    levels: Vec<i16>,
    values: Values,
    /// Number of decoded rows, and of those before them in this row group.
    rows: usize,
    before: u64,
}

/// The values that are not missing.
#[derive(Default)]
struct Values {
    booleans: Vec<bool>,
    short: Vec<i32>,
    long: Vec<i64>,
    single: Vec<f32>,
    double: Vec<f64>,
    bytes: Vec<ByteArray>,
    fixed: Vec<FixedLenByteArray>,
}

impl ColumnCells {
    pub(super) fn new(group: &dyn RowGroupReader, kind: Kind) -> Result<Self, ParquetError> {
        let reader = group.get_column_reader(kind.leaf)?;
        Ok(Self { kind, reader, levels: Vec::new(), values: Values::default(), rows: 0, before: 0 })
    }

    /// Decodes exactly so many rows in place of the last ones.
    pub(super) fn decode(&mut self, rows: usize) -> Result<(), ParquetError> {
        let Self { kind, reader, levels, values, .. } = self;
        self.before += self.rows as u64;
        self.rows = 0;
        levels.clear();
        macro_rules! read {
            ($reader:expr, $values:expr) => {{
                $values.clear();
                while self.rows < rows {
                    let levels = (kind.present > 0).then_some(&mut *levels);
                    let (read, _, _) = $reader.read_records(rows - self.rows, levels, None, $values)?;
                    if read == 0 {
                        return Err(ParquetError::EOF("a column has fewer rows than stated".to_owned()));
                    }
                    self.rows += read;
                }
            }};
        }
        match reader {
            ColumnReader::BoolColumnReader(reader) => read!(reader, &mut values.booleans),
            ColumnReader::Int32ColumnReader(reader) => read!(reader, &mut values.short),
            ColumnReader::Int64ColumnReader(reader) => read!(reader, &mut values.long),
            ColumnReader::FloatColumnReader(reader) => read!(reader, &mut values.single),
            ColumnReader::DoubleColumnReader(reader) => read!(reader, &mut values.double),
            ColumnReader::ByteArrayColumnReader(reader) => read!(reader, &mut values.bytes),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => read!(reader, &mut values.fixed),
            ColumnReader::Int96ColumnReader(_) => return Err(ParquetError::NYI("INT96".to_owned())),
        }
        Ok(())
    }

    /// Appends the decoded cells to a column of a batch.
    ///
    /// # Errors
    /// Text that is not UTF-8, a column with fewer values than rows.
    pub(super) fn append_to(&self, place: usize, batch: &mut Batch) -> Result<(), DataError> {
        let mut next = 0;
        for row in 0..self.rows {
            let is_present =
                self.kind.present == 0 || self.levels.get(row).is_some_and(|&level| level == self.kind.present);
            if !is_present {
                batch.push(place, Cell::Missing)?;
                continue;
            }
            self.push(next, place, batch).map_err(|error| error.at_line(self.before + row as u64 + 1))?;
            next += 1;
        }
        Ok(())
    }

    /// Appends value `i`.
    fn push(&self, i: usize, place: usize, batch: &mut Batch) -> Result<(), DataError> {
        let Self { kind: Kind { physical, meaning, .. }, values, .. } = self;
        let too_few = || DataError::new(DataErrorKind::TableRead, "a column has fewer values than rows");
        let whole = || -> Result<i128, DataError> {
            let bytes = match physical {
                Physical::INT32 => {
                    let value = *values.short.get(i).ok_or_else(too_few)?;
                    return Ok(if *meaning == Meaning::Unsigned { i128::from(value as u32) } else { value.into() });
                }
                Physical::INT64 => {
                    let value = *values.long.get(i).ok_or_else(too_few)?;
                    return Ok(if *meaning == Meaning::Unsigned { i128::from(value as u64) } else { value.into() });
                }
                Physical::BYTE_ARRAY => values.bytes.get(i).ok_or_else(too_few)?.data(),
                _ => values.fixed.get(i).ok_or_else(too_few)?.data(),
            };
            big_endian(bytes)
                .ok_or_else(|| DataError::new(DataErrorKind::TableRead, "a decimal has more than 128 bits"))
        };
        match meaning {
            Meaning::Boolean => batch.push(place, Cell::Boolean(*values.booleans.get(i).ok_or_else(too_few)?)),
            Meaning::Real if *physical == Physical::FLOAT => {
                batch.push(place, Cell::Number(f64::from(*values.single.get(i).ok_or_else(too_few)?)))
            }
            Meaning::Real => batch.push(place, Cell::Number(*values.double.get(i).ok_or_else(too_few)?)),
            Meaning::Signed | Meaning::Unsigned => batch.push_whole(place, whole()?),
            Meaning::Decimal { scale } => {
                batch.push(place, Cell::Text(decimal_text(whole()?, *scale as usize).as_bytes()))
            }
            Meaning::Date => batch.push(place, Cell::Date(*values.short.get(i).ok_or_else(too_few)?)),
            Meaning::Moment { in_second } => {
                batch.push_moment(place, *values.long.get(i).ok_or_else(too_few)?, *in_second, 0)
            }
            Meaning::Text => batch.push_text(place, values.bytes.get(i).ok_or_else(too_few)?.data()),
        }
    }
}

/// Returns the number of big-endian bytes in two's complement.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let sign = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
    let mut all = [sign; 16];
    all.get_mut(16usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(all))
}

/// Returns a decimal's digits, without zeros at the end of its fraction.
fn decimal_text(value: i128, scale: usize) -> String {
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let fraction = fraction.trim_end_matches('0');
    let sign = if value < 0 { "-" } else { "" };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_their_digits() {
        for (value, scale, text) in [
            (12345, 2, "123.45"),
            (-5, 3, "-0.005"),
            (1000, 3, "1"),
            (0, 2, "0"),
            (-70, 1, "-7"),
            (i128::MAX, 38, "1.70141183460469231731687303715884105727"),
            (42, 0, "42"),
        ] {
            assert_eq!(decimal_text(value, scale), text);
        }
        assert_eq!(big_endian(&[0xff, 0xfe]), Some(-2));
        assert_eq!(big_endian(&[0, 0x80]), Some(128));
        assert_eq!((big_endian(&[]), big_endian(&[0; 17])), (Some(0), None));
        assert_eq!(big_endian(&i128::MIN.to_be_bytes()), Some(i128::MIN));
    }
}
