//! The sums of gradients as one SQL statement.

use super::{GradientSums, Slope};
use crate::encode::{Encoder, FeatureSql, RowBuffer, RowSql};
use crate::error::{DataError, DataErrorKind};
use crate::sql::{Dialect, sum};

/// Maximum number of sums of a statement.
pub const MOST_SUMS: usize = 1000;

/// The statements that ask an engine for sums of gradients over a table.
///
/// # Formula
/// In doubles of the engine, for each record with features `f` before they are scaled and its target y,
/// ```text
/// r   = (1 - (d + 16) u) / |f|            scale of the row, u = 2^-53; 1 for a short row that is not scaled
/// m_c = r <w_c, f>
/// g_c = r clamp(slope_c(m, y), ±C)        C the largest slope
/// S_cj = Σ trunc(2^k g_c f_j)             in 64-bit integers
/// ```
/// A statement is nested queries, one for each line.
///
/// # Privacy
/// `|trunc(2^k g f)| <= 2^k C` for every record, whatever the engine's exponential function computes: scaling by a power of two is
/// exact, cutting shortens, and the factor of r outweighs all roundings of doubles that are correct to half a unit. For softmax the
/// slopes are probabilities that add up to 1 but for rounding, which the sensitivity of the loss covers.
#[derive(Debug, Clone)]
pub struct GradientSql {
    dialect: Dialect,
    encoder: Encoder,
    row: RowSql,
    target: String,
}

impl GradientSql {
    /// Prepares the statements for tables of this encoder.
    ///
    /// # Errors
    /// As [`Encoder::in_sql`]; `encoding.sql` for a schema that refuses some records, since a statement cannot stop at one.
    pub fn new(encoder: &Encoder, dialect: Dialect) -> Result<Self, DataError> {
        let row = encoder.in_sql(dialect)?;
        if encoder.can_refuse_records() {
            let error = DataError::new(
                DataErrorKind::EncodingSql,
                "the schema refuses some records, and a sum cannot stop at one",
            );
            return Err(error
                .expected("policies other than `error` for missing, unknown and unreadable values")
                .help("let their records count for nothing: on_missing, on_unknown, on_unreadable = \"neutral\", others = \"neutral\""));
        }
        let target = encoder.target_in_sql(dialect);
        Ok(Self { dialect, encoder: encoder.clone(), row, target })
    }

