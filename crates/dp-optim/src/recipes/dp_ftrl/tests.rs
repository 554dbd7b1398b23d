use dp_accountant::certificate::Derivation as _;
use dp_accountant::{AdjacencyKind, DpEvent, ReplaceOne, ZeroOut};
use dp_data::{Block, Description, Examples, Order, PassRequest, RowSource, RowStream, SourceError};
use dp_mechanisms::SeededRng;
use proptest::prelude::*;
use rand::RngExt;

use super::*;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::{DpSgd, Planned, Recipe, budget};

/// Rows in the unit ball, whose labels mostly follow the sign of the first feature.
fn examples(n: usize, seed: u64) -> Examples<f64> {
    let mut rng = SeededRng::new(seed);
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let row = [rng.random_range(-0.8..0.8), rng.random_range(-0.3..0.3), 0.5];
        targets.push(if row[0] + rng.random_range(-0.2..0.2) > 0.0 { 1.0 } else { -1.0 });
        rows.extend(row);
    }
    Examples::dense(rows, targets, 3).unwrap()
}

fn train(recipe: &DpFtrl, data: Examples<f64>, budget: Budget, seed: u64) -> Vec<f64> {
    let plan = recipe.plan::<ZeroOut>(data.len() as u64, data.dim() as u64, budget).unwrap();
    let mut source = MemorySource::new(data, 1.0, 1.0);
    let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(seed), &mut Control::default()).unwrap();
    assert_eq!(trained.log.to_event(), plan.event());
    assert_eq!(trained.derivation.event().unwrap(), plan.event());
    assert!(!trained.log.is_private()); // A seeded generator.
    trained.weights.into_inner()
}

#[test]
fn without_noise_it_is_gradient_descent_in_that_order() {
    let data = examples(600, 1);
    let schedule = Some(Schedule::Constant { step: 0.5 });
    for (bands, passes) in [(None, 1), (Some(4), 3), (Some(1), 2), (None, 3)] {
        let recipe = DpFtrl {
            bands,
            passes,
            batch_size: 50,
            lambda: 0.01,
            schedule: schedule.clone(),
            declared_order: true,
            ..DpFtrl::new(LossKind::Logistic)
        };
        let weights = train(&recipe, data.clone(), budget(1e7, 1e-6), 1);
        let plain = DpSgd {
            sampling: Sampling::Passes,
            passes,
            batch_size: 50,
            lambda: 0.01,
            schedule: schedule.clone(),
            declared_order: true,
            ..DpSgd::new(LossKind::Logistic)
        };
        let plan = plain.plan::<ZeroOut>(600, 3, budget(1e7, 1e-6)).unwrap();
        let mut source = MemorySource::new(data.clone(), 1.0, 1.0);
        let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(1), &mut Control::default()).unwrap();
        for (found, expected) in weights.iter().zip(trained.weights.get()) {
            assert!((found - expected).abs() < 2e-3, "{bands:?} {passes}: {weights:?} {:?}", trained.weights.get());
        }
    }
}

/// With one band each step has independent noise: parallel composition within the pass.
#[test]
fn one_band_is_noise_of_its_own_for_each_step() {
    let recipe = DpFtrl { bands: Some(1), batch_size: 50, ..DpFtrl::new(LossKind::Logistic) };
    let plain = DpSgd { sampling: Sampling::Passes, passes: 1, batch_size: 50, ..DpSgd::new(LossKind::Logistic) };
    let ratio = recipe.plan::<ZeroOut>(1000, 3, budget(1.0, 1e-6)).unwrap().run().std_dev()
        / plain.plan::<ZeroOut>(1000, 3, budget(1.0, 1e-6)).unwrap().run().std_dev();
    assert!((ratio - 1.0).abs() < 1e-4, "{ratio}");
    // Correlated noise leaves less noise in the sum of a thousand steps.
    let one = |bands| {
        let recipe = DpFtrl { bands, batch_size: 1, ..DpFtrl::new(LossKind::Logistic) };
        recipe.plan::<ZeroOut>(1000, 3, budget(1.0, 1e-6)).unwrap().run().error_of_sums()
    };
    assert!(one(None) < 0.11 * one(Some(1)), "{} {}", one(None), one(Some(1)));
}

