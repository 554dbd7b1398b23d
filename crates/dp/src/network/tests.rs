mod checkpoints;

use dp_accountant::certificate::NoiseMode;
use dp_data::images::Shape;
use dp_mechanisms::clip::ClippingNorm;
use dp_mechanisms::{OsSeeded, SeededRng};
use dp_nets::{Activation, Layer};
use dp_optim::engine::Control;
use dp_optim::recipes::{ModelSgd, QuantileClipping, StepSearch};

use super::*;
use crate::verify;

const SHAPE: Shape = Shape { height: 2, width: 3, channels: 1 };

fn images(count: usize) -> Images {
    let pixels = (0..6 * count).map(|j| if j / 6 % 2 == 0 { 30 } else { 200 + (j % 50) as u8 }).collect();
    Images::new(SHAPE, pixels, (0..count).map(|i| (i % 2) as u8).collect(), 2).unwrap()
}

fn training(float: FloatKind) -> NetworkTraining {
    let norm = ClippingNorm::new(0.1).unwrap();
    let recipe = ModelSgd { batch_size: 50, steps: 30, float, ..ModelSgd::new(norm) };
    let layers = Architecture::mlp(SHAPE, &[4], 2, Activation::Relu);
    NetworkTraining::new(Method::private(recipe, 3.0, 1e-5).unwrap(), layers).unwrap()
}

fn trained(float: FloatKind) -> NetworkFile {
    let (mut rng, mut control) = (OsSeeded::new().unwrap(), Control::default());
    training(float).on(&images(400), &mut rng, &mut control, &mut |_| ()).unwrap()
}

#[test]
fn a_file_is_read_as_it_was_written_and_verified() {
    for float in [FloatKind::F32, FloatKind::F64] {
        let file = trained(float);
        let read = NetworkFile::parse(file.to_text().unwrap().as_bytes()).unwrap();
        assert_eq!(read, file);
        let verified = verify::network(&read).unwrap();
        assert!(verified.epsilon <= 3.0 && verified.unit == "record", "{verified:?}");
        let text = verified.assumptions.join(" ");
        assert!(text.contains("norms that it states"), "{text}");
        let plan = training(float).plan(400).unwrap();
        assert!(plan.reached() == file.certificate.reached && plan.noise_multiplier() > Some(0.3));
        assert_eq!(read.model.classes(), ["0", "1"]);
        let mut count = 0;
        let many = images(1201);
        let mut logits = |threads: usize| {
            let mut found = Vec::new();
            let each = |logits: &[f64]| {
                count += 1;
                found.extend_from_slice(logits);
                Ok::<_, Error>(())
            };
            read.model.logits(&many, Workers::new(threads.try_into().unwrap()), each).unwrap();
            found
        };
        assert!(logits(1) == logits(3));
        assert_eq!(count, 2 * 1201);
        let other = Images::new(Shape { width: 2, ..SHAPE }, vec![0; 4], vec![0], 2).unwrap();
        assert!(read.model.logits(&other, Workers::ONE, |_| Ok::<_, Error>(())).is_err());
        let mut long = read.model.clone();
        long.weights.iter_mut().for_each(|weight| *weight = if float == FloatKind::F32 { 1e30 } else { 1e200 });
        let refused = long.logits(&many, Workers::ONE, |_| Ok::<_, Error>(())).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotFinite);
    }
}

type Edit<'e> = (&'e str, &'e dyn Fn(&mut NetworkFile));

fn derivation(file: &mut NetworkFile) -> &mut ModelDerivation {
    match &mut file.certificate.derivation {
        NetworkDerivation::DpSgd(derivation) => derivation,
        NetworkDerivation::NonPrivate(_) => panic!("a private training"),
    }
}

