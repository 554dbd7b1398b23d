//! One column's encoding, with all precomputed values.

use super::cell::Cell;
use super::coordinate::{Coordinate, Share};
use super::dates_in_sql::{self, Moment};
use super::feature_map::{Functions, Numeric};
use super::reading::{Reading, unpadded};
use super::row::{ColumnTally, RowBuffer};
use super::text_map::TextMap;
use super::{Encoding, NumericRange, UnknownCategory, parse_number};
use crate::error::DataErrorKind;
use crate::schema::{
    Column, ColumnKind, DatePart, Fill, OTHER_CATEGORY, OnMissing, OnUnknown, OnUnreadable, Scale, Schema,
};
use crate::sql::{Dialect, LARGEST};

/// The conversion of one column's cells to features.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ColumnPlan {
    Drop,
    Numeric(NumericPlan),
    Categorical(CategoricalPlan),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct NumericPlan {
    feature: u32,
    min: f64,
    max: f64,
    /// `None` if the range has no width.
    share: Option<Share>,
    range: NumericRange,
    /// The functions of the column, if a map changes it.
    functions: Option<Functions>,
    /// The format of its cells, if they are not plain numbers.
    reading: Option<Reading>,
    missing: Vec<Box<[u8]>>,
    /// True if a number or a date may be a marker of missing values.
    has_markers: bool,
    /// The replacement of a missing cell.
    absent: Absent,
    /// The replacement of a cell that is not a number.
    unreadable: Absent,
}

/// The numbers of `feature = factor · share + offset`.
#[cfg(feature = "files")]
pub(super) struct Scaling {
    pub(super) range: (f64, f64),
    pub(super) log1p: bool,
    pub(super) half_low: f64,
    pub(super) half_width: f64,
    pub(super) factor: f64,
    pub(super) offset: f64,
    /// True if no number is a marker of missing values.
    pub(super) takes_numbers: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct CategoricalPlan {
    first: u32,
    width: u32,
    positions: TextMap<u32>,
    /// The format of its cells, if they are not categories.
    reading: Option<Reading>,
    missing: Vec<Box<[u8]>>,
    absent: Absent,
    unknown: Absent,
}

/// A column of a table in SQL.
pub(super) struct SqlColumn<'a> {
    /// Its quoted name.
    pub(super) name: &'a str,
    /// Its time, if it holds dates.
    pub(super) moment: Option<&'a Moment>,
}

/// The replacement of a cell without a value of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Absent {
    Refuse,
    Neutral,
    /// A number, or the position of a category.
    Use(f64),
    /// No feature of the column.
    Nothing,
}

/// The result of encoding a cell.
pub(super) enum CellOutcome {
    Encoded,
    Neutral,
    Refused(DataErrorKind),
}

