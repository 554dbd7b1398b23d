//! Trainings that go on from a state.

use super::*;
use crate::engine::RunState;

const DESCENTS: [Descent; 5] = [
    Descent::Plain,
    Descent::Accelerated { momentum: 0.9 },
    Descent::HeavyBall { momentum: 0.9 },
    Descent::Adam { first_decay: 0.9, second_decay: 0.99, epsilon: 1e-8 },
    Descent::AdamBc { first_decay: 0.9, second_decay: 0.99, floor: 0.1 },
];

/// Trains without noise on batches of all points, so that nothing is random.
fn plain(recipe: &NonPrivateSgd, resumed: Option<RunState<f64>>) -> Result<(Vec<f64>, Vec<RunState<f64>>), Error> {
    let start = Start { parameters: vec![2.0, -1.0], resumed };
    let (mut rng, mut control, mut states) = (SeededRng::new(1), Control::default(), Vec::new());
    let mut observer = |moment: &AfterUpdate<'_, f64>| states.push(moment.state().unwrap());
    let weights = recipe.train(&Mean::new(), &points(60), start, &mut rng, &mut control, &mut observer)?;
    Ok((weights.expose_without_any_guarantee(), states))
}

fn without_noise(descent: Descent, averaging: Averaging, steps: u64, step: f64) -> NonPrivateSgd {
    let schedule = Schedule::InverseSqrt { step };
    let float = FloatKind::F64;
    NonPrivateSgd { batch_size: 60, steps, descent, schedule, averaging, float, ..NonPrivateSgd::new() }
}

/// The same bits as without the interruption, at any step, for every descent and average.
#[test]
fn an_interrupted_training_goes_on() {
    for descent in DESCENTS {
        for averaging in [
            Averaging::Last,
            Averaging::Uniform,
            Averaging::Suffix { updates: 5 },
            Averaging::Exponential { decay: 0.8 },
            Averaging::Polynomial,
            Averaging::Restarts { updates: 4 },
        ] {
            let recipe = without_noise(descent, averaging.clone(), 11, 0.1);
            let (whole, states) = plain(&recipe, None).unwrap();
            for (over, state) in (1..=11).zip(&states) {
                assert_eq!((state.updates, state.lost), (over, 0));
                let (resumed, later) = plain(&recipe, Some(state.clone())).unwrap();
                assert_eq!(resumed, whole, "{descent:?} {averaging:?} {over}");
                assert_eq!(later, states[over as usize..]);
            }
        }
    }
}

/// Steps that were lost count, and their weights are made up for.
#[test]
fn lost_steps_are_not_made_again() {
    for averaging in [Averaging::Last, Averaging::Uniform, Averaging::Suffix { updates: 8 }, Averaging::Polynomial] {
        // Steps of length zero: every iterate is the start, and so is any average of them.
        let recipe = without_noise(Descent::Plain, averaging.clone(), 20, 1e-300);
        let (_, states) = plain(&recipe, None).unwrap();
        for (after, begun) in [(4, 9), (4, 4), (14, 19), (3, 20), (20, 20), (5, 2)] {
            let state = states[after - 1].clone().losing(begun);
            let over = begun.max(after as u64);
            assert_eq!((state.updates, state.lost), (over, over - after as u64));
            let (output, later) = plain(&recipe, Some(state)).unwrap();
            assert_eq!(later.len() as u64, 20 - over);
            let is_start = (output[0] - 2.0).abs() < 1e-12 && (output[1] + 1.0).abs() < 1e-12;
            assert!(is_start, "{averaging:?} {after} {begun}: {output:?}");
        }
    }
    // All before the first state, and two interruptions.
    let recipe = without_noise(Descent::Accelerated { momentum: 0.5 }, Averaging::Uniform, 20, 0.1);
    let (output, later) = plain(&recipe, Some(RunState::initial().losing(18))).unwrap();
    let (first, second) = (later[0].vectors[2].clone(), later[1].vectors[2].clone());
    assert_eq!((later.len(), later[0].updates, later[0].lost), (2, 19, 18));
    assert!([0, 1].iter().all(|&j| (output[j] - (first[j] + second[j]) / 2.0).abs() < 1e-15), "{output:?}");
    let recipe = without_noise(Descent::Plain, Averaging::Last, 20, 0.1);
    let (_, states) = plain(&recipe, None).unwrap();
    let (_, states) = plain(&recipe, Some(states[4].clone().losing(7))).unwrap();
    let state = states[2].clone().losing(13);
    assert_eq!((state.updates, state.lost), (13, 5));
}

