use dp_accountant::certificate::Derivation as _;
use dp_accountant::{AdjacencyKind, Delta, DpEvent, Epsilon, ReplaceOne, ZeroOut, bound, gaussian};
use dp_data::{Examples, RowSource};
use dp_losses::{HuberRegression, HuberSvm, LogCosh};
use dp_mechanisms::SeededRng;
use proptest::prelude::*;
use rand::RngExt;

use super::*;
use crate::derivation::{Derivation, DerivesModel};
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::recipe::{Planned, Recipe, RecordAdjacency};
use crate::recipes::{Plan, budget};

/// Rows in the unit ball of three dimensions; the first decides the label, the sign of the last is noise.
fn examples(n: usize, seed: u64) -> Examples<f64> {
    let mut rng = SeededRng::new(seed);
    let (mut rows, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let x: f64 = rng.random_range(-0.7..0.7);
        rows.extend([x, 0.5, rng.random_range(-0.4..0.4)]);
        labels.push(if x + rng.random_range(-0.2..0.2) > 0.0 { 1.0 } else { -1.0 });
    }
    Examples::dense(rows, labels, 3).unwrap()
}

/// The same with three classes.
fn examples_of_classes(n: usize, seed: u64) -> Examples<f64> {
    let two = examples(n, seed);
    let dp_data::Rows::Dense { values, .. } = two.block().rows else { unreachable!() };
    let class = |row: &[f64]| {
        if row[0] > 0.25 {
            2.0
        } else if row[0] > -0.2 {
            1.0
        } else {
            0.0
        }
    };
    let targets = values.chunks(3).map(class).collect();
    Examples::dense(values.to_vec(), targets, 3).unwrap()
}

/// Gaussian noise, even if the other law has less.
fn gaussian_noise(loss: LossKind) -> ObjPert {
    ObjPert { law: OutputNoise::Gaussian, ..ObjPert::new(loss) }
}

fn losses() -> [LossKind; 4] {
    [
        LossKind::Logistic,
        LossKind::HuberSvm(HuberSvm::USUAL),
        LossKind::HuberRegression(HuberRegression::new(0.5).unwrap()),
        LossKind::LogCosh(LogCosh::new(0.5).unwrap()),
    ]
}

/// Returns the slope of the losses above at a prediction.
fn slope(loss: LossKind, prediction: f64, target: f64) -> f64 {
    let margin = prediction * target;
    match loss {
        LossKind::Logistic => -target / (1.0 + margin.exp()),
        LossKind::HuberSvm(_) => -target * ((1.1 - margin) / 0.2).clamp(0.0, 1.0),
        LossKind::LogCosh(_) => ((prediction - target) / 0.5).tanh(),
        _ => ((prediction - target) / 0.5).clamp(-1.0, 1.0),
    }
}

/// The gradient of the objective in the sum over records, computed independently of the solver.
fn gradient(
    plan: &Plan<ObjPert, ZeroOut>,
    data: &Examples<f64>,
    weights: &[f64],
    noise: &[f64],
    centre: &[f64],
) -> Vec<f64> {
    let loss = plan.derivation().recipe.loss;
    let pull = weights.iter().zip(centre).zip(noise).map(|((w, c), b)| plan.run().regularization() * (w - c) + b);
    let mut gradient: Vec<f64> = pull.collect();
    let dp_data::Rows::Dense { values, .. } = data.block().rows else { unreachable!() };
    for (row, &target) in values.chunks(3).zip(data.targets()) {
        let predictions: Vec<f64> =
            weights.chunks(3).map(|of_class| of_class.iter().zip(row).map(|(w, x)| w * x).sum()).collect();
        let total: f64 = predictions.iter().map(|z| z.exp()).sum();
        for (class, (gradient, z)) in gradient.chunks_mut(3).zip(&predictions).enumerate() {
            let slope = match loss {
                LossKind::Softmax(_) => z.exp() / total - if class as f64 == target { 1.0 } else { 0.0 },
                _ => slope(loss, *z, target),
            };
            gradient.iter_mut().zip(row).for_each(|(g, x)| *g += slope * x);
        }
    }
    gradient
}

