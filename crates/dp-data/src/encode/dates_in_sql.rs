//! Dates and times of a database as SQL: the part that a column uses, as a number.

use crate::schema::{DateFormat, DatePart, FIRST_DAY, LAST_DAY, date_of_text};
use crate::sql::Dialect;

const A_DAY: f64 = 86_400.0;

/// Returns whether a dialect can read dates of this format: typed ones in all, texts in SQLite, which has no type of dates.
pub(super) fn is_read(format: &DateFormat, dialect: Dialect) -> bool {
    dialect != Dialect::Sqlite || TextFields::of(&format.pattern).is_some()
}

/// Least and greatest day, with the time of day, of the years that are read.
pub(super) const DAYS: (f64, f64) = (FIRST_DAY as f64, (LAST_DAY as f64 + 1.0).next_down());

/// The time in a column, which several columns of the schema may use.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moment {
    /// The column, quoted.
    pub(super) column: String,
    /// The seconds since 1970-01-01, as an expression of the column.
    pub(super) seconds: String,
    /// The name of this expression.
    pub(super) name: String,
}

/// Returns the part of a date that the format uses, as a number; NULL where it cannot be read. Days need not be those of [`DAYS`].
///
/// # Formula
/// With the days `d` since 1970-01-01 in UTC, the civil calendar by Neri and Schneider (2023), counted from 0000-03-01:
/// ```text
/// z = floor(d) + 719468,   c = floor((4 z + 3) / 146097),   r = z - floor(146097 c / 4)
/// y = floor((4 r + 3) / 1461),   t = r - floor(1461 y / 4),   m = floor((5 t + 2) / 153)     month m, 0 for March
/// weekday (floor(d) + 3) mod 7, 0 for Monday
/// ```
pub(super) fn part_in_sql(moment: &Moment, format: &DateFormat, dialect: Dialect) -> String {
    let a_day = dialect.number(A_DAY);
    let (seconds, days) = (&moment.name, format!("({} / {a_day})", moment.name));
    let modulo = |value: &str, divisor: f64| {
        let divisor = dialect.number(divisor);
        format!("({value} - {divisor} * floor({value} / {divisor}))")
    };
    let number = |value: f64| dialect.number(value);
    if format.part == DatePart::Hour {
        // A day without a time has no hour.
        let hour = format!("({seconds} - {a_day} * floor({days})) / {}", number(3600.0));
        return match is_day(&moment.column, dialect) {
            Some(is_day) => format!("CASE WHEN NOT ({is_day}) THEN {hour} END"),
            None => format!("({hour})"),
        };
    }
    let day = format!("floor({days})");
    let value = match format.part {
        // Its parser refuses deep expressions.
        DatePart::Weekday if dialect == Dialect::Sqlite => {
            format!("((strftime('%w', {seconds}, 'unixepoch') + 6) % 7)")
        }
        DatePart::Month if dialect == Dialect::Sqlite => format!("(strftime('%m', {seconds}, 'unixepoch') - 1)"),
        DatePart::Weekday => modulo(&format!("({day} + {})", number(3.0)), 7.0),
        DatePart::Month => {
            let z = format!("({day} + {})", number(719_468.0));
            let of = |a: f64, x: &str, b: f64, c: f64| {
                format!("floor(({} * {x} + {}) / {})", number(a), number(b), number(c))
            };
            let r = format!("({z} - {})", of(146_097.0, &of(4.0, &z, 3.0, 146_097.0), 0.0, 4.0));
            let t = format!("({r} - {})", of(1461.0, &of(4.0, &r, 3.0, 1461.0), 0.0, 4.0));
            // Two more, as the year begins in January.
            let month = format!("({} + {})", of(5.0, &t, 2.0, 153.0), number(2.0));
            modulo(&month, 12.0)
        }
        DatePart::Days | DatePart::Hour => days.to_owned(),
    };
    let whole = if format.has_time() { String::new() } else { format!("{days} = {day}") };
    match format.part {
        DatePart::Days if whole.is_empty() => value,
        DatePart::Days => format!("CASE WHEN {whole} THEN {value} END"),
        _ => {
            let whole = if whole.is_empty() { whole } else { format!(" AND {whole}") };
            format!("CASE WHEN {days} BETWEEN {} AND {}{whole} THEN {value} END", number(DAYS.0), number(DAYS.1))
        }
    }
}

