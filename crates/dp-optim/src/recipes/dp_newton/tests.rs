use dp_accountant::certificate::Derivation as _;
use dp_accountant::{AdjacencyKind, DpEvent, ReplaceOne, ZeroOut};
use dp_data::{Examples, Rows};
use dp_losses::{HuberSvm, Loss};
use dp_mechanisms::SeededRng;
use proptest::prelude::*;
use rand::RngExt;

use super::*;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::{Planned, Recipe as _, RecordAdjacency, budget};

fn huber(h: f64) -> LossKind {
    LossKind::HuberSvm(HuberSvm::new(h).unwrap())
}

/// Rows in the unit ball, whose labels mostly follow one direction.
fn examples(n: usize, seed: u64) -> Examples<f64> {
    let mut rng = SeededRng::new(seed);
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let row = [rng.random_range(-0.7..0.7), 0.2 * rng.random_range(-0.7..0.7), 0.5];
        let score: f64 = 4.0 * row[0] - 6.0 * row[1] + row[2];
        targets.push(if rng.random_range(0.0..1.0) < 1.0 / (1.0 + (-score).exp()) { 1.0 } else { -1.0 });
        rows.extend(row);
    }
    Examples::dense(rows, targets, 3).unwrap()
}

fn train<A: RecordAdjacency>(recipe: &DpNewton, data: Examples<f64>, budget: Budget) -> Vec<f64> {
    let plan = recipe.plan::<A>(data.len() as u64, data.dim() as u64, budget).unwrap();
    let mut source = MemorySource::new(data, recipe.row_norm, recipe.target_bound);
    let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(3), &mut Control::default()).unwrap();
    assert_eq!(trained.log.to_event(), Planned::<A>::event(&plan));
    assert_eq!(trained.derivation.event().unwrap(), Planned::<A>::event(&plan));
    trained.weights.into_inner()
}

/// The mean loss's gradient with its regulariser, record by record.
fn gradient(loss: LossKind, lambda: f64, data: &Examples<f64>, weights: &[f64]) -> Vec<f64> {
    let loss = loss.scalar().unwrap();
    let Rows::Dense { values, dim } = data.block().rows else { unreachable!() };
    let mut sum: Vec<f64> = weights.iter().map(|w| lambda * w).collect();
    for (row, &y) in values.chunks_exact(dim).zip(data.targets()) {
        let score: f64 = row.iter().zip(weights).map(|(x, w)| x * w).sum();
        let slope = loss.derivative(score, y) / data.len() as f64;
        sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += slope * x);
    }
    sum
}

#[test]
fn with_hardly_any_noise_it_is_the_minimiser() {
    for (loss, form, steps, least) in [
        (LossKind::Logistic, Curvature::EachStep, 40, 1e-3),
        // The steps of an upper bound are short.
        (LossKind::Logistic, Curvature::Once, 40, 1e-2),
        (huber(0.5), Curvature::EachStep, 60, 1e-2),
        (huber(0.5), Curvature::Once, 60, 3e-2),
    ] {
        let data = examples(4000, 1);
        let recipe = DpNewton { curvature: form, steps, lambda: Some(1e-3), ..DpNewton::new(loss) };
        let weights = train::<ZeroOut>(&recipe, data.clone(), budget(1e5, 1e-6));
        let norm = |g: Vec<f64>| g.iter().map(|x| x * x).sum::<f64>().sqrt();
        let (start, end) = (norm(gradient(loss, 1e-3, &data, &[0.0; 3])), norm(gradient(loss, 1e-3, &data, &weights)));
        assert!(end < least * start, "{loss} {form:?}: {start} to {end}, {weights:?}");
    }
}

#[test]
fn few_noisy_steps_are_a_fair_model_under_each_relation() {
    let data = examples(5000, 2);
    for recipe in [DpNewton::new(LossKind::Logistic), DpNewton::with_one_curvature(LossKind::Logistic)] {
        for weights in [
            train::<ZeroOut>(&recipe, data.clone(), budget(1.0, 1e-6)),
            train::<ReplaceOne>(&recipe, data.clone(), budget(2.0, 1e-6)),
        ] {
            assert!(weights[0] > 2.0 && weights[0] < 6.0, "{weights:?}");
        }
    }
}

