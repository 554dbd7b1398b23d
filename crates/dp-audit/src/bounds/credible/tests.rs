use dp_mechanisms::SeededRng;
use rand::RngExt;
use rand_distr::{Beta, Distribution};

use super::*;

#[test]
fn intervals_cover_what_is_drawn_from_the_prior() {
    // Averaged over the prior, a calibrated posterior covers with exactly its probability.
    let mut rng = SeededRng::new(5);
    let prior = Beta::new(0.5, 0.5).unwrap();
    let (runs, draws) = (60u64, 600);
    for delta in [0.0, 0.05] {
        let covered = (0..draws)
            .filter(|_| {
                let (q, missed): (f64, f64) = (prior.sample(&mut rng), prior.sample(&mut rng));
                let count =
                    |rng: &mut SeededRng, rate: f64| (0..runs).filter(|_| rng.random::<f64>() < rate).count() as u64;
                let hits = Hits {
                    true_positives: runs - count(&mut rng, missed),
                    positives: runs,
                    false_positives: count(&mut rng, q),
                    negatives: runs,
                };
                let truth = ((1.0 - missed - delta) / q).ln().max(((1.0 - q - delta) / missed).ln()).max(0.0);
                let (low, high) = interval(hits, delta, 0.8).unwrap();
                // An interval that starts at 0 covers the atom there.
                low <= truth + 1e-9 && truth <= high + 1e-9
            })
            .count();
        // Atoms at 0 can only increase the coverage: P(Binomial(600, 0.8) < 420) < 1e-8.
        assert!(covered >= 420, "{covered} of {draws}");
        if delta == 0.0 {
            assert!(covered < 570, "{covered} of {draws}");
        }
    }
}

#[test]
fn posteriors_have_the_moments_of_a_beta_law() {
    for (hits, runs) in [(0u64, 10u64), (3, 10), (10, 10), (500_000, 1_000_000), (7, 1_000_000)] {
        let posterior = Posterior::new(hits, runs);
        let mean: f64 = posterior
            .share
            .iter()
            .enumerate()
            .map(|(i, share)| share / (1.0 + (-(posterior.first + i as f64 * posterior.step)).exp()))
            .sum();
        let expected = (hits as f64 + 0.5) / (runs as f64 + 1.0);
        assert!((mean / expected - 1.0).abs() < 1e-6, "{hits} of {runs}: {mean}, {expected}");
    }
    // Beta(1/2, 1/2) would be the arcsine law; with one miss in one run, P(rate < x) has a closed form.
    let posterior = Posterior::new(0, 1);
    // Beta(1/2, 3/2): (2/pi)(asin(sqrt x) + sqrt(x (1 - x))).
    for x in [1e-6f64, 0.01, 0.3, 0.9] {
        let expected = 2.0 / core::f64::consts::PI * (x.sqrt().asin() + (x * (1.0 - x)).sqrt());
        assert!((posterior.below(x) - expected).abs() < 2e-4, "{x}: {} {expected}", posterior.below(x));
    }
}

#[test]
fn it_is_shorter_than_a_confidence_interval_at_few_runs() {
    let hits = Hits { true_positives: 40, positives: 50, false_positives: 2, negatives: 50 };
    let (low, high) = interval(hits, 1e-5, 0.95).unwrap();
    let confident = Limits::new(hits, 0.05).unwrap().epsilon_lower(1e-5).unwrap();
    assert!(low > 1.1 * confident && high.is_finite() && high > low, "{low} {high} {confident}");
    assert!(interval(hits, 0.0, 1.0).is_err() && interval(hits, 0.0, f64::NAN).is_err());
    assert!(interval(Hits { positives: 0, ..hits }, 0.0, 0.9).is_err());
}

#[test]
fn intervals_are_those_of_the_two_beta_laws() {
    // By quadrature of 1 - I(1 - FNR) over 400,001 quantiles of FPR, both from an independent incomplete beta function.
    for (true_positives, positives, false_positives, negatives, delta, probability, expected) in [
        (40, 50, 2, 50, 0.0, 0.95, (1.865_571_346, 4.551_255_061)),
        (40, 50, 2, 50, 0.05, 0.95, (1.798_415_809, 4.486_601_908)),
        (48, 50, 20, 50, 0.02, 0.8, (1.842_430_172, 3.578_567_254)),
        (300, 400, 100, 200, 0.0, 0.5, (0.616_494_723, 0.767_032_548)),
    ] {
        let hits = Hits { true_positives, positives, false_positives, negatives };
        let found = interval(hits, delta, probability).unwrap();
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 3e-4;
        assert!(near(found.0, expected.0) && near(found.1, expected.1), "{hits:?}, {delta}: {found:?}, {expected:?}");
    }
}
