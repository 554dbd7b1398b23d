//! The laws of [`Model`], as checks for the tests of any implementation.
//!
//! Available with the feature `laws` (and in this crate's own tests). A model is checked on one batch that the caller also
//! provides example by example and in parts, because only the caller knows how to split its batches.
//!
//! # Examples
//! ```
//! use dp_data::Examples;
//! use dp_losses::laws::{Case, model_laws};
//! use dp_losses::{LinearModel, Logistic};
//!
//! let data = Examples::dense(vec![0.6, 0.8, 1.0, 0.0, 0.0, -0.5], vec![1.0, -1.0, 1.0], 2)?;
//! let poisoned = Examples::dense(vec![0.6, 0.8, f64::NAN, 0.0, 0.0, -0.5], vec![1.0, -1.0, 1.0], 2)?;
//! let block = data.block();
//! let case = Case {
//!     parameters: vec![0.3, -0.2],
//!     whole: block,
//!     singles: (0..3).map(|i| block.slice(i..i + 1)).collect(),
//!     parts: vec![(block.slice(0..2), 2), (block.slice(2..3), 1)],
//!     poisoned: Some((poisoned.block(), 1)),
//! };
//! assert_eq!(model_laws(&LinearModel::new(2, Logistic), &case), Ok(()));
//! # Ok::<(), dp_data::examples::ShapeError>(())
//! ```

use crate::linear::smallest_normal;
use crate::model::Model;
use crate::real::Real;

/// One batch, split in several ways, and the parameters at which the laws are checked.
#[derive(Debug, Clone)]
pub struct Case<B> {
    /// The parameters.
    pub parameters: Vec<f64>,
    /// The whole batch.
    pub whole: B,
    /// Its examples, each as a batch of one, in order.
    pub singles: Vec<B>,
    /// A split of it, in order, each part with its number of examples.
    pub parts: Vec<(B, usize)>,
    /// The whole batch with NaN in the features of one example, and its index.
    pub poisoned: Option<(B, usize)>,
}

/// A violated law.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("law {law}: {what}: found {found}, expected {expected}")]
pub struct Violation {
    /// The law's number in the documentation of [`Model`]; 0 for the shape of the parameter blocks.
    pub law: u8,
    /// The quantity.
    pub what: String,
    /// The model's result.
    pub found: f64,
    /// The result required by the law.
    pub expected: f64,
}

