//! An encoder as SQL: the features of a row as expressions.

use super::coordinate::{Coordinate, OF_END, STEEPNESS};
use super::dates_in_sql::{self, Moment};
use super::plan::{ColumnPlan, SqlColumn};
use super::{Encoder, InputFormat, MapPlan, RowNorm};
use crate::error::{DataError, DataErrorKind};
use crate::schema::{CellFormat, Column, ColumnKind};
use crate::sql::{Dialect, sum};

/// An encoder as SQL, in stages.
///
/// Each column of dates has its seconds since 1970-01-01. Each used column has a *place*, an expression of the table's columns and of these seconds: the coordinate or the feature of a number, or the
/// position of a category. It is NULL if the cell makes the record a null record or would be refused. Features and their
/// weighted sums are expressions of the places, and NULL if any place is.
///
/// # Formula
/// As for [`Encoding`](super::Encoding); the features of a [`FeatureMap`](super::FeatureMap) are `cos(pi j z)/sqrt(j)`, without the
/// recurrence.
///
/// # Examples
/// ```
/// use dp_data::sql::Dialect;
/// use dp_data::{Encoder, Encoding, Schema};
///
/// let schema = Schema::parse(
///     "toy.toml",
///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
///      columns.age = { type = 'numeric', min = 0, max = 100, on_missing = 'neutral' }",
/// )?;
/// let sql = Encoder::new(&schema, Encoding::UNIT_ROWS)?.in_sql(Dialect::Sqlite)?;
/// let query = sql.scores([&[0.5, -0.25][..]].into_iter(), &["score".to_owned()], "people");
/// assert!(query.contains("`age`") && query.contains("sqrt"));
/// # Ok::<(), dp_data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RowSql {
    dialect: Dialect,
    /// The prefix of the names of places, which occurs nowhere in their expressions.
    prefix: String,
    /// The times of columns of dates, of which places are made.
    moments: Vec<Moment>,
    /// The expressions of the first stage.
    places: Vec<String>,
    /// The features that each place makes.
    features: Vec<Features>,
    /// The first feature that is a product of two columns, and the places of those columns.
    pairs: Option<(usize, Vec<usize>)>,
    /// The constant of the intercept, the last feature; 0 for none.
    intercept: f64,
    row_norm: RowNorm,
    dim: usize,
}

/// A feature before the row is scaled, as an expression of the places.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FeatureSql {
    /// A number.
    Number(String),
    /// 1 where the place has this value, else 0.
    Is { place: usize, value: usize },
    /// The constant of the intercept.
    Constant(f64),
}

/// The features of a column.
#[derive(Debug, Clone, PartialEq)]
enum Features {
    /// `factor z + offset`
    Line { feature: usize, factor: f64, offset: f64 },
    /// `cos(pi j z)/sqrt(j)` for j = 1, 2, ...
    Cosines { first: usize, number: usize },
    /// 1 at the category's position.
    OneHot { first: usize, width: usize },
}

