use dp_data::{Block, Examples, Rows};
use num_bigint::BigInt;
use proptest::prelude::*;

use super::*;
use crate::{
    Absolute, HuberRegression, LinearModel, LogCosh, Logistic, LossKind, ModelVisitor, ScaledSteps, Softmax,
    SoftmaxModel, Squared,
};

/// Number of binary fractional digits of an exactly computed number.
const DIGITS: i32 = 1200;

/// Converts a double to an integer in units of `2^-DIGITS`: exactly, from `2^-1100` on.
fn exactly(number: f64) -> BigInt {
    let bits = number.abs().to_bits();
    let (exponent, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    let (mantissa, exponent) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    let size = BigInt::from(mantissa) << usize::try_from(exponent + DIGITS).unwrap();
    if number < 0.0 { -size } else { size }
}

/// Returns the product of two numbers in units, rounded down to a unit.
fn product(a: &BigInt, b: &BigInt) -> BigInt {
    (a * b) >> DIGITS
}

/// Converts units to a double, approximately.
fn roughly(units: &BigInt) -> f64 {
    let shift = units.bits().saturating_sub(64);
    let leading = i128::try_from(units >> shift).unwrap() as f64;
    leading * 2f64.powi(i32::try_from(shift).unwrap() - DIGITS)
}

fn row(rows: &Rows<'_, f64>, i: usize) -> Vec<f64> {
    let mut dense = vec![0.0; rows.dim()];
    match rows.slice(i..i + 1) {
        Rows::Dense { values, .. } => dense.copy_from_slice(values),
        Rows::Sparse { offsets, indices, values, .. } => {
            for k in offsets[0]..offsets[1] {
                dense[indices[k] as usize] = values[k];
            }
        }
    }
    dense
}

/// Returns the error of the summed gradient of the squared loss divided by the documented bound.
fn error_of_least_squares(w: &[f64], block: Block<'_, f64>) -> f64 {
    let model = LinearModel::new(w.len(), Squared);
    let mut sum = CompensatedSum::zeros(w.len());
    model.add_compensated((w, &[]), block, &mut model.pass(block.len()), &mut sum);
    let norm = |v: &[f64]| v.iter().fold(0.0f64, |norm, x| norm.hypot(*x));
    let mut exact = vec![BigInt::ZERO; w.len()];
    let (unit, n, d) = (f64::EPSILON / 2.0, block.len() as f64, w.len() as f64);
    let mut allowed = 0.0;
    for i in 0..block.len() {
        let x = row(&block.rows, i);
        let residual: BigInt = x.iter().zip(w).map(|(x, w)| product(&exactly(*x), &exactly(*w))).sum::<BigInt>()
            - exactly(block.targets[i]);
        exact.iter_mut().zip(&x).for_each(|(sum, x)| *sum += product(&residual, &exactly(*x)));
        let size = roughly(&residual).abs();
        let prediction = unit * size + ((d + 20.0) * unit).powi(2) * norm(w) * norm(&x);
        allowed += norm(&x) * (prediction * (1.0 + unit) + (unit + ((n + 2.0) * unit).powi(2)) * size);
    }
    let total = norm(&exact.iter().map(roughly).collect::<Vec<_>>());
    let differences = (0..w.len()).map(|j| roughly(&(exactly(sum.high[j]) + exactly(sum.low[j]) - &exact[j])));
    let found = norm(&differences.collect::<Vec<_>>());
    assert!(total.is_finite());
    if found == 0.0 { 0.0 } else { found / allowed }
}

/// Numbers of very different sizes.
fn number() -> impl Strategy<Value = f64> {
    (-1.0..1.0f64, -40i32..40).prop_map(|(x, exponent)| x * 2f64.powi(exponent))
}

proptest! {
    #[test]
    fn the_error_is_what_the_documentation_says(
        w in prop::collection::vec(number(), 1..30), rows in prop::collection::vec(number(), 90),
        targets in prop::collection::vec(number(), 1..12), cancel in any::<bool>(), sparse in any::<bool>(),
    ) {
        let (d, n) = (w.len(), targets.len());
        let mut values: Vec<f64> = rows.iter().copied().cycle().take(n * d).collect();
        if cancel {
            // The terms after the middle cancel those before it, except for a few last digits.
            for row in values.chunks_exact_mut(d) {
                for j in d.div_ceil(2)..d {
                    let other = j - d.div_ceil(2);
                    row[j] = -(row[other] * w[other] / w[j]) * (1.0 + 3.0 * f64::EPSILON);
                }
            }
        }
        prop_assume!(values.iter().all(|x| x.is_finite() && (*x == 0.0 || (1e-60..1e60).contains(&x.abs()))));
        let examples = if sparse {
            let kept: Vec<usize> = (0..n * d).filter(|k| k % 3 != 1).collect();
            let offsets = (0..=n).map(|i| kept.iter().filter(|&&k| k < i * d).count()).collect();
            let columns = kept.iter().map(|&k| (k % d) as u32).collect();
            Examples::sparse(offsets, columns, kept.iter().map(|&k| values[k]).collect(), targets, d).unwrap()
        } else {
            Examples::dense(values, targets, d).unwrap()
        };
        let ratio = error_of_least_squares(&w, examples.block());
        prop_assert!(ratio <= 1.0, "{ratio}");
    }
}

/// The compensated and the plain gradient, with all of some examples and with one of them invalid.
struct BothGradients<'a>(Block<'a, f64>);

