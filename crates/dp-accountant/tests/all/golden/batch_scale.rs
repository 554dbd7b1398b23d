//! Noise scaled to the drawn batch has no amplification by sampling.
//!
//! One list has a larger bound than all others, which have the same. If the noise is scaled to the largest bound in the batch,
//! the released vector's length reveals, in many dimensions, whether that list was drawn: two normal laws whose standard
//! deviations have the ratio r overlap by `(2r/(1+r²))^(D/2)` (Bhattacharyya). So an observer learns in how many of the T steps
//! it was drawn, a number K of binomial law, and the remaining releases are K Gaussian ones at the full distance: `delta >= E
//! delta_Gauss(epsilon; sqrt K / sigma) - T overlap`.

use dp_accountant::exact::PrivacyCurve;
use dp_accountant::rdp;
use dp_accountant::{Delta, DpEvent, SamplingRate, gaussian};

use super::ranking::by_integer_orders;

const STEPS: u64 = 400;

/// Returns the observer's delta at `epsilon`.
fn realised_delta(rate: f64, sigma: f64, overlap: f64, epsilon: f64) -> f64 {
    let mut mass = (1.0 - rate).powi(STEPS as i32);
    let mut mean = 0.0;
    for drawn in 1..=STEPS {
        mass *= rate / (1.0 - rate) * (STEPS - drawn + 1) as f64 / drawn as f64;
        mean += mass * gaussian::delta((drawn as f64).sqrt() / sigma, epsilon).unwrap();
    }
    mean - STEPS as f64 * overlap
}

fn realised_epsilon(rate: f64, sigma: f64, overlap: f64, delta: f64) -> f64 {
    let (mut low, mut high) = (0.0, 100.0);
    while high - low > 1e-9 {
        let middle = 0.5 * (low + high);
        if realised_delta(rate, sigma, overlap, middle) > delta { low = middle } else { high = middle }
    }
    low
}

#[test]
fn noise_scaled_to_the_batch_costs_several_times_what_is_claimed() {
    let delta = 1e-4;
    // 256 hidden units on 46 features, bounds a quarter apart.
    let (ratio, dimension) = (1.25f64, 12_288.0);
    let overlap = (2.0 * ratio / (1.0 + ratio * ratio)).powf(0.5 * dimension);
    assert!(overlap < 1e-60);
    let cases = [
        (1353, [(0.875, 2.42, 13.2), (1.0, 1.82, 11.0), (1.5, 1.04, 6.3), (2.0, 0.76, 4.4)]),
        (627, [(1.5, 2.30, 9.1), (2.0, 1.67, 6.2), (3.0, 1.17, 3.7), (4.0, 0.97, 2.6)]),
    ];
    for (lists, rows) in cases {
        let rate = 10.0 / f64::from(lists);
        for (sigma, claimed, realised) in rows {
            let sampling_rate = SamplingRate::new(rate).unwrap();
            let published = by_integer_orders(2..=255, STEPS as f64, Delta::new(delta).unwrap(), |order| {
                let curve = |order: f64| 0.5 * order / (sigma * sigma);
                rdp::without_replacement_as_published(order, sampling_rate, f64::INFINITY, curve)
            });
            let truth = realised_epsilon(rate, sigma, overlap, delta);
            assert!((published - claimed).abs() < 0.01, "sigma {sigma}: {published} is not what was claimed");
            assert!((truth - realised).abs() < 0.06, "sigma {sigma}: {truth} is not {realised}");
            assert!(truth > 2.5 * published, "sigma {sigma}: {truth} against {published}");
            // No event for sampled steps covers it: the scale of its noise has to be public.
            let event =
                DpEvent::PoissonSampledReplacement { sampling_rate: rate, std_dev: sigma, distance: 1.0, radius: 1.0 };
            let event = DpEvent::SelfComposed { event: Box::new(event), count: STEPS };
            let sampled = PrivacyCurve::new(&event).unwrap().epsilon(Delta::new(delta).unwrap()).unwrap();
            assert!(truth > 5.0 * sampled.upper && sampled.upper < published, "sigma {sigma}: {truth} {sampled:?}");
        }
    }
}
