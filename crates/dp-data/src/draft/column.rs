//! The statistics of one column collected while a draft reads the file.

use std::collections::{BTreeMap, HashMap};

use rustc_hash::FxBuildHasher;

use super::DraftOptions;
use super::dates::{Dates, FoundDates};
use super::families::Numbers;
use super::flags::flag;
use super::written::{Found, Marks, Reading, Written};
use crate::encode::{Cell, TextBuffer, parse_number};
use crate::read::{Owners, is_identifier};
use crate::schema::{
    CellFormat, Column, ColumnKind, DatePart, OTHER_CATEGORY, OnMissing, OnUnknown, OnUnreadable, Review,
};

/// Texts that usually represent a missing number.
pub(crate) const USUAL_MARKERS: [&str; 23] = [
    "", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "-", "--", ".", "#N/A", "na", "none", "N.A.",
    "n.a.", "k.A.", "k. A.", "\\N", "(null)", "missing",
];
/// Numbers that often mark missing ones.
const SENTINELS: [&str; 12] =
    ["-9", "-99", "-999", "-9999", "-99999", "-999.0", "-9999.0", "99", "999", "9999", "99999", "999999"];
/// Distance of such a number from the others, in ranges of theirs: one that is nearer may be the largest value, as 99999 in a
/// column of incomes.
const APART: f64 = 3.0;
/// In a numeric column at most one cell in this many may not be a number (which loading then refuses, with its line).
const NUMBERS_TO_ONE: u64 = 9;
/// In a column of texts, more empty cells than one in this many are a category.
const FEW: u64 = 100;
/// The beginning of notes that ask for a decision.
pub(super) const UNDECIDED: &str = "Dropped, as";

/// Statistics of a feature column.
pub(super) struct ColumnSurvey {
    /// Plain numbers.
    numbers: Numbers,
    /// Evidence for the format of the numbers.
    written: Written,
    dates: Dates,
    /// Cells that are neither numbers nor dates nor a usual marker of missing values, and the line of the first.
    others: u64,
    other: Option<u64>,
    /// Line of the first plain number.
    number: Option<u64>,
    markers: Vec<&'static str>,
    /// The cells that hold them, and those of these that are empty.
    missing: u64,
    empty: u64,
    /// The number of cells with each number that often marks a missing one, and of all other plain numbers.
    sentinels: BTreeMap<&'static str, u64>,
    usual: Numbers,
    /// True if every number is 0 or 1.
    zeros_and_ones: bool,
    /// The first and the last number, while each is one more than the number before.
    sequence: Option<(f64, f64)>,
    /// The first values, true for those that `others` counts.
    values: HashMap<Box<[u8]>, bool, FxBuildHasher>,
    /// Those of `values` that were first seen since the last [part](ColumnSurvey::take_part).
    fresh: Vec<(Box<[u8]>, bool)>,
    max_categories: usize,
    /// First line of the first cell that contains a line end.
    line_end: Option<u64>,
    /// The rows of each value, if the column has the name of an identifier.
    owners: Option<Owners>,
}

impl ColumnSurvey {
    pub(super) fn new(name: &str, max_categories: usize) -> Self {
        let owners = is_identifier(name).then(Owners::default);
        Self { owners, ..Self::empty(max_categories) }
    }

    fn empty(max_categories: usize) -> Self {
        Self {
            numbers: Numbers::default(),
            written: Written::default(),
            dates: Dates::default(),
            others: 0,
            other: None,
            number: None,
            markers: Vec::new(),
            missing: 0,
            empty: 0,
            sentinels: BTreeMap::new(),
            usual: Numbers::default(),
            zeros_and_ones: true,
            sequence: None,
            values: HashMap::default(),
            fresh: Vec::new(),
            max_categories,
            line_end: None,
            owners: None,
        }
    }

