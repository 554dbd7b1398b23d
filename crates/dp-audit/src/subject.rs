//! What is audited: a mechanism or a training recipe on one pair of neighbouring inputs.

use dp_accountant::DpEvent;
use dp_mechanisms::SeededRng;

use crate::error::Error;

/// Which of the two neighbouring inputs a trial runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The input without what the attacker looks for.
    Base,
    /// Its neighbour.
    Neighbour,
}

/// How an output's features become one number on which the attacker decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Statistic {
    /// The first feature, which grows with the likelihood of [`Side::Neighbour`]; the threshold is chosen on half of the
    /// runs.
    Score,
    /// The first feature is 1 for outputs in an event that was fixed beforehand and 0 for others: nothing is chosen.
    Event,
    /// A logistic regression on all features, trained on half of the runs, then a threshold.
    Learned,
}

/// What is claimed of the subject: the event of its whole run, and the delta at which epsilon is stated.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// What the run costs; its curve is what the audit tries to refute.
    pub event: DpEvent,
    /// Where epsilon is stated; 0 for pure mechanisms.
    pub delta: f64,
}

/// A mechanism or a recipe, run again and again on two neighbouring inputs.
///
/// Trials are independent: everything random comes from `rng`, which is derived from the seed and the trial's index, so
/// that results depend neither on threads nor on order.
pub trait Subject: Send + Sync {
    /// Its name, unique among the subjects of a run.
    fn name(&self) -> &str;

    /// The pair of inputs, in words.
    fn pair(&self) -> &str;

    /// What is claimed.
    fn claim(&self) -> &Claim;

    /// How the features are used.
    fn statistic(&self) -> Statistic;

    /// One run on one of the inputs; appends what the attacker sees to `features`.
    ///
    /// # Errors
    /// Only for parameters that the subject refuses, never for what was drawn.
    fn observe(&self, side: Side, rng: &mut SeededRng, features: &mut Vec<f64>) -> Result<(), Error>;
}