/// Checks the laws of [`Model`], and that the blocks cover the parameters in order.
///
/// Sums and norms are compared with relative tolerance 1e-9, the central differences with 1e-5, both relative to the largest
/// entry.
///
/// # Errors
/// The first violated law. A NaN violates every law.
///
/// # Panics
/// If the case has no example or its parts do not add up to the batch.
pub fn model_laws<'a, M: Model<f64>>(model: &M, case: &Case<M::Batch<'a>>) -> Result<(), Violation> {
    let n = case.singles.len();
    let blocks = model.blocks().len();
    assert!(n > 0, "a case needs at least one example");
    assert_eq!(case.parts.iter().map(|part| part.1).sum::<usize>(), n, "the parts make up the batch");

    let mut end = 0;
    for block in model.blocks() {
        compare(0, || format!("start of block {}", block.name), block.range.start as f64, end as f64, 0.0)?;
        end = block.range.end;
    }
    compare(0, || "number of parameters".to_owned(), case.parameters.len() as f64, end as f64, 0.0)?;

    let evaluate = |batch, count| Evaluation::new(model, &case.parameters, batch, count, &mut model.pass(count));
    let whole = evaluate(case.whole, n);
    let singles: Vec<_> = case.singles.iter().map(|&batch| evaluate(batch, 1)).collect();

    for (i, single) in singles.iter().enumerate() {
        compare(1, || format!("loss of example {i}"), whole.losses[i], single.losses[0], 1e-9)?;
    }
    let sum_of = |evaluations: &[Evaluation]| -> Vec<f64> {
        (0..end).map(|j| evaluations.iter().map(|evaluation| evaluation.gradient[j]).sum()).collect()
    };
    compare_all(2, "gradient", &whole.gradient, &sum_of(&singles), 1e-9)?;
    for (i, single) in singles.iter().enumerate() {
        for (k, block) in model.blocks().iter().enumerate() {
            let norm = single.gradient[block.range.clone()].iter().map(|g| g * g).sum();
            let what = || format!("squared norm of example {i}, block {}", block.name);
            // A norm that is a product may be too large by what one factor's squares may lose.
            let floor = |squared: f64| if squared < 1e-300 { 0.0 } else { squared };
            compare(3, what, floor(whole.squared_norms[i * blocks + k]), norm, 1e-9)?;
            compare(3, what, floor(single.squared_norms[k]), norm, 1e-9)?;
        }
    }
    central_differences(model, case, &whole.gradient)?;
    linear_in_coefficients(model, case, &singles)?;
    norm_laws(model, &case.parameters, &case.singles)?;

    // A pass that has been used with other examples, other parameters and a larger batch.
    let mut used = model.pass(n);
    let shifted: Vec<f64> = case.parameters.iter().map(|w| 3.0 - w).collect();
    Evaluation::new(model, &shifted, case.whole, n, &mut used);
    let again = Evaluation::new(model, &case.parameters, case.singles[0], 1, &mut used);
    compare(6, || "loss after other work".to_owned(), again.losses[0], singles[0].losses[0], 0.0)?;
    for (&found, &expected) in again.gradient.iter().zip(&singles[0].gradient) {
        compare(6, || "gradient after other work".to_owned(), found, expected, 0.0)?;
    }

    companion_laws(model, &case.parameters, case.whole, &case.singles)?;

    let parts: Vec<_> = case.parts.iter().map(|&(batch, count)| evaluate(batch, count)).collect();
    compare_all(7, "gradient by parts", &sum_of(&parts), &whole.gradient, 1e-9)
}

