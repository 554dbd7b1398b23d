use dp_accountant::{Delta, DpEvent, Epsilon, ReplaceOne};
use dp_data::Examples;
use dp_mechanisms::SeededRng;
use proptest::prelude::*;
use rand::RngExt;

use super::release::PhaseNoise;
use super::*;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::Budget;
use dp_accountant::certificate::NoiseMode;

pub(in crate::recipes) fn budget() -> Budget {
    Budget::new(1.0, 1e-6).unwrap()
}

pub(in crate::recipes) fn data(n: usize, dim: usize, seed: u64) -> Examples<f64> {
    let mut rng = SeededRng::new(seed);
    let width = 1.0 / (dim as f64).sqrt();
    let values: Vec<f64> = (0..n * dim).map(|_| rng.random_range(-width..width)).collect();
    let targets = values.chunks(dim).map(|row| if row[0] > 0.0 { 1.0 } else { -1.0 }).collect();
    Examples::dense(values, targets, dim).unwrap()
}

/// A few extreme records.
pub(in crate::recipes) const RECORDS: [([f64; 2], f64); 6] = [
    ([1.0, 0.0], 1.0),
    ([-1.0, 0.0], 1.0),
    ([0.0, 1.0], 1.0),
    ([0.6, 0.8], -1.0),
    ([0.0, -1.0], -1.0),
    ([0.0, 0.0], 1.0),
];

/// Records that replace one of them.
pub(in crate::recipes) const OTHERS: [([f64; 2], f64); 3] = [([0.0, 0.0], 1.0), ([1.0, 0.0], 1.0), ([-0.6, 0.8], 1.0)];

#[test]
fn sizes_are_floors_and_leave_no_phase_empty() {
    assert!(localising(0, 1.0).is_empty() && localising(1, 1.0).is_empty());
    for n in 2..2000u64 {
        let phases = localising(n, 1.0);
        assert_eq!(phases.len() as u32, n.ilog2(), "{n}");
        for (i, phase) in (1..).zip(&phases) {
            assert_eq!((phase.records, phase.step), (n >> i, 0.25f64.powi(i)), "{n}");
        }
        assert!(phases.iter().map(|phase| phase.records).sum::<u64>() < n);
    }
}

/// `⌈log₂ log₂ n⌉` at powers of two, where floating-point logarithms may round either way.
#[test]
fn the_number_of_stages_is_exact() {
    let problem = PhasedProblem { lipschitz: 1.0, gradient_difference: 2.0, distance: 1.0, dim: 3, rho: 1.0 };
    let stages = |n| problem.reduction(n, 1.0, 1.0).unwrap().stages;
    for (n, expected) in [
        (2, 1),
        (4, 1),
        (5, 2),
        (16, 2),
        (17, 3),
        (256, 3),
        (257, 4),
        (65536, 4),
        (65537, 5),
        (1 << 32, 5),
        ((1 << 32) + 1, 6),
    ] {
        assert_eq!(stages(n), expected, "{n}");
    }
    assert!(problem.reduction(100, 0.0, 1.0).is_err() && problem.reduction(100, f64::NAN, 1.0).is_err());
    assert!(problem.reduction(0, 1.0, 1.0).is_err());
}

proptest! {
    /// All phases have the ratio that one Gaussian release needs: the run costs as much as one release, for any sensitivities,
    /// and is within the budget.
    #[test]
    fn phases_cost_what_one_costs(
        sensitivities in prop::collection::vec(1e-12..10.0_f64, 1..12), epsilon in 0.1..5.0_f64, copies in 1..4_u64,
    ) {
        let budget = Budget::new(epsilon, 1e-6).unwrap();
        let multiplier = noise_multiplier("phases", budget, copies).unwrap();
        let noise = PhaseNoise::<ReplaceOne>::new(&sensitivities, multiplier, NoiseMode::Exact).unwrap();
        let promise = Promise::new(noise.event(), budget, copies).unwrap();
        let (requested, reached) = (promise.requested().epsilon, promise.reached().epsilon);
        prop_assert!(reached <= requested && reached > (1.0 - 1e-6) * requested);
        let is_gaussian = |event: &DpEvent| matches!(event, DpEvent::Gaussian { .. });
        let DpEvent::Parallel { events } = noise.event() else { panic!("not disjoint parts") };
        prop_assert!(events.len() == sensitivities.len() && events.iter().all(is_gaussian));
    }
}

#[test]
fn without_delta_there_is_no_gaussian_noise() {
    let budget = Budget { epsilon: Epsilon::new(1.0).unwrap(), delta: Delta::ZERO };
    assert!(matches!(noise_multiplier("phases", budget, 1), Err(Error::NotProved { .. })));
}

