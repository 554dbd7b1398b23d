//! Shared parts of the benches and of the programs that print the published figures.

pub mod cross_validation;

pub mod cpu_time;
pub mod ratio;

/// Compiles the programs of the workspace's README, and runs those that need no file.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct WorkspaceReadme;
