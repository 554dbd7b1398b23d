//! The algorithm and its privacy budget, as flags say them.

use dp::training::LARGEST_SUGGESTED_DELTA;
use dp_accountant::{Delta, Epsilon};
use dp_optim::recipes::Budget;

use super::algorithm::PrivateAlgorithm;
use crate::args::{self, TrainArgs};
use crate::failure::Failure;
use crate::input::{meaningless, missing};

/// The algorithm.
#[derive(Debug, Clone, Copy)]
pub enum Method {
    /// A private algorithm.
    Private {
        /// The algorithm.
        algorithm: PrivateAlgorithm,
        /// The privacy budget.
        budget: Budget,
        /// The neighbouring relation.
        adjacency: args::Adjacency,
    },
    /// The non-private baseline.
    NonPrivate,
}

/// Returns the requested budget; until the number of records is known, with a usual delta if it follows from that.
///
/// # Errors
/// `usage.missing`, `usage.value`.
pub(in crate::commands) fn budget(args: &TrainArgs, delta_is_suggested: bool) -> Result<Budget, Failure> {
    let Some(epsilon) = args.epsilon else {
        return Err(missing("--epsilon", "no privacy budget was given")
            .expected("a number greater than 0; 1 is a common choice, smaller is more private")
            .help("add --epsilon 1"));
    };
    let epsilon = Epsilon::new(epsilon).map_err(|error| {
        Failure::usage("--epsilon", error.to_string())
            .expected("a finite number, at least 2^-50 (about 1e-15)")
            .help("use --epsilon 1, say; smaller is more private")
    })?;
    let delta = args.delta.unwrap_or(if delta_is_suggested { LARGEST_SUGGESTED_DELTA } else { 0.0 });
    let delta = Delta::new(delta).map_err(|error| {
        Failure::usage("--delta", error.to_string())
            .expected("a number in [0, 1), far below 1/n; 0 is pure differential privacy")
            .help("use --delta 1e-8, say, or omit it")
    })?;
    Ok(Budget { epsilon, delta })
}

/// Rejects flags that have no meaning without privacy.
///
/// # Errors
/// `usage.conflict`.
pub(in crate::commands) fn check_non_private(args: &TrainArgs) -> Result<(), Failure> {
    let flags = [
        ("--epsilon", args.epsilon.is_some()),
        ("--delta", args.delta.is_some_and(|delta| delta != 0.0)),
        ("--adjacency", args.adjacency.is_some()),
        ("--noise", args.noise.is_some()),
    ];
    meaningless(&flags, "without privacy").map_err(|failure| failure.help("omit it, or choose a private --algorithm"))
}

/// Returns the algorithm with its budget.
///
/// # Errors
/// `usage.*`.
pub(super) fn method(args: &TrainArgs) -> Result<Method, Failure> {
    let args::Algorithm::Private(entry) = args.algorithm() else {
        check_non_private(args)?;
        return Ok(Method::NonPrivate);
    };
    let algorithm = PrivateAlgorithm(entry);
    let adjacency = args.adjacency.unwrap_or_else(|| algorithm.usual_relation());
    Ok(Method::Private { algorithm, budget: budget(args, is_suggested(args))?, adjacency })
}

/// Returns whether delta follows from the number of records.
pub(super) fn is_suggested(args: &TrainArgs) -> bool {
    args.delta.is_none() && args.algorithm() == args::Algorithm::auto()
}
