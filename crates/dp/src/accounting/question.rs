//! A consistent question: each number in range, exactly one to be computed, and a relation that the theorem covers.

use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, Delta, DpEvent, Epsilon, Error, Relations};

use dp_optim::catalogue::Choice as _;

use super::choices::{Accountant, Sampling, Unknown};
use super::refusal::{Refusal, RefusalKind};
use super::request::{Job, Request};

/// The accepted noise multipliers.
pub const NOISE_MULTIPLIERS: (f64, f64) = (1e-6, 1e18);
/// The accepted sampling rates.
pub const SAMPLING_RATES: (f64, f64) = (1e-9, 1.0);
/// The accepted numbers of steps.
pub const STEPS: (u64, u64) = (1, u64::MAX);
/// The smallest accepted positive delta.
const SMALLEST_DELTA: f64 = 1e-300;
/// The accepted limits on the work for a question; 1 is about a second.
pub const LIMITS: (f64, f64) = (1e-3, 1e6);
/// The accepted numbers of points of a curve.
pub const POINTS: core::ops::RangeInclusive<usize> = 2..=10_000;
/// The accepted target epsilons.
const EPSILONS: (f64, f64) = (1e-9, 1e6);

/// A checked question.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The released job.
    pub job: Job,
    /// The batch sampling scheme.
    pub sampling: Sampling,
    /// The noise multiplier, if the job has one; meaningless if it is the unknown.
    pub noise_multiplier: Option<f64>,
    /// The sampling rate, with the same conventions.
    pub sampling_rate: Option<f64>,
    /// The number of steps, with the same conventions.
    pub steps: u64,
    /// The quantity to compute.
    pub unknown: Unknown,
    /// The target epsilon, unless it is the unknown.
    pub epsilon: f64,
    /// The target delta, unless it is the unknown.
    pub delta: f64,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of units that the guarantee covers at once.
    pub group: u64,
    /// The unit that the events are about.
    pub unit: Unit,
    /// The accountant that answers.
    pub accountant: Accountant,
}

impl Question {
    /// Checks a request.
    ///
    /// # Errors
    /// `usage.*`, `privacy.adjacency`, `account.event`; the location is given as a field.
    pub fn new(request: Request) -> Result<Self, Refusal> {
        let given = Given::new(&request)?;
        let unknown = given.unknown(&request)?;
        let question = Self {
            sampling: request.sampling,
            noise_multiplier: request.job.has_noise_multiplier().then_some(given.noise_multiplier.unwrap_or(1.0)),
            sampling_rate: (request.job == Job::Dpsgd).then_some(given.sampling_rate.unwrap_or(0.5)),
            steps: given.steps.unwrap_or(1),
            unknown,
            epsilon: request.epsilon.unwrap_or(0.0),
            delta: request.delta.unwrap_or(0.0),
            // Under replacement, a Poisson sample is a different event.
            relation: request.adjacency.unwrap_or(AdjacencyKind::AddRemoveOne),
            group: request.group.unwrap_or(1),
            unit: request.unit,
            accountant: request.accountant,
            job: request.job,
        };
        let relation = relation(&question, request.adjacency, request.n_public)?;
        if relation == AdjacencyKind::AddRemoveOne && request.records.is_some() {
            return Err(conflict("records", "a number of records that is given is not secret")
                .help("give the sampling rate and the steps themselves, or let the number be public"));
        }
        Ok(Self { relation, ..question })
    }

    /// Returns the whole event, with the numbers of the question.
    pub fn event(&self) -> DpEvent {
        self.event_at(self.noise_multiplier.unwrap_or(1.0), self.sampling_rate.unwrap_or(1.0), self.steps)
    }

