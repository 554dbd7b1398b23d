//! Execution of one cell.

use core::fmt::Display;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use dp_accountant::{Epsilon, EventLog, ReplaceOne, ZeroOut};
use dp_data::examples::OrderError;
use dp_data::spool::{Spool, SpoolOptions, SpoolWriter};
use dp_data::{Examples, Order, PassRequest, RowSource, Rows};
use dp_mechanisms::rng::{Purpose, ReleaseRng};
use dp_mechanisms::scores::Scores;
use dp_mechanisms::{Bounded, Exponential, LInfSensitivity, Mechanism, SeededRng};
use dp_optim::MemorySource;
use dp_optim::engine::Control;
use dp_optim::recipes::non_private::NonPrivateDerivation;
use dp_optim::recipes::{AnyPlan, Budget, Recipe, RecordAdjacency, TrainsAny, train_without_privacy};
use rand::seq::index;

use super::recipes::{Public, radius, recipe, schedule};
use super::{Algorithm, published};
use crate::cell::Cell;
use crate::counted::Counted;
use crate::dataset::Prepared;
use crate::error::Error;
use crate::evaluate;
use crate::ranker::Ranked;
use crate::setting::{Neighbours, Setting, Tuning};

/// The numbers of selected attributes at which coverage is measured.
pub const SELECTED: [usize; 4] = [20, 25, 30, 40];

/// The accepted distance of an approximate minimiser without privacy.
const MINIMISER_WITHIN: f64 = 1e-4;

/// The budget at which noise is negligible.
const NO_PRIVACY: (f64, f64) = (1e6, 0.1);

/// The measurements of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Outcome {
    /// Share of held-out rows that are classified correctly.
    pub accuracy: f64,
    /// Mean loss on the training rows with the regulariser; for several classes, the mean over their models.
    pub objective: f64,
    /// Seconds of training, including the reading of rows, excluding preparation.
    pub seconds: f64,
    /// Number of records read, divided by the number of records; 0 for timed runs, where reads are not counted.
    pub reads: f64,
    /// Share of the relevant attributes among the largest weights, for each of [`SELECTED`]; `None` if the relevant
    /// attributes are unknown.
    pub coverage: Option<[f64; 4]>,
    /// Metrics on held-out lists; only for rankers, which have no accuracy and no objective.
    pub ranked: Option<Ranked>,
    /// The size of the last step, if a line search chose it.
    pub chosen_step: Option<f64>,
}

/// Runs `cell`, which is a linear model with `setting`, on its data set.
///
/// Several classes are trained one-vs-rest, each with an equal share of epsilon and delta, as in the papers. Delta is that of
/// all rows even if each candidate is trained on a portion.
///
/// # Errors
/// [`Error::Training`], [`Error::Interrupted`], [`Error::File`] for rows on disk.
pub fn run(cell: &Cell, setting: &Setting, data: &Prepared, cancelled: &AtomicBool) -> Result<Outcome, Error> {
    let rng = SeededRng::new(cell.seed());
    let disordered = |error| disordered(cell, &error);
    let subset = setting.rows.map(|rows| draw_rows(&data.train, rows, &rng)).transpose().map_err(disordered)?;
    let train = subset.as_ref().unwrap_or(&data.train);
    let delta = setting.privacy.delta(train.len() as u64);
    let fit = |setting: &Setting, train: &Examples<f64>, rng: &SeededRng| match setting.neighbours {
        Neighbours::ReplaceOne => {
            one_against_the_rest::<ReplaceOne>(cell, setting, train, data.classes, delta, rng, cancelled)
        }
        Neighbours::AddRemove => {
            one_against_the_rest::<ZeroOut>(cell, setting, train, data.classes, delta, rng, cancelled)
        }
    };
    let (chosen, weights, spent) = match (setting.algorithm, setting.tuning) {
        (Algorithm::TrueModel, _) => {
            let what = || "nobody knows which model its labels were drawn from".to_owned();
            let truth =
                data.truth.clone().ok_or_else(|| Error::Data { file: setting.data.to_string(), what: what() })?;
            (*setting, vec![truth], Spent::default())
        }
        (_, Tuning::Given) => {
            let (weights, spent) = fit(setting, train, &rng)?;
            (*setting, weights, spent)
        }
        (_, Tuning::Portions) => {
            let started = Instant::now();
            let candidates = setting.candidates();
            let portions = portions(train, candidates.len() + 1, &rng).map_err(disordered)?;
            let Some((of_choice, of_training)) = portions.split_last() else {
                return Err(Error::Data { file: setting.data.to_string(), what: "too few rows to cut up".to_owned() });
            };
            let (mut models, mut rows) = (Vec::with_capacity(candidates.len()), 0);
            for ((candidate, portion), i) in candidates.iter().zip(of_training).zip(0..) {
                let (model, spent) = fit(candidate, portion, &rng.stream(Purpose::Custom(2), 0, i))?;
                models.push(model);
                rows += spent.rows;
            }
            let right = models.iter().map(|model| evaluate::right(of_choice, model) as f64).collect();
            let chosen = choose(setting, right, &rng).map_err(|error| failed(cell, error))?;
            (candidates[chosen], models.swap_remove(chosen), Spent { time: started.elapsed(), rows })
        }
    };
    let objectives = weights.iter().zip(0..).map(|(model, class)| {
        let targets = evaluate::against_the_rest(data.train.targets(), data.classes, class);
        evaluate::objective(&data.train, &targets, chosen.loss, chosen.lambda, model) + chosen.l1 * evaluate::l1(model)
    });
    let coverage = match (&data.truth, &weights[..]) {
        (Some(truth), [model]) => Some(SELECTED.map(|top| evaluate::coverage(model, truth, top))),
        _ => None,
    };
    Ok(Outcome {
        accuracy: evaluate::accuracy(data.held_out(), &weights),
        objective: objectives.sum::<f64>() / weights.len() as f64,
        seconds: spent.time.as_secs_f64(),
        reads: spent.rows as f64 / train.len().max(1) as f64,
        coverage,
        ranked: None,
        chosen_step: None,
    })
}

