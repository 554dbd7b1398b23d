//! The question on the command line, from its flags and files.

use dp::accounting::{Job, Request};
use dp::canonical;
use dp_accountant::AdjacencyKind;

use crate::args::{AccountJob, Adjacency, DpsgdArgs, FileName, QuestionArgs};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::files;
use crate::input::read_whole;

/// Largest size in bytes of a file of events.
const LARGEST_FILE: u64 = 64 << 20;

/// Returns the question on the command line with its output options; `None` for a batch.
///
/// # Errors
/// A file that cannot be read or does not hold an event.
pub fn from_args(job: &AccountJob) -> Result<Option<(Request, &QuestionArgs)>, Failure> {
    let (mut request, steps, asked) = match job {
        AccountJob::Batch(_) => return Ok(None),
        AccountJob::Dpsgd(args) => (dpsgd(args), args.steps, &args.question),
        AccountJob::Gaussian(args) => {
            (with_noise(Job::Gaussian, args.noise_multiplier), args.repeat.steps, &args.question)
        }
        AccountJob::Laplace(args) => {
            (with_noise(Job::Laplace, args.noise_multiplier), args.repeat.steps, &args.question)
        }
        AccountJob::LaplaceBall(args) => {
            let job = Job::LaplaceBall { dim: args.dim };
            (with_noise(job, args.noise_multiplier), args.repeat.steps, &args.question)
        }
        AccountJob::RandomizedResponse(args) => {
            let job = Job::RandomizedResponse { buckets: args.buckets, noise: args.noise };
            (Request::new(job), args.repeat.steps, &args.question)
        }
        AccountJob::Pure(args) => {
            (Request::new(Job::Pure { step_epsilon: args.step_epsilon }), args.repeat.steps, &args.question)
        }
        AccountJob::Approximate(args) => {
            let job = Job::Approximate { step_epsilon: args.step_epsilon, step_delta: args.step_delta };
            (Request::new(job), args.repeat.steps, &args.question)
        }
        AccountJob::Zcdp(args) => (Request::new(Job::Zcdp { rho: args.rho }), args.repeat.steps, &args.question),
        AccountJob::Gdp(args) => (Request::new(Job::Gdp { mu: args.mu }), args.repeat.steps, &args.question),
        AccountJob::Event(args) => (from_event_file(&args.file)?, args.repeat.steps, &args.question),
        AccountJob::Certificate(args) => {
            (from_certificate(&args.model, &args.question)?, args.repeat.steps, &args.question)
        }
    };
    check_relation(&request, asked)?;
    request.steps = steps;
    request.epsilon = asked.epsilon.or(request.epsilon);
    request.delta = asked.delta.or(request.delta);
    request.solve = asked.solve;
    request.group = asked.group;
    request.accountant = asked.accountant;
    request.adjacency = asked.adjacency.map(kind).or(request.adjacency);
    request.n_public = if asked.secret_n { Some(false) } else { request.n_public };
    Ok(Some((request, asked)))
}

fn dpsgd(args: &DpsgdArgs) -> Request {
    Request {
        noise_multiplier: args.noise_multiplier,
        sampling_rate: args.sampling_rate,
        batch_size: args.batch_size,
        records: args.records,
        epochs: args.epochs,
        sampling: args.sampling,
        ..Request::new(Job::Dpsgd)
    }
}

fn with_noise(job: Job, noise_multiplier: Option<f64>) -> Request {
    Request { noise_multiplier, ..Request::new(job) }
}

fn from_event_file(name: &FileName) -> Result<Request, Failure> {
    let bytes = read(name)?;
    let refused = |failure: Failure| failure.at_file(if &**name == "-" { "standard input" } else { name });
    let text = std::str::from_utf8(&bytes).map_err(|_| refused(no_event("the file is not UTF-8 text")))?;
    let value = canonical::parse(text).map_err(|error| {
        refused(no_event(format!("not JSON: {error}")))
            .help("a tree of at most about 120 levels; JSON has no NaN, no Infinity and no member twice")
    })?;
    Request::from_event(value).map_err(|refusal| refused(refusal.into()))
}

fn from_certificate(name: &FileName, asked: &QuestionArgs) -> Result<Request, Failure> {
    let certificate = files::sealed(name)?.any_certificate().map_err(|error| Failure::from(error).at_file(name))?;
    let mut request = Request::of_certificate(&certificate).map_err(|refusal| Failure::from(refusal).at_file(name))?;
    if asked.epsilon.is_none() && asked.delta.is_none() {
        request.delta = certificate.reached.map(|reached| reached.delta);
    }
    Ok(request)
}

/// Refuses another relation than a file states: its sensitivities hold under that one.
fn check_relation(stated: &Request, asked: &QuestionArgs) -> Result<(), Failure> {
    let other =
        asked.adjacency.map(kind).filter(|other| stated.adjacency.is_some_and(|it| it.as_str() != other.as_str()));
    let secret = asked.secret_n && stated.n_public == Some(true);
    let (flag, asked) = match other {
        Some(other) => ("--adjacency", other.to_string()),
        None if secret => ("--secret-n", "a secret number of records".to_owned()),
        None => return Ok(()),
    };
    let message = format!("the file states its relation, and its sensitivities need not hold under {asked}");
    let failure = Failure::new(ExitStatus::Privacy, "privacy.adjacency", message).at_flag(flag);
    Err(match stated.adjacency {
        Some(AdjacencyKind::ZeroOut | AdjacencyKind::AddRemoveOne) => {
            failure.help("omit the flag; `--group 2` under add-remove covers the replacement of a record")
        }
        _ => failure.help("omit the flag"),
    })
}

/// Returns a relation; `n_public` of the request tells the two kinds of add-remove apart.
fn kind(adjacency: Adjacency) -> AdjacencyKind {
    match adjacency {
        Adjacency::AddRemove => AdjacencyKind::ZeroOut,
        Adjacency::ReplaceOne => AdjacencyKind::ReplaceOne,
        Adjacency::ChangeListLabels => AdjacencyKind::ChangeListLabels,
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
