//! Engines other than PostgreSQL, run by a Python that `DP_TEST_PYTHON` names: SQLite, DuckDB, ClickHouse and Spark.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use dp_data::sql::Dialect;
use serde_json::{Value, json};

use super::say_skipped;

/// A row by the names of its columns; `None` for NULL.
pub type Row = Vec<(String, Option<String>)>;

/// An engine in a process of its own, which ends with this one: with its input.
pub struct Engine {
    pub dialect: Dialect,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// Returns the Python whose modules the tests use.
pub fn python() -> String {
    std::env::var("DP_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// The variable with the options of a Java that runs for seconds: the first compiler alone, and garbage collection on one thread.
pub const JAVA_OPTIONS: (&str, &str) = ("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC");

/// The engines that run: each is started once, since Spark takes seconds to.
static ENGINES: [Started; Dialect::ALL.len()] = [const { OnceLock::new() }; Dialect::ALL.len()];

type Started = OnceLock<Option<Mutex<Engine>>>;

impl Engine {
    /// Returns an engine; says so if it cannot be started.
    pub fn of(dialect: Dialect) -> Option<MutexGuard<'static, Self>> {
        let place = Dialect::ALL.iter().position(|other| *other == dialect)?;
        let engine = ENGINES[place].get_or_init(|| Self::start(dialect).map(Mutex::new)).as_ref()?;
        Some(engine.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn start(dialect: Dialect) -> Option<Self> {
        let script = include_str!("engine.py");
        let mut command = Command::new(python());
        command
            .args(["-c", script, dialect.id()])
            .envs([JAVA_OPTIONS])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let skip = |why: &str| {
            assert!(dialect != Dialect::Spark || std::env::var_os("DP_REQUIRE_SPARK").is_none(), "spark: {why}");
            say_skipped(dialect.id(), why);
        };
        let Ok(mut child) = command.spawn() else {
            skip("there is no Python");
            return None;
        };
        let (questions, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut engine = Self { dialect, questions, answers };
        if engine.answer() != Some(json!("ready")) {
            skip("Python has no such module, or one without what is needed");
            return None;
        }
        Some(engine)
    }

    fn answer(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.answers.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    /// Runs a statement and returns its rows.
    pub fn run(&mut self, statement: &str) -> Vec<Row> {
        let question = serde_json::to_string(statement).unwrap();
        writeln!(self.questions, "{question}").unwrap();
        let answer = self.answer().unwrap_or_else(|| panic!("{:?} ended: {statement:.2000}", self.dialect));
        assert!(answer["error"].is_null(), "{:?}: {}\n{statement:.2000}", self.dialect, answer["error"]);
        let names: Vec<&str> = answer["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let row = |row: &Value| {
            let cells = row.as_array().unwrap().iter().map(|cell| cell.as_str().map(str::to_owned));
            names.iter().map(|&name| name.to_owned()).zip(cells).collect()
        };
        answer["rows"].as_array().unwrap().iter().map(row).collect()
    }

    /// Makes a table of rows in text; an empty cell is NULL. Types are `int`, `float`, `text`, `day` and
    /// `moment`, whose texts are as `2024-07-04` and as `04.07.2024 18:00`, the form that SQLite keeps.
    pub fn create(&mut self, name: &str, columns: &[(&str, &str)], rows: &[Vec<String>]) {
        let dialect = self.dialect;
        let kind = |kind: &str| match (dialect, kind) {
            (Dialect::Sqlite, "int") => "INTEGER",
            (Dialect::Sqlite, "float") => "REAL",
            (Dialect::ClickHouse, "int") => "Nullable(Int32)",
            (Dialect::ClickHouse, "float") => "Nullable(Float64)",
            (Dialect::ClickHouse, "day") => "Nullable(Date32)",
            (Dialect::ClickHouse, "moment") => "Nullable(DateTime64(3, 'Asia/Tokyo'))",
            (Dialect::ClickHouse, _) => "Nullable(String)",
            (Dialect::DuckDb | Dialect::Spark, "day") => "DATE",
            (Dialect::DuckDb | Dialect::Spark, "moment") => "TIMESTAMP",
            (Dialect::Spark, "text") => "STRING",
            (_, "int") => "INT",
            (_, "float") => "DOUBLE",
            _ => "TEXT",
        };
        let cell = |cell: &String, kind: &str| match kind {
            _ if cell.is_empty() => "NULL".to_owned(),
            "text" => dialect.text(cell),
            "float" => dialect.number(cell.parse().unwrap()),
            "moment" if dialect != Dialect::Sqlite => {
                let (day, month, year, time) = (&cell[..2], &cell[3..5], &cell[6..10], &cell[11..]);
                let text = format!("{year}-{month}-{day} {time}:00");
                match dialect {
                    Dialect::ClickHouse => format!("toDateTime64('{text}', 3, 'UTC')"),
                    Dialect::Spark => format!("TIMESTAMP '{text} UTC'"),
                    _ => dialect.text(&text),
                }
            }
            "day" | "moment" => dialect.text(cell),
            _ => cell.clone(),
        };
        let row = |row: &Vec<String>| {
            let cells: Vec<String> = row.iter().zip(columns).map(|(text, (_, kind))| cell(text, kind)).collect();
            format!("({})", cells.join(", "))
        };
        let rows = rows.iter().map(row).collect::<Vec<_>>().join(", ");
        if dialect == Dialect::Spark {
            let places: Vec<String> = (0..columns.len()).map(|i| format!("c{i}")).collect();
            let typed = columns
                .iter()
                .zip(&places)
                .map(|((name, of), place)| format!("CAST({place} AS {}) AS {}", kind(of), dialect.name(name)));
            let (typed, places) = (typed.collect::<Vec<_>>().join(", "), places.join(", "));
            self.run(&format!(
                "CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT {typed} FROM VALUES {rows} AS t({places})"
            ));
            return;
        }
        let typed = columns.iter().map(|(name, of)| format!("{} {}", dialect.name(name), kind(of)));
        let ending = if dialect == Dialect::ClickHouse { " ENGINE = Memory" } else { "" };
        self.run(&format!("CREATE TABLE {name} ({}){ending}", typed.collect::<Vec<_>>().join(", ")));
        self.run(&format!("INSERT INTO {name} VALUES {rows}"));
    }
}
