//! Sensitivities and traces against values computed elsewhere to 50 digits.

use crate::support::{averaging, close, count, dense, golden, growth, number, numbers, run, schedule, sparse};
use dp_losses::{HuberSvm, Logistic, Loss};
use dp_optim::Averaging;
use dp_optim::growth::{Arithmetic, Divisor, Growth, OrderPolicy, closed_form, expansion};
use serde_json::Value;

fn from_case(input: &Value) -> Growth {
    Growth {
        averaging: input.get("average").map_or(Averaging::Last, averaging),
        order: if input["permutation"] == "fresh" { OrderPolicy::Fresh } else { OrderPolicy::Fixed },
        divisor: if input["divide_by"] == "nominal" { Divisor::Nominal } else { Divisor::Actual },
        smoothness: number(&input["beta"]),
        strong_convexity: number(&input["gamma"]),
        gradient_difference: number(&input["grad_diff"]),
        radius: input.get("radius").and_then(Value::as_f64),
        ..growth(count(&input["m"]), count(&input["b"]), count(&input["k"]), schedule(&input["schedule"]))
    }
}

#[test]
fn the_recursion_gives_the_exact_sensitivities() {
    for case in golden("psgd_sensitivity_exact") {
        let (id, growth) = (case["id"].as_str().unwrap(), from_case(&case["in"]));
        let tolerance = number(&case["rtol"]);
        let expected = number(&case["out"]["sensitivity"]);
        let formula = growth.formula().unwrap();
        close(formula.bound, expected, tolerance, id);
        if let Some(positions) = case["out"].get("by_position") {
            let positions = numbers(positions);
            assert_eq!(positions.len(), formula.by_position.len(), "{id}");
            for (&found, &expected) in formula.by_position.iter().zip(&positions) {
                close(found, expected, tolerance, id);
            }
        }
        // The certified bounds are never below, and above only by rounding.
        for bound in [growth.sensitivity().unwrap().bound, growth.bound().unwrap()] {
            assert!(bound >= expected * (1.0 - 1e-15), "{id}: {bound} below {expected}");
            close(bound, expected, 1e-10, id);
        }
    }
}

#[test]
fn closed_forms() {
    for case in golden("sensitivity_closed") {
        let input = &case["in"];
        let (g, f, c) =
            (number(&input["grad_diff"]), |name: &str| number(&input[name]), |name: &str| count(&input[name]));
        let found = match input["rule"].as_str().unwrap() {
            "convex_const" => closed_form::convex_constant(c("k"), f("eta"), c("b"), g),
            "convex_dec" => closed_form::convex_decreasing(c("m"), c("b"), c("k"), f("c"), f("beta"), g),
            "convex_sqrt" => closed_form::convex_square_root(c("m"), c("b"), c("k"), f("c"), f("beta"), g),
            "strongly_const_sup" => {
                closed_form::strongly_convex_constant_supremum(c("m"), c("b"), f("eta"), f("gamma"), g)
            }
            "strongly_const_kpass" => {
                closed_form::strongly_convex_constant(c("m"), c("b"), c("k"), f("eta"), f("gamma"), g)
            }
            "strongly_dec" => closed_form::strongly_convex_decreasing(c("m"), f("gamma"), g),
            "approx_minimiser" => closed_form::approximate_minimiser(c("m"), f("gamma"), g, f("tau")),
            other => panic!("unknown rule {other}"),
        };
        close(found, number(&case["out"]["sensitivity"]), number(&case["rtol"]), case["id"].as_str().unwrap());
    }
}

#[test]
fn expansion_of_one_step() {
    for case in golden("expansiveness") {
        let input = &case["in"];
        let found = expansion(number(&input["eta"]), number(&input["beta"]), number(&input["gamma"]));
        close(found, number(&case["out"]["rho"]), number(&case["rtol"]), case["id"].as_str().unwrap());
    }
}

