//! The trees whose curve has a closed form.

use super::ends::{Ends, largest_shown};
use super::single_step::{self, gaussian_epsilon_down};
use crate::gaussian::{curve_point, epsilon_at};
use crate::gaussian_mixture::GaussianMixture;
use crate::leaves::{Leaf, Leaves};
use crate::logspace::log_add;
use crate::objective_perturbation::{BesideGaussians, Pair, least_mu};
use crate::pure;
use crate::rounding::{add_up, count_up, mul_up};
use crate::sampled_replacement::Pair as ReplacementPair;

/// Maximum number of equal pure guarantees; more take too long to sum.
const MAX_COUNT: u64 = 200_000;

/// Maximum number of components of a mixture.
const MAX_COMPONENTS: usize = 200_000;

#[derive(Debug, Clone)]
pub(super) enum ClosedForm {
    /// Nothing was released.
    Nothing,
    /// Something was released without a guarantee.
    NoGuarantee,
    /// Gaussians: bounds on their common `mu`.
    Gaussian(Ends),
    /// One mixture, whose components already include the square of the other Gaussians' `mu`.
    Mixture(GaussianMixture),
    /// One Laplace release.
    Laplace { x: f64 },
    /// One Gaussian release from a Poisson sample.
    Sampled { rate: f64, mu: f64 },
    /// One Gaussian release from a Poisson sample in which one record is replaced.
    Replaced(ReplacementPair),
    /// One objective perturbation, alone or beside Gaussians; `mu` is that of Gaussians that cost no more.
    ObjectivePerturbation { releases: BesideGaussians, mu: f64 },
    /// Equal pure guarantees.
    Pure { epsilon: f64, count: u64 },
}

impl ClosedForm {
    /// Returns the closed form for `leaves`, none of which is an approximate guarantee, if there is one.
    pub(super) fn new(leaves: &Leaves) -> Option<Self> {
        if leaves.iter().any(|(leaf, _)| matches!(leaf, Leaf::NonPrivate)) {
            return Some(Self::NoGuarantee);
        }
        match leaves.as_slice() {
            [] => return Some(Self::Nothing),
            [(Leaf::Gaussian { mu }, 1)] => return Some(Self::Gaussian(Ends::exactly(*mu))),
            [(Leaf::Laplace { x } | Leaf::LaplaceBall { x, dim: 1 }, 1)] => return Some(Self::Laplace { x: *x }),
            [(Leaf::PoissonReplacement(pair), 1)] => return Some(Self::Replaced(*pair)),
            [(Leaf::PoissonGaussian { rate, mu }, 1)] => return Some(Self::Sampled { rate: *rate, mu: *mu }),
            _ => {}
        }
        Self::equal_pure(leaves).or_else(|| Self::gaussians(leaves))
    }

    fn equal_pure(leaves: &Leaves) -> Option<Self> {
        let mut all: Option<(f64, u64)> = None;
        for (leaf, count) in leaves {
            let Leaf::Pure { epsilon } = leaf else {
                return None;
            };
            all = match all {
                None => Some((*epsilon, *count)),
                Some((first, total)) if first == *epsilon => Some((first, total.checked_add(*count)?)),
                Some(_) => return None,
            };
        }
        let (epsilon, count) = all?;
        (count <= MAX_COUNT).then_some(Self::Pure { epsilon, count })
    }

    /// Returns the closed form of Gaussians, alone or beside one other release.
    fn gaussians(leaves: &Leaves) -> Option<Self> {
        let mut square = 0.0;
        let mut other = None;
        for (leaf, count) in leaves {
            match leaf {
                Leaf::Gaussian { mu } => square = add_up(square, mul_up(count_up(*count), mul_up(*mu, *mu))),
                leaf if *count == 1 && other.is_none() => other = Some(leaf),
                _ => return None,
            }
        }
        // The sum was rounded up at most four times per leaf.
        let slack = f64::EPSILON * (4.0 + 4.0 * leaves.len() as f64);
        let root = square.sqrt();
        let together = Ends { lower: root * (1.0 - slack), upper: root * (1.0 + 2.0 * f64::EPSILON) };
        match other {
            None => Some(Self::Gaussian(together)),
            Some(Leaf::Mixture(mixture)) if mixture.components().len() > MAX_COMPONENTS => None,
            Some(Leaf::Mixture(mixture)) if square == 0.0 => Some(Self::Mixture(mixture.clone())),
            Some(Leaf::Mixture(mixture)) => Some(Self::Mixture(mixture.with_gaussian(square))),
            Some(Leaf::ObjectivePerturbation { std_dev, regularization, loss }) => {
                let releases = BesideGaussians::new(Pair::new(*std_dev, *regularization, *loss), together.upper)?;
                let own = least_mu(*std_dev, *loss);
                let mu = if square == 0.0 { own } else { own.hypot(together.lower) * (1.0 - 2.0 * f64::EPSILON) };
                Some(Self::ObjectivePerturbation { releases, mu })
            }
            Some(_) => None,
        }
    }

