//! Sums of gradients by any engine that a program can query.

mod process;

use std::sync::Arc;
use std::time::Duration;

use self::process::{Process, Running};
use super::in_sql::SumSql;
use super::{Cells, Engine, Failed, SqlSums};
use crate::encode::Encoder;
use crate::error::{DataError, DataErrorKind};
use crate::sql::Dialect;
use crate::table::Relation;

/// Starts a *runner*, a program that runs SQL in an engine, and counts the records.
///
/// `command` is split by the rules of a shell and started without one. Each message is a JSON object on one line:
///
/// ```text
/// out  {"dialect": "spark"}                                       once; a name of Dialect::of_id
/// in   {"id": 1, "sql": "SELECT count(*), sum(…), … FROM …"}
/// out  {"id": 1, "row": ["1000", "-73", null]}                    the first row: integers, as text or numbers
///   or {"id": 1, "error": "OutOfMemory", "retriable": true}       a name of what happened, no value of a record
/// ```
///
/// A runner answers one statement after the other, and ends when its standard input ends, even within a statement. Its standard error is
/// that of the caller. If it exits, reports a retriable error, or does not answer within `patience`, it is restarted and the
/// statement is sent again, at most twice for a step.
///
/// A table is named by words between points, as `catalogue.schema.table`.
///
/// # Errors
/// `table.open`: a command that cannot be started, a runner that does not keep to the protocol, no such table or columns;
/// `encoding.sql` for an encoder that cannot be written as SQL, or whose schema refuses some records.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use dp_data::table::Relation;
/// use dp_data::{Encoder, Encoding, Schema, sums::runner};
///
/// let schema = Schema::parse(
///     "toy.toml",
///     "label = { column = 'y', positive = 'yes', negative = 'no', others = 'neutral' }\n\
///      columns.age = { type = 'numeric', min = 0, max = 100, on_missing = 'neutral', on_unreadable = 'neutral' }",
/// )?;
/// let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS)?;
/// let error = runner::open("no-such-program --flag", &Relation::Table("people".into()), &encoder, Duration::from_secs(9));
/// assert_eq!(error.err().map(|error| error.code()), Some("table.open"));
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub fn open(command: &str, relation: &Relation, encoder: &Encoder, patience: Duration) -> Result<SqlSums, DataError> {
    let refuse = |error: DataError| error.in_file(SHOWN);
    let words = shlex::split(command).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| {
        refuse(opening("the command is empty, or a quote in it does not end").expected("a program and its arguments"))
    })?;
    let running = Arc::new(Running::default());
    let mut runner = Runner::start(words, patience, Arc::clone(&running)).map_err(refuse)?;
    let sql = SumSql::new(encoder, runner.dialect)?;
    let from = match relation {
        Relation::Table(name) => name.split('.').map(|part| runner.dialect.name(part)).collect::<Vec<_>>().join("."),
        Relation::Query(_) => relation.subquery().unwrap_or_default() + " AS t",
        Relation::Only => {
            return Err(refuse(opening("a runner has to be told what to read").expected("a table or a query")));
        }
    };
    let counts = runner.ask(&sql.count(&from)).map_err(|Failed { error, .. }| {
        refuse(
            opening(format!("the rows cannot be counted: {}", error.public_message()))
                .help("check the name of the table, and that it has the columns of the schema"),
        )
    })?;
    let n = sql.counted(&counts.iter().map(Option::as_deref).collect::<Vec<_>>()).map_err(refuse)?;
    let cancel = Arc::new(move || running.end());
    Ok(SqlSums::new("the runner", (Box::new(runner), cancel), (encoder, sql), from, vec![None], n))
}

/// The shown part of a command, whose words may be secret.
const SHOWN: &str = "the runner";

fn opening(message: impl Into<String>) -> DataError {
    DataError::new(DataErrorKind::TableOpen, message)
}

