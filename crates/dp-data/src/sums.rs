//! Sums over all records that are computed where the records are.
//!
//! A database can add up the gradients of a linear model itself, so that no row leaves it. The sums are of integers, so that
//! they are the same in any order, however the records are divided and whatever is computed twice.

#[cfg(feature = "schema")]
pub mod in_sql;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "runner")]
pub mod runner;
#[cfg(any(feature = "postgres", feature = "runner"))]
mod sql_sums;

#[cfg(any(feature = "postgres", feature = "runner"))]
pub use sql_sums::SqlSums;
#[cfg(any(feature = "postgres", feature = "runner"))]
pub(crate) use sql_sums::{Cells, Engine, Failed};

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

    /// Returns the largest size of a slope.
    pub fn largest(self) -> f64 {
        match self {
            Self::ClippedResidual { most } => most,
            _ => 1.0,
        }
    }

    /// Computes the slopes at these predictions.
    ///
    /// # Examples
    /// ```
    /// use dp_data::sums::Slope;
    /// let mut slopes = [0.0; 2];
    /// Slope::Softmax { classes: 2 }.at(&[1.0, 1.0], 0.0, &mut slopes);
    /// assert_eq!(slopes, [-0.5, 0.5]);
    /// ```
    pub fn at(self, predictions: &[f64], y: f64, slopes: &mut [f64]) {
        let m = predictions.first().copied().unwrap_or_default();
        let of_one = match self {
            Self::Logistic => -y / (1.0 + (y * m).exp()),
            Self::HuberSvm { h } if h > 0.0 => -y * ((h + 1.0 - y * m) / (2.0 * h)).clamp(0.0, 1.0),
            Self::HuberSvm { .. } => -y * f64::from(u8::from(y * m < 1.0)),
            Self::Huber { h } if h > 0.0 => ((m - y) / h).clamp(-1.0, 1.0),
            Self::Huber { .. } => f64::from(i8::from(m > y) - i8::from(m < y)),
            Self::LogCosh { h } => ((m - y) / h).tanh(),
            Self::ClippedResidual { most } => (m - y).clamp(-most, most),
            Self::Softmax { .. } => {
                let largest = predictions.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = predictions.iter().map(|score| (score - largest).exp()).sum();
                for ((slope, score), class) in slopes.iter_mut().zip(predictions).zip(0u32..) {
                    *slope = (score - largest).exp() / total - f64::from(u8::from(y == f64::from(class)));
                }
                return;
            }
        };
        slopes.iter_mut().for_each(|slope| *slope = of_one);
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

impl GradientSums {
    /// Adds the sums of other records; `None` if they are of another number or of other units, or so large that they cannot be
    /// those of records.
    pub fn checked_add(mut self, other: &Self) -> Option<Self> {
        if self.bits != other.bits || self.steps.len() != other.steps.len() {
            return None;
        }
        self.records = self.records.checked_add(other.records)?;
        for (sum, part) in self.steps.iter_mut().zip(&other.steps) {
            *sum = sum.checked_add(*part)?;
        }
        Some(self)
    }
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
