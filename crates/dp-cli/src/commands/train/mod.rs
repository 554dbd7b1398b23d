//! `dp train`: trains a model on a file of records and releases it with its certificate.

mod algorithm;
mod config;
mod knowledge;
mod loss;
mod outcome;
mod privacy;
mod refusal;
mod source;
mod target;
mod training;
mod tuning;

use std::time::Instant;

use dp::report;
use dp::training::Shape;
use dp_accountant::AdjacencyKind;
use dp_data::schema::{Label, Others};
use dp_optim::FloatKind;
use dp_optim::recipes::{AnyRecipe, Budget};

pub use algorithm::PrivateAlgorithm;
pub(super) use algorithm::check_flags;
pub(crate) use config::ON_SUMS;
pub use config::{DryRun, TrainConfig};
pub use knowledge::{Knowledge, NamedLabel};
pub use loss::AskedLoss;
pub use outcome::{DryOutcome, Outcome};
pub use tuning::{Chosen, Tuning, Way};

pub use privacy::Method;
pub use target::Target;

pub(super) use outcome::percent;
pub(super) use privacy::{budget, check_non_private};
pub(super) use refusal::refusal;
pub(super) use training::{check_room, secret};

use source::Known;
use training::load_and_train;

use super::network;
use crate::args::{GlobalArgs, TrainArgs};
use crate::atomic;
use crate::failure::Failure;
use crate::limit;
use crate::output::{Console, check_stdout};
use crate::protection;

/// A training, as far as public numbers determine it.
pub(super) struct Planned {
    pub(super) recipe: AnyRecipe,
    /// The relation that it is proved under.
    pub(super) relation: AdjacencyKind,
    pub(super) budget: Budget,
}

/// Returns the configuration for a label with this number of classes, named by numbers; reads nothing.
///
/// # Errors
/// `usage.*`.
pub(super) fn for_classes(config: &TrainConfig, classes: u32) -> Result<TrainConfig, Failure> {
    config.for_label(&if classes > 2 {
        Label::classes("class", (1..=classes).map(|class| class.to_string()).collect())
    } else {
        Label::two_classes("class", vec!["1".into()], vec!["-1".into()], Others::Error)
    })
}

/// Plans a configuration for `n` records of `dim` features; reads nothing.
///
/// # Errors
/// `usage.*`, and `privacy.*` if no guarantee is possible.
pub(super) fn planned(config: &TrainConfig, n: u64, dim: u64) -> Result<Planned, Failure> {
    let config = &config.for_records(n);
    let Method::Private { algorithm, budget, adjacency } = config.method else {
        return Err(Failure::usage("--algorithm", "without privacy there is no claim"));
    };
    let (built, relation) = algorithm.recipe(config, budget, adjacency, Shape { n, dim, sparse: false })?;
    Ok(Planned { recipe: built.recipe, relation, budget })
}

/// Trains, writes and prints.
///
/// # Errors
/// `usage.*`, errors in schema, records or outputs, and `privacy.*` if no guarantee is possible.
pub fn execute(args: &TrainArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    match &args.model {
        Some(model) => network::train(args, model, global, console),
        None => execute_configured(&TrainConfig::new(args, global)?, console),
    }
}

/// Trains as configured, writes and prints.
///
/// # Errors
/// Those of [`run`] and [`dry_run`].
pub(super) fn execute_configured(config: &TrainConfig, console: &Console) -> Result<(), Failure> {
    if config.dry_run.is_some() {
        let outcome = dry_run(config, console)?;
        return console.result(&outcome, &outcome.text());
    }
    let outcome = run(config, console)?;
    config.out.print(&outcome, &outcome.text(), console)
}

