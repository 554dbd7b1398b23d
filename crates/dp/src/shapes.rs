//! The contribution of each column to the score of a linear model: a curve for numbers, a bar for each category.

use std::collections::{BTreeMap, BTreeSet};

use dp_data::encode::{Cell, RowNorm};
use dp_data::schema::{Column, ColumnKind, date_text};
use dp_optim::DerivesModel as _;
use serde::Serialize;

use crate::model::{Model, ModelFile, ModelKind};
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
    /// True if random Fourier features of all columns contribute too, which are not part of any shape.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_fourier: bool,
    /// True if the standard errors of the contributions due to the noise are known.
    pub has_standard_errors: bool,
    /// The columns, by decreasing effect.
    pub columns: Vec<Shape>,
}

/// The contribution of one column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shape {
    /// The column.
    pub column: String,
    /// Difference of the largest and the smallest contribution.
    pub effect: f64,
    /// The standard error of this difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
    /// True if no contribution exceeds what noise alone reaches with probability 0.05; absent if standard errors are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_within_noise: Option<bool>,
    /// The slope: the change of the contribution per unit of the number, if it is linear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_unit: Option<Coefficient>,
    /// The contributions.
    #[serde(flatten)]
    pub points: Points,
    /// The standard error of each contribution; empty if unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub standard_errors: Vec<f64>,
}

/// A coefficient in the unit of its column.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Coefficient {
    /// The coefficient.
    pub value: f64,
    /// Its standard error, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
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
        extremes(self.contributions())
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
/// columns. For a numeric label, contributions are multiplied by half of its range, so that they are in the label's unit.
///
/// A standard error is that of the privacy noise alone, not of the sample. It is known if the noise was added to the weights at
/// the end ([`DerivesModel::weight_noise`](dp_optim::DerivesModel::weight_noise)), with standard deviation σ each:
/// `σ ‖φ(x) - mean φ‖ / N`, and `σ ‖φ(x) - φ(x')‖ / N` for a difference. Other noise acts through the curvature of the records,
/// which is not released.
///
/// A column is within the noise if no contribution exceeds `t` standard errors: `t = √(2 log 40k)` for `k` categories and for a line,
/// `√m + √(2 log 20)` for `m` functions of a number, which noise alone exceeds with probability below 0.05 if it is Gaussian.
///
/// # Privacy
/// A function of the released model and of its public schema. Where there are no records, a curve shows noise.
///
/// # Examples
/// ```no_run
/// let file = dp::ModelFile::parse(&std::fs::read("model.json")?)?;
/// for shape in dp::shapes::shapes(&file, 0).ok_or("not a table")?.columns {
///     println!("{}: {} ± {:?}", shape.column, shape.effect, shape.standard_error);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn shapes(file: &ModelFile, class: usize) -> Option<Shapes> {
    let noise = file.certificate.derivation.weight_noise().map(|noise| noise.std_dev());
    of_model(&file.model, class, noise)
}

/// Returns the shapes; `noise` is the standard deviation of the noise on a weight.
fn of_model(model: &Model, class: usize, noise: Option<f64>) -> Option<Shapes> {
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
        let Some(grid) = Grid::new(model, position, column) else { continue };
        squares += grid.mean_square();
        curves += f64::from(u8::from(grid.labels.is_err()));
        columns.push((column, grid));
    }
    if has_pairs {
        squares += curves * (curves - 1.0) / 8.0;
    }
    let has_fourier = encoder.encoding().fourier.is_some();
    if has_fourier {
        // Their squared norm is that of all other features.
        squares *= 2.0;
    }
    let norm = squares.sqrt();
    let reference_norm = if encoder.encoding().row_norm == RowNorm::Clip { norm.max(1.0) } else { norm };
    let per_norm = unit / reference_norm;
    let shape =
        |(column, grid): (&Column, Grid)| grid.shape(column, weights, per_norm, noise.map(|noise| noise * per_norm));
    let mut columns: Vec<Shape> = columns.into_iter().map(shape).collect();
    columns.sort_by(|a, b| b.effect.total_cmp(&a.effect));
    let has_standard_errors = noise.is_some();
    Some(Shapes { class: name, reference_norm, has_pairs, has_fourier, has_standard_errors, columns })
}

