//! Atomic file writes: a file appears complete or not at all.
//!
//! The content goes to a temporary file in the target's folder, which is flushed to disk and renamed; the rename replaces an
//! existing file only if asked to. Then the folder is flushed. A replaced file passes its mode on. On any failure, Ctrl-C
//! included, nothing is left behind. Only a kill that cannot be caught may leave a `.part` file, never a file under the final
//! name; the next run that writes to the folder removes it. A temporary file is locked while it is written, which
//! distinguishes it from such a leftover.
//!
//! Files of one run are renamed together, without interruption by signals or by another run that renames several files in the
//! same folder. Only a kill that cannot be caught, or a failure of the second rename, can leave one without the other.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::write_failure;

/// The files that this command has read whole, resolved: no output replaces them.
static READ: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Protects a file that is read from being replaced.
pub(crate) fn protect(input: &Path) {
    if let Ok(resolved) = input.canonicalize() {
        READ.lock().unwrap_or_else(PoisonError::into_inner).insert(resolved);
    }
}

fn is_protected(target: &Path) -> bool {
    let is_read = |resolved| READ.lock().unwrap_or_else(PoisonError::into_inner).contains(&resolved);
    target.canonicalize().is_ok_and(is_read)
}

/// A file being written that has no final name yet. Dropping it without [`commit`](Self::commit) removes it.
#[derive(Debug)]
pub struct PendingFile {
    writer: Option<BufWriter<NamedTempFile>>,
    temporary: PathBuf,
    target: PathBuf,
    replace: bool,
}

/// Checks before long work that `target` can be written at the end.
///
/// # Errors
/// `output.exists`, `output.write`, `output.full`.
pub fn check(target: &Path, replace: bool) -> Result<(), Failure> {
    PendingFile::create(target, replace).map(drop)
}

/// Writes `content` to `target` atomically.
///
/// # Errors
/// `output.exists`, `output.write`, `output.full`.
pub fn write(target: &Path, replace: bool, content: &[u8]) -> Result<(), Failure> {
    write_together(&[(target, content)], replace)
}

/// As [`write`]; returns the file, locked as long as it is open. `None` where an open file cannot be replaced.
///
/// # Errors
/// `output.exists`, `output.write`, `output.full`.
pub(crate) fn write_locked(target: &Path, replace: bool, content: &[u8]) -> Result<Option<File>, Failure> {
    let file = PendingFile::create(target, replace)?.with(content)?.finished()?;
    check_name(&file.target, file.replace)?;
    let temporary = file.temporary.clone();
    let file = interrupt::finish(std::slice::from_ref(&temporary), || file.rename())?;
    Ok(cfg!(unix).then_some(file))
}

/// Writes several files. None is renamed before all of them are on disk.
///
/// # Errors
/// `output.exists`, `output.write`, `output.full`.
pub fn write_together(files: &[(&Path, &[u8])], replace: bool) -> Result<(), Failure> {
    let mut pending = Vec::with_capacity(files.len());
    for (target, content) in files {
        pending.push(PendingFile::create(target, replace)?.with(content)?);
    }
    commit_together(pending)
}

/// Renames all files, as one step for signals and other runs. If one rename fails, the files renamed before are removed,
/// unless they replaced something.
pub(crate) fn commit_together(pending: Vec<PendingFile>) -> Result<(), Failure> {
    let files: Vec<FinishedFile> = pending.into_iter().map(PendingFile::finished).collect::<Result<_, _>>()?;
    let locks = if files.len() > 1 { lock_folders(&files) } else { Vec::new() };
    files.iter().try_for_each(|file| check_name(&file.target, file.replace))?;
    let temporary: Vec<PathBuf> = files.iter().map(|file| file.temporary.clone()).collect();
    let renamed = interrupt::finish(&temporary, || {
        let mut named = Vec::with_capacity(files.len());
        for file in files {
            let (target, replace) = (file.target.clone(), file.replace);
            if let Err(failure) = file.rename() {
                for new in named {
                    let _ = fs::remove_file(new);
                }
                return Err(failure);
            }
            if !replace {
                named.push(target);
            }
        }
        Ok(())
    });
    drop(locks);
    renamed
}

