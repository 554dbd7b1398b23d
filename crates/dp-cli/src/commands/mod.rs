//! One file for each command: arguments -> checked configuration -> result.

pub mod account;
pub mod audit;
pub mod check;
pub mod completions;
pub mod dry_run;
pub mod evaluate;
pub mod explain;
pub mod explain_model;
pub mod help;
pub mod man;
mod network;
pub mod plan;
pub mod predict;
pub mod rank;
pub mod reproduce;
pub mod schema;
pub mod sign;
pub mod train;
pub mod tune;
pub mod verify;
