//! Checks that a float type can represent numbers of a given size.

use nalgebra::RealField;

/// Returns whether numbers of this size are well inside the range of `F`: at least 2^24 times below the largest, and not
/// subnormal, since noise or a squared norm might otherwise become zero.
pub(crate) fn holds<F: RealField + Copy>(size: f64) -> bool {
    let largest: f64 = F::max_value().map_or(f64::MAX, |largest| largest.to_subset_unchecked());
    let converted: F = nalgebra::convert(size);
    let back: f64 = converted.to_subset_unchecked();
    size <= largest * 2f64.powi(-24) && (back - size).abs() <= size * 2f64.powi(-20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_float_type_has_its_range() {
        assert!(holds::<f64>(1e-290) && holds::<f64>(1e300));
        assert!(holds::<f32>(1e-37) && holds::<f32>(1e31));
        assert!(!holds::<f32>(1e-45) && !holds::<f32>(1e-60) && !holds::<f32>(1e35) && !holds::<f32>(1e300));
        assert!(!holds::<f32>(f64::NAN) && !holds::<f64>(f64::INFINITY));
    }
}
