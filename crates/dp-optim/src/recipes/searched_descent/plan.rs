//! Descent with a private line search with everything derived that does not need data, and the run that follows it.

use core::marker::PhantomData;

use dp_accountant::filter::{Filter, RdpFilter, Refused, ZcdpFilter};
use dp_accountant::{Delta, DpEvent, EventLog, RdpOrder, Rho};
use dp_data::RowSource;
use dp_losses::{Real, ScalarLoss};
use dp_mechanisms::clip::ClippingNorm;
use dp_mechanisms::{Gaussian, L2Sensitivity, Mechanism, PrivacyEvent, ReleaseRng, Released};
use nalgebra::convert;

use super::derivation::FilterBudget;
use super::records::Records;
use super::search::{Searcher, Sums};
use super::{Search, SearchedDescent, SearchedDescentDerivation};
use crate::engine::grid_sum::GridSum;
use crate::engine::{Control, Sampler};
use crate::error::Error;
use crate::recipes::AnyDerivation;
use crate::recipes::linear::size;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Expected, Planned, RecordAdjacency, Summary, least_scale};
use crate::trained::Trained;

/// ξ: by how much a share of the budget grows.
const GROWTH: f64 = 0.3;
/// The same of DP-AGD's gradients, which costs the difference alone.
const INCREMENT: f64 = 0.1;
/// Two gradients at one point disagree at more, and agree at less, than so many times the usual angle between steps.
const ANGLES: (f64, f64) = (0.5, 1.1);
/// ψ: how slowly the usual angle follows.
const SLOWNESS: f64 = 0.8;
/// τ: after so many steps the longest candidate is set by those that were taken, and by how much above.
const REVIEW: (usize, f64) = (10, 1.2);
/// The same of DP-AGD.
const REVIEW_OF_MIN: (usize, f64) = (10, 1.1);

