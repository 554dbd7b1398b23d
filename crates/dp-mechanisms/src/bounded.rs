//! Sensitive values that cannot be read, printed, compared, serialised or released twice.
//!
//! [`Secret::new`] and [`Bounded::with_proven_sensitivity`] wrap a private value; only a [`Mechanism`](crate::Mechanism) can
//! release it. There is deliberately no `map`: a closure can copy its argument to a variable of its caller, so a public `map`
//! would allow reading the value. Compute first, then wrap.

use core::fmt;

use dp_accountant::Adjacency;
use dp_accountant::certificate::Assumption;

use crate::sensitivity::{L2, Norm, Sensitivity};

/// A value that depends on private records and has not been released.
///
/// It cannot be read outside this crate. `Debug` prints `Secret(..)`, so that a struct that holds one may derive `Debug`.
///
/// # Examples
/// ```
/// let secret = dp_mechanisms::Secret::new(12);
/// assert_eq!(format!("{secret:?}"), "Secret(..)");
/// ```
/// None of these compile: display, comparison, reading, cloning, use as the value, serialisation.
/// ```compile_fail,E0277
/// println!("{}", dp_mechanisms::Secret::new(12));
/// ```
/// ```compile_fail,E0369
/// let same = dp_mechanisms::Secret::new(12) == dp_mechanisms::Secret::new(12);
/// ```
/// ```compile_fail,E0616
/// let value = dp_mechanisms::Secret::new(12).0;
/// ```
/// ```compile_fail,E0624
/// let value = dp_mechanisms::Secret::new(12).into_inner();
/// ```
/// ```compile_fail,E0599
/// let copy = dp_mechanisms::Secret::new(12).clone();
/// ```
/// ```compile_fail,E0614
/// let value = *dp_mechanisms::Secret::new(12);
/// ```
/// ```compile_fail,E0277
/// let text = serde_json::to_string(&dp_mechanisms::Secret::new(12));
/// ```
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a value permanently.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Claims that the value has this sensitivity; see [`Bounded::with_proven_sensitivity`].
    pub fn with_proven_sensitivity<A: Adjacency, N: Norm>(self, sensitivity: Sensitivity<N, A>) -> Bounded<T, A, N> {
        Bounded { value: self, sensitivity, assumptions: Vec::new() }
    }

    /// Opens the value. Only mechanisms may call this.
    pub(crate) fn into_inner(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A [`Secret`] together with a bound on its change between neighbouring data sets: the input of a mechanism.
///
/// `V` is the value (a vector of floats), `A` the neighbouring relation, `N` the norm of the bound. It is neither `Clone` nor
/// readable, and a mechanism takes it by value, so it can be released only once.
///
/// # Examples
/// ```
/// use dp_accountant::ZeroOut;
/// use dp_mechanisms::{Bounded, L2Sensitivity};
/// let sum = Bounded::with_proven_sensitivity(vec![3.0, 4.0], L2Sensitivity::<ZeroOut>::new(1.0)?);
/// assert_eq!(sum.sensitivity().get(), 1.0);
/// assert_eq!(format!("{sum:?}"), "Bounded(.., L2 sensitivity 1 under add-remove)");
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
/// Reading, comparing, serialising and releasing twice do not compile:
/// ```compile_fail,E0616
/// # use dp_mechanisms::Bounded; use dp_accountant::ZeroOut;
/// fn read(sum: Bounded<Vec<f64>, ZeroOut>) -> f64 {
///     sum.value.0[0]
/// }
/// ```
/// ```compile_fail,E0369
/// # use dp_mechanisms::Bounded; use dp_accountant::ZeroOut;
/// fn compare(one: Bounded<Vec<f64>, ZeroOut>, two: Bounded<Vec<f64>, ZeroOut>) -> bool {
///     one == two
/// }
/// ```
/// ```compile_fail,E0277
/// # use dp_mechanisms::Bounded; use dp_accountant::ZeroOut;
/// fn serialise(sum: Bounded<Vec<f64>, ZeroOut>) -> String {
///     serde_json::to_string(&sum).unwrap_or_default()
/// }
/// ```
/// ```compile_fail,E0382
/// # use dp_mechanisms::{*, rng::OsSeeded}; use dp_accountant::{EventLog, ZeroOut};
/// fn twice(sum: Bounded<Vec<f64>, ZeroOut>, log: &mut EventLog<ZeroOut>, noise: Gaussian<ZeroOut>, mut rng: OsSeeded) {
///     let first = noise.release(sum, log, &mut rng);
///     let second = noise.release(sum, log, &mut rng); // `sum` was moved
/// }
/// ```
/// A value bounded under one relation is not accepted by a mechanism or recorded in a log of another:
/// ```compile_fail,E0308
/// # use dp_mechanisms::{*, rng::OsSeeded}; use dp_accountant::{EventLog, ReplaceOne, ZeroOut};
/// fn mix(sum: Bounded<Vec<f64>, ZeroOut>, log: &mut EventLog<ReplaceOne>, noise: Gaussian<ZeroOut>, mut rng: OsSeeded) {
///     let released = noise.release(sum, log, &mut rng);
/// }
/// ```
/// ```compile_fail,E0308
/// # use dp_mechanisms::{*, rng::OsSeeded}; use dp_accountant::{EventLog, ReplaceOne, ZeroOut};
/// fn mix(sum: Bounded<Vec<f64>, ReplaceOne>, log: &mut EventLog<ZeroOut>, noise: Gaussian<ZeroOut>, mut rng: OsSeeded) {
///     let released = noise.release(sum, log, &mut rng);
/// }
/// ```
/// A bound in one norm is not accepted as a bound in another:
/// ```compile_fail,E0308
/// # use dp_mechanisms::{*, rng::OsSeeded}; use dp_accountant::{EventLog, ZeroOut};
/// fn norms(sum: Bounded<Vec<f64>, ZeroOut, LInf>, log: &mut EventLog<ZeroOut>, noise: Gaussian<ZeroOut>, mut rng: OsSeeded) {
///     let released = noise.release(sum, log, &mut rng);
/// }
/// ```
pub struct Bounded<V, A: Adjacency, N: Norm = L2> {
    value: Secret<V>,
    sensitivity: Sensitivity<N, A>,
    assumptions: Vec<Assumption>,
}

impl<V, A: Adjacency, N: Norm> Bounded<V, A, N> {
    /// Claims that `value` has this sensitivity.
    ///
    /// This is the one place where a sensitivity is asserted and not enforced: the caller must have a proof, and a reviewer can
    /// find every such claim by this name.
    ///
    /// # Privacy
    /// The proof must be about the value as computed in floating point: `‖value(D) - value(D')‖ <= sensitivity` for all
    /// neighbours `D`, `D'` under `A`, including rounding.
    pub fn with_proven_sensitivity(value: V, sensitivity: Sensitivity<N, A>) -> Self {
        Self { value: Secret::new(value), sensitivity, assumptions: Vec::new() }
    }

    /// Adds an assumption of the sensitivity that only the caller can vouch for. The release of the value adds it to its log, and
    /// a certificate lists it.
    pub fn assuming(mut self, assumption: Assumption) -> Self {
        self.assumptions.push(assumption);
        self
    }

    /// Returns the bound, which is public.
    pub fn sensitivity(&self) -> Sensitivity<N, A> {
        self.sensitivity
    }

    /// Opens the value, with the assumptions of its sensitivity. Only mechanisms may call this.
    pub(crate) fn open(self) -> (V, Vec<Assumption>) {
        (self.value.into_inner(), self.assumptions)
    }
}

impl<F, A: Adjacency> Bounded<Vec<F>, A> {
    /// Concatenates this vector and another, with a claimed sensitivity of both together.
    ///
    /// `√(Δ₁² + Δ₂²)` always holds; a smaller number needs a proof that no record attains both bounds.
    ///
    /// # Privacy
    /// This is a claim like [`with_proven_sensitivity`](Self::with_proven_sensitivity). The assumptions of both parts are kept.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::ZeroOut;
    /// use dp_mechanisms::{Bounded, L2Sensitivity};
    /// let part = |value, most| Ok::<_, dp_mechanisms::Error>(Bounded::with_proven_sensitivity(
    ///     vec![value], L2Sensitivity::<ZeroOut>::new(most)?));
    /// let both = part(1.0, 3.0)?.followed_by_with_proven_sensitivity(part(2.0, 4.0)?, L2Sensitivity::new(5.0)?);
    /// assert_eq!(both.sensitivity().get(), 5.0);
    /// # Ok::<(), dp_mechanisms::Error>(())
    /// ```
    pub fn followed_by_with_proven_sensitivity(self, other: Self, sensitivity: Sensitivity<L2, A>) -> Self {
        let (mut value, mut assumptions) = self.open();
        let (rest, more) = other.open();
        value.extend(rest);
        assumptions.extend(more);
        Self { value: Secret::new(value), sensitivity, assumptions }
    }
}

impl<V, A: Adjacency, N: Norm> fmt::Debug for Bounded<V, A, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bounded(.., {:?})", self.sensitivity)
    }
}
