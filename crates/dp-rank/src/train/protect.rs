//! What a private training protects: the neighbouring relation and the unit, as types and as a value for certificates.
//!
//! | type | neighbours differ in | everything else, public | relation, unit |
//! |---|---|---|---|
//! | [`Grades`] | the grades of one list | documents, features, lengths, number of lists | [`ChangeListLabels`], list |
//! | [`ListPresence`] | one list, whole or empty | number of lists | [`ZeroOut`], list |
//! | [`WholeList`] | one list and any other in its place | number of lists | [`ReplaceOne`], list |
//! | [`Document`] | features and grade of one document of one list | number of lists, lengths | [`ReplaceOne`], document |
//!
//! A log of one relation takes no event of another:
//!
//! ```compile_fail,E0308
//! use dp_rank::train::{Grades, TrainedRanker, WholeList};
//! fn both(mut lists: TrainedRanker<WholeList>, grades: TrainedRanker<Grades>) {
//!     lists.log.record_all(grades.log);
//! }
//! ```
//! where two of one relation do:
//! ```
//! use dp_rank::train::{TrainedRanker, WholeList};
//! fn both(mut lists: TrainedRanker<WholeList>, more: TrainedRanker<WholeList>) {
//!     lists.log.record_all(more.log);
//! }
//! ```
//!
//! A secret number of lists ([`AddRemoveOne`](dp_accountant::AddRemoveOne)) is not served: the sampling rate and what a
//! step divides by are computed from it, as in dp-optim's recipes.

use core::fmt;

use dp_accountant::guarantee::Unit;
use dp_accountant::{Adjacency, AdjacencyKind, ChangeListLabels, ReplaceOne, ZeroOut};

mod sealed {
    pub trait Sealed {}
}

/// What a private training protects, as a type. Sealed: another needs its own proof, which lives here.
pub trait Protect: sealed::Sealed + Copy + fmt::Debug + Default + PartialEq + Send + Sync + 'static {
    /// Which data count as neighbours.
    type Relation: Adjacency + PartialEq;
    /// The same as a value.
    const PROTECTED: Protected;
}

/// What a private training protects, as a value.
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
    /// One list with its documents, features, grades and length is there, or an empty one in its place that adds nothing to
    /// any gradient. The number of lists is public.
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
    /// A list with a changed document is another list: data that differ in one document differ in one list, whatever is
    /// computed from all documents of a list together (its gradient, features mapped to `[0, 1]` within the list). So what
    /// holds for [`WholeList`] holds here with the same numbers. A smaller price is not to be had from clipping: one
    /// document with large features can turn the clipped gradient of its list round.
    Document, ReplaceOne
}

impl Protected {
    /// Which data count as neighbours.
    pub fn adjacency(self) -> AdjacencyKind {
        match self {
            Self::Grades => AdjacencyKind::ChangeListLabels,
            Self::ListPresence => AdjacencyKind::ZeroOut,
            Self::WholeList | Self::Document => AdjacencyKind::ReplaceOne,
        }
    }

    /// The unit of privacy.
    pub fn unit(self) -> Unit {
        match self {
            Self::Document => Unit::Document,
            Self::Grades | Self::ListPresence | Self::WholeList => Unit::List,
        }
    }

    /// Whether features are public, so that something may be computed from them without noise.
    pub fn has_public_features(self) -> bool {
        self == Self::Grades
    }

    /// Whether the numbers of documents in lists are public.
    pub fn has_public_lengths(self) -> bool {
        matches!(self, Self::Grades | Self::Document)
    }

    /// How far apart a list and its neighbour are in a sum of lists clipped to norm 1: two of them, or one and nothing.
    pub(super) fn lists_moved(self) -> f64 {
        if self == Self::ListPresence { 1.0 } else { 2.0 }
    }

    /// What is public, in words.
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
