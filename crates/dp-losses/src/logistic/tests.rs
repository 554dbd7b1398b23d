use proptest::prelude::*;

use super::*;
use crate::golden;

#[test]
fn golden_margins() {
    for case in golden::erm_cases("loss_margin").iter().filter(|case| case["in"]["loss"] == "logistic") {
        let (margin, rtol) = (case["in"]["z"].as_f64().unwrap(), case["rtol"].as_f64().unwrap());
        golden::assert_close(&case["id"], "value", Logistic.value(margin, 1.0), &case["out"]["value"], rtol);
        golden::assert_close(&case["id"], "dz", Logistic.derivative(margin, 1.0), &case["out"]["dz"], rtol);
    }
    let other = golden::file("optim-rdp.json");
    let rows = other["families"]["loss_margin"].as_array().unwrap();
    let rows: Vec<_> = rows.iter().filter(|row| row["loss"] == "logistic").collect();
    assert!(!rows.is_empty());
    for row in rows {
        let margin = row["z"].as_f64().unwrap();
        golden::assert_close(&row["id"], "value", Logistic.value(margin, 1.0), &row["value"], 1e-12);
        golden::assert_close(&row["id"], "derivative", Logistic.derivative(margin, 1.0), &row["derivative"], 1e-12);
    }
}

#[test]
fn extreme_margins_give_numbers() {
    for target in [-1.0_f64, 1.0] {
        for size in [745.2, 1e5, 1e308, f64::MAX] {
            assert_eq!(Logistic.value(-size * target, target), size);
            assert_eq!(Logistic.derivative(-size * target, target), -target);
            assert_eq!(Logistic.value(size * target, target), 0.0);
            assert_eq!(Logistic.derivative(size * target, target), 0.0);
        }
    }
    assert_eq!(Logistic.value(-f32::MAX, 1.0), f32::MAX);
    assert_eq!(Logistic.derivative(f32::MAX, 1.0), 0.0);
    // Far in the tail the result is still relatively accurate, in the subnormal range too.
    assert!((Logistic.derivative(700.0_f64, 1.0) / -(-700.0_f64).exp() - 1.0).abs() < 1e-14);
    assert!(Logistic.derivative(740.0_f64, 1.0) < 0.0);
}

proptest! {
    #[test]
    fn derivative_is_the_slope_of_the_value(p in -30.0..30.0_f64, positive: bool) {
        let y = if positive { 1.0 } else { -1.0 };
        let step = 1e-5;
        let slope = (Logistic.value(p + step, y) - Logistic.value(p - step, y)) / (2.0 * step);
        prop_assert!((Logistic.derivative(p, y) - slope).abs() < 1e-9);
    }

    #[test]
    fn slope_of_the_derivative_stays_below_the_curvature(p in -30.0..30.0_f64, gap in 1e-3..10.0_f64) {
        let change = Logistic.derivative(p + gap, 1.0) - Logistic.derivative(p, 1.0);
        let bound: f64 = Loss::<f64>::curvature_bound(&Logistic);
        prop_assert!((-1e-15..=bound * gap + 1e-15).contains(&change));
    }

    #[test]
    fn derivative_never_exceeds_one(bits: u64, positive: bool) {
        let p = f64::from_bits(bits);
        prop_assume!(!p.is_nan());
        let y = if positive { 1.0 } else { -1.0 };
        let derivative = Logistic.derivative(p, y);
        prop_assert!(derivative.abs() <= 1.0 && derivative * y <= 0.0);
        prop_assert!(Logistic.value(p, y) >= 0.0);
    }

    #[test]
    fn f32_agrees_with_f64(p in -80.0_f32..80.0, positive: bool) {
        let y = if positive { 1.0 } else { -1.0_f32 };
        let (want, got) = (Logistic.derivative(f64::from(p), f64::from(y)), Logistic.derivative(p, y));
        prop_assert!((f64::from(got) - want).abs() <= 4e-7 * want.abs());
        let (want, got) = (Logistic.value(f64::from(p), f64::from(y)), Logistic.value(p, y));
        prop_assert!((f64::from(got) - want).abs() <= 4e-7 * want.abs());
    }
}
