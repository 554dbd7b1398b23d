//! Every defect of a cell in every format of files: refused, counted as missing where the schema says so, or read as a person
//! reads it. No value is changed in silence. The outcomes are listed in `DEFECTS.md`; `DP_WRITE_DEFECTS=1` writes them anew.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rust_xlsxwriter::{ExcelDateTime, Format, Formula, Workbook};

use crate::support::Workplace;

/// A cell.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell {
    Number(f64),
    Text(&'static str),
    Bool(bool),
    /// 2024-01-31 as a date of a workbook; elsewhere as text.
    Date,
    /// `#N/A` of a formula of a workbook.
    Error,
    Empty,
}

/// The column of a defect.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Column {
    /// Numeric, 0 to 5000.
    Pay,
    /// Categorical, a and b.
    Ward,
    /// The label, yes and no.
    Label,
}

/// How a cell may be read, besides as refused.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reading {
    /// As this number.
    As(f64),
    /// As this category.
    AsText(&'static str),
    /// As missing, where the schema says so.
    Missing,
}

struct Defect {
    name: &'static str,
    column: Column,
    cell: Cell,
    allowed: &'static [Reading],
}

const fn pay(name: &'static str, cell: Cell, allowed: &'static [Reading]) -> Defect {
    Defect { name, column: Column::Pay, cell, allowed }
}

const fn text(name: &'static str, allowed: &'static [Reading]) -> Defect {
    pay(name, Cell::Text(name), allowed)
}

const DEFECTS: &[Defect] = &[
    pay("a number", Cell::Number(1234.5), &[Reading::As(1234.5)]),
    text("1234.5", &[Reading::As(1234.5)]),
    text(" 1234.5 ", &[Reading::As(1234.5)]),
    text("1.2345e3", &[Reading::As(1234.5)]),
    text("1,234.5", &[Reading::Missing]),
    text("1.234,5", &[Reading::Missing]),
    text("1234,5", &[Reading::Missing]),
    text("1 234.5", &[Reading::Missing]),
    text("1_234", &[Reading::Missing]),
    text("12%", &[Reading::Missing]),
    text("$1234", &[Reading::Missing]),
    text("1.2.3", &[Reading::Missing]),
    text("0x10", &[Reading::Missing]),
    text("\u{664}\u{662}", &[Reading::Missing]),
    text("12 EUR", &[Reading::Missing]),
    text("unknown", &[Reading::Missing]),
    text("NaN", &[Reading::Missing]),
    text("inf", &[Reading::Missing]),
    pay("NaN, typed", Cell::Number(f64::NAN), &[Reading::Missing]),
    pay("infinity, typed", Cell::Number(f64::INFINITY), &[Reading::Missing]),
    pay("empty", Cell::Empty, &[Reading::Missing]),
    pay("true", Cell::Bool(true), &[Reading::As(1.0), Reading::Missing]),
    pay("a date", Cell::Date, &[Reading::Missing]),
    pay("#N/A", Cell::Error, &[Reading::Missing]),
    pay("above the range", Cell::Number(9999.0), &[Reading::As(5000.0)]),
    pay("below the range", Cell::Number(-3.0), &[Reading::As(0.0)]),
    Defect { name: "category c", column: Column::Ward, cell: Cell::Text("c"), allowed: &[Reading::Missing] },
    Defect { name: "category A", column: Column::Ward, cell: Cell::Text("A"), allowed: &[Reading::Missing] },
    Defect { name: "category ` a `", column: Column::Ward, cell: Cell::Text(" a "), allowed: &[Reading::AsText("a")] },
    Defect { name: "category empty", column: Column::Ward, cell: Cell::Empty, allowed: &[Reading::Missing] },
    Defect { name: "label maybe", column: Column::Label, cell: Cell::Text("maybe"), allowed: &[] },
    Defect { name: "label empty", column: Column::Label, cell: Cell::Empty, allowed: &[Reading::Missing] },
];

