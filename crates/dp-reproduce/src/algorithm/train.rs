//! Running one cell.

use core::fmt::Display;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{AdjacencyKind, Delta, Epsilon, EventLog, ReplaceOne};
use dp_data::examples::OrderError;
use dp_data::{Examples, SampleSource};
use dp_mechanisms::rng::{Purpose, ReleaseRng};
use dp_mechanisms::scores::Scores;
use dp_mechanisms::{Bounded, Exponential, LInfSensitivity, Mechanism, SeededRng};
use dp_optim::engine::Control;
use dp_optim::recipes::non_private::NonPrivateDerivation;
use dp_optim::recipes::pnsgd::Batching;
use dp_optim::recipes::scs13::StepCalibration;
use dp_optim::recipes::{
    AnyPlan, AnyRecipe, BoltOn, Bst14, Bst14Calibration, Budget, DpSgd, PhasedSgd, Planned, Pnsgd, Recipe, Sampling,
    Scs13, SnowballSgd, train_without_privacy,
};
use dp_optim::{Auto, MemorySource, Schedule};
use rand::seq::index;

use super::{Algorithm, published};
use crate::dataset::Prepared;
use crate::disk::DiskRows;
use crate::error::Error;
use crate::evaluate;
use crate::setting::{Cell, Setting, Step, Tuning};

/// What was measured of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Share of held-out rows whose class is predicted.
    pub accuracy: f64,
    /// Mean loss on the training rows with the regulariser; for several classes, the mean over their models.
    pub objective: f64,
    /// Seconds of training, reading of rows included, preparation excluded.
    pub seconds: f64,
}

/// Runs `cell` on its data set.
///
/// Several classes are learnt one against the rest, each with its even share of epsilon and delta, as the papers do.
/// Delta is that of all its rows also where each candidate learns on a portion.
///
/// # Errors
/// [`Error::Training`], [`Error::Interrupted`], [`Error::File`] for rows on disk.
pub fn run(cell: &Cell, data: &Prepared, cancelled: &AtomicBool) -> Result<Outcome, Error> {
    let setting = &cell.setting;
    let rng = SeededRng::new(cell.seed());
    let disordered = |error| disordered(cell, &error);
    let subset = setting.rows.map(|rows| draw_rows(&data.train, rows, &rng)).transpose().map_err(disordered)?;
    let train = subset.as_ref().unwrap_or(&data.train);
    let delta = setting.privacy.delta(train.len() as u64);
    let fit = |setting: &Setting, train: &Examples<f64>, rng: &SeededRng| {
        one_against_the_rest(cell, setting, train, data.classes, delta, rng, cancelled)
    };
    let (chosen, weights, spent) = match setting.tuning {
        Tuning::Given => {
            let (weights, spent) = fit(setting, train, &rng)?;
            (*setting, weights, spent)
        }
        Tuning::Portions => {
            let started = Instant::now();
            let candidates = setting.candidates();
            let portions = portions(train, candidates.len() + 1, &rng).map_err(disordered)?;
            let Some((of_choice, of_training)) = portions.split_last() else {
                return Err(Error::Data { file: setting.data.to_string(), what: "too few rows to cut up".to_owned() });
            };
            let mut models = Vec::with_capacity(candidates.len());
            for ((candidate, portion), i) in candidates.iter().zip(of_training).zip(0..) {
                models.push(fit(candidate, portion, &rng.stream(Purpose::Custom(2), 0, i))?.0);
            }
            let right = models.iter().map(|model| evaluate::right(of_choice, model) as f64).collect();
            let chosen = choose(setting, right, &rng).map_err(|error| failed(cell, error))?;
            (candidates[chosen], models.swap_remove(chosen), started.elapsed())
        }
    };
    let objectives = weights.iter().zip(0..).map(|(model, class)| {
        let targets = evaluate::against_the_rest(data.train.targets(), data.classes, class);
        evaluate::objective(&data.train, &targets, chosen.loss, chosen.lambda, model)
    });
    Ok(Outcome {
        accuracy: evaluate::accuracy(data.held_out(), &weights),
        objective: objectives.sum::<f64>() / weights.len() as f64,
        seconds: spent.as_secs_f64(),
    })
}

fn failed(cell: &Cell, source: dp_optim::Error) -> Error {
    match source {
        dp_optim::Error::Interrupted => Error::Interrupted,
        source => Error::Training { run: cell.to_string(), source },
    }
}

fn disordered(cell: &Cell, error: &dyn Display) -> Error {
    Error::Data { file: cell.setting.data.to_string(), what: error.to_string() }
}

/// The position of a candidate, by how many rows of the last portion each gets right; the best where nothing is private.
///
/// Replacing a row moves no count by more than 1.
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

/// The rows in random order, cut into so many portions of equal length; what is left over is in none.
fn portions(train: &Examples<f64>, count: usize, rng: &SeededRng) -> Result<Vec<Examples<f64>>, OrderError> {
    let order = drawn(train.len(), train.len(), &mut rng.stream(Purpose::Partition, 1, 0));
    let length = (train.len() / count.max(1)).max(1);
    order.chunks_exact(length).take(count).map(|portion| train.gather(portion)).collect()
}

