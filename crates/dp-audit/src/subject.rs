//! What is audited: a mechanism or a training recipe on one pair of neighbouring inputs.

use dp_accountant::{Delta, DpEvent, bound};
use dp_mechanisms::SeededRng;

use crate::error::Error;

/// Which of the two neighbouring inputs a trial runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Side {
    /// The input without what the attacker looks for.
    Base,
    /// Its neighbour.
    Neighbour,
}

impl Side {
    /// The other input of the pair.
    pub fn other(self) -> Self {
        match self {
            Self::Base => Self::Neighbour,
            Self::Neighbour => Self::Base,
        }
    }
}

/// How an output's features become one number on which the attacker decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
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

/// Where epsilon is stated of a mechanism that has none at delta = 0, unless the caller says otherwise.
pub const USUAL_DELTA: f64 = 1e-5;

impl Claim {
    /// At delta = 0 where the event has a finite epsilon there, and at [`USUAL_DELTA`] elsewhere.
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

/// A mechanism or a recipe, run again and again on two neighbouring inputs.
///
/// Trials are independent: everything random comes from `rng`, which is derived from the seed and the trial's index, so
/// that results depend neither on threads nor on order. A trial may derive streams of `rng`: no other trial has its key.
pub trait Subject: Send + Sync {
    /// Its name, unique among the subjects of a run.
    fn name(&self) -> &str;

    /// The pair of inputs, in words.
    fn pair(&self) -> &str;

    /// What is claimed.
    fn claim(&self) -> &Claim;

    /// How the features are used.
    fn statistic(&self) -> Statistic;

    /// One run on one of the inputs; appends what the attacker sees to `features`: at least one number, and always as
    /// many.
    ///
    /// # Errors
    /// Only for parameters that the subject refuses, never for what was drawn.
    fn observe(&self, side: Side, rng: &mut SeededRng, features: &mut Vec<f64>) -> Result<(), Error>;

    /// What one trial costs, as a multiple of releasing one number: audits that share a budget run a subject of cost 50 a
    /// fiftieth as often.
    fn relative_cost(&self) -> f64 {
        1.0
    }

    /// How many trials a side are worth while, where the subject knows: a budget is overridden by it.
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

/// Makes a subject of a closure that runs one trial and appends the features.
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
    /// With this [`relative_cost`](Subject::relative_cost).
    pub fn with_relative_cost(self, relative_cost: f64) -> Self {
        Self { relative_cost, ..self }
    }

    /// With this [`trials_hint`](Subject::trials_hint).
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
