use dp_accountant::certificate::VerifyError;
use serde_json::{Value, json};

use super::*;
use crate::{Sealed, verify};

const SHAPE: StepsShape =
    StepsShape { n: 2000, batch_size: 100, steps: 30, clipping_norm: 0.5, relation: AdjacencyKind::ZeroOut };

fn delta() -> Delta {
    Delta::new(1e-6).unwrap()
}

/// Takes some steps with sums of zeros.
fn taken(shape: StepsShape, std_dev: f64, seed: Option<u64>, steps: u64) -> StepsFile {
    let mut run = Steps::start(shape, std_dev, delta(), seed).unwrap();
    for _ in 0..steps {
        run.batch().unwrap();
        run.add(&mut [0.0f32; 5]).unwrap();
    }
    run.finish("ab".repeat(32), "someone's program 1.0", vec!["embedding".to_owned()], BTreeMap::new()).unwrap()
}

/// Returns a file with an edited member, whose hashes were computed again.
fn edited(file: &StepsFile, edit: impl FnOnce(&mut Value)) -> Result<StepsFile, Error> {
    let mut value: Value = serde_json::from_str(&file.to_text().unwrap()).unwrap();
    edit(&mut value);
    value["certificate"]["model_sha256"] = canonical::sha256(&value["model"]).into();
    value["certificate_sha256"] = canonical::sha256(&value["certificate"]).into();
    StepsFile::parse(value.to_string().as_bytes())
}

#[test]
fn the_cost_is_that_of_sampled_gaussian_sums() {
    for (relation, twice) in [(AdjacencyKind::ZeroOut, false), (AdjacencyKind::ReplaceOne, true)] {
        let shape = StepsShape { relation, ..SHAPE };
        let std_dev = shape.least_std_dev(Epsilon::new(2.0).unwrap(), delta()).unwrap();
        let file = taken(shape, std_dev, None, 30);
        let sampled = DpEvent::PoissonSampled {
            // 1 - e^(-100/2000), rounded up.
            sampling_rate: 0.048_770_575_499_286_074,
            event: Box::new(DpEvent::Gaussian { std_dev, sensitivity: 0.5 * 1.01 }),
        };
        let all = DpEvent::SelfComposed { event: Box::new(sampled), count: 30 };
        let all = if twice { DpEvent::AddRemoveTwice { event: Box::new(all) } } else { all };
        assert_eq!(file.certificate.event, all);
        let verified = verify::steps(&file).unwrap();
        assert_eq!(verified.epsilon, bound::epsilon(&all, delta()).unwrap().value);
        assert!(verified.epsilon <= 2.0 && verified.epsilon > 1.999, "{}", verified.epsilon);
        assert_eq!(verified.delta, 1e-6);
    }
}

#[test]
fn every_sum_has_noise_of_the_stated_size() {
    fn check<F: Real>(from: fn(f32) -> F, into: fn(F) -> f64) {
        let mut run = Steps::start(SHAPE, 3.0, delta(), Some(5)).unwrap();
        run.set_threads(NonZeroUsize::new(2).unwrap());
        let (n, mut all) = (100_000, 0.0);
        for _ in 0..3 {
            run.batch().unwrap();
            let mut sum = vec![from(0.125); n];
            run.add(&mut sum).unwrap();
            let noise = sum.iter().map(|x| into(*x) - 0.125);
            let (mean, square) = noise.fold((0.0, 0.0), |(mean, square), z| (mean + z, square + z * z));
            // Five standard errors: a false alarm in a million draws of the seed.
            let size = n as f64;
            assert!((mean / size).abs() < 5.0 * 3.0 / size.sqrt());
            assert!((square / size / 9.0 - 1.0).abs() < 5.0 * (2.0 / size).sqrt());
            all += mean;
        }
        assert!(all != 0.0);
    }
    check::<f32>(f32::from, f64::from);
    check::<f64>(f64::from, f64::from);
}

#[test]
fn steps_that_were_not_paid_for_or_have_no_batch_are_refused() {
    let mut run = Steps::start(StepsShape { steps: 2, ..SHAPE }, 3.0, delta(), None).unwrap();
    let sum = || vec![1.0f64; 4];
    assert!(run.add(&mut sum()).unwrap_err().to_string().contains("without a batch"));
    assert!(run.batch().unwrap().iter().all(|&position| position < 2000));
    run.batch().unwrap();
    assert!(run.batch().unwrap_err().to_string().contains('2'));
    // Refusals take no step, and no noise.
    assert_eq!(run.left(), 2);
    run.add(&mut sum()).unwrap();
    let mut longer = vec![0.0; 5];
    assert!(run.add(&mut longer).is_err() && longer == [0.0; 5]);
    run.add(&mut sum()).unwrap();
    let mut third = sum();
    assert!(run.add(&mut third).is_err() && third == sum());
    assert_eq!((run.left(), run.batches_left()), (0, 0));
}

