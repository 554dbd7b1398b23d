//! `dp check`: everything that is wrong with a table, and the schema that mends it.

use std::fmt::Write as _;

use crate::support::Workplace;

const SCHEMA: &str = "label = { column = 'again', positive = 'yes', negative = 'no' }\n\
     [columns.age]\ntype = 'numeric'\nmin = 0\nmax = 120\n\
     [columns.cost]\ntype = 'numeric'\nmin = 0\nmax = 5000\n\
     [columns.ward]\ntype = 'categorical'\ncategories = ['north', 'south']\n";

/// A table of 400 records that the schema accepts, with some of them replaced.
fn table(odd: &[&str]) -> String {
    let mut text = "age,cost,ward,again\n".to_owned();
    for i in 0..400 {
        let ward = ["north", "south"][i % 2];
        let again = ["no", "yes"][usize::from(i % 120 > 60)];
        let _ = writeln!(text, "{},{}.5,{ward},{again}", i % 120, (i * 37) % 5000);
        if let Some(odd) = odd.get(i / 10).filter(|_| i % 10 == 9) {
            let _ = writeln!(text, "{odd}");
        }
    }
    text
}

fn check(place: &Workplace, more: &[&str]) -> (i32, serde_json::Value) {
    let run = place.dp(&[&["check", "--data", "t.csv", "--schema", "s.toml", "--json"], more].concat());
    (run.code, serde_json::from_str(&run.stdout).unwrap())
}

#[test]
fn an_accepted_table_has_no_problems() {
    let place = Workplace::new();
    place.write("s.toml", SCHEMA);
    place.write("t.csv", table(&["999,1,north,yes"]));
    let (code, found) = check(&place, &[]);
    assert_eq!((code, &found["schema"], &found["refused"]), (0, &"dp.check/1".into(), &false.into()), "{found}");
    assert_eq!((&found["rows"], &found["publishable"]), (&401.into(), &false.into()));
    let [clamped] = &found["problems"].as_array().unwrap()[..] else { panic!("{found}") };
    assert_eq!((&clamped["code"], &clamped["column"]), (&"value.clamped".into(), &"age".into()));
    assert_eq!((&clamped["count"], &clamped["lines"]), (&1.into(), &serde_json::json!([12])));
    let text = place.dp(&["check", "--data", "t.csv", "--schema", "s.toml"]).ok();
    assert!(text.starts_with("401 rows of t.csv under s.toml: training accepts them"), "{text}");
}

#[test]
fn all_problems_are_listed_at_once_and_a_schema_mends_them() {
    let place = Workplace::new();
    place.write("s.toml", SCHEMA);
    let odd = [
        "41,n/a,north,yes",
        "41,?,north,yes",
        "41,about 7,north,yes",
        ",7,north,no",
        "41,7,nroth,no",
        "41,7,north,perhaps",
        "41,7,north,YES",
        "41,7,north,",
    ];
    place.write("t.csv", table(&odd));
    let (code, found) = check(&place, &[]);
    let problems = found["problems"].as_array().unwrap();
    let seen: Vec<(&str, &str, u64, u64)> = problems
        .iter()
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap_or("");
            (text("code"), text("column"), one["count"].as_u64().unwrap(), one["lines"][0].as_u64().unwrap())
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("csv.missing_value", "age", 1, 45),
            ("csv.bad_number", "cost", 3, 12),
            ("csv.unknown_category", "ward", 1, 56),
            ("label.missing", "again", 1, 89),
            ("label.unknown", "again", 2, 67),
        ]
    );
    assert_eq!((code, &found["refused"]), (3, &true.into()));
    // The error with which training stops is the first of them.
    let train = ["train", "--data", "t.csv", "--epsilon", "1", "--out", "m.json"];
    place.dp(&[&train[..], &["--schema", "s.toml"]].concat()).fails(3, "csv.bad_number").says("line 12");
    let text = place.dp(&["check", "--data", "t.csv", "--schema", "s.toml"]);
    assert_eq!(text.code, 3);
    assert!(text.stdout.contains("csv.bad_number in `cost`: 3, lines 12, 23, 34\n"), "{}", text.stdout);
    assert!(text.stdout.contains("cells: `?` 1, `about 7` 1, `n/a` 1\n"), "{}", text.stdout);

    // The proposal is written, and refused until it is reviewed.
    let (code, found) = check(&place, &["--fix-schema", "p.toml"]);
    assert_eq!((code, &found["proposal"]["left"]), (3, &serde_json::json!([])), "{found}");
    assert_eq!(place.read("s.toml"), SCHEMA);
    place.dp(&[&train[..], &["--schema", "p.toml"]].concat()).fails(3, "schema.unreviewed");
    check_refuses_to_replace(&place);
    let proposed = place.read("p.toml");
    assert!(proposed.contains("# Proposed: \"?\", \"n/a\" mark missing values"), "{proposed}");
    place.write("p.toml", proposed.replace("reviewed = false", "reviewed = true"));
    place.dp(&[&train[..], &["--schema", "p.toml"]].concat()).ok();
    let run = place.dp(&["check", "--data", "t.csv", "--schema", "p.toml"]).ok();
    assert!(run.contains("records without influence, as the schema says\n  csv.missing_value in `age`: 1, line 45"));
}

