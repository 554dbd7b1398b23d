use super::*;
use crate::logspace::CompensatedSum;

/// Returns the masses of `count` independent losses, by convolution with compensated sums and products.
fn convolved(law: &Masses, count: u64) -> Masses {
    let mut total = Masses { first: 0, finite: vec![1.0], infinite: 0.0 };
    for _ in 0..count {
        let mut sums = vec![CompensatedSum::default(); total.finite.len() + law.finite.len() - 1];
        for (i, left) in total.finite.iter().enumerate() {
            for (j, right) in law.finite.iter().enumerate() {
                let product = left * right;
                sums[i + j].add(product);
                sums[i + j].add(left.mul_add(*right, -product));
            }
        }
        let finite = sums.into_iter().map(CompensatedSum::value).collect();
        total = Masses { first: total.first + law.first, finite, infinite: 0.0 };
    }
    total
}

fn delta(law: &Masses, step: f64, epsilon: f64) -> f64 {
    let mut sum = CompensatedSum::default();
    for (k, mass) in (law.first..).zip(&law.finite) {
        sum.add(mass * -(epsilon - k as f64 * step).min(0.0).exp_m1());
    }
    sum.value()
}

/// Returns a skewed law with masses from 1 down to 1e-9.
fn law() -> Masses {
    let finite: Vec<f64> = (0..40).map(|k| (-0.5 * f64::from(k)).exp() * (1.1 + f64::from(k).sin())).collect();
    let total: f64 = finite.iter().sum();
    Masses { first: -6, finite: finite.into_iter().map(|mass| mass / total).collect(), infinite: 0.0 }
}

/// Both bounds enclose the exact composition of the same law on the grid, for deltas from 1e-2 to 1e-40, with a width of no more
/// than the charged rounding.
#[test]
fn bounds_hold_about_direct_convolution() {
    let (law, step) = (law(), 0.07);
    for count in [1, 2, 7, 24] {
        let exact = convolved(&law, count);
        for tilt in [0.5, 3.0, 6.0] {
            let fft = Fft::new(12);
            let cumulants = |tilt| Cumulants::of([(&law, count as f64)].into_iter(), tilt);
            let aliases = Aliases::new(cumulants, step, tilt).with_window(fft.length() as f64 * step);
            let part = PartSide { masses: &law, count };
            let (upper, lower) = compose(&fft, step, tilt, &[(part, Some(&law))]).unwrap();
            let lower = lower.unwrap();
            for i in 0..40 {
                let epsilon = 0.3 * f64::from(i);
                let truth = delta(&exact, step, epsilon).ln();
                if !(truth > -90.0) {
                    break;
                }
                let above = upper.log_upper(&fft, epsilon);
                let below = lower.log_lower(&fft, epsilon, aliases.log_bound(epsilon));
                // The reference rounds once for each factor.
                let rounding = 4.0 * f64::EPSILON * (count as f64 + 4.0);
                assert!(above >= truth - rounding, "{count} {tilt} {epsilon}: {above} < {truth}");
                assert!(below <= truth + rounding, "{count} {tilt} {epsilon}: {below} > {truth}");
                // The epsilon for which the tilt was chosen.
                let suits = cumulants(tilt * step)
                    .is_some_and(|found| (found.mean * step - epsilon).abs() < 2.0 * step * found.variance.sqrt());
                assert!(!suits || above - below < 1e-8, "{count} {tilt} {epsilon}: {below} {above}");
            }
        }
    }
}

#[test]
fn infinite_losses_add_up() {
    let law = Masses { first: 0, finite: vec![0.5, 0.25], infinite: 0.25 };
    let fft = Fft::new(6);
    let part = PartSide { masses: &law, count: 3 };
    let (upper, lower) = compose(&fft, 0.5, 1.0, &[(part, Some(&law))]).unwrap();
    let truth = 1.0 - 0.75f64.powi(3);
    assert!((upper.infinite() / truth - 1.0).abs() < 1e-11 && upper.infinite() >= truth);
    assert!(lower.is_some_and(|lower| lower.infinite() <= truth && lower.infinite() > 0.999_999 * truth));
}

#[test]
fn powers_of_the_unit_circle_stay_bounded() {
    // A million times a rotation by a million-th of a turn is a turn.
    let angle = 2.0 * core::f64::consts::PI / 1e6;
    let value = Complex::new(angle.cos(), angle.sin());
    let (turned, rounding) = power(value, value.norm(), 1_000_000);
    assert!((turned.re - 1.0).hypot(turned.im) < 1e6 * rounding);
    let (few, _) = power(value, 1.0, 3);
    assert!((few.re - (3.0 * angle).cos()).abs() < 1e-15 && (few.im - (3.0 * angle).sin()).abs() < 1e-15);
}
