//! Laws with few outcomes: randomised responses and the pairs that dominate every release with a stated guarantee.

use super::atoms::{Atom, Atoms};
use crate::finite_pair::FinitePair;

const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// Returns the binary randomised response that dominates every `epsilon`-DP release.
///
/// # References
/// Kairouz, Oh and Viswanath 2017, Theorem 2.5 (and 3.2 for the approximate guarantee), arXiv:1311.0776.
pub(crate) fn pure(epsilon: f64) -> Atoms {
    approximate(epsilon, 0.0)
}

/// Returns the pair that dominates every `(epsilon, delta)`-DP release: with probability delta the data are revealed, otherwise
/// the output is a randomised response.
pub(crate) fn approximate(epsilon: f64, delta: f64) -> Atoms {
    let rest = 1.0 - delta;
    let (likely, unlikely) = (rest / (1.0 + (-epsilon).exp()), rest / (1.0 + epsilon.exp()));
    let atoms = vec![Atom { loss: epsilon, p: likely, q: unlikely }, Atom { loss: -epsilon, p: unlikely, q: likely }];
    // The exponential magnifies the rounding of epsilon.
    Atoms::new(atoms, delta, delta, ROUNDING).symmetric()
}

/// Returns k-ary randomised response: the true answer, the other record's answer, and the remaining answers.
pub(crate) fn randomized(buckets: u64, noise: f64) -> Atoms {
    let buckets = buckets as f64;
    let other = noise / buckets;
    let own = 1.0 - noise * ((buckets - 1.0) / buckets);
    let neither = noise * ((buckets - 2.0) / buckets);
    let loss = (own / other).ln();
    let atoms = vec![
        Atom { loss, p: own, q: other },
        Atom { loss: 0.0, p: neither, q: neither },
        Atom { loss: -loss, p: other, q: own },
    ];
    // With nearly full noise, the remaining probability has an absolute error relative to 1; but it is at least 1/2.
    Atoms::new(atoms, 0.0, 0.0, 2.0 * ROUNDING).symmetric()
}

/// Returns a pair as its user states it.
pub(crate) fn pair(pair: &FinitePair) -> Atoms {
    let only = |which: fn(&(f64, f64)) -> (f64, f64)| -> f64 {
        let masses = pair.outcomes().iter().map(which);
        masses.filter(|&(_, other)| other == 0.0).map(|(mass, _)| mass).sum()
    };
    let (p_infinite, q_infinite) = (only(|&(p, q)| (p, q)), only(|&(p, q)| (q, p)));
    let atoms = pair.outcomes().iter().filter(|(p, q)| *p > 0.0 && *q > 0.0).map(|&(p, q)| Atom::new(p, q)).collect();
    Atoms::new(atoms, p_infinite, q_infinite, ROUNDING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss_law::LossLaw;

    #[test]
    fn what_is_told_with_probability_delta_has_infinite_loss() {
        let law = approximate(1.0, 0.125);
        assert_eq!((law.p_infinite(), law.q_infinite()), (0.125, 0.125));
        let tails = law.tails(0.0);
        assert!((tails.p_above - 1f64.exp() * tails.q_above - 0.125).abs() < 1e-15);
        assert!((tails.p_above + tails.p_below - 1.0).abs() < 1e-15);
    }

    #[test]
    fn k_ary_responses_have_three_losses() {
        let law = randomized(10, 0.5);
        assert!((law.support().1 - 11f64.ln()).abs() < 1e-14);
        assert!((law.tails(0.1).p_above - 0.55).abs() < 1e-15);
        assert!((law.tails(-0.1).p_above - 0.95).abs() < 1e-15);
    }

    #[test]
    fn outcomes_of_one_law_alone_are_infinite_losses() {
        let stated = FinitePair::new(&[0.5, 0.25, 0.25, 0.0], &[0.25, 0.25, 0.0, 0.5]).unwrap();
        let law = pair(&stated);
        assert_eq!((law.p_infinite(), law.q_infinite()), (0.25, 0.5));
        assert_eq!(law.support(), (0.0, 2f64.ln()));
    }
}
