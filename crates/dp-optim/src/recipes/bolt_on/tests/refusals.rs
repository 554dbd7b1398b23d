//! What is refused, and what a failed run leaves behind: nothing.

use super::*;

#[test]
fn what_is_not_proved_is_refused() {
    let convex = BoltOn::convex(LossKind::Logistic);
    let strongly = BoltOn::strongly_convex(LossKind::Logistic, 0.1);
    let certified = Stopping::CertifiedMinimiser { tolerance: None };
    let refused: Vec<(&str, BoltOn, f64)> = vec![
        ("no pass", BoltOn { passes: 0, ..convex.clone() }, 0.0),
        ("no batch", BoltOn { batch_size: 0, ..convex.clone() }, 0.0),
        ("strong convexity from nowhere", BoltOn { lambda: 0.0, ..strongly.clone() }, 0.0),
        ("negative lambda", BoltOn { lambda: -1.0, ..convex.clone() }, 0.0),
        ("NaN lambda", BoltOn { lambda: f64::NAN, ..strongly.clone() }, 0.0),
        ("unbounded gradients", BoltOn { loss: LossKind::Squared, ..convex.clone() }, 0.0),
        ("Gaussian without delta", BoltOn { output_noise: OutputNoise::Gaussian, ..convex.clone() }, 0.0),
        ("long rows", BoltOn { row_norm: 2.0, ..convex.clone() }, 0.0),
        ("long targets of two classes", BoltOn { target_bound: 5.0, ..convex.clone() }, 0.0),
        ("NaN targets of two classes", BoltOn { target_bound: f64::NAN, ..convex.clone() }, 0.0),
        ("NaN radius", BoltOn { radius: Some(f64::NAN), ..convex.clone() }, 0.0),
        ("minimiser of a convex risk", BoltOn { stopping: certified, ..convex.clone() }, 0.0),
        ("minimiser in a ball", BoltOn { stopping: certified, radius: Some(1.0), ..strongly.clone() }, 0.0),
        ("averaged minimiser", BoltOn { stopping: certified, averaging: Averaging::Uniform, ..strongly.clone() }, 0.0),
        ("no batch before a minimiser", BoltOn { stopping: certified, batch_size: 0, ..strongly.clone() }, 0.0),
        (
            "long steps in f32",
            BoltOn { float: FloatKind::F32, schedule: Some(Schedule::Constant { step: 9.0 }), ..convex.clone() },
            0.0,
        ),
        ("minimiser in f32", BoltOn { stopping: certified, float: FloatKind::F32, ..strongly.clone() }, 0.0),
    ];
    for (name, recipe, delta) in refused {
        assert!(recipe.plan::<ReplaceOne>(100, 3, budget(1.0, delta)).is_err(), "{name}");
    }
    assert!(convex.plan::<ReplaceOne>(0, 3, budget(1.0, 0.0)).is_err());
    assert!(convex.plan::<ReplaceOne>(100, 0, budget(1.0, 0.0)).is_err());
    assert!(convex.plan::<ReplaceOne>(1, 1, budget(1.0, 0.0)).is_ok());
    let derivation = |relation| Derivation {
        relation,
        ..convex.plan::<ReplaceOne>(9, 1, budget(1.0, 0.0)).unwrap().derivation().clone()
    };
    for relation in [AdjacencyKind::AddRemoveOne, AdjacencyKind::ChangeListLabels] {
        assert!(matches!(derivation(relation).event(), Err(Error::Adjacency { .. })));
    }
}

#[test]
fn absurd_certificates_are_refused_quickly() {
    let plan = BoltOn::convex(LossKind::Logistic).plan::<ReplaceOne>(100, 3, budget(1.0, 0.0)).unwrap();
    let good = plan.derivation().clone();
    let uniform = BoltOn { averaging: Averaging::Uniform, batch_size: 1, ..good.recipe.clone() };
    for n in [u64::MAX, 1 << 60, 1 << 40] {
        let absurd = Derivation { n, recipe: uniform.clone(), ..good.clone() };
        assert!(absurd.event().is_err(), "{n}");
        assert!(Derivation { dim: n, ..good.clone() }.event().is_err() || n < 1 << 44);
    }
}

#[test]
fn steps_that_could_overflow_for_some_records_are_refused() {
    // With a radius these have a finite sensitivity, but a gradient above 1.8 would overflow, so that the release would fail
    // depending on the records.
    let long = |step, float| BoltOn {
        loss: LossKind::Squared,
        radius: Some(1.0),
        passes: 1,
        float,
        schedule: Some(Schedule::Constant { step }),
        ..BoltOn::convex(LossKind::Squared)
    };
    let plan = |recipe: BoltOn| recipe.plan::<ReplaceOne>(10, 3, budget(1.0, 0.0)).map(|_| ());
    assert!(matches!(plan(long(1e308, FloatKind::F64)), Err(Error::NotProved { .. })));
    assert!(plan(long(1e100, FloatKind::F64)).is_ok());
    let short_rows = |float| BoltOn { row_norm: 1e-30, ..long(1e59, float) };
    assert!(matches!(plan(short_rows(FloatKind::F32)), Err(Error::NotProved { .. })));
    assert!(plan(short_rows(FloatKind::F64)).is_ok());
}

