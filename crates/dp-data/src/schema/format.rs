//! Formats of cells: numbers with separators and units, dates, texts for 1 and 0.

use jiff::civil::{Date, DateTime, Time, date};
use jiff::fmt::strtime::{self, BrokenDownTime};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::{Column, ColumnKind, Label, LabelKind, OnUnknown};
use crate::error::{DataError, DataErrorKind};

/// The format of a column's cells, if they are neither plain decimal numbers nor categories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum CellFormat {
    /// Numbers of a [numeric](ColumnKind::Numeric) column.
    Number(NumberFormat),
    /// Dates and times.
    Date(DateFormat),
    /// The texts of an [indicator](ColumnKind::Indicator).
    Flag {
        /// Those for 1.
        one: Vec<String>,
        /// Those for 0.
        zero: Vec<String>,
    },
}

/// Numbers as people write them: `1.234,50 €`, `12 %`, `(1,250.00)`.
///
/// Groups of digits must be complete: with `thousands = ','`, `1,234` is a number and `1,23` is not, so that no decimal comma is taken
/// for a separator. A number in parentheses is negative. The sign, which may be `−`, is before or after a unit that comes first.
/// The default, without separator and units, also reads plain decimal numbers such as `1e5`.
///
/// # Examples
/// ```
/// use dp_data::schema::NumberFormat;
///
/// let german = NumberFormat { decimal: ',', thousands: Some('.'), units: vec!["€".into()] };
/// assert_eq!(german.read("-1.234,50 €"), Some(-1234.5));
/// assert_eq!((german.read("1.23,5 €"), german.read("1.234,50 $"), german.read("12,5")), (None, None, None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberFormat {
    /// The mark before the fraction: `.` or `,`.
    pub decimal: char,
    /// The mark between groups of three digits: `,`, `.`, `'`, `_` or a blank. A blank also stands for a no-break space, and
    /// `'` also for `’`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thousands: Option<char>,
    /// The units, one of which stands before or after each number, with or without blanks between. An empty unit, or an empty
    /// list, stands for none. The number is in this unit: `12 %` is 12.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<String>,
}

/// The marks between groups of digits.
const THOUSANDS: [char; 5] = [',', '.', ' ', '\'', '_'];
/// Maximum number of units of a column.
const MOST_UNITS: usize = 100;
/// Numbers with more digits are not read.
const MOST_DIGITS: usize = 100;

impl Default for NumberFormat {
    fn default() -> Self {
        Self { decimal: '.', thousands: None, units: Vec::new() }
    }
}

/// Returns whether a character is a blank, including no-break and thin spaces.
pub(crate) fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || matches!(c, '\u{a0}' | '\u{2009}' | '\u{202f}')
}

impl NumberFormat {
    /// Returns the number in a cell, if it has this format and is finite.
    pub fn read(&self, cell: &str) -> Option<f64> {
        if *self == Self::default()
            && let Ok(number) = fast_float2::parse::<f64, _>(cell.trim_ascii())
        {
            return number.is_finite().then_some(number);
        }
        let text = cell.trim_matches(is_blank);
        let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
        let (is_negative, text) = match inner {
            Some(text) => (true, text.trim_matches(is_blank)),
            None => signed(text)?,
        };
        let (before, text) = self.without_unit(text)?;
        // A sign between unit and number.
        let (is_negative, text) = match (before && !is_negative).then(|| signed(text)).flatten() {
            Some(found) => found,
            None => (is_negative, text),
        };
        let magnitude = self.magnitude(text)?;
        Some(if is_negative { -magnitude } else { magnitude })
    }

    /// Returns a number written in this way, for messages.
    pub(crate) fn example(&self) -> String {
        let thousands = self.thousands.map_or(String::new(), String::from);
        let unit = self.units.first().map_or(String::new(), |unit| format!(" {unit}"));
        format!("1{thousands}234{}5{unit}", self.decimal)
    }

