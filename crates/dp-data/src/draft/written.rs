//! Numbers with separators and units, as evidence for the format of a column.

use super::families::{Families, Numbers};
use crate::schema::{NumberFormat, is_blank};

/// The candidate pairs of decimal mark and thousands separator. Those without a separator come first, so that a format has one only
/// if some cell does.
const MARKS: [(char, Option<char>); 9] = [
    ('.', None),
    ('.', Some(',')),
    ('.', Some(' ')),
    ('.', Some('\'')),
    ('.', Some('_')),
    (',', None),
    (',', Some('.')),
    (',', Some(' ')),
    (',', Some('\'')),
];

/// Units that may stand next to the number without a blank; other adjacent letters are parts of a code, such as `12a`.
const ADJACENT: [&str; 27] = [
    "kg", "g", "mg", "µg", "lb", "lbs", "oz", "km", "m", "cm", "mm", "mi", "ft", "in", "l", "ml", "dl", "h", "min",
    "s", "ms", "kWh", "W", "kW", "Hz", "bpm", "mmHg",
];
/// Maximum number of characters of a unit.
const LONGEST: usize = 12;

fn format((decimal, thousands): (char, Option<char>), units: Vec<String>) -> NumberFormat {
    NumberFormat { decimal, thousands, units }
}

/// Evidence from the cells of a column for the format of its numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Written {
    /// The cells that are not plain numbers, by their unit.
    families: Families,
    /// Plain numbers with a point, read with the point as thousands separator, and the line of the first.
    grouped: (Numbers, Option<u64>),
    /// Number and first line of plain numbers whose point cannot be a thousands separator.
    points: (u64, Option<u64>),
    /// Plain numbers without a point.
    whole: Numbers,
}

/// The format of a column's numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// `None`: plain numbers.
    pub(super) format: Option<NumberFormat>,
    pub(super) numbers: Numbers,
    /// Line of the first number in another format.
    pub(super) refused: Option<u64>,
}

/// The possible formats of a column's numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reading {
    One(Found),
    /// With a decimal point, or with a decimal comma: other numbers if `differs`.
    Two {
        point: Found,
        comma: Found,
        differs: bool,
    },
}

/// Evidence from the other columns of the file for the decimal mark.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Marks {
    /// Some column has decimal points for certain.
    pub(super) points: bool,
    /// Some column has decimal commas for certain.
    pub(super) commas: bool,
}

impl Reading {
    /// Returns the only format, or that of the other columns; the count of numbers if undecided.
    pub(super) fn decided(self, marks: Marks) -> Result<Found, u64> {
        match self {
            Self::One(found) => Ok(found),
            Self::Two { comma, .. } if marks == (Marks { points: false, commas: true }) => Ok(comma),
            Self::Two { point, .. } if marks == (Marks { points: true, commas: false }) => Ok(point),
            Self::Two { point, differs: false, .. } => Ok(point),
            Self::Two { point, .. } => Err(point.numbers.count),
        }
    }
}

impl Written {
    /// Adds a plain number, without blanks around it.
    pub(super) fn see_plain(&mut self, cell: &[u8], number: f64, line: u64) {
        let Some(digits) = cell.iter().rev().position(|byte| *byte == b'.') else { return self.whole.see(number) };
        // `1.234`, `-12.345`: with a group of three digits, and up to three before it, the first of which is not 0.
        let sign = usize::from(!cell[0].is_ascii_digit());
        let is_grouped = digits == 3 && matches!(cell.len() - sign, 5..=7) && cell[sign] != b'0';
        if is_grouped && cell[cell.len() - 5].is_ascii_digit() {
            // At most six digits: the product is within a quarter of its integer.
            let nearest = (number * 1000.0 + 0.5_f64.copysign(number)) as i64;
            self.grouped.0.see(nearest as f64);
            self.grouped.1.get_or_insert(line);
        } else {
            self.points.0 += 1;
            self.points.1.get_or_insert(line);
        }
    }

    /// Adds a cell that is no plain number; returns false if it is no number.
    pub(super) fn see(&mut self, cell: &[u8], line: u64) -> bool {
        let Ok(text) = std::str::from_utf8(cell) else { return false };
        let text = text.trim_matches(is_blank);
        let Some(unit) = unit_of(text) else { return false };
        let units = || if unit.is_empty() { Vec::new() } else { vec![unit.to_owned()] };
        self.families.see(unit, line, &MARKS.map(|marks| format(marks, units()).read(text)))
    }

