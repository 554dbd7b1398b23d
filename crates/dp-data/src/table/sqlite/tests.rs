use super::super::ROWS_OF_A_BATCH;
use super::*;
use crate::draft::{DraftOptions, draft};
use crate::read::{CsvOptions, Input, RecordReader, load};
use crate::schema::{ColumnKind, LabelKind};
use crate::{Encoder, Encoding, Schema, Workers};

fn database(folder: &tempfile::TempDir, statements: &str) -> std::path::PathBuf {
    let path = folder.path().join("people.db");
    let _ = std::fs::remove_file(&path);
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(statements).unwrap();
    path
}

const PEOPLE: &str = "CREATE TABLE people (age INTEGER, income REAL, town TEXT, member BOOLEAN, \"odd \"\"name\" TEXT, big INTEGER);
    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4999)
    INSERT INTO people SELECT CASE WHEN i % 5 = 0 THEN NULL ELSE i % 90 END, i * 1.25,
        CASE WHEN i % 7 = 0 THEN NULL WHEN i % 2 = 0 THEN 'Rome' ELSE 'Oslo' END, i % 3 = 0, 'a''; DROP TABLE people', 9007199254740993
    FROM n;";

fn rows(table: Table, names: &[&str]) -> super::super::Rows {
    let used = names.iter().map(|name| table.position(name).unwrap()).collect();
    table.start(used).unwrap()
}

#[test]
fn names_that_are_not_utf_8_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder, "CREATE TABLE people (age INT, nameX TEXT)");
    let mut bytes = std::fs::read(&path).unwrap();
    let place = bytes.windows(5).position(|part| part == b"nameX").unwrap();
    bytes[place + 3] = 0xe9;
    std::fs::write(&path, bytes).unwrap();
    for relation in [Relation::Only, Relation::Query("SELECT * FROM people".to_owned())] {
        let error = open(&path, &relation).unwrap_err();
        assert!(error.code() == "table.open" && error.message().contains("UTF-8"), "{error:?}");
    }
    let path = database(&folder, "PRAGMA encoding = 'UTF-16le'; CREATE TABLE people (\"größe\" REAL)");
    for relation in [Relation::Only, Relation::Query("SELECT * FROM people".to_owned())] {
        assert_eq!(open(&path, &relation).unwrap().columns()[0].name, "größe");
    }
}

#[test]
fn cells_have_their_types() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder, PEOPLE);
    let queries = [
        Relation::Only,
        Relation::Table("people".to_owned()),
        Relation::Query("SELECT * FROM people -- all of them\n".to_owned()),
    ];
    for relation in queries {
        let table = open(&path, &relation).unwrap();
        assert_eq!(table.columns().len(), 6);
        let mut rows = rows(table, &["odd \"name", "age", "town", "member", "income", "big"]);
        for i in 0..5000usize {
            assert!(rows.advance().unwrap(), "{i}");
            assert_eq!(rows.cell(0), Cell::Text(b"a'; DROP TABLE people"));
            assert_eq!(rows.cell(1), if i % 5 == 0 { Cell::Missing } else { Cell::Number((i % 90) as f64) });
            assert_eq!(rows.cell(2), if i % 7 == 0 { Cell::Missing } else { Cell::Text([b"Rome", b"Oslo"][i % 2]) });
            assert_eq!(rows.cell(3), Cell::Boolean(i % 3 == 0));
            assert_eq!(rows.cell(4), Cell::Number(i as f64 * 1.25));
            assert_eq!(rows.cell(5), Cell::Text(b"9007199254740993"));
        }
        assert!(!rows.advance().unwrap());
    }
}

#[test]
fn the_same_records_have_the_same_encoding_and_draft() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder, PEOPLE);
    let mut csv = String::from("age,income,town,member\n");
    for i in 0..5000usize {
        let age = if i % 5 == 0 { String::new() } else { (i % 90).to_string() };
        let town = if i % 7 == 0 { "" } else { ["Rome", "Oslo"][i % 2] };
        csv.push_str(&format!("{age},{},{town},{}\n", i as f64 * 1.25, u8::from(i % 3 == 0)));
    }
    let query = Relation::Query("SELECT age, income, town, member + 0 AS member FROM people".to_owned());
    let inputs = || {
        let table = Input::from_table(open(&path, &query).unwrap());
        [Input::from_bytes("a.csv", csv.clone().into_bytes()), table]
    };
    let [of_csv, of_table] =
        inputs().map(|input| draft(input, &DraftOptions::new("member"), &CsvOptions::default()).unwrap());
    assert_eq!(of_csv, of_table);
    let mut schema = of_table.schema;
    schema.assume_all_public();
    let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS).unwrap();
    for workers in [Workers::ONE, Workers::new(2.try_into().unwrap())] {
        let [one, other] = inputs().map(|input| {
            let loaded = load::<f64>(input.with_workers(workers), &encoder, &CsvOptions::default()).unwrap();
            let block = loaded.examples.block();
            let crate::Rows::Dense { values, .. } = block.rows else { panic!("dense") };
            (values.to_vec(), block.targets.to_vec(), block.valid.map(<[bool]>::to_vec))
        });
        assert!(one == other);
    }
}

