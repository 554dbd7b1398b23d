//! Faulty selection and randomised response. Each score has sensitivity 1.

use dp_accountant::{Epsilon, EventLog, ReplaceOne};
use dp_mechanisms::scores::Scores;
use dp_mechanisms::{
    Bounded, Exponential, LInf, LInfSensitivity, Mechanism, NoisyMax, PermuteAndFlip, RandomizedResponse, Secret,
    SeededRng,
};
use rand::RngExt;

use crate::specimen::{Specimen, pick, pure};
use crate::textbook::{exponential, laplace};
use dp_audit::Side;

/// Ten equal scores; or the first one higher by 1 and all others lower by 1.
const PAIR: &str = "(0, .., 0) and (1, -1, .., -1)";

fn scores(side: Side) -> [f64; 10] {
    let mut neighbour = [-1.0; 10];
    neighbour[0] = 1.0;
    pick(side, [0.0; 10], neighbour)
}

/// Returns the index of the largest of `scores` plus noise, and that largest value.
fn noisy_max(scores: &[f64], mut noise: impl FnMut() -> f64) -> (usize, f64) {
    let noisy = scores.iter().map(|score| score + noise());
    noisy.enumerate().fold((0, f64::NEG_INFINITY), |best, (i, x)| if x > best.1 { (i, x) } else { best })
}

/// The exponential mechanism with log-weights `rate · score`, as the largest of scores with Gumbel noise.
fn exponential_mechanism(scores: &[f64], rate: f64, rng: &mut SeededRng) -> usize {
    noisy_max(scores, || -exponential(rng).ln() / rate).0
}

/// Permute-and-flip, as the largest of scores with exponential noise.
fn permute_and_flip(scores: &[f64], rate: f64, rng: &mut SeededRng) -> (usize, f64) {
    noisy_max(scores, || exponential(rng) / rate)
}

/// Returns the selection of this workspace's mechanism.
fn choice<M>(mechanism: &M, scores: &[f64], rng: &mut SeededRng) -> usize
where
    M: Mechanism<Scores, ReplaceOne, Norm = LInf, Output = usize>,
{
    let scores = Bounded::with_proven_sensitivity(Scores::new(scores.to_vec()).unwrap(), sensitivity());
    *mechanism.release(scores, &mut EventLog::new(), rng).unwrap().get()
}

fn sensitivity() -> LInfSensitivity<ReplaceOne> {
    LInfSensitivity::new(1.0).unwrap()
}

fn epsilon() -> Epsilon {
    Epsilon::new(1.0).unwrap()
}

fn sound_exponential() -> Exponential<ReplaceOne> {
    Exponential::new(sensitivity(), epsilon()).unwrap()
}

fn sound_permute_and_flip() -> PermuteAndFlip<ReplaceOne> {
    PermuteAndFlip::new(sensitivity(), epsilon()).unwrap()
}

pub(crate) fn specimens() -> Vec<Specimen> {
    let mut zoo = factor_two();
    zoo.extend(more_than_the_index());
    zoo.extend([overflow(), response()]);
    zoo
}

/// Claims for monotone scores, applied to scores that are not monotone.
fn factor_two() -> Vec<Specimen> {
    vec![
        Specimen::event(
            "exponential mechanism without the factor 2",
            PAIR,
            pure(1.0),
            |side, rng| exponential_mechanism(&scores(side), 1.0, rng) == 0,
            |side, rng| choice(&sound_exponential(), &scores(side), rng) == 0,
        ),
        Specimen::event(
            "permute-and-flip without the factor 2",
            PAIR,
            pure(1.0),
            |side, rng| permute_and_flip(&scores(side), 1.0, rng).0 == 0,
            |side, rng| choice(&sound_permute_and_flip(), &scores(side), rng) == 0,
        ),
        Specimen::event(
            "noisy maximum with half the Laplace noise",
            PAIR,
            pure(1.0),
            |side, rng| noisy_max(&scores(side), || laplace(1.0, rng)).0 == 0,
            |side, rng| choice(&NoisyMax::new(sensitivity(), epsilon()).unwrap(), &scores(side), rng) == 0,
        ),
    ]
}

fn more_than_the_index() -> Vec<Specimen> {
    vec![
        Specimen::event(
            "exponential mechanism that releases the largest score",
            "(0, 0) and (1, 0)",
            pure(1.0),
            |side, rng| {
                let scores = pick(side, [0.0, 0.0], [1.0, 0.0]);
                let _ = exponential_mechanism(&scores, 0.5, rng);
                scores.into_iter().fold(f64::NEG_INFINITY, f64::max) == 1.0
            },
            |side, rng| choice(&sound_exponential(), &pick(side, [0.0, 0.0], [1.0, 0.0]), rng) == 0,
        ),
        // The noise is non-negative, so that a maximum below 1 is impossible for the neighbour.
        Specimen::event(
            "permute-and-flip that releases the noisy maximum",
            "(0, 0) and (1, 0)",
            pure(1.0),
            |side, rng| permute_and_flip(&pick(side, [0.0, 0.0], [1.0, 0.0]), 0.5, rng).1 < 1.0,
            |side, rng| choice(&sound_permute_and_flip(), &pick(side, [0.0, 0.0], [1.0, 0.0]), rng) == 1,
        ),
    ]
}

/// Weights exp(score / 2) and a search for a uniform point of their total: from scores of 1419 the total is infinite, no
/// partial sum exceeds the point and the last candidate is always selected.
fn overflow() -> Specimen {
    let chosen = |scores: [f64; 2], rng: &mut SeededRng| {
        let weights = scores.map(|score| (0.5 * score).exp());
        let point = rng.random::<f64>() * (weights[0] + weights[1]);
        usize::from(!(weights[0] > point))
    };
    Specimen::event(
        "exponential mechanism whose weights overflow",
        "scores (1418, 1418) and (1419, 1418)",
        pure(1.0),
        move |side, rng| chosen(pick(side, [1418.0, 1418.0], [1419.0, 1418.0]), rng) == 0,
        move |side, rng| choice(&sound_exponential(), &pick(side, [1418.0, 1418.0], [1419.0, 1418.0]), rng) == 0,
    )
}

/// Ten answers at epsilon 1. If the truth is told with probability e/(e + 9) and otherwise *any* answer, true or not, the
/// likelihood ratio exceeds e.
fn response() -> Specimen {
    let truth = 1f64.exp() / (1f64.exp() + 9.0);
    Specimen::event(
        "randomised response whose lies may be true",
        "labels 0 and 1",
        pure(1.0),
        move |side, rng| {
            let lie = rng.random_range(0..10u32);
            let answer = if rng.random::<f64>() < truth { pick(side, 0, 1) } else { lie };
            answer == 1
        },
        move |side, rng| {
            let response = RandomizedResponse::new(10, epsilon()).unwrap();
            let answer = response.release(Secret::new(pick(side, 0, 1)), &mut EventLog::new(), rng).unwrap();
            *answer.get() == 1
        },
    )
    .with_trials(50_000)
}