/// The vector of one record by the definition: `(a x, ω a' x xᵀ)`.
fn contribution(margin: Margin, weight: f64, slope: f64, row: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = row.iter().map(|x| slope * x).collect();
    let bend = weight * margin.curvature(slope.abs());
    all.extend(row.iter().flat_map(|x| row.iter().map(move |z| bend * x * z)));
    all
}

/// No two records are farther apart than the bound, nor is any record from the null record; some are nearly as far.
#[test]
fn records_move_both_sums_by_no_more_than_is_said() {
    let mut rng = SeededRng::new(9);
    for (loss, row_norm) in [(LossKind::Logistic, 1.0), (LossKind::Logistic, 0.3), (huber(0.1), 1.0), (huber(2.0), 0.7)]
    {
        for share in [0.05, 0.2, 0.3, 0.4, 0.42, 0.5, 0.62, 0.7, 0.9] {
            let margin = Margin::of(loss).unwrap();
            let joint = Joint::new(margin, row_norm, share);
            let bound = |relation| joint.sensitivity(relation).unwrap();
            let (one, two) = (bound(AdjacencyKind::ZeroOut), bound(AdjacencyKind::ReplaceOne));
            let (mut alone, mut apart) = (0.0f64, 0.0f64);
            // Slopes on both sides of a kink, and where the logistic curvature is large.
            let slopes: Vec<f64> = (0..=200).map(|k| f64::from(k) / 200.0).chain([1.0 - 1e-12]).collect();
            for _ in 0..40_000 {
                let mut record = |extreme: bool| {
                    let a = if extreme {
                        1.0 - 1e-12 * f64::from(rng.random_range(0..2u32))
                    } else {
                        slopes[rng.random_range(0..slopes.len())]
                    };
                    let length = row_norm * if rng.random_bool(0.8) { 1.0 } else { rng.random_range(0.0..1.0) };
                    let angle: f64 = if extreme && rng.random_bool(0.3) {
                        0.0
                    } else {
                        rng.random_range(0.0..core::f64::consts::TAU)
                    };
                    let sign = if rng.random_bool(0.5) { 1.0 } else { -1.0 };
                    contribution(margin, joint.weight(), sign * a, &[length * angle.cos(), length * angle.sin()])
                };
                let extreme = share < 0.9;
                let (u, v) = (record(extreme), record(extreme));
                let w = record(false);
                let norm = |u: &[f64]| u.iter().map(|x| x * x).sum::<f64>().sqrt();
                let distance = |u: &[f64], v: &[f64]| norm(&u.iter().zip(v).map(|(a, b)| a - b).collect::<Vec<_>>());
                alone = alone.max(norm(&u)).max(norm(&w));
                apart = apart.max(distance(&u, &v)).max(distance(&u, &w));
            }
            assert!(alone <= one && alone > 0.999 * one, "{loss} {row_norm} {share}: {alone} of {one}");
            assert!(apart <= two, "{loss} {row_norm} {share}: {apart} above {two}");
            // For the logistic loss slope and curvature are not at their maxima together, as the bound for pairs assumes.
            let near = if loss == LossKind::Logistic && share > 0.4 { 0.7 } else { 0.995 };
            assert!(apart > near * two, "{loss} {row_norm} {share}: {apart} of {two}");
        }
    }
}

#[test]
fn up_to_a_share_the_curvature_costs_nothing() {
    let at = |share| Joint::new(Margin::Logistic, 1.0, share).sensitivity(AdjacencyKind::ZeroOut).unwrap();
    let most = {
        let kappa = 0.5 * (11.0 + 5.0 * 5f64.sqrt());
        kappa / (16.0 + kappa)
    };
    assert!((most - 0.4093).abs() < 1e-4);
    assert!((at(most * 0.9999) - 1.0).abs() < 1e-8 && at(most * 1.001) > 1.0 + 1e-5);
    // For a loss with kinks the curvature is never free.
    assert!(
        Joint::new(Margin::Kinked { curvature: 5.0 }, 1.0, 0.01).sensitivity(AdjacencyKind::ZeroOut).unwrap() > 1.004
    );
}

