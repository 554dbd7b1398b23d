//! Opening of a file, standard input or bytes, with decompression determined by the first bytes.

use std::io::{self, Chain, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use liblzma::read::XzDecoder;

use super::background::ahead;
use super::watched::{WatchedFile, changed, is_change};
use crate::error::{DataError, DataErrorKind};
use crate::memory;
use crate::table::Table;
use crate::workers::Workers;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const XZ_MAGIC: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];

/// A source of text, with the name used in messages. `.gz` and `.xz` content is recognised by its first bytes, for any file name,
/// and decompressed on a separate thread.
///
/// # Examples
/// ```
/// use dp_data::read::Input;
///
/// let input = Input::from_bytes("people.csv", b"age,income\n41,low\n".to_vec());
/// assert_eq!(input.name(), "people.csv");
/// assert_eq!(Input::open("no/such/file.csv").unwrap_err().code(), "file.open");
/// ```
pub struct Input {
    name: String,
    reader: Box<dyn Read + Send>,
    /// Typed cells, in place of text.
    table: Option<Table>,
    labels: Option<Box<Input>>,
    workers: Workers,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns the files that match a pattern with `*`, `?` or `[...]`, in the order of their names. What exists by this name, and what is
/// no pattern, is itself.
///
/// # Errors
/// `file.open` for a pattern that is malformed or that no file matches, and for folders that cannot be read.
///
/// # Examples
/// ```
/// use dp_data::read::matching;
/// assert_eq!(matching("people.csv")?, [std::path::Path::new("people.csv")]);
/// assert_eq!(matching("no/such/*.bin").unwrap_err().code(), "file.open");
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub fn matching(path: impl AsRef<Path>) -> Result<Vec<PathBuf>, DataError> {
    let path = path.as_ref();
    let failed = |why: &str| {
        DataError::new(DataErrorKind::FileOpen, format!("cannot find the files: {why}"))
            .in_file(&path.display().to_string())
    };
    let text = path.to_string_lossy();
    if path.exists() || !text.contains(['*', '?', '[']) {
        return Ok(vec![path.to_owned()]);
    }
    let found = glob::glob(&text).map_err(|error| failed(&error.to_string()))?;
    let files = found.collect::<Result<Vec<_>, _>>().map_err(|error| failed(&error.to_string()))?;
    if files.is_empty() { Err(failed("no name matches the pattern")) } else { Ok(files) }
}

impl Input {
    /// Opens `path`, or standard input if it is `-`. A file that is changed while it is read fails with `file.changed` at its end
    /// ([`WatchedFile`]).
    ///
    /// # Errors
    /// `file.open`, `file.read`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            return Self::from_reader("standard input", io::stdin());
        }
        Self::from_reader(&path.display().to_string(), WatchedFile::open(path)?)
    }

    /// Reads from any reader; `name` is used in messages.
    ///
    /// # Errors
    /// `file.read`, if the first bytes cannot be read.
    pub fn from_reader(name: &str, mut reader: impl Read + Send + 'static) -> Result<Self, DataError> {
        let mut head = Vec::with_capacity(XZ_MAGIC.len());
        reader
            .by_ref()
            .take(XZ_MAGIC.len() as u64)
            .read_to_end(&mut head)
            .map_err(|source| read_error(source).in_file(name))?;
        let reader: Box<dyn Read + Send> = if head.starts_with(GZIP_MAGIC) {
            ahead(MultiGzDecoder::new(whole(head, reader)))
        } else if head.starts_with(XZ_MAGIC) {
            ahead(XzDecoder::new_multi_decoder(whole(head, reader)))
        } else {
            Box::new(whole(head, reader))
        };
        Ok(Self { name: name.to_owned(), reader, table: None, labels: None, workers: Workers::ONE })
    }

    /// Reads bytes held in memory; `name` is used in messages.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Self {
        let reader: Box<dyn Read + Send> = if bytes.starts_with(GZIP_MAGIC) {
            Box::new(MultiGzDecoder::new(Cursor::new(bytes)))
        } else if bytes.starts_with(XZ_MAGIC) {
            Box::new(XzDecoder::new_multi_decoder(Cursor::new(bytes)))
        } else {
            Box::new(Cursor::new(bytes))
        };
        Self { name: name.to_owned(), reader, table: None, labels: None, workers: Workers::ONE }
    }

    /// Reads a table of typed cells; formats other than tables refuse it.
    pub fn from_table(table: Table) -> Self {
        let reader = Box::new(NoText);
        Self { name: table.name().to_owned(), reader, table: Some(table), labels: None, workers: Workers::ONE }
    }

    /// Returns whether it is a table of typed cells.
    pub(crate) fn is_table(&self) -> bool {
        self.table.is_some()
    }

    /// Removes and returns the table of typed cells, if it is one.
    pub(crate) fn take_table(&mut self) -> Option<Table> {
        self.table.take()
    }

    /// Adds a second file with the labels of images; other records contain their labels.
    #[must_use]
    pub fn with_labels(self, labels: Self) -> Self {
        Self { labels: Some(Box::new(labels)), ..self }
    }

    /// Sets the threads that read tables and lines: one by default. Rows, warnings and errors are the same with any number.
    #[must_use]
    pub fn with_workers(self, workers: Workers) -> Self {
        Self { workers, ..self }
    }

    pub(super) fn workers(&self) -> Workers {
        self.workers
    }

    /// Returns the first bytes, up to this number; they will be read again.
    pub(crate) fn peek(&mut self, most: usize) -> Result<Vec<u8>, DataError> {
        let mut head = Vec::new();
        let reader = core::mem::replace(&mut self.reader, Box::new(io::empty()));
        let mut reader = reader.take(most as u64);
        reader.read_to_end(&mut head).map_err(|source| read_error(source).in_file(&self.name))?;
        self.reader = Box::new(whole(head.clone(), reader.into_inner()));
        Ok(head)
    }

    /// Removes and returns the file of labels.
    pub(super) fn take_labels(&mut self) -> Option<Self> {
        self.labels.take().map(|labels| *labels)
    }

    /// Returns the name used in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn into_parts(self) -> (String, Box<dyn Read + Send>, Workers) {
        (self.name, self.reader, self.workers)
    }
}

