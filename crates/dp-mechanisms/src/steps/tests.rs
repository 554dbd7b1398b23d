use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use rand::Rng;

use super::*;
use crate::rng::{OsSeeded, SeededRng, Stuck};
use crate::testing::{ks_distance, ks_threshold};

fn unit<A: Adjacency>() -> L2Sensitivity<A> {
    L2Sensitivity::new(1.0).unwrap()
}

fn gaussian<A: Adjacency>(mode: NoiseMode) -> StepNoise<A> {
    Gaussian::from_std_dev(unit(), 2.0).unwrap().with_noise_mode(mode).unwrap().into()
}

fn ball<A: Adjacency>(dim: u64, mode: NoiseMode) -> StepNoise<A> {
    LaplaceBall::from_scale(unit(), 2.0, dim).unwrap().with_noise_mode(mode).unwrap().into()
}

fn rate(value: f64) -> SamplingRate {
    SamplingRate::new(value).unwrap()
}

const PLAN: StepPlan = StepPlan::DisjointBatches { passes: 3, steps_per_pass: 4 };

#[test]
fn each_plan_has_its_event() {
    let step = || DpEvent::PureDp { epsilon: 1.0 };
    let times = |event: DpEvent, count| DpEvent::SelfComposed { event: Box::new(event), count };
    let disjoint = |passes, steps_per_pass| StepPlan::DisjointBatches { passes, steps_per_pass };
    let poisson = DpEvent::PoissonSampled { sampling_rate: 0.1, event: Box::new(step()) };
    let without = DpEvent::SampledWithoutReplacement { sampling_rate: 0.1, event: Box::new(step()) };
    for (plan, steps, event) in [
        (disjoint(3, 4), 12, times(step(), 3)),
        (disjoint(1, 4), 4, step()),
        (disjoint(0, 4), 0, DpEvent::NoOp),
        (disjoint(4, 0), 0, DpEvent::NoOp),
        (disjoint(u64::MAX, 2), u64::MAX, times(step(), u64::MAX)),
        (StepPlan::PoissonSampled { sampling_rate: rate(0.1), steps: 7 }, 7, times(poisson.clone(), 7)),
        (StepPlan::PoissonSampled { sampling_rate: rate(0.1), steps: 1 }, 1, poisson),
        (StepPlan::SampledWithoutReplacement { sampling_rate: rate(0.1), steps: 7 }, 7, times(without, 7)),
        (StepPlan::AllRecords { steps: 5 }, 5, times(step(), 5)),
        (StepPlan::AllRecords { steps: 0 }, 0, DpEvent::NoOp),
    ] {
        assert_eq!((plan.steps(), plan.event(step())), (steps, event), "{plan:?}");
    }
}

/// Under a relation that replaces a record, Gaussian noise has its own event, and no other noise is accepted.
#[test]
fn a_replaced_record_of_a_sample_has_its_own_event() {
    let plan = StepPlan::PoissonSampledReplacement { sampling_rate: rate(0.1), radius: 0.5, steps: 7 };
    let step = DpEvent::PoissonSampledReplacement { sampling_rate: 0.1, std_dev: 2.0, distance: 1.0, radius: 0.5 };
    let event = plan.event(gaussian::<ReplaceOne>(NoiseMode::Exact).event());
    assert_eq!((plan.steps(), event), (7, DpEvent::SelfComposed { event: Box::new(step), count: 7 }));
    let (mut log, mut rng) = (EventLog::<ReplaceOne>::new(), OsSeeded::new().unwrap());
    let mut steps = NoisySteps::start(gaussian(NoiseMode::Exact), plan, &mut log, &mut rng).unwrap();
    let noisy = steps.noisy(Bounded::with_proven_sensitivity(vec![0.0f64; 3], unit()), &mut rng).unwrap();
    assert!(noisy.len() == 3 && noisy.iter().any(|&coordinate| coordinate != 0.0) && steps.steps_left() == 6);
    let too_much = Bounded::with_proven_sensitivity(vec![0.0f64; 3], L2Sensitivity::new(1.5).unwrap());
    assert!(matches!(steps.noisy(too_much, &mut rng), Err(Error::SensitivityExceeded { .. })));
    let refused = NoisySteps::start(ball(3, NoiseMode::Exact), plan, &mut log, &mut rng);
    assert!(matches!(refused, Err(Error::Accountant(dp_accountant::Error::NotUnderRelation { .. }))));
    let (mut log, mut rng) = (EventLog::<ZeroOut>::new(), OsSeeded::new().unwrap());
    let refused = NoisySteps::start(gaussian(NoiseMode::Exact), plan, &mut log, &mut rng);
    assert!(matches!(refused, Err(Error::Accountant(dp_accountant::Error::NotUnderRelation { .. }))));
}

