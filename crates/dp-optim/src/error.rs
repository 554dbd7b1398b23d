//! Errors: public parameters outside their range, sources that do not keep their word, and interruption.

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
        /// Which list.
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
        /// What is missing, and what to do.
        why: &'static str,
    },
    /// A step may drive two runs apart where the recipe's theorem needs that none does.
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
    /// The sensitivity is not a positive finite number, so no noise can be scaled to it.
    #[error("the sensitivity of this recipe is {value:?}: {why}")]
    Sensitivity {
        /// The bound.
        value: f64,
        /// What makes it so.
        why: &'static str,
    },
    /// The source's shape is not what was planned for.
    #[error("planned for {name} = {planned}, the source has {found}")]
    Shape {
        /// `n` or `dim`.
        name: &'static str,
        /// As planned.
        planned: u64,
        /// As described by the source.
        found: u64,
    },
    /// The source does not promise the bound on rows or targets that the sensitivity rests on.
    #[error("planned for {name} of at most {planned}, the source enforces {found}")]
    Bound {
        /// `row norms` or `targets`.
        name: &'static str,
        /// As planned.
        planned: f64,
        /// As described by the source.
        found: f64,
    },
    /// The neighbouring relation is not the one that the plan was made for.
    #[error("planned for {planned}, called for {found}")]
    Relation {
        /// As planned.
        planned: AdjacencyKind,
        /// As called.
        found: AdjacencyKind,
    },
    /// The floating-point type is not the one that the plan was made for.
    #[error("planned for {planned} arithmetic, called with {found}")]
    FloatKind {
        /// As planned.
        planned: &'static str,
        /// As called.
        found: &'static str,
    },
    /// A setting that the algorithm does not take, or not beside another. Names of settings stand in backticks.
    #[error("{name}: {why}")]
    Setting {
        /// The name of the setting.
        name: &'static str,
        /// What is wrong with it.
        why: &'static str,
        /// What would be accepted.
        expected: Option<&'static str>,
        /// What to do.
        help: Option<&'static str>,
    },
    /// An algorithm logged another event than its plan had promised. What it computed is dropped.
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
    /// Says what a setting was expected to be.
    pub(crate) fn expected(self, words: &'static str) -> Self {
        match self {
            Self::Setting { name, why, help, .. } => Self::Setting { name, why, expected: Some(words), help },
            other => other,
        }
    }

    /// Says what to do about a setting.
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

/// `value` if it is finite and positive.
pub(crate) fn positive(name: &'static str, value: f64) -> Result<f64, Error> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(Error::OutOfRange { name, value, range: "(0, inf)" }) }
}

/// `value` if it is finite and not negative.
pub(crate) fn non_negative(name: &'static str, value: f64) -> Result<f64, Error> {
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err(Error::OutOfRange { name, value, range: "[0, inf)" })
    }
}
