//! Stop rules of a run.

use dp_losses::Model;

use super::batches::Batches;
use crate::error::Error;

/// Decides after each pass whether the run is over.
///
/// # Privacy
/// A rule that depends on the iterate or the data makes the number of passes depend on private data, and needs its own
/// sensitivity proof, as [`minimise`](super::minimise) has, which is a loop of its own.
pub trait StopRule<F, M: Model<F>, B: Batches<F, M>> {
    /// Returns whether to stop after `passes` passes, at `current`.
    ///
    /// # Errors
    /// Those of the batches, where the rule reads them.
    fn stop(&mut self, passes: u64, current: &[F], model: &M, batches: &mut B) -> Result<bool, Error>;
}

/// A fixed number of passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passes(pub u64);

impl<F, M: Model<F>, B: Batches<F, M>> StopRule<F, M, B> for Passes {
    fn stop(&mut self, passes: u64, _current: &[F], _model: &M, _batches: &mut B) -> Result<bool, Error> {
        Ok(passes >= self.0)
    }
}
