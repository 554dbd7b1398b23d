//! Shared parts of the benches and of the programs that print the published figures.

pub mod cross_validation;

pub mod cpu_time;
pub mod ratio;
