//! `dp train --sums`: rows that stay in the server give the model of the same rows in memory, and nothing else leaves or enters.

use std::process::Stdio;
use std::time::Duration;

use crate::support::postgres::{Database, people_place};
use crate::support::{Run, Workplace};

/// Losses, encodings and budgets; with few steps and little noise, so that what differs is the arithmetic.
const TRAININGS: [&str; 14] = [
    "--schema s.toml --epsilon 50 --passes 6",
    "--schema s.toml --epsilon 50 --passes 6 --curves 3+pairs --coordinate by-range",
    "--schema s.toml --epsilon 50 --passes 6 --loss huber-svm --scale unit --row-norm clip",
    "--schema g.toml --epsilon 50 --passes 6",
    "--schema c.toml --epsilon 50 --passes 6",
    "--schema n.toml --epsilon 50 --passes 6",
    "--schema n.toml --epsilon 50 --passes 6 --loss squared --clip 0.5",
    "--schema s.toml --epsilon 50 --algorithm noisy-moments",
    "--schema c.toml --epsilon 50 --algorithm noisy-moments",
    "--schema n.toml --epsilon 50 --algorithm noisy-moments --loss squared",
    "--schema s.toml --epsilon 50 --algorithm majority",
    "--schema s.toml --epsilon 50 --passes 6 --threshold base-rate",
    "--schema d.toml --epsilon 50 --passes 6 --curves 2",
    "--schema d.toml --epsilon 50 --algorithm noisy-moments",
];

/// People with missing and infinite values, and schemas for labels of three kinds.
fn place() -> Option<(Workplace, Database)> {
    let (place, mut database) = people_place(3000)?;
    database.execute(
        "ALTER TABLE people ADD flag boolean, ADD graded numeric(4, 1); UPDATE people SET flag = id % 3 = 0, graded = (age > 45)::int; \
         UPDATE people SET age = NULL WHERE id % 50 = 0; UPDATE people SET hours = 'NaN' WHERE id % 51 = 0; \
         UPDATE people SET hours = 'Infinity' WHERE id % 52 = 0; UPDATE people SET hours = 500 WHERE id % 53 = 0; \
         UPDATE people SET trade = NULL WHERE id % 54 = 0; UPDATE people SET earns = NULL WHERE id % 55 = 0; \
         UPDATE people SET earns = '?' WHERE id % 56 = 0; \
         ALTER TABLE people ADD seen timestamptz, ADD since date; \
         UPDATE people SET since = date '1950-01-01' + id * 7, seen = timestamptz '1990-05-01 00:00+00' + id * interval '5000 minutes'; \
         UPDATE people SET since = 'infinity' WHERE id % 57 = 0; UPDATE people SET seen = NULL WHERE id % 58 = 0",
    );
    let columns = |used: &str| {
        let all = [
            ("age", "type = 'numeric'\nmin = 18\nmax = 80\non_missing = 'neutral'\non_unreadable = 'neutral'\n"),
            ("hours", "type = 'numeric'\nmin = 0\nmax = 70\non_missing = { value = 30 }\non_unreadable = 'neutral'\n"),
            (
                "trade",
                "type = 'categorical'\ncategories = ['baker', 'clerk', 'smith']\non_missing = 'category'\non_unknown = 'neutral'\n",
            ),
            ("flag", "type = 'categorical'\ncategories = ['0', '1']\non_missing = 'neutral'\non_unknown = 'neutral'\n"),
        ];
        let columns = all.iter().filter(|(name, _)| used.contains(name));
        columns.map(|(name, kind)| format!("[columns.{name}]\n{kind}")).collect::<String>()
    };
    let label = |text: &str| format!("missing = ['']\n[label]\n{text}on_missing = 'neutral'\n");
    let two = label("column = 'earns'\npositive = 'yes'\nnegative = 'no'\nothers = 'neutral'\n");
    let classes = label("column = 'trade'\nclasses = ['baker', 'clerk', 'smith']\nothers = 'neutral'\n");
    let number = label("column = 'hours'\ntype = 'numeric'\nmin = 5\nmax = 60\non_unreadable = 'neutral'\n");
    let dates = "[columns.since]\ntype = 'date'\nformat = '%d.%m.%Y'\nmin = 1960-01-01\nmax = 1990-12-31\n\
         on_missing = 'neutral'\non_unreadable = 'neutral'\n\
         [columns.seen]\ntype = 'date'\nformat = '%Y-%m-%d %H:%M'\nmin = 1990-01-01\nmax = 2020-12-31\n\
         on_missing = { value = 2000-01-01 }\non_unreadable = 'neutral'\n\
         [columns.weekday]\ncolumn = 'seen'\ntype = 'weekday'\nformat = '%Y-%m-%d %H:%M'\non_missing = 'neutral'\non_unreadable = 'neutral'\n\
         [columns.month]\ncolumn = 'since'\ntype = 'month'\nformat = '%d.%m.%Y'\non_missing = 'neutral'\non_unreadable = 'neutral'\n\
         [columns.hour]\ncolumn = 'seen'\ntype = 'hour'\nformat = '%Y-%m-%d %H:%M'\non_missing = 'neutral'\non_unreadable = 'neutral'\n";
    place.write("d.toml", two.clone() + dates + &columns("hours"));
    place.write("s.toml", two + &columns("age hours trade flag"));
    // A label that is the same number in other digits, `1.0`.
    let graded = label("column = 'graded'\npositive = '1'\nnegative = '0'\nothers = 'neutral'\n");
    place.write("g.toml", graded + &columns("hours trade flag"));
    place.write("c.toml", classes + &columns("age hours flag"));
    place.write("n.toml", number + &columns("age trade flag"));
    Some((place, database))
}

