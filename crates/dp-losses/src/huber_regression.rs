//! Huber's robust regression loss: the absolute loss with a parabola in place of its kink.

use nalgebra::convert;

use crate::constants::{DataConstants, Domain, LossBounds};
use crate::error::Error;
use crate::gradient_spread::squared_gradient_difference;
use crate::loss::Loss;
use crate::real::Real;
use crate::rounding::{inflate, product_up, quotient_up, sum_up};

/// The absolute loss with its kink replaced by a parabola of half width `h`, for real targets with a public bound `|y| <= Y`. Its
/// slope is at most 1, like that of the absolute loss, to which it converges for small `h`.
///
/// # Formula
/// ```text
/// r = p - y
/// value       r² / (2h) for |r| <= h;   |r| - h/2 else
/// derivative  clamp(r / h, -1, 1)                          curvature <= 1 / h
/// ```
///
/// # Examples
/// ```
/// use dp_losses::{HuberRegression, Loss};
/// let loss = HuberRegression::new(0.5)?;
/// assert_eq!((loss.value(2.0_f64, 0.0), loss.derivative(2.0_f64, 0.0)), (1.75, 1.0));
/// assert_eq!((loss.value(0.25_f64, 0.0), loss.derivative(0.25_f64, 0.0)), (0.0625, 0.5));
/// # Ok::<(), dp_losses::Error>(())
/// ```
///
/// # References
/// Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35, 1964, section 2; there
/// the loss is `h` times this one.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Fields", into = "Fields"))]
pub struct HuberRegression {
    h: f64,
}

impl HuberRegression {
    /// Half width 0.1: a twentieth of the range of targets in [-1, 1].
    pub const USUAL: Self = Self { h: 0.1 };

    /// Creates the loss with half width `h`.
    ///
    /// # Errors
    /// `h` outside `[1e-30, 1e30]`, the range in which `f32` resolves the parabola as well; NaN.
    pub fn new(h: f64) -> Result<Self, Error> {
        if !(1e-30..=1e30).contains(&h) {
            return Err(Error::OutOfRange { name: "h", value: h, range: "[1e-30, 1e30]" });
        }
        Ok(Self { h })
    }

    /// Returns the half width.
    pub const fn h(self) -> f64 {
        self.h
    }
}

impl<F: Real> Loss<F> for HuberRegression {
    #[inline(always)]
    fn value(&self, prediction: F, target: F) -> F {
        let h = convert::<f64, F>(self.h);
        let size = (prediction - target).abs();
        if size <= h { size * (size / (h + h)) } else { size - h * convert(0.5) }
    }

    #[inline(always)]
    fn derivative(&self, prediction: F, target: F) -> F {
        let slope = (prediction - target) / convert::<f64, F>(self.h);
        let slope = if slope < -F::one() { -F::one() } else { slope };
        if slope > F::one() { F::one() } else { slope }
    }

    #[inline(always)]
    fn is_of_residual(&self) -> bool {
        true
    }

    #[inline(always)]
    fn curvature_bound(&self) -> F {
        convert(1.0 / self.h)
    }
}

impl LossBounds for HuberRegression {
    /// # Formula
    /// ```text
    /// Lipschitz            X · min(1, (R X + Y) / h)            smoothness  X² / h
    /// gradient difference  min(2 · Lipschitz, X · G_sq(R X, Y) / h)
    /// ```
    /// The gradient is that of the squared loss over `h`, shortened if it is longer than the row. The gradients of the squared
    /// loss lie in a ball of diameter `G_sq` that contains the origin (see [`squared_gradient_difference`]: its centre is at
    /// distance `a (Ra + Y)` from the origin, its radius is `sqrt(1 - a²) (Ra + Y)`, and `a² <= 1/2`), and with every vector it
    /// contains all shorter ones of the same direction.
    fn data_constants(&self, domain: &Domain) -> DataConstants {
        let row_norm = domain.row_norm();
        let reach = domain.radius().map_or(f64::INFINITY, |radius| product_up(radius, row_norm));
        let steepest = inflate(sum_up(reach, domain.target_bound()) / self.h).min(1.0);
        let spread = inflate(squared_gradient_difference(reach, domain.target_bound()) / self.h);
        let lipschitz = product_up(row_norm, steepest);
        DataConstants {
            lipschitz,
            smoothness: quotient_up(product_up(row_norm, row_norm), self.h),
            gradient_difference: product_up(row_norm, spread).min(2.0 * lipschitz),
        }
    }

