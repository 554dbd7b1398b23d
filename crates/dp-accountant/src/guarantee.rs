//! An (epsilon, delta) guarantee under a neighbouring relation and for a unit of privacy, and its consequences.
//!
//! A guarantee under one relation implies one under another only by a theorem. Each theorem has its own function:
//!
//! | from | to | reason | function |
//! |---|---|---|---|
//! | add/remove | replace-one | a replacement is a removal and an addition | [`replace_one`](Guarantee::replace_one) |
//! | zero-out | replace-one | the old record replaced by the null record, and this by the new record | [`replace_one`](Guarantee::replace_one) |
//! | add/remove | zero-out | a replacement by the null record | [`zero_out`](Guarantee::zero_out) |
//! | add/remove, zero-out | each other | the mechanism ignores null records | [`zero_out_ignoring_null`](Guarantee::zero_out_ignoring_null), [`add_remove_ignoring_null`](Guarantee::add_remove_ignoring_null) |
//! | one record | a group of k | a path of k neighbours | [`for_group`](Guarantee::for_group) |
//!
//! No conversion leads from replace-one to add/remove: under replace-one the number of records is unprotected and may even be
//! published. A conversion without a function does not compile:
//!
//! ```compile_fail,E0599
//! use dp_accountant::{Delta, Epsilon, Guarantee, ReplaceOne};
//! let wrong = Guarantee::<ReplaceOne>::new(Epsilon::new(1.0)?, Delta::ZERO).zero_out();
//! # Ok::<(), dp_accountant::Error>(())
//! ```
//!
//! ```compile_fail,E0599
//! use dp_accountant::{ChangeListLabels, Delta, Epsilon, Guarantee};
//! let wrong = Guarantee::<ChangeListLabels>::new(Epsilon::new(1.0)?, Delta::ZERO).replace_one();
//! # Ok::<(), dp_accountant::Error>(())
//! ```
//!
//! ```compile_fail,E0308
//! use dp_accountant::{AddRemoveOne, Delta, Epsilon, Guarantee, ZeroOut};
//! let wrong: Guarantee<ZeroOut> = Guarantee::<AddRemoveOne>::new(Epsilon::new(1.0)?, Delta::ZERO);
//! # Ok::<(), dp_accountant::Error>(())
//! ```

use core::fmt;
use core::marker::PhantomData;

use crate::adjacency::{AddRemoveOne, Adjacency, AdjacencyKind, ReplaceOne, ZeroOut};
use crate::error::Error;
use crate::params::{Delta, Epsilon};
use crate::rounding::{count_up, mul_up};

/// The unit of privacy: one row of the table, one list of a ranker or one of its documents, all rows of one user.
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
    /// One document of one list of a ranking data set.
    Document,
    /// All records that share a value in the named column.
    Column(String),
    /// Any `size` units at once.
    Group {
        /// Number of units.
        size: u64,
        /// The unit.
        of: Box<Unit>,
    },
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record => f.write_str("record"),
            Self::List => f.write_str("list"),
            Self::Document => f.write_str("document"),
            Self::Column(name) => write!(f, "all records of one {name}"),
            Self::Group { size, of } => write!(f, "any {size} of: {of}"),
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

    /// Sets the unit of privacy.
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

    /// Returns the unit of privacy.
    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    /// Returns the neighbouring relation.
    pub fn adjacency(&self) -> AdjacencyKind {
        A::KIND
    }
}

impl<A: Adjacency> Guarantee<A> {
    /// Returns the guarantee for `size` units at once.
    ///
    /// # Formula
    /// ```text
    /// (k epsilon, delta (e^(k epsilon) - 1)/(e^epsilon - 1)),   k = size,
    /// ```
    /// by a path of k neighbours: `P_0(S) <= e^epsilon P_1(S) + delta <= ...`.
    ///
    /// # Errors
    /// `size` = 0, or a delta or epsilon that leaves its range: there is no guarantee then.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{Delta, Epsilon, Guarantee, ReplaceOne};
    /// let one = Guarantee::<ReplaceOne>::new(Epsilon::new(0.5)?, Delta::new(1e-6)?);
    /// let three = one.for_group(3)?;
    /// assert_eq!(three.epsilon().get(), 1.5);
    /// assert!((three.delta().get() / 1e-6 - (1.0 + 0.5f64.exp() + 1f64.exp())).abs() < 1e-12);
    /// # Ok::<(), dp_accountant::Error>(())
    /// ```
    ///
    /// # References
    /// Vadhan 2017, "The complexity of differential privacy", Lemma 2.2.
    pub fn for_group(self, size: u64) -> Result<Self, Error> {
        match size {
            0 => Err(Error::NotPositive { name: "size", value: 0.0 }),
            1 => Ok(self),
            _ => {
                let (epsilon, delta) = group(self.epsilon, self.delta, size)?;
                Ok(Self { epsilon, delta, unit: Unit::Group { size, of: Box::new(self.unit) }, relation: PhantomData })
            }
        }
    }

