//! Files that are changed while they are read.

use std::fs::{self, File};
use std::path::Path;

use super::*;
use crate::read::{SteadyFile, WatchedFile};

const ROWS: &str = "age,city,note,y\n1,Rome,,yes\n2,Oslo,,no\n3,Rome,,yes\n";

/// Returns the error for a file that was truncated after it was opened.
pub(super) fn refuse_changed() -> crate::DataError {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(ROWS.as_bytes()).unwrap();
    let opened = WatchedFile::open(file.path()).unwrap();
    file.as_file().set_len(20).unwrap();
    load_csv::<f64>(Input::from_reader("f", opened).unwrap(), &encoder(), &CsvOptions::default()).unwrap_err()
}

/// Returns the result code of reading a file that is changed after it was opened.
fn code(path: &Path, content: &[u8], change: impl FnOnce(&Path)) -> Result<usize, &'static str> {
    fs::write(path, content).unwrap();
    let opened = WatchedFile::open(path).unwrap();
    assert_eq!(opened.length(), Some(content.len() as u64));
    change(path);
    let input = Input::from_reader("f", opened);
    input
        .and_then(|input| load_csv::<f64>(input, &encoder(), &CsvOptions::default()))
        .map(|loaded| loaded.examples.len())
        .map_err(|error| error.code())
}

#[test]
fn a_file_that_is_changed_while_it_is_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.csv");
    let append = |path: &Path, bytes: &[u8]| {
        File::options().append(true).open(path).unwrap().write_all(bytes).unwrap();
    };
    let cut = |path: &Path, length: u64| File::options().write(true).open(path).unwrap().set_len(length).unwrap();
    let one_row = ROWS.find("2,").unwrap() as u64;
    let changed = Err("file.changed");
    assert_eq!(code(&path, ROWS.as_bytes(), |_| ()), Ok(3));
    assert_eq!(code(&path, ROWS.as_bytes(), |path| cut(path, one_row)), changed, "at the end of a line");
    assert_eq!(code(&path, ROWS.as_bytes(), |path| append(path, b"4,Rome,,no\n")), changed);
    for pack in [gz, xz] {
        let packed = pack(ROWS.as_bytes());
        assert_eq!(code(&path, &packed, |_| ()), Ok(3));
        assert_eq!(code(&path, &packed, |path| cut(path, packed.len() as u64 - 9)), changed);
        assert_eq!(code(&path, &packed, |path| append(path, &pack(b"4,Rome,,no\n"))), changed);
    }
    // The length is unchanged.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(2);
    let rewritten = code(&path, ROWS.as_bytes(), |path| {
        fs::write(path, ROWS.replace("Rome", "Oslo")).unwrap();
        File::options().write(true).open(path).unwrap().set_modified(later).unwrap();
    });
    assert_eq!(rewritten, changed);
    // The opened file is read to its end, whatever file has its name in the meantime.
    let replaced = code(&path, ROWS.as_bytes(), |path| {
        fs::write(folder.path().join("new"), "a\n").unwrap();
        fs::rename(folder.path().join("new"), path).unwrap();
    });
    assert_eq!(replaced, Ok(3));
}

#[test]
fn a_file_is_the_same_in_each_pass() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.csv");
    fs::write(&path, ROWS).unwrap();
    let file = SteadyFile::new(&path);
    let load =
        || load_csv::<f64>(file.input()?, &encoder(), &CsvOptions::default()).map(|loaded| loaded.examples.len());
    assert_eq!((load().unwrap(), load().unwrap()), (3, 3));
    // A different file of the same length and time.
    let new = folder.path().join("new");
    fs::write(&new, ROWS.replace("Rome", "Oslo")).unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    File::options().write(true).open(&new).unwrap().set_modified(modified).unwrap();
    fs::rename(&new, &path).unwrap();
    let error = load().unwrap_err();
    assert_eq!((error.code(), error.file()), ("file.changed", path.to_str()));
}
