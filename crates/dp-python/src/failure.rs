//! Errors as Python exceptions: the classes of `dp.errors`.

use dp::TrainError;
use dp::accounting::{Refusal, RefusalKind};
use dp_data::DataError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Returns a text of the program whose flags are arguments: `max_rows` in place of `--max-rows`.
pub(crate) fn with_arguments(text: &str) -> String {
    let mut parts = text.split("--");
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(part.len());
        found.push_str(&part[..end].replace('-', "_"));
        found.push_str(&part[end..]);
    }
    found
}

/// A class of `dp.errors`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Class {
    /// An argument is not usable.
    #[default]
    Argument,
    /// No theorem gives the guarantee.
    Privacy,
    /// A model file, or its guarantee, is refused.
    Verification,
    /// A schema or a record is refused.
    Data,
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Self::Argument => "DpError",
            Self::Privacy => "PrivacyError",
            Self::Verification => "VerificationError",
            Self::Data => "DataError",
        }
    }
}

/// An error on its way to Python.
#[derive(Debug, Default)]
pub(crate) struct Failure {
    pub(crate) class: Class,
    pub(crate) message: String,
    pub(crate) code: &'static str,
    pub(crate) field: Option<String>,
    pub(crate) expected: Option<String>,
    pub(crate) help: Option<String>,
}

impl Failure {
    /// Creates the error for an argument that is not usable.
    pub(crate) fn argument(field: &str, message: impl Into<String>) -> Self {
        let (message, field) = (message.into(), Some(field.to_owned()));
        Self { message, code: "usage.value", field, ..Self::default() }
    }

    /// Sets what was expected.
    pub(crate) fn expecting(self, expected: impl Into<String>) -> Self {
        Self { expected: Some(expected.into()), ..self }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let class = match refusal.kind {
            RefusalKind::Privacy => Class::Privacy,
            RefusalKind::Unproved => Class::Verification,
            _ => Class::Argument,
        };
        let Refusal { message, code, field, expected, help, .. } = refusal;
        Self { class, message, code, field, expected, help }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| {
            let made = || {
                let options = PyDict::new(py);
                options.set_item("code", failure.code)?;
                options.set_item("field", failure.field)?;
                options.set_item("expected", failure.expected)?;
                options.set_item("help", failure.help)?;
                py.import("dp.errors")?.getattr(failure.class.name())?.call((failure.message,), Some(&options))
            };
            made().map_or_else(|error| error, PyErr::from_value)
        })
    }
}

impl From<dp::Error> for Failure {
    fn from(error: dp::Error) -> Self {
        Self {
            class: Class::Verification,
            code: error.code(),
            field: error.field().map(str::to_owned),
            expected: error.expected().map(str::to_owned),
            help: error.help().map(str::to_owned),
            message: error.to_string(),
        }
    }
}

impl From<DataError> for Failure {
    /// Whoever calls holds the data: the message may quote a cell.
    fn from(error: DataError) -> Self {
        let column = error.column().map(|column| format!("column `{column}`"));
        let row = error.line().map(|line| format!("row {}", line.saturating_sub(1)));
        let place: Vec<String> = column.into_iter().chain(row).collect();
        let place = if place.is_empty() { String::new() } else { format!(" ({})", place.join(", ")) };
        Self {
            class: Class::Data,
            code: error.code(),
            field: error.column().or(error.field()).map(str::to_owned),
            expected: error.expected_text().map(str::to_owned),
            help: error.help_text().map(with_arguments),
            message: format!("{}{place}", error.message()),
        }
    }
}

impl From<dp_optim::Error> for Failure {
    fn from(error: dp_optim::Error) -> Self {
        let argument = |name: &str| name.replace('-', "_");
        let (name, message, expected, help) = match error {
            dp_optim::Error::OutOfRange { name, value, range } => {
                (name, format!("{} = {value:?} is out of range", argument(name)), Some(range), None)
            }
            dp_optim::Error::Count { name, value, range } => {
                (name, format!("{} = {value} is out of range", argument(name)), Some(range), None)
            }
            dp_optim::Error::Setting { name, why, expected, help } => {
                (name, format!("{}: {why}", argument(name)), expected, help)
            }
            _ => return Self { message: error.to_string(), code: "usage.value", ..Self::default() },
        };
        let (expected, help) = (expected.map(str::to_owned), help.map(str::to_owned));
        Self { message, code: "usage.value", field: Some(argument(name)), expected, help, ..Self::default() }
    }
}

impl From<TrainError> for Failure {
    fn from(error: TrainError) -> Self {
        match error {
            TrainError::Data(error) => error.into(),
            TrainError::Recipe(error) => {
                let failure = Self::from(error);
                Self { field: failure.field.map(|name| format!("settings[{name:?}]")), ..failure }
            }
            TrainError::Model(error) => error.into(),
            TrainError::Relation { .. } => Self {
                class: Class::Privacy,
                code: "privacy.adjacency",
                ..Self::argument("adjacency", error.to_string())
            },
            error => Self::argument("algorithm", error.to_string()),
        }
    }
}
