//! Audits with noise, in one program.

mod rankers;
mod recipes;
