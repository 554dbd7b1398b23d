//! Input of three lines: the kind of mechanism, the mechanism as JSON, the value as JSON. Shared by the fuzzer and by the test
//! that runs its seeds.

use dp_accountant::{Adjacency, EventLog, ReplaceOne, ZeroOut};
use dp_mechanisms::scores::Scores;
use dp_mechanisms::{
    AboveThreshold, Bounded, DiscreteGaussian, DiscreteLaplace, Error, Exponential, Gaussian, GaussianAboveThreshold,
    GaussianMixture, Laplace, LaplaceBall, Mechanism, NoisyMax, Norm, PermuteAndFlip, PrivacyEvent, RandomizedResponse,
    Released, Secret, SeededRng, Sensitivity, Staircase,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The result for the three lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// They are not a mechanism with a value of its type.
    Unread,
    /// The mechanism refused the value.
    Refused,
    /// It was released.
    Released,
}

/// Reads a mechanism and a value and releases it; panics if a law of mechanisms is violated.
pub fn read_and_release(bytes: &[u8]) -> Outcome {
    read(bytes).unwrap_or(Outcome::Unread)
}

fn read(bytes: &[u8]) -> Option<Outcome> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.splitn(3, '\n');
    let (kind, mechanism, value) = (lines.next()?, lines.next()?, lines.next()?);
    match kind {
        "gaussian" => floats::<Gaussian<ZeroOut>>(mechanism, value),
        "gaussian-mixture" => floats::<GaussianMixture<ZeroOut>>(mechanism, value),
        "laplace" => floats::<Laplace<ZeroOut>>(mechanism, value),
        "staircase" => {
            let mechanism: Staircase<ZeroOut> = parsed(mechanism)?;
            released(&mechanism, serde_json::from_str::<f64>(value).ok()?, |output: &f64| output.is_finite())
        }
        "laplace-ball" => floats::<LaplaceBall<ZeroOut>>(mechanism, value),
        "discrete-laplace" => integers::<DiscreteLaplace<ZeroOut>>(mechanism, value),
        "discrete-gaussian" => integers::<DiscreteGaussian<ZeroOut>>(mechanism, value),
        "exponential" => choice::<Exponential<ZeroOut>>(mechanism, value),
        "permute-and-flip" => choice::<PermuteAndFlip<ZeroOut>>(mechanism, value),
        "noisy-max" => choice::<NoisyMax<ZeroOut>>(mechanism, value),
        "randomized-response" => response(mechanism, value),
        "above-threshold" => {
            let mechanism: AboveThreshold<ZeroOut> = parsed(mechanism)?;
            session(value, &mechanism, |log, rng| mechanism.start(0.0, log, rng))
        }
        "gaussian-above-threshold" => {
            let mechanism: GaussianAboveThreshold<ZeroOut> = parsed(mechanism)?;
            session(value, &mechanism, |log, rng| mechanism.start(0.0, log, rng))
        }
        _ => None,
    }
}

/// Parses a mechanism and checks that it is unchanged when written and read again.
fn parsed<M: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(text: &str) -> Option<M> {
    let mechanism: M = serde_json::from_str(text).ok()?;
    let again = serde_json::to_string(&mechanism).expect("a mechanism is written");
    assert_eq!(serde_json::from_str::<M>(&again).expect("what was written is read"), mechanism);
    Some(mechanism)
}

/// Checks one release: one log entry with a valid event; a refusal leaves the log unchanged.
fn checked<A: Adjacency, O>(
    mechanism: &impl PrivacyEvent,
    log: &EventLog<A>,
    result: Result<Released<O>, Error>,
    is_sound: impl FnOnce(&O) -> bool,
) -> Option<Outcome> {
    assert!(mechanism.event().relations().is_ok(), "{:?}", mechanism.event());
    match result {
        Ok(released) => {
            assert!(is_sound(released.get()));
            assert_eq!(log.entries(), [(mechanism.event(), 1)]);
            assert!(!log.is_private(), "the generator is seeded");
            Some(Outcome::Released)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(log.entries().is_empty() && log.is_private());
            Some(Outcome::Refused)
        }
    }
}

fn released<V, M, O>(mechanism: &M, value: V, is_sound: impl FnOnce(&O) -> bool) -> Option<Outcome>
where
    M: Mechanism<V, ZeroOut, Output = O>,
    M::Norm: Norm,
{
    // Small enough for every mechanism.
    let sensitivity = Sensitivity::<M::Norm, ZeroOut>::new(f64::MIN_POSITIVE).ok()?;
    let mut log = EventLog::new();
    let value = Bounded::with_proven_sensitivity(value, sensitivity);
    let result = mechanism.release(value, &mut log, &mut SeededRng::new(1));
    checked(mechanism, &log, result, is_sound)
}

fn floats<M>(mechanism: &str, value: &str) -> Option<Outcome>
where
    M: Mechanism<Vec<f64>, ZeroOut, Output = Vec<f64>> + Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let value: Vec<f64> = serde_json::from_str(value).ok()?;
    let length = value.len();
    let is_sound = |output: &Vec<f64>| output.len() == length && output.iter().all(|x| x.is_finite());
    released(&parsed::<M>(mechanism)?, value, is_sound)
}

fn integers<M>(mechanism: &str, value: &str) -> Option<Outcome>
where
    M: Mechanism<Vec<i64>, ZeroOut, Output = Vec<i64>> + Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let value: Vec<i64> = serde_json::from_str(value).ok()?;
    let length = value.len();
    released(&parsed::<M>(mechanism)?, value, |output: &Vec<i64>| output.len() == length)
}

fn choice<M>(mechanism: &str, value: &str) -> Option<Outcome>
where
    M: Mechanism<Scores, ZeroOut, Output = usize> + Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let value: Vec<f64> = serde_json::from_str(value).ok()?;
    let candidates = value.len();
    released(&parsed::<M>(mechanism)?, Scores::new(value).ok()?, |&index: &usize| index < candidates)
}

fn response(mechanism: &str, value: &str) -> Option<Outcome> {
    let mechanism: RandomizedResponse = parsed(mechanism)?;
    let value: Vec<u64> = serde_json::from_str(value).ok()?;
    let length = value.len();
    let mut log = EventLog::<ReplaceOne>::new();
    let result = mechanism.release_each(Secret::new(value), &mut log, &mut SeededRng::new(1));
    let is_sound =
        |output: &Vec<u64>| output.len() == length && output.iter().all(|&answer| answer < mechanism.buckets());
    checked(&mechanism, &log, result, is_sound)
}

/// Runs a stream of queries: the log contains only the entry of the start.
fn session(
    value: &str,
    mechanism: &impl PrivacyEvent,
    start: impl FnOnce(
        &mut EventLog<ZeroOut>,
        &mut SeededRng,
    ) -> Result<dp_mechanisms::sparse_vector::Session<ZeroOut>, Error>,
) -> Option<Outcome> {
    let queries: Vec<f64> = serde_json::from_str(value).ok()?;
    let (mut log, mut rng) = (EventLog::new(), SeededRng::new(1));
    let mut session = start(&mut log, &mut rng).ok()?;
    let sensitivity = Sensitivity::new(f64::MIN_POSITIVE).ok()?;
    for query in queries {
        let was_over = session.is_over();
        let answer = session.answer(Bounded::with_proven_sensitivity(query, sensitivity), &mut log, &mut rng);
        assert_eq!(answer.is_err(), was_over || !query.is_finite());
    }
    assert_eq!(log.entries(), [(mechanism.event(), 1)]);
    Some(Outcome::Released)
}
