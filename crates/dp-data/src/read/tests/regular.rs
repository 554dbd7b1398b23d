//! Regular lines, split and parsed several at a time, beside the reader of single records: the same rows, counts and errors.

use proptest::prelude::*;

use super::*;
use crate::encode::RowBuffer;
use crate::error::DataError;

const COLUMNS: &str = "\
missing = ['', 'NA']
label = { column = 'y', type = 'numeric', min = 0, max = 9 }
columns.a = { type = 'numeric', min = -5, max = 50, on_missing = 'neutral', on_unreadable = 'neutral' }
columns.b = { type = 'numeric', min = 0, max = 100, log1p = true, on_missing = { value = 7.0 } }
columns.c = { type = 'categorical', categories = ['u', 'vé', '3'], on_missing = 'category' }
columns.d = { type = 'indicator', on_unreadable = 'neutral' }
columns.e = { type = 'numeric', min = 0, max = 1e6, on_missing = 'neutral', missing = ['-9'] }
columns.f = { type = 'numeric', min = 0, max = 1 }
columns.unused = { type = 'drop' }
";

/// The names in the order of the file, which is not that of the schema.
const HEADER: &str = "d,unused,b,y,a,f,c,e";

fn encoder() -> Encoder {
    Encoder::new(&Schema::parse("s.toml", COLUMNS).unwrap(), Encoding::UNIT_ROWS).unwrap()
}

/// Indices, values, target and line.
type Row = (Vec<u32>, Vec<u64>, Option<u64>, u64);
/// The rows; of each column whether it is constant, and its counts; and the error.
type Found = (Vec<Row>, Vec<(bool, u64, u64, u64)>, Option<String>);

fn found(mut next: impl FnMut(&mut Vec<Row>) -> Result<bool, DataError>) -> (Vec<Row>, Option<String>) {
    let mut rows = Vec::new();
    loop {
        match next(&mut rows) {
            Ok(true) => {}
            Ok(false) => return (rows, None),
            Err(error) => return (rows, Some(error.to_string())),
        }
    }
}

fn row_of(row: &RowBuffer, line: u64) -> Row {
    let values = row.values().iter().map(|value| value.to_bits()).collect();
    (row.indices().to_vec(), values, row.target().map(f64::to_bits), line)
}

fn tallies(row: &RowBuffer) -> Vec<(bool, u64, u64, u64)> {
    let all = row.tallies().iter().chain([row.label_tally()]);
    all.map(|tally| (tally.is_constant(), tally.clamped, tally.replaced, tally.neutral)).collect()
}

/// Reads by single records.
fn one_by_one(text: &[u8], encoder: &Encoder) -> Result<Found, DataError> {
    let mut reader = CsvReader::new(Input::from_bytes("a.csv", text.to_vec()), CsvOptions::default())?;
    reader.refuse_line_ends(|_| false);
    let schema = encoder.schema().unwrap();
    let positions: Vec<usize> = schema.columns().iter().map(|column| reader.position(&column.name).unwrap()).collect();
    let label = reader.position("y")?;
    let mut row = RowBuffer::new(encoder);
    let (rows, error) = found(|rows| {
        let Some(record) = reader.next_record()? else { return Ok(false) };
        encoder
            .encode_row(|column| record.cell(positions[column]), Some(record.cell(label)), &mut row)
            .map_err(|error| error.in_file("a.csv").at_line(record.line()))?;
        rows.push(row_of(&row, record.line()));
        Ok(true)
    });
    Ok((rows, tallies(&row), error))
}

fn together(text: &[u8], step: usize, encoder: &Encoder) -> Result<Found, DataError> {
    let source = Dribble { bytes: text.to_vec(), given: 0, step, error: None };
    let input = Input::from_reader("a.csv", source)?;
    let mut reader = RecordReader::new(input, encoder, &CsvOptions::default(), true)?;
    let (rows, error) = found(|rows| {
        let Some(record) = reader.next_record()? else { return Ok(false) };
        rows.push(row_of(record.row(), record.line()));
        Ok(true)
    });
    Ok((rows, tallies(reader.row()), error))
}

fn assert_same(text: &[u8], step: usize, encoder: &Encoder) {
    let (expected, found) = (one_by_one(text, encoder).unwrap(), together(text, step, encoder).unwrap());
    let shown = String::from_utf8_lossy(text);
    assert_eq!((&found.0, &found.2), (&expected.0, &expected.2), "{shown}");
    // Once an error stops the reading, the counts are not reported.
    assert!(expected.2.is_some() || found.1 == expected.1, "{shown}: {:?} {:?}", found.1, expected.1);
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "-?[0-9]{1,3}",
        6 => "-?[0-9]{0,4}\\.[0-9]{1,4}",
        2 => "-?[0-9]{1,9}\\.[0-9]{1,12}",
        1 => "[0-9]{16,20}",
        1 => " ?-?[0-9]{1,2}[e ]?[0-9]?",
        1 => Just("-9".to_owned()),
        1 => Just("-0".to_owned()),
    ]
}