/// Features that are not 0: positions and values.
type Features = Vec<(usize, f64)>;

/// Returns the sum of the products of features at the same positions.
fn product(a: &Features, b: &Features) -> f64 {
    let at = |index| b.iter().filter(|(other, _)| *other == index).map(|(_, value)| value).sum::<f64>();
    a.iter().map(|&(index, value)| value * at(index)).sum()
}

/// Returns the distance of features.
fn distance(a: &Features, b: &Features) -> f64 {
    (product(a, a) - 2.0 * product(a, b) + product(b, b)).max(0.0).sqrt()
}

/// Numbers or categories of a column with their features.
struct Grid {
    /// The categories, or the numbers.
    labels: Result<Vec<String>, Vec<f64>>,
    /// The features of each.
    features: Vec<Features>,
}

impl Grid {
    /// Returns the grid of a column that has features.
    fn new(model: &Model, position: usize, column: &Column) -> Option<Self> {
        let of = |cell: Cell<'_>| model.encoder.column_features(position, cell);
        let (labels, features): (_, Option<Vec<_>>) = match &column.kind {
            ColumnKind::Categorical { categories, .. } => {
                let has_missing = column.on_missing == dp_data::schema::OnMissing::Category;
                let missing = has_missing.then(|| ("<missing>".to_owned(), of(Cell::Missing)));
                let named = categories.iter().map(|category| (category.clone(), of(Cell::Text(category.as_bytes()))));
                let (labels, features): (Vec<_>, Vec<_>) = named.chain(missing).unzip();
                (Ok(labels), features.into_iter().collect())
            }
            ColumnKind::Indicator { .. } => {
                let features = [0.0, 1.0].map(|value| of(Cell::Number(value)));
                (Ok(vec!["0".to_owned(), "1".to_owned()]), features.into_iter().collect())
            }
            ColumnKind::Numeric { .. } => {
                let values = model.encoder.column_grid(position, POINTS)?;
                let features = values.iter().map(|&value| of(Cell::Number(value))).collect();
                (Err(values), features)
            }
            ColumnKind::Drop => return None,
        };
        Some(Self { labels, features: features? })
    }

    /// Returns the mean of the squared norm of the features.
    fn mean_square(&self) -> f64 {
        self.features.iter().map(|features| product(features, features)).sum::<f64>() / self.count()
    }

    fn count(&self) -> f64 {
        self.features.len().max(1) as f64
    }

    /// Returns the distance of the features of each label from their mean.
    fn distances_from_mean(&self) -> Vec<f64> {
        let mut mean: BTreeMap<usize, f64> = BTreeMap::new();
        for &(index, value) in self.features.iter().flatten() {
            *mean.entry(index).or_default() += value / self.count();
        }
        let of_mean: f64 = mean.values().map(|value| value * value).sum();
        let distance = |features: &Features| {
            let both: f64 = features.iter().map(|(index, value)| value * mean.get(index).unwrap_or(&0.0)).sum();
            (product(features, features) - 2.0 * both + of_mean).max(0.0).sqrt()
        };
        self.features.iter().map(distance).collect()
    }

    /// Returns the range of the numbers if the features change in proportion to them.
    fn range_of_line(&self) -> Option<f64> {
        let values = self.labels.as_ref().err()?;
        let (first, last) = (*values.first()?, *values.last()?);
        let (from, to) = (self.features.first()?, self.features.last()?);
        let whole = distance(from, to);
        let is_between = |value: f64, features: &Features| {
            let share = (value - first) / (last - first);
            let (before, after) = (distance(from, features), distance(features, to));
            // A point at these distances from both ends lies on the line between them.
            (before - share * whole).abs() <= 1e-6 && (after - (1.0 - share) * whole).abs() <= 1e-6
        };
        let is_line = last > first && values.iter().zip(&self.features).all(|(value, at)| is_between(*value, at));
        is_line.then_some(last - first)
    }