#[test]
fn the_cost_is_logged_once_at_the_start() {
    let (mut log, mut rng) = (EventLog::<ReplaceOne>::new(), OsSeeded::new().unwrap());
    let noise = gaussian(NoiseMode::Exact);
    let mut steps = NoisySteps::start(noise, PLAN, &mut log, &mut rng).unwrap();
    let expected = [(PLAN.event(noise.event()), 1)];
    assert_eq!(log.entries(), expected);
    let mut sum = [0.0f64; 3];
    for left in (0..12).rev() {
        steps.add(Bounded::with_proven_sensitivity(&mut sum[..], unit()), &mut rng).unwrap();
        assert_eq!(steps.steps_left(), left);
    }
    let over = steps.add(Bounded::with_proven_sensitivity(&mut sum[..], unit()), &mut rng);
    assert_eq!(over, Err(Error::SessionOver { what: "steps", most: 12 }));
    assert_eq!(steps.finish(sum, &mut log).unwrap().into_inner(), sum);
    assert_eq!(log.entries(), expected);
    assert!(log.is_private() && log.assumptions().is_empty());
}

#[test]
fn what_is_refused_is_left_alone() {
    let (mut log, mut rng) = (EventLog::<ReplaceOne>::new(), OsSeeded::new().unwrap());
    let mut steps = NoisySteps::start(ball(2, NoiseMode::Exact), PLAN, &mut log, &mut rng).unwrap();
    let add = |steps: &mut NoisySteps<ReplaceOne>, sum: &mut [f64], sensitivity: f64| {
        let sensitivity = L2Sensitivity::new(sensitivity).unwrap();
        steps.add(Bounded::with_proven_sensitivity(sum, sensitivity), &mut OsSeeded::new().unwrap())
    };
    let exceeded = Error::SensitivityExceeded { found: 1.5, built_for: 1.0 };
    let mismatch = Error::DimensionMismatch { expected: 2, found: 3 };
    assert_eq!(add(&mut steps, &mut [1.0; 2], 1.5), Err(exceeded));
    assert_eq!(add(&mut steps, &mut [1.0; 3], 1.0), Err(mismatch));
    assert_eq!(add(&mut steps, &mut [], 1.0), Err(Error::Dimension { dimension: 0 }));
    for bad in [f64::NAN, f64::INFINITY] {
        let mut sum = [1.0, bad];
        assert_eq!(add(&mut steps, &mut sum, 1.0), Err(Error::NonFiniteInput));
        assert_eq!(sum[0], 1.0);
    }
    let mut sum = [1.0f64; 2];
    let stuck = steps.add(Bounded::with_proven_sensitivity(&mut sum[..], unit()), &mut Stuck(5));
    assert_eq!(stuck, Err(Error::StuckGenerator));
    assert_eq!((sum, steps.steps_left()), ([1.0; 2], 12));
    // Noise that the float type would turn into zeros or infinities.
    let tiny = Gaussian::from_std_dev(unit::<ReplaceOne>(), 1e-60).unwrap();
    let mut tiny = NoisySteps::start(tiny.into(), PLAN, &mut log, &mut rng).unwrap();
    let refused = tiny.add(Bounded::with_proven_sensitivity(&mut [1.0f32][..], unit()), &mut rng);
    assert_eq!(refused, Err(Error::ScaleOverflow { scale: 1e-60 }));
}

