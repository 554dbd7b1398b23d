//! An (epsilon, delta) statement under a neighbouring relation and a unit of privacy.

use core::fmt;
use core::marker::PhantomData;

use crate::adjacency::{Adjacency, AdjacencyKind};
use crate::params::{Delta, Epsilon};

/// Whose presence or values are protected: one row of the table, one list of a ranker, all rows of one user.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Unit {
    /// One record (row, example).
    #[default]
    Record,
    /// One list of a ranking data set.
    List,
    /// All records that share a value in the named column.
    Column(String),
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record => f.write_str("record"),
            Self::List => f.write_str("list"),
            Self::Column(name) => write!(f, "all records with one value of {name}"),
        }
    }
}

/// `(epsilon, delta)`-differential privacy under the relation `A`.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, Guarantee, ReplaceOne};
/// let guarantee = Guarantee::<ReplaceOne>::new(Epsilon::new(0.5)?, Delta::new(1e-6)?);
/// assert_eq!(guarantee.to_string(), "(0.5, 1e-6)-DP, replace-one, unit: record");
/// # Ok::<(), dp_accountant::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Guarantee<A: Adjacency> {
    epsilon: Epsilon,
    delta: Delta,
    unit: Unit,
    relation: PhantomData<A>,
}

impl<A: Adjacency> Guarantee<A> {
    /// States a guarantee for one record.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Self {
        Self { epsilon, delta, unit: Unit::Record, relation: PhantomData }
    }

    /// The same for another unit of privacy.
    pub fn with_unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// Epsilon.
    pub fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// Delta.
    pub fn delta(&self) -> Delta {
        self.delta
    }

    /// The unit of privacy.
    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    /// The neighbouring relation.
    pub fn adjacency(&self) -> AdjacencyKind {
        A::KIND
    }
}

impl<A: Adjacency> fmt::Display for Guarantee<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = if A::KIND == AdjacencyKind::AddRemoveOne { " (number of records secret)" } else { "" };
        write!(f, "({}, {})-DP, {}{n}, unit: {}", self.epsilon, self.delta, A::KIND, self.unit)
    }
}