    /// Returns the statement for these weights over `from`, a table or a query in parentheses with a name; `condition` selects some of its
    /// records. Its columns are the number of records and the sums.
    ///
    /// # Errors
    /// `encoding.sql` for more than [`MOST_SUMS`] sums.
    ///
    /// # Panics
    /// Unless there is a weight for each feature and prediction.
    pub fn statement(
        &self,
        slope: Slope,
        weights: &[f64],
        bits: u32,
        from: &str,
        condition: Option<&str>,
    ) -> Result<String, DataError> {
        if weights.len() > MOST_SUMS {
            let message = format!("{} sums are too many for a statement", weights.len());
            return Err(DataError::new(DataErrorKind::EncodingSql, message).expected(format!("at most {MOST_SUMS}")));
        }
        let (row, outputs, dim) = (&self.row, slope.outputs(), self.encoder.dim());
        assert_eq!(weights.len(), outputs * dim, "one weight for each feature and prediction");
        let named = |what: &str, i: usize| self.dialect.name(&format!("dp_{what}{i}"));
        let mut query = format!("{}{}", self.places(from, condition), self.fence());
        query = self.with(&query, &[(row.scale(), "dp_r".to_owned())]);
        let scores = weights.chunks_exact(dim.max(1)).enumerate();
        let scores = scores.map(|(c, weights)| (format!("dp_r * {}", row.unscaled_score(weights)), named("m", c)));
        query = self.with(&query, &scores.collect::<Vec<_>>());
        query = self.with_slopes(&query, slope);
        let (most, power) = (slope.largest(), 2f64.powi(bits as i32));
        let gradients = (0..outputs).map(|c| {
            let clamped = self.clamped(&named("s", c), -most, most);
            (format!("dp_r * {clamped}"), named("g", c))
        });
        query = self.with(&query, &gradients.collect::<Vec<_>>());
        // What one-hot features add up.
        let wholes = (0..outputs).map(|c| {
            let step = format!("{} * {}", named("g", c), self.dialect.number(power));
            (self.dialect.whole(&step), named("t", c))
        });
        query = self.with(&query, &wholes.collect::<Vec<_>>());
        let features = row.features();
        let sums =
            (0..outputs).flat_map(|c| features.iter().map(move |feature| (c, feature))).map(
                |(c, feature)| match feature {
                    FeatureSql::Number(value) => {
                        let step = format!("{} * {value} * {}", named("g", c), self.dialect.number(power));
                        format!("sum({})", self.dialect.whole(&step))
                    }
                    FeatureSql::Is { place, value } => {
                        format!("sum(CASE {} WHEN {value} THEN {} END)", row.place_name(*place), named("t", c))
                    }
                    FeatureSql::Constant(1.0) => format!("sum({})", named("t", c)),
                    FeatureSql::Constant(value) => {
                        let step = format!(
                            "{} * {} * {}",
                            named("g", c),
                            self.dialect.number(*value),
                            self.dialect.number(power)
                        );
                        format!("sum({})", self.dialect.whole(&step))
                    }
                },
            );
        let sums: Vec<String> = ["count(*)".to_owned()].into_iter().chain(sums).collect();
        Ok(format!("SELECT {} FROM ({query}) AS dp", sums.join(", ")))
    }

    /// Returns the statement that counts the records of `from`, and those that count.
    pub fn count(&self, from: &str) -> String {
        let names = (0..self.row.places().len()).map(|place| self.row.place_name(place)).chain(["dp_y".to_owned()]);
        let all = names.map(|name| format!("{name} IS NOT NULL")).collect::<Vec<_>>().join(" AND ");
        format!("SELECT count(*), count(CASE WHEN {all} THEN 1 END) FROM ({}) AS dp", self.places(from, None))
    }

    /// Returns the numbers of records and of those that count, from the cells of the answer to [`count`](Self::count).
    ///
    /// # Errors
    /// Other columns than were asked for.
    pub fn counted(&self, cells: &[Option<&str>]) -> Result<(u64, u64), DataError> {
        let counts = match cells {
            [Some(all), Some(some)] => all.parse().ok().zip(some.parse().ok()).filter(|(all, some)| some <= all),
            _ => None,
        };
        counts.ok_or_else(|| DataError::new(DataErrorKind::TableRead, "its answer is not the two numbers asked for"))
    }

    /// Returns the query of the places and the target of records.
    fn places(&self, from: &str, condition: Option<&str>) -> String {
        let condition = condition.map_or_else(String::new, |condition| format!(" WHERE {condition}"));
        let places = self.row.places().iter().enumerate();
        let places = places.map(|(place, value)| format!("{value} AS {}", self.row.place_name(place)));
        let places: Vec<String> = places.chain([format!("{} AS dp_y", self.target)]).collect();
        format!("SELECT {} FROM {from}{condition}", places.join(", "))
    }

