use super::*;
use crate::rng::{OsSeeded, SeededRng};
use crate::testing::golden_cases;
use dp_accountant::RdpOrder;
use dp_accountant::rdp::RdpCurve;
use proptest::prelude::*;

fn response(buckets: u64, epsilon: f64) -> RandomizedResponse {
    RandomizedResponse::new(buckets, Epsilon::new(epsilon).unwrap()).unwrap()
}

#[test]
fn golden_probabilities_and_divergence() {
    for case in golden_cases("mechanisms.json", "randomized_response") {
        let response = response(case.input("k") as u64, case.input("eps"));
        let slack = 16.0 * f64::EPSILON;
        case.check("prob_true", response.probability_of_truth());
        case.check("prob_other", response.probability_of_other());
        let rdp = RdpCurve::new(&response.event()).unwrap().at(RdpOrder::new(2.0).unwrap());
        // The noise is a double, whose complement has an error relative to 1.
        let tolerance = (1e-12 + slack / (1.0 - response.noise())) * case.output("rdp2");
        assert!((rdp - case.output("rdp2")).abs() <= tolerance, "{}: {rdp}", case.id);
    }
}

#[test]
fn refused_parameters() {
    let epsilon = Epsilon::new(1.0).unwrap();
    for buckets in [0, 1, MOST_BUCKETS + 1, u64::MAX] {
        let refused = Err(Error::OutOfRange { name: "buckets", value: buckets as f64, range: "2..=2^53" });
        assert_eq!(RandomizedResponse::new(buckets, epsilon), refused);
        assert_eq!(RandomizedResponse::from_noise(buckets, 0.5), refused);
    }
    for noise in [0.0, -0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY, 5e-324] {
        let refused = RandomizedResponse::from_noise(2, noise);
        assert!(matches!(refused, Err(Error::OutOfRange { name: "noise", .. })), "{noise}");
    }
    for (buckets, epsilon) in [(2, 1e9), (2, f64::MAX), (1000, 1e-15), (MOST_BUCKETS, 2f64.powi(-50))] {
        let refused = RandomizedResponse::new(buckets, Epsilon::new(epsilon).unwrap());
        assert!(matches!(refused, Err(Error::OutOfRange { name: "epsilon", .. })), "{buckets} {epsilon}");
    }
    assert!(RandomizedResponse::new(2, Epsilon::new(2f64.powi(-50)).unwrap()).is_ok());
    assert!(RandomizedResponse::new(2, Epsilon::new(700.0).unwrap()).is_ok());
    let counts = response(3, 1.0).frequencies(&[1, 2]);
    assert_eq!(counts, Err(Error::Length { name: "counts", found: 2, expected: "the number of buckets" }));
    assert!(matches!(response(3, 1.0).frequencies(&[0; 3]), Err(Error::NotPositive { .. })));
    assert!(matches!(response(3, 1.0).standard_error(f64::NAN, 1), Err(Error::OutOfRange { .. })));
    assert!(matches!(response(3, 1.0).standard_error(0.5, 0), Err(Error::NotPositive { .. })));
}

proptest! {
    /// The accountant's epsilon of the event is at most the requested one, and close to it.
    #[test]
    fn epsilon_is_met(ln_buckets in 0.7f64..36.0, epsilon in 1e-3f64..600.0) {
        let buckets = ln_buckets.exp() as u64;
        let Ok(response) = RandomizedResponse::new(buckets, Epsilon::new(epsilon).unwrap()) else {
            // No double is close enough to 1.
            prop_assert!(epsilon.exp_m1() / (buckets as f64) < 2.0 * f64::EPSILON);
            return Ok(());
        };
        let stated = bound::epsilon(&response.event(), Delta::ZERO).unwrap().value;
        prop_assert!(stated <= epsilon);
        let slack = 64.0 * f64::EPSILON * (1.0 + 1.0 / (epsilon * (1.0 - response.noise())));
        prop_assert!(stated >= epsilon * (1.0 - slack), "{} {}", stated, epsilon);
    }
}