    /// Adds those of the next cells, whose line numbers do not count the `lines` lines before them.
    pub(super) fn append(&mut self, next: &Self, lines: u64) {
        self.families.append(&next.families, lines);
        self.grouped.0.append(&next.grouped.0);
        self.whole.append(&next.whole);
        self.points.0 += next.points.0;
        for (line, next) in [(&mut self.grouped.1, next.grouped.1), (&mut self.points.1, next.points.1)] {
            *line = line.or(next.map(|line| line + lines));
        }
    }

    /// Returns the number of cells that are no plain numbers.
    pub(super) fn count(&self) -> u64 {
        self.families.count()
    }

    /// Returns the line of the first of them.
    pub(super) fn first(&self) -> Option<u64> {
        self.families.first()
    }

    /// Returns whether plain numbers have decimal points for certain.
    pub(super) fn has_points(&self) -> bool {
        self.points.0 > 0
    }

    /// Returns the format of most numbers; `plain` are the plain ones.
    pub(super) fn reading(&self, plain: &Numbers) -> Reading {
        let plain_alone = Found { format: None, numbers: plain.clone(), refused: self.families.first() };
        let candidates = self.families.list().iter().flat_map(|family| {
            let of_marks = move |(place, marks): (usize, &(char, Option<char>))| {
                let of_unit = family.candidates.get(place)?;
                let (mut numbers, mut refused) = (of_unit.numbers.clone(), of_unit.refused);
                let others = self.families.list().iter().filter(|other| other.key != family.key);
                let mut refuse = |line: Option<u64>| refused = refused.into_iter().chain(line).min();
                others.for_each(|other| refuse(Some(other.first)));
                let units = if family.key.is_empty() {
                    // Plain numbers are read, too.
                    if marks.0 == '.' {
                        numbers.append(plain);
                    } else {
                        numbers.append(&self.whole);
                        refuse(self.points.1);
                        match marks.1 {
                            Some('.') => numbers.append(&self.grouped.0),
                            _ => refuse(self.grouped.1),
                        }
                    }
                    Vec::new()
                } else {
                    vec![family.key.to_string()]
                };
                (of_unit.numbers.count > 0).then(|| Found { format: Some(format(*marks, units)), numbers, refused })
            };
            MARKS.iter().enumerate().filter_map(of_marks)
        });
        let best = |decimal: char| {
            let found =
                candidates.clone().filter(move |found| found.format.as_ref().is_some_and(|one| one.decimal == decimal));
            // The first of the best.
            found.reduce(|best, next| if next.numbers.count > best.numbers.count { next } else { best })
        };
        let (point, comma) = (best('.'), best(','));
        match (point, comma) {
            (Some(point), Some(comma))
                if point.numbers.count == comma.numbers.count && point.numbers.count > plain.count =>
            {
                let has_no_unit = |found: &Found| found.format.as_ref().is_some_and(|format| format.units.is_empty());
                let differs = self.families.list().iter().any(|family| family.differs)
                    || (self.grouped.0.count > 0 && has_no_unit(&point));
                Reading::Two { point, comma, differs }
            }
            (point, comma) => {
                let all = [Some(plain_alone), point, comma].into_iter().flatten();
                let best = all.reduce(|best, next| if next.numbers.count > best.numbers.count { next } else { best });
                Reading::One(best.unwrap_or(Found { format: None, numbers: Numbers::default(), refused: None }))
            }
        }
    }
}

