//! Projected noisy stochastic gradient descent (PNSGD): noise on every iterate, of which only the last is released.
//!
//! ```text
//! plan (public parameters -> steps, noise, event)  ->  train (noisy passes over the data)  ->  the last iterate
//! ```
//!
//! The intermediate iterates stay secret, so that the noise of all later ones hides an early record: privacy amplification by
//! iteration. The guarantee is that of the last iterate alone. The average of the iterates, common in optimisation theory, has
//! no such guarantee: `examples/average_iterate.rs` shows a pair of data sets that it distinguishes.
//!
//! # References
//! Feldman, Koren, Talwar, "Private stochastic convex optimization: optimal rates in linear time", STOC 2020, arXiv
//! 2005.04763, Algorithm 1 and Theorem 3.1; Bok, Su, Altschuler 2024, arXiv 2403.00278, for several passes. The noise is
//! calibrated by the exact Gaussian trade-off, with the difference of two records' gradients in place of twice the Lipschitz
//! constant.

pub use super::last_iterate::{DescentRun, Updates, Zcdp, per_batch};

use dp_accountant::Delta;
use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_losses::LossKind;

use crate::derivation::RELEASE;
use crate::error::{Error, positive};
use crate::float::FloatKind;
use crate::lattice::ReleaseLattice;
use crate::recipes::algorithm::Algorithm;
use crate::recipes::last_iterate::{Descent, Inputs};
use crate::recipes::noise_scale::StdDev;
use crate::recipes::problem::{Problem, Setting};
use crate::recipes::recipe::Budget;
use crate::schedule::Schedule;

const RECIPE: &str = "pnsgd";

/// Default of D: the usual norm of a classifier's weights on rows of norm 1.
pub(super) const USUAL_DISTANCE: f64 = 5.0;

/// Maximum number of updates of a pass whose steps or batches differ.
const MOST_LISTED: u64 = 1 << 25;

/// The batch sizes of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
pub enum Batching {
    /// All of this size; the last batch holds the remaining records, and its sum is divided by the same number.
    Equal {
        /// Records per batch, capped at the number of records.
        size: u64,
    },
    /// These sizes in order; records beyond their sum are not used.
    Listed {
        /// Records of each batch.
        sizes: Vec<u64>,
    },
}

/// A PNSGD recipe: public parameters only.
///
/// The noise is determined by the last batch's records, which no later noise hides: on a single pass larger batches towards
/// the end ([`SnowballSgd`](crate::recipes::SnowballSgd)) use a budget better.
///
/// # Examples
/// ```
/// use dp_accountant::ReplaceOne;
/// use dp_losses::LossKind;
/// use dp_optim::recipes::pnsgd::Batching;
/// use dp_optim::recipes::{Budget, Pnsgd, Recipe};
///
/// let recipe = Pnsgd { batching: Batching::Equal { size: 50 }, ..Pnsgd::new(LossKind::Logistic) };
/// let budget = Budget::new(1.0, 1e-6)?;
/// let once = recipe.plan::<ReplaceOne>(10_000, 5, budget)?;
/// // The cost of one noisy mean of 50 gradients, for any number of batches.
/// let mu = 2.0 / 50.0 / once.run().std_dev();
/// assert!((dp_accountant::gaussian::epsilon(mu, budget.delta)? - 1.0).abs() < 1e-4);
///
/// // Nineteen more passes raise the noise by less than 5 percent.
/// let twenty = Pnsgd { passes: 20, ..recipe }.plan::<ReplaceOne>(10_000, 5, budget)?;
/// assert!((twenty.run().std_dev() / once.run().std_dev() - (1.0 + 19.0 / 200.0f64).sqrt()).abs() < 1e-3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Pnsgd {
    /// The loss; smooth.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²`; if positive, the steps contract, and early records cost less.
    pub lambda: f64,
    /// Passes over the data in one order, at least 1.
    pub passes: u64,
    /// The batch sizes of a pass.
    pub batching: Batching,
    /// The step sizes of a pass, the same in every pass, none above `2/β`; `None` is the constant `D/(L√(2T))` for `T`
    /// updates in all, at most `2/β`.
    pub schedule: Option<Schedule>,
    /// D: rough distance of the best parameters from the origin, used for the default step size only.
    pub distance: f64,
    /// R: radius of the ball onto which the iterates and the released model are projected.
    pub radius: Option<f64>,
    /// True if rows are read in the source's order, which the curator declares independent of their values; otherwise the
    /// order is random under a secret key, on which the guarantee does not rely.
    pub declared_order: bool,
    /// The noise mode.
    pub noise_mode: NoiseMode,
    /// Bound on the rows' L2 norm, enforced by the source.
    pub row_norm: f64,
    /// Bound on the targets' absolute value, enforced by the source; at most 1 for binary losses.
    pub target_bound: f64,
}

