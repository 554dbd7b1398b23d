use dp_data::{Block, Examples, Rows};
use proptest::prelude::*;

use super::*;
use crate::laws::{Case, model_laws, norm_laws};
use crate::{CompensatedSum, Constants, L2, LinearModel, Logistic, LossKind, Model, ModelVisitor, Real, ScaledSteps};

/// A generator whose numbers depend only on the seed.
struct Uniform(u64);

impl Uniform {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(88_172_645_463_325_253))
    }

    /// Returns a number in [0, 1).
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns numbers in [-size, size).
    fn vector(&mut self, length: usize, size: f64) -> Vec<f64> {
        (0..length).map(|_| (2.0 * self.next() - 1.0) * size).collect()
    }

    /// Returns a vector of norm `norm` in an approximately uniform direction.
    fn direction(&mut self, length: usize, norm: f64) -> Vec<f64> {
        let mut vector = self.vector(length, 1.0);
        let size = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
        vector.iter_mut().for_each(|v| *v *= norm / size);
        vector
    }
}

/// Returns dense and sparse versions of the same `n` examples of `dim` features, about half of them zero.
fn examples(n: usize, dim: usize, classes: u32, seed: u64) -> (Examples<f64>, Examples<f64>) {
    let mut random = Uniform::new(seed);
    let scale = 2.0 / (dim as f64).sqrt();
    let dense: Vec<f64> =
        (0..n * dim).map(|_| if random.next() < 0.5 { 0.0 } else { (random.next() - 0.5) * scale }).collect();
    let targets: Vec<f64> = (0..n).map(|_| (random.next() * f64::from(classes)).floor()).collect();
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in dense.chunks_exact(dim) {
        for (column, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            indices.push(column as u32);
            values.push(x);
        }
        offsets.push(values.len());
    }
    let sparse = Examples::sparse(offsets, indices, values, targets.clone(), dim).unwrap();
    (Examples::dense(dense, targets, dim).unwrap(), sparse)
}

fn parameters(count: usize) -> Vec<f64> {
    (0..count).map(|j| ((j * 37 % 19) as f64 - 9.0) / 6.0).collect()
}

fn model(dim: usize, classes: u32) -> SoftmaxModel<f64> {
    SoftmaxModel::new(dim, Softmax::new(classes).unwrap())
}

/// Returns value and gradient of one example by the formulas.
fn reference(w: &[f64], x: &[f64], class: usize, classes: usize) -> (f64, Vec<f64>) {
    let scores: Vec<f64> = w.chunks_exact(x.len()).map(|w| w.iter().zip(x).map(|(w, x)| w * x).sum::<f64>()).collect();
    assert_eq!(scores.len(), classes);
    let largest = scores.iter().fold(f64::NEG_INFINITY, |m, z| m.max(*z));
    let total: f64 = scores.iter().map(|z| (z - largest).exp()).sum();
    let mut gradient = Vec::new();
    for (c, z) in scores.iter().enumerate() {
        let residual = (z - largest).exp() / total - f64::from(u8::from(c == class));
        gradient.extend(x.iter().map(|x| residual * x));
    }
    (largest + total.ln() - scores[class], gradient)
}

#[test]
fn the_laws_hold_dense_and_sparse_with_and_without_invalid_rows() {
    for (dim, classes) in [(1, 2), (3, 3), (8, 2), (17, 10), (50, 4), (133, 3)] {
        let n = 7;
        let (dense, sparse) = examples(n, dim, classes, dim as u64);
        for examples in [&dense, &sparse] {
            let block = examples.block();
            let mut poison = Vec::new();
            let poisoned = match block.rows {
                Rows::Dense { values, dim } => {
                    poison.extend_from_slice(values);
                    poison[dim] = f64::NAN;
                    Rows::Dense { values: &poison, dim }
                }
                Rows::Sparse { offsets, indices, values, dim } => {
                    poison.extend_from_slice(values);
                    poison[offsets[1]..offsets[2]].fill(f64::NAN);
                    Rows::Sparse { offsets, indices, values: &poison, dim }
                }
            };
            let valid = [true, true, true, false, true, false, true];
            for valid in [None, Some(&valid[..])] {
                let block = Block { valid, ..block };
                let case = Case {
                    parameters: parameters(dim * classes as usize),
                    whole: block,
                    singles: (0..n).map(|i| block.slice(i..i + 1)).collect(),
                    parts: vec![(block.slice(0..n / 3), n / 3), (block.slice(n / 3..n), n - n / 3)],
                    poisoned: Some((Block { rows: poisoned, ..block }, 1)),
                };
                assert_eq!(model_laws(&model(dim, classes), &case), Ok(()), "{dim} features, {classes} classes");
            }
        }
    }
}

