use dp_accountant::certificate::Derivation as _;
use dp_accountant::{Delta, Epsilon, EventLog, ReplaceOne, ZeroOut};
use dp_data::Examples;
use dp_mechanisms::{ReleaseRng as _, SeededRng};

use super::*;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::{Planned as _, Recipe as _};

fn budget(epsilon: f64) -> Budget {
    Budget { epsilon: Epsilon::new(epsilon).unwrap(), delta: Delta::ZERO }
}

/// Rows with an intercept; a row that is `None` does not count.
fn source(targets: &[Option<f64>]) -> MemorySource<f64> {
    let rows = targets.iter().flat_map(|target| [0.3, if target.is_some() { 0.9 } else { f64::NAN }]).collect();
    let targets = targets.iter().map(|target| target.unwrap_or(1.0)).collect();
    MemorySource::new(Examples::dense(rows, targets, 2).unwrap(), 1.0, 1.0)
}

#[test]
fn the_answer_is_that_of_most() {
    let mut rng = SeededRng::new(1);
    for (positive, sign) in [(900, 1.0), (100, -1.0)] {
        let targets: Vec<_> = (0..1000).map(|i| Some(if i < positive { 1.0 } else { -1.0 })).collect();
        for (loss, size) in [("logistic", (0.9f64 / 0.1).ln()), ("hinge", 0.8)] {
            let plan = Majority::new(loss.parse().unwrap()).plan::<ReplaceOne>(1000, 2, budget(1.0)).unwrap();
            let trained = plan.train(&mut source(&targets), &mut rng, &mut Control::default()).unwrap();
            let weights = trained.weights.get();
            assert!(weights[0] == 0.0 && (weights[1] - sign * size).abs() < 0.3, "{loss}: {weights:?}");
            assert_eq!(trained.derivation.event().unwrap(), trained.log.to_event());
        }
    }
    // The answer is a number for any noise.
    let plan = Majority::new(LossKind::Logistic).plan::<ZeroOut>(2, 2, budget(0.001)).unwrap();
    for _ in 0..50 {
        let trained = plan.train(&mut source(&[Some(1.0); 2]), &mut rng, &mut Control::default()).unwrap();
        assert!(trained.weights.get()[1].abs() <= 5f64.ln() + 1e-9);
    }
}

#[test]
fn brute_force_over_neighbours() {
    let replaced = Majority::new(LossKind::Absolute).plan::<ReplaceOne>(3, 2, budget(1.0)).unwrap();
    let nulled = Majority::new(LossKind::Absolute).plan::<ZeroOut>(3, 2, budget(1.0)).unwrap();
    let values = [Some(-1.0), Some(-0.37), Some(0.0), Some(1e-12), Some(1.0), None];
    let mut most = [0.0f64; 2];
    let (replaced, nulled) = (replaced.run(), nulled.run());
    let sum = |targets: [Option<f64>; 3]| replaced.sum(&mut source(&targets), &mut Control::default()).unwrap();
    for first in values {
        for second in values {
            for other in values {
                let moved = (sum([first, second, Some(0.1)]) - sum([first, other, Some(0.1)])).abs();
                assert!(moved <= replaced.sensitivity());
                most[0] = most[0].max(moved);
                if second.is_none() != other.is_none() {
                    assert!(moved <= nulled.sensitivity());
                    most[1] = most[1].max(moved);
                }
            }
        }
    }
    assert_eq!(most, [2.0, 1.0]);
}

#[test]
fn the_noise_is_on_the_sum() {
    let plan = Majority::new(LossKind::Logistic).plan::<ReplaceOne>(3, 2, budget(1e6)).unwrap();
    let mut log = EventLog::<ReplaceOne>::new();
    let (mut data, mut rng) = (source(&[Some(1.0), Some(-1.0), Some(1.0)]), SeededRng::new(2));
    let noisy = plan.run().noisy_sum(&mut data, &mut log, &mut rng.lend(), &mut Control::default()).unwrap();
    assert!((noisy.get()[0] - 1.0).abs() < 1e-3);
    assert_eq!(log.to_event(), plan.event());
}

#[test]
fn nonsense_is_refused() {
    let good = Majority::new(LossKind::Logistic);
    let refused = |recipe: &Majority, n, dim| recipe.plan::<ReplaceOne>(n, dim, budget(1.0)).unwrap_err().to_string();
    assert!(refused(&good, 0, 1).contains("records") && refused(&good, 1, 0).contains("dimension"));
    assert!(refused(&Majority::new("softmax:3".parse().unwrap()), 9, 1).contains("classes"));
    assert!(refused(&Majority { target_bound: f64::NAN, ..good.clone() }, 9, 1).contains("target bound"));
    let derivation = good.plan::<ReplaceOne>(9, 1, budget(1.0)).unwrap().derivation().clone();
    for scale in [0.0, -1.0, f64::NAN] {
        assert!(Derivation { calibrated: SumNoise { scale }, ..derivation.clone() }.event().is_err());
    }
}

/// Targets in units of their bound: sums, answers, displayed numbers, and the answers that a noisy sum on a grid can give.
#[test]
fn targets_are_counted_in_units_of_their_bound() {
    let four = [4.0, -2.0, 1.0, 0.5];
    let rows = four.iter().flat_map(|_| [0.3, 0.9]).collect();
    let mut source = MemorySource::new(Examples::dense(rows, four.to_vec(), 2).unwrap(), 1.0, 4.0);
    let recipe = Majority { target_bound: 4.0, ..Majority::new(LossKind::Absolute) };
    let plan = recipe.plan::<ReplaceOne>(4, 2, budget(1.0)).unwrap();
    assert_eq!(plan.run().sum(&mut source, &mut Control::default()).unwrap(), 3.5 / 4.0);
    let scale = plan.run().scale();
    assert!((scale - 2.0).abs() < 1e-14 && scale == plan.derivation().calibrated.scale);
    let summary = plan.summary();
    assert_eq!(summary.sensitivity, Some(8.0));
    assert!(summary.text.contains("noise of scale 8.0000e0"), "{}", summary.text);
    assert_eq!((recipe.answer(0.25, 4), recipe.answer(3.0, 4), recipe.answer(-3.0, 4)), (1.0, 4.0, -4.0));
    let labels = Majority::new(LossKind::Logistic);
    // At most one record short of certainty: 1 - 1/5 for 4 records, odds of 9.
    for (mean, odds) in [(0.0, 1.0f64), (0.5, 3.0), (1.0, 9.0), (7.0, 9.0), (-1.0, 1.0 / 9.0)] {
        assert!((labels.answer(mean, 4) - odds.ln()).abs() < 1e-14, "{mean}");
    }
    // Sums on a grid of eighths, of 4 records.
    for recipe in [recipe, labels] {
        let of = |sum: f64| recipe.answer(sum / 4.0, 4);
        for sum in [-9.0, -4.0, -0.5, 0.0, 0.125, 1.375, 3.875, 4.0, 30.0] {
            let weight = of(sum);
            assert!(recipe.can_answer(weight, 4, 0.125), "{sum}");
            assert!(recipe.can_answer(f64::from(weight as f32), 4, 0.125), "{sum}");
        }
        // Half-way between two of them, slightly beside one, and beyond all.
        for weight in
            [of(0.1875), of(-1.9375), of(1.375) * (1.0 + 1e-13), of(-0.5) * (1.0 - 1e-5), 1.01 * of(9.0), -50.0]
        {
            assert!(!recipe.can_answer(weight, 4, 0.125), "{weight}");
        }
    }
}
