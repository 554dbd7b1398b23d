//! A pair of laws on finitely many outcomes, as a user states it.

use crate::error::{Error, non_negative};
use crate::logspace::CompensatedSum;

/// How far the sum of a law's masses may be from 1.
const SUM_TOLERANCE: f64 = 1e-12;

/// Two laws on the same outcomes; no outcome has mass 0 under both.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FinitePair {
    outcomes: Vec<(f64, f64)>,
}

impl FinitePair {
    /// Checks the masses.
    ///
    /// Masses that sum to less than 1, within the tolerance, are not scaled up: what is missing from `p` is charged as
    /// an outcome that `q` does not have, and the other way round.
    pub(crate) fn new(p: &[f64], q: &[f64]) -> Result<Self, Error> {
        if p.len() != q.len() || p.is_empty() {
            return Err(Error::LengthMismatch { left: "p", left_length: p.len(), right: "q", right_length: q.len() });
        }
        let missing_p = missing("sum of p", p)?;
        let missing_q = missing("sum of q", q)?;
        let outcomes = p.iter().copied().zip(q.iter().copied()).chain([(missing_p, 0.0), (0.0, missing_q)]);
        Ok(Self { outcomes: outcomes.filter(|&(p, q)| p > 0.0 || q > 0.0).collect() })
    }

    /// The largest absolute privacy loss of an outcome, rounded up; infinite where one law lacks it.
    pub(crate) fn largest_loss(&self) -> f64 {
        let loss = |&(p, q): &(f64, f64)| (p / q).ln().abs() * (1.0 + 4.0 * f64::EPSILON) + f64::EPSILON;
        self.outcomes.iter().filter(|(p, q)| p != q).map(loss).fold(0.0, f64::max)
    }

    /// The masses of each outcome under both laws.
    pub(crate) fn outcomes(&self) -> &[(f64, f64)] {
        &self.outcomes
    }
}

/// What a law's masses lack to sum 1, rounded up.
fn missing(name: &'static str, masses: &[f64]) -> Result<f64, Error> {
    let mut sum = CompensatedSum::default();
    for &mass in masses {
        sum.add(non_negative("probability", mass)?);
    }
    let sum = sum.value();
    if !((sum - 1.0).abs() <= SUM_TOLERANCE) {
        return Err(Error::OutOfRange { name, value: sum, range: "[1 - 1e-12, 1 + 1e-12]" });
    }
    Ok(if sum == 1.0 { 0.0 } else { (1.0 - sum + f64::EPSILON).max(0.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_outcomes_vanish_and_what_is_missing_is_charged() {
        let pair = FinitePair::new(&[0.5, 0.5, 0.0], &[0.25, 0.75, 0.0]).unwrap();
        assert_eq!(pair.outcomes(), [(0.5, 0.25), (0.5, 0.75)]);
        let short = FinitePair::new(&[0.5, 0.5 - 1e-13], &[0.5, 0.5]).unwrap();
        assert!(short.outcomes()[2].0 >= 1e-13 && short.outcomes()[2].1 == 0.0);
    }

    #[test]
    fn what_is_no_law_is_refused() {
        assert!(FinitePair::new(&[], &[]).is_err());
        assert!(FinitePair::new(&[1.0], &[0.5, 0.5]).is_err());
        assert!(FinitePair::new(&[0.5, 0.4], &[0.5, 0.5]).is_err());
        assert!(FinitePair::new(&[1.5, -0.5], &[0.5, 0.5]).is_err());
        assert!(FinitePair::new(&[f64::NAN, 1.0], &[0.5, 0.5]).is_err());
    }
}
