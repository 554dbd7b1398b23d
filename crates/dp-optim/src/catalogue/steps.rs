//! Schedules, averages, sampling and noise as requested in the settings, common to several algorithms.

use dp_losses::{Domain, L2, LossKind};
use dp_mechanisms::clip::ClippingNorm;

use super::{Average, BatchSampling, NoiseLaw, Settings, Steps, Variant, conflict};
use crate::error::Error;
use crate::recipes::{OutputNoise, Sampling};
use crate::{Averaging, Schedule};

/// Returns the requested average; by default the last iterate. The suffix is half of the updates of these passes.
pub(super) fn averaging(settings: &Settings, n: u64, batch_size: u64, passes: u64) -> Averaging {
    let updates = n.div_ceil(batch_size.clamp(1, n.max(1))).saturating_mul(passes);
    match settings.averaging {
        None => Averaging::Last,
        Some(_) => averaging_or(settings, Averaging::Suffix { updates: (updates / 2).max(1) }),
    }
}

pub(super) fn sampling(settings: &Settings) -> Option<Sampling> {
    settings.sampling.map(|sampling| match sampling {
        BatchSampling::Poisson => Sampling::Poisson,
        BatchSampling::Fixed => Sampling::FixedSize,
        BatchSampling::Passes => Sampling::Passes,
    })
}

pub(super) fn clipping(settings: &Settings) -> Result<Option<ClippingNorm>, Error> {
    Ok(settings.clip.map(ClippingNorm::new).transpose()?)
}

/// Returns the requested average; by default `usual`, which is also the suffix.
pub(super) fn averaging_or(settings: &Settings, usual: Averaging) -> Averaging {
    match settings.averaging {
        None | Some(Average::Suffix) => usual,
        Some(Average::Last) => Averaging::Last,
        Some(Average::Uniform) => Averaging::Uniform,
        Some(Average::Polynomial) => Averaging::Polynomial,
        Some(Average::Exponential) => Averaging::Exponential { decay: 0.99 },
    }
}

/// Returns the requested law of the noise; by default the one with the least noise.
pub(super) fn output_noise(settings: &Settings) -> OutputNoise {
    match settings.output_noise {
        None | Some(NoiseLaw::Least) => OutputNoise::Least,
        Some(NoiseLaw::LaplaceBall) => OutputNoise::LaplaceBall,
        Some(NoiseLaw::Gaussian) => OutputNoise::Gaussian,
    }
}

/// Returns whether the published noise is requested, for an algorithm with one publication.
pub(super) fn as_published(settings: &Settings) -> Result<bool, Error> {
    match settings.variant {
        None => Ok(false),
        Some(Variant::Published) => Ok(true),
        Some(_) => Err(conflict("variant", "this `variant` belongs to obj-pert").expected("published")),
    }
}

/// Bounds the curvature of loss and regulariser on rows of norm 1.
fn smoothness(settings: &Settings, loss: LossKind, lambda: f64) -> Result<f64, Error> {
    let mut domain = Domain::unit_rows();
    if let Some(radius) = settings.radius {
        domain = domain.with_radius(radius)?;
    }
    Ok(loss.constants(L2::new(lambda)?, &domain).smoothness)
}

/// Returns the requested schedule; `None` uses the recipe's default.
pub(super) fn schedule(settings: &Settings, loss: LossKind, n: u64, lambda: f64) -> Result<Option<Schedule>, Error> {
    let smoothness = smoothness(settings, loss, lambda)?;
    let examples = n.max(1) as f64;
    let takes_step = matches!(settings.schedule, None | Some(Steps::Constant | Steps::InverseSqrt));
    if settings.step_size.is_some() && !takes_step {
        return Err(conflict("step-size", "this `schedule` sets its own step size"));
    }
    Ok(match (settings.schedule, settings.step_size) {
        (None, None) => None,
        (None | Some(Steps::Constant), Some(step)) => Some(Schedule::Constant { step }),
        (Some(Steps::Constant), None) => {
            Some(Schedule::Constant { step: (1.0 / examples.sqrt()).min(1.0 / smoothness) })
        }
        (Some(Steps::InverseSqrt), step) => Some(Schedule::InverseSqrt { step: step.unwrap_or(1.0 / smoothness) }),
        (Some(Steps::Decreasing), _) => Some(Schedule::Decreasing { smoothness, examples, power: 0.5 }),
        (Some(Steps::SquareRoot), _) => Some(Schedule::SquareRoot { smoothness, examples, power: 0.5 }),
        (Some(Steps::StronglyConvex), _) if lambda > 0.0 => {
            Some(Schedule::StronglyConvex { smoothness, strong_convexity: lambda })
        }
        (Some(Steps::Halving), _) => {
            return Err(conflict("schedule", "`schedule halving` belongs to snowball-sgd"));
        }
        (Some(Steps::PerPass | Steps::Restart), _) => {
            return Err(conflict("schedule", "steps that fall from pass to pass belong to rsgd-ar and nsgd"));
        }
        (Some(Steps::StronglyConvex), _) => {
            return Err(conflict("schedule", "`schedule strongly-convex` needs `lambda`"));
        }
    })
}
