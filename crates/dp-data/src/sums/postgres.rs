//! Sums of gradients over a table of a PostgreSQL server.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::in_sql::GradientSql;
use super::{GradientSums, Slope, SumSource, bits_of};
use crate::encode::Encoder;
use crate::error::DataError;
use crate::postgres::{Cancel as ServerCancel, Server};
use crate::schema::ColumnKind;
use crate::source::{Description, PassRequest, RowSource, RowStream, SourceError};
use crate::sql::Dialect;
use crate::table::postgres::{Opened, described, prepare, shown};
use crate::table::{Cancel, Relation, Table};

const ENGINE: &str = "postgresql";
/// Number of times that a statement is sent if the server goes away or gives way to others, and the shortest time in between.
const TRIALS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(2);

/// A table of a server that adds up gradients itself: no row leaves it, nothing is installed, and SELECT on the columns suffices.
///
/// Each step is one statement in a read-only transaction of its own. Before the first, the same statement over 64 public rows is
/// compared with what it has to give. A statement that is lost with its connection is sent again, unchanged.
///
/// # Privacy
/// Statements hold the weights of each step, which a log may keep. Algorithms that run on a [`SumSource`] compute them from noisy
/// sums alone, so that they may be published. Results of statements are not private: whoever can read the server's memory sees what
/// they could compute themselves.
pub struct PostgresSums {
    server: Server,
    address: String,
    from: String,
    sql: GradientSql,
    description: Description,
    /// What cancels the current connection's statements.
    current: Arc<Mutex<ServerCancel>>,
    /// The slope whose statement was compared with known sums.
    checked: Option<Slope>,
}

impl PostgresSums {
    /// Connects to a server, as [`table::postgres::open`](crate::table::postgres::open) does, and counts the records.
    ///
    /// # Errors
    /// `table.open`, `table.type`, `csv.missing_column`; `encoding.sql` for an encoder that cannot be written as SQL, or whose schema
    /// refuses some records.
    pub fn open(address: &str, relation: &Relation, encoder: &Encoder) -> Result<Self, DataError> {
        let sql = GradientSql::new(encoder, Dialect::Postgres)?;
        let refuse = |error: DataError| error.in_file(shown(address));
        let server = Server::connect(address).map_err(refuse)?;
        let opened = prepare(&server, relation).map_err(refuse)?;
        let table = Table::new(shown(address), described(&opened), |_, _| Ok(()));
        if let Some(schema) = encoder.schema() {
            let used = schema.columns().iter().filter(|column| column.kind != ColumnKind::Drop);
            used.map(|column| &column.name)
                .chain([&schema.label().column])
                .try_for_each(|name| table.position(name).map(drop))?;
        }
        let Opened { from, .. } = opened;
        let count = server.row(&format!("SELECT count(*) FROM {from}")).map_err(|failed| refuse(failed.error))?;
        server.execute("COMMIT").map_err(refuse)?;
        let n = count.first().and_then(|cell| cell.as_deref()?.parse().ok()).unwrap_or(0);
        let description = Description {
            n,
            dim: encoder.dim(),
            row_norm: encoder.row_bound(),
            target_bound: encoder.target_bound(),
            engine: ENGINE,
        };
        let current = Arc::new(Mutex::new(server.cancel()));
        Ok(Self { server, address: address.to_owned(), from, sql, description, current, checked: None })
    }

    /// Returns the number of records.
    pub fn len(&self) -> u64 {
        self.description.n
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how to end what the server does for it.
    pub fn cancel(&self) -> Cancel {
        let current = Arc::clone(&self.current);
        Arc::new(move || {
            let cancel = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
            cancel.cancel();
        })
    }

    /// Runs a statement in a transaction of its own, up to three times.
    fn ask(&mut self, statement: &str) -> Result<Vec<Option<String>>, SourceError> {
        let transaction = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL row_security = off; {statement}; COMMIT"
        );
        let mut trial = 1;
        loop {
            let failed = match self.server.row(&transaction) {
                Ok(row) => return Ok(row),
                Err(failed) => failed,
            };
            // The session may be within a transaction that failed, or gone.
            let is_there = self.server.execute("ROLLBACK").is_ok();
            if trial == TRIALS || !failed.may_pass {
                return Err(engine_error(&failed.error));
            }
            thread::sleep(PAUSE * trial);
            trial += 1;
            if !is_there && let Ok(server) = Server::connect(&self.address) {
                *self.current.lock().unwrap_or_else(PoisonError::into_inner) = server.cancel();
                self.server = server;
            }
        }
    }

    fn sums(&mut self, slope: Slope, weights: &[f64], from: &str, bits: u32) -> Result<GradientSums, SourceError> {
        let statement = self.sql.statement(slope, weights, bits, from, None);
        let row = self.ask(&statement.map_err(|error| engine_error(&error))?)?;
        let cells: Vec<Option<&str>> = row.iter().map(Option::as_deref).collect();
        self.sql.answer(&cells, weights.len(), bits)
    }
}

fn engine_error(error: &DataError) -> SourceError {
    let help = error.help_text().map_or_else(String::new, |help| format!("; {help}"));
    SourceError::Engine { engine: ENGINE, message: format!("{}{help}", error.public_message()) }
}

impl<F> RowSource<F> for PostgresSums {
    fn describe(&mut self) -> Result<Description, SourceError> {
        Ok(self.description.clone())
    }

    fn open_pass(&mut self, _: &PassRequest) -> Result<Box<dyn RowStream<F> + '_>, SourceError> {
        Err(SourceError::SumsOnly { engine: ENGINE })
    }

    fn sums(&mut self) -> Option<&mut dyn SumSource> {
        Some(self)
    }
}

impl SumSource for PostgresSums {
    fn gradients(&mut self, slope: Slope, weights: &[f64]) -> Result<GradientSums, SourceError> {
        let bits = bits_of(self.description.n);
        if self.checked != Some(slope) {
            let known = self.sql.known_answer(slope, bits);
            let (rows, weights, expected) = known.map_err(|error| engine_error(&error))?;
            let found = self.sums(slope, &weights, &rows, bits)?;
            self.sql.check_known(&expected, &found)?;
            self.checked = Some(slope);
        }
        let from = self.from.clone();
        self.sums(slope, weights, &from, bits)
    }
}
