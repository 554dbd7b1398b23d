//! The protected data of a private training: the neighbouring relation and the unit, as types and as a value for certificates.
//!
//! | type | neighbours differ in | everything else, public | relation, unit |
//! |---|---|---|---|
//! | [`Grades`] | the grades of one list | documents, features, lengths, number of lists | [`ChangeListLabels`], list |
//! | [`ListPresence`] | one list, whole or empty | number of lists | [`ZeroOut`], list |
//! | [`WholeList`] | one list and any other in its place | number of lists | [`ReplaceOne`], list |
//! | [`Document`] | features and grade of one document of one list | number of lists, lengths | [`ReplaceOne`], document |
//!
//! Logs of different relations cannot be combined:
//!
//! ```compile_fail,E0308
//! use dp_rank::train::{Grades, TrainedRanker, WholeList};
//! fn both(mut lists: TrainedRanker<WholeList>, grades: TrainedRanker<Grades>) {
//!     lists.log.record_all(grades.log);
//! }
//! ```
//! Logs of the same relation can:
//! ```
//! use dp_rank::train::{TrainedRanker, WholeList};
//! fn both(mut lists: TrainedRanker<WholeList>, more: TrainedRanker<WholeList>) {
//!     lists.log.record_all(more.log);
//! }
//! ```
//!
//! A secret number of lists ([`AddRemoveOne`](dp_accountant::AddRemoveOne)) is not supported: the sampling rate and the steps'
//! divisor are computed from it, as in dp-optim's recipes.

use core::fmt;

use dp_accountant::guarantee::Unit;
use dp_accountant::{Adjacency, AdjacencyKind, ChangeListLabels, ReplaceOne, ZeroOut};

mod sealed {
    pub trait Sealed {}
}

/// The protected data of a private training, as a type. Sealed: another type needs its own proof in this crate.
pub trait Protect: sealed::Sealed + Copy + fmt::Debug + Default + PartialEq + Send + Sync + 'static {
    /// The neighbouring relation.
    type Relation: Adjacency + PartialEq;
    /// The same as a value.
    const PROTECTED: Protected;
}

/// The protected data of a private training, as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Protected {
    /// See [`Grades`].
    #[default]
    Grades,
    /// See [`ListPresence`].
    ListPresence,
    /// See [`WholeList`].
    WholeList,
    /// See [`Document`].
    Document,
}

macro_rules! protects {
    ($(#[$doc:meta])* $name:ident, $relation:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name;
        impl sealed::Sealed for $name {}
        impl Protect for $name {
            type Relation = $relation;
            const PROTECTED: Protected = Protected::$name;
        }
    };
}

protects! {
    /// The grades of one list. Documents, their features, the lengths of lists and their number are public.
    Grades, ChangeListLabels
}
protects! {
    /// One list with its documents, features, grades and length is present, or replaced by an empty one that contributes 0 to any
    /// gradient. The number of lists is public.
    ListPresence, ZeroOut
}
protects! {
    /// One list with its documents, features, grades and length is replaced by any other. The number of lists is public.
    WholeList, ReplaceOne
}
protects! {
    /// One document of one list has any other features and grade. The number of lists and the lengths of all are public.
    ///
    /// # Privacy
    /// Data that differ in one document differ in one list, whatever is computed from all documents of a list together (its
    /// gradient, features mapped to `[0, 1]` within the list). So the guarantee of [`WholeList`] holds here with the same
    /// numbers. Clipping does not allow less noise: one document with large features can reverse the clipped gradient of its
    /// list.
    Document, ReplaceOne
}

impl Protected {
    /// Returns the neighbouring relation.
    pub fn adjacency(self) -> AdjacencyKind {
        match self {
            Self::Grades => AdjacencyKind::ChangeListLabels,
            Self::ListPresence => AdjacencyKind::ZeroOut,
            Self::WholeList | Self::Document => AdjacencyKind::ReplaceOne,
        }
    }

    /// Returns the unit of privacy.
    pub fn unit(self) -> Unit {
        match self {
            Self::Document => Unit::Document,
            Self::Grades | Self::ListPresence | Self::WholeList => Unit::List,
        }
    }

    /// Returns whether features are public, so that they may be used without noise.
    pub fn has_public_features(self) -> bool {
        self == Self::Grades
    }

    /// Returns whether the numbers of documents in lists are public.
    pub fn has_public_lengths(self) -> bool {
        matches!(self, Self::Grades | Self::Document)
    }

    /// Returns the distance of a list and its neighbour in a sum of lists clipped to norm 1: 2 for a replacement, 1 for presence.
    pub(super) fn lists_moved(self) -> f64 {
        if self == Self::ListPresence { 1.0 } else { 2.0 }
    }

    /// Describes the public data in words.
    pub(super) fn trusted(self) -> &'static str {
        match self {
            Self::Grades => {
                "documents, their features and the lengths of lists are public; one list holds all labels of one unit"
            }
            Self::ListPresence | Self::WholeList => {
                "the number of features and the largest grade were declared, not read off the lists; one list holds all of \
                 one unit"
            }
            Self::Document => {
                "the number of features and the largest grade were declared, not read off the lists; the lengths of lists are \
                 public; a document is in one list"
            }
        }
    }
}