/// Residuals or rows whose squares underflow, beside a factor that makes gradients large.
#[test]
fn no_factor_of_a_norm_underflows() {
    let laws = |row: f64, weight: f64| {
        let one = Examples::dense(vec![row], vec![1.0], 1).unwrap();
        norm_laws(&model(1, 2), &[0.0, weight], &[one.block()])
    };
    assert_eq!(laws(1e100, 3.9e-98), Ok(()));
    assert_eq!(laws(1e-160, 0.0), Ok(()));
    let one = Examples::dense(vec![1e100], vec![1.0], 1).unwrap();
    let (model, weights) = (model(1, 2), [0.0, 3.9e-98]);
    let (mut pass, mut found) = (model.pass(1), [0.0]);
    model.forward(&weights, one.block(), &mut pass);
    model.backward(&weights, one.block(), &mut pass);
    model.squared_norms(one.block(), &mut pass, &mut found);
    // A residual of e^-390.
    assert!(found[0].sqrt() > 1e-70 && found[0].sqrt() < 1e-50, "{}", found[0]);
}

#[test]
fn rows_in_several_groups_give_the_formulas() {
    // 700 numbers a row: groups of 23 rows.
    let (n, dim, classes) = (60, 700, 3);
    let (dense, sparse) = examples(n, dim, classes as u32, 9);
    let w = parameters(dim * classes);
    let Rows::Dense { values, .. } = dense.block().rows else { unreachable!() };
    let mut expected = vec![0.0; w.len()];
    let mut expected_losses = Vec::new();
    for (x, &y) in values.chunks_exact(dim).zip(dense.targets()) {
        let (loss, gradient) = reference(&w, x, y as usize, classes);
        expected.iter_mut().zip(&gradient).for_each(|(sum, g)| *sum += g);
        expected_losses.push(loss);
    }
    for examples in [&dense, &sparse] {
        let (model, block) = (model(dim, classes as u32), examples.block());
        let (mut pass, mut sum, mut losses) = (model.pass(1), vec![0.0; w.len()], vec![0.0; n]);
        model.forward(&w, block, &mut pass);
        model.losses(block, &pass, &mut losses);
        model.backward(&w, block, &mut pass);
        model.add_weighted(block, &mut pass, &vec![1.0; n], &mut sum);
        assert!(sum.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12));
        assert!(losses.iter().zip(&expected_losses).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}

#[test]
fn targets_that_are_no_class_and_null_records_contribute_nothing() {
    let rows = vec![0.5; 14];
    let targets = vec![1.0, 3.0, -1.0, 0.5, f64::NAN, f64::INFINITY, 2.0];
    let data = Examples::dense(rows, targets, 2).unwrap();
    let valid = [true, true, true, true, true, true, false];
    let block = Block { valid: Some(&valid), ..data.block() };
    let model = model(2, 3);
    let mut pass = model.pass(7);
    let (mut losses, mut norms, mut v) = ([9.0; 7], [9.0; 7], [0.0; 6]);
    model.forward(&v, block, &mut pass);
    model.losses(block, &pass, &mut losses);
    model.backward(&v, block, &mut pass);
    model.squared_norms(block, &mut pass, &mut norms);
    assert!((losses[0] - 3f64.ln()).abs() < 1e-15 && (norms[0] - 0.5 * 2.0 / 3.0).abs() < 1e-15);
    assert!(losses[1..].iter().chain(&norms[1..]).all(|&number| number == 0.0));
    model.step_scaled(1.0, -1.0, block, &mut pass, &mut v);
    let third = 0.5 / 3.0;
    for (found, want) in v.iter().zip([-third, -third, 2.0 * third, 2.0 * third, -third, -third]) {
        assert!((found - want).abs() < 1e-15);
    }
}

/// Shapes other than the model's, and batches other than that of the last forward, are refused, even if they would give numbers.
#[test]
fn other_shapes_are_refused() {
    let refuses = |run: &mut dyn FnMut()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err();
    let data = Examples::dense(vec![0.5; 6], vec![1.0; 3], 2).unwrap();
    let (whole, model) = (data.block(), model(2, 3));
    let forward =
        |parameters: usize, batch| refuses(&mut || model.forward(&vec![0.0; parameters], batch, &mut model.pass(3)));
    assert!(!forward(6, whole));
    assert!(forward(4, whole) && forward(8, whole));
    assert!(forward(6, Block { rows: Rows::Dense { values: &[0.5; 9], dim: 3 }, ..whole }));
    assert!(forward(6, Block { targets: &[1.0], ..whole }) && forward(6, Block { valid: Some(&[true]), ..whole }));
    let mut pass = model.pass(3);
    model.forward(&[0.0, 0.0, 1.0, 1.0, 2.0, 0.0], whole, &mut pass);
    assert_eq!(pass.scores(), [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(format!("{pass:?}"), "SoftmaxPass { .. }", "scores are functions of records");
    model.backward(&[0.0; 6], whole, &mut pass);
    for fewer in [whole.slice(0..2), whole.slice(0..1)] {
        let mut out = vec![0.0; fewer.len()];
        assert!(refuses(&mut || model.losses(fewer, &pass, &mut out)));
        let mut again = pass.clone();
        assert!(refuses(&mut || model.squared_norms(fewer, &mut again, &mut out)));
        assert!(refuses(&mut || model.backward(&[0.0; 6], fewer, &mut again)));
    }
}

/// Every operation on a batch of no rows, or of rows without features.
struct OfNothing<'a, F>(Block<'a, F>);

impl<F: Real> ModelVisitor<F> for OfNothing<'_, F> {
    type Output = ();
    fn visit<M>(self, model: M)
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        let (block, length) = (self.0, model.parameters());
        let (mut pass, mut losses) = (model.pass(2), vec![F::one(); block.len()]);
        let (ones, start) = (losses.clone(), vec![F::one(); length]);
        let (mut sum, mut wide, mut squared_norm) = (start.clone(), vec![1.0; length], F::one());
        let mut parts = CompensatedSum::from(start.clone());
        let mut exact = CompensatedSum::zeros(length);
        let mut curvature = vec![F::zero(); length * model.features()];
        model.forward(&start, block, &mut pass);
        model.losses(block, &pass, &mut losses);
        model.backward(&start, block, &mut pass);
        model.squared_norms(block, &mut pass, &mut losses);
        model.add_weighted(block, &mut pass, &ones, &mut sum);
        model.add_weighted_in_double(block, &mut pass, &ones, &mut wide);
        model.add_weighted_in_two_parts(block, &mut pass, &ones, &mut parts);
        model.step_scaled_tracking_norm(F::one(), F::one(), block, &mut pass, &mut sum, &mut squared_norm);
        model.add_compensated((&start, &[]), block, &mut pass, &mut exact);
        model.add_curvature(&start, block, &mut pass, &mut curvature);
        assert!(losses.iter().all(|&norm| norm == F::zero()));
        assert!(sum == start && parts.high() == start && wide == vec![1.0; length]);
        assert!(curvature.iter().all(|&sum| sum == F::zero()) && (0..length).all(|j| exact.value(j) == 0.0));
    }
}

