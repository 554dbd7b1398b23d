//! Tests of the public interface, in one program.

mod bad_input;
mod floating_point_attacks;
mod integer_laws;
mod mechanism_laws;
mod secrecy;
mod seeds;
mod selection_laws;
