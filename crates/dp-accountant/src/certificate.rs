//! The certificate of a released model: enough to recompute its guarantee without the data.
//!
//! `verify` has two halves. This crate checks that the event tree implies the stated (epsilon, delta). The crate that
//! knows the recipe implements [`Derivation`], which recomputes that event tree (noise scale and sensitivity included)
//! from the recipe's public parameters, so that an edited sensitivity is found out as well.
//!
//! A certificate holds no path, no time finer than a day, no seed, no key and no hash of data.

use crate::adjacency::AdjacencyKind;
use crate::event::DpEvent;
use crate::guarantee::Unit;

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
    PublicN,
    /// Each row's L2 norm is at most `bound`, enforced by the encoder, intercept included.
    RowNorm {
        /// The bound.
        bound: f64,
    },
    /// Ranges, categories and label values of the schema are public knowledge, reviewed by the curator.
    PublicSchema,
    /// These columns' ranges or categories were taken from the data and declared public.
    AssumedPublic {
        /// Column names; the label among them where its values were taken from the data.
        columns: Vec<String>,
    },
    /// One row is one person.
    OneRowPerUnit,
    /// Training arithmetic is float32; its rounding is covered by an inflated sensitivity that is measured, not proved.
    FloatTraining,
    /// Noise is drawn by double-precision samplers and rounded to a grid; the theorem is for ideal reals.
    IdealisedFloat,
    /// Rows were read in an order that the curator vouches for as independent of the records' values.
    DeclaredOrder,
    /// Earlier releases about the same people are not part of this statement.
    EarlierRunsNotAccounted,
    /// Anything else, in words.
    Other {
        /// The sentence.
        text: String,
    },
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
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Certificate<D> {
    /// [`SCHEMA`].
    pub schema: String,
    /// The neighbouring relation (and whether n is public).
    #[cfg_attr(feature = "serde", serde(flatten))]
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
    pub versions: std::collections::BTreeMap<String, String>,
}
