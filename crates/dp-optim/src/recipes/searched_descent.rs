//! Gradient descent with private step lengths: DP-BLGD and DP-BLSGD, with a noisy backtracking line search, and DP-AGD, with a
//! noisy choice of the best step. The budget is spent as the run needs it.
//!
//! ```text
//! repeat while the filter admits it:
//!     g <- (Σ_i clip_C ∇ℓ_i(w) + N(0, σ² I)) / n                                          rho_g
//!     repeat:
//!         choose η among the steps η_1 > η_2 > ... or none, by noisy sums of losses       rho_s
//!         if one was chosen:   w <- w - η (g + λw), next gradient
//!         else:                measure g again, average by precision; where the two disagree more than usual, raise
//!                              rho_g, where they agree raise rho_s
//! ```
//! The budget is adaptive: which releases are made, and with which noise, depends on earlier results. A
//! [`ZcdpFilter`](dp_accountant::filter::ZcdpFilter) with a budget fixed in advance decides before each release; a refusal
//! ends the run with the last `w`. The event is the filter's budget, whatever was spent.
//!
//! # Batches
//! DP-BLSGD draws a *fresh* Poisson batch for each gradient and for each search: a batch used for a gradient is no longer
//! secret, and a search on it would not be amplified. The size of a batch is secret; sums are divided by its mean. The cost of
//! sampled releases is not proportional to the order, so the filter is an [`RdpFilter`](dp_accountant::filter::RdpFilter) at
//! *one* order, the best one for a run in which no search fails, fixed before any record is read. If the clipping norms shrink
//! by a share ζ when two gradients disagree, at most once per step, it is DP-BLSGD-AC; gradients with different clipping norms
//! are averaged with weights from their noise.
//!
//! For models of any kind, such as networks, [`StepSearch`](super::StepSearch) is another DP-BLSGD: a fixed number of steps, each with
//! its search on the batch of its gradient; both are composed before sampling amplifies them.
//!
//! # The line search
//! A record's loss is clamped to `[0, C_o]`. With `d` the direction and `η_i` the steps,
//! ```text
//! q_i = Σ_j [ clamp(ℓ_j(w)) - clamp(ℓ_j(w - η_i d)) ] + n (λ/2) (‖w‖² - ‖w - η_i d‖²) - a η_i n ‖d‖²
//! ```
//! of which only the first sum depends on records. Removing one record changes the `q_i` by `-(u - v_i)` with `u` and all
//! `v_i` in `[0, C_o]`: all changes lie in *one* interval of length `C_o` that contains 0. For a replaced record the interval
//! has length `2 C_o`. So
//! * [`Backtracking`](Search::Backtracking) (NoisyBTLS) takes the first `q_i + ν_i >= threshold noise`. The sparse vector
//!   technique with queries in one interval costs `ε₁ + ε₂` with noise of scale `C_o/ε₁` on the threshold and `C_o/ε₂` on the
//!   queries: half of the noise for arbitrary queries ([`range_bounded`](dp_mechanisms::AboveThreshold::range_bounded)).
//! * [`Selection`](Search::Selection) takes `i` with probability proportional to `exp(e q_i / C_o)`, `q_0 = 0` for no step.
//!   The range of its privacy loss is at most `e`, which costs `e²/8` of zCDP: a quarter of the cost of pure `e`-DP. In terms
//!   of the [mechanism](dp_mechanisms::Exponential): up to a common shift, which does not change the choice, a record moves
//!   the scores by `C_o/2`.
//! * [`NoisyMin`](Search::NoisyMin) (DP-AGD) takes the step with the least clamped loss, no step included, by
//!   permute-and-flip: the *largest* of minus the losses *plus* exponential noise. With the noise's sign reversed, as in the
//!   published code, it is not private. Replacing a record by a null one lowers all losses or raises all of them, so the
//!   [promise](dp_mechanisms::PermuteAndFlip::monotonic) is kept under zero-out.
//!
//! Sums are computed on a grid, so that they are exact; the public part of `q_i` is rounded to the same grid.
//!
//! # References
//! Chen 2020 (dissertation, University of Georgia), chapter 5: Algorithms 5.1 to 5.3, corrected:
//! the interval above, losses and gradients on one scale, public divisors, a fresh batch for each access, a filter.
//! Lee, Kifer, "Concentrated differentially private gradient descent with adaptive per-iteration privacy budget", KDD
//! 2018 (DP-AGD). Whitehouse, Ramdas, Rogers, Wu, "Fully-adaptive composition in differential privacy", 2023 (the
//! filter).

