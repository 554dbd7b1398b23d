use super::*;
use crate::rng::SeededRng;
use crate::testing::{golden, golden_cases, ks_distance, ks_threshold};
use dp_accountant::ReplaceOne;
use proptest::prelude::*;

fn unit() -> L2Sensitivity<ReplaceOne> {
    L2Sensitivity::new(1.0).unwrap()
}

fn sensitivity(value: f64) -> L2Sensitivity<ReplaceOne> {
    L2Sensitivity::new(value).unwrap()
}

#[test]
fn golden_analytic() {
    let cases = golden_cases("mechanisms.json", "analytic_gaussian");
    for case in cases {
        let (epsilon, delta) = (case.input("eps"), case.input("delta"));
        let gaussian = Gaussian::analytic(
            sensitivity(case.input("sensitivity")),
            Epsilon::new(epsilon).unwrap(),
            Delta::new(delta).unwrap(),
        )
        .unwrap();
        case.check("sigma", gaussian.std_dev());
        // The least valid scale: never below it by more than 1e-12.
        assert!(gaussian.std_dev() >= case.output("sigma") * (1.0 - 1e-12), "{}", case.id);
    }
}

#[test]
fn golden_classical() {
    let cases = golden_cases("mechanisms.json", "classical_gaussian");
    for case in cases {
        let gaussian = Gaussian::classical(
            sensitivity(case.input("sensitivity")),
            Epsilon::new(case.input("eps")).unwrap(),
            Delta::new(case.input("delta")).unwrap(),
        )
        .unwrap();
        case.check("sigma", gaussian.std_dev());
    }
}

#[test]
fn golden_output_perturbation() {
    let cases = golden_cases("optim-erm.json", "output_gaussian_sigma");
    for case in cases {
        let (epsilon, delta) = (Epsilon::new(case.input("eps")).unwrap(), Delta::new(case.input("delta")).unwrap());
        let bound = sensitivity(case.input("sensitivity"));
        case.check("analytic", Gaussian::analytic(bound, epsilon, delta).unwrap().std_dev());
        let classical = Gaussian::classical(bound, epsilon, delta);
        if case.out["classical_valid"] == true {
            case.check("classical", classical.unwrap().std_dev());
        } else {
            assert_eq!(classical, Err(Error::ClassicalNeedsEpsilonBelowOne { epsilon: epsilon.get() }));
        }
    }
    let cases = golden_cases("optim-erm.json", "output_gaussian_zcdp");
    for case in cases {
        let gaussian =
            Gaussian::from_zcdp(sensitivity(case.input("sensitivity")), Rho::new(case.input("rho")).unwrap());
        let gaussian = gaussian.unwrap();
        case.check("sigma", gaussian.std_dev());
        let mu = gaussian.sensitivity().get() / gaussian.std_dev();
        case.check("rdp_at_8", 8.0 * mu * mu / 2.0);
    }
}

#[test]
fn exact_scales_stay_exact() {
    assert_eq!(Gaussian::from_zcdp(unit(), Rho::new(0.5).unwrap()).unwrap().std_dev(), 1.0);
    assert_eq!(Gaussian::from_gdp(unit(), 0.25).unwrap().std_dev(), 4.0);
    let multiplier = NoiseMultiplier::new(1.5).unwrap();
    assert_eq!(Gaussian::from_noise_multiplier(sensitivity(2.0), multiplier).unwrap().std_dev(), 3.0);
}

