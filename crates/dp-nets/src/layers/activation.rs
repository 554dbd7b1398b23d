//! Activations: the rectifier and the hyperbolic tangent, in place.
//!
//! # Formula
//! ```text
//! relu   y = max(z, 0)    ∂/∂z = g where y > 0, else 0 (so that the derivative at 0 is 0)
//! tanh   y = tanh z       ∂/∂z = g (1 - y²)
//! ```
//! The derivative is a function of `y`: the pre-activation need not be kept. NaN stays NaN in both.

use crate::architecture::Activation;
use crate::float::Float;
use crate::kernels::vectorised;

impl Activation {
    pub(crate) fn forward<F: Float>(self, values: &mut [F]) {
        vectorised(
            #[inline(always)]
            || match self {
                Self::Relu => {
                    for z in values {
                        // A comparison that NaN fails, so that it is kept.
                        *z = if *z < F::zero() { F::zero() } else { *z };
                    }
                }
                Self::Tanh => {
                    for z in values {
                        *z = z.hyperbolic_tangent();
                    }
                }
            },
        );
    }

    pub(crate) fn backward<F: Float>(self, values: &[F], gradient: &mut [F]) {
        vectorised(
            #[inline(always)]
            || {
                let pairs = gradient.iter_mut().zip(values);
                match self {
                    Self::Relu => {
                        for (g, &y) in pairs {
                            *g = if y > F::zero() { *g } else { F::zero() };
                        }
                    }
                    Self::Tanh => {
                        for (g, &y) in pairs {
                            *g *= F::one() - y * y;
                        }
                    }
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_derivatives() {
        let mut values = [-2.0, 0.0, -0.0, 3.0, f64::NEG_INFINITY, f64::INFINITY];
        let mut gradient = [5.0; 6];
        Activation::Relu.forward(&mut values);
        assert_eq!(values, [0.0, 0.0, 0.0, 3.0, 0.0, f64::INFINITY]);
        Activation::Relu.backward(&values, &mut gradient);
        assert_eq!(gradient, [0.0, 0.0, 0.0, 5.0, 0.0, 5.0]);
        let (mut values, mut gradient) = ([0.0, 0.5], [2.0, 2.0]);
        Activation::Tanh.forward(&mut values);
        Activation::Tanh.backward(&values, &mut gradient);
        assert!((values[1] - 0.5_f64.tanh()).abs() < 1e-15);
        assert!(gradient[0] == 2.0 && (gradient[1] - 2.0 / 0.5_f64.cosh().powi(2)).abs() < 1e-14);
    }

    #[test]
    fn nan_is_kept() {
        for activation in [Activation::Relu, Activation::Tanh] {
            let mut values = [f32::NAN, -f32::NAN, 1.0];
            activation.forward(&mut values);
            assert!(values[0].is_nan() && values[1].is_nan() && values[2] > 0.5);
        }
    }
}
