//! `dp train --curves`, `--coordinate` and `--fourier`, and the choice of `auto`: training, the model's description, and predictions.

use crate::support::{Dice, Workplace};
use serde_json::Value;

const SCHEMA: &str = "\
[label]
column = 'y'
positive = 'yes'
negative = 'no'
[columns.pay]
type = 'numeric'
min = 0
max = 100000
[columns.age]
type = 'numeric'
min = 20
max = 60
[columns.town]
type = 'categorical'
categories = ['a', 'b']
";

/// The class is yes where the pay is between 100 and 3,000 and the town is a, no matter what the age is.
fn table(rows: usize, seed: u64) -> String {
    let mut dice = Dice(seed);
    let mut text = "pay,age,town,y\n".to_owned();
    for _ in 0..rows {
        let (pay, age) = (10_f64.powf(5.0 * dice.unit()), 20.0 + 40.0 * dice.unit());
        let town = if dice.unit() < 0.8 { 'a' } else { 'b' };
        let class = if (100.0..3000.0).contains(&pay) && town == 'a' { "yes" } else { "no" };
        text += &format!("{pay:.2},{age:.1},{town},{class}\n");
    }
    text
}

fn place() -> Workplace {
    let place = Workplace::new();
    place.write("schema.toml", SCHEMA);
    place.write("train.csv", table(6000, 1));
    place.write("test.csv", table(1500, 2));
    place
}

const TRAIN: [&str; 11] = [
    "train",
    "--data",
    "train.csv",
    "--schema",
    "schema.toml",
    "--epsilon",
    "2",
    "--delta",
    "1e-6",
    "--algorithm",
    "auto",
];

fn train(place: &Workplace, more: &[&str]) -> Value {
    place.dp(&[&TRAIN[..], more, &["--out", "m.json", "--force", "--json"]].concat()).json()
}

fn accuracy(place: &Workplace) -> f64 {
    let measured = place.dp(&["evaluate", "--model", "m.json", "--data", "test.csv", "--json"]).json();
    measured["accuracy"].as_f64().unwrap()
}

#[test]
fn auto_chooses_curves_which_verify_and_predict() {
    let place = place();
    let lines = train(&place, &["--curves", "none"]);
    assert_eq!((&lines["dim"], &lines["map"]), (&5.into(), &Value::Null));
    let of_lines = accuracy(&place);
    let curves = train(&place, &[]);
    assert_eq!(curves["map"], serde_json::json!({ "scale": "by_range", "cosines": 6, "pairs": false }));
    assert_eq!(place.json("m.json")["model"]["encoder"]["encoding"]["map"], curves["map"]);
    let of_curves = accuracy(&place);
    assert!(of_curves > 0.9 && of_curves > of_lines + 0.1, "{of_lines} {of_curves}");
    assert_eq!(curves["dim"], 15);
    assert_eq!(place.json("m.json")["model"]["features"][5], "pay~6");
    place.dp(&["verify", "m.json"]).ok();
    let scores = place.dp(&["predict", "--model", "m.json", "--data", "test.csv"]).ok();
    assert_eq!(scores.lines().count(), 1501);
    // A dry run says what a run chooses, and without a number of records nothing is chosen.
    let dry =
        |more: &[&str]| place.dp(&[&TRAIN[..], more, &["--out", "n.json", "--dry-run", "--json"]].concat()).json();
    let foreseen = dry(&["--n", "6000"]);
    assert_eq!((&foreseen["map"], &foreseen["dim"]), (&curves["map"], &curves["dim"]));
    assert_eq!(dry(&["--n", "60"])["map"], Value::Null);
    assert_eq!(dry(&[])["map"], Value::Null);
    let text = place.dp(&[&TRAIN[..], &["--out", "n.json", "--dry-run"]].concat()).ok();
    assert!(text.contains("by the number of records (--n)"), "{text}");
}

