//! Errors: invalid public parameters, and broken contracts detected before anything is released.

/// The error type of this crate. No variant contains a private value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number that must be finite is NaN or infinite.
    #[error("{name} = {value:?} must be finite")]
    NotFinite {
        /// The parameter's name.
        name: &'static str,
        /// The refused value.
        value: f64,
    },
    /// A number that must be positive is zero or negative.
    #[error("{name} = {value:?} must be greater than 0")]
    NotPositive {
        /// The parameter's name.
        name: &'static str,
        /// The refused value.
        value: f64,
    },
    /// A number is positive but too small to be intended.
    #[error("{name} = {value:?} is below {least:?}")]
    TooSmall {
        /// The parameter's name.
        name: &'static str,
        /// The refused value.
        value: f64,
        /// The least accepted value.
        least: f64,
    },
    /// A number lies outside its range.
    #[error("{name} = {value:?} must lie in {range}")]
    OutOfRange {
        /// The parameter's name.
        name: &'static str,
        /// The refused value.
        value: f64,
        /// The accepted range in words.
        range: &'static str,
    },
    /// A sensitivity of zero: nearly always a mistake, which would give a release without noise.
    #[error("sensitivity is 0: a release would carry no noise")]
    ZeroSensitivity,
    /// A dimension of zero or above 2^32.
    #[error("dimension {dimension} must lie in 1..=2^32")]
    Dimension {
        /// The refused dimension.
        dimension: u64,
    },
    /// A vector's length differs from the stated dimension.
    #[error("the vector has {found} coordinates, expected {expected}")]
    DimensionMismatch {
        /// The stated dimension.
        expected: u64,
        /// The vector's length.
        found: u64,
    },
    /// Two lists that belong together differ in length, or a list that must not be empty is empty.
    #[error("{name} has length {found}, expected {expected}")]
    Length {
        /// The name of the list.
        name: &'static str,
        /// Its length.
        found: usize,
        /// The accepted length in words.
        expected: &'static str,
    },
    /// More examples than the public bound of a sum.
    #[error("the sum was built for at most {most} examples")]
    TooManyExamples {
        /// The bound.
        most: u64,
    },
    /// Two partial sums with different parameters cannot be added.
    #[error("partial sums of different kinds: clipping, grid, dimension and number of records must be the same")]
    SumsDiffer,
    /// A sum from elsewhere is larger than its contributions can be together. It has no noise yet, so it is not shown.
    #[error("the sum is larger than its number of contributions allows")]
    ImpossibleSum,
    /// The classical Gaussian calibration is proved only for epsilon below 1.
    #[error("the classical calibration needs epsilon < 1, got {epsilon}; use `analytic`")]
    ClassicalNeedsEpsilonBelowOne {
        /// The refused epsilon.
        epsilon: f64,
    },
    /// A derived noise scale or its grid over- or underflows.
    #[error("the noise scale {scale:?} or its grid is outside the range of doubles")]
    ScaleOverflow {
        /// The derived scale.
        scale: f64,
    },
    /// The value's sensitivity exceeds that of the mechanism.
    #[error("sensitivity {found} exceeds {built_for}, which the mechanism was built for")]
    SensitivityExceeded {
        /// The value's sensitivity.
        found: f64,
        /// The mechanism's sensitivity.
        built_for: f64,
    },
    /// No sampler of this noise mode is implemented.
    #[error("noise mode {mode:?} is not available")]
    UnavailableNoise {
        /// The mode.
        mode: dp_accountant::certificate::NoiseMode,
    },
    /// A user-defined mechanism needs a name that a certificate can print.
    #[error("the mechanism's name {name:?} must have visible characters and no control characters")]
    MechanismName {
        /// The refused name.
        name: String,
    },
    /// An aggregated value contains a NaN or an infinity: the caller broke the contract before the release.
    #[error("the value to be released is not finite")]
    NonFiniteInput,
    /// A session (a sparse vector, a continual release) has made all the releases that were paid for.
    #[error("the session is over: all {most} {what} are used up")]
    SessionOver {
        /// The exhausted quantity.
        what: &'static str,
        /// Its number.
        most: u64,
    },
    /// A run that has paid for its last iterate only was asked to release another one.
    #[error("only the last iterate may be released: {left} are left")]
    IteratesLeft {
        /// Number of remaining iterates, including the last one.
        left: u64,
    },
    /// A scope held another number of releases than its event accounts for.
    #[error("the event accounts for {prepaid} releases, and {found} were made")]
    NotPrepaid {
        /// The number that the event accounts for.
        prepaid: u64,
        /// The number of releases.
        found: u64,
    },
    /// A session was paid for in a log other than the one in which its release was to be recorded.
    #[error("the session was started with another log")]
    OtherLog,
    /// The operating system's random source failed.
    #[error("the operating system's random source failed: {0}")]
    RandomSource(String),
    /// A random generator returned values that a working one returns with probability below 2^-100, such as the same word again
    /// and again: nothing is released, to avoid a release without noise.
    #[error("the random generator is stuck; nothing was released")]
    StuckGenerator,
    /// The accountant refused a parameter.
    #[error(transparent)]
    Accountant(#[from] dp_accountant::Error),
}

/// Checks `value > 0`, finite and normal (NaN fails).
pub(crate) fn positive_normal(name: &'static str, value: f64) -> Result<f64, Error> {
    if !value.is_finite() {
        return Err(Error::NotFinite { name, value });
    }
    if !(value > 0.0) {
        return Err(Error::NotPositive { name, value });
    }
    if !value.is_normal() {
        return Err(Error::TooSmall { name, value, least: f64::MIN_POSITIVE });
    }
    Ok(value)
}

/// Checks a dimension, `1..=2^32`.
pub(crate) fn dimension(value: u64) -> Result<u64, Error> {
    if (1..=1 << 32).contains(&value) { Ok(value) } else { Err(Error::Dimension { dimension: value }) }
}
