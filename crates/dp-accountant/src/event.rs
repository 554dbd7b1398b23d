//! The event language: what was done to the data, as a small tree that every accountant reads.
//!
//! Mechanisms and optimisers emit events; they never compute an epsilon of their own. The meaning of a variant never
//! changes once released; a new meaning is a new variant. Events say nothing of the neighbouring relation: the
//! sensitivity inside an event holds under the relation of the [`EventLog`](crate::EventLog) or certificate that
//! carries it.

/// One node of the tree of what was released.
///
/// Noise scale and sensitivity are kept apart, in the units of the query, because a bare "noise multiplier" means
/// different things under different neighbouring relations.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum DpEvent {
    /// Nothing that depends on the data was released.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "no_fields"))]
    NoOp,
    /// Something was released without any guarantee.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "no_fields"))]
    NonPrivate,
    /// `value + N(0, std_dev² I)`, where `value` has L2 sensitivity `sensitivity`.
    Gaussian {
        /// Standard deviation of each coordinate's noise.
        std_dev: f64,
        /// L2 sensitivity of the released value.
        sensitivity: f64,
    },
    /// `value + Laplace(scale)` in each coordinate, where `value` has L1 sensitivity `sensitivity`.
    Laplace {
        /// Scale b of the density `exp(-|z|/b)/(2b)`.
        scale: f64,
        /// L1 sensitivity of the released value.
        sensitivity: f64,
    },
    /// `value + Z` with density of `Z` proportional to `exp(-‖z‖₂/scale)` on R^dim, where `value` has L2 sensitivity
    /// `sensitivity`.
    LaplaceBall {
        /// Scale of the norm's exponential decay.
        scale: f64,
        /// L2 sensitivity of the released value.
        sensitivity: f64,
        /// Dimension d of the released value.
        dim: u64,
    },
    /// Anything that is `epsilon`-DP.
    PureDp {
        /// The pure guarantee.
        epsilon: f64,
    },
    /// Anything that is `(epsilon, delta)`-DP and of which no more is known.
    ApproximateDp {
        /// Epsilon of the guarantee.
        epsilon: f64,
        /// Delta of the guarantee.
        delta: f64,
    },
    /// Anything that is `rho`-zCDP.
    Zcdp {
        /// The zCDP parameter.
        rho: f64,
    },
    /// A Gaussian release whose sensitivity depends on a secret, data-independent random index: with probability
    /// `weights[j]`, the same for both neighbours, it is `sensitivities[j]`. Nothing else that depends on the index is
    /// released. (The hidden position of a record in a permutation.)
    GaussianMixture {
        /// Standard deviation of each coordinate's noise.
        std_dev: f64,
        /// L2 sensitivity given the index.
        sensitivities: Vec<f64>,
        /// Probability of each index; non-negative, with sum 1.
        weights: Vec<f64>,
    },
    /// All of `events` happened; later ones may depend on the outcomes of earlier ones, their parameters may not.
    Composed {
        /// The parts.
        events: Vec<DpEvent>,
    },
    /// `event` happened `count` times, each on the same data.
    SelfComposed {
        /// What was repeated.
        event: Box<DpEvent>,
        /// How often.
        count: u64,
    },
}

/// Reads a variant without fields; serde would let any field pass there.
#[cfg(feature = "serde")]
pub(crate) fn no_fields<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NoFields {}
    <NoFields as serde::Deserialize>::deserialize(deserializer).map(|NoFields {}| ())
}

impl DpEvent {
    /// The variant's name, as in the serialised form.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoOp => "no-op",
            Self::NonPrivate => "non-private",
            Self::Gaussian { .. } => "gaussian",
            Self::Laplace { .. } => "laplace",
            Self::LaplaceBall { .. } => "laplace-ball",
            Self::PureDp { .. } => "pure-dp",
            Self::ApproximateDp { .. } => "approximate-dp",
            Self::Zcdp { .. } => "zcdp",
            Self::GaussianMixture { .. } => "gaussian-mixture",
            Self::Composed { .. } => "composed",
            Self::SelfComposed { .. } => "self-composed",
        }
    }
}
