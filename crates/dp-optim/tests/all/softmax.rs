//! Softmax regression through the engine and the bolt-on recipes: neighbours no further apart than the sensitivity, and the
//! rounding of a run within its allowance.

use dp_optim::DerivesModel;

use crate::support::{Prescribed, distance, growth, run_model};
use dp_accountant::{Delta, Epsilon, ReplaceOne, ZeroOut};
use dp_losses::{Constants, Domain, L2, LossKind, Softmax, SoftmaxModel};
use dp_mechanisms::SeededRng;
use dp_optim::engine::Control;
use dp_optim::growth::{Arithmetic, Growth, OrderPolicy, Rounding};
use dp_optim::recipes::{BoltOn, Budget, OutputNoise, Planned, Recipe as _, Stopping};
use dp_optim::{Averaging, MemorySource, Schedule};
use rand::RngExt;

const DIM: usize = 3;

fn unit_row(rng: &mut SeededRng) -> Vec<f64> {
    let x: Vec<f64> = (0..DIM).map(|_| rng.random_range(-1.0..1.0)).collect();
    let norm = x.iter().map(|v| v * v).sum::<f64>().sqrt();
    x.iter().map(|v| v * (1.0 - 1e-15) / norm).collect()
}

fn random_growth(loss: Softmax, n: usize, rng: &mut SeededRng) -> Growth {
    let lambda = if rng.random_bool(0.5) { rng.random_range(0.01..1.0) } else { 0.0 };
    let radius = rng.random_bool(0.5).then(|| rng.random_range(0.2..8.0));
    let mut domain = Domain::unit_rows();
    if let Some(radius) = radius {
        domain = domain.with_radius(radius).unwrap();
    }
    let constants = Constants::new(&loss, L2::new(lambda).unwrap(), &domain);
    let schedule = match rng.random_range(0..3) {
        0 => Schedule::Constant { step: rng.random_range(0.05..2.2) / constants.smoothness },
        1 => Schedule::InverseSqrt { step: rng.random_range(0.2..2.0) / constants.smoothness },
        _ if lambda > 0.0 => Schedule::StronglyConvex { smoothness: constants.smoothness, strong_convexity: lambda },
        _ => Schedule::SquareRoot { smoothness: constants.smoothness, examples: n as f64, power: 0.3 },
    };
    Growth {
        averaging: if rng.random_bool(0.5) { Averaging::Last } else { Averaging::Uniform },
        order: OrderPolicy::Fixed,
        smoothness: constants.smoothness,
        strong_convexity: lambda,
        gradient_difference: constants.gradient_difference,
        radius,
        ..growth(n as u64, rng.random_range(1..=4), rng.random_range(1..4), schedule)
    }
}

#[test]
fn random_neighbours_stay_within_the_sensitivity() {
    let mut rng = SeededRng::new(1);
    let mut most: f64 = 0.0;
    for trial in 0..2500 {
        let classes = rng.random_range(2..5u32);
        let loss = Softmax::new(classes).unwrap();
        let n = rng.random_range(1..8usize);
        let growth = random_growth(loss, n, &mut rng);
        let mut rows: Vec<Vec<f64>> = (0..n).map(|_| unit_row(&mut rng)).collect();
        let mut targets: Vec<f64> = (0..n).map(|_| f64::from(rng.random_range(0..classes))).collect();
        let at = rng.random_range(0..n);
        if trial % 2 == 0 {
            // All others push towards class 1 along the first axis: both candidates are then predicted as class 1.
            (0..n).for_each(|i| (rows[i], targets[i]) = (vec![0.6, 0.0, 0.0], 1.0));
            (rows[at], targets[at]) = (vec![0.2, 0.97, 0.0], 0.0);
        }
        let (mut other_rows, mut other_targets) = (rows.clone(), targets.clone());
        (other_rows[at], other_targets[at]) = if trial % 2 == 0 {
            (vec![0.2, -0.97, 0.0], 0.0)
        } else {
            (unit_row(&mut rng), f64::from(rng.random_range(0..classes)))
        };
        let arithmetic = Arithmetic::ALL[rng.random_range(0..3)];
        let compressed = rng.random_bool(0.5);
        let model = SoftmaxModel::new(DIM, loss);
        let outputs = [(&rows, &targets), (&other_rows, &other_targets)].map(|(rows, targets)| {
            let examples =
                if compressed { crate::support::sparse(rows, targets) } else { crate::support::dense(rows, targets) };
            let mut source = Prescribed { examples, orders: vec![(0..n as u32).collect()], blocks: vec![2, 3] };
            run_model(&growth, &model, vec![0.0; DIM * classes as usize], arithmetic, &mut source)
        });
        let moved = distance(&outputs[0], &outputs[1]);
        let slack = 1e-13 * outputs[0].iter().chain(&outputs[1]).map(|w| w.abs()).sum::<f64>();
        let bound = growth.sensitivity().unwrap().bound;
        assert!(moved <= bound + slack, "{moved} beyond {bound}: {growth:?}");
        if bound > 0.0 {
            most = most.max(moved / bound);
        }
    }
    // Reached by these seeds: two opposite rows of one class attain sqrt(3)/2 of the claim if all scores are equal.
    assert!(most > 0.6, "the search is idle: {most}");
}

