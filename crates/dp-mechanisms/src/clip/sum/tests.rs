use super::*;
use dp_accountant::{AddRemoveOne, ChangeListLabels, ReplaceOne, ZeroOut};
use proptest::prelude::*;

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Adds one microbatch of gradients, all in one block.
fn add<F: RealField + Copy, A: Adjacency>(sum: &mut ClippedSum<F, A>, gradients: &[Vec<F>]) {
    let squared_norms: Vec<F> =
        gradients.iter().map(|gradient| gradient.iter().fold(F::zero(), |sum, &entry| sum + entry * entry)).collect();
    sum.add(&squared_norms, |coefficients, sum| {
        for (&c, gradient) in coefficients.iter().zip(gradients) {
            if c != F::zero() {
                for (sum, &entry) in sum.iter_mut().zip(gradient) {
                    *sum += c * entry;
                }
            }
        }
    })
    .unwrap();
}

fn total<F: RealField + Copy>(gradients: &[Vec<F>], bound: f64, microbatch: usize, most: u64) -> Vec<f64> {
    let dim = gradients.first().map_or(2, Vec::len);
    let bound = ClippingNorm::new(bound).unwrap();
    let mut sum = ClippedSum::<F, ZeroOut>::new(dim, 1, bound, microbatch, most).unwrap();
    for part in gradients.chunks(microbatch) {
        add(&mut sum, part);
    }
    sum.finish().open().0
}

#[test]
fn the_relation_decides_the_sensitivity() {
    let bound = ClippingNorm::new(0.75).unwrap();
    fn of<A: Adjacency>(bound: ClippingNorm) -> f64 {
        let mut sum = ClippedSum::<f64, A>::new(3, 1, bound, 4, 100).unwrap();
        assert_eq!(sum.sensitivity(), sum.finish().sensitivity());
        sum.sensitivity().get()
    }
    assert_eq!(of::<AddRemoveOne>(bound), 0.75);
    assert_eq!(of::<ZeroOut>(bound), 0.75);
    assert_eq!(of::<ReplaceOne>(bound), 1.5);
    assert_eq!(of::<ChangeListLabels>(bound), 1.5);
}

#[test]
fn refused_parameters() {
    let bound = ClippingNorm::new(1.0).unwrap();
    let new =
        |dim, blocks, microbatch, most| ClippedSum::<f64, ZeroOut>::new(dim, blocks, bound, microbatch, most).err();
    assert_eq!(new(2, 1, 1, 1), None);
    assert_eq!(new(0, 1, 1, 1), Some(Error::Dimension { dimension: 0 }));
    assert!(matches!(new(2, 0, 1, 1), Some(Error::Length { name: "blocks", .. })));
    assert!(matches!(new(2, 1, 0, 1), Some(Error::Length { name: "microbatch", .. })));
    assert!(matches!(new(2, 1, 1, u64::MAX), Some(Error::OutOfRange { .. })));
    let single = |norm, microbatch| {
        ClippedSum::<f32, ZeroOut>::new(2, 1, ClippingNorm::new(norm).unwrap(), microbatch, 1000).err()
    };
    assert_eq!(single(1.0, 64), None);
    assert!(matches!(single(1.0, 10_000), Some(Error::OutOfRange { .. })));
    for norm in [1e-20, 1e20] {
        assert!(matches!(single(norm, 64), Some(Error::OutOfRange { name: "clipping norm", .. })), "{norm}");
    }
}

#[test]
fn shapes_and_numbers_of_examples_are_checked() {
    let bound = ClippingNorm::new(1.0).unwrap();
    let mut sum = ClippedSum::<f64, ZeroOut>::new(2, 2, bound, 2, 3).unwrap();
    let untouched = |_: &[f64], _: &mut [f64]| panic!("must not be called");
    assert!(matches!(sum.add(&[1.0; 3], untouched), Err(Error::Length { .. })));
    assert!(matches!(sum.add(&[1.0; 6], untouched), Err(Error::Length { .. })));
    sum.add(&[1.0; 4], |coefficients, _| assert_eq!(coefficients.len(), 4)).unwrap();
    assert_eq!(sum.add(&[1.0; 4], untouched), Err(Error::TooManyExamples { most: 3 }));
    sum.add(&[1.0; 2], |_, _| ()).unwrap();
    let _ = sum.finish();
    sum.add(&[1.0; 4], |_, _| ()).unwrap();
}

