//! `dp completions`: a completion script for a shell.

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::failure::Failure;
use crate::output::Console;

/// Prints the script.
///
/// # Errors
/// Standard output that cannot be written.
pub fn run(args: &CompletionsArgs, console: &Console) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "dp", &mut script);
    let script = String::from_utf8_lossy(&script);
    console.result(&serde_json::json!({ "schema": "dp.completions/1", "script": script }), &script)
}