#[test]
fn what_is_stated_is_used_by_every_algorithm() {
    let place = place();
    let state = |more: &[&str]| {
        let arguments = [&TRAIN[..9], more, &["--out", "m.json", "--force", "--json"]].concat();
        let map = place.dp(&arguments).json()["map"].clone();
        place.dp(&["verify", "m.json"]).ok();
        let model = place.json("m.json")["model"].clone();
        (
            map["scale"].clone(),
            map["cosines"].clone(),
            map["pairs"].clone(),
            model["features"].as_array().unwrap().len(),
        )
    };
    let delta = ["--algorithm", "dp-sgd", "--passes", "2"];
    assert_eq!(state(&[&delta[..], &["--curves", "3"]].concat()), ("by_range".into(), 3.into(), false.into(), 9));
    let pairs = ["--curves", "2+pairs", "--coordinate", "log"];
    assert_eq!(state(&[&delta[..], &pairs].concat()), ("log".into(), 2.into(), true.into(), 8));
    let auto = ["--algorithm", "auto", "--coordinate", "log"];
    assert_eq!(state(&auto), ("log".into(), 0.into(), false.into(), 5));
    // The schema has the last word on a column.
    place.write("schema.toml", SCHEMA.replace("max = 60", "max = 60\ncosines = 0"));
    assert_eq!(train(&place, &["--curves", "4"])["dim"], 8);
    let report = ["--curves", "4", "--report", "r.md"];
    train(&place, &report);
    assert!(place.read("r.md").contains("4 cosines of each numeric column"), "{}", place.read("r.md"));
}

/// Writes tables in which young people in town a and old people in town b say yes: no sum of functions of single columns does
/// better than a coin.
fn write_interaction(place: &Workplace) {
    for (name, seed, rows) in [("train.csv", 3, 6000), ("test.csv", 4, 1500)] {
        let mut dice = Dice(seed);
        let mut text = "pay,age,town,y\n".to_owned();
        for _ in 0..rows {
            let (age, town) = (20.0 + 40.0 * dice.unit(), if dice.unit() < 0.5 { 'a' } else { 'b' });
            let class = if (age < 40.0) == (town == 'a') { "yes" } else { "no" };
            text += &format!("100,{age:.1},{town},{class}\n");
        }
        place.write(name, text);
    }
}

#[test]
fn fourier_features_learn_an_interaction() {
    let place = place();
    write_interaction(&place);
    train(&place, &[]);
    let of_curves = accuracy(&place);
    let joint = train(&place, &["--fourier", "100", "--report", "r.md"]);
    let fourier = serde_json::json!({ "features": 100, "bandwidth": 2.0, "seed": 0, "generator": "chacha20/1" });
    assert_eq!((&joint["fourier"], &joint["map"]["cosines"], &joint["dim"]), (&fourier, &6.into(), &115.into()));
    assert_eq!(place.json("m.json")["model"]["encoder"]["encoding"]["fourier"], fourier);
    assert_eq!(place.json("m.json")["model"]["features"][113], "<Fourier 100>");
    assert!(place.read("m.json").contains("public_projection"), "the certificate states that the seed is public");
    let of_all = accuracy(&place);
    assert!(of_curves < 0.6 && of_all > 0.85, "{of_curves} {of_all}");
    place.dp(&["verify", "m.json"]).ok();
    assert!(place.read("r.md").contains("100 random Fourier features of all columns"), "{}", place.read("r.md"));
    let shapes = place.dp(&["explain-model", "m.json"]).ok();
    assert!(shapes.contains("random Fourier features of all columns contribute too"), "{shapes}");
    assert_eq!(place.dp(&["explain-model", "m.json", "--json"]).json()["has_fourier"], true);
    place.dp(&["predict", "--model", "m.json", "--sql", "sqlite", "--table", "people"]).fails(3, "encoding.sql");
    // Another seed, another model.
    let stated = train(&place, &["--curves", "none", "--fourier", "100:1.5", "--fourier-seed", "7"]);
    assert_eq!((&stated["fourier"]["bandwidth"], &stated["fourier"]["seed"]), (&1.5.into(), &7.into()));
    assert_eq!((&stated["map"], &stated["dim"]), (&Value::Null, &105.into()));
}

