//! Bounds on the distance between the outputs of stochastic gradient descent on two neighbouring data sets.
//!
//! One numerical recursion over the schedule gives the sensitivity of every run without noise in its steps. The formulas of the
//! literature are special cases of it ([`closed_form`]). Published formulas that are wrong are in [`as_published`], without a
//! guarantee, for tests of their errors.
//!
//! # Formula
//! Update `t` of `T = passes · u`, `u = ⌈n/b⌉`, is `w_t = Π(w_{t-1} - η_t ∇F_t(w_{t-1}))`, where `F_t` is the mean loss of the
//! batch plus the regulariser, γ-strongly convex and β-smooth, and `Π` the projection onto a convex set. The map of one update
//! changes the distance of two points by a factor of at most `ρ(η) = max(|1 - ηγ|, |1 - ηβ|)` for any `η ≥ 0`: the difference
//! of the gradients is `H (v - w)` with `γI ⪯ H ⪯ βI`. If the batch contains the record in which the data sets differ, the two
//! maps differ by at most `η_t G / b_t`, `G` the largest difference of two records' gradients at a common point. Hence, for
//! the weights `α_t` of the released average,
//! ```text
//! A_t = |α_t| a + ρ(η_{t+1}) A_{t+1}           backwards from A_T = |α_T|, a = 1
//! c_t = η_t G / b_t · A_t                      what a difference in batch t contributes
//! by_position[r] = Σ_{j < passes} c_{j u + r}  a record at position r of every pass
//! Δ = max_r by_position[r]                     one permutation for all passes
//! Δ = Σ_j max_r c_{j u + r}                    a fresh permutation for each pass
//! ```
//! and never more than `2R Σ|α_t|` if the iterates stay in a ball of radius `R`. Quadratic and Huber losses attain it. The
//! order of the records must not depend on their values; it need not be secret.
//!
//! If the run restarts from the average of a stretch that ends at update `e` ([`Averaging::Restarts`]), the next stretch
//! starts at that average and not at `w_e`: for the updates of that stretch `a = ρ(η_{e+1}) A_{e+1}`, and `A_e = |α_e| a`.
//!
//! # References
//! Hardt, Recht, Singer 2016 (expansion of a gradient step), Lemma 3.7; Wu et al. 2017 (Bolt-on), Lemmas 2 to 8. The recursion
//! for any schedule, average and batch size is derived above.

mod classes;
mod closed;
mod recursion;
mod rounding;

pub mod as_published;
pub mod closed_form;

#[cfg(test)]
mod tests;

pub use classes::PositionClasses;
pub use rounding::{Arithmetic, Rounding};

use crate::averaging::{Averaging, AveragingWeights};
use crate::error::{Error, non_negative, positive};
use crate::schedule::{Schedule, StepSizes};

/// The order of the records in the passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum OrderPolicy {
    /// One permutation for all passes.
    #[default]
    Fixed,
    /// A new permutation for each pass.
    Fresh,
}

/// The divisor of a batch's gradient sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Divisor {
    /// The nominal batch size, also for a shorter last batch: no record weighs more than another.
    #[default]
    Nominal,
    /// The number of records in the batch. The records of a short last batch weigh more, and their sensitivity is larger.
    Actual,
}

/// The public parameters that determine the sensitivity of a run.
///
/// # Examples
/// ```
/// use dp_optim::growth::{Divisor, Growth, OrderPolicy};
/// use dp_optim::{Averaging, Schedule};
/// let growth = Growth {
///     n: 100,
///     batch_size: 10,
///     passes: 5,
///     schedule: Schedule::StronglyConvex { smoothness: 1.0, strong_convexity: 0.1 },
///     averaging: Averaging::Last,
///     order: OrderPolicy::Fixed,
///     divisor: Divisor::Nominal,
///     smoothness: 1.0,
///     strong_convexity: 0.1,
///     gradient_difference: 2.0,
///     radius: None,
///     rounding: None,
/// };
/// // G/(γ n), for any batch size and number of passes.
/// assert!((growth.bound()? - 2.0 / (0.1 * 100.0)).abs() < 1e-12);
/// # Ok::<(), dp_optim::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Growth {
    /// Number of records, public.
    pub n: u64,
    /// Records per batch; more than `n` means one batch per pass.
    pub batch_size: u64,
    /// Passes over the data.
    pub passes: u64,
    /// Step sizes.
    pub schedule: Schedule,
    /// The released combination of the iterates.
    pub averaging: Averaging,
    /// One permutation or one per pass.
    pub order: OrderPolicy,
    /// The divisor of a batch's gradient sum.
    pub divisor: Divisor,
    /// β: smoothness of one record's regularised loss.
    pub smoothness: f64,
    /// γ: strong convexity. With the nominal divisor it must come from the regulariser alone.
    pub strong_convexity: f64,
    /// G: largest difference of two neighbouring records' gradients at a common point.
    pub gradient_difference: f64,
    /// R: radius of the ball around the origin onto which every iterate is projected.
    pub radius: Option<f64>,
    /// The floating-point arithmetic to allow for; `None` bounds the run in exact arithmetic.
    pub rounding: Option<Rounding>,
}

