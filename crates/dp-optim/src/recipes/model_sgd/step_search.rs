//! A private line search for the steps of a model's training.
//!
//! ```text
//! g   <- (Σ_{i in B} clip_C ∇ℓ_i(w) + N(0, σ² I)) / b                    b the mean number of samples of a batch
//! w_j <- the point after a step of size η_j along g,    η_j = η β^(j-1),  j = 1..=K
//! r_j <- a b ‖w - w_j‖²/η_j + b (λ/2) (‖w_j‖² - ‖w‖²)                    the required decrease, which is public
//! w   <- one of w_1, ..., w_K, by noisy sums Σ_{i in B} min(ℓ_i(w_j), C_o) + r_j over the same batch
//! ```
//! After every ten steps, η becomes at most 1.2 times the longest of them.
//!
//! # Privacy
//! Gradient and search are one release from one batch: their costs are composed first, and amplified by sampling once. A search of
//! its own on the same batch would not be amplified, since the batch is no longer secret after the gradient. With `v_j` a sample's
//! clamped loss over `C_o`, all `v_j` lie in `[0, 1]`: the interval of [`SearchedDescent`](super::super::SearchedDescent).
//!
//! * [`Search::Backtracking`] takes the first `w_j` with `Σ_i [min(ℓ_i(w), C_o) - min(ℓ_i(w_j), C_o)] - r_j + ν_j` above a noisy
//!   threshold (NoisyBTLS), and `w_K` if there is none. It is `ε`-DP, with noise of scale `2 C_o/ε`.
//! * [`Search::Selection`] takes `w_j` with probability proportional to `exp(-ε (Σ_i min(ℓ_i(w_j), C_o) + r_j)/C_o)`: its privacy loss has
//!   a range of `ε`. At one cost its noise is a quarter of that of backtracking, but it looks at all candidates.
//!
//! Under replace-one with Poisson batches, the pair of laws of a replaced record is known for noisy sums alone. With a search, the
//! run is read as one for two records, which needs more noise.
//!
//! # References
//! Chen 2020 (dissertation, University of Georgia), section 5.6.7: a tenth of each step's cost is the search's. There the
//! search has Gaussian noise.

use dp_accountant::Adjacency;

use crate::engine::grid_sum::GridSum;
use crate::engine::step_search::StepSearcher;
use crate::error::{Error, positive};
use crate::line_search::{Search, Searcher};

const MOST_CANDIDATES: u32 = 1 << 10;

/// The private choice of each step's size from candidates: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::ZeroOut;
/// use dp_mechanisms::clip::ClippingNorm;
/// use dp_optim::recipes::{Budget, ModelSgd, StepSearch};
///
/// let plain = ModelSgd::new(ClippingNorm::new(0.1)?);
/// let searching = ModelSgd { search: Some(StepSearch::new()), ..plain.clone() };
/// let budget = Budget::new(2.0, 1e-5)?;
/// let noise = |recipe: &ModelSgd| Ok::<_, dp_optim::Error>(recipe.plan::<ZeroOut>(60_000, 1000, budget)?.noise_multiplier());
/// let ratio = noise(&searching)? / noise(&plain)?;
/// assert!(ratio > 1.03 && ratio < 1.1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct StepSearch {
    /// The choice of a candidate: [`Search::Backtracking`] or [`Search::Selection`].
    pub search: Search,
    /// K: number of candidates.
    pub candidates: u32,
    /// β: ratio of each candidate's size to the one before. The first has the size of the schedule, but after every ten steps at most
    /// 1.2 times the longest of them.
    pub shrink: f64,
    /// a: the share of `b ‖w - w_j‖²/η_j` that is required of the decrease of the sum of losses.
    pub armijo: f64,
    /// C_o: upper bound to which each sample's loss is clamped.
    pub most_loss: f64,
    /// Share of a step's zCDP, before sampling, that is the search's. As part of one Gaussian it counts for up to π/2 times as much: a
    /// tenth needs 8% more noise.
    pub share: f64,
}

impl StepSearch {
    /// Creates a backtracking search of eight candidates, each 0.7 of the one before, at a tenth of the cost, with losses clamped at 3.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { search: Search::Backtracking, candidates: 8, shrink: 0.7, armijo: 0.1, most_loss: 3.0, share: 0.1 }
    }

    /// Returns the search of steps whose noise has this multiplier.
    pub(in crate::recipes) fn searcher<A: Adjacency>(&self, multiplier: f64) -> Result<Searcher<A>, Error> {
        Searcher::new(self.search, self.share / (1.0 - self.share) * 0.5 / (multiplier * multiplier))
    }

    /// Returns the search with all its numbers, for `n` samples and batches of this mean size.
    pub(super) fn of_steps<A: Adjacency>(
        &self,
        multiplier: f64,
        lambda: f64,
        n: u64,
        divisor: f64,
    ) -> Result<StepSearcher<A>, Error> {
        let Self { shrink, candidates, armijo, most_loss, .. } = *self;
        let (searcher, grid) = (self.searcher(multiplier)?, GridSum::new(n)?);
        Ok(StepSearcher { searcher, shrink, candidates, armijo, most_loss, lambda, divisor, grid })
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if self.search == Search::NoisyMin {
            let why =
                "a choice among steps along the normalised gradient is for DP-AGD: choose backtracking or selection";
            return Err(Error::NotProved { recipe: super::RECIPE, why });
        }
        if !(1..=MOST_CANDIDATES).contains(&self.candidates) {
            let value = u64::from(self.candidates);
            return Err(Error::Count { name: "candidates", value, range: "1 to 1024" });
        }
        let shortest = self.shrink.powi(i32::try_from(self.candidates - 1).unwrap_or(i32::MAX));
        if self.shrink > 0.0 && !(shortest >= 1e-100) {
            let value = u64::from(self.candidates);
            return Err(Error::Count {
                name: "candidates",
                value,
                range: "so few that the shortest step is at least 1e-100 of the longest",
            });
        }
        for (name, value) in [("shrink", self.shrink), ("armijo", self.armijo), ("share of the search", self.share)] {
            if !(value > 0.0 && value < 1.0) {
                return Err(Error::OutOfRange { name, value, range: "(0, 1)" });
            }
        }
        if !(1e-100..=1e6).contains(&positive("largest loss", self.most_loss)?) {
            return Err(Error::OutOfRange { name: "largest loss", value: self.most_loss, range: "[1e-100, 1e6]" });
        }
        Ok(())
    }
}