/// Returns the condition that a column holds this marker of missing values; `None` if no date can be the marker. The texts of days and
/// of times differ, as those of [`Cell`](super::Cell): `2024-07-04` is the text of no time.
pub(super) fn is_marker(moment: &Moment, marker: &str, dialect: Dialect) -> Option<String> {
    let Some(is_day) = is_day(&moment.column, dialect) else {
        return Some(format!("{} = {}", dialect.trimmed(&dialect.as_text(&moment.column)), dialect.text(marker)));
    };
    let not = if marker.contains('T') { "NOT " } else { "" };
    Some(format!("({not}({is_day}) AND {} = {})", moment.name, dialect.number(A_DAY * date_of_text(marker)?)))
}

/// Returns the seconds since 1970-01-01. For a column of another type the statement is an error; SQLite gives NULL, as does DuckDB
/// for times of day and intervals.
pub(super) fn seconds_in_sql(column: &str, format: &DateFormat, dialect: Dialect) -> String {
    let a_day = dialect.number(A_DAY);
    match dialect {
        Dialect::Postgres => format!("CAST(extract(epoch FROM {column}) AS double precision)"),
        Dialect::Sqlite => TextFields::of(&format.pattern).map_or("NULL".to_owned(), |fields| fields.seconds(column)),
        // Times and intervals have an epoch, too.
        Dialect::DuckDb => format!(
            "CASE WHEN typeof({column}) LIKE 'DATE%' OR typeof({column}) LIKE 'TIMESTAMP%' THEN CAST(epoch({column}) AS DOUBLE) END"
        ),
        // A cast between types with and without a time zone depends on the session's.
        Dialect::Spark => format!(
            "CASE typeof({column}) WHEN 'timestamp' THEN unix_micros(CAST({column} AS TIMESTAMP)) / 1e6D \
             WHEN 'date' THEN unix_date(CAST({column} AS DATE)) * {a_day} \
             WHEN 'timestamp_ntz' THEN unix_date(CAST({column} AS DATE)) * {a_day} + hour({column}) * 3.6e3D \
             + minute({column}) * 6e1D + CAST(extract(SECOND FROM {column}) AS DOUBLE) \
             ELSE CAST(raise_error('a column of dates has no date type') AS DOUBLE) END"
        ),
        Dialect::ClickHouse => format!(
            "CASE WHEN throwIf(toTypeName({column}) NOT LIKE '%Date%', 'a column of dates has no date type') = 0 \
             THEN toUnixTimestamp64Micro(accurateCastOrNull({column}, 'DateTime64(6, \\'UTC\\')')) / 1e6 END"
        ),
    }
}

/// Returns the condition that a column has a type of days without times; `None` where its texts say so.
fn is_day(column: &str, dialect: Dialect) -> Option<String> {
    Some(match dialect {
        Dialect::Postgres => format!("pg_typeof({column}) = 'date'::regtype"),
        Dialect::Sqlite => return None,
        Dialect::DuckDb => format!("typeof({column}) = 'DATE'"),
        Dialect::Spark => format!("typeof({column}) = 'date'"),
        Dialect::ClickHouse => format!("toTypeName({column}) NOT LIKE '%DateTime%'"),
    })
}

/// The number of digits of year, month, day, hour, minute and second.
const DIGITS: [usize; 6] = [4, 2, 2, 2, 2, 2];

/// A part of a pattern.
#[derive(PartialEq)]
enum Token {
    Letter(char),
    /// A number, by its position among [`DIGITS`].
    Field(usize),
}

/// The texts of a pattern's dates, for each choice of the numbers that have one digit.
struct TextFields(Vec<Shape>);

/// Where the numbers of a date stand in its text.
struct Shape {
    /// The shape of such a text, for `GLOB`.
    glob: String,
    /// The position, from 1, and the length of each number.
    places: [Option<(usize, usize)>; 6],
}