/// A certified bound on the L2 distance between the outputs on neighbouring data sets.
#[derive(Debug, Clone, PartialEq)]
pub struct Sensitivity {
    /// The bound for any position of the differing record.
    pub bound: f64,
    /// The bound for each of the `u` batches that may contain the differing record, the same in every pass. Valid under
    /// [`OrderPolicy::Fixed`] only.
    pub by_position: Vec<f64>,
}

/// Returns the maximum factor by which one gradient step of size `step` on a `strong_convexity`-strongly convex,
/// `smoothness`-smooth function can increase the distance of two points, for any step size.
///
/// # Formula
/// ```text
/// ρ(η) = max(|1 - ηγ|, |1 - ηβ|)
/// ```
///
/// # Examples
/// ```
/// use dp_optim::growth::expansion;
/// assert_eq!(expansion(2.0, 1.0, 0.0), 1.0); // convex, at the largest non-expansive step 2/β
/// assert_eq!(expansion(0.5, 1.0, 0.5), 0.75); // a contraction
/// assert_eq!(expansion(2.5, 1.0, 0.0), 1.5); // too long a step expands, but is bounded
/// ```
#[inline]
pub fn expansion(step: f64, smoothness: f64, strong_convexity: f64) -> f64 {
    (1.0 - step * strong_convexity).abs().max((1.0 - step * smoothness).abs())
}

/// A [`Growth`] whose parameters have been checked, with values that are constant over the run.
pub(crate) struct Checked<'a> {
    pub(crate) growth: &'a Growth,
    pub(crate) steps: StepSizes,
    pub(crate) weights: AveragingWeights,
    pub(crate) updates_per_pass: u64,
    pub(crate) updates: u64,
    /// The divisor of a full batch's gradient sum.
    pub(crate) divisor: f64,
    /// The divisor for the last batch of a pass.
    pub(crate) last_divisor: f64,
}

/// Minimum radius: norms are computed from squares, which must not be subnormal.
const SHORTEST_RADIUS: f64 = 1e-100;

/// Maximum number of updates for which the recursion runs, about ten seconds; longer runs only have closed forms. The limit
/// also holds for certificates of unknown origin.
const MOST_UPDATES: u64 = 1 << 31;
/// Maximum number of updates per pass, each of which needs eight bytes: a gigabyte.
const MOST_POSITIONS: u64 = 1 << 27;

impl Growth {
    /// Returns the bound over all positions: certified, with every rounding included.
    ///
    /// Constant and strongly convex schedules without averaging take time proportional to the number of passes, all others to
    /// the number of updates.
    ///
    /// # Errors
    /// Parameters outside their range; too many updates for the recursion; no bound on the iterates although `rounding` needs
    /// one (a radius or strong convexity gives it).
    pub fn bound(&self) -> Result<f64, Error> {
        self.bound_from(0.0)
    }

    /// As [`bound`](Self::bound), for a run that starts at a public point of at most this norm instead of the origin: the
    /// iterates, and so the rounding errors, may be larger.
    ///
    /// # Errors
    /// As [`bound`](Self::bound); [`Error::OutOfRange`] for a norm that is negative or not finite.
    pub fn bound_from(&self, start_norm: f64) -> Result<f64, Error> {
        let checked = self.check()?;
        non_negative("norm of the start", start_norm)?;
        let (distance, sums) = match closed::terms(&checked) {
            Some(terms) => (terms.distance, terms.rounding),
            None => {
                let run = recursion::certified(&checked)?;
                (run.distance, run.rounding)
            }
        };
        Ok(self.cap(distance, &checked) + rounding::term(&checked, &sums, start_norm)?)
    }

