//! The common part of the selection mechanisms' tests: golden laws, exhaustive neighbours, the sampler against its law.

use super::*;
use crate::SeededRng;
use crate::mechanism::Mechanism;
use crate::testing::{Case, check_law, golden_cases};
use dp_accountant::ReplaceOne;

pub(crate) type Law = fn(&[f64]) -> Vec<f64>;

pub(crate) fn sensitivity(value: f64) -> LInfSensitivity<ReplaceOne> {
    LInfSensitivity::new(value).unwrap()
}

pub(crate) fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

pub(crate) fn golden(function: &str, probabilities: impl Fn(LInfSensitivity<ReplaceOne>, Epsilon, Scores) -> Vec<f64>) {
    for case in golden_cases("mechanisms.json", function) {
        let numbers = |value: &serde_json::Value| -> Vec<f64> {
            value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
        };
        let (sensitivity, epsilon) = (sensitivity(case.input("sensitivity")), epsilon(case.input("eps")));
        let found = probabilities(sensitivity, epsilon, Scores::new(numbers(&case.input["scores"])).unwrap());
        check_all(&case, &found, &numbers(&case.out["prob"]));
        assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{}", case.id);
    }
}

fn check_all(case: &Case, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, &expected) in found.iter().zip(expected) {
        case.check_number("prob", *found, expected);
    }
}

/// Returns, over all neighbours of three candidates' scores on a coarse part of the lattice, the largest log ratio of a
/// candidate's probabilities, and the longest range of log ratios.
///
/// The scores are gaps in the mechanism's own lattice and the law is that of its own coins. `moves` are the possible changes of a
/// score, in halves of the sensitivity.
pub(crate) fn worst_loss(selection: &Selection<ReplaceOne>, law: Law, moves: &[i128]) -> (f64, f64) {
    let unit = i128::from(selection.lattice.sensitivity()) / 2;
    let probabilities = |steps: &[i128; 3]| {
        let gaps = selection.gaps(steps);
        law(&gaps.iter().map(|&gap| gap as f64 / selection.scale().steps()).collect::<Vec<_>>())
    };
    let (mut largest, mut longest) = (0.0f64, 0.0f64);
    let levels = [0, 1, 2, 40, 60];
    for one in levels {
        for two in levels {
            // Scores are the same up to a common shift and the order of candidates.
            let steps = [60 * unit, one * unit, two * unit];
            let first = probabilities(&steps);
            for shift in all_triples(moves) {
                let moved = core::array::from_fn(|i| steps[i] + shift[i] * unit);
                let second = probabilities(&moved);
                let losses: Vec<f64> = first.iter().zip(&second).map(|(p, q)| (p / q).ln()).collect();
                let (low, high) = losses.iter().fold((0.0f64, 0.0f64), |(l, h), &x| (l.min(x), h.max(x)));
                largest = largest.max(high).max(-low);
                longest = longest.max(high - low);
            }
        }
    }
    (largest, longest)
}

fn all_triples(values: &[i128]) -> Vec<[i128; 3]> {
    let mut triples = Vec::new();
    for &a in values {
        for &b in values {
            triples.extend(values.iter().map(|&c| [a, b, c]));
        }
    }
    triples
}

/// Draws from the mechanism compared with its stated law, for several sets of scores; false-alarm rate 1e-9 each.
pub(crate) fn sampler_has_the_law<M: Mechanism<Scores, ReplaceOne, Norm = LInf, Output = usize>>(
    mechanism: &M,
    bound: f64,
    probabilities: impl Fn(&Scores) -> Vec<f64>,
) {
    let mut rng = SeededRng::new(3);
    for scores in [
        vec![0.0, 1.0, 3.0],
        vec![2.0, 2.0, 2.0],
        vec![3.0, -1000.0, 2.5, 2.75, 0.0],
        vec![1e6, 1e6 - 1.5, 1e6 + 0.5, 1e6],
        vec![-1.0, -3.0, 0.25, -0.5, -0.5, -7.0, 0.0],
    ] {
        let scores = Scores::new(scores.iter().map(|score| score * bound).collect()).unwrap();
        let mut counts = vec![0u64; scores.len()];
        let mut log = EventLog::new();
        for _ in 0..60_000 {
            let input = Bounded::with_proven_sensitivity(scores.clone(), sensitivity(bound));
            counts[*mechanism.release(input, &mut log, &mut rng).unwrap().get()] += 1;
        }
        check_law(&counts, &probabilities(&scores), &format!("{scores:?}"));
    }
}

#[test]
fn gaps_are_to_the_best_and_capped() {
    let selection = Selection::new(sensitivity(1.0), epsilon(2.0), false).unwrap();
    assert_eq!(selection.scale().steps(), 2f64.powi(30));
    let cap = 1u128 << 42;
    assert_eq!(selection.gaps(&[5, -7, 3]), [0, 12, 2]);
    assert_eq!(selection.gaps(&[1 << 120, -(1 << 120), (1 << 120) - 1]), [0, cap, 1]);
    assert_eq!(selection.gaps(&[-(1 << 120)]), [0]);
}

/// The realised epsilon never exceeds the stated one, in exact integer arithmetic, and is within 2^-50 of it.
#[test]
fn scales_are_rounded_towards_privacy() {
    for bound in [1.0, 0.1, 1.0 / 3.0, 1e-300, 1e300, f64::MAX, f64::MIN_POSITIVE] {
        for stated in [2f64.powi(-50), 1e-9, 0.1, 1.0 / 3.0, 1.0, 10.0, 1e5] {
            for monotonic in [false, true] {
                let selection = Selection::new(sensitivity(bound), epsilon(stated), monotonic).unwrap();
                let shift = selection.lattice.sensitivity() * if monotonic { 1 } else { 2 };
                let scale = selection.scale().steps();
                // scale · stated >= shift, with the sign of the exact residual.
                assert!(scale.mul_add(stated, -(shift as f64)) >= 0.0);
                assert!(shift as f64 / scale > stated * (1.0 - 1e-15), "{bound} {stated}");
            }
        }
    }
}

/// For an excessively large epsilon the best candidate is selected, even if it is best by one step only.
#[test]
fn an_absurd_epsilon_finds_the_best() {
    let mechanism = crate::Exponential::new(sensitivity(1.0), epsilon(1e300)).unwrap();
    for seed in 0..50 {
        let scores = Scores::new(vec![1.0 - 2f64.powi(-30), 1.0, 1.0 - 2f64.powi(-30)]).unwrap();
        let input = Bounded::with_proven_sensitivity(scores, sensitivity(1.0));
        let chosen = mechanism.release(input, &mut EventLog::new(), &mut SeededRng::new(seed)).unwrap();
        assert_eq!(*chosen.get(), 1);
    }
}
