//! Properties of every selection mechanism, checked for each of them.

use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_accountant::{Adjacency, Delta, DpEvent, Epsilon, EventLog, ReplaceOne, ZeroOut, bound};
use dp_mechanisms::scores::Scores;
use dp_mechanisms::{
    Bounded, Error, Exponential, LInf, LInfSensitivity, Mechanism, NoisyMax, OsSeeded, PermuteAndFlip, PrivacyEvent,
    SeededRng,
};

fn sensitivity<A: Adjacency>(value: f64) -> LInfSensitivity<A> {
    LInfSensitivity::new(value).unwrap()
}

fn bounded<A: Adjacency>(scores: &[f64], bound: f64) -> Bounded<Scores, A, LInf> {
    Bounded::with_proven_sensitivity(Scores::new(scores.to_vec()).unwrap(), sensitivity(bound))
}

fn laws<A: Adjacency, M: Mechanism<Scores, A, Norm = LInf, Output = usize>>(mechanism: &M, unit: f64, monotonic: bool) {
    let expected: &[Assumption] = if monotonic { &[Assumption::MonotonicScores] } else { &[] };
    let scores = [0.0, unit, -3.0 * unit];

    // One release, one entry, with the stated event and the declaration that it rests on.
    let mut log = EventLog::new();
    let mut secret = OsSeeded::new().unwrap();
    assert!(*mechanism.release(bounded(&scores, unit), &mut log, &mut secret).unwrap().get() < 3);
    assert_eq!(log.entries(), [(mechanism.event(), 1)]);
    assert_eq!(log.assumptions(), expected);
    assert!(log.is_private());

    // A smaller sensitivity is accepted; a larger one and scores that are not finite are refused, and nothing is logged.
    mechanism.release(bounded(&scores, 0.5 * unit), &mut log, &mut secret).unwrap();
    let excessive = unit * (1.0 + f64::EPSILON);
    assert_eq!(
        mechanism.release(bounded(&scores, excessive), &mut log, &mut secret),
        Err(Error::SensitivityExceeded { found: excessive, built_for: unit })
    );
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let refused = mechanism.release(bounded(&[0.0, bad], unit), &mut log, &mut secret);
        assert_eq!(refused, Err(Error::NonFiniteInput));
    }
    assert_eq!(log.entries(), [(mechanism.event(), 2)]);

    // The assumptions of the scores are logged with them.
    mechanism.release(bounded(&scores, unit).assuming(Assumption::FloatSum), &mut log, &mut secret).unwrap();
    assert!(log.assumptions().contains(&Assumption::FloatSum));

    // The same seed gives the same selection, and marks the log.
    assert!(log.is_private());
    let choices = |seed| -> Vec<usize> {
        let (mut log, mut rng) = (EventLog::new(), SeededRng::new(seed));
        let flat = [0.0; 50];
        let choices = (0..20)
            .map(|_| mechanism.release(bounded(&flat, unit), &mut log, &mut rng).unwrap().into_inner())
            .collect();
        assert!(!log.is_private());
        choices
    };
    assert_eq!(choices(5), choices(5));
    assert_ne!(choices(5), choices(6));

    // One candidate; the ends of the range of doubles; an offset that hides the differences from exponentials.
    let mut rng = SeededRng::new(7);
    let mut choose =
        |scores: &[f64]| mechanism.release(bounded(scores, unit), &mut EventLog::new(), &mut rng).unwrap().into_inner();
    for only in [0.0, -0.0, f64::MAX, -f64::MAX, 5e-324] {
        assert_eq!(choose(&[only]), 0);
    }
    for _ in 0..20 {
        // A hundred thousand noise scales apart.
        assert_eq!(choose(&[1e6 * unit, -1e6 * unit, 0.0]), 0);
        assert_eq!(choose(&[-f64::MAX, 1e6 * unit, f64::MAX]), 2);
        let huge = 1e15 * unit;
        assert_eq!(choose(&[-huge, huge - 1e6 * unit, huge, huge - 2e6 * unit]), 2);
    }
    // Equal scores of any size: each of two is selected sometimes; fails by chance with probability 2^-199.
    for equal in [0.0, 1e308, -1e308, f64::MAX, 5e-324, unit] {
        let first = (0..200).filter(|_| choose(&[equal, equal]) == 0).count();
        assert!((1..200).contains(&first), "{equal}: {first}");
    }
}

#[test]
fn exponential() {
    for (unit, epsilon) in [(1.0, 0.5), (0.1, 3.0), (1e-200, 1.0), (1e200, 1.0)] {
        let mechanism = Exponential::<ZeroOut>::new(sensitivity(unit), Epsilon::new(epsilon).unwrap()).unwrap();
        assert_eq!(mechanism.event(), DpEvent::BoundedRange { epsilon });
        assert_eq!(mechanism.noise_mode(), NoiseMode::Exact);
        assert_eq!((mechanism.epsilon().get(), mechanism.is_monotonic()), (epsilon, false));
        laws(&mechanism, unit, false);
        laws(&mechanism.monotonic().unwrap(), unit, true);
    }
}

#[test]
fn permute_and_flip() {
    for (unit, epsilon) in [(1.0, 0.5), (0.1, 3.0), (1e-200, 1.0), (1e200, 1.0)] {
        let mechanism = PermuteAndFlip::<ReplaceOne>::new(sensitivity(unit), Epsilon::new(epsilon).unwrap()).unwrap();
        assert_eq!(mechanism.event(), DpEvent::PureDp { epsilon });
        assert_eq!(mechanism.noise_mode(), NoiseMode::Exact);
        laws(&mechanism, unit, false);
        laws(&mechanism.monotonic().unwrap(), unit, true);
    }
}

#[test]
fn noisy_max() {
    for (unit, epsilon) in [(1.0, 0.5), (0.1, 3.0), (1e-200, 1.0), (1e200, 1.0)] {
        let mechanism = NoisyMax::<ReplaceOne>::new(sensitivity(unit), Epsilon::new(epsilon).unwrap()).unwrap();
        assert_eq!(mechanism.event(), DpEvent::PureDp { epsilon });
        assert_eq!(mechanism.noise_mode(), NoiseMode::Exact);
        laws(&mechanism, unit, false);
        laws(&mechanism.monotonic().unwrap(), unit, true);
    }
}

/// A hundred selections: the range of the exponential mechanism's loss gains a factor of about two at a small delta.
#[test]
fn a_bounded_range_composes_better() {
    let epsilon = Epsilon::new(0.1).unwrap();
    let hundred = |event: DpEvent| {
        let event = DpEvent::SelfComposed { event: Box::new(event), count: 100 };
        bound::epsilon(&event, Delta::new(1e-6).unwrap()).unwrap().value
    };
    let exponential = hundred(Exponential::<ReplaceOne>::new(sensitivity(1.0), epsilon).unwrap().event());
    let flip = hundred(PermuteAndFlip::<ReplaceOne>::new(sensitivity(1.0), epsilon).unwrap().event());
    assert!(exponential < 0.6 * flip, "{exponential} {flip}");
}
