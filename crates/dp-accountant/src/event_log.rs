//! The append-only log of one run's releases under one neighbouring relation.

use core::marker::PhantomData;

use crate::adjacency::{Adjacency, AdjacencyKind};
use crate::event::DpEvent;

/// What has been released so far in one run, under the neighbouring relation `A`.
///
/// A mechanism appends to it in the same call that releases. It remembers for good whether any release drew from a
/// reproducible generator: such a run carries no guarantee (see [`is_private`](Self::is_private)).
#[derive(Debug, Clone, PartialEq)]
pub struct EventLog<A: Adjacency> {
    entries: Vec<(DpEvent, u64)>,
    private: bool,
    relation: PhantomData<A>,
}

impl<A: Adjacency> Default for EventLog<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Adjacency> EventLog<A> {
    /// An empty log: nothing released, zero loss.
    pub fn new() -> Self {
        Self { entries: Vec::new(), private: true, relation: PhantomData }
    }

    /// Appends `count` releases of `event`; equal neighbours are merged.
    pub fn record(&mut self, event: DpEvent, count: u64) {
        if count == 0 {
            return;
        }
        match self.entries.last_mut() {
            Some((last, n)) if *last == event => *n = n.saturating_add(count),
            _ => self.entries.push((event, count)),
        }
    }

    /// Marks the run as drawn from a generator that is not secret. Irrevocable.
    pub fn mark_not_private(&mut self) {
        self.private = false;
    }

    /// Whether every release so far drew from a cryptographically secure, secretly seeded generator.
    pub fn is_private(&self) -> bool {
        self.private
    }

    /// The entries in order.
    pub fn entries(&self) -> &[(DpEvent, u64)] {
        &self.entries
    }

    /// The neighbouring relation.
    pub fn adjacency(&self) -> AdjacencyKind {
        A::KIND
    }

    /// The whole run as one event tree.
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