impl Encoder {
    /// Returns the encoder as SQL.
    ///
    /// # Errors
    /// `encoding.sql` for libsvm files and images, for a projection, for Fourier features, and for columns or labels that SQL
    /// cannot read.
    pub fn in_sql(&self, dialect: Dialect) -> Result<RowSql, DataError> {
        let refuse =
            |what: &str| DataError::new(DataErrorKind::EncodingSql, format!("{what} cannot be written as SQL"));
        let InputFormat::Table(schema) = &self.input else {
            return Err(refuse("an encoder of libsvm files or images").expected("one of a table"));
        };
        if self.projection.is_some() {
            return Err(refuse("a projection").expected("an encoder without `--project`"));
        }
        if self.map.as_ref().is_some_and(MapPlan::is_joint) {
            return Err(refuse("Fourier features").expected("an encoder without them"));
        }
        let pairs = self.map.as_ref().and_then(MapPlan::first_pair);
        let (mut places, mut features, mut paired) = (Vec::new(), Vec::new(), Vec::new());
        let is_read = |column: &&Column| match &column.format {
            Some(CellFormat::Number(_)) => false,
            Some(CellFormat::Date(format)) => dates_in_sql::is_read(format, dialect),
            _ => true,
        };
        let used = schema.columns().iter().filter(|column| column.kind != ColumnKind::Drop);
        if let Some(column) = { used }.find(|column| !is_read(column)) {
            let refused = match column.format {
                Some(CellFormat::Date(_)) => "a format of dates with names or offsets",
                _ => "a column of formatted numbers",
            };
            return Err(refuse(refused)
                .at_column(&column.name)
                .expected("plain numbers, categories and dates")
                .help("convert it in a view, or in --query"));
        }
        if schema.label().format.is_some() {
            return Err(refuse("a label of formatted numbers").at_column(&schema.label().column));
        }
        let has = |text: &str| {
            schema.columns().iter().any(|column| column.source().contains(text)) || schema.label().column.contains(text)
        };
        let mut prefix = "dp_place_".to_owned();
        while has(&prefix) {
            prefix.push('_');
        }
        let seconds = |column: &Column| match &column.format {
            Some(CellFormat::Date(format)) if column.kind != ColumnKind::Drop => {
                Some(dates_in_sql::seconds_in_sql(&dialect.name(column.source()), format, dialect))
            }
            _ => None,
        };
        let mut moments: Vec<Moment> = Vec::new();
        for column in schema.columns() {
            let seconds = seconds(column).filter(|seconds| moments.iter().all(|moment| moment.seconds != *seconds));
            if let Some(seconds) = seconds {
                let name = dialect.name(&format!("{prefix}time{}", moments.len()));
                moments.push(Moment { column: dialect.name(column.source()), seconds, name });
            }
        }
        for (column, plan) in schema.columns().iter().zip(&self.columns) {
            let name = dialect.name(column.source());
            let moment = seconds(column).and_then(|seconds| moments.iter().find(|moment| moment.seconds == seconds));
            let in_sql = SqlColumn { name: &name, moment };
            let first = match &self.map {
                Some(map) => map.range_of(plan.first(), plan.width()).start,
                None => plan.first(),
            };
            let first = first as usize;
            match plan {
                ColumnPlan::Drop => continue,
                ColumnPlan::Categorical(plan) => {
                    places.push(plan.position_in_sql(&in_sql, dialect));
                    features.push(Features::OneHot { first, width: plan.width() });
                }
                ColumnPlan::Numeric(numeric) => {
                    let mapped = plan.numeric().map(|numeric| numeric.functions);
                    let coordinate = mapped.map_or(Coordinate::Linear, |functions| functions.coordinate);
                    let is_indicator = matches!(column.kind, ColumnKind::Indicator { .. });
                    let z = coordinate.in_sql(&numeric.share_in_sql(&in_sql, is_indicator, dialect), dialect);
                    if pairs.is_some() && mapped.is_some() {
                        paired.push(features.len());
                    }
                    let (factor, offset) = numeric.factor_and_offset();
                    let (place, of_place) = match mapped.map_or(0, |functions| functions.cosines) as usize {
                        // Pairs are products of coordinates.
                        0 if pairs.is_some() => (z, Features::Line { feature: first, factor, offset }),
                        0 => {
                            let feature = line(dialect, &format!("({z})"), factor, offset);
                            (feature, Features::Line { feature: first, factor: 1.0, offset: 0.0 })
                        }
                        number => (z, Features::Cosines { first, number }),
                    };
                    places.push(place);
                    features.push(of_place);
                }
            }
        }
        let pairs = pairs.map(|first| (first as usize, paired));
        let (intercept, row_norm) = (self.encoding.intercept, self.encoding.row_norm);
        Ok(RowSql { dialect, prefix, moments, places, features, pairs, intercept, row_norm, dim: self.dim })
    }
}

impl RowSql {
    /// Returns an expression for each column that is used, of the table's columns.
    pub(crate) fn places(&self) -> &[String] {
        &self.places
    }

    /// Returns the name of a place in the second stage.
    pub(crate) fn place_name(&self, place: usize) -> String {
        self.dialect.name(&format!("{}{place}", self.prefix))
    }

