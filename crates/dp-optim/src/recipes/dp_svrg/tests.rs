use crate::recipes::recipe::Recipe;
use dp_accountant::{AdjacencyKind, Delta, EventLog, ReplaceOne, ZeroOut, bound};
use dp_data::Examples;
use dp_losses::{Differences, Hinge, LinearModel, Logistic, Model, Real};
use dp_mechanisms::{Gaussian, L2Sensitivity, SeededRng};
use rand::RngExt;

use super::*;
use crate::MemorySource;
use crate::derivation::Derivation;
use crate::engine::{BatchSizes, Between, Control, NoisyGradient, StepBatches};
use crate::recipes::{AnyRecipe, DpSgd, Planned};

fn budget(epsilon: f64) -> Budget {
    Budget::new(epsilon, 1e-6).unwrap()
}

/// Rows of norm 1, whose label follows the first feature except for every tenth.
fn records(n: usize, dim: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = SeededRng::new(seed);
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    for i in 0..n {
        let row: Vec<f64> = (0..dim).map(|_| rng.random_range(-1.0..1.0)).collect();
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt() * (1.0 + 1e-9);
        let sign = if i % 10 == 0 { -1.0 } else { 1.0 };
        targets.push(if sign * row[0] > 0.0 { 1.0 } else { -1.0 });
        rows.extend(row.iter().map(|x| x / norm));
    }
    (rows, targets)
}

fn source(n: usize, dim: usize) -> MemorySource<f64> {
    let (rows, targets) = records(n, dim, 7);
    MemorySource::new(Examples::dense(rows, targets, dim).unwrap(), 1.0, 1.0)
}

fn slope(prediction: f64, target: f64) -> f64 {
    -target / (1.0 + (prediction * target).exp())
}

/// If each batch holds all records, the correction is exact: the run is gradient descent, for any number of epochs.
#[test]
fn with_whole_batches_it_is_gradient_descent() {
    let (n, dim) = (60, 3);
    let (rows, targets) = records(n, dim, 7);
    let recipe = DpSvrg {
        lambda: 0.01,
        sampling: Sampling::FixedSize,
        batch_size: n as u64,
        epochs: 3,
        epoch_steps: Some(4),
        schedule: Some(Schedule::InverseSqrt { step: 3.0 }),
        averaging: Averaging::Suffix { updates: 6 },
        ..DpSvrg::new(LossKind::Logistic)
    };
    let plan = recipe.plan::<ReplaceOne>(n as u64, dim as u64, budget(1e9)).unwrap();
    assert!(plan.run().noises().full_std_dev < 1e-3 && plan.run().noises().std_dev < 1e-3);
    let trained = plan.train::<f64>(&mut source(n, dim), &mut SeededRng::new(3), &mut Control::default()).unwrap();
    let (mut w, mut mean) = (vec![0.0; dim], vec![0.0; dim]);
    for t in 1..=12u32 {
        let mut gradient: Vec<f64> = w.iter().map(|w| 0.01 * w).collect();
        for (row, target) in rows.chunks_exact(dim).zip(&targets) {
            let slope = slope(row.iter().zip(&w).map(|(x, w)| x * w).sum(), *target);
            gradient.iter_mut().zip(row).for_each(|(g, x)| *g += slope * x / n as f64);
        }
        w.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= 3.0 / f64::from(t).sqrt() * g);
        if t > 6 {
            mean.iter_mut().zip(&w).for_each(|(mean, w)| *mean += w / 6.0);
        }
    }
    for (found, expected) in trained.weights.get().iter().zip(&mean) {
        assert!((found - expected).abs() < 1e-4, "{found} {expected}");
    }
    assert!(mean[0] > 1.0, "{mean:?}");
}