#[test]
fn plans_are_refused_where_their_theorem_does_not_hold() {
    fn start<A: Adjacency>(plan: StepPlan) -> Result<(), Error> {
        let mut log = EventLog::<A>::new();
        let started = NoisySteps::start(gaussian(NoiseMode::Exact), plan, &mut log, &mut OsSeeded::new().unwrap());
        assert_eq!(started.is_ok(), log.entries().len() == 1);
        started.map(|_| ())
    }
    let poisson = StepPlan::PoissonSampled { sampling_rate: rate(0.1), steps: 7 };
    let without = StepPlan::SampledWithoutReplacement { sampling_rate: rate(0.1), steps: 7 };
    assert!(start::<ZeroOut>(poisson).is_ok() && start::<ReplaceOne>(without).is_ok());
    let refused = |result: Result<(), Error>, relation| match result {
        Err(Error::Accountant(dp_accountant::Error::NotUnderRelation { found, .. })) => assert_eq!(found, relation),
        other => panic!("{other:?}"),
    };
    refused(start::<ReplaceOne>(poisson), AdjacencyKind::ReplaceOne);
    refused(start::<ZeroOut>(without), AdjacencyKind::ZeroOut);
    let mut log = EventLog::<ReplaceOne>::new();
    let stuck = NoisySteps::start(gaussian(NoiseMode::Exact), PLAN, &mut log, &mut Stuck(7));
    assert!(matches!(stuck, Err(Error::StuckGenerator)) && log.entries().is_empty());
}

#[test]
fn trust_reaches_the_log() {
    let mut log = EventLog::<ReplaceOne>::new();
    let mut rng = OsSeeded::new().unwrap();
    let mut steps = NoisySteps::start(gaussian(NoiseMode::Rounded), PLAN, &mut log, &mut rng).unwrap();
    assert_eq!(log.assumptions(), [Assumption::IdealisedFloat]);
    for _ in 0..2 {
        let sum = &mut [0.0f64; 2][..];
        steps.add(Bounded::with_proven_sensitivity(sum, unit()).assuming(Assumption::FloatSum), &mut rng).unwrap();
    }
    let mut other = log.clone();
    assert!(matches!(
        NoisySteps::start(gaussian(NoiseMode::Exact), PLAN, &mut log, &mut rng).unwrap().finish((), &mut other),
        Err(Error::OtherLog)
    ));
    steps.finish((), &mut log).unwrap();
    assert_eq!(log.assumptions(), [Assumption::IdealisedFloat, Assumption::FloatSum]);
    assert!(log.is_private());
}

#[test]
fn a_seeded_generator_marks_the_log_wherever_it_is_used() {
    for (seeded_start, seeded_step) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut log = EventLog::<ReplaceOne>::new();
        let noise = gaussian(NoiseMode::Exact);
        let mut steps = if seeded_start {
            NoisySteps::start(noise, PLAN, &mut log, &mut SeededRng::new(1)).unwrap()
        } else {
            NoisySteps::start(noise, PLAN, &mut log, &mut OsSeeded::new().unwrap()).unwrap()
        };
        let sum = &mut [0.0f64; 2][..];
        let sum = Bounded::with_proven_sensitivity(sum, unit());
        if seeded_step {
            steps.add(sum, &mut SeededRng::new(1)).unwrap();
        } else {
            steps.add(sum, &mut OsSeeded::new().unwrap()).unwrap();
        }
        steps.finish((), &mut log).unwrap();
        assert_eq!(log.is_private(), !seeded_start && !seeded_step);
    }
}