#[test]
fn booleans_and_blobs_are_drafted() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder, PEOPLE);
    let table = Input::from_table(open(&path, &Relation::Only).unwrap());
    let drafted = draft(table, &DraftOptions::new("member"), &CsvOptions::default()).unwrap();
    let LabelKind::TwoClasses { positive, negative, .. } = &drafted.schema.label().kind else { panic!("two classes") };
    let spellings = [["true", "True", "TRUE"], ["false", "False", "FALSE"]];
    assert_eq!([&positive[..], &negative[..]], spellings);
    assert!(drafted.schema.columns().iter().any(|column| matches!(column.kind, ColumnKind::Drop)));
}

#[test]
fn what_cannot_be_read_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder, PEOPLE);
    let refused = |relation: Relation| open(&path, &relation).unwrap_err();
    let no_table = refused(Relation::Table("person".to_owned()));
    assert!(no_table.code() == "table.open" && no_table.to_string().contains("person"), "{no_table}");
    assert_eq!(refused(Relation::Query("SELECT age FROM".to_owned())).code(), "table.open");
    // A query cannot end its statement and begin another, and nothing is written.
    for query in ["SELECT 1); DROP TABLE people; --", "DELETE FROM people", "SELECT 1; SELECT 2"] {
        assert_eq!(refused(Relation::Query(query.to_owned())).code(), "table.open", "{query}");
    }
    assert_eq!(
        rows(open(&path, &Relation::Only).unwrap(), &["age"]).next_batch().unwrap().unwrap().len(),
        ROWS_OF_A_BATCH
    );
    std::fs::write(folder.path().join("text.db"), "age,income\n1,2\n".repeat(100)).unwrap();
    assert_eq!(open(folder.path().join("text.db"), &Relation::Only).unwrap_err().code(), "table.open");
    let several = database(&folder, "CREATE TABLE one (a); CREATE VIEW two AS SELECT * FROM one;");
    let error = open(&several, &Relation::Only).unwrap_err();
    assert_eq!(error.expected_text(), Some("one of `one`, `two`"));
    assert!(open(&several, &Relation::Table("two".to_owned())).is_ok());
    let none = database(&folder, "CREATE TABLE gone (a); DROP TABLE gone;");
    assert_eq!(open(&none, &Relation::Only).unwrap_err().code(), "table.open");
}

/// A name that a query does not give, and hostile names.
#[test]
fn names_are_never_taken_for_texts() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder, "CREATE TABLE t (a, \"b`; DROP TABLE t; --\"); INSERT INTO t VALUES (1, 2)");
    let mut found = rows(open(&path, &Relation::Only).unwrap(), &["b`; DROP TABLE t; --", "a"]);
    assert!(found.advance().unwrap());
    assert_eq!((found.cell(0), found.cell(1)), (Cell::Number(2.0), Cell::Number(1.0)));
    // Names that occur twice, or that are computed, in the result of a query.
    for query in ["SELECT t.a, u.a FROM t, t AS u", "SELECT a + 1, a FROM t", "SELECT a AS \"\", a FROM t"] {
        let Ok(table) = open(&path, &Relation::Query(query.to_owned())) else { continue };
        let all: Vec<String> = table.columns().iter().map(|column| column.name.clone()).collect();
        let Ok(used) = all.iter().map(|name| table.position(name)).collect::<Result<Vec<_>, _>>() else { continue };
        let mut found = table.start(used).unwrap();
        if found.advance().is_ok() {
            for place in 0..all.len() {
                assert!(matches!(found.cell(place), Cell::Number(_)), "{query}: {:?}", found.cell(place));
            }
        }
    }
}

/// Cells of ten megabytes are read a few at a time.
#[test]
fn long_texts_are_sent_early() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(
        &folder,
        "CREATE TABLE t (a); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
         INSERT INTO t SELECT printf('%.*c', 10000000, 'x') FROM n",
    );
    let mut rows = rows(open(&path, &Relation::Only).unwrap(), &["a"]);
    let mut count = 0;
    while let Some(batch) = rows.next_batch().unwrap() {
        assert!(batch.len() == 1 && batch.text_bytes() == 10_000_000);
        count += 1;
    }
    assert_eq!(count, 20);
}