/// 600 records for the choice: with the interaction, a model with the features is right about some 200 more; without one, 1,000
/// features add noise alone and cost some 100. The noise of the choice is about one record.
#[test]
fn fourier_features_are_kept_only_if_they_are_better() {
    let place = place();
    let add = ["--fourier", "1000", "--fourier-if-better", "--report", "r.md"];
    let kept = train(&place, &add);
    assert_eq!(
        (&kept["fourier"], &kept["dim"]),
        (&Value::Null, &kept["map"]["cosines"].as_u64().map_or(0, |c| 2 * c + 3).into())
    );
    let file = place.json("m.json");
    let derivation = &file["certificate"]["derivation"];
    assert_eq!((&derivation["kind"], &derivation["chosen"]), (&"composition".into(), &0.into()));
    assert_eq!(derivation["encodings"], serde_json::json!([0, 1]));
    let text = place.read("m.json");
    assert!(text.contains("public_encodings") && !text.contains("public_projection"), "{text}");
    let report = place.read("r.md");
    assert!(report.contains("several encodings of the records"));
    assert!(report.contains("By noisy counts of errors: the better of two models"), "{report}");
    assert_eq!(kept["tried"]["features"], 1000);
    place.dp(&["verify", "m.json"]).ok();
    // It is a model of curves in every respect.
    assert_eq!(place.dp(&["explain-model", "m.json", "--json"]).json()["has_fourier"], Value::Null);
    place.dp(&["predict", "--model", "m.json", "--sql", "sqlite", "--table", "people"]).ok();
    assert!(accuracy(&place) > 0.85);
    // The same bits on any number of threads, and from temporary files.
    let seeded = |more: &[&str]| {
        let few = ["--fourier", "40", "--fourier-if-better", "--seed", "7"];
        train(&place, &[&few[..], more].concat());
        place.json("m.json")["model"].clone()
    };
    let alone = seeded(&["--threads", "1"]);
    assert_eq!(seeded(&["--threads", "3", "--memory", "100KB"]), alone);

    write_interaction(&place);
    let kept = train(&place, &["--fourier", "100", "--fourier-if-better"]);
    assert_eq!(kept["fourier"]["features"], 100);
    assert!(kept["choice"]["reason"].as_str().unwrap().contains("without and with 100 random Fourier features"));
    assert_eq!(place.json("m.json")["certificate"]["derivation"]["chosen"], 1);
    let text = place.read("m.json");
    assert!(text.contains("public_encodings") && text.contains("public_projection"));
    assert!(accuracy(&place) > 0.8);
    place.dp(&["verify", "m.json"]).ok();
    // Every kind of training.
    place.write("three.toml", SCHEMA.replace("positive = 'yes'\nnegative = 'no'", "classes = ['yes', 'no', 'none']"));
    for more in [
        "--delta 0",
        "--adjacency replace-one",
        "--float f32",
        "--curves none",
        "--algorithm dp-sgd --passes 2",
        "--algorithm bolt-on-convex --passes 2",
        "--unit pay --max-rows 2",
        "--schema three.toml",
        "--schema three.toml --one-vs-all split --algorithm bolt-on-convex --passes 1",
    ] {
        let named: Vec<&str> = more.split(' ').collect();
        let other = |flag: &str| named.contains(&flag);
        let usual = TRAIN[1..].chunks(2).filter(|pair| !other(pair[0]));
        let run: Vec<&str> =
            ["train"].into_iter().chain(usual.flatten().copied()).chain(named.iter().copied()).collect();
        let add = ["--fourier", "30", "--fourier-if-better", "--anyway", "--out", "k.json", "--force", "--json"];
        let found = place.dp(&[&run[..], &add].concat()).json();
        assert!(
            found["epsilon"].as_f64().unwrap() <= 2.0 && found["epsilon"].as_f64().unwrap() > 1.9,
            "{more}: {found}"
        );
        place.dp(&["verify", "k.json"]).ok();
    }
    // A dry run plans both.
    let dry = ["--fourier", "100", "--fourier-if-better", "--out", "n.json", "--dry-run", "--n", "6000", "--json"];
    let foreseen = place.dp(&[&TRAIN[..], &dry].concat()).json();
    assert_eq!((&foreseen["tried"]["features"], &foreseen["fourier"]), (&100.into(), &Value::Null));
    assert!(foreseen["plan"].as_str().unwrap().starts_with("2 candidates on the same 5400 records"), "{foreseen}");
}

