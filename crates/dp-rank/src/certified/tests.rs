use proptest::prelude::*;

use super::*;

fn symmetric(order: usize, entries: &[f64]) -> Vec<f64> {
    (0..order * order)
        .map(|at| {
            let (i, j) = (at / order, at % order);
            entries[i.max(j) * order + i.min(j)]
        })
        .collect()
}

proptest! {
    #[test]
    fn bounds_lie_above_and_close(order in 1_usize..14, entries in proptest::collection::vec(-1.0..1.0_f64, 196), scale in -100..100) {
        let matrix: Vec<f64> =
            symmetric(order, &entries[..order * order]).iter().map(|entry| entry * 2f64.powi(scale)).collect();
        let expected = DMatrix::from_row_slice(order, order, &matrix).symmetric_eigenvalues().max();
        let bound = largest_eigenvalue(&matrix, order);
        let size = matrix.iter().map(|entry| entry.abs()).fold(0.0, f64::max) * order as f64;
        prop_assert!(bound >= expected - 1e-14 * size);
        prop_assert!(bound <= expected + 1e-12 * size, "{bound} {expected}");
    }

    #[test]
    fn rank_one_matrices_are_exact(v in proptest::collection::vec(-9_i32..10, 2..12)) {
        // Integer products are exact, so the largest eigenvalue is the integer |v|².
        let n = v.len();
        let matrix: Vec<f64> = (0..n * n).map(|at| f64::from(v[at / n] * v[at % n])).collect();
        let expected = f64::from(v.iter().map(|v| v * v).sum::<i32>());
        let bound = largest_eigenvalue(&matrix, n);
        prop_assert!(bound >= expected && bound <= expected * (1.0 + 1e-11), "{bound} {expected}");
    }
}

#[test]
fn repeated_and_nearly_repeated_eigenvalues_are_bounded() {
    for gap in [0.0, 1e-15, 1e-12, 1e-6] {
        let n = 30;
        let matrix: Vec<f64> =
            (0..n * n).map(|at| if at / n == at % n { 1.0 - gap * (at / n) as f64 } else { 0.0 }).collect();
        let bound = largest_eigenvalue(&matrix, n);
        assert!((1.0..1.0 + 1e-11).contains(&bound), "{bound}");
    }
}

/// `bound I - M` is found positive semidefinite only if the bound exceeds the largest eigenvalue by the rounding of a
/// factorisation, `(n + 2) u` of the trace (Rump 2006), twice; and soon beyond that.
#[test]
fn only_what_is_certain_exceeds() {
    for n in [2_usize, 5, 12, 40] {
        // Integers: the largest eigenvalue of the outer product is exactly the square.
        let v: Vec<f64> = (0..n).map(|i| ((7 * i + 3) % 11) as f64 - 4.0).collect();
        let largest: f64 = v.iter().map(|v| v * v).sum();
        let at = |i: usize, j: usize| v[i] * v[j];
        let rounded = (n as f64 + 2.0) * UNIT * (n as f64 + 1.0) * largest;
        let exceeds = |bound: f64| exceeds(bound, n, at, &mut Vec::new());
        for below in [0.0, 0.5 * largest, largest * (1.0 - 1e-9), largest - rounded, largest, largest + rounded] {
            assert!(!exceeds(below), "{n}: {below} {largest}");
        }
        assert!(exceeds(largest + 8.0 * rounded) && exceeds(2.0 * largest), "{n}");
        assert!(!exceeds(f64::NAN));
    }
    // Negative diagonal entries are treated with their sign.
    assert!(!exceeds(1.0, 2, |i, j| if i == j { 3.0 } else { 0.0 }, &mut Vec::new()));
    assert!(exceeds(1.0, 2, |i, j| if i == j { -3.0 } else { 3.5 }, &mut Vec::new()));
}

#[test]
fn what_is_not_finite_has_no_bound() {
    assert_eq!(largest_eigenvalue(&[1.0, f64::NAN, f64::NAN, 1.0], 2), f64::INFINITY);
    assert_eq!(largest_eigenvalue(&[f64::MAX; 9], 3), f64::INFINITY);
    assert_eq!(largest_eigenvalue(&[0.0; 9], 3), 0.0);
}
