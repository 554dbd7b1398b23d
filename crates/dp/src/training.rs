//! Training on a table, which gives a released model with its certificate.

mod choice;
mod plan;
mod records;
mod run;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{AdjacencyKind, Delta, Epsilon};
use dp_data::encode::{Encoding, FeatureMap, FourierFeatures};
use dp_data::spool::Room;
use dp_data::{DataError, Workers};
use dp_losses::LossKind;
use dp_optim::FloatKind;
use dp_optim::catalogue::{self, Entry, Settings};
use dp_optim::recipes::{Budget, Share};

pub use choice::{Choice, ChoiceMethod, TrialLaw};
pub(crate) use plan::budgets_of_a_record;
pub use plan::{
    LARGEST_SUGGESTED_DELTA, REGRESSION_WIDTH, Shape, Task, USELESS, encoding_of, suggested_delta, usual_loss,
    with_chosen_map,
};
pub use records::{Records, Tried, key_of_units};
pub use run::Trained;

use crate::error::Error;

/// A private training on a table. All settings are public and chosen before a record is read.
///
/// By default the algorithm is `auto`, which chooses by public numbers alone; the neighbouring relation is the default of the
/// algorithm, the loss is [`usual_loss`] of the label, the encoding is [`Encoding::default`], and `auto` chooses the functions
/// of numeric columns.
///
/// # Examples
/// ```
/// use dp_data::{Schema, read::Input};
///
/// let schema = Schema::parse("schema.toml", r#"
/// [label]
/// column = "buys"
/// positive = "yes"
/// negative = "no"
///
/// [columns.visits]
/// type = "numeric"
/// min = 0
/// max = 30
/// "#)?;
/// let mut table = "visits,buys\n".to_owned();
/// for i in 0..2000 {
///     table.push_str(&format!("{},{}\n", i % 31, if i % 31 > 15 { "yes" } else { "no" }));
/// }
/// let file = dp::Training::new(1.0, 1e-6)?.on_csv(&schema, Input::from_bytes("people.csv", table.into_bytes()))?;
/// assert!(dp::verify::model(&file, dp::verify::WORK)?.epsilon <= 1.0);
/// assert_eq!(dp::ModelFile::parse(file.to_text()?.as_bytes())?, file);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Training {
    algorithm: &'static Entry,
    settings: Settings,
    epsilon: Epsilon,
    delta: Option<Delta>,
    relation: Option<AdjacencyKind>,
    loss: Option<LossKind>,
    one_vs_all: Option<Share>,
    at_base_rate: bool,
    noise: NoiseMode,
    float: FloatKind,
    sums: bool,
    encoding: Encoding,
    map: Option<FeatureMap>,
    tried: Option<FourierFeatures>,
    workers: Workers,
    room: Room,
    unit: Option<(String, u64)>,
    seed: Option<u64>,
    choice: Option<Choice>,
    versions: BTreeMap<String, String>,
}

