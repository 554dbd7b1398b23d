//! Warnings for the curator about an accepted file.

use crate::encode::{Encoder, RowBuffer};
use crate::schema::{Label, LabelKind};

/// A warning about accepted records. It depends on the records, so it is **for the curator only**: never in a model, certificate,
/// report or result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CuratorWarning {
    /// Every label is of one class.
    SingleClass {
        /// The label's column.
        column: String,
        /// The class: `positive`, `negative` or the value.
        class: String,
    },
    /// Some of several classes have no record.
    EmptyClasses {
        /// The label's column.
        column: String,
        /// The classes.
        classes: Vec<String>,
    },
    /// Every label is the same number.
    ConstantLabel {
        /// The label's column.
        column: String,
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
        /// Number of values.
        values: u64,
    },
    /// Missing, unreadable or undeclared values were replaced according to the schema.
    Replaced {
        /// The column.
        column: String,
        /// Number of values.
        values: u64,
    },
    /// Records became null records according to the schema.
    Neutral {
        /// Number of records.
        records: u64,
    },
    /// Rows share the values of a column that looks like an identifier.
    SharedIdentifier {
        /// The column.
        column: String,
        /// The largest number of rows with one value.
        most: u32,
    },
    /// Rows of units were left out: those beyond the bound, and those that name no unit.
    RowsOfUnits {
        /// The column that names the unit.
        column: String,
        /// Number of rows beyond the bound.
        dropped: u64,
        /// Number of rows without a unit.
        unnamed: u64,
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
            Self::SingleClass { column, class } => {
                write!(f, "every label in column `{column}` is {class}: the model will not tell the classes apart")
            }
            Self::EmptyClasses { column, classes } => {
                write!(f, "no record is of these classes of the label `{column}`: {}", classes.join(", "))
            }
            Self::ConstantLabel { column } => {
                write!(f, "every label in column `{column}` is the same number: there is nothing to learn")
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
            Self::SharedIdentifier { column, most } => {
                write!(
                    f,
                    "up to {most} rows share a `{column}`: if these are of one person, the guarantee covers each row by itself; --unit \
                     {column} --max-rows NUMBER covers them together"
                )
            }
            Self::RowsOfUnits { column, dropped, unnamed } => {
                let beyond = format!("{dropped} rows beyond the bound for one `{column}` were left out");
                let without = format!("{unnamed} rows with an empty `{column}` were left out");
                match (dropped, unnamed) {
                    (_, 0) => f.write_str(&beyond),
                    (0, _) => f.write_str(&without),
                    _ => write!(f, "{beyond}, and {without}"),
                }
            }
            Self::UnusedColumns { columns } => {
                write!(f, "the schema does not name these columns, so they are not used: {}", columns.join(", "))
            }
        }
    }
}

/// Returns the warnings from the statistics of a row buffer.
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

/// Returns the warnings about numeric labels.
pub(super) fn from_label(encoder: &Encoder, row: &RowBuffer) -> Vec<CuratorWarning> {
    let (tally, column) = (row.label_tally(), &encoder.label().column);
    let mut warnings = Vec::new();
    if tally.is_constant() {
        warnings.push(CuratorWarning::ConstantLabel { column: column.clone() });
    }
    if tally.clamped > 0 {
        warnings.push(CuratorWarning::Clamped { column: column.clone(), values: tally.clamped });
    }
    warnings
}

/// The number of records of each class; numbers are not counted.
#[derive(Debug)]
pub(crate) struct ClassCounts {
    counts: Vec<u64>,
    two: bool,
}

impl ClassCounts {
    pub(crate) fn new(label: &Label) -> Self {
        match &label.kind {
            LabelKind::TwoClasses { .. } => Self { counts: vec![0; 2], two: true },
            LabelKind::Classes { classes, .. } => Self { counts: vec![0; classes.len()], two: false },
            LabelKind::Number(_) => Self { counts: Vec::new(), two: false },
        }
    }

    pub(crate) fn count(&mut self, target: f64) {
        // The targets of classes are -1 and 1, or positions in the list.
        let class = if self.two { usize::from(target > 0.0) } else { target as usize };
        if let Some(count) = self.counts.get_mut(class) {
            *count += 1;
        }
    }

    /// Adds the counts of other records, of the same classes.
    pub(crate) fn append(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, other)| *count += other);
    }

    pub(crate) fn warning(&self, label: &Label) -> Option<CuratorWarning> {
        let name = |class: usize| match &label.kind {
            LabelKind::Classes { classes, .. } => classes.get(class).cloned().unwrap_or_default(),
            _ => (if class == 1 { "positive" } else { "negative" }).to_owned(),
        };
        let (empty, filled): (Vec<usize>, Vec<usize>) =
            (0..self.counts.len()).partition(|&class| self.counts[class] == 0);
        let column = label.column.clone();
        match (&empty[..], &filled[..]) {
            ([], _) | (_, []) => None,
            (_, &[one]) => Some(CuratorWarning::SingleClass { column, class: name(one) }),
            _ => Some(CuratorWarning::EmptyClasses { column, classes: empty.into_iter().map(name).collect() }),
        }
    }
}
