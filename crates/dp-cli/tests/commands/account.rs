//! `dp account`: computes any number from the others, under the relation of the theorem, and never rounds towards a stronger
//! claim.

use crate::support::{Run, Workplace, one_value};
use serde_json::Value;

fn dpsgd<'a>(extra: &[&'a str]) -> Vec<&'a str> {
    [&["account", "dpsgd"][..], extra].concat()
}

const TRAINING: [&str; 6] = ["--noise-multiplier", "1.1", "--sampling-rate", "0.01", "--steps", "10000"];

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// Checks the members common to all answers.
#[track_caller]
fn answer(run: Run) -> Value {
    let value = run.json();
    let (lower, epsilon, upper) =
        (number(&value, "epsilon_lower"), number(&value, "epsilon"), number(&value, "epsilon_upper"));
    assert!(lower <= upper && epsilon == upper && lower >= 0.0, "{value}");
    assert!((0.0..1.0).contains(&number(&value, "delta")), "{value}");
    for key in ["schema", "job", "solved", "accountant", "adjacency", "theorem"] {
        assert!(value[key].is_string(), "{key}: {value}");
    }
    assert_eq!(value["schema"], "dp.account/1");
    assert!(value["n_public"].is_boolean());
    value
}

#[test]
fn epsilon_of_dpsgd() {
    let place = Workplace::new();
    let value = answer(place.dp(&dpsgd(&[&TRAINING[..], &["--delta", "1e-5", "--json"]].concat())));
    // dp-accounting 0.6.0 gives 5.6318 by Renyi orders; the exact curve lies below.
    assert!(number(&value, "epsilon") > 5.0 && number(&value, "epsilon") < 5.6319, "{value}");
    assert_eq!((value["solved"].as_str(), value["adjacency"].as_str()), (Some("epsilon"), Some("add-remove")));
    assert_eq!((value["n_public"].as_bool(), value["sampling"].as_str()), (Some(true), Some("poisson")));
    let text = place.dp(&dpsgd(&[&TRAINING[..], &["--delta", "1e-5"]].concat())).ok();
    let shown: f64 = text.lines().next().unwrap().strip_prefix("epsilon").unwrap().trim().parse().unwrap();
    assert!(shown >= number(&value, "epsilon") && shown < number(&value, "epsilon") + 1e-4, "{text}");
}

#[test]
fn epsilon_is_certified_from_both_sides() {
    let place = Workplace::new();
    let training = ["--noise-multiplier", "1", "--sampling-rate", "0.01", "--steps", "10000", "--delta", "1e-5"];
    let value = answer(place.dp(&dpsgd(&[&training[..], &["--json"]].concat())));
    let (lower, upper) = (number(&value, "epsilon_lower"), number(&value, "epsilon_upper"));
    // By quadrature of the moment function at 28 digits: 6.18771238997.
    assert!(lower <= 6.18771238998 && upper >= 6.18771238996 && upper - lower <= 1e-6 * upper, "{value}");
    assert_eq!(value["accountant"], "exact");
    let text = place.dp(&dpsgd(&training)).ok();
    assert!(text.contains("6.18772") && text.contains("certified: between 6.1877123"), "{text}");
}

#[test]
fn every_direction_leads_back_to_the_same_training() {
    let place = Workplace::new();
    let delta = ["--delta", "1e-5", "--epsilon", "3", "--json"];
    let cases: [(&str, &[&str]); 3] = [
        ("noise_multiplier", &["--sampling-rate", "0.01", "--steps", "2000"]),
        ("sampling_rate", &["--noise-multiplier", "1.1", "--steps", "2000"]),
        ("steps", &["--noise-multiplier", "1.1", "--sampling-rate", "0.01"]),
    ];
    for (solved, given) in cases {
        let found = answer(place.dp(&dpsgd(&[given, &delta[..]].concat())));
        assert_eq!((found["solved"].as_str(), found["target_epsilon"].as_f64()), (Some(solved), Some(3.0)));
        assert!(number(&found, "epsilon") <= 3.0 && number(&found, "epsilon") > 2.99, "{found}");
        let [noise, rate, steps] = ["noise_multiplier", "sampling_rate", "steps"].map(|key| found[key].to_string());
        let training = ["--noise-multiplier", &noise, "--sampling-rate", &rate, "--steps", &steps];
        let again = answer(place.dp(&dpsgd(&[&training[..], &["--delta", "1e-5", "--json"]].concat())));
        assert!((number(&again, "epsilon") / number(&found, "epsilon") - 1.0).abs() < 1e-6, "{found} {again}");
    }
    let delta = answer(place.dp(&dpsgd(&[&TRAINING[..], &["--epsilon", "4", "--json"]].concat())));
    assert!(number(&delta, "delta_lower") <= number(&delta, "delta") && number(&delta, "delta") > 1e-5, "{delta}");
    assert_eq!((delta["delta"].clone(), number(&delta, "epsilon")), (delta["delta_upper"].clone(), 4.0));
}

