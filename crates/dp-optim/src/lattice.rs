//! The set of weights that an honest release can have, from public parameters alone.
//!
//! Noise is added on a grid whose step is a function of its scale ([`dp_mechanisms::grid`]), and projected weights lie in the
//! ball. So the weights of a model show whether its recipe can have released them, and weights without its noise are almost
//! surely detected: a double of order 1 is a multiple of a step `2^-k` with probability at most `2^(k - 52)`, for each weight.
//!
//! # Which check applies
//! | release | check | recipes |
//! |---|---|---|
//! | noise added last, no further computation | multiples of the step | bolt-on, RSGD-AR, NSGD, output perturbation, objective perturbation (also as AMP), PNSGD, Snowball-SGD; perturbed ADMM whose smooth copy is released |
//! | the same, then a projection | multiples of the step within the radius, or norm equal to the radius | bolt-on and its variants, PNSGD and Snowball-SGD with a radius; phased SGD and phased ERM |
//! | iterates after noise in every step, or their mean | norm at most the radius, if there is one | DP-SGD, DP-GD, DP-Adam, DP-FTRL, DP-SVRG, BST14, SCS13; stochastic ADMM whose smooth copy is released |
//! | the intercept alone | zeros, but for the last weight | majority |
//! | chosen steps | at most as many non-zero weights as rounds, within the sum of all steps; for equal steps, or up to 24 rounds, sums of them | PrivGene |
//! | another function of noisy sums | nothing | noisy moments, DP-Newton, searched descents, consensus ADMM, sparse copies of ADMM |
//!
//! If the recipe states single precision, every weight must also be a single. The models of several classes are checked
//! separately; the threshold of a model that decides at the base rate can be any number. For a chosen candidate its own check applies; zero repetitions release zeros.
//!
//! # Limits
//! The check cannot detect weights that were rounded to the grid, and weights so much larger than the noise that doubles of
//! their size are coarser than the step.

use crate::derivation::DerivesModel;
use crate::error::Error;
use crate::float::FloatKind;

/// Maximum number of steps of distinct lengths for which all sums are enumerated.
const MOST_ENUMERATED: usize = 24;

/// The set of weights that an honest release can have.
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
    /// Number of stacked models, each checked separately.
    models: u64,
    points: Points,
    /// Radius of the ball onto which the release, or each iterate, was projected.
    radius: Option<f64>,
    /// The precision, if the recipe states it.
    float: FloatKind,
    /// True if a last weight, which can be any number, is released apart.
    free_last: bool,
}

/// The set of one model's weights, before a projection.
#[derive(Debug, Clone, PartialEq)]
enum Points {
    /// All points.
    Anywhere,
    /// The origin.
    Origin,
    /// Multiples of a power of two.
    Grid { step: f64 },
    /// Points on the last coordinate's axis.
    LastAxis,
    /// Sums of steps along the axes, each taken once, in either direction.
    Steps { steps: Vec<f64> },
}

/// The reason why weights cannot be a recipe's release.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OffLattice {
    /// A weight is between the points of the noise's grid.
    #[error("weight {index} is {weight:?}, no multiple of the step {step:?} on which the recipe's noise is released")]
    BetweenGridPoints {
        /// Position of the weight, from 0.
        index: usize,
        /// The weight.
        weight: f64,
        /// The step.
        step: f64,
    },
    /// The norm of the weights exceeds the radius of the ball onto which they were projected.
    #[error("the weights have norm {norm:?}, and the recipe projects onto a ball of radius {radius:?}")]
    OutsideBall {
        /// Norm of the weights.
        norm: f64,
        /// The radius.
        radius: f64,
    },
    /// A weight needs more digits than the recipe's arithmetic has.
    #[error("weight {index} is {weight:?}, which the single precision of the recipe cannot represent")]
    NotSingle {
        /// Position of the weight, from 0.
        index: usize,
        /// The weight.
        weight: f64,
    },
    /// A weight that the recipe cannot produce.
    #[error("weight {index} is {weight:?}, which no possible draw of the recipe gives")]
    OutOfReach {
        /// Position of the weight, from 0.
        index: usize,
        /// The weight.
        weight: f64,
    },
    /// The number of weights is not a multiple of the number of models.
    #[error("{weights} weights are not {models} models of equal length")]
    Models {
        /// Number of weights.
        weights: usize,
        /// Number of models.
        models: u64,
    },
}

impl ReleaseLattice {
    /// All weights: the set for a general function of noisy sums.
    pub(crate) const ANYWHERE: Self = Self::of(Points::Anywhere);
    /// The intercept alone, for constant predictions.
    pub(crate) const CONSTANT: Self = Self::of(Points::LastAxis);
    /// The model of zeros.
    pub(crate) const ORIGIN: Self = Self::of(Points::Origin);

