//! Error messages for a refused cell or label.

use super::Encoder;
use super::cell::Cell;
use crate::error::{DataError, DataErrorKind};
use crate::schema::{CellFormat, LabelKind};

impl Encoder {
    pub(crate) fn refuse_cell(&self, kind: DataErrorKind, position: usize, cell: Cell<'_>) -> DataError {
        let buffer = &mut [0; 32];
        let cell = cell.text(buffer);
        let Some(column) = self.schema().and_then(|schema| schema.columns().get(position)) else {
            return DataError::new(kind, "a cell cannot be encoded").found_cell(cell);
        };
        let name = &column.name;
        let error = match kind {
            DataErrorKind::CsvMissingValue => DataError::new(kind, format!("a cell of column `{name}` is missing"))
                .expected("a value in every row (`on_missing` is \"error\")")
                .help("fix the file, or declare `on_missing` for the column: \"neutral\" or { value = ... }"),
            DataErrorKind::CsvUnknownCategory if column.format.is_some() => {
                DataError::new(kind, format!("a cell of column `{name}` is none of the texts for 1 and 0"))
                    .expected("one of `one` or `zero`")
                    .help("add it to one of them, declare it under `missing`, or declare `on_unreadable`")
            }
            DataErrorKind::CsvUnknownCategory => {
                DataError::new(kind, format!("a cell of column `{name}` holds an undeclared category"))
                    .expected("one of the categories of the schema")
                    .help("add it to `categories` if it is publicly possible, or declare `on_unknown`; where a model is used, add --on-unknown other")
            }
            DataErrorKind::CsvBadDate => {
                let pattern = match &column.format {
                    Some(CellFormat::Date(format)) => &format.pattern,
                    _ => "",
                };
                DataError::new(kind, format!("a cell of column `{name}` is not a date or time as its format says"))
                    .expected(format!("`{pattern}`, years of four digits from 1000 on, and a day that exists"))
                    .help("fix the file or `format`, declare the text under `missing`, or declare `on_unreadable`")
            }
            kind => DataError::new(kind, format!("a cell of column `{name}` is not a finite number"))
                .expected(match &column.format {
                    Some(CellFormat::Number(format)) => format!("a number written as {}", format.example()),
                    _ => "a decimal number".to_owned(),
                })
                .help("fix the file, declare the text under `missing`, or declare `on_unreadable`: \"neutral\" or \"missing\""),
        };
        error.found_cell(cell).at_column(name)
    }

    pub(crate) fn refuse_label(&self, kind: DataErrorKind, cell: Cell<'_>) -> DataError {
        let buffer = &mut [0; 32];
        let cell = cell.text(buffer);
        let label = self.label();
        let name = &label.column;
        let help = match (kind, &label.kind) {
            (DataErrorKind::LabelMissing, _) => "fix the file, or declare `on_missing = \"neutral\"` for the label",
            (_, LabelKind::TwoClasses { .. }) => "add it to `positive` or `negative`, or declare `others`",
            (_, LabelKind::Classes { .. }) => "add it to `classes` if it is publicly possible, or declare `others`",
            (_, LabelKind::Number(_)) => {
                "fix the file, declare the text under `missing`, or declare `on_unreadable = \"neutral\"` for the label"
            }
        };
        let message = match kind {
            DataErrorKind::LabelMissing => format!("a label in column `{name}` is missing"),
            DataErrorKind::LabelUnknown => format!("a label in column `{name}` is of no declared class"),
            _ => format!("a label in column `{name}` is not a finite number"),
        };
        DataError::new(kind, message).help(help).found_cell(cell).at_column(name).expected(in_words(&label.kind))
    }
}

/// Maximum number of values listed in a message.
const SHOWN: usize = 8;

/// Returns the possible contents of a label, for messages.
fn in_words(kind: &LabelKind) -> String {
    let list = |values: &[String]| {
        let shown: Vec<_> = values.iter().take(SHOWN).map(|value| format!("`{value}`")).collect();
        shown.join(", ")
    };
    match kind {
        LabelKind::TwoClasses { positive, negative, .. } => {
            let class = |class: &str, values: &[String]| match values {
                [] => format!("any other ({class})"),
                values => format!("{} ({class})", list(values)),
            };
            format!("{} or {}", class("positive", positive), class("negative", negative))
        }
        LabelKind::Classes { classes, .. } => match classes.len().saturating_sub(SHOWN) {
            0 => format!("one of {}", list(classes)),
            more => format!("one of {} and {more} more", list(classes)),
        },
        LabelKind::Number(range) => format!("a number; outside {:?} to {:?} it is clamped", range.min, range.max),
    }
}
