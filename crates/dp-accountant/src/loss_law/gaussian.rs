//! Gaussian noise, including hidden random sensitivity.

use super::{LossLaw, Tails};
use crate::normal::upper_tail;

/// `N(mu, 1)` against `N(0, 1)`.
///
/// # Formula
/// The loss at x is `mu x - mu^2/2`, which is above l if `x > l/mu + mu/2`.
#[derive(Debug, Clone)]
pub(crate) struct Gaussian {
    mu: f64,
}

impl Gaussian {
    /// Returns the law for `mu` > 0.
    pub(crate) fn new(mu: f64) -> Self {
        Self { mu }
    }
}

impl LossLaw for Gaussian {
    fn tails(&self, loss: f64) -> Tails {
        let (centre, half) = (loss / self.mu, 0.5 * self.mu);
        let (p_above, p_below) = both_tails(centre - half);
        let (q_above, q_below) = both_tails(centre + half);
        Tails { p_above, p_below, q_above, q_below }
    }

    fn support(&self) -> (f64, f64) {
        (f64::NEG_INFINITY, f64::INFINITY)
    }

    fn relative_error(&self) -> f64 {
        4.0 * f64::EPSILON
    }

    fn relative_error_at(&self, loss: f64) -> f64 {
        // The argument is rounded twice; each time the tail at z changes by a factor of less than `(1 + z^2) 2^-53`. Beyond 40
        // the tail is zero.
        let extreme = ((loss / self.mu).abs() + 0.5 * self.mu).min(40.0);
        f64::EPSILON * (4.0 + extreme * extreme)
    }

    fn threshold_error(&self, loss: f64) -> f64 {
        f64::EPSILON * loss.abs()
    }

    fn is_symmetric(&self) -> bool {
        true
    }
}

/// Returns the masses of a standard normal law above and below `x`: the larger is 1 minus the smaller, which is as accurate.
fn both_tails(x: f64) -> (f64, f64) {
    let smaller = upper_tail(x.abs());
    if x >= 0.0 { (smaller, 1.0 - smaller) } else { (1.0 - smaller, smaller) }
}

/// A Gaussian whose sensitivity depends on a hidden random index. By joint convexity of the hockey-stick divergence, the pair in
/// which the index is revealed dominates. Its loss is that of the index's Gaussian, so the tails are averages.
#[derive(Debug, Clone)]
pub(crate) struct Mixture {
    /// Positive weights, and the ratio of sensitivity to noise for each.
    parts: Vec<(f64, Gaussian)>,
    /// Weight of the indices with zero sensitivity.
    unmoved: f64,
}

impl Mixture {
    /// Returns the law for weights of sum 1 and their ratios.
    pub(crate) fn new(parts: impl Iterator<Item = (f64, f64)>) -> Self {
        let (mut moved, mut unmoved) = (Vec::new(), 0.0);
        for (weight, mu) in parts {
            if mu > 0.0 {
                moved.push((weight, Gaussian::new(mu)));
            } else {
                unmoved += weight;
            }
        }
        Self { parts: moved, unmoved }
    }
}

impl LossLaw for Mixture {
    fn tails(&self, loss: f64) -> Tails {
        let (above, below) = if loss < 0.0 { (self.unmoved, 0.0) } else { (0.0, self.unmoved) };
        let start = Tails { p_above: above, p_below: below, q_above: above, q_below: below };
        self.parts.iter().fold(start, |sum, (weight, gaussian)| {
            let tails = gaussian.tails(loss);
            Tails {
                p_above: sum.p_above + weight * tails.p_above,
                p_below: sum.p_below + weight * tails.p_below,
                q_above: sum.q_above + weight * tails.q_above,
                q_below: sum.q_below + weight * tails.q_below,
            }
        })
    }

    fn support(&self) -> (f64, f64) {
        if self.parts.is_empty() { (0.0, 0.0) } else { (f64::NEG_INFINITY, f64::INFINITY) }
    }

    fn relative_error(&self) -> f64 {
        (4.0 + self.parts.len() as f64) * f64::EPSILON
    }

    fn relative_error_at(&self, loss: f64) -> f64 {
        let gaussians = self.parts.iter().map(|(_, gaussian)| gaussian.relative_error_at(loss)).fold(0.0, f64::max);
        gaussians + self.parts.len() as f64 * f64::EPSILON
    }

    fn steps(&self) -> f64 {
        250.0 * self.parts.len() as f64
    }

    fn threshold_error(&self, loss: f64) -> f64 {
        f64::EPSILON * loss.abs()
    }

    fn is_symmetric(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_of_known_points() {
        let law = Gaussian::new(2.0);
        let tails = law.tails(2.0);
        assert!((tails.p_above - 0.5).abs() < 1e-16 && (tails.q_above - 0.022_750_131_948_179_2).abs() < 1e-16);
        let mixture = Mixture::new([(0.25, 2.0), (0.75, 0.0)].into_iter());
        assert!((mixture.tails(2.0).p_above - 0.125).abs() < 1e-16);
        assert!((mixture.tails(-1e-9).p_above - (0.75 + 0.25 * law.tails(-1e-9).p_above)).abs() < 1e-16);
    }
}