    const fn of(points: Points) -> Self {
        Self { models: 1, points, radius: None, float: FloatKind::F64, free_last: false }
    }

    /// Multiples of the step of the grid on which noise was added last.
    pub(crate) const fn on_grid(step: f64) -> Self {
        Self::of(Points::Grid { step })
    }

    /// Steps of these lengths along the axes.
    pub(crate) const fn steps(steps: Vec<f64>) -> Self {
        Self::of(Points::Steps { steps })
    }

    /// Restricts the set by a final projection onto a ball.
    pub(crate) fn within(self, radius: Option<f64>) -> Self {
        Self { radius, ..self }
    }

    /// Sets the precision of the recipe.
    pub(crate) fn in_precision(self, float: FloatKind) -> Self {
        Self { float, ..self }
    }

    /// Sets the number of stacked models.
    pub(crate) fn stacked(self, models: u64) -> Self {
        Self { models, ..self }
    }

    /// Adds a last weight, which can be any number.
    pub(crate) fn with_free_last(self) -> Self {
        Self { free_last: true, ..self }
    }

    /// Returns the step of which every weight is a multiple, unless a projection moved it.
    pub fn step(&self) -> Option<f64> {
        match self.points {
            // Singles are multiples of the smallest subnormal single.
            Points::Grid { step } if self.float == FloatKind::F32 => Some(step.max(f64::from(f32::from_bits(1)))),
            Points::Grid { step } => Some(step),
            _ => None,
        }
    }

    /// Returns the maximum norm of a model, up to rounding.
    pub fn radius(&self) -> Option<f64> {
        self.radius
    }

    /// Returns whether there is anything to check.
    pub fn is_checked(&self) -> bool {
        self.points != Points::Anywhere || self.radius.is_some() || self.float == FloatKind::F32
    }

    /// Checks whether these weights, of all models, can be an honest release.
    ///
    /// # Errors
    /// The first reason why they cannot.
    pub fn check(&self, weights: &[f64]) -> Result<(), OffLattice> {
        if !self.free_last {
            return self.check_models(weights);
        }
        match weights.split_last() {
            Some((_, others)) => self.check_models(others),
            None => Err(OffLattice::Models { weights: 0, models: self.models }),
        }
    }

    fn check_models(&self, weights: &[f64]) -> Result<(), OffLattice> {
        let models =
            usize::try_from(self.models).ok().filter(|models| *models > 0 && weights.len().is_multiple_of(*models));
        let Some(models) = models else {
            return Err(OffLattice::Models { weights: weights.len(), models: self.models });
        };
        let each = (weights.len() / models).max(1);
        (0..).step_by(each).zip(weights.chunks(each)).try_for_each(|(first, model)| self.check_model(first, model))
    }

    /// Checks the weights of one model, the first of which has this position among all.
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
        // Longer weights have been scaled to the radius, and lie between the points of the grid.
        if norm >= radius * (1.0 - self.slack(weights.len())) { Ok(()) } else { on_points }
    }

    /// Returns a relative bound on the rounding of a projected norm: of the norm itself, and of a mean of many points.
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
                // The remainder of a division by a power of two is exact.
                match indexed.find(|(_, weight)| weight % step != 0.0) {
                    Some((index, weight)) => Err(OffLattice::BetweenGridPoints { index, weight, step }),
                    None => Ok(()),
                }
            }
            Points::LastAxis => {
                let last = first + weights.len().saturating_sub(1);
                out_of_reach(indexed.find(|&(index, weight)| index != last && weight != 0.0))
            }
            Points::Steps { steps } => {
                out_of_reach(unreachable_weight(steps, weights).map(|i| (first + i, weights[i])))
            }
        }
    }
}

/// Returns the position of a weight that steps of these lengths, each along one axis in either direction, cannot give.
fn unreachable_weight(steps: &[f64], weights: &[f64]) -> Option<usize> {
    let way: f64 = steps.iter().sum();
    // Each addition rounds; converting to singles rounds once more.
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

/// Returns all sums of subsets of the steps, each in either direction, in increasing order.
fn signed_sums(steps: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for step in steps {
        sums = sums.iter().flat_map(|sum| [sum - step, *sum, sum + step]).collect();
    }
    sums.sort_by(f64::total_cmp);
    sums
}

/// Returns whether two entries, one of each sorted list, add up to `wanted` within the tolerance.
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

/// Returns the lattice of the chosen candidate.
pub(crate) fn of_chosen<D: DerivesModel>(each: &[D], chosen: Option<u32>) -> Option<Result<ReleaseLattice, Error>> {
    Some(each.get(usize::try_from(chosen?).ok()?)?.release_lattice())
}

#[cfg(test)]
mod tests;
