//! The coefficients of a model in the units of its columns.

use dp_data::encode::NumericRange;
use dp_data::schema::{ColumnKind, OnMissing, Scale};

use crate::model::Model;

/// A linear form of a record's own numbers, from which the score follows.
///
/// # Formula
/// ```text
/// f(x)  = intercept + Σ_j coefficients[j] x_j,     x_j a number, clamped to its range, or 1 for the record's category, else 0
/// score = f(x) / |z|,                              z the features of the record before their norm is bounded
/// ```
/// For two classes the sign of `f` is that of the score. `|z|` is the same for all classes of a record, so that the largest `f` is
/// the largest score.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearForm {
    /// One per feature of the model, without the intercept.
    pub coefficients: Vec<f64>,
    /// The constant.
    pub intercept: f64,
}

impl LinearForm {
    /// Returns one form per score of a model of a table; `None` if a column is mapped by anything but a line, features are
    /// projected, or there are Fourier features.
    ///
    /// # Examples
    /// ```
    /// # use dp_data::{Schema, read::Input};
    /// # let schema = Schema::parse("schema.toml", "label = { column = 'well', positive = 'yes', negative = 'no' }\n\
    /// #     columns.dose = { type = 'numeric', min = 0, max = 30 }")?;
    /// # let mut table = "dose,well\n".to_owned();
    /// # (0..2000).for_each(|i| table.push_str(&format!("{},{}\n", i % 31, if i % 31 > 15 { "yes" } else { "no" })));
    /// # let input = Input::from_bytes("people.csv", table.into_bytes());
    /// use dp::LinearForm;
    /// use dp_data::encode::FeatureMap;
    ///
    /// let training = dp::Training::new(1.0, 1e-6)?.with_map(FeatureMap::LINEAR);
    /// let model = training.on_csv(&schema, input)?.model;
    /// let forms = LinearForm::of(&model).ok_or("not linear")?;
    /// // The dose from which people are predicted to be well.
    /// let dose = -forms[0].intercept / forms[0].coefficients[0];
    /// assert!((10.0..20.0).contains(&dose));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(model: &Model) -> Option<Vec<Self>> {
        let encoder = &model.encoder;
        let (schema, encoding) = (encoder.schema()?, encoder.encoding());
        if encoder.projection().is_some() || !encoding.map.is_linear() || encoding.fourier.is_some() {
            return None;
        }
        // Each feature is `slope · x + offset`.
        let mut features = Vec::new();
        for column in schema.columns() {
            match &column.kind {
                ColumnKind::Drop => {}
                ColumnKind::Indicator { .. } => features.push((1.0, 0.0)),
                ColumnKind::Numeric { min, max, log1p, scale, cosines, .. } => {
                    let is_line = !log1p && scale.is_none_or(|scale| scale == Scale::Linear);
                    if !is_line || cosines.is_some_and(|cosines| cosines > 0) {
                        return None;
                    }
                    let width = max - min;
                    features.push(match encoding.range {
                        _ if !(width > 0.0) => (0.0, 0.0),
                        NumericRange::Symmetric => (2.0 / width, -(min / width + max / width)),
                        NumericRange::Unit => (1.0 / width, -min / width),
                    });
                }
                ColumnKind::Categorical { categories, .. } => {
                    let width = categories.len() + usize::from(column.on_missing == OnMissing::Category);
                    features.extend(std::iter::repeat_n((1.0, 0.0), width));
                }
            }
        }
        let form = |weights: &[f64]| {
            let constant = weights.get(features.len()).map_or(0.0, |weight| weight * encoding.intercept);
            let scaled = features.iter().zip(weights);
            Self {
                coefficients: scaled.clone().map(|((slope, _), weight)| slope * weight).collect(),
                intercept: scaled.fold(constant, |sum, ((_, offset), weight)| sum + offset * weight),
            }
        };
        Some(model.weights.chunks_exact(encoder.dim().max(1)).map(form).collect())
    }
}

#[cfg(test)]
mod tests {
    use dp_data::encode::{Cell, Encoder, Encoding, FeatureMap, RowBuffer, RowNorm};
    use dp_data::schema::Schema;
    use dp_losses::LossKind;

    use super::*;

    fn schema(column: &str) -> Schema {
        Schema::parse(
            "schema.toml",
            &format!(
                "label = {{ column = 'y', classes = ['a', 'b', 'c'] }}\n\
                 columns.x = {{ type = 'numeric', min = -4, max = 10 {column} }}\n\
                 columns.flag = {{ type = 'indicator' }}\n\
                 columns.ward = {{ type = 'categorical', categories = ['A', 'B'], on_missing = 'category' }}\n\
                 columns.same = {{ type = 'numeric', min = 3, max = 3 }}\n\
                 columns.note = {{ type = 'drop' }}"
            ),
        )
        .unwrap()
    }

    fn model(schema: &Schema, encoding: Encoding) -> Model {
        let encoder = Encoder::new(schema, encoding).unwrap();
        let weights = (0..3 * encoder.dim()).map(|i| f64::from((7 * i as u32 + 3) % 11) - 5.0).collect();
        let loss = LossKind::Softmax(dp_losses::Softmax::new(3).unwrap());
        Model::new(encoder, loss, weights).unwrap()
    }

    #[test]
    fn scores_are_forms_over_the_norm() {
        for encoding in
            [Encoding::UNIT_ROWS, Encoding::unit_scale(RowNorm::Clip), Encoding::UNIT_ROWS.with_intercept(0.0)]
        {
            let model = model(&schema(""), encoding);
            let forms = LinearForm::of(&model).unwrap();
            let mut row = RowBuffer::new(&model.encoder);
            for (x, flag, ward) in [(-4.0, 0.0, 0), (2.5, 1.0, 1), (10.0, 1.0, 2), (99.0, 0.0, 0)] {
                let name: &[u8] = [b"A".as_slice(), b"B", b""][ward];
                let cells = [Cell::Number(x), Cell::Number(flag), Cell::Text(name), Cell::Number(3.0), Cell::Missing];
                model.encoder.encode_row(|column| cells[column], None, &mut row).unwrap();
                let mut scores = [0.0; 3];
                model.score(&row, &mut scores);
                let mut numbers = vec![f64::min(x, 10.0), flag, 0.0, 0.0, 0.0, 3.0];
                numbers[2 + ward] = 1.0;
                let of = |form: &LinearForm| {
                    form.intercept + form.coefficients.iter().zip(&numbers).map(|(a, b)| a * b).sum::<f64>()
                };
                let values: Vec<f64> = forms.iter().map(of).collect();
                // The norm is that of the record: the same for all classes.
                let norm = values[0] / scores[0];
                for (value, score) in values.iter().zip(scores) {
                    assert!((value - norm * score).abs() < 1e-12, "{values:?} {scores:?}");
                }
                assert!(norm > 0.0);
            }
        }
    }

    #[test]
    fn curves_have_no_form() {
        for column in [", scale = 'log'", ", cosines = 2"] {
            assert_eq!(LinearForm::of(&model(&schema(column), Encoding::UNIT_ROWS)), None, "{column}");
        }
        let curved = Encoding::UNIT_ROWS.with_map(FeatureMap::curves(2));
        let joint = Encoding::UNIT_ROWS.with_fourier(dp_data::encode::FourierFeatures::new(3));
        for encoding in [curved, joint] {
            assert_eq!(LinearForm::of(&model(&schema(""), encoding)), None);
        }
    }
}
