use proptest::prelude::*;

use super::*;

pub(super) fn growth(n: u64, batch_size: u64, passes: u64, schedule: Schedule) -> Growth {
    Growth {
        n,
        batch_size,
        passes,
        schedule,
        averaging: Averaging::Last,
        order: OrderPolicy::Fixed,
        divisor: Divisor::Nominal,
        smoothness: 1.0,
        strong_convexity: 0.0,
        gradient_difference: 2.0,
        radius: None,
        rounding: None,
    }
}

fn double(dim: u64, arithmetic: Arithmetic) -> Option<Rounding> {
    Some(Rounding { unit_roundoff: f64::EPSILON / 2.0, dim, outputs: 1, data_lipschitz: 1.0, arithmetic })
}

prop_compose! {
    fn any_growth()(
        n in 1u64..60, batch_size in 1u64..20, passes in 1u64..5,
        gamma in prop_oneof![Just(0.0), 0.001f64..1.0], beta_over in 1.0f64..50.0, step in 0.01f64..2.5,
        kind in 0..4, average in 0..5, stretch in 1u64..9, fresh: bool, actual: bool, arithmetic: bool,
    ) -> Growth {
        let beta = if gamma > 0.0 { gamma * beta_over } else { 1.0 };
        let schedule = match kind {
            0 => Schedule::Constant { step: step / beta },
            1 if gamma > 0.0 => Schedule::StronglyConvex { smoothness: beta, strong_convexity: gamma },
            3 => {
                let schedule = Schedule::PerPass { step: step / beta, updates_per_pass: 2 };
                Schedule::Restarted { every: stretch, schedule: schedule.into() }
            }
            _ => Schedule::InverseSqrt { step: step / beta },
        };
        let averaging = match average {
            0 => Averaging::Last,
            1 => Averaging::Uniform,
            2 => Averaging::Suffix { updates: 3 },
            3 => Averaging::Restarts { updates: stretch },
            _ => Averaging::Polynomial,
        };
        Growth {
            averaging,
            order: if fresh { OrderPolicy::Fresh } else { OrderPolicy::Fixed },
            divisor: if actual { Divisor::Actual } else { Divisor::Nominal },
            smoothness: beta,
            strong_convexity: gamma,
            rounding: double(7, if arithmetic { Arithmetic::Scaled } else { Arithmetic::Buffered }),
            ..growth(n, batch_size, passes, schedule)
        }
    }
}

