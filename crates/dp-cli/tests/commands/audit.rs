//! `dp audit`: real audits with small budgets, their outputs and their errors.

use crate::support::{Workplace, one_value};
use serde_json::Value;

/// The small recipe that most tests audit.
const RECIPE: [&str; 8] = ["audit", "recipe", "--algorithm", "bolt-on-convex", "--trials", "4000", "--pairs", "20"];

fn with<'a>(arguments: &[&'a str], extra: &[&'a str]) -> Vec<&'a str> {
    [arguments, extra].concat()
}

/// Removes the parts that depend on the clock.
fn without_seconds(mut value: Value) -> Value {
    value.as_object_mut().unwrap().remove("seconds");
    for audit in value["audits"].as_array_mut().unwrap() {
        audit.as_object_mut().unwrap().remove("seconds");
    }
    value
}

/// Returns the name of some mechanism.
fn a_mechanism(place: &Workplace) -> String {
    place.dp(&["audit", "list", "--json"]).json()["mechanisms"][0]["name"].as_str().unwrap().to_owned()
}

#[test]
fn what_can_be_audited_is_listed() {
    let place = Workplace::new();
    let list = place.dp(&["audit", "list", "--json"]).json();
    assert_eq!(list["schema"], "dp.audit-list/1");
    for kind in ["mechanisms", "recipes"] {
        let entries = list[kind].as_array().unwrap();
        assert!(entries.len() >= 2, "{list}");
        assert!(entries.iter().all(|entry| entry["name"].is_string() && entry["about"].is_string()));
    }
    let text = place.dp(&["audit", "list"]).ok();
    let names = |kind: &str| -> Vec<String> {
        list[kind].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(names("mechanisms").iter().chain(&names("recipes")).all(|name| text.contains(name)), "{text}");
    // Each recipe can be selected by name, and all names differ.
    let mut recipes = names("recipes");
    recipes.sort();
    recipes.dedup();
    assert_eq!(recipes.len(), names("recipes").len());
    for name in recipes {
        place.dp(&["audit", "recipe", "--algorithm", &name, "--dry-run"]).ok();
    }
}

#[test]
fn a_sound_recipe_is_not_refuted() {
    let place = Workplace::new();
    let value = place.dp(&with(&RECIPE, &["--json"])).json();
    assert_eq!((&value["schema"], &value["verdict"]), (&"dp.audit/1".into(), &"not-refuted".into()));
    assert_eq!((&value["seed"], &value["confidence"]), (&1.into(), &0.999.into()));
    let audits = value["audits"].as_array().unwrap();
    assert!(audits.len() >= 3, "{value}");
    for audit in audits {
        let number = |key: &str| audit[key].as_f64().unwrap_or_else(|| panic!("{key}: {audit}"));
        assert_eq!(audit["verdict"], "not-refuted");
        assert!(number("claimed_epsilon") <= 1.0 && number("epsilon_lower") < number("claimed_epsilon"), "{audit}");
        assert!((number("ratio") - number("epsilon_lower") / number("claimed_epsilon")).abs() < 1e-12);
        assert_eq!((number("trials"), number("counted")), (4000.0, 2000.0));
        // The error probability of the whole run is divided among the audits.
        let failure = 0.001 / audits.len() as f64;
        assert!((1.0 - number("confidence") - failure).abs() < 1e-9);
        assert!(audit["distance"]["ratio"].as_f64().unwrap() > 0.95 && number("seconds") >= 0.0);
        assert!(audit["convicted_by"].is_null() && audit["inputs"].is_string() && audit["method"].is_string());
    }
    // The attack on the pure release is strong even so, and a Gaussian claim is compared by mu.
    let named = |part: &str| audits.iter().find(|audit| audit["name"].as_str().unwrap().contains(part)).unwrap();
    assert!(named("laplace-ball")["ratio"].as_f64().unwrap() > 0.5);
    let gaussian = named("gaussian");
    let share = gaussian["mu_lower"].as_f64().unwrap() / gaussian["claimed_mu"].as_f64().unwrap();
    assert!(share > 0.1 && share < 1.0, "{gaussian}");
}

#[test]
fn where_nothing_is_audited_nothing_is_said_to_hold() {
    let place = Workplace::new();
    // The noise is Gaussian.
    for algorithm in ["dp-sgd", "dp-ftrl"] {
        let audit = ["audit", "recipe", "--algorithm", algorithm, "--epsilon", "1", "--delta", "0", "--trials", "100"];
        place.dp(&audit).fails(2, "usage.value").says("no audit applies");
        place.dp(&[&audit[..], &["--dry-run"]].concat()).fails(2, "usage.value");
    }
}

#[test]
fn settings_without_effect_are_refused() {
    let place = Workplace::new();
    for (algorithm, flag, value) in [
        ("majority", "--loss", "logistic"),
        ("majority", "--huber-width", "0.2"),
        ("dp-newton", "--passes", "2"),
        ("rank-lists", "--adjacency", "add-remove"),
        ("scs13", "--radius", "1"),
    ] {
        let audit = ["audit", "recipe", "--algorithm", algorithm, flag, value];
        place.dp(&audit).fails(2, "usage.conflict").says(flag);
    }
}

#[test]
fn a_sound_mechanism_is_not_refuted() {
    let place = Workplace::new();
    let name = a_mechanism(&place);
    let value = place.dp(&["audit", "mechanism", &name, "--trials", "4000", "--json"]).json();
    assert_eq!(value["verdict"], "not-refuted");
    assert_eq!(value["audits"][0]["name"], name.as_str());
    assert!(value["audits"][0]["distance"].is_null());
    // The first word selects all pairs of inputs.
    let word = name.split('/').next().unwrap();
    let all = place.dp(&["audit", "mechanism", word, "--trials", "200", "--json"]).json();
    let names: Vec<&str> =
        all["audits"].as_array().unwrap().iter().map(|audit| audit["name"].as_str().unwrap()).collect();
    assert!(names.contains(&name.as_str()) && names.iter().all(|name| name.starts_with(word)), "{names:?}");
}

#[test]
fn several_names_are_audited_together_and_each_once() {
    let place = Workplace::new();
    let names = ["staircase", "staircase/1", "randomized-response/2"];
    let value = place.dp(&with(&["audit", "mechanism", "--trials", "400", "--json"], &names)).json();
    let audited: Vec<&str> =
        value["audits"].as_array().unwrap().iter().map(|audit| audit["name"].as_str().unwrap()).collect();
    assert_eq!(audited, ["staircase/1", "staircase/4", "randomized-response/2"]);
    assert!(value["rerun"].as_str().unwrap().contains(&names.join(" ")), "{value}");
    place.dp(&["audit", "mechanism", "staircase", "xyzzy"]).fails(2, "usage.value").says("xyzzy");
}

#[test]
fn the_mechanism_that_is_deployed_is_audited() {
    let place = Workplace::new();
    for (arguments, name, claimed) in [
        (&["gaussian", "--std-dev", "2", "--sensitivity", "0.5", "--dim", "3"][..], "gaussian/std-dev=2,", None),
        (&["laplace", "--scale", "4", "--sensitivity", "2"], "laplace/scale=4,sensitivity=2,dim=1", Some(0.5)),
        (&["laplace", "--epsilon", "0.7", "--noise", "rounded"], "laplace/scale=", Some(0.7)),
        (&["laplace-ball", "--epsilon", "2"], "laplace-ball/scale=0.5,", Some(2.0)),
        (&["laplace-ball", "--scale", "3", "--dim", "2"], "laplace-ball/scale=3,", None),
        (&["discrete-laplace", "--epsilon", "1", "--sensitivity", "3"], "discrete-laplace/", Some(1.0)),
        (&["discrete-laplace", "--scale", "2"], "discrete-laplace/scale=2,", Some(0.5)),
        (&["discrete-gaussian", "--scale", "2"], "discrete-gaussian/scale=2,sensitivity=1", None),
        (&["staircase", "--epsilon", "3"], "staircase/epsilon=3,sensitivity=1", Some(3.0)),
        (&["randomized-response", "--epsilon", "1.5", "--buckets", "12"], "randomized-response/", Some(1.5)),
    ] {
        let arguments = with(&["audit", "mechanism", "--trials", "2000", "--json"], arguments);
        let value = place.dp(&arguments).json();
        assert_eq!(value["verdict"], "not-refuted", "{value}");
        let audit = &value["audits"][0];
        assert!(audit["name"].as_str().unwrap().starts_with(name), "{audit}");
        if let Some(claimed) = claimed {
            assert!((audit["claimed_epsilon"].as_f64().unwrap() / claimed - 1.0).abs() < 1e-12, "{audit}");
        }
        // The printed command line repeats the result.
        let again: Vec<&str> = value["rerun"].as_str().unwrap().split(' ').skip(1).chain(["--json"]).collect();
        assert_eq!(without_seconds(place.dp(&again).json()), without_seconds(value.clone()));
    }
    // A claim of half the true epsilon is refuted.
    let lowered = ["--epsilon", "2", "--claim-epsilon", "1", "--trials", "20000"];
    assert_eq!(place.dp(&with(&["audit", "mechanism", "laplace"], &lowered)).code, 5);
}

#[test]
fn parameters_that_fit_no_mechanism_are_refused() {
    let place = Workplace::new();
    for (arguments, code, said) in [
        (&["gaussian", "--scale", "1"][..], "usage.conflict", "--std-dev"),
        (&["gaussian", "--dim", "3"], "usage.value", "--std-dev"),
        (&["gaussian", "laplace", "--std-dev", "1"], "usage.conflict", "2 are named"),
        (&["gaussian/1", "--std-dev", "1"], "usage.conflict", "gaussian, laplace"),
        (&["laplace", "--scale", "1", "--epsilon", "1"], "usage.conflict", "--epsilon"),
        (&["staircase", "--epsilon", "1", "--dim", "2"], "usage.conflict", "--dim"),
        (&["staircase", "--epsilon", "1", "--noise", "rounded"], "usage.conflict", "--noise"),
        (&["randomized-response", "--buckets", "3"], "usage.value", "--epsilon"),
        (&["randomized-response", "--epsilon", "1", "--buckets", "1"], "usage.value", "--buckets"),
        (&["gaussian", "--std-dev", "0"], "usage.value", "--std-dev"),
        (&["gaussian", "--std-dev", "NaN"], "usage.value", "--std-dev"),
        (&["gaussian", "--std-dev", "-1"], "usage.value", "--std-dev"),
        (&["gaussian", "--std-dev", "1e308"], "usage.value", "--std-dev"),
        (&["gaussian", "--std-dev", "1", "--sensitivity", "0"], "usage.value", "--sensitivity"),
        (&["gaussian", "--std-dev", "1", "--sensitivity", "inf"], "usage.value", "--sensitivity"),
        (&["gaussian", "--std-dev", "1", "--dim", "0"], "usage.value", "--dim"),
        (&["gaussian", "--std-dev", "1", "--dim", "1e15"], "usage.value", "--dim"),
        (&["laplace-ball", "--scale", "1", "--dim", "1e15"], "usage.value", "--dim"),
        (&["laplace-ball", "--scale", "1", "--dim", "1048577"], "usage.value", "--dim"),
        (&["laplace", "--epsilon", "-3"], "usage.value", "--epsilon"),
        (&["laplace", "--scale", "inf"], "usage.value", "--scale"),
        (&["staircase", "--epsilon", "1e6"], "usage.value", "--epsilon"),
        (&["discrete-laplace", "--epsilon", "1", "--sensitivity", "1.5"], "usage.value", "--sensitivity"),
        (&["discrete-gaussian", "--scale", "1", "--sensitivity", "0.5"], "usage.value", "--sensitivity"),
    ] {
        place.dp(&with(&["audit", "mechanism"], arguments)).fails(2, code).says(said);
    }
}

#[test]
fn a_reader_is_told_which_column_to_read_of_gaussian_claims() {
    let place = Workplace::new();
    let text = |name| place.dp(&["audit", "mechanism", name, "--trials", "400"]).ok();
    assert!(text("gaussian/1").contains("`of mu`"));
    assert!(!text("randomized-response").contains("`of mu`"));
}

#[test]
fn a_lowered_claim_is_refuted_with_5() {
    let place = Workplace::new();
    let refuted = with(&RECIPE, &["--delta", "0", "--claim-epsilon", "0.1"]);
    let run = place.dp(&refuted);
    assert_eq!((run.code, run.stderr.as_str()), (5, ""), "{run:#?}");
    for said in ["REFUTED", "REFUTES", "1 ", "inputs", "seed", "dp audit recipe --algorithm bolt-on-convex"] {
        assert!(run.stdout.contains(said), "{said}: {}", run.stdout);
    }
    let run = place.dp(&with(&refuted, &["--json"]));
    assert_eq!((run.code, run.stderr.as_str()), (5, ""), "{run:#?}");
    let value = one_value(&run.stdout);
    assert_eq!(value["verdict"], "refuted");
    let audit = &value["audits"][0];
    assert_eq!((&audit["verdict"], &audit["claimed_epsilon"]), (&"refuted".into(), &0.1.into()));
    assert!(audit["epsilon_lower"].as_f64().unwrap() > 0.1 && audit["ratio"].as_f64().unwrap() > 1.0);
    assert!(audit["convicted_by"][0].as_str().unwrap().contains("epsilon is at least"), "{audit}");
    // A claim only slightly below the truth cannot be refuted with so few runs.
    let run = place.dp(&with(&RECIPE, &["--delta", "0", "--claim-epsilon", "0.99"]));
    assert_eq!(run.code, 0, "{run:#?}");
    // With a delta, the same epsilon is a true claim again.
    let run = place.dp(&with(&RECIPE, &["--delta", "0", "--claim-epsilon", "0.1", "--claim-delta", "0.5"]));
    assert_eq!(run.code, 0, "{run:#?}");
    // A lowered claim works for mechanisms too.
    let name = a_mechanism(&place);
    let lowered = ["audit", "mechanism", &name, "--trials", "20000", "--claim-epsilon", "0.01"];
    assert_eq!(place.dp(&lowered).code, 5);
}

#[test]
fn nothing_is_called_private() {
    let place = Workplace::new();
    place.dp(&with(&RECIPE, &["--report", "audit.md"])).ok();
    for text in [place.dp(&RECIPE).ok(), place.read("audit.md"), place.dp(&["audit", "--help"]).ok()] {
        assert!(!text.contains("is private"), "{text}");
    }
    let text = place.dp(&RECIPE).ok();
    assert!(text.contains("is refuted at confidence 0.999, which is no proof"), "{text}");
}

#[test]
fn results_depend_on_the_seed_and_not_on_threads() {
    let place = Workplace::new();
    let found = |extra: &[&str]| without_seconds(place.dp(&with(&with(&RECIPE, &["--json"]), extra)).json());
    let one = found(&["--threads", "1"]);
    assert_eq!(one, found(&["--threads", "3"]));
    assert_eq!(one, found(&[]));
    let other = found(&["--seed", "2"]);
    assert_ne!(one["audits"][0]["epsilon_lower"], other["audits"][0]["epsilon_lower"]);
    // The printed command repeats the numbers for every seed.
    let random = found(&["--seed", "random", "--lambda", "0.25", "--huber-width", "0.2", "--radius", "3"]);
    let rerun = random["rerun"].as_str().unwrap();
    let words: Vec<&str> = rerun.split(' ').skip(1).chain(["--json"]).collect();
    assert_eq!(random, without_seconds(place.dp(&words).json()), "{rerun}");
    assert_ne!(random["seed"], found(&["--seed", "random"])["seed"]);
}

#[test]
fn report_and_picture_are_written_whole_or_not_at_all() {
    let place = Workplace::new();
    let outputs = with(&RECIPE, &["--report", "audit.md", "--picture", "audit.svg"]);
    let printed = place.dp(&outputs).ok();
    let (report, picture) = (place.read("audit.md"), place.read("audit.svg"));
    assert!(report.starts_with("# An audit of differential privacy") && report.contains("| audit | claimed |"));
    for name in ["bolt-on-convex/laplace-ball", "bolt-on-convex/gaussian"] {
        assert!(report.contains(name) && picture.contains(name) && printed.contains(name), "{name}");
    }
    assert!(report.contains("dp audit recipe --algorithm bolt-on-convex"));
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>") && picture.contains("<circle"));
    // No existing output is replaced, and the error comes before any run.
    place.dp(&outputs).fails(1, "output.exists");
    let long = ["audit", "all", "--long", "--report", "audit.md"];
    place.dp(&long).fails(1, "output.exists");
    assert_eq!(place.read("audit.md"), report);
    // If one output cannot be written, neither is.
    let half = with(&RECIPE, &["--report", "new.md", "--picture", "nowhere/new.svg"]);
    let failed = place.dp(&half);
    failed.fails(1, "output.write").says("nowhere/new.svg");
    assert!(!failed.stderr.contains(".part"), "the temporary name is nobody's business: {}", failed.stderr);
    assert_eq!(place.files(), ["audit.md", "audit.svg"]);
    // One file for both, however it is spelled.
    let same = with(&RECIPE, &["--report", "same.svg", "--picture", "./same.svg", "--force"]);
    place.dp(&same).fails(2, "usage.conflict").says("same file");
    place.dp(&with(&outputs, &["--force", "--seed", "3"])).ok();
    assert_ne!(place.read("audit.md"), report);
    // A refuted claim is reported like any other.
    let refuted = with(&RECIPE, &["--delta", "0", "--claim-epsilon", "0.1", "--report", "refuted.md"]);
    assert_eq!(place.dp(&refuted).code, 5);
    assert!(place.read("refuted.md").contains("REFUTED"));
    assert_eq!(place.files(), ["audit.md", "audit.svg", "refuted.md"]);
}

#[test]
fn a_dry_run_runs_nothing() {
    let place = Workplace::new();
    let dry = with(&RECIPE, &["--report", "audit.md", "--picture", "audit.svg", "--dry-run", "--json"]);
    let found = place.dp(&dry).json();
    assert_eq!((&found["schema"], &found["dry_run"]), (&"dp.audit/1".into(), &true.into()));
    assert_eq!(found["writes"].as_array().unwrap().len(), 2);
    assert!(place.files().is_empty());
    let ran = place.dp(&with(&RECIPE, &["--json"])).json();
    let runs = |audit: &Value| {
        format!("{}: {} runs", audit["name"].as_str().unwrap(), 2 * audit["trials"].as_u64().unwrap()).into()
    };
    let expected: Vec<Value> = ran["audits"].as_array().unwrap().iter().map(runs).collect();
    assert_eq!((expected.len(), &found["audits"]), (6, &expected.into()));
}

#[test]
fn values_out_of_range_name_their_flag() {
    let place = Workplace::new();
    let refused = |code: i32, name: &str, extra: &[&str], flag: &str| {
        let mut arguments = vec!["audit", "recipe", "--algorithm", "bolt-on-strongly-convex", "--dry-run"];
        arguments.extend(extra);
        place.dp(&arguments).fails(code, name).says(flag);
    };
    for (flag, values) in [
        ("--trials", &["0", "99", "1e15"][..]),
        ("--confidence", &["0", "1", "-1", "NaN", "inf", "0.4"]),
        ("--seed", &["-1", "x", "1.5", ""]),
        ("--epsilon", &["0", "-1", "NaN", "inf", "1e-300"]),
        ("--delta", &["1", "-1", "NaN"]),
        ("--claim-epsilon", &["0", "-1", "NaN", "inf"]),
        ("--n", &["0", "1e12"]),
        ("--dim", &["0"]),
        ("--passes", &["0"]),
        ("--batch-size", &["0"]),
        ("--huber-width", &["0", "NaN"]),
        ("--lambda", &["-1", "NaN", "inf"]),
        ("--radius", &["0", "-1", "NaN", "inf"]),
    ] {
        for value in values {
            refused(2, "usage.value", &[flag, value], flag);
        }
    }
    refused(2, "usage.value", &["--claim-epsilon", "1", "--claim-delta", "1"], "--claim-delta");
    refused(2, "usage.value", &["--picture", "audit.png"], ".svg");
    refused(2, "usage.value", &["--report", "-"], "standard output");
    refused(2, "usage.value", &["--picture", "-"], ".svg");
    refused(2, "usage.conflict", &["--picture", "a.svg", "--report", "a.svg"], "--picture");
    refused(2, "usage.conflict", &["--loss", "logistic", "--huber-width", "0.1"], "--huber-width");
    refused(4, "privacy.refused", &["--lambda", "0"], "--lambda");
    refused(4, "privacy.refused", &["--loss", "squared"], "radius");
    refused(4, "privacy.adjacency", &["--adjacency", "change-list-labels"], "replace-one");
    for bad in [
        &["audit"][..],
        &["audit", "recipe"],
        &["audit", "recipe", "--algorithm", "nobody"],
        &["audit", "mechanism"],
        &["audit", "table", "--algorithm", "nobody"],
        &["audit", "all", "--claim-epsilon", "1"],
        &["audit", "recipe", "--algorithm", "bolt-on-convex", "--claim-delta", "0.1"],
        &["audit", "recipe", "--algorithm", "bolt-on-convex", "--long", "--trials", "1000"],
        &["audit", "recipe", "--algorithm", "bolt-on-convex", "--trials", "many"],
    ] {
        let run = place.dp(bad);
        assert!(run.code == 2 && run.stdout.is_empty(), "{bad:?} {run:#?}");
    }
    assert!(place.files().is_empty());
}

#[test]
fn an_unknown_mechanism_is_answered_with_a_near_one() {
    let place = Workplace::new();
    let name = a_mechanism(&place);
    let word = name.split('/').next().unwrap();
    let typo = &word[..word.len() - 1];
    place.dp(&["audit", "mechanism", typo]).fails(2, "usage.value").says(&format!("did you mean `{word}"));
    place.dp(&["audit", "mechanism", "gaussia"]).fails(2, "usage.value").says("did you mean `gaussian`?");
    place.dp(&["audit", "mechanism", "xyzzy"]).fails(2, "usage.value").says("dp audit list");
    place.dp(&["audit", "mechanism", ""]).fails(2, "usage.value");
    let error = one_value(&place.dp(&["audit", "mechanism", "xyzzy", "--json"]).stdout);
    assert_eq!(error["error"]["code"], "usage.value");
}

#[test]
fn too_many_panels_are_refused() {
    let place = Workplace::new();
    let flags = ["--picture", "all.svg", "--dry-run"];
    let picture = |names: &[&str]| place.dp(&[&["audit", "mechanism"], names, &flags].concat());
    // Nine pairs, and nine more.
    picture(&["gaussian"]).ok();
    picture(&["gaussian", "laplace-ball"]).fails(2, "usage.conflict").says("--picture");
}

#[test]
fn other_relations_losses_and_shapes() {
    let place = Workplace::new();
    for extra in [
        &["--adjacency", "add-remove"][..],
        &["--loss", "logistic"],
        &["--loss", "squared", "--radius", "1"],
        &["--n", "1", "--dim", "1", "--batch-size", "7", "--passes", "3"],
        &["--n", "300", "--dim", "9", "--epsilon", "4"],
        &["--delta", "0"],
    ] {
        for algorithm in ["bolt-on-convex", "bolt-on-strongly-convex"] {
            let mut arguments =
                vec!["audit", "recipe", "--algorithm", algorithm, "--trials", "400", "--pairs", "8", "--json"];
            arguments.extend(extra);
            let value = place.dp(&arguments).json();
            assert_eq!(value["verdict"], "not-refuted", "{value}");
        }
    }
}

#[test]
fn progress_is_on_stderr() {
    let place = Workplace::new();
    let run = place.dp(&with(&RECIPE, &["--progress", "json", "--json"]));
    assert_eq!(run.code, 0, "{run:#?}");
    one_value(&run.stdout);
    let lines: Vec<Value> = run.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!((&last["phase"], &last["done"]), (&"audit".into(), &true.into()));
    assert_eq!(last["runs"], last["total"]);
}

/// Algorithms for each kind of noise: on the model, in every step, in the objective, on moments, on an answer.
const SAMPLED: [&str; 6] = ["bolt-on-strongly-convex", "dp-sgd", "dp-gd", "obj-pert", "noisy-moments", "majority"];

fn trainings<'v>(value: &'v Value, key: &str) -> Vec<&'v str> {
    value[key].as_array().unwrap().iter().map(|row| row["training"].as_str().unwrap()).collect()
}

