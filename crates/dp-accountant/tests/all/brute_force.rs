//! Theorems about sampling, groups, parts and repetition, checked on small mechanisms by enumeration of all data sets and
//! outcomes.
//!
//! Each check asserts two things: no enumerated divergence is above its bound, and the bounds are not far above all of them, so
//! that a trivial bound does not pass.

mod combined;
mod finite;
mod replacement;
mod sampling;
mod shuffled;
mod stopping;
mod threshold;
