//! Drafts of tables as people write them: they read the same values as a plain table, or say which cells they cannot read.

use proptest::prelude::*;

use super::*;
use crate::Rows;
use crate::schema::{CellFormat, DateFormat, DatePart, NumberFormat};

fn column<'d>(draft: &'d Draft, name: &str) -> &'d Column {
    draft.schema.columns().iter().find(|column| column.name == name).unwrap()
}

fn notes(draft: &Draft, name: &str) -> String {
    draft.notes.iter().filter(|note| note.column == name).map(|note| note.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// The bits of some rows: values, indices, targets, and which count.
type Bits = (Vec<u64>, Vec<u32>, Vec<u64>, Vec<bool>);

/// Returns the rows that a draft's schema reads of its own file.
fn rows(draft: &Draft, text: &str) -> Bits {
    let encoder = Encoder::new(&draft.schema, Encoding::UNIT_ROWS).unwrap();
    let loaded = load_csv::<f64>(Input::from_bytes("f.csv", text.into()), &encoder, &CsvOptions::default()).unwrap();
    let block = loaded.examples.block();
    let (values, indices) = match block.rows {
        Rows::Dense { values, .. } => (values, Vec::new()),
        Rows::Sparse { indices, values, .. } => (values, indices.to_vec()),
    };
    let bits = |numbers: &[f64]| numbers.iter().map(|number| number.to_bits()).collect();
    (bits(values), indices, bits(block.targets), block.valid.map_or(Vec::new(), <[bool]>::to_vec))
}

const VISITS: &str = "\
id,admitted,cost,fever,smoker,share,home,y
1,31.12.2023,\"1.234,50 €\",\"38,5\",Yes,12 %, Rome ,no
2,1.2.2024,\"12,00 €\",\"37,0\",no,8 %,Oslo,no
3,14.2.2024,\"7.000,00 €\",\"41,25\",YES,N/A,Rome,yes
4,3.3.2024,\"99,90 €\",\"36,5\",no,30 %,Oslo ,yes
";

#[test]
fn numbers_dates_flags_and_padded_texts_are_recognised() {
    let draft = drafted(VISITS, &DraftOptions::new("y")).unwrap();
    let number = |thousands, units: &[&str]| {
        let units = units.iter().map(|&unit| unit.to_owned()).collect();
        Some(CellFormat::Number(NumberFormat { decimal: ',', thousands, units }))
    };
    let cost = column(&draft, "cost");
    assert_eq!((&cost.kind, &cost.format), (&numeric(12.0, 7000.0, false), &number(Some('.'), &["€"])));
    assert!(notes(&draft, "cost").contains("1.234,5 €: 4 of 4 cells"), "{}", notes(&draft, "cost"));
    let fever = column(&draft, "fever");
    assert_eq!((&fever.kind, &fever.format), (&numeric(36.5, 41.25, false), &number(None, &[])));
    let pattern = "%d.%m.%Y".to_owned();
    let admitted = column(&draft, "admitted");
    assert_eq!(admitted.format, Some(CellFormat::Date(DateFormat { pattern, part: DatePart::Days })));
    assert_eq!(admitted.kind, numeric(19722.0, 19785.0, false));
    let smoker = column(&draft, "smoker");
    let flag = CellFormat::Flag { one: vec!["YES".into(), "Yes".into()], zero: vec!["no".into()] };
    assert_eq!(smoker.format, Some(flag));
    assert_eq!(smoker.kind, ColumnKind::Indicator { on_unreadable: OnUnreadable::Error });
    let categories = ["Oslo", "Rome"].map(String::from).to_vec();
    assert_eq!(column(&draft, "home").kind, ColumnKind::Categorical { categories, on_unknown: OnUnknown::Neutral });
    assert_eq!(column(&draft, "share").missing, Some(vec![String::new(), "N/A".to_owned()]));
    // The other columns say what a mark in a later year's cell would mean.
    assert_eq!(column(&draft, "share").format, number(None, &["%"]));

    let text = draft.to_toml();
    assert!(text.contains("min = 2023-12-31\nmax = 2024-03-03\n"), "{text}");
    assert_eq!(Schema::parse("s", &text).unwrap(), draft.schema);
    // The same table in plain numbers has the same rows.
    let plain = "\
id,admitted,cost,fever,smoker,share,home,y
1,19722,1234.5,38.5,1,12,Rome,no
2,19754,12,37,0,8,Oslo,no
3,19767,7000,41.25,1,N/A,Rome,yes
4,19785,99.9,36.5,0,30,Oslo,yes
";
    let (found, expected) = (rows(&draft, VISITS), rows(&drafted(plain, &DraftOptions::new("y")).unwrap(), plain));
    assert_eq!(found, expected);
}

#[test]
fn what_can_be_read_in_two_ways_is_dropped_unless_another_column_decides() {
    let draft_of = |rows: &[&str]| {
        let rows: Vec<String> =
            rows.iter().zip(["a", "b"].iter().cycle()).map(|(row, y)| format!("{row};{y}\n")).collect();
        let csv = CsvOptions { delimiter: Some(b';'), ..CsvOptions::default() };
        draft(Input::from_bytes("f.csv", format!("x;z;y\n{}", rows.concat()).into()), &DraftOptions::new("y"), &csv)
            .unwrap()
    };
    let two_ways = draft_of(&["1,234;3", "5,678;9", "2,500;4"]);
    assert_eq!(column(&two_ways, "x").kind, ColumnKind::Drop);
    assert!(notes(&two_ways, "x").contains("decimal comma"), "{}", notes(&two_ways, "x"));
    let commas = draft_of(&["1,234;3,5", "5,678;9", "2,500;4,25"]);
    assert_eq!(column(&commas, "x").kind, numeric(1.234, 5.678, false));
    let points = draft_of(&["1,234;3.5", "5,678;9", "2,500;4.25"]);
    assert_eq!(column(&points, "x").kind, numeric(1234.0, 5678.0, false));
    let both = draft_of(&["1,234;3,5", "5,678;9.5", "2,500;4,25"]);
    assert_eq!(column(&both, "x").kind, ColumnKind::Drop);

    let days = draft_of(&["1/2/2024;3", "5/6/2024;9", "12/11/2024;4"]);
    assert_eq!(column(&days, "x").kind, ColumnKind::Drop);
    assert!(notes(&days, "x").contains("\"%m/%d/%Y\" or \"%d/%m/%Y\""), "{}", notes(&days, "x"));
    let short = draft_of(&["1.2.24;3", "5.6.24;9", "12.11.24;4"]);
    assert_eq!(column(&short, "x").kind, ColumnKind::Drop);
    assert!(notes(&short, "x").contains("century"), "{}", notes(&short, "x"));
    let us = draft_of(&["1/2/2024;3", "5/31/2024;9", "12/11/2024;4"]);
    assert_eq!(column(&us, "x").kind, numeric(19724.0, 20068.0, false));
}

#[test]
fn cells_written_otherwise_are_counted_with_the_first_line() {
    let mut rows: Vec<String> =
        (0..40).map(|i| format!("\"{},{:02} €\",{}.3.2024,{}\n", i * 37 % 50, i, i % 28 + 1, i % 2)).collect();
    rows[6] = "12 €,2024-03-07,0\n".into();
    rows[9] = "\"13,5\",soon,1\n".into();
    rows[11] = "free,8.3.2024,1\n".into();
    let text = format!("cost,day,y\n{}", rows.concat());
    let draft = drafted(&text, &DraftOptions::new("y")).unwrap();
    assert!(
        notes(&draft, "cost").contains("Cells that are not such numbers: 2, the first on line 11."),
        "{}",
        notes(&draft, "cost")
    );
    assert!(
        notes(&draft, "day").contains("Cells that are not such dates: 2, the first on line 8."),
        "{}",
        notes(&draft, "day")
    );
    let encoder = Encoder::new(&draft.schema, Encoding::UNIT_ROWS).unwrap();
    let refused =
        load_csv::<f64>(Input::from_bytes("f.csv", text.into()), &encoder, &CsvOptions::default()).unwrap_err();
    assert_eq!((refused.code(), refused.line(), refused.column()), ("csv.bad_date", Some(8), Some("day")));
}

#[test]
fn labels_are_numbers_as_written() {
    let rows: String =
        (0..40).map(|i| format!("{};\"{}.{:03},5 kg\"\n", i * 7 % 5, i % 9 + 1, i * 31 % 1000)).collect();
    let csv = CsvOptions { delimiter: Some(b';'), ..CsvOptions::default() };
    let text = format!("x;weight\n{rows}");
    let draft = draft(Input::from_bytes("f.csv", text.into()), &DraftOptions::new("weight"), &csv).unwrap();
    let label = draft.schema.label();
    assert!(matches!(label.kind, LabelKind::Number(LabelRange { min, max }) if min > 1000.0 && max < 10000.0));
    let format = NumberFormat { decimal: ',', thousands: Some('.'), units: vec!["kg".into()] };
    assert_eq!(label.format, Some(format));
    assert_eq!(Schema::parse("s", &draft.to_toml()).unwrap(), draft.schema);
}

#[test]
fn a_number_that_looks_plain_is_read_in_the_format_of_its_column() {
    let schema = "label = { column = 'y', positive = '1', negative = '0' }\n\
        columns.a = { type = 'numeric', min = 0, max = 10000, decimal = ',', thousands = '.' }\n\
        columns.b = { type = 'numeric', min = 0, max = 10000 }\n\
        columns.c = { type = 'numeric', column = 'b', min = 0, max = 10000, log1p = true }\n\
        columns.d = { type = 'indicator', one = ['0'], zero = ['1'] }";
    let encoder = Encoder::new(&Schema::parse("s", schema).unwrap(), Encoding::UNIT_ROWS).unwrap();
    let plain = schema.replace(", decimal = ',', thousands = '.'", "").replace(", one = ['0'], zero = ['1']", "");
    let plain = Encoder::new(&Schema::parse("s", &plain).unwrap(), Encoding::UNIT_ROWS).unwrap();
    let load = |encoder: &Encoder, text: &str| {
        let loaded = load_csv::<f64>(Input::from_bytes("f.csv", text.into()), encoder, &CsvOptions::default()).unwrap();
        let Rows::Dense { values, .. } = loaded.examples.block().rows else { panic!("few columns are dense") };
        values.to_vec()
    };
    let found = load(&encoder, "a,b,d,y\n1.234,1.234,0,1\n7,7,1,0\n12.500,2,1,1\n");
    assert_eq!(found, load(&plain, "a,b,d,y\n1234,1.234,1,1\n7,7,0,0\n12500,2,0,1\n"));
}

#[test]
fn many_units_are_text_on_any_number_of_threads() {
    // Nearly all have one unit; a chunk in which others come first would not tell it apart.
    let unit =
        |i: usize| if i.is_multiple_of(20) { char::from(b'a' + (i / 20 % 12) as u8).to_string() } else { "kg".into() };
    let rows: String = (0..4000).map(|i| format!("{} {},{},{}\n", i % 90, unit(i), i % 9, i % 2)).collect();
    let draft = |threads: usize| {
        let workers = crate::Workers::new(threads.try_into().unwrap());
        let source = Drops(std::io::Cursor::new(format!("x,z,y\n{rows}").into_bytes()));
        let input = Input::from_reader("a.csv", source).unwrap().with_workers(workers);
        draft(input, &DraftOptions::new("y"), &CsvOptions::default()).unwrap()
    };
    let one = draft(1);
    assert_eq!(column(&one, "x").kind, ColumnKind::Drop);
    assert_eq!(draft(3), one);
}

/// Such numbers have no separator and no unit, and yet need a format.
#[test]
fn parentheses_and_minus_signs_are_read_as_drafted() {
    let text = "a,b,y\n1,4,no\n(62),\u{2212}5,no\n3.5,- 7,yes\n1e2,8,yes\n";
    let draft = drafted(text, &DraftOptions::new("y")).unwrap();
    assert_eq!(column(&draft, "a").kind, numeric(-62.0, 100.0, false));
    assert_eq!(column(&draft, "b").kind, numeric(-7.0, 8.0, false));
    assert!(draft.to_toml().contains("decimal = \".\"\n"), "{}", draft.to_toml());
    assert_eq!(Schema::parse("s", &draft.to_toml()).unwrap(), draft.schema);
    let plain = text.replace("(62)", "-62").replace('\u{2212}', "-").replace("- 7", "-7");
    assert_eq!(rows(&draft, text), rows(&drafted(&plain, &DraftOptions::new("y")).unwrap(), &plain));
}

#[test]
fn days_of_no_year_are_not_dates() {
    use crate::encode::Cell;
    use crate::table::{Batch, Table, TableColumn};

    let columns = ["a", "y"].map(|name| TableColumn { name: name.to_owned(), unreadable: None });
    let table = Table::new("t", columns.to_vec(), |used, batches| {
        let mut batch = Batch::new(used.len());
        for (i, day) in (19_000..19_040).chain([i32::MAX - 3]).enumerate() {
            batch.push(0, Cell::Date(day))?;
            batch.push(1, Cell::Boolean(i % 3 == 0))?;
        }
        batches.send(batch)
    });
    let draft = draft(Input::from_table(table), &DraftOptions::new("y"), &CsvOptions::default()).unwrap();
    assert_eq!(column(&draft, "a").kind, numeric(19_000.0, 19_039.0, false));
    let note = notes(&draft, "a");
    assert!(note.contains("Cells that are not such dates: 1, the first on line 41."), "{note}");
}

#[test]
fn columns_of_a_typed_table_can_be_used_twice() {
    use crate::encode::Cell;
    use crate::table::{Batch, Table, TableColumn};

    let columns = ["a", "y"].map(|name| TableColumn { name: name.to_owned(), unreadable: None });
    let table = Table::new("t", columns.to_vec(), |used, batches| {
        assert_eq!(used, [0, 1], "each column is read once");
        let mut batch = Batch::new(used.len());
        batch.push(0, Cell::Number(50.0))?;
        batch.push(1, Cell::Boolean(true))?;
        batches.send(batch)
    });
    let schema = "label = { column = 'y', positive = 'true', negative = 'false' }\n\
        columns.a = { type = 'numeric', min = 0, max = 100 }\n\
        columns.b = { type = 'numeric', column = 'a', min = 0, max = 50 }";
    let encoder = Encoder::new(&Schema::parse("s", schema).unwrap(), Encoding::UNIT_ROWS).unwrap();
    let loaded = load_csv::<f64>(Input::from_table(table), &encoder, &CsvOptions::default()).unwrap();
    let Rows::Dense { values, .. } = loaded.examples.block().rows else { panic!("few columns are dense") };
    // (0, 1, 1) divided by its norm.
    assert!(values[0] == 0.0 && (values[1] - 0.5_f64.sqrt()).abs() < 1e-14, "{values:?}");
}

/// Writes a number with these marks.
fn written(cents: i64, (decimal, thousands): (char, char), unit: &str, front: bool) -> String {
    let (whole, fraction) = (cents.unsigned_abs() / 100, cents.unsigned_abs() % 100);
    let digits = whole.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(thousands);
        }
        text.push(digit);
    }
    let text = format!("{text}{decimal}{fraction:02}");
    let text = if front { format!("{unit}{text}") } else { format!("{text} {unit}").trim_end().to_owned() };
    if cents < 0 { format!("-{text}") } else { text }
}

