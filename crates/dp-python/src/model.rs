//! A released model with its certificate.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dp::metrics::{probability, softmax};
use dp::model::{ModelKind, Prediction};
use dp::{LinearForm, ModelFile, Sealed, words};
use dp_accountant::certificate::Certificate;
use dp_data::encode::UnknownCategory;
use dp_data::read::{CsvOptions, Input, RecordReader};
use dp_data::schema::{ColumnKind, LabelKind};
use dp_data::{DataError, Workers};
use dp_optim::DerivesModel as _;
use numpy::ndarray::Array2;
use numpy::{IntoPyArray as _, PyArray1, PyArray2};
use pyo3::prelude::*;

use crate::failure::Failure;
use crate::interrupt::interruptible;
use crate::ranking::Ranker;
use crate::table::{Columns, NamedColumn};

/// A model file: a released model and its certificate.
#[pyclass(frozen, module = "dp._dp")]
pub(crate) struct Model {
    file: Arc<ModelFile>,
}

impl Model {
    pub(crate) fn new(file: ModelFile) -> Self {
        Self { file: Arc::new(file) }
    }
}

/// Returns epsilon and delta of a certificate; None if it claims no guarantee.
pub(crate) fn reached<D>(certificate: &Certificate<D>) -> Option<(f64, f64)> {
    certificate.reached.filter(|_| certificate.private).map(|reached| (reached.epsilon, reached.delta))
}

/// A matrix and a vector of numpy.
type MatrixAndVector<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>);

/// Rows of predictions: the scores or probabilities, and the index of the class or the predicted number.
#[derive(Default)]
struct Predicted {
    values: Vec<f64>,
    predictions: Vec<f64>,
}

#[pymethods]
impl Model {
    /// Reads the content of a model file and checks its seals.
    #[staticmethod]
    fn parse(bytes: &[u8]) -> PyResult<Self> {
        Ok(Self::new(ModelFile::parse(bytes).map_err(Failure::from)?))
    }

    /// Returns the text of the file.
    fn text(&self) -> PyResult<String> {
        Ok(self.file.to_text().map_err(Failure::from)?)
    }

    /// Recomputes the guarantee from the file; returns epsilon and delta.
    fn verify(&self, py: Python<'_>) -> PyResult<(f64, f64)> {
        let file = Arc::clone(&self.file);
        let verified =
            interruptible(py, move |_| dp::verify::model(&file, dp::verify::WORK))?.map_err(Failure::from)?;
        Ok((verified.epsilon, verified.delta))
    }

    /// The certificate as JSON.
    #[getter]
    fn certificate(&self) -> PyResult<String> {
        serde_json::to_string(&self.file.certificate).map_err(|error| Failure::argument("", error.to_string()).into())
    }

    /// True if the certificate claims a guarantee.
    #[getter]
    fn private(&self) -> bool {
        self.file.certificate.private
    }

    /// Epsilon and delta of the guarantee; None if there is none.
    #[getter]
    fn reached(&self) -> Option<(f64, f64)> {
        reached(&self.file.certificate)
    }

    /// `two-classes`, `classes` or `number`.
    #[getter]
    fn kind(&self) -> &'static str {
        described(&self.file.model.kind).0
    }

    /// The names of the classes: of two, the negative one first.
    #[getter]
    fn classes(&self) -> Vec<String> {
        described(&self.file.model.kind).1
    }

    /// The columns that are used, in the order of the schema; each once.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let columns = self.file.model.encoder.schema().map_or(&[][..], |schema| schema.columns());
        for column in columns.iter().filter(|column| column.kind != ColumnKind::Drop) {
            if names.iter().all(|name| name != column.source()) {
                names.push(column.source().to_owned());
            }
        }
        names
    }

    /// True if the scores stand for probabilities of the classes.
    #[getter]
    fn has_probabilities(&self) -> bool {
        self.file.model.has_probabilities()
    }

    /// The names of the features, one per weight.
    #[getter]
    fn features(&self) -> Vec<String> {
        self.file.model.features.clone()
    }

    /// The released weights: one row for each score.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let model = &self.file.model;
        rows(model.weights.clone(), model.kind.outputs()).map(|weights| weights.into_pyarray(py))
    }

    /// The released decision threshold on the score.
    #[getter]
    fn threshold(&self) -> f64 {
        self.file.model.threshold.unwrap_or_default()
    }

    /// The coefficients in the units of the columns, one row for each score, and the intercepts; None if a column is no line.
    #[getter]
    fn linear_form<'py>(&self, py: Python<'py>) -> PyResult<Option<MatrixAndVector<'py>>> {
        let Some(forms) = LinearForm::of(&self.file.model) else { return Ok(None) };
        let intercepts: Vec<f64> = forms.iter().map(|form| form.intercept).collect();
        let coefficients = rows(forms.into_iter().flat_map(|form| form.coefficients).collect(), intercepts.len())?;
        Ok(Some((coefficients.into_pyarray(py), intercepts.into_pyarray(py))))
    }

    /// The schema in TOML; None for a model of records without columns.
    #[getter]
    fn schema(&self) -> Option<String> {
        self.file.model.encoder.schema().map(dp_data::Schema::to_toml)
    }

    /// The column of the label.
    #[getter]
    fn label(&self) -> &str {
        &self.file.model.encoder.label().column
    }

    /// The range of a numeric label.
    #[getter]
    fn label_range(&self) -> Option<(f64, f64)> {
        match &self.file.model.encoder.label().kind {
            LabelKind::Number(range) => Some((range.min, range.max)),
            _ => None,
        }
    }

    /// The position of the settings that were chosen privately, or None; False if none were.
    #[getter]
    fn chosen(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let choice = self.file.certificate.derivation.choice();
        Ok(match choice.map(|choice| choice.chosen) {
            None => py.None(),
            Some(None) => false.into_pyobject(py)?.to_owned().into_any().unbind(),
            Some(Some(position)) => position.into_pyobject(py)?.into_any().unbind(),
        })
    }

    /// The loss that it was trained with.
    #[getter]
    fn loss(&self) -> String {
        self.file.model.loss.to_string()
    }

    /// Warnings about an epsilon or delta that promises little.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.file.warnings()
    }

    /// Returns scores, or probabilities of the classes, one row for each record, and predictions: the position of the class (the
    /// negative one of two is 0), or the number. A record without any known feature has NaN.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<NamedColumn>,
        length: usize,
        probabilities: bool,
        unknown: Option<&str>,
        threads: Option<usize>,
    ) -> PyResult<MatrixAndVector<'py>> {
        let treatment = |word| {
            let refused = || Failure::argument("on_unknown", format!("on_unknown is {word:?}"));
            words::named(words::ON_UNKNOWN, word).ok_or_else(|| refused().expecting("'other', 'error' or 'skip'"))
        };
        let treatment = unknown.map(treatment).transpose()?;
        let threads = threads.and_then(NonZeroUsize::new);
        let workers = threads.map_or_else(Workers::available, Workers::new);
        let columns = Columns::new(columns, length);
        let (raised, file) = (columns.raised(), Arc::clone(&self.file));
        let outputs =
            if probabilities { self.file.model.kind.outputs().max(2) } else { self.file.model.kind.outputs() };
        let predicted = interruptible(py, move |cancelled: &Arc<AtomicBool>| {
            let input = Input::from_table(columns.table(Arc::clone(cancelled))).with_workers(workers);
            predicted(&file, input, probabilities, treatment, cancelled)
        })?;
        let Predicted { values, predictions } = predicted.map_err(|error| raised.or(error))?;
        let values = Array2::from_shape_vec((predictions.len(), outputs), values);
        let values = values.map_err(|error| Failure::argument("X", error.to_string()))?;
        Ok((values.into_pyarray(py), predictions.into_pyarray(py)))
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (Vec<u8>,))> {
        let parse = py.get_type::<Self>().getattr("parse")?;
        Ok((parse.unbind(), (self.text()?.into_bytes(),)))
    }
}