#[test]
fn nothing_is_released_when_a_run_fails() {
    let plan = BoltOn::convex(LossKind::Logistic).plan::<ReplaceOne>(200, 3, budget(1.0, 0.0)).unwrap();
    let mut rng = OsSeeded::new().unwrap();
    let mut try_with = |n, dim, cancelled: &AtomicBool| {
        let mut source = MemorySource::new(data(n, dim, 6), 1.0, 1.0);
        let mut control = Control { cancelled: Some(cancelled), ..Control::default() };
        plan.train::<f64>(&mut source, &mut rng, &mut control).map(|_| ())
    };
    let go = AtomicBool::new(false);
    assert!(matches!(try_with(199, 3, &go), Err(Error::Shape { name: "n", planned: 200, found: 199 })));
    assert!(matches!(try_with(200, 4, &go), Err(Error::Shape { name: "dim", .. })));
    assert!(matches!(try_with(200, 3, &AtomicBool::new(true)), Err(Error::Interrupted)));
    assert!(try_with(200, 3, &go).is_ok());
    let mut single = MemorySource::new(data(200, 3, 6).to_f32(), 1.0, 1.0);
    let error = plan.train::<f32>(&mut single, &mut rng, &mut Control::default()).unwrap_err();
    assert!(matches!(error, Error::FloatKind { planned: "f64", found: "f32" }));
}

#[test]
fn records_that_break_the_bounds_do_not_show() {
    // A neighbour with extreme values: nothing fails, and the runs stay within the sensitivity (a huge budget makes the noise
    // negligible).
    let n = 100;
    let recipe = BoltOn::strongly_convex(LossKind::Logistic, 0.1);
    let plan = recipe.plan::<ReplaceOne>(n, 3, budget(1e9, 0.0)).unwrap();
    let train = |first: [f64; 4]| {
        let mut examples = data(n as usize, 3, 7);
        let dp_data::Rows::Dense { values, .. } = examples.block().rows else { unreachable!() };
        let mut values = values.to_vec();
        values[..3].copy_from_slice(&first[..3]);
        let mut targets = examples.targets().to_vec();
        targets[0] = first[3];
        examples = Examples::dense(values, targets, 3).unwrap();
        let mut source = MemorySource::new(examples, 1.0, 1.0);
        let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(1), &mut Control::default()).unwrap();
        trained.weights.into_inner()
    };
    let base = train([0.0, 0.0, 0.0, 1.0]);
    for wild in [
        [f64::NAN, 0.0, 0.0, 1.0],
        [f64::INFINITY, 0.0, 0.0, -1.0],
        [1e308, -1e308, 1e308, 1.0],
        [1.0, 1.0, 1.0, f64::NAN],
        [1.0, 1.0, 1.0, -1e300],
        [-1e-320, 1e-320, 5e-324, -1.0],
    ] {
        let moved: f64 = train(wild).iter().zip(&base).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        assert!(moved <= plan.run().sensitivity(), "{wild:?}: {moved}");
    }
}

#[test]
fn a_source_that_promises_less_than_planned_is_refused() {
    let logistic = BoltOn::convex(LossKind::Logistic);
    let squared = BoltOn { loss: LossKind::Squared, radius: Some(1.0), ..logistic.clone() };
    let try_with = |recipe: &BoltOn, row_norm, target_bound| {
        let plan = recipe.plan::<ReplaceOne>(50, 3, budget(1.0, 0.0)).unwrap();
        let mut source = MemorySource::new(data(50, 3, 11), row_norm, target_bound);
        plan.train::<f64>(&mut source, &mut SeededRng::new(1), &mut Control::default()).map(|_| ())
    };
    let short = BoltOn { row_norm: 0.5, ..logistic.clone() };
    assert!(try_with(&short, 0.5, 1.0).is_ok());
    assert!(try_with(&short, 0.4, 0.9).is_ok());
    for (recipe, row_norm, target_bound) in [
        (&short, 0.6, 1.0),
        (&logistic, 1.0 + 1e-15, 1.0),
        (&logistic, f64::NAN, 1.0),
        (&logistic, f64::INFINITY, 1.0),
        (&logistic, 1.0, 1.1),
        (&squared, 1.0, 2.0),
    ] {
        let error = try_with(recipe, row_norm, target_bound).unwrap_err();
        assert!(matches!(error, Error::Bound { .. }), "{recipe:?} {row_norm} {target_bound}: {error}");
    }
}