/// Locks the folders of the files against other runs that rename several files there. Skips a folder that cannot be locked:
/// the platform or file system has no locks, or another process holds the lock for long.
fn lock_folders(files: &[FinishedFile]) -> Vec<File> {
    // Every run takes the locks in the same order, which prevents deadlock.
    let folders: BTreeSet<PathBuf> = files.iter().filter_map(|file| folder(&file.target).canonicalize().ok()).collect();
    let lock = |folder: PathBuf| {
        let folder = File::open(folder).ok()?;
        for _ in 0..LOCK_TRIES {
            match folder.try_lock() {
                Ok(()) => return Some(folder),
                Err(fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
                Err(fs::TryLockError::Error(_)) => return None,
            }
        }
        None
    };
    folders.into_iter().filter_map(lock).collect()
}

/// Number of attempts to take a lock that is held while two files are renamed, and the delay between them.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

const PREFIX: &str = ".dp-";
const SUFFIX: &str = ".part";

/// Removes the temporary files in `folder` that no living process holds. Skips files that cannot be inspected.
fn remove_orphans(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let Ok(file) = File::open(entry.path()) else { continue };
            if file.try_lock().is_ok() {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Creates a temporary file, locked as long as it is open.
fn temporary(builder: &tempfile::Builder<'_, '_>, folder: &Path) -> io::Result<NamedTempFile> {
    loop {
        let file = builder.tempfile_in(folder)?;
        // Another run's clean-up may have removed it already; outside Unix an open file cannot be removed.
        let held = file.as_file().lock().is_ok();
        if !held || !cfg!(unix) || file.path().try_exists()? {
            return Ok(file);
        }
    }
}

/// Checks that `target` can be written, without touching the folder.
///
/// # Errors
/// `usage.value` for `-`, `output.exists` if it exists and `replace` is false, `usage.conflict` if this command has read it,
/// `output.write` if it is not an ordinary file.
pub fn check_name(target: &Path, replace: bool) -> Result<(), Failure> {
    if target.as_os_str() == "-" {
        let message = "standard output is taken by the result";
        return Err(Failure::new(ExitStatus::Usage, "usage.value", message).at_file("-").help("name a file"));
    }
    match fs::symlink_metadata(target) {
        Ok(metadata) if metadata.is_dir() => {
            Err(Failure::new(ExitStatus::Failed, "output.write", "the output is a folder")
                .at_file(shown(target))
                .help("name a file in it"))
        }
        Ok(_) if !replace => Err(exists(target)),
        Ok(_) if is_protected(target) => {
            Err(Failure::new(ExitStatus::Usage, "usage.conflict", "the output would replace a file that was read")
                .at_file(shown(target))
                .help("name another file"))
        }
        Ok(metadata) if !metadata.is_file() && !metadata.is_symlink() => {
            Err(Failure::new(ExitStatus::Failed, "output.write", "the output is not an ordinary file")
                .at_file(shown(target))
                .help("name a new file"))
        }
        _ => Ok(()),
    }
}

impl PendingFile {
    /// Starts the file that will be named `target`.
    ///
    /// # Errors
    /// `output.exists` if it exists and `replace` is false, `output.write` if the folder is not writable or `target` is not
    /// an ordinary file.
    pub fn create(target: &Path, replace: bool) -> Result<Self, Failure> {
        Self::create_with_mode(target, replace, 0o666) // less the umask
    }

    /// Starts a file that only its owner may read and that never replaces another.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub(crate) fn create_secret(target: &Path) -> Result<Self, Failure> {
        Self::create_with_mode(target, false, 0o600)
    }

    /// Adds this content.
    ///
    /// # Errors
    /// `output.full`, `output.write`.
    pub(crate) fn with(mut self, content: &[u8]) -> Result<Self, Failure> {
        self.write_all(content).map_err(|error| write_failure(&error, &shown(&self.target)))?;
        self.sync()?;
        Ok(self)
    }

    #[cfg_attr(not(unix), expect(unused_variables, reason = "only there files have such modes"))]
    fn create_with_mode(target: &Path, replace: bool, mode: u32) -> Result<Self, Failure> {
        check_name(target, replace)?;
        let folder = folder(target);
        remove_orphans(folder);
        let writer = interrupt::register(|| {
            let mut builder = tempfile::Builder::new();
            builder.prefix(PREFIX).suffix(SUFFIX);
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                // The new file is readable by nobody who could not read the file it replaces.
                let mode = replaced(target, replace).map_or(mode, |permissions| permissions.mode() & 0o777);
                builder.permissions(fs::Permissions::from_mode(mode));
            }
            let file = temporary(&builder, folder)?;
            let path = file.path().to_owned();
            Ok((BufWriter::with_capacity(1 << 16, file), path))
        })
        .map_err(|error| write_failure(&error, &shown(target)))?;
        let temporary = writer.get_ref().path().to_owned();
        Ok(Self { writer: Some(writer), temporary, target: target.to_owned(), replace })
    }

    /// Flushes the content to disk, still under the temporary name.
    ///
    /// # Errors
    /// `output.full`, `output.write`.
    pub fn sync(&mut self) -> Result<(), Failure> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer
            .flush()
            .and_then(|()| writer.get_ref().as_file().sync_all())
            .map_err(|error| write_failure(&error, &shown(&self.target)))
    }

    /// Renames the finished file to its final name.
    ///
    /// # Errors
    /// As [`create`](Self::create), and `output.full`.
    pub fn commit(self) -> Result<(), Failure> {
        commit_together(vec![self])
    }

    /// Finishes writing.
    fn finished(mut self) -> Result<FinishedFile, Failure> {
        self.sync()?;
        let failure = |error: &io::Error| write_failure(error, &shown(&self.target));
        let writer = self.writer.take().ok_or_else(|| failure(&io::Error::other("the file is finished")))?;
        let file = writer.into_inner().map_err(|error| failure(error.error()))?;
        Ok(FinishedFile { file, temporary: self.temporary.clone(), target: self.target.clone(), replace: self.replace })
    }
}

