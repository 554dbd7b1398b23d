//! Published sensitivities that are too small: each counter-example is run, and exceeds the formula but not the recursion.
//! Restoring a published formula breaks these tests.
//!
//! The data are numbers `z` under the loss `(γ/2) w² - z w` from the origin, all zero except for one that is +1 in one data
//! set and -1 in its neighbour; the gradient of the data part is `-z`, so that `G = 2`.

use crate::support::{Inner, Prescribed, close, count, distance, golden, growth, number, run};
use dp_losses::{HuberSvm, Logistic, Loss};
use dp_optim::Averaging;
use dp_optim::Schedule;
use dp_optim::growth::{Arithmetic, Divisor, Growth, as_published, closed_form};
use serde_json::Value;

/// Distance of the runs on data that differ at position `at`.
fn realised<L: Loss<f64>>(growth: &Growth, loss: L, at: usize, pair: [(f64, f64); 2]) -> f64 {
    let outputs = pair.map(|(x, y)| {
        let n = growth.n as usize;
        let mut rows = vec![vec![0.0]; n];
        let mut targets = vec![1.0; n];
        rows[at] = vec![x];
        targets[at] = y;
        let orders = vec![(0..n as u32).collect()];
        let mut source = Prescribed { examples: crate::support::dense(&rows, &targets), orders, blocks: vec![] };
        run(growth, loss, vec![0.0], Arithmetic::Buffered, &mut source)
    });
    distance(&outputs[0], &outputs[1])
}

fn apart(growth: &Growth, at: usize) -> f64 {
    realised(growth, Inner, at, [(1.0, 1.0), (1.0, -1.0)])
}

fn cases(id: &str) -> Vec<Value> {
    let cases: Vec<Value> = golden("erratum").into_iter().filter(|case| case["in"]["id"] == id).collect();
    assert!(!cases.is_empty() || std::env::var_os("DP_GOLDEN_DIR").is_some(), "no case of {id}");
    cases
}

/// The published bound fails and the recursion holds; the counter-examples attain it.
#[track_caller]
fn refutes(growth: &Growth, realised: f64, published: f64) {
    assert!(realised > published, "{realised} within the published {published}");
    let bound = growth.bound().unwrap();
    assert!(realised <= bound, "{realised} beyond {bound}");
    let another_folder = std::env::var_os("DP_GOLDEN_DIR").is_some();
    assert!(realised >= 0.999 * bound || another_folder, "{bound} is not attained: {realised}");
    assert!(growth.sensitivity().unwrap().bound >= realised);
}

fn shape(input: &Value, schedule: Schedule) -> Growth {
    growth(count(&input["m"]), count(&input["b"]), count(&input["k"]), schedule)
}

#[test]
fn e1_batches_do_not_divide_the_strongly_convex_sensitivity() {
    for case in cases("E1") {
        let (input, out) = (&case["in"], &case["out"]);
        let (beta, gamma) = (number(&input["beta"]), number(&input["gamma"]));
        let steps = Schedule::StronglyConvex { smoothness: beta, strong_convexity: gamma };
        let growth = Growth { smoothness: beta, strong_convexity: gamma, ..shape(input, steps) };
        let moved = apart(&growth, growth.n as usize - 1);
        close(moved, number(&out["realised"]), 1e-12, "realised");
        let published = as_published::strongly_convex_decreasing_with_batches(growth.n, growth.batch_size, gamma, 2.0);
        close(published, number(&out["claimed_divided_by_b"]), 1e-12, "published");
        close(closed_form::strongly_convex_decreasing(growth.n, gamma, 2.0), number(&out["correct"]), 1e-12, "correct");
        refutes(&growth, moved, published);
    }
}

#[test]
fn e1_for_a_regularised_classifier() {
    for case in cases("E1_logistic") {
        let (input, out) = (&case["in"], &case["out"]);
        let (beta, lambda) = (number(&input["beta"]), number(&input["lam"]));
        let steps = Schedule::StronglyConvex { smoothness: beta, strong_convexity: lambda };
        let growth = Growth {
            smoothness: beta,
            strong_convexity: lambda,
            radius: Some(number(&input["radius"])),
            ..shape(input, steps)
        };
        let moved = realised(&growth, Logistic, growth.n as usize - 1, [(1.0, 1.0), (1.0, -1.0)]);
        close(moved, number(&out["realised"]), 1e-12, "realised");
        let l = number(&input["lipschitz"]);
        let published =
            as_published::strongly_convex_decreasing_with_batches(growth.n, growth.batch_size, lambda, 2.0 * l);
        close(published, number(&out["claimed_divided_by_b"]), 1e-12, "published");
        assert!(moved > published && moved <= growth.bound().unwrap());
    }
}

