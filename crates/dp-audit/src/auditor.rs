//! The auditor: half of the runs select the attack, the other half test it.

use core::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::audit::Audit;
use crate::error::{self, Error};
use crate::monitor::{Monitor, Unwatched};
use crate::plan::{Plan, train};
use crate::selected::Selected;
use crate::subject::{Statistic, Subject};
use crate::trials::Trials;

/// The default bound on the false-alarm probability of one audit of a sound subject, or of a whole suite.
pub const FALSE_ALARM_RATE: f64 = 1e-3;

/// A bound on epsilon or mu exceeds a claim only by more than this factor, which covers rounding.
pub const TOLERANCE: f64 = 1e-9;

/// Smallest number of runs per side; fewer show nothing.
const FEWEST_TRIALS: u64 = 16;

/// Largest number of runs per side.
const MOST_TRIALS: u64 = 1 << 40;

/// The number of runs, the confidence and the seed of audits.
///
/// # Examples
/// ```
/// use dp_accountant::DpEvent;
/// use dp_audit::{Auditor, Claim, Side, Statistic, Verdict, subject};
/// use rand::RngExt;
///
/// // Laplace noise of scale 1/2 on a value of sensitivity 1, claimed to be that of scale 1.
/// let claim = Claim::new(DpEvent::Laplace { scale: 1.0, sensitivity: 1.0 })?;
/// let broken = subject::from_fn("half-scale", "0 and 1", claim, Statistic::Score, |side, rng, features| {
///     let (sign, size) = (rng.random::<bool>(), -0.5 * rng.random::<f64>().ln());
///     features.push(f64::from(side == Side::Neighbour) + if sign { size } else { -size });
///     Ok(())
/// });
/// let audit = Auditor::new(20_000)?.audit(&broken)?;
/// assert_eq!(audit.verdict, Verdict::Refuted);
/// assert!(audit.epsilon_lower > 1.5 && audit.epsilon_lower < 2.0);
/// # Ok::<(), dp_audit::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Auditor {
    trials: u64,
    /// True if subjects may change the number.
    flexible: bool,
    multiplier: u64,
    failure: f64,
    seed: u64,
    pool: Option<Arc<ThreadPool>>,
}

impl Auditor {
    /// Creates an auditor with about `trials` runs on each input: fewer for a subject more expensive than a scalar release,
    /// or the number given by the subject. Confidence 99.9 %, seed 0, all threads.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for fewer than 16 or more than 2^40.
    pub fn new(trials: u64) -> Result<Self, Error> {
        if !(FEWEST_TRIALS..=MOST_TRIALS).contains(&trials) {
            return Err(Error::OutOfRange { name: "trials", value: trials as f64, range: "[16, 2^40]" });
        }
        Ok(Self { trials, flexible: true, multiplier: 1, failure: FALSE_ALARM_RATE, seed: 0, pool: None })
    }

