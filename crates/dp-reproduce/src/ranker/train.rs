//! Training of a ranker once per fold, with measurements along its course.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dp_accountant::certificate::Derivation;
use dp_accountant::{Delta, bound};
use dp_mechanisms::SeededRng;
use dp_mechanisms::rng::{Purpose, ReleaseRng};
use dp_optim::recipes::Budget;
use dp_rank::QueryLists;
use dp_rank::loss::{BayesRank, LambdaRank, ListLoss, ListMle, ListNet, RankingLoss};
use dp_rank::scorer::{Activation, Linear, Mlp, Scorer};
use dp_rank::sensitivity::{Contributions, Gram};
use dp_rank::spectral::{Normalise, PowerIteration};
use dp_rank::train::{Descent, NonPrivateRanking, PrivateRanking, Protected, RankingDerivation, Scaling, TrainError};
use rand::Rng;

use super::measure::{Ranked, of_random_order, of_scorer};
use super::{Clipping, DELTA, Loss, Method, Noise, RankerSetting, Shape};
use crate::algorithm::Outcome;
use crate::cell::Cell;
use crate::dataset::Fold;
use crate::error::Error;

/// Runs several points of one training, in their order.
///
/// # Errors
/// [`Error::Ranking`], [`Error::Interrupted`].
pub(crate) fn run(
    cells: &[(Cell, RankerSetting)],
    folds: &[Fold],
    cancelled: &AtomicBool,
) -> Result<Vec<Outcome>, Error> {
    let Some(&(cell, setting)) = cells.first() else { return Ok(Vec::new()) };
    let points: Vec<u64> = cells.iter().map(|(_, setting)| setting.after).collect();
    let failed = |source| Error::Ranking { run: cell.training().to_string(), source };
    let rng = SeededRng::new(cell.seed());
    let mut of_folds = Vec::with_capacity(folds.len());
    for (fold, number) in folds.iter().zip(0..) {
        if cancelled.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let mut rng = rng.stream(Purpose::Custom(1), 0, number);
        of_folds.push(on_fold(&setting, &points, fold, &mut rng).map_err(failed)?);
    }
    let outcome = |point: usize| {
        let measured: Vec<Ranked> = of_folds.iter().map(|course| course[point].ranked).collect();
        let time: Duration = of_folds.iter().map(|course| course[point].time).sum();
        Outcome {
            accuracy: f64::NAN,
            objective: f64::NAN,
            seconds: time.as_secs_f64(),
            ranked: Some(Ranked::mean(&measured)),
            ..Outcome::default()
        }
    };
    Ok((0..points.len()).map(outcome).collect())
}

/// The measurement at a point, and the training time so far.
#[derive(Debug, Clone, Copy)]
struct Measured {
    ranked: Ranked,
    time: Duration,
}

fn on_fold(
    setting: &RankerSetting,
    points: &[u64],
    fold: &Fold,
    rng: &mut SeededRng,
) -> Result<Vec<Measured>, TrainError> {
    if matches!(setting.method, Method::RandomOrder) {
        let ranked = of_random_order(&fold.test, rng)?;
        return Ok(vec![Measured { ranked, time: Duration::ZERO }; points.len()]);
    }
    let features = fold.train.width();
    match setting.shape {
        Shape::Linear => {
            let scorer = Linear::new(features)?;
            course(&scorer, vec![0.0; scorer.parameters()], setting, points, fold, rng)
        }
        Shape::Network { hidden } => {
            let scorer = Mlp::new(features, hidden as usize, Activation::Relu)?;
            let start = scorer.initial(rng.stream(Purpose::Custom(2), 0, 0).next_u64());
            course(&scorer, start, setting, points, fold, rng)
        }
    }
}

/// Trains once and measures at every point.
fn course<S: Scorer>(
    scorer: &S,
    start: Vec<f64>,
    setting: &RankerSetting,
    points: &[u64],
    fold: &Fold,
    rng: &mut SeededRng,
) -> Result<Vec<Measured>, TrainError> {
    let mut watch = Watch { started: Instant::now(), measuring: Duration::ZERO, course: Vec::new() };
    let observer = &mut |update: u64, parameters: &[f64]| {
        if points.contains(&update) {
            watch.measure(update, || of_scorer(scorer, parameters, &fold.test));
        }
    };
    let training = Training { scorer, start, setting, lists: &fold.train };
    match setting.method {
        Method::RandomOrder => {}
        Method::LambdaRank => training.plainly(LambdaRank, rng, observer)?,
        Method::NonPrivate(Loss::BayesRank) => training.plainly(BayesRank::TOP_1, rng, observer)?,
        Method::NonPrivate(Loss::ListNet) => training.plainly(ListNet::TOP_1, rng, observer)?,
        Method::NonPrivate(Loss::ListMle) => training.plainly(ListMle, rng, observer)?,
        Method::Private { loss, noise, clipping } => match loss {
            Loss::BayesRank => training.privately(BayesRank::TOP_1, noise, clipping, rng, observer)?,
            Loss::ListNet => training.privately(ListNet::TOP_1, noise, clipping, rng, observer)?,
            Loss::ListMle => training.privately(ListMle, noise, clipping, rng, observer)?,
        },
    }
    points.iter().map(|&point| watch.at(point, setting.updates)).collect()
}

