//! Random and adversarial neighbours, run through the engine: never further apart than the sensitivity, and attaining it if
//! the loss allows.

use crate::support::{Inner, Prescribed, distance, growth, run};
use dp_losses::{Constants, Domain, HuberSvm, L2, Logistic, Loss, LossBounds, Squared};
use dp_mechanisms::SeededRng;
use dp_optim::growth::{Arithmetic, Divisor, Growth, OrderPolicy, Rounding};
use dp_optim::{Averaging, Schedule};
use rand::RngExt;

const DIM: usize = 3;

/// One record: features in the unit ball and a target.
type Record = (Vec<f64>, f64);

/// A random record, often on the boundary, where the extremes are.
fn record(rng: &mut SeededRng, real: bool) -> Record {
    let mut x: Vec<f64> = (0..DIM).map(|_| rng.random_range(-1.0..1.0)).collect();
    if rng.random_bool(0.3) {
        x = vec![0.0; DIM];
        x[rng.random_range(0..DIM)] = if rng.random_bool(0.5) { 1.0 } else { -1.0 };
    }
    let norm = x.iter().map(|v| v * v).sum::<f64>().sqrt();
    let length = if rng.random_bool(0.7) { 1.0 } else { rng.random::<f64>() };
    x.iter_mut().for_each(|v| *v *= length * (1.0 - 1e-15) / norm);
    let y = if real { rng.random_range(-1.0..1.0) } else { [-1.0, 1.0][rng.random_range(0..2)] };
    (x, y)
}

fn permutation(rng: &mut SeededRng, n: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        order.swap(i, rng.random_range(0..=i));
    }
    order
}

fn schedules(constants: &Constants, n: u64, updates: u64, rng: &mut SeededRng) -> Schedule {
    let beta = constants.smoothness;
    let plain = match rng.random_range(0..7) {
        0 => Schedule::Constant { step: rng.random_range(0.05..2.6) / beta },
        1 => Schedule::InverseSqrt { step: rng.random_range(0.2..2.0) / beta },
        2 => Schedule::Decreasing { smoothness: beta, examples: n as f64, power: 0.5 },
        3 => Schedule::SquareRoot { smoothness: beta, examples: n as f64, power: 0.3 },
        4 if constants.strong_convexity > 0.0 => {
            Schedule::StronglyConvex { smoothness: beta, strong_convexity: constants.strong_convexity }
        }
        5 => Schedule::PerPass { step: rng.random_range(0.2..2.2) / beta, updates_per_pass: rng.random_range(1..4) },
        _ => return Schedule::Steps { values: (0..updates).map(|_| rng.random_range(0.0..2.2) / beta).collect() },
    };
    if rng.random_bool(0.3) {
        Schedule::Restarted { every: rng.random_range(1..=updates + 1), schedule: plain.into() }
    } else {
        plain
    }
}

fn averages(updates: u64, rng: &mut SeededRng) -> Averaging {
    match rng.random_range(0..6) {
        0 => Averaging::Last,
        1 => Averaging::Uniform,
        2 => Averaging::Suffix { updates: rng.random_range(1..=updates) },
        3 => Averaging::Polynomial,
        4 => Averaging::Restarts { updates: rng.random_range(1..=updates + 1) },
        _ => Averaging::Coefficients { values: (0..updates).map(|_| rng.random_range(-1.0..1.0)).collect() },
    }
}

