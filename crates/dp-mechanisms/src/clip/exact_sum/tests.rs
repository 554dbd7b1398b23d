use super::super::tests::exactly_within;
use super::super::{AutomaticClipping, ClippingNorm};
use super::*;
use dp_accountant::{AddRemoveOne, ChangeListLabels, ReplaceOne, ZeroOut};
use proptest::prelude::*;

fn flat(norm: f64) -> ClippingRule {
    ClippingNorm::new(norm).unwrap().into()
}

fn new<A: Adjacency>(dim: usize, norm: f64, step_power: i32, most: u64) -> Result<ExactSum<A>, Error> {
    ExactSum::new(dim, flat(norm), power_of_two(step_power), most)
}

fn opened<A: Adjacency>(mut sum: ExactSum<A>) -> Vec<f64> {
    sum.finish().open().0
}

/// Returns the sum of these records, in parts of this length, in this order.
fn total<F: RealField + Copy>(template: &ExactSum<ZeroOut>, records: &[Vec<F>], part: usize) -> Vec<f64> {
    let mut total = template.like();
    for records in records.chunks(part) {
        let mut sum = template.like();
        records.iter().for_each(|record| sum.add(record).unwrap());
        total.merge(sum).unwrap();
    }
    opened(total)
}

#[test]
fn the_relation_decides_the_sensitivity_and_nothing_is_taken_on_trust() {
    fn of<A: Adjacency>() -> f64 {
        let mut sum = new::<A>(3, 0.75, -20, 1000).unwrap();
        let sensitivity = sum.sensitivity();
        let bounded = sum.finish();
        assert_eq!(bounded.sensitivity(), sensitivity);
        assert!(bounded.open().1.is_empty());
        sensitivity.get()
    }
    assert_eq!(of::<AddRemoveOne>(), 0.75);
    assert_eq!(of::<ZeroOut>(), 0.75);
    assert_eq!(of::<ReplaceOne>(), 1.5);
    assert_eq!(of::<ChangeListLabels>(), 1.5);
}

#[test]
fn refused_parameters() {
    let refused = |dim, norm, step: f64, most| ExactSum::<ZeroOut>::new(dim, flat(norm), step, most).err();
    assert_eq!(refused(1, 1.0, 0.5, 10), None);
    assert_eq!(refused(0, 1.0, 0.5, 10), Some(Error::Dimension { dimension: 0 }));
    for step in [0.0, -0.5, 0.3, 3.0, f64::NAN, f64::INFINITY, 5e-324, power_of_two(1023)] {
        assert!(matches!(refused(1, 1.0, step, 10), Some(Error::OutOfRange { name: "step", .. })), "{step}");
    }
    assert!(matches!(refused(1, 1.0, 0.5, 0), Some(Error::OutOfRange { name: "most records", .. })));
    assert_eq!(refused(1, 1.0, power_of_two(-52), 1), None);
    let name = "clipping norm in steps";
    assert!(
        matches!(refused(1, 1.0, power_of_two(-53), 1), Some(Error::OutOfRange { name: found, .. }) if found == name)
    );
    let name = "largest sum in steps";
    for (norm, step, most) in [(1.0, power_of_two(-40), 1 << 23), (1e300, 1e300f64.log2().exp2(), u64::MAX)] {
        let step = power_of_two(crate::rounding::exponent(step));
        assert!(matches!(refused(1, norm, step, most), Some(Error::OutOfRange { name: found, .. }) if found == name));
    }
    // A norm far below one step: every contribution is zero.
    let mut sum = new::<ZeroOut>(1, 1e-100, 300, u64::MAX).unwrap();
    sum.add(&[1.0]).unwrap();
    assert_eq!(opened(sum), [0.0]);
}