/// The noise of the last iterate is that of the sum of all gradients, far below that of as many independent releases.
#[test]
fn the_noise_that_is_left_in_the_model_is_as_planned() {
    // All records are null: the last of 16 iterates is noise alone.
    let data = Examples::dense(vec![f64::NAN; 64], vec![1.0; 64], 1).unwrap();
    let recipe =
        DpFtrl { batch_size: 4, schedule: Some(Schedule::Constant { step: 0.25 }), ..DpFtrl::new(LossKind::Logistic) };
    for noise_mode in [NoiseMode::Exact, NoiseMode::Rounded] {
        let recipe = DpFtrl { noise_mode, ..recipe.clone() };
        let plan = recipe.plan::<ZeroOut>(64, 1, budget(1.0, 1e-6)).unwrap();
        assert_eq!((plan.run().steps(), plan.derivation().calibrated.bands), (16, 16));
        let expected = plan.run().error_of_sums() * 0.25 / 4.0;
        let trials = 3000;
        let squares: f64 = (0..trials)
            .map(|seed| {
                let mut source = MemorySource::new(data.clone(), 1.0, 1.0);
                let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(seed), &mut Control::default());
                trained.unwrap().weights.get()[0].powi(2)
            })
            .sum();
        // A mean of 3000 squares has a relative standard deviation of 2.6%.
        let ratio = squares / trials as f64 / (expected * expected);
        assert!((ratio - 1.0).abs() < 0.15, "{noise_mode:?}: {ratio}");
    }
}

/// A source that records the requested orders.
struct Recording {
    inner: MemorySource<f64>,
    orders: Vec<Order>,
}

impl RowSource<f64> for Recording {
    fn describe(&mut self) -> Result<Description, SourceError> {
        RowSource::describe(&mut self.inner)
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        self.orders.push(request.order);
        self.inner.open_pass(request)
    }

    fn finish(&mut self) -> Result<(), SourceError> {
        self.inner.finish()
    }

    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, f64>, SourceError> {
        self.inner.gather(positions)
    }
}

/// A record is in the same batch of every pass: its steps are as far apart as the sensitivity assumes.
#[test]
fn every_pass_has_the_same_order() {
    for declared_order in [false, true] {
        let recipe = DpFtrl { passes: 3, batch_size: 10, declared_order, ..DpFtrl::new(LossKind::Logistic) };
        let plan = recipe.plan::<ZeroOut>(100, 3, budget(1.0, 1e-6)).unwrap();
        assert_eq!(plan.run().run.participation().unwrap(), Participation::repeated(3, 10).unwrap());
        let mut source = Recording { inner: MemorySource::new(examples(100, 4), 1.0, 1.0), orders: Vec::new() };
        plan.train::<f64>(&mut source, &mut SeededRng::new(1), &mut Control::default()).unwrap();
        assert_eq!(source.orders.len(), 3);
        for order in source.orders {
            match order {
                Order::Declared => assert!(declared_order),
                Order::Keyed { fresh_each_pass, .. } => assert!(!declared_order && !fresh_each_pass),
            }
        }
    }
}

/// The change of all rows of `Cf G` by one record, contribution by contribution, against the planned sensitivity.
#[test]
fn a_record_moves_the_stream_by_no_more_than_is_planned_for() {
    for (passes, batch_size, bands) in [(1, 5, None), (3, 5, None), (3, 5, Some(2)), (2, 20, Some(2)), (4, 2, Some(20))]
    {
        let recipe = DpFtrl { passes, batch_size, bands, ..DpFtrl::new(LossKind::Logistic) };
        let plan = recipe.plan::<ZeroOut>(20, 3, budget(1.0, 1e-6)).unwrap();
        let DpEvent::Gaussian { sensitivity, .. } = plan.event() else { panic!("one Gaussian") };
        let (steps, per_pass) = (plan.run().steps() as usize, 20usize.div_ceil(batch_size as usize));
        let factor = plan.run().run.factor.clone().unwrap();
        let largest = (0..per_pass)
            .map(|first| {
                let row =
                    |t| (0..passes as usize).map(|pass| factor.coefficient(t, first + pass * per_pass)).sum::<f64>();
                (0..steps).map(|t| row(t).powi(2)).sum::<f64>().sqrt()
            })
            .fold(0.0, f64::max);
        let ratio = plan.run().sensitivity() * largest / sensitivity;
        assert!(ratio <= 1.0 && ratio > 0.999, "{passes} {batch_size} {bands:?}: {ratio}");
    }
}

