//! The gradient descent shared by all trainings of rankers.

use super::error::TrainError;
use crate::error::Error;
use crate::scorer::Scorer;
use crate::spectral::{Normalise, PowerIteration};

/// The tolerance of the spectral norms by which weight matrices are divided.
const COARSE: f64 = 1e-4;

/// Called before the first and after every update with the number of updates and the parameters.
pub type Observer<'o> = dyn FnMut(u64, &[f64]) + 'o;

/// Descent steps along a direction; optionally, weight matrices are normalised to spectral norm 1 after each step.
///
/// # Formula
/// ```text
/// θ ← θ - η_t d_t,   η_t = η (1 - ⌊4t/T⌋/4)      (constant without `falling`)
/// W ← W / ‖W‖        for each weight matrix W of θ
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Descent {
    /// T: number of updates.
    pub updates: u64,
    /// η: the first step size, for a mean of gradients.
    pub step: f64,
    /// True if steps are three quarters, half and a quarter as long in the second, third and last quarter of the updates.
    pub falling: bool,
    /// The normalisation of weight matrices by their spectral norms, if any. It costs no privacy.
    pub normalise: Option<Normalise>,
}

impl Default for Descent {
    /// 400 falling steps with first step size 1, without normalisation.
    fn default() -> Self {
        Self { updates: 400, step: 1.0, falling: true, normalise: None }
    }
}

impl Descent {
    /// Checks that there are updates and that the step size is positive and finite.
    ///
    /// # Errors
    /// [`Error::Zero`], [`TrainError::OutOfRange`].
    pub fn check(&self) -> Result<(), TrainError> {
        if self.updates == 0 {
            return Err(Error::Zero { what: "the number of updates" }.into());
        }
        if !(self.step > 0.0 && self.step.is_finite()) {
            return Err(TrainError::OutOfRange { name: "step", value: self.step, range: "(0, inf)" });
        }
        Ok(())
    }

    /// Returns η of an update, counted from 0.
    pub fn step_at(&self, update: u64) -> f64 {
        if !self.falling {
            return self.step;
        }
        let quarter = (u128::from(update) * 4 / u128::from(self.updates.max(1))).min(3);
        self.step * (1.0 - quarter as f64 / 4.0)
    }

    /// Descends from `parameters`. `direction` receives the update's number, the parameters and a buffer of zeros, and writes the
    /// mean of gradients to be subtracted into the buffer.
    ///
    /// # Errors
    /// Those of [`check`](Self::check) and of `direction`.
    pub fn run<S: Scorer>(
        &self,
        scorer: &S,
        mut parameters: Vec<f64>,
        mut direction: impl FnMut(u64, &[f64], &mut [f64]) -> Result<(), TrainError>,
        observer: &mut Observer<'_>,
    ) -> Result<Vec<f64>, TrainError> {
        self.check()?;
        if parameters.len() != scorer.parameters() {
            let (found, expected) = (parameters.len(), scorer.parameters());
            return Err(Error::Shape { what: "the start", found, expected }.into());
        }
        let matrices: Vec<_> = scorer.blocks().into_iter().filter(|block| block.name.starts_with('w')).collect();
        let mut iterations = vec![PowerIteration::within(COARSE); matrices.len()];
        let mut normalise = |parameters: &mut [f64]| {
            let Some(when) = self.normalise else { return };
            for (block, iteration) in matrices.iter().zip(&mut iterations) {
                iteration.normalise(&mut parameters[block.range.clone()], block.rows, block.columns, when);
            }
        };
        normalise(&mut parameters);
        observer(0, &parameters);
        let mut downhill = vec![0.0; parameters.len()];
        for update in 0..self.updates {
            downhill.fill(0.0);
            direction(update, &parameters, &mut downhill)?;
            let step = self.step_at(update);
            parameters.iter_mut().zip(&downhill).for_each(|(weight, along)| *weight -= step * along);
            normalise(&mut parameters);
            observer(update + 1, &parameters);
        }
        Ok(parameters)
    }
}
