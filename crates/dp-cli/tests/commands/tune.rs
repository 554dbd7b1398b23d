//! `dp tune`: each selection method, from file to verified model, and its errors.

use crate::support::{Workplace, people};
use dp::canonical;
use serde_json::Value;

const SCHEMA: &str = r#"
label = { column = "earns", positive = "yes", negative = "no" }
columns.age = { type = "numeric", min = 0, max = 120 }
columns.hours = { type = "numeric", min = 0, max = 80 }
columns.trade = { type = "categorical", categories = ["baker", "clerk", "smith"] }
"#;

/// A grid of four combinations.
const GRID: [&str; 4] = ["--lambda", "0.01,0.1", "--passes", "1,2"];

const PORTIONS: &[&str] = &["--algorithm", "bolt-on-strongly-convex", "--epsilon", "2"];
const STOPPING: &[&str] =
    &["--algorithm", "bolt-on-strongly-convex", "--epsilon", "2", "--method", "random-stopping", "--trials", "3"];
const COMPOSITION: &[&str] =
    &["--algorithm", "bolt-on-strongly-convex", "--epsilon", "2", "--delta", "1e-6", "--method", "composition"];
const GEOMETRIC: &[&str] = &[
    "--algorithm",
    "bolt-on-strongly-convex",
    "--epsilon",
    "2",
    "--delta",
    "1e-6",
    "--method",
    "random-stopping",
    "--trial-law",
    "geometric",
];
const PUBLIC: &[&str] = &["--epsilon", "2", "--method", "public", "--public", "survey.csv"];

fn place() -> Workplace {
    let place = Workplace::new();
    place.write("people.csv", people(2000, 1));
    place.write("survey.csv", people(500, 2));
    place.write("test.csv", people(1000, 3));
    place.write("schema.toml", SCHEMA);
    place
}

fn tune<'a>(out: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let records = ["tune", "--data", "people.csv", "--schema", "schema.toml", "--out", out];
    records.iter().chain(&GRID).chain(rest).copied().collect()
}

#[test]
fn every_way_gives_a_model_that_verifies_predicts_and_is_measured() {
    let place = place();
    for (out, flags) in
        [("p.json", PORTIONS), ("c.json", COMPOSITION), ("s.json", STOPPING), ("g.json", GEOMETRIC), ("u.json", PUBLIC)]
    {
        let result =
            place.dp(&[&tune(out, flags)[..], &["--json", "--report", "report.md", "--force"]].concat()).json();
        assert_eq!((&result["schema"], &result["private"]), (&"dp.tune/1".into(), &true.into()), "{result}");
        assert!(result["epsilon"].as_f64().unwrap() <= 2.0 && result["epsilon"].as_f64().unwrap() > 1.9, "{result}");
        let chosen = &result["chosen"];
        let (lambda, passes) = (chosen["lambda"].as_f64().unwrap(), chosen["passes"].as_u64().unwrap());
        assert!((lambda == 0.01 || lambda == 0.1) && (1..=2).contains(&passes) && chosen["of"] == 4, "{chosen}");
        let expected = 1 + 2 * u64::from(lambda == 0.1) + (passes - 1);
        assert_eq!(chosen["number"], expected, "{chosen}");
        // The duration of a random number of trainings would reveal that number.
        assert_eq!(result.get("seconds").is_some(), out != "s.json" && out != "g.json", "{result}");
        let verified = place.dp(&["verify", out, "--json"]).json();
        assert_eq!(verified["holds"], true);
        place.dp(&["predict", "--model", out, "--data", "test.csv", "--out", "scores.csv", "--force"]).ok();
        assert_eq!(place.read("scores.csv").lines().count(), 1001);
        let measured = place.dp(&["evaluate", "--model", out, "--data", "test.csv", "--json"]).json();
        assert!(measured["n"] == 1000 && measured["accuracy"].is_number(), "{measured}");
        assert!(place.read("report.md").contains("dp verify"));
    }
}

