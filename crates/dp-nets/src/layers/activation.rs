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
                // A comparison that NaN fails, so that it is kept.
                Self::Relu => values.iter_mut().for_each(|z| *z = if *z < F::zero() { F::zero() } else { *z }),
                Self::Tanh => values.iter_mut().for_each(|z| *z = z.hyperbolic_tangent()),
            },
        );
    }

    pub(crate) fn backward<F: Float>(self, values: &[F], gradient: &mut [F]) {
        vectorised(
            #[inline(always)]
            || {
                let pairs = gradient.iter_mut().zip(values);
                match self {
                    Self::Relu => pairs.for_each(|(g, &y)| *g = if y > F::zero() { *g } else { F::zero() }),
                    Self::Tanh => pairs.for_each(|(g, &y)| *g *= F::one() - y * y),
                }
            },
        );
    }
}
