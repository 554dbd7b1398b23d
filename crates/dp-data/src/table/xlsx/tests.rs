use std::io::Write;
use std::num::NonZero;
use std::path::PathBuf;

use calamine::{ExcelDateTime, ExcelDateTimeType};
use rust_xlsxwriter::{ExcelDateTime as Moment, Format, Formula, Workbook as Book, Worksheet};
use tempfile::TempDir;
use zip::write::SimpleFileOptions;

use super::*;
use crate::read::{Input, load_csv};
use crate::table::Rows;
use crate::{Encoder, Encoding, Schema, Workers};

/// What fills a sheet.
type Fill<'a> = &'a dyn Fn(&mut Worksheet);

/// Writes a workbook of these sheets.
fn book(sheets: &[(&str, Fill<'_>)]) -> (TempDir, PathBuf) {
    let (mut book, folder) = (Book::new(), tempfile::tempdir().unwrap());
    for (name, fill) in sheets {
        let sheet = book.add_worksheet();
        sheet.set_name(*name).unwrap();
        fill(sheet);
    }
    let path = folder.path().join("book.xlsx");
    book.save(&path).unwrap();
    (folder, path)
}

/// Writes rows of texts, numbers where they are numbers; empty texts are no cells.
fn rows_of(from: (u32, u16), rows: &'static [&[&str]]) -> impl Fn(&mut Worksheet) {
    move |sheet| {
        for (row, cells) in (from.0..).zip(rows) {
            for (column, cell) in (from.1..).zip(*cells) {
                match cell.parse::<f64>() {
                    Ok(number) => sheet.write(row, column, number).unwrap(),
                    Err(_) if cell.is_empty() => continue,
                    Err(_) => sheet.write(row, column, *cell).unwrap(),
                };
            }
        }
    }
}

const PEOPLE: &[&[&str]] = &[&["age", "town", "y"], &["41", "Rome", "yes"], &["", "Oslo", "no"], &["7", "Rome", "no"]];

fn start(path: &Path, sheet: Option<&str>, names: &[&str]) -> Result<Rows, DataError> {
    let table = open(path, sheet)?;
    let used = names.iter().map(|name| table.position(name)).collect::<Result<Vec<_>, _>>()?;
    table.start(used)
}

/// Reads all rows, as texts.
fn texts(path: &Path, sheet: Option<&str>, names: &[&str]) -> Result<Vec<(u64, Vec<String>)>, DataError> {
    let (mut rows, mut all) = (start(path, sheet, names)?, Vec::new());
    while rows.advance()? {
        let text = |place| String::from_utf8_lossy(rows.cell(place).text(&mut Default::default())).into_owned();
        all.push((rows.number(), (0..names.len()).map(text).collect()));
    }
    Ok(all)
}

fn failure(fill: &dyn Fn(&mut Worksheet), sheet: Option<&str>, names: &[&str]) -> (&'static str, Option<u64>) {
    let (_folder, path) = book(&[("people", fill)]);
    texts(&path, sheet, names).map_or_else(|error| (error.code(), error.line()), |rows| panic!("{rows:?}"))
}

#[test]
fn cells_have_their_types() {
    let (date, time, duration) =
        (Format::new().set_num_format("d.m.yy"), Format::new().set_num_format("d.m.yy hh:mm"), Format::new());
    let duration = duration.set_num_format("[h]:mm");
    let fill = |sheet: &mut Worksheet| {
        for (column, name) in (0..).zip(["number", "percent", "date", "moment", "duration", "text", "flag", "result"]) {
            sheet.write(2, column, name).unwrap();
        }
        for row in 3..603 {
            let day = Moment::from_ymd(2024, 7, 4).unwrap();
            sheet.write(row, 0, f64::from(row) + 0.25).unwrap();
            sheet.write_with_format(row, 1, 0.125, &Format::new().set_num_format("0.0%")).unwrap();
            sheet.write_with_format(row, 2, &day, &date).unwrap();
            sheet.write_with_format(row, 3, day.and_hms(18, 30, 0.5).unwrap(), &time).unwrap();
            sheet.write_with_format(row, 4, 1.75, &duration).unwrap();
            sheet.write(row, 5, format!(" é{row}<&>")).unwrap();
            sheet.write(row, 6, row % 2 == 0).unwrap();
            let result = ["7.5", "#N/A", "x y", "seven"][row as usize % 4];
            sheet.write(row, 7, Formula::new("=A1").set_result(result)).unwrap();
        }
    };
    let (_folder, path) = book(&[("people", &fill)]);
    let names = ["result", "flag", "text", "duration", "moment", "date", "percent", "number"];
    let mut rows = start(&path, None, &names).unwrap();
    for row in 3..603u32 {
        assert!(rows.advance().unwrap());
        assert_eq!(rows.number(), u64::from(row) + 1);
        let result = [Cell::Number(7.5), Cell::Text(b"#N/A"), Cell::Text(b"x y"), Cell::Text(b"seven")];
        let text = format!(" é{row}<&>");
        let expected = [
            result[row as usize % 4],
            Cell::Boolean(row % 2 == 0),
            Cell::Text(text.as_bytes()),
            Cell::Number(1.75),
            Cell::DateTime { day: 19_908, nanoseconds: 66_600_500_000_000 },
            Cell::Date(19_908),
            Cell::Number(0.125),
            Cell::Number(f64::from(row) + 0.25),
        ];
        for (place, expected) in expected.into_iter().enumerate() {
            assert_eq!(rows.cell(place), expected, "row {row}, {}", names[place]);
        }
    }
    assert!(!rows.advance().unwrap());
}

/// Serial numbers have two epochs, one of which counts a day that does not exist.
#[test]
fn serial_numbers_are_days() {
    let text_of = |serial: f64, kind: ExcelDateTimeType, epoch_is_1904| {
        let value = DataRef::DateTime(ExcelDateTime::new(serial, kind, epoch_is_1904));
        let mut batch = Batch::new(1);
        push(&SheetCell { column: 0, value, has_formula: false }, epoch_is_1904, 0, &mut batch).unwrap();
        String::from_utf8_lossy(batch.cell(0, 0).text(&mut Default::default())).into_owned()
    };
    for (serial, in_1900, in_1904) in [
        (0.0, "00:00:00", "00:00:00"),
        (0.999_999_999_999, "1900-01-01", "1904-01-02"),
        (1.0, "1900-01-01", "1904-01-02"),
        (59.0, "1900-02-28", "1904-02-29"),
        (60.0, "1900-02-29", "1904-03-01"),
        (61.0, "1900-03-01", "1904-03-02"),
        (0.75, "18:00:00", "18:00:00"),
        (0.770_839_126, "18:30:00.500", "18:30:00.500"),
        (45_477.0, "2024-07-04", "2028-07-05"),
        (45_477.999_999_999, "2024-07-05", "2028-07-06"),
        (45_477.5, "2024-07-04T12:00:00", "2028-07-05T12:00:00"),
        (-1.0, "-1", "-1"),
        (1e300, "1e300", "1e300"),
    ] {
        assert_eq!(text_of(serial, ExcelDateTimeType::DateTime, false), in_1900);
        assert_eq!(text_of(serial, ExcelDateTimeType::DateTime, true), in_1904);
    }
    assert_eq!(text_of(1.75, ExcelDateTimeType::TimeDelta, false), "1.75");
}

#[test]
fn a_sheet_has_the_encoding_of_its_text() {
    let schema = Schema::parse(
        "toy.toml",
        "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
         columns.age = { type = 'numeric', min = 0, max = 100, on_missing = 'neutral' }\n\
         columns.town = { type = 'categorical', categories = ['Rome', 'Oslo'] }",
    );
    let encoder = Encoder::new(&schema.unwrap(), Encoding::UNIT_ROWS).unwrap();
    let (_folder, path) = book(&[("people", &rows_of((4, 2), PEOPLE))]);
    let load = |input: Input| load_csv::<f64>(input, &encoder, &Default::default()).unwrap();
    let text = PEOPLE.iter().map(|row| row.join(",") + "\n").collect::<String>();
    let text = load(Input::from_bytes("people.csv", text.into()));
    for workers in [1, 2].map(|threads| Workers::new(NonZero::new(threads).unwrap())) {
        let input = Input::from_table(open(&path, None).unwrap()).with_workers(workers);
        let sheet = load(input);
        assert_eq!(sheet.examples.targets(), text.examples.targets());
        assert_eq!(format!("{:?}", sheet.examples.block()), format!("{:?}", text.examples.block()));
    }
    // The row of an error is that of the sheet.
    let (_folder, path) = book(&[("people", &|sheet| {
        rows_of((4, 2), PEOPLE)(sheet);
        sheet.write(7, 2, "old").unwrap();
    })]);
    for workers in [1, 2].map(|threads| Workers::new(NonZero::new(threads).unwrap())) {
        let input = Input::from_table(open(&path, None).unwrap()).with_workers(workers);
        let error = load_csv::<f64>(input, &encoder, &Default::default()).unwrap_err();
        assert_eq!((error.code(), error.line()), ("csv.bad_number", Some(8)));
    }
}

/// Cells of a date column may have a time or none, and times no day.
#[test]
fn dates_are_drafted_as_what_they_are() {
    let (date, time) = (Format::new().set_num_format("d.m.yy"), Format::new().set_num_format("hh:mm"));
    let fill = |sheet: &mut Worksheet| {
        rows_of((0, 0), &[&["day", "moment", "hour", "y"]])(sheet);
        for row in 1..200 {
            let day = Moment::from_ymd(2024, 7, 1 + (row % 20) as u8).unwrap();
            sheet.write_with_format(row, 0, &day, &date).unwrap();
            let hour = if row % 3 == 0 { 0 } else { (row % 24) as u16 };
            sheet.write_with_format(row, 1, day.and_hms(hour, 0, 0).unwrap(), &date).unwrap();
            sheet.write_with_format(row, 2, Moment::from_hms(hour, 30, 0).unwrap(), &time).unwrap();
            sheet.write(row, 3, row % 2).unwrap();
        }
    };
    let (_folder, path) = book(&[("people", &fill)]);
    let draft =
        crate::draft::draft(Input::from_table(open(&path, None).unwrap()), &Default::default(), &Default::default());
    let text = draft.unwrap().to_toml();
    for expected in [
        "[columns.day]\n# Written as %Y-%m-%d: 199 of 199 cells.\n",
        "[columns.moment]\n# Written as %Y-%m-%dT%H:%M:%S: 199 of 199 cells.\n",
        "[columns.hour]\n# Written as %H:%M:%S: 199 of 199 cells.\n",
    ] {
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn sheets_and_regions_are_named_as_in_formulas() {
    let table = rows_of((2, 1), PEOPLE);
    let other = rows_of((0, 0), &[&["n"], &["1"]]);
    let titled = |sheet: &mut Worksheet| {
        table(sheet);
        sheet.write(0, 0, "Visits of 2024").unwrap();
        sheet.write(7, 0, "Total").unwrap();
        sheet.write(7, 1, 48).unwrap();
    };
    let hidden = |sheet: &mut Worksheet| {
        other(sheet);
        sheet.set_hidden(true);
    };
    let (_folder, path) = book(&[("it's", &titled), ("n", &hidden)]);
    let expected = || vec![(4, vec!["41".to_owned()]), (5, vec![String::new()]), (6, vec!["7".to_owned()])];
    for region in ["B3:D6", "$B$3:$D$6", "B3:D7", "3:6", "A3:XFD6"] {
        for sheet in ["it's", "'it''s'"] {
            assert_eq!(texts(&path, Some(&format!("{sheet}!{region}")), &["age"]).unwrap(), expected(), "{region}");
        }
    }
    // The only one that is not hidden has a title.
    let error = open(&path, None).unwrap_err();
    assert_eq!((error.code(), error.line()), ("table.layout", Some(1)));
    assert!(error.help_text().unwrap().ends_with("--table 'it's!B3:D1048576'"), "{error:?}");
    let columns =
        |sheet| open(&path, sheet).unwrap().columns().iter().map(|column| column.name.clone()).collect::<Vec<_>>();
    assert_eq!(columns(Some("n")), ["n"]);
    let refused = |sheet: &str| open(&path, Some(sheet)).unwrap_err();
    assert!(refused("m").to_string().contains("`m`"));
    assert!(refused("n!B").to_string().contains("`B`"));
    assert_eq!(refused("n!B2:C3").code(), "csv.empty");
    let (_folder, path) = book(&[("a", &other), ("b", &other)]);
    let error = open(&path, None).unwrap_err();
    assert!(error.code() == "table.open" && error.to_string().contains("several sheets"));
}

#[test]
fn nothing_is_lost_silently() {
    type More = fn(&mut Worksheet);
    let with = |more: More| {
        move |sheet: &mut Worksheet| {
            rows_of((1, 1), PEOPLE)(sheet);
            more(sheet);
        }
    };
    let put = |sheet: &mut Worksheet, row, column, text: &str| {
        sheet.write(row, column, text).unwrap();
    };
    let names = &["age", "town"];
    let merged: More = |sheet| {
        sheet.merge_range(3, 2, 4, 2, "Rome", &Format::new()).unwrap();
    };
    assert_eq!(failure(&with(merged), None, names), ("table.layout", Some(4)));
    for (row, column, line) in [(6, 1, 7), (3, 6, 4), (3, 0, 4)] {
        let fill = |sheet: &mut Worksheet| {
            rows_of((1, 1), PEOPLE)(sheet);
            put(sheet, row, column, "checked");
        };
        assert_eq!(failure(&fill, None, names), ("table.layout", Some(line)), "{row}, {column}");
    }
    // Formats without values are no cells, blanks no rows.
    let blanks: More = |sheet| {
        sheet.write_blank(5, 1, &Format::new()).unwrap();
        sheet.write_blank(3, 7, &Format::new()).unwrap();
        sheet.write(8, 1, "  ").unwrap();
        sheet.merge_range(20, 1, 21, 1, "", &Format::new()).unwrap();
    };
    let (_folder, path) = book(&[("people", &with(blanks))]);
    assert_eq!(texts(&path, None, names).unwrap().len(), 3);
}

#[test]
fn names_are_texts_and_columns_without_one_are_numbered() {
    let read = |rows: &'static [&[&str]]| {
        let (_folder, path) = book(&[("people", &rows_of((0, 0), rows))]);
        open(&path, None).map(|table| table.columns().iter().map(|column| column.name.clone()).collect::<Vec<_>>())
    };
    assert_eq!(read(&[&["", " a ", "", "2019", "b"]]).unwrap(), ["a", "column2", "2019", "b"]);
    assert_eq!(read(&[&["1", "2", "Rome"]]).unwrap_err().code(), "csv.header");
    assert_eq!(read(&[]).unwrap_err().code(), "csv.empty");
}

/// Packs a workbook by hand: one sheet with this XML, and shared texts.
fn packed(sheet: &str, texts: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("book.xlsx");
    let mut archive = zip::ZipWriter::new(File::create(&path).unwrap());
    let types = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let relation = |kind: &str, target: &str| {
        format!("<Relationships><Relationship Id='r1' Type='{types}/{kind}' Target='{target}'/></Relationships>")
    };
    for (name, text) in [
        ("_rels/.rels", relation("officeDocument", "xl/workbook.xml")),
        ("xl/_rels/workbook.xml.rels", relation("worksheet", "worksheets/sheet1.xml")),
        (
            "xl/workbook.xml",
            format!("<workbook xmlns:r='{types}'><sheets><sheet name='s' sheetId='1' r:id='r1'/></sheets></workbook>"),
        ),
        ("xl/sharedStrings.xml", format!("<sst>{texts}</sst>")),
        ("xl/worksheets/sheet1.xml", format!("<worksheet><sheetData>{sheet}</sheetData></worksheet>")),
    ] {
        archive.start_file(name, SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap();
    (folder, path)
}

const NAMES: &str = "<row r='1'><c r='A1' t='str'><v>a</v></c><c r='B1' t='str'><v>b</v></c></row>";

#[test]
fn sheets_that_cannot_be_trusted_are_refused() {
    let outcome = |sheet: &str| {
        let (_folder, path) = packed(&format!("{NAMES}{sheet}"), "<si><t>x</t></si>");
        texts(&path, None, &["a"]).map_err(|error| (error.code(), error.line()))
    };
    let whole = outcome("<row r='2'><c r='A2'><v>1</v></c><c r='B2' t='s'><v>0</v></c></row>");
    assert_eq!(whole.unwrap(), [(2, vec!["1".to_owned()])]);
    for (sheet, code, line) in [
        // A formula without its result, as libraries write it.
        ("<row r='2'><c r='A2'><f>B2+1</f></c><c r='B2'><v>1</v></c></row>", "table.layout", Some(2)),
        ("<row r='2'><c r='A2'><f>B2+1</f><v></v></c><c r='B2'><v>1</v></c></row>", "table.layout", Some(2)),
        ("<row r='3'><c r='A3'><v>1</v></c></row><row r='2'><c r='A2'><v>1</v></c></row>", "table.read", Some(3)),
        ("<row r='2'><c r='A2'><v>1</v></c><c r='A2'><v>2</v></c></row>", "table.read", Some(2)),
        ("<row r='2'><c r='B2'><v>1</v></c><c r='A2'><v>2</v></c></row>", "table.read", Some(2)),
        ("<row r='2'><c r='A2' t='s'><v>7</v></c></row>", "table.read", None),
        ("<row r='2'><c r='A2'><v>1</v></row>", "table.read", None),
        ("<row r='2'><c r='A2' t='n'><v>1,5</v></c></row>", "table.read", None),
        ("<row r='99999999999'><c r='A99999999999'><v>1</v></c></row>", "table.read", None),
        ("<row r='2'><c r='AAAAAAAAAAA2'><v>1</v></c></row>", "table.read", None),
    ] {
        assert_eq!(outcome(sheet), Err((code, line)), "{sheet}");
    }
}

/// What a cell holds, and where it stands, is for the curator.
#[test]
fn the_public_voice_names_no_row_and_no_value() {
    for (sheet, secret) in [
        ("<row r='2'><c r='A2' t='e'><v>xyzzy</v></c></row>", "xyzzy"),
        ("<row r='2'><c r='A2' t='xyzzy'><v>1</v></c></row>", "xyzzy"),
        ("<row r='7777'><c r='A7777'><v>1</v></c></row>", "row 2"),
        ("<row r='2'><c r='A2'><v>1</v></c><c r='QQ2'><v>1</v></c></row>", "QQ"),
    ] {
        let (_folder, path) = packed(&format!("{NAMES}{sheet}"), "");
        let error = texts(&path, None, &["a"]).unwrap_err();
        assert!(error.to_string().contains(secret), "{error}");
        assert!(!error.public_message().contains(secret), "{error}");
    }
}

#[test]
fn files_that_are_no_workbooks_are_refused() {
    let (folder, path) = book(&[("people", &rows_of((0, 0), PEOPLE))]);
    let whole = std::fs::read(&path).unwrap();
    let other = folder.path().join("other.xlsx");
    let refused = |bytes: &[u8]| {
        std::fs::write(&other, bytes).unwrap();
        texts(&other, None, &["age"]).err().map(|error| error.code())
    };
    assert_eq!(refused(&whole), None);
    assert_eq!(refused(b""), Some("table.open"));
    assert_eq!(refused(b"age,town\n1,Rome\n"), Some("table.open"));
    assert_eq!(refused(&OLD_OR_ENCRYPTED), Some("table.open"));
    assert!(open(&other, None).unwrap_err().to_string().contains("password"));
    // Whichever byte is changed, the cells are the same or the file is refused.
    let (mut kept, expected) = (0, texts(&path, None, &["age", "town", "y"]).unwrap());
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        std::fs::write(&other, &bytes).unwrap();
        if let Ok(read) = texts(&other, None, &["age", "town", "y"]) {
            assert_eq!(read, expected, "byte {at}");
            kept += 1;
        }
    }
    assert!(kept > 0 && kept < whole.len());
    for length in (0..whole.len()).step_by(7) {
        assert!(refused(&whole[..length]).is_some(), "{length} bytes");
    }
    assert_eq!(open(folder.path(), None).unwrap_err().code(), "table.open");
}

#[test]
fn small_files_cannot_fill_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("book.xlsx");
    let mut archive = zip::ZipWriter::new(File::create(&path).unwrap());
    let options = SimpleFileOptions::default().large_file(true);
    archive.start_file("xl/sharedStrings.xml", options).unwrap();
    for _ in 0..=MOST_UNPACKED >> 20 {
        archive.write_all(&[b' '; 1 << 20]).unwrap();
    }
    archive.finish().unwrap();
    let error = open(&path, None).unwrap_err();
    assert!(error.to_string().contains("2.0 GiB"), "{error}");
}

#[test]
fn changes_are_noticed() {
    let (_folder, path) = book(&[("people", &|sheet| {
        rows_of((0, 0), PEOPLE)(sheet);
        (4..9000).for_each(|row| {
            sheet.write(row, 0, 1).unwrap();
        });
    })]);
    let mut rows = start(&path, None, &["age"]).unwrap();
    assert!(rows.advance().unwrap());
    File::options().append(true).open(&path).unwrap().write_all(b"x").unwrap();
    let error = loop {
        match rows.advance() {
            Ok(true) => {}
            Ok(false) => panic!("the end"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), "file.changed");
}

/// One error of each kind that only workbooks have.
pub(crate) fn one_of_each() -> [DataError; 1] {
    let (_folder, path) = book(&[("people", &|sheet| {
        rows_of((0, 0), PEOPLE)(sheet);
        sheet.write(6, 0, 1).unwrap();
    })]);
    [texts(&path, None, &["age"]).unwrap_err()]
}
