use super::*;
use crate::SeededRng;
use crate::rng::Stuck;
use crate::selection::tests::{epsilon, golden, sampler_has_the_law, sensitivity, worst_loss};
use crate::testing::{check_law, golden_cases};
use dp_accountant::{RdpOrder, ReplaceOne, rdp};
use proptest::prelude::*;

fn mechanism(bound: f64, value: f64) -> Exponential<ReplaceOne> {
    Exponential::new(sensitivity(bound), epsilon(value)).unwrap()
}

#[test]
fn golden_laws() {
    golden("exponential", |sensitivity, epsilon, scores| {
        Exponential::new(sensitivity, epsilon).unwrap().probabilities(&scores).unwrap()
    });
}

#[test]
fn golden_cost() {
    for case in golden_cases("mechanisms.json", "bounded_range_rdp") {
        let DpEvent::BoundedRange { epsilon } = mechanism(1.0, case.input("eps")).event() else { panic!() };
        let alpha = case.input("alpha");
        case.check("rdp", rdp::bounded_range(RdpOrder::new(alpha).unwrap(), epsilon).unwrap());
        case.check("zcdp_bound_times_alpha", alpha * epsilon * epsilon / 8.0);
    }
}

#[test]
fn the_sampler_has_the_law() {
    let mechanism = mechanism(0.3, 1.0);
    sampler_has_the_law(&mechanism, 0.3, |scores| mechanism.probabilities(scores).unwrap());
    let monotonic = mechanism.monotonic().unwrap();
    sampler_has_the_law(&monotonic, 0.3, |scores| monotonic.probabilities(scores).unwrap());
}

/// Over all neighbours the loss and its range stay within epsilon, and both come as close as the scores allow.
#[test]
fn losses_of_all_neighbours() {
    for (bound, value) in [(1.0, 0.5), (0.3, 3.0)] {
        let (general, monotonic) = (mechanism(bound, value), mechanism(bound, value).monotonic().unwrap());
        let (largest, longest) = worst_loss(&general.0, law, &[-2, -1, 0, 1, 2]);
        assert!(largest <= value * (1.0 + 1e-12) && longest <= value * (1.0 + 1e-12), "{largest} {longest}");
        assert!(largest > 0.99 * value && longest > value * (1.0 - 1e-8), "{largest} {longest}");
        let (largest, longest) = worst_loss(&monotonic.0, law, &[0, 1, 2]);
        assert!(largest <= value * (1.0 + 1e-12) && longest <= value * (1.0 + 1e-12), "{largest} {longest}");
        assert!(longest > value * (1.0 - 1e-8), "{longest}");
        // The declaration matters: scores that violate it are not covered.
        assert!(worst_loss(&monotonic.0, law, &[-2, 0, 2]).1 > 1.9 * value);
    }
}

/// The number of proposals is geometric with mean n, for all scores: false-alarm rate 1e-9 each.
#[test]
fn proposals_do_not_depend_on_the_scores() {
    let mechanism = mechanism(1.0, 1.0);
    let mut rng = SeededRng::new(5);
    let far = 1 << 40;
    for scores in [[0i128, 0, 0, 0], [far, 0, 0, 0], [0, far, far, far], [0, 1 << 29, 1 << 30, 1 << 31]] {
        let mut counts = vec![0u64; 16];
        for _ in 0..60_000 {
            let (_, proposals) = mechanism.choose(&scores, &mut rng).unwrap();
            counts[proposals.min(16) as usize - 1] += 1;
        }
        let law: Vec<f64> = (0..16).map(|k| 0.75f64.powi(k) * if k == 15 { 1.0 } else { 0.25 }).collect();
        check_law(&counts, &law, "proposals");
    }
}

#[test]
fn a_stuck_generator_is_no_endless_loop() {
    // The generator proposes the first candidate forever.
    assert_eq!(mechanism(1.0, 1.0).choose(&[0, 1 << 40], &mut Stuck(0)), Err(Error::StuckGenerator));
}

proptest! {
    #[test]
    fn probabilities_do_not_depend_on_a_common_offset(
        scores in proptest::collection::vec(-8i32..8, 1..8), offset in -1_000_000i32..1_000_000, value in 0.01f64..10.0,
    ) {
        let at = |offset: i32| {
            let scores = scores.iter().map(|score| f64::from(score + offset)).collect();
            mechanism(1.0, value).probabilities(&Scores::new(scores).unwrap()).unwrap()
        };
        prop_assert_eq!(at(0), at(offset));
    }
}
