//! Shared parts of the benches and of the programs that print the published figures.

pub mod cross_validation;

pub mod cpu_time;
pub mod ratio;

/// The programs in the workspace's README compile, and run where they need no file.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct WorkspaceReadme;
