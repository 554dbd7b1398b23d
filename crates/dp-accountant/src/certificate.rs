//! The certificate of a released model: enough to recompute its guarantee without the data.
//!
//! `verify` has two halves. This crate checks that the event tree implies the stated (epsilon, delta). The crate that
//! knows the recipe implements [`Derivation`], which recomputes that event tree (noise scale and sensitivity included)
//! from the recipe's public parameters, so that an edited sensitivity is found out as well.
//!
//! A certificate holds no path, no time finer than a day, no seed, no key and no hash of data.

use std::collections::BTreeMap;

use crate::adjacency::AdjacencyKind;
use crate::event::DpEvent;
use crate::guarantee::Unit;

mod assemble;
#[cfg(feature = "serde")]
mod record;
mod verify;

pub use assemble::Figures;
pub use verify::{Verified, VerifyError};

/// The schema name written into every certificate.
pub const SCHEMA: &str = "dp.certificate/1";

/// How a released value was rounded; see `dp-mechanisms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum NoiseMode {
    /// Exact samplers on the grid: the theorem as stated.
    Exact,
    /// Double-precision samplers rounded to the grid: the theorem for ideal reals (`idealised_float`).
    Rounded,
    /// Nothing was drawn.
    None,
}

/// Something that the guarantee rests on and that nobody but the curator can vouch for.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "assumption", rename_all = "snake_case", deny_unknown_fields))]
#[non_exhaustive]
pub enum Assumption {
    /// The number of records is public.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    PublicN,
    /// Each row's L2 norm is at most `bound`, enforced by the encoder, intercept included.
    RowNorm {
        /// The bound.
        bound: f64,
    },
    /// Ranges, categories and label values of the schema are public knowledge, reviewed by the curator.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    PublicSchema,
    /// These columns' ranges or categories were taken from the data and declared public.
    AssumedPublic {
        /// Column names; the label among them where its values were taken from the data.
        columns: Vec<String>,
    },
    /// One row is one person.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    OneRowPerUnit,
    /// Training arithmetic is float32; its rounding is covered by an inflated sensitivity that is measured, not proved.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    FloatTraining,
    /// Noise is drawn by double-precision samplers and rounded to a grid; the theorem is for ideal reals.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    IdealisedFloat,
    /// Contributions were added in floating point; the rounding of the sum is inside the clipping slack, by a bound on
    /// the order of summation that the caller vouches for.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    FloatSum,
    /// Neighbouring data sets move all scores of a selection (or all queries of a sparse vector) in one direction.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    MonotonicScores,
    /// A mechanism that is not one of the library's costs what its author says.
    ClaimedByUser {
        /// The mechanism's name.
        mechanism: String,
    },
    /// Rows were read in an order that the curator vouches for as independent of the records' values.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    DeclaredOrder,
    /// Features were projected at random; the seed of the map is public and was chosen without looking at a record.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    PublicProjection,
    /// No record is such that it stops the training: each conforms to what the reader of the records refuses else. A change
    /// of one record to any other is one to a record that conforms.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    EveryRecordConforms,
    /// These settings were chosen among several on records that the curator believes to be public; were they not, the
    /// choice would tell of them.
    ChosenOnPublic {
        /// The values to choose from, by setting.
        grid: BTreeMap<String, Vec<f64>>,
    },
    /// Earlier releases about the same people are not part of this statement.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    EarlierRunsNotAccounted,
    /// Anything else, in words.
    Other {
        /// The sentence.
        text: String,
    },
}

impl Assumption {
    /// The name in the serialised form, with what it is about.
    pub fn name(&self) -> String {
        match self {
            Self::PublicN => "public_n".to_owned(),
            Self::RowNorm { bound } => format!("row_norm (bound {bound})"),
            Self::PublicSchema => "public_schema".to_owned(),
            Self::AssumedPublic { columns } => format!("assumed_public ({})", columns.join(", ")),
            Self::OneRowPerUnit => "one_row_per_unit".to_owned(),
            Self::FloatTraining => "float_training".to_owned(),
            Self::IdealisedFloat => "idealised_float".to_owned(),
            Self::FloatSum => "float_sum".to_owned(),
            Self::MonotonicScores => "monotonic_scores".to_owned(),
            Self::ClaimedByUser { mechanism } => format!("claimed_by_user ({mechanism})"),
            Self::DeclaredOrder => "declared_order".to_owned(),
            Self::PublicProjection => "public_projection".to_owned(),
            Self::EveryRecordConforms => "every_record_conforms".to_owned(),
            Self::ChosenOnPublic { grid } => {
                let settings: Vec<&str> = grid.keys().map(String::as_str).collect();
                format!("chosen_on_public ({})", settings.join(", "))
            }
            Self::EarlierRunsNotAccounted => "earlier_runs_not_accounted".to_owned(),
            Self::Other { text } => format!("other ({text})"),
        }
    }
}