/// A release by descent with a private line search, planned: budget and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: SearchedDescentDerivation,
    loss: ScalarLoss,
    delta: Delta,
    /// What one gradient and one search cost at first, of zCDP before any amplification.
    share: f64,
    promise: Promise,
    relation: PhantomData<A>,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(super) fn new(recipe: &SearchedDescent, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        let loss = recipe.check(n, dim, A::KIND)?;
        GridSum::new(n)?;
        if !(budget.delta.get() > 0.0) {
            return Err(Error::NotProved { recipe: super::RECIPE, why: "Gaussian noise needs delta > 0" });
        }
        let (spent, share) = if recipe.batch_size.is_some() {
            Self::sampled_budget(recipe, n, budget, copies)?
        } else {
            let scale = least_scale(budget, copies, |scale| DpEvent::Zcdp { rho: scale.recip() })?;
            // The reciprocal of a reciprocal may be an ulp more.
            let rho = scale.recip() * (1.0 - 2.0 * f64::EPSILON);
            // A little less than the quotient: as many must fit as were planned.
            (FilterBudget::Zcdp { rho }, rho / (2.0 * recipe.steps as f64) * (1.0 - 1e-9))
        };
        let promise = Promise::new(spent.event()?, budget, copies)?;
        let derivation = SearchedDescentDerivation { recipe: recipe.clone(), relation: A::KIND, n, dim, budget: spent };
        Ok(Self { derivation, loss, delta: budget.delta, share, promise, relation: PhantomData })
    }

    /// The filter's order and budget that just suffice for a run in which no search fails, with the least noise with
    /// which they stay within the budget.
    fn sampled_budget(
        recipe: &SearchedDescent,
        n: u64,
        budget: Budget,
        copies: u64,
    ) -> Result<(FilterBudget, f64), Error> {
        let filter_at = |multiplier: f64| -> Result<DpEvent, Error> {
            let share = 0.5 / (multiplier * multiplier);
            let gradient = DpEvent::Gaussian { std_dev: multiplier, sensitivity: 1.0 };
            let search = Searcher::<A>::new(recipe.search, share)?.event();
            let step = DpEvent::Composed { events: vec![sampled(recipe, n, gradient)?, sampled(recipe, n, search)?] };
            let run = DpEvent::SelfComposed { event: Box::new(step), count: recipe.steps };
            Ok(RdpFilter::<A>::for_plan(&run, budget.delta)?.to_event())
        };
        // What cannot be stated protects nothing.
        let multiplier = least_scale(budget, copies, |scale| filter_at(scale).unwrap_or(DpEvent::NonPrivate))?;
        let spent = match filter_at(multiplier)? {
            DpEvent::RenyiDp { orders, divergences } => match (&orders[..], &divergences[..]) {
                (&[order], &[divergence]) => Some(FilterBudget::Renyi { order, divergence }),
                _ => None,
            },
            _ => None,
        };
        let none = Error::NotProved { recipe: super::RECIPE, why: "no order of its divergence gives this budget" };
        Ok((spent.ok_or(none)?, 0.5 / (multiplier * multiplier) * (1.0 - 1e-9)))
    }

    /// What no run exceeds.
    pub fn budget(&self) -> FilterBudget {
        self.derivation.budget
    }

    /// Standard deviation of the noise on the first sum of gradients.
    pub fn first_std_dev(&self) -> Result<f64, Error> {
        Ok(self.noise(self.share, self.derivation.recipe.clipping)?.std_dev())
    }

    /// How the release follows from public parameters.
    pub fn derivation(&self) -> &SearchedDescentDerivation {
        &self.derivation
    }

    /// Trains on `source` and releases the model.
    ///
    /// # Privacy
    /// As [`Planned::train`]. How long the run is depends on what was released, and on nothing else of the records.
    ///
    /// # Errors
    /// A source of another shape or with wider bounds than planned or that fails, [`Error::Interrupted`].
    pub fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        self.train_observing(source, rng, control, |_| {})
    }

    /// The same, showing each release to `observe`.
    pub(crate) fn train_observing<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
        observe: impl FnMut(Observation<'_>),
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        let SearchedDescentDerivation { recipe, n, dim, .. } = &self.derivation;
        let (row_norm, target_bound) = (recipe.row_norm, recipe.target_bound);
        Expected { n: *n, dim: *dim, row_norm, target_bound }.check(&source.describe()?)?;
        control.check()?;
        let dim = size("dimension", *dim)?;
        let sampler = match recipe.law(*n) {
            None => None,
            Some(law) => {
                // A key of its own for each training, from which nothing else is drawn.
                let mut key = [0; 32];
                rng.fill_bytes(&mut key);
                Some(Sampler::new(law, *n, key)?)
            }
        };
        let mut run = Run::<F, A, _, _> {
            plan: self,
            records: Records::new(source, control, self.loss, *n, dim, sampler),
            filter: BudgetFilter::new(self.derivation.budget, self.delta)?,
            unsaid: EventLog::new(),
            rng,
            observe,
            weights: vec![0.0; dim],
            step: recipe.step,
            of_gradient: self.share,
            of_search: self.share,
            clipping: recipe.clipping,
            most_loss: recipe.most_loss,
            released: None,
        };
        run.descend()?;
        let Run { records, unsaid, weights, released, .. } = run;
        records.finish()?;
        let Some(released) = released else {
            return Err(Error::Count { name: "steps", value: 0, range: "1 or more" });
        };
        let mut log = EventLog::<A>::new();
        log.record(self.promise.event().clone(), 1);
        if !unsaid.is_private() {
            log.mark_not_private();
        }
        // A function of everything that was released before.
        let weights = released.map(|_| weights.into_iter().map(convert).collect());
        let derivation = AnyDerivation::SearchedDescent(self.derivation.clone());
        self.promise.kept(weights, log, derivation, recipe.noise_mode)
    }

    /// How many records a sum has: on average, where that is secret.
    fn divisor(&self) -> Result<f64, Error> {
        let n = self.derivation.n;
        self.derivation.recipe.law(n).map_or(Ok(n as f64), |law| law.mean_size(n))
    }

    /// The mechanism of a gradient that costs `rho`.
    pub(crate) fn noise(&self, rho: f64, clipping: f64) -> Result<Gaussian<A>, Error> {
        let recipe = &self.derivation.recipe;
        let records = if A::KIND == dp_accountant::AdjacencyKind::ReplaceOne { 2.0 } else { 1.0 };
        let sensitivity = L2Sensitivity::<A>::new(records * clipping)?;
        let std_dev = sensitivity.get() / (2.0 * rho).sqrt() * (1.0 + 4.0 * f64::EPSILON);
        Ok(Gaussian::from_std_dev(sensitivity, std_dev)?.with_noise_mode(recipe.noise_mode)?)
    }

    /// What the private sums are compared with, for each candidate: on the grid, in units of the largest loss.
    pub(crate) fn required(
        &self,
        weights: &[f64],
        direction: &[f64],
        steps: &[f64],
        most_loss: f64,
    ) -> Result<Vec<f64>, Error> {
        let SearchedDescentDerivation { recipe, n, .. } = &self.derivation;
        let grid = GridSum::new(*n)?;
        let records = self.divisor()?;
        let squared = |vector: &mut dyn Iterator<Item = f64>| vector.map(|x| x * x).sum::<f64>();
        let here = squared(&mut weights.iter().copied());
        let slope = if recipe.search == Search::NoisyMin {
            0.0
        } else {
            recipe.armijo * squared(&mut direction.iter().copied())
        };
        let required = steps.iter().map(|step| {
            let there = squared(&mut weights.iter().zip(direction).map(|(w, d)| w - step * d));
            let of_regulariser = 0.5 * recipe.lambda * (there - here);
            grid.public(records * (of_regulariser + step * slope) / most_loss)
        });
        Ok(required.collect())
    }
}

