use super::super::ClippingNorm;
use super::*;
use dp_accountant::{AddRemoveOne, ChangeListLabels, ReplaceOne, ZeroOut};
use proptest::prelude::*;

fn wide<F: RealField + Copy>(x: F) -> f64 {
    x.to_subset_unchecked()
}

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
                    *sum += wide(c) * wide(entry);
                }
            }
        }
    })
    .unwrap();
}

fn total<F: RealField + Copy>(gradients: &[Vec<F>], bound: f64, microbatch: usize, most: u64) -> Vec<f64> {
    let dim = gradients.first().map_or(2, Vec::len);
    let bound = ClippingNorm::new(bound).unwrap();
    let mut sum = ClippedSum::<F, ZeroOut>::new(dim, 1, bound, dim as f64, microbatch, most).unwrap();
    for part in gradients.chunks(microbatch) {
        add(&mut sum, part);
    }
    sum.finish().open().0
}

#[test]
fn the_relation_decides_the_sensitivity() {
    let bound = ClippingNorm::new(0.75).unwrap();
    fn of<A: Adjacency>(bound: ClippingNorm) -> f64 {
        let mut sum = ClippedSum::<f64, A>::new(3, 1, bound, 3.0, 4, 100).unwrap();
        assert_eq!(sum.sensitivity(), sum.finish().sensitivity());
        sum.sensitivity().get()
    }
    let near = |found: f64, ideal: f64| found > ideal && found < ideal * (1.0 + 1e-12);
    assert!(near(of::<AddRemoveOne>(bound), 0.75));
    assert!(near(of::<ZeroOut>(bound), 0.75));
    assert!(near(of::<ReplaceOne>(bound), 1.5));
    assert!(near(of::<ChangeListLabels>(bound), 1.5));
}

#[test]
fn refused_parameters() {
    let bound = ClippingNorm::new(1.0).unwrap();
    let new = |dim, blocks, microbatch, most| {
        ClippedSum::<f64, ZeroOut>::new(dim, blocks, bound, 2.0, microbatch, most).err()
    };
    assert_eq!(new(2, 1, 1, 1), None);
    assert_eq!(new(0, 1, 1, 1), Some(Error::Dimension { dimension: 0 }));
    assert!(matches!(new(2, 0, 1, 1), Some(Error::Length { name: "blocks", .. })));
    assert!(matches!(new(2, 1, 0, 1), Some(Error::Length { name: "microbatch", .. })));
    assert!(matches!(new(2, 1, 1, u64::MAX), Some(Error::OutOfRange { .. })));
    let single = |norm, roundings| {
        ClippedSum::<f32, ZeroOut>::new(2, 1, ClippingNorm::new(norm).unwrap(), roundings, 64, 1000).err()
    };
    assert_eq!(single(1.0, 64.0), None);
    for roundings in [2f64.powi(21), 17e6, f64::INFINITY, f64::NAN, -1.0] {
        assert!(matches!(single(1.0, roundings), Some(Error::OutOfRange { .. })), "{roundings}");
    }
    for norm in [1e-20, 1e20] {
        assert!(matches!(single(norm, 64.0), Some(Error::OutOfRange { name: "clipping norm", .. })), "{norm}");
    }
}

#[test]
fn shapes_and_numbers_of_examples_are_checked() {
    let bound = ClippingNorm::new(1.0).unwrap();
    let mut sum = ClippedSum::<f64, ZeroOut>::new(2, 2, bound, 2.0, 2, 3).unwrap();
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
    let mut sum = ClippedSum::<f64, ZeroOut>::new(2, 2, bound, 2.0, 2, 2).unwrap();
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
    let mut sum = ClippedSum::<f64, ZeroOut>::new(1, 1, bound, 1.0, 1, 1).unwrap();
    add(&mut sum, &[vec![0.25]]);
    assert_eq!(sum.finish().open().0, [0.25]);
    add(&mut sum, &[vec![0.5]]);
    assert_eq!(sum.finish().open().0, [0.5]);
    assert_eq!(sum.finish().open().0, [0.0]);
}

