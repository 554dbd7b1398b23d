//! Sheets of Excel workbooks: `.xlsx` and `.xlsm`.

mod region;
mod rows;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::path::Path;

use calamine::{DataRef, Reader, SheetType, SheetVisible, Xlsx, XlsxError};

use super::{Batch, Batches, Relation, Table, TableColumn};
use crate::draft::is_record;
use crate::encode::Cell;
use crate::error::{DataError, DataErrorKind};
use crate::memory::Bytes;
use crate::read::WatchedFile;
use region::Region;
use rows::{SheetCell, SheetRows};

/// Opens a sheet of a workbook, or a region of one; if none is named, the only sheet that is not hidden.
///
/// A sheet is named as in formulas: `visits`, `visits!A3:F200`, `visits!A:F`. Its first non-empty row names the columns; the
/// records follow without empty rows, up to the last non-empty row.
///
/// Numbers are read as they are stored, whatever their format shows (12.5 % is 0.125). Cells with the format of a date or a
/// time are dates; a time without a day is a text such as `18:30:00`, a duration a number of days. A formula is read as its
/// stored result, an error such as `#N/A` as its text. An empty cell is missing. What would silently be lost is refused: cells
/// beside the named columns, rows after an empty one, merged cells among the records, formulas without a stored result.
///
/// # Errors
/// `table.open`: no such file or sheet, several sheets, a password, no row with names. The records: `table.read`, `table.layout`,
/// `file.changed`.
///
/// # Examples
/// ```
/// use dp_data::table::xlsx;
/// assert_eq!(xlsx::open("no/such/file.xlsx", None).unwrap_err().code(), "table.open");
/// ```
pub fn open(path: impl AsRef<Path>, sheet: Option<&str>) -> Result<Table, DataError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let watched = WatchedFile::open(path).map_err(|error| not_opened(error.public_message()).in_file(&name))?;
    let refuse = |error: DataError| error.in_file(&name);
    let (sheet, region, header) = guarded(|| {
        check_parts(&watched)?;
        let mut workbook = workbook(&watched)?;
        let (sheet, region) = find(&workbook, sheet)?;
        let header = Header::read(&mut workbook, &sheet, &region)?;
        Ok((sheet, region, header))
    })
    .map_err(refuse)?;
    let columns =
        header.names.iter().map(|name| TableColumn { name: name.clone(), unreadable: None }).collect::<Vec<_>>();
    let first_row = u64::from(header.row) + 2;
    let table = Table::new(&name.clone(), columns, move |used, batches| {
        guarded(|| read(&watched, &sheet, &region, &header, used, batches)).map_err(|error| error.in_file(&name))
    });
    Ok(table.with_first_row(first_row))
}

type Workbook = Xlsx<BufReader<File>>;

fn workbook(watched: &WatchedFile) -> Result<Workbook, DataError> {
    Xlsx::new(handle(watched)?).map_err(|error| no_workbook(&error))
}

/// The error of a reader, whose text may quote what the workbook holds.
fn no_workbook(error: &dyn std::fmt::Display) -> DataError {
    not_opened("it is no workbook, or is damaged").found(error.to_string())
}

fn handle(watched: &WatchedFile) -> Result<BufReader<File>, DataError> {
    watched.handle().map(BufReader::new).map_err(|error| not_opened(&error.to_string()))
}

/// Largest unpacked size of the parts that are held in memory; the texts of a workbook that Excel can open are smaller.
const MOST_UNPACKED: u64 = 2 << 30;

