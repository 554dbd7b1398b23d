use super::law::transcript;
use super::*;
use crate::rng::Stuck;
use crate::testing::{Case, check_law, golden_cases, ks_distance, ks_threshold};
use crate::{Bounded, LInf, OsSeeded, SeededRng};
use dp_accountant::{Delta, ReplaceOne, bound};
use proptest::prelude::*;

fn sensitivity(value: f64) -> LInfSensitivity<ReplaceOne> {
    LInfSensitivity::new(value).unwrap()
}

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

fn query(value: f64, bound: f64) -> Bounded<f64, ReplaceOne, LInf> {
    Bounded::with_proven_sensitivity(value, sensitivity(bound))
}

pub(super) fn numbers(value: &serde_json::Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

pub(super) fn check_first_answer(case: &Case, law: &[f64]) {
    let expected = numbers(&case.out["prob_first_above"]);
    assert_eq!(law.len(), expected.len() + 1);
    for (found, expected) in law.iter().zip(expected) {
        case.check_number("prob_first_above", *found, expected);
    }
    case.check("prob_none", law[law.len() - 1]);
}

#[test]
fn golden_laws() {
    for case in golden_cases("mechanisms.json", "sparse_vector") {
        let (eps1, eps2) = (epsilon(case.input("eps1")), epsilon(case.input("eps2")));
        let mechanism = AboveThreshold::from_split(sensitivity(case.input("sensitivity")), eps1, eps2, 1).unwrap();
        let monotonic = case.input["monotonic"].as_bool().unwrap();
        let mechanism = if monotonic { mechanism.monotonic().unwrap() } else { mechanism };
        assert!((mechanism.threshold_scale() / case.input("threshold_scale") - 1.0).abs() < 1e-9);
        assert!((mechanism.query_scale() / case.input("query_scale") - 1.0).abs() < 1e-9);
        let law = mechanism.first_answer(&numbers(&case.input["queries"]), case.input("threshold")).unwrap();
        check_first_answer(&case, &law);
    }
}

#[test]
fn golden_splits() {
    for case in golden_cases("mechanisms.json", "sparse_vector_split") {
        let answers = case.input("c") as u64;
        let mechanism = AboveThreshold::new(sensitivity(1.0), epsilon(case.input("eps")), answers).unwrap();
        let monotonic = case.input["monotonic"].as_bool().unwrap();
        let mechanism = if monotonic { mechanism.monotonic().unwrap() } else { mechanism };
        case.check("eps1", mechanism.threshold_epsilon());
        case.check("eps2", mechanism.query_epsilon());
        case.check("threshold_scale_per_sensitivity", mechanism.threshold_scale());
        case.check("query_scale_per_sensitivity", mechanism.query_scale());
    }
}

/// The split is optimal: any other at the same epsilon has noise of more variance.
#[test]
fn the_split_has_the_least_variance() {
    for answers in [1, 3, 40] {
        for monotonic in [false, true] {
            let variance = |mechanism: AboveThreshold<ReplaceOne>| {
                let mechanism = if monotonic { mechanism.monotonic().unwrap() } else { mechanism };
                2.0 * mechanism.threshold_scale().powi(2) + 2.0 * mechanism.query_scale().powi(2)
            };
            let best = variance(AboveThreshold::new(sensitivity(1.0), epsilon(1.0), answers).unwrap());
            for i in 1..100 {
                let share = f64::from(i) * 0.01;
                let (eps1, eps2) = (epsilon(share), epsilon(1.0 - share));
                let other = AboveThreshold::from_split(sensitivity(1.0), eps1, eps2, answers).unwrap();
                assert!(variance(other) >= best * (1.0 - 1e-9));
            }
        }
    }
}

/// Returns all transcripts of at most `answers` positive answers to `length` queries: each stops with the last of them.
fn transcripts(length: usize, answers: usize) -> Vec<Vec<bool>> {
    let mut all = vec![Vec::new()];
    for _ in 0..length {
        all = all
            .into_iter()
            .flat_map(|transcript: Vec<bool>| {
                if transcript.iter().filter(|&&above| above).count() == answers {
                    return vec![transcript];
                }
                [false, true].map(|above| transcript.iter().copied().chain([above]).collect()).to_vec()
            })
            .collect();
    }
    all
}

/// Returns the largest log ratio of any transcript's probabilities, over streams of `length` queries at these levels (in
/// sensitivities) and all neighbours that move by `moves`.
fn worst_loss(mechanism: &AboveThreshold<ReplaceOne>, length: usize, levels: &[f64], moves: &[f64]) -> f64 {
    let streams = |values: &[f64]| {
        let mut all = vec![Vec::new()];
        for _ in 0..length {
            all = all
                .into_iter()
                .flat_map(|stream: Vec<f64>| values.iter().map(move |&value| [&stream[..], &[value]].concat()))
                .collect();
        }
        all
    };
    let (threshold_noise, query_noise) = (
        NoiseLaw::Laplace { scale: mechanism.threshold_scale() },
        NoiseLaw::Laplace { scale: mechanism.query_scale() },
    );
    let unit = mechanism.sensitivity().get();
    let answers = mechanism.answers() as usize;
    let mut worst = 0.0f64;
    for above in transcripts(length, answers) {
        let probability = |stream: &[f64]| {
            let queries: Vec<f64> = stream[..above.len()].iter().map(|level| level * unit).collect();
            transcript(threshold_noise, query_noise, &queries, 0.0, &above).unwrap().ln()
        };
        for stream in streams(levels) {
            let here = probability(&stream);
            for shift in streams(moves) {
                let there: Vec<f64> = stream.iter().zip(&shift).map(|(level, shift)| level + shift).collect();
                worst = worst.max((here - probability(&there)).abs());
            }
        }
    }
    worst
}

/// Returns the log ratio for the costliest transcript: negative answers far above the threshold, enough of them to push its noise
/// up there, then positive ones at the threshold. Where all tails are exponential the bound is attained.
fn loss_of_the_worst_stream(mechanism: &AboveThreshold<ReplaceOne>, moves: [f64; 2]) -> f64 {
    let answers = mechanism.answers() as usize;
    let negative = 2 * answers + 4;
    let above: Vec<bool> = (0..negative + answers).map(|i| i >= negative).collect();
    let [threshold_noise, query_noise] =
        [mechanism.threshold_scale(), mechanism.query_scale()].map(|scale| NoiseLaw::Laplace { scale });
    let unit = mechanism.sensitivity().get();
    let probability = |[down, up]: [f64; 2]| {
        let level = |&above: &bool| unit * if above { up } else { 60.0 + down };
        let queries: Vec<f64> = above.iter().map(level).collect();
        transcript(threshold_noise, query_noise, &queries, 0.0, &above).unwrap().ln()
    };
    (probability([0.0; 2]) - probability(moves)).abs()
}

/// Over exhaustive neighbours the loss stays within `eps1 + eps2`; the worst stream attains it, and exceeds it if a declaration
/// is violated or one answer too many is given.
#[test]
fn losses_of_all_neighbours() {
    let (eps1, eps2) = (0.2, 1.0);
    let total = eps1 + eps2;
    let build = |answers| AboveThreshold::from_split(sensitivity(0.25), epsilon(eps1), epsilon(eps2), answers).unwrap();
    let (levels, any, up) = ([0.0, 60.0], [-1.0, 0.0, 1.0], [0.0, 1.0]);
    let close_to_total = |loss: f64| loss <= total + 1e-9 && loss > total - 1e-3;
    for answers in [1, 2] {
        let general = build(answers);
        let worst = worst_loss(&general, 3, &levels, &any).max(loss_of_the_worst_stream(&general, [1.0, -1.0]));
        assert!(close_to_total(worst), "{answers}: {worst}");
        let monotonic = general.monotonic().unwrap();
        let worst = worst_loss(&monotonic, 3, &levels, &up).max(loss_of_the_worst_stream(&monotonic, [1.0, 0.0]));
        assert!(close_to_total(worst), "{answers} monotonic: {worst}");
        assert!(loss_of_the_worst_stream(&monotonic, [1.0, -1.0]) > total + 0.9);
    }
    // The noise of one answer is too small for two.
    let one = build(1);
    let two = AboveThreshold { parameters: Parameters { answers: 2, ..one.parameters }, ..one };
    assert!(loss_of_the_worst_stream(&two, [1.0, -1.0]) > total + 0.9);
}

/// On a lattice of few steps, where equal sums are common and everything is a finite sum: `floor(b X)` for noise, `>=` for above.
#[test]
fn losses_on_a_coarse_lattice() {
    for (steps, eps1, eps2) in [(1, 0.3, 0.9), (2, 0.2, 1.0), (3, 0.5, 2.0)] {
        let threshold_noise = RationalScale::for_shift(f64::from(steps), eps1).unwrap().steps();
        let query_noise = RationalScale::for_shift(f64::from(2 * steps), eps2).unwrap().steps();
        let tail = |k: i32, b: f64| {
            // P(floor(b X) >= k) = P(b X >= k)
            let x = f64::from(k) / b;
            if x < 0.0 { 1.0 - 0.5 * x.exp() } else { 0.5 * (-x).exp() }
        };
        let range = (60.0 * threshold_noise) as i32 + 60;
        let law = |queries: &[i32; 3]| -> [f64; 4] {
            let mut law = [0.0; 4];
            for z in -range..=range {
                let mut reached = tail(z, threshold_noise) - tail(z + 1, threshold_noise);
                for (i, query) in queries.iter().enumerate() {
                    let above = tail(z - query, query_noise);
                    law[i] += reached * above;
                    reached *= 1.0 - above;
                }
                law[3] += reached;
            }
            law
        };
        let mut worst = 0.0f64;
        let levels = [-4 * steps, -1, 0, 20 * steps];
        let moves: Vec<i32> = (-steps..=steps).collect();
        for queries in levels.iter().flat_map(|&a| levels.iter().flat_map(move |&b| levels.map(move |c| [a, b, c]))) {
            let first = law(&queries);
            for shift in moves.iter().flat_map(|&a| {
                moves.iter().flat_map({
                    let moves = &moves;
                    move |&b| moves.iter().map(move |&c| [a, b, c])
                })
            }) {
                let second = law(&core::array::from_fn(|i| queries[i] + shift[i]));
                for (p, q) in first.iter().zip(&second) {
                    worst = worst.max((p / q).ln().abs());
                }
            }
        }
        assert!(worst <= eps1 + eps2 + 1e-9 && worst > 0.85 * (eps1 + eps2), "{steps}: {worst}");
    }
}

/// Whole sessions compared with the law of transcripts: fresh noise for each query, one threshold for all, over after the last
/// positive answer. False-alarm rate 1e-9 each.
#[test]
fn sessions_have_the_law() {
    let unit = 0.3;
    for (answers, monotonic) in [(1, false), (2, false), (2, true), (4, true)] {
        let mechanism = AboveThreshold::new(sensitivity(unit), epsilon(3.0), answers).unwrap();
        let mechanism = if monotonic { mechanism.monotonic().unwrap() } else { mechanism };
        let levels = [-1.0, 0.5, 0.0, 2.0];
        let (noise, threshold) = ([mechanism.threshold_scale(), mechanism.query_scale()], 7.0);
        let [threshold_noise, query_noise] = noise.map(|scale| NoiseLaw::Laplace { scale });
        let queries: Vec<f64> = levels.iter().map(|level| threshold + level * unit).collect();
        let outcomes = transcripts(levels.len(), answers as usize);
        let law: Vec<f64> = outcomes
            .iter()
            .map(|above| transcript(threshold_noise, query_noise, &queries[..above.len()], threshold, above).unwrap())
            .collect();
        assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let mut counts = vec![0u64; outcomes.len()];
        let mut rng = SeededRng::new(23);
        for _ in 0..100_000 {
            let mut log = EventLog::new();
            let mut session = mechanism.start(threshold, &mut log, &mut rng).unwrap();
            let mut found = Vec::new();
            for &value in &queries {
                if !session.is_over() {
                    let answer = session.answer(query(value, unit), &mut log, &mut rng).unwrap();
                    found.push(*answer.get() != Answer::Below);
                }
            }
            counts[outcomes.iter().position(|outcome| *outcome == found).unwrap()] += 1;
        }
        check_law(&counts, &law, &format!("{answers} {monotonic}"));
    }
}

/// Given a positive answer, the value's noise is Laplace and independent of the comparison, whose own noise is then large:
/// Kolmogorov-Smirnov, false-alarm rate 1e-9.
#[test]
fn values_have_fresh_noise() {
    let mechanism = AboveThreshold::new(sensitivity(0.5), epsilon(2.0), 2).unwrap().with_values(epsilon(0.8)).unwrap();
    let scale = mechanism.value_scale().unwrap();
    assert!((scale - 2.0 * 0.5 / 0.8).abs() < 1e-12);
    let mut rng = SeededRng::new(29);
    let mut noise = Vec::new();
    while noise.len() < 40_000 {
        let mut log = EventLog::new();
        let mut session = mechanism.start(10.0, &mut log, &mut rng).unwrap();
        // Far below, so that a positive answer is a rare event caused by large noise.
        for _ in 0..4 {
            if session.is_over() {
                break;
            }
            let answer = session.answer(query(9.0, 0.5), &mut log, &mut rng).unwrap();
            if let Answer::Above { value } = answer.get() {
                noise.push((value.unwrap() - 9.0) / scale);
            }
        }
    }
    let cdf = |x: f64| if x < 0.0 { 0.5 * x.exp() } else { 1.0 - 0.5 * (-x).exp() };
    let distance = ks_distance(&mut noise, cdf);
    assert!(distance < ks_threshold(noise.len(), 1e-9), "{distance}");
}

#[test]
fn a_session_ends_with_its_last_positive_answer() {
    let mechanism = AboveThreshold::new(sensitivity(1.0), epsilon(1.0), 2).unwrap();
    let (mut log, mut rng) = (EventLog::new(), OsSeeded::new().unwrap());
    let mut session = mechanism.start(0.0, &mut log, &mut rng).unwrap();
    assert_eq!(log.entries(), [(mechanism.event(), 1)]);
    assert_eq!((session.answers_left(), session.queries_left(), session.is_over()), (2, None, false));
    for value in [-1e9, 1e9, -1e9, 1e9] {
        let answer = session.answer(query(value, 1.0), &mut log, &mut rng).unwrap();
        assert_eq!(*answer.get(), if value > 0.0 { Answer::Above { value: None } } else { Answer::Below });
    }
    assert!(session.is_over());
    for _ in 0..3 {
        assert_eq!(
            session.answer(query(1e9, 1.0), &mut log, &mut rng),
            Err(Error::SessionOver { what: "positive answers", most: 2 })
        );
    }
    // Answers have no further cost, and a secret generator leaves the log private.
    assert_eq!(log.entries(), [(mechanism.event(), 1)]);
    assert!(log.is_private() && log.assumptions().is_empty());
}

#[test]
fn what_is_refused_leaves_the_session_as_it_was() {
    let mechanism = AboveThreshold::new(sensitivity(1.0), epsilon(1.0), 1).unwrap();
    let (mut log, mut rng) = (EventLog::new(), OsSeeded::new().unwrap());
    let mut session = mechanism.start(0.0, &mut log, &mut rng).unwrap();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(session.answer(query(bad, 1.0), &mut log, &mut rng), Err(Error::NonFiniteInput));
    }
    let wide = 1.0 + f64::EPSILON;
    let refused = session.answer(query(0.0, wide), &mut log, &mut rng);
    assert_eq!(refused, Err(Error::SensitivityExceeded { found: wide, built_for: 1.0 }));
    assert_eq!(session.answers_left(), 1);
    assert_eq!(*session.answer(query(-f64::MAX, 1.0), &mut log, &mut rng).unwrap().get(), Answer::Below);
    assert!(session.answer(query(f64::MAX, 0.5), &mut log, &mut rng).is_ok());
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let entries = log.entries().to_vec();
        assert!(matches!(mechanism.start(bad, &mut log, &mut rng), Err(Error::NotFinite { name: "threshold", .. })));
        assert_eq!(log.entries(), entries);
    }
}

