//! Tables, views and queries of SQLite databases.

use std::path::Path;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};

use super::{Batch, Batches, Relation, Table, TableColumn};
use crate::encode::Cell;
use crate::error::{DataError, DataErrorKind};
use crate::sql::Dialect;

/// Time for which another program may lock the database.
const LOCKED: Duration = Duration::from_secs(5);

/// Opens a table, a view or a query of a database file, which is not changed.
///
/// All rows are read in one transaction. NULL is a missing cell, an integer or a real number a number, text is text; 0 and 1 in a
/// column declared BOOLEAN are Booleans. A BLOB is read as text.
///
/// # Errors
/// `table.open`: no such file, no database, no such table, a query that is wrong.
///
/// # Examples
/// ```
/// use dp_data::table::{Relation, sqlite};
/// let error = sqlite::open("no/such.db", &Relation::Only).unwrap_err();
/// assert_eq!(error.code(), "table.open");
/// ```
pub fn open(path: impl AsRef<Path>, relation: &Relation) -> Result<Table, DataError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let refuse = |error: DataError| error.in_file(&name);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| refuse(not_opened(&error)))?;
    let (from, columns) = prepare(&connection, relation).map_err(refuse)?;
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    Ok(Table::new(&name, columns, move |used, batches| {
        let selected: Vec<String> = used.iter().map(|&column| Dialect::Sqlite.name(&names[column])).collect();
        read(&connection, &format!("SELECT {} FROM {from}", selected.join(", ")), batches)
    }))
}

/// Starts the transaction; returns what to select from, and the columns.
fn prepare(connection: &Connection, relation: &Relation) -> Result<(String, Vec<TableColumn>), DataError> {
    let failed = |error: rusqlite::Error| not_opened(&error);
    connection.busy_timeout(LOCKED).map_err(failed)?;
    connection.execute_batch("BEGIN").map_err(failed)?;
    let table = match relation {
        Relation::Table(table) => Some(table.clone()),
        Relation::Query(_) => None,
        Relation::Only => Some(only_table(connection)?),
    };
    check_names(connection, table.as_deref())?;
    let from = match &table {
        Some(table) => Dialect::Sqlite.name(table),
        None => relation.subquery().unwrap_or_default(),
    };
    let statement = connection.prepare(&format!("SELECT * FROM {from}")).map_err(failed)?;
    let column = |name: &str| TableColumn { name: name.to_owned(), unreadable: None };
    let columns = statement.column_names().map(column).collect();
    Ok((from, columns))
}

/// Checks that the names and types of a table's columns are UTF-8, or for a query the definitions of all tables: one that is not
/// would be a panic. From other encodings SQLite converts.
fn check_names(connection: &Connection, table: Option<&str>) -> Result<(), DataError> {
    let failed = |error: rusqlite::Error| not_opened(&error);
    let encoding: String = connection.query_row("PRAGMA encoding", [], |row| row.get(0)).map_err(failed)?;
    if encoding != "UTF-8" {
        return Ok(());
    }
    let query = match table {
        Some(_) => "SELECT CAST(name || ' ' || type AS BLOB) FROM pragma_table_xinfo(?1)",
        None => "SELECT CAST(sql AS BLOB) FROM sqlite_schema WHERE type IN ('table', 'view') AND ?1 IS NULL",
    };
    let mut statement = connection.prepare(query).map_err(failed)?;
    let mut rows = statement.query([table]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let text: Option<Vec<u8>> = row.get(0).map_err(failed)?;
        if text.is_some_and(|text| std::str::from_utf8(&text).is_err()) {
            let message = "the name or the type of a column is not UTF-8";
            return Err(DataError::new(DataErrorKind::TableOpen, message));
        }
    }
    Ok(())
}

/// Returns the name of the only table or view.
fn only_table(connection: &Connection) -> Result<String, DataError> {
    let query =
        "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let names = connection.prepare(query).and_then(|mut statement| {
        statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()
    });
    let names = names.map_err(|error| not_opened(&error))?;
    match <[String; 1]>::try_from(names) {
        Ok([name]) => Ok(name),
        Err(names) => Err(Relation::not_named("database", "table", &names)),
    }
}

fn read(connection: &Connection, query: &str, batches: &mut Batches) -> Result<(), DataError> {
    let mut statement = connection.prepare(query).map_err(|error| not_opened(&error))?;
    let booleans: Vec<bool> = statement
        .columns()
        .map(|column| column.decl_type().is_some_and(|kind| kind.to_ascii_uppercase().starts_with("BOOL")))
        .collect();
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query([]).map_err(|error| not_read(&error))?;
    let (mut batch, mut number) = (Batch::new(booleans.len()), 0u64);
    while let Some(row) = rows.next().map_err(|error| not_read(&error).at_line(number + 1))? {
        number += 1;
        for (column, &is_boolean) in booleans.iter().enumerate() {
            push(row, column, is_boolean, &mut batch)
                .map_err(|error| error.at_line(number).at_column(names.get(column).map_or("", |name| name)))?;
        }
        if batch.is_full() {
            batches.send(std::mem::replace(&mut batch, Batch::new(booleans.len())))?;
        }
    }
    batches.send(batch)
}

fn push(row: &Row<'_>, column: usize, is_boolean: bool, batch: &mut Batch) -> Result<(), DataError> {
    let cell = match row.get_ref(column).map_err(|error| not_read(&error))? {
        ValueRef::Null => Cell::Missing,
        ValueRef::Integer(value @ (0 | 1)) if is_boolean => Cell::Boolean(value == 1),
        ValueRef::Integer(value) => return batch.push_whole(column, value.into()),
        ValueRef::Real(value) => Cell::Number(value),
        ValueRef::Text(text) | ValueRef::Blob(text) => return batch.push_text(column, text),
    };
    batch.push(column, cell)
}

/// The error before a row was read. SQLite's text names files, tables and columns.
fn not_opened(error: &rusqlite::Error) -> DataError {
    let text = match error {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        error => error.to_string(),
    };
    DataError::new(DataErrorKind::TableOpen, format!("the database cannot be read: {text}"))
        .help("check the file, the table and the query")
}

/// The error for a row. SQLite's text could quote what a query was computing, so that its code has to do.
fn not_read(error: &rusqlite::Error) -> DataError {
    let why = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "another program has locked it",
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => "it is damaged",
        Some(ErrorCode::SystemIoFailure) => "the system cannot read the file",
        Some(ErrorCode::OutOfMemory) => "there is no memory for a row",
        Some(ErrorCode::TypeMismatch) => "a value has another type than the query expects",
        _ => "a row could not be computed",
    };
    DataError::new(DataErrorKind::TableRead, format!("the database cannot be read to its end: {why}"))
}

#[cfg(test)]
mod tests;
