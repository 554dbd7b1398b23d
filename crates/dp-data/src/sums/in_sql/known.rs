//! The expected answers of an engine over known rows.

use super::SumSql;
use crate::encode::{Cell, RowBuffer};
use crate::error::{DataError, DataErrorKind};
use crate::schema::{CellFormat, Column, ColumnKind, DateFormat, DatePart, LabelKind, Schema, date_text};
use crate::sql::Dialect;
use crate::sums::{IntegerSums, SumKind, SumRequest};

/// A statement over public rows and what it gives.
///
/// Among the rows are missing, unknown and infinite values and those at the ends of ranges; predictions are small and very large.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    kind: SumKind,
    bits: u32,
    /// The statement.
    pub statement: String,
    /// The sums, up to rounding.
    pub sums: IntegerSums,
}

impl Known {
    /// Checks the answer to the statement.
    ///
    /// # Errors
    /// An answer that is farther off than rounding allows.
    pub fn check(&self, found: &IntegerSums) -> Result<(), DataError> {
        let records = self.sums.records;
        let tolerance = |i: usize| match self.kind {
            // A prediction of a million has an error of 2^-33, which moves a slope by as much.
            SumKind::Gradients(_) => 2 * records + ((records << self.bits) >> 28),
            // Each factor may be cut one step lower.
            SumKind::Moments { .. } => records * ((2 << self.bits) + 1),
            // The number of records is exact.
            SumKind::Targets => {
                if i == 0 {
                    2 * records
                } else {
                    0
                }
            }
        };
        let is_near = |(i, (one, other)): (usize, (&i64, &i64))| one.abs_diff(*other) <= tolerance(i);
        let same_size = records == found.records && self.sums.steps.len() == found.steps.len();
        if same_size && self.sums.steps.iter().zip(&found.steps).enumerate().all(is_near) {
            return Ok(());
        }
        Err(DataError::new(
            DataErrorKind::TableRead,
            "it computes other sums than expected of 64 rows that are known: its arithmetic, its casts or its treatment of NULL \
             differ",
        ))
    }
}

impl SumSql {
    /// Returns a statement over known rows with its expected answer.
    ///
    /// # Errors
    /// As [`statement`](Self::statement).
    pub fn known(&self, kind: SumKind, bits: u32) -> Result<Known, DataError> {
        let no_table = || DataError::new(DataErrorKind::EncodingSql, "there is no table");
        let schema = self.encoder.schema().ok_or_else(no_table)?;
        let dim = self.encoder.dim();
        let mut dice = Dice(1);
        // Some weights are large, so that some predictions are.
        let weight = |j: usize| (dice.unit() - 0.5) * if j.is_multiple_of(7) { 1e6 } else { 2.0 };
        let weights: Vec<f64> = match kind {
            SumKind::Gradients(slope) => (0..slope.outputs() * dim).map(weight).collect(),
            _ => Vec::new(),
        };
        let request = SumRequest { kind, weights: &weights, bits };
        let rows = rows(schema, self.dialect, &mut dice);
        let (mut steps, mut buffer) = (vec![0i64; kind.numbers(dim)], RowBuffer::new(&self.encoder));
        let mut dense = vec![0.0; dim];
        for row in &rows {
            let last = row.last().map(Value::cell);
            self.encoder.encode_row(|column| row.get(column).map_or(Cell::Missing, Value::cell), last, &mut buffer)?;
            let Some(y) = buffer.target().filter(|_| !buffer.is_null()) else { continue };
            buffer.write_dense(&mut dense);
            request.add(&dense, y, &mut steps);
        }
        let statement = self.statement(&request, &query(schema, &rows, self.dialect), None)?;
        Ok(Known { kind, bits, statement, sums: IntegerSums { records: rows.len() as u64, steps } })
    }
}

/// A generator of public numbers: splitmix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Number of rows.
const ROWS: usize = 64;

#[derive(Debug, Clone)]
enum Value {
    Missing,
    Number(f64),
    Text(String),
    /// Days since 1970-01-01, and seconds since midnight.
    Moment(i32, u32),
}

