//! The posterior of epsilon, for description only, not for verdicts.
//!
//! With Jeffreys' prior on both error rates of an attack, their posteriors are independent beta laws, and that of epsilon
//! follows from the region in which both rates are consistent with it. With few runs a credible interval is shorter than
//! a confidence interval because it answers a different question; it refutes nothing.
//!
//! # References
//! S. Zanella-Beguelin et al., "Bayesian estimation of differential privacy", 2023, Section 4, arXiv 2206.05199.

use statrs::function::gamma::ln_gamma;

use super::clopper_pearson::{Hits, Limits};
use crate::error::{self, Error};

/// Number of points at which each posterior is tabulated.
const POINTS: usize = 1001;

/// Half width of a table in standard deviations of a rate's log-odds, plus an allowance for exponential tails.
const WIDTH: f64 = 12.0;

/// Returns the equal-tailed credible interval of epsilon at `delta`, of posterior probability `probability`.
///
/// # Formula
/// ```text
/// P(eps <= e) = P( 1 - FNR <= e^e FPR + delta  and  1 - FPR <= e^e FNR + delta ),
/// FPR ~ Beta(1/2 + FP, 1/2 + n0 - FP),   FNR ~ Beta(1/2 + n1 - TP, 1/2 + TP)
/// ```
///
/// # Errors
/// [`Error::OutOfRange`] for counts, delta or a probability out of range.
///
/// # Examples
/// ```
/// use dp_audit::bounds::{Hits, Limits, credible};
/// let hits = Hits { true_positives: 90, positives: 100, false_positives: 5, negatives: 100 };
/// let (low, high) = credible::interval(hits, 0.0, 0.95)?;
/// // Shorter than what holds with confidence.
/// assert!(low > Limits::new(hits, 0.05)?.epsilon_lower(0.0)? && high < 5.0);
/// # Ok::<(), dp_audit::Error>(())
/// ```
pub fn interval(hits: Hits, delta: f64, probability: f64) -> Result<(f64, f64), Error> {
    let delta = error::delta(delta)?;
    let outside = error::failure_probability(1.0 - probability)?;
    // Checks the counts.
    Limits::new(hits, outside)?;
    let misses = hits.positives - hits.true_positives;
    let false_positive = Posterior::new(hits.false_positives, hits.negatives);
    let false_negative = Posterior::new(misses, hits.positives);
    let below = |epsilon: f64| false_positive.consistent_with(&false_negative, epsilon, delta);
    let quantile = |level: f64| {
        if below(0.0) >= level {
            return 0.0;
        }
        let (mut low, mut high) = (0.0, 1.0);
        while below(high) < level && high < 1e6 {
            low = high;
            high *= 2.0;
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if below(middle) < level {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    };
    Ok((quantile(0.5 * outside), quantile(1.0 - 0.5 * outside)))
}

/// The posterior of a rate on a grid of log-odds, where its density has no poles.
struct Posterior {
    first: f64,
    step: f64,
    /// Probability of each point's cell.
    share: Vec<f64>,
    /// Cumulative probability up to the end of each point's cell.
    cumulative: Vec<f64>,
}

impl Posterior {
    fn new(hits: u64, trials: u64) -> Self {
        let (a, b) = (0.5 + hits as f64, 0.5 + (trials - hits) as f64);
        // In log-odds t the density is p^a (1 - p)^b / B(a, b); its tails decay like e^(a t) and e^(-b t).
        let centre = (a / b).ln();
        let spread = (1.0 / a + 1.0 / b).sqrt();
        let low = centre - WIDTH * spread - 40.0 / a;
        let high = centre + WIDTH * spread + 40.0 / b;
        let step = (high - low) / (POINTS - 1) as f64;
        let log_beta = ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
        let density = |t: f64| (-a * (-t).exp().ln_1p() - b * t.exp().ln_1p() - log_beta).exp();
        let mut share: Vec<f64> = (0..POINTS).map(|i| density(low + i as f64 * step)).collect();
        let total: f64 = share.iter().sum();
        let mut cumulative = Vec::with_capacity(POINTS);
        let mut so_far = 0.0;
        for share in &mut share {
            *share /= total;
            so_far += *share;
            cumulative.push(so_far);
        }
        Self { first: low, step, share, cumulative }
    }

    /// Returns the probability of a rate below `rate`.
    fn below(&self, rate: f64) -> f64 {
        if !(rate > 0.0) {
            return 0.0;
        }
        if rate >= 1.0 {
            return 1.0;
        }
        let position = ((rate / (1.0 - rate)).ln() - self.first) / self.step + 0.5;
        if !(position > 0.0) {
            return 0.0;
        }
        let cell = position as usize;
        let Some(share) = self.share.get(cell) else { return 1.0 };
        self.cumulative[cell] - share * (1.0 - (position - cell as f64))
    }

    /// Returns the posterior probability that both rates, this one of false positives, are consistent with `(epsilon,
    /// delta)`.
    fn consistent_with(&self, false_negative: &Self, epsilon: f64, delta: f64) -> f64 {
        let factor = epsilon.exp();
        self.share
            .iter()
            .enumerate()
            .map(|(i, share)| {
                let rate = 1.0 / (1.0 + (-(self.first + i as f64 * self.step)).exp());
                let least = (1.0 - delta - factor * rate).max((1.0 - delta - rate) / factor);
                share * (1.0 - false_negative.below(least))
            })
            .sum()
    }
}

#[cfg(test)]
mod tests;
