//! ADMM with noisy gradients: DP-SGD with steps by [`LinearisedAdmm`](crate::engine::LinearisedAdmm).
//!
//! ```text
//! ss-admm   each step on a random batch of fixed size:  g <- Σ clip_C ∇ℓ_i(x) / m + N(0, σ² I)
//! mp-admm   each step on all records, noise on the model:  x <- x-step(g) + N(0, σ_x² I)
//! both      x <- (x/η + ρ z - y - g)/(1/η + ρ)      z <- prox_{P/ρ}(x + y/ρ)      y <- y + ρ (x - z)
//! ```
//! # Privacy
//! z and y are functions of the released x, so they cost nothing; a step is the release of one noisy sum. Noise `γ_x` on the x
//! of mp-admm is noise `γ_g = -(ρ + 1/η) γ_x` on its gradient: mp-admm is ss-admm with all records at each step, and
//! [`std_dev_on_the_model`] returns the noise on the model. The published version adds noise to x, z and y, for a sensitivity
//! that omits a factor η: see [`as_published`].
//!
//! # References
//! Chen 2020 (dissertation, University of Georgia), chapter 4, Algorithms 4.1 and 4.2; Ouyang, He, Tran, Gray, "Stochastic
//! alternating direction method of multipliers", ICML 2013.

pub mod as_published;

use dp_accountant::AdjacencyKind;
use dp_losses::{Domain, L2, LossKind, Penalty};

use super::defaults::TOTAL_STEP;
use super::{DpSgd, Sampling};
use crate::defaults::Defaults;
use crate::descent::Descent;
use crate::engine::AdmmOutput;
use crate::error::Error;
use crate::recipes::recipe::Budget;
use crate::schedule::Schedule;

/// ρ of ss-admm.
pub const RHO_ON_BATCHES: f64 = 0.25;
/// ρ of mp-admm.
pub const RHO_ON_ALL_RECORDS: f64 = 0.5;
/// Passes of ss-admm, and steps of mp-admm.
const PASSES: u64 = 10;

impl DpSgd {
    /// Creates ss-admm for `n` records, with the parameters of its source if given there: batches of `√n`, `η = step / pass`,
    /// ρ = 1/4. The sparse copy is released. Batches have fixed size under replace-one, as in the source, otherwise they are
    /// Poisson.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{AdjacencyKind, ReplaceOne};
    /// use dp_losses::{LossKind, Penalty};
    /// use dp_optim::recipes::{Budget, DpSgd, Recipe};
    ///
    /// let l1 = Penalty::L1 { lambda: 0.001 };
    /// let recipe = DpSgd::ss_admm(LossKind::Logistic, l1, 40_000, AdjacencyKind::ReplaceOne);
    /// assert_eq!(recipe.batch_size, 200);
    /// let budget = Budget::new(1.0, 1e-8)?;
    /// let plan = recipe.plan::<ReplaceOne>(40_000, 20, budget)?;
    /// // A batch's mean moves by 2C/m.
    /// assert!((plan.run().sensitivity() / plan.run().divisor() - 0.01).abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ss_admm(loss: LossKind, penalty: Penalty, n: u64, relation: AdjacencyKind) -> Self {
        let batch_size = n.isqrt().max(1);
        Self {
            sampling: match relation {
                AdjacencyKind::ReplaceOne => Sampling::FixedSize,
                _ => Sampling::Poisson,
            },
            batch_size,
            passes: PASSES,
            schedule: Some(Schedule::PerDrawnPass { step: 1.0, batch_size, examples: n.max(1) }),
            descent: Descent::Admm { rho: RHO_ON_BATCHES, output: AdmmOutput::Sparse },
            penalty: Some(penalty),
            ..Self::new(loss)
        }
    }

    /// Creates mp-admm: all records at each step, a constant step and ρ = 1/2. The sparse copy is released.
    pub fn mp_admm(loss: LossKind, penalty: Penalty) -> Self {
        Self {
            sampling: Sampling::Passes,
            batch_size: u64::MAX,
            passes: PASSES,
            schedule: Some(Schedule::Constant { step: 1.0 }),
            descent: Descent::Admm { rho: RHO_ON_ALL_RECORDS, output: AdmmOutput::Sparse },
            penalty: Some(penalty),
            ..Self::new(loss)
        }
    }

    /// Sets the first step such that the steps add up to the total that suits plain descent on such records, with a first step
    /// of at most `1/β`. Steps that fall per pass still do so, for the recipe's own batches; otherwise they are constant.
    ///
    /// # Errors
    /// As [`recommended`](Self::recommended).
    pub fn with_suited_first_step(
        self,
        n: u64,
        dim: u64,
        budget: Budget,
        relation: AdjacencyKind,
    ) -> Result<Self, Error> {
        let defaults = Defaults::new(self.loss, n, self.loss.parameters(dim), budget, relation)?;
        let smoothness = self.loss.constants(L2::new(self.lambda)?, &Domain::unit_rows()).smoothness;
        let longest = if smoothness.is_finite() { 1.0 / smoothness } else { 1.0 };
        let (updates, examples) = (self.updates(n), n.max(1));
        let batch_size = self.batch_size.clamp(1, examples);
        let falls = matches!(self.schedule, Some(Schedule::PerDrawnPass { .. }));
        let units = if falls {
            let a_pass = examples as f64 / batch_size as f64;
            // The sum of 1/pass up to the last pass, times the number of updates in a pass.
            let passes = (updates as f64 / a_pass).clamp(1.0, 1e6) as u64;
            a_pass.min(updates as f64) * (1..=passes).map(|pass| 1.0 / pass as f64).sum::<f64>()
        } else {
            updates as f64
        };
        let step = (TOTAL_STEP * defaults.total_step() / units).min(longest);
        let schedule =
            if falls { Schedule::PerDrawnPass { step, batch_size, examples } } else { Schedule::Constant { step } };
        Ok(Self { schedule: Some(schedule), ..self })
    }
}

/// Converts noise of `std_dev` on each coordinate of a step's mean gradient to the standard deviation on each weight of x.
///
/// # Formula
/// `σ_x = σ η / (1 + ηρ)`; the sensitivities are in the same ratio: `2C/n` of the gradient, `2Cη/(n (1 + ηρ))` of x.
///
/// # Examples
/// ```
/// use dp_optim::recipes::dp_sgd::admm::std_dev_on_the_model;
/// assert_eq!(std_dev_on_the_model(1.0, 2.0, 0.5), 1.0);
/// ```
pub fn std_dev_on_the_model(std_dev: f64, step: f64, rho: f64) -> f64 {
    std_dev * step / (1.0 + step * rho)
}

/// Inverts [`std_dev_on_the_model`]: `σ = σ_x (1 + ηρ) / η`.
pub fn std_dev_on_the_gradient(std_dev: f64, step: f64, rho: f64) -> f64 {
    std_dev * (1.0 + step * rho) / step
}
