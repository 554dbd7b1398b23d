//! `--help` of the commands with the most flags shows those that a newcomer needs; `dp help` and the manual show all.

use std::ffi::OsString;

use clap::{Arg, CommandFactory, FromArgMatches};
use dp_optim::catalogue::PARAMETERS;

use super::{Cli, Command, config};
use crate::failure::Failure;
use crate::output::Console;

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

/// Parsed arguments.
pub enum Parsed {
    /// A command to run.
    Run(Box<Cli>),
    /// The flags as a file, to be printed.
    Config(String, Console),
}

/// Refused arguments.
pub enum Refused {
    /// As `clap` refuses them; also a request for help or for the version.
    Clap(clap::Error),
    /// The file of flags is wrong.
    Config(Failure),
}

/// Parses the arguments, the first of which is the program name, and the file of flags that they name.
///
/// # Errors
/// [`Refused`].
pub fn parse(arguments: &[OsString]) -> Result<Parsed, Refused> {
    let mut command = with_short_help(Cli::command());
    let (all, file) = config::with_config(&command, arguments).map_err(Refused::Config)?;
    let matches =
        command.try_get_matches_from_mut(&all).map_err(|error| config::refused(error, arguments, &all, file))?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| Refused::Clap(error.format(&mut command)))?;
    if cli.global.print_config && !matches!(cli.command, Command::Help(_)) {
        let printed = config::printed(&command, &matches).map_err(Refused::Config)?;
        return Ok(Parsed::Config(printed, cli.global.console()));
    }
    Ok(Parsed::Run(Box::new(cli)))
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