/// Every number by its formula, for a problem in which no number is 1.
#[test]
fn bounds_and_stages_follow_their_formulas() {
    let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-14, "{found} {expected}");
    let problem = PhasedProblem { lipschitz: 3.0, gradient_difference: 5.0, distance: 2.0, dim: 4, rho: 0.5 };
    close(problem.step(100), 2.0 * (4.0 / 30.0f64).min(0.5 / 10.0));
    close(problem.step(1 << 20), 2.0 * 4.0 / (3.0 * 1024.0));
    let two = [Phase { records: 50, step: 0.1 }, Phase { records: 20, step: 0.025 }];
    let noise = |step: f64| 5.0 * step / 0.5;
    let first = 4.0 / (2.0 * 0.1 * 50.0) + 0.1 * 9.0 / 2.0;
    let second = 4.0 * noise(0.1).powi(2) / (2.0 * 0.025 * 20.0) + 0.025 * 9.0 / 2.0;
    close(problem.excess_bound(&two), first + second + 3.0 * 2.0 * noise(0.025));
    // 2^8 < 300 <= 2^16: four stages of 75 records.
    let reduction = problem.reduction(300, 0.25, 7.0).unwrap();
    assert_eq!((reduction.stages, reduction.records), (4, 75));
    let rate = 1.0 / 75f64.sqrt() + 2.0 / (0.5 * 75.0);
    let mut radius = 2.0;
    for found in &reduction.radii {
        close(*found, radius);
        radius = (2.0 * 7.0 * 3.0 * radius * rate / 0.25).sqrt().min(radius);
    }
    close(reduction.excess_bound, 7.0 * 3.0 * reduction.radii[3] * rate);
    // A case in which strong convexity gives a smaller bound than the distance.
    let tight = problem.reduction(300, 400.0, 7.0).unwrap();
    close(tight.radii[1], (2.0 * 7.0 * 3.0 * 2.0 * rate / 400.0).sqrt());
    close(tight.radii[2], (2.0 * 7.0 * 3.0 * tight.radii[1] * rate / 400.0).sqrt());
}

/// The phases of the recipes: their steps balance optimisation and noise, are at most `8/β` for gradient steps, and follow the
/// stages' distances.
#[test]
fn recipes_take_the_steps_of_the_formulas() {
    use crate::recipes::{PhasedSgd, problem};
    use dp_accountant::AdjacencyKind;
    use dp_losses::LossKind;

    let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-13, "{found} {expected}");
    let usual = Inputs {
        recipe: "phases",
        lambda: 0.0,
        radius: 3.0,
        distance: None,
        step: None,
        restarts: false,
        declared_order: false,
    };
    let public = |loss: LossKind, n| {
        let recipe = PhasedSgd { row_norm: 0.5, ..PhasedSgd::new(loss, 3.0) };
        problem::Problem::new(&recipe, n, 4, AdjacencyKind::ReplaceOne).unwrap()
    };
    let phases = |inputs: Inputs, n, rho, reach| inputs.phases(&public(LossKind::Logistic, n), rho, reach).unwrap();
    let everywhere = |inputs: Inputs, n, rho| phases(inputs, n, rho, Reach::Anywhere);
    // L = 1/2 + λR, G = 1.
    close(everywhere(usual, 100, 0.5)[0].step * 4.0, 3.0 * (4.0 / (0.5 * 10.0f64)).min(0.5 / 2.0));
    close(everywhere(usual, 1 << 20, 50.0)[0].step * 4.0, 3.0 * 4.0 / (0.5 * 1024.0));
    let curved = Inputs { lambda: 0.1, ..usual };
    close(everywhere(curved, 1 << 20, 50.0)[0].step * 4.0, 3.0 * 4.0 / (0.8 * 1024.0));
    close(
        everywhere(Inputs { distance: Some(2.0), ..curved }, 1 << 20, 50.0)[0].step * 4.0,
        2.0 * 4.0 / (0.8 * 1024.0),
    );
    close(everywhere(Inputs { step: Some(0.3), ..curved }, 100, 0.5)[0].step, 0.3 / 4.0);
    // In the ball β = X²/4 + λ, and the longest η is 8/β, which rounding must not exceed.
    let far = Inputs { distance: Some(1e6), lambda: 0.1, ..usual };
    let (smoothness, longest) = (0.0625 + 0.1, phases(far, 100, 50.0, Reach::Ball)[0].step * 4.0);
    close(longest, 8.0 / smoothness);
    assert!(longest < 8.0 / smoothness);
    assert!(everywhere(far, 100, 50.0)[0].step > 1e3);
    // In stages: from at most 2L/λ, on their number of records, for each stage's distance.
    let n = 1u64 << 22;
    for (lambda, distance, step) in [
        (0.1, None, None),
        (2.0, None, None),
        (2.0, Some(10.0), None),
        (0.1, Some(0.5), None),
        (0.1, None, Some(0.2)),
        (2.0, None, Some(0.2)),
    ] {
        let staged = Inputs { lambda, distance, step, restarts: true, ..usual };
        let lipschitz = 0.5 + lambda * 3.0;
        let start = distance.unwrap_or(3.0).min(2.0 * lipschitz / lambda);
        let problem = PhasedProblem { lipschitz, gradient_difference: 1.0, distance: start, dim: 4, rho: 50.0 };
        let reduction = problem.reduction(n, lambda, 16.0).unwrap();
        assert!(reduction.radii[1] < start || lambda < 1.0);
        let expected: Vec<Phase> = reduction.radii[..5]
            .iter()
            .flat_map(|&distance| {
                let balanced = PhasedProblem { distance, ..problem }.step(n / 5);
                localising(n / 5, step.map_or(balanced, |step| step * distance / start))
            })
            .collect();
        let found = everywhere(staged, n, 50.0);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.records, expected.records);
            close(found.step, expected.step);
        }
    }
    assert!(Inputs { restarts: true, ..usual }.check().is_err());
    for (radius, accept) in [(1e30, true), (1.1e30, false), (0.0, false), (f64::NAN, false)] {
        assert_eq!(Inputs { radius, ..usual }.check().is_ok(), accept, "{radius}");
    }
    // A loss with unbounded slope.
    let refused = |radius| usual.constants(&public(LossKind::Squared, 100), radius).is_err();
    assert!(refused(None) && !refused(Some(3.0)));
}