impl TextFields {
    /// Returns the texts of a pattern of numbers; `None` for other patterns. Months, days and hours between other characters than
    /// digits may have one digit.
    fn of(pattern: &str) -> Option<Self> {
        let pattern = pattern.replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S").replace("%R", "%H:%M");
        let (mut tokens, mut letters) = (Vec::new(), pattern.chars());
        while let Some(letter) = letters.next() {
            match letter {
                '%' => {
                    let field = Token::Field("YmdHMS".find(letters.next()?)?);
                    if tokens.contains(&field) {
                        return None;
                    }
                    tokens.push(field);
                }
                '*' | '?' | '[' | '\'' => return None,
                _ => tokens.push(Token::Letter(letter)),
            }
        }
        let ends = |token: Option<&Token>| match token {
            None => true,
            Some(Token::Letter(letter)) => !letter.is_ascii_digit(),
            Some(Token::Field(_)) => false,
        };
        let may_be_short = |i: usize| {
            matches!(tokens[i], Token::Field(1..=3))
                && ends(i.checked_sub(1).map(|i| &tokens[i]))
                && ends(tokens.get(i + 1))
        };
        let short: Vec<usize> = (0..tokens.len()).filter(|&i| may_be_short(i)).collect();
        let shapes = (0..1usize << short.len())
            .map(|choice| {
                let is_short = |i| short.iter().position(|&other| other == i).is_some_and(|at| choice >> at & 1 == 1);
                Shape::of(&tokens, is_short)
            })
            .collect();
        Some(Self(shapes))
    }

    /// Returns the seconds since 1970-01-01 of a text; NULL for one of another shape, and for a day or a time that does not exist.
    fn seconds(&self, column: &str) -> String {
        let text = Dialect::Sqlite.trimmed(column);
        let cases = self.0.iter().map(|shape| {
            let when = shape.when(&text);
            // A day that does not exist is another one, whose text differs; some versions of SQLite move it only if they add days.
            format!(
                "WHEN {text} GLOB '{}' AND datetime({when}, '+0 days') = {when} THEN CAST(strftime('%s', {when}) AS REAL)",
                shape.glob
            )
        });
        format!("CASE WHEN typeof({column}) <> 'text' THEN NULL {} END", cases.collect::<Vec<_>>().join(" "))
    }
}

impl Shape {
    /// Returns the shape of a pattern, in which each number stands once.
    fn of(tokens: &[Token], is_short: impl Fn(usize) -> bool) -> Self {
        let mut shape = Self { glob: String::new(), places: [None; 6] };
        let mut next = 1;
        for (i, token) in tokens.iter().enumerate() {
            match *token {
                Token::Letter(letter) => {
                    shape.glob.push(letter);
                    next += 1;
                }
                Token::Field(field) => {
                    let length = if is_short(i) { 1 } else { DIGITS[field] };
                    shape.places[field] = Some((next, length));
                    shape.glob += &"[0-9]".repeat(length);
                    next += length;
                }
            }
        }
        shape
    }

