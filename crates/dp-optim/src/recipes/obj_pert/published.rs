//! The published calibrations of noise and regulariser, for comparison: they add more noise than needed.
//!
//! In the sum over records, for rows of norm at most 1 and a loss of one prediction with slopes of at most 1 and curvature of
//! at most `c`; `ζ` is the sensitivity of the summed gradient: 1 for an added or removed record, 2 for a replaced one.
//!
//! | [`Calibration`] | noise | regulariser | source |
//! |---|---|---|---|
//! | [`Cms11`](Calibration::Cms11) | ball of scale `ζ/ε'`, `ε' = ε - ζ ln(1 + c/Λ)` | where `ε' <= 0`, one with `ε' = ε/2` | Chaudhuri, Monteleoni, Sarwate 2011, Algorithm 2 |
//! | [`Kst12`](Calibration::Kst12) | `σ² = ζ² (8 ln(2/δ) + 4ε)/ε²` | at least `2c/ε` | Kifer, Smith, Thakurta 2012, Algorithm 1 |
//! | [`Rdp`](Calibration::Rdp) | by [`published_rdp`](objective_perturbation::published_rdp) | above `c` | Redberg, Koskela, Wang 2023, Theorem 3.2 |
//! | [`Amp`](Calibration::Amp) | `σ = ζ (1 + √(2 ln(1/δ₁)))/ε₃`, on the minimiser `2τ (1 + √(2 ln(1/δ₂)))/ε₂` | at least `ζc/(ε₁ - ε₃)` | Iyengar, Near, Song, Thakkar, Thakurta, Wang 2019, Algorithm 1 |
//!
//! `ζ ln(1 + c/Λ)` is the paper's `ln(1 + 2c/Λ + c²/Λ²)` for a replaced record. The constants of Kifer et al. are proved for
//! `ζ = 1`. Those of Iyengar et al. omit the factor 2 of the minimiser's noise, although two points within `τ` of the same
//! minimiser may be `2τ` apart; their shares of the budget are `ε₁ = 0.99 ε`, `ε₃ = 0.9 ε₁`, and `δ₂` is a hundredth of `δ`.
//!
//! # Privacy
//! A plan uses the larger of this noise and the least that the exact accounting requires; its guarantee is that of the
//! accounting, never the paper's.

use dp_accountant::rdp::conversion::epsilon_improved;
use dp_accountant::{AdjacencyKind, Delta, MarginLoss, RdpOrder, objective_perturbation};

use super::RECIPE;
use crate::error::{Error, positive};
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::recipe::Budget;

/// The calibration of the noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Calibration {
    /// The least noise that suffices by the exact accounting.
    #[default]
    Exact,
    /// Chaudhuri, Monteleoni and Sarwate 2011: noise without delta.
    Cms11,
    /// Kifer, Smith and Thakurta 2012: Gaussian noise.
    Kst12,
    /// Redberg, Koskela and Wang 2023: Gaussian noise, by a Renyi bound.
    Rdp,
    /// Iyengar et al. 2019, approximate minima perturbation: Gaussian noise on the objective and on its minimiser.
    Amp,
}

impl Calibration {
    /// Returns whether it is the exact calibration.
    pub const fn is_exact(&self) -> bool {
        matches!(self, Self::Exact)
    }

    /// Returns whether its noise needs no delta; for the exact calibration the [law](super::ObjPert::law) decides.
    pub(super) const fn is_pure(self) -> bool {
        matches!(self, Self::Cms11)
    }
}

/// Noise and regulariser of a paper, for rows of norm 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// The noise in the linear term.
    pub noise: NoiseScale,
    /// Λ: the requested value, or the least that the paper allows.
    pub regularization: f64,
    /// Ratio of the noise on the minimiser to its sensitivity, if the paper has any.
    pub release: Option<f64>,
}

/// Returns the orders at which the Renyi bound is evaluated; more would change the fourth digit only.
fn orders() -> impl Iterator<Item = RdpOrder> {
    (0..=160).filter_map(|step| RdpOrder::new(1.0 + (-4.0 + 0.08 * f64::from(step)).exp()).ok())
}