#[test]
fn refused_parameters() {
    let std_dev = |value| Gaussian::from_std_dev(unit(), value);
    assert!(matches!(std_dev(f64::NAN), Err(Error::NotFinite { name: "standard deviation", .. })));
    assert!(matches!(std_dev(f64::INFINITY), Err(Error::NotFinite { name: "standard deviation", .. })));
    assert!(matches!(std_dev(0.0), Err(Error::NotPositive { name: "standard deviation", .. })));
    assert!(matches!(std_dev(-0.0), Err(Error::NotPositive { name: "standard deviation", .. })));
    assert!(matches!(std_dev(-1.0), Err(Error::NotPositive { name: "standard deviation", .. })));
    assert!(matches!(std_dev(5e-324), Err(Error::TooSmall { name: "standard deviation", .. })));
    assert!(matches!(std_dev(1e-300), Err(Error::ScaleOverflow { .. })));
    assert!(std_dev(1e300).is_ok());
    assert!(matches!(std_dev(1e305), Err(Error::ScaleOverflow { .. })));
    assert!(matches!(Gaussian::from_gdp(unit(), f64::NAN), Err(Error::NotFinite { name: "mu", .. })));
    assert!(matches!(Gaussian::from_gdp(unit(), 5e-324), Err(Error::TooSmall { name: "mu", .. })));
    let rho = |value| Gaussian::from_zcdp(unit(), Rho::new(value).unwrap());
    assert!(matches!(rho(5e-324), Err(Error::TooSmall { name: "rho", .. })));
    assert!(rho(1e300).is_ok() && rho(1e-300).is_ok() && rho(f64::MAX).is_ok());
    let zero = Delta::ZERO;
    for delta_zero in [
        Gaussian::analytic(unit(), Epsilon::new(0.5).unwrap(), zero),
        Gaussian::classical(unit(), Epsilon::new(0.5).unwrap(), zero),
    ] {
        assert_eq!(delta_zero, Err(Error::OutOfRange { name: "delta", value: 0.0, range: "(0, 1)" }));
    }
    assert!(std_dev(1.0).unwrap().with_grid_bits(41).is_err());
    assert!(std_dev(1.0).unwrap().with_grid_bits(20).is_ok());
}

#[test]
fn products_of_extremes_overflow_by_name() {
    let extreme = |value, mu| Gaussian::from_gdp(sensitivity(value), mu);
    assert!(matches!(extreme(1e300, 1e-300), Err(Error::ScaleOverflow { .. })));
    assert!(matches!(extreme(1e-300, 1e300), Err(Error::ScaleOverflow { .. })));
    let multiplier = NoiseMultiplier::new(1e300).unwrap();
    assert!(matches!(
        Gaussian::from_noise_multiplier(sensitivity(1e300), multiplier),
        Err(Error::ScaleOverflow { .. })
    ));
}

#[test]
fn extreme_targets_finish() {
    for epsilon in [1e-15, 1e-3, 1.0, 700.0, 1e6, 1e300] {
        for delta in [5e-324, 1e-320, 1e-300, 1e-6, 0.5, 1.0 - f64::EPSILON] {
            let (epsilon, delta) = (Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap());
            if let Ok(gaussian) = Gaussian::analytic(unit(), epsilon, delta) {
                assert!(gaussian.std_dev().is_normal());
                let reached = dp_accountant::gaussian::delta(1.0 / gaussian.std_dev(), epsilon.get()).unwrap();
                // For subnormal deltas the last place is not a relative error.
                assert!(reached <= delta.get() || !delta.get().is_normal(), "{epsilon} {delta}: {reached}");
            }
        }
    }
}

