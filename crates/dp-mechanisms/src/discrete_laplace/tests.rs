use super::*;
use crate::rng::SeededRng;
use crate::testing::golden_cases;
use dp_accountant::{Delta, ReplaceOne, bound};
use proptest::prelude::*;

fn unit() -> L1Sensitivity<ReplaceOne> {
    L1Sensitivity::new(1.0).unwrap()
}

fn noise(scale: f64) -> DiscreteLaplace<ReplaceOne> {
    DiscreteLaplace::from_scale(unit(), scale).unwrap()
}

#[test]
fn golden_law() {
    for case in golden_cases("mechanisms.json", "discrete_laplace") {
        let law = noise(case.input("scale"));
        if let Some(k) = case.input.get("k") {
            let k = k.as_i64().unwrap();
            case.check("pmf", law.pmf(k));
            case.check("prob_ge", law.probability_at_least(k));
        } else {
            case.check("variance", law.variance());
            case.check("pmf0", law.pmf(0));
            case.check("mean_abs", law.mean_absolute());
        }
    }
}

#[test]
fn tails_are_sums_of_masses() {
    for scale in [0.1, 0.7, 1.0, 5.0] {
        let law = noise(scale);
        let (mut below, mut squares, mut absolute) = (0.0, 0.0, 0.0);
        for k in -400..=400i64 {
            assert!((law.cdf(k - 1) - below).abs() < 1e-14, "{scale} {k}");
            assert!((law.probability_at_least(k) - (1.0 - below)).abs() < 1e-14, "{scale} {k}");
            below += law.pmf(k);
            squares += law.pmf(k) * (k * k) as f64;
            absolute += law.pmf(k) * k.abs() as f64;
        }
        assert!((below - 1.0).abs() < 1e-14);
        assert!((squares / law.variance() - 1.0).abs() < 1e-12);
        assert!((absolute / law.mean_absolute() - 1.0).abs() < 1e-12);
    }
    let law = noise(3.0);
    assert_eq!((law.cdf(i64::MIN), law.cdf(i64::MAX)), (0.0, 1.0));
    assert_eq!((law.probability_at_least(i64::MIN), law.probability_at_least(i64::MAX)), (1.0, 0.0));
}

#[test]
fn refused_parameters() {
    for value in [0.5, 1.5, 2f64.powi(53) + 2.0, 1e300] {
        let sensitivity = L1Sensitivity::<ReplaceOne>::new(value).unwrap();
        let refused = Err(Error::OutOfRange { name: "sensitivity", value, range: "the whole numbers 1..=2^53" });
        assert_eq!(DiscreteLaplace::from_scale(sensitivity, 1.0), refused);
        assert_eq!(DiscreteLaplace::from_ratio(sensitivity, 1, 1), refused);
        assert_eq!(DiscreteLaplace::new(sensitivity, Epsilon::new(1.0).unwrap()), refused);
    }
    let scale = |value| DiscreteLaplace::from_scale(unit(), value);
    assert!(matches!(scale(f64::NAN), Err(Error::NotFinite { name: "scale", .. })));
    assert!(matches!(scale(f64::INFINITY), Err(Error::NotFinite { name: "scale", .. })));
    assert!(matches!(scale(0.0), Err(Error::NotPositive { name: "scale", .. })));
    assert!(matches!(scale(-2.0), Err(Error::NotPositive { name: "scale", .. })));
    assert!(matches!(scale(5e-324), Err(Error::TooSmall { name: "scale", .. })));
    for value in [LEAST_SCALE.next_down(), 2f64.powi(63), 1e300] {
        assert_eq!(scale(value), Err(Error::OutOfRange { name: "scale", value, range: "[2^-20, 2^63)" }));
    }
    assert!(scale(LEAST_SCALE).is_ok() && scale(2f64.powi(63).next_down()).is_ok());
    let ratio = |numerator, denominator| DiscreteLaplace::from_ratio(unit(), numerator, denominator);
    assert_eq!(ratio(0, 1), Err(Error::NotPositive { name: "scale numerator", value: 0.0 }));
    assert_eq!(ratio(1, 0), Err(Error::NotPositive { name: "scale denominator", value: 0.0 }));
    assert!(matches!(ratio(1, (1 << 20) + 1), Err(Error::OutOfRange { name: "scale", .. })));
    assert!(ratio(u64::MAX, 1).is_ok() && ratio(1, 1 << 20).is_ok());
    assert!(DiscreteLaplace::new(unit(), Epsilon::new(1e300).unwrap()).is_err());
    assert!(DiscreteLaplace::new(unit(), Epsilon::new(2f64.powi(-50)).unwrap()).is_ok());
}

