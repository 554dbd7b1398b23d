use super::*;
use crate::rng::SeededRng;
use crate::testing::{golden_cases, ks_distance, ks_threshold};
use dp_accountant::ReplaceOne;
use proptest::prelude::*;

fn ball(sensitivity: f64, epsilon: f64, dim: u64) -> LaplaceBall<ReplaceOne> {
    LaplaceBall::new(L2Sensitivity::new(sensitivity).unwrap(), Epsilon::new(epsilon).unwrap(), dim).unwrap()
}

#[test]
fn golden_norm_law() {
    let cases = golden_cases("mechanisms.json", "laplace_ball");
    for case in cases {
        let ball = ball(case.input("sensitivity"), case.input("eps"), case.input("d") as u64);
        if case.out.get("cdf").is_some() {
            case.check("cdf", ball.norm_cdf(case.input("r")));
            continue;
        }
        case.check("scale", ball.scale());
        case.check("mean_norm", ball.mean_norm());
        case.check("sd_norm", ball.norm_std_dev());
        case.check("coordinate_variance", ball.coordinate_variance());
        for (p, expected) in case.out["quantiles"].as_object().unwrap() {
            let found = ball.norm_quantile(p.parse().unwrap()).unwrap();
            case.check_number(p, found, expected.as_f64().unwrap());
        }
    }
}

#[test]
fn golden_output_perturbation() {
    let cases = golden_cases("optim-erm.json", "laplace_ball");
    for case in cases {
        let ball = ball(case.input("sensitivity"), case.input("eps"), case.input("dim") as u64);
        case.check("theta", ball.scale());
        case.check("mean_norm", ball.mean_norm());
        case.check("mean_square_norm", ball.mean_squared_norm());
        case.check("log_density_at_0", ball.log_density_at_0());
        case.check("norm_quantile_0.1", ball.norm_quantile(0.9).unwrap());
        case.check("norm_quantile_0.01", ball.norm_quantile(0.99).unwrap());
    }
}

#[test]
fn refused_parameters() {
    let unit = L2Sensitivity::<ReplaceOne>::new(1.0).unwrap();
    let epsilon = Epsilon::new(1.0).unwrap();
    for dimension in [0, (1 << 32) + 1, u64::MAX] {
        assert_eq!(LaplaceBall::new(unit, epsilon, dimension), Err(Error::Dimension { dimension }));
    }
    assert!(LaplaceBall::new(unit, epsilon, 1 << 32).is_ok());
    let scale = |value| LaplaceBall::from_scale(unit, value, 3);
    assert!(matches!(scale(f64::NAN), Err(Error::NotFinite { name: "scale", .. })));
    assert!(matches!(scale(-1.0), Err(Error::NotPositive { name: "scale", .. })));
    assert!(matches!(scale(0.0), Err(Error::NotPositive { name: "scale", .. })));
    assert!(matches!(scale(5e-324), Err(Error::TooSmall { name: "scale", .. })));
    let extreme = L2Sensitivity::<ReplaceOne>::new(1e300).unwrap();
    assert!(matches!(LaplaceBall::new(extreme, Epsilon::new(1e-15).unwrap(), 3), Err(Error::ScaleOverflow { .. })));
    let tiny = L2Sensitivity::<ReplaceOne>::new(1e-300).unwrap();
    assert!(matches!(LaplaceBall::new(tiny, Epsilon::new(1e300).unwrap(), 3), Err(Error::ScaleOverflow { .. })));
    for p in [0.0, 1.0, -0.1, f64::NAN] {
        assert!(matches!(scale(1.0).unwrap().norm_quantile(p), Err(Error::OutOfRange { name: "probability", .. })));
    }
}

#[test]
fn length_must_be_the_dimension() {
    let ball = ball(1.0, 1.0, 3);
    let mut log = EventLog::new();
    let short = Bounded::with_proven_sensitivity(vec![0.0f64; 2], ball.sensitivity());
    let refused = ball.release(short, &mut log, &mut SeededRng::new(1));
    assert_eq!(refused, Err(Error::DimensionMismatch { expected: 3, found: 2 }));
    assert!(log.entries().is_empty());
}

proptest! {
    #[test]
    fn epsilon_is_not_exceeded(ln_sensitivity in -300.0f64..300.0, ln_epsilon in -30.0f64..300.0) {
        let (sensitivity, epsilon) = (ln_sensitivity.exp(), ln_epsilon.exp());
        let bound = L2Sensitivity::<ReplaceOne>::new(sensitivity).unwrap();
        let ball = LaplaceBall::new(bound, Epsilon::new(epsilon).unwrap(), 7).unwrap();
        prop_assert!(sensitivity / ball.scale() <= epsilon);
        prop_assert!(sensitivity / ball.scale() >= epsilon * (1.0 - 4.0 * f64::EPSILON));
    }
}