#[test]
fn null_records_and_sparse_rows_are_summed_as_such() {
    let data = examples(50, 5);
    let Rows::Dense { values, .. } = data.block().rows else { unreachable!() };
    let recipe = DpNewton { lambda: Some(0.01), ..DpNewton::new(LossKind::Logistic) };
    let targets: Vec<f64> = data.targets().iter().copied().chain([1.0]).collect();
    let with = |more: [f64; 3]| Examples::dense([values, &more].concat(), targets.clone(), 3).unwrap();
    let expected = train::<ZeroOut>(&recipe, with([0.0; 3]), budget(1.0, 1e-6));
    assert_eq!(train::<ZeroOut>(&recipe, with([f64::NAN, 0.3, 0.1]), budget(1.0, 1e-6)), expected);
    let offsets = (0..=51).map(|i| 3 * i).collect();
    let sparse = [values, &[0.0; 3]].concat();
    let sparse = Examples::sparse(offsets, [0u32, 1, 2].repeat(51), sparse, targets.clone(), 3).unwrap();
    assert_eq!(train::<ZeroOut>(&recipe, sparse, budget(1.0, 1e-6)), expected);
}

/// The sensitivities by their formulas, with rows and record counts for which no term is negligible.
#[test]
fn sensitivities_follow_their_formulas() {
    let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-14, "{found} {expected}");
    for share in [0.2f64, 0.4, 0.6] {
        for row_norm in [0.3, 0.5] {
            let recipe = DpNewton { row_norm, share, ..DpNewton::new(huber(0.1)) };
            let joint = recipe.joint().unwrap();
            let ratio = share / (1.0 - share);
            // ω = (f/(1 - f))^{1/2}/(βX), of which b = ωβX².
            close(joint.weight(), ratio.sqrt() / (5.0 * row_norm));
            let b = ratio.sqrt() * row_norm;
            let across = if ratio > 0.5 { 2.0 + 2.0 * ratio + 0.5 / ratio } else { 0.0 };
            let replaced = |slack: f64| {
                let square = (4.0 + ratio).max(across) * row_norm * row_norm + slack;
                square.min(4.0 * row_norm * row_norm * (1.0 + ratio)).sqrt() * (1.0 + 1e-9)
            };
            close(joint.truncated(AdjacencyKind::ReplaceOne, 1e-3).unwrap(), replaced(1e-3));
            close(joint.truncated(AdjacencyKind::ReplaceOne, 9.0).unwrap(), replaced(9.0));
            // So many records that the grids are coarse: 20 bits for a gradient's numbers, 10 for a row's.
            let (n, dim) = (1u64 << 32, 4u64);
            let squares = sums::squares::<ReplaceOne>(joint, 4, n).unwrap();
            close(squares.rounding(), f64::EPSILON * dim as f64 * n as f64 * b);
            let of_gradient = 2f64.powi(-20) * 2f64.powi(row_norm.log2().floor() as i32) * (dim as f64).sqrt();
            let of_row = squares.row_grid().step() * (dim as f64).sqrt();
            let slack = 4.0 * of_gradient * row_norm + 8.0 * of_row * b.powf(1.5);
            let expected = replaced(slack) + squares.rounding();
            close(recipe.plan::<ReplaceOne>(n, dim, budget(1.0, 1e-6)).unwrap().run().sensitivity(), expected);
            assert!(slack > 1e-4 * row_norm * row_norm && 4.0 * of_gradient * row_norm > 1e-7, "{slack}");
            // Gradients alone.
            let once = DpNewton { curvature: Curvature::Once, ..recipe };
            close(once.plan::<ReplaceOne>(100, dim, budget(1.0, 1e-6)).unwrap().run().sensitivity(), 2.0 * row_norm);
            close(once.plan::<ZeroOut>(100, dim, budget(1.0, 1e-6)).unwrap().run().sensitivity(), row_norm);
        }
    }
}

