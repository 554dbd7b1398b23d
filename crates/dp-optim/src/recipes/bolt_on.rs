//! Bolt-on private stochastic gradient descent: non-private training followed by output perturbation.
//!
//! ```text
//! plan (public parameters -> sensitivity, noise, event)  ->  train (passes over the data)  ->  release
//! ```
//!
//! # References
//! Wu, Li, Kumar, Chaudhuri, Jha, Naughton, "Bolt-on differential privacy for scalable stochastic gradient
//! descent-based analytics", SIGMOD 2017, arXiv 1606.04722: Algorithms 1 and 2. The sensitivity here comes from the
//! [growth recursion](crate::growth), which corrects their treatment of batches and averages and replaces twice the
//! Lipschitz constant by the difference of two records' gradients.

mod noise;
mod run;

#[cfg(test)]
pub(super) mod tests;

pub use noise::OutputNoiseScale;
pub use run::OutputRun;

use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_accountant::{AdjacencyKind, DpEvent};
use dp_losses::{Constants, L2, LossKind};

use crate::averaging::Averaging;
use crate::derivation::{Derivation, RELEASE};
use crate::error::{Error, positive};
use crate::float::{F32_ALLOWANCE, FloatKind};
use crate::growth::{Arithmetic, Divisor, Growth, OrderPolicy, Rounding};
use crate::lattice::ReleaseLattice;
use crate::recipes::algorithm::{Algorithm, Run as _};
use crate::recipes::noise_scale::{NoiseScale, OneNoise};
use crate::recipes::problem::{Problem, Setting};
use crate::recipes::recipe::Budget;
use crate::schedule::Schedule;

const RECIPE: &str = "bolt-on";

/// The algorithm: the assumption on the loss, and the default steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Convexity {
    /// Algorithm 1: convex losses; a constant step of at most `2/β` unless another schedule is given.
    Convex,
    /// Algorithm 2: losses with an L2 regulariser, `λ > 0`; step `min(1/β, 1/(λt))` unless another schedule is given.
    StronglyConvex,
}

/// The stop rule of training.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
pub enum Stopping {
    /// After the number of passes of the recipe.
    #[default]
    Passes,
    /// At a point certified to be near the minimiser: sensitivity `G/(λn) + 2τ`, see [`minimise`](crate::engine::minimise).
    /// The passes of the recipe come first and only provide the start.
    CertifiedMinimiser {
        /// τ; `None` is a hundredth of the distance bound of the minimisers, `G/(100 λ n)`.
        tolerance: Option<f64>,
    },
}

/// The distribution of the noise on the released model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum OutputNoise {
    /// The law with the smaller expected squared norm: the Laplace ball for delta = 0 and in few dimensions, otherwise the
    /// Gaussian. The choice depends on public numbers only.
    #[default]
    Least,
    /// The L2 Laplace ball: pure differential privacy.
    LaplaceBall,
    /// The Gaussian; requires delta > 0.
    Gaussian,
}