/// On small batches the steps follow gradient descent, although a plain step on such a batch would not: the largest distance
/// between runs shrinks with the differences.
#[test]
fn differences_vary_less_than_gradients() {
    let (n, dim) = (400, 3);
    let step = Some(Schedule::Constant { step: 0.5 });
    let svrg = DpSvrg {
        batch_size: 20,
        epochs: 10,
        schedule: step.clone(),
        noise_mode: NoiseMode::Rounded,
        ..DpSvrg::new(LossKind::Logistic)
    };
    let sgd = DpSgd {
        batch_size: 20,
        passes: 10,
        schedule: step,
        noise_mode: NoiseMode::Rounded,
        ..DpSgd::new(LossKind::Logistic)
    };
    let spread = |recipe: AnyRecipe| -> f64 {
        let plan = recipe.plan_copies::<ZeroOut>(n as u64, dim as u64, budget(1e3), 1).unwrap();
        let run = |seed| {
            let trained = plan.train::<f64>(&mut source(n, dim), &mut SeededRng::new(seed), &mut Control::default());
            trained.unwrap().weights.into_inner()
        };
        let runs: Vec<Vec<f64>> = (0..20).map(run).collect();
        let mean: Vec<f64> = (0..dim).map(|j| runs.iter().map(|run| run[j]).sum::<f64>() / 20.0).collect();
        runs.iter().flat_map(|run| run.iter().zip(&mean).map(|(w, m)| (w - m) * (w - m))).sum::<f64>() / 20.0
    };
    let (svrg, sgd) = (spread(svrg.into()), spread(sgd.into()));
    assert!(svrg < 0.1 * sgd && svrg > 0.0, "{svrg} {sgd}");
}

/// A record's difference, in units of D, moves a batch's sum by at most the planned sensitivity, at any two points, for any D
/// and in either float type; for small D it nearly attains it.
#[test]
fn no_record_moves_a_sum_of_differences_by_more_than_its_sensitivity() {
    fn moves<F: Real, M>(model: &M, float: FloatKind, seed: u64) -> f64
    where
        M: Differences<F> + for<'a> Model<F, Batch<'a> = dp_data::Block<'a, F>>,
    {
        let mut rng = SeededRng::new(seed);
        let (dim, mut most) = (3, 0.0f64);
        for trial in 0..400 {
            let count = rng.random_range(1..40usize);
            let null = trial % 2 == 0;
            let number = |x: f64| -> F { nalgebra::convert(x) };
            let (rows, targets) = records(count, dim, trial);
            let mut pair = [(rows.clone(), targets.clone()), (rows, targets)];
            let at = rng.random_range(0..count);
            let sign = if null { 0.0 } else { -1.0 };
            pair[1].0[at * dim..][..dim].iter_mut().for_each(|x| *x *= sign);
            let size = 10f64.powf(rng.random_range(-3.0..2.0));
            let points =
                [0, 1].map(|_| -> Vec<F> { (0..dim).map(|_| number(size * rng.random_range(-1.0..1.0))).collect() });
            let scale = 10f64.powf(rng.random_range(-3.0..9.0));
            let clipped = Contributions::Clipped(ClippingNorm::new(1.0).unwrap().into());
            let sum = StepSum {
                contributions: clipped,
                examples: 40,
                microbatch: 16,
                float,
                plain_microbatch: None,
                in_float: false,
            };
            let kind = if null { AdjacencyKind::ZeroOut } else { AdjacencyKind::ReplaceOne };
            let claimed = sum.sensitivity(kind).unwrap();
            let sums = pair.map(|(rows, targets)| {
                let examples = Examples::dense(
                    rows.into_iter().map(number).collect(),
                    targets.into_iter().map(number).collect(),
                    dim,
                );
                let examples = examples.unwrap();
                let wide = L2Sensitivity::<ReplaceOne>::new(10.0).unwrap();
                // Noise so small that sums round it away.
                let noise = Gaussian::from_std_dev(wide, 1e-30).unwrap().with_noise_mode(NoiseMode::Rounded).unwrap();
                let (mut log, mut own) = (EventLog::new(), SeededRng::new(1));
                let once = StepBatches::Passes { n: 40, sizes: BatchSizes::Equal(40), passes: 1 };
                let mut gradient = NoisyGradient::start(model, once, sum, noise.into(), &mut log, &mut own).unwrap();
                let [here, there] = points.each_ref().map(|point| &point[..]);
                let between = Between { here, there, scale: number(scale) };
                gradient.add_differences_of_rows(model, between, &mut model.pass(16), examples.block(), true).unwrap();
                gradient.release_in_double().unwrap()
            });
            let apart = sums[0].iter().zip(&sums[1]).map(|(&a, &b)| (a - b).powi(2)).sum::<f64>().sqrt();
            assert!(apart <= claimed, "{apart} {claimed} {trial}");
            most = most.max(apart / claimed);
        }
        most
    }
    assert!(moves::<f64, _>(&LinearModel::new(3, Logistic), FloatKind::F64, 1) > 0.99);
    assert!(moves::<f32, _>(&LinearModel::new(3, Logistic), FloatKind::F32, 2) > 0.98);
    assert!(moves::<f64, _>(&LinearModel::new(3, Hinge), FloatKind::F64, 3) > 0.99);
}

