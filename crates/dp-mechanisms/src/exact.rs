//! Exact samplers: integers and lazily extended digits, no floating-point arithmetic on the way to the result.
