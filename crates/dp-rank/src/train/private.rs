//! Private training of a ranker: PrivBR and its kin, with noise that does not depend on who was drawn.
//!
//! # Formula
//! With `m` lists, of which each takes part in an update by itself with probability `q = 1 - e^(-b/m)`, and `z` the
//! loss's public centre, or 0, and weights `w_j` that are 1 unless said otherwise:
//! ```text
//! h_j = Σ_i (g_i - z_i) φ_i          the gradient of list j, or what its grades make of it
//! S   = Σ_(j drawn) clip_C(w_j h_j)  θ ← θ - η_t (S + N(0, σ² I) + q Σ_(all j) Σ_i z_i φ_i) / (q m)
//! ```
//!
//! # Privacy
//! **The relation** is that of what is [protected](super::protect): the grades of one list, unless something else is asked
//! for, a whole list, or one document. It says nothing of a user with several lists.
//!
//! **A step.** What list `j` adds to `S` is a function of this list and the iterate alone, and has norm at most `C` whatever
//! the list is. The noise is the same for all batches, and who is drawn does not depend on what the lists hold.
//! - Grades of a list, a whole list, or a document of it *replaced*: two versions of a list are at most `2C` apart and either
//!   is within `C` of a list that was not drawn. So a step is
//!   [`PoissonSampledReplacement`](dp_accountant::DpEvent::PoissonSampledReplacement) with distance `2C` and radius `C`,
//!   whose curve is exact (there is its proof). What is replaced plays no role in it.
//! - A list *present or empty*: an empty list adds nothing, so that `S` moves by at most `C`. A step is
//!   [`PoissonSampled`](dp_accountant::DpEvent::PoissonSampled), the Gaussian mechanism of sensitivity `C` on a Poisson sample.
//!
//! Steps compose, each with the iterate of those before. What is divided by, steps and normalisation are computed from what
//! is public or released. The public part is public only where features are: it is refused in all modes but the grades'.
//!
//! **Weights from what is public.** Where grades are protected, a list's gradients may have the weight `w_j = min(1, dC/Δ_j,
//! C/r_j)` of [`Scaling::Public`] instead, with bounds `Δ_j` and `r_j` of the distance of any two of them and of the longest,
//! which follow from features and the iterate alone. The weight is the same for all grades, so that two versions are at most
//! `dC` apart, either is within `C` of a list that was not drawn (what clipping is left in place then only guards), and the
//! event has these two numbers. Without thinning `‖h_j‖ <= Δ_j/2`: at `d = 2` weights need the noise of clipping, which
//! shortens no gradient by more. They leave gradients unbent, those of a reweighted objective.
//!
//! **Thinning.** A list whose best documents are several shows one of them, by coins of its own that nobody sees. What it adds
//! is then a mixture over versions of it, of all of which the distances above hold: its mixture is no easier to tell from its
//! neighbour's, whatever pairs of both coins are put together (joint convexity). Under clipping that is all, and thinning buys
//! nothing but a simpler target; with public weights `Δ_j` is the diameter of `{0, v_1 .. v_n}`, far below `2 max ‖v_i‖`.
//!
//! **What the source of the method has instead**: noise whose scale is the largest sensitivity *in the batch*. That tells
//! who was drawn, and amplification by sampling is gone: the true epsilon is 2.6 to 13 where 0.76 to 2.4 is claimed
//! (tests of `dp_accountant::sampled_replacement`). Its sign would also climb the loss.
//!
//! **Losses with a large public part** (ListNet, ListMLE). Without clipping they would be far from a list that was not
//! drawn, whatever their grades are, and sampling would hide nothing. Clipped to `C` they are within `C` of it.
//!
//! # References
//! Dissertation on Renyi-DP optimisers and private ranking, chapter 6, Algorithm 6.1 (PrivBR), corrected as said; it
//! protects grades, the other modes are added here.

pub(crate) mod contribution;
mod derivation;
mod run;
mod scaling;

pub use derivation::RankingDerivation;
pub use run::{RankingPlan, TrainedRanker};
pub use scaling::Scaling;

use dp_accountant::certificate::{Derivation as _, EpsilonDelta, NoiseMode};
use dp_accountant::{DpEvent, Epsilon, bound, calibrate};
use dp_optim::recipes::Budget;

use super::descent::Descent;
use super::error::TrainError;
use super::protect::{Grades, Protect};
use crate::loss::ListLoss;