/// A cell of a column that accepts anything, or of one that refuses some.
fn cell(column: usize) -> BoxedStrategy<String> {
    let odd = prop::sample::select(vec![
        "", "NA", " NA ", "x", "-", ".", "1.2.3", "--1", "+1", "1e3", "inf", "\"4\"", "\"\"", "\"\"\"\"", "\"",
        "\"1\"2", "1\"", "nan",
    ]);
    let odd = odd.prop_map(str::to_owned);
    match column {
        0 => prop_oneof![9 => Just("1".to_owned()), 1 => Just("0".to_owned()), 1 => Just("yes".to_owned())].boxed(),
        1 => prop_oneof![9 => Just("any".to_owned()), 1 => Just("\"a,\"\"b\"".to_owned())].boxed(),
        2 => prop_oneof![9 => number(), 1 => Just("NA".to_owned())].boxed(),
        3 => prop_oneof![30 => "[0-9]", 1 => Just("11".to_owned())].boxed(),
        4 => prop_oneof![9 => number(), 2 => odd].boxed(),
        5 => prop_oneof![60 => "0\\.[0-9]{2}", 1 => Just("x".to_owned())].boxed(),
        6 => prop_oneof![20 => prop::sample::select(vec!["u", "vé", "3", "NA", "\"u\"", "\"vé\""]).prop_map(str::to_owned), 1 => Just("w".to_owned())].boxed(),
        _ => prop_oneof![9 => number(), 1 => Just(String::new())].boxed(),
    }
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    let cells: Vec<_> = (0..8).map(cell).collect();
    let end =
        prop_oneof![20 => Just(&b"\n"[..]), 3 => Just(&b"\r\n"[..]), 1 => Just(&b"\n\n"[..]), 1 => Just(&b"\r"[..])];
    let regular = (cells, end).prop_map(|(cells, end)| [cells.join(",").as_bytes(), end].concat());
    let odd = prop::sample::select(vec![
        &b"\n"[..],
        b"\r\n",
        b"1,2\n",
        b"\xff,,1,1,1,0,u,1\n",
        b"1,\"a\nb\",1,1,1,0,u,1\n",
        b"\r\r\n",
    ]);
    prop_oneof![60 => regular, 1 => odd.prop_map(<[u8]>::to_vec)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn lines_have_the_rows_of_single_records(
        lines in prop::collection::vec(line(), 0..60),
        step in prop_oneof![1_usize..300, Just(1 << 20)],
        is_open in any::<bool>(),
    ) {
        let mut text = [HEADER.as_bytes(), b"\n", &lines.concat()].concat();
        if is_open && text.ends_with(b"\n") {
            text.pop();
        }
        assert_same(&text, step, &encoder());
    }
}

/// Columns that follow one another in the file are read as runs, from the first cell of the text on; one of the runs is not in the
/// order of the schema.
const NEIGHBOURS: &str = "\
missing = ['']
label = { column = 'y', type = 'numeric', min = 0, max = 9 }
columns.a = { type = 'numeric', min = -5, max = 50, on_missing = 'neutral', on_unreadable = 'neutral' }
columns.b = { type = 'numeric', min = 0, max = 1e6, on_missing = { value = 7.0 }, on_unreadable = 'neutral' }
columns.c = { type = 'numeric', min = 0, max = 1e9, on_missing = 'neutral', on_unreadable = 'neutral' }
columns.d = { type = 'numeric', min = 0, max = 1, on_missing = 'neutral', on_unreadable = 'neutral' }
columns.e = { type = 'numeric', min = 0, max = 1, on_missing = 'neutral', on_unreadable = 'neutral' }
";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn runs_of_columns_have_the_rows_of_single_records(
        rows in prop::collection::vec(prop::collection::vec(prop_oneof![20 => number(), 1 => Just(String::new())], 5), 1..40),
        step in prop_oneof![1_usize..300, Just(1 << 20)],
    ) {
        let encoder = Encoder::new(&Schema::parse("s.toml", NEIGHBOURS).unwrap(), Encoding::UNIT_ROWS).unwrap();
        let line = |row: &Vec<String>| format!("{},{},{},3,{},{}\n", row[0], row[1], row[2], row[3], row[4]);
        let text = ["a,b,c,y,e,d\n".to_owned()].into_iter().chain(rows.iter().map(line)).collect::<String>();
        assert_same(text.as_bytes(), step, &encoder);
    }
}

#[test]
fn texts_longer_than_a_tape_are_read_to_their_end() {
    let encoder = encoder();
    let line = |i: usize| {
        // The long cell lengthens the reader's buffer, which then holds more than a tape.
        let unused = match i {
            3000 => "x".repeat(900_000),
            _ if i % 1000 == 999 => "\"x\"".to_owned(),
            _ => "x".to_owned(),
        };
        format!("1,{unused},{}.5,{},{},0.25,u,{}\n", i % 90, i % 10, i % 60, "7".repeat(i % 14 + 1))
    };
    let text = format!("{HEADER}\n{}", (0..60_000).map(line).collect::<String>());
    assert!(text.len() > 2 << 20);
    for step in [1 << 14, 1 << 21] {
        assert_same(text.as_bytes(), step, &encoder);
    }
}

#[test]
fn a_blank_line_is_no_record_of_one_column() {
    let schema = "missing = ['']\n\
        label = { column = 'y', type = 'numeric', min = 0, max = 9 }\n\
        columns.a = { type = 'numeric', min = 0, max = 9, on_missing = 'neutral' }";
    let encoder = Encoder::new(&Schema::parse("s.toml", schema).unwrap(), Encoding::UNIT_ROWS).unwrap();
    let input = Input::from_bytes("a.csv", b"a\n1\n\n2\r\n\r\n\n3\n\"\"\n".to_vec());
    let mut reader = RecordReader::new(input, &encoder, &CsvOptions::default(), false).unwrap();
    let mut lines = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        lines.push((record.line(), record.row().is_null()));
    }
    assert_eq!(lines, [(2, false), (4, false), (7, false), (8, true)]);
}
