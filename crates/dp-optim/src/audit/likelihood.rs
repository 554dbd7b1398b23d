//! How likely a released model is under each of the two data sets: the attacker's best score.

use crate::recipes::bolt_on::NoiseScale;

/// The law of a released model: noise around one of a few centres, one for each place that the canary may have.
#[derive(Debug, Clone)]
pub(super) struct Law {
    noise: NoiseScale,
    /// Logarithms of the places' weights, and the models without noise.
    centres: Vec<(f64, Vec<f64>)>,
}

impl Law {
    pub(super) fn new(noise: NoiseScale, centres: impl IntoIterator<Item = (f64, Vec<f64>)>) -> Self {
        Self { noise, centres: centres.into_iter().map(|(weight, centre)| (weight.ln(), centre)).collect() }
    }

    /// The logarithm of the density at `released`, up to a constant that is the same on both sides.
    pub(super) fn log_density(&self, released: &[f64]) -> f64 {
        let terms = || {
            self.centres.iter().map(|(log_weight, centre)| {
                let squared: f64 = released.iter().zip(centre).map(|(y, c)| (y - c) * (y - c)).sum();
                log_weight
                    - match self.noise {
                        NoiseScale::LaplaceBall { scale } => squared.sqrt() / scale,
                        NoiseScale::Gaussian { std_dev } | NoiseScale::HiddenPositionGaussian { std_dev } => {
                            squared / (2.0 * std_dev * std_dev)
                        }
                    }
            })
        };
        log_sum_exp(terms())
    }
}

/// `ln Σ exp`; of numbers none of which is finite the largest.
pub(super) fn log_sum_exp(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() {
        return largest;
    }
    largest + logs.map(|log| (log - largest).exp()).sum::<f64>().ln()
}
