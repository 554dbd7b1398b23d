//! User-defined mechanisms: a claimed cost of one release, and a function that releases.
//!
//! ```text
//! CustomMechanism::new(name, claim, sensitivity, |value, rng| ...)
//!      │                                            │
//!      ├─ PrivacyEvent: every accountant composes it
//!      ├─ EventLog: `claimed_by_user (name)` among the assumptions, so every certificate says so
//!      └─ Mechanism: takes a Bounded by value, releases once, can be audited
//! ```
//! The library checks that a [`Claim`] is valid (its numbers are privacy parameters) and that the input has at most the stated
//! sensitivity. The author promises that the function satisfies the claim; the certificate names the mechanism, and an audit can
//! try to refute the claim.
//!
//! # The author's promise
//! * For any two values that differ by at most the sensitivity, in its norm, the law of the function's result satisfies the
//!   claim. This covers the whole result, including outputs that are returned only sometimes or whose length varies.
//! * The result depends only on the value, on `rng` and on public parameters. All randomness comes from `rng`; a separate
//!   generator would neither be logged nor reproducible.
//! * The value leaves only through the result. The function sees it, because it must; it prints nothing, stores nothing (a `Fn`
//!   closure could, in a `Cell`), and does not panic or fail depending on it. Errors are for a generator that is stuck or for a
//!   value of the wrong shape, if the shape is public.
//! * The claim covers the computed result: noise by [`crate::exact`] and integers, or floating-point noise with
//!   [`CustomMechanism::assuming`] [`Assumption::IdealisedFloat`].
//!
//! # Examples
//! Noise on the integers with truncated tails, at the cost of a delta:
//! ```
//! use dp_accountant::certificate::Assumption;
//! use dp_accountant::{Delta, Epsilon, EventLog, ZeroOut, bound};
//! use dp_mechanisms::custom::{Claim, CryptoRng, CustomMechanism};
//! use dp_mechanisms::{Bounded, L1Sensitivity, Mechanism, OsSeeded, exact};
//!
//! let claim = Claim::ApproxDp { epsilon: Epsilon::new(0.5)?, delta: Delta::new(1e-9)? };
//! let sensitivity = L1Sensitivity::<ZeroOut>::new(1.0)?;
//! // Scale 2 and sensitivity 1 give epsilon 1/2, except for the one output that the neighbour cannot produce: the end of a
//! // tail, P(noise <= -41) = e^(-41/2) / (1 + e^(-1/2)) < 7.8e-10.
//! let count = CustomMechanism::new("short-tailed count", claim, sensitivity, |value: i64, rng: &mut dyn CryptoRng| {
//!     let noise = exact::discrete_laplace(2, 1, rng)?.clamp(-41, 41);
//!     Ok(value.saturating_add(noise as i64))
//! })?;
//!
//! let mut log = EventLog::new();
//! let visits = Bounded::with_proven_sensitivity(1_234_i64, sensitivity);
//! let released = count.release(visits, &mut log, &mut OsSeeded::new()?)?;
//! assert!((released.get() - 1_234).abs() <= 41);
//! assert_eq!(bound::epsilon(&log.to_event(), Delta::new(1e-9)?)?.value, 0.5);
//! assert_eq!(log.assumptions(), [Assumption::ClaimedByUser { mechanism: "short-tailed count".to_owned() }]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod claim;
mod finite_pair;
mod loss_ccdf;
mod rdp_curve;
#[cfg(test)]
mod tests;

use core::fmt;
use core::marker::PhantomData;

pub use rand::CryptoRng;

use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_accountant::{Adjacency, DpEvent, EventLog};

pub use claim::Claim;
pub use finite_pair::FinitePair;
pub use loss_ccdf::LossCcdf;
pub use rdp_curve::RdpCurve;

use crate::bounded::{Bounded, Secret};
use crate::error::Error;
use crate::mechanism::{Mechanism, PrivacyEvent};
use crate::release::{self, Cost};
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::sensitivity::{Norm, Sensitivity};

/// A mechanism that consists of a name, a [`Claim`] and a function. See the [module](self).
///
/// `S` determines the input: with a [`Sensitivity`] it is a [`Mechanism`] for [`Bounded`] values; with [`AnyValue`],
/// [`release_any`](Self::release_any) takes a [`Secret`].
///
/// A bound in another norm, or under another relation, is not accepted:
/// ```compile_fail,E0308
/// # use dp_accountant::{Epsilon, EventLog, ZeroOut}; use dp_mechanisms::{*, custom::*};
/// fn norms(value: Bounded<i64, ZeroOut, L2>, log: &mut EventLog<ZeroOut>, rng: &mut OsSeeded) -> Result<(), Error> {
///     let l1 = L1Sensitivity::<ZeroOut>::new(1.0)?;
///     let mine = CustomMechanism::new("mine", Claim::Gdp(1.0), l1, |v: i64, _: &mut dyn CryptoRng| Ok(v))?;
///     mine.release(value, log, rng)?;
///     Ok(())
/// }
/// ```
/// ```compile_fail,E0308
/// # use dp_accountant::{Epsilon, EventLog, ReplaceOne, ZeroOut}; use dp_mechanisms::{*, custom::*};
/// fn relations(value: Bounded<i64, ReplaceOne, L1>, log: &mut EventLog<ZeroOut>, rng: &mut OsSeeded) -> Result<(), Error> {
///     let l1 = L1Sensitivity::<ZeroOut>::new(1.0)?;
///     let mine = CustomMechanism::new("mine", Claim::Gdp(1.0), l1, |v: i64, _: &mut dyn CryptoRng| Ok(v))?;
///     mine.release(value, log, rng)?;
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct CustomMechanism<S, F> {
    name: String,
    event: DpEvent,
    takes: S,
    assumptions: Vec<Assumption>,
    release: F,
}

