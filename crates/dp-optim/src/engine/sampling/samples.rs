//! The loop for samples of any kind.

use dp_data::Samples;
use dp_losses::ChoosesFrom;
use nalgebra::RealField;

use super::{BatchKey, SampledRun, Sampler};
use crate::engine::control::{Control, Pace};
use crate::engine::expect_rows;
use crate::engine::gradient::SamplesGradient;
use crate::engine::iterate::Buffered;
use crate::engine::step_batches::{Batched, Driven};
use crate::engine::update::UpdateRule;
use crate::error::Error;

impl SampledRun {
    /// Makes all updates, each on its own batch of `samples`, drawn under `key`: as [`run`](Self::run), for models whose batches
    /// are not rows. After each update the observer sees its number, from 1, and the iterate.
    ///
    /// # Privacy
    /// As [`run`](Self::run). Null records are omitted from what is drawn, so that one that is drawn leaves the same bits as one
    /// that is not. The iterates are as private as the gradient estimate.
    ///
    /// # Errors
    /// [`CountChanged`](dp_data::SourceError::CountChanged) for samples whose number is not `n`, [`Error::Interrupted`], and
    /// errors of the gradient estimate.
    pub fn run_on_samples<F, M, S, G, U>(
        &self,
        model: &M,
        samples: &S,
        iterate: &mut Buffered<F, G, U>,
        key: BatchKey,
        control: &mut Control<'_>,
        observer: &mut dyn FnMut(u64, &[F]),
    ) -> Result<(), Error>
    where
        F: RealField + Copy,
        S: Samples,
        M: ChoosesFrom<F, S>,
        G: SamplesGradient<F, M, S>,
        U: UpdateRule<F>,
    {
        expect_rows(self.n, samples.count())?;
        let mut sampler = Sampler::new(self.law, self.n, key.0)?;
        let batches = Batched::Drawn { n: self.n, law: self.law, steps: self.updates };
        iterate.gradient().begin(&Driven { batches, workers: control.workers })?;
        let mut pace = Pace::nominal(control, self.n);
        let mut batch = Vec::new();
        let result = (1..=self.updates).try_for_each(|update| {
            batch.clear();
            batch.extend(sampler.draw()?.iter().filter(|&&position| !samples.is_null(position)));
            batch.sort_unstable();
            iterate.step(&self.step(update), |gradient, parameters, sum| {
                gradient.estimate(model, parameters, samples, &batch, sum)
            })?;
            observer(update, iterate.parameters());
            if self.weights.restarts_after(update) {
                iterate.restart_at_average();
            }
            pace.advance(self.law.nominal_size() as usize)
        });
        iterate.gradient().end();
        result?;
        pace.finish()
    }
}