/// Returns the noise and regulariser of `calibration` for `loss` and the regulariser `regularization` in the sum over records,
/// for rows of norm 1.
///
/// # Errors
/// [`Calibration::Exact`], which has no publication; a loss of several outputs; delta = 0 if the calibration needs delta > 0;
/// a regulariser that is not positive, or for [`Calibration::Rdp`] not above the curvature.
///
/// # Examples
/// ```
/// use dp_accountant::{AdjacencyKind, MarginLoss};
/// use dp_optim::recipes::Budget;
/// use dp_optim::recipes::obj_pert::published::{Calibration, published};
///
/// let budget = Budget::new(0.1, 1e-8)?;
/// let of = |calibration| published(calibration, MarginLoss::Logistic, 50.0, budget, AdjacencyKind::ZeroOut);
/// assert!((of(Calibration::Kst12)?.noise.scale() - 123.818_667).abs() < 1e-6);
/// assert!(of(Calibration::Rdp)?.noise.scale() < of(Calibration::Kst12)?.noise.scale());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn published(
    calibration: Calibration,
    loss: MarginLoss,
    regularization: f64,
    budget: Budget,
    relation: AdjacencyKind,
) -> Result<Published, Error> {
    let (slope, curvature) = match loss {
        MarginLoss::Logistic => (1.0, 0.25),
        MarginLoss::HuberSvm { width } => (1.0, 0.5 / width),
        MarginLoss::LogCosh { width } => (1.0, width.recip()),
        MarginLoss::BoundedSlope { slope, curvature } => (slope, curvature),
        _ => {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "the published calibrations are for losses of one prediction",
            });
        }
    };
    let zeta = match relation {
        AdjacencyKind::ZeroOut | AdjacencyKind::AddRemoveOne => 1.0,
        AdjacencyKind::ReplaceOne => 2.0,
        adjacency => return Err(Error::Adjacency { recipe: RECIPE, adjacency }),
    };
    let regularization = positive("regularization", regularization)?;
    let (epsilon, delta) = (budget.epsilon.get(), budget.delta.get());
    if !calibration.is_pure() && !(delta > 0.0) {
        return Err(Error::NotProved {
            recipe: RECIPE,
            why: "this calibration has Gaussian noise and needs delta > 0",
        });
    }
    let gaussian = |std_dev| NoiseScale::Gaussian { std_dev };
    match calibration {
        Calibration::Exact => {
            Err(Error::NotProved { recipe: RECIPE, why: "the exact calibration is not a published one" })
        }
        Calibration::Cms11 => {
            let left = epsilon - zeta * (curvature / regularization).ln_1p();
            let (left, regularization) = if left > 0.0 {
                (left, regularization)
            } else {
                (0.5 * epsilon, curvature / (0.5 * epsilon / zeta).exp_m1())
            };
            Ok(Published {
                noise: NoiseScale::LaplaceBall { scale: zeta * slope / left },
                regularization,
                release: None,
            })
        }
        Calibration::Kst12 => {
            let std_dev = zeta * slope * (8.0 * (2.0 / delta).ln() + 4.0 * epsilon).sqrt() / epsilon;
            let regularization = regularization.max(2.0 * curvature / epsilon);
            Ok(Published { noise: gaussian(std_dev), regularization, release: None })
        }
        Calibration::Rdp => {
            if !(regularization > curvature) {
                let (name, range) = ("lambda", "above the loss's curvature over n");
                return Err(Error::OutOfRange { name, value: regularization, range });
            }
            // A replacement is two changes of one record each.
            let epsilon_of_one = epsilon / zeta;
            let delta_of_one = if zeta > 1.0 { delta / (1.0 + epsilon_of_one.exp()) } else { delta };
            let std_dev = renyi(epsilon_of_one, Delta::new(delta_of_one)?, regularization, curvature, slope)?;
            Ok(Published { noise: gaussian(std_dev), regularization, release: None })
        }
        Calibration::Amp => {
            let (first, second) = (0.99 * epsilon, 0.01 * epsilon);
            let linear = 0.9 * first;
            let multiplier = |delta: f64, epsilon: f64| (1.0 + (-2.0 * delta.ln()).sqrt()) / epsilon;
            Ok(Published {
                noise: gaussian(zeta * slope * multiplier(0.99 * delta, linear)),
                regularization: regularization.max(zeta * curvature / (first - linear)),
                release: Some(multiplier(0.01 * delta, second)),
            })
        }
    }
}

/// Returns the least standard deviation at which the published Renyi bound gives `epsilon` at `delta`.
fn renyi(epsilon: f64, delta: Delta, regularization: f64, curvature: f64, slope: f64) -> Result<f64, Error> {
    let reaches = |std_dev: f64| -> Result<bool, Error> {
        for order in orders() {
            let rdp = objective_perturbation::published_rdp(order, std_dev, regularization, curvature, slope)?;
            if epsilon_improved(order, rdp, delta)? <= epsilon {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let mut high = slope / epsilon;
    while !reaches(high)? {
        high *= 2.0;
        if !(high < 1e9 * slope / epsilon) {
            let why = "the published bound reaches this epsilon with no noise: a larger lambda is needed";
            return Err(Error::NotProved { recipe: RECIPE, why });
        }
    }
    let mut low = 0.0;
    while high - low > 1e-6 * high {
        let middle = 0.5 * (low + high);
        if reaches(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}
