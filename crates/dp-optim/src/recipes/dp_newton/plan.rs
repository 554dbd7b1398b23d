//! Noisy Newton steps with everything derived that does not need data, and the training that follows it.

use core::marker::PhantomData;

use dp_accountant::{DpEvent, EventLog};
use dp_data::RowSource;
use dp_losses::{Real, ScalarLoss};
use dp_mechanisms::clip::Moments;
use dp_mechanisms::{ReleaseRng, Released};
use nalgebra::convert;

use super::derivation::Sensitivities;
use super::model::{Bend, Model};
use super::sums::StepSums;
use super::{Curvature, DpNewton, DpNewtonDerivation, Joint, RECIPE};
use crate::engine::Control;
use crate::error::Error;
use crate::recipes::AnyDerivation;
use crate::recipes::linear::size;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::noisy_moments::RIDGE;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Expected, Planned, RecordAdjacency, Summary, least_scale};
use crate::trained::Trained;

/// Λ over `n q^{3/2}`.
const BALANCE: f64 = 0.3;
/// The number of the step whose length is the first below 1.
const FORGETTING: f64 = 2.0;
/// Weights beyond this are refused before any record is read.
const LARGEST_WEIGHTS: f64 = 1e100;

/// A release by noisy Newton steps, planned: noise, event and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: DpNewtonDerivation,
    sensitivities: Sensitivities,
    regularization: f64,
    loss: ScalarLoss,
    joint: Joint,
    promise: Promise,
    relation: PhantomData<A>,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(super) fn new(recipe: &DpNewton, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        let joint = recipe.check(n, dim)?;
        let not_proved = |why| Error::NotProved { recipe: RECIPE, why };
        if !(budget.delta.get() > 0.0) {
            return Err(not_proved("Gaussian noise needs delta > 0"));
        }
        let loss = recipe.loss.scalar().ok_or_else(|| not_proved("it takes losses of one prediction"))?;
        let sensitivities = Sensitivities::new::<A>(recipe, n, dim)?;
        // All of them cost what one Gaussian of this multiplier costs.
        let (of_steps, of_moments) = match recipe.curvature {
            Curvature::EachStep => ((recipe.steps as f64).sqrt(), None),
            Curvature::Once => ((recipe.steps as f64 / (1.0 - recipe.share)).sqrt(), Some(recipe.share.sqrt().recip())),
        };
        let at = |multiplier: f64| {
            let moments = sensitivities.moments.zip(of_moments).map(|(moved, share)| multiplier * share * moved);
            (multiplier * of_steps * sensitivities.step, moments)
        };
        let event = |multiplier| {
            let (std_dev, moments) = at(multiplier);
            sensitivities.event(recipe.steps, std_dev, moments)
        };
        event(1.0)?;
        // What cannot be stated protects nothing.
        let multiplier = least_scale(budget, copies, |multiplier| event(multiplier).unwrap_or(DpEvent::NonPrivate))?;
        let (std_dev, moments_std_dev) = at(multiplier);
        let promise = Promise::new(event(multiplier)?, budget, copies)?;
        let count = n as f64;
        let regularization = match recipe.lambda {
            Some(lambda) => lambda * count,
            None => {
                let of_one = multiplier * sensitivities.step * (dim as f64).sqrt() / count;
                BALANCE * count * of_one.powf(1.5)
            }
        };
        let derivation =
            DpNewtonDerivation { recipe: recipe.clone(), relation: A::KIND, n, dim, std_dev, moments_std_dev };
        let plan = Self { derivation, sensitivities, regularization, loss, joint, promise, relation: PhantomData };
        plan.check_range()?;
        Ok(plan)
    }

    /// Standard deviation of the noise on each number of each step's sums.
    pub fn std_dev(&self) -> f64 {
        self.derivation.std_dev
    }

    /// The same of the moments of which the curvature is bounded once.
    pub fn moments_std_dev(&self) -> Option<f64> {
        self.derivation.moments_std_dev
    }

    /// L2 sensitivity of each step's sums, rounding allowed for.
    pub fn sensitivity(&self) -> f64 {
        self.sensitivities.step
    }

    /// Λ: coefficient of `‖w‖²/2` in the sum over records.
    pub fn regularization(&self) -> f64 {
        self.regularization
    }

    /// How the release follows from public parameters.
    pub fn derivation(&self) -> &DpNewtonDerivation {
        &self.derivation
    }

    /// What is added to the model's curvature for its noise.
    fn ridge(&self) -> f64 {
        let root = (self.derivation.dim as f64).sqrt();
        let of_matrix = match self.derivation.moments_std_dev {
            Some(std_dev) => std_dev * self.joint.margin.largest(),
            None => self.derivation.std_dev / self.joint.weight(),
        };
        RIDGE * of_matrix * root
    }

    /// Refuses noise, or a ridge, with which weights might leave the doubles, whatever the records: where something might
    /// fail for some and not for others.
    ///
    /// A step shortens the regulariser's part of the weights, and the rest of it is at most `(nX + K)/ridge`, `K` the
    /// noise's largest norm.
    fn check_range(&self) -> Result<(), Error> {
        let DpNewtonDerivation { recipe, n, dim, std_dev, .. } = &self.derivation;
        let noise = 1000.0 * std_dev * (*dim as f64).sqrt();
        let step = (*n as f64 * recipe.row_norm + noise) / (self.ridge() + self.regularization);
        let start = 1000.0 * self.derivation.moments_std_dev.unwrap_or(0.0) + *n as f64;
        if step * recipe.steps as f64 + start * step < LARGEST_WEIGHTS {
            return Ok(());
        }
        Err(Error::OutOfRange { name: "lambda", value: self.regularization, range: "what keeps weights in doubles" })
    }

    /// Trains on `source` and releases the model.
    ///
    /// # Privacy
    /// As [`Planned::train`].
    ///
    /// # Errors
    /// A source of another shape or with wider bounds than planned or that fails, [`Error::Interrupted`].
    pub fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        let DpNewtonDerivation { recipe, n, dim, .. } = &self.derivation;
        let (row_norm, target_bound) = (recipe.row_norm, recipe.target_bound);
        Expected { n: *n, dim: *dim, row_norm, target_bound }.check(&source.describe()?)?;
        control.check()?;
        let mut log = EventLog::<A>::new();
        let (mut weights, mut model) = self.start::<F>(source, &mut log, rng, control)?;
        let mut last = None;
        for step in 0..recipe.steps {
            let released = self.sums::<F>(source, &weights, step, &mut log, rng, control)?;
            let length = (FORGETTING / (step + 1) as f64).min(1.0);
            model.step(released.get(), length, &mut weights);
            last = Some(released);
        }
        source.finish()?;
        let Some(last) = last else {
            return Err(Error::Count { name: "steps", value: 0, range: "1 or more" });
        };
        // A function of what all steps released.
        let weights = last.map(|_| weights.into_iter().map(convert).collect());
        self.promise.kept(weights, log, Planned::<A>::derivation(self), recipe.noise_mode)
    }

    /// Where the steps begin, and the model that they follow.
    fn start<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        log: &mut EventLog<A>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<(Vec<f64>, Model), Error> {
        let DpNewtonDerivation { recipe, n, dim, .. } = &self.derivation;
        let dim = size("dimension", *dim)?;
        let (regularization, ridge) = (self.regularization, self.ridge());
        let Some(noise) = self.derivation.moments_noise() else {
            return Ok((vec![0.0; dim], Model::of_steps(dim, regularization, ridge, self.joint.weight())));
        };
        let stage = recipe.stage(*n, self.derivation.dim);
        let moments = stage.moments_released::<F, A>(noise, recipe.noise_mode, source, log, rng, control)?;
        let shape = Error::Count { name: "dimension", value: self.derivation.dim, range: "that of the moments" };
        let matrix = Moments::new(moments.get(), dim, 1).ok_or(shape)?.matrix;
        let bend = Bend::new(matrix * self.joint.margin.largest());
        // Λ on the scale of least squares.
        let start = stage.solve(moments, noise, regularization / self.joint.margin.largest())?;
        Ok((start.into_inner(), Model::bounded(dim, regularization, ridge, bend)))
    }

    /// ω.
    #[cfg(feature = "audit")]
    pub(crate) fn weight(&self) -> f64 {
        self.joint.weight()
    }

    /// One step's sums, released.
    pub(crate) fn sums<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        weights: &[f64],
        step: u64,
        log: &mut EventLog<A>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Released<Vec<f64>>, Error> {
        let DpNewtonDerivation { recipe, n, dim, std_dev, .. } = &self.derivation;
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
        NoiseScale::Gaussian { std_dev: *std_dev }.release(sums, *dim, recipe.noise_mode, None, log, rng)
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    type Derivation = AnyDerivation;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> AnyDerivation {
        AnyDerivation::DpNewton(self.derivation.clone())
    }

    fn summary(&self) -> Summary {
        let DpNewtonDerivation { recipe, n, dim, std_dev, .. } = &self.derivation;
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

    fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        self.train(source, rng, control)
    }
}
