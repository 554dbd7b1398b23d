use proptest::prelude::*;

use super::*;

#[test]
fn extreme_predictions_give_numbers() {
    assert_eq!(Squared.derivative(1e308_f64, 1.0), 1e308);
    assert_eq!(Squared.value(1.8e154_f64, 0.0), 0.5 * 1.8e154 * 1.8e154);
    assert_eq!(Squared.value(-1e308_f64, 1.0), f64::INFINITY);
}

proptest! {
    #[test]
    fn derivative_is_the_slope_of_the_value(p in -10.0..10.0_f64, y in -3.0..3.0_f64) {
        let step = 1e-4;
        let slope = (Squared.value(p + step, y) - Squared.value(p - step, y)) / (2.0 * step);
        prop_assert!((Squared.derivative(p, y) - slope).abs() < 1e-8);
        let bound: f64 = Loss::<f64>::curvature_bound(&Squared);
        prop_assert_eq!(bound, 1.0);
    }
}