#[test]
fn what_is_not_proved_is_refused() {
    let usual = DpFtrl::new(LossKind::Logistic);
    let refused = |recipe: &DpFtrl, delta: f64| recipe.plan::<ZeroOut>(1000, 3, budget(1.0, delta)).unwrap_err();
    assert!(matches!(refused(&usual, 0.0), Error::NotProved { .. }));
    assert!(matches!(refused(&DpFtrl { batch_size: 0, ..usual.clone() }, 1e-6), Error::Count { .. }));
    assert!(matches!(refused(&DpFtrl { bands: Some(0), ..usual.clone() }, 1e-6), Error::Count { name: "bands", .. }));
    for passes in [0, 1 << 20, u64::MAX] {
        assert!(matches!(refused(&DpFtrl { passes, ..usual.clone() }, 1e-6), Error::Count { .. }), "{passes}");
    }
    let adam = Descent::Adam { first_decay: 0.9, second_decay: 0.99, epsilon: 1e-8 };
    assert!(matches!(refused(&DpFtrl { descent: adam, ..usual.clone() }, 1e-6), Error::NotProved { .. }));
    assert!(matches!(refused(&DpFtrl::new(LossKind::Squared), 1e-6), Error::NotProved { .. }));
    let none = DpFtrl { noise_mode: NoiseMode::None, ..usual.clone() };
    assert!(matches!(refused(&none, 1e-6), Error::NotProved { .. }));
    // Numbers of bands other than requested, or larger than the number of steps.
    let plan = DpFtrl { bands: Some(2), ..usual.clone() }.plan::<ZeroOut>(1000, 3, budget(1.0, 1e-6)).unwrap();
    for bands in [0, 3, 5] {
        let good = plan.derivation().clone();
        let edited = Derivation { calibrated: BandedNoise { bands, ..good.calibrated }, ..good };
        assert!(matches!(edited.event(), Err(Error::Count { name: "bands", .. })), "{bands}");
    }
}

#[test]
fn recommended_steps_are_no_longer_than_smoothness_allows() {
    for (n, epsilon) in [(100, 0.1), (1000, 1.0), (50_000, 0.1), (50_000, 5.0)] {
        let recipe =
            DpFtrl::recommended(LossKind::Logistic, n, 10, budget(epsilon, 1e-6), AdjacencyKind::ZeroOut).unwrap();
        let Some(Schedule::Constant { step }) = recipe.schedule else { panic!("constant") };
        assert!(step > 0.0 && step <= 4.0 && (1..=n).contains(&recipe.batch_size), "{recipe:?}");
        recipe.plan::<ZeroOut>(n, 10, budget(epsilon, 1e-6)).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn budgets_are_kept(
        epsilon in 0.05..4.0f64, n in 1u64..2000, batch_size in 1u64..300, passes in 1u64..5, copies in 1u64..4,
        bands in prop::option::of(1u64..40),
    ) {
        let recipe = DpFtrl { batch_size, passes, bands, ..DpFtrl::new(LossKind::Logistic) };
        let plan = recipe.plan_copies::<ZeroOut>(n, 4, budget(epsilon, 1e-7), copies).unwrap();
        prop_assert!(plan.reached().epsilon <= epsilon && plan.reached().epsilon > 0.99 * epsilon);
        prop_assert_eq!(plan.derivation().event().unwrap(), plan.event());
        let replaced = recipe.plan_copies::<ReplaceOne>(n, 4, budget(epsilon, 1e-7), copies).unwrap();
        prop_assert_eq!(replaced.derivation().calibrated.bands, plan.derivation().calibrated.bands);
        let ratio = replaced.run().std_dev() / plan.run().std_dev();
        prop_assert!((ratio - 2.0).abs() < 1e-3, "{}", ratio);
    }
}

/// The displayed numbers of a plan: the sensitivity of a step's sum is the clipping norm, and sums have the factor's noise.
#[test]
fn figures_follow_their_formulas() {
    let clipping = Some(ClippingNorm::new(0.3).unwrap());
    let recipe = DpFtrl { clipping, batch_size: 30, passes: 2, ..DpFtrl::new(LossKind::Logistic) };
    let plan = recipe.plan::<ReplaceOne>(600, 3, budget(1.0, 1e-6)).unwrap();
    assert!((plan.run().sensitivity() / 0.6 - 1.0).abs() < 1e-9, "{}", plan.run().sensitivity());
    assert_eq!((plan.run().steps(), plan.run().divisor()), (40, 30.0));
    let norm = plan.run().error_of_sums() * 3f64.sqrt();
    assert!(plan.summary().text.contains(&format!("{norm:.4e}")), "{} {norm:e}", plan.summary().text);
    // An increment of noisy sums is the difference of two of them, each with at most the largest noise.
    let run = recipe
        .run(&recipe.problem(600, 3, AdjacencyKind::ReplaceOne).unwrap(), plan.derivation().calibrated.bands)
        .unwrap();
    let most = 2.0 * run.factor.as_ref().unwrap().largest_error().max(1.0);
    assert!((run.largest_noise(0.25) / (1000.0 * most * 0.25 * 3f64.sqrt()) - 1.0).abs() < 1e-14);
    assert!(most > 2.0);
    assert_eq!(run.rows(), 1200);
    assert!((Schedule::usual(40).prepare(40).unwrap().at(1) - 1.0 / 40f64.sqrt()).abs() < 1e-15);
}
