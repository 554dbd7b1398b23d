//! Ball mechanisms with a wrong law in the plane, for epsilon = 1 and inputs at distance 1: the statistic is the
//! log-likelihood ratio of each law.

use statrs::function::exponential::integral;

use crate::specimen::{Specimen, pick, pure};
use crate::textbook::{direction, gamma, norm, release_ball};
use dp_audit::Side;
use dp_mechanisms::SeededRng;
use rand::RngExt;

const PAIR: &str = "(0, 0) and (1, 0)";

pub(crate) fn specimens() -> Vec<Specimen> {
    let ball = |name, log_density: fn(f64) -> f64, length: fn(&mut SeededRng) -> f64| {
        Specimen::score(
            name,
            PAIR,
            pure(1.0),
            move |side, rng| {
                let length = length(rng);
                let noise = direction(2, rng);
                log_ratio([pick(side, 0.0, 1.0) + length * noise[0], length * noise[1]], log_density)
            },
            move |side: Side, rng: &mut SeededRng| {
                let released = release_ball(vec![pick(side, 0.0, 1.0), 0.0], 1.0, rng);
                log_ratio([released[0], released[1]], log_density)
            },
        )
    };
    vec![
        ball("ball of Gamma(d, b/2)", |r| -2.0 * r, |rng| 0.5 * gamma(2.0, rng)),
        ball("ball of Gamma(d - 1, b)", |r| -r - r.ln(), |rng| gamma(1.0, rng)),
        // Density ∫_r^∞ e^-t / t dt at distance r from the centre, where it is infinite.
        ball(
            "direction uniform in the ball",
            |r| integral(r, 1).unwrap_or(f64::NAN).ln(),
            |rng| gamma(2.0, rng) * rng.random::<f64>().sqrt(),
        ),
    ]
}

/// Computes `ln density(y - (1, 0)) - ln density(y)`.
fn log_ratio(y: [f64; 2], log_density: fn(f64) -> f64) -> f64 {
    log_density(norm(&[y[0] - 1.0, y[1]])) - log_density(norm(&y))
}