/// Runs random neighbours under one loss and returns the largest fraction of the bound reached.
fn search<L: Loss<f64> + LossBounds>(loss: L, real: bool, trials: u32, seed: u64) -> f64 {
    let mut rng = SeededRng::new(seed);
    let mut most: f64 = 0.0;
    for _ in 0..trials {
        let n = rng.random_range(1..9usize);
        let batch_size = rng.random_range(1..=5u64);
        let passes = rng.random_range(1..4u64);
        let lambda = if rng.random_bool(0.5) { rng.random_range(0.01..1.0) } else { 0.0 };
        let radius = (real || rng.random_bool(0.5)).then(|| rng.random_range(0.2..4.0));
        let mut domain = Domain::unit_rows();
        if let Some(radius) = radius {
            domain = domain.with_radius(radius).unwrap();
        }
        let constants = Constants::new(&loss, L2::new(lambda).unwrap(), &domain);
        let null = rng.random_bool(0.5);
        let updates = (n as u64).div_ceil(batch_size) * passes;
        let order = if rng.random_bool(0.5) { OrderPolicy::Fixed } else { OrderPolicy::Fresh };
        let arithmetic = Arithmetic::ALL[rng.random_range(0..3)];
        let growth = Growth {
            averaging: averages(updates, &mut rng),
            order,
            divisor: if rng.random_bool(0.5) { Divisor::Actual } else { Divisor::Nominal },
            smoothness: constants.smoothness,
            strong_convexity: lambda,
            gradient_difference: if null { constants.data_lipschitz } else { constants.gradient_difference },
            radius,
            ..growth(n as u64, batch_size, passes, schedules(&constants, n as u64, updates, &mut rng))
        };
        let data: Vec<Record> = (0..n).map(|_| record(&mut rng, real)).collect();
        let at = rng.random_range(0..n);
        let mut neighbour = data.clone();
        neighbour[at] = if null { (vec![0.0; DIM], 0.0) } else { record(&mut rng, real) };
        let orders: Vec<Vec<u32>> = match order {
            OrderPolicy::Fixed => vec![permutation(&mut rng, n)],
            OrderPolicy::Fresh => (0..passes).map(|_| permutation(&mut rng, n)).collect(),
        };
        let outputs = [&data, &neighbour].map(|data| {
            let rows: Vec<Vec<f64>> = data.iter().map(|(x, _)| x.clone()).collect();
            let targets: Vec<f64> = data.iter().map(|(_, y)| *y).collect();
            let examples = crate::support::dense(&rows, &targets);
            let mut source = Prescribed { examples, orders: orders.clone(), blocks: vec![2, 3] };
            run(&growth, loss, vec![0.0; DIM], arithmetic, &mut source)
        });
        let moved = distance(&outputs[0], &outputs[1]);
        // An allowance of 1e-13 for the rounding of the two runs, which may exceed a tiny bound.
        let slack = 1e-13 * outputs[0].iter().chain(&outputs[1]).map(|w| w.abs()).sum::<f64>();
        let sensitivity = growth.sensitivity().unwrap();
        assert!(moved <= sensitivity.bound + slack, "{moved} beyond {}: {growth:?}", sensitivity.bound);
        assert!(moved <= growth.bound().unwrap() + slack, "{growth:?}");
        if order == OrderPolicy::Fixed {
            let position =
                orders[0].iter().position(|&i| i as usize == at).unwrap() as u64 / growth.batch_size.min(n as u64);
            let bound = sensitivity.by_position[position as usize];
            assert!(moved <= bound + slack, "{moved} beyond {bound} at {position}: {growth:?}");
        }
        if sensitivity.bound > 0.0 {
            most = most.max(moved / sensitivity.bound);
        }
    }
    most
}

#[test]
fn random_neighbours_stay_within_the_sensitivity() {
    // These seeds reach these fractions; they show that the search is effective.
    assert!(search(Logistic, false, 3000, 1) > 0.6);
    assert!(search(HuberSvm::new(0.5).unwrap(), false, 3000, 2) > 0.8);
    assert!(search(Squared, true, 3000, 3) > 0.5);
}

