//! `--help` of the commands with the most flags shows those that a newcomer needs; `dp help` and the manual show all.

use std::ffi::OsString;

use clap::{Arg, CommandFactory, FromArgMatches};
use dp_optim::catalogue::PARAMETERS;

use super::Cli;

/// The flags of `dp train` that `--help` shows.
const SHOWN: &[&str] = &[
    "data",
    "format",
    "table",
    "label",
    "positive",
    "classes",
    "label-range",
    "schema",
    "schema-from-data",
    "epsilon",
    "delta",
    "unit",
    "max-rows",
    "adjacency",
    "algorithm",
    "loss",
    "threshold",
    "anyway",
    "out",
    "report",
    "force",
    "dry-run",
    "n",
];

/// Parses the arguments, the first of which is the program name.
///
/// # Errors
/// As `clap`, requests for help and for the version included.
pub fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = with_short_help(Cli::command());
    let matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Hides the flags that a newcomer does not need.
fn with_short_help(command: clap::Command) -> clap::Command {
    let train = command.find_subcommand("train");
    let of_train: Vec<String> =
        train.iter().flat_map(|train| train.get_arguments()).map(|arg| arg.get_id().to_string()).collect();
    let is_hidden = move |arg: &Arg, tuned: bool| {
        let name = arg.get_long().unwrap_or_default();
        let is_tuned = tuned && PARAMETERS.iter().any(|parameter| parameter.name == name && parameter.tuned);
        of_train.iter().any(|id| arg.get_id() == id) && !SHOWN.contains(&name) && !is_tuned
    };
    let shortened = |name: &'static str| {
        let is_hidden = is_hidden.clone();
        move |command: clap::Command| {
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let more = format!(
                "{examples}\n\n`dp help {name}` lists all flags, `dp help algorithms` the algorithms, `dp help algorithm NAME` the \
                 settings of one."
            );
            command.mut_args(|arg| if is_hidden(&arg, name == "tune") { arg.hide(true) } else { arg }).after_help(more)
        }
    };
    command.mut_subcommand("train", shortened("train")).mut_subcommand("tune", shortened("tune"))
}
