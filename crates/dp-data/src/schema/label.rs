//! The label: one of two classes, one of several, or a number in a public range.

use serde::{Deserialize, Serialize};

use super::{NumberFormat, Review};
use crate::error::{DataError, DataErrorKind};

/// Maximum number of classes of a label.
pub const MAX_CLASSES: usize = 4096;

/// The column to predict, with its possible values.
///
/// # Examples
/// ```
/// use dp_data::schema::{LabelKind, Schema};
///
/// let schema = Schema::parse(
///     "flowers.toml",
///     "label = { column = 'species', classes = ['setosa', 'versicolor', 'virginica'] }\n\
///      columns.petal = { type = 'numeric', min = 0, max = 10 }",
/// )?;
/// let LabelKind::Classes { classes, .. } = &schema.label().kind else { unreachable!() };
/// assert_eq!((classes.len(), schema.label().target_bound()), (3, 2.0)); // targets are 0, 1 and 2
/// # Ok::<(), dp_data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "LabelRecord", into = "LabelRecord")]
pub struct Label {
    /// Its name in the header.
    pub column: String,
    /// Its kind.
    pub kind: LabelKind,
    /// The format of the numbers of a [`LabelKind::Number`]. `None`: plain decimal numbers.
    pub format: Option<NumberFormat>,
    /// True if a record without label becomes a null record instead of being refused.
    pub missing_is_neutral: bool,
    /// True if a record whose label is neither a finite number nor missing becomes a null record instead of being refused; for
    /// [`LabelKind::Number`] only.
    pub unreadable_is_neutral: bool,
    /// The review of its classes or its range.
    pub review: Review,
}

impl Label {
    /// Returns whether some cell of it could stop the reading of its file.
    pub(crate) fn can_refuse(&self) -> bool {
        let others = match &self.kind {
            LabelKind::TwoClasses { others, .. } => *others == Others::Error,
            LabelKind::Classes { others_are_neutral, .. } => !others_are_neutral,
            LabelKind::Number(_) => !self.unreadable_is_neutral,
        };
        others || !self.missing_is_neutral
    }

    /// Returns whether a declared value spans several lines.
    #[cfg(feature = "files")]
    pub(crate) fn has_line_ends(&self) -> bool {
        let values: &[&[String]] = match &self.kind {
            LabelKind::TwoClasses { positive, negative, .. } => &[positive, negative],
            LabelKind::Classes { classes, .. } => &[classes],
            LabelKind::Number(_) => &[],
        };
        values.iter().copied().flatten().any(|value| super::holds_line_end(value))
    }
}

/// The kind of a label, and the targets of its values.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LabelKind {
    /// Two classes of one or more values each; targets -1 and +1.
    TwoClasses {
        /// Values with target +1. Empty only if `others` is [`Others::Positive`].
        positive: Vec<String>,
        /// Values with target -1. Empty only if `others` is [`Others::Negative`].
        negative: Vec<String>,
        /// The treatment of every other value.
        others: Others,
    },
    /// A public list of classes, one value each; the target is the position in the list, from 0.
    Classes {
        /// The classes, at least two and at most [`MAX_CLASSES`].
        classes: Vec<String>,
        /// True if a record of a class that is not in the list becomes a null record instead of being refused.
        others_are_neutral: bool,
    },
    /// A number in a public range, which is mapped to `[-1, 1]`.
    Number(LabelRange),
}

/// The treatment of a label value that is declared neither positive nor negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Others {
    /// The file is refused.
    #[default]
    Error,
    /// It is positive.
    Positive,
    /// It is negative.
    Negative,
    /// The record becomes a null record.
    Neutral,
}

/// The public range of a numeric label.
///
/// # Formula
/// ```text
/// target  t = 2 (clamp(v, min, max) - min) / (max - min) - 1           in [-1, 1]
/// value   v = min + (clamp(t, -1, 1) + 1) (max - min) / 2              in [min, max]
/// ```
/// A prediction is clamped when converted back: since the label is known to lie in the range, this increases no distance from it.
///
/// # Examples
/// ```
/// let range = dp_data::schema::LabelRange { min: 0.0, max: 200.0 };
/// assert_eq!((range.target(150.0), range.target(1e9)), (0.5, 1.0));
/// assert_eq!((range.value(0.5), range.value(-3.0)), (150.0, 0.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelRange {
    /// The least possible value.
    pub min: f64,
    /// The greatest possible value; larger than `min`.
    pub max: f64,
}

