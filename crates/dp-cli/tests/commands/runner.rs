//! `dp train --format runner --sums`: sums by an engine that a program asks; the programs of `runners/`, and programs with faults.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::engine::python;
use crate::support::training::signals;
use crate::support::{Run, Workplace, people, say_skipped};

/// How the flags of all runs begin.
pub const FLAGS: &str =
    "--schema s.toml --algorithm dp-gd --epsilon 50 --delta 1e-6 --passes 6 --sums --out m.json --force";

const SCHEMA: &str = "missing = ['']\n[label]\ncolumn = 'earns'\npositive = 'yes'\nnegative = 'no'\nothers = 'neutral'\n\
    on_missing = 'neutral'\n\
    [columns.age]\ntype = 'numeric'\nmin = 18\nmax = 80\non_missing = 'neutral'\non_unreadable = 'neutral'\n\
    [columns.hours]\ntype = 'numeric'\nmin = 0\nmax = 70\non_missing = { value = 30 }\non_unreadable = 'neutral'\n\
    [columns.trade]\ntype = 'categorical'\ncategories = ['baker', 'clerk', 'smith']\non_missing = 'category'\non_unknown = 'neutral'\n";

pub fn place() -> Workplace {
    let place = Workplace::new();
    place.write(
        "people.csv",
        people(2000, 7).replacen("\n18,", "\n,", 30).replacen("smith", "", 40).replacen("clerk", "cook", 20),
    );
    place.write("s.toml", SCHEMA);
    place
}

/// A place with a runner that can have faults; says so where there is no Python for it.
fn faulty_place() -> Option<Workplace> {
    let usable =
        Command::new(python()).args(["-c", "import sqlite3; sqlite3.connect('').execute('SELECT exp(1)')"]).output();
    if usable.is_ok_and(|run| run.status.success()) {
        return Some(place_of_faults());
    }
    say_skipped("runner", "there is no Python whose SQLite has mathematical functions");
    None
}

/// As [`faulty_place`], where that has been found.
fn place_of_faults() -> Workplace {
    let place = place();
    place.write("faulty.py", include_str!("support/faulty_runner.py"));
    place
}

pub fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// Trains by the runner that can have faults.
fn train(place: &Workplace, fault: &str, more: &str) -> Run {
    let _ = fs::remove_file(place.path("had_fault"));
    let _ = fs::remove_file(place.path("m.json"));
    let command = format!("{} faulty.py {fault}", python());
    let source = ["train", "--format", "runner", "--data", &command, "--table", "people"];
    place.dp(&[&source, words(&format!("{FLAGS}{more}")).as_slice()].concat())
}

pub fn weights(place: &Workplace) -> Vec<f64> {
    place.json("m.json")["model"]["weights"].as_array().unwrap().iter().map(|weight| weight.as_f64().unwrap()).collect()
}

/// Compares models of a runner's sums with those of the rows. The sampler of exact noise takes another path where the last digit of a
/// sum decides, so that a few seeds differ.
fn gives_the_model_of_rows(place: &Workplace, command: &str, more: &[&str]) {
    let mut least = f64::INFINITY;
    for seed in ["1", "2", "3", "4", "5"] {
        let flags = FLAGS.replace(" --sums", "");
        place.dp(&[["train", "--data", "people.csv", "--seed", seed].as_slice(), &words(&flags)].concat()).ok();
        let expected = weights(place);
        let source = ["train", "--format", "runner", "--data", command, "--seed", seed];
        place.dp(&[source.as_slice(), more, words(FLAGS).as_slice()].concat()).ok();
        let found = weights(place);
        assert_eq!(found.len(), expected.len());
        let differences = found.iter().zip(&expected).map(|(found, expected)| (found - expected).abs());
        least = least.min(differences.fold(0.0, f64::max));
        if least < 1e-6 {
            return;
        }
    }
    panic!("{command}: {least}");
}