impl ColumnPlan {
    pub(super) fn new(schema: &Schema, column: &Column, encoding: &Encoding, first: u32) -> Self {
        let missing = schema.missing_of(column).iter().map(|marker| marker.as_bytes().into()).collect();
        let reading = |range| column.format.as_ref().map(|format| Reading::new(format, range));
        match &column.kind {
            ColumnKind::Drop => Self::Drop,
            ColumnKind::Numeric { min, max, log1p, scale, cosines, on_unreadable } => {
                let bounds = (*min, *max);
                let share = Share::new(bounds, *log1p);
                let scale = if *log1p { Scale::Linear } else { scale.unwrap_or(encoding.map.scale) };
                let functions = share.map(|_| Functions {
                    coordinate: Coordinate::new(bounds, scale),
                    cosines: cosines.unwrap_or(encoding.map.cosines),
                });
                let policies = (&column.on_missing, *on_unreadable);
                let plan = NumericPlan::new(bounds, share, encoding.range, first, missing, policies);
                Self::Numeric(NumericPlan { functions, reading: reading(bounds), ..plan })
            }
            ColumnKind::Indicator { on_unreadable } => {
                let bounds = (0.0, 1.0);
                let share = Share::new(bounds, false);
                let policies = (&column.on_missing, *on_unreadable);
                let plan = NumericPlan::new(bounds, share, NumericRange::Unit, first, missing, policies);
                Self::Numeric(NumericPlan { reading: reading(bounds), ..plan })
            }
            ColumnKind::Categorical { categories, on_unknown } => {
                let positions = TextMap::new(categories.iter().map(String::as_str).zip(0..));
                let position_of = |name: &str| match positions.get(name.as_bytes()) {
                    Some(position) => Absent::Use(f64::from(position)),
                    None => Absent::Refuse,
                };
                let categories = categories.len() as u32;
                let (absent, width) = match &column.on_missing {
                    OnMissing::Neutral => (Absent::Neutral, categories),
                    OnMissing::Category => (Absent::Use(f64::from(categories)), categories + 1),
                    OnMissing::Value(Fill::Category(name)) => (position_of(name), categories),
                    _ => (Absent::Refuse, categories),
                };
                let unknown = match on_unknown {
                    OnUnknown::Error => Absent::Refuse,
                    OnUnknown::Neutral => Absent::Neutral,
                    OnUnknown::Other => position_of(OTHER_CATEGORY),
                };
                let reading = reading((0.0, 0.0));
                Self::Categorical(CategoricalPlan { first, width, positions, reading, missing, absent, unknown })
            }
        }
    }

    /// Returns the plan for cells that are numbers and categories, whatever the column's format.
    pub(super) fn of_values(mut self) -> Self {
        match &mut self {
            Self::Drop => {}
            Self::Numeric(plan) => plan.reading = None,
            Self::Categorical(plan) => plan.reading = None,
        }
        self
    }

    /// Returns the plan with another treatment of categories that the schema does not list.
    pub(super) fn with_unknown(mut self, treatment: UnknownCategory) -> Self {
        if let Self::Categorical(plan) = &mut self
            && plan.reading.is_none()
        {
            let other = plan.positions.get(OTHER_CATEGORY.as_bytes());
            plan.unknown = match treatment {
                UnknownCategory::Error => Absent::Refuse,
                UnknownCategory::Skip => Absent::Neutral,
                UnknownCategory::Other => other.map_or(Absent::Nothing, |place| Absent::Use(f64::from(place))),
            };
        }
        self
    }

    /// Returns the numeric column that a map can change, if it is one.
    pub(super) fn numeric(&self) -> Option<Numeric> {
        match self {
            Self::Numeric(NumericPlan { feature, functions: Some(functions), range, .. }) => {
                Some(Numeric { feature: *feature, functions: *functions, unit: *range == NumericRange::Unit })
            }
            _ => None,
        }
    }

    /// Returns `points` values of a numeric column, equally spaced in its coordinate; `None` if it has none.
    pub(super) fn grid(&self, points: usize) -> Option<Vec<f64>> {
        let Self::Numeric(NumericPlan { share: Some(share), functions: Some(functions), min, max, .. }) = self else {
            return None;
        };
        let last = points.saturating_sub(1).max(1) as f64;
        let value = |i: usize| share.inverse(functions.coordinate.inverse(i as f64 / last)).clamp(*min, *max);
        Some((0..points).map(value).collect())
    }

    /// Returns the index of its first feature, before any map.
    pub(super) fn first(&self) -> u32 {
        match self {
            Self::Drop => 0,
            Self::Numeric(plan) => plan.feature,
            Self::Categorical(plan) => plan.first,
        }
    }

    /// Returns the number of features, before any map.
    pub(super) fn width(&self) -> u32 {
        match self {
            Self::Drop => 0,
            Self::Numeric(_) => 1,
            Self::Categorical(plan) => plan.width,
        }
    }

