//! The published bound for any number of positions.

use super::gram::Gram;
use crate::certified::UNIT;
use crate::error::Error;
use crate::metrics::Cutoff;
use crate::plackett_luce::{for_each_prefix, log_probability_and_gradient, prefixes};

/// The largest number of prefixes that are enumerated.
const MOST_PREFIXES: f64 = 1e6;

/// Returns the published bound on BayesRank's diameter: the triangle inequality over all prefixes of length `k`; `None` if there
/// are more than a million. For k = 1 it is [`Contributions::triangle`](super::Contributions::triangle); for larger k, the bounds
/// of [`Contributions`](super::Contributions) are far smaller and far cheaper.
///
/// # Formula
/// ```text
/// Σ_π ‖∂P(π)/∂θ‖
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`], [`Error::NanScore`].
pub fn triangle_over_prefixes(k: Cutoff, scores: &[f64], gram: &Gram<'_>) -> Result<Option<f64>, Error> {
    let n = gram.documents();
    if scores.len() != n {
        return Err(Error::LengthMismatch { scores: scores.len(), labels: n });
    }
    if let Some(document) = scores.iter().position(|score| score.is_nan()) {
        return Err(Error::NanScore { document });
    }
    if prefixes(n, k.get()) > MOST_PREFIXES {
        return Ok(None);
    }
    if n == 1 {
        return Ok(Some(0.0));
    }
    let largest = gram.largest_square();
    if !largest.is_finite() {
        return Ok(Some(f64::INFINITY));
    }
    let (mut sum, mut gradient) = (0.0, vec![0.0; n]);
    for_each_prefix(n, k.get(), &mut |prefix| {
        // Prefixes are well formed, so no error can occur.
        let Ok(log_probability) = log_probability_and_gradient(scores, prefix, &mut gradient) else { return };
        let mut square = 0.0;
        for i in 0..n {
            for j in 0..n {
                square += gradient[i] * gradient[j] * gram.at(i, j);
            }
        }
        let size: f64 = gradient.iter().map(|g| g.abs()).sum();
        let square = square.max(0.0) + gram.relative_error() * largest * size * size;
        sum += log_probability.exp() * square.sqrt();
    });
    Ok(Some(sum * (1.0 + 16.0 * n as f64 * UNIT) * (1.0 + 1e-12) + k.get() as f64 * gram.gradient_rounding()))
}
