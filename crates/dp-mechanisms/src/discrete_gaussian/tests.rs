use super::*;
use crate::rng::SeededRng;
use crate::testing::{chi_square, golden_cases};
use dp_accountant::{ReplaceOne, bound, exact as curve};
use proptest::prelude::*;

fn unit() -> L2Sensitivity<ReplaceOne> {
    L2Sensitivity::new(1.0).unwrap()
}

fn noise(scale: f64) -> DiscreteGaussian<ReplaceOne> {
    DiscreteGaussian::from_scale(unit(), scale, 1).unwrap()
}

#[test]
fn golden_law() {
    for case in golden_cases("mechanisms.json", "discrete_gaussian") {
        let law = noise(case.input("sigma2").sqrt());
        let k = case.input.get("k").and_then(serde_json::Value::as_i64);
        match k {
            Some(k) if case.out.get("pmf").is_some() => case.check("pmf", law.pmf(k)),
            Some(k) => case.check("prob_ge", law.probability_at_least(k)),
            None => {
                case.check("variance", law.variance());
                case.check("normaliser", law::normaliser(law.scale()));
            }
        }
    }
}

/// The accountant brackets the golden curve from the event of one dimension.
#[test]
fn golden_curve() {
    for case in golden_cases("mechanisms.json", "discrete_gaussian_delta") {
        let sensitivity = L2Sensitivity::<ReplaceOne>::new(case.input("shift")).unwrap();
        let mechanism = DiscreteGaussian::from_scale(sensitivity, case.input("sigma2").sqrt(), 1).unwrap();
        let (epsilon, truth) = (case.input("eps"), case.output("delta"));
        let bracket = curve::delta(&mechanism.event(), epsilon).unwrap();
        assert!(bracket.lower <= truth * (1.0 + 1e-9) && truth <= bracket.upper * (1.0 + 1e-9), "{}", case.id);
        let stated = bound::delta(&mechanism.event(), epsilon).unwrap().value;
        assert!(stated >= truth * (1.0 - 1e-9) && stated <= truth * 1.01 + 1e-200, "{}: {stated} {truth}", case.id);
    }
}

#[test]
fn tails_are_sums_of_masses() {
    for scale in [0.3, 1.0, 4.4] {
        let law = noise(scale);
        let (mut below, mut squares) = (0.0, 0.0);
        for k in -300..=300i64 {
            assert!((law.cdf(k - 1) - below).abs() < 1e-14, "{scale} {k}");
            assert!((law.probability_at_least(k) - (1.0 - below)).abs() < 1e-14, "{scale} {k}");
            below += law.pmf(k);
            squares += law.pmf(k) * (k * k) as f64;
        }
        assert!((below - 1.0).abs() < 1e-14 && (squares / law.variance() - 1.0).abs() < 1e-12, "{scale}");
    }
    let law = noise(3.0);
    assert_eq!((law.cdf(i64::MIN), law.cdf(i64::MAX)), (0.0, 1.0));
    assert_eq!((law.probability_at_least(i64::MIN), law.probability_at_least(i64::MAX)), (1.0, 0.0));
}

#[test]
fn refused_parameters() {
    let scale = |value| DiscreteGaussian::from_scale(unit(), value, 1);
    assert!(matches!(scale(f64::NAN), Err(Error::NotFinite { name: "scale", .. })));
    assert!(matches!(scale(f64::INFINITY), Err(Error::NotFinite { name: "scale", .. })));
    assert!(matches!(scale(0.0), Err(Error::NotPositive { name: "scale", .. })));
    assert!(matches!(scale(-1.0), Err(Error::NotPositive { name: "scale", .. })));
    assert!(matches!(scale(5e-324), Err(Error::TooSmall { name: "scale", .. })));
    for value in [LEAST_SCALE.next_down(), LARGEST_SCALE.next_up(), 1e300] {
        assert_eq!(scale(value), Err(Error::OutOfRange { name: "scale", value, range: "[2^-10, 2^52]" }));
    }
    for value in [LEAST_SCALE, LEAST_SCALE.next_up(), 0.1, LARGEST_SCALE.next_down(), LARGEST_SCALE] {
        assert_eq!(scale(value).map(|noise| noise.scale()), Ok(value));
    }
    for dimension in [0, (1 << 32) + 1] {
        assert_eq!(DiscreteGaussian::from_scale(unit(), 1.0, dimension), Err(Error::Dimension { dimension }));
    }
    let zcdp = |sensitivity, rho| {
        let sensitivity = L2Sensitivity::<ReplaceOne>::new(sensitivity).unwrap();
        DiscreteGaussian::from_zcdp(sensitivity, Rho::new(rho).unwrap(), 1)
    };
    assert!(matches!(zcdp(1.0, 5e-324), Err(Error::TooSmall { name: "rho", .. })));
    for (sensitivity, rho) in [(1e300, 1e-300), (1e-300, 1e300), (1.0, f64::MAX), (1.0, 1e-300)] {
        assert!(matches!(zcdp(sensitivity, rho), Err(Error::OutOfRange { name: "scale", .. })));
    }
    let multiplier = |value| DiscreteGaussian::from_noise_multiplier(unit(), NoiseMultiplier::new(value).unwrap(), 1);
    assert_eq!(multiplier(2.5).map(|noise| noise.scale()), Ok(2.5));
    assert!(matches!(multiplier(1e-300), Err(Error::OutOfRange { name: "scale", .. })));
}