/// The first bytes of an encrypted workbook, or of one in the older format.
const OLD_OR_ENCRYPTED: [u8; 8] = *b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// Unpacks a workbook once as a check: its reader neither compares checksums nor limits its memory.
fn check_parts(watched: &WatchedFile) -> Result<(), DataError> {
    let failed = |error: zip::result::ZipError| no_workbook(&error);
    let (mut head, mut file) = ([0; OLD_OR_ENCRYPTED.len()], handle(watched)?);
    if file.read_exact(&mut head).is_ok() && head == OLD_OR_ENCRYPTED {
        return Err(not_opened("it has a password, or the format of Excel before 2007")
            .help("save it as .xlsx without a password, or export the sheet as CSV (UTF-8)"));
    }
    let mut archive = zip::ZipArchive::new(file).map_err(failed)?;
    let mut left = MOST_UNPACKED;
    for index in 0..archive.len() {
        let part = archive.by_index(index).map_err(failed)?;
        // Sheets are read cell by cell.
        let is_sheet = part.name().map_err(failed)?.contains("worksheets/");
        let limit = if is_sheet { u64::MAX } else { left + 1 };
        let unpacked = io::copy(&mut part.take(limit), &mut io::sink()).map_err(|error| failed(error.into()))?;
        if !is_sheet {
            left = left.checked_sub(unpacked).ok_or_else(|| {
                not_opened(&format!("its texts need more than {} of memory", Bytes(MOST_UNPACKED)))
                    .help("export the sheet as CSV (UTF-8)")
            })?;
        }
    }
    Ok(())
}

/// Returns the name of a sheet, and the region of it.
fn find(workbook: &Workbook, named: Option<&str>) -> Result<(String, Region), DataError> {
    let sheets = || workbook.sheets_metadata().iter().filter(|sheet| sheet.typ == SheetType::WorkSheet);
    let Some(named) = named else {
        let visible = |sheet: &&calamine::Sheet| sheet.visible == SheetVisible::Visible;
        let names: Vec<String> = sheets().filter(visible).map(|sheet| sheet.name.clone()).collect();
        return match <[String; 1]>::try_from(names) {
            Ok([name]) => Ok((name, Region::WHOLE)),
            Err(names) => Err(Relation::not_named("workbook", "sheet", &names)),
        };
    };
    let has = |name: &str| sheets().any(|sheet| sheet.name == name);
    if has(named) {
        return Ok((named.to_owned(), Region::WHOLE));
    }
    if let Some((sheet, region)) = named.rsplit_once('!') {
        let is_quoted = sheet.len() > 1 && sheet.starts_with('\'') && sheet.ends_with('\'');
        let sheet = if is_quoted { sheet[1..sheet.len() - 1].replace("''", "'") } else { sheet.to_owned() };
        if has(&sheet) {
            let region = region.parse().map_err(|()| {
                not_opened(&format!("`{region}` is no region of a sheet")).expected("as A3:F200, A:F or 3:200")
            })?;
            return Ok((sheet, region));
        }
    }
    let names: Vec<String> = sheets().take(12).map(|sheet| format!("`{}`", sheet.name)).collect();
    let error = not_opened(&format!("it has no sheet `{named}`"));
    Err(if names.is_empty() { error } else { error.expected(format!("one of {}", names.join(", "))) })
}

/// The number of the last row that a sheet can have.
const LAST_ROW: u32 = 1_048_576;

/// The row that names the columns.
struct Header {
    /// The row, from 0.
    row: u32,
    /// The columns that it spans.
    columns: Range<u32>,
    names: Vec<String>,
}

impl Header {
    fn read(workbook: &mut Workbook, sheet: &str, region: &Region) -> Result<Self, DataError> {
        let epoch_is_1904 = workbook.has_1904_epoch();
        let mut rows = SheetRows::new(workbook, sheet, region)?;
        let mut cells = Vec::new();
        let (Some(row), Some(first)) = (rows.next_row(&mut cells)?, cells.first().map(|cell| cell.column)) else {
            let error = DataError::new(DataErrorKind::CsvEmpty, format!("the sheet `{sheet}` has no cells"));
            return Err(error.expected("a row with the names of the columns"));
        };
        let mut header = Self { row, columns: first..first, names: Vec::new() };
        let is_one_cell = cells.len() == 1;
        for cell in &cells {
            // As in files without a header.
            while header.columns.end < cell.column {
                header.push(None);
            }
            let mut name = Batch::new(1);
            push(cell, epoch_is_1904, 0, &mut name)?;
            let mut buffer = Default::default();
            let name = name.cell(0, 0).text(&mut buffer);
            header.push(Some(String::from_utf8_lossy(name).trim().to_owned()));
        }
        if is_record(header.names.iter().map(String::as_bytes)) {
            return Err(DataError::new(
                DataErrorKind::CsvHeader,
                "the first row looks like a record, not like the names of columns",
            )
            .at_line(u64::from(row) + 1)
            .expected("the names of the columns in the first row of the sheet or region"));
        }
        // Below one name, rows with more cells would be refused one by one.
        while is_one_cell && let Some(below) = rows.next_row(&mut cells)? {
            let [first, .., last] = &cells[..] else { continue };
            let (from, to) = (region::letters(first.column), region::letters(last.column));
            return Err(DataError::new(
                DataErrorKind::TableLayout,
                "the first row has one cell, rows below it have more",
            )
            .at_line(u64::from(row) + 1)
            .expected("the names of the columns in the first row of the sheet or region")
            .help(format!(
                "below a title, name the region of the table, as --table '{sheet}!{from}{}:{to}{LAST_ROW}'",
                below + 1
            )));
        }
        Ok(header)
    }