fn check_refuses_to_replace(place: &Workplace) {
    let fix = ["check", "--data", "t.csv", "--schema", "s.toml", "--fix-schema", "p.toml"];
    place.dp(&fix).fails(1, "output.exists");
    let run = place.dp(&[&fix[..], &["--force"]].concat());
    assert!(run.code == 3 && run.stdout.contains("proposed in p.toml"), "{}", run.stdout);
}

#[test]
fn rows_that_no_schema_mends_are_named() {
    let place = Workplace::new();
    place.write("s.toml", SCHEMA);
    place.write("t.csv", table(&["41,7,north", "41,7,north,yes,1", "41,x,north,yes"]));
    let run = place.dp(&["check", "--data", "t.csv", "--schema", "s.toml", "--fix-schema", "p.toml"]);
    assert_eq!(run.code, 3);
    assert!(run.stdout.contains("csv.ragged: 2, lines 12, 23\n"), "{}", run.stdout);
    assert!(run.stdout.contains("still refused under it\n  csv.ragged: 2"), "{}", run.stdout);
    place.write("t.csv", table(&["41,7,\"north,yes"]));
    let (code, found) = check(&place, &[]);
    assert_eq!((code, &found["problems"][0]["consequence"]), (3, &"stopped".into()), "{found}");
}

#[test]
fn a_file_of_next_year_is_written_in_another_way() {
    let place = Workplace::new();
    place.write("s.toml", SCHEMA);
    let semicolons: String = table(&[]).replace(',', ";").replace(".5;", ",50 €;").replace("cost", "Cost");
    place.write("t.csv", semicolons);
    let text = place.dp(&["check", "--data", "t.csv", "--schema", "s.toml"]).stdout;
    assert!(text.contains("\nrefused\n  csv.missing_column: the table lacks age, cost, ward, again\n"), "{text}");
    let (code, found) = check(&place, &["--fix-schema", "p.toml"]);
    assert_eq!((code, &found["proposal"]["left"]), (3, &serde_json::json!([])), "{found}");
    let columns: Vec<&str> =
        found["proposal"]["changes"].as_array().unwrap().iter().map(|one| one["column"].as_str().unwrap()).collect();
    assert_eq!(columns, ["<file>", "cost", "cost"]);
    let proposed = place.read("p.toml");
    for line in ["delimiter = \";\"", "column = \"Cost\"", "decimal = \",\"", "unit = \"€\"", "max = 5000"] {
        assert!(proposed.contains(line), "{line}: {proposed}");
    }
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let place = Workplace::new();
    place.write("s.toml", SCHEMA);
    place.write("t.csv", table(&[]));
    place.write("t.libsvm", "1 1:2\n");
    place.dp(&["check", "--data", "t.libsvm", "--schema", "s.toml"]).fails(2, "usage.conflict").says("no columns");
    place.dp(&["check", "--data", "-", "--schema", "-"]).fails(2, "usage.stdin_twice");
    place.dp(&["check", "--data", "t.csv", "--schema", "none.toml"]).fails(1, "file.open");
    place.dp(&["check", "--data", "none.csv", "--schema", "s.toml"]).fails(1, "file.open");
    let same = ["check", "--data", "t.csv", "--schema", "s.toml", "--fix-schema", "t.csv", "--force"];
    place.dp(&same).fails(2, "usage.conflict");
    place.write("empty.csv", "");
    place.dp(&["check", "--data", "empty.csv", "--schema", "s.toml"]).fails(3, "csv.empty");
    let before = place.files();
    let dry = ["check", "--data", "t.csv", "--schema", "s.toml", "--fix-schema", "p.toml", "--dry-run", "--json"];
    let found = place.dp(&dry).json();
    assert_eq!((&found["writes"], place.files()), (&serde_json::json!(["p.toml"]), before));
}
