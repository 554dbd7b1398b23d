//! `dp train`: from a file of records to a released model with its certificate.

mod config;
mod outcome;
mod recipe;
mod source;
mod training;

use std::time::Instant;

use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_optim::FloatKind;
use dp_optim::recipes::Budget;

pub use config::{DryRun, Knowledge, Method, NamedClasses, Settings, Target, TrainConfig};
pub use outcome::{DryOutcome, Outcome};

pub(super) use config::loss;
pub(super) use recipe::refusal;

use recipe::Shape;
use source::Known;
use training::load_and_train;

use crate::args::{self, GlobalArgs, TrainArgs};
use crate::atomic;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::model_file::ModelFile;
use crate::output::{Console, write_stdout};
use crate::report;

/// Trains, writes and prints.
///
/// # Errors
/// `usage.*`, what is wrong with schema, records or outputs, and `privacy.*` where no guarantee is possible.
pub fn execute(args: &TrainArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    let config = TrainConfig::new(args, global)?;
    if config.dry_run.is_some() {
        let outcome = dry_run(&config, console)?;
        return console.result(&outcome, &outcome.text());
    }
    let outcome = run(&config, console)?;
    match config.out {
        Target::Stdout => {
            outcome.text().lines().for_each(|line| console.note(line));
            Ok(())
        }
        Target::File(_) => console.result(&outcome, &outcome.text()),
    }
}

/// Trains and writes model, certificate and report.
///
/// # Errors
/// What is wrong with schema, records or outputs, and `privacy.*` where no guarantee is possible. Nothing is written
/// then.
pub fn run(config: &TrainConfig, console: &Console) -> Result<Outcome, Failure> {
    let started = Instant::now();
    warn_before(config, console);
    config.outputs().try_for_each(|path| atomic::check(path, config.force))?;
    check_recipe(config)?;
    let known = Known::new(config, console)?;
    let trained = match config.float {
        FloatKind::F64 => load_and_train::<f64>(config, known, console)?,
        FloatKind::F32 => load_and_train::<f32>(config, known, console)?,
    };
    let file = ModelFile::seal(trained.model, trained.certificate)?;
    let text = file.to_text()?;
    let name = match &config.out {
        Target::File(path) => path.file_name().map_or("model".into(), |name| name.to_string_lossy().into_owned()),
        Target::Stdout => "MODEL".to_owned(),
    };
    let report = config.report.as_ref().map(|path| (path, report::markdown(&file, &name)));
    let report = report.as_ref().map(|(path, text)| (path.as_path(), text.as_bytes()));
    match &config.out {
        Target::File(path) => {
            let files: Vec<_> = [(path.as_path(), text.as_bytes())].into_iter().chain(report).collect();
            atomic::write_together(&files, config.force)?;
        }
        Target::Stdout => {
            atomic::write_together(report.as_slice(), config.force)?;
            write_stdout(text.as_bytes(), b"")?;
        }
    }
    Ok(Outcome::new(config, &file, trained.n, started.elapsed(), trained.training))
}

/// Says what a run would release and cost, without reading a record.
///
/// # Errors
/// As [`run`], as far as it can be known from flags, schema and header.
pub fn dry_run(config: &TrainConfig, console: &Console) -> Result<DryOutcome, Failure> {
    warn_before(config, console);
    config.outputs().try_for_each(|path| atomic::check_name(path, config.force))?;
    check_recipe(config)?;
    let encoder = Known::new(config, console)?.check_header(config)?;
    let Some(encoder) = encoder else {
        return Err(crate::input::conflict("--dry-run", "the number of features is not known").help("add --dim"));
    };
    let n = config.dry_run.and_then(|dry| dry.n);
    let shape = n.map(|n| Shape { n, dim: encoder.dim() as u64, sparse: encoder.prefers_sparse() });
    let planned = match (config.method, shape) {
        (Method::BoltOn { algorithm, budget, adjacency }, Some(shape)) => {
            warn_delta(budget, shape.n, console);
            let recipe = recipe::bolt_on(config, algorithm, budget, relation(adjacency)?, shape)?;
            let refused = |error: dp_optim::Error| refusal(&error);
            Some(match adjacency {
                args::Adjacency::AddRemove => {
                    let plan = recipe.plan::<ZeroOut>(shape.n, shape.dim, budget).map_err(refused)?;
                    (plan.event(), plan.sensitivity(), plan.reached())
                }
                args::Adjacency::ReplaceOne => {
                    let plan = recipe.plan::<ReplaceOne>(shape.n, shape.dim, budget).map_err(refused)?;
                    (plan.event(), plan.sensitivity(), plan.reached())
                }
                args::Adjacency::ChangeListLabels => return Err(no_proof()),
            })
        }
        _ => None,
    };
    Ok(DryOutcome::new(config, &encoder, n, planned))
}

/// Refuses, before any record is read, what no number of records would make right.
fn check_recipe(config: &TrainConfig) -> Result<(), Failure> {
    let Method::BoltOn { algorithm, budget, adjacency } = config.method else {
        let shape = Shape { n: 1, dim: 1, sparse: false };
        return recipe::non_private(config, shape).map(drop);
    };
    // One batch: quick, and all checks of the parameters are made.
    let batch = config.settings.batch_size.unwrap_or(1);
    let shape = Shape { n: batch, dim: 1, sparse: false };
    let recipe = recipe::bolt_on(config, algorithm, budget, relation(adjacency)?, shape)?;
    let planned = match adjacency {
        args::Adjacency::AddRemove => recipe.plan::<ZeroOut>(shape.n, shape.dim, budget).map(drop),
        args::Adjacency::ReplaceOne => recipe.plan::<ReplaceOne>(shape.n, shape.dim, budget).map(drop),
        args::Adjacency::ChangeListLabels => return Err(no_proof()),
    };
    planned.map_err(|error| refusal(&error))
}

/// The relation that was asked for, if the recipe has a proof under it.
fn relation(adjacency: args::Adjacency) -> Result<AdjacencyKind, Failure> {
    match adjacency {
        args::Adjacency::AddRemove => Ok(AdjacencyKind::ZeroOut),
        args::Adjacency::ReplaceOne => Ok(AdjacencyKind::ReplaceOne),
        args::Adjacency::ChangeListLabels => Err(no_proof()),
    }
}

fn no_proof() -> Failure {
    Failure::new(ExitStatus::Privacy, "privacy.adjacency", "bolt-on has no proof under this neighbouring relation")
        .at_flag("--adjacency")
        .expected("replace-one (the default, as in its paper) or add-remove")
        .help("choose one of these; nothing was read or released")
}

/// What makes a run worthless as a private one is said before anything else.
fn warn_before(config: &TrainConfig, console: &Console) {
    if config.method == Method::NonPrivate {
        console.warn(
            "NOT PRIVATE: --algorithm non-private adds no noise; the model may reveal the records that it was trained on\n\
             use it for comparison, and do not publish it",
        );
    } else if config.seed.is_some() {
        console.warn(
            "NOT PRIVATE: --seed makes the noise reproducible, so that anyone who guesses the seed can subtract it\n\
             the certificate claims nothing; leave --seed away for a model to be published",
        );
    }
}

fn warn_delta(budget: Budget, n: u64, console: &Console) {
    let delta = budget.delta.get();
    if n > 0 && delta > 1.0 / n as f64 {
        console.warn(&format!(
            "delta = {delta} is larger than 1/n = {:.3e}\npublishing one whole record at random would satisfy such a \
             guarantee; choose delta far below 1/n",
            1.0 / n as f64
        ));
    }
}
