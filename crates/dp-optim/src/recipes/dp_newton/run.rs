//! The run of Newton's method with noisy Hessians: its public numbers and its training.

use dp_accountant::{Adjacency, AdjacencyKind, DpEvent, EventLog, ReplaceOne, ZeroOut};
use dp_data::RowSource;
use dp_losses::{Real, ScalarLoss};
use dp_mechanisms::clip::Moments;
use dp_mechanisms::{LentRng, ReleaseRng, Released};
use nalgebra::convert;

use super::joint::Joint;
use super::model::{Bend, Model};
use super::sums::{self, StepSums};
use super::{Curvature, DpNewton, RECIPE};
use crate::engine::Control;
use crate::error::{Error, positive};
use crate::recipes::algorithm::Run;
use crate::recipes::linear::size;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::problem::{Admitted, Problem};
use crate::recipes::recipe::{Budget, RecordAdjacency, Summary, least_scale, repeated};

/// The ridge divided by `σ_H √d`.
const RIDGE: f64 = 0.3;
/// Λ over `n q^{3/2}`.
const BALANCE: f64 = 0.3;
/// The number `s` in the step length `min(1, s/t)`.
const FORGETTING: f64 = 2.0;
/// Bound on the weights: runs that could exceed it are refused before any record is read.
const LARGEST_WEIGHTS: f64 = 1e100;

/// The result of calibration.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct NewtonNoise {
    /// Standard deviation of the noise on each number of each step's sums.
    pub std_dev: f64,
    /// Standard deviation of the noise on each moment, if the Hessian is bounded once.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub moments_std_dev: Option<f64>,
}

impl NewtonNoise {
    fn moments(self) -> Option<NoiseScale> {
        self.moments_std_dev.map(|std_dev| NoiseScale::Gaussian { std_dev })
    }
}

/// The sensitivities of the releases of a training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sensitivities {
    /// The sensitivity of each step's sums.
    pub(super) step: f64,
    /// The sensitivity of the moments, if the Hessian is bounded once.
    pub(super) moments: Option<f64>,
}

impl Sensitivities {
    fn of(recipe: &DpNewton, problem: &Problem) -> Result<Self, Error> {
        match problem.relation {
            AdjacencyKind::ZeroOut => Self::new::<ZeroOut>(recipe, problem),
            _ => Self::new::<ReplaceOne>(recipe, problem),
        }
    }

    fn new<A: Adjacency>(recipe: &DpNewton, problem: &Problem) -> Result<Self, Error> {
        let Problem { n, dim, .. } = *problem;
        let joint = recipe.check(problem)?;
        Ok(match recipe.curvature {
            Curvature::EachStep => {
                let features = size("dimension", dim)?;
                let squares = sums::squares::<A>(joint, features, n)?;
                Self { step: sums::together(joint, features, n, &squares)?, moments: None }
            }
            Curvature::Once => Self {
                step: sums::of_gradient(joint, A::KIND)?,
                moments: Some(recipe.stage(n, dim).sensitivity::<A>()?),
            },
        })
    }

    /// Returns the event of all releases, of the moments and of the steps, with this noise.
    fn event(self, steps: u64, noise: NewtonNoise) -> Result<DpEvent, Error> {
        let NewtonNoise { std_dev, moments_std_dev } = noise;
        let gaussian = |std_dev, sensitivity| DpEvent::Gaussian { std_dev, sensitivity };
        let steps = repeated(gaussian(positive("standard deviation", std_dev)?, self.step), steps);
        match (self.moments, moments_std_dev) {
            (None, None) => Ok(steps),
            (Some(sensitivity), Some(std_dev)) => {
                let moments = gaussian(positive("standard deviation of the moments", std_dev)?, sensitivity);
                Ok(DpEvent::Composed { events: vec![moments, steps] })
            }
            _ => Err(Error::NotProved {
                recipe: RECIPE,
                why: "noise on moments must be given if and only if the curvature is bounded once",
            }),
        }
    }
}

/// Noisy Newton steps: sensitivities, noise, regulariser and curvature.
#[derive(Debug, Clone, PartialEq)]
pub struct NewtonRun {
    recipe: DpNewton,
    problem: Problem,
    noise: NewtonNoise,
    sensitivities: Sensitivities,
    regularization: f64,
    loss: ScalarLoss,
    pub(crate) joint: Joint,
}

impl NewtonRun {
    /// Returns the noise of both kinds of sums.
    pub fn noise(&self) -> NewtonNoise {
        self.noise
    }

