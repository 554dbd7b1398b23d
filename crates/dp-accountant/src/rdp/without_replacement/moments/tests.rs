use super::*;

/// From alternating sums in 400 to 800 digits.
#[test]
fn gaussian_moments_match_high_precision_values() {
    for (l, mu, expected) in [
        (2, 0.001, -13.815510057964232),
        (4, 0.001, -26.532402493933578),
        (10, 0.001, -62.22625203265877),
        (2, 1.0, 0.5413248546129181),
        (6, 0.5, 2.148481853088643),
        (20, 0.3, 13.724483384402532),
        (40, 0.1, -24.334855853377068),
        (8, 5.0, 700.0),
    ] {
        let got = Pair::Gaussian { mu }.log_even_moment(l);
        assert!((-1e-13..1e-11).contains(&(got - expected)), "{l} {mu}: {got} {expected}");
    }
}

#[test]
fn laplace_moments_are_upper_bounds_close_to_high_precision_values() {
    for (l, x, expected) in [
        (2, 0.001, -13.815843696865512),
        (4, 0.01, -18.42455211804996),
        (10, 0.2, -15.809298139104964),
        (2, 1.0, -0.1539677753840224),
        (6, 0.5, -3.6799658438105762),
        (20, 3.0, 55.309446213109055),
        (100, 1.0, 52.44249215752382),
    ] {
        let got = Pair::Laplace { x }.log_even_moment(l);
        assert!((-1e-13..2e-3).contains(&(got - expected)), "{l} {x}: {got} {expected}");
    }
}

#[test]
fn finite_laws_by_their_sums() {
    for epsilon in [0.1f64, 1.0, 5.0] {
        let p = epsilon.exp() / (1.0 + epsilon.exp());
        for l in [2, 6, 20] {
            let power = l as i32;
            let direct = (1.0 - p) * (p / (1.0 - p) - 1.0).powi(power) + p * ((1.0 - p) / p - 1.0).powi(power);
            let two = Pair::Pure { epsilon }.log_even_moment(l);
            assert!((two - direct.ln()).abs() < 1e-11, "{epsilon} {l}");
            let response = Pair::Response { more: p, less: 1.0 - p }.log_even_moment(l);
            assert!((response - direct.ln()).abs() < 1e-11, "{epsilon} {l}");
            // It dominates the Laplace pair with the same pure guarantee.
            assert!(two >= Pair::Laplace { x: epsilon }.log_even_moment(l) - 2e-3);
        }
    }
}

#[test]
fn extremes_are_numbers() {
    for l in [2, 40, 4096] {
        for size in [1e-150, 1e-8, 1.0, 30.0, 1e5] {
            for pair in [Pair::Gaussian { mu: size }, Pair::Laplace { x: size }, Pair::Pure { epsilon: size }] {
                let log = pair.log_even_moment(l);
                assert!(log > f64::NEG_INFINITY && !log.is_nan(), "{pair:?} {l}: {log}");
            }
        }
    }
}

#[test]
fn pairs_of_bases() {
    assert_eq!(Pair::of(&vec![(Leaf::Zcdp { rho: 1.0 }, 1)]), []);
    let gaussians = Pair::of(&vec![(Leaf::Gaussian { mu: 3.0 }, 1), (Leaf::Gaussian { mu: 2.0 }, 4)]);
    assert!(matches!(gaussians[..], [Pair::Gaussian { mu }] if (mu - 5.0).abs() < 1e-14));
    let laplace = Pair::of(&vec![(Leaf::Laplace { x: 0.5 }, 1)]);
    assert_eq!(laplace, [Pair::Pure { epsilon: 0.5 }, Pair::Laplace { x: 0.5 }]);
    assert_eq!(Pair::of(&vec![(Leaf::Laplace { x: 0.5 }, 2)]), [Pair::Pure { epsilon: 1.0 }]);
    assert_eq!(Pair::of(&vec![(Leaf::Gaussian { mu: 3.0 }, 1), (Leaf::Pure { epsilon: 1.0 }, 1)]), []);
}