/// The released point is near the minimiser: the gradient of the objective is at most as long as the certificate states, even
/// if noise and centre have moved the minimiser far.
#[test]
fn the_minimiser_is_certified_whatever_the_noise() {
    let three: LossKind = "softmax:3".parse().unwrap();
    for loss in losses().into_iter().chain([three]) {
        let classes = loss == three;
        let data = if classes { examples_of_classes(300, 1) } else { examples(300, 1) };
        let recipe = ObjPert { lambda: Some(0.02), ..ObjPert::new(loss).centred() };
        let plan = recipe.plan::<ZeroOut>(300, 3, budget(8.0, 1e-6));
        let plan = plan.unwrap_or_else(|error| panic!("{loss}: {error}"));
        let mut rng = SeededRng::new(2);
        for scale in [0.0, 1.0, 4.0] {
            let mut anywhere = |size: f64| -> Vec<f64> {
                (0..if classes { 9 } else { 3 }).map(|_| size * rng.random_range(-1.0..1.0)).collect()
            };
            let (noise, centre) = (anywhere(scale * plan.run().noise().scale()), anywhere(3.0 * scale));
            let mut source = MemorySource::new(data.clone(), 1.0, loss.usual_target_bound());
            let weights = plan.run().minimiser::<f64>(&mut source, &noise, &centre, &mut Control::default()).unwrap();
            let gradient = gradient(&plan, &data, &weights, &noise, &centre);
            let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            assert!(norm <= plan.run().regularization() * plan.run().tolerance(), "{loss}, {scale}: {norm:e}");
            assert!(plan.run().tolerance() < 1e-5, "{loss}: {:e}", plan.run().tolerance());
        }
    }
}

/// Computes the density of the minimiser in one dimension, by the change of variables, on data sets that differ in one record:
/// their delta never exceeds the accountant's, and nearly attains it.
#[test]
fn brute_force_in_one_dimension() {
    let mut largest: f64 = 0.0;
    for (seed, epsilon) in [(1, 0.5), (2, 1.0), (3, 2.0)] {
        let mut rng = SeededRng::new(seed);
        for _ in 0..20 {
            let n = 4u32;
            let lambda = Some(rng.random_range(0.3..3.0) / f64::from(n));
            let recipe = ObjPert { lambda, ..gaussian_noise(LossKind::Logistic) };
            let plan = recipe.plan::<ZeroOut>(n.into(), 1, budget(epsilon, 1e-3)).unwrap();
            let (lambda, s) = (plan.run().regularization(), plan.run().noise().scale());
            let mut record = || (rng.random_range(-1.0..1.0f64), if rng.random_bool(0.5) { 1.0 } else { -1.0 });
            let mut common: Vec<(f64, f64)> = (1..n).map(|_| record()).collect();
            // Records that push to one side leave the differing one a steep slope.
            common.iter_mut().for_each(|(x, y)| *y = x.signum());
            let differing = (1.0, -1.0);
            let log_density = |w: f64, with: bool| {
                let records = common.iter().chain(with.then_some(&differing));
                let (mut gradient, mut curvature) = (lambda * w, lambda);
                for &(x, y) in records {
                    let g = 1.0 / (1.0 + (y * x * w).exp());
                    gradient -= g * y * x;
                    curvature += g * (1.0 - g) * x * x;
                }
                // b = -gradient.
                -0.5 * (gradient / s).powi(2) + (curvature / s).ln() - 0.5 * (2.0 * core::f64::consts::PI).ln()
            };
            for removal in [true, false] {
                let (mut delta, mut mass) = (0.0, 0.0);
                let reach = 14.0 * s / lambda + 10.0 / lambda;
                let step = reach / 40_000.0;
                for i in -40_000..40_000 {
                    let w = (f64::from(i) + 0.5) * step;
                    let (p, q) = (log_density(w, removal), log_density(w, !removal));
                    mass += step * p.exp();
                    delta += step * (p.exp() - (epsilon + q).exp()).max(0.0);
                }
                assert!((mass - 1.0).abs() < 1e-3, "{mass}");
                let DpEvent::Composed { events } = plan.event() else { panic!("a composition") };
                let claimed = bound::delta(&events[0], epsilon).unwrap().value;
                assert!(delta <= claimed * (1.0 + 1e-3), "{delta} against {claimed}");
                largest = largest.max(delta / claimed);
            }
        }
    }
    assert!(largest > 0.5, "{largest}");
}

