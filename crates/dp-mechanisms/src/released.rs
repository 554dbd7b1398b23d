//! Values that a mechanism has released and that may be published.

/// A value that a mechanism has released: post-processing is free.
///
/// Only mechanisms of this crate create one.
///
/// # Examples
/// ```
/// # use dp_accountant::{EventLog, ReplaceOne}; use dp_mechanisms::*;
/// # let sensitivity = L2Sensitivity::<ReplaceOne>::new(1.0)?;
/// # let gaussian = Gaussian::from_std_dev(sensitivity, 1.0)?;
/// # let total = Bounded::with_proven_sensitivity(vec![12.0f64], sensitivity);
/// let total = gaussian.release(total, &mut EventLog::new(), &mut OsSeeded::new()?)?;
/// let mean = total.map(|total| total[0] / 10.0);
/// assert!(mean.get().is_finite());
/// # Ok::<(), Error>(())
/// ```
/// Other code cannot create one:
/// ```compile_fail,E0624
/// let forged = dp_mechanisms::Released::new(12.0);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Released<T>(T);

impl<T> Released<T> {
    /// Wraps a released value. Only mechanisms call this.
    pub(crate) fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the value.
    pub fn get(&self) -> &T {
        &self.0
    }

    /// Returns the value, consuming the wrapper.
    pub fn into_inner(self) -> T {
        self.0
    }

    /// Post-processes the value: a function of a released value, and of nothing private, is released too.
    ///
    /// # Privacy
    /// The closure must not capture anything that depends on private records; no type can enforce this.
    ///
    /// # References
    /// C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014, Proposition 2.1.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Released<U> {
        Released(f(self.0))
    }
}
