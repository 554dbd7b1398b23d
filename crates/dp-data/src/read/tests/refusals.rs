//! Every refusal and its message.

use std::collections::BTreeSet;

use super::*;
use crate::draft::{DraftOptions, draft};
use crate::encode::{FeatureMap, ImageFormat, Projection};
use crate::error::{DataError, DataErrorKind};
use crate::schema::Label;
use crate::sql::Dialect;

fn refuse_csv(text: impl Into<Vec<u8>>) -> DataError {
    load_csv::<f64>(Input::from_bytes("people.csv", text.into()), &encoder(), &CsvOptions::default()).unwrap_err()
}

fn refuse_libsvm(text: &str) -> DataError {
    let format = LibsvmFormat { features: Some(9), ..Default::default() };
    load_libsvm::<f64>(Input::from_bytes("a.libsvm", text.into()), &format, Encoding::UNIT_ROWS).unwrap_err()
}

fn refuse_images(images: &[u8], labels: &[u8]) -> DataError {
    let label = Label::classes("label", vec!["0".into(), "1".into()]);
    let encoder = Encoder::images(ImageFormat::new(vec![2], label), Encoding::UNIT_ROWS).unwrap();
    let labels = Input::from_bytes("labels", labels.to_vec());
    load_images::<f64>(Input::from_bytes("images", images.to_vec()).with_labels(labels), &encoder).unwrap_err()
}

fn refuse_image_bytes(images: Vec<u8>) -> DataError {
    load_image_bytes([Input::from_bytes("images", images)], [], &ImageOptions::default()).unwrap_err()
}

fn refuse_schema(old: &str, new: &str) -> DataError {
    assert!(SCHEMA.contains(old), "{old}");
    Schema::parse("schema.toml", &SCHEMA.replace(old, new)).unwrap_err()
}

fn refuse_dates(text: &str) -> DataError {
    let age = "columns.age = { type = 'date', format = '%d.%m.%Y', min = 2000-01-01, max = 2030-12-31 }\n";
    let schema = SCHEMA.lines().map(|line| if line.starts_with("columns.age") { age.trim_end() } else { line });
    let schema = Schema::parse("schema.toml", &schema.collect::<Vec<_>>().join("\n")).unwrap();
    let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS).unwrap();
    load_csv::<f64>(Input::from_bytes("people.csv", text.into()), &encoder, &CsvOptions::default()).unwrap_err()
}

fn refuse_draft(text: &str, options: &DraftOptions) -> DataError {
    draft(Input::from_bytes("people.csv", text.into()), options, &CsvOptions::default()).unwrap_err()
}

fn read_failing(error: io::ErrorKind, bytes: &[u8]) -> DataError {
    let source = Dribble { bytes: bytes.to_vec(), given: 0, step: 7, error: Some(error) };
    let input = Input::from_reader("people.csv", source).unwrap();
    load_csv::<f64>(input, &encoder(), &CsvOptions::default()).unwrap_err()
}

