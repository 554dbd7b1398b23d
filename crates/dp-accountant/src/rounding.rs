//! Elementary operations rounded upwards, which means towards claiming less privacy, without changing the processor's rounding
//! mode.
//!
//! Each computes the nearest result, recovers its exact error by a fused multiply-add or an error-free sum, and steps to the next
//! float if the nearest result lies below the true one. A quotient that is exactly representable is unchanged, so that a noise
//! scale chosen as `sensitivity / epsilon` (rounded up) costs `epsilon` and not one unit in the last place more.

/// Value below which the exact error of a product may itself underflow, so that the result is always stepped up.
const SAFELY_NORMAL: f64 = 1e-280;

/// Returns the least float not below `numerator / denominator`, for a non-negative numerator and a positive denominator.
pub(crate) fn div_up(numerator: f64, denominator: f64) -> f64 {
    let quotient = numerator / denominator;
    if numerator == 0.0 || !quotient.is_finite() {
        return quotient;
    }
    let product_is_exact = numerator > SAFELY_NORMAL && quotient > SAFELY_NORMAL;
    let below = quotient.mul_add(denominator, -numerator) < 0.0;
    if below || !product_is_exact { quotient.next_up() } else { quotient }
}

/// Returns the least float not below `left * right`, for non-negative arguments.
pub(crate) fn mul_up(left: f64, right: f64) -> f64 {
    let product = left * right;
    if left == 0.0 || right == 0.0 || !product.is_finite() {
        return product;
    }
    let below = left.mul_add(right, -product) > 0.0;
    if below || product < SAFELY_NORMAL { product.next_up() } else { product }
}

/// Returns the least float not below `left + right`, for non-negative arguments.
pub(crate) fn add_up(left: f64, right: f64) -> f64 {
    let sum = left + right;
    if !sum.is_finite() {
        return sum;
    }
    let (large, small) = if left > right { (left, right) } else { (right, left) };
    // Exact for large >= small (Dekker's fast two-sum).
    let error = small - (sum - large);
    if error > 0.0 { sum.next_up() } else { sum }
}

/// Converts a number of repetitions to a float that is not below it.
pub(crate) fn count_up(count: u64) -> f64 {
    let float = count as f64;
    // The conversion rounds to nearest only above 2^53.
    if count > 1 << 53 { float.next_up() } else { float }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_results_stay() {
        assert_eq!(div_up(1.0, 4.0), 0.25);
        assert_eq!(mul_up(3.0, 0.5), 1.5);
        assert_eq!(add_up(0.5, 0.25), 0.75);
        assert_eq!(count_up(7), 7.0);
    }

    #[test]
    fn inexact_results_are_bracketed_from_above() {
        // To nearest, 1/3 is rounded down and 1/10 is rounded up.
        assert_eq!(div_up(1.0, 3.0), (1.0f64 / 3.0).next_up());
        assert_eq!(div_up(1.0, 10.0), 0.1);
        assert!(add_up(1.0, 1e-30) > 1.0);
        assert!(mul_up(0.1, 0.1) >= 0.01);
        assert!(count_up(u64::MAX) >= 18_446_744_073_709_551_615.0);
    }

    proptest::proptest! {
        #[test]
        fn never_below_and_at_most_one_step_above(a in 1e-100f64..1e100, b in 1e-100f64..1e100) {
            let quotient = div_up(a, b);
            proptest::prop_assert!(quotient.mul_add(b, -a) >= 0.0);
            proptest::prop_assert!(quotient == a / b || quotient == (a / b).next_up());
            let product = mul_up(a, b);
            proptest::prop_assert!(a.mul_add(b, -product) <= 0.0);
        }

        #[test]
        fn the_scale_that_was_asked_for_costs_what_was_asked(sensitivity in 1e-6f64..1e6, epsilon in 1e-3f64..1e2) {
            let scale = div_up(sensitivity, epsilon);
            proptest::prop_assert!(div_up(sensitivity, scale) <= epsilon);
        }
    }
}
