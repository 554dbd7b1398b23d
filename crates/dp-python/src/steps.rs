//! Noise and batches for a training in Python.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dp::TrainError;
use dp::steps::{MARGIN, ReleasedWeights, Steps, StepsFile, StepsShape};
use dp_accountant::{AdjacencyKind, Delta, Epsilon, NoiseMultiplier};
use dp_losses::Real;
use dp_mechanisms::clip::ClippingNorm;
use numpy::{Element, IntoPyArray as _, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::{Class, Failure};
use crate::interrupt::interruptible;
use crate::model::reached;
use crate::options::Options;

/// A training with noise in every step, which is paid for.
#[pyclass(frozen, module = "dp._dp")]
pub(crate) struct NoisySteps {
    /// `None` once it has ended.
    steps: Mutex<Option<Steps>>,
    shape: StepsShape,
    std_dev: f64,
}

/// Returns the error in the words of the arguments.
fn refused(error: TrainError) -> Failure {
    match error {
        TrainError::Recipe(dp_optim::Error::Count { name, value, range }) => {
            let name = if name == "number of records" { "records".to_owned() } else { name.replace(' ', "_") };
            Failure::argument(&name, format!("{name} = {value} is out of range")).expecting(range)
        }
        TrainError::Recipe(error) => Failure::from(error),
        error => Failure::from(error),
    }
}

fn ended() -> PyErr {
    let message = "the training has ended: its certificate is written";
    Failure { class: Class::Privacy, code: "privacy.steps", message: message.to_owned(), ..Failure::default() }.into()
}

/// Returns the error for a step or a batch that the plan does not have.
fn not_planned(error: TrainError) -> PyErr {
    Failure { class: Class::Privacy, code: "privacy.steps", ..refused(error) }.into()
}

impl NoisySteps {
    fn lock(&self) -> MutexGuard<'_, Option<Steps>> {
        // A panic within leaves nothing half-done that a next step would use.
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_noise<'py, F: Real + Element>(
        &self,
        py: Python<'py>,
        sum: &PyReadonlyArray1<'py, F>,
    ) -> PyResult<Bound<'py, PyArray1<F>>> {
        // Another thread may write into the array: noise is added to a copy.
        let mut sum = sum.as_array().to_vec();
        let add = |steps: &mut Steps| steps.add(&mut sum).map(|()| sum);
        let noisy = py.detach(|| self.lock().as_mut().map(add));
        Ok(noisy.ok_or_else(ended)?.map_err(not_planned)?.into_pyarray(py))
    }
}

#[pymethods]
impl NoisySteps {
    /// Starts a training: all steps of the plan are paid for.
    #[staticmethod]
    fn start(py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let options = Options(options);
        let missing = |name: &str| -> PyErr {
            Failure { code: "usage.missing", ..Failure::argument(name, format!("{name} is missing")) }.into()
        };
        let needed = |name: &str| options.get::<f64>(name)?.ok_or_else(|| missing(name));
        let count = |name: &str| options.get::<u64>(name)?.ok_or_else(|| missing(name));
        let relations = [("add-remove", AdjacencyKind::ZeroOut), ("replace-one", AdjacencyKind::ReplaceOne)];
        let shape = StepsShape {
            n: count("records")?,
            batch_size: count("batch_size")?,
            steps: count("steps")?,
            clipping_norm: needed("max_grad_norm")?,
            relation: options.word("adjacency", &relations)?.unwrap_or(AdjacencyKind::ZeroOut),
        };
        let at = |name: &str| {
            let name = name.to_owned();
            move |error: dp_accountant::Error| Failure::argument(&name, error.to_string())
        };
        ClippingNorm::new(shape.clipping_norm).map_err(|error| {
            Failure::argument("max_grad_norm", error.to_string().replace("clipping norm", "max_grad_norm"))
        })?;
        let delta = Delta::new(needed("delta")?).map_err(at("delta"))?;
        let noise = options.get::<f64>("noise_multiplier")?;
        if let Some(multiplier) = noise {
            NoiseMultiplier::new(multiplier).map_err(at("noise_multiplier"))?;
        }
        let budget = match noise {
            Some(_) => None,
            None => Some(Epsilon::new(needed("epsilon")?).map_err(at("epsilon"))?),
        };
        let (seed, workers) = (options.get::<u64>("seed")?, options.workers()?);
        let started = interruptible(py, move |_| {
            let std_dev = match (noise, budget) {
                (None, Some(epsilon)) => shape.least_std_dev(epsilon, delta)?,
                (noise, _) => noise.unwrap_or(f64::NAN) * (shape.clipping_norm * (1.0 + MARGIN)),
            };
            let mut steps = Steps::start(shape, std_dev, delta, seed)?;
            steps.set_threads(NonZeroUsize::new(workers.threads()).unwrap_or(NonZeroUsize::MIN));
            Ok::<_, TrainError>((steps, std_dev))
        })?;
        let (steps, std_dev) = started.map_err(refused)?;
        Ok(Self { steps: Mutex::new(Some(steps)), shape, std_dev })
    }

