//! Errors of a server, without the parts that may quote records.
//!
//! A server's DETAIL and CONTEXT quote rows, and so can the message of an error that a row causes. The message is shown only
//! for an error before the first row is computed, when it can quote nothing but the statement. For later errors only the code
//! is shown.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

use crate::error::{DataError, DataErrorKind};

/// Returns the error for a failure before a row was computed.
pub(super) fn before_rows(kind: DataErrorKind, what: &str, error: &Error) -> DataError {
    let Some(reported) = error.as_db_error() else { return DataError::new(kind, format!("{what}: {}", cause(error))) };
    if reported.routine() == Some("check_enable_rls") {
        return hidden_rows(kind);
    }
    let of_statement = ["0A", "25", "26", "28", "3D", "3F", "42", "53", "55", "57"];
    let code = reported.code().code();
    let why = match of_statement.iter().any(|class| code.starts_with(class)) {
        true => format!("{} (SQLSTATE {code})", reported.message()),
        false => by_code(reported.code()),
    };
    helped(DataError::new(kind, format!("{what}: {why}")), reported)
}

/// Returns the error of a row.
pub(super) fn at_rows(error: &Error) -> DataError {
    let what = "the table cannot be read to its end";
    let of_rows = |why: &str| DataError::new(DataErrorKind::TableRead, format!("{what}: {why}"));
    match error.as_db_error() {
        None if error.is_closed() => of_rows("the connection was lost"),
        // The client's own errors quote nothing from the server.
        None => of_rows(&format!("the connection failed ({})", cause(error))),
        Some(reported) if reported.routine() == Some("check_enable_rls") => hidden_rows(DataErrorKind::TableRead),
        Some(reported) => helped(of_rows(&by_code(reported.code())), reported),
    }
}

/// Returns whether the same statement may succeed later: the server went away, restarts, temporarily lacks resources, or had to
/// give way to others.
pub(super) fn may_pass(error: &Error) -> bool {
    match error.as_db_error() {
        None => true,
        Some(reported) => {
            let code = reported.code().code();
            ["08", "40", "53"].iter().any(|class| code.starts_with(class))
                || ["57P01", "57P02", "57P03"].contains(&code)
        }
    }
}

/// Returns the causes of an error of the client itself.
fn cause(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

/// Returns what a code means.
fn by_code(code: &SqlState) -> String {
    let meaning = match code.code() {
        "57014" => {
            "the server ended the statement, since it ran longer than `statement_timeout` or somebody cancelled it"
        }
        "25P03" => {
            "the server ended the transaction, since it waited longer than `idle_in_transaction_session_timeout`"
        }
        "25P04" => "the server ended the transaction, since it ran longer than `transaction_timeout`",
        "57P01" => "an administrator ended the connection",
        "57P02" | "57P03" => "the server crashed or restarts",
        "57P05" => "the server ended the connection, since it waited longer than `idle_session_timeout`",
        "40001" => "the server is a standby and had to remove rows that were still being read",
        "42501" => "the role lacks a privilege",
        code if code.starts_with("22") => "a value cannot be computed as the query or the view asks",
        code if code.starts_with("53") => "the server lacks memory, disk space or connections",
        code if code.starts_with("XX") => "the table is damaged, or the server has a fault",
        _ => "the server reported an error",
    };
    format!("{meaning} (SQLSTATE {})", code.code())
}

fn helped(error: DataError, reported: &DbError) -> DataError {
    match reported.code().code() {
        "57014" => error.help("allow more time: PGOPTIONS='-c statement_timeout=0'"),
        "25P03" => error.help("allow more time: PGOPTIONS='-c idle_in_transaction_session_timeout=0'"),
        "25P04" => error.help("allow more time: PGOPTIONS='-c transaction_timeout=0'"),
        "57P05" => error.help("allow more time: PGOPTIONS='-c idle_session_timeout=0'"),
        "40001" => error.help("read from the primary server, or raise `max_standby_streaming_delay`"),
        "42501" => error.help("the role needs SELECT on the columns that are used, and USAGE on their schema"),
        "28P01" | "28000" => error.help(
            "passwords are read from ~/.pgpass, a service file or PGPASSWORD; check the user and the database too",
        ),
        _ => error,
    }
}

/// Returns the error for a table of which the role may see some rows only.
fn hidden_rows(kind: DataErrorKind) -> DataError {
    DataError::new(kind, "row-level security would hide rows of this table from the role")
        .expected("a table that the role sees whole")
        .help("use a role for which the policies do not hold: the owner's, or one with BYPASSRLS")
}