/// The quadratic loss under which the difference of the runs is the recursion itself, for any schedule and average.
#[test]
fn the_recursion_is_attained() {
    let mut rng = SeededRng::new(4);
    for _ in 0..1500 {
        let n = rng.random_range(1..9usize);
        let batch_size = rng.random_range(1..=5u64);
        let passes = rng.random_range(1..4u64);
        let gamma: f64 = if rng.random_bool(0.7) { rng.random_range(0.01..1.0) } else { 0.0 };
        let updates = (n as u64).div_ceil(batch_size) * passes;
        let averaging = match rng.random_range(0..5) {
            0 => Averaging::Last,
            1 => Averaging::Uniform,
            2 => Averaging::Suffix { updates: rng.random_range(1..=updates) },
            3 => Averaging::Restarts { updates: rng.random_range(1..=updates) },
            _ => Averaging::Polynomial,
        };
        // β = γ: the loss is (γ/2) w² - z w, and a step multiplies the difference by 1 - ηγ, of either sign; with steps of at
        // most 1/γ the contributions of all passes have the same sign.
        let step = rng.random_range(0.05..1.0) / gamma.max(0.3);
        let order = if rng.random_bool(0.5) { OrderPolicy::Fixed } else { OrderPolicy::Fresh };
        let growth = Growth {
            averaging,
            order,
            divisor: if rng.random_bool(0.5) { Divisor::Actual } else { Divisor::Nominal },
            smoothness: gamma.max(1e-12),
            strong_convexity: gamma,
            ..growth(n as u64, batch_size, passes, Schedule::Constant { step })
        };
        let sensitivity = growth.sensitivity().unwrap();
        // Put the record where the recursion is largest, in every pass.
        let most = (0..n)
            .map(|position| {
                let order: Vec<u32> = (0..n as u32).collect();
                let outputs = [1.0, -1.0].map(|z| {
                    let mut targets = vec![0.25; n];
                    targets[position] = z;
                    let examples = crate::support::dense(&vec![vec![1.0]; n], &targets);
                    let mut source = Prescribed { examples, orders: vec![order.clone()], blocks: vec![] };
                    run(&growth, Inner, vec![0.0], Arithmetic::Buffered, &mut source)
                });
                let moved = distance(&outputs[0], &outputs[1]);
                let bound = sensitivity.by_position[position / batch_size.min(n as u64) as usize];
                let rounding = 1e-14;
                assert!(moved <= bound + rounding && moved >= 0.999 * bound, "{moved} of {bound}: {growth:?}");
                moved
            })
            .fold(0.0, f64::max);
        if order == OrderPolicy::Fixed {
            assert!(most >= 0.999 * sensitivity.bound);
        }
    }
}

/// A record at the worst position of each pass attains the bound for fresh permutations.
#[test]
fn fresh_permutations_attain_the_sum_of_worst_positions() {
    let gamma = 0.3;
    let growth = Growth {
        averaging: Averaging::Uniform,
        order: OrderPolicy::Fresh,
        smoothness: gamma,
        strong_convexity: gamma,
        ..growth(6, 2, 3, Schedule::Constant { step: 1.0 })
    };
    // Contributions c_t = η G/b A_t; the worst position of each pass, by enumeration.
    let mut best: f64 = 0.0;
    for worst in 0..27 {
        let slots = [worst % 3, worst / 3 % 3, worst / 9].map(|slot| slot as usize * 2);
        let orders: Vec<Vec<u32>> = slots
            .iter()
            .map(|&slot| {
                let mut order: Vec<u32> = (1..6).collect();
                order.insert(slot, 0);
                order
            })
            .collect();
        let outputs = [1.0, -1.0].map(|z| {
            let mut targets = vec![0.5; 6];
            targets[0] = z;
            let examples = crate::support::dense(&vec![vec![1.0]; 6], &targets);
            let mut source = Prescribed { examples, orders: orders.clone(), blocks: vec![] };
            run(&growth, Inner, vec![0.0], Arithmetic::Scaled, &mut source)
        });
        best = best.max(distance(&outputs[0], &outputs[1]));
    }
    let bound = growth.bound().unwrap();
    assert!(best <= bound && best >= 0.999 * bound, "{best} of {bound}");
}

fn source<F: dp_losses::Real>(
    rows: &[Vec<f64>],
    targets: &[f64],
    orders: &[Vec<u32>],
    compressed: bool,
) -> Prescribed<F> {
    let examples =
        if compressed { crate::support::sparse(rows, targets) } else { crate::support::dense(rows, targets) };
    Prescribed { examples, orders: orders.to_vec(), blocks: vec![] }
}