    /// Adds a cell of a record that starts on this line.
    pub(super) fn see(&mut self, cell: &[u8], line: u64) {
        let cell = cell.trim_ascii();
        // A text is looked at once.
        if self.others > 0 && self.values.get(cell) == Some(&true) {
            self.others += 1;
            return self.see_owner(cell);
        }
        let mut is_other = false;
        if let Some(number) = parse_number(cell) {
            // One of the two zeros.
            let number = number + 0.0;
            self.sequence = match self.sequence {
                None if self.numbers.count == 0 => Some((number, number)),
                Some((first, last)) if number - last == 1.0 => Some((first, number)),
                _ => None,
            };
            self.zeros_and_ones &= number == 0.0 || number == 1.0;
            self.numbers.see(number);
            // All of them begin so.
            let may_be_sentinel = matches!(cell, [b'9', ..] | [b'-', b'9', ..]);
            match SENTINELS.iter().find(|sentinel| may_be_sentinel && sentinel.as_bytes() == cell) {
                Some(sentinel) => *self.sentinels.entry(sentinel).or_default() += 1,
                None => self.usual.see(number),
            }
            self.written.see_plain(cell, number, line);
            self.number.get_or_insert(line);
        } else if let Some(marker) = USUAL_MARKERS.iter().find(|marker| marker.as_bytes() == cell) {
            self.missing += 1;
            self.empty += u64::from(marker.is_empty());
            self.see_marker(marker);
        } else if !self.written.see(cell, line) && !self.dates.see(cell, line) {
            is_other = true;
            self.others += 1;
            self.other.get_or_insert(line);
        }
        self.see_owner(cell);
        self.list_value(cell, is_other);
    }

    /// Adds a cell with a type.
    pub(super) fn see_cell(&mut self, cell: Cell<'_>, line: u64) {
        let mut buffer = TextBuffer::default();
        let text = cell.text(&mut buffer);
        let (day, nanoseconds) = match cell {
            Cell::Date(day) => (day, None),
            Cell::DateTime { day, nanoseconds } => (day, Some(nanoseconds)),
            _ => return self.see(text, line),
        };
        let is_other = !self.dates.see_typed(day, nanoseconds, line);
        if is_other {
            self.others += 1;
            self.other.get_or_insert(line);
        }
        self.see_owner(text);
        self.list_value(text, is_other);
    }

    fn see_marker(&mut self, marker: &'static str) {
        if !self.markers.contains(&marker) {
            self.markers.push(marker);
        }
    }

    fn see_owner(&mut self, value: &[u8]) {
        if let Some(owners) = &mut self.owners {
            owners.see(value);
        }
    }

    fn list_value(&mut self, value: &[u8], is_other: bool) {
        if self.values.len() <= self.max_categories && !self.values.contains_key(value) {
            self.values.insert(value.into(), is_other);
            self.fresh.push((value.into(), is_other));
        }
    }

    /// Returns the statistics since the last part, without values of earlier parts.
    pub(super) fn take_part(&mut self) -> Self {
        let next = Self { owners: self.owners.as_ref().map(|_| Owners::default()), ..Self::empty(self.max_categories) };
        let mut part = core::mem::replace(self, next);
        self.values = core::mem::take(&mut part.values);
        part
    }

    /// Adds the statistics of the next cells, whose line numbers do not count the `lines` lines before them.
    pub(super) fn append(&mut self, next: &Self, lines: u64) {
        if next.numbers.count > 0 {
            self.sequence = match (self.sequence, next.sequence) {
                (None, sequence) if self.numbers.count == 0 => sequence,
                (Some((first, last)), Some((next, end))) if next - last == 1.0 => Some((first, end)),
                _ => None,
            };
        }
        self.numbers.append(&next.numbers);
        self.written.append(&next.written, lines);
        self.dates.append(&next.dates, lines);
        self.others += next.others;
        self.missing += next.missing;
        self.empty += next.empty;
        next.sentinels.iter().for_each(|(sentinel, count)| *self.sentinels.entry(sentinel).or_default() += count);
        self.usual.append(&next.usual);
        self.zeros_and_ones &= next.zeros_and_ones;
        for (line, next) in
            [(&mut self.other, next.other), (&mut self.number, next.number), (&mut self.line_end, next.line_end)]
        {
            *line = line.or(next.map(|line| line + lines));
        }
        next.markers.iter().for_each(|marker| self.see_marker(marker));
        next.fresh.iter().for_each(|(value, is_other)| self.list_value(value, *is_other));
        if let (Some(owners), Some(next)) = (&mut self.owners, &next.owners) {
            owners.append(next);
        }
    }

    /// Records that the last seen cell contains a line end, and starts on this line.
    pub(super) fn see_line_end(&mut self, line: u64) {
        self.line_end.get_or_insert(line);
    }

    /// Returns the first line of the first cell that contains a line end.
    pub(super) fn line_end(&self) -> Option<u64> {
        self.line_end
    }

