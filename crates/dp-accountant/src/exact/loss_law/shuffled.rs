//! Shuffled answers of local randomisers.

use super::Law;
use super::atoms::{Atom, Atoms};
use crate::shuffled::{Bound, clones, outcomes};

/// More outcomes than this are not enumerated.
const MANY: f64 = 2e6;

/// Standard deviations to either side that the binomial laws reach.
const REACH: f64 = 17.0;

/// Buckets change the loss by this share, at most, where there are enough of them.
const RESOLUTION: f64 = 1e-4;

/// A law above and one below that of the shuffled answers, `None` where there are too many outcomes.
///
/// With m clones on average the loss is about proportional to `m^(-1/2)`, so that a bucket of relative width w changes
/// it by w/2.
pub(crate) fn law(epsilon: f64, records: u64) -> Option<Law> {
    if epsilon == 0.0 {
        return Some(Law::known(Atoms::new(vec![Atom::new(1.0, 1.0)], 0.0, 0.0, 0.0).symmetric()));
    }
    let mean = (records as f64 * (-epsilon).exp()).max(1.0);
    let given_clones = 2.0 * REACH * (0.25 * mean).sqrt() + 4.0 * REACH;
    let buckets = (REACH / (RESOLUTION * mean.sqrt())).clamp(16.0, MANY / given_clones);
    if !(buckets >= 8.0) {
        return None;
    }
    let bounded = |bound| {
        let (clones, mut lost) = clones(epsilon, records, buckets as usize, bound);
        let (mut atoms, mut error) = (Vec::new(), 0.0f64);
        for (clones, weight) in clones {
            let (lost_given_clones, relative) = outcomes(epsilon, clones, |p, q| {
                atoms.push(Atom::new(weight * p, weight * q));
            });
            lost += weight * lost_given_clones;
            error = error.max(relative);
        }
        // The weights' own errors are those of a binomial law of as many steps at most.
        let lost = if bound == Bound::Upper { lost } else { 0.0 };
        Atoms::new(atoms, lost, lost, 4.0 * error).symmetric()
    };
    Some(Law::Between {
        above: std::sync::Arc::new(bounded(Bound::Upper)),
        below: std::sync::Arc::new(bounded(Bound::Lower)),
    })
}
