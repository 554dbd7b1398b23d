//! The softmax cross-entropy of the last layer's outputs, the logits.
//!
//! # Formula
//! ```text
//! loss = ln Σ_k e^{z_k} - z_c        gradient = softmax(z) - e_c
//! ```
//! of one view. The loss of an example is the mean over its views.
//!
//! The largest logit is subtracted first, so that nothing overflows: the loss of finite logits is finite.

use nalgebra::convert;

use crate::float::Float;
use crate::kernels::{is_finite, vectorised};

fn largest<F: Float>(logits: &[F]) -> F {
    logits.iter().fold(F::narrow(f64::NEG_INFINITY), |largest, &z| if z > largest { z } else { largest })
}

/// Returns the loss of an example; 0 without a class.
pub(crate) fn loss<F: Float>(logits: &[F], class: Option<usize>) -> F {
    let Some(&own) = class.and_then(|class| logits.get(class)) else { return F::zero() };
    let largest = largest(logits);
    let total = logits.iter().fold(F::zero(), |sum, &z| sum + (z - largest).exponential());
    let loss = (largest - own) + total.ln();
    match F::max_value() {
        // Two finite logits can be further apart than the largest number.
        Some(most) if loss > most && is_finite(logits) => most,
        _ => loss,
    }
}

/// Sets `mean` to the mean of the logits of each example's views.
pub(crate) fn mean_of_views<F: Float>(logits: &[F], views: usize, classes: usize, mean: &mut Vec<F>) {
    let share = F::one() / convert(views as f64);
    mean.clear();
    for example in logits.chunks_exact(views * classes) {
        mean.extend((0..classes).map(|class| {
            example.iter().skip(class).step_by(classes).fold(F::zero(), |sum, &logit| sum + share * logit)
        }));
    }
}

/// Returns the mean loss over the views of an example; 0 without a class.
pub(crate) fn mean_loss<F: Float>(logits: &[F], classes: usize, class: Option<usize>) -> F {
    let views = logits.chunks_exact(classes);
    let share = F::one() / convert(views.len() as f64);
    views.fold(F::zero(), |sum, logits| sum + share * loss(logits, class))
}

/// Writes the gradients of the examples' mean losses over their views with respect to the logits, view by view: zeros without a
/// class, and NaN for logits that are not finite.
pub(crate) fn gradients<F: Float>(logits: &[F], classes: &[Option<usize>], views: usize, gradients: &mut [F]) {
    let count = (logits.len() / (views * classes.len()).max(1)).max(1);
    let of_views = classes.iter().flat_map(|class| core::iter::repeat_n(*class, views));
    let views_of_all = logits.chunks_exact(count).zip(gradients.chunks_exact_mut(count)).zip(of_views);
    let share = F::one() / convert(views as f64);
    vectorised(
        #[inline(always)]
        || {
            for ((logits, gradient), class) in views_of_all {
                let Some(class) = class else {
                    gradient.fill(F::zero());
                    continue;
                };
                if !is_finite(logits) {
                    gradient.fill(F::narrow(f64::NAN));
                    continue;
                }
                let largest = largest(logits);
                for (g, &z) in gradient.iter_mut().zip(logits) {
                    *g = (z - largest).exponential();
                }
                let total = gradient.iter().fold(F::zero(), |sum, &g| sum + g);
                for g in gradient.iter_mut() {
                    *g /= total;
                }
                if let Some(own) = gradient.get_mut(class) {
                    *own -= F::one();
                }
                if views > 1 {
                    gradient.iter_mut().for_each(|g| *g *= share);
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_and_gradient_at_a_hand_computed_point() {
        let logits = [2f64.ln(), 0.0, 0.0];
        assert!((loss(&logits, Some(0)) - 2f64.ln()).abs() < 1e-15);
        assert_eq!(loss(&logits, None), 0.0);
        let mut gradient = [9.0; 3];
        gradients(&logits, &[Some(0)], 1, &mut gradient);
        let expected = [-0.5, 0.25, 0.25];
        assert!(gradient.iter().zip(expected).all(|(g, e)| (g - e).abs() < 1e-15));
        gradients(&logits, &[None], 1, &mut gradient);
        assert_eq!(gradient, [0.0; 3]);
    }

    #[test]
    fn large_logits_have_finite_losses_and_others_are_marked() {
        for scale in [1e3_f32, 1e30, f32::MAX] {
            let logits = [scale, -scale];
            assert_eq!(loss(&logits, Some(0)), 0.0);
            assert!(loss(&logits, Some(1)).is_finite());
        }
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut gradient = [0.0; 2];
            gradients(&[0.0, bad], &[Some(0)], 1, &mut gradient);
            assert!(gradient.iter().all(|g| g.is_nan()));
        }
    }
}