fn failed(cell: &Cell, source: dp_optim::Error) -> Error {
    match source {
        dp_optim::Error::Interrupted => Error::Interrupted,
        source => Error::Training { run: cell.to_string(), source },
    }
}

fn disordered(cell: &Cell, error: &dyn Display) -> Error {
    Error::Data { file: cell.experiment.data().to_string(), what: error.to_string() }
}

/// Selects a candidate by its number of correct predictions on the last portion; without privacy, the best.
///
/// Replacing a row changes each count by at most 1.
fn choose(setting: &Setting, right: Vec<f64>, rng: &SeededRng) -> Result<usize, dp_optim::Error> {
    let Some(epsilon) = setting.privacy.epsilon() else {
        return Ok((0..right.len()).reduce(|best, i| if right[i] > right[best] { i } else { best }).unwrap_or(0));
    };
    let sensitivity = LInfSensitivity::<ReplaceOne>::new(1.0)?;
    let choice = Exponential::new(sensitivity, Epsilon::new(epsilon)?)?;
    let scores = Bounded::with_proven_sensitivity(Scores::new(right)?, sensitivity);
    let mut rng = rng.stream(Purpose::Custom(2), 1, 0);
    Ok(choice.release(scores, &mut EventLog::new(), &mut rng)?.into_inner())
}

/// Splits the rows in random order into `count` portions of equal length; leftover rows are omitted.
fn portions(train: &Examples<f64>, count: usize, rng: &SeededRng) -> Result<Vec<Examples<f64>>, OrderError> {
    let order = drawn(train.len(), train.len(), &mut rng.stream(Purpose::Partition, 1, 0));
    let length = (train.len() / count.max(1)).max(1);
    order.chunks_exact(length).take(count).map(|portion| train.gather(portion)).collect()
}

/// The cost of training: time, and number of records read.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    time: Duration,
    rows: u64,
}

/// Trains a model for each class, or the one for two classes, with equal shares of the budget; returns the cost.
fn one_against_the_rest<A: TrainsAny<f64>>(
    cell: &Cell,
    setting: &Setting,
    train: &Examples<f64>,
    classes: u32,
    delta: f64,
    rng: &SeededRng,
    cancelled: &AtomicBool,
) -> Result<(Vec<Vec<f64>>, Spent), Error> {
    let models = if classes > 2 { classes } else { 1 };
    let (mut weights, mut spent) = (Vec::with_capacity(models as usize), Spent::default());
    // Depends on public numbers alone, belongs to no pass, and is the same for all classes.
    let (n, dim) = (train.len() as u64, train.dim() as u64);
    let plan = plan::<A>(setting, f64::from(models), delta, n, dim).map_err(|error| failed(cell, error))?;
    for class in 0..models {
        let mut rng = rng.stream(Purpose::Custom(1), 0, u64::from(class));
        let train_on = |source: &mut dyn RowSource<f64>, rng: &mut SeededRng| match &plan {
            Some(plan) => train_privately(plan, source, rng, cancelled),
            None => train_without(setting, f64::from(models), delta, source, rng, cancelled),
        };
        let train_from = |source: &mut dyn RowSource<f64>, rng: &mut SeededRng| {
            if setting.timed {
                return train_on(source, rng).map(|(model, time)| (model, Spent { time, rows: 0 }));
            }
            let mut source = Counted::new(source);
            let (model, time) = train_on(&mut source, rng)?;
            Ok((model, Spent { time, rows: source.rows() }))
        };
        let trained = if setting.on_disk {
            let mut spool = spooled(train, rng.derive_key(Purpose::Permutation))?;
            train_from(&mut spool, &mut rng)
        } else {
            let mut examples = train.clone();
            if models > 1 {
                let targets = evaluate::against_the_rest(train.targets(), classes, class);
                examples = examples.with_targets(targets).map_err(|error| disordered(cell, &error))?;
            }
            train_from(&mut MemorySource::new(examples, 1.0, 1.0), &mut rng)
        };
        let (model, one) = trained.map_err(|error| failed(cell, error))?;
        weights.push(model);
        spent = Spent { time: spent.time + one.time, rows: spent.rows + one.rows };
    }
    Ok((weights, spent))
}

