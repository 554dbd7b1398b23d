//! The model file: model, certificate and the hash that binds them, in one JSON object.
//!
//! ```json
//! { "model": { "schema": "dp.model/1", … }, "certificate": { … }, "certificate_sha256": "…" }
//! ```
//! The certificate contains the SHA-256 of the canonical model, and the file that of the canonical certificate. The hashes
//! detect accidents and careless edits. Even if an edit recomputes them, the guarantee must still follow from the recipe (see
//! [`crate::verify`]).

use dp_accountant::certificate::Assumption;
use dp_data::encode::{Encoder, InputFormat, LibsvmFormat, RowBuffer};
use dp_data::error::DataError;
use dp_data::schema::{FILE, Label, LabelKind, LabelRange, Review};
use dp_losses::LossKind;
use dp_optim::DerivesModel;
use dp_optim::derivation::ModelTerms;
use dp_optim::recipes::AnyDerivation;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical;
use crate::error::{Error, ErrorKind};
use crate::metrics::{logit, winner};
use crate::protection;
use crate::sealed::{self, Content, to_value};

/// The format of the model member.
pub const SCHEMA: &str = "dp.model/1";

/// Name of a feature count taken from libsvm data, in the schema assumption of the certificate.
pub const FEATURE_COUNT: &str = "number of features";

/// A released linear model, with everything needed to apply it to raw records.
///
/// # Formula
/// ```text
/// score_c(record) = Σ_j weights[c · d + j] · encode(record)[j],     d features
/// linear-classifier   one score:   positive if it is greater than the threshold, 0 by default, else negative
/// multi-class-linear  C scores:    the class of the largest, the first of them where they tie
/// linear-regression   one score t: min + (clamp(t, -1, 1) + 1) (max - min) / 2
/// ```
// Unknown members are rejected on reading, by comparison with the text that would be written: `flatten` rules out
// `deny_unknown_fields`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// [`SCHEMA`].
    pub schema: String,
    /// The kind of model, with the names of its predictions.
    #[serde(flatten)]
    pub kind: ModelKind,
    /// The loss that it was trained with.
    pub loss: LossKind,
    /// The public map from raw cells to features.
    pub encoder: Encoder,
    /// Names of the features, one per weight of a class.
    pub features: Vec<String>,
    /// The released weights, ordered by class.
    pub weights: Vec<f64>,
    /// The released threshold of two classes; `None` for 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
}

/// The kind of model, with the names of its predictions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ModelKind {
    /// A weighted sum of features, compared with the threshold.
    LinearClassifier {
        /// The names of the two classes.
        classes: Classes,
    },
    /// A weighted sum of features for each class; the class of the largest is predicted.
    MultiClassLinear {
        /// The names of the classes.
        classes: Vec<String>,
    },
    /// A weighted sum of features, mapped to the range of the label.
    LinearRegression {
        /// The range of the label.
        range: LabelRange,
    },
}

/// A prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Prediction<'m> {
    /// A class.
    Class {
        /// Its index: 0 for the positive one of two classes; of several, the position in the list.
        index: usize,
        /// Its name.
        name: &'m str,
    },
    /// A number in the label's unit.
    Number(f64),
}

/// The names of two classes in predictions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classes {
    /// The class for a score greater than the threshold.
    pub positive: String,
    /// The class otherwise.
    pub negative: String,
}

impl ModelKind {
    /// Returns the kind that predicts this label. Each of two classes is named by its first declared value, or `other` if it
    /// holds all remaining values.
    ///
    /// # Errors
    /// An unsupported kind of label.
    pub fn of(label: &Label) -> Result<Self, Error> {
        match &label.kind {
            LabelKind::TwoClasses { positive, negative, .. } => {
                let first = |values: &[String]| values.first().cloned().unwrap_or_else(|| "other".to_owned());
                Ok(Self::LinearClassifier { classes: Classes { positive: first(positive), negative: first(negative) } })
            }
            LabelKind::Classes { classes, .. } => Ok(Self::MultiClassLinear { classes: classes.clone() }),
            LabelKind::Number(range) => Ok(Self::LinearRegression { range: *range }),
            _ => Err(malformed("the label is of a kind that this version cannot predict")),
        }
    }

    /// Returns whether a model of this kind can have been trained with this loss.
    fn fits(&self, loss: LossKind) -> bool {
        match self {
            Self::LinearClassifier { .. } => loss.outputs() == 1,
            // Softmax regression, or one-vs-rest classification.
            Self::MultiClassLinear { classes } => {
                loss.is_classification() || loss.classes().is_some_and(|known| known as usize == classes.len())
            }
            Self::LinearRegression { .. } => loss.classes().is_none(),
        }
    }

    /// Returns the number of scores per record.
    pub fn outputs(&self) -> usize {
        match self {
            Self::LinearClassifier { .. } | Self::LinearRegression { .. } => 1,
            Self::MultiClassLinear { classes } => classes.len(),
        }
    }
}

