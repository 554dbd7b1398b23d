//! Released vectors that are empty, of a different length, not finite, huge or tiny.

use dp_accountant::{Epsilon, EventLog, ZeroOut};
use dp_mechanisms::scores::Scores;
use dp_mechanisms::{
    AboveThreshold, Bounded, DiscreteLaplace, Error, Exponential, Gaussian, GaussianMixture, L1Sensitivity, L2,
    L2Sensitivity, LInf, LInfSensitivity, LaplaceBall, Mechanism, NoisyMax, PermuteAndFlip, RandomizedResponse, Secret,
    SeededRng,
};

use super::EXTREME;

fn release<M: Mechanism<Vec<f64>, ZeroOut, Norm = L2, Output = Vec<f64>>>(
    mechanism: &M,
    value: Vec<f64>,
    log: &mut EventLog<ZeroOut>,
) -> Result<Vec<f64>, Error> {
    let value = Bounded::with_proven_sensitivity(value, L2Sensitivity::new(1.0)?);
    Ok(mechanism.release(value, log, &mut SeededRng::new(3))?.into_inner())
}

fn check<M: Mechanism<Vec<f64>, ZeroOut, Norm = L2, Output = Vec<f64>>>(mechanism: &M, step: f64) {
    let mut log = EventLog::new();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for place in 0..3 {
            let mut value = vec![0.0; 3];
            value[place] = bad;
            assert_eq!(release(mechanism, value, &mut log), Err(Error::NonFiniteInput));
        }
    }
    assert_eq!(release(mechanism, vec![], &mut log), Err(Error::Dimension { dimension: 0 }));
    assert!(log.entries().is_empty() && log.is_private() && log.assumptions().is_empty());
    for x in EXTREME.into_iter().chain([0.0, -0.0, 5e-324]) {
        for value in [vec![x, -x, 0.0], vec![x; 3]] {
            let released = release(mechanism, value.clone(), &mut log).unwrap();
            assert!(released.iter().all(|y| y.is_finite() && y % step == 0.0), "{value:?}: {released:?}");
            // A value far above the noise is not lost in it.
            assert!(released.iter().zip(&value).all(|(y, x)| (y - x).abs() <= 1e-9 * x.abs() + 1e9), "{value:?}");
        }
    }
}

#[test]
fn vectors_of_any_numbers() {
    let sensitivity = L2Sensitivity::<ZeroOut>::new(1.0).unwrap();
    let gaussian = Gaussian::from_std_dev(sensitivity, 2.0).unwrap();
    check(&gaussian, gaussian.grid().step());
    let ball = LaplaceBall::new(sensitivity, Epsilon::new(0.5).unwrap(), 3).unwrap();
    check(&ball, ball.grid().step());
    let mixture = GaussianMixture::new(2.0, vec![1.0, 0.5], vec![0.5, 0.5]).unwrap();
    check(&mixture, mixture.grid().step());
    let mut log = EventLog::new();
    for length in [1, 2, 4, 5] {
        let refused = Err(Error::DimensionMismatch { expected: 3, found: length as u64 });
        assert_eq!(release(&ball, vec![0.0; length], &mut log), refused);
    }
    assert!(log.entries().is_empty());
}

fn choose<M: Mechanism<Scores, ZeroOut, Norm = LInf, Output = usize>>(mechanism: &M) {
    let mut log = EventLog::new();
    let release = |scores: &[f64], log: &mut EventLog<ZeroOut>| {
        let scores = Bounded::with_proven_sensitivity(Scores::new(scores.to_vec())?, LInfSensitivity::new(1.0)?);
        Ok::<_, Error>(mechanism.release(scores, log, &mut SeededRng::new(5))?.into_inner())
    };
    assert!(matches!(release(&[], &mut log), Err(Error::Length { name: "scores", found: 0, .. })));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for scores in [vec![bad], vec![0.0, bad], vec![bad, 1e308, -1e308]] {
            assert_eq!(release(&scores, &mut log), Err(Error::NonFiniteInput), "{scores:?}");
        }
    }
    assert!(log.entries().is_empty() && log.is_private());
    assert_eq!(release(&[7.0], &mut log), Ok(0));
    // The gap is beyond all noise, and beyond the range of doubles.
    assert_eq!(release(&[1e308, -1e308], &mut log), Ok(0));
    assert_eq!(release(&[-f64::MAX, f64::MAX, -f64::MAX], &mut log), Ok(1));
    for scores in [vec![0.0; 50], vec![f64::MAX; 3], vec![-0.0, 0.0, 5e-324], vec![1e-300; 2]] {
        assert!(release(&scores, &mut log).is_ok_and(|index| index < scores.len()), "{scores:?}");
    }
}

