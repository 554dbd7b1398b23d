//! The hinge loss of support vector machines, smoothed by a parabola around its kink.

use nalgebra::convert;

use crate::constants::{DataConstants, Domain, LossBounds};
use crate::error::Error;
use crate::loss::Loss;
use crate::real::Real;
use crate::rounding::{inflate, product_up, quotient_up, sum_up};

/// The hinge loss with its kink replaced by a parabola of half width `h`, for targets -1 and +1.
///
/// # Formula
/// ```text
/// s = y·p
/// value       0 for s > 1 + h;   (1 + h - s)² / (4h) for |1 - s| <= h;   1 - s for s < 1 - h
/// derivative  -y · clamp((1 + h - s) / (2h), 0, 1)            curvature <= 1 / (2h)
/// ```
///
/// # Examples
/// ```
/// use dp_losses::{HuberSvm, Loss};
/// let loss = HuberSvm::new(0.1)?;
/// assert_eq!(loss.derivative(0.0_f64, 1.0), -1.0);
/// assert!((loss.value(1.0_f64, 1.0) - 0.025).abs() < 1e-15);
/// # Ok::<(), dp_losses::Error>(())
/// ```
///
/// # References
/// Chaudhuri, Monteleoni, Sarwate, "Differentially private empirical risk minimization", JMLR 2011, section 3.4.2.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Fields", into = "Fields"))]
pub struct HuberSvm {
    h: f64,
}

impl HuberSvm {
    /// The half width used by Wu et al. (2017), 0.1.
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

impl<F: Real> Loss<F> for HuberSvm {
    #[inline(always)]
    fn value(&self, prediction: F, target: F) -> F {
        let h = convert::<f64, F>(self.h);
        let shortfall = F::one() - prediction * target;
        let above = h + shortfall;
        let width = h + h;
        if above <= F::zero() {
            F::zero()
        } else if above >= width {
            shortfall
        } else {
            above * (above / (width + width))
        }
    }

    #[inline(always)]
    fn derivative(&self, prediction: F, target: F) -> F {
        let h = convert::<f64, F>(self.h);
        let slope = (h + (F::one() - prediction * target)) / (h + h);
        let slope = if slope < F::zero() { F::zero() } else { slope };
        let slope = if slope > F::one() { F::one() } else { slope };
        -target * slope
    }

    #[inline(always)]
    fn curvature_bound(&self) -> F {
        convert(0.5 / self.h)
    }
}

impl LossBounds for HuberSvm {
    /// # Formula
    /// ```text
    /// Lipschitz   X · min(1, (1 + h + R X) / (2h))     smoothness  X² / (2h)     gradient difference  2 · Lipschitz
    /// ```
    /// For `h <= 1` the difference is attained: two opposite rows orthogonal to `w`.
    fn data_constants(&self, domain: &Domain) -> DataConstants {
        let row_norm = domain.row_norm();
        let steepest = domain.radius().map_or(1.0, |radius| {
            let reach = sum_up(sum_up(1.0, self.h), product_up(radius, row_norm));
            inflate(reach / (2.0 * self.h)).min(1.0)
        });
        let lipschitz = product_up(row_norm, steepest);
        DataConstants {
            lipschitz,
            smoothness: quotient_up(product_up(row_norm, row_norm), 2.0 * self.h),
            gradient_difference: 2.0 * lipschitz,
        }
    }

    fn data_constants_of_the_papers(&self, domain: &Domain) -> DataConstants {
        let row_norm = domain.row_norm();
        DataConstants {
            lipschitz: row_norm,
            smoothness: quotient_up(product_up(row_norm, row_norm), 2.0 * self.h),
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
impl TryFrom<Fields> for HuberSvm {
    type Error = Error;
    fn try_from(fields: Fields) -> Result<Self, Error> {
        Self::new(fields.h)
    }
}

#[cfg(feature = "serde")]
impl From<HuberSvm> for Fields {
    fn from(loss: HuberSvm) -> Self {
        Self { h: loss.h }
    }
}

#[cfg(test)]
mod tests;