/// A file on disk that has no final name yet.
struct FinishedFile {
    file: NamedTempFile,
    temporary: PathBuf,
    target: PathBuf,
    replace: bool,
}

impl FinishedFile {
    fn rename(self) -> Result<File, Failure> {
        let Self { file, target, replace, .. } = self;
        if let Some(permissions) = replaced(&target, replace) {
            // The umask may have removed more mode bits than the file had lost; a file system without modes has none.
            let _ = file.as_file().set_permissions(permissions);
        }
        let renamed = if replace { file.persist(&target) } else { file.persist_noclobber(&target) };
        let renamed = renamed.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => exists(&target),
            _ => write_failure(&error.error, &shown(&target)),
        })?;
        // The file is complete; if the folder cannot be flushed, only a power failure may undo the rename.
        if let Ok(directory) = File::open(folder(&target)) {
            let _ = directory.sync_all();
        }
        Ok(renamed)
    }
}

/// Returns the permissions of the ordinary file that `target` replaces.
fn replaced(target: &Path, replace: bool) -> Option<fs::Permissions> {
    let metadata = fs::metadata(target).ok().filter(|metadata| replace && metadata.is_file())?;
    Some(metadata.permissions())
}

impl Write for PendingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Some(writer) => writer.write(bytes),
            None => Err(io::Error::other("the file is finished")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            // Not flushed on purpose: `into_parts` returns the file without writing the buffered rest.
            let (file, _) = writer.into_parts();
            interrupt::finish(std::slice::from_ref(&self.temporary), || drop(file));
        }
    }
}

fn exists(target: &Path) -> Failure {
    Failure::new(ExitStatus::Failed, "output.exists", "the output file exists already")
        .at_file(shown(target))
        .help("choose another name, or add --force to replace it")
}