#[test]
fn one_more_step_is_one_too_many() {
    let place = Workplace::new();
    let given = ["--noise-multiplier", "0.8", "--sampling-rate", "0.02", "--delta", "1e-6", "--json"];
    let found = answer(place.dp(&dpsgd(&[&given[..], &["--epsilon", "2.5"]].concat())));
    let steps = found["steps"].as_u64().unwrap();
    for (steps, fits) in [(steps, true), (steps + 1, false)] {
        let steps = steps.to_string();
        let at = answer(place.dp(&dpsgd(&[&given[..], &["--steps", &steps]].concat())));
        assert_eq!(number(&at, "epsilon") <= 2.5, fits, "{found} {at}");
    }
}

#[test]
fn batches_and_epochs_are_rates_and_steps() {
    let place = Workplace::new();
    let given = ["--noise-multiplier", "1.1", "--delta", "1e-5", "--json"];
    let epochs = ["--batch-size", "256", "--records", "60000", "--epochs", "60"];
    let value = answer(place.dp(&dpsgd(&[&given[..], &epochs].concat())));
    // 60 * 60000 / 256 = 14062.5, rounded up.
    assert_eq!((value["steps"].as_u64(), number(&value, "sampling_rate")), (Some(14063), 256.0 / 60000.0));
    let whole = ["--sampling-rate", "0.006", "--epochs", "60"];
    assert_eq!(answer(place.dp(&dpsgd(&[&given[..], &whole].concat())))["steps"], 10_000);
    let counts = ["--sampling-rate", "0.01", "--steps", "1e4"];
    assert_eq!(answer(place.dp(&dpsgd(&[&given[..], &counts].concat())))["steps"], 10_000);
    place.dp(&dpsgd(&[&given[..], &epochs, &["--secret-n"]].concat())).fails_json(2, "usage.conflict", "--records");
    place.dp(&dpsgd(&[&given[..], &["--epochs", "3", "--epsilon", "1"]].concat())).fails_json(
        2,
        "usage.missing",
        "--sampling-rate",
    );
}

#[test]
fn relations_are_never_mixed() {
    let place = Workplace::new();
    let given = [&TRAINING[..], &["--delta", "1e-5"]].concat();
    let secret = ["--adjacency", "replace-one", "--secret-n"];
    place.dp(&dpsgd(&[&given[..], &secret].concat())).fails(2, "usage.conflict").says("--secret-n");
    let batches = [&given[..], &["--sampling", "without-replacement"]].concat();
    let run = place.dp(&dpsgd(&[&batches[..], &["--adjacency", "add-remove"]].concat()));
    run.fails(4, "privacy.adjacency").says("under replace-one");
    place.dp(&dpsgd(&[&batches[..], &["--secret-n"]].concat())).fails(4, "privacy.adjacency");
    let value = answer(place.dp(&dpsgd(&[&batches[..], &["--json"]].concat())));
    assert_eq!((value["adjacency"].as_str(), value["n_public"].as_bool()), (Some("replace-one"), Some(true)));
    let value = answer(place.dp(&dpsgd(&[&given[..], &["--secret-n", "--json"]].concat())));
    assert_eq!((value["adjacency"].as_str(), value["n_public"].as_bool()), (Some("add-remove"), Some(false)));
    let response = ["account", "randomized-response", "--noise", "0.5", "--adjacency", "add-remove"];
    place.dp(&response).fails(4, "privacy.adjacency");
    place
        .dp(&[
            "account",
            "gaussian",
            "--noise-multiplier",
            "1",
            "--delta",
            "1e-5",
            "--adjacency",
            "replace-one",
            "--secret-n",
        ])
        .fails(2, "usage.conflict")
        .says("--secret-n");
}

