//! The Laplace ball, bounded range, random stopping, the sparse vector technique and objective perturbation.

use dp_accountant::objective_perturbation::published_rdp;
use dp_accountant::rdp::{self, random_stopping};
use dp_accountant::{RdpOrder, laplace_ball, zcdp};

use super::{DpEvent, PathBuf, Value, another_folder, check, curve_at, load, number, numbers};

fn order(input: &Value) -> RdpOrder {
    RdpOrder::new(number(input, "alpha")).unwrap()
}

/// Runs `evaluate` on every case of one function, and fails if the tree's own file has none.
fn each(file: &str, function: &str, evaluate: impl Fn(&Value, &Value, &Value)) {
    let file = load(file);
    let cases = file["cases"].as_array().unwrap();
    let of_function: Vec<_> = cases.iter().filter(|case| case["fn"] == function || case["kind"] == function).collect();
    assert!(!of_function.is_empty() || another_folder(), "no case of {function}");
    for case in of_function {
        let (input, out) = if case["fn"].is_string() { ("in", "out") } else { ("inputs", "expected") };
        evaluate(case, &case[input], &case[out]);
    }
}

/// Returns the cases of one family of `optim-rdp.json`.
fn family(name: &str) -> Vec<Value> {
    let directory = std::env::var_os("DP_GOLDEN_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden")), PathBuf::from);
    let path = directory.join("optim-rdp.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let cases = file["families"][name].as_array().cloned().unwrap_or_default();
    assert!(!cases.is_empty() || another_folder(), "no case of {name}");
    cases
}

#[test]
fn the_ball_is_exact() {
    each("mechanisms.json", "laplace_ball_rdp", |case, input, out| {
        let (x, dim) = (number(input, "eps"), input["d"].as_u64().unwrap());
        let got = laplace_ball::rdp(order(input), x, dim).unwrap();
        check(&case["id"], "rdp", got, number(out, "rdp"), number(case, "rtol"), number(case, "atol"));
    });
    each("mechanisms.json", "laplace_ball_delta", |case, input, out| {
        let (x, dim) = (number(input, "eps"), input["d"].as_u64().unwrap());
        let got = laplace_ball::delta(x, dim, number(input, "eps_at")).unwrap();
        let (id, expected, relative) = (&case["id"], number(out, "delta"), number(case, "rtol"));
        check(id, "upper", got.upper, expected, relative, number(case, "atol"));
        check(id, "lower", got.lower, expected, relative, number(case, "atol"));
    });
}

#[test]
fn bounded_range_is_exact_and_below_the_quadratic() {
    each("mechanisms.json", "bounded_range_rdp", |case, input, out| {
        let range = number(input, "eps");
        let got = rdp::bounded_range(order(input), range).unwrap();
        check(&case["id"], "rdp", got, number(out, "rdp"), number(case, "rtol"), number(case, "atol"));
        let rho = zcdp::rho(&DpEvent::BoundedRange { epsilon: range }).unwrap();
        assert!(rho * number(input, "alpha") <= number(out, "zcdp_bound_times_alpha") * (1.0 + 1e-12) && rho > 0.0);
        assert!(got <= rho * number(input, "alpha") * (1.0 + 1e-12));
    });
}

#[test]
fn random_stopping_by_the_published_forms() {
    each("optim-erm.json", "tnb", |case, input, out| {
        let got = random_stopping::mean_repetitions(number(input, "eta"), number(input, "gamma")).unwrap();
        check(&case["id"], "mean", got, number(out, "mean"), number(case, "rtol"), 1e-12);
    });
    each("optim-erm.json", "tuning_rdp_tnb", |case, input, out| {
        let auxiliary = RdpOrder::new(number(input, "alpha_hat")).unwrap();
        let (eta, gamma, rho) = (number(input, "eta"), number(input, "gamma"), number(input, "base_rho"));
        let (at, at_auxiliary) = (rho * order(input).get(), rho * auxiliary.get());
        let got = random_stopping::truncated_negative_binomial(eta, gamma, order(input), at, auxiliary, at_auxiliary)
            .unwrap();
        check(&case["id"], "rdp", got, number(out, "rdp"), number(case, "rtol"), 1e-12);
        // The event uses the best auxiliary order.
        let event = DpEvent::RandomStopping {
            repetitions: dp_accountant::Repetitions::TruncatedNegativeBinomial { eta, gamma },
            event: Box::new(DpEvent::Zcdp { rho }),
        };
        assert!(curve_at(&event, order(input).get()) <= got * (1.0 + 1e-9), "{}", case["id"]);
    });
    each("optim-erm.json", "tuning_pure_tnb", |case, input, out| {
        let got =
            random_stopping::pure_truncated_negative_binomial(number(input, "eta"), number(input, "eps")).unwrap();
        check(&case["id"], "eps", got, number(out, "eps"), number(case, "rtol"), 1e-12);
    });
    each("optim-erm.json", "tuning_rdp_poisson", |case, input, out| {
        let valid = number(input, "eps_hat") <= random_stopping::poisson_epsilon(order(input));
        assert_eq!(valid, out["valid"].as_bool().unwrap(), "{}", case["id"]);
        if valid {
            let mean = number(input, "mu");
            let (base, delta) = (number(input, "base_rdp"), number(input, "delta_hat"));
            let got = random_stopping::poisson(mean, order(input), base, delta).unwrap();
            // Ours counts the outcome of no repetition, which the published form omits.
            let published = number(out, "rdp");
            let of_none = (-mean).exp() / (mean * (order(input).get() - 1.0));
            let rounding = number(case, "rtol") * published.abs() + 1e-12;
            assert!((published - rounding..=published + of_none + rounding).contains(&got), "{}: {got}", case["id"]);
        }
    });
}

