//! Audits of many subjects with a common false-alarm rate.

use std::collections::HashSet;

use crate::audit::{Audit, Verdict};
use crate::auditor::Auditor;
use crate::error::Error;
use crate::monitor::Monitor;
use crate::subject::Subject;

/// The audits of a suite.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Suite {
    /// One audit per subject, in the order of the subjects.
    pub audits: Vec<Audit>,
    /// Upper bound on the probability that any subject of a sound suite is refuted.
    pub failure_probability: f64,
}

impl Suite {
    /// Returns the refuted audits.
    pub fn refuted(&self) -> impl Iterator<Item = &Audit> {
        self.audits.iter().filter(|audit| audit.verdict == Verdict::Refuted)
    }
}

/// Audits every subject. The auditor's failure probability is that of the whole suite; each audit gets an equal share of it
/// (Bonferroni), whatever the findings.
///
/// # Errors
/// [`Error::DuplicateName`], [`Error::Cancelled`], and errors of a subject: the first such error ends the suite.
///
/// # Examples
/// ```
/// use dp_accountant::DpEvent;
/// use dp_audit::{Auditor, Claim, Side, Statistic, Unwatched, audit_all, subject};
/// use rand::RngExt;
///
/// let coin = |name, bias: f64| {
///     let claim = Claim { event: DpEvent::PureDp { epsilon: 1.0 }, delta: 0.0 };
///     subject::from_fn(name, "heads or tails", claim, Statistic::Event, move |side, rng, features| {
///         let honest = rng.random::<f64>() < bias;
///         features.push(f64::from((side == Side::Neighbour) == honest));
///         Ok(())
///     })
/// };
/// let suite = audit_all(&[coin("fair enough", 0.73), coin("too honest", 0.9)], &Auditor::new(10_000)?, &Unwatched)?;
/// assert_eq!(suite.refuted().map(|audit| audit.subject.as_str()).collect::<Vec<_>>(), ["too honest"]);
/// assert_eq!(suite.audits[0].failure_probability, 0.0005);
/// # Ok::<(), dp_audit::Error>(())
/// ```
pub fn audit_all<S: Subject>(subjects: &[S], auditor: &Auditor, monitor: &dyn Monitor) -> Result<Suite, Error> {
    let mut names = HashSet::new();
    for name in subjects.iter().map(Subject::name) {
        if !names.insert(name) {
            return Err(Error::DuplicateName { subject: name.to_owned() });
        }
    }
    let failure_probability = auditor.failure_probability();
    let each = auditor.clone().with_failure_probability(failure_probability / subjects.len().max(1) as f64)?;
    let audits = subjects.iter().map(|subject| each.audit_with(subject, monitor)).collect::<Result<_, _>>()?;
    Ok(Suite { audits, failure_probability })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Unwatched;
    use crate::testing::{coin, laplace};

    #[test]
    fn a_suite_shares_its_failure_probability_evenly() {
        let subjects: [Box<dyn Subject>; 2] = [Box::new(coin(1.0, 1.0)), Box::new(laplace(1.0, 1.0))];
        let auditor = Auditor::exactly(1000).unwrap().with_failure_probability(0.02).unwrap();
        let suite = audit_all(&subjects, &auditor, &Unwatched).unwrap();
        assert_eq!(suite.failure_probability, 0.02);
        let alone = auditor.with_failure_probability(0.01).unwrap();
        for (audit, subject) in suite.audits.iter().zip(&subjects) {
            assert_eq!(*audit, alone.audit(subject).unwrap());
        }
        assert_eq!(audit_all::<Box<dyn Subject>>(&[], &alone, &Unwatched).unwrap().audits, []);
    }

    #[test]
    fn two_subjects_of_one_name_are_refused() {
        let auditor = Auditor::exactly(1000).unwrap();
        let error = audit_all(&[coin(1.0, 1.0), coin(2.0, 2.0)], &auditor, &Unwatched).unwrap_err();
        assert_eq!(error, Error::DuplicateName { subject: "coin".to_owned() });
    }
}
