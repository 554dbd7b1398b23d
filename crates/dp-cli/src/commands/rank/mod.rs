//! `dp rank`: rankers, with privacy for the grades of one list.

mod cv;
mod evaluate;
mod figures;
mod lists;
mod predict;
mod settings;
mod train;
mod training;

pub(super) use training::family;
pub use training::refused as refusal;

use crate::args::{GlobalArgs, RankArgs, RankJob};
use crate::failure::Failure;
use crate::output::Console;

/// Runs one of the commands.
///
/// # Errors
/// `usage.*`, `lists.*`, `model.*`, `privacy.*`, `train.failed`, or output that cannot be written.
pub fn execute(args: &RankArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    match &args.job {
        RankJob::Train(args) => train::execute(args, global, console),
        RankJob::Evaluate(args) => evaluate::execute(args, global, console),
        RankJob::Predict(args) => predict::execute(args, global, console),
        RankJob::Cv(args) => cv::execute(args, global, console),
    }
}
