//! A run of a linear model as data: everything that identifies it.

use core::fmt;

use dp_losses::LossKind;

use crate::algorithm::Algorithm;
use crate::dataset::DataSet;
use crate::knobs::Knobs;

/// Candidates of regularisation and passes.
pub(crate) const LAMBDAS: [f64; 3] = [1e-4, 1e-3, 1e-2];
pub(crate) const PASSES: [u64; 2] = [5, 10];

/// The step sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// The algorithm's default: `1/√n` (convex) and `min(1/β, 1/(λt))` (strongly convex) for bolt-on and without privacy,
    /// `1/√t` for SCS13, the published ones for BST14.
    Usual,
    /// `c/√t`.
    InverseSqrt(f64),
    /// `1/(λt)`.
    InverseStrongConvexity,
    /// The total length recommended by [`dp_optim::defaults`] from public numbers, in the schedule of the algorithm.
    Suited,
    /// The schedule of the algorithm with this initial step size.
    First(f64),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usual => f.write_str("usual"),
            Self::InverseSqrt(c) => write!(f, "{c}/sqrt(t)"),
            Self::InverseStrongConvexity => f.write_str("1/(lambda t)"),
            Self::Suited => f.write_str("suited"),
            Self::First(step) => write!(f, "from {step}"),
        }
    }
}

/// The choice of the passes and λ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tuning {
    /// Those of the setting.
    Given,
    /// Algorithm 3 of Wu et al. 2017: each candidate is trained on a portion of the rows with the whole budget, and one is
    /// selected by the exponential mechanism from its errors on a further portion.
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

/// The privacy budget of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Privacy {
    /// No privacy.
    None,
    /// Pure differential privacy: delta is 0.
    Pure {
        /// Epsilon of the whole model.
        epsilon: f64,
    },
    /// Delta is `1/n²`.
    Approximate {
        /// Epsilon of the whole model.
        epsilon: f64,
    },
    /// Delta is given.
    WithDelta {
        /// Epsilon of the whole model.
        epsilon: f64,
        /// Delta of the whole model.
        delta: f64,
    },
}

impl Privacy {
    /// Returns epsilon, if there is one.
    pub fn epsilon(self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Pure { epsilon } | Self::Approximate { epsilon } | Self::WithDelta { epsilon, .. } => Some(epsilon),
        }
    }

    /// Returns delta for `n` records.
    pub fn delta(self, n: u64) -> f64 {
        match self {
            Self::None | Self::Pure { .. } => 0.0,
            Self::Approximate { .. } => (n as f64).powi(-2),
            Self::WithDelta { delta, .. } => delta,
        }
    }
}

impl fmt::Display for Privacy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Pure { epsilon } => write!(f, "epsilon {epsilon}"),
            Self::Approximate { epsilon } => write!(f, "epsilon {epsilon} delta 1/n^2"),
            Self::WithDelta { epsilon, delta } => write!(f, "epsilon {epsilon} delta {delta}"),
        }
    }
}

/// The neighbouring relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbours {
    /// One record is replaced by another.
    ReplaceOne,
    /// One record is present or replaced by a null record.
    AddRemove,
}

/// A run except its repetition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// The data set.
    pub data: DataSet,
    /// Number of training rows, drawn at random for each repetition: the state of a single pass after that many rows.
    pub rows: Option<u64>,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The loss.
    pub loss: LossKind,
    /// λ; 0 is the convex case. Otherwise the algorithms of the first papers keep iterates within `1/λ`.
    pub lambda: f64,
    /// Coefficient of `‖w‖₁`.
    pub l1: f64,
    /// The budget.
    pub privacy: Privacy,
    /// The neighbouring relation.
    pub neighbours: Neighbours,
    /// The choice of the passes and λ.
    pub tuning: Tuning,
    /// Number of passes.
    pub passes: u64,
    /// Number of records in a batch.
    pub batch_size: u64,
    /// Step sizes.
    pub step: Step,
    /// Parameters of specific algorithms.
    pub knobs: Knobs,
    /// True if rows are read from a file on disk in blocks, in the file's order.
    pub on_disk: bool,
    /// True if the run is timed: then no other run executes at the same time.
    pub timed: bool,
}

