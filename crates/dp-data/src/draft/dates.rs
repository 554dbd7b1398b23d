//! Dates and times, as evidence for the format of a column.

use super::families::{Families, Numbers};
use crate::schema::{DateFormat, DatePart, is_blank};

/// Shapes of dates and the patterns that read them: `2` stands for one or two digits, `4` for four, `b` and `B` for the short and the
/// full name of a month. May, which has one name, is an `m` until other months tell.
const DATES: [(&str, &[&str]); 21] = [
    ("4-2-2", &["%Y-%m-%d"]),
    ("4/2/2", &["%Y/%m/%d"]),
    ("4.2.2", &["%Y.%m.%d"]),
    ("2.2.4", &["%d.%m.%Y"]),
    ("2/2/4", &["%d/%m/%Y", "%m/%d/%Y"]),
    ("2-2-4", &["%d-%m-%Y", "%m-%d-%Y"]),
    ("2.2.2", &["%d.%m.%y"]),
    ("2/2/2", &["%d/%m/%y", "%m/%d/%y"]),
    ("2-2-2", &["%d-%m-%y", "%m-%d-%y", "%y-%m-%d"]),
    ("2 b 4", &["%d %b %Y"]),
    ("2-b-4", &["%d-%b-%Y"]),
    ("2/b/4", &["%d/%b/%Y"]),
    ("2 B 4", &["%d %B %Y"]),
    ("2-B-4", &["%d-%B-%Y"]),
    ("b 2, 4", &["%b %d, %Y"]),
    ("B 2, 4", &["%B %d, %Y"]),
    ("b 2 4", &["%b %d %Y"]),
    ("B 2 4", &["%B %d %Y"]),
    ("2-b-2", &["%d-%b-%y"]),
    ("2 b 2", &["%d %b %y"]),
    ("4-b-2", &["%Y-%b-%d"]),
];

/// Shapes of times, after a date or alone: `f` stands for a fraction, `p` for am or pm.
const TIMES: [(&str, &str); 6] = [
    ("2:2:2", "%H:%M:%S"),
    ("2:2", "%H:%M"),
    ("2:2:2f", "%H:%M:%S%.f"),
    ("2:2 p", "%I:%M %p"),
    ("2:2:2 p", "%I:%M:%S %p"),
    ("2:2p", "%I:%M%p"),
];

/// Shapes of offsets after a time.
const OFFSETS: [(&str, &str); 4] = [("", ""), ("Z", "Z"), ("+4", "%z"), ("+2:2", "%:z")];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The shape of cells that their source types as dates; their texts may omit midnight.
const TYPED: &str = "typed";

/// Patterns of the texts of such cells.
const PATTERNS_OF_TYPED: [&str; 2] = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"];

/// Longest text of a date and time.
const LONGEST: usize = 40;
/// A range that holds every day.
const EVER: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

/// Evidence from the cells of a column for the format of its dates.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Dates {
    /// The cells by their shape.
    families: Families,
}

/// A format of a column's dates.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundDates {
    pub(super) format: DateFormat,
    pub(super) numbers: Numbers,
    /// Line of the first date in another format.
    pub(super) refused: Option<u64>,
}

impl Dates {
    /// Adds a cell; returns false if it is no date or time.
    pub(super) fn see(&mut self, cell: &[u8], line: u64) -> bool {
        let Ok(text) = std::str::from_utf8(cell) else { return false };
        let text = text.trim_matches(is_blank);
        let Some(shape) = shape_of(text) else { return false };
        let read = formats(&shape.replace('m', "b")).map(|format| format.read(text, EVER)).collect::<Vec<_>>();
        self.families.see(&shape, line, &read)
    }

    /// Adds a cell that its source calls a date, in days since 1970-01-01 and nanoseconds of the day; returns false if it is of no
    /// year that is read.
    pub(super) fn see_typed(&mut self, day: i32, nanoseconds: Option<i64>, line: u64) -> bool {
        let [as_date, as_time] = PATTERNS_OF_TYPED
            .map(|pattern| DateFormat { pattern: pattern.to_owned(), part: DatePart::Days }.of_day(day, nanoseconds));
        self.families.see(TYPED, line, &[as_date.filter(|_| nanoseconds.is_none()), as_time])
    }

