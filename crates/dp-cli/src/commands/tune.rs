//! `dp tune`: training with settings selected among several, privately or on public records.
//!
//! Everything but the selection is shared with `dp train`: records, flags, model file and certificate.

use super::train::{self, TrainConfig};
use crate::args::{GlobalArgs, TuneArgs};
use crate::failure::Failure;
use crate::output::Console;

/// Selects, trains, writes and prints.
///
/// # Errors
/// Those of `dp train`, and `usage.*` if there is nothing to select from or a required flag of the selection method is
/// missing.
pub fn execute(args: &TuneArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    train::execute_configured(&TrainConfig::tuned(args, global)?, console)
}