    /// Returns the text without its unit, and whether that came first; `None` if it has none of the units.
    fn without_unit<'t>(&self, text: &'t str) -> Option<(bool, &'t str)> {
        if self.units.is_empty() {
            return Some((false, text));
        }
        let is_number = |rest: &str| rest.contains(|c: char| c.is_ascii_digit());
        let mut units: Vec<&str> = self.units.iter().map(String::as_str).collect();
        // `kg/m` before `m`.
        units.sort_by_key(|unit| core::cmp::Reverse(unit.len()));
        units.into_iter().find_map(|unit| {
            if unit.is_empty() {
                return Some((false, text));
            }
            let after = text.strip_suffix(unit).map(|rest| (false, rest.trim_end_matches(is_blank)));
            let before = || text.strip_prefix(unit).map(|rest| (true, rest.trim_start_matches(is_blank)));
            after.or_else(before).filter(|(_, rest)| is_number(rest))
        })
    }

    /// Returns the number of digits, separators and a fraction.
    fn magnitude(&self, text: &str) -> Option<f64> {
        let mut digits = [0; MOST_DIGITS];
        let (mut length, mut of_group, mut groups) = (0, 0, 0);
        let mut push = |byte: u8| {
            *digits.get_mut(length)? = byte;
            length += 1;
            Some(())
        };
        let mut rest = text.chars();
        let mut has_digits = false;
        let mut has_fraction = false;
        for c in rest.by_ref() {
            if c.is_ascii_digit() {
                push(c as u8)?;
                (of_group, has_digits) = (of_group + 1, true);
            } else if c == self.decimal {
                push(b'.')?;
                has_fraction = true;
                break;
            } else if self.is_separator(c) {
                // `0,049` has a decimal comma: nobody separates thousands after a leading 0.
                let is_whole = match groups {
                    0 => (1..=3).contains(&of_group) && !text.starts_with('0'),
                    _ => of_group == 3,
                };
                if !is_whole {
                    return None;
                }
                (of_group, groups) = (0, groups + 1);
            } else {
                return None;
            }
        }
        if groups > 0 && of_group != 3 {
            return None;
        }
        for c in rest {
            if !c.is_ascii_digit() {
                return None;
            }
            push(c as u8)?;
            has_digits = true;
        }
        if !has_digits || (has_fraction && length == 1) {
            return None;
        }
        let number: f64 = fast_float2::parse(&digits[..length]).ok()?;
        number.is_finite().then_some(number)
    }

    fn is_separator(&self, c: char) -> bool {
        match self.thousands {
            Some(' ') => c == ' ' || (is_blank(c) && !c.is_ascii()),
            Some('\'') => c == '\'' || c == '\u{2019}',
            mark => mark == Some(c),
        }
    }

    fn check(&self) -> Result<(), &'static str> {
        if !matches!(self.decimal, '.' | ',') {
            return Err("`decimal` is neither \".\" nor \",\"");
        }
        if self.thousands.is_some_and(|mark| !THOUSANDS.contains(&mark) || mark == self.decimal) {
            return Err("`thousands` is none of \",\", \".\", \" \", \"'\" and \"_\", or the same as `decimal`");
        }
        let is_usable = |unit: &String| {
            unit.trim_matches(is_blank) == unit
                && !unit.contains(|c: char| c.is_ascii_digit() || matches!(c, '(' | ')' | '+' | '-' | '\u{2212}'))
                && !unit.starts_with(['.', ','])
        };
        if self.units.len() > MOST_UNITS || !self.units.iter().all(is_usable) {
            return Err("a unit has digits, signs, parentheses, blanks around it or a mark of numbers in front");
        }
        Ok(())
    }
}

/// Returns whether a number is negative, and its text without the sign.
fn signed(text: &str) -> Option<(bool, &str)> {
    let rest = text.strip_prefix('-').or_else(|| text.strip_prefix('\u{2212}'));
    Some(match (rest, text.strip_prefix('+')) {
        (Some(rest), _) => (true, rest.trim_start_matches(is_blank)),
        (None, Some(rest)) => (false, rest.trim_start_matches(is_blank)),
        (None, None) => (false, text),
    })
}

