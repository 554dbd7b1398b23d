//! The laws of the privacy loss that the contour covers.

use super::closed_laws::{self, LaplaceDecay};
use super::decay::{Layer, log_decay};
use super::line::{Effort, Points, USUAL};
use super::nodes::{LogMoment, Node, Nodes};
use super::poisson_gaussian::PoissonGaussian;
use super::replacement::Replacement;
use crate::exact::complex::Complex;
use crate::work;

/// The law of one release's privacy loss, in one direction.
#[derive(Debug, Clone)]
pub(super) enum Law {
    /// `mu^2`.
    Gaussian { square: f64 },
    /// Pairs (`mu^2`, weight) with weights that summed to `e^log_sum` before normalisation.
    Mixture { components: Vec<(f64, f64)>, log_sum: f64 },
    /// Shift over scale.
    Laplace { x: f64 },
    /// Finitely many losses.
    Atoms(Nodes),
    /// A Gaussian release from a Poisson sample.
    PoissonGaussian(PoissonGaussian),
    /// A Gaussian release from a Poisson sample in which one record is replaced.
    Replacement(Replacement),
}

/// A decreasing bound on the modulus along a line.
#[derive(Debug, Clone)]
pub(super) enum Decay {
    Gaussian { square: f64 },
    Mixture(Vec<(f64, f64)>),
    Laplace(LaplaceDecay),
    Layers(Vec<Layer>),
    None,
}

impl Law {
    /// Binary or k-ary randomised response: the truth has probability `e^epsilon` times that of each other answer.
    pub(super) fn atoms(outcomes: &[(f64, f64)]) -> Self {
        let node = |&(log_weight, loss): &(f64, f64)| Node { log_weight, loss, argument: 0.0 };
        Self::Atoms(Nodes { nodes: outcomes.iter().map(node).collect(), ..Nodes::default() })
    }

    /// Returns the largest loss.
    pub(super) fn supremum(&self) -> f64 {
        match self {
            Self::Gaussian { .. } | Self::Mixture { .. } | Self::Replacement(_) => f64::INFINITY,
            Self::Laplace { x } => *x,
            Self::Atoms(nodes) => nodes.nodes.iter().map(|node| node.loss).fold(0.0, f64::max),
            Self::PoissonGaussian(law) => law.supremum(),
        }
    }

    /// Returns `ln M` at a real `c` and its first two derivatives, uncertified; `grid` is kept between calls.
    pub(super) fn cumulant(&self, c: f64, grid: &mut SearchGrid) -> Option<[f64; 3]> {
        match self {
            Self::Gaussian { square } => Some([0.5 * c * (c + 1.0) * square, (c + 0.5) * square, *square]),
            Self::Mixture { components, .. } => Some(closed_laws::mixture_cumulant(components, c)),
            Self::Laplace { x } => Some(closed_laws::laplace_cumulant(*x, c)),
            Self::Atoms(nodes) => Some(nodes.cumulant(c)),
            Self::PoissonGaussian(law) => grid.cumulant(c, |c| law.search_nodes(c, SEARCH_EXPONENT, USUAL.nodes)),
            Self::Replacement(law) => grid.cumulant(c, |c| law.search_nodes(c, SEARCH_EXPONENT, USUAL.nodes)),
        }
    }

    /// Returns the decay of the modulus on the line at `c`, where `ln M(c)` is at most `log_moment`.
    pub(super) fn decay(&self, c: f64, log_moment: f64) -> Decay {
        match self {
            Self::Gaussian { square } => Decay::Gaussian { square: *square },
            Self::Mixture { components, .. } => {
                let tilted = |&(square, weight): &(f64, f64)| {
                    (square, weight * (0.5 * square * c * (c + 1.0) - log_moment).exp())
                };
                Decay::Mixture(components.iter().map(tilted).collect())
            }
            Self::Laplace { x } => Decay::Laplace(LaplaceDecay::new(*x, c)),
            Self::Atoms(_) => Decay::None,
            Self::PoissonGaussian(law) => layered(law.layers(c, log_moment)),
            Self::Replacement(law) => layered(law.layers(c, log_moment)),
        }
    }

