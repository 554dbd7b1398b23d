//! Sensitive values that cannot be read, printed, compared, serialised or released twice.
//!
//! A private value goes in by [`Secret::new`] or [`Bounded::with_proven_sensitivity`] and comes out of a
//! [`Mechanism`](crate::Mechanism) alone. There is deliberately no `map`: a closure can copy its argument to a variable
//! of its caller, so a public `map` would be a way to read under another name. Compute first, then wrap.

use core::fmt;

use dp_accountant::Adjacency;
use dp_accountant::certificate::Assumption;

use crate::sensitivity::{L2, Norm, Sensitivity};

/// A value that depends on private records and has not been released.
///
/// There is no way to read it outside this crate; `Debug` prints `Secret(..)`, so that a struct that holds one may
/// derive `Debug`.
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
    /// Wraps a value, for good.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Claims that the value has this sensitivity; see [`Bounded::with_proven_sensitivity`].
    pub fn with_proven_sensitivity<A: Adjacency, N: Norm>(self, sensitivity: Sensitivity<N, A>) -> Bounded<T, A, N> {
        Bounded { value: self, sensitivity, assumptions: Vec::new() }
    }

    /// Only mechanisms may open it.
    pub(crate) fn into_inner(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A [`Secret`] together with a bound on how far neighbouring data sets can move it: what a mechanism takes.
///
/// `V` is the value (a vector of floats), `A` the neighbouring relation, `N` the norm of the bound. It is neither
/// `Clone` nor readable, and a mechanism takes it by value, so it can be released once.
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
/// A value bounded under one relation is not taken by a mechanism, or recorded in a log, of another:
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
/// Nor is a bound in one norm taken for a bound in another:
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
    /// This is the one place where a sensitivity is asserted rather than enforced: the caller must have a proof, and
    /// a reviewer can find every such claim by this name.
    ///
    /// # Privacy
    /// The proof is about the value as computed in floating point: `‖value(D) - value(D')‖ <= sensitivity` for all
    /// neighbours `D`, `D'` under `A`, rounding included.
    pub fn with_proven_sensitivity(value: V, sensitivity: Sensitivity<N, A>) -> Self {
        Self { value: Secret::new(value), sensitivity, assumptions: Vec::new() }
    }

    /// Notes something that the sensitivity rests on and that nobody but the caller can vouch for. The release that
    /// takes the value puts it in its log, and a certificate lists it.
    pub fn assuming(mut self, assumption: Assumption) -> Self {
        self.assumptions.push(assumption);
        self
    }

    /// The bound; public.
    pub fn sensitivity(&self) -> Sensitivity<N, A> {
        self.sensitivity
    }

    /// The value, and what its sensitivity rests on. Only mechanisms may open it.
    pub(crate) fn open(self) -> (V, Vec<Assumption>) {
        (self.value.into_inner(), self.assumptions)
    }
}

impl<F, A: Adjacency> Bounded<Vec<F>, A> {
    /// One vector of this one's coordinates and then the other's, and a claim of how far neighbours move them together.
    ///
    /// `√(Δ₁² + Δ₂²)` always holds; a smaller number needs a proof that no record moves both by their most.
    ///
    /// # Privacy
    /// A claim as [`with_proven_sensitivity`](Self::with_proven_sensitivity) is one. What the parts rest on is kept.
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
