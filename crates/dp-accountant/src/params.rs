//! Validated numbers: one newtype for each quantity that could be confused with another.
//!
//! Each has a private field, `new(f64) -> Result<_, Error>`, `get()` and `Display`; deserialisation applies the same check. They
//! have no arithmetic: adding two epsilons is a theorem, and theorems are called by name.
//!
//! ```
//! use dp_accountant::{Delta, Epsilon};
//! assert_eq!(Epsilon::new(0.5)?.get(), 0.5);
//! assert_eq!(Delta::new(1.5).unwrap_err().to_string(), "delta = 1.5 must lie in [0, 1)");
//! # Ok::<(), dp_accountant::Error>(())
//! ```
//!
//! ```compile_fail,E0369
//! use dp_accountant::Epsilon;
//! let sum = Epsilon::new(0.5)? + Epsilon::new(0.5)?;
//! # Ok::<(), dp_accountant::Error>(())
//! ```

use core::fmt;

use crate::error::{Error, non_negative, positive};

macro_rules! parameter {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(try_from = "f64", into = "f64"))]
        pub struct $name(f64);

        impl $name {
            /// Checks and wraps the value.
            ///
            /// # Errors
            /// A value outside the range stated for the type, including NaN.
            pub fn new(value: f64) -> Result<Self, Error> {
                let check: fn(f64) -> Result<f64, Error> = $check;
                check(value).map(Self)
            }

            /// Returns the number.
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = Error;
            fn try_from(value: f64) -> Result<Self, Error> {
                Self::new(value)
            }
        }

        impl From<$name> for f64 {
            fn from(value: $name) -> f64 {
                value.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // Without a precision: a short exact form at any magnitude, such as 0.5 or 1e-12.
                if f.precision().is_some() { fmt::Display::fmt(&self.0, f) } else { fmt::Debug::fmt(&self.0, f) }
            }
        }
    };
}

parameter! {
    /// A privacy loss bound epsilon, finite and at least 2^-50.
    Epsilon, |value| {
        positive("epsilon", value)?;
        if value < Epsilon::MIN.get() {
            return Err(Error::OutOfRange { name: "epsilon", value, range: "[2^-50, inf)" });
        }
        Ok(value)
    }
}
parameter! {
    /// A failure probability delta in [0, 1); 0 is pure differential privacy.
    Delta, |value| {
        if !(0.0..1.0).contains(&value) {
            return Err(Error::OutOfRange { name: "delta", value, range: "[0, 1)" });
        }
        Ok(value + 0.0) // -0.0 becomes 0.0
    }
}
parameter! {
    /// A zero-concentrated DP parameter rho, finite and positive.
    Rho, |value| positive("rho", value)
}
parameter! {
    /// A Renyi order alpha, finite and at least 1; at 1 the divergence is the Kullback-Leibler divergence.
    RdpOrder, |value| {
        if !(value.is_finite() && value >= 1.0) {
            return Err(Error::OutOfRange { name: "order", value, range: "[1, inf)" });
        }
        Ok(value)
    }
}
parameter! {
    /// Noise standard deviation over sensitivity (no unit), finite and positive.
    NoiseMultiplier, |value| positive("noise multiplier", value)
}
parameter! {
    /// A sampling probability in [0, 1].
    SamplingRate, |value| {
        if !(0.0..=1.0).contains(&value) {
            return Err(Error::OutOfRange { name: "sampling rate", value, range: "[0, 1]" });
        }
        non_negative("sampling rate", value + 0.0)
    }
}

impl Epsilon {
    /// The smallest epsilon distinguished from 0.
    pub const MIN: Self = Self(f64::EPSILON * 4.0);
}

impl Delta {
    /// Pure differential privacy.
    pub const ZERO: Self = Self(0.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_refuse_what_lies_outside_and_nan() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
            assert!(Epsilon::new(bad).is_err() && Delta::new(bad).is_err() && Rho::new(bad).is_err());
            assert!(RdpOrder::new(bad).is_err() && NoiseMultiplier::new(bad).is_err());
            assert!(SamplingRate::new(bad).is_err());
        }
        assert!(Epsilon::new(0.0).is_err() && Epsilon::new(1e-16).is_err() && Epsilon::new(Epsilon::MIN.get()).is_ok());
        assert!(Delta::new(0.0).is_ok() && Delta::new(1.0).is_err() && Delta::new(1e-300).is_ok());
        assert!(RdpOrder::new(1.0).is_ok() && RdpOrder::new(0.999).is_err());
        assert!(SamplingRate::new(1.0).is_ok() && SamplingRate::new(1.1).is_err());
        assert!(Rho::new(0.0).is_err() && NoiseMultiplier::new(0.0).is_err());
    }

    #[test]
    fn negative_zero_becomes_zero() {
        assert!(Delta::new(-0.0).unwrap().get().is_sign_positive());
        assert!(SamplingRate::new(-0.0).unwrap().get().is_sign_positive());
    }

    #[test]
    fn json_goes_through_the_same_check() {
        assert_eq!(serde_json::from_str::<Epsilon>("0.5").unwrap().get(), 0.5);
        assert_eq!(serde_json::to_string(&Delta::new(1e-6).unwrap()).unwrap(), "1e-6");
        let error = serde_json::from_str::<Delta>("1.5").unwrap_err().to_string();
        assert!(error.contains("delta = 1.5 must lie in [0, 1)"), "{error}");
    }
}
