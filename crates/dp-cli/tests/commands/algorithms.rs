//! Tests that every private algorithm of one table must pass: it trains under each relation that it is proved under,
//! verifies, predicts its cost, is reproducible under a seed, and its certificate cannot be edited to claim more.

pub(crate) mod table;

use crate::algorithms::table::ALGORITHMS;
use crate::support::{Workplace, people, reseal};
use clap::ValueEnum;
use dp_cli::args::Algorithm;
use serde_json::Value;

const RECORDS: usize = 400;

/// Creates a folder with a table, and the flags that train on it.
fn place() -> (Workplace, Vec<&'static str>) {
    let place = Workplace::new();
    place.write("people.csv", people(RECORDS, 31));
    let arguments =
        vec!["train", "--data", "people.csv", "--label", "earns", "--positive", "yes", "--schema-from-data"];
    (place, arguments)
}

/// Trains to `m.json` and returns the result.
fn train(place: &Workplace, arguments: &[&str], more: &[&str]) -> Value {
    place.dp(&[arguments, more, &["--out", "m.json", "--force", "--json"]].concat()).json()
}

#[test]
fn every_algorithm_has_its_row() {
    for algorithm in Algorithm::value_variants() {
        let value = algorithm.to_possible_value().unwrap();
        let rows = ALGORITHMS.iter().filter(|row| row.name == value.get_name()).count();
        assert_eq!(rows, usize::from(value.get_name() != "non-private"), "{}", value.get_name());
    }
}

#[test]
fn all_train_and_verify_under_each_relation() {
    let (place, table) = place();
    for row in ALGORITHMS {
        let arguments = [&table[..], &["--algorithm", row.name]].concat();
        for &run in row.runs {
            let epsilon: f64 = run[1].parse().unwrap();
            for &relation in row.relations {
                let result = train(&place, &arguments, &[run, &["--adjacency", relation]].concat());
                let said = format!("{} {run:?} {relation}", row.name);
                assert_eq!(
                    (&result["algorithm"], &result["adjacency"]),
                    (&row.name.into(), &relation.into()),
                    "{said}"
                );
                // The duration depends on the records if the solver runs until its minimiser is certified.
                let certified = ["auto", "obj-pert", "amp", "admm-obj-pert", "phased-erm"].contains(&row.name)
                    || run.contains(&"certified");
                assert_eq!(result.get("seconds").is_some(), !certified, "{said}");
                let reached = result["epsilon"].as_f64().unwrap();
                assert!(reached > 0.9 * epsilon && reached <= epsilon, "{said}: {reached}");
                let verified = place.dp(&["verify", "m.json", "--json"]).json();
                assert_eq!((&verified["holds"], &verified["adjacency"]), (&true.into(), &relation.into()), "{said}");
                assert!(verified["epsilon"].as_f64().unwrap() <= epsilon, "{said}: {verified}");
                let weights = place.json("m.json")["model"]["weights"].clone();
                assert!(weights.as_array().unwrap().iter().all(|weight| weight.is_number()), "{said}");
            }
        }
        let usual = train(&place, &arguments, row.runs[0]);
        assert_eq!(usual["adjacency"], row.relations[0], "{}", row.name);
    }
}

/// Features zeroed by a penalty are listed in the model, the result, the text and the report; the intercept is not among
/// them.
#[test]
fn penalties_say_which_features_they_left() {
    let (place, table) = place();
    for algorithm in ["dp-sgd", "dp-gd", "ss-admm", "mp-admm", "dp-admm", "admm-obj-pert"] {
        let budget = ["--algorithm", algorithm, "--epsilon", "2", "--delta", "1e-6"];
        let arguments = [&table[..], &budget].concat();
        let result = train(&place, &arguments, &["--l1", "9"]);
        assert_eq!(result["selected"], serde_json::json!(["<intercept>"]), "{algorithm}: {result}");
        let model = place.json("m.json")["model"].clone();
        let (features, weights) = (model["features"].as_array().unwrap(), model["weights"].as_array().unwrap());
        assert!(weights.iter().zip(features).all(|(weight, name)| (*weight != 0.0) == (name == "<intercept>")));
        let files = ["--l1", "9", "--out", "m.json", "--report", "report.md", "--force"];
        let text = place.dp(&[&arguments[..], &files].concat()).ok();
        let said = format!("1 of {} features: <intercept>", features.len());
        assert!(text.contains(&format!("selected   {said}")), "{text}");
        assert!(text.lines().count() <= 12, "{text}");
        assert!(place.read("report.md").contains("## Which features it uses"), "{}", place.read("report.md"));
        // The same penalty in its long form.
        train(&place, &arguments, &["--penalty", "l1:9"]);
        let recipe = place.json("m.json")["certificate"]["derivation"]["recipe"].clone();
        assert_eq!(recipe["penalty"], serde_json::json!({ "kind": "l1", "lambda": 9.0 }), "{recipe}");
    }
    // Groups can be checked only once the features are known.
    let group = [&table[..], &["--algorithm", "dp-gd", "--epsilon", "2", "--delta", "1e-6"]].concat();
    let result = train(&place, &group, &["--penalty", "group:9:2,1"]);
    assert!(!result["selected"].to_string().contains("age"), "{result}");
    let wide = [&group[..], &["--out", "n.json", "--penalty", "group:9:2,100"]].concat();
    place.dp(&wide).fails(4, "privacy.refused").says("features in groups");
    let plain = train(&place, &table, &["--algorithm", "dp-sgd", "--epsilon", "2", "--delta", "1e-6"]);
    assert!(plain.get("selected").is_none(), "{plain}");
    let wrong = ["--algorithm", "dp-sgd", "--epsilon", "2", "--delta", "1e-6", "--out", "n.json", "--penalty", "l3:1"];
    let run = place.dp(&[&table[..], &wrong].concat());
    assert!(run.code == 2 && run.stderr.contains("elastic-net"), "{run:#?}");
}

