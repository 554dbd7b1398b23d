//! The traits common to all private recipes: a plan from public numbers, and the training that follows it.

use dp_accountant::certificate::EpsilonDelta;
use dp_accountant::{Adjacency, Delta, DpEvent, Epsilon, EventLog, ReplaceOne, ZeroOut, calibrate};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;

use super::bolt_on::OutputRun;
use super::promise::Promise;
use crate::derivation::{DerivesModel, ModelTerms};
use crate::engine::{Control, minimise};
use crate::error::Error;
use crate::trained::Trained;

/// A privacy budget: the maximum cost of a release, or of all of its copies together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Epsilon.
    pub epsilon: Epsilon,
    /// Delta; 0 asks for pure differential privacy.
    pub delta: Delta,
}

impl Budget {
    /// Creates a budget.
    ///
    /// # Errors
    /// An epsilon or delta outside its range.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, dp_accountant::Error> {
        Ok(Self { epsilon: Epsilon::new(epsilon)?, delta: Delta::new(delta)? })
    }
}

/// Returns a budget, for tests.
#[cfg(test)]
pub(crate) fn budget(epsilon: f64, delta: f64) -> Budget {
    Budget::new(epsilon, delta).unwrap()
}

/// A neighbouring relation under which one record differs and the number of records is public: [`ReplaceOne`] and [`ZeroOut`].
/// Under another relation a recipe does not compile.
///
/// The null record of [`ZeroOut`] is one that the source marks invalid ([`Block::valid`](dp_data::Block::valid)): it keeps its
/// place and adds nothing to a sum or a count. An unmarked row of zeros is a record like any other.
///
/// ```compile_fail,E0277
/// # use dp_optim::recipes::{BoltOn, Budget, Recipe}; use dp_losses::LossKind;
/// fn plan(recipe: &BoltOn, budget: Budget) {
///     // Adding a record moves every later record to another batch: no bound is known.
///     let _ = recipe.plan::<dp_accountant::AddRemoveOne>(1000, 10, budget);
/// }
/// ```
pub trait RecordAdjacency: Adjacency + PartialEq {
    /// Converts the log of releases under [`ZeroOut`] to this relation: unchanged, or under replace-one each at the cost of
    /// two records ([`DpEvent::AddRemoveTwice`]), since a replacement is a removal and an addition.
    fn from_null_records(log: EventLog<ZeroOut>) -> EventLog<Self>
    where
        Self: Sized;
}

impl RecordAdjacency for ReplaceOne {
    fn from_null_records(log: EventLog<ZeroOut>) -> EventLog<Self> {
        EventLog::accounting_for(DpEvent::AddRemoveTwice { event: Box::new(log.to_event()) }, &log, &[])
    }
}

impl RecordAdjacency for ZeroOut {
    fn from_null_records(log: EventLog<ZeroOut>) -> EventLog<Self> {
        log
    }
}

/// A private training algorithm with its public parameters.
///
/// Code that tunes, repeats, or trains one model per class uses any algorithm through this trait.
pub trait Recipe: Clone {
    /// The plan of a release.
    type Plan<A: RecordAdjacency>: Planned<A> + Clone + core::fmt::Debug + PartialEq;

    /// Derives sensitivity, noise, event and guarantee for `n` records of `dim` features, before any data is read, such that
    /// `copies` releases on the same records together stay within the budget.
    ///
    /// # Errors
    /// Parameters outside their range or outside the proof ([`Error::NotProved`]), and a budget that no noise can meet.
    fn plan_copies<A: RecordAdjacency>(
        &self,
        n: u64,
        dim: u64,
        budget: Budget,
        copies: u64,
    ) -> Result<Self::Plan<A>, Error>;

    /// Plans one release within the budget, before any data is read.
    ///
    /// # Privacy
    /// `n` and `dim` are public under both relations.
    ///
    /// # Errors
    /// As [`plan_copies`](Self::plan_copies).
    fn plan<A: RecordAdjacency>(&self, n: u64, dim: u64, budget: Budget) -> Result<Self::Plan<A>, Error> {
        self.plan_copies(n, dim, budget, 1)
    }

    /// Plans one release of `classes` models together, and returns the derivation of one of them with the noise of all:
    /// [`Algorithm::calibrate_joint`](super::Algorithm::calibrate_joint).
    ///
    /// # Errors
    /// As [`plan_copies`](Self::plan_copies); [`Error::NotProved`] for an algorithm that does not release once, at its end.
    fn plan_joint<A: RecordAdjacency>(
        &self,
        _n: u64,
        _dim: u64,
        _classes: u32,
        _budget: Budget,
        _copies: u64,
    ) -> Result<(OutputRun, DerivationOf<Self, A>), Error> {
        Err(NOT_JOINT)
    }
}

