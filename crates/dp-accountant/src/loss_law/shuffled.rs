//! Shuffled answers of local randomisers.

use std::sync::{Arc, OnceLock};

use super::atoms::{Atom, Atoms};
use super::{Between, Law, LossLaw, Tails};
use crate::shuffled::{clones, outcomes, responses};
use crate::work;

/// Maximum number of enumerated outcomes.
const MANY: f64 = 2e6;

/// Steps for enumerating and sorting one outcome.
const STEPS_PER_OUTCOME: f64 = 250.0;

/// Number of standard deviations of the binomial laws covered to either side.
const REACH: f64 = 17.0;

/// Largest relative change of the loss by a bucket, if there are enough buckets.
const RESOLUTION: f64 = 1e-4;

/// Returns a law that dominates that of the shuffled answers and one that it dominates, `None` if there are too many outcomes.
/// The first is the pair of clones, which no randomiser needs to attain; the second is that of randomised response.
///
/// With m clones on average the loss is about proportional to `m^(-1/2)`, so that a bucket of relative width w changes it by w/2.
pub(crate) fn law(epsilon: f64, records: u64) -> Option<Law> {
    if epsilon == 0.0 {
        return Some(Law::known(Atoms::new(vec![Atom::new(1.0, 1.0)], 0.0, 0.0, 0.0).symmetric()));
    }
    let mean = (records as f64 * (-epsilon).exp()).max(1.0);
    let given_clones = 2.0 * REACH * (0.25 * mean).sqrt() + 4.0 * REACH;
    let wanted = (REACH / (RESOLUTION * mean.sqrt())).clamp(16.0, (MANY / given_clones).max(16.0));
    let affordable = work::allowance() / (2.0 * STEPS_PER_OUTCOME * given_clones);
    let buckets = wanted.min(affordable.max(16.0));
    if buckets < wanted {
        work::cut_short();
    }
    if !(buckets * given_clones <= 2.0 * MANY) {
        return None;
    }
    let side = |buckets| -> Arc<dyn LossLaw> { Arc::new(Side { epsilon, records, buckets, atoms: OnceLock::new() }) };
    Some(Law::Between { above: side(Some(buckets as usize)), below: side(None) })
}

/// One of the two laws, enumerated on first use.
#[derive(Debug)]
struct Side {
    epsilon: f64,
    records: u64,
    /// The number of buckets of clones; `None` for randomised response.
    buckets: Option<usize>,
    atoms: OnceLock<Atoms>,
}

impl Side {
    fn atoms(&self) -> &Atoms {
        self.atoms.get_or_init(|| {
            let (mut atoms, mut error, mut lost) = (Vec::new(), 0.0f64, 0.0);
            if let Some(buckets) = self.buckets {
                let (clones, omitted) = clones(self.epsilon, self.records, buckets);
                // Each weight sums some of the probabilities of a binomial law with at most as many steps as clones.
                let spread = clones.last().map_or(0, |last| last.0) - clones.first().map_or(0, |first| first.0);
                lost += omitted;
                for (clones, weight) in clones {
                    let (lost_given_clones, relative) = outcomes(self.epsilon, clones, |p, q| {
                        atoms.push(Atom::new(weight * p, weight * q));
                    });
                    lost += weight * lost_given_clones;
                    error = error.max(relative);
                }
                error += 4.0 * f64::EPSILON * (spread as f64 + 4.0);
            } else {
                // The omitted outcomes would add to delta.
                error = responses(self.epsilon, self.records, |p, q| atoms.push(Atom::new(p, q)));
            }
            work::charge(STEPS_PER_OUTCOME * atoms.len() as f64);
            // In the other direction the other records have the other value.
            Atoms::new(atoms, lost, lost, error).symmetric()
        })
    }
}

impl LossLaw for Side {
    fn tails(&self, loss: f64) -> Tails {
        self.atoms().tails(loss)
    }

    fn between(&self, low: f64, high: f64) -> Option<Between> {
        self.atoms().between(low, high)
    }

    fn knows_cells(&self) -> bool {
        true
    }

    fn support(&self) -> (f64, f64) {
        self.atoms().support()
    }

    fn relative_error(&self) -> f64 {
        self.atoms().relative_error()
    }

    fn relative_error_at(&self, loss: f64) -> f64 {
        self.atoms().relative_error_at(loss)
    }

    fn threshold_error(&self, loss: f64) -> f64 {
        self.atoms().threshold_error(loss)
    }

    fn p_infinite(&self) -> f64 {
        self.atoms().p_infinite()
    }

    fn q_infinite(&self) -> f64 {
        self.atoms().q_infinite()
    }

    fn beyond_doubles(&self) -> (f64, f64) {
        self.atoms().beyond_doubles()
    }

    fn is_symmetric(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_tells_less_than_clones() {
        let Some(Law::Between { above, below, .. }) = law(1.0, 100_000) else { panic!("not covered") };
        let delta = |law: &Arc<dyn LossLaw>, epsilon: f64| {
            let tails = law.tails(epsilon);
            tails.p_above - epsilon.exp() * tails.q_above
        };
        for epsilon in [0.0, 0.005, 0.01, 0.02] {
            let (upper, lower) = (delta(&above, epsilon), delta(&below, epsilon));
            assert!(lower > 0.0 && lower <= upper, "{epsilon}: {lower} {upper}");
            assert!(epsilon > 0.0 || upper < lower * 1.5, "{lower} {upper}");
        }
        assert!(above.p_infinite() < 1e-50 && below.p_infinite() == 0.0);
    }

    #[test]
    fn limits_of_enumeration() {
        assert!(law(0.0, 10).is_some_and(|law| law.support() == (0.0, 0.0)));
        assert!(law(0.5, u64::MAX).is_none());
    }
}