#[test]
fn a_state_that_does_not_fit_is_refused() {
    let recipe = without_noise(Descent::Plain, Averaging::Last, 10, 0.1);
    let (_, states) = plain(&recipe, None).unwrap();
    let state = states[4].clone();
    let refused = |recipe: &NonPrivateSgd, state: &RunState<f64>| match plain(recipe, Some(state.clone())) {
        Err(Error::State { why }) => why,
        other => panic!("{other:?}"),
    };
    let more = RunState { vectors: [&state.vectors[..], &[vec![0.0; 2]]].concat(), ..state.clone() };
    assert!(refused(&recipe, &more).contains("another algorithm"));
    for descent in &DESCENTS[1..] {
        assert!(refused(&NonPrivateSgd { descent: *descent, ..recipe.clone() }, &state).contains("another algorithm"));
    }
    let averaged = NonPrivateSgd { averaging: Averaging::Uniform, ..recipe.clone() };
    assert!(refused(&averaged, &state).contains("another algorithm"));
    assert!(refused(&NonPrivateSgd { steps: 4, ..recipe.clone() }, &state).contains("more updates"));
    assert!(refused(&recipe, &RunState { lost: 6, ..state.clone() }).contains("more updates"));
    assert!(refused(&recipe, &RunState { vectors: Vec::new(), ..state.clone() }).contains("another algorithm"));
    let short = RunState { vectors: vec![vec![0.0]], ..state.clone() };
    assert!(refused(&recipe, &short).contains("another number of parameters"));
    let short = RunState { vectors: vec![vec![0.0; 2], vec![0.0]], ..state.clone() };
    assert!(refused(&averaged, &short).contains("another algorithm"));
    let stretches = NonPrivateSgd { averaging: Averaging::Restarts { updates: 4 }, ..recipe };
    let averaged = RunState { vectors: vec![vec![0.0; 2]; 2], ..state };
    assert!(refused(&stretches, &averaged.losing(6)).contains("average"));
}

/// Every average of a run that does not move is its start, which is not zero.
#[test]
fn every_average_begins_at_the_start() {
    for averaging in [Averaging::Last, Averaging::Uniform, Averaging::Restarts { updates: 4 }] {
        let recipe = without_noise(Descent::Plain, averaging.clone(), 10, 1e-300);
        let (output, states) = plain(&recipe, None).unwrap();
        assert!((output[0] - 2.0).abs() < 1e-12 && (output[1] + 1.0).abs() < 1e-12, "{averaging:?}: {output:?}");
        assert_eq!(states[0].vectors[0], [2.0, -1.0]);
    }
}

/// An observer that cancels sees no further update.
#[test]
fn a_cancelled_training_ends_before_the_next_step() {
    let cancelled = core::sync::atomic::AtomicBool::new(false);
    let mut control = Control { cancelled: Some(&cancelled), ..Control::default() };
    let mut seen = 0;
    let mut observer = |after: &AfterUpdate<'_, f64>| {
        seen = after.update;
        cancelled.store(after.update == 3, core::sync::atomic::Ordering::Relaxed);
    };
    let recipe = without_noise(Descent::Plain, Averaging::Last, 10, 0.1);
    let (points, mut rng) = (points(60), SeededRng::new(1));
    let result = recipe.train(&Mean::new(), &points, vec![2.0, -1.0], &mut rng, &mut control, &mut observer);
    assert!(matches!(result, Err(Error::Interrupted)));
    assert_eq!(seen, 3);
}

