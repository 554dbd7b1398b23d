use super::*;

fn delta_of(value: f64) -> Delta {
    Delta::new(value).unwrap()
}

/// `ln delta` by 600-digit evaluation of the defining formula, to the nearest double.
const HIGH_PRECISION: &[(f64, f64, f64)] = &[
    (0.0001, 0.0, -10.129278905597522),
    (0.0001, 1e-05, -10.257488686516165),
    (0.0001, 0.0037, -701.8514505364948),
    (0.001, 0.02, -213.8155939127929),
    (0.01, 0.3, -462.17983641902197),
    (0.04999, 0.0, -3.9149749474287767),
    (0.04999, 1.5, -460.15135047207855),
    (0.05, 1.5, -459.97069784505015),
    (0.05, 1.85, -694.7140044826044),
    (0.2, 0.01, -2.5885275802549104),
    (0.2, 6.0, -456.3390806473466),
    (1.0, 0.0, -0.9599163336956223),
    (1.0, 0.5, -1.4337142903236977),
    (1.0, 0.49999, -1.433703319110304),
    (1.0, 36.0, -638.2130931195018),
    (3.0, 0.1, -0.15130395983138556),
    (3.0, 4.5, -0.9715760584496231),
    (3.0, 100.0, -513.5146747720914),
    (10.0, 0.0, -5.733033080966979e-07),
    (10.0, 49.9, -0.7669103080563094),
    (10.0, 50.1, -0.7840687990646901),
    (10.0, 400.0, -618.4803045419914),
    (100.0, 5100.0, -1.8562356629057197),
    (100.0, 4900.0, -0.17566275990734553),
    (0.3, 12.0, -803.5137771594957),
    // Cases in which the continued fraction needs its terms: centres 4.1, 6.5, 6.8, 3.7, 5.6, 2.03.
    (0.005414849267319231, 0.022076258757315354, -17.40059086092796),
    (3.746660109827707e-5, 0.0002441754944390225, -36.16193841575276),
    (0.02905323760948432, 0.1978647647689446, -31.446935290943316),
    (0.0002550135145997182, 0.0009348561838223733, -18.692923025832858),
    (0.0002497082006886297, 0.0013999811200237648, -28.464097992239502),
    (0.009706470744552307, 0.019693705089451986, -9.471755245125411),
];

#[test]
fn log_delta_matches_high_precision_values_and_is_rounded_up() {
    for &(mu, epsilon, expected) in HIGH_PRECISION {
        let got = log_delta(mu, epsilon).unwrap();
        let tolerance = 1e-12 * expected.abs().max(1.0);
        assert!(got >= expected.next_down(), "mu {mu}, epsilon {epsilon}: {got} < {expected}");
        assert!(got <= expected + tolerance, "mu {mu}, epsilon {epsilon}: {got} > {expected}");
    }
}

#[test]
fn the_series_and_the_difference_meet() {
    for centre in [0.0, 0.1, 1.99, 2.01, 5.0, 30.0] {
        let (below, above) = (SERIES_BELOW * (1.0 - 1e-13), SERIES_BELOW * (1.0 + 1e-13));
        let series = curve_point(below, centre * below).log_delta;
        let difference = curve_point(above, centre * above).log_delta;
        assert!((series - difference).abs() < 1e-11 * (1.0 + series.abs()), "{centre}: {series} {difference}");
    }
}

#[test]
fn derivatives_are_difference_quotients() {
    for (mu, epsilon) in [(0.01, 0.02), (0.5, 1.0), (3.0, 0.2), (4.0, 20.0), (1.0, 0.5)] {
        let point = curve_point(mu, epsilon);
        let step = 1e-6;
        let by_epsilon = (curve_point(mu, epsilon + step * epsilon).log_delta
            - curve_point(mu, epsilon - step * epsilon).log_delta)
            / (2.0 * step * epsilon);
        let by_mu = (curve_point(mu + step * mu, epsilon).log_delta - curve_point(mu - step * mu, epsilon).log_delta)
            / (2.0 * step * mu);
        assert!((point.by_epsilon / by_epsilon - 1.0).abs() < 1e-6, "{mu} {epsilon}");
        assert!((point.by_mu / by_mu - 1.0).abs() < 1e-6, "{mu} {epsilon}");
    }
}

