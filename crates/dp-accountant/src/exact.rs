//! The exact privacy curve, between two certified bounds.
//!
//! If the dominating pairs of all releases of a tree are known, delta at epsilon is determined. A closed form, a contour integral
//! or a composed privacy loss distribution computes it as a [`Bracket`], both ends of which account for every error of the
//! computation. The upper end is the guarantee.

mod accountant;
mod closed_form;
mod complex;
mod contour;
pub(crate) mod ends;
mod kept;
mod leaf_law;
mod pld;
pub mod single_step;
#[cfg(test)]
mod tests;

pub use self::accountant::ExactAccountant;
pub use crate::bracket::{Bracket, Engine};

use std::sync::OnceLock;

use self::closed_form::ClosedForm;
use self::contour::{Contour, EASED, Effort, PATIENT};
use self::ends::{Ends, WIDE};
use self::pld::{Composed, Grids, Question};
use crate::adjacency::AdjacencyKind;
use crate::error::{Error, non_negative};
use crate::event::DpEvent;
use crate::gaussian::exp_up;
use crate::leaves::failures::take_failures;
use crate::leaves::participation::log_participation;
use crate::leaves::pure::pure_epsilon_of_all;
use crate::leaves::{Leaf, Leaves, leaves, leaves_under};
use crate::params::Delta;
use crate::rdp::RdpCurve;
use crate::work;

/// The exact privacy curve of an event tree, prepared for several evaluations.
///
/// | tree | engine |
/// |---|---|
/// | Gaussians; one mixture beside them; one Laplace release; one sampled Gaussian, also of a replaced record; equal pure guarantees | closed forms |
/// | any of these together, with many repetitions | contour integral |
/// | the same with few repetitions; releases with another dominating pair; events given as a pair | composed loss distributions |
/// | a replaced record of a Poisson sample whose contributions' norms may exceed half their distance | composed loss distributions; below, the pair that two contributions attain |
/// | objective perturbation: its envelope above, the Gaussian mechanism below | alone or beside Gaussians an integral over one loss; composed loss distributions |
/// | approximate guarantees anywhere | their failures as a probability, their epsilons as pure guarantees |
///
/// A pure or approximate guarantee represents the worst mechanism that has it (randomised response). Ratios of sensitivity to
/// noise are rounded up when the tree is read, by less than one unit in the last place; the lower ends are those of the rounded
/// ratios.
///
/// # Privacy
/// The upper end of an epsilon or a delta is a guarantee under every relation under which the tree holds.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, DpEvent, exact::PrivacyCurve};
///
/// let gaussian = DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 };
/// let step = DpEvent::PoissonSampled { sampling_rate: 0.01, event: Box::new(gaussian) };
/// let curve = PrivacyCurve::new(&DpEvent::SelfComposed { event: Box::new(step), count: 10_000 })?;
/// let epsilon = curve.epsilon(Delta::new(1e-5)?)?;
/// assert!((epsilon.upper - 6.18771238997).abs() < 1e-11);
/// assert!(epsilon.upper - epsilon.lower < 1e-9);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PrivacyCurve {
    /// The probability that an approximate guarantee fails.
    failure: Ends,
    method: Method,
}

/// The method that evaluates a tree.
#[derive(Debug, Clone)]
enum Method {
    Closed(ClosedForm),
    /// Numerical engines: the contour if every part has a moment function, and the parts for the loss distributions.
    Numeric(Numeric),
}

/// The engines of a tree without a closed form.
#[derive(Debug, Clone)]
struct Numeric {
    contour: Option<Contour>,
    leaves: Leaves,
    /// Upper bound on the logarithm of delta: the logarithm of the probability that the record is in any sample.
    log_participation: f64,
    /// Prepared when the contour cannot give a result.
    composed: OnceLock<Option<Composed>>,
}

impl PrivacyCurve {
    /// Prepares the curve of `event`.
    ///
    /// # Errors
    /// A number out of range; [`Error::Unsupported`] if no dominating pair is known for a part.
    pub fn new(event: &DpEvent) -> Result<Self, Error> {
        Self::from_leaves(leaves(event, 1)?)
    }