fn train(place: &Workplace, address: &str, flags: &str) -> Run {
    let algorithm = if flags.contains("--algorithm") { "" } else { " --algorithm dp-gd" };
    let words = format!("{flags}{algorithm} --delta 1e-6 --table people --out m.json --force");
    place.dp(&[&["train", "--data", address], words.split(' ').collect::<Vec<_>>().as_slice()].concat())
}

fn weights(place: &Workplace) -> Vec<f64> {
    place.json("m.json")["model"]["weights"].as_array().unwrap().iter().map(|weight| weight.as_f64().unwrap()).collect()
}

#[test]
fn models_are_those_of_the_rows() {
    let Some((place, database)) = place() else { return };
    for flags in TRAININGS {
        let mut least = f64::INFINITY;
        // Entries of moments have 14 binary digits.
        let near = if flags.contains("noisy-moments") { 1e-3 } else { 1e-6 };
        // The sampler of exact noise takes another path where the last digit of a sum decides, so that a few seeds differ.
        for seed in 1..8 {
            let flags = format!("{flags} --seed {seed}");
            train(&place, &database.address, &flags).ok();
            let expected = weights(&place);
            train(&place, &database.address, &format!("{flags} --sums")).ok();
            let found = weights(&place);
            // Integers add up to the same however the rows are divided.
            train(&place, &database.address, &format!("{flags} --sums=3")).ok();
            assert_eq!(weights(&place), found, "{flags}");
            assert_eq!(found.len(), expected.len());
            let differences = found.iter().zip(&expected).map(|(found, expected)| (found - expected).abs());
            least = least.min(differences.fold(0.0, f64::max));
            assert!(place.read("m.json").contains("engine_arithmetic"));
            if least < near {
                break;
            }
        }
        assert!(least < near, "{flags}: {least}");
    }
}