/// D bounds every record's difference for smooth losses, so that nothing is clipped.
#[test]
fn the_reach_bounds_the_differences() {
    let recipe = DpSvrg { row_norm: 0.7, ..DpSvrg::new(LossKind::Logistic) };
    let run = recipe.run(&recipe.problem(100, 3, AdjacencyKind::ZeroOut).unwrap()).unwrap();
    let mut rng = SeededRng::new(5);
    let mut most = 0.0f64;
    for trial in 0..2000 {
        let size = if trial % 2 == 0 { 0.05 } else { 5.0 };
        let [here, there] = [0, 1].map(|_| [0, 1, 2].map(|_| size * rng.random_range(-1.0..1.0f64)));
        let row = [0.7, 0.0, 0.0];
        let of = |w: [f64; 3]| slope(row[0] * w[0], 1.0);
        let difference = 0.7 * (of(here) - of(there)).abs();
        let distance = (0..3).map(|j| (here[j] - there[j]).powi(2)).sum::<f64>().sqrt();
        let reach = run.reach(distance);
        assert!(difference <= reach * (1.0 + 1e-12) && reach <= run.bound);
        most = most.max(difference / reach);
    }
    assert!(most > 0.9, "{most}");
    assert_eq!((run.reach(0.0), run.reach(f64::NAN)), (LEAST_REACH * run.bound, run.bound));
    // Losses with kinks have no smoothness.
    let hinge = DpSvrg::new(LossKind::Hinge);
    let hinge = hinge.run(&hinge.problem(100, 3, AdjacencyKind::ZeroOut).unwrap()).unwrap();
    assert_eq!((hinge.reach(1e-6), hinge.reach(0.0)), (hinge.bound, hinge.bound));
}

/// Both kinds of sums are in the event, under either relation, and both noises matter.
#[test]
fn both_releases_are_paid_for() {
    let recipe = DpSvrg { batch_size: 100, epochs: 4, ..DpSvrg::new(LossKind::Logistic) };
    let plan = recipe.plan::<ZeroOut>(5000, 4, budget(1.0)).unwrap();
    let DpEvent::Composed { events } = plan.event() else { panic!("{:?}", plan.event()) };
    let DpEvent::SelfComposed { count: 4, event } = &events[0] else { panic!("{events:?}") };
    assert!(matches!(**event, DpEvent::Gaussian { .. }));
    let DpEvent::SelfComposed { count: 200, event } = &events[1] else { panic!("{events:?}") };
    assert!(matches!(**event, DpEvent::PoissonSampled { .. }));
    let epsilon = |event: &DpEvent| bound::epsilon(event, Delta::new(1e-6).unwrap()).unwrap().value;
    let [full, steps] = [epsilon(&events[0]), epsilon(&events[1])];
    assert!(full > 0.6 && full < 0.95 && steps > 0.3 && steps < 0.8, "{full} {steps}");
    assert!(plan.reached().epsilon > 0.99 && plan.reached().epsilon <= 1.0);
    // Less noise on either is another event.
    let derivation = plan.derivation().clone();
    let noises = derivation.calibrated;
    for (less_full, less) in [(0.9, 1.0), (1.0, 0.9)] {
        let edited = Derivation {
            calibrated: TwoNoises { full_std_dev: less_full * noises.full_std_dev, std_dev: less * noises.std_dev },
            ..derivation.clone()
        };
        let event = dp_accountant::certificate::Derivation::event(&edited).unwrap();
        assert!(epsilon(&event) > 1.0);
    }
    let replaced = recipe.plan::<ReplaceOne>(5000, 4, budget(1.0)).unwrap();
    assert!(matches!(replaced.event(), DpEvent::AddRemoveTwice { .. }));
    assert!(
        replaced.run().noises().full_std_dev > 1.5 * plan.run().noises().full_std_dev
            && replaced.reached().epsilon <= 1.0
    );
    let fixed = DpSvrg { sampling: Sampling::FixedSize, ..recipe.clone() };
    let fixed = fixed.plan::<ReplaceOne>(5000, 4, budget(1.0)).unwrap();
    // Two records' gradients differ by at most the sum of their norms.
    let [of_two, of_one] = [fixed.run().full_sensitivity().unwrap(), plan.run().full_sensitivity().unwrap()];
    assert!(of_two <= 2.0 * of_one && of_two >= of_one, "{of_two} {of_one}");
    assert!((fixed.run().sensitivity().unwrap() - 2.0).abs() < 1e-6);
    // The larger the share of full gradients, the less noise on them.
    let more = DpSvrg { full_share: 0.9, ..recipe }.plan::<ZeroOut>(5000, 4, budget(1.0)).unwrap();
    assert!(
        more.run().noises().full_std_dev < plan.run().noises().full_std_dev
            && more.run().noises().std_dev > plan.run().noises().std_dev
    );
}

