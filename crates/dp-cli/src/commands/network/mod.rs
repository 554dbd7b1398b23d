//! Networks of images: what `dp train --model`, `dp evaluate` and `dp predict` have for them.

mod checkpoint;
mod config;
mod images;
mod layers;
mod outcome;
mod predict;
mod train;

pub(super) use images::{ImageFiles, check_fit};
pub(super) use predict::write as write_predictions;
pub(super) use train::execute as train;