    /// Checks the parameters without computing the bound.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        self.check().map(|_| ())
    }

    /// Returns whether nearly all positions are within a hundredth of the worst by the closed form alone, so that hiding a
    /// record's position would gain next to nothing and the recursion need not run.
    pub(crate) fn positions_are_even(&self) -> Result<bool, Error> {
        let checked = self.check()?;
        Ok(closed::terms(&checked).is_some_and(|terms| terms.evenness > 0.99))
    }

    /// Returns whether the recursion has few enough updates and positions to run.
    pub(crate) fn recursion_is_feasible(&self) -> bool {
        let positions = self.updates_per_pass();
        positions <= MOST_POSITIONS && positions.checked_mul(self.passes).is_some_and(|all| all <= MOST_UPDATES)
    }

    /// Returns the maximum number of steps of the bound.
    pub(crate) fn work(&self) -> u64 {
        // Longer runs only have closed forms, which take time proportional to the passes.
        let updates = if self.recursion_is_feasible() { self.updates_per_pass() } else { 1 };
        updates.saturating_mul(self.passes)
    }

    /// Returns the bound and the bound for each position, by the recursion: certified, with every rounding included.
    ///
    /// # Errors
    /// As [`bound`](Self::bound).
    pub fn sensitivity(&self) -> Result<Sensitivity, Error> {
        let checked = self.check()?;
        let run = recursion::certified(&checked)?;
        let rounding = rounding::term(&checked, &run.rounding, 0.0)?;
        Ok(Sensitivity {
            bound: self.cap(run.distance, &checked) + rounding,
            by_position: run.by_position.into_iter().map(|value| self.cap(value, &checked) + rounding).collect(),
        })
    }

    /// Evaluates the recursion in ordinary arithmetic: the value of the formula, for tables and comparisons. It is not rounded
    /// up, and has no allowance for rounding in the run.
    ///
    /// # Errors
    /// As [`bound`](Self::bound), except that no bound on the iterates is needed.
    pub fn formula(&self) -> Result<Sensitivity, Error> {
        let checked = self.check()?;
        let run = recursion::nearest(&checked)?;
        Ok(Sensitivity { bound: self.cap(run.distance, &checked), by_position: run.by_position })
    }

    /// Returns the number of updates per pass, `⌈n/b⌉`.
    pub fn updates_per_pass(&self) -> u64 {
        self.n.div_ceil(self.batch_size.max(1))
    }

    /// Returns the probability that a record at a uniformly random position is in batch `position` (from 0) of a pass.
    pub fn position_weight(&self, position: u64) -> f64 {
        let (n, b) = (self.n, self.batch_size.min(self.n));
        let size = n.saturating_sub(position.saturating_mul(b)).min(b);
        size as f64 / n as f64
    }

    /// Caps the distance at the diameter of the ball.
    fn cap(&self, distance: f64, checked: &Checked<'_>) -> f64 {
        match self.radius {
            Some(radius) => distance.min(2.0 * radius * checked.weights.total() * (1.0 + 4.0 * f64::EPSILON)),
            None => distance,
        }
    }

    fn check(&self) -> Result<Checked<'_>, Error> {
        if self.n == 0 {
            return Err(Error::Count { name: "number of records", value: 0, range: "1 or more" });
        }
        if self.batch_size == 0 {
            return Err(Error::Count { name: "batch size", value: 0, range: "1 or more" });
        }
        if self.passes > 1 << 24 {
            return Err(Error::Count { name: "passes", value: self.passes, range: "at most 2^24" });
        }
        positive("smoothness", self.smoothness)?;
        non_negative("strong convexity", self.strong_convexity)?;
        if !(self.strong_convexity <= self.smoothness) {
            return Err(Error::OutOfRange {
                name: "strong convexity",
                value: self.strong_convexity,
                range: "[0, smoothness]",
            });
        }
        non_negative("gradient difference", self.gradient_difference)?;
        if let Some(radius) = self.radius {
            positive("radius", radius)?;
            if radius < SHORTEST_RADIUS {
                let range = "1e-100 or more: squares of smaller numbers vanish, and with them what is projected";
                return Err(Error::OutOfRange { name: "radius", value: radius, range });
            }
        }
        if let Some(rounding) = &self.rounding {
            rounding.check()?;
        }
        let updates_per_pass = self.updates_per_pass();
        let updates = updates_per_pass.checked_mul(self.passes).filter(|&updates| updates < 1 << 53);
        let Some(updates) = updates else {
            return Err(Error::Count { name: "updates per pass", value: updates_per_pass, range: "below 2^53 in all" });
        };
        let batch_size = self.batch_size.min(self.n);
        let last = self.n - (updates_per_pass - 1) * batch_size;
        let last_divisor = match self.divisor {
            Divisor::Nominal => batch_size,
            Divisor::Actual => last,
        };
        Ok(Checked {
            growth: self,
            steps: self.schedule.prepare(updates)?,
            weights: self.averaging.prepare(updates)?,
            updates_per_pass,
            updates,
            divisor: batch_size as f64,
            last_divisor: last_divisor as f64,
        })
    }
}
