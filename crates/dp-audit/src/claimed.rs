//! A subject under another claim.

use dp_mechanisms::SeededRng;

use crate::error::Error;
use crate::subject::{Claim, Side, Statistic, Subject};

/// A subject with its claim replaced: by a smaller one, to measure the power of an audit, or by that of a broken proof.
///
/// # Examples
/// ```
/// use dp_accountant::DpEvent;
/// use dp_audit::{Auditor, Claim, Claimed, Side, Statistic, Verdict, subject};
/// use rand::RngExt;
///
/// let claim = Claim::new(DpEvent::PureDp { epsilon: 1.0 })?;
/// let coin = subject::from_fn("coin", "heads or tails", claim, Statistic::Event, |side, rng, features| {
///     let honest = rng.random::<f64>() < 0.7310585; // e / (1 + e)
///     features.push(f64::from((side == Side::Neighbour) == honest));
///     Ok(())
/// });
/// let less = Claimed::new(coin, Claim::new(DpEvent::PureDp { epsilon: 0.5 })?);
/// assert_eq!(Auditor::new(5000)?.audit(&less)?.verdict, Verdict::Refuted);
/// # Ok::<(), dp_audit::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Claimed<S> {
    subject: S,
    claim: Claim,
}

impl<S> Claimed<S> {
    /// Creates `subject` with another claim.
    pub fn new(subject: S, claim: Claim) -> Self {
        Self { subject, claim }
    }
}

impl<S: Subject> Subject for Claimed<S> {
    fn name(&self) -> &str {
        self.subject.name()
    }
    fn pair(&self) -> &str {
        self.subject.pair()
    }
    fn claim(&self) -> &Claim {
        &self.claim
    }
    fn statistic(&self) -> Statistic {
        self.subject.statistic()
    }
    fn observe(&self, side: Side, rng: &mut SeededRng, features: &mut Vec<f64>) -> Result<(), Error> {
        self.subject.observe(side, rng, features)
    }
    fn relative_cost(&self) -> f64 {
        self.subject.relative_cost()
    }
    fn trials_hint(&self) -> Option<u64> {
        self.subject.trials_hint()
    }
}