const FORMATS: [&str; 4] = ["csv", "xlsx", "parquet", "db"];
const ROWS: usize = 60;
/// The row of the defect.
const DEFECTIVE: usize = 30;

/// The cells of a row: pay, ward, label.
fn row(i: usize) -> [Cell; 3] {
    let pay = (i * 83 % 5000) as f64 + 0.5;
    [Cell::Number(pay), Cell::Text(["a", "b"][i % 2]), Cell::Text(if pay > 2000.0 { "yes" } else { "no" })]
}

fn table(column: Column, cell: Cell) -> Vec<[Cell; 3]> {
    let mut rows: Vec<[Cell; 3]> = (0..ROWS).map(row).collect();
    rows[DEFECTIVE] = [Cell::Number(2500.0), Cell::Text("b"), Cell::Text("yes")];
    rows[DEFECTIVE][match column {
        Column::Pay => 0,
        Column::Ward => 1,
        Column::Label => 2,
    }] = cell;
    rows
}

/// The cell as text; `None` if it is empty.
fn as_text(cell: Cell) -> Option<String> {
    match cell {
        Cell::Number(number) if number.is_nan() => Some("NaN".to_owned()),
        Cell::Number(number) => Some(number.to_string()),
        Cell::Text(text) => Some(text.to_owned()),
        Cell::Bool(value) => Some(value.to_string()),
        Cell::Date => Some("2024-01-31".to_owned()),
        Cell::Error => Some("#N/A".to_owned()),
        Cell::Empty => None,
    }
}

