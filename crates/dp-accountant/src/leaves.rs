//! What an event tree amounts to: its releases, checked, each with the number of times it happened.
//!
//! Composition of releases whose parameters are fixed in advance does not depend on their order, so every accountant
//! reads this flat list. The walk keeps its own stack: a tree of any depth is refused or read, never a stack overflow.

use crate::adjacency::AdjacencyKind;
use crate::error::{Error, non_negative, positive};
use crate::event::{DpEvent, MarginLoss, Repetitions};
use crate::finite_pair::FinitePair;
use crate::gaussian_mixture::GaussianMixture;
use crate::iteration;
use crate::rdp::RenyiPoints;
use crate::relations::{Narrowed, Relations};
use crate::rounding::{add_up, count_up, div_up, mul_up};

/// Trees nested deeper than this are refused.
pub const MAX_DEPTH: usize = 256;

/// A ratio of sensitivity to noise beyond this protects nothing, and is treated so.
const LARGEST_RATIO: f64 = 1e100;

/// Ratios are rounded up to this, so that their squares do not underflow to a cost of zero.
const SMALLEST_RATIO: f64 = 1e-150;

/// The releases of a tree, each with the number of times it happened.
pub(crate) type Leaves = Vec<(Leaf, u64)>;

/// One release, with its numbers checked and reduced to what matters.
///
/// What amplifies or combines other releases (sampling, disjoint parts, groups, random stopping) is a leaf that holds
/// the leaves of its own tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Leaf {
    /// No guarantee at all.
    NonPrivate,
    /// Gaussian noise, `mu` = sensitivity / standard deviation; also what is `mu`-Gaussian-DP.
    Gaussian { mu: f64 },
    /// Coordinate-wise Laplace noise, `x` = L1 sensitivity / scale.
    Laplace { x: f64 },
    /// The L2 Laplace ball in R^dim, `x` = L2 sensitivity / scale.
    LaplaceBall { x: f64, dim: u64 },
    /// A pure guarantee.
    Pure { epsilon: f64 },
    /// An approximate guarantee.
    Approximate { epsilon: f64, delta: f64 },
    /// A zCDP guarantee.
    Zcdp { rho: f64 },
    /// A Gaussian with a hidden random sensitivity.
    Mixture(GaussianMixture),
    /// The discrete Gaussian, everything in steps.
    DiscreteGaussian { scale: f64, sensitivity: f64, dim: u64 },
    /// The discrete Laplace law, everything in steps.
    DiscreteLaplace { scale: f64, sensitivity: u64 },
    /// k-ary randomised response.
    RandomizedResponse { buckets: u64, noise: f64 },
    /// A privacy loss with a range of at most `epsilon`.
    BoundedRange { epsilon: f64 },
    /// A Renyi curve given by points.
    Renyi(RenyiPoints),
    /// A pair of laws on finitely many outcomes.
    Pair(FinitePair),
    /// A Gaussian on a Poisson sample, `0 < rate < 1`.
    PoissonGaussian { rate: f64, mu: f64 },
    /// Anything else on a Poisson sample, `0 < rate < 1`.
    Poisson { rate: f64, base: Leaves },
    /// Anything on a sample of fixed size, `0 < rate < 1`.
    WithoutReplacement { rate: f64, base: Leaves },
    /// Shuffled answers of `epsilon`-DP local randomisers.
    Shuffled { epsilon: f64, records: u64 },
    /// The first query above a threshold: `threshold` = sensitivity / scale of the threshold's Laplace noise, `query` =
    /// *twice* the sensitivity / scale of the queries'.
    AboveThresholdLaplace { threshold: f64, query: f64 },
    /// The same with Gaussian noise: `threshold` = sensitivity / std, `query` = *twice* the sensitivity / std.
    AboveThresholdGaussian { threshold: f64, query: f64, max_queries: u64 },
    /// Disjoint parts, one of which differs.
    Parallel { parts: Vec<Leaves> },
    /// Disjoint parts, two of which differ.
    ParallelByValue { parts: Vec<Leaves> },
    /// A statement about one record, read as one about `size` of them.
    Group { size: u64, base: Leaves },
    /// The best of a random number of repetitions.
    RandomStopping { repetitions: Repetitions, base: Leaves },
    /// Objective perturbation with noise of standard deviation `std_dev`.
    ObjectivePerturbation { std_dev: f64, regularization: f64, loss: MarginLoss },
}

