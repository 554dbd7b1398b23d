use proptest::prelude::*;

use super::*;
use crate::testing::golden_cases;

fn hits(case: &crate::testing::Case) -> Hits {
    Hits {
        true_positives: case.count("true_pos"),
        positives: case.count("positives"),
        false_positives: case.count("false_pos"),
        negatives: case.count("negatives"),
    }
}

#[test]
fn golden_limits_and_epsilons() {
    for case in golden_cases("audit", "audit/cp") {
        let limits = Limits::new(hits(&case), case.input("alpha")).unwrap();
        case.check("tpr_lower", limits.true_positive.value);
        case.check("fpr_upper", limits.false_positive.value);
        case.check("eps_lower", limits.epsilon_lower(case.input("delta")).unwrap());
    }
}

#[test]
fn golden_mus() {
    for case in golden_cases("audit", "audit/gdp") {
        case.check("mu_lower", Limits::new(hits(&case), case.input("alpha")).unwrap().mu_lower());
    }
}

/// Returns the masses of a binomial.
fn masses(trials: u64, p: f64) -> Vec<f64> {
    let mut mass = (1.0 - p).powi(trials as i32);
    let mut masses = vec![mass];
    for k in 0..trials {
        mass *= (trials - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
        masses.push(mass);
    }
    masses
}

#[test]
fn the_bounds_exceed_the_truth_as_seldom_as_promised() {
    // By enumeration of all counts of 25 runs per side, with rates on the boundary of (epsilon, delta) in either direction.
    let runs = 25;
    for failure in [0.3, 0.05] {
        for delta in [0.0, 0.05] {
            for epsilon in [0.5f64, 2.0] {
                for step in 1..20 {
                    let q = f64::from(step) / 20.0;
                    let p = (epsilon.exp() * q + delta).min(1.0 - (-epsilon).exp() * (1.0 - q - delta).max(0.0));
                    let p = p.min(1.0 - 1e-12);
                    let (on_accused, on_other) = (masses(runs, p), masses(runs, q));
                    let mut wrong = 0.0;
                    for (true_positives, mass1) in on_accused.iter().enumerate() {
                        for (false_positives, mass0) in on_other.iter().enumerate() {
                            let hits = Hits {
                                true_positives: true_positives as u64,
                                positives: runs,
                                false_positives: false_positives as u64,
                                negatives: runs,
                            };
                            if Limits::new(hits, failure).unwrap().epsilon_lower(delta).unwrap()
                                > epsilon * (1.0 + 1e-12)
                            {
                                wrong += mass0 * mass1;
                            }
                        }
                    }
                    assert!(
                        wrong <= failure,
                        "epsilon {epsilon}, delta {delta}, q {q}: wrong with {wrong} > {failure}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_count_at_the_ends_is_answered() {
    let limits = |true_positives, false_positives| {
        Limits::new(Hits { true_positives, positives: 1000, false_positives, negatives: 1000 }, 0.05).unwrap()
    };
    assert_eq!(limits(0, 1000).epsilon_lower(0.0).unwrap(), 0.0);
    assert_eq!(limits(0, 0).epsilon_lower(0.0).unwrap(), 0.0);
    assert_eq!(limits(1000, 1000).epsilon_lower(0.0).unwrap(), 0.0);
    assert_eq!(limits(0, 1000).mu_lower(), 0.0);
    // For a clear separation both terms are equal, and a delta of one half subtracts less than half of the rate.
    let clear = limits(1000, 0);
    assert!((clear.epsilon_lower(0.0).unwrap() - 5.600587).abs() < 1e-5);
    assert!(clear.epsilon_lower(0.5).unwrap() > 4.9);
    assert_eq!(clear.epsilon_lower(0.9999).unwrap(), 0.0);
    assert!(clear.mu_lower() > 5.3);
    // Rates known with certainty, which no count gives: no epsilon is possible.
    let certain = Limits { true_positive: Rate::ONE, false_positive: Rate::ZERO };
    assert_eq!((certain.epsilon_lower(0.5).unwrap(), certain.mu_lower()), (f64::INFINITY, f64::INFINITY));
    let half = Rate { value: 0.5, complement: 0.5 };
    let never_wrong = Limits { true_positive: half, false_positive: Rate::ZERO };
    assert_eq!((never_wrong.epsilon_lower(0.4).unwrap(), never_wrong.mu_lower()), (f64::INFINITY, f64::INFINITY));
}

#[test]
fn impossible_counts_are_refused() {
    let limits = |true_positives, positives, false_positives, negatives, failure| {
        Limits::new(Hits { true_positives, positives, false_positives, negatives }, failure)
    };
    assert!(limits(1, 0, 0, 1, 0.05).is_err());
    assert!(limits(0, 1, 0, 0, 0.05).is_err());
    assert!(limits(2, 1, 0, 1, 0.05).is_err());
    assert!(limits(0, 1, 2, 1, 0.05).is_err());
    assert!(limits(0, (1 << 53) + 1, 0, 1, 0.05).is_err());
    for failure in [0.0, 1.0, -0.1, f64::NAN, f64::INFINITY] {
        assert!(limits(1, 2, 1, 2, failure).is_err());
    }
    let fine = limits(1, 2, 1, 2, 0.05).unwrap();
    for delta in [-0.1, 1.0, f64::NAN] {
        assert!(fine.epsilon_lower(delta).is_err());
    }
}

proptest! {
    #[test]
    fn bounds_rise_with_hits_and_runs_and_fall_with_confidence_and_delta(
        runs in 2u64..20_000, share1 in 0.0f64..1.0, share0 in 0.0f64..1.0, exponent in 0.1f64..9.0, delta in 0.0f64..0.1,
    ) {
        let hits = Hits {
            true_positives: ((runs as f64 * share1) as u64).min(runs - 1),
            positives: runs,
            false_positives: ((runs as f64 * share0) as u64).max(1),
            negatives: runs,
        };
        let failure = 10f64.powf(-exponent);
        let both = |hits: Hits, failure: f64, delta: f64| {
            let limits = Limits::new(hits, failure).unwrap();
            (limits.epsilon_lower(delta).unwrap(), limits.mu_lower())
        };
        let at_most = |a: (f64, f64), b: (f64, f64)| a.0 <= b.0 + 1e-9 && a.1 <= b.1 + 1e-9;
        let here = both(hits, failure, delta);
        let more = Hits { true_positives: hits.true_positives + 1, ..hits };
        prop_assert!(at_most(here, both(more, failure, delta)));
        let fewer = Hits { false_positives: hits.false_positives - 1, ..hits };
        prop_assert!(at_most(here, both(fewer, failure, delta)));
        let doubled = Hits {
            true_positives: 2 * hits.true_positives,
            positives: 2 * runs,
            false_positives: 2 * hits.false_positives,
            negatives: 2 * runs,
        };
        prop_assert!(at_most(here, both(doubled, failure, delta)));
        prop_assert!(at_most(both(hits, 0.1 * failure, delta), here));
        prop_assert!(at_most(both(hits, failure, delta + 0.01), here));
        // The complementary event, accusing the other input, gives the same bound.
        let complement = Hits {
            true_positives: runs - hits.false_positives,
            positives: runs,
            false_positives: runs - hits.true_positives,
            negatives: runs,
        };
        let there = both(complement, failure, delta);
        prop_assert!(at_most(here, there) && at_most(there, here));
    }
}
