//! The append-only log of one run's releases under one neighbouring relation.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::adjacency::{Adjacency, AdjacencyKind};
use crate::certificate::Assumption;
use crate::event::DpEvent;

/// The releases of one run so far, under the neighbouring relation `A`.
///
/// A mechanism appends to it in the same call that releases. The log records permanently whether any release drew from a
/// reproducible generator: such a run has no guarantee (see [`is_private`](Self::is_private)). It also collects the assumptions
/// of the releases (see [`assumptions`](Self::assumptions)), so that no certificate can omit them.
///
/// It has an [identity](Self::id), so that a release paid for in one log is not recorded in another; a copy has a new identity.
/// Two logs are equal if their contents are equal.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, DpEvent, EventLog, ReplaceOne, bound};
///
/// let mut log = EventLog::<ReplaceOne>::new();
/// for _ in 0..4 {
///     log.record(DpEvent::PureDp { epsilon: 0.25 }, 1);
/// }
/// assert_eq!(log.entries().len(), 1);
/// assert_eq!(bound::epsilon(&log.to_event(), Delta::ZERO)?.value, 1.0);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
#[derive(Debug)]
pub struct EventLog<A: Adjacency> {
    id: LogId,
    entries: Vec<(DpEvent, u64)>,
    private: bool,
    assumptions: Vec<Assumption>,
    relation: PhantomData<A>,
}

/// The identity of a log within this process.
///
/// # Examples
/// ```
/// use dp_accountant::{EventLog, ReplaceOne};
/// let log = EventLog::<ReplaceOne>::new();
/// let copy = log.clone();
/// assert!(log == copy && log.id() != copy.id());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogId(u64);

impl LogId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // 2^64 logs are never made.
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl<A: Adjacency> Clone for EventLog<A> {
    fn clone(&self) -> Self {
        Self {
            id: LogId::next(),
            entries: self.entries.clone(),
            private: self.private,
            assumptions: self.assumptions.clone(),
            relation: PhantomData,
        }
    }
}

impl<A: Adjacency> PartialEq for EventLog<A> {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries && self.private == other.private && self.assumptions == other.assumptions
    }
}

impl<A: Adjacency> Default for EventLog<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Adjacency> EventLog<A> {
    /// Creates an empty log.
    pub fn new() -> Self {
        Self { id: LogId::next(), entries: Vec::new(), private: true, assumptions: Vec::new(), relation: PhantomData }
    }

    /// Returns the log of `releases` that together cost `event`. Their own events are dropped; their assumptions, except those in
    /// `proved`, are kept, as is whether their noise was secret.
    ///
    /// # Privacy
    /// The caller claims that the releases cost `event` under `A`, and proves the assumptions in `proved`. Both need a theorem.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{DpEvent, EventLog, ReplaceOne, ZeroOut};
    ///
    /// let mut presence = EventLog::<ZeroOut>::new();
    /// presence.record(DpEvent::PureDp { epsilon: 0.25 }, 1);
    /// // A replacement removes one record and adds another.
    /// let event = DpEvent::AddRemoveTwice { event: Box::new(presence.to_event()) };
    /// let log = EventLog::<ReplaceOne>::accounting_for(event.clone(), &presence, &[]);
    /// assert_eq!(log.to_event(), event);
    /// ```
    pub fn accounting_for<B: Adjacency>(event: DpEvent, releases: &EventLog<B>, proved: &[Assumption]) -> Self {
        let mut log = Self::new();
        log.record(event, 1);
        log.private = releases.private;
        let assumed = releases.assumptions.iter().filter(|assumption| !proved.contains(assumption));
        assumed.for_each(|assumption| log.assume(assumption.clone()));
        log
    }

    /// Appends `count` releases of `event`. Equal adjacent entries are merged; accountants treat them as separate entries.
    pub fn record(&mut self, event: DpEvent, count: u64) {
        if count == 0 {
            return;
        }
        match self.entries.last_mut() {
            Some((last, times)) if *last == event && times.checked_add(count).is_some() => *times += count,
            _ => self.entries.push((event, count)),
        }
    }

    /// Appends the contents of `part`, released from the same records, as one entry: the two compose.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{Delta, DpEvent, EventLog, ReplaceOne, bound};
    ///
    /// let mut part = EventLog::<ReplaceOne>::new();
    /// part.record(DpEvent::PureDp { epsilon: 0.25 }, 1);
    /// let mut log = part.clone();
    /// log.record_all(part);
    /// assert_eq!(bound::epsilon(&log.to_event(), Delta::ZERO)?.value, 0.5);
    /// # Ok::<(), dp_accountant::Error>(())
    /// ```
    pub fn record_all(&mut self, part: Self) {
        self.private &= part.private;
        if !part.entries.is_empty() {
            self.record(part.to_event(), 1);
        }
        part.assumptions.into_iter().for_each(|assumption| self.assume(assumption));
    }