/// A replaced record in a Poisson sample of clipped vectors: the noise is relative to twice the clipping norm.
#[test]
fn poisson_samples_where_a_record_is_replaced() {
    let place = Workplace::new();
    let given = ["--sampling-rate", "0.01", "--steps", "1000", "--delta", "1e-5", "--json"];
    let ask = |more: &[&str]| answer(place.dp(&dpsgd(&[&given[..], more].concat())));
    let noise = ["--noise-multiplier", "0.8"];
    let replaced = ask(&[&noise[..], &["--adjacency", "replace-one"]].concat());
    let lists = ask(&[&noise[..], &["--adjacency", "change-list-labels"]].concat());
    let of = |value: &Value| value["epsilon"].as_f64().unwrap_or_else(|| panic!("{value}"));
    assert_eq!((&replaced["adjacency"], of(&replaced)), (&"replace-one".into(), of(&lists)));
    // The corresponding event of the library, at any scale.
    let event = r#"{"type":"poisson-sampled-replacement","sampling_rate":0.01,"std_dev":1.6,"distance":2,"radius":1}"#;
    let tree = format!(r#"{{"type":"self-composed","count":1000,"event":{event}}}"#);
    place.write("tree.json", tree);
    let told = place.dp(&["account", "event", "tree.json", "--delta", "1e-5", "--json"]);
    assert!((of(&answer(told)) / of(&replaced) - 1.0).abs() < 1e-9);
    // Replacement costs more than presence at the same noise relative to the clipping norm, and less than twice as much.
    let present = ask(&["--noise-multiplier", "1.6"]);
    assert!(of(&present) < of(&replaced) && of(&replaced) < 2.0 * of(&present), "{present} {replaced}");
    // Every number can be computed from the others.
    let epsilon = of(&replaced).to_string();
    for (left_out, near) in [("noise_multiplier", 0.8), ("sampling_rate", 0.01), ("steps", 1000.0)] {
        let numbers = [("noise_multiplier", "0.8"), ("sampling_rate", "0.01"), ("steps", "1000")];
        let kept = numbers.iter().filter(|(name, _)| *name != left_out);
        let flags: Vec<String> =
            kept.flat_map(|(name, value)| [format!("--{}", name.replace('_', "-")), (*value).to_owned()]).collect();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let fixed = ["--epsilon", &epsilon, "--delta", "1e-5", "--adjacency", "replace-one", "--json"];
        let value = answer(place.dp(&dpsgd(&[&flags[..], &fixed].concat())));
        assert!((value[left_out].as_f64().unwrap() / near - 1.0).abs() < 2e-3, "{left_out}: {value}");
    }
}

#[test]
fn simple_releases_cost_what_is_known() {
    let place = Workplace::new();
    let cases: [(&[&str], f64); 7] = [
        (&["gaussian", "--noise-multiplier", "1", "--delta", "1e-6"], 4.886554117462212),
        (&["gdp", "--mu", "1", "--delta", "1e-6"], 4.886554117462212),
        (&["gdp", "--mu", "0.1", "--count", "100", "--delta", "1e-6"], 4.886554117462212),
        (&["laplace", "--noise-multiplier", "2"], 0.5),
        (&["laplace-ball", "--noise-multiplier", "4", "--dim", "50"], 0.25),
        (&["pure", "--step-epsilon", "0.1", "--steps", "7"], 0.7),
        // ln of (1 - 1/2 + 1/4)/(1/4).
        (&["randomized-response", "--noise", "0.5"], 1.0986122886681098),
    ];
    for (arguments, expected) in cases {
        let value = answer(place.dp(&[&["account"], arguments, &["--json"]].concat()));
        let epsilon = number(&value, "epsilon");
        assert!(epsilon >= expected * (1.0 - 1e-12) && epsilon < expected * (1.0 + 1e-9), "{arguments:?}: {value}");
        assert!(number(&value, "epsilon_lower") <= expected * (1.0 + 1e-12), "{value}");
    }
    let value = answer(place.dp(&["account", "zcdp", "--rho", "0.5", "--delta", "1e-10", "--json"]));
    assert!(number(&value, "epsilon") < 6.8393294132, "{value}"); // Bun and Steinke's conversion gives 7.286
    let value = answer(place.dp(&[
        "account",
        "approximate",
        "--step-epsilon",
        "0.1",
        "--step-delta",
        "1e-9",
        "--steps",
        "10",
        "--delta",
        "1e-7",
        "--json",
    ]));
    assert!(number(&value, "epsilon") > 0.1 && number(&value, "epsilon") <= 1.0 + 1e-12, "{value}");
}

#[test]
fn noise_for_a_target_meets_it() {
    let place = Workplace::new();
    let value = answer(place.dp(&["account", "gaussian", "--epsilon", "1", "--delta", "1e-5", "--json"]));
    let noise = number(&value, "noise_multiplier");
    assert!((3.73063163..3.7306317).contains(&noise), "{value}"); // Balle and Wang 2018
    let value = answer(place.dp(&["account", "laplace", "--epsilon", "0.25", "--json"]));
    assert!((number(&value, "noise_multiplier") - 4.0).abs() < 1e-8 && number(&value, "delta") == 0.0, "{value}");
    place.dp(&["account", "gaussian", "--epsilon", "1", "--delta", "0"]).fails(4, "account.unreachable");
    place
        .dp(&["account", "gaussian", "--noise-multiplier", "0.5", "--epsilon", "0.1", "--delta", "1e-9"])
        .fails(4, "account.unreachable")
        .says("not even one step");
}

#[test]
fn numbers_out_of_range_name_their_flag() {
    let place = Workplace::new();
    let defaults =
        [("--noise-multiplier", "1.1"), ("--sampling-rate", "0.01"), ("--steps", "100"), ("--delta", "1e-5")];
    for (flag, values) in [
        ("--noise-multiplier", &["0", "-1", "NaN", "inf", "1e-7", "1e19"][..]),
        ("--sampling-rate", &["0", "-0.1", "1.5", "NaN", "1e-10"]),
        ("--steps", &["0"]),
        ("--delta", &["-1e-9", "1", "2", "NaN", "inf", "1e-301"]),
    ] {
        for value in values {
            let mut arguments = vec!["account", "dpsgd"];
            for (name, default) in defaults {
                arguments.extend([name, if name == flag { value } else { default }]);
            }
            place.dp(&arguments).fails(2, "usage.value").says(flag).says("expected");
        }
    }
    // Each solved number can be put in again.
    let mut solved = vec!["account", "gaussian", "--delta", "1e-11", "--steps", "750", "--json", "--epsilon", "0.01"];
    let noise = place.dp(&solved).json()["noise_multiplier"].to_string();
    solved.truncate(7);
    let again = place.dp(&[&solved[..], &["--noise-multiplier", &noise]].concat()).json();
    assert!((again["epsilon"].as_f64().unwrap() / 0.01 - 1.0).abs() < 1e-6, "{again}");
    let of_rdp = ["account", "laplace", "--epsilon", "1.29", "--delta", "0", "--steps", "3", "--accountant", "rdp"];
    place.dp(&of_rdp).fails(4, "account.unreachable").says("accountant `rdp`");
    for (value, code) in [("-1", 2), ("NaN", 2), ("inf", 2), ("1e7", 2), ("0", 2)] {
        let run = place.dp(&["account", "gaussian", "--epsilon", value, "--delta", "1e-5"]);
        run.fails(code, "usage.value").says("--epsilon");
    }
    for steps in ["1.5", "-1", "many", "1e400"] {
        let run = place.dp(&dpsgd(&["--noise-multiplier", "1", "--sampling-rate", "0.1", "--steps", steps]));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:#?}");
        run.says("--steps");
    }
}

#[test]
fn exactly_one_number_is_left_out() {
    let place = Workplace::new();
    place.dp(&dpsgd(&TRAINING)).fails(2, "usage.missing").says("epsilon, delta");
    let all = [&TRAINING[..], &["--delta", "1e-5", "--epsilon", "8"]].concat();
    place.dp(&dpsgd(&all)).fails(2, "usage.conflict").says("nothing is left");
    place.dp(&dpsgd(&[&all[..], &["--solve", "steps"]].concat())).fails(2, "usage.conflict").says("--solve");
    let value =
        answer(place.dp(&dpsgd(&[&TRAINING[..], &["--delta", "1e-5", "--solve", "epsilon", "--json"]].concat())));
    assert_eq!(value["solved"], "epsilon");
    let value = answer(place.dp(&[
        "account",
        "gaussian",
        "--noise-multiplier",
        "4",
        "--epsilon",
        "2",
        "--delta",
        "1e-6",
        "--solve",
        "steps",
        "--json",
    ]));
    assert!(value["steps"].as_u64().unwrap() > 1, "{value}");
}

#[test]
fn any_tree_from_a_file_or_standard_input() {
    let place = Workplace::new();
    let tree = r#"{"type":"composed","events":[{"type":"gaussian","std_dev":2.0,"sensitivity":1.0},
        {"type":"self-composed","count":3,"event":{"type":"gaussian","std_dev":4.0,"sensitivity":1.0}}]}"#;
    place.write("tree.json", format!("\u{feff}{tree}\r\n"));
    let from_file = answer(place.dp(&["account", "event", "tree.json", "--delta", "1e-6", "--json"]));
    // mu^2 = 1/4 + 3/16.
    let expected = answer(place.dp(&["account", "gdp", "--mu", "0.6614378277661477", "--delta", "1e-6", "--json"]));
    assert!(
        (number(&from_file, "epsilon") / number(&expected, "epsilon") - 1.0).abs() < 1e-9,
        "{from_file} {expected}"
    );
    let from_stdin = place.dp_with_input(&["account", "event", "-", "--delta", "1e-6", "--json"], tree.as_bytes());
    assert_eq!(answer(from_stdin), from_file);
    let wrapped = format!("{{\"event\":{tree},\"adjacency\":\"replace-one\",\"n_public\":true}}");
    let value =
        answer(place.dp_with_input(&["account", "event", "-", "--delta", "1e-6", "--json"], wrapped.as_bytes()));
    assert_eq!(value["adjacency"], "replace-one");
    let sampled = r#"{"event":{"type":"poisson-sampled","sampling_rate":0.1,"event":{"type":"gdp","mu":1}},"adjacency":"replace-one"}"#;
    place
        .dp_with_input(&["account", "event", "-", "--delta", "1e-6"], sampled.as_bytes())
        .fails(4, "privacy.adjacency");
    // The number of possible repetitions.
    let value = answer(place.dp(&["account", "event", "tree.json", "--epsilon", "9", "--delta", "1e-6", "--json"]));
    assert!(value["solved"] == "steps" && value["steps"].as_u64().unwrap() > 3, "{value}");
}

