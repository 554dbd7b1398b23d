//! Conversion of a label's text to its target.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::cell::Cell;
use super::parse_number;
#[cfg(feature = "files")]
use super::plan::Inspected;
use super::reading::{Reading, unpadded};
use super::row::ColumnTally;
use super::text_map::TextMap;
use crate::error::DataErrorKind;
use crate::schema::{CellFormat, Label, LabelKind, LabelRange, Others};
use crate::sql::{Dialect, LARGEST};

/// A label prepared for comparison with cells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LabelPlan {
    values: Values,
    missing: Vec<Box<[u8]>>,
    missing_is_neutral: bool,
    unreadable_is_neutral: bool,
    /// The error for a cell that is not a number.
    bad_number: DataErrorKind,
}

#[derive(Debug, Clone, PartialEq)]
enum Values {
    /// Declared values with their targets, by text and by number, and the treatment of all others.
    Declared { texts: TextMap<f64>, numbers: HashMap<u64, f64, FxBuildHasher>, others: Undeclared },
    /// Any number, and how it is read if it is not a plain one.
    Number(LabelRange, Option<Reading>),
}

/// The treatment of an undeclared value.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Undeclared {
    Refuse,
    Neutral,
    Target(f64),
}

impl LabelPlan {
    pub(crate) fn new(label: &Label, missing: &[String], bad_number: DataErrorKind) -> Self {
        let values = match &label.kind {
            LabelKind::TwoClasses { positive, negative, others } => {
                let with = |target: f64| move |value| (value, target);
                let declared = positive.iter().map(with(1.0)).chain(negative.iter().map(with(-1.0)));
                let others = match others {
                    Others::Error => Undeclared::Refuse,
                    Others::Neutral => Undeclared::Neutral,
                    Others::Positive => Undeclared::Target(1.0),
                    Others::Negative => Undeclared::Target(-1.0),
                };
                Values::declared(declared, others)
            }
            LabelKind::Classes { classes, others_are_neutral } => {
                let others = if *others_are_neutral { Undeclared::Neutral } else { Undeclared::Refuse };
                Values::declared(classes.iter().zip((0_u32..).map(f64::from)), others)
            }
            LabelKind::Number(range) => {
                let format = label.format.clone().map(CellFormat::Number);
                Values::Number(*range, format.map(|format| Reading::new(&format, (range.min, range.max))))
            }
        };
        Self {
            values,
            missing: missing.iter().map(|marker| marker.as_bytes().into()).collect(),
            missing_is_neutral: label.missing_is_neutral,
            unreadable_is_neutral: label.unreadable_is_neutral,
            bad_number,
        }
    }

    /// Returns the target of a column as SQL; NULL for a record that does not count, or would be refused.
    pub(super) fn in_sql(&self, column: &str, dialect: Dialect) -> String {
        let number = |value: f64| dialect.number(value);
        match &self.values {
            Values::Declared { texts, numbers, others } => {
                let mut declared: Vec<(&str, f64)> = texts.iter().collect();
                for (one, other) in dialect.texts_of_booleans() {
                    if let (Some(target), None) = (texts.get(one.as_bytes()), texts.get(other.as_bytes())) {
                        declared.push((other, target));
                    }
                }
                declared.sort_by(|one, other| one.0.cmp(other.0));
                let text = dialect.as_text(column);
                let trimmed = dialect.trimmed(&text);
                // The text as it is, then without blanks around it.
                let is_padded = declared.iter().any(|(value, _)| value.trim_ascii() != *value);
                let case = |text: &str| {
                    let case = |(value, target): &(&str, f64)| {
                        format!(" WHEN {text} = {} THEN {}", dialect.text(value), number(*target))
                    };
                    declared.iter().map(case).collect::<String>()
                };
                let mut cases = if is_padded { case(&text) } else { String::new() } + &case(&trimmed);
                // Text is compared first, then numbers: `1.0` equals `1`.
                let mut declared: Vec<(f64, f64)> =
                    numbers.iter().map(|(&bits, &target)| (f64::from_bits(bits), target)).collect();
                declared.sort_by(|one, other| one.0.total_cmp(&other.0));
                let x = dialect.as_any_number(column);
                let of_numbers = declared
                    .iter()
                    .map(|(value, target)| format!(" WHEN {x} = {} THEN {}", number(*value), number(*target)));
                cases.extend(of_numbers);
                if let Undeclared::Target(target) = others {
                    let mut missing = vec![format!("{column} IS NULL")];
                    let markers = self.missing.iter().filter_map(|marker| std::str::from_utf8(marker).ok());
                    missing.extend(markers.map(|marker| format!("{trimmed} = {}", dialect.text(marker))));
                    cases += &format!(" WHEN {} THEN NULL ELSE {}", missing.join(" OR "), number(*target));
                }
                format!("CASE{cases} END")
            }
            Values::Number(range, _) => {
                let x = dialect.as_number(column);
                let (low, width) = (0.5 * range.min, 0.5 * range.max - 0.5 * range.min);
                format!(
                    "CASE WHEN {x} < {min} THEN {least} WHEN {x} > {max} AND {x} <= {largest} THEN {most} \
                     WHEN {x} BETWEEN {min} AND {max} THEN 2 * ((0.5 * {x} - {low}) / {width}) - 1 END",
                    min = number(range.min),
                    max = number(range.max),
                    largest = number(LARGEST),
                    least = number(-1.0),
                    most = number(1.0),
                    low = number(low),
                    width = number(width),
                )
            }
        }
    }