/// Returns one error of each kind, caused by plausible user actions.
fn one_of_each() -> Vec<DataError> {
    let cut = |compressed: Vec<u8>| compressed[..compressed.len() - 6].to_vec();
    let mut damaged = gz(PEOPLE.as_bytes());
    // Its checksum is damaged, so that the text itself is read without error.
    let checksum = damaged.len() - 8;
    damaged[checksum] ^= 0xff;
    let mut unreviewed = Schema::parse("s", &SCHEMA.replace("max = 100", "max = 100, reviewed = false")).unwrap();
    let options = CsvOptions { delimiter: Some(b'"'), ..Default::default() };
    let wide = CsvOptions { encoding: TextEncoding::of_label("utf-16le"), ..Default::default() };
    vec![
        Input::open("no/such/people.csv").unwrap_err(),
        read_failing(io::ErrorKind::PermissionDenied, PEOPLE.as_bytes()),
        changes::refuse_changed(),
        refuse_csv(cut(gz(PEOPLE.as_bytes()))),
        refuse_csv(damaged),
        refuse_csv(""),
        refuse_csv("age,city,y\n"),
        refuse_csv("age,city,y\n1,\"Rome,no\n1,Rome\",no\n"),
        refuse_csv("age,town,y\n1,Rome,no\n"),
        refuse_csv("age,city,age,y\n1,Rome,1,no\n"),
        refuse_csv("age,city,y\n1,Rome,no\n1,Rome\n"),
        refuse_csv(b"age,city,y\n1,R\xf6m,no\n".to_vec()),
        refuse_csv("age,city,y\n1,\"Rome,no\n"),
        refuse_csv("age,city,y\n\"1\"2,Rome,no\n"),
        refuse_csv([b"age,city,y\n1,\"".to_vec(), vec![b'x'; 70 << 20]].concat()),
        CsvReader::new(Input::from_bytes("f", vec![]), options).err().unwrap(),
        CsvReader::new(Input::from_bytes("f", b"a\0,\0\n".to_vec()), wide).err().unwrap(),
        refuse_csv(b"PAR1\x15\x04".to_vec()),
        refuse_draft("1,2,yes\n3,4,no\n", &DraftOptions::default()),
        refuse_csv("age,city,y\n1,Rome,no\nold,Rome,no\n"),
        refuse_dates("age,city,y\n31.2.2024,Rome,no\n"),
        refuse_csv("age,city,y\n1,Rome,no\n,Rome,no\n"),
        refuse_csv("age,city,y\n1,Paris,no\n"),
        refuse_csv("age,city,y\n1,Rome,maybe\n"),
        refuse_csv("age,city,y\n1,Rome,\n"),
        refuse_draft("age,y\n1,a\n2,a\n3,a\n", &DraftOptions::new("y")),
        refuse_libsvm("1 1:1\n1 2\n"),
        refuse_libsvm("1 0:1\n"),
        refuse_libsvm("1 2:1 2:1\n"),
        refuse_libsvm("1 2:nan\n"),
        refuse_libsvm("# only this\n"),
        refuse_schema("columns.age =", "columns.age"),
        refuse_schema("max =", "mx ="),
        refuse_schema("type = 'numeric',", ""),
        refuse_schema("min = 0", "min = 'zero'"),
        refuse_schema("columns.age", "columns.y"),
        refuse_schema("'Oslo'", "'Rome'"),
        refuse_schema("max = 100", "max = 100, on_missing = 'category'"),
        refuse_schema("categories", "on_unknown = 'other', categories"),
        refuse_schema("min = 0", "log1p = true, min = -1"),
        refuse_schema("min = 0", "cosines = 65, min = 0"),
        refuse_schema("negative = 'no'", "negative = 'yes'"),
        unreviewed.check_reviewed().unwrap_err(),
        unreviewed.assume_public(&["town"]).unwrap_err(),
        refuse_schema(", max = 100", ""),
        refuse_schema("min = 0", "min = 0, decimal = ';'"),
        refuse_schema("min = 0", "min = 200"),
        refuse_schema("min = 0", "min = -inf"),
        Encoder::new(&schema(), Encoding::UNIT_ROWS.with_intercept(f64::NAN)).unwrap_err(),
        encoder().with_map(FeatureMap { cosines: 65, ..FeatureMap::LINEAR }).unwrap_err(),
        encoder().projected(Projection::gaussian(100, 1)).unwrap_err(),
        encoder().projected(Projection::gaussian(1, 1)).unwrap().in_sql(Dialect::Sqlite).unwrap_err(),
        refuse_images(b"no images", &[]),
        refuse_images(&[0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 2], &[0, 0, 8, 1, 0, 0, 0, 1, 0]),
        refuse_images(&[0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 2], &[0, 0, 8, 1, 0, 0, 0, 3, 0]),
        refuse_images(&[0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 9], &[]),
        refuse_images(&[0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 2], &[]),
        refuse_image_bytes(b"\x89PNG".to_vec()),
        load_image_bytes([], [], &ImageOptions::default()).unwrap_err(),
        refuse_image_bytes([vec![9; 3073], vec![10; 3073]].concat()),
        refuse_image_bytes(vec![9; 3072]),
        DataError::exhausted(crate::memory::check(usize::MAX, "the rows").unwrap_err(), "people.csv", Some(3)),
    ]
}

