//! Objective perturbation: a random linear term in the objective, whose minimiser is released.
//!
//! ```text
//! J(w) = Σ ℓ(⟨w, x_i⟩, y_i) + (Λ/2) ‖w - c‖² + ⟨b, w⟩
//! release  w + noise,   ‖w - argmin J‖ ≤ τ certified
//!
//!                with delta                   without
//! b              N(0, σ² I)                   density ∝ exp(-‖b‖/s)
//! noise          N(0, (m · 2τ σ/X)² I)        density ∝ exp(-‖z‖/(m · 2τ s/X))
//! ```
//! The whole model costs as much as *one* release of one record's gradient: no composition over steps. The objective's
//! curvature divides the noise, so that it is largest in the directions where it affects the model least.
//!
//! # Privacy
//! For an exact minimiser the bounds are derived in [`objective_perturbation`](dp_accountant::objective_perturbation). They
//! take gradient and curvature of the differing record from the same prediction, so that for the logistic loss and `Λ >= 1/ε`
//! the release costs as much as the Gaussian mechanism or the Laplace ball. Nothing depends on the number of records.
//!
//! The released point is near the minimiser, not the minimiser itself. Given the minimiser of either data set, the solver may
//! return anything within `τ` of it; two such points are within `2τ` of one another, so that noise on the point is a further
//! release, of sensitivity `2τ`, composed with the first. Its noise multiplier is `m` times that of the first. `τ` is a
//! hundredth of the effect of `b` on a weight, divided by `m`, or a few roundings of one gradient divided by `γ = Λ/n` if that
//! is more. `m` minimises the error of a weight: 30, or 1000 without delta, on tables of up to a few hundred thousand records,
//! which costs a thousandth of ε. On larger ones the effect of `b` is tiny, and more of ε goes to the release. Its noise moves
//! a prediction by at most .02 (for regression, .02 of the targets' bound), up to 10⁹ records.
//!
//! That noise also makes the guarantee hold in floating point: no output is an exact function of `b` and the data, and `b`,
//! which is drawn on a grid, is within a known distance of an ideal one, which the certificate allows for. A point that is not
//! [certified](crate::engine::minimise) is never released.
//!
//! The number of gradients of the solver, and so the running time, depends on the data and is not covered by the guarantee. It
//! is neither returned nor reported.
//!
//! # The law
//! For `p` parameters the noise has norm about `p/ε` without delta and `z √p` with delta, where `z ≈ 4.5/ε` for the usual deltas.
//! So for fewer than about twenty parameters the noise that needs no delta is smaller,
//! and is the default even if delta > 0. The release then promises delta = 0.
//!
//! # The centre
//! `c` is 0, or, for a share of the cost (a tenth, [`CENTRE_SHARE`]), the least-squares solution of [noisy
//! moments](crate::recipes::noisy_moments), so that the regulariser shrinks towards an estimate of the model and not towards
//! 0. Given the released `c` the term `-Λ⟨c, w⟩` is a public linear term, and the proof is unchanged; the two releases are
//! composed. The number of moments grows as the square of the number of features: this suits Gaussian noise and up to a few
//! hundred features.
//!
//! # The regulariser
//! `Λ = λn` for a given λ. Otherwise, from public numbers, `Λ = max(a n q^{3/2}, f/ε)` with `q` the norm of the noise of a
//! single release of the mean gradient:
//!
//! | logistic loss | around 0 | around a centre |
//! |---|---|---|
//! | with delta | a = 0.3, f = 0.7 | a = 0.35, f = 0.8 |
//! | without | a = 0.3, f = 0.5 | a = 0.35, f = 0.4 |
//!
//! These values gave the best results on eight tables of 1,400 to 500,000 rows at budgets from 0.05 to 1.6. Losses whose
//! curvature is not a function of the slope have `f = 10 β`, β their curvature, so that the determinant costs a tenth of ε.
//!
//! # Other calibrations
//! The calibrations of the literature add more noise than needed: see [`published`], for comparison. Approximate minima
//! perturbation is this recipe with [Gaussian noise](ObjPert::approximate); its [tolerance](ObjPert::gradient_tolerance) may
//! be larger than needed.
//!
//! # References
//! Chaudhuri, Monteleoni, Sarwate, JMLR 2011; Kifer, Smith, Thakurta, COLT 2012. Iyengar, Near, Song, Thakkar, Thakurta,
//! Wang, "Towards practical differentially private convex optimization", S&P 2019, for the approximate minimiser.

