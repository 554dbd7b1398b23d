//! The Plackett–Luce model: documents are drawn without replacement, each with probability `∝ exp(score)` among the remaining
//! ones.

use crate::error::Error;

/// Computes `out <- softmax(scores)` and returns `log Σ exp(scores)`. Does not overflow for any finite scores.
///
/// # Panics
/// If the lengths differ or there is no score.
pub fn softmax(scores: &[f64], out: &mut [f64]) -> f64 {
    assert_eq!(scores.len(), out.len(), "one probability per score");
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for (out, score) in out.iter_mut().zip(scores) {
        *out = (score - largest).exp();
        sum += *out;
    }
    for out in out.iter_mut() {
        *out /= sum;
    }
    largest + sum.ln()
}

/// Returns `log P` that a ranking starts with `prefix`, first document first.
///
/// # Formula
/// ```text
/// log P(j_1 .. j_k) = Σ_{t <= k} [ s_{j_t} - log Σ_{l not among j_1 .. j_{t-1}} exp(s_l) ]
/// ```
/// A prefix of all documents gives the probability of the permutation; a prefix of one document gives its softmax.
///
/// # Errors
/// [`Error::NotAPrefix`]; [`Error::NanScore`].
///
/// # Examples
/// ```
/// use dp_rank::plackett_luce::log_probability;
/// let scores = [0.0, 2.0_f64.ln(), 0.0];
/// assert!((log_probability(&scores, &[1])?.exp() - 0.5).abs() < 1e-15);
/// assert!((log_probability(&scores, &[1, 0, 2])?.exp() - 0.25).abs() < 1e-15);
/// # Ok::<(), dp_rank::Error>(())
/// ```
///
/// # References
/// R. Plackett 1975, "The analysis of permutations"; R. D. Luce 1959, "Individual Choice Behavior".
pub fn log_probability(scores: &[f64], prefix: &[usize]) -> Result<f64, Error> {
    let mut gradient = vec![0.0; scores.len()];
    log_probability_and_gradient(scores, prefix, &mut gradient)
}

/// Returns [`log_probability`] and writes its gradient with respect to the scores to `gradient`.
///
/// # Formula
/// ```text
/// ∂ log P / ∂s_i = 1[i in prefix] - Σ_{t <= r(i)} w_{t,i}
/// ```
/// with `w_t` the softmax over the remaining documents at step `t`, and `r(i)` the position of `i`, or `k` if it is absent.
///
/// # Errors
/// As [`log_probability`]; [`Error::LengthMismatch`].
pub fn log_probability_and_gradient(scores: &[f64], prefix: &[usize], gradient: &mut [f64]) -> Result<f64, Error> {
    let n = scores.len();
    if gradient.len() != n {
        return Err(Error::LengthMismatch { scores: n, labels: gradient.len() });
    }
    if let Some(document) = scores.iter().position(|score| score.is_nan()) {
        return Err(Error::NanScore { document });
    }
    let mut left = vec![true; n];
    if prefix.is_empty() {
        return Err(Error::NotAPrefix { documents: n });
    }
    gradient.fill(0.0);
    let mut weights = vec![0.0; n];
    let mut log_probability = 0.0;
    for &document in prefix {
        if document >= n || !left[document] {
            return Err(Error::NotAPrefix { documents: n });
        }
        let largest = (0..n).filter(|&l| left[l]).map(|l| scores[l]).fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for l in (0..n).filter(|&l| left[l]) {
            weights[l] = (scores[l] - largest).exp();
            sum += weights[l];
        }
        log_probability += (scores[document] - largest) - sum.ln();
        for l in (0..n).filter(|&l| left[l]) {
            gradient[l] -= weights[l] / sum;
        }
        gradient[document] += 1.0;
        left[document] = false;
    }
    Ok(log_probability)
}

/// Calls `visit` with every prefix of `length` distinct documents out of `documents`.
pub(crate) fn for_each_prefix(documents: usize, length: usize, visit: &mut impl FnMut(&[usize])) {
    fn extend(documents: usize, length: usize, prefix: &mut Vec<usize>, visit: &mut impl FnMut(&[usize])) {
        if prefix.len() == length {
            return visit(prefix);
        }
        for document in 0..documents {
            if !prefix.contains(&document) {
                prefix.push(document);
                extend(documents, length, prefix, visit);
                prefix.pop();
            }
        }
    }
    extend(documents, length.min(documents), &mut Vec::with_capacity(length), visit);
}

/// Returns `n! / (n - k)!`, the number of prefixes of `k` of `n` documents, or infinity on overflow.
pub fn prefixes(documents: usize, length: usize) -> f64 {
    (0..length.min(documents)).map(|taken| (documents - taken) as f64).product()
}

#[cfg(test)]
mod tests;