    /// Appends the contents of `parts`, each released from its own records, disjoint from the others'. It costs as much as the
    /// costliest part ([`DpEvent::Parallel`]). A part's releases may depend on those of the parts before it.
    ///
    /// # Privacy
    /// The records of a part must be determined by public positions, not by the records' values.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{Delta, DpEvent, EventLog, ReplaceOne, bound};
    ///
    /// let mut parts = [EventLog::<ReplaceOne>::new(), EventLog::new()];
    /// parts[0].record(DpEvent::Gaussian { std_dev: 4.0, sensitivity: 1.0 }, 1);
    /// parts[1].record(DpEvent::Gaussian { std_dev: 5.0, sensitivity: 1.0 }, 1);
    /// let costliest = bound::epsilon(&parts[0].to_event(), Delta::new(1e-6)?)?.value;
    /// let mut log = EventLog::new();
    /// log.record_parallel(parts);
    /// assert_eq!(bound::epsilon(&log.to_event(), Delta::new(1e-6)?)?.value, costliest);
    /// # Ok::<(), dp_accountant::Error>(())
    /// ```
    pub fn record_parallel(&mut self, parts: impl IntoIterator<Item = Self>) {
        let mut events = Vec::new();
        for part in parts {
            self.private &= part.private;
            events.push(part.to_event());
            part.assumptions.into_iter().for_each(|assumption| self.assume(assumption));
        }
        if !events.is_empty() {
            self.record(DpEvent::Parallel { events }, 1);
        }
    }

    /// Marks the run as drawn from a generator that is not secret. This cannot be undone.
    pub fn mark_not_private(&mut self) {
        self.private = false;
    }

    /// Returns whether every release so far drew from a cryptographically secure, secretly seeded generator.
    pub fn is_private(&self) -> bool {
        self.private
    }

    /// Adds an assumption of a release; a repeated assumption is listed once. This cannot be undone.
    pub fn assume(&mut self, assumption: Assumption) {
        if !self.assumptions.contains(&assumption) {
            self.assumptions.push(assumption);
        }
    }

    /// Returns the assumptions of the releases so far, in the order of their first mention.
    pub fn assumptions(&self) -> &[Assumption] {
        &self.assumptions
    }

    /// Returns the identity of the log, which is unchanged by a move.
    pub fn id(&self) -> LogId {
        self.id
    }

    /// Returns the entries in order.
    pub fn entries(&self) -> &[(DpEvent, u64)] {
        &self.entries
    }

    /// Returns the neighbouring relation.
    pub fn adjacency(&self) -> AdjacencyKind {
        A::KIND
    }

    /// Returns the whole run as one event tree.
    pub fn to_event(&self) -> DpEvent {
        let mut events: Vec<DpEvent> = self
            .entries
            .iter()
            .map(|(event, count)| match count {
                1 => event.clone(),
                &count => DpEvent::SelfComposed { event: Box::new(event.clone()), count },
            })
            .collect();
        match events.len() {
            0 => DpEvent::NoOp,
            1 => events.remove(0),
            _ => DpEvent::Composed { events },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjacency::ReplaceOne;

    fn pure(epsilon: f64) -> DpEvent {
        DpEvent::PureDp { epsilon }
    }

    #[test]
    fn keeps_order_and_merges_neighbours_only() {
        let mut log = EventLog::<ReplaceOne>::new();
        for epsilon in [1.0, 1.0, 2.0, 1.0] {
            log.record(pure(epsilon), 2);
        }
        log.record(pure(3.0), 0);
        assert_eq!(log.entries(), [(pure(1.0), 4), (pure(2.0), 2), (pure(1.0), 2)]);
        assert_eq!(log.adjacency(), AdjacencyKind::ReplaceOne);
    }

    #[test]
    fn no_count_is_lost_at_the_end_of_the_range() {
        let mut log = EventLog::<ReplaceOne>::new();
        log.record(pure(1.0), u64::MAX);
        log.record(pure(1.0), 2);
        assert_eq!(log.entries(), [(pure(1.0), u64::MAX), (pure(1.0), 2)]);
    }

    #[test]
    fn the_tree_is_as_small_as_it_can_be() {
        let mut log = EventLog::<ReplaceOne>::new();
        assert_eq!(log.to_event(), DpEvent::NoOp);
        log.record(pure(1.0), 1);
        assert_eq!(log.to_event(), pure(1.0));
        log.record(pure(1.0), 1);
        let twice = DpEvent::SelfComposed { event: Box::new(pure(1.0)), count: 2 };
        assert_eq!(log.to_event(), twice);
        log.record(pure(2.0), 1);
        assert_eq!(log.to_event(), DpEvent::Composed { events: vec![twice, pure(2.0)] });
    }

    #[test]
    fn parts_share_one_entry_and_keep_what_they_rest_on() {
        let mut parts = [EventLog::<ReplaceOne>::new(), EventLog::new()];
        parts[0].record(pure(1.0), 1);
        parts[1].record(pure(2.0), 3);
        parts[1].mark_not_private();
        parts[1].assume(Assumption::IdealisedFloat);
        let events = parts.iter().map(EventLog::to_event).collect();
        let mut log = EventLog::new();
        log.record_parallel(parts);
        assert_eq!(log.to_event(), DpEvent::Parallel { events });
        assert!(!log.is_private());
        assert_eq!(log.assumptions(), [Assumption::IdealisedFloat]);
        let mut empty = EventLog::<ReplaceOne>::new();
        empty.record_parallel([]);
        assert_eq!(empty.to_event(), DpEvent::NoOp);
    }

    #[test]
    fn an_assumption_is_kept_once() {
        let mut log = EventLog::<ReplaceOne>::new();
        assert!(log.assumptions().is_empty());
        for assumption in [Assumption::IdealisedFloat, Assumption::FloatSum, Assumption::IdealisedFloat] {
            log.assume(assumption);
        }
        assert_eq!(log.assumptions(), [Assumption::IdealisedFloat, Assumption::FloatSum]);
    }

    #[test]
    fn the_mark_is_irrevocable() {
        let mut log = EventLog::<ReplaceOne>::new();
        assert!(log.is_private());
        log.mark_not_private();
        log.record(pure(1.0), 1);
        assert!(!log.is_private());
    }
}