#[test]
fn the_summary_says_what_was_chosen_and_nothing_of_the_others() {
    let place = place();
    for (flags, timed) in [(PORTIONS, true), (STOPPING, false), (PUBLIC, true)] {
        let run = place.dp(&[&tune("model.json", flags)[..], &["--force"]].concat());
        let text = run.ok();
        let line = text.lines().find(|line| line.starts_with("chosen")).unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains("--lambda") && line.contains("--passes") && line.contains("of 4)"), "{line}");
        assert_eq!(text.lines().next().unwrap().contains(", in "), timed, "{text}");
        for word in ["mistake", "score", "accuracy"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
}

#[test]
fn a_seed_repeats_the_choice_and_gives_no_guarantee() {
    let place = place();
    for flags in [PORTIONS, STOPPING, PUBLIC] {
        let seeded = |out| {
            let run = place.dp(&[&tune(out, flags)[..], &["--seed", "7", "--json"]].concat()).json();
            (run["chosen"].clone(), place.json(out)["model"]["weights"].clone())
        };
        assert_eq!(seeded("one.json"), seeded("two.json"));
        place.dp(&["verify", "one.json"]).fails(5, "verify.not_private");
        std::fs::remove_file(place.path("one.json")).unwrap();
        std::fs::remove_file(place.path("two.json")).unwrap();
    }
}

/// Without a delta, `auto` has that of a training.
#[test]
fn auto_is_tuned_with_the_delta_of_a_training() {
    let place = place();
    let delta = |out: &str, rest: &[&str]| {
        let auto = ["tune", "--algorithm", "auto", "--data", "people.csv", "--schema", "schema.toml", "--epsilon", "4"];
        // With so many features Gaussian noise is less than that of a pure guarantee.
        place.dp(&[&auto[..], &["--fourier", "100", "--lambda", "0.01,0.1", "--out", out], rest].concat()).ok();
        place.json(out)["certificate"]["reached"]["delta"].as_f64().unwrap()
    };
    assert_eq!(delta("auto.json", &[]), 1e-6);
    assert_eq!(delta("pure.json", &["--delta", "0"]), 0.0);
}

#[test]
fn a_dry_run_says_what_it_would_cost() {
    let place = place();
    for (flags, words) in [
        (PORTIONS, "4 candidates, each on a portion of 400 records"),
        (STOPPING, "the best of 3.000 repetitions"),
        (PUBLIC, "sensitivity"),
    ] {
        let dry = place.dp(&[&tune("model.json", flags)[..], &["--dry-run", "--n", "2000", "--json"]].concat()).json();
        assert_eq!((&dry["schema"], &dry["dry_run"]), (&"dp.tune/1".into(), &true.into()));
        assert!(dry["plan"].as_str().unwrap().contains(words), "{dry}");
        assert!(dry["epsilon"].as_f64().unwrap() <= 2.0);
    }
    assert!(!place.files().contains(&"model.json".to_owned()));
}

/// Returns the certificate with the value at `pointer` changed and the hashes repaired.
fn edited(file: &Value, pointer: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut file = file.clone();
    change(file["certificate"].pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")));
    file["certificate_sha256"] = canonical::sha256(&file["certificate"]).into();
    file.to_string()
}

/// A file, a member of its certificate, and the edit of it.
type Edit<'a> = (&'a str, &'a str, &'a dyn Fn(&mut Value));

#[test]
fn a_certificate_cannot_be_edited_to_promise_more() {
    let place = place();
    place.dp(&tune("p.json", PORTIONS)).ok();
    place.dp(&tune("s.json", STOPPING)).ok();
    let halve = |value: &mut Value| *value = (0.5 * value.as_f64().unwrap()).into();
    let double = |value: &mut Value| *value = (2.0 * value.as_f64().unwrap()).into();
    let fewer = |value: &mut Value| *value = value.as_array().unwrap()[1..].to_vec().into();
    let more = |value: &mut Value| *value = (value.as_u64().unwrap() + 7).into();
    let edits: [Edit<'_>; 11] = [
        ("p.json", "/derivation/choice_epsilon", &halve),
        ("p.json", "/derivation/each", &fewer),
        ("p.json", "/derivation/n", &more),
        ("p.json", "/derivation/chosen", &more),
        ("p.json", "/derivation/each/2/noise/scale", &double),
        ("p.json", "/reached/epsilon", &halve),
        ("s.json", "/derivation/score/scale", &double),
        ("s.json", "/derivation/repetitions/eta", &|value| *value = (-0.5).into()),
        ("s.json", "/derivation/n", &more),
        ("s.json", "/derivation/each/0/noise/scale", &double),
        ("s.json", "/derivation/chosen", &more),
    ];
    for (name, pointer, change) in edits {
        place.write("edited.json", edited(&place.json(name), pointer, change));
        let run = place.dp(&["verify", "edited.json"]);
        assert!(run.code == 5 && run.stderr.contains("error[verify."), "{name} {pointer}: {run:#?}");
    }
}

#[test]
fn several_classes_and_other_algorithms_are_tuned_too() {
    let place = place();
    let mut table = String::from("x,y,z,kind\n");
    for i in 0..900 {
        let cell = |j| if i % 3 == j { "1" } else { "0" };
        table.push_str(&format!("{},{},{},k{}\n", cell(0), cell(1), cell(2), i % 3));
    }
    place.write("kinds.csv", table);
    place
        .dp(&[
            "tune",
            "--data",
            "kinds.csv",
            "--label",
            "kind",
            "--classes",
            "k0,k1,k2",
            "--schema-from-data",
            "--algorithm",
            "bolt-on-strongly-convex",
            "--epsilon",
            "8",
            "--lambda",
            "0.02,0.2",
            "--out",
            "kinds.json",
        ])
        .ok();
    place.dp(&["verify", "kinds.json"]).ok();
    // One-vs-rest models, all tuned together.
    let named = ["--label", "kind", "--classes", "k0,k1,k2", "--schema-from-data"];
    let each = ["--algorithm", "bolt-on-strongly-convex", "--one-vs-all", "joint", "--epsilon", "8", "--delta", "1e-6"];
    for method in ["portions", "composition", "random-stopping"] {
        let rest = ["--lambda", "0.02,0.2", "--method", method, "--out", "each.json", "--force", "--json"];
        let result = place.dp(&[&["tune", "--data", "kinds.csv"][..], &named, &each, &rest].concat()).json();
        assert!(result["epsilon"].as_f64().unwrap() <= 8.0 && result["chosen"]["of"] == 2, "{result}");
        assert_eq!(place.dp(&["verify", "each.json", "--json"]).json()["holds"], true, "{method}");
        let answers = place.dp(&["predict", "--model", "each.json", "--data", "kinds.csv"]).ok();
        assert_eq!(answers.lines().count(), 901, "{method}");
    }
    let steps = ["--algorithm", "dp-sgd", "--epsilon", "2", "--delta", "1e-6", "--batch-size", "100,200"];
    let records = ["tune", "--data", "people.csv", "--schema", "schema.toml", "--passes", "1,2", "--out", "steps.json"];
    place.dp(&[&records[..], &steps].concat()).ok();
    place.dp(&["verify", "steps.json"]).ok();
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_read() {
    let place = place();
    let refused = |flags: &[&str], exit: i32, code: &str, word: &str| {
        let records = ["tune", "--data", "absent.csv", "--schema", "schema.toml", "--out", "model.json"];
        place.dp(&[&records[..], flags].concat()).fails(exit, code).says(word);
    };
    let two = ["--lambda", "0.01,0.1"];
    let with = |rest: &[&'static str]| [&two[..], rest].concat();
    refused(&["--epsilon", "1"], 2, "usage.conflict", "combinations to choose from: 1");
    refused(&["--epsilon", "1", "--lambda", "0.1"], 2, "usage.conflict", "dp train");
    refused(&["--epsilon", "1", "--lambda", "0.1,1e-1"], 2, "usage.conflict", "given twice: --lambda 0.1\n");
    refused(&["--epsilon", "1", "--lambda", "1,2", "--passes", "3,4,3"], 2, "usage.conflict", "--lambda 1 --passes 3");
    refused(&two, 2, "usage.missing", "--epsilon");
    refused(&with(&["--epsilon", "1", "--algorithm", "non-private"]), 2, "usage.conflict", "--algorithm");
    refused(&with(&["--epsilon", "1", "--method", "public"]), 2, "usage.missing", "--public");
    refused(&with(&["--epsilon", "1", "--public", "survey.csv"]), 2, "usage.conflict", "--method public");
    refused(&with(&["--epsilon", "1", "--trials", "4"]), 2, "usage.conflict", "random-stopping");
    refused(&with(&["--epsilon", "1", "--trial-law", "poisson"]), 2, "usage.conflict", "random-stopping");
    let stopping = ["--epsilon", "1", "--method", "random-stopping"];
    let stopping = |rest: &[&'static str]| [&with(&stopping)[..], rest].concat();
    refused(&stopping(&["--trials", "1"]), 2, "usage.value", "--trials");
    refused(&stopping(&["--trials", "NaN"]), 2, "usage.value", "--trials");
    refused(&stopping(&["--trial-law", "poisson"]), 2, "usage.conflict", "delta");
    refused(&with(&["--epsilon", "1", "--passes", "1,0"]), 2, "usage.value", "--passes");
    refused(&["--epsilon", "1", "--lambda", "0.1,-1"], 2, "usage.value", "--lambda");
    let word = ["tune", "--data", "absent.csv", "--lambda", "0.1,x", "--out", "model.json", "--json"];
    let run = place.dp(&word);
    assert_eq!((run.code, &crate::support::one_value(&run.stdout)["error"]["code"]), (2, &"usage.arguments".into()));
    refused(&["--epsilon", "1", "--passes", "1,2", "--algorithm", "snowball-sgd"], 2, "usage.conflict", "--passes");
    let squared = ["--epsilon", "1", "--loss", "squared", "--radius", "2"];
    refused(&with(&squared), 2, "usage.conflict", "mistakes");
    // A combination without a proof is rejected before the records are read.
    let zero = ["--epsilon", "1", "--algorithm", "bolt-on-strongly-convex", "--lambda", "0.1,0"];
    refused(&zero, 4, "privacy.refused", "--lambda");
    let passes: Vec<String> = (1..=1001).map(|passes| passes.to_string()).collect();
    refused(&["--epsilon", "1", "--passes", &passes.join(",")], 2, "usage.value", "combinations");
    assert!(!place.files().contains(&"model.json".to_owned()));
    // `dp train` takes one value of each setting.
    let train = ["train", "--data", "people.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "model.json"];
    place.dp(&[&train[..], &["--passes", "1,2"]].concat()).fails(2, "usage.conflict").says("dp tune");
}

#[test]
fn bad_records_fail_without_a_model() {
    let place = place();
    place.write("wrong.csv", "age,hours,earns\n1,2,yes\n");
    let public = ["--epsilon", "1", "--method", "public", "--public"];
    place.dp(&tune("model.json", &[&public[..], &["absent.csv"]].concat())).fails(1, "file.open");
    let run = place.dp(&tune("model.json", &[&public[..], &["wrong.csv"]].concat()));
    assert!(run.code == 3 && run.stderr.contains("error[csv."), "{run:#?}");
    place.dp(&tune("model.json", &[&public[..], &["-"]].concat())).fails(2, "usage.value").says("--public");
    place.dp(&tune("model.json", &[&public[..], &["people.csv"]].concat())).fails(2, "usage.conflict");
    // Fewer records than portions.
    place.write("few.csv", people(4, 1));
    let few = ["tune", "--data", "few.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "model.json"];
    place.dp(&[&few[..], &GRID].concat()).fails(4, "privacy.refused").says("number of records");
    assert!(!place.files().contains(&"model.json".to_owned()));
}

/// The work of recomputing an untrusted file is counted before it is done.
#[test]
fn a_certificate_of_very_many_candidates_is_not_recomputed_unless_allowed() {
    let place = place();
    place.dp(&tune("model.json", STOPPING)).ok();
    let mut file = place.json("model.json");
    let each = file["certificate"]["derivation"]["each"].as_array_mut().unwrap();
    let candidate = each[0].clone();
    each.resize(1000, candidate);
    file["certificate_sha256"] = canonical::sha256(&file["certificate"]).into();
    place.write("long.json", file.to_string());
    let started = std::time::Instant::now();
    let run = place.dp(&["verify", "long.json"]);
    run.fails(3, "verify.work").says("--work");
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    // Repeating the same candidates is the same choice as listing them once.
    place.dp(&["verify", "long.json", "--work", "99999999999"]).ok();
    place.dp(&["verify", "model.json", "--work", "1"]).fails(3, "verify.work");
    place.dp(&["verify", "model.json"]).ok();
}

/// A released candidate must be among the listed ones; weights that do not belong to it are refused.
#[test]
fn weights_are_held_to_the_candidate_that_was_chosen() {
    let place = place();
    for flags in [PORTIONS, STOPPING] {
        place.dp(&[&tune("model.json", flags)[..], &["--force"]].concat()).ok();
        let file = place.json("model.json");
        let resealed = |edit: &dyn Fn(&mut Value)| {
            let mut edited = file.clone();
            edit(&mut edited);
            edited["certificate"]["model_sha256"] = canonical::sha256(&edited["model"]).into();
            edited["certificate_sha256"] = canonical::sha256(&edited["certificate"]).into();
            place.write("edited.json", edited.to_string());
            place.dp(&["verify", "edited.json"])
        };
        if file["certificate"]["derivation"]["chosen"].is_number() {
            resealed(&|file| file["model"]["weights"][0] = 0.123456789.into()).fails(5, "verify.weights");
            assert_eq!(resealed(&|file| file["certificate"]["derivation"]["chosen"] = Value::Null).code, 5);
        }
    }
}

/// A selection on public records is an assumption that lists its candidates; no other assumption can replace it.
#[test]
fn a_choice_on_public_records_is_an_assumption_of_its_own() {
    let place = place();
    let listed = |out: &str| {
        let certificate = place.json(out)["certificate"].clone();
        let assumptions = certificate["assumptions"].as_array().unwrap().clone();
        assumptions.into_iter().find(|assumption| assumption["assumption"] == "chosen_on_public")
    };
    place.dp(&tune("portions.json", PORTIONS)).ok();
    assert_eq!(listed("portions.json"), None);
    place.dp(&tune("model.json", PUBLIC)).ok();
    let grid = serde_json::json!({ "lambda": [0.01, 0.1], "passes": [1.0, 2.0] });
    assert_eq!(listed("model.json").expect("an assumption")["grid"], grid);
    let words = place.dp(&["verify", "model.json"]).ok();
    assert!(words.contains("believed to be public: lambda from 0.01, 0.1; passes from 1, 2"), "{words}");
    let file = place.json("model.json");
    let verify = |other: Value| {
        let mut edited = file.clone();
        let assumptions = edited["certificate"]["assumptions"].as_array_mut().unwrap();
        assumptions.retain(|assumption| assumption["assumption"] != "chosen_on_public");
        assumptions.push(serde_json::json!({ "assumption": "chosen_on_public", "grid": other }));
        edited["certificate_sha256"] = canonical::sha256(&edited["certificate"]).into();
        place.write("edited.json", edited.to_string());
        place.dp(&["verify", "edited.json"])
    };
    let many = |count: u32| serde_json::json!({ "lambda": (0..count).map(f64::from).collect::<Vec<_>>() });
    for other in [
        serde_json::json!({}),
        serde_json::json!({ "audited by the board": [1.0] }),
        serde_json::json!({ "audited by the board": [1.0], "lambda": [1.0] }),
        serde_json::json!({ "lambda": [] }),
        serde_json::json!({ "lambda": [0.1, 0.01] }),
        serde_json::json!({ "lambda": [0.1, 0.1] }),
        serde_json::json!({ "lambda": [0.1], "passes": [2.0, 1.0] }),
        serde_json::json!({ "lambda": [-0.1] }),
        serde_json::json!({ "lambda": [-0.1, 0.1] }),
        many(1001),
    ] {
        verify(other).fails(5, "verify.assumption");
    }
    for other in [serde_json::json!({ "lambda": [0.0], "batch_size": [1.0, 50.0] }), many(1000)] {
        verify(other).ok();
    }
}

/// Public records that are also private are reported to the curator only.
#[test]
fn public_records_among_the_private_ones_are_noticed() {
    let place = place();
    let rows = people(2000, 1);
    let some: String = rows.lines().take(301).map(|line| format!("{line}\n")).collect();
    place.write("survey.csv", some);
    let run = place.dp(&[&tune("model.json", PUBLIC)[..], &["--json"]].concat());
    assert!(run.code == 0 && run.stderr.contains("300 of 300 public records are"), "{run:#?}");
    assert!(run.stderr.contains("for your eyes only"), "{run:#?}");
    // Digits of a weight, a time or a hash may happen to be 300.
    for text in [run.stdout, place.read("model.json")] {
        assert!(text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.').all(|word| word != "300"), "{text}");
    }
    place.write(
        "survey.csv",
        "age,hours,trade,earns\n1,1.25,clerk,no\n2,1.75,smith,yes\n3,0.25,clerk,no\n4,2,smith,yes\n",
    );
    let run = place.dp(&[&tune("model.json", PUBLIC)[..], &["--force"]].concat());
    assert!(run.code == 0 && !run.stderr.contains("public records are"), "{run:#?}");
}

/// Progress and speed would reveal the random number of trainings.
#[test]
fn progress_says_nothing_of_a_random_number_of_trainings() {
    let place = place();
    for (flags, shown) in [(PORTIONS, true), (STOPPING, false), (GEOMETRIC, false)] {
        let run = place.dp(&[&tune("model.json", flags)[..], &["--force", "--progress", "json"]].concat());
        assert_eq!(run.stderr.contains("\"phase\":\"train\""), shown, "{run:#?}");
        assert!(run.code == 0 && run.stderr.contains("\"phase\":\"read\""), "{run:#?}");
    }
}