/// The noise of steps is the noise of releases: the same draws, for every length of vector.
#[test]
fn steps_draw_what_releases_draw() {
    use crate::mechanism::Mechanism;
    for mode in [NoiseMode::Exact, NoiseMode::Rounded] {
        for dim in [1usize, 2, 16, 17, 50, 64, 65, 256, 257, 600] {
            let value: Vec<f64> = (0..dim).map(|i| (i as f64).sin()).collect();
            for noise in [gaussian::<ReplaceOne>(mode), ball(dim as u64, mode)] {
                let mut log = EventLog::new();
                let sum = Bounded::with_proven_sensitivity(value.clone(), unit());
                let mut rng = SeededRng::new(dim as u64);
                let released = match &noise {
                    StepNoise::Gaussian(gaussian) => gaussian.release(sum, &mut log, &mut rng).unwrap(),
                    StepNoise::LaplaceBall(ball) => ball.release(sum, &mut log, &mut rng).unwrap(),
                };
                let mut steps = NoisySteps::start(noise, PLAN, &mut log, &mut SeededRng::new(0)).unwrap();
                let mut sum = value.clone();
                let bounded = Bounded::with_proven_sensitivity(&mut sum[..], unit());
                steps.add(bounded, &mut SeededRng::new(dim as u64)).unwrap();
                assert_eq!(&sum, released.get(), "{mode:?} {dim}");
            }
        }
    }
}

/// Kolmogorov-Smirnov at a false-alarm rate of 1e-9 for each law and mode, over many short steps: coordinates of the Gaussian,
/// norms and a coordinate's sign of the ball.
#[test]
fn the_noise_of_many_steps_has_its_law() {
    const STEPS: usize = 60_000;
    const DIM: usize = 5;
    let plan = StepPlan::AllRecords { steps: STEPS as u64 };
    let normal = |x: f64| 0.5 * statrs::function::erf::erfc(-x / core::f64::consts::SQRT_2);
    for (seed, mode) in [NoiseMode::Exact, NoiseMode::Rounded].into_iter().enumerate() {
        let mut rng = SeededRng::new(seed as u64);
        let mut draws = |noise: StepNoise<ReplaceOne>| -> Vec<[f64; DIM]> {
            let mut steps = NoisySteps::start(noise, plan, &mut EventLog::new(), &mut rng).unwrap();
            let draw = |_| {
                let mut sum = [0.25f64; DIM];
                steps.add(Bounded::with_proven_sensitivity(&mut sum[..], unit()), &mut rng).unwrap();
                sum.map(|noisy| noisy - 0.25)
            };
            (0..STEPS).map(draw).collect()
        };
        let mut coordinates: Vec<f64> = draws(gaussian(mode)).into_iter().flatten().map(|z| z / 2.0).collect();
        let distance = ks_distance(&mut coordinates, normal);
        assert!(distance < ks_threshold(STEPS * DIM, 1e-9) + 1e-6, "{mode:?}: {distance}");
        let drawn = draws(ball(DIM as u64, mode));
        let law = LaplaceBall::from_scale(unit::<ReplaceOne>(), 2.0, DIM as u64).unwrap();
        let mut norms: Vec<f64> = drawn.iter().map(|z| z.iter().map(|z| z * z).sum::<f64>().sqrt()).collect();
        let distance = ks_distance(&mut norms, |r| law.norm_cdf(r));
        assert!(distance < ks_threshold(STEPS, 1e-9) + 1e-6, "{mode:?}: {distance}");
        // Hoeffding: P(|share - 1/2| > t) <= 2 exp(-2 n t²).
        for coordinate in 0..DIM {
            let positive = drawn.iter().filter(|z| z[coordinate] > 0.0).count() as f64 / STEPS as f64;
            assert!((positive - 0.5).abs() < ((2.0f64 / 1e-9).ln() / (2.0 * STEPS as f64)).sqrt(), "{positive}");
        }
    }
}

