//! The tightest bound of this crate for an event tree, with the theorem that gives it.
//!
//! Accountants add releases one after another; these functions see the whole tree and choose the theorem:
//!
//! | tree | theorem |
//! |---|---|
//! | Gaussians, at most one mixture beside them | the exact curve |
//! | one Laplace release, or one L2 ball | the exact curve |
//! | releases with a known dominating pair | the exact curve by [`exact`](crate::exact) |
//! | Gaussians and pure guarantees on one Poisson sample | the exact curve of one sampled Gaussian |
//! | pure guarantees | sum of epsilons; optimal composition where all are equal |
//! | anything | Renyi curve, best order |
//! | exact part and pure part, or one group's releases and pure parts | one's epsilon added to the other's |
//! | disjoint parts, or one of several releases, and nothing else | the part for which the bound is largest |
//! | samples and nothing else | delta is at most the probability that a differing record is in any of them |
//! | approximate guarantees anywhere | their deltas as failures, their epsilons as pure guarantees |
//! | several records at once | each release by itself for the group, or one record's whole curve along a path |
//!
//! Disjoint parts: the other parts' outputs have the same law for both neighbours, so delta at any epsilon is an average of the
//! deltas of single parts. One of several releases: delta is an average over the releases.
//!
//! The line on approximate guarantees is sound because every `(epsilon, delta)`-DP mechanism is a post-processing of the
//! mechanism that fails with probability `delta` and otherwise gives an `epsilon`-DP answer (Kairouz, Oh and Viswanath 2015,
//! Theorem 3.1 and its proof). So the whole tree fails with probability `d = 1 - prod (1 - delta_i)`, is otherwise a tree of pure
//! guarantees, and has `delta = d + (1 - d) delta'`.

mod path;

use core::fmt;

pub(crate) use self::path::Path;
use crate::error::{Error, non_negative};
use crate::event::DpEvent;
use crate::exact::{Bracket, Engine, PrivacyCurve};
use crate::gaussian_mixture::GaussianMixture;
use crate::gdp;
use crate::laplace_ball::Ball;
use crate::leaves::failures::take_failures;
use crate::leaves::participation::log_participation;
use crate::leaves::pure::pure_epsilon;
use crate::leaves::{Leaf, Leaves, SMALLEST_RATIO, leaves};
use crate::params::Delta;
use crate::pure;
use crate::rdp::RdpCurve;
use crate::rounding::{add_up, count_up, mul_up};

/// Relative width below which an exact bracket is not compared with other theorems.
const SETTLED: f64 = 1.0 + 1e-6;

/// Largest `mu` at which Gaussian noise represents other releases.
const LARGEST_MU: f64 = 1e3;

/// A bound and the theorem that gives it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// The epsilon or delta, rounded up; infinite (or 1) where there is no guarantee.
    pub value: f64,
    /// The theorem that gives it.
    pub theorem: Theorem,
}

/// The theorem behind a [`Bound`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Theorem {
    /// Nothing that depends on the data was released.
    NothingReleased,
    /// No theorem of this crate gives a finite bound.
    NoGuarantee,
    /// The epsilons of pure guarantees add.
    PureComposition,
    /// The optimal composition of equal pure guarantees.
    OptimalPureComposition,
    /// Epsilons add, and so do deltas.
    BasicComposition,
    /// The exact curve of one Laplace release.
    LaplaceCurve,
    /// The exact curve of the Gaussian mechanism.
    AnalyticGaussian,
    /// The exact curve of a Gaussian with hidden random sensitivity.
    GaussianMixture,
    /// The exact curve in closed form.
    ExactCurve,
    /// The exact curve by the contour integral of the moment function, certified upper end.
    ContourIntegral,
    /// The composed privacy loss distribution, certified upper end.
    LossDistribution,
    /// The Renyi curve at the best order.
    Renyi,
    /// The best conversion of a zCDP parameter.
    ZeroConcentrated,
    /// The exact curve of a Gaussian-DP parameter.
    GaussianDp,
    /// Group privacy: one record's delta at a fraction of epsilon, summed along a path of neighbours.
    GroupPrivacy,
    /// The probability that a differing record is in any sample.
    Participation,
}

impl Theorem {
    /// Returns whether its bound is a closed form that no [limit](crate::work::limited) on work changes. A bound by another theorem
    /// may be the smaller one without the limit, but not larger.
    pub(crate) const fn takes_no_work(self) -> bool {
        matches!(
            self,
            Self::PureComposition
                | Self::OptimalPureComposition
                | Self::LaplaceCurve
                | Self::AnalyticGaussian
                | Self::GaussianMixture
                | Self::Participation
        )
    }
}