#[test]
fn where_no_choice_can_be_made_it_is_refused() {
    let place = place();
    let refused = |more: &[&str], code: &str, says: &str| {
        let run = place.dp(&[&TRAIN[..9], more, &["--out", "m.json"]].concat());
        run.fails(2, code).says(says);
    };
    let add = ["--fourier", "10", "--fourier-if-better"];
    let with = |more: &[&'static str]| [&add[..], more].concat();
    refused(&with(&["--algorithm", "auto", "--threshold", "base-rate"]), "usage.conflict", "--fourier-if-better");
    let run = place.dp(&[
        &["train", "--data", "train.csv", "--schema", "schema.toml", "--algorithm", "non-private"][..],
        &add,
        &["--out", "m.json"],
    ]
    .concat());
    run.fails(2, "usage.conflict").says("--fourier-if-better");
    let tune = ["tune", "--data", "train.csv", "--schema", "schema.toml", "--epsilon", "1", "--lambda", "1e-3,1e-2"];
    place.dp(&[&tune[..], &add, &["--out", "m.json"]].concat()).fails(2, "usage.conflict").says("one choice");
    place.write(
        "numbers.toml",
        SCHEMA
            .replace(
                "column = 'y'\npositive = 'yes'\nnegative = 'no'",
                "column = 'age'\ntype = 'numeric'\nmin = 20\nmax = 60",
            )
            .replace("[columns.age]\ntype = 'numeric'\nmin = 20\nmax = 60\n", "[columns.y]\ntype = 'drop'\n"),
    );
    let numbers = ["train", "--data", "train.csv", "--schema", "numbers.toml", "--epsilon", "1", "--out", "m.json"];
    place.dp(&[&numbers[..], &add].concat()).fails(2, "usage.conflict").says("loss of numbers");
    let many = ["--fourier", "1048576", "--fourier-if-better", "--curves", "8", "--out", "m.json", "--dry-run"];
    place.dp(&[&TRAIN[..], &many].concat()).fails(3, "encoding.map");
    let one = ["--fourier", "4", "--fourier-if-better", "--out", "m.json", "--dry-run", "--n", "1"];
    place.dp(&[&TRAIN[..], &one].concat()).fails(4, "privacy.refused").says("2 or more");
    let run = place.dp(&[&TRAIN[..], &["--fourier-if-better", "--out", "m.json"]].concat());
    assert!(run.code == 2 && run.stderr.contains("--fourier"), "{run:?}");
    assert!(!place.files().contains(&"m.json".to_owned()));
}

#[test]
fn what_cannot_be_is_refused() {
    let place = place();
    for curves in ["0", "65", "x", "4+", "+pairs"] {
        let run = place.dp(&[&TRAIN[..], &["--curves", curves, "--out", "m.json"]].concat());
        assert!(run.code == 2 && run.stderr.contains("--curves"), "{run:?}");
    }
    place.write("t.libsvm", "+1 1:1\n-1 2:1\n");
    let libsvm = ["train", "--data", "t.libsvm", "--dim", "2", "--epsilon", "1", "--out", "m.json"];
    for flag in ["--curves", "--fourier"] {
        place.dp(&[&libsvm[..], &[flag, "2"]].concat()).fails(2, "usage.conflict").says(flag);
    }
    for fourier in ["0", "1048577", "4000000000", "x", "4:", "4:x", "4:0", "4:101", "4:inf"] {
        let run = place.dp(&[&TRAIN[..], &["--fourier", fourier, "--out", "m.json"]].concat());
        assert!(run.code == 2 && run.stderr.contains("a number up to 1048576"), "{run:?}");
    }
    let seed = ["--fourier", "4", "--fourier-seed", "9007199254740992", "--out", "m.json"];
    place.dp(&[&TRAIN[..], &seed].concat()).fails(2, "usage.value").says("--fourier-seed");
    let seed = place.dp(&[&TRAIN[..], &["--fourier-seed", "3", "--out", "m.json"]].concat());
    assert!(seed.code == 2 && seed.stderr.contains("--fourier"), "{seed:?}");
    // Pairs of 6,000 columns are too many features.
    let columns = (0..6000).map(|i| format!("[columns.c{i}]\ntype = 'numeric'\nmin = 0\nmax = 1\n"));
    let label = "[label]\ncolumn = 'y'\npositive = '1'\nnegative = '0'\n".to_owned();
    place.write("wide.toml", [label].into_iter().chain(columns).collect::<String>());
    let wide = ["train", "--data", "train.csv", "--schema", "wide.toml", "--epsilon", "1", "--out", "m.json"];
    place.dp(&[&wide[..], &["--curves", "1+pairs"]].concat()).fails(3, "encoding.map");
    assert!(!place.files().contains(&"m.json".to_owned()));
}

#[test]
fn a_model_is_explained_column_by_column() {
    let place = place();
    train(&place, &[]);
    let explained = place.dp(&["explain-model", "m.json", "--out", "shapes.svg", "--json"]).json();
    assert_eq!((&explained["schema"], &explained["class"]), (&"dp.explain-model/1".into(), &"yes".into()));
    assert_eq!((&explained["publishable"], &explained["picture"]), (&true.into(), &"shapes.svg".into()));
    let columns = explained["columns"].as_array().unwrap();
    let names: Vec<_> = columns.iter().map(|column| column["column"].as_str().unwrap()).collect();
    assert_eq!(names, ["pay", "town", "age"], "the strongest first");
    // The curve of the pay is highest between 100 and 3,000.
    let (values, curve) = (columns[0]["values"].as_array().unwrap(), columns[0]["contributions"].as_array().unwrap());
    let highest = (0..values.len()).max_by(|&a, &b| curve[a].as_f64().unwrap().total_cmp(&curve[b].as_f64().unwrap()));
    let at = values[highest.unwrap()].as_f64().unwrap();
    assert!((100.0..3000.0).contains(&at), "{at}");
    let picture = place.read("shapes.svg");
    assert!(picture.contains("pay") && picture.contains("<polyline") && picture.contains("the score of yes"));
    let text = place.dp(&["explain-model", "m.json"]).ok();
    assert!(text.contains("contributions of 3 columns to the score of yes") && text.contains("a"), "{text}");
    // The noise of auto is in the objective: its effect on the weights is not known.
    assert!(text.contains("no standard errors: ") && explained["has_standard_errors"] == false, "{text}");
    place.dp(&["explain-model", "m.json", "--out", "shapes.svg"]).fails(1, "output.exists");
    place.dp(&["explain-model", "m.json", "--class", "maybe"]).fails(2, "usage.value").says("maybe");
    place.write("t.libsvm", "+1 1:1\n-1 2:1\n".repeat(100));
    let libsvm = ["train", "--data", "t.libsvm", "--dim", "2", "--epsilon", "9", "--out", "l.json"];
    place.dp(&libsvm).ok();
    place.dp(&["explain-model", "l.json"]).fails(3, "model.mismatch");
    let named: Vec<&str> =
        TRAIN.iter().map(|&word| if word == "auto" { "bolt-on-strongly-convex" } else { word }).collect();
    place.dp(&[&named[..], &["--out", "m.json", "--force"]].concat()).ok();
    let explained = place.dp(&["explain-model", "m.json", "--out", "bands.svg", "--json"]).json();
    assert_eq!(explained["has_standard_errors"], true);
    for column in explained["columns"].as_array().unwrap() {
        let [effect, error] = ["effect", "standard_error"].map(|name| column[name].as_f64().unwrap());
        assert!(error > 0.0 && (effect < 2.0 * error || column["is_within_noise"] == false || effect < 5.0 * error));
        let contributions = column["contributions"].as_array().unwrap();
        assert_eq!(contributions.len(), column["standard_errors"].as_array().unwrap().len());
        assert_eq!(column.get("per_unit").is_some(), column["column"] != "town");
    }
    let text = place.dp(&["explain-model", "m.json"]).ok();
    assert!(text.contains("standard error") && text.contains("per unit"), "{text}");
    assert!(place.read("bands.svg").contains("95% intervals") && place.read("bands.svg").contains("<polygon"));
    train(&place, &["--seed", "1"]);
    assert!(place.dp(&["explain-model", "m.json"]).ok().contains("do not publish"));
}