    /// Adds those of the next cells, whose line numbers do not count the `lines` lines before them.
    pub(super) fn append(&mut self, next: &Self, lines: u64) {
        self.families.append(&next.families, lines);
    }

    /// Returns the number of dates and times.
    pub(super) fn count(&self) -> u64 {
        self.families.count()
    }

    /// Returns the line of the first of them.
    pub(super) fn first(&self) -> Option<u64> {
        self.families.first()
    }

    /// Returns the formats of most of them: two if days and months cannot be distinguished.
    pub(super) fn readings(&self) -> Vec<FoundDates> {
        let mut found: Vec<FoundDates> = Vec::new();
        let has = |shape: &str| self.families.list().iter().any(|family| *family.key == *shape);
        let families = self.families.renamed(|shape| {
            let full = shape.replace('m', "B");
            if has(&full) { full } else { shape.replace('m', "b") }
        });
        for family in families.list() {
            let others = families.list().iter().filter(|other| other.key != family.key).map(|other| other.first);
            let others = others.min();
            for (format, candidate) in formats(&family.key).zip(&family.candidates) {
                let refused = candidate.refused.into_iter().chain(others).min();
                found.push(FoundDates { format, numbers: candidate.numbers.clone(), refused });
            }
        }
        let most = found.iter().map(|found| found.numbers.count).max().unwrap_or(0);
        found.retain(|found| found.numbers.count == most && most > 0);
        if !families.list().iter().any(|family| family.differs) {
            found.truncate(1);
        }
        found
    }
}

/// Returns the formats of a shape.
fn formats(shape: &str) -> impl Iterator<Item = DateFormat> {
    let of_time = |shape: &str| {
        let offset = |(suffix, pattern): &(&str, &'static str)| {
            let time = shape.strip_suffix(suffix)?;
            let found = TIMES.iter().find(|(one, _)| *one == time);
            found.map(|(_, time)| format!("{time}{pattern}"))
        };
        OFFSETS.iter().find_map(offset)
    };
    let of_date = |(date, patterns): &(&str, &'static [&'static str])| {
        let rest = shape.strip_prefix(date)?;
        let time = match rest.chars().next() {
            None => String::new(),
            Some(mark @ (' ' | 'T')) => format!("{mark}{}", of_time(&rest[1..])?),
            _ => return None,
        };
        Some((*patterns, time))
    };
    let (patterns, time, part) = match DATES.iter().find_map(of_date) {
        _ if shape == TYPED => (&PATTERNS_OF_TYPED[..], String::new(), DatePart::Days),
        Some((patterns, time)) => (patterns, time, DatePart::Days),
        None => (&[""][..], of_time(shape).unwrap_or_default(), DatePart::Hour),
    };
    let pattern = move |date: &&str| DateFormat { pattern: format!("{date}{time}"), part };
    patterns.iter().map(pattern).filter(|format| !format.pattern.is_empty())
}

/// Returns the shape of a text that may be a date or a time.
fn shape_of(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    if bytes.len() > LONGEST || !text.is_ascii() || !bytes.iter().any(u8::is_ascii_digit) {
        return None;
    }
    let mut shape = String::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let run = |is: fn(&u8) -> bool| bytes[at..].iter().take_while(|byte| is(byte)).count();
        let (digits, letters) = (run(u8::is_ascii_digit), run(u8::is_ascii_alphabetic));
        at += digits.max(letters).max(1);
        match (digits, letters) {
            (1 | 2, _) => shape.push('2'),
            (4, _) => shape.push('4'),
            (0, 0) if byte == b'.' && shape.ends_with(":2:2") => {
                // The fraction of a second.
                at += bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                shape.push('f');
            }
            // The sign of an offset.
            (0, 0) if byte == b'-' && shape.contains(':') => shape.push('+'),
            (0, 0) if b"-./:, +".contains(&byte) => shape.push(byte as char),
            (0, _) => shape.push(letter_of(&text[at - letters..at])?),
            _ => return None,
        }
    }
    Some(shape)
}