impl From<Engine> for Theorem {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::ClosedForm => Self::ExactCurve,
            Engine::Contour => Self::ContourIntegral,
            Engine::LossDistribution => Self::LossDistribution,
        }
    }
}

impl fmt::Display for Theorem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NothingReleased => "nothing was released",
            Self::NoGuarantee => "no guarantee",
            Self::PureComposition => "composition of pure guarantees (Dwork, McSherry, Nissim and Smith 2006)",
            Self::OptimalPureComposition => {
                "optimal composition of pure guarantees (Kairouz, Oh and Viswanath 2015, Theorem 3.3)"
            }
            Self::BasicComposition => "composition of approximate guarantees (Dwork and Roth 2014, Theorem 3.16)",
            Self::LaplaceCurve => "exact Laplace curve (dominating pair by Zhu, Dong and Wang 2022, Theorem 10)",
            Self::AnalyticGaussian => "exact Gaussian curve (Balle and Wang 2018, Theorem 8)",
            Self::GaussianMixture => {
                "exact Gaussian curve averaged over a hidden index (Balle and Wang 2018, Theorem 8; joint convexity)"
            }
            Self::ExactCurve => "exact curve of the dominating pair (Zhu, Dong and Wang 2022, Theorem 10)",
            Self::ContourIntegral => {
                "exact composition of dominating pairs by contour integral (Zhu, Dong and Wang 2022, Theorem 10)"
            }
            Self::LossDistribution => {
                "composed privacy loss distribution (Zhu, Dong and Wang 2022, Theorem 10; Doroshenko et al. 2022)"
            }
            Self::Renyi => {
                "Renyi differential privacy (Mironov 2017; Canonne, Kamath and Steinke 2020, Proposition 12)"
            }
            Self::ZeroConcentrated => {
                "zero-concentrated differential privacy (Bun and Steinke 2016; Canonne, Kamath and Steinke 2020, \
                 Proposition 12)"
            }
            Self::GaussianDp => "Gaussian differential privacy (Dong, Roth and Su 2022, Corollary 3.3)",
            Self::GroupPrivacy => "group privacy of the tightest curve of one record (Vadhan 2017, Lemma 2.2)",
            Self::Participation => "the probability that a differing record is in any sample (coupling of the samples)",
        })
    }
}

/// Returns the least known epsilon for `event` at `delta`.
///
/// # Privacy
/// The bound holds under the relation for which the event's sensitivities hold.
///
/// # Errors
/// A number in the tree that is out of range, or a tree too deep or with too many repetitions to read.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, DpEvent, bound::{self, Theorem}};
///
/// let release = DpEvent::Gaussian { std_dev: 2.0, sensitivity: 2.0 };
/// let bound = bound::epsilon(&release, Delta::new(1e-6)?)?;
/// assert!((bound.value - 4.886554117462212).abs() < 1e-11);
/// assert_eq!(bound.theorem, Theorem::AnalyticGaussian);
///
/// let pure = DpEvent::LaplaceBall { scale: 4.0, sensitivity: 1.0, dim: 50 };
/// assert_eq!(bound::epsilon(&pure, Delta::ZERO)?.value, 0.25);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn epsilon(event: &DpEvent, delta: Delta) -> Result<Bound, Error> {
    epsilon_beside(Path::if_better(event)?.as_ref(), event, delta, None)
}

/// As [`epsilon`](self::epsilon()), with the path of `event`, if it has one, and with `known`, the result of [`PrivacyCurve::epsilon`] for `event`
/// at `delta`, instead of computing it again.
pub(crate) fn epsilon_beside(
    path: Option<&Path>,
    event: &DpEvent,
    delta: Delta,
    known: Option<Bracket>,
) -> Result<Bound, Error> {
    let bound = epsilon_of(leaves(event, 1)?, delta, known)?;
    if let Some(path) = path {
        return path.epsilon(bound, delta);
    }
    if let Some((group, pure)) = group_beside_pure(event)? {
        let mut bound = bound;
        bound.improve(add_up(epsilon(group, delta)?.value, pure), Theorem::BasicComposition);
        return Ok(bound);
    }
    match Path::parts(event) {
        Some(parts) => path::smaller(bound, parts, |part| epsilon(part, delta)),
        None => Ok(bound),
    }
}

