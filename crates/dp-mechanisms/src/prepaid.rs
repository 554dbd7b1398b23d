//! Releases that a theorem accounts for together, at less than their own events composed.

use dp_accountant::certificate::Assumption;
use dp_accountant::{Adjacency, DpEvent, EventLog};

use crate::error::Error;
use crate::released::Released;

/// A scope for releases that together cost `event`.
///
/// Mechanisms release into the scope's own [log](Self::log). The end of the scope counts the releases (a session counts once),
/// and makes the log of the run: `event`, the assumptions of the releases, and whether their noise was secret. A run that
/// released more or less often than the theorem says is an error, and nothing of it is released.
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
/// let mut total = 0.0f64;
/// for sum in [3.0, 4.0] {
///     let sum = Bounded::with_proven_sensitivity(vec![sum], sensitivity);
///     total += laplace.release(sum, scope.log(), &mut OsSeeded::new()?)?.get()[0];
/// }
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

    /// The same for releases of which the caller proves `assumption`: the log of the run does not state it.
    #[must_use]
    pub fn proving(mut self, assumption: Assumption) -> Self {
        self.proved.push(assumption);
        self
    }

    /// The log for the releases of the scope.
    pub fn log(&mut self) -> &mut EventLog<A> {
        &mut self.releases
    }

    /// Releases `output` and returns the log of the run, under the relation `B` of the scope's event.
    ///
    /// # Privacy
    /// `output` must be a function of the scope's releases and of nothing else that depends on records, as in
    /// [`Released::map`]. The theorem must say that `releases` releases of this kind together cost the event under `B`.
    ///
    /// # Errors
    /// [`Error::NotPrepaid`] if the scope's log holds another number of releases, or none.
    pub fn finish<T, B: Adjacency>(self, output: T, releases: u64) -> Result<(Released<T>, EventLog<B>), Error> {
        let found = self.releases.entries().iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
        if found != releases || found == 0 {
            return Err(Error::NotPrepaid { prepaid: releases, found });
        }
        let mut log = EventLog::new();
        log.record(self.event, 1);
        if !self.releases.is_private() {
            log.mark_not_private();
        }
        let assumed = self.releases.assumptions().iter().filter(|assumption| !self.proved.contains(assumption));
        assumed.for_each(|assumption| log.assume(assumption.clone()));
        Ok((Released::new(output), log))
    }
}

#[cfg(test)]
mod tests {
    use dp_accountant::{ReplaceOne, ZeroOut};

    use super::*;
    use crate::{Bounded, L2Sensitivity, LaplaceBall, Mechanism, SeededRng};

    fn scope(count: u64) -> Prepaid<ZeroOut> {
        let mut scope = Prepaid::new(DpEvent::PureDp { epsilon: 1.0 });
        let sensitivity = L2Sensitivity::new(1.0).unwrap();
        let ball = LaplaceBall::from_scale(sensitivity, 4.0, 1).unwrap();
        for seed in 0..count {
            let sum = Bounded::with_proven_sensitivity(vec![1.0], sensitivity);
            ball.release(sum, scope.log(), &mut SeededRng::new(seed)).unwrap();
        }
        scope
    }

    #[test]
    fn the_log_of_the_run_is_the_event_and_what_the_releases_say() {
        let three = scope(3);
        let mut three = three.proving(Assumption::MonotonicScores);
        three.log().assume(Assumption::FloatSum);
        three.log().assume(Assumption::MonotonicScores);
        let (output, log): (_, EventLog<ReplaceOne>) = three.finish(7, 3).unwrap();
        assert_eq!(output.into_inner(), 7);
        assert_eq!(log.to_event(), DpEvent::PureDp { epsilon: 1.0 });
        assert!(!log.is_private());
        assert_eq!(log.assumptions(), [Assumption::FloatSum]);
    }

    #[test]
    fn more_or_fewer_releases_than_were_prepaid_are_refused() {
        for (found, prepaid) in [(3, 2), (2, 3), (0, 0), (0, 1)] {
            let refused = scope(found).finish::<_, ZeroOut>((), prepaid);
            assert_eq!(refused.unwrap_err(), Error::NotPrepaid { prepaid, found });
        }
    }
}