/// Returns `count` noise vectors for `scale = 1`, as releases of zeros.
fn draw(dim: u64, count: usize, seed: u64) -> Vec<Vec<f64>> {
    let ball = ball(1.0, 1.0, dim);
    let (mut log, mut rng) = (EventLog::new(), SeededRng::new(seed));
    let mut one = || {
        let zeros = Bounded::with_proven_sensitivity(vec![0.0f64; dim as usize], ball.sensitivity());
        ball.release(zeros, &mut log, &mut rng).unwrap().into_inner()
    };
    (0..count).map(|_| one()).collect()
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Kolmogorov-Smirnov of the norm against Gamma(d), false-alarm rate 1e-9 for each dimension.
#[test]
fn norms_are_gamma_distributed() {
    for (dim, count) in [(1, 100_000), (2, 100_000), (10, 50_000), (101, 10_000), (1000, 2_000)] {
        let law = ball(1.0, 1.0, dim);
        let mut norms: Vec<f64> = draw(dim, count, dim).iter().map(|z| norm(z)).collect();
        let distance = ks_distance(&mut norms, |r| law.norm_cdf(r));
        assert!(distance < ks_threshold(count, 1e-9), "{dim}: {distance}");
    }
}

/// The published variant with a direction uniform in the unit *ball* (norm `r U^(1/d)`) must fail the same test.
#[test]
fn a_direction_in_the_unit_ball_is_refuted() {
    use rand::RngExt;
    let mut rng = SeededRng::new(5);
    for (dim, count) in [(1, 100_000), (2, 100_000), (10, 50_000)] {
        let law = ball(1.0, 1.0, dim);
        let shrink = 1.0 / dim as f64;
        let mut norms: Vec<f64> =
            draw(dim, count, dim).iter().map(|z| norm(z) * rng.random::<f64>().powf(shrink)).collect();
        let distance = ks_distance(&mut norms, |r| law.norm_cdf(r));
        assert!(distance > ks_threshold(count, 1e-9), "{dim}: {distance}");
    }
}

/// The square of the cosine to any fixed direction is Beta(1/2, (d - 1)/2): Kolmogorov-Smirnov with a false-alarm rate
/// of 1e-9 for each pair, along an axis and along the diagonal; and the direction is independent of the norm.
#[test]
fn directions_are_uniform() {
    for dim in [2u64, 3, 10] {
        let count = 50_000;
        let noise = draw(dim, count, 100 + dim);
        let axis: Vec<f64> = (0..dim).map(|i| if i == 0 { 1.0 } else { 0.0 }).collect();
        let diagonal = vec![1.0 / (dim as f64).sqrt(); dim as usize];
        for direction in [axis, diagonal] {
            let cosine = |z: &Vec<f64>| z.iter().zip(&direction).map(|(a, b)| a * b).sum::<f64>() / norm(z);
            let law = |x: f64| statrs::function::beta::beta_reg(0.5, 0.5 * (dim as f64 - 1.0), x.clamp(0.0, 1.0));
            let mut squares: Vec<f64> = noise.iter().map(|z| cosine(z).powi(2)).collect();
            assert!(ks_distance(&mut squares, law) < ks_threshold(count, 1e-9), "{dim}");
            // For the longer half, too.
            let median = ball(1.0, 1.0, dim).norm_quantile(0.5).unwrap();
            let mut long: Vec<f64> = noise.iter().filter(|z| norm(z) > median).map(|z| cosine(z).powi(2)).collect();
            assert!(ks_distance(&mut long, law) < ks_threshold(long.len(), 1e-9), "{dim}");
            let positive = noise.iter().filter(|z| cosine(z) > 0.0).count() as f64;
            assert!((positive - 0.5 * count as f64).abs() < 6.1 * 0.5 * (count as f64).sqrt(), "{dim}");
        }
    }
}

#[test]
fn seeded_values_are_stable() {
    let ball = ball(1.0, 1.0, 3);
    let input = Bounded::with_proven_sensitivity(vec![0.0f64, 1.0, -2.0], ball.sensitivity());
    let released = ball.release(input, &mut EventLog::new(), &mut SeededRng::new(42)).unwrap();
    assert_eq!(released.get(), &STABLE);
}

/// Changing these changes values: note it in the changelog.
const STABLE: [f64; 3] = [0.17945098876953125, -1.141676902770996, -6.057320594787598];
