//! Noise added to integers.

use dp_accountant::{Adjacency, EventLog, ReplaceOne};
use dp_mechanisms::{Bounded, DiscreteGaussian, DiscreteLaplace, L1Sensitivity, L2Sensitivity, Mechanism, Sensitivity};

use super::{Entry, epsilon, pick, scored};
use crate::error::Error;
use crate::subject::{Claim, Statistic};

/// At the origin, and where doubles cannot represent every integer.
pub(super) const ORIGINS: [(&str, i64); 2] = [("", 0), ("/far", 1 << 60)];

pub(super) fn subjects() -> Result<Vec<Entry>, Error> {
    let mut subjects = Vec::new();
    for (suffix, origin) in ORIGINS {
        for distance in [1, 10] {
            let mechanism = DiscreteLaplace::<ReplaceOne>::new(L1Sensitivity::new(distance as f64)?, epsilon()?)?;
            let name = format!("discrete-laplace/{distance}{suffix}");
            subjects.push(release(name, mechanism, mechanism.sensitivity(), origin, distance)?);
        }
    }
    // Two of the four, as the trade-off curve of this law is expensive.
    for ((suffix, origin), distance) in ORIGINS.into_iter().zip([1, 10]) {
        let scale = distance as f64;
        let mechanism = DiscreteGaussian::<ReplaceOne>::from_scale(L2Sensitivity::new(scale)?, scale, 1)?;
        let name = format!("discrete-gaussian/{distance}{suffix}");
        subjects.push(release(name, mechanism, mechanism.sensitivity(), origin, distance)?);
    }
    Ok(subjects)
}

/// Uses `origin` and `origin + distance`; any increasing function of the output is an increasing function of the likelihood
/// ratio.
pub(super) fn release<M, A>(
    name: String,
    mechanism: M,
    sensitivity: Sensitivity<M::Norm, A>,
    origin: i64,
    distance: i64,
) -> Result<Entry, Error>
where
    A: Adjacency,
    M: Mechanism<i64, A, Output = i64> + Send + Sync + 'static,
{
    let claim = Claim::new(mechanism.event())?;
    let words = format!("{origin} and {distance} more");
    let subject = scored(name, words, claim, Statistic::Score, move |side, rng| {
        let value = pick(side, origin, origin.saturating_add(distance));
        let bounded = Bounded::with_proven_sensitivity(value, sensitivity);
        let released = mechanism.release(bounded, &mut EventLog::new(), rng)?;
        Ok(released.get().saturating_sub(origin) as f64)
    });
    Ok(Box::new(subject))
}
