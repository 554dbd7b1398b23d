//! The contribution of each column to the score of a linear model: a curve for numbers, a bar for each category.

use dp_data::encode::{Cell, RowNorm};
use dp_data::schema::{Column, ColumnKind, date_text};
use serde::Serialize;

use crate::model::{Model, ModelKind};
use crate::wording::plain;

/// Number of points of a curve.
pub const POINTS: usize = 101;

/// The contributions of all columns to one score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shapes {
    /// The class whose score it is; absent for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The norm by which contributions are divided.
    pub reference_norm: f64,
    /// True if products of columns contribute too, which are not part of any shape.
    pub has_pairs: bool,
    /// The columns, that with the largest effect first.
    pub columns: Vec<Shape>,
}

/// The contribution of one column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shape {
    /// The column.
    pub column: String,
    /// Difference of the largest and the smallest contribution.
    pub effect: f64,
    /// The contributions.
    #[serde(flatten)]
    pub points: Points,
}

/// The contributions of a column, with mean 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Points {
    /// Those of numbers from the minimum to the maximum of the range, equally spaced in the column's coordinate.
    Curve {
        /// The numbers.
        values: Vec<f64>,
        /// True if they are days since 1970-01-01.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        dates: bool,
        /// Their contributions.
        contributions: Vec<f64>,
    },
    /// Those of categories.
    Bars {
        /// The categories.
        categories: Vec<String>,
        /// Their contributions.
        contributions: Vec<f64>,
    },
}

impl Points {
    /// Returns the contributions.
    pub fn contributions(&self) -> &[f64] {
        match self {
            Self::Curve { contributions, .. } | Self::Bars { contributions, .. } => contributions,
        }
    }

    /// Returns the value, to four digits, the day or the category at this position.
    pub fn label(&self, position: usize) -> String {
        match self {
            Self::Curve { values, dates: true, .. } => {
                values.get(position).map_or_else(String::new, |value| date_text(value.round()))
            }
            Self::Curve { values, .. } => {
                let rounded = |value: &f64| plain(format!("{value:.3e}").parse().unwrap_or(*value));
                values.get(position).map_or_else(String::new, rounded)
            }
            Self::Bars { categories, .. } => categories.get(position).cloned().unwrap_or_default(),
        }
    }

    /// Returns the positions of the smallest and of the largest contribution.
    pub fn extremes(&self) -> (usize, usize) {
        let contributions = self.contributions();
        let position = |better: fn(f64, f64) -> bool| {
            (1..contributions.len())
                .fold(0, |best, i| if better(contributions[i], contributions[best]) { i } else { best })
        };
        (position(|a, b| a < b), position(|a, b| a > b))
    }
}