/// Returns the unit of a number, possibly empty, or `None` if the text is no number with a unit.
fn unit_of(text: &str) -> Option<&str> {
    let first = text.find(|c: char| c.is_ascii_digit())?;
    let last = text.rfind(|c: char| c.is_ascii_digit())? + 1;
    let of_number = |c: char| matches!(c, '(' | '+' | '-' | '\u{2212}') || is_blank(c);
    let before = text[..first].trim_end_matches(['.', ',']).trim_matches(of_number);
    let (after, is_adjacent) = match text[last..].trim_end_matches(')') {
        rest if rest.starts_with(is_blank) => (rest.trim_matches(is_blank), false),
        rest => (rest.trim_end_matches(is_blank), true),
    };
    // `5.` and `5,`
    let after = if matches!(after, "." | ",") { "" } else { after };
    let has_letters = |unit: &str| unit.contains(char::is_alphanumeric);
    match (before, after) {
        ("", unit) if has_letters(unit) && is_adjacent && !ADJACENT.contains(&unit) && !unit.starts_with('°') => None,
        ("", unit) if unit.chars().count() <= LONGEST => Some(unit),
        // `EUR 12`, but not `A 12`.
        (unit, "") if has_letters(unit) && (unit.len() != 3 || !text[..first].ends_with(is_blank)) => None,
        (unit, "") if unit.chars().count() <= LONGEST => Some(unit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::parse_number;

    fn reading(cells: &[&str]) -> Reading {
        let (mut written, mut plain) = (Written::default(), Numbers::default());
        for (cell, line) in cells.iter().zip(2..) {
            match parse_number(cell.as_bytes()) {
                Some(number) => {
                    plain.see(number);
                    written.see_plain(cell.as_bytes(), number, line);
                }
                None => drop(written.see(cell.as_bytes(), line)),
            }
        }
        written.reading(&plain)
    }

    #[test]
    fn formats_are_found_by_what_they_read() {
        for (cells, decimal, thousands, unit, range, refused) in [
            (&["12,345.60", "1.5", "7"][..], '.', Some(','), "", (1.5, 12345.6), None),
            (&["1.234,50", "1.234", "7"], ',', Some('.'), "", (7.0, 1234.5), None),
            (&["0,049", "0,310", "7"], ',', None, "", (0.049, 7.0), None),
            (&["1,5", "1.234", "2,25"], ',', Some('.'), "", (1.5, 1234.0), None),
            (&["1 234,5", "1 000 000,5", "1.234"], ',', Some(' '), "", (1234.5, 1_000_000.5), Some(4)),
            (&["1,5", "2,25", "12.5"], ',', None, "", (1.5, 2.25), Some(4)),
            (&["1 234,5", "7", "1 000 000"], ',', Some(' '), "", (7.0, 1e6), None),
            (&["1'234.5", "7"], '.', Some('\''), "", (7.0, 1234.5), None),
            (&["$5.25", "$1,250.00", "-$7.50"], '.', Some(','), "$", (-7.5, 1250.0), None),
            (&["5 %", "12.5 %", "x", "7"], '.', None, "%", (5.0, 12.5), Some(5)),
            (&["3 Std.", "12 Std."], '.', None, "Std.", (3.0, 12.0), None),
            (&["EUR 5", "EUR 6"], '.', None, "EUR", (5.0, 6.0), None),
            (&["5kg", "6kg", "8 lb"], '.', None, "kg", (5.0, 6.0), Some(4)),
        ] {
            let found = reading(cells).decided(Marks::default()).expect("one reading");
            let units = if unit.is_empty() { vec![] } else { vec![unit.to_owned()] };
            assert_eq!(found.format, Some(NumberFormat { decimal, thousands, units }), "{cells:?}");
            assert_eq!((found.numbers.min, found.numbers.max), range, "{cells:?}");
            // A plain number among those with a unit is counted by its column.
            let refused = if cells.contains(&"7") && unit == "%" { None } else { refused };
            assert_eq!(found.refused, refused, "{cells:?}");
        }
        for cells in
            [&["1.5", "2"][..], &["1.234", "5.678"], &["A12", "A13"], &["12a", "13b"], &["10:30"], &["Q1", "Q2"]]
        {
            let Reading::One(found) = reading(cells) else { panic!("{cells:?} have one reading") };
            assert_eq!(found.format, None, "{cells:?}");
        }
        // With marks between groups, plain numbers are as their format reads them.
        for cell in
            ["1.234", "-12.345", "0.125", "999.999", "-0.001", ".123", "-.123", "1234.567", "1.5", "1.2345", "1e5.123"]
        {
            let (mut written, german) = (Written::default(), format((',', Some('.')), Vec::new()).read(cell));
            if let Some(number) = parse_number(cell.as_bytes()) {
                written.see_plain(cell.as_bytes(), number, 1);
                assert_eq!((written.grouped.0.count, written.points.0), if german.is_some() { (1, 0) } else { (0, 1) });
                assert!(german.is_none_or(|german| written.grouped.0.min == german), "{cell}");
            }
        }
        for cells in [&["1,234", "5,678"][..], &["1.234 kg"], &["1,234", "7"], &["1,234", "1.234"]] {
            let Reading::Two { point, comma, differs: true } = reading(cells) else {
                panic!("{cells:?} have two readings")
            };
            assert_eq!(point.numbers.count, comma.numbers.count);
        }
        // Where both readings give the same numbers, the other columns decide what next year's cells mean.
        for (commas, decimal) in [(true, ','), (false, '.')] {
            let found = reading(&["5 %", "12 %"]).decided(Marks { points: !commas, commas }).expect("one reading");
            assert_eq!(found.format.map(|format| (format.decimal, format.thousands)), Some((decimal, None)));
        }
    }
}
