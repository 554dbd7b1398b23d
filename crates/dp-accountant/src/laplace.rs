//! The exact privacy curve of Laplace noise. The coordinate-wise mechanism and the L2 ball are both dominated by the pair of
//! one-dimensional Laplace laws at a distance of the full sensitivity.
//!
//! With `x` = sensitivity / scale, that pair has, for `0 <= epsilon <= x`,
//!
//! ```text
//! delta(epsilon) = 1 - exp((epsilon - x) / 2).
//! ```
//!
//! **It dominates a shift of L1 norm at most `x` split over any number of coordinates.** By Dong, Roth and Su (2022, Lemma A.5),
//! trade-off functions satisfy `T(P, R) >= T(Q, R) o (1 - T(P, Q))`. With `Q` the law after one coordinate of the shift, between
//! `P` and `R`, and `T = F(F^-1(1 - a) - s)` for a shift `s` of the log-concave Laplace law with distribution function `F`, the
//! right-hand side is exactly the trade-off function of the sum of the two shifts.
//!
//! **It dominates the L2 ball in every dimension.** Noise with density proportional to `exp(-|z|/b)` on R^d, given its part
//! orthogonal to the shift (which has the same law for both neighbours), has along the shift a log-concave density `exp(-psi)`
//! with `|psi'| <= 1/b`. Let `F` be its distribution function and `g(p)` its density at the p-quantile: then `g(0) = g(1) = 0`
//! and `|g'| = |psi'| <= 1/b`, so `g(p) <= min(p, 1 - p)/b`, which is `g` of the Laplace law. As the shift `s` grows, the
//! trade-off function at a fixed level falls at the rate `g`; so it is at no shift below that of the Laplace law. Averaging over
//! the orthogonal part keeps the inequality between hockey-stick divergences, and their domination carries over to Renyi
//! divergences and to composition (Zhu, Dong and Wang 2022, Theorem 10). In one dimension the bound is exact; in many dimensions
//! it is loose, and an exact curve may replace it.

/// Returns the least delta at `epsilon >= 0` for one Laplace release of pure epsilon `x`, rounded up.
pub(crate) fn delta(x: f64, epsilon: f64) -> f64 {
    if epsilon >= x {
        return 0.0;
    }
    (-(0.5 * (epsilon - x)).exp_m1() * (1.0 + 4.0 * f64::EPSILON)).min(1.0)
}

/// Returns the least epsilon at `delta` for one Laplace release of pure epsilon `x`, rounded up.
pub(crate) fn epsilon(x: f64, delta: f64) -> f64 {
    let saved = -2.0 * (-delta).ln_1p();
    let epsilon = (x - saved * (1.0 - 4.0 * f64::EPSILON)).next_up();
    if epsilon > 0.0 { epsilon.min(x) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_by_integration() {
        // delta = integral of (p(z) - e^epsilon p(z - x))_+ with p the Laplace density, midpoint rule.
        let (x, eps) = (0.8f64, 0.3f64);
        let step = 1e-4;
        let sum: f64 = (-200_000..200_000)
            .map(|i| (f64::from(i) + 0.5) * step)
            .map(|z: f64| 0.5 * ((-z.abs()).exp() - eps.exp() * (-(z - x).abs()).exp()).max(0.0) * step)
            .sum();
        assert!((sum - delta(x, eps)).abs() < 1e-7, "{sum} {}", delta(x, eps));
    }

    #[test]
    fn epsilon_inverts_delta_on_the_safe_side() {
        for x in [1e-6, 0.1, 1.0, 20.0] {
            for d in [0.0, 1e-300, 1e-12, 1e-3, 0.2, 0.99] {
                let e = epsilon(x, d);
                assert!(e <= x && delta(x, e) <= d * (1.0 + 1e-13) + 1e-16, "x = {x}, delta = {d}");
            }
            assert_eq!(epsilon(x, 0.0), x);
            assert_eq!(delta(x, x), 0.0);
        }
    }
}
