//! The record of finished runs: one line of CSV each, flushed to disk before the next one starts.

mod format;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::algorithm::Outcome;
use crate::cell::Cell;
use crate::error::Error;
use format::Content;

/// Finished runs, in memory and in `runs.csv`.
///
/// A run is found by its [key](Cell::key), so that runs of an older configuration are kept and never mistaken for new ones.
/// Each line ends with a digest of its content, so that a changed line is rejected. An incomplete line, for example after a
/// crash during writing, is ignored and its run is repeated.
///
/// Only one `Store` holds a file at a time: the file is locked until the `Store` is dropped, if the file system has locks.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
    /// Length in bytes of the complete lines.
    whole: u64,
    runs: BTreeMap<String, Outcome>,
    unbound: usize,
}

impl Store {
    /// Opens or creates the record at `path`, and reads its content.
    ///
    /// Nothing is changed before the whole record has been checked. A record without digests, or with fewer columns, is
    /// replaced atomically by one that has them; see [`unbound`](Self::unbound).
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Record`] for a file that is not a record or was changed, and [`Error::InUse`] if another
    /// `Store` holds it, in this process or another.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut file = open_locked(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(Error::file(path))?;
        let Content { runs, whole, renewed, is_unbound } =
            format::read(&bytes).map_err(|(line, what)| Error::Record { path: path.to_owned(), line, what })?;
        let mut store = Self { path: path.to_owned(), file, whole: whole as u64, runs, unbound: 0 };
        if let Some(renewed) = renewed {
            store.file = replace(path, &renewed).map_err(Error::file(path))?;
            store.whole = renewed.len() as u64;
            store.unbound = if is_unbound { store.runs.len() } else { 0 };
            return Ok(store);
        }
        if whole < bytes.len() {
            store.file.set_len(store.whole).map_err(Error::file(path))?;
        }
        if whole == 0 {
            store.write(&format!("{}\n", format::HEADER))?;
        }
        store.file.sync_all().map_err(Error::file(path))?;
        Ok(store)
    }

    /// Returns the measurements of a run, if it has finished.
    pub fn get(&self, cell: &Cell) -> Option<&Outcome> {
        self.runs.get(&cell.key())
    }

    /// Returns the number of finished runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Returns whether no run has finished.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the number of runs that were taken over from a record without digests: earlier changes in it cannot be
    /// detected.
    pub fn unbound(&self) -> usize {
        self.unbound
    }

    /// Adds a finished run and waits until it is on disk.
    ///
    /// # Errors
    /// [`Error::File`]; the record is then unchanged.
    pub fn append(&mut self, cell: &Cell, outcome: Outcome) -> Result<(), Error> {
        self.write(&format::line(cell, &outcome))?;
        self.runs.insert(cell.key(), outcome);
        Ok(())
    }

    /// Appends `text` or nothing: a partial write is truncated after a failure. If even that fails, the next call tries
    /// again, so that nothing is ever written after an incomplete line.
    fn write(&mut self, text: &str) -> Result<(), Error> {
        let mut append = || {
            self.file.set_len(self.whole)?;
            self.file.write_all(text.as_bytes())?;
            self.file.sync_data()
        };
        let written = append();
        match written {
            Ok(()) => self.whole += text.len() as u64,
            // The write error is the one to report.
            Err(_) => drop(self.file.set_len(self.whole)),
        }
        written.map_err(Error::file(&self.path))
    }
}

/// Opens or creates the file and locks it.
fn open_locked(path: &Path) -> Result<File, Error> {
    loop {
        // Opening a pipe would block for ever.
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            let what = "this is no ordinary file".to_owned();
            return Err(Error::Record { path: path.to_owned(), line: 1, what });
        }
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(Error::file(path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { path: path.to_owned() }),
            // On a file system without locks, the user must not start two runs.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(Error::file(path)(error)),
        }
        // The previous holder of the lock may have replaced the file opened here.
        if is_at(&file, path).map_err(Error::file(path))? {
            return Ok(file);
        }
    }
}

/// Returns whether `path` is the name of this file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match std::fs::metadata(path) {
        Ok(named) => Ok(identity(named) == identity(file.metadata()?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Elsewhere an open file keeps its name.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> std::io::Result<bool> {
    Ok(true)
}

/// Replaces `path` atomically by a file with this content, and returns it locked. On failure `path` is unchanged.
fn replace(path: &Path, content: &str) -> std::io::Result<File> {
    // A link stays a link.
    let target = path.canonicalize()?;
    let folder = target.parent().unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new().prefix(".dp-").suffix(".part").tempfile_in(folder)?;
    match temporary.as_file().try_lock() {
        Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => return Err(error),
        _ => {}
    }
    temporary.write_all(content.as_bytes())?;
    temporary.as_file().set_permissions(target.metadata()?.permissions())?;
    temporary.as_file().sync_all()?;
    let file = temporary.persist(&target)?;
    // The file is complete; if the folder cannot be flushed, only a power failure may undo the rename.
    if let Ok(folder) = File::open(folder) {
        drop(folder.sync_all());
    }
    Ok(file)
}