    /// Returns the whole event, with these numbers in the places that the job has for them.
    pub fn event_at(&self, noise_multiplier: f64, sampling_rate: f64, steps: u64) -> DpEvent {
        let step = match &self.job {
            Job::Dpsgd => {
                let event = Box::new(DpEvent::Gaussian { std_dev: noise_multiplier, sensitivity: 1.0 });
                match self.sampling {
                    // Vectors are clipped to half the largest distance of two vectors, and the noise is relative to that
                    // distance.
                    Sampling::Poisson if self.replaces() => DpEvent::PoissonSampledReplacement {
                        sampling_rate,
                        std_dev: noise_multiplier,
                        distance: 1.0,
                        radius: 0.5,
                    },
                    Sampling::Poisson => DpEvent::PoissonSampled { sampling_rate, event },
                    Sampling::WithoutReplacement => DpEvent::SampledWithoutReplacement { sampling_rate, event },
                }
            }
            Job::Gaussian => DpEvent::Gaussian { std_dev: noise_multiplier, sensitivity: 1.0 },
            Job::Laplace => DpEvent::Laplace { scale: noise_multiplier, sensitivity: 1.0 },
            Job::LaplaceBall { dim } => DpEvent::LaplaceBall { scale: noise_multiplier, sensitivity: 1.0, dim: *dim },
            Job::RandomizedResponse { buckets, noise } => {
                DpEvent::RandomizedResponse { buckets: *buckets, noise: *noise }
            }
            Job::Pure { step_epsilon } => DpEvent::PureDp { epsilon: *step_epsilon },
            Job::Approximate { step_epsilon, step_delta } => {
                DpEvent::ApproximateDp { epsilon: *step_epsilon, delta: *step_delta }
            }
            Job::Zcdp { rho } => DpEvent::Zcdp { rho: *rho },
            Job::Gdp { mu } => DpEvent::Gdp { mu: *mu },
            Job::Event(event) => (**event).clone(),
        };
        let all = if steps == 1 { step } else { DpEvent::SelfComposed { event: Box::new(step), count: steps } };
        if self.group == 1 { all } else { DpEvent::Group { size: self.group, event: Box::new(all) } }
    }

    /// Returns the unit that the guarantee is for.
    pub fn unit(&self) -> Unit {
        match self.group {
            1 => self.unit.clone(),
            size => Unit::Group { size, of: Box::new(self.unit.clone()) },
        }
    }

    /// Returns whether the relation replaces a record rather than adding or removing it.
    pub fn replaces(&self) -> bool {
        matches!(self.relation, AdjacencyKind::ReplaceOne | AdjacencyKind::ChangeListLabels)
    }

    /// Returns the target delta.
    ///
    /// # Errors
    /// None after the checks of [`new`](Self::new).
    pub fn target_delta(&self) -> Result<Delta, Refusal> {
        Delta::new(self.delta).map_err(|error| self.refused(&error))
    }

    /// Returns the target epsilon of a calibration.
    ///
    /// # Errors
    /// None after the checks of [`new`](Self::new).
    pub fn target_epsilon(&self) -> Result<Epsilon, Refusal> {
        Epsilon::new(self.epsilon).map_err(|error| self.refused(&error))
    }

    /// Creates the failure for an error of the accountant.
    pub fn refused(&self, error: &Error) -> Refusal {
        match error {
            Error::NotUnderRelation { .. } | Error::RelationsConflict { .. } | Error::AdjacencyMismatch { .. } => {
                Refusal::new(RefusalKind::Privacy, "privacy.adjacency", error.to_string()).at_field("adjacency")
            }
            Error::Unsupported { .. } => Refusal::new(RefusalKind::Privacy, "account.unsupported", error.to_string())
                .at_field("accountant")
                .help("leave the accountant to be chosen (`auto`), or compare all"),
            Error::Unreachable { .. } => {
                let message = match (self.unknown, &self.job) {
                    // Zero steps release nothing, so the only possible reason is that there is no maximum.
                    (Unknown::Steps, _) => "every number of steps below 2^64 meets the target".to_owned(),
                    (Unknown::SamplingRate, Job::Dpsgd) => {
                        "no sampling rate, however small, meets the target".to_owned()
                    }
                    _ if self.accountant != Accountant::Auto => {
                        format!("with the accountant `{}` nothing meets the target", self.accountant.name())
                    }
                    _ => error.to_string(),
                };
                let help = if self.accountant == Accountant::Auto {
                    "ask for another epsilon or delta, or change what is released"
                } else {
                    "leave the accountant to be chosen (`auto`), ask for another epsilon or delta, or change what is released"
                };
                Refusal::new(RefusalKind::Privacy, "account.unreachable", message)
                    .at_field(name(self.unknown))
                    .help(help)
            }
            _ if matches!(self.job, Job::Event(_)) => {
                Refusal::new(RefusalKind::Text, "account.event", error.to_string()).at_field("event")
            }
            _ => Refusal::new(RefusalKind::Question, "usage.value", error.to_string()),
        }
    }
}