    /// Prepares the curve of `event` under one relation.
    ///
    /// # Errors
    /// Those of [`new`](Self::new), and [`Error::NotUnderRelation`].
    pub fn new_under(event: &DpEvent, relation: AdjacencyKind) -> Result<Self, Error> {
        Self::from_leaves(leaves_under(event, 1, relation)?)
    }

    pub(crate) fn from_leaves(leaves: Leaves) -> Result<Self, Error> {
        let log_survival: f64 = leaves
            .iter()
            .map(|(leaf, count)| match leaf {
                Leaf::Approximate { delta, .. } => *count as f64 * (-delta).ln_1p(),
                _ => 0.0,
            })
            .sum();
        let slack = f64::EPSILON * (8.0 + 2.0 * leaves.len() as f64);
        let (upper, mut leaves) = take_failures(leaves);
        let failure = Ends { lower: (-log_survival.exp_m1() * (1.0 - slack)).min(upper), upper };
        // Releases without privacy loss are omitted, because an engine might not support them.
        leaves.retain(|(leaf, _)| !matches!(leaf, Leaf::Pure { epsilon: 0.0 }));
        let method = match ClosedForm::new(&leaves) {
            Some(closed) => Method::Closed(closed),
            None => {
                let numeric = Numeric {
                    contour: Contour::new(&leaves),
                    log_participation: log_participation(&leaves),
                    leaves,
                    composed: OnceLock::new(),
                };
                if numeric.contour.is_none() && numeric.composed().is_none() {
                    return Err(Error::Unsupported { accountant: "exact", event: unsupported(&numeric.leaves) });
                }
                Method::Numeric(numeric)
            }
        };
        Ok(Self { failure, method })
    }

    /// Returns epsilon at `delta`: infinite if there is no guarantee, as at `delta` = 0 with Gaussian noise.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if no engine gives a result.
    pub fn epsilon(&self, delta: Delta) -> Result<Bracket, Error> {
        let (low, high) = self.targets(delta.get());
        let (Some(high), low) = (high, low.unwrap_or(f64::NEG_INFINITY)) else {
            return Ok(bracket(Ends::exactly(f64::INFINITY), Engine::ClosedForm));
        };
        let possible = self.failure.upper == 0.0 || delta.get() >= self.failure.upper;
        let (ends, engine) = match &self.method {
            Method::Closed(closed) => (closed.epsilon(low, high), Engine::ClosedForm),
            Method::Numeric(numeric) => numeric.epsilon_between(low, high),
        };
        Ok(bracket(if possible { ends } else { Ends { upper: f64::INFINITY, ..ends } }, engine))
    }

    /// Returns delta at `epsilon`.
    ///
    /// # Errors
    /// `epsilon` negative, NaN or infinite; [`Error::Unsupported`] if no engine gives a result.
    pub fn delta(&self, epsilon: f64) -> Result<Bracket, Error> {
        let bracket = self.log_delta(epsilon)?;
        let lower = if bracket.lower == 0.0 { 1.0 } else { exp_down(bracket.lower) };
        Ok(Bracket { lower, upper: exp_up(bracket.upper), ..bracket })
    }

    /// Returns the natural logarithm of delta at `epsilon`.
    ///
    /// # Errors
    /// Those of [`delta`](Self::delta).
    pub fn log_delta(&self, epsilon: f64) -> Result<Bracket, Error> {
        let epsilon = non_negative("epsilon", epsilon)?;
        let (ends, engine) = match &self.method {
            Method::Closed(closed) => (closed.log_delta(epsilon), Engine::ClosedForm),
            Method::Numeric(numeric) => numeric.log_delta_at(epsilon),
        };
        let ends = if self.failure.upper == 0.0 {
            ends
        } else {
            // ln(d + (1 - d) delta), whose rounding is that of a few operations on numbers up to 1.
            let with_failure = |failure: f64, log_delta: f64| (failure + (1.0 - failure) * log_delta.exp()).ln();
            let margin = |log: f64| f64::EPSILON * (8.0 + 2.0 * log.abs());
            let lower = with_failure(self.failure.lower, ends.lower);
            let upper = with_failure(self.failure.upper, ends.upper);
            Ends { lower: lower - margin(lower), upper: (upper + margin(upper)).min(0.0) }
        };
        Ok(bracket(ends, engine))
    }

