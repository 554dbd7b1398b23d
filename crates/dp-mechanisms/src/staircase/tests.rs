use super::*;
use crate::rng::{OsSeeded, SeededRng};
use crate::testing::{golden_cases, ks_distance, ks_threshold};
use dp_accountant::ReplaceOne;
use proptest::prelude::*;

fn staircase(sensitivity: f64, epsilon: f64) -> Staircase<ReplaceOne> {
    Staircase::new(L1Sensitivity::new(sensitivity).unwrap(), Epsilon::new(epsilon).unwrap()).unwrap()
}

fn bounded(value: f64, sensitivity: f64) -> Bounded<f64, ReplaceOne, L1> {
    Bounded::with_proven_sensitivity(value, L1Sensitivity::new(sensitivity).unwrap())
}

fn draw(mechanism: &Staircase<ReplaceOne>, value: f64, rng: &mut SeededRng) -> f64 {
    let input = bounded(value, mechanism.sensitivity().get());
    mechanism.release(input, &mut EventLog::new(), rng).unwrap().into_inner()
}

#[test]
fn golden_optimum() {
    for case in golden_cases("mechanisms.json", "staircase") {
        let (epsilon, sensitivity) = (case.input("eps"), case.input("sensitivity"));
        case.check("gamma_abs", optimal_gamma(epsilon));
        case.check("mean_abs", sensitivity * least_mean_absolute(epsilon));
        let realised = staircase(sensitivity, epsilon);
        for (found, expected) in [
            (realised.gamma(), case.output("gamma_abs")),
            (realised.mean_absolute(), case.output("mean_abs")),
            (realised.density_at_0(), case.output("density_first_step")),
        ] {
            assert!((found / expected - 1.0).abs() < 1e-8, "{}: {found} {expected}", case.id);
        }
    }
}

proptest! {
    /// The first step is at most `e^epsilon` times as high as the second, and the error close to the least one.
    #[test]
    fn private_and_next_to_optimal(ln_epsilon in -30.0f64..3.4, ln_sensitivity in -600.0f64..600.0, bits in 20u32..=30) {
        let (epsilon, sensitivity) = (ln_epsilon.exp(), ln_sensitivity.exp());
        let staircase = staircase(sensitivity, epsilon).with_grid_bits(bits).unwrap();
        let law = staircase.law;
        // Exact differences of doubles where needed: p is above 1/2 there.
        let odds = law.first_step() / (1.0 - law.first_step());
        prop_assert!(odds <= law.gamma() * epsilon.exp_m1());
        prop_assert!(1.0 / law.mean_step().rounded_down() <= epsilon);
        // The sensitivity fits into the period.
        prop_assert!(law.step(false, 0).0 as f64 * staircase.grid().step() >= sensitivity);
        let excess = staircase.mean_absolute() / (sensitivity * least_mean_absolute(epsilon)) - 1.0;
        prop_assert!(excess > -1e-9 && excess < 1.1 * 2f64.powi(-(bits as i32)) + 1e-7, "{}", excess);
    }
}

/// Any shift up to the sensitivity changes the density by at most `e^epsilon`: by enumeration of steps on a coarse
/// staircase, in both directions.
#[test]
fn ratios_by_enumeration() {
    for (epsilon, period) in [(0.5f64, 40u64), (2.0, 64), (6.0, 1000)] {
        let law = Law::new(epsilon, Ratio::at_least(quotient_up(1.0, epsilon)).unwrap(), period);
        // Half the mass of each cell between whole numbers, on which the density is constant.
        let (shift, reach) = (period as i64, 5 * period as i64);
        let tails: Vec<f64> = (0..=reach + shift + 1).map(|cell| law.magnitude_tail(cell as f64)).collect();
        let mass = |cell: i64| {
            let magnitude = if cell < 0 { -cell - 1 } else { cell } as usize;
            0.5 * (tails[magnitude] - tails[magnitude + 1])
        };
        let (mut largest, mut total) = (0.0f64, 0.0);
        for cell in -reach..reach {
            total += mass(cell);
            // Largest and least over all shifts, so that a ratio of the two is one of two neighbours.
            let least = (cell..=cell + shift).map(mass).fold(f64::INFINITY, f64::min);
            let most = (cell..=cell + shift).map(mass).fold(0.0, f64::max);
            largest = largest.max((mass(cell) / least).max(most / mass(cell)));
        }
        let largest = largest.ln();
        assert!(largest <= epsilon + 1e-9 && largest > epsilon - 1e-3, "{epsilon}: {largest}");
        assert!((total - 1.0).abs() < (-4.0 * epsilon).exp() + 1e-9, "{epsilon}: {total}");
    }
}