#[test]
fn a_stuck_generator_starts_and_answers_nothing() {
    let mechanism = AboveThreshold::new(sensitivity(1.0), epsilon(1.0), 1).unwrap();
    let mut log = EventLog::new();
    for word in [0, u64::MAX, 0x8765_4321_0fed_cba9] {
        assert!(matches!(mechanism.start(0.0, &mut log, &mut Stuck(word)), Err(Error::StuckGenerator)));
        assert!(log.entries().is_empty());
        let mut other = EventLog::new();
        let mut session = mechanism.start(0.0, &mut other, &mut OsSeeded::new().unwrap()).unwrap();
        assert_eq!(session.answer(query(0.0, 1.0), &mut other, &mut Stuck(word)), Err(Error::StuckGenerator));
        assert_eq!(session.answers_left(), 1);
    }
}

/// A mark or an assumption would otherwise be missing from the log that states the cost.
#[test]
fn answers_go_to_the_log_that_paid() {
    let laplace = AboveThreshold::new(sensitivity(1.0), epsilon(1.0), 1).unwrap();
    let gaussian = GaussianAboveThreshold::new(sensitivity(1.0), 8.0, 16.0, 100).unwrap();
    let (mut log, mut rng) = (EventLog::new(), OsSeeded::new().unwrap());
    let mut before = log.clone();
    for mut session in
        [laplace.start(0.0, &mut log, &mut rng).unwrap(), gaussian.start(0.0, &mut log, &mut rng).unwrap()]
    {
        for other in [&mut EventLog::new(), &mut before, &mut log.clone()] {
            let said = other.clone();
            let answer = session.answer(query(1e9, 1.0).assuming(Assumption::FloatSum), other, &mut SeededRng::new(1));
            assert_eq!(answer, Err(Error::OtherLog));
            assert!(*other == said && session.answers_left() == 1);
        }
        let mut moved = std::mem::take(&mut log);
        session.answer(query(1e9, 1.0), &mut moved, &mut rng).unwrap();
        log = moved;
    }
    assert_eq!(log.entries().len(), 2);
}

