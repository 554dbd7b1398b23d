//! Converts errors of the library to failures of the command line.

use dp_data::SourceError;
use dp_optim::Error;

use dp::TrainError;

use crate::args::with_dashes;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::conflict;

/// Converts an error of a recipe to a failure that names the flag.
pub(in crate::commands) fn refusal(error: &Error) -> Failure {
    let message = error.to_string();
    let privacy = |message: String| Failure::new(ExitStatus::Privacy, "privacy.refused", message);
    match error {
        Error::OutOfRange { name, range, .. } => {
            at_flag_of(name, privacy(message).expected(format!("{name} in {range}")))
        }
        Error::Count { name, range, .. } => at_flag_of(name, privacy(message).expected(format!("{name} {range}"))),
        Error::Setting { name, why, expected, help } => {
            let mut failure = conflict(&format!("--{name}"), with_dashes(why));
            if let Some(expected) = expected {
                failure = failure.expected(with_dashes(expected));
            }
            match help {
                Some(help) => failure.help(with_dashes(help)),
                None => failure,
            }
        }
        Error::NotProved { recipe, why } => not_proved(recipe, why),
        Error::StepTooLong { .. } => at_flag_of("step size", privacy(message)),
        Error::Loss(dp_losses::Error::OutOfRange { name, range, .. }) => {
            at_flag_of(name, privacy(message).expected(format!("{name} in {range}")))
        }
        Error::Mechanism(dp_mechanisms::Error::OutOfRange { name, .. }) => at_flag_of(name, privacy(message)),
        Error::Loss(_) => {
            privacy(message).at_flag("--loss").help("change what the message names; nothing was released")
        }
        // No noise reaches the budget, or the accountant has no theorem for it.
        Error::Accountant(_) => {
            privacy(message).at_flag("--epsilon").help("change --epsilon or --delta; nothing was released")
        }
        Error::Adjacency { .. } => Failure::new(ExitStatus::Privacy, "privacy.adjacency", message),
        Error::Source(SourceError::Memory(error)) => Failure::from(*error),
        Error::State { .. } => Failure::new(ExitStatus::Input, "checkpoint.format", message).at_flag("--checkpoint"),
        Error::Interrupted | Error::Source(_) | Error::Shape { .. } | Error::FloatKind { .. } => {
            Failure::new(ExitStatus::Failed, "train.failed", message).help("nothing was released; try again")
        }
        Error::Mechanism(dp_mechanisms::Error::RandomSource(_)) => {
            Failure::new(ExitStatus::Failed, "train.failed", message)
                .help("the system gives no random numbers, so there can be no noise; nothing was released")
        }
        _ => privacy(message).at_flag(ALGORITHM).help("change what the message names; nothing was released"),
    }
}

/// Converts an error of a theorem to a failure. It names no recipe: that is often a part of the algorithm that was asked for.
fn not_proved(recipe: &str, why: &str) -> Failure {
    let message = match (why.strip_prefix("it "), why.strip_prefix("its ")) {
        (Some(rest), _) => format!("the algorithm {rest}"),
        (_, Some(rest)) => format!("the algorithm's {rest}"),
        _ => why.to_owned(),
    };
    let (flag, help) = match recipe {
        _ if why.ends_with("needs delta > 0") => ("--delta", "add --delta, such as --delta 1e-6"),
        _ if why.contains("for several classes, ") => (ALGORITHM, "add --one-vs-all composed"),
        "at-base-rate" => ("--threshold", "omit --threshold"),
        "one-vs-all" => ("--one-vs-all", "change what the message names"),
        _ => (ALGORITHM, "change what the message names"),
    };
    let failure = Failure::new(ExitStatus::Privacy, "privacy.refused", message);
    failure.at_flag(flag).help(format!("{help}; nothing was released"))
}

impl From<TrainError> for Failure {
    fn from(error: TrainError) -> Self {
        match error {
            TrainError::Recipe(error) => refusal(&error),
            TrainError::Data(error) => Self::from_data(&error),
            TrainError::Model(error) => error.into(),
            other => Self::new(ExitStatus::Privacy, "privacy.refused", other.to_string()).at_flag(ALGORITHM),
        }
    }
}

/// The flag to name if no other flag sets the parameter.
const ALGORITHM: &str = "--algorithm";

/// Names the flag that sets the parameter, or else the flag that selected the algorithm.
pub(super) fn at_flag_of(name: &str, failure: Failure) -> Failure {
    match flag_of(name) {
        Some(flag) => failure.at_flag(flag).help(format!("change {flag}; nothing was released")),
        None if name == "target bound" => {
            failure.at_flag(ALGORITHM).help("for several classes add --one-vs-all composed; nothing was released")
        }
        None => failure.at_flag(ALGORITHM).help("change what the message names; nothing was released"),
    }
}

/// Returns the flag that sets a parameter of the recipe.
fn flag_of(name: &str) -> Option<&'static str> {
    match name {
        "lambda" | "regularization" | "strong convexity" => Some("--lambda"),
        "passes" | "epochs" => Some("--passes"),
        "number of records" | "records" | "rows" => Some("--data"),
        "row norm" => Some("--row-norm"),
        "noise multiplier" => Some("--epsilon"),
        "passes between restarts" => Some("--restart-every"),
        "steps" => Some("--steps"),
        "batch size" => Some("--batch-size"),
        "clipping norm" => Some("--clip"),
        "momentum" => Some("--momentum"),
        "largest loss" => Some("--clip-loss"),
        "radius" => Some("--radius"),
        "step size" => Some("--step-size"),
        "gradient tolerance" => Some("--tolerance"),
        "share of the centre" => Some("--centre-share"),
        "rho" => Some("--rho"),
        "parties" => Some("--parties"),
        "epsilon" => Some("--epsilon"),
        "delta" => Some("--delta"),
        _ => None,
    }
}