impl Algorithm for Pnsgd {
    const NAME: &'static str = RECIPE;

    type Calibrated = StdDev;
    type Run = DescentRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: Some(FloatKind::F64) }
    }

    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64) -> Result<(StdDev, DescentRun), Error> {
        let descent = self.descent(problem)?;
        let std_dev = descent.least_noise(budget, copies)?;
        Ok((StdDev { std_dev }, DescentRun::new(descent, std_dev)?))
    }

    fn resolve(&self, problem: &Problem, calibrated: &StdDev) -> Result<DescentRun, Error> {
        DescentRun::new(self.descent(problem)?, calibrated.std_dev)
    }

    fn assumptions(&self, problem: &Problem) -> Vec<Assumption> {
        problem.setting.assumptions_in(self.declared_order)
    }

    fn lattice(&self, problem: &Problem, calibrated: &StdDev) -> Result<ReleaseLattice, Error> {
        self.descent(problem)?.lattice(calibrated.std_dev)
    }

    fn work(&self, problem: &Problem, _: &Self::Calibrated) -> u64 {
        // Each update of a pass may be a separate stage.
        RELEASE.saturating_add(problem.n.saturating_mul(8))
    }
}

impl Pnsgd {
    /// Creates a recipe of one pass in batches of 50, with the default step size.
    pub fn new(loss: LossKind) -> Self {
        Self {
            loss,
            lambda: 0.0,
            passes: 1,
            batching: Batching::Equal { size: 50 },
            schedule: None,
            distance: USUAL_DISTANCE,
            radius: None,
            declared_order: false,
            noise_mode: NoiseMode::Exact,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    pub(super) fn inputs(&self) -> Inputs {
        let Self { lambda, radius, declared_order, .. } = *self;
        Inputs { recipe: RECIPE, lambda, radius, declared_order }
    }

    fn descent(&self, problem: &Problem) -> Result<Descent, Error> {
        let inputs = self.inputs();
        let terms = inputs.terms(problem)?;
        if !(1..1 << 24).contains(&self.passes) {
            return Err(Error::Count { name: "passes", value: self.passes, range: "1 or more, and below 2^24" });
        }
        positive("distance", self.distance)?;
        let (per_pass, largest) = self.batches(problem.n)?;
        let constants = &terms.constants;
        let schedule = match &self.schedule {
            Some(schedule) => schedule.clone(),
            None => {
                let updates = per_pass as f64 * self.passes as f64;
                let step = self.distance / (constants.data_lipschitz * (2.0 * updates).sqrt());
                Schedule::Constant { step: step.min(2.0 / constants.smoothness * (1.0 - f64::EPSILON)) }
            }
        };
        let steps = schedule.prepare(per_pass)?;
        let updates = match (&self.batching, steps.constant()) {
            (Batching::Equal { .. }, Some(step)) => vec![Updates { count: per_pass, batch_size: largest, step }],
            _ if per_pass > MOST_LISTED => {
                return Err(Error::Count { name: "updates per pass", value: per_pass, range: "at most 2^25" });
            }
            (Batching::Equal { .. }, None) => runs((1..=per_pass).map(|t| (largest, steps.at(t)))),
            (Batching::Listed { sizes }, _) => runs((1..).zip(sizes).map(|(t, &size)| (size, steps.at(t)))),
        };
        Descent::new(inputs, terms, problem, self.passes, updates)
    }

    /// Returns the number of batches of a pass, and the size of the largest.
    fn batches(&self, n: u64) -> Result<(u64, u64), Error> {
        match &self.batching {
            Batching::Equal { size: 0 } => Err(Error::Count { name: "batch size", value: 0, range: "1 or more" }),
            Batching::Equal { size } => Ok((n.div_ceil((*size).min(n)), (*size).min(n))),
            Batching::Listed { sizes } => {
                let all = sizes.iter().fold(0u64, |sum, &size| sum.saturating_add(size));
                if sizes.is_empty() || sizes.contains(&0) {
                    return Err(Error::Count {
                        name: "batch size",
                        value: 0,
                        range: "1 or more, in a list of 1 or more",
                    });
                }
                if all > n {
                    return Err(Error::Count {
                        name: "sum of the batch sizes",
                        value: all,
                        range: "at most the number of records",
                    });
                }
                Ok((sizes.len() as u64, sizes.iter().copied().max().unwrap_or(1)))
            }
        }
    }
}

/// Combines consecutive equal updates.
pub(super) fn runs(updates: impl Iterator<Item = (u64, f64)>) -> Vec<Updates> {
    let mut runs: Vec<Updates> = Vec::new();
    for (batch_size, step) in updates {
        match runs.last_mut() {
            Some(last) if last.batch_size == batch_size && last.step == step => last.count += 1,
            _ => runs.push(Updates { count: 1, batch_size, step }),
        }
    }
    runs
}

/// Returns the epsilon of an `(α, αρ²/2)`-Renyi guarantee at this delta, by the paper's conversion.
///
/// The plans do not use it: the exact trade-off gives a smaller epsilon for the same noise.
///
/// # Formula
/// ```text
/// ε = ρ²/2 + ρ √(2 ln(1/δ))
/// ```
///
/// # Errors
/// `rho` negative or not finite, delta = 0.
///
/// # Examples
/// ```
/// use dp_accountant::Delta;
/// use dp_optim::recipes::pnsgd::{epsilon_of_rho, epsilon_of_rho_simple};
/// let delta = Delta::new(1e-5)?;
/// assert!((epsilon_of_rho(1.0, delta)? - 5.298525912188).abs() < 1e-11);
/// assert!((epsilon_of_rho_simple(1.0, delta)?.unwrap() - 6.786140424415).abs() < 1e-11);
/// // The paper's ρ is the μ of Gaussian differential privacy, which converts exactly.
/// assert!(dp_accountant::gaussian::epsilon(1.0, delta)? < 4.38);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # References
/// Feldman, Koren, Talwar 2020, Lemma 2.2 (Mironov 2017, Proposition 3, at the best order).
pub fn epsilon_of_rho(rho: f64, delta: Delta) -> Result<f64, Error> {
    let log = log_of_inverse(rho, delta)?;
    Ok(rho * rho / 2.0 + rho * (2.0 * log).sqrt())
}

/// Returns the paper's simple form `2ρ√ln(1/δ)` for `ρ <= (4 - 2√2)√ln(1/δ)`; otherwise `None`, since it is too small there.
///
/// # Errors
/// As [`epsilon_of_rho`].
pub fn epsilon_of_rho_simple(rho: f64, delta: Delta) -> Result<Option<f64>, Error> {
    let root = log_of_inverse(rho, delta)?.sqrt();
    Ok((rho <= (4.0 - 8f64.sqrt()) * root).then_some(2.0 * rho * root))
}

fn log_of_inverse(rho: f64, delta: Delta) -> Result<f64, Error> {
    crate::error::non_negative("rho", rho)?;
    positive("delta", delta.get())?;
    Ok(-delta.get().ln())
}