#[test]
fn what_is_taken_on_trust_is_logged() {
    let mechanism = AboveThreshold::new(sensitivity(1.0), epsilon(1.0), 1).unwrap().monotonic().unwrap();
    let (mut log, mut rng) = (EventLog::new(), OsSeeded::new().unwrap());
    let mut session = mechanism.start(0.0, &mut log, &mut rng).unwrap();
    assert_eq!(log.assumptions(), [Assumption::MonotonicScores]);
    session.answer(query(-1e9, 1.0).assuming(Assumption::FloatSum), &mut log, &mut rng).unwrap();
    assert_eq!(log.assumptions(), [Assumption::MonotonicScores, Assumption::FloatSum]);
    assert!(log.is_private());
    // One answer from a reproducible generator marks the log.
    session.answer(query(-1e9, 1.0), &mut log, &mut SeededRng::new(1)).unwrap();
    assert!(!log.is_private());
    let mut log = EventLog::new();
    mechanism.start(0.0, &mut log, &mut SeededRng::new(1)).unwrap();
    assert!(!log.is_private());
}

#[test]
fn events() {
    let new = |answers| AboveThreshold::new(sensitivity(0.5), epsilon(1.0), answers).unwrap();
    let DpEvent::AboveThresholdLaplace { threshold_scale, query_scale, sensitivity: bound } = new(1).event() else {
        panic!("{:?}", new(1).event());
    };
    assert_eq!(bound, 0.5);
    assert!((threshold_scale / new(1).threshold_scale() - 1.0).abs() < 1e-9);
    assert!((query_scale / new(1).query_scale() - 1.0).abs() < 1e-9);
    let pure = |epsilon| DpEvent::PureDp { epsilon };
    assert_eq!(new(1).monotonic().unwrap().event(), pure(1.0));
    assert_eq!(new(7).event(), pure(1.0));
    assert_eq!(new(7).with_values(epsilon(0.5)).unwrap().event(), pure(1.5));
    let DpEvent::Composed { events } = new(1).with_values(epsilon(0.5)).unwrap().event() else { panic!() };
    assert_eq!(events, [new(1).event(), DpEvent::Laplace { scale: 1.0, sensitivity: 0.5 }]);
    // If the scales are not doubles, the pure guarantee remains.
    let tiny = AboveThreshold::new(sensitivity(1e-307), epsilon(1e9), 1).unwrap();
    assert_eq!(tiny.event(), pure(1e9));
}

