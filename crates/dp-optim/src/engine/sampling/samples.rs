//! The loop for samples of any kind.

use dp_data::Samples;
use dp_losses::ChoosesFrom;
use nalgebra::RealField;

use super::{BatchKey, SampledRun, Sampler};
use crate::engine::control::{Control, Pace};
use crate::engine::expect_rows;
use crate::engine::gradient::SamplesGradient;
use crate::engine::iterate::Buffered;
use crate::engine::run_state::AfterUpdate;
use crate::engine::step_batches::{Batched, Driven};
use crate::engine::update::UpdateRule;
use crate::error::Error;

impl SampledRun {
    /// Makes all updates, each on its own batch of `samples`, drawn under `key`: as [`run`](Self::run), for models whose batches
    /// are not rows. After each update the observer sees the run, and may cancel it. A run that goes on from a state makes
    /// the updates that are left.
    ///
    /// # Privacy
    /// As [`run`](Self::run). Null records are omitted from what is drawn, so that one that is drawn leaves the same bits as one
    /// that is not. The iterates are as private as the gradient estimate.
    ///
    /// # Errors
    /// [`CountChanged`](dp_data::SourceError::CountChanged) for samples whose number is not `n`, [`Error::State`],
    /// [`Error::Interrupted`], and errors of the gradient estimate.
    pub fn run_on_samples<F, M, S, G, U>(
        &self,
        model: &M,
        samples: &S,
        iterate: &mut Buffered<F, G, U>,
        key: BatchKey,
        control: &mut Control<'_>,
        observer: &mut dyn FnMut(&AfterUpdate<'_, F>),
    ) -> Result<(), Error>
    where
        F: RealField + Copy,
        S: Samples,
        M: ChoosesFrom<F, S>,
        G: SamplesGradient<F, M, S>,
        U: UpdateRule<F> + Clone,
    {
        expect_rows(self.n, samples.count())?;
        let (over, lost) = iterate.over();
        self.check_resumed(over, lost)?;
        if over > 0 && self.weights.restarts_after(over) {
            iterate.restart_at_average();
        }
        let mut sampler = Sampler::new(self.law, self.n, key.0)?;
        let batches = Batched::Drawn { n: self.n, law: self.law, steps: self.updates - over };
        let norm_scale = iterate.first_norm_scale();
        iterate.gradient().set_norm_scale(norm_scale);
        iterate.gradient().begin(&Driven { batches, workers: control.workers })?;
        let mut pace = Pace::nominal(control, self.n);
        let mut batch = Vec::new();
        let result = (over + 1..=self.updates).try_for_each(|update| {
            batch.clear();
            batch.extend(sampler.draw()?.iter().filter(|&&position| !samples.is_null(position)));
            batch.sort_unstable();
            let step_size = iterate.step(
                &self.step(update),
                |gradient, parameters, sum| gradient.estimate(model, parameters, samples, &batch, sum),
                |gradient, candidates| gradient.choose_step(model, samples, &batch, candidates),
            )?;
            let norm_scale = iterate.gradient().norm_scale();
            let state = || iterate.state_after(update, norm_scale);
            observer(&AfterUpdate::new((update, step_size), iterate.parameters(), &state));
            pace.check()?;
            if self.weights.restarts_after(update) {
                iterate.restart_at_average();
            }
            pace.advance(self.law.nominal_size() as usize)
        });
        iterate.gradient().end();
        result?;
        pace.finish()
    }

    /// Checks that a run can go on after so many updates, of which some were lost.
    fn check_resumed(&self, over: u64, lost: u64) -> Result<(), Error> {
        let why = if over > self.updates || lost > over {
            "it has made more updates than the run has"
        } else if lost > 0 && !self.weights.may_miss_some() {
            "some of its updates were lost, which this average does not allow"
        } else {
            return Ok(());
        };
        Err(Error::State { why })
    }
}