#[test]
fn e2_contraction_counts_updates_not_examples() {
    for case in cases("E2") {
        let (input, out) = (&case["in"], &case["out"]);
        let (eta, gamma) = (number(&input["eta"]), number(&input["gamma"]));
        let growth = Growth { strong_convexity: gamma, ..shape(input, Schedule::Constant { step: eta }) };
        let (n, b) = (growth.n, growth.batch_size);
        let moved = apart(&growth, n as usize - 1);
        close(moved, number(&out["realised"]), 1e-12, "realised");
        let published = as_published::strongly_convex_constant_with_batches(n, b, eta, gamma, 2.0);
        close(published, number(&out["claimed_divided_by_b"]), 1e-12, "published");
        let supremum = closed_form::strongly_convex_constant_supremum(n, b, eta, gamma, 2.0);
        close(supremum, number(&out["correct_sup"]), 1e-12, "supremum");
        refutes(&growth, moved, published);
    }
}

#[test]
fn e3_decreasing_steps_count_updates_not_examples() {
    for case in cases("E3") {
        let (input, out) = (&case["in"], &case["out"]);
        let (beta, power) = (number(&input["beta"]), number(&input["c"]));
        let (m, b, k) = (count(&input["m"]), count(&input["b"]), count(&input["k"]));
        let (steps, published) = if input["rule"] == "dec" {
            (
                Schedule::Decreasing { smoothness: beta, examples: m as f64, power },
                as_published::convex_decreasing_with_batches(m, b, k, power, beta, 2.0),
            )
        } else {
            (
                Schedule::SquareRoot { smoothness: beta, examples: m as f64, power },
                as_published::convex_square_root_with_batches(m, b, k, power, beta, 2.0),
            )
        };
        let growth = Growth { smoothness: beta, ..shape(input, steps) };
        let moved = apart(&growth, 0);
        close(moved, number(&out["realised"]), 1e-12, "realised");
        close(published, number(&out["claimed_divided_by_b"]), 1e-12, "published");
        refutes(&growth, moved, published);
    }
}

#[test]
fn e4_a_short_last_batch_weighs_more() {
    for case in cases("E4") {
        let (input, out) = (&case["in"], &case["out"]);
        let eta = number(&input["eta"]);
        let growth = Growth { divisor: Divisor::Actual, ..shape(input, Schedule::Constant { step: eta }) };
        let last = growth.n as usize - 1;
        let moved = apart(&growth, last);
        close(moved, number(&out["realised"]), 1e-12, "realised");
        let published = as_published::convex_constant_with_partial_batch(growth.passes, eta, growth.batch_size, 2.0);
        close(published, number(&out["claimed_divided_by_b"]), 1e-12, "published");
        refutes(&growth, moved, published);
        // The nominal divisor corrects it.
        let nominal = Growth { divisor: Divisor::Nominal, ..growth };
        close(apart(&nominal, last), published, 1e-12, "nominal");
        close(nominal.bound().unwrap(), published, 1e-10, "nominal bound");
    }
}

#[test]
fn e5_averaging_can_raise_the_sensitivity() {
    for case in cases("E5") {
        let (input, out) = (&case["in"], &case["out"]);
        let (beta, gamma) = (number(&input["beta"]), number(&input["gamma"]));
        let steps = Schedule::StronglyConvex { smoothness: beta, strong_convexity: gamma };
        let growth =
            Growth { smoothness: beta, strong_convexity: gamma, averaging: Averaging::Uniform, ..shape(input, steps) };
        let moved = apart(&growth, 0);
        close(moved, number(&out["realised"]), 1e-12, "realised");
        let published = as_published::averaged_strongly_convex_decreasing(growth.n, gamma, 2.0);
        close(published, number(&out["claimed_last_iterate"]), 1e-12, "published");
        refutes(&growth, moved, published);
    }
}

