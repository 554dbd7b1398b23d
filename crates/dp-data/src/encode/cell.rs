//! A cell with the type that its source gave it.

use std::io::Write;

use super::parse_number;
use crate::schema::{date_text, days_of};

/// One cell of a record.
///
/// A record has the same encoding whether its source delivers text (a CSV file) or typed values (a database): a number is matched
/// with categories and markers of missing values by its decimal text (integers without a point, other numbers with the fewest
/// digits that identify them), and text in a numeric column is parsed. A source delivers integers beyond ±2^53 as text, since
/// [`Number`](Self::Number) would round them.
///
/// # Examples
/// ```
/// use dp_data::encode::{Cell, Encoder, Encoding, RowBuffer};
/// use dp_data::schema::Schema;
///
/// let schema = Schema::parse(
///     "toy.toml",
///     "label = { column = 'y', positive = '1', negative = '0' }\n\
///      columns.age = { type = 'numeric', min = 0, max = 100 }\n\
///      columns.ward = { type = 'categorical', categories = ['1', '2'] }",
/// )?;
/// let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS)?;
/// let (mut typed, mut text) = (RowBuffer::new(&encoder), RowBuffer::new(&encoder));
/// encoder.encode_row(|column| Cell::Number([75.0, 2.0][column]), Some(Cell::Boolean(true)), &mut typed)?;
/// encoder.encode_row(|column| [b"75".as_slice(), b"2"][column], Some(b"1".as_slice()), &mut text)?;
/// assert_eq!((typed.values(), typed.target()), (text.values(), text.target()));
/// # Ok::<(), dp_data::DataError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// No value, such as NULL. It is missing under any markers.
    Missing,
    /// A number. NaN and infinities are not readable as numbers.
    Number(f64),
    /// 1 or 0 in a numeric column; otherwise `true` or `false`, or else `1` or `0`, whichever the schema declares.
    Boolean(bool),
    /// A day, in days since 1970-01-01. Its text is `2024-07-04`.
    Date(i32),
    /// A day and a time. Its text is `2024-07-04T18:00:00`, to the second.
    DateTime {
        /// Days since 1970-01-01.
        day: i32,
        /// Nanoseconds since midnight.
        nanoseconds: i64,
    },
    /// Text.
    Text(&'a [u8]),
}

impl<'a> From<&'a [u8]> for Cell<'a> {
    #[inline]
    fn from(text: &'a [u8]) -> Self {
        Self::Text(text)
    }
}

/// 2^53: all integers up to it are exact.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// Memory for the text of a number: `-2.2250738585072014e-308` has 24 bytes.
pub(crate) type TextBuffer = [u8; 32];

impl<'a> Cell<'a> {
    /// Returns its text; empty if it is missing.
    #[inline]
    pub(crate) fn text<'t>(self, buffer: &'t mut TextBuffer) -> &'t [u8]
    where
        'a: 't,
    {
        match self {
            Self::Missing => b"",
            Self::Text(text) => text,
            Self::Boolean(value) => {
                if value {
                    b"true"
                } else {
                    b"false"
                }
            }
            Self::Number(number) => {
                let mut rest = &mut buffer[..];
                // The buffer holds every number, so the write cannot fail.
                let _ = if number.fract() == 0.0 && number.abs() <= MOST_EXACT {
                    write!(rest, "{}", number as i64)
                } else {
                    write!(rest, "{number:?}")
                };
                let length = size_of::<TextBuffer>() - rest.len();
                &buffer[..length]
            }
            Self::Date(_) | Self::DateTime { .. } => {
                let mut text = match self {
                    Self::DateTime { day, nanoseconds } => date_text(days_of(day, nanoseconds)),
                    Self::Date(day) => date_text(f64::from(day)),
                    _ => String::new(),
                };
                if matches!(self, Self::DateTime { .. }) && text.len() == "2024-07-04".len() {
                    text.push_str("T00:00:00");
                }
                let length = text.len().min(size_of::<TextBuffer>());
                buffer[..length].copy_from_slice(&text.as_bytes()[..length]);
                &buffer[..length]
            }
        }
    }

    /// Returns its number, if it is readable as a finite one.
    #[inline]
    pub(super) fn number(self) -> Option<f64> {
        match self {
            // A date is a number only where its column says which.
            Self::Missing | Self::Date(_) | Self::DateTime { .. } => None,
            Self::Text(text) => parse_number(text),
            Self::Boolean(value) => Some(f64::from(u8::from(value))),
            Self::Number(number) => number.is_finite().then_some(number),
        }
    }

    /// Returns the result of `of` for its text; for a Boolean, also for `1` or `0`.
    #[inline]
    pub(super) fn find<T>(self, buffer: &mut TextBuffer, of: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        match (of(self.text(buffer)), self) {
            (None, Self::Boolean(value)) => of(if value { b"1" } else { b"0" }),
            (found, _) => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_the_text_of_iso_8601() {
        for (cell, text) in [
            (Cell::Date(19_908), "2024-07-04"),
            (Cell::DateTime { day: 19_908, nanoseconds: 0 }, "2024-07-04T00:00:00"),
            (Cell::DateTime { day: 19_908, nanoseconds: 64_800_000_000_000 }, "2024-07-04T18:00:00"),
            (Cell::Date(i32::MIN), "-2147483648"),
        ] {
            assert_eq!(std::str::from_utf8(cell.text(&mut [0; 32])).unwrap(), text);
            assert_eq!(cell.number(), None);
        }
    }

    #[test]
    fn numbers_have_the_text_of_a_file() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (-999.0, "-999"),
            (0.1, "0.1"),
            (999_999_999_999_999.0, "999999999999999"),
            (MOST_EXACT, "9007199254740992"),
            (1e16, "1e16"),
            (-f64::MIN_POSITIVE, "-2.2250738585072014e-308"),
            (f64::MAX, "1.7976931348623157e308"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(std::str::from_utf8(Cell::Number(number).text(&mut [0; 32])).unwrap(), text);
        }
    }
}
