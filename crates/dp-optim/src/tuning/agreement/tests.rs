use dp_accountant::{AdjacencyKind, Epsilon, ReplaceOne, ZeroOut};
use dp_data::Examples;
use dp_mechanisms::{LInfSensitivity, SeededRng};
use rand::RngExt;

use super::*;
use crate::memory::MemorySource;
use crate::tuning::tests::{at, cases, numbers};

#[test]
fn golden_probabilities_of_the_choice() {
    for case in cases("tuning_exponential") {
        let mistakes = numbers(&case["in"]["errors"]);
        let expected = numbers(&case["out"]["probabilities"]);
        let epsilon = Epsilon::new(at(&case, "eps")).unwrap();
        // Right minus wrong predictions, which the plan passes to its mechanism.
        let scores: Vec<f64> = mistakes.iter().map(|mistakes| 5.0 - 2.0 * mistakes).collect();
        let moves = sensitivity("", AdjacencyKind::ReplaceOne).unwrap() as f64;
        let choice = Exponential::new(LInfSensitivity::<ReplaceOne>::new(moves).unwrap(), epsilon).unwrap();
        let found = choice.probabilities(&Scores::new(scores).unwrap()).unwrap();
        for (&found, &expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-12, "{}", case["id"]);
        }
    }
}

/// Every record replaced by every other, for random models: the agreement moves by at most the sensitivity, which is attained,
/// and so do the probabilities of the choice.
#[test]
fn one_record_moves_the_choice_as_claimed() {
    let rng = &mut SeededRng::new(5);
    let mut largest = [0i64; 2];
    for round in 0..60 {
        let classes = [1u32, 3][round % 2];
        let models: Vec<Vec<f64>> =
            (0..4).map(|_| (0..2 * classes).map(|_| rng.random_range(-1.0..1.0)).collect()).collect();
        let mut record = |null: bool| {
            let row = [rng.random_range(-0.7..0.7), if null { f64::NAN } else { rng.random_range(-0.7..0.7) }];
            let target = match classes {
                1 => [-1.0, 1.0][rng.random_range(0..2)],
                _ => f64::from(rng.random_range(0..classes)),
            };
            (row, target)
        };
        let table: Vec<_> = (0..6).map(|_| record(false)).collect();
        let scores = |table: &[([f64; 2], f64)]| -> Vec<f64> {
            let rows = table.iter().flat_map(|(row, _)| *row).collect();
            let targets = table.iter().map(|(_, target)| *target).collect();
            let mut source = MemorySource::new(Examples::dense(rows, targets, 2).unwrap(), 1.0, 2.0);
            let control = Control::default();
            models.iter().map(|model| agreement(&mut source, model, &control).unwrap() as f64).collect()
        };
        let base = scores(&table);
        for (null, relation) in [(false, AdjacencyKind::ReplaceOne), (true, AdjacencyKind::ZeroOut)] {
            for i in 0..table.len() {
                let mut neighbour = table.clone();
                neighbour[i] = record(null);
                let other = scores(&neighbour);
                let moved = base.iter().zip(&other).map(|(a, b)| (a - b).abs() as i64).max().unwrap();
                let claimed = sensitivity("", relation).unwrap() as i64;
                assert!(moved <= claimed, "{moved} under {relation}");
                largest[usize::from(null)] = largest[usize::from(null)].max(moved);
                let epsilon = 1.5;
                let moves = LInfSensitivity::<ZeroOut>::new(claimed as f64).unwrap();
                let choice = Exponential::new(moves, Epsilon::new(epsilon).unwrap()).unwrap();
                let law = |scores: &[f64]| choice.probabilities(&Scores::new(scores.to_vec()).unwrap()).unwrap();
                for (p, q) in law(&base).iter().zip(&law(&other)) {
                    assert!((p / q).ln().abs() <= epsilon + 1e-12);
                }
            }
        }
    }
    assert_eq!(largest, [2, 1], "attained");
}

/// The count of each record: right, wrong or null, for dense and sparse rows, and at ties.
#[test]
fn agreement_is_counted_by_hand() {
    let rows = vec![0.5, 0.0, 0.0, -0.5, 0.25, 0.5, -0.25, 0.25, 0.0, 0.0];
    let offsets = vec![0, 1, 2, 4, 6, 6];
    let (indices, values) = (vec![0, 1, 0, 1, 0, 1], vec![0.5, -0.5, 0.25, 0.5, -0.25, 0.25]);
    let count = |targets: &[f64], weights: &[f64]| {
        let bound = 9.0;
        let dense = Examples::dense(rows.clone(), targets.to_vec(), 2).unwrap();
        let sparse = Examples::sparse(offsets.clone(), indices.clone(), values.clone(), targets.to_vec(), 2).unwrap();
        let [one, other] = [dense, sparse].map(|examples| {
            let mut source = MemorySource::<f64>::new(examples, 1.0, bound);
            agreement(&mut source, weights, &Control::default()).unwrap()
        });
        assert_eq!(one, other);
        one
    };
    // Scores 1, -1/2, 1, -1/4 and 0; the last predicts -1.
    let weights = [2.0, 1.0];
    for (k, score) in [1.0, -0.5, 1.0, -0.25, 0.0].into_iter().enumerate() {
        for label in [1.0, -1.0, 0.0, 2.0] {
            let mut targets = [5.0; 5];
            targets[k] = label;
            let expected = match label {
                1.0 => {
                    if score > 0.0 {
                        1
                    } else {
                        -1
                    }
                }
                -1.0 => {
                    if score > 0.0 {
                        -1
                    } else {
                        1
                    }
                }
                _ => 0,
            };
            assert_eq!(count(&targets, &weights), expected, "{score} {label}");
        }
    }
    // With three classes the first of the largest scores wins: (x, y, x) is class 0 or 1, or 0 if all are equal.
    let three = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0];
    for (k, class) in [0, 0, 1, 1, 0].into_iter().enumerate() {
        for label in 0..3 {
            let mut targets = [7.0; 5];
            targets[k] = f64::from(label);
            assert_eq!(count(&targets, &three), if label == class { 1 } else { -1 }, "{k} {label}");
        }
    }
}