/// Each answer is one of 4, for a value inside and for one outside: chi-square with 3 degrees of freedom below its 1 - 1e-9
/// quantile, 44.84, for each of three values.
#[test]
fn answers_have_the_stated_law() {
    let response = response(4, 1.0);
    let mut rng = SeededRng::new(1);
    let count = 200_000;
    for (value, truth) in [(0, Some(0)), (3, Some(3)), (4, None), (u64::MAX, None)] {
        let values = Secret::new(vec![value; count]);
        let answers = response.release_each(values, &mut EventLog::new(), &mut rng).unwrap().into_inner();
        let mut counts = [0.0; 4];
        answers.iter().for_each(|&answer| counts[answer as usize] += 1.0);
        let statistic: f64 = (0..4)
            .map(|bucket| {
                let probability = match truth {
                    Some(truth) if truth == bucket => response.probability_of_truth(),
                    Some(_) => response.probability_of_other(),
                    None => 0.25,
                };
                let expected = probability * count as f64;
                (counts[bucket] - expected).powi(2) / expected
            })
            .sum();
        assert!(statistic < 44.84, "{value}: {statistic} {counts:?}");
    }
}

#[test]
fn one_release_is_one_entry_whatever_the_number_of_records() {
    let response = response(2, 0.5);
    let mut log = EventLog::new();
    let mut secret = OsSeeded::new().unwrap();
    response.release(Secret::new(1), &mut log, &mut secret).unwrap();
    response.release_each(Secret::new(vec![0; 1000]), &mut log, &mut secret).unwrap();
    assert_eq!(log.entries(), [(response.event(), 2)]);
    assert!(log.is_private());
    response.release(Secret::new(1), &mut log, &mut SeededRng::new(1)).unwrap();
    assert!(!log.is_private());
    let none = response.release_each(Secret::new(Vec::new()), &mut log, &mut secret).unwrap();
    assert!(none.get().is_empty());
}

/// The guarantee by enumeration, including a value outside: every ratio of probabilities is at most `e^epsilon`.
#[test]
fn ratios_by_enumeration() {
    for (buckets, epsilon) in [(2, 0.3), (3, 2.0), (7, 5.0)] {
        let response = response(buckets, epsilon);
        let law = |value: u64, answer: u64| match (value < buckets, value == answer) {
            (true, true) => response.probability_of_truth(),
            (true, false) => response.probability_of_other(),
            (false, _) => 1.0 / buckets as f64,
        };
        let mut largest = 0.0f64;
        for (one, other) in (0..=buckets).flat_map(|one| (0..=buckets).map(move |other| (one, other))) {
            for answer in 0..buckets {
                largest = largest.max((law(one, answer) / law(other, answer)).ln());
            }
        }
        assert!((largest - epsilon).abs() < 1e-12, "{buckets} {epsilon}: {largest}");
    }
}

/// 64 estimates from 4000 records each: their mean is within 5 standard errors of the true value, and the mean square of their
/// deviations within 5 standard errors of the stated variance (false-alarm rate about 1e-6 for each of the six; the seed is
/// fixed).
#[test]
fn frequencies_are_unbiased() {
    let (response, truth, records) = (response(3, 1.0), [0.7, 0.3, 0.0], 4000u64);
    let mut rng = SeededRng::new(2);
    let mut deviations = vec![Vec::new(); 3];
    for _ in 0..64 {
        let values = (0..records).map(|i| u64::from(i % 10 >= 7)).collect();
        let answers = response.release_each(Secret::new(values), &mut EventLog::new(), &mut rng).unwrap();
        let mut counts = [0; 3];
        answers.get().iter().for_each(|&answer| counts[answer as usize] += 1);
        let estimates = response.frequencies(&counts).unwrap();
        assert!((estimates.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for bucket in 0..3 {
            deviations[bucket].push(estimates[bucket] - truth[bucket]);
        }
    }
    for (deviations, truth) in deviations.iter().zip(truth) {
        let standard_error = response.standard_error(truth, records).unwrap();
        let mean = deviations.iter().sum::<f64>() / 64.0;
        assert!(mean.abs() < 5.0 * standard_error / 8.0, "{mean}");
        // For records with fixed values the variance is slightly below that of records drawn at random.
        let square = deviations.iter().map(|x| x * x).sum::<f64>() / 64.0 / (standard_error * standard_error);
        assert!(square > 0.3 && square < 1.0 + 5.0 * (2.0f64 / 64.0).sqrt(), "{square}");
    }
}

#[test]
fn seeded_values_are_stable() {
    let values = Secret::new((0..16).collect());
    let answers = response(16, 2.0).release_each(values, &mut EventLog::new(), &mut SeededRng::new(42)).unwrap();
    assert_eq!(answers.get(), &STABLE);
}

/// Changing these changes values: note it in the changelog.
const STABLE: [u64; 16] = [15, 13, 15, 12, 4, 8, 5, 6, 8, 9, 1, 1, 12, 14, 2, 7];