/// What a run released.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(any(test, feature = "audit")), expect(dead_code, reason = "for tests and audits"))]
pub(crate) enum Observation<'o> {
    /// A noisy sum of gradients at these weights.
    Gradient { weights: &'o [f64], noisy_sum: &'o [f64], std_dev: f64, clipping: f64 },
    /// A choice among steps along a direction, at this share of the budget: 0 for none.
    Choice { weights: &'o [f64], direction: &'o [f64], steps: &'o [f64], rho: f64, chosen: usize },
}

/// The event of a release on all records, or on a fresh batch.
fn sampled(recipe: &SearchedDescent, n: u64, event: DpEvent) -> Result<DpEvent, Error> {
    Ok(match recipe.law(n) {
        None => event,
        Some(law) => DpEvent::PoissonSampled { sampling_rate: law.sampling_rate(n)?.get(), event: Box::new(event) },
    })
}

/// The filter of a run.
enum BudgetFilter<A: RecordAdjacency> {
    Zcdp(ZcdpFilter<A>),
    Renyi(RdpFilter<A>),
}

impl<A: RecordAdjacency> BudgetFilter<A> {
    fn new(budget: FilterBudget, delta: Delta) -> Result<Self, Error> {
        Ok(match budget {
            FilterBudget::Zcdp { rho } => Self::Zcdp(ZcdpFilter::with_budget(Rho::new(rho)?, delta)?),
            FilterBudget::Renyi { order, divergence } => {
                Self::Renyi(RdpFilter::within(&[RdpOrder::new(order)?], &[divergence], delta)?)
            }
        })
    }

    fn admits(&mut self, event: &DpEvent) -> Result<bool, Error> {
        let answer = match self {
            Self::Zcdp(filter) => filter.spend(event, 1),
            Self::Renyi(filter) => filter.spend(event, 1),
        };
        match answer {
            Ok(_) => Ok(true),
            Err(Refused::Exceeded { .. }) => Ok(false),
            Err(Refused::Invalid(error)) => Err(error.into()),
        }
    }
}

/// A run under way.
struct Run<'r, 's, 'c, F, A: RecordAdjacency, R: ?Sized, O> {
    plan: &'r Plan<A>,
    records: Records<'s, 'c, F>,
    filter: BudgetFilter<A>,
    /// What the releases themselves say of their cost: the filter's budget is what is said.
    unsaid: EventLog<A>,
    rng: &'r mut R,
    observe: O,
    weights: Vec<f64>,
    /// The longest candidate.
    step: f64,
    of_gradient: f64,
    of_search: f64,
    /// C and C_o, which may have shrunk.
    clipping: f64,
    most_loss: f64,
    released: Option<Released<Vec<f64>>>,
}

/// An estimate of the mean gradient, and its precision.
#[derive(Debug, Clone)]
struct Estimate {
    mean: Vec<f64>,
    precision: f64,
}

impl Estimate {
    /// The mean by precision, which is as good as one measurement for both prices.
    fn with(self, other: &Self) -> Self {
        let precision = self.precision + other.precision;
        let (own, others) = (self.precision / precision, other.precision / precision);
        let mean = self.mean.iter().zip(&other.mean).map(|(a, b)| own * a + others * b).collect();
        Self { mean, precision }
    }
}

/// The angle between two vectors in degrees; 90 where one of them is zero.
pub(super) fn angle(one: &[f64], other: &[f64]) -> f64 {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let norms = (product(one, one) * product(other, other)).sqrt();
    let cosine = product(one, other) / norms;
    if norms > 0.0 && cosine.is_finite() { cosine.clamp(-1.0, 1.0).acos().to_degrees() } else { 90.0 }
}