/// The split of the budget, and the regulariser.
#[test]
fn noise_and_regulariser_follow_their_formulas() {
    let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
    let (n, dim) = (1000u64, 7u64);
    for once in [false, true] {
        let usual = if once { DpNewton::with_one_curvature(huber(0.5)) } else { DpNewton::new(huber(0.5)) };
        let form = if once { Curvature::Once } else { Curvature::EachStep };
        let (share, steps) = if once { (0.2, 6) } else { (0.4, 12) };
        assert!(usual.curvature == form && usual.share == share && usual.steps == steps, "{usual:?}");
        let recipe = DpNewton { row_norm: 0.7, ..usual };
        let plan = recipe.plan::<ReplaceOne>(n, dim, budget(1.0, 1e-6)).unwrap();
        let of_steps = steps as f64 * (plan.run().sensitivity() / plan.run().std_dev()).powi(2);
        let of_moments = match plan.run().moments_std_dev() {
            Some(std_dev) => (recipe.stage(n, dim).sensitivity::<ReplaceOne>().unwrap() / std_dev).powi(2),
            None => 0.0,
        };
        assert_eq!(plan.run().moments_std_dev(), plan.derivation().calibrated.moments_std_dev);
        let inverse = of_steps + of_moments;
        assert_eq!(of_moments > 0.0, once);
        if once {
            close(of_moments / inverse, share);
        }
        // Λ = 0.3 n q^{3/2}, with q of one release of the mean gradient.
        let q = plan.run().sensitivity() / inverse.sqrt() * (dim as f64).sqrt() / n as f64;
        close(plan.run().regularization(), 0.3 * n as f64 * q.powf(1.5));
        let given = DpNewton { lambda: Some(0.02), ..recipe }.plan::<ReplaceOne>(n, dim, budget(1.0, 1e-6)).unwrap();
        close(given.run().regularization(), 20.0);
    }
}

/// A regulariser so small that a step could exceed the range of doubles is refused before any record is read, at the stated
/// limit: `(nX + K)/(ridge + Λ)` per step, plus the start that the moments give.
#[test]
fn weights_that_could_overflow_are_refused() {
    let (n, dim, steps) = (100u64, 4u64, 30u64);
    let mut both = 0;
    for curvature in [Curvature::EachStep, Curvature::Once] {
        for exponent in [-99, -96, -90] {
            let row_norm = 10f64.powi(exponent);
            let recipe = DpNewton { row_norm, target_bound: row_norm, curvature, steps, ..DpNewton::new(huber(0.1)) };
            let plan = |lambda: f64| {
                DpNewton { lambda: Some(lambda), ..recipe.clone() }.plan::<ZeroOut>(n, dim, budget(0.1, 1e-6))
            };
            let usual = plan(1.0).unwrap();
            let std_dev = usual.run().std_dev();
            let noise = 1000.0 * std_dev * (dim as f64).sqrt();
            let of_matrix = match usual.run().moments_std_dev() {
                Some(std_dev) => 5.0 * std_dev,
                None => std_dev / recipe.joint().unwrap().weight(),
            };
            let ridge = 0.3 * of_matrix * (dim as f64).sqrt();
            let start = 1000.0 * usual.run().moments_std_dev().unwrap_or(0.0) + n as f64;
            let least = (n as f64 * row_norm + noise) * (steps as f64 + start) / 1e100 - ridge;
            if least > 0.0 {
                both += 1;
                assert!(plan(1.001 * least / n as f64).is_ok(), "{curvature:?} {exponent}");
                let error = plan(0.999 * least / n as f64).unwrap_err();
                assert!(matches!(error, Error::OutOfRange { name: "lambda", .. }), "{error}");
            } else {
                assert!(plan(0.0).is_ok(), "{curvature:?} {exponent}");
            }
        }
    }
    assert!(both >= 3, "{both}");
}