/// A bolt-on recipe: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ReplaceOne};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{BoltOn, Budget, Planned, Recipe};
///
/// let recipe = BoltOn::strongly_convex(LossKind::Logistic, 0.01);
/// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::ZERO };
/// let plan = recipe.plan::<ReplaceOne>(10_000, 5, budget)?; // before any data
/// // G/(λ n) with G slightly below 2, since the iterates stay within 1/λ; the noise has scale Δ/ε.
/// assert!((plan.run().sensitivity() - 0.02).abs() < 3e-4);
/// assert!(plan.reached().epsilon <= 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct BoltOn {
    /// The algorithm.
    pub algorithm: Convexity,
    /// The loss.
    pub loss: LossKind,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²`; positive for the strongly convex algorithm.
    pub lambda: f64,
    /// Passes over the data, at least 1.
    pub passes: u64,
    /// Records per batch, capped at the number of records.
    pub batch_size: u64,
    /// The step sizes; `None` is the algorithm's default: `1/√n` but at most `2/β`, or `min(1/β, 1/(λt))`.
    pub schedule: Option<Schedule>,
    /// R: radius of the ball onto which the iterates and the released model are projected.
    pub radius: Option<f64>,
    /// The released combination of the iterates.
    pub averaging: Averaging,
    /// One permutation for all passes, or one for each.
    pub order: OrderPolicy,
    /// True if rows are read in the source's order, which the curator declares independent of their values; otherwise the
    /// order is random under a secret key.
    pub declared_order: bool,
    /// The divisor of a batch's gradient sum.
    pub divisor: Divisor,
    /// When training stops.
    pub stopping: Stopping,
    /// The noise on the released model.
    pub output_noise: OutputNoise,
    /// The noise mode: [`Exact`](NoiseMode::Exact), or [`Rounded`](NoiseMode::Rounded), an idealisation that the certificate
    /// names. A serialised recipe without this field used rounded noise.
    #[cfg_attr(feature = "serde", serde(default = "unsaid_noise_mode", skip_serializing_if = "is_unsaid"))]
    pub noise_mode: NoiseMode,
    /// Averages over the record's secret position in the permutation if that needs less noise. Requires Gaussian noise, one
    /// secret order for all passes (neither fresh nor declared), and positions that differ in sensitivity. Costs nothing.
    pub hide_position: bool,
    /// The floating-point type of training.
    pub float: FloatKind,
    /// The representation of the iterate; [`Arithmetic::suited_to`] returns the faster one.
    pub arithmetic: Arithmetic,
    /// Bound on the rows' L2 norm, enforced by the source.
    pub row_norm: f64,
    /// Bound on the targets' absolute value, enforced by the source; at most 1 for binary losses, the largest class index for
    /// softmax.
    pub target_bound: f64,
}

/// Returns the noise mode of recipes serialised before the field existed.
#[cfg(feature = "serde")]
fn unsaid_noise_mode() -> NoiseMode {
    NoiseMode::Rounded
}

/// Returns whether the mode is omitted when serialised, so that earlier files keep their form.
#[cfg(feature = "serde")]
fn is_unsaid(mode: &NoiseMode) -> bool {
    *mode == unsaid_noise_mode()
}

impl Algorithm for BoltOn {
    const NAME: &'static str = RECIPE;

    type Calibrated = OneNoise<OutputNoiseScale>;
    type Run = OutputRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, noise_mode, float, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode, float: Some(float) }
    }

    fn calibrate(
        &self,
        problem: &Problem,
        budget: Budget,
        copies: u64,
    ) -> Result<(OneNoise<OutputNoiseScale>, OutputRun), Error> {
        let run = OutputRun::calibrated(self, problem, 1, budget, copies)?;
        Ok((OneNoise { noise: run.noise() }, run))
    }

    fn resolve(&self, problem: &Problem, &OneNoise { noise }: &OneNoise<OutputNoiseScale>) -> Result<OutputRun, Error> {
        OutputRun::new(self, problem, 1, noise)
    }

    fn assumptions(&self, problem: &Problem) -> Vec<Assumption> {
        let mut assumptions = problem.setting.assumptions();
        if self.float == FloatKind::F32 {
            assumptions.push(Assumption::FloatTraining);
        }
        if self.declared_order {
            assumptions.push(Assumption::DeclaredOrder);
        }
        assumptions
    }

    fn lattice(&self, _: &Problem, calibrated: &OneNoise<OutputNoiseScale>) -> Result<ReleaseLattice, Error> {
        let released = ReleaseLattice::on_grid(calibrated.noise.grid()?.step());
        Ok(released.within(self.radius).in_precision(self.float))
    }

    fn weight_noise(&self, calibrated: &OneNoise<OutputNoiseScale>) -> Option<NoiseScale> {
        // The projection of the noisy model is not linear.
        self.radius.is_none().then(|| calibrated.noise.law())
    }

    fn work(&self, problem: &Problem, _: &Self::Calibrated) -> u64 {
        // Invalid recipes are refused at once. Hidden positions take a second recursion.
        let bound = self.terms(problem).map_or(0, |terms| terms.growth.work());
        RELEASE.saturating_add(bound.saturating_mul(2))
    }

    fn calibrate_joint(
        &self,
        problem: &Problem,
        classes: u32,
        budget: Budget,
        copies: u64,
    ) -> Result<(OutputRun, Derivation<Self>), Error> {
        // The stack's sensitivity holds for every position, so hiding it gains nothing.
        let recipe = Self { hide_position: false, ..self.clone() };
        let problem = Problem::new(&recipe, problem.n, problem.dim, problem.relation)?;
        let run = OutputRun::calibrated(&recipe, &problem, classes, budget, copies)?;
        let calibrated = OneNoise { noise: run.noise() };
        Ok((run, Derivation { recipe, relation: problem.relation, n: problem.n, dim: problem.dim, calibrated }))
    }

    fn joint_event(
        &self,
        problem: &Problem,
        &OneNoise { noise }: &OneNoise<OutputNoiseScale>,
        classes: u32,
    ) -> Result<DpEvent, Error> {
        if matches!(noise, OutputNoiseScale::HiddenPositionGaussian { .. }) {
            return Err(Error::NotProved {
                recipe: "one-vs-all",
                why: "a joint release does not count on hidden positions",
            });
        }
        OutputRun::new(self, problem, classes, noise)?.event()
    }
}

impl BoltOn {
    /// Creates Algorithm 1 with its usual parameters: ten passes, batches of 50, step `1/√n`, the last iterate.
    pub fn convex(loss: LossKind) -> Self {
        Self {
            algorithm: Convexity::Convex,
            loss,
            lambda: 0.0,
            passes: 10,
            batch_size: 50,
            schedule: None,
            radius: None,
            averaging: Averaging::Last,
            order: OrderPolicy::Fixed,
            declared_order: false,
            divisor: Divisor::Nominal,
            stopping: Stopping::Passes,
            output_noise: OutputNoise::Least,
            noise_mode: NoiseMode::Exact,
            hide_position: true,
            float: FloatKind::F64,
            arithmetic: Arithmetic::Buffered,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    /// Creates Algorithm 2 with its usual parameters: ten passes, batches of 50, step `min(1/β, 1/(λt))`, the last iterate.
    pub fn strongly_convex(loss: LossKind, lambda: f64) -> Self {
        Self { algorithm: Convexity::StronglyConvex, lambda, ..Self::convex(loss) }
    }

    /// Checks the parameters that do not depend on the data's size.
    fn check(&self) -> Result<(), Error> {
        let not_proved = |why| Err(Error::NotProved { recipe: RECIPE, why });
        if self.passes == 0 {
            return Err(Error::Count { name: "passes", value: 0, range: "1 or more: without any the model is 0" });
        }
        if self.passes >= 1 << 24 {
            return Err(Error::Count { name: "passes", value: self.passes, range: "below 2^24" });
        }
        if !self.loss.is_smooth() {
            return not_proved(
                "a gradient step on a loss with a kink need not contract, so no useful sensitivity is known: choose its \
                 smooth form (huber-svm, huber-regression), or noise in every step (scs13, bst14, dp-sgd) or phased-erm",
            );
        }
        if self.algorithm == Convexity::StronglyConvex && !(self.lambda > 0.0) {
            return Err(Error::OutOfRange {
                name: "lambda",
                value: self.lambda,
                range: "(0, inf) when strongly convex",
            });
        }
        if let Stopping::CertifiedMinimiser { tolerance } = self.stopping {
            if !(self.lambda > 0.0) {
                return not_proved("a certified minimiser needs strong convexity: set lambda");
            }
            if self.radius.is_some() {
                return not_proved("the certified minimiser is that of the whole space: leave the radius out");
            }
            if self.averaging != Averaging::Last {
                return not_proved("the certified minimiser is a single point: leave averaging out");
            }
            if self.float != FloatKind::F64 {
                return not_proved("single precision cannot certify a minimiser: use f64");
            }
            if let Some(tolerance) = tolerance {
                positive("tolerance", tolerance)?;
            }
        }
        Ok(())
    }

    fn resolved_schedule(&self, n: u64, smoothness: f64) -> Schedule {
        match (&self.schedule, self.algorithm) {
            (Some(schedule), _) => schedule.clone(),
            (None, Convexity::Convex) => {
                Schedule::Constant { step: (1.0 / (n.max(1) as f64).sqrt()).min(2.0 / smoothness) }
            }
            (None, Convexity::StronglyConvex) => Schedule::StronglyConvex { smoothness, strong_convexity: self.lambda },
        }
    }

    /// Returns all numbers that follow from the recipe and the public shape of the data.
    fn terms(&self, problem: &Problem) -> Result<Terms, Error> {
        self.check()?;
        let n = problem.n;
        let regulariser = L2::new(self.lambda)?;
        let mut domain = problem.domain(self.radius)?;
        if let Some(radius) = self.radius
            && self.float == FloatKind::F32
            && radius < 1e-12
        {
            let range = "1e-12 or more in single precision, where squares of smaller numbers vanish";
            return Err(Error::OutOfRange { name: "radius", value: radius, range });
        }
        let mut constants = self.loss.constants(regulariser, &domain);
        let schedule = self.resolved_schedule(n, constants.smoothness);
        let batch_size = self.batch_size.min(n);
        let updates = n.div_ceil(batch_size.max(1)).saturating_mul(self.passes);
        let longest = schedule.prepare(updates)?.largest();
        if self.float == FloatKind::F32 && !(longest * constants.smoothness <= 2.0 * (1.0 + 1e-12)) {
            // Unbounded iterates could overflow depending on the data.
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "single precision needs steps of at most 2/smoothness",
            });
        }
        let lipschitz_everywhere = constants.data_lipschitz;
        let contracts = self.lambda > 0.0 && longest * self.lambda <= 1.0;
        let minimised = self.stopping != Stopping::Passes;
        if contracts || minimised {
            // From the origin every iterate stays within L/λ: (1 - ηλ) L/λ + ηL = L/λ. So does every minimiser.
            let reach = constants.data_lipschitz / self.lambda * (1.0 + 1e-12);
            if reach.is_finite() && domain.radius().is_none_or(|radius| reach < radius) {
                domain = domain.with_radius(reach)?;
                constants = self.loss.constants(regulariser, &domain);
            }
        }
        let gradient_difference = match problem.relation {
            AdjacencyKind::ReplaceOne => constants.gradient_difference,
            // A null record's data gradient is zero.
            AdjacencyKind::ZeroOut => constants.data_lipschitz,
            adjacency => return Err(Error::Adjacency { recipe: RECIPE, adjacency }),
        };
        if !gradient_difference.is_finite() {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "this loss has bounded gradients only within a radius: set one",
            });
        }
        // Otherwise a sum or a square might overflow, and the release fail, depending on the data.
        let farthest = match self.float {
            FloatKind::F64 => 1e140,
            FloatKind::F32 => 1e15,
        };
        let steepest = constants.data_lipschitz.max(1.0) + self.lambda * self.radius.unwrap_or(0.0);
        if self.stopping == Stopping::Passes && !(longest * steepest * updates as f64 <= farthest) {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "steps so long could overflow: at most 1e140 in all, 1e15 in single precision",
            });
        }
        let rounding = (self.float == FloatKind::F64).then_some(Rounding {
            unit_roundoff: f64::EPSILON / 2.0,
            dim: problem.parameters(),
            outputs: u64::from(self.loss.outputs()),
            data_lipschitz: constants.data_lipschitz,
            arithmetic: self.arithmetic,
        });
        let growth = Growth {
            n,
            batch_size: self.batch_size,
            passes: self.passes,
            schedule,
            averaging: self.averaging.clone(),
            order: self.order,
            divisor: self.divisor,
            smoothness: constants.smoothness,
            strong_convexity: self.lambda,
            gradient_difference,
            radius: self.radius,
            rounding,
        };
        Ok(Terms { growth, constants, lipschitz_everywhere })
    }
}

/// The input of the growth recursion, and the constants it is computed from.
#[derive(Debug, Clone, PartialEq)]
struct Terms {
    growth: Growth,
    constants: Constants,
    /// `constants.data_lipschitz` before the iterates were bounded by a ball.
    lipschitz_everywhere: f64,
}

/// Returns `value` with the allowance for single precision, if `float` is single.
fn allow_for(float: FloatKind, value: f64) -> f64 {
    match float {
        FloatKind::F64 => value,
        FloatKind::F32 => value * (1.0 + F32_ALLOWANCE),
    }
}
