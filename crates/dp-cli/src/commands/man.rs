//! `dp man`: manual pages, one for `dp` and one for each command.

use clap::CommandFactory;

use crate::args::{Cli, ManArgs};
use crate::atomic;
use crate::failure::Failure;
use crate::output::{Console, write_failure};

/// Writes the pages into the folder.
///
/// # Errors
/// The folder cannot be made, a page cannot be written or exists already.
pub fn run(args: &ManArgs, console: &Console) -> Result<(), Failure> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).map_err(|error| write_failure(&error, &atomic::shown(folder)))?;
    let mut root = Cli::command();
    root.build();
    let mut written = vec![page(&root, folder, args.force)?];
    for command in root.get_subcommands() {
        written.push(page(command, folder, args.force)?);
    }
    let text: String = written.iter().map(|file| format!("{file}\n")).collect();
    console.result(&serde_json::json!({ "schema": "dp.man/1", "files": written }), &text)
}

/// Renders one page; returns where it lies.
fn page(command: &clap::Command, folder: &std::path::Path, force: bool) -> Result<String, Failure> {
    let manual = clap_mangen::Man::new(command.clone());
    let path = folder.join(manual.get_filename());
    let mut text = Vec::new();
    manual.render(&mut text).map_err(|error| write_failure(&error, &atomic::shown(&path)))?;
    atomic::write(&path, force, &text)?;
    Ok(atomic::shown(&path))
}
