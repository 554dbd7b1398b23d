use proptest::prelude::*;

use super::*;

fn singular_values(matrix: &[f64], rows: usize, columns: usize) -> f64 {
    nalgebra::DMatrix::from_row_slice(rows, columns, matrix).singular_values().max()
}

proptest! {
    #[test]
    fn the_bound_is_above_and_the_estimate_near(
        rows in 1_usize..12, columns in 1_usize..12, entries in proptest::collection::vec(-1.0..1.0_f64, 144), scale in -300..300,
    ) {
        let matrix: Vec<f64> = entries[..rows * columns].iter().map(|entry| entry * 2f64.powi(scale)).collect();
        let expected = singular_values(&matrix, rows, columns);
        let bound = norm_upper_bound(&matrix, rows, columns);
        prop_assert!(bound >= expected * (1.0 - 1e-14) && bound <= expected * (1.0 + 1e-11), "{bound} {expected}");
        let estimate = PowerIteration::default().estimate(&matrix, rows, columns);
        prop_assert!(estimate <= expected * (1.0 + 1e-13) && estimate >= expected * (1.0 - 1e-2), "{estimate} {expected}");
    }

    #[test]
    fn warm_starts_converge(entries in proptest::collection::vec(-1.0..1.0_f64, 60)) {
        let mut iteration = PowerIteration::default();
        let expected = singular_values(&entries, 6, 10);
        for _ in 0..30 {
            iteration.estimate(&entries, 6, 10);
        }
        let estimate = iteration.estimate(&entries, 6, 10);
        prop_assert!((estimate - expected).abs() <= 1e-6 * expected, "{estimate} {expected}");
    }

    #[test]
    fn no_vector_is_stretched_beyond_the_bound(entries in proptest::collection::vec(-9_i32..10, 12), v in proptest::array::uniform3(-9_i32..10)) {
        // Integers are exact.
        let matrix: Vec<f64> = entries.iter().map(|&entry| f64::from(entry)).collect();
        let image: i32 =
            entries.chunks_exact(3).map(|row| row.iter().zip(&v).map(|(a, b)| a * b).sum::<i32>().pow(2)).sum();
        let square = f64::from(v.iter().map(|v| v * v).sum::<i32>());
        let bound = norm_upper_bound(&matrix, 4, 3);
        prop_assert!(f64::from(image) <= bound * bound * square * (1.0 + 1e-15));
    }
}

#[test]
fn normalising_leaves_zero_alone_and_small_ones_on_request() {
    let mut iteration = PowerIteration::default();
    let mut zero = [0.0; 6];
    assert_eq!(iteration.normalise(&mut zero, 2, 3, Normalise::Always), 1.0);
    assert_eq!(zero, [0.0; 6]);
    let mut small = [0.5, 0.0, 0.0, 0.25];
    assert_eq!(iteration.normalise(&mut small, 2, 2, Normalise::AboveOne), 1.0);
    assert_eq!(small, [0.5, 0.0, 0.0, 0.25]);
    iteration.normalise(&mut small, 2, 2, Normalise::Always);
    assert!((singular_values(&small, 2, 2) - 1.0).abs() < 1e-8);
    let mut large = [4.0, 0.0, 0.0, 2.0];
    iteration.normalise(&mut large, 2, 2, Normalise::AboveOne);
    assert!((large[0] - 1.0).abs() < 1e-8);
}

#[test]
fn what_is_not_finite_has_no_bound() {
    assert_eq!(norm_upper_bound(&[1.0, f64::NAN], 1, 2), f64::INFINITY);
    assert_eq!(norm_upper_bound(&[1.0, f64::INFINITY], 1, 2), f64::INFINITY);
    assert!(norm_upper_bound(&[f64::MAX, f64::MAX], 1, 2) >= f64::MAX);
    let tiny = norm_upper_bound(&[5e-324, 5e-324], 1, 2);
    assert!(tiny > 5e-324 && tiny < 1e-300);
}
