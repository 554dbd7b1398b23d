//! Which records each step sees: the value that pays for a run and drives it.

use dp_mechanisms::steps::StepPlan;

use super::batches::BatchSizes;
use super::sampling::BatchLaw;
use crate::error::Error;

/// How the steps of a run choose their records, and how many steps there are.
///
/// [`NoisyGradient`](super::NoisyGradient) logs the cost of these steps and refuses to be driven by any other.
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
    /// Each step draws a batch of its own.
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
        /// How a pass is cut.
        sizes: BatchSizes,
        /// Number of passes.
        passes: u64,
    },
}

impl StepBatches {
    /// What turns the cost of a step into that of all.
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

    /// The most records that a step may see: of a Poisson batch all, however unlikely.
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

    /// Batches of a pass, the last one of what is left.
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

/// How the loop that drives a run makes its batches. Only the engine's loops make one.
#[derive(Debug)]
pub struct Driven<'d> {
    pub(super) batches: Batched<'d>,
}

/// See [`Driven`].
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
        /// Whether all passes have one order.
        one_order: bool,
    },
}

impl Driven<'_> {
    /// Whether these are the batches that were paid for. Passes are counted as they are taken.
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