    fn push(&mut self, name: Option<String>) {
        self.columns.end += 1;
        let number = self.names.len() + 1;
        self.names.push(name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("column{number}")));
    }

    fn name(&self, column: u32) -> &str {
        self.names.get(column.wrapping_sub(self.columns.start) as usize).map_or("", |name| name)
    }
}

/// Sends the cells of the records below the header.
fn read(
    watched: &WatchedFile,
    sheet: &str,
    region: &Region,
    header: &Header,
    used: &[usize],
    batches: &mut Batches,
) -> Result<(), DataError> {
    let mut workbook = workbook(watched)?;
    let epoch_is_1904 = workbook.has_1904_epoch();
    let mut rows = SheetRows::new(&mut workbook, sheet, region)?;
    let (mut cells, mut batch, mut next, mut has_missing) = (Vec::new(), Batch::new(used.len()), header.row, false);
    while let Some(row) = rows.next_row(&mut cells)? {
        if row != next {
            let found = format!("row {}", next + 1);
            return Err(layout("a row is empty, but rows follow it", found, row, sheet)
                .expected("the records without empty rows"));
        }
        next = row + 1;
        if row == header.row {
            continue;
        }
        let is_outside = |cell: &&SheetCell<'_>| !header.columns.contains(&cell.column) && !cell.is_blank();
        if let Some(cell) = cells.iter().find(is_outside) {
            let found = format!("column {}", region::letters(cell.column));
            return Err(layout("a cell stands in a column without a name", found, row, sheet)
                .expected("cells below the names of the columns"));
        }
        for (place, &column) in used.iter().enumerate() {
            let column = header.columns.start + column as u32;
            let cell = cells.binary_search_by_key(&column, |cell| cell.column).ok().map(|found| &cells[found]);
            let Some(cell) = cell.filter(|cell| cell.has_formula || cell.value != DataRef::Empty) else {
                has_missing = true;
                batch.push(place, Cell::Missing)?;
                continue;
            };
            push(cell, epoch_is_1904, place, &mut batch)
                .map_err(|error| error.at_line(u64::from(row) + 1).at_column(header.name(column)))?;
        }
        if batch.is_full() {
            batches.send(std::mem::replace(&mut batch, Batch::new(used.len())))?;
        }
    }
    drop(rows);
    // Of merged cells all but one are empty.
    if has_missing {
        check_merged(&mut workbook, sheet, header, next)?;
    }
    watched.check()?;
    batches.send(batch)
}

/// Refuses merged cells among the records, which end before the row `end`.
fn check_merged(workbook: &mut Workbook, sheet: &str, header: &Header, end: u32) -> Result<(), DataError> {
    for merged in workbook.merge_cells_by_sheet_name(sheet).map_err(|error| damaged(&error))? {
        let (from, to) = (merged.start, merged.end);
        if from.0 < end && to.0 > header.row && from.1 < header.columns.end && to.1 >= header.columns.start {
            let name = |(row, column): (u32, u32)| format!("{}{}", region::letters(column), row + 1);
            let (found, row) = (format!("{}:{}", name(from), name(to)), from.0.max(header.row + 1));
            return Err(layout("cells are merged, so that only the first has a value", found, row, sheet)
                .expected("one cell for each value"));
        }
    }
    Ok(())
}

