//! Arithmetic that rounds upwards, for constants on which privacy depends.
//!
//! One operation in round-to-nearest has an error below one step, so the next float up is never below the exact result. Results
//! that are easily seen to be exact (a factor 0 or 1, a term 0) are unchanged.

/// Returns an upper bound on `a·b` for non-negative numbers; 0 if either is 0.
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

/// Returns an upper bound on `a + b` for non-negative numbers.
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

/// Returns an upper bound on `a / b` for positive numbers.
pub(crate) fn quotient_up(a: f64, b: f64) -> f64 {
    (a / b).next_up()
}

/// Returns an upper bound on a non-negative value computed with relative error at most 2^-48: sixteen roundings, or a few
/// operations on an exponential or a logarithm of the platform.
pub(crate) fn inflate(value: f64) -> f64 {
    (value * (1.0 + 16.0 * f64::EPSILON)).next_up()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounding errors are covered; exact results are unchanged.
    #[test]
    fn results_are_never_below_the_exact_ones() {
        let tiny = 2f64.powi(-60);
        assert_eq!([sum_up(1.0, tiny), sum_up(tiny, 1.0)], [1.0f64.next_up(); 2]);
        assert_eq!([sum_up(0.0, 0.3), sum_up(0.3, 0.0), sum_up(0.3, 0.3)], [0.3, 0.3, 0.6]);
        // (1 + ε)² = 1 + 2ε + ε².
        assert!(product_up(1.0 + f64::EPSILON, 1.0 + f64::EPSILON) > 1.0 + 2.0 * f64::EPSILON);
        assert_eq!([product_up(0.0, 0.3), product_up(0.3, 0.0)], [0.0; 2]);
        assert_eq!([product_up(1.0, 0.3), product_up(0.3, 1.0)], [0.3; 2]);
        // The double nearest to 1/3 is below it.
        assert!(quotient_up(1.0, 3.0) > 1.0 / 3.0);
        assert!(inflate(1.0) >= 1.0 + 16.0 * f64::EPSILON && inflate(1.0) < 1.0 + 20.0 * f64::EPSILON);
    }
}