impl Leaf {
    /// The name of the event that gives it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::NonPrivate => "non-private",
            Self::Gaussian { .. } => "gaussian",
            Self::Laplace { .. } => "laplace",
            Self::LaplaceBall { .. } => "laplace-ball",
            Self::Pure { .. } => "pure-dp",
            Self::Approximate { .. } => "approximate-dp",
            Self::Zcdp { .. } => "zcdp",
            Self::Mixture(_) => "gaussian-mixture",
            Self::DiscreteGaussian { .. } => "discrete-gaussian",
            Self::DiscreteLaplace { .. } => "discrete-laplace",
            Self::RandomizedResponse { .. } => "randomized-response",
            Self::BoundedRange { .. } => "bounded-range",
            Self::Renyi(_) => "renyi-dp",
            Self::Pair(_) => "dominating-pair",
            Self::PoissonGaussian { .. } | Self::Poisson { .. } => "poisson-sampled",
            Self::WithoutReplacement { .. } => "sampled-without-replacement",
            Self::Shuffled { .. } => "shuffled",
            Self::AboveThresholdLaplace { .. } => "above-threshold-laplace",
            Self::AboveThresholdGaussian { .. } => "above-threshold-gaussian",
            Self::Parallel { .. } => "parallel",
            Self::ParallelByValue { .. } => "parallel-by-value",
            Self::Group { .. } => "group",
            Self::RandomStopping { .. } => "random-stopping",
            Self::ObjectivePerturbation { .. } => "objective-perturbation",
        }
    }
}

impl DpEvent {
    /// The neighbouring relations under which every theorem that this tree rests on holds.
    ///
    /// # Errors
    /// A number out of range, a tree too deep, or parts that hold under no relation in common.
    pub fn relations(&self) -> Result<Relations, Error> {
        Ok(read(self, 1)?.narrowed.relations)
    }
}

/// The releases of `event` that happened `count` times, or the first number that is out of range.
///
/// The relation is the caller's word: any that the whole tree holds under; there must be one.
pub(crate) fn leaves(event: &DpEvent, count: u64) -> Result<Leaves, Error> {
    Ok(read(event, count)?.leaves)
}

/// As [`leaves`], under one relation; refused where some part of the tree does not hold under it.
pub(crate) fn leaves_under(event: &DpEvent, count: u64, relation: AdjacencyKind) -> Result<Leaves, Error> {
    let reading = read(event, count)?;
    reading.narrowed.check(relation)?;
    Ok(reading.leaves)
}

/// A tree's leaves and the relations that it holds under.
struct Reading {
    leaves: Leaves,
    narrowed: Narrowed,
}

fn read(event: &DpEvent, count: u64) -> Result<Reading, Error> {
    let mut reading = Reading { leaves: Vec::new(), narrowed: Narrowed::ANY };
    reading.add(event, count, 0)?;
    Ok(reading)
}

/// The reading of a tree inside another, for one occurrence.
fn read_inner(event: &DpEvent, depth: usize) -> Result<Reading, Error> {
    let mut reading = Reading { leaves: Vec::new(), narrowed: Narrowed::ANY };
    reading.add(event, 1, depth + 1)?;
    Ok(reading)
}