/// The number at which many sessions of one answer overtake one session of many, at epsilon = 1 and delta = 1e-6.
#[test]
fn many_answers() {
    let delta = Delta::new(1e-6).unwrap();
    let per_answer = |answers: u64| {
        // The largest epsilon of one session, by bisection.
        let (mut low, mut high) = (1e-3, 1.0);
        for _ in 0..20 {
            let middle = 0.5 * (low + high);
            let event = AboveThreshold::new(sensitivity(1.0), epsilon(middle), 1).unwrap().event();
            let all = DpEvent::SelfComposed { event: Box::new(event), count: answers };
            *(if bound::epsilon(&all, delta).unwrap().value <= 1.0 { &mut low } else { &mut high }) = middle;
        }
        AboveThreshold::new(sensitivity(1.0), epsilon(low), 1).unwrap()
    };
    let ratio = |answers| {
        let together = AboveThreshold::new(sensitivity(1.0), epsilon(1.0), answers).unwrap();
        per_answer(answers).query_scale() / together.query_scale()
    };
    assert!(ratio(30) > 1.0 && ratio(50) < 1.0, "{} {}", ratio(30), ratio(50));
}

#[test]
fn refused_parameters() {
    let new = |answers| AboveThreshold::new(sensitivity(1.0), epsilon(1.0), answers).map(|_| ());
    for bad in [0, (1 << 32) + 1, u64::MAX] {
        assert!(matches!(new(bad), Err(Error::OutOfRange { name: "answers", .. })), "{bad}");
    }
    assert_eq!(new(1 << 32), Ok(()));
    let least = 2f64.powi(-50);
    for bound in [f64::MIN_POSITIVE, 1.0, f64::MAX] {
        let mechanism = AboveThreshold::new(sensitivity(bound), epsilon(least), 1).unwrap();
        assert!(mechanism.with_values(epsilon(least)).is_ok());
        let many = AboveThreshold::new(sensitivity(bound), epsilon(least), 1 << 20);
        assert!(matches!(many, Err(Error::ScaleOverflow { .. })));
    }
    let mechanism = AboveThreshold::new(sensitivity(1.0), epsilon(1.0), 1).unwrap();
    for bad in [f64::NAN, f64::INFINITY] {
        assert_eq!(mechanism.first_answer(&[0.0, bad], 0.0), Err(Error::NonFiniteInput));
        assert_eq!(mechanism.first_answer(&[0.0], bad), Err(Error::NonFiniteInput));
    }
    assert_eq!(mechanism.first_answer(&[], 0.0).map(|law| law.len()), Ok(1));
    let extreme = mechanism.first_answer(&[-f64::MAX, f64::MAX], f64::MAX).unwrap();
    assert!((extreme[1] - 0.5).abs() < 1e-9 && extreme[0] == 0.0);
}