/// Returns the part of a composition that is about a group, and the sum of the epsilons of all other parts, if these have pure
/// guarantees.
fn group_beside_pure(event: &DpEvent) -> Result<Option<(&DpEvent, f64)>, Error> {
    let DpEvent::Composed { events } = event else { return Ok(None) };
    let (groups, others): (Vec<&DpEvent>, Vec<&DpEvent>) = events.iter().partition(|part| Path::new(part).is_some());
    let [group] = groups[..] else { return Ok(None) };
    let mut sum = 0.0;
    for other in others {
        let parts = Parts::new(leaves(other, 1)?)?;
        if parts.non_private || parts.failure > 0.0 || !parts.only_pure() {
            return Ok(None);
        }
        sum = add_up(sum, parts.pure_sum());
    }
    Ok(Some((group, sum)))
}

fn epsilon_of(leaves: Leaves, delta: Delta, known: Option<Bracket>) -> Result<Bound, Error> {
    let parts = match one_of(leaves) {
        Ok(parts) => return worst(parts, |part| epsilon_of(part, delta, None)),
        Err(leaves) => Parts::new(leaves)?,
    };
    if let Some(theorem) = parts.trivial() {
        let value = if theorem == Theorem::NothingReleased { 0.0 } else { f64::INFINITY };
        return Ok(Bound { value, theorem });
    }
    // The delta' with d + (1 - d) delta' = delta, where d is the failure probability; rounded down.
    let left = match parts.failure {
        0.0 => delta.get(),
        failure => (delta.get() - failure) / (1.0 - failure) * (1.0 - 4.0 * f64::EPSILON),
    };
    if !(left >= 0.0) {
        return Ok(Bound { value: f64::INFINITY, theorem: Theorem::NoGuarantee });
    }
    if left >= parts.participation {
        return Ok(Bound { value: 0.0, theorem: Theorem::Participation });
    }
    let delta = Delta::new(left)?;
    let mut best = Bound { value: f64::INFINITY, theorem: Theorem::NoGuarantee };
    if let Some(mixture) = &parts.exact_gaussian {
        best.improve(
            mixture.epsilon(delta)?,
            if parts.pure.is_empty() { parts.gaussian_theorem() } else { Theorem::BasicComposition },
        );
        best.value = add_up(best.value, parts.pure_sum());
    }
    if parts.only_pure() {
        best.improve(parts.pure_sum(), parts.sum_theorem());
        if let Some(ball) = parts.single_laplace() {
            best.improve(ball.epsilon(left).upper, Theorem::LaplaceCurve);
        }
        if let Some((epsilon, count)) = parts.equal_pure().filter(|_| left > 0.0) {
            best.improve(pure::optimal_epsilon(epsilon, count, left), Theorem::OptimalPureComposition);
        }
    }
    if left > 0.0 && !parts.has_exact_curve() {
        let exact = known.or_else(|| parts.exact_curve()?.epsilon(delta).ok());
        if let Some(bracket) = exact {
            best.improve(bracket.upper, bracket.engine.into());
        }
        if !parts.is_settled(exact, f64::INFINITY) {
            best.improve(parts.renyi.epsilon(delta), Theorem::Renyi);
            if let Some(bracket) = parts.curve_without_pure().and_then(|curve| curve.epsilon(delta).ok()) {
                best.improve(add_up(bracket.upper, parts.pure_sum()), Theorem::BasicComposition);
            }
        }
    }
    Ok(best)
}

/// Returns the least known delta for `event` at `epsilon`.
///
/// # Privacy
/// The bound holds under the relation for which the event's sensitivities hold.
///
/// # Errors
/// `epsilon` negative, NaN or infinite; a number in the tree that is out of range, or a tree too deep or with too many
/// repetitions to read.
///
/// # Examples
/// ```
/// use dp_accountant::{DpEvent, bound};
/// let release = DpEvent::Gaussian { std_dev: 2.0, sensitivity: 2.0 };
/// assert!((bound::delta(&release, 1.0)?.value - 0.12693673750664394).abs() < 1e-13);
/// assert_eq!(bound::delta(&DpEvent::PureDp { epsilon: 1.0 }, 1.0)?.value, 0.0);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn delta(event: &DpEvent, epsilon: f64) -> Result<Bound, Error> {
    delta_beside(Path::if_better(event)?.as_ref(), event, epsilon, None)
}

