//! Sets of neighbouring relations under which a theorem holds.

use core::fmt;

use crate::adjacency::AdjacencyKind;
use crate::error::Error;

/// A set of neighbouring relations.
///
/// # Examples
/// ```
/// use dp_accountant::{AdjacencyKind, DpEvent};
/// let step = DpEvent::PoissonSampled {
///     sampling_rate: 0.01,
///     event: Box::new(DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 }),
/// };
/// let relations = step.relations()?;
/// assert!(relations.contains(AdjacencyKind::AddRemoveOne) && !relations.contains(AdjacencyKind::ReplaceOne));
/// # Ok::<(), dp_accountant::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Relations(u8);

const KINDS: [AdjacencyKind; 4] =
    [AdjacencyKind::AddRemoveOne, AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne, AdjacencyKind::ChangeListLabels];

impl Relations {
    /// Every relation: for a theorem on any pair of inputs within a sensitivity.
    pub const ANY: Self = Self(0b1111);
    /// A record present or absent.
    pub const ADD_REMOVE: Self = Self(0b0011);
    /// A record changed, in place, to any other.
    pub const REPLACE_ONE: Self = Self(0b0100);
    /// Something changed in place: a record, or a list's labels.
    pub const IN_PLACE: Self = Self(0b1100);
    /// Something changed in place, or a record replaced by a null record: the number of records is public.
    pub const PUBLIC_COUNT: Self = Self(0b1110);

    /// Returns whether the set contains `kind`.
    pub const fn contains(self, kind: AdjacencyKind) -> bool {
        self.0 & Self::bit(kind) != 0
    }

    /// Returns the relations in both sets.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    const fn bit(kind: AdjacencyKind) -> u8 {
        match kind {
            AdjacencyKind::AddRemoveOne => 1,
            AdjacencyKind::ZeroOut => 2,
            AdjacencyKind::ReplaceOne => 4,
            AdjacencyKind::ChangeListLabels => 8,
        }
    }
}

impl fmt::Display for Relations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = "";
        for kind in KINDS.into_iter().filter(|kind| self.contains(*kind)) {
            if kind.as_str() != last {
                f.write_str(if last.is_empty() { "" } else { " or " })?;
                last = kind.as_str();
                f.write_str(last)?;
                if kind == AdjacencyKind::ZeroOut {
                    f.write_str(" with a null record")?;
                }
            }
        }
        f.write_str(if last.is_empty() { "no relation" } else { "" })
    }
}

/// A set of relations, narrowed event by event, with the events that narrowed it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Narrowed {
    pub(crate) relations: Relations,
    by: &'static str,
}

impl Narrowed {
    pub(crate) const ANY: Self = Self { relations: Relations::ANY, by: "" };

    /// Creates the set of relations under which `event` holds.
    pub(crate) const fn new(relations: Relations, event: &'static str) -> Self {
        Self { relations, by: event }
    }

    /// Refuses a set that contains none of `relations`.
    pub(crate) fn require_some_of(self, relations: Relations) -> Result<(), Error> {
        let mut narrowed = self;
        narrowed.join(Self { relations, by: "the event around it" })
    }

    /// Narrows the set to the relations under which another part of the tree holds.
    pub(crate) fn join(&mut self, other: Self) -> Result<(), Error> {
        let both = self.relations.and(other.relations);
        if both.is_empty() {
            return Err(Error::RelationsConflict {
                left: self.by,
                left_holds_under: self.relations,
                right: other.by,
                right_holds_under: other.relations,
            });
        }
        if both != self.relations {
            self.by = other.by;
        }
        self.relations = both;
        Ok(())
    }

    /// Refuses a relation that is not in the set.
    pub(crate) fn check(self, kind: AdjacencyKind) -> Result<(), Error> {
        if self.relations.contains(kind) {
            return Ok(());
        }
        Err(Error::NotUnderRelation { event: self.by, holds_under: self.relations, found: kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_membership() {
        assert_eq!(Relations::ADD_REMOVE.to_string(), "add-remove");
        assert_eq!(Relations::IN_PLACE.to_string(), "replace-one or change-list-labels");
        let public_count = Relations::PUBLIC_COUNT.to_string();
        assert_eq!(public_count, "add-remove with a null record or replace-one or change-list-labels");
        assert_eq!(Relations::ADD_REMOVE.and(Relations::REPLACE_ONE).to_string(), "no relation");
        for kind in KINDS {
            assert!(Relations::ANY.contains(kind));
            assert_eq!(Relations::ADD_REMOVE.contains(kind), kind.as_str() == "add-remove");
        }
    }

    #[test]
    fn the_event_that_narrowed_is_named() {
        let mut narrowed = Narrowed::ANY;
        narrowed.join(Narrowed::new(Relations::ANY, "gaussian")).unwrap();
        narrowed.join(Narrowed::new(Relations::ADD_REMOVE, "poisson-sampled")).unwrap();
        let refused = narrowed.check(AdjacencyKind::ReplaceOne).unwrap_err();
        assert_eq!(refused.to_string(), "poisson-sampled holds under add-remove, not under replace-one");
        let conflict = narrowed.join(Narrowed::new(Relations::REPLACE_ONE, "shuffled")).unwrap_err().to_string();
        assert!(conflict.contains("poisson-sampled") && conflict.contains("shuffled"), "{conflict}");
    }
}