/// Whether a sum is usable depends on records, so that nothing is certified after one that is not.
#[test]
fn sums_of_no_clipped_gradients_end_the_training() {
    for times in [f64::NAN, f64::INFINITY, 1e300, 1e18, 1.0 + 2.0 * MARGIN] {
        let mut run = Steps::start(SHAPE, 3.0, delta(), Some(3)).unwrap();
        let first = run.batch().unwrap().len();
        run.add(&mut [SHAPE.clipping_norm * first as f64, 0.0]).unwrap();
        let wrong = times * SHAPE.clipping_norm * run.batch().unwrap().len().max(first) as f64;
        // What a margin and the larger batch allow is taken.
        if times == 1.0 + 2.0 * MARGIN {
            let mut within = Steps::start(SHAPE, 3.0, delta(), Some(3)).unwrap();
            let [one, two] = [0, 1].map(|_| within.batch().unwrap().len() as f64);
            within.add(&mut [SHAPE.clipping_norm * one.max(two) * (1.0 + 0.9 * MARGIN), 0.0]).unwrap();
        }
        let mut sum = [wrong, 0.0];
        assert!(run.add(&mut sum).unwrap_err().to_string().contains("ended the training"), "{wrong}");
        assert_eq!(sum[1], 0.0);
        assert!(run.batch().is_err() && run.add(&mut [0.0, 0.0]).is_err());
        let finished = run.finish("0".repeat(64), "someone's program 1.0", Vec::new(), BTreeMap::new());
        assert!(finished.unwrap_err().to_string().contains("ended the training"), "{wrong}");
    }
    for size in [1e-200, 1.0, 1e200] {
        assert!((norm(&[3.0 * size, 4.0 * size]) / size - 5.0).abs() < 1e-14);
    }
}

#[test]
fn steps_that_were_not_taken_stay_paid_for() {
    let file = taken(SHAPE, 3.0, None, 4);
    assert_eq!((file.model.steps_taken, file.model.coordinates, file.certificate.derivation.steps), (4, 5, 30));
    assert_eq!(verify::steps(&file).unwrap().epsilon, verify::steps(&taken(SHAPE, 3.0, None, 30)).unwrap().epsilon);
}

#[test]
fn what_is_taken_on_trust_is_stated() {
    let file = taken(SHAPE, 3.0, None, 30);
    let names: Vec<String> = file.certificate.assumptions.iter().map(Assumption::name).collect();
    assert_eq!(
        names,
        [
            "public_n",
            "one_row_per_unit",
            "every_record_conforms",
            "float_sum",
            "clipped_elsewhere (someone's program 1.0)",
            "public_tensors (embedding)",
            "earlier_runs_not_accounted"
        ]
    );
    for (i, name) in names.iter().enumerate() {
        let without = edited(&file, |value| {
            value["certificate"]["assumptions"].as_array_mut().unwrap().remove(i);
        });
        assert!(verify::steps(&without.unwrap()).is_err(), "{name}");
    }
}

#[test]
fn edited_files_are_refused() {
    let file = taken(SHAPE, 3.0, None, 30);
    let text = file.to_text().unwrap();
    assert_eq!(StepsFile::parse(text.as_bytes()).unwrap(), file);
    assert!(Sealed::parse(text.replace("abab", "abac").as_bytes()).is_err());
    let derived = |name: &'static str, value: Value| {
        edited(&file, move |file| file["certificate"]["derivation"][name] = value).and_then(|file| verify::steps(&file))
    };
    for (name, value) in [
        ("recipe", json!("noisy")),
        ("relation", json!("replace-one")),
        ("n", json!(3000)),
        ("batch_size", json!(90)),
        ("steps", json!(29)),
        ("clipping_norm", json!(0.4)),
        ("std_dev", json!(4.0)),
        ("std_dev", json!(0.0)),
        ("clipped_by", json!("")),
        ("clipped_by", json!("another")),
        ("public_tensors", json!([])),
    ] {
        assert!(derived(name, value.clone()).is_err(), "{name} {value}");
    }
    for (name, value) in [("steps_taken", json!(31)), ("weights_sha256", json!("AB".repeat(32))), ("more", json!(1))] {
        let other = edited(&file, |file| file["model"][name] = value);
        assert!(other.and_then(|file| verify::steps(&file)).is_err(), "{name}");
    }
    let smaller = edited(&file, |file| file["certificate"]["reached"]["epsilon"] = json!(0.1)).unwrap();
    assert!(matches!(smaller.certificate.verify(), Err(VerifyError::EpsilonTooSmall { .. })));
}

#[test]
fn a_seed_repeats_batches_and_noise_without_a_guarantee() {
    let run = || {
        let mut run = Steps::start(SHAPE, 3.0, delta(), Some(9)).unwrap();
        let batch = run.batch().unwrap().to_vec();
        let mut sum = [0.0f32; 8];
        run.add(&mut sum).unwrap();
        (batch, sum)
    };
    assert_eq!(run(), run());
    let file = taken(SHAPE, 3.0, Some(9), 30);
    assert_eq!(verify::steps(&file).unwrap_err().kind(), ErrorKind::NotPrivate);
    let claimed = edited(&file, |file| file["certificate"]["private"] = json!(true)).unwrap();
    assert!(verify::steps(&claimed).is_err());
}

#[test]
fn numbers_out_of_range_are_refused() {
    let start = |shape, std_dev| Steps::start(shape, std_dev, delta(), None).map(drop);
    assert!(start(SHAPE, 3.0).is_ok());
    for shape in [
        StepsShape { n: 0, ..SHAPE },
        StepsShape { n: 99, ..SHAPE },
        StepsShape { batch_size: 0, ..SHAPE },
        StepsShape { n: 1 << 20, batch_size: LARGEST_BATCH + 1, ..SHAPE },
        StepsShape { steps: 0, ..SHAPE },
        StepsShape { steps: 1 << 48, ..SHAPE },
        StepsShape { clipping_norm: 0.0, ..SHAPE },
        StepsShape { clipping_norm: f64::NAN, ..SHAPE },
        StepsShape { relation: AdjacencyKind::AddRemoveOne, ..SHAPE },
    ] {
        assert!(start(shape, 3.0).is_err(), "{shape:?}");
        assert!(shape.least_std_dev(Epsilon::new(1.0).unwrap(), delta()).is_err(), "{shape:?}");
    }
    for std_dev in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(start(SHAPE, std_dev).is_err(), "{std_dev}");
    }
    assert!(SHAPE.least_std_dev(Epsilon::new(1.0).unwrap(), Delta::ZERO).is_err());
}
