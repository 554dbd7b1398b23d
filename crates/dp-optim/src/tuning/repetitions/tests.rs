use dp_mechanisms::SeededRng;
use serde_json::Value;

use super::*;
use crate::tuning::tests::{at, cases, numbers};

#[track_caller]
fn close(found: f64, expected: f64, what: &Value) {
    assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{what}: {found} instead of {expected}");
}

#[test]
fn golden_laws_of_the_number_of_repetitions() {
    for case in cases("tnb") {
        let (eta, gamma) = (at(&case, "eta"), at(&case, "gamma"));
        let law = Repetitions::TruncatedNegativeBinomial { eta, gamma };
        for (k, expected) in (1..).zip(numbers(&case["out"]["pmf"])) {
            close(probability(law, k), expected, &case["id"]);
        }
        close(mean(law), at(&case, "mean"), &case["id"]);
        let found = gamma_of(eta, at(&case, "mean"));
        assert!((found / gamma - 1.0).abs() < 1e-9, "{}", case["id"]);
    }
}

/// Chi-square of 20,000 draws against the law, in cells of at least ten; with k degrees of freedom it exceeds `k + 8 √k + 32`
/// with probability below `e^-16`.
#[test]
fn repetitions_have_the_law() {
    const DRAWS: u64 = 20_000;
    let negative_binomial = |eta, gamma| Repetitions::TruncatedNegativeBinomial { eta, gamma };
    for (seed, law) in [
        negative_binomial(1.0, 0.1),
        negative_binomial(0.5, 0.2),
        negative_binomial(0.0, 0.05),
        negative_binomial(-0.5, 0.01),
        negative_binomial(-0.9, 0.3),
        Repetitions::Poisson { mean: 0.7 },
        Repetitions::Poisson { mean: 5.25 },
    ]
    .into_iter()
    .enumerate()
    {
        let rng = &mut SeededRng::new(seed as u64);
        let mut counts = vec![0u64; 400];
        let mut sum = 0;
        for _ in 0..DRAWS {
            let k = draw(law, rng).unwrap();
            sum += k;
            counts[(k as usize).min(399)] += 1;
        }
        let (mut chi_square, mut cells, mut rest, mut drawn) = (0.0, 0, 1.0, DRAWS);
        for (k, &count) in counts.iter().enumerate() {
            let mass = probability(law, k as u64);
            if mass * DRAWS as f64 >= 10.0 {
                chi_square += (count as f64 - mass * DRAWS as f64).powi(2) / (mass * DRAWS as f64);
                (cells, rest, drawn) = (cells + 1, rest - mass, drawn - count);
            } else if mass == 0.0 {
                assert_eq!(count, 0, "{law:?} at {k}");
            }
        }
        let rest = (rest * DRAWS as f64).max(1.0);
        chi_square += (drawn as f64 - rest).powi(2) / rest;
        let freedom = f64::from(cells);
        assert!(chi_square < freedom + 8.0 * freedom.sqrt() + 32.0, "{law:?}: {chi_square} of {cells}");
        // Standard deviations are below 5 times the mean here; within six standard errors of the mean.
        let mean = mean(law);
        assert!((sum as f64 / DRAWS as f64 - mean).abs() < 30.0 * mean / (DRAWS as f64).sqrt(), "{law:?}");
    }
}

#[test]
fn means_and_their_inverse() {
    for eta in [-0.5, 0.0, 0.3, 1.0] {
        for mean in [1.01, 3.0, 50.0] {
            let gamma = gamma_of(eta, mean);
            assert!((mean_repetitions(eta, gamma).unwrap() / mean - 1.0).abs() < 1e-9);
        }
    }
    for none in [1.0, 0.0, f64::NAN, f64::INFINITY] {
        assert!(gamma_of(0.0, none).is_nan());
    }
}

#[test]
fn laws_at_their_limits_are_refused() {
    let of_shape = |eta, gamma| check(Repetitions::TruncatedNegativeBinomial { eta, gamma }).is_ok();
    assert!(of_shape(1.0, 0.5) && of_shape(-0.999, 0.5) && of_shape(0.0, 1e-6));
    assert!(
        !of_shape(-1.0, 0.5)
            && !of_shape(1.001, 0.5)
            && !of_shape(0.0, 1.0)
            && !of_shape(0.0, 0.9e-6)
            && !of_shape(f64::NAN, 0.5)
    );
    let poisson = |mean| check(Repetitions::Poisson { mean }).is_ok();
    assert!(poisson(1e6) && poisson(1e-3) && !poisson(0.0) && !poisson(1.1e6) && !poisson(f64::NAN));
}
