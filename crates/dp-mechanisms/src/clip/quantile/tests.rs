use super::*;
use crate::rng::{OsSeeded, SeededRng};
use crate::testing::{golden_cases, ks_distance, ks_threshold};
use dp_accountant::{ReplaceOne, ZeroOut};
use num_bigint::BigInt;
use proptest::prelude::*;
use statrs::distribution::{ContinuousCDF, Normal};

fn multiplier(z: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(z).unwrap()
}

fn clipping<A: Adjacency>(z: f64, count_std_dev: f64) -> AdaptiveClipping<A> {
    AdaptiveClipping::new(0.5, 0.2, 100.0, multiplier(z), count_std_dev).unwrap()
}

#[test]
fn golden() {
    let cases = golden_cases("mechanisms.json", "adaptive_clip");
    for case in cases {
        if case.input.get("noise_multiplier").is_some() {
            let found = gradient_multiplier(case.input("noise_multiplier"), case.input("count_sigma")).unwrap();
            case.check("gradient_multiplier", found);
        } else {
            let (quantile, rate) = (case.input("quantile"), case.input("rate"));
            let clipping = AdaptiveClipping::<ZeroOut>::new(quantile, rate, 1.0, multiplier(1.0), 1.0).unwrap();
            let next =
                clipping.next_norm(ClippingNorm::new(case.input("c")).unwrap(), case.input("noisy_fraction_below"));
            case.check("c_next", next.get());
        }
    }
}

#[test]
fn refused_parameters() {
    let new = |quantile, rate, records, z, count| {
        AdaptiveClipping::<ZeroOut>::new(quantile, rate, records, multiplier(z), count).err()
    };
    assert_eq!(new(0.5, 0.2, 10.0, 1.0, 0.6), None);
    for quantile in [0.0, 1.0, -0.5, f64::NAN] {
        assert!(matches!(new(quantile, 0.2, 10.0, 1.0, 5.0), Some(Error::OutOfRange { name: "quantile", .. })));
    }
    for (rate, records, count) in [(0.0, 10.0, 5.0), (0.2, 0.0, 5.0), (0.2, 10.0, 0.0), (-1.0, 10.0, 5.0)] {
        assert!(matches!(new(0.5, rate, records, 1.0, count), Some(Error::NotPositive { .. })));
    }
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(matches!(new(0.5, bad, 10.0, 1.0, 5.0), Some(Error::NotFinite { .. })));
        assert!(matches!(new(0.5, 0.2, bad, 1.0, 5.0), Some(Error::NotFinite { .. })));
        assert!(matches!(new(0.5, 0.2, 10.0, 1.0, bad), Some(Error::NotFinite { .. })));
    }
    // A count with less noise than the whole step may have.
    for count in [0.5, 0.4] {
        assert!(matches!(new(0.5, 0.2, 10.0, 1.0, count), Some(Error::OutOfRange { name: "noise multiplier", .. })));
    }
    let start = clipping::<ZeroOut>(1.0, 5.0).start(ClippingNorm::new(1e200).unwrap());
    assert!(matches!(start, Err(Error::OutOfRange { name: "clipping norm", .. })));
}

#[test]
fn the_relation_is_in_the_event() {
    assert_eq!(clipping::<ZeroOut>(1.5, 5.0).event(), DpEvent::Gaussian { std_dev: 1.5, sensitivity: 1.0 });
    assert_eq!(clipping::<ReplaceOne>(1.5, 5.0).event(), DpEvent::Gaussian { std_dev: 1.5, sensitivity: 2.0 });
}

fn sum<A: Adjacency>(sensitivity: f64) -> Bounded<Vec<f64>, A> {
    Bounded::with_proven_sensitivity(vec![0.0; 2], L2Sensitivity::new(sensitivity).unwrap())
}

#[test]
fn a_step_is_one_event_whatever_the_norm() {
    let clipping = clipping::<ReplaceOne>(1.0, 5.0);
    let mut state = clipping.start(ClippingNorm::new(3.0).unwrap()).unwrap();
    let (mut log, mut rng) = (EventLog::new(), OsSeeded::new().unwrap());
    for _ in 0..5 {
        let (norm, count) = (state.norm(), state.count());
        let released = state.release(sum(2.0 * norm.get()), count, &mut log, &mut rng).unwrap();
        assert_eq!(released.get().next_norm, state.norm());
        assert_ne!(state.norm(), norm);
    }
    assert_eq!(log.entries(), [(clipping.event(), 5)]);
}

#[test]
fn noise_is_exact_unless_chosen_otherwise() {
    let (mut log, mut rng) = (EventLog::new(), OsSeeded::new().unwrap());
    let mut step = |clipping: AdaptiveClipping<ZeroOut>| {
        let mut state = clipping.start(ClippingNorm::new(1.0).unwrap()).unwrap();
        let count = state.count();
        state.release(sum(1.0), count, &mut log, &mut rng).unwrap();
        log.assumptions().to_vec()
    };
    let exact = clipping(1.0, 5.0);
    assert!(step(exact).is_empty());
    let rounded = exact.with_noise_mode(NoiseMode::Rounded).unwrap();
    assert_eq!(step(rounded), [dp_accountant::certificate::Assumption::IdealisedFloat]);
    assert!(exact.with_noise_mode(NoiseMode::None).is_err());
}

