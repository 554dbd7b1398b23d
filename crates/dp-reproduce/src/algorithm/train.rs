//! Running one cell.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{AdjacencyKind, Delta, Epsilon, ReplaceOne};
use dp_data::{Examples, SampleSource};
use dp_mechanisms::SeededRng;
use dp_mechanisms::rng::{Purpose, ReleaseRng};
use dp_optim::engine::Control;
use dp_optim::recipes::non_private::NonPrivateDerivation;
use dp_optim::recipes::pnsgd::Batching;
use dp_optim::recipes::scs13::StepCalibration;
use dp_optim::recipes::{
    AnyRecipe, BoltOn, Bst14, Bst14Calibration, Budget, DpSgd, PhasedSgd, Planned, Pnsgd, Recipe, Sampling, Scs13,
    SnowballSgd, train_without_privacy,
};
use dp_optim::{Auto, MemorySource, Schedule};
use rand::seq::index;

use super::{Algorithm, published};
use crate::dataset::Prepared;
use crate::disk::DiskRows;
use crate::error::Error;
use crate::evaluate;
use crate::setting::{Cell, Setting, Step};

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
///
/// # Errors
/// [`Error::Training`], [`Error::Interrupted`], [`Error::File`] for rows on disk.
pub fn run(cell: &Cell, data: &Prepared, cancelled: &AtomicBool) -> Result<Outcome, Error> {
    let setting = &cell.setting;
    let failed = |source: dp_optim::Error| match source {
        dp_optim::Error::Interrupted => Error::Interrupted,
        source => Error::Training { run: cell.to_string(), source },
    };
    let rng = SeededRng::new(cell.seed());
    let subset = setting.rows.map(|rows| draw_rows(&data.train, rows, &rng)).transpose();
    let subset = subset.map_err(|error| Error::Data { file: setting.data.to_string(), what: error.to_string() })?;
    let train = subset.as_ref().unwrap_or(&data.train);
    let models = if data.classes > 2 { data.classes } else { 1 };
    let (mut weights, mut spent) = (Vec::with_capacity(models as usize), Duration::ZERO);
    for class in 0..models {
        let mut rng = rng.stream(Purpose::Custom(1), 0, u64::from(class));
        let targets = || evaluate::against_the_rest(data.train.targets(), data.classes, class);
        let (model, time) = if setting.on_disk {
            let shuffled = draw_rows(train, u64::MAX, &rng)
                .map_err(|error| Error::Data { file: setting.data.to_string(), what: error.to_string() })?;
            let mut source = DiskRows::new(&shuffled, rng.derive_key(Purpose::Permutation))?;
            train_model(setting, f64::from(models), &mut source, &mut rng, cancelled).map_err(failed)?
        } else {
            let examples = if models > 1 { train.clone().with_targets(targets()) } else { Ok(train.clone()) };
            let examples =
                examples.map_err(|error| Error::Data { file: setting.data.to_string(), what: error.to_string() })?;
            let mut source = MemorySource::new(examples, 1.0, 1.0);
            train_model(setting, f64::from(models), &mut source, &mut rng, cancelled).map_err(failed)?
        };
        weights.push(model);
        spent += time;
    }
    let objectives = weights.iter().zip(0..).map(|(model, class)| {
        let targets = evaluate::against_the_rest(data.train.targets(), data.classes, class);
        evaluate::objective(&data.train, &targets, setting.loss, setting.lambda, model)
    });
    Ok(Outcome {
        accuracy: evaluate::accuracy(data.held_out(), &weights),
        objective: objectives.sum::<f64>() / f64::from(models),
        seconds: spent.as_secs_f64(),
    })
}

/// So many rows drawn at random, in random order.
fn draw_rows(
    train: &Examples<f64>,
    rows: u64,
    rng: &SeededRng,
) -> Result<Examples<f64>, dp_data::examples::OrderError> {
    let amount = usize::try_from(rows).unwrap_or(usize::MAX).min(train.len());
    let mut rng = rng.stream(Purpose::Partition, 0, 0);
    let positions = index::sample(&mut rng, train.len(), amount);
    train.gather(&positions.iter().map(|position| position as u32).collect::<Vec<_>>())
}

/// Trains one model of two classes with its share of the budget; the weights and the time it took.
fn train_model(
    setting: &Setting,
    shares: f64,
    source: &mut dyn SampleSource<f64>,
    rng: &mut SeededRng,
    cancelled: &AtomicBool,
) -> Result<(Vec<f64>, Duration), dp_optim::Error> {
    let description = source.describe()?;
    let (n, dim) = (description.n, description.dim);
    let mut control = Control { cancelled: Some(cancelled), progress: None };
    let delta = setting.privacy.delta(n);
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
            Some(auto.choose(n, dim as u64, budget()?, AdjacencyKind::ReplaceOne)?.recipe)
        }
        _ => recipe(setting),
    };
    let Some(recipe) = chosen else {
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
        let trained = train_without_privacy(&plain, source, key, &mut control)?;
        let mut weights = trained.expose_without_any_guarantee();
        if setting.algorithm == Algorithm::OursAsPublished {
            let sensitivity = published::sensitivity(setting, n);
            let noise = published::noise(setting.privacy, delta, shares, sensitivity, dim, rng)?;
            weights.iter_mut().zip(noise).for_each(|(weight, noise)| *weight += noise);
        }
        return Ok((weights, started.elapsed()));
    };
    // Calibration depends on public numbers alone and is part of no pass.
    let plan = recipe.plan_copies::<ReplaceOne>(n, dim as u64, budget()?, 1)?;
    let started = Instant::now();
    let trained = plan.train::<f64>(source, rng, &mut control)?;
    Ok((trained.weights.into_inner(), started.elapsed()))
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
