//! An encoder as SQL: the features of a row as expressions.

use super::coordinate::{Coordinate, STEEPNESS};
use super::plan::ColumnPlan;
use super::{Encoder, InputFormat, MapPlan, RowNorm};
use crate::error::{DataError, DataErrorKind};
use crate::schema::ColumnKind;
use crate::sql::{Dialect, sum};

/// An encoder as SQL, in two stages.
///
/// Each used column has a *place*, an expression of the table's columns: the coordinate or the feature of a number, or the
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
/// let score = sql.expression(&[0.5, -0.25]);
/// assert!(score.contains("`age`") && score.contains("sqrt"));
/// # Ok::<(), dp_data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RowSql {
    dialect: Dialect,
    /// The prefix of the names of places, which occurs nowhere in their expressions.
    prefix: String,
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
    /// `encoding.sql` for libsvm files and images, for a projection, and for columns or labels that SQL cannot read.
    pub fn in_sql(&self, dialect: Dialect) -> Result<RowSql, DataError> {
        let refuse =
            |what: &str| DataError::new(DataErrorKind::EncodingSql, format!("{what} cannot be written as SQL"));
        let InputFormat::Table(schema) = &self.input else {
            return Err(refuse("an encoder of libsvm files or images").expected("one of a table"));
        };
        if self.projection.is_some() {
            return Err(refuse("a projection").expected("an encoder without `--project`"));
        }
        let pairs = self.map.as_ref().and_then(MapPlan::first_pair);
        let (mut places, mut features, mut paired) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(column) = schema.columns().iter().find(|column| !column.is_plain_in_sql()) {
            return Err(refuse("a column of dates, of formatted numbers or under another name")
                .at_column(&column.name)
                .expected("plain numbers and categories")
                .help("convert it in a view, or in --query"));
        }
        if schema.label().format.is_some() {
            return Err(refuse("a label of formatted numbers").at_column(&schema.label().column));
        }
        for (column, plan) in schema.columns().iter().zip(&self.columns) {
            let name = dialect.name(&column.name);
            let first = match &self.map {
                Some(map) => map.range_of(plan.first(), plan.width()).start,
                None => plan.first(),
            };
            let first = first as usize;
            match plan {
                ColumnPlan::Drop => continue,
                ColumnPlan::Categorical(plan) => {
                    places.push(plan.position_in_sql(&name, dialect));
                    features.push(Features::OneHot { first, width: plan.width() });
                }
                ColumnPlan::Numeric(numeric) => {
                    let mapped = plan.numeric().map(|numeric| numeric.functions);
                    let coordinate = mapped.map_or(Coordinate::Linear, |functions| functions.coordinate);
                    let is_indicator = matches!(column.kind, ColumnKind::Indicator { .. });
                    let z = coordinate.in_sql(&numeric.share_in_sql(&name, is_indicator, dialect), dialect);
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
        let mut prefix = "dp_".to_owned();
        while places.iter().any(|place| place.contains(&prefix)) {
            prefix.push('_');
        }
        Ok(RowSql { dialect, prefix, places, features, pairs, intercept, row_norm, dim: self.dim })
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

    /// Returns the weighted sum of a row's features as one expression of the table's columns.
    ///
    /// # Panics
    /// Unless there is a weight for each feature.
    pub fn expression(&self, weights: &[f64]) -> String {
        let score = format!("{} * {}", self.unscaled_score(weights), self.scale());
        let named = |(place, expression): (usize, &String)| format!("{expression} AS {}", self.place_name(place));
        match self.dialect.fence() {
            Some(fence) => {
                let places: Vec<String> = self.places.iter().enumerate().map(named).collect();
                format!("(SELECT {score} FROM (SELECT {}{fence}) AS dp)", places.join(", "))
            }
            None => {
                // No expression holds a name that is replaced.
                let places = self.places.iter().enumerate();
                places.fold(format!("({score})"), |score, (place, expression)| {
                    score.replace(&self.place_name(place), &format!("({expression})"))
                })
            }
        }
    }

    /// Returns `cos(pi j z)`.
    fn cosine(&self, z: &str, j: usize) -> String {
        format!("cos({} * {z})", self.dialect.number(std::f64::consts::PI * j as f64))
    }
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
        let log = |share: &str| format!("(ln(1 + {} * {share}) / {})", number(STEEPNESS), number(STEEPNESS.ln_1p()));
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
