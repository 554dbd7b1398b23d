//! Regions of a sheet, such as `A3:F200`.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// Number of rows of a sheet at most.
const MAX_ROWS: u32 = 1 << 20;

/// Number of columns of a sheet at most.
const MAX_COLUMNS: u32 = 1 << 14;

/// Rows and columns of a sheet, from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) rows: RangeInclusive<u32>,
    pub(super) columns: RangeInclusive<u32>,
}

impl Region {
    /// The whole sheet.
    pub(super) const WHOLE: Self = Self { rows: 0..=MAX_ROWS - 1, columns: 0..=MAX_COLUMNS - 1 };
}

impl FromStr for Region {
    type Err = ();

    /// Parses a region; a side without rows or without columns has all of them.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (from, to) = text.split_once(':').ok_or(())?;
        let ((first_column, first_row), (last_column, last_row)) = (corner(from)?, corner(to)?);
        let (all, or) = (Self::WHOLE, |one: Option<u32>, other: &u32| one.unwrap_or(*other));
        let rows = or(first_row, all.rows.start())..=or(last_row, all.rows.end());
        let columns = or(first_column, all.columns.start())..=or(last_column, all.columns.end());
        let is_within = rows.end() <= all.rows.end() && columns.end() <= all.columns.end();
        if is_within && !rows.is_empty() && !columns.is_empty() { Ok(Self { rows, columns }) } else { Err(()) }
    }
}

/// Parses `F200`, `F` or `200`: a column and a row, from 0.
fn corner(text: &str) -> Result<(Option<u32>, Option<u32>), ()> {
    let text = text.replace('$', "");
    let digits = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (letters, row) = text.split_at(digits);
    if text.is_empty() || letters.len() > 3 {
        return Err(());
    }
    let place = |number: u32, letter: u8| number * 26 + u32::from(letter.to_ascii_uppercase() - b'A') + 1;
    let column = letters.bytes().fold(0, place).checked_sub(1);
    let row: Option<u32> = if row.is_empty() { None } else { Some(row.parse().map_err(|_| ())?) };
    let row = row.map(|row| row.checked_sub(1).ok_or(())).transpose()?;
    Ok((column, row))
}

/// Returns the letters of a column, counted from 0.
pub(super) fn letters(column: u32) -> String {
    let (before, last) = (column / 26, char::from(b'A' + (column % 26) as u8));
    if before == 0 { last.to_string() } else { format!("{}{last}", letters(before - 1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_those_of_formulas() {
        for (text, rows, columns) in [
            ("A3:F200", 2..=199, 0..=5),
            ("$A$3:$f$200", 2..=199, 0..=5),
            ("B:AA", 0..=MAX_ROWS - 1, 1..=26),
            ("3:200", 2..=199, 0..=MAX_COLUMNS - 1),
            ("A3:F", 2..=MAX_ROWS - 1, 0..=5),
            ("XFD1:XFD1048576", 0..=1_048_575, 16_383..=16_383),
        ] {
            assert_eq!(text.parse(), Ok(Region { rows, columns }), "{text}");
        }
        for text in
            ["", "A3", ":", "A3:", "A0:B2", "B1:A2", "A2:B1", "XFE1:XFE2", "A1:B1048577", "A1:B-2", "AAAA:B", "ä:B"]
        {
            assert_eq!(text.parse::<Region>(), Err(()), "{text}");
        }
        for column in [0, 1, 25, 26, 27, 701, 702, 16_383] {
            let name = letters(column);
            assert_eq!(format!("{name}1:{name}1").parse::<Region>().unwrap().columns, column..=column);
        }
        assert_eq!(letters(16_383), "XFD");
    }
}