#[test]
fn scores_of_any_numbers() {
    let (sensitivity, epsilon) = (LInfSensitivity::<ZeroOut>::new(1.0).unwrap(), Epsilon::new(1.0).unwrap());
    choose(&Exponential::new(sensitivity, epsilon).unwrap());
    choose(&PermuteAndFlip::new(sensitivity, epsilon).unwrap());
    choose(&NoisyMax::new(sensitivity, epsilon).unwrap());
}

#[test]
fn queries_and_thresholds_of_any_numbers() {
    let sensitivity = LInfSensitivity::<ZeroOut>::new(1.0).unwrap();
    let mechanism = AboveThreshold::new(sensitivity, Epsilon::new(1.0).unwrap(), 3).unwrap();
    let (mut log, mut rng) = (EventLog::new(), SeededRng::new(6));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(mechanism.start(bad, &mut log, &mut rng).is_err());
    }
    assert!(log.entries().is_empty());
    for threshold in EXTREME.into_iter().chain([0.0, -0.0, 5e-324, -f64::MAX]) {
        let mut session = mechanism.start(threshold, &mut log, &mut rng).unwrap();
        for query in [f64::NAN, f64::INFINITY] {
            let query = Bounded::with_proven_sensitivity(query, sensitivity);
            assert_eq!(session.answer(query, &mut log, &mut rng), Err(Error::NonFiniteInput));
        }
        for query in EXTREME.into_iter().chain([0.0, -0.0, -f64::MAX]) {
            if !session.is_over() {
                session.answer(Bounded::with_proven_sensitivity(query, sensitivity), &mut log, &mut rng).unwrap();
            }
        }
    }
}

/// Values beyond the range of integers saturate; answers outside the buckets are still answered.
#[test]
fn integers_of_any_size() {
    let sensitivity = L1Sensitivity::<ZeroOut>::new(3.0).unwrap();
    let mechanism = DiscreteLaplace::new(sensitivity, Epsilon::new(1e-6).unwrap()).unwrap();
    let (mut log, mut rng) = (EventLog::new(), SeededRng::new(7));
    for value in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX] {
        let released = (0..64).map(|_| {
            let value = Bounded::with_proven_sensitivity(vec![value; 2], sensitivity);
            mechanism.release(value, &mut log, &mut rng).unwrap().into_inner()
        });
        assert!(released.flatten().all(|y| y.abs_diff(value) < 1_000_000_000), "{value}");
    }
    let empty = Bounded::with_proven_sensitivity(Vec::<i64>::new(), sensitivity);
    assert_eq!(mechanism.release(empty, &mut log, &mut rng), Err(Error::Dimension { dimension: 0 }));
    let mut log = EventLog::new();
    let response = RandomizedResponse::new(4, Epsilon::new(1.0).unwrap()).unwrap();
    for value in [0, 3, 4, u64::MAX] {
        for _ in 0..64 {
            let answer = response.release(Secret::new(value), &mut log, &mut rng).unwrap();
            assert!(*answer.get() < 4, "{value}");
        }
    }
}

/// An error may be shown to anyone: it names parameters, lengths and types, never the private value.
#[test]
fn no_error_holds_the_value() {
    const PRIVATE: f64 = 8_675_309.25;
    let sensitivity = L2Sensitivity::<ZeroOut>::new(1.0).unwrap();
    let ball = LaplaceBall::new(sensitivity, Epsilon::new(0.5).unwrap(), 3).unwrap();
    let gaussian = Gaussian::from_std_dev(sensitivity, 2.0).unwrap();
    let mut log = EventLog::new();
    let mut errors = Vec::new();
    for value in [vec![PRIVATE; 2], vec![PRIVATE, f64::NAN, PRIVATE], vec![PRIVATE; 4]] {
        errors.extend(release(&ball, value.clone(), &mut log).err());
        errors.extend(release(&gaussian, value, &mut log).err());
    }
    let larger = Bounded::with_proven_sensitivity(vec![PRIVATE; 3], L2Sensitivity::new(2.0).unwrap());
    errors.extend(ball.release(larger, &mut log, &mut SeededRng::new(1)).err());
    assert_eq!(errors.len(), 5);
    for error in errors {
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(!text.contains("8675309"), "{text}");
        }
    }
}