#[test]
fn nothing_comes_of_no_rows_and_of_no_features() {
    fn check<F: Real>() {
        for loss in ["logistic", "squared", "softmax:3"] {
            let kind: LossKind = loss.parse().unwrap();
            let one = [F::one(); 2];
            for (dim, n) in [(3, 0), (0, 0), (0, 2)] {
                let offsets = &[0; 3][..=n];
                let sparse = Rows::Sparse { offsets, indices: &[], values: &[], dim };
                kind.visit_model(dim, OfNothing(Block { rows: sparse, targets: &one[..n], valid: None }));
                if n == 0 {
                    let dense = Rows::Dense { values: &[] as &[F], dim };
                    kind.visit_model(dim, OfNothing(Block { rows: dense, targets: &[], valid: None }));
                }
            }
        }
    }
    check::<f64>();
    check::<f32>();
}

#[test]
fn extreme_scores_give_numbers() {
    let data = Examples::dense(vec![1.0; 3], vec![0.0, 1.0, 2.0], 1).unwrap();
    for w in [
        [1e308, -1e308, 0.0],
        [f64::MAX, f64::MAX, f64::MAX],
        [-f64::MAX, 1e-300, -1e300],
        [800.0, 0.0, -800.0],
        [f64::INFINITY, 0.0, f64::NEG_INFINITY],
    ] {
        let model = model(1, 3);
        let (mut pass, mut sum, mut losses) = (model.pass(3), [0.0; 3], [0.0; 3]);
        model.forward(&w, data.block(), &mut pass);
        model.backward(&w, data.block(), &mut pass);
        model.add_weighted(data.block(), &mut pass, &[1.0; 3], &mut sum);
        assert!(sum.iter().all(|g| g.abs() <= 3.0), "{w:?}: {sum:?}");
        if w.iter().all(|w| w.is_finite()) {
            model.losses(data.block(), &pass, &mut losses);
            assert!(losses.iter().all(|&loss| loss >= 0.0), "{w:?}: {losses:?}");
        }
    }
}