impl Setting {
    /// Creates logistic regression in the convex case, with ten passes and batches of 50.
    pub fn new(data: DataSet, algorithm: Algorithm, privacy: Privacy) -> Self {
        Self {
            data,
            rows: None,
            algorithm,
            loss: LossKind::Logistic,
            lambda: 0.0,
            l1: 0.0,
            privacy: if algorithm.is_private() { privacy } else { Privacy::None },
            neighbours: Neighbours::ReplaceOne,
            tuning: Tuning::Given,
            passes: 10,
            batch_size: 50,
            step: Step::Usual,
            knobs: Knobs::default(),
            on_disk: false,
            timed: false,
        }
    }

    /// Returns the trained settings: the setting itself, or the candidates of [`Tuning::Portions`].
    ///
    /// As in the paper, there are 5 or 10 passes, and in the strongly convex case λ is 0.0001, 0.001 or 0.01.
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
        if self.l1 > 0.0 {
            write!(f, "; l1 {}", self.l1)?;
        }
        write!(f, "{}", self.knobs)?;
        f.write_str(if self.neighbours == Neighbours::AddRemove { "; add-remove" } else { "" })?;
        f.write_str(if self.tuning == Tuning::Portions { "; tuned on portions" } else { "" })?;
        f.write_str(if self.on_disk { "; on disk" } else { "" })?;
        f.write_str(if self.timed { "; timed" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Cell;

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
            Setting { step: Step::Suited, ..base },
            Setting { step: Step::First(1.0), ..base },
            Setting { step: Step::First(2.0), ..base },
            Setting { l1: 0.1, ..base },
            Setting { l1: 0.2, ..base },
            Setting { neighbours: Neighbours::AddRemove, ..base },
            Setting { privacy: Privacy::WithDelta { epsilon: 0.1, delta: 1e-8 }, ..base },
            Setting { privacy: Privacy::WithDelta { epsilon: 0.1, delta: 1e-9 }, ..base },
            Setting { knobs: Knobs { restart_every: Some(0), ..Knobs::default() }, ..base },
            Setting { knobs: Knobs { restart_every: Some(1), ..Knobs::default() }, ..base },
            Setting { knobs: Knobs { falling: true, ..Knobs::default() }, ..base },
            Setting { knobs: Knobs { armijo: Some(0.1), ..Knobs::default() }, ..base },
            Setting { knobs: Knobs { shrink: Some(0.1), ..Knobs::default() }, ..base },
            Setting { knobs: Knobs { most_loss: Some(0.1), ..Knobs::default() }, ..base },
            Setting { knobs: Knobs { clip_decay: Some(0.1), ..Knobs::default() }, ..base },
            Setting { knobs: Knobs { selection: true, ..Knobs::default() }, ..base },
            Setting { on_disk: true, ..base },
            Setting { timed: true, ..base },
        ];
        let mut keys: Vec<String> = changed.iter().map(|&setting| Cell::new(setting, 0).key()).collect();
        keys.push(Cell::new(base, 1).key());
        // Stored records have keys from before `Knobs` existed.
        let text = "data banknote; algorithm bolt-on; loss logistic; lambda 0; privacy epsilon 0.1; passes 10; batch 50; step usual";
        assert_eq!(base.to_string(), text);
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }

    /// Old records are found by these keys: the first eight bytes of the SHA-256 of the names, computed by another program.
    #[test]
    fn keys_of_records_that_are_kept() {
        let first = Setting::new(DataSet::Banknote, Algorithm::Ours, Privacy::Pure { epsilon: 0.1 });
        let second = Setting {
            rows: Some(1000),
            loss: LossKind::Squared,
            lambda: 0.001,
            passes: 50,
            batch_size: 3907,
            step: Step::Suited,
            l1: 1e-4,
            knobs: Knobs { restart_every: Some(5), falling: true, ..Knobs::default() },
            neighbours: Neighbours::AddRemove,
            timed: true,
            ..Setting::new(DataSet::Mnist, Algorithm::DpBlsgd, Privacy::WithDelta { epsilon: 0.4, delta: 1e-8 })
        };
        assert_eq!(Cell::new(first, 0).key(), "620ae67f033036a8");
        assert_eq!(Cell::new(second, 7).key(), "eb832472bcdf7c22");
    }
}
