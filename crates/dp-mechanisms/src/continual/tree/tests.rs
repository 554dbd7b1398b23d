use super::*;
use crate::rng::{OsSeeded, SeededRng};
use crate::testing::golden_cases;
use dp_accountant::certificate::Assumption;
use dp_accountant::{ReplaceOne, ZeroOut};
use proptest::prelude::*;

fn each<A: Adjacency>(value: f64) -> L2Sensitivity<A> {
    L2Sensitivity::new(value).unwrap()
}

fn tree(dim: usize, steps: u64, std_dev: f64) -> TreeAggregation<ZeroOut> {
    TreeAggregation::from_std_dev(each(1.0), dim, steps, Participation::once(), std_dev).unwrap()
}

fn input(value: Vec<f64>) -> Bounded<Vec<f64>, ZeroOut> {
    Bounded::with_proven_sensitivity(value, each(1.0))
}

#[test]
fn golden() {
    for case in golden_cases("mechanisms.json", "tree") {
        let steps = case.input("steps") as u64;
        let tree = tree(1, steps, 1.0);
        assert_eq!(u64::from(tree.levels()), case.out["levels"].as_u64().unwrap());
        // The grid of the inputs adds 2^-50 noise scales; the golden value has none.
        let (found, expected) = (tree.sensitivity().get(), case.output("sensitivity_l2"));
        assert!(found >= expected && found <= expected * (1.0 + 1e-14), "{found} {expected}");
        let nodes = case.out["nodes_in_prefix"].as_array().unwrap();
        for (t, nodes) in [1, (steps / 2).max(1), steps].into_iter().zip(nodes) {
            assert_eq!(u64::from(tree.nodes_in_prefix(t)), nodes.as_u64().unwrap());
        }
    }
}

#[test]
fn refused_parameters() {
    let new = |dim, steps, std_dev| {
        TreeAggregation::<ZeroOut>::from_std_dev(each(1.0), dim, steps, Participation::once(), std_dev).err()
    };
    assert_eq!(new(0, 1, 1.0), Some(Error::Dimension { dimension: 0 }));
    for steps in [0, (1 << 40) + 1, u64::MAX] {
        assert!(matches!(new(1, steps, 1.0), Some(Error::OutOfRange { name: "steps", .. })));
    }
    assert!(matches!(new(1, 10, f64::NAN), Some(Error::NotFinite { .. })));
    assert!(matches!(new(1, 10, 0.0), Some(Error::NotPositive { .. })));
    assert!(matches!(new(1, 10, 1e-300), Some(Error::ScaleOverflow { .. })));
    assert_eq!(new(1, 1 << 40, 1.0), None);
    let huge = TreeAggregation::<ZeroOut>::from_std_dev(each(1.7e308), 1, 8, Participation::once(), 1.0);
    assert!(matches!(huge, Err(Error::NotFinite { .. })));
    let multiplier = NoiseMultiplier::new(1e10).unwrap();
    let huge = TreeAggregation::<ZeroOut>::from_noise_multiplier(each(1e300), 1, 8, Participation::once(), multiplier);
    assert!(matches!(huge, Err(Error::ScaleOverflow { .. })));
}

#[test]
fn the_noise_is_at_least_the_multiplier_times_the_sensitivity() {
    for (z, dim, value) in [(1.0, 1, 1.0), (0.3, 1000, 1e-5), (1e9, 1 << 20, 7.0)] {
        let multiplier = NoiseMultiplier::new(z).unwrap();
        let participation = Participation::repeated(3, 5).unwrap();
        let tree =
            TreeAggregation::<ReplaceOne>::from_noise_multiplier(each(value), dim, 20, participation, multiplier)
                .unwrap();
        let found = tree.std_dev() / tree.sensitivity().get();
        assert!(found >= z && found <= z * (1.0 + 1e-9), "{found} {z}");
    }
}

#[test]
fn the_cost_is_logged_once_and_again_on_a_restart() {
    let tree = tree(2, 3, 1.0);
    let (mut log, mut rng) = (EventLog::new(), OsSeeded::new().unwrap());
    let mut session = tree.start(&mut log, &mut rng);
    for _ in 0..3 {
        session.step(input(vec![1.0, 2.0]), &mut log, &mut rng).unwrap();
    }
    let after = session.step(input(vec![1.0, 2.0]), &mut log, &mut rng);
    assert_eq!(after, Err(Error::SessionOver { what: "steps", most: 3 }));
    assert_eq!(session.steps_taken(), 3);
    assert_eq!(log.entries(), [(tree.event(), 1)]);
    tree.start(&mut log, &mut rng);
    assert_eq!(log.entries(), [(tree.event(), 2)]);
    assert!(log.is_private());
    session = tree.start(&mut log, &mut rng);
    session.step(input(vec![0.0; 2]).assuming(Assumption::FloatSum), &mut log, &mut SeededRng::new(1)).unwrap();
    assert!(!log.is_private() && log.assumptions().contains(&Assumption::FloatSum));
}

