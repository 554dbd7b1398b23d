//! Sums over all records that are computed where the records are.
//!
//! A database can add up the gradients of a linear model itself, so that no row leaves it. The sums are of integers, so that
//! they do not depend on the order of the records, on their division or on repeated computations.

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

/// The derivative of a loss with respect to the prediction `m` of a linear model, for a target `y`; for several classes, with
/// respect to each score.
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

/// The summands of all records that count: vectors `x` with targets `y`, or with `t` in place of a class.
///
/// # Formula
/// With `q(v) = trunc(2^bits v)`, in this order:
/// ```text
/// Gradients   Σ q(g_c x_j)            class by class, g the slopes at <w_c, x>
/// Moments     Σ q(x_i) q(x_j), j >= i, then Σ q(x_i) q(t_c) over c, for each i
/// Targets     Σ q(y), then the number of records that count
/// ```
/// `t_c` is y for one output, and `[c = y] - 1/outputs` for several.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum SumKind {
    /// The gradients of a loss at weights.
    Gradients(Slope),
    /// The second moments of rows, and of rows and targets, in steps of `2^(-2 bits)`.
    Moments {
        /// Number of outputs.
        outputs: u32,
    },
    /// The targets, and the records that have one.
    Targets,
}

impl SumKind {
    /// Returns the number of sums over vectors of `dim` entries.
    ///
    /// # Examples
    /// ```
    /// use dp_data::sums::SumKind;
    /// assert_eq!(SumKind::Moments { outputs: 2 }.numbers(3), 6 + 3 * 2);
    /// ```
    pub fn numbers(self, dim: usize) -> usize {
        match self {
            Self::Gradients(slope) => dim.saturating_mul(slope.outputs()),
            Self::Moments { outputs } => {
                (dim.saturating_mul(dim.saturating_add(1)) / 2).saturating_add(dim.saturating_mul(outputs as usize))
            }
            Self::Targets => 2,
        }
    }
}

/// A request for sums.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SumRequest<'w> {
    /// The summands.
    pub kind: SumKind,
    /// The weights of gradients, class by class; of other sums none.
    pub weights: &'w [f64],
    /// Number of binary digits.
    pub bits: u32,
}

impl SumRequest<'_> {
    /// Adds the contribution of a row and its target, computed in double precision.
    ///
    /// # Examples
    /// ```
    /// use dp_data::sums::{SumKind, SumRequest};
    /// let mut sums = [0; 5];
    /// let request = SumRequest { kind: SumKind::Moments { outputs: 1 }, weights: &[], bits: 2 };
    /// request.add(&[0.5, -0.8], 1.0, &mut sums);
    /// assert_eq!(sums, [4, -6, 8, 9, -12]);
    /// ```
    pub fn add(&self, row: &[f64], y: f64, sums: &mut [i64]) {
        let whole = |value: f64| (value * 2f64.powi(self.bits as i32)).trunc() as i64;
        let dim = row.len().max(1);
        match self.kind {
            SumKind::Gradients(slope) => {
                let dot = |weights: &[f64]| weights.iter().zip(row).map(|(w, x)| w * x).sum::<f64>();
                let scores: Vec<f64> = self.weights.chunks_exact(dim).map(dot).collect();
                let mut slopes = vec![0.0; scores.len()];
                slope.at(&scores, y, &mut slopes);
                for (slope, sums) in slopes.iter().zip(sums.chunks_exact_mut(dim)) {
                    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += whole(slope * x));
                }
            }
            SumKind::Moments { outputs } => {
                let coded = |c: u32| f64::from(u8::from(y == f64::from(c))) - 1.0 / f64::from(outputs);
                let targets: Vec<i64> = match outputs {
                    1 => vec![whole(y)],
                    _ => (0..outputs).map(|c| whole(coded(c))).collect(),
                };
                let row: Vec<i64> = row.iter().map(|&x| whole(x)).collect();
                let mut sums = sums.iter_mut();
                for (i, x) in row.iter().enumerate() {
                    row[i..].iter().chain(&targets).zip(&mut sums).for_each(|(other, sum)| *sum += x * other);
                }
            }
            SumKind::Targets => sums.iter_mut().zip([whole(y), 1]).for_each(|(sum, one)| *sum += one),
        }
    }
}

/// Sums of integers.
///
/// # Privacy
/// One record's contribution in units of `2^-bits` has at most the norm of what is added up, whatever the arithmetic that computed
/// it: the source guarantees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegerSums {
    /// Number of all records, whether or not they count.
    pub records: u64,
    /// The sums, in the order of [`SumKind`].
    pub steps: Vec<i64>,
}

impl IntegerSums {
    /// Adds the sums of other records; `None` if they are of another number, or so large that they cannot be those of records.
    pub fn checked_add(mut self, other: &Self) -> Option<Self> {
        if self.steps.len() != other.steps.len() {
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
/// Its requests may appear in logs that others read: their weights must be publishable. Its answers are not private: noise has
/// to be added before anything is published.
pub trait SumSource {
    /// Returns these sums over all records.
    ///
    /// # Errors
    /// The engine failed.
    fn sums(&mut self, request: &SumRequest<'_>) -> Result<IntegerSums, SourceError>;
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