/// The published noise exceeds what is needed: the guarantee is the accountant's, and within the requested budget.
#[test]
fn published_variants_have_more_noise_than_is_needed() {
    let (place, table) = place();
    for (algorithm, noise) in
        [("scs13", "/noise/scale"), ("bst14-convex", "/std_dev"), ("bst14-strongly-convex", "/std_dev")]
    {
        let arguments = [&table[..], &["--algorithm", algorithm]].concat();
        let budget: &[&str] =
            if algorithm == "scs13" { &["--epsilon", "1"] } else { &["--epsilon", "1", "--delta", "1e-6"] };
        let settings = [budget, &["--passes", "2", "--batch-size", "1"]].concat();
        let scale = |more: &[&str]| {
            let result = train(&place, &arguments, &[&settings, more].concat());
            assert!(result["epsilon"].as_f64().unwrap() <= 1.0, "{algorithm} {more:?}");
            assert_eq!(place.dp(&["verify", "m.json", "--json"]).json()["holds"], true, "{algorithm} {more:?}");
            place.json("m.json").pointer(&format!("/certificate/derivation{noise}")).and_then(Value::as_f64).unwrap()
        };
        let [today, published] = [scale(&[]), scale(&["--variant", "published"])];
        assert!(published > today, "{algorithm}: {published} against {today}");
    }
    let steps = ["--algorithm", "dp-sgd", "--epsilon", "1", "--delta", "1e-6", "--variant", "published"];
    let refused = place.dp(&[&table[..], &steps, &["--out", "n.json"]].concat());
    refused.fails(2, "usage.conflict").says("--variant");
}

/// `auto` reports its choice in its result and in the text, and identically in a dry run.
#[test]
fn auto_says_what_it_chose_and_what_to_expect() {
    let (place, table) = place();
    let arguments = [&table[..], &["--algorithm", "auto", "--epsilon", "1"]].concat();
    for (delta, trained_with, recipe) in [
        ("1e-6", "logistic", "obj-pert"),
        ("0", "logistic", "obj-pert"),
        ("1e-6", "hinge", "dp-sgd"),
        ("0", "huber-svm", "bolt-on"),
    ] {
        let result = train(&place, &arguments, &["--delta", delta, "--loss", trained_with]);
        let choice = &result["choice"];
        assert!(choice["reason"].as_str().unwrap().starts_with(recipe), "{choice}");
        let of = |value: &Value| value.as_f64().unwrap();
        let (loss, low, high) = (
            of(&choice["expected_loss"]),
            of(&choice["expected_loss_range"][0]),
            of(&choice["expected_loss_range"][1]),
        );
        assert!(0.0 < low && low < loss && loss <= high && high <= 1.0, "{choice}");
        // The certificate is that of the recipe, without a trace of the choice.
        assert_eq!(place.json("m.json")["certificate"]["derivation"]["kind"], recipe);
        let files = ["--delta", delta, "--loss", trained_with, "--out", "m.json", "--report", "report.md", "--force"];
        let text = place.dp(&[&arguments[..], &files].concat()).ok();
        let report = place.read("report.md");
        assert!(report.contains("## How the algorithm was chosen\n\n- By public numbers alone: "), "{report}");
        assert!(text.contains("chosen     ") && text.contains("expect     to lose about "), "{text}");
        assert!(text.lines().count() <= 12, "{text}");
    }
    // A table with other values leads to the same choice: it depends on public numbers only.
    place.write("others.csv", people(RECORDS, 77));
    let chosen = |file: &'static str| {
        let arguments: Vec<&str> =
            arguments.iter().map(|&word| if word == "people.csv" { file } else { word }).collect();
        train(&place, &arguments, &["--delta", "1e-6"])["choice"].clone()
    };
    assert_eq!(chosen("people.csv"), chosen("others.csv"));
}