/// Dates or times, and the part of them that is used.
///
/// The pattern is one of `strftime`: `%Y-%m-%d`, `%d.%m.%Y %H:%M`. Days and months may have one digit; a year has four (`%Y`)
/// or two (`%y`). Years of two digits are taken from the century that puts the day within the range of the column, which must
/// then be shorter than 100 years; a day outside of it in every century cannot be read. An offset (`%z`) is read and ignored:
/// weekday and hour are as written.
///
/// # Examples
/// ```
/// use dp_data::schema::{DateFormat, DatePart};
///
/// let part = |part| DateFormat { pattern: "%d.%m.%Y %H:%M".into(), part };
/// let cell = "4.7.2024 18:00"; // a Thursday
/// assert_eq!(part(DatePart::Days).read(cell, (0.0, 1e5)), Some(19908.75));
/// assert_eq!(part(DatePart::Weekday).read(cell, (0.0, 1e5)), Some(3.0));
/// assert_eq!(part(DatePart::Month).read("4.13.2024 18:00", (0.0, 1e5)), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DateFormat {
    /// The pattern.
    pub pattern: String,
    /// The part.
    pub part: DatePart,
}

/// The part of a date or time that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DatePart {
    /// The days since 1970-01-01, with the time as a fraction, if the pattern has one: a number.
    Days,
    /// The day of the week: a category, `Mon` to `Sun`.
    Weekday,
    /// The month: a category, `Jan` to `Dec`.
    Month,
    /// The hours since midnight: a number, from 0 to 24.
    Hour,
}