    /// Returns the logarithms of `delta` minus the failure probability, divided by the probability that nothing fails, rounded
    /// down and up; `None` if the difference is not positive.
    fn targets(&self, delta: f64) -> (Option<f64>, Option<f64>) {
        let left = |failure: f64, sign: f64| {
            let left = delta - failure;
            let (left, survival) = (left, 1.0 - failure);
            // A difference of exactly zero is the target delta = 0.
            let log = if failure == 0.0 { left.ln() } else { (left / survival).ln() };
            let margin = f64::EPSILON * (4.0 + log.abs() + if failure == 0.0 { 0.0 } else { delta / left });
            if log == f64::NEG_INFINITY { log } else { log + sign * margin }
        };
        let target = |failure: f64, sign: f64| (delta >= failure).then(|| left(failure, sign));
        (target(self.failure.upper, -1.0), target(self.failure.lower, 1.0))
    }
}

const fn bracket(ends: Ends, engine: Engine) -> Bracket {
    Bracket { lower: ends.lower, upper: ends.upper, engine }
}

impl Numeric {
    fn composed(&self) -> Option<&Composed> {
        self.composed.get_or_init(|| Composed::new(&self.leaves)).as_ref()
    }

    /// Returns epsilon for a delta between `e^low` and `e^high`: the upper end for `low`, the lower end for `high`.
    fn epsilon_between(&self, low: f64, high: f64) -> (Ends, Engine) {
        let Self { contour, leaves, log_participation, .. } = self;
        if low >= *log_participation {
            return (Ends::exactly(0.0), Engine::ClosedForm);
        }
        // A pure guarantee holds at every delta.
        let unknown = Ends { lower: 0.0, upper: pure_epsilon_of_all(leaves) };
        if high == f64::NEG_INFINITY {
            let found = contour.as_ref().map_or(unknown, |contour| contour.supremum().both(unknown));
            return (found, Engine::ClosedForm);
        }
        let found = contour.as_ref().and_then(|contour| contour.epsilon(low, high));
        let found = found.map_or(unknown, |ends| ends.both(unknown));
        if found.upper.is_finite() && found.upper - found.lower <= WIDE * found.upper {
            return (found, Engine::Contour);
        }
        self.with_more_work(
            found,
            |_| Question::EpsilonAt(low, high),
            |contour, effort| contour.epsilon_eased(low, high, effort),
            || renyi_epsilon(leaves, low),
        )
    }

    /// Returns the logarithm of delta at `epsilon`.
    fn log_delta_at(&self, epsilon: f64) -> (Ends, Engine) {
        let Self { contour, leaves, log_participation, .. } = self;
        let unknown = Ends { lower: f64::NEG_INFINITY, upper: *log_participation };
        if epsilon >= pure_epsilon_of_all(leaves) {
            return (Ends::exactly(f64::NEG_INFINITY), Engine::ClosedForm);
        }
        let found =
            contour.as_ref().and_then(|contour| contour.log_delta(epsilon)).map_or(unknown, |ends| ends.both(unknown));
        if found.upper - found.lower <= WIDE * found.upper.abs().max(1.0) || found.upper == f64::NEG_INFINITY {
            return (found, Engine::Contour);
        }
        self.with_more_work(
            found,
            |most| Question::DeltaAt(epsilon, most),
            |contour, effort| contour.log_delta_eased(epsilon, effort),
            || renyi_log_delta(leaves, epsilon),
        )
    }

