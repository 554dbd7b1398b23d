//! Noise added to vectors.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, Epsilon, EventLog, ReplaceOne};
use dp_mechanisms::{
    Bounded, Gaussian, GaussianMixture, Laplace, LaplaceBall, Mechanism, PrivacyEvent, Sensitivity, Staircase, exact,
};

use super::{Entry, SENSITIVITY, pick, scored, sensitivity};
use crate::error::Error;
use crate::subject::{Claim, Statistic, USUAL_DELTA};

/// Distance from the origin, in sensitivities, at which an error of absolute precision would show.
pub(super) const FAR: f64 = 1e6;

pub(super) fn subjects() -> Result<Vec<Entry>, Error> {
    let mut subjects = Vec::new();
    for (mode, pairs) in [
        (NoiseMode::Exact, Pair::all()),
        (NoiseMode::Rounded, vec![Pair::axis(1, 0.0, SENSITIVITY), Pair::axis(10, 0.0, SENSITIVITY)]),
    ] {
        // mu = 1.
        for pair in &pairs {
            let mechanism = Gaussian::<ReplaceOne>::from_std_dev(sensitivity()?, 1.0)?.with_noise_mode(mode)?;
            subjects.push(gaussian(pair.named("gaussian", mode), pair, mechanism)?);
        }
        // Epsilon = √d, for which the privacy loss has about the same spread for all d.
        for pair in &pairs {
            let epsilon = Epsilon::new((pair.dim() as f64).sqrt())?;
            let mechanism = LaplaceBall::<ReplaceOne>::new(sensitivity()?, epsilon, pair.dim())?;
            subjects.push(ball(pair.named("laplace-ball", mode), pair, mechanism.with_noise_mode(mode)?)?);
        }
    }
    // L1 and L2 distance agree along an axis.
    for (dim, origin, mode) in [
        (1, 0.0, NoiseMode::Exact),
        (10, 0.0, NoiseMode::Exact),
        (1, FAR, NoiseMode::Exact),
        (1, 0.0, NoiseMode::Rounded),
    ] {
        let pair = Pair::axis(dim, origin, SENSITIVITY);
        let mechanism = Laplace::<ReplaceOne>::new(sensitivity()?, Epsilon::new(1.0)?)?.with_noise_mode(mode)?;
        subjects.push(laplace(pair.named("laplace", mode), &pair, mechanism)?);
    }
    for epsilon in [1.0, 4.0] {
        let mechanism = Staircase::<ReplaceOne>::new(sensitivity()?, Epsilon::new(epsilon)?)?;
        subjects.push(staircase(format!("staircase/{epsilon}"), mechanism)?);
    }
    subjects.push(mixture(NoiseMode::Exact)?);
    subjects.push(mixture(NoiseMode::Rounded)?);
    Ok(subjects)
}

/// Two vectors at an L2 distance.
#[derive(Clone)]
pub(super) struct Pair {
    name: String,
    words: String,
    base: Vec<f64>,
    neighbour: Vec<f64>,
}

impl Pair {
    /// Returns the pairs along axis and diagonal, near and far.
    fn all() -> Vec<Self> {
        let mut pairs = Vec::new();
        for dim in [1, 2, 10, 1000] {
            pairs.push(Self::axis(dim, 0.0, SENSITIVITY));
            pairs.push(Self::axis(dim, FAR, SENSITIVITY));
        }
        pairs.push(Self::diagonal(10));
        pairs
    }

    /// Creates a pair at `distance`, or, if the sum is rounded, at the next smaller representable distance.
    pub(super) fn axis(dim: usize, origin: f64, distance: f64) -> Self {
        let base = vec![origin; dim];
        let mut neighbour = base.clone();
        if let Some(first) = neighbour.first_mut() {
            let moved = origin + distance;
            *first = if moved - origin <= distance { moved } else { moved.next_down() };
        }
        let far = origin != 0.0;
        let coordinates = if dim == 1 { "coordinate" } else { "coordinates" };
        Self {
            name: format!("{dim}{}", if far { "/far" } else { "" }),
            words: format!("{} and D along an axis from there, {dim} {coordinates}", if far { "10^6 D" } else { "0" }),
            base,
            neighbour,
        }
    }

    fn diagonal(dim: usize) -> Self {
        Self {
            name: format!("{dim}/diagonal"),
            words: format!("0 and D/√{dim} (1, .., 1)"),
            base: vec![0.0; dim],
            neighbour: vec![SENSITIVITY / (dim as f64).sqrt(); dim],
        }
    }

    fn dim(&self) -> u64 {
        self.base.len() as u64
    }

    /// Returns the name of a mechanism on this pair.
    fn named(&self, mechanism: &str, mode: NoiseMode) -> String {
        format!("{mechanism}/{}{}", self.name, suffix_of(mode))
    }
}

/// Creates a subject of `mechanism` on the pair, with its cost for one coordinate; `log_ratio(output, base, neighbour)`
/// increases with the likelihood of the neighbour.
fn release<M, A>(
    (name, cost): (String, f64),
    pair: &Pair,
    mechanism: M,
    sensitivity: Sensitivity<M::Norm, A>,
    claim: Claim,
    log_ratio: impl Fn(&[f64], &[f64], &[f64]) -> f64 + Send + Sync + 'static,
) -> Result<Entry, Error>
where
    A: Adjacency,
    M: Mechanism<Vec<f64>, A, Output = Vec<f64>> + Send + Sync + 'static,
{
    let Pair { words, base, neighbour, .. } = pair.clone();
    let subject = scored(name, words, claim, Statistic::Score, move |side, rng| {
        let value = pick(side, &base, &neighbour).clone();
        let bounded = Bounded::with_proven_sensitivity(value, sensitivity);
        let released = mechanism.release(bounded, &mut EventLog::new(), rng)?;
        Ok(log_ratio(released.get(), &base, &neighbour))
    });
    Ok(Box::new(subject.with_relative_cost(cost * (1.0 + pair.dim() as f64 / 40.0))))
}