#[test]
fn shapes_numbers_and_kinds_are_checked() {
    let mut sum = new::<ZeroOut>(2, 1.0, -20, 2).unwrap();
    assert_eq!(sum.add(&[1.0]), Err(Error::DimensionMismatch { expected: 2, found: 1 }));
    sum.add(&[0.5, 0.5]).unwrap();
    let mut other = sum.like();
    other.add(&[0.5, 0.5]).unwrap();
    other.add(&[0.5, 0.5]).unwrap();
    assert_eq!(other.add(&[0.5, 0.5]), Err(Error::TooManyExamples { most: 2 }));
    assert_eq!(sum.merge(other), Err(Error::TooManyExamples { most: 2 }));
    for other in
        [new(3, 1.0, -20, 2), new(2, 1.5, -20, 2), new(2, 1.0, -21, 2), new(2, 1.0, -20, 3), new(2, 1.0, -52, 4)]
    {
        assert_eq!(sum.merge(other.unwrap()), Err(Error::SumsDiffer));
    }
    assert_eq!(opened(sum), [0.5, 0.5]);
    // Kept in doubles, and in integers.
    for step_power in [-20, -52] {
        let mut sum = new::<ZeroOut>(2, 1.0, step_power, 4).unwrap();
        assert_eq!(sum.merge(new(3, 1.0, step_power, 4).unwrap()), Err(Error::SumsDiffer));
        let mut other = sum.like();
        sum.add(&[0.5, 0.25]).unwrap();
        other.add(&[0.25, -0.5]).unwrap();
        sum.merge(other).unwrap();
        assert_eq!((sum.step(), opened(sum)), (power_of_two(step_power), vec![0.75, -0.25]));
    }
}

#[test]
fn records_that_are_not_finite_contribute_nothing() {
    for broken in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut sum = new::<ZeroOut>(2, 1.0, -30, 9).unwrap();
        sum.add(&[0.25, 0.5]).unwrap();
        sum.add(&[1e300, broken]).unwrap();
        assert_eq!(opened(sum), [0.25, 0.5]);
    }
}

#[test]
fn finishing_starts_again() {
    let mut sum = new::<ZeroOut>(1, 1.0, -30, 1).unwrap();
    sum.add(&[0.25]).unwrap();
    assert_eq!(sum.finish().open().0, [0.25]);
    sum.add(&[-0.5]).unwrap();
    assert_eq!(sum.finish().open().0, [-0.5]);
}

/// A plain sum of doubles depends on the order; this sum does not, and it is the sum of the truncated numbers.
#[test]
fn plain_sums_depend_on_the_order() {
    let records: Vec<Vec<f64>> = (1..200).map(|i| vec![f64::from(i).sin() * 0.9]).collect();
    let plain = |records: &[Vec<f64>]| records.iter().map(|record| record[0]).sum::<f64>();
    let reversed: Vec<Vec<f64>> = records.iter().rev().cloned().collect();
    assert_ne!(plain(&records), plain(&reversed));
    let template = new(1, 1.0, -40, 1000).unwrap();
    assert_eq!(total(&template, &records, 7), total(&template, &reversed, 200));
}

/// 2^53 steps and more: sums are kept in integers, and rounded once.
#[test]
fn large_sums_are_exact_in_integers() {
    let template = new::<ZeroOut>(2, 1.0, -50, 100).unwrap();
    assert!(matches!(template.total, Total::Integers(_, 4))); // 100 · 2^50 <= 2^53 2^4
    let records: Vec<Vec<f64>> =
        (0..100).map(|i| vec![(f64::from(i) * 0.7).sin(), 0.3 / (1.0 + f64::from(i))]).collect();
    let steps = |x: f64| (x * power_of_two(50)).trunc() as i128;
    let found = total(&template, &records, 100);
    for (coordinate, &found) in found.iter().enumerate() {
        let exact: i128 = records
            .iter()
            .map(|record| {
                let mut record = record.clone();
                super::super::clip_l2(&mut record, ClippingNorm::new(1.0).unwrap());
                steps(record[coordinate])
            })
            .sum();
        let found = (found * power_of_two(50)) as i128;
        assert!((found - exact).abs() <= 8 && found % 16 == 0, "{found} {exact}");
    }
    for steps in 0..32 {
        let record = vec![f64::from(steps) * power_of_two(-50), f64::from(-steps) * power_of_two(-50)];
        for found in total(&template, &[record], 1) {
            assert!((found.abs() * power_of_two(50) - f64::from(steps)).abs() <= 8.0, "{steps} {found}");
        }
    }
    // Both sums may move by half a unit of the result in each coordinate.
    let h = power_of_two(-46);
    let expected = 1.0 + h * 2f64.sqrt();
    assert!(template.sensitivity().get() >= expected && template.sensitivity().get() <= expected * (1.0 + 1e-15));
}

