//! `dp evaluate` and `dp predict` at other thresholds, and the curves over all of them.

use serde_json::Value;

use crate::support::{Workplace, people, reseal};

/// A model of 3,000 people, and 1,000 others.
fn place(more: &[&str]) -> Workplace {
    let place = Workplace::new();
    place.write("people.csv", people(3000, 31));
    place.write("test.csv", people(1000, 32));
    let train = "train --data people.csv --label earns --positive yes --schema-from-data --epsilon 2 --out m.json";
    let train: Vec<&str> = train.split(' ').chain(more.iter().copied()).collect();
    place.dp(&train).ok();
    place
}

fn evaluate(place: &Workplace, more: &str) -> Value {
    let typed = format!("evaluate --model m.json --data test.csv --json {more}");
    place.dp(&typed.split_whitespace().collect::<Vec<_>>()).json()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_threshold_moves_predictions_and_metrics_alike() {
    let place = place(&[]);
    let usual = evaluate(&place, "");
    assert_eq!(usual["thresholds"].as_array().unwrap().len(), 9);
    for (position, threshold) in ["0.1", "0.2", "0.5", "0.7"].into_iter().zip([0.1, 0.2, 0.5, 0.7]) {
        let at = evaluate(&place, &format!("--threshold {position}"));
        // The table of thresholds says the same, at every threshold.
        assert_eq!(at["thresholds"], usual["thresholds"]);
        let row = at["thresholds"].as_array().unwrap().iter().find(|row| row["threshold"] == threshold).unwrap();
        for figure in ["accuracy", "true_positive_rate"] {
            assert_eq!(row[figure], at[figure], "{threshold} {figure}");
        }
        assert!((number(&at["threshold"]) - threshold).abs() < 1e-12, "{at}");
        assert_eq!((&at["auc"], &at["log_loss"]), (&usual["auc"], &usual["log_loss"]));
        // The predictions are those that were counted.
        let text = place.dp(&["predict", "--model", "m.json", "--data", "test.csv", "--threshold", position]).ok();
        let mut counts = [0u64; 4];
        for (line, row) in text.lines().zip(people(1000, 32).lines()).skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let (score, probability) = (cells[0].parse::<f64>().unwrap(), cells[1].parse::<f64>().unwrap());
            assert!((probability - 1.0 / (1.0 + (-score).exp())).abs() < 1e-15);
            assert_eq!(cells[2] == "yes", probability > threshold, "{line}");
            counts[2 * usize::from(row.ends_with(",yes")) + usize::from(cells[2] == "yes")] += 1;
        }
        let confusion = ["true_negatives", "false_positives", "false_negatives", "true_positives"];
        assert_eq!(confusion.map(|name| at["confusion"][name].as_u64().unwrap()), counts, "{threshold}");
    }
    let rows = usual["thresholds"].as_array().unwrap();
    assert!(rows.windows(2).all(|pair| number(&pair[0]["positive_share"]) >= number(&pair[1]["positive_share"])));
    let text = place.dp(&["evaluate", "--model", "m.json", "--data", "test.csv"]).ok();
    assert!(text.contains("true \\ predicted") && text.contains("false-positive rate"), "{text}");
}

/// A column in another unit, and labels of another spelling.
#[test]
fn records_unlike_those_of_the_training_are_told_of() {
    let place = place(&[]);
    let in_months = |line: &str| {
        let (age, rest) = line.split_once(',').unwrap();
        age.parse::<u64>().map_or(line.to_owned(), |age| format!("{},{rest}", 12 * age))
    };
    let months: Vec<String> = place.read("test.csv").lines().map(in_months).collect();
    place.write("months.csv", months.join("\n"));
    place.write("others.csv", place.read("test.csv").replace("yes", "Yes!"));
    place.write("none.csv", place.read("test.csv").replace("yes", "1").replace("no\n", "0\n"));
    for command in ["evaluate", "predict"] {
        let run = place.dp(&[command, "--model", "m.json", "--data", "months.csv"]);
        run.says("1000 values of column `age` lay outside its public range");
        run.ok();
    }
    let of = |file: &str| place.dp(&["evaluate", "--model", "m.json", "--data", file]);
    let others = of("others.csv");
    others.says("of 1000 records were left out: no usable cells, or no label that is one of `yes`, `no`");
    others.ok();
    of("none.csv").fails(3, "csv.no_rows").says("1000 of 1000 records were left out");
    let run = place.dp(&["evaluate", "--model", "m.json", "--data", "test.csv"]);
    assert!(!run.stderr.contains("left out") && !run.stderr.contains("of column `age`"), "{run:?}");
}

