//! PrivGene: coordinate steps chosen by the exponential mechanism, without gradients.
//!
//! ```text
//! w <- 0;  s <- s₀
//! r times:
//!     candidates  w + s e_j and w - s e_j for every coordinate j
//!     utility     u = Σ_i clamp(ℓ_i(w) - ℓ_i(candidate), ±C s)
//!     w <- candidate with probability proportional to exp(e u / (2 C s))      (4 C s under replace-one)
//!     s <- κ s
//! ```
//! With rows of norm at most 1 and a loss whose slope is at most `C` the clamp has no effect. A record's utilities lie in
//! `[-C s, C s]`, so replacing it by a null record moves each by at most `C s`, and by another record by at most `2 C s`. The
//! privacy loss of a round has a range of at most `e` ([`BoundedRange`](DpEvent::BoundedRange)), which costs `e²/8` of zCDP.
//! Only `r` indices are released, and the model is a function of them.
//!
//! # References
//! Zhang, Xiao, Yang, Zhang, Winslett, "PrivGene: differentially private model fitting using genetic algorithms", SIGMOD 2013,
//! in the form for regression, with candidates along the coordinates. Dong, Durfee, Rogers, "Optimal differential privacy
//! composition for exponential mechanisms", 2020, for its cost.

mod run;

#[cfg(test)]
mod tests;

pub use run::GeneRun;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{AdjacencyKind, DpEvent};
use dp_losses::{L2, LossKind, ScalarLoss};

use crate::engine::grid_sum::GridSum;
use crate::error::{Error, positive};
use crate::lattice::ReleaseLattice;
use crate::recipes::algorithm::Algorithm;
use crate::recipes::problem::{Problem, Setting};
use crate::recipes::recipe::{Budget, least_scale, repeated};

const RECIPE: &str = "priv-gene";

/// Product of records and epsilon per recommended round.
pub const ROUND: f64 = 800.0;
/// Maximum number of recommended rounds.
const MOST_ROUNDS: u64 = 1 << 16;

/// The recipe of PrivGene: public parameters only.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ReplaceOne};
/// use dp_losses::LossKind;
/// use dp_optim::recipes::{Budget, PrivGene, Recipe};
///
/// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::ZERO };
/// let plan = PrivGene::new(LossKind::Logistic).plan::<ReplaceOne>(8000, 5, budget)?;
/// assert_eq!(plan.run().rounds(), 10);
/// assert!((plan.run().epsilon_of_round() - 0.1).abs() < 1e-9);
/// // With a delta the rounds compose better.
/// let delta = Budget { delta: Delta::new(1e-6)?, ..budget };
/// let hundred = PrivGene { rounds: Some(100), ..PrivGene::new(LossKind::Logistic) };
/// assert!(hundred.plan::<ReplaceOne>(8000, 5, delta)?.run().epsilon_of_round() > 0.035);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PrivGene {
    /// The loss, of one prediction; it need be neither smooth nor convex.
    pub loss: LossKind,
    /// r: number of rounds; `None` is one for every [`ROUND`] of records times epsilon.
    pub rounds: Option<u64>,
    /// s₀: length of the first step.
    pub step: f64,
    /// κ: ratio of each step's length to the previous one.
    pub decay: f64,
    /// C: bound on the change of a record's loss by a step of length s, divided by s; larger changes are clamped. `None` is
    /// the loss's own Lipschitz constant, for which the clamp has no effect.
    pub slope: Option<f64>,
    /// Bound on the rows' L2 norm, enforced by the source.
    pub row_norm: f64,
    /// Bound on the targets' absolute value, enforced by the source; at most 1 for binary losses.
    pub target_bound: f64,
}

/// The result of calibration: the number of rounds, and the cost of each.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Rounds {
    /// r: number of rounds.
    pub rounds: u64,
    /// e: the range of a round's privacy loss.
    pub epsilon_of_round: f64,
}

impl Algorithm for PrivGene {
    const NAME: &'static str = RECIPE;

    type Calibrated = Rounds;
    type Run = GeneRun;