#[test]
fn bad_cells_have_their_row_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let values = "CREATE TABLE t (a, y); INSERT INTO t VALUES (1, 0), (2, 1), ";
    // Text in a numeric column is a bad number, as in a file; the message for others does not quote it.
    let path = database(&folder, &format!("{values} ('secret', 0)"));
    let schema = "label = { column = 'y', positive = '1', negative = '0' }\n\
        columns.a = { type = 'numeric', min = 0, max = 9 }";
    let encoder = Encoder::new(&Schema::parse("s.toml", schema).unwrap(), Encoding::UNIT_ROWS).unwrap();
    for workers in [Workers::ONE, Workers::new(2.try_into().unwrap())] {
        let input = Input::from_table(open(&path, &Relation::Only).unwrap()).with_workers(workers);
        let error = load::<f64>(input, &encoder, &CsvOptions::default()).unwrap_err();
        assert_eq!((error.code(), error.line(), error.column()), ("csv.bad_number", Some(3), Some("a")));
        assert!(!error.public_message().contains("secret") && error.to_string().contains("secret"));
    }
}

/// Another program writes while the rows are read: they are those of one moment.
#[test]
fn a_writer_is_not_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder, &format!("PRAGMA journal_mode = WAL; {PEOPLE}"));
    let mut rows = rows(open(&path, &Relation::Only).unwrap(), &["age"]);
    assert!(rows.advance().unwrap());
    let writer = Connection::open(&path).unwrap();
    writer.execute_batch("DELETE FROM people WHERE rowid > 100; INSERT INTO people (age) VALUES (5)").unwrap();
    let mut count = 1;
    while rows.advance().unwrap() {
        count += 1;
    }
    assert_eq!(count, 5000);
}

/// A cell may hold bytes whatever the type of its column. No such cell stops the reading under a schema that refuses no record.
#[test]
fn bytes_that_are_no_text_follow_the_rule_of_their_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(
        &folder,
        "CREATE TABLE people (patient, age, town, sick);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 49)
         INSERT INTO people SELECT x'ff00' || i, i, CASE WHEN i % 2 = 0 THEN 'Rome' ELSE 'Oslo' END, i % 3 = 0 FROM n;
         INSERT INTO people VALUES (x'ff01', x'ff', 'Rome', 0), (CAST(x'fe' AS TEXT), 7, x'00ff', 0),
            (x'ff01', 8, CAST(x'c3' AS TEXT), 1), (NULL, 9, x'526f6d65', x'ff'), (NULL, x'3130', x'526f6d65', 1);",
    );
    let schema = |rule: &str| {
        format!(
            "label = {{ column = 'sick', positive = '1', negative = '0', others = 'neutral', on_missing = 'neutral' }}\n\
             columns.age = {{ type = 'numeric', min = 0, max = 100, on_unreadable = '{rule}', on_missing = 'neutral' }}\n\
             columns.town = {{ type = 'categorical', categories = ['Oslo', 'Rome'], on_unknown = 'neutral', on_missing = 'neutral' }}"
        )
    };
    let input = || Input::from_table(open(&path, &Relation::Table("people".to_owned())).unwrap());
    let encoder = |rule| Encoder::new(&Schema::parse("s.toml", &schema(rule)).unwrap(), Encoding::UNIT_ROWS).unwrap();
    let neutral = encoder("neutral");
    assert!(!neutral.can_refuse_records());
    for workers in [Workers::ONE, Workers::new(2.try_into().unwrap())] {
        let loaded = load::<f64>(input().with_workers(workers), &neutral, &CsvOptions::default()).unwrap();
        let valid = loaded.examples.block().valid.unwrap().to_vec();
        assert_eq!(valid[..50], [true; 50]);
        assert_eq!(valid[50..], [false, false, false, false, true]);
    }
    let refused = load::<f64>(input(), &encoder("error"), &CsvOptions::default()).unwrap_err();
    assert_eq!((refused.kind(), refused.line()), (DataErrorKind::CsvBadNumber, Some(51)));
    // Units that are bytes stay apart, and a draft proposes nothing for them.
    let units = ["patient".to_owned()];
    let mut records = RecordReader::keeping(input(), &neutral, &CsvOptions::default(), true, &units).unwrap();
    let mut kept = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        record.for_each_kept(|unit| kept.push(unit.to_owned()));
    }
    assert_eq!(kept[50..], ["x'ff01'", "x'fe'", "x'ff01'", "", ""]);
    let options = &DraftOptions { positive: Some("1".to_owned()), ..DraftOptions::new("sick") };
    let drafted = draft(input(), options, &CsvOptions::default()).unwrap().schema;
    let town = drafted.columns().iter().find(|column| column.name == "town").unwrap();
    assert_eq!(town.kind, ColumnKind::Drop);
}
