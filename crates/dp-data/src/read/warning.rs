//! What the curator should know about a file that was accepted.

use crate::encode::{Encoder, RowBuffer};

/// Something remarkable about records that were accepted. It depends on the records, so it is **for the curator only**:
/// never in a model, certificate, report or result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CuratorWarning {
    /// Every label is of one class.
    SingleClass {
        /// The label's column.
        column: String,
        /// Whether it is the positive class.
        positive: bool,
    },
    /// Every record has the same value in a column.
    ConstantColumn {
        /// Its name.
        column: String,
    },
    /// Values lay outside the public range and were clamped to it.
    Clamped {
        /// The column.
        column: String,
        /// How many values.
        values: u64,
    },
    /// Missing, unreadable or undeclared values were replaced as the schema says.
    Replaced {
        /// The column.
        column: String,
        /// How many values.
        values: u64,
    },
    /// Records became null records as the schema says.
    Neutral {
        /// How many records.
        records: u64,
    },
    /// The file has columns that the schema does not name; they are not used.
    UnusedColumns {
        /// Their names.
        columns: Vec<String>,
    },
}

impl core::fmt::Display for CuratorWarning {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::SingleClass { column, positive } => {
                let class = if *positive { "positive" } else { "negative" };
                write!(f, "every label in column `{column}` is {class}: the model will not tell the classes apart")
            }
            Self::ConstantColumn { column } => {
                write!(f, "column `{column}` holds the same value in every row and adds only noise; consider `drop`")
            }
            Self::Clamped { column, values } => {
                write!(f, "{values} values of column `{column}` lay outside its public range and were clamped to it")
            }
            Self::Replaced { column, values } => {
                write!(f, "{values} missing or unknown values of column `{column}` were replaced as the schema says")
            }
            Self::Neutral { records } => {
                write!(f, "{records} records were given no influence, as the schema says of missing or unknown values")
            }
            Self::UnusedColumns { columns } => {
                write!(f, "the schema does not name these columns, so they are not used: {}", columns.join(", "))
            }
        }
    }
}

/// The warnings that follow from what a row buffer has seen.
pub(super) fn from_columns(encoder: &Encoder, row: &RowBuffer) -> Vec<CuratorWarning> {
    let mut warnings = Vec::new();
    let columns = encoder.schema().map_or(&[][..], |schema| schema.columns());
    for (column, tally) in columns.iter().zip(row.tallies()) {
        let name = || column.name.clone();
        if tally.is_constant() {
            warnings.push(CuratorWarning::ConstantColumn { column: name() });
        }
        if tally.clamped > 0 {
            warnings.push(CuratorWarning::Clamped { column: name(), values: tally.clamped });
        }
        if tally.replaced > 0 {
            warnings.push(CuratorWarning::Replaced { column: name(), values: tally.replaced });
        }
    }
    warnings
}