#[test]
fn what_is_not_proved_is_refused() {
    let usual = DpNewton::new(LossKind::Logistic);
    let refused = |recipe: &DpNewton, n: u64, dim: u64, delta: f64| {
        recipe.plan::<ZeroOut>(n, dim, budget(1.0, delta)).unwrap_err()
    };
    for loss in ["hinge", "squared", "softmax:3", "huber-regression:1", "absolute"] {
        let recipe = DpNewton::new(loss.parse().unwrap());
        let recipe = DpNewton { target_bound: 1.0, ..recipe };
        assert!(matches!(refused(&recipe, 100, 3, 1e-6), Error::NotProved { .. }), "{loss}");
    }
    assert!(matches!(refused(&usual, 100, 3, 0.0), Error::NotProved { .. }));
    assert!(matches!(refused(&usual, 0, 3, 1e-6), Error::Count { .. }));
    for dim in [0, MOST_FEATURES + 1, u64::MAX] {
        assert!(matches!(refused(&usual, 100, dim, 1e-6), Error::Count { name: "dimension", .. }), "{dim}");
    }
    for recipe in [DpNewton { steps: 0, ..usual.clone() }, DpNewton { steps: u64::MAX, ..usual.clone() }] {
        assert!(matches!(refused(&recipe, 100, 3, 1e-6), Error::Count { name: "steps", .. }));
    }
    for bad in [f64::NAN, -1.0, f64::INFINITY] {
        for recipe in [
            DpNewton { lambda: Some(bad), ..usual.clone() },
            DpNewton { share: bad, ..usual.clone() },
            DpNewton { row_norm: bad, ..usual.clone() },
            DpNewton { target_bound: bad, ..usual.clone() },
        ] {
            assert!(matches!(refused(&recipe, 100, 3, 1e-6), Error::OutOfRange { .. }), "{recipe:?}");
        }
    }
    for (share, row_norm, refuse) in [
        (1e-6, 1.0, false),
        (1.0 - 1e-6, 1.0, false),
        (0.99e-6, 1.0, true),
        (1.0 - 0.5e-6, 1.0, true),
        (0.4, 1.1e-100, false),
        (0.4, 1e-100, true),
        (0.4, 1.0 + 1e-15, true),
    ] {
        let recipe = DpNewton { share, row_norm, ..usual.clone() };
        assert_eq!(recipe.joint().is_err(), refuse, "{share} {row_norm}");
    }
    let none = DpNewton { noise_mode: NoiseMode::None, ..usual.clone() };
    assert!(matches!(refused(&none, 100, 3, 1e-6), Error::NotProved { .. }));
    // A derivation of one form with the noise of the other.
    let plan = usual.plan::<ZeroOut>(100, 3, budget(1.0, 1e-6)).unwrap();
    let good = plan.derivation().clone();
    let edited = Derivation { calibrated: NewtonNoise { moments_std_dev: Some(1.0), ..good.calibrated }, ..good };
    assert!(matches!(edited.event(), Err(Error::NotProved { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn budgets_are_kept(
        epsilon in 0.05..4.0f64, dim in 1u64..60, copies in 1u64..4, steps in 1u64..30, once in any::<bool>(),
        share in 0.05..0.95f64,
    ) {
        let curvature = if once { Curvature::Once } else { Curvature::EachStep };
        let recipe = DpNewton { curvature, steps, share, ..DpNewton::new(LossKind::Logistic) };
        let plan = recipe.plan_copies::<ZeroOut>(1000, dim, budget(epsilon, 1e-7), copies).unwrap();
        prop_assert!(plan.reached().epsilon <= epsilon && plan.reached().epsilon > 0.99 * epsilon);
        prop_assert_eq!(plan.derivation().event().unwrap(), Planned::<ZeroOut>::event(&plan));
        let one_gaussian = matches!(plan.event(), DpEvent::Gaussian { .. } | DpEvent::SelfComposed { .. });
        prop_assert_eq!(one_gaussian, !once);
        let replaced = recipe.plan_copies::<ReplaceOne>(1000, dim, budget(epsilon, 1e-7), copies).unwrap();
        prop_assert!(replaced.run().std_dev() > 1.4 * plan.run().std_dev() && replaced.run().std_dev() < 2.001 * plan.run().std_dev());
    }
}
