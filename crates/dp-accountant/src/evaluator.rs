//! A choice of accountant: the upper bound that an [`Evaluator`] gives, and the [`Interval`] of an [`Evaluation`].

use core::cell::OnceCell;

use crate::adjacency::AdjacencyKind;
use crate::bound::{self, Bound, Path, Theorem};
use crate::error::Error;
use crate::event::DpEvent;
use crate::exact::{self, Bracket, Engine, PrivacyCurve};
use crate::gaussian;
use crate::gdp;
use crate::leaves::leaves_under;
use crate::params::Delta;
use crate::rdp::RdpCurve;
use crate::zcdp;

/// Intervals narrower than this, relatively, are not compared with other theorems.
const NARROW: f64 = 1e-6;

/// The accountant that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Evaluator {
    /// The tightest bound of this crate: [`bound`].
    #[default]
    Tightest,
    /// The Renyi curve at its best order: [`RdpCurve`].
    Renyi,
    /// Zero-concentrated differential privacy: [`zcdp`].
    Zcdp,
    /// Gaussian differential privacy: [`gdp`]. Refuses events that are not known to be Gaussian-DP.
    Gdp,
    /// The upper bound of the exact curve: [`exact`]. Refuses events without one.
    Exact,
}

impl Evaluator {
    /// Returns an upper bound on epsilon at `delta`; infinite if there is none.
    ///
    /// # Errors
    /// A number in the tree that is out of range, or an event for which the evaluator has no theorem.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{Delta, DpEvent, calibrate::Evaluator};
    /// let event = DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 };
    /// let delta = Delta::new(1e-6)?;
    /// assert!((Evaluator::Tightest.epsilon(&event, delta)? - 4.886554117462212).abs() < 1e-11);
    /// assert!(Evaluator::Renyi.epsilon(&event, delta)? > 4.9);
    /// # Ok::<(), dp_accountant::Error>(())
    /// ```
    pub fn epsilon(self, event: &DpEvent, delta: Delta) -> Result<f64, Error> {
        Ok(match self {
            Self::Tightest => bound::epsilon(event, delta)?.value,
            Self::Renyi => RdpCurve::new(event)?.epsilon(delta),
            Self::Zcdp => match zcdp::rho(event)? {
                rho if rho.is_finite() => zcdp::epsilon(rho, delta)?,
                _ => f64::INFINITY,
            },
            Self::Gdp => match gdp::mu(event)? {
                mu if mu.is_finite() => gaussian::epsilon(mu, delta)?,
                _ => f64::INFINITY,
            },
            Self::Exact => exact::epsilon(event, delta)?.upper,
        })
    }

    /// Returns an upper bound on delta at `epsilon`; 1 if there is none.
    ///
    /// # Errors
    /// `epsilon` negative, NaN or infinite, and those of [`epsilon`](Self::epsilon).
    pub fn delta(self, event: &DpEvent, epsilon: f64) -> Result<f64, Error> {
        Ok(match self {
            Self::Tightest => bound::delta(event, epsilon)?.value,
            Self::Renyi => RdpCurve::new(event)?.delta(epsilon)?,
            Self::Zcdp => match zcdp::rho(event)? {
                rho if rho.is_finite() => zcdp::delta(rho, epsilon)?,
                _ => 1.0,
            },
            Self::Gdp => match gdp::mu(event)? {
                mu if mu.is_finite() => gaussian::delta(mu, epsilon)?,
                _ => 1.0,
            },
            Self::Exact => exact::delta(event, epsilon)?.upper.min(1.0),
        })
    }
}

/// A number between two certified bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// A lower bound; 0 where none is known.
    pub lower: f64,
    /// An upper bound.
    pub upper: f64,
    /// The theorem behind `upper`.
    pub theorem: Theorem,
}

/// An event tree under one evaluator and one neighbouring relation, for several evaluations, which share one exact
/// [`PrivacyCurve`], and for a group that of one record.
///
/// The lower bound is that of the exact curve for [`Evaluator::Tightest`], [`Evaluator::Exact`] and [`Evaluator::Gdp`], and 0
/// for the others.
///
/// # Examples
/// ```
/// use dp_accountant::evaluator::{Evaluation, Evaluator};
/// use dp_accountant::{AdjacencyKind, Delta, DpEvent, Theorem};
///
/// let step = DpEvent::PoissonSampled {
///     sampling_rate: 0.01,
///     event: Box::new(DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 }),
/// };
/// let training = DpEvent::SelfComposed { event: Box::new(step), count: 1000 };
/// let evaluation = Evaluation::new(Evaluator::Tightest, &training, AdjacencyKind::AddRemoveOne)?;
/// let epsilon = evaluation.epsilon(Delta::new(1e-5)?)?;
/// assert!(epsilon.upper - epsilon.lower < 1e-6 * epsilon.upper);
/// let renyi = Evaluation::new(Evaluator::Renyi, &training, AdjacencyKind::AddRemoveOne)?.epsilon(Delta::new(1e-5)?)?;
/// assert!(renyi.upper > epsilon.upper && renyi.theorem == Theorem::Renyi);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
#[derive(Debug)]
pub struct Evaluation<'a> {
    evaluator: Evaluator,
    event: &'a DpEvent,
    relation: AdjacencyKind,
    exact: OnceCell<Result<PrivacyCurve, Error>>,
    path: OnceCell<Option<Path>>,
}

