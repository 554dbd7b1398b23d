//! The statistics of the label column.

use std::collections::{BTreeMap, HashSet};

use crate::draft::column::USUAL_MARKERS;
use crate::draft::families::Numbers;
use crate::draft::written::{Marks, Written};
use crate::encode::parse_number;
use crate::schema::NumberFormat;

/// Maximum number of stored values of a label; a column with more is not a label.
const MOST_LABELS: usize = 1000;

/// The values of the label column with their counts.
#[derive(Default)]
pub(in crate::draft) struct LabelSurvey {
    counts: BTreeMap<Box<[u8]>, u64>,
    overflowed: bool,
    /// Plain numbers.
    numbers: Numbers,
    /// Evidence for the format of the numbers.
    written: Written,
    /// True if every plain number is an integer.
    whole: bool,
    /// True if some cell is neither a number nor a usual marker of missing values.
    text: bool,
    /// True if some cell is such a marker, other than the empty cell.
    markers: bool,
}

impl LabelSurvey {
    /// Adds a cell of a record that starts on this line.
    pub(in crate::draft) fn see(&mut self, cell: &[u8], line: u64) {
        let cell = cell.trim_ascii();
        if let Some(number) = parse_number(cell) {
            self.whole = number.fract() == 0.0 && (self.whole || self.numbers.count == 0);
            self.numbers.see(number);
            self.written.see_plain(cell, number, line);
        } else if USUAL_MARKERS.iter().any(|marker| marker.as_bytes() == cell) {
            self.markers |= !cell.is_empty();
        } else {
            self.text |= !self.written.see(cell, line);
        }
        if !cell.is_empty() {
            self.count(cell, 1);
        }
    }

    /// Counts a value. The first values in their order are stored, so that the order of the records does not matter.
    fn count(&mut self, value: &[u8], more: u64) {
        if let Some(count) = self.counts.get_mut(value) {
            *count += more;
            return;
        }
        if self.counts.len() >= MOST_LABELS {
            self.overflowed = true;
            match self.counts.last_key_value() {
                Some((last, _)) if value < &**last => drop(self.counts.pop_last()),
                _ => return,
            }
        }
        self.counts.insert(value.into(), more);
    }

    /// Adds the statistics of the next cells, whose line numbers do not count the `lines` lines before them.
    pub(in crate::draft) fn append(&mut self, other: &Self, lines: u64) {
        self.whole = match (self.numbers.count, other.numbers.count) {
            (0, _) | (_, 0) => self.whole || other.whole,
            _ => self.whole && other.whole,
        };
        self.numbers.append(&other.numbers);
        self.written.append(&other.written, lines);
        self.text |= other.text;
        self.markers |= other.markers;
        self.overflowed |= other.overflowed;
        other.counts.iter().for_each(|(value, &count)| self.count(value, count));
    }

    /// Returns the values, unless there are too many or some are no text.
    pub(in crate::draft) fn values(&self) -> Option<Vec<String>> {
        let texts = self.counts.keys().map(|value| String::from_utf8(value.to_vec()).ok());
        if self.overflowed { None } else { texts.collect::<Option<_>>().map(|texts| self.distinct(texts)) }
    }

    /// Returns the range and the format of the numbers, if all values are numbers of one format or markers of missing values.
    pub(in crate::draft) fn range(&self, marks: Marks) -> Option<(f64, f64, Option<NumberFormat>)> {
        let found = self.written.reading(&self.numbers).decided(marks).ok()?;
        let is_all = !self.text && found.numbers.count == self.numbers.count + self.written.count();
        (is_all && found.numbers.count > 0).then_some((found.numbers.min, found.numbers.max, found.format))
    }

    /// Returns whether every number is a plain integer.
    pub(in crate::draft) fn is_whole(&self) -> bool {
        self.whole && self.written.count() == 0
    }

    /// Returns whether all values are plain numbers or markers of missing ones.
    pub(in crate::draft) fn is_plain(&self) -> bool {
        !self.text && self.numbers.count > 0 && self.written.count() == 0
    }

    /// Returns whether some values are markers of missing ones.
    pub(in crate::draft) fn has_markers(&self) -> bool {
        self.markers
    }

    /// Returns the values without repetitions of the same number, with numbers in increasing order.
    fn distinct(&self, values: Vec<String>) -> Vec<String> {
        let mut seen = HashSet::new();
        let is_new =
            |value: &String| parse_number(value.as_bytes()).is_none_or(|number| seen.insert((number + 0.0).to_bits()));
        let mut distinct: Vec<String> = values.into_iter().filter(is_new).collect();
        if self.is_plain() {
            let number = |value: &String| parse_number(value.as_bytes()).unwrap_or(f64::INFINITY);
            distinct.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        distinct
    }

    /// Returns whether a row may contain this value, as text or as the same number.
    pub(in crate::draft) fn holds(&self, wanted: &str) -> bool {
        self.overflowed || self.counts.keys().any(|value| same(value, wanted.as_bytes()))
    }

    pub(in crate::draft) fn same(&self, a: &str, b: &str) -> bool {
        same(a.as_bytes(), b.as_bytes())
    }

    /// Returns whether the first of two classes, each by its spellings, is more likely the positive one, and the reason.
    pub(in crate::draft) fn is_likely_positive(&self, a: &[String], b: &[String]) -> (bool, &'static str) {
        if let ([x], [y]) = (a, b)
            && let (Some(x), Some(y)) = (parse_number(x.as_bytes()), parse_number(y.as_bytes()))
        {
            return (x > y, "the larger of the two numbers");
        }
        let count =
            |class: &[String]| -> u64 { class.iter().filter_map(|value| self.counts.get(value.as_bytes())).sum() };
        (count(a) < count(b), "the rarer of the two values")
    }

    /// Returns a description for the curator.
    pub(in crate::draft) fn describe(&self) -> String {
        let shown: Vec<_> = self
            .counts
            .keys()
            .take(8)
            .map(|value| format!("`{}`", String::from_utf8_lossy(value).escape_debug()))
            .collect();
        let more = if self.counts.len() > shown.len() || self.overflowed { " and more" } else { "" };
        if shown.is_empty() { "no values".into() } else { format!("the values {}{more}", shown.join(", ")) }
    }
}

fn same(a: &[u8], b: &[u8]) -> bool {
    a == b || matches!((parse_number(a), parse_number(b)), (Some(x), Some(y)) if x == y)
}