/// The allowance for rounding covers the difference between the runs in double and in single precision, when it is computed
/// for the unit of single precision: the same proof, at a scale where it matters. Small balls and long steps make batches in
/// which large gradients cancel, the hardest case for a norm that is updated from example to example.
#[test]
fn the_allowance_for_rounding_holds() {
    let mut rng = SeededRng::new(5);
    for trial in 0..6000 {
        let n = rng.random_range(1..40usize);
        let batch_size = rng.random_range(1..=6u64);
        let lambda = if rng.random_bool(0.5) { rng.random_range(0.01..1.0) } else { 0.0 };
        let radius = rng.random_bool(0.5).then(|| 10f64.powf(rng.random_range(-4.0..0.3)));
        let constants = Constants::new(&Logistic, L2::new(lambda).unwrap(), &Domain::unit_rows());
        let passes = rng.random_range(1..4u64);
        let updates = (n as u64).div_ceil(batch_size) * passes;
        let averaging = match trial % 5 {
            0 => Averaging::Last,
            1 => Averaging::Uniform,
            2 => Averaging::Polynomial,
            3 => Averaging::Restarts { updates: rng.random_range(1..=updates) },
            _ => Averaging::Coefficients { values: (0..updates).map(|_| rng.random_range(-1.0..1.0)).collect() },
        };
        let arithmetic = Arithmetic::ALL[rng.random_range(0..3)];
        let divisor = if rng.random_bool(0.5) { Divisor::Actual } else { Divisor::Nominal };
        let base = Growth {
            averaging,
            divisor,
            smoothness: constants.smoothness,
            strong_convexity: lambda,
            radius,
            ..growth(n as u64, batch_size, passes, schedules(&constants, n as u64, updates, &mut rng))
        };
        let rounding =
            Rounding { unit_roundoff: 2f64.powi(-24), dim: DIM as u64, outputs: 1, data_lipschitz: 1.0, arithmetic };
        // Without a radius, steps beyond 2/λ leave the iterates unbounded.
        let Ok(with) = (Growth { rounding: Some(rounding), ..base.clone() }).sensitivity() else { continue };
        let allowance = with.bound - base.sensitivity().unwrap().bound;
        // Rows that single precision represents exactly, so that both runs see the same data. Some are followed by nearly
        // their opposite.
        let mut rows: Vec<Vec<f64>> = (0..n)
            .map(|_| record(&mut rng, false).0.iter().map(|&x| f64::from((x * 0.999) as f32)).collect())
            .collect();
        let targets: Vec<f64> = (0..n).map(|_| [-1.0, 1.0][rng.random_range(0..2)]).collect();
        let mut order = permutation(&mut rng, n);
        if rng.random_bool(0.5) {
            order = (0..n as u32).collect();
            for i in 1..n {
                if rng.random_bool(0.5) {
                    let nearly = targets[i] * targets[i - 1] * (1.0 - 10f64.powf(rng.random_range(-6.0..0.0)));
                    rows[i] = rows[i - 1].iter().map(|x| f64::from((-x * nearly) as f32)).collect();
                }
            }
        }
        let orders = vec![order];
        let compressed = rng.random_bool(0.5);
        let start = || vec![0.0; DIM];
        let double = run(&base, Logistic, start(), arithmetic, &mut source(&rows, &targets, &orders, compressed));
        let single =
            run(&base, Logistic, vec![0.0f32; DIM], arithmetic, &mut source(&rows, &targets, &orders, compressed));
        let single: Vec<f64> = single.into_iter().map(f64::from).collect();
        let moved = distance(&double, &single);
        // The allowance is for two runs, each off by half of it.
        assert!(moved <= allowance / 2.0, "{moved} beyond half of {allowance} ({arithmetic:?}): {base:?}");
    }
}

