//! Training with Gaussian noise on every step's sum of gradients, shared by DP-SGD, BST14 and others.
//!
//! ```text
//! batch (drawn, or a piece of a pass)  ->  Σ gradients, clipped or bounded  ->  + N(0, σ² I)  ->  step, projection
//! ```

mod plan;
pub(super) mod rule;
mod stream;
mod training;

pub use plan::StepsRun;
use training::Following;

use dp_accountant::{AdjacencyKind, DpEvent, ZeroOut};
use dp_losses::penalty::Layout;
use dp_losses::{Domain, L2, LossKind, Penalty, ProximalMap};
use dp_mechanisms::PrivacyEvent;
use dp_mechanisms::clip::ClippingNorm;
use dp_mechanisms::continual::Factor;
use dp_mechanisms::steps::StepPlan;

use super::noisy_sums::NoisySums;
use super::problem::{Problem, Setting};
use super::recipe::Budget;
use crate::averaging::{Averaging, AveragingWeights};
use crate::descent::{Descent, Range};
use crate::engine::{AdmmOutput, BatchLaw, Contributions, MICROBATCH, StepSum, Summation};
use crate::error::{Error, non_negative, positive};
use crate::float::FloatKind;
use crate::schedule::{Schedule, StepSizes};

/// The selection of the records of a step.
///
/// # Privacy
/// Comparison for equal accuracy of a step, under zero-out (a record is replaced by a null one) and under replace-one:
///
/// | | theorem | zero-out | replace-one |
/// |---|---|---|---|
/// | `Poisson` | amplification by Poisson sampling; under replace-one, of two records at once | tightest | tightest |
/// | `FixedSize` | amplification by sampling without replacement | none | about twice the noise |
/// | `Passes` | parallel composition: no amplification | much more noise, unless batches are large | likewise |
///
/// Under zero-out a batch of fixed size has no separate theorem here: if the record is not drawn, another takes its place, so
/// that the gradients of two records matter, as under replace-one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Sampling {
    /// Each record independently, with probability `1 - e^(-b/n)`, see [`BatchLaw::Poisson`].
    #[default]
    Poisson,
    /// A uniformly random set of b records.
    FixedSize,
    /// The records in a secret order, cut into batches of b; no amplification is counted.
    Passes,
}

/// The batches of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batching {
    /// A random batch in each step.
    Drawn(BatchLaw),
    /// Consecutive batches of passes over the records.
    Passes {
        /// Number of passes.
        passes: u64,
        /// Number of records in a batch.
        batch_size: u64,
        /// True if the records come in the source's own order.
        declared_order: bool,
    },
    /// The records in parts of nearly equal size, one for each party: the same parts in every round.
    Parties {
        /// Number of rounds.
        rounds: u64,
        /// Number of parties.
        parties: u64,
        /// True if the records come in the source's own order.
        declared_order: bool,
    },
}

/// The public numbers of a run with noise in every step.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyRun {
    pub(crate) recipe: &'static str,
    /// Number of records.
    pub n: u64,
    pub(crate) dim: u64,
    /// The loss.
    pub loss: LossKind,
    pub(crate) lambda: f64,
    pub(crate) radius: Option<f64>,
    /// Bound on the rows' norm.
    pub row_norm: f64,
    /// Bound on the targets' size.
    pub target_bound: f64,
    pub(crate) sums: NoisySums,
    /// The batches.
    pub batching: Batching,
    /// For passes in one order: the factor that correlates the noise of the steps.
    pub factor: Option<Factor>,
    pub(crate) descent: Descent,
    pub(crate) penalty: Option<Penalty>,
    /// True if the last feature is an intercept, which no penalty counts.
    pub(crate) intercept: bool,
    /// The divisor of a batch's sum.
    pub divisor: f64,
    pub(crate) float: FloatKind,
}

/// Maximum factor by which rounding may raise a sensitivity.
const MOST_ROUNDING: f64 = 1.125;