impl<'a> Evaluation<'a> {
    /// Checks the relation. Bounds are computed on demand.
    ///
    /// # Errors
    /// A number in the tree that is out of range, and [`Error::NotUnderRelation`].
    pub fn new(evaluator: Evaluator, event: &'a DpEvent, relation: AdjacencyKind) -> Result<Self, Error> {
        leaves_under(event, 1, relation)?;
        Ok(Self { evaluator, event, relation, exact: OnceCell::new(), path: OnceCell::new() })
    }

    fn exact(&self) -> Result<&PrivacyCurve, Error> {
        self.exact.get_or_init(|| PrivacyCurve::new_under(self.event, self.relation)).as_ref().map_err(Clone::clone)
    }

    fn path(&self) -> Option<&Path> {
        self.path.get_or_init(|| Path::if_better(self.event).ok().flatten()).as_ref()
    }

    /// Returns the interval of epsilon at `delta`. The upper bound is infinite if there is no guarantee.
    ///
    /// # Errors
    /// An event for which the evaluator has no theorem.
    pub fn epsilon(&self, delta: Delta) -> Result<Interval, Error> {
        self.interval(
            || self.exact()?.epsilon(delta),
            |known| bound::epsilon_beside(self.path(), self.event, delta, known),
            || self.evaluator.epsilon(self.event, delta),
        )
    }

    /// Returns the interval of delta at `epsilon`. The upper bound is 1 or more if there is no guarantee.
    ///
    /// # Errors
    /// `epsilon` negative, NaN or infinite; an event for which the evaluator has no theorem.
    pub fn delta(&self, epsilon: f64) -> Result<Interval, Error> {
        self.interval(
            || self.exact()?.delta(epsilon),
            |known| bound::delta_beside(self.path(), self.event, epsilon, known),
            || self.evaluator.delta(self.event, epsilon),
        )
    }

    fn interval(
        &self,
        exact: impl Fn() -> Result<Bracket, Error>,
        tightest_beside: impl FnOnce(Option<Bracket>) -> Result<Bound, Error>,
        upper: impl FnOnce() -> Result<f64, Error>,
    ) -> Result<Interval, Error> {
        Ok(match self.evaluator {
            Evaluator::Tightest => tightest(exact(), tightest_beside)?,
            Evaluator::Exact => exact()?.into(),
            Evaluator::Renyi => Interval { lower: 0.0, upper: upper()?, theorem: Theorem::Renyi },
            Evaluator::Zcdp => Interval { lower: 0.0, upper: upper()?, theorem: Theorem::ZeroConcentrated },
            Evaluator::Gdp => {
                let upper = upper()?;
                let lower = exact().map_or(0.0, |bracket| bracket.lower.min(upper));
                Interval { lower, upper, theorem: Theorem::GaussianDp }
            }
        })
    }
}

impl From<Bracket> for Interval {
    fn from(bracket: Bracket) -> Self {
        Self { lower: bracket.lower, upper: bracket.upper, theorem: bracket.engine.into() }
    }
}

