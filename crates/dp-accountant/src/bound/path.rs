//! Several records at once, at the root of a tree: along a path of neighbours.
//!
//! With laws `P_0, .., P_k`, each `(epsilon/k, d)`-close to the next, adding the inequalities gives
//!
//! ```text
//! P_0(S) <= e^epsilon P_k(S) + d (1 + e^(epsilon/k) + .. + e^((k-1) epsilon/k))
//! ```
//!
//! so that delta of the group is at most `d (e^epsilon - 1)/(e^(epsilon/k) - 1)`, for the tightest `d` that is known of one
//! record at `epsilon/k`. The other way, a group's reading of each release by itself, is exact for Gaussian and pure
//! releases; this one is better for what is known by its exact curve only: samples, objective perturbation. A group of
//! each of several releases is a group of all of them, whose path leads through the same data sets.
//!
//! # References
//! Vadhan, "The complexity of differential privacy", 2017, Lemma 2.2.

use super::{Bound, Theorem};
use crate::error::Error;
use crate::event::DpEvent;
use crate::params::Delta;
use crate::rounding::{count_up, mul_up};

/// Rounds of the search for epsilon; each starts from a valid one and gives a smaller.
const MAX_ROUNDS: u32 = 60;

/// An epsilon that a round improves by less than this ratio is taken.
const CLOSE: f64 = 1e-13;

/// A tree that is a statement about one record, read as one about several.
pub(super) struct Path {
    size: u64,
    one: DpEvent,
}

impl Path {
    /// The path, where the whole tree is about a group of at least two.
    pub(super) fn new(event: &DpEvent) -> Option<Self> {
        let (size, one) = ungrouped(event)?;
        (size > 1).then_some(Self { size, one })
    }

    /// A smaller epsilon than `known`, which is valid, or `known`.
    pub(super) fn epsilon(
        &self,
        known: Bound,
        delta: Delta,
        of_one: impl Fn(&DpEvent, Delta) -> Result<Bound, Error>,
    ) -> Result<Bound, Error> {
        let mut best = known;
        if is_exact(known.theorem) || delta.get() == 0.0 {
            return Ok(best);
        }
        let size = count_up(self.size);
        // Where nothing is known: the group's at ever larger epsilons, until one holds.
        let mut at = if known.value.is_finite() { known.value } else { 1.0 };
        for _ in 0..MAX_ROUNDS {
            let share = delta.get() / times(self.size, at) * (1.0 - 2.0 * f64::EPSILON);
            let found = mul_up(size, of_one(&self.one, Delta::new(share)?)?.value);
            if found <= at {
                // One record's delta at found/k is at most the share, and a smaller epsilon adds up fewer of them.
                let close = at - found <= CLOSE * at;
                best.improve(found, Theorem::GroupPrivacy);
                if close || found == 0.0 {
                    break;
                }
                at = found;
            } else if best.value.is_finite() || !(found < f64::INFINITY) {
                break;
            } else {
                at = 2.0 * found;
            }
        }
        Ok(best)
    }

    /// A smaller delta than `known`, which is valid, or `known`.
    pub(super) fn delta(
        &self,
        known: Bound,
        epsilon: f64,
        of_one: impl Fn(&DpEvent, f64) -> Result<Bound, Error>,
    ) -> Result<Bound, Error> {
        let mut best = known;
        if !is_exact(known.theorem) && known.value > 0.0 {
            let one = of_one(&self.one, (epsilon / count_up(self.size)).next_down().max(0.0))?.value;
            best.improve(mul_up(one, times(self.size, epsilon)), Theorem::GroupPrivacy);
        }
        Ok(best)
    }
}

/// The curve of a group of records whose releases have this bound is exact, or has no better one on a path.
fn is_exact(theorem: Theorem) -> bool {
    matches!(theorem, Theorem::NothingReleased | Theorem::AnalyticGaussian | Theorem::LaplaceCurve)
}

/// `(e^epsilon - 1)/(e^(epsilon/k) - 1)`, rounded up; `k` at `epsilon` = 0.
fn times(size: u64, epsilon: f64) -> f64 {
    let size = count_up(size);
    let times = epsilon.exp_m1() / (epsilon / size).exp_m1() * (1.0 + 16.0 * f64::EPSILON);
    if times >= size { times } else { size }
}

/// The group's size and the event for one record: of a group, or of several groups of the same size.
///
/// The depth of the tree was checked by whoever read it.
fn ungrouped(event: &DpEvent) -> Option<(u64, DpEvent)> {
    match event {
        DpEvent::Group { size, event } => Some((*size, (**event).clone())),
        DpEvent::AddRemoveTwice { event } => Some((2, (**event).clone())),
        DpEvent::SelfComposed { event, count } => {
            let (size, event) = ungrouped(event)?;
            Some((size, DpEvent::SelfComposed { event: Box::new(event), count: *count }))
        }
        DpEvent::Composed { events } => {
            let mut of_all = None;
            let mut ones = Vec::with_capacity(events.len());
            for event in events.iter().filter(|event| !matches!(event, DpEvent::NoOp)) {
                let (size, one) = ungrouped(event)?;
                if *of_all.get_or_insert(size) != size {
                    return None;
                }
                ones.push(one);
            }
            Some((of_all?, DpEvent::Composed { events: ones }))
        }
        _ => None,
    }
}