/// Returns what stands for a word in a shape.
fn letter_of(word: &str) -> Option<char> {
    let lower = word.to_ascii_lowercase();
    match lower.as_str() {
        "t" => Some('T'),
        "z" => Some('Z'),
        "am" | "pm" => Some('p'),
        "may" => Some('m'),
        _ if MONTHS.contains(&lower.as_str()) => Some('B'),
        _ if lower.len() == 3 && MONTHS.iter().any(|month| month.starts_with(&lower)) => Some('b'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::date_text;

    fn readings(cells: &[&str]) -> Vec<(String, String, String)> {
        let mut dates = Dates::default();
        for (cell, line) in cells.iter().zip(2..) {
            dates.see(cell.as_bytes(), line);
        }
        let shown =
            |found: FoundDates| (found.format.pattern, date_text(found.numbers.min), date_text(found.numbers.max));
        dates.readings().into_iter().map(shown).collect()
    }

    #[test]
    fn patterns_are_found_by_what_they_read() {
        for (cells, pattern, min, max) in [
            (&["2024-01-31", "2023-12-01"][..], "%Y-%m-%d", "2023-12-01", "2024-01-31"),
            (&["1.2.2024", "31.12.2024"], "%d.%m.%Y", "2024-02-01", "2024-12-31"),
            (&["1/2/2024", "12/31/2024"], "%m/%d/%Y", "2024-01-02", "2024-12-31"),
            (&["1/2/2024", "31/12/2024"], "%d/%m/%Y", "2024-02-01", "2024-12-31"),
            (&["3-Feb-2024", "14-MAY-2024"], "%d-%b-%Y", "2024-02-03", "2024-05-14"),
            (&["March 3, 2024"], "%B %d, %Y", "2024-03-03", "2024-03-03"),
            (&["May 1, 2024", "March 3, 2024", "May 31, 2024"], "%B %d, %Y", "2024-03-03", "2024-05-31"),
            (&["May 1, 2024", "Mar 3, 2024"], "%b %d, %Y", "2024-03-03", "2024-05-01"),
            (&["3-May-2024"], "%d-%b-%Y", "2024-05-03", "2024-05-03"),
            (&["2024-01-31T06:00:00Z"], "%Y-%m-%dT%H:%M:%SZ", "2024-01-31T06:00:00", "2024-01-31T06:00:00"),
            (
                &["2024-01-31 06:00:00.250+02:00"],
                "%Y-%m-%d %H:%M:%S%.f%:z",
                "2024-01-31T06:00:00",
                "2024-01-31T06:00:00",
            ),
            (&["31/01/2024 6:30 PM"], "%d/%m/%Y %I:%M %p", "2024-01-31T18:30:00", "2024-01-31T18:30:00"),
        ] {
            assert_eq!(readings(cells), [(pattern.to_owned(), min.to_owned(), max.to_owned())], "{cells:?}");
        }
        assert_eq!(readings(&["2/3/2024", "4/5/2024"]).len(), 2, "day or month");
        assert_eq!(readings(&["2/2/2024", "4/4/2024"]).len(), 1, "the same days");
        assert_eq!(readings(&["10:30", "6:00"])[0].0, "%H:%M");
        for cell in ["2024", "12-34", "1.5", "x 1.1.2024", "31.2.2024", "2024-13-01", "1-2-3-4", "May", ""] {
            assert_eq!(readings(&[cell]), [], "{cell}");
        }
    }

    #[test]
    fn every_shape_has_patterns_that_can_be_used() {
        for (date, patterns) in DATES {
            for (time, of_time) in TIMES {
                for mark in [' ', 'T'] {
                    let found: Vec<_> = formats(&format!("{date}{mark}{time}")).map(|format| format.pattern).collect();
                    let expected: Vec<_> = patterns.iter().map(|date| format!("{date}{mark}{of_time}")).collect();
                    assert_eq!(found, expected);
                }
            }
        }
        assert_eq!(formats("2-2").count(), 0);
    }
}