/// The reason why a training was refused or failed. Nothing was released.
///
/// # Privacy
/// The text of [`Data`](Self::Data) is for the curator: it may quote a cell. [`DataError::public_message`] does not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// Unknown name of an algorithm; [`catalogue::ALGORITHMS`] lists the known ones.
    #[error("there is no algorithm `{0}`")]
    Algorithm(String),
    /// The algorithm has no proof under this relation.
    #[error("{algorithm} has no proof under {relation}")]
    Relation {
        /// The algorithm.
        algorithm: &'static str,
        /// The relation.
        relation: AdjacencyKind,
    },
    /// The recipe rejects the settings, or training failed.
    #[error(transparent)]
    Recipe(#[from] dp_optim::Error),
    /// Error in the schema or the records.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The released model is unusable or cannot be written.
    #[error(transparent)]
    Model(#[from] Error),
}

impl From<dp_accountant::Error> for TrainError {
    fn from(error: dp_accountant::Error) -> Self {
        Self::Recipe(error.into())
    }
}

impl From<dp_mechanisms::Error> for TrainError {
    fn from(error: dp_mechanisms::Error) -> Self {
        Self::Recipe(error.into())
    }
}

impl Training {
    /// Creates a training with the budget `epsilon` and `delta`; without a delta, that of [`suggested_delta`].
    ///
    /// # Errors
    /// An epsilon that is not positive and finite, or a delta outside `[0, 1)`.
    pub fn new(epsilon: f64, delta: impl Into<Option<f64>>) -> Result<Self, TrainError> {
        let (epsilon, delta) = (Epsilon::new(epsilon)?, delta.into().map(Delta::new).transpose()?);
        Ok(Self::of(epsilon, delta))
    }

    /// Creates a training with this budget.
    pub fn of_budget(budget: Budget) -> Self {
        Self::of(budget.epsilon, Some(budget.delta))
    }

    fn of(epsilon: Epsilon, delta: Option<Delta>) -> Self {
        Self {
            algorithm: catalogue::AUTO,
            settings: Settings::default(),
            epsilon,
            delta,
            relation: None,
            loss: None,
            one_vs_all: None,
            at_base_rate: false,
            noise: NoiseMode::Exact,
            float: FloatKind::F64,
            sums: false,
            encoding: Encoding::default(),
            map: None,
            tried: None,
            workers: Workers::ONE,
            room: Room::default(),
            unit: None,
            seed: None,
            choice: None,
            versions: versions(),
        }
    }

    /// Sets the algorithm.
    #[must_use]
    pub fn by_entry(self, algorithm: &'static Entry) -> Self {
        Self { algorithm, ..self }
    }

    /// Sets the [algorithm](catalogue::ALGORITHMS) by name.
    ///
    /// # Errors
    /// [`TrainError::Algorithm`].
    pub fn by(self, algorithm: &str) -> Result<Self, TrainError> {
        let found = catalogue::find(algorithm).ok_or_else(|| TrainError::Algorithm(algorithm.to_owned()))?;
        Ok(Self { algorithm: found, ..self })
    }

    /// Sets the settings of the algorithm.
    #[must_use]
    pub fn with_settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// Sets the loss.
    #[must_use]
    pub fn with_loss(self, loss: LossKind) -> Self {
        Self { loss: Some(loss), ..self }
    }

    /// Trains one model for each of several classes, against all others, with a budget that they share.
    #[must_use]
    pub fn one_against_the_rest(self, share: Share) -> Self {
        Self { one_vs_all: Some(share), ..self }
    }

    /// Releases the base rate of two classes too, at which the model then decides.
    #[must_use]
    pub fn at_base_rate(self) -> Self {
        Self { at_base_rate: true, ..self }
    }

    /// Sets the noise mode; [`NoiseMode::Exact`] by default.
    #[must_use]
    pub fn with_noise(self, noise: NoiseMode) -> Self {
        Self { noise, ..self }
    }

    /// Sets the floating-point type of training; double precision by default.
    #[must_use]
    pub fn in_float(self, float: FloatKind) -> Self {
        Self { float, ..self }
    }

    /// Restricts the algorithm to sums over all records, for rows that stay at their source.
    #[must_use]
    pub fn on_sums(self) -> Self {
        Self { sums: true, ..self }
    }

    /// Draws noise from a generator with this seed: the model is reproducible, and its certificate claims no guarantee, because
    /// whoever guesses the seed can subtract the noise.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Chooses privately among settings, in place of [`with_settings`](Self::with_settings).
    #[must_use]
    pub fn choosing(self, choice: Choice) -> Self {
        Self { choice: Some(choice), ..self }
    }

    /// Sets what the certificate names as the programs that made it, by version; this crate by default.
    #[must_use]
    pub fn made_by(self, versions: BTreeMap<String, String>) -> Self {
        Self { versions, ..self }
    }

    /// Sets the encoding of rows. Its map is that of [`with_map`](Self::with_map), or the choice of the algorithm.
    #[must_use]
    pub fn with_encoding(self, encoding: Encoding) -> Self {
        Self { encoding, ..self }
    }

    /// Sets the functions of numeric columns for which the schema states none.
    #[must_use]
    pub fn with_map(self, map: FeatureMap) -> Self {
        Self { map: Some(map), ..self }
    }

    /// Tries these random Fourier features: trains without and with them on the same nine tenths of the records, and releases the
    /// model that makes fewer mistakes on the other tenth, chosen privately ([`Composition`](dp_optim::tuning::Composition)). Both
    /// trainings share the budget: with a delta the model without the features has .54 of epsilon and the one with them .84, without
    /// a delta .39 and .61. These features replace those of the [encoding](Self::with_encoding). The label must have classes.
    ///
    /// # Examples
    /// ```
    /// use dp_data::encode::FourierFeatures;
    /// use dp_data::{Schema, read::Input};
    ///
    /// let schema = Schema::parse("schema.toml", "label = { column = 'y', positive = '1', negative = '0' }\n\
    ///     columns.a = { type = 'numeric', min = 0, max = 1 }\ncolumns.b = { type = 'numeric', min = 0, max = 1 }")?;
    /// // The label is whether both columns are on the same side of their middle, which no sum of two functions tells.
    /// let mut table = "a,b,y\n".to_owned();
    /// for i in 0..20_000 {
    ///     let (a, b) = (i % 101, i / 101 % 97);
    ///     table.push_str(&format!("{},{},{}\n", a as f64 / 101.0, b as f64 / 97.0, u8::from((a > 50) == (b > 48))));
    /// }
    /// let file = dp::Training::new(2.0, 1e-6)?
    ///     .trying_fourier(FourierFeatures::new(40))
    ///     .on_csv(&schema, Input::from_bytes("points.csv", table.into_bytes()))?;
    /// assert!(file.model.encoder.encoding().fourier.is_some());
    /// assert!(dp::verify::model(&file, dp::verify::WORK)?.epsilon <= 2.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn trying_fourier(self, fourier: FourierFeatures) -> Self {
        Self { tried: Some(fourier), ..self }
    }

    /// Sets the threads; one by default. The model does not depend on their number.
    #[must_use]
    pub fn with_workers(self, workers: Workers) -> Self {
        Self { workers, ..self }
    }

    /// Sets the memory for the rows of a file, and the folder for rows that exceed it; [`Room::default`] by default. The
    /// threads are those of [`with_workers`](Self::with_workers). The model does not depend on them.
    #[must_use]
    pub fn with_room(self, room: Room) -> Self {
        Self { room, ..self }
    }

    /// Protects all rows of a unit together, such as those of one patient: rows with one value of `column`, of which at most `most` are
    /// used.
    ///
    /// # Examples
    /// ```
    /// use dp_data::{Schema, read::Input};
    /// # let schema = Schema::parse("schema.toml", "label = { column = 'well', positive = 'yes', negative = 'no' }\n\
    /// #     columns.dose = { type = 'numeric', min = 0, max = 30 }")?;
    /// let mut visits = "patient,dose,well\n".to_owned();
    /// for i in 0..6000 {
    ///     visits.push_str(&format!("{},{},{}\n", i * 7 % 2000, i % 31, if i % 31 > 15 { "yes" } else { "no" }));
    /// }
    /// let input = Input::from_bytes("visits.csv", visits.into_bytes());
    /// let file = dp::Training::new(1.0, 1e-6)?.per_unit("patient", 3).on_csv(&schema, input)?;
    /// let verified = dp::verify::model(&file, dp::verify::WORK)?;
    /// assert_eq!(verified.unit, "all records of one patient");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn per_unit(self, column: &str, most: u64) -> Self {
        Self { unit: Some((column.to_owned(), most)), ..self }
    }

    /// Sets the neighbouring relation: [`AdjacencyKind::ReplaceOne`] or [`AdjacencyKind::ZeroOut`].
    #[must_use]
    pub fn under(self, relation: AdjacencyKind) -> Self {
        Self { relation: Some(relation), ..self }
    }
}

/// Returns the version of this crate, for certificates.
pub(crate) fn versions() -> BTreeMap<String, String> {
    BTreeMap::from([(env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned())])
}