/// The measurements of a course, with a clock that is stopped while measuring.
struct Watch {
    started: Instant,
    measuring: Duration,
    course: Vec<(u64, Result<Measured, dp_rank::Error>)>,
}

impl Watch {
    fn measure(&mut self, update: u64, ranked: impl FnOnce() -> Result<Ranked, dp_rank::Error>) {
        let before = Instant::now();
        let time = self.started.elapsed().saturating_sub(self.measuring);
        self.course.push((update, ranked().map(|ranked| Measured { ranked, time })));
        self.measuring += before.elapsed();
    }

    fn at(&self, point: u64, updates: u64) -> Result<Measured, TrainError> {
        let beyond = || dp_rank::Error::Shape {
            what: "the updates before a point",
            found: usize::try_from(point).unwrap_or(usize::MAX),
            expected: usize::try_from(updates).unwrap_or(usize::MAX),
        };
        let (_, measured) = self.course.iter().find(|(update, _)| *update == point).ok_or_else(beyond)?;
        Ok(measured.clone()?)
    }
}

/// A training on the lists of a fold.
struct Training<'t, S> {
    scorer: &'t S,
    start: Vec<f64>,
    setting: &'t RankerSetting,
    lists: &'t QueryLists,
}

impl<S: Scorer> Training<'_, S> {
    fn descent(&self) -> Descent {
        let RankerSetting { updates, step, normalised, .. } = *self.setting;
        Descent { updates, step, falling: true, normalise: normalised.then_some(Normalise::Always) }
    }

    fn plainly(
        self,
        loss: impl RankingLoss,
        rng: &mut SeededRng,
        observer: &mut dyn FnMut(u64, &[f64]),
    ) -> Result<(), TrainError> {
        let training = NonPrivateRanking { loss, batch_size: self.setting.batch_size, descent: self.descent() };
        let key = rng.derive_key(Purpose::Permutation);
        training.train(self.scorer, self.start, self.lists, key, observer).map(|_| ())
    }

    fn privately(
        self,
        loss: impl ListLoss,
        noise: Noise,
        clipping: Clipping,
        rng: &mut SeededRng,
        observer: &mut dyn FnMut(u64, &[f64]),
    ) -> Result<(), TrainError> {
        let clipping = match clipping {
            Clipping::At(norm) => norm,
            Clipping::HalfSensitivity => 0.5 * self.first_sensitivity()?,
        };
        let (batch_size, descent) = (self.setting.batch_size, self.descent());
        let recipe = PrivateRanking { batch_size, clipping, descent, ..PrivateRanking::new(loss) };
        let (lists, parameters) = (self.lists.len() as u64, self.scorer.parameters() as u64);
        let epsilon = match noise {
            Noise::Epsilon(epsilon) => epsilon,
            Noise::Multiplier(multiplier) => epsilon_of(multiplier, lists, parameters, batch_size, descent.updates)?,
        };
        let budget = Budget::new(epsilon, DELTA)?;
        let plan = recipe.plan(lists, parameters, budget)?;
        plan.train(self.scorer, self.start, self.lists, rng, observer).map(|_| ())
    }

    /// Returns the largest distance of BayesRank's gradients of a list under two vectors of grades, at the starting weights.
    fn first_sensitivity(&self) -> Result<f64, TrainError> {
        let mut start = self.start.clone();
        if self.setting.normalised {
            for block in self.scorer.blocks().into_iter().filter(|block| block.name.starts_with('w')) {
                let matrix = &mut start[block.range.clone()];
                PowerIteration::default().normalise(matrix, block.rows, block.columns, Normalise::Always);
            }
        }
        let (mut workspace, mut scores, mut products) = (S::Workspace::default(), Vec::new(), Vec::new());
        let mut largest = 0f64;
        for list in self.lists.iter() {
            scores.resize(list.documents(), 0.0);
            self.scorer.scores(&start, list.features(), &mut workspace, &mut scores);
            let gram = Gram::of(self.scorer, &start, list.features(), &mut workspace, &mut products);
            let image = Contributions::new(BayesRank::TOP_1, &scores, &gram)?.bounds();
            largest = largest.max(image.diameter);
        }
        Ok(largest)
    }
}

/// Returns the accountant's epsilon of `updates` updates at [`DELTA`], for batches sampled list by list. The multiplier is
/// the noise over the largest distance between a list's contributions under two vectors of grades.
///
/// # Errors
/// Numbers out of range.
///
/// # Examples
/// ```
/// // 628 lists: the chapter prints 2.301 for another way of drawing noise, which is not private at that epsilon.
/// let epsilon = dp_reproduce::ranker::epsilon_of(1.5, 628, 46, 10, 400)?;
/// assert!((0.6..0.7).contains(&epsilon), "{epsilon}");
/// # Ok::<(), dp_rank::train::TrainError>(())
/// ```
pub fn epsilon_of(
    multiplier: f64,
    lists: u64,
    parameters: u64,
    batch_size: u64,
    updates: u64,
) -> Result<f64, TrainError> {
    // At a clipping norm of 1/2, the distance for two vectors of grades is 1.
    let derivation = RankingDerivation {
        lists,
        parameters,
        batch_size,
        updates,
        clipping: 0.5,
        std_dev: multiplier,
        exact_noise: true,
        protects: Protected::Grades,
        scaling: Scaling::Clip,
    };
    Ok(bound::epsilon(&derivation.event()?, Delta::new(DELTA)?)?.value)
}