proptest! {
    /// Amounts have the same rows however they are written.
    #[test]
    fn amounts_are_read_as_they_are_written(
        amounts in proptest::collection::vec(-99_999_999..99_999_999_i64, 4..30),
        marks in prop_oneof![Just(('.', ',')), Just((',', '.')), Just((',', ' ')), Just(('.', '\'')), Just((',', '\u{a0}'))],
        (unit, front) in prop_oneof![Just(("", false)), Just(("€", false)), Just(("$", true)), Just(("EUR", false))],
    ) {
        let table = |write: &dyn Fn(i64) -> String| {
            let row = |(i, &cents): (usize, &i64)| format!("\"{}\",{},{}\n", write(cents), i * 7 % 3, i % 2);
            format!("x,z,y\n{}", amounts.iter().enumerate().map(row).collect::<String>())
        };
        let plain = table(&|cents| format!("{}{}.{:02}", if cents < 0 { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100));
        let text = table(&|cents| written(cents, marks, unit, front));
        let (found, expected) = (drafted(&text, &DraftOptions::new("y")).unwrap(), drafted(&plain, &DraftOptions::new("y")).unwrap());
        // A column of one value is dropped from both.
        prop_assert_eq!(&column(&found, "x").kind, &column(&expected, "x").kind);
        prop_assert_eq!(rows(&found, &text), rows(&expected, &plain));
    }
}