/// Reads the content of a file of a model or of a ranker, and checks its seals.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, bytes: &[u8]) -> PyResult<Py<PyAny>> {
    let sealed = Sealed::parse(bytes).map_err(Failure::from)?;
    if sealed.format() == Some(dp::ranker::SCHEMA) {
        return Ok(Py::new(py, Ranker::of(sealed)?)?.into_any());
    }
    let file = ModelFile::from_sealed(sealed).map_err(Failure::from)?;
    Ok(Py::new(py, Model::new(file))?.into_any())
}

/// Returns `two-classes`, `classes` or `number`, and the names of the classes: of two, the negative one first.
pub(crate) fn described(kind: &ModelKind) -> (&'static str, Vec<String>) {
    match kind {
        ModelKind::LinearClassifier { classes } => {
            ("two-classes", vec![classes.negative.clone(), classes.positive.clone()])
        }
        ModelKind::MultiClassLinear { classes } => ("classes", classes.clone()),
        ModelKind::LinearRegression { .. } => ("number", Vec::new()),
    }
}

fn rows(values: Vec<f64>, number: usize) -> PyResult<Array2<f64>> {
    let width = values.len() / number.max(1);
    Array2::from_shape_vec((number, width), values).map_err(|error| Failure::argument("", error.to_string()).into())
}

fn predicted(
    file: &ModelFile,
    input: Input,
    probabilities: bool,
    unknown: Option<UnknownCategory>,
    cancelled: &AtomicBool,
) -> Result<Predicted, DataError> {
    let model = &file.model;
    let encoder = match unknown {
        Some(treatment) => model.encoder.clone().with_unknown(treatment),
        None => model.encoder.clone(),
    };
    let is_pair = matches!(model.kind, ModelKind::LinearClassifier { .. });
    let outputs = model.kind.outputs();
    let mut reader = RecordReader::new(input, &encoder, &CsvOptions::default(), false)?;
    let of_part = |records: &mut RecordReader<'_>| {
        let (mut part, mut scores) = (Predicted::default(), vec![0.0; outputs]);
        while let Some(record) = records.next_record()? {
            if record.row().is_null() {
                let width = if probabilities && is_pair { 2 } else { outputs };
                part.values.extend(std::iter::repeat_n(f64::NAN, width));
                part.predictions.push(f64::NAN);
                continue;
            }
            model.score(record.row(), &mut scores);
            part.predictions.push(match model.prediction(&scores) {
                // The names of two classes begin with the positive one.
                Prediction::Class { index, .. } if is_pair => 1.0 - index as f64,
                Prediction::Class { index, .. } => index as f64,
                Prediction::Number(number) => number,
            });
            match (probabilities, &mut *scores) {
                (true, [score]) => {
                    let positive = probability(*score);
                    part.values.extend([1.0 - positive, positive]);
                }
                (true, scores) => {
                    softmax(scores);
                    part.values.extend_from_slice(scores);
                }
                (false, scores) => part.values.extend_from_slice(scores),
            }
        }
        Ok(part)
    };
    let mut all = Predicted::default();
    reader.for_each_part(of_part, |part| {
        if cancelled.load(Ordering::Relaxed) {
            return Err(DataError::of_table("the prediction was ended"));
        }
        all.values.extend_from_slice(&part.values);
        all.predictions.extend_from_slice(&part.predictions);
        Ok(())
    })?;
    Ok(all)
}
