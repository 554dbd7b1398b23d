use proptest::prelude::*;

use super::*;
use crate::golden;

#[test]
fn golden_margins() {
    let cases = golden::erm_cases("loss_margin");
    let cases: Vec<_> = cases.iter().filter(|case| case["in"]["loss"] == "huber_svm").collect();
    assert!(!cases.is_empty());
    for case in cases {
        let loss = HuberSvm::new(case["in"]["h"].as_f64().unwrap()).unwrap();
        let margin = case["in"]["z"].as_f64().unwrap();
        // Near a kink the value is a difference of numbers near 1, so only absolute accuracy is possible.
        golden::assert_close(&case["id"], "value", loss.value(margin, 1.0), &case["out"]["value"], 1e-12);
        golden::assert_close(&case["id"], "dz", loss.derivative(margin, 1.0), &case["out"]["dz"], 1e-12);
    }
    let other = golden::file("optim-rdp.json");
    let rows = other["families"]["loss_margin"].as_array().unwrap();
    let rows: Vec<_> = rows.iter().filter(|row| row["loss"] == "huber_hinge").collect();
    assert!(!rows.is_empty());
    for row in rows {
        let loss = HuberSvm::new(row["h"].as_f64().unwrap()).unwrap();
        let margin = row["z"].as_f64().unwrap();
        golden::assert_close(&row["id"], "value", loss.value(margin, 1.0), &row["value"], 1e-12);
        golden::assert_close(&row["id"], "derivative", loss.derivative(margin, 1.0), &row["derivative"], 1e-12);
    }
}

#[test]
fn extreme_margins_and_widths_give_numbers() {
    for h in [1e-30, 0.1, 1.0, 1e30] {
        let loss = HuberSvm::new(h).unwrap();
        for size in [1e300, 1e308, f64::MAX] {
            assert_eq!(loss.derivative(-size, 1.0), -1.0, "{h}");
            assert_eq!(loss.derivative(size, 1.0), 0.0);
            assert_eq!(loss.value(-size, 1.0), size);
            assert_eq!(loss.value(size, 1.0), 0.0);
        }
        for size in [1e35_f32, f32::MAX] {
            assert_eq!(loss.derivative(size, -1.0), 1.0, "{h}");
            assert_eq!(loss.derivative(-size, -1.0), 0.0);
        }
        assert!((0.0..=1.0).contains(&-loss.derivative(1.0_f32, 1.0)));
    }
}

#[test]
fn half_widths_outside_the_range_are_refused() {
    for h in [0.0, -0.1, f64::NAN, f64::INFINITY, 1e-31, 1e31] {
        assert!(HuberSvm::new(h).is_err(), "{h}");
    }
}

proptest! {
    #[test]
    fn derivative_is_the_slope_of_the_value(h in 0.05..2.0_f64, p in -4.0..4.0_f64, positive: bool) {
        let (loss, y) = (HuberSvm::new(h).unwrap(), if positive { 1.0 } else { -1.0 });
        let step = 1e-5;
        let slope = (loss.value(p + step, y) - loss.value(p - step, y)) / (2.0 * step);
        // Across a kink of the derivative the central difference has an error of up to step · curvature / 4.
        prop_assert!((loss.derivative(p, y) - slope).abs() < 1e-9 + step / h);
    }

    #[test]
    fn slope_of_the_derivative_stays_below_the_curvature(h in 0.05..2.0_f64, p in -4.0..4.0_f64, gap in 1e-3..4.0_f64) {
        let loss = HuberSvm::new(h).unwrap();
        let change = loss.derivative(p + gap, 1.0) - loss.derivative(p, 1.0);
        let bound: f64 = Loss::<f64>::curvature_bound(&loss);
        prop_assert!((0.0..=bound * gap * (1.0 + 1e-12) + 1e-15).contains(&change));
    }
}
