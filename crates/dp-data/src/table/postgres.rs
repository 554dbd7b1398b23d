//! Tables, views and queries of PostgreSQL databases.

mod binary;

use tokio_postgres::types::{Kind, Type};

use self::binary::{Meaning, Tuples};
use super::{Relation, Table, TableColumn, Unreadable};
use crate::error::{DataError, DataErrorKind};
use crate::postgres::{SCHEMES, Server};
use crate::sql::Dialect;

/// Opens a table, a view or a query of a server: `postgres://[USER@][HOST[:PORT]][/DATABASE][?SETTING=VALUE&…]`.
///
/// All rows are read by one `COPY (SELECT …) TO STDOUT (FORMAT binary)` in one REPEATABLE READ READ ONLY transaction, so that
/// they are one snapshot, whatever others write; the role needs only SELECT on the columns that are used. The order is
/// unspecified. `row_security` is off: a table of which the role may see only some rows is an error, not a shorter table.
///
/// Settings that the address omits come from a service file, the environment and the password file, by libpq's rules and in its
/// order (`PGSERVICE`, `PGHOST`, …, `~/.pgpass`, `~/.postgresql/root.crt`). `sslmode` is `prefer` unless set; only
/// `verify-full` proves whose server it is. A password in the address is refused, as other users see the arguments of a
/// program.
///
/// NULL is a missing cell; `boolean` a Boolean; integers up to 2^53, `real` and `double precision` a number; other integers,
/// `numeric` (as its digits), text types and enumerations text. Columns of other types cannot be read.
///
/// # Errors
/// `table.open`: an address that is wrong, a server that cannot be reached or refuses the role, no such table, a query that is wrong.
///
/// # Examples
/// ```
/// use dp_data::table::{Relation, postgres};
/// let error = postgres::open("postgres://me:secret@db.example/people", &Relation::Only).unwrap_err();
/// assert_eq!(error.code(), "table.open");
/// ```
pub fn open(address: &str, relation: &Relation) -> Result<Table, DataError> {
    let refuse = |error: DataError| error.in_file(shown(address));
    let server = Server::connect(address).map_err(refuse)?;
    let cancel = server.cancel();
    let opened = prepare(&server, relation).map_err(refuse)?;
    let described = described(&opened);
    let Opened { from, columns, .. } = opened;
    let table = Table::new(shown(address), described, move |used, batches| {
        let (mut selected, mut meanings) = (Vec::new(), Vec::new());
        for (name, kind) in used.iter().filter_map(|&column| columns.get(column)) {
            let Some(meaning) = Meaning::of(kind) else { continue };
            selected.push(meaning.selected(&Dialect::Postgres.name(name)));
            meanings.push(meaning);
        }
        let names: Vec<&str> = used.iter().filter_map(|&column| columns.get(column)).map(|(name, _)| &**name).collect();
        let mut tuples = Tuples::new(&meanings, &names, batches);
        let copy = format!("COPY (SELECT {} FROM {from}) TO STDOUT (FORMAT binary)", selected.join(", "));
        server.copy_out(&copy, |piece| tuples.take(piece))?;
        tuples.end()?;
        server.close();
        Ok(())
    });
    Ok(table.with_cancel(move || cancel.cancel()))
}

