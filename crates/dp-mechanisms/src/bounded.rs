//! Sensitive values that cannot be read, printed, compared, serialised or released twice.

use core::fmt;

use dp_accountant::Adjacency;

use crate::sensitivity::{L2, Norm, Sensitivity};

/// A value that depends on private records and has not been released.
///
/// There is no way to read it outside this crate; `Debug` prints `Secret(..)`.
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Computes on the value without releasing it.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Secret<U> {
        Secret(f(self.0))
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
pub struct Bounded<V, A: Adjacency, N: Norm = L2> {
    value: Secret<V>,
    sensitivity: Sensitivity<N, A>,
}

impl<V, A: Adjacency, N: Norm> Bounded<V, A, N> {
    /// Claims that `value` has this sensitivity.
    ///
    /// This is the one place where a sensitivity is asserted rather than enforced: the caller must have a proof, and
    /// a reviewer can find every such claim by this name.
    pub fn with_proven_sensitivity(value: V, sensitivity: Sensitivity<N, A>) -> Self {
        Self { value: Secret::new(value), sensitivity }
    }

    /// The bound; public.
    pub fn sensitivity(&self) -> Sensitivity<N, A> {
        self.sensitivity
    }

    /// Only mechanisms may open it.
    pub(crate) fn into_inner(self) -> V {
        self.value.into_inner()
    }
}

impl<V, A: Adjacency, N: Norm> fmt::Debug for Bounded<V, A, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bounded(.., {:?})", self.sensitivity)
    }
}
