//! The training: gradients and searches until the filter refuses.

use dp_accountant::certificate::Assumption;
use dp_accountant::{DpEvent, EventLog};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::clip::ClippingNorm;
use dp_mechanisms::{LentRng, Mechanism, Prepaid, PrivacyEvent, Released};
use nalgebra::convert;
use rand::Rng as _;

use super::budget::BudgetFilter;
use super::records::Records;
use super::run::{SearchRun, Start};
use crate::engine::{Control, Sampler};
use crate::error::Error;
use crate::line_search::{REVIEW, Search, Searcher, Sums};
use crate::recipes::linear::size;
use crate::recipes::recipe::RecordAdjacency;

/// ξ: relative growth of a share of the budget.
const GROWTH: f64 = 0.3;
/// The same for DP-AGD's gradients, where only the difference is paid.
const INCREMENT: f64 = 0.1;
/// Multiples of the usual angle between steps: two gradients at one point agree below the first, and disagree above the
/// second.
const ANGLES: (f64, f64) = (0.5, 1.1);
/// ψ: smoothing factor of the usual angle.
const SLOWNESS: f64 = 0.8;
/// [`REVIEW`] for DP-AGD.
const REVIEW_OF_MIN: (usize, f64) = (10, 1.1);

/// The releases of a run.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(any(test, feature = "audit")), expect(dead_code, reason = "for tests and audits"))]
pub enum Observation<'o> {
    /// A noisy sum of gradients at these weights.
    Gradient {
        /// The weights.
        weights: &'o [f64],
        /// The noisy sum.
        noisy_sum: &'o [f64],
        /// The standard deviation of its noise.
        std_dev: f64,
        /// The clipping norm.
        clipping: f64,
    },
    /// A choice among steps along a direction, at this cost: 0 for no step.
    Choice {
        /// The weights.
        weights: &'o [f64],
        /// The direction.
        direction: &'o [f64],
        /// The candidates.
        steps: &'o [f64],
        /// The cost.
        rho: f64,
        /// The number of the chosen candidate, from 1.
        chosen: usize,
    },
}

pub(super) struct Training<'r, 's, 'c, 'g, F, A: RecordAdjacency, O> {
    run: &'r SearchRun,
    records: Records<'s, 'c, F>,
    filter: BudgetFilter<A>,
    /// The releases, which the filter's budget accounts for.
    releases: Prepaid<A>,
    /// Number of releases that the filter has admitted.
    admitted: u64,
    rng: &'r mut LentRng<'g>,
    observe: O,
    weights: Vec<f64>,
    /// The longest candidate.
    step: f64,
    of_gradient: f64,
    of_search: f64,
    /// C and C_o, which may have shrunk.
    clipping: f64,
    most_loss: f64,
    /// The last gradient.
    last: Option<Released<Vec<f64>>>,
}

#[derive(Debug, Clone)]
struct Estimate {
    mean: Vec<f64>,
    precision: f64,
}

impl Estimate {
    /// Returns the mean weighted by precision, as good as one measurement for both costs.
    fn with(self, other: &Self) -> Self {
        let precision = self.precision + other.precision;
        let (own, others) = (self.precision / precision, other.precision / precision);
        let mean = self.mean.iter().zip(&other.mean).map(|(a, b)| own * a + others * b).collect();
        Self { mean, precision }
    }
}

/// Returns the angle between two vectors in degrees; 90 if one of them is zero.
pub(super) fn angle(one: &[f64], other: &[f64]) -> f64 {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let norms = (product(one, one) * product(other, other)).sqrt();
    let cosine = product(one, other) / norms;
    if norms > 0.0 && cosine.is_finite() { cosine.clamp(-1.0, 1.0).acos().to_degrees() } else { 90.0 }
}