    /// Returns what becomes of a cell.
    #[cfg(feature = "files")]
    pub(super) fn inspect(&self, cell: Cell<'_>) -> Inspected {
        let other = |(absent, kind)| match absent {
            Absent::Refuse => Inspected::Refused(kind),
            Absent::Neutral => Inspected::Neutral(kind),
            Absent::Use(_) | Absent::Nothing => Inspected::Replaced(kind),
        };
        match self {
            Self::Drop => Inspected::Value(0.0),
            Self::Numeric(plan) => match plan.read(cell) {
                Ok(number) if plan.min <= number && number <= plan.max => Inspected::Value(number),
                Ok(number) => Inspected::Clamped(number.clamp(plan.min, plan.max)),
                Err(found) => other(found),
            },
            Self::Categorical(plan) => plan.read(cell).map_or_else(other, |place| Inspected::Value(f64::from(place))),
        }
    }

    /// Adds the features of `cell`, of column `position` of the schema, to the row.
    #[inline(always)]
    pub(super) fn encode(&self, cell: Cell<'_>, row: &mut RowBuffer, position: usize) -> CellOutcome {
        // The usual text, which is passed in registers.
        if let (Self::Categorical(plan), Cell::Text(text)) = (self, cell)
            && plan.reading.is_none()
            && let Some(place) = plan.positions.get(text)
        {
            plan.push(place, row, position);
            return CellOutcome::Encoded;
        }
        self.encode_any(cell, row, position)
    }

    fn encode_any(&self, cell: Cell<'_>, row: &mut RowBuffer, position: usize) -> CellOutcome {
        match self {
            Self::Drop => CellOutcome::Encoded,
            Self::Numeric(plan) => plan.encode(cell, row, position),
            Self::Categorical(plan) => plan.encode(cell, row, position),
        }
    }
}

/// The treatment of a cell under the schema.
#[cfg(feature = "files")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Inspected {
    /// It holds a value of its column: a number, or the position of a category.
    Value(f64),
    /// It holds a number outside the public range, which is clamped to this one.
    Clamped(f64),
    /// It is of another kind, and something replaces it.
    Replaced(DataErrorKind),
    /// It is of another kind, and makes its record a null record.
    Neutral(DataErrorKind),
    /// It is of another kind, and its file is refused.
    Refused(DataErrorKind),
}

/// Returns whether `cell`, without surrounding blanks, is one of the markers. Empty cells are the usual case.
fn is_missing(markers: &[Box<[u8]>], cell: &[u8]) -> bool {
    !markers.is_empty() && {
        let trimmed = cell.trim_ascii();
        markers.iter().any(|marker| **marker == *trimmed)
    }
}

impl NumericPlan {
    fn new(
        (min, max): (f64, f64),
        share: Option<Share>,
        range: NumericRange,
        feature: u32,
        missing: Vec<Box<[u8]>>,
        (on_missing, on_unreadable): (&OnMissing, OnUnreadable),
    ) -> Self {
        let absent = match on_missing {
            OnMissing::Neutral => Absent::Neutral,
            OnMissing::Value(Fill::Number(value)) => Absent::Use(*value),
            _ => Absent::Refuse,
        };
        let unreadable = match on_unreadable {
            OnUnreadable::Error => Absent::Refuse,
            OnUnreadable::Neutral => Absent::Neutral,
            OnUnreadable::Missing => absent,
        };
        Self {
            feature,
            min,
            max,
            share,
            range,
            functions: None,
            reading: None,
            has_markers: missing.iter().any(|marker| !marker.is_empty()),
            missing,
            absent,
            unreadable,
        }
    }

    /// Returns the number in a cell; for an unusable cell, its replacement and the kind of error.
    fn read(&self, cell: Cell<'_>) -> Result<f64, (Absent, DataErrorKind)> {
        match cell {
            Cell::Text(text) if is_missing(&self.missing, text) => Err((self.absent, DataErrorKind::CsvMissingValue)),
            Cell::Missing => Err((self.absent, DataErrorKind::CsvMissingValue)),
            Cell::Number(_) | Cell::Date(_) | Cell::DateTime { .. }
                if self.has_markers && is_missing(&self.missing, cell.text(&mut [0; 32])) =>
            {
                Err((self.absent, DataErrorKind::CsvMissingValue))
            }
            _ => match &self.reading {
                None => cell.number().ok_or((self.unreadable, DataErrorKind::CsvBadNumber)),
                Some(reading) => reading.read(cell).ok_or((self.unreadable, reading.refusal())),
            },
        }
    }