impl Value {
    fn cell(&self) -> Cell<'_> {
        match self {
            Self::Missing => Cell::Missing,
            Self::Number(number) => Cell::Number(*number),
            Self::Text(text) => Cell::Text(text.as_bytes()),
            Self::Moment(day, seconds) => {
                Cell::DateTime { day: *day, nanoseconds: i64::from(*seconds) * 1_000_000_000 }
            }
        }
    }
}

/// Returns rows with a value for each column of the schema, and the label's.
fn rows(schema: &Schema, dialect: Dialect, dice: &mut Dice) -> Vec<Vec<Value>> {
    let number = |min: f64, max: f64, dice: &mut Dice| match dice.below(40) {
        0 => Value::Missing,
        // To SQLite it is NULL.
        1 if dialect != Dialect::Sqlite => Value::Number(f64::NAN),
        2 => Value::Number(f64::INFINITY),
        3 => Value::Number(min),
        4 => Value::Number(max),
        5 => Value::Number(0.5 * min - 1.0),
        6 => Value::Number(2.0 * max + 1.0),
        _ => {
            let share = dice.unit();
            Value::Number((1.0 - share) * min + share * max)
        }
    };
    let one_of = |values: &[&String], dice: &mut Dice| match dice.below(20) {
        0 => Value::Missing,
        1 => Value::Text("dp: not declared".to_owned()),
        _ => values.get(dice.below(values.len())).map_or(Value::Missing, |value| Value::Text((*value).clone())),
    };
    let moment = |format: &DateFormat, (min, max): (f64, f64), dice: &mut Dice| {
        // Days that every engine has.
        let [first, last] = [min, max].map(|day| day.clamp(-20_000.0, 100_000.0) as i32);
        let day = first - 1 + dice.below((last - first) as usize + 3) as i32;
        let seconds = if format.has_time() || dice.below(20) == 0 { dice.below(86_400) as u32 } else { 0 };
        match dice.below(20) {
            0 => Value::Missing,
            // Its dates are texts.
            _ if dialect == Dialect::Sqlite => format.write(day, seconds).map_or(Value::Missing, Value::Text),
            _ => Value::Moment(day, seconds),
        }
    };
    let row = |dice: &mut Dice| {
        let cell = |column: &Column| match (&column.kind, &column.format) {
            (ColumnKind::Drop, _) => Value::Missing,
            (ColumnKind::Numeric { min, max, .. }, Some(CellFormat::Date(format))) if format.part == DatePart::Days => {
                moment(format, (*min, *max), dice)
            }
            (_, Some(CellFormat::Date(format))) => moment(format, (0.0, 50_000.0), dice),
            (ColumnKind::Indicator { .. }, Some(CellFormat::Flag { one, zero })) => {
                one_of(&one.iter().chain(zero).collect::<Vec<_>>(), dice)
            }
            (ColumnKind::Numeric { min, max, .. }, _) => number(*min, *max, dice),
            (ColumnKind::Indicator { .. }, _) => number(0.0, 1.0, dice),
            (ColumnKind::Categorical { categories, .. }, _) => one_of(&categories.iter().collect::<Vec<_>>(), dice),
        };
        let mut cells: Vec<Value> = schema.columns().iter().map(cell).collect();
        // Columns of the same cells.
        for (i, column) in schema.columns().iter().enumerate() {
            let is_first = |other: &&Column| other.kind != ColumnKind::Drop && other.source() == column.source();
            if let Some(first) = schema.columns().iter().position(|other| is_first(&other)).filter(|&first| first < i) {
                cells[i] = cells[first].clone();
            }
        }
        cells.push(match &schema.label().kind {
            LabelKind::TwoClasses { positive, negative, .. } => {
                one_of(&positive.iter().chain(negative).collect::<Vec<_>>(), dice)
            }
            LabelKind::Classes { classes, .. } => one_of(&classes.iter().collect::<Vec<_>>(), dice),
            LabelKind::Number(range) => number(range.min, range.max, dice),
        });
        cells
    };
    (0..ROWS).map(|_| row(dice)).collect()
}

