//! Metrics of linear models.

use dp_data::{Examples, Rows};
use dp_losses::{Loss, LossKind};

/// Returns targets of -1 and 1 unchanged; for several classes, 1 for `class` and -1 for the rest.
pub fn against_the_rest(targets: &[f64], classes: u32, class: u32) -> Vec<f64> {
    if classes <= 2 {
        return targets.to_vec();
    }
    targets.iter().map(|&target| if target == f64::from(class) { 1.0 } else { -1.0 }).collect()
}

/// Returns the share of examples that are classified correctly.
pub fn accuracy(examples: &Examples<f64>, models: &[Vec<f64>]) -> f64 {
    right(examples, models) as f64 / examples.len().max(1) as f64
}

/// Returns the number of examples that are classified correctly: by the sign for one model, by the largest score for several.
pub fn right(examples: &Examples<f64>, models: &[Vec<f64>]) -> usize {
    let block = examples.block();
    let right = (0..block.len()).filter(|&i| {
        let score = |model: &Vec<f64>| score(&block.rows, i, model);
        match models {
            [model] => (score(model) > 0.0) == (block.targets[i] > 0.0),
            models => {
                let scores = models.iter().map(score).enumerate();
                let best = scores.fold((0, f64::NEG_INFINITY), |best, this| if this.1 > best.1 { this } else { best });
                best.0 as f64 == block.targets[i]
            }
        }
    });
    right.count()
}

/// Returns the mean loss of one model plus `(λ/2)‖w‖²`.
///
/// # Formula
/// ```text
/// (1/n) Σ ℓ(⟨w, xᵢ⟩, yᵢ) + (λ/2) ‖w‖²
/// ```
pub fn objective(examples: &Examples<f64>, targets: &[f64], loss: LossKind, lambda: f64, weights: &[f64]) -> f64 {
    // Losses of several scores do not apply to a linear model.
    let Some(loss) = loss.scalar() else { return f64::NAN };
    let block = examples.block();
    let losses = targets.iter().enumerate().map(|(i, &target)| loss.value(score(&block.rows, i, weights), target));
    let mean = losses.sum::<f64>() / examples.len().max(1) as f64;
    mean + 0.5 * lambda * weights.iter().map(|w| w * w).sum::<f64>()
}

/// Returns `‖w‖₁`.
pub fn l1(weights: &[f64]) -> f64 {
    weights.iter().map(|w| w.abs()).sum()
}

/// Returns ξ_K: the share of the attributes with a non-zero weight in `truth` that are among the `top` largest weights.
///
/// Weights of equal size, such as the zeros of a sparse model, share the remaining places: the result is the expectation
/// under random tie-breaking.
///
/// # Examples
/// ```
/// use dp_reproduce::evaluate::coverage;
/// let truth = [2.0, -1.0, 0.0, 0.0];
/// assert_eq!(coverage(&[-3.0, 0.1, 0.5, 0.0], &truth, 2), 0.5); // the first is among them, the second is not
/// assert_eq!(coverage(&[1.0, 0.0, 0.0, 0.0], &truth, 2), (1.0 + 1.0 / 3.0) / 2.0); // three zeros for one place
/// ```
///
/// # References
/// Chen 2020 (dissertation, University of Georgia), section 4.6.6.
pub fn coverage(weights: &[f64], truth: &[f64], top: usize) -> f64 {
    let matter = truth.iter().filter(|weight| **weight != 0.0).count();
    if top == 0 || matter == 0 {
        return 0.0;
    }
    let mut sizes: Vec<f64> = weights.iter().map(|w| w.abs()).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let Some(&least) = sizes.get(top.min(sizes.len()).saturating_sub(1)) else { return 0.0 };
    let of_size = |counts: &dyn Fn(f64) -> bool| {
        let sized = weights.iter().zip(truth).filter(|(w, _)| counts(w.abs()));
        sized.fold((0usize, 0usize), |(all, right), (_, truth)| (all + 1, right + usize::from(*truth != 0.0)))
    };
    let (above, right_above) = of_size(&|size| size > least);
    let (tied, right_tied) = of_size(&|size| size == least);
    let places = top.saturating_sub(above).min(tied);
    let shared = if tied > 0 { right_tied as f64 * places as f64 / tied as f64 } else { 0.0 };
    (right_above as f64 + shared) / matter as f64
}

fn score(rows: &Rows<'_, f64>, i: usize, weights: &[f64]) -> f64 {
    match *rows {
        Rows::Dense { values, dim } => values[i * dim..(i + 1) * dim].iter().zip(weights).map(|(x, w)| x * w).sum(),
        Rows::Sparse { offsets, indices, values, .. } => {
            let range = offsets[i]..offsets[i + 1];
            indices[range.clone()].iter().zip(&values[range]).map(|(&k, x)| x * weights[k as usize]).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_model_by_its_sign_several_by_the_largest_score() {
        let examples = Examples::dense(vec![1.0, 0.0, 0.0, 1.0, 0.5, 0.6], vec![0.0, 1.0, 0.0], 2).unwrap();
        let models = [vec![1.0, 0.0], vec![0.0, 1.0], vec![-1.0, -1.0]];
        assert_eq!(accuracy(&examples, &models), 2.0 / 3.0);
        let signs = examples.with_targets(vec![1.0, 1.0, -1.0]).unwrap();
        assert_eq!(accuracy(&signs, &[vec![1.0, -1.0]]), 2.0 / 3.0); // scores 1, -1, -0.1
        assert_eq!(against_the_rest(&[0.0, 2.0, 1.0], 3, 2), [-1.0, 1.0, -1.0]);
    }

    /// Of a hundred attributes twenty are relevant; sixteen of them are among the thirty largest weights: the example of the
    /// source.
    #[test]
    fn coverage_of_the_example() {
        let truth: Vec<f64> = (0..100).map(|i| if i < 20 { 1.0 } else { 0.0 }).collect();
        // Attributes 0 to 15 and 20 to 33 are large, some of them negative.
        let large = |i: usize| i < 16 || (20..34).contains(&i);
        let sign = |i: usize| if i.is_multiple_of(2) { -1.0 } else { 1.0 };
        let weights: Vec<f64> =
            (0..100).map(|i| sign(i) * (if large(i) { 1.0 } else { 0.1 } + 1e-4 * i as f64)).collect();
        assert!((coverage(&weights, &truth, 30) - 0.8).abs() < 1e-12);
        // The largest twenty are 20 to 33 and, of the relevant ones, 10 to 15.
        assert!((coverage(&weights, &truth, 20) - 0.3).abs() < 1e-12);
        assert_eq!(coverage(&truth, &truth, 20), 1.0);
        assert_eq!(coverage(&weights, &truth, 100), 1.0);
        // A model of zeros selects at random.
        assert!((coverage(&[0.0; 100], &truth, 40) - 0.4).abs() < 1e-12);
        assert_eq!(coverage(&weights, &[0.0; 100], 40), 0.0);
    }

    #[test]
    fn the_objective_at_the_origin_is_ln_2() {
        let examples = Examples::dense(vec![1.0, -0.5], vec![1.0, -1.0], 1).unwrap();
        let at = |w: f64| objective(&examples, examples.targets(), LossKind::Logistic, 0.2, &[w]);
        assert!((at(0.0) - 2f64.ln()).abs() < 1e-15);
        let expected = ((1.0 + (-2f64).exp()).ln() + (1.0 + (-1f64).exp()).ln()) / 2.0 + 0.4;
        assert!((at(2.0) - expected).abs() < 1e-12);
    }
}
