//! Broken sparse vectors with probabilities known to ten digits: the audit's bound holds for the true epsilon.

use rand::RngExt;
use rand_distr::{Distribution, Exp1};

use super::*;
use crate::SeededRng;
use crate::testing::golden_cases;

fn laplace_noise(scale: f64, rng: &mut SeededRng) -> f64 {
    let size: f64 = Exp1.sample(rng);
    if rng.random::<bool>() { scale * size } else { -scale * size }
}

#[test]
fn the_limits_hold_the_true_probabilities_and_convict_where_they_can() {
    let runs = 200_000;
    for case in golden_cases("svt_broken", "svt_broken") {
        let (base, neighbour) = (case.list("queries"), case.list("neighbour"));
        let (threshold_scale, query_scale) = (case.input("threshold_scale"), case.input_or("query_scale", 0.0));
        let (threshold, epsilon) = (case.input("threshold"), case.input("eps"));
        let claim = Claim { event: DpEvent::PureDp { epsilon }, delta: 0.0 };
        let subject = from_fn(case.id.as_str(), "", claim, Statistic::Event, move |side, rng, features| {
            let queries = if side == Side::Base { &base } else { &neighbour };
            let level = threshold + laplace_noise(threshold_scale, rng);
            // The first half below, the second half at or above, without a stop.
            let shown = queries.iter().enumerate().all(|(i, query)| {
                let above = query + if query_scale > 0.0 { laplace_noise(query_scale, rng) } else { 0.0 } >= level;
                above == (2 * i >= queries.len())
            });
            features.push(f64::from(shown));
            Ok(())
        });
        // False alarms of each case have probability 1e-9.
        let audit = exactly(runs).with_failure_probability(1e-9).unwrap().audit(&subject).unwrap();
        let truth = [case.output("prob"), case.output("prob_neighbour")];
        for test in &audit.tests {
            let (accused, other) = if test.accused == Side::Base { (truth[0], truth[1]) } else { (truth[1], truth[0]) };
            assert!(test.limits.true_positive.value <= accused, "{}: {test:?}", case.id);
            assert!(test.limits.false_positive.value >= other, "{}: {test:?}", case.id);
        }
        let convictable = truth[0] * runs as f64 > 500.0 && truth[0] > 3.0 * epsilon.exp() * truth[1];
        if convictable {
            assert_eq!(audit.verdict, Verdict::Refuted, "{}", case.id);
        }
        if truth[0] < epsilon.exp() * truth[1] {
            assert_eq!(audit.verdict, Verdict::NotRefuted, "{}", case.id);
            assert!(audit.epsilon_lower > 0.8 * (truth[0] / truth[1]).ln(), "{}: {}", case.id, audit.epsilon_lower);
        }
    }
}
