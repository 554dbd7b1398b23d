//! `dp help`: the help of a command, or the table of exit codes.

use clap::CommandFactory;

use crate::args::{Cli, HelpArgs};
use crate::exit_code::{self, ExitStatus};
use crate::failure::Failure;
use crate::output::Console;

/// Prints the help.
///
/// # Errors
/// The topic is unknown, or stdout cannot be written.
pub fn run(args: &HelpArgs, console: &Console) -> Result<(), Failure> {
    let mut root = Cli::command();
    root.build();
    let text = match args.topic.as_deref() {
        None => root.render_long_help().to_string(),
        Some("exit-codes") => exit_code::table(),
        Some(topic) => match root.find_subcommand_mut(topic) {
            Some(command) => command.render_long_help().to_string(),
            None => {
                let names: Vec<&str> = root.get_subcommands().map(clap::Command::get_name).collect();
                return Err(Failure::new(
                    ExitStatus::Usage,
                    "usage.unknown_topic",
                    format!("there is no help on `{topic}`"),
                )
                .expected(format!("exit-codes, {}", names.join(", "))));
            }
        },
    };
    console.result(&serde_json::json!({ "schema": "dp.help/1", "text": text }), &text)
}