mod objective;
mod part;
mod perturbation;
pub mod published;
mod run;

#[cfg(test)]
mod tests;

pub use objective::Certification;
pub(crate) use objective::UNSEEN;
pub(super) use objective::{Objective, RELEASES};
pub(super) use part::Part;
pub use perturbation::Perturbation;
pub(super) use perturbation::under_relation;
pub use published::Calibration;
pub use run::ObjPertRun;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{AdjacencyKind, MarginLoss};
use dp_losses::LossKind;

use crate::derivation::RELEASE;
use crate::error::{Error, positive};
use crate::float::FloatKind;
use crate::lattice::ReleaseLattice;
use crate::recipes::algorithm::Algorithm;
use crate::recipes::bolt_on::OutputNoise;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::noisy_moments::stage::Stage;
use crate::recipes::problem::{Problem, Setting};
use crate::recipes::recipe::Budget;

const RECIPE: &str = "obj-pert";

/// Recommended share of the cost for a centre.
pub const CENTRE_SHARE: f64 = 0.1;

/// A recipe of objective perturbation: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ZeroOut, gaussian};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, ObjPert, Planned, Recipe};
///
/// let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-6)?);
/// let plan = ObjPert::new(LossKind::Logistic).plan::<ZeroOut>(10_000, 5, Budget { epsilon, delta })?;
/// // Within a tenth of the noise of one Gaussian release of one record's gradient.
/// assert!(plan.run().noise().scale() < 1.1 * gaussian::noise_multiplier(epsilon, delta)?.get());
/// assert!(plan.reached().epsilon <= 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ObjPert {
    /// The loss: logistic, softmax, Huber's support vector machine or Huber's regression.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w - c‖²` of the mean loss; `None` is the recommended value.
    pub lambda: Option<f64>,
    /// Share of the cost that is spent on a centre `c`, in [0, 1); 0 is no centre. [`CENTRE_SHARE`] is recommended up to a few
    /// hundred features.
    #[cfg_attr(feature = "serde", serde(default))]
    pub centre_share: f64,
    /// The law of the noise in the objective.
    #[cfg_attr(feature = "serde", serde(default))]
    pub law: OutputNoise,
    /// The calibration of the noise. A serialised recipe without this field uses the least sufficient noise.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Calibration::is_exact"))]
    pub calibration: Calibration,
    /// γ: the solver may stop once the norm of the gradient of the *mean* objective is at most this, at the price of more
    /// noise on the minimiser; `None` is the least that can be certified despite rounding.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub gradient_tolerance: Option<f64>,
    /// The noise mode, of the objective and of the release.
    pub noise_mode: NoiseMode,
    /// Bound on the rows' L2 norm, enforced by the source.
    pub row_norm: f64,
    /// Bound on the targets' absolute value, enforced by the source; at most 1 for binary losses.
    pub target_bound: f64,
}

impl Algorithm for ObjPert {
    const NAME: &'static str = RECIPE;
    const MOST_ROW_NORM: f64 = f64::MAX;

    type Calibrated = Perturbation;
    type Run = ObjPertRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: Some(FloatKind::F64) }
    }

    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64) -> Result<(Perturbation, ObjPertRun), Error> {
        self.check()?;
        let found = Perturbation::calibrated(self, problem, budget, copies)?;
        Ok((found, ObjPertRun::new(self, problem, found)?))
    }

    fn resolve(&self, problem: &Problem, found: &Perturbation) -> Result<ObjPertRun, Error> {
        ObjPertRun::new(self, problem, *found)
    }

    fn lattice(&self, _: &Problem, found: &Perturbation) -> Result<ReleaseLattice, Error> {
        Ok(ReleaseLattice::on_grid(found.release.grid()?.step()))
    }

    fn work(&self, problem: &Problem, found: &Self::Calibrated) -> u64 {
        let centre = found.centre.map_or(0, |_| self.stage(problem).moments().saturating_mul(8));
        RELEASE.saturating_add(centre)
    }
}