/// Returns the rows as a query in parentheses.
fn query(schema: &Schema, rows: &[Vec<Value>], dialect: Dialect) -> String {
    let (float, text, time) = match dialect {
        Dialect::Postgres => ("double precision", "text", "timestamp"),
        Dialect::Sqlite => ("REAL", "TEXT", "TEXT"),
        Dialect::DuckDb => ("DOUBLE", "VARCHAR", "TIMESTAMP"),
        Dialect::Spark => ("DOUBLE", "STRING", "TIMESTAMP_NTZ"),
        Dialect::ClickHouse => ("Nullable(Float64)", "Nullable(String)", "Nullable(DateTime64(6, 'UTC'))"),
    };
    let kinds = schema.columns().iter().map(|column| match &column.kind {
        ColumnKind::Drop => None,
        _ if matches!(column.format, Some(CellFormat::Date(_))) => Some(time),
        ColumnKind::Indicator { .. } if column.format.is_some() => Some(text),
        ColumnKind::Numeric { .. } | ColumnKind::Indicator { .. } => Some(float),
        ColumnKind::Categorical { .. } => Some(text),
    });
    let of_label = if matches!(schema.label().kind, LabelKind::Number(_)) { float } else { text };
    let kinds: Vec<Option<&str>> = kinds.chain([Some(of_label)]).collect();
    let names = schema.columns().iter().map(Column::source).chain([schema.label().column.as_str()]);
    let mut used: Vec<(usize, String)> = Vec::new();
    for (i, name) in names.enumerate().filter(|(i, _)| kinds[*i].is_some()) {
        let name = dialect.name(name);
        if used.iter().all(|(_, other)| *other != name) {
            used.push((i, name));
        }
    }
    let literal = |value: &Value, kind: &str| match value {
        Value::Missing => format!("CAST(NULL AS {kind})"),
        Value::Number(number) if number.is_finite() => dialect.number(*number),
        Value::Number(number) if number.is_nan() => format!("CAST('NaN' AS {kind})"),
        Value::Number(_) if dialect == Dialect::Sqlite => "9e999".to_owned(),
        Value::Number(_) => format!("CAST('Infinity' AS {kind})"),
        Value::Text(value) => dialect.text(value),
        Value::Moment(day, seconds) => {
            let text = date_text(f64::from(*day) + f64::from(*seconds) / 86_400.0);
            match dialect {
                Dialect::ClickHouse => format!("'{}'", text.replace('T', " ")),
                _ => format!("CAST('{}' AS {time})", text.replace('T', " ")),
            }
        }
    };
    let row = |row: &Vec<Value>| {
        let cells = used.iter().map(|(i, _)| literal(&row[*i], kinds[*i].unwrap_or(text)));
        format!("({})", cells.collect::<Vec<_>>().join(", "))
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    let names: Vec<&str> = used.iter().map(|(_, name)| name.as_str()).collect();
    let columns: Vec<String> = (1..=names.len()).map(|i| format!("column{i}")).collect();
    let renamed: Vec<String> = columns.iter().zip(&names).map(|(column, name)| format!("{column} AS {name}")).collect();
    match dialect {
        Dialect::DuckDb | Dialect::Spark => format!(
            "(SELECT {} FROM (VALUES {}) AS dp_known({})) AS dp_rows",
            renamed.join(", "),
            rows.join(", "),
            columns.join(", ")
        ),
        Dialect::ClickHouse => {
            let kinds = used.iter().map(|(i, _)| kinds[*i].unwrap_or(text));
            let columns =
                columns.iter().zip(kinds).map(|(column, kind)| format!("{column} {}", kind.replace('\'', "''")));
            let columns = columns.collect::<Vec<_>>().join(", ");
            format!("(SELECT {} FROM values('{columns}', {})) AS dp_rows", renamed.join(", "), rows.join(", "))
        }
        _ => format!("(SELECT {} FROM (VALUES {}) AS dp_known) AS dp_rows", renamed.join(", "), rows.join(", ")),
    }
}