#[test]
fn what_is_logged_is_what_was_planned_and_what_a_reader_recomputes() {
    let usual = ObjPert::new(LossKind::Logistic);
    for recipe in [
        gaussian_noise(LossKind::Logistic),
        ObjPert { noise_mode: NoiseMode::Rounded, ..gaussian_noise(LossKind::Logistic) },
        usual.clone(),
        usual.centred(),
    ] {
        let plan = recipe.plan::<ReplaceOne>(300, 3, budget(1.0, 1e-6)).unwrap();
        let mut source = MemorySource::new(examples(300, 4), 1.0, 1.0);
        let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(5), &mut Control::default()).unwrap();
        assert_eq!(trained.log.to_event(), plan.event());
        assert_eq!(trained.derivation.event().unwrap(), plan.event());
        assert!(!trained.log.is_private(), "the generator was reproducible");
        assert!(plan.reached().epsilon <= 1.0 && plan.reached().epsilon > 0.999);
        assert_eq!(plan.derivation().model_terms().weights, 3);
        let again = plan.train::<f64>(&mut source, &mut SeededRng::new(5), &mut Control::default()).unwrap();
        assert_eq!(again.weights.get(), trained.weights.get());
        let other = plan.train::<f64>(&mut source, &mut SeededRng::new(6), &mut Control::default()).unwrap();
        assert_ne!(other.weights.get(), trained.weights.get());
        // A stated noise below the actual one gives more epsilon.
        let mut edited = plan.derivation().clone();
        let release = &mut edited.calibrated.release;
        *release = release.with_scale(release.scale() / 1000.0);
        let delta = Delta::new(1e-6).unwrap();
        assert!(bound::epsilon(&edited.event().unwrap(), delta).unwrap().value > 1.1);
        let found = plan.derivation().calibrated;
        let with = |calibrated| Derivation { calibrated, ..plan.derivation().clone() };
        if let Some(centre) = found.centre {
            let edited = with(Perturbation { centre: Some(centre.with_scale(centre.scale() / 10.0)), ..found });
            assert!(bound::epsilon(&edited.event().unwrap(), delta).unwrap().value > 1.1);
        }
        // Both noises have the same law.
        let release = NoiseScale::new(!plan.run().noise().is_pure(), plan.run().release_noise().scale());
        let other = with(Perturbation { release, ..found });
        assert!(matches!(other.event(), Err(Error::NotProved { .. })));
    }
}

/// A derivation that states a λ has no other regulariser, which a published calibration may only raise.
#[test]
fn a_stated_lambda_is_that_of_the_regularizer() {
    for calibration in [Calibration::Exact, Calibration::Kst12] {
        let recipe = ObjPert { lambda: Some(0.01), calibration, ..gaussian_noise(LossKind::Logistic) };
        let plan = recipe.plan::<ZeroOut>(3000, 4, budget(1.0, 1e-6)).unwrap();
        assert!(plan.derivation().event().is_ok());
        for (lambda, holds) in [(0.02, false), (0.0099, calibration != Calibration::Exact)] {
            let recipe = ObjPert { lambda: Some(lambda), ..recipe.clone() };
            let edited = Derivation { recipe, ..plan.derivation().clone() };
            assert_eq!(edited.event().is_ok(), holds, "{calibration:?} {lambda}");
        }
    }
}

#[test]
fn it_costs_what_one_gaussian_release_costs() {
    let (epsilon, delta) = (Epsilon::new(1.0).unwrap(), Delta::new(1e-8).unwrap());
    let gaussian = gaussian::noise_multiplier(epsilon, delta).unwrap().get();
    // A regulariser of 1/ε in the sum.
    let recipe = ObjPert { lambda: Some(1.0 / 5000.0), ..gaussian_noise(LossKind::Logistic) };
    let plan = recipe.plan::<ZeroOut>(5000, 10, budget(1.0, 1e-8)).unwrap();
    let ratio = plan.run().noise().scale() / gaussian;
    assert!((1.0..1.005).contains(&ratio), "{ratio}");
    // A replacement is a removal and an addition, each at half of ε.
    let recipe = ObjPert { lambda: Some(2.0 / 5000.0), ..recipe };
    let replaced = recipe.plan::<ReplaceOne>(5000, 10, budget(1.0, 1e-8)).unwrap();
    let ratio = replaced.run().noise().scale() / plan.run().noise().scale();
    assert!((1.95..2.2).contains(&ratio), "{ratio}");
    // The noise that hides the solver's error is negligible beside that of the objective, converted to weights by the
    // curvature.
    assert!(
        plan.run().release_noise().scale() < 1e-2 * plan.run().noise().scale() / (0.25 * 5000.0),
        "{:e}",
        plan.run().release_noise().scale()
    );
}

/// Rows twice as long with a regulariser four times as large are an equivalent problem.
#[test]
fn the_scale_of_the_rows_does_not_matter() {
    let one = ObjPert { lambda: Some(0.01), ..ObjPert::new(LossKind::Logistic) };
    let two = ObjPert { lambda: Some(0.04), row_norm: 2.0, ..one.clone() };
    let plan = |recipe: &ObjPert| recipe.plan::<ZeroOut>(1000, 4, budget(0.7, 1e-7)).unwrap();
    let ratio = plan(&two).run().noise().scale() / plan(&one).run().noise().scale();
    assert!((ratio - 2.0).abs() < 1e-6, "{ratio}");
    let (one, two) = (ObjPert { lambda: None, ..one }, ObjPert { lambda: None, ..two });
    let ratio = plan(&two).run().regularization() / plan(&one).run().regularization();
    assert!((ratio - 4.0).abs() < 1e-9, "{ratio}");
}