/// The slack covers each of its roundings, alone and together, for every bound, and no more than that.
#[test]
fn there_is_room_for_every_rounding() {
    let u = 2f64.powi(-53);
    for (examples, microbatch) in
        [(1u64, 1u64), (1000, 1000), (1000, 1), (1 << 20, 1024), (1 << 30, 1024), (1 << 33, 1)]
    {
        let n = examples as f64;
        let parts = examples.div_ceil(microbatch) as f64;
        let in_a_part = microbatch.min(examples) as f64 * u;
        let (errors, last) = ((parts * u).powi(2), u);
        let slack = |bound: f64| sensitivity_of_sum(bound, bound, examples, microbatch).unwrap() / bound - 1.0;
        let needed = 2.0 * n * (in_a_part + if parts > 1.0 { errors + last } else { 0.0 });
        let found = slack(1.0);
        assert!(found >= needed && found <= 4.1 * needed + 1e-14, "{examples} {microbatch}: {found} {needed}");
        for bound in [0.125, 8.0] {
            assert!((slack(bound) / found - 1.0).abs() < 1e-6, "{bound} {examples} {microbatch}");
        }
    }
    // `1 + 2 γ` with `γ > 4 u`: above the double `1 + 8 u`.
    assert!(sensitivity_of_sum(1.0, 1.0, 1, 1).unwrap() > 1.0 + 8.0 * u);
}

/// Contributions that are bounded without clipping are added unchanged; buffers are reused.
#[test]
fn nothing_is_clipped_where_the_bound_is_a_claim() {
    let mut sum = ClippedSum::<f64, ReplaceOne>::of_bounded(2, 1, (0.5, 3.0), 3, 10).unwrap();
    let clipped = ClippedSum::<f64, ReplaceOne>::new(2, 1, ClippingNorm::new(1.0).unwrap(), 2.0, 3, 10).unwrap();
    assert!(!sum.clips() && clipped.clips());
    for _ in 0..2 {
        add(&mut sum, &[vec![1e3, -1e-3]]);
        add(&mut sum, &vec![vec![2.0, 3.0]; 3]);
        let released = sum.finish();
        assert!((released.sensitivity().get() / 0.5 - 1.0).abs() < 1e-12);
        let total = released.open().0;
        assert_eq!(total, [1006.0, 9.0 - 1e-3]);
        sum.reuse(total);
    }
    // A buffer is not replaced in the middle of a sum.
    add(&mut sum, &[vec![1.0, 1.0]]);
    sum.reuse(vec![7.0; 2]);
    assert_eq!(sum.finish().open().0, [1.0, 1.0]);
}

/// 2048 equal examples in single precision: removing one moves a plain sum by more than the norm; ours stays within it.
#[test]
fn rounding_of_the_sum_stays_within_the_sensitivity() {
    let gradient = vec![0.3f32, 0.9, -0.77, 1.9];
    let all = vec![gradient.clone(); 2048];
    for removed in [0, 1000, 2047] {
        let mut without = all.clone();
        without[removed] = vec![0.0; 4];
        let (a, b) = (total(&all, 1.0, 64, 2048), total(&without, 1.0, 64, 2048));
        let moved: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        assert!(
            norm(&moved) <= sensitivity_of_sum(1.0, 1.0, 2048, 64).unwrap() && norm(&moved) > 0.99,
            "{}",
            norm(&moved)
        );
    }
}

proptest! {
    /// The sensitivity by brute force: zeroing or replacing any one example moves the computed sum by at most the bound.
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
            prop_assert!(moved(vec![0.0; 5], i) <= sensitivity_of_sum(bound, bound, 20, microbatch as u64).unwrap());
            let both = sensitivity_of_sum(2.0 * bound, bound, 20, microbatch as u64).unwrap();
            prop_assert!(moved(exchange.clone(), i) <= both);
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
            prop_assert!(moved <= sensitivity_of_sum(bound, bound, 40, 8).unwrap());
        }
    }
}

