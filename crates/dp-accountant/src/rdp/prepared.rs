//! Curves prepared for a query: a release that amplifies or combines others caches their values between orders, and inner
//! releases are evaluated once per order of a grid, so that nesting does not multiply the work.

use core::cell::RefCell;

use super::random_stopping::Stopping;
use super::shuffled::Shuffled;
use super::{group, leaf, poisson, without_replacement};
use crate::laplace_ball::Ball;
use crate::leaves::{Leaf, Leaves};
use crate::objective_perturbation::Pair;
use crate::rounding::{add_up, count_up, mul_up};
use crate::sampled_replacement::Moments;

/// Largest order of a binomial sum in a tree,
const LARGEST_SUM: f64 = 4096.0;
/// and inside another such sum, a group or the like.
const LARGEST_INNER_SUM: f64 = 512.0;

/// One kind of release, prepared for many orders.
#[derive(Debug, Clone)]
pub(crate) enum Term<'a> {
    Plain(&'a Leaf),
    Poisson(poisson::Sampled<'a>),
    WithoutReplacement(without_replacement::Sampled<'a>),
    Parallel(Vec<Base<'a>>),
    ParallelByValue(Vec<Base<'a>>),
    Group(group::Group<'a>),
    RandomStopping(Box<Stopping<'a>>),
    LaplaceBall(Ball),
    ObjectivePerturbation(Pair),
    PoissonReplacement(Moments),
    Shuffled(Shuffled),
}

impl<'a> Term<'a> {
    /// Prepares a release that is not part of another.
    pub(crate) fn new(leaf: &'a Leaf) -> Self {
        Self::with_sums_up_to(leaf, LARGEST_SUM)
    }

    fn with_sums_up_to(leaf: &'a Leaf, largest: f64) -> Self {
        let bases = |parts: &'a [Leaves]| parts.iter().map(Base::new).collect();
        match leaf {
            Leaf::Poisson { rate, base } => Self::Poisson(poisson::Sampled::new(leaf, *rate, base, largest)),
            Leaf::WithoutReplacement { rate, base } => {
                Self::WithoutReplacement(without_replacement::Sampled::new(leaf, *rate, base, largest))
            }
            Leaf::Parallel { parts } => Self::Parallel(bases(parts)),
            Leaf::ParallelByValue { parts } => Self::ParallelByValue(bases(parts)),
            Leaf::Group { size, base } => Self::Group(group::Group::new(*size, base)),
            Leaf::RandomStopping { repetitions, base } => {
                Self::RandomStopping(Box::new(Stopping::new(*repetitions, base)))
            }
            Leaf::LaplaceBall { x, dim } => Self::LaplaceBall(Ball::new(*x, *dim)),
            Leaf::ObjectivePerturbation { std_dev, regularization, loss } => {
                Self::ObjectivePerturbation(Pair::new(*std_dev, *regularization, *loss))
            }
            Leaf::PoissonReplacement(pair) => Self::PoissonReplacement(Moments::new(pair)),
            Leaf::Shuffled { epsilon, records } => Self::Shuffled(Shuffled::new(*epsilon, *records)),
            _ => Self::Plain(leaf),
        }
    }

    fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_) | Self::LaplaceBall(_) | Self::PoissonReplacement(_) | Self::Shuffled(_))
    }

    /// Returns an upper bound on the divergence of order `order >= 1` in both directions; infinite if there is none.
    pub(crate) fn at(&self, order: f64) -> f64 {
        match self {
            Self::Plain(leaf) => leaf::divergence(leaf, order),
            Self::Poisson(sampled) => sampled.rdp(order),
            Self::WithoutReplacement(sampled) => sampled.rdp(order),
            Self::Parallel(parts) => super::parallel::largest(parts.iter().map(|part| part.at(order))),
            Self::ParallelByValue(parts) => super::parallel::two_largest(parts.iter().map(|part| part.at(order))),
            Self::Group(group) => group.rdp(order),
            Self::RandomStopping(stopping) => stopping.rdp(order),
            Self::LaplaceBall(ball) => ball.rdp(order),
            Self::ObjectivePerturbation(pair) => pair.rdp(order),
            Self::PoissonReplacement(moments) => moments.rdp(order),
            Self::Shuffled(shuffled) => shuffled.rdp(order),
        }
    }
}

/// The releases inside another, prepared for many orders.
#[derive(Debug, Clone)]
pub(crate) struct Base<'a> {
    terms: Vec<(Term<'a>, f64)>,
    /// Present if an evaluation is expensive.
    grid: Option<Grid>,
}

impl<'a> Base<'a> {
    pub(crate) fn new(leaves: &'a Leaves) -> Self {
        let terms: Vec<_> = leaves
            .iter()
            .map(|(leaf, count)| (Term::with_sums_up_to(leaf, LARGEST_INNER_SUM), count_up(*count)))
            .collect();
        let grid = (!terms.iter().all(|(term, _)| term.is_plain())).then(Grid::default);
        Self { terms, grid }
    }

    /// Returns an upper bound on their joint divergence of order `order >= 1`; infinite if there is none.
    pub(crate) fn at(&self, order: f64) -> f64 {
        let directly = |order: f64| {
            self.terms.iter().fold(0.0, |total, (term, count)| add_up(total, mul_up(*count, term.at(order))))
        };
        self.grid.as_ref().map_or_else(|| directly(order), |grid| grid.read(order, directly))
    }
}

/// Divergences at the orders of a grid, evaluated on demand and interpolated by chords of `(a - 1) D_a`, which is convex in the
/// order `a`.
#[derive(Debug, Clone, Default)]
struct Grid {
    /// Indexed by the order's place in the grid; negative if not yet evaluated.
    values: RefCell<Vec<f64>>,
}

/// Orders `1 + 2^-FINE`, ..., `1 + 1/2`, then integers up to `INTEGERS`, then each about a factor `1 + 1/INTEGERS` larger.
const FINE: i32 = 48;
const INTEGERS: f64 = 32.0;
/// Order beyond which there is no bound.
const LARGEST_ORDER: f64 = 1e7;

impl Grid {
    /// Returns the place of the last grid order that is not above `order`.
    fn place(order: f64) -> usize {
        let excess = order - 1.0;
        if order < 2.0 {
            let exponent = f64::from(FINE) + excess.log2();
            if exponent < 0.0 { 0 } else { 1 + exponent as usize }
        } else if order <= INTEGERS {
            FINE as usize + order as usize - 1
        } else {
            FINE as usize + (INTEGERS + (order / INTEGERS).ln() * INTEGERS) as usize - 1
        }
    }

    /// Returns the order at a place.
    fn order(place: usize) -> f64 {
        let fine = FINE as usize;
        let integer = (place + 1) as f64 - f64::from(FINE);
        if place == 0 {
            1.0
        } else if place <= fine {
            1.0 + 2f64.powi(place as i32 - 1 - FINE)
        } else if integer <= INTEGERS {
            integer
        } else {
            // Rounded to integers, at which the sums for sampling are known.
            (INTEGERS * ((integer - INTEGERS) / INTEGERS).exp()).round()
        }
    }

    fn read(&self, order: f64, directly: impl Fn(f64) -> f64) -> f64 {
        if !(order <= LARGEST_ORDER) {
            return f64::INFINITY;
        }
        let mut place = Self::place(order);
        // Rounding may have given an adjacent place.
        while place > 0 && Self::order(place) > order {
            place -= 1;
        }
        while Self::order(place + 1) <= order {
            place += 1;
        }
        let (left, right) = (Self::order(place), Self::order(place + 1));
        let at_left = self.value(place, &directly);
        if left == order {
            return at_left;
        }
        let at_right = self.value(place + 1, &directly);
        let (low, high) = ((left - 1.0) * at_left, (right - 1.0) * at_right);
        let chord = (low + (high - low) * ((order - left) / (right - left))) / (order - 1.0);
        let chord = chord * (1.0 + 16.0 * f64::EPSILON);
        // NaN, from an infinite divergence, fails the comparison.
        if chord < at_right { chord } else { at_right }
    }

    fn value(&self, place: usize, directly: impl Fn(f64) -> f64) -> f64 {
        if let Some(&known) = self.values.borrow().get(place)
            && known >= 0.0
        {
            return known;
        }
        let value = directly(Self::order(place));
        let value = if value.is_nan() { f64::INFINITY } else { value };
        let mut values = self.values.borrow_mut();
        if values.len() <= place {
            values.resize(place + 1, -1.0);
        }
        values[place] = value;
        value
    }
}

#[cfg(test)]
mod tests;