    fn fence(&self) -> &'static str {
        match self.dialect {
            // Its fence of one row would cut the table.
            Dialect::Sqlite => " LIMIT -1 OFFSET 0",
            dialect => dialect.fence().unwrap_or_default(),
        }
    }

    /// Returns a query with further columns.
    fn with(&self, query: &str, columns: &[(String, String)]) -> String {
        let columns: String = columns.iter().map(|(value, name)| format!(", {value} AS {name}")).collect();
        format!("SELECT dp.*{columns} FROM ({query}) AS dp{}", self.fence())
    }

    fn clamped(&self, value: &str, low: f64, high: f64) -> String {
        let (low, high) = (self.dialect.number(low), self.dialect.number(high));
        format!("CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END")
    }

    /// Returns a query with the slopes `dp_s0`, `dp_s1`, ... of the predictions `dp_m0`, ... at `dp_y`.
    fn with_slopes(&self, query: &str, slope: Slope) -> String {
        let number = |value: f64| self.dialect.number(value);
        let named = |what: &str, i: usize| self.dialect.name(&format!("dp_{what}{i}"));
        let (m, one) = (named("m", 0), number(1.0));
        // Engines raise errors where an exponential overflows, and some where it underflows.
        let exponential = |value: &str| format!("exp({})", self.clamped(value, -700.0, 700.0));
        let slope = match slope {
            Slope::Logistic => {
                // In [0, 1] whatever the exponential is.
                let share = format!("{one} / ({one} + {})", exponential(&format!("(dp_y * {m})")));
                format!("-dp_y * {}", self.clamped(&format!("({share})"), 0.0, 1.0))
            }
            Slope::HuberSvm { h } if h > 0.0 => {
                let share = format!("(({} - dp_y * {m}) / {})", number(h + 1.0), number(2.0 * h));
                format!("-dp_y * {}", self.clamped(&share, 0.0, 1.0))
            }
            Slope::HuberSvm { .. } => {
                format!("CASE WHEN dp_y * {m} < {one} THEN -dp_y WHEN dp_y * {m} >= {one} THEN {} END", number(0.0))
            }
            Slope::Huber { h } if h > 0.0 => format!("({m} - dp_y) / {}", number(h)),
            Slope::Huber { .. } => format!(
                "CASE WHEN {m} > dp_y THEN {one} WHEN {m} < dp_y THEN {} WHEN {m} = dp_y THEN {} END",
                number(-1.0),
                number(0.0)
            ),
            Slope::LogCosh { h } => {
                // tanh(t) = 2/(1 + exp(-2t)) - 1
                let power = exponential(&format!("({} * ({m} - dp_y))", number(-2.0 / h)));
                format!("{} / ({one} + {power}) - {one}", number(2.0))
            }
            Slope::ClippedResidual { .. } => format!("{m} - dp_y"),
            Slope::Softmax { classes } => {
                let scores: Vec<String> = (0..classes as usize).map(|c| named("m", c)).collect();
                let largest = self.dialect.largest(&scores);
                let query = self.with(query, &[(largest, "dp_largest".to_owned())]);
                let weights = scores
                    .iter()
                    .enumerate()
                    .map(|(c, score)| (exponential(&format!("({score} - dp_largest)")), named("e", c)));
                let query = self.with(&query, &weights.collect::<Vec<_>>());
                let total = sum((0..scores.len()).map(|c| named("e", c)).collect());
                let query = self.with(&query, &[(total, "dp_total".to_owned())]);
                let slopes = (0..scores.len()).map(|c| {
                    let share = format!("{} / dp_total", named("e", c));
                    let class = number(c as f64);
                    let slope =
                        format!("CASE WHEN dp_y = {class} THEN {share} - {one} WHEN dp_y <> {class} THEN {share} END");
                    (slope, named("s", c))
                });
                return self.with(&query, &slopes.collect::<Vec<_>>());
            }
        };
        self.with(query, &[(slope, named("s", 0))])
    }

    /// Returns the sums of the answer to a statement: the number of records, then a sum for each weight, NULL if no record counts.
    ///
    /// # Errors
    /// Other columns than were asked for.
    pub fn answer(&self, cells: &[Option<&str>], sums: usize, bits: u32) -> Result<GradientSums, DataError> {
        let wrong = || DataError::new(DataErrorKind::TableRead, "its answer is not a row of the integers asked for");
        let (records, steps) = cells.split_first().ok_or_else(wrong)?;
        let records = records.and_then(|count| count.parse().ok()).ok_or_else(wrong)?;
        let steps = steps.iter().map(|cell| cell.map_or(Ok(0), |cell| cell.parse().map_err(|_| wrong())));
        let steps: Vec<i64> = steps.collect::<Result<_, _>>()?;
        if steps.len() != sums {
            return Err(wrong());
        }
        Ok(GradientSums { records, steps, bits })
    }

    /// Returns a query of public rows, weights for them, and what the engine has to answer about them, as
    /// [`check_known`](Self::check_known) compares it. Among the rows are missing, unknown and infinite values and those at the ends of ranges; predictions are small
    /// and very large.
    pub fn known_answer(&self, slope: Slope, bits: u32) -> Result<(String, Vec<f64>, GradientSums), DataError> {
        let schema =
            self.encoder.schema().ok_or_else(|| DataError::new(DataErrorKind::EncodingSql, "there is no table"))?;
        let (outputs, dim) = (slope.outputs(), self.encoder.dim());
        let mut dice = Dice(1);
        // Some weights are large, so that some predictions are.
        let weights: Vec<f64> =
            (0..outputs * dim).map(|j| (dice.unit() - 0.5) * if j % 7 == 0 { 1e6 } else { 2.0 }).collect();
        let rows = known::rows(schema, self.dialect, &mut dice);
        let sql = known::query(schema, &rows, self.dialect);
        let (mut sums, mut buffer) = (vec![0i64; outputs * dim], RowBuffer::new(&self.encoder));
        let (mut dense, mut slopes, mut scores) = (vec![0.0; dim], vec![0.0; outputs], vec![0.0; outputs]);
        for row in &rows {
            let last = row.last().map(known::Value::cell);
            self.encoder.encode_row(
                |column| row.get(column).map_or(crate::encode::Cell::Missing, known::Value::cell),
                last,
                &mut buffer,
            )?;
            let Some(y) = buffer.target().filter(|_| !buffer.is_null()) else { continue };
            buffer.write_dense(&mut dense);
            for (score, weights) in scores.iter_mut().zip(weights.chunks_exact(dim.max(1))) {
                *score = buffer.dot(weights);
            }
            slope.at(&scores, y, &mut slopes);
            for (slope, sums) in slopes.iter().zip(sums.chunks_exact_mut(dim.max(1))) {
                for (sum, x) in sums.iter_mut().zip(&dense) {
                    *sum += (slope * x * 2f64.powi(bits as i32)).trunc() as i64;
                }
            }
        }
        Ok((sql, weights, GradientSums { records: rows.len() as u64, steps: sums, bits }))
    }

    /// Checks the answer about the public rows.
    ///
    /// # Errors
    /// An answer that is farther off than rounding allows.
    pub fn check_known(&self, expected: &GradientSums, found: &GradientSums) -> Result<(), DataError> {
        // A prediction of a million has an error of 2^-33, which moves a slope by as much.
        let tolerance = 2 * expected.records + ((expected.records << expected.bits) >> 28);
        let is_near = |(one, other): (&i64, &i64)| one.abs_diff(*other) <= tolerance;
        let same_size = expected.records == found.records && expected.steps.len() == found.steps.len();
        if same_size && expected.steps.iter().zip(&found.steps).all(is_near) {
            return Ok(());
        }
        Err(DataError::new(
            DataErrorKind::TableRead,
            "it computes other sums than expected of 64 rows that are known: its arithmetic, its casts or its treatment of NULL \
             differ",
        ))
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

/// Public rows of a schema.
mod known {
    use super::Dice;
    use crate::encode::Cell;
    use crate::schema::{ColumnKind, LabelKind, Schema};
    use crate::sql::Dialect;

    /// Number of rows.
    const ROWS: usize = 64;

    #[derive(Debug, Clone)]
    pub(super) enum Value {
        Missing,
        Number(f64),
        Text(String),
    }

    impl Value {
        pub(super) fn cell(&self) -> Cell<'_> {
            match self {
                Self::Missing => Cell::Missing,
                Self::Number(number) => Cell::Number(*number),
                Self::Text(text) => Cell::Text(text.as_bytes()),
            }
        }
    }

    /// Returns rows with a value for each column of the schema, and the label's.
    pub(super) fn rows(schema: &Schema, dialect: Dialect, dice: &mut Dice) -> Vec<Vec<Value>> {
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
        let row = |dice: &mut Dice| {
            let cells = schema.columns().iter().map(|column| match &column.kind {
                ColumnKind::Numeric { min, max, .. } => number(*min, *max, dice),
                ColumnKind::Indicator { .. } => number(0.0, 1.0, dice),
                ColumnKind::Categorical { categories, .. } => one_of(&categories.iter().collect::<Vec<_>>(), dice),
                ColumnKind::Drop => Value::Missing,
            });
            let mut cells: Vec<Value> = cells.collect();
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
    pub(super) fn query(schema: &Schema, rows: &[Vec<Value>], dialect: Dialect) -> String {
        let (float, text) = match dialect {
            Dialect::Postgres => ("double precision", "text"),
            Dialect::Sqlite => ("REAL", "TEXT"),
            Dialect::DuckDb => ("DOUBLE", "VARCHAR"),
            Dialect::Spark => ("DOUBLE", "STRING"),
            Dialect::ClickHouse => ("Nullable(Float64)", "Nullable(String)"),
        };
        let kinds = schema.columns().iter().map(|column| match &column.kind {
            ColumnKind::Numeric { .. } | ColumnKind::Indicator { .. } => Some(float),
            ColumnKind::Categorical { .. } => Some(text),
            ColumnKind::Drop => None,
        });
        let of_label = if matches!(schema.label().kind, LabelKind::Number(_)) { float } else { text };
        let kinds: Vec<Option<&str>> = kinds.chain([Some(of_label)]).collect();
        let names = schema.columns().iter().map(|column| &column.name).chain([&schema.label().column]);
        let used: Vec<(usize, String)> =
            names.enumerate().filter(|(i, _)| kinds[*i].is_some()).map(|(i, name)| (i, dialect.name(name))).collect();
        let literal = |value: &Value, kind: &str| match value {
            Value::Missing => format!("CAST(NULL AS {kind})"),
            Value::Number(number) if number.is_finite() => dialect.number(*number),
            Value::Number(number) if number.is_nan() => format!("CAST('NaN' AS {kind})"),
            Value::Number(_) if dialect == Dialect::Sqlite => "9e999".to_owned(),
            Value::Number(_) => format!("CAST('Infinity' AS {kind})"),
            Value::Text(value) => dialect.text(value),
        };
        let row = |row: &Vec<Value>| {
            let cells = used.iter().map(|(i, _)| literal(&row[*i], kinds[*i].unwrap_or(text)));
            format!("({})", cells.collect::<Vec<_>>().join(", "))
        };
        let rows: Vec<String> = rows.iter().map(row).collect();
        let names: Vec<&str> = used.iter().map(|(_, name)| name.as_str()).collect();
        let columns: Vec<String> = (1..=names.len()).map(|i| format!("column{i}")).collect();
        let renamed: Vec<String> =
            columns.iter().zip(&names).map(|(column, name)| format!("{column} AS {name}")).collect();
        match dialect {
            Dialect::DuckDb | Dialect::Spark => format!(
                "(SELECT {} FROM (VALUES {}) AS dp_known({})) AS dp_rows",
                renamed.join(", "),
                rows.join(", "),
                columns.join(", ")
            ),
            Dialect::ClickHouse => {
                let kinds = used.iter().map(|(i, _)| kinds[*i].unwrap_or(text));
                let columns = columns.iter().zip(kinds).map(|(column, kind)| format!("{column} {kind}"));
                let columns = columns.collect::<Vec<_>>().join(", ");
                format!("(SELECT {} FROM values('{columns}', {})) AS dp_rows", renamed.join(", "), rows.join(", "))
            }
            _ => format!("(SELECT {} FROM (VALUES {}) AS dp_known) AS dp_rows", renamed.join(", "), rows.join(", ")),
        }
    }
}
