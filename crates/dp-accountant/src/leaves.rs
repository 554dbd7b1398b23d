//! The releases of an event tree: checked, each with its number of occurrences.
//!
//! Composition of releases with parameters fixed in advance does not depend on their order, so every accountant reads this flat
//! list. The traversal uses its own stack, so that a tree of any depth is read or refused without a stack overflow.

mod combined;
pub(crate) mod failures;
pub(crate) mod participation;
pub(crate) mod pure;
mod replaced;
mod sampled;
mod single;

pub(crate) use single::SMALLEST_RATIO;

use crate::adjacency::AdjacencyKind;
use crate::error::Error;
use crate::event::{DpEvent, MAX_DEPTH, MarginLoss, Repetitions};
use crate::finite_pair::FinitePair;
use crate::gaussian_mixture::GaussianMixture;
use crate::rdp::{self, RenyiPoints};
use crate::relations::{Narrowed, Relations};
use crate::sampled_replacement::Pair as ReplacementPair;

/// The releases of a tree, each with its number of occurrences.
pub(crate) type Leaves = Vec<(Leaf, u64)>;

/// One release, with its numbers checked and reduced to the relevant ones.
///
/// Events that amplify or combine other releases (sampling, disjoint parts, groups, random stopping) are leaves that hold the
/// leaves of their own tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Leaf {
    /// No guarantee.
    NonPrivate,
    /// Gaussian noise, `mu` = sensitivity / standard deviation; also any `mu`-Gaussian-DP release.
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
    /// The discrete Gaussian, with all numbers in steps.
    DiscreteGaussian { scale: f64, sensitivity: f64, dim: u64 },
    /// The discrete Laplace law, with all numbers in steps.
    DiscreteLaplace { scale: f64, sensitivity: u64 },
    /// k-ary randomised response.
    RandomizedResponse { buckets: u64, noise: f64 },
    /// A privacy loss with a range of at most `epsilon`.
    BoundedRange { epsilon: f64 },
    /// A Renyi curve given by points.
    Renyi(RenyiPoints),
    /// A pair of laws on finitely many outcomes.
    Pair(FinitePair),
    /// A Gaussian release from a Poisson sample, `0 < rate < 1`.
    PoissonGaussian { rate: f64, mu: f64 },
    /// Any other release from a Poisson sample, `0 < rate < 1`.
    Poisson { rate: f64, base: Leaves },
    /// A Gaussian release from a Poisson sample, `0 < rate < 1`, in which one record's contribution is replaced by another.
    PoissonReplacement(ReplacementPair),
    /// A release from a sample of fixed size, `0 < rate < 1`.
    WithoutReplacement { rate: f64, base: Leaves },
    /// Shuffled answers of `epsilon`-DP local randomisers.
    Shuffled { epsilon: f64, records: u64 },
    /// The first query above a threshold: `threshold` = sensitivity / scale of the threshold's Laplace noise, `query` =
    /// *twice* the sensitivity / scale of the queries'.
    AboveThresholdLaplace { threshold: f64, query: f64 },
    /// The same with Gaussian noise.
    AboveThresholdGaussian(rdp::above_threshold::Gaussian),
    /// Disjoint parts, one of which differs; or one of several releases, drawn at random.
    Parallel { parts: Vec<Leaves> },
    /// Disjoint parts, two of which differ.
    ParallelByValue { parts: Vec<Leaves> },
    /// A release for one record, read as one for `size` records.
    Group { size: u64, base: Leaves },
    /// The best of a random number of repetitions.
    RandomStopping { repetitions: Repetitions, base: Leaves },
    /// Objective perturbation with noise of standard deviation `std_dev`.
    ObjectivePerturbation { std_dev: f64, regularization: f64, loss: MarginLoss },
}

impl Leaf {
    /// Returns whether this release, made of one for a record and read for a group, is at least as good as any path of neighbours:
    /// exact for additive noise, where a group shifts by as many sensitivities as it has records. For pure guarantees no path was
    /// found to be better (a test scans compositions of up to 1000).
    pub(crate) const fn is_best_for_groups(&self) -> bool {
        matches!(self, Self::Gaussian { .. } | Self::Laplace { .. } | Self::LaplaceBall { .. } | Self::Pure { .. })
    }

    /// Returns the name of the corresponding event.
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
            Self::PoissonReplacement(_) => "poisson-sampled-replacement",
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
    /// Returns the neighbouring relations under which all theorems used for this tree hold.
    ///
    /// # Errors
    /// A number out of range, a tree too deep, or parts with no relation in common.
    pub fn relations(&self) -> Result<Relations, Error> {
        Ok(read(self, 1)?.narrowed.relations)
    }
}

/// Returns the releases of `event`, occurring `count` times, or the first number that is out of range.
///
/// The relation is the caller's choice among those under which the whole tree holds; there must be one.
pub(crate) fn leaves(event: &DpEvent, count: u64) -> Result<Leaves, Error> {
    Ok(read(event, count)?.leaves)
}

/// As [`leaves`], under one relation; refused if some part of the tree does not hold under it.
pub(crate) fn leaves_under(event: &DpEvent, count: u64, relation: AdjacencyKind) -> Result<Leaves, Error> {
    let reading = read(event, count)?;
    reading.narrowed.check(relation)?;
    Ok(reading.leaves)
}

/// A tree's leaves and the relations under which it holds.
struct Reading {
    leaves: Leaves,
    narrowed: Narrowed,
}

fn read(event: &DpEvent, count: u64) -> Result<Reading, Error> {
    let mut reading = Reading::new();
    reading.add(event, count, 0)?;
    Ok(reading)
}

/// Reads a tree inside another, for one occurrence.
fn read_inner(event: &DpEvent, depth: usize) -> Result<Reading, Error> {
    let mut reading = Reading::new();
    reading.add(event, 1, depth + 1)?;
    Ok(reading)
}

impl Reading {
    const fn new() -> Self {
        Self { leaves: Vec::new(), narrowed: Narrowed::ANY }
    }

    /// Adds `count` occurrences of `event`, which is nested `depth` levels deep.
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
                    let (leaves, narrowed) = combined::combined(event, depth).unwrap_or_else(|| {
                        single::single(event)
                            .map(|(leaf, relations)| (vec![(leaf, 1)], Narrowed::new(relations, event.name())))
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

fn positive_count(name: &'static str, count: u64) -> Result<u64, Error> {
    if count == 0 { Err(Error::NotPositive { name, value: 0.0 }) } else { Ok(count) }
}

fn unit_interval(name: &'static str, value: f64) -> Result<f64, Error> {
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(Error::OutOfRange { name, value, range: "[0, 1]" }) }
}

#[cfg(test)]
mod tests;