/// 1970-01-01 minus the day before 1900-01-01.
const EPOCH_1900: i32 = -25_568;

/// The same for 1904-01-01.
const EPOCH_1904: i32 = -24_107;

/// The serial number of 1900-02-29, which is no day.
const NO_DAY: f64 = 60.0;

const MILLISECONDS: f64 = 86_400_000.0;

/// The serial number of the day after 9999-12-31.
const AFTER_LAST: f64 = 2_958_466.0;

/// Appends a cell to the column of a batch.
fn push(cell: &SheetCell<'_>, epoch_is_1904: bool, place: usize, batch: &mut Batch) -> Result<(), DataError> {
    match &cell.value {
        DataRef::Empty if cell.has_formula => {
            let message = "the result of the formula is not stored";
            Err(DataError::new(DataErrorKind::TableLayout, message)
                .expected("values, or formulas with their results")
                .help("open the workbook in Excel or LibreOffice and save it, which computes its formulas"))
        }
        DataRef::Empty => batch.push(place, Cell::Missing),
        DataRef::Int(value) => batch.push_whole(place, (*value).into()),
        DataRef::Float(value) => batch.push(place, Cell::Number(*value)),
        DataRef::Bool(value) => batch.push(place, Cell::Boolean(*value)),
        DataRef::SharedString(text) => batch.push_text(place, text.as_bytes()),
        DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => {
            batch.push_text(place, text.as_bytes())
        }
        DataRef::Error(error) => batch.push_text(place, error.to_string().as_bytes()),
        DataRef::DateTime(moment) => {
            let serial = moment.as_f64();
            // A serial number outside the range of dates is a number.
            if moment.is_duration() || !(0.0..AFTER_LAST).contains(&serial) {
                return batch.push(place, Cell::Number(serial));
            }
            let milliseconds = (serial * MILLISECONDS).round();
            if milliseconds < MILLISECONDS {
                // A time without a day.
                let (seconds, rest) = (milliseconds as u32 / 1000, milliseconds as u32 % 1000);
                let fraction = if rest == 0 { String::new() } else { format!(".{rest:03}") };
                let time = format!("{:02}:{:02}:{:02}{fraction}", seconds / 3600, seconds / 60 % 60, seconds % 60);
                return batch.push_text(place, time.as_bytes());
            }
            let epoch = match (epoch_is_1904, serial) {
                (true, _) => EPOCH_1904,
                (false, serial) if serial < NO_DAY => EPOCH_1900,
                (false, serial) if serial < NO_DAY + 1.0 => return batch.push_text(place, b"1900-02-29"),
                (false, _) => EPOCH_1900 - 1,
            };
            if milliseconds % MILLISECONDS == 0.0 {
                return batch.push(place, Cell::Date(epoch + (milliseconds / MILLISECONDS) as i32));
            }
            batch.push_moment(place, milliseconds as i64, 1000, epoch)
        }
    }
}

fn not_opened(why: &str) -> DataError {
    DataError::new(DataErrorKind::TableOpen, format!("the workbook cannot be opened: {why}"))
}

fn damaged(error: &XlsxError) -> DataError {
    DataError::new(DataErrorKind::TableRead, "the sheet cannot be read to its end").found(error.to_string())
}

/// The error for a sheet that is not one table.
fn layout(message: &str, found: String, row: u32, sheet: &str) -> DataError {
    DataError::new(DataErrorKind::TableLayout, message)
        .found(found)
        .at_line(u64::from(row) + 1)
        .help(format!("fix the sheet, or name the region of the table, as --table '{sheet}!A1:F200'"))
}

/// Calls the decoder, which may panic on a file that contradicts itself.
fn guarded<T>(decode: impl FnOnce() -> Result<T, DataError>) -> Result<T, DataError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode)).unwrap_or_else(|_| {
        Err(DataError::new(DataErrorKind::TableRead, "the workbook cannot be read: its structure contradicts itself"))
    })
}

#[cfg(test)]
pub(crate) mod tests;
