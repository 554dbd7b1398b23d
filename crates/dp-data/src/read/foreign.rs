//! Files that are not text, recognised by their first bytes.

use crate::error::{DataError, DataErrorKind};

/// The treatment of a file.
const EXPORT: &str = "export it as CSV (UTF-8)";
const UNPACK: &str = "unpack it";
const PARQUET: &str = "name it *.parquet, or add --format parquet";
const XLSX: &str = "save it as *.xlsx without a password, or export it as CSV (UTF-8)";
const JSON: &str = "write it as CSV with one row for each record, for instance with jq or a database";

const WEB: &str = "check where it came from: it is often the page of a login or of an error";
const FOR_UTF_16: &str = "add --encoding utf-16le or utf-16be, or `encoding` under [file] in the schema";

/// First bytes of files in upper or lower case, the kind of file, and what to do with it.
const KINDS: [(&[u8], &str, &str); 30] = [
    (b"%PDF-", "a PDF document", "find the table that it was made from"),
    (b"{\\rtf", "an RTF document", EXPORT),
    (b"<!DOCTYPE", "an HTML page", WEB),
    (b"<html", "an HTML page", WEB),
    (b"<?xml", "an XML document", EXPORT),
    (b"<stata_dta>", "a Stata file", EXPORT),
    (b"HEADER RECORD***", "a SAS transport file", EXPORT),
    (b"{\"", "JSON", JSON),
    (b"{\n", "JSON", JSON),
    (b"[{", "JSON", JSON),
    (b"[\n", "JSON", JSON),
    (b"SQLite format 3\0", "a SQLite database", "read it as sqlite:FILE"),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "an Excel workbook of before 2007 or with a password, or another old Office document",
        XLSX,
    ),
    (b"Obj\x01", "an Avro file", "write it as Parquet"),
    (b"\x89HDF", "an HDF5 file", EXPORT),
    (b"CDF\x01", "a NetCDF file", EXPORT),
    (&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc2, 0xea, 0x81, 0x60], "a SAS file", EXPORT),
    (b"\x93NUMPY", "a NumPy array", EXPORT),
    (b"\x80\x03", "a pickle of Python", EXPORT),
    (b"\x80\x04", "a pickle of Python", EXPORT),
    (b"\x80\x05", "a pickle of Python", EXPORT),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", UNPACK),
    (b"\x89PNG", "a picture", "find the table that it shows"),
    (b"\xff\xd8\xff", "a picture", "find the table that it shows"),
    (b"\xff\xfe", "text in UTF-16", FOR_UTF_16),
    (b"\xfe\xff", "text in UTF-16", FOR_UTF_16),
    (ZIP, "a ZIP archive", UNPACK),
    (b"ARROW1\0\0", "an Arrow (Feather) file", "write it as Parquet"),
];

/// First bytes that could also be a column name; such a file must also have bytes that are not text.
const BINARY: [(&[u8], &str, &str); 7] = [
    (b"BZh", "compressed with bzip2", UNPACK),
    (b"PAR1", "a Parquet file", PARQUET),
    (b"ORC", "an ORC file", "write it as Parquet"),
    (b"FEA1", "a Feather file", "write it as Parquet"),
    (b"$FL2", "an SPSS file", EXPORT),
    (b"$FL3", "an SPSS file", EXPORT),
    (b"RDX", "an R workspace", "write the table with write.csv"),
];

/// The first bytes of a ZIP archive.
const ZIP: &[u8] = b"PK\x03\x04";

