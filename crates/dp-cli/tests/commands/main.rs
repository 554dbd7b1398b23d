//! Tests of the command, each in its own folder: a single program, since each program links the whole workspace.

mod account;
mod account_batch;
mod algorithms;
mod architecture;
mod audit;
mod bad_input;
mod check;
mod checkpoints;
#[cfg(target_os = "linux")]
mod cluster;
mod config;
mod curves;
mod defects;
mod demo;
mod diary;
mod dry_run;
mod edits;
mod engines;
mod evaluate;
mod images;
mod labels;
mod memory;
mod mess;
mod networks;
mod outputs;
mod plan;
#[cfg(unix)]
mod postgres;
mod predict_sql;
mod projection;
mod protection;
mod rank;
mod rank_modes;
mod reproduce;
#[cfg(unix)]
mod runner;
mod shell;
mod sign;
mod spool;
#[cfg(unix)]
mod sums;
mod support;
mod tables;
mod threads;
mod threshold;
mod train;
mod tune;
mod unit;
mod usage;
mod verify;
