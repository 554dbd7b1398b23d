use super::super::tests::exactly_within;
use super::*;
use dp_accountant::{ReplaceOne, ZeroOut};
use proptest::prelude::*;

fn norm(value: f64) -> ClippingNorm {
    ClippingNorm::new(value).unwrap()
}

fn grid(value: f64, bits: u32) -> RowGrid {
    RowGrid::new(norm(value), bits).unwrap()
}

fn rows<F: RealField + Copy>(grid: RowGrid, all: &[Vec<F>]) -> TruncatedRows<F> {
    let mut rows = TruncatedRows::new(grid, all[0].len()).unwrap();
    all.iter().for_each(|row| rows.push(row).unwrap());
    rows
}

/// Returns the contribution of one scalar and one row.
fn contribution(template: &RankOneSum<ZeroOut>, scalar: f64, row: TruncatedRow<'_, f64>) -> Vec<f64> {
    let mut sum = template.like();
    sum.add(scalar, row).unwrap();
    sum.finish().open().0
}

#[test]
fn refused_grids() {
    for bits in [0, 53] {
        assert!(matches!(RowGrid::new(norm(1.0), bits), Err(Error::OutOfRange { name: "row bits", .. })));
    }
    assert!(matches!(RowGrid::new(norm(1e200), 20), Err(Error::ScaleOverflow { .. })));
    assert!(matches!(RowGrid::new(norm(1e-130), 20), Err(Error::ScaleOverflow { .. })));
    assert!(TruncatedRows::<f32>::new(grid(1.0, 24), 3).is_ok());
    assert!(matches!(TruncatedRows::<f32>::new(grid(1.0, 25), 3), Err(Error::OutOfRange { name: "row bits", .. })));
    assert!(matches!(TruncatedRows::<f32>::new(grid(1e-44, 20), 3), Err(Error::OutOfRange { name: "row bits", .. })));
    assert!(matches!(grid(1e60, 20).truncate(&mut [1.0f32]), Err(Error::OutOfRange { name: "row bits", .. })));
    // The step is a single, the norm is not.
    assert!(matches!(grid(1e39, 8).truncate(&mut [1.0f32]), Err(Error::OutOfRange { name: "row bits", .. })));
    assert_eq!(TruncatedRows::<f64>::new(grid(1.0, 25), 0).err(), Some(Error::Dimension { dimension: 0 }));
}

#[test]
fn refused_sums() {
    let new = |bits, most| RankOneSum::<ZeroOut>::new(2, grid(1.0, 16), norm(1.0), bits, most).err();
    assert_eq!(new(18, 500_000), None);
    assert!(matches!(new(19, 500_000), Some(Error::OutOfRange { name: "largest sum in steps", .. })));
    assert!(matches!(new(0, 10), Some(Error::OutOfRange { name: "scalar bits", .. })));
    assert!(matches!(new(51, 10), Some(Error::OutOfRange { name: "scalar bits", .. })));
    assert!(matches!(new(10, 0), Some(Error::OutOfRange { name: "most records", .. })));
    let finest = |most| RankOneSum::<ZeroOut>::finest(2, grid(1.0, 16), norm(1.0), most).map(|sum| sum.scalar_bits());
    assert_eq!((finest(1), finest(1 << 20), finest(1 << 36)), (Ok(37), Ok(17), Ok(1)));
    assert!(matches!(finest(1 << 37), Err(Error::OutOfRange { name: "largest sum in steps", .. })));
    let apart = RankOneSum::<ZeroOut>::finest(2, grid(1e-100, 16), norm(1e300), 10);
    assert!(matches!(apart, Err(Error::ScaleOverflow { .. })));
}

