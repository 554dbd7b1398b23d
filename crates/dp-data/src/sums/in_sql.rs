//! Sums over all records as one SQL statement.

mod known;

pub use self::known::Known;
use super::{IntegerSums, Slope, SumKind, SumRequest};
use crate::encode::{Encoder, FeatureSql, RowSql};
use crate::error::{DataError, DataErrorKind};
use crate::sql::{Dialect, sum};

/// Maximum number of sums of a statement: results of PostgreSQL have at most 1664 columns.
pub const MOST_SUMS: usize = 1600;

/// The statements that ask an engine for sums over a table.
///
/// # Formula
/// In doubles of the engine, for each record with features `f` before they are scaled and its target y,
/// ```text
/// r   = (1 - (d + 16) u) / |f|            scale of the row, u = 2^-53; 1 for a short row that is not scaled
/// m_c = r <w_c, f>
/// g_c = r clamp(slope_c(m, y), ±C)        C the largest slope
/// S   = Σ trunc(2^k g_c f_j),   Σ trunc(2^k r f_i) trunc(2^k r f_j),   Σ trunc(2^k y)
/// ```
/// with sums of 64-bit integers. A statement is nested queries, one for each line.
///
/// # Privacy
/// `|trunc(2^k g f)| <= 2^k C` and `|trunc(2^k r f)| <= 2^k` for every record, whatever the engine's exponential function computes:
/// scaling by a power of two is exact, cutting shortens, and the factor of r outweighs all roundings of doubles that are correct to
/// half a unit. For softmax the slopes are probabilities that add up to 1 but for rounding, which the sensitivity of the loss covers.
#[derive(Debug, Clone)]
pub struct SumSql {
    dialect: Dialect,
    encoder: Encoder,
    row: RowSql,
    target: String,
}

