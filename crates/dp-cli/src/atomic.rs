//! Files that appear whole or not at all.
//!
//! What is written goes to a temporary file in the target's folder, is flushed to the disk, gets its final name by a
//! rename that does not replace (unless asked to), and the folder is flushed. On any failure, Ctrl-C included, nothing
//! is left. Only a kill that no process can catch may leave a `.part` file, never a file under the final name.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::write_failure;

/// A file that is being written and has no final name yet. Dropped without [`commit`](Self::commit), it vanishes.
#[derive(Debug)]
pub struct PendingFile {
    writer: Option<BufWriter<NamedTempFile>>,
    temporary: PathBuf,
    target: PathBuf,
    replace: bool,
}

/// Checks before long work that `target` can be written at the end of it.
///
/// # Errors
/// `output.exists`, `output.write`, `output.full`.
pub fn check(target: &Path, replace: bool) -> Result<(), Failure> {
    PendingFile::create(target, replace).map(drop)
}

/// Writes `content` to `target` in one go.
///
/// # Errors
/// `output.exists`, `output.write`, `output.full`.
pub fn write(target: &Path, replace: bool, content: &[u8]) -> Result<(), Failure> {
    write_together(&[(target, content)], replace)
}

/// Writes several files, none of which gets its name before all of them are on the disk.
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

/// Gives all files their names. Where one cannot have its name, those that got theirs vanish again, unless they have
/// replaced something already.
pub(crate) fn commit_together(pending: Vec<PendingFile>) -> Result<(), Failure> {
    let mut named = Vec::with_capacity(pending.len());
    for file in pending {
        let (target, replace) = (file.target.clone(), file.replace);
        if let Err(failure) = file.commit() {
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
}

/// Checks that `target` may have its name, without touching the folder.
///
/// # Errors
/// `output.exists` where it is there already and `replace` is false, `output.write` where it is no ordinary file.
pub fn check_name(target: &Path, replace: bool) -> Result<(), Failure> {
    match fs::symlink_metadata(target) {
        Ok(_) if !replace => Err(exists(target)),
        Ok(metadata) if !metadata.is_file() && !metadata.is_symlink() => {
            Err(Failure::new(ExitStatus::Failed, "output.write", "the output is not an ordinary file")
                .at_file(shown(target))
                .help("name a new file"))
        }
        _ => Ok(()),
    }
}

impl PendingFile {
    /// Starts a file that will be called `target`.
    ///
    /// # Errors
    /// `output.exists` where it is there already and `replace` is false, `output.write` where the folder is not
    /// writable or `target` is not an ordinary file.
    pub fn create(target: &Path, replace: bool) -> Result<Self, Failure> {
        Self::create_with_mode(target, replace, 0o666) // less the umask
    }

    /// Starts a file that its owner alone may read, and that never replaces another.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub(crate) fn create_secret(target: &Path) -> Result<Self, Failure> {
        Self::create_with_mode(target, false, 0o600)
    }

    /// The same with this content.
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
        let writer = interrupt::register(|| {
            let mut builder = tempfile::Builder::new();
            builder.prefix(".dp-").suffix(".part");
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                builder.permissions(fs::Permissions::from_mode(mode));
            }
            let file = builder.tempfile_in(folder)?;
            let path = file.path().to_owned();
            Ok((BufWriter::with_capacity(1 << 16, file), path))
        })
        .map_err(|error| write_failure(&error, &shown(target)))?;
        let temporary = writer.get_ref().path().to_owned();
        Ok(Self { writer: Some(writer), temporary, target: target.to_owned(), replace })
    }

    /// Brings what was written to the disk, still without its name.
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

    /// Gives the finished file its name.
    ///
    /// # Errors
    /// As [`create`](Self::create), and `output.full`.
    pub fn commit(mut self) -> Result<(), Failure> {
        self.sync()?;
        let failure = |error: &io::Error| write_failure(error, &shown(&self.target));
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let file = writer.into_inner().map_err(|error| failure(error.error()))?;
        let renamed = interrupt::finish(&self.temporary, || match self.replace {
            true => file.persist(&self.target),
            false => file.persist_noclobber(&self.target),
        });
        renamed.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => exists(&self.target),
            _ => failure(&error.error),
        })?;
        // The file is there and whole; a folder that cannot be flushed only weakens what a power cut may undo.
        if let Ok(directory) = File::open(folder(&self.target)) {
            let _ = directory.sync_all();
        }
        Ok(())
    }
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
            // Not flushed on purpose: `into_parts` hands the file back without writing what is still buffered.
            let (file, _) = writer.into_parts();
            interrupt::finish(&self.temporary, || drop(file));
        }
    }
}

fn exists(target: &Path) -> Failure {
    Failure::new(ExitStatus::Failed, "output.exists", "the output file exists already")
        .at_file(shown(target))
        .help("choose another name, or add --force to replace it")
}

/// The folder that will hold `target`.
fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A path for messages.
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