/// Returns the exact interval if it is narrow, else the smaller of its upper bound and that of other theorems.
fn tightest(
    exact: Result<Bracket, Error>,
    beside: impl FnOnce(Option<Bracket>) -> Result<Bound, Error>,
) -> Result<Interval, Error> {
    let exact = exact.ok().filter(|bracket| bracket.lower <= bracket.upper);
    if let Some(bracket) = exact
        && bracket.engine != Engine::ClosedForm
        && bracket.upper.is_finite()
        && bracket.upper - bracket.lower <= NARROW * bracket.upper
    {
        return Ok(bracket.into());
    }
    // A closed form has its own name among the bounds.
    let Bound { value, theorem } = beside(exact)?;
    Ok(match exact {
        Some(bracket) if !(value <= bracket.upper * (1.0 + 1e-12)) => bracket.into(),
        exact => Interval { lower: exact.map_or(0.0, |bracket| bracket.lower.min(value)), upper: value, theorem },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVALUATORS: [Evaluator; 5] =
        [Evaluator::Tightest, Evaluator::Exact, Evaluator::Renyi, Evaluator::Zcdp, Evaluator::Gdp];

    fn gaussians(count: u64) -> DpEvent {
        let event = Box::new(DpEvent::Gaussian { std_dev: 10.0, sensitivity: 1.0 });
        DpEvent::SelfComposed { event, count }
    }

    #[test]
    fn intervals_of_all_evaluators_hold_the_exact_value() {
        let (event, delta) = (gaussians(30), Delta::new(1e-6).unwrap());
        let exact = exact::epsilon(&event, delta).unwrap();
        for evaluator in EVALUATORS {
            let evaluation = Evaluation::new(evaluator, &event, AdjacencyKind::ReplaceOne).unwrap();
            let epsilon = evaluation.epsilon(delta).unwrap();
            assert!(epsilon.lower <= exact.upper && exact.lower <= epsilon.upper * (1.0 + 1e-12), "{evaluator:?}");
            assert_eq!(epsilon.lower == 0.0, matches!(evaluator, Evaluator::Renyi | Evaluator::Zcdp), "{evaluator:?}");
            let at = evaluation.delta(epsilon.upper).unwrap();
            assert!(at.lower <= 1e-6 && at.upper <= 1e-6 * (1.0 + 1e-6), "{evaluator:?}: {at:?}");
        }
    }

    #[test]
    fn a_tree_without_an_exact_curve_is_bounded_from_above() {
        let event = DpEvent::Composed { events: vec![gaussians(1), DpEvent::Zcdp { rho: 0.01 }] };
        let evaluation = Evaluation::new(Evaluator::Tightest, &event, AdjacencyKind::ReplaceOne).unwrap();
        let epsilon = evaluation.epsilon(Delta::new(1e-6).unwrap()).unwrap();
        assert_eq!(epsilon.lower, 0.0);
        assert!(epsilon.upper.is_finite(), "{epsilon:?}");
    }

    /// Exact values are by hand: of outcomes whose probabilities differ by more than doubles hold beside 1.
    #[test]
    fn far_losses_are_in_no_false_lower_bound() {
        fn of(event: &DpEvent) -> Evaluation<'_> {
            Evaluation::new(Evaluator::Tightest, event, AdjacencyKind::ReplaceOne).unwrap()
        }
        let pair = DpEvent::DominatingPair { p: vec![0.125, 1e-21, 0.875], q: vec![0.25, 0.75, 1e-26] };
        let delta = of(&pair).delta(59.0).unwrap();
        let exact = 0.875 - 1e-26 * 59f64.exp();
        assert!(
            delta.lower <= exact && exact <= delta.upper && delta.upper < exact * (1.0 + 1e-6),
            "{delta:?} {exact}"
        );

        let gaussian = DpEvent::Gaussian { std_dev: 2.0, sensitivity: 1.0 };
        let discrete = DpEvent::DiscreteLaplace { scale: 0.1, sensitivity: 100 };
        for event in [
            DpEvent::Composed { events: vec![gaussian.clone(), pair] },
            DpEvent::Composed { events: vec![gaussian, discrete] },
            DpEvent::DominatingPair { p: vec![0.3, 0.1, 0.6, 1e-23], q: vec![0.1, 0.2, 0.1, 0.6] },
        ] {
            let delta = Delta::new(1e-12).unwrap();
            let (found, renyi) = (of(&event).epsilon(delta).unwrap(), Evaluator::Renyi.epsilon(&event, delta).unwrap());
            assert!(found.upper <= renyi * (1.0 + 1e-9) && renyi.is_finite(), "{found:?} {renyi}");
            let exact = exact::epsilon(&event, delta).unwrap();
            assert!(exact.lower <= found.upper, "{exact:?} {found:?}");
        }
        let nothing = DpEvent::GaussianMixture { std_dev: 1.0, sensitivities: vec![0.0], weights: vec![1.0] };
        assert_eq!(of(&nothing).epsilon(Delta::ZERO).unwrap().upper, 0.0);
    }

    #[test]
    fn an_infinite_upper_end_is_not_narrow() {
        let exact = Bracket { lower: 1.0, upper: f64::INFINITY, engine: Engine::LossDistribution };
        let found = tightest(Ok(exact), |_| Ok(Bound { value: 2.0, theorem: Theorem::Renyi })).unwrap();
        assert_eq!((found.lower, found.upper, found.theorem), (1.0, 2.0, Theorem::Renyi));
    }

    #[test]
    fn another_relation_is_refused() {
        let event = DpEvent::PoissonSampled { sampling_rate: 0.1, event: Box::new(gaussians(1)) };
        for evaluator in EVALUATORS {
            let refused = Evaluation::new(evaluator, &event, AdjacencyKind::ReplaceOne);
            assert!(matches!(refused, Err(Error::NotUnderRelation { .. })), "{evaluator:?}");
        }
    }
}