impl ModelVisitor<f64> for BothGradients<'_> {
    type Output = ();
    fn visit<M>(self, model: M)
    where
        M: ScaledSteps<f64> + for<'a> Model<f64, Batch<'a> = Block<'a, f64>>,
    {
        let w: Vec<f64> = (0..model.parameters()).map(|j| (j as f64 * 0.7).sin()).collect();
        let n = self.0.len();
        let counted: Vec<bool> = (0..n).map(|i| i != 2).collect();
        let mut pass = model.pass(n);
        for valid in [None, Some(&counted[..])] {
            let block = Block { valid, ..self.0 };
            let (mut plain, mut sum) = (vec![0.0; w.len()], CompensatedSum::zeros(w.len()));
            model.forward(&w, block, &mut pass);
            model.backward(&w, block, &mut pass);
            model.add_weighted(block, &mut pass, &vec![1.0; n], &mut plain);
            model.add_compensated((&w, &[]), block, &mut pass, &mut sum);
            let mut whole = sum.clone();
            whole.add(&sum);
            for (j, plain) in plain.iter().enumerate() {
                assert!((sum.value(j) - plain).abs() < 1e-14, "{} {plain}", sum.value(j));
                assert_eq!(whole.value(j), 2.0 * sum.value(j));
            }
            // The same sum once more, onto parameters in two parts.
            let mut onto = CompensatedSum::from(w.clone());
            let coefficients: Vec<f64> = (0..n).map(|i| 0.25 * (i % 3) as f64).collect();
            let mut plain = w.clone();
            model.forward(&w, block, &mut pass);
            model.backward(&w, block, &mut pass);
            model.add_weighted(block, &mut pass, &coefficients, &mut plain);
            model.add_weighted_in_two_parts(block, &mut pass, &coefficients, &mut onto);
            assert!(plain.iter().enumerate().all(|(j, plain)| (onto.value(j) - plain).abs() < 1e-14));
            sum.clear();
            assert!((0..w.len()).all(|j| sum.value(j) == 0.0));
        }
    }
}

#[test]
fn it_is_the_gradient_of_every_loss() {
    let rows: Vec<f64> = (0..60).map(|i| f64::from(i * 37 % 11 - 5) / 9.0).collect();
    for (loss, targets) in [
        ("logistic", [-1.0, 1.0]),
        ("huber-svm:0.3", [-1.0, 1.0]),
        ("hinge", [-1.0, 1.0]),
        ("squared", [0.4, -0.9]),
        ("huber-regression:0.2", [0.4, -0.9]),
        ("log-cosh:0.2", [0.4, -0.9]),
        ("absolute", [0.4, -0.9]),
        ("softmax:3", [0.0, 2.0]),
    ] {
        let kind: LossKind = loss.parse().unwrap();
        let targets = targets.repeat(10);
        let dense = Examples::dense(rows.clone(), targets.clone(), 3).unwrap();
        kind.visit_model(3, BothGradients(dense.block()));
        let offsets = (0..=20).map(|i| 3 * i).collect();
        let sparse = Examples::sparse(offsets, [0, 2, 3].repeat(20), rows.clone(), targets, 4).unwrap();
        kind.visit_model(4, BothGradients(sparse.block()));
    }
}