#[test]
fn automatic_clipping_sums_too() {
    let norm = ClippingNorm::new(1.0).unwrap();
    let rule = AutomaticClipping::new(norm, 0.01).unwrap();
    let mut sum = ExactSum::<ZeroOut>::new(1, rule.into(), power_of_two(-40), 10).unwrap();
    sum.add(&[100.0f64]).unwrap();
    let expected = 100.0 / 100.01;
    let found = opened(sum)[0];
    assert!(found <= expected && found > expected - 2.0 * power_of_two(-40));
}

fn finite() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// One record's contribution for every finite vector: on the grid, and within the norm in exact arithmetic.
    #[test]
    fn contributions_are_within_for_all_finite_input(
        v in prop::collection::vec(finite(), 1..20), power in -480i32..480, mantissa in 1.0f64..2.0, bits in 0i32..52,
        automatic in any::<bool>(),
    ) {
        let norm = ClippingNorm::new(power_of_two(power) * mantissa).unwrap();
        let rule = if automatic { AutomaticClipping::new(norm, 1.0).unwrap().into() } else { norm.into() };
        let step = power_of_two((power - bits).max(-1022));
        let mut sum = ExactSum::<ZeroOut>::new(v.len(), rule, step, 1).unwrap();
        sum.add(&v).unwrap();
        let found = opened(sum);
        prop_assert!(exactly_within(&found, norm.get()));
        prop_assert!(found.iter().all(|x| x % step == 0.0));
    }

    /// Truncation loses less than a step, towards zero.
    #[test]
    fn truncation_costs_less_than_a_step(v in prop::collection::vec(-1.0f64..1.0, 1..20), bits in 0i32..50) {
        let mut clipped = v.clone();
        super::super::clip_l2(&mut clipped, ClippingNorm::new(0.7).unwrap());
        let mut sum = new::<ZeroOut>(v.len(), 0.7, -bits, 1).unwrap();
        sum.add(&v).unwrap();
        for (found, clipped) in opened(sum).into_iter().zip(clipped) {
            let (found, lost) = (found * clipped.signum(), (clipped - found).abs());
            prop_assert!(found >= 0.0 && found <= clipped.abs() && lost < power_of_two(-bits) + 1e-15);
        }
    }

    /// Any permutation and any division among threads: the same bits, in doubles and in integers.
    #[test]
    fn order_and_division_do_not_matter(
        records in prop::collection::vec(prop::collection::vec(-2.0f64..2.0, 3), 1..40),
        keys in prop::collection::vec(any::<u32>(), 40), part in 1usize..40, bits in prop::sample::select(vec![20, 44, 50]),
    ) {
        let template = new::<ZeroOut>(3, 1.0, -bits, 40).unwrap();
        let mut order: Vec<usize> = (0..records.len()).collect();
        order.sort_by_key(|&i| keys[i]);
        let permuted: Vec<Vec<f64>> = order.iter().map(|&i| records[i].clone()).collect();
        let bits = |sum: Vec<f64>| sum.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        prop_assert_eq!(bits(total(&template, &records, 40)), bits(total(&template, &permuted, part)));
        let single: Vec<Vec<f32>> = records.iter().map(|r| r.iter().map(|&x| x as f32).collect()).collect();
        let permuted: Vec<Vec<f32>> = order.iter().map(|&i| single[i].clone()).collect();
        prop_assert_eq!(bits(total(&template, &single, 40)), bits(total(&template, &permuted, part)));
    }

    /// The sensitivity by brute force, in exact arithmetic: differences of two sums on the grid are doubles.
    #[test]
    fn one_record_moves_the_sum_by_at_most_the_norm(
        records in prop::collection::vec(prop::collection::vec(-10.0f64..10.0, 4), 1..20),
        exchange in prop::collection::vec(-10.0f64..10.0, 4), norm in 1e-3f64..10.0, bits in 10i32..40,
    ) {
        let template = new::<ZeroOut>(4, norm, -bits, 20).unwrap();
        let all = total(&template, &records, 20);
        for i in 0..records.len() {
            let moved = |others: &[Vec<f64>]| -> Vec<f64> {
                all.iter().zip(total(&template, others, 20)).map(|(a, b)| a - b).collect()
            };
            let mut others = records.clone();
            others[i] = exchange.clone();
            prop_assert!(exactly_within(&moved(&others), 2.0 * norm));
            others.remove(i);
            prop_assert!(exactly_within(&moved(&others), norm));
        }
    }
}