/// A release beside each sum: its cost enters the event of the step, its trust the log, and no step has two.
#[test]
fn each_step_has_one_release_beside_its_sum() {
    use crate::mechanism::Mechanism;
    use crate::scores::Scores;
    use crate::{Exponential, LInfSensitivity};

    let sensitivity = LInfSensitivity::<ZeroOut>::new(1.0).unwrap();
    let choice = Exponential::new(sensitivity, dp_accountant::Epsilon::new(0.5).unwrap()).unwrap();
    let plan = StepPlan::PoissonSampled { sampling_rate: rate(0.1), steps: 3 };
    let (mut log, mut rng) = (EventLog::<ZeroOut>::new(), OsSeeded::new().unwrap());
    let noise = gaussian(NoiseMode::Exact);
    let mut steps = NoisySteps::start_beside(noise, choice.event(), plan, &mut log, &mut rng).unwrap();
    let both = DpEvent::Composed { events: vec![noise.event(), choice.event()] };
    assert_eq!(log.to_event(), plan.event(both));

    fn release<R: ReleaseRng>(
        choice: &Exponential<ZeroOut>,
        log: &mut EventLog<ZeroOut>,
        rng: &mut R,
    ) -> Result<usize, Error> {
        let scores = Bounded::with_proven_sensitivity(Scores::new(vec![0.0, 900.0])?, choice.sensitivity());
        Ok(choice.release(scores.assuming(Assumption::FloatSum), log, rng)?.into_inner())
    }
    let choose = |log: &mut EventLog<ZeroOut>, rng: &mut OsSeeded| release(&choice, log, rng);
    let sum = || Bounded::with_proven_sensitivity(vec![0.0f64; 2], unit());
    let rng = &mut rng;
    let early = steps.beside(rng, choose);
    assert_eq!(early, Err(Error::NotPrepaid { prepaid: 0, found: 1 }));
    for _ in 0..2 {
        steps.noisy(sum(), rng).unwrap();
        assert_eq!(steps.beside(rng, choose), Ok(1));
        assert_eq!(steps.beside(rng, choose), Err(Error::NotPrepaid { prepaid: 0, found: 1 }));
    }
    // Other releases than the one that was paid for.
    steps.noisy(sum(), rng).unwrap();
    let twice = steps.beside(rng, |log, rng| choose(log, rng).and_then(|_| choose(log, rng)));
    assert_eq!(twice, Err(Error::NotPrepaid { prepaid: 1, found: 2 }));
    steps.finish((), &mut log).unwrap();
    assert!(log.is_private() && log.assumptions() == [Assumption::FloatSum]);

    // None, another, and one with a known generator.
    for (which, expected) in [(0, None), (1, None), (2, Some(false))] {
        let (mut log, mut rng) = (EventLog::<ZeroOut>::new(), OsSeeded::new().unwrap());
        let mut steps = NoisySteps::start_beside(noise, choice.event(), plan, &mut log, &mut rng).unwrap();
        steps.noisy(sum(), &mut rng).unwrap();
        let made = steps.beside(&mut rng, |log, rng| match which {
            0 => Ok(7),
            1 => {
                log.record(DpEvent::BoundedRange { epsilon: 0.4 }, 1);
                Ok(7)
            }
            _ => choose(log, rng).and_then(|_| {
                *log = EventLog::new();
                release(&choice, log, &mut SeededRng::new(1))
            }),
        });
        assert_eq!(made.is_ok(), expected.is_some(), "{which}");
        steps.finish((), &mut log).unwrap();
        assert_eq!(log.is_private(), expected.unwrap_or(true));
    }
    // Steps without a release beside their sum allow none.
    let mut steps = NoisySteps::start(noise, plan, &mut log, rng).unwrap();
    steps.noisy(sum(), rng).unwrap();
    assert_eq!(steps.beside(rng, choose), Err(Error::NotPrepaid { prepaid: 0, found: 1 }));
}