    /// Returns the number of standard errors that noise alone exceeds somewhere with probability below 0.05.
    fn most_of_noise(&self, is_line: bool) -> f64 {
        let functions: BTreeSet<usize> = self.features.iter().flatten().map(|(index, _)| *index).collect();
        match &self.labels {
            Err(_) if !is_line => (functions.len() as f64).sqrt() + (2.0 * 20_f64.ln()).sqrt(),
            labels => (2.0 * (40.0 * labels.as_ref().map_or(1, Vec::len) as f64).ln()).sqrt(),
        }
    }

    /// Returns the shape; `scale` multiplies contributions, `noise` is the standard error of a weight times `scale`.
    fn shape(self, column: &Column, weights: &[f64], scale: f64, noise: Option<f64>) -> Shape {
        let contribution = |features: &Features| {
            features.iter().map(|(index, value)| weights.get(*index).unwrap_or(&0.0) * value).sum::<f64>()
        };
        let raw: Vec<f64> = self.features.iter().map(contribution).collect();
        let mean = raw.iter().sum::<f64>() / self.count();
        let contributions: Vec<f64> = raw.iter().map(|raw| (raw - mean) * scale).collect();
        let errors = |noise: f64| self.distances_from_mean().iter().map(|distance| noise * distance).collect();
        let standard_errors = noise.map_or_else(Vec::new, errors);
        let difference = |low: usize, high: usize| {
            let value = contributions.get(low).zip(contributions.get(high)).map_or(0.0, |(low, high)| high - low);
            let ends = self.features.get(low).zip(self.features.get(high));
            (value, noise.map(|noise| noise * ends.map_or(0.0, |(low, high)| distance(low, high))))
        };
        let per_unit = self.range_of_line().map(|range| {
            let (value, standard_error) = difference(0, contributions.len().saturating_sub(1));
            Coefficient { value: value / range, standard_error: standard_error.map(|error| error / range) }
        });
        let (low, high) = extremes(&contributions);
        let (effect, standard_error) = difference(low, high);
        let most = self.most_of_noise(per_unit.is_some());
        // The middle of a line differs from the mean by roundings alone.
        let is_within = |(value, error): (&f64, &f64)| value.abs() <= most * error + 1e-9 * effect;
        let is_within_noise = noise.map(|_| contributions.iter().zip(&standard_errors).all(is_within));
        let points = match self.labels {
            Ok(categories) => Points::Bars { categories, contributions },
            Err(values) => Points::Curve { values, dates: column.is_date(), contributions },
        };
        let column = column.name.clone();
        Shape { column, effect, standard_error, is_within_noise, per_unit, points, standard_errors }
    }
}

/// Returns the positions of the smallest and of the largest contribution.
fn extremes(contributions: &[f64]) -> (usize, usize) {
    let position = |better: fn(f64, f64) -> bool| {
        (1..contributions.len()).fold(0, |best, i| if better(contributions[i], contributions[best]) { i } else { best })
    };
    (position(|a, b| a < b), position(|a, b| a > b))
}

#[cfg(test)]
mod tests {
    use dp_data::encode::{Encoder, Encoding, FeatureMap, FourierFeatures, RowBuffer};
    use dp_data::schema::Schema;
    use dp_losses::LossKind;

    use super::*;

    const COLUMNS: &str = "columns.pay = { type = 'numeric', min = 0, max = 1000 }\n\
         columns.town = { type = 'categorical', categories = ['a', 'b', 'c'] }\n\
         columns.sick = { type = 'indicator' }\n\
         columns.id = { type = 'drop' }";

    fn model(label: &str, map: FeatureMap, loss: LossKind, seed: f64) -> Model {
        model_of(label, Encoding::UNIT_ROWS.with_map(map), loss, seed)
    }

    fn model_of(label: &str, encoding: Encoding, loss: LossKind, seed: f64) -> Model {
        let schema = Schema::parse("s", &format!("label = {{ column = 'y', {label} }}\n{COLUMNS}")).unwrap();
        let encoder = Encoder::new(&schema, encoding).unwrap();
        let weights = (0..encoder.dim() * loss.outputs() as usize).map(|i| (seed + i as f64).sin()).collect();
        Model::new(encoder, loss, weights).unwrap()
    }