proptest! {
    /// The drawn noise costs, in steps, no more than the stated cost, and the event no less.
    #[test]
    fn rounding_is_towards_privacy(
        bound in 1e-6f64..1e6, stated in 1e-6f64..50.0, answers in 1u64..100, monotonic in any::<bool>(),
    ) {
        let mechanism = AboveThreshold::new(sensitivity(bound), epsilon(stated), answers).unwrap();
        let mechanism = if monotonic { mechanism.monotonic().unwrap() } else { mechanism };
        let steps = mechanism.lattice.sensitivity() as f64;
        let factor = answers as f64 * if monotonic { 1.0 } else { 2.0 };
        prop_assert!(mechanism.threshold_noise.steps().mul_add(mechanism.threshold_epsilon(), -steps) >= 0.0);
        prop_assert!(mechanism.query_noise.steps().mul_add(mechanism.query_epsilon(), -(steps * factor)) >= 0.0);
        prop_assert!(sum_up(mechanism.threshold_epsilon(), mechanism.query_epsilon()) <= stated);
        let found = bound::epsilon(&mechanism.event(), Delta::ZERO).unwrap().value;
        let sum = mechanism.threshold_epsilon() + mechanism.query_epsilon();
        prop_assert!(found >= sum && found <= stated * (1.0 + 1e-14), "{found} {stated}");
    }
}