#[test]
fn curves_are_a_picture_or_numbers() {
    let place = place(&[]);
    let said = evaluate(&place, "--curves c.json --public-data");
    assert_eq!(said["curves"], "c.json");
    let curves = place.json("c.json");
    assert_eq!((&curves["schema"], &curves["publishable"]), (&"dp.curves/1".into(), &true.into()));
    let roc: Vec<(f64, f64)> = curves["roc"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| (number(&point["false_positive_rate"]), number(&point["true_positive_rate"])))
        .collect();
    let area: f64 = roc.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[1].1 + pair[0].1) / 2.0).sum();
    assert!((area - number(&said["auc"])).abs() < 1e-3, "{area} {said}");
    assert_eq!(curves["calibration"].as_array().unwrap().len(), 10);
    evaluate(&place, "--curves c.svg");
    let picture = place.read("c.svg");
    for title in ["ROC curve, area 0.", "Precision and recall", "Calibration", "do not publish"] {
        assert!(picture.contains(title), "{title}");
    }
    evaluate(&place, "--curves c.svg --force --public-data");
    assert!(!place.read("c.svg").contains("do not publish"));
    // Records of one class have no curves, and nothing is written.
    let one: String =
        people(300, 5).lines().filter(|line| !line.ends_with(",no")).map(|line| format!("{line}\n")).collect();
    place.write("one.csv", one);
    let run = place.dp(&["evaluate", "--model", "m.json", "--data", "one.csv", "--curves", "one.svg"]);
    run.fails(3, "model.mismatch").says("--curves");
    assert!(!place.files().contains(&"one.svg".to_owned()));
}

#[test]
fn models_without_probabilities_have_rates_at_scores() {
    let place = place(&["--loss", "huber-svm"]);
    let said = evaluate(&place, "--curves c.json");
    let shares: Vec<f64> =
        said["thresholds"].as_array().unwrap().iter().map(|row| number(&row["positive_share"])).collect();
    for (share, tenth) in shares.iter().zip(1..) {
        assert!((share - (1.0 - 0.1 * f64::from(tenth))).abs() < 0.05, "{shares:?}");
    }
    assert!(place.json("c.json").get("calibration").is_none());
    assert!(said.get("log_loss").is_none() && number(&said["auc"]) > 0.5, "{said}");
    let first = place.dp(&["predict", "--model", "m.json", "--data", "test.csv"]).ok();
    assert!(first.starts_with("score,class\n"));
    for command in ["evaluate", "predict"] {
        let run = place.dp(&[command, "--model", "m.json", "--data", "test.csv", "--threshold", "0.3"]);
        run.fails(3, "model.mismatch").says("--threshold");
    }
}

#[test]
fn nonsense_is_refused_before_records_are_read() {
    let place = place(&[]);
    place.write("old.svg", "");
    let fails = |more: &[&str], exit, code| {
        place.dp(&[&["evaluate", "--model", "m.json", "--data", "nowhere.csv"], more].concat()).fails(exit, code);
    };
    for threshold in ["0", "1", "-0.5", "nan", "inf"] {
        fails(&["--threshold", threshold], 2, "usage.value");
    }
    fails(&["--curves", "curves.png"], 2, "usage.value");
    fails(&["--curves", "old.svg"], 1, "output.exists");
    let same = place.dp(&["evaluate", "--model", "m.json", "--data", "test.csv", "--curves", "m.json"]);
    assert_eq!(same.code, 2, "{}", same.stderr);
}