/// Additions below the last digit of a vector are kept in its second part, for dense and sparse rows.
#[test]
fn additions_below_the_last_digit_add_up() {
    let model = LinearModel::new(2, Squared);
    let dense = Examples::dense(vec![1.0, 0.5], vec![0.0], 2).unwrap();
    let sparse = Examples::sparse(vec![0, 2], vec![0, 1], vec![1.0, 0.5], vec![0.0], 2).unwrap();
    for block in [dense.block(), sparse.block()] {
        let mut pass = model.pass(1);
        model.forward(&[1.0, 0.0], block, &mut pass);
        model.backward(&[1.0, 0.0], block, &mut pass);
        let mut sum = CompensatedSum::from(vec![1e6, -1e6]);
        for _ in 0..1 << 16 {
            model.add_weighted_in_two_parts(block, &mut pass, &[2f64.powi(-40)], &mut sum);
        }
        assert_eq!(sum.parts().collect::<Vec<_>>(), [(1e6 + 2f64.powi(-24), 0.0), (-1e6 + 2f64.powi(-25), 0.0)]);
        sum.scale_by_power(0.5);
        assert_eq!(sum.value(0), 5e5 + 2f64.powi(-25));
    }
}

#[test]
fn predictions_that_cancel_are_seen_to_the_last_digit() {
    // Margins of 1e-8 from terms of 1e8.
    let data = Examples::dense(vec![1.0, 1.0, 1.0], vec![1.0], 3).unwrap();
    let w = [1e8, 1e-8, -1e8];
    let mut sum = CompensatedSum::zeros(3);
    let logistic = LinearModel::new(3, Logistic);
    logistic.add_compensated((&w, &[]), data.block(), &mut logistic.pass(1), &mut sum);
    assert!((sum.value(0) + 0.5 - 0.25e-8).abs() < 1e-16, "{}", sum.value(0) + 0.5);
    // A residual from a prediction near the target, for every loss of the residual.
    near_the_target(Squared, 1e-9);
    near_the_target(HuberRegression::new(1.0).unwrap(), 1e-9);
    near_the_target(LogCosh::new(1.0).unwrap(), 1e-9);
    near_the_target(Absolute, 1.0);
    for (loss, expected) in [("squared", 1e-9), ("huber-regression:1", 1e-9), ("log-cosh:1", 1e-9), ("absolute", 1.0)] {
        near_the_target(loss.parse::<LossKind>().unwrap().scalar().unwrap(), expected);
    }
    // Scores that differ by less than the rounding of one addition.
    let softmax = SoftmaxModel::new(2, Softmax::new(2).unwrap());
    let one = Examples::dense(vec![1.0, 1.0], vec![0.0], 2).unwrap();
    let mut sum = CompensatedSum::zeros(4);
    softmax.add_compensated((&[1e12, 1e-6, 1e12, 0.0], &[]), one.block(), &mut softmax.pass(1), &mut sum);
    assert!((sum.value(0) + 0.5 - 0.25e-6).abs() < 1e-16, "{}", sum.value(0) + 0.5);
    // Also if a third is far below: distances are those from the largest.
    let softmax = SoftmaxModel::new(2, Softmax::new(3).unwrap());
    let mut sum = CompensatedSum::zeros(6);
    softmax.add_compensated((&[1e12, 1e-6, 1e12, 0.0, -1e12, 0.0], &[]), one.block(), &mut softmax.pass(1), &mut sum);
    assert!((sum.value(0) + 0.5 - 0.25e-6).abs() < 1e-16, "{}", sum.value(0) + 0.5);
}

/// The second part of the parameters counts where the first has no digits for it.
#[test]
fn parameters_in_two_parts_are_added() {
    let one = Examples::dense(vec![1.0, 0.5], vec![1e16], 2).unwrap();
    let model = LinearModel::new(2, Squared);
    let mut sum = CompensatedSum::zeros(2);
    model.add_compensated((&[1e16, 0.0], &[0.25, 0.5]), one.block(), &mut model.pass(1), &mut sum);
    assert_eq!((sum.value(0), sum.value(1)), (0.5, 0.25));
    let softmax = SoftmaxModel::new(1, Softmax::new(2).unwrap());
    let one = Examples::dense(vec![1.0], vec![0.0], 1).unwrap();
    let mut sum = CompensatedSum::zeros(2);
    softmax.add_compensated((&[1e12, 1e12], &[2e-6, 1e-6]), one.block(), &mut softmax.pass(1), &mut sum);
    assert!((sum.value(0) + 0.5 - 0.25e-6).abs() < 1e-16, "{}", sum.value(0) + 0.5);
}