    /// Returns the logarithm of delta at `epsilon >= 0`.
    pub(super) fn log_delta(&self, epsilon: f64) -> Ends {
        match self {
            Self::Nothing => Ends::exactly(f64::NEG_INFINITY),
            Self::NoGuarantee => Ends::exactly(0.0),
            Self::Gaussian(mu) => Ends {
                lower: curve_point(mu.lower, epsilon).log_delta_down,
                upper: curve_point(mu.upper, epsilon).log_delta,
            },
            Self::Mixture(mixture) => {
                Ends { lower: mixture_log_delta_down(mixture, epsilon).0, upper: mixture.log_delta(epsilon) }
            }
            Self::Laplace { x } if epsilon >= *x => Ends::exactly(f64::NEG_INFINITY),
            Self::Laplace { x } => {
                let log = (-(0.5 * (epsilon - x)).exp_m1()).ln();
                let margin = f64::EPSILON * (8.0 + log.abs());
                Ends { lower: log - margin, upper: (log + margin).min(0.0) }
            }
            Self::Sampled { rate, mu } => single_step::log_delta(*rate, *mu, epsilon),
            Self::Replaced(pair) => pair.log_delta(epsilon),
            Self::ObjectivePerturbation { releases, mu } => {
                let log = releases.delta(epsilon).ln();
                let upper = (log + f64::EPSILON * log.abs()).min(0.0);
                Ends { lower: gaussian_log_delta_down(*mu, epsilon).min(upper), upper }
            }
            Self::Pure { epsilon: each, count } => Ends {
                lower: pure::optimal_log_delta_down(*each, *count, epsilon),
                upper: pure::optimal_log_delta_up(*each, *count, epsilon),
            },
        }
    }

    /// Returns epsilon for a delta between `e^low` and `e^high`: the upper end for `low`, the lower end for `high`.
    pub(super) fn epsilon(&self, low: f64, high: f64) -> Ends {
        match self {
            Self::Nothing => Ends::exactly(0.0),
            Self::NoGuarantee => Ends::exactly(f64::INFINITY),
            _ if high == f64::NEG_INFINITY => {
                Ends { lower: self.supremum() * (1.0 - 4.0 * f64::EPSILON), upper: self.supremum() }
            }
            _ if low == f64::NEG_INFINITY => Ends { upper: self.supremum(), ..self.epsilon(high, high) },
            Self::Gaussian(mu) => {
                Ends { lower: gaussian_epsilon_down(mu.lower, high), upper: epsilon_at(mu.upper, low) }
            }
            Self::Mixture(mixture) => {
                let upper = mixture.epsilon_at(low);
                let lower = largest_shown(upper, |epsilon| {
                    let (value, slope) = mixture_log_delta_down(mixture, epsilon);
                    (value - high, slope)
                });
                Ends { lower, upper }
            }
            Self::Laplace { x } => {
                let at = |log_delta: f64, sign: f64| {
                    let saved = -2.0 * log_one_minus_exp(log_delta) * (1.0 - sign * 8.0 * f64::EPSILON);
                    (x - saved) + sign * 2.0 * f64::EPSILON * x
                };
                Ends { lower: at(high, -1.0).max(0.0), upper: at(low, 1.0).clamp(0.0, *x) }
            }
            Self::Sampled { rate, mu } => single_step::epsilon(*rate, *mu, low, high),
            Self::Replaced(pair) => pair.epsilon(low, high),
            Self::ObjectivePerturbation { releases, mu } => {
                let upper = releases.epsilon(low.exp() * (1.0 - f64::EPSILON * (4.0 + low.abs())));
                let lower = if *mu > 0.0 { gaussian_epsilon_down(*mu, high) } else { 0.0 };
                Ends { lower: lower.min(upper), upper }
            }
            Self::Pure { epsilon, count } => Ends {
                lower: pure::optimal_epsilon_down(*epsilon, *count, high),
                upper: pure::optimal_epsilon_up(*epsilon, *count, low).min(self.supremum()),
            },
        }
    }

    /// Returns the largest privacy loss, rounded up.
    fn supremum(&self) -> f64 {
        match self {
            Self::Nothing => 0.0,
            Self::Laplace { x } => *x,
            Self::Pure { epsilon, count } => mul_up(count_up(*count), *epsilon),
            Self::Mixture(mixture) if mixture.largest_mu() == 0.0 => 0.0,
            _ => f64::INFINITY,
        }
    }
}

/// Returns the logarithm of the Gaussian mechanism's delta, rounded down; negative infinity if `mu` underflowed.
fn gaussian_log_delta_down(mu: f64, epsilon: f64) -> f64 {
    if mu > 0.0 { curve_point(mu, epsilon).log_delta_down } else { f64::NEG_INFINITY }
}

/// Returns `ln(1 - e^x)` for `x <= 0`, and negative infinity at 0.
fn log_one_minus_exp(x: f64) -> f64 {
    crate::logspace::log_one_minus_exp(x.min(0.0))
}

/// Returns the logarithm of a mixture's delta, rounded down, and its derivative. A component's `mu` formed from a sum of squares
/// was rounded up by at most four units.
fn mixture_log_delta_down(mixture: &GaussianMixture, epsilon: f64) -> (f64, f64) {
    let components = mixture.components();
    let total: f64 = components.iter().map(|component| component.1).sum();
    let (mut sum, mut slope) = (f64::NEG_INFINITY, 0.0);
    let mut terms = Vec::with_capacity(components.len());
    for &(mu, weight) in components.iter().filter(|component| component.0 > 0.0) {
        let point = curve_point(mu * (1.0 - 16.0 * f64::EPSILON), epsilon);
        let term = point.log_delta_down + weight.ln();
        sum = log_add(sum, term);
        terms.push((term, point.by_epsilon));
    }
    for (term, by_epsilon) in terms {
        if by_epsilon.is_finite() {
            slope += (term - sum).exp() * by_epsilon;
        }
    }
    let margin = f64::EPSILON * (16.0 + 4.0 * components.len() as f64 + 4.0 * sum.abs());
    (sum - total.max(1.0).ln() - margin, slope)
}
