//! Arithmetic that rounds upwards, for constants that privacy depends on.
//!
//! One operation in round-to-nearest is off by less than one step, so the next float up is never below the exact result.
//! Results that are exact where it is cheap to see (a factor 0 or 1, a term 0) stay as they are.

/// An upper bound of `a·b` for non-negative numbers; 0 if either is 0.
pub(crate) fn product_up(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 {
        0.0
    } else if a == 1.0 {
        b
    } else if b == 1.0 {
        a
    } else {
        (a * b).next_up()
    }
}

/// An upper bound of `a + b` for non-negative numbers.
pub(crate) fn sum_up(a: f64, b: f64) -> f64 {
    if a == 0.0 {
        b
    } else if b == 0.0 {
        a
    } else if a == b {
        a + b
    } else {
        (a + b).next_up()
    }
}

/// An upper bound of `a / b` for positive numbers.
pub(crate) fn quotient_up(a: f64, b: f64) -> f64 {
    (a / b).next_up()
}

/// An upper bound of a non-negative value computed with relative error at most 2^-48: sixteen roundings, or a few
/// operations on an exponential or a logarithm of the platform.
pub(crate) fn inflate(value: f64) -> f64 {
    (value * (1.0 + 16.0 * f64::EPSILON)).next_up()
}