#[test]
fn bad_trees_are_refused() {
    let place = Workplace::new();
    for (text, says) in [
        ("", "not JSON"),
        ("[1, 2]", "an object is needed"),
        (r#"{"type":"gausian","std_dev":1,"sensitivity":1}"#, "gausian"),
        (r#"{"type":"gaussian","std_dev":1}"#, "sensitivity"),
        (r#"{"type":"gaussian","std_dev":1,"sensitivity":1,"clip":2}"#, "clip"),
        (r#"{"type":"gaussian","std_dev":-1,"sensitivity":1}"#, "std_dev"),
        (r#"{"type":"gaussian","std_dev":1,"std_dev":2,"sensitivity":1}"#, "duplicate"),
        (r#"{"type":"gaussian","std_dev":NaN,"sensitivity":1}"#, "not JSON"),
        (r#"{"event":{"type":"no-op"},"adjacency":"add_remove"}"#, "add-remove"),
        (r#"{"event":{"type":"no-op"},"relation":"add-remove"}"#, "no meaning"),
    ] {
        let run = place.dp_with_input(&["account", "event", "-", "--delta", "1e-6"], text.as_bytes());
        run.fails(3, "account.event").says(says);
    }
    let deep = format!(
        "{}{{\"type\":\"no-op\"}}{}",
        "{\"type\":\"group\",\"size\":1,\"event\":".repeat(5000),
        "}".repeat(5000)
    );
    place.dp_with_input(&["account", "event", "-", "--delta", "1e-6"], deep.as_bytes()).fails(3, "account.event");
    place
        .dp_with_input(&["account", "event", "-", "--delta", "1e-6"], b"{\xff}")
        .fails(3, "account.event")
        .says("UTF-8");
    place.dp(&["account", "event", "missing.json", "--delta", "1e-6"]).fails(1, "account.read").says("missing.json");
    // The file says what the flag would.
    let secret =
        br#"{"event":{"type":"gaussian","std_dev":1,"sensitivity":1},"adjacency":"replace-one","n_public":false}"#;
    let run = place.dp_with_input(&["account", "event", "-", "--delta", "1e-6"], secret);
    assert!(
        run.fails(2, "usage.conflict").says("n_public").stderr.contains("public") && !run.stderr.contains("--secret-n")
    );
}

#[test]
fn what_has_no_guarantee_is_infinite_and_says_so() {
    let place = Workplace::new();
    let value = place
        .dp_with_input(&["account", "event", "-", "--delta", "1e-6", "--json"], br#"{"type":"non-private"}"#)
        .json();
    assert_eq!((value["epsilon"].as_str(), value["epsilon_upper"].as_str()), (Some("inf"), Some("inf")));
    let value = place.dp(&["account", "gaussian", "--noise-multiplier", "1", "--delta", "0", "--json"]).json();
    assert_eq!(value["epsilon"], "inf");
}

#[test]
fn accountants_side_by_side() {
    let place = Workplace::new();
    let arguments = ["account", "gaussian", "--noise-multiplier", "4", "--steps", "12", "--delta", "1e-6", "--compare"];
    let value = place.dp(&[&arguments[..], &["--json"]].concat()).json();
    let entries = value["compare"].as_array().unwrap();
    let names: Vec<&str> = entries.iter().map(|entry| entry["accountant"].as_str().unwrap()).collect();
    assert_eq!(names, ["auto", "exact", "rdp", "zcdp", "gdp"]);
    let best = number(&value, "epsilon");
    for entry in entries {
        match entry["epsilon"].as_f64() {
            Some(epsilon) => assert!(epsilon >= best * (1.0 - 1e-9), "{entry}"),
            None => assert!(entry["refused"].is_string(), "{entry}"),
        }
    }
    assert!(number(&entries[2], "epsilon") > best * 1.01, "Renyi is not exact: {value}");
    assert!(!value.to_string().contains("\"time"), "no time in what is compared: {value}");
    let text = place.dp(&arguments).ok();
    for name in names {
        assert!(text.lines().any(|line| line.starts_with(name)), "{text}");
    }
    // The same for a calibrated quantity: less noise is better.
    let noise = ["account", "gaussian", "--epsilon", "1", "--delta", "1e-6", "--compare", "--json"];
    let value = place.dp(&noise).json();
    assert!(number(&value["compare"][2], "noise_multiplier") > number(&value, "noise_multiplier"), "{value}");
}

#[test]
fn an_accountant_without_a_theorem_refuses() {
    let place = Workplace::new();
    for accountant in ["zcdp", "gdp"] {
        let arguments = dpsgd(&[&TRAINING[..], &["--delta", "1e-5", "--accountant", accountant]].concat());
        place.dp(&arguments).fails(4, "account.unsupported").says("--accountant").says("--compare");
        let noise = ["--sampling-rate", "0.01", "--steps", "100", "--delta", "1e-5", "--epsilon", "1"];
        place.dp(&dpsgd(&[&noise[..], &["--accountant", accountant]].concat())).fails(4, "account.unsupported");
    }
    let value =
        answer(place.dp(&dpsgd(&[&TRAINING[..], &["--delta", "1e-5", "--accountant", "rdp", "--json"]].concat())));
    assert_eq!(value["accountant"], "rdp");
}

#[test]
fn curves_fall_with_delta_and_rise_with_steps() {
    let place = Workplace::new();
    let given = ["account", "gaussian", "--noise-multiplier", "2"];
    let text = place.dp(&[&given[..], &["--curve", "epsilon-delta", "--points", "9"]].concat()).ok();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("delta,epsilon,epsilon_lower,epsilon_upper"));
    let rows: Vec<Vec<f64>> = lines.map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
    assert_eq!((rows.len(), rows[0][0], rows[8][0]), (9, 1e-12, 0.1));
    assert!(rows.windows(2).all(|pair| pair[0][0] < pair[1][0] && pair[0][1] > pair[1][1]), "{text}");
    assert!(rows.iter().all(|row| row[1] == row[3] && row[2] <= row[3]), "{text}");

    let steps = ["--curve", "epsilon-steps", "--steps", "1000", "--delta", "1e-6", "--points", "7"];
    let value = place.dp(&[&given[..], &steps, &["--json"]].concat()).json();
    let points = value["points"].as_array().unwrap();
    assert_eq!((number(&points[0], "steps"), number(&points[6], "steps")), (1.0, 1000.0));
    assert!(points.windows(2).all(|pair| number(&pair[0], "epsilon") < number(&pair[1], "epsilon")), "{value}");

    // The curve at the smallest noise for a target passes through the target.
    let least = ["account", "gaussian", "--epsilon", "1", "--delta", "1e-12", "--curve", "epsilon-delta", "--json"];
    let first = place.dp(&least).json()["points"][0].clone();
    assert!(number(&first, "delta") == 1e-12 && (number(&first, "epsilon") - 1.0).abs() < 1e-6, "{first}");

    let picture = ["--curve", "epsilon-delta", "--out", "curve.svg"];
    let value = place.dp(&[&given[..], &picture, &["--json"]].concat()).json();
    assert_eq!((value["file"].as_str(), value["points"].as_u64()), (Some("curve.svg"), Some(45)));
    assert!(place.read("curve.svg").starts_with("<svg"));
    place.dp(&[&given[..], &picture].concat()).fails(1, "output.exists");
    place.dp(&[&given[..], &picture, &["--force"]].concat()).ok();
    place.dp(&[&given[..], &["--curve", "epsilon-delta", "--out", "curve.csv"]].concat()).ok();
    assert_eq!(place.read("curve.csv").lines().count(), 46);
    assert_eq!(place.files(), ["curve.csv", "curve.svg"]);
}

#[test]
fn curves_that_cannot_be_are_refused_and_leave_nothing() {
    let place = Workplace::new();
    let given = ["account", "gaussian", "--noise-multiplier", "2", "--curve", "epsilon-delta"];
    place.dp(&[&given[..], &["--out", "curve.png"]].concat()).fails(2, "usage.value").says(".svg");
    place.dp(&[&given[..], &["--points", "1"]].concat()).fails(2, "usage.value").says("--points");
    place.dp(&[&given[..], &["--out", "nowhere/curve.csv"]].concat()).fails(1, "output.write");
    let value = place.dp(&[&given[..], &["--out", "curve.csv", "--dry-run", "--json"]].concat()).json();
    assert_eq!((value["dry_run"].as_bool(), value["writes"][0].as_str()), (Some(true), Some("curve.csv")));
    let none = ["account", "event", "tree.json", "--curve", "epsilon-delta", "--out", "curve.svg"];
    place.write("tree.json", r#"{"type":"non-private"}"#);
    place.dp(&none).fails(4, "privacy.refused");
    assert_eq!(place.files(), ["tree.json"]);
}

#[test]
fn the_trade_off_is_that_of_two_normal_laws() {
    let place = Workplace::new();
    let arguments = ["account", "gaussian", "--noise-multiplier", "1", "--curve", "trade-off", "--points", "21"];
    let text = place.dp(&arguments).ok();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("type_one,type_two"));
    let rows: Vec<(f64, f64)> = lines
        .map(|line| line.split_once(',').map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).unwrap())
        .collect();
    assert_eq!((rows.len(), rows[0].0, rows[20].0), (21, 0.0, 1.0));
    assert!(rows.windows(2).all(|pair| pair[0].1 > pair[1].1), "{text}");
    // N(0, 1) against N(1, 1): Phi(Phi^-1(1 - 0.05) - 1), Phi(Phi^-1(1 - 0.5) - 1).
    for (row, truth) in [(rows[1], 0.740_488_97), (rows[10], 0.158_655_25)] {
        assert!(row.1 <= truth && row.1 > truth - 1e-3, "{row:?}");
    }
}

#[test]
fn what_a_guarantee_means() {
    let place = Workplace::new();
    let pure = ["account", "pure", "--step-epsilon", "1", "--semantics"];
    let value = answer(place.dp(&[&pure[..], &["--json"]].concat()));
    let meaning = &value["semantics"];
    // tanh(1/2), e, e/(1 + e).
    assert!((number(meaning, "advantage") - 0.46211715726).abs() < 1e-9, "{value}");
    assert!(
        (number(meaning, "bayes_factor") - 1f64.exp()).abs() < 1e-9 && number(meaning, "failure") == 0.0,
        "{value}"
    );
    assert!((number(&meaning["posteriors"][1], "at_most") - 0.73105857863).abs() < 1e-9, "{value}");
    assert!((number(&meaning["true_positive_rates"][1], "at_most") - 0.01 * 1f64.exp()).abs() < 1e-9, "{value}");
    let text = place.dp(&pure).ok();
    assert!(
        text.contains("whether one record is there") && text.contains("is right with probability at most 0.732."),
        "{text}"
    );
    // From the whole curve, which is stronger than one pair.
    let gaussian = ["account", "gaussian", "--noise-multiplier", "2", "--delta", "1e-5", "--semantics", "--json"];
    let meaning = answer(place.dp(&gaussian))["semantics"].clone();
    assert!((number(&meaning, "advantage") - 0.197_412_65).abs() < 1e-6, "{meaning}"); // 2 Phi(1/4) - 1
    assert_eq!(number(&meaning, "failure"), 1e-4);
    // Much more often than delta.
    assert!(number(&meaning, "odds_beyond_epsilon") > 1e-4, "{meaning}");
}

#[test]
fn the_certificate_of_a_model_can_be_asked() {
    let place = Workplace::new();
    place.write("people.csv", crate::support::people(300, 1));
    let train = ["train", "--data", "people.csv", "--label", "earns", "--positive", "yes", "--schema-from-data"];
    place
        .dp(&[
            &train[..],
            &["--algorithm", "bolt-on-convex", "--epsilon", "0.5", "--delta", "1e-6", "--out", "model.json"],
        ]
        .concat())
        .ok();
    let reached = place.json("model.json")["certificate"]["reached"].clone();
    let value = answer(place.dp(&["account", "certificate", "model.json", "--json"]));
    assert!((number(&value, "epsilon") / number(&reached, "epsilon") - 1.0).abs() < 1e-6, "{value}");
    assert_eq!(
        (value["delta"].as_f64(), value["adjacency"].as_str()),
        (reached["delta"].as_f64(), Some("replace-one"))
    );
    // Two models with this certificate.
    let twice = ["account", "certificate", "model.json", "--steps", "2", "--delta", "1e-6", "--json"];
    let twice = answer(place.dp(&twice));
    assert!(number(&twice, "epsilon") > 0.6 && number(&twice, "epsilon") <= 1.0 + 1e-12, "{twice}");
    place.dp(&["account", "certificate", "people.csv"]).fails(3, "model.format");
}

/// The sensitivities of a certificate hold under its relation: another one would restate the guarantee.
#[test]
fn a_file_that_states_its_relation_is_asked_under_no_other() {
    let place = Workplace::new();
    place.write("people.csv", crate::support::people(300, 1));
    let train = ["train", "--data", "people.csv", "--label", "earns", "--positive", "yes", "--schema-from-data"];
    let more = ["--algorithm", "noisy-moments", "--adjacency", "add-remove", "--epsilon", "1", "--delta", "1e-6"];
    place.dp(&[&train[..], &more, &["--out", "model.json"]].concat()).ok();
    let event = r#"{"event": {"type": "gaussian", "std_dev": 2, "sensitivity": 1}, "adjacency": "add-remove", "n_public": true}"#;
    place.write("event.json", event);
    for asked in [["certificate", "model.json"], ["event", "event.json"]] {
        let of = |more: &[&str]| place.dp(&[&["account"], &asked[..], &["--delta", "1e-6"], more].concat());
        of(&["--adjacency", "add-remove"]).ok();
        of(&["--adjacency", "replace-one"]).fails(4, "privacy.adjacency").says("--group 2");
        of(&["--adjacency", "change-list-labels"]).fails(4, "privacy.adjacency");
        of(&["--secret-n"]).fails(4, "privacy.adjacency").says("a secret number of records");
        of(&["--group", "2"]).ok();
    }
}

/// A guarantee beside a curve was ignored.
#[test]
fn a_curve_takes_no_epsilon() {
    let place = Workplace::new();
    let curve = ["account", "gaussian", "--noise-multiplier", "3", "--curve", "epsilon-delta", "--points", "3"];
    place.dp(&curve).ok();
    place.dp(&[&curve[..], &["--epsilon", "0.5"]].concat()).fails(2, "usage.conflict").says("--epsilon");
    // Noise follows from it.
    let solved =
        ["account", "gaussian", "--epsilon", "0.5", "--delta", "1e-6", "--curve", "epsilon-delta", "--points", "3"];
    place.dp(&solved).ok();
}

#[test]
fn help_shows_examples_that_run() {
    let place = Workplace::new();
    let help = place.dp(&["help", "account", "dpsgd"]).ok();
    let examples: Vec<&str> = help.lines().filter_map(|line| line.trim().strip_prefix("dp account dpsgd ")).collect();
    assert_eq!(examples.len(), 4, "{help}");
    for example in examples {
        let arguments: Vec<&str> = example.split_whitespace().chain(["--json"]).collect();
        answer(place.dp(&dpsgd(&arguments)));
    }
    assert!(place.dp(&["help", "account", "batch"]).ok().contains("{\"job\": \"dpsgd\""));
    place.dp(&["help", "account", "nonsense"]).fails(2, "usage.unknown_topic").says("dpsgd");
}

trait FailsJson {
    fn fails_json(&self, exit: i32, code: &str, flag: &str);
}

impl FailsJson for Run {
    #[track_caller]
    fn fails_json(&self, exit: i32, code: &str, flag: &str) {
        let error = &one_value(&self.stdout)["error"];
        assert_eq!((self.code, error["code"].as_str()), (exit, Some(code)), "{self:#?}");
        assert_eq!(error["where"]["flag"], flag, "{self:#?}");
    }
}

/// Each row of a comparison is what its accountant answers alone, also where the limit on work ends.
#[test]
fn compared_accountants_share_no_limit() {
    let place = Workplace::new();
    let question = ["account", "dpsgd", "--epsilon", "1e-3", "--delta", "1e-15", "--sampling-rate", "1e-6", "--json"];
    let hard = [&question[..], &["--steps", "1000000"]].concat();
    let alone = place.dp(&[&hard[..], &["--accountant", "exact"]].concat()).json();
    let compared = place.dp(&[&hard[..], &["--compare"]].concat()).json();
    let row = &compared["compare"][1];
    for name in ["accountant", "noise_multiplier", "epsilon_lower"] {
        assert_eq!(row[name], alone[name], "{row}");
    }
    assert!(compared["note"].as_str().is_some_and(|note| note.contains("limit")), "{compared}");
}