/// The input of [`CustomMechanism::for_any_value`]: any value, where any other value may be the neighbour's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnyValue<A: Adjacency>(PhantomData<A>);

impl<N: Norm, A: Adjacency, F> CustomMechanism<Sensitivity<N, A>, F> {
    /// Creates a mechanism for values of at most this sensitivity.
    ///
    /// `release` receives the value and a generator, and returns the published result. `V` and `Out` are its own types; write the
    /// types of a closure's arguments: `|value: Vec<f64>, rng: &mut dyn CryptoRng| ...`.
    ///
    /// # Privacy
    /// The author's promise is in the [module's documentation](self); every log and certificate names the mechanism.
    ///
    /// # Errors
    /// [`Error::MechanismName`] for a name that is empty or contains control characters, and those of [`Claim::event`].
    pub fn new<V, Out>(
        name: impl Into<String>,
        claim: Claim,
        sensitivity: Sensitivity<N, A>,
        release: F,
    ) -> Result<Self, Error>
    where
        F: Fn(V, &mut dyn CryptoRng) -> Result<Out, Error>,
    {
        Self::build(name.into(), &claim, sensitivity, release)
    }

    /// Returns the largest accepted sensitivity.
    pub fn sensitivity(&self) -> Sensitivity<N, A> {
        self.takes
    }
}

impl<A: Adjacency, F> CustomMechanism<AnyValue<A>, F> {
    /// Creates a mechanism whose claim holds between *any* two values, such as one record that sends its own answer.
    ///
    /// # Privacy
    /// The fact that a record answers reveals something about it: if neighbours have one record more or fewer, its absence must
    /// be one of the values.
    ///
    /// # Errors
    /// As [`new`](CustomMechanism::new).
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{Delta, Epsilon, EventLog, ReplaceOne, bound};
    /// use dp_mechanisms::custom::{Claim, CryptoRng, CustomMechanism};
    /// use dp_mechanisms::{OsSeeded, Secret, exact};
    ///
    /// // Warner's design: the truth with probability 3/4. epsilon = ln 3, rounded up.
    /// let claim = Claim::PureEps(Epsilon::new(3f64.ln().next_up())?);
    /// let warner = CustomMechanism::for_any_value("Warner", claim, |answer: bool, rng: &mut dyn CryptoRng| {
    ///     Ok(answer ^ exact::bernoulli(1, 4, rng)?)
    /// })?;
    /// let mut log = EventLog::<ReplaceOne>::new();
    /// let answer = warner.release_any(Secret::new(true), &mut log, &mut OsSeeded::new()?)?;
    /// let _: &bool = answer.get();
    /// assert!((bound::epsilon(&log.to_event(), Delta::ZERO)?.value - 3f64.ln()).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_any_value<V, Out>(name: impl Into<String>, claim: Claim, release: F) -> Result<Self, Error>
    where
        F: Fn(V, &mut dyn CryptoRng) -> Result<Out, Error>,
    {
        Self::build(name.into(), &claim, AnyValue(PhantomData), release)
    }

    /// Releases a value by a mechanism [for any value](Self::for_any_value).
    ///
    /// # Privacy
    /// As [`Mechanism::release`]: the value is moved, and its cost is logged in the same call.
    ///
    /// # Errors
    /// Those of the function; in this case nothing is logged.
    pub fn release_any<V, Out, R>(
        &self,
        input: Secret<V>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Out>, Error>
    where
        F: Fn(V, &mut dyn CryptoRng) -> Result<Out, Error>,
        R: ReleaseRng + ?Sized,
    {
        release::secret(input, self.cost(), log, rng, |value, mut rng| (self.release)(value, &mut rng))
    }
}

impl<S, F> CustomMechanism<S, F> {
    fn build(name: String, claim: &Claim, takes: S, release: F) -> Result<Self, Error> {
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            return Err(Error::MechanismName { name });
        }
        let event = claim.event()?;
        let assumptions = vec![Assumption::ClaimedByUser { mechanism: name.clone() }];
        Ok(Self { name, event, takes, assumptions, release })
    }

    /// Adds another assumption of the claim: each release adds it to its log, and a certificate lists it.
    pub fn assuming(mut self, assumption: Assumption) -> Self {
        if !self.assumptions.contains(&assumption) {
            self.assumptions.push(assumption);
        }
        self
    }

    /// Returns its name, as in certificates.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its assumptions; the first is the author's claim itself.
    pub fn assumptions(&self) -> &[Assumption] {
        &self.assumptions
    }

    fn cost(&self) -> Cost {
        Cost { event: self.event.clone(), noise: NoiseMode::Exact, assumptions: self.assumptions.clone() }
    }
}

impl<S, F> PrivacyEvent for CustomMechanism<S, F> {
    fn event(&self) -> DpEvent {
        self.event.clone()
    }
}

impl<V, Out, N, A, F> Mechanism<V, A> for CustomMechanism<Sensitivity<N, A>, F>
where
    N: Norm,
    A: Adjacency,
    F: Fn(V, &mut dyn CryptoRng) -> Result<Out, Error>,
{
    type Norm = N;
    type Output = Out;

    /// # Errors
    /// [`Error::SensitivityExceeded`], and those of the function; in these cases nothing is logged.
    fn release<R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<V, A, N>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Out>, Error> {
        release::bounded(input, self.takes, self.cost(), log, rng, |value, mut rng| (self.release)(value, &mut rng))
    }
}

impl<S: fmt::Debug, F> fmt::Debug for CustomMechanism<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomMechanism")
            .field("name", &self.name)
            .field("event", &self.event)
            .field("takes", &self.takes)
            .finish_non_exhaustive()
    }
}
