//! The privacy loss of each kind of release.

use std::sync::Arc;

use crate::laplace_ball::BallLaw;
use crate::leaves::Leaf;
use crate::loss_law::{Gaussian, Laplace, Law, LossLaw, Mixture, Sampled, discrete, response, shuffled};
use crate::objective_perturbation;

/// Returns the law of one release in the first direction; `None` if no dominating pair is known that could be composed.
pub(super) fn law_of(leaf: &Leaf) -> Option<Law> {
    Some(match leaf {
        Leaf::Gaussian { mu } => Law::known(Gaussian::new(*mu)),
        Leaf::PoissonGaussian { rate, mu } => Law::known(Sampled::new(*rate, Arc::new(Gaussian::new(*mu)))),
        Leaf::Mixture(mixture) => {
            let components = mixture.components().iter();
            Law::known(Mixture::new(components.map(|&(mu, weight)| (weight, mu))))
        }
        Leaf::Laplace { x } => Law::known(Laplace::new(*x)),
        Leaf::LaplaceBall { x, dim } => match BallLaw::new(*x, *dim) {
            Some(law) => Law::known(law),
            None => Law::known(Laplace::new(*x)),
        },
        Leaf::Pure { epsilon } => Law::known(response::pure(*epsilon)),
        Leaf::Approximate { epsilon, delta } => Law::known(response::approximate(*epsilon, *delta)),
        Leaf::RandomizedResponse { buckets, noise } => Law::known(response::randomized(*buckets, *noise)),
        Leaf::Pair(pair) => Law::known(response::pair(pair)),
        Leaf::DiscreteLaplace { scale, sensitivity } => Law::known(discrete::laplace(*scale, *sensitivity)?),
        Leaf::DiscreteGaussian { scale, sensitivity, dim: 1 } => Law::known(discrete::gaussian(*scale, *sensitivity)?),
        Leaf::ObjectivePerturbation { std_dev, regularization, loss } => {
            objective_perturbation::law(*std_dev, *regularization, *loss)?
        }
        Leaf::PoissonReplacement(pair) => pair.law(),
        Leaf::Shuffled { epsilon, records } => shuffled::law(*epsilon, *records)?,
        Leaf::Poisson { rate, base } => {
            let [(base, 1)] = base.as_slice() else { return None };
            let sampled = |base| -> Arc<dyn LossLaw> { Arc::new(Sampled::new(*rate, base)) };
            match law_of(base)? {
                Law::Known(base) => Law::Known(sampled(base)),
                Law::Between { above, below } => Law::Between { above: sampled(above), below: sampled(below) },
                Law::Bounded(_) => return None,
            }
        }
        _ => return None,
    })
}
