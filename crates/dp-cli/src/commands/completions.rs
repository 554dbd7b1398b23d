//! `dp completions`: a completion script for a shell.

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::failure::Failure;
use crate::output::write_stdout;

/// Prints the script.
///
/// # Errors
/// stdout cannot be written.
pub fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "dp", &mut script);
    write_stdout(&script, b"")
}