    /// Returns whether the first part of a libsvm line can be a label: not a feature (`index:value`), unless such a label is
    /// declared; and, if no label is required, a number, a declared value or any value that the treatment of others accepts.
    #[cfg(feature = "files")]
    pub(crate) fn may_be(&self, part: &[u8], needed: bool) -> bool {
        let (declared, any) = match &self.values {
            Values::Declared { texts, others, .. } => (texts.get(part).is_some(), *others != Undeclared::Refuse),
            Values::Number(..) => (false, self.unreadable_is_neutral),
        };
        declared || (!part.contains(&b':') && (needed || any || parse_number(part).is_some()))
    }

    /// Returns the target, or `None` for a null record. Text is compared first, then numbers: `1.0` equals `1`.
    pub(crate) fn target(&self, cell: Cell<'_>, tally: &mut ColumnTally) -> Result<Option<f64>, DataErrorKind> {
        match self.read(cell) {
            Ok(Found { target, number }) => {
                if let Some((range, number)) = number {
                    tally.clamped += u64::from(!(range.min <= number && number <= range.max));
                    tally.see(number);
                }
                Ok(Some(target))
            }
            Err((true, _)) => Ok(None),
            Err((false, kind)) => Err(kind),
        }
    }

    /// Returns what becomes of a cell.
    #[cfg(feature = "files")]
    pub(super) fn inspect(&self, cell: Cell<'_>) -> Inspected {
        match self.read(cell) {
            Ok(Found { number: Some((range, number)), .. }) if !(range.min <= number && number <= range.max) => {
                Inspected::Clamped(number.clamp(range.min, range.max))
            }
            Ok(Found { target, .. }) => Inspected::Value(target),
            Err((true, kind)) => Inspected::Neutral(kind),
            Err((false, kind)) => Inspected::Refused(kind),
        }
    }

    /// Returns the content of a cell; for an unusable cell, whether its record becomes a null record, and the kind of error.
    fn read(&self, cell: Cell<'_>) -> Result<Found<'_>, (bool, DataErrorKind)> {
        let buffer = &mut [0; 32];
        let of_class = |target| Found { target, number: None };
        if let Values::Declared { texts, .. } = &self.values
            && cell != Cell::Missing
            && let Some(target) = cell.find(buffer, |text| texts.get(text).or_else(|| texts.get(unpadded(text)?)))
        {
            return Ok(of_class(target));
        }
        let text = cell.text(buffer).trim_ascii();
        if cell == Cell::Missing || self.missing.iter().any(|marker| **marker == *text) {
            return Err((self.missing_is_neutral, DataErrorKind::LabelMissing));
        }
        let number = match &self.values {
            Values::Number(_, Some(reading)) => reading.read(cell),
            _ => cell.number(),
        };
        match (&self.values, number) {
            (Values::Number(range, _), Some(number)) => {
                Ok(Found { target: range.target(number), number: Some((range, number)) })
            }
            (Values::Number(..), None) => Err((self.unreadable_is_neutral, self.bad_number)),
            (Values::Declared { numbers, others, .. }, number) => {
                match (number.and_then(|number| numbers.get(&bits(number))), others) {
                    (Some(&target), _) | (None, &Undeclared::Target(target)) => Ok(of_class(target)),
                    (None, Undeclared::Neutral) => Err((true, DataErrorKind::LabelUnknown)),
                    (None, Undeclared::Refuse) => Err((false, DataErrorKind::LabelUnknown)),
                }
            }
        }
    }
}

/// The content of a label's cell.
struct Found<'p> {
    target: f64,
    /// If the label is a number: its range, and the number.
    number: Option<(&'p LabelRange, f64)>,
}

impl Values {
    /// If two values are the same number, the first of them counts.
    fn declared<'v>(values: impl Iterator<Item = (&'v String, f64)> + Clone, others: Undeclared) -> Self {
        let texts = TextMap::new(values.clone().map(|(value, target)| (value.as_str(), target)));
        let mut numbers = HashMap::default();
        for (value, target) in values {
            if let Some(number) = parse_number(value.as_bytes()) {
                numbers.entry(bits(number)).or_insert(target);
            }
        }
        Self::Declared { texts, numbers, others }
    }
}

/// Returns bits that are the same for equal finite numbers: the two zeros become one.
fn bits(number: f64) -> u64 {
    (number + 0.0).to_bits()
}
