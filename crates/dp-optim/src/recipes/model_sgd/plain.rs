//! SGD for a model of any kind without privacy.

use dp_data::Samples;
use dp_losses::ChoosesFrom;
use dp_mechanisms::ReleaseRng;
use nalgebra::RealField;

use super::check_descent;
use crate::averaging::Averaging;
use crate::descent::Descent;
use crate::engine::{Adapts, AfterUpdate, BatchKey, BatchLaw, Buffered, Control, PlainGradient, SampledRun, Start};
use crate::error::{Error, non_negative};
use crate::float::FloatKind;
use crate::recipes::noisy_run::rule::Rule;
use crate::recipes::non_private::NonPrivate;
use crate::schedule::Schedule;

/// SGD for a model of any kind, with neither clipping nor noise: the baseline of [`ModelSgd`](super::ModelSgd). Batches are drawn, of
/// fixed size.
///
/// # Examples
/// ```
/// use dp_optim::recipes::NonPrivateSgd;
/// let recipe = NonPrivateSgd { steps: 100, ..NonPrivateSgd::new() };
/// assert_eq!(recipe.batch_size, 128);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct NonPrivateSgd {
    /// b: number of samples in a step.
    pub batch_size: u64,
    /// T: number of steps.
    pub steps: u64,
    /// The descent method; ADMM and consensus are refused.
    pub descent: Descent,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²`.
    pub lambda: f64,
    /// The step sizes.
    pub schedule: Schedule,
    /// The combination of the iterates that is the model.
    pub averaging: Averaging,
    /// The floating-point type of training.
    pub float: FloatKind,
}

impl NonPrivateSgd {
    /// Creates a recipe with batches of 128, 5000 steps of size 0.05, Nesterov's momentum 0.9 and the last iterate, in single
    /// precision.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self {
            batch_size: 128,
            steps: 5000,
            descent: Descent::Accelerated { momentum: 0.9 },
            lambda: 0.0,
            schedule: Schedule::Constant { step: 0.05 },
            averaging: Averaging::Last,
            float: FloatKind::F32,
        }
    }

    /// Trains the model on `samples` from `start`. After each step the observer sees the run.
    ///
    /// # Errors
    /// Parameters outside their range, another floating-point type than stated, a batch larger than the data,
    /// [`Error::State`], and [`Error::Interrupted`].
    pub fn train<F, M, S>(
        &self,
        model: &M,
        samples: &S,
        start: impl Into<Start<F>>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
        observer: &mut dyn FnMut(&AfterUpdate<'_, F>),
    ) -> Result<NonPrivate<Vec<F>>, Error>
    where
        F: RealField + Copy,
        S: Samples,
        M: ChoosesFrom<F, S>,
    {
        self.float.expect::<F>()?;
        let Start { parameters: start, resumed } = start.into();
        let (planned, found) = (model.parameters() as u64, start.len() as u64);
        if planned != found {
            return Err(Error::Shape { name: "parameters", planned, found });
        }
        if self.steps == 0 {
            return Err(Error::Count { name: "steps", value: 0, range: "1 or more" });
        }
        check_descent(self.descent)?;
        let lambda = non_negative("lambda", self.lambda)?;
        let (n, law) = (samples.count(), BatchLaw::FixedSize { size: self.batch_size });
        let weights = self.averaging.prepare(self.steps)?;
        let gradient = PlainGradient::new(model, usize::try_from(self.batch_size).unwrap_or(usize::MAX));
        let rule = Rule::new(self.descent, (lambda, None), None, 0.0, &start);
        let mut iterate = Buffered::new(start, !weights.is_last(), gradient, rule);
        resumed.map_or(Ok(()), |state| iterate.resume(state, Adapts::default()))?;
        let run = SampledRun {
            n,
            law,
            updates: self.steps,
            divisor: law.mean_size(n)?,
            steps: self.schedule.prepare(self.steps)?,
            weights,
        };
        run.run_on_samples(model, samples, &mut iterate, BatchKey::draw(rng), control, observer)?;
        Ok(NonPrivate::new(iterate.into_parts().0))
    }
}