/// The gradient at a residual of 1e-9, which a rounded prediction loses entirely.
fn near_the_target<L: crate::Loss<f64>>(loss: L, expected: f64) {
    let near = Examples::dense(vec![1.0, 1.0], vec![1e8], 2).unwrap();
    let model = LinearModel::new(2, loss);
    let mut sum = CompensatedSum::zeros(2);
    model.add_compensated((&[1e8, 1e-9], &[]), near.block(), &mut model.pass(1), &mut sum);
    assert!((sum.value(0) / expected - 1.0).abs() < 1e-14, "{expected}: {}", sum.value(0));
}

#[test]
fn a_condition_bounds_what_a_relative_error_of_the_prediction_does() {
    let domain = crate::Domain::unit_rows();
    for name in ["logistic", "huber-svm:0.3", "huber-svm:2", "huber-regression:0.2", "log-cosh:0.2", "log-cosh:3"] {
        let kind: LossKind = name.parse().unwrap();
        let (loss, condition) = (kind.scalar().unwrap(), kind.condition(&domain));
        let target = if kind.is_classification() { 1.0 } else { 0.0 };
        let relative = 1e-6;
        let mut largest = 0.0f64;
        for i in -40_000..40_000 {
            let r = f64::from(i) * 1e-3;
            let change = crate::Loss::<f64>::derivative(&loss, r * (1.0 + relative), target)
                - crate::Loss::<f64>::derivative(&loss, r, target);
            largest = largest.max(change.abs() / relative);
        }
        assert!(largest <= condition * (1.0 + 1e-3) && largest > 0.9 * condition, "{name}: {largest} {condition}");
        // A gradient is the derivative times the row.
        for row_norm in [0.25, 3.0] {
            let longer = kind.condition(&domain.with_row_norm(row_norm).unwrap());
            assert!(
                largest * row_norm <= longer * (1.0 + 1e-3) && largest * row_norm > 0.9 * longer,
                "{name}: {longer}"
            );
        }
    }
    // Rounding goes to the safe side.
    for (name, of_slope) in [("huber-svm:2", 0.75), ("huber-regression:0.2", 1.0)] {
        for row_norm in [0.25, 1.0, 2.0] {
            let condition = name.parse::<LossKind>().unwrap().condition(&domain.with_row_norm(row_norm).unwrap());
            assert!(condition >= of_slope * row_norm && condition < 1.001 * of_slope * row_norm, "{name}: {condition}");
        }
    }
}

/// The remainder of the larger part is added to it, not subtracted.
#[test]
fn both_parts_of_a_sum_count() {
    let mut sum = CompensatedSum::zeros(2);
    for term in [1.0, 0.75 * f64::EPSILON, 0.75 * f64::EPSILON] {
        sum.add_at(1, term);
    }
    assert_eq!((sum.value(0), sum.value(1)), (0.0, 1.0 + 1.5 * f64::EPSILON));
    sum.add_at(1, -1.0);
    assert_eq!(sum.value(1), 1.5 * f64::EPSILON);
    // Adding less than half a unit above 1, where the unit is twice that below 1, does not change 1.
    sum.add_at(0, 1.0);
    sum.add_at(0, 0.4 * f64::EPSILON);
    assert_eq!(sum.value(0), 1.0);
    // Sums are functions of records.
    assert_eq!(format!("{sum:?}"), "CompensatedSum { len: 2, .. }");
}

/// For rows of any length, in either storage.
#[test]
fn the_error_of_long_rows_is_what_the_documentation_says() {
    for d in [64, 65, 300] {
        let w: Vec<f64> = (0..d).map(|j| (j as f64 * 0.7).sin()).collect();
        let values: Vec<f64> = (0..d).map(|j| (j as f64 * 1.3).cos()).collect();
        let sparse = Examples::sparse(vec![0, d], (0..d as u32).collect(), values.clone(), vec![0.3], d).unwrap();
        let dense = Examples::dense(values, vec![0.3], d).unwrap();
        for examples in [sparse, dense] {
            let ratio = error_of_least_squares(&w, examples.block());
            assert!(ratio <= 1.0, "{d}: {ratio}");
        }
    }
}
