//! `dp train`: from a file of records to a released model with its certificate.

mod config;
mod outcome;
mod recipe;
mod source;

use std::collections::BTreeMap;
use std::time::Instant;

use dp_accountant::certificate::{Assumption, Certificate, NoiseMode, SCHEMA};
use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, DpEvent, ReplaceOne, ZeroOut};
use dp_data::encode::Stored;
use dp_data::examples::Feature;
use dp_data::{Encoder, Examples};
use dp_losses::Real;
use dp_mechanisms::rng::{OsSeeded, Purpose, ReleaseRng, SeededRng};
use dp_optim::engine::Control;
use dp_optim::recipes::bolt_on::RecordAdjacency;
use dp_optim::recipes::{Budget, train_without_privacy};
use dp_optim::{Derivation, FloatKind, MemorySource};

pub use config::{DryRun, Knowledge, Method, Settings, Target, TrainConfig};
pub use outcome::{DryOutcome, Outcome};

use recipe::{Shape, refusal};
use source::Known;

use crate::args::{self, GlobalArgs, TrainArgs};
use crate::atomic;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::model_file::{Model, ModelFile, assumed_public};
use crate::output::{Console, write_stdout};
use crate::progress::Progress;
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
    let outputs = [Some(&config.out), None].into_iter().flatten().filter_map(|target| match target {
        Target::File(path) => Some(path),
        Target::Stdout => None,
    });
    for path in outputs.chain(&config.report) {
        atomic::check(path, config.force)?;
    }
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
    // The report first: a model without its report is whole, a report without its model is not.
    match &config.out {
        Target::File(path) => atomic::write(path, config.force, text.as_bytes())?,
        Target::Stdout => write_stdout(text.as_bytes(), b"")?,
    }
    if let Some(path) = &config.report {
        atomic::write(path, config.force, report::markdown(&file, &name).as_bytes())?;
    }
    Ok(Outcome::new(config, &file, trained.n, started.elapsed(), trained.training))
}

/// Says what a run would release and cost, without reading a record.
///
/// # Errors
/// As [`run`], as far as it can be known from flags, schema and header.
pub fn dry_run(config: &TrainConfig, console: &Console) -> Result<DryOutcome, Failure> {
    warn_before(config, console);
    check_recipe(config)?;
    let encoder = Known::new(config, console)?.check_header(config)?;
    let Some(encoder) = encoder else {
        return Err(crate::input::conflict("--dry-run", "the number of features is not known").help("add --dim"));
    };
    let n = config.dry_run.and_then(|dry| dry.n);
    let shape = n.map(|n| Shape { n, dim: encoder.dim() as u64, sparse: encoder.prefers_sparse() });
    let planned = match (config.method, shape) {
        (Method::BoltOn { strongly_convex, budget, adjacency }, Some(shape)) => {
            warn_delta(budget, shape.n, console);
            let recipe = recipe::bolt_on(config, strongly_convex, budget, shape)?;
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
                args::Adjacency::ChangeListLabels => return Err(no_proof(adjacency)),
            })
        }
        _ => None,
    };
    Ok(DryOutcome::new(config, &encoder, n, planned))
}

/// The records in memory, with what is public about them.
struct Records<F> {
    encoder: Encoder,
    examples: Examples<F>,
    shape: Shape,
}

/// What training gives.
struct TrainedModel {
    model: Model,
    certificate: Certificate<Derivation>,
    n: u64,
    training: std::time::Duration,
}

/// Refuses, before any record is read, what no number of records would make right.
fn check_recipe(config: &TrainConfig) -> Result<(), Failure> {
    let Method::BoltOn { strongly_convex, budget, adjacency } = config.method else {
        let shape = Shape { n: 1, dim: 1, sparse: false };
        return recipe::non_private(config, shape).map(drop);
    };
    // One batch and few passes: quick, and all checks of the parameters are made.
    let batch = config.settings.batch_size.unwrap_or(1);
    let shape = Shape { n: batch, dim: 1, sparse: false };
    let mut recipe = recipe::bolt_on(config, strongly_convex, budget, shape)?;
    recipe.passes = recipe.passes.min(2);
    recipe.averaging = dp_optim::Averaging::Last;
    let planned = match adjacency {
        args::Adjacency::AddRemove => recipe.plan::<ZeroOut>(shape.n, shape.dim, budget).map(drop),
        args::Adjacency::ReplaceOne => recipe.plan::<ReplaceOne>(shape.n, shape.dim, budget).map(drop),
        args::Adjacency::ChangeListLabels => return Err(no_proof(adjacency)),
    };
    planned.map_err(|error| refusal(&error))
}

fn no_proof(adjacency: args::Adjacency) -> Failure {
    let name = match adjacency {
        args::Adjacency::AddRemove => "add-remove",
        args::Adjacency::ReplaceOne => "replace-one",
        args::Adjacency::ChangeListLabels => "change-list-labels",
    };
    Failure::new(ExitStatus::Privacy, "privacy.adjacency", format!("bolt-on has no proof under {name}"))
        .at_flag("--adjacency")
        .expected("replace-one (the default, as in its paper) or add-remove")
}