    /// Returns the features before the row is scaled, in order.
    pub(crate) fn features(&self) -> Vec<FeatureSql> {
        let mut features = vec![FeatureSql::Constant(0.0); self.dim];
        for (place, of_place) in self.features.iter().enumerate() {
            let z = self.place_name(place);
            match *of_place {
                Features::Line { feature, factor, offset } => {
                    features[feature] = FeatureSql::Number(line(self.dialect, &z, factor, offset));
                }
                Features::Cosines { first, number } => {
                    for j in 1..=number {
                        let decay = self.dialect.number(1.0 / (j as f64).sqrt());
                        features[first + j - 1] = FeatureSql::Number(format!("({decay} * {})", self.cosine(&z, j)));
                    }
                }
                Features::OneHot { first, width } => {
                    (0..width).for_each(|value| features[first + value] = FeatureSql::Is { place, value });
                }
            }
        }
        if let Some((first, places)) = &self.pairs {
            let cosines: Vec<String> = places.iter().map(|&place| self.cosine(&self.place_name(place), 1)).collect();
            let pairs =
                cosines.iter().enumerate().flat_map(|(i, one)| cosines[..i].iter().map(move |other| (one, other)));
            for (feature, (one, other)) in features[*first..].iter_mut().zip(pairs) {
                *feature = FeatureSql::Number(format!("({one} * {other})"));
            }
        }
        if self.intercept > 0.0
            && let Some(last) = features.last_mut()
        {
            *last = FeatureSql::Constant(self.intercept);
        }
        features
    }

    /// Returns the weighted sum of a row's unscaled features, in terms of the names of places.
    ///
    /// # Panics
    /// Unless there is a weight for each feature.
    pub(crate) fn unscaled_score(&self, weights: &[f64]) -> String {
        assert_eq!(weights.len(), self.dim, "one weight for each feature");
        let number = |value: f64| self.dialect.number(value);
        let mut terms = Vec::new();
        let mut cases = vec![String::new(); self.features.len()];
        for (feature, &weight) in self.features().iter().zip(weights) {
            match feature {
                FeatureSql::Number(value) => terms.push(format!("{} * {value}", number(weight))),
                FeatureSql::Is { place, value } => cases[*place] += &format!(" WHEN {value} THEN {}", number(weight)),
                FeatureSql::Constant(value) => terms.push(number(weight * value)),
            }
        }
        let cases = cases.iter().enumerate().filter(|(_, cases)| !cases.is_empty());
        terms.extend(cases.map(|(place, cases)| format!("CASE {}{cases} END", self.place_name(place))));
        sum(terms)
    }

    /// Returns the factor that scales a row, in terms of the names of places. The exact norm is then below 1, even if the
    /// factor and the features are each rounded once more.
    ///
    /// # Formula
    /// ```text
    /// (1 - (d + 16) u) / s,   s the computed norm of d terms,   u = 2^-53
    /// ```
    pub(crate) fn scale(&self) -> String {
        let number = |value: f64| self.dialect.number(value);
        let (mut squares, mut ones) = (Vec::new(), 0.0);
        for feature in self.features() {
            match feature {
                FeatureSql::Number(value) => squares.push(format!("{value} * {value}")),
                FeatureSql::Is { .. } => {}
                FeatureSql::Constant(value) => ones += value * value,
            }
        }
        ones += self.features.iter().filter(|features| matches!(features, Features::OneHot { .. })).count() as f64;
        let terms = squares.len() as f64 + 1.0;
        squares.push(number(ones));
        let squares = sum(squares);
        let slack = 1.0 - (terms + 16.0) * f64::EPSILON / 2.0;
        match self.row_norm {
            RowNorm::Clip => {
                let scale = number(slack);
                format!("CASE WHEN {squares} > {} THEN {scale} / sqrt({squares}) ELSE 1 END", number(slack * slack))
            }
            // A row of zeros is not scaled.
            RowNorm::Unit if ones > 0.0 => format!("{} / sqrt({squares})", number(slack)),
            RowNorm::Unit => {
                format!("CASE WHEN {squares} > 0 THEN {} / sqrt({squares}) ELSE 1 END", number(slack))
            }
        }
    }

