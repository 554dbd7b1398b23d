//! Sums over all records that are computed where the records are.
//!
//! A database can add up the gradients of a linear model itself, so that no row leaves it. The sums are of integers, so that
//! they are the same in any order, however the records are divided and whatever is computed twice.

use crate::source::SourceError;

/// The derivative of a loss in the prediction `m` of a linear model, for a target `y`; with several classes, in each of the scores.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Slope {
    /// `-y / (1 + exp(y m))`, targets -1 and +1.
    Logistic,
    /// `-y clamp((h + 1 - y m)/2h, 0, 1)`, targets -1 and +1; 1 or 0 for h = 0, whether `y m < 1`.
    HuberSvm {
        /// h: half of the width of the curved part.
        h: f64,
    },
    /// `clamp((m - y)/h, -1, 1)`; the sign of `m - y` for h = 0.
    Huber {
        /// h: the half width of the curved part.
        h: f64,
    },
    /// `tanh((m - y)/h)`.
    LogCosh {
        /// h: the size of a small residual.
        h: f64,
    },
    /// `clamp(m - y, -c, c)`.
    ClippedResidual {
        /// c: the largest size.
        most: f64,
    },
    /// `p_c - [c = y]` for class `c`, `p` the softmax of the scores; targets are positions of classes.
    Softmax {
        /// Number of classes.
        classes: u32,
    },
}

impl Slope {
    /// Returns the number of predictions.
    pub fn outputs(self) -> usize {
        match self {
            Self::Softmax { classes } => classes as usize,
            _ => 1,
        }
    }
}

/// The sums of a request, exactly.
///
/// # Formula
/// ```text
/// steps_j = Σ_i trunc(2^bits g_i x_ij)     g the slope at <w, x_i>;  with several classes one such vector for each
/// ```
/// A record that does not count adds 0.
///
/// # Privacy
/// One record's contribution in units of `2^-bits` has at most the norm of its gradient, whatever the arithmetic that computed it:
/// the source guarantees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GradientSums {
    /// Number of all records, whether or not they count.
    pub records: u64,
    /// The sums, class by class.
    pub steps: Vec<i64>,
    /// Number of binary digits of a contribution.
    pub bits: u32,
}

/// A source of sums over all of its records.
///
/// # Privacy
/// What is asked of it may stand in logs that others read: the weights must be such as may be published. What it answers is not
/// private: noise has to be added before anything is published.
pub trait SumSource {
    /// Returns the sums of the gradients of all records at these weights, class by class.
    ///
    /// # Errors
    /// The engine failed.
    fn gradients(&mut self, slope: Slope, weights: &[f64]) -> Result<GradientSums, SourceError>;
}

/// Returns the number of binary digits with which sums over `n` records stay below 2^61: at most 40.
pub fn bits_of(n: u64) -> u32 {
    40.min(61 - (u64::BITS - n.saturating_sub(1).leading_zeros()).min(61))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stay_below_two_to_the_sixty_first() {
        for n in [1, 2, 3, 1 << 21, (1 << 21) + 1, 1_000_000_000, 1 << 40, u64::MAX] {
            let bits = bits_of(n);
            assert!(bits <= 40 && (u128::from(n) << bits) <= 1 << 61 || bits == 0, "{n}");
        }
        assert_eq!((bits_of(1000), bits_of(1 << 21), bits_of((1 << 21) + 1)), (40, 40, 39));
    }
}
