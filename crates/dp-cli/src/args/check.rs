//! Arguments of `dp check`.

use std::path::PathBuf;

use clap::Args;

use super::{FileName, InputArgs};

/// Arguments of `dp check`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  dp check --data people.csv --schema schema.toml
  dp check --data people.csv --schema schema.toml --fix-schema proposed.toml

Exits with 3 where training would refuse the records. Line numbers, cells and the proposal depend on the records: they
are for the curator.")]
pub struct CheckArgs {
    /// The records
    #[command(flatten)]
    pub input: InputArgs,
    /// The schema of the records, reviewed or not
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    pub schema: FileName,
    /// Output file of a proposed schema, for review: with formats, markers of missing values and categories as found in the
    /// records; ranges stay as they are
    #[arg(long, value_name = "FILE")]
    pub fix_schema: Option<PathBuf>,
    /// Replace an existing output file
    #[arg(long, requires = "fix_schema")]
    pub force: bool,
    /// List what would be read and written, without reading a record
    #[arg(long)]
    pub dry_run: bool,
}