#[test]
fn a_model_of_sums_is_verified_and_says_what_it_rests_on() {
    let Some((place, database)) = place() else { return };
    let flags = "--schema s.toml --algorithm auto --epsilon 1 --delta 1e-6 --sums --out m.json --report r.md";
    let train = |more: &str| {
        let words = format!("{flags}{more}");
        place.dp(&[
            &["train", "--data", &database.address, "--table", "people"],
            words.split(' ').collect::<Vec<_>>().as_slice(),
        ]
        .concat())
    };
    train("").ok();
    let verified = place.dp(&["verify", "m.json"]).ok();
    assert!(verified.contains("computed by another engine"), "{verified}");
    assert!(place.read("r.md").contains("computed by another engine"));
    let model = place.read("m.json");
    assert!(
        model.contains("\"engine_arithmetic\"") && model.contains("\"bits\": 40") && !model.contains("127.0.0.1"),
        "{model}"
    );
    let planned = train(" --dry-run --n 3000 --force").ok();
    assert!(planned.contains("dp-sgd") || planned.contains("accelerated"), "{planned}");
}

#[test]
fn what_needs_rows_is_refused_before_anything_is_sent() {
    let Some((place, mut database)) = place() else { return };
    let address = database.address.clone();
    let run = |words: &str| {
        place.dp(&[&["train", "--data", &address, "--out", "m.json"], words.split(' ').collect::<Vec<_>>().as_slice()]
            .concat())
    };
    let usual = "--schema s.toml --algorithm auto --epsilon 1 --sums --table people";
    run(&format!("{} --delta 1e-6", usual.replace("auto", "bolt-on-convex")))
        .fails(2, "usage.conflict")
        .says("needs the rows")
        .says("temporary file");
    run(&format!("{usual} --delta 0")).fails(2, "usage.conflict").says("--delta");
    run(&usual.replace("auto", "dp-gd")).fails(2, "usage.conflict").says("--delta");
    run(&format!("{usual} --delta 1e-6 --float f32")).fails(2, "usage.conflict").says("double");
    assert_eq!(run(&format!("{usual} --delta 1e-6 --memory 1GB")).code, 2);
    run(&format!("{} --delta 1e-6 --radius 2 --adjacency replace-one", usual.replace("auto", "dp-gd")))
        .fails(4, "privacy.refused")
        .says("omit the radius");
    let descent = format!("{} --delta 1e-6", usual.replace("auto", "dp-gd"));
    run(&format!("{descent} --clip 0.5")).fails(4, "privacy.refused").says("omit the clipping norm");
    let squared = descent.replace("s.toml", "n.toml");
    run(&format!("{squared} --loss squared --radius 2")).fails(4, "privacy.refused").says("state one");
    let of_query = usual.replace("--table people", "--sums=2 --delta 1e-6 --query").replace("--sums ", "");
    let words: Vec<&str> = of_query.split(' ').chain(["SELECT * FROM people"]).collect();
    place
        .dp(&[&["train", "--data", &database.address, "--out", "m.json"], words.as_slice()].concat())
        .fails(1, "table.open")
        .says("places");
    database.execute("ALTER TABLE people ADD said text; UPDATE people SET said = 'no number'");
    place.write("t.toml", place.read("s.toml").replace("columns.age", "columns.said"));
    run(&format!("{} --delta 1e-6", usual.replace("s.toml", "t.toml"))).fails(3, "table.type").says("said");
    place.write("u.toml", place.read("d.toml").replace("'since'", "'said'").replace("columns.since", "columns.said"));
    run(&format!("{} --delta 1e-6", usual.replace("s.toml", "u.toml"))).fails(3, "table.type").says("date type");
    run(&format!("{usual} --delta 1e-6 --project gaussian:3")).fails(3, "encoding.sql").says("projection");
    place.write("e.toml", place.read("s.toml").replacen("on_unreadable = 'neutral'\n", "", 1));
    run(&usual.replace("s.toml", "e.toml").replace("--sums", "--sums --delta 1e-6"))
        .fails(3, "encoding.sql")
        .says("refuses some records");
    place.write("people.csv", "age\n1\n");
    let of_file = place.dp(&[
        "train",
        "--data",
        "people.csv",
        "--schema",
        "s.toml",
        "--sums",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--out",
        "m.json",
    ]);
    of_file.fails(2, "usage.conflict").says("postgres://");
    assert!(!place.files().contains(&"m.json".to_owned()));
}

