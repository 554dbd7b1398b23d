//! The statistics of one column collected while a draft reads the file.

use std::collections::{BTreeMap, HashSet};

use super::DraftOptions;
use crate::encode::parse_number;
use crate::schema::{Column, ColumnKind, OTHER_CATEGORY, OnMissing, OnUnknown, OnUnreadable, Review};

/// Texts that usually represent a missing number.
const USUAL_MARKERS: [&str; 10] = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?"];
/// In a numeric column at most one cell in this many may not be a number (which loading then refuses, with its line).
const NUMBERS_TO_ONE: u64 = 9;
/// Maximum number of stored values of a label; a column with more is not a label.
const MOST_LABELS: usize = 1000;
/// Larger numbers count as this one in a column's sum, which then cannot overflow: `2^62`.
const LARGEST: f64 = 4_611_686_018_427_387_904.0;

/// Statistics of a feature column.
pub(super) struct ColumnSurvey {
    numbers: u64,
    others: u64,
    /// Line of the first cell that is neither a number nor a usual marker of missing values.
    unreadable: Option<u64>,
    markers: Vec<&'static str>,
    min: f64,
    max: f64,
    /// The sum of the numbers' integer parts, which is the same in any order.
    sum: i128,
    /// True if every number is 0 or 1.
    zeros_and_ones: bool,
    /// The first and the last number, while each is one more than the number before.
    sequence: Option<(f64, f64)>,
    values: HashSet<Box<[u8]>>,
    /// Those of `values` that were first seen since the last [part](ColumnSurvey::take_part).
    fresh: Vec<Box<[u8]>>,
    max_categories: usize,
    /// First line of the first cell that contains a line end.
    line_end: Option<u64>,
}

impl ColumnSurvey {
    pub(super) fn new(max_categories: usize) -> Self {
        Self {
            numbers: 0,
            others: 0,
            unreadable: None,
            markers: Vec::new(),
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            sum: 0,
            zeros_and_ones: true,
            sequence: None,
            values: HashSet::new(),
            fresh: Vec::new(),
            max_categories,
            line_end: None,
        }
    }

    /// Adds a cell of a record that starts on this line.
    pub(super) fn see(&mut self, cell: &[u8], line: u64) {
        if let Some(number) = parse_number(cell) {
            // One of the two zeros.
            let number = number + 0.0;
            self.sequence = match self.sequence {
                None if self.numbers == 0 => Some((number, number)),
                Some((first, last)) if number - last == 1.0 => Some((first, number)),
                _ => None,
            };
            self.numbers += 1;
            self.min = self.min.min(number);
            self.max = self.max.max(number);
            self.zeros_and_ones &= number == 0.0 || number == 1.0;
            self.sum += i128::from(number.clamp(-LARGEST, LARGEST) as i64);
        } else if let Some(marker) = USUAL_MARKERS.iter().find(|marker| marker.as_bytes() == cell.trim_ascii()) {
            self.see_marker(marker);
        } else {
            self.others += 1;
            self.unreadable.get_or_insert(line);
        }
        self.see_value(cell);
    }

    fn see_marker(&mut self, marker: &'static str) {
        if !self.markers.contains(&marker) {
            self.markers.push(marker);
        }
    }

    fn see_value(&mut self, value: &[u8]) {
        if self.values.len() <= self.max_categories && !self.values.contains(value) {
            self.values.insert(value.into());
            self.fresh.push(value.into());
        }
    }

    /// Returns the statistics since the last part, of whose values those of earlier parts are left out.
    pub(super) fn take_part(&mut self) -> Self {
        let mut part = core::mem::replace(self, Self::new(self.max_categories));
        self.values = core::mem::take(&mut part.values);
        part
    }

    /// Adds the statistics of the next cells, whose lines were counted from the end of `lines` others.
    pub(super) fn append(&mut self, next: &Self, lines: u64) {
        if next.numbers > 0 {
            self.sequence = match (self.sequence, next.sequence) {
                (None, sequence) if self.numbers == 0 => sequence,
                (Some((first, last)), Some((next, end))) if next - last == 1.0 => Some((first, end)),
                _ => None,
            };
        }
        self.numbers += next.numbers;
        self.others += next.others;
        self.min = self.min.min(next.min);
        self.max = self.max.max(next.max);
        self.sum += next.sum;
        self.zeros_and_ones &= next.zeros_and_ones;
        self.unreadable = self.unreadable.or(next.unreadable.map(|line| line + lines));
        self.line_end = self.line_end.or(next.line_end.map(|line| line + lines));
        next.markers.iter().for_each(|marker| self.see_marker(marker));
        next.fresh.iter().for_each(|value| self.see_value(value));
    }

