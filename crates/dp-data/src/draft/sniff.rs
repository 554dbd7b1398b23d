//! Delimiter, encoding and header of a file, detected from its first rows.

use crate::encode::parse_number;
use crate::error::{DataError, DataErrorKind};
use crate::read::{CsvOptions, CsvReader, Input, Record, TextEncoding};
use crate::schema::{FileFormat, Review};

/// Number of bytes that are looked at.
const HEAD: usize = 64 * 1024;
/// The delimiters that are tried, the usual one first.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Detects the options for reading a file from its first rows; given ones are kept. The input can then still be read from its
/// beginning.
///
/// # Errors
/// `file.*`.
///
/// # Examples
/// ```
/// use dp_data::{draft, read::Input};
/// let mut input = Input::from_bytes("a.csv", b"age;pay\n41;1,5\n".to_vec());
/// assert_eq!(draft::csv_options(&mut input, Default::default())?.delimiter, Some(b';'));
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub fn csv_options(input: &mut Input, options: CsvOptions) -> Result<CsvOptions, DataError> {
    let head = &input.peek(HEAD)?[..];
    let is_whole = head.len() < HEAD;
    let encoding = options.encoding.or_else(|| encoding_of(head, is_whole));
    // In UTF-16 each second byte of a delimiter is 0, and stands between it and the next character.
    let delimiter = options.delimiter.or_else(|| delimiter_of(head, options.quote.unwrap_or(b'"')));
    let found = CsvOptions { delimiter, encoding, ..options };
    if options.header.is_none() {
        // Rows that cannot be read are refused later.
        let first = CsvReader::new(Input::from_bytes("", head.to_vec()), CsvOptions { header: Some(false), ..found });
        if let Ok(mut first) = first
            && let Ok(Some(names)) = first.next_record()
        {
            check_header(&names).map_err(|error| error.in_file(input.name()))?;
        }
    }
    Ok(found)
}

/// Returns the found options that a schema states because they are not the default; they are unreviewed unless given.
pub(crate) fn file_format(given: CsvOptions, found: CsvOptions) -> FileFormat {
    let name = |encoding: TextEncoding| encoding.name().to_ascii_lowercase();
    let delimiter = found.delimiter.filter(|delimiter| *delimiter != b',').map(char::from);
    let encoding = found.encoding.map(name).filter(|name| name != "utf-8");
    let is_open =
        (delimiter.is_some() && given.delimiter.is_none()) || (encoding.is_some() && given.encoding.is_none());
    let review = if is_open { Review::Unreviewed } else { Review::Reviewed };
    FileFormat { delimiter, encoding, header: found.header.filter(|has_header| !has_header), review }
}

/// Returns the encoding of a text that is not UTF-8: UTF-16 by its mark, else the usual one of Western tables.
fn encoding_of(head: &[u8], is_whole: bool) -> Option<TextEncoding> {
    let label = match head {
        [0xff, 0xfe, ..] => "utf-16le",
        [0xfe, 0xff, ..] => "utf-16be",
        _ => match std::str::from_utf8(head) {
            Ok(_) => return None,
            // A character that is cut off.
            Err(error) if !is_whole && error.error_len().is_none() => return None,
            // Binary data.
            Err(_) if head.contains(&0) => return None,
            Err(_) => "windows-1252",
        },
    };
    TextEncoding::of_label(label)
}

/// Returns the delimiter that occurs equally often in the first two rows; of several, the usual one if it is among them.
fn delimiter_of(head: &[u8], quote: u8) -> Option<u8> {
    let records = counts(head, quote);
    let (first, second) = (records[0]?, records[1]?);
    let fits = |place: &usize| first[*place] > 0 && first[*place] == second[*place];
    // The usual one, else the first of those with most cells.
    let most = (0..DELIMITERS.len()).filter(fits).map(|place| first[place]).max()?;
    (0..DELIMITERS.len())
        .find(|place| fits(place) && (*place == 0 || first[*place] == most))
        .map(|place| DELIMITERS[place])
}