    fn data_constants_of_the_papers(&self, domain: &Domain) -> DataConstants {
        let row_norm = domain.row_norm();
        DataConstants {
            lipschitz: row_norm,
            smoothness: quotient_up(product_up(row_norm, row_norm), self.h),
            gradient_difference: 2.0 * row_norm,
        }
    }
}

/// The serialised form of the loss.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    h: f64,
}

#[cfg(feature = "serde")]
impl TryFrom<Fields> for HuberRegression {
    type Error = Error;
    fn try_from(fields: Fields) -> Result<Self, Error> {
        Self::new(fields.h)
    }
}

#[cfg(feature = "serde")]
impl From<HuberRegression> for Fields {
    fn from(loss: HuberRegression) -> Self {
        Self { h: loss.h }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn extreme_residuals_and_widths_give_numbers() {
        for h in [1e-30, 0.1, 1.0, 1e30] {
            let loss = HuberRegression::new(h).unwrap();
            for size in [1e300, 1e308, f64::MAX] {
                assert_eq!((loss.derivative(size, 1.0), loss.derivative(-size, 1.0)), (1.0, -1.0), "{h}");
                assert_eq!((loss.value(size, 0.0), loss.value(-size, 0.0)), (size, size), "{h}");
            }
            for size in [1e35_f32, f32::MAX] {
                assert_eq!((loss.derivative(size, -1.0), loss.derivative(-size, -1.0)), (1.0, -1.0), "{h}");
            }
            assert!((-1.0..=1.0).contains(&loss.derivative(1.0_f32, 0.5)));
        }
    }

    #[test]
    fn half_widths_outside_the_range_are_refused() {
        for h in [0.0, -0.1, f64::NAN, f64::INFINITY, 1e-31, 1e31] {
            assert!(HuberRegression::new(h).is_err(), "{h}");
        }
    }

    proptest! {
        #[test]
        fn derivative_is_the_slope_of_the_value(h in 0.05..2.0_f64, p in -4.0..4.0_f64, y in -2.0..2.0_f64) {
            let (loss, step) = (HuberRegression::new(h).unwrap(), 1e-5);
            let slope = (loss.value(p + step, y) - loss.value(p - step, y)) / (2.0 * step);
            // Across a kink of the derivative the central difference has an error of up to step · curvature / 4.
            prop_assert!((loss.derivative(p, y) - slope).abs() < 1e-9 + step / h);
        }

        #[test]
        fn slope_of_the_derivative_stays_below_the_curvature(
            h in 0.05..2.0_f64, p in -4.0..4.0_f64, gap in 1e-3..4.0_f64,
        ) {
            let loss = HuberRegression::new(h).unwrap();
            let change = loss.derivative(p + gap, 1.0) - loss.derivative(p, 1.0);
            let bound: f64 = Loss::<f64>::curvature_bound(&loss);
            prop_assert!((0.0..=bound * gap * (1.0 + 1e-12) + 1e-15).contains(&change));
        }

        #[test]
        fn f32_agrees_with_f64(h in 0.05..2.0_f64, p in -8.0_f32..8.0, y in -1.0_f32..1.0) {
            let loss = HuberRegression::new(h).unwrap();
            let (wide_p, wide_y) = (f64::from(p), f64::from(y));
            prop_assert!((f64::from(loss.value(p, y)) - loss.value(wide_p, wide_y)).abs() <= 1e-5);
            prop_assert!((f64::from(loss.derivative(p, y)) - loss.derivative(wide_p, wide_y)).abs() <= 4e-5);
        }
    }
}