impl SumSql {
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
                .help("give their records no influence: on_missing, on_unknown, on_unreadable = \"neutral\", others = \"neutral\""));
        }
        let target = encoder.target_in_sql(dialect);
        Ok(Self { dialect, encoder: encoder.clone(), row, target })
    }

    /// Returns the statement for these sums over `from`, a table or a query in parentheses with a name; `condition` selects some of its
    /// records. Its columns are the number of records and the sums.
    ///
    /// # Errors
    /// `encoding.sql` for more than [`MOST_SUMS`] sums.
    ///
    /// # Panics
    /// Unless there is a weight for each feature and prediction of gradients.
    pub fn statement(
        &self,
        request: &SumRequest<'_>,
        from: &str,
        condition: Option<&str>,
    ) -> Result<String, DataError> {
        let query = format!("{}{}", self.places(from, condition), self.fence());
        let (query, sums) = match request.kind {
            SumKind::Gradients(slope) => self.gradients(query, slope, request),
            SumKind::Moments { outputs } => self.moments(query, outputs, request.bits),
            SumKind::Targets => {
                let target = format!("({} * {})", self.clamped("dp_y", -1.0, 1.0), self.power(request.bits));
                let counted = |what: &str| format!("CASE WHEN {} THEN {what} END", self.counts());
                (query, vec![counted(&self.dialect.whole(&target)), counted("1")])
            }
        };
        if sums.len() > MOST_SUMS {
            let message = format!("{} sums are too many for a statement", sums.len());
            return Err(DataError::new(DataErrorKind::EncodingSql, message).expected(format!("at most {MOST_SUMS}")));
        }
        let sums = sums.into_iter().map(|sum| format!("sum({sum})"));
        let sums: Vec<String> = ["count(*)".to_owned()].into_iter().chain(sums).collect();
        Ok(format!("SELECT {} FROM ({query}) AS dp", sums.join(", ")))
    }

    /// Returns a query of the terms of gradients, and the expressions to be summed.
    fn gradients(&self, query: String, slope: Slope, request: &SumRequest<'_>) -> (String, Vec<String>) {
        let (row, outputs, dim) = (&self.row, slope.outputs(), self.encoder.dim());
        assert_eq!(request.weights.len(), outputs * dim, "one weight for each feature and prediction");
        let mut query = self.with(&query, &[(row.scale(), "dp_r".to_owned())]);
        let scores = request.weights.chunks_exact(dim.max(1)).enumerate();
        let scores = scores.map(|(c, weights)| (format!("dp_r * {}", row.unscaled_score(weights)), self.named("m", c)));
        query = self.with(&query, &scores.collect::<Vec<_>>());
        query = self.with_slopes(&query, slope);
        let (most, power) = (slope.largest(), self.power(request.bits));
        let gradients = (0..outputs).map(|c| {
            let clamped = self.clamped(&self.named("s", c), -most, most);
            (format!("dp_r * {clamped}"), self.named("g", c))
        });
        query = self.with(&query, &gradients.collect::<Vec<_>>());
        // The summands of one-hot features.
        let wholes = (0..outputs).map(|c| {
            let step = format!("{} * {power}", self.named("g", c));
            (self.dialect.whole(&step), self.named("t", c))
        });
        query = self.with(&query, &wholes.collect::<Vec<_>>());
        let features = row.features();
        let sums = (0..outputs).flat_map(|c| features.iter().map(move |feature| (c, feature)));
        let sums = sums.map(|(c, feature)| {
            let times = |value: &str| self.dialect.whole(&format!("{} * {value} * {power}", self.named("g", c)));
            match feature {
                FeatureSql::Number(value) => times(value),
                FeatureSql::Is { place, value } => self.where_is(*place, *value, &self.named("t", c)),
                FeatureSql::Constant(1.0) => self.named("t", c),
                FeatureSql::Constant(value) => times(&self.dialect.number(*value)),
            }
        });
        (query, sums.collect())
    }

    /// Returns a query of rows and targets as whole numbers, and their products.
    fn moments(&self, query: String, outputs: u32, bits: u32) -> (String, Vec<String>) {
        let (power, counts) = (self.power(bits), self.counts());
        // A row with a missing place does not count.
        let scale = format!("CASE WHEN {counts} THEN {} END", self.row.scale());
        let mut query = self.with(&query, &[(scale, "dp_r".to_owned())]);
        let whole = |value: &str| self.dialect.whole(&format!("dp_r * {value} * {power}"));
        let mut wholes = vec![(self.dialect.whole(&format!("dp_r * {power}")), "dp_w".to_owned())];
        let features = self.row.features();
        for (j, feature) in features.iter().enumerate() {
            match feature {
                FeatureSql::Number(value) => wholes.push((whole(value), self.named("x", j))),
                FeatureSql::Constant(value) => wholes.push((whole(&self.dialect.number(*value)), self.named("x", j))),
                FeatureSql::Is { .. } => {}
            }
        }
        for c in 0..outputs {
            wholes.push((self.coded(c, outputs, bits), self.named("t", c as usize)));
        }
        query = self.with(&query, &wholes);
        let with = |feature: (usize, &FeatureSql), other: &str| match *feature.1 {
            FeatureSql::Is { place, value } => self.where_is(place, value, &format!("dp_w * {other}")),
            _ => format!("{} * {other}", self.named("x", feature.0)),
        };
        let mut sums = Vec::new();
        for one in features.iter().enumerate() {
            for other in features.iter().enumerate().skip(one.0) {
                sums.push(match (one.1, other.1) {
                    _ if never_together(one.1, other.1) => continue,
                    (FeatureSql::Is { place, value }, FeatureSql::Is { place: of, .. }) if place == of => {
                        self.where_is(*place, *value, "dp_w * dp_w")
                    }
                    (FeatureSql::Is { place, value }, FeatureSql::Is { place: of, value: is }) => {
                        self.where_is(*place, *value, &self.where_is(*of, *is, "dp_w * dp_w"))
                    }
                    (FeatureSql::Is { .. }, _) => with(one, &self.named("x", other.0)),
                    _ => with(other, &self.named("x", one.0)),
                });
            }
            sums.extend((0..outputs).map(|c| with(one, &self.named("t", c as usize))));
        }
        (query, sums)
    }

    /// Returns the whole number of a target's output.
    fn coded(&self, output: u32, outputs: u32, bits: u32) -> String {
        let power = 2f64.powi(bits as i32);
        if outputs == 1 {
            let target = self.clamped("dp_y", -1.0, 1.0);
            return self.dialect.whole(&format!("({target}) * {}", self.power(bits)));
        }
        let share = 1.0 / f64::from(outputs);
        let (own, others) = (((1.0 - share) * power).trunc() as i64, (-share * power).trunc() as i64);
        format!("CASE WHEN dp_y = {} THEN {own} ELSE {others} END", self.dialect.number(f64::from(output)))
    }

    /// Returns an expression that is `value` for records with this position in a place, else NULL.
    fn where_is(&self, place: usize, position: usize, value: &str) -> String {
        format!("CASE {} WHEN {position} THEN {value} END", self.row.place_name(place))
    }

    /// Returns whether a record counts.
    fn counts(&self) -> String {
        let names = (0..self.row.places().len()).map(|place| self.row.place_name(place)).chain(["dp_y".to_owned()]);
        names.map(|name| format!("{name} IS NOT NULL")).collect::<Vec<_>>().join(" AND ")
    }

    fn power(&self, bits: u32) -> String {
        self.dialect.number(2f64.powi(bits as i32))
    }

    fn named(&self, what: &str, i: usize) -> String {
        self.dialect.name(&format!("dp_{what}{i}"))
    }

    /// Returns the statement that counts the records of `from`, and those that count.
    pub fn count(&self, from: &str) -> String {
        format!(
            "SELECT count(*), count(CASE WHEN {} THEN 1 END) FROM ({}) AS dp",
            self.counts(),
            self.places(from, None)
        )
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
        let from = self.row.with_times(format!("{from}{condition}"), self.fence());
        format!("SELECT {} FROM {from}", places.join(", "))
    }

    fn fence(&self) -> &'static str {
        self.dialect.fence().unwrap_or_default()
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
        let named = |what: &str, i: usize| self.named(what, i);
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

    /// Returns the sums of the answer to a statement: the number of records, then each sum, NULL if no record counts.
    ///
    /// # Errors
    /// Other columns than were asked for.
    pub fn answer(&self, kind: SumKind, cells: &[Option<&str>]) -> Result<IntegerSums, DataError> {
        let wrong = || DataError::new(DataErrorKind::TableRead, "its answer is not a row of the integers asked for");
        let (records, cells) = cells.split_first().ok_or_else(wrong)?;
        let records = records.and_then(|count| count.parse().ok()).ok_or_else(wrong)?;
        let mut cells = cells.iter().map(|cell| cell.map_or(Ok(0), |cell| cell.parse().map_err(|_| wrong())));
        let mut steps: Vec<i64> = Vec::with_capacity(kind.numbers(self.encoder.dim()));
        if let SumKind::Moments { outputs } = kind {
            let features = self.row.features();
            for (i, one) in features.iter().enumerate() {
                for other in &features[i..] {
                    steps.push(if never_together(one, other) { 0 } else { cells.next().ok_or_else(wrong)?? });
                }
                for _ in 0..outputs {
                    steps.push(cells.next().ok_or_else(wrong)??);
                }
            }
        }
        cells.try_for_each(|cell| cell.map(|sum| steps.push(sum)))?;
        match steps.len() == kind.numbers(self.encoder.dim()) {
            true => Ok(IntegerSums { records, steps }),
            false => Err(wrong()),
        }
    }
}

/// Returns whether two features are different values of one column: a record has at most one of them.
fn never_together(one: &FeatureSql, other: &FeatureSql) -> bool {
    match (one, other) {
        (FeatureSql::Is { place, value }, FeatureSql::Is { place: of, value: is }) => place == of && value != is,
        _ => false,
    }
}