#[test]
fn every_code_has_a_trigger_and_an_explanation() {
    #[cfg(feature = "spool")]
    let of_a_spool = crate::spool::tests::one_of_each();
    #[cfg(not(feature = "spool"))]
    let of_a_spool: [DataError; 0] = [];
    #[cfg(feature = "parquet")]
    let of_files = crate::table::parquet::tests::one_of_each();
    #[cfg(not(feature = "parquet"))]
    let of_files: [DataError; 0] = [];
    #[cfg(feature = "xlsx")]
    let of_sheets = crate::table::xlsx::tests::one_of_each();
    #[cfg(not(feature = "xlsx"))]
    let of_sheets: [DataError; 0] = [];
    let others = crate::table::tests::one_of_each();
    let all = one_of_each();
    let all = all.iter().chain(&of_a_spool).chain(&of_files).chain(&of_sheets).chain(&others);
    let triggered: BTreeSet<&str> = all.map(DataError::code).collect();
    let declared: BTreeSet<&str> = DataErrorKind::ALL.iter().map(|kind| kind.code()).collect();
    let is_left_out = |code: &&str| {
        (cfg!(not(feature = "spool")) && code.starts_with("spool."))
            || (cfg!(not(feature = "parquet")) && ["table.open", "table.schema"].contains(code))
            || (cfg!(not(feature = "xlsx")) && *code == "table.layout")
    };
    assert_eq!(triggered, declared.iter().copied().filter(|code| !is_left_out(code)).collect());
    assert_eq!(declared.len(), DataErrorKind::ALL.len(), "codes are distinct");
    let listed: Vec<_> = DataErrorKind::ALL.iter().map(|kind| (kind.code(), kind.explanation())).collect();
    assert_eq!(crate::error::codes(), listed);
    assert!(listed.iter().all(|(_, explanation)| explanation.len() > 60));
}

#[test]
fn the_public_voice_names_no_row_and_no_value() {
    for (text, line, secret) in [
        ("age,city,y\n1,Rome,no\n1,Rome,no\n7777,xyzzy,no\n", 4, "xyzzy"),
        ("age,city,y\nxyzzy,Rome,no\n", 2, "xyzzy"),
        ("age,city,y\n1,Rome,no\n1,Rome,xyzzy\n", 3, "xyzzy"),
    ] {
        let error = refuse_csv(text);
        assert_eq!((error.line(), error.file()), (Some(line), Some("people.csv")));
        assert!(error.column().is_some());
        let curator = error.to_string();
        assert!(curator.contains(secret) && curator.contains(&format!("people.csv:{line}:")), "{curator}");
        for public in [error.public_message().to_owned(), format!("{error:?}")] {
            assert!(!public.contains(secret) && !public.contains(&line.to_string()), "{public}");
        }
    }
}

#[test]
fn lines_are_those_of_the_file() {
    // A quoted line end, blank lines and CRLF stand before the bad row.
    let text = "age,city,note,y\r\n1,Rome,\"a\nb\",no\r\n\r\n\n2,Rome,x,no\nold,Rome,x,no\n";
    assert_eq!(refuse_csv(text).line(), Some(7));
    assert_eq!(refuse_libsvm("\n# a\n1 1:1\n1 10:1\n").line(), Some(4));
    assert_eq!(refuse_csv("age,city,y\n1,Rome,no\n2,\"Rome,no\n3,Rome,no\n").line(), Some(3), "where the quote opens");
    // Also after a cell that may contain line ends.
    let swallowed = refuse_csv("note,age,city,y\nx,1,Rome,no\n\"a\nb\",2,\"Rome,no\n\"\"x\"\",3,Oslo\",no\n");
    assert_eq!((swallowed.code(), swallowed.line(), swallowed.column()), ("csv.line_end", Some(4), Some("city")));
}