#[test]
fn what_does_not_belong_to_the_step_is_refused() {
    let mut state = clipping::<ZeroOut>(1.0, 5.0).start(ClippingNorm::new(3.0).unwrap()).unwrap();
    let other = clipping::<ZeroOut>(1.0, 5.0).start(ClippingNorm::new(4.0).unwrap()).unwrap();
    let (mut log, mut rng) = (EventLog::new(), OsSeeded::new().unwrap());
    assert_eq!(state.release(sum(3.0), other.count(), &mut log, &mut rng).err(), Some(Error::SumsDiffer));
    let count = state.count();
    let refused = state.release(sum(4.0), count, &mut log, &mut rng).err();
    assert_eq!(refused, Some(Error::SensitivityExceeded { found: 4.0, built_for: 3.0 }));
    assert_eq!(state.count().merge(other.count()), Err(Error::SumsDiffer));
    assert!(log.entries().is_empty() && state.norm().get() == 3.0);
}

/// The norm is exactly at the edge for the first, above it for the second; NaN is not counted.
#[test]
fn counting() {
    let state = clipping::<ZeroOut>(1.0, 5.0).start(ClippingNorm::new(3.0).unwrap()).unwrap();
    let (mut one, mut other) = (state.count(), state.count());
    for squared_norm in [9.0, 0.0, 8.0, f64::NAN, f64::INFINITY, -1.0] {
        one.add(squared_norm);
    }
    other.add(9.000001);
    one.merge(other).unwrap();
    assert_eq!(one.halves, 2);
}

/// With little noise the norm converges to the median of the records' norms, 1 to 99, from either side.
#[test]
fn the_norm_goes_to_the_quantile() {
    for first in [0.1, 1000.0] {
        let clipping = AdaptiveClipping::<ZeroOut>::new(0.5, 0.5, 99.0, multiplier(0.1), 0.2).unwrap();
        let mut state = clipping.start(ClippingNorm::new(first).unwrap()).unwrap();
        let mut rng = SeededRng::new(3);
        for _ in 0..60 {
            let mut count = state.count();
            (1..100).for_each(|norm: i32| count.add(f64::from(norm * norm)));
            let sum = sum(state.norm().get());
            state.release(sum, count, &mut EventLog::new(), &mut rng).unwrap();
        }
        assert!((state.norm().get() - 50.0).abs() < 3.0, "{}", state.norm().get());
    }
}

#[test]
fn the_norm_stays_in_range_whatever_the_noise_does() {
    let clipping = clipping::<ZeroOut>(1.0, 5.0);
    let norm = ClippingNorm::new(1.0).unwrap();
    assert_eq!(clipping.next_norm(norm, -1e300).get(), LARGEST);
    assert_eq!(clipping.next_norm(norm, 1e300).get(), LEAST);
    assert_eq!(clipping.next_norm(norm, f64::INFINITY).get(), LEAST);
    assert_eq!(clipping.next_norm(norm, f64::NAN), norm);
    assert!(clipping.start(ClippingNorm::new(LARGEST).unwrap()).is_ok());
    assert!(clipping.start(ClippingNorm::new(LEAST).unwrap()).is_ok());
}

/// The count's noise, recovered from the norm, and the sum's, compared with their normal laws: 20000 draws each,
/// Kolmogorov-Smirnov with a false-alarm rate of 1e-9.
#[test]
fn both_parts_have_their_noise() {
    let clipping = AdaptiveClipping::<ZeroOut>::new(0.5, 1e-3, 100.0, multiplier(1.0), 0.6).unwrap();
    let first = ClippingNorm::new(2.0).unwrap();
    let mut rng = SeededRng::new(4);
    let (mut counts, mut sums) = (Vec::new(), Vec::new());
    for _ in 0..20_000 {
        let mut state = clipping.start(first).unwrap();
        let mut count = state.count();
        (0..7).for_each(|_| count.add(1.0));
        let step = state.release(sum(2.0), count, &mut EventLog::new(), &mut rng).unwrap().into_inner();
        sums.push(step.sum[0] / (2.0 * clipping.gradient_multiplier()));
        counts.push((-(step.next_norm.get() / 2.0).ln() / 1e-3 * 100.0 - 3.5) / 0.6);
    }
    let normal = Normal::new(0.0, 1.0).unwrap();
    for mut sample in [counts, sums] {
        let distance = ks_distance(&mut sample, |x| normal.cdf(x));
        assert!(distance < ks_threshold(20_000, 1e-9), "{distance}");
    }
}

proptest! {
    /// `z² (2 s_b)² + z² z_g² <= z_g² (2 s_b)²` in exact integers, without slack.
    #[test]
    fn both_parts_together_cost_what_is_stated(z in 1e-3f64..1e3, ratio in 0.5000001f64..100.0) {
        let count_std_dev = z * ratio;
        let found = gradient_multiplier(z, count_std_dev).unwrap();
        // All are multiples of 2^-1074; the inequality is homogeneous.
        let integer = |x: f64| -> BigInt {
            let bits = x.to_bits();
            BigInt::from((bits & ((1 << 52) - 1)) | (1 << 52)) << ((bits >> 52) - 1)
        };
        let square = |x: f64| integer(x) * integer(x);
        let (z2, g2, b2) = (square(z), square(found), square(2.0 * count_std_dev));
        prop_assert!(&z2 * &b2 + &z2 * &g2 <= &g2 * &b2);
        let less = square(found * (1.0 - 1e-14));
        prop_assert!(&z2 * &b2 + &z2 * &less > &less * &b2);
    }
}
