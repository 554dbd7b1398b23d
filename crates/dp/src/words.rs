//! The words of settings: for the flags of a program, or the arguments of a function.
//!
//! Each table holds the values that can be asked for, in the order of a help text. Defaults are the caller's.
//!
//! # Examples
//! ```
//! use dp::words::{self, NOISE};
//! use dp_accountant::certificate::NoiseMode;
//!
//! assert_eq!(words::named(NOISE, "rounded"), Some(NoiseMode::Rounded));
//! assert_eq!(words::named(NOISE, "none"), None);
//! assert_eq!(words::name(NOISE, NoiseMode::Exact), "exact");
//! ```

use dp_accountant::certificate::NoiseMode;
use dp_data::encode::{RowNorm, UnknownCategory};
use dp_data::schema::Scale;
#[cfg(feature = "networks")]
use dp_nets::Views;
use dp_optim::FloatKind;
use dp_optim::recipes::Share;
use dp_rank::read::SplitLists;
use dp_rank::spectral::Normalise;

use crate::ranker::NamedActivation;
use crate::training::TrialLaw;

/// Values, each with its name and its description; as [`Choice::ALL`](crate::accounting::Choice::ALL).
pub type Words<T> = &'static [(T, &'static str, &'static str)];

/// Returns the value of this name.
pub fn named<T: Copy>(words: Words<T>, name: &str) -> Option<T> {
    words.iter().find(|(_, known, _)| *known == name).map(|(value, ..)| *value)
}

/// Returns the name of a value; empty if the value cannot be asked for.
pub fn name<T: PartialEq>(words: Words<T>, value: T) -> &'static str {
    words.iter().find(|(known, ..)| *known == value).map_or("", |(_, name, _)| name)
}

/// The noise mode, without that of a training that draws no noise.
pub const NOISE: Words<NoiseMode> = &[
    (NoiseMode::Exact, "exact", "Exact samplers, on a grid: the theorem as stated"),
    (NoiseMode::Rounded, "rounded", "Double precision, rounded to a grid; the certificate names the idealisation"),
];

/// The floating-point type of training. Privacy arithmetic is always double.
pub const FLOAT: Words<FloatKind> = &[
    (FloatKind::F64, "f64", "Double precision"),
    (FloatKind::F32, "f32", "Single precision: half the memory; the certificate names what is assumed of its rounding"),
];

/// The method that bounds a row's norm by 1.
pub const ROW_NORM: Words<RowNorm> = &[
    (RowNorm::Clip, "clip", "Rows of norm above 1 are scaled to norm 1"),
    (RowNorm::Unit, "unit", "Every row is divided by its norm"),
];

/// The coordinate of numeric columns.
pub const COORDINATE: Words<Scale> = &[
    (Scale::Linear, "linear", "The place in the public range"),
    (Scale::Log, "log", "Its logarithm, so that small values are told apart even in generous ranges"),
    (Scale::ByRange, "by-range", "Logarithmic if the range spans orders of magnitude, otherwise linear"),
];

/// The treatment of a category that the schema does not list, in records that a model is used on.
pub const ON_UNKNOWN: Words<UnknownCategory> = &[
    (
        UnknownCategory::Other,
        "other",
        "As the category `other`; if the column has none, the column adds nothing to the score",
    ),
    (UnknownCategory::Error, "error", "The file is refused"),
    (UnknownCategory::Skip, "skip", "The record gets no score"),
];

/// The division of the budget among the classes' models.
pub const SHARE: Words<Share> = &[
    (Share::Joint, "joint", "One release of all models together; for the bolt-on algorithms"),
    (Share::Composed, "composed", "Each model is released separately, with noise calibrated to the composition of all"),
    (
        Share::Split,
        "split",
        "Each model has an equal part of epsilon and delta: for comparison with the literature, never better",
    ),
];

/// The distribution of a random number of trainings.
pub const TRIAL_LAW: Words<TrialLaw> = &[
    (TrialLaw::Logarithmic, "logarithmic", "Logarithmic: heavy tails, so that the whole costs twice one training"),
    (TrialLaw::Geometric, "geometric", "Geometric: three times (Liu and Talwar 2019)"),
    (
        TrialLaw::Poisson,
        "poisson",
        "Poisson; none at all is possible, and then the model of zeros is released. Needs a delta",
    ),
];

/// The views of an image over which losses and logits are averaged.
#[cfg(feature = "networks")]
pub const VIEWS: Words<Views> = &[
    (Views::One, "one", "The image alone"),
    (Views::Shifts, "shifts", "Also moved by one pixel up, down, left and right: five views"),
    (Views::Flip, "flip", "Also mirrored left to right: two views"),
    (Views::ShiftsAndFlip, "shifts-and-flip", "Both: ten views"),
];

/// The treatment of a query whose rows are not consecutive.
pub const SPLIT_LISTS: Words<SplitLists> = &[
    (SplitLists::Refuse, "refuse", "An error: two users may share a name"),
    (SplitLists::Join, "join", "Join them into one list"),
];

/// The activation function of a ranker's hidden units.
pub const ACTIVATION: Words<NamedActivation> =
    &[(NamedActivation::Relu, "relu", "max(h, 0)"), (NamedActivation::Tanh, "tanh", "tanh h")];

/// The schedule of spectral normalisation.
pub const NORMALISE: Words<Normalise> = &[
    (Normalise::Always, "always", "After every update"),
    (Normalise::AboveOne, "above-one", "Only when the norm is above 1"),
];
