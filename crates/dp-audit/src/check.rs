//! One-call audit of a mechanism: two values, a score, a verdict.

use dp_accountant::{Adjacency, EventLog};
use dp_mechanisms::{Bounded, Mechanism, SeededRng, Sensitivity};

use crate::audit::Audit;
use crate::auditor::Auditor;
use crate::error::Error;
use crate::subject::{Claim, Side, Statistic, Subject};

/// Audits a mechanism's own event on a pair of values within its sensitivity.
///
/// `score` should increase with the likelihood of `neighbour`: for additive noise, the output's projection on `neighbour -
/// base`. If no such number is known, or several are useful, create a [`MechanismSubject`] with [`Statistic::Learned`].
///
/// # Errors
/// Errors of the mechanism, and an event that the accountant rejects.
///
/// # Examples
/// ```
/// use dp_accountant::ReplaceOne;
/// use dp_audit::{Auditor, Verdict, check};
/// use dp_mechanisms::{Gaussian, L2Sensitivity};
///
/// let sensitivity = L2Sensitivity::<ReplaceOne>::new(1.0)?;
/// let gaussian = Gaussian::from_std_dev(sensitivity, 1.0)?;
/// let auditor = Auditor::new(50_000)?;
/// let audit = check(&gaussian, sensitivity, vec![0.0], vec![1.0], |output: &Vec<f64>| output[0], &auditor)?;
/// assert_eq!(audit.verdict, Verdict::NotRefuted);
/// assert!(audit.best_ratio() > 0.9); // mu >= 0.9, with 99.9 % confidence
/// # Ok::<(), dp_audit::Error>(())
/// ```
pub fn check<M, V, A>(
    mechanism: &M,
    sensitivity: Sensitivity<M::Norm, A>,
    base: V,
    neighbour: V,
    score: impl Fn(&M::Output) -> f64 + Send + Sync,
    auditor: &Auditor,
) -> Result<Audit, Error>
where
    M: Mechanism<V, A> + Send + Sync,
    V: Clone + Send + Sync,
    A: Adjacency,
{
    let look = |output: &M::Output, features: &mut Vec<f64>| features.push(score(output));
    let subject = MechanismSubject::new("mechanism", mechanism, sensitivity, base, neighbour, Statistic::Score, look)?;
    auditor.audit(&subject)
}

/// A [`Mechanism`] on a pair of values, as a [`Subject`].
///
/// # Examples
/// ```
/// use dp_accountant::ReplaceOne;
/// use dp_audit::{Auditor, MechanismSubject, Statistic};
/// use dp_mechanisms::{L2Sensitivity, LaplaceBall};
///
/// // No score is known, so one is learned from both coordinates.
/// let sensitivity = L2Sensitivity::<ReplaceOne>::new(1.0)?;
/// let ball = LaplaceBall::from_scale(sensitivity, 1.0, 2)?;
/// let (base, neighbour) = (vec![0.0, 0.0], vec![0.6, 0.8]);
/// let look = |output: &Vec<f64>, features: &mut Vec<f64>| features.extend(output);
/// let subject =
///     MechanismSubject::new("ball", &ball, sensitivity, base, neighbour, Statistic::Learned, look)?.with_pair("0 and a unit vector");
/// let audit = Auditor::new(20_000)?.audit(&subject)?;
/// assert!(audit.epsilon_lower > 0.4 && audit.epsilon_lower <= audit.claimed_epsilon);
/// # Ok::<(), dp_audit::Error>(())
/// ```
pub struct MechanismSubject<'a, M, V, A>
where
    M: Mechanism<V, A>,
    A: Adjacency,
{
    name: String,
    pair: String,
    claim: Claim,
    statistic: Statistic,
    mechanism: &'a M,
    sensitivity: Sensitivity<M::Norm, A>,
    base: V,
    neighbour: V,
    features: Box<Features<'a, M::Output>>,
    relative_cost: f64,
}

/// Appends the observed features of an output, always the same number.
type Features<'a, O> = dyn Fn(&O, &mut Vec<f64>) + Send + Sync + 'a;

impl<'a, M, V, A> MechanismSubject<'a, M, V, A>
where
    M: Mechanism<V, A>,
    A: Adjacency,
{
    /// Creates a subject from a mechanism, a pair of values no further apart than `sensitivity` (which is not checked), and
    /// the observed features of the output with their statistic.
    ///
    /// The claim is the mechanism's event, with [`Claim::new`]'s delta.
    ///
    /// # Errors
    /// An event with a number out of range.
    pub fn new(
        name: impl Into<String>,
        mechanism: &'a M,
        sensitivity: Sensitivity<M::Norm, A>,
        base: V,
        neighbour: V,
        statistic: Statistic,
        features: impl Fn(&M::Output, &mut Vec<f64>) + Send + Sync + 'a,
    ) -> Result<Self, Error> {
        Ok(Self {
            name: name.into(),
            pair: "two neighbouring values".to_owned(),
            claim: Claim::new(mechanism.event())?,
            statistic,
            mechanism,
            sensitivity,
            base,
            neighbour,
            features: Box::new(features),
            relative_cost: 1.0,
        })
    }

    /// Replaces the claim, by default the mechanism's own event.
    pub fn with_claim(self, claim: Claim) -> Self {
        Self { claim, ..self }
    }

    /// Sets the description of the pair.
    pub fn with_pair(self, pair: impl Into<String>) -> Self {
        Self { pair: pair.into(), ..self }
    }

    /// Sets the [`relative_cost`](Subject::relative_cost).
    pub fn with_relative_cost(self, relative_cost: f64) -> Self {
        Self { relative_cost, ..self }
    }
}

impl<M, V, A> Subject for MechanismSubject<'_, M, V, A>
where
    M: Mechanism<V, A> + Send + Sync,
    V: Clone + Send + Sync,
    A: Adjacency,
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
    fn relative_cost(&self) -> f64 {
        self.relative_cost
    }

    fn observe(&self, side: Side, rng: &mut SeededRng, features: &mut Vec<f64>) -> Result<(), Error> {
        let value = match side {
            Side::Base => self.base.clone(),
            Side::Neighbour => self.neighbour.clone(),
        };
        let bounded = Bounded::with_proven_sensitivity(value, self.sensitivity);
        let released = self.mechanism.release(bounded, &mut EventLog::new(), rng)?;
        (self.features)(released.get(), features);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
