//! The subject of an audit: a mechanism or a training recipe on one pair of neighbouring inputs.

use dp_accountant::{Delta, DpEvent, bound};
use dp_mechanisms::SeededRng;

use crate::error::Error;

/// The input that a trial runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Side {
    /// The input without the record that the attacker looks for.
    Base,
    /// Its neighbour.
    Neighbour,
}

impl Side {
    /// Returns the other input of the pair.
    pub fn other(self) -> Self {
        match self {
            Self::Base => Self::Neighbour,
            Self::Neighbour => Self::Base,
        }
    }
}

/// The reduction of an output's features to the number on which the attacker decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Statistic {
    /// The first feature, which increases with the likelihood of [`Side::Neighbour`]; the threshold is selected on half of
    /// the runs.
    Score,
    /// The first feature is the indicator of an event fixed beforehand, so nothing is selected.
    Event,
    /// A logistic regression on all features, trained on half of the runs, then a threshold.
    Learned,
}

/// The claim for a subject: the event of its whole run, and the delta at which epsilon is stated.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The event of the run; the audit tries to refute its curve.
    pub event: DpEvent,
    /// The delta at which epsilon is stated; 0 for pure mechanisms.
    pub delta: f64,
}

/// Default delta for stating epsilon of a mechanism that has none at delta = 0.
pub const USUAL_DELTA: f64 = 1e-5;

impl Claim {
    /// States epsilon at delta = 0 if the event has a finite epsilon there, and at [`USUAL_DELTA`] otherwise.
    ///
    /// # Errors
    /// A number in the event that is out of range.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::DpEvent;
    /// use dp_audit::Claim;
    /// assert_eq!(Claim::new(DpEvent::PureDp { epsilon: 1.0 })?.delta, 0.0);
    /// assert_eq!(Claim::new(DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 })?.delta, 1e-5);
    /// # Ok::<(), dp_audit::Error>(())
    /// ```
    pub fn new(event: DpEvent) -> Result<Self, Error> {
        let pure = bound::epsilon(&event, Delta::ZERO)?.value.is_finite();
        Ok(Self { event, delta: if pure { 0.0 } else { USUAL_DELTA } })
    }
}

/// A mechanism or a recipe, run repeatedly on two neighbouring inputs.
///
/// Trials are independent: all randomness comes from `rng`, which is derived from the seed and the trial's index, so that
/// results depend neither on threads nor on order. A trial may derive streams from `rng`: no other trial has its key.
pub trait Subject: Send + Sync {
    /// Returns its name, unique among the subjects of a run.
    fn name(&self) -> &str;

    /// Describes the pair of inputs.
    fn pair(&self) -> &str;

    /// Returns the claim.
    fn claim(&self) -> &Claim;

    /// Returns the use of the features.
    fn statistic(&self) -> Statistic;

    /// Runs once on one of the inputs and appends the attacker's observations to `features`: at least one number, and always
    /// the same number.
    ///
    /// # Errors
    /// Only for parameters that the subject rejects, never for what was drawn.
    fn observe(&self, side: Side, rng: &mut SeededRng, features: &mut Vec<f64>) -> Result<(), Error>;

    /// Returns the cost of one trial relative to the release of one number: with a shared budget, a subject of cost 50 runs a
    /// fiftieth as often.
    fn relative_cost(&self) -> f64 {
        1.0
    }

    /// Returns the useful number of trials per side, if known; it overrides the budget.
    fn trials_hint(&self) -> Option<u64> {
        None
    }
}

macro_rules! forward {
    ($pointer:ty) => {
        impl<S: Subject + ?Sized> Subject for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }
            fn pair(&self) -> &str {
                (**self).pair()
            }
            fn claim(&self) -> &Claim {
                (**self).claim()
            }
            fn statistic(&self) -> Statistic {
                (**self).statistic()
            }
            fn observe(&self, side: Side, rng: &mut SeededRng, features: &mut Vec<f64>) -> Result<(), Error> {
                (**self).observe(side, rng, features)
            }
            fn relative_cost(&self) -> f64 {
                (**self).relative_cost()
            }
            fn trials_hint(&self) -> Option<u64> {
                (**self).trials_hint()
            }
        }
    };
}
forward!(Box<S>);
forward!(&S);

/// A [`Subject`] from a closure; see [`from_fn`].
pub struct FromFn<F> {
    name: String,
    pair: String,
    claim: Claim,
    statistic: Statistic,
    relative_cost: f64,
    trials: Option<u64>,
    observe: F,
}

/// Creates a subject from a closure that runs one trial and appends the features.
///
/// # Examples
/// ```
/// use dp_accountant::DpEvent;
/// use dp_audit::{Claim, Side, Statistic, Subject, subject};
/// use rand::RngExt;
///
/// let claim = Claim { event: DpEvent::PureDp { epsilon: 1.0 }, delta: 0.0 };
/// let coin = subject::from_fn("coin", "heads or tails", claim, Statistic::Event, |side, rng, features| {
///     let honest = rng.random::<f64>() < 0.7310585; // e / (1 + e)
///     features.push(f64::from((side == Side::Neighbour) == honest));
///     Ok(())
/// });
/// assert_eq!(coin.name(), "coin");
/// ```
pub fn from_fn<F>(
    name: impl Into<String>,
    pair: impl Into<String>,
    claim: Claim,
    statistic: Statistic,
    observe: F,
) -> FromFn<F>
where
    F: Fn(Side, &mut SeededRng, &mut Vec<f64>) -> Result<(), Error> + Send + Sync,
{
    FromFn { name: name.into(), pair: pair.into(), claim, statistic, relative_cost: 1.0, trials: None, observe }
}

impl<F> FromFn<F> {
    /// Sets the [`relative_cost`](Subject::relative_cost).
    pub fn with_relative_cost(self, relative_cost: f64) -> Self {
        Self { relative_cost, ..self }
    }

    /// Sets the [`trials_hint`](Subject::trials_hint).
    pub fn with_trials(self, trials: u64) -> Self {
        Self { trials: Some(trials), ..self }
    }
}

impl<F> Subject for FromFn<F>
where
    F: Fn(Side, &mut SeededRng, &mut Vec<f64>) -> Result<(), Error> + Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }
    fn pair(&self) -> &str {
        &self.pair
    }
    fn claim(&self) -> &Claim {
        &self.claim
    }
    fn statistic(&self) -> Statistic {
        self.statistic
    }
    fn observe(&self, side: Side, rng: &mut SeededRng, features: &mut Vec<f64>) -> Result<(), Error> {
        (self.observe)(side, rng, features)
    }
    fn relative_cost(&self) -> f64 {
        self.relative_cost
    }
    fn trials_hint(&self) -> Option<u64> {
        self.trials
    }
}
