//! `dp train --threshold base-rate`: a rare class is found, the cost is certified, and files with other thresholds are refused.

use serde_json::{Value, json};

use crate::support::{Dice, Workplace, reseal};

const SCHEMA: &str = "\
[label]
column = 'ill'
positive = 'yes'
negative = 'no'
[columns.dose]
type = 'numeric'
min = 0
max = 1
";

/// One record of 15 is ill, more often at high doses.
fn table(rows: usize, seed: u64) -> String {
    let mut dice = Dice(seed);
    let mut text = "dose,ill\n".to_owned();
    for _ in 0..rows {
        let dose = dice.unit();
        let ill = if dice.unit() < 0.2 * dose * dose { "yes" } else { "no" };
        text += &format!("{dose:.3},{ill}\n");
    }
    text
}

fn place() -> Workplace {
    let place = Workplace::new();
    place.write("schema.toml", SCHEMA);
    place.write("train.csv", table(6000, 1));
    place.write("test.csv", table(4000, 2));
    place
}

fn train(place: &Workplace, more: &[&str]) -> Value {
    let arguments =
        "train --data train.csv --schema schema.toml --epsilon 1 --delta 1e-6 --algorithm auto --out m.json --force";
    let arguments: Vec<&str> = arguments.split(' ').chain(more.iter().copied()).chain(["--json"]).collect();
    place.dp(&arguments).json()
}

#[test]
fn a_rare_class_is_found_within_the_budget() {
    let place = place();
    let measured = || place.dp(&["evaluate", "--model", "m.json", "--data", "test.csv", "--json"]).json();
    train(&place, &[]);
    let at_half = measured();
    assert!(at_half["true_positive_rate"].as_f64().unwrap() < 0.05, "{at_half}");
    assert!(place.json("m.json")["model"].get("threshold").is_none());

    train(&place, &["--threshold", "base-rate", "--report", "report.md"]);
    let at_rate = measured();
    assert!(at_rate["balanced_accuracy"].as_f64().unwrap() > 0.6, "{at_rate}");
    assert!(at_rate["true_positive_rate"].as_f64().unwrap() > 0.5, "{at_rate}");
    let file = place.json("m.json");
    let threshold = file["model"]["threshold"].as_f64().unwrap();
    // 400 of 6000, and noise of scale 20.
    assert!((300.0..500.0).contains(&(6000.0 / (1.0 + (-threshold).exp()))), "{threshold}");
    assert!(place.read("report.md").contains("It predicts yes at probabilities above 0.0"));
    let verified = place.dp(&["verify", "m.json", "--json"]).json();
    let reached = verified["epsilon"].as_f64().unwrap();
    assert!(reached <= 1.0 && reached > 0.9, "{verified}");

    // Predictions are those that were evaluated.
    let lines = place.dp(&["predict", "--model", "m.json", "--data", "test.csv"]).ok();
    let mut right = 0;
    let of_table = table(4000, 2);
    for (line, row) in lines.lines().zip(of_table.lines()).skip(1) {
        let (score, class) = (line.split(',').next().unwrap(), line.split(',').nth(2).unwrap());
        assert_eq!(class == "yes", score.parse::<f64>().unwrap() > threshold);
        right += u64::from(row.ends_with(class));
    }
    assert!((right as f64 / 4000.0 - at_rate["accuracy"].as_f64().unwrap()).abs() < 1e-12);
    let decided_at = at_rate["threshold"].as_f64().unwrap();
    assert!((decided_at - 1.0 / (1.0 + (-threshold).exp())).abs() < 1e-12);

    // Files whose seals were repaired after an edit.
    let edited = |edit: &dyn Fn(&mut Value)| {
        let mut file = file.clone();
        edit(&mut file);
        reseal(&mut file);
        place.write("edited.json", file.to_string());
        place.dp(&["verify", "edited.json"])
    };
    assert_eq!(edited(&|_| ()).code, 0);
    edited(&|file| drop(file["model"].as_object_mut().unwrap().remove("threshold"))).fails(5, "verify.guarantee");
    edited(&|file| file["certificate"]["derivation"]["rate"]["scale"] = json!(1.0)).fails(5, "verify.guarantee");
}

#[test]
fn what_has_no_threshold_is_refused() {
    let place = place();
    let refused = |arguments: &str, code: i32, name: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        place.dp(&arguments).fails(code, name).says("--threshold");
    };
    let rest = "--data train.csv --schema schema.toml --out m.json --threshold base-rate";
    refused(&format!("train --algorithm non-private {rest}"), 2, "usage.conflict");
    refused(&format!("train --epsilon 1 --one-vs-all joint {rest}"), 2, "usage.conflict");
    refused(&format!("tune --epsilon 1 --delta 1e-6 --passes 1,2 {rest}"), 2, "usage.conflict");
    let svm: Vec<&str> =
        "train --epsilon 1 --loss huber-svm --algorithm auto --data train.csv --schema schema.toml --out m.json --threshold base-rate"
            .split(' ')
            .collect();
    place.dp(&svm).fails(4, "privacy.refused").says("logistic");
    assert!(!place.files().contains(&"m.json".to_owned()));
}

/// Records with a missing cell have no influence, on the base rate neither: most of them would move it towards one half.
#[test]
fn neutral_records_do_not_move_the_base_rate() {
    let place = place();
    let whole = table(6000, 1);
    let mut few = "dose,ill\n".to_owned();
    few.extend((0..).zip(whole.lines().skip(1)).map(|(i, line)| {
        let kept = if i % 3 == 0 { line } else { &line[line.find(',').unwrap()..] };
        format!("{kept}\n")
    }));
    place.write("few.csv", few);
    place.write("neutral.toml", SCHEMA.replace("max = 1", "max = 1\non_missing = 'neutral'"));
    let of = ["--data", "few.csv", "--schema", "neutral.toml", "--epsilon", "20", "--threshold", "base-rate"];
    place.dp(&[&["train", "--out", "few.json"], &of[..]].concat()).ok();
    let threshold = place.json("few.json")["model"]["threshold"].as_f64().unwrap();
    let rate = 1.0 / (1.0 + (-threshold).exp());
    assert!((0.04..0.1).contains(&rate), "{rate}");
}

/// `majority` predicts one number, whatever the row.
#[test]
fn a_constant_prediction_is_constant() {
    let place = place();
    let of = ["--data", "train.csv", "--schema", "schema.toml", "--epsilon", "5", "--algorithm", "majority"];
    place.dp(&[&["train", "--out", "constant.json"], &of[..]].concat()).ok();
    let lines = place.dp(&["predict", "--model", "constant.json", "--data", "test.csv"]).ok();
    let scores: Vec<f64> = lines.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    assert!(scores.iter().all(|score| (score - scores[0]).abs() < 1e-12), "{scores:?}");
    let rate = 1.0 / (1.0 + (-scores[0]).exp());
    assert!((0.055..0.08).contains(&rate), "{rate}");
    place.dp(&["verify", "constant.json"]).ok();
}