    /// Returns the number in a cell, or the one that replaces it.
    #[inline]
    pub(super) fn number(&self, cell: Cell<'_>, tally: &mut ColumnTally) -> Result<f64, CellOutcome> {
        match self.read(cell) {
            Ok(number) => Ok(number),
            Err((Absent::Use(number), _)) => {
                tally.replaced += 1;
                Ok(number)
            }
            // Of categories only.
            Err((Absent::Neutral | Absent::Nothing, _)) => {
                tally.neutral += 1;
                Err(CellOutcome::Neutral)
            }
            Err((Absent::Refuse, kind)) => Err(CellOutcome::Refused(kind)),
        }
    }

    fn encode(&self, cell: Cell<'_>, row: &mut RowBuffer, position: usize) -> CellOutcome {
        let tally = row.tally(position);
        let number = match self.number(cell, tally) {
            Ok(number) => number,
            Err(outcome) => return outcome,
        };
        let clamped = number.clamp(self.min, self.max);
        tally.clamped += u64::from(clamped != number);
        tally.see(clamped);
        row.push(self.feature, self.scale(clamped));
        CellOutcome::Encoded
    }

    /// Returns the share of a column's value in its range as SQL.
    pub(super) fn share_in_sql(&self, column: &SqlColumn<'_>, is_indicator: bool, dialect: Dialect) -> String {
        let value = self.value_in_sql(column, is_indicator, dialect);
        let number = |value: f64| dialect.number(value);
        let Some(share) = &self.share else { return format!("0 * {value}") };
        let (log1p, half_low, half_width) = share.parts();
        let transformed = if log1p { format!("ln(1 + {value})") } else { value };
        format!("(0.5 * {transformed} - {}) / {}", number(half_low), number(half_width))
    }

    /// Returns a column's value, within its range, as SQL; NULL if it has none.
    fn value_in_sql(&self, column: &SqlColumn<'_>, is_indicator: bool, dialect: Dialect) -> String {
        let SqlColumn { name: column, moment } = *column;
        let number = |value: f64| dialect.number(value);
        let replaced = |absent: Absent| match absent {
            Absent::Use(value) => number(value.clamp(self.min, self.max)),
            Absent::Refuse | Absent::Neutral | Absent::Nothing => "NULL".to_owned(),
        };
        let x = match (&self.reading, moment) {
            (Some(Reading::Flag { one, zero }), _) => flag_in_sql(column, (one, zero), dialect),
            (Some(Reading::Date(format, _)), Some(moment)) => dates_in_sql::part_in_sql(moment, format, dialect),
            _ if is_indicator => dialect.as_indicator(column),
            _ => dialect.as_number(column),
        };
        let (absent, unreadable) = (replaced(self.absent), replaced(self.unreadable));
        let mut missing = vec![format!("{column} IS NULL")];
        for marker in self.missing.iter().filter_map(|marker| std::str::from_utf8(marker).ok()) {
            if let Some(moment) = moment {
                missing.extend(dates_in_sql::is_marker(moment, marker, dialect));
                continue;
            }
            match parse_number(marker.as_bytes()) {
                // A number is compared by its text, of which it has only one.
                Some(marked) if Cell::Number(marked).text(&mut [0; 32]) == marker.as_bytes() => {
                    missing.push(format!("{x} = {}", number(marked)));
                }
                _ if absent != unreadable && dialect.has_texts_among_numbers() => {
                    missing.push(format!("{} = {}", dialect.trimmed(&dialect.as_text(column)), dialect.text(marker)));
                }
                _ => {}
            }
        }
        let (low, high) = match &self.reading {
            Some(Reading::Date(format, _)) if format.part == DatePart::Days => dates_in_sql::DAYS,
            _ => (-LARGEST, LARGEST),
        };
        // The usual number is within its range. NaN and infinities are no numbers.
        let present = format!(
            "WHEN {x} BETWEEN {min} AND {max} THEN {x} WHEN {x} < {min} AND {x} >= {low} THEN {min} WHEN {x} > {max} AND {x} <= {high} \
             THEN {max}",
            min = number(self.min),
            max = number(self.max),
            low = number(low),
            high = number(high),
        );
        let markers = missing.join(" OR ");
        match (&*absent, &*unreadable) {
            ("NULL", "NULL") if missing.len() == 1 => format!("CASE {present} END"),
            _ => format!("CASE WHEN {markers} THEN {absent} {present} ELSE {unreadable} END"),
        }
    }

