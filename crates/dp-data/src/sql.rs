//! The dialects of SQL in which encoders and models can be written.

/// A dialect of SQL.
///
/// # Examples
/// ```
/// use dp_data::sql::Dialect;
/// assert_eq!(Dialect::Postgres.name("a \"b\""), "\"a \"\"b\"\"\"");
/// assert_eq!(Dialect::Sqlite.text("it's"), "'it''s'");
/// assert_eq!(Dialect::DuckDb.number(-0.1), "(-1e-1)");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// PostgreSQL 12 or later.
    Postgres,
    /// SQLite 3.35 or later, built with its mathematical functions.
    Sqlite,
    /// DuckDB.
    DuckDb,
    /// Apache Spark, with its own or with ANSI semantics; tested with 4.3.
    Spark,
    /// ClickHouse; tested with 26.9.
    ClickHouse,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 5] = [Self::Postgres, Self::Sqlite, Self::DuckDb, Self::Spark, Self::ClickHouse];

    /// Returns the name by which it is chosen.
    pub fn id(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
            Self::DuckDb => "duckdb",
            Self::Spark => "spark",
            Self::ClickHouse => "clickhouse",
        }
    }

    /// Returns the dialect that is chosen by a name.
    ///
    /// # Examples
    /// ```
    /// use dp_data::sql::Dialect;
    /// assert_eq!(Dialect::of_id("duckdb"), Some(Dialect::DuckDb));
    /// ```
    pub fn of_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.id() == id)
    }

    /// Returns a quoted identifier.
    pub fn name(self, name: &str) -> String {
        match self {
            // SQLite takes a name in double quotes for a text if there is no such column; one in backquotes never.
            Self::Sqlite | Self::Spark => format!("`{}`", name.replace('`', "``")),
            // A backslash escapes in names too.
            Self::ClickHouse => format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\"\"")),
            Self::Postgres | Self::DuckDb => format!("\"{}\"", name.replace('"', "\"\"")),
        }
    }

    /// Returns a text literal.
    pub fn text(self, text: &str) -> String {
        let quoted = text.replace('\'', "''");
        match self {
            // Whether a backslash escapes depends on a setting, except in this form.
            Self::Postgres if text.contains('\\') => format!("E'{}'", quoted.replace('\\', "\\\\")),
            Self::ClickHouse => format!("'{}'", quoted.replace('\\', "\\\\")),
            // Versions and settings differ in what two quotes and a backslash mean.
            Self::Spark if text.contains(['\'', '\\']) => {
                let digits: String = text.bytes().map(|byte| format!("{byte:02X}")).collect();
                format!("CAST(X'{digits}' AS STRING)")
            }
            _ => format!("'{quoted}'"),
        }
    }

    /// Returns a literal in double precision, of a finite number.
    pub fn number(self, number: f64) -> String {
        let digits = match self {
            // Otherwise it would be a decimal, and so would the result of arithmetic with another.
            Self::Postgres => format!("float8 '{number:e}'"),
            // Without the letter, a setting makes it a decimal.
            Self::Spark => format!("{number:e}D"),
            // An exponent makes it a double.
            Self::Sqlite | Self::DuckDb | Self::ClickHouse => format!("{number:e}"),
        };
        if number < 0.0 { format!("({digits})") } else { digits }
    }

    /// Returns a column's number in double precision: NULL where the dialect can tell that it is none.
    pub(crate) fn as_number(self, column: &str) -> String {
        match self {
            Self::Postgres => format!("CAST({column} AS double precision)"),
            // A cast would make 0 of any text. A text equals a number only if all of it is that number.
            Self::Sqlite => {
                let text = format!("CAST({column} AS TEXT)");
                format!(
                    "CASE WHEN typeof({column}) IN ('integer', 'real') THEN CAST({column} AS REAL) \
                     WHEN {text} = CAST({text} AS NUMERIC) AND abs(CAST({text} AS REAL)) < 9e999 \
                     THEN CAST({text} AS REAL) END"
                )
            }
            Self::DuckDb | Self::Spark => format!("TRY_CAST({column} AS DOUBLE)"),
            Self::ClickHouse => format!("accurateCastOrNull({column}, 'Float64')"),
        }
    }

    /// Returns the number of a column that may hold Booleans.
    pub(crate) fn as_indicator(self, column: &str) -> String {
        match self {
            // A Boolean has no cast to a floating-point number.
            Self::Postgres => {
                let text = format!("CAST({column} AS text)");
                format!(
                    "CAST(CASE {text} WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE {text} END AS double precision)"
                )
            }
            _ => self.as_number(column),
        }
    }

    /// Returns the number that a column holds, whatever its type; NULL if it holds none.
    pub(crate) fn as_any_number(self, column: &str) -> String {
        match self {
            // The cast of another text would be an error.
            Self::Postgres => {
                let text = self.trimmed(&self.as_text(column));
                format!(
                    "CASE WHEN {text} ~ '^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{{1,2}})?$' \
                     THEN CAST({text} AS double precision) END"
                )
            }
            _ => self.as_number(column),
        }
    }

    /// Returns a column's text.
    pub(crate) fn as_text(self, column: &str) -> String {
        match self {
            // Zeros at the end of a decimal's fraction follow from its type, which with a NULL beside it is no domain.
            Self::Postgres => format!(
                "CASE WHEN pg_typeof(coalesce({column}, NULL)) = 'numeric'::regtype AND CAST({column} AS text) LIKE '%.%' \
                 THEN rtrim(rtrim(CAST({column} AS text), '0'), '.') ELSE CAST({column} AS text) END"
            ),
            // A whole number has no fraction in its text, whatever its type.
            Self::Sqlite => format!(
                "CASE WHEN typeof({column}) = 'real' AND {column} = CAST({column} AS INTEGER) \
                 THEN CAST(CAST({column} AS INTEGER) AS TEXT) ELSE CAST({column} AS TEXT) END"
            ),
            Self::DuckDb => format!(
                "CASE WHEN typeof({column}) IN ('DOUBLE', 'FLOAT') THEN regexp_replace(CAST({column} AS VARCHAR), \
                 '[.]0$', '') ELSE CAST({column} AS VARCHAR) END"
            ),
            Self::Spark => format!(
                "CASE WHEN typeof({column}) IN ('double', 'float') THEN regexp_replace(CAST({column} AS STRING), \
                 '[.]0$', '') ELSE CAST({column} AS STRING) END"
            ),
            Self::ClickHouse => format!("toString({column})"),
        }
    }

    /// Returns whether a column of numbers may hold texts.
    pub(crate) fn has_texts_among_numbers(self) -> bool {
        self != Self::Postgres
    }

    /// Returns pairs of a Boolean's text in a schema and its text in this dialect.
    pub(crate) fn texts_of_booleans(self) -> [(&'static str, &'static str); 2] {
        match self {
            Self::Sqlite => [("true", "1"), ("false", "0")],
            _ => [("1", "true"), ("0", "false")],
        }
    }

    /// Returns a text without blanks, tabs and line ends around it.
    pub(crate) fn trimmed(self, text: &str) -> String {
        match self {
            Self::Postgres => format!("btrim({text}, E' \\t\\n\\f\\r')"),
            Self::Sqlite => format!("trim({text}, ' ' || char(9, 10, 12, 13))"),
            Self::DuckDb => format!("trim({text}, ' ' || chr(9) || chr(10) || chr(12) || chr(13))"),
            Self::Spark => format!("btrim({text}, ' ' || char(9) || char(10) || char(12) || char(13))"),
            Self::ClickHouse => format!("trim(BOTH ' \\t\\n\\f\\r' FROM {text})"),
        }
    }

    /// Returns a number of double precision, cut to a whole one, as an integer of 64 bits.
    pub(crate) fn whole(self, number: &str) -> String {
        match self {
            Self::Postgres | Self::DuckDb => format!("CAST(trunc({number}) AS bigint)"),
            // A cast cuts.
            Self::Sqlite => format!("CAST({number} AS INTEGER)"),
            Self::Spark => format!("CAST({number} AS BIGINT)"),
            // Behind a NULL there can be NaN, at which other casts raise an error.
            Self::ClickHouse => format!("accurateCastOrNull(trunc({number}), 'Int64')"),
        }
    }

    /// Returns the largest of some numbers, none of which is NULL unless all are.
    pub fn largest(self, numbers: &[String]) -> String {
        match (self, numbers) {
            // Of one number SQLite's function would be an aggregate.
            (_, [one]) => one.clone(),
            (Self::Sqlite, _) => format!("max({})", numbers.join(", ")),
            _ => format!("greatest({})", numbers.join(", ")),
        }
    }

    /// Returns the end of a query that makes the planner compute each of its columns once; `None` if it does so by itself.
    pub fn fence(self) -> Option<&'static str> {
        match self {
            Self::Postgres => Some(" OFFSET 0"),
            // Without the offset it takes a query without conditions for the same as the one around it.
            Self::Sqlite => Some(" LIMIT -1 OFFSET 0"),
            Self::DuckDb | Self::Spark | Self::ClickHouse => None,
        }
    }
}