/// Checks every row of a table with this number of runs on each input of the audited pair.
fn check_rows(value: &Value, trials: u64) {
    for row in value["rows"].as_array().unwrap() {
        let (claimed, asked) =
            (row["claimed_epsilon"].as_f64().unwrap(), row["requested"]["epsilon"].as_f64().unwrap());
        assert!(claimed <= asked, "{row}");
        // Split budgets, and noise that cannot be calibrated more closely, reach less.
        let tight = !row["training"].as_str().unwrap().contains("one-vs-all") && row["kind"] != "tune";
        assert!(!tight || claimed > 0.99 * asked, "{row}");
        assert!(row["delta"].as_f64().unwrap() <= row["requested"]["delta"].as_f64().unwrap(), "{row}");
        assert_eq!(row["runs"], 2 * trials, "{row}");
        assert!(row["pilot_runs"].as_u64().unwrap() <= 2 * trials, "{row}");
        assert!(row["pairs"]["tried"].as_u64().unwrap() <= row["pairs"]["of"].as_u64().unwrap(), "{row}");
        assert!(row["pairs"]["of"].as_u64().unwrap() > 400, "{row}");
        assert!(row["inputs"].as_str().unwrap().contains(" against "), "{row}");
        let command = row["command"].as_str().unwrap();
        assert!(command.starts_with("dp ") && command.contains(" --epsilon "), "{row}");
    }
}

