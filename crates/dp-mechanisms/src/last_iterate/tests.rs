use super::*;
use crate::rng::{OsSeeded, SeededRng};
use crate::testing::{ks_distance, ks_threshold};
use dp_accountant::{AddRemoveOne, ReplaceOne, ZeroOut, zcdp};
use num_bigint::BigInt;
use proptest::prelude::*;

fn alike(count: u64, sensitivity: f64, contraction: f64, std_dev: f64) -> Iterates {
    Iterates { count, sensitivity, contraction, deviation: 0.0, std_dev }
}

fn mu(stages: &[Iterates], passes: u64) -> f64 {
    let mechanism = LastIterate::<ReplaceOne>::new(1, stages.to_vec(), passes).unwrap();
    (2.0 * zcdp::rho(&mechanism.event()).unwrap()).sqrt()
}

fn expanded(stages: &[Iterates], passes: u64) -> Vec<Iterates> {
    let pass: Vec<Iterates> = stages.iter().flat_map(|stage| vec![*stage; stage.count as usize]).collect();
    pass.repeat(passes as usize)
}

/// Returns the formula as written, for a record in one step.
fn formula(stages: &[Iterates]) -> f64 {
    let steps = expanded(stages, 1);
    let mut worst: f64 = 0.0;
    for t in 0..steps.len() {
        let (mut product, mut denominator) = (1.0, 0.0);
        for (i, step) in steps.iter().enumerate().skip(t) {
            if i > t {
                product *= step.contraction * step.contraction;
            }
            denominator += step.std_dev * step.std_dev / product;
        }
        worst = worst.max(steps[t].sensitivity / denominator.sqrt());
    }
    worst
}

/// Returns the exact trade-off of affine maps that attain contractions and sensitivities, for a record at place `t` of each pass:
/// both last iterates are Gaussian.
fn of_affine_maps(stages: &[Iterates], passes: u64, t: usize) -> f64 {
    let steps = expanded(stages, passes);
    let places = steps.len() / passes as usize;
    let (mut shift, mut variance) = (0.0, 0.0);
    for (i, step) in steps.iter().enumerate() {
        shift *= step.contraction;
        variance = variance * step.contraction * step.contraction + step.std_dev * step.std_dev;
        if i % places == t {
            shift += step.sensitivity;
        }
    }
    shift / variance.sqrt()
}

fn stages(contractions: bool) -> impl Strategy<Value = Vec<Iterates>> {
    let contraction = if contractions { (0.3f64..1.0).boxed() } else { Just(1.0).boxed() };
    let stage = (1u64..5, 0.1f64..3.0, contraction, 0.2f64..2.0);
    prop::collection::vec(stage.prop_map(|(count, s, c, sigma)| alike(count, s, c, sigma)), 1..6)
}

proptest! {
    #[test]
    fn one_pass_costs_what_the_formula_says(stages in prop_oneof![stages(false), stages(true)]) {
        let (found, expected) = (mu(&stages, 1), formula(&stages));
        prop_assert!(found >= expected && found <= expected * (1.0 + 1e-7), "{found} {expected}");
    }

    #[test]
    fn affine_maps_cost_no_more(stages in prop_oneof![stages(false), stages(true)], passes in 1u64..5) {
        let claimed = mu(&stages, passes);
        for t in 0..expanded(&stages, 1).len() {
            let exact = of_affine_maps(&stages, passes, t);
            prop_assert!(exact <= claimed, "place {t}: {exact} beyond {claimed}");
        }
    }

    /// A different division into stages changes nothing.
    #[test]
    fn stages_are_a_notation(stages in stages(true), passes in 1u64..4) {
        let whole = mu(&stages, passes);
        let single: Vec<Iterates> = expanded(&stages, 1).iter().map(|step| Iterates { count: 1, ..*step }).collect();
        prop_assert!((mu(&single, passes) / whole - 1.0).abs() < 1e-7);
    }

    #[test]
    fn more_passes_cost_more_and_at_most_their_sum(stages in prop_oneof![stages(false), stages(true)], passes in 2u64..6) {
        let (one, fewer, all) = (mu(&stages, 1), mu(&stages, passes - 1), mu(&stages, passes));
        prop_assert!(fewer <= all && all <= one * (passes as f64).sqrt() * (1.0 + 1e-7));
    }
}