/// Among queries that move by amounts in `[l, l + D]` some may move by one lattice step more than others, which the noise covers.
#[test]
fn an_interval_is_a_step_longer_on_the_lattice() {
    for (bound, answers) in [(1.0, 1), (0.75, 3), (100.0, 2)] {
        let any = AboveThreshold::new(sensitivity(bound), epsilon(1.0), answers).unwrap();
        let mechanism = any.range_bounded().unwrap();
        let (lattice, step) = (mechanism.lattice, crate::rounding::power_of_two(crate::rounding::exponent(bound) - 30));
        let mut moves = Vec::new();
        for low in [-0.5, 0.0, 0.25] {
            for (query, by) in [(0.0, low * step), (0.5 * step, low * step + bound), (0.0, low * step + bound)] {
                moves.push(lattice.floor(query + by) - lattice.floor(query));
            }
        }
        let spread = (moves.iter().max().unwrap() - moves.iter().min().unwrap()) as f64;
        assert!(spread > lattice.sensitivity() as f64);
        assert!(mechanism.query_noise.steps() * mechanism.query_epsilon() >= spread * answers as f64 * (1.0 - 1e-12));
        assert!(mechanism.query_noise.steps() < any.query_noise.steps());
    }
}

/// Queries that move by amounts in one interval: over all such moves the exact law of the first answer changes by at most
/// `eps1 + eps2`. Three queries nearly attain it, and noise of this size would not suffice for queries that move arbitrarily.
#[test]
fn queries_in_one_interval_cost_what_is_claimed() {
    let (eps1, eps2) = (0.6, 0.4);
    let epsilon = |value| Epsilon::new(value).unwrap();
    let sensitivity = LInfSensitivity::<ReplaceOne>::new(1.0).unwrap();
    let any = AboveThreshold::from_split(sensitivity, epsilon(eps1), epsilon(eps2), 1).unwrap();
    let mechanism = any.range_bounded().unwrap();
    assert_eq!(mechanism.event(), DpEvent::PureDp { epsilon: eps1 + eps2 });
    assert!(matches!(any.event(), DpEvent::AboveThresholdLaplace { .. }));
    let worst = |lows: &[f64], length: f64| {
        let mut worst = 0.0f64;
        for queries in [[0.0, 0.0, 0.0], [5.0, 5.0, -5.0], [8.0, 8.0, -8.0], [3.0, -20.0, -1.0]] {
            let before = mechanism.first_answer(&queries, 0.0).unwrap();
            for &low in lows {
                for corner in 0..8u32 {
                    let shifted: [f64; 3] =
                        core::array::from_fn(|i| queries[i] + low + if corner >> i & 1 == 1 { length } else { 0.0 });
                    let after = mechanism.first_answer(&shifted, 0.0).unwrap();
                    // Below this the law is known to few digits.
                    for (p, q) in before.iter().zip(&after).filter(|(p, q)| **p > 1e-6 && **q > 1e-6) {
                        worst = worst.max((p / q).ln().abs());
                    }
                }
            }
        }
        worst
    };
    let within = worst(&[-1.0, -0.75, -0.5, -0.25, 0.0], 1.0);
    assert!(within <= (eps1 + eps2) * (1.0 + 1e-6) && within > 0.7 * (eps1 + eps2), "{within}");
    // Changes by 1 in both directions in the same session.
    let beyond = worst(&[-1.0], 2.0);
    assert!(beyond > 1.05 * (eps1 + eps2), "{beyond}");
}
