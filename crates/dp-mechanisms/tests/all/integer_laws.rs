//! Properties of every mechanism for integers, checked for each of them.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{AddRemoveOne, Adjacency, Epsilon, EventLog, ReplaceOne, Rho, ZeroOut};
use dp_mechanisms::{Bounded, DiscreteGaussian, DiscreteLaplace, Error, Mechanism, OsSeeded, SeededRng, Sensitivity};

/// The data about a mechanism that the checks need in addition to the trait.
struct Subject<M> {
    mechanism: M,
    sensitivity: f64,
    variance: f64,
    dim: usize,
}

fn laws<A, M>(subject: &Subject<M>)
where
    A: Adjacency,
    M: Mechanism<Vec<i64>, A, Output = Vec<i64>>,
{
    let Subject { mechanism, sensitivity, dim, .. } = subject;
    let filled = |value: i64, sensitivity: f64| {
        let sensitivity = Sensitivity::<M::Norm, A>::new(sensitivity).unwrap();
        Bounded::with_proven_sensitivity(vec![value; *dim], sensitivity)
    };

    // One release, one entry, with the stated event, and no assumptions.
    let (mut log, mut secret) = (EventLog::new(), OsSeeded::new().unwrap());
    let released = mechanism.release(filled(7, *sensitivity), &mut log, &mut secret).unwrap();
    assert_eq!(released.get().len(), *dim);
    assert_eq!(log.entries(), [(mechanism.event(), 1)]);
    assert!(log.is_private() && log.assumptions().is_empty());

    // A smaller sensitivity costs the stated amount; a larger one and an empty vector are refused.
    mechanism.release(filled(7, sensitivity * 0.5), &mut log, &mut secret).unwrap();
    let found = sensitivity.next_up();
    let refused = mechanism.release(filled(7, found), &mut log, &mut secret);
    assert_eq!(refused, Err(Error::SensitivityExceeded { found, built_for: *sensitivity }));
    let empty = Bounded::with_proven_sensitivity(Vec::new(), Sensitivity::new(*sensitivity).unwrap());
    assert_eq!(mechanism.release(empty, &mut log, &mut secret), Err(Error::Dimension { dimension: 0 }));
    assert_eq!(log.entries(), [(mechanism.event(), 2)]);
    assert!(log.is_private());

    // A reproducible generator marks the log permanently; the same seed gives the same release, a different seed a different one.
    let mut seeded =
        |seed| mechanism.release(filled(7, *sensitivity), &mut log, &mut SeededRng::new(seed)).unwrap().into_inner();
    let one = seeded(5);
    assert_eq!(one, seeded(5));
    assert_ne!(one, seeded(6));
    mechanism.release(filled(7, *sensitivity), &mut log, &mut secret).unwrap();
    assert!(!log.is_private());

    // At the ends of the integers the output saturates, for any noise.
    let mut rng = SeededRng::new(8);
    for value in [i64::MIN, i64::MAX] {
        for _ in 0..16 {
            let released = mechanism.release(filled(value, *sensitivity), &mut EventLog::new(), &mut rng).unwrap();
            let stopped = released.get().iter().filter(|&&output| output == value).count();
            assert!(stopped > 0 && released.get().iter().all(|&output| (output < 0) == (value < 0)));
        }
    }

    // 64 releases of zeros are not all equal, and the mean square is within 5 standard errors of the variance.
    let releases: Vec<Vec<i64>> = (0..64)
        .map(|_| mechanism.release(filled(0, *sensitivity), &mut EventLog::new(), &mut rng).unwrap().into_inner())
        .collect();
    assert!(releases.iter().any(|release| release != &releases[0]));
    let squares: Vec<f64> = releases.iter().flatten().map(|&k| (k as f64).powi(2) / subject.variance).collect();
    let n = squares.len() as f64;
    let mean = squares.iter().sum::<f64>() / n;
    let variance = squares.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    assert!((mean - 1.0).abs() < 5.0 * (variance / n).sqrt(), "{mean} ± {}", (variance / n).sqrt());
}