/// Returns `x 2^1074`, a whole number.
fn whole(x: f64) -> BigInt {
    let bits = x.to_bits();
    let (biased, fraction) = (bits >> 52, bits & ((1 << 52) - 1));
    if biased == 0 { BigInt::from(fraction) } else { BigInt::from(fraction | (1 << 52)) << (biased - 1) }
}

/// Steps of integers that halve the earlier shifts, or keep them.
fn whole_stages() -> impl Strategy<Value = Vec<Iterates>> {
    let stage = (1u64..5, 1u32..1 << 20, prop_oneof![Just(1.0), Just(0.5)], 1u32..1 << 20);
    prop::collection::vec(stage.prop_map(|(count, s, c, sigma)| alike(count, s.into(), c, sigma.into())), 1..5)
}

/// Returns `√(s² / v)` of one entry of an event, as two integers, of each of its steps with all noise from there on.
fn costs(event: &DpEvent) -> Vec<(BigInt, BigInt)> {
    let DpEvent::AmplifiedByIteration { sensitivities, std_devs, contraction: 1.0 } = event else { unreachable!() };
    let mut noise = BigInt::ZERO;
    let mut costs = Vec::new();
    for (sensitivity, std_dev) in sensitivities.iter().zip(std_devs).rev() {
        noise += whole(*std_dev).pow(2);
        costs.push((whole(*sensitivity).pow(2), noise.clone()));
    }
    costs
}

proptest! {
    /// Events are not too small by even one unit in the last place: they cost at least the formulas, in exact arithmetic.
    #[test]
    fn events_are_rounded_upwards(stages in whole_stages()) {
        let of = |passes| event::of_passes(&stages.iter().map(|stage| (*stage, 0.0)).collect::<Vec<_>>(), 1, passes);
        let steps = expanded(&stages, 1);
        let square = |x: f64| BigInt::from(x as u64).pow(2);
        let halves = |step: &Iterates| u32::from(step.contraction == 0.5);
        // Costs from each step to the end.
        let last = costs(&of(1));
        for t in 0..steps.len() {
            let mut after: u32 = steps[t + 1..].iter().map(halves).sum();
            let shift = square(steps[t].sensitivity);
            let mut noise = square(steps[t].std_dev);
            let all = after;
            for step in &steps[t + 1..] {
                after -= halves(step);
                noise += square(step.std_dev) << (2 * (all - after));
            }
            prop_assert!(last.iter().any(|(s, v)| s * &noise >= &shift * v), "step {t}");
        }
        // Costs from each step to the one before it in the next pass.
        let DpEvent::Composed { events } = of(2) else { unreachable!() };
        prop_assert_eq!(costs(&events[1]), last);
        let turn = costs(&events[0]);
        let mut worst = 0.0f64;
        for t in 0..steps.len() {
            let (mut noise, mut before) = (BigInt::ZERO, 0);
            for i in t..t + steps.len() {
                let step = &steps[i % steps.len()];
                before += if i > t { halves(step) } else { 0 };
                noise += square(step.std_dev) << (2 * before);
            }
            let shift = square(steps[t].sensitivity);
            prop_assert!(&turn[0].0 * &noise >= &shift * &turn[0].1, "step {t}");
            worst = worst.max(steps[t].sensitivity / noise.to_string().parse::<f64>().unwrap().sqrt());
        }
        let DpEvent::AmplifiedByIteration { sensitivities, std_devs, .. } = &events[0] else { unreachable!() };
        prop_assert!(sensitivities[0] / std_devs[0] <= worst * (1.0 + 1e-9));
    }
}