#[test]
fn noise_is_exact_unless_chosen_otherwise() {
    let tree = tree(1, 3, 1.0);
    let (mut log, mut rng) = (EventLog::new(), OsSeeded::new().unwrap());
    tree.start(&mut log, &mut rng);
    assert!(tree.noise_mode() == NoiseMode::Exact && log.assumptions().is_empty());
    let rounded = tree.clone().with_noise_mode(NoiseMode::Rounded).unwrap();
    let mut session = rounded.start(&mut log, &mut rng);
    assert_eq!(log.assumptions(), [Assumption::IdealisedFloat]);
    assert!(session.step(input(vec![1.0]), &mut log, &mut rng).is_ok());
    let refused = tree.with_noise_mode(NoiseMode::None);
    assert_eq!(refused, Err(Error::UnavailableNoise { mode: NoiseMode::None }));
}

/// A mark or an assumption would otherwise be missing from the log that states the cost.
#[test]
fn steps_go_to_the_log_that_paid() {
    let tree = tree(1, 3, 1.0);
    let (mut log, mut rng) = (EventLog::new(), OsSeeded::new().unwrap());
    let mut session = tree.start(&mut log, &mut rng);
    for other in [&mut EventLog::new(), &mut log.clone()] {
        assert_eq!(session.step(input(vec![1.0]), other, &mut SeededRng::new(1)), Err(Error::OtherLog));
        assert!(other.is_private() && session.steps_taken() == 0);
    }
    assert!(session.step(input(vec![1.0]), &mut log, &mut rng).is_ok());
}

#[test]
fn what_is_refused_takes_no_step() {
    let tree = tree(2, 3, 1.0);
    let (mut log, mut rng) = (EventLog::new(), OsSeeded::new().unwrap());
    let mut session = tree.start(&mut log, &mut rng);
    let mut refused = |input| session.step(input, &mut log, &mut rng).err();
    assert_eq!(refused(input(vec![1.0])), Some(Error::DimensionMismatch { expected: 2, found: 1 }));
    assert_eq!(refused(input(vec![])), Some(Error::Dimension { dimension: 0 }));
    assert_eq!(refused(input(vec![1.0, f64::NAN])), Some(Error::NonFiniteInput));
    let larger = Bounded::with_proven_sensitivity(vec![0.0; 2], each(2.0));
    assert_eq!(refused(larger), Some(Error::SensitivityExceeded { found: 2.0, built_for: 1.0 }));
    assert_eq!(session.steps_taken(), 0);
    assert!(session.step(input(vec![0.0; 2]), &mut log, &mut rng).is_ok());
}

/// Noise far below the data: prefixes of huge and tiny numbers in single and double precision, within 9 noise scales (probability
/// below 1e-17 each). Inputs beyond the range are clamped, not wrapped.
#[test]
fn prefixes_are_sums() {
    let mut rng = SeededRng::new(2);
    let mut log = EventLog::new();
    for reduced in [false, true] {
        let tree = tree(3, 100, 1e-3);
        let tree = if reduced { tree.with_variance_reduction() } else { tree };
        let mut session = tree.start(&mut log, &mut rng);
        let mut exact = [0.0; 3];
        for t in 0..100 {
            let value = [f64::from(t) * 0.7, -1e6 / (1.0 + f64::from(t)), 0.1];
            exact.iter_mut().zip(value).for_each(|(exact, x)| *exact += x);
            let prefix = session.step(input(value.to_vec()), &mut log, &mut rng).unwrap();
            for (found, exact) in prefix.get().iter().zip(exact) {
                assert!((found - exact).abs() < 9.0 * tree.error(t as u64 + 1), "{t} {found} {exact}");
            }
        }
    }
    let mut session = tree(1, 4, 1.0).start(&mut log, &mut rng);
    let single = Bounded::with_proven_sensitivity(vec![1e9f32], each(1.0));
    assert!((session.step(single, &mut log, &mut rng).unwrap().get()[0] - 1e9).abs() < 9.0);
    for _ in 0..3 {
        let prefix = session.step(input(vec![f64::MAX]), &mut log, &mut rng).unwrap().into_inner();
        assert!(prefix[0] >= 2f64.powi(30) && prefix[0].is_finite());
    }
}