impl<F: Real, A: RecordAdjacency, R: ReleaseRng + ?Sized, O: FnMut(Observation<'_>)> Run<'_, '_, '_, F, A, R, O> {
    /// Asks the filter, before anything is read.
    fn admitted(&mut self, event: DpEvent) -> Result<bool, Error> {
        let SearchedDescentDerivation { recipe, n, .. } = &self.plan.derivation;
        self.filter.admits(&sampled(recipe, *n, event)?)
    }

    /// A noisy gradient for this price; `None` where the budget is spent.
    fn measure(&mut self, rho: f64) -> Result<Option<Estimate>, Error> {
        let noise = self.plan.noise(rho, self.clipping)?;
        if !self.admitted(noise.event())? {
            return Ok(None);
        }
        let sum = self.records.gradient::<A>(&self.weights, ClippingNorm::new(self.clipping)?)?;
        let released = noise.release(sum, &mut self.unsaid, self.rng)?;
        let (weights, noisy_sum) = (&self.weights[..], &released.get()[..]);
        (self.observe)(Observation::Gradient { weights, noisy_sum, std_dev: noise.std_dev(), clipping: self.clipping });
        let divisor = self.plan.divisor()?;
        let mean = noisy_sum.iter().map(|sum| sum / divisor).collect();
        self.released = Some(released);
        // The inverse of the noise's variance, up to a constant.
        Ok(Some(Estimate { mean, precision: noise.std_dev().powi(-2) }))
    }

    /// Chooses a step along `direction`: `Some(0.0)` for none, `None` where the budget is spent.
    fn search(&mut self, direction: &[f64]) -> Result<Option<f64>, Error> {
        let recipe = &self.plan.derivation.recipe;
        let searcher = Searcher::<A>::new(recipe.search, self.of_search)?;
        if !self.admitted(searcher.event())? {
            return Ok(None);
        }
        let steps = recipe.candidates(self.step);
        let losses = self.records.losses(&self.weights, direction, &steps, self.most_loss)?;
        let sums = Sums { losses, required: self.plan.required(&self.weights, direction, &steps, self.most_loss)? };
        let chosen = searcher.choose(&sums, &mut self.unsaid, self.rng)?;
        let (weights, rho) = (&self.weights[..], self.of_search);
        (self.observe)(Observation::Choice { weights, direction, steps: &steps, rho, chosen });
        Ok(Some(chosen.checked_sub(1).and_then(|candidate| steps.get(candidate)).copied().unwrap_or(0.0)))
    }

    /// Where a step leads: along the gradient of loss and regulariser, normalised under [`Search::NoisyMin`].
    fn direction(&self, gradient: &Estimate) -> Vec<f64> {
        let recipe = &self.plan.derivation.recipe;
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

    /// Clips more, down to next to nothing.
    fn shrink_clipping(&mut self) {
        let kept = 1.0 - self.plan.derivation.recipe.clip_decay;
        self.clipping = (kept * self.clipping).max(1e-50);
        self.most_loss = (kept * self.most_loss).max(1e-50);
    }

    fn descend(&mut self) -> Result<(), Error> {
        let noisy_min = self.plan.derivation.recipe.search == Search::NoisyMin;
        let longest = self.plan.derivation.recipe.step;
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

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    type Derivation = AnyDerivation;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> AnyDerivation {
        AnyDerivation::SearchedDescent(self.derivation.clone())
    }

    fn summary(&self) -> Summary {
        let SearchedDescentDerivation { recipe, n, budget, .. } = &self.derivation;
        let batch = recipe.batch_size.map_or(*n, |batch_size| batch_size.min(*n));
        let budget = match budget {
            FilterBudget::Zcdp { rho } => format!("{rho:.4e} zCDP"),
            FilterBudget::Renyi { order, divergence } => format!("{divergence:.4e} at order {order:.2}"),
        };
        Summary {
            sensitivity: self.noise(self.share, recipe.clipping).ok().map(|noise| noise.sensitivity().get()),
            rows: batch.saturating_mul(recipe.steps).saturating_mul(2),
            text: format!(
                "budget of {budget}, noise on gradients and choices for {} steps of {} candidates, fewer where some fail",
                recipe.steps, recipe.candidates
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
