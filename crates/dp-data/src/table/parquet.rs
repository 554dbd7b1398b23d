//! Tables in Parquet files: one file, the files of a folder, or those that match a pattern.

mod column;

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::{Batch, Batches, ROWS_OF_A_BATCH, TEXT_OF_A_BATCH, Table, TableColumn, Unreadable};
use crate::error::{DataError, DataErrorKind};
use crate::read::{WatchedFile, changed, matching};
use column::{ColumnCells, Kind};

/// Opens a file, all `.parquet` files of a folder, or those that a pattern with `*`, `?` or `[...]` matches, in the order of
/// their names. All must have the columns of the first.
///
/// Numbers, Booleans and text are read; decimals and integers beyond ±2^53 as text with all digits; a column of another type
/// (dates, lists, records) is refused if it is used. Only the columns that are used are read.
///
/// # Errors
/// `table.open`, `table.schema`.
///
/// # Examples
/// ```
/// use dp_data::table::parquet;
/// assert_eq!(parquet::open("no/such/file.parquet").unwrap_err().code(), "table.open");
/// ```
pub fn open(path: impl AsRef<Path>) -> Result<Table, DataError> {
    let path = path.as_ref();
    let files = files(path)?;
    let Some(first) = files.first() else { return Err(not_opened(path, "no file ends in .parquet or matches")) };
    let (opened, columns) = OpenFile::new(first)?;
    for other in files.iter().skip(1) {
        let (_, found) = OpenFile::new(other)?;
        if found != columns {
            let name = different(&columns, &found);
            let message = format!("the files of a table must have the same columns, and `{name}` differs");
            return Err(DataError::new(DataErrorKind::TableSchema, message)
                .in_file(&other.display().to_string())
                .at_column(&name)
                .expected(format!("the columns of {}", first.display())));
        }
    }
    let described = columns.iter().map(|(name, kind)| {
        let unreadable = match kind {
            Err(kind) => Some(Unreadable::Type(kind.clone())),
            Ok(kind) => kind.of_dates().map(|kind| Unreadable::Date(kind.to_owned())),
        };
        TableColumn { name: name.clone(), unreadable }
    });
    let described: Vec<TableColumn> = described.collect();
    Ok(Table::new(&path.display().to_string(), described, move |used, batches| {
        read_file(opened, &columns, used, batches)?;
        for file in &files[1..] {
            let (opened, found) = OpenFile::new(file)?;
            if found != columns {
                return Err(changed().in_file(&file.display().to_string()));
            }
            read_file(opened, &columns, used, batches)?;
        }
        Ok(())
    }))
}

/// Columns with their names and kinds, or the type of those that cannot be read.
type Columns = Vec<(String, Result<Kind, String>)>;

/// Returns the first column that is not the same in both.
fn different(columns: &Columns, found: &Columns) -> String {
    let pair = columns.iter().zip(found).find(|(one, other)| one != other).map(|(one, _)| one);
    pair.or(columns.get(found.len())).or(found.get(columns.len())).map_or_else(String::new, |(name, _)| name.clone())
}

/// Returns the files of a table.
/// Returns the files of a table: those of a folder or of a pattern, in the order of their names.
///
/// # Errors
/// `table.open` for a folder that cannot be read, and a pattern that is malformed or that no file matches.
///
/// # Examples
/// ```
/// use dp_data::table::parquet;
/// assert_eq!(parquet::files("rows.parquet".as_ref())?, [std::path::Path::new("rows.parquet")]);
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub fn files(path: &Path) -> Result<Vec<PathBuf>, DataError> {
    let failed = |error: &dyn std::fmt::Display| not_opened(path, &error.to_string());
    if path.is_dir() {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).map_err(|error| failed(&error))? {
            let file = entry.map_err(|error| failed(&error))?.path();
            // Spark and others write marker files that begin so.
            let is_hidden = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['_', '.']));
            let is_parquet = file.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet"));
            if file.is_file() && is_parquet && !is_hidden {
                files.push(file);
            }
        }
        files.sort();
        return Ok(files);
    }
    matching(path).map_err(|error| failed(&error.public_message()))
}

fn not_opened(path: &Path, why: &str) -> DataError {
    DataError::new(DataErrorKind::TableOpen, format!("the table cannot be opened: {why}"))
        .in_file(&path.display().to_string())
        .help("name a Parquet file, a folder of them, or a pattern, quoted so that the shell leaves it alone")
}

/// An open file.
struct OpenFile {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    watched: WatchedFile,
}

impl OpenFile {
    fn new(path: &Path) -> Result<(Self, Columns), DataError> {
        let failed = |why: &dyn std::fmt::Display| not_opened(path, &why.to_string());
        let watched = WatchedFile::open(path).map_err(|error| failed(&error.public_message()))?;
        let file = watched.handle().map_err(|error| failed(&error))?;
        let reader = guarded(|| SerializedFileReader::new(file)).map_err(|error| failed(&text_of(&error)))?;
        let columns = column::columns(reader.metadata().file_metadata().schema_descr());
        Ok((Self { path: path.to_owned(), reader, watched }, columns))
    }
}

/// Returns the text of an error in a file's structure; it does not quote values.
fn text_of(error: &ParquetError) -> String {
    match error {
        ParquetError::General(text) | ParquetError::NYI(text) | ParquetError::EOF(text) => text.clone(),
        error => error.to_string(),
    }
}

/// Calls the decoder, which is not meant to panic, but is given files from anywhere.
fn guarded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(ParquetError::General("its structure contradicts itself".to_owned())))
}

fn read_file(file: OpenFile, columns: &Columns, used: &[usize], batches: &mut Batches) -> Result<(), DataError> {
    let OpenFile { path, reader, watched } = file;
    let name = path.display().to_string();
    let damaged = |error: ParquetError| {
        let message = format!("the file cannot be read to its end: {}", text_of(&error));
        DataError::new(DataErrorKind::TableRead, message).in_file(&name)
    };
    for group in 0..reader.num_row_groups() {
        let group = guarded(|| reader.get_row_group(group)).map_err(damaged)?;
        let mut left = usize::try_from(group.metadata().num_rows())
            .map_err(|_| damaged(ParquetError::General("a negative number of rows".to_owned())))?;
        let mut readers = Vec::with_capacity(used.len());
        for &column in used {
            let Some((name, Ok(kind))) = columns.get(column) else { continue };
            readers.push((name, guarded(|| ColumnCells::new(&*group, *kind)).map_err(damaged)?));
        }
        let mut most = ROWS_OF_A_BATCH;
        while left > 0 {
            let rows = left.min(most);
            let mut batch = Batch::new(used.len());
            for (place, (name, cells)) in readers.iter_mut().enumerate() {
                guarded(|| cells.decode(rows)).map_err(|error| damaged(error).at_column(name.as_str()))?;
                cells
                    .append_to(place, &mut batch)
                    .map_err(|error| error.in_file(&path.display().to_string()).at_column(name.as_str()))?;
            }
            left -= rows;
            // Fewer rows at a time where texts are long.
            most = (rows * TEXT_OF_A_BATCH / batch.text_bytes().max(1)).clamp(1, ROWS_OF_A_BATCH);
            batches.send(batch)?;
        }
    }
    // The file is read through the same handle, so that one put in its place does not matter.
    watched.check().map_err(|error| error.in_file(&name))
}

#[cfg(test)]
pub(crate) mod tests;
