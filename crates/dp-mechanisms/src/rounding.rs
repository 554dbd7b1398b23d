//! Powers of two, and quotients, products and roots with directed rounding.
//!
//! A noise scale is a quotient or a product of public parameters, and a quotient that is rounded down gives less noise than the
//! theorem requires. The functions here compare exactly (a fused multiply-add has the sign of the exact residual), so an exact
//! result, such as `1 / 0.5`, remains exact and does not grow by a unit in the last place.

/// Returns `floor(log2 x)` of a positive normal double.
pub(crate) fn exponent(x: f64) -> i32 {
    debug_assert!(x.is_normal() && x > 0.0);
    ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// Returns `2^power`, exactly; `power` must lie in `-1022..=1023`, for which `2^power` is a normal double.
pub(crate) fn power_of_two(power: i32) -> f64 {
    debug_assert!((-1022..=1023).contains(&power));
    f64::from_bits(((power + 1023) as u64) << 52)
}

/// Returns `x · 2^power` for `power` in `-3066..=3066`: exact if the result is normal; otherwise rounded once if `|x| >= 1`, and
/// with an error below `2^-1073` if not.
pub(crate) fn scale_by_power_of_two(x: f64, power: i32) -> f64 {
    // Powers beyond the range of doubles, such as the quotient of two extreme scales, need up to three factors.
    let third = power / 3;
    x * power_of_two(power - 2 * third) * power_of_two(third) * power_of_two(third)
}

/// Splits a positive normal double into its mantissa, in `[1, 2)`, and its exponent.
fn split(x: f64) -> (f64, i32) {
    let exponent = exponent(x);
    (f64::from_bits((x.to_bits() & !(0x7ff << 52)) | (1023 << 52)), exponent)
}

/// Returns the least double `q` with `q · denominator >= numerator` in exact arithmetic, for positive normal arguments.
///
/// Infinite if it overflows; a double that is not normal if it would be subnormal. For other arguments, which are results that
/// over- or underflowed, returns the next double above the quotient.
pub(crate) fn quotient_up(numerator: f64, denominator: f64) -> f64 {
    if !(numerator.is_normal() && denominator.is_normal()) {
        return (numerator / denominator).next_up();
    }
    let ((n, n_exponent), (d, d_exponent)) = (split(numerator), split(denominator));
    // In [1, 2) nothing in the residual over- or underflows, so its sign is exact.
    let mut quotient = n / d;
    if quotient.mul_add(d, -n) < 0.0 {
        quotient = quotient.next_up();
    }
    scale_by_power_of_two(quotient, n_exponent - d_exponent)
}

/// Returns the largest double `q` with `q · denominator <= numerator` in exact arithmetic; limits as in [`quotient_up`].
pub(crate) fn quotient_down(numerator: f64, denominator: f64) -> f64 {
    let ((n, n_exponent), (d, d_exponent)) = (split(numerator), split(denominator));
    let mut quotient = n / d;
    if quotient.mul_add(d, -n) > 0.0 {
        quotient = quotient.next_down();
    }
    scale_by_power_of_two(quotient, n_exponent - d_exponent)
}

/// Returns the least double that is at least `a + b` in exact arithmetic, for positive arguments.
pub(crate) fn sum_up(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    let sum = large + small;
    // Dekker: for ordered arguments the rounding error of the sum is `small - (sum - large)`, exactly.
    if small > sum - large { sum.next_up() } else { sum }
}

/// Returns the least double `p` with `p >= a · b` in exact arithmetic, for positive normal arguments; limits as in
/// [`quotient_up`].
pub(crate) fn product_up(a: f64, b: f64) -> f64 {
    if !(a.is_normal() && b.is_normal()) {
        return (a * b).next_up();
    }
    let ((a, a_exponent), (b, b_exponent)) = (split(a), split(b));
    let mut product = a * b;
    if a.mul_add(b, -product) > 0.0 {
        product = product.next_up();
    }
    scale_by_power_of_two(product, a_exponent + b_exponent)
}

/// Returns the largest double `r` with `r² <= x` in exact arithmetic, for a positive normal argument.
pub(crate) fn sqrt_down(x: f64) -> f64 {
    let (mut mantissa, mut exponent) = split(x);
    if exponent % 2 != 0 {
        mantissa *= 2.0;
        exponent -= 1;
    }
    let mut root = mantissa.sqrt();
    if root.mul_add(root, -mantissa) > 0.0 {
        root = root.next_down();
    }
    scale_by_power_of_two(root, exponent / 2)
}

/// Returns the least double `r` with `r² >= x` in exact arithmetic, for a positive normal argument.
pub(crate) fn sqrt_up(x: f64) -> f64 {
    let down = sqrt_down(x);
    let ((root, root_exponent), x) = (split(down), x);
    if root.mul_add(root, -scale_by_power_of_two(x, -2 * root_exponent)) == 0.0 { down } else { down.next_up() }
}

/// Returns an upper bound on `√(Σ x_i²)`, exact if the sum of squares is a double with an exact root, for positive normal
/// arguments; infinite if it overflows, 0 for no arguments.
pub(crate) fn root_of_squares_up(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = values.clone().fold(0.0, f64::max);
    if !(largest > 0.0) {
        return 0.0;
    }
    // With the largest in [1, 2) no square overflows; one that underflows is raised to 2^-1022 by `product_up`.
    let power = exponent(largest);
    let sum = values.fold(0.0, |sum, x| {
        let x = scale_by_power_of_two(x, -power).max(power_of_two(-500));
        sum_up(sum, product_up(x, x))
    });
    scale_by_power_of_two(sqrt_up(sum), power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn positive_normal() -> impl Strategy<Value = f64> {
        (1u64..2047, 0u64..(1 << 52)).prop_map(|(e, m)| f64::from_bits((e << 52) | m))
    }

    #[test]
    fn exact_results_stay_exact() {
        assert_eq!(quotient_up(1.0, 0.5), 2.0);
        assert_eq!(quotient_up(6.0, 3.0), 2.0);
        assert_eq!(product_up(1.5, 2.5), 3.75);
        // Overflow is kept, and underflow is not lost.
        assert_eq!((product_up(f64::INFINITY, 0.5), quotient_up(f64::INFINITY, 2.0)), (f64::INFINITY, f64::INFINITY));
        assert!(product_up(5e-324, 0.1) > 0.0 && quotient_up(5e-324, 3.0) > 0.0);
        assert!(product_up(f64::NAN, 1.0).is_nan() && quotient_up(1.0, f64::NAN).is_nan());
        assert_eq!((sqrt_down(2.25), sqrt_up(2.25), sqrt_up(power_of_two(101) * 2.0)), (1.5, 1.5, power_of_two(51)));
        assert_eq!(sqrt_down(power_of_two(-1022)), power_of_two(-511));
    }

    #[test]
    fn inexact_results_go_to_the_stated_side() {
        assert_eq!(quotient_up(1.0, 3.0), (1.0f64 / 3.0).next_up());
        assert_eq!(quotient_up(1.0, 0.1), 10.0);
        assert!(sqrt_down(2.0) < core::f64::consts::SQRT_2.next_up());
    }

    #[test]
    fn roots_of_squares() {
        assert_eq!(root_of_squares_up([3.0, 4.0].into_iter()), 5.0);
        assert_eq!(root_of_squares_up([3.0, 4.0].map(|x| x * power_of_two(900)).into_iter()), 5.0 * power_of_two(900));
        assert_eq!(root_of_squares_up(core::iter::empty()), 0.0);
        assert_eq!(root_of_squares_up([1.0, f64::MIN_POSITIVE].into_iter()), 1f64.next_up());
        assert_eq!(root_of_squares_up([f64::MAX, f64::MAX].into_iter()), f64::INFINITY);
    }

    #[test]
    fn powers_of_two() {
        assert_eq!(exponent(1.0), 0);
        assert_eq!(exponent(f64::MIN_POSITIVE), -1022);
        assert_eq!(exponent(f64::MAX), 1023);
        assert_eq!(scale_by_power_of_two(1.0, 1023), power_of_two(1023));
        assert_eq!(scale_by_power_of_two(f64::MAX, -2045), power_of_two(-1021).next_down());
        assert_eq!(scale_by_power_of_two(1.5, 2000), f64::INFINITY);
        assert_eq!(scale_by_power_of_two(1.5, -2044), 0.0);
    }

    proptest! {
        #[test]
        fn split_and_scale_are_inverse(x in positive_normal()) {
            let (mantissa, exponent) = split(x);
            prop_assert!((1.0..2.0).contains(&mantissa));
            prop_assert_eq!(scale_by_power_of_two(mantissa, exponent), x);
        }

        #[test]
        fn quotient_bounds_from_above(n in 1.0f64..2.0, d in 1.0f64..2.0) {
            let quotient = quotient_up(n, d);
            prop_assert!(quotient.mul_add(d, -n) >= 0.0);
            prop_assert!(quotient.next_down().mul_add(d, -n) < 0.0);
            // In doubles, too, the ratio is not above the requested denominator.
            prop_assert!(n / quotient <= d);
        }

        #[test]
        fn quotient_bounds_from_below(n in 1.0f64..2.0, d in 1.0f64..2.0) {
            let quotient = quotient_down(n, d);
            prop_assert!(quotient.mul_add(d, -n) <= 0.0);
            prop_assert!(quotient.next_up().mul_add(d, -n) > 0.0);
        }

        #[test]
        fn sum_bounds_from_above(a in 1u64..1 << 53, b in 1u64..1 << 53, shift in 0i32..60) {
            let exact = (u128::from(a) << shift) + u128::from(b);
            let sum = sum_up(a as f64 * 2f64.powi(shift), b as f64);
            prop_assert!(sum as u128 >= exact);
            prop_assert!((sum.next_down() as u128) < exact);
            prop_assert_eq!(sum_up(b as f64, a as f64 * 2f64.powi(shift)), sum);
        }

        /// A subnormal factor or numerator, a multiple of the least double, is not lost either.
        #[test]
        fn subnormal_arguments_are_rounded_up(least in 1u64..1 << 40, factor in 1u64..1000) {
            let (x, factor_) = (f64::from_bits(least), factor as f64);
            prop_assert!(product_up(x, factor_) >= f64::from_bits(least * factor));
            prop_assert!(product_up(factor_, x) >= f64::from_bits(least * factor));
            prop_assert!(quotient_up(x, 1.0 / 1024.0) >= f64::from_bits(least * 1024));
            prop_assert!(quotient_up(x, factor_) >= f64::from_bits(least.div_ceil(factor)));
            prop_assert!(quotient_up(x, factor_) <= f64::from_bits(least.div_ceil(factor) + 1));
        }

        #[test]
        fn product_bounds_from_above(a in 1.0f64..2.0, b in 1.0f64..2.0) {
            let product = product_up(a, b);
            prop_assert!(a.mul_add(b, -product) <= 0.0);
            prop_assert!(a.mul_add(b, -product.next_down()) > 0.0);
        }

        #[test]
        fn root_bounds_from_below(x in positive_normal()) {
            let root = sqrt_down(x);
            let (r, r_exponent) = split(root);
            let scaled = scale_by_power_of_two(x, -2 * r_exponent);
            prop_assert!(r.mul_add(r, -scaled) <= 0.0);
            prop_assert!(r.next_up().mul_add(r.next_up(), -scaled) > 0.0);
        }

        #[test]
        fn root_bounds_from_above(x in positive_normal()) {
            let root = sqrt_up(x);
            let (r, r_exponent) = split(root);
            let scaled = scale_by_power_of_two(x, -2 * r_exponent);
            prop_assert!(r.mul_add(r, -scaled) >= 0.0);
            prop_assert!(r.next_down().mul_add(r.next_down(), -scaled) < 0.0);
        }

        #[test]
        fn roots_of_squares_bound_from_above(values in prop::collection::vec(1.0f64..1e6, 1..20), power in -900i32..900) {
            let scaled = values.iter().map(|x| scale_by_power_of_two(*x, power));
            let found = scale_by_power_of_two(root_of_squares_up(scaled), -power);
            let plain = values.iter().map(|x| x * x).sum::<f64>().sqrt();
            prop_assert!((found / plain - 1.0).abs() < 1e-13);
            // Integers have an exact sum.
            let integers: Vec<f64> = values.iter().map(|x| x.floor()).collect();
            let squares: f64 = integers.iter().map(|x| x * x).sum();
            let root = root_of_squares_up(integers.iter().copied());
            prop_assert!(root.mul_add(root, -squares) >= 0.0 && root.next_down().mul_add(root.next_down(), -squares) <= 0.0);
        }

        #[test]
        fn never_nan_on_normal_arguments(a in positive_normal(), b in positive_normal()) {
            prop_assert!(quotient_up(a, b) >= 0.0);
            prop_assert!(product_up(a, b) >= 0.0);
        }
    }
}