#[test]
fn kinds_shapes_and_numbers_are_checked() {
    let coarse = rows(grid(1.0, 8), &[vec![0.5f64, 0.25]]);
    let fine = rows(grid(1.0, 16), &[vec![0.5f64, 0.25]]);
    let long = rows(grid(1.0, 8), &[vec![0.5f64, 0.25, 0.125]]);
    let mut sum = RankOneSum::<ZeroOut>::new(2, grid(1.0, 8), norm(1.0), 10, 1).unwrap();
    assert_eq!(sum.add(1.0, fine.row(0).unwrap()), Err(Error::SumsDiffer));
    assert_eq!(sum.add(1.0, long.row(0).unwrap()), Err(Error::DimensionMismatch { expected: 2, found: 3 }));
    assert!(coarse.row(1).is_none() && coarse.len() == 1 && !coarse.is_empty());
    sum.add(1.0, coarse.row(0).unwrap()).unwrap();
    assert_eq!(sum.add(1.0, coarse.row(0).unwrap()), Err(Error::TooManyExamples { most: 1 }));
    let mut other = sum.like();
    other.add(1.0, coarse.row(0).unwrap()).unwrap();
    assert_eq!(sum.merge(other), Err(Error::TooManyExamples { most: 1 }));
    let other = RankOneSum::<ZeroOut>::new(2, grid(1.0, 8), norm(1.0), 11, 1).unwrap();
    assert_eq!(sum.merge(other), Err(Error::SumsDiffer));
    assert_eq!(sum.finish().open().0, [0.5, 0.25]);
    // The next sum may have the full number of records again.
    assert_eq!(sum.add(1.0, coarse.row(0).unwrap()), Ok(()));
}

/// Entries have at most the stated bits, even if the norm is not a power of two, so that they are exact in a narrow float.
#[test]
fn the_least_power_of_two_that_is_no_less_than_the_norm_has_the_bits() {
    for (value, step) in [(1.0, 2f64.powi(-24)), (1.5, 2f64.powi(-23)), (2.0, 2f64.powi(-23)), (0.75, 2f64.powi(-24))] {
        assert_eq!(grid(value, 24).step(), step, "{value}");
        assert!(value / step <= 2f64.powi(24));
    }
}

#[test]
fn the_relation_decides_the_sensitivity_and_nothing_is_taken_on_trust() {
    let mut sum = RankOneSum::<ReplaceOne>::finest(2, grid(2.0, 16), norm(0.3), 100).unwrap();
    assert_eq!(sum.sensitivity().get(), 0.6);
    assert!(sum.finish().open().1.is_empty());
}

#[test]
fn what_is_not_finite_contributes_nothing() {
    let all = rows(grid(1.0, 16), &[vec![0.5f64, 0.25], vec![f64::NAN, 0.5], vec![f64::INFINITY, 0.5], vec![0.0, 0.0]]);
    let template = RankOneSum::finest(2, grid(1.0, 16), norm(1.0), 10).unwrap();
    for scalar in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(contribution(&template, scalar, all.row(0).unwrap()), [0.0; 2]);
    }
    for row in 1..4 {
        assert_eq!(contribution(&template, 1e300, all.row(row).unwrap()), [0.0; 2]);
    }
}