impl LabelRange {
    /// Returns the target of a value; NaN stays NaN.
    pub fn target(&self, value: f64) -> f64 {
        if value.is_nan() {
            return value;
        }
        let clamped = value.max(self.min).min(self.max);
        // Halves, so that no finite range overflows.
        let (low, width) = (0.5 * self.min, 0.5 * self.max - 0.5 * self.min);
        (2.0 * ((0.5 * clamped - low) / width) - 1.0).clamp(-1.0, 1.0)
    }

    /// Returns the value of a prediction; NaN stays NaN.
    pub fn value(&self, target: f64) -> f64 {
        if target.is_nan() {
            return target;
        }
        let share = 0.5 * target.clamp(-1.0, 1.0) + 0.5;
        // A weighted mean, because the width of a finite range need not be finite.
        ((1.0 - share) * self.min + share * self.max).max(self.min).min(self.max)
    }

    /// Returns the value of one unit of a target: half of the width.
    pub fn unit(&self) -> f64 {
        0.5 * self.max - 0.5 * self.min
    }
}

impl Label {
    /// Creates a label of two classes named by a person.
    pub fn two_classes(column: &str, positive: Vec<String>, negative: Vec<String>, others: Others) -> Self {
        Self::reviewed(column, LabelKind::TwoClasses { positive, negative, others })
    }

    /// Creates a label of classes listed by a person.
    pub fn classes(column: &str, classes: Vec<String>) -> Self {
        Self::reviewed(column, LabelKind::Classes { classes, others_are_neutral: false })
    }

    /// Creates a label that is a number in a range given by a person.
    pub fn number(column: &str, range: LabelRange) -> Self {
        Self::reviewed(column, LabelKind::Number(range))
    }

    /// Checks its classes or its range.
    ///
    /// # Errors
    /// `schema.label`, `bounds.order`, `bounds.not_finite`.
    pub fn check(&self) -> Result<(), DataError> {
        super::validate::check_label(self)
    }

    fn reviewed(column: &str, kind: LabelKind) -> Self {
        Self {
            column: column.to_owned(),
            kind,
            format: None,
            missing_is_neutral: false,
            unreadable_is_neutral: false,
            review: Review::Reviewed,
        }
    }

    /// Returns the bound on the magnitude of every target: 1 for two classes and for numbers, `C - 1` for `C` classes.
    pub fn target_bound(&self) -> f64 {
        match &self.kind {
            LabelKind::TwoClasses { .. } | LabelKind::Number(_) => 1.0,
            LabelKind::Classes { classes, .. } => classes.len().saturating_sub(1) as f64,
        }
    }

    /// Returns whether some record can become a null record because of its label.
    pub fn can_be_neutral(&self) -> bool {
        self.missing_is_neutral
            || match &self.kind {
                LabelKind::TwoClasses { others, .. } => *others == Others::Neutral,
                LabelKind::Classes { others_are_neutral, .. } => *others_are_neutral,
                LabelKind::Number(_) => self.unreadable_is_neutral,
            }
    }
}

/// The serialised part of a label: the keys of its kind only.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelRecord {
    column: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    positive: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    negative: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    classes: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    range: Option<LabelRange>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    others: Option<Others>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<NumberFormat>,
    #[serde(default)]
    missing_is_neutral: bool,
    /// Absent for classes. Files of a version without it treat such a label as missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unreadable_is_neutral: Option<bool>,
    #[serde(default)]
    review: Review,
}

impl From<Label> for LabelRecord {
    fn from(label: Label) -> Self {
        let mut record = Self {
            column: label.column,
            positive: None,
            negative: None,
            classes: None,
            range: None,
            others: None,
            format: label.format,
            missing_is_neutral: label.missing_is_neutral,
            unreadable_is_neutral: None,
            review: label.review,
        };
        match label.kind {
            LabelKind::TwoClasses { positive, negative, others } => {
                (record.positive, record.negative, record.others) = (Some(positive), Some(negative), Some(others));
            }
            LabelKind::Classes { classes, others_are_neutral } => {
                record.classes = Some(classes);
                record.others = Some(if others_are_neutral { Others::Neutral } else { Others::Error });
            }
            LabelKind::Number(range) => {
                record.range = Some(range);
                let differs = label.unreadable_is_neutral != label.missing_is_neutral;
                record.unreadable_is_neutral = differs.then_some(label.unreadable_is_neutral);
            }
        }
        record
    }
}