#[test]
fn averaging_over_the_hidden_position() {
    for case in golden("gaussian_position_averaged") {
        let (id, input, out) = (case["id"].as_str().unwrap(), &case["in"], &case["out"]);
        let growth = from_case(input);
        let formula = growth.formula().unwrap();
        let (std_dev, epsilon, alpha) = (number(&input["sigma"]), number(&input["eps"]), number(&input["alpha"]));
        let weight = |r: usize| growth.position_weight(r as u64);
        let delta = |sensitivity: f64| dp_accountant::gaussian::delta(sensitivity / std_dev, epsilon).unwrap();
        let positions = || formula.by_position.iter().copied().enumerate();
        let tolerance = number(&case["rtol"]);
        let averaged: f64 = positions().map(|(r, s)| weight(r) * delta(s)).sum();
        close(averaged, number(&out["delta_avg"]), tolerance, id);
        close(delta(formula.bound), number(&out["delta_worst"]), tolerance, id);
        let rdp = |s: f64| alpha * s * s / (2.0 * std_dev * std_dev);
        let mixed: f64 = positions().map(|(r, s)| weight(r) * ((alpha - 1.0) * rdp(s)).exp()).sum();
        close(mixed.ln() / (alpha - 1.0), number(&out["rdp_avg"]), tolerance, id);
        close(rdp(formula.bound), number(&out["rdp_worst"]), tolerance, id);

        // The event of a release rounds positions up to classes: never below, and close.
        let classes = dp_optim::growth::PositionClasses::new(&growth, &growth.sensitivity().unwrap()).unwrap();
        let weights: f64 = classes.weights.iter().sum();
        close(weights, 1.0, 1e-12, id);
        let classed: f64 = classes.sensitivities.iter().zip(&classes.weights).map(|(&s, w)| w * delta(s)).sum();
        assert!(classed >= averaged * (1.0 - 1e-12), "{id}");
        close(classed, averaged, 0.01, id);
    }
}

fn trace<L: Loss<f64>>(case: &Value, loss: L) {
    let (id, input, out) = (case["id"].as_str().unwrap(), &case["in"], &case["out"]);
    let rows: Vec<Vec<f64>> = input["x"].as_array().unwrap().iter().map(numbers).collect();
    let targets = numbers(&input["y"]);
    let orders: Vec<Vec<u32>> = input["orders"]
        .as_array()
        .unwrap()
        .iter()
        .map(|order| order.as_array().unwrap().iter().map(|i| count(i) as u32).collect())
        .collect();
    let lambda = number(&input["lam"]);
    let base = Growth {
        divisor: Divisor::Actual,
        strong_convexity: lambda,
        radius: input["radius"].as_f64(),
        ..growth(rows.len() as u64, count(&input["b"]), count(&input["k"]), schedule(&input["schedule"]))
    };
    let updates = base.updates_per_pass() * base.passes;
    for arithmetic in Arithmetic::ALL {
        for (examples, blocks) in [
            (dense(&rows, &targets), vec![]),
            (dense(&rows, &targets), vec![3, 1, 2]),
            (sparse(&rows, &targets), vec![2, 5]),
        ] {
            let mut source = crate::support::Prescribed { examples, orders: orders.clone(), blocks };
            let mut output = |averaging: Averaging| {
                run(&Growth { averaging, ..base.clone() }, loss, numbers(&input["w0"]), arithmetic, &mut source)
            };
            let mut check = |averaging: Averaging, expected: &Value, what: &str| {
                for (found, expected) in output(averaging).into_iter().zip(numbers(expected)) {
                    let near = (found - expected).abs() <= 1e-12 + number(&case["rtol"]) * expected.abs();
                    assert!(near, "{id} {arithmetic:?} {what}: {found} instead of {expected}");
                }
            };
            check(Averaging::Last, &out["last"], "last");
            check(Averaging::Uniform, &out["mean"], "mean");
            check(Averaging::Suffix { updates: count(&out["suffix_s"]) }, &out["suffix_mean"], "suffix");
            // Each iterate, as the average that gives it all the weight.
            let iterates = out["iterates"].as_array().cloned().unwrap_or_else(|| vec![out["first"].clone()]);
            for (i, expected) in iterates.iter().enumerate() {
                let mut values = vec![0.0; updates as usize];
                values[i] = 1.0;
                check(Averaging::Coefficients { values }, expected, "iterate");
            }
            let last = output(Averaging::Last);
            let data: f64 = rows
                .iter()
                .zip(&targets)
                .map(|(x, &y)| loss.value(x.iter().zip(&last).map(|(a, b)| a * b).sum(), y))
                .sum();
            let penalty: f64 = last.iter().map(|w| lambda / 2.0 * w * w).sum();
            close(data / rows.len() as f64 + penalty, number(&out["empirical_risk_last"]), 1e-12, id);
        }
    }
}

#[test]
fn traces_through_the_engine() {
    for case in golden("psgd_trace") {
        match case["in"]["loss"].as_str().unwrap() {
            "logistic" => trace(&case, Logistic),
            "huber_svm" => trace(&case, HuberSvm::new(number(&case["in"]["h"])).unwrap()),
            other => panic!("unknown loss {other}"),
        }
    }
}
