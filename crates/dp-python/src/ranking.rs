//! Rankers of lists.

use std::sync::Arc;

use dp::ranker::{ListForm, NamedLoss, ScorerShape};
use dp::ranking::{RankerSettings, WIDEST};
use dp::{RankerFile, RankerTrainError, RankerTraining, Sealed, words};
use dp_accountant::AdjacencyKind;
use dp_mechanisms::rng::{OsSeeded, ReleaseRng as _, SeededRng};
use dp_rank::QueryLists;
use dp_rank::ranking::LARGEST_GRADE;
use dp_rank::train::Protected;
use numpy::{IntoPyArray as _, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::{Class, Failure};
use crate::interrupt::interruptible;
use crate::model::reached;
use crate::options::Options;

/// A ranker file: a released ranker and its certificate.
#[pyclass(frozen, module = "dp._dp")]
pub(crate) struct Ranker {
    file: Arc<RankerFile>,
}

impl From<RankerTrainError> for Failure {
    fn from(error: RankerTrainError) -> Self {
        let message = error.to_string();
        match error {
            RankerTrainError::Ranker(error) => error.into(),
            RankerTrainError::Recipe(_) => {
                Self { class: Class::Privacy, message, code: "privacy.refused", ..Self::default() }
            }
            RankerTrainError::Diverged => Self::argument("step", message).expecting("shorter steps"),
            _ => Self { message, code: "memory.exhausted", ..Self::default() },
        }
    }
}

/// Copies documents to lists of these sizes.
fn lists(
    values: &PyReadonlyArray2<'_, f64>,
    grades: &[u32],
    sizes: &[u64],
    largest_grade: u32,
) -> Result<QueryLists, Failure> {
    let values = values.as_array();
    let refused = |field: &str, error: dp_rank::Error| Failure::argument(field, error.to_string());
    let mut lists = QueryLists::new(values.ncols(), largest_grade).map_err(|error| refused("largest_grade", error))?;
    let mut start = 0;
    for (position, size) in sizes.iter().enumerate() {
        let stop = start + *size as usize;
        let Some(grades) = grades.get(start..stop) else {
            return Err(Failure::argument("group", "the lists have more documents than there are rows"));
        };
        let features: Vec<f64> = (start..stop).flat_map(|row| values.row(row)).copied().collect();
        let placed = |error| {
            let failure = refused("X", error);
            // It may quote a grade.
            Failure { class: Class::Data, message: format!("list {position}: {}", failure.message), ..failure }
        };
        lists.push(&position.to_string(), &features, grades).map_err(placed)?;
        start = stop;
    }
    Ok(lists)
}

/// Trains a ranker on the lists of these sizes.
#[pyfunction]
pub(crate) fn train_ranker(
    py: Python<'_>,
    values: PyReadonlyArray2<'_, f64>,
    grades: PyReadonlyArray1<'_, u32>,
    sizes: PyReadonlyArray1<'_, u64>,
    features: Vec<String>,
    options: &Bound<'_, PyDict>,
) -> PyResult<Ranker> {
    let options = Options(options);
    let training = training(&options)?;
    let largest_grade = options.get::<u32>("largest_grade")?.unwrap_or(2);
    if !(1..=LARGEST_GRADE).contains(&largest_grade) {
        let message = format!("largest_grade is {largest_grade}");
        let expected = format!("a whole number from 1 to {LARGEST_GRADE}");
        return Err(Failure::argument("largest_grade", message).expecting(expected).into());
    }
    let (grades, sizes) = (grades.as_array().to_vec(), sizes.as_array().to_vec());
    let lists = lists(&values, &grades, &sizes, largest_grade)?;
    let form = ListForm::Csv { query: "query".to_owned(), label: "grade".to_owned(), features };
    let seed = options.get::<u64>("seed")?;
    let file = interruptible(py, move |_| {
        let plan = training.plan(lists.len() as u64, lists.width())?;
        let ignored = &mut |_, _: &[f64]| {};
        let file = match seed {
            Some(seed) => plan.train(lists, form, 0, &mut SeededRng::new(seed).lend(), ignored)?,
            None => plan.train(
                lists,
                form,
                0,
                &mut OsSeeded::new().map_err(dp_rank::train::TrainError::from)?.lend(),
                ignored,
            )?,
        };
        Ok::<_, RankerTrainError>(file.made_by(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))?)
    })?;
    Ok(Ranker { file: Arc::new(file.map_err(Failure::from)?) })
}

