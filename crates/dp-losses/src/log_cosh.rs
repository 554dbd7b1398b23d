//! The log-cosh regression loss: the absolute loss with a smoothed kink.

use nalgebra::convert;

use crate::constants::{DataConstants, Domain, LossBounds};
use crate::error::Error;
use crate::gradient_spread::squared_gradient_difference;
use crate::loss::Loss;
use crate::real::Real;
use crate::rounding::{inflate, product_up, quotient_up, sum_up};

/// The absolute loss with its kink smoothed over residuals of size `h`, for real targets with a public bound `|y| <= Y`. It is
/// twice differentiable everywhere and has little curvature where it is steep: at slope `a` the curvature is `(1 - a²)/h`, so
/// objective perturbation costs less than for [`HuberRegression`](crate::HuberRegression).
///
/// # Formula
/// ```text
/// r = p - y
/// value       h ln cosh(r/h) = |r| + h ln(1 + e^(-2|r|/h)) - h ln 2
/// derivative  tanh(r/h)                                    curvature (1 - tanh²(r/h)) / h <= 1 / h
/// ```
///
/// # Examples
/// ```
/// use dp_losses::{LogCosh, Loss};
/// let loss = LogCosh::new(0.5)?;
/// assert!((loss.value(2.0_f64, 0.0) - (2.0 - 0.5 * 2f64.ln())).abs() < 1e-3);
/// assert_eq!(loss.derivative(0.25_f64, 0.0), 0.5f64.tanh());
/// # Ok::<(), dp_losses::Error>(())
/// ```
///
/// # References
/// Green, "Bayesian reconstructions from emission tomography data using a modified EM algorithm", IEEE Transactions on
/// Medical Imaging 9, 1990, equation (4.2).
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Fields", into = "Fields"))]
pub struct LogCosh {
    h: f64,
}

impl LogCosh {
    /// Smoothed over 0.1: a twentieth of the range of targets in [-1, 1].
    pub const USUAL: Self = Self { h: 0.1 };

    /// Creates the loss smoothed over `h`.
    ///
    /// # Errors
    /// `h` outside `[1e-30, 1e30]`, the range in which `f32` resolves the kink as well; NaN.
    pub fn new(h: f64) -> Result<Self, Error> {
        if !(1e-30..=1e30).contains(&h) {
            return Err(Error::OutOfRange { name: "h", value: h, range: "[1e-30, 1e30]" });
        }
        Ok(Self { h })
    }

    /// Returns the size of the residuals over which the kink is smoothed.
    pub const fn h(self) -> f64 {
        self.h
    }
}

impl<F: Real> Loss<F> for LogCosh {
    #[inline(always)]
    fn value(&self, prediction: F, target: F) -> F {
        let h = convert::<f64, F>(self.h);
        let size = (prediction - target).abs();
        let scaled = size / h;
        // Near the origin the sum of the second line cancels; ln cosh t = ln(1 + 2 sinh²(t/2)) does not.
        if scaled < F::one() {
            let half = (scaled * convert(0.5)).sinh();
            return h * (half * half * convert(2.0)).ln_1p();
        }
        size + h * ((-(scaled + scaled)).exp().ln_1p() - convert(core::f64::consts::LN_2))
    }

