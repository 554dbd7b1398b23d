//! What is released: vectors that are empty, of another length, not finite, huge, tiny.

use dp_accountant::{Epsilon, EventLog, ZeroOut};
use dp_mechanisms::{Bounded, Error, Gaussian, GaussianMixture, L2, L2Sensitivity, LaplaceBall, Mechanism, SeededRng};

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
            // What lies far above the noise is not lost in it.
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

/// An error may be shown to anyone: it speaks of parameters, lengths and types, never of what was to be released.
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
