//! The `dp` command as a library: the arguments ([`args`]) become a checked configuration, which a function of [`commands`]
//! runs. Results go to standard output, everything else to standard error, and every error is a [`failure::Failure`].
//!
//! The binary only calls [`main`]. Programs that need the functions of the command use the crate `dp`.
#![forbid(unsafe_code)]

pub mod args;
pub mod atomic;
mod chart;
pub mod commands;
pub mod demo;
pub mod exit_code;
pub mod failure;
pub mod files;
pub mod input;
mod interrupt;
pub mod limit;
pub mod output;
pub mod progress;
pub mod protection;
pub mod signature;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use args::{Cli, Command, Parsed, Refused};
use exit_code::ExitStatus;
use failure::Failure;
use output::Console;

/// Runs `dp` with the arguments of the process.
pub fn main() -> ExitCode {
    interrupt::install();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    run_arguments(&arguments).into()
}

/// Runs `dp` with `arguments`, the first of which is the program name.
pub fn run_arguments(arguments: &[OsString]) -> ExitStatus {
    // Memory may run out, or a signal arrive, before the arguments are parsed.
    let asks_for_json = arguments.iter().any(|argument| argument == "--json");
    interrupt::await_json(asks_for_json);
    let cli = match args::parse(arguments) {
        Ok(Parsed::Run(cli)) => cli,
        Ok(Parsed::Config(text, console)) => {
            return match console.result(&serde_json::json!({ "schema": "dp.config/1", "text": text }), &text) {
                Ok(()) => ExitStatus::Success,
                Err(failure) => {
                    console.failure(&failure);
                    failure.exit
                }
            };
        }
        Err(Refused::Clap(error)) => return refuse_arguments(&error, asks_for_json),
        Err(Refused::Config(failure)) => {
            Console { json: asks_for_json, ..Console::default() }.failure(&failure);
            return failure.exit;
        }
    };
    let console = cli.global.console();
    interrupt::await_json(console.json);
    match run(&cli, &console) {
        Ok(status) => status,
        Err(failure) if failure.is_closed_pipe() && !cli.command.result_is_on_stdout() => ExitStatus::Success,
        Err(failure) => {
            interrupt::give_way();
            console.failure(&failure);
            failure.exit
        }
    }
}

fn run(cli: &Cli, console: &Console) -> Result<ExitStatus, Failure> {
    match &cli.command {
        Command::Account(args) => return commands::account::execute(args, &cli.global, console),
        Command::Audit(args) => return commands::audit::execute(args, &cli.global, console),
        Command::Check(args) => return commands::check::execute(args, &cli.global, console),
        Command::Explain(args) => commands::explain::run(args, console),
        Command::Plan(args) => commands::plan::execute(args, console),
        Command::ExplainModel(args) => commands::explain_model::execute(args, console),
        Command::Completions(args) => commands::completions::run(args, console),
        Command::Man(args) => commands::man::run(args, console),
        Command::Help(args) => commands::help::run(args, console),
        Command::Schema(args) => commands::schema::execute(args, &cli.global, console),
        Command::Train(args) => commands::train::execute(args, &cli.global, console),
        Command::Tune(args) => commands::tune::execute(args, &cli.global, console),
        Command::Evaluate(args) => commands::evaluate::execute(args, &cli.global, console),
        Command::Predict(args) => commands::predict::execute(args, &cli.global, console),
        Command::Rank(args) => commands::rank::execute(args, &cli.global, console),
        Command::Demo(args) => demo::execute(args, &cli.global, console),
        Command::Reproduce(args) => commands::reproduce::execute(args, &cli.global, console),
        Command::Sign(args) => commands::sign::execute(args, console),
        Command::Verify(args) => commands::verify::execute(args, console),
    }
    .map(|()| ExitStatus::Success)
}

/// Prints help and version to standard output with exit code 0, usage errors to standard error (or standard output as JSON)
/// with 2.
fn refuse_arguments(error: &clap::Error, asks_for_json: bool) -> ExitStatus {
    let help_or_version = !error.use_stderr();
    let json = Console { json: true, ..Console::default() };
    match (asks_for_json, help_or_version) {
        (true, true) => {
            let text = error.render().to_string();
            // A closed pipe ends quietly.
            let _ = json.result(&serde_json::json!({ "schema": "dp.help/1", "text": text }), &text);
        }
        (true, false) => json.failure(&misunderstood(&error.render().to_string())),
        (false, true) => {
            let printed = error.print().and_then(|()| std::io::stdout().flush());
            let failure = printed.map_err(|error| output::write_failure(&error, output::STANDARD_OUTPUT));
            if let Err(failure) = failure
                && failure.code != output::CLOSED_PIPE
            {
                Console::default().failure(&failure);
                return ExitStatus::Failed;
            }
        }
        (false, false) => {
            let _ = error.print();
        }
    }
    if help_or_version { ExitStatus::Success } else { ExitStatus::Usage }
}

/// Converts clap's error text: the first paragraph is the message, a tip is the remedy.
fn misunderstood(text: &str) -> Failure {
    let first = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect::<Vec<_>>().join(" ");
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let usage = text.lines().find_map(|line| line.strip_prefix("Usage: "));
    let help = match (tip, usage) {
        (Some(tip), _) => tip.to_owned(),
        (None, Some(usage)) => format!("usage: {usage}"),
        (None, None) => "see `dp help`".to_owned(),
    };
    Failure::new(ExitStatus::Usage, "usage.arguments", first.trim_start_matches("error: ")).help(help)
}
