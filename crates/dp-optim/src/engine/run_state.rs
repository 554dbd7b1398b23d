//! The state of a run between two updates, from which a later run goes on.

/// The state of a run between two updates: the iterate, the average so far, and the state of the update rule. It has no key and no
/// batch; with noisy gradients it is a function of what the run has released.
///
/// Updates that were paid for and interrupted can be [lost](Self::losing): they count, and make no move.
#[derive(Debug, Clone, PartialEq)]
pub struct RunState<F> {
    /// Number of updates that are over, lost ones included. In a run that was ended at a given time it depends on the speed of updates, and
    /// so on the sizes of drawn batches.
    pub updates: u64,
    /// Number of updates that were lost.
    pub lost: u64,
    /// True if the noise so far came from a secret generator. A run that goes on from a state without it is not private.
    pub secret_noise: bool,
    /// The sum of the averaging weights so far.
    pub weight: f64,
    /// The factors on step sizes that a line search has chosen so far, in order; none without one.
    pub chosen: Vec<f64>,
    /// The factor on the first clipping norm that an adaptive norm has reached; 1 without one.
    pub norm_scale: f64,
    /// The parameters, the weighted sum of the iterates if the run averages, and the vectors of the update rule; none before the
    /// first update.
    pub vectors: Vec<Vec<F>>,
}

impl<F> RunState<F> {
    /// Returns the state before the first update.
    pub fn initial() -> Self {
        Self {
            updates: 0,
            lost: 0,
            secret_noise: true,
            weight: 0.0,
            chosen: Vec::new(),
            norm_scale: 1.0,
            vectors: Vec::new(),
        }
    }

    /// Counts all updates up to update `begun` as lost: they had begun when the run ended, and what they released is not known.
    ///
    /// # Privacy
    /// Their noisy gradients were paid for. A run that goes on makes none of them again.
    pub fn losing(self, begun: u64) -> Self {
        let updates = self.updates.max(begun);
        Self { lost: self.lost.saturating_add(updates - self.updates), updates, ..self }
    }
}

/// The beginning of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Start<F> {
    /// The initial parameters. They must not depend on records.
    pub parameters: Vec<F>,
    /// The state of the run that this one continues.
    pub resumed: Option<RunState<F>>,
}

impl<F> From<Vec<F>> for Start<F> {
    fn from(parameters: Vec<F>) -> Self {
        Self { parameters, resumed: None }
    }
}

/// A run after one of its updates.
pub struct AfterUpdate<'m, F> {
    /// Number of the update, from 1.
    pub update: u64,
    /// The size of its step.
    pub step_size: f64,
    /// The iterate.
    pub iterate: &'m [F],
    state: &'m dyn Fn() -> Option<RunState<F>>,
}

impl<'m, F> AfterUpdate<'m, F> {
    pub(super) fn new(
        (update, step_size): (u64, f64),
        iterate: &'m [F],
        state: &'m dyn Fn() -> Option<RunState<F>>,
    ) -> Self {
        Self { update, step_size, iterate, state }
    }

    /// Copies the state of the run; `None` if its update rule keeps more than vectors.
    pub fn state(&self) -> Option<RunState<F>> {
        (self.state)()
    }
}