/// A short row may have a large multiple: the contribution is clipped, as by `clip_l2`.
#[test]
fn contributions_reach_the_norm() {
    let all = rows(grid(1.0, 16), &[vec![0.6f64, 0.8], vec![2f64.powi(-16), 0.0]]);
    let template = RankOneSum::finest(2, grid(1.0, 16), norm(1.0), 1000).unwrap();
    for row in 0..2 {
        let found = contribution(&template, -1e9, all.row(row).unwrap());
        let length = (found[0] * found[0] + found[1] * found[1]).sqrt();
        assert!(length > 1.0 - 1e-4 && exactly_within(&found, 1.0), "{length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Truncated rows: within the norm in exact arithmetic, on the grid, unchanged by a second truncation.
    #[test]
    fn rows_keep_their_norm(
        row in prop::collection::vec(-2.0f64..2.0, 1..30), mantissa in 1.0f64..2.0, power in -300i32..300, bits in 1u32..53,
    ) {
        let bound = mantissa * power_of_two(power);
        let grid = grid(bound, bits);
        let mut row: Vec<f64> = row.into_iter().map(|x| x * power_of_two(power)).collect();
        let before = row.clone();
        grid.truncate(&mut row).unwrap();
        prop_assert!(exactly_within(&row, bound));
        prop_assert!(row.iter().all(|x| x % grid.step() == 0.0));
        prop_assert!(row.iter().zip(&before).all(|(a, b)| a.abs() <= b.abs()));
        let mut again: Vec<f64> = row.iter().map(|x| x * 0.5).collect();
        grid.truncate(&mut again).unwrap();
        let once = again.clone();
        grid.truncate(&mut again).unwrap();
        prop_assert_eq!(again, once);
    }

    /// In exact integers, for rows with integer squares.
    #[test]
    fn inverse_norms_are_no_larger_than_the_inverse(row in prop::collection::vec(-50i32..=50, 1..6)) {
        let squared: u128 = row.iter().map(|x| u128::from(x.unsigned_abs().pow(2))).sum();
        prop_assume!(squared > 0);
        let inverse = inverse_norm_down(&row.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
        // At most 1, so that it is a whole number of steps of 2^-60 (of which there are at most 2^53).
        let steps = inverse * power_of_two(60);
        prop_assert_eq!(steps.fract(), 0.0);
        let square = num_bigint::BigUint::from(steps as u64).pow(2) * squared;
        prop_assert!(square <= num_bigint::BigUint::from(1u8) << 120);
        prop_assert!(inverse * (squared as f64).sqrt() > 1.0 - 1e-14);
    }

    #[test]
    fn single_precision_holds_the_same_rows(row in prop::collection::vec(-1.0f32..1.0, 1..20), bits in 1u32..25) {
        let (mut single, mut double) = (row.clone(), row.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
        // No clipping, which would round differently.
        let grid = grid(100.0, bits);
        grid.truncate(&mut single).unwrap();
        grid.truncate(&mut double).unwrap();
        prop_assert!(single.iter().zip(&double).all(|(&a, &b)| f64::from(a) == b));
    }

    /// Every contribution within the norm, in exact arithmetic, for scalars of any size.
    #[test]
    fn contributions_are_within(
        row in prop::collection::vec(-1.0f64..1.0, 1..30), scalar in any::<u64>().prop_map(f64::from_bits),
        near in 0.5f64..2.0, bound in 1e-3f64..1e3, row_bound in 1e-3f64..1e3, bits in 4u32..30,
    ) {
        let grid = grid(row_bound, bits);
        let rows = rows(grid, core::slice::from_ref(&row));
        let template = RankOneSum::finest(row.len(), grid, norm(bound), 3).unwrap();
        let length = rows.row(0).unwrap().entries().iter().map(|x| x * x).sum::<f64>().sqrt();
        for scalar in [scalar, near * bound / length] {
            let found = contribution(&template, scalar, rows.row(0).unwrap());
            prop_assert!(exactly_within(&found, bound));
            prop_assert!(found.iter().all(|x| x % template.step() == 0.0));
        }
    }

    /// The sum is exact, in integers, in any order and any division; so one record moves it by at most the norm.
    #[test]
    fn sums_are_exact_in_any_order(
        all in prop::collection::vec((prop::collection::vec(-1.0f64..1.0, 3), -3.0f64..3.0), 1..60),
        keys in prop::collection::vec(any::<u32>(), 60), part in 1usize..60, bits in 4u32..30, bound in 0.1f64..10.0,
    ) {
        let grid = grid(1.5, bits);
        let rows = rows(grid, &all.iter().map(|(row, _)| row.clone()).collect::<Vec<_>>());
        let template = RankOneSum::finest(3, grid, norm(bound), 60).unwrap();
        let mut exact = [0i128; 3];
        for (i, (_, scalar)) in all.iter().enumerate() {
            for (exact, x) in exact.iter_mut().zip(contribution(&template, *scalar, rows.row(i).unwrap())) {
                *exact += (x / template.step()) as i128;
            }
        }
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|&i| keys[i]);
        let mut total = template.like();
        for indices in order.chunks(part) {
            let mut sum = template.like();
            indices.iter().for_each(|&i| sum.add(all[i].1, rows.row(i).unwrap()).unwrap());
            total.merge(sum).unwrap();
        }
        let found = total.finish().open().0;
        for (found, exact) in found.into_iter().zip(exact) {
            prop_assert!(exact.unsigned_abs() <= 1 << 53);
            prop_assert_eq!(found, exact as f64 * template.step());
        }
    }
}

/// The plain code and the code for the machine's instructions give the same bits.
#[test]
fn instruction_sets_agree() {
    fn same<F: RealField + Copy>(bits: u32) {
        for dim in [1, 7, 16, 55, 130] {
            for size in [1.0, 1e-6, 20.0, 1e30] {
                let row: Vec<F> = (0..dim).map(|j| nalgebra::convert((j as f64 * 0.7 + size).sin() * size)).collect();
                let [mut plain, mut fast] = [row.clone(), row];
                grid(1.0, bits).truncate_in_units(grid(1.0, bits).step, Arch::Scalar, &mut plain).unwrap();
                grid(1.0, bits).truncate_in_units(grid(1.0, bits).step, Arch::new(), &mut fast).unwrap();
                assert_eq!(plain, fast);
                assert!(plain.iter().any(|&x| x != F::zero()) || size < 1e-3);
            }
        }
    }
    same::<f64>(40);
    same::<f32>(20);
}
