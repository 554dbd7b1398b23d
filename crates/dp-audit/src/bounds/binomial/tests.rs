use proptest::prelude::*;

use super::*;

/// Computes `P(X >= hits)` by adding masses, for few trials.
fn tail(hits: u64, trials: u64, p: f64) -> f64 {
    let mut mass = (1.0 - p).powi(trials as i32);
    let mut masses = vec![mass];
    for k in 0..trials {
        mass *= (trials - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
        masses.push(mass);
    }
    masses[hits as usize..].iter().rev().sum()
}

#[test]
fn tails_are_the_sums_of_their_masses_and_never_below() {
    for trials in [1u64, 2, 7, 30, 60] {
        for hits in 1..=trials {
            for p in [0.001, 0.1, 0.3, 0.5, 0.8, 0.99] {
                let log_odds = f64::ln(p / (1.0 - p));
                let found = log_upper_tail(hits, trials, log_odds).exp();
                if (trials as f64) * p >= hits as f64 {
                    assert_eq!(found, 1.0);
                    continue;
                }
                let expected = tail(hits, trials, p);
                assert!((found / expected - 1.0).abs() < 1e-10, "{hits} of {trials} at {p}: {found}, {expected}");
                assert!(found >= expected * (1.0 - 1e-13), "{hits} of {trials} at {p}: {found} < {expected}");
            }
        }
    }
}

#[test]
fn limits_are_where_the_tail_is_what_it_may_be() {
    for trials in [1u64, 2, 5, 17, 60] {
        for hits in 1..=trials {
            for failure in [0.3, 0.025, 1e-6, 1e-12] {
                let limit = Rate::lower_limit(hits, trials, failure);
                let reached = tail(hits, trials, limit.value);
                assert!(reached <= failure * (1.0 + 1e-12), "{hits} of {trials}: {reached} > {failure}");
                assert!(reached >= failure * (1.0 - 1e-8), "{hits} of {trials}: {reached} << {failure}");
            }
        }
    }
}

#[test]
fn no_coverage_is_below_the_confidence() {
    // By enumeration: the probability that the limit exceeds the rate.
    for trials in [3u64, 12, 40] {
        for failure in [0.25, 0.025, 1e-4] {
            for step in 1..200 {
                let p = f64::from(step) / 200.0;
                let first = (0..=trials).find(|&hits| Rate::lower_limit(hits, trials, failure).value > p);
                let missed = first.map_or(0.0, |hits| tail(hits, trials, p));
                assert!(missed <= failure, "{trials} trials at {p}: {missed}");
            }
        }
    }
}

#[test]
fn the_ends_have_closed_forms() {
    for trials in [1u64, 10, 1_000_000, 1 << 53] {
        for failure in [0.5, 1e-3, 1e-15, 1e-300] {
            assert_eq!(Rate::lower_limit(0, trials, failure), Rate::ZERO);
            assert_eq!(Rate::upper_limit(trials, trials, failure), Rate::ONE);
            let all = Rate::lower_limit(trials, trials, failure);
            let missed = -(f64::ln(failure) / trials as f64).exp_m1();
            assert!((all.complement / missed - 1.0).abs() < 1e-12, "{all:?} for {missed}");
            assert!(all.complement >= missed * (1.0 - 1e-15));
            assert_eq!(Rate::upper_limit(0, trials, failure), all.flipped());
        }
    }
    // One hit: 1 - (1 - p)^n = a.
    let one = Rate::lower_limit(1, 1 << 50, 1e-3).value;
    assert!((one / (1e-3f64.ln_1p() / (1u64 << 50) as f64) - 1.0).abs() < 2e-3);
}

#[test]
fn huge_counts_and_confidences_are_answered() {
    for exponent in [20, 30, 40, 53] {
        let trials = 1u64 << exponent;
        for hits in [1, 2, 1000, trials / 1000, trials / 2, trials - 1000, trials - 1] {
            for failure in [0.5, 0.025, 1e-9, 1e-300] {
                let limit = Rate::lower_limit(hits, trials, failure);
                let rate = hits as f64 / trials as f64;
                // Rates below 1e-304 are 0.
                let answered = limit.value > 0.0 || failure * rate < 1e-304;
                assert!(limit.value < rate && answered, "{hits} of {trials} at {failure}: {limit:?}");
                assert!((limit.value + limit.complement - 1.0).abs() < 1e-14);
                if hits > 1_000_000 && trials - hits > 1_000_000 && failure == 0.025 && exponent <= 40 {
                    // In the range of the normal approximation: 1.96 standard deviations below.
                    let z = (rate - limit.value) / (rate * (1.0 - rate) / trials as f64).sqrt();
                    assert!((z - 1.959964).abs() < 1e-2, "{hits} of {trials}: {z}");
                }
            }
        }
    }
}

#[test]
fn stirlings_error_is_that_of_the_logarithm_of_the_gamma_function() {
    for n in 1..200 {
        let n = f64::from(n);
        let expected = libm::lgamma(n + 1.0) - ((n + 0.5) * n.ln() - n + 0.5 * core::f64::consts::TAU.ln());
        assert!((stirling_error(n) - expected).abs() < 1e-15 * (10.0 + n * n.ln()), "{n}");
    }
    // Both branches at the switch-over, by the asymptotic series with one more term.
    let next = |n: f64| 691.0 / (360_360.0 * n.powi(11));
    assert!((stirling_error(16.0) + next(16.0) - 0.005_207_655_919_609_64).abs() < 1e-15);
}

#[test]
fn a_tail_of_too_many_terms_is_bounded_from_above() {
    // 1.96 standard deviations below one half: a tail of 0.025, most of it beyond the added terms.
    let trials = 1u64 << 53;
    let deviations = 1.96 / (trials as f64).sqrt() * 2.0;
    let bound = log_upper_tail(trials / 2, trials, -deviations).exp();
    assert!(bound > 0.02499 && bound < 0.2, "{bound}");
}

#[test]
fn the_search_begins_near_the_limit() {
    for (hits, trials) in [(1, 10), (5, 10), (500, 1000), (999, 1000), (3, 1_000_000), (1 << 40, 1 << 41)] {
        for failure in [0.01, 1e-6] {
            let begun = sigmoid(likely_lower(hits, trials, -f64::ln(failure)));
            let limit = Rate::lower_limit(hits, trials, failure).value;
            // The Chernoff bound is weaker.
            assert!(begun <= limit && begun > 0.3 * limit, "{hits} of {trials}: {begun}, {limit}");
        }
    }
}

proptest! {
    #[test]
    fn limits_rise_with_hits_and_with_trials_at_one_rate_and_fall_with_confidence(
        trials in 2u64..100_000, share in 0.0f64..1.0, exponent in 0.1f64..12.0,
    ) {
        let hits = ((trials as f64 * share) as u64).min(trials - 1);
        let failure = 10f64.powf(-exponent);
        let limit = |hits, trials, failure| Rate::lower_limit(hits, trials, failure);
        let here = limit(hits, trials, failure);
        let slack = 1.0 + 1e-9;
        prop_assert!(here.value <= hits as f64 / trials as f64);
        prop_assert!(here.value <= limit(hits + 1, trials, failure).value * slack);
        prop_assert!(here.value <= limit(2 * hits, 2 * trials, failure).value * slack);
        prop_assert!(here.value >= limit(hits, trials, 0.5 * failure).value);
        prop_assert!(here.value >= limit(hits, trials + 1, failure).value / slack);
        let above = Rate::upper_limit(hits, trials, failure);
        prop_assert!(above.value >= hits as f64 / trials as f64);
        prop_assert_eq!(above, limit(trials - hits, trials, failure).flipped());
    }
}