/// The numbers of a request, checked and converted to rate and steps.
#[derive(Debug, Clone, Copy)]
struct Given {
    noise_multiplier: Option<f64>,
    sampling_rate: Option<f64>,
    steps: Option<u64>,
    delta: bool,
}

impl Given {
    fn new(request: &Request) -> Result<Self, Refusal> {
        check_job(&request.job)?;
        if let Some(noise) = request.noise_multiplier {
            within("noise_multiplier", noise, NOISE_MULTIPLIERS)?;
        }
        if let Some(delta) = request.delta
            && !(delta == 0.0 || (SMALLEST_DELTA..1.0).contains(&delta))
        {
            return Err(value("delta", delta).expected("0, or a number in [1e-300, 1)"));
        }
        if let Some(epsilon) = request.epsilon
            && !(epsilon == 0.0 || (EPSILONS.0..=EPSILONS.1).contains(&epsilon))
        {
            return Err(value("epsilon", epsilon).expected("0, or a number in [1e-9, 1e6]"));
        }
        if request.group == Some(0) {
            return Err(value("group", 0).expected("a whole number of at least 1"));
        }
        let sampling_rate = sampling_rate(request)?;
        let steps = steps(request, sampling_rate)?;
        Ok(Self { noise_multiplier: request.noise_multiplier, sampling_rate, steps, delta: request.delta.is_some() })
    }

    /// Determines the unknown, and fills in the default of an omitted number.
    fn unknown(mut self, request: &Request) -> Result<Unknown, Refusal> {
        let job = &request.job;
        let missing = |given: &Self| -> Vec<Unknown> {
            let known = [
                (Unknown::Epsilon, request.epsilon.is_some()),
                (Unknown::Delta, given.delta),
                (Unknown::NoiseMultiplier, given.noise_multiplier.is_some() || !job.has_noise_multiplier()),
                (Unknown::SamplingRate, given.sampling_rate.is_some() || *job != Job::Dpsgd),
                (Unknown::Steps, given.steps.is_some()),
            ];
            known.into_iter().filter(|(_, known)| !known).map(|(unknown, _)| unknown).collect()
        };
        let mut left = missing(&self);
        if let Some(solve) = request.solve
            && !left.contains(&solve)
        {
            return Err(conflict("solve", format!("{} is given or has no meaning for {}", name(solve), job.name()))
                .help("leave out the number that is to be computed"));
        }
        if left.len() > 1 && *job != Job::Dpsgd && request.solve != Some(Unknown::Steps) && self.steps.is_none() {
            self.steps = Some(1);
            left = missing(&self);
        }
        if left.len() > 1 && job.is_pure() && request.solve != Some(Unknown::Delta) && !self.delta {
            self.delta = true;
            left = missing(&self);
        }
        let unknown = match left.as_slice() {
            [unknown] => *unknown,
            [] => {
                return Err(conflict("epsilon", "nothing is left to be computed: every number is given")
                    .help("leave out the number that is to be computed"));
            }
            several => {
                let names: Vec<&str> = several.iter().map(|&unknown| name(unknown)).collect();
                let field = if several.contains(&Unknown::Delta) { "delta" } else { names[0] };
                return Err(Refusal::new(
                    RefusalKind::Question,
                    "usage.missing",
                    format!("too much is left out: {}", names.join(", ")),
                )
                .at_field(field)
                .help("give all of them but the one that is to be computed"));
            }
        };
        if unknown != Unknown::Delta && unknown != Unknown::Epsilon && request.epsilon == Some(0.0) {
            return Err(value("epsilon", 0.0).expected(range(EPSILONS)));
        }
        Ok(unknown)
    }
}