/// Returns the rows in a temporary file, shuffled under this key: a table on disk that was shuffled once, as in databases.
fn spooled(train: &Examples<f64>, key: [u8; 32]) -> Result<Spool<f64>, Error> {
    let failed = |what: String| Error::Data { file: "the spool".to_owned(), what };
    let sparse = matches!(train.block().rows, Rows::Sparse { .. });
    let mut writer = SpoolWriter::create(&SpoolOptions::default(), train.dim(), sparse)
        .map_err(|error| failed(error.to_string()))?
        .with_bounds(1.0, 1.0);
    let mut spool =
        writer.append(train.clone()).and_then(|()| writer.finish()).map_err(|error| failed(error.to_string()))?;
    let order = Order::Keyed { key, fresh_each_pass: false };
    drop(spool.open_pass(&PassRequest { pass: 0, order }).map_err(|error| failed(error.to_string()))?);
    Ok(spool)
}

/// Draws `rows` rows at random, in random order.
fn draw_rows(train: &Examples<f64>, rows: u64, rng: &SeededRng) -> Result<Examples<f64>, OrderError> {
    let amount = usize::try_from(rows).unwrap_or(usize::MAX).min(train.len());
    train.gather(&drawn(train.len(), amount, &mut rng.stream(Purpose::Partition, 0, 0)))
}

/// Draws `amount` of `n` positions at random without replacement.
fn drawn(n: usize, amount: usize, rng: &mut SeededRng) -> Vec<u32> {
    index::sample(rng, n, amount).iter().map(|position| position as u32).collect()
}

/// Returns the plan of a model with its share of the budget; `None` without a budget.
fn plan<A: RecordAdjacency>(
    setting: &Setting,
    shares: f64,
    delta: f64,
    n: u64,
    dim: u64,
) -> Result<Option<AnyPlan<A>>, dp_optim::Error> {
    let (epsilon, delta) = match (setting.algorithm, setting.privacy.epsilon()) {
        (_, Some(epsilon)) => (epsilon, delta),
        (Algorithm::SparseMinimiser, None) => NO_PRIVACY,
        (_, None) => return Ok(None),
    };
    let budget = Budget::new(epsilon / shares, delta / shares)?;
    let recipe = recipe(setting, Public { n, dim, budget, relation: A::KIND })?;
    recipe.map(|recipe| recipe.plan_copies(n, dim, budget, 1)).transpose()
}

/// Returns the guarantee of the plan of one model for `n` records; `None` without a budget. Reads no data.
#[cfg(test)]
pub(crate) fn reached(setting: &Setting, n: u64, dim: u64) -> Result<Option<(f64, f64)>, dp_optim::Error> {
    use dp_optim::recipes::Planned;
    fn of<A: RecordAdjacency>(plan: Option<AnyPlan<A>>) -> Option<(f64, f64)> {
        plan.map(|plan| (plan.reached().epsilon, plan.reached().delta))
    }
    let delta = setting.privacy.delta(n);
    match setting.neighbours {
        Neighbours::ReplaceOne => plan::<ReplaceOne>(setting, 1.0, delta, n, dim).map(of),
        Neighbours::AddRemove => plan::<ZeroOut>(setting, 1.0, delta, n, dim).map(of),
    }
}

/// Trains one model as planned; returns the weights and the time.
fn train_privately<A: TrainsAny<f64>>(
    plan: &AnyPlan<A>,
    source: &mut dyn RowSource<f64>,
    rng: &mut SeededRng,
    cancelled: &AtomicBool,
) -> Result<(Vec<f64>, Duration), dp_optim::Error> {
    let started = Instant::now();
    let trained =
        A::train_any(plan, source, &mut rng.lend(), &mut Control { cancelled: Some(cancelled), ..Control::default() })?;
    Ok((trained.weights.into_inner(), started.elapsed()))
}