    /// Draws the batch of the next step.
    fn batch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let batch = py.detach(|| {
            self.lock().as_mut().map(|steps| {
                let positions = steps.batch()?;
                Ok::<_, TrainError>(positions.iter().map(|&position| i64::from(position)).collect::<Vec<_>>())
            })
        });
        Ok(batch.ok_or_else(ended)?.map_err(not_planned)?.into_pyarray(py))
    }

    /// Returns a sum of single precision with noise.
    fn add_to_singles<'py>(
        &self,
        py: Python<'py>,
        sum: PyReadonlyArray1<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        self.with_noise(py, &sum)
    }

    /// Returns a sum of double precision with noise.
    fn add_to_doubles<'py>(
        &self,
        py: Python<'py>,
        sum: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.with_noise(py, &sum)
    }

    /// The number of steps that were not taken yet.
    #[getter]
    fn left(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.lock().as_ref().map_or(0, Steps::left))
    }

    /// The number of batches that were not drawn yet.
    #[getter]
    fn batches_left(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.lock().as_ref().map_or(0, Steps::batches_left))
    }

    /// The standard deviation of the noise on each coordinate of a sum.
    #[getter]
    fn std_dev(&self) -> f64 {
        self.std_dev
    }

    /// The standard deviation divided by the sensitivity.
    #[getter]
    fn noise_multiplier(&self) -> f64 {
        self.std_dev / (self.shape.clipping_norm * (1.0 + MARGIN))
    }

    /// The mean number of records in a batch.
    #[getter]
    fn mean_batch_size(&self) -> PyResult<f64> {
        Ok(self.shape.mean_batch_size().map_err(Failure::from)?)
    }

    /// Ends the training and certifies weights by their hash.
    fn finish(
        &self,
        py: Python<'_>,
        weights_sha256: String,
        clipped_by: &str,
        public_tensors: Vec<String>,
    ) -> PyResult<Release> {
        let steps = py.detach(|| self.lock().take()).ok_or_else(ended)?;
        let made_by = BTreeMap::from([(env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
        let file = steps.finish(weights_sha256, clipped_by, public_tensors, made_by).map_err(|error| match error {
            TrainError::Recipe(_) => not_planned(error),
            error => refused(error).into(),
        })?;
        Ok(Release { file: Arc::new(file) })
    }
}

/// The certificate of a training, with the hash of its weights.
#[pyclass(frozen, module = "dp._dp")]
pub(crate) struct Release {
    file: Arc<StepsFile>,
}

#[pymethods]
impl Release {
    /// Reads the content of a file and checks its seals.
    #[staticmethod]
    fn parse(bytes: &[u8]) -> PyResult<Self> {
        let file = StepsFile::parse(bytes).map_err(Failure::from)?;
        Ok(Self { file: Arc::new(file) })
    }

    /// Returns the text of the file.
    fn text(&self) -> PyResult<String> {
        Ok(self.file.to_text().map_err(Failure::from)?)
    }

    /// Recomputes the guarantee from the file; returns epsilon and delta.
    fn verify(&self, py: Python<'_>) -> PyResult<(f64, f64)> {
        let file = Arc::clone(&self.file);
        let verified = interruptible(py, move |_| dp::verify::steps(&file))?.map_err(Failure::from)?;
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

    /// The hash of the weights, the number of coordinates of a sum, and the number of steps that were taken.
    #[getter]
    fn weights(&self) -> (&str, u64, u64) {
        let ReleasedWeights { weights_sha256, coordinates, steps_taken, .. } = &self.file.model;
        (weights_sha256, *coordinates, *steps_taken)
    }
}
