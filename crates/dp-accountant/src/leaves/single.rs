//! Events without inner events: their checked numbers, and the relations under which they hold.

use super::{Leaf, positive_count, unit_interval};
use crate::error::{Error, non_negative, positive};
use crate::event::DpEvent;
use crate::finite_pair::FinitePair;
use crate::gaussian_mixture::GaussianMixture;
use crate::iteration;
use crate::objective_perturbation;
use crate::rdp::RenyiPoints;
use crate::rdp::above_threshold::Gaussian;
use crate::relations::Relations;
use crate::rounding::{count_up, div_up};
use crate::sampled_replacement::Pair as ReplacementPair;

/// Ratio of sensitivity to noise beyond which a release counts as having no guarantee.
pub(super) const LARGEST_RATIO: f64 = 1e100;

/// Ratios are rounded up to this, so that their squares do not underflow to a cost of zero.
pub(crate) const SMALLEST_RATIO: f64 = 1e-150;

/// Reads an event without inner events, with the relations under which it holds.
pub(super) fn single(event: &DpEvent) -> Result<(Leaf, Relations), Error> {
    let leaf = match event {
        DpEvent::Gaussian { std_dev, sensitivity } => {
            ratio(*sensitivity, "std_dev", *std_dev)?.map_or(Leaf::NonPrivate, |mu| Leaf::Gaussian { mu })
        }
        DpEvent::Laplace { scale, sensitivity } => {
            ratio(*sensitivity, "scale", *scale)?.map_or(Leaf::NonPrivate, |x| Leaf::Laplace { x })
        }
        DpEvent::LaplaceBall { scale, sensitivity, dim } => {
            let dim = positive_count("dim", *dim)?;
            ratio(*sensitivity, "scale", *scale)?.map_or(Leaf::NonPrivate, |x| Leaf::LaplaceBall { x, dim })
        }
        DpEvent::PureDp { epsilon } => Leaf::Pure { epsilon: non_negative("epsilon", *epsilon)? },
        DpEvent::ApproximateDp { epsilon, delta } => {
            let epsilon = non_negative("epsilon", *epsilon)?;
            match delta {
                0.0 => Leaf::Pure { epsilon },
                delta if (0.0..1.0).contains(delta) => Leaf::Approximate { epsilon, delta: *delta },
                &value => return Err(Error::OutOfRange { name: "delta", value, range: "[0, 1)" }),
            }
        }
        DpEvent::Zcdp { rho } => Leaf::Zcdp { rho: non_negative("rho", *rho)? },
        DpEvent::GaussianMixture { std_dev, sensitivities, weights } => {
            let mixture = GaussianMixture::new(*std_dev, sensitivities, weights)?;
            match mixture.largest_mu() {
                0.0 => Leaf::Pure { epsilon: 0.0 },
                mu if mu > LARGEST_RATIO => Leaf::NonPrivate,
                _ => Leaf::Mixture(mixture),
            }
        }
        DpEvent::DiscreteGaussian { scale, sensitivity, dim } => {
            let dim = positive_count("dim", *dim)?;
            match ratio(*sensitivity, "scale", *scale)? {
                Some(_) => Leaf::DiscreteGaussian { scale: *scale, sensitivity: *sensitivity, dim },
                None => Leaf::NonPrivate,
            }
        }
        DpEvent::DiscreteLaplace { scale, sensitivity } => {
            let sensitivity = positive_count("sensitivity", *sensitivity)?;
            match ratio(count_up(sensitivity), "scale", *scale)? {
                Some(_) => Leaf::DiscreteLaplace { scale: *scale, sensitivity },
                None => Leaf::NonPrivate,
            }
        }
        DpEvent::RandomizedResponse { buckets, noise } => {
            if *buckets < 2 {
                return Err(Error::OutOfRange { name: "buckets", value: *buckets as f64, range: "[2, 2^64)" });
            }
            let noise = unit_interval("noise", *noise)?;
            let leaf =
                if noise == 0.0 { Leaf::NonPrivate } else { Leaf::RandomizedResponse { buckets: *buckets, noise } };
            return Ok((leaf, Relations::REPLACE_ONE));
        }
        DpEvent::BoundedRange { epsilon } => Leaf::BoundedRange { epsilon: non_negative("epsilon", *epsilon)? },
        DpEvent::Gdp { mu } => {
            let mu = non_negative("mu", *mu)?;
            if mu > LARGEST_RATIO { Leaf::NonPrivate } else { Leaf::Gaussian { mu: mu.max(SMALLEST_RATIO) } }
        }
        DpEvent::RenyiDp { orders, divergences } => Leaf::Renyi(RenyiPoints::new(orders, divergences)?),
        DpEvent::DominatingPair { p, q } => Leaf::Pair(FinitePair::new(p, q)?),
        DpEvent::PoissonSampledReplacement { sampling_rate, std_dev, distance, radius } => {
            let rate = unit_interval("sampling_rate", *sampling_rate)?;
            let (mu, radius) = replacement(*std_dev, *distance, *radius)?;
            let leaf = match (rate, mu) {
                (0.0, _) => Leaf::Pure { epsilon: 0.0 },
                (_, None) => Leaf::NonPrivate,
                (1.0, Some(mu)) => Leaf::Gaussian { mu },
                (rate, Some(mu)) => Leaf::PoissonReplacement(ReplacementPair::new(rate, mu, radius)),
            };
            return Ok((leaf, Relations::IN_PLACE));
        }
        DpEvent::Shuffled { epsilon, records } => {
            let records = positive_count("records", *records)?;
            let leaf = Leaf::Shuffled { epsilon: non_negative("epsilon", *epsilon)?, records };
            return Ok((leaf, Relations::REPLACE_ONE));
        }
        DpEvent::AmplifiedByIteration { sensitivities, std_devs, contraction } => {
            let mu = iteration::mu(sensitivities, std_devs, *contraction)?;
            let leaf =
                if mu <= LARGEST_RATIO { Leaf::Gaussian { mu: mu.max(SMALLEST_RATIO) } } else { Leaf::NonPrivate };
            return Ok((leaf, Relations::PUBLIC_COUNT));
        }
        DpEvent::AboveThresholdLaplace { threshold_scale, query_scale, sensitivity } => {
            let threshold = ratio(*sensitivity, "threshold_scale", *threshold_scale)?;
            let query = ratio(*sensitivity, "query_scale", *query_scale)?;
            match (threshold, query) {
                (Some(threshold), Some(query)) => Leaf::AboveThresholdLaplace { threshold, query: 2.0 * query },
                _ => Leaf::NonPrivate,
            }
        }
        DpEvent::AboveThresholdGaussian {
            threshold_std_dev,
            query_std_dev,
            sensitivity,
            max_queries,
            range_bounded,
        } => {
            let threshold = ratio(*sensitivity, "threshold_std_dev", *threshold_std_dev)?;
            let query = ratio(*sensitivity, "query_std_dev", *query_std_dev)?;
            match (threshold, query) {
                (Some(threshold), Some(query)) => Leaf::AboveThresholdGaussian(Gaussian {
                    threshold,
                    query,
                    max_queries: *max_queries,
                    range_bounded: *range_bounded,
                }),
                _ => Leaf::NonPrivate,
            }
        }
        DpEvent::ObjectivePerturbation { std_dev, regularization, loss } => {
            let (std_dev, regularization) = (*std_dev, *regularization);
            objective_perturbation::check(std_dev, regularization, *loss)?;
            let leaf = Leaf::ObjectivePerturbation { std_dev, regularization, loss: *loss };
            return Ok((leaf, Relations::ADD_REMOVE));
        }
        // The callers read the other events; an event that cannot be read has no guarantee.
        _ => Leaf::NonPrivate,
    };
    Ok((leaf, Relations::ANY))
}

/// Returns the largest distance of two contributions over the noise, and their largest norm over that distance, in [1/2, 1], both
/// rounded up. Two points of norm `radius` are at most twice that apart.
fn replacement(std_dev: f64, distance: f64, radius: f64) -> Result<(Option<f64>, f64), Error> {
    let (radius, distance) = (positive("radius", radius)?, positive("distance", distance)?);
    if radius > distance {
        return Err(Error::OutOfRange { name: "radius", value: radius, range: "(0, distance]" });
    }
    let relative = if radius <= 0.5 * distance { 0.5 } else { div_up(radius, distance).min(1.0) };
    Ok((ratio(distance.min(2.0 * radius), "std_dev", std_dev)?, relative))
}

/// Returns sensitivity over noise, rounded up; `None` if it is so large that there is no protection.
fn ratio(sensitivity: f64, noise_name: &'static str, noise: f64) -> Result<Option<f64>, Error> {
    let ratio = div_up(positive("sensitivity", sensitivity)?, positive(noise_name, noise)?);
    Ok((ratio <= LARGEST_RATIO).then_some(ratio.max(SMALLEST_RATIO)))
}