/// Every edit is found, also where both hashes were recomputed.
#[test]
fn edits_are_found() {
    let file = trained(FloatKind::F32);
    let resealed = |edit: &dyn Fn(&mut NetworkFile)| {
        let mut file = file.clone();
        edit(&mut file);
        file.certificate.model_sha256 = file.model.sha256().unwrap();
        let sealed = NetworkFile::seal(file.model, file.certificate).unwrap();
        NetworkFile::parse(sealed.to_text().unwrap().as_bytes()).and_then(|file| verify::network(&file))
    };
    resealed(&|_| ()).unwrap();
    let edits: [Edit<'_>; 18] = [
        ("the model's float", &|file| file.model.float = FloatKind::F64),
        ("no noise", &|file| file.certificate.derivation = NetworkDerivation::NonPrivate(NonPrivateSgd::new())),
        ("equal labels", &|file| file.model.labels = vec![1, 1]),
        ("more labels", &|file| file.model.labels.push(2)),
        ("noise", &|file| derivation(file).std_dev *= 1.01),
        ("images", &|file| derivation(file).n += 1),
        ("steps", &|file| derivation(file).recipe.steps += 1),
        ("a search", &|file| derivation(file).recipe.search = Some(StepSearch::new())),
        ("an adaptive norm", &|file| derivation(file).recipe.adaptive_norm = Some(QuantileClipping::new())),
        ("parameters", &|file| derivation(file).parameters += 1),
        ("float", &|file| derivation(file).recipe.float = FloatKind::F64),
        ("noise mode", &|file| file.certificate.noise = NoiseMode::Rounded),
        ("unit", &|file| file.certificate.unit = dp_accountant::guarantee::Unit::List),
        ("assumptions", &|file| file.certificate.assumptions.truncate(1)),
        ("weights", &|file| file.model.weights[0] += 1e-12),
        ("fewer weights", &|file| file.model.weights.truncate(1)),
        ("layers", &|file| file.model.architecture.layers.insert(1, Layer::Linear { units: 4 })),
        ("schema", &|file| file.model.schema = "dp.network/2".to_owned()),
    ];
    for (name, edit) in edits {
        assert!(resealed(edit).is_err(), "{name}");
    }
    // Rounded noise with its assumption, called exact.
    let unnamed = resealed(&|file| {
        derivation(file).recipe.noise_mode = NoiseMode::Rounded;
        file.certificate.assumptions.push(Assumption::IdealisedFloat);
    });
    assert_eq!(unnamed.unwrap_err().field(), Some("certificate.noise"));
    let text = file.to_text().unwrap();
    let edited = text.replacen("\"seed\": 1", "\"seed\": 2", 1);
    assert_eq!(NetworkFile::parse(edited.as_bytes()).unwrap_err().kind(), ErrorKind::ModelHash);
    assert!(NetworkFile::parse(b"{}").is_err());
}

#[test]
fn what_is_not_private_is_not_verified() {
    let (mut rng, mut control) = (SeededRng::new(1), Control::default());
    let file = training(FloatKind::F32).on(&images(400), &mut rng, &mut control, &mut |_| ()).unwrap();
    assert_eq!(verify::network(&file).unwrap_err().kind(), ErrorKind::NotPrivate);
    let mut wrong = training(FloatKind::F32);
    let Method::Private { relation, .. } = &mut wrong.method else { panic!() };
    *relation = AdjacencyKind::AddRemoveOne;
    assert!(matches!(wrong.clone().plan(400), Err(NetworkTrainError::Recipe(_))));
    let Method::Private { relation, .. } = &mut wrong.method else { panic!() };
    *relation = AdjacencyKind::ReplaceOne;
    wrong.architecture = Architecture::mlp(SHAPE, &[4], 3, Activation::Relu);
    let refused = wrong.clone().on(&images(400), &mut rng, &mut control, &mut |_| ());
    assert!(matches!(refused, Err(NetworkTrainError::Labels { classes: 3, labels: 2 })));
    wrong.labels.push(7);
    let refused = wrong.clone().on(&images(400), &mut rng, &mut control, &mut |_| ());
    assert!(matches!(refused, Err(NetworkTrainError::Network(_))));
}

#[test]
fn the_baseline_learns_and_claims_nothing() {
    for float in [FloatKind::F32, FloatKind::F64] {
        let recipe = NonPrivateSgd { batch_size: 20, steps: 200, float, ..NonPrivateSgd::new() };
        let architecture = Architecture::mlp(SHAPE, &[4], 2, Activation::Tanh);
        let training = NetworkTraining::new(Method::NonPrivate(recipe), architecture).unwrap();
        let plan = training.plan(400).unwrap();
        assert_eq!((plan.reached(), plan.noise_multiplier()), (None, None));
        let data = images(400);
        let (mut rng, mut control) = (OsSeeded::new().unwrap(), Control::default());
        let file = plan.train(&data, None, &mut rng, &mut control, &mut |_| ()).unwrap();
        assert_eq!(NetworkFile::parse(file.to_text().unwrap().as_bytes()).unwrap(), file);
        assert!(!file.certificate.private && file.warnings().is_empty());
        assert_eq!(verify::network(&file).unwrap_err().kind(), ErrorKind::NotPrivate);
        let (mut hits, mut i) = (0, 0);
        let each = |logits: &[f64]| {
            hits += u32::from(crate::metrics::winner(logits) == data.label(i));
            i += 1;
            Ok::<_, Error>(())
        };
        file.model.logits(&data, Workers::ONE, each).unwrap();
        assert_eq!(hits, 400);
    }
}
