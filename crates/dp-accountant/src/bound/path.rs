//! Group privacy along a path of neighbours, for a group at the root of a tree.
//!
//! With laws `P_0, .., P_k`, each `(epsilon/k, d)`-close to the next, adding up the inequalities gives
//!
//! ```text
//! P_0(S) <= e^epsilon P_k(S) + d (1 + e^(epsilon/k) + .. + e^((k-1) epsilon/k))
//! ```
//!
//! so that delta of the group is at most `d (e^epsilon - 1)/(e^(epsilon/k) - 1)`, for the tightest known `d` of one record at
//! `epsilon/k`; and at most `k` times one record's delta at 0, which is less where the sum of the shares grows faster than `d`
//! falls. The alternative, reading each release by itself as one for the group, is exact for additive noise and never worse for pure
//! guarantees. The path is better for releases known by their exact curve only: objective perturbation and samples (except for a
//! replaced record of sampled Gaussian noise, whose own pair is known). A group of each of several releases is a group of all of them,
//! since the paths lead through the same data sets.
//!
//! # References
//! Vadhan, "The complexity of differential privacy", 2017, Lemma 2.2.

use core::cell::OnceCell;

use super::{Bound, Theorem, delta_beside, epsilon_beside, has_own_curve};
use crate::error::Error;
use crate::event::DpEvent;
use crate::exact::PrivacyCurve;
use crate::leaves::leaves;
use crate::params::Delta;
use crate::rounding::{count_up, mul_up};

/// Maximum number of rounds of the search for epsilon; about four are needed.
const MAX_ROUNDS: u32 = 40;

/// Relative distance from the least epsilon at which the search stops.
const CLOSE: f64 = 1e-12;

/// A tree about a group of records, as a tree about one record and the group's size; evaluations share one exact curve.
#[derive(Debug)]
pub(crate) struct Path {
    size: u64,
    one: DpEvent,
    exact: OnceCell<Option<PrivacyCurve>>,
}

impl Path {
    /// Returns the path if the whole tree is about a group of at least two records.
    pub(super) fn new(event: &DpEvent) -> Option<Self> {
        let (size, one) = ungrouped(event)?;
        (size > 1).then(|| Self { size, one, exact: OnceCell::new() })
    }

    /// As [`new`](Self::new), if it can be better than each release by itself for the group.
    pub(crate) fn if_better(event: &DpEvent) -> Result<Option<Self>, Error> {
        let Some(path) = Self::new(event) else { return Ok(None) };
        let each_is_best = leaves(event, 1)?.iter().all(|(leaf, _)| leaf.is_best_for_groups());
        Ok((!each_is_best).then_some(path))
    }

    /// Returns the exact curve of one record, unless [`delta`](super::delta()) has its own.
    fn exact(&self) -> Option<&PrivacyCurve> {
        let curve = || if has_own_curve(&self.one).ok()? { None } else { PrivacyCurve::new(&self.one).ok() };
        self.exact.get_or_init(curve).as_ref()
    }

    fn epsilon_of_one(&self, delta: Delta) -> Result<f64, Error> {
        let known = self.exact().and_then(|curve| curve.epsilon(delta).ok());
        Ok(epsilon_beside(Self::if_better(&self.one)?.as_ref(), &self.one, delta, known)?.value)
    }

    fn delta_of_one(&self, epsilon: f64) -> Result<f64, Error> {
        let known = self.exact().and_then(|curve| curve.delta(epsilon).ok());
        Ok(delta_beside(Self::if_better(&self.one)?.as_ref(), &self.one, epsilon, known)?.value)
    }

    /// Returns the parts if the tree consists of disjoint parts or of one of several, and a group is among them: the whole costs
    /// no more than its worst part.
    pub(super) fn parts(event: &DpEvent) -> Option<&[DpEvent]> {
        match event {
            DpEvent::Parallel { events } | DpEvent::OneOf { events } => {
                events.iter().any(|part| ungrouped(part).is_some()).then_some(events)
            }
            _ => None,
        }
    }