/// Metrics of 20,000 records at epsilon 0.5: the accuracy has a standard error of about 0.001. Eight of them are exceeded with a chance
/// below 1e-12.
#[test]
fn metrics_of_private_records_are_released_with_their_certificate() {
    let place = place(&[]);
    place.write("test.csv", people(20_000, 33));
    for (more, relation) in
        [("", "add-remove"), (" --adjacency replace-one", "replace-one"), (" --threshold 0.3", "add-remove")]
    {
        let at = if more.contains("threshold") { more } else { "" };
        let exact = evaluate(&place, at);
        let said = evaluate(&place, &format!("--epsilon 0.5 --out e.json --force{more}"));
        assert_eq!((&said["schema"], &said["publishable"]), (&"dp.evaluate-released/1".into(), &true.into()));
        assert_eq!((&said["adjacency"], &said["n"], &said["delta"]), (&relation.into(), &20_000.into(), &0.0.into()));
        for (metric, exact, slack) in [
            (&said["accuracy"], &exact["accuracy"], 0.0),
            (&said["recalls"][0], &exact["true_positive_rate"], 0.0),
            (&said["recalls"][1], &exact["true_negative_rate"], 0.0),
            // Scores within a bin are tied.
            (&said["auc"], &exact["auc"], 0.003),
        ] {
            let [value, error] = ["value", "standard_error"].map(|name| number(&metric[name]));
            assert!(error > 1e-5 && error < 0.01, "{error}");
            assert!((value - number(exact)).abs() < 8.0 * error + slack, "{said}");
        }
        let verified = place.dp(&["verify", "e.json", "--json"]).json();
        assert_eq!((&verified["holds"], &verified["adjacency"]), (&true.into(), &relation.into()));
        assert!(number(&verified["epsilon"]) <= 0.5 && number(&verified["epsilon"]) > 0.499, "{verified}");
        let file = place.json("e.json");
        assert_eq!(file["model"]["model_sha256"], place.json("m.json")["certificate"]["model_sha256"]);
        // An edited file that is sealed again promises nothing else.
        for (edit, value) in
            [("scale", 0.5.into()), ("n", Value::from(7)), ("cells", 3.into()), ("relation", "none".into())]
        {
            let mut file = file.clone();
            file["certificate"]["derivation"][edit] = value;
            reseal(&mut file);
            place.write("edited.json", file.to_string());
            let run = place.dp(&["verify", "edited.json"]);
            // The number of records does not matter for the noise.
            assert_eq!(run.code == 0, edit == "n", "{edit}: {run:?}");
        }
    }
    // Two releases differ: the noise is fresh.
    let [first, second] = [0, 1].map(|_| {
        evaluate(&place, "--epsilon 0.5 --out e.json --force");
        place.json("e.json")["model"]["counts"].clone()
    });
    assert_ne!(first, second);
    let text =
        place.dp(&["evaluate", "--model", "m.json", "--data", "test.csv", "--epsilon", "1", "--out", "f.json"]).ok();
    assert!(text.contains("recall of yes") && text.contains("in addition to the model's"), "{text}");
    // Nothing exact is printed.
    let exact = number(&evaluate(&place, "")["accuracy"]);
    assert!(!text.contains(&format!("{exact:.6}")));
}

#[test]
fn no_metric_is_released_without_guarantee() {
    let place = place(&[]);
    place.write("old.json", "{}");
    let run = |more: &str| {
        let typed = format!("evaluate --model m.json --data test.csv {more}");
        place.dp(&typed.split_whitespace().collect::<Vec<_>>())
    };
    run("--epsilon 0 --out e.json").fails(2, "usage.value").says("--epsilon");
    run("--epsilon 1 --out e.json --adjacency change-list-labels").fails(4, "privacy.adjacency");
    run("--epsilon 1 --out old.json").fails(1, "output.exists");
    for typed in [
        "--epsilon 1",
        "--out e.json",
        "--epsilon 1 --out e.json --public-data",
        "--epsilon 1 --out e.json --curves c.svg",
    ] {
        assert_eq!(run(typed).code, 2, "{typed}");
    }
    // A seeded model has no guarantee, and a regression no classes.
    let train = "train --data people.csv --label earns --positive yes --schema-from-data --epsilon 2 --out m.json --force --seed 1";
    place.dp(&train.split(' ').collect::<Vec<_>>()).ok();
    run("--epsilon 1 --out e.json").fails(4, "privacy.refused").says("--model");
    let train =
        "train --data people.csv --label age --label-range 0 100 --schema-from-data --epsilon 2 --out m.json --force";
    place.dp(&train.split(' ').collect::<Vec<_>>()).ok();
    run("--epsilon 1 --out e.json").fails(3, "model.mismatch").says("--epsilon");
    assert!(!place.files().contains(&"e.json".to_owned()));
}