    /// Returns the numbers of `feature = factor share + offset`.
    pub(super) fn factor_and_offset(&self) -> (f64, f64) {
        match self.range {
            NumericRange::Symmetric if self.share.is_some() => (2.0, -1.0),
            _ => (1.0, 0.0),
        }
    }

    /// Returns the numbers that make a feature of a value; `None` if the range has no width, if its cells are not plain numbers, or
    /// if a short decimal may be a marker of missing values.
    #[cfg(feature = "files")]
    pub(super) fn scaling(&self) -> Option<Scaling> {
        let is_decimal = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        if self.reading.is_some()
            || self.missing.iter().any(|marker| !marker.is_empty() && marker.iter().all(is_decimal))
        {
            return None;
        }
        let (log1p, half_low, half_width) = self.share.as_ref()?.parts();
        let (factor, offset) = self.factor_and_offset();
        let (range, takes_numbers) = ((self.min, self.max), !self.has_markers);
        Some(Scaling { range, log1p, half_low, half_width, factor, offset, takes_numbers })
    }

    /// Returns the feature for a value within the range; 0 if the range has no width.
    fn scale(&self, value: f64) -> f64 {
        let Some(share) = &self.share else { return 0.0 };
        let share = share.of(value);
        match self.range {
            NumericRange::Symmetric => 2.0 * share - 1.0,
            NumericRange::Unit => share,
        }
    }
}

/// Returns 1 or 0 for a column with texts for them as SQL; NULL for other texts.
fn flag_in_sql(column: &str, (one, zero): (&[String], &[String]), dialect: Dialect) -> String {
    let with = |number: f64| move |text| (text, number);
    let mut texts: Vec<(&str, f64)> =
        one.iter().map(String::as_str).map(with(1.0)).chain(zero.iter().map(String::as_str).map(with(0.0))).collect();
    for (one, other) in dialect.texts_of_booleans() {
        let found = |text: &str| texts.iter().find(|(declared, _)| *declared == text).map(|&(_, number)| number);
        if let (Some(number), None) = (found(one), found(other)) {
            texts.push((other, number));
        }
    }
    let cases =
        texts.iter().map(|(text, number)| format!(" WHEN {} THEN {}", dialect.text(text), dialect.number(*number)));
    format!("CASE {}{} END", dialect.trimmed(&dialect.as_text(column)), cases.collect::<String>())
}

impl CategoricalPlan {
    /// Returns the number of its features.
    pub(super) fn width(&self) -> usize {
        self.width as usize
    }