/// One number is a vector of one.
fn scalar_agrees<A, M>(mechanism: &M, sensitivity: f64)
where
    A: Adjacency,
    M: Mechanism<i64, A, Output = i64>
        + Mechanism<Vec<i64>, A, Norm = <M as Mechanism<i64, A>>::Norm, Output = Vec<i64>>,
{
    let sensitivity = Sensitivity::<<M as Mechanism<i64, A>>::Norm, A>::new(sensitivity).unwrap();
    for value in [0, -3, i64::MAX, i64::MIN] {
        let (mut one_log, mut other_log) = (EventLog::new(), EventLog::new());
        let scalar = Bounded::with_proven_sensitivity(value, sensitivity);
        let scalar = mechanism.release(scalar, &mut one_log, &mut SeededRng::new(1)).unwrap();
        let vector = Bounded::with_proven_sensitivity(vec![value], sensitivity);
        let vector = mechanism.release(vector, &mut other_log, &mut SeededRng::new(1)).unwrap();
        assert_eq!([*scalar.get()], vector.get()[..]);
        assert_eq!(one_log.entries(), other_log.entries());
    }
}

fn discrete_laplace<A: Adjacency>(sensitivity: f64, epsilon: f64) -> Subject<DiscreteLaplace<A>> {
    let bound = Sensitivity::new(sensitivity).unwrap();
    let mechanism = DiscreteLaplace::new(bound, Epsilon::new(epsilon).unwrap()).unwrap();
    assert_eq!(mechanism.noise_mode(), NoiseMode::Exact);
    Subject { mechanism, sensitivity, variance: mechanism.variance(), dim: 40 }
}

fn discrete_gaussian<A: Adjacency>(sensitivity: f64, rho: f64, dim: usize) -> Subject<DiscreteGaussian<A>> {
    let bound = Sensitivity::new(sensitivity).unwrap();
    let mechanism = DiscreteGaussian::from_zcdp(bound, Rho::new(rho).unwrap(), dim as u64).unwrap();
    assert_eq!(mechanism.noise_mode(), NoiseMode::Exact);
    Subject { mechanism, sensitivity, variance: mechanism.variance(), dim }
}

#[test]
fn discrete_laplace_laws() {
    laws::<ReplaceOne, _>(&discrete_laplace(1.0, 1.0));
    laws::<ZeroOut, _>(&discrete_laplace(3.0, 0.01));
    laws::<AddRemoveOne, _>(&discrete_laplace(2.0, 1e-9));
    laws::<ReplaceOne, _>(&discrete_laplace(2f64.powi(52), 0.3));
    scalar_agrees::<ReplaceOne, _>(&discrete_laplace(2.0, 0.1).mechanism, 2.0);
}

#[test]
fn discrete_gaussian_laws() {
    laws::<ReplaceOne, _>(&discrete_gaussian(1.0, 0.5, 40));
    laws::<ZeroOut, _>(&discrete_gaussian(2f64.sqrt(), 0.001, 41));
    laws::<AddRemoveOne, _>(&discrete_gaussian(1.0, 1e-14, 40));
    scalar_agrees::<ReplaceOne, _>(&discrete_gaussian(1.0, 0.1, 1).mechanism, 1.0);
}

/// Scales so large that noise leaves the range of `i64` all the time: the output saturates.
#[test]
fn noise_beyond_the_integers_saturates() {
    let bound = Sensitivity::new(1.0).unwrap();
    let noise = DiscreteLaplace::<ReplaceOne>::from_ratio(bound, u64::MAX, 1).unwrap();
    let input = Bounded::with_proven_sensitivity(vec![i64::MAX; 200], bound);
    let released = noise.release(input, &mut EventLog::new(), &mut SeededRng::new(1)).unwrap().into_inner();
    let stopped = released.iter().filter(|&&output| output == i64::MAX).count();
    // About half, and likewise those below 0.
    assert!((50..150).contains(&stopped), "{stopped}");
    assert!(released.contains(&i64::MIN));
}