/// Without delta, and with delta if it gives less noise: the cost is that of a Laplace release of one gradient, plus a
/// thousandth for the noise that hides the solver's error.
#[test]
fn without_delta_it_costs_what_one_laplace_release_costs() {
    let recipe = ObjPert { lambda: Some(1.0 / 5000.0), ..ObjPert::new(LossKind::Logistic) };
    for delta in [0.0, 1e-8] {
        let plan = recipe.plan::<ZeroOut>(5000, 10, budget(1.0, delta)).unwrap();
        assert!(plan.run().noise().is_pure());
        assert!((1.0005..1.0012).contains(&plan.run().noise().scale()), "{}", plan.run().noise().scale());
        assert_eq!(plan.reached().delta, 0.0);
        let three = recipe.plan_copies::<ZeroOut>(5000, 10, budget(3.0, delta), 3).unwrap();
        let ratio = three.run().noise().scale() / plan.run().noise().scale();
        assert!((ratio - 1.0).abs() < 1e-4 || !three.run().noise().is_pure(), "{ratio}");
        let replaced = ObjPert { lambda: Some(2.0 / 5000.0), ..recipe.clone() };
        let replaced = replaced.plan::<ReplaceOne>(5000, 10, budget(1.0, delta)).unwrap();
        assert!((replaced.run().noise().scale() / plan.run().noise().scale() - 2.0).abs() < 1e-4);
    }
    // In many dimensions the Gaussian has less noise.
    assert!(!recipe.plan::<ZeroOut>(5000, 60, budget(1.0, 1e-8)).unwrap().run().noise().is_pure());
    // Softmax: gradients of norm √2, and the determinants.
    let softmax = ObjPert { law: OutputNoise::LaplaceBall, ..ObjPert::new("softmax:4".parse().unwrap()) };
    let plan = softmax.plan::<ZeroOut>(5000, 10, budget(1.0, 0.0)).unwrap();
    let least = 2f64.sqrt() / 1.0;
    assert!(
        plan.run().noise().scale() > least && plan.run().noise().scale() < 1.15 * least,
        "{}",
        plan.run().noise().scale()
    );
}

#[test]
fn a_centre_is_a_tenth_of_the_cost() {
    let usual = gaussian_noise(LossKind::Logistic);
    let plan = usual.clone().centred().plan::<ZeroOut>(5000, 10, budget(1.0, 1e-8)).unwrap();
    let gaussian = gaussian::noise_multiplier(Epsilon::new(1.0).unwrap(), Delta::new(1e-8).unwrap()).unwrap().get();
    let centre = plan.run().centre_noise().unwrap().scale();
    assert!((centre / (gaussian * 20f64.sqrt()) - 1.0).abs() < 1e-6, "{centre}");
    // √(10/9) times the noise on the rest, and a little more for the small regulariser.
    let ratio = plan.run().noise().scale() / gaussian;
    assert!((1.054..1.09).contains(&ratio), "{ratio}");
    let DpEvent::Composed { events } = plan.event() else { panic!("a composition") };
    assert_eq!(events.len(), 3);
    assert_eq!(usual.plan::<ZeroOut>(5000, 10, budget(1.0, 1e-8)).unwrap().run().centre_noise(), None);
}

/// The regulariser shrinks towards the centre and not towards 0: with one this large, a model around 0 has tiny weights.
#[test]
fn the_model_is_near_its_centre() {
    let heavy = ObjPert { lambda: Some(3.0), ..gaussian_noise(LossKind::Logistic) };
    let train = |recipe: &ObjPert| {
        let plan = recipe.plan::<ZeroOut>(4000, 3, budget(4.0, 1e-6)).unwrap();
        let mut source = MemorySource::new(examples(4000, 8), 1.0, 1.0);
        plan.train::<f64>(&mut source, &mut SeededRng::new(9), &mut Control::default()).unwrap().weights.into_inner()
    };
    let (around_0, around_centre) = (train(&heavy), train(&heavy.clone().centred()));
    assert!(around_0[0].abs() < 0.2 && around_centre[0] > 2.0, "{around_0:?} {around_centre:?}");
}