#[test]
fn length_must_be_the_dimension() {
    let noise = DiscreteGaussian::from_scale(unit(), 1.0, 3).unwrap();
    let (mut log, mut rng) = (EventLog::new(), SeededRng::new(1));
    let short = Bounded::with_proven_sensitivity(vec![0i64; 2], unit());
    assert_eq!(noise.release(short, &mut log, &mut rng), Err(Error::DimensionMismatch { expected: 3, found: 2 }));
    let one = Bounded::with_proven_sensitivity(0i64, unit());
    assert_eq!(noise.release(one, &mut log, &mut rng), Err(Error::DimensionMismatch { expected: 3, found: 1 }));
    assert!(log.entries().is_empty());
}

proptest! {
    #[test]
    fn zcdp_parameter_is_not_exceeded(sensitivity in 1.0f64..1e6, ln_rho in -20.0f64..5.0) {
        let bound = L2Sensitivity::<ReplaceOne>::new(sensitivity).unwrap();
        let noise = DiscreteGaussian::from_zcdp(bound, Rho::new(ln_rho.exp()).unwrap(), 1).unwrap();
        let ratio = sensitivity / noise.scale();
        prop_assert!(ratio * ratio / 2.0 <= ln_rho.exp() * (1.0 + 4.0 * f64::EPSILON));
        prop_assert!(ratio * ratio / 2.0 >= ln_rho.exp() * (1.0 - 8.0 * f64::EPSILON));
    }
}

/// The Renyi divergence of two coordinates by enumeration: never above `alpha D²/(2 s²)` for any integer shift of norm D.
#[test]
fn divergence_in_two_dimensions() {
    for scale in [0.5f64, 1.0, 3.0] {
        for (first, second) in [(1i64, 0i64), (1, 1), (2, 1), (3, 4)] {
            for order in [1.5f64, 2.0, 8.0] {
                // The logarithm of a coordinate's moment, the largest summand taken out; it is at k = -(order - 1) shift.
                let log_moment = |shift: i64| {
                    let square = |k: f64| k * k / (2.0 * scale * scale);
                    let (largest, reach) = (-(order - 1.0) * shift as f64, (12.0 * scale) as i64 + 3);
                    let summands = (largest as i64 - reach..=largest as i64 + reach).map(|k| {
                        let k = k as f64;
                        let exponent = order * square(k) - (order - 1.0) * square(k - shift as f64);
                        (-exponent - order * (order - 1.0) * square(shift as f64)).exp()
                    });
                    (summands.sum::<f64>() / law::normaliser(scale)).ln() + order * (order - 1.0) * square(shift as f64)
                };
                let found = (log_moment(first) + log_moment(second)) / (order - 1.0);
                let bound = order * (first * first + second * second) as f64 / (2.0 * scale * scale);
                assert!(found <= bound * (1.0 + 1e-12), "{scale} {first} {second} {order}: {found} {bound}");
                // Integer shifts by alpha D attain it.
                if order.fract() == 0.0 {
                    assert!((found / bound - 1.0).abs() < 1e-9, "{scale} {first} {second} {order}: {found} {bound}");
                }
            }
        }
    }
}

/// Noise of 50,000 coordinates compared with the masses in classes: chi-square with 20 degrees of freedom below its 1 - 1e-9
/// quantile, 83.5, for each of three scales.
#[test]
fn noise_has_the_stated_law() {
    for (seed, scale) in [(1, 3.0), (2, 4.5), (3, 100.0f64.sqrt() / 3.0)] {
        let count = 50_000;
        let law = DiscreteGaussian::from_scale(unit(), scale, count as u64).unwrap();
        let zeros = Bounded::with_proven_sensitivity(vec![0i64; count], unit());
        let noise = law.release(zeros, &mut EventLog::new(), &mut SeededRng::new(seed)).unwrap();
        let statistic = chi_square(noise.get(), 10, |k| law.pmf(k), |k| law.probability_at_least(k));
        assert!(statistic < 83.5, "{scale}: {statistic}");
    }
}

#[test]
fn seeded_values_are_stable() {
    let law = DiscreteGaussian::from_scale(unit(), 10.0, 4).unwrap();
    let input = Bounded::with_proven_sensitivity(vec![0i64, 1000, -1000, 5], unit());
    let released = law.release(input, &mut EventLog::new(), &mut SeededRng::new(42)).unwrap();
    assert_eq!(released.get(), &STABLE);
}

/// Changing these changes values: note it in the changelog.
const STABLE: [i64; 4] = [-9, 994, -1007, 3];
