//! Initial parameters from a public seed.

use chacha20::ChaCha20Rng;
use rand::{Rng, SeedableRng};

use crate::architecture::{Planned, Task};
use crate::float::Float;

/// The distribution of initial parameters. They never depend on data: a start that was computed from records would have to be
/// paid for.
///
/// Scales of group norm are 1 and its shifts 0 in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Initial {
    /// Weights and biases uniform in `±1/sqrt(fan_in)`, with `fan_in` the number of inputs of a unit. What PyTorch does if
    /// nothing else is asked for.
    #[default]
    Uniform,
    /// Weights normal with variance `2 / fan_in`, biases 0 (He et al., 2015, arXiv:1502.01852); for ReLU.
    KaimingNormal,
}

impl Initial {
    /// Draws the parameters of all layers, in double precision and then rounded.
    pub(crate) fn draw<F: Float>(self, plan: &[Planned], seed: u64) -> Vec<F> {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut parameters = Vec::new();
        for planned in plan.iter().filter(|planned| !planned.parameters.is_empty()) {
            let count = planned.parameters.len();
            match planned.task {
                Task::GroupNorm { .. } => {
                    parameters.extend((0..count).map(|j| if j < count / 2 { F::one() } else { F::zero() }));
                }
                _ => {
                    let fan_in = planned.fan_in() as f64;
                    let weights = count - planned.output.channels;
                    parameters.extend((0..count).map(|j| {
                        F::narrow(match self {
                            Self::Uniform => (2.0 * uniform(&mut rng) - 1.0) / fan_in.sqrt(),
                            Self::KaimingNormal if j < weights => normal(&mut rng) * (2.0 / fan_in).sqrt(),
                            Self::KaimingNormal => 0.0,
                        })
                    }));
                }
            }
        }
        parameters
    }
}

/// Returns a uniform number on `[0, 1)`, 53 bits.
fn uniform(rng: &mut ChaCha20Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns a standard normal number (Box and Muller).
fn normal(rng: &mut ChaCha20Rng) -> f64 {
    // 1 - uniform is positive.
    (-2.0 * (1.0 - uniform(rng)).ln()).sqrt() * (core::f64::consts::TAU * uniform(rng)).cos()
}
