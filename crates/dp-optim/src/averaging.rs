//! The averaging of the iterates.

use crate::error::Error;

/// The weights `α_t` of the iterates in the output `Σ_t α_t w_t`. Iterates are counted after their update.
///
/// # Formula
/// ```text
/// Last          α_T = 1
/// Uniform       α_t = 1/T
/// Suffix        α_t = 1/s for the last s = min(updates, T) updates
/// Polynomial    α_t = 2t / (T (T + 1))
/// Exponential   α_t = (1 - d) d^(T - t) / (1 - d^T)
/// Coefficients  α_t = values[t - 1], any sign
/// Restarts      w_t <- (w_{t-s+1} + ... + w_t) / s   whenever s divides t, and the last w_T
/// ```
/// `Restarts` is not a single average: the run continues from the mean of every `s` iterates. Weights are counted within each
/// stretch, and a last stretch shorter than `s` outputs its last iterate.
///
/// # Privacy
/// Averaging is part of the released function and changes the sensitivity: under strong convexity the early iterates differ
/// more than the last one does, so that uniform averaging *raises* it (see [`growth`](crate::growth)).
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum Averaging {
    /// The last iterate.
    #[default]
    Last,
    /// The mean of all iterates.
    Uniform,
    /// The mean of the last iterates.
    Suffix {
        /// Number of iterates.
        updates: u64,
    },
    /// Weights proportional to t.
    Polynomial,
    /// An exponential moving average of decay d, normalised.
    Exponential {
        /// d in (0, 1): about `1/(1 - d)` iterates have weight.
        decay: f64,
    },
    /// Arbitrary weights.
    Coefficients {
        /// One weight per update.
        values: Vec<f64>,
    },
    /// Restarts from the mean of the last iterates, at regular intervals.
    Restarts {
        /// Number of updates between restarts.
        updates: u64,
    },
}

impl Averaging {
    /// Checks the parameters for a run of `updates` updates.
    ///
    /// # Errors
    /// [`Error::Count`] for an empty suffix or stretch, [`Error::Length`] for a list without exactly one number per update,
    /// [`Error::OutOfRange`] for a number that is not finite.
    pub fn prepare(&self, updates: u64) -> Result<AveragingWeights, Error> {
        let total = updates as f64;
        let rule = match self {
            Self::Last => Rule::Suffix { first: updates, weight: 1.0 },
            Self::Uniform => Rule::Suffix { first: 1, weight: 1.0 / total },
            Self::Suffix { updates: 0 } => {
                return Err(Error::Count { name: "averaging suffix", value: 0, range: "1 or more" });
            }
            Self::Suffix { updates: s } => {
                let s = (*s).min(updates);
                Rule::Suffix { first: updates - s + 1, weight: 1.0 / s as f64 }
            }
            Self::Polynomial => Rule::Polynomial { slope: 2.0 / (total * (total + 1.0)) },
            Self::Exponential { decay } => {
                if !(*decay > 0.0 && *decay < 1.0) {
                    return Err(Error::OutOfRange { name: "decay of the average", value: *decay, range: "(0, 1)" });
                }
                // 1 - d^T
                let sum = -(total * decay.ln()).exp_m1();
                Rule::Exponential { logarithm: decay.ln(), first: (1.0 - decay) / sum }
            }
            Self::Coefficients { values } => {
                if values.len() as u64 != updates {
                    let found = values.len() as u64;
                    return Err(Error::Length { name: "the list of averaging coefficients", found, updates });
                }
                if let Some(&value) = values.iter().find(|value| !value.is_finite()) {
                    return Err(Error::OutOfRange { name: "averaging coefficient", value, range: "(-inf, inf)" });
                }
                Rule::Coefficients(values.clone())
            }
            Self::Restarts { updates: 0 } => {
                return Err(Error::Count { name: "updates between restarts", value: 0, range: "1 or more" });
            }
            // A run within one stretch has no restart.
            Self::Restarts { updates: every } if *every > updates => Rule::Suffix { first: updates, weight: 1.0 },
            Self::Restarts { updates: every } if *every == updates => Rule::Suffix { first: 1, weight: 1.0 / total },
            Self::Restarts { updates: every } => {
                Rule::Restarts { every: *every, weight: 1.0 / *every as f64, whole: updates - updates % every }
            }
        };
        Ok(AveragingWeights { rule, updates })
    }
}

/// A checked [`Averaging`]: the weight of each iterate as a pure function of its number.
#[derive(Debug, Clone, PartialEq)]
pub struct AveragingWeights {
    rule: Rule,
    updates: u64,
}

#[derive(Debug, Clone, PartialEq)]
enum Rule {
    Suffix {
        first: u64,
        weight: f64,
    },
    Polynomial {
        slope: f64,
    },
    Exponential {
        /// ln d.
        logarithm: f64,
        /// The weight of the last iterate.
        first: f64,
    },
    Coefficients(Vec<f64>),
    /// All stretches up to update `whole` are complete.
    Restarts {
        every: u64,
        weight: f64,
        whole: u64,
    },
}