mod budget;
mod records;
mod run;
mod training;

#[cfg(test)]
mod tests;

pub use budget::{FilterBudget, SearchBudget};
pub use run::SearchRun;
#[cfg(feature = "audit")]
pub use training::Observation;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{AdjacencyKind, DpEvent};
use dp_losses::{LossKind, ScalarLoss};
use run::Start;

use crate::engine::BatchLaw;
use crate::error::{Error, non_negative, positive};
use crate::line_search::Search;
use crate::recipes::algorithm::Algorithm;
use crate::recipes::problem::{Problem, Setting};
use crate::recipes::recipe::Budget;

const RECIPE: &str = "searched-descent";
const MOST_CANDIDATES: u64 = 1 << 16;

/// The recipe of descent with a private line search: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::ZeroOut;
/// use dp_losses::LossKind;
/// use dp_optim::recipes::searched_descent::FilterBudget;
/// use dp_optim::recipes::{Budget, Planned, Recipe, SearchedDescent};
///
/// let budget = Budget::new(1.0, 1e-6)?;
/// let plan = SearchedDescent::dp_blgd(LossKind::Logistic).plan::<ZeroOut>(10_000, 5, budget)?;
/// // The most zCDP that gives (1, 1e-6): no run spends more, for any records.
/// assert!(matches!(plan.run().budget(), FilterBudget::Zcdp { rho } if (rho - 0.0243).abs() < 1e-4));
/// assert!(plan.reached().epsilon <= 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct SearchedDescent {
    /// The loss, of one prediction; it need be neither smooth nor convex.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²`, which is public and carries no noise.
    pub lambda: f64,
    /// The choice of a step's length.
    pub search: Search,
    /// η₁: the longest step; for [`Search::NoisyMin`] along the normalised gradient.
    pub step: f64,
    /// β: ratio of each candidate's length to the previous one.
    pub shrink: f64,
    /// K: number of candidates.
    pub candidates: u64,
    /// a: fraction of the decrease predicted by the gradient that a step must reach.
    pub armijo: f64,
    /// T: number of gradients and of searches for which the budget suffices if no search fails, half of it for each.
    pub steps: u64,
    /// Records in a Poisson batch, on average; a fresh one for each gradient and each search. `None` uses all records.
    pub batch_size: Option<u64>,
    /// C: clipping norm of each record's gradient.
    pub clipping: f64,
    /// C_o: upper bound to which each record's loss is clamped.
    pub most_loss: f64,
    /// ζ: relative decrease of both bounds when two gradients at one point disagree, at most once per step.
    pub clip_decay: f64,
    /// The noise mode of the gradient; searches always use exact noise.
    pub noise_mode: NoiseMode,
    /// Bound on the rows' L2 norm, enforced by the source.
    pub row_norm: f64,
    /// Bound on the targets' absolute value, enforced by the source; at most 1 for binary losses.
    pub target_bound: f64,
}

impl Algorithm for SearchedDescent {
    const NAME: &'static str = RECIPE;

    type Calibrated = SearchBudget;
    type Run = SearchRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: None }
    }

    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64) -> Result<(SearchBudget, SearchRun), Error> {
        self.check(problem)?;
        if !(budget.delta.get() > 0.0) {
            return Err(Error::NotProved { recipe: RECIPE, why: "Gaussian noise needs delta > 0" });
        }
        let (most, share) = FilterBudget::most(self, problem.n, budget, copies)?;
        let start = Start { share, delta: budget.delta };
        Ok((SearchBudget { budget: most }, SearchRun::new(self, problem, most, Some(start))?))
    }

    fn resolve(&self, problem: &Problem, &SearchBudget { budget }: &SearchBudget) -> Result<SearchRun, Error> {
        SearchRun::new(self, problem, budget, None)
    }
}