fn load_and_train<F: Real + Stored + Feature>(
    config: &TrainConfig,
    known: Known,
    console: &Console,
) -> Result<TrainedModel, Failure> {
    let progress = Progress::start(config.progress, console, "read", None);
    let (encoder, loaded) = known.load::<F>(config)?;
    let n = loaded.examples.len() as u64;
    progress.finish(n);
    for warning in &loaded.warnings {
        console.warn_curator(&warning.to_string());
    }
    let from_data = assumed_public(&encoder);
    if !from_data.is_empty() {
        console.warn(&format!(
            "assumed public, though taken from the data: {}\nthe certificate says so; review a schema (`dp schema`) to \
             do without",
            from_data.join(", ")
        ));
    }
    let shape = Shape { n, dim: encoder.dim() as u64, sparse: encoder.prefers_sparse() };
    let records = Records { encoder, examples: loaded.examples, shape };
    match (config.method, config.seed) {
        (Method::NonPrivate, seed) => {
            let key = match seed {
                Some(seed) => SeededRng::new(seed).derive_key(Purpose::Permutation),
                None => secret()?.derive_key(Purpose::Permutation),
            };
            train_baseline(config, records, key, console)
        }
        (Method::BoltOn { .. }, Some(seed)) => choose_relation(config, records, &mut SeededRng::new(seed), console),
        (Method::BoltOn { .. }, None) => choose_relation(config, records, &mut secret()?, console),
    }
}

fn secret() -> Result<OsSeeded, Failure> {
    OsSeeded::new().map_err(|error| refusal(&error.into()))
}

fn choose_relation<F: Real + Stored + Feature, R: ReleaseRng>(
    config: &TrainConfig,
    records: Records<F>,
    rng: &mut R,
    console: &Console,
) -> Result<TrainedModel, Failure> {
    let Method::BoltOn { strongly_convex, budget, adjacency } = config.method else {
        return Err(Failure::new(ExitStatus::Failed, "train.failed", "no private method"));
    };
    warn_delta(budget, records.shape.n, console);
    let recipe = recipe::bolt_on(config, strongly_convex, budget, records.shape)?;
    match adjacency {
        args::Adjacency::AddRemove => train_private::<ZeroOut, F, R>(config, &recipe, budget, records, rng, console),
        args::Adjacency::ReplaceOne => {
            train_private::<ReplaceOne, F, R>(config, &recipe, budget, records, rng, console)
        }
        args::Adjacency::ChangeListLabels => Err(no_proof(adjacency)),
    }
}

fn train_private<A: RecordAdjacency, F: Real + Stored + Feature, R: ReleaseRng>(
    config: &TrainConfig,
    recipe: &dp_optim::recipes::BoltOn,
    budget: Budget,
    records: Records<F>,
    rng: &mut R,
    console: &Console,
) -> Result<TrainedModel, Failure> {
    let refused = |error: dp_optim::Error| refusal(&error);
    let Records { encoder, examples, shape } = records;
    let started = Instant::now();
    let plan = recipe.plan::<A>(shape.n, shape.dim, budget).map_err(refused)?;
    console.detail(&format!(
        "sensitivity {:.4e}, noise of norm {:.4e}, {} passes, batches of {}, lambda {:e}",
        plan.sensitivity(),
        plan.noise_norm(),
        recipe.passes,
        recipe.batch_size,
        recipe.lambda
    ));
    let mut source = MemorySource::new(examples, recipe.row_norm, recipe.target_bound);
    let trained = with_progress(config, console, shape.n, recipe.passes, |control| {
        plan.train(&mut source, rng, control).map_err(refused)
    })?;
    let training = started.elapsed();
    let weights = trained.weights.get().iter().map(|weight| weight.widen()).collect();
    let model = Model::new(encoder, config.loss, weights);
    let certificate = trained.certificate(Unit::Record, vec![model.schema_assumption()], model.sha256()?, versions());
    Ok(TrainedModel { model, certificate, n: shape.n, training })
}

fn train_baseline<F: Real + Stored + Feature>(
    config: &TrainConfig,
    records: Records<F>,
    key: [u8; 32],
    console: &Console,
) -> Result<TrainedModel, Failure> {
    let Records { encoder, examples, shape } = records;
    let started = Instant::now();
    let recipe = recipe::non_private(config, shape)?;
    let mut source = MemorySource::new(examples, 1.0, 1.0);
    let weights = with_progress(config, console, shape.n, recipe.passes, |control| {
        train_without_privacy(&recipe, &mut source, key, control).map_err(|error| refusal(&error))
    })?;
    let training = started.elapsed();
    let weights = weights.expose_without_any_guarantee().into_iter().map(Feature::widen).collect();
    let model = Model::new(encoder, config.loss, weights);
    let certificate = Certificate {
        schema: SCHEMA.to_owned(),
        adjacency: AdjacencyKind::ReplaceOne,
        unit: Unit::Record,
        private: false,
        requested: None,
        reached: None,
        event: DpEvent::NonPrivate,
        noise: NoiseMode::None,
        derivation: Derivation::NonPrivate(recipe),
        assumptions: vec![Assumption::EarlierRunsNotAccounted, model.schema_assumption()],
        model_sha256: model.sha256()?,
        versions: versions(),
    };
    Ok(TrainedModel { model, certificate, n: shape.n, training })
}

/// Trains under a progress bar.
fn with_progress<T>(
    config: &TrainConfig,
    console: &Console,
    n: u64,
    passes: u64,
    train: impl FnOnce(&mut Control<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let total = n.saturating_mul(passes);
    let mut progress = Progress::start(config.progress, console, "train", Some(total));
    let mut show = |at: dp_optim::engine::Progress| {
        progress.update(at.pass.saturating_mul(n).saturating_add(at.rows), Some(at.pass + 1));
    };
    let trained = train(&mut Control { cancelled: None, progress: Some(&mut show) })?;
    progress.finish(total);
    Ok(trained)
}

fn versions() -> BTreeMap<String, String> {
    BTreeMap::from([(env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned())])
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