/// Trains a model for each class, or the one for two classes, with even shares of the budget; the time that took.
fn one_against_the_rest(
    cell: &Cell,
    setting: &Setting,
    train: &Examples<f64>,
    classes: u32,
    delta: f64,
    rng: &SeededRng,
    cancelled: &AtomicBool,
) -> Result<(Vec<Vec<f64>>, Duration), Error> {
    let models = if classes > 2 { classes } else { 1 };
    let (mut weights, mut spent) = (Vec::with_capacity(models as usize), Duration::ZERO);
    // Depends on public numbers alone and is part of no pass; the same for all classes.
    let (n, dim) = (train.len() as u64, train.dim() as u64);
    let plan = plan(setting, f64::from(models), delta, n, dim).map_err(|error| failed(cell, error))?;
    for class in 0..models {
        let mut rng = rng.stream(Purpose::Custom(1), 0, u64::from(class));
        let train_from = |source: &mut dyn SampleSource<f64>, rng: &mut SeededRng| match &plan {
            Some(plan) => train_privately(plan, source, rng, cancelled),
            None => train_without(setting, f64::from(models), delta, source, rng, cancelled),
        };
        let trained = if setting.on_disk {
            let shuffled = draw_rows(train, u64::MAX, &rng).map_err(|error| disordered(cell, &error))?;
            let mut source = DiskRows::new(&shuffled, rng.derive_key(Purpose::Permutation))?;
            train_from(&mut source, &mut rng)
        } else {
            let mut examples = train.clone();
            if models > 1 {
                let targets = evaluate::against_the_rest(train.targets(), classes, class);
                examples = examples.with_targets(targets).map_err(|error| disordered(cell, &error))?;
            }
            train_from(&mut MemorySource::new(examples, 1.0, 1.0), &mut rng)
        };
        let (model, time) = trained.map_err(|error| failed(cell, error))?;
        weights.push(model);
        spent += time;
    }
    Ok((weights, spent))
}

/// So many rows drawn at random, in random order.
fn draw_rows(train: &Examples<f64>, rows: u64, rng: &SeededRng) -> Result<Examples<f64>, OrderError> {
    let amount = usize::try_from(rows).unwrap_or(usize::MAX).min(train.len());
    train.gather(&drawn(train.len(), amount, &mut rng.stream(Purpose::Partition, 0, 0)))
}

/// So many positions of `n`, drawn at random without replacement.
fn drawn(n: usize, amount: usize, rng: &mut SeededRng) -> Vec<u32> {
    index::sample(rng, n, amount).iter().map(|position| position as u32).collect()
}

/// The plan of a model with its share of the budget; `None` for what has none.
fn plan(
    setting: &Setting,
    shares: f64,
    delta: f64,
    n: u64,
    dim: u64,
) -> Result<Option<AnyPlan<ReplaceOne>>, dp_optim::Error> {
    let epsilon = setting.privacy.epsilon().unwrap_or(f64::NAN);
    let budget = || {
        Ok::<_, dp_optim::Error>(Budget {
            epsilon: Epsilon::new(epsilon / shares)?,
            delta: Delta::new(delta / shares)?,
        })
    };
    let chosen = match setting.algorithm {
        Algorithm::Auto => {
            let auto = Auto { noise_mode: NoiseMode::Rounded, ..Auto::new(setting.loss) };
            Some(auto.choose(n, dim, budget()?, AdjacencyKind::ReplaceOne)?.recipe)
        }
        _ => recipe(setting),
    };
    chosen.map(|recipe| recipe.plan_copies(n, dim, budget()?, 1)).transpose()
}

/// Trains one model as planned; the weights and the time it took.
fn train_privately(
    plan: &AnyPlan<ReplaceOne>,
    source: &mut dyn SampleSource<f64>,
    rng: &mut SeededRng,
    cancelled: &AtomicBool,
) -> Result<(Vec<f64>, Duration), dp_optim::Error> {
    let started = Instant::now();
    let trained = plan.train::<f64>(source, rng, &mut Control { cancelled: Some(cancelled), progress: None })?;
    Ok((trained.weights.into_inner(), started.elapsed()))
}

/// Trains one model without privacy, to which noise as printed is added where the setting says so.
fn train_without(
    setting: &Setting,
    shares: f64,
    delta: f64,
    source: &mut dyn SampleSource<f64>,
    rng: &mut SeededRng,
    cancelled: &AtomicBool,
) -> Result<(Vec<f64>, Duration), dp_optim::Error> {
    let description = source.describe()?;
    let (n, dim) = (description.n, description.dim);
    let key = rng.derive_key(Purpose::Permutation);
    let mut plain = NonPrivateDerivation {
        passes: setting.passes,
        batch_size: setting.batch_size,
        radius: radius(setting),
        schedule: schedule(setting),
        ..NonPrivateDerivation::new(setting.loss, setting.lambda)
    };
    if setting.algorithm == Algorithm::OursAsPublished || plain.schedule.is_none() && setting.lambda == 0.0 {
        plain.schedule = Some(published::schedule(setting, n)?);
    }
    let started = Instant::now();
    let mut control = Control { cancelled: Some(cancelled), progress: None };
    let trained = train_without_privacy(&plain, source, key, &mut control)?;
    let mut weights = trained.expose_without_any_guarantee();
    if setting.algorithm == Algorithm::OursAsPublished {
        let sensitivity = published::sensitivity(setting, n);
        let noise = published::noise(setting.privacy, delta, shares, sensitivity, dim, rng)?;
        weights.iter_mut().zip(noise).for_each(|(weight, noise)| *weight += noise);
    }
    Ok((weights, started.elapsed()))
}

