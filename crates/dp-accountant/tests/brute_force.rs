//! Theorems about sampling, groups, parts and repetition, checked on small mechanisms by enumeration of all data sets and
//! outcomes.
//!
//! Each check asserts two things: no enumerated divergence is above its bound, and the bounds are not far above all of them, so
//! that a trivial bound does not pass.

#[path = "brute_force/combined.rs"]
mod combined;
#[path = "brute_force/finite.rs"]
mod finite;
#[path = "brute_force/replacement.rs"]
mod replacement;
#[path = "brute_force/sampling.rs"]
mod sampling;
#[path = "brute_force/shuffled.rs"]
mod shuffled;
#[path = "brute_force/stopping.rs"]
mod stopping;
#[path = "brute_force/threshold.rs"]
mod threshold;
