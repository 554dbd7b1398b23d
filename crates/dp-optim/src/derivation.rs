//! How a release followed from public parameters, for every recipe of this crate: what a certificate carries.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent};

use crate::error::Error;
use crate::recipes::bolt_on::BoltOnDerivation;
use crate::recipes::non_private::NonPrivateDerivation;

/// A recipe of this crate with its public parameters, able to recompute the event of its release.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Derivation {
    /// [`recipes::bolt_on`](crate::recipes::bolt_on).
    BoltOn(BoltOnDerivation),
    /// [`recipes::non_private`](crate::recipes::non_private): no guarantee.
    NonPrivate(NonPrivateDerivation),
}

impl Derives for Derivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        match self {
            Self::BoltOn(derivation) => derivation.event(),
            Self::NonPrivate(_) => Ok(DpEvent::NonPrivate),
        }
    }

    fn adjacency(&self) -> AdjacencyKind {
        match self {
            Self::BoltOn(derivation) => derivation.adjacency(),
            Self::NonPrivate(_) => AdjacencyKind::ReplaceOne,
        }
    }

    fn assumptions(&self) -> Vec<Assumption> {
        match self {
            Self::BoltOn(derivation) => derivation.assumptions(),
            Self::NonPrivate(_) => Vec::new(),
        }
    }
}