/// Trains and writes model, certificate and report.
///
/// # Errors
/// Errors in schema, records or outputs, and `privacy.*` if no guarantee is possible. Nothing is written then.
pub fn run(config: &TrainConfig, console: &Console) -> Result<Outcome, Failure> {
    let started = Instant::now();
    warn_before(config, console);
    config.outputs().try_for_each(|path| atomic::check(path, config.force))?;
    if config.out == Target::Stdout {
        check_stdout()?;
    }
    check_recipe(config, console)?;
    let known = Known::new(config, console)?;
    let config = &fitted(config, known.label(), console)?;
    let trained = match config.float {
        FloatKind::F64 => load_and_train::<f64>(config, known, console)?,
        FloatKind::F32 => load_and_train::<f32>(config, known, console)?,
    };
    let training::TrainedModel { file, n, training, advice, chosen } = trained;
    let text = file.to_text()?;
    let loss = config.loss.to_string();
    let choice: Vec<String> = advice
        .iter()
        .flat_map(|advice| {
            let expected = format!("Expected, from public numbers: {}.", outcome::expectation(advice, &loss));
            let by = if config.tried.is_some() { "By noisy counts of errors" } else { "By public numbers alone" };
            [format!("{by}: {}.", advice.reason), expected]
        })
        .collect();
    let report = config.report.as_deref().map(|path| (path, report::markdown(&file, &config.out.name(), &choice)));
    let report = report.as_ref().map(|(path, text)| (*path, text.as_str()));
    config.out.write(&text, report, config.force)?;
    let times = (started.elapsed(), training);
    Ok(Outcome::new(config, &file, n, times, outcome::Picked { advice, chosen }))
}

/// Computes the release and the cost of a run, without reading a record.
///
/// # Errors
/// As [`run`], as far as flags, schema and header show them.
pub fn dry_run(config: &TrainConfig, console: &Console) -> Result<DryOutcome, Failure> {
    warn_before(config, console);
    config.outputs().try_for_each(|path| atomic::check_name(path, config.force))?;
    check_recipe(config, console)?;
    let known = Known::new(config, console)?;
    let config = &fitted(config, known.label(), console)?;
    let encoder = known.check_header(config)?;
    let Some(encoder) = encoder else {
        return Err(crate::input::conflict("--dry-run", "the number of features is not known").help("add --dim"));
    };
    let n = config.dry_run.and_then(|dry| dry.n);
    let config = &n.map_or_else(|| config.clone(), |n| config.for_records(n));
    let encoder = match n {
        Some(n) if config.map_is_chosen => algorithm::mapped(config, &encoder, n)?,
        _ => encoder,
    };
    let shape = n.map(|n| Shape { n, dim: encoder.dim() as u64, sparse: encoder.prefers_sparse() });
    let planned = match (config.method, shape) {
        (Method::Private { algorithm, budget, adjacency }, Some(shape)) => {
            protection::warn(budget, config.units(shape.n), config.units_are_called(), console);
            Some(limit::planning(config.limit, config.progress, console, || {
                algorithm.foresee(config, budget, adjacency, shape)
            })?)
        }
        _ => None,
    };
    Ok(DryOutcome::new(config, &encoder, n, planned))
}

/// Returns the configuration for this label; checks the recipe again if the label selects another loss.
fn fitted(config: &TrainConfig, label: &Label, console: &Console) -> Result<TrainConfig, Failure> {
    let fitted = config.for_label(label)?;
    if (fitted.loss, fitted.one_vs_all) != (config.loss, config.one_vs_all) {
        check_recipe(&fitted, console)?;
    }
    Ok(fitted)
}

/// Rejects, before any record is read, a configuration that is wrong for every number of records.
fn check_recipe(config: &TrainConfig, console: &Console) -> Result<(), Failure> {
    match config.method {
        Method::Private { algorithm, budget, adjacency } => {
            let check = || algorithm.check(config, budget, adjacency);
            limit::within(config.limit, 1.0, config.progress, console, check)?.value
        }
        Method::NonPrivate => algorithm::non_private(config, Shape { n: 1, dim: 1, sparse: false }).map(drop),
    }
}

/// Warns first of anything that makes the run worthless as a private one.
fn warn_before(config: &TrainConfig, console: &Console) {
    if matches!(config.method, Method::NonPrivate) {
        console.warn(
            "NOT PRIVATE: --algorithm non-private adds no noise; the model may reveal the records that it was trained on\n\
             use it for comparison, and do not publish it",
        );
    } else if config.seed.is_some() {
        protection::warn_seeded("model", console);
    }
}