    /// Improves ends that the usual lines of the contour leave far apart: by eased lines if there are many releases, then by the
    /// loss distributions if they are promising, otherwise by more costly lines, otherwise by the distributions at full effort. If
    /// the ends are still far apart, distributions that keep rare losses and the Renyi curve improve them.
    ///
    /// `question` takes an upper bound on the logarithm of delta.
    fn with_more_work(
        &self,
        known: Ends,
        question: impl Fn(f64) -> Question,
        eased: impl Fn(&Contour, Effort) -> Ends,
        renyi: impl Fn() -> Ends,
    ) -> (Ends, Engine) {
        let any = question(f64::INFINITY);
        let is_close = |ends: Ends| {
            let size = if let Question::EpsilonAt(..) = any { ends.upper } else { ends.upper.abs().max(1.0) };
            ends.lower == ends.upper || ends.upper.is_finite() && ends.upper - ends.lower <= WIDE * size
        };
        let Some(laws) = self.composed() else {
            return (known.both(renyi()), Engine::Contour);
        };
        let mut known = known.both(Ends { lower: laws.lower_end(any), upper: f64::INFINITY });
        if let Some(contour) = self.contour.as_ref().filter(|contour| contour.is_long()) {
            // A limit on work must leave enough for the distributions.
            known = known.both(work::limited(0.25 * work::allowance(), || eased(contour, EASED)).value);
            if is_close(known) {
                return (known, Engine::Contour);
            }
        }
        let promising = self.contour.as_ref().and_then(|_| laws.ends(any, known.lower, Grids::Promising));
        if let Some(ends) = promising {
            known = known.both(ends);
        } else {
            if let Some(contour) = &self.contour {
                known = known.both(eased(contour, PATIENT));
                if is_close(known) {
                    return (known, Engine::Contour);
                }
            }
            known = laws.ends(any, known.lower, Grids::All).map_or(known, |ends| known.both(ends));
        }
        if !is_close(known) {
            let rare = laws.ends(question(known.upper), known.lower, Grids::KeepingRare);
            known = rare.map_or(known, |ends| known.both(ends)).both(renyi());
        }
        (known, Engine::LossDistribution)
    }
}

/// Returns the upper bound on epsilon by the Renyi curve, which is never far off, for ends that the engines leave open.
fn renyi_epsilon(leaves: &Leaves, log_delta: f64) -> Ends {
    let delta = Delta::new(exp_down(log_delta));
    let upper = match (RdpCurve::from_leaves(leaves.clone()), delta) {
        (Ok(curve), Ok(delta)) => curve.epsilon(delta),
        _ => f64::INFINITY,
    };
    Ends { lower: 0.0, upper }
}

/// Returns the upper bound on delta by the Renyi curve.
fn renyi_log_delta(leaves: &Leaves, epsilon: f64) -> Ends {
    let delta = RdpCurve::from_leaves(leaves.clone()).and_then(|curve| curve.delta(epsilon));
    // A delta that underflowed is only known to be small.
    let upper = delta.map_or(0.0, |delta| delta.max(f64::MIN_POSITIVE).ln() * (1.0 - 4.0 * f64::EPSILON));
    Ends { lower: f64::NEG_INFINITY, upper }
}

/// Returns the name of the first event for which no engine has a dominating pair.
fn unsupported(leaves: &Leaves) -> &'static str {
    let alone = |leaf: &Leaf| Composed::new(&vec![(leaf.clone(), 1)]);
    let refused = leaves.iter().find(|(leaf, _)| alone(leaf).is_none());
    refused.or(leaves.first()).map_or("no-op", |(leaf, _)| leaf.name())
}

/// Returns `e^log` rounded down; a positive result stays below the true value.
fn exp_down(log: f64) -> f64 {
    (log.exp() * (1.0 - 2.0 * f64::EPSILON)).next_down().max(0.0)
}

/// Returns epsilon of an event tree at `delta`; see [`PrivacyCurve`].
///
/// # Errors
/// Those of [`PrivacyCurve::new`] and [`PrivacyCurve::epsilon`].
pub fn epsilon(event: &DpEvent, delta: Delta) -> Result<Bracket, Error> {
    PrivacyCurve::new(event)?.epsilon(delta)
}

/// Returns delta of an event tree at `epsilon`; see [`PrivacyCurve`].
///
/// # Errors
/// Those of [`PrivacyCurve::new`] and [`PrivacyCurve::delta`].
pub fn delta(event: &DpEvent, epsilon: f64) -> Result<Bracket, Error> {
    PrivacyCurve::new(event)?.delta(epsilon)
}
