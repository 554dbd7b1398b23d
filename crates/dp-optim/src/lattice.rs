//! What the weights of an honest release can be, by public parameters alone.
//!
//! Noise is added on a grid whose step is a function of its scale ([`dp_mechanisms::grid`]), and what is projected onto a
//! ball lies in it. So the weights of a model tell whether they can be what its recipe released, and weights that never met
//! its noise are almost surely found out: a double of the size of 1 is a multiple of a step `2^-k` with probability
//! `2^(k - 52)` or less, for each weight.
//!
//! # Which check applies
//! | what is released | checked | recipes |
//! |---|---|---|
//! | noise added last, nothing after it | multiples of the step | bolt-on, RSGD-AR, NSGD, output perturbation, objective perturbation (also as AMP), PNSGD, Snowball-SGD; perturbed ADMM whose smooth copy is released |
//! | the same, then a projection | multiples of the step within the radius, or norm equal to the radius | bolt-on and its kin, PNSGD and Snowball-SGD with a radius; phased SGD and phased ERM |
//! | iterates after noise in every step, or their mean | norm at most the radius, where there is one | DP-SGD, DP-GD, DP-Adam, DP-FTRL, DP-SVRG, BST14, SCS13; stochastic ADMM whose smooth copy is released |
//! | a function of one noisy sum | zeros, and a last weight that a sum on the grid gives | majority |
//! | steps that were chosen | at most as many weights other than 0 as rounds, within the way of all steps; of equal steps, or up to 24 rounds, sums of them | PrivGene |
//! | another function of noisy sums | nothing | noisy moments, DP-Newton, searched descents, consensus ADMM, sparse copies of ADMM |
//!
//! In single precision every weight of a recipe that states its precision is a single, whatever else is checked. Where one
//! model is trained for each class, each is checked by itself; where one of several candidates was chosen, it is that
//! candidate's check, and a random number of repetitions that was 0 releases zeros.
//!
//! # What it cannot find out
//! Weights that somebody rounded to the grid, and weights so much larger than the noise that doubles of their size are
//! coarser than the step.

use crate::error::Error;
use crate::float::FloatKind;
use crate::recipes::majority::Majority;

/// Steps of distinct lengths up to which all their sums are looked through.
const MOST_ENUMERATED: usize = 24;

/// What the weights of an honest release can be.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ReplaceOne};
/// use dp_losses::LossKind;
/// use dp_optim::DerivesModel as _;
/// use dp_optim::recipes::{BoltOn, Budget, Recipe};
/// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::ZERO };
/// let plan = BoltOn::convex(LossKind::Logistic).plan::<ReplaceOne>(1000, 2, budget)?;
/// let lattice = plan.derivation().release_lattice()?;
/// let step = lattice.step().unwrap();
/// assert!(lattice.check(&[3.0 * step, -70.0 * step]).is_ok());
/// assert!(lattice.check(&[3.0 * step, 0.1]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ReleaseLattice {
    /// Number of models side by side, each of which is checked by itself.
    models: u64,
    points: Points,
    /// The ball that the release, or each iterate, was projected onto.
    radius: Option<f64>,
    /// The precision, where the recipe states it.
    float: FloatKind,
}

/// Where the weights of one model lie, but for a projection.
#[derive(Debug, Clone, PartialEq)]
enum Points {
    /// Anywhere.
    Anywhere,
    /// At the origin.
    Origin,
    /// At multiples of a power of two.
    Grid { step: f64 },
    /// At the last coordinate's axis, where a sum on the grid puts it.
    Answers { recipe: Majority, n: u64, step: f64 },
    /// At sums of steps along the axes, each taken once, forth or back.
    Steps { steps: Vec<f64> },
}

/// Why weights cannot be what a recipe released.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OffLattice {
    /// A weight is between the points of the noise's grid.
    #[error("weight {index} is {weight:?}, no multiple of the step {step:?} on which the recipe's noise is released")]
    BetweenGridPoints {
        /// Its position, from 0.
        index: usize,
        /// The weight.
        weight: f64,
        /// The step.
        step: f64,
    },
    /// The weights are longer than the ball that they were projected onto.
    #[error("the weights have norm {norm:?}, and the recipe projects onto a ball of radius {radius:?}")]
    OutsideBall {
        /// Their norm.
        norm: f64,
        /// The radius.
        radius: f64,
    },
    /// A weight needs more digits than the recipe's arithmetic has.
    #[error("weight {index} is {weight:?}, which single precision, in which the recipe computes, cannot hold")]
    NotSingle {
        /// Its position, from 0.
        index: usize,
        /// The weight.
        weight: f64,
    },
    /// A weight is none that the recipe can give.
    #[error("weight {index} is {weight:?}, which nothing that the recipe can have drawn gives")]
    OutOfReach {
        /// Its position, from 0.
        index: usize,
        /// The weight.
        weight: f64,
    },
    /// The weights are no whole number of models.
    #[error("{weights} weights are not {models} models of one length")]
    Models {
        /// Number of weights.
        weights: usize,
        /// Number of models.
        models: u64,
    },
}