    /// Records that the last seen cell contains a line end, and starts on this line.
    pub(super) fn see_line_end(&mut self, line: u64) {
        self.line_end.get_or_insert(line);
    }

    /// Returns the first line of the first cell that contains a line end.
    pub(super) fn line_end(&self) -> Option<u64> {
        self.line_end
    }

    /// Returns the column, and notes for the reviewer.
    pub(super) fn draft(self, name: &str, options: &DraftOptions) -> (Column, Vec<String>) {
        let mut remarks = Vec::new();
        let column = |kind, missing| Column {
            name: name.to_owned(),
            on_missing: if kind == ColumnKind::Drop { OnMissing::Error } else { OnMissing::Neutral },
            kind,
            missing,
            line_ends: self.line_end.is_some(),
            review: Review::Unreviewed,
        };
        if self.line_end.is_some() {
            remarks.push("Some cells go on over several lines: is it text, or a stray quote?".into());
        }
        let numeric = self.numbers > 0 && self.numbers >= self.others.saturating_mul(NUMBERS_TO_ONE);
        if self.numbers + self.others == 0 {
            remarks.push("Every cell is missing.".into());
            return (column(ColumnKind::Drop, None), remarks);
        }
        if self.values.len() == 1 {
            remarks.push("Every row holds the same value.".into());
            return (column(ColumnKind::Drop, None), remarks);
        }
        if numeric && self.others == 0 && self.markers.is_empty() && self.numbers > 2 && self.sequence.is_some() {
            remarks.push("It numbers the rows.".into());
            return (column(ColumnKind::Drop, None), remarks);
        }
        if numeric {
            return self.draft_numeric(name, options, remarks);
        }
        if self.values.len() > self.max_categories {
            remarks.push(format!("Text with more than {} values.", self.max_categories));
            return (column(ColumnKind::Drop, None), remarks);
        }
        // Markers other than the empty cell are ordinary categories of a text column.
        if self.markers.contains(&"") {
            remarks
                .push("Some cells are empty: their rows count for nothing, unless on_missing is \"category\" or { value = ... }.".into());
        }
        let mut categories: Vec<String> = self
            .values
            .iter()
            .filter(|value| !value.trim_ascii().is_empty())
            .map(|value| String::from_utf8_lossy(value).into_owned())
            .collect();
        categories.sort_unstable();
        let on_unknown =
            if categories.iter().any(|value| value == OTHER_CATEGORY) { OnUnknown::Other } else { OnUnknown::Neutral };
        (column(ColumnKind::Categorical { categories, on_unknown }, None), remarks)
    }

    fn draft_numeric(&self, name: &str, options: &DraftOptions, mut remarks: Vec<String>) -> (Column, Vec<String>) {
        // Skewed towards a range that starts at 0 and spans powers of ten: amounts of money, counts of bytes.
        let mean = self.sum as f64 / self.numbers as f64;
        let skewed = self.min == 0.0 && self.max >= 1000.0 && mean * 20.0 < self.max;
        let log1p = skewed && options.apply_log1p;
        if skewed && !log1p {
            remarks.push("Skewed over powers of ten: `log1p = true` would suit it.".into());
        }
        let mut missing = None;
        if !self.markers.is_empty() {
            let shown: Vec<_> = self.markers.iter().map(|marker| format!("\"{marker}\"")).collect();
            remarks.push(format!(
                "Cells hold {}: their rows count for nothing, unless on_missing is {{ value = ... }}.",
                shown.join(", ")
            ));
            if self.markers.iter().any(|marker| !marker.is_empty()) {
                missing = Some(self.markers.iter().map(|marker| (*marker).to_owned()).collect());
            }
        }
        let on_unreadable = if options.written_to { OnUnreadable::Neutral } else { OnUnreadable::Error };
        if let Some(line) = self.unreadable.filter(|_| !options.written_to) {
            remarks.push(format!(
                "Cells that are not numbers: {}, the first on line {line}. Mend the file, or declare \
                 on_unreadable = \"neutral\" (their rows count for nothing) or \"missing\".",
                self.others
            ));
        }
        let kind = if self.zeros_and_ones {
            ColumnKind::Indicator { on_unreadable }
        } else {
            ColumnKind::Numeric { min: self.min, max: self.max, log1p, scale: None, cosines: None, on_unreadable }
        };
        let on_missing = OnMissing::Neutral;
        let (line_ends, review) = (false, Review::Unreviewed);
        let column = Column { name: name.to_owned(), kind, on_missing, missing, line_ends, review };
        (column, remarks)
    }
}

