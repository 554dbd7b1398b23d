//! Reading, planning, training and certifying, for each arithmetic, relation and random generator.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dp::model::{ModelFile, assumed_public};
use dp::sealed;
use dp::training::{Records, Shape};
use dp::wording::{self, one_line};
use dp_accountant::certificate::Assumption;
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_data::encode::Stored;
use dp_data::memory::{self, Bytes};
use dp_losses::Real;
use dp_mechanisms::rng::{LentRng, OsSeeded, Purpose, ReleaseRng, SeededRng};
use dp_optim::catalogue::{Advice, Built};
use dp_optim::engine::Control;
use dp_optim::recipes::{Budget, Compiled, Planned, Recipe, TrainsAny};

use super::algorithm;
use super::config::TrainConfig;
use super::privacy::Method;
use super::refusal::refusal;
use super::source::Known;
use super::tuning::{Chosen, Tuning, Way, chosen_on_public, public_records};
use crate::exit_code::ExitStatus;
use crate::failure::{Failure, out_of_memory};
use crate::input::TypedTable;
use crate::limit;
use crate::output::Console;
use crate::progress::{Counted, Progress, ProgressMode};
use crate::protection;

/// The records, with their public facts.
struct Encoded<F> {
    records: Records<F>,
    shape: Shape,
}

/// The result of training.
pub(super) struct TrainedModel {
    pub(super) file: ModelFile,
    pub(super) n: u64,
    pub(super) training: Duration,
    /// The selection, if there was one.
    pub(super) chosen: Option<Chosen>,
    /// The advice, if the algorithm was chosen automatically.
    pub(super) advice: Option<Advice>,
}

/// Reads the records, then trains.
pub(super) fn load_and_train<F: Compiled + Stored>(
    config: &TrainConfig,
    known: Known,
    console: &Console,
) -> Result<TrainedModel, Failure>
where
    ZeroOut: TrainsAny<F>,
    ReplaceOne: TrainsAny<F>,
{
    // Checked before the records are read if the width is known; for a libsvm file without --dim, afterwards.
    // Both models of a comparison are held.
    let weights = |dim: usize| dim + config.tried.map_or(0, |tried| dim.saturating_add(tried.features as usize));
    if let Known::Encoder(encoder, _) = &known {
        check_memory(weights(encoder.dim()), config.scores())?;
    }
    let (records, warnings) = known.load::<F>(config, console)?;
    let (n, encoder) = (records.rows.len(), &records.encoder);
    let config = &config.for_records(n);
    for warning in &warnings {
        console.warn_curator(&one_line(&warning.to_string()));
    }
    let from_data = assumed_public(encoder);
    if !from_data.is_empty() {
        console.warn(&format!(
            "assumed public, though taken from the data: {}\nthe certificate says so; review a schema (`dp schema`) to \
             do without",
            wording::names(&from_data)
        ));
    }
    check_memory(weights(encoder.dim()), config.scores())?;
    let records = Encoded { shape: Shape::new(encoder, n), records };
    match (config.method, config.seed) {
        (Method::NonPrivate, seed) => {
            let key = match seed {
                Some(seed) => SeededRng::new(seed).derive_key(Purpose::Permutation),
                None => secret()?.derive_key(Purpose::Permutation),
            };
            train_baseline(config, records, key, console)
        }
        (Method::Private { .. }, Some(seed)) => {
            choose_relation(config, records, &mut SeededRng::new(seed).lend(), console)
        }
        (Method::Private { .. }, None) => choose_relation(config, records, &mut secret()?.lend(), console),
    }
}

/// Bytes per feature for planning, training and writing: weights, names and their JSON. Measured.
const BYTES_PER_FEATURE: usize = 256;
/// Bytes for each further weight of a feature, if there are several classes.
const BYTES_PER_WEIGHT: usize = 128;

/// Checks before training that a model of this width fits in memory, so that a stray index in a libsvm file gives an error
/// message, and that the model file can be read again.
fn check_memory(dim: usize, outputs: u32) -> Result<(), Failure> {
    let of_feature = BYTES_PER_FEATURE.saturating_add(BYTES_PER_WEIGHT.saturating_mul(outputs as usize - 1));
    let model = if outputs == 1 { String::new() } else { format!(" and {outputs} outputs") };
    let model = format!("a model of {dim} features{model}");
    check_room(&model, dim.saturating_mul(of_feature), (dim as u64).saturating_mul(outputs.into())).map_err(|failure| {
        failure.help(
            "name the number of features with --dim, use fewer (--project), or train where there is more memory; nothing was \
             released",
        )
    })
}

/// Checks that so many bytes are free for training a model, and that its file, with so many weights, can be read again.
///
/// # Errors
/// `memory.exhausted`.
pub(in crate::commands) fn check_room(model: &str, needed: usize, weights: u64) -> Result<(), Failure> {
    let text = sealed::text_of(weights);
    let why = match memory::check(needed, "a model of this size") {
        Ok(()) if text <= sealed::LARGEST_MODEL => return Ok(()),
        Ok(()) => format!("its file may take {}, and {} are the most", Bytes(text), Bytes(sealed::LARGEST_MODEL)),
        Err(error) => format!("{} are needed", Bytes(error.needed)),
    };
    Err(out_of_memory(format!("there is no room for {model}: {why}")))
}

/// Returns a generator keyed by the system.
pub(in crate::commands) fn secret() -> Result<OsSeeded, Failure> {
    OsSeeded::new().map_err(|error| refusal(&error.into()))
}

