use dp_data::{Examples, Rows};
use proptest::prelude::*;

use super::*;
use crate::laws::{Case, model_laws, norm_laws};
use crate::{HuberRegression, HuberSvm, LogCosh, Logistic, LossKind, ScalarLoss, Squared};

/// Returns dense and sparse versions of the same `n` examples of `dim` features, about half of them zero.
fn examples(n: usize, dim: usize, seed: u64) -> (Examples<f64>, Examples<f64>) {
    let mut state = seed.wrapping_mul(2).wrapping_add(88_172_645_463_325_252);
    let mut uniform = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let scale = 2.0 / (dim as f64).sqrt();
    let dense: Vec<f64> = (0..n * dim).map(|_| if uniform() < 0.5 { 0.0 } else { (uniform() - 0.5) * scale }).collect();
    let targets: Vec<f64> = (0..n).map(|_| if uniform() < 0.5 { -1.0 } else { 1.0 }).collect();
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

fn parameters(dim: usize) -> Vec<f64> {
    (0..dim).map(|j| ((j * 37 % 19) as f64 - 9.0) / 6.0).collect()
}

fn check_laws(loss: ScalarLoss, block: Block<'_, f64>, poisoned: Block<'_, f64>) {
    let (n, dim) = (block.len(), block.dim());
    let case = Case {
        parameters: parameters(dim),
        whole: block,
        singles: (0..n).map(|i| block.slice(i..i + 1)).collect(),
        parts: vec![(block.slice(0..n / 3), n / 3), (block.slice(n / 3..n), n - n / 3)],
        poisoned: Some((poisoned, 1)),
    };
    assert_eq!(model_laws(&LinearModel::new(dim, loss), &case), Ok(()));
}

#[test]
fn the_laws_hold_for_every_loss_dense_and_sparse_with_and_without_invalid_rows() {
    for dim in [1, 3, 8, 17, 50, 133] {
        let n = 7;
        let (dense, sparse) = examples(n, dim, dim as u64);
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
                for loss in [
                    LossKind::Logistic,
                    LossKind::Squared,
                    LossKind::HuberSvm(HuberSvm::new(3.0).unwrap()),
                    LossKind::Hinge,
                    LossKind::Absolute,
                    LossKind::HuberRegression(HuberRegression::new(3.0).unwrap()),
                    LossKind::LogCosh(LogCosh::new(3.0).unwrap()),
                ] {
                    check_laws(loss.scalar().unwrap(), block, Block { rows: poisoned, ..block });
                }
            }
        }
    }
}

/// Shapes other than the model's are refused, even if they would give numbers.
#[test]
fn other_shapes_are_refused() {
    let data = Examples::dense(vec![0.5; 6], vec![1.0; 2], 3).unwrap();
    let whole = data.block();
    let model = LinearModel::new(3, Squared);
    let refuses = |parameters: usize, batch: Block<'_, f64>| {
        let forward = || model.forward(&vec![0.0; parameters], batch, &mut model.pass(2));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(forward)).is_err()
    };
    assert!(!refuses(3, whole));
    assert!(refuses(2, whole) && refuses(4, whole));
    assert!(refuses(3, Block { rows: Rows::Dense { values: &[0.5; 8], dim: 4 }, ..whole }));
    assert!(refuses(3, Block { targets: &[1.0], ..whole }) && refuses(3, Block { targets: &[1.0; 3], ..whole }));
    assert!(refuses(3, Block { valid: Some(&[true]), ..whole }));
    let mut pass = model.pass(2);
    model.forward(&[0.5, 0.0, 1.0], whole, &mut pass);
    assert_eq!(pass.predictions(), [0.75; 2]);
    assert_eq!(format!("{pass:?}"), "LinearPass { .. }", "predictions are functions of records");
}

