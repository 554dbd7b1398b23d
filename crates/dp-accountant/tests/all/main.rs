//! Tests of the public interface, in one program.

mod any_event;
mod brute_force;
mod golden;
mod seeds;