/// As [`delta`](self::delta()), with the path of `event`, if it has one, and with `known`, the result of [`PrivacyCurve::delta`] for `event`
/// at `epsilon`, instead of computing it again.
pub(crate) fn delta_beside(
    path: Option<&Path>,
    event: &DpEvent,
    epsilon: f64,
    known: Option<Bracket>,
) -> Result<Bound, Error> {
    let bound = delta_of(leaves(event, 1)?, non_negative("epsilon", epsilon)?, known)?;
    if let Some(path) = path {
        return path.delta(bound, epsilon);
    }
    if let Some((group, pure)) = group_beside_pure(event)? {
        let mut bound = bound;
        let left = (epsilon - pure).next_down();
        if left >= 0.0 {
            bound.improve(delta(group, left)?.value, Theorem::BasicComposition);
        }
        return Ok(bound);
    }
    match Path::parts(event) {
        Some(parts) => path::smaller(bound, parts, |part| delta(part, epsilon)),
        None => Ok(bound),
    }
}

/// Returns whether [`delta`](self::delta()) has its own exact curve for `event` and does not call a [`PrivacyCurve`].
fn has_own_curve(event: &DpEvent) -> Result<bool, Error> {
    Ok(Parts::new(leaves(event, 1)?)?.has_exact_curve())
}

fn delta_of(leaves: Leaves, epsilon: f64, known: Option<Bracket>) -> Result<Bound, Error> {
    let parts = match one_of(leaves) {
        Ok(parts) => return worst(parts, |part| delta_of(part, epsilon, None)),
        Err(leaves) => Parts::new(leaves)?,
    };
    if let Some(theorem) = parts.trivial() {
        let value = if theorem == Theorem::NothingReleased { 0.0 } else { 1.0 };
        return Ok(Bound { value, theorem });
    }
    let mut best = Bound { value: 1.0, theorem: Theorem::NoGuarantee };
    let left = (epsilon - parts.pure_sum()).next_down();
    if let Some(mixture) = parts.exact_gaussian.as_ref() {
        if parts.pure.is_empty() {
            best.improve(mixture.delta(epsilon), parts.gaussian_theorem());
        } else if left >= 0.0 {
            best.improve(mixture.delta(left), Theorem::BasicComposition);
        }
    }
    if parts.only_pure() {
        if epsilon >= parts.pure_sum() {
            best.improve(0.0, parts.sum_theorem());
        }
        if let Some(ball) = parts.single_laplace() {
            best.improve(ball.delta(epsilon).upper, Theorem::LaplaceCurve);
        }
        if let Some((pure, count)) = parts.equal_pure() {
            best.improve(pure::optimal_delta(pure, count, epsilon), Theorem::OptimalPureComposition);
        }
    }
    let asks_exact_curve = best.value > 0.0 && !parts.has_exact_curve();
    if asks_exact_curve {
        let exact = known.or_else(|| {
            let bracket = parts.exact_curve()?.delta(epsilon).ok()?;
            best.improve(bracket.upper, bracket.engine.into());
            Some(bracket)
        });
        if !parts.is_settled(exact, 1.0) {
            best.improve(parts.renyi.delta(epsilon)?, Theorem::Renyi);
            if let Some(curve) = parts.curve_without_pure().filter(|_| left >= 0.0)
                && let Ok(bracket) = curve.delta(left)
            {
                best.improve(bracket.upper, Theorem::BasicComposition);
            }
        }
    }
    best.improve(parts.participation, Theorem::Participation);
    if parts.failure > 0.0 {
        best.value = (parts.failure + best.value * (1.0 - parts.failure) * (1.0 + f64::EPSILON)).next_up().min(1.0);
    }
    // The curve of the whole event includes the failures already.
    if let Some(bracket) = known.filter(|_| asks_exact_curve) {
        best.improve(bracket.upper, bracket.engine.into());
    }
    Ok(best)
}

/// Returns the parts if `leaves` consists of a single release from disjoint parts or of one of several kinds; otherwise returns
/// `leaves` as the error.
fn one_of(mut leaves: Leaves) -> Result<Vec<Leaves>, Leaves> {
    match leaves.pop() {
        Some((Leaf::Parallel { parts }, 1)) if leaves.is_empty() => Ok(parts),
        last => {
            leaves.extend(last);
            Err(leaves)
        }
    }
}