/// Returns the folder that will hold `target`.
fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Formats a path for messages.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn appears_whole_and_only_on_commit() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model.json");
        let mut file = PendingFile::create(&target, false).unwrap();
        file.write_all(b"whole").unwrap();
        assert!(!target.exists());
        file.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        assert_eq!(names(folder.path()), ["model.json"]);
    }

    #[test]
    fn a_dropped_file_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = PendingFile::create(&folder.path().join("model.json"), false).unwrap();
        file.write_all(&[0; 1 << 20]).unwrap();
        drop(file);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_file_that_came_in_the_meantime_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model.json");
        let mut file = PendingFile::create(&target, false).unwrap();
        file.write_all(b"ours").unwrap();
        fs::write(&target, b"theirs").unwrap();
        assert_eq!(file.commit().unwrap_err().code, "output.exists");
        assert_eq!(fs::read(&target).unwrap(), b"theirs");
        assert_eq!(names(folder.path()), ["model.json"]);
    }

    #[test]
    fn replaces_only_ordinary_files_and_only_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model.json");
        fs::write(&target, b"old").unwrap();
        assert_eq!(write(&target, false, b"new").unwrap_err().code, "output.exists");
        write(&target, true, b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(write(folder.path(), true, b"new").unwrap_err().code, "output.write");
    }

    #[test]
    fn several_files_appear_together() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        fs::write(&two, b"old").unwrap();
        let both: [(&Path, &[u8]); 2] = [(&one, b"1"), (&two, b"2")];
        assert_eq!(write_together(&both, false).unwrap_err().code, "output.exists");
        assert_eq!(names(folder.path()), ["two"]);
        write_together(&both, true).unwrap();
        assert_eq!((fs::read(&one).unwrap(), fs::read(&two).unwrap()), (b"1".to_vec(), b"2".to_vec()));
    }

    #[test]
    fn one_file_without_its_name_takes_the_others_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        let pending: Vec<_> = [&one, &two].map(|target| PendingFile::create(target, false).unwrap()).into();
        fs::write(&two, b"theirs").unwrap();
        assert_eq!(commit_together(pending).unwrap_err().code, "output.exists");
        assert_eq!(names(folder.path()), ["two"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_missing_folder_is_a_typed_failure() {
        let failure = write(Path::new("/nonexistent-folder/model.json"), false, b"").unwrap_err();
        assert_eq!((failure.code, failure.exit), ("output.write", ExitStatus::Failed));
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_is_written_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let orphan = folder.path().join(".dp-abc123.part");
        fs::write(&orphan, "half").unwrap();
        fs::write(folder.path().join(".dp-notes"), "mine").unwrap();
        let first = PendingFile::create(&folder.path().join("one"), false).unwrap();
        let second = PendingFile::create(&folder.path().join("two"), false).unwrap();
        assert!(!orphan.exists() && first.temporary.exists());
        first.commit().unwrap();
        second.commit().unwrap();
        assert_eq!(names(folder.path()), [".dp-notes", "one", "two"]);
    }

    /// Of several concurrent writers of the same two files, one writes both last.
    #[test]
    fn two_files_are_of_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        for round in 0..10 {
            std::thread::scope(|scope| {
                for writer in 0..4 {
                    let (one, two, text) = (&one, &two, format!("{round} {writer}"));
                    scope.spawn(move || {
                        let both: [(&Path, &[u8]); 2] = [(one, text.as_bytes()), (two, text.as_bytes())];
                        write_together(&both, true).unwrap();
                    });
                }
            });
            assert_eq!(fs::read(&one).unwrap(), fs::read(&two).unwrap());
        }
        assert_eq!(names(folder.path()), ["one", "two"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_replaced_hands_on_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model.json");
        for mode in [0o600, 0o640, 0o666] {
            fs::write(&target, b"old").unwrap();
            fs::set_permissions(&target, fs::Permissions::from_mode(mode)).unwrap();
            let file = PendingFile::create(&target, true).unwrap();
            let before = fs::metadata(&file.temporary).unwrap().permissions().mode() & 0o777;
            assert_eq!(before & !mode, 0, "{before:o} {mode:o}");
            file.commit().unwrap();
            assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, mode);
        }
    }

    #[cfg(unix)]
    #[test]
    fn permissions_follow_the_umask() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model.json");
        write(&target, false, b"x").unwrap();
        let plain = folder.path().join("plain");
        fs::write(&plain, b"x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&target), mode(&plain));
    }
}
