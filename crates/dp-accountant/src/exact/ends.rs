//! A number between two certified ends.

/// Relative amount by which ends may cross through rounding.
const ROUNDING: f64 = 1e-9;

/// Relative distance of the ends above which another engine is tried.
pub(crate) const WIDE: f64 = 1e-3;

/// Bounds on an epsilon, a delta or a logarithm of one: it lies between the ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ends {
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

impl Ends {
    /// Returns ends that both equal `value`.
    pub(crate) const fn exactly(value: f64) -> Self {
        Self { lower: value, upper: value }
    }

    /// Returns bounds on the larger of two numbers.
    pub(crate) const fn larger(self, other: Self) -> Self {
        Self { lower: self.lower.max(other.lower), upper: self.upper.max(other.upper) }
    }

    /// Combines two bounds on the same number. If rounding makes them disagree, the upper end wins. If they disagree by more, one
    /// of them is wrong, and the result covers everything between them.
    pub(crate) const fn both(self, other: Self) -> Self {
        let (lower, upper) = (self.lower.max(other.lower), self.upper.min(other.upper));
        if lower - upper > ROUNDING * upper.abs() {
            return Self { lower: self.lower.min(other.lower), upper: self.upper.max(other.upper) };
        }
        Self { lower: lower.min(upper), upper }
    }
}

/// Returns the largest point near `start`, and not above it, at which a decreasing function is shown to be at least 0, by growing
/// steps of Newton's method; 0 if there is none. `f` gives a lower bound and a slope.
pub(crate) fn largest_shown(start: f64, f: impl Fn(f64) -> (f64, f64)) -> f64 {
    let mut x = start;
    let mut factor = 1.0;
    for _ in 0..100 {
        if !(x > 0.0) {
            return 0.0;
        }
        let (value, slope) = f(x);
        if value >= 0.0 {
            return x;
        }
        let step = factor * (value / slope).abs();
        // A slope that is not finite, or a value of minus infinity: halve.
        x = if step.is_finite() { (x - step).next_down() } else { 0.5 * x };
        factor *= 1.3;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_combine() {
        let (a, b) = (Ends { lower: 1.0, upper: 3.0 }, Ends { lower: 2.0, upper: 2.5 });
        assert_eq!(a.larger(b), Ends { lower: 2.0, upper: 3.0 });
        assert_eq!(a.both(b), b);
        // Rounding: the upper end wins. Contradiction: the result excludes nothing between the two bounds.
        let below = 1.0 - 1e-12;
        assert_eq!(a.both(Ends::exactly(below)), Ends::exactly(below));
        assert_eq!(a.both(Ends::exactly(0.5)), Ends { lower: 0.5, upper: 3.0 });
        assert_eq!(Ends::exactly(0.5).both(a), a.both(Ends::exactly(0.5)));
    }

    #[test]
    fn the_largest_shown_point_is_found_from_above() {
        let x = largest_shown(3.0, |x| (2.0 - x * x, -2.0 * x));
        assert!(x <= 2f64.sqrt() && x > 1.0, "{x}");
        assert_eq!(largest_shown(1.0, |_| (f64::NEG_INFINITY, f64::NAN)), 0.0);
        assert_eq!(largest_shown(1.0, |_| (-1.0, 0.0)), 0.0);
    }
}