impl Model {
    /// Creates a model from its released weights.
    ///
    /// # Privacy
    /// The rejection of weights is a function of the release, noise included, so it reveals nothing beyond the release
    /// (post-processing): the guarantee covers the error too.
    ///
    /// # Errors
    /// [`ErrorKind::NotFinite`]; an unsupported kind of label.
    pub fn new(encoder: Encoder, loss: LossKind, weights: Vec<f64>) -> Result<Self, Error> {
        check_finite(&weights)?;
        Ok(Self {
            schema: SCHEMA.to_owned(),
            kind: ModelKind::of(encoder.label())?,
            loss,
            features: encoder.feature_names(),
            encoder,
            weights,
            threshold: None,
        })
    }

    /// Creates a model from released numbers under these terms; the last number may be the threshold.
    ///
    /// # Privacy
    /// As [`new`](Self::new).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_release(encoder: Encoder, terms: &ModelTerms, mut released: Vec<f64>) -> Result<Self, Error> {
        check_finite(&released)?;
        let threshold = if terms.has_threshold { released.pop() } else { None };
        Ok(Self { threshold, ..Self::new(encoder, terms.loss, released)? })
    }

    /// Returns all released numbers: the weights, then the threshold if there is one.
    pub fn released(&self) -> Vec<f64> {
        self.weights.iter().copied().chain(self.threshold).collect()
    }

    /// Returns the prediction for the scores of a record.
    pub fn prediction(&self, scores: &[f64]) -> Prediction<'_> {
        let first = scores.first().copied().unwrap_or_default();
        match &self.kind {
            ModelKind::LinearClassifier { classes } => {
                let positive = first > self.threshold.unwrap_or_default();
                let (index, name) = if positive { (0, &classes.positive) } else { (1, &classes.negative) };
                Prediction::Class { index, name }
            }
            ModelKind::MultiClassLinear { classes } => {
                let index = winner(scores);
                Prediction::Class { index, name: classes.get(index).map_or("", |class| class) }
            }
            ModelKind::LinearRegression { range } => Prediction::Number(range.value(first)),
        }
    }

    /// Computes the scores of an encoded record, one per element of `scores`.
    pub fn score(&self, row: &RowBuffer, scores: &mut [f64]) {
        let dim = self.encoder.dim();
        for (score, weights) in scores.iter_mut().zip(self.weights.chunks_exact(dim.max(1))) {
            *score = row.dot(weights);
        }
    }

    /// Returns the prediction for an encoded record; `None` if all its features are unknown.
    pub fn predict(&self, row: &RowBuffer) -> Option<Prediction<'_>> {
        if row.is_null() {
            return None;
        }
        let mut scores = vec![0.0; self.kind.outputs()];
        self.score(row, &mut scores);
        Some(self.prediction(&scores))
    }

    /// Returns the number of models in the weights: one, or one per class in one-vs-rest classification.
    pub fn models(&self) -> u64 {
        match &self.kind {
            ModelKind::MultiClassLinear { classes } if self.loss.outputs() == 1 => classes.len() as u64,
            _ => 1,
        }
    }

    /// Returns whether the loss interprets the scores as probabilities of the classes: their softmax, or one score as the logit
    /// of the positive class.
    pub fn has_probabilities(&self) -> bool {
        match self.kind {
            ModelKind::MultiClassLinear { .. } => matches!(self.loss, LossKind::Softmax(_)),
            ModelKind::LinearClassifier { .. } => self.loss == LossKind::Logistic,
            ModelKind::LinearRegression { .. } => false,
        }
    }

    /// Returns the model with this decision threshold on the probability of the positive class: post-processing of the same
    /// release. `None` for a model without such a probability, and for a number outside (0, 1).
    pub fn deciding_at(self, probability: f64) -> Option<Self> {
        let decides = matches!(self.kind, ModelKind::LinearClassifier { .. }) && self.has_probabilities();
        let is_valid = probability > 0.0 && probability < 1.0;
        (decides && is_valid).then(|| Self { threshold: Some(logit(probability)), ..self })
    }

    /// Returns the SHA-256 of the canonical form.
    ///
    /// # Errors
    /// A weight that JSON cannot hold.
    pub fn sha256(&self) -> Result<String, Error> {
        Ok(canonical::sha256(&to_value(self)?))
    }

    /// Returns the assumption about the schema that the certificate must state.
    fn schema_assumption(&self) -> Assumption {
        let columns = assumed_public(&self.encoder);
        if columns.is_empty() { Assumption::PublicSchema } else { Assumption::AssumedPublic { columns } }
    }

    /// Returns the assumptions that the certificate must state besides those of the recipe: about the schema, and that a
    /// projection and Fourier features are independent of the records.
    pub fn required_assumptions(&self) -> Vec<Assumption> {
        let is_drawn = self.encoder.projection().is_some() || self.encoder.encoding().fourier.is_some();
        let drawn = is_drawn.then_some(Assumption::PublicProjection);
        [self.schema_assumption()].into_iter().chain(drawn).collect()
    }

    /// Returns further assumptions implied by the encoder, which certificates of earlier versions omit: that every record
    /// conforms to the schema, so that none could stop the training.
    pub fn implied_assumptions(&self) -> Vec<Assumption> {
        if self.encoder.can_refuse_records() { vec![Assumption::EveryRecordConforms] } else { Vec::new() }
    }

    /// Returns the required and the implied assumptions: those that the certificate of a new model states besides those of the
    /// recipe.
    pub fn assumptions(&self) -> Vec<Assumption> {
        [self.required_assumptions(), self.implied_assumptions()].concat()
    }

    /// Checks that the parts are consistent.
    fn check(&self) -> Result<(), &'static str> {
        if self.schema != SCHEMA {
            return Err("the model is of another format");
        }
        let weights = self.encoder.dim().checked_mul(self.kind.outputs());
        if Some(self.weights.len()) != weights || self.features != self.encoder.feature_names() {
            return Err("weights, feature names and encoder do not fit each other");
        }
        if ModelKind::of(self.encoder.label()).ok().as_ref() != Some(&self.kind) {
            return Err("what the model predicts is not what the label holds");
        }
        if self.threshold.is_some() && !matches!(self.kind, ModelKind::LinearClassifier { .. }) {
            return Err("only a model of two classes has a threshold");
        }
        if !self.kind.fits(self.loss) {
            return Err("the loss does not fit what the model predicts");
        }
        Ok(())
    }
}

