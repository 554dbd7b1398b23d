//! A branch-free exponential, written so that the compiler vectorises a loop over it.
//!
//! # Formula
//! ```text
//! e^x = 2^k · e^r,   k = round(x / ln 2),   r = x - k·ln 2  in two parts,   |r| <= ln(2)/2
//! e^r = Σ_{i <= N} r^i / i!   (N = 13 for f64, 7 for f32), summed by Estrin's scheme
//! ```
//! The series is truncated where its remainder is below 0.03 units in the last place. `2^k` is applied as two factors, so that
//! results below the smallest normal number are rounded once more and not flushed to zero. Error against the correctly rounded
//! value: at most 2 units in the last place for normal results (tested over the whole range); exactly 1 at 0; 0 below the
//! smallest subnormal; infinity above the largest number; NaN for NaN.

/// Returns `e^x` for `f64`. See the [module](self) for the method and its error.
///
/// # Examples
/// ```
/// use dp_losses::exponential::exp_f64;
/// assert_eq!(exp_f64(0.0), 1.0);
/// assert!((exp_f64(10.0) / 22026.465794806718 - 1.0).abs() < 1e-15);
/// ```
#[inline(always)]
pub fn exp_f64(x: f64) -> f64 {
    // Adding 1.5·2^52 rounds to the nearest integer and leaves it in the low bits.
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1; // its last 20 bits are 0: times k it is exact
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // Comparisons rather than `max`/`min`, which would turn NaN into a number.
    let x = if x < -746.0 { -746.0 } else { x };
    let x = if x > 710.0 { 710.0 } else { x };
    let shifted = x * core::f64::consts::LOG2_E + SHIFT;
    let k = shifted - SHIFT;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;

    let r2 = r * r;
    let r4 = r2 * r2;
    let r8 = r4 * r4;
    let p0 = 1.0 + r;
    let p2 = 1.0 / 2.0 + r * (1.0 / 6.0);
    let p4 = 1.0 / 24.0 + r * (1.0 / 120.0);
    let p6 = 1.0 / 720.0 + r * (1.0 / 5_040.0);
    let p8 = 1.0 / 40_320.0 + r * (1.0 / 362_880.0);
    let p10 = 1.0 / 3_628_800.0 + r * (1.0 / 39_916_800.0);
    let p12 = 1.0 / 479_001_600.0 + r * (1.0 / 6_227_020_800.0);
    let power = (p0 + r2 * p2) + r4 * ((p4 + r2 * p6) + r4 * (p8 + r2 * p10) + r8 * p12);

    // k + 4096 as an unsigned integer, in two halves.
    let biased = shifted.to_bits().wrapping_sub(SHIFT.to_bits()).wrapping_add(4096);
    let half = biased >> 1;
    let rest = biased.wrapping_sub(half);
    let first = f64::from_bits(half.wrapping_sub(2048 - 1023) << 52);
    let second = f64::from_bits(rest.wrapping_sub(2048 - 1023) << 52);
    (power * first) * second
}

/// Returns `e^x` for `f32`. See the [module](self) for the method and its error.
///
/// # Examples
/// ```
/// use dp_losses::exponential::exp_f32;
/// assert_eq!(exp_f32(0.0), 1.0);
/// assert!((exp_f32(1.0) / core::f32::consts::E - 1.0).abs() < 2e-7);
/// ```
#[inline(always)]
pub fn exp_f32(x: f32) -> f32 {
    const SHIFT: f32 = 12_582_912.0; // 1.5·2^23
    const LN_2_HIGH: f32 = 355.0 / 512.0; // 9 bits: times k it is exact
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = if x < -104.0 { -104.0 } else { x };
    let x = if x > 89.0 { 89.0 } else { x };
    let shifted = x * core::f32::consts::LOG2_E + SHIFT;
    let k = shifted - SHIFT;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;

    let r2 = r * r;
    let r4 = r2 * r2;
    let p0 = 1.0 + r;
    let p2 = 1.0 / 2.0 + r * (1.0 / 6.0);
    let p4 = 1.0 / 24.0 + r * (1.0 / 120.0);
    let p6 = 1.0 / 720.0 + r * (1.0 / 5_040.0);
    let power = (p0 + r2 * p2) + r4 * (p4 + r2 * p6);

    let biased = shifted.to_bits().wrapping_sub(SHIFT.to_bits()).wrapping_add(512);
    let half = biased >> 1;
    let rest = biased.wrapping_sub(half);
    let first = f32::from_bits(half.wrapping_sub(256 - 127) << 23);
    let second = f32::from_bits(rest.wrapping_sub(256 - 127) << 23);
    (power * first) * second
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the distance in units in the last place of `want`.
    fn ulps_f64(got: f64, want: f64) -> f64 {
        (got - want).abs() / (want.next_up() - want)
    }

    #[test]
    fn f64_is_within_two_units_of_libm_over_the_whole_range() {
        // Every 1/137 of the range with normal results, and numbers near 0. libm itself is within 1 unit.
        let mut worst = 0.0_f64;
        let mut x = -708.3;
        while x < 709.7 {
            worst = worst.max(ulps_f64(exp_f64(x), x.exp()));
            x += 0.000_73 + x.abs() * 1e-6;
        }
        for exponent in 1..60 {
            for sign in [-1.0, 1.0] {
                let x = sign * 0.5_f64.powi(exponent) * 1.37;
                worst = worst.max(ulps_f64(exp_f64(x), x.exp()));
            }
        }
        assert!(worst <= 2.0, "worst error {worst} units in the last place");
        assert!(worst > 0.0);
    }

    #[test]
    fn f32_is_within_two_units_of_f64_over_the_whole_range() {
        let mut worst = 0.0_f64;
        let mut x = -87.3_f32;
        while x < 88.7 {
            let want = f64::from(x).exp();
            let unit = f64::from((want as f32).next_up()) - f64::from(want as f32);
            worst = worst.max((f64::from(exp_f32(x)) - want).abs() / unit);
            x += 0.000_13;
        }
        assert!(worst <= 2.0, "worst error {worst} units in the last place");
        assert!(worst > 0.0);
    }

    #[test]
    fn ends_of_the_range_are_right() {
        for x in [-745.2, -1e308, f64::MIN, f64::NEG_INFINITY] {
            assert_eq!(exp_f64(x), 0.0, "{x}");
        }
        for x in [709.8, 1e308, f64::MAX, f64::INFINITY] {
            assert_eq!(exp_f64(x), f64::INFINITY, "{x}");
        }
        assert!(exp_f64(f64::NAN).is_nan() && exp_f32(f32::NAN).is_nan());
        for x in [-104.1_f32, f32::MIN, f32::NEG_INFINITY] {
            assert_eq!(exp_f32(x), 0.0, "{x}");
        }
        for x in [88.8_f32, f32::MAX, f32::INFINITY] {
            assert_eq!(exp_f32(x), f32::INFINITY, "{x}");
        }
        // Below the smallest normal number: within one and a half steps of the subnormal grid.
        let mut x = -745.0;
        while x < -708.0 {
            assert!((exp_f64(x) - x.exp()).abs() <= 2.0 * f64::from_bits(1) + 4e-16 * x.exp(), "{x}");
            x += 0.037;
        }
    }
}
