//! A dominating pair of laws on finitely many outcomes.

use dp_accountant::DpEvent;

use crate::error::Error;

/// A pair of laws that dominates: for each pair of neighbours, no test tells their outputs apart better than the best
/// test tells a draw from `p` from a draw from `q`.
///
/// # Formula
/// ```text
/// sup over events S of ( P(S) - e^t Q(S) )  <=  Σ_i max(0, p_i - e^t q_i)     for every real t
/// ```
/// `P` and `Q` the output's laws for a pair of neighbours. Taken for every `t`, negative ones too, the same inequality
/// with both sides' laws exchanged follows, so the pair answers for both orders. Under add/remove `p` is the law with
/// the record; under the symmetric relations every pair of neighbours occurs in both orders, and so must be dominated.
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
    /// What a law lacks to sum 1, if it is more than rounding, is charged as an outcome that the other law does not
    /// have: an infinite loss.
    ///
    /// # Errors
    /// [`Error::Accountant`] unless both have as many entries and at least one, none negative, with sums within 1e-12
    /// of 1.
    pub fn new(p: Vec<f64>, q: Vec<f64>) -> Result<Self, Error> {
        let pair = Self { p, q };
        pair.event().relations()?;
        Ok(pair)
    }

    /// Probabilities that are known to pass the checks.
    pub(super) fn unchecked(p: Vec<f64>, q: Vec<f64>) -> Self {
        Self { p, q }
    }

    /// Probability of each outcome under the first law.
    pub fn p(&self) -> &[f64] {
        &self.p
    }

    /// Probability of each outcome under the second law.
    pub fn q(&self) -> &[f64] {
        &self.q
    }

    pub(super) fn event(&self) -> DpEvent {
        DpEvent::DominatingPair { p: self.p.clone(), q: self.q.clone() }
    }
}