#[test]
fn moments_by_integration() {
    for (epsilon, period) in [(0.5f64, 40u64), (2.0, 64), (6.0, 1000)] {
        let law = Law::new(epsilon, Ratio::at_least(quotient_up(1.0, epsilon)).unwrap(), period);
        // The law is uniform in each cell between whole numbers.
        let (mut absolute, mut square) = (0.0, 0.0);
        for cell in 0..100 * period {
            let x = cell as f64;
            let mass = law.magnitude_tail(x) - law.magnitude_tail(x + 1.0);
            absolute += mass * (x + 0.5);
            square += mass * (x * x + x + 1.0 / 3.0);
        }
        assert!((absolute / law.mean_absolute() - 1.0).abs() < 1e-9, "{epsilon}");
        assert!((square / law.variance() - 1.0).abs() < 1e-9, "{epsilon}");
        assert!((law.magnitude_tail(0.0) - 1.0).abs() < 1e-15);
    }
}

/// Kolmogorov-Smirnov of 100,000 draws, false-alarm rate 1e-9 for each of the four.
#[test]
fn noise_has_the_stated_law() {
    for (seed, sensitivity, epsilon) in [(1, 1.0, 0.1), (2, 3.0, 1.0), (3, 1e-5, 5.0), (4, 1.0, 20.0)] {
        let mechanism = staircase(sensitivity, epsilon);
        let mut rng = SeededRng::new(seed);
        let mut sample: Vec<f64> = (0..100_000).map(|_| draw(&mechanism, 0.0, &mut rng)).collect();
        let distance = ks_distance(&mut sample, |z| mechanism.cdf(z));
        assert!(distance < ks_threshold(100_000, 1e-9), "{epsilon}: {distance}");
    }
}

/// A staircase of four steps of the grid, on values between its points: 50,000 outputs in 21 classes against the mass of
/// the noise that is rounded to each, chi-square (20 degrees of freedom) below its 1 - 1e-9 quantile, 83.5, for each of
/// three values.
#[test]
fn value_and_noise_are_rounded_together() {
    let fine = staircase(1.0, 0.7);
    let law = Law::new(0.7, Ratio::at_least(quotient_up(1.0, 0.7)).unwrap(), 4);
    let (coarse, step) = (Staircase { law, ..fine }, fine.grid().step());
    let mut rng = SeededRng::new(6);
    for fraction in [0.0, 0.3, -0.45] {
        let mut counts = [0.0f64; 21];
        for _ in 0..50_000 {
            let output = draw(&coarse, (7.0 + fraction) * step, &mut rng) / step - 7.0;
            counts[(output.clamp(-10.0, 10.0) + 10.0) as usize] += 1.0;
        }
        let mut statistic = 0.0;
        for (index, found) in counts.into_iter().enumerate() {
            let end = |k: f64| coarse.cdf((k - fraction) * step);
            let below = if index == 0 { 0.0 } else { end(index as f64 - 10.5) };
            let above = if index == 20 { 1.0 } else { end(index as f64 - 9.5) };
            let expected = 50_000.0 * (above - below);
            statistic += (found - expected).powi(2) / expected;
        }
        assert!(statistic < 83.5, "{fraction}: {statistic}");
    }
}

#[test]
fn one_release_is_one_entry_and_what_is_refused_is_none() {
    let mechanism = staircase(1.0, 2.0);
    let (mut log, mut secret) = (EventLog::new(), OsSeeded::new().unwrap());
    mechanism.release(bounded(5.0, 1.0), &mut log, &mut secret).unwrap();
    mechanism.release(bounded(5.0, 0.5), &mut log, &mut secret).unwrap();
    let excessive = 1f64.next_up();
    let refused = mechanism.release(bounded(5.0, excessive), &mut log, &mut secret);
    assert_eq!(refused, Err(Error::SensitivityExceeded { found: excessive, built_for: 1.0 }));
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(mechanism.release(bounded(value, 1.0), &mut log, &mut secret), Err(Error::NonFiniteInput));
    }
    assert_eq!(log.entries(), [(DpEvent::PureDp { epsilon: 2.0 }, 2)]);
    assert!(log.is_private() && log.assumptions().is_empty());
    mechanism.release(bounded(5.0, 1.0), &mut log, &mut SeededRng::new(1)).unwrap();
    assert!(!log.is_private());
}

