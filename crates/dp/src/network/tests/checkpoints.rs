//! Trainings that go on from the file of an interrupted one.

use dp_optim::engine::RunState;

use super::*;
use crate::network::checkpoint::State;

/// Trains, and takes a checkpoint after each step that allows for one more.
fn observed(plan: &NetworkPlan, resumed: Option<Checkpoint>) -> (NetworkFile, Vec<Checkpoint>) {
    let (mut rng, mut control, mut taken) = (OsSeeded::new().unwrap(), Control::default(), Vec::new());
    let file = plan
        .train(&images(400), resumed, &mut rng, &mut control, &mut |step| {
            assert_eq!(step.weights().len(), 6 * 4 + 4 + 4 * 2 + 2);
            taken.push(step.checkpoint(plan.training().method.steps().min(step.number + 1)).unwrap());
        })
        .unwrap();
    (file, taken)
}

#[test]
fn a_training_goes_on_from_its_file_under_the_same_certificate() {
    for float in [FloatKind::F32, FloatKind::F64] {
        let plan = training(float).plan(400).unwrap();
        let (whole, taken) = observed(&plan, None);
        let read = Checkpoint::parse(&taken[11].to_bytes().unwrap()).unwrap();
        assert_eq!((&read, read.over(), read.begun()), (&taken[11], 12, 13));
        let (resumed, later) = observed(&plan, Some(read.clone().after_loss()));
        // Step 13 had begun, and is not made again.
        assert_eq!((later.len(), later[0].over(), later[0].lost()), (17, 14, 1));
        verify::network(&resumed).unwrap();
        // A beginning with a known seed.
        let (mut rng, mut control, mut seeded) = (SeededRng::new(1), Control::default(), None);
        let take = &mut |step: &NetworkStep<'_>| seeded = step.checkpoint(step.number);
        plan.train(&images(400), None, &mut rng, &mut control, take).unwrap();
        let seeded = Checkpoint::parse(&seeded.unwrap().to_bytes().unwrap()).unwrap();
        let (not_private, _) = observed(&plan, Some(seeded));
        assert_eq!(verify::network(&not_private).unwrap_err().kind(), ErrorKind::NotPrivate);
        assert_eq!(resumed.certificate.derivation, whole.certificate.derivation);
        // Steps that a later checkpoint allowed for count, too.
        let (_, later) = observed(&plan, Some(read.after_loss().allowing_until(20)));
        assert_eq!((later.len(), later[0].lost()), (10, 8));
        // From before the first step, and after the last one.
        let (_, later) = observed(&plan, Some(plan.initial_checkpoint(5).after_loss()));
        assert_eq!((later.len(), later[0].over(), later[0].lost()), (25, 6, 5));
        let (last, later) = observed(&plan, Some(taken[29].clone().allowing_until(30)));
        assert!(later.is_empty());
        assert_eq!(last.model.weights, whole.model.weights);
    }
}

/// The step sizes that a line search has chosen and the norm that an adaptive one has reached are part of the state.
#[test]
fn searches_and_adaptive_norms_go_on_from_their_files() {
    let with: [fn(&mut ModelSgd); 2] = [
        |recipe| recipe.search = Some(StepSearch::new()),
        |recipe| recipe.adaptive_norm = Some(QuantileClipping::new()),
    ];
    for (edit, searches) in with.into_iter().zip([true, false]) {
        let mut training = training(FloatKind::F32);
        if let Method::Private { recipe, .. } = &mut training.method {
            edit(recipe);
        }
        let plan = training.plan(400).unwrap();
        let (_, taken) = observed(&plan, None);
        let read = Checkpoint::parse(&taken[11].to_bytes().unwrap()).unwrap();
        assert_eq!(read, taken[11]);
        let State::Single(state) = read.state.clone() else { panic!() };
        assert_eq!((state.chosen.len(), state.norm_scale == 1.0), (if searches { 12 } else { 0 }, searches));
        let (resumed, later) = observed(&plan, Some(read.after_loss()));
        verify::network(&resumed).unwrap();
        let State::Single(last) = &later[16].state else { panic!() };
        let chosen = if searches { 29 } else { 0 };
        assert_eq!((later.len(), last.updates, last.lost, last.chosen.len()), (17, 30, 1, chosen));
        // A state without them is of another training.
        let state = State::Single(RunState { chosen: Vec::new(), norm_scale: 0.0, ..state });
        let without = Checkpoint::new(taken[11].training.clone(), state, 13);
        let (mut rng, mut control) = (OsSeeded::new().unwrap(), Control::default());
        assert!(plan.train(&images(400), Some(without), &mut rng, &mut control, &mut |_| ()).is_err());
    }
}

/// What differs, and the change that makes it differ.
type Change<'c> = (&'c str, &'c dyn Fn(&mut NetworkTraining));