#[test]
fn ratios_are_kept_and_stated_rounded_down() {
    let tenth = DiscreteLaplace::from_ratio(unit(), 1, 10).unwrap();
    assert_eq!((tenth.scale_ratio(), tenth.scale()), ((1, 10), 0.1f64.next_down()));
    assert_eq!(tenth.event(), DpEvent::DiscreteLaplace { scale: 0.1f64.next_down(), sensitivity: 1 });
    assert_eq!(noise(2.5).scale_ratio(), (5, 2));
}

#[test]
fn empty_vectors_are_refused() {
    let empty = Bounded::<Vec<i64>, ReplaceOne, L1>::with_proven_sensitivity(Vec::new(), unit());
    let mut log = EventLog::new();
    assert_eq!(noise(1.0).release(empty, &mut log, &mut SeededRng::new(1)), Err(Error::Dimension { dimension: 0 }));
    assert!(log.entries().is_empty());
}

proptest! {
    #[test]
    fn epsilon_is_not_exceeded(sensitivity in 1u64..1 << 53, ln_epsilon in -30.0f64..10.0) {
        let epsilon = ln_epsilon.exp();
        let bound = L1Sensitivity::<ReplaceOne>::new(sensitivity as f64).unwrap();
        let Ok(noise) = DiscreteLaplace::new(bound, Epsilon::new(epsilon).unwrap()) else {
            prop_assert!(!(LEAST_SCALE..2f64.powi(63)).contains(&(sensitivity as f64 / epsilon)));
            return Ok(());
        };
        let stated = bound::epsilon(&noise.event(), Delta::ZERO).unwrap().value;
        prop_assert!(stated <= epsilon && stated >= epsilon * (1.0 - 4.0 * f64::EPSILON), "{} {}", stated, epsilon);
    }
}

/// Two coordinates, every split of the shift: the hockey-stick divergence by enumeration is at most that of the whole shift in
/// one coordinate, and attains it if one part is 0.
#[test]
fn one_coordinate_is_the_worst() {
    for (scale, shift) in [(1.0, 3i64), (4.0, 5), (0.7, 2)] {
        let law = noise(scale);
        let reach = (40.0 * scale) as i64 + shift;
        let masses: Vec<f64> = (-reach - shift..=reach + shift).map(|k| law.pmf(k)).collect();
        let mass = |k: i64| masses[(k + reach + shift) as usize];
        for epsilon in [0.0f64, 0.1, 0.5, 1.0, 2.0] {
            let one: f64 = (-reach..=reach).map(|k| (mass(k) - epsilon.exp() * mass(k - shift)).max(0.0)).sum();
            for first in 0..=shift {
                let second = shift - first;
                let mut two = 0.0;
                for k in -reach..=reach {
                    for l in -reach..=reach {
                        two += (mass(k) * mass(l) - epsilon.exp() * mass(k - first) * mass(l - second)).max(0.0);
                    }
                }
                assert!(two <= one + 1e-12, "{scale} {shift} {first} {epsilon}: {two} {one}");
                assert!((two - one).abs() < 1e-12 || (first > 0 && second > 0));
            }
        }
    }
}

/// Noise of 100,000 releases of one integer compared with the masses in 21 classes (20 degrees of freedom): chi-square below its
/// 1 - 1e-9 quantile, 83.5, for each of three scales, two of them not integers.
#[test]
fn noise_has_the_stated_law() {
    for (numerator, denominator) in [(3, 1), (7, 3), (8, 5)] {
        let law = DiscreteLaplace::from_ratio(unit(), numerator, denominator).unwrap();
        let count = 100_000;
        let zeros = Bounded::with_proven_sensitivity(vec![0i64; count], unit());
        let noise = law.release(zeros, &mut EventLog::new(), &mut SeededRng::new(numerator)).unwrap();
        let statistic = crate::testing::chi_square(noise.get(), 10, |k| law.pmf(k), |k| law.probability_at_least(k));
        assert!(statistic < 83.5, "{numerator}/{denominator}: {statistic}");
    }
}

#[test]
fn seeded_values_are_stable() {
    let input = Bounded::with_proven_sensitivity(vec![0i64, 1000, -1000, 5], unit());
    let released = noise(10.0).release(input, &mut EventLog::new(), &mut SeededRng::new(42)).unwrap();
    assert_eq!(released.get(), &STABLE);
}

/// Changing these changes values: note it in the changelog.
const STABLE: [i64; 4] = [-8, 950, -1002, -3];