    /// Creates an auditor with exactly `trials` runs on each input, whatever the subject.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn exactly(trials: u64) -> Result<Self, Error> {
        Ok(Self { flexible: false, ..Self::new(trials)? })
    }

    /// Sets exactly `trials` runs on each input.
    pub(crate) fn exactly_of(self, trials: u64) -> Self {
        Self { trials, flexible: false, multiplier: 1, ..self }
    }

    /// Multiplies the number of runs, for a long audit.
    pub fn with_multiplier(self, multiplier: u64) -> Self {
        Self { multiplier: multiplier.max(1), ..self }
    }

    /// Sets the confidence of each audit.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a confidence outside (0, 1).
    pub fn with_confidence(self, confidence: f64) -> Result<Self, Error> {
        if !(confidence > 0.0 && confidence < 1.0) {
            return Err(Error::OutOfRange { name: "confidence", value: confidence, range: "(0, 1)" });
        }
        self.with_failure_probability(1.0 - confidence)
    }

    /// Sets one minus the confidence, which may be small.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a probability outside (0, 1).
    pub fn with_failure_probability(self, failure: f64) -> Result<Self, Error> {
        Ok(Self { failure: error::failure_probability(failure)?, ..self })
    }

    /// Sets the seed. An audit is a function of subject, seed, confidence and number of runs.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Uses this number of separate threads; results do not depend on it.
    ///
    /// # Errors
    /// [`Error::Threads`].
    pub fn with_threads(self, threads: usize) -> Result<Self, Error> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| Error::Threads { threads, reason: error.to_string() })?;
        Ok(Self { pool: Some(Arc::new(pool)), ..self })
    }

    /// Does the same, or uses only the caller's thread if the threads cannot be started.
    #[must_use]
    pub fn with_threads_if_any(self, threads: usize) -> Self {
        self.clone().with_threads(threads).unwrap_or_else(|_| {
            // A thread that already belongs to such a pool keeps using it.
            let alone = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
            Self { pool: alone.ok().map(Arc::new), ..self }
        })
    }

    /// Returns the upper bound on the probability that an audit of a sound subject refutes it.
    pub fn failure_probability(&self) -> f64 {
        self.failure
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the number of runs on each input of this subject.
    pub fn trials_of(&self, subject: &(impl Subject + ?Sized)) -> u64 {
        let trials = if self.flexible {
            // A cost that is NaN or below 1 counts as 1.
            let cost = subject.relative_cost().max(1.0);
            subject.trials_hint().unwrap_or((self.trials as f64 / cost) as u64)
        } else {
            self.trials
        };
        trials.saturating_mul(self.multiplier).clamp(FEWEST_TRIALS, MOST_TRIALS)
    }

    /// Runs both phases: [`select`](Self::select), then [`evaluate`](Selected::evaluate).
    ///
    /// # Errors
    /// Errors of the subject, and a claim that the accountant rejects.
    pub fn audit(&self, subject: &dyn Subject) -> Result<Audit, Error> {
        self.audit_with(subject, &Unwatched)
    }

    /// Does the same with a monitor.
    ///
    /// # Errors
    /// Those of [`audit`](Self::audit), and [`Error::Cancelled`].
    pub fn audit_with(&self, subject: &dyn Subject, monitor: &dyn Monitor) -> Result<Audit, Error> {
        self.select(subject, monitor)?.evaluate()
    }

    /// Runs the first half and selects the attack: regression and cuts.
    ///
    /// [`evaluate`](Selected::evaluate) tests the attack on separate runs of its own. The runs that selected an attack cannot
    /// be counted.
    ///
    /// # Errors
    /// Those of [`audit_with`](Self::audit_with).
    pub fn select<'a>(&self, subject: &'a dyn Subject, monitor: &'a dyn Monitor) -> Result<Selected<'a>, Error> {
        let claim = subject.claim();
        error::delta(claim.delta)?;
        let per_side = self.trials_of(subject);
        let selecting = match subject.statistic() {
            Statistic::Event => 0,
            Statistic::Score | Statistic::Learned => per_side / 2,
        };
        let trials = Trials {
            subject,
            seed: self.seed,
            monitor,
            done: AtomicU64::new(0),
            total: 2 * per_side,
            width: OnceLock::new(),
        };
        let plan = Plan::new(selecting, per_side - selecting);
        let plan = self.inside(|| match subject.statistic() {
            Statistic::Event => Ok(plan.fixed_event()),
            Statistic::Score => plan.with_cuts(&trials, 0, self.failure),
            Statistic::Learned => {
                let trained = train(&trials, selecting)?;
                plan.with_model(trained.0).with_cuts(&trials, trained.1, self.failure)
            }
        })?;
        Ok(Selected::new(self.clone(), trials, plan))
    }

    /// Runs on this auditor's threads.
    pub(crate) fn inside<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        match &self.pool {
            Some(pool) => pool.install(run),
            None => run(),
        }
    }
}

#[cfg(test)]
mod tests;