impl TryFrom<LabelRecord> for Label {
    type Error = DataError;

    fn try_from(record: LabelRecord) -> Result<Self, DataError> {
        let LabelRecord {
            column, positive, negative, classes, range, others, format, missing_is_neutral, review, ..
        } = record;
        let of_number = range.is_some();
        let others = others.unwrap_or_default();
        let kind = match (positive, negative, classes, range, others) {
            (Some(positive), Some(negative), None, None, others) => {
                LabelKind::TwoClasses { positive, negative, others }
            }
            (None, None, Some(classes), None, Others::Error | Others::Neutral) => {
                LabelKind::Classes { classes, others_are_neutral: others == Others::Neutral }
            }
            (None, None, None, Some(range), Others::Error) => LabelKind::Number(range),
            _ => {
                return Err(DataError::new(DataErrorKind::SchemaLabel, "the label is not of one kind")
                    .at_column(column)
                    .at_field("label")
                    .expected("`positive` and `negative`, or `classes`, or `range`"));
            }
        };
        let unreadable_is_neutral = record.unreadable_is_neutral.unwrap_or(of_number && missing_is_neutral);
        Ok(Self { column, kind, format, missing_is_neutral, unreadable_is_neutral, review })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_return_from_their_targets(
            a in prop_oneof![-1e3..1e3_f64, any::<f64>().prop_filter("finite", |x| x.is_finite())],
            b in prop_oneof![-1e3..1e3_f64, any::<f64>().prop_filter("finite", |x| x.is_finite())],
            share in 0.0..=1.0_f64,
        ) {
            prop_assume!(a.min(b) < a.max(b) && (0.5 * a.max(b) - 0.5 * a.min(b)) > 0.0);
            let range = LabelRange { min: a.min(b), max: a.max(b) };
            let value = ((1.0 - share) * range.min + share * range.max).clamp(range.min, range.max);
            let target = range.target(value);
            prop_assert!((-1.0..=1.0).contains(&target));
            let back = range.value(target);
            prop_assert!((range.min..=range.max).contains(&back));
            let scale = range.min.abs().max(range.max.abs());
            prop_assert!((0.5 * back - 0.5 * value).abs() <= 1e-14 * scale + 1e-300, "{} {}", back, value);
        }
    }

    #[test]
    fn ends_clamping_and_nan() {
        let range = LabelRange { min: -f64::MAX, max: f64::MAX };
        assert_eq!([-f64::MAX, 0.0, f64::MAX].map(|v| range.target(v)), [-1.0, 0.0, 1.0]);
        assert_eq!([-1.0, 0.0, 1.0, 7.0].map(|t| range.value(t)), [-f64::MAX, 0.0, f64::MAX, f64::MAX]);
        assert_eq!([f64::INFINITY, f64::NEG_INFINITY].map(|v| range.target(v)), [1.0, -1.0]);
        assert!(range.target(f64::NAN).is_nan() && range.value(f64::NAN).is_nan());
    }

    #[test]
    fn records_hold_the_keys_of_one_kind() {
        let two = Label::two_classes("y", vec!["1".into()], vec!["0".into()], Others::Error);
        let json = serde_json::to_string(&two).unwrap();
        assert_eq!(
            json,
            r#"{"column":"y","positive":["1"],"negative":["0"],"others":"error","missing_is_neutral":false,"review":"reviewed"}"#,
            "as files of models of two classes have always held it"
        );
        for refused in [
            r#"{"column":"y"}"#,
            r#"{"column":"y","positive":["1"]}"#,
            r#"{"column":"y","classes":["1","2"],"range":{"min":0,"max":1}}"#,
            r#"{"column":"y","classes":["1","2"],"positive":["1"],"negative":["2"]}"#,
            r#"{"column":"y","classes":["1","2"],"others":"positive"}"#,
            r#"{"column":"y","range":{"min":0,"max":1},"others":"neutral"}"#,
            r#"{"column":"y","range":{"min":0,"max":1,"log1p":true}}"#,
        ] {
            assert!(serde_json::from_str::<Label>(refused).is_err(), "{refused}");
        }
    }
}