/// Returns the command of a runner that comes with `dp`, if its module can be loaded.
pub fn shipped(name: &str, module: &str) -> Option<String> {
    let usable = Command::new(python()).args(["-c", &format!("import {module}")]).output();
    if !usable.is_ok_and(|run| run.status.success()) {
        say_skipped(name, "Python has no such module");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("runners").join(format!("run_{name}.py"));
    assert!(fs::read_to_string(&script).unwrap().lines().count() <= 40, "{name}");
    Some(format!("{} '{}'", python(), script.display()))
}

#[test]
fn the_model_is_that_of_the_rows() {
    let Some(place) = faulty_place() else { return };
    gives_the_model_of_rows(&place, &format!("{} faulty.py", python()), &["--table", "people"]);
    train(&place, "none 0", "").ok();
    let verified = place.dp(&["verify", "m.json"]).ok();
    assert!(verified.contains("computed by another engine") && !verified.contains("query"), "{verified}");
    let command = format!("{} faulty.py", python());
    let source = ["train", "--format", "runner", "--data", &command, "--query", "SELECT * FROM people"];
    place.dp(&[source.as_slice(), &words(FLAGS)].concat()).ok();
    let verified = place.dp(&["verify", "m.json"]).ok();
    assert!(verified.contains("the result of a query"), "{verified}");
    // Nothing but its table, what is known, and noisy weights is sent.
    let statements = place.read("statements");
    assert!(statements.contains("count(*)") && !statements.contains("faulty") && statements.lines().count() >= 9);
}

#[test]
fn duckdb_gives_the_model_of_rows() {
    let Some(command) = shipped("duckdb", "duckdb") else { return };
    let place = place();
    // Otherwise DuckDB makes Booleans of `yes` and `no`.
    let query = "FROM read_csv('people.csv', types = {earns: 'VARCHAR'}) -- all of them";
    gives_the_model_of_rows(&place, &command, &["--query", query]);
    // The same rows as a table.
    let make = "import duckdb; duckdb.connect('p.db').execute('CREATE SCHEMA w; CREATE TABLE w.people AS FROM read_csv($$people.csv$$, types = {earns: $$VARCHAR$$})')";
    assert!(Command::new(python()).args(["-c", make]).current_dir(place.path("")).status().unwrap().success());
    let of_table = |table: &str| {
        let command = format!("{command} p.db");
        let source = ["train", "--format", "runner", "--data", &command, "--table", table, "--seed", "9"];
        place.dp(&[source.as_slice(), &words(FLAGS)].concat())
    };
    of_table("w.people").ok();
    let found = weights(&place);
    let source = ["train", "--format", "runner", "--data", &command, "--seed", "9", "--query", query];
    place.dp(&[source.as_slice(), &words(FLAGS)].concat()).ok();
    assert_eq!(weights(&place), found);
    // As Booleans, the labels are neither `yes` nor `no`.
    let make = "import duckdb; duckdb.connect('p.db').execute('CREATE TABLE w.flags AS FROM read_csv($$people.csv$$)')";
    assert!(Command::new(python()).args(["-c", make]).current_dir(place.path("")).status().unwrap().success());
    let run = of_table("w.flags");
    run.says("2000 records");
    run.ok();
    of_table("w.folk").fails(1, "table.open").says("`CatalogException`").says("name of the table");
}

#[test]
fn clickhouse_gives_the_model_of_rows() {
    let Some(command) = shipped("clickhouse", "chdb") else { return };
    let place = place();
    let query = format!("SELECT * FROM file('{}', CSVWithNames)", place.path("people.csv").display());
    gives_the_model_of_rows(&place, &command, &["--query", &query]);
}

/// A server of ClickHouse's protocol over chdb, which answers statements as ClickHouse does.
const CLICKHOUSE_SERVER: &str = r#"
import sys, http.server, urllib.parse
from chdb import session
chdb = session.Session()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        settings = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
        known = self.headers["X-ClickHouse-User"] == "nurse" and self.headers["X-ClickHouse-Key"] == "a b"
        statement = self.rfile.read(int(self.headers["Content-Length"])).decode()
        try:
            assert known and settings["readonly"] == ["2"] and settings["use_query_cache"] == ["0"]
            status, answer = 200, chdb.query(statement).bytes()
        except Exception as error:
            status, answer = 404, str(error).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
import threading, os
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
server.serve_forever()
"#;

#[test]
fn clickhouse_is_asked_over_http() {
    let Some(command) = shipped("clickhouse", "chdb") else { return };
    let place = place();
    let mut server = Command::new(python());
    server.args(["-c", CLICKHOUSE_SERVER]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = server.spawn().unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let command = format!("{command} http://127.0.0.1:{}/", port.trim());
    let query = format!("SELECT * FROM file('{}', CSVWithNames)", place.path("people.csv").display());
    let train = |query: &str, password: &str| {
        let source = ["train", "--format", "runner", "--data", &command, "--query", query];
        let mut run = place.command(&[source.as_slice(), &words(FLAGS)].concat());
        run.env("CLICKHOUSE_USER", "nurse").env("CLICKHOUSE_PASSWORD", password);
        Run::from(run.stdin(Stdio::null()).output().unwrap())
    };
    train(&query, "a b").ok();
    assert!(weights(&place)[0] > 1.0);
    train(&query, "other").fails(1, "table.open").says("`HTTPError`");
    train("SELECT * FROM none", "a b").fails(1, "table.open").says("`HTTPError`");
    drop(server.stdin.take());
    server.wait().unwrap();
}

/// What passes is asked again, of a runner that is started again, and gives the same model.
#[test]
fn a_runner_that_fails_once_gives_the_same_model() {
    let Some(place) = faulty_place() else { return };
    train(&place, "none 0", " --seed 4").ok();
    let expected = weights(&place);
    // Each waits for most of its time.
    std::thread::scope(|scope| {
        for fault in ["dies 3 once", "dies 7 once", "hangs 5 once", "deaf 5 once", "passes 6 once"] {
            let (place, expected) = (place_of_faults(), &expected);
            scope.spawn(move || {
                train(&place, fault, " --seed 4 --sums-timeout 4").ok();
                assert!(place.path("had_fault").exists(), "{fault}");
                assert_eq!(&weights(&place), expected, "{fault}");
            });
        }
    });
}

#[test]
fn what_a_runner_does_wrong_ends_the_run() {
    if faulty_place().is_none() {
        return;
    }
    let runs = [
        ("dies 1", "table.open", "ended before it answered"),
        ("dies 2", "train.failed", "ended before it answered"),
        ("hangs 1", "table.open", "no answer for 1 s"),
        ("hangs 2", "train.failed", "no answer for 2 s"),
        ("no-greeting", "table.open", "no answer for 1 s"),
        ("greeting", "table.open", "does not name its dialect"),
        ("dialect", "table.open", "one of postgres, sqlite"),
        ("rubbish 1", "table.open", "not one of the protocol"),
        ("rubbish 6", "train.failed", "not one of the protocol"),
        ("endless 6", "train.failed", "not one of the protocol"),
        ("twice 5", "train.failed", "not asked, or twice"),
        ("count 2", "train.failed", "64 rows that are known"),
        ("count 6", "train.failed", "number of rows changed"),
        ("other 3", "train.failed", "two answers to one question"),
        ("short 5", "train.failed", "not a row of the integers"),
        ("fraction 5", "train.failed", "not one of the protocol"),
        ("large 6", "train.failed", "sum"),
        ("error 6", "train.failed", "it reports `Timeout`"),
        ("passes 2", "train.failed", "it reports `Timeout`"),
        ("quotes 6", "train.failed", "it reports an error"),
        ("both 6", "train.failed", "not one of the protocol"),
    ];
    let fails = |(fault, code, says): (&str, &str, &str)| {
        let place = place_of_faults();
        // Long enough for what comes before the fault, beside six other runs.
        let timeout = match says {
            "no answer for 1 s" => 1,
            "no answer for 2 s" => 2,
            _ => 20,
        };
        let run = train(&place, fault, &format!(" --sums-timeout {timeout}"));
        run.fails(1, code).says(says);
        assert!(!run.stderr.contains("SECRET"), "{fault}: {run:?}");
        assert!(!place.files().contains(&"m.json".to_owned()), "{fault}");
    };
    std::thread::scope(|scope| {
        for some in runs.chunks(3) {
            scope.spawn(|| some.iter().copied().for_each(fails));
        }
    });
}

#[test]
fn what_is_no_runner_is_refused() {
    let Some(place) = faulty_place() else { return };
    let runner = format!("{} faulty.py", python());
    let run = |command: &str, flags: &str| {
        let source = ["--format", "runner", "--data", command];
        let mut all = words(flags);
        all.splice(1..1, source);
        place.dp(&all)
    };
    let usual = format!("train --table people {FLAGS}");
    run("no-such-program --flag", &usual).fails(1, "table.open").says("cannot be started");
    run("'", &usual).fails(1, "table.open").says("quote");
    run("", &usual).fails(1, "table.open").says("empty");
    run(&runner, &usual.replace("--table people ", "")).fails(2, "usage.missing").says("--query SQL");
    run(&runner, &usual.replace("--table people", "--table peoples")).fails(1, "table.open").says("`OperationalError`");
    run(&runner, &usual.replace(" --sums", "")).fails(2, "usage.conflict").says("add --sums");
    run(&runner, &usual.replace("--sums", "--sums=2")).fails(2, "usage.conflict").says("one connection");
    run(&runner, &usual.replace("--delta 1e-6 ", "")).fails(2, "usage.conflict").says("--delta");
    run(&runner, &usual.replace("dp-gd --epsilon", "bolt-on-convex --epsilon"))
        .fails(2, "usage.conflict")
        .says("needs the rows");
    run(&runner, &usual).ok();
    run(&runner, "predict --model m.json --table people").fails(2, "usage.conflict").says("not with rows");
    fs::remove_file(place.path("m.json")).unwrap();
    let words = words("train --data people.csv --sums-timeout 5");
    assert_eq!(place.dp(&words).code, 2);
    place.write("s.toml", SCHEMA.replace("on_unreadable = 'neutral'\n", ""));
    run(&runner, &usual).fails(3, "encoding.sql").says("refuses some records");
    place.write("s.toml", SCHEMA.replace("columns.hours", "columns.pay"));
    run(&runner, &usual).fails(1, "table.open").says("columns of the schema");
    place.write("s.toml", SCHEMA);
    place.write("people.csv", "age,hours,trade,earns\n");
    run(&runner, &usual).fails(3, "csv.no_rows").says("no rows");
    assert!(!place.files().contains(&"m.json".to_owned()));
    // Nothing is started to see what would be done.
    let _ = fs::remove_file(place.path("statements"));
    run("no-such-program", &format!("{usual} --dry-run --n 1000")).ok();
    assert!(!place.path("statements").exists());
}

/// Starts a training whose runner hangs, and returns it with the number of the runner's process.
fn hanging(place: &Workplace, fault: &str) -> (Child, String) {
    let command = format!("{} faulty.py {fault} 4", python());
    let source = ["train", "--format", "runner", "--data", &command, "--table", "people"];
    let mut run = place.command(&[source.as_slice(), &words(FLAGS)].concat());
    let run = run.env("RUNNER_PIDS", "1").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let start = Instant::now();
    while !place.path("had_fault").exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "the runner has no fault");
        std::thread::sleep(Duration::from_millis(20));
    }
    (run.unwrap(), place.read("pids").lines().last().unwrap().to_owned())
}