impl ObjPert {
    /// Creates the recipe with the recommended regulariser, around 0.
    pub fn new(loss: LossKind) -> Self {
        Self {
            loss,
            lambda: None,
            centre_share: 0.0,
            law: OutputNoise::Least,
            calibration: Calibration::Exact,
            gradient_tolerance: None,
            noise_mode: NoiseMode::Exact,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    /// Adds a centre from noisy moments, for [`CENTRE_SHARE`] of the cost.
    pub fn centred(self) -> Self {
        Self { centre_share: CENTRE_SHARE, ..self }
    }

    /// Creates approximate minima perturbation (Iyengar et al. 2019): Gaussian noise in the objective, and on a point near its
    /// minimiser. It differs from [`new`](Self::new) in the law alone, since both release such a point.
    pub fn approximate(loss: LossKind) -> Self {
        Self { law: OutputNoise::Gaussian, ..Self::new(loss) }
    }

    /// Returns the loss in the form of the accountant.
    fn margin_loss(&self) -> Result<MarginLoss, Error> {
        match self.loss {
            LossKind::Logistic => Ok(MarginLoss::Logistic),
            LossKind::HuberSvm(loss) => Ok(MarginLoss::HuberSvm { width: loss.h() }),
            LossKind::HuberRegression(loss) => Ok(MarginLoss::BoundedSlope { slope: 1.0, curvature: 1.0 / loss.h() }),
            LossKind::LogCosh(loss) => Ok(MarginLoss::LogCosh { width: loss.h() }),
            LossKind::Softmax(softmax) => Ok(MarginLoss::Softmax { classes: softmax.classes() }),
            LossKind::Custom(loss) if loss.is_smooth() && loss.relative_curvature().is_finite() => {
                Ok(MarginLoss::BoundedSlope { slope: loss.slope(), curvature: loss.curvature() })
            }
            _ => Err(Error::NotProved {
                recipe: RECIPE,
                why: "it takes losses that are smooth and whose slope is bounded everywhere: logistic, softmax, huber-svm, \
                      huber-regression, log-cosh",
            }),
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        positive("target bound", self.target_bound)?;
        if let Some(lambda) = self.lambda {
            positive("lambda", lambda)?;
        }
        if !(0.0..1.0).contains(&self.centre_share) {
            let (name, value) = ("share of the centre", self.centre_share);
            return Err(Error::OutOfRange { name, value, range: "[0, 1)" });
        }
        if !self.calibration.is_exact() && self.centre_share > 0.0 {
            return Err(Error::NotProved { recipe: RECIPE, why: "the published calibrations have no centre" });
        }
        if let Some(tolerance) = self.gradient_tolerance {
            positive("gradient tolerance", tolerance)?;
        }
        Ok(())
    }

    /// Returns the standard deviation in a prediction of the noise on the minimiser, in units of the predictions' bound,
    /// before calibration. It assumes three times the noise of a single release of a gradient in the objective, which is more
    /// than the recommended regulariser and the release cost.
    pub(crate) fn noise_on_the_minimiser(
        &self,
        n: u64,
        dim: u64,
        budget: Budget,
        relation: AdjacencyKind,
    ) -> Result<f64, Error> {
        self.check()?;
        let problem = &Problem::new(self, n, dim, relation)?;
        let part = Part::of(self, problem, budget, 1)?;
        let regularization = match self.lambda {
            Some(lambda) => lambda * n as f64,
            None => part.regularization(self, problem)?,
        };
        let noise = NoiseScale::new(part.pure, 3.0 * part.multiplier * self.row_norm);
        let (centred, certification) = (self.centre_share > 0.0, Certification::Compensated);
        Objective { recipe: self, problem, regularization, noise, centred, certification }.release_in_a_prediction()
    }

    /// Returns the stage of the moments from which the centre is solved.
    fn stage(&self, &Problem { n, dim, .. }: &Problem) -> Stage {
        Stage { loss: self.loss, n, dim, row_norm: self.row_norm, target_bound: self.target_bound }
    }
}