/// Writes the table; returns false for a cell that the format cannot hold.
fn write(place: &Workplace, format: &str, rows: &[[Cell; 3]]) -> bool {
    let path = place.path(&format!("t.{format}"));
    let cells = || rows.iter().flatten();
    match format {
        "csv" => {
            let quoted = |cell: &Cell| match as_text(*cell) {
                Some(text) if text.contains(',') => format!("\"{text}\""),
                text => text.unwrap_or_default(),
            };
            let lines = rows.iter().map(|row| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n");
            std::fs::write(path, format!("pay,ward,well\n{}", lines.collect::<String>())).unwrap();
        }
        "xlsx" => {
            let is_odd = |cell: &Cell| matches!(cell, Cell::Number(number) if !number.is_finite());
            return !cells().any(is_odd) && write_workbook(&path, rows);
        }
        "parquet" => return !cells().any(|cell| *cell == Cell::Error) && write_parquet(&path, rows),
        _ => {
            // SQLite stores NaN as NULL.
            if cells()
                .any(|cell| matches!(cell, Cell::Error) || matches!(cell, Cell::Number(number) if number.is_nan()))
            {
                return false;
            }
            let _ = std::fs::remove_file(&path);
            let database = rusqlite::Connection::open(path).unwrap();
            database.execute_batch("PRAGMA synchronous = OFF; CREATE TABLE t (pay, ward, well)").unwrap();
            for row in rows {
                let value = |cell: Cell| match cell {
                    Cell::Number(number) => rusqlite::types::Value::Real(number),
                    Cell::Bool(value) => rusqlite::types::Value::Integer(value.into()),
                    cell => as_text(cell).map_or(rusqlite::types::Value::Null, rusqlite::types::Value::Text),
                };
                database.execute("INSERT INTO t VALUES (?, ?, ?)", row.map(value)).unwrap();
            }
        }
    }
    true
}

fn write_workbook(path: &Path, rows: &[[Cell; 3]]) -> bool {
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    for (column, name) in (0..).zip(["pay", "ward", "well"]) {
        sheet.write(0, column, name).unwrap();
    }
    let (day, date) = (ExcelDateTime::from_ymd(2024, 1, 31).unwrap(), Format::new().set_num_format("yyyy-mm-dd"));
    for (at, row) in (1..).zip(rows) {
        for (column, cell) in (0..).zip(row) {
            let written = match *cell {
                Cell::Number(number) => sheet.write(at, column, number),
                Cell::Text(text) => sheet.write(at, column, text),
                Cell::Bool(value) => sheet.write(at, column, value),
                Cell::Date => sheet.write_with_format(at, column, &day, &date),
                Cell::Error => sheet.write(at, column, Formula::new("=NA()").set_result("#N/A")),
                Cell::Empty => continue,
            };
            written.unwrap();
        }
    }
    book.save(path).unwrap();
    true
}

/// A column of texts if any of its cells is one, otherwise of its type.
fn write_parquet(path: &Path, rows: &[[Cell; 3]]) -> bool {
    let of = |position: usize| rows.iter().map(move |row| row[position]);
    let is_text = |position: usize| of(position).any(|cell| matches!(cell, Cell::Text(_) | Cell::Date));
    let is_bool = |position: usize| of(position).any(|cell| matches!(cell, Cell::Bool(_)));
    let kind = |position| match position {
        position if is_text(position) => "binary",
        position if is_bool(position) => "boolean",
        _ => "double",
    };
    let columns = ["pay", "ward", "well"].into_iter().enumerate().map(|(position, name)| {
        let kind = kind(position);
        format!("optional {kind} {name}{};", if kind == "binary" { " (UTF8)" } else { "" })
    });
    let message = format!("message t {{ {} }}", columns.collect::<String>());
    let schema = Arc::new(parse_message_type(&message).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for position in 0..3 {
        let mut column = group.next_column().unwrap().unwrap();
        let cells: Vec<Cell> = of(position).collect();
        let levels: Vec<i16> = cells.iter().map(|cell| i16::from(*cell != Cell::Empty)).collect();
        let present = cells.iter().filter(|cell| **cell != Cell::Empty);
        match kind(position) {
            "binary" => {
                let values: Vec<ByteArray> = present.map(|cell| as_text(*cell).unwrap().as_str().into()).collect();
                column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None).unwrap();
            }
            // All records have the boolean, as a column has one type.
            "boolean" => {
                let values = vec![true; cells.len()];
                column.typed::<BoolType>().write_batch(&values, Some(&vec![1; cells.len()]), None).unwrap();
            }
            _ => {
                let number = |cell: &Cell| if let Cell::Number(number) = cell { *number } else { f64::NAN };
                let values: Vec<f64> = present.map(number).collect();
                column.typed::<DoubleType>().write_batch(&values, Some(&levels), None).unwrap();
            }
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    true
}

/// The schema, which treats what is missing, unreadable or undeclared as an error or as neutral.
fn schema(treatment: &str) -> String {
    let of_label = if treatment == "neutral" { ", on_missing = 'neutral'" } else { "" };
    format!(
        "label = {{ column = 'well', positive = 'yes', negative = 'no'{of_label} }}\n\
         columns.pay = {{ type = 'numeric', min = 0, max = 5000, on_missing = '{treatment}', on_unreadable = '{treatment}' }}\n\
         columns.ward = {{ type = 'categorical', categories = ['a', 'b'], on_missing = '{treatment}', on_unknown = '{treatment}' }}"
    )
}

/// The score of the record with the defect; the code of the error if the file is refused.
fn outcome(place: &Workplace, treatment: &str, format: &str) -> Result<String, String> {
    let model = format!("{treatment}.json");
    let file = format!("t.{format}");
    let run = place.dp(&["predict", "--model", &model, "--data", &file, "--json", "--out", "s.csv", "--force"]);
    if run.code != 0 {
        return Err(code(&run.stdout));
    }
    // Training reads the label too.
    let schema = format!("{treatment}.toml");
    let train = ["train", "--data", &file, "--schema", &schema, "--epsilon", "1", "--algorithm", "bolt-on-convex"];
    let run = place.dp(&[&train[..], &["--json", "--out", "x.json", "--force"]].concat());
    if run.code != 0 {
        return Err(code(&run.stdout));
    }
    Ok(place.read("s.csv").lines().nth(DEFECTIVE + 1).unwrap().split(',').next().unwrap().to_owned())
}

fn code(stdout: &str) -> String {
    let error: serde_json::Value = serde_json::from_str(stdout).unwrap();
    error["error"]["code"].as_str().unwrap().to_owned()
}

#[test]
fn no_defect_of_a_cell_changes_its_value_in_silence() {
    let place = Workplace::new();
    write(&place, "csv", &table(Column::Pay, Cell::Number(2500.0)));
    for treatment in ["error", "neutral"] {
        place.write(&format!("{treatment}.toml"), schema(treatment));
        let typed = format!(
            "train --data t.csv --schema {treatment}.toml --epsilon 5 --seed 1 --algorithm bolt-on-convex --out {treatment}.json"
        );
        place.dp(&typed.split(' ').collect::<Vec<_>>()).ok();
    }
    let mut text = "# Defects of cells\n\n\
        What becomes of a cell, by format and by what the schema says of cells that are missing, cannot be read or hold an undeclared\n\
        category (`on_missing`, `on_unreadable`, `on_unknown`): `error`, the default of a schema that says nothing, or `neutral`. A refusal shows its code\n\
        (`dp explain CODE`); `-` marks what the format cannot hold. `cargo test -p dp-cli --test commands defects` checks every cell of\n\
        this table, and that no value is read as another one.\n\n\
        | cell |"
        .to_owned();
    for format in FORMATS {
        for treatment in ["error", "neutral"] {
            write!(text, " {format}, {treatment} |").unwrap();
        }
    }
    text.push_str(&format!("\n|{}\n", "---|".repeat(1 + 2 * FORMATS.len())));
    for defect in DEFECTS {
        write!(
            text,
            "| {} |",
            if let Cell::Text(cell) = defect.cell {
                if cell == defect.name { format!("`{cell}`") } else { defect.name.to_owned() }
            } else {
                defect.name.to_owned()
            }
        )
        .unwrap();
        for format in FORMATS {
            for treatment in ["error", "neutral"] {
                if !write(&place, format, &table(defect.column, defect.cell)) {
                    text.push_str(" - |");
                    continue;
                }
                let found = outcome(&place, treatment, format);
                let said = format!("{} {format} {treatment}: {found:?}", defect.name);
                let shown = match &found {
                    Err(code) => format!("`{code}`"),
                    Ok(score) if score.is_empty() || defect.column == Column::Label => {
                        assert!(treatment == "neutral" && defect.allowed.contains(&Reading::Missing), "{said}");
                        "missing".to_owned()
                    }
                    Ok(score) => {
                        // The score is that of the plain cell.
                        let as_plain = |reading: &Reading| {
                            let plain = match *reading {
                                Reading::As(number) => Cell::Number(number),
                                Reading::AsText(text) => Cell::Text(text),
                                Reading::Missing => return None,
                            };
                            write(&place, "csv", &table(defect.column, plain));
                            let of_plain = outcome(&place, treatment, "csv").unwrap();
                            (of_plain == *score).then(|| as_text(plain).unwrap())
                        };
                        // A missing cell of one column leaves the others: then the score is that of a record without the cell.
                        let without = || {
                            write(&place, "csv", &table(defect.column, Cell::Empty));
                            let missing = treatment == "neutral" && defect.allowed.contains(&Reading::Missing);
                            (missing && outcome(&place, treatment, "csv").as_ref() == Ok(score))
                                .then(|| "missing".to_owned())
                        };
                        defect.allowed.iter().find_map(as_plain).or_else(without).unwrap_or_else(|| panic!("{said}"))
                    }
                };
                write!(text, " {shown} |").unwrap();
            }
        }
        text.push('\n');
    }
    let listed = Path::new(env!("CARGO_MANIFEST_DIR")).join("DEFECTS.md");
    if std::env::var_os("DP_WRITE_DEFECTS").is_some() {
        std::fs::write(&listed, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&listed).unwrap_or_default(), text, "DEFECTS.md is not up to date");
}
