//! Errors: public parameters outside their range, sources that break their contract, and interruption.

use dp_accountant::AdjacencyKind;

/// Errors of this crate. No variant holds anything that depends on a record's value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
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
    /// A count is zero or too large.
    #[error("{name} = {value} must be {range}")]
    Count {
        /// The parameter's name.
        name: &'static str,
        /// The refused value.
        value: u64,
        /// The accepted range in words.
        range: &'static str,
    },
    /// A list of step sizes or averaging coefficients does not have one number per update.
    #[error("{name} has {found} numbers, the run has {updates} updates")]
    Length {
        /// Name of the list.
        name: &'static str,
        /// Its length.
        found: u64,
        /// Updates of the run.
        updates: u64,
    },
    /// The recipe's theorem does not hold for this combination of parameters.
    #[error("{recipe}: {why}")]
    NotProved {
        /// The recipe or theorem.
        recipe: &'static str,
        /// The missing condition, and a remedy.
        why: &'static str,
    },
    /// A step may increase the distance of two runs, but the recipe's theorem needs non-expansive steps.
    #[error(
        "{recipe}: a step of {step:?} may drive two runs apart; steps of at most 2/smoothness = {longest:?} do not"
    )]
    StepTooLong {
        /// The recipe.
        recipe: &'static str,
        /// The refused step.
        step: f64,
        /// The longest accepted one.
        longest: f64,
    },
    /// The recipe has no proof under this neighbouring relation.
    #[error("{recipe} is proved for neighbouring relations with a public number of records (replace-one, or add-remove with a null record), not for {adjacency} with n_public = {}", .adjacency.n_public())]
    Adjacency {
        /// The recipe.
        recipe: &'static str,
        /// The refused relation.
        adjacency: AdjacencyKind,
    },
    /// The sensitivity is not positive and finite, so that no noise can be scaled to it.
    #[error("the sensitivity of this recipe is {value:?}: {why}")]
    Sensitivity {
        /// The bound.
        value: f64,
        /// The cause.
        why: &'static str,
    },
    /// The source's shape differs from the planned one.
    #[error("planned for {name} = {planned}, the source has {found}")]
    Shape {
        /// `n` or `dim`.
        name: &'static str,
        /// The planned number.
        planned: u64,
        /// The number that the source states.
        found: u64,
    },
    /// The source does not guarantee the bound on rows or targets that the sensitivity requires.
    #[error("planned for {name} of at most {planned}, the source enforces {found}")]
    Bound {
        /// `row norms` or `targets`.
        name: &'static str,
        /// The planned bound.
        planned: f64,
        /// The bound that the source states.
        found: f64,
    },
    /// The neighbouring relation differs from the planned one.
    #[error("planned for {planned}, called for {found}")]
    Relation {
        /// The planned relation.
        planned: AdjacencyKind,
        /// The relation of the call.
        found: AdjacencyKind,
    },
    /// The floating-point type differs from the planned one.
    #[error("planned for {planned} arithmetic, called with {found}")]
    FloatKind {
        /// The planned type.
        planned: &'static str,
        /// The type of the call.
        found: &'static str,
    },
    /// A setting that the algorithm does not take, or not in combination with another. Names of settings are in backticks.
    #[error("{name}: {why}")]
    Setting {
        /// The name of the setting.
        name: &'static str,
        /// The problem.
        why: &'static str,
        /// Accepted values.
        expected: Option<&'static str>,
        /// A remedy.
        help: Option<&'static str>,
    },
    /// A run cannot go on from this state.
    #[error("the state of the earlier run does not fit: {why}")]
    State {
        /// The difference.
        why: &'static str,
    },
    /// An algorithm logged an event other than its plan had promised. Its result is discarded.
    #[error("the training logged another event than was planned: the algorithm is at fault, and nothing was released")]
    NotAsPlanned,
    /// The caller cancelled the run. Nothing was released.
    #[error("interrupted; nothing was released")]
    Interrupted,
    /// The rows could not be read. Nothing was released.
    #[error(transparent)]
    Source(#[from] dp_data::SourceError),
    /// A loss refused its parameters.
    #[error(transparent)]
    Loss(#[from] dp_losses::Error),
    /// A mechanism refused its parameters.
    #[error(transparent)]
    Mechanism(#[from] dp_mechanisms::Error),
    /// The accountant refused the event or could not reach the target.
    #[error(transparent)]
    Accountant(#[from] dp_accountant::Error),
}

impl Error {
    /// Adds the expected values of a setting.
    pub(crate) fn expected(self, words: &'static str) -> Self {
        match self {
            Self::Setting { name, why, help, .. } => Self::Setting { name, why, expected: Some(words), help },
            other => other,
        }
    }

    /// Adds a remedy for a setting.
    pub(crate) fn help(self, words: &'static str) -> Self {
        match self {
            Self::Setting { name, why, expected, .. } => Self::Setting { name, why, expected, help: Some(words) },
            other => other,
        }
    }
}

impl From<dp_data::OutOfMemory> for Error {
    fn from(error: dp_data::OutOfMemory) -> Self {
        Self::Source(error.into())
    }
}

/// Returns `value` if it is finite and positive.
pub(crate) fn positive(name: &'static str, value: f64) -> Result<f64, Error> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(Error::OutOfRange { name, value, range: "(0, inf)" }) }
}

/// Returns `value` if it is finite and not negative.
pub(crate) fn non_negative(name: &'static str, value: f64) -> Result<f64, Error> {
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err(Error::OutOfRange { name, value, range: "[0, inf)" })
    }
}