fn is_there(pid: &str) -> bool {
    // A process that nobody waited for is one no more.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn ends(pid: &str) {
    let start = Instant::now();
    while is_there(pid) {
        assert!(start.elapsed() < Duration::from_secs(20), "the runner goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_signal_ends_the_runner_too() {
    if !Path::new("/proc/self/stat").exists() {
        return say_skipped("signals of a runner", "there is no /proc");
    }
    for (fault, signal) in [("hangs", signals()[0]), ("deaf", "TERM")] {
        let Some(place) = faulty_place() else { return };
        let (child, runner) = hanging(&place, fault);
        assert!(is_there(&runner));
        Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        let run = Run::from(child.wait_with_output().unwrap());
        assert_eq!(run.code, 130, "{run:?}");
        assert!(!run.stderr.contains("train.failed"), "{run:?}");
        assert!(!is_there(&runner), "{fault}");
        assert!(
            !place.files().iter().any(|name| name.starts_with("m.json") || name.contains("part")),
            "{:?}",
            place.files()
        );
    }
}

/// The shipped runners end with `dp`, even if it is killed within a statement.
#[test]
fn a_killed_dp_leaves_no_runner() {
    let Some(command) = shipped("duckdb", "duckdb") else { return };
    if !Path::new("/proc/self/stat").exists() {
        return say_skipped("signals of a runner", "there is no /proc");
    }
    let place = place();
    // A table that takes minutes.
    let query = "SELECT 20.0 AS age, a.range / 1e9 AS hours, 'smith' AS trade, 'yes' AS earns FROM range(100000) a, range(1000000) b";
    let source = ["train", "--format", "runner", "--data", &command, "--query", query];
    let mut child = place
        .command(&[source.as_slice(), &words(FLAGS)].concat())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let start = Instant::now();
    let runner = loop {
        let runner = fs::read_to_string(&children).unwrap_or_default().trim().to_owned();
        if !runner.is_empty() {
            break runner;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "no runner was started");
        std::thread::sleep(Duration::from_millis(20));
    };
    std::thread::sleep(Duration::from_secs(2));
    assert!(is_there(&runner) && child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
    ends(&runner);
}