/// Returns whether a text is the address of a server: it begins with `postgres://` or `postgresql://`.
pub fn is_address(text: &str) -> bool {
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

/// Returns what is shown of an address: nothing if it may hold a password.
pub(crate) fn shown(address: &str) -> &str {
    let authority = address.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
    let is_secret = authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
        || address.to_ascii_lowercase().contains("password");
    if is_secret { "the address" } else { address }
}

/// A search path without functions and operators of other users.
const OWN_FUNCTIONS: &str = "SET LOCAL search_path = pg_catalog";

/// Returns the columns of what was opened.
pub(crate) fn described(Opened { columns, denied, .. }: &Opened) -> Vec<TableColumn> {
    let described = columns.iter().map(|(name, kind)| TableColumn {
        name: name.clone(),
        unreadable: match Meaning::of(kind) {
            _ if denied.contains(name) => Some(Unreadable::Denied),
            None => Some(Unreadable::Type(kind.name().to_owned())),
            Some(Meaning::Date | Meaning::Moment) => Some(Unreadable::Date(kind.name().to_owned())),
            Some(_) => None,
        },
    });
    described.collect()
}

/// The part to read.
pub(crate) struct Opened {
    /// The table or query after FROM.
    pub(crate) from: String,
    /// The statement that sets the search path to PostgreSQL's own schema; empty for a query.
    pub(crate) search_path: &'static str,
    columns: Vec<(String, Type)>,
    /// The names of columns that the role may not read.
    denied: Vec<String>,
}

impl Opened {
    /// Returns whether a column has a text type, so that its cells need not be numbers.
    pub(crate) fn is_text(&self, column: &str) -> bool {
        self.meaning(column).is_some_and(|meaning| matches!(meaning, Meaning::Text))
    }

    /// Returns whether a column has a type of dates.
    pub(crate) fn is_date(&self, column: &str) -> bool {
        self.meaning(column).is_some_and(|meaning| matches!(meaning, Meaning::Date | Meaning::Moment))
    }

    fn meaning(&self, column: &str) -> Option<Meaning> {
        let kind = self.columns.iter().find(|(name, _)| name == column).map(|(_, kind)| kind);
        kind.and_then(Meaning::of)
    }
}

/// Starts the transaction, and looks up what to read.
pub(crate) fn prepare(server: &Server, relation: &Relation) -> Result<Opened, DataError> {
    server.execute(&server.begin())?;
    let (from, denied) = match relation {
        Relation::Table(name) => table(server, &named_table(server, name)?)?,
        Relation::Query(_) => (relation.subquery().unwrap_or_default() + " AS t", Vec::new()),
        Relation::Only => table(server, &only_table(server)?)?,
    };
    let search_path = if matches!(relation, Relation::Query(_)) { "" } else { OWN_FUNCTIONS };
    server.execute(search_path)?;
    let columns = server.columns(&format!("SELECT * FROM {from}"))?;
    Ok(Opened { from, search_path, columns, denied })
}

/// Returns a table's quoted name, and the columns that the role may not read.
fn table(server: &Server, [schema, name]: &[String; 2]) -> Result<(String, Vec<String>), DataError> {
    let from = format!("{}.{}", Dialect::Postgres.name(schema), Dialect::Postgres.name(name));
    let denied = server.look_up(
        "SELECT a.attname::text FROM pg_catalog.pg_attribute a WHERE a.attrelid = $1::text::pg_catalog.regclass \
         AND a.attnum > 0 AND NOT a.attisdropped \
         AND NOT pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT')",
        &[&from],
    )?;
    Ok((from, denied.iter().map(|row| row.get(0)).collect()))
}

/// Returns the schema and the name of a table: the name is taken as it is, else as SQL takes it (`schema.table`, quotes, capitals).
fn named_table(server: &Server, name: &str) -> Result<[String; 2], DataError> {
    const FOUND: &str = "SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p')";
    let exactly =
        format!("{FOUND} AND c.relname = $1::text::pg_catalog.name AND pg_catalog.pg_table_is_visible(c.oid)");
    let as_sql = format!("{FOUND} AND c.oid = pg_catalog.to_regclass($1)");
    let mut rows = server.look_up(&exactly, &[&name])?;
    if rows.is_empty() {
        // If SQL does not accept the name, PostgreSQL's message says why.
        rows = server.look_up(&as_sql, &[&name])?;
    }
    let row = rows.first().ok_or_else(|| {
        DataError::new(DataErrorKind::TableOpen, format!("there is no table or view `{name}` that this role can see"))
            .expected("a table or a view of the search path, or SCHEMA.TABLE")
    })?;
    Ok([row.get(0), row.get(1)])
}

/// Returns the schema and the name of the only table or view that the role may read.
fn only_table(server: &Server) -> Result<[String; 2], DataError> {
    let rows = server.look_up(
        "SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND NOT c.relispartition \
         AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' \
         AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') \
         AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT') ORDER BY 1, 2",
        &[],
    )?;
    match &rows[..] {
        [row] => Ok([row.get(0), row.get(1)]),
        rows => {
            let names = rows.iter().map(|row| format!("{}.{}", row.get::<_, &str>(0), row.get::<_, &str>(1)));
            Err(Relation::not_named("database", "table", &names.collect::<Vec<_>>()))
        }
    }
}

impl Meaning {
    /// Returns how cells of a type are read; `None` if they cannot be.
    fn of(kind: &Type) -> Option<Self> {
        Some(match *kind {
            Type::BOOL => Self::Boolean,
            Type::INT2 | Type::INT4 | Type::INT8 => Self::Whole,
            Type::FLOAT4 | Type::FLOAT8 => Self::Real,
            Type::TEXT | Type::VARCHAR | Type::NAME => Self::Text,
            Type::NUMERIC => Self::Decimal,
            Type::BPCHAR => Self::AsText,
            Type::DATE => Self::Date,
            Type::TIMESTAMP | Type::TIMESTAMPTZ => Self::Moment,
            // The type comes with an extension, under a number that each database chooses.
            ref other if other.name() == "citext" => Self::Text,
            ref other if matches!(other.kind(), Kind::Enum(_)) => Self::Text,
            _ => return None,
        })
    }

    /// Returns the expression that selects a column.
    fn selected(self, column: &str) -> String {
        match self {
            // Zeros at the end of a fraction follow from the type, as in Parquet.
            Self::Decimal => format!(
                "CASE WHEN {column}::text LIKE '%.%' THEN rtrim(rtrim({column}::text, '0'), '.') ELSE {column}::text END"
            ),
            // Blanks at the end of a `character(n)` mean nothing.
            Self::AsText => format!("{column}::text"),
            _ => column.to_owned(),
        }
    }
}