#[test]
fn every_output_is_finite_and_on_the_grid() {
    for (sensitivity, epsilon) in [(1.0, 1.0), (0.3, 1e-9), (1e-200, 25.0), (1e280, 0.1)] {
        let mechanism = staircase(sensitivity, epsilon);
        let mut rng = SeededRng::new(3);
        for i in 0..2_000 {
            let values = [0.0, -0.0, sensitivity / 3.0, -7.1 * sensitivity, f64::MAX, -f64::MAX, 5e-324, 1e30];
            let output = draw(&mechanism, values[i % values.len()], &mut rng);
            assert!(output.is_finite() && output % mechanism.grid().step() == 0.0, "{output:e}");
        }
    }
}

/// 64 releases: no two are equal, and the standard deviation is within 5 standard errors of the stated one.
#[test]
fn noise_is_there_and_has_the_stated_size() {
    let mechanism = staircase(1.0, 0.5);
    let mut rng = SeededRng::new(4);
    let noise: Vec<f64> = (0..64).map(|_| draw(&mechanism, 0.0, &mut rng)).collect();
    assert!((0..64).all(|i| !noise[..i].contains(&noise[i])));
    let squares: Vec<f64> = noise.iter().map(|z| z * z / mechanism.variance()).collect();
    let mean = squares.iter().sum::<f64>() / 64.0;
    let variance = squares.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 63.0;
    assert!((mean - 1.0).abs() < 5.0 * (variance / 64.0).sqrt(), "{mean}");
}

/// The same seed on inputs a whole number of steps apart gives outputs as far apart: value and noise are added exactly.
#[test]
fn shifts_by_steps_shift_the_output() {
    let mechanism = staircase(1.0, 1.0);
    let step = mechanism.grid().step();
    for seed in 0..200 {
        let at = |value| draw(&mechanism, value, &mut SeededRng::new(seed));
        for shift in [1.0, -12_345.0, 2f64.powi(40)] {
            assert_eq!(at(0.25 * step + shift * step) - at(0.25 * step), shift * step);
        }
    }
}

#[test]
fn refused_parameters() {
    let unit = L1Sensitivity::<ReplaceOne>::new(1.0).unwrap();
    for value in [30f64.next_up(), 1e3, 1e300] {
        let refused = Staircase::new(unit, Epsilon::new(value).unwrap());
        assert_eq!(refused, Err(Error::OutOfRange { name: "epsilon", value, range: "(0, 30]" }));
    }
    assert!(Staircase::new(unit, Epsilon::new(30.0).unwrap()).is_ok());
    assert!(Staircase::new(unit, Epsilon::new(2f64.powi(-50)).unwrap()).is_ok());
    let mechanism = staircase(1.0, 1.0);
    assert!(mechanism.with_grid_bits(40).is_ok());
    for bits in [19, 41] {
        assert!(matches!(mechanism.with_grid_bits(bits), Err(Error::OutOfRange { name: "grid bits", .. })));
    }
    let fine = staircase(1.0, 30.0).with_grid_bits(40);
    assert!(matches!(fine, Err(Error::OutOfRange { name: "grid bits", .. })));
    for sensitivity in [1e-300, 1e308] {
        let sensitivity = L1Sensitivity::<ReplaceOne>::new(sensitivity).unwrap();
        let refused = Staircase::new(sensitivity, Epsilon::new(20.0).unwrap());
        assert!(matches!(refused, Err(Error::ScaleOverflow { .. })));
    }
}

#[test]
fn seeded_values_are_stable() {
    let mechanism = staircase(1.0, 1.0);
    let mut rng = SeededRng::new(42);
    assert_eq!([0.0, 1.0, -2.0].map(|value| draw(&mechanism, value, &mut rng)), STABLE);
}

/// Changing these changes values: note it in the changelog.
const STABLE: [f64; 3] = [0.7526937550865114, 1.3884488544426858, 0.5831392705440521];