    /// Returns the same numbers for the same unit under `B`; the caller has a theorem for this.
    fn read_under<B: Adjacency>(self) -> Guarantee<B> {
        Guarantee { epsilon: self.epsilon, delta: self.delta, unit: self.unit, relation: PhantomData }
    }

    /// Returns the guarantee for a group of two under `A` as one for a single change under `B`.
    fn in_two_steps<B: Adjacency>(self) -> Result<Guarantee<B>, Error> {
        let (epsilon, delta) = group(self.epsilon, self.delta, 2)?;
        Ok(Guarantee { epsilon, delta, unit: self.unit, relation: PhantomData })
    }
}

impl Guarantee<AddRemoveOne> {
    /// Returns the guarantee for the replacement of a record by any other: a removal and an addition.
    ///
    /// # Formula
    /// ```text
    /// (2 epsilon, (1 + e^epsilon) delta)
    /// ```
    ///
    /// # Errors
    /// A delta that reaches 1: there is no guarantee then.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{AddRemoveOne, Delta, Epsilon, Guarantee, ReplaceOne};
    /// let guarantee = Guarantee::<AddRemoveOne>::new(Epsilon::new(1.0)?, Delta::new(1e-6)?);
    /// let replaced: Guarantee<ReplaceOne> = guarantee.replace_one()?;
    /// assert_eq!(replaced.epsilon().get(), 2.0);
    /// assert!((replaced.delta().get() - (1.0 + 1f64.exp()) * 1e-6).abs() < 1e-17);
    /// # Ok::<(), dp_accountant::Error>(())
    /// ```
    ///
    /// # References
    /// Vadhan 2017, "The complexity of differential privacy", Lemma 2.2, for a group of two.
    pub fn replace_one(self) -> Result<Guarantee<ReplaceOne>, Error> {
        self.in_two_steps()
    }

    /// Returns the guarantee for the replacement of a record by the null record, for any treatment of null records by the
    /// mechanism: as [`replace_one`](Self::replace_one), by a removal and the addition of a null record.
    ///
    /// # Errors
    /// A delta that reaches 1: there is no guarantee then.
    pub fn zero_out(self) -> Result<Guarantee<ZeroOut>, Error> {
        self.in_two_steps()
    }

    /// Returns the same numbers under zero-out, for a mechanism that ignores null records and uses the number of records only as
    /// a public constant: replacing a record by the null record is then equivalent to removing it.
    ///
    /// # Privacy
    /// The caller declares both properties; neither follows from the numbers.
    pub fn zero_out_ignoring_null(self) -> Guarantee<ZeroOut> {
        self.read_under()
    }
}

impl Guarantee<ZeroOut> {
    /// Returns the guarantee for the replacement of a record by any other: the record is replaced by the null record, and this
    /// by the other.
    ///
    /// # Formula
    /// ```text
    /// (2 epsilon, (1 + e^epsilon) delta)
    /// ```
    ///
    /// # Errors
    /// A delta that reaches 1: there is no guarantee then.
    ///
    /// # References
    /// Vadhan 2017, "The complexity of differential privacy", Lemma 2.2, for a group of two.
    pub fn replace_one(self) -> Result<Guarantee<ReplaceOne>, Error> {
        self.in_two_steps()
    }

    /// Returns the same numbers under add/remove, for a mechanism that ignores null records and uses the number of records only
    /// as a public constant, which does not change when a record is added or removed.
    ///
    /// # Privacy
    /// The caller declares both properties; neither follows from the numbers.
    pub fn add_remove_ignoring_null(self) -> Guarantee<AddRemoveOne> {
        self.read_under()
    }
}