    /// Returns the position of a column's category as SQL; NULL if it has none.
    pub(super) fn position_in_sql(&self, column: &SqlColumn<'_>, dialect: Dialect) -> String {
        let SqlColumn { name: column, moment } = *column;
        let replaced = |absent: Absent| match absent {
            Absent::Use(place) => format!("{place}"),
            Absent::Refuse | Absent::Neutral | Absent::Nothing => "NULL".to_owned(),
        };
        if let (Some(Reading::Date(format, _)), Some(moment)) = (&self.reading, moment) {
            let place = dialect.whole(&dates_in_sql::part_in_sql(moment, format, dialect));
            let markers = self.missing.iter().filter_map(|marker| std::str::from_utf8(marker).ok());
            let markers = markers.filter_map(|marker| dates_in_sql::is_marker(moment, marker, dialect));
            let missing = std::iter::once(format!("{column} IS NULL")).chain(markers).collect::<Vec<_>>().join(" OR ");
            let (absent, unknown) = (replaced(self.absent), replaced(self.unknown));
            return format!(
                "CASE WHEN {missing} THEN {absent} WHEN {place} IS NOT NULL THEN {place} ELSE {unknown} END"
            );
        }
        let mut categories: Vec<(&str, u32)> = self.positions.iter().collect();
        // A Boolean is also `1` or `0`, if the schema declares these.
        for (one, other) in dialect.texts_of_booleans() {
            if let (Some(place), None) = (self.positions.get(one.as_bytes()), self.positions.get(other.as_bytes())) {
                categories.push((other, place));
            }
        }
        categories.sort_by_key(|&(_, place)| place);
        let text = dialect.as_text(column);
        let trimmed = dialect.trimmed(&text);
        let cases: String =
            categories.iter().map(|(name, place)| format!(" WHEN {} THEN {place}", dialect.text(name))).collect();
        let (absent, unknown) = (replaced(self.absent), replaced(self.unknown));
        let mut missing = vec![format!("{column} IS NULL")];
        let markers = self.missing.iter().filter_map(|marker| std::str::from_utf8(marker).ok());
        missing.extend(markers.map(|marker| format!("{trimmed} = {}", dialect.text(marker))));
        let others = match absent == unknown {
            true => absent,
            false => format!("CASE WHEN {} THEN {absent} ELSE {unknown} END", missing.join(" OR ")),
        };
        // The text as it is, then without blanks around it.
        let is_padded = categories.iter().any(|(name, _)| name.trim_ascii() != *name);
        let others = if is_padded { format!("CASE {trimmed}{cases} ELSE {others} END") } else { others };
        format!("CASE {}{cases} ELSE {others} END", if is_padded { &text } else { &trimmed })
    }

    /// Returns the position of a cell's category; for an unusable cell, its replacement and the kind of error.
    fn read(&self, cell: Cell<'_>) -> Result<u32, (Absent, DataErrorKind)> {
        let buffer = &mut [0; 32];
        // A marker of missing values that the column also lists as a category is that category.
        let place = match (cell, &self.reading) {
            (Cell::Missing, _) => None,
            (cell, Some(_)) if is_missing(&self.missing, cell.text(buffer)) => None,
            // Positions are below 12.
            (cell, Some(reading)) => reading.read(cell).map(|place| place as u32),
            (Cell::Text(text), None) => self.positions.get(text).or_else(|| self.positions.get(unpadded(text)?)),
            (cell, None) => cell.find(buffer, |text| self.positions.get(text)),
        };
        match place {
            Some(place) => Ok(place),
            None if cell == Cell::Missing || is_missing(&self.missing, cell.text(buffer)) => {
                Err((self.absent, DataErrorKind::CsvMissingValue))
            }
            None => {
                let refusal = self.reading.as_ref().map_or(DataErrorKind::CsvUnknownCategory, Reading::refusal);
                Err((self.unknown, refusal))
            }
        }
    }

    /// Adds the feature of a category, given its position.
    #[inline(always)]
    fn push(&self, place: u32, row: &mut RowBuffer, position: usize) {
        row.tally(position).see(f64::from(place));
        row.push(self.first + place, 1.0);
    }

    fn encode(&self, cell: Cell<'_>, row: &mut RowBuffer, position: usize) -> CellOutcome {
        match self.read(cell) {
            Ok(place) => self.push(place, row, position),
            Err((Absent::Refuse, refusal)) => return CellOutcome::Refused(refusal),
            Err((Absent::Neutral, _)) => {
                row.tally(position).neutral += 1;
                return CellOutcome::Neutral;
            }
            Err((Absent::Use(place), _)) => {
                row.tally(position).replaced += 1;
                // Positions are below 2^32, so the cast is exact.
                self.push(place as u32, row, position);
            }
            Err((Absent::Nothing, _)) => row.tally(position).replaced += 1,
        }
        CellOutcome::Encoded
    }
}
