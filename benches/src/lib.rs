//! Shared parts of the benches: the clock, and ratios against a baseline measured in the same run.

pub mod cpu_time;
pub mod ratio;