#[test]
fn blocks_are_clipped_together() {
    let bound = ClippingNorm::new(1.0).unwrap();
    let mut sum = ClippedSum::<f64, ZeroOut>::new(2, 2, bound, 2, 2).unwrap();
    sum.add(&[9.0, 16.0, 0.1, 0.1], |coefficients, _| {
        assert!((coefficients[0] - 0.2).abs() < 1e-12);
        assert_eq!(coefficients[0], coefficients[1]);
        assert_eq!(coefficients[2..], [1.0, 1.0]);
    })
    .unwrap();
}

#[test]
fn examples_without_a_norm_contribute_nothing() {
    let good = vec![0.3, 0.4];
    for broken in [f64::NAN, f64::INFINITY, 1e200] {
        let with = total(&[good.clone(), vec![broken, 1.0], good.clone()], 1.0, 3, 3);
        let without = total(&[good.clone(), vec![0.0, 0.0], good.clone()], 1.0, 3, 3);
        assert_eq!(with, without);
    }
}

#[test]
fn finishing_starts_again() {
    let bound = ClippingNorm::new(1.0).unwrap();
    let mut sum = ClippedSum::<f64, ZeroOut>::new(1, 1, bound, 1, 1).unwrap();
    add(&mut sum, &[vec![0.25]]);
    assert_eq!(sum.finish().open().0, [0.25]);
    add(&mut sum, &[vec![0.5]]);
    assert_eq!(sum.finish().open().0, [0.5]);
    assert_eq!(sum.finish().open().0, [0.0]);
}

/// 2048 equal examples in single precision: removing one moves a plain sum by more than the norm; ours stays within.
#[test]
fn rounding_of_the_sum_stays_within_the_sensitivity() {
    let gradient = vec![0.3f32, 0.9, -0.77, 1.9];
    let all = vec![gradient.clone(); 2048];
    for removed in [0, 1000, 2047] {
        let mut without = all.clone();
        without[removed] = vec![0.0; 4];
        let (a, b) = (total(&all, 1.0, 64, 2048), total(&without, 1.0, 64, 2048));
        let moved: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        assert!(norm(&moved) <= 1.0 && norm(&moved) > 0.99, "{}", norm(&moved));
    }
}

proptest! {
    /// The sensitivity by brute force: zeroing any one example, or exchanging it, moves the computed sum by at most
    /// the bound.
    #[test]
    fn one_example_moves_the_sum_by_at_most_the_norm(
        gradients in prop::collection::vec(prop::collection::vec(-10.0f64..10.0, 5), 1..20),
        exchange in prop::collection::vec(-10.0f64..10.0, 5), bound in 1e-3f64..10.0, microbatch in 1usize..8,
    ) {
        let all = total(&gradients, bound, microbatch, 20);
        let moved = |replacement: Vec<f64>, i: usize| {
            let mut others = gradients.clone();
            others[i] = replacement;
            let other = total(&others, bound, microbatch, 20);
            norm(&all.iter().zip(&other).map(|(a, b)| a - b).collect::<Vec<_>>())
        };
        for i in 0..gradients.len() {
            prop_assert!(moved(vec![0.0; 5], i) <= bound);
            prop_assert!(moved(exchange.clone(), i) <= 2.0 * bound);
        }
    }

    #[test]
    fn single_precision_too(
        gradients in prop::collection::vec(prop::collection::vec(-10.0f32..10.0, 5), 1..40), bound in 1e-3f64..10.0,
    ) {
        let all = total(&gradients, bound, 8, 40);
        for i in 0..gradients.len() {
            let mut others = gradients.clone();
            others[i] = vec![0.0; 5];
            let other = total(&others, bound, 8, 40);
            let moved = norm(&all.iter().zip(&other).map(|(a, b)| a - b).collect::<Vec<_>>());
            prop_assert!(moved <= bound);
        }
    }
}

#[test]
fn the_slack_covers_each_source_of_rounding() {
    let unit = 2f64.powi(-24);
    // Of a gradient of 992 coordinates alone, of a microbatch of 100, of a million examples one by one.
    let near = |found: f64, expected: f64| found >= expected && found <= 1.1 * expected;
    assert!(near(slack(992, unit, 1, 1), 2.0 * 1000.0 * unit));
    assert!(near(slack(0, unit, 100, 1) - slack(0, unit, 1, 1), 2.0 * 100.0 * 102.0 * unit - 6.0 * unit));
    assert!(near(slack(0, 0.0, 1, 1_000_000), 2.0 * 1e6 * 1_000_001.0 * UNIT_ROUNDOFF));
}
