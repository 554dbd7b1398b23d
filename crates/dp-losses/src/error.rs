//! Errors: a parameter out of its range.

/// The error type of this crate. Each error names the parameter, its value and the accepted range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number is out of its range, or NaN.
    #[error("{name} = {value:?} must lie in {range}")]
    OutOfRange {
        /// The parameter's name.
        name: &'static str,
        /// The refused value.
        value: f64,
        /// The accepted range, e.g. `(0, 1e100]`.
        range: &'static str,
    },
    /// No loss has this name.
    #[error(
        "{text:?} is not a loss: expected `logistic`, `huber-svm[:<h>]`, `hinge`, `squared`, `huber-regression[:<h>]`, `log-cosh[:<h>]`, `absolute`, `softmax:<classes>` or `custom:<registered name>`"
    )]
    UnknownLoss {
        /// The given text.
        text: String,
    },
    /// A custom loss is refused.
    #[error("the custom loss {name:?} {problem}")]
    CustomLoss {
        /// The loss's name.
        name: String,
        /// The claim that fails, and where.
        problem: String,
    },
    /// The text is not a valid penalty.
    #[error(
        "{text:?} is not a penalty: expected `l1:<lambda>`, `elastic-net:<lambda>:<ridge>`, `group:<lambda>[:<sizes>]`, `nuclear:<lambda>`, `scad:<lambda>[:<a>]` or `mcp:<lambda>[:<gamma>]`"
    )]
    UnknownPenalty {
        /// The given text.
        text: String,
    },
}

impl Error {
    pub(crate) fn not_registered(name: &str) -> Self {
        Self::CustomLoss { name: name.to_owned(), problem: "is not registered in this program".to_owned() }
    }
}

/// Checks `0 <= value <= 1e100`, which prevents overflow of every constant computed from it. NaN fails.
pub(crate) fn non_negative(name: &'static str, value: f64) -> Result<f64, Error> {
    if (0.0..=1e100).contains(&value) {
        Ok(value + 0.0) // -0.0 becomes 0.0
    } else {
        Err(Error::OutOfRange { name, value, range: "[0, 1e100]" })
    }
}

/// Checks `1e-100 <= value <= 1e100`. NaN fails.
pub(crate) fn positive(name: &'static str, value: f64) -> Result<f64, Error> {
    if (1e-100..=1e100).contains(&value) {
        Ok(value)
    } else {
        Err(Error::OutOfRange { name, value, range: "[1e-100, 1e100]" })
    }
}
