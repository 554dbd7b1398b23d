//! Noise as published where that is too little, to test the claims that rest on it.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{EventLog, ReplaceOne};
use dp_losses::{Domain, L2, LossBounds};
use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, LaplaceBall, Mechanism, SeededRng};
use dp_optim::Schedule;
use dp_optim::growth::as_published;

use crate::setting::{Privacy, Setting};

/// Returns the sensitivity used by Wu et al. 2017, with their constants: `L = 1 + λR = 2` where `R = 1/λ`.
///
/// # Formula
/// ```text
/// convex           2 k L η / b           η = 1/√n       (sound where b divides n)
/// strongly convex  2 L / (λ n) / b                      (b times too little, before L is compared with the true bound)
/// ```
pub(super) fn sensitivity(setting: &Setting, n: u64) -> f64 {
    let batch_size = setting.batch_size.min(n);
    if setting.lambda > 0.0 {
        as_published::strongly_convex_decreasing_with_batches(n, batch_size, setting.lambda, 2.0 * 2.0)
    } else {
        let step = (n as f64).sqrt().recip();
        as_published::convex_constant_with_partial_batch(setting.passes, step, batch_size, 2.0)
    }
}

/// Returns the step sizes of their experiments, with their smoothness.
pub(super) fn schedule(setting: &Setting, n: u64) -> Result<Schedule, dp_optim::Error> {
    if setting.lambda == 0.0 {
        return Ok(Schedule::Constant { step: (n as f64).sqrt().recip() });
    }
    let regulariser = L2::new(setting.lambda)?;
    let smoothness = setting.loss.data_constants_of_the_papers(&Domain::unit_rows()).smoothness + regulariser.lambda();
    Ok(Schedule::StronglyConvex { smoothness, strong_convexity: setting.lambda })
}

/// Draws noise for `sensitivity` alone: a release of zeros, which have any sensitivity. Added to a model with a larger true
/// sensitivity, it does not give the claimed protection, which is intended here.
pub(super) fn noise(
    privacy: Privacy,
    delta: f64,
    classes: f64,
    sensitivity: f64,
    dim: usize,
    rng: &mut SeededRng,
) -> Result<Vec<f64>, dp_mechanisms::Error> {
    let mut log = EventLog::<ReplaceOne>::new();
    let zeros = vec![0.0; dim];
    let Some(epsilon) = privacy.epsilon().map(|epsilon| epsilon / classes) else { return Ok(zeros) };
    let claimed = L2Sensitivity::new(sensitivity)?;
    let zeros = Bounded::with_proven_sensitivity(zeros, claimed);
    let released = if delta > 0.0 {
        // The classical Gaussian mechanism, as in the paper.
        let std_dev = sensitivity * (2.0 * (1.25 * classes / delta).ln()).sqrt() / epsilon;
        let gaussian = Gaussian::from_std_dev(claimed, std_dev)?.with_noise_mode(NoiseMode::Rounded)?;
        gaussian.release(zeros, &mut log, rng)?
    } else {
        let ball = LaplaceBall::from_scale(claimed, sensitivity / epsilon, dim as u64)?;
        ball.with_noise_mode(NoiseMode::Rounded)?.release(zeros, &mut log, rng)?
    };
    Ok(released.into_inner())
}
