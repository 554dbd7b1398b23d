//! A question as asked: all numbers optional, nothing checked.

use dp_accountant::certificate::Certificate;
use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, DpEvent};
use serde::Deserialize;
use serde_json::Value;

use super::choices::{Accountant, Sampling, Unknown};
use super::refusal::{Refusal, RefusalKind};

/// The released job, without the numbers that can be computed.
#[derive(Debug, Clone, PartialEq)]
pub enum Job {
    /// Noisy sums over random batches.
    Dpsgd,
    /// Gaussian noise.
    Gaussian,
    /// Laplace noise.
    Laplace,
    /// The L2 Laplace ball.
    LaplaceBall {
        /// Dimension.
        dim: u64,
    },
    /// k-ary randomised response.
    RandomizedResponse {
        /// Number of possible answers.
        buckets: u64,
        /// Probability of a uniformly random answer.
        noise: f64,
    },
    /// A pure guarantee.
    Pure {
        /// Epsilon of one release.
        step_epsilon: f64,
    },
    /// An approximate guarantee.
    Approximate {
        /// Epsilon of one release.
        step_epsilon: f64,
        /// Delta of one release.
        step_delta: f64,
    },
    /// A zCDP guarantee.
    Zcdp {
        /// Rho of one release.
        rho: f64,
    },
    /// A Gaussian-DP guarantee.
    Gdp {
        /// Mu of one release.
        mu: f64,
    },
    /// An arbitrary tree of events.
    Event(Box<DpEvent>),
}

impl Job {
    /// Returns the name of the job.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Dpsgd => "dpsgd",
            Self::Gaussian => "gaussian",
            Self::Laplace => "laplace",
            Self::LaplaceBall { .. } => "laplace-ball",
            Self::RandomizedResponse { .. } => "randomized-response",
            Self::Pure { .. } => "pure",
            Self::Approximate { .. } => "approximate",
            Self::Zcdp { .. } => "zcdp",
            Self::Gdp { .. } => "gdp",
            Self::Event(_) => "event",
        }
    }

    /// Returns whether the noise multiplier can be the unknown.
    pub fn has_noise_multiplier(&self) -> bool {
        matches!(self, Self::Dpsgd | Self::Gaussian | Self::Laplace | Self::LaplaceBall { .. })
    }

    /// Returns whether one release is pure, so that an omitted delta is 0.
    pub fn is_pure(&self) -> bool {
        matches!(self, Self::Laplace | Self::LaplaceBall { .. } | Self::RandomizedResponse { .. } | Self::Pure { .. })
    }
}

/// A question as asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The released job.
    pub job: Job,
    /// The noise multiplier.
    pub noise_multiplier: Option<f64>,
    /// The sampling rate.
    pub sampling_rate: Option<f64>,
    /// The batch size; with `records`, it replaces the rate.
    pub batch_size: Option<u64>,
    /// Number of records.
    pub records: Option<u64>,
    /// Number of steps or releases.
    pub steps: Option<u64>,
    /// The number of epochs, which replaces the steps.
    pub epochs: Option<f64>,
    /// The batch sampling scheme.
    pub sampling: Sampling,
    /// Epsilon.
    pub epsilon: Option<f64>,
    /// Delta.
    pub delta: Option<f64>,
    /// The quantity to compute.
    pub solve: Option<Unknown>,
    /// The relation; one of add-remove stands for that with a public or a secret number of records, as `n_public` says.
    pub adjacency: Option<AdjacencyKind>,
    /// True if the number of records is public.
    pub n_public: Option<bool>,
    /// Number of units that the guarantee covers at once.
    pub group: Option<u64>,
    /// The unit that the events are about.
    pub unit: Unit,
    /// The accountant that answers.
    pub accountant: Accountant,
}

impl Request {
    /// Creates a question about `job` with nothing else set.
    pub fn new(job: Job) -> Self {
        Self {
            job,
            noise_multiplier: None,
            sampling_rate: None,
            batch_size: None,
            records: None,
            steps: None,
            epochs: None,
            sampling: Sampling::Poisson,
            epsilon: None,
            delta: None,
            solve: None,
            adjacency: None,
            n_public: None,
            group: None,
            unit: Unit::Record,
            accountant: Accountant::Auto,
        }
    }

    /// Creates a question about the events and under the relation of a certificate. Whether they follow from the recipe is what
    /// [`verify`](crate::verify) checks.
    ///
    /// # Errors
    /// `verify.not_private`.
    pub fn of_certificate<D>(certificate: &Certificate<D>) -> Result<Self, Refusal> {
        if !certificate.private {
            let message = "the certificate says that the model has no guarantee";
            return Err(Refusal::new(RefusalKind::Unproved, "verify.not_private", message)
                .help("train again with privacy and without a seed"));
        }
        let mut request = Self::new(Job::Event(Box::new(certificate.event.clone())));
        request.adjacency = Some(certificate.adjacency);
        request.n_public = Some(certificate.adjacency.n_public());
        request.unit = certificate.unit.clone();
        Ok(request)
    }

    /// Reads a tree of events from JSON, or an object that holds one as `event`, with `adjacency` and `n_public`.
    ///
    /// # Errors
    /// `account.event`.
    pub fn from_event(value: Value) -> Result<Self, Refusal> {
        let Value::Object(mut members) = value else { return Err(no_event("an object is needed")) };
        if members.contains_key("type") || !members.contains_key("event") {
            return Ok(Self::new(Job::Event(Box::new(event(Value::Object(members))?))));
        }
        let tree = members.remove("event").unwrap_or_default();
        let mut request = Self::new(Job::Event(Box::new(event(tree).map_err(|refusal| refusal.at_field("event"))?)));
        for (name, member) in members {
            let unfit = |expected: &str| {
                no_event(format!("`{name}` cannot be {}", shown(&member))).at_field(&name).expected(expected)
            };
            match (name.as_str(), &member) {
                ("adjacency", Value::String(word)) => {
                    request.adjacency = Some(
                        AdjacencyKind::from_words(word, true)
                            .ok_or_else(|| unfit("add-remove, replace-one or change-list-labels"))?,
                    );
                }
                ("n_public", Value::Bool(n_public)) => request.n_public = Some(*n_public),
                ("adjacency" | "n_public", _) => return Err(unfit("adjacency is text, n_public true or false")),
                _ => return Err(no_event("a member has no meaning here").at_field(&name)),
            }
        }
        Ok(request)
    }
}

/// Parses a tree of events from JSON.
///
/// # Errors
/// `account.event`.
pub(super) fn event(value: Value) -> Result<DpEvent, Refusal> {
    DpEvent::deserialize(value).map_err(|error| {
        no_event(format!("not an event: {error}"))
            .help("each event is an object with its `type` and its numbers; `dp account event --help` shows one")
    })
}

/// Shortens a value for a message.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn no_event(message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Text, "account.event", message)
}