#[test]
fn the_table_has_every_algorithm_and_says_which_are_left_out() {
    let place = Workplace::new();
    let value = place.dp(&["audit", "table", "--kind", "two-classes", "--trials", "100", "--json"]).json();
    assert_eq!((&value["schema"], &value["verdict"]), (&"dp.audit-table/2".into(), &"not-refuted".into()));
    // Each algorithm of `dp train` appears at both budgets, except those without a claim or with too few records.
    let help = place.dp(&["help", "algorithms"]).ok();
    let rows = help.lines().skip(1).take_while(|line| !line.is_empty());
    let of_train: Vec<&str> = rows.filter_map(|row| row.split(' ').next()).chain(["non-private"]).collect();
    assert!(of_train.len() > 30, "{of_train:?}");
    for name in of_train {
        let count = |names: &[&str]| names.iter().filter(|other| **other == name).count();
        let expected = match name {
            "non-private" => (0, 1),
            "snowball-sgd" => (1, 1),
            _ => (2, 0),
        };
        let found = (count(&trainings(&value, "rows")), count(&trainings(&value, "left_out")));
        assert_eq!(found, expected, "{name}");
    }
    check_rows(&value, 100);
}

/// All kinds but two classes, of one or two algorithms, and all rankers. The probability that any sound training is refuted
/// is at most 1e-3.
#[test]
fn the_table_has_several_classes_tuning_and_rankers() {
    let place = Workplace::new();
    let models = ["audit", "table", "--kind", "softmax", "one-vs-all", "tune", "--trials", "600", "--json"];
    let value = place.dp(&with(&models, &["--algorithm", "bolt-on-strongly-convex", "dp-gd"])).json();
    assert_eq!(value["verdict"], "not-refuted", "{value}");
    check_rows(&value, 600);
    let rows = trainings(&value, "rows");
    for name in [
        "dp-gd softmax",
        "dp-gd one-vs-all composed",
        "bolt-on-strongly-convex one-vs-all joint",
        "bolt-on-strongly-convex one-vs-all split",
        "portions of dp-gd",
        "composition of dp-gd",
        "random-stopping poisson of bolt-on-strongly-convex",
    ] {
        assert_eq!(rows.iter().filter(|row| **row == name).count(), 2, "{name}: {rows:?}");
    }
    assert_eq!(trainings(&value, "left_out"), ["public"]);

    let value = place.dp(&["audit", "table", "--kind", "rank", "--trials", "150", "--json"]).json();
    assert_eq!(value["verdict"], "not-refuted", "{value}");
    check_rows(&value, 150);
    let rows = trainings(&value, "rows");
    for loss in ["bayesrank linear", "listnet linear", "listmle linear"] {
        for protected in ["grades", "lists present", "lists replace-one", "documents"] {
            let name = format!("{loss}, {protected}");
            assert_eq!(rows.iter().filter(|row| **row == name).count(), 2, "{name}: {rows:?}");
        }
    }
    // A ranker is not an algorithm of `dp train`.
    place.dp(&with(&["audit", "table", "--kind", "rank", "--algorithm"], &["dp-gd"])).fails(2, "usage.value");
}