/// The least tolerance grows with the number of records; the noise that hides the error still has a negligible effect on
/// predictions, and costs little.
#[test]
fn the_noise_on_the_minimiser_is_not_seen() {
    for (delta, law) in [(1e-8, OutputNoise::Gaussian), (0.0, OutputNoise::LaplaceBall)] {
        let recipe = ObjPert { law, ..ObjPert::new(LossKind::Logistic) };
        for epsilon in [0.1, 0.5, 2.0, 4.0] {
            let plan = |n| recipe.plan::<ReplaceOne>(n, 55, budget(epsilon, delta)).unwrap();
            let of_few = plan(1000).run().regularization();
            for n in [1000, 80_000, 500_000] {
                let lambda = Some(of_few / n as f64);
                let one =
                    ObjPert { lambda, ..recipe.clone() }.plan::<ReplaceOne>(n, 55, budget(epsilon, delta)).unwrap();
                let seen = one.run().release_noise().coordinate_std_dev(55);
                assert!(seen < 0.05, "delta {delta}, epsilon {epsilon}, {n} records: {seen}");
                let more = one.run().noise().scale() / plan(1000).run().noise().scale();
                assert!((0.999..1.06).contains(&more), "delta {delta}, epsilon {epsilon}, {n} records: {more}");
            }
        }
    }
}

/// A change of the units of targets, loss width and tolerance scales the weights, and the noise on them, by the same factor.
#[test]
fn the_unit_of_the_targets_does_not_matter() {
    let plan = |unit: f64| {
        let loss = LossKind::HuberRegression(HuberRegression::new(0.5 * unit).unwrap());
        let lambda = Some(2e-5 / unit);
        let recipe = ObjPert { lambda, target_bound: unit, ..gaussian_noise(loss) };
        let recipe = ObjPert { gradient_tolerance: Some(4e-11), ..recipe };
        recipe.plan::<ZeroOut>(400_000, 20, budget(1.0, 1e-6)).unwrap()
    };
    let (one, hundred) = (plan(1.0), plan(100.0));
    let ratio = hundred.run().release_noise().scale() / one.run().release_noise().scale();
    assert!((ratio / 100.0 - 1.0).abs() < 1e-6, "{ratio}");
    assert!((hundred.run().noise().scale() / one.run().noise().scale() - 1.0).abs() < 1e-6);
    // Between the two limits, so that the balance determines it.
    let multiplier = one.run().release_noise().scale() / (2.0 * one.run().tolerance() * one.run().noise().scale());
    assert!(multiplier > 1.6 && multiplier < 29.0, "{multiplier}");
}

#[test]
fn it_learns() {
    let three: LossKind = "softmax:3".parse().unwrap();
    for (loss, delta) in losses().into_iter().chain([three]).flat_map(|loss| [(loss, 1e-6), (loss, 0.0)]) {
        for recipe in [ObjPert::new(loss), ObjPert::new(loss).centred()] {
            let plan = recipe.plan::<ZeroOut>(4000, 3, budget(1.0, delta)).unwrap();
            let table = |n, seed| if loss == three { examples_of_classes(n, seed) } else { examples(n, seed) };
            let mut source = MemorySource::new(table(4000, 8), 1.0, loss.usual_target_bound());
            let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(9), &mut Control::default()).unwrap();
            let data = table(2000, 10);
            let dp_data::Rows::Dense { values, .. } = data.block().rows else { unreachable!() };
            let score = |row: &[f64], of: &[f64]| row.iter().zip(of).map(|(x, w)| x * w).sum::<f64>();
            let weights = trained.weights.get();
            let right = values.chunks(3).zip(data.targets()).filter(|(row, target)| match loss {
                LossKind::Softmax(_) => {
                    let scores: Vec<f64> = weights.chunks(3).map(|of| score(row, of)).collect();
                    scores.iter().all(|&other| other <= scores[**target as usize])
                }
                _ => score(row, weights) * **target > 0.0,
            });
            let share = right.count() as f64 / 2000.0;
            assert!(share > 0.85, "{loss}, delta {delta}, {recipe:?}: {share}");
        }
    }
}