#[test]
fn checkpoints_of_other_trainings_are_refused() {
    let plan = training(FloatKind::F32).plan(400).unwrap();
    let (_, taken) = observed(&plan, None);
    let checkpoint = &taken[3];
    let refused = |edit: &dyn Fn(&mut NetworkTraining), n: u64| {
        let mut other = training(FloatKind::F32);
        edit(&mut other);
        let plan = other.plan(n).unwrap();
        let (mut rng, mut control) = (OsSeeded::new().unwrap(), Control::default());
        let result = plan.train(&images(n as usize), Some(checkpoint.clone()), &mut rng, &mut control, &mut |_| ());
        let Err(NetworkTrainError::Model(error)) = result else { panic!("{result:?}") };
        assert_eq!(error.kind(), ErrorKind::OtherTraining);
        error.to_string()
    };
    let recipe = |edit: fn(&mut ModelSgd)| {
        move |training: &mut NetworkTraining| match &mut training.method {
            Method::Private { recipe, .. } => edit(recipe),
            Method::NonPrivate(_) => panic!("a private training"),
        }
    };
    let setting = "the budget or a setting";
    let cases: [Change<'_>; 9] = [
        ("layers", &|training| training.architecture = Architecture::mlp(SHAPE, &[5], 2, Activation::Relu)),
        ("classes", &|training| training.labels = vec![1, 0]),
        ("views", &|training| training.views = Views::Flip),
        ("views", &|training| training.scaling = Scaling::Symmetric),
        ("initial weights", &|training| training.seed = 2),
        (setting, &recipe(|recipe| recipe.steps = 31)),
        (setting, &recipe(|recipe| recipe.float = FloatKind::F64)),
        (setting, &|training| training.method = Method::NonPrivate(NonPrivateSgd::new())),
        (setting, &|training| {
            if let Method::Private { budget, .. } = &mut training.method {
                budget.epsilon = dp_accountant::Epsilon::new(3.1).unwrap();
            }
        }),
    ];
    for (expected, edit) in cases {
        let found = refused(edit, 400);
        assert!(found.contains(expected), "{found} instead of {expected}");
    }
    assert!(refused(&|_| (), 401).contains("number of images"));
    let late = plan.check_checkpoint(&checkpoint.clone().allowing_until(31)).unwrap_err();
    assert!(late.to_string().contains("number of steps"));
}

/// Changed bytes, cuts, and contradictions under a hash that was computed again.
#[test]
fn damaged_files_are_refused() {
    let plan = training(FloatKind::F64).plan(400).unwrap();
    let (_, taken) = observed(&plan, None);
    let bytes = taken[3].to_bytes().unwrap();
    for at in (0..bytes.len()).step_by(7).chain(bytes.len() - 33..bytes.len()) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert_eq!(Checkpoint::parse(&changed).unwrap_err().kind(), ErrorKind::Checkpoint, "{at}");
        assert_eq!(Checkpoint::parse(&bytes[..at]).unwrap_err().kind(), ErrorKind::Checkpoint, "{at}");
    }
    assert!(Checkpoint::parse(b"{}").is_err() && Checkpoint::parse(&[b'\n'; 40]).is_err());
    let body = &bytes[..bytes.len() - 32];
    let end = body.iter().position(|&byte| byte == b'\n').unwrap();
    let resealed = |from: &str, to: &str, numbers: &[u8]| {
        let line = std::str::from_utf8(&body[..end]).unwrap();
        assert!(line.contains(from), "{line}");
        let mut file = line.replacen(from, to, 1).into_bytes();
        file.push(b'\n');
        file.extend_from_slice(numbers);
        let hash = <sha2::Sha256 as sha2::Digest>::digest(&file);
        file.extend_from_slice(&hash);
        Checkpoint::parse(&file)
    };
    let numbers = &body[end + 1..];
    assert_eq!(resealed("\"over\":4", "\"over\":4", numbers).unwrap(), taken[3]);
    for (from, to) in [
        ("\"over\":4", "\"over\":6"),
        ("\"lost\":0", "\"lost\":5"),
        ("\"begun\":5", "\"begun\":3"),
        ("\"weight\":0.0", "\"weight\":-1.0"),
        ("\"weight\":0.0", "\"weight\":1e999"),
        ("\"vectors\":2", "\"vectors\":3"),
        ("2,\"parameters\":38", "2,\"parameters\":9223372036854775807"),
        ("\"float\":\"f64\"},\"relation\"", "\"float\":\"f32\"},\"relation\""),
        ("\"secret_noise\":true,", ""),
        ("dp.checkpoint/1", "dp.checkpoint/2"),
        ("\"over\":4", "\"over\":4,\"more\":1"),
    ] {
        let kind = resealed(from, to, numbers).map(|_| ()).map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::Checkpoint), "{to}");
    }
    assert!(resealed("\"over\":4", "\"over\":4", &numbers[8..]).is_err());
}