/// Runs that are rounded away from each other before every update, and do nothing else.
#[test]
fn rounding_to_a_grid_costs_what_it_moves() {
    for (steps, passes, grid, dim, deviation) in
        [(1u64, 1u64, 0.5, 16, 0.0), (5, 1, 0.01, 400, 0.0), (5, 1, 0.01, 400, 0.25), (4, 3, 0.01, 400, 0.25)]
    {
        let stage = Iterates { deviation, ..alike(steps, 1.0, 1.0, 2.0) };
        let each = deviation + grid * (dim as f64).sqrt();
        let event = event::of_passes(&[(stage, grid)], dim, passes);
        let claimed = (2.0 * zcdp::rho(&event).unwrap()).sqrt();
        let updates = (steps * passes) as f64;
        let exact = (passes as f64 + (updates - 1.0) * each) / (2.0 * updates.sqrt());
        assert!(claimed >= exact, "{steps} {passes}: {claimed} {exact}");
        if passes == 1 {
            // The cost of the last step is `s / σ + E`.
            let formula = (1.0 + updates.sqrt() * each) / 2.0;
            assert!((claimed / formula - 1.0).abs() < 1e-9, "{claimed} {formula}");
        }
    }
    // Rounded upwards: `s + E σ` with `E = g √d / σ = 1`, and `s + √2 E σ` of a turn.
    let DpEvent::Composed { events } = event::of_passes(&[(alike(1, 1.0, 1.0, 2.0), 0.5)], 16, 2) else {
        unreachable!()
    };
    let of = |event: &DpEvent| match event {
        DpEvent::AmplifiedByIteration { sensitivities, std_devs, .. } => (sensitivities[0], std_devs[0]),
        _ => unreachable!(),
    };
    let ((turn, noise), (last, _)) = (of(&events[0]), of(&events[1]));
    assert!((3.0..3.0 + 1e-13).contains(&last), "{last}");
    let added = whole(turn) - whole(1.0);
    assert!(added.pow(2) >= whole(noise).pow(2) * 2 && turn < 1.0 + 8f64.sqrt() + 1e-13, "{turn}");
}

/// A record at the last step of a pass attains it, because the effect of earlier passes decays at the rate of the noise.
#[test]
fn passes_of_equal_steps_cost_next_to_nothing() {
    for (steps, passes) in [(1u64, 5u64), (10, 3), (1000, 20)] {
        let expected = 0.3 / 0.7 * (1.0 + (passes - 1) as f64 / steps as f64).sqrt();
        let found = mu(&[alike(steps, 0.3, 1.0, 0.7)], passes);
        assert!((found / expected - 1.0).abs() < 1e-6, "{steps} {passes}: {found} {expected}");
    }
}

/// `(a + b)² = a² + b²` fails by `2ab`: rounding adds to the root of the cost.
#[test]
fn deviations_add_to_mu() {
    let stage = |deviation| Iterates { deviation, ..alike(9, 0.3, 1.0, 0.5) };
    let (exact, rounded) = (mu(&[stage(0.0)], 1), mu(&[stage(0.01)], 1));
    assert!((rounded - exact - 3.0 * 0.01 / 0.5).abs() < 1e-6, "{rounded} {exact}");
    // Rounding to the grid of an earlier step with far more noise does not decay.
    let far = [alike(1, 1e-9, 1.0, 1e11), alike(1, 1e-9, 1.0, 1.0)];
    assert!(mu(&far, 1) > 0.4 && mu(&far[1..], 1) < 1e-8);
}

#[test]
fn long_lists_are_shortened_upwards() {
    let slopes: Vec<Iterates> = (1..5000).map(|t| alike(1, 1.0 / f64::from(t), 1.0, 1.0)).collect();
    let mechanism = LastIterate::<ReplaceOne>::new(1, slopes.clone(), 1).unwrap();
    let DpEvent::AmplifiedByIteration { sensitivities, .. } = mechanism.event() else { unreachable!() };
    assert!(sensitivities.len() < 3000 && sensitivities.len() > 1000, "{}", sensitivities.len());
    let (found, expected) = (mu(&slopes, 1), formula(&slopes));
    assert!(found >= expected && found <= 1.0011 * expected, "{found} {expected}");
}