    /// Creates the run with the least noise that meets the budget for all copies.
    pub(super) fn calibrated(recipe: &DpNewton, problem: &Problem, budget: Budget, copies: u64) -> Result<Self, Error> {
        if !(budget.delta.get() > 0.0) {
            return Err(Error::NotProved { recipe: RECIPE, why: "Gaussian noise needs delta > 0" });
        }
        let sensitivities = Sensitivities::of(recipe, problem)?;
        let at = |multiplier| noise_at(recipe, sensitivities, multiplier);
        let event = |multiplier| sensitivities.event(recipe.steps, at(multiplier));
        event(1.0)?;
        // Invalid events count as non-private.
        let multiplier = least_scale(budget, copies, |multiplier| event(multiplier).unwrap_or(DpEvent::NonPrivate))?;
        let run = Self::new(recipe, problem, sensitivities, multiplier, at(multiplier))?;
        run.check_range()?;
        Ok(run)
    }

    pub(super) fn resolved(recipe: &DpNewton, problem: &Problem, noise: NewtonNoise) -> Result<Self, Error> {
        let sensitivities = Sensitivities::of(recipe, problem)?;
        sensitivities.event(recipe.steps, noise)?;
        let multiplier = noise.std_dev / noise_at(recipe, sensitivities, 1.0).std_dev;
        Self::new(recipe, problem, sensitivities, multiplier, noise)
    }

    fn new(
        recipe: &DpNewton,
        problem: &Problem,
        sensitivities: Sensitivities,
        multiplier: f64,
        noise: NewtonNoise,
    ) -> Result<Self, Error> {
        let joint = recipe.check(problem)?;
        let several = Error::NotProved { recipe: RECIPE, why: "it takes losses of one prediction" };
        let loss = recipe.loss.scalar().ok_or(several)?;
        let count = problem.n as f64;
        let regularization = match recipe.lambda {
            Some(lambda) => lambda * count,
            None => {
                let of_one = multiplier * sensitivities.step * (problem.dim as f64).sqrt() / count;
                BALANCE * count * of_one.powf(1.5)
            }
        };
        Ok(Self { recipe: recipe.clone(), problem: *problem, noise, sensitivities, regularization, loss, joint })
    }

    /// Returns the standard deviation of the noise on each number of each step's sums.
    pub fn std_dev(&self) -> f64 {
        self.noise.std_dev
    }

    /// Returns the standard deviation of the noise on each moment, if the Hessian is bounded once.
    pub fn moments_std_dev(&self) -> Option<f64> {
        self.noise.moments_std_dev
    }

    /// Returns the L2 sensitivity of each step's sums, rounding included.
    pub fn sensitivity(&self) -> f64 {
        self.sensitivities.step
    }

    /// Returns Λ, the coefficient of `‖w‖²/2` in the sum over records.
    pub fn regularization(&self) -> f64 {
        self.regularization
    }

    /// Returns the ridge that compensates for the noise of the model's Hessian.
    fn ridge(&self) -> f64 {
        let root = (self.problem.dim as f64).sqrt();
        let of_matrix = match self.noise.moments_std_dev {
            Some(std_dev) => std_dev * self.joint.margin.largest(),
            None => self.noise.std_dev / self.joint.weight(),
        };
        RIDGE * of_matrix * root
    }

    /// Refuses noise or a ridge with which weights might exceed the range of doubles for some records and not for others.
    ///
    /// A step shortens the regulariser's part of the weights, and the rest of it is at most `(nX + K)/ridge`, `K` the noise's
    /// largest norm.
    fn check_range(&self) -> Result<(), Error> {
        let (recipe, Problem { n, dim, .. }, std_dev) = (&self.recipe, &self.problem, self.noise.std_dev);
        let noise = 1000.0 * std_dev * (*dim as f64).sqrt();
        let step = (*n as f64 * recipe.row_norm + noise) / (self.ridge() + self.regularization);
        let start = 1000.0 * self.noise.moments_std_dev.unwrap_or(0.0) + *n as f64;
        if step * recipe.steps as f64 + start * step < LARGEST_WEIGHTS {
            return Ok(());
        }
        Err(Error::OutOfRange {
            name: "lambda",
            value: self.regularization,
            range: "the range in which weights are doubles",
        })
    }