    /// Calls `each` with the moment at each of the points; returns false if this takes too much work.
    ///
    /// `log_moment` is `ln M(c)`, `exponent` the negative logarithm of the permitted error, and `effort` the permitted work.
    pub(super) fn along_line(
        &self,
        Points { c, step, count: points }: Points,
        exponent: f64,
        log_moment: f64,
        effort: Effort,
        mut each: impl FnMut(usize, LogMoment),
    ) -> bool {
        let t_max = step * (points - 1) as f64;
        let made = match self {
            Self::PoissonGaussian(law) => Some(law.nodes(c, t_max, exponent, log_moment, effort.nodes)),
            Self::Replacement(law) => Some(law.nodes(c, t_max, exponent, log_moment, effort.nodes)),
            _ => None,
        };
        let nodes = match (self, &made) {
            (_, Some(Some(nodes))) | (Self::Atoms(nodes), None) => nodes,
            (_, Some(None)) => return false,
            _ => {
                work::charge(150.0 * points as f64);
                for j in 0..points {
                    each(j, self.closed_moment(Complex::new(c, j as f64 * step)));
                }
                return true;
            }
        };
        let terms = (nodes.nodes.len() as f64) * (points as f64);
        if !(terms <= effort.terms) {
            return false;
        }
        if STEPS_PER_TERM * terms > work::allowance() {
            work::cut_short();
            return false;
        }
        work::charge(STEPS_PER_TERM * terms);
        let mut walk = nodes.walk(c, step, points);
        for j in 0..points {
            each(j, walk.next());
        }
        true
    }

    fn closed_moment(&self, z: Complex) -> LogMoment {
        match self {
            Self::Gaussian { square } => closed_laws::gaussian(*square, z),
            Self::Mixture { components, log_sum } => {
                let moment = closed_laws::mixture(components, z);
                LogMoment { error: moment.error + log_sum.abs(), ..moment }
            }
            Self::Laplace { x } => closed_laws::laplace(*x, z),
            // These laws are evaluated along the line by their nodes.
            Self::Atoms(_) | Self::PoissonGaussian(_) | Self::Replacement(_) => {
                LogMoment { log: Complex::new(0.0, 0.0), error: f64::INFINITY }
            }
        }
    }
}

/// Charges the work of one law's layers.
fn layered(layers: Vec<Layer>) -> Decay {
    work::charge(STEPS_OF_LAYERS);
    Decay::Layers(layers)
}

/// Approximate number of steps for one law's layers.
const STEPS_OF_LAYERS: f64 = 2e5;

/// Number of steps for one node at one point.
const STEPS_PER_TERM: f64 = 3.0;

/// Negative logarithm of the mass dropped in a search.
const SEARCH_EXPONENT: f64 = 45.0;

/// The nodes of a search, valid for real arguments up to `reach`.
#[derive(Debug, Clone, Default)]
pub(super) struct SearchGrid {
    nodes: Nodes,
    reach: f64,
}

impl SearchGrid {
    /// As [`Law::cumulant`], with the nodes that `made` returns for real arguments up to the given one.
    fn cumulant(&mut self, c: f64, made: impl Fn(f64) -> Option<Nodes>) -> Option<[f64; 3]> {
        if !(c <= self.reach) {
            self.nodes = made(2.0 * c)?;
            work::charge(150.0 * self.nodes.nodes.len() as f64);
            self.reach = 2.0 * c;
        }
        work::charge(120.0 * self.nodes.nodes.len() as f64);
        Some(self.nodes.cumulant(c))
    }
}

impl Decay {
    /// Returns the logarithm of the bound on `|M(c + it')| / M(c)` for all `t' >= t`.
    pub(super) fn log(&self, t: f64) -> f64 {
        match self {
            Self::Gaussian { square } => -0.5 * t * t * square * (1.0 - 1e-9),
            Self::Mixture(components) => {
                let lost: f64 =
                    components.iter().map(|&(square, weight)| weight * -(-0.5 * t * t * square).exp_m1()).sum();
                (1e-12 - lost * (1.0 - 1e-6)).clamp(-1.0, 0.0).ln_1p()
            }
            Self::Laplace(decay) => decay.log_decay(t),
            Self::Layers(layers) => log_decay(layers, t),
            Self::None => 0.0,
        }
    }
}
