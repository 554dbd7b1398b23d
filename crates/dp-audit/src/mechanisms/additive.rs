//! Noise added to vectors.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Epsilon, EventLog, ReplaceOne};
use dp_mechanisms::{
    Bounded, Gaussian, GaussianMixture, Laplace, LaplaceBall, Mechanism, PrivacyEvent, Staircase, exact,
};

use super::{Entry, SENSITIVITY, pick, scored, sensitivity};
use crate::error::Error;
use crate::subject::{Claim, Statistic, USUAL_DELTA};

/// How far from the origin a fault of absolute precision would show, in sensitivities.
const FAR: f64 = 1e6;

pub(super) fn subjects() -> Result<Vec<Entry>, Error> {
    let mut subjects = Vec::new();
    for pair in Pair::all() {
        subjects.push(gaussian(&pair, NoiseMode::Exact)?);
        subjects.push(ball(&pair, NoiseMode::Exact)?);
    }
    // L1 and L2 distance agree along an axis.
    for (dim, origin, mode) in [
        (1, 0.0, NoiseMode::Exact),
        (10, 0.0, NoiseMode::Exact),
        (1, FAR, NoiseMode::Exact),
        (1, 0.0, NoiseMode::Rounded),
    ] {
        subjects.push(laplace(&Pair::axis(dim, origin), mode)?);
    }
    for epsilon in [1.0, 4.0] {
        subjects.push(staircase(epsilon)?);
    }
    for dim in [1, 10] {
        let pair = Pair::axis(dim, 0.0);
        subjects.push(gaussian(&pair, NoiseMode::Rounded)?);
        subjects.push(ball(&pair, NoiseMode::Rounded)?);
    }
    subjects.push(mixture(NoiseMode::Exact)?);
    subjects.push(mixture(NoiseMode::Rounded)?);
    Ok(subjects)
}

/// Two vectors at L2 distance 1.
#[derive(Clone)]
struct Pair {
    name: String,
    words: String,
    base: Vec<f64>,
    neighbour: Vec<f64>,
}

impl Pair {
    /// Axis and diagonal, near and far.
    fn all() -> Vec<Self> {
        let mut pairs = Vec::new();
        for dim in [1, 2, 10, 1000] {
            pairs.push(Self::axis(dim, 0.0));
            pairs.push(Self::axis(dim, FAR));
        }
        pairs.push(Self::diagonal(10));
        pairs
    }

    fn axis(dim: usize, origin: f64) -> Self {
        let base = vec![origin; dim];
        let mut neighbour = base.clone();
        if let Some(first) = neighbour.first_mut() {
            *first += SENSITIVITY;
        }
        let far = origin != 0.0;
        Self {
            name: format!("{dim}{}", if far { "/far" } else { "" }),
            words: format!("{} and D along an axis from there, {dim} coordinates", if far { "10^6 D" } else { "0" }),
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
}

/// `mechanism` on the pair, with its cost for one coordinate; `log_ratio(output, base, neighbour)` grows with the
/// likelihood of the neighbour.
fn release<M>(
    (name, cost): (&str, f64),
    mode: NoiseMode,
    pair: &Pair,
    mechanism: M,
    claim: Claim,
    log_ratio: impl Fn(&[f64], &[f64], &[f64]) -> f64 + Send + Sync + 'static,
) -> Result<Entry, Error>
where
    M: Mechanism<Vec<f64>, ReplaceOne, Output = Vec<f64>> + Send + Sync + 'static,
{
    let Pair { name: suffix, words, base, neighbour } = pair.clone();
    let sensitivity = sensitivity::<M::Norm>()?;
    let subject =
        scored(format!("{name}/{suffix}{}", suffix_of(mode)), words, claim, Statistic::Score, move |side, rng| {
            let value = pick(side, &base, &neighbour).clone();
            let bounded = Bounded::with_proven_sensitivity(value, sensitivity);
            let released = mechanism.release(bounded, &mut EventLog::new(), rng)?;
            Ok(log_ratio(released.get(), &base, &neighbour))
        });
    Ok(Box::new(subject.with_relative_cost(cost * (1.0 + pair.dim() as f64 / 40.0))))
}

/// mu = 1; the projection on the shift.
fn gaussian(pair: &Pair, mode: NoiseMode) -> Result<Entry, Error> {
    let mechanism = Gaussian::<ReplaceOne>::from_std_dev(sensitivity()?, 1.0)?.with_noise_mode(mode)?;
    let claim = Claim::new(mechanism.event())?;
    release(("gaussian", 1.0), mode, pair, mechanism, claim, |output, base, neighbour| {
        output.iter().zip(base).zip(neighbour).map(|((y, base), neighbour)| (y - base) * (neighbour - base)).sum()
    })
}

/// Epsilon = 1; the log-likelihood ratio.
fn laplace(pair: &Pair, mode: NoiseMode) -> Result<Entry, Error> {
    let mechanism = Laplace::<ReplaceOne>::new(sensitivity()?, Epsilon::new(1.0)?)?.with_noise_mode(mode)?;
    let claim = Claim::new(mechanism.event())?;
    release(("laplace", 1.0), mode, pair, mechanism, claim, |output, base, neighbour| {
        let ratio = |((y, base), neighbour): ((&f64, &f64), &f64)| (y - base).abs() - (y - neighbour).abs();
        output.iter().zip(base).zip(neighbour).map(ratio).sum()
    })
}

/// 0 and D: how many steps of the staircase lie between the output and either.
fn staircase(epsilon: f64) -> Result<Entry, Error> {
    let mechanism = Staircase::<ReplaceOne>::new(sensitivity()?, Epsilon::new(epsilon)?)?;
    let claim = Claim::new(mechanism.event())?;
    let gamma = mechanism.gamma();
    let words = format!("0 and D, epsilon = {epsilon}");
    let subject = scored(format!("staircase/{epsilon}"), words, claim, Statistic::Score, move |side, rng| {
        let bounded = Bounded::with_proven_sensitivity(pick(side, 0.0, SENSITIVITY), sensitivity()?);
        let released = mechanism.release(bounded, &mut EventLog::new(), rng)?;
        let step = |distance: f64| (distance.abs() / SENSITIVITY + 1.0 - gamma).floor();
        Ok(step(*released.get()) - step(*released.get() - SENSITIVITY))
    });
    Ok(Box::new(subject))
}

/// Epsilon = √d, at which the loss has about the same spread for all d, stated at delta = 0 for one coordinate and at
/// 10^-5 beyond, where what is pure is rare.
fn ball(pair: &Pair, mode: NoiseMode) -> Result<Entry, Error> {
    let epsilon = Epsilon::new((pair.dim() as f64).sqrt())?;
    let mechanism = LaplaceBall::<ReplaceOne>::new(sensitivity()?, epsilon, pair.dim())?.with_noise_mode(mode)?;
    let mut claim = Claim::new(mechanism.event())?;
    if pair.dim() > 1 {
        claim.delta = USUAL_DELTA;
    }
    release(
        ("laplace-ball", if mode == NoiseMode::Exact { 1.5 } else { 1.0 }),
        mode,
        pair,
        mechanism,
        claim,
        |output, base, neighbour| distance(output, base) - distance(output, neighbour),
    )
}

/// What a name says of the mode: nothing of the default one.
fn suffix_of(mode: NoiseMode) -> &'static str {
    if mode == NoiseMode::Rounded { "/rounded" } else { "" }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// A record whose hidden place decides how far it moves the value: 0, 1/2 or 1.
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