#[test]
fn what_is_not_proved_is_refused() {
    let refused = |recipe: &ObjPert, n, dim, budget| recipe.plan::<ZeroOut>(n, dim, budget).unwrap_err();
    let usual = ObjPert::new(LossKind::Logistic);
    let gaussian = gaussian_noise(LossKind::Logistic);
    assert!(matches!(refused(&gaussian, 100, 3, budget(1.0, 0.0)), Error::NotProved { .. }));
    for bad in [-0.1, 1.0, f64::NAN] {
        let recipe = ObjPert { centre_share: bad, ..usual.clone() };
        assert!(matches!(refused(&recipe, 100, 3, budget(1.0, 1e-6)), Error::OutOfRange { .. }), "{bad}");
    }
    for loss in ["squared", "hinge", "absolute"] {
        let recipe = ObjPert::new(loss.parse().unwrap());
        assert!(matches!(refused(&recipe, 100, 3, budget(1.0, 1e-6)), Error::NotProved { .. }), "{loss}");
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let recipe = ObjPert { lambda: Some(bad), ..usual.clone() };
        assert!(matches!(refused(&recipe, 100, 3, budget(1.0, 1e-6)), Error::OutOfRange { .. }), "{bad}");
    }
    assert!(matches!(refused(&usual, 0, 3, budget(1.0, 1e-6)), Error::Count { .. }));
    assert!(matches!(refused(&usual, 3, 0, budget(1.0, 1e-6)), Error::Count { .. }));
    let none = ObjPert { noise_mode: NoiseMode::None, ..usual.clone() };
    assert!(matches!(refused(&none, 100, 3, budget(1.0, 1e-6)), Error::NotProved { .. }));
    let plan = usual.plan::<ZeroOut>(300, 3, budget(1.0, 1e-6)).unwrap();
    let mut wider = MemorySource::new(examples(300, 4), 2.0, 1.0);
    let error = plan.train::<f64>(&mut wider, &mut SeededRng::new(5), &mut Control::default()).unwrap_err();
    assert!(matches!(error, Error::Bound { .. }), "{error}");
    assert_eq!(wider.describe().unwrap().n, 300);
    assert_eq!(plan.derivation().adjacency(), AdjacencyKind::ZeroOut);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The plan is within the budget and close to it, for any public numbers; a larger budget gives less noise.
    #[test]
    fn budgets_are_kept(epsilon in 0.05..4.0f64, log_delta in -12.0..-3.0f64, n in 50u64..100_000, dim in 1u64..200, copies in 1u64..4) {
        let delta = 10f64.powf(log_delta);
        let recipe = gaussian_noise(LossKind::Logistic);
        let plan = recipe.plan_copies::<ZeroOut>(n, dim, budget(epsilon, delta), copies).unwrap();
        prop_assert!(plan.reached().epsilon <= epsilon && plan.reached().epsilon > 0.99 * epsilon);
        let more = ObjPert { lambda: Some(plan.run().regularization() / n as f64), ..recipe };
        let more = more.plan_copies::<ZeroOut>(n, dim, budget(1.3 * epsilon, delta), copies).unwrap();
        prop_assert!(more.run().noise().scale() < plan.run().noise().scale());
        prop_assert!(plan.run().tolerance() > 0.0 && plan.run().release_noise().scale() > 0.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// The same for every loss, law, centre and relation.
    #[test]
    fn budgets_are_kept_whatever_the_recipe(
        epsilon in 0.05..4.0f64,
        pure in any::<bool>(),
        centred in any::<bool>(),
        loss in 0usize..4,
        n in 50u64..100_000,
        dim in 1u64..40,
    ) {
        let delta = if pure { 0.0 } else { 1e-7 };
        let loss = [losses()[0], losses()[1], losses()[2], "softmax:4".parse().unwrap()][loss];
        let recipe = ObjPert::new(loss);
        let recipe = if centred { recipe.centred() } else { recipe };
        let plan = recipe.plan::<ZeroOut>(n, dim, budget(epsilon, delta)).unwrap();
        prop_assert!(plan.reached().epsilon <= epsilon && plan.reached().epsilon > 0.98 * epsilon);
        prop_assert!(plan.reached().delta <= delta);
        prop_assert_eq!(plan.derivation().event().unwrap(), plan.event());
        let replaced = recipe.plan::<ReplaceOne>(n, dim, budget(epsilon, delta)).unwrap();
        prop_assert!(replaced.reached().epsilon <= epsilon && replaced.run().regularization() >= plan.run().regularization());
    }
}

/// For every published calibration, the plan has at least the necessary noise and promises the result of the accounting.
fn published_is_enough<A: RecordAdjacency>(calibration: Calibration, loss: LossKind, lambda: f64, budget: Budget) {
    let published = ObjPert { calibration, lambda: Some(lambda), row_norm: 2.0, ..ObjPert::new(loss) };
    let plan = match published.plan::<A>(4000, 5, budget) {
        Ok(plan) => plan,
        // Calibrations that need a regulariser above the curvature, or above the cost of its determinant, return an error.
        Err(Error::OutOfRange { name: "lambda", .. } | Error::NotProved { .. }) => {
            assert!(calibration == Calibration::Rdp, "{calibration:?} {loss}");
            return;
        }
        Err(error) => panic!("{calibration:?} {loss}: {error}"),
    };
    assert!(plan.reached().epsilon <= budget.epsilon.get(), "{calibration:?} {loss}: {:?}", plan.reached());
    let pure = calibration == Calibration::Cms11;
    let law = if pure { OutputNoise::LaplaceBall } else { OutputNoise::Gaussian };
    let lambda = Some(plan.run().regularization() / 4000.0);
    let exact = ObjPert { law, lambda, calibration: Calibration::Exact, ..published };
    let exact = exact.plan::<A>(4000, 5, budget).unwrap();
    let ratio = plan.run().noise().scale() / exact.run().noise().scale();
    assert!(ratio >= 1.0 - 1e-9, "{calibration:?} {loss}: {ratio}");
    assert!(plan.run().release_noise().scale() >= exact.run().release_noise().scale() * (1.0 - 1e-9));
}

#[test]
fn published_calibrations_are_never_below_what_is_needed() {
    for calibration in [Calibration::Cms11, Calibration::Kst12, Calibration::Rdp, Calibration::Amp] {
        for loss in losses() {
            published_is_enough::<ZeroOut>(calibration, loss, 0.001, budget(0.1, 1e-8));
            published_is_enough::<ZeroOut>(calibration, loss, 0.1, budget(2.0, 1e-6));
        }
        published_is_enough::<ReplaceOne>(calibration, LossKind::Logistic, 0.1, budget(1.0, 1e-6));
    }
    let without = ObjPert { calibration: Calibration::Kst12, ..ObjPert::new(LossKind::Logistic) };
    assert!(without.plan::<ZeroOut>(1000, 5, budget(1.0, 0.0)).is_err());
    let classes = ObjPert { calibration: Calibration::Cms11, ..ObjPert::new("softmax:3".parse().unwrap()) };
    assert!(classes.plan::<ZeroOut>(1000, 5, budget(1.0, 1e-6)).is_err());
    assert!(without.centred().plan::<ZeroOut>(1000, 5, budget(1.0, 1e-6)).is_err());
}

/// A larger tolerance gives a point farther from the minimiser, under proportionally more noise; the guarantee is the same.
#[test]
fn a_tolerance_buys_time_for_noise() {
    let usual = ObjPert { lambda: Some(0.01), ..ObjPert::approximate(LossKind::Logistic) };
    let plan = |recipe: &ObjPert| recipe.plan::<ZeroOut>(2000, 3, budget(1.0, 1e-6)).unwrap();
    let (tight, loose) = (plan(&usual), plan(&ObjPert { gradient_tolerance: Some(1e-5), ..usual.clone() }));
    // 1e-5 of the mean over a strong convexity of 0.01.
    assert!((loose.run().tolerance() - 1e-3).abs() < 1e-15 && tight.run().tolerance() < 1e-6);
    // More noise in the objective, so that less is needed on the minimiser: up to √(1 + 1/1.5²) times.
    let more = loose.run().noise().scale() / tight.run().noise().scale();
    assert!(more > 1.0 && more < 1.21, "{more}");
    let multiplier = |plan: &Plan<ObjPert, ZeroOut>| {
        plan.run().release_noise().scale() / (2.0 * plan.run().tolerance() * plan.run().noise().scale())
    };
    assert!((1.5 - 1e-9..2.0).contains(&multiplier(&loose)) && (multiplier(&tight) - 30.0).abs() < 1e-9);
    assert!(loose.reached().epsilon <= 1.0 && tight.reached().epsilon <= 1.0);
    let data = examples(2000, 5);
    let weights = |plan: &Plan<ObjPert, ZeroOut>| {
        let mut source = MemorySource::new(data.clone(), 1.0, 1.0);
        plan.run().minimiser::<f64>(&mut source, &[3.0, -2.0, 1.0], &[0.0; 3], &mut Control::default()).unwrap()
    };
    let apart: f64 = weights(&tight).iter().zip(weights(&loose)).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    assert!(apart <= loose.run().tolerance() && apart > 0.0, "{apart}");
}

/// The recommended regulariser, `max(0.3 n q^{3/2}, least/ε)`, or with 0.35 around a centre, for rows of norm 2: the first
/// term with many records, with few the least of each loss and law.
#[test]
fn the_regulariser_follows_its_formula() {
    use super::part::Part;
    let problem = |recipe: &ObjPert, n, dim| Problem::new(recipe, n, dim, AdjacencyKind::ZeroOut).unwrap();
    let huber = |text: &str| -> LossKind { text.parse().unwrap() };
    for (loss, law, copies, least) in [
        (LossKind::Logistic, OutputNoise::LaplaceBall, 1, [0.5, 0.4]),
        (LossKind::Logistic, OutputNoise::Gaussian, 1, [0.7, 0.8]),
        (LossKind::Logistic, OutputNoise::Gaussian, 4, [3.0, 3.0]),
        (huber("huber-svm:0.25"), OutputNoise::Gaussian, 1, [20.0, 20.0]),
        (huber("huber-regression:0.25"), OutputNoise::Gaussian, 1, [40.0, 40.0]),
        (huber("log-cosh:0.25"), OutputNoise::Gaussian, 1, [9.6, 9.6]),
        (huber("log-cosh:0.25"), OutputNoise::Gaussian, 4, [24.0, 24.0]),
        (huber("softmax:4"), OutputNoise::Gaussian, 1, [7.5, 7.5]),
    ] {
        for (centre_share, least) in [0.0, 0.1].into_iter().zip(least) {
            let recipe = ObjPert { law, centre_share, row_norm: 2.0, ..ObjPert::new(loss) };
            let part = Part::of(&recipe, &problem(&recipe, 20, 9), budget(0.8, 1e-6), copies).unwrap();
            let epsilon = 0.8 / if part.pure { copies as f64 } else { (copies as f64).sqrt() };
            let parameters = if loss.outputs() > 1 { 36.0f64 } else { 9.0 };
            let of_gradient = if loss.outputs() > 1 { 2f64.sqrt() } else { 1.0 };
            let of_coordinate = if part.pure { (parameters + 1.0).sqrt() / epsilon } else { part.multiplier };
            for n in [20u64, 1 << 36] {
                let q = of_gradient * of_coordinate * parameters.sqrt() / n as f64;
                let balance = if centre_share > 0.0 { 0.35 } else { 0.3 };
                let expected = 4.0 * (balance * n as f64 * q.powf(1.5)).max(least / epsilon);
                let found = part.regularization(&recipe, &problem(&recipe, n, 9)).unwrap();
                assert!(
                    (found / expected - 1.0).abs() < 1e-12,
                    "{loss} {law:?} {copies} {centre_share} {n}: {found} {expected}"
                );
            }
        }
    }
    // Around a centre the noise is Gaussian, even if the other law has less.
    for (centre_share, pure) in [(0.0, true), (0.1, false)] {
        let recipe = ObjPert { centre_share, ..ObjPert::new(LossKind::Logistic) };
        let part = Part::of(&recipe, &problem(&recipe, 20, 2), budget(0.8, 1e-9), 1).unwrap();
        assert_eq!(part.pure, pure);
    }
    // The published noise for each of several copies is that of its part of the budget, in units of the rows' norm.
    for calibration in [Calibration::Kst12, Calibration::Amp] {
        let recipe = ObjPert { calibration, row_norm: 2.0, ..ObjPert::new(LossKind::Logistic) };
        let part = Part::of(&recipe, &problem(&recipe, 20, 9), budget(0.8, 1e-6), 4).unwrap();
        let found = part.published(&recipe, 60.0, budget(0.8, 1e-6), AdjacencyKind::ZeroOut, 4).unwrap();
        let margin = MarginLoss::Logistic;
        let one = published::published(calibration, margin, 15.0, budget(0.2, 0.25e-6), AdjacencyKind::ZeroOut);
        assert_eq!(found, Some(one.unwrap()), "{calibration:?}");
    }
    for (bound, accept) in [(1.0, true), (0.5, true), (1.0 + 1e-15, false)] {
        let recipe = ObjPert { target_bound: bound, ..ObjPert::new(LossKind::Logistic) };
        assert_eq!(Problem::new(&recipe, 100, 3, AdjacencyKind::ZeroOut).is_ok(), accept, "{bound}");
    }
}

/// Certificates that predate compensated gradients have no certification field, and keep their form.
#[cfg(feature = "serde")]
#[test]
fn an_earlier_certification_is_not_written() {
    let plan = ObjPert::new(LossKind::Logistic).plan::<ZeroOut>(300, 3, budget(1.0, 1e-6)).unwrap();
    let with = |calibrated| Derivation { calibrated, ..plan.derivation().clone() };
    for (certification, said) in [(Certification::Compensated, true), (Certification::Plain, false)] {
        let derivation = with(Perturbation { certification, ..plan.derivation().calibrated });
        let text = serde_json::to_string(&derivation).unwrap();
        assert_eq!(text.contains("certification"), said, "{text}");
        assert_eq!(serde_json::from_str::<Derivation<ObjPert>>(&text).unwrap(), derivation);
    }
}