/// Returns the error for a file that is not text, if its first bytes show it. Only the first line counts, the header, unless it
/// cannot be one of several columns: what a record holds must not decide.
pub(super) fn refusal(head: &[u8]) -> Option<DataError> {
    let first_line = memchr::memchr2(b'\n', b'\r', head).map_or(head, |end| &head[..end]);
    let is_header = first_line.iter().any(|byte| !byte.is_ascii_alphanumeric());
    let shown = if is_header { first_line } else { head };
    let holds = |name: &[u8]| memchr::memmem::find(head, name).is_some();
    let of_zip = [
        (&b"xl/"[..], "an Excel workbook", "name it *.xlsx, or add --format xlsx"),
        (b"[Content_Types].xml", "an Excel workbook, or another Office document", XLSX),
        (b"opendocument", "an OpenDocument file", XLSX),
    ];
    let begins = |(magic, ..): &&(&[u8], &str, &str)| {
        head.get(..magic.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(magic))
    };
    // Text has no control characters except line ends, form feeds and tabs.
    let is_binary = shown.iter().any(|byte| *byte < b'\t' || (14..27).contains(byte));
    let of_zip = of_zip.into_iter().find(|(name, ..)| head.starts_with(ZIP) && holds(name));
    let found = of_zip.map(|(_, what, help)| (what, help));
    let found = found.or_else(|| KINDS.iter().find(begins).map(|&(_, what, help)| (what, help)));
    let found = found.or_else(|| BINARY.iter().find(begins).filter(|_| is_binary).map(|&(_, what, help)| (what, help)));
    let found = found.or_else(|| {
        let has_zeros = memchr::memchr(0, &shown[..shown.len().min(LOOKED)]).is_some();
        has_zeros.then_some(("binary data, or text in UTF-16 without a byte order mark", FOR_UTF_16))
    });
    let (what, help) = found?;
    let error = DataError::new(DataErrorKind::FileKind, format!("the file is {what}"));
    Some(error.expected("a table as text, such as CSV in UTF-8").help(help))
}

/// Number of bytes that are searched for zeros.
const LOOKED: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{CsvOptions, CsvReader, Input, Lines};

    #[test]
    fn other_files_are_named() {
        let zip = |name: &str| [b"PK\x03\x04\x14\0\0\0", name.as_bytes(), b"\0\0"].concat();
        for (bytes, what) in [
            (b"PAR1\x15\x04".to_vec(), "Parquet"),
            (zip("xl/workbook.xml"), "Excel"),
            (zip("mimetypeapplication/vnd.oasis.opendocument.spreadsheet"), "OpenDocument"),
            (zip("people.csv"), "ZIP"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0".to_vec(), "Excel"),
            (b"\xff\xfea\0,\0".to_vec(), "UTF-16"),
            (b"a\0,\0b\0\n\0".to_vec(), "UTF-16"),
            (b"{\"a\": 1}\n".to_vec(), "JSON"),
            (b"\x28\xb5\x2f\xfd\x04".to_vec(), "zstd"),
            (b"<html><body>Log in".to_vec(), "HTML"),
        ] {
            let refused = CsvReader::new(Input::from_bytes("f", bytes.clone()), CsvOptions::default()).err().unwrap();
            assert_eq!((refused.code(), refused.file()), ("file.kind", Some("f")), "{what}");
            assert!(refused.message().contains(what), "{}", refused.message());
            let refused = Lines::new(Input::from_bytes("f", bytes)).next_line().map(drop).unwrap_err();
            assert_eq!(refused.code(), "file.kind", "{what}");
        }
        for text in [
            "{a},b\n",
            "ORCID,y\n",
            "ORC\t7\n",
            "PAR1,PAR2\n",
            "par1;é\n",
            "FEA1,y\n",
            "BZh,y\n",
            "RDX2\n",
            "$FL2,y\n",
            "",
            "\u{feff}a,b\n",
            "PK,y\n",
            "[a],b\n",
            "%PDF,y\n",
        ] {
            assert!(refusal(text.as_bytes()).is_none(), "{text}");
        }
        for binary in [&b"ORC\x08\x01"[..], b"RDX3\nX\n\0\0", b"BZh91AY&SY\x01\xfe", b"$FL2@(#)\x01"] {
            assert!(refusal(binary).is_some_and(|error| !error.message().contains("binary")), "{binary:?}");
        }
        // A record does not decide, where it is known to be one.
        for text in [&b"a,b\n\0,1\n"[..], b"ORC,b\n\x08,1\n", b"a:b\r\0:1\r", b"a,b\r1,\0\r"] {
            assert!(refusal(text).is_none(), "{text:?}");
        }
        for text in ["%PDF-1,2\n", "\0,2\n", "Obj\x01,7\n"] {
            let options = CsvOptions { header: Some(false), ..CsvOptions::default() };
            let read = CsvReader::new(Input::from_bytes("f", text.into()), options).unwrap();
            assert_eq!(read.header(), ["column1", "column2"], "{text}");
        }
    }
}