/// Returns the decompressed content.
///
/// # Examples
/// ```
/// use std::io::Read;
/// let mut text = String::new();
/// dp_data::read::Input::from_bytes("notes", b"one\ntwo\n".to_vec()).read_to_string(&mut text)?;
/// assert_eq!(text, "one\ntwo\n");
/// # Ok::<(), std::io::Error>(())
/// ```
impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

/// The text of a table of typed cells.
struct NoText;

impl Read for NoText {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("a table of typed cells is no text"))
    }
}

fn whole<R: Read>(head: Vec<u8>, rest: R) -> Chain<Cursor<Vec<u8>>, R> {
    Cursor::new(head).chain(rest)
}

/// Fills `bytes` as far as the source reaches and returns their number. Not `read_exact`, whose error for a short file is that of
/// a truncated compressed file.
pub(super) fn read_full(source: &mut impl Read, bytes: &mut [u8]) -> Result<usize, DataError> {
    let mut filled = 0;
    while filled < bytes.len() {
        match source.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(read_error(error)),
        }
    }
    Ok(filled)
}

/// Converts a failed read to an error of this crate. Decoders report a truncated file as an unexpected end.
pub(crate) fn read_error(source: io::Error) -> DataError {
    if is_change(&source) {
        return changed().caused_by(source);
    }
    if let Some(error) = memory::of_io(&source) {
        return error.into();
    }
    if let Some(error) = super::encoding::undecodable(&source) {
        return error;
    }
    let error = match source.kind() {
        io::ErrorKind::UnexpectedEof => {
            DataError::new(DataErrorKind::FileTruncated, "the compressed file ends before its content is complete")
                .help("fetch the file again and compare its size or checksum")
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            DataError::new(DataErrorKind::FileCorrupt, "the compressed file is damaged")
                .help("fetch the file again and compare its checksum")
        }
        _ => DataError::new(DataErrorKind::FileRead, format!("reading failed: {source}")),
    };
    error.caused_by(source)
}