    /// Returns the start of the steps, and the model that they use.
    fn start<F: Real, A: RecordAdjacency>(
        &self,
        source: &mut dyn RowSource<F>,
        log: &mut EventLog<A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Vec<f64>, Model), Error> {
        let (recipe, Problem { n, dim, .. }) = (&self.recipe, &self.problem);
        let dim = size("dimension", *dim)?;
        let (regularization, ridge) = (self.regularization, self.ridge());
        let Some(noise) = self.noise.moments() else {
            return Ok((vec![0.0; dim], Model::of_steps(dim, regularization, ridge, self.joint.weight())));
        };
        let stage = recipe.stage(*n, self.problem.dim);
        let moments = stage.moments_released::<F, A>(noise, recipe.noise_mode, source, log, rng, control)?;
        let shape = Error::Count { name: "dimension", value: self.problem.dim, range: "that of the moments" };
        let matrix = Moments::new(moments.get(), dim, 1).ok_or(shape)?.matrix;
        let bend = Bend::new(matrix * self.joint.margin.largest());
        // Λ on the scale of least squares.
        let start = stage.solve(moments, noise, regularization / self.joint.margin.largest())?;
        Ok((start.into_inner(), Model::bounded(dim, regularization, ridge, bend)))
    }

    pub(crate) fn sums<F: Real, A: RecordAdjacency>(
        &self,
        source: &mut dyn RowSource<F>,
        weights: &[f64],
        step: u64,
        log: &mut EventLog<A>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Released<Vec<f64>>, Error> {
        let (recipe, Problem { n, dim, .. }, std_dev) = (&self.recipe, &self.problem, self.noise.std_dev);
        let first = u64::from(recipe.curvature == Curvature::Once);
        let sums = StepSums {
            source,
            control,
            pass: u32::try_from(first + step).unwrap_or(u32::MAX),
            n: *n,
            dim: size("dimension", *dim)?,
            loss: self.loss,
            joint: self.joint,
            curvature: recipe.curvature == Curvature::EachStep,
        };
        let sums = sums.at::<A>(weights)?;
        NoiseScale::Gaussian { std_dev }.release(sums, *dim, recipe.noise_mode, None, log, rng)
    }
}

/// Returns the noise of each release, from a multiple of the noise that a single gradient would need.
fn noise_at(recipe: &DpNewton, sensitivities: Sensitivities, multiplier: f64) -> NewtonNoise {
    let (of_steps, of_moments) = match recipe.curvature {
        Curvature::EachStep => ((recipe.steps as f64).sqrt(), None),
        Curvature::Once => ((recipe.steps as f64 / (1.0 - recipe.share)).sqrt(), Some(recipe.share.sqrt().recip())),
    };
    let moments = sensitivities.moments.zip(of_moments).map(|(moved, share)| multiplier * share * moved);
    NewtonNoise { std_dev: multiplier * of_steps * sensitivities.step, moments_std_dev: moments }
}

impl Run for NewtonRun {
    fn event(&self) -> Result<DpEvent, Error> {
        self.sensitivities.event(self.recipe.steps, self.noise)
    }

    fn summary(&self) -> Summary {
        let (recipe, Problem { n, dim, .. }, std_dev) = (&self.recipe, &self.problem, self.noise.std_dev);
        let (passes, curvature) = match recipe.curvature {
            Curvature::EachStep => (recipe.steps, "of each step"),
            Curvature::Once => (recipe.steps + 1, "bounded once"),
        };
        Summary {
            sensitivity: Some(self.sensitivities.step),
            rows: n.saturating_mul(passes),
            text: format!(
                "sensitivity {:.4e} of each sum, noise of norm {:.4e} on each gradient, {} steps, curvature {curvature}, \
                 lambda {:.4e}",
                self.sensitivities.step,
                std_dev * (*dim as f64).sqrt(),
                recipe.steps,
                self.regularization / *n as f64,
            ),
        }
    }

    fn holds_square(&self) -> bool {
        true
    }

    fn train<F: Real, A: RecordAdjacency>(
        &self,
        rows: Admitted<'_, F, A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let source = rows.into_source();
        let mut log = EventLog::<A>::new();
        let (mut weights, mut model) = self.start::<F, A>(source, &mut log, rng, control)?;
        let mut last = None;
        for step in 0..self.recipe.steps {
            let released = self.sums::<F, A>(source, &weights, step, &mut log, rng, control)?;
            let length = (FORGETTING / (step + 1) as f64).min(1.0);
            model.step(released.get(), length, &mut weights);
            last = Some(released);
        }
        let Some(last) = last else {
            return Err(Error::Count { name: "steps", value: 0, range: "1 or more" });
        };
        // A function of the releases of all steps.
        Ok((last.map(|_| weights.into_iter().map(convert).collect()), log))
    }
}