/// The sensitivity over its ideal: at most 1.02 for any realistic number of records.
#[test]
fn the_sensitivity_does_not_grow_with_the_records() {
    for (n, most) in [(100_000, 1e-7), (1_000_000, 1e-6), (100_000_000, 1e-4), (1_000_000_000, 1e-3), (1 << 32, 2e-3)] {
        let over = sensitivity_of_sum(1.0, 1.0, n, 1024).unwrap() - 1.0;
        assert!(over > 0.0 && over < most, "{n}: {over}");
    }
    assert!(matches!(sensitivity_of_sum(1.0, 1.0, 1 << 40, 1024), Err(Error::OutOfRange { .. })));
}

/// Computed sums compared with exact ones, in integers: within the proved error, which plain totals exceed.
#[test]
fn totals_are_within_the_proved_error_of_exact_sums() {
    let (n, microbatch) = (1u64 << 17, 4);
    // Alternating in size, so that each addition rounds.
    let value =
        |i: u64| if i.is_multiple_of(3) { 1.0 - 2f64.powi(-53) } else { (0.3 + (i % 1000) as f64 * 6e-4).min(1.0) };
    let bound = ClippingNorm::new(1.0 + 1e-10).unwrap();
    let mut sum = ClippedSum::<f64, ZeroOut>::new(1, 1, bound, 1.0, microbatch, n).unwrap();
    // Values are multiples of 2^-60.
    let (mut exact, mut plain) = (0i128, 0.0);
    let in_units = |x: f64| (x * 2f64.powi(60)) as i128;
    for first in (0..n).step_by(microbatch) {
        let values: Vec<Vec<f64>> = (first..first + microbatch as u64).map(|i| vec![value(i)]).collect();
        exact += values.iter().map(|v| in_units(v[0])).sum::<i128>();
        plain += values.iter().map(|v| v[0]).sum::<f64>();
        add(&mut sum, &values);
    }
    let found = sum.finish().open().0[0];
    let off = |x: f64| (in_units(x) - exact) as f64 * 2f64.powi(-60);
    let proved = 0.5 * (sensitivity_of_sum(1.0, 1.0, n, microbatch as u64).unwrap() - 1.0);
    assert!(off(found).abs() <= proved, "{} {proved}", off(found));
    assert!(off(plain).abs() > off(found).abs(), "{} {}", off(plain), off(found));
}

/// Rows whose sum of squares in single precision is too small: the declared roundings exceed the deficit of the norm.
#[test]
fn contributions_are_no_longer_than_the_norm() {
    for dim in [1usize, 7, 100, 5000] {
        // Each square after the first is lost: 1 + 2^-25 rounds to 1.
        let mut gradient = vec![2f32.powi(-13) * 1.4; dim];
        gradient[0] = 1.0;
        let exact: f64 = gradient.iter().map(|&x| f64::from(x).powi(2)).sum();
        let short = gradient.iter().fold(0f32, |sum, &x| sum + x * x);
        let roundings = ((exact - f64::from(short)) / exact * 2f64.powi(24)).max(0.0).ceil();
        let bound = ClippingNorm::new(0.5).unwrap();
        let mut sum = ClippedSum::<f32, ZeroOut>::new(dim, 1, bound, roundings, 1, 1).unwrap();
        add(&mut sum, &[gradient]);
        let length = norm(&sum.finish().open().0);
        assert!(length <= 0.5 && length > 0.5 - 2.0 * (roundings + 9.0) * 2f64.powi(-24), "{dim}: {length}");
    }
}