    /// Number of cells that are not markers of missing values.
    fn count(&self) -> u64 {
        self.numbers.count + self.written.count() + self.dates.count() + self.others
    }

    /// Returns whether so many cells are nearly all.
    fn are_nearly_all(&self, cells: u64) -> bool {
        cells > 0 && cells >= (self.count() - cells).saturating_mul(NUMBERS_TO_ONE)
    }

    /// Returns the first of some lines.
    fn first(lines: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
        lines.into_iter().flatten().min()
    }

    /// Adds this column's evidence for the decimal mark of its file.
    pub(super) fn add_marks(&self, marks: &mut Marks) {
        match self.written.reading(&self.numbers) {
            Reading::One(Found { format: Some(format), numbers, .. }) if self.are_nearly_all(numbers.count) => {
                *if format.decimal == ',' { &mut marks.commas } else { &mut marks.points } = true;
            }
            Reading::One(Found { format: None, numbers, .. }) if self.are_nearly_all(numbers.count) => {
                marks.points |= self.written.has_points();
            }
            _ => {}
        }
    }

    /// Returns the column, and notes for the reviewer.
    pub(super) fn draft(self, name: &str, options: &DraftOptions, marks: Marks) -> (Column, Vec<String>) {
        let mut remarks = Vec::new();
        let column = |kind, missing| Column {
            on_missing: if kind == ColumnKind::Drop { OnMissing::Error } else { OnMissing::Neutral },
            missing,
            line_ends: self.line_end.is_some(),
            review: Review::Unreviewed,
            ..Column::new(name, kind)
        };
        if self.line_end.is_some() {
            remarks.push("Some cells go on over several lines: is it text, or a stray quote?".into());
        }
        if self.count() == 0 {
            remarks.push("Every cell is missing.".into());
            return (column(ColumnKind::Drop, None), remarks);
        }
        if self.values.len() == 1 {
            remarks.push("Every row holds the same value.".into());
            return (column(ColumnKind::Drop, None), remarks);
        }
        if self.numbers.count == self.count()
            && self.markers.is_empty()
            && self.numbers.count > 2
            && self.sequence.is_some()
        {
            remarks.push("It numbers the rows.".into());
            return (column(ColumnKind::Drop, None), remarks);
        }
        match self.owners.as_ref().and_then(Owners::most) {
            None => {}
            Some(1) => {
                remarks.push("Dropped: an identifier, of which every row has its own.".into());
                return (column(ColumnKind::Drop, None), remarks);
            }
            Some(most) => {
                remarks.push(format!(
                    "{UNDECIDED} it looks like an identifier of up to {most} rows each: if these are of one person, add --unit {} \
                     --max-rows NUMBER to a training, which then protects them together.",
                    argument(name)
                ));
                return (column(ColumnKind::Drop, None), remarks);
            }
        }
        let found = match self.written.reading(&self.numbers).decided(marks) {
            Ok(found) => Some(found),
            Err(count) if self.are_nearly_all(count) => {
                remarks.push(
                    "Dropped, as its numbers can be read with a decimal point or with a decimal comma: declare type = \"numeric\" \
                     with min and max, and decimal and thousands as \".\" and \",\" or as \",\" and \".\"."
                        .into(),
                );
                return (column(ColumnKind::Drop, None), remarks);
            }
            Err(_) => None,
        };
        if let Some(mut found) = found.filter(|found| self.are_nearly_all(found.numbers.count)) {
            let sentinels = self.take_sentinels(&mut found, &mut remarks);
            return self.draft_numeric(name, options, &found, &sentinels, remarks);
        }
        match &self.dates.readings()[..] {
            [found, others @ ..] if self.are_nearly_all(found.numbers.count) => {
                return self.draft_dates(name, options, found, others, remarks);
            }
            _ => {}
        }
        if self.values.keys().any(|value| std::str::from_utf8(value).is_err()) {
            remarks.push("Dropped: some cells are bytes and no text.".into());
            return (column(ColumnKind::Drop, None), remarks);
        }
        if self.values.len() > self.max_categories {
            remarks.push(format!(
                "Text with more than {} values. If it identifies people with several rows each, add --unit {} --max-rows NUMBER.",
                self.max_categories,
                argument(name)
            ));
            return (column(ColumnKind::Drop, None), remarks);
        }
        let mut categories: Vec<String> = self
            .values
            .keys()
            .filter(|value| !value.is_empty())
            .map(|value| String::from_utf8_lossy(value).into_owned())
            .collect();
        categories.sort_unstable();
        if let Some((one, zero)) = flag(&categories) {
            let format = Some(CellFormat::Flag { one, zero });
            let (missing, on_unreadable) = (self.missing(&[], &mut remarks), on_unreadable(options));
            return (Column { format, ..column(ColumnKind::Indicator { on_unreadable }, missing) }, remarks);
        }
        // Markers other than the empty cell are ordinary categories of a text column.
        let (empty, rows) = (self.empty, self.count() + self.missing);
        let on_missing = if empty > rows / FEW { OnMissing::Category } else { OnMissing::Neutral };
        match on_missing {
            _ if empty == 0 => {}
            OnMissing::Category => remarks.push(format!("{empty} of {rows} cells are empty: a category of their own.")),
            _ => remarks.push(format!(
                "{empty} of {rows} cells are empty: their rows have no influence, unless on_missing is \"category\" or \
                 {{ value = ... }}."
            )),
        }
        let on_unknown =
            if categories.iter().any(|value| value == OTHER_CATEGORY) { OnUnknown::Other } else { OnUnknown::Neutral };
        (Column { on_missing, ..column(ColumnKind::Categorical { categories, on_unknown }, None) }, remarks)
    }

