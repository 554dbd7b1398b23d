//! The loop for samples of any kind.

use core::ops::RangeInclusive;

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
    /// Makes some of the updates, counted from 1, each on its own batch of `samples`, drawn under `key`: as
    /// [`run_part`](Self::run_part), for models whose batches are not rows.
    ///
    /// # Privacy
    /// As [`run`](Self::run). Null records are omitted from what is drawn, so that one that is drawn leaves the same bits as one
    /// that is not.
    ///
    /// # Errors
    /// [`CountChanged`](dp_data::SourceError::CountChanged) for samples whose number is not `n`, [`Error::Interrupted`], and
    /// errors of the gradient estimate.
    pub fn run_on_samples<F, M, S, G, U>(
        &self,
        updates: RangeInclusive<u64>,
        model: &M,
        samples: &S,
        iterate: &mut Buffered<F, G, U>,
        key: BatchKey,
        control: &mut Control<'_>,
    ) -> Result<(), Error>
    where
        F: RealField + Copy,
        S: Samples,
        M: ChoosesFrom<F, S>,
        G: SamplesGradient<F, M, S>,
        U: UpdateRule<F>,
    {
        expect_rows(self.n, samples.count())?;
        let steps = (updates.end() + 1).saturating_sub(*updates.start());
        let batches = Batched::Drawn { n: self.n, law: self.law, steps };
        iterate.gradient().begin(&Driven { batches, workers: control.workers })?;
        let result = self.drive_on_samples(updates, model, samples, iterate, key, control);
        iterate.gradient().end();
        result
    }

    fn drive_on_samples<F, M, S, G, U>(
        &self,
        updates: RangeInclusive<u64>,
        model: &M,
        samples: &S,
        iterate: &mut Buffered<F, G, U>,
        key: BatchKey,
        control: &mut Control<'_>,
    ) -> Result<(), Error>
    where
        F: RealField + Copy,
        S: Samples,
        M: ChoosesFrom<F, S>,
        G: SamplesGradient<F, M, S>,
        U: UpdateRule<F>,
    {
        let mut sampler = Sampler::new(self.law, self.n, key.0)?;
        let mut pace = Pace::nominal(control, self.n);
        let mut batch = Vec::new();
        for update in updates {
            batch.clear();
            batch.extend(sampler.draw()?.iter().filter(|&&position| !samples.is_null(position)));
            batch.sort_unstable();
            iterate.step(&self.step(update), |gradient, parameters, sum| {
                gradient.estimate(model, parameters, samples, &batch, sum)
            })?;
            if self.weights.restarts_after(update) {
                iterate.restart_at_average();
            }
            pace.advance(self.law.nominal_size() as usize)?;
        }
        pace.finish()
    }
}
