//! A connection to a server, and what is done over it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{CancelToken, Client, Error, Row, SimpleQueryMessage};

use super::failure::{at_rows, before_rows, may_pass};
use super::settings::{Settings, Surroundings};
use super::tls::Tls;
use crate::error::{DataError, DataErrorKind};
use crate::sums::{Cells, Failed};

/// Time for a request to cancel, and for the end of a connection.
const FAREWELL: Duration = Duration::from_secs(5);

/// A connection to a server. Only the requested statements are sent.
pub(crate) struct Server {
    runtime: Runtime,
    client: Client,
    connection: JoinHandle<Result<(), Error>>,
    cancel: Cancel,
    watches: bool,
}

/// Makes the server check whether its client is still connected, and end a statement for which nobody waits: since version 14,
/// on most systems.
const WATCH: &str = "SET LOCAL client_connection_check_interval = '2s'";

/// Cancels the statement that a server runs for a connection. Usable on any thread.
#[derive(Clone)]
pub(crate) struct Cancel(Arc<(CancelToken, Tls)>);

impl Cancel {
    /// Asks the server to end the current statement, if there is one.
    pub(crate) fn cancel(&self) {
        let (token, tls) = &*self.0;
        if let Ok(runtime) = runtime() {
            // It may have ended, or the server be gone.
            let _ = runtime.block_on(async { timeout(FAREWELL, token.cancel_query(tls.clone())).await });
        }
    }
}

fn runtime() -> Result<Runtime, DataError> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| DataError::new(DataErrorKind::TableOpen, format!("the system allows no connection: {error}")))
}

const OPEN: DataErrorKind = DataErrorKind::TableOpen;

impl Server {
    /// Connects to the server of an address, by libpq's rules.
    ///
    /// # Errors
    /// `table.open`.
    pub(crate) fn connect(address: &str) -> Result<Self, DataError> {
        let settings = Settings::new(address, &Surroundings::of_process())?;
        let (config, tls) = settings.config()?;
        let time = settings.connect_timeout()?;
        let runtime = runtime()?;
        let what = "there is no connection to the server";
        let connected = runtime.block_on(async { timeout(time, config.connect(tls.clone())).await });
        let connected = connected
            .map_err(|_| DataError::new(OPEN, format!("{what}: it does not answer within {} s", time.as_secs())));
        let (client, connection) = connected?.map_err(|error| {
            let refused = before_rows(OPEN, what, &error);
            match settings.passwords_ignored {
                Some(file) => refused
                    .help(format!("{} was ignored, since other users may read it: chmod 600 {0}", file.display())),
                None => refused,
            }
        })?;
        let cancel = Cancel(Arc::new((client.cancel_token(), tls)));
        let connection = runtime.spawn(connection);
        let mut server = Self { runtime, client, connection, cancel, watches: false };
        server.watches = server.execute(&format!("BEGIN; {WATCH}")).is_ok();
        server.execute("ROLLBACK")?;
        Ok(server)
    }

    /// Returns the statements that begin a read-only transaction on one snapshot. `row_security` is off, so that a table of
    /// which the role may see only some rows is an error.
    pub(crate) fn begin(&self) -> String {
        let watch = if self.watches { WATCH } else { "" };
        format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL row_security = off; {watch}")
    }

    /// Returns a handle that cancels its statements.
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Runs statements without a result.
    ///
    /// # Errors
    /// `table.open`.
    pub(crate) fn execute(&self, statements: &str) -> Result<(), DataError> {
        let done = self.runtime.block_on(self.client.batch_execute(statements));
        done.map_err(|error| before_rows(OPEN, "the server refuses the transaction", &error))
    }

    /// Returns the rows of a query of the catalogue.
    ///
    /// # Errors
    /// `table.open`.
    pub(crate) fn look_up(&self, query: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, DataError> {
        let rows = self.runtime.block_on(self.client.query(query, parameters));
        rows.map_err(|error| before_rows(OPEN, "the table cannot be looked up", &error))
    }

    /// Returns the columns of a query, which is not run.
    ///
    /// # Errors
    /// `table.open`.
    pub(crate) fn columns(&self, query: &str) -> Result<Vec<(String, Type)>, DataError> {
        let prepared = self.runtime.block_on(self.client.prepare(query));
        let prepared = prepared.map_err(|error| before_rows(OPEN, "the table cannot be read", &error))?;
        Ok(prepared.columns().iter().map(|column| (column.name().to_owned(), column.type_().clone())).collect())
    }

    /// Runs a `COPY … TO STDOUT` and passes on the pieces of its output.
    ///
    /// # Errors
    /// `table.read`, and what `take` returns.
    pub(crate) fn copy_out(
        &self,
        statement: &str,
        mut take: impl FnMut(&[u8]) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        self.runtime.block_on(async {
            let started = self.client.copy_out(statement).await;
            let started =
                started.map_err(|error| before_rows(DataErrorKind::TableRead, "the table cannot be read", &error))?;
            let mut pieces = pin!(started);
            while let Some(piece) = pieces.next().await {
                take(&piece.map_err(|error| at_rows(&error))?)?;
            }
            Ok(())
        })
    }

    /// Returns the first row of the result of a statement, or of the last of several that has one.
    ///
    /// # Errors
    /// `table.read`.
    pub(crate) fn row(&self, statement: &str) -> Result<Cells, Failed> {
        let messages = self.runtime.block_on(self.client.simple_query(statement));
        let messages = messages.map_err(|error| Failed { may_pass: may_pass(&error), error: at_rows(&error) })?;
        let row = messages.into_iter().rev().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let none = || Failed { error: DataError::of_table("the server gives no answer"), may_pass: false };
        let row = row.ok_or_else(none)?;
        Ok((0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect())
    }

    /// Ends the connection, and waits a moment for the server to notice.
    pub(crate) fn close(self) {
        let Self { runtime, client, connection, .. } = self;
        drop(client);
        let _ = runtime.block_on(async { timeout(FAREWELL, connection).await });
    }
}