/// The run in single precision differs from that in double precision by at most half of the allowance for its unit.
#[test]
fn the_allowance_for_rounding_holds() {
    let mut rng = SeededRng::new(2);
    let mut worst: f64 = 0.0;
    for _ in 0..1500 {
        let classes = rng.random_range(2..12u32);
        let loss = Softmax::new(classes).unwrap();
        let n = rng.random_range(1..30usize);
        let base = random_growth(loss, n, &mut rng);
        let arithmetic = Arithmetic::ALL[rng.random_range(0..3)];
        let parameters = DIM * classes as usize;
        let rounding = Rounding {
            unit_roundoff: 2f64.powi(-24),
            dim: parameters as u64,
            outputs: u64::from(classes),
            data_lipschitz: 2f64.sqrt(),
            arithmetic,
        };
        let Ok(with) = (Growth { rounding: Some(rounding), ..base.clone() }).sensitivity() else { continue };
        let allowance = with.bound - base.sensitivity().unwrap().bound;
        let rows: Vec<Vec<f64>> =
            (0..n).map(|_| unit_row(&mut rng).iter().map(|&x| f64::from((x * 0.999) as f32)).collect()).collect();
        let targets: Vec<f64> = (0..n).map(|_| f64::from(rng.random_range(0..classes))).collect();
        let compressed = rng.random_bool(0.5);
        fn source<F: dp_losses::Real>(rows: &[Vec<f64>], targets: &[f64], compressed: bool) -> Prescribed<F> {
            let examples =
                if compressed { crate::support::sparse(rows, targets) } else { crate::support::dense(rows, targets) };
            Prescribed { examples, orders: vec![(0..rows.len() as u32).collect()], blocks: vec![] }
        }
        let (double, single) = (SoftmaxModel::<f64>::new(DIM, loss), SoftmaxModel::<f32>::new(DIM, loss));
        let double =
            run_model(&base, &double, vec![0.0; parameters], arithmetic, &mut source(&rows, &targets, compressed));
        let single =
            run_model(&base, &single, vec![0.0; parameters], arithmetic, &mut source(&rows, &targets, compressed));
        let single: Vec<f64> = single.into_iter().map(f64::from).collect();
        worst = worst.max(distance(&double, &single) / (allowance / 2.0));
    }
    assert!(worst <= 1.0, "{worst} times the allowance");
    assert!(worst > 1e-4, "the search is idle: {worst}");
}

/// Three classes in three directions.
fn classes_in_directions(n: usize) -> MemorySource<f64> {
    let rows: Vec<Vec<f64>> = (0..n).map(|i| (0..3).map(|j| if i % 3 == j { 1.0 } else { 0.0 }).collect()).collect();
    let targets: Vec<f64> = (0..n).map(|i| (i % 3) as f64).collect();
    MemorySource::new(crate::support::dense(&rows, &targets), 1.0, 2.0)
}

#[test]
fn bolt_on_trains_softmax_and_its_certificate_follows() {
    use dp_accountant::certificate::Derivation as _;
    let loss: LossKind = "softmax:3".parse().unwrap();
    let mut rng = SeededRng::new(3);
    for stopping in [Stopping::Passes, Stopping::CertifiedMinimiser { tolerance: None }] {
        for output_noise in [OutputNoise::LaplaceBall, OutputNoise::Gaussian] {
            let recipe = BoltOn { stopping, output_noise, ..BoltOn::strongly_convex(loss, 0.05) };
            let budget = Budget::new(1.0, 1e-6).unwrap();
            let plan = recipe.plan::<ZeroOut>(3000, 3, budget).unwrap();
            let trained =
                plan.train::<f64>(&mut classes_in_directions(3000), &mut rng, &mut Control::default()).unwrap();
            let w = trained.weights.get();
            assert_eq!(w.len(), 9);
            for class in 0..3 {
                for other in (0..3).filter(|&other| other != class) {
                    assert!(w[3 * class + class] > w[3 * other + class] + 0.1, "{w:?}");
                }
            }
            assert_eq!(trained.derivation.event().unwrap(), plan.event());
            assert_eq!(trained.derivation.model_terms().weights, 9);
            assert_eq!(trained.log.to_event(), plan.event());
        }
    }
    // Minimisers of neighbours are within G/(λn), 2√2/(λn) without a radius; twice the tolerance is a fiftieth of that.
    let budget = Budget { epsilon: Epsilon::new(1.0).unwrap(), delta: Delta::ZERO };
    let apart = 8f64.sqrt() / (0.01 * 1000.0);
    let passes = BoltOn::strongly_convex(loss, 0.01);
    let minimiser = BoltOn { stopping: Stopping::CertifiedMinimiser { tolerance: None }, ..passes.clone() };
    let sensitivity = |recipe: BoltOn| recipe.plan::<ReplaceOne>(1000, 3, budget).unwrap().run().sensitivity();
    let found = sensitivity(minimiser);
    assert!((found / (1.02 * apart) - 1.0).abs() < 1e-6, "{found}");
    // The first steps, which the smoothness keeps short, move it by less.
    let found = sensitivity(passes);
    assert!(found <= apart && found > 0.9 * apart, "{found}");
}

#[test]
fn sources_that_merge_classes_are_refused_and_so_are_losses_with_a_kink() {
    let budget = Budget { epsilon: Epsilon::new(1.0).unwrap(), delta: Delta::ZERO };
    let plan = BoltOn::convex("softmax:4".parse().unwrap()).plan::<ZeroOut>(30, 3, budget).unwrap();
    let mut rng = SeededRng::new(4);
    assert!(plan.train::<f64>(&mut classes_in_directions(30), &mut rng, &mut Control::default()).is_err());
    for kink in ["hinge", "absolute"] {
        let refused = BoltOn::convex(kink.parse().unwrap()).plan::<ZeroOut>(30, 3, budget);
        assert!(matches!(&refused, Err(dp_optim::Error::NotProved { why, .. }) if why.contains("phased-erm")));
    }
}
