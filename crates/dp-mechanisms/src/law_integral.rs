//! Adaptive Gauss-Legendre quadrature of several non-negative functions at once: the laws of selection mechanisms.
//!
//! For planning only; no private result depends on its accuracy.

use std::sync::LazyLock;

/// Number of nodes of one panel.
const NODES: usize = 16;

/// Relative difference of a panel's value and that of its halves, compared with the whole, at which halving ends. The error of
/// the halves, which are used, is far smaller.
const TOLERANCE: f64 = 1e-11;

/// A panel is not halved if its part of every total is at most this.
const NEGLIGIBLE: f64 = 1e-20;

/// Number of panels at which refinement stops.
const MOST_PANELS: usize = 1 << 16;

/// Nodes in [-1, 1] and weights, by Newton's method on the Legendre polynomial.
struct Rule([(f64, f64); NODES]);

static RULE: LazyLock<Rule> = LazyLock::new(Rule::new);

impl Rule {
    fn new() -> Self {
        let n = NODES as f64;
        let mut rule = [(0.0, 0.0); NODES];
        for (i, entry) in rule.iter_mut().enumerate() {
            let mut x = (core::f64::consts::PI * (i as f64 + 0.75) / (n + 0.5)).cos();
            let mut slope = 1.0;
            // The start is within 1e-3 of the root; Newton's method squares the error.
            for _ in 0..6 {
                let (mut value, mut before) = (x, 1.0);
                for k in 2..=NODES {
                    let k = k as f64;
                    (value, before) = (((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k, value);
                }
                slope = n * (x * value - before) / (x * x - 1.0);
                x -= value / slope;
            }
            *entry = (x, 2.0 / ((1.0 - x * x) * slope * slope));
        }
        Self(rule)
    }
}

/// A part of the interval with the integrals over it.
struct Panel {
    low: f64,
    high: f64,
    integrals: Vec<f64>,
}

/// Returns the integrals over `[low, high]` of `components` non-negative functions, which `f` evaluates at one point.
///
/// They must be smooth except at the `breakpoints`, and vary on the length `scale` near those and near the ends.
pub(crate) fn integrate(
    low: f64,
    high: f64,
    breakpoints: &[f64],
    scale: f64,
    components: usize,
    mut f: impl FnMut(f64, &mut [f64]),
) -> Vec<f64> {
    let mut values = vec![0.0; components];
    let mut panel = |low: f64, high: f64| {
        let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
        let mut integrals = vec![0.0; components];
        for (node, weight) in &RULE.0 {
            f(middle + half * node, &mut values);
            for (integral, value) in integrals.iter_mut().zip(&values) {
                *integral += half * weight * value;
            }
        }
        Panel { low, high, integrals }
    };
    let mut open: Vec<Panel> =
        graded(low, high, breakpoints, scale).windows(2).map(|ends| panel(ends[0], ends[1])).collect();
    let mut totals = vec![0.0; components];
    for whole in &open {
        add(&mut totals, &whole.integrals, 1.0);
    }
    let mut panels = open.len();
    while let Some(whole) = open.pop() {
        let middle = 0.5 * (whole.low + whole.high);
        let is_negligible = whole.integrals.iter().zip(&totals).all(|(part, total)| *part <= NEGLIGIBLE * total);
        if is_negligible || panels >= MOST_PANELS || !(whole.low < middle && middle < whole.high) {
            continue;
        }
        let (left, right) = (panel(whole.low, middle), panel(middle, whole.high));
        add(&mut totals, &whole.integrals, -1.0);
        add(&mut totals, &left.integrals, 1.0);
        add(&mut totals, &right.integrals, 1.0);
        let settled = (0..components).all(|i| {
            let halves = left.integrals[i] + right.integrals[i];
            (whole.integrals[i] - halves).abs() <= TOLERANCE * totals[i]
        });
        if !settled {
            panels += 1;
            open.push(left);
            open.push(right);
        }
    }
    totals
}

fn add(totals: &mut [f64], integrals: &[f64], sign: f64) {
    for (total, integral) in totals.iter_mut().zip(integrals) {
        *total += sign * integral;
    }
}

/// Returns the ends of panels: the ends, the breakpoints between them, and from each of these outward points at distance `scale`,
/// `2 scale`, `4 scale`, ... up to half the distance to the next.
fn graded(low: f64, high: f64, breakpoints: &[f64], scale: f64) -> Vec<f64> {
    let inside = breakpoints.iter().copied().filter(|&point| low < point && point < high);
    let mut ends: Vec<f64> = [low, high].into_iter().chain(inside).collect();
    ends.sort_unstable_by(f64::total_cmp);
    ends.dedup();
    let mut points = Vec::new();
    for pair in ends.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        points.push(from);
        let mut distance = scale;
        while distance > 0.0 && 2.0 * distance < to - from {
            points.push(from + distance);
            points.push(to - distance);
            distance *= 2.0;
        }
    }
    points.push(high);
    points.sort_unstable_by(f64::total_cmp);
    points.dedup();
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_of_degree_31_are_exact() {
        let rule = Rule::new();
        for power in (0..31).step_by(2) {
            let sum: f64 = rule.0.iter().map(|(x, weight)| weight * x.powi(power)).sum();
            assert!((sum - 2.0 / f64::from(power + 1)).abs() < 1e-14, "{power}");
        }
    }

    /// Panels with a millionth of the total are refined too: 16 nodes do not resolve these oscillations.
    #[test]
    fn small_panels_are_refined() {
        let found = integrate(-700.0, 700.0, &[0.0], 0.5, 1, |z, values| {
            values[0] = 0.5 * (-z.abs()).exp() * (20.0 * z).cos().powi(2)
        });
        let exact = 0.5 * (1.0 + 1.0 / 1601.0);
        assert!((found[0] / exact - 1.0).abs() < 1e-11, "{}", found[0] / exact - 1.0);
    }

    #[test]
    fn kinks_and_widely_different_sizes() {
        let found = integrate(-700.0, 700.0, &[0.0, 3.0], 0.5, 3, |z, values| {
            values[0] = 0.5 * (-z.abs()).exp();
            values[1] = (-600.0 - (z - 3.0).abs()).exp();
            values[2] = (-1e4 * (z - 100.0).powi(2)).exp();
        });
        assert!((found[0] - 1.0).abs() < 1e-12);
        assert!((found[1] / (2.0 * f64::exp(-600.0)) - 1.0).abs() < 1e-11);
        // A narrow peak far from every breakpoint may be missed, but never gives a NaN.
        assert!(found[2].is_finite());
    }
}
