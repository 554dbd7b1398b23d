//! Reading of cells that are neither plain numbers nor categories, by the format of their column.

use super::cell::Cell;
use crate::error::DataErrorKind;
use crate::schema::{CellFormat, DateFormat, NumberFormat};

/// The format of a column, prepared for its cells.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reading {
    Number(NumberFormat),
    /// With the range of the column.
    Date(DateFormat, (f64, f64)),
    Flag {
        one: Vec<String>,
        zero: Vec<String>,
    },
}

impl Reading {
    pub(super) fn new(format: &CellFormat, range: (f64, f64)) -> Self {
        match format.clone() {
            CellFormat::Number(format) => Self::Number(format),
            CellFormat::Date(format) => Self::Date(format, range),
            CellFormat::Flag { one, zero } => Self::Flag { one, zero },
        }
    }

    /// Returns the kind of error for a cell that is not in this format.
    pub(super) fn refusal(&self) -> DataErrorKind {
        match self {
            Self::Number(_) => DataErrorKind::CsvBadNumber,
            Self::Date(..) => DataErrorKind::CsvBadDate,
            Self::Flag { .. } => DataErrorKind::CsvUnknownCategory,
        }
    }

    /// Returns the number in a cell, or the position of its category; `None` if it is not in this format.
    pub(super) fn read(&self, cell: Cell<'_>) -> Option<f64> {
        let text = match cell {
            Cell::Text(text) => std::str::from_utf8(text).ok()?,
            Cell::Number(number) => {
                return match self {
                    Self::Number(_) => number.is_finite().then_some(number),
                    Self::Date(..) => None,
                    Self::Flag { .. } => self.read(Cell::Text(cell.text(&mut [0; 32]))),
                };
            }
            Cell::Boolean(_) => return cell.find(&mut [0; 32], |text| self.read(Cell::Text(text))),
            Cell::Date(day) => return self.read_day(day, None),
            Cell::DateTime { day, nanoseconds } => return self.read_day(day, Some(nanoseconds)),
            Cell::Missing => return None,
        };
        match self {
            Self::Number(format) => format.read(text),
            Self::Date(format, range) => format.read(text, *range),
            Self::Flag { one, zero } => {
                let text = text.trim_ascii();
                let is_one = one.iter().any(|one| one == text);
                (is_one || zero.iter().any(|zero| zero == text)).then_some(f64::from(u8::from(is_one)))
            }
        }
    }
}

impl Reading {
    fn read_day(&self, day: i32, time: Option<i64>) -> Option<f64> {
        match self {
            Self::Date(format, _) => format.of_day(day, time),
            Self::Number(_) | Self::Flag { .. } => None,
        }
    }
}

/// Returns a text without blanks around it, if it has some.
pub(super) fn unpadded(text: &[u8]) -> Option<&[u8]> {
    let trimmed = text.trim_ascii();
    (trimmed.len() < text.len()).then_some(trimmed)
}