fn training(options: &Options<'_, '_>) -> PyResult<RankerTraining> {
    let k = options.get::<usize>("k")?;
    let loss = match options.word("loss", &[("bayesrank", 0), ("listnet", 1), ("listmle", 2)])?.unwrap_or(0) {
        0 => NamedLoss::Bayesrank { k: k.unwrap_or(1) },
        1 => NamedLoss::Listnet { k: k.unwrap_or(1) },
        _ if k.is_some() => {
            return Err(Failure::argument("k", "listmle looks at all positions").expecting("no k").into());
        }
        _ => NamedLoss::Listmle {},
    };
    if k == Some(0) {
        return Err(Failure::argument("k", "k is 0").expecting("the number of positions, at least 1").into());
    }
    let missing = |name: &str, expected: &str| {
        let failure = Failure::argument(name, format!("{name} is missing")).expecting(expected);
        Failure { code: "usage.missing", ..failure }
    };
    let epsilon = options.get("epsilon")?.ok_or_else(|| missing("epsilon", "a number greater than 0"))?;
    let far_below = "a number greater than 0, far below one over the number of lists";
    let delta = options.get("delta")?.ok_or_else(|| missing("delta", far_below))?;
    if !(delta > 0.0) {
        return Err(Failure::argument("delta", format!("delta = {delta:?}: the noise is Gaussian"))
            .expecting(far_below)
            .into());
    }
    let mut training = RankerTraining::new(loss, epsilon, delta).map_err(|error| Failure {
        class: Class::Argument,
        code: "usage.value",
        field: Some("epsilon".to_owned()),
        ..Failure::from(error)
    })?;
    let relations = [
        ("add-remove", AdjacencyKind::ZeroOut),
        ("replace-one", AdjacencyKind::ReplaceOne),
        ("change-list-labels", AdjacencyKind::ChangeListLabels),
    ];
    let relation = options.word("adjacency", &relations)?;
    let protectable: [(&str, &[Protected]); 3] = [
        ("grades", &[Protected::Grades]),
        ("lists", &[Protected::ListPresence, Protected::WholeList]),
        ("documents", &[Protected::Document]),
    ];
    let protectable = options.word("protect", &protectable)?.unwrap_or(&[Protected::Grades]);
    let fits = |protects: &&Protected| relation.is_none_or(|relation| relation == protects.adjacency());
    let protects = *protectable.iter().find(fits).ok_or_else(|| {
        let known: Vec<_> = protectable.iter().map(|protects| format!("'{}'", protects.adjacency())).collect();
        let failure = Failure::argument("adjacency", "what is protected has another neighbouring relation");
        Failure { class: Class::Privacy, code: "privacy.adjacency", ..failure.expecting(known.join(" or ")) }
    })?;
    training = training.protecting(protects);
    training.normalise_features = options.get("normalise_features")?.unwrap_or(false);
    if options.word("scorer", &[("linear", false), ("mlp", true)])?.unwrap_or(false) {
        let hidden = options.get::<usize>("hidden")?.unwrap_or(ScorerShape::HIDDEN);
        if !(1..=WIDEST).contains(&hidden) {
            let expected = format!("1 to {WIDEST} units");
            return Err(Failure::argument("hidden", format!("hidden is {hidden}")).expecting(expected).into());
        }
        let activation = options.one_of("activation", words::ACTIVATION)?.unwrap_or_default();
        training.scorer = ScorerShape::Mlp { hidden, activation };
    } else {
        for of_network in ["hidden", "activation"] {
            if options.has(of_network)? {
                let failure = Failure::argument(of_network, format!("{of_network} is given, and the scorer is linear"));
                return Err(Failure { code: "usage.conflict", ..failure }.expecting("scorer='mlp'").into());
            }
        }
    }
    let settings = RankerSettings {
        clip: options.get("clip")?,
        step: options.get("step")?,
        batch_size: options.get("batch_size")?,
        updates: options.get("updates")?,
        normalise: options.one_of("normalise", words::NORMALISE)?,
        public_scaling: options.word("scaling", &[("clip", false), ("public", true)])?.unwrap_or(false),
        thin: options.get("thin")?.unwrap_or(false),
    };
    Ok(training.with_settings(&settings).map_err(Failure::from)?)
}

