use proptest::prelude::*;

use super::*;
use crate::read::load_csv;
use crate::schema::{CellFormat, LabelKind, OnUnknown, OnUnreadable, Review};
use crate::workers::Workers;

const SCHEMA: &str = "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
     columns.age = { type = 'numeric', min = 0, max = 100 }\n\
     columns.sex = { type = 'categorical', categories = ['f', 'm'] }";

fn schema(text: &str) -> Schema {
    Schema::parse("s.toml", text).unwrap()
}

fn input(text: &str) -> Input {
    Input::from_bytes("t.csv", text.as_bytes().to_vec())
}

/// Code, column, consequence, number and first line of each problem.
fn summary(found: &Findings) -> Vec<(&'static str, String, Consequence, u64, u64)> {
    let line = |problem: &Problem| problem.examples.first().map_or(0, |example| example.line);
    let column = |problem: &'_ Problem| problem.column.as_deref().unwrap_or("").to_owned();
    let of = |problem: &Problem| (problem.code(), column(problem), problem.consequence, problem.count, line(problem));
    found.problems.iter().map(of).collect()
}

#[test]
fn every_problem_is_found_in_one_pass() {
    let text = "y,age,sex,extra\n\
                yes,41,f,\n\
                no,x,m,\n\
                no,101,\"m\"x,\n\
                no,7,\n\
                no,\"1,f,\n2,3\",f,\n\
                maybe, ,q,\n\
                no,-1,q ,\n\
                no,112,m,\n";
    let found = check(input(text), &schema(SCHEMA), &CsvOptions::default()).unwrap();
    use Consequence::{Clamped, Refused};
    let expected = [
        ("csv.ragged", "", Refused, 1, 5),
        ("csv.bad_number", "age", Refused, 1, 3),
        ("csv.line_end", "age", Refused, 1, 6),
        ("csv.missing_value", "age", Refused, 1, 8),
        ("csv.after_quote", "sex", Refused, 1, 4),
        ("csv.unknown_category", "sex", Refused, 2, 8),
        ("label.unknown", "y", Refused, 1, 8),
        ("value.clamped", "age", Clamped, 2, 9),
    ];
    assert_eq!(summary(&found), expected.map(owned));
    assert_eq!((found.rows, found.is_refused(), found.stopped.is_none()), (8, true, true));
    assert_eq!(found.notes.len(), 1, "{:?}", found.notes);
    assert!(found.notes[0].contains("extra"));
    let unknown = found.problems.iter().find(|problem| problem.code() == "csv.unknown_category").unwrap();
    assert_eq!(unknown.texts, [("q".to_owned(), 1), ("q ".to_owned(), 1)]);
    assert_eq!(unknown.error().unwrap().line(), Some(8));
}

