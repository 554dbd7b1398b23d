//! Values that have been through a mechanism and may be published.

/// A value that a mechanism has released: post-processing is free.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Released<T>(T);

impl<T> Released<T> {
    /// Only mechanisms make one.
    pub(crate) fn new(value: T) -> Self {
        Self(value)
    }

    /// The value.
    pub fn get(&self) -> &T {
        &self.0
    }

    /// The value, by value.
    pub fn into_inner(self) -> T {
        self.0
    }

    /// Post-processing: any function of a released value (and of nothing private) is released too.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Released<U> {
        Released(f(self.0))
    }
}