#[test]
fn numbers_of_classes_outside_the_range_are_refused() {
    for classes in [0, 1, (1 << 16) + 1, u32::MAX] {
        assert!(Softmax::new(classes).is_err(), "{classes}");
    }
}

#[test]
fn two_classes_are_the_logistic_loss_of_the_difference() {
    let (data, _) = examples(9, 5, 2, 3);
    let w = parameters(10);
    let difference: Vec<f64> = (0..5).map(|j| w[5 + j] - w[j]).collect();
    let (softmax, logistic) = (model(5, 2), LinearModel::new(5, Logistic));
    let signs: Vec<f64> = data.targets().iter().map(|y| 2.0 * y - 1.0).collect();
    let signed = data.clone().with_targets(signs).unwrap();
    let (mut pass, mut losses, mut sum) = (softmax.pass(9), [0.0; 9], [0.0; 10]);
    softmax.forward(&w, data.block(), &mut pass);
    softmax.losses(data.block(), &pass, &mut losses);
    softmax.backward(&w, data.block(), &mut pass);
    softmax.add_weighted(data.block(), &mut pass, &[1.0; 9], &mut sum);
    let (mut pass, mut want_losses, mut want) = (logistic.pass(9), [0.0; 9], [0.0; 5]);
    logistic.forward(&difference, signed.block(), &mut pass);
    logistic.losses(signed.block(), &pass, &mut want_losses);
    logistic.backward(&difference, signed.block(), &mut pass);
    logistic.add_weighted(signed.block(), &mut pass, &[1.0; 9], &mut want);
    assert!(losses.iter().zip(&want_losses).all(|(a, b)| (a - b).abs() < 1e-13));
    for j in 0..5 {
        assert!((sum[5 + j] - want[j]).abs() < 1e-13 && (sum[j] + want[j]).abs() < 1e-13);
    }
    // The constants are too: √2 times as steep, at weights √2 times as long; twice, for the curvature.
    for radius in [0.1, 1.0, 7.0] {
        let domain = Domain::unit_rows().with_radius(radius).unwrap();
        let longer = Domain::unit_rows().with_radius(radius * SQRT_2).unwrap();
        let (two, one) = (Softmax::new(2).unwrap().data_constants(&domain), Logistic.data_constants(&longer));
        assert!((two.lipschitz / one.lipschitz / SQRT_2 - 1.0).abs() < 1e-12);
        assert!((two.gradient_difference / one.gradient_difference / SQRT_2 - 1.0).abs() < 1e-12);
        assert!((two.smoothness - 2.0 * one.smoothness).abs() < 1e-15);
    }
}