impl DatePart {
    /// Returns the categories of the part; `None` for a number.
    ///
    /// # Examples
    /// ```
    /// use dp_data::schema::DatePart;
    /// assert_eq!(DatePart::Weekday.categories().map(|days| days[0]), Some("Mon"));
    /// assert!(DatePart::Days.categories().is_none());
    /// ```
    pub fn categories(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Weekday => Some(&["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]),
            Self::Month => Some(&["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]),
            Self::Days | Self::Hour => None,
        }
    }

    /// Every part by the type of its columns in a schema.
    pub(crate) const WORDS: [(&'static str, Self); 4] =
        [("date", Self::Days), ("weekday", Self::Weekday), ("month", Self::Month), ("hour", Self::Hour)];
}

/// The day from which days are counted.
const EPOCH: Date = date(1970, 1, 1);
/// Earlier years have fewer than four digits and are refused: `%Y` would read `24` as a year.
const FIRST_YEAR: i16 = 1000;
/// 1000-01-01 and 9999-12-31, in days since 1970-01-01: earlier and later days are not read.
pub(crate) const FIRST_DAY: i32 = -354_285;
pub(crate) const LAST_DAY: i32 = 2_932_896;

impl DateFormat {
    /// Returns the part of a cell, if it has this format; for a category its position. `range` are the least and the greatest
    /// day of the column, for years of two digits.
    pub fn read(&self, cell: &str, range: (f64, f64)) -> Option<f64> {
        self.parse(cell).and_then(|when| self.part_of(when, range))
    }

    /// Returns the part of a day (in days since 1970-01-01) and a time (in nanoseconds; midnight if missing), as it would be
    /// read from their text. `None` for a time other than midnight if the pattern has none, and for years that are not read.
    ///
    /// # Examples
    /// ```
    /// use dp_data::schema::{DateFormat, DatePart};
    /// let part = |part, pattern: &str| DateFormat { pattern: pattern.into(), part };
    /// let six_pm = 18 * 3600 * 1_000_000_000;
    /// assert_eq!(part(DatePart::Weekday, "%Y-%m-%d").of_day(19908, None), Some(3.0)); // a Thursday
    /// assert_eq!(part(DatePart::Hour, "%Y-%m-%d %H").of_day(19908, Some(six_pm)), Some(18.0));
    /// assert_eq!(part(DatePart::Days, "%Y-%m-%d").of_day(19908, Some(six_pm)), None);
    /// ```
    pub fn of_day(&self, day: i32, time: Option<i64>) -> Option<f64> {
        if self.part == DatePart::Hour {
            return Some(24.0 * days_of(0, time.unwrap_or(0)));
        }
        // Years up to 9999 and as far before.
        let date =
            (day.unsigned_abs() < 3_000_000).then(|| EPOCH.checked_add(jiff::Span::new().days(day)).ok()).flatten()?;
        if date.year() < FIRST_YEAR || (time.is_some_and(|time| time != 0) && !self.has_time()) {
            return None;
        }
        Some(match self.part {
            DatePart::Weekday => f64::from(date.weekday().to_monday_zero_offset()),
            DatePart::Month => f64::from(date.month() - 1),
            DatePart::Days | DatePart::Hour => days_of(day, time.unwrap_or(0)),
        })
    }

    fn parse(&self, cell: &str) -> Option<BrokenDownTime> {
        strtime::parse(&self.pattern, cell.trim_matches(is_blank)).ok()
    }

    fn part_of(&self, when: BrokenDownTime, range: (f64, f64)) -> Option<f64> {
        // Midnight if the pattern has no time.
        let time = || if self.has_time() { when.to_time().ok() } else { Some(Time::midnight()) };
        if self.part == DatePart::Hour {
            return Some(24.0 * share_of_day(when.to_time().ok()?));
        }
        let mut day = when.to_date().ok()?;
        if self.has_short_year() {
            day = within(day, range)?;
        }
        if day.year() < FIRST_YEAR {
            return None;
        }
        Some(match self.part {
            DatePart::Weekday => f64::from(day.weekday().to_monday_zero_offset()),
            DatePart::Month => f64::from(day.month() - 1),
            DatePart::Days | DatePart::Hour => days(day) + share_of_day(time()?),
        })
    }

    /// Writes a day and the seconds since its midnight; `None` for a day that there is not.
    pub(crate) fn write(&self, day: i32, seconds: u32) -> Option<String> {
        let span = jiff::Span::new().days(day).seconds(i64::from(seconds));
        let when = EPOCH.at(0, 0, 0, 0).checked_add(span).ok()?.to_zoned_datetime(TimeZone::UTC).ok()?;
        strtime::format(&self.pattern, &when).ok()
    }

    /// Returns whether there is a time of day.
    pub(crate) fn has_time(&self) -> bool {
        self.directives().any(|directive| b"HIklRTs".contains(&directive))
    }

    /// Returns whether years have two digits.
    pub(crate) fn has_short_year(&self) -> bool {
        self.directives().any(|directive| b"yDg".contains(&directive))
    }

    /// Returns the letters of the pattern's directives.
    fn directives(&self) -> impl Iterator<Item = u8> {
        let mut bytes = self.pattern.bytes();
        core::iter::from_fn(move || {
            bytes.by_ref().find(|byte| *byte == b'%')?;
            // Flags, widths and colons stand before the letter.
            bytes.by_ref().find(|byte| byte.is_ascii_alphabetic() || *byte == b'%')
        })
    }

    /// Checks that the pattern gives the part.
    fn check(&self, range: (f64, f64)) -> Result<(), &'static str> {
        let (day, time) = (date(2001, 12, 30), Time::constant(22, 0, 0, 0));
        // A pattern that loses a part of the date reads it back as another or as none.
        let written =
            DateTime::from_parts(day, time).to_zoned_datetime(TimeZone::UTC).map_err(|_| "there is no such day")?;
        let written = strtime::format(&self.pattern, &written)
            .map_err(|_| "`format` is no pattern such as \"%Y-%m-%d\" or \"%d.%m.%Y %H:%M\"")?;
        let read = self.parse(&written).ok_or("`format` cannot be read back")?;
        match self.part {
            DatePart::Hour if read.to_time().ok() != Some(time) => Err("`format` gives no hour"),
            DatePart::Hour => Ok(()),
            _ if read.to_date().ok() != Some(day) => Err("`format` gives no day, month and year"),
            DatePart::Days if self.has_short_year() && !(range.1 - range.0 < 36524.0) => {
                Err("years of two digits need a range of less than 100 years")
            }
            DatePart::Weekday | DatePart::Month if self.has_short_year() => {
                Err("a part of a date needs years of four digits")
            }
            _ => Ok(()),
        }
    }
}

/// Returns the day in the century that puts it within the range.
fn within(day: Date, (min, max): (f64, f64)) -> Option<Date> {
    let of_century = |century: i16| Date::new(100 * century + day.year() % 100, day.month(), day.day()).ok();
    let is_within = |day: &Date| (min.floor()..=max).contains(&days(*day));
    (10..=99).filter_map(of_century).find(is_within)
}

fn days(day: Date) -> f64 {
    // At most 4 million.
    EPOCH.until(day).map_or(f64::NAN, |span| f64::from(span.get_days()))
}

fn share_of_day(time: Time) -> f64 {
    let seconds = 3600 * i32::from(time.hour()) + 60 * i32::from(time.minute()) + i32::from(time.second());
    (f64::from(seconds) + f64::from(time.subsec_nanosecond()) * 1e-9) / 86400.0
}

/// Returns the days since 1970-01-01 of a day and a time in nanoseconds: the number that their text has.
pub(crate) fn days_of(day: i32, nanoseconds: i64) -> f64 {
    const SECOND: i64 = 1_000_000_000;
    let (seconds, rest) = (nanoseconds / SECOND, nanoseconds % SECOND);
    f64::from(day) + (seconds as f64 + rest as f64 * 1e-9) / 86400.0
}

/// Returns the day and time of a number of days since 1970-01-01 as text, such as `2024-07-04` or `2024-07-04T18:00:00`.
///
/// # Examples
/// ```
/// use dp_data::schema::date_text;
/// assert_eq!((date_text(19908.0).as_str(), date_text(19908.75).as_str()), ("2024-07-04", "2024-07-04T18:00:00"));
/// assert_eq!(date_text(1e9), "1000000000");
/// ```
pub fn date_text(number: f64) -> String {
    let seconds = (number * 86400.0).round();
    let start = EPOCH.at(0, 0, 0, 0);
    // Years up to 9999; the number, where there is no such day.
    let when = (seconds.abs() < 4e11)
        .then(|| start.checked_add(jiff::SignedDuration::from_secs(seconds as i64)).ok())
        .flatten()
        .filter(|when| when.year() > 0);
    match when {
        Some(when) if when.time() == Time::midnight() => when.date().to_string(),
        Some(when) => when.to_string(),
        None => format!("{number}"),
    }
}

/// Returns the days since 1970-01-01 of a text such as `2024-07-04` or `2024-07-04T18:00:00`.
pub(crate) fn date_of_text(text: &str) -> Option<f64> {
    let when: DateTime = text.parse().or_else(|_| text.parse().map(|day: Date| day.at(0, 0, 0, 0))).ok()?;
    Some(days(when.date()) + share_of_day(when.time()))
}

/// Checks that the format of a column fits its kind, and can be used.
pub(super) fn check(column: &Column) -> Result<(), DataError> {
    let Some(format) = &column.format else { return Ok(()) };
    let checked = match (format, &column.kind) {
        (CellFormat::Number(number), ColumnKind::Numeric { .. }) => number.check(),
        (CellFormat::Date(format), ColumnKind::Numeric { min, max, log1p, .. }) => match format.part.categories() {
            None if !log1p => format.check((*min, *max)),
            _ => Err("the format does not fit the type of the column"),
        },
        (CellFormat::Date(format), ColumnKind::Categorical { categories, on_unknown }) => {
            match format.part.categories() {
                Some(fixed) if fixed == categories && *on_unknown != OnUnknown::Other => format.check((0.0, 0.0)),
                _ => Err("the format does not fit the type of the column"),
            }
        }
        (CellFormat::Flag { one, zero }, ColumnKind::Indicator { .. }) => check_flag(one, zero),
        _ => Err("the format does not fit the type of the column"),
    };
    checked.map_err(|why| {
        DataError::new(DataErrorKind::SchemaFormat, format!("column `{}`: {why}", column.name))
            .at_column(&column.name)
            .at_field(format!("columns.{}", column.name))
    })
}

pub(super) fn check_label(format: &NumberFormat, label: &Label) -> Result<(), DataError> {
    let checked = match label.kind {
        LabelKind::Number(_) => format.check(),
        _ => Err("only numbers have a format"),
    };
    checked.map_err(|why| {
        DataError::new(DataErrorKind::SchemaFormat, format!("the label: {why}"))
            .at_column(&label.column)
            .at_field("label.decimal")
    })
}

fn check_flag(one: &[String], zero: &[String]) -> Result<(), &'static str> {
    match one.iter().any(|text| zero.contains(text)) {
        true => Err("a text is both in `one` and in `zero`"),
        false if one.is_empty() || zero.is_empty() => Err("`one` or `zero` lists no text"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(decimal: char, thousands: Option<char>, units: &[&str]) -> NumberFormat {
        NumberFormat { decimal, thousands, units: units.iter().map(|&unit| unit.to_owned()).collect() }
    }

    #[test]
    fn numbers_are_read_as_written_or_not_at_all() {
        let english = format('.', Some(','), &[]);
        let plain = NumberFormat::default();
        let german = format(',', Some('.'), &[]);
        let french = format(',', Some(' '), &["€", ""]);
        let swiss = format('.', Some('\''), &["CHF"]);
        let dollars = format('.', Some(','), &["$", "USD"]);
        for (format, cell, number) in [
            (&english, "12,345.60", Some(12345.6)),
            (&english, " 1,234,567 ", Some(1_234_567.0)),
            (&english, "(1,250.00)", Some(-1250.0)),
            (&english, "-0.5", Some(-0.5)),
            (&english, ".5", Some(0.5)),
            (&english, "5.", Some(5.0)),
            (&english, "\u{2212}7", Some(-7.0)),
            (&english, "+7", Some(7.0)),
            (&english, "1234.5", Some(1234.5)),
            (&english, "1,23", None),
            (&english, "1,2345", None),
            (&english, ",123", None),
            (&english, "1234,567", None),
            (&english, "0,049", None),
            (&english, "1,,234", None),
            (&english, "1.234,5", None),
            (&english, "1,234.5,6", None),
            (&english, "", None),
            (&english, ".", None),
            (&english, "-", None),
            (&english, "--5", None),
            (&english, "(-5)", None),
            (&english, "12 kg", None),
            (&english, "1e5", None),
            (&english, "nan", None),
            (&plain, "1e5", Some(1e5)),
            (&plain, "(62)", Some(-62.0)),
            (&plain, "\u{2212}6.5", Some(-6.5)),
            (&plain, "- 5", Some(-5.0)),
            (&plain, "1e999", None),
            (&plain, "inf", None),
            (&plain, "1,234", None),
            (&german, "12.345,60", Some(12345.6)),
            (&german, "0,5", Some(0.5)),
            (&german, "1.234", Some(1234.0)),
            (&german, "1.23", None),
            (&german, "12.5", None),
            (&french, "1 234,5 €", Some(1234.5)),
            (&french, "1\u{a0}234\u{202f}567,5", Some(1_234_567.5)),
            (&french, "€12", Some(12.0)),
            (&french, "1  234", None),
            (&swiss, "CHF 1'234.50", Some(1234.5)),
            (&swiss, "CHF 1\u{2019}234.50", Some(1234.5)),
            (&swiss, "1'234.50", None),
            (&dollars, "$1,234.50", Some(1234.5)),
            (&dollars, "-$5", Some(-5.0)),
            (&dollars, "$-5", Some(-5.0)),
            (&dollars, "-$-5", None),
            (&dollars, "($5)", Some(-5.0)),
            (&dollars, "5 USD", Some(5.0)),
            (&dollars, "$", None),
            (&dollars, "5k $", None),
            (&dollars, "5 USD $", None),
        ] {
            assert_eq!(format.read(cell), number, "{cell} {format:?}");
        }
        assert_eq!(english.read(&"9".repeat(101)), None);
    }

    #[test]
    fn units_of_which_one_ends_another_are_told_apart() {
        let format = format('.', None, &["m", "km", "m²"]);
        assert_eq!(format.read("5 km"), Some(5.0));
        assert_eq!(format.read("5 m²"), Some(5.0));
        assert_eq!(format.read("5 cm"), None);
    }

    fn date_format(pattern: &str, part: DatePart) -> DateFormat {
        DateFormat { pattern: pattern.to_owned(), part }
    }

    #[test]
    fn dates_are_read_as_written_or_not_at_all() {
        let range = (date_of_text("1930-01-01").unwrap(), date_of_text("2025-12-31").unwrap());
        for (pattern, cell, day) in [
            ("%d.%m.%Y", "31.12.2024", Some("2024-12-31")),
            ("%d.%m.%Y", " 1.2.2024 ", Some("2024-02-01")),
            ("%d.%m.%Y", "31.12.24", None),
            ("%d.%m.%Y", "30.2.2024", None),
            ("%d.%m.%Y", "12/31/2024", None),
            ("%d.%m.%Y", "31.12.2024 10:00", None),
            ("%d.%m.%Y", "31.12.-2024", None),
            ("%m/%d/%Y", "2/3/2024", Some("2024-02-03")),
            ("%d-%b-%Y", "3-feb-2024", Some("2024-02-03")),
            ("%d.%m.%y", "5.6.50", Some("1950-06-05")),
            ("%d.%m.%y", "5.6.24", Some("2024-06-05")),
            ("%d.%m.%y", "5.6.30", Some("1930-06-05")),
            ("%d.%m.%y", "29.2.00", Some("2000-02-29")),
            ("%d.%m.%y", "5.6.29", None),
            ("%Y-%m-%d %H:%M", "2024-02-03 12:00", Some("2024-02-03T12:00:00")),
            ("%Y-%m-%dT%H:%M:%S%z", "2024-02-03T00:00:00+0200", Some("2024-02-03")),
            ("%Y-%m-%d %H:%M", "2024-02-03 25:00", None),
        ] {
            let format = date_format(pattern, DatePart::Days);
            assert_eq!(format.check(range), Ok(()), "{pattern}");
            assert_eq!(format.read(cell, range), day.map(|day| date_of_text(day).unwrap()), "{cell}");
        }
        let parts = |part| date_format("%m/%d/%Y %I:%M %p", part).read("07/04/2024 06:30 PM", (0.0, 0.0));
        assert_eq!(
            (parts(DatePart::Weekday), parts(DatePart::Month), parts(DatePart::Hour)),
            (Some(3.0), Some(6.0), Some(18.5))
        );
        assert_eq!(date_format("%H:%M:%S", DatePart::Hour).read("00:00:36", (0.0, 0.0)), Some(0.01));
    }

    #[test]
    fn typed_days_are_those_of_their_texts() {
        for day in [0, -1, 19_908, -200_000, -360_000, 2_900_000] {
            for seconds in [None, Some(0), Some(1), Some(64_800), Some(86_399)] {
                let time = seconds.map(|seconds: i64| seconds * 1_000_000_000);
                let text = date_text(days_of(day, time.unwrap_or(0)));
                let pattern = if seconds.unwrap_or(0) == 0 { "%Y-%m-%d" } else { "%Y-%m-%dT%H:%M:%S" };
                for part in [DatePart::Days, DatePart::Weekday, DatePart::Month] {
                    let format = date_format(pattern, part);
                    assert_eq!(format.of_day(day, time), format.read(&text, (0.0, 0.0)), "{text} {part:?}");
                }
            }
        }
        let part = |part| date_format("%Y-%m-%dT%H:%M", part);
        assert_eq!(part(DatePart::Hour).of_day(-1, Some(64_800_000_000_000)), Some(18.0));
        assert_eq!(part(DatePart::Hour).of_day(-1, None), Some(0.0));
        assert_eq!(date_format("%Y-%m-%d", DatePart::Days).of_day(5, Some(1)), None);
        // Midnight needs no time.
        assert_eq!(part(DatePart::Days).of_day(5, None), Some(5.0));
        for day in [i32::MIN, -2_000_000, 2_999_999, i32::MAX] {
            assert_eq!(part(DatePart::Days).of_day(day, Some(0)), None);
        }
    }

    #[test]
    fn patterns_without_the_part_are_refused() {
        let century = (0.0, 36000.0);
        for (pattern, part, range) in [
            ("%d.%m.", DatePart::Days, century),
            ("%m/%Y", DatePart::Weekday, century),
            ("%Y-%m-%d", DatePart::Hour, century),
            ("%d.%m.%y", DatePart::Days, (0.0, 40000.0)),
            ("%d.%m.%y", DatePart::Weekday, century),
            ("%Y-%m-%", DatePart::Days, century),
            ("%Y-%m-%d %9Z", DatePart::Days, century),
            ("", DatePart::Days, century),
        ] {
            assert!(date_format(pattern, part).check(range).is_err(), "{pattern}");
        }
        assert_eq!(date_format("%H:%M", DatePart::Hour).check(century), Ok(()));
    }

    #[test]
    fn days_have_their_texts() {
        for text in ["1970-01-01", "1969-12-31", "2024-02-29", "1000-01-01", "9999-12-31", "2024-02-29T23:59:59"] {
            assert_eq!(date_text(date_of_text(text).unwrap()), text);
        }
        assert_eq!(date_of_text("2024-02-30"), None);
        assert_eq!((date_text(f64::NAN), date_text(-1e300)), ("NaN".to_owned(), format!("{}", -1e300)));
    }
}