proptest! {
    #[test]
    fn certified_bounds_are_never_below_the_formula(growth in any_growth()) {
        let exact = Growth { rounding: None, ..growth.clone() };
        let (formula, certified) = (exact.formula().unwrap(), exact.sensitivity().unwrap());
        prop_assert!(certified.bound >= formula.bound);
        prop_assert!(certified.bound <= formula.bound * (1.0 + 1e-9));
        for (certified, formula) in certified.by_position.iter().zip(&formula.by_position) {
            prop_assert!(certified >= formula);
        }
        // The closed form, if used, is an upper bound on the recursion.
        let bound = exact.bound().unwrap();
        prop_assert!(bound >= formula.bound * (1.0 - 1e-14), "{} below {}", bound, formula.bound);
        prop_assert!(bound <= formula.bound * (1.0 + 1e-9), "{} above {}", bound, formula.bound);
        // Rounding only adds; steps so long that the iterates are unbounded are refused by both.
        match (growth.sensitivity(), growth.bound()) {
            (Ok(rounded), Ok(at_once)) => prop_assert!(rounded.bound > certified.bound && at_once > bound),
            (Err(Error::Sensitivity { .. }), Err(Error::Sensitivity { .. })) => {}
            (by_position, at_once) => prop_assert!(false, "{by_position:?} against {at_once:?}"),
        }
    }

    #[test]
    fn scales_with_gradients_and_with_the_unit_of_length(growth in any_growth(), scale in 0.1f64..10.0) {
        let exact = Growth { rounding: None, ..growth };
        let base = exact.formula().unwrap().bound;
        let gradients = Growth { gradient_difference: 2.0 * scale, ..exact.clone() };
        prop_assert!((gradients.formula().unwrap().bound - base * scale).abs() <= 1e-12 * base * scale);
    }

    #[test]
    fn longer_steps_move_convex_runs_further(
        n in 1u64..50, b in 1u64..9, passes in 1u64..4, step in 0.01f64..1.9, factor in 1.01f64..1.9,
    ) {
        let at = |step| growth(n, b, passes, Schedule::Constant { step }).formula().unwrap().bound;
        prop_assert!(at(step) <= at((step * factor).min(2.0)));
    }

    #[test]
    fn a_radius_caps_the_bound(growth in any_growth(), radius in 0.01f64..3.0) {
        let free = Growth { rounding: None, ..growth };
        let held = Growth { radius: Some(radius), ..free.clone() };
        let bound = held.sensitivity().unwrap().bound;
        prop_assert!(bound <= free.sensitivity().unwrap().bound);
        prop_assert!(bound <= 2.0 * radius * (1.0 + 1e-12));
    }

    #[test]
    fn classes_of_positions_round_up_and_lose_no_record(growth in any_growth(), n in 1u64..2000) {
        let growth = Growth { n, order: OrderPolicy::Fixed, rounding: None, ..growth };
        // Steps beyond 2/β overflow over this many updates, and are refused.
        let Ok(sensitivity) = growth.sensitivity() else { return Ok(()) };
        let classes = PositionClasses::new(&growth, &sensitivity).unwrap();
        prop_assert!(classes.sensitivities.len() <= 256);
        prop_assert!((classes.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let largest = classes.sensitivities.iter().copied().fold(0.0, f64::max);
        prop_assert_eq!(largest, sensitivity.by_position.iter().copied().fold(0.0, f64::max));
        // Stochastic dominance: for each threshold the classes have at least the weight above it that the positions have.
        for &threshold in &sensitivity.by_position {
            let above: f64 = classes.sensitivities.iter().zip(&classes.weights)
                .filter(|(s, _)| **s >= threshold).map(|(_, w)| w).sum();
            let exact: f64 = (0..).zip(&sensitivity.by_position)
                .filter(|(_, s)| **s >= threshold).map(|(r, _)| growth.position_weight(r)).sum();
            prop_assert!(above >= exact - 1e-12, "{} below {}", above, exact);
        }
        // Too high by at most one class.
        let mean: f64 = classes.sensitivities.iter().zip(&classes.weights).map(|(s, w)| s * w).sum();
        let exact: f64 = (0..).zip(&sensitivity.by_position).map(|(r, s)| growth.position_weight(r) * s).sum();
        prop_assert!(mean <= exact + largest / 256.0 * 1.000001);
    }
}

#[test]
fn no_pass_moves_nothing() {
    let none = growth(10, 2, 0, Schedule::Constant { step: 0.1 });
    assert_eq!(none.bound().unwrap(), 0.0);
    assert_eq!(none.sensitivity().unwrap().by_position, vec![0.0; 5]);
}

#[test]
fn a_batch_larger_than_the_data_is_one_batch() {
    let at = |b| growth(10, b, 3, Schedule::Constant { step: 0.1 }).bound().unwrap();
    assert_eq!(at(10), at(1000));
    assert!((at(u64::MAX) - 3.0 * 0.1 * 2.0 / 10.0).abs() < 1e-14);
}

#[test]
fn long_runs_are_planned_at_once_or_refused() {
    let huge = |averaging| Growth {
        averaging,
        strong_convexity: 1e-3,
        ..growth(1 << 45, 1, 10, Schedule::StronglyConvex { smoothness: 1.0, strong_convexity: 1e-3 })
    };
    let bound = huge(Averaging::Last).bound().unwrap();
    let exact = 2.0 / (1e-3 * (1u64 << 45) as f64);
    assert!(bound >= exact && bound <= exact * (1.0 + 1e-9));
    assert!(matches!(huge(Averaging::Uniform).bound(), Err(Error::Count { .. })));
    assert!(growth(u64::MAX, 1, 10, Schedule::Constant { step: 0.1 }).bound().is_err());
    assert!(growth(10, 1, u64::MAX, Schedule::Constant { step: 0.1 }).bound().is_err());
}

#[test]
fn a_capped_schedule_beats_the_published_constant() {
    // β/γ = 10^4 and 12000 updates: most steps are capped at 1/β.
    let bound = Growth {
        smoothness: 1.0001,
        strong_convexity: 1e-4,
        ..growth(60_000, 50, 10, Schedule::StronglyConvex { smoothness: 1.0001, strong_convexity: 1e-4 })
    }
    .bound()
    .unwrap();
    assert!(bound < 0.25 && closed_form::strongly_convex_decreasing(60_000, 1e-4, 2.0) > 0.33);
}

#[test]
fn rounding_is_nil_in_double_precision() {
    // Half a million records, λ = 1e-3, R = 1/λ, ten passes.
    for arithmetic in Arithmetic::ALL {
        let exact = Growth {
            smoothness: 0.251,
            strong_convexity: 1e-3,
            ..growth(500_000, 50, 10, Schedule::StronglyConvex { smoothness: 0.251, strong_convexity: 1e-3 })
        };
        let with = Growth { rounding: double(50, arithmetic), ..exact.clone() }.bound().unwrap();
        let share = with / exact.bound().unwrap() - 1.0;
        assert!(share > 0.0 && share < 5e-4, "{arithmetic:?}: {share}");
    }
    // In single precision the same proof gives an allowance above the sensitivity itself.
    let rounding = Some(Rounding { unit_roundoff: 2f64.powi(-24), ..double(50, Arithmetic::Buffered).unwrap() });
    let single = Growth {
        smoothness: 0.251,
        strong_convexity: 1e-3,
        rounding,
        ..growth(500_000, 50, 10, Schedule::StronglyConvex { smoothness: 0.251, strong_convexity: 1e-3 })
    };
    assert!(single.bound().unwrap() > 10.0 * 2.0 / (1e-3 * 500_000.0));
}

/// The sensitivity of a run over 1e9 records is that of exact arithmetic, up to a few hundredths.
#[test]
fn rounding_is_nil_at_any_number_of_records() {
    for (n, most) in [(3_000_000u64, 0.011), (10_000_000, 0.011), (100_000_000, 0.011), (1_000_000_000, 0.05)] {
        let strongly = Schedule::StronglyConvex { smoothness: 0.251, strong_convexity: 1e-3 };
        let total = 1e3 / (n as f64 / 5.0);
        let convex = Schedule::Constant { step: total };
        for (schedule, lambda, radius) in
            [(strongly, 1e-3, None), (convex.clone(), 0.0, None), (convex, 0.0, Some(2.0))]
        {
            let exact =
                Growth { smoothness: 0.25 + lambda, strong_convexity: lambda, radius, ..growth(n, 50, 10, schedule) };
            let projected = radius.map(|_| 50);
            for plain in [Arithmetic::Buffered, Arithmetic::Scaled] {
                let arithmetic = plain.for_records(n, 10, 50, projected);
                let share = Growth { rounding: double(50, arithmetic), ..exact.clone() }.bound().unwrap()
                    / exact.bound().unwrap()
                    - 1.0;
                assert!(share < most, "{share} of {n} records, {arithmetic:?}, {exact:?}");
            }
        }
    }
}

#[test]
fn rounding_without_a_bound_on_the_iterates_is_refused() {
    let wild = Growth {
        strong_convexity: 1.0,
        rounding: double(3, Arithmetic::Buffered),
        ..growth(5, 1, 1, Schedule::Constant { step: 2.5 })
    };
    assert!(matches!(wild.bound(), Err(Error::Sensitivity { .. })));
    assert!(Growth { radius: Some(1.0), ..wild }.bound().is_ok());
}

/// One update's allowance, term by term as documented: for the iterate, the norm before a projection, the products with the
/// regulariser, the margins and the sum; and for the last iterate.
#[test]
fn the_allowance_for_rounding_is_the_documented_sum() {
    let (dim, batch, unit) = (5.0, 3.0, f64::EPSILON / 2.0);
    for (lambda, beta, step, radius) in [(0.0, 1.0, 0.5, Some(4.0)), (2.0, 3.0, 0.3, Some(40.0)), (0.5, 1.0, 0.9, None)]
    {
        let of_arithmetic = |arithmetic| {
            let without = Growth {
                smoothness: beta,
                strong_convexity: lambda,
                radius,
                ..growth(3, 3, 1, Schedule::Constant { step })
            };
            let with = Growth { rounding: double(5, arithmetic), ..without.clone() };
            (with.bound_from(100.0).unwrap() - without.bound_from(100.0).unwrap()) / (2.02 * unit)
        };
        // One step moves by at most ηL; with a regulariser not beyond the start.
        let reach = radius.unwrap_or(f64::INFINITY).min(if lambda > 0.0 { 100.0 } else { 100.0 + step });
        let per_step = step * (4.0 * lambda * reach + beta * (dim + 2.0) * reach + (batch + 24.0));
        let projection = if radius.is_some() { (dim / 2.0 + 8.0) * reach } else { 0.0 };
        let buffered = 4.0 * reach + projection + per_step + 4.0 * reach;
        let found = of_arithmetic(Arithmetic::Buffered);
        // The difference of two bounds of size 1 is accurate to a few units.
        assert!((found - buffered).abs() <= 3.0, "lambda={lambda} step={step}: {found} {buffered}");
        if radius.is_none() {
            let scaled = (batch + 8.0) * reach + per_step + 4.0 * reach;
            let found = of_arithmetic(Arithmetic::Scaled);
            assert!((found - scaled).abs() <= 3.0, "lambda={lambda} step={step}: {found} {scaled}");
        }
        // The iterate's and the norm's own roundings are of second order.
        let of_projection = if radius.is_some() { 8.0 * step * (lambda * reach + 1.0) } else { 0.0 };
        let two_parts = per_step + 3.0 * step * beta * reach + of_projection + 4.0 * reach;
        let found = of_arithmetic(Arithmetic::TwoParts);
        assert!((found - two_parts).abs() <= 3.0, "lambda={lambda} step={step}: {found} {two_parts}");
    }
}

/// The rounding of one update, counted operation by operation, at a roundoff so coarse that its square matters: from a point
/// at the maximum distance.
#[test]
fn every_operation_of_an_update_is_allowed_for() {
    for (dim, unit) in [(5u64, 2f64.powi(-14)), (400, 2f64.powi(-20))] {
        // Steps that shrink, that flip, and that stretch.
        let convex = (0.0, 1.0, 0.5);
        for (lambda, beta, step) in [convex, (0.5, 1.0, 0.9), (1.0, 1.25, 1.9), (1.0, 1.0, 3.5)] {
            for (radius, batch, outputs) in
                [(Some(4.0), 3u64, 1u64), (Some(4.0), 3, 10), (Some(0.5), 50, 1), (None, 3, 1), (None, 3, 10)]
            {
                if radius.is_none() && step * lambda > 1.0 {
                    continue;
                }
                for arithmetic in Arithmetic::ALL {
                    let rounding = Rounding {
                        unit_roundoff: unit,
                        outputs,
                        data_lipschitz: LENGTH,
                        ..double(dim, arithmetic).unwrap()
                    };
                    let without = Growth {
                        smoothness: beta,
                        strong_convexity: lambda,
                        radius,
                        ..growth(batch, batch, 1, Schedule::Constant { step })
                    };
                    let with = Growth { rounding: Some(rounding), ..without.clone() };
                    let start = 10.0;
                    let found = with.bound_from(start).unwrap() - without.bound_from(start).unwrap();
                    // If no step flips, the regulariser pulls a point this far out back by more than a gradient moves it.
                    let free = if lambda > 0.0 { start } else { start + step * LENGTH };
                    let needed = operations(&with, radius.unwrap_or(free), step);
                    assert!(
                        (found / (2.02 * unit * needed) - 1.0).abs() < 1e-6,
                        "{arithmetic:?} dim={dim} lambda={lambda} step={step} {radius:?} {batch} {outputs}: {found}"
                    );
                }
            }
        }
    }
}

/// A bound on gradients, for these tests.
const LENGTH: f64 = 1.5;

/// The errors of the operations of an update, and of the last iterate, in units: for iterates of norm at most `reach`.
fn operations(run: &Growth, reach: f64, step: f64) -> f64 {
    let rounding = run.rounding.unwrap();
    let (dim, batch, unit) = (rounding.dim, run.batch_size, rounding.unit_roundoff);
    let (lambda, beta) = (run.strong_convexity, run.smoothness);
    // Before a projection: shrunken, or flipped and stretched, and moved by a gradient.
    let shrunken = (1.0 - step * lambda).abs().max(1.0) * reach;
    let moved = step * LENGTH;
    let farthest = shrunken + moved;
    let several = rounding.outputs > 1;
    let mut off = 0.0;
    match rounding.arithmetic {
        Arithmetic::Buffered => {
            off += 4.0 * reach;
            if run.radius.is_some() {
                // The error of the root of a sum of squares is half that of its terms and additions, plus a few.
                off += (0..dim).map(|_| 0.5 * reach).sum::<f64>() + 8.0 * reach;
            }
        }
        Arithmetic::Scaled => {
            // Each example rounds the whole vector; the scale changes eight times at most.
            off += (0..batch + 8).map(|_| shrunken).sum::<f64>();
            if let Some(radius) = run.radius {
                // Updated from a recomputed square over an interval and a batch.
                let interval = if dim / 4 > 64 { dim / 4 } else { 64 };
                let mut square = dim as f64 * farthest * farthest;
                for _ in 0..interval + batch {
                    square += farthest * farthest;
                }
                let added = if several { batch * rounding.outputs } else { 0 };
                // The number of batches, short ones included, each of which moves it by a mean gradient.
                let batches = 2.0 * interval as f64 / batch as f64 + 3.0;
                square += batches * (dim + 2 + added) as f64 * moved * (farthest + farthest);
                let scales = if step * lambda > 2.0 { 16.0 } else { 1.0 };
                off += 8.0 * reach + scales * square / (2.0 * radius);
            }
        }
        Arithmetic::TwoParts => {
            // The errors of the additions of the examples, and of the changes of the scale, are squares of the unit.
            off += (0..batch + 4).map(|_| 4.0 * unit * farthest).sum::<f64>();
            if run.radius.is_some() {
                let of_square = (dim + 20) as f64 * unit;
                off += of_square * of_square / unit * farthest + 8.0 * (step * lambda * reach + moved);
            }
            // Second parts that the gradient omits.
            off += 3.0 * step * beta * reach;
        }
    }
    // Products with the regulariser; the margins, and for several classes the subtraction of the largest one.
    off += step * 4.0 * lambda * reach;
    off += step * beta * (0..dim + 2).map(|_| reach).sum::<f64>();
    // The derivative and its products; additions of a batch; for several classes the exponentials and their sum.
    off += moved * (24 + batch) as f64;
    if several {
        off += 4.0 * step * beta * reach + moved * 2.0 * (rounding.outputs + 8) as f64;
    }
    // The last iterate.
    off + 4.0 * reach
}

/// Averages add the rounding of their summation, each multiplied by the final effect of a difference of it.
#[test]
fn every_average_is_allowed_for() {
    let (dim, batch, updates, step, unit) = (5, 3, 4, 0.25, 2f64.powi(-14));
    // From a distant start, so that the iterates' norm dominates.
    let (start, reach) = (1e4, 1e4 + LENGTH);
    for arithmetic in Arithmetic::ALL {
        let allowed = |averaging| {
            let rounding =
                Some(Rounding { unit_roundoff: unit, data_lipschitz: LENGTH, ..double(dim, arithmetic).unwrap() });
            let without = Growth { averaging, ..growth(batch, batch, updates, Schedule::Constant { step }) };
            let with = Growth { rounding, ..without.clone() };
            (with.bound_from(start).unwrap() - without.bound_from(start).unwrap()) / (2.02 * unit)
        };
        let each = operations(
            &Growth {
                rounding: Some(Rounding {
                    unit_roundoff: unit,
                    data_lipschitz: LENGTH,
                    ..double(dim, arithmetic).unwrap()
                }),
                ..growth(batch, batch, 1, Schedule::Constant { step })
            },
            reach,
            step,
        ) - 4.0 * reach;
        // Sums of whole iterates, of iterates in two parts, and lazily beside a scaled one.
        let summing = |stretch: f64, steps: f64| match arithmetic {
            Arithmetic::Buffered => (stretch + 4.0) * reach,
            Arithmetic::TwoParts => (8.0 + 4.0 * stretch * unit) * reach,
            Arithmetic::Scaled => 16.0 * (3.0 * stretch + 2.0) * reach + (8.0 * 3.0 + 28.0) * LENGTH * steps,
        };
        let near = |found: f64, needed: f64| {
            assert!((found / needed - 1.0).abs() < 1e-6, "{arithmetic:?}: {found} {needed}");
        };
        near(allowed(Averaging::Last), 4.0 * each + 4.0 * reach);
        // An update enters the mean through all later iterates: 1, 3/4, 1/2, 1/4 of it.
        near(allowed(Averaging::Uniform), 2.5 * each + summing(4.0, 4.0 * step));
        // For any signs, an update enters all later iterates.
        let values = vec![0.5, -1.0, 2.0, 0.25];
        near(allowed(Averaging::Coefficients { values }), 9.5 * each + 3.75 * summing(4.0, 4.0 * step));
        // Twice a mean of two; the effect of the first is passed on in full.
        near(allowed(Averaging::Restarts { updates: 2 }), 3.0 * each + 2.0 * summing(2.0, 4.0 * step));
    }
}

#[test]
fn nonsense_is_refused() {
    let good = growth(10, 2, 1, Schedule::Constant { step: 0.1 });
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        assert!(Growth { smoothness: bad, ..good.clone() }.bound().is_err(), "{bad}");
        assert!(Growth { strong_convexity: bad, ..good.clone() }.bound().is_err(), "{bad}");
        assert!(Growth { gradient_difference: bad, ..good.clone() }.bound().is_err(), "{bad}");
        assert!(Growth { radius: Some(bad), ..good.clone() }.bound().is_err(), "{bad}");
    }
    // Squares of this radius underflow, so that no point would be found to lie outside.
    assert!(Growth { radius: Some(1e-170), ..good.clone() }.bound().is_err());
    assert!(Growth { n: 0, ..good.clone() }.bound().is_err());
    assert!(Growth { batch_size: 0, ..good.clone() }.bound().is_err());
    assert!(Growth { strong_convexity: 2.0, ..good.clone() }.bound().is_err());
    let overflowing = Growth { schedule: Schedule::Constant { step: 1e300 }, passes: 3, ..good };
    assert!(overflowing.bound().is_err());
}

#[test]
fn hiding_needs_one_permutation() {
    let fresh = Growth { order: OrderPolicy::Fresh, ..growth(10, 2, 2, Schedule::Constant { step: 0.1 }) };
    let sensitivity = fresh.sensitivity().unwrap();
    assert!(matches!(PositionClasses::new(&fresh, &sensitivity), Err(Error::NotProved { .. })));
    // Equal positions gain nothing.
    let fixed = Growth { order: OrderPolicy::Fixed, ..fresh };
    assert!(PositionClasses::new(&fixed, &fixed.sensitivity().unwrap()).unwrap().is_single());
}
