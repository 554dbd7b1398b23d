//! What all private recipes have in common: a plan from public numbers, then a training that follows it.

use dp_accountant::certificate::{Derivation as Derives, EpsilonDelta};
use dp_accountant::{Adjacency, Delta, DpEvent, Epsilon, EventLog, ReplaceOne, ZeroOut, calibrate};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;

use super::promise::Promise;
use crate::engine::Control;
use crate::error::Error;
use crate::trained::Trained;

/// A budget: what a release, or all of its copies together, may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Epsilon.
    pub epsilon: Epsilon,
    /// Delta; 0 asks for pure differential privacy.
    pub delta: Delta,
}

/// A neighbouring relation under which one record differs and the number of records is public: [`ReplaceOne`] and
/// [`ZeroOut`]. Under another relation a recipe does not compile.
///
/// The null record of [`ZeroOut`] is one that the source marks invalid ([`Block::valid`](dp_data::Block::valid)): it keeps
/// its place and adds nothing to a sum or a count. A row of zeros that is not marked is a record like any other.
///
/// ```compile_fail,E0277
/// # use dp_optim::recipes::{BoltOn, Budget, Recipe}; use dp_losses::LossKind;
/// fn plan(recipe: &BoltOn, budget: Budget) {
///     // Adding a record moves every later record to another batch: no bound is known.
///     let _ = recipe.plan::<dp_accountant::AddRemoveOne>(1000, 10, budget);
/// }
/// ```
pub trait RecordAdjacency: Adjacency + PartialEq {
    /// The log under this relation of releases that were logged under [`ZeroOut`]: the same, or under replace-one each at
    /// the price of two records ([`DpEvent::AddRemoveTwice`]), since a replacement takes one record out and puts another
    /// in.
    fn from_null_records(log: EventLog<ZeroOut>) -> EventLog<Self>
    where
        Self: Sized;
}

impl RecordAdjacency for ReplaceOne {
    fn from_null_records(log: EventLog<ZeroOut>) -> EventLog<Self> {
        EventLog::accounting_for(DpEvent::AddRemoveTwice { event: Box::new(log.to_event()) }, &log)
    }
}

impl RecordAdjacency for ZeroOut {
    fn from_null_records(log: EventLog<ZeroOut>) -> EventLog<Self> {
        log
    }
}

/// A private training algorithm with its public parameters.
///
/// What tunes, repeats, or trains one model per class drives any algorithm through this trait.
pub trait Recipe: Clone {
    /// What planning gives.
    type Plan<A: RecordAdjacency>: Planned<A> + Clone + core::fmt::Debug + PartialEq;

    /// Derives sensitivity, noise, event and guarantee for `n` records of `dim` features, before any data is read, such
    /// that `copies` releases on the same records together stay within the budget.
    ///
    /// # Errors
    /// Parameters outside their range or outside what is proved ([`Error::NotProved`]), and a budget that no noise
    /// reaches.
    fn plan_copies<A: RecordAdjacency>(
        &self,
        n: u64,
        dim: u64,
        budget: Budget,
        copies: u64,
    ) -> Result<Self::Plan<A>, Error>;

    /// The plan of one release within the budget, before any data is read.
    ///
    /// # Privacy
    /// `n` and `dim` are public under both relations.
    ///
    /// # Errors
    /// As [`plan_copies`](Self::plan_copies).
    fn plan<A: RecordAdjacency>(&self, n: u64, dim: u64, budget: Budget) -> Result<Self::Plan<A>, Error> {
        self.plan_copies(n, dim, budget, 1)
    }
}

/// Public figures of a planned release, for people and progress bars.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// L2 sensitivity of what noise is added to, where it is the same throughout: the model, or one step's sum.
    pub sensitivity: Option<f64>,
    /// Rows that training goes through: records times passes, or the expected number where batches are drawn.
    pub rows: u64,
    /// Noise and settings on one line, such as `sensitivity 0.02, noise of norm 0.11, 10 passes, batches of 50`.
    pub text: String,
}

/// A planned release: everything that is known before data is read.
pub trait Planned<A: RecordAdjacency> {
    /// How its releases follow from public parameters.
    type Derivation: Derives<Error = Error> + Clone;

    /// The event, what was asked for and what is reached.
    fn promise(&self) -> &Promise;

    /// The event of one release, as the accountant sees it. The [derivation](Self::derivation) recomputes the same.
    fn event(&self) -> DpEvent {
        self.promise().event().clone()
    }

    /// What was asked for, for all copies.
    fn requested(&self) -> EpsilonDelta {
        self.promise().requested()
    }

    /// What all copies reach together: at most what was asked for.
    fn reached(&self) -> EpsilonDelta {
        self.promise().reached()
    }

    /// How the release follows from public parameters.
    fn derivation(&self) -> Self::Derivation;

    /// Sensitivity, noise and settings, for people.
    fn summary(&self) -> Summary;

    /// Trains on `source` and releases the model.
    ///
    /// # Privacy
    /// The source must keep the bounds on rows and targets that its description states, and deliver the same records in
    /// every pass. A generator that is not secret marks the result as not private.
    ///
    /// # Errors
    /// A source of another shape or with wider bounds than planned or that fails, [`Error::Interrupted`], a
    /// floating-point type other than planned. Nothing has been released then.
    fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, Self::Derivation>, Error>;
}

/// `event`, `copies` times on the same records.
pub(crate) fn repeated(event: DpEvent, copies: u64) -> DpEvent {
    if copies == 1 { event } else { DpEvent::SelfComposed { event: Box::new(event), count: copies } }
}

/// The least scale of noise with which `copies` events together stay within the budget.
///
/// # Errors
/// A budget that no scale reaches.
pub fn least_scale(budget: Budget, copies: u64, event_at: impl Fn(f64) -> DpEvent) -> Result<f64, Error> {
    Ok(calibrate::least_scale(budget.epsilon, budget.delta, |scale| repeated(event_at(scale), copies))?)
}

/// Refuses 0 copies, which would ask for no noise.
pub(crate) fn check_copies(copies: u64) -> Result<(), Error> {
    if copies == 0 {
        return Err(Error::Count { name: "copies", value: 0, range: "1 or more" });
    }
    Ok(())
}