/// Uses the projection on the shift.
pub(super) fn gaussian<A: Adjacency>(name: String, pair: &Pair, mechanism: Gaussian<A>) -> Result<Entry, Error> {
    let claim = Claim::new(mechanism.event())?;
    let (sensitivity, unit) = (mechanism.sensitivity(), mechanism.sensitivity().get());
    release((name, 1.0), pair, mechanism, sensitivity, claim, move |output, base, neighbour| {
        output
            .iter()
            .zip(base)
            .zip(neighbour)
            .map(|((y, base), neighbour)| (y - base) * ((neighbour - base) / unit))
            .sum()
    })
}

/// Uses the log-likelihood ratio, in scales.
pub(super) fn laplace<A: Adjacency>(name: String, pair: &Pair, mechanism: Laplace<A>) -> Result<Entry, Error> {
    let claim = Claim::new(mechanism.event())?;
    let sensitivity = mechanism.sensitivity();
    release((name, 1.0), pair, mechanism, sensitivity, claim, |output, base, neighbour| {
        let ratio = |((y, base), neighbour): ((&f64, &f64), &f64)| (y - base).abs() - (y - neighbour).abs();
        output.iter().zip(base).zip(neighbour).map(ratio).sum()
    })
}

/// Uses 0 and D, and the number of steps of the staircase between the output and either.
pub(super) fn staircase<A: Adjacency>(name: String, mechanism: Staircase<A>) -> Result<Entry, Error> {
    let claim = Claim::new(mechanism.event())?;
    let (gamma, sensitivity) = (mechanism.gamma(), mechanism.sensitivity());
    let words = format!("0 and D, epsilon = {}", mechanism.epsilon().get());
    let subject = scored(name, words, claim, Statistic::Score, move |side, rng| {
        let distance = sensitivity.get();
        let bounded = Bounded::with_proven_sensitivity(pick(side, 0.0, distance), sensitivity);
        let released = *mechanism.release(bounded, &mut EventLog::new(), rng)?.get();
        let step = |from: f64| ((released - from).abs() / distance + 1.0 - gamma).floor();
        Ok(step(0.0) - step(distance))
    });
    Ok(Box::new(subject))
}

/// Uses the log-likelihood ratio, in scales; stated at delta = 0 for one coordinate and at 10^-5 for more, where the outcomes
/// that attain the pure epsilon are rare.
pub(super) fn ball<A: Adjacency>(name: String, pair: &Pair, mechanism: LaplaceBall<A>) -> Result<Entry, Error> {
    let mut claim = Claim::new(mechanism.event())?;
    if pair.dim() > 1 {
        claim.delta = USUAL_DELTA;
    }
    let (sensitivity, unit) = (mechanism.sensitivity(), mechanism.sensitivity().get());
    let cost = if mechanism.noise_mode() == NoiseMode::Exact { 1.5 } else { 1.0 };
    release((name, cost), pair, mechanism, sensitivity, claim, move |output, base, neighbour| {
        distance(output, base, unit) - distance(output, neighbour, unit)
    })
}

/// Returns the suffix of a name for the mode, empty for the default one.
pub(super) fn suffix_of(mode: NoiseMode) -> &'static str {
    if mode == NoiseMode::Rounded { "/rounded" } else { "" }
}

/// Computes the distance in units of `unit`, so that no square overflows.
fn distance(a: &[f64], b: &[f64], unit: f64) -> f64 {
    a.iter().zip(b).map(|(a, b)| ((a - b) / unit).powi(2)).sum::<f64>().sqrt()
}

/// A record whose hidden position decides how far it moves the value: 0, 1/2 or 1.
fn mixture(mode: NoiseMode) -> Result<Entry, Error> {
    const STD_DEV: f64 = 0.5;
    let (shifts, weights) = ([0.0, 0.5, 1.0], [0.25, 0.25, 0.5]);
    let mechanism =
        GaussianMixture::<ReplaceOne>::new(STD_DEV, shifts.to_vec(), weights.to_vec())?.with_noise_mode(mode)?;
    let claim = Claim::new(mechanism.event())?;
    let words = "0, and 0, D/2 or D by a hidden index".to_owned();
    let subject =
        scored(format!("gaussian-mixture/1{}", suffix_of(mode)), words, claim, Statistic::Score, move |side, rng| {
            let place = exact::uniform_below(4, rng)?;
            let shift = pick(side, 0.0, [0.0, 0.5, 1.0, 1.0].get(place as usize).copied().unwrap_or(0.0));
            let bounded = Bounded::with_proven_sensitivity(vec![shift], sensitivity()?);
            let released = mechanism.release(bounded, &mut EventLog::new(), rng)?;
            let y: f64 = released.get().iter().sum();
            let ratio = |shift: f64| (shift * (y - 0.5 * shift) / (STD_DEV * STD_DEV)).exp();
            Ok(shifts.iter().zip(weights).map(|(&shift, weight)| weight * ratio(shift)).sum())
        });
    Ok(Box::new(subject))
}
