//! Approximate guarantees as a failure probability and a pure guarantee otherwise.
//!
//! Every `(epsilon, delta)`-DP mechanism is, for each pair of neighbours, a post-processing of a mechanism that fails with
//! probability `delta`, revealing the data, and otherwise gives an `epsilon`-DP answer (Kairouz, Oh and Viswanath 2015, Theorem
//! 3.1 and its proof). So a whole tree of releases fails with probability `d = 1 - prod (1 - delta_i)` and is otherwise a tree of
//! pure guarantees.

use super::{Leaf, Leaves};
use crate::rounding::{add_up, count_up, mul_up};

/// Returns the probability that one of the approximate guarantees fails, rounded up but below 1 if it is, and the leaves with the
/// approximate guarantees replaced by their pure parts.
pub(crate) fn take_failures(leaves: Leaves) -> (f64, Leaves) {
    let (mut log_survival, mut sum) = (0.0, 0.0);
    let mut rest = Vec::with_capacity(leaves.len());
    for (leaf, count) in leaves {
        match leaf {
            Leaf::Approximate { epsilon, delta } => {
                let times = count_up(count);
                log_survival += times * (-delta).ln_1p();
                sum = add_up(sum, mul_up(times, delta));
                if epsilon > 0.0 {
                    rest.push((Leaf::Pure { epsilon }, count));
                }
            }
            other => rest.push((other, count)),
        }
    }
    // The sum is exact for a single guarantee, so that its own delta suffices for it.
    (sum.min(-log_survival.exp_m1() * (1.0 + 4.0 * f64::EPSILON)).min(1.0), rest)
}

/// Returns the leaf that fails with probability `failure` and releases nothing else; `None` for 0.
pub(crate) fn fails_with(failure: f64) -> Option<(Leaf, u64)> {
    match failure {
        0.0 => None,
        delta if delta < 1.0 => Some((Leaf::Approximate { epsilon: 0.0, delta }, 1)),
        _ => Some((Leaf::NonPrivate, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_guarantee_keeps_its_own_delta_and_many_do_not_reach_their_sum() {
        let approximate = |delta, count| (Leaf::Approximate { epsilon: 0.5, delta }, count);
        let (failure, rest) = take_failures(vec![approximate(1e-6, 1)]);
        assert_eq!((failure, rest), (1e-6, vec![(Leaf::Pure { epsilon: 0.5 }, 1)]));
        let (failure, rest) = take_failures(vec![approximate(0.1, 10)]);
        assert_eq!(rest, vec![(Leaf::Pure { epsilon: 0.5 }, 10)]);
        assert!((failure - (1.0 - 0.9f64.powi(10))).abs() < 1e-14 && failure >= 1.0 - 0.9f64.powi(10));
        let (failure, _) = take_failures(vec![approximate(0.9, u64::MAX)]);
        assert_eq!(fails_with(failure), Some((Leaf::NonPrivate, 1)));
    }
}