    fn setting(&self) -> Setting {
        let Self { loss, row_norm, target_bound, .. } = *self;
        Setting { loss, row_norm, target_bound, noise_mode: NoiseMode::Exact, float: None }
    }

    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64) -> Result<(Rounds, GeneRun), Error> {
        self.check(problem)?;
        let rounds = self.rounds(problem.n, budget.epsilon.get() / copies as f64);
        let inverse = least_scale(budget, copies, |scale| event(rounds, scale.recip()))?;
        // The reciprocal of a reciprocal may be larger by an ulp.
        let epsilon_of_round = inverse.recip() * (1.0 - 2.0 * f64::EPSILON);
        let calibrated = Rounds { rounds, epsilon_of_round };
        Ok((calibrated, self.resolve(problem, &calibrated)?))
    }

    fn resolve(&self, problem: &Problem, calibrated: &Rounds) -> Result<GeneRun, Error> {
        let (loss, slope) = self.check(problem)?;
        let Rounds { rounds, epsilon_of_round } = *calibrated;
        if rounds == 0 || self.rounds.is_some_and(|asked| asked != rounds) {
            return Err(Error::Count {
                name: "steps",
                value: rounds,
                range: "at least 1, and the recipe's number of rounds",
            });
        }
        positive("epsilon of a round", epsilon_of_round)?;
        GridSum::new(problem.n)?;
        Ok(GeneRun { recipe: self.clone(), problem: *problem, rounds: *calibrated, loss, slope })
    }

    fn lattice(&self, problem: &Problem, calibrated: &Rounds) -> Result<ReleaseLattice, Error> {
        self.check(problem)?;
        Ok(ReleaseLattice::steps(self.steps(calibrated.rounds).collect()))
    }
}

impl PrivGene {
    /// Creates the recipe with steps from 1/2 on, each 0.95 of the previous one.
    pub fn new(loss: LossKind) -> Self {
        Self {
            loss,
            rounds: None,
            step: 0.5,
            decay: 0.95,
            slope: None,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    /// Returns the step lengths of the rounds, from the first.
    fn steps(&self, rounds: u64) -> impl Iterator<Item = f64> {
        let decay = self.decay;
        core::iter::successors(Some(self.step), move |step| Some(step * decay)).zip(0..rounds).map(|(step, _)| step)
    }

    /// Checks the parameters; returns the loss and C.
    fn check(&self, problem: &Problem) -> Result<(ScalarLoss, f64), Error> {
        let dim = problem.dim;
        if dim > 1 << 31 {
            return Err(Error::Count { name: "dimension", value: dim, range: "at most 2^31: two candidates each" });
        }
        if let Some(rounds) = self.rounds.filter(|rounds| !(1..1 << 32).contains(rounds)) {
            return Err(Error::Count { name: "steps", value: rounds, range: "1 or more, below 2^32" });
        }
        if !(self.step >= 1e-100 && self.step <= 1e100) {
            return Err(Error::OutOfRange { name: "step size", value: self.step, range: "[1e-100, 1e100]" });
        }
        if !(self.decay > 0.0 && self.decay <= 1.0) {
            return Err(Error::OutOfRange { name: "decay", value: self.decay, range: "(0, 1]" });
        }
        positive("target bound", self.target_bound)?;
        let Some(loss) = self.loss.scalar() else {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "it takes losses of one prediction: for several classes, train one model for each against the rest",
            });
        };
        let slope = match self.slope {
            Some(slope) => positive("clipping norm", slope)?,
            None => self.loss.constants(L2::NONE, &problem.domain(None)?).data_lipschitz,
        };
        if !slope.is_finite() {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "this loss has no bounded slope: clip the change of a record's loss",
            });
        }
        Ok((loss, slope))
    }

    fn rounds(&self, n: u64, epsilon: f64) -> u64 {
        self.rounds.unwrap_or(((n as f64 * epsilon / ROUND).round() as u64).clamp(1, MOST_ROUNDS))
    }
}

/// Returns the sensitivity of a utility, in units of `C s`.
fn sensitivity(relation: AdjacencyKind) -> Result<f64, Error> {
    match relation {
        AdjacencyKind::ReplaceOne => Ok(2.0),
        AdjacencyKind::ZeroOut => Ok(1.0),
        adjacency => Err(Error::Adjacency { recipe: RECIPE, adjacency }),
    }
}

fn event(rounds: u64, epsilon: f64) -> DpEvent {
    repeated(DpEvent::BoundedRange { epsilon }, rounds)
}
