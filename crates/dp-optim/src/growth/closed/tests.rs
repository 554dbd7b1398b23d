use proptest::prelude::*;

use super::super::{Growth, recursion, tests};
use super::*;
use crate::averaging::Averaging;

fn growth(n: u64, batch_size: u64, passes: u64, schedule: Schedule, smoothness: f64, strong_convexity: f64) -> Growth {
    Growth { smoothness, strong_convexity, ..tests::growth(n, batch_size, passes, schedule) }
}

proptest! {
    /// Every closed form is an upper bound on the result of the recursion.
    #[test]
    fn closed_forms_are_above_the_recursion(
        n in 1u64..400, batch_size in 1u64..4, passes in 1u64..5, beta in 0.05f64..20.0, convexity in 1e-3f64..1.0,
        convex: bool, step in 0.01f64..1.0, constant: bool, cap in 1.0f64..50.0,
    ) {
        let gamma = if convex && constant { 0.0 } else { beta * convexity };
        let schedule = if constant {
            Schedule::Constant { step: step * 2.0 / (beta + gamma) }
        } else {
            Schedule::StronglyConvex { smoothness: beta * cap, strong_convexity: gamma }
        };
        let growth = growth(n, batch_size, passes, schedule, beta, gamma);
        let checked = growth.check().unwrap();
        let (closed, run) = (terms(&checked).unwrap(), recursion::nearest(&checked).unwrap());
        let above = |closed: f64, run: f64| closed >= run * (1.0 - 1e-13);
        prop_assert!(above(closed.distance, run.distance) && closed.distance <= run.distance * (1.0 + 1e-9));
        let (sums, exact) = (closed.rounding, run.rounding);
        prop_assert!(above(sums.reach, exact.reach), "{sums:?} {exact:?}");
        prop_assert!(above(sums.step_times_reach, exact.step_times_reach), "{sums:?} {exact:?}");
        prop_assert!(above(sums.steps, exact.steps), "{sums:?} {exact:?}");
        prop_assert_eq!((sums.handed_on, exact.handed_on), (0.0, 0.0));
        if constant {
            // `Σ ρ^(T - t)` is at least `1 - 1/e` times the minimum of `T` and `1 / (1 - ρ)`.
            prop_assert!(sums.reach <= 1.6 * exact.reach && sums.step_times_reach <= 1.6 * exact.step_times_reach);
            prop_assert!(sums.steps <= exact.steps * (1.0 + 1e-9));
        }
        // The first of a hundred positions is omitted.
        let late = &run.by_position[run.by_position.len() / 100..];
        let least = late.iter().copied().fold(f64::INFINITY, f64::min) / run.distance;
        prop_assert!(closed.evenness <= least * (1.0 + 1e-9), "{} {least}", closed.evenness);
        if n < 100 {
            prop_assert!(closed.evenness >= least * (1.0 - 1e-9), "{} {least}", closed.evenness);
        }
    }
}

/// Only a schedule for the run's own strong convexity, with a cap that its smoothness allows, telescopes.
#[test]
fn other_schedules_have_no_closed_form() {
    let has_one = |smoothness: f64, strong_convexity: f64| {
        let growth = growth(10, 1, 2, Schedule::StronglyConvex { smoothness, strong_convexity }, 2.0, 0.5);
        growth.check().is_ok_and(|checked| terms(&checked).is_some())
    };
    assert!(has_one(2.0, 0.5) && has_one(3.0, 0.5));
    assert!(!has_one(2.0, 0.4) && !has_one(2.0, 0.6) && !has_one(1.5, 0.5));
}

/// Coefficients that add up to 3: three times the ball's diameter, and no less.
#[test]
fn the_cap_grows_with_the_coefficients() {
    let growth = Growth {
        averaging: Averaging::Coefficients { values: vec![0.5; 6] },
        radius: Some(0.75),
        ..growth(6, 1, 1, Schedule::Constant { step: 100.0 }, 1.0, 0.0)
    };
    let found = growth.bound().unwrap();
    assert!((4.5..=4.5 * (1.0 + 1e-14)).contains(&found), "{found}");
}

/// Runs so long that the rounding of the steps adds up: against `Σ_j ρ^(uj)` by logarithms, and exactly if `ρ` is 1.
#[test]
fn long_runs_are_rounded_upwards() {
    let n = 1_000_000;
    for passes in [1, 3] {
        // `ρ = 1 - 2^-20` is a double.
        let (step, gamma) = (2f64.powi(-10), 2f64.powi(-10));
        let growth = growth(n, 1, passes, Schedule::Constant { step }, 1.0, gamma);
        let over_pass = (n as f64 * (-step * gamma).ln_1p()).exp();
        let exact = 2.0 * step * (0..passes).map(|pass| over_pass.powf(pass as f64)).sum::<f64>();
        let found = terms(&growth.check().unwrap()).unwrap().distance;
        // The last pass has no factor.
        let room = if passes == 1 { 1.0 } else { 1.0 + 1e-12 };
        assert!(found >= exact * room && found <= exact * (1.0 + 1e-8), "{passes}: {found} {exact}");
    }
    for passes in [1, 3] {
        let growth = growth(n, 1, passes, Schedule::Constant { step: 0.5 }, 1.0, 0.0);
        let found = terms(&growth.check().unwrap()).unwrap();
        let updates = (n * passes) as f64;
        assert!(
            found.distance >= passes as f64 && found.distance <= passes as f64 * (1.0 + 1e-7),
            "{}",
            found.distance
        );
        assert!(found.rounding.reach >= updates && found.rounding.step_times_reach >= 0.5 * updates);
        assert!(found.rounding.reach <= updates * (1.0 + 1e-7));
    }
    // `(1 - x^m) / (1 - x)`.
    let (gap, count) = (2f64.powi(-20), 1_000_000);
    let exact = -(f64::from(count) * (-gap).ln_1p()).exp_m1() / gap;
    let found = powers(1.0 - gap, count as u64);
    assert!(found >= exact * (1.0 + 1e-12) && found <= exact * (1.0 + 1e-8), "{found} {exact}");
}
