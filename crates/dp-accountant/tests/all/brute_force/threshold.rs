//! The first of a few queries above a threshold, by quadrature over the threshold's noise.

use dp_accountant::{DpEvent, RdpOrder, rdp};

use super::finite::{Checks, Pairs, Random};

/// Returns `P(noise > x)` in units of its scale.
fn upper_tail(gaussian: bool, x: f64) -> f64 {
    if gaussian {
        0.5 * libm::erfc(x / core::f64::consts::SQRT_2)
    } else if x > 0.0 {
        0.5 * (-x).exp()
    } else {
        1.0 - 0.5 * x.exp()
    }
}

/// Returns the law of the first query whose noisy value is above a noisy threshold at 0; the last entry is that of none.
fn stopping_law(gaussian: bool, threshold_scale: f64, query_scale: f64, queries: &[f64]) -> Vec<f64> {
    const STEPS: i32 = 4000;
    let mut law = vec![0.0; queries.len() + 1];
    for step in -STEPS..=STEPS {
        let x = f64::from(step) * 30.0 / f64::from(STEPS);
        let mut left = if gaussian { (-0.5 * x * x).exp() } else { (-x.abs()).exp() };
        for (mass, query) in law.iter_mut().zip(queries) {
            let gap = (threshold_scale * x - query) / query_scale;
            *mass += left * upper_tail(gaussian, gap);
            left *= upper_tail(gaussian, -gap);
        }
        law[queries.len()] += left;
    }
    let sum: f64 = law.iter().sum();
    law.iter().map(|mass| mass / sum).collect()
}

#[test]
fn the_first_above_a_threshold() {
    let mut random = Random::new(8);
    let mut checks = Checks::default();
    for round in 0..60 {
        let gaussian = round % 2 == 0;
        let (threshold_scale, query_scale) = (random.between(0.5, 5.0), random.between(0.5, 5.0));
        let count = 1 + (random.uniform() * 6.0) as usize;
        let queries: Vec<f64> = (0..count).map(|_| random.between(-4.0, 2.0)).collect();
        // All moves of the largest size, some of them in one direction.
        let moved: Vec<f64> =
            queries.iter().map(|query| query + if random.uniform() < 0.5 { 1.0 } else { -1.0 }).collect();
        let mut pairs = Pairs::default();
        pairs.add(
            stopping_law(gaussian, threshold_scale, query_scale, &queries),
            stopping_law(gaussian, threshold_scale, query_scale, &moved),
        );
        let event = if gaussian {
            DpEvent::AboveThresholdGaussian {
                threshold_std_dev: threshold_scale,
                query_std_dev: query_scale,
                sensitivity: 1.0,
                max_queries: count as u64,
                range_bounded: false,
            }
        } else {
            DpEvent::AboveThresholdLaplace { threshold_scale, query_scale, sensitivity: 1.0 }
        };
        for order in [1.3, 2.0, 6.0, 20.0] {
            let at = RdpOrder::new(order).unwrap();
            let bound = rdp::RdpCurve::new(&event).unwrap().at(at);
            checks.at_most("above threshold, Renyi", pairs.renyi(order), bound);
        }
        checks.curve("above threshold", &pairs, &event);
    }
    checks.came_within(0.3);
}