    /// Takes out of plain numbers those that seem to mark missing ones: at most a tenth of the cells, beyond the others by more than
    /// [`APART`] times their range, or negative where the others are not.
    fn take_sentinels(&self, found: &mut Found, remarks: &mut Vec<String>) -> Vec<&'static str> {
        let Numbers { count, min, max, .. } = self.usual;
        let is_apart = |sentinel: &&str, ranges: f64| {
            let number = parse_number(sentinel.as_bytes()).unwrap_or(min);
            let gap = (number - max).max(min - number);
            gap > ranges * (max - min) || (number < 0.0 && min >= 0.0)
        };
        let held: u64 = self.sentinels.values().sum();
        // Two numbers have no range to speak of.
        if found.format.is_some() || self.values.len() < 4 || count < NUMBERS_TO_ONE * held || held < 2 {
            return Vec::new();
        }
        let sentinels: Vec<&'static str> = self.sentinels.keys().copied().collect();
        if !sentinels.iter().all(|sentinel| is_apart(sentinel, APART)) {
            if sentinels.iter().all(|sentinel| is_apart(sentinel, 1.0)) {
                let shown: Vec<_> = sentinels.iter().map(|sentinel| format!("\"{sentinel}\"")).collect();
                remarks.push(format!(
                    "{held} cells hold {}, apart from the other numbers: if that marks missing values, add it to missing.",
                    shown.join(", ")
                ));
            }
            return Vec::new();
        }
        found.numbers = self.usual.clone();
        sentinels
    }

    /// Returns the markers of missing values, unless they are the usual one, and notes them.
    fn missing(&self, sentinels: &[&'static str], remarks: &mut Vec<String>) -> Option<Vec<String>> {
        let markers = [&self.markers[..], sentinels].concat();
        if markers.is_empty() {
            return None;
        }
        let shown: Vec<_> = markers.iter().map(|marker| format!("\"{marker}\"")).collect();
        let cells = self.missing + sentinels.iter().filter_map(|sentinel| self.sentinels.get(sentinel)).sum::<u64>();
        remarks.push(format!(
            "{cells} cells hold {}: their rows have no influence, unless on_missing is {{ value = ... }}.",
            shown.join(", ")
        ));
        // An empty cell is missing in every column.
        let others = markers.iter().filter(|marker| !marker.is_empty()).map(|marker| (*marker).to_owned());
        let others: Vec<String> = others.collect();
        (!others.is_empty()).then(|| [vec![String::new()], others].concat())
    }

    /// Notes how many cells are of the type of the column, and where the first other one is.
    fn note_others(
        &self,
        what: &str,
        of_type: u64,
        first: Option<u64>,
        options: &DraftOptions,
        remarks: &mut Vec<String>,
    ) {
        let others = self.count() - of_type;
        if let Some(line) = first.filter(|_| others > 0 && !options.written_to) {
            remarks.push(format!(
                "Cells that are {what}: {others}, the first on line {line}. Fix the file, or declare \
                 on_unreadable = \"neutral\" (their rows have no influence) or \"missing\"."
            ));
        }
    }

    fn draft_numeric(
        &self,
        name: &str,
        options: &DraftOptions,
        found: &Found,
        sentinels: &[&'static str],
        mut remarks: Vec<String>,
    ) -> (Column, Vec<String>) {
        let Numbers { count, min, max, sum } = found.numbers;
        // Skewed towards a range that starts at 0 and spans powers of ten: amounts of money, counts of bytes.
        let mean = sum as f64 / count as f64;
        let skewed = min == 0.0 && max >= 1000.0 && mean * 20.0 < max;
        let log1p = skewed && options.apply_log1p;
        if let Some(format) = &found.format {
            remarks.push(format!("Written as {}: {count} of {} cells.", format.example(), self.count()));
        }
        if skewed && !log1p {
            remarks.push("Skewed over powers of ten: `log1p = true` would suit it.".into());
        }
        let missing = self.missing(sentinels, &mut remarks);
        let on_unreadable = on_unreadable(options);
        let has_unit = found.format.as_ref().is_some_and(|format| !format.units.is_empty());
        let plain = self.number.filter(|_| has_unit);
        let first = Self::first([found.refused, self.other, self.dates.first(), plain]);
        let what = if found.format.is_some() { "not such numbers" } else { "not numbers" };
        let count = if sentinels.is_empty() { count } else { self.numbers.count };
        self.note_others(what, count, first, options, &mut remarks);
        let kind = if self.zeros_and_ones && found.format.is_none() {
            ColumnKind::Indicator { on_unreadable }
        } else {
            ColumnKind::Numeric { min, max, log1p, scale: None, cosines: None, on_unreadable }
        };
        let format = found.format.clone().map(CellFormat::Number);
        let (on_missing, review) = (OnMissing::Neutral, Review::Unreviewed);
        (Column { format, on_missing, missing, review, ..Column::new(name, kind) }, remarks)
    }

    fn draft_dates(
        &self,
        name: &str,
        options: &DraftOptions,
        found: &FoundDates,
        others: &[FoundDates],
        mut remarks: Vec<String>,
    ) -> (Column, Vec<String>) {
        let FoundDates { format, numbers: Numbers { count, min, max, .. }, refused } = found;
        let dropped = Column { review: Review::Unreviewed, ..Column::new(name, ColumnKind::Drop) };
        let by_hand = "declare type = \"date\" with min, max";
        if !others.is_empty() {
            let patterns: Vec<_> =
                others.iter().chain([found]).map(|one| format!("\"{}\"", one.format.pattern)).collect();
            let patterns = patterns.join(" or ");
            remarks
                .push(format!("Dropped, as days and months cannot be told apart: {by_hand} and format = {patterns}."));
            return (dropped, remarks);
        }
        if format.has_short_year() {
            remarks.push(format!(
                "Dropped, as the century of years of two digits is not known: {by_hand} and format = \"{}\".",
                format.pattern
            ));
            return (dropped, remarks);
        }
        remarks.push(format!("Written as {}: {count} of {} cells.", format.pattern, self.count()));
        if format.part == DatePart::Days {
            let hour = if format.has_time() { " or \"hour\"" } else { "" };
            remarks.push(format!(
                "More features of it: columns of type \"weekday\", \"month\"{hour} with column = \"{name}\" and the same format."
            ));
        }
        let missing = self.missing(&[], &mut remarks);
        let first = Self::first([*refused, self.other, self.written.first(), self.number]);
        self.note_others("not such dates", *count, first, options, &mut remarks);
        let (min, max) = if format.part == DatePart::Hour { (0.0, 24.0) } else { (*min, *max) };
        let on_unreadable = on_unreadable(options);
        let kind = ColumnKind::Numeric { min, max, log1p: false, scale: None, cosines: None, on_unreadable };
        let (format, review) = (Some(CellFormat::Date(format.clone())), Review::Unreviewed);
        (Column { format, on_missing: OnMissing::Neutral, missing, review, ..Column::new(name, kind) }, remarks)
    }
}

fn on_unreadable(options: &DraftOptions) -> OnUnreadable {
    if options.written_to { OnUnreadable::Neutral } else { OnUnreadable::Error }
}

/// Returns a name as an argument of a command.
fn argument(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.is_empty() && name.chars().all(is_plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', "'\\''"))
    }
}