impl ReleaseLattice {
    /// What is known of a function of noisy sums.
    pub(crate) const ANYWHERE: Self = Self::of(Points::Anywhere);
    /// The model of zeros.
    pub(crate) const ORIGIN: Self = Self::of(Points::Origin);

    const fn of(points: Points) -> Self {
        Self { models: 1, points, radius: None, float: FloatKind::F64 }
    }

    /// Noise on this grid was added last.
    pub(crate) const fn on_grid(step: f64) -> Self {
        Self::of(Points::Grid { step })
    }

    /// A constant answer from a noisy sum on this grid.
    pub(crate) const fn answers(recipe: Majority, n: u64, step: f64) -> Self {
        Self::of(Points::Answers { recipe, n, step })
    }

    /// Steps of these lengths along the axes.
    pub(crate) const fn steps(steps: Vec<f64>) -> Self {
        Self::of(Points::Steps { steps })
    }

    /// Projected onto a ball at the end.
    pub(crate) fn within(self, radius: Option<f64>) -> Self {
        Self { radius, ..self }
    }

    /// Computed in this precision.
    pub(crate) fn in_precision(self, float: FloatKind) -> Self {
        Self { float, ..self }
    }

    /// So many models side by side.
    pub(crate) fn stacked(self, models: u64) -> Self {
        Self { models, ..self }
    }

    /// The step of which every weight is a multiple, unless a projection moved it.
    pub fn step(&self) -> Option<f64> {
        match self.points {
            // Singles are multiples of the least of them.
            Points::Grid { step } if self.float == FloatKind::F32 => Some(step.max(f64::from(f32::from_bits(1)))),
            Points::Grid { step } => Some(step),
            _ => None,
        }
    }

    /// The largest norm of a model, up to rounding.
    pub fn radius(&self) -> Option<f64> {
        self.radius
    }

    /// Whether anything is known that weights could be held to.
    pub fn is_checked(&self) -> bool {
        self.points != Points::Anywhere || self.radius.is_some() || self.float == FloatKind::F32
    }

    /// Whether these weights, of all models, can be an honest release's.
    ///
    /// # Errors
    /// The first reason why not.
    pub fn check(&self, weights: &[f64]) -> Result<(), OffLattice> {
        let models =
            usize::try_from(self.models).ok().filter(|models| *models > 0 && weights.len().is_multiple_of(*models));
        let Some(models) = models else {
            return Err(OffLattice::Models { weights: weights.len(), models: self.models });
        };
        let each = (weights.len() / models).max(1);
        (0..).step_by(each).zip(weights.chunks(each)).try_for_each(|(first, model)| self.check_model(first, model))
    }

    /// The weights of one model, the first of which has this position among all.
    fn check_model(&self, first: usize, weights: &[f64]) -> Result<(), OffLattice> {
        let indexed = || (first..).zip(weights.iter().copied());
        if self.float == FloatKind::F32
            && let Some((index, weight)) = indexed().find(|(_, weight)| f64::from(*weight as f32) != *weight)
        {
            return Err(OffLattice::NotSingle { index, weight });
        }
        let on_points = self.check_points(first, weights);
        let Some(radius) = self.radius else { return on_points };
        let norm = weights.iter().fold(0.0f64, |norm, weight| norm.hypot(*weight));
        if norm > radius * (1.0 + self.slack(weights.len())) {
            return Err(OffLattice::OutsideBall { norm, radius });
        }
        // What was longer has been scaled, and lies between the points of the grid.
        if norm >= radius * (1.0 - self.slack(weights.len())) { Ok(()) } else { on_points }
    }

