//! The one root finder: the least point at which a decreasing function is not positive, on the safe side.

/// A function's value and derivative.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tangent {
    pub(crate) value: f64,
    pub(crate) slope: f64,
}

/// More than enough: each step at least halves the bracket or is a Newton step that stays inside it.
const MAX_STEPS: u32 = 200;

/// A point close to the least `x` in `[low, safe]` with `f(x) <= 0`, for decreasing `f`.
///
/// `safe` must satisfy `f(safe) <= 0`; if it does not (rounding), the answer moves up until it does. The invariant is
/// that every answer returned was evaluated and found not positive, so that errors of the search cost tightness only;
/// at the cap the last such point is returned. Newton steps inside a shrinking bracket, bisection otherwise; for a
/// concave `f` Newton's steps from the right stay on the safe side and need about five evaluations.
pub(crate) fn least_safe(low: f64, safe: f64, f: impl Fn(f64) -> Tangent) -> f64 {
    let mut low = low;
    let mut best = f64::INFINITY;
    let mut x = safe;
    for _ in 0..MAX_STEPS {
        let Tangent { value, slope } = f(x);
        if value <= 0.0 {
            best = best.min(x);
        } else {
            low = low.max(x);
        }
        if best.is_infinite() {
            break;
        }
        let newton = x - value / slope;
        let next = if newton > low && newton < best { newton } else { 0.5 * (low + best) };
        if (next - x).abs() <= 2.0 * f64::EPSILON * x.abs() || best - low <= 2.0 * f64::EPSILON * best.abs() {
            x = next;
            break;
        }
        x = next;
    }
    step_up(x.max(low).min(best), &f).min(best)
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
        let concave = least_safe(0.0, 100.0, |x| Tangent { value: 2.0 - x * x, slope: -2.0 * x });
        assert!((concave - 2f64.sqrt()).abs() < 1e-15 && 2.0 - concave * concave <= 0.0);
        let convex = least_safe(0.0, 100.0, |x| Tangent { value: (-x).exp() - 0.1, slope: -(-x).exp() });
        assert!((convex - 10f64.ln()).abs() < 4e-15 && (-convex).exp() - 0.1 <= 0.0);
    }

    #[test]
    fn survives_useless_slopes() {
        for slope in [0.0, f64::NAN, f64::INFINITY, 1.0] {
            let root = least_safe(0.0, 10.0, |x| Tangent { value: 3.0 - x, slope });
            assert!((3.0..3.0 + 1e-14).contains(&root), "{slope}: {root}");
        }
    }

    #[test]
    fn moves_up_where_the_safe_end_is_not_safe() {
        let root = least_safe(0.0, 1.0, |x| Tangent { value: 1.0 + 1e-12 - x, slope: -1.0 });
        assert!((1.0 + 1e-12..1.0 + 4e-12).contains(&root), "{root}");
        assert_eq!(least_safe(0.0, 1.0, |_| Tangent { value: f64::NAN, slope: -1.0 }), f64::INFINITY);
    }
}
