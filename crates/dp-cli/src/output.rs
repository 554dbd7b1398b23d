//! Output to standard output and standard error, with colours.
//!
//! Standard output carries only the result; with `--json`, exactly one value and a newline. Warnings and notes go to standard
//! error and are suppressed by `--quiet`.

use std::io::{self, Write};

use anstream::AutoStream;
use dp::wording::one_line;
use serde::Serialize;
use serde_json::Value;

use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::interrupt;

/// The code for a closed pipe, which is no error: the reader of the output needed only a part.
pub(crate) const CLOSED_PIPE: &str = "output.closed_pipe";

/// The name of standard output in messages.
pub(crate) const STANDARD_OUTPUT: &str = "standard output";

/// The use of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` or `TERM=dumb` says otherwise.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<Color> for anstream::ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}

/// The two output streams and their settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Console {
    /// True for one JSON value on standard output instead of text.
    pub json: bool,
    /// True to print only errors on standard error.
    pub quiet: bool,
    /// The verbosity level.
    pub verbose: u8,
    /// The use of colours.
    pub color: Color,
    /// True if the JSON of errors includes record-dependent parts, which otherwise go to standard error alone.
    pub show_private: bool,
}

impl Console {
    /// Prints the result: `json` as one line of JSON, or `text` as it is.
    ///
    /// # Errors
    /// Standard output that cannot be written or has been closed.
    pub fn result(&self, json: &impl Serialize, text: &str) -> Result<(), Failure> {
        if self.json {
            let line = serde_json::to_string(json)
                .map_err(|error| Failure::new(ExitStatus::Failed, "output.write", format!("no JSON: {error}")))?;
            interrupt::give_way();
            interrupt::await_json(false);
            write_stdout(line.as_bytes(), b"\n")
        } else {
            write_stdout(text.as_bytes(), if text.ends_with('\n') || text.is_empty() { b"" } else { b"\n" })
        }
    }

    /// Prints a warning to standard error.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            self.stderr(&self.paint("33", "warning"), text);
        }
    }

    /// Prints a warning that depends on the content of records, marked as for the curator alone.
    pub fn warn_curator(&self, text: &str) {
        self.warn(&format!("{text} (for your eyes only: this depends on the data)"));
    }

    /// Prints a note to standard error.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.stderr(&self.paint("36", "note"), text);
        }
    }

    /// Prints a note to standard error if verbose.
    pub fn detail(&self, text: &str) {
        if self.verbose > 0 {
            self.note(text);
        }
    }

    /// Reports a failure: on standard output with `--json`, else on standard error.
    pub fn failure(&self, failure: &Failure) {
        if self.json {
            let line = failure.to_json(self.show_private);
            interrupt::await_json(false);
            // The reader may have closed the pipe; nothing is left to do. Otherwise the error is told where it can be.
            if let Err(other) = write_stdout(line.as_bytes(), b"\n")
                && other.code != CLOSED_PIPE
            {
                let text = failure.to_text(|head| self.paint("1;31", head));
                let _ = AutoStream::new(io::stderr(), self.color.into()).write_all(text.as_bytes());
            }
            // The curator still sees the record; standard output may be kept by others.
            if let Some(line) = failure.private_line().filter(|_| !self.show_private) {
                self.stderr(&self.paint("36", "for your eyes only"), &line);
            }
        } else {
            let text = failure.to_text(|head| self.paint("1;31", head));
            let _ = AutoStream::new(io::stderr(), self.color.into()).write_all(text.as_bytes());
        }
    }

    /// Wraps text in an ANSI style; the stream strips it if colours are off.
    fn paint(&self, style: &str, text: &str) -> String {
        format!("\u{1b}[{style}m{text}\u{1b}[0m")
    }

    fn stderr(&self, head: &str, text: &str) {
        let mut lines = text.lines().map(one_line);
        let mut message = format!("{head}: {}\n", lines.next().unwrap_or_default());
        for line in lines {
            message.push_str("  ");
            message.push_str(&line);
            message.push('\n');
        }
        // A closed standard error is no reason to stop.
        let _ = AutoStream::new(io::stderr(), self.color.into()).write_all(message.as_bytes());
    }
}

/// Refuses to start work whose result goes to standard output if there is none.
///
/// # Errors
/// `output.closed_pipe`.
pub(crate) fn check_stdout() -> Result<(), Failure> {
    if stdout_is_closed() {
        let closed = Failure::new(ExitStatus::Failed, CLOSED_PIPE, "standard output is closed");
        return Err(closed.at_file(STANDARD_OUTPUT).help("open it, or name a file"));
    }
    Ok(())
}

/// Returns whether this process was started without standard output. The runtime then opens the null device in its place, for
/// reading too, unlike a user who discards the result.
#[cfg(target_os = "linux")]
fn stdout_is_closed() -> bool {
    use std::os::unix::fs::MetadataExt;
    let device =
        |path: &str| std::fs::metadata(path).ok().map(|metadata| metadata.rdev()).filter(|&device| device != 0);
    let information = std::fs::read_to_string("/proc/self/fdinfo/1").unwrap_or_default();
    let flags = information.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & 3 == 2)
        && device("/dev/null").is_some_and(|null| device("/proc/self/fd/1") == Some(null))
}

/// Elsewhere it is indistinguishable from the null device.
#[cfg(not(target_os = "linux"))]
fn stdout_is_closed() -> bool {
    false
}

/// Writes to standard output and flushes; distinguishes a closed pipe from a failure.
pub(crate) fn write_stdout(text: &[u8], end: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text)
        .and_then(|()| stdout.write_all(end))
        .and_then(|()| stdout.flush())
        .map_err(|error| write_failure(&error, STANDARD_OUTPUT))
}

/// Returns a number for JSON, which has no infinite ones: they become texts.
pub(crate) fn number(value: f64) -> Value {
    if value.is_finite() { value.into() } else { value.to_string().into() }
}

/// Creates the failure for an error while writing to `target`, a file or standard output.
pub fn write_failure(error: &io::Error, target: &str) -> Failure {
    // An error on a temporary file contains its temporary name, which means nothing to the user.
    let text = error.to_string();
    let reason = text.split(" at path \"").next().unwrap_or_default();
    match error.kind() {
        io::ErrorKind::BrokenPipe if target == STANDARD_OUTPUT => Failure::new(
            ExitStatus::Failed,
            CLOSED_PIPE,
            "the reader closed standard output before the result was written",
        )
        .at_file(target)
        .help(
            "run the command again with a reader that waits; a file named by --out or --report is there only if whole",
        ),
        _ if target == STANDARD_OUTPUT => {
            let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            let code = if full { "output.full" } else { "output.write" };
            Failure::new(ExitStatus::Failed, code, format!("standard output cannot be written: {reason}"))
                .at_file(target)
                .help("what went there before is incomplete; a file named by --out or --report is there only if whole")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge | io::ErrorKind::QuotaExceeded => {
            Failure::new(ExitStatus::Failed, "output.full", format!("no room to write: {reason}"))
                .at_file(target)
                .help("free some space or write elsewhere, then run the command again; nothing was left behind")
        }
        _ => Failure::new(ExitStatus::Failed, "output.write", format!("cannot write: {reason}"))
            .at_file(target)
            .help("check that the folder exists and that you may write to it"),
    }
}
