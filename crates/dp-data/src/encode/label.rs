//! From a label's text to -1 and +1.

use super::parse_number;
use crate::error::DataErrorKind;
use crate::schema::{Label, Others};

/// A label's classes in the form in which cells are compared with them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LabelPlan {
    classes: Vec<DeclaredValue>,
    others: Others,
    missing: Vec<Box<[u8]>>,
    missing_is_neutral: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct DeclaredValue {
    text: Box<[u8]>,
    number: Option<f64>,
    target: f64,
}

impl LabelPlan {
    pub(crate) fn new(label: &Label, missing: &[String]) -> Self {
        let declared = |values: &[String], target| {
            values
                .iter()
                .map(|value| DeclaredValue {
                    text: value.as_bytes().into(),
                    number: parse_number(value.as_bytes()),
                    target,
                })
                .collect::<Vec<_>>()
        };
        Self {
            classes: [declared(&label.positive, 1.0), declared(&label.negative, -1.0)].concat(),
            others: label.others,
            missing: missing.iter().map(|marker| marker.as_bytes().into()).collect(),
            missing_is_neutral: label.missing_is_neutral,
        }
    }

    /// +1, -1, or `None` for a null record. Text is compared first, then numbers: `1.0` is `1`.
    pub(crate) fn target(&self, cell: &[u8]) -> Result<Option<f64>, DataErrorKind> {
        if let Some(class) = self.classes.iter().find(|class| *class.text == *cell) {
            return Ok(Some(class.target));
        }
        if self.missing.iter().any(|marker| **marker == *cell.trim_ascii()) {
            return if self.missing_is_neutral { Ok(None) } else { Err(DataErrorKind::LabelMissing) };
        }
        if let Some(number) = parse_number(cell)
            && let Some(class) = self.classes.iter().find(|class| class.number == Some(number))
        {
            return Ok(Some(class.target));
        }
        match self.others {
            Others::Positive => Ok(Some(1.0)),
            Others::Negative => Ok(Some(-1.0)),
            Others::Neutral => Ok(None),
            Others::Error => Err(DataErrorKind::LabelUnknown),
        }
    }
}