/// The values of the label column with their counts.
#[derive(Default)]
pub(super) struct LabelSurvey {
    counts: BTreeMap<Box<[u8]>, u64>,
    overflowed: bool,
    /// The least and the greatest number.
    numbers: Option<(f64, f64)>,
    /// True if every number is an integer.
    whole: bool,
    /// True if some cell is neither a number nor a usual marker of missing values.
    text: bool,
    /// True if some cell is such a marker, other than the empty cell.
    markers: bool,
}

impl LabelSurvey {
    pub(super) fn see(&mut self, cell: &[u8]) {
        if let Some(number) = parse_number(cell) {
            let number = number + 0.0;
            self.whole = number.fract() == 0.0 && (self.whole || self.numbers.is_none());
            let (min, max) = self.numbers.unwrap_or((number, number));
            self.numbers = Some((min.min(number), max.max(number)));
        } else if USUAL_MARKERS.iter().any(|marker| marker.as_bytes() == cell.trim_ascii()) {
            self.markers |= !cell.trim_ascii().is_empty();
        } else {
            self.text = true;
        }
        if !cell.trim_ascii().is_empty() {
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

    /// Adds the statistics of other cells.
    pub(super) fn append(&mut self, other: &Self) {
        self.whole = match (self.numbers, other.numbers) {
            (Some(_), Some(_)) => self.whole && other.whole,
            _ => self.whole || other.whole,
        };
        let ranges = self.numbers.into_iter().chain(other.numbers);
        self.numbers = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        self.text |= other.text;
        self.markers |= other.markers;
        self.overflowed |= other.overflowed;
        other.counts.iter().for_each(|(value, &count)| self.count(value, count));
    }

    /// Returns the values, unless there are too many.
    pub(super) fn values(&self) -> Option<Vec<String>> {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        (!self.overflowed).then(|| self.distinct(self.counts.keys().map(|value| text(value)).collect()))
    }

    /// Returns the range of the numbers, if all values are numbers or markers of missing ones.
    pub(super) fn range(&self) -> Option<(f64, f64)> {
        self.numbers.filter(|_| !self.text)
    }

    /// Returns whether every number is an integer.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Returns whether some values are markers of missing ones.
    pub(super) fn has_markers(&self) -> bool {
        self.markers
    }

    /// Returns the values without repetitions of the same number, with numbers in increasing order.
    fn distinct(&self, values: Vec<String>) -> Vec<String> {
        let mut seen = HashSet::new();
        let is_new =
            |value: &String| parse_number(value.as_bytes()).is_none_or(|number| seen.insert((number + 0.0).to_bits()));
        let mut distinct: Vec<String> = values.into_iter().filter(is_new).collect();
        if self.range().is_some() {
            let number = |value: &String| parse_number(value.as_bytes()).unwrap_or(f64::INFINITY);
            distinct.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        distinct
    }

    /// Returns whether a row may contain this value, as text or as the same number.
    pub(super) fn holds(&self, wanted: &str) -> bool {
        self.overflowed || self.counts.keys().any(|value| same(value, wanted.as_bytes()))
    }

    pub(super) fn same(&self, a: &str, b: &str) -> bool {
        same(a.as_bytes(), b.as_bytes())
    }

    /// Returns the one of two values that is more likely the positive one, and the reason.
    pub(super) fn likely_positive<'v>(&self, a: &'v String, b: &'v String) -> (&'v String, &'static str) {
        if let (Some(x), Some(y)) = (parse_number(a.as_bytes()), parse_number(b.as_bytes())) {
            return (if x > y { a } else { b }, "the larger of the two numbers");
        }
        let count = |value: &String| self.counts.get(value.as_bytes()).copied().unwrap_or(0);
        (if count(a) < count(b) { a } else { b }, "the rarer of the two values")
    }

    /// Returns a description for the curator.
    pub(super) fn describe(&self) -> String {
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
