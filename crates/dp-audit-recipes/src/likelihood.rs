//! The likelihood of a released model under each of the two data sets: the attacker's best score.

use dp_optim::recipes::bolt_on::OutputNoiseScale;

/// The law of a released model: noise around one of several centres, one for each possible position of the canary.
#[derive(Debug, Clone)]
pub(super) struct Law {
    noise: OutputNoiseScale,
    /// Logarithms of the positions' weights, and the models without noise.
    centres: Vec<(f64, Vec<f64>)>,
}

impl Law {
    pub(super) fn new(noise: OutputNoiseScale, centres: impl IntoIterator<Item = (f64, Vec<f64>)>) -> Self {
        Self { noise, centres: centres.into_iter().map(|(weight, centre)| (weight.ln(), centre)).collect() }
    }

    /// Returns the logarithm of the density at `released`, up to a constant common to both sides.
    pub(super) fn log_density(&self, released: &[f64]) -> f64 {
        let terms = || {
            self.centres.iter().map(|(log_weight, centre)| {
                let squared: f64 = released.iter().zip(centre).map(|(y, c)| (y - c) * (y - c)).sum();
                log_weight
                    - match self.noise {
                        OutputNoiseScale::LaplaceBall { scale } => squared.sqrt() / scale,
                        OutputNoiseScale::Gaussian { std_dev }
                        | OutputNoiseScale::HiddenPositionGaussian { std_dev } => squared / (2.0 * std_dev * std_dev),
                    }
            })
        };
        log_sum_exp(terms())
    }
}

/// Returns the log-likelihood ratio of a released model, neighbour against base.
pub(super) fn log_ratio([base, neighbour]: &[Law; 2], released: &[f64]) -> f64 {
    neighbour.log_density(released) - base.log_density(released)
}

/// Returns `ln Σ exp`; if no number is finite, the largest one.
pub(super) fn log_sum_exp(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() {
        return largest;
    }
    largest + logs.map(|log| (log - largest).exp()).sum::<f64>().ln()
}
