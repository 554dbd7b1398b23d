use dp_mechanisms::SeededRng;
use rand::RngExt;

use super::*;
use crate::testing::golden_cases;

#[test]
fn golden_bounds() {
    for case in golden_cases("audit", "audit/one-run") {
        let guesses =
            Guesses { canaries: case.count("guesses"), guesses: case.count("guesses"), correct: case.count("correct") };
        case.check("eps_lower", epsilon_lower(guesses, case.input("delta"), case.input("beta")).unwrap());
    }
}

/// The theorem's right side by definition: all masses, all i.
fn plain_p_value(guesses: Guesses, delta: f64, epsilon: f64) -> f64 {
    let (m, r, v) = (guesses.canaries as f64, guesses.guesses, guesses.correct as usize);
    let q = 1.0 / (1.0 + (-epsilon).exp());
    let mut mass = (1.0 - q).powi(r as i32);
    let mut masses = vec![mass];
    for k in 0..r {
        mass *= (r - k) as f64 / (k + 1) as f64 * q / (1.0 - q);
        masses.push(mass);
    }
    let tail: f64 = masses[v..].iter().sum();
    let largest = (1..=v).map(|i| masses[v - i..v].iter().sum::<f64>() / i as f64).fold(0.0, f64::max);
    (tail + 2.0 * m * delta * largest).min(1.0)
}

#[test]
fn the_sum_that_stops_early_is_the_whole_one() {
    for (canaries, made) in [(10, 10), (100, 30), (200, 200)] {
        for share in [0.55, 0.7, 0.9, 1.0] {
            let guesses = Guesses { canaries, guesses: made, correct: (made as f64 * share) as u64 };
            for delta in [0.0, 1e-6, 1e-3, 0.1] {
                for epsilon in [0.1f64, 0.5, 1.0, 3.0] {
                    let q = 1.0 / (1.0 + (-epsilon).exp());
                    if guesses.correct as f64 <= made as f64 * q {
                        continue;
                    }
                    let (found, expected) = (p_value(guesses, delta, epsilon), plain_p_value(guesses, delta, epsilon));
                    assert!(
                        (found / expected - 1.0).abs() < 1e-8,
                        "{guesses:?}, {delta}, {epsilon}: {found}, {expected}"
                    );
                    assert!(found >= expected * (1.0 - 1e-12));
                }
            }
        }
    }
}

/// One run against the worst mechanism of its guarantee: each coin is revealed with probability delta, otherwise answered by
/// randomised response.
fn run(canaries: u64, epsilon: f64, delta: f64, rng: &mut SeededRng) -> Guesses {
    let honest = 1.0 / (1.0 + (-epsilon).exp());
    let correct = (0..canaries).filter(|_| rng.random::<f64>() < delta || rng.random::<f64>() < honest).count() as u64;
    Guesses { canaries, guesses: canaries, correct }
}

#[test]
fn the_bound_exceeds_the_truth_as_seldom_as_promised() {
    let mut rng = SeededRng::new(20);
    for (canaries, epsilon, delta) in [(50, 0.0, 0.0), (50, 1.0, 0.0), (400, 2.0, 0.0), (100, 1.0, 0.02)] {
        let failure = 0.05;
        let runs = 4000;
        let wrong = (0..runs)
            .filter(|_| epsilon_lower(run(canaries, epsilon, delta, &mut rng), delta, failure).unwrap() > epsilon)
            .count();
        // P(Binomial(4000, 0.05) >= 290) < 1e-9.
        assert!(wrong < 290, "{canaries} canaries, ({epsilon}, {delta}): {wrong} of {runs} wrong");
    }
}

#[test]
fn many_canaries_reach_most_of_epsilon() {
    let mut rng = SeededRng::new(21);
    let found = epsilon_lower(run(20_000, 2.0, 0.0, &mut rng), 0.0, 1e-3).unwrap();
    assert!(found > 1.85 && found < 2.0, "{found}");
    let with_delta = epsilon_lower(run(20_000, 2.0, 1e-6, &mut rng), 1e-6, 1e-3).unwrap();
    assert!(with_delta > 1.8 && with_delta < 2.0, "{with_delta}");
}

#[test]
fn ends_and_bad_numbers() {
    let guesses = |canaries, guesses, correct| Guesses { canaries, guesses, correct };
    assert_eq!(epsilon_lower(guesses(0, 0, 0), 0.0, 0.05).unwrap(), 0.0);
    assert_eq!(epsilon_lower(guesses(10, 10, 0), 1e-5, 0.05).unwrap(), 0.0);
    assert_eq!(epsilon_lower(guesses(1_000_000, 10, 10), 1e-2, 0.05).unwrap(), 0.0);
    assert!(epsilon_lower(guesses(1 << 50, 1 << 50, 1 << 50), 0.0, 0.05).unwrap() > 30.0);
    for bad in [guesses(1, 2, 0), guesses(2, 1, 2), guesses((1 << 53) + 1, 1, 1)] {
        assert!(epsilon_lower(bad, 0.0, 0.05).is_err());
    }
    assert!(epsilon_lower(guesses(1 << 50, 1, 1), 1e-9, 0.05).is_err());
    for (delta, failure) in [(f64::NAN, 0.05), (1.0, 0.05), (-1.0, 0.05), (0.0, 0.0), (0.0, f64::NAN)] {
        assert!(epsilon_lower(guesses(10, 10, 10), delta, failure).is_err());
    }
}
