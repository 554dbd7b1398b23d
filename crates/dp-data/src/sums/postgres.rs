//! Sums of gradients over a table of a PostgreSQL server.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::in_sql::SumSql;
use super::{Cells, Engine, Failed, SqlSums};
use crate::encode::Encoder;
use crate::error::{DataError, DataErrorKind};
use crate::postgres::{Cancel as ServerCancel, Server};
use crate::schema::{CellFormat, Column, ColumnKind, LabelKind, Schema};
use crate::sql::Dialect;
use crate::table::postgres::{Opened, described, prepare, shown};
use crate::table::{Cancel, Relation, Table};

/// The means of a server to add up gradients itself: the address for other connections, and the settings of each transaction.
struct Connections {
    address: String,
    settings: String,
    servers: Vec<Server>,
    /// Handles that cancel the connections' statements.
    cancels: Arc<Mutex<Vec<ServerCancel>>>,
}

/// Opens this many connections to a server, as [`table::postgres::open`](crate::table::postgres::open) does, and counts the
/// records. SELECT on the columns suffices.
///
/// Each step is a read-only transaction of its own; with several connections, one on each, all on the same snapshot.
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
) -> Result<SqlSums, DataError> {
    let sql = SumSql::new(encoder, Dialect::Postgres)?;
    let refuse = |error: DataError| error.in_file(shown(address));
    let server = Server::connect(address).map_err(refuse)?;
    let opened = prepare(&server, relation).map_err(refuse)?;
    let table = Table::new(shown(address), described(&opened), |_, _| Ok(()));
    if let Some(schema) = encoder.schema() {
        let mut used = schema.columns().iter().filter(|column| column.kind != ColumnKind::Drop);
        used.try_for_each(|column| table.position_of(column).map(drop))?;
        table.position(&schema.label().column)?;
        numbers(schema).try_for_each(|name| match opened.is_text(name) {
            // The server would end the statement at a text that is not a number, and so reveal that record.
            true => Err(refuse(
                DataError::new(DataErrorKind::TableType, "the column holds text, and the schema says numbers")
                    .at_column(name)
                    .help("cast it in a view, or in --query, to double precision"),
            )),
            false => Ok(()),
        })?;
        let dates = schema.columns().iter().filter(|column| matches!(column.format, Some(CellFormat::Date(_))));
        if let Some(column) = { dates }.find(|column| !opened.is_date(column.source())) {
            let error = DataError::new(
                DataErrorKind::TableType,
                "the column does not have a date type, but the schema says dates",
            );
            return Err(refuse(
                error.at_column(&column.name).help("cast it in a view, or in --query, to date or timestamp"),
            ));
        }
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
    let counts = server.row(&format!("{SETTINGS}; {}; COMMIT", sql.count(&from)));
    let counts = counts.map_err(|failed| refuse(failed.error))?;
    let n = sql.counted(&counts.iter().map(Option::as_deref).collect::<Vec<_>>()).map_err(refuse)?;
    let mut servers = vec![server];
    for _ in 1..connections.get() {
        servers.push(Server::connect(address).map_err(refuse)?);
    }
    let cancels = Arc::new(Mutex::new(servers.iter().map(Server::cancel).collect()));
    let cancel = cancel(Arc::clone(&cancels));
    let parts = match connections.get() {
        1 => vec![None],
        parts => (0..parts).map(|part| Some(format!("({PLACE} & 2147483647) % {parts} = {part}"))).collect(),
    };
    let settings = format!("{SETTINGS}; {search_path}");
    let engine = Box::new(Connections { address: address.to_owned(), settings, servers, cancels });
    Ok(SqlSums::new("postgresql", (engine, cancel), (encoder, sql), from, parts, n))
}

/// Returns the columns that hold numbers, the label among them.
fn numbers(schema: &Schema) -> impl Iterator<Item = &str> {
    let columns = schema.columns().iter();
    let columns = columns.filter(|column| {
        matches!(column.kind, ColumnKind::Numeric { .. } | ColumnKind::Indicator { .. }) && column.format.is_none()
    });
    let label = Some(schema.label()).filter(|label| matches!(label.kind, LabelKind::Number(_)));
    columns.map(Column::source).chain(label.map(|label| &*label.column))
}

fn cancel(cancels: Arc<Mutex<Vec<ServerCancel>>>) -> Cancel {
    Arc::new(move || {
        let cancels = cancels.lock().unwrap_or_else(PoisonError::into_inner).clone();
        cancels.iter().for_each(ServerCancel::cancel);
    })
}

impl Engine for Connections {
    fn run(&mut self, statements: &[String]) -> Result<Vec<Cells>, Failed> {
        together(&self.servers, &self.settings, statements)
    }

    /// Ends transactions that failed, and replaces connections that are gone.
    fn recover(&mut self) {
        for server in &mut self.servers {
            if server.execute("ROLLBACK").is_err()
                && let Ok(again) = Server::connect(&self.address)
            {
                *server = again;
            }
        }
        let cancels = self.servers.iter().map(Server::cancel).collect();
        *self.cancels.lock().unwrap_or_else(PoisonError::into_inner) = cancels;
    }
}

/// A number derived from the physical place of a row: each row of a snapshot has one, and it does not depend on values.
const PLACE: &str = "pg_catalog.hashtid(ctid)";

/// No parallel workers, since the connections share the rows; no JIT, whose compilation takes longer than it saves.
const SETTINGS: &str = "SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off";

/// Runs a statement on each of the first connections, at the same time and on one snapshot, and returns their first rows.
fn together(servers: &[Server], settings: &str, statements: &[String]) -> Result<Vec<Cells>, Failed> {
    let [statement] = statements else { return share_snapshot(servers, settings, statements) };
    let Some(server) = servers.first() else { return Ok(Vec::new()) };
    Ok(vec![server.row(&format!("{}; {settings}; {statement}; COMMIT", server.begin()))?])
}

fn share_snapshot(servers: &[Server], settings: &str, statements: &[String]) -> Result<Vec<Cells>, Failed> {
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
