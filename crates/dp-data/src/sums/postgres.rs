//! Sums of gradients over a table of a PostgreSQL server.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::in_sql::GradientSql;
use super::{GradientSums, Slope, SumSource, bits_of};
use crate::encode::Encoder;
use crate::error::{DataError, DataErrorKind};
use crate::postgres::{Cancel as ServerCancel, Failed, Server};
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
/// Each step is one statement in a read-only transaction of its own; over several connections, one for each part of the rows, in
/// transactions that see the same snapshot. Before the first step, the same statement over 64 public rows is compared with what it
/// has to give. A statement that is lost with its connection is sent again, unchanged.
///
/// # Privacy
/// Statements hold the weights of each step, which a log may keep. Algorithms that run on a [`SumSource`] compute them from noisy
/// sums alone, so that they may be published. Results of statements are not private: whoever can read the server's memory sees what
/// they could compute themselves.
pub struct PostgresSums {
    address: String,
    from: String,
    /// What is set in each transaction.
    settings: String,
    sql: GradientSql,
    description: Description,
    servers: Vec<Server>,
    /// What cancels the connections' statements.
    cancels: Arc<Mutex<Vec<ServerCancel>>>,
    /// The slope whose statement was compared with known sums.
    checked: Option<Slope>,
}

impl PostgresSums {
    /// Connects to a server, as [`table::postgres::open`](crate::table::postgres::open) does, so many times, and counts the records.
    ///
    /// # Errors
    /// `table.open`, `table.type`, `csv.missing_column`; `encoding.sql` for an encoder that cannot be written as SQL, or whose schema
    /// refuses some records; `table.open` for several connections to a view or a query, whose rows have no place, or to a server
    /// before version 14.
    pub fn open(
        address: &str,
        relation: &Relation,
        encoder: &Encoder,
        connections: NonZeroUsize,
    ) -> Result<Self, DataError> {
        let sql = GradientSql::new(encoder, Dialect::Postgres)?;
        let refuse = |error: DataError| error.in_file(shown(address));
        let server = Server::connect(address).map_err(refuse)?;
        let opened = prepare(&server, relation).map_err(refuse)?;
        let table = Table::new(shown(address), described(&opened), |_, _| Ok(()));
        if let Some(schema) = encoder.schema() {
            let used = schema.columns().iter().filter(|column| column.kind != ColumnKind::Drop);
            let used = used.map(|column| &column.name).chain([&schema.label().column]);
            used.into_iter().try_for_each(|name| table.position(name).map(drop))?;
        }
        let Opened { from, search_path, .. } = opened;
        if connections.get() > 1 && server.columns(&format!("SELECT {PLACE} FROM {from}")).is_err() {
            let message = "several connections share the rows by their places, which these do not have";
            return Err(refuse(
                DataError::new(DataErrorKind::TableOpen, message)
                    .expected("a table, on a server of version 14 or later")
                    .help("use one connection"),
            ));
        }
        let count = server.row(&format!("SELECT count(*) FROM {from}; COMMIT"));
        let count = count.map_err(|failed| refuse(failed.error))?;
        let n = count.first().and_then(|cell| cell.as_deref()?.parse().ok()).unwrap_or(0);
        let description = Description {
            n,
            dim: encoder.dim(),
            row_norm: encoder.row_bound(),
            target_bound: encoder.target_bound(),
            engine: ENGINE,
        };
        let mut servers = vec![server];
        for _ in 1..connections.get() {
            servers.push(Server::connect(address).map_err(refuse)?);
        }
        let cancels = Arc::new(Mutex::new(servers.iter().map(Server::cancel).collect()));
        let settings = format!("{SETTINGS}; {search_path}");
        Ok(Self { address: address.to_owned(), from, settings, sql, description, servers, cancels, checked: None })
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
        let cancels = Arc::clone(&self.cancels);
        Arc::new(move || {
            let cancels = cancels.lock().unwrap_or_else(PoisonError::into_inner).clone();
            cancels.iter().for_each(ServerCancel::cancel);
        })
    }