#[test]
fn truncation_is_seen_in_both_formats_wherever_it_happens() {
    let text = format!("age,city,y\n{}", "12.5,Rome,no\n".repeat(2000));
    for compressed in [gz(text.as_bytes()), xz(text.as_bytes())] {
        for kept in [compressed.len() - 1, compressed.len() / 2, 30, 12, 7] {
            let cut = compressed[..kept].to_vec();
            let error = refuse_csv(cut.clone());
            assert!(["file.truncated", "file.corrupt"].contains(&error.code()), "{kept}: {error}");
            let stream = Dribble { bytes: cut, given: 0, step: 11, error: None };
            let input = Input::from_reader("f", stream).unwrap();
            let error = load_csv::<f64>(input, &encoder(), &CsvOptions::default()).unwrap_err();
            assert!(["file.truncated", "file.corrupt"].contains(&error.code()), "{kept}: {error}");
        }
        assert_eq!(refuse_csv(compressed[..compressed.len() - 6].to_vec()).code(), "file.truncated");
    }
}

#[test]
fn numbers_out_of_the_ordinary() {
    for (cell, code) in [
        ("NaN", "csv.bad_number"),
        ("inf", "csv.bad_number"),
        ("1e999", "csv.bad_number"),
        ("12;5", "csv.bad_number"),
        ("", "csv.missing_value"),
        ("  ", "csv.missing_value"),
        ("NA", "csv.missing_value"),
    ] {
        let error = refuse_csv(format!("age,city,y\n{cell},Rome,no\n"));
        assert_eq!((error.code(), error.line(), error.column()), (code, Some(2), Some("age")), "{cell}");
    }
    let huge = load_text("age,city,y\n1e308,Rome,no\n-1.7e308,Oslo,yes\n").unwrap();
    assert_eq!(huge.warnings, [CuratorWarning::Clamped { column: "age".into(), values: 2 }]);
}

#[test]
fn libsvm_refusals() {
    for (text, code) in [
        ("1 10:1\n", "libsvm.bad_index"),
        ("1 -1:1\n", "libsvm.bad_index"),
        ("1 +1:1\n", "libsvm.bad_index"),
        ("1 99999999999:1\n", "libsvm.bad_index"),
        ("1 x:1\n", "libsvm.bad_index"),
        ("1 3:1 2:1\n", "libsvm.index_order"),
        ("1 1:inf\n", "libsvm.bad_value"),
        ("1 1:\n", "libsvm.bad_value"),
        ("1 1 2\n", "libsvm.syntax"),
        ("2 1:1\n", "label.unknown"),
        ("nan 1:1\n", "label.unknown"),
        ("1:1 2:1\n", "libsvm.syntax"),
        ("", "libsvm.empty"),
    ] {
        assert_eq!(refuse_libsvm(text).code(), code, "{text}");
    }
    for features in [0, MAX_FEATURES + 1, u32::MAX] {
        let format = LibsvmFormat { features: Some(features), ..Default::default() };
        assert_eq!(Encoder::libsvm(format, Encoding::UNIT_ROWS).unwrap_err().code(), "schema.columns");
    }
}