/// Returns the name of an unknown, as a field.
pub fn name(unknown: Unknown) -> &'static str {
    match unknown {
        Unknown::Epsilon => "epsilon",
        Unknown::Delta => "delta",
        Unknown::NoiseMultiplier => "noise_multiplier",
        Unknown::SamplingRate => "sampling_rate",
        Unknown::Steps => "steps",
    }
}

fn sampling_rate(request: &Request) -> Result<Option<f64>, Refusal> {
    if request.job != Job::Dpsgd {
        return Ok(None);
    }
    if let Some(rate) = request.sampling_rate {
        if request.batch_size.is_some() {
            return Err(conflict("batch_size", "batch_size and sampling_rate say the same; give one of them"));
        }
        return within("sampling_rate", rate, SAMPLING_RATES).map(Some);
    }
    match (request.batch_size, request.records) {
        (None, _) => Ok(None),
        (Some(_), None) => Err(Refusal::new(RefusalKind::Question, "usage.missing", "batch_size needs records")
            .at_field("records")
            .help("give the number of records, or the sampling rate in place of the batch size")),
        (Some(batch), Some(records)) => {
            if batch == 0 || batch > records {
                return Err(value("batch_size", batch).expected("a whole number from 1 to the number of records"));
            }
            within("sampling_rate", batch as f64 / records as f64, SAMPLING_RATES).map(Some)
        }
    }
}

fn steps(request: &Request, sampling_rate: Option<f64>) -> Result<Option<u64>, Refusal> {
    let steps = match (request.steps, request.epochs) {
        (Some(_), Some(_)) => {
            return Err(conflict("epochs", "epochs and steps say the same; give one of them"));
        }
        (steps, None) => steps,
        (None, Some(epochs)) => {
            if !(epochs > 0.0 && epochs <= 1e9) {
                return Err(value("epochs", epochs).expected("a number in (0, 1e9]"));
            }
            let Some(rate) = sampling_rate else {
                return Err(Refusal::new(RefusalKind::Question, "usage.missing", "epochs need a sampling rate")
                    .at_field("sampling_rate")
                    .help("give the sampling rate (or batch size and records), or the steps in place of the epochs"));
            };
            Some(steps_of(epochs, rate, request))
        }
    };
    match steps {
        Some(steps) if !(STEPS.0..=STEPS.1).contains(&steps) => {
            let failure = match request.epochs {
                Some(epochs) => value("epochs", epochs),
                None => value("steps", steps),
            };
            Err(failure.expected("1 to 1e9 steps"))
        }
        steps => Ok(steps),
    }
}

/// Returns the number of steps of that many epochs, rounded up.
fn steps_of(epochs: f64, rate: f64, request: &Request) -> u64 {
    let exact = match (request.batch_size, request.records) {
        (Some(batch), Some(records)) => epochs * records as f64 / batch as f64,
        _ => epochs / rate,
    };
    // Prevents rounding from turning 60 / 0.006 into 10001.
    let whole = exact.round();
    if (exact - whole).abs() <= 1e-9 * exact { whole as u64 } else { exact.ceil() as u64 }
}