    /// Runs a statement on each of so many connections, all on one snapshot, up to three times.
    fn ask(&mut self, statements: &[String]) -> Result<Vec<Vec<Option<String>>>, SourceError> {
        let mut trial = 1;
        loop {
            let failed = match together(&self.servers, &self.settings, statements) {
                Ok(rows) => return Ok(rows),
                Err(failed) => failed,
            };
            // Sessions may be within a transaction that failed, or gone.
            let are_there: Vec<bool> = self.servers.iter().map(|server| server.execute("ROLLBACK").is_ok()).collect();
            if trial == TRIALS || !failed.may_pass {
                return Err(engine_error(&failed.error));
            }
            thread::sleep(PAUSE * trial);
            trial += 1;
            for (server, _) in self.servers.iter_mut().zip(are_there).filter(|(_, is_there)| !is_there) {
                if let Ok(again) = Server::connect(&self.address) {
                    *server = again;
                }
            }
            let cancels = self.servers.iter().map(Server::cancel).collect();
            *self.cancels.lock().unwrap_or_else(PoisonError::into_inner) = cancels;
        }
    }

    /// Returns the sums over `from`, of which each connection takes a part.
    fn sums(
        &mut self,
        slope: Slope,
        weights: &[f64],
        from: &str,
        bits: u32,
        parts: usize,
    ) -> Result<GradientSums, SourceError> {
        let statement = |part: usize| {
            let condition = (parts > 1).then(|| format!("({PLACE} & 2147483647) % {parts} = {part}"));
            self.sql.statement(slope, weights, bits, from, condition.as_deref()).map_err(|error| engine_error(&error))
        };
        let statements: Vec<String> = (0..parts).map(statement).collect::<Result<_, _>>()?;
        let mut total = GradientSums { records: 0, steps: vec![0; weights.len()], bits };
        for row in self.ask(&statements)? {
            let cells: Vec<Option<&str>> = row.iter().map(Option::as_deref).collect();
            total.add(&self.sql.answer(&cells, weights.len(), bits)?)?;
        }
        Ok(total)
    }
}

/// A number of the place where a table holds a row: rows of one snapshot have one each, and no value has a part in it.
const PLACE: &str = "pg_catalog.hashtid(ctid)";

/// No workers that only pass rows on, since connections share the rows; no code that takes longer to compile than it saves.
const SETTINGS: &str = "SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off";

/// Runs a statement on each of the first connections, at the same time and on one snapshot, and returns their first rows.
fn together(servers: &[Server], settings: &str, statements: &[String]) -> Result<Vec<Vec<Option<String>>>, Failed> {
    let [statement] = statements else { return share_snapshot(servers, settings, statements) };
    let Some(server) = servers.first() else { return Ok(Vec::new()) };
    Ok(vec![server.row(&format!("{}; {settings}; {statement}; COMMIT", server.begin()))?])
}

fn share_snapshot(
    servers: &[Server],
    settings: &str,
    statements: &[String],
) -> Result<Vec<Vec<Option<String>>>, Failed> {
    let Some(first) = servers.first() else { return Ok(Vec::new()) };
    let snapshot = first.row(&format!("{}; SELECT pg_catalog.pg_export_snapshot()", first.begin()))?;
    let snapshot = snapshot.into_iter().next().flatten().unwrap_or_default().replace('\'', "");
    let ask = |(i, (server, statement)): (usize, (&Server, &String))| {
        let begin = match i {
            // Its transaction gives the snapshot to the others until all are done.
            0 => String::new(),
            _ => format!("{}; SET TRANSACTION SNAPSHOT '{snapshot}'; ", server.begin()),
        };
        server.row(&format!("{begin}{settings}; {statement}"))
    };
    let asked = servers.iter().zip(statements).enumerate();
    let rows: Result<Vec<_>, Failed> = thread::scope(|scope| {
        let threads: Vec<_> = asked
            .map(|part| {
                let ask = &ask;
                scope.spawn(move || ask(part))
            })
            .collect();
        let lost = || Failed { error: DataError::of_table("a thread ended early"), may_pass: false };
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(lost()))).collect()
    });
    let rows = rows?;
    for server in servers.iter().take(statements.len()) {
        server.execute("COMMIT").map_err(|error| Failed { error, may_pass: true })?;
    }
    Ok(rows)
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
            let found = self.sums(slope, &weights, &rows, bits, 1)?;
            self.sql.check_known(&expected, &found)?;
            self.checked = Some(slope);
        }
        let from = self.from.clone();
        self.sums(slope, weights, &from, bits, self.servers.len())
    }
}