/// Checks laws 8 and 9 of [`Model`] on examples given one by one, in either float type.
///
/// The gradient of each is summed in double precision: `squared_norms` may fall short, for each block, of its exact squared norm
/// by the declared [`norm_roundings`](Model::norm_roundings) plus two, and where the whole underflows. With coefficients that
/// halve exactly the sum halves, and a coefficient 0 adds nothing.
///
/// # Errors
/// The first law that is violated.
pub fn norm_laws<F: Real, M: Model<F>>(model: &M, parameters: &[F], singles: &[M::Batch<'_>]) -> Result<(), Violation> {
    let blocks = model.blocks().len();
    let roundoff = 0.5 * wide(F::default_epsilon());
    let (roundings, mut pass) = (model.norm_roundings(), model.pass(1));
    for (i, &batch) in singles.iter().enumerate() {
        model.forward(parameters, batch, &mut pass);
        model.backward(parameters, batch, &mut pass);
        let mut norms = vec![F::zero(); blocks];
        model.squared_norms(batch, &mut pass, &mut norms);
        let mut sum_of = |coefficient: F| {
            let mut sum = vec![0.0; model.parameters()];
            model.add_weighted_in_double(batch, &mut pass, &vec![coefficient; blocks], &mut sum);
            sum
        };
        let (sum, half, nothing) = (sum_of(F::one()), sum_of(nalgebra::convert(0.5)), sum_of(F::zero()));
        let mut own = vec![F::zero(); model.parameters()];
        model.add_weighted(batch, &mut pass, &vec![F::one(); blocks], &mut own);
        let least = f64::MIN_POSITIVE;
        for (j, &entry) in sum.iter().enumerate() {
            let what = || format!("sum in double precision, example {i}, parameter {j}");
            let near = (wide(own[j]) - entry).abs() <= 4.0 * roundoff * entry.abs() + 1e-30;
            if !near && !entry.is_nan() {
                return Err(Violation { law: 9, what: what(), found: entry, expected: wide(own[j]) });
            }
            if (2.0 * half[j] - entry).abs() > least || nothing[j] != 0.0 {
                return Err(Violation { law: 9, what: what(), found: 2.0 * half[j] + nothing[j], expected: entry });
            }
        }
        for (block, &found) in model.blocks().iter().zip(&norms) {
            let (exact, found) = (squared_norm_up(&sum[block.range.clone()]), wide(found));
            // NaN is never too small, nor is a norm that underflows.
            let underflows = 10.0 * wide(smallest_normal::<F>());
            if found < exact * (1.0 - (roundings + 2.0) * roundoff) - underflows {
                let what = format!("squared norm of example {i}, block {}, {roundings} roundings declared", block.name);
                return Err(Violation { law: 8, what, found, expected: exact });
            }
        }
    }
    Ok(())
}

/// Checks law 10 of [`Model`]: each of the examples, given one by one, has the same bits within the whole batch.
///
/// # Errors
/// The first result that differs.
pub fn companion_laws<'a, F: Real, M: Model<F>>(
    model: &M,
    parameters: &[F],
    whole: M::Batch<'a>,
    singles: &[M::Batch<'a>],
) -> Result<(), Violation> {
    let (n, blocks) = (singles.len(), model.blocks().len());
    let results = |batch: M::Batch<'a>, count: usize, pass: &mut M::Pass| {
        let (mut losses, mut norms) = (vec![F::zero(); count], vec![F::zero(); count * blocks]);
        model.forward(parameters, batch, pass);
        model.losses(batch, pass, &mut losses);
        model.backward(parameters, batch, pass);
        model.squared_norms(batch, pass, &mut norms);
        (losses, norms)
    };
    let (mut together, mut alone) = (model.pass(n), model.pass(1));
    let (losses, norms) = results(whole, n, &mut together);
    for (i, &single) in singles.iter().enumerate() {
        let (own_loss, own_norms) = results(single, 1, &mut alone);
        let mut sums = [vec![F::zero(); parameters.len()], vec![F::zero(); parameters.len()]];
        let mut doubles = [vec![0.0; parameters.len()], vec![0.0; parameters.len()]];
        let mut only = vec![F::zero(); n * blocks];
        only[i * blocks..(i + 1) * blocks].fill(F::one());
        model.add_weighted_in_double(whole, &mut together, &only, &mut doubles[0]);
        model.add_weighted_in_double(single, &mut alone, &vec![F::one(); blocks], &mut doubles[1]);
        model.add_weighted(whole, &mut together, &only, &mut sums[0]);
        model.add_weighted(single, &mut alone, &vec![F::one(); blocks], &mut sums[1]);
        let all = |loss: F, norms: &[F], which: usize| -> Vec<f64> {
            let numbers = [loss].into_iter().chain(norms.iter().copied()).chain(sums[which].iter().copied());
            numbers.map(wide).chain(doubles[which].iter().copied()).collect()
        };
        let found = all(losses[i], &norms[i * blocks..(i + 1) * blocks], 0);
        for (j, (found, expected)) in found.into_iter().zip(all(own_loss[0], &own_norms, 1)).enumerate() {
            if found != expected && !(found.is_nan() && expected.is_nan()) {
                let what = format!("result {j} of example {i} among others");
                return Err(Violation { law: 10, what, found, expected });
            }
        }
    }
    Ok(())
}

fn wide<F: Real>(x: F) -> f64 {
    x.to_subset_unchecked()
}

/// Returns `|v|²` in twice double precision, rounded once: sums of errors that are known exactly.
fn squared_norm_up(v: &[f64]) -> f64 {
    let (mut sum, mut errors) = (0.0f64, 0.0f64);
    for &x in v {
        let square = x * x;
        errors += x.mul_add(x, -square);
        let next = sum + square;
        let part = next - sum;
        errors += (sum - (next - part)) + (square - part);
        sum = next;
    }
    sum + errors
}

/// All results of a model for a batch, with all coefficients 1.
struct Evaluation {
    losses: Vec<f64>,
    squared_norms: Vec<f64>,
    gradient: Vec<f64>,
}

