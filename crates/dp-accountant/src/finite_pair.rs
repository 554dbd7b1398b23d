//! A pair of laws on finitely many outcomes, as stated by a user.

use crate::error::{Error, non_negative};
use crate::logspace::CompensatedSum;

/// Largest distance of the sum of a law's masses from 1.
const SUM_TOLERANCE: f64 = 1e-12;

/// Two laws on the same outcomes; no outcome has mass 0 under both.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FinitePair {
    outcomes: Vec<(f64, f64)>,
}

impl FinitePair {
    /// Checks the masses and creates the pair.
    ///
    /// If a law's sum falls short of 1 by no more than the rounding of its masses, the shortfall is added to the outcome that
    /// makes the loss worse: that of the largest `p/q` for `p`, of the largest `q/p` for `q`. A larger shortfall, within the
    /// tolerance, is charged as an outcome that the other law does not have.
    pub(crate) fn new(p: &[f64], q: &[f64]) -> Result<Self, Error> {
        if p.len() != q.len() || p.is_empty() {
            return Err(Error::LengthMismatch { left: "p", left_length: p.len(), right: "q", right_length: q.len() });
        }
        let missing_p = missing("sum of p", p)?;
        let missing_q = missing("sum of q", q)?;
        let outcomes = p.iter().copied().zip(q.iter().copied());
        let mut outcomes: Vec<(f64, f64)> = outcomes.filter(|&(p, q)| p > 0.0 || q > 0.0).collect();
        let rounding = f64::EPSILON * p.len() as f64;
        let ratio = |&(p, q): &(f64, f64)| p / q;
        if missing_p > rounding {
            outcomes.push((missing_p, 0.0));
        } else if let Some(worst) = outcomes.iter_mut().max_by(|a, b| ratio(a).total_cmp(&ratio(b))) {
            worst.0 += missing_p;
        }
        if missing_q > rounding {
            outcomes.push((0.0, missing_q));
        } else if let Some(worst) = outcomes.iter_mut().min_by(|a, b| ratio(a).total_cmp(&ratio(b))) {
            worst.1 += missing_q;
        }
        Ok(Self { outcomes })
    }

    /// Returns the largest absolute privacy loss of an outcome, rounded up; infinite if one law lacks it.
    pub(crate) fn largest_loss(&self) -> f64 {
        let loss = |&(p, q): &(f64, f64)| (p / q).ln().abs() * (1.0 + 4.0 * f64::EPSILON) + f64::EPSILON;
        self.outcomes.iter().filter(|(p, q)| p != q).map(loss).fold(0.0, f64::max)
    }

    /// Returns the masses of each outcome under both laws.
    pub(crate) fn outcomes(&self) -> &[(f64, f64)] {
        &self.outcomes
    }
}

/// Returns 1 minus the sum of a law's masses, rounded up.
fn missing(name: &'static str, masses: &[f64]) -> Result<f64, Error> {
    let mut sum = CompensatedSum::default();
    for &mass in masses {
        sum.add(non_negative("probability", mass)?);
    }
    let sum = sum.value();
    if !((sum - 1.0).abs() <= SUM_TOLERANCE) {
        return Err(Error::OutOfRange { name, value: sum, range: "[1 - 1e-12, 1 + 1e-12]" });
    }
    Ok((1.0 - sum).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_outcomes_vanish_and_what_is_missing_is_charged() {
        let pair = FinitePair::new(&[0.5, 0.5, 0.0], &[0.25, 0.75, 0.0]).unwrap();
        assert_eq!(pair.outcomes(), [(0.5, 0.25), (0.5, 0.75)]);
        let short = FinitePair::new(&[0.5, 0.5 - 1e-13], &[0.5, 0.5]).unwrap();
        assert!(short.outcomes()[2].0 > 0.99e-13 && short.outcomes()[2].1 == 0.0);
    }

    #[test]
    fn rounding_of_decimal_masses_costs_no_infinite_loss() {
        let tenths = [0.1; 10];
        let mut other = [0.1; 10];
        (other[0], other[9]) = (0.05, 0.15);
        let pair = FinitePair::new(&tenths, &other).unwrap();
        assert_eq!(pair.outcomes().len(), 10);
        assert!((pair.largest_loss() - 2f64.ln()).abs() < 1e-14);
        let thirds = FinitePair::new(&[1.0 / 3.0, 2.0 / 3.0 - 1e-16], &[0.25, 0.75]).unwrap();
        assert!(thirds.outcomes()[0].0 >= 1.0 / 3.0 && thirds.largest_loss() < 0.3);
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