/// Microbatches summed apart and appended give the bits of those added in place. One made by another rule, or with too many
/// examples, is refused, and then nothing is added.
#[test]
fn appended_microbatches_have_the_bits_of_added_ones() {
    let gradients: Vec<Vec<f64>> = (0..40).map(|i| vec![f64::from(i).sin(), 1.7 * f64::from(3 * i).cos()]).collect();
    let bound = ClippingNorm::new(1.0).unwrap();
    let new = |bound, microbatch, most| ClippedSum::<f64, ZeroOut>::new(2, 1, bound, 2.0, microbatch, most).unwrap();
    let part = |sum: &ClippedSum<f64, ZeroOut>, gradients: &[Vec<f64>]| {
        let squared_norms: Vec<f64> = gradients.iter().map(|g| g[0] * g[0] + g[1] * g[1]).collect();
        sum.microbatches().sum(&squared_norms, &mut vec![7.0; 3], |coefficients, sum| {
            for (c, gradient) in coefficients.iter().zip(gradients) {
                sum.iter_mut().zip(gradient).for_each(|(sum, entry)| *sum += c * entry);
            }
        })
    };
    for few in [1, 7, 8, 40] {
        let whole = total(&gradients[..few], 1.0, 7, 40);
        let mut sum = new(bound, 7, 40);
        for gradients in gradients[..few].chunks(7) {
            let summed = part(&sum, gradients).unwrap();
            assert!(!format!("{summed:?}").contains("sum:"));
            sum.append(summed).unwrap();
        }
        for other in [
            new(ClippingNorm::new(2.0).unwrap(), 7, 40),
            new(bound, 8, 40),
            new(bound, 7, 41),
            ClippedSum::of_bounded(2, 1, (1.0, 1.0), 7, 40).unwrap(),
        ] {
            assert_eq!(sum.append(part(&other, &gradients[..1]).unwrap()), Err(Error::SumsDiffer));
        }
        assert!(part(&sum, &gradients[..8]).is_err(), "more than a microbatch");
        if few > 33 {
            assert_eq!(sum.append(part(&sum, &gradients[..7]).unwrap()), Err(Error::TooManyExamples { most: 40 }));
        }
        assert_eq!(sum.finish().open().0, whole, "{few}");
    }
}

/// Returns the total of gradients at `positions`, in microbatches of `most` summed in `F`.
fn total_in_float<F: RealField + Copy>(gradients: &[(u32, Vec<F>)], bound: f64, most: usize, count: u64) -> Vec<f64> {
    let dim = gradients[0].1.len();
    let bound = ClippingNorm::new(bound).unwrap();
    let mut sum = ClippedSum::<F, ZeroOut>::new(dim, 1, bound, dim as f64, most, count).unwrap().in_float().unwrap();
    let elsewhere = sum.microbatches();
    let positions: Vec<u32> = gradients.iter().map(|gradient| gradient.0).collect();
    for (index, range) in super::super::microbatches(&positions, most).into_iter().enumerate() {
        let gradients = &gradients[range];
        let squared_norms: Vec<F> =
            gradients.iter().map(|(_, v)| v.iter().fold(F::zero(), |sum, &entry| sum + entry * entry)).collect();
        let weighted = |coefficients: &[F], sum: &mut [F]| {
            for (&c, (_, gradient)) in coefficients.iter().zip(gradients) {
                sum.iter_mut().zip(gradient).for_each(|(sum, &entry)| *sum += c * entry);
            }
        };
        if index % 2 == 0 {
            sum.add_in_float(&squared_norms, weighted).unwrap();
        } else {
            let buffer = sum.float_buffer();
            let part = elsewhere.sum_in_float(&squared_norms, &mut Vec::new(), buffer, weighted).unwrap();
            sum.append(part).unwrap();
        }
    }
    sum.finish().open().0
}