/// The noise of a step is the same whether parts of it are drawn ahead or not, for every kind of noise and length, also after sums that
/// were refused; it is not that of a sum of another length. A generator that is not secret is marked although the sum has another.
#[test]
fn noise_that_is_drawn_ahead_is_that_of_the_step() {
    const LONG: usize = 70_000;
    let sum = |value: f64, dim: usize| Bounded::with_proven_sensitivity(vec![value; dim], unit());
    for (noise, dim, begins) in [
        (gaussian(NoiseMode::Exact), LONG, true),
        (gaussian(NoiseMode::Exact), 65_535, false),
        (gaussian(NoiseMode::Rounded), LONG, false),
        (ball(LONG as u64, NoiseMode::Exact), LONG, false),
    ] {
        let noisy = |draws_ahead: bool| {
            let (mut log, mut rng) = (EventLog::<ZeroOut>::new(), SeededRng::new(3));
            let plan = StepPlan::AllRecords { steps: 2 };
            let mut steps = NoisySteps::start(noise, plan, &mut log, &mut rng).unwrap();
            let mut sums = Vec::new();
            for _ in 0..2 {
                if draws_ahead {
                    assert_eq!(steps.draw_ahead(dim, &mut rng), Ok(begins));
                    assert_eq!(steps.draw_some(), begins);
                    // Refused, so that the noise is still to be used.
                    let too_much = Bounded::with_proven_sensitivity(vec![0.0; dim], L2Sensitivity::new(1.5).unwrap());
                    assert!(matches!(steps.noisy(too_much, &mut rng), Err(Error::SensitivityExceeded { .. })));
                    assert_eq!(steps.noisy(sum(f64::NAN, dim), &mut rng), Err(Error::NonFiniteInput));
                    assert_eq!(steps.draw_ahead(dim, &mut rng), Ok(begins));
                    let drawn = core::iter::repeat_with(|| steps.draw_some()).take_while(|&drawn| drawn).count();
                    assert_eq!(drawn, if begins { 17 } else { 0 });
                }
                sums.push(steps.noisy(sum(0.3, dim), &mut rng).unwrap());
            }
            assert_eq!(steps.draw_ahead(dim, &mut rng), Ok(false), "after the last step");
            (sums, rng.next_u64())
        };
        let (sums, word) = noisy(false);
        assert!(sums[0] != sums[1] && (sums, word) == noisy(true), "{noise:?} {dim}");
    }
    // Begun noise is lost to a sum of another length.
    let after = |lengths: &[usize], begin: bool| {
        let (mut log, mut rng) = (EventLog::<ZeroOut>::new(), SeededRng::new(3));
        let plan = StepPlan::AllRecords { steps: 3 };
        let mut steps = NoisySteps::start(gaussian(NoiseMode::Exact), plan, &mut log, &mut rng).unwrap();
        if begin {
            steps.draw_ahead(LONG, &mut SeededRng::new(8)).unwrap();
            assert!(steps.draw_some());
        }
        lengths.iter().map(|&dim| steps.noisy(sum(0.0, dim), &mut rng).unwrap()).collect::<Vec<_>>()
    };
    for lengths in [[3, LONG], [300, LONG], [LONG + 1, LONG]] {
        assert!(after(&lengths, true) == after(&lengths, false), "{lengths:?}");
    }
    assert!(after(&[LONG], true) != after(&[LONG], false));

    let (mut log, mut rng) = (EventLog::<ZeroOut>::new(), OsSeeded::new().unwrap());
    let plan = StepPlan::AllRecords { steps: 1 };
    let mut steps = NoisySteps::start(gaussian(NoiseMode::Exact), plan, &mut log, &mut rng).unwrap();
    assert_eq!(steps.draw_ahead(LONG, &mut Stuck(7)), Err(Error::StuckGenerator));
    steps.draw_ahead(LONG, &mut SeededRng::new(1)).unwrap();
    steps.noisy(sum(0.0, LONG), &mut rng).unwrap();
    steps.finish((), &mut log).unwrap();
    assert!(!log.is_private());
}