/// An (epsilon, delta) pair as written in a certificate.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct EpsilonDelta {
    /// Epsilon.
    pub epsilon: f64,
    /// Delta.
    pub delta: f64,
}

/// A recipe with its public parameters, able to say again what it released.
pub trait Derivation {
    /// What can go wrong while recomputing.
    type Error: core::fmt::Display;
    /// Recomputes the event tree from the recipe alone.
    ///
    /// # Errors
    /// Parameters outside the recipe's proven range.
    fn event(&self) -> Result<DpEvent, Self::Error>;
    /// The relation that the recipe's theorem was applied under.
    fn adjacency(&self) -> AdjacencyKind;
    /// What the recipe's theorem takes on trust; each must be listed in the certificate.
    fn assumptions(&self) -> Vec<Assumption>;
}

/// The certificate of a released model. `D` is the recipe's derivation.
///
/// With the `serde` feature it reads and writes one flat object, in which `adjacency` and `n_public` together name the
/// relation; unknown fields and unknown schemas are refused.
///
/// # Examples
/// ```
/// use dp_accountant::certificate::{
///     Assumption, Certificate, Derivation, EpsilonDelta, NoiseMode, SCHEMA, VerifyError,
/// };
/// use dp_accountant::{AdjacencyKind, DpEvent, Error, guarantee::Unit};
///
/// /// The mean of n public values in [0, 1], with Laplace noise.
/// struct NoisyMean { n: u64, scale: f64 }
///
/// impl Derivation for NoisyMean {
///     type Error = Error;
///     fn event(&self) -> Result<DpEvent, Error> {
///         Ok(DpEvent::Laplace { scale: self.scale, sensitivity: 1.0 / self.n as f64 })
///     }
///     fn adjacency(&self) -> AdjacencyKind { AdjacencyKind::ReplaceOne }
///     fn assumptions(&self) -> Vec<Assumption> { vec![Assumption::PublicN] }
/// }
///
/// let derivation = NoisyMean { n: 1000, scale: 0.01 };
/// let mut certificate = Certificate {
///     schema: SCHEMA.to_owned(),
///     adjacency: AdjacencyKind::ReplaceOne,
///     unit: Unit::Record,
///     private: true,
///     requested: None,
///     reached: Some(EpsilonDelta { epsilon: 0.1, delta: 0.0 }),
///     event: derivation.event()?,
///     noise: NoiseMode::Exact,
///     derivation,
///     assumptions: vec![Assumption::PublicN, Assumption::EarlierRunsNotAccounted],
///     model_sha256: String::new(),
///     versions: Default::default(),
/// };
/// assert!((certificate.verify().unwrap().recomputed_epsilon - 0.1).abs() < 1e-15);
///
/// certificate.reached = Some(EpsilonDelta { epsilon: 0.05, delta: 0.0 });
/// assert!(matches!(certificate.verify(), Err(VerifyError::EpsilonTooSmall { .. })));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Certificate<D> {
    /// [`SCHEMA`].
    pub schema: String,
    /// The neighbouring relation (and whether n is public).
    pub adjacency: AdjacencyKind,
    /// The unit of privacy.
    pub unit: Unit,
    /// Whether a guarantee is claimed at all: false for reproducible noise and for non-private training.
    pub private: bool,
    /// What was asked for; absent where nothing was.
    pub requested: Option<EpsilonDelta>,
    /// What was reached: at most what was asked for; absent where nothing is claimed.
    pub reached: Option<EpsilonDelta>,
    /// Everything that was released.
    pub event: DpEvent,
    /// How the noise was drawn.
    pub noise: NoiseMode,
    /// The recipe from which `event` follows.
    pub derivation: D,
    /// What the statement rests on.
    pub assumptions: Vec<Assumption>,
    /// SHA-256 of the canonical model, in hexadecimal.
    pub model_sha256: String,
    /// Versions of the crates that made it.
    pub versions: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests;
