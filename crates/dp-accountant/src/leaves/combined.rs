//! Events composed of other events: sampling, disjoint parts, one of several at random, groups, random stopping.
//!
//! **Disjoint parts and one of several** are both read as a leaf that costs no more than its worst part. For parts, one differs
//! between neighbours. If `j` is drawn from a law `w` that is the same for both neighbours, and then event `j` happens, every
//! divergence that is an expectation over outcomes is the mean of the events' under `w`, whether `j` is published (the pair of
//! laws is a disjoint union) or not (post-processing): the moments of order `a` of the loss, `sum_j w_j e^((a-1) D_j)`, and the
//! hockey-stick divergences, `sum_j w_j H_j`; neither exceeds its largest term. A Gaussian with more noise is a post-processing
//! of one with less noise, whichever is drawn.

use super::failures::{fails_with, take_failures};
use super::pure::pure_epsilon_of_all;
use super::replaced::add_remove_twice;
use super::sampled::{poisson, sampled, without_replacement};
use super::single::LARGEST_RATIO;
use super::{Leaf, Leaves, Reading, positive_count, read_inner};
use crate::error::{Error, positive};
use crate::event::{DpEvent, Repetitions};
use crate::relations::{Narrowed, Relations};
use crate::rounding::{count_up, mul_up};

/// Reads an event composed of others; `None` for any other kind.
pub(super) fn combined(event: &DpEvent, depth: usize) -> Option<Result<(Leaves, Narrowed), Error>> {
    let result = match event {
        DpEvent::PoissonSampled { sampling_rate, event: inner } => {
            let relations = Narrowed::new(Relations::ADD_REMOVE, event.name());
            sampled(*sampling_rate, inner, depth, relations, |rate, base| Ok(poisson(rate, base)))
        }
        DpEvent::SampledWithoutReplacement { sampling_rate, event: inner } => {
            // If only labels change, a different list may replace one in the sample, and a bound on the change of one list's
            // labels does not bound the distance of the two lists.
            let relations = Narrowed::new(Relations::REPLACE_ONE, event.name());
            sampled(*sampling_rate, inner, depth, relations, without_replacement)
        }
        DpEvent::Parallel { events } | DpEvent::OneOf { events } => {
            parts(events, depth).map(|(parts, narrowed)| (largest_of(parts), narrowed))
        }
        DpEvent::ParallelByValue { events } => parts(events, depth).and_then(|(parts, narrowed)| {
            narrowed.require_some_of(Relations::ADD_REMOVE)?;
            Ok((moved_or_replaced(parts, events, depth)?, Narrowed::new(Relations::REPLACE_ONE, event.name())))
        }),
        DpEvent::Group { size, event: inner } => positive_count("size", *size).and_then(|size| {
            let reading = read_inner(inner, depth)?;
            Ok((group(size, reading.leaves)?, reading.narrowed))
        }),
        DpEvent::AddRemoveTwice { event: inner } => {
            add_remove_twice(inner, depth).map(|leaves| (leaves, Narrowed::new(Relations::REPLACE_ONE, event.name())))
        }
        DpEvent::RandomStopping { repetitions, event: inner } => check_repetitions(*repetitions).and_then(|()| {
            let Reading { leaves: base, narrowed } = read_inner(inner, depth)?;
            let leaves = match base {
                base if base.is_empty() => base,
                base if base.iter().any(|(leaf, _)| matches!(leaf, Leaf::Approximate { .. })) => {
                    return Err(Error::Unsupported { accountant: "random-stopping", event: "approximate-dp" });
                }
                base => vec![(Leaf::RandomStopping { repetitions: *repetitions, base }, 1)],
            };
            Ok((leaves, narrowed))
        }),
        _ => return None,
    };
    Some(result)
}

/// Returns the leaves of each part and the relations under which all parts hold.
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

/// A part fails no more often than the one that fails most, and revealing a failure more often helps only the adversary: so the
/// largest failure probability is factored out, and the rest of each part stays inside.
fn largest_of(parts: Vec<Leaves>) -> Leaves {
    let (mut failures, mut parts) = without_failures(parts);
    parts.dedup();
    keep_least_noisy_gaussian(&mut parts);
    let mut found = match parts.len() {
        0 => Vec::new(),
        1 => parts.remove(0),
        _ => vec![(Leaf::Parallel { parts }, 1)],
    };
    found.extend(failures.pop().and_then(fails_with));
    found
}