fn owned(
    (code, column, consequence, count, line): (&'static str, &str, Consequence, u64, u64),
) -> (&'static str, String, Consequence, u64, u64) {
    (code, column.to_owned(), consequence, count, line)
}

#[test]
fn a_table_without_rows_is_refused() {
    let found = check(input("y,age,sex\n"), &schema(SCHEMA), &CsvOptions::default()).unwrap();
    let codes: Vec<&str> = found.refusals().map(Problem::code).collect();
    assert_eq!((found.rows, codes), (0, vec!["csv.no_rows"]));
}

#[test]
fn reading_ends_where_nothing_can_be_passed_over() {
    let found = check(input("y,age,sex\nno,x,f\nno,1,\"f\nno,1,f\n"), &schema(SCHEMA), &CsvOptions::default()).unwrap();
    assert_eq!(found.stopped.as_ref().map(|error| (error.code(), error.line())), Some(("csv.unclosed_quote", Some(3))));
    assert_eq!((found.rows, found.problems.len(), found.is_refused()), (1, 1, true));
    for (text, code) in [("", "csv.empty"), ("a,a\n1,2\n", "csv.duplicate_column")] {
        assert_eq!(check(input(text), &schema(SCHEMA), &CsvOptions::default()).unwrap_err().code(), code);
    }
    let found = check(input("AGE,sex\n1,f\n"), &schema(SCHEMA), &CsvOptions::default()).unwrap();
    let missing: Vec<_> = found.problems.iter().map(|one| (one.code(), one.column.as_deref())).collect();
    assert_eq!(missing, [("csv.missing_column", Some("age")), ("csv.missing_column", Some("y"))]);
}

#[test]
fn bytes_of_another_encoding_are_passed_over() {
    let bytes = b"y,age,sex\nno,1,f\nno,\xe4,f\nno,2,\"\xe4\"\nno,x,f\nno,\xe4,f".to_vec();
    let found = check(Input::from_bytes("t.csv", bytes), &schema(SCHEMA), &CsvOptions::default()).unwrap();
    assert_eq!(
        summary(&found)[..2],
        [("csv.not_utf8", "", Consequence::Refused, 3, 3), ("csv.bad_number", "age", Consequence::Refused, 1, 5)]
            .map(owned)
    );
    assert_eq!(found.rows, 5);
}

#[test]
fn threads_find_the_same() {
    let mut text = String::from("y,age,sex\n");
    for i in 0..60_000 {
        text += &match i % 5_000 {
            17 => format!("no,{i}?,f\n"),
            99 => "no,1\n".to_owned(),
            270 => format!("maybe,1,\"{}\"\n", i % 7),
            390 => "no,1,\"f,\n,m\"\n".to_owned(),
            _ => format!("yes,{},m\n", i % 120),
        };
    }
    let of = |threads: usize| {
        let input = input(&text).with_workers(Workers::new(threads.try_into().unwrap()));
        check(input, &schema(SCHEMA), &CsvOptions::default()).unwrap()
    };
    let (one, two) = (of(1), of(2));
    assert_eq!((one.rows, summary(&one), &one.notes), (two.rows, summary(&two), &two.notes));
    for (one, two) in one.problems.iter().zip(&two.problems) {
        assert_eq!((&one.examples, &one.texts), (&two.examples, &two.texts));
        assert_eq!(one.error().map(DataError::line), two.error().map(DataError::line));
    }
    assert_eq!(one.rows, 60_000);
}

#[test]
fn only_the_first_texts_are_counted_apart() {
    let rows: String = (0..5_000).map(|i| format!("yes,1,{}\n", (i * 7_919) % 1_000)).collect();
    let found = check(input(&format!("y,age,sex\n{rows}")), &schema(SCHEMA), &CsvOptions::default()).unwrap();
    let unknown = &found.problems[0];
    assert_eq!((unknown.count, unknown.texts.len(), unknown.has_more_texts), (5_000, 200, true));
    assert!(unknown.texts.iter().all(|(_, count)| *count == 5));
}

/// Proposes for text.
fn proposed(text: &str, toml: &str) -> Proposal {
    let bytes = text.as_bytes().to_vec();
    let open = || Ok::<_, DataError>(Input::from_bytes("t.csv", bytes.clone()));
    let proposal = propose(open, &schema(toml), &CsvOptions::default()).unwrap();
    // The written schema reads back as the same.
    let read = Schema::parse("p.toml", &proposal.to_toml()).unwrap();
    assert_eq!(read, proposal.schema, "{}", proposal.to_toml());
    assert!(
        proposal.changes.iter().all(|change| read.unreviewed().contains(&&*change.column)),
        "{:?}",
        proposal.changes
    );
    proposal
}

/// Rows of which each of `odd` stands among twenty of `usual`.
fn rows(head: &str, usual: &str, odd: &[&str]) -> String {
    let mut text = format!("{head}\n");
    for odd in odd {
        text += &format!("{usual}\n").repeat(20);
        text += &format!("{odd}\n");
    }
    text
}

#[test]
fn proposals_are_accepted() {
    let head = "y,age,sex";
    let usual = "yes,41,f";
    let cases: [(&[&str], &str); 6] = [
        (&["YES,1,f", " No ,1,f"], "\"YES\" are spellings of the positive class; \"No\" are spellings"),
        (&["maybe,1,f"], "1 labels are of neither class"),
        (&[",1,f"], "1 labels are missing"),
        (&["no,,m"], "1 cells are missing"),
        (&["no,n/a,m", "no,?,m", "no,forty,m"], "\"?\", \"n/a\" mark missing values"),
        (&["no,4,x", "no,4,f"], "1 cells hold rare categories"),
    ];
    for (odd, text) in cases {
        let table = rows(head, usual, odd);
        let proposal = proposed(&table, SCHEMA);
        assert!(!proposal.left.is_refused(), "{odd:?}: {:?}", proposal.left.problems);
        assert!(proposal.changes.iter().any(|change| change.text.contains(text)), "{:?}", proposal.changes);
        // Training accepts it too, once a person has reviewed it.
        let mut accepted = proposal.schema.clone();
        accepted.assume_all_public();
        let encoder = Encoder::new(&accepted, Encoding::UNIT_ROWS).unwrap();
        assert!(load_csv::<f64>(input(&table), &encoder, &CsvOptions::default()).is_ok());
    }
    // An accepted file needs no change.
    let proposal = proposed(&rows(head, usual, &["no,3,m"]), SCHEMA);
    assert!(proposal.changes.is_empty() && proposal.schema == schema(SCHEMA));
}

#[test]
fn formats_and_names_are_proposed() {
    let text = rows("Y;Age ;Sex", "yes;1.241,5;f", &["no;12,25;m"]);
    let proposal = proposed(&text, SCHEMA);
    assert!(!proposal.left.is_refused(), "{:?}", proposal.left.problems);
    let [age, sex] = proposal.schema.columns() else { panic!() };
    assert_eq!((age.source(), sex.source(), &*proposal.schema.label().column), ("Age ", "Sex", "Y"));
    assert!(
        matches!(&age.format, Some(CellFormat::Number(format)) if format.decimal == ',' && format.thousands == Some('.'))
    );
    assert_eq!(proposal.schema.file().delimiter, Some(';'));
    // Ranges are the person's.
    assert!(matches!(age.kind, ColumnKind::Numeric { min: 0.0, max: 100.0, on_unreadable: OnUnreadable::Error, .. }));

    let dated = "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
         columns.day = { type = 'date', format = '%Y-%m-%d', min = 2020-01-01, max = 2025-01-01 }\n\
         columns.was = { type = 'indicator', one = 'ja', zero = 'nein' }\n\
         columns.gone = { type = 'numeric', min = 0, max = 1 }";
    let proposal = proposed(&rows("y,day,was", "yes,31.12.2023,yes", &["no,01.01.2024,no"]), dated);
    assert!(!proposal.left.is_refused(), "{:?}", proposal.left.problems);
    let toml = proposal.to_toml();
    assert!(
        toml.contains("format = \"%d.%m.%Y\"") && toml.contains("one = [\"yes\"]") && toml.contains("type = \"drop\""),
        "{toml}"
    );
    let latin = b"y,age,sex\nyes,1,f\xfcr\nno,2,m\n".to_vec();
    let open = || Ok::<_, DataError>(Input::from_bytes("t.csv", latin.clone()));
    let proposal = propose(open, &schema(SCHEMA), &CsvOptions::default()).unwrap();
    assert_eq!(proposal.schema.file().encoding.as_deref(), Some("windows-1252"));
    assert_eq!(proposal.schema.file().review, Review::Unreviewed);
}

#[test]
fn what_nothing_explains_is_left() {
    // More than a tenth of the cells, rows that cannot be split, and a label that is not there.
    let many = rows("y,age,sex", "yes,old,f", &["no,3,m"]);
    let proposal = proposed(&many, SCHEMA);
    assert_eq!(proposal.left.refusals().map(Problem::code).collect::<Vec<_>>(), ["csv.bad_number"]);
    assert!(proposal.changes.is_empty());
    let proposal = proposed(&rows("y,age,sex", "yes,1,f", &["no,3,m", "no,1"]), SCHEMA);
    assert_eq!(proposal.left.refusals().map(Problem::code).collect::<Vec<_>>(), ["csv.ragged"]);
    let proposal = proposed(&rows("age,sex", "1,f", &["3,m"]), SCHEMA);
    assert_eq!(proposal.left.refusals().map(Problem::code).collect::<Vec<_>>(), ["csv.missing_column"]);
    // Most labels of neither class: probably another column.
    let proposal = proposed(&rows("y,age,sex", "perhaps,1,f", &["no,3,m"]), SCHEMA);
    assert_eq!(proposal.left.refusals().map(Problem::code).collect::<Vec<_>>(), ["label.unknown"]);
    assert_eq!(proposal.schema.label().kind, schema(SCHEMA).label().kind);
}

#[test]
fn frequent_categories_are_new_and_others_go_where_the_schema_says() {
    let text = rows("y,age,sex", "yes,1,d", &["no,3,m", "no,3,m", "no,3,zz"]);
    let proposal = proposed(&text, SCHEMA);
    let ColumnKind::Categorical { categories, on_unknown } = &proposal.schema.columns()[1].kind else { panic!() };
    assert_eq!((&categories[..], *on_unknown), (&["f", "m", "d"].map(String::from)[..], OnUnknown::Neutral));
    // As drafts declare it: the rare category stays without influence, and the proposal is final.
    let neutral = SCHEMA.replace("['f', 'm']", "['f', 'm'], on_unknown = 'neutral'");
    let proposal = proposed(&text, &neutral);
    let ColumnKind::Categorical { categories, on_unknown } = &proposal.schema.columns()[1].kind else { panic!() };
    assert_eq!((&categories[..], *on_unknown), (&["f", "m", "d"].map(String::from)[..], OnUnknown::Neutral));
    assert_eq!((proposal.changes.len(), proposal.left.is_refused()), (1, false));
    let proposal = proposed(&rows("y,age,sex", "yes,1,f", &["no,3,m", "no,3,zz"]), &neutral);
    assert!(proposal.changes.is_empty());
    let with_other = SCHEMA.replace("['f', 'm']", "['f', 'm', 'other']");
    let proposal = proposed(&text, &with_other);
    let ColumnKind::Categorical { categories, on_unknown } = &proposal.schema.columns()[1].kind else { panic!() };
    assert_eq!((categories.len(), *on_unknown), (3, OnUnknown::Other));
    let classes = SCHEMA.replace("positive = 'yes', negative = 'no'", "classes = ['a', 'b']");
    let proposal = proposed(&rows("y,age,sex", "a,1,f", &["b,2,m", "c,2,m"]), &classes);
    assert!(!proposal.left.is_refused());
    assert!(matches!(proposal.schema.label().kind, LabelKind::Classes { others_are_neutral: true, .. }));
}

#[test]
fn line_ends_are_allowed_unless_a_quote_is_stray() {
    let text = rows("y,age,sex,note", "yes,1,f,\"two, or\nmore, lines, with commas\"", &["no,2,m,x"]);
    // The column is not in the schema.
    let proposal = proposed(&text, SCHEMA);
    assert!(!proposal.left.is_refused(), "{:?}", proposal.left.problems);
    let note = proposal.schema.columns().iter().find(|column| column.name == "note").unwrap();
    assert!(note.line_ends && note.kind == ColumnKind::Drop);
    let stray = rows("y,age,sex,note", "yes,1,f,a", &["no,2,m,\"x", "no,2,m,\"y"]);
    let proposal = proposed(&stray, SCHEMA);
    assert!(proposal.left.is_refused() && proposal.schema.columns().len() == 2, "{:?}", proposal.left.problems);
}

proptest! {
    /// A check refuses what loading refuses, with the same first error, and nothing else.
    #[test]
    fn a_check_agrees_with_loading(
        rows in prop::collection::vec(
            (prop::sample::select(vec!["yes", "no", " no", "", "NO", "1"]),
             prop::sample::select(vec!["1", "-3", "1e3", "", "x", " 7 ", "NaN", "1,5", "\"2\""]),
             prop::sample::select(vec!["f", "m", "", "q", " f", "\"m\"", "\"a\nb\"", "\"a,\nb,\"", "\"f\"x"])),
            1..12,
        ),
        policy in 0..4_usize,
    ) {
        let toml = match policy {
            0 => SCHEMA.to_owned(),
            1 => SCHEMA.replace("max = 100", "max = 100, on_missing = 'neutral', on_unreadable = 'missing'"),
            2 => SCHEMA.replace("'no' }", "'no', others = 'neutral', on_missing = 'neutral' }").replace("'m']", "'m'], on_unknown = 'neutral'"),
            _ => SCHEMA.replace("max = 100", "max = 100, on_missing = { value = 5 }, on_unreadable = 'neutral'").replace("'m']", "'m', 'other'], on_unknown = 'other', on_missing = 'category'"),
        };
        let text: String = rows.iter().map(|(y, age, sex)| format!("{y},{age},{sex}\n")).collect();
        let text = format!("y,age,sex\n{text}");
        let schema = schema(&toml);
        let found = check(input(&text), &schema, &CsvOptions::default()).unwrap();
        let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS).unwrap();
        match load_csv::<f64>(input(&text), &encoder, &CsvOptions::default()) {
            Ok(loaded) => {
                prop_assert!(!found.is_refused());
                prop_assert_eq!(found.rows, loaded.examples.len() as u64);
            }
            Err(error) => {
                let same = |one: &Problem| {
                    one.code() == error.code()
                        && one.examples.first().map(|example| example.line) == error.line()
                        && one.error().map(DataError::message) == Some(error.message())
                };
                prop_assert!(found.refusals().any(same), "{} {:?}", error, found.problems);
            }
        }
    }
}