    /// Returns the query of a weighted sum of each row's features for each name, and of the columns of `table`, a table or a query in
    /// parentheses.
    ///
    /// # Panics
    /// Unless each sum has a weight for each feature.
    pub fn scores<'w>(&self, weights: impl Iterator<Item = &'w [f64]>, names: &[String], table: &str) -> String {
        let scale = self.scale();
        let scores = weights.map(|weights| format!("{} * {scale}", self.unscaled_score(weights)));
        let places = || self.places.iter().enumerate().map(|(place, value)| (value.clone(), self.place_name(place)));
        match self.dialect.fence() {
            // Each score is a query of its own, of one row.
            Some(fence) => {
                let row = match self.moments.is_empty() {
                    true => format!("SELECT {}{fence}", listed(places())),
                    false => {
                        format!(
                            "SELECT {} FROM (SELECT {}{fence}) AS dp_times{fence}",
                            listed(places()),
                            listed(self.times())
                        )
                    }
                };
                let scores = scores.map(|score| format!("(SELECT {score} FROM ({row}) AS dp)"));
                format!("SELECT {},\n  dp_rows.* FROM {table} AS dp_rows", listed(scores.zip(names.iter().cloned())))
            }
            None => {
                let stage =
                    |query: &str, columns: String| format!("(SELECT {columns}, dp_rows.* FROM {query} AS dp_rows)");
                let mut query = table.to_owned();
                if !self.moments.is_empty() {
                    query = stage(&query, listed(self.times()));
                }
                query = stage(&query, listed(places()));
                let hidden: Vec<String> = self.times().chain(places()).map(|(_, name)| name).collect();
                let except = if self.dialect == Dialect::DuckDb { "EXCLUDE" } else { "EXCEPT" };
                let scores = listed(scores.zip(names.iter().cloned()));
                format!("SELECT {scores},\n  dp_rows.* {except} ({}) FROM {query} AS dp_rows", hidden.join(", "))
            }
        }
    }

    /// Returns the times of columns of dates, with their names.
    fn times(&self) -> impl Iterator<Item = (String, String)> {
        self.moments.iter().map(|moment| (moment.seconds.clone(), moment.name.clone()))
    }

    /// Returns a table, or a query with its name, with the times of its dates; `fence` ends a query.
    pub(crate) fn with_times(&self, from: String, fence: &str) -> String {
        match self.moments.is_empty() {
            true => from,
            false => format!("(SELECT *, {} FROM {from}{fence}) AS dp_times", listed(self.times())),
        }
    }

    /// Returns `cos(pi j z)`.
    fn cosine(&self, z: &str, j: usize) -> String {
        format!("cos({} * {z})", self.dialect.number(std::f64::consts::PI * j as f64))
    }
}

/// Returns expressions with their names as columns of a query.
fn listed(columns: impl Iterator<Item = (String, String)>) -> String {
    columns.map(|(value, name)| format!("{value} AS {name}")).collect::<Vec<_>>().join(", ")
}

/// Returns `factor z + offset`.
fn line(dialect: Dialect, z: &str, factor: f64, offset: f64) -> String {
    if (factor, offset) == (1.0, 0.0) {
        return z.to_owned();
    }
    format!("({} * {z} + {})", dialect.number(factor), dialect.number(offset))
}

impl Coordinate {
    /// Returns z of a share u, which is an expression.
    fn in_sql(&self, share: &str, dialect: Dialect) -> String {
        let number = |value: f64| dialect.number(value);
        let log = |share: &str| format!("(ln(1 + {} * {share}) / {})", number(STEEPNESS), number(OF_END));
        match *self {
            Self::Linear => share.to_owned(),
            Self::FromMinimum => log(share),
            Self::FromMaximum => format!("(1 - {})", log(&format!("(1 - {share})"))),
            Self::FromZero { zero, low, width } => {
                let distance = format!("({share} - {})", number(zero));
                let size = log(&format!("(abs({distance}) / {})", number(zero.max(1.0 - zero))));
                let signed = format!("CASE WHEN {distance} < 0 THEN -{size} ELSE {size} END");
                format!("(({signed} - {}) / {})", number(low), number(width))
            }
        }
    }
}