/// Returns the names of the parts of the encoder that were taken from the data and declared public.
pub fn assumed_public(encoder: &Encoder) -> Vec<String> {
    match encoder.input() {
        InputFormat::Table(schema) => {
            let label = schema.label();
            let columns = schema.columns().iter().map(|column| (column.name.as_str(), column.review));
            columns
                .chain([(label.column.as_str(), label.review), (FILE, schema.file().review)])
                .filter(|(_, review)| *review != Review::Reviewed)
                .map(|(name, _)| name.to_owned())
                .collect()
        }
        InputFormat::Libsvm(format) if format.features_from_data => vec![FEATURE_COUNT.to_owned()],
        _ => Vec::new(),
    }
}

/// A model file.
pub type ModelFile = sealed::File<Model, AnyDerivation>;

impl Content for Model {
    const SCHEMA: &'static str = SCHEMA;

    fn weights(&self) -> &[f64] {
        &self.weights
    }

    fn checked(&self) -> Result<(), Error> {
        self.check().map_err(|why| malformed(why).at("model"))
    }
}

impl ModelFile {
    /// Returns the warnings about an epsilon or delta that promises little.
    pub fn warnings(&self) -> Vec<String> {
        protection::warnings_of(&self.certificate, self.certificate.derivation.private().map(DerivesModel::units))
    }

    /// Returns the encoder; for libsvm data, feature numbers start at 0 or 1 as given.
    ///
    /// # Errors
    /// Those of [`Encoder::libsvm`].
    pub fn encoder_counting(&self, zero_based: Option<bool>) -> Result<Encoder, DataError> {
        let encoder = &self.model.encoder;
        match (encoder.input(), zero_based) {
            (InputFormat::Libsvm(trained), Some(zero_based)) if zero_based != trained.zero_based => {
                let format = LibsvmFormat { zero_based, ..trained.clone() };
                let counted = Encoder::libsvm(format, encoder.encoding())?;
                match encoder.projection() {
                    Some(projection) => counted.projected(projection),
                    None => Ok(counted),
                }
            }
            _ => Ok(encoder.clone()),
        }
    }

    /// Returns the features with a non-zero weight, if the recipe has a penalty.
    pub fn selected_features(&self) -> Option<Vec<String>> {
        fn has_penalty(value: &Value) -> bool {
            match value {
                Value::Object(members) => {
                    members.get("penalty").is_some_and(Value::is_object) || members.values().any(has_penalty)
                }
                Value::Array(items) => items.iter().any(has_penalty),
                _ => false,
            }
        }
        if !has_penalty(&self.derivation_json()) {
            return None;
        }
        let features = &self.model.features;
        let used = |j: usize| self.model.weights.iter().skip(j).step_by(features.len().max(1)).any(|&w| w != 0.0);
        Some(features.iter().enumerate().filter(|(j, _)| used(*j)).map(|(_, name)| name.clone()).collect())
    }

    /// Returns the recipe's parameters as JSON.
    pub fn derivation_json(&self) -> Value {
        serde_json::to_value(&self.certificate.derivation).unwrap_or_default()
    }
}

/// Rejects non-finite weights: they predict nothing, and JSON cannot represent them.
///
/// # Errors
/// [`ErrorKind::NotFinite`].
pub(crate) fn check_finite(weights: &[f64]) -> Result<(), Error> {
    if weights.iter().all(|weight| weight.is_finite()) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::NotFinite, "the weights that were released are not finite numbers"))
}

fn malformed(message: impl Into<String>) -> Error {
    sealed::malformed(message, SCHEMA)
}
