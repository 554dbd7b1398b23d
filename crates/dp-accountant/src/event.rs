//! The event language: what was done to the data, as a small tree that every accountant reads.
//!
//! Mechanisms and optimisers emit events; they never compute an epsilon of their own. The meaning of a variant never
//! changes once released; a new meaning is a new variant. Events say nothing of the neighbouring relation: the
//! sensitivity inside an event holds under the relation of the [`EventLog`](crate::EventLog) or certificate that
//! carries it. Where a theorem holds under some relations only, accountants check it: see [`DpEvent::relations`].
//!
//! With the `serde` feature a tree reads and writes as JSON objects tagged by `type`; unknown types and unknown fields
//! are refused. Numbers are checked where events are used ([`bound`](crate::bound), accountants), because an event
//! from a file is only a claim until then: a bad number is a typed error there, and trees nested deeper than
//! [`MAX_DEPTH`] are refused without recursion.
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

pub use crate::leaves::MAX_DEPTH;

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
    /// Each record answers for itself: its own of `buckets` values, or with probability `noise` a uniform one of them.
    RandomizedResponse {
        /// Number of possible answers, at least 2.
        buckets: u64,
        /// Probability of a uniform answer.
        noise: f64,
    },
    /// Anything whose privacy loss has, for each pair of neighbours, a range of at most `epsilon`: the exponential
    /// mechanism and its kin.
    BoundedRange {
        /// Length of the loss's range.
        epsilon: f64,
    },
    /// Anything that is `mu`-Gaussian-DP: no easier to test than `N(0, 1)` against `N(mu, 1)`.
    Gdp {
        /// The parameter.
        mu: f64,
    },
    /// Anything whose Renyi divergence, in both directions, is at most `divergences[i]` at `orders[i]`.
    RenyiDp {
        /// Orders above 1, strictly increasing.
        orders: Vec<f64>,
        /// The divergence at each order.
        divergences: Vec<f64>,
    },
    /// Anything dominated by a pair of laws on finitely many outcomes: for each pair of neighbours (first, second),
    /// `(p, q)` dominates one order of them and `(q, p)` the other. Under add/remove, `p` is the law with the record;
    /// under the symmetric relations, where every pair occurs in both orders, `(p, q)` dominates both: else two releases
    /// of opposite orders would compose to neither `(p, q)` twice nor `(q, p)` twice.
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
        /// What was done to the subset; its sensitivity is for one of *its* records.
        event: Box<DpEvent>,
    },
    /// `value + N(0, std_dev² I)` about a Poisson sample, where one record's contribution is replaced by another: the sample
    /// holds each record independently with probability `sampling_rate`; given the rest of the sample, the record moves the
    /// value by at most `radius` from what it is without it, and by at most `distance` when it is changed. Sums of clipped
    /// contributions have `radius` the norm that they are clipped to, and `distance` twice that. In place only: a record
    /// replaced, a list's labels changed. See [`sampled_replacement`](crate::sampled_replacement).
    PoissonSampledReplacement {
        /// Probability that a record takes part.
        sampling_rate: f64,
        /// Standard deviation of each coordinate's noise, in the units of the value.
        std_dev: f64,
        /// How far two contributions of the same record are apart at most (L2), in the same units.
        distance: f64,
        /// L2 norm of a contribution at most, in the same units; at most `distance`. A radius below `distance/2` makes the distance
        /// smaller. Where contributing nothing is among a record's possible contributions, the distance itself is a radius.
        radius: f64,
    },
    /// `event`, on a uniformly random subset of fixed size. In place only. The sensitivity inside must hold for a record of the
    /// subset exchanged for any *other* record, not only for another version of itself: a bound on what a change of labels does
    /// is not enough.
    SampledWithoutReplacement {
        /// Size of the subset over the number of records.
        sampling_rate: f64,
        /// What was done to the subset; its sensitivity is for one of *its* records.
        event: Box<DpEvent>,
    },
    /// Each of `records` records is randomised by itself, `epsilon`-DP, and the answers are published in random order.
    /// Replace-one only.
    Shuffled {
        /// Guarantee of one record's answer.
        epsilon: f64,
        /// Number of records.
        records: u64,
    },
    /// The last iterate of noisy contractions `w <- psi_t(w) + N(0, std_devs[t]² I)`, each of which reads records of its
    /// own, in an order that does not depend on their values; no other iterate is released. Where the number of records
    /// is public: replace-one, or add-remove with a null record.
    AmplifiedByIteration {
        /// How far two neighbouring records can move iterate t: `sup |psi_t(w) - psi_t'(w)|`.
        sensitivities: Vec<f64>,
        /// Standard deviation of the noise added to iterate t.
        std_devs: Vec<f64>,
        /// Lipschitz constant of every `psi_t`, at most 1.
        contraction: f64,
    },
    /// Which of a stream of queries is the first above a threshold; Laplace noise on both. One positive answer.
    AboveThresholdLaplace {
        /// Scale of the threshold's noise.
        threshold_scale: f64,
        /// Scale of each query's noise.
        query_scale: f64,
        /// Sensitivity of each query.
        sensitivity: f64,
    },
    /// Which of at most `max_queries` queries is the first above a threshold; Gaussian noise on both. One positive
    /// answer.
    AboveThresholdGaussian {
        /// Standard deviation of the threshold's noise.
        threshold_std_dev: f64,
        /// Standard deviation of each query's noise.
        query_std_dev: f64,
        /// Sensitivity of each query.
        sensitivity: f64,
        /// Number of queries after which it stops in any case.
        max_queries: u64,
        /// Whether all queries move within one interval, which holds 0 and is `sensitivity` long. An event that does not say
        /// has queries that move by up to `sensitivity` in either direction.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "core::ops::Not::not"))]
        range_bounded: bool,
    },
    /// Each of `events` on a part of the records of its own; a pair of neighbours differs in one part only. So it is
    /// under add/remove; under replace-one, where parts are fixed by a public index and not by the record's values.
    Parallel {
        /// The parts.
        events: Vec<DpEvent>,
    },
    /// Each of `events` on a part of the records of its own, chosen by the record's own values, under replace-one: one
    /// part may lose the record and another gain it. The parts' sensitivities are those of add/remove.
    ParallelByValue {
        /// The parts.
        events: Vec<DpEvent>,
    },
    /// One of `events`, all on the same records, drawn at random by a law that does not depend on any record; which one
    /// it was may be published.
    OneOf {
        /// What may have happened.
        events: Vec<DpEvent>,
    },
    /// `event`, read as a statement about `size` records at once.
    Group {
        /// Number of records.
        size: u64,
        /// What was done, with the sensitivities of one record.
        event: Box<DpEvent>,
    },
    /// `event` under replace-one, though its sensitivities and theorems are those of add/remove: a replacement is a
    /// removal and an addition. Gaussian noise about Poisson samples is read as
    /// [`PoissonSampledReplacement`](Self::PoissonSampledReplacement) with its sensitivity as the radius.
    AddRemoveTwice {
        /// What was done, under add/remove.
        event: Box<DpEvent>,
    },
    /// `event` repeated a random number of times, with only the best outcome published.
    RandomStopping {
        /// Law of the number of repetitions.
        repetitions: Repetitions,
        /// One repetition, its quality score included.
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

/// Law of the number of repetitions in [`DpEvent::RandomStopping`]. Nothing else about it is published.
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
    /// Poisson; no outcome at all where it is 0.
    Poisson {
        /// Mean number of repetitions.
        mean: f64,
    },
}

/// A monotone margin loss or its kin in [`DpEvent::ObjectivePerturbation`].
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
        /// Size of the residual at which the loss turns from a parabola to a line.
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