/// Returns the requested relation, or the first one that the theorem covers.
fn relation(
    question: &Question,
    adjacency: Option<AdjacencyKind>,
    n_public: Option<bool>,
) -> Result<AdjacencyKind, Refusal> {
    let relations = question.event().relations().map_err(|error| question.refused(&error))?;
    let n_secret = n_public == Some(false);
    let add_remove = if n_secret { AdjacencyKind::AddRemoveOne } else { AdjacencyKind::ZeroOut };
    let relation = match adjacency {
        Some(AdjacencyKind::AddRemoveOne | AdjacencyKind::ZeroOut) => add_remove,
        Some(relation) => relation,
        None if n_secret => add_remove,
        None => [add_remove, AdjacencyKind::ReplaceOne, AdjacencyKind::ChangeListLabels]
            .into_iter()
            .find(|&relation| relations.contains(relation))
            .unwrap_or(add_remove),
    };
    if n_secret && relation != AdjacencyKind::AddRemoveOne {
        return Err(conflict("n_public", format!("under {relation} the number of records is public")));
    }
    if relations.contains(relation) { Ok(relation) } else { Err(mismatch(question, relation, relations)) }
}

/// Creates the failure for a requested relation that is not among `relations`.
fn mismatch(question: &Question, asked: AdjacencyKind, relations: Relations) -> Refusal {
    let (what, needed) = match (&question.job, question.sampling) {
        (Job::Dpsgd, Sampling::WithoutReplacement) => (
            "amplification by sampling without replacement is proved",
            "a theorem for batches of fixed size under add-remove; with Poisson sampling there is one \
             under add-remove",
        ),
        (Job::RandomizedResponse { .. }, _) => {
            ("randomised response protects what a record holds", "an answer that also hides whether a record is there")
        }
        _ => (
            "the theorems behind these events hold",
            "a theorem for these events under that relation; a `group` of 2 under add-remove covers a replacement \
             (`add-remove-twice`)",
        ),
    };
    Refusal::new(RefusalKind::Privacy, "privacy.adjacency", format!("{what} under {relations}, not under {asked}"))
        .at_field("adjacency")
        .expected(relations.to_string())
        .help(format!("what was asked for needs {needed}"))
}

fn check_job(job: &Job) -> Result<(), Refusal> {
    const LARGEST: f64 = 1e6;
    let positive = |field: &'static str, number: f64, largest: f64| {
        if number > 0.0 && number <= largest {
            return Ok(());
        }
        Err(value(field, number).expected(format!("a number in (0, {largest}]")))
    };
    match *job {
        Job::LaplaceBall { dim: 0 } => Err(value("dim", 0).expected("a whole number of at least 1")),
        Job::RandomizedResponse { buckets, .. } if buckets < 2 => {
            Err(value("buckets", buckets).expected("a whole number of at least 2"))
        }
        Job::RandomizedResponse { noise, .. } => positive("noise", noise, 1.0),
        Job::Pure { step_epsilon } => positive("step_epsilon", step_epsilon, LARGEST),
        Job::Approximate { step_epsilon, step_delta } => {
            if !(step_delta == 0.0 || (SMALLEST_DELTA..1.0).contains(&step_delta)) {
                return Err(value("step_delta", step_delta).expected("0, or a number in [1e-300, 1)"));
            }
            if step_epsilon == 0.0 { Ok(()) } else { positive("step_epsilon", step_epsilon, LARGEST) }
        }
        Job::Zcdp { rho } => positive("rho", rho, LARGEST),
        Job::Gdp { mu } => positive("mu", mu, LARGEST),
        Job::Dpsgd | Job::Gaussian | Job::Laplace | Job::LaplaceBall { .. } | Job::Event(_) => Ok(()),
    }
}

fn within(field: &'static str, number: f64, accepted: (f64, f64)) -> Result<f64, Refusal> {
    if number >= accepted.0 && number <= accepted.1 {
        return Ok(number);
    }
    Err(value(field, number).expected(range(accepted)))
}

fn range((least, largest): (f64, f64)) -> String {
    format!("a number in [{least:?}, {largest:?}]")
}

fn value(field: &str, number: impl std::fmt::Debug) -> Refusal {
    Refusal::new(RefusalKind::Question, "usage.value", format!("{field} = {number:?} is out of range")).at_field(field)
}

fn conflict(field: &str, message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Question, "usage.conflict", message).at_field(field)
}
