//! The search for the best Renyi order.

/// Distance of the coarse scan's points in `ln(order - 1)`.
const STEP: f64 = 0.5;
/// The scan starts with `order - 1` between about 1e-3 and 1e6,
const FIRST: f64 = -7.0;
const LAST: f64 = 14.0;
/// and continues in either direction, to about 1e-15 and 1e15, while this improves the bound.
const FARTHEST: f64 = 34.5;
/// Width of a bracket at which the search ends: a bound is nearly smooth there, and its excess is quadratic in the width.
const NARROW: f64 = 3e-7;
const MAX_STEPS: u32 = 60;
/// The smaller part of the golden section.
const GOLDEN: f64 = 0.381_966_011_250_105_1;

/// Returns the least value of `bound` over orders above 1.
pub(super) fn minimise(bound: impl Fn(f64) -> f64) -> f64 {
    minimiser(bound).1
}

/// Returns an order above 1 with the least value of `bound`, and that value.
///
/// Uses a coarse scan on `ln(order - 1)`, extended until its minimum is interior, then Brent's method around it: parabolas if
/// they help, otherwise the golden section. The objective, `(c(a) + constant)/(a - 1)` with a convex `c`, has one minimum up to
/// small terms, so the scan finds its bracket. Every order gives a sound bound, so an error of the search costs only tightness.
/// NaN counts as infinity.
///
/// # References
/// Brent 1973, "Algorithms for minimization without derivatives", chapter 5.
pub(super) fn minimiser(bound: impl Fn(f64) -> f64) -> (f64, f64) {
    let at = |y: f64| {
        let value = bound(1.0 + y.exp());
        if value.is_nan() { f64::INFINITY } else { value }
    };
    let (mut best_y, mut best) = (FIRST, at(FIRST));
    let points = ((LAST - FIRST) / STEP) as u32;
    for i in 1..=points {
        let y = FIRST + STEP * f64::from(i);
        let value = at(y);
        if value < best {
            (best_y, best) = (y, value);
        }
    }
    for direction in [-STEP, STEP] {
        let end = if direction < 0.0 { FIRST } else { LAST };
        while (best_y - end) * direction >= 0.0 && best_y.abs() < FARTHEST {
            let value = at(best_y + direction);
            if !(value < best) {
                break;
            }
            (best_y, best) = (best_y + direction, value);
        }
    }
    let (y, value) = refine(best_y, best, STEP, at);
    (1.0 + y.exp(), value)
}

/// Returns the least value near `start` of a function with one minimum: doubles steps until they bracket it, then uses Brent's
/// method.
pub(super) fn minimise_from(start: f64, at: impl Fn(f64) -> f64) -> f64 {
    let (mut y, mut value) = (start, at(start));
    let mut step = STEP;
    for direction in [1.0, -1.0] {
        step = STEP;
        let mut moved = false;
        while y.abs() < FARTHEST {
            let next = at(y + direction * step);
            if !(next < value) {
                break;
            }
            (y, value, moved) = (y + direction * step, next, true);
            step *= 2.0;
        }
        if moved {
            break;
        }
    }
    refine(y, value, step, at).1
}

/// Runs Brent's method in `[y - step, y + step]` from `y`, where the value is `best`.
fn refine(y: f64, best: f64, step: f64, at: impl Fn(f64) -> f64) -> (f64, f64) {
    let (mut low, mut high) = (y - step, y + step);
    // The best point so far, the second best, and the previous second best.
    let (mut x, mut fx) = (y, best);
    let (mut w, mut fw, mut v, mut fv) = (x, fx, x, fx);
    let (mut step, mut step_before): (f64, f64) = (0.0, 0.0);
    for _ in 0..MAX_STEPS {
        let middle = 0.5 * (low + high);
        let tolerance = 0.25 * NARROW;
        if (x - middle).abs() <= 2.0 * tolerance - 0.5 * (high - low) {
            break;
        }
        // The minimum of the parabola through the three points.
        let (r, q) = ((x - w) * (fx - fv), (x - v) * (fx - fw));
        let parabola = 0.5 * ((x - v) * q - (x - w) * r) / (r - q);
        let usable = parabola.abs() < 0.5 * step_before.abs() && x + parabola > low && x + parabola < high;
        (step, step_before) = if usable {
            (parabola, step)
        } else {
            let wide = if x < middle { high - x } else { low - x };
            (GOLDEN * wide, wide)
        };
        if step.abs() < tolerance {
            step = if middle > x { tolerance } else { -tolerance };
        }
        let u = x + step;
        let fu = at(u);
        if fu <= fx {
            if u < x {
                high = x
            } else {
                low = x
            }
            (v, fv, w, fw, x, fx) = (w, fw, x, fx, u, fu);
        } else {
            if u < x {
                low = u
            } else {
                high = u
            }
            if fu <= fw || w == x {
                (v, fv, w, fw) = (w, fw, u, fu);
            } else if fu <= fv || v == x || v == w {
                (v, fv) = (u, fu);
            }
        }
    }
    (x, fx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_interior_minima_near_and_far() {
        for minimum in [1.0 + 1e-10, 1.0 + 1e-4, 1.5, 8.12, 19_000.0, 1e9, 1e13] {
            let bound = |order: f64| {
                let distance = ((order - 1.0) / (minimum - 1.0)).ln();
                1.0 + distance * distance
            };
            let (order, value) = minimiser(bound);
            assert!(value < 1.0 + 1e-12, "{minimum}: {value}");
            assert!((order - 1.0) / (minimum - 1.0) - 1.0 < 1e-5, "{minimum}: {order}");
        }
    }

    #[test]
    fn finds_kinks_and_one_sided_walls() {
        let kink = |order: f64| ((order - 1.0).ln() - 2.3).abs() + 5.0;
        assert!(minimise(kink) < 5.0 + 1e-6);
        let wall = |order: f64| if order > 7.25 { f64::INFINITY } else { 1.0 + 1.0 / order };
        assert!(minimise(wall) < 1.0 + (1.0 + 1e-6) / 7.25);
    }

    #[test]
    fn needs_few_evaluations_of_a_smooth_bound() {
        let evaluations = core::cell::Cell::new(0);
        let least = minimise(|order| {
            evaluations.set(evaluations.get() + 1);
            0.01 * order + 11.5 / (order - 1.0)
        });
        assert!((least - (0.01 + 2.0 * (0.115f64).sqrt())).abs() < 1e-12, "{least}");
        assert!(evaluations.get() <= 60, "{evaluations:?}");
    }

    #[test]
    fn monotone_and_undefined_bounds_terminate() {
        assert!(minimise(|order| 1.0 / order) < 1e-14);
        assert!(minimise(|order| order) < 1.0 + 1e-13);
        assert_eq!(minimise(|_| f64::NAN), f64::INFINITY);
        assert_eq!(minimise(|_| f64::INFINITY), f64::INFINITY);
    }
}
