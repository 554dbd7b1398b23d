//! From settings and public numbers to a recipe; and the recipe's refusals in the words of the command line.

use dp_accountant::AdjacencyKind;
use dp_losses::{Domain, L2};
use dp_optim::defaults::{BASELINE_LAMBDA, Defaults, passes_to_converge};
use dp_optim::growth::Arithmetic;
use dp_optim::recipes::non_private::NonPrivateDerivation;
use dp_optim::recipes::{Algorithm, BoltOn, Budget, Stopping};
use dp_optim::{Averaging, Error, FloatKind, Schedule};

use super::config::{Settings, TrainConfig};
use crate::args;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::conflict;

/// The public shape of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) n: u64,
    pub(super) dim: u64,
    /// Whether rows are stored sparse, which follows from the schema.
    pub(super) sparse: bool,
}

/// The private recipe: what was asked for, and for the rest what is recommended for these public numbers.
pub(super) fn bolt_on(
    config: &TrainConfig,
    algorithm: Algorithm,
    budget: Budget,
    relation: AdjacencyKind,
    shape: Shape,
) -> Result<BoltOn, Failure> {
    let settings = &config.settings;
    let refused = |error: Error| refusal(&error);
    let defaults = Defaults::new(config.loss, shape.n, shape.dim, budget, relation).map_err(refused)?;
    let mut recipe = defaults.recipe(algorithm).map_err(refused)?;
    recipe.lambda = settings.lambda.unwrap_or(recipe.lambda);
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    recipe.passes = match (settings.passes, algorithm) {
        (Some(passes), _) => passes,
        (None, Algorithm::Convex) => recipe.passes,
        (None, Algorithm::StronglyConvex) => {
            passes_to_converge(config.loss, recipe.lambda, shape.n, recipe.batch_size).map_err(refused)?
        }
    };
    recipe.radius = settings.radius;
    recipe.order = settings.order.unwrap_or(recipe.order);
    recipe.stopping = settings.stopping.unwrap_or(recipe.stopping);
    recipe.noise_mode = config.noise;
    recipe.float = config.float;
    recipe.arithmetic = arithmetic(shape);
    recipe.averaging = averaging(settings, shape.n, recipe.batch_size, recipe.passes);
    recipe.schedule = match (schedule(config, recipe.lambda, shape.n)?, algorithm) {
        (Some(schedule), _) => Some(schedule),
        (None, Algorithm::Convex) => {
            Some(defaults.schedule(recipe.passes, recipe.batch_size, recipe.lambda).map_err(refused)?)
        }
        (None, Algorithm::StronglyConvex) => None,
    };
    Ok(recipe)
}

/// The baseline without privacy.
pub(super) fn non_private(config: &TrainConfig, shape: Shape) -> Result<NonPrivateDerivation, Failure> {
    let settings = &config.settings;
    let mut recipe = NonPrivateDerivation::new(config.loss, settings.lambda.unwrap_or(BASELINE_LAMBDA));
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    recipe.passes = match settings.passes {
        Some(passes) => passes,
        None if recipe.lambda > 0.0 => passes_to_converge(config.loss, recipe.lambda, shape.n, recipe.batch_size)
            .map_err(|error| refusal(&error))?,
        None => recipe.passes,
    };
    recipe.radius = settings.radius;
    recipe.arithmetic = arithmetic(shape);
    recipe.averaging = averaging(settings, shape.n, recipe.batch_size, recipe.passes);
    recipe.schedule = schedule(config, recipe.lambda, shape.n)?;
    if settings.order.is_some() {
        return Err(conflict("--order", "--order has no meaning without privacy"));
    }
    if let Some(Stopping::CertifiedMinimiser { .. }) = settings.stopping {
        if !(recipe.lambda > 0.0) {
            return Err(conflict("--stop", "--stop certified needs --lambda"));
        }
        recipe.minimiser_within = Some(1e-3);
    }
    if config.float == FloatKind::F32 && recipe.minimiser_within.is_some() {
        return Err(conflict("--stop", "single precision cannot certify a minimiser"));
    }
    Ok(recipe)
}

/// How the iterate is carried: added to in place where rows are sparse.
fn arithmetic(shape: Shape) -> Arithmetic {
    if shape.sparse { Arithmetic::Scaled } else { Arithmetic::Buffered }
}

fn averaging(settings: &Settings, n: u64, batch_size: u64, passes: u64) -> Averaging {
    let updates = n.div_ceil(batch_size.clamp(1, n.max(1))).saturating_mul(passes);
    match settings.averaging {
        None | Some(args::Averaging::Last) => Averaging::Last,
        Some(args::Averaging::Uniform) => Averaging::Uniform,
        Some(args::Averaging::Suffix) => Averaging::Suffix { updates: (updates / 2).max(1) },
        Some(args::Averaging::Polynomial) => Averaging::Polynomial,
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
            _ => failure,
        }
    };
    let mut domain = Domain::unit_rows();
    if let Some(radius) = config.settings.radius {
        domain = domain.with_radius(radius).map_err(refused)?;
    }
    Ok(config.loss.constants(L2::new(lambda).map_err(refused)?, &domain).smoothness)
}

/// The schedule that was asked for; `None` leaves it to the recipe.
fn schedule(config: &TrainConfig, lambda: f64, n: u64) -> Result<Option<Schedule>, Failure> {
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
        (Some(args::Schedule::StronglyConvex), _) => {
            return Err(conflict("--schedule", "--schedule strongly-convex needs --lambda"));
        }
    })
}

/// A refusal of the recipe in the words of the command line.
pub(in crate::commands) fn refusal(error: &Error) -> Failure {
    let message = error.to_string();
    let privacy = |message: String| Failure::new(ExitStatus::Privacy, "privacy.refused", message);
    match error {
        Error::OutOfRange { name, range, .. } => {
            at_flag_of(name, privacy(message).expected(format!("{name} in {range}")))
        }
        Error::Count { name, range, .. } => at_flag_of(name, privacy(message).expected(format!("{name} {range}"))),
        Error::Adjacency { .. } => Failure::new(ExitStatus::Privacy, "privacy.adjacency", message),
        Error::Interrupted | Error::Source(_) | Error::Shape { .. } | Error::FloatKind { .. } => {
            Failure::new(ExitStatus::Failed, "train.failed", message).help("nothing was released; try again")
        }
        Error::Mechanism(dp_mechanisms::Error::RandomSource(_)) => {
            Failure::new(ExitStatus::Failed, "train.failed", message)
                .help("the system gives no random numbers, so there can be no noise; nothing was released")
        }
        _ => privacy(message).help("the message names what has to change; nothing was released"),
    }
}

/// Names the flag that sets the parameter, where one does.
fn at_flag_of(name: &str, failure: Failure) -> Failure {
    match flag_of(name) {
        Some(flag) => failure.at_flag(flag).help(format!("change {flag}; nothing was released")),
        None => failure,
    }
}

/// The flag that sets a parameter of the recipe.
fn flag_of(name: &str) -> Option<&'static str> {
    match name {
        "lambda" => Some("--lambda"),
        "passes" => Some("--passes"),
        "batch size" => Some("--batch-size"),
        "radius" => Some("--radius"),
        "step size" => Some("--step-size"),
        "epsilon" => Some("--epsilon"),
        "delta" => Some("--delta"),
        _ => None,
    }
}