fn choose_relation<F: Real + Stored>(
    config: &TrainConfig,
    records: Encoded<F>,
    rng: &mut LentRng<'_>,
    console: &Console,
) -> Result<TrainedModel, Failure>
where
    ZeroOut: TrainsAny<F>,
    ReplaceOne: TrainsAny<F>,
{
    let Method::Private { algorithm, budget, adjacency } = config.method else {
        return Err(Failure::new(ExitStatus::Failed, "train.failed", "no private method"));
    };
    protection::warn(budget, config.units(records.shape.n), config.units_are_called(), console);
    match algorithm.relation(adjacency)? {
        AdjacencyKind::ZeroOut => choose_and_train::<ZeroOut, F>(config, records, rng, console),
        AdjacencyKind::ReplaceOne => choose_and_train::<ReplaceOne, F>(config, records, rng, console),
        _ => Err(algorithm.no_proof()),
    }
}

/// Selects settings on public records if requested, then trains.
fn choose_and_train<A: TrainsAny<F>, F: Real + Stored>(
    config: &TrainConfig,
    mut records: Encoded<F>,
    rng: &mut LentRng<'_>,
    console: &Console,
) -> Result<TrainedModel, Failure> {
    let Method::Private { algorithm, budget, adjacency } = config.method else {
        return Err(Failure::new(ExitStatus::Failed, "train.failed", "no private method"));
    };
    let shape = records.shape;
    if let Some(tuning) = &config.tuning
        && let Way::Public(input) = &tuning.way
    {
        let mut public = public_records(config, input, &mut records.records, console)?;
        let (recipe, position) =
            algorithm.chosen(config, budget, A::KIND, shape, &tuning.grid, |candidates, of_record| {
                chosen_on_public::<A, F>(&mut public, candidates, shape.n, of_record, config.workers, rng)
            })?;
        let trained = train_private::<A, F>(config, || Ok(recipe.into()), budget, records, rng, console)?;
        return Ok(TrainedModel { chosen: Some(Chosen::new(tuning, Some(position))), ..trained });
    }
    let build = || Ok(algorithm.recipe(config, budget, adjacency, shape)?.0);
    train_private::<A, F>(config, build, budget, records, rng, console)
}

fn train_private<A: TrainsAny<F>, F: Real + Stored>(
    config: &TrainConfig,
    build: impl FnOnce() -> Result<Built, Failure>,
    budget: Budget,
    records: Encoded<F>,
    rng: &mut LentRng<'_>,
    console: &Console,
) -> Result<TrainedModel, Failure> {
    let Encoded { records, shape } = records;
    let started = Instant::now();
    let (advice, plan) = limit::planning(config.limit, config.progress, console, || {
        let Built { recipe, advice } = build()?;
        let plan = recipe.plan_copies::<A>(shape.n, shape.dim, budget, 1).map_err(|error| refusal(&error))?;
        Ok((advice, plan))
    })?;
    if let (Some(advice), Method::Private { algorithm, adjacency, .. }) = (&advice, config.method) {
        algorithm.check_worth(config, budget, adjacency, shape, advice)?;
    }
    let summary = plan.summary();
    console.detail(&summary.text);
    let of_query = config.input.typed.as_ref().is_some_and(TypedTable::is_query).then_some(Assumption::QueryRows);
    let chosen_on = config.tuning.as_ref().and_then(Tuning::assumption);
    let assumptions = chosen_on.into_iter().chain(of_query).collect();
    let file = with_progress(config, console, shape.n, summary.rows, |control| {
        records.train(&plan, assumptions, versions(), rng, control).map_err(Failure::from)
    })?;
    let training = started.elapsed();
    let chosen = config.tuning.as_ref().and_then(|tuning| Chosen::of(tuning, &file.certificate.derivation));
    Ok(TrainedModel { file, n: shape.n, training, advice, chosen })
}

fn train_baseline<F: Compiled + Stored>(
    config: &TrainConfig,
    records: Encoded<F>,
    key: [u8; 32],
    console: &Console,
) -> Result<TrainedModel, Failure> {
    let Encoded { records, shape } = records;
    let started = Instant::now();
    let recipe = algorithm::non_private(config, shape)?;
    let file = with_progress(config, console, shape.n, shape.n.saturating_mul(recipe.passes), |control| {
        records.train_without_privacy(recipe, key, versions(), control).map_err(Failure::from)
    })?;
    Ok(TrainedModel { file, n: shape.n, training: started.elapsed(), advice: None, chosen: None })
}

/// Trains with a progress bar: passes over `n` rows, `total` rows in all.
fn with_progress<T>(
    config: &TrainConfig,
    console: &Console,
    n: u64,
    total: u64,
    train: impl FnOnce(&mut Control<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // Progress would depend on the records if training runs until certified or a random number of times.
    let mode = if config.time_tells_of_records() { ProgressMode::None } else { config.progress };
    let mut progress = Progress::start(mode, console, "train", Counted::Rows, Some(total));
    let mut show = |at: dp_optim::engine::Progress| {
        progress.update(at.pass.saturating_mul(n).saturating_add(at.rows), Some(at.pass + 1));
    };
    let trained = train(&mut Control {
        cancelled: None,
        progress: Some(&mut show),
        gradients: config.settings.gradients,
        workers: config.workers,
    })?;
    progress.finish(total);
    Ok(trained)
}

fn versions() -> BTreeMap<String, String> {
    BTreeMap::from([(env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned())])
}