impl Ranker {
    pub(crate) fn of(sealed: Sealed) -> PyResult<Self> {
        Ok(Self { file: Arc::new(RankerFile::from_sealed(sealed).map_err(Failure::from)?) })
    }
}

#[pymethods]
impl Ranker {
    /// Reads the content of a ranker file and checks its seals.
    #[staticmethod]
    fn parse(bytes: &[u8]) -> PyResult<Self> {
        Self::of(Sealed::parse(bytes).map_err(Failure::from)?)
    }

    /// Returns the text of the file.
    fn text(&self) -> PyResult<String> {
        Ok(self.file.to_text().map_err(Failure::from)?)
    }

    /// Recomputes the guarantee from the file; returns epsilon and delta.
    fn verify(&self, py: Python<'_>) -> PyResult<(f64, f64)> {
        let file = Arc::clone(&self.file);
        let verified = interruptible(py, move |_| dp::verify::ranker(&file))?.map_err(Failure::from)?;
        Ok((verified.epsilon, verified.delta))
    }

    /// The certificate as JSON.
    #[getter]
    fn certificate(&self) -> PyResult<String> {
        serde_json::to_string(&self.file.certificate).map_err(|error| Failure::argument("", error.to_string()).into())
    }

    /// Epsilon and delta of the guarantee; None if there is none.
    #[getter]
    fn reached(&self) -> Option<(f64, f64)> {
        reached(&self.file.certificate)
    }

    /// The released weights: one for each feature, or those of a network.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.file.model.weights.clone().into_pyarray(py)
    }

    /// True if the score is a weighted sum of features.
    #[getter]
    fn is_linear(&self) -> bool {
        matches!(self.file.model.scorer, ScorerShape::Linear {})
    }

    /// True if each list's features are mapped to [0, 1] first.
    #[getter]
    fn normalises_features(&self) -> bool {
        self.file.model.normalise_features
    }

    /// Number of features of a document.
    #[getter]
    fn width(&self) -> usize {
        self.file.model.width
    }

    /// The names of the features; None for lists in the LETOR format.
    #[getter]
    fn features(&self) -> Option<Vec<String>> {
        match &self.file.model.input {
            ListForm::Csv { features, .. } => Some(features.clone()),
            ListForm::Letor {} => None,
        }
    }

    /// Returns the scores of the documents of lists of these sizes.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray2<'py, f64>,
        sizes: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (sizes, rows) = (sizes.as_array().to_vec(), values.as_array().nrows());
        let lists = lists(&values, &vec![0; rows], &sizes, LARGEST_GRADE)?;
        let file = Arc::clone(&self.file);
        let scores = interruptible(py, move |_| {
            let mut scorer = file.model.scores()?;
            let mut all = Vec::with_capacity(lists.documents());
            for list in lists.iter() {
                all.extend_from_slice(scorer.of(list)?);
            }
            Ok::<_, dp_rank::Error>(all)
        })?;
        Ok(scores.map_err(|error| Failure::argument("X", error.to_string()))?.into_pyarray(py))
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (Vec<u8>,))> {
        let parse = py.get_type::<Self>().getattr("parse")?;
        Ok((parse.unbind(), (self.text()?.into_bytes(),)))
    }
}
