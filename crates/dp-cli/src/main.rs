//! The dp command.
fn main() {}
