//! The kernels whose code depends on the loss.
//!
//! For the losses that are chosen at run time they are compiled here, once for each loss and float, and not again in each crate
//! that trains.

use dp_data::Rows;

use super::{Kernels, Scratch, Step};
use crate::absolute::Absolute;
use crate::hinge::Hinge;
use crate::logistic::Logistic;
use crate::loss::Loss;
use crate::real::Real;
use crate::scalar_loss::ScalarLoss;
use crate::squared::Squared;

/// A computation on a batch, for any loss.
pub struct LossKernel<'a, F> {
    kernels: Kernels,
    computation: Computation<'a, F>,
}

enum Computation<'a, F> {
    Step(Rows<'a, F>, Step<'a, F>),
    Derivatives { targets: &'a [F], valid: Option<&'a [bool]>, scratch: &'a mut Scratch<F> },
}

impl<'a, F: Real> LossKernel<'a, F> {
    /// See [`Kernels::step`].
    pub(crate) fn step(kernels: Kernels, rows: Rows<'a, F>, step: Step<'a, F>) -> Self {
        Self { kernels, computation: Computation::Step(rows, step) }
    }

    /// See [`Kernels::derivatives`].
    pub(crate) fn derivatives(
        kernels: Kernels,
        targets: &'a [F],
        valid: Option<&'a [bool]>,
        scratch: &'a mut Scratch<F>,
    ) -> Self {
        Self { kernels, computation: Computation::Derivatives { targets, valid, scratch } }
    }

    #[inline(always)]
    pub(crate) fn compute<L: Loss<F>>(self, loss: L) {
        match self.computation {
            Computation::Step(rows, step) => self.kernels.step(loss, rows, step),
            Computation::Derivatives { targets, valid, scratch } => {
                self.kernels.derivatives(loss, targets, valid, scratch);
            }
        }
    }
}

/// A float whose kernels are compiled in this crate.
pub trait Compiled: Sized {
    /// Computes with a loss that was chosen at run time: the choice is made once for a batch.
    fn compute(kernel: LossKernel<'_, Self>, loss: ScalarLoss);
}

macro_rules! compiled {
    ($($float:ty),+) => {$(
        impl Compiled for $float {
            fn compute(kernel: LossKernel<'_, Self>, loss: ScalarLoss) {
                match loss {
                    ScalarLoss::Logistic => kernel.compute(Logistic),
                    ScalarLoss::HuberSvm(loss) => kernel.compute(loss),
                    ScalarLoss::Hinge => kernel.compute(Hinge),
                    ScalarLoss::Squared => kernel.compute(Squared),
                    ScalarLoss::HuberRegression(loss) => kernel.compute(loss),
                    ScalarLoss::LogCosh(loss) => kernel.compute(loss),
                    ScalarLoss::Absolute => kernel.compute(Absolute),
                    ScalarLoss::Custom(loss) => kernel.compute(loss),
                }
            }
        }
    )+};
}

compiled!(f32, f64);
