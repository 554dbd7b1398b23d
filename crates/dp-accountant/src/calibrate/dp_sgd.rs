//! Calibration of DP-SGD (Poisson-sampled Gaussian steps), with a good initial guess.

use super::search::{FROM_A_GUESS, Start};
use super::{Calibrated, Calibration, MOST_STEPS};
use crate::error::Error;
use crate::event::DpEvent;
use crate::gaussian;
use crate::params::{NoiseMultiplier, SamplingRate};

/// The parameters of a DP-SGD training: Poisson batches, a sum of clipped gradients, Gaussian noise.
///
/// # Privacy
/// The guarantee holds under add/remove: see [`DpEvent::PoissonSampled`]. The noise multiplier is the noise's standard deviation
/// over the clipping norm.
///
/// # Examples
/// ```
/// use dp_accountant::calibrate::{Calibration, DpSgd, Evaluator};
/// use dp_accountant::{Delta, Epsilon, NoiseMultiplier, SamplingRate};
///
/// let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-5)?);
/// let (rate, steps) = (SamplingRate::new(0.01)?, 10_000);
/// let calibration = Calibration::new(epsilon, delta).with_evaluator(Evaluator::Renyi);
/// let found = calibration.dp_sgd_noise_multiplier(rate, steps)?;
/// assert!((found.value - 4.125238).abs() < 1e-5);
///
/// let plan = DpSgd { noise_multiplier: NoiseMultiplier::new(found.value)?, sampling_rate: rate, steps };
/// assert!(Evaluator::Renyi.epsilon(&plan.event(), delta)? <= 1.0);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DpSgd {
    /// Standard deviation of the noise over the clipping norm.
    pub noise_multiplier: NoiseMultiplier,
    /// Probability that a record is in a batch.
    pub sampling_rate: SamplingRate,
    /// Number of batches.
    pub steps: u64,
}

/// Least noise multiplier of the search: with it, a single batch costs an epsilon of 500,000.
const LEAST_MULTIPLIER: f64 = 1e-3;

impl DpSgd {
    /// Returns the event of the training.
    pub fn event(&self) -> DpEvent {
        event(self.noise_multiplier.get(), self.sampling_rate.get(), self.steps)
    }
}

fn event(std_dev: f64, sampling_rate: f64, count: u64) -> DpEvent {
    let step = DpEvent::Gaussian { std_dev, sensitivity: 1.0 };
    let step = DpEvent::PoissonSampled { sampling_rate, event: Box::new(step) };
    DpEvent::SelfComposed { event: Box::new(step), count }
}

/// The searches start at the central-limit approximation: many steps are about `mu`-Gaussian-DP with
/// `mu^2 = q^2 T (e^(1/sigma^2) - 1)` (Bu, Dong, Long and Su 2020, "Deep learning with Gaussian differential privacy", Section
/// 3). It is close to the result but is no bound.
impl Calibration {
    /// Returns the least noise multiplier for `steps` batches of rate `sampling_rate`.
    ///
    /// # Errors
    /// Those of [`least_scale`](Self::least_scale).
    pub fn dp_sgd_noise_multiplier(&self, sampling_rate: SamplingRate, steps: u64) -> Result<Calibrated<f64>, Error> {
        let rate = sampling_rate.get();
        let guess = self.limit_mu().map(|mu| {
            let square = (mu * mu / (rate * rate * steps as f64)).ln_1p();
            // The derivative of ln mu with respect to ln sigma at that point.
            (square.sqrt().recip(), -square / -(-square).exp_m1())
        });
        let start = match (self.start, guess) {
            (None, Some((sigma, slope))) if sigma.is_normal() && slope.is_normal() => {
                Start { x: sigma.ln(), slope, reach: FROM_A_GUESS }
            }
            _ => Start { x: self.start_or(1.0)?.ln(), slope: -1.0, reach: FROM_A_GUESS },
        };
        self.scale_from(LEAST_MULTIPLIER, start, |sigma| event(sigma, rate, steps))
    }

    /// Returns the largest sampling rate for `steps` batches with noise of `noise_multiplier`.
    ///
    /// # Errors
    /// Those of [`largest_rate`](Self::largest_rate).
    pub fn dp_sgd_sampling_rate(
        &self,
        noise_multiplier: NoiseMultiplier,
        steps: u64,
    ) -> Result<Calibrated<f64>, Error> {
        let sigma = noise_multiplier.get();
        let guess = self.limit_mu().map(|mu| mu / (steps as f64 * (sigma * sigma).recip().exp_m1()).sqrt());
        self.or_near(guess, 1.0).largest_rate(|rate| event(sigma, rate, steps))
    }

    /// Returns the largest number of batches of rate `sampling_rate` with noise of `noise_multiplier`.
    ///
    /// # Errors
    /// Those of [`most_steps`](Self::most_steps).
    pub fn dp_sgd_steps(
        &self,
        noise_multiplier: NoiseMultiplier,
        sampling_rate: SamplingRate,
    ) -> Result<Calibrated<u64>, Error> {
        let (sigma, rate) = (noise_multiplier.get(), sampling_rate.get());
        let guess = self.limit_mu().map(|mu| mu * mu / (rate * rate * (sigma * sigma).recip().exp_m1()));
        self.or_near(guess, MOST_STEPS as f64).most_steps(|steps| event(sigma, rate, steps))
    }

    /// Returns the `mu` of Gaussian-DP that corresponds to the target.
    fn limit_mu(&self) -> Option<f64> {
        gaussian::noise_multiplier(self.target, self.delta).ok().map(|multiplier| multiplier.get().recip())
    }

    /// Starts the search near the guess, unless the caller chose a start.
    fn or_near(&self, guess: Option<f64>, most: f64) -> Self {
        let guess = guess.filter(|guess| guess.is_normal()).map(|guess| guess.min(most));
        Self { start: self.start.or(guess), ..*self }
    }
}