#[test]
fn refuses_what_is_not_proved() {
    let recipe = DpSvrg::new(LossKind::Logistic);
    let refused = |recipe: &DpSvrg| recipe.plan::<ZeroOut>(1000, 4, budget(1.0)).unwrap_err().to_string();
    for (recipe, named) in [
        (DpSvrg { sampling: Sampling::Passes, ..recipe.clone() }, "drawn"),
        (DpSvrg { sampling: Sampling::FixedSize, ..recipe.clone() }, "replace-one"),
        (DpSvrg { full_share: 1.0, ..recipe.clone() }, "share"),
        (DpSvrg { full_share: f64::NAN, ..recipe.clone() }, "share"),
        (DpSvrg { epochs: 0, ..recipe.clone() }, "epochs"),
        (DpSvrg { epoch_steps: Some(0), ..recipe.clone() }, "steps of an epoch"),
        (DpSvrg { epochs: u64::MAX, ..recipe.clone() }, "steps"),
        (DpSvrg { batch_size: 0, ..recipe.clone() }, "batch size"),
        (DpSvrg { row_norm: 2.0, ..recipe.clone() }, "row norm"),
        (DpSvrg::new(LossKind::Squared), "radius"),
        (DpSvrg { schedule: Some(Schedule::Constant { step: 1e200 }), ..recipe.clone() }, "overflow"),
        (DpSvrg { noise_mode: NoiseMode::None, ..recipe.clone() }, "noise"),
    ] {
        let error = refused(&recipe);
        assert!(error.contains(named), "{named}: {error}");
    }
    let pure = Budget { delta: Delta::ZERO, ..budget(1.0) };
    assert!(recipe.plan::<ZeroOut>(1000, 4, pure).unwrap_err().to_string().contains("delta"));
}

/// The bound on a step's estimate, the number of steps, and the log's statement whether a release was private.
#[test]
fn figures_follow_their_formulas() {
    use dp_mechanisms::OsSeeded;

    let clipping = Some(ClippingNorm::new(0.25).unwrap());
    let sampling = Sampling::FixedSize;
    let recipe = DpSvrg {
        clipping,
        sampling,
        batch_size: 20,
        epochs: 3,
        epoch_steps: Some(4),
        ..DpSvrg::new(LossKind::Logistic)
    };
    let plan = recipe.plan::<ReplaceOne>(100, 3, budget(1.0)).unwrap();
    assert_eq!((plan.run().steps(), plan.run().divisor()), (12, 20.0));
    assert!((plan.run().full_sensitivity().unwrap() / 0.5 - 1.0).abs() < 1e-9);
    assert!((plan.run().sensitivity().unwrap() / 2.0 - 1.0).abs() < 1e-9);
    let run = recipe.run(&recipe.problem(100, 3, AdjacencyKind::ReplaceOne).unwrap()).unwrap();
    let noise = |std_dev: f64| 1000.0 * std_dev * 3f64.sqrt();
    let of_batch = 0.25 * (20.0 + noise(2.0));
    let of_all = 0.25 * 100.0 + noise(3.0);
    assert!((run.largest_sum(3.0, 2.0) / (of_batch + 0.2 * of_all) - 1.0).abs() < 1e-14);
    for full_share in [0.0, 1.0, f64::NAN] {
        assert!(DpSvrg { full_share, ..recipe.clone() }.plan::<ReplaceOne>(100, 3, budget(1.0)).is_err());
    }
    let told = plan.train::<f64>(&mut source(100, 3), &mut SeededRng::new(1), &mut Control::default()).unwrap();
    let secret =
        plan.train::<f64>(&mut source(100, 3), &mut OsSeeded::new().unwrap(), &mut Control::default()).unwrap();
    assert!(!told.log.is_private() && secret.log.is_private());
}
