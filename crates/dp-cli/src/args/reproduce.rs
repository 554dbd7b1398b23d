//! Flags of `dp reproduce`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `dp reproduce`.
#[derive(Debug, Clone, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  dp reproduce list
  dp reproduce bolt-on-3 thesis-4 --data data --out reproduction --quick
  dp reproduce renyi-3-1 renyi-5-3 renyi-table --data data --out reproduction --quick
  dp reproduce all --data data --out reproduction
  dp reproduce table --data data --out reproduction
  dp reproduce renyi-table --data data --set adult bank --out reproduction
  dp reproduce renyi-table --data data --set adult --algorithm auto dp-sgd --repetitions 3 --out reproduction
  dp reproduce renyi-6-3 --set made-up-784-lists --out reproduction
  dp reproduce export --data data --out folds

The files of the data sets are yours to provide: `dp reproduce list` names them. Every finished run is kept in runs.csv
in the output folder, so that an interrupted call continues where it stopped; pictures and tables are redrawn from it.
Runs are seeded by their names: anyone can repeat them, so they are not private releases."
)]
pub struct ReproduceArgs {
    /// List figures and tables, or export the prepared rows.
    #[command(subcommand)]
    pub job: Option<ReproduceJob>,
    /// The figures, or `all`
    #[arg(value_name = "FIGURE", required = true)]
    pub figures: Vec<String>,
    /// Data, effort and output.
    #[command(flatten)]
    pub run: ReproduceRunArgs,
}

/// The subcommands of `dp reproduce`.
#[derive(Debug, Clone, Subcommand)]
pub enum ReproduceJob {
    /// List the figures, their numbers of runs, and the files of their data sets
    List(ReproduceListArgs),
    /// Compare all algorithms on all data sets: accuracy, objective, time
    Table(ReproduceRunArgs),
    /// Write the prepared rows of the data sets as CSV, for other programs
    Export(ReproduceExportArgs),
}

/// Arguments of `dp reproduce list`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "Example:\n  dp reproduce list --data data")]
pub struct ReproduceListArgs {
    /// Folder of the data sets, to check which files are missing
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Fewer repetitions and coarser grids
    #[arg(long)]
    pub quick: bool,
}

/// Data, effort and output.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "Example:\n  dp reproduce table --data data --out reproduction --quick")]
pub struct ReproduceRunArgs {
    /// Folder of the data sets
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = "Data")]
    pub data: PathBuf,
    /// Only these data sets; earlier results of the others are still shown
    #[arg(long, value_name = "NAME", num_args = 1.., help_heading = "Data")]
    pub set: Vec<String>,
    /// Only these algorithms; earlier results of the others are still shown
    #[arg(long, value_name = "NAME", num_args = 1.., help_heading = "Effort")]
    pub algorithm: Vec<String>,
    /// Folder of the results, created if it does not exist; finished runs in it are not repeated
    #[arg(long, value_name = "DIR", default_value = "reproduction", help_heading = "Output")]
    pub out: PathBuf,
    /// Fewer repetitions and coarser grids: minutes instead of hours
    #[arg(long, help_heading = "Effort")]
    pub quick: bool,
    /// Repetitions of every point [default: as in the papers, 3 with --quick]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Effort")]
    pub repetitions: Option<u32>,
    /// List what would be run, read and written, without running
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
}

/// Arguments of `dp reproduce export`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "Example:\n  dp reproduce export --data data --out folds")]
pub struct ReproduceExportArgs {
    /// Folder of the data sets
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub data: PathBuf,
    /// Folder of the CSV files; created if it does not exist
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Only these data sets [default: all whose files exist]
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub set: Vec<String>,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    /// List what would be read and written, without reading a record
    #[arg(long)]
    pub dry_run: bool,
}