/// Neighbours whose sums round as differently as possible are within the sensitivity, and the same sums cut every `most` records are
/// not: there the added record moves all later microbatches.
#[test]
fn one_record_moves_a_sum_in_single_precision_by_no_more_than_the_sensitivity() {
    let (most, count) = (32, 1 << 14);
    let bound = ClippingNorm::new(1.0).unwrap();
    let sum = ClippedSum::<f32, ZeroOut>::new(3, 1, bound, 3.0, most, count).unwrap();
    let sensitivity = sum.in_float().unwrap().sensitivity().get();
    assert!(sensitivity < 1.0003, "{sensitivity}");
    // Small gradients are lost after a large one, but not before it.
    let gradient = |i: u32| match i {
        0 => vec![-0.57f32; 3],
        _ => vec![if i.is_multiple_of(32) { 0.57f32 } else { 2.9e-8 }; 3],
    };
    let all: Vec<_> = (1..count as u32).map(|i| (i, gradient(i))).collect();
    let mut largest = 0.0f64;
    for added in [0, 5000, 16_000] {
        let before: Vec<_> = all.iter().filter(|(i, _)| *i != added).cloned().collect();
        let mut after = before.clone();
        after.insert(before.iter().filter(|(i, _)| *i < added).count(), (added, gradient(added)));
        let sums = [&before, &after].map(|all| total_in_float(all, 1.0, most, count));
        let difference: Vec<f64> = sums[1].iter().zip(&sums[0]).map(|(a, b)| a - b).collect();
        assert!(norm(&difference) <= sensitivity, "{added}: {}", norm(&difference));
        let cut = |all: &[(u32, Vec<f32>)]| -> Vec<f64> {
            let mut total = vec![0.0; 3];
            for part in all.chunks(most) {
                let mut sum = [0.0f32; 3];
                part.iter().for_each(|(_, v)| sum.iter_mut().zip(v).for_each(|(sum, x)| *sum += x));
                total.iter_mut().zip(sum).for_each(|(total, x)| *total += f64::from(x));
            }
            total
        };
        let exact = norm(&gradient(added).into_iter().map(f64::from).collect::<Vec<_>>());
        let moved: Vec<f64> = cut(&after).iter().zip(cut(&before)).map(|(a, b)| a - b).collect();
        largest = largest.max(norm(&moved) - exact);
    }
    assert!(largest > sensitivity - 1.0, "{largest}");
}

#[test]
fn sums_in_both_precisions_are_not_mixed() {
    let bound = ClippingNorm::new(1.0).unwrap();
    let new = || ClippedSum::<f32, ReplaceOne>::new(2, 1, bound, 2.0, 4, 100).unwrap();
    let mut sum = new().in_float().unwrap();
    assert!(sum.sensitivity().get() > 2.0 && sum.sensitivity().get() < 2.0001);
    assert_eq!(sum.add(&[1.0], |_, _| ()), Err(Error::SumsDiffer));
    assert_eq!(new().add_in_float(&[1.0], |_, _| ()), Err(Error::SumsDiffer));
    let part = new().microbatches().sum(&[1.0], &mut Vec::new(), |_, _| ()).unwrap();
    assert_eq!(sum.append(part), Err(Error::SumsDiffer));
    assert!(sum.microbatches().sum(&[1.0], &mut Vec::new(), |_, _| ()).is_err());
    assert!(new().microbatches().sum_in_float(&[1.0], &mut Vec::new(), Vec::new(), |_, _| ()).is_err());
    assert_eq!(sum.finish().open().0, [0.0, 0.0]);
    // Once begun, a sum keeps its precision; one without clipping has no other.
    let mut begun = new();
    begun.add(&[1.0], |_, _| ()).unwrap();
    assert!(matches!(begun.in_float().err(), Some(Error::SumsDiffer)));
    let bounded = ClippedSum::<f32, ReplaceOne>::of_bounded(2, 1, (0.5, 3.0), 3, 10).unwrap();
    assert!(matches!(bounded.in_float().err(), Some(Error::SumsDiffer)));
    // In double precision there is room for any microbatch, in single for few.
    let most = |microbatch| ClippedSum::<f32, ZeroOut>::new(2, 1, bound, 2.0, microbatch, 1 << 20).unwrap().in_float();
    assert!(most(1000).is_ok() && matches!(most(1100).err(), Some(Error::OutOfRange { .. })));
}
