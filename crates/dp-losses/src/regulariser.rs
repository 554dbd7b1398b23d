//! Regularisers: functions of the parameters only, independent of all records.

use nalgebra::{RealField, convert};

use crate::error::{Error, non_negative};

/// The L2 regulariser `λ/2 |w|²`; `λ = 0` is none.
///
/// # Formula
/// ```text
/// value  λ/2 |w|²      gradient  λ w      a gradient step of size η on it alone:  w -> (1 - η λ) w
/// ```
///
/// # Examples
/// ```
/// use dp_losses::L2;
/// let regulariser = L2::new(0.5)?;
/// assert_eq!(regulariser.value(&[1.0, 2.0]), 1.25);
/// assert_eq!(regulariser.shrink(0.5), 0.75);
/// # Ok::<(), dp_losses::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "f64", into = "f64"))]
pub struct L2 {
    lambda: f64,
}

impl L2 {
    /// No regulariser.
    pub const NONE: Self = Self { lambda: 0.0 };

    /// Creates the regulariser with coefficient `lambda`.
    ///
    /// # Errors
    /// Outside `[0, 1e100]`, or NaN.
    pub fn new(lambda: f64) -> Result<Self, Error> {
        Ok(Self { lambda: non_negative("lambda", lambda)? })
    }

    /// Returns the coefficient `λ`, which is also the strong convexity and the smoothness it adds.
    pub const fn lambda(self) -> f64 {
        self.lambda
    }

    /// Returns `λ/2 |w|²`.
    pub fn value<F: RealField + Copy>(self, parameters: &[F]) -> F {
        let squared_norm = parameters.iter().fold(F::zero(), |sum, &weight| sum + weight * weight);
        convert::<f64, F>(0.5 * self.lambda) * squared_norm
    }

    /// Computes `gradient += λ w`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn add_gradient<F: RealField + Copy>(self, parameters: &[F], gradient: &mut [F]) {
        assert_eq!(parameters.len(), gradient.len(), "parameters and gradient have one length");
        let lambda = convert::<f64, F>(self.lambda);
        for (sum, &weight) in gradient.iter_mut().zip(parameters) {
            *sum += lambda * weight;
        }
    }

    /// Returns the factor `1 - η λ` by which a gradient step of size `step` on the regulariser alone scales the parameters.
    /// Negative if `η > 1/λ`.
    pub fn shrink(self, step: f64) -> f64 {
        1.0 - step * self.lambda
    }
}

impl TryFrom<f64> for L2 {
    type Error = Error;
    fn try_from(lambda: f64) -> Result<Self, Error> {
        Self::new(lambda)
    }
}

impl From<L2> for f64 {
    fn from(regulariser: L2) -> Self {
        regulariser.lambda
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradient_is_the_derivative_of_the_value() {
        let regulariser = L2::new(0.3).unwrap();
        let w = [0.5_f64, -2.0, 4.0];
        let mut gradient = [1.0_f64; 3];
        regulariser.add_gradient(&w, &mut gradient);
        for i in 0..3 {
            let (mut above, mut below) = (w, w);
            above[i] += 1e-4;
            below[i] -= 1e-4;
            let slope = (regulariser.value(&above) - regulariser.value(&below)) / 2e-4;
            assert!((gradient[i] - 1.0 - slope).abs() < 1e-9);
            assert!((w[i] - 0.1 * (gradient[i] - 1.0) - regulariser.shrink(0.1) * w[i]).abs() < 1e-15);
        }
    }

    #[test]
    fn only_finite_coefficients_from_zero_are_accepted() {
        for lambda in [-1.0, -1e-300, f64::NAN, f64::INFINITY, 1e101] {
            assert!(L2::new(lambda).is_err(), "{lambda}");
        }
        assert_eq!(L2::new(-0.0).unwrap().lambda().to_bits(), 0);
        assert_eq!(f64::from(L2::new(0.3).unwrap()), 0.3);
    }
}
