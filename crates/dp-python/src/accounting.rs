//! Questions to the accountant, one for each element of arrays.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dp::Sealed;
use dp::accounting::{
    Accountant, Answer, Choice as _, Job, LIMITS, POINTS, Question, Refusal, Request, Sampling, Unknown,
    solve as solver,
};
use dp_accountant::{AdjacencyKind, DpEvent, work};
use dp_data::Workers;
use numpy::{IntoPyArray as _, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::Failure;
use crate::interrupt::interruptible;
use crate::options::Options;

/// The numbers of the questions by name: one, or as many as there are questions.
#[derive(Debug, Default)]
struct Numbers {
    floats: HashMap<String, Vec<f64>>,
    counts: HashMap<String, Vec<u64>>,
}

impl Numbers {
    fn float(&self, name: &str, i: usize) -> Option<f64> {
        self.floats.get(name).and_then(|values| at(values, i))
    }

    fn count(&self, name: &str, i: usize) -> Option<u64> {
        self.counts.get(name).and_then(|values| at(values, i))
    }

    fn needed(&self, name: &str, i: usize) -> Result<f64, Failure> {
        self.float(name, i).ok_or_else(|| missing(name))
    }

    fn needed_count(&self, name: &str, i: usize) -> Result<u64, Failure> {
        self.count(name, i).ok_or_else(|| missing(name))
    }

    /// Returns whether a number differs between the questions.
    fn varies(&self, name: &str) -> bool {
        self.floats.get(name).is_some_and(|values| values.len() > 1)
            || self.counts.get(name).is_some_and(|values| values.len() > 1)
    }
}

fn at<T: Copy>(values: &[T], i: usize) -> Option<T> {
    if values.len() == 1 { values.first().copied() } else { values.get(i).copied() }
}

fn missing(name: &str) -> Failure {
    Failure { code: "usage.missing", ..Failure::argument(name, format!("{name} is missing")) }
}

/// The words of the questions.
#[derive(Debug, Default)]
struct Words {
    job: String,
    event: Option<Box<DpEvent>>,
    sampling: Sampling,
    accountant: Accountant,
    solve: Option<Unknown>,
    adjacency: Option<AdjacencyKind>,
    n_public: Option<bool>,
}

impl Words {
    fn read(job: &str, event: Option<&str>, options: &Options<'_, '_>) -> PyResult<Self> {
        let event = match event {
            Some(text) => match Request::from_event(parsed(text)?).map_err(Failure::from)? {
                Request { job: Job::Event(event), .. } => Some(event),
                _ => None,
            },
            None => None,
        };
        let relations = ["add-remove", "replace-one", "change-list-labels"]
            .map(|word| (word, AdjacencyKind::from_words(word, true)));
        Ok(Self {
            job: job.to_owned(),
            event,
            sampling: options.one_of("sampling", Sampling::ALL)?.unwrap_or_default(),
            accountant: options.one_of("accountant", Accountant::ALL)?.unwrap_or_default(),
            solve: options.one_of("solve", Unknown::ALL)?,
            adjacency: options.word("adjacency", &relations)?.flatten(),
            n_public: options.get("n_public")?,
        })
    }

    /// Returns the question of element `i`.
    fn question(&self, numbers: &Numbers, i: usize) -> Result<Question, Failure> {
        let job = match self.job.as_str() {
            "dpsgd" => Job::Dpsgd,
            "gaussian" => Job::Gaussian,
            "laplace" => Job::Laplace,
            "laplace-ball" => Job::LaplaceBall { dim: numbers.needed_count("dim", i)? },
            "randomized-response" => Job::RandomizedResponse {
                buckets: numbers.needed_count("buckets", i)?,
                noise: numbers.needed("noise", i)?,
            },
            "pure" => Job::Pure { step_epsilon: numbers.needed("step_epsilon", i)? },
            "approximate" => Job::Approximate {
                step_epsilon: numbers.needed("step_epsilon", i)?,
                step_delta: numbers.needed("step_delta", i)?,
            },
            "zcdp" => Job::Zcdp { rho: numbers.needed("rho", i)? },
            "gdp" => Job::Gdp { mu: numbers.needed("mu", i)? },
            _ => Job::Event(self.event.clone().ok_or_else(|| missing("event"))?),
        };
        let question = Question::new(Request {
            noise_multiplier: numbers.float("noise_multiplier", i),
            sampling_rate: numbers.float("sampling_rate", i),
            batch_size: numbers.count("batch_size", i),
            records: numbers.count("records", i),
            steps: numbers.count("steps", i),
            epochs: numbers.float("epochs", i),
            sampling: self.sampling,
            epsilon: numbers.float("epsilon", i),
            delta: numbers.float("delta", i),
            solve: self.solve,
            adjacency: self.adjacency,
            n_public: self.n_public,
            group: numbers.count("group", i),
            accountant: self.accountant,
            ..Request::new(job)
        });
        Ok(question?)
    }
}

fn parsed(text: &str) -> Result<serde_json::Value, Failure> {
    dp::canonical::parse(text).map_err(|error| Failure {
        code: "account.event",
        ..Failure::argument("event", format!("not the JSON of an event: {error}"))
    })
}

/// All questions of a call, one for each element.
#[pyclass(frozen, module = "dp._dp")]
pub(crate) struct Questions {
    asked: Arc<Asked>,
}

struct Asked {
    words: Words,
    numbers: Numbers,
    shape: Vec<usize>,
    /// The limit on the work of each.
    limit: f64,
    workers: Workers,
}

impl Asked {
    fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns `of` for each question; stops at the first error, which names the argument and its index.
    fn map<T: Send>(
        &self,
        cancelled: &AtomicBool,
        of: impl Fn(&Question) -> Result<T, Refusal> + Sync,
    ) -> Result<Vec<(T, bool)>, Failure> {
        let one = |(): &mut (), i: usize| {
            if cancelled.load(Ordering::Relaxed) {
                return Err(Failure::default());
            }
            let question = self.words.question(&self.numbers, i).map_err(|failure| self.located(failure, i))?;
            let found = work::limited(self.limit, || of(&question));
            let value = found.value.map_err(|refusal| self.located(refusal.into(), i))?;
            Ok((value, found.is_short))
        };
        let mut found = Vec::with_capacity(self.len());
        let push = |one: Result<_, Failure>| {
            found.push(one?);
            Ok::<_, Failure>(())
        };
        self.workers.for_each(0..self.len(), 4 * self.workers.threads(), || (), one, push)?;
        Ok(found)
    }

    /// Adds the index of element `i` to the name of the argument, if that is an array.
    fn located(&self, failure: Failure, i: usize) -> Failure {
        let Some(field) = failure.field.clone() else {
            if self.shape.is_empty() {
                return failure;
            }
            return Failure { message: format!("element {}: {}", self.index(i), failure.message), ..failure };
        };
        if !self.numbers.varies(&field) {
            if self.len() <= 1 {
                return failure;
            }
            let message = format!("{} (element {})", failure.message, self.index(i));
            return Failure { message, ..failure };
        }
        let place = format!("{field}{}", self.index(i));
        let message = match failure.message.strip_prefix(&field) {
            Some(rest) => format!("{place}{rest}"),
            None => format!("{place}: {}", failure.message),
        };
        Failure { message, field: Some(place), ..failure }
    }

    /// Returns the index of element `i`, as `[1, 0]`.
    fn index(&self, i: usize) -> String {
        let mut rest = i;
        let mut index: Vec<String> = Vec::with_capacity(self.shape.len());
        for &size in self.shape.iter().rev() {
            index.push((rest % size.max(1)).to_string());
            rest /= size.max(1);
        }
        index.reverse();
        format!("[{}]", index.join(", "))
    }
}

#[pymethods]
impl Questions {
    /// Reads a job, the JSON of its event if it has one, its numbers as flat arrays of one element or of the size of `shape`, and
    /// its words.
    #[new]
    fn new(
        job: &str,
        event: Option<&str>,
        floats: HashMap<String, PyReadonlyArray1<'_, f64>>,
        counts: HashMap<String, PyReadonlyArray1<'_, u64>>,
        words: &Bound<'_, PyDict>,
        shape: Vec<usize>,
    ) -> PyResult<Self> {
        // Copies: another thread may write to the arrays once the lock is released.
        let numbers = Numbers {
            floats: floats.into_iter().map(|(name, values)| (name, values.as_array().to_vec())).collect(),
            counts: counts.into_iter().map(|(name, values)| (name, values.as_array().to_vec())).collect(),
        };
        let options = Options(words);
        let limit = match options.get::<f64>("limit")? {
            Some(limit) if !(limit >= LIMITS.0 && limit <= LIMITS.1) => {
                let expected = format!("a number in [{:?}, {:?}], or None", LIMITS.0, LIMITS.1);
                return Err(Failure::argument("limit", format!("limit = {limit:?}")).expecting(expected).into());
            }
            limit => limit.map_or(f64::INFINITY, |limit| limit * work::USUAL),
        };
        let words = Words::read(job, event, &options)?;
        Ok(Self { asked: Arc::new(Asked { words, numbers, shape, limit, workers: options.workers()? }) })
    }

    /// Returns one flat array or list for each member of the answers.
    fn answer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let answers: Vec<(Answer, bool)> = self.map(py, solver::answer)?;
        let members = PyDict::new(py);
        let floats = |name: &str, of: &dyn Fn(&Answer) -> Option<f64>| {
            let values: Option<Vec<f64>> = answers.iter().map(|(answer, _)| of(answer)).collect();
            values.map_or(Ok(()), |values| members.set_item(name, values.into_pyarray(py)))
        };
        floats("epsilon", &|answer| Some(answer.epsilon))?;
        floats("epsilon_lower", &|answer| Some(answer.epsilon_lower))?;
        floats("epsilon_upper", &|answer| Some(answer.epsilon_upper))?;
        floats("delta", &|answer| Some(answer.delta))?;
        floats("delta_lower", &|answer| answer.delta_lower)?;
        floats("delta_upper", &|answer| answer.delta_upper)?;
        floats("noise_multiplier", &|answer| answer.noise_multiplier)?;
        floats("sampling_rate", &|answer| answer.sampling_rate)?;
        let steps: Vec<u64> = answers.iter().map(|(answer, _)| answer.steps).collect();
        members.set_item("steps", steps.into_pyarray(py))?;
        let texts = |of: &dyn Fn(&Answer) -> String| answers.iter().map(|(answer, _)| of(answer)).collect::<Vec<_>>();
        members.set_item("theorem", texts(&|answer| answer.theorem.clone()))?;
        members.set_item("accountant", texts(&|answer| answer.accountant.to_owned()))?;
        members.set_item("is_short", answers.iter().map(|(_, is_short)| *is_short).collect::<Vec<_>>())?;
        if let Some((answer, _)) = answers.first() {
            members.set_item("solved", answer.solved)?;
            members.set_item("adjacency", answer.adjacency)?;
            members.set_item("n_public", answer.n_public)?;
        }
        Ok(members)
    }

    /// Returns the meaning of each guarantee, as JSON and as sentences.
    fn meaning(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let of = |question: &Question| {
            let meaning = solver::meaning(question, &solver::solve(question)?)?;
            let json = serde_json::to_string(&meaning).unwrap_or_default();
            Ok((json, meaning.text().trim_start().to_owned()))
        };
        Ok(self.map(py, of)?.into_iter().map(|(meaning, _)| meaning).collect())
    }

    /// Returns the false-positive rates and the least false-negative rates of the best attack on each release.
    fn trade_off(&self, py: Python<'_>, points: usize) -> PyResult<Vec<(Vec<f64>, Vec<f64>)>> {
        if !POINTS.contains(&points) {
            let expected = format!("a whole number from {} to {}", POINTS.start(), POINTS.end());
            return Err(Failure::argument("points", format!("points = {points}")).expecting(expected).into());
        }
        let of = move |question: &Question| {
            let errors = solver::trade_off(question, points)?;
            Ok(errors.iter().map(|errors| (errors.type_one, errors.type_two)).unzip())
        };
        Ok(self.map(py, of)?.into_iter().map(|(curve, _)| curve).collect())
    }
}