#[test]
fn all_foresee_what_a_run_costs() {
    let (place, table) = place();
    place.dp(&["schema", "people.csv", "--label", "earns", "--positive", "yes", "--out", "schema.toml"]).ok();
    place.write("schema.toml", place.read("schema.toml").replace("reviewed = false", "reviewed = true"));
    let records = RECORDS.to_string();
    for row in ALGORITHMS {
        for &run in row.runs {
            let algorithm = ["--algorithm", row.name];
            let trained = train(&place, &table, &[&algorithm[..], run].concat());
            let file = place.json("m.json");
            let dry = ["train", "--data", "people.csv", "--schema", "schema.toml", "--out", "n.json", "--dry-run"];
            let dry = [&dry[..], &["--n", &records], &algorithm, run].concat();
            let foreseen = place.dp(&[&dry[..], &["--json"]].concat()).json();
            for member in ["algorithm", "epsilon", "delta", "adjacency", "dim", "n"] {
                assert_eq!(foreseen[member], trained[member], "{} {run:?}: {member}", row.name);
            }
            assert_eq!(foreseen["event"], file["certificate"]["event"], "{} {run:?}", row.name);
            assert!(place.dp(&dry).ok().contains("noise "), "{} says what noise there would be", row.name);
        }
    }
    assert!(!place.path("n.json").exists());
}

#[test]
fn all_repeat_themselves_under_a_seed_and_only_then() {
    let (place, table) = place();
    for row in ALGORITHMS {
        let arguments = [&table[..], &["--algorithm", row.name], row.runs[0]].concat();
        let weights = |more: &[&str]| {
            train(&place, &arguments, more);
            place.json("m.json")["model"]["weights"].clone()
        };
        let seven = weights(&["--seed", "7"]);
        place.dp(&["verify", "m.json"]).fails(5, "verify.not_private");
        assert_eq!(seven, weights(&["--seed", "7"]), "{}", row.name);
        assert_ne!(seven, weights(&["--seed", "8"]), "{}", row.name);
        assert_ne!(weights(&[]), weights(&[]), "{}", row.name);
    }
}

#[test]
fn no_edit_makes_a_certificate_promise_more() {
    let (place, table) = place();
    for row in ALGORITHMS {
        train(&place, &table, &[&["--algorithm", row.name], row.runs[0]].concat());
        let file = place.json("m.json");
        let mut unnoticed = Vec::new();
        let mut edit = |path: &str, to: Value, repair: bool| {
            let mut edited = file.clone();
            *edited.pointer_mut(path).unwrap_or_else(|| panic!("{}: {path}", row.name)) = to.clone();
            if repair {
                reseal(&mut edited);
            }
            place.write("edited.json", edited.to_string());
            let run = place.dp(&["verify", "edited.json"]);
            if run.code != 5 && run.code != 3 {
                unnoticed.push(format!("{path} = {to}"));
            }
        };
        let less = |value: &Value| Value::from(0.9 * value.as_f64().unwrap());
        let reached = &file["certificate"]["reached"];
        edit("/certificate/reached/epsilon", less(&reached["epsilon"]), false);
        edit("/certificate/reached/epsilon", less(&reached["epsilon"]), true);
        for path in row.decisive {
            let path = format!("/certificate/derivation{path}");
            let value = file.pointer(&path).unwrap_or_else(|| panic!("{}: {path} in {file}", row.name));
            let edits = match value.as_u64() {
                Some(count) => vec![Value::from(count + 1)],
                None => vec![less(value), Value::from(1.1 * value.as_f64().unwrap())],
            };
            for to in edits {
                edit(&path, to, true);
            }
        }
        // A changed number of the event, whatever its name, no longer follows from the derivation.
        for path in numbers(&file["certificate"]["event"], "/certificate/event") {
            let value = file.pointer(&path).unwrap();
            let to = value.as_u64().map_or_else(|| less(value), |count| Value::from(count + 1));
            edit(&path, to, true);
        }
        assert!(unnoticed.is_empty(), "{}: {unnoticed:#?}", row.name);
        place.dp(&["verify", "m.json"]).ok();
    }
}