pub(super) struct Parts<'p> {
    pub(super) recipe: &'static str,
    pub(super) problem: &'p Problem,
    pub(super) clipping: Option<ClippingNorm>,
    pub(super) radius: Option<f64>,
    pub(super) lambda: f64,
    pub(super) sampling: Sampling,
    pub(super) batch_size: u64,
    pub(super) length: Length,
    pub(super) descent: Descent,
    pub(super) penalty: Option<Penalty>,
    pub(super) intercept: bool,
    pub(super) declared_order: bool,
    pub(super) summation: Summation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Passes(u64),
    Steps(u64),
}

impl NoisyRun {
    /// Resolves and checks all parameters except the step sizes, which may depend on the noise.
    pub(super) fn new(parts: Parts<'_>) -> Result<Self, Error> {
        let Parts { recipe, problem, radius, lambda, batch_size, .. } = parts;
        let Problem { setting, n, dim, relation, .. } = *problem;
        let Setting { loss, row_norm, target_bound, float, .. } = setting;
        let float = float.unwrap_or_default();
        non_negative("lambda", lambda)?;
        parts.descent.check()?;
        if batch_size == 0 {
            return Err(Error::Count { name: "batch size", value: 0, range: "1 or more" });
        }
        let parties = match parts.descent {
            Descent::Consensus { parties, .. } => Some(parties),
            _ => None,
        };
        // A party's part is its batch.
        let batch_size = parties.map_or(batch_size, |parties| n.div_ceil(parties)).min(n);
        let not_proved = |why| Err(Error::NotProved { recipe, why });
        let per_pass = parties.unwrap_or_else(|| n.div_ceil(batch_size));
        let steps = match parts.length {
            Length::Passes(passes) => passes.saturating_mul(per_pass),
            Length::Steps(steps) => steps,
        };
        let name = if matches!(parts.length, Length::Passes(_)) { "passes" } else { "steps" };
        if !(1..1 << 48).contains(&steps) {
            return Err(Error::Count { name, value: steps, range: "1 or more, and below 2^48 steps in all" });
        }
        if parts.sampling == Sampling::FixedSize && relation == AdjacencyKind::ZeroOut {
            return not_proved(
                "batches of fixed size are proved for replace-one; under add-remove choose Poisson batches",
            );
        }
        if parties.is_some_and(|parties| parties > n) {
            return Err(Error::Count { name: "parties", value: per_pass, range: "at most one for each record" });
        }
        if parties.is_some() && parts.sampling != Sampling::Passes {
            return not_proved("parties take turns with all of their records: their batches are not drawn");
        }
        let poisson = parts.sampling == Sampling::Poisson;
        let (batching, plan) = if parts.sampling == Sampling::Passes {
            let Length::Passes(passes) = parts.length else {
                return not_proved("a run over passes is counted in passes, not in steps");
            };
            let declared_order = parts.declared_order;
            let batching = match parties {
                Some(parties) => Batching::Parties { rounds: passes, parties, declared_order },
                None => Batching::Passes { passes, batch_size, declared_order },
            };
            (batching, StepPlan::DisjointBatches { passes, steps_per_pass: per_pass })
        } else {
            let law = if poisson {
                BatchLaw::Poisson { mean_darts: batch_size }
            } else {
                BatchLaw::FixedSize { size: batch_size }
            };
            let sampling_rate = law.sampling_rate(n)?;
            let plan = if poisson {
                StepPlan::PoissonSampled { sampling_rate, steps }
            } else {
                StepPlan::SampledWithoutReplacement { sampling_rate, steps }
            };
            (Batching::Drawn(law), plan)
        };
        let divisor = match batching {
            Batching::Drawn(law) => law.mean_size(n)?,
            Batching::Passes { batch_size, .. } => batch_size as f64,
            // The smallest part; a party divides by the number of its own records.
            Batching::Parties { parties, .. } => (n / parties).max(1) as f64,
        };
        let contributions = |float| match parts.clipping {
            Some(norm) => Ok(Contributions::Clipped(norm.into())),
            None => Contributions::of_loss(&loss, &problem.domain(radius)?, dim, float),
        };
        // A Poisson batch may hold all records, however unlikely.
        let most = if poisson { n } else { batch_size };
        let plainly = if poisson { n.min(MICROBATCH) } else { batch_size };
        let sum = StepSum::whole(contributions(float)?, most, float).added_up(parts.summation, plainly);
        let in_double = StepSum { contributions: contributions(FloatKind::F64)?, float: FloatKind::F64, ..sum };
        let sums = NoisySums::new(recipe, plan, sum, relation);
        if !(sums.sensitivity()? <= MOST_ROUNDING * in_double.sensitivity(sums.relation_of_steps)?) {
            return not_proved(
                "in single precision the rounding of predictions would outweigh a record: train in double",
            );
        }
        let run = Self {
            recipe,
            n,
            dim,
            loss,
            lambda,
            radius,
            row_norm,
            target_bound,
            sums,
            batching,
            factor: None,
            descent: parts.descent,
            penalty: parts.penalty,
            intercept: parts.intercept,
            divisor,
            float,
        };
        run.check_penalty()?;
        Ok(run)
    }