/// Of the parts that are one Gaussian release each, keeps only the one with the least noise for its sensitivity: the others are
/// post-processings of it by more noise. So disjoint Gaussian releases cost exactly as much as the costliest.
fn keep_least_noisy_gaussian(parts: &mut Vec<Leaves>) {
    let single = |part: &Leaves| match part.as_slice() {
        [(Leaf::Gaussian { mu }, 1)] => Some(*mu),
        _ => None,
    };
    let Some(largest) = parts.iter().filter_map(single).reduce(f64::max) else { return };
    let mut kept = false;
    parts.retain(|part| match single(part) {
        Some(mu) => mu == largest && !core::mem::replace(&mut kept, true),
        None => true,
    });
}

/// A replaced record moves from one part to another, or is replaced within its part: `parts` are the leaves of `events`.
fn moved_or_replaced(parts: Vec<Leaves>, events: &[DpEvent], depth: usize) -> Result<Leaves, Error> {
    let mut replaced = Vec::with_capacity(events.len() + 1);
    for event in events {
        replaced.push(add_remove_twice(event, depth)?);
    }
    // Two Gaussian releases have a mu of at most sqrt(2) times the larger one; a record replaced within that part, of twice it.
    if !parts.iter().all(|part| matches!(part.as_slice(), [(Leaf::Gaussian { .. }, 1)])) {
        replaced.push(two_largest_of(parts));
    }
    replaced.retain(|leaves| !leaves.is_empty());
    Ok(largest_of(replaced))
}

fn two_largest_of(parts: Vec<Leaves>) -> Leaves {
    let (mut failures, mut parts) = without_failures(parts);
    let mut found = match parts.len() {
        0 => Vec::new(),
        1 => parts.remove(0),
        _ => vec![(Leaf::ParallelByValue { parts }, 1)],
    };
    found.extend(failures.pop().and_then(fails_with));
    found.extend(failures.pop().and_then(fails_with));
    found
}

/// Returns the parts' failure probabilities, in ascending order, and the parts without failures.
fn without_failures(parts: Vec<Leaves>) -> (Vec<f64>, Vec<Leaves>) {
    let (mut failures, parts): (Vec<f64>, Vec<Leaves>) = parts.into_iter().map(take_failures).unzip();
    failures.sort_unstable_by(f64::total_cmp);
    (failures, parts.into_iter().filter(|part| !part.is_empty()).collect())
}

/// Returns the leaves for `size` records at once. Each release is read on its own, because composition holds at any distance:
/// noise protects a group like one record of `size` times the sensitivity; a release without such a reading stays a
/// [`Leaf::Group`].
///
/// An event may stand for a release on each of several disjoint parts of the records, of which a group may be in several. Along a
/// path of neighbours one part changes at a time, so that the group's trade-off curve is at least the one of `size` steps, each with
/// the curve of one record (Dong, Roth and Su 2022, group privacy). For noise with a log-concave density or mass on the line, and
/// for Laplace noise on a vector, this is the curve of a shift by `size` sensitivities: the most powerful tests of all shifts are
/// thresholds. For a ball in several dimensions only the pure guarantee is proved; a test compares the curves of some shapes.
///
/// A failure cannot be separated from the rest of the tree: the division of the whole into a failure and the rest depends on the
/// pair of neighbours, and the law in the middle of a path is divided in two ways. See [`group_of_failing`].
pub(super) fn group(size: u64, base: Leaves) -> Result<Leaves, Error> {
    if size == 1 {
        return Ok(base);
    }
    let is_failure = |leaf: &Leaf| matches!(leaf, Leaf::Approximate { epsilon: 0.0, .. });
    if base.iter().any(|(leaf, _)| is_failure(leaf)) && base.iter().any(|(leaf, _)| !is_failure(leaf)) {
        return group_of_failing(count_up(size), base).map(|leaf| vec![(leaf, 1)]);
    }
    let times = count_up(size);
    let scaled = |ratio: f64| mul_up(times, ratio);
    let leaves = base
        .into_iter()
        .map(|(leaf, count)| {
            let leaf = match leaf {
                Leaf::NonPrivate => Leaf::NonPrivate,
                Leaf::Gaussian { mu } => Leaf::Gaussian { mu: scaled(mu) },
                Leaf::Laplace { x } => Leaf::Laplace { x: scaled(x) },
                Leaf::LaplaceBall { x, dim } => Leaf::LaplaceBall { x: scaled(x), dim },
                Leaf::Pure { epsilon } => Leaf::Pure { epsilon: scaled(epsilon) },
                Leaf::BoundedRange { epsilon } => Leaf::BoundedRange { epsilon: scaled(epsilon) },
                Leaf::Approximate { epsilon, delta } => group_of_approximate(times, epsilon, delta),
                Leaf::Zcdp { rho } => Leaf::Zcdp { rho: mul_up(times, scaled(rho)) },
                Leaf::DiscreteGaussian { scale, sensitivity, dim } => {
                    Leaf::DiscreteGaussian { scale, sensitivity: scaled(sensitivity), dim }
                }
                Leaf::DiscreteLaplace { scale, sensitivity } if sensitivity.checked_mul(size).is_some() => {
                    Leaf::DiscreteLaplace { scale, sensitivity: sensitivity * size }
                }
                other => Leaf::Group { size, base: vec![(other, 1)] },
            };
            (if protects(&leaf) { leaf } else { Leaf::NonPrivate }, count)
        })
        .collect();
    Ok(leaves)
}