    /// Returns day and time as `1970-01-01 00:00:00`, as an expression of the text.
    fn when(&self, text: &str) -> String {
        let field = |field: usize, absent: &str| match self.places[field] {
            Some((position, 1)) => format!("'0' || substr({text}, {position}, 1)"),
            Some((position, length)) => format!("substr({text}, {position}, {length})"),
            None => format!("'{absent}'"),
        };
        // A time of no day is one of 1970-01-01.
        let [year, month, day] = [field(0, "1970"), field(1, "01"), field(2, "01")];
        let [hour, minute, second] = [field(3, "00"), field(4, "00"), field(5, "00")];
        format!("({year} || '-' || {month} || '-' || {day} || ' ' || {hour} || ':' || {minute} || ':' || {second})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Encoder, Encoding};
    use crate::schema::Schema;

    fn encoder(column: &str) -> Encoder {
        let schema =
            format!("label = {{ column = 'y', positive = '1', negative = '0' }}\ncolumns.when = {{ {column} }}");
        Encoder::new(&Schema::parse("s.toml", &schema).unwrap(), Encoding::UNIT_ROWS).unwrap()
    }

    #[test]
    fn texts_of_dates_are_numbers_at_known_places() {
        for (pattern, positions) in [
            ("%Y-%m-%d", Some((4, [Some(1), Some(6), Some(9), None, None, None]))),
            ("%d.%m.%Y %R", Some((8, [Some(7), Some(4), Some(1), Some(12), Some(15), None]))),
            ("%FT%TZ", Some((8, [Some(1), Some(6), Some(9), Some(12), Some(15), Some(18)]))),
            ("ü%H%M", Some((1, [None, None, None, Some(2), Some(4), None]))),
            ("%d %B %Y", None),
            ("%m/%d/%Y %I:%M %p", None),
            ("%Y-%m-%d %z", None),
            ("%Y-%m-%d?", None),
            ("%Y %Y", None),
            ("%", None),
        ] {
            let found = TextFields::of(pattern).map(|TextFields(shapes)| {
                (shapes.len(), shapes[0].places.map(|place| place.map(|(position, _)| position)))
            });
            assert_eq!(found, positions, "{pattern}");
        }
    }

    /// SQLite reads the texts that a schema reads, but for minutes and seconds of one digit and leap seconds.
    #[cfg(feature = "sqlite")]
    #[test]
    fn sqlite_reads_a_text_as_the_schema_does() {
        let database = rusqlite::Connection::open_in_memory().unwrap();
        let texts = [
            "2024-02-29",
            "2024-02-30",
            "2023-02-29",
            " 2024-12-31 ",
            "2024-13-01",
            "2024-00-10",
            "2024-01-00",
            "0999-01-01",
            "9999-12-31",
            "1969-12-31",
            "2024-02-29 10:00",
            "29.02.2024 23:59",
            "31.04.2024 00:00",
            "29.02.2024 24:00",
            "29.02.2024 10:60",
            "2024-02-29T10:00:59Z",
            "2024-02-29T10:00:59",
            "",
            "now",
            "2460000.5",
            "10:30:00",
            "24:00:00",
            "1000-01-01",
            "20240229",
            "2024-02-29x",
            "2024-2-29",
            "2024-2-9",
            "2024-12-1",
            "2023-2-29",
            "1900-02-29",
            "1.2.2024 7:05",
            "1.12.2024 17:05",
            "2024-01-01T24:00:00Z",
            "2024-01-01T4:00:00Z",
            "7:00:00",
            "2024/02/29",
            "7/21/2012",
            "07/4/2012",
            "2/30/2012",
        ];
        for (pattern, part, unit) in [
            ("%Y-%m-%d", DatePart::Days, A_DAY),
            ("%d.%m.%Y %R", DatePart::Days, A_DAY),
            ("%Y-%m-%dT%H:%M:%SZ", DatePart::Days, A_DAY),
            ("%Y%m%d", DatePart::Days, A_DAY),
            ("%T", DatePart::Hour, 3600.0),
            ("%m/%d/%Y", DatePart::Days, A_DAY),
        ] {
            let format = DateFormat { pattern: pattern.into(), part };
            let query = format!("SELECT {} FROM (SELECT ?1 AS x)", seconds_in_sql("x", &format, Dialect::Sqlite));
            let mut query = database.prepare(&query).unwrap();
            let mut read = |text: &dyn rusqlite::ToSql| {
                query.query_row([text], |row| row.get::<_, Option<f64>>(0)).unwrap().map(|seconds| seconds / unit)
            };
            let mut count = 0;
            for text in texts {
                let found = read(&text).filter(|value| (DAYS.0..=DAYS.1).contains(value));
                let expected = format.read(text, (0.0, 1e5));
                count += usize::from(expected.is_some());
                let is_near = found.zip(expected).is_some_and(|(one, other)| (one - other).abs() < 1e-9);
                assert!(is_near || (found, expected) == (None, None), "{pattern} {text:?}: {found:?} {expected:?}");
            }
            assert!(count > 0, "{pattern}");
            // Numbers are no dates, although SQLite has Julian days.
            assert_eq!((read(&2_460_000.5), read(&20_240_229), read(&rusqlite::types::Null)), (None, None, None));
        }
    }

    #[test]
    fn what_a_dialect_cannot_read_is_refused() {
        let refused =
            |column: &str, dialect| encoder(column).in_sql(dialect).is_err_and(|error| error.code() == "encoding.sql");
        let day = "type = 'date', format = '%d %B %Y', min = 2000-01-01, max = 2030-01-01";
        assert!(refused(day, Dialect::Sqlite) && !refused(day, Dialect::Postgres));
        let number = "type = 'numeric', decimal = ',', min = 0, max = 1";
        assert!(Dialect::ALL.into_iter().all(|dialect| refused(number, dialect)));
    }
}
