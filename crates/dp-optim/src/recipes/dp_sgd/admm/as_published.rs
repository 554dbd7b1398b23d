//! The published sensitivities of mp-admm where they are wrong. No guarantee follows from them and no recipe uses them; for
//! each there is a test in which a step on neighbouring data moves farther.

/// Equation (4.13): the sensitivity of x, `2C/(n (1 + ηρ))`. It omits a factor η: `1/(ρ + 1/η)` is `η/(1 + ηρ)`. So it is too
/// small for η > 1, and too large, by 1/η, for η < 1. Equation (4.15) takes ρ times it for y.
pub fn sensitivity_of_x(clipping_norm: f64, n: u64, step: f64, rho: f64) -> f64 {
    2.0 * clipping_norm / (n as f64 * (1.0 + step * rho))
}

/// Equation (4.14): the sensitivity of `z`. Besides the omitted factor, a map may increase the distance of two points: those
/// of SCAD and MCP do, by `(a - 1)/(a - 1 - 1/ρ)` and `1/(1 - 1/(ργ))`.
pub fn sensitivity_of_z(clipping_norm: f64, n: u64, step: f64, rho: f64) -> f64 {
    sensitivity_of_x(clipping_norm, n, step, rho)
}

/// The published Rényi divergence for `steps` steps with noise of `std_dev` on each of x, z and y: `α Δ² (2 + ρ²) / (2 σ²)`
/// each.
pub fn renyi_divergence(order: f64, sensitivity: f64, rho: f64, std_dev: f64, steps: u64) -> f64 {
    steps as f64 * order * (sensitivity / std_dev).powi(2) * (2.0 + rho * rho) / 2.0
}

#[cfg(test)]
mod tests {
    use dp_losses::penalty::Layout;
    use dp_losses::{Penalty, ProximalMap};

    use super::*;
    use crate::engine::{AdmmOutput, LinearisedAdmm, Step, UpdateRule};

    /// Returns x and z after one step on a single record's clipped gradient.
    fn after(gradient: f64, step_size: f64, rho: f64, penalty: &str, start: f64) -> (f64, f64) {
        let layout = Layout { features: 1, outputs: 1, intercept: false };
        let map = ProximalMap::new(penalty.parse::<Penalty>().unwrap(), layout, 1.0 / rho).unwrap();
        let mut x = [start];
        let mut rule = LinearisedAdmm::new(rho, map, AdmmOutput::Sparse, &x);
        rule.apply(&mut x, &[gradient], &Step { update: 1, step_size, divisor: 1.0, weight: 1.0 });
        (x[0], rule.sparse()[0])
    }

    #[test]
    fn x_moves_farther_where_steps_are_longer_than_one() {
        for (step, rho) in [(2.0, 0.5), (4.0, 0.25), (1.01, 0.5)] {
            let moved = after(-1.0, step, rho, "l1:0.1", 0.0).0 - after(1.0, step, rho, "l1:0.1", 0.0).0;
            let printed = sensitivity_of_x(1.0, 1, step, rho);
            assert!((moved / printed - step).abs() < 1e-12, "{moved} against {printed}");
        }
        // Erratum E-4: published 1, correct 2.
        assert_eq!(sensitivity_of_x(1.0, 1, 2.0, 0.5), 1.0);
    }

    /// With a step of 1, where the omitted factor is 1, z still moves farther than x under SCAD and MCP, and never under L1.
    #[test]
    fn z_moves_farther_under_penalties_that_are_not_convex() {
        let rho = 2.0;
        let stretch = |penalty: &str, start: f64| {
            // A small step, so that both stay where the map expands.
            let ((x, z), (there, beyond)) =
                (after(0.01, 1.0, rho, penalty, start), after(-0.01, 1.0, rho, penalty, start));
            ((there - x), (beyond - z))
        };
        for (penalty, slope) in [("scad:1:3.7", 2.7 / 2.2), ("mcp:1:1.5", 1.0 / (1.0 - 0.5 / 1.5))] {
            // x/(1 + ρ) lies between (1 + 1/ρ)λ and the end of the shrinkage.
            let start = if penalty.starts_with("scad") { 3.0 * 2.5 } else { 3.0 };
            let (x, z) = stretch(penalty, start);
            let printed = sensitivity_of_z(0.01, 1, 1.0, rho);
            assert!((x - printed).abs() < 1e-12 && (z / printed - slope).abs() < 1e-9, "{penalty}: {x} {z} {printed}");
        }
        for start in [0.0, 1.0, 3.0, 9.0] {
            let (x, z) = stretch("l1:1", start);
            assert!(z <= x + 1e-15);
        }
    }
}
