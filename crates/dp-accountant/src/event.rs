//! The event language: a small tree that describes a release and that every accountant reads.
//!
//! Mechanisms and optimisers emit events; they never compute an epsilon of their own. The meaning of a variant never
//! changes once released; a new meaning is a new variant. Events do not state the neighbouring relation: the sensitivity inside
//! an event holds under the relation of the [`EventLog`](crate::EventLog) or certificate that contains it. Accountants check
//! theorems that hold under some relations only: see [`DpEvent::relations`].
//!
//! With the `serde` feature a tree is read and written as JSON objects tagged by `type`; unknown types and unknown fields are
//! refused. An event from a file is only a claim, so numbers are checked when an event is used ([`bound`](crate::bound),
//! accountants): an invalid number gives a typed error, and trees nested deeper than [`MAX_DEPTH`] are refused without recursion.
//!
//! ```
//! use dp_accountant::DpEvent;
//! let event = DpEvent::SelfComposed {
//!     event: Box::new(DpEvent::Gaussian { std_dev: 2.0, sensitivity: 1.0 }),
//!     count: 10,
//! };
//! assert_eq!(event.name(), "self-composed");
//! ```

mod fields;

/// Greatest accepted depth of a tree.
pub const MAX_DEPTH: usize = 256;

/// One node of an event tree.
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
    /// Anything that is `(epsilon, delta)`-DP and has no other known guarantee.
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
    /// Integer-valued `value + N_Z(0, scale²)` in each coordinate, in steps of the grid: the law on the integers with
    /// masses proportional to `exp(-k²/(2 scale²))`.
    DiscreteGaussian {
        /// The law's parameter, in steps; its standard deviation is slightly less.
        scale: f64,
        /// L2 sensitivity in steps.
        sensitivity: f64,
        /// Number of coordinates.
        dim: u64,
    },
    /// Integer-valued `value + Lap_Z(scale)` in each coordinate, in steps of the grid: masses proportional to
    /// `exp(-|k|/scale)`.
    DiscreteLaplace {
        /// Scale in steps.
        scale: f64,
        /// L1 sensitivity in steps.
        sensitivity: u64,
    },
    /// Each record sends its own of `buckets` values, or with probability `noise` a uniformly random one.
    RandomizedResponse {
        /// Number of possible answers, at least 2.
        buckets: u64,
        /// Probability of a uniform answer.
        noise: f64,
    },
    /// Anything whose privacy loss has, for each pair of neighbours, a range of length at most `epsilon`, such as the exponential
    /// mechanism.
    BoundedRange {
        /// Length of the range of the privacy loss.
        epsilon: f64,
    },
    /// Anything that is `mu`-Gaussian-DP: no easier to test than `N(0, 1)` against `N(mu, 1)`.
    Gdp {
        /// The Gaussian-DP parameter.
        mu: f64,
    },
    /// Anything whose Renyi divergence, in both directions, is at most `divergences[i]` at `orders[i]`.
    RenyiDp {
        /// Orders above 1, strictly increasing.
        orders: Vec<f64>,
        /// The divergence at each order.
        divergences: Vec<f64>,
    },
    /// Anything dominated by a pair of laws on finitely many outcomes: for each pair of neighbours, `(p, q)` dominates it in one
    /// order and `(q, p)` in the other. Under add/remove, `p` is the law with the record. Under the symmetric relations, where
    /// every pair occurs in both orders, `(p, q)` must dominate both orders: otherwise two releases of opposite orders would
    /// compose to neither `(p, q)` twice nor `(q, p)` twice.
    DominatingPair {
        /// Probabilities of the outcomes under one law, with sum 1.
        p: Vec<f64>,
        /// Probabilities of the same outcomes under the other law, with sum 1.
        q: Vec<f64>,
    },
    /// `event`, on a random subset that holds each record independently with probability `sampling_rate`. Add/remove
    /// only.
    PoissonSampled {
        /// Probability that a record takes part.
        sampling_rate: f64,
        /// The release from the subset; its sensitivity is for one of *its* records.
        event: Box<DpEvent>,
    },
    /// `value + N(0, std_dev² I)` from a Poisson sample, where one record's contribution is replaced by another. The sample holds
    /// each record independently with probability `sampling_rate`. Given the rest of the sample, adding the record moves the
    /// value by at most `radius`, and changing the record moves it by at most `distance`. For sums of clipped contributions,
    /// `radius` is the clipping norm and `distance` twice that. Only for relations that replace in place: a record replaced, a
    /// list's labels changed. See [`sampled_replacement`](crate::sampled_replacement).
    PoissonSampledReplacement {
        /// Probability that a record takes part.
        sampling_rate: f64,
        /// Standard deviation of each coordinate's noise, in the units of the value.
        std_dev: f64,
        /// Largest L2 distance between two contributions of the same record, in the same units.
        distance: f64,
        /// Largest L2 norm of a contribution, in the same units; at most `distance`. If it is below `distance/2`, it reduces the
        /// distance. If a record may contribute nothing, the distance itself is a valid radius.
        radius: f64,
    },
    /// `event`, on a uniformly random subset of fixed size. Only for relations that replace in place. The sensitivity inside must
    /// hold for a record of the subset exchanged for any *other* record, not only for another version of itself: a bound on the
    /// effect of a change of labels is not enough.
    SampledWithoutReplacement {
        /// Size of the subset divided by the number of records.
        sampling_rate: f64,
        /// The release from the subset; its sensitivity is for one of *its* records.
        event: Box<DpEvent>,
    },
    /// Each of `records` records is randomised separately by an `epsilon`-DP mechanism, and the answers are published in random
    /// order. Replace-one only.
    Shuffled {
        /// Guarantee of one record's answer.
        epsilon: f64,
        /// Number of records.
        records: u64,
    },
    /// The last iterate of noisy contractions `w <- psi_t(w) + N(0, std_devs[t]² I)`. Each step reads its own records, in an
    /// order that does not depend on their values; no other iterate is released. For relations with a public number of records:
    /// replace-one, or add-remove with a null record.
    AmplifiedByIteration {
        /// Largest change of iterate t between two neighbouring records: `sup |psi_t(w) - psi_t'(w)|`.
        sensitivities: Vec<f64>,
        /// Standard deviation of the noise added to iterate t.
        std_devs: Vec<f64>,
        /// Lipschitz constant of every `psi_t`, at most 1.
        contraction: f64,
    },
    /// The index of the first of a stream of queries above a threshold; Laplace noise on both. One positive answer.
    AboveThresholdLaplace {
        /// Scale of the threshold's noise.
        threshold_scale: f64,
        /// Scale of each query's noise.
        query_scale: f64,
        /// Sensitivity of each query.
        sensitivity: f64,
    },
    /// The index of the first of at most `max_queries` queries above a threshold; Gaussian noise on both. One positive answer.
    AboveThresholdGaussian {
        /// Standard deviation of the threshold's noise.
        threshold_std_dev: f64,
        /// Standard deviation of each query's noise.
        query_std_dev: f64,
        /// Sensitivity of each query.
        sensitivity: f64,
        /// Number of queries after which the mechanism stops in any case.
        max_queries: u64,
        /// True if all queries move within one interval that holds 0 and has length `sensitivity`. If absent, queries move by up
        /// to `sensitivity` in either direction.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "core::ops::Not::not"))]
        range_bounded: bool,
    },
    /// Each of `events` reads its own part of the records; a pair of neighbours differs in one part only. This holds under
    /// add/remove, and under replace-one if a public index, and not the record's values, determines the parts.
    Parallel {
        /// The parts.
        events: Vec<DpEvent>,
    },
    /// Each of `events` reads its own part of the records, chosen by the records' values, under replace-one: one part may lose
    /// the record and another gain it, or one part loses a record and gains another. The parts' sensitivities are those of
    /// add/remove.
    ParallelByValue {
        /// The parts.
        events: Vec<DpEvent>,
    },
    /// One of `events`, all on the same records, drawn at random from a law that does not depend on any record; the drawn index
    /// may be published.
    OneOf {
        /// The possible releases.
        events: Vec<DpEvent>,
    },
    /// `event`, accounted for `size` records at once.
    Group {
        /// Number of records.
        size: u64,
        /// The release, with the sensitivities of one record.
        event: Box<DpEvent>,
    },
    /// `event` under replace-one, although its sensitivities and theorems are those of add/remove: a replacement is a removal and
    /// an addition. Gaussian noise on Poisson samples is read as [`PoissonSampledReplacement`](Self::PoissonSampledReplacement)
    /// with its sensitivity as the radius.
    AddRemoveTwice {
        /// The release under add/remove.
        event: Box<DpEvent>,
    },
    /// `event` repeated a random number of times, with only the best outcome published.
    RandomStopping {
        /// Law of the number of repetitions.
        repetitions: Repetitions,
        /// One repetition, including its quality score.
        event: Box<DpEvent>,
    },
    /// The minimiser of a convex objective with a random linear term `<b, w>`, `b ~ N(0, std_dev² I)`, and the term
    /// `regularization |w|²/2`, over rows of norm at most 1. Add/remove only.
    ObjectivePerturbation {
        /// Standard deviation of each coordinate of `b`.
        std_dev: f64,
        /// Coefficient of `|w|²/2` in the *sum* over records.
        regularization: f64,
        /// The margin loss.
        loss: MarginLoss,
    },
    /// All of `events`. Later events may depend on the outcomes of earlier ones; their parameters may not.
    Composed {
        /// The parts.
        events: Vec<DpEvent>,
    },
    /// `event`, `count` times on the same data.
    SelfComposed {
        /// The repeated event.
        event: Box<DpEvent>,
        /// Number of repetitions.
        count: u64,
    },
}