/// Sums made on separate threads.
#[test]
fn threads_add_up_to_the_same_bits() {
    let template = new::<ZeroOut>(5, 1.0, -30, 10_000).unwrap();
    let records: Vec<Vec<f64>> = (0..4000).map(|i| (0..5).map(|j| f64::from(i * 5 + j).sin()).collect()).collect();
    let sequential = total(&template, &records, 4000);
    let mut parallel = template.like();
    std::thread::scope(|scope| {
        let parts: Vec<_> = records
            .chunks(1100)
            .map(|records| {
                let mut sum = template.like();
                scope.spawn(move || {
                    records.iter().for_each(|record| sum.add(record).unwrap());
                    sum
                })
            })
            .collect();
        parts.into_iter().rev().for_each(|part| parallel.merge(part.join().unwrap()).unwrap());
    });
    assert_eq!(sequential, opened(parallel));
}

#[test]
fn a_declared_diameter_is_kept_and_nearly_reached() {
    use rand::RngExt;
    let mut rng = crate::SeededRng::new(3);
    // Steps so coarse that truncation shows, and sums in integers.
    for (dim, norm, step_power, most) in
        [(2, 1.0, -4, 3), (3, 1.0, -9, 5), (5, 1.0, -45, 1 << 12), (2, 8.0, -20, 9), (2, 0.125, -30, 9)]
    {
        let sum = || new::<ReplaceOne>(dim, norm, step_power, most).unwrap();
        let plain = sum().sensitivity().get();
        for diameter in [0.3, 1.0, 1.4, 1.99].map(|diameter| diameter * norm) {
            let within = || sum().within(diameter).unwrap();
            let claimed = within().sensitivity().get();
            assert!(claimed >= diameter && claimed <= plain, "{claimed}");
            let mut best = 0.0f64;
            for _ in 0..3000 {
                let a: Vec<f64> = (0..dim).map(|_| norm * rng.random_range(-1.2..1.2)).collect();
                let direction: Vec<f64> = (0..dim).map(|_| rng.random_range(-1.0..1.0)).collect();
                let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt() * (1.0 + 1e-12);
                let b: Vec<f64> = a.iter().zip(&direction).map(|(a, e)| a - diameter * e / length).collect();
                let of = |record: &[f64]| {
                    let mut sum = within();
                    sum.add(record).unwrap();
                    opened(sum)
                };
                let apart = of(&a).iter().zip(of(&b)).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
                assert!(apart <= claimed * (1.0 + 1e-14), "{dim} {diameter}: {apart} > {claimed}");
                best = best.max(apart / claimed);
            }
            assert!(best > if step_power == -4 { 0.5 } else { 0.95 }, "{dim} {norm} {diameter}: {best}");
        }
    }
    // Two norms always suffice; relations that add or remove a record, and normalised contributions, are unchanged.
    assert_eq!(new::<ReplaceOne>(2, 1.0, -20, 9).unwrap().within(7.0).unwrap().sensitivity().get(), 2.0);
    assert_eq!(new::<ZeroOut>(2, 1.0, -20, 9).unwrap().within(0.3).unwrap().sensitivity().get(), 1.0);
    let automatic = AutomaticClipping::new(ClippingNorm::new(1.0).unwrap(), 0.01).unwrap();
    let sum = ExactSum::<ReplaceOne>::new(2, automatic.into(), power_of_two(-20), 9).unwrap();
    assert_eq!(sum.within(0.3).unwrap().sensitivity().get(), 2.0);
    for nonsense in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(new::<ReplaceOne>(2, 1.0, -20, 9).unwrap().within(nonsense).is_err());
    }
}

