//! The root finder: the least point at which a decreasing function is not positive, on the safe side.

/// A function's value and derivative.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tangent {
    pub(crate) value: f64,
    pub(crate) slope: f64,
}

/// Maximum number of steps, far above need: each at least halves the bracket or is a Newton step inside it.
const MAX_STEPS: u32 = 200;

/// Relative size of the last step: Newton's method converges quadratically, so the point is then exact to rounding.
const LAST_STEP: f64 = 1e-12;

/// Returns a point close to the least `x` in `[low, high]` with `f(x) <= 0`, for decreasing `f` with `f(high) <= 0`.
///
/// Uses Newton's method from `start` inside a bracket that shrinks with every evaluation, and bisection if a step would leave it.
/// The result was evaluated and found not positive: if the search ends slightly below the root, or `high` is not safe because of
/// rounding, it moves up until this holds. Errors of the search thus cost only tightness.
pub(crate) fn least_safe(low: f64, start: f64, high: f64, f: impl Fn(f64) -> Tangent) -> f64 {
    let (mut low, mut high, mut x) = (low, high, start);
    for _ in 0..MAX_STEPS {
        let Tangent { value, slope } = f(x);
        if value <= 0.0 {
            high = high.min(x);
        } else {
            low = low.max(x);
        }
        let newton = x - value / slope;
        let converged = slope.is_finite() && (newton - x).abs() <= LAST_STEP * x.abs();
        if converged && value <= 0.0 {
            return x;
        }
        // NaN and steps out of the bracket fail both comparisons.
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        if converged || high - low <= 2.0 * f64::EPSILON * high {
            x = if converged { newton } else { high };
            break;
        }
        x = next;
    }
    step_up(x, f)
}

/// Moves up from `x`, by steps that double, until the function is not positive; infinity if it never is.
fn step_up(x: f64, f: impl Fn(f64) -> Tangent) -> f64 {
    let mut x = x;
    let mut step = f64::EPSILON;
    while x.is_finite() {
        if f(x).value <= 0.0 {
            return x;
        }
        x = (x * (1.0 + step)).next_up();
        step *= 2.0;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_root_of_concave_and_convex_functions_from_the_right() {
        let concave = least_safe(0.0, 100.0, 100.0, |x| Tangent { value: 2.0 - x * x, slope: -2.0 * x });
        assert!((concave - 2f64.sqrt()).abs() < 2e-12 && 2.0 - concave * concave <= 0.0);
        let convex = least_safe(0.0, 100.0, 100.0, |x| Tangent { value: (-x).exp() - 0.1, slope: -(-x).exp() });
        assert!((convex - 10f64.ln()).abs() < 3e-12 && (-convex).exp() - 0.1 <= 0.0);
    }

    #[test]
    fn needs_few_evaluations() {
        let evaluations = core::cell::Cell::new(0);
        let root = least_safe(0.0, 9.0, 100.0, |x| {
            evaluations.set(evaluations.get() + 1);
            Tangent { value: 40.0 - x * x, slope: -2.0 * x }
        });
        assert!((root - 40f64.sqrt()).abs() < 1e-11 && evaluations.get() < 9, "{root} {evaluations:?}");
    }

    #[test]
    fn survives_useless_slopes() {
        for slope in [0.0, f64::NAN, f64::INFINITY, 1.0] {
            let root = least_safe(0.0, 10.0, 10.0, |x| Tangent { value: 3.0 - x, slope });
            assert!((3.0..3.0 + 1e-11).contains(&root), "{slope}: {root}");
        }
    }

    #[test]
    fn moves_up_where_the_safe_end_is_not_safe() {
        let root = least_safe(0.0, 1.0, 1.0, |x| Tangent { value: 1.0 + 1e-12 - x, slope: -1.0 });
        assert!((1.0 + 1e-12..1.0 + 4e-12).contains(&root), "{root}");
        assert_eq!(least_safe(0.0, 1.0, 1.0, |_| Tangent { value: f64::NAN, slope: -1.0 }), f64::INFINITY);
    }
}
