//! Where a training writes its model and its report.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::args::{GlobalArgs, TrainArgs};
use crate::atomic;
use crate::failure::Failure;
use crate::input::conflict;
use crate::output::{Console, write_stdout};

/// The destination of model and certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl Target {
    /// Checks the outputs, model and report.
    ///
    /// # Errors
    /// `usage.conflict`, `usage.value`.
    pub(in crate::commands) fn new(args: &TrainArgs, global: &GlobalArgs) -> Result<Self, Failure> {
        let out = if args.out.as_os_str() == "-" { Self::Stdout } else { Self::File(args.out.clone()) };
        if out == Self::Stdout && global.json {
            return Err(conflict("--out", "the model and the JSON result cannot both go to standard output")
                .help("name a file for the model, or omit --json"));
        }
        if args.report.as_deref().is_some_and(|report| report.as_os_str() == "-") {
            return Err(Failure::usage("--report", "standard output is taken by the result").help("name a file"));
        }
        Ok(out)
    }

    /// Returns the file of the model.
    pub(in crate::commands) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stdout => None,
        }
    }

    /// Returns what readers call the model.
    pub(in crate::commands) fn name(&self) -> String {
        match self {
            Self::File(path) => path.file_name().map_or("model".into(), |name| name.to_string_lossy().into_owned()),
            Self::Stdout => "MODEL".to_owned(),
        }
    }

    /// Writes the model and the report.
    ///
    /// # Errors
    /// `output.*`. No file is left then.
    pub(in crate::commands) fn write(
        &self,
        model: &str,
        report: Option<(&Path, &str)>,
        force: bool,
    ) -> Result<(), Failure> {
        let report = report.map(|(path, text)| (path, text.as_bytes()));
        match self {
            Self::File(path) => {
                let files: Vec<_> = [(path.as_path(), model.as_bytes())].into_iter().chain(report).collect();
                atomic::write_together(&files, force)
            }
            Self::Stdout => {
                let report = report.map(|(path, text)| atomic::PendingFile::create(path, force)?.with(text));
                let report = report.transpose()?;
                write_stdout(model.as_bytes(), b"")?;
                report.map_or(Ok(()), atomic::PendingFile::commit)
            }
        }
    }

    /// Prints the result: beside a model on standard output as notes.
    ///
    /// # Errors
    /// Standard output that cannot be written.
    pub(in crate::commands) fn print(
        &self,
        result: &impl Serialize,
        text: &str,
        console: &Console,
    ) -> Result<(), Failure> {
        match self {
            Self::Stdout => {
                text.lines().for_each(|line| console.note(line));
                Ok(())
            }
            Self::File(_) => console.result(result, text),
        }
    }
}
