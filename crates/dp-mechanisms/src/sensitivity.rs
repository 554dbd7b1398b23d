//! Sensitivities by norm and neighbouring relation: a bound in one norm cannot be used for another by accident.

use core::fmt;
use core::marker::PhantomData;

use dp_accountant::Adjacency;

use crate::error::{Error, dimension};
use crate::rounding::{product_up, sqrt_down};

mod sealed {
    pub trait Sealed {}
}

/// A norm for sensitivities.
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
///
/// # Conversions
/// Conversions are explicit, and each rounds up: [`to_l2`](L1Sensitivity::to_l2) from L1 keeps the value (`‖z‖₂ <= ‖z‖₁`),
/// [`to_l1`](L2Sensitivity::to_l1) from L2 multiplies by `√d` (Cauchy-Schwarz), and from the maximum norm
/// [`to_l2`](LInfSensitivity::to_l2) multiplies by `√d`, [`to_l1`](LInfSensitivity::to_l1) by `d`. There are no others.
///
/// # Examples
/// ```
/// use dp_accountant::ReplaceOne;
/// use dp_mechanisms::{L2Sensitivity, LInfSensitivity};
/// let each = LInfSensitivity::<ReplaceOne>::new(0.5)?;
/// assert_eq!(each.to_l2(16)?, L2Sensitivity::new(2.0)?);
/// assert_eq!(each.to_l1(16)?.get(), 8.0);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
/// A mechanism for one norm does not accept a bound in another, and relations do not mix:
/// ```compile_fail,E0308
/// # use dp_accountant::ReplaceOne; use dp_mechanisms::*;
/// fn build(bound: L1Sensitivity<ReplaceOne>) -> Result<Gaussian<ReplaceOne>, Error> {
///     Gaussian::from_std_dev(bound, 1.0) // needs `bound.to_l2()`
/// }
/// ```
/// ```compile_fail,E0308
/// # use dp_accountant::{ReplaceOne, ZeroOut}; use dp_mechanisms::*;
/// fn build(bound: L2Sensitivity<ZeroOut>) -> Result<Gaussian<ReplaceOne>, Error> {
///     Gaussian::from_std_dev(bound, 1.0)
/// }
/// ```
/// An L2 bound where L1 is required does not compile either:
/// ```compile_fail,E0308
/// # use dp_accountant::ReplaceOne; use dp_mechanisms::*;
/// fn coordinate_laplace_scale(bound: L1Sensitivity<ReplaceOne>) -> f64 {
///     bound.get()
/// }
/// fn build(bound: L2Sensitivity<ReplaceOne>) -> f64 {
///     coordinate_laplace_scale(bound) // needs `bound.to_l1(dim)?`
/// }
/// ```
#[derive(Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "f64", into = "f64", bound = ""))]
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
    /// Checks and wraps the value.
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

    /// Returns the number.
    pub const fn get(self) -> f64 {
        self.value
    }
}

impl<N: Norm, A: Adjacency> TryFrom<f64> for Sensitivity<N, A> {
    type Error = Error;
    fn try_from(value: f64) -> Result<Self, Error> {
        Self::new(value)
    }
}

impl<N: Norm, A: Adjacency> From<Sensitivity<N, A>> for f64 {
    fn from(sensitivity: Sensitivity<N, A>) -> f64 {
        sensitivity.value
    }
}

impl<N: Norm, A: Adjacency> PartialEq for Sensitivity<N, A> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<N: Norm, A: Adjacency> fmt::Debug for Sensitivity<N, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sensitivity {} under {}", N::NAME, self.value, A::KIND)
    }
}

impl<A: Adjacency> L1Sensitivity<A> {
    /// Converts to the L2 norm with the same number: `‖z‖₂ <= ‖z‖₁`.
    pub fn to_l2(self) -> L2Sensitivity<A> {
        Sensitivity { value: self.value, kind: PhantomData }
    }
}

impl<A: Adjacency> L2Sensitivity<A> {
    /// Converts to the L1 norm by the factor `√dim`, rounded up: `‖z‖₁ <= √d ‖z‖₂`, by the Cauchy-Schwarz inequality.
    ///
    /// # Errors
    /// [`Error::Dimension`] unless `dim` is in `1..=2^32`; [`Error::NotFinite`] if the product overflows.
    pub fn to_l1(self, dim: u64) -> Result<L1Sensitivity<A>, Error> {
        Sensitivity::new(product_up(self.value, sqrt_up(dim)?))
    }
}

