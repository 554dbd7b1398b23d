//! Tables of typed cells: Parquet files, Excel workbooks and SQLite databases give the models, drafts, scores and figures of the same CSV file.

use std::fs::File;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rust_xlsxwriter::{Formula, Workbook};

use crate::support::{Workplace, but_for_the_query, people};

const ROWS: usize = 5000;

/// The same people in `people.csv`, `people.parquet`, the two files of `parts`, `people.xlsx`, a region of `book.xlsx`, and
/// `people.db`.
fn place() -> Workplace {
    let place = Workplace::new();
    let text = people(ROWS, 4);
    place.write("people.csv", &text);
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    std::fs::create_dir(place.path("parts")).unwrap();
    write_parquet(&place, "people.parquet", &rows);
    std::fs::copy(place.path("people.parquet"), place.path("people")).unwrap();
    write_parquet(&place, "parts/part-0.parquet", &rows[..3000]);
    write_parquet(&place, "parts/part-1.parquet", &rows[3000..]);
    write_workbook(&place, "people.xlsx", &rows, false);
    write_workbook(&place, "book.xlsx", &rows, true);
    std::fs::copy(place.path("people.xlsx"), place.path("workbook")).unwrap();
    let mut database = rusqlite::Connection::open(place.path("people.db")).unwrap();
    let columns = "age INTEGER, hours REAL, trade TEXT, earns TEXT";
    let create = format!("CREATE TABLE people ({columns}, born DATE, photo BLOB); CREATE TABLE \"no; one\" (a);");
    database.execute_batch(&create).unwrap();
    let all = database.transaction().unwrap();
    for row in &rows {
        let values = (row[0].parse::<i64>().unwrap(), row[1].parse::<f64>().unwrap(), row[2], row[3]);
        all.execute("INSERT INTO people (age, hours, trade, earns) VALUES (?, ?, ?, ?)", values).unwrap();
    }
    all.commit().unwrap();
    place
}

