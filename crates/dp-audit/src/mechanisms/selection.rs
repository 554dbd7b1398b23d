//! Selection: the log-likelihood ratio of the chosen index, from the mechanism's own law.

use dp_accountant::{EventLog, ReplaceOne};
use dp_mechanisms::scores::Scores;
use dp_mechanisms::{Bounded, Exponential, LInf, Mechanism, NoisyMax, PermuteAndFlip};

use super::{Entry, epsilon, pick, scored, sensitivity};
use crate::error::Error;
use crate::subject::{Claim, Statistic};

/// Scores of both neighbours.
struct Pair {
    name: &'static str,
    words: &'static str,
    base: Vec<f64>,
    neighbour: Vec<f64>,
    monotonic: bool,
}

fn pairs() -> [Pair; 5] {
    let one_up = |count: usize, others: f64| (0..count).map(|i| if i == 0 { 1.0 } else { others }).collect();
    [
        Pair {
            name: "10",
            words: "(0, .., 0) and (D, -D, .., -D) of ten candidates",
            base: vec![0.0; 10],
            neighbour: one_up(10, -1.0),
            monotonic: false,
        },
        Pair {
            name: "30",
            words: "(0, .., 0) and (D, -D, .., -D) of thirty candidates",
            base: vec![0.0; 30],
            neighbour: one_up(30, -1.0),
            monotonic: false,
        },
        Pair {
            name: "2",
            words: "(0, D) and (D, 0)",
            base: vec![0.0, 1.0],
            neighbour: vec![1.0, 0.0],
            monotonic: false,
        },
        Pair {
            name: "far",
            words: "10^6 D and the same, one up by D and nine down by D",
            base: vec![1e6; 10],
            neighbour: one_up(10, -1.0).iter().map(|score: &f64| 1e6 + score).collect(),
            monotonic: false,
        },
        Pair {
            name: "monotonic",
            words: "(0, .., 0) and (D, 0, .., 0) of ten candidates, scores that rise together",
            base: vec![0.0; 10],
            neighbour: one_up(10, 0.0),
            monotonic: true,
        },
    ]
}

pub(super) fn subjects() -> Result<Vec<Entry>, Error> {
    let (sensitivity, epsilon) = (sensitivity::<LInf>()?, epsilon()?);
    let mut subjects = Vec::new();
    for pair in pairs() {
        let mechanism = Exponential::<ReplaceOne>::new(sensitivity, epsilon)?;
        let mechanism = if pair.monotonic { mechanism.monotonic()? } else { mechanism };
        subjects.push(select(("exponential", 1.0), &pair, mechanism, Exponential::probabilities)?);

        let mechanism = PermuteAndFlip::<ReplaceOne>::new(sensitivity, epsilon)?;
        let mechanism = if pair.monotonic { mechanism.monotonic()? } else { mechanism };
        subjects.push(select(("permute-and-flip", 1.0), &pair, mechanism, PermuteAndFlip::probabilities)?);

        let mechanism = NoisyMax::<ReplaceOne>::new(sensitivity, epsilon)?;
        let mechanism = if pair.monotonic { mechanism.monotonic()? } else { mechanism };
        subjects.push(select(("noisy-max", 2.0), &pair, mechanism, NoisyMax::probabilities)?);
    }
    Ok(subjects)
}

/// The probability of each index.
type Law<M> = fn(&M, &Scores) -> Result<Vec<f64>, dp_mechanisms::Error>;

fn select<M>((name, cost): (&str, f64), pair: &Pair, mechanism: M, law: Law<M>) -> Result<Entry, Error>
where
    M: Mechanism<Scores, ReplaceOne, Norm = LInf, Output = usize> + Send + Sync + 'static,
{
    let claim = Claim::new(mechanism.event())?;
    let sensitivity = sensitivity::<LInf>()?;
    let (base, neighbour) = (pair.base.clone(), pair.neighbour.clone());
    let probabilities = |scores: &[f64]| law(&mechanism, &Scores::new(scores.to_vec())?);
    let neighbour_law = probabilities(&neighbour)?;
    let log_ratios: Vec<f64> = probabilities(&base)?.iter().zip(neighbour_law).map(|(p, q)| (q / p).ln()).collect();
    let cost = cost * (1.0 + base.len() as f64 / 20.0);
    let (name, words) = (format!("{name}/{}", pair.name), pair.words.to_owned());
    let subject = scored(name, words, claim, Statistic::Score, move |side, rng| {
        let scores = Scores::new(pick(side, &base, &neighbour).clone())?;
        let bounded = Bounded::with_proven_sensitivity(scores, sensitivity);
        let chosen = mechanism.release(bounded, &mut EventLog::new(), rng)?;
        // An index outside the candidates would be an outcome of only one law.
        Ok(log_ratios.get(*chosen.get()).copied().unwrap_or(f64::INFINITY))
    });
    Ok(Box::new(subject.with_relative_cost(cost)))
}
