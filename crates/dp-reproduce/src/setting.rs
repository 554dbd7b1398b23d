//! One run of an experiment as data: everything that identifies it.

use core::fmt;

use dp_losses::LossKind;
use sha2::{Digest, Sha256};

use crate::algorithm::Algorithm;
use crate::dataset::DataSet;
use crate::seed;

/// Raised when the code changes what a run of the same setting measures, so that older records are not taken for it.
const REVISION: u32 = 1;

/// Regularisation and passes that are chosen among.
pub(crate) const LAMBDAS: [f64; 3] = [1e-4, 1e-3, 1e-2];
pub(crate) const PASSES: [u64; 2] = [5, 10];

/// The step sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// The algorithm's own: `1/√n` (convex) and `min(1/β, 1/(λt))` (strongly convex) for bolt-on and without privacy,
    /// `1/√t` for SCS13, the published ones for BST14.
    Usual,
    /// `c/√t`.
    InverseSqrt(f64),
    /// `1/(λt)`.
    InverseStrongConvexity,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usual => f.write_str("usual"),
            Self::InverseSqrt(c) => write!(f, "{c}/sqrt(t)"),
            Self::InverseStrongConvexity => f.write_str("1/(lambda t)"),
        }
    }
}

/// Who chooses the passes and λ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tuning {
    /// They are those of the setting.
    Given,
    /// Algorithm 3 of Wu et al. 2017: each candidate learns on a portion of the rows with the whole budget, and one is
    /// drawn by the exponential mechanism from its mistakes on one more portion.
    Portions,
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Given => "given",
            Self::Portions => "portions",
        })
    }
}

/// What a run is to be private to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Privacy {
    /// Not at all.
    None,
    /// Pure: delta is 0.
    Pure {
        /// Epsilon of the whole model.
        epsilon: f64,
    },
    /// Delta is `1/n²`.
    Approximate {
        /// Epsilon of the whole model.
        epsilon: f64,
    },
}

impl Privacy {
    /// Epsilon, if there is one.
    pub fn epsilon(self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Pure { epsilon } | Self::Approximate { epsilon } => Some(epsilon),
        }
    }

    /// Delta for `n` records.
    pub fn delta(self, n: u64) -> f64 {
        match self {
            Self::None | Self::Pure { .. } => 0.0,
            Self::Approximate { .. } => (n as f64).powi(-2),
        }
    }
}

impl fmt::Display for Privacy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Pure { epsilon } => write!(f, "epsilon {epsilon}"),
            Self::Approximate { epsilon } => write!(f, "epsilon {epsilon} delta 1/n^2"),
        }
    }
}

/// A run but for its repetition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// What is learnt from.
    pub data: DataSet,
    /// Only so many of the training rows, drawn at random for each repetition: where a single pass had come after them.
    pub rows: Option<u64>,
    /// What learns.
    pub algorithm: Algorithm,
    /// The loss.
    pub loss: LossKind,
    /// λ; 0 is the convex case. Otherwise iterates stay within `1/λ`.
    pub lambda: f64,
    /// The budget.
    pub privacy: Privacy,
    /// Who chooses the passes and λ.
    pub tuning: Tuning,
    /// Passes.
    pub passes: u64,
    /// Records in a batch.
    pub batch_size: u64,
    /// Step sizes.
    pub step: Step,
    /// Rows come from a file on disk, a block at a time, in the file's order.
    pub on_disk: bool,
    /// The time is what counts: nothing else runs meanwhile.
    pub timed: bool,
}

impl Setting {
    /// Logistic regression, convex, ten passes with batches of 50.
    pub fn new(data: DataSet, algorithm: Algorithm, privacy: Privacy) -> Self {
        Self {
            data,
            rows: None,
            algorithm,
            loss: LossKind::Logistic,
            lambda: 0.0,
            privacy: if algorithm == Algorithm::Noiseless { Privacy::None } else { privacy },
            tuning: Tuning::Given,
            passes: 10,
            batch_size: 50,
            step: Step::Usual,
            on_disk: false,
            timed: false,
        }
    }

    /// What is trained: the setting itself, or what [`Tuning::Portions`] chooses among.
    ///
    /// As in the paper, 5 or 10 passes, and in the strongly convex case λ of 0.0001, 0.001 or 0.01.
    pub fn candidates(&self) -> Vec<Self> {
        match self.tuning {
            Tuning::Given => vec![*self],
            Tuning::Portions => {
                let lambdas = if self.lambda > 0.0 { &LAMBDAS[..] } else { &[0.0] };
                let one = |passes| move |&lambda| Self { lambda, passes, tuning: Tuning::Given, ..*self };
                PASSES.iter().flat_map(|&passes| lambdas.iter().map(one(passes))).collect()
            }
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data {}; ", self.data)?;
        if let Some(rows) = self.rows {
            write!(f, "rows {rows}; ")?;
        }
        write!(
            f,
            "algorithm {}; loss {}; lambda {}; privacy {}; passes {}; batch {}; step {}",
            self.algorithm, self.loss, self.lambda, self.privacy, self.passes, self.batch_size, self.step
        )?;
        f.write_str(if self.tuning == Tuning::Portions { "; tuned on portions" } else { "" })?;
        f.write_str(if self.on_disk { "; on disk" } else { "" })?;
        f.write_str(if self.timed { "; timed" } else { "" })
    }
}

/// A run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Everything but the repetition.
    pub setting: Setting,
    /// Which repetition, from 0.
    pub repetition: u32,
}

impl Cell {
    /// Sixteen hexadecimal digits that change when anything about the run changes.
    pub fn key(&self) -> String {
        let hash = Sha256::digest(self.to_string().as_bytes());
        hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The seed of everything random in this run.
    pub fn seed(&self) -> u64 {
        seed::of(&self.to_string())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; repetition {}; revision {REVISION}", self.setting, self.repetition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_changes_the_key() {
        let base = Setting::new(DataSet::Banknote, Algorithm::Ours, Privacy::Pure { epsilon: 0.1 });
        let changed = [
            base,
            Setting { data: DataSet::Sphere, ..base },
            Setting { data: DataSet::MadeUp { thousands: 1 }, ..base },
            Setting { data: DataSet::MadeUp { thousands: 2 }, ..base },
            Setting { rows: Some(10), ..base },
            Setting { algorithm: Algorithm::OursAsPublished, ..base },
            Setting { loss: LossKind::Squared, ..base },
            Setting { lambda: 0.1, ..base },
            Setting { privacy: Privacy::Approximate { epsilon: 0.1 }, ..base },
            Setting { privacy: Privacy::Pure { epsilon: 0.2 }, ..base },
            Setting { privacy: Privacy::None, ..base },
            Setting { tuning: Tuning::Portions, ..base },
            Setting { passes: 11, ..base },
            Setting { batch_size: 51, ..base },
            Setting { step: Step::InverseSqrt(1.0), ..base },
            Setting { step: Step::InverseSqrt(10.0), ..base },
            Setting { step: Step::InverseStrongConvexity, ..base },
            Setting { on_disk: true, ..base },
            Setting { timed: true, ..base },
        ];
        let mut keys: Vec<String> = changed.iter().map(|&setting| Cell { setting, repetition: 0 }.key()).collect();
        keys.push(Cell { setting: base, repetition: 1 }.key());
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }
}