/// Adam corrects for the number of updates that its means have seen.
#[test]
fn lost_steps_do_not_count_for_adam() {
    for descent in &DESCENTS[3..] {
        let recipe = |steps| NonPrivateSgd {
            schedule: Schedule::Constant { step: 0.1 },
            ..without_noise(*descent, Averaging::Last, steps, 0.1)
        };
        let (whole, states) = plain(&recipe(10), None).unwrap();
        for after in [0, 4] {
            let state = if after == 0 { RunState::initial() } else { states[after - 1].clone() };
            let (output, later) = plain(&recipe(17), Some(state.losing(after as u64 + 7))).unwrap();
            assert_eq!((output, later.len()), (whole.clone(), 10 - after));
        }
    }
}

/// Noise that somebody can draw again does not become secret.
#[test]
fn a_seeded_part_is_not_private() {
    let plan = recipe().plan::<ZeroOut>(5000, 2, budget(4.0)).unwrap();
    let points = points::<f32>(5000);
    let train = |resumed: Option<RunState<f32>>, is_secret: bool| {
        let (mut states, mut control) = (Vec::new(), Control::default());
        let mut observer = |after: &AfterUpdate<'_, f32>| states.push(after.state().unwrap());
        let (mut seeded, mut secret) = (SeededRng::new(1), dp_mechanisms::OsSeeded::new().unwrap());
        let start = Start { parameters: vec![5.0; 2], resumed };
        let trained = match is_secret {
            true => plan.train(&Mean::new(), &points, start, &mut secret, &mut control, &mut observer),
            false => plan.train(&Mean::new(), &points, start, &mut seeded, &mut control, &mut observer),
        };
        (trained.unwrap().log.is_private(), states)
    };
    let ((_, seeded), (_, secret)) = (train(None, false), train(None, true));
    for over in [1, 60, 100] {
        for (states, is_secret, private) in
            [(&seeded, true, false), (&secret, true, true), (&secret, false, false), (&seeded, false, false)]
        {
            let (found, later) = train(Some(states[over - 1].clone()), is_secret);
            assert_eq!(found, private, "{over}");
            assert!(later.iter().all(|state| state.secret_noise == private));
        }
    }
}

/// The certificate is that of all steps, and those that are left have fresh noise.
#[test]
fn a_private_training_goes_on_under_the_same_certificate() {
    let recipe = ModelSgd { averaging: Averaging::Suffix { updates: 30 }, ..recipe() };
    let plan = recipe.plan::<ZeroOut>(5000, 2, budget(4.0)).unwrap();
    let train = |resumed: Option<RunState<f32>>, seed: u64| {
        let start = Start { parameters: vec![5.0; 2], resumed };
        let (mut rng, mut control, mut seen) = (SeededRng::new(seed), Control::default(), Vec::new());
        let mut observer = |moment: &AfterUpdate<'_, f32>| seen.push(moment.state().unwrap());
        let points = points::<f32>(5000);
        let trained = plan.train(&Mean::new(), &points, start, &mut rng, &mut control, &mut observer).unwrap();
        (trained, seen)
    };
    let (whole, states) = train(None, 1);
    let mut outputs = vec![whole.weights.get().clone()];
    for seed in 2..5 {
        let (trained, later) = train(Some(states[59].clone().losing(65)), seed);
        assert_eq!(later.len(), 35);
        assert_eq!(trained.log.to_event(), whole.log.to_event());
        assert_eq!(trained.derivation, whole.derivation);
        let weights = trained.weights.get();
        assert!((weights[0] - 0.3).abs() < 0.15 && (weights[1] + 0.6).abs() < 0.15, "{weights:?}");
        outputs.push(weights.clone());
    }
    outputs.dedup();
    assert_eq!(outputs.len(), 4);
}