#[test]
fn extreme_numbers_stay_sound() {
    // A step that contracts to zero, and noise at the ends of the range.
    assert!((mu(&[alike(3, 1.0, 1.0, 1.0), alike(1, 0.5, 0.0, 1.0)], 1) - 0.5).abs() < 1e-6);
    assert!((mu(&[alike(3, 1e200, 0.5, 1e200)], 2) / mu(&[alike(3, 1.0, 0.5, 1.0)], 2) - 1.0).abs() < 1e-9);
    let refused = |stages: Vec<Iterates>, passes| LastIterate::<ReplaceOne>::new(2, stages, passes).is_err();
    let good = alike(1, 1.0, 1.0, 1.0);
    assert!(refused(vec![], 1) && refused(vec![good], 0) && refused(vec![Iterates { count: 0, ..good }], 1));
    assert!(refused(vec![Iterates { count: u64::MAX, ..good }; 2], 1));
    assert!(refused(vec![Iterates { count: 1 << 30, ..good }], 2));
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        assert!(refused(vec![Iterates { sensitivity: bad, ..good }], 1));
        assert!(refused(vec![Iterates { contraction: bad, ..good }], 1));
        assert!(refused(vec![Iterates { deviation: bad, ..good }], 1));
        assert!(refused(vec![Iterates { std_dev: bad, ..good }], 1));
    }
    assert!(refused(vec![Iterates { contraction: 1.1, ..good }], 1));
    assert!(LastIterate::<ReplaceOne>::new(0, vec![good], 1).is_err());
    // Adding a record would move every later record to another update.
    assert!(LastIterate::<AddRemoveOne>::new(2, vec![good], 1).is_err());
    assert!(LastIterate::<ZeroOut>::new(2, vec![good], 1).is_ok());
}

fn run<R: ReleaseRng>(mechanism: &LastIterate<ReplaceOne>, rng: &mut R) -> (EventLog<ReplaceOne>, Vec<f64>) {
    let mut log = EventLog::new();
    let mut w = vec![0.0; mechanism.dim() as usize];
    let mut session = mechanism.start(&mut log, rng).unwrap();
    while session.iterates_left() > 1 {
        let sensitivity = session.sensitivity();
        session.step(Bounded::with_proven_sensitivity(&mut w[..], sensitivity), rng).unwrap();
    }
    let sensitivity = session.sensitivity();
    let released = session.release(Bounded::with_proven_sensitivity(w, sensitivity), &mut log, rng).unwrap();
    (log, released.into_inner())
}

/// With identity updates the last iterate has the sum of all variances. Kolmogorov-Smirnov, false-alarm rate 1e-9 for each of the
/// two modes.
#[test]
fn all_of_the_noise_arrives() {
    let pass = vec![alike(3, 1.0, 1.0, 0.5), alike(1, 1.0, 1.0, 2.0)];
    let mechanism = LastIterate::<ReplaceOne>::new(100_000, pass, 2).unwrap();
    let std_dev = (6.0 * 0.25 + 2.0 * 4.0f64).sqrt();
    for mode in [NoiseMode::Exact, NoiseMode::Rounded] {
        let mechanism = mechanism.clone().with_noise_mode(mode).unwrap();
        let (log, mut noise) = run(&mechanism, &mut SeededRng::new(11));
        let distance =
            ks_distance(&mut noise, |x| 0.5 * statrs::function::erf::erfc(-x / std_dev / core::f64::consts::SQRT_2));
        assert!(distance < ks_threshold(noise.len(), 1e-9), "{mode:?}: {distance}");
        assert_eq!(log.entries(), &[(mechanism.event(), 1)]);
        assert!(!log.is_private());
        assert_eq!(log.assumptions().contains(&Assumption::IdealisedFloat), mode == NoiseMode::Rounded);
    }
    assert!(mechanism.with_noise_mode(NoiseMode::None).is_err());
}