impl Reading {
    /// Adds `count` occurrences of `event`, which lies `depth` levels deep.
    fn add(&mut self, event: &DpEvent, count: u64, depth: usize) -> Result<(), Error> {
        let mut open = vec![(event, count, depth)];
        while let Some((event, count, depth)) = open.pop() {
            if depth > MAX_DEPTH {
                return Err(Error::TooDeep { limit: MAX_DEPTH });
            }
            match event {
                DpEvent::Composed { events } => {
                    open.extend(events.iter().rev().map(|event| (event, count, depth + 1)));
                }
                DpEvent::SelfComposed { event, count: times } => {
                    open.push((event, multiply(count, *times)?, depth + 1));
                }
                DpEvent::NoOp => {}
                _ => {
                    let (leaves, narrowed) = combined(event, depth).unwrap_or_else(|| {
                        single(event).map(|(leaf, relations)| (vec![(leaf, 1)], Narrowed::new(relations, event.name())))
                    })?;
                    self.narrowed.join(narrowed)?;
                    for (leaf, times) in leaves {
                        self.push(leaf, multiply(count, times)?);
                    }
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, leaf: Leaf, count: u64) {
        if count == 0 {
            return;
        }
        match self.leaves.last_mut() {
            Some((last, times)) if *last == leaf && times.checked_add(count).is_some() => *times += count,
            _ => self.leaves.push((leaf, count)),
        }
    }
}

fn multiply(count: u64, times: u64) -> Result<u64, Error> {
    count.checked_mul(times).ok_or(Error::OutOfRange {
        name: "number of repetitions",
        value: count as f64 * times as f64,
        range: "[0, 2^64)",
    })
}

/// An event that is made of no other, and the relations that it holds under.
fn single(event: &DpEvent) -> Result<(Leaf, Relations), Error> {
    let leaf = match event {
        DpEvent::Gaussian { std_dev, sensitivity } => {
            ratio(*sensitivity, "std_dev", *std_dev)?.map_or(Leaf::NonPrivate, |mu| Leaf::Gaussian { mu })
        }
        DpEvent::Laplace { scale, sensitivity } => {
            ratio(*sensitivity, "scale", *scale)?.map_or(Leaf::NonPrivate, |x| Leaf::Laplace { x })
        }
        DpEvent::LaplaceBall { scale, sensitivity, dim } => {
            let dim = positive_count("dim", *dim)?;
            ratio(*sensitivity, "scale", *scale)?.map_or(Leaf::NonPrivate, |x| Leaf::LaplaceBall { x, dim })
        }
        DpEvent::PureDp { epsilon } => Leaf::Pure { epsilon: non_negative("epsilon", *epsilon)? },
        DpEvent::ApproximateDp { epsilon, delta } => {
            let epsilon = non_negative("epsilon", *epsilon)?;
            match delta {
                0.0 => Leaf::Pure { epsilon },
                delta if (0.0..1.0).contains(delta) => Leaf::Approximate { epsilon, delta: *delta },
                &value => return Err(Error::OutOfRange { name: "delta", value, range: "[0, 1)" }),
            }
        }
        DpEvent::Zcdp { rho } => Leaf::Zcdp { rho: non_negative("rho", *rho)? },
        DpEvent::GaussianMixture { std_dev, sensitivities, weights } => {
            let mixture = GaussianMixture::new(*std_dev, sensitivities, weights)?;
            if mixture.largest_mu() > LARGEST_RATIO { Leaf::NonPrivate } else { Leaf::Mixture(mixture) }
        }
        DpEvent::DiscreteGaussian { scale, sensitivity, dim } => {
            let dim = positive_count("dim", *dim)?;
            match ratio(*sensitivity, "scale", *scale)? {
                Some(_) => Leaf::DiscreteGaussian { scale: *scale, sensitivity: *sensitivity, dim },
                None => Leaf::NonPrivate,
            }
        }
        DpEvent::DiscreteLaplace { scale, sensitivity } => {
            let sensitivity = positive_count("sensitivity", *sensitivity)?;
            match ratio(count_up(sensitivity), "scale", *scale)? {
                Some(_) => Leaf::DiscreteLaplace { scale: *scale, sensitivity },
                None => Leaf::NonPrivate,
            }
        }
        DpEvent::RandomizedResponse { buckets, noise } => {
            if *buckets < 2 {
                return Err(Error::OutOfRange { name: "buckets", value: *buckets as f64, range: "[2, 2^64)" });
            }
            let noise = unit_interval("noise", *noise)?;
            let leaf =
                if noise == 0.0 { Leaf::NonPrivate } else { Leaf::RandomizedResponse { buckets: *buckets, noise } };
            return Ok((leaf, Relations::REPLACE_ONE));
        }
        DpEvent::BoundedRange { epsilon } => Leaf::BoundedRange { epsilon: non_negative("epsilon", *epsilon)? },
        DpEvent::Gdp { mu } => {
            let mu = non_negative("mu", *mu)?;
            if mu > LARGEST_RATIO { Leaf::NonPrivate } else { Leaf::Gaussian { mu: mu.max(SMALLEST_RATIO) } }
        }
        DpEvent::RenyiDp { orders, divergences } => Leaf::Renyi(RenyiPoints::new(orders, divergences)?),
        DpEvent::DominatingPair { p, q } => Leaf::Pair(FinitePair::new(p, q)?),
        DpEvent::Shuffled { epsilon, records } => {
            let records = positive_count("records", *records)?;
            let leaf = Leaf::Shuffled { epsilon: non_negative("epsilon", *epsilon)?, records };
            return Ok((leaf, Relations::REPLACE_ONE));
        }
        DpEvent::AmplifiedByIteration { sensitivities, std_devs, contraction } => {
            let rho = iteration::rho(sensitivities, std_devs, *contraction)?;
            let leaf = if rho.is_finite() { Leaf::Zcdp { rho } } else { Leaf::NonPrivate };
            return Ok((leaf, Relations::IN_PLACE));
        }
        DpEvent::AboveThresholdLaplace { threshold_scale, query_scale, sensitivity } => {
            let threshold = ratio(*sensitivity, "threshold_scale", *threshold_scale)?;
            let query = ratio(*sensitivity, "query_scale", *query_scale)?;
            match (threshold, query) {
                (Some(threshold), Some(query)) => Leaf::AboveThresholdLaplace { threshold, query: 2.0 * query },
                _ => Leaf::NonPrivate,
            }
        }
        DpEvent::AboveThresholdGaussian { threshold_std_dev, query_std_dev, sensitivity, max_queries } => {
            let threshold = ratio(*sensitivity, "threshold_std_dev", *threshold_std_dev)?;
            let query = ratio(*sensitivity, "query_std_dev", *query_std_dev)?;
            match (threshold, query) {
                (Some(threshold), Some(query)) => {
                    Leaf::AboveThresholdGaussian { threshold, query: 2.0 * query, max_queries: *max_queries }
                }
                _ => Leaf::NonPrivate,
            }
        }
        DpEvent::ObjectivePerturbation { std_dev, regularization, loss } => {
            let std_dev = positive("std_dev", *std_dev)?;
            let regularization = positive("regularization", *regularization)?;
            match *loss {
                MarginLoss::Logistic => {}
                MarginLoss::HuberSvm { width } => {
                    positive("width", width)?;
                }
                MarginLoss::BoundedSlope { slope, curvature } => {
                    positive("slope", slope)?;
                    non_negative("curvature", curvature)?;
                }
            }
            let leaf = Leaf::ObjectivePerturbation { std_dev, regularization, loss: *loss };
            return Ok((leaf, Relations::ADD_REMOVE));
        }
        // The rest is read by the callers; what cannot be read has no guarantee.
        _ => Leaf::NonPrivate,
    };
    Ok((leaf, Relations::ANY))
}

/// An event that is made of others; `None` for any other kind.
fn combined(event: &DpEvent, depth: usize) -> Option<Result<(Leaves, Narrowed), Error>> {
    let result = match event {
        DpEvent::PoissonSampled { sampling_rate, event: inner } => {
            sampled(*sampling_rate, inner, depth, Narrowed::new(Relations::ADD_REMOVE, event.name()), poisson)
        }
        DpEvent::SampledWithoutReplacement { sampling_rate, event: inner } => {
            let relations = Narrowed::new(Relations::IN_PLACE, event.name());
            sampled(*sampling_rate, inner, depth, relations, |rate, base| {
                vec![(Leaf::WithoutReplacement { rate, base }, 1)]
            })
        }
        DpEvent::Parallel { events } => parts(events, depth).map(|(parts, narrowed)| (largest_of(parts), narrowed)),
        DpEvent::ParallelByValue { events } => parts(events, depth).and_then(|(parts, narrowed)| {
            narrowed.require_some_of(Relations::ADD_REMOVE)?;
            Ok((two_largest_of(parts), Narrowed::new(Relations::REPLACE_ONE, event.name())))
        }),
        DpEvent::Group { size, event: inner } => positive_count("size", *size).and_then(|size| {
            let reading = read_inner(inner, depth)?;
            Ok((group(size, reading.leaves), reading.narrowed))
        }),
        DpEvent::AddRemoveTwice { event: inner } => read_inner(inner, depth).and_then(|reading| {
            reading.narrowed.require_some_of(Relations::ADD_REMOVE)?;
            Ok((group(2, reading.leaves), Narrowed::new(Relations::REPLACE_ONE, event.name())))
        }),
        DpEvent::RandomStopping { repetitions, event: inner } => check_repetitions(*repetitions).and_then(|()| {
            let Reading { leaves: base, narrowed } = read_inner(inner, depth)?;
            let leaves = match base {
                base if base.is_empty() => base,
                base => vec![(Leaf::RandomStopping { repetitions: *repetitions, base }, 1)],
            };
            Ok((leaves, narrowed))
        }),
        _ => return None,
    };
    Some(result)
}

/// What a sampled event amounts to, by `amplify`, unless the rate is 0 or 1.
fn sampled(
    sampling_rate: f64,
    inner: &DpEvent,
    depth: usize,
    mut narrowed: Narrowed,
    amplify: impl Fn(f64, Leaves) -> Leaves,
) -> Result<(Leaves, Narrowed), Error> {
    let rate = unit_interval("sampling_rate", sampling_rate)?;
    let reading = read_inner(inner, depth)?;
    narrowed.join(reading.narrowed)?;
    let leaves = match (rate, reading.leaves) {
        (0.0, _) => Vec::new(),
        (1.0, base) => base,
        (_, base) if base.is_empty() => base,
        (rate, base) => amplify(rate, base),
    };
    Ok((leaves, narrowed))
}

/// Poisson sampling of Gaussians about the same sample is that of one Gaussian; sampling a sample multiplies the rates.
fn poisson(rate: f64, base: Leaves) -> Leaves {
    if let [(inner @ (Leaf::PoissonGaussian { .. } | Leaf::Poisson { .. }), 1)] = base.as_slice() {
        let both = |inner: f64| mul_up(rate, inner).min(1.0 - f64::EPSILON);
        return match inner.clone() {
            Leaf::PoissonGaussian { rate: inner, mu } => vec![(Leaf::PoissonGaussian { rate: both(inner), mu }, 1)],
            Leaf::Poisson { rate: inner, base } => vec![(Leaf::Poisson { rate: both(inner), base }, 1)],
            other => vec![(other, 1)],
        };
    }
    let mut square = 0.0;
    for (leaf, count) in &base {
        match leaf {
            Leaf::Gaussian { mu } => square = add_up(square, mul_up(count_up(*count), mul_up(*mu, *mu))),
            _ => return vec![(Leaf::Poisson { rate, base }, 1)],
        }
    }
    let mu = match base.as_slice() {
        [(Leaf::Gaussian { mu }, 1)] => *mu,
        _ => square.sqrt() * (1.0 + 2.0 * f64::EPSILON),
    };
    let leaf = if mu > LARGEST_RATIO { Leaf::Poisson { rate, base } } else { Leaf::PoissonGaussian { rate, mu } };
    vec![(leaf, 1)]
}

/// The leaves of each part and the relations that all parts hold under.
fn parts(events: &[DpEvent], depth: usize) -> Result<(Vec<Leaves>, Narrowed), Error> {
    let mut narrowed = Narrowed::ANY;
    let mut parts: Vec<Leaves> = Vec::new();
    for event in events {
        let reading = read_inner(event, depth)?;
        narrowed.join(reading.narrowed)?;
        if !reading.leaves.is_empty() {
            parts.push(reading.leaves);
        }
    }
    Ok((parts, narrowed))
}

fn largest_of(mut parts: Vec<Leaves>) -> Leaves {
    parts.dedup();
    match parts.len() {
        0 => Vec::new(),
        1 => parts.remove(0),
        _ => vec![(Leaf::Parallel { parts }, 1)],
    }
}

fn two_largest_of(mut parts: Vec<Leaves>) -> Leaves {
    match parts.len() {
        0 => Vec::new(),
        1 => parts.remove(0),
        _ => vec![(Leaf::ParallelByValue { parts }, 1)],
    }
}

/// The leaves for `size` records at once: noise protects them as one record of `size` times the sensitivity; what has
/// no such reading stays a [`Leaf::Group`], one for all of it.
fn group(size: u64, base: Leaves) -> Leaves {
    if size == 1 || base.is_empty() {
        return base;
    }
    let times = count_up(size);
    let scaled = |ratio: f64| mul_up(times, ratio);
    let mut found = Vec::new();
    for (leaf, count) in &base {
        let leaf = match leaf {
            Leaf::NonPrivate => Leaf::NonPrivate,
            Leaf::Gaussian { mu } => Leaf::Gaussian { mu: scaled(*mu) },
            Leaf::Laplace { x } => Leaf::Laplace { x: scaled(*x) },
            Leaf::LaplaceBall { x, dim } => Leaf::LaplaceBall { x: scaled(*x), dim: *dim },
            Leaf::Pure { epsilon } => Leaf::Pure { epsilon: scaled(*epsilon) },
            Leaf::BoundedRange { epsilon } => Leaf::BoundedRange { epsilon: scaled(*epsilon) },
            Leaf::Zcdp { rho } => Leaf::Zcdp { rho: mul_up(times, scaled(*rho)) },
            Leaf::DiscreteGaussian { scale, sensitivity, dim } => {
                Leaf::DiscreteGaussian { scale: *scale, sensitivity: scaled(*sensitivity), dim: *dim }
            }
            Leaf::DiscreteLaplace { scale, sensitivity } if sensitivity.checked_mul(size).is_some() => {
                Leaf::DiscreteLaplace { scale: *scale, sensitivity: sensitivity * size }
            }
            _ => return vec![(Leaf::Group { size, base }, 1)],
        };
        let protects_nothing = match leaf {
            Leaf::Gaussian { mu: ratio } | Leaf::Laplace { x: ratio } | Leaf::LaplaceBall { x: ratio, .. } => {
                ratio > LARGEST_RATIO
            }
            Leaf::Zcdp { rho } => !rho.is_finite(),
            Leaf::Pure { epsilon } | Leaf::BoundedRange { epsilon } => !epsilon.is_finite(),
            _ => false,
        };
        found.push((if protects_nothing { Leaf::NonPrivate } else { leaf }, *count));
    }
    found
}

fn check_repetitions(repetitions: Repetitions) -> Result<(), Error> {
    match repetitions {
        Repetitions::TruncatedNegativeBinomial { eta, gamma } => {
            if !(eta > -1.0 && eta.is_finite()) {
                return Err(Error::OutOfRange { name: "eta", value: eta, range: "(-1, inf)" });
            }
            if !(gamma > 0.0 && gamma < 1.0) {
                return Err(Error::OutOfRange { name: "gamma", value: gamma, range: "(0, 1)" });
            }
            Ok(())
        }
        Repetitions::Poisson { mean } => positive("mean", mean).map(|_| ()),
    }
}

fn positive_count(name: &'static str, count: u64) -> Result<u64, Error> {
    if count == 0 { Err(Error::NotPositive { name, value: 0.0 }) } else { Ok(count) }
}

fn unit_interval(name: &'static str, value: f64) -> Result<f64, Error> {
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(Error::OutOfRange { name, value, range: "[0, 1]" }) }
}

/// Sensitivity over noise, rounded up; `None` where it is so large that nothing is protected.
fn ratio(sensitivity: f64, noise_name: &'static str, noise: f64) -> Result<Option<f64>, Error> {
    let ratio = div_up(positive("sensitivity", sensitivity)?, positive(noise_name, noise)?);
    Ok((ratio <= LARGEST_RATIO).then_some(ratio.max(SMALLEST_RATIO)))
}

#[cfg(test)]
mod tests;