    #[inline(always)]
    fn derivative(&self, prediction: F, target: F) -> F {
        ((prediction - target) / convert::<f64, F>(self.h)).tanh()
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

impl LossBounds for LogCosh {
    /// # Formula
    /// ```text
    /// Lipschitz            X · tanh((R X + Y) / h)              smoothness  X² / h
    /// gradient difference  min(2 · Lipschitz, X · G_sq(R X, Y) / h)
    /// ```
    /// The gradient is that of the squared loss over `h`, shortened, since `|tanh t| <= |t|`. The gradients of the squared loss
    /// lie in a ball of diameter `G_sq` that contains the origin (see [`squared_gradient_difference`]: its centre is at distance
    /// `a (Ra + Y)` from the origin, its radius is `sqrt(1 - a²) (Ra + Y)`, and `a² <= 1/2`), and with every vector it contains
    /// all shorter ones of the same direction.
    fn data_constants(&self, domain: &Domain) -> DataConstants {
        let row_norm = domain.row_norm();
        let reach = domain.radius().map_or(f64::INFINITY, |radius| product_up(radius, row_norm));
        let steepest = inflate(inflate(sum_up(reach, domain.target_bound()) / self.h).tanh()).min(1.0);
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
impl TryFrom<Fields> for LogCosh {
    type Error = Error;
    fn try_from(fields: Fields) -> Result<Self, Error> {
        Self::new(fields.h)
    }
}

#[cfg(feature = "serde")]
impl From<LogCosh> for Fields {
    fn from(loss: LogCosh) -> Self {
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
            let loss = LogCosh::new(h).unwrap();
            for size in [1e300, 1e308, f64::MAX] {
                assert_eq!((loss.derivative(size, 1.0), loss.derivative(-size, 1.0)), (1.0, -1.0), "{h}");
                assert_eq!((loss.value(size, 0.0), loss.value(-size, 0.0)), (size, size), "{h}");
            }
            for size in [1e35_f32, f32::MAX] {
                assert_eq!((loss.derivative(size, -1.0), loss.derivative(-size, -1.0)), (1.0, -1.0), "{h}");
                assert!((loss.value(size, 0.0) / size - 1.0).abs() < 1e-4, "{h}");
            }
            assert_eq!(loss.value(0.5_f64, 0.5), 0.0);
        }
    }

    #[test]
    fn sizes_outside_the_range_are_refused() {
        for h in [0.0, -0.1, f64::NAN, f64::INFINITY, 1e-31, 1e31] {
            assert!(LogCosh::new(h).is_err(), "{h}");
        }
    }

    proptest! {
        #[test]
        fn derivative_is_the_slope_of_the_value(h in 0.05..2.0_f64, p in -4.0..4.0_f64, y in -2.0..2.0_f64) {
            let (loss, step) = (LogCosh::new(h).unwrap(), 1e-5);
            let slope = (loss.value(p + step, y) - loss.value(p - step, y)) / (2.0 * step);
            prop_assert!((loss.derivative(p, y) - slope).abs() < 1e-9 + 1e-9 / (h * h));
        }

        /// `l'' = (1 - l'²)/h`, which objective perturbation uses.
        #[test]
        fn slope_and_curvature_are_tied(h in 0.05..2.0_f64, p in -4.0..4.0_f64) {
            let (loss, step) = (LogCosh::new(h).unwrap(), 1e-5);
            let curvature = (loss.derivative(p + step, 0.0) - loss.derivative(p - step, 0.0)) / (2.0 * step);
            let slope: f64 = loss.derivative(p, 0.0);
            prop_assert!((curvature - (1.0 - slope * slope) / h).abs() < 1e-6 / h.powi(3));
            prop_assert!(curvature <= Loss::<f64>::curvature_bound(&loss) * (1.0 + 1e-6));
        }

        #[test]
        fn value_is_that_of_the_formula(h in 0.05..2.0_f64, p in -3.0..3.0_f64) {
            let value = LogCosh::new(h).unwrap().value(p, 0.0);
            prop_assert!((value - h * (p / h).cosh().ln()).abs() <= 1e-12);
        }

        #[test]
        fn f32_agrees_with_f64(h in 0.05..2.0_f64, p in -8.0_f32..8.0, y in -1.0_f32..1.0) {
            let loss = LogCosh::new(h).unwrap();
            let (wide_p, wide_y) = (f64::from(p), f64::from(y));
            prop_assert!((f64::from(loss.value(p, y)) - loss.value(wide_p, wide_y)).abs() <= 1e-5);
            prop_assert!((f64::from(loss.derivative(p, y)) - loss.derivative(wide_p, wide_y)).abs() <= 4e-5);
        }
    }
}
