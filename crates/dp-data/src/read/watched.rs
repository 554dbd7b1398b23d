//! Files that detect changes while they are read, or between two passes.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use super::Input;
use crate::error::{DataError, DataErrorKind};

/// The state of a file that changes when it is written to or replaced: its identity, if the platform provides one, its length and
/// its modification time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    identity: Option<(u64, u64)>,
    length: u64,
    modified: Option<SystemTime>,
}

impl State {
    /// Returns the state of an open file; `None` for a pipe, a terminal or a device, whose content can be read once and has no
    /// length.
    fn of(file: &File) -> io::Result<Option<Self>> {
        let metadata = file.metadata()?;
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            Some((metadata.dev(), metadata.ino()))
        };
        #[cfg(not(unix))]
        let identity = None;
        let (length, modified) = (metadata.len(), metadata.modified().ok());
        Ok(metadata.is_file().then_some(Self { identity, length, modified }))
    }
}

/// The cause of a failed read of a changed file.
#[derive(Debug, thiserror::Error)]
#[error("the file was changed while it was read")]
struct Changed;

/// Returns whether a failed read is due to a changed file.
pub(super) fn is_change(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Changed>())
}

/// Returns the error for a changed file.
pub(crate) fn changed() -> DataError {
    DataError::new(DataErrorKind::FileChanged, "the file was changed while it was read")
        .help("wait until nobody writes to it, or read a copy; then run the command again")
}

/// An open file whose length and modification time are compared, at its end, with those at its opening. Reading a file that was
/// written to in between fails with `file.changed`, instead of ending early or late.
///
/// Pipes, terminals and devices are read without this check: they cannot be read twice and have no length.
#[derive(Debug)]
pub struct WatchedFile {
    file: File,
    state: Option<State>,
}

impl WatchedFile {
    /// Opens a file.
    ///
    /// # Errors
    /// `file.open`, also for a folder.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let opened = File::open(path).and_then(|file| {
            // Opening a folder succeeds on Unix and only reading it fails, with an unclear message.
            if file.metadata()?.is_dir() {
                return Err(io::Error::from(io::ErrorKind::IsADirectory));
            }
            let state = State::of(&file)?;
            Ok(Self { file, state })
        });
        opened.map_err(|source| {
            DataError::new(DataErrorKind::FileOpen, format!("cannot open the file: {source}"))
                .in_file(&path.display().to_string())
                .help("check the path and the permissions")
                .caused_by(source)
        })
    }

    /// Returns the length at the opening; `None` if it is not a regular file.
    pub fn length(&self) -> Option<u64> {
        self.state.map(|state| state.length)
    }

    /// Returns a second handle of the file, for readers that do not read it to its end.
    #[cfg(any(feature = "parquet", feature = "xlsx"))]
    pub(crate) fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Compares the file with its state at the opening.
    #[cfg(any(feature = "parquet", feature = "xlsx"))]
    pub(crate) fn check(&self) -> Result<(), DataError> {
        match State::of(&self.file) {
            Ok(state) if state == self.state => Ok(()),
            _ => Err(changed()),
        }
    }
}

impl Read for WatchedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        if count == 0 && !buffer.is_empty() && self.state.is_some() && State::of(&self.file)? != self.state {
            return Err(io::Error::other(Changed));
        }
        Ok(count)
    }
}

/// A file that is opened several times and must be the same each time: neither replaced nor written to.
///
/// # Examples
/// ```
/// use dp_data::read::SteadyFile;
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("people.csv");
/// std::fs::write(&path, "age,income\n41,low\n")?;
/// let file = SteadyFile::new(&path);
/// file.open()?;
/// std::fs::write(&path, "age,income\n")?;
/// assert_eq!(file.open().unwrap_err().code(), "file.changed");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SteadyFile {
    path: PathBuf,
    first: OnceLock<Option<State>>,
}

impl SteadyFile {
    /// Creates a file that has not been opened yet.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned(), first: OnceLock::new() }
    }

    /// Opens the file.
    ///
    /// # Errors
    /// `file.open`, and `file.changed` if it differs from the file at the first opening.
    pub fn open(&self) -> Result<WatchedFile, DataError> {
        let file = WatchedFile::open(&self.path)?;
        if *self.first.get_or_init(|| file.state) == file.state {
            Ok(file)
        } else {
            Err(changed().caused_by(io::Error::other(Changed)).in_file(&self.path.display().to_string()))
        }
    }

    /// Opens the file as an input.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and `file.read`.
    pub fn input(&self) -> Result<Input, DataError> {
        Input::from_reader(&self.path.display().to_string(), self.open()?)
    }
}
