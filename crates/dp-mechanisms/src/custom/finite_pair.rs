//! A dominating pair of laws on finitely many outcomes.

use dp_accountant::DpEvent;

use crate::error::Error;

/// A dominating pair of laws: for each pair of neighbours, no test distinguishes their outputs better than the best test
/// distinguishes a draw from `p` from a draw from `q`.
///
/// # Formula
/// ```text
/// sup over events S of ( P(S) - e^t Q(S) )  <=  Σ_i max(0, p_i - e^t q_i)     for every real t
/// ```
/// with `P` and `Q` the output's laws for a pair of neighbours. For all `t`, including negative ones, this implies the same
/// inequality with the laws on both sides exchanged, so the pair covers both orders. Under add/remove `p` is the law with the
/// record; under the symmetric relations every pair of neighbours occurs in both orders and must be dominated in both.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, bound};
/// use dp_mechanisms::custom::{Claim, FinitePair};
/// // An answer that is right with probability 3/4 is ln 3-DP.
/// let pair = FinitePair::new(vec![0.75, 0.25], vec![0.25, 0.75])?;
/// let event = Claim::from(pair).event()?;
/// assert!((bound::epsilon(&event, Delta::ZERO)?.value - 3f64.ln()).abs() < 1e-12);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
///
/// # References
/// Y. Zhu, J. Dong, Y.-X. Wang, "Optimal accounting of differential privacy via characteristic function", 2022,
/// Definition 7 and Proposition 8, arXiv 2106.08567.
#[derive(Debug, Clone, PartialEq)]
pub struct FinitePair {
    p: Vec<f64>,
    q: Vec<f64>,
}

impl FinitePair {
    /// Checks the probabilities of each outcome under both laws.
    ///
    /// If a law's sum falls short of 1 by more than rounding, the difference is charged as an outcome that the other law does not
    /// have: an infinite loss.
    ///
    /// # Errors
    /// [`Error::Accountant`] unless both have the same number of entries and at least one, none negative, with sums within 1e-12
    /// of 1.
    pub fn new(p: Vec<f64>, q: Vec<f64>) -> Result<Self, Error> {
        let pair = Self { p, q };
        pair.event().relations()?;
        Ok(pair)
    }

    /// Wraps probabilities that are known to pass the checks.
    pub(super) fn unchecked(p: Vec<f64>, q: Vec<f64>) -> Self {
        Self { p, q }
    }

    /// Returns the probability of each outcome under the first law.
    pub fn p(&self) -> &[f64] {
        &self.p
    }

    /// Returns the probability of each outcome under the second law.
    pub fn q(&self) -> &[f64] {
        &self.q
    }

    pub(super) fn event(&self) -> DpEvent {
        DpEvent::DominatingPair { p: self.p.clone(), q: self.q.clone() }
    }
}