/// Returns the contributions of the columns to the score of class `class` (0 for two classes and for numbers), strongest
/// column first; `None` if the model is not a sum over the columns of a table, or has no such class.
///
/// # Formula
/// ```text
/// f_c(x) = (Σ_j w_j φ_j(x) - mean) / N,   φ_j the features of column c
/// ```
/// The mean is over the points of the curve, or over the categories. A row's score is the sum of `w_j φ_j` over all its columns
/// divided by its own norm; N, the same for all rows, is the root mean square of that norm for values spread evenly over all
/// columns. For a number it is multiplied by half of the range of the label, so that the unit is that of the label.
///
/// # Privacy
/// A function of the released model and of its public schema. Where there are no records, a curve shows noise.
///
/// # Examples
/// ```no_run
/// let file = dp::ModelFile::parse(&std::fs::read("model.json")?)?;
/// for shape in dp::shapes::shapes(&file.model, 0).ok_or("not a table")?.columns {
///     println!("{}: {}", shape.column, shape.effect);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn shapes(model: &Model, class: usize) -> Option<Shapes> {
    let encoder = &model.encoder;
    let schema = encoder.schema().filter(|_| encoder.projection().is_none())?;
    let (name, unit) = match &model.kind {
        ModelKind::LinearClassifier { classes } if class == 0 => (Some(classes.positive.clone()), 1.0),
        ModelKind::MultiClassLinear { classes } => (Some(classes.get(class)?.clone()), 1.0),
        ModelKind::LinearRegression { range } if class == 0 => (None, 0.5 * range.max - 0.5 * range.min),
        _ => return None,
    };
    let weights = model.weights.chunks_exact(encoder.dim().max(1)).nth(class)?;
    let has_pairs = encoder.encoding().map.pairs;
    let mut squares = encoder.encoding().intercept.powi(2);
    let (mut columns, mut curves) = (Vec::new(), 0.0);
    for (position, column) in schema.columns().iter().enumerate() {
        let Some((points, mean_square)) = points(model, weights, position, column) else { continue };
        squares += mean_square;
        curves += f64::from(u8::from(matches!(points, Points::Curve { .. })));
        columns.push(Shape { column: column.name.clone(), effect: 0.0, points });
    }
    if has_pairs {
        squares += curves * (curves - 1.0) / 8.0;
    }
    let norm = squares.sqrt();
    let reference_norm = if encoder.encoding().row_norm == RowNorm::Clip { norm.max(1.0) } else { norm };
    for shape in &mut columns {
        let (Points::Curve { contributions, .. } | Points::Bars { contributions, .. }) = &mut shape.points;
        contributions.iter_mut().for_each(|contribution| *contribution *= unit / reference_norm);
        let (low, high) = shape.points.extremes();
        let contributions = shape.points.contributions();
        shape.effect = contributions.get(high).zip(contributions.get(low)).map_or(0.0, |(high, low)| high - low);
    }
    columns.sort_by(|a, b| b.effect.total_cmp(&a.effect));
    Some(Shapes { class: name, reference_norm, has_pairs, columns })
}

/// Returns the contributions of a column before the division, and the mean square of its features' norm.
fn points(model: &Model, weights: &[f64], position: usize, column: &Column) -> Option<(Points, f64)> {
    let features = |cell: Cell<'_>| model.encoder.column_features(position, cell);
    let (mut contributions, mut squares) = (Vec::new(), 0.0);
    let mut add = |features: &[(usize, f64)]| {
        contributions
            .push(features.iter().map(|(index, value)| weights.get(*index).unwrap_or(&0.0) * value).sum::<f64>());
        squares += features.iter().map(|(_, value)| value * value).sum::<f64>();
    };
    let labels = match &column.kind {
        ColumnKind::Categorical { categories, .. } => {
            let mut labels = categories.clone();
            for category in categories {
                add(&features(Cell::Text(category.as_bytes()))?);
            }
            if column.on_missing == dp_data::schema::OnMissing::Category {
                add(&features(Cell::Missing)?);
                labels.push("<missing>".to_owned());
            }
            Ok(labels)
        }
        ColumnKind::Indicator { .. } => {
            for value in [0.0, 1.0] {
                add(&features(Cell::Number(value))?);
            }
            Ok(vec!["0".to_owned(), "1".to_owned()])
        }
        ColumnKind::Numeric { .. } => {
            let values = model.encoder.column_grid(position, POINTS)?;
            for &value in &values {
                add(&features(Cell::Number(value))?);
            }
            Err(values)
        }
        ColumnKind::Drop => return None,
    };
    let count = contributions.len().max(1) as f64;
    let mean = contributions.iter().sum::<f64>() / count;
    contributions.iter_mut().for_each(|contribution| *contribution -= mean);
    let points = match labels {
        Ok(categories) => Points::Bars { categories, contributions },
        Err(values) => Points::Curve { values, dates: column.is_date(), contributions },
    };
    Some((points, squares / count))
}

#[cfg(test)]
mod tests {
    use dp_data::encode::{Encoder, Encoding, FeatureMap, RowBuffer};
    use dp_data::schema::Schema;
    use dp_losses::LossKind;

    use super::*;

    const COLUMNS: &str = "columns.pay = { type = 'numeric', min = 0, max = 1000 }\n\
         columns.town = { type = 'categorical', categories = ['a', 'b', 'c'] }\n\
         columns.sick = { type = 'indicator' }\n\
         columns.id = { type = 'drop' }";