/// Collects the pointers to all numbers of a value.
fn numbers(value: &Value, path: &str) -> Vec<String> {
    match value {
        Value::Number(_) => vec![path.to_owned()],
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(i, item)| numbers(item, &format!("{path}/{i}"))).collect()
        }
        Value::Object(members) => {
            members.iter().flat_map(|(name, member)| numbers(member, &format!("{path}/{name}"))).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn idle_gradients_change_no_model() {
    let (place, table) = place();
    for algorithm in [&["obj-pert"][..], &["bolt-on-strongly-convex", "--stop", "certified"]] {
        let run = ["--epsilon", "1", "--seed", "1", "--force", "--out", "m.json", "--algorithm"];
        let weights = |more: &[&str]| {
            place.dp(&[&table[..], &run, algorithm, more].concat()).ok();
            place.json("m.json").pointer("/model/weights").cloned().unwrap()
        };
        assert_eq!(weights(&[]), weights(&["--gradients", "60"]), "{algorithm:?}");
    }
}

#[test]
fn bad_combinations_are_refused_before_anything_is_written() {
    let (place, table) = place();
    let out = ["--out", "m.json"];
    for row in ALGORITHMS {
        let arguments = [&table[..], &["--algorithm", row.name], &out].concat();
        let run = place.dp(&[&arguments[..], row.runs[0], &row.untaken].concat());
        run.fails(2, "usage.conflict").says(row.untaken[0]).says(row.name);
        let taken = run.stderr.lines().find(|line| line.contains("expected:")).unwrap_or_default();
        assert!(taken.contains("--") && !taken.contains(row.untaken[0]), "the flags that it takes: {run:#?}");
        let run = place.dp(&[&arguments[..], row.runs[0], &["--adjacency", "change-list-labels"]].concat());
        run.fails(4, "privacy.adjacency").says("--adjacency").says(row.relations[0]);
        place.dp(&arguments).fails(2, "usage.missing").says("--epsilon");
        for (flags, exit, code, word) in row.refused {
            place.dp(&[&arguments[..], flags].concat()).fails(*exit, code).says(word);
        }
    }
    for flag in [["--order", "fresh"], ["--clip", "1"], ["--steps", "3"], ["--output-noise", "gaussian"]] {
        let run = place.dp(&[&table[..], &["--algorithm", "non-private"], &flag, &out].concat());
        run.fails(2, "usage.conflict").says(flag[0]).says("non-private");
    }
    let passes = ["--algorithm", "bolt-on-strongly-convex", "--epsilon", "1", "--gradients", "30"];
    place.dp(&[&table[..], &passes, &out].concat()).fails(2, "usage.conflict").says("--stop certified");
    for flag in [["--clip", "0"], ["--clip", "NaN"], ["--clip", "-1"], ["--steps", "0"]] {
        let run = place.dp(&[&table[..], &["--epsilon", "1"], &flag, &out].concat());
        run.fails(2, "usage.value").says(flag[0]);
    }
    assert_eq!(place.files(), ["people.csv"]);
}

/// The published noise exceeds what accounting requires, and the guarantee is that of the noise.
#[test]
fn published_forms_of_objective_perturbation_reach_less_than_they_are_allowed() {
    let (place, table) = place();
    let budget = ["--epsilon", "1", "--delta", "1e-6", "--lambda", "0.1"];
    for (algorithm, variant, law) in [
        ("obj-pert", "cms11", "scale"),
        ("obj-pert", "kst12", "std_dev"),
        ("obj-pert", "rdp", "std_dev"),
        ("amp", "published", "std_dev"),
    ] {
        for relation in ["add-remove", "replace-one"] {
            let arguments = [&table[..], &["--algorithm", algorithm, "--adjacency", relation]].concat();
            let noise = |run: &[&str]| {
                let result = train(&place, &arguments, run);
                let certificate = place.json("m.json")["certificate"].clone();
                let noise = certificate["derivation"]["noise"][law].as_f64();
                (result["epsilon"].as_f64().unwrap(), noise.unwrap_or_else(|| panic!("{certificate}")))
            };
            let of_law: &[&str] = match (algorithm, variant) {
                ("amp", _) => &[],
                (_, "cms11") => &["--output-noise", "laplace-ball"],
                _ => &["--output-noise", "gaussian"],
            };
            let (exact, published) =
                (noise(&[&budget, of_law].concat()), noise(&[&budget[..], &["--variant", variant]].concat()));
            assert!(published.1 >= exact.1 && published.0 <= 1.0, "{variant} {relation}: {published:?} {exact:?}");
            // Without delta, slope and curvature of the differing record are related more tightly than in the paper.
            let less = if variant == "cms11" { 1.0 } else { 0.93 };
            assert!(published.0 < less && exact.0 > 0.98, "{variant} {relation}: {published:?} {exact:?}");
            assert_eq!(place.dp(&["verify", "m.json", "--json"]).json()["holds"], true, "{variant}");
        }
    }
}