/// Returns the largest of the bounds.
fn worst(parts: Vec<Leaves>, bound: impl Fn(Leaves) -> Result<Bound, Error>) -> Result<Bound, Error> {
    let mut worst = Bound { value: 0.0, theorem: Theorem::NothingReleased };
    for part in parts {
        let found = bound(part)?;
        if !(found.value <= worst.value) {
            worst = found;
        }
    }
    Ok(worst)
}

impl Bound {
    /// Takes the smaller value; NaN is ignored.
    fn improve(&mut self, value: f64, theorem: Theorem) {
        if value < self.value {
            *self = Self { value, theorem };
        }
    }
}

/// The leaves of a tree, sorted by the theorems that apply to them.
struct Parts {
    /// The Gaussians, with at most one mixture, as one mixture; `None` if there are none or they have no joint exact curve.
    exact_gaussian: Option<GaussianMixture>,
    /// True if a mixture is among the Gaussians.
    has_mixture: bool,
    /// True if some release is neither Gaussian nor pure (zCDP, a second mixture).
    others: bool,
    /// The releases with a pure guarantee, with their counts.
    pure: Leaves,
    /// The probability that at least one of the approximate guarantees fails, rounded up.
    failure: f64,
    /// The probability that a differing record is in any sample, rounded up; 1 if a release is not of a sample.
    participation: f64,
    /// The Renyi curve of everything except the failures.
    renyi: RdpCurve,
    /// Everything except the failures: each release itself, or what [represents](dominating) it if its own dominating pair is not known.
    dominated: Leaves,
    /// The same for the releases without a pure guarantee.
    without_pure: Leaves,
    /// True if every release is itself, so that the exact curve is at most the Renyi curve.
    is_dominated: bool,
    /// True if something was released without a guarantee.
    non_private: bool,
}

impl Parts {
    fn new(leaves: Leaves) -> Result<Self, Error> {
        let (failure, leaves) = take_failures(leaves);
        let mut parts = Self {
            exact_gaussian: None,
            has_mixture: false,
            others: false,
            pure: Vec::new(),
            failure,
            participation: (log_participation(&leaves).exp() * (1.0 + 4.0 * f64::EPSILON)).min(1.0),
            renyi: RdpCurve::from_leaves(leaves.clone())?,
            dominated: Vec::with_capacity(leaves.len()),
            without_pure: Vec::new(),
            is_dominated: true,
            non_private: failure >= 1.0,
        };
        let mut mu_squared = 0.0;
        let mut single_mu = None;
        let mut mixture = None;
        for (leaf, count) in leaves {
            let times = count_up(count);
            let dominating = dominating(&leaf);
            parts.is_dominated &= dominating.is_none();
            let dominating = dominating.unwrap_or_else(|| leaf.clone());
            if pure_epsilon(&leaf) == f64::INFINITY {
                parts.without_pure.push((dominating.clone(), count));
            }
            parts.dominated.push((dominating, count));
            match leaf {
                Leaf::NonPrivate => parts.non_private = true,
                Leaf::Gaussian { mu } => {
                    single_mu = (mu_squared == 0.0 && count == 1).then_some(mu);
                    mu_squared = add_up(mu_squared, mul_up(times, mul_up(mu, mu)));
                }
                Leaf::Mixture(found) if mixture.is_none() && count == 1 => mixture = Some(found),
                leaf if pure_epsilon(&leaf) < f64::INFINITY => parts.pure.push((leaf, count)),
                _ => parts.others = true,
            }
        }
        parts.has_mixture = mixture.is_some();
        if !parts.others {
            // The mu of a single release is kept unchanged; the square root of a sum is rounded up.
            let mu = single_mu.unwrap_or_else(|| mu_squared.sqrt() * (1.0 + 4.0 * f64::EPSILON));
            parts.exact_gaussian = match mixture {
                Some(mixture) if mu == 0.0 => Some(mixture),
                Some(mixture) => Some(mixture.with_gaussian(mu * mu)),
                None if mu == 0.0 => None,
                None => Some(GaussianMixture::single(mu)),
            };
        }
        Ok(parts)
    }

    /// Returns the exact curve of everything except the failures, if there is one.
    fn exact_curve(&self) -> Option<PrivacyCurve> {
        PrivacyCurve::from_leaves(self.dominated.clone()).ok()
    }

    /// Returns the exact curve of the releases without a pure guarantee, if there are also releases with one.
    fn curve_without_pure(&self) -> Option<PrivacyCurve> {
        if self.pure.is_empty() || !self.others {
            return None;
        }
        PrivacyCurve::from_leaves(self.without_pure.clone()).ok()
    }

