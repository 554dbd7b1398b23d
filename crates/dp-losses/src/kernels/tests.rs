use proptest::prelude::*;

use super::*;
use crate::{HuberSvm, Logistic, Squared};

/// Returns values in [-1, 1] that depend only on the index.
fn noise<F: Real>(count: usize, salt: u64) -> Vec<F> {
    (0..count as u64)
        .map(|i| {
            let mixed =
                (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(salt.wrapping_mul(0xD1B5_4A32_D192_ED03));
            nalgebra::convert(
                ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0,
            )
        })
        .collect()
}

/// Compares every kernel with the plain loops, on every instruction set of this machine.
fn kernels_match_the_reference<F: Real>(n: usize, dim: usize, stored: usize, zeros: usize, unit: f64) {
    let (values, w): (Vec<F>, Vec<F>) = (noise(n * dim, 1), noise(dim, 2));
    // Rows of every length up to `stored`, cut out of the middle of longer arrays whose other columns are invalid.
    let stored = stored.min(dim);
    let (mut offsets, mut indices) = (vec![3], vec![u32::MAX; 3]);
    for i in 0..n {
        let length = (i * 7 + stored) % (stored + 1);
        indices.extend((0..length).map(|k| (k * dim / stored) as u32));
        offsets.push(indices.len());
    }
    let stored_values = noise::<F>(indices.len() + 2, 3);
    indices.extend([u32::MAX; 2]);
    let scale = nalgebra::convert::<f64, F>(0.7);
    // A sum of k products of size at most 1, in any order, has an error of at most k² units of rounding.
    let sizes = nalgebra::convert::<f64, F>(unit * ((dim + n) as f64).powi(2));
    let near = |found: &[F], expected: &[F]| {
        found.len() == expected.len() && found.iter().zip(expected).all(|(&a, &b)| (a - b).abs() <= sizes)
    };
    for rows in [
        Rows::Dense { values: &values, dim },
        Rows::Sparse { offsets: &offsets, indices: &indices, values: &stored_values, dim },
    ] {
        for arch in instruction_sets() {
            let kernels = Kernels { arch };
            let mut scratch = Scratch::with_capacity(n);
            // Earlier contents of the buffers must not matter.
            scratch.predictions = vec![nalgebra::convert(f64::NAN); n + 3];

            let mut expected = vec![F::zero(); n];
            reference::predictions(&rows, scale, &w, &mut expected);
            kernels.predictions(rows, scale, &w, &mut scratch);
            assert!(near(&scratch.predictions, &expected), "{arch:?}: predictions of {n} rows of {dim}");

            reference::squared_row_norms(&rows, &mut expected);
            let mut norms = vec![F::one(); n];
            kernels.scale_by_squared_row_norms(rows, &mut norms, |norm, one| norm * one, |norm, one| norm * one);
            assert!(near(&norms, &expected), "{arch:?}: norms of {n} rows of {dim}");

            scratch.weights = noise(n, 4);
            scratch.weights.iter_mut().step_by(zeros).for_each(|weight| *weight = F::zero());
            let (mut sum, mut expected) = (w.clone(), w.clone());
            reference::add_rows(&rows, &scratch.weights, &mut expected);
            let mut squared_norm = reference::squared_norm(&sum);
            kernels.add_rows(rows, &mut scratch, &mut sum, Some(&mut squared_norm));
            assert!(near(&sum, &expected), "{arch:?}: sum of {n} rows of {dim}");
            let fresh = reference::squared_norm(&expected);
            let slack = sizes * (F::one() + fresh) * nalgebra::convert(4.0);
            assert!((squared_norm - fresh).abs() <= slack, "{arch:?}: norm after {n} rows of {dim}");
            let mut again = w.clone();
            kernels.add_rows(rows, &mut scratch, &mut again, None);
            assert!(again == sum, "{arch:?}: with and without the norm");
        }
    }
}

proptest! {
    #[test]
    fn kernels_match_plain_loops(n in 0_usize..12, dim in 1_usize..200, stored in 1_usize..20, zeros in 1_usize..5) {
        kernels_match_the_reference::<f64>(n, dim, stored, zeros, 2.3e-16);
        kernels_match_the_reference::<f32>(n, dim, stored, zeros, 1.2e-7);
    }
}

/// The instruction sets of this machine.
fn instruction_sets() -> Vec<Arch> {
    let mut sets = vec![Arch::Scalar, Arch::new()];
    #[cfg(target_arch = "x86_64")]
    if let Some(set) = pulp::x86::V3::try_new() {
        sets.push(Arch::V3(set));
    }
    sets
}

/// Scores of several classes are those of plain loops within rounding, and a row's score has the same bits in any batch; the sum
/// of outer products has the bits of the sum of each class, in double precision too.
fn classes_match_one_another<F: Real>(n: usize, dim: usize, classes: usize, zero: Option<usize>, unit: f64) {
    let (values, w): (Vec<F>, Vec<F>) = (noise(n * dim, 1), noise(classes * dim, 2));
    let (rows, scale) = (Rows::Dense { values: &values, dim }, nalgebra::convert(0.7));
    let slack: F = nalgebra::convert(unit * (dim as f64).powi(2));
    for arch in instruction_sets() {
        let kernels = Kernels { arch };
        let mut scratch = ClassScratch::with_capacity(n, classes);
        kernels.class_scores(rows, scale, &w, classes, &mut scratch);
        let scores = scratch.scores.clone();
        for (w, scores) in w.chunks(dim).zip(scores.chunks(n)) {
            let mut expected = vec![F::zero(); n];
            reference::predictions(&rows, scale, w, &mut expected);
            assert!(expected.iter().zip(scores).all(|(&a, &b)| (a - b).abs() <= slack), "{arch:?} {n} {dim} {classes}");
        }
        for i in 0..n {
            kernels.class_scores(rows.slice(i..i + 1), scale, &w, classes, &mut scratch);
            assert!(scratch.scores.iter().eq(scores.iter().skip(i).step_by(n)), "{arch:?} {n} {dim} {classes}");
        }

        let mut weights = noise::<F>(n * classes, 3);
        if let Some(zero) = zero {
            weights[zero % (n * classes)] = F::zero();
        }
        let (mut sum, mut sum_in_double) = (w.clone(), vec![0.0; w.len()]);
        let (mut expected, mut expected_in_double) = (sum.clone(), sum_in_double.clone());
        let mut of_class = Scratch::with_capacity(n);
        for (class, weights) in weights.chunks(n).enumerate() {
            let places = class * dim..(class + 1) * dim;
            of_class.weights = weights.to_vec();
            kernels.add_rows(rows, &mut of_class, &mut expected[places.clone()], None);
            kernels.add_rows_in_double(rows, weights, &mut expected_in_double[places]);
        }
        scratch.weights = weights;
        kernels.add_outer(ClassStep { rows, scratch: &mut scratch, sum: &mut sum, squared_norm: None });
        assert!(sum == expected, "{arch:?} {n} {dim} {classes}");
        if !is_double::<F>() {
            kernels.add_outer_in_double(rows, &mut scratch, &mut sum_in_double);
            assert!(sum_in_double == expected_in_double, "{arch:?} {n} {dim} {classes}");
        }
    }
}

proptest! {
    #[test]
    fn several_classes_are_as_accurate_as_one(
        n in 1_usize..120, dim in 1_usize..90, classes in 1_usize..40, zero in proptest::option::of(0_usize..4800),
    ) {
        classes_match_one_another::<f64>(n, dim, classes, zero, 2.3e-16);
        classes_match_one_another::<f32>(n, dim, classes, zero, 1.2e-7);
    }
}

#[test]
fn vectorised_derivatives_are_the_scalar_ones_to_the_bit() {
    fn check<L: Loss<f64> + Loss<f32>>(loss: L) {
        let kernels = Kernels::new();
        for n in [1, 2, 7, 16, 50, 333] {
            let targets: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
            let mut scratch = Scratch::with_capacity(n);
            scratch.predictions = noise::<f64>(n, 5).iter().map(|p| p * 40.0).collect();
            if n > 7 {
                scratch.predictions[..6].copy_from_slice(&[0.0, 1e308, -1e308, f64::MAX, f64::INFINITY, -745.1]);
            }
            kernels.derivatives(loss, &targets, None, &mut scratch);
            assert_eq!(scratch.derivatives.len(), n);
            for ((&found, &prediction), &target) in scratch.derivatives.iter().zip(&scratch.predictions).zip(&targets) {
                assert_eq!(found.to_bits(), loss.derivative(prediction, target).to_bits(), "{prediction}");
            }
        }
    }
    check(Logistic);
    check(Squared);
    check(HuberSvm::USUAL);
}

#[test]
fn a_row_of_weight_zero_is_not_read() {
    let values = [1.0, f64::NAN, f64::INFINITY, 1.0, 2.0, 3.0];
    let mut scratch = Scratch::with_capacity(2);
    scratch.weights = vec![0.0, 2.0];
    let mut sum = [1.0; 3];
    Kernels::new().add_rows(Rows::Dense { values: &values, dim: 3 }, &mut scratch, &mut sum, None);
    assert_eq!(sum, [3.0, 5.0, 7.0]);
    // No row is read if all have weight zero.
    scratch.weights = vec![0.0; 2];
    Kernels::new().add_rows(Rows::Dense { values: &[f64::NAN; 6], dim: 3 }, &mut scratch, &mut sum, None);
    assert_eq!(sum, [3.0, 5.0, 7.0]);
}

/// The factors of the weights of a systematic sample of `k` rows, by its definition: each of `k` points falls to the first row up to
/// which the sizes add up to as much.
fn systematic(weights: &[f64], n: usize, k: usize) -> Vec<f64> {
    let sizes: Vec<f64> = (0..n).map(|i| weights[i..].iter().step_by(n).map(|weight| weight.abs()).sum()).collect();
    let step = sizes.iter().sum::<f64>() / k as f64;
    let mut factors = vec![0.0; n];
    for j in 0..k {
        let mut sum = 0.0;
        let drawn = sizes.iter().position(|size| {
            sum += size;
            sum >= (j as f64 + squares::place(j as u64)) * step
        });
        let drawn = drawn.unwrap();
        factors[drawn] += step / sizes[drawn];
    }
    factors
}

/// Weighted squares of all rows if these are short, for two classes, and of a sample of long rows: one dense row in
/// `length/16`, one sparse row in `length/4`, but at least 64 rows; fewer if one counts several times.
#[test]
fn squares_are_those_of_the_rows_that_are_counted() {
    for (n, dim, counted) in
        [(1, 3, 1), (7, 1, 7), (8, 3, 8), (103, 5, 103), (90, 23, 90), (256, 32, 128), (256, 320, 64), (64, 320, 64)]
    {
        let (values, mut weights): (Vec<f64>, Vec<f64>) = (noise(n * dim, 1), noise(2 * n, 2));
        weights[n / 2] *= 10.0;
        let offsets: Vec<usize> = (0..=n).map(|i| i * dim).collect();
        let indices: Vec<u32> = (0..n).flat_map(|_| 0..dim as u32).collect();
        let sparse = Rows::Sparse { offsets: &offsets, indices: &indices, values: &values, dim };
        let of_sparse = n / (dim / 4).clamp(1, (n / 64).max(1));
        for (rows, counted) in [(Rows::Dense { values: &values, dim }, counted), (sparse, of_sparse)] {
            let factors = if counted == n { vec![1.0; n] } else { systematic(&weights, n, counted) };
            let used = factors.iter().filter(|factor| **factor > 0.0).count();
            for arch in instruction_sets() {
                let mut matrices = vec![0.0; 2 * dim * dim];
                assert_eq!(Kernels { arch }.add_squares(rows, &weights, &mut matrices), used, "{n} {dim}");
                for (weights, matrix) in weights.chunks(n).zip(matrices.chunks(dim * dim)) {
                    let mut expected = vec![0.0; dim * dim];
                    for i in 0..n {
                        let (row, weight) = (&values[i * dim..(i + 1) * dim], factors[i] * weights[i]);
                        for j in 0..dim {
                            (0..=j).for_each(|k| expected[j * dim + k] += weight * row[j] * row[k]);
                        }
                    }
                    for j in 0..dim {
                        let places = j * dim..=j * dim + j;
                        let mut pairs = matrix[places.clone()].iter().zip(&expected[places]);
                        assert!(pairs.all(|(a, b)| (a - b).abs() < 1e-11), "{arch:?} {n} {dim} {j}");
                    }
                }
            }
        }
    }
}

/// Where nearly all rows have almost no weight, a sixteenth of the rows is enough; rows without a finite weight are not drawn.
#[test]
fn rows_of_weight_are_drawn() {
    let (n, dim) = (1024, 256);
    let values: Vec<f64> = noise(n * dim, 3);
    let rows = Rows::Dense { values: &values, dim };
    let squares = |weights: &[f64]| {
        let mut matrix = vec![0.0; dim * dim];
        let used = Kernels::new().add_squares(rows, weights, &mut matrix);
        (used, matrix)
    };
    // Sixty rows of equal weight are the whole sum, but for the others' share of it, which others stand for.
    let weights: Vec<f64> = (0..n).map(|i| if i % 17 == 3 { 1.0 } else { 1e-9 }).collect();
    let (used, found) = squares(&weights);
    let heavy =
        |j: usize, k: usize| -> f64 { (3..n).step_by(17).map(|i| values[i * dim + j] * values[i * dim + k]).sum() };
    assert!((40..=64).contains(&used), "{used}");
    for (j, k) in [(0, 0), (9, 9), (255, 255)] {
        assert!((found[j * dim + k] - heavy(j, k)).abs() < 0.2 * heavy(j, k), "{j} {k}");
    }
    assert_eq!(squares(&vec![0.0; n]), (0, vec![0.0; dim * dim]));
    for bad in [f64::NAN, f64::INFINITY] {
        let mut weights = vec![1.0; n];
        weights[700] = bad;
        let (used, found) = squares(&weights);
        assert!(used == 0 && found[0].is_nan(), "{bad}");
    }
    assert_eq!(squares(&vec![f64::MIN_POSITIVE / 4.0; n]).0, 64);
    // Sizes whose steps are 0 after rounding, the first of them 0.
    let mut weights = vec![5e-324; n];
    weights[0] = 0.0;
    weights[40..].fill(0.0);
    assert!(squares(&weights).1.iter().all(|sum| sum.is_finite()));
    // A row of weight 0 is not read, whether all rows are used or a sample.
    let mut values = values.clone();
    values[3 * dim..4 * dim].fill(f64::NAN);
    for n in [64, 1024] {
        let mut weights = vec![1.0; n];
        weights[3] = 0.0;
        let mut matrix = vec![0.0; dim * dim];
        let rows = Rows::Dense { values: &values[..n * dim], dim };
        assert_eq!(Kernels::new().add_squares(rows, &weights, &mut matrix), 64);
        assert!((0..dim).all(|j| matrix[j * dim..=j * dim + j].iter().all(|sum| sum.is_finite())), "{n}");
    }
}

/// Rows that have features only at every fourth place are drawn as often as others.
#[test]
fn a_period_of_the_rows_is_not_followed() {
    for dim in [32usize, 64, 128] {
        for period in 2..=dim / 8 {
            let n = 1024;
            let mut values = vec![0.0; n * dim];
            for i in 0..n {
                values[i * dim + i % period] = 1.0;
            }
            let mut matrix = vec![0.0; dim * dim];
            Kernels::new().add_squares(Rows::Dense { values: &values, dim }, &vec![1.0; n], &mut matrix);
            for j in 0..period {
                let (found, expected) = (matrix[j * dim + j], (n / period) as f64);
                // With `n / stride` rows, 128 or more: five standard errors.
                let error = 5.0 * (expected * (dim / 16) as f64).sqrt();
                assert!((found - expected).abs() <= error, "{dim} {period} {j}: {found}, expected {expected}");
            }
        }
    }
}

/// Runs every kernel on these sparse rows and four parameters; `true` for each that refuses them.
fn refusals(offsets: &[usize], indices: &[u32]) -> Vec<bool> {
    let values = vec![1.0; indices.len()];
    let rows = Rows::Sparse { offsets, indices, values: &values, dim: 4 };
    let n = rows.len();
    let refused = |kernel: &dyn Fn(Kernels, &mut Scratch<f64>)| {
        let mut scratch = Scratch::with_capacity(n);
        scratch.weights = vec![1.0; n];
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| kernel(Kernels::new(), &mut scratch))).is_err()
    };
    let (targets, valid) = (vec![1.0; n], vec![true; n]);
    let step = |kernels: Kernels, scratch: &mut Scratch<f64>, valid| {
        let (targets, v) = (&targets[..], &mut [0.0; 4][..]);
        let step = Step { scale: 1.0, coefficient: 1.0, targets, valid, scratch, v, squared_norm: None };
        kernels.step(Squared, rows, step);
    };
    vec![
        refused(&|kernels, scratch| kernels.predictions(rows, 1.0, &[0.0; 4], scratch)),
        refused(&|kernels, scratch| kernels.add_rows(rows, scratch, &mut [0.0; 4], None)),
        refused(&|kernels, scratch| kernels.add_rows(rows, scratch, &mut [0.0; 4], Some(&mut 0.0))),
        refused(&|kernels, scratch| step(kernels, scratch, None)),
        refused(&|kernels, scratch| step(kernels, scratch, Some(&valid))),
    ]
}

#[test]
fn a_column_outside_the_parameters_is_refused_wherever_it_stands() {
    for length in [1, 2, 3, 4, 5, 14, 33, 200] {
        let columns: Vec<u32> = (0..length).map(|k| k as u32 % 4).collect();
        assert_eq!(refusals(&[0, length], &columns), [false; 5], "{length} good columns");
        for place in 0..length {
            for column in [4, 5, 1 << 31, u32::MAX] {
                let mut columns = columns.clone();
                columns[place] = column;
                assert_eq!(refusals(&[0, length], &columns), [true; 5], "column {column} at {place} of {length}");
                assert_eq!(refusals(&[0, length / 2, length], &columns), [true; 5], "in two rows");
            }
        }
    }
}

#[test]
fn offsets_that_contradict_the_columns_are_refused() {
    for offsets in [&[0, 3, 1, 2][..], &[0, 5], &[2, 0], &[0, usize::MAX], &[0, usize::MAX, 2]] {
        assert_eq!(refusals(offsets, &[0, 1]), [true; 5], "{offsets:?}");
    }
    assert_eq!(refusals(&[0, 0, 2, 2], &[0, 1]), [false; 5]);
}