#[test]
fn an_invalid_row_contributes_nothing_even_if_it_holds_nan() {
    let data = Examples::dense(vec![1.0, 2.0, f64::NAN, f64::INFINITY], vec![1.0, 1.0], 2).unwrap();
    let block = Block { valid: Some(&[true, false]), ..data.block() };
    let model = LinearModel::new(2, Squared);
    let mut pass = model.pass(2);
    let (mut losses, mut norms, mut v) = ([9.0; 2], [9.0; 2], [0.0, 0.0]);
    model.forward(&v, block, &mut pass);
    model.losses(block, &pass, &mut losses);
    model.backward(&v, block, &mut pass);
    model.squared_norms(block, &mut pass, &mut norms);
    assert_eq!((losses, norms), ([0.5, 0.0], [5.0, 0.0]));
    model.step_scaled(1.0, -1.0, block, &mut pass, &mut v);
    assert_eq!(v, [1.0, 2.0]);
}

/// Computes `w - η (λ w + 1/b Σ ∇ℓ)` directly.
fn plain_step<L: Loss<f64>>(model: &LinearModel<f64, L>, block: Block<'_, f64>, eta: f64, lambda: f64, w: &mut [f64]) {
    let mut pass = model.pass(block.len());
    let mut gradient = vec![0.0; w.len()];
    model.forward(w, block, &mut pass);
    model.backward(w, block, &mut pass);
    model.add_weighted(block, &mut pass, &vec![1.0; block.len()], &mut gradient);
    for (w, g) in w.iter_mut().zip(&gradient) {
        *w -= eta * (lambda * *w + g / block.len() as f64);
    }
}

