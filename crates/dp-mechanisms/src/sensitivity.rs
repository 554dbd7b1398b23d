//! Sensitivities by norm and neighbouring relation: a bound in one norm cannot stand in for another by accident.

use core::fmt;
use core::marker::PhantomData;

use dp_accountant::Adjacency;

use crate::error::Error;

mod sealed {
    pub trait Sealed {}
}

/// A norm in which a sensitivity is measured.
pub trait Norm: sealed::Sealed + Copy + fmt::Debug + Send + Sync + 'static {
    /// Its name in messages.
    const NAME: &'static str;
}

macro_rules! norm {
    ($(#[$doc:meta])* $name:ident, $text:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name;
        impl sealed::Sealed for $name {}
        impl Norm for $name {
            const NAME: &'static str = $text;
        }
    };
}
norm! {
    /// Sum of absolute values.
    L1, "L1"
}
norm! {
    /// Euclidean norm.
    L2, "L2"
}
norm! {
    /// Largest absolute value.
    LInf, "LInf"
}

/// `sup ‖f(D) - f(D')‖` over neighbours under `A`, in the norm `N`: finite and positive.
#[derive(Clone, Copy, PartialEq)]
pub struct Sensitivity<N: Norm, A: Adjacency> {
    value: f64,
    kind: PhantomData<(N, A)>,
}

/// Sensitivity in the L1 norm.
pub type L1Sensitivity<A> = Sensitivity<L1, A>;
/// Sensitivity in the L2 norm.
pub type L2Sensitivity<A> = Sensitivity<L2, A>;
/// Sensitivity in the maximum norm.
pub type LInfSensitivity<A> = Sensitivity<LInf, A>;

impl<N: Norm, A: Adjacency> Sensitivity<N, A> {
    /// Checks the value.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::ZeroSensitivity`], [`Error::NotPositive`], or [`Error::TooSmall`] for a subnormal.
    pub fn new(value: f64) -> Result<Self, Error> {
        if !value.is_finite() {
            return Err(Error::NotFinite { name: "sensitivity", value });
        }
        if value == 0.0 {
            return Err(Error::ZeroSensitivity);
        }
        if !(value > 0.0) {
            return Err(Error::NotPositive { name: "sensitivity", value });
        }
        if !value.is_normal() {
            return Err(Error::TooSmall { name: "sensitivity", value, least: f64::MIN_POSITIVE });
        }
        Ok(Self { value, kind: PhantomData })
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.value
    }
}

impl<N: Norm, A: Adjacency> fmt::Debug for Sensitivity<N, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sensitivity {} under {}", N::NAME, self.value, A::KIND)
    }
}
