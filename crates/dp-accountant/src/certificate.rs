//! The certificate of a released model, from which its guarantee is recomputed without the data.
//!
//! Verification has two halves. This crate checks that the event tree implies the stated (epsilon, delta). The crate of the
//! recipe implements [`Derivation`], which recomputes that event tree (including noise scale and sensitivity) from the recipe's
//! public parameters, so that an edited sensitivity is detected as well.
//!
//! A certificate contains no path, no time finer than a day, no seed, no key and no hash of data.

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

/// The rounding of released values; see `dp-mechanisms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum NoiseMode {
    /// Exact samplers on the grid: the theorem holds as stated.
    Exact,
    /// Double-precision samplers rounded to the grid: the theorem holds for ideal reals (`idealised_float`).
    Rounded,
    /// No noise was drawn.
    None,
}

/// A condition of the guarantee that only the curator can vouch for.
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
        /// Column names, including the label if its values were taken from the data.
        columns: Vec<String>,
    },
    /// One row is one person.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    OneRowPerUnit,
    /// Rows with the same value in a column are one unit. At most `most` rows of each are used, drawn independently of their
    /// contents, and null records fill up missing rows: every unit counts as `most` records, and the number of units is public.
    BoundedRows {
        /// The column that names the unit.
        column: String,
        /// The largest number of rows of a unit.
        most: u64,
    },
    /// Rows are those of a query's result; the query determines how many of them a person has.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    QueryRows,
    /// Training arithmetic is float32; an inflated sensitivity, measured and not proved, covers its rounding.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    FloatTraining,
    /// Noise is drawn by double-precision samplers and rounded to a grid; the theorem holds for ideal reals.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    IdealisedFloat,
    /// Contributions were clipped and added in floating point by another program. A margin of the sensitivity covers the rounding;
    /// it was measured, not proved.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    FloatSum,
    /// Neighbouring data sets move all scores of a selection (or all queries of a sparse vector) in one direction.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    MonotonicScores,
    /// The privacy loss of a mechanism from outside the library is the one claimed by its author.
    ClaimedByUser {
        /// The mechanism's name.
        mechanism: String,
    },
    /// Sums were computed by another engine, whose arithmetic is taken on trust: IEEE doubles, correctly rounded, and exact sums of
    /// integers. Contributions had this many binary digits.
    EngineArithmetic {
        /// The number of digits.
        bits: u32,
    },
    /// Another program clipped each record's contribution to the stated norm, and took the records of each step from the batches
    /// that the library drew.
    ClippedElsewhere {
        /// The program.
        program: String,
    },
    /// These tensors of a model were not trained: no record influenced them.
    PublicTensors {
        /// Their names.
        names: Vec<String>,
    },
    /// The curator vouches that rows were read in an order independent of the records' values.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    DeclaredOrder,
    /// Features were mapped at random (a projection, Fourier features); what determines the map, its seed among it, is public and
    /// was chosen without looking at a record.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    PublicProjection,
    /// The model is the best of models of several encodings of the records; what determines each encoding is public and was chosen
    /// without looking at a record.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    PublicEncodings,
    /// No record stops the training: each conforms to what the reader of the records requires. A record changed to any other
    /// still conforms.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    EveryRecordConforms,
    /// These settings were chosen among several on records that the curator believes to be public. If they were not public, the
    /// choice would reveal information about them.
    ChosenOnPublic {
        /// The candidate values by setting.
        grid: BTreeMap<String, Vec<f64>>,
    },
    /// Earlier releases about the same people are not part of this statement.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::event::no_fields"))]
    EarlierRunsNotAccounted,
    /// Anything else, in words.
    Other {
        /// The text of the assumption.
        text: String,
    },
}

impl Assumption {
    /// Returns the name in the serialised form, with its argument if there is one.
    pub fn name(&self) -> String {
        match self {
            Self::PublicN => "public_n".to_owned(),
            Self::RowNorm { bound } => format!("row_norm (bound {bound})"),
            Self::PublicSchema => "public_schema".to_owned(),
            Self::AssumedPublic { columns } => format!("assumed_public ({})", columns.join(", ")),
            Self::OneRowPerUnit => "one_row_per_unit".to_owned(),
            Self::BoundedRows { column, most } => format!("bounded_rows ({column}, at most {most})"),
            Self::QueryRows => "query_rows".to_owned(),
            Self::FloatTraining => "float_training".to_owned(),
            Self::IdealisedFloat => "idealised_float".to_owned(),
            Self::FloatSum => "float_sum".to_owned(),
            Self::MonotonicScores => "monotonic_scores".to_owned(),
            Self::ClaimedByUser { mechanism } => format!("claimed_by_user ({mechanism})"),
            Self::EngineArithmetic { bits } => format!("engine_arithmetic (bits {bits})"),
            Self::ClippedElsewhere { program } => format!("clipped_elsewhere ({program})"),
            Self::PublicTensors { names } => format!("public_tensors ({})", names.join(", ")),
            Self::DeclaredOrder => "declared_order".to_owned(),
            Self::PublicProjection => "public_projection".to_owned(),
            Self::PublicEncodings => "public_encodings".to_owned(),
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

/// A recipe with its public parameters, from which its release can be recomputed.
pub trait Derivation {
    /// The error of a recomputation.
    type Error: core::fmt::Display;
    /// Recomputes the event tree from the recipe alone.
    ///
    /// # Errors
    /// Parameters outside the range for which the recipe's theorem is proved.
    fn event(&self) -> Result<DpEvent, Self::Error>;
    /// Returns the relation under which the recipe's theorem was applied.
    fn adjacency(&self) -> AdjacencyKind;
    /// Returns the assumptions of the recipe's theorem; each must be listed in the certificate.
    fn assumptions(&self) -> Vec<Assumption>;
}

/// The certificate of a released model. `D` is the recipe's derivation.
///
/// With the `serde` feature a certificate is one flat object, in which `adjacency` and `n_public` together name the relation;
/// unknown fields and unknown schemas are refused.
///
/// # Examples
/// ```
/// use dp_accountant::certificate::{
///     Assumption, Certificate, Derivation, EpsilonDelta, NoiseMode, SCHEMA, VerifyError,
/// };
/// use dp_accountant::{AdjacencyKind, DpEvent, Error, guarantee::Unit};
///
/// /// The mean of n values in [0, 1], n public, with Laplace noise.
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
    /// The schema, [`SCHEMA`].
    pub schema: String,
    /// The neighbouring relation (and whether n is public).
    pub adjacency: AdjacencyKind,
    /// The unit of privacy.
    pub unit: Unit,
    /// True if a guarantee is claimed; false for reproducible noise and for non-private training.
    pub private: bool,
    /// The requested guarantee; `None` if none was requested.
    pub requested: Option<EpsilonDelta>,
    /// The achieved guarantee, at most the requested one; `None` if none is claimed.
    pub reached: Option<EpsilonDelta>,
    /// Everything that was released.
    pub event: DpEvent,
    /// The kind of noise.
    pub noise: NoiseMode,
    /// The recipe from which `event` follows.
    pub derivation: D,
    /// The assumptions of the guarantee.
    pub assumptions: Vec<Assumption>,
    /// SHA-256 of the canonical model, in hexadecimal.
    pub model_sha256: String,
    /// Versions of the crates that made the model.
    pub versions: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests;