impl Evaluation {
    fn new<M: Model<f64>>(model: &M, w: &[f64], batch: M::Batch<'_>, count: usize, pass: &mut M::Pass) -> Self {
        let blocks = model.blocks().len();
        let mut evaluation = Self {
            losses: vec![f64::NAN; count],
            squared_norms: vec![f64::NAN; count * blocks],
            gradient: vec![0.0; model.parameters()],
        };
        model.forward(w, batch, pass);
        model.losses(batch, pass, &mut evaluation.losses);
        model.backward(w, batch, pass);
        model.squared_norms(batch, pass, &mut evaluation.squared_norms);
        model.add_weighted(batch, pass, &vec![1.0; count * blocks], &mut evaluation.gradient);
        evaluation
    }
}

fn central_differences<M: Model<f64>>(model: &M, case: &Case<M::Batch<'_>>, gradient: &[f64]) -> Result<(), Violation> {
    let step = 1e-5;
    let mut slopes = Vec::new();
    for j in 0..case.parameters.len() {
        let total = |shift: f64| {
            let mut w = case.parameters.clone();
            w[j] += shift;
            Evaluation::new(model, &w, case.whole, case.singles.len(), &mut model.pass(case.singles.len()))
                .losses
                .iter()
                .sum::<f64>()
        };
        slopes.push((total(step) - total(-step)) / (2.0 * step));
    }
    compare_all(4, "gradient against central differences", gradient, &slopes, 1e-5)
}

fn linear_in_coefficients<M: Model<f64>>(
    model: &M,
    case: &Case<M::Batch<'_>>,
    singles: &[Evaluation],
) -> Result<(), Violation> {
    let (n, blocks) = (case.singles.len(), model.blocks().len());
    let weighted = |batch, coefficients: &[f64]| {
        let mut pass = model.pass(n);
        let mut sum = vec![0.5; model.parameters()];
        model.forward(&case.parameters, batch, &mut pass);
        model.backward(&case.parameters, batch, &mut pass);
        model.add_weighted(batch, &mut pass, coefficients, &mut sum);
        sum
    };
    // Different for every example and block, with one example omitted.
    let left_out = case.poisoned.as_ref().map_or(n - 1, |poisoned| poisoned.1);
    let coefficients: Vec<f64> = (0..n * blocks)
        .map(|k| if k / blocks == left_out { 0.0 } else { 0.25 + 0.5 * k as f64 * if k % 2 == 0 { 1.0 } else { -1.0 } })
        .collect();
    let mut expected = vec![0.5; model.parameters()];
    for (i, single) in singles.iter().enumerate().filter(|(i, _)| *i != left_out) {
        for (k, block) in model.blocks().iter().enumerate() {
            for j in block.range.clone() {
                expected[j] += coefficients[i * blocks + k] * single.gradient[j];
            }
        }
    }
    compare_all(5, "weighted sum", &weighted(case.whole, &coefficients), &expected, 1e-9)?;
    if let Some((poisoned, _)) = case.poisoned {
        compare_all(5, "weighted sum without the NaN", &weighted(poisoned, &coefficients), &expected, 1e-9)?;
    }
    let nothing = weighted(case.whole, &vec![0.0; n * blocks]);
    for found in nothing {
        compare(5, || "sum with coefficients 0".to_owned(), found, 0.5, 0.0)?;
    }
    Ok(())
}

fn compare_all(law: u8, what: &str, found: &[f64], expected: &[f64], tolerance: f64) -> Result<(), Violation> {
    let size = expected.iter().fold(0.0_f64, |size, value| size.max(value.abs()));
    for (j, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let near = (found - expected).abs() <= tolerance * size.max(1e-3);
        if !near {
            return Err(Violation { law, what: format!("{what}, parameter {j}"), found, expected });
        }
    }
    Ok(())
}

fn compare(law: u8, what: impl FnOnce() -> String, found: f64, expected: f64, tolerance: f64) -> Result<(), Violation> {
    let near = (found - expected).abs() <= tolerance * expected.abs();
    if near { Ok(()) } else { Err(Violation { law, what: what(), found, expected }) }
}

#[cfg(test)]
mod tests;
