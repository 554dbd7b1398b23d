//! `dp help`: the help of a command, or the table of exit codes.

use clap::CommandFactory;

use crate::args::{Cli, HelpArgs};
use crate::exit_code::{self, ExitStatus};
use crate::failure::Failure;
use crate::output::Console;

/// Prints the help.
///
/// # Errors
/// An unknown topic, or standard output that cannot be written.
pub fn run(args: &HelpArgs, console: &Console) -> Result<(), Failure> {
    let mut root = Cli::command();
    root.build();
    let words: Vec<&str> = args.topic.iter().map(String::as_str).collect();
    let text = match words.as_slice() {
        ["exit-codes"] => exit_code::table(),
        words => {
            let mut command = &mut root;
            for (i, word) in words.iter().enumerate() {
                let mut names: Vec<&str> = if i == 0 { vec!["exit-codes"] } else { Vec::new() };
                names.extend(command.get_subcommands().map(clap::Command::get_name));
                let unknown = Failure::new(
                    ExitStatus::Usage,
                    "usage.unknown_topic",
                    format!("there is no help on `{}`", words.join(" ")),
                )
                .expected(names.join(", "));
                command = command.find_subcommand_mut(word).ok_or(unknown)?;
            }
            command.render_long_help().to_string()
        }
    };
    console.result(&serde_json::json!({ "schema": "dp.help/1", "text": text }), &text)
}