proptest! {
    #[test]
    fn scaled_steps_are_the_plain_steps(dim in 1_usize..70, n in 1_usize..30, batch in 1_usize..8, seed: u64, sparse: bool) {
        let pair = examples(n, dim, seed);
        let block = if sparse { pair.1.block() } else { pair.0.block() };
        let model = LinearModel::new(dim, Logistic);
        let (eta, lambda) = (0.5, 0.1);
        let mut w = parameters(dim);
        let (mut scale, mut v, mut pass) = (2.0, w.iter().map(|w| w / 2.0).collect::<Vec<_>>(), model.pass(batch));
        let mut squared_norm = v.iter().map(|v| v * v).sum::<f64>();
        for start in (0..n).step_by(batch) {
            let part = block.slice(start..n.min(start + batch));
            plain_step(&model, part, eta, lambda, &mut w);
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

    #[test]
    fn dense_and_sparse_agree(dim in 1_usize..70, n in 1_usize..12, seed: u64) {
        let (dense, sparse) = examples(n, dim, seed);
        let model = LinearModel::new(dim, Squared);
        let mut results = [dense, sparse].map(|examples| {
            let (w, mut pass, mut v) = (parameters(dim), model.pass(n), vec![0.0; dim]);
            model.forward(&w, examples.block(), &mut pass);
            model.backward(&w, examples.block(), &mut pass);
            model.add_weighted(examples.block(), &mut pass, &vec![1.0; n], &mut v);
            v.extend_from_slice(pass.predictions());
            v
        }).into_iter();
        let (a, b) = (results.next().unwrap(), results.next().unwrap());
        for (a, b) in a.iter().zip(&b) {
            prop_assert!((a - b).abs() <= 1e-12 * (1.0 + a.abs()));
        }
    }
}

/// Rows whose squares single precision would lose, by absorption or by underflow.
pub(crate) fn rows_that_round(dim: usize) -> Vec<Vec<f32>> {
    let with_first =
        |first: f32, others: f32| -> Vec<f32> { (0..dim).map(|j| if j == 0 { first } else { others }).collect() };
    vec![
        with_first(0.9, 2f32.powi(-13) * 1.4),
        with_first(0.9, 2f32.powi(-12) * 0.99),
        with_first(1e-23, 1e-23),
        with_first(1e-25, -3e-24),
        (0..dim).map(|j| 0.3 / (1.0 + j as f32)).collect(),
        vec![1.0 / (dim as f32).sqrt(); dim],
    ]
}

#[test]
fn norms_fall_short_by_no_more_than_is_declared() {
    for dim in [1, 2, 17, 130, 5000, 100_000] {
        let rows = rows_that_round(dim);
        for target in [1.0f32, 1e20, -0.37] {
            let data = Examples::dense(rows.concat(), vec![target; rows.len()], dim).unwrap();
            let block = data.block();
            let singles: Vec<_> = (0..rows.len()).map(|i| block.slice(i..i + 1)).collect();
            let model = LinearModel::<f32, _>::new(dim, Squared);
            assert_eq!(model.norm_roundings(), 2.0 + dim as f64 * 2f64.powi(-29));
            assert_eq!(norm_laws(&model, &vec![0.25; dim], &singles), Ok(()));
            let offsets = (0..=rows.len()).map(|i| i * dim).collect();
            let indices = (0..rows.len()).flat_map(|_| 0..dim as u32).collect();
            let sparse = Examples::sparse(offsets, indices, rows.concat(), data.block().targets.to_vec(), dim).unwrap();
            let singles: Vec<_> = (0..rows.len()).map(|i| sparse.block().slice(i..i + 1)).collect();
            assert_eq!(norm_laws(&model, &vec![0.25; dim], &singles), Ok(()));
            // In single precision the first row would lose the documented amount.
            let lost = rows[0].iter().fold(0f32, |sum, x| sum + x * x);
            let exact: f64 = rows[0].iter().map(|&x| f64::from(x).powi(2)).sum();
            assert!(dim < 5000 || f64::from(lost) < exact * (1.0 - 3.0 * 2f64.powi(-24)));
        }
    }
}

/// Rows whose squares underflow, with a derivative that makes their gradients large.
#[test]
fn no_factor_of_a_norm_underflows() {
    for (entry, target) in [(1e-163, 1e100), (1e-155, -1e100), (3e-160, 1e20)] {
        let data = Examples::dense(vec![entry, -entry, 0.0, entry], vec![target], 4).unwrap();
        let model = LinearModel::<f64, _>::new(4, Squared);
        assert_eq!(norm_laws(&model, &[0.0; 4], &[data.block()]), Ok(()));
        let (mut pass, mut found) = (model.pass(1), [0.0]);
        model.forward(&[0.0; 4], data.block(), &mut pass);
        model.backward(&[0.0; 4], data.block(), &mut pass);
        model.squared_norms(data.block(), &mut pass, &mut found);
        assert!(found[0].sqrt() >= 3f64.sqrt() * (entry * target).abs() * (1.0 - 1e-15), "{entry}: {}", found[0]);
    }
}

/// Squares that double precision loses in each of several partial sums, one after another.
#[test]
fn norms_in_double_precision_fall_short_by_what_is_declared() {
    for dim in [64, 640, 6400] {
        // As many large entries as there can be partial sums, and squares just below half a unit of theirs.
        let row: Vec<f64> = (0..dim).map(|j| if j < 32 { 1.0 } else { 0.95 * 2f64.powf(-26.5) }).collect();
        let data = Examples::dense(row.clone(), vec![1.0], dim).unwrap();
        let model = LinearModel::<f64, _>::new(dim, Squared);
        assert_eq!(norm_laws(&model, &vec![0.0; dim], &[data.block()]), Ok(()));
        let (mut pass, mut found) = (model.pass(1), [0.0]);
        model.forward(&vec![0.0; dim], data.block(), &mut pass);
        model.backward(&vec![0.0; dim], data.block(), &mut pass);
        model.squared_norms(data.block(), &mut pass, &mut found);
        let lost = (dim - 32) as f64 * row[dim - 1].powi(2) / 32.0;
        assert!(dim < 6400 || (found[0] <= 32.0 && lost > 100.0 * 0.5 * f64::EPSILON), "{} {lost}", found[0]);
    }
}