impl<A: Adjacency> LInfSensitivity<A> {
    /// Converts to the L2 norm by the factor `√dim`, rounded up: `‖z‖₂ <= √d ‖z‖_∞`.
    ///
    /// # Errors
    /// As [`L2Sensitivity::to_l1`].
    pub fn to_l2(self, dim: u64) -> Result<L2Sensitivity<A>, Error> {
        Sensitivity::new(product_up(self.value, sqrt_up(dim)?))
    }

    /// Converts to the L1 norm by the factor `dim`: `‖z‖₁ <= d ‖z‖_∞`.
    ///
    /// # Errors
    /// As [`L2Sensitivity::to_l1`].
    pub fn to_l1(self, dim: u64) -> Result<L1Sensitivity<A>, Error> {
        Sensitivity::new(product_up(self.value, dimension(dim)? as f64))
    }
}

/// Returns `√dim`, rounded up.
fn sqrt_up(dim: u64) -> Result<f64, Error> {
    let dim = dimension(dim)? as f64; // exact: at most 2^32
    let root = sqrt_down(dim);
    Ok(if root.mul_add(root, -dim) == 0.0 { root } else { root.next_up() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dp_accountant::{ReplaceOne, ZeroOut};
    use proptest::prelude::*;

    #[test]
    fn refused_values() {
        let new = Sensitivity::<L2, ReplaceOne>::new;
        assert!(matches!(new(f64::NAN), Err(Error::NotFinite { name: "sensitivity", .. })));
        assert!(matches!(new(f64::INFINITY), Err(Error::NotFinite { name: "sensitivity", .. })));
        assert_eq!(new(0.0), Err(Error::ZeroSensitivity));
        assert_eq!(new(-0.0), Err(Error::ZeroSensitivity));
        assert_eq!(new(-1.0), Err(Error::NotPositive { name: "sensitivity", value: -1.0 }));
        assert!(matches!(new(5e-324), Err(Error::TooSmall { name: "sensitivity", .. })));
        assert_eq!(new(1e300).map(Sensitivity::get), Ok(1e300));
        assert_ne!(new(1e300), new(1e299));
    }

    #[test]
    fn dimensions_are_checked() {
        let bound = L2Sensitivity::<ZeroOut>::new(1.0).unwrap();
        assert_eq!(bound.to_l1(0), Err(Error::Dimension { dimension: 0 }));
        assert_eq!(bound.to_l1(u64::MAX), Err(Error::Dimension { dimension: u64::MAX }));
        assert_eq!(bound.to_l1(1 << 32).map(Sensitivity::get), Ok(65536.0));
        let huge = L2Sensitivity::<ZeroOut>::new(1e308).unwrap();
        assert!(matches!(huge.to_l1(1 << 32), Err(Error::NotFinite { .. })));
    }

    proptest! {
        /// The converted bound covers every vector of the original bound (checked on random vectors, where the ratio
        /// of norms is attained by equal coordinates).
        #[test]
        fn conversions_cover(values in proptest::collection::vec(-1.0f64..1.0, 1..40)) {
            let dim = values.len() as u64;
            let l1: f64 = values.iter().map(|v| v.abs()).sum();
            let l2 = values.iter().map(|v| v * v).sum::<f64>().sqrt();
            let l_inf = values.iter().fold(0.0f64, |largest, v| largest.max(v.abs()));
            prop_assume!(l_inf > 1e-3);
            let slack = 1.0 + 1e-12;
            prop_assert!(l2 <= L1Sensitivity::<ZeroOut>::new(l1).unwrap().to_l2().get() * slack);
            prop_assert!(l1 <= L2Sensitivity::<ZeroOut>::new(l2).unwrap().to_l1(dim).unwrap().get() * slack);
            prop_assert!(l2 <= LInfSensitivity::<ZeroOut>::new(l_inf).unwrap().to_l2(dim).unwrap().get() * slack);
            prop_assert!(l1 <= LInfSensitivity::<ZeroOut>::new(l_inf).unwrap().to_l1(dim).unwrap().get() * slack);
        }

        #[test]
        fn roots_of_dimensions_are_rounded_up(dim in 1u64..=1 << 32) {
            let root = sqrt_up(dim).unwrap();
            prop_assert!(root.mul_add(root, -(dim as f64)) >= 0.0);
        }
    }
}