/// Returns one random example's computed gradient at `w`.
fn gradient(model: &SoftmaxModel<f64>, w: &[f64], x: &[f64], class: f64) -> Vec<f64> {
    let data = Examples::dense(x.to_vec(), vec![class], x.len()).unwrap();
    let (mut pass, mut sum) = (model.pass(1), vec![0.0; w.len()]);
    model.forward(w, data.block(), &mut pass);
    model.backward(w, data.block(), &mut pass);
    model.add_weighted(data.block(), &mut pass, &[1.0], &mut sum);
    sum
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// For two classes with opposite weights along a row, the gradient attains the norm that the radius allows.
#[test]
fn two_classes_attain_their_bound() {
    for radius in [0.1, 1.0, 3.0] {
        for row_norm in [0.5, 1.0, 2.0] {
            let domain = Domain::unit_rows().with_row_norm(row_norm).unwrap().with_radius(radius).unwrap();
            let constants = Constants::new(&Softmax::new(2).unwrap(), L2::NONE, &domain);
            let side = radius * core::f64::consts::FRAC_1_SQRT_2;
            let found = [[side, -side], [-side, side]].map(|w| norm(&gradient(&model(1, 2), &w, &[row_norm], 0.0)));
            let (shorter, longer) = (found[0].min(found[1]), found[0].max(found[1]));
            assert!(shorter < longer && longer <= constants.data_lipschitz * (1.0 + 1e-15));
            assert!(longer >= constants.data_lipschitz * (1.0 - 1e-12), "{longer} {constants:?}");
        }
    }
}

/// Scores whose distances from the largest have a relative error, in either direction, change the residuals by no more than the
/// condition number.
#[test]
fn a_condition_bounds_what_relative_errors_of_the_distances_do() {
    let (mut random, relative) = (Uniform::new(23), 1e-6);
    for classes in [2u32, 3, 30, 1000] {
        let condition = LossKind::Softmax(Softmax::new(classes).unwrap()).condition(&Domain::unit_rows());
        let probabilities = |gaps: &[f64]| -> Vec<f64> {
            let all: f64 = gaps.iter().map(|gap| (-gap).exp()).sum();
            gaps.iter().map(|gap| (-gap).exp() / all).collect()
        };
        let mut largest = 0.0f64;
        for _ in 0..300 {
            let (most, some) = (10.0 * random.next(), random.next());
            let gaps: Vec<f64> =
                (0..classes).map(|c| if c == 0 { 0.0 } else { most * (1.0 - some * random.next()) }).collect();
            let alike = random.next() < 0.5;
            let moved: Vec<f64> = gaps
                .iter()
                .map(|gap| gap * (1.0 + relative * if alike || random.next() < 0.5 { 1.0 } else { -1.0 }))
                .collect();
            largest = largest.max(distance(&probabilities(&gaps), &probabilities(&moved)) / relative);
        }
        assert!(largest <= condition && largest > 0.1 * condition, "{classes}: {largest} {condition}");
    }
}

#[test]
fn no_search_finds_more_than_the_constants() {
    let mut random = Uniform::new(17);
    for (classes, radius) in
        [(2, 0.5), (2, 3.0), (3, 0.0), (3, 0.5), (3, 4.0), (3, 100.0), (5, 2.0), (10, 0.0), (10, 2.0), (10, 1e4)]
    {
        let dim = 3;
        let domain = Domain::unit_rows().with_radius(radius).unwrap();
        let constants = Constants::new(&Softmax::new(classes).unwrap(), L2::NONE, &domain);
        let model = model(dim, classes);
        let (mut steepest, mut difference, mut bend) = (0.0_f64, 0.0_f64, 0.0_f64);
        for _ in 0..4000 {
            // Weights of two classes only, near-opposite rows and equal targets are the extremes; all others are tried too.
            let mut w = random.direction(dim * classes as usize, radius);
            if random.next() < 0.7 {
                let (for_class, spread) = (random.direction(dim, 1.0), random.next());
                w = vec![0.0; w.len()];
                for j in 0..dim {
                    w[j] = -for_class[j] * (1.0 - spread * 0.3);
                    w[dim + j] = for_class[j];
                }
                let size = norm(&w);
                w.iter_mut().for_each(|v| *v *= radius / size);
            }
            let x = random.direction(dim, 1.0);
            let y = random.direction(dim, 1.0);
            let mut opposite: Vec<f64> = x.iter().map(|x| -x).collect();
            if radius > 0.0 && random.next() < 0.7 {
                // The mirror image about the direction in which the classes 0 and 1 differ.
                let along: Vec<f64> = (0..dim).map(|j| w[dim + j] - w[j]).collect();
                let size = norm(&along).max(1e-300);
                let share = x.iter().zip(&along).map(|(x, a)| x * a).sum::<f64>() / size;
                opposite = x.iter().zip(&along).map(|(x, a)| 2.0 * share * a / size - x).collect();
            }
            let class = || 0.0;
            let g = gradient(&model, &w, &x, class());
            steepest = steepest.max(norm(&g));
            difference = difference.max(distance(&g, &gradient(&model, &w, &opposite, class())));
            let other = (random.next() * f64::from(classes)).floor();
            difference = difference.max(distance(&g, &gradient(&model, &w, &y, other)));
            let step = random.direction(w.len(), 1e-4);
            let moved: Vec<f64> = w.iter().zip(&step).map(|(w, s)| w + s).collect();
            bend = bend.max(distance(&g, &gradient(&model, &moved, &x, class())) / 1e-4);
        }
        let at = format!("{classes} classes, radius {radius}: {constants:?}");
        assert!(steepest <= constants.data_lipschitz * (1.0 + 1e-14), "{at}: gradient {steepest}");
        assert!(difference <= constants.gradient_difference * (1.0 + 1e-14), "{at}: difference {difference}");
        assert!(bend <= constants.smoothness * (1.0 + 1e-6), "{at}: curvature {bend}");
        // The search finds nontrivial values.
        assert!(steepest > 0.7 * constants.data_lipschitz && difference > 0.6 * constants.gradient_difference, "{at}");
        if radius >= 100.0 {
            assert!(difference > 0.95 * constants.gradient_difference, "{at}: difference {difference}");
        }
    }
}

proptest! {
    #[test]
    fn residuals_keep_to_their_bounds_rounding_included(
        classes in 2_u32..300, scale in -2.0..4.0_f64, seed: u64,
    ) {
        let (model, constants) = (model(1, classes), Softmax::new(classes).unwrap().data_constants(&Domain::unit_rows()));
        let w = Uniform::new(seed).vector(classes as usize, 10f64.powf(scale));
        let class = (seed % u64::from(classes)) as usize;
        let g = gradient(&model, &w, &[1.0], class as f64);
        prop_assert!(norm(&g) <= constants.lipschitz);
        for (c, g) in g.iter().enumerate() {
            let range = if c == class { -1.0..=0.0 } else { 0.0..=1.0 };
            prop_assert!(range.contains(g));
        }
        let total: f64 = g.iter().sum();
        prop_assert!(total.abs() <= 1e-15 * f64::from(classes + 8));
    }

    #[test]
    fn f32_agrees_with_f64(classes in 2_u32..20, seed: u64) {
        let (data, _) = examples(5, 4, classes, seed);
        // Rows and weights that single precision represents.
        let single = data.to_f32();
        let Rows::Dense { values, .. } = single.block().rows else { unreachable!() };
        let wide: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
        let data = Examples::dense(wide, data.targets().to_vec(), 4).unwrap();
        let w: Vec<f32> = parameters(4 * classes as usize).iter().map(|&w| w as f32).collect();
        let wide: Vec<f64> = w.iter().map(|&w| f64::from(w)).collect();
        let (one, two) = (SoftmaxModel::<f32>::new(4, Softmax::new(classes).unwrap()), model(4, classes));
        let (mut pass, mut sum, mut losses) = (one.pass(5), vec![0.0_f32; w.len()], [0.0_f32; 5]);
        one.forward(&w, single.block(), &mut pass);
        one.losses(single.block(), &pass, &mut losses);
        one.backward(&w, single.block(), &mut pass);
        one.add_weighted(single.block(), &mut pass, &[1.0; 5], &mut sum);
        let (mut pass, mut want, mut want_losses) = (two.pass(5), vec![0.0; w.len()], [0.0; 5]);
        two.forward(&wide, data.block(), &mut pass);
        two.losses(data.block(), &pass, &mut want_losses);
        two.backward(&wide, data.block(), &mut pass);
        two.add_weighted(data.block(), &mut pass, &[1.0; 5], &mut want);
        for (a, b) in sum.iter().zip(&want).chain(losses.iter().zip(&want_losses)) {
            prop_assert!((f64::from(*a) - b).abs() <= 2e-6 * (1.0 + b.abs()));
        }
    }

    #[test]
    fn scaled_steps_are_the_plain_steps(
        dim in 1_usize..40, classes in 2_u32..6, n in 1_usize..30, batch in 1_usize..8, seed: u64, sparse: bool,
    ) {
        let pair = examples(n, dim, classes, seed);
        let block = if sparse { pair.1.block() } else { pair.0.block() };
        let model = model(dim, classes);
        let (eta, lambda) = (0.5, 0.1);
        let mut w = parameters(dim * classes as usize);
        let (mut scale, mut v, mut pass) = (2.0, w.iter().map(|w| w / 2.0).collect::<Vec<_>>(), model.pass(batch));
        let mut squared_norm = v.iter().map(|v| v * v).sum::<f64>();
        for start in (0..n).step_by(batch) {
            let part = block.slice(start..n.min(start + batch));
            let mut sum = vec![0.0; w.len()];
            model.forward(&w, part, &mut pass);
            model.backward(&w, part, &mut pass);
            model.add_weighted(part, &mut pass, &vec![1.0; part.len()], &mut sum);
            for (w, g) in w.iter_mut().zip(&sum) {
                *w -= eta * (lambda * *w + g / part.len() as f64);
            }
            let next = scale * (1.0 - eta * lambda);
            let coefficient = -eta / (next * part.len() as f64);
            model.step_scaled_tracking_norm(scale, coefficient, part, &mut pass, &mut v, &mut squared_norm);
            scale = next;
        }
        for (w, v) in w.iter().zip(&v) {
            prop_assert!((w - scale * v).abs() <= 1e-12 * (1.0 + w.abs()));
        }
        let fresh = v.iter().map(|v| v * v).sum::<f64>();
        prop_assert!((squared_norm - fresh).abs() <= 1e-12 * (1.0 + fresh));

        let coefficients: Vec<f64> = (0..n).map(|i| (i % 3) as f64 - 1.0).collect();
        let mut expected = v.clone();
        model.forward(&w, block, &mut pass);
        model.backward(&w, block, &mut pass);
        model.add_weighted(block, &mut pass, &coefficients, &mut expected);
        model.add_weighted_tracking_norm(block, &mut pass, &coefficients, &mut v, &mut squared_norm);
        prop_assert_eq!(&v, &expected);
        let fresh = v.iter().map(|v| v * v).sum::<f64>();
        prop_assert!((squared_norm - fresh).abs() <= 1e-12 * (1.0 + fresh));
    }
}

#[test]
fn norms_fall_short_by_no_more_than_is_declared() {
    for (dim, classes) in [(1, 2), (130, 3), (20_000, 10)] {
        let rows: Vec<Vec<f32>> = (0..4)
            .map(|k| (0..dim).map(|j| if j == 0 { 0.9 + k as f32 } else { 2f32.powi(-13 + k) * 0.99 }).collect())
            .collect();
        let data = Examples::dense(rows.concat(), vec![1.0f32, 0.0, 1.0, 1.0], dim).unwrap();
        let block = data.block();
        let singles: Vec<_> = (0..rows.len()).map(|i| block.slice(i..i + 1)).collect();
        let model = SoftmaxModel::<f32>::new(dim, Softmax::new(classes).unwrap());
        assert_eq!(model.norm_roundings(), f64::from(classes) + 2.0 + dim as f64 * 2f64.powi(-29));
        assert_eq!(SoftmaxModel::<f64>::new(dim, model.loss()).norm_roundings(), model.parameters() as f64);
        let parameters: Vec<f32> = (0..model.parameters()).map(|j| (j % 7) as f32 * 0.1).collect();
        assert_eq!(norm_laws(&model, &parameters, &singles), Ok(()));
    }
}