/// Counts each delimiter outside quotes in the first two records.
fn counts(head: &[u8], quote: u8) -> [Option<[usize; DELIMITERS.len()]>; 2] {
    let mut records = [None, None];
    let (mut record, mut count, mut is_quoted, mut is_blank) = (0, [0; DELIMITERS.len()], false, true);
    for &byte in head.iter().chain(b"\n") {
        is_quoted ^= byte == quote;
        if byte == b'\n' && !is_quoted {
            if !is_blank {
                records[record] = Some(count);
                record += 1;
            }
            if record == records.len() {
                break;
            }
            (count, is_blank) = ([0; DELIMITERS.len()], true);
        } else if !is_quoted && let Some(place) = DELIMITERS.iter().position(|delimiter| *delimiter == byte) {
            count[place] += 1;
        }
        is_blank &= byte.is_ascii_whitespace() && byte != b'\t';
    }
    records
}

/// Returns whether the row of column names looks like a record: at least half of its cells are numbers.
pub(crate) fn is_record<'n>(names: impl Iterator<Item = &'n [u8]>) -> bool {
    let (mut numbers, mut all) = (0, 0);
    for name in names {
        numbers += usize::from(parse_number(name).is_some());
        all += 1;
    }
    numbers > 0 && 2 * numbers >= all
}

/// Refuses a header that looks like a record.
fn check_header(names: &Record<'_>) -> Result<(), DataError> {
    if !is_record(names.cells()) {
        return Ok(());
    }
    let shown = names.cells().take(8).map(|name| format!("`{}`", String::from_utf8_lossy(name).escape_debug()));
    Err(DataError::new(DataErrorKind::CsvHeader, "the first row looks like a record, not like the names of columns")
        .at_line(1)
        .found(shown.collect::<Vec<_>>().join(", "))
        .expected("the names of the columns in the first row")
        .help("add --header no if the file has no names (columns are then column1, column2, ...), or --header yes if these are names"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_and_encodings_are_found() {
        for (head, delimiter) in [
            (&b"a,b\n1,2\n"[..], Some(b',')),
            (b"a;b\n1;2\n", Some(b';')),
            (b"a\tb\n1\t2\n", Some(b'\t')),
            (b"a;b, c\n1,5;2\n", Some(b',')),
            (b"a;b\n1,5;2\n", Some(b';')),
            (b"a;\"b;c\";d\n1;2;3\n", Some(b';')),
            (b"a;b\n\"two,\nlines, and\";2\n", Some(b';')),
            (b"\n\na;b\r\n\r\n1;2", Some(b';')),
            (b"a|b|c;d\n1|2|3;4\n", Some(b'|')),
            (b"a\n1\n", None),
            (b"a", None),
            (b"", None),
        ] {
            assert_eq!(delimiter_of(head, b'"'), delimiter, "{}", String::from_utf8_lossy(head));
        }
        let name = |head: &[u8], is_whole| encoding_of(head, is_whole).map(TextEncoding::name);
        assert_eq!(name("ä".as_bytes(), true), None);
        assert_eq!(name(b"\xc3", false), None);
        assert_eq!(name(b"\xe4,b\n", true), Some("windows-1252"));
        assert_eq!(name(b"\xff\xfea\0", true), Some("UTF-16LE"));
        assert_eq!(name(b"\x00\xff\xff", true), None);
    }

    #[test]
    fn a_record_is_no_header() {
        let check = |text: &str, header| {
            let options = CsvOptions { header, ..CsvOptions::default() };
            csv_options(&mut Input::from_bytes("f", text.into()), options).map_err(|error| (error.code(), error.line()))
        };
        for text in ["age,2019,x\n1,2,3\n", "name\nRome\n", "", "a,\"b\n"] {
            assert!(check(text, None).is_ok(), "{text}");
        }
        for text in ["1,2.5,Rome\n", "0,0\n1,1\n", "\u{feff}7\n", "1;Rome\n2;Oslo\n"] {
            assert_eq!(check(text, None), Err(("csv.header", Some(1))), "{text}");
            assert!(check(text, Some(true)).is_ok() && check(text, Some(false)).is_ok());
        }
    }
}