/// A runner, and how to start it again.
struct Runner {
    words: Vec<String>,
    patience: Duration,
    running: Arc<Running>,
    process: Option<Process>,
    dialect: Dialect,
    /// The number of the last question.
    asked: u64,
}

impl Runner {
    fn start(words: Vec<String>, patience: Duration, running: Arc<Running>) -> Result<Self, DataError> {
        let (process, dialect) = greeted(&words, patience, &running).map_err(|Failed { error, .. }| {
            let opening = opening(error.public_message()).help("its standard error may say more");
            if error.code() == opening.code() { error } else { opening }
        })?;
        Ok(Self { words, patience, running, process: Some(process), dialect, asked: 0 })
    }

    /// Returns the row that answers a statement.
    fn ask(&mut self, statement: &str) -> Result<Cells, Failed> {
        let process = match &mut self.process {
            Some(process) => process,
            gone => {
                let (process, dialect) = greeted(&self.words, self.patience, &self.running)?;
                if dialect != self.dialect {
                    return Err(broken("it has another dialect than before"));
                }
                gone.insert(process)
            }
        };
        self.asked += 1;
        process.send(serde_json::json!({ "id": self.asked, "sql": statement }).to_string());
        match serde_json::from_str(&process.receive(self.patience)?) {
            Ok(Answer { id, .. }) if id != self.asked => Err(broken("it answers what it was not asked, or twice")),
            Ok(Answer { row: Some(row), error: None, .. }) => Ok(row.into_iter().map(Cell::text).collect()),
            Ok(Answer { row: None, error: Some(error), retriable, .. }) => {
                // Only a name, as a sentence of an engine can quote the values of records.
                let is_name = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
                let named = match error.len() <= 80 && error.chars().all(is_name) {
                    true => format!("it reports `{error}`"),
                    false => "it reports an error".to_owned(),
                };
                Err(Failed { error: of_runner(&named), may_pass: retriable })
            }
            _ => Err(broken("its answer is not one of the protocol")),
        }
    }
}

impl Engine for Runner {
    fn run(&mut self, statements: &[String]) -> Result<Vec<Cells>, Failed> {
        statements.iter().map(|statement| self.ask(statement)).collect()
    }

    fn recover(&mut self) {
        self.process = None;
    }
}

/// Starts the process and waits for its dialect.
fn greeted(words: &[String], patience: Duration, running: &Arc<Running>) -> Result<(Process, Dialect), Failed> {
    let process = Process::start(words, Arc::clone(running));
    let process = process.map_err(|error| Failed {
        error: opening(format!("the command cannot be started: {error}")),
        may_pass: false,
    })?;
    let Greeting { dialect } = match serde_json::from_str(&process.receive(patience)?) {
        Ok(greeting) => greeting,
        Err(_) => return Err(broken("its first line does not name its dialect")),
    };
    match Dialect::of_id(&dialect) {
        Some(dialect) => Ok((process, dialect)),
        None => {
            let known = Dialect::ALL.map(Dialect::id).join(", ");
            Err(Failed {
                error: opening("its dialect is unknown").expected(format!("one of {known}")),
                may_pass: false,
            })
        }
    }
}

/// Returns the failure of a runner that does not keep to the protocol.
fn broken(what: &str) -> Failed {
    Failed { error: of_runner(what), may_pass: false }
}

fn of_runner(what: &str) -> DataError {
    DataError::of_table(what).help("its standard error may say more")
}

#[derive(serde::Deserialize)]
struct Greeting {
    dialect: String,
}

#[derive(serde::Deserialize)]
struct Answer {
    id: u64,
    row: Option<Vec<Cell>>,
    error: Option<String>,
    #[serde(default)]
    retriable: bool,
}

/// A cell of an answer.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Cell {
    Text(String),
    Integer(i64),
    Null(()),
}

impl Cell {
    fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Integer(integer) => Some(integer.to_string()),
            Self::Null(()) => None,
        }
    }
}