/// Without variance reduction every prefix is a sum of nodes on the grid.
#[test]
fn every_prefix_is_on_the_grid() {
    let tree = tree(50, 64, 0.7);
    let (mut log, mut rng) = (EventLog::new(), SeededRng::new(3));
    let mut session = tree.start(&mut log, &mut rng);
    for t in 0..64 {
        let value = (0..50).map(|i| f64::from(t * 50 + i).sin() / 3.0).collect();
        let prefix = session.step(input(value), &mut log, &mut rng).unwrap();
        assert!(prefix.get().iter().all(|x| x % tree.grid.noise().grid().step() == 0.0));
    }
}

/// The noise of each prefix has the stated variance, and that of two prefixes the covariance of their common nodes:
/// means over 20000 coordinates, 6.5 standard errors each (1e-10).
#[test]
fn noise_has_the_stated_covariance() {
    const DIM: usize = 20_000;
    for reduced in [false, true] {
        let tree = if reduced { tree(DIM, 8, 2.0).with_variance_reduction() } else { tree(DIM, 8, 2.0) };
        let (mut log, mut rng) = (EventLog::new(), SeededRng::new(4));
        let mut session = tree.start(&mut log, &mut rng);
        let prefixes: Vec<Vec<f64>> =
            (0..8).map(|_| session.step(input(vec![0.0; DIM]), &mut log, &mut rng).unwrap().into_inner()).collect();
        let covariance = |s: usize, t: usize| {
            prefixes[s - 1].iter().zip(&prefixes[t - 1]).map(|(a, b)| a * b).sum::<f64>() / DIM as f64 / 4.0
        };
        let margin = |variance: f64| 6.5 * variance * (2.0 / DIM as f64).sqrt();
        for t in 1..=8u64 {
            let expected = (tree.error(t) / 2.0).powi(2);
            let found = covariance(t as usize, t as usize);
            assert!((found - expected).abs() < margin(expected), "{t}: {found} {expected}");
            if !reduced {
                assert!((expected - f64::from(t.count_ones())).abs() < 1e-12);
            }
        }
        // 7 = 4 + 2 + 1 shares the first two nodes with 6, the first with 5, none with 8. With variance reduction the fifth leaf
        // has a weight of 1/3 in the node of steps 5 and 6.
        let shared = if reduced { 4.0 / 7.0 + 1.0 / 3.0 } else { 1.0 };
        assert!((covariance(7, 5) - shared).abs() < margin(3.0));
        if !reduced {
            assert!((covariance(7, 6) - 2.0).abs() < margin(3.0));
            assert!(covariance(7, 8).abs() < margin(3.0));
        }
    }
}

/// The weights are optimal: no other combination of a node with its children has less variance.
#[test]
fn reduced_variances_are_those_of_the_best_combination() {
    let mut below = 1.0;
    for level in 1..20 {
        let own = reduced_variance(level);
        let variance = |weight: f64| weight * weight + (1.0 - weight).powi(2) * 2.0 * below;
        assert!((variance(own) - own).abs() < 1e-12);
        assert!(variance(own) <= variance(own + 1e-3) && variance(own) <= variance(own - 1e-3));
        below = own;
    }
}

proptest! {
    /// All nodes of two neighbouring streams, by brute force over a record's steps, each in one node per level. Within the
    /// sensitivity for every allowed set; attained if a record takes part once, and if the sets are as in the proof.
    #[test]
    fn nodes_move_by_at_most_the_sensitivity(steps in 1u64..20, most in 1u64..6, separation in 1u64..6) {
        let participation = Participation::repeated(most, separation).unwrap();
        let (bound, _) = checked(1, steps, participation).unwrap();
        let mut largest = 0;
        participation.each_pattern(steps as usize, most as usize, usize::MAX, &mut |pattern| {
            let moved: u64 = (0..levels(steps))
                .map(|level| {
                    // Nodes that are never finished are never released.
                    (0..steps >> level)
                        .map(|node| pattern.iter().filter(|&&step| step as u64 >> level == node).count().pow(2) as u64)
                        .sum::<u64>()
                })
                .sum();
            largest = largest.max(moved);
        });
        prop_assert!((largest as f64).sqrt() <= bound);
        if steps.is_power_of_two() && (most == 1 || separation == 1 && most.is_power_of_two()) {
            prop_assert!((largest as f64 - bound * bound).abs() < 1e-9, "{largest} {bound}");
        }
    }
}