    /// Rejects a penalty that does not fit the model, or that the descent would not use.
    fn check_penalty(&self) -> Result<(), Error> {
        let not_proved = |why| Err(Error::NotProved { recipe: self.recipe, why });
        match (&self.penalty, self.descent) {
            (None, Descent::Admm { .. }) => not_proved("without a penalty there is nothing to split off: name one"),
            (Some(_), Descent::Adam { .. } | Descent::AdamBc { .. }) => {
                not_proved("a penalty's map belongs to steps that are alike for all weights: omit Adam or the penalty")
            }
            (Some(_), Descent::HeavyBall { .. }) => {
                not_proved("the heavy ball has no map of a penalty: take Nesterov's momentum, or omit the penalty")
            }
            (Some(penalty), _) => Ok(penalty.check_layout(self.layout()?)?),
            (None, _) => Ok(()),
        }
    }

    fn layout(&self) -> Result<Layout, Error> {
        let features = usize::try_from(self.dim).map_err(|_| Error::Count {
            name: "dimension",
            value: self.dim,
            range: "what memory can address",
        })?;
        Ok(Layout { features, outputs: self.loss.outputs() as usize, intercept: self.intercept })
    }

    /// Returns the penalty's proximal map, checked for the run's steps.
    fn proximal_map(&self, steps: &StepSizes) -> Result<Option<ProximalMap>, Error> {
        let Some(penalty) = &self.penalty else { return Ok(None) };
        let longest = match self.descent {
            Descent::Admm { rho, .. } | Descent::Consensus { rho, .. } => 1.0 / rho,
            _ => steps.largest(),
        };
        Ok(Some(ProximalMap::new(penalty.clone(), self.layout()?, longest)?))
    }

    /// Returns the penalty's map for an average of iterates, and its step: see [`DpSgd::penalty`](super::DpSgd::penalty).
    fn last_map(&self, steps: &StepSizes) -> Result<Option<(ProximalMap, f64)>, Error> {
        let smooth = matches!(self.descent, Descent::Admm { output: AdmmOutput::Smooth, .. });
        let Some(penalty) = self.penalty.as_ref().filter(|_| !smooth) else { return Ok(None) };
        let longest = match self.descent {
            Descent::Admm { rho, .. } | Descent::Consensus { rho, .. } => 1.0 / rho,
            _ => steps.largest(),
        };
        let domain = Domain::unit_rows().with_row_norm(self.row_norm)?.with_target_bound(self.target_bound)?;
        let smoothness = self.loss.constants(L2::new(self.lambda)?, &domain).smoothness;
        let step = if penalty.is_convex() && smoothness.is_finite() && smoothness > 0.0 {
            (1.0 / smoothness).min(1e100)
        } else {
            longest
        };
        Ok(Some((ProximalMap::new(penalty.clone(), self.layout()?, step)?, step)))
    }

    pub(super) fn parameters(&self) -> u64 {
        self.loss.parameters(self.dim)
    }

    /// Returns the number of updates.
    pub fn updates(&self) -> u64 {
        self.sums.plan.steps()
    }

