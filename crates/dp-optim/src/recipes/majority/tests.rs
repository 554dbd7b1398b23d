use core::f64::consts::SQRT_2;

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
    let counts = |targets: [Option<f64>; 3]| replaced.counts(&mut source(&targets), &mut Control::default()).unwrap();
    for first in values {
        for second in values {
            for other in values {
                let one = counts([first, second, Some(0.1)]);
                let two = counts([first, other, Some(0.1)]);
                let moved = (one[0] - two[0]).hypot(one[1] - two[1]);
                assert!(moved <= replaced.sensitivity());
                most[0] = most[0].max(moved);
                if second.is_none() != other.is_none() {
                    assert!(moved <= nulled.sensitivity());
                    most[1] = most[1].max(moved);
                }
            }
        }
    }
    assert_eq!(most, [SQRT_2, 1.0]);
}

#[test]
fn the_noise_is_on_the_counts() {
    let plan = Majority::new(LossKind::Logistic).plan::<ReplaceOne>(3, 2, budget(1e6)).unwrap();
    let mut log = EventLog::<ReplaceOne>::new();
    let (mut data, mut rng) = (source(&[Some(1.0), Some(-1.0), Some(1.0)]), SeededRng::new(2));
    let noisy = plan.run().noisy_counts(&mut data, &mut log, &mut rng.lend(), &mut Control::default()).unwrap();
    assert!((noisy.get()[0] - 2.0).abs() < 1e-3 && (noisy.get()[1] - 1.0).abs() < 1e-3);
    assert_eq!(log.to_event(), plan.event());
}

/// Null records are in neither class, however many.
#[test]
fn null_records_do_not_move_the_mean() {
    let targets: Vec<_> = (0..4000).map(|i| (i % 4 == 0).then_some(if i % 40 == 0 { 1.0 } else { -1.0 })).collect();
    for (loss, expected) in [(LossKind::Logistic, (1.0f64 / 9.0).ln()), (LossKind::Squared, -0.8)] {
        let plan = Majority::new(loss).plan::<ZeroOut>(4000, 2, budget(100.0)).unwrap();
        let trained = plan.train(&mut source(&targets), &mut SeededRng::new(3), &mut Control::default()).unwrap();
        assert!((trained.weights.get()[1] - expected).abs() < 0.01, "{loss}: {:?}", trained.weights);
    }
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

/// Targets in units of their bound: counts, answers and displayed numbers.
#[test]
fn targets_are_counted_in_units_of_their_bound() {
    let four = [4.0, -2.0, 1.0, 0.5];
    let rows = four.iter().flat_map(|_| [0.3, 0.9]).collect();
    let mut source = MemorySource::new(Examples::dense(rows, four.to_vec(), 2).unwrap(), 1.0, 4.0);
    let recipe = Majority { target_bound: 4.0, ..Majority::new(LossKind::Absolute) };
    let plan = recipe.plan::<ReplaceOne>(4, 2, budget(1.0)).unwrap();
    // Halves of 4 + 3.5/4 and 4 - 3.5/4.
    assert_eq!(plan.run().counts(&mut source, &mut Control::default()).unwrap(), [2.4375, 1.5625]);
    let scale = plan.run().scale();
    assert!((scale - SQRT_2).abs() < 1e-14 && scale == plan.derivation().calibrated.scale);
    let summary = plan.summary();
    assert_eq!(summary.sensitivity, Some(SQRT_2));
    assert!(summary.text.contains("noise of scale 1.4142e0"), "{}", summary.text);
    for (counts, mean) in [([2.5, 1.5], 1.0), ([9.0, -3.0], 4.0), ([-3.0, 1.0], -4.0), ([-1.0, -1.0], 0.0)] {
        assert_eq!(recipe.answer(&counts, 4), mean, "{counts:?}");
    }
    let labels = Majority::new(LossKind::Logistic);
    // At most one record short of certainty: 1 - 1/5 for 4 records, odds of 9.
    for (counts, odds) in
        [([2.0, 2.0], 1.0f64), ([3.0, 1.0], 3.0), ([4.0, 0.0], 9.0), ([7.0, -2.0], 9.0), ([0.0, 4.0], 1.0 / 9.0)]
    {
        assert!((labels.answer(&counts, 4) - odds.ln()).abs() < 1e-14, "{counts:?}");
    }
}