impl SearchedDescent {
    /// Creates DP-BLGD: twenty candidates from 8 on, each 0.8 of the previous one. Losses are clamped at 3: with a clamp at 1,
    /// a misclassified record of a rare class would count no more than chance, and the descent would end with all records
    /// predicted as the frequent class, more often with less noise.
    pub fn dp_blgd(loss: LossKind) -> Self {
        Self {
            loss,
            lambda: 0.0,
            search: Search::Backtracking,
            step: 8.0,
            shrink: 0.8,
            candidates: 20,
            armijo: 0.5,
            steps: 20,
            batch_size: None,
            clipping: 1.0,
            most_loss: 3.0,
            clip_decay: 0.0,
            noise_mode: NoiseMode::Exact,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    /// Creates DP-BLSGD: as DP-BLGD, in Poisson batches of this mean size.
    pub fn dp_blsgd(loss: LossKind, batch_size: u64) -> Self {
        Self { batch_size: Some(batch_size), steps: 100, ..Self::dp_blgd(loss) }
    }

    /// Creates DP-BLSGD-AC: with clipping norms that shrink by a twentieth when gradients disagree.
    pub fn dp_blsgd_ac(loss: LossKind, batch_size: u64) -> Self {
        Self { clip_decay: 0.05, ..Self::dp_blsgd(loss, batch_size) }
    }

    /// Creates DP-AGD: twenty candidates up to 2, and no step.
    pub fn dp_agd(loss: LossKind) -> Self {
        Self { search: Search::NoisyMin, step: 2.0, ..Self::dp_blgd(loss) }
    }

    /// Returns the lengths of the candidates. For [`Search::NoisyMin`] none is longer than `step`, which may have shrunk.
    fn candidates(&self, step: f64) -> Vec<f64> {
        match self.search {
            Search::NoisyMin => (1..=self.candidates).map(|k| step * (k as f64 / self.candidates as f64)).collect(),
            _ => {
                let shrunk = core::iter::successors(Some(step), |step| Some(step * self.shrink));
                shrunk.take(usize::try_from(self.candidates).unwrap_or(usize::MAX)).collect()
            }
        }
    }

    /// Returns the law of the batches; `None` for all records.
    fn law(&self, n: u64) -> Option<BatchLaw> {
        self.batch_size.map(|batch_size| BatchLaw::Poisson { mean_darts: batch_size.min(n) })
    }

    /// Returns the event of a release on all records, or on a fresh batch.
    fn sampled(&self, n: u64, event: DpEvent) -> Result<DpEvent, Error> {
        Ok(match self.law(n) {
            None => event,
            Some(law) => DpEvent::PoissonSampled { sampling_rate: law.sampling_rate(n)?.get(), event: Box::new(event) },
        })
    }

    fn check(&self, &Problem { n, dim, relation, .. }: &Problem) -> Result<ScalarLoss, Error> {
        for (name, value) in [("number of records", n), ("dimension", dim), ("steps", self.steps)] {
            if !(1..1 << 32).contains(&value) {
                return Err(Error::Count { name, value, range: "1 or more, below 2^32" });
            }
        }
        if !(1..=MOST_CANDIDATES).contains(&self.candidates) {
            return Err(Error::Count { name: "candidates", value: self.candidates, range: "1 to 2^16" });
        }
        if !(non_negative("lambda", self.lambda)? <= 1e6) {
            return Err(Error::OutOfRange { name: "lambda", value: self.lambda, range: "[0, 1e6]" });
        }
        for (name, value) in [
            ("step size", self.step),
            ("clipping norm", self.clipping),
            ("largest loss", self.most_loss),
            ("row norm", self.row_norm),
            ("target bound", self.target_bound),
        ] {
            if !(1e-100..=1e6).contains(&positive(name, value)?) {
                return Err(Error::OutOfRange { name, value, range: "[1e-100, 1e6]" });
            }
        }
        for (name, value) in [("shrink", self.shrink), ("armijo", self.armijo)] {
            if !(value > 0.0 && value < 1.0) {
                return Err(Error::OutOfRange { name, value, range: "(0, 1)" });
            }
        }
        if !(0.0..1.0).contains(&self.clip_decay) {
            return Err(Error::OutOfRange { name: "clip decay", value: self.clip_decay, range: "[0, 1)" });
        }
        let not_proved = |why| Err(Error::NotProved { recipe: RECIPE, why });
        if let Some(law) = self.law(n) {
            law.sampling_rate(n)?;
            if relation == AdjacencyKind::ReplaceOne {
                return not_proved("random batches are proved for add-remove here; under replace-one take all records");
            }
        }
        match self.loss.scalar() {
            Some(loss) => Ok(loss),
            None => not_proved("it takes losses of one prediction: for several classes, one model for each"),
        }
    }
}