    /// Returns the L2 sensitivity of a step's sum, rounding included.
    pub(super) fn sensitivity(&self) -> Result<f64, Error> {
        self.sums.sensitivity()
    }

    /// Returns the event of all steps, with noise of this standard deviation on each sum.
    pub(super) fn event(&self, std_dev: f64) -> Result<DpEvent, Error> {
        // The stream's event depends on the relation only through the sensitivity of a step.
        if let Some(stream) = self.stream::<ZeroOut>(positive("standard deviation", std_dev)?)? {
            return Ok(stream.event());
        }
        self.sums.event(std_dev)
    }

    pub(super) fn least_std_dev(&self, budget: Budget, copies: u64) -> Result<f64, Error> {
        match &self.factor {
            Some(factor) => {
                self.sums.check_delta(budget)?;
                self.least_std_dev_of_stream(factor, budget, copies)
            }
            None => self.sums.least_std_dev(budget, copies),
        }
    }

    /// Prepares the step sizes and the average, and checks that no iterate can exceed the range of the float type, where the
    /// run might fail depending on the data.
    ///
    /// # Formula
    /// With `K` a bound on the norm of a step's noise and `b` the maximum batch size, a step's noisy sum has norm at most
    /// `bC + K`; [`Descent::check_range`] bounds how far such steps lead. `K` is 1000 times the noise's expected norm, which
    /// it exceeds with probability below `e^-900`.
    pub(super) fn prepare(
        &self,
        schedule: &Schedule,
        averaging: &Averaging,
        std_dev: f64,
    ) -> Result<(StepSizes, AveragingWeights), Error> {
        let updates = self.updates();
        let steps = schedule.prepare(updates)?;
        let noise = self.largest_noise(std_dev);
        let sum = &self.sums.sum;
        self.check_range(&steps, sum.contributions.bound() * sum.examples as f64 + noise, std_dev)?;
        Ok((steps, averaging.prepare(updates)?))
    }

    /// Returns K of [`prepare`](Self::prepare).
    pub(super) fn largest_noise(&self, std_dev: f64) -> f64 {
        // An increment of a stream is the difference of two of its sums.
        let most = self.factor.as_ref().map_or(1.0, |factor| 2.0 * factor.largest_error().max(1.0));
        1000.0 * most * std_dev * (self.parameters() as f64).sqrt()
    }

    /// Checks step sizes for noisy sums of at most this norm.
    pub(super) fn check_range(&self, steps: &StepSizes, sum: f64, std_dev: f64) -> Result<(), Error> {
        self.proximal_map(steps)?;
        self.last_map(steps)?;
        self.descent.check_range(&Range {
            recipe: self.recipe,
            steps,
            updates: self.updates(),
            sum,
            divisor: self.divisor,
            lambda: self.lambda,
            radius: self.radius,
            penalty: self.penalty.as_ref(),
            parameters: self.parameters(),
            std_dev,
            float: self.float,
        })
    }

    /// Returns the number of rows that a run reads, on average.
    pub fn rows(&self) -> u64 {
        match self.batching {
            Batching::Drawn(law) => law.nominal_size().saturating_mul(self.updates()),
            Batching::Passes { passes, .. } | Batching::Parties { rounds: passes, .. } => self.n.saturating_mul(passes),
        }
    }

    pub(super) fn describe_batches(&self) -> String {
        match self.batching {
            Batching::Drawn(BatchLaw::Poisson { .. }) => {
                format!("{} steps on Poisson batches of {:.1} on average", self.updates(), self.divisor)
            }
            Batching::Drawn(law) => {
                format!("{} steps on random batches of {}", self.updates(), law.nominal_size())
            }
            Batching::Passes { passes, batch_size, .. } if batch_size >= self.n => {
                format!("{passes} passes, all records at each step")
            }
            Batching::Passes { passes, batch_size, .. } => format!("{passes} passes, batches of {batch_size}"),
            Batching::Parties { rounds, parties, .. } => format!("{rounds} rounds of {parties} parties"),
        }
    }
}
