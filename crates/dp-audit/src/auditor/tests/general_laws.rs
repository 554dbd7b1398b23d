//! General laws: pairs of finite laws, and sampled Gaussians.

use proptest::prelude::*;

use super::*;

/// Draws from a finite law.
fn draw(law: &[f64], rng: &mut impl Rng) -> usize {
    let mut left: f64 = rng.random();
    law.iter()
        .position(|mass| {
            left -= mass;
            left < 0.0
        })
        .unwrap_or(law.len() - 1)
}

fn normalised(weights: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let total: f64 = weights.clone().sum();
    weights.map(|weight| weight / total).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    // False alarms of each case have probability 1e-9.
    #[test]
    fn no_pair_of_finite_laws_exceeds_its_own_epsilon(
        weights in prop::collection::vec((0.02f64..1.0, 0.02f64..1.0), 2..6), learned: bool, seed: u64,
    ) {
        let laws = [normalised(weights.iter().map(|pair| pair.0)), normalised(weights.iter().map(|pair| pair.1))];
        let losses: Vec<f64> = laws[0].iter().zip(&laws[1]).map(|(p, q)| (q / p).ln()).collect();
        let epsilon = losses.iter().fold(0.0, |most: f64, loss| most.max(loss.abs()));
        let claim = Claim { event: DpEvent::PureDp { epsilon }, delta: 0.0 };
        let statistic = if learned { Statistic::Learned } else { Statistic::Score };
        // One indicator per outcome, or the privacy loss itself.
        let subject = from_fn("finite", "", claim, statistic, |side, rng, features| {
            let outcome = draw(&laws[usize::from(side == Side::Neighbour)], rng);
            if learned {
                features.extend((0..losses.len()).map(|i| f64::from(i == outcome)));
            } else {
                features.push(losses[outcome]);
            }
            Ok(())
        });
        let audit = exactly(6000).with_failure_probability(1e-9).unwrap().with_seed(seed).audit(&subject).unwrap();
        prop_assert_eq!(audit.verdict, Verdict::NotRefuted, "{:?}", audit);
        prop_assert!(audit.epsilon_lower <= epsilon);
        // The best single outcome of either side, bounded from 3000 runs at this confidence: a learned score finds it too.
        let certain = |p: f64, q: f64| {
            let spread = |rate: f64| 8.0 * (rate / 3000.0).sqrt() + 40.0 / 3000.0;
            ((p - spread(p)) / (q + spread(q))).ln()
        };
        let reachable = laws[0]
            .iter()
            .zip(&laws[1])
            .map(|(&p, &q)| certain(p, q).max(certain(q, p)))
            .fold(0.0, |most: f64, loss| if loss > most { loss } else { most });
        prop_assert!(audit.epsilon_lower >= 0.8 * reachable, "{} {}", audit.epsilon_lower, reachable);
    }
}

/// A Gaussian release of standard deviation 1/2 on a sample that holds the record with some probability.
fn sampled(truth: f64, claimed: f64) -> impl Subject {
    let gaussian = DpEvent::Gaussian { std_dev: 0.5, sensitivity: 1.0 };
    let event = DpEvent::PoissonSampled { sampling_rate: claimed, event: Box::new(gaussian) };
    from_fn("sampled", "", Claim { event, delta: 1e-5 }, Statistic::Score, move |side, rng, features| {
        let present = side == Side::Neighbour && rng.random::<f64>() < truth;
        let noise: f64 = StandardNormal.sample(rng);
        features.push(f64::from(present) + 0.5 * noise);
        Ok(())
    })
}

#[test]
fn a_sampled_gaussian_is_held_to_its_own_curve() {
    let auditor = exactly(100_000);
    let sound = auditor.audit(&sampled(0.1, 0.1)).unwrap();
    assert_eq!(sound.verdict, Verdict::NotRefuted);
    assert!(sound.gaussian.is_none());
    // The best test is close to the curve.
    let slack = |test: &crate::audit::Test| test.limits.type_two_upper() - test.least_type_two.unwrap_or(0.0);
    assert!(sound.tests.iter().map(slack).fold(1.0, f64::min) < 0.02);
    // A sampling rate half as large again is refuted, though epsilon at 1e-5 is far from refuted.
    let denser = auditor.audit(&sampled(0.15, 0.1)).unwrap();
    assert_eq!(denser.conviction.map(|conviction| conviction.bound), Some(BoundKind::TradeOff));
    assert!(denser.epsilon_lower < 0.8 * denser.claimed_epsilon);
}