/// The probability that any sound algorithm is refuted is at most 1e-3.
#[test]
fn a_table_holds_the_claims_of_sound_algorithms_and_convicts_a_third_of_them() {
    let place = Workplace::new();
    let arguments = with(&["audit", "table", "--kind", "two-classes", "--trials", "6000", "--algorithm"], &SAMPLED);
    let honest = place.dp(&with(&arguments, &["--json"])).json();
    assert_eq!(honest["verdict"], "not-refuted", "{honest}");
    let rows = honest["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * SAMPLED.len());
    check_rows(&honest, 6000);
    // A black-box attack already shows this much at epsilon 4.
    for row in rows.iter().filter(|row| row["requested"]["epsilon"] == 4.0) {
        assert!(row["epsilon_lower"].as_f64().unwrap() > 0.4, "{row}");
        assert!(row["pairs"]["tried"].as_u64().unwrap() > 20, "{row}");
    }
    let rerun = honest["rerun"].as_str().unwrap();
    let typed = format!("dp audit table --kind two-classes --algorithm {} --trials 6000", SAMPLED.join(" "));
    assert!(rerun.starts_with(&typed), "{rerun}");

    let third = ["audit", "table", "--kind", "two-classes", "--trials", "10000", "--claim-epsilon", "0.3333"];
    let third = with(&third, &["--algorithm", "obj-pert", "majority"]);
    let refuted = place.dp(&with(&third, &["--json"]));
    assert_eq!(refuted.code, 5, "{}", refuted.stderr);
    let refuted: Value = one_value(&refuted.stdout);
    for row in refuted["rows"].as_array().unwrap() {
        assert_eq!(row["verdict"], "refuted", "{row}");
        assert!(row["convicted_by"].is_array(), "{row}");
    }
    let text = place.dp(&third);
    assert_eq!(text.code, 5);
    for said in ["REFUTED", "others", "none of them counted"] {
        assert!(text.stdout.contains(said), "{}", text.stdout);
    }
}

#[test]
fn a_table_of_nothing_is_refused() {
    let place = Workplace::new();
    place.dp(&["audit", "table", "--algorithm", "non-private"]).fails(2, "usage.value").says("claims nothing");
    let rankers = ["audit", "table", "--kind", "rank", "--algorithm", "dp-sgd"];
    place.dp(&rankers).fails(2, "usage.value").says("no training of these kinds");
    let dry = place.dp(&["audit", "table", "--algorithm", "majority", "--dry-run", "--json"]).json();
    assert_eq!((&dry["schema"], &dry["dry_run"]), (&"dp.audit-table/2".into(), &true.into()));
}