fn write_parquet(place: &Workplace, name: &str, rows: &[Vec<&str>]) {
    let message = "message people { required int32 age; required double hours; required binary trade (UTF8);
        required binary earns (UTF8); optional int32 born (DATE); }";
    let schema = Arc::new(parse_message_type(message).unwrap());
    let file = File::create(place.path(name)).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for position in 0..5 {
        let mut column = group.next_column().unwrap().unwrap();
        let text = |row: &Vec<&str>| ByteArray::from(row[position]);
        match position {
            0 => {
                let values: Vec<i32> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
                column.typed::<Int32Type>().write_batch(&values, None, None).unwrap();
            }
            1 => {
                let values: Vec<f64> = rows.iter().map(|row| row[1].parse().unwrap()).collect();
                column.typed::<DoubleType>().write_batch(&values, None, None).unwrap();
            }
            4 => {
                let levels = vec![0; rows.len()];
                column.typed::<Int32Type>().write_batch(&[], Some(&levels), None).unwrap();
            }
            _ => {
                let values: Vec<ByteArray> = rows.iter().map(text).collect();
                column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
            }
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

/// Writes a sheet of the people; if it is to be `titled`, among other sheets, with a title above and a total below the table.
fn write_workbook(place: &Workplace, name: &str, rows: &[Vec<&str>], titled: bool) {
    let (mut book, from) = (Workbook::new(), if titled { (2, 1) } else { (0, 0) });
    let sheet = book.add_worksheet();
    sheet.set_name("people").unwrap();
    for (column, name) in (from.1..).zip(["age", "hours", "trade", "earns", "born"]) {
        sheet.write(from.0, column, name).unwrap();
    }
    for (row, cells) in (from.0 + 1..).zip(rows) {
        for (column, cell) in (from.1..).zip(cells) {
            match cell.parse::<f64>() {
                Ok(number) => sheet.write(row, column, number).unwrap(),
                Err(_) => sheet.write(row, column, *cell).unwrap(),
            };
        }
    }
    if titled {
        sheet.write(0, 0, "People").unwrap();
        sheet.write(from.0 + 2 + rows.len() as u32, 1, Formula::new("=SUM(B4:B9)").set_result("7")).unwrap();
        book.add_worksheet().write(0, 0, "Remarks").unwrap();
    }
    book.save(place.path(name)).unwrap();
}

const QUERY: &str = "SELECT age, hours, trade, earns FROM people WHERE age < 1000";

/// The ways of naming the people, after the CSV file.
const SOURCES: [&[&str]; 11] = [
    &["people.csv"],
    &["people.parquet"],
    &["parts"],
    &["parts/*.parquet"],
    // By their first bytes.
    &["people"],
    &["workbook"],
    &["people.xlsx"],
    &["book.xlsx", "--table", "people!B3:F5003"],
    &["people.db", "--table", "people"],
    &["sqlite:people.db", "--table", "people"],
    &["sqlite:people.db", "--query", QUERY],
];

#[test]
fn drafts_are_those_of_the_csv_file() {
    let place = place();
    let draft = |source: &[&str]| {
        let run = place.dp(&[&["schema"], source, &["--label", "earns"]].concat());
        run.ok()
    };
    let of_csv = draft(SOURCES[0]);
    for source in SOURCES {
        let drafted = draft(source);
        // Columns that cannot be read, or hold nothing, are dropped.
        let dropped = drafted.contains("[columns.born]");
        let used =
            drafted.split("\n\n").filter(|part| !part.contains("columns.born") && !part.contains("columns.photo"));
        // Others write to a database: a value that is not a number must not end a training.
        let of_numbers = "on_unreadable = \"neutral\"\n";
        let used: Vec<String> = used.map(|part| part.trim_end().replace(of_numbers, "")).collect();
        assert!(used.iter().eq(of_csv.split("\n\n").map(str::trim_end)), "{source:?}: {drafted}");
        assert_eq!(drafted.contains(of_numbers), source[0].ends_with(".db"), "{source:?}");
        assert_eq!(dropped, !matches!(source, ["people.csv"] | [_, "--query", _]), "{source:?}");
    }
}

#[test]
fn models_scores_and_figures_are_those_of_the_csv_file() {
    let place = place();
    let with = |command: &str, source: &[&str], more: &str| {
        let words = more.split(' ').chain(["--quiet"]);
        let all: Vec<&str> = [command, "--data"].into_iter().chain(source.iter().copied()).chain(words).collect();
        place.dp(&all).ok()
    };
    let train = "--schema s.toml --algorithm auto --epsilon 1 --delta 1e-6 --seed 5 --out m.json --force";
    let tune = train.replace("--algorithm auto", "--algorithm bolt-on-convex --passes 1,3 --method portions");
    let outcomes = |source: &[&str]| {
        with("tune", source, &tune);
        let tuned = but_for_the_query(&place.read("m.json"), source);
        with("train", source, &format!("{train} --memory 10kB --spool ."));
        let spooled = place.read("m.json");
        with("train", source, &format!("{train} --threads 2"));
        let model = place.read("m.json");
        assert!(model == spooled);
        let model = but_for_the_query(&model, source);
        let scores = with("predict", source, "--model m.json");
        let figures = with("evaluate", source, "--model m.json");
        // Persons of a trade, of whom three each are used.
        with("train", source, &format!("{train} --unit trade --max-rows 3 --threads 2 --anyway"));
        let of_units = but_for_the_query(&place.read("m.json"), source);
        let planned = with("train", source, &format!("{train} --dry-run --n 100"));
        (tuned, model, of_units, scores, figures, planned)
    };
    let draft = place.dp(&["schema", "people.csv", "--label", "earns"]).ok();
    place.write("s.toml", draft.replace("reviewed = false", "reviewed = true"));
    let expected = outcomes(SOURCES[0]);
    assert_eq!(expected.3.lines().count(), ROWS + 1);
    for source in &SOURCES[1..] {
        assert!(outcomes(source) == expected, "{source:?}");
    }
}

#[test]
fn what_cannot_be_read_is_said() {
    let place = place();
    let train = |source: &[&str], label: &str| {
        let flags = "--schema-from-data --epsilon 1 --delta 1e-6 --out m.json".split(' ');
        let words =
            ["train", "--data"].into_iter().chain(source.iter().copied()).chain(["--label", label]).chain(flags);
        place.dp(&words.collect::<Vec<_>>())
    };
    let before = place.files();
    train(&["sqlite:people.db"], "earns").fails(1, "table.open").says("one of `people`, `no; one`");
    train(&["sqlite:people.db", "--table", "persons"], "earns").fails(1, "table.open").says("persons");
    train(&["sqlite:people.db", "--query", "SELECT nothing"], "earns").fails(1, "table.open");
    train(&["sqlite:none.db"], "earns").fails(1, "table.open").says("none.db");
    train(&["sqlite:people.csv"], "earns").fails(1, "table.open");
    train(&["sqlite:people.db", "--table", "people"], "wages").fails(3, "csv.missing_column").says("wages");
    train(&["sqlite:people.db", "--table", "no; one"], "a").fails(3, "csv.no_rows");
    train(&["none.parquet"], "earns").fails(1, "table.open");
    train(&["none/*.parquet"], "earns").fails(1, "table.open");
    train(&["people.parquet"], "born").fails(3, "table.type").says("DATE");
    train(&["people.csv", "--table", "people"], "earns").fails(2, "usage.conflict").says("--table");
    train(&["people.parquet", "--query", "SELECT 1"], "earns").fails(2, "usage.conflict").says("--query");
    train(&["people.parquet", "--delimiter", ";"], "earns").fails(2, "usage.conflict").says("--delimiter");
    train(&["people.xlsx", "--query", "SELECT 1"], "earns").fails(2, "usage.conflict").says("--query");
    train(&["people.xlsx", "--table", "persons"], "earns").fails(1, "table.open").says("one of `people`");
    train(&["book.xlsx"], "earns").fails(1, "table.open").says("one of `people`, `Sheet2`");
    train(&["book.xlsx", "--table", "people"], "earns").fails(3, "table.layout").says("people!B3:F1048576");
    train(&["book.xlsx", "--table", "people!B3:F5005"], "earns")
        .fails(3, "table.layout")
        .says("book.xlsx, line 5005")
        .says("row 5004");
    let whole = std::fs::read(place.path("people.parquet")).unwrap();
    let mut damaged = whole.clone();
    damaged[2000..2400].fill(0x55);
    place.write("damaged.parquet", damaged);
    place.write("cut.parquet", &whole[..whole.len() / 2]);
    train(&["damaged.parquet"], "earns").fails(3, "table.read");
    train(&["cut.parquet"], "earns").fails(1, "table.open");
    write_parquet(&place, "parts/part-2.parquet", &[]);
    let other = "message people { required int64 age; }";
    let schema = Arc::new(parse_message_type(other).unwrap());
    let file = File::create(place.path("parts/part-2.parquet")).unwrap();
    SerializedFileWriter::new(file, schema, Arc::default()).unwrap().close().unwrap();
    train(&["parts"], "earns").fails(3, "table.schema").says("part-2.parquet").says("age");
    for name in ["damaged.parquet", "cut.parquet"] {
        std::fs::remove_file(place.path(name)).unwrap();
    }
    assert_eq!(place.files(), before);
}

#[test]
fn typed_cells_are_checked() {
    let place = place();
    let schema = "label = { column = 'earns', positive = 'yes', negative = 'no' }\n\
         [columns.age]\ntype = 'numeric'\nmin = 0\nmax = 120\n\
         [columns.hours]\ntype = 'numeric'\nmin = 0\nmax = 100\n\
         [columns.trade]\ntype = 'categorical'\ncategories = ['baker', 'clerk', 'nurse', 'smith', 'other']\non_unknown = 'other'\n";
    place.write("s.toml", schema);
    let check = |data: &str| place.dp(&["check", "--data", data, "--schema", "s.toml", "--table", "people", "--json"]);
    let database = rusqlite::Connection::open(place.path("people.db")).unwrap();
    database
        .execute_batch(
            "UPDATE people SET age = 'n/a' WHERE rowid = 7; UPDATE people SET hours = NULL WHERE rowid IN (8, 9)",
        )
        .unwrap();
    let run = check("sqlite:people.db");
    let found: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let seen: Vec<String> = found["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{} {} {} {}", one["code"], one["column"], one["count"], one["lines"]).replace('"', ""))
        .collect();
    assert_eq!(seen[..2], ["csv.bad_number age 1 [7]", "csv.missing_value hours 2 [8,9]"], "{found}");
    assert_eq!((run.code, &found["rows"]), (3, &ROWS.into()));
    // The same rows in other formats, before they were changed.
    let of_file = |data: &str| place.dp(&["check", "--data", data, "--schema", "s.toml", "--json"]).json();
    let (csv, parquet) = (of_file("people.csv"), of_file("people.parquet"));
    let rows = |found: &serde_json::Value| {
        let of = |one: &serde_json::Value| {
            (one["code"].clone(), one["column"].clone(), one["count"].clone(), one["texts"].clone())
        };
        found["problems"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!((rows(&csv), &csv["rows"]), (rows(&parquet), &parquet["rows"]));
}

/// The columns of `--id` stand before the scores, whatever is known of a record, on any number of threads and from any source.
#[test]
fn scores_keep_the_columns_of_id() {
    let place = place();
    let text: String = place
        .read("people.csv")
        .lines()
        .enumerate()
        .map(|(i, line)| match i {
            0 => format!("\"no, or name\",{line}\n"),
            // A record without influence has no score, but a number.
            5 => format!("\"5, \"\"five\"\"\",,{}\n", line.split_once(',').unwrap().1),
            _ => format!("{i},{line}\n"),
        })
        .collect();
    place.write("named.csv", text);
    let train = "train --data people.csv --label earns --schema-from-data --epsilon 1 --out m.json";
    place.dp(&train.split(' ').collect::<Vec<_>>()).ok();
    let predict =
        |data: &str, more: &[&str]| place.dp(&[&["predict", "--model", "m.json", "--data", data], more].concat());
    let plain = predict("named.csv", &[]).ok();
    let named = predict("named.csv", &["--id", "no, or name", "--id", "trade", "--threads", "3"]).ok();
    assert_eq!(named, predict("named.csv", &["--id", "no, or name", "--id", "trade", "--threads", "1"]).ok());
    let lines = place.read("people.csv");
    let trades = lines.lines().map(|line| line.split(',').nth(2).unwrap());
    for (i, ((named, plain), trade)) in named.lines().zip(plain.lines()).zip(trades).enumerate() {
        let id = match i {
            0 => "\"no, or name\"".to_owned(),
            5 => "\"5, \"\"five\"\"\"".to_owned(),
            _ => i.to_string(),
        };
        assert_eq!(named, format!("{id},{trade},{plain}"));
        assert_eq!(plain == ",,", i == 5, "{plain}");
    }
    assert_eq!(named.lines().count(), ROWS + 1);
    // Typed cells have their text; a column of the schema can be one of them.
    let of_csv = predict("people.csv", &["--id", "age"]).ok();
    for source in [
        &["people.parquet", "--id", "age"][..],
        &["people.xlsx", "--id", "age"],
        &["sqlite:people.db", "--table", "people", "--id", "age"],
    ] {
        assert_eq!(predict(source[0], &source[1..]).ok(), of_csv);
    }
    predict("people.csv", &["--id", "nobody"]).fails(3, "csv.missing_column").says("nobody");
    predict("people.csv", &["--id", "nobody", "--dry-run"]).fails(3, "csv.missing_column");
    predict("people.parquet", &["--id", "nobody"]).fails(3, "csv.missing_column");
    place.write("x.libsvm", "1 1:1\n");
    predict("x.libsvm", &["--id", "age"]).fails(2, "usage.conflict").says("--id");
}