    /// The difference of two rows' scores times their norms is the difference of their contributions times N.
    #[test]
    fn shapes_add_up_to_scores() {
        let model = model("positive = '1', negative = '0'", FeatureMap::curves(4), LossKind::Logistic, 1.0);
        let shapes = of_model(&model, 0, None).unwrap();
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
            let found = of_model(&model, 0, None).unwrap();
            assert!(!found.has_fourier);
            // A mean over 101 points instead of an integral.
            let squared = found.reference_norm.powi(2);
            assert!((squared - (1.0 + of_pay + 1.0 + 0.5)).abs() < 0.02, "{squared}");
            // Fourier features are as long as all others, and in no shape.
            let encoding = Encoding::UNIT_ROWS.with_map(map).with_fourier(FourierFeatures::new(5));
            let joint = model_of("positive = '1', negative = '0'", encoding, LossKind::Logistic, 0.0);
            let joint = of_model(&joint, 0, None).unwrap();
            assert!((joint.reference_norm.powi(2) - 2.0 * squared).abs() < 1e-9 && joint.has_fourier);
        }
    }

    #[test]
    fn every_class_and_a_number_have_shapes() {
        let softmax = LossKind::Softmax(dp_losses::Softmax::new(3).unwrap());
        let classes = model("classes = ['p', 'q', 'r']", FeatureMap::curves(2), softmax, 2.0);
        let names: Vec<_> = (0..3).map(|class| of_model(&classes, class, None).unwrap().class.unwrap()).collect();
        assert_eq!(names, ["p", "q", "r"]);
        assert!(of_model(&classes, 3, None).is_none());
        let log_cosh = LossKind::LogCosh(dp_losses::LogCosh::new(0.5).unwrap());
        let range = |max: f64| {
            let label = format!("type = 'numeric', min = 0, max = {max}");
            of_model(&model(&label, FeatureMap::LINEAR, log_cosh, 3.0), 0, None).unwrap()
        };
        let (one, ten) = (range(1.0), range(10.0));
        assert_eq!(one.class, None);
        assert!((ten.columns[0].effect / one.columns[0].effect - 10.0).abs() < 1e-12);
    }

    /// Weights of standard deviation σ: each standard error is that of 4,000 models with drawn weights. A sample standard deviation of
    /// 4,000 has a relative standard error of 0.011; none of some hundred exceeds 0.06 but with a chance below 1e-4.
    #[test]
    fn standard_errors_are_those_of_drawn_weights() {
        use rand::RngExt as _;
        const DRAWS: usize = 4000;
        const SIGMA: f64 = 0.3;
        for (label, map, loss) in [
            ("positive = '1', negative = '0'", FeatureMap::LINEAR, LossKind::Logistic),
            ("positive = '1', negative = '0'", FeatureMap::curves(3), LossKind::Logistic),
            (
                "type = 'numeric', min = -5, max = 20",
                FeatureMap::LINEAR,
                LossKind::LogCosh(dp_losses::LogCosh::new(0.5).unwrap()),
            ),
        ] {
            let centre = model(label, map, loss, 1.0);
            let of_centre = of_model(&centre, 0, Some(SIGMA)).unwrap();
            assert!(of_centre.has_standard_errors);
            let mut rng = dp_mechanisms::SeededRng::new(5);
            let mut normal = || (0..12).map(|_| rng.random_range(-0.5..0.5)).sum::<f64>();
            let sums: &mut BTreeMap<(String, usize), (f64, f64)> = &mut BTreeMap::new();
            let slopes: &mut (f64, f64) = &mut (0.0, 0.0);
            for _ in 0..DRAWS {
                let weights = centre.weights.iter().map(|weight| weight + SIGMA * normal()).collect();
                let drawn = of_model(&Model { weights, ..centre.clone() }, 0, None).unwrap();
                for shape in &drawn.columns {
                    let centred = of_centre.columns.iter().find(|other| other.column == shape.column).unwrap();
                    for (i, value) in shape.points.contributions().iter().enumerate().step_by(20) {
                        let difference = value - centred.points.contributions()[i];
                        let sum = sums.entry((shape.column.clone(), i)).or_default();
                        *sum = (sum.0 + difference, sum.1 + difference * difference);
                    }
                    if let (Some(slope), Some(known)) = (shape.per_unit, centred.per_unit) {
                        slopes.0 += (slope.value - known.value).powi(2);
                        slopes.1 = known.standard_error.unwrap();
                    }
                }
            }
            for shape in &of_centre.columns {
                for (i, error) in shape.standard_errors.iter().enumerate().step_by(20) {
                    let found = (sums[&(shape.column.clone(), i)].1 / DRAWS as f64).sqrt();
                    assert!((found - error).abs() <= 0.06 * error + 1e-12, "{} {i}: {found} {error}", shape.column);
                }
            }
            assert_eq!(slopes.1 > 0.0, map.cosines == 0);
            assert!(((slopes.0 / DRAWS as f64).sqrt() - slopes.1).abs() <= 0.06 * slopes.1, "{slopes:?}");
        }
    }

    /// 2,000 models of noise alone: each column is beyond it in less than 5% of them; one with a clear effect always is.
    #[test]
    fn noise_alone_is_within_the_noise() {
        use rand::RngExt as _;
        for map in [FeatureMap::LINEAR, FeatureMap::curves(4)] {
            let centre = model("positive = '1', negative = '0'", map, LossKind::Logistic, 1.0);
            let mut rng = dp_mechanisms::SeededRng::new(6);
            let mut normal = || (0..12).map(|_| rng.random_range(-0.5..0.5)).sum::<f64>();
            let mut beyond: BTreeMap<String, usize> = BTreeMap::new();
            for _ in 0..2000 {
                let mut weights: Vec<f64> = centre.weights.iter().map(|_| normal()).collect();
                let noise = of_model(&Model { weights: weights.clone(), ..centre.clone() }, 0, Some(1.0)).unwrap();
                for shape in &noise.columns {
                    *beyond.entry(shape.column.clone()).or_default() +=
                        usize::from(shape.is_within_noise == Some(false));
                }
                weights[0] += 30.0;
                let clear = of_model(&Model { weights, ..centre.clone() }, 0, Some(1.0)).unwrap();
                assert_eq!((clear.columns[0].column.as_str(), clear.columns[0].is_within_noise), ("pay", Some(false)));
            }
            assert!(beyond.values().all(|count| *count < 100), "{beyond:?}");
        }
    }

    #[test]
    fn a_line_has_a_coefficient_in_the_unit_of_its_column() {
        let linear = model("positive = '1', negative = '0'", FeatureMap::LINEAR, LossKind::Logistic, 1.0);
        let shapes = of_model(&linear, 0, Some(0.1)).unwrap();
        let pay = shapes.columns.iter().find(|shape| shape.column == "pay").unwrap();
        let Coefficient { value, standard_error } = pay.per_unit.unwrap();
        // Two per range of 1,000: the feature runs from -1 to 1.
        assert!((value - linear.weights[0] * 2.0 / 1000.0 / shapes.reference_norm).abs() < 1e-12, "{value}");
        assert!((standard_error.unwrap() - 0.1 * 2.0 / 1000.0 / shapes.reference_norm).abs() < 1e-12);
        assert!(pay.standard_error.unwrap() > 999.0 * standard_error.unwrap());
        for column in ["town", "sick"] {
            assert_eq!(shapes.columns.iter().find(|shape| shape.column == column).unwrap().per_unit, None);
        }
        for map in [FeatureMap::curves(2), FeatureMap { scale: dp_data::schema::Scale::Log, ..FeatureMap::LINEAR }] {
            let curved = model("positive = '1', negative = '0'", map, LossKind::Logistic, 1.0);
            let shapes = of_model(&curved, 0, None).unwrap();
            assert!(shapes.columns.iter().all(|shape| shape.per_unit.is_none() && shape.standard_errors.is_empty()));
            assert!(!shapes.has_standard_errors);
        }
    }
}