/// Law of the number of repetitions in [`DpEvent::RandomStopping`]. Nothing else about this number is published.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "law", rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum Repetitions {
    /// Truncated negative binomial on 1, 2, ...: geometric at `eta = 1`, logarithmic at `eta = 0`.
    TruncatedNegativeBinomial {
        /// Shape, above -1.
        eta: f64,
        /// Success probability, in (0, 1).
        gamma: f64,
    },
    /// Poisson; no outcome if the number is 0.
    Poisson {
        /// Mean number of repetitions.
        mean: f64,
    },
}

/// The loss in [`DpEvent::ObjectivePerturbation`]: a monotone margin loss or a similar one.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "loss", rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum MarginLoss {
    /// `ln(1 + exp(-margin))`.
    Logistic,
    /// Huber's smoothed hinge: quadratic for margins within `width` of 1.
    HuberSvm {
        /// Half the length of the quadratic part.
        width: f64,
    },
    /// `width ln cosh(residual / width)`: its derivative `a` is in (-1, 1), its second derivative `(1 - a²) / width`.
    LogCosh {
        /// Size of the residual at which the loss changes from quadratic to linear.
        width: f64,
    },
    /// Any loss of one residual with a derivative of either sign: `|derivative| <= slope`, `second derivative <=
    /// curvature`.
    BoundedSlope {
        /// Largest absolute derivative.
        slope: f64,
        /// Largest second derivative.
        curvature: f64,
    },
    /// The cross-entropy of a softmax over classes, one weight vector each; the gradient of a record has norm at most
    /// `sqrt 2`.
    Softmax {
        /// Number of classes, 2 or more.
        classes: u32,
    },
}

