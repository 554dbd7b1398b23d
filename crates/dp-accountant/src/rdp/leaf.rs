//! The Renyi curve of one release, computed in the file of its kind.

use super::prepared::Term;
use super::{
    above_threshold, bounded_range, discrete_laplace, finite_pair, gaussian, laplace, mixture, poisson_gaussian, pure,
    randomized_response,
};
use crate::error::Error;
use crate::leaves::Leaf;

/// Returns an upper bound on the divergence of order `order >= 1` in both directions; infinite if there is none.
pub(crate) fn divergence(leaf: &Leaf, order: f64) -> f64 {
    match leaf {
        Leaf::NonPrivate | Leaf::Approximate { .. } => f64::INFINITY,
        Leaf::Gaussian { mu } => order * gaussian::rdp_per_order(*mu),
        Leaf::Laplace { x } => laplace::rdp(order, *x),
        Leaf::Pure { epsilon } => pure::rdp(order, *epsilon),
        Leaf::Zcdp { rho } => order * rho,
        Leaf::Mixture(mixture) => mixture::rdp(order, mixture),
        // Canonne, Kamath and Steinke 2020, Theorem 4: the same as the continuous law, in any dimension.
        Leaf::DiscreteGaussian { scale, sensitivity, .. } => order * gaussian::rdp_per_order(sensitivity / scale),
        Leaf::DiscreteLaplace { scale, sensitivity } => discrete_laplace::rdp(order, *scale, *sensitivity),
        Leaf::RandomizedResponse { buckets, noise } => randomized_response::rdp(order, *buckets, *noise),
        Leaf::BoundedRange { epsilon } => bounded_range::rdp(order, *epsilon),
        Leaf::Renyi(points) => points.rdp(order),
        Leaf::Pair(pair) => finite_pair::rdp(order, pair),
        Leaf::PoissonGaussian { rate, mu } => poisson_gaussian::rdp(order, *rate, *mu),
        Leaf::AboveThresholdLaplace { threshold, query } => above_threshold::rdp_laplace(order, *threshold, *query),
        Leaf::AboveThresholdGaussian(mechanism) => mechanism.rdp(order),
        Leaf::Poisson { .. }
        | Leaf::WithoutReplacement { .. }
        | Leaf::Parallel { .. }
        | Leaf::ParallelByValue { .. }
        | Leaf::Group { .. }
        | Leaf::RandomStopping { .. }
        | Leaf::LaplaceBall { .. }
        | Leaf::ObjectivePerturbation { .. }
        | Leaf::PoissonReplacement(_)
        | Leaf::Shuffled { .. } => Term::new(leaf).at(order),
    }
}

/// Refuses releases that have a guarantee but no finite divergence, at any depth.
pub(crate) fn check(leaf: &Leaf) -> Result<(), Error> {
    match leaf {
        Leaf::Approximate { .. } => Err(Error::Unsupported { accountant: "Renyi", event: leaf.name() }),
        Leaf::Poisson { base, .. }
        | Leaf::WithoutReplacement { base, .. }
        | Leaf::Group { base, .. }
        | Leaf::RandomStopping { base, .. } => base.iter().try_for_each(|(leaf, _)| check(leaf)),
        Leaf::Parallel { parts } | Leaf::ParallelByValue { parts } => {
            parts.iter().flatten().try_for_each(|(leaf, _)| check(leaf))
        }
        _ => Ok(()),
    }
}
