//! Releases that a theorem accounts for together, at a lower cost than the composition of their own events.

use dp_accountant::certificate::Assumption;
use dp_accountant::{Adjacency, DpEvent, EventLog};

use crate::error::Error;
use crate::released::Released;

/// A scope for releases that together cost `event`.
///
/// Mechanisms record their releases in the scope's own [log](Self::log). [`finish`](Self::finish) counts them (a session counts
/// once) and returns the log of the run: `event`, the assumptions of the releases, and whether their noise was secret. If the
/// count differs from that of the theorem, `finish` fails and returns no output.
///
/// # Examples
/// Two noisy sums whose theorem says that together they are 0.5-DP:
/// ```
/// use dp_accountant::{DpEvent, EventLog, ReplaceOne};
/// use dp_mechanisms::{Bounded, Error, L1Sensitivity, Laplace, Mechanism, OsSeeded, Prepaid};
///
/// let sensitivity = L1Sensitivity::<ReplaceOne>::new(1.0)?;
/// let laplace = Laplace::from_scale(sensitivity, 4.0)?;
/// let mut scope = Prepaid::new(DpEvent::PureDp { epsilon: 0.5 });
/// let sum = |value: f64| Bounded::with_proven_sensitivity(vec![value], sensitivity);
/// let first = laplace.release(sum(3.0), scope.log(), &mut OsSeeded::new()?)?;
/// let second = laplace.release(sum(4.0), scope.log(), &mut OsSeeded::new()?)?;
/// let total = second.map(|second| first.get()[0] + second[0]);
/// let (total, log): (_, EventLog<ReplaceOne>) = scope.finish(total, 2)?;
/// assert!(total.get().is_finite());
/// assert_eq!(log.to_event(), DpEvent::PureDp { epsilon: 0.5 });
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Prepaid<A: Adjacency> {
    event: DpEvent,
    releases: EventLog<A>,
    proved: Vec<Assumption>,
}

impl<A: Adjacency> Prepaid<A> {
    /// An empty scope.
    pub fn new(event: DpEvent) -> Self {
        Self { event, releases: EventLog::new(), proved: Vec::new() }
    }

    /// The same for releases whose `assumption` the caller proves: the log of the run does not state it.
    #[must_use]
    pub fn proving(mut self, assumption: Assumption) -> Self {
        self.proved.push(assumption);
        self
    }

    /// The log for the releases of the scope.
    pub fn log(&mut self) -> &mut EventLog<A> {
        &mut self.releases
    }

    /// Returns `output`, made of the scope's releases, and the log of the run under the relation `B` of the event.
    ///
    /// # Privacy
    /// The theorem must state that `releases` releases of this kind together cost the event under `B`. Only their number is
    /// checked.
    ///
    /// # Errors
    /// [`Error::NotPrepaid`] if the scope's log holds another number of releases.
    pub fn finish<T, B: Adjacency>(
        self,
        output: Released<T>,
        releases: u64,
    ) -> Result<(Released<T>, EventLog<B>), Error> {
        let found = self.releases.entries().iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
        if found != releases {
            return Err(Error::NotPrepaid { prepaid: releases, found });
        }
        Ok((output, EventLog::accounting_for(self.event, &self.releases, &self.proved)))
    }
}

#[cfg(test)]
mod tests {
    use dp_accountant::{ReplaceOne, ZeroOut};

    use super::*;
    use crate::{Bounded, L2Sensitivity, LaplaceBall, Mechanism, SeededRng};

    /// Returns a scope with `count` releases, and the last one.
    fn scope(count: u64) -> (Prepaid<ZeroOut>, Released<Vec<f64>>) {
        let mut scope = Prepaid::new(DpEvent::PureDp { epsilon: 1.0 });
        let sensitivity = L2Sensitivity::new(1.0).unwrap();
        let ball = LaplaceBall::from_scale(sensitivity, 4.0, 1).unwrap();
        let mut release = |seed| {
            let sum = Bounded::with_proven_sensitivity(vec![1.0], sensitivity);
            ball.release(sum, scope.log(), &mut SeededRng::new(seed)).unwrap()
        };
        let mut last = release(1);
        for seed in 1..count {
            last = release(seed + 1);
        }
        (scope, last)
    }

    #[test]
    fn the_log_of_the_run_holds_the_event_and_the_unproved_assumptions() {
        let (three, last) = scope(3);
        let mut three = three.proving(Assumption::MonotonicScores);
        three.log().assume(Assumption::FloatSum);
        three.log().assume(Assumption::MonotonicScores);
        let (output, log): (_, EventLog<ReplaceOne>) = three.finish(last.map(|_| 7), 3).unwrap();
        assert_eq!(output.into_inner(), 7);
        assert_eq!(log.to_event(), DpEvent::PureDp { epsilon: 1.0 });
        assert!(!log.is_private());
        assert_eq!(log.assumptions(), [Assumption::FloatSum]);
    }

    #[test]
    fn more_or_fewer_releases_than_were_prepaid_are_refused() {
        for (found, prepaid) in [(3, 2), (2, 3), (1, 0)] {
            let (scope, last) = scope(found);
            let refused = scope.finish::<_, ZeroOut>(last, prepaid);
            assert_eq!(refused.unwrap_err(), Error::NotPrepaid { prepaid, found });
        }
    }
}
