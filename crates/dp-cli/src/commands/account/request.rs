//! A question as asked on the command line or in a batch: all numbers optional, nothing checked.

use dp::canonical;
use dp_accountant::{AdjacencyKind, DpEvent};
use serde::Deserialize;
use serde_json::Value;

use crate::args::{AccountJob, Accountant, Adjacency, DpsgdArgs, FileName, QuestionArgs, Sampling, Unknown};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::files;
use crate::input::read_whole;

/// Largest size in bytes of a file of events.
const LARGEST_FILE: u64 = 64 << 20;

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
    /// The name of the relation.
    pub adjacency: Option<Adjacency>,
    /// True if the number of records is public.
    pub n_public: Option<bool>,
    /// Number of records that the guarantee covers at once.
    pub group: Option<u64>,
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
            sampling: Sampling::default(),
            epsilon: None,
            delta: None,
            solve: None,
            adjacency: None,
            n_public: None,
            group: None,
            accountant: Accountant::default(),
        }
    }

    /// Returns the question on the command line with its output options; `None` for a batch.
    ///
    /// # Errors
    /// A file that cannot be read or does not hold an event.
    pub fn from_args(job: &AccountJob) -> Result<Option<(Self, &QuestionArgs)>, Failure> {
        let (mut request, steps, asked) = match job {
            AccountJob::Batch(_) => return Ok(None),
            AccountJob::Dpsgd(args) => (Self::dpsgd(args), args.steps, &args.question),
            AccountJob::Gaussian(args) => {
                (Self::noise(Job::Gaussian, args.noise_multiplier), args.repeat.steps, &args.question)
            }
            AccountJob::Laplace(args) => {
                (Self::noise(Job::Laplace, args.noise_multiplier), args.repeat.steps, &args.question)
            }
            AccountJob::LaplaceBall(args) => {
                let job = Job::LaplaceBall { dim: args.dim };
                (Self::noise(job, args.noise_multiplier), args.repeat.steps, &args.question)
            }
            AccountJob::RandomizedResponse(args) => {
                let job = Job::RandomizedResponse { buckets: args.buckets, noise: args.noise };
                (Self::new(job), args.repeat.steps, &args.question)
            }
            AccountJob::Pure(args) => {
                (Self::new(Job::Pure { step_epsilon: args.step_epsilon }), args.repeat.steps, &args.question)
            }
            AccountJob::Approximate(args) => {
                let job = Job::Approximate { step_epsilon: args.step_epsilon, step_delta: args.step_delta };
                (Self::new(job), args.repeat.steps, &args.question)
            }
            AccountJob::Zcdp(args) => (Self::new(Job::Zcdp { rho: args.rho }), args.repeat.steps, &args.question),
            AccountJob::Gdp(args) => (Self::new(Job::Gdp { mu: args.mu }), args.repeat.steps, &args.question),
            AccountJob::Event(args) => (Self::from_event_file(&args.file)?, args.repeat.steps, &args.question),
            AccountJob::Certificate(args) => {
                (Self::from_certificate(&args.model, &args.question)?, args.repeat.steps, &args.question)
            }
        };
        request.steps = steps;
        request.epsilon = asked.epsilon.or(request.epsilon);
        request.delta = asked.delta.or(request.delta);
        request.solve = asked.solve;
        request.group = asked.group;
        request.accountant = asked.accountant;
        request.adjacency = asked.adjacency.or(request.adjacency);
        request.n_public = if asked.secret_n { Some(false) } else { request.n_public };
        Ok(Some((request, asked)))
    }

    fn dpsgd(args: &DpsgdArgs) -> Self {
        Self {
            noise_multiplier: args.noise_multiplier,
            sampling_rate: args.sampling_rate,
            batch_size: args.batch_size,
            records: args.records,
            epochs: args.epochs,
            sampling: args.sampling,
            ..Self::new(Job::Dpsgd)
        }
    }

    fn noise(job: Job, noise_multiplier: Option<f64>) -> Self {
        Self { noise_multiplier, ..Self::new(job) }
    }

    fn from_event_file(name: &FileName) -> Result<Self, Failure> {
        let bytes = read(name)?;
        let refused = |failure: Failure| failure.at_file(if &**name == "-" { "standard input" } else { name });
        let text = std::str::from_utf8(&bytes).map_err(|_| refused(no_event("the file is not UTF-8 text")))?;
        let value = canonical::parse(text).map_err(|error| {
            refused(no_event(format!("not JSON: {error}")))
                .help("a tree of at most about 120 levels; JSON has no NaN, no Infinity and no member twice")
        })?;
        Self::from_event_value(value).map_err(refused)
    }

    /// Reads a tree, or an object that holds one with its relation.
    fn from_event_value(value: Value) -> Result<Self, Failure> {
        let Value::Object(mut members) = value else { return Err(no_event("an object is needed")) };
        if members.contains_key("type") || !members.contains_key("event") {
            return Ok(Self::new(Job::Event(Box::new(event(Value::Object(members))?))));
        }
        let tree = members.remove("event").unwrap_or_default();
        let mut request = Self::new(Job::Event(Box::new(event(tree).map_err(|failure| failure.at_field("event"))?)));
        for (name, member) in members {
            let unfit = |expected: &str| {
                no_event(format!("`{name}` cannot be {}", shown(&member))).at_field(&name).expected(expected)
            };
            match (name.as_str(), &member) {
                ("adjacency", Value::String(word)) => {
                    request.adjacency = Some(
                        clap::ValueEnum::from_str(word, false)
                            .map_err(|_| unfit("add-remove, replace-one or change-list-labels"))?,
                    );
                }
                ("n_public", Value::Bool(n_public)) => request.n_public = Some(*n_public),
                ("adjacency" | "n_public", _) => return Err(unfit("adjacency is text, n_public true or false")),
                _ => return Err(no_event("a member has no meaning here").at_field(&name)),
            }
        }
        Ok(request)
    }

    fn from_certificate(name: &FileName, asked: &QuestionArgs) -> Result<Self, Failure> {
        let certificate = files::model(name)?.certificate;
        if !certificate.private {
            return Err(Failure::new(
                ExitStatus::Verification,
                "verify.not_private",
                "the certificate says that the model has no guarantee",
            )
            .at_file(name)
            .help("train again with privacy and without --seed"));
        }
        let mut request = Self::new(Job::Event(Box::new(certificate.event)));
        request.adjacency = Some(word(certificate.adjacency));
        request.n_public = Some(certificate.adjacency.n_public());
        if asked.epsilon.is_none() && asked.delta.is_none() {
            request.delta = certificate.reached.map(|reached| reached.delta);
        }
        Ok(request)
    }
}

/// Returns the name of a relation.
fn word(relation: AdjacencyKind) -> Adjacency {
    match relation {
        AdjacencyKind::AddRemoveOne | AdjacencyKind::ZeroOut => Adjacency::AddRemove,
        AdjacencyKind::ReplaceOne => Adjacency::ReplaceOne,
        AdjacencyKind::ChangeListLabels => Adjacency::ChangeListLabels,
    }
}

/// Parses a tree of events from JSON.
///
/// # Errors
/// `account.event`.
pub(super) fn event(value: Value) -> Result<DpEvent, Failure> {
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

fn no_event(message: impl Into<String>) -> Failure {
    Failure::new(ExitStatus::Input, "account.event", message)
}

fn read(name: &FileName) -> Result<Vec<u8>, Failure> {
    read_whole(name, LARGEST_FILE, |error| {
        Failure::new(ExitStatus::Failed, "account.read", format!("cannot read: {error}"))
            .help("name a file with a tree of events, or `-` for standard input")
    })
}