#[test]
fn ends_of_the_ranges() {
    assert_eq!(delta(0.0, 0.0).unwrap(), 0.0);
    assert_eq!(epsilon(0.0, Delta::ZERO).unwrap(), 0.0);
    assert_eq!(epsilon(1.0, Delta::ZERO).unwrap(), f64::INFINITY);
    assert_eq!(epsilon(1e-3, delta_of(0.5)).unwrap(), 0.0);
    assert_eq!(delta(1e100, 1.0).unwrap(), 1.0);
    for (mu, epsilon) in [(1e-150, 1e100), (1.0, 1e17), (1.0, 1e200), (0.1, 1e308)] {
        let tiny = delta(mu, epsilon).unwrap();
        assert!(tiny > 0.0 && tiny < 1e-300, "{mu} {epsilon}: {tiny}");
    }
    assert!(delta(1.0, 60.0).unwrap() > 0.0, "a positive delta never underflows to zero");
    for (mu, epsilon) in [(f64::NAN, 1.0), (1.0, f64::NAN), (-1.0, 1.0), (1.0, -1.0), (f64::INFINITY, 1.0)] {
        assert!(delta(mu, epsilon).is_err());
    }
    let unreachable = noise_multiplier(Epsilon::new(1.0).unwrap(), Delta::ZERO);
    assert!(matches!(unreachable, Err(Error::Unreachable { .. })));
    assert!(noise_multiplier(Epsilon::MIN, delta_of(1e-300)).unwrap().get().is_finite());
    assert!(noise_multiplier(Epsilon::new(1e300).unwrap(), delta_of(0.999)).unwrap().get() > 0.0);
    assert!(classical_noise_multiplier(Epsilon::new(1.0).unwrap(), delta_of(1e-5)).is_err());
}

#[test]
fn composition_is_the_root_of_the_sum_of_squares() {
    assert_eq!(compose_mu(&[3.0, 4.0]).unwrap(), 5.0);
    assert_eq!(compose_mu(&[]).unwrap(), 0.0);
    assert!(compose_mu(&[1.0, f64::NAN]).is_err());
}

proptest::proptest! {
    #[test]
    fn delta_falls_in_epsilon_and_rises_in_mu(
        log_mu in -9.0f64..9.0, epsilon in 0.0f64..50.0, factor in 1.000_001f64..3.0
    ) {
        let mu = log_mu.exp();
        let here = log_delta(mu, epsilon).unwrap();
        let slack = 1e-11 * (1.0 + here.abs());
        proptest::prop_assert!(log_delta(mu, epsilon * factor).unwrap() <= here + slack);
        proptest::prop_assert!(log_delta(mu * factor, epsilon).unwrap() >= here - slack);
    }

    #[test]
    fn epsilon_meets_delta_and_hardly_less_does_not(log_mu in -9.0f64..5.0, log_target in -690.0f64..-0.01) {
        let mu = log_mu.exp();
        let target = delta_of(log_target.exp());
        let epsilon = epsilon(mu, target).unwrap();
        proptest::prop_assert!(delta(mu, epsilon).unwrap() <= target.get());
        if epsilon > 0.0 {
            let less = epsilon - (1e-11 * epsilon).max(1e-12);
            proptest::prop_assert!(less <= 0.0 || delta(mu, less).unwrap() > target.get());
        }
    }

    #[test]
    fn noise_meets_the_target_and_hardly_less_does_not(log_epsilon in -9.0f64..5.0, log_target in -690.0f64..-0.01) {
        let (epsilon, target) = (Epsilon::new(log_epsilon.exp()).unwrap(), delta_of(log_target.exp()));
        let multiplier = noise_multiplier(epsilon, target).unwrap().get();
        proptest::prop_assert!(delta(multiplier.recip(), epsilon.get()).unwrap() <= target.get());
        let less = multiplier * (1.0 - 1e-10);
        proptest::prop_assert!(delta(less.recip(), epsilon.get()).unwrap() > target.get());
    }

    #[test]
    fn analytic_noise_is_never_above_the_classical(log_epsilon in -7.0f64..-0.001, log_target in -100.0f64..-3.0) {
        let (epsilon, target) = (Epsilon::new(log_epsilon.exp()).unwrap(), delta_of(log_target.exp()));
        let classical = classical_noise_multiplier(epsilon, target).unwrap();
        proptest::prop_assert!(noise_multiplier(epsilon, target).unwrap() <= classical);
    }
}