/// Deserialises a variant without fields; serde would accept any field there.
#[cfg(feature = "serde")]
pub(crate) fn no_fields<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NoFields {}
    <NoFields as serde::Deserialize>::deserialize(deserializer).map(|NoFields {}| ())
}

impl DpEvent {
    /// Returns the variant's name, as in the serialised form.
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
            Self::DiscreteGaussian { .. } => "discrete-gaussian",
            Self::DiscreteLaplace { .. } => "discrete-laplace",
            Self::RandomizedResponse { .. } => "randomized-response",
            Self::BoundedRange { .. } => "bounded-range",
            Self::Gdp { .. } => "gdp",
            Self::RenyiDp { .. } => "renyi-dp",
            Self::DominatingPair { .. } => "dominating-pair",
            Self::PoissonSampled { .. } => "poisson-sampled",
            Self::PoissonSampledReplacement { .. } => "poisson-sampled-replacement",
            Self::SampledWithoutReplacement { .. } => "sampled-without-replacement",
            Self::Shuffled { .. } => "shuffled",
            Self::AmplifiedByIteration { .. } => "amplified-by-iteration",
            Self::AboveThresholdLaplace { .. } => "above-threshold-laplace",
            Self::AboveThresholdGaussian { .. } => "above-threshold-gaussian",
            Self::Parallel { .. } => "parallel",
            Self::ParallelByValue { .. } => "parallel-by-value",
            Self::OneOf { .. } => "one-of",
            Self::Group { .. } => "group",
            Self::AddRemoveTwice { .. } => "add-remove-twice",
            Self::RandomStopping { .. } => "random-stopping",
            Self::ObjectivePerturbation { .. } => "objective-perturbation",
            Self::Composed { .. } => "composed",
            Self::SelfComposed { .. } => "self-composed",
        }
    }
}

#[cfg(test)]
mod tests;
