//! `dp tune`: a training whose settings are chosen among several, privately or on public records.
//!
//! All but the choice is `dp train`'s: the same records, flags, model file and certificate.

use super::train::{self, TrainConfig};
use crate::args::{GlobalArgs, TuneArgs};
use crate::failure::Failure;
use crate::output::Console;

/// Chooses, trains, writes and prints.
///
/// # Errors
/// Those of `dp train`, and `usage.*` where there is nothing to choose from or the way of choosing lacks something.
pub fn execute(args: &TuneArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    train::execute_configured(&TrainConfig::tuned(args, global)?, console)
}
