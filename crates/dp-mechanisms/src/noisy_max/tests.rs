use super::*;
use crate::selection::tests::{epsilon, golden, sampler_has_the_law, sensitivity, worst_loss};
use dp_accountant::ReplaceOne;

fn mechanism(bound: f64, value: f64) -> NoisyMax<ReplaceOne> {
    NoisyMax::new(sensitivity(bound), epsilon(value)).unwrap()
}

#[test]
fn golden_laws() {
    golden("noisy_max_laplace", |sensitivity, epsilon, scores| {
        NoisyMax::new(sensitivity, epsilon).unwrap().probabilities(&scores).unwrap()
    });
}

#[test]
fn the_sampler_has_the_law() {
    let mechanism = mechanism(0.3, 1.0);
    sampler_has_the_law(&mechanism, 0.3, |scores| mechanism.probabilities(scores).unwrap());
    let monotonic = mechanism.monotonic().unwrap();
    sampler_has_the_law(&monotonic, 0.3, |scores| monotonic.probabilities(scores).unwrap());
}

/// Over all neighbours the loss stays within epsilon. Three candidates come close to it but do not attain it.
#[test]
fn losses_of_all_neighbours() {
    for (bound, value) in [(1.0, 0.5), (0.3, 3.0)] {
        let (general, monotonic) = (mechanism(bound, value), mechanism(bound, value).monotonic().unwrap());
        let (largest, _) = worst_loss(&general.0, law, &[-2, -1, 0, 1, 2]);
        assert!(largest <= value * (1.0 + 1e-8) && largest > 0.8 * value, "{largest}");
        let (largest, _) = worst_loss(&monotonic.0, law, &[0, 1, 2]);
        assert!(largest <= value * (1.0 + 1e-8) && largest > 0.8 * value, "{largest}");
        assert!(worst_loss(&monotonic.0, law, &[-2, 0, 2]).0 > 1.5 * value);
    }
}

/// Two candidates in closed form: the difference of two Laplace variables.
#[test]
fn two_candidates() {
    for gap in [0.0, 0.1, 1.0, 30.0, 300.0] {
        let expected = 0.5 * f64::exp(-gap) * (1.0 + 0.5 * gap);
        let found = law(&[0.0, gap])[1];
        assert!((found - expected).abs() < 1e-10 * expected, "{gap} {found} {expected}");
    }
}

#[test]
fn the_first_of_equal_sums() {
    assert_eq!(argmax(&[1, 3, 2], &[0, 0, 1]), 1);
    assert_eq!(argmax(&[-(1 << 120)], &[0]), 0);
}