    /// Returns whether no other theorem can noticeably improve on this exact bracket: its ends are close; or it is that of objective
    /// perturbation, whose Renyi bound follows from the pair of which the upper end is the curve. An upper end that reaches
    /// `useless` states nothing, and the Renyi bound may.
    fn is_settled(&self, exact: Option<Bracket>, useless: f64) -> bool {
        let of_pair = self.dominated.iter().any(|(leaf, _)| matches!(leaf, Leaf::ObjectivePerturbation { .. }));
        let is_close = |Bracket { lower, upper, engine }| {
            upper <= lower * SETTLED || of_pair && engine == Engine::ClosedForm && upper < useless
        };
        self.is_dominated && exact.is_some_and(is_close)
    }

    fn trivial(&self) -> Option<Theorem> {
        let nothing = self.exact_gaussian.is_none() && !self.others && self.pure.is_empty() && self.failure == 0.0;
        match (self.non_private, nothing) {
            (true, _) => Some(Theorem::NoGuarantee),
            (false, true) => Some(Theorem::NothingReleased),
            (false, false) => None,
        }
    }

    fn only_pure(&self) -> bool {
        self.exact_gaussian.is_none() && !self.others
    }

    /// Returns whether the curve is known in closed form, so that no other bound can be smaller.
    fn has_exact_curve(&self) -> bool {
        if self.pure.is_empty() {
            self.exact_gaussian.is_some()
        } else {
            self.only_pure() && self.single_laplace().is_some()
        }
    }

    fn gaussian_theorem(&self) -> Theorem {
        if self.has_mixture { Theorem::GaussianMixture } else { Theorem::AnalyticGaussian }
    }

    fn sum_theorem(&self) -> Theorem {
        if self.failure > 0.0 { Theorem::BasicComposition } else { Theorem::PureComposition }
    }

    fn pure_sum(&self) -> f64 {
        self.pure.iter().fold(0.0, |sum, (leaf, count)| add_up(sum, mul_up(count_up(*count), pure_epsilon(leaf))))
    }

    /// Returns the Laplace or L2 ball release if it is the only one; coordinate-wise noise is dominated by noise in one
    /// dimension.
    fn single_laplace(&self) -> Option<Ball> {
        match self.pure.as_slice() {
            [(Leaf::Laplace { x }, 1)] => Some(Ball::new(*x, 1)),
            [(Leaf::LaplaceBall { x, dim }, 1)] => Some(Ball::new(*x, *dim)),
            _ => None,
        }
    }

    /// Returns the common epsilon and the number of the pure guarantees if they are equal and not too many.
    fn equal_pure(&self) -> Option<(f64, u64)> {
        let epsilon = pure_epsilon(&self.pure.first()?.0);
        let mut total: u64 = 0;
        for (leaf, count) in &self.pure {
            total = total.checked_add(*count)?;
            if pure_epsilon(leaf) != epsilon {
                return None;
            }
        }
        (total <= pure::MAX_COUNT).then_some((epsilon, total))
    }
}

/// Returns the release that represents another in an exact curve if the other's own dominating pair is not known: its pure
/// guarantee; for Gaussian releases and pure guarantees on one Poisson sample, the Gaussian one whose `mu` they have together.
fn dominating(leaf: &Leaf) -> Option<Leaf> {
    if let Leaf::Poisson { rate, base } = leaf {
        let has_law = matches!(base.as_slice(), [(base, 1)] if dominating(base).is_none());
        let mu = if has_law { f64::INFINITY } else { gdp::mu_of_mixed(base) };
        return match mu {
            0.0 => Some(Leaf::Pure { epsilon: 0.0 }),
            mu if mu <= LARGEST_MU => Some(Leaf::PoissonGaussian { rate: *rate, mu: mu.max(SMALLEST_RATIO) }),
            _ => None,
        };
    }
    let has_no_pair = matches!(
        leaf,
        Leaf::BoundedRange { .. }
            | Leaf::AboveThresholdLaplace { .. }
            | Leaf::WithoutReplacement { .. }
            | Leaf::Parallel { .. }
            | Leaf::ParallelByValue { .. }
            | Leaf::Group { .. }
            | Leaf::RandomStopping { .. }
    );
    let epsilon = if has_no_pair { pure_epsilon(leaf) } else { f64::INFINITY };
    (epsilon < f64::INFINITY).then_some(Leaf::Pure { epsilon })
}

#[cfg(test)]
mod tests;