impl AveragingWeights {
    /// Returns the weight of the iterate after update `t`, counted from 1, in the average of its stretch (without restarts, of
    /// the whole run).
    #[inline]
    pub fn at(&self, t: u64) -> f64 {
        match &self.rule {
            Rule::Suffix { first, weight } => {
                if t >= *first {
                    *weight
                } else {
                    0.0
                }
            }
            Rule::Polynomial { slope } => slope * t as f64,
            Rule::Exponential { logarithm, first } => first * (self.updates.saturating_sub(t) as f64 * logarithm).exp(),
            Rule::Coefficients(values) => {
                t.checked_sub(1).and_then(|i| values.get(usize::try_from(i).ok()?)).copied().unwrap_or(0.0)
            }
            Rule::Restarts { weight, whole, .. } if t <= *whole => *weight,
            Rule::Restarts { .. } => f64::from(u8::from(t == self.updates)),
        }
    }

    /// Returns whether the run restarts from its average after update `t`; a new average starts then.
    #[inline]
    pub fn restarts_after(&self, t: u64) -> bool {
        matches!(self.rule, Rule::Restarts { every, .. } if t < self.updates && t.is_multiple_of(every))
    }

    /// Returns the maximum number of iterates averaged at once.
    pub(crate) fn longest_stretch(&self) -> u64 {
        match self.rule {
            Rule::Restarts { every, .. } => every,
            _ => self.updates,
        }
    }

    /// Returns whether the average without some of the iterates is their average after a division by the sum of the other weights.
    pub(crate) fn may_miss_some(&self) -> bool {
        !matches!(self.rule, Rule::Coefficients(_) | Rule::Restarts { .. })
    }

    /// Returns whether the output is the last iterate itself, with weight 1.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self.rule, Rule::Suffix { first, weight } if first == self.updates && weight == 1.0)
    }

    /// Returns `Σ_t |α_t|` over a stretch, rounded up.
    pub(crate) fn total(&self) -> f64 {
        match &self.rule {
            Rule::Suffix { .. } | Rule::Polynomial { .. } | Rule::Restarts { .. } => {
                if self.is_last() {
                    1.0
                } else {
                    1.0 + 1e-14
                }
            }
            // The relative error of the logarithm, times an exponent of at most 750, and that of the sum's complement.
            Rule::Exponential { .. } => 1.0 + 1e-9,
            Rule::Coefficients(values) => {
                values.iter().map(|value| value.abs()).sum::<f64>() * (1.0 + 2.0 * f64::EPSILON * values.len() as f64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_sum_to_one() {
        for (averaging, updates) in [
            (Averaging::Last, 7),
            (Averaging::Uniform, 7),
            (Averaging::Suffix { updates: 3 }, 7),
            (Averaging::Suffix { updates: 30 }, 7),
            (Averaging::Polynomial, 7),
            (Averaging::Exponential { decay: 0.5 }, 7),
            (Averaging::Exponential { decay: 0.9999 }, 7),
            (Averaging::Suffix { updates: 7 }, 1000),
        ] {
            let weights = averaging.prepare(updates).unwrap();
            let sum: f64 = (1..=updates).map(|t| weights.at(t)).sum();
            assert!((sum - 1.0).abs() < 1e-14, "{averaging:?}: {sum}");
            assert!(weights.total() >= sum);
        }
        assert!(Averaging::Last.prepare(5).unwrap().is_last());
        assert!(!Averaging::Uniform.prepare(5).unwrap().is_last());
    }

    #[test]
    fn stretches_have_weights_of_their_own() {
        let weights = Averaging::Restarts { updates: 3 }.prepare(8).unwrap();
        let third = 1.0 / 3.0;
        assert_eq!(
            (1..=8).map(|t| weights.at(t)).collect::<Vec<_>>(),
            [third, third, third, third, third, third, 0.0, 1.0]
        );
        assert_eq!((1..=8).filter(|&t| weights.restarts_after(t)).collect::<Vec<_>>(), [3, 6]);
        // A run that ends with a complete stretch outputs its mean, without a restart.
        let whole = Averaging::Restarts { updates: 4 }.prepare(8).unwrap();
        assert_eq!((1..=8).filter(|&t| whole.restarts_after(t)).collect::<Vec<_>>(), [4]);
        assert_eq!(whole.at(8), 0.25);
        let prepare = |updates| Averaging::Restarts { updates }.prepare(8).unwrap();
        assert_eq!(prepare(8), Averaging::Uniform.prepare(8).unwrap());
        assert_eq!(prepare(9), Averaging::Last.prepare(8).unwrap());
        assert!(Averaging::Restarts { updates: 0 }.prepare(8).is_err());
        assert!((1..=8).all(|t| !Averaging::Uniform.prepare(8).unwrap().restarts_after(t)));
    }

    #[test]
    fn refuses_lists_that_do_not_fit() {
        assert!(Averaging::Suffix { updates: 0 }.prepare(3).is_err());
        for decay in [0.0, 1.0, -0.5, f64::NAN] {
            assert!(Averaging::Exponential { decay }.prepare(3).is_err(), "{decay}");
        }
        assert!(Averaging::Coefficients { values: vec![1.0] }.prepare(3).is_err());
        assert!(Averaging::Coefficients { values: vec![1.0, f64::NAN] }.prepare(2).is_err());
    }
}