/// Where BST14 and Phased-SGD look for a convex model: their step sizes are multiples of a radius.
const RADIUS: f64 = 10.0;

/// The private recipe of a setting; `None` for what has none, or is chosen by other numbers too.
fn recipe(setting: &Setting) -> Option<AnyRecipe> {
    match setting.algorithm {
        Algorithm::Noiseless | Algorithm::OursAsPublished | Algorithm::Auto => None,
        Algorithm::Ours => {
            let recipe = match setting.lambda > 0.0 {
                true => BoltOn::strongly_convex(setting.loss, setting.lambda),
                false => BoltOn::convex(setting.loss),
            };
            Some(AnyRecipe::from(BoltOn {
                passes: setting.passes,
                batch_size: setting.batch_size,
                radius: radius(setting),
                schedule: schedule(setting),
                noise_mode: NoiseMode::Exact,
                declared_order: setting.on_disk,
                ..recipe
            }))
        }
        Algorithm::Scs13 | Algorithm::Scs13AsPublished => Some(AnyRecipe::from(Scs13 {
            lambda: setting.lambda,
            passes: setting.passes,
            batch_size: setting.batch_size,
            radius: radius(setting),
            schedule: schedule(setting),
            calibration: match setting.algorithm {
                Algorithm::Scs13AsPublished => StepCalibration::AsPublished,
                _ => StepCalibration::Joint,
            },
            noise_mode: NoiseMode::Rounded,
            declared_order: setting.on_disk,
            ..Scs13::new(setting.loss)
        })),
        Algorithm::Bst14 | Algorithm::Bst14AsPublished => {
            let recipe = match setting.lambda > 0.0 {
                true => Bst14::strongly_convex(setting.loss, setting.lambda),
                false => Bst14::convex(setting.loss, RADIUS),
            };
            let (calibration, sampling) = match setting.algorithm {
                Algorithm::Bst14AsPublished => (Bst14Calibration::AsPublished { iota: 1.0 }, Sampling::FixedSize),
                _ => (recipe.calibration, recipe.sampling),
            };
            Some(AnyRecipe::from(Bst14 {
                passes: setting.passes,
                batch_size: setting.batch_size,
                calibration,
                sampling,
                noise_mode: NoiseMode::Rounded,
                ..recipe
            }))
        }
        Algorithm::DpSgd => Some(AnyRecipe::from(DpSgd {
            lambda: setting.lambda,
            passes: setting.passes,
            batch_size: setting.batch_size,
            schedule: schedule(setting),
            radius: radius(setting),
            noise_mode: NoiseMode::Rounded,
            ..DpSgd::new(setting.loss)
        })),
        Algorithm::Pnsgd => Some(AnyRecipe::from(Pnsgd {
            lambda: setting.lambda,
            passes: setting.passes,
            batching: Batching::Equal { size: setting.batch_size },
            noise_mode: NoiseMode::Rounded,
            ..Pnsgd::new(setting.loss)
        })),
        Algorithm::SnowballSgd => Some(AnyRecipe::from(SnowballSgd {
            lambda: setting.lambda,
            noise_mode: NoiseMode::Rounded,
            ..SnowballSgd::new(setting.loss)
        })),
        Algorithm::PhasedSgd => Some(AnyRecipe::from(PhasedSgd {
            lambda: setting.lambda,
            noise_mode: NoiseMode::Rounded,
            ..PhasedSgd::new(setting.loss, RADIUS)
        })),
    }
}

/// The papers keep the iterates of a regularised objective within `1/λ`.
fn radius(setting: &Setting) -> Option<f64> {
    (setting.lambda > 0.0).then(|| setting.lambda.recip())
}

/// A schedule other than the algorithm's own.
fn schedule(setting: &Setting) -> Option<Schedule> {
    match setting.step {
        Step::Usual => None,
        Step::InverseSqrt(step) => Some(Schedule::InverseSqrt { step }),
        // The cap is out of reach: 1/(λt) is at most 1/λ.
        Step::InverseStrongConvexity => {
            Some(Schedule::StronglyConvex { smoothness: setting.lambda, strong_convexity: setting.lambda })
        }
    }
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
                dp_data::Rows::Dense { values, .. } => values.to_vec(),
                dp_data::Rows::Sparse { .. } => Vec::new(),
            })
            .collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        assert_eq!(values.len(), 21);
    }

    /// The exponential mechanism at ε = 1: a candidate with two rows more is drawn e times as often, .7311 of the draws. Of
    /// 20,000, five standard deviations are .0157: fails by chance once in a million seeds.
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