    fn model(label: &str, map: FeatureMap, loss: LossKind, seed: f64) -> Model {
        let schema = Schema::parse("s", &format!("label = {{ column = 'y', {label} }}\n{COLUMNS}")).unwrap();
        let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS.with_map(map)).unwrap();
        let weights = (0..encoder.dim() * loss.outputs() as usize).map(|i| (seed + i as f64).sin()).collect();
        Model::new(encoder, loss, weights).unwrap()
    }

    /// The difference of two rows' scores times their norms is the difference of their contributions times N.
    #[test]
    fn shapes_add_up_to_scores() {
        let model = model("positive = '1', negative = '0'", FeatureMap::curves(4), LossKind::Logistic, 1.0);
        let shapes = shapes(&model, 0).unwrap();
        assert_eq!((shapes.class.as_deref(), shapes.columns.len(), shapes.has_pairs), (Some("1"), 3, false));
        assert!(shapes.columns.windows(2).all(|pair| pair[0].effect >= pair[1].effect));
        let find = |name: &str| &shapes.columns.iter().find(|shape| shape.column == name).unwrap().points;
        let Points::Curve { values, contributions: pay, .. } = find("pay") else { panic!("a curve") };
        let (town, sick) = (find("town").contributions(), find("sick").contributions());
        let unnormalised = |pay: f64, town: usize, sick: usize| {
            let mut row = RowBuffer::new(&model.encoder);
            let cell = |column: usize| match column {
                0 => Cell::Number(pay),
                1 => Cell::Text([b"a", b"b", b"c"][town]),
                _ => Cell::Number(sick as f64),
            };
            model.encoder.encode_row(cell, None, &mut row).unwrap();
            // The intercept is 1 before the row is scaled.
            row.dot(&model.weights) / row.values().last().unwrap()
        };
        for (i, t, s) in [(0, 0, 0), (17, 1, 1), (50, 2, 0), (100, 1, 1)] {
            let difference = unnormalised(values[i], t, s) - unnormalised(values[30], 0, 0);
            let of_shapes = (pay[i] + town[t] + sick[s]) - (pay[30] + town[0] + sick[0]);
            assert!((difference - of_shapes * shapes.reference_norm).abs() < 1e-9, "{difference} {of_shapes}");
        }
        for shape in &shapes.columns {
            let contributions = shape.points.contributions();
            let mean = contributions.iter().sum::<f64>() / contributions.len() as f64;
            let (low, high) = shape.points.extremes();
            assert!(mean.abs() < 1e-12 && shape.effect == contributions[high] - contributions[low]);
        }
    }

    #[test]
    fn the_reference_norm_is_that_of_values_spread_evenly() {
        for map in [FeatureMap::LINEAR, FeatureMap::curves(3)] {
            let model = model("positive = '1', negative = '0'", map, LossKind::Logistic, 0.0);
            let of_pay = if map.cosines == 0 { 0.34 } else { 0.5 * (1.0 + 0.5 + 1.0 / 3.0) };
            let found = shapes(&model, 0).unwrap().reference_norm;
            // A mean over 101 points instead of an integral.
            assert!((found.powi(2) - (1.0 + of_pay + 1.0 + 0.5)).abs() < 0.02, "{found}");
        }
    }

    #[test]
    fn every_class_and_a_number_have_shapes() {
        let softmax = LossKind::Softmax(dp_losses::Softmax::new(3).unwrap());
        let classes = model("classes = ['p', 'q', 'r']", FeatureMap::curves(2), softmax, 2.0);
        let names: Vec<_> = (0..3).map(|class| shapes(&classes, class).unwrap().class.unwrap()).collect();
        assert_eq!(names, ["p", "q", "r"]);
        assert!(shapes(&classes, 3).is_none());
        let log_cosh = LossKind::LogCosh(dp_losses::LogCosh::new(0.5).unwrap());
        let range = |max: f64| {
            let label = format!("type = 'numeric', min = 0, max = {max}");
            shapes(&model(&label, FeatureMap::LINEAR, log_cosh, 3.0), 0).unwrap()
        };
        let (one, ten) = (range(1.0), range(10.0));
        assert_eq!(one.class, None);
        assert!((ten.columns[0].effect / one.columns[0].effect - 10.0).abs() < 1e-12);
    }
}