#[test]
fn the_sparse_vector_technique_is_never_above_the_published_bounds() {
    each("accountant.json", "rdp_above_threshold_laplace", |case, input, out| {
        let got = rdp::above_threshold_laplace(
            order(input),
            number(input, "epsilon_threshold"),
            number(input, "epsilon_query"),
        );
        let tolerance = &case["tol"];
        let expected = out.as_f64().unwrap();
        check(&case["id"], "rdp", got.unwrap(), expected, number(tolerance, "rel"), number(tolerance, "abs"));
    });
    // Here ours may be smaller: a larger order's bound, or that of the whole vector of noisy differences.
    each("accountant.json", "rdp_above_threshold_gaussian", |case, input, out| {
        let (threshold, query) = (number(input, "sigma_threshold").recip(), number(input, "sigma_query").recip());
        let queries = input["max_queries"].as_u64().unwrap();
        let got = rdp::above_threshold_gaussian(order(input), threshold, query, queries).unwrap();
        let expected = out.as_f64().unwrap();
        assert!(got <= expected * (1.0 + number(&case["tol"], "rel").max(1e-12)) && got > 0.0, "{}: {got}", case["id"]);
    });
}

#[test]
fn the_sparse_vector_technique_is_never_below_an_exact_divergence() {
    for case in family("at_exact_divergence") {
        let (threshold, query) = (number(&case, "threshold_scale").recip(), number(&case, "query_scale").recip());
        let queries = numbers(&case, "queries").len() as u64;
        let got = if case["noise"] == "gaussian" {
            rdp::above_threshold_gaussian(order(&case), threshold, query, queries)
        } else {
            rdp::above_threshold_laplace(order(&case), threshold, query)
        };
        assert!(got.unwrap() >= number(&case, "divergence") * (1.0 - 1e-9), "{}", case["id"]);
    }
}

/// The line search with Gaussian noise: ours is the smaller of the two bounds of the golden values, at an order that may be
/// larger.
#[test]
fn the_gaussian_line_search_is_never_above_the_golden_bounds() {
    for case in family("noisybtls_gaussian") {
        let (id, order) = (&case["id"], order(&case));
        let (threshold, query) = (number(&case, "sigma1").recip(), number(&case, "sigma2").recip());
        let queries = case["max_it"].as_u64().unwrap();
        let of_interval = rdp::above_threshold_gaussian_range_bounded(order, threshold, query, queries).unwrap();
        let of_any = rdp::above_threshold_gaussian(order, threshold, query, queries).unwrap();
        for (got, expected, shift) in
            [(of_interval, &case["range_bounded"], query), (of_any, &case["generic"], 2.0 * query)]
        {
            let best = number(expected, "best");
            assert!(got <= best * (1.0 + 1e-9) && got > 0.0, "{id}: {got} {best}");
            // If no larger order's bound by stopping times is smaller than the vector's, the golden value is ours too.
            let slope = 0.5 * (threshold * threshold + shift * shift);
            let log_outcomes = (queries as f64).ln_1p();
            let larger = order.get().max(1.0 + (log_outcomes / slope).sqrt());
            if number(expected, "composition") <= larger * slope + log_outcomes / (larger - 1.0) {
                check(id, "rdp", got, number(expected, "composition"), 1e-9, 1e-12);
            }
        }
        let event = DpEvent::AboveThresholdGaussian {
            threshold_std_dev: number(&case, "sigma1"),
            query_std_dev: number(&case, "sigma2"),
            sensitivity: 1.0,
            max_queries: queries,
            range_bounded: true,
        };
        check(id, "curve", curve_at(&event, order.get()), of_interval, 1e-12, 0.0);
        // The published number holds for an interval's queries up to 22 of them, and for any up to 6.
        let claimed = number(&case, "seed_theorem53");
        assert!(queries > 22 || of_interval <= claimed * (1.0 + 1e-12), "{id}");
        assert!(queries > 6 || of_any <= claimed * (1.0 + 1e-12), "{id}");
    }
}

/// Queries that move alternately refute the published theorem: its number is below the divergence, ours is not.
#[test]
fn the_published_sparse_vector_theorem_is_refuted() {
    for case in family("counterexamples").into_iter().filter(|case| case["id"] == "ce-theorem53") {
        let (threshold, query) = (number(&case, "threshold_sigma"), number(&case, "query_sigma"));
        let (order, truth) = (order(&case), number(&case, "true_divergence"));
        let claimed = 0.5 * order.get() * (threshold.powi(-2) + (2.0 / query).powi(2));
        check(&case["id"], "claimed", claimed, number(&case, "claimed"), 1e-12, 0.0);
        let queries = case["num_queries"].as_u64().unwrap();
        let got = rdp::above_threshold_gaussian(order, threshold.recip(), query.recip(), queries).unwrap();
        assert!(claimed < truth && got >= truth, "{claimed} {truth} {got}");
    }
}

#[test]
fn objective_perturbation_as_published_is_never_below_ours() {
    for case in family("objpert_rdp") {
        let (sigma, lambda) = (number(&case, "sigma"), number(&case, "lam_abs"));
        let (beta, slope) = (number(&case, "beta"), number(&case, "grad_bound"));
        let got = published_rdp(order(&case), sigma, lambda, beta, slope).unwrap();
        check(&case["id"], "rdp", got, number(&case, "rdp"), 1e-9, 1e-12);
        let loss = dp_accountant::MarginLoss::BoundedSlope { slope, curvature: beta };
        let event = DpEvent::ObjectivePerturbation { std_dev: sigma, regularization: lambda, loss };
        assert!(curve_at(&event, order(&case).get()) <= got * (1.0 + 1e-12), "{}", case["id"]);
    }
}