/// Returns `(size epsilon, delta (1 + e^epsilon + ... + e^((size - 1) epsilon)))`, rounded up.
fn group(epsilon: Epsilon, delta: Delta, size: u64) -> Result<(Epsilon, Delta), Error> {
    let total = mul_up(count_up(size), epsilon.get());
    let total_delta = if delta.get() == 0.0 {
        0.0
    } else {
        // Rounded up beyond the errors of the two exponentials; NaN, from infinities, becomes infinite.
        let factor = total.exp_m1() / epsilon.get().exp_m1() * (1.0 + 8.0 * f64::EPSILON * (1.0 + total));
        let factor = if factor.is_nan() { f64::INFINITY } else { factor };
        mul_up(factor, delta.get())
    };
    Ok((Epsilon::new(total)?, Delta::new(total_delta)?))
}

impl<A: Adjacency> fmt::Display for Guarantee<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = if A::KIND == AdjacencyKind::AddRemoveOne { " (number of records secret)" } else { "" };
        write!(f, "({}, {})-DP, {}{n}, unit: {}", self.epsilon, self.delta, A::KIND, self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guarantee<A: Adjacency>(epsilon: f64, delta: f64) -> Guarantee<A> {
        Guarantee::new(Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap())
    }

    /// Randomised response on the sum of two records' bits saturates the pure part.
    #[test]
    fn groups_add_up_step_by_step() {
        let two = guarantee::<ReplaceOne>(0.7, 1e-5).for_group(2).unwrap();
        let four = two.clone().for_group(2).unwrap();
        let direct = guarantee::<ReplaceOne>(0.7, 1e-5).for_group(4).unwrap();
        assert!((four.epsilon().get() / direct.epsilon().get() - 1.0).abs() < 1e-14);
        assert!((four.delta().get() / direct.delta().get() - 1.0).abs() < 1e-13);
        assert_eq!(direct.unit().to_string(), "any 4 of: record");
        let one = guarantee::<ReplaceOne>(0.7, 1e-5);
        assert_eq!(one.clone().for_group(1).unwrap(), one);
    }

    #[test]
    fn a_group_statement_bounds_the_exact_curve_of_scaled_noise() {
        // Gaussian noise protects a group of k records like one record of k times the sensitivity.
        for (mu, epsilon, size) in [(0.1, 0.2, 3u64), (0.5, 1.0, 2), (0.02, 0.01, 10)] {
            let delta = crate::gaussian::delta(mu, epsilon).unwrap();
            let group = guarantee::<AddRemoveOne>(epsilon, delta).for_group(size).unwrap();
            let exact = crate::gaussian::delta(mu * size as f64, group.epsilon().get()).unwrap();
            assert!(exact <= group.delta().get(), "{mu} {epsilon} {size}: {exact} {group}");
        }
    }

    #[test]
    fn relations_change_by_named_theorems_only() {
        let replaced = guarantee::<ZeroOut>(1.0, 0.0).replace_one().unwrap();
        assert_eq!((replaced.epsilon().get(), replaced.delta().get()), (2.0, 0.0));
        assert_eq!(replaced.adjacency(), AdjacencyKind::ReplaceOne);
        let zeroed = guarantee::<AddRemoveOne>(1.0, 1e-6).zero_out().unwrap();
        assert_eq!(zeroed.epsilon().get(), 2.0);
        let ignoring = guarantee::<AddRemoveOne>(1.0, 1e-6).with_unit(Unit::List).zero_out_ignoring_null();
        assert_eq!((ignoring.epsilon().get(), ignoring.unit()), (1.0, &Unit::List));
        assert_eq!(ignoring.add_remove_ignoring_null().adjacency(), AdjacencyKind::AddRemoveOne);
    }

    #[test]
    fn what_says_nothing_is_refused() {
        assert!(guarantee::<AddRemoveOne>(10.0, 0.01).replace_one().is_err());
        assert!(guarantee::<ReplaceOne>(1.0, 1e-6).for_group(0).is_err());
        assert!(guarantee::<ReplaceOne>(1.0, 1e-6).for_group(u64::MAX).is_err());
        assert!(guarantee::<ReplaceOne>(1.0, 0.0).for_group(u64::MAX).is_ok());
        assert!(guarantee::<ReplaceOne>(1e300, 0.0).for_group(u64::MAX).is_err());
    }
}