/// Numbers beyond this size count as infinite, as literals need not hold the largest one.
pub(crate) const LARGEST: f64 = 1.797e308;

/// Returns the sum of some terms, in parentheses that keep it shallow; 0 for none.
pub fn sum(mut terms: Vec<String>) -> String {
    while terms.len() > 1 {
        let pair = |pair: &[String]| match pair {
            [one, other] => format!("({one} + {other})"),
            rest => rest.concat(),
        };
        terms = terms.chunks(2).map(pair).collect();
    }
    terms.pop().unwrap_or_else(|| "0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_texts_and_numbers_cannot_end_their_quotes() {
        for dialect in Dialect::ALL {
            for hostile in ["a", "\"; DROP TABLE t; --", "`; DROP TABLE t; --", "'; DROP TABLE t; --", "\\'; --", "ü\n"]
            {
                let (name, text) = (dialect.name(hostile), dialect.text(hostile));
                let mark = name.chars().next().unwrap();
                let inner = name[1..name.len() - 1].replace([mark; 2].iter().collect::<String>().as_str(), "");
                let inner = if dialect == Dialect::ClickHouse { inner.replace("\\\\", "\\") } else { inner };
                assert_eq!(inner, hostile.replace(mark, ""));
                assert_eq!(text.trim_start_matches('E').matches('\'').count() % 2, 0, "{text}");
            }
            for number in [0.0, 1.0, 0.1, -1.5e-300, f64::MAX, f64::MIN_POSITIVE] {
                let text = dialect.number(number);
                let digits =
                    text.trim_matches(|c: char| !(c.is_ascii_digit() || c == '-')).trim_start_matches("float8 '");
                let digits = digits.trim_start_matches("8 '");
                assert_eq!(digits.parse::<f64>().unwrap(), number, "{text}");
                assert!(text.contains('e'));
            }
        }
    }

    #[test]
    fn sums_are_shallow() {
        let terms = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
        assert_eq!((sum(terms(0)), sum(terms(1)), sum(terms(3))), ("0".into(), "0".into(), "((0 + 1) + 2)".into()));
        let text = sum(terms(5000));
        let mut depth = 0;
        let depths = text.chars().map(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth
        });
        assert_eq!(depths.max(), Some(13));
    }
}