/// Returns a group under releases that fail with probability `d` and are private otherwise: all of it as one `(epsilon, d)`-DP
/// release, with `epsilon` the sum of the pure guarantees without failure.
///
/// Let the laws `P_0, P_1, P_2` have masses `d (1 + e^epsilon)`, `d` and 0 on a set `S`. Neighbours are `(epsilon, d)`-DP, and
/// pure except for failures of probability `d`; yet `P_0` and `P_2` are no closer than `(2 epsilon, d (1 + e^epsilon))`. So the
/// failures along a path must not be added up separately, and if the rest has no pure guarantee, no bound is known here.
fn group_of_failing(size: f64, base: Leaves) -> Result<Leaf, Error> {
    let (failure, rest) = take_failures(base);
    if failure == 1.0 || rest.iter().any(|(leaf, _)| matches!(leaf, Leaf::NonPrivate)) {
        return Ok(Leaf::NonPrivate);
    }
    let epsilon = pure_epsilon_of_all(&rest);
    if epsilon < f64::INFINITY {
        let leaf = group_of_approximate(size, epsilon, failure);
        Ok(if protects(&leaf) { leaf } else { Leaf::NonPrivate })
    } else {
        Err(Error::Unsupported { accountant: "group", event: "approximate-dp" })
    }
}

/// Returns a group of `k` under `(epsilon, delta)`-DP: `(k epsilon, delta (e^(k epsilon) - 1)/(e^epsilon - 1))`, by adding the
/// inequalities along a path of neighbours (Vadhan 2017, "The complexity of differential privacy", Lemma 2.2).
fn group_of_approximate(size: f64, epsilon: f64, delta: f64) -> Leaf {
    let all = mul_up(size, epsilon);
    let times = if epsilon > 0.0 { all.exp_m1() / epsilon.exp_m1() * (1.0 + 1e-14) } else { size };
    let delta = mul_up(delta, times.max(size));
    if delta < 1.0 { Leaf::Approximate { epsilon: all, delta } } else { Leaf::NonPrivate }
}

/// Returns whether a leaf whose numbers have grown still has a guarantee.
fn protects(leaf: &Leaf) -> bool {
    match leaf {
        Leaf::Gaussian { mu: ratio } | Leaf::Laplace { x: ratio } | Leaf::LaplaceBall { x: ratio, .. } => {
            *ratio <= LARGEST_RATIO
        }
        Leaf::DiscreteGaussian { scale, sensitivity, .. } => sensitivity / scale <= LARGEST_RATIO,
        Leaf::Zcdp { rho } => rho.is_finite(),
        Leaf::Pure { epsilon } | Leaf::BoundedRange { epsilon } | Leaf::Approximate { epsilon, .. } => {
            epsilon.is_finite()
        }
        _ => true,
    }
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