impl Questions {
    fn map<T: Send + 'static>(
        &self,
        py: Python<'_>,
        of: impl Fn(&Question) -> Result<T, Refusal> + Send + Sync + 'static,
    ) -> PyResult<Vec<(T, bool)>> {
        let asked = Arc::clone(&self.asked);
        Ok(interruptible(py, move |cancelled| asked.map(cancelled, of))??)
    }
}

/// Parses an event and returns its JSON, with all its members.
#[pyfunction]
pub(crate) fn canonical_event(text: &str) -> PyResult<String> {
    let request = Request::from_event(parsed(text)?).map_err(Failure::from)?;
    let Job::Event(event) = request.job else { return Err(missing("event").into()) };
    serde_json::to_string(&event).map_err(|error| Failure::argument("event", error.to_string()).into())
}

/// Returns event, relation, whether the number of records is public, and delta of a certificate.
#[pyfunction]
pub(crate) fn certificate(bytes: &[u8]) -> PyResult<(String, &'static str, bool, Option<f64>)> {
    let certificate = Sealed::parse(bytes).and_then(|sealed| sealed.any_certificate()).map_err(Failure::from)?;
    let request = Request::of_certificate(&certificate).map_err(Failure::from)?;
    let event = match request.job {
        Job::Event(event) => serde_json::to_string(&event),
        _ => Ok(String::new()),
    };
    let event = event.map_err(|error| Failure::argument("event", error.to_string()))?;
    let adjacency = certificate.adjacency;
    Ok((event, adjacency.as_str(), adjacency.n_public(), certificate.reached.map(|reached| reached.delta)))
}