    /// Returns an epsilon smaller than the valid bound `known`, or `known`.
    pub(super) fn epsilon(&self, known: Bound, delta: Delta) -> Result<Bound, Error> {
        let mut best = known;
        if delta.get() == 0.0 {
            return Ok(best);
        }
        let size = count_up(self.size);
        let at_zero = Delta::new(delta.get() / size * (1.0 - 2.0 * f64::EPSILON))?;
        if self.epsilon_of_one(at_zero)? == 0.0 {
            best.improve(0.0, Theorem::GroupPrivacy);
            return Ok(best);
        }
        // The group's epsilon if one record's delta is apportioned as at the epsilon `at`. It grows slowly with `at`. It is valid
        // if it is at most `at`, because the smaller epsilon sums smaller shares.
        let of_group = |at: f64| -> Result<f64, Error> {
            let share = delta.get() / times(self.size, at) * (1.0 - 2.0 * f64::EPSILON);
            Ok(mul_up(size, self.epsilon_of_one(Delta::new(share)?)?))
        };
        // Without a known bound, increases epsilon until one is valid.
        let mut at = if known.value.is_finite() { known.value } else { 1.0 };
        let mut before: Option<(f64, f64)> = None;
        let mut margin = CLOSE;
        for _ in 0..MAX_ROUNDS {
            let found = of_group(at)?;
            if !(found < f64::INFINITY) {
                break;
            }
            best.improve(if found <= at { found } else { f64::INFINITY }, Theorem::GroupPrivacy);
            if found <= at && (at - found <= 2.0 * margin * at || found == 0.0) {
                break;
            }
            let slope = before.map_or(0.0, |(other, of_other)| (of_other - found) / (other - at));
            let next = if (0.0..0.9).contains(&slope) {
                // A little above the point where the line through the last two points, or a horizontal one, meets the diagonal.
                let meets = at + (found - at) / (1.0 - slope);
                if before.is_some() { meets * (1.0 + margin) } else { meets }
            } else {
                found
            };
            if found > at {
                if !best.value.is_finite() {
                    (at, before) = (2.0 * found, None);
                    continue;
                }
                if before.is_none() {
                    break;
                }
                margin *= 16.0;
            }
            (before, at) = (Some((at, found)), next);
        }
        Ok(best)
    }

    /// Returns a delta smaller than the valid bound `known`, or `known`.
    pub(super) fn delta(&self, known: Bound, epsilon: f64) -> Result<Bound, Error> {
        let mut best = known;
        if known.value > 0.0 {
            for epsilon in [epsilon, 0.0] {
                let one = self.delta_of_one((epsilon / count_up(self.size)).next_down().max(0.0))?;
                best.improve(mul_up(one, times(self.size, epsilon)), Theorem::GroupPrivacy);
            }
        }
        Ok(best)
    }
}

/// Returns the smaller of `known` and the largest bound of the parts.
pub(super) fn smaller(
    known: Bound,
    parts: &[DpEvent],
    of_part: impl Fn(&DpEvent) -> Result<Bound, Error>,
) -> Result<Bound, Error> {
    let mut worst = Bound { value: 0.0, theorem: Theorem::NothingReleased };
    for part in parts {
        let found = of_part(part)?;
        if !(found.value <= worst.value) {
            worst = found;
        }
    }
    Ok(if worst.value < known.value { worst } else { known })
}

/// Returns `(e^epsilon - 1)/(e^(epsilon/k) - 1)`, rounded up; `k` at `epsilon` = 0; infinite only on overflow.
fn times(size: u64, epsilon: f64) -> f64 {
    let size = count_up(size);
    if !(epsilon > 0.0) {
        return size;
    }
    // e^(epsilon - epsilon/k) times a ratio between 1 and k, because the exponentials themselves may overflow. An error of one
    // unit in the exponent's last place is an error of epsilon units in the result's last place.
    let part = epsilon / size;
    let left = ((-epsilon).exp_m1() / (-part).exp_m1()).min(size);
    let times = (epsilon - part).exp() * left * (1.0 + (16.0 + 4.0 * epsilon) * f64::EPSILON);
    if times >= size {
        times
    } else if times < size {
        size
    } else {
        f64::INFINITY
    }
}

/// Returns the group's size and the event for one record, for a group or several groups of the same size.
///
/// The caller has checked the depth of the tree.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_a_path_add_up_to_no_more_than_is_said_at_any_epsilon() {
        for size in [2, 3, 10, 1000] {
            for i in 0..=1000 {
                let epsilon = 1e-9 * (0.03 * f64::from(i)).exp();
                // The sum divided by its largest power, which avoids overflow.
                let part = epsilon / size as f64;
                let ratio: f64 = (0..size).map(|step| (-part * step as f64).exp()).sum();
                let log_sum = epsilon - part + ratio.ln();
                let said = times(size, epsilon);
                let slack = 1e-14 * (1.0 + log_sum);
                assert!(said.ln() >= log_sum - slack, "{size} at {epsilon}: {said} below e^{log_sum}");
                if log_sum < 700.0 {
                    assert!(
                        said.ln() <= log_sum + 1e-13 * (1.0 + log_sum),
                        "{size} at {epsilon}: {said} above e^{log_sum}"
                    );
                }
            }
        }
        assert_eq!(times(2, 0.0), 2.0);
        assert_eq!(times(2, f64::INFINITY), f64::INFINITY);
    }
}
