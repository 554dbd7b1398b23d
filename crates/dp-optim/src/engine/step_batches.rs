//! The batches of a run's steps: the value that determines the cost of a run and drives it.

use dp_data::Workers;
use dp_mechanisms::steps::StepPlan;

use super::batches::BatchSizes;
use super::sampling::BatchLaw;
use crate::error::Error;

/// The law of the steps' batches, and the number of steps.
///
/// [`NoisyGradient`](super::NoisyGradient) logs the cost of these steps and refuses any other batches.
///
/// # Examples
/// ```
/// use dp_mechanisms::steps::StepPlan;
/// use dp_optim::engine::{BatchLaw, StepBatches};
///
/// let drawn = StepBatches::Drawn { n: 20_000, law: BatchLaw::Poisson { mean_darts: 200 }, steps: 50 };
/// assert!(matches!(drawn.plan()?, StepPlan::PoissonSampled { steps: 50, .. }));
/// assert_eq!(drawn.most_examples()?, 20_000);
/// # Ok::<(), dp_optim::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepBatches {
    /// Each step draws an independent batch.
    Drawn {
        /// Number of records.
        n: u64,
        /// The law of a batch.
        law: BatchLaw,
        /// Number of steps.
        steps: u64,
    },
    /// Passes over all records, each cut into batches; a batch of all records is a pass of one step.
    Passes {
        /// Number of records.
        n: u64,
        /// The batch sizes of a pass.
        sizes: BatchSizes,
        /// Number of passes.
        passes: u64,
    },
}

impl StepBatches {
    /// Returns the step plan, which composes the cost of one step to that of all.
    ///
    /// # Errors
    /// Those of [`BatchLaw::sampling_rate`]; [`Error::Count`] for batches without records.
    pub fn plan(&self) -> Result<StepPlan, Error> {
        Ok(match self {
            &Self::Drawn { n, law, steps } => {
                let sampling_rate = law.sampling_rate(n)?;
                match law {
                    BatchLaw::Poisson { .. } => StepPlan::PoissonSampled { sampling_rate, steps },
                    BatchLaw::FixedSize { .. } => StepPlan::SampledWithoutReplacement { sampling_rate, steps },
                }
            }
            Self::Passes { passes, .. } => {
                StepPlan::DisjointBatches { passes: *passes, steps_per_pass: self.steps_per_pass()? }
            }
        })
    }

    /// Returns the maximum number of records in a step; for a Poisson batch all records, however unlikely.
    ///
    /// # Errors
    /// [`Error::Count`] for batches without records.
    pub fn most_examples(&self) -> Result<u64, Error> {
        match self {
            &Self::Drawn { n, law: BatchLaw::Poisson { .. }, .. } => Ok(n),
            &Self::Drawn { law: BatchLaw::FixedSize { size }, .. } => Ok(size),
            Self::Passes { n, sizes, .. } => {
                self.steps_per_pass()?;
                Ok((sizes.largest() as u64).min(*n))
            }
        }
    }

    /// Returns the number of batches of a pass; the last one holds the remaining records.
    fn steps_per_pass(&self) -> Result<u64, Error> {
        let none = Error::Count { name: "batch size", value: 0, range: "1 or more" };
        match self {
            Self::Drawn { .. } => Ok(1),
            Self::Passes { n, sizes: BatchSizes::Equal(size), .. } => {
                if *size == 0 || *n == 0 {
                    Err(none)
                } else {
                    Ok(n.div_ceil(*size as u64))
                }
            }
            Self::Passes { sizes: BatchSizes::Listed(sizes), .. } => {
                if sizes.is_empty() || sizes.contains(&0) {
                    Err(none)
                } else {
                    Ok(sizes.len() as u64)
                }
            }
        }
    }
}

/// The batches of the loop that drives a run. Only the engine's loops create one.
#[derive(Debug)]
pub struct Driven<'d> {
    pub(super) batches: Batched<'d>,
    pub(super) workers: Workers,
}

#[derive(Debug)]
pub(super) enum Batched<'d> {
    Drawn {
        n: u64,
        law: BatchLaw,
        steps: u64,
    },
    Passes {
        n: u64,
        sizes: &'d BatchSizes,
        /// True if all passes have the same order.
        one_order: bool,
    },
}

impl Driven<'_> {
    /// Returns whether these are the batches that were paid for. Passes are counted as they are taken.
    pub(super) fn are(&self, paid: &StepBatches) -> bool {
        match (&self.batches, paid) {
            (Batched::Drawn { n, law, steps }, StepBatches::Drawn { n: paid_n, law: paid_law, steps: paid_steps }) => {
                n == paid_n && law == paid_law && steps <= paid_steps
            }
            (Batched::Passes { n, sizes, .. }, StepBatches::Passes { n: paid_n, sizes: paid_sizes, .. }) => {
                n == paid_n && *sizes == paid_sizes
            }
            _ => false,
        }
    }
}