/// Trains one model without privacy, and adds published noise if the setting requires it.
fn train_without(
    setting: &Setting,
    shares: f64,
    delta: f64,
    source: &mut dyn RowSource<f64>,
    rng: &mut SeededRng,
    cancelled: &AtomicBool,
) -> Result<(Vec<f64>, Duration), dp_optim::Error> {
    let description = source.describe()?;
    let (n, dim) = (description.n, description.dim);
    let key = rng.derive_key(Purpose::Permutation);
    let mut plain = NonPrivateDerivation {
        passes: setting.passes,
        batch_size: setting.batch_size,
        // The radius of a setting contains the minimiser.
        radius: radius(setting).filter(|_| setting.algorithm != Algorithm::Minimiser),
        schedule: schedule(setting),
        minimiser_within: (setting.algorithm == Algorithm::Minimiser).then_some(MINIMISER_WITHIN),
        ..NonPrivateDerivation::new(setting.loss, setting.lambda)
    };
    if setting.algorithm == Algorithm::OursAsPublished || plain.schedule.is_none() && setting.lambda == 0.0 {
        plain.schedule = Some(published::schedule(setting, n)?);
    }
    let started = Instant::now();
    let mut control = Control { cancelled: Some(cancelled), ..Control::default() };
    let trained = train_without_privacy(&plain, source, key, &mut control)?;
    let mut weights = trained.expose_without_any_guarantee();
    if setting.algorithm == Algorithm::OursAsPublished {
        let sensitivity = published::sensitivity(setting, n);
        let noise = published::noise(setting.privacy, delta, shares, sensitivity, dim, rng)?;
        weights.iter_mut().zip(noise).for_each(|(weight, noise)| *weight += noise);
    }
    Ok((weights, started.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::DataSet;
    use crate::setting::Privacy;

    #[test]
    fn portions_are_equal_and_share_no_row() {
        let rows = Examples::dense((0..23).map(f64::from).collect(), vec![1.0; 23], 1).unwrap();
        let portions = portions(&rows, 7, &SeededRng::new(3)).unwrap();
        assert_eq!(portions.len(), 7);
        assert!(portions.iter().all(|portion| portion.len() == 3));
        let mut values: Vec<f64> = portions
            .iter()
            .flat_map(|portion| match portion.block().rows {
                Rows::Dense { values, .. } => values.to_vec(),
                Rows::Sparse { .. } => Vec::new(),
            })
            .collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        assert_eq!(values.len(), 21);
    }

    /// The exponential mechanism at ε = 1: a candidate with two more correct rows is drawn e times as often, .7311 of the
    /// draws. For 20,000 draws, five standard deviations are .0157: a failure by chance has a probability of one in a million
    /// seeds.
    #[test]
    fn candidates_are_drawn_by_the_exponential_mechanism() {
        let setting = Setting::new(DataSet::Sphere, Algorithm::Ours, Privacy::Pure { epsilon: 1.0 });
        let rng = SeededRng::new(8);
        let draws = 20_000u64;
        let drawn = |i| choose(&setting, vec![700.0, 702.0], &rng.stream(Purpose::Custom(0), 0, i)).unwrap();
        let second = (0..draws).map(drawn).sum::<usize>() as f64 / draws as f64;
        let expected = 1.0 / (1.0 + (-1f64).exp());
        assert!((second - expected).abs() < 0.0157, "{second}");
        let noiseless = Setting { privacy: Privacy::None, ..setting };
        assert_eq!(choose(&noiseless, vec![1.0, 3.0, 2.0, 3.0], &rng).unwrap(), 1);
    }

    #[test]
    fn the_grid_of_the_paper() {
        let setting = Setting::new(DataSet::Sphere, Algorithm::Ours, Privacy::Pure { epsilon: 1.0 });
        let tuned = Setting { tuning: Tuning::Portions, ..setting };
        assert_eq!(setting.candidates(), [setting]);
        assert_eq!(tuned.candidates(), [Setting { passes: 5, ..setting }, setting]);
        let candidates = Setting { lambda: 1e-3, ..tuned }.candidates();
        let lambdas: Vec<f64> = candidates.iter().map(|candidate| candidate.lambda).collect();
        assert_eq!(lambdas, [1e-4, 1e-3, 1e-2, 1e-4, 1e-3, 1e-2]);
    }
}