impl<'r, 's, 'c, 'g, F: Real, A: RecordAdjacency, O: FnMut(Observation<'_>)> Training<'r, 's, 'c, 'g, F, A, O> {
    pub(super) fn new(
        run: &'r SearchRun,
        source: &'s mut dyn RowSource<F>,
        rng: &'r mut LentRng<'g>,
        control: &'s mut Control<'c>,
        observe: O,
    ) -> Result<Self, Error> {
        let SearchRun { recipe, problem, .. } = run;
        let Start { share, delta } = run.start()?;
        let dim = size("dimension", problem.dim)?;
        let sampler = match recipe.law(problem.n) {
            None => None,
            Some(law) => {
                // A fresh key for each training, from which nothing else is drawn.
                let mut key = [0; 32];
                rng.fill_bytes(&mut key);
                Some(Sampler::new(law, problem.n, key)?)
            }
        };
        Ok(Self {
            run,
            records: Records::new(source, control, run.loss, problem.n, dim, sampler),
            filter: BudgetFilter::new(run.budget, delta)?,
            releases: Prepaid::new(run.budget.event()?).proving(Assumption::MonotonicScores),
            admitted: 0,
            rng,
            observe,
            weights: vec![0.0; dim],
            step: recipe.step,
            of_gradient: share,
            of_search: share,
            clipping: recipe.clipping,
            most_loss: recipe.most_loss,
            last: None,
        })
    }

    pub(super) fn descend(mut self) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        self.steps()?;
        let Self { releases, admitted, weights, last, .. } = self;
        let last = last.ok_or(Error::Count { name: "steps", value: 0, range: "1 or more" })?;
        // A function of all releases.
        Ok(releases.finish(last.map(|_| weights.into_iter().map(convert).collect()), admitted)?)
    }

    /// Asks the filter, before anything is read.
    fn admitted(&mut self, event: DpEvent) -> Result<bool, Error> {
        let is_admitted = self.filter.admits(&self.run.recipe.sampled(self.run.problem.n, event)?)?;
        self.admitted += u64::from(is_admitted);
        Ok(is_admitted)
    }

    /// Measures a noisy gradient at this cost; `None` if the budget is spent.
    fn measure(&mut self, rho: f64) -> Result<Option<Estimate>, Error> {
        let noise = self.run.noise::<A>(rho, self.clipping)?;
        if !self.admitted(noise.event())? {
            return Ok(None);
        }
        let sum = self.records.gradient::<A>(&self.weights, ClippingNorm::new(self.clipping)?)?;
        let released = noise.release(sum, self.releases.log(), self.rng)?;
        let (weights, noisy_sum) = (&self.weights[..], &released.get()[..]);
        (self.observe)(Observation::Gradient { weights, noisy_sum, std_dev: noise.std_dev(), clipping: self.clipping });
        let divisor = self.run.divisor()?;
        let mean = noisy_sum.iter().map(|sum| sum / divisor).collect();
        self.last = Some(released);
        // The inverse of the noise's variance, up to a constant.
        Ok(Some(Estimate { mean, precision: noise.std_dev().powi(-2) }))
    }

    /// Chooses a step along `direction`: `Some(0.0)` for no step, `None` if the budget is spent.
    fn search(&mut self, direction: &[f64]) -> Result<Option<f64>, Error> {
        let recipe = &self.run.recipe;
        let searcher = Searcher::<A>::new(recipe.search, self.of_search)?;
        if !self.admitted(searcher.event())? {
            return Ok(None);
        }
        let steps = recipe.candidates(self.step);
        let losses = self.records.losses(&self.weights, direction, &steps, self.most_loss)?;
        let sums = Sums { losses, required: self.run.required(&self.weights, direction, &steps, self.most_loss)? };
        let chosen = searcher.choose(&sums, self.releases.log(), self.rng)?;
        let (weights, rho) = (&self.weights[..], self.of_search);
        (self.observe)(Observation::Choice { weights, direction, steps: &steps, rho, chosen });
        Ok(Some(chosen.checked_sub(1).and_then(|candidate| steps.get(candidate)).copied().unwrap_or(0.0)))
    }

    /// Returns the direction of a step: the gradient of loss and regulariser, normalised for [`Search::NoisyMin`].
    fn direction(&self, gradient: &Estimate) -> Vec<f64> {
        let recipe = &self.run.recipe;
        let mut direction: Vec<f64> =
            gradient.mean.iter().zip(&self.weights).map(|(g, w)| g + recipe.lambda * w).collect();
        if recipe.search == Search::NoisyMin {
            let norm = direction.iter().map(|d| d * d).sum::<f64>().sqrt();
            if norm > 0.0 {
                direction.iter_mut().for_each(|d| *d /= norm);
            }
        }
        direction
    }

    /// Shrinks the clipping norms, down to a tiny minimum.
    fn shrink_clipping(&mut self) {
        let kept = 1.0 - self.run.recipe.clip_decay;
        self.clipping = (kept * self.clipping).max(1e-50);
        self.most_loss = (kept * self.most_loss).max(1e-50);
    }

    fn steps(&mut self) -> Result<(), Error> {
        let noisy_min = self.run.recipe.search == Search::NoisyMin;
        let longest = self.run.recipe.step;
        let (review, above) = if noisy_min { REVIEW_OF_MIN } else { REVIEW };
        let mut usual_angle = 90.0;
        let mut before: Option<Estimate> = None;
        let mut taken: Vec<f64> = Vec::new();
        while let Some(mut gradient) = self.measure(self.of_gradient)? {
            let mut shrunk = false;
            loop {
                let direction = self.direction(&gradient);
                let Some(step) = self.search(&direction)? else { return Ok(()) };
                if step > 0.0 {
                    self.weights.iter_mut().zip(&direction).for_each(|(w, d)| *w -= step * d);
                    if let Some(before) = &before {
                        let turned = angle(&gradient.mean, &before.mean);
                        usual_angle = SLOWNESS * usual_angle + (1.0 - SLOWNESS) * turned;
                    }
                    before = Some(gradient);
                    taken.push(step);
                    break;
                }
                if noisy_min {
                    let Some(more) = self.measure(INCREMENT * self.of_gradient)? else { return Ok(()) };
                    self.of_gradient *= 1.0 + INCREMENT;
                    gradient = gradient.with(&more);
                    continue;
                }
                let Some(again) = self.measure(self.of_gradient)? else { return Ok(()) };
                let apart = angle(&gradient.mean, &again.mean);
                if apart > 90.0 || apart > ANGLES.1 * usual_angle {
                    self.of_gradient *= 1.0 + GROWTH;
                    if !shrunk {
                        self.shrink_clipping();
                        shrunk = true;
                    }
                } else if apart < ANGLES.0 * usual_angle {
                    self.of_search *= 1.0 + GROWTH;
                }
                gradient = gradient.with(&again);
            }
            if taken.len() == review {
                let most = taken.drain(..).fold(0.0, f64::max);
                let most = above * most;
                self.step = if noisy_min { most.min(longest) } else { most.min(self.step) };
            }
        }
        Ok(())
    }
}
