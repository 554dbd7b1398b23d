//! `--dry-run` of the commands that write and spend nothing: what would be read and written, after all checks that
//! need no record. `dp train` has its own, which also says what a run would cost.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::atomic;
use crate::failure::Failure;
use crate::output::Console;

/// What a run would read and write.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Foreseen {
    /// The schema of the command's result.
    pub schema: &'static str,
    /// Always true.
    pub dry_run: bool,
    /// Files that would be read.
    pub reads: Vec<String>,
    /// Files that would be written; empty where the result goes to standard output.
    pub writes: Vec<String>,
}

impl Foreseen {
    /// Checks that each output could get its name, and lists inputs and outputs.
    ///
    /// # Errors
    /// `output.exists` and `output.write`, as the run itself would refuse.
    pub fn new(schema: &'static str, reads: &[&str], writes: &[&Path], replace: bool) -> Result<Self, Failure> {
        for path in writes {
            atomic::check(path, replace)?;
        }
        Ok(Self {
            schema,
            dry_run: true,
            reads: reads.iter().map(|&name| name.to_owned()).collect(),
            writes: writes.iter().map(|path| atomic::shown(path)).collect(),
        })
    }

    /// The same for files of a folder that is made if it is not there.
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

    /// Prints it.
    ///
    /// # Errors
    /// Standard output that cannot be written.
    pub fn print(&self, console: &Console) -> Result<(), Failure> {
        let reads = if self.reads.is_empty() { "nothing".to_owned() } else { self.reads.join(", ") };
        let writes = if self.writes.is_empty() { "standard output".to_owned() } else { self.writes.join(", ") };
        console.result(self, &format!("dry run: no record was read, nothing was written\nreads   {reads}\nwrites  {writes}\ncosts   no privacy"))
    }
}