proptest! {
    /// The classical formula gives enough noise wherever it is accepted.
    #[test]
    fn classical_meets_its_target(epsilon in 1e-6f64..1.0, ln_delta in -690.0f64..-1e-3) {
        let (epsilon, delta) = (Epsilon::new(epsilon).unwrap(), Delta::new(ln_delta.exp()).unwrap());
        let gaussian = Gaussian::classical(unit(), epsilon, delta).unwrap();
        let reached = dp_accountant::gaussian::delta(1.0 / gaussian.std_dev(), epsilon.get()).unwrap();
        prop_assert!(reached <= delta.get());
    }

    #[test]
    fn analytic_needs_at_most_the_classical_noise(epsilon in 1e-3f64..1.0, ln_delta in -100.0f64..-1.0) {
        let (epsilon, delta) = (Epsilon::new(epsilon).unwrap(), Delta::new(ln_delta.exp()).unwrap());
        let analytic = Gaussian::analytic(unit(), epsilon, delta).unwrap();
        prop_assert!(analytic.std_dev() <= Gaussian::classical(unit(), epsilon, delta).unwrap().std_dev());
    }

    #[test]
    fn zcdp_parameter_is_not_exceeded(ln_sensitivity in -300.0f64..300.0, ln_rho in -300.0f64..300.0) {
        let (bound, rho) = (ln_sensitivity.exp(), ln_rho.exp());
        let gaussian = Gaussian::from_zcdp(sensitivity(bound), Rho::new(rho).unwrap()).unwrap();
        let ratio = bound / gaussian.std_dev();
        // In doubles the square rounds once more; `rounding` tests the exact comparison.
        prop_assert!(ratio * ratio / 2.0 <= rho * (1.0 + 4.0 * f64::EPSILON));
        prop_assert!(ratio * ratio / 2.0 >= rho * (1.0 - 8.0 * f64::EPSILON));
    }
}

/// Returns the noise of one release of zeros, in standard deviations.
fn draw(dim: usize, std_dev: f64, seed: u64) -> Vec<f64> {
    let gaussian = Gaussian::from_std_dev(unit(), std_dev).unwrap();
    let zeros = Bounded::with_proven_sensitivity(vec![0.0f64; dim], unit());
    let released = gaussian.release(zeros, &mut EventLog::new(), &mut SeededRng::new(seed)).unwrap();
    released.get().iter().map(|noise| noise / std_dev).collect()
}

/// Kolmogorov-Smirnov test of the normal law, false-alarm rate 1e-9 (Dvoretzky, Kiefer and Wolfowitz with Massart's constant,
/// which holds for every sample size).
#[test]
fn noise_is_normal() {
    let mut noise = draw(1_000_000, 2.5, 1);
    let normal_cdf = |x: f64| 0.5 * statrs::function::erf::erfc(-x / core::f64::consts::SQRT_2);
    let distance = ks_distance(&mut noise, normal_cdf);
    assert!(distance < ks_threshold(noise.len(), 1e-9), "{distance}");
}

/// Each moment within 6.1 standard errors: false-alarm rate 1e-9 each by the central limit theorem at n = 1e6.
#[test]
fn moments_of_the_noise() {
    let noise = draw(1_000_000, 0.3, 2);
    let n = noise.len() as f64;
    for (power, mean, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
        let found = noise.iter().map(|x| x.powi(power)).sum::<f64>() / n;
        assert!((found - mean).abs() < 6.1 * f64::sqrt(variance / n), "moment {power}: {found}");
    }
    // Neighbouring coordinates are uncorrelated.
    let lag = noise.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / (n - 1.0);
    assert!(lag.abs() < 6.1 / n.sqrt(), "{lag}");
}

#[test]
fn seeded_values_are_stable() {
    let gaussian = Gaussian::from_std_dev(unit(), 1.0).unwrap();
    let input = Bounded::with_proven_sensitivity(vec![0.0f64, 1.0, -2.0], unit());
    let released = gaussian.release(input, &mut EventLog::new(), &mut SeededRng::new(42)).unwrap();
    assert_eq!(released.get(), &STABLE);
}

/// Changing these changes values: note it in the changelog.
const STABLE: [f64; 3] = [-0.9041067957878113, 0.9326490089297295, -3.235505124554038];

#[test]
fn the_golden_file_is_found() {
    // The tree's own copy is complete; another folder may hold any part.
    let least = if std::env::var_os("DP_GOLDEN_DIR").is_some() { 1 } else { 400 };
    assert!(golden("mechanisms.json")["cases"].as_array().is_some_and(|cases| cases.len() >= least));
}
