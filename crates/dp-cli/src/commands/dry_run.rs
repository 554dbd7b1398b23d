//! `--dry-run` of the commands that spend no privacy budget: the files that would be read and written, after all checks that
//! need no record. `dp train` has its own, which also states the cost of a run.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::atomic;
use crate::failure::Failure;
use crate::output::Console;

/// The inputs and outputs of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Foreseen {
    /// The schema of the command's result.
    pub schema: &'static str,
    /// Always true.
    pub dry_run: bool,
    /// Files that would be read.
    pub reads: Vec<String>,
    /// Files that would be written; empty if the result goes to standard output.
    pub writes: Vec<String>,
    /// For audits: what would be audited, with the number of runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audits: Vec<String>,
}

impl Foreseen {
    /// Checks that each output can be written, and lists inputs and outputs.
    ///
    /// # Errors
    /// `output.exists` and `output.write`, as in the run itself.
    pub fn new(schema: &'static str, reads: &[&str], writes: &[&Path], replace: bool) -> Result<Self, Failure> {
        for path in writes {
            atomic::check(path, replace)?;
        }
        Ok(Self {
            schema,
            dry_run: true,
            reads: reads.iter().map(|&name| name.to_owned()).collect(),
            writes: writes.iter().map(|path| atomic::shown(path)).collect(),
            audits: Vec::new(),
        })
    }

    /// Does the same for files in a folder that is created if missing.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn in_folder(schema: &'static str, folder: &Path, names: &[String], replace: bool) -> Result<Self, Failure> {
        let paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        let there: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let mut foreseen = Self::new(schema, &[], if folder.exists() { &there } else { &[] }, replace)?;
        foreseen.writes = paths.iter().map(|path| atomic::shown(path)).collect();
        Ok(foreseen)
    }

    /// Prints the result.
    ///
    /// # Errors
    /// Standard output that cannot be written.
    pub fn print(&self, console: &Console) -> Result<(), Failure> {
        let reads = if self.reads.is_empty() { "nothing".to_owned() } else { self.reads.join(", ") };
        let writes = if self.writes.is_empty() { "standard output".to_owned() } else { self.writes.join(", ") };
        let audits: String = self.audits.iter().map(|audit| format!("\naudits  {audit}")).collect();
        let head = "dry run: no record was read, nothing was written";
        console.result(self, &format!("{head}\nreads   {reads}\nwrites  {writes}{audits}\ncosts   no privacy"))
    }
}
