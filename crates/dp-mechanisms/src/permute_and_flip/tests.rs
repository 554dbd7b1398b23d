use super::*;
use crate::Exponential;
use crate::SeededRng;
use crate::rng::Stuck;
use crate::selection::tests::{epsilon, golden, sampler_has_the_law, sensitivity, worst_loss};
use dp_accountant::ReplaceOne;
use proptest::prelude::*;
use rand::{TryCryptoRng, TryRng};

fn mechanism(bound: f64, value: f64) -> PermuteAndFlip<ReplaceOne> {
    PermuteAndFlip::new(sensitivity(bound), epsilon(value)).unwrap()
}

#[test]
fn golden_laws() {
    golden("permute_and_flip", |sensitivity, epsilon, scores| {
        PermuteAndFlip::new(sensitivity, epsilon).unwrap().probabilities(&scores).unwrap()
    });
}

#[test]
fn the_sampler_has_the_law() {
    let mechanism = mechanism(0.3, 1.0);
    sampler_has_the_law(&mechanism, 0.3, |scores| mechanism.probabilities(scores).unwrap());
    let monotonic = mechanism.monotonic().unwrap();
    sampler_has_the_law(&monotonic, 0.3, |scores| monotonic.probabilities(scores).unwrap());
}

/// Over all neighbours the loss stays within epsilon and comes as close as the scores allow; its range does not.
#[test]
fn losses_of_all_neighbours() {
    for (bound, value) in [(1.0, 0.5), (0.3, 3.0)] {
        let (general, monotonic) = (mechanism(bound, value), mechanism(bound, value).monotonic().unwrap());
        let (largest, longest) = worst_loss(&general.0, law, &[-2, -1, 0, 1, 2]);
        assert!(largest <= value * (1.0 + 1e-10), "{largest}");
        assert!(largest > 0.99 * value, "{largest}");
        assert!(longest > 1.01 * value, "a bounded range after all: {longest}");
        let (largest, _) = worst_loss(&monotonic.0, law, &[0, 1, 2]);
        assert!(largest <= value * (1.0 + 1e-10) && largest > 0.99 * value, "{largest}");
        assert!(worst_loss(&monotonic.0, law, &[-2, 0, 2]).0 > 1.9 * value);
    }
}

/// Sums over all orders of visit.
fn by_enumeration(coins: &[f64]) -> Vec<f64> {
    fn visit(coins: &[f64], left: &[usize], reached: f64, probabilities: &mut [f64]) {
        let share = reached / left.len() as f64;
        for &candidate in left {
            probabilities[candidate] += share * coins[candidate];
            let rest: Vec<usize> = left.iter().copied().filter(|&other| other != candidate).collect();
            if !rest.is_empty() {
                visit(coins, &rest, share * (1.0 - coins[candidate]), probabilities);
            }
        }
    }
    let mut probabilities = vec![0.0; coins.len()];
    visit(coins, &(0..coins.len()).collect::<Vec<_>>(), 1.0, &mut probabilities);
    probabilities
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_law_is_that_of_all_orders(exponents in proptest::collection::vec(0.0f64..30.0, 0..5)) {
        let exponents: Vec<f64> = exponents.into_iter().chain([0.0]).collect();
        let coins: Vec<f64> = exponents.iter().map(|exponent| (-exponent).exp()).collect();
        for (found, expected) in law(&exponents).into_iter().zip(by_enumeration(&coins)) {
            prop_assert!((found - expected).abs() <= 1e-11 * expected, "{found} {expected}");
        }
    }

    /// Theorem 2 of McKenna and Sheldon.
    #[test]
    fn never_worse_than_the_exponential_mechanism(
        scores in proptest::collection::vec(-20.0f64..0.0, 1..12), value in 0.05f64..8.0,
    ) {
        let best = scores.iter().copied().fold(f64::MIN, f64::max);
        let expected = |law: Vec<f64>| -> f64 { law.iter().zip(&scores).map(|(p, score)| p * (best - score)).sum() };
        let candidates = Scores::new(scores.clone()).unwrap();
        let flip = expected(mechanism(1.0, value).probabilities(&candidates).unwrap());
        let exponential = Exponential::new(sensitivity(1.0), epsilon(value)).unwrap();
        let exponential = expected(exponential.probabilities(&candidates).unwrap());
        prop_assert!(flip <= exponential * (1.0 + 1e-9) + 1e-12);
    }
}

/// Counts the drawn words.
struct Counting(SeededRng, u64);

impl TryRng for Counting {
    type Error = core::convert::Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        self.1 += 1;
        self.0.try_next_u32()
    }
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        self.1 += 1;
        self.0.try_next_u64()
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        self.1 += bytes.len() as u64;
        self.0.try_fill_bytes(bytes)
    }
}

impl TryCryptoRng for Counting {}

/// Equal scores, for which the first visit would suffice: each of the 64 coins still takes a word.
#[test]
fn all_candidates_are_visited() {
    let mut rng = Counting(SeededRng::new(1), 0);
    mechanism(1.0, 1.0).choose(&[7; 64], &mut rng).unwrap();
    assert!(rng.1 >= 63 + 64, "{}", rng.1);
}

#[test]
fn a_stuck_generator_ends() {
    assert!(mechanism(1.0, 1.0).choose(&[0; 20], &mut Stuck(0)).is_ok());
    assert_eq!(mechanism(1.0, 1.0).choose(&[0; 20], &mut Stuck(u64::MAX)), Err(Error::StuckGenerator));
}

/// Many candidates, many of them equal, for which the integrand is narrow.
#[test]
fn many_candidates() {
    let scores: Vec<f64> = (0..5000).map(|i| if i % 2 == 0 { 1.0 } else { -30.0 }).collect();
    let law = mechanism(1.0, 2.0).probabilities(&Scores::new(scores).unwrap()).unwrap();
    assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-10);
    assert!((law[0] * 2500.0 - 1.0).abs() < 1e-10);
}
