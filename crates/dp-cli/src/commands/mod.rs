//! One file for each command: arguments -> checked configuration -> result.

pub mod completions;
pub mod explain;
pub mod help;
pub mod man;
