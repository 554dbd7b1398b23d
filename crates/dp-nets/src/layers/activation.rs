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