/// The derivation of a recipe's plans.
pub type DerivationOf<R, A> = <<R as Recipe>::Plan<A> as Planned<A>>::Derivation;

/// The error for a joint release by an algorithm that releases more than its last iterate.
pub(crate) const NOT_JOINT: Error = Error::NotProved {
    recipe: "one-vs-all",
    why: "only the bolt-on recipes release once, at the end: choose the composed share",
};

/// The kind of a derivation, which limits the recipes that contain it: nested choices would take too long to verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nesting {
    /// One algorithm: may be a candidate of tuning, and train one class against the rest.
    Single,
    /// One model for each class: may be a candidate of tuning.
    Classes,
    /// A model with a threshold of its own: is not contained in another recipe.
    Threshold,
    /// A choice among candidates: is not contained in another recipe.
    Choice,
    /// All rows of a unit together: is not contained in another recipe, and contains any other private one.
    Unit,
    /// The baseline without privacy: is not contained in another recipe.
    NonPrivate,
}

/// Public numbers of a planned release, for display.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// L2 sensitivity of the value to which noise is added, if it is always the same: the model, or one step's sum.
    pub sensitivity: Option<f64>,
    /// Number of rows that training reads: records times passes, or the expected number for drawn batches.
    pub rows: u64,
    /// Noise and settings on one line, such as `sensitivity 0.02, noise of norm 0.11, 10 passes, batches of 50`.
    pub text: String,
}

/// A planned release: all numbers that are known before data is read.
pub trait Planned<A: RecordAdjacency>: Sync {
    /// The derivation of its releases from public parameters.
    type Derivation: DerivesModel + Clone + core::fmt::Debug + PartialEq + Sync;

    /// Returns the event, the requested and the reached guarantee.
    fn promise(&self) -> &Promise;

    /// Returns the event of one release, as the accountant sees it. The [derivation](Self::derivation) recomputes the same.
    fn event(&self) -> DpEvent {
        self.promise().event().clone()
    }

    /// Returns the requested guarantee, for all copies.
    fn requested(&self) -> EpsilonDelta {
        self.promise().requested()
    }

    /// Returns the reached guarantee of all copies together, at most the requested one.
    fn reached(&self) -> EpsilonDelta {
        self.promise().reached()
    }

    /// Returns the derivation of the release.
    fn derivation(&self) -> Self::Derivation;

    /// Returns sensitivity, noise and settings, for display.
    fn summary(&self) -> Summary;

    /// Returns about how many bytes a training takes besides the records. Trainings run side by side as far as there is memory.
    fn memory(&self) -> u64;

    /// Trains on `source` and releases the model.
    ///
    /// # Privacy
    /// The source must keep the bounds on rows and targets that its description states, and deliver the same records in every
    /// pass. With a generator that is not secret the result is marked as not private.
    ///
    /// # Errors
    /// A source of another shape or with wider bounds than planned, a failing source, [`Error::Interrupted`], a floating-point
    /// type other than planned. Nothing has been released then.
    fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, Self::Derivation>, Error>;
}

/// Returns about how many bytes a training on `n` records takes besides them: vectors of weights, a preconditioner, a sample of the
/// records, and, if it `holds_square`, three matrices of all pairs of features.
pub(crate) fn memory_of_training(terms: &ModelTerms, n: u64, holds_square: bool) -> u64 {
    const OF_WEIGHT: u64 = 256;
    const LARGEST_PRECONDITIONER: u64 = 1 << 24;
    let pairs = terms.dim().saturating_mul(terms.dim());
    let matrices = if holds_square { 3 } else { 0 };
    let matrices = pairs.saturating_mul(matrices).saturating_add(pairs.min(LARGEST_PRECONDITIONER));
    let numbers = matrices.saturating_add(minimise::sampled_numbers(terms.dim(), n));
    terms.weights.saturating_mul(OF_WEIGHT).saturating_add(numbers.saturating_mul(8))
}

/// Returns `event`, repeated `copies` times on the same records.
pub(crate) fn repeated(event: DpEvent, copies: u64) -> DpEvent {
    if copies == 1 { event } else { DpEvent::SelfComposed { event: Box::new(event), count: copies } }
}

/// Returns the least noise scale for which `copies` events together stay within the budget.
///
/// # Errors
/// A budget that no scale can meet.
pub fn least_scale(budget: Budget, copies: u64, event_at: impl Fn(f64) -> DpEvent) -> Result<f64, Error> {
    Ok(calibrate::least_scale(budget.epsilon, budget.delta, |scale| repeated(event_at(scale), copies))?)
}

/// Rejects 0 copies, which would need no noise.
pub(crate) fn check_copies(copies: u64) -> Result<(), Error> {
    if copies == 0 {
        return Err(Error::Count { name: "copies", value: 0, range: "1 or more" });
    }
    Ok(())
}