/// The plain code and the code for the machine's instructions give the same bits, in doubles and in integers, for either rule.
#[test]
fn instruction_sets_agree() {
    let automatic = ClippingRule::Automatic(AutomaticClipping::new(ClippingNorm::new(1.0).unwrap(), 0.01).unwrap());
    for rule in [flat(1.0), flat(0.07), automatic] {
        for (dim, step, most) in [(1, -30, 1000), (16, -40, 1000), (61, -31, 1 << 30), (200, -50, 100)] {
            let mut sums = [Arch::Scalar, Arch::new()].map(|arch| {
                let sum = ExactSum::<ZeroOut>::new(dim, rule, power_of_two(step), most).unwrap();
                ExactSum { arch, ..sum }
            });
            for i in 0..60 {
                let size = [1.0, 1e-3, 1e200, 1e-200, 30.0, 0.0, f64::NAN][i % 7];
                let record: Vec<f64> = (0..dim).map(|j| ((i * dim + j) as f64 * 0.7).sin() * size).collect();
                sums.iter_mut().for_each(|sum| sum.add(&record).unwrap());
            }
            let [plain, fast] = sums.map(opened);
            assert_eq!(plain, fast, "{rule:?} {dim}");
            assert!(plain.iter().any(|&x| x != 0.0));
        }
    }
}

/// A sum from elsewhere gives the bits of the same records here, in doubles and in integers; one that cannot be is refused.
#[test]
fn sums_from_elsewhere_are_those_of_the_records() {
    for (power, most) in [(-20, 100u64), (-40, 1 << 21)] {
        let records: Vec<Vec<f64>> =
            (0..100).map(|i| vec![f64::from(i) / 130.0, -0.3, 0.001 * f64::from(i % 7)]).collect();
        let template = new::<ZeroOut>(3, 1.0, power, most).unwrap();
        let here = total(&template, &records, 7);
        let whole = |j: usize| records.iter().map(|record| (record[j] * power_of_two(-power)).trunc() as i64).sum();
        let (mut elsewhere, sums) = (template.like(), [whole(0), whole(1), whole(2)]);
        let halves = sums.map(|sum: i64| sum / 2);
        let rest = [0, 1, 2].map(|j| sums[j] - halves[j]);
        elsewhere.add_from_elsewhere(&halves, 50).unwrap();
        elsewhere.add_from_elsewhere(&rest, 50).unwrap();
        assert_eq!(opened(elsewhere), here);
        let mut sum = template.like();
        let too_large = (1i64 << -power) * 3 + 1;
        assert!(matches!(sum.add_from_elsewhere(&[0, -too_large, 0], 3), Err(Error::ImpossibleSum)));
        assert!(matches!(sum.add_from_elsewhere(&[i64::MIN, 0, 0], 3), Err(Error::ImpossibleSum)));
        assert!(matches!(sum.add_from_elsewhere(&[0, 0], 3), Err(Error::DimensionMismatch { expected: 3, found: 2 })));
        assert!(matches!(sum.add_from_elsewhere(&[0; 3], most + 1), Err(Error::TooManyExamples { .. })));
        assert_eq!(opened(sum), [0.0; 3]);
    }
}
