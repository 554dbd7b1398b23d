//! Neighbouring relations, as types and as a run-time value for files and command lines.
//!
//! A privacy guarantee holds for pairs of *neighbouring* data sets, and the relation is part of the guarantee. Each relation is a
//! zero-sized type here, so that composing guarantees under different relations does not compile. [`AdjacencyKind`] is the
//! corresponding run-time value for certificates and flags.
//!
//! ```compile_fail,E0308
//! use dp_accountant::{Delta, Epsilon, Guarantee, ReplaceOne, ZeroOut};
//! let guarantee: Guarantee<ReplaceOne> = Guarantee::<ZeroOut>::new(Epsilon::new(1.0)?, Delta::ZERO);
//! # Ok::<(), dp_accountant::Error>(())
//! ```
//!
//! | type | neighbours | number of records | typical sensitivity of a sum of vectors of norm at most C |
//! |---|---|---|---|
//! | [`AddRemoveOne`] | one record more or fewer | secret | C |
//! | [`ZeroOut`] | one record replaced by a null record | public | C |
//! | [`ReplaceOne`] | one record changed to any other | public | 2C |
//! | [`ChangeListLabels`] | the labels of one list changed | public | depends on the loss |

use core::fmt;

mod sealed {
    pub trait Sealed {}
}

/// A neighbouring relation. Sealed: a new relation needs its own theorems, which live in this workspace.
pub trait Adjacency: sealed::Sealed + Copy + fmt::Debug + Send + Sync + 'static {
    /// The relation as a value.
    const KIND: AdjacencyKind;
}

macro_rules! relation {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name;
        impl sealed::Sealed for $name {}
        impl Adjacency for $name {
            const KIND: AdjacencyKind = AdjacencyKind::$name;
        }
    };
}

relation! {
    /// One record is added or removed; the number of records is secret. `add-remove` with `n_public = false`.
    AddRemoveOne
}
relation! {
    /// One record is replaced by a null record that contributes nothing; the number of records is public.
    /// `add-remove` with `n_public = true`.
    ZeroOut
}
relation! {
    /// One record is replaced by any other; the number of records is public. `replace-one`.
    ReplaceOne
}
relation! {
    /// The relevance labels of one list (query, session) change; documents, features and the number of lists are
    /// public. `change-list-labels`.
    ChangeListLabels
}

/// A neighbouring relation as a run-time value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "AdjacencyRecord", into = "AdjacencyRecord"))]
pub enum AdjacencyKind {
    /// See [`AddRemoveOne`].
    AddRemoveOne,
    /// See [`ZeroOut`].
    ZeroOut,
    /// See [`ReplaceOne`].
    ReplaceOne,
    /// See [`ChangeListLabels`].
    ChangeListLabels,
}

impl AdjacencyKind {
    /// Returns the word for the relation on command lines, in JSON and in certificates. [`AddRemoveOne`] and [`ZeroOut`] share
    /// `add-remove`; [`n_public`](Self::n_public) distinguishes them.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AddRemoveOne | Self::ZeroOut => "add-remove",
            Self::ReplaceOne => "replace-one",
            Self::ChangeListLabels => "change-list-labels",
        }
    }

    /// Returns whether the number of records is public under this relation.
    pub const fn n_public(self) -> bool {
        !matches!(self, Self::AddRemoveOne)
    }

    /// Returns the relation for a word and a flag, or `None` if no relation matches the pair.
    pub fn from_words(word: &str, n_public: bool) -> Option<Self> {
        match (word, n_public) {
            ("add-remove", false) => Some(Self::AddRemoveOne),
            ("add-remove", true) => Some(Self::ZeroOut),
            ("replace-one", true) => Some(Self::ReplaceOne),
            ("change-list-labels", true) => Some(Self::ChangeListLabels),
            _ => None,
        }
    }
}

impl fmt::Display for AdjacencyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The serialised form: `{"adjacency": "add-remove", "n_public": true}`.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct AdjacencyRecord {
    adjacency: String,
    n_public: bool,
}

#[cfg(feature = "serde")]
impl From<AdjacencyKind> for AdjacencyRecord {
    fn from(kind: AdjacencyKind) -> Self {
        Self { adjacency: kind.as_str().to_owned(), n_public: kind.n_public() }
    }
}

#[cfg(feature = "serde")]
impl TryFrom<AdjacencyRecord> for AdjacencyKind {
    type Error = String;
    fn try_from(record: AdjacencyRecord) -> Result<Self, String> {
        Self::from_words(&record.adjacency, record.n_public).ok_or_else(|| {
            format!("unknown neighbouring relation {:?} with n_public = {}", record.adjacency, record.n_public)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [AdjacencyKind; 4] = [
        AdjacencyKind::AddRemoveOne,
        AdjacencyKind::ZeroOut,
        AdjacencyKind::ReplaceOne,
        AdjacencyKind::ChangeListLabels,
    ];

    #[test]
    fn words_round_trip_and_nonsense_is_refused() {
        for kind in KINDS {
            assert_eq!(AdjacencyKind::from_words(kind.as_str(), kind.n_public()), Some(kind));
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(serde_json::from_str::<AdjacencyKind>(&json).unwrap(), kind);
        }
        for (word, n_public) in [("replace-one", false), ("add_remove", true), ("", true)] {
            assert_eq!(AdjacencyKind::from_words(word, n_public), None);
        }
        let secret_n = r#"{"adjacency":"change-list-labels","n_public":false}"#;
        assert!(serde_json::from_str::<AdjacencyKind>(secret_n).is_err());
    }

    #[test]
    fn types_and_values_agree() {
        assert_eq!(AddRemoveOne::KIND, KINDS[0]);
        assert_eq!(ZeroOut::KIND, KINDS[1]);
        assert_eq!(ReplaceOne::KIND, KINDS[2]);
        assert_eq!(ChangeListLabels::KIND, KINDS[3]);
    }
}
