//! Step sizes and averages as they were asked for.

use dp_losses::{Domain, L2};
use dp_optim::recipes::OutputNoise;
use dp_optim::{Averaging, Schedule};

use super::refusal::at_flag_of;
use crate::args;
use crate::commands::train::config::TrainConfig;
use crate::commands::train::settings::Settings;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::conflict;

/// Which iterates are released: the last one unless another average was asked for.
pub(super) fn averaging(settings: &Settings, n: u64, batch_size: u64, passes: u64) -> Averaging {
    let updates = n.div_ceil(batch_size.clamp(1, n.max(1))).saturating_mul(passes);
    match settings.averaging {
        None | Some(args::Averaging::Last) => Averaging::Last,
        Some(args::Averaging::Uniform) => Averaging::Uniform,
        Some(args::Averaging::Suffix) => Averaging::Suffix { updates: (updates / 2).max(1) },
        Some(args::Averaging::Polynomial) => Averaging::Polynomial,
    }
}

/// The law of the noise that was asked for: the least unless another.
pub(super) fn output_noise(settings: &Settings) -> OutputNoise {
    match settings.output_noise {
        None | Some(args::OutputNoise::Least) => OutputNoise::Least,
        Some(args::OutputNoise::LaplaceBall) => OutputNoise::LaplaceBall,
        Some(args::OutputNoise::Gaussian) => OutputNoise::Gaussian,
    }
}

/// Whether the noise is to be the paper's, of an algorithm that has one paper.
pub(super) fn as_published(settings: &Settings) -> Result<bool, Failure> {
    match settings.variant {
        None => Ok(false),
        Some(args::Variant::Published) => Ok(true),
        Some(_) => Err(conflict("--variant", "this --variant belongs to obj-pert").expected("published")),
    }
}

/// Curvature bound of loss and regulariser on rows of norm 1.
fn smoothness(config: &TrainConfig, lambda: f64) -> Result<f64, Failure> {
    let refused = |error: dp_losses::Error| {
        let failure = Failure::new(ExitStatus::Privacy, "privacy.refused", error.to_string());
        match error {
            dp_losses::Error::OutOfRange { name, range, .. } => {
                at_flag_of(name, failure.expected(format!("{name} in {range}")))
            }
            _ => failure.at_flag("--loss"),
        }
    };
    let mut domain = Domain::unit_rows();
    if let Some(radius) = config.settings.radius {
        domain = domain.with_radius(radius).map_err(refused)?;
    }
    Ok(config.loss.constants(L2::new(lambda).map_err(refused)?, &domain).smoothness)
}

/// The schedule that was asked for; `None` leaves it to the recipe.
pub(super) fn schedule(config: &TrainConfig, lambda: f64, n: u64) -> Result<Option<Schedule>, Failure> {
    let settings = &config.settings;
    let smoothness = smoothness(config, lambda)?;
    let examples = n.max(1) as f64;
    let takes_step = matches!(settings.schedule, None | Some(args::Schedule::Constant | args::Schedule::InverseSqrt));
    if settings.step_size.is_some() && !takes_step {
        return Err(conflict("--step-size", "this --schedule sets its own step size"));
    }
    Ok(match (settings.schedule, settings.step_size) {
        (None, None) => None,
        (None | Some(args::Schedule::Constant), Some(step)) => Some(Schedule::Constant { step }),
        (Some(args::Schedule::Constant), None) => {
            Some(Schedule::Constant { step: (1.0 / examples.sqrt()).min(1.0 / smoothness) })
        }
        (Some(args::Schedule::InverseSqrt), step) => {
            Some(Schedule::InverseSqrt { step: step.unwrap_or(1.0 / smoothness) })
        }
        (Some(args::Schedule::Decreasing), _) => Some(Schedule::Decreasing { smoothness, examples, power: 0.5 }),
        (Some(args::Schedule::SquareRoot), _) => Some(Schedule::SquareRoot { smoothness, examples, power: 0.5 }),
        (Some(args::Schedule::StronglyConvex), _) if lambda > 0.0 => {
            Some(Schedule::StronglyConvex { smoothness, strong_convexity: lambda })
        }
        (Some(args::Schedule::Halving), _) => {
            return Err(conflict("--schedule", "--schedule halving belongs to snowball-sgd"));
        }
        (Some(args::Schedule::PerPass | args::Schedule::Restart), _) => {
            return Err(conflict("--schedule", "steps that fall from pass to pass belong to rsgd-ar and nsgd"));
        }
        (Some(args::Schedule::StronglyConvex), _) => {
            return Err(conflict("--schedule", "--schedule strongly-convex needs --lambda"));
        }
    })
}