/// Even if no labels are needed, a file of another format is refused: its lines would get the score of no features.
#[test]
fn what_is_no_libsvm_gets_no_score() {
    let read = |format: &LibsvmFormat, text: &str| {
        let encoder = Encoder::libsvm(format.clone(), Encoding::UNIT_ROWS).unwrap();
        let input = Input::from_bytes("f", text.into());
        let mut reader = RecordReader::new(input, &encoder, &CsvOptions::default(), false).unwrap();
        loop {
            match reader.next_record() {
                Ok(None) => return Ok(()),
                Ok(Some(_)) => {}
                Err(error) => return Err((error.code(), error.line().unwrap())),
            }
        }
    };
    let format = LibsvmFormat { features: Some(9), ..Default::default() };
    assert_eq!(read(&format, "+1 1:1\n0\n-1\n7.5 2:1\n"), Ok(()));
    for text in ["1 1:1\nage,income\n", "1 1:1\nhello\n", "0\n2:1 3:1\n", "0\n{\n"] {
        assert_eq!(read(&format, text), Err(("libsvm.syntax", 2)), "{text}");
    }
    let texts = Label::classes("label", vec!["spam".into(), "x:1".into()]);
    let named = LibsvmFormat { label: texts, ..format.clone() };
    assert_eq!(read(&named, "spam 1:1\nx:1 2:1\n3\n"), Ok(()));
    assert_eq!(read(&named, "spam 1:1\nham 1:1\n"), Err(("libsvm.syntax", 2)));
    let label = Label::two_classes("label", vec!["spam".into()], vec![], crate::schema::Others::Negative);
    let others = LibsvmFormat { label, ..format };
    assert_eq!(read(&others, "ham 1:1\n"), Ok(()));
    assert_eq!(read(&others, "ham 1:1\n1:1 2:1\n"), Err(("libsvm.syntax", 2)));
}

#[test]
fn nothing_follows_a_closing_quote() {
    let found = |text: &str| {
        let error = refuse_csv(text);
        (error.code(), error.line(), error.column().map(str::to_owned))
    };
    let in_column = |line, column: Option<&str>| ("csv.after_quote", Some(line), column.map(str::to_owned));
    assert_eq!(found("age,city,y\n5,Rome,no\n\"1\"2,Rome,no\n"), in_column(3, Some("age")));
    assert_eq!(found("age,city,y\r\n\r\n5,\"Rome\" ,no\r\n"), in_column(3, Some("city")));
    assert_eq!(found("age,city,y\n5,\"Rome\",\"n\"o"), in_column(2, Some("y")));
    assert_eq!(found("age,note,city,y\n5,\"a\nb\"\"\n\"c,Rome,no\n"), in_column(4, Some("note")));
    assert_eq!(found("age,\"ci\"ty,y\n5,Rome,no\n"), in_column(1, None));
    let fine = "age,\"city\",y\n\"5\",\"Rome\",\"no\"\r\n1,Rome,\"yes\"";
    assert_eq!(load_text(fine).unwrap().examples.len(), 2);
}

/// Some programs write one before any text in UTF-8.
#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    assert_eq!(Schema::parse("s", &format!("\u{feff}{SCHEMA}")).unwrap(), schema());
    assert_eq!(load_text(&format!("\u{feff}{PEOPLE}")).unwrap().examples.len(), 3);
    let format = LibsvmFormat { features: Some(9), ..Default::default() };
    let lines = |text: &str| load_libsvm::<f64>(Input::from_bytes("f", text.into()), &format, Encoding::UNIT_ROWS);
    assert_eq!(lines("\u{feff}1 1:1\n-1 2:1\n").unwrap().1.examples.targets(), [1.0, -1.0]);
    assert_eq!(lines("1 1:1\n\u{feff}-1 2:1\n").unwrap_err().line(), Some(2));
}

#[test]
fn delimiters_and_quotes_that_cannot_be() {
    for (delimiter, quote) in [(b',', b','), (b'\n', b'"'), (b',', b'\r'), (200, b'"'), (0, b'"')] {
        let refused = CsvReader::new(
            Input::from_bytes("f", vec![]),
            CsvOptions { delimiter: Some(delimiter), quote: Some(quote), ..Default::default() },
        );
        assert_eq!(refused.err().unwrap().code(), "csv.options");
    }
}

#[test]
fn folders_and_wrong_delimiters_have_their_message() {
    let folder = tempfile::tempdir().unwrap();
    let error = Input::open(folder.path().to_str().unwrap()).unwrap_err();
    assert_eq!(error.code(), "file.open");
    let error = refuse_csv("age;city;y\n1;Rome;no\n");
    assert_eq!(error.code(), "csv.missing_column");
    assert!(error.to_string().contains("`age;city;y`") && error.to_string().contains("delimiter"), "{error}");
}
