//! `dp man`: manual pages for `dp` and for each command, including those under `dp account`.

use clap::CommandFactory;

use super::dry_run::Foreseen;
use crate::args::{Cli, ManArgs};
use crate::atomic;
use crate::failure::Failure;
use crate::output::{Console, write_failure};

/// Writes the pages into the folder.
///
/// # Errors
/// The folder cannot be created, or a page exists already or cannot be written.
pub fn run(args: &ManArgs, console: &Console) -> Result<(), Failure> {
    let folder = &args.folder;
    if args.dry_run {
        return dry_run(args)?.print(console);
    }
    std::fs::create_dir_all(folder).map_err(|error| write_failure(&error, &atomic::shown(folder)))?;
    let mut root = Cli::command();
    root.build();
    let mut written = Vec::new();
    for command in with_its_commands(&root) {
        written.push(page(command, folder, args.force)?);
    }
    let text: String = written.iter().map(|file| format!("{file}\n")).collect();
    console.result(&serde_json::json!({ "schema": "dp.man/1", "files": written }), &text)
}

/// Returns a command followed by all its subcommands.
fn with_its_commands(command: &clap::Command) -> Vec<&clap::Command> {
    std::iter::once(command).chain(command.get_subcommands().flat_map(with_its_commands)).collect()
}

/// Checks the names of the pages.
fn dry_run(args: &ManArgs) -> Result<Foreseen, Failure> {
    let mut root = Cli::command();
    root.build();
    let name = |command: &clap::Command| clap_mangen::Man::new(command.clone()).get_filename();
    let names: Vec<String> = with_its_commands(&root).into_iter().map(name).collect();
    Foreseen::in_folder("dp.man/1", &args.folder, &names, args.force)
}

/// Renders one page and returns its path.
fn page(command: &clap::Command, folder: &std::path::Path, force: bool) -> Result<String, Failure> {
    let manual = clap_mangen::Man::new(command.clone());
    let path = folder.join(manual.get_filename());
    let mut text = Vec::new();
    manual.render(&mut text).map_err(|error| write_failure(&error, &atomic::shown(&path)))?;
    atomic::write(&path, force, &text)?;
    Ok(atomic::shown(&path))
}