#[test]
fn e6_a_direction_from_the_ball_hides_nothing() {
    for case in cases("E6") {
        let (input, out) = (&case["in"], &case["out"]);
        let (scale, shift, at) = (number(&input["theta"]), number(&input["distance"]), number(&input["at_norm"]));
        let log_density = |norm: f64| as_published::log_density_of_ball_direction(norm, scale);
        // The distance is `at` from one input's value and `shift` from the other's.
        let ratio = log_density(at) - log_density(shift);
        close(ratio, number(&out["log_density_ratio"]), 1e-12, "ratio");
        let promised = shift / scale;
        close(promised, number(&out["claimed_max"]), 1e-12, "promised");
        assert!(ratio > promised);
        // With directions from the sphere the log density is linear in the norm, and the guarantee holds.
        assert!((shift - at) / scale <= promised);
    }
}

#[test]
fn e7_stopping_on_the_training_error_is_data_dependent() {
    for case in cases("E7") {
        let (input, out) = (&case["in"], &case["out"]);
        let (n, gamma, beta) = (count(&input["m"]), number(&input["gamma"]), number(&input["beta"]));
        let threshold = number(&input["mu"]);
        let steps = Schedule::StronglyConvex { smoothness: beta, strong_convexity: gamma };
        // The first record is +1 or -1, all others are +1; a run of k passes is a run of the engine.
        let after = |first: f64, passes: u64| -> f64 {
            let growth = Growth { smoothness: beta, strong_convexity: gamma, ..growth(n, 1, passes, steps.clone()) };
            let mut targets = vec![1.0; n as usize];
            targets[0] = first;
            let orders = vec![(0..n as u32).collect()];
            let rows = vec![vec![1.0]; n as usize];
            let mut source = Prescribed { examples: crate::support::dense(&rows, &targets), orders, blocks: vec![] };
            run(&growth, Inner, vec![0.0], Arithmetic::Buffered, &mut source)[0]
        };
        let risk = |first: f64, w: f64| gamma / 2.0 * w * w - w * (n as f64 - 1.0 + first) / n as f64;
        let stopped = |first: f64| -> (u64, f64) {
            let mut before = 0.0;
            for passes in 1..10_000 {
                let w = after(first, passes);
                if before - risk(first, w) < threshold {
                    return (passes, w);
                }
                before = risk(first, w);
            }
            panic!("never stopped");
        };
        let ((passes, w), (passes_neighbour, w_neighbour)) = (stopped(1.0), stopped(-1.0));
        assert_eq!((passes, passes_neighbour), (count(&out["passes_D"]), count(&out["passes_D_prime"])));
        close(w, number(&out["w_D"]), 1e-12, "w");
        close(w_neighbour, number(&out["w_D_prime"]), 1e-12, "w of the neighbour");
        let published = as_published::stopped_on_training_error(n, gamma, number(&input["lipschitz"]));
        close(published, number(&out["claimed_2L_over_gamma_m"]), 1e-12, "published");
        assert!((w - w_neighbour).abs() > published);
        close((w - w_neighbour).abs(), number(&out["realised"]), 1e-11, "realised");
        // With a fixed number of passes the results on the same data are close.
        let same = (after(1.0, passes_neighbour) - after(-1.0, passes_neighbour)).abs();
        close(same, number(&out["same_pass_diff"]), 1e-9, "after the same number of passes");
        let fixed = Growth { smoothness: beta, strong_convexity: gamma, ..growth(n, 1, passes_neighbour, steps) };
        assert!(same <= fixed.bound().unwrap());
    }
}

#[test]
fn the_huber_loss_attains_the_recursion_with_batches() {
    // Both records of the pair lie on the linear part of the loss at every point of the run, so that their gradients always
    // differ by 2.
    let loss = HuberSvm::new(0.1).unwrap();
    let steps = Schedule::Constant { step: 0.01 };
    let growth = Growth { smoothness: 5.0, ..growth(40, 8, 3, steps) };
    let moved = realised(&growth, loss, 39, [(1.0, 1.0), (1.0, -1.0)]);
    refutes(&growth, moved, growth.bound().unwrap() / 8.0);
}