#[test]
fn only_the_last_iterate_is_released() {
    let mechanism = LastIterate::<ReplaceOne>::new(2, vec![alike(2, 1.0, 1.0, 1.0)], 1).unwrap();
    let mut rng = OsSeeded::new().unwrap();
    let (mut log, mut other) = (EventLog::new(), EventLog::new());
    let whole = || L2Sensitivity::new(1.0).unwrap();

    let early = mechanism.start(&mut log, &mut rng).unwrap();
    let refused = early.release(Bounded::with_proven_sensitivity(vec![0.0; 2], whole()), &mut log, &mut rng);
    assert_eq!(refused.unwrap_err(), Error::IteratesLeft { left: 2 });

    let mut session = mechanism.start(&mut log, &mut rng).unwrap();
    let mut step = |w: &mut [f64], sensitivity: f64| {
        let sensitivity = L2Sensitivity::new(sensitivity).unwrap();
        session.step(Bounded::with_proven_sensitivity(w, sensitivity), &mut rng)
    };
    assert!(matches!(step(&mut [0.0; 2], 1.1), Err(Error::SensitivityExceeded { .. })));
    assert!(matches!(step(&mut [0.0; 3], 1.0), Err(Error::DimensionMismatch { .. })));
    assert!(matches!(step(&mut [f64::NAN; 2], 1.0), Err(Error::NonFiniteInput)));
    assert_eq!(step(&mut [0.0; 2], 1.0), Ok(()));
    assert!(matches!(step(&mut [0.0; 2], 1.0), Err(Error::SessionOver { .. })));
    let refused = session.release(Bounded::with_proven_sensitivity(vec![0.0; 2], whole()), &mut other, &mut rng);
    assert_eq!(refused.unwrap_err(), Error::OtherLog);
    // Both starts were paid for, whatever their results.
    assert_eq!(log.entries(), &[(mechanism.event(), 2)]);
    assert!(log.is_private() && other.entries().is_empty());
}

/// The assumptions of every iterate are added to the log, once.
#[test]
fn what_a_step_assumes_is_logged() {
    let mechanism = LastIterate::<ReplaceOne>::new(1, vec![alike(4, 1.0, 1.0, 1.0)], 1).unwrap();
    let mut rng = OsSeeded::new().unwrap();
    let mut log = EventLog::new();
    let mut session = mechanism.start(&mut log, &mut rng).unwrap();
    let (mut w, sensitivity) = (vec![0.0f64], session.sensitivity());
    for assumptions in [&[Assumption::FloatSum][..], &[], &[Assumption::FloatSum, Assumption::MonotonicScores]] {
        let iterate = Bounded::with_proven_sensitivity(&mut w[..], sensitivity);
        let iterate = assumptions.iter().fold(iterate, |iterate, assumption| iterate.assuming(assumption.clone()));
        session.step(iterate, &mut rng).unwrap();
    }
    assert_eq!(session.mechanism.last_grid(), session.stage.grid);
    session.release(Bounded::with_proven_sensitivity(w, sensitivity), &mut log, &mut rng).unwrap();
    assert_eq!(log.assumptions(), [Assumption::FloatSum, Assumption::MonotonicScores]);
}

/// One reproducible draw in between is enough to lose the guarantee.
#[test]
fn a_reproducible_step_marks_the_log() {
    let mechanism = LastIterate::<ReplaceOne>::new(1, vec![alike(2, 1.0, 1.0, 1.0)], 1).unwrap();
    let mut secret = OsSeeded::new().unwrap();
    let mut log = EventLog::new();
    let mut session = mechanism.start(&mut log, &mut secret).unwrap();
    let (mut w, sensitivity) = (vec![0.0f64], session.sensitivity());
    session.step(Bounded::with_proven_sensitivity(&mut w[..], sensitivity), &mut SeededRng::new(3)).unwrap();
    session.release(Bounded::with_proven_sensitivity(w, sensitivity), &mut log, &mut secret).unwrap();
    assert!(!log.is_private());
}