/// Two nearly opposite gradients, far longer than the ball, within one batch of sparse rows: the norm updated from example to
/// example has lost most of its digits when it decides about the projection.
#[test]
fn the_allowance_covers_norms_that_cancel() {
    let mut worst: f64 = 0.0;
    for i in 0..400 {
        let radius = 10f64.powf(-4.0 + 0.01 * f64::from(i));
        let step = 10.0;
        // Exact in single precision; the batch moves the iterate by about 1.5 radii.
        let shorter = f64::from((1.0 - 1.5 * radius / (0.25 * step)) as f32);
        let base = Growth { smoothness: 0.25, radius: Some(radius), ..growth(2, 2, 1, Schedule::Constant { step }) };
        let rounding = Rounding {
            unit_roundoff: 2f64.powi(-24),
            dim: 1,
            outputs: 1,
            data_lipschitz: 1.0,
            arithmetic: Arithmetic::Scaled,
        };
        let with = Growth { rounding: Some(rounding), ..base.clone() };
        let allowance = with.sensitivity().unwrap().bound - base.sensitivity().unwrap().bound;
        let rows = [vec![1.0], vec![shorter]];
        let orders = vec![vec![0, 1]];
        let mut double = Prescribed {
            examples: crate::support::sparse(&rows, &[1.0, -1.0]),
            orders: orders.clone(),
            blocks: vec![],
        };
        let mut single = Prescribed { examples: crate::support::sparse(&rows, &[1.0, -1.0]), orders, blocks: vec![] };
        let double = run(&base, Logistic, vec![0.0f64], Arithmetic::Scaled, &mut double)[0];
        let single = f64::from(run(&base, Logistic, vec![0.0f32], Arithmetic::Scaled, &mut single)[0]);
        worst = worst.max((double - single).abs() / (allowance / 2.0));
    }
    assert!(worst <= 1.0, "{worst} times the allowance");
    assert!(worst > 1e-5, "the search is idle: {worst}");
}

/// A long run in two parts: its rounding error does not grow with the updates, whereas that of a plain run does. In single
/// precision, compared with the same run in double precision.
#[test]
fn rounding_in_two_parts_does_not_grow_with_the_updates() {
    let (n, passes, lambda, unit) = (2000usize, 100, 1e-3, 2f64.powi(-24));
    let mut rng = SeededRng::new(6);
    let rows: Vec<Vec<f64>> =
        (0..n).map(|_| record(&mut rng, false).0.iter().map(|&x| f64::from((x * 0.999) as f32)).collect()).collect();
    let targets: Vec<f64> = rows.iter().map(|x| if x[0] + 0.3 * x[1] > 0.2 { 1.0 } else { -1.0 }).collect();
    let orders = vec![permutation(&mut rng, n)];
    for (radius, averaging) in [(None, Averaging::Last), (Some(3.0), Averaging::Uniform)] {
        let smoothness = 0.25 + lambda;
        let base = Growth {
            averaging,
            smoothness,
            strong_convexity: lambda,
            radius,
            ..growth(n as u64, 1, passes, Schedule::StronglyConvex { smoothness, strong_convexity: lambda })
        };
        let exact = base.sensitivity().unwrap().bound;
        for compressed in [false, true] {
            let mut allowed = [0.0; 3];
            for (arithmetic, allowed) in Arithmetic::ALL.into_iter().zip(&mut allowed) {
                let rounding =
                    Rounding { unit_roundoff: unit, dim: DIM as u64, outputs: 1, data_lipschitz: 1.0, arithmetic };
                let with = Growth { rounding: Some(rounding), ..base.clone() };
                *allowed = with.sensitivity().unwrap().bound - exact;
            }
            assert!(50.0 * allowed[2] < allowed[0] && 50.0 * allowed[2] < allowed[1], "{allowed:?}");
            fn ran<F: dp_losses::Real>(base: &Growth, data: Prescribed<F>, arithmetic: Arithmetic) -> Vec<f64> {
                let mut data = data;
                let output = run(base, Logistic, vec![F::zero(); DIM], arithmetic, &mut data);
                output.into_iter().map(|w| w.to_subset_unchecked()).collect()
            }
            let exactly = ran(&base, source::<f64>(&rows, &targets, &orders, compressed), Arithmetic::TwoParts);
            let single = ran(&base, source::<f32>(&rows, &targets, &orders, compressed), Arithmetic::TwoParts);
            let moved = distance(&exactly, &single);
            assert!(moved <= allowed[2] / 2.0, "{moved} beyond half of {} ({compressed}): {base:?}", allowed[2]);
            let plain = ran(&base, source::<f64>(&rows, &targets, &orders, compressed), Arithmetic::Buffered);
            assert!(distance(&exactly, &plain) < 1e-9, "another model than the plain run's");
        }
    }
}
