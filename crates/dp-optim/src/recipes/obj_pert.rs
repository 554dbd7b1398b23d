//! Objective perturbation: a random linear term in the objective, whose minimiser is released.
//!
//! ```text
//! J(w) = Σ ℓ(⟨w, x_i⟩, y_i) + (Λ/2) ‖w‖² + ⟨b, w⟩,    b ~ N(0, σ² I)
//! release  w + N(0, s² I),   ‖w - argmin J‖ ≤ τ certified,   s = 30 · 2τ σ/X
//! ```
//! The whole model costs what *one* Gaussian release of one record's gradient costs: no composition over steps, and the
//! noise is turned into the shape that hurts the model least, since the objective's curvature divides it.
//!
//! # Privacy
//! For an exact minimiser: [`objective_perturbation`](dp_accountant::objective_perturbation), where the bound is derived;
//! it takes gradient and curvature of the differing record from the same prediction, so that for the logistic loss and
//! `Λ >= 1/ε` it is the Gaussian's own. Nothing depends on the number of records.
//!
//! The released point is near the minimiser, not the minimiser itself. Given the minimiser of either data set, the solver
//! may return anything within `τ` of it; two such points lie within `2τ` of one another, so that noise of standard
//! deviation `s` on it is a further Gaussian release, of sensitivity `2τ`, composed with the first. `τ` is a few roundings,
//! so this costs nothing that one sees; and it is what makes the statement hold in floating point: no output is an exact
//! function of `b` and the data, and `b`, which is drawn on a grid, is within a known distance of an ideal one, which the
//! certificate allows for. A point that is not [certified](crate::engine::minimise) is never released.
//!
//! How many gradients the solver takes, and so how long, depends on the data and is not covered by the guarantee. It is
//! neither returned nor reported.
//!
//! # The regulariser
//! `Λ = λn` for a given λ. Otherwise, from public numbers, `Λ = max(0.3 n q^{3/2}, 0.7/ε)` with `q = z √d/n` the noise that a
//! Gaussian release of the mean gradient would have, `z` its noise multiplier: what served best on eight tables of 1,400 to
//! 500,000 rows at budgets from 0.05 to 1.6. Losses whose slope and curvature are not tied have `10 β/ε` in place of the
//! second term, β their curvature, so that the determinant costs a tenth of ε.
//!
//! # References
//! Chaudhuri, Monteleoni, Sarwate, JMLR 2011; Kifer, Smith, Thakurta, COLT 2012. Iyengar, Near, Song, Thakkar, Thakurta,
//! Wang, "Towards practical differentially private convex optimization", S&P 2019, for the approximate minimiser.

mod derivation;
mod plan;

#[cfg(test)]
mod tests;

pub use derivation::ObjPertDerivation;
pub use plan::Plan;

use dp_accountant::MarginLoss;
use dp_accountant::certificate::NoiseMode;
use dp_losses::LossKind;

use crate::error::{Error, positive};
use crate::recipes::recipe::{Budget, Recipe, RecordAdjacency, check_copies};

const RECIPE: &str = "obj-pert";

/// A recipe of objective perturbation: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ZeroOut, gaussian};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, ObjPert, Planned};
///
/// let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-6)?);
/// let plan = ObjPert::new(LossKind::Logistic).plan::<ZeroOut>(10_000, 5, Budget { epsilon, delta })?;
/// // The noise of one Gaussian release of one record's gradient, within a tenth.
/// assert!(plan.std_dev() < 1.1 * gaussian::noise_multiplier(epsilon, delta)?.get());
/// assert!(plan.reached().epsilon <= 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ObjPert {
    /// The loss: logistic, Huber's support vector machine or Huber's regression.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²` of the mean loss; `None` is what is recommended.
    pub lambda: Option<f64>,
    /// How noise is drawn, that of the objective and that of the release.
    pub noise_mode: NoiseMode,
    /// Bound on the rows' L2 norm, which the source enforces.
    pub row_norm: f64,
    /// Bound on the targets' size, which the source enforces; at most 1 for the losses of two classes.
    pub target_bound: f64,
}

impl Recipe for ObjPert {
    type Plan<A: RecordAdjacency> = Plan<A>;

    fn plan_copies<A: RecordAdjacency>(&self, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Plan<A>, Error> {
        check_copies(copies)?;
        Plan::new(self, n, dim, budget, copies)
    }
}

impl ObjPert {
    /// With the recommended regulariser.
    pub fn new(loss: LossKind) -> Self {
        Self {
            loss,
            lambda: None,
            noise_mode: NoiseMode::Exact,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    /// Derives noise, event and guarantee for `n` records of `dim` features, before any data is read.
    ///
    /// # Privacy
    /// `n` and `dim` are public under both relations.
    ///
    /// # Errors
    /// Parameters outside their range or outside what is proved ([`Error::NotProved`]: another loss, delta = 0), and a
    /// budget that no noise reaches under this regulariser.
    pub fn plan<A: RecordAdjacency>(&self, n: u64, dim: u64, budget: Budget) -> Result<Plan<A>, Error> {
        Plan::new(self, n, dim, budget, 1)
    }

    /// The loss as the accountant knows it.
    fn margin_loss(&self) -> Result<MarginLoss, Error> {
        match self.loss {
            LossKind::Logistic => Ok(MarginLoss::Logistic),
            LossKind::HuberSvm(loss) => Ok(MarginLoss::HuberSvm { width: loss.h() }),
            LossKind::HuberRegression(loss) => Ok(MarginLoss::BoundedSlope { slope: 1.0, curvature: 1.0 / loss.h() }),
            _ => Err(Error::NotProved {
                recipe: RECIPE,
                why: "it takes losses of one prediction that are smooth and whose slope is bounded everywhere: logistic, \
                      huber-svm, huber-regression",
            }),
        }
    }

    /// Refuses parameters outside their range.
    fn check(&self, n: u64, dim: u64) -> Result<(), Error> {
        for (name, value) in [("number of records", n), ("dimension", dim)] {
            if value == 0 {
                return Err(Error::Count { name, value, range: "1 or more" });
            }
        }
        positive("row norm", self.row_norm)?;
        positive("target bound", self.target_bound)?;
        if let Some(lambda) = self.lambda {
            positive("lambda", lambda)?;
        }
        if self.loss.is_classification() && self.target_bound > 1.0 {
            return Err(Error::OutOfRange {
                name: "target bound",
                value: self.target_bound,
                range: "at most 1 for a loss of two classes",
            });
        }
        if !matches!(self.noise_mode, NoiseMode::Exact | NoiseMode::Rounded) {
            let why = "without noise there is no guarantee: choose exact or rounded noise";
            return Err(Error::NotProved { recipe: RECIPE, why });
        }
        Ok(())
    }
}