/// A private training of a ranker, before anything is calibrated.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon};
/// use dp_optim::recipes::Budget;
/// use dp_rank::loss::BayesRank;
/// use dp_rank::train::PrivateRanking;
///
/// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::new(1e-4)? };
/// let recipe = PrivateRanking { batch_size: 10, ..PrivateRanking::new(BayesRank::TOP_1) };
/// let plan = recipe.plan(628, 46, budget)?;
/// // The noise over the distance of two vectors of grades: 2C.
/// assert!((1.0..1.05).contains(&plan.noise_multiplier()), "{}", plan.noise_multiplier());
/// assert!(plan.reached().epsilon <= 1.0);
/// // Whole lists at the same price.
/// use dp_rank::train::WholeList;
/// let whole = recipe.protecting(WholeList).plan(628, 46, budget)?;
/// assert_eq!(whole.noise_multiplier(), plan.noise_multiplier());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrivateRanking<L, P = Grades> {
    /// The loss of a list.
    pub loss: L,
    /// b: lists in a batch, on average.
    pub batch_size: u64,
    /// C: what is private about a list's gradient is scaled to this norm at most.
    pub clipping: f64,
    /// Whether the loss's public centre is taken out of what is clipped, and added for all lists. Of a loss that has one it
    /// leaves more room below the clipping norm to what is private; but it is then the only part that is not shortened,
    /// pulls the harder, and ranked worse on MQ2008, the only lists on which the two were compared. Not where features are
    /// protected.
    pub centred: bool,
    /// The steps.
    pub descent: Descent,
    /// How the noise is drawn.
    pub noise_mode: NoiseMode,
    /// How what a list adds is kept short.
    pub scaling: Scaling,
    /// Whether, whenever a list is drawn, one document of its largest grade keeps the grade, by lot, and all others get 0.
    pub thin: bool,
    /// What is protected: the grades of one list, unless [changed](Self::protecting).
    pub protects: P,
}

impl<L: ListLoss> PrivateRanking<L> {
    /// What serves at epsilon 1, the numbers chosen by grids on made-up lists ([`synthetic`](crate::synthetic)): batches of
    /// forty, clipped at 0.1, and 400 falling steps from the loss's [usual one](ListLoss::usual_step) on. For another epsilon
    /// see [`for_epsilon`](Self::for_epsilon).
    pub fn new(loss: L) -> Self {
        let descent = Descent { step: loss.usual_step(), ..Descent::default() };
        Self {
            loss,
            batch_size: 40,
            clipping: 0.1,
            centred: false,
            descent,
            noise_mode: NoiseMode::Exact,
            scaling: Scaling::Clip,
            thin: false,
            protects: Grades,
        }
    }

    /// The same with steps that serve at this epsilon: in proportion to it up to 4, since the noise goes as one over it, so
    /// that chance moves the weights about as far at any.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::Epsilon;
    /// use dp_rank::loss::{BayesRank, ListNet};
    /// use dp_rank::train::PrivateRanking;
    ///
    /// let strict = Epsilon::new(0.5)?;
    /// assert_eq!(PrivateRanking::for_epsilon(BayesRank::TOP_1, strict).descent.step, 0.5);
    /// assert_eq!(PrivateRanking::for_epsilon(ListNet::TOP_1, strict).descent.step, 0.1);
    /// # Ok::<(), dp_accountant::Error>(())
    /// ```
    pub fn for_epsilon(loss: L, epsilon: Epsilon) -> Self {
        let usual = Self::new(loss);
        let step = usual.descent.step * epsilon.get().min(LOOSEST);
        Self { descent: Descent { step, ..usual.descent }, ..usual }
    }
}

/// Steps do not grow beyond those of this epsilon: noise is no longer what limits them.
const LOOSEST: f64 = 4.0;

impl<L: ListLoss, P: Protect> PrivateRanking<L, P> {
    /// The same training, to protect something else.
    pub fn protecting<Q: Protect>(self, protects: Q) -> PrivateRanking<L, Q> {
        let Self { loss, batch_size, clipping, centred, descent, noise_mode, scaling, thin, .. } = self;
        PrivateRanking { loss, batch_size, clipping, centred, descent, noise_mode, scaling, thin, protects }
    }

    /// Calibrates the noise for `lists` lists and as many parameters, before any grade is read.
    ///
    /// # Errors
    /// Numbers outside their range, a public part or weight of lists whose features are protected, weights for a loss of which
    /// too little is known, and a budget that no noise reaches, delta = 0 among them.
    pub fn plan(self, lists: u64, parameters: u64, budget: Budget) -> Result<RankingPlan<L, P>, TrainError> {
        self.descent.check()?;
        if self.centred && !P::PROTECTED.has_public_features() {
            return Err(TrainError::Protected { what: "a public part of gradients" });
        }
        let at = |std_dev: f64| RankingDerivation {
            lists,
            parameters,
            batch_size: self.batch_size,
            updates: self.descent.updates,
            clipping: self.clipping,
            std_dev,
            exact_noise: self.noise_mode == NoiseMode::Exact,
            protects: P::PROTECTED,
            scaling: self.scaling,
        };
        if self.scaling != Scaling::Clip && !self.loss.has_known_image() {
            return Err(TrainError::UnknownImage);
        }
        at(1.0).event()?;
        if !matches!(self.noise_mode, NoiseMode::Exact | NoiseMode::Rounded) {
            return Err(TrainError::NoNoise);
        }
        let event_at = |std_dev: f64| at(std_dev).event().unwrap_or(DpEvent::NonPrivate);
        let std_dev = calibrate::least_scale(budget.epsilon, budget.delta, event_at)?;
        let derivation = at(std_dev);
        let reached = bound::epsilon(&derivation.event()?, budget.delta)?.value;
        Ok(RankingPlan {
            recipe: self,
            derivation,
            requested: EpsilonDelta { epsilon: budget.epsilon.get(), delta: budget.delta.get() },
            reached: EpsilonDelta { epsilon: reached, delta: budget.delta.get() },
        })
    }
}