    /// How far rounding may carry a projected norm, relatively: that of the norm itself, and of a mean of many points.
    fn slack(&self, weights: usize) -> f64 {
        let roundoff = match self.float {
            FloatKind::F64 => f64::EPSILON,
            FloatKind::F32 => f64::from(f32::EPSILON),
        };
        let of_norm = 4.0 * (weights as f64 + 16.0) * roundoff;
        match self.points {
            Points::Anywhere => of_norm + roundoff.cbrt(),
            _ => of_norm,
        }
    }

    fn check_points(&self, first: usize, weights: &[f64]) -> Result<(), OffLattice> {
        let mut indexed = (first..).zip(weights.iter().copied());
        let out_of_reach = |found: Option<(usize, f64)>| match found {
            Some((index, weight)) => Err(OffLattice::OutOfReach { index, weight }),
            None => Ok(()),
        };
        match &self.points {
            Points::Anywhere => Ok(()),
            Points::Origin => out_of_reach(indexed.find(|(_, weight)| *weight != 0.0)),
            Points::Grid { .. } => {
                let step = self.step().unwrap_or_default();
                // The remainder by a power of two is exact.
                match indexed.find(|(_, weight)| weight % step != 0.0) {
                    Some((index, weight)) => Err(OffLattice::BetweenGridPoints { index, weight, step }),
                    None => Ok(()),
                }
            }
            Points::Answers { recipe, n, step } => {
                let last = first + weights.len() - 1;
                out_of_reach(indexed.find(|&(index, weight)| {
                    if index == last { !recipe.can_answer(weight, *n, *step) } else { weight != 0.0 }
                }))
            }
            Points::Steps { steps } => {
                out_of_reach(unreachable_weight(steps, weights).map(|i| (first + i, weights[i])))
            }
        }
    }
}

/// The position of a weight that steps of these lengths, each along one axis, forth or back, cannot have led to.
fn unreachable_weight(steps: &[f64], weights: &[f64]) -> Option<usize> {
    let way: f64 = steps.iter().sum();
    // Each addition rounds; a model of singles rounds once more.
    let single = weights.iter().all(|weight| f64::from(*weight as f32) == *weight);
    let roundoff = if single { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let tolerance = way * roundoff * (steps.len() as f64 + 4.0);
    let moved: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] != 0.0).collect();
    let last_moved = moved.last().copied();
    let travelled: f64 = weights.iter().map(|weight| weight.abs()).sum();
    if moved.len() > steps.len() || travelled > way + tolerance * moved.len() as f64 {
        return last_moved;
    }
    let equal = steps.first().copied().filter(|first| steps.iter().all(|step| step == first));
    if let Some(step) = equal {
        let counts = moved.iter().map(|&i| (i, (weights[i] / step).round()));
        let mut parity = 0.0;
        for (i, count) in counts {
            if (count * step - weights[i]).abs() > tolerance {
                return Some(i);
            }
            parity += count;
        }
        // Every round moves one coordinate by one step.
        let fits = (parity % 2.0 == 0.0) == steps.len().is_multiple_of(2);
        return if fits { None } else { last_moved.or(Some(0)) };
    }
    if steps.len() > MOST_ENUMERATED {
        return None;
    }
    let (long, short) = steps.split_at(steps.len() / 2);
    let (long, short) = (signed_sums(long), signed_sums(short));
    moved.into_iter().find(|&i| !has_sum(&long, &short, weights[i], tolerance))
}

/// All sums of some of the steps, each forth or back, in rising order.
fn signed_sums(steps: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for step in steps {
        sums = sums.iter().flat_map(|sum| [sum - step, *sum, sum + step]).collect();
    }
    sums.sort_by(f64::total_cmp);
    sums
}

/// Whether an entry of each sorted list add up to this, nearly.
fn has_sum(rising: &[f64], other: &[f64], wanted: f64, tolerance: f64) -> bool {
    let mut falling = other.iter().rev().peekable();
    for first in rising {
        while let Some(second) = falling.peek() {
            let missed = first + **second - wanted;
            if missed.abs() <= tolerance {
                return true;
            }
            if missed < 0.0 {
                break;
            }
            falling.next();
        }
    }
    false
}

/// Of the candidate that was chosen.
pub(crate) fn of_chosen(
    each: &[crate::recipes::AnyDerivation],
    chosen: Option<u32>,
) -> Option<Result<ReleaseLattice, Error>> {
    let chosen = each.get(usize::try_from(chosen?).ok()?)?;
    chosen.release_lattice()
}

#[cfg(test)]
mod tests;