/// Rows that move while several connections share them are counted once each: all connections see one snapshot.
#[test]
fn connections_share_one_snapshot() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let Some((place, database)) = place() else { return };
    let flags = "--schema s.toml --epsilon 1 --passes 60 --seed 1";
    train(&place, &database.address, &format!("{flags} --sums")).ok();
    let expected = weights(&place);
    let (ended, address) = (AtomicBool::new(false), database.address.clone());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = postgres::Client::connect(&address, postgres::NoTls).unwrap();
            while !ended.load(Ordering::SeqCst) {
                // The same values, in another place.
                writer.batch_execute("UPDATE people SET earns = earns WHERE id % 3 = 0; UPDATE people SET earns = earns WHERE id % 3 = 1").unwrap();
            }
        });
        let run = train(&place, &database.address, &format!("{flags} --sums=3"));
        ended.store(true, Ordering::SeqCst);
        run.ok();
    });
    assert_eq!(weights(&place), expected);
}

/// A function that somebody put before the server's own does not take part; where a query lets it, the known rows show it.
#[test]
fn functions_of_others_are_not_used() {
    let Some((place, mut database)) = place() else { return };
    let flags = "--schema s.toml --epsilon 1 --passes 2 --sums --seed 1";
    train(&place, &database.address, flags).ok();
    let expected = weights(&place);
    database.execute(
        "CREATE FUNCTION exp(float8) RETURNS float8 LANGUAGE sql AS 'SELECT 2::float8'; \
         CREATE FUNCTION trunc(float8) RETURNS float8 LANGUAGE sql AS 'SELECT 1e15::float8'; \
         DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database()); END $$",
    );
    train(&place, &database.address, flags).ok();
    assert_eq!(weights(&place), expected);
    let words = format!("{flags} --algorithm dp-gd --delta 1e-6 --out m.json --force");
    let of_query = ["train", "--data", &database.address, "--query", "SELECT * FROM people"];
    let run = place.dp(&[&of_query, words.split(' ').collect::<Vec<_>>().as_slice()].concat());
    run.fails(1, "train.failed").says("rows that are known");
}

/// A connection that is lost between steps is opened again; a table that changes ends the run.
#[test]
fn runs_go_on_after_a_lost_connection_and_end_with_a_changed_table() {
    let Some((place, mut database)) = place() else { return };
    let start = || {
        let words = "--schema s.toml --epsilon 1 --delta 1e-6 --algorithm dp-gd --passes 120 --sums --out m.json --force --seed 1".split(' ');
        let all: Vec<&str> =
            ["train", "--data", &database.address, "--table", "people"].into_iter().chain(words).collect();
        place.command(&all).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let child = start();
    std::thread::sleep(Duration::from_millis(400));
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'dp' AND datname = current_database()";
    let found: i64 = database.client.query_one(ended, &[]).unwrap().get(0);
    Run::from(child.wait_with_output().unwrap()).ok();
    assert_eq!(found, 1, "the run was over before its connection was ended");
    std::fs::remove_file(place.path("m.json")).unwrap();
    let child = start();
    std::thread::sleep(Duration::from_millis(300));
    database.client.batch_execute("DELETE FROM people WHERE id = 7").unwrap();
    let changed = Run::from(child.wait_with_output().unwrap());
    changed.fails(1, "train.failed").says("number of rows changed");
    assert!(!place.files().contains(&"m.json".to_owned()));
}

/// The log holds weights that are computed from noisy sums, and no value of a record.
#[test]
fn logs_hold_no_value_of_a_record() {
    let Some((place, mut database)) = place() else { return };
    let Some(server) = database.server else { return };
    database.execute("ALTER TABLE people ALTER age TYPE float8; UPDATE people SET age = age + (id * 997 % 1000) / 1000.0 + 0.00012345678901");
    let before = server.log().len();
    train(&place, &database.address, "--schema s.toml --epsilon 1 --passes 5 --sums").ok();
    let log = server.log()[before..].to_owned();
    assert!(log.contains("dp_g0") && log.contains("count(*)"));
    assert!(!log.contains("1234567890"), "a value of a record is in the log");
}
