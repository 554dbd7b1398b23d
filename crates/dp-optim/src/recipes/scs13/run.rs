//! The resolved run with noise in every update.

use dp_accountant::{DpEvent, EventLog};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::steps::StepPlan;
use dp_mechanisms::{LentRng, Released};

use super::noise::Calibrated;
use super::training::{Observation, Training};
use super::{NoiseScale, Scs13, Terms};
use crate::engine::Control;
use crate::error::Error;
use crate::recipes::algorithm::Run;
use crate::recipes::linear::size;
use crate::recipes::problem::{Admitted, Problem};
use crate::recipes::recipe::{RecordAdjacency, Summary};

/// A training with noise on the sum of every batch.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdatesRun {
    pub(crate) recipe: Scs13,
    pub(crate) problem: Problem,
    pub(crate) terms: Terms,
    pub(super) noise: Calibrated,
}

impl UpdatesRun {
    /// Creates the run; refuses noise that is not positive and finite, and steps that may exceed the range of the float type.
    pub(super) fn new(recipe: &Scs13, problem: &Problem, terms: Terms, noise: Calibrated) -> Result<Self, Error> {
        noise.scale.check()?;
        recipe.check_range(&terms, noise.mean_squared_norm(terms.dim).sqrt())?;
        Ok(Self { recipe: recipe.clone(), problem: *problem, terms, noise })
    }

    /// Returns the L2 sensitivity of the sum of a batch's gradients, rounding included.
    pub fn sensitivity(&self) -> f64 {
        self.terms.sensitivity
    }

    /// Returns the noise on the sum of each batch.
    pub fn noise(&self) -> NoiseScale {
        self.noise.scale
    }

    /// Returns the root of the expected squared norm of the noise on a batch's sum.
    pub fn noise_norm(&self) -> f64 {
        self.noise.mean_squared_norm(self.terms.dim).sqrt()
    }

    /// Returns the step plan, which determines how the steps compose.
    pub fn steps(&self) -> StepPlan {
        self.terms.steps
    }

    /// Trains, passing every update to `observe`, and returns the model with the log of its release.
    ///
    /// # Privacy
    /// The event covers the observed values as well as the released model. They may be published once the training has ended.
    ///
    /// # Errors
    /// As [`Planned::train`](crate::recipes::Planned::train).
    pub fn train_observing<F: Real, A: RecordAdjacency>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
        observe: impl FnMut(Observation<'_, F>),
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        self.problem.admit::<F, A>(&mut *source)?;
        control.check()?;
        let released = self.updates(source, rng, control, observe)?;
        source.finish()?;
        Ok(released)
    }

    fn updates<F: Real, A: RecordAdjacency>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
        observe: impl FnMut(Observation<'_, F>),
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let dim = size("dimension", self.problem.dim)?;
        let noise = self.noise.mechanism::<A>(&self.recipe, &self.terms)?;
        self.recipe.loss.visit_model(dim, Training { planned: self, noise, source, rng, control, observe })
    }
}

impl Run for UpdatesRun {
    fn event(&self) -> Result<DpEvent, Error> {
        let Terms { steps, sensitivity, dim, .. } = &self.terms;
        Ok(steps.event(self.noise.scale.event(*sensitivity, *dim)))
    }

    fn summary(&self) -> Summary {
        let recipe = &self.recipe;
        let momentum = recipe.descent.in_words();
        Summary {
            sensitivity: Some(self.sensitivity()),
            rows: self.problem.n.saturating_mul(recipe.passes),
            text: format!(
                "sensitivity {:.4e} of each of {} sums, noise of norm {:.4e} on each, {} passes, batches of {}{momentum}, lambda {:e}",
                self.sensitivity(),
                self.terms.steps.steps(),
                self.noise_norm(),
                recipe.passes,
                self.terms.batch_size,
                recipe.lambda
            ),
        }
    }

    fn train<F: Real, A: RecordAdjacency>(
        &self,
        rows: Admitted<'_, F, A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let source = rows.into_source();
        self.updates(source, rng, control, |_| {})
    }
}
