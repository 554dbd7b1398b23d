//! Labels of several classes and numeric labels, from files to predictions and figures.

use crate::support::{Dice, Workplace};
use serde_json::Value;

/// Flowers of three kinds with two features, whose ranges differ by kind.
fn flowers(rows: usize, seed: u64) -> String {
    let mut dice = Dice(seed);
    let mut text = String::from("length,width,kind\n");
    for i in 0..rows {
        let (kind, length, width) = [("rose", 2.0, 8.0), ("iris", 5.0, 2.0), ("lily", 8.0, 7.0)][i % 3];
        let noise = |dice: &mut Dice| 2.0 * (dice.unit() - 0.5);
        text += &format!("{:.3},{:.3},{kind}\n", length + noise(&mut dice), width + noise(&mut dice));
    }
    text
}

const FLOWERS: &str = "[label]\ncolumn = \"kind\"\nclasses = [\"iris\", \"lily\", \"rose\"]\n[columns.length]\ntype = \
                       \"numeric\"\nmin = 0\nmax = 10\n[columns.width]\ntype = \"numeric\"\nmin = 0\nmax = 10\n";

/// Houses: a price that is nearly linear in two features, with a label range from 0 to 100.
fn houses(rows: usize, seed: u64) -> String {
    let mut dice = Dice(seed);
    let mut text = String::from("size,age,price\n");
    for _ in 0..rows {
        let (size, age) = (dice.unit(), dice.unit());
        let price = 50.0 + 30.0 * (size - 0.5) - 20.0 * (age - 0.5) + 4.0 * (dice.unit() - 0.5);
        text += &format!("{size:.4},{age:.4},{price:.3}\n");
    }
    text
}

const HOUSES: &str = "[label]\ncolumn = \"price\"\ntype = \"numeric\"\nmin = 0\nmax = 100\n[columns.size]\ntype = \
                      \"numeric\"\nmin = 0\nmax = 1\n[columns.age]\ntype = \"numeric\"\nmin = 0\nmax = 1\n";

fn place() -> Workplace {
    let place = Workplace::new();
    place.write("flowers.csv", flowers(3000, 1));
    place.write("flowers-test.csv", flowers(600, 2));
    place.write("flowers.toml", FLOWERS);
    place.write("houses.csv", houses(6000, 3));
    place.write("houses-test.csv", houses(600, 4));
    place.write("houses.toml", HOUSES);
    place
}

/// Trains on one of the tables and returns the result.
fn train(place: &Workplace, table: &str, more: &[&str]) -> Value {
    let (data, schema) = (format!("{table}.csv"), format!("{table}.toml"));
    let arguments = ["train", "--data", &data, "--schema", &schema, "--out", "m.json", "--force", "--json"];
    let linear = if more.contains(&"--algorithm") { &[][..] } else { &["--algorithm", "bolt-on-convex"] };
    place.dp(&[&arguments, linear, more].concat()).json()
}

fn evaluate(place: &Workplace, table: &str) -> Value {
    place.dp(&["evaluate", "--model", "m.json", "--data", &format!("{table}-test.csv"), "--json"]).json()
}

const PRIVATE: &[&str] = &["--epsilon", "4", "--delta", "1e-6"];
/// The same noise in every run, so that comparisons of figures cannot fail by chance.
const SEEDED: &[&str] = &["--epsilon", "4", "--delta", "1e-6", "--seed", "7"];
const PLAIN: &[&str] = &["--algorithm", "non-private"];

/// Chance is 1/3; the classes are well separated.
#[test]
fn three_classes_are_told_apart() {
    let place = place();
    train(&place, "flowers", PRIVATE);
    assert_eq!(place.dp(&["verify", "m.json", "--json"]).json()["holds"], true);
    for (flags, least) in [(PLAIN, 0.9), (SEEDED, 0.7)] {
        let trained = train(&place, "flowers", flags);
        assert_eq!((&trained["loss"], &trained["dim"]), (&"softmax:3".into(), &3.into()), "{trained}");
        let model = place.json("m.json")["model"].clone();
        assert_eq!(model["kind"], "multi-class-linear");
        assert_eq!(model["classes"], serde_json::json!(["iris", "lily", "rose"]));
        assert_eq!(model["weights"].as_array().unwrap().len(), 9);
        let measured = evaluate(&place, "flowers");
        assert!(measured["accuracy"].as_f64().unwrap() > least, "{measured}");
        assert!(measured["macro_f1"].as_f64().unwrap() > least);
        assert!(measured["log_loss"].as_f64().unwrap() < 3f64.ln());
        assert_eq!((&measured["n"], &measured["publishable"]), (&600.into(), &false.into()));
        let confusion = measured["confusion"].as_array().unwrap();
        for (class, row) in confusion.iter().enumerate() {
            let counts: Vec<u64> = row.as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect();
            let figures = &measured["classes"][class];
            assert_eq!(counts.iter().sum::<u64>(), 200);
            assert_eq!(figures["records"], 200);
            assert!((figures["recall"].as_f64().unwrap() - counts[class] as f64 / 200.0).abs() < 1e-12);
        }
        let text = place.dp(&["evaluate", "--model", "m.json", "--data", "flowers-test.csv"]).ok();
        assert!(text.contains("macro f1") && text.contains("predicted") && text.contains("lily"), "{text}");
    }
    let scores = place.dp(&["predict", "--model", "m.json", "--data", "flowers-test.csv"]).ok();
    let mut lines = scores.lines();
    assert_eq!(lines.next(), Some("class,probability:iris,probability:lily,probability:rose"));
    let truth = flowers(600, 2);
    let mut right = 0;
    for (line, row) in lines.zip(truth.lines().skip(1)) {
        let (class, numbers) = line.split_once(',').unwrap();
        let numbers: Vec<f64> = numbers.split(',').map(|number| number.parse().unwrap()).collect();
        assert!((numbers.iter().sum::<f64>() - 1.0).abs() < 1e-12 && numbers.iter().all(|p| (0.0..=1.0).contains(p)));
        let best = (0..3).max_by(|&a, &b| numbers[a].total_cmp(&numbers[b])).unwrap();
        assert_eq!(class, ["iris", "lily", "rose"][best]);
        right += usize::from(row.ends_with(&format!(",{class}")));
    }
    assert!(right > 420, "{right} of 600");
}

#[test]
fn prices_are_predicted_in_their_range() {
    let place = place();
    for (flags, loss, least) in [
        (PLAIN, "huber-regression", 0.9),
        (PLAIN, "log-cosh", 0.9),
        (PLAIN, "squared", 0.9),
        (SEEDED, "huber-regression", 0.6),
        (SEEDED, "log-cosh", 0.6),
        (SEEDED, "squared", 0.4),
    ] {
        let trained = train(&place, "houses", &[flags, &["--loss", loss]].concat());
        assert!(trained["loss"].as_str().unwrap().starts_with(loss), "{trained}");
        let measured = evaluate(&place, "houses");
        assert!(measured["r2"].as_f64().unwrap() > least, "{loss} {measured}");
        let (rmse, mae) = (measured["rmse"].as_f64().unwrap(), measured["mae"].as_f64().unwrap());
        assert!(mae > 0.0 && mae <= rmse && rmse < 20.0, "{measured}");
    }
    for loss in ["log-cosh", "squared"] {
        train(&place, "houses", &[PRIVATE, &["--loss", loss]].concat());
        assert_eq!(place.dp(&["verify", "m.json", "--json"]).json()["holds"], true, "{loss}");
    }
    train(&place, "houses", PLAIN);
    let model = place.json("m.json")["model"].clone();
    assert_eq!((&model["kind"], &model["range"]["max"]), (&"linear-regression".into(), &100.0.into()));
    assert_eq!(model["loss"]["name"], "log-cosh", "the default");
    let absolute = train(&place, "houses", &[PLAIN, &["--loss", "absolute"]].concat());
    assert_eq!(absolute["loss"], "absolute");
    place.write("odd.csv", "size,age\n0.5,0.5\n");
    let predicted = place.dp(&["predict", "--model", "m.json", "--data", "odd.csv"]).ok();
    let lines: Vec<&str> = predicted.lines().collect();
    let price: f64 = lines[1].parse().unwrap();
    assert!(lines[0] == "prediction" && (price - 50.0).abs() < 10.0, "{predicted}");
    let text = place.dp(&["evaluate", "--model", "m.json", "--data", "houses-test.csv"]).ok();
    assert!(text.contains("rmse") && text.contains("r2"), "{text}");
}

#[test]
fn losses_that_do_not_fit_the_label_are_usage_errors() {
    let place = place();
    for (table, loss, fitting) in [
        ("flowers", "logistic", "softmax"),
        ("flowers", "squared", "softmax"),
        ("houses", "logistic", "log-cosh, huber-regression, squared, absolute"),
        ("houses", "softmax", "log-cosh, huber-regression, squared, absolute"),
    ] {
        let (data, schema) = (format!("{table}.csv"), format!("{table}.toml"));
        let arguments = ["train", "--data", &data, "--schema", &schema, "--out", "m.json", "--loss", loss];
        for flags in [PLAIN, PRIVATE] {
            place.dp(&[&arguments, flags].concat()).fails(2, "usage.value").says("--loss").says(fitting);
        }
    }
    let width = ["train", "--data", "flowers.csv", "--schema", "flowers.toml", "--out", "m.json", "--huber-width", "1"];
    place.dp(&[&width, PLAIN].concat()).fails(2, "usage.conflict").says("--huber-width");
    assert!(!place.files().contains(&"m.json".to_owned()));
}

#[test]
fn labels_that_do_not_fit_the_schema_are_refused() {
    let place = place();
    let refused = |table: &str, rows: &str, code: &str| {
        let header = if table == "flowers" { "length,width,kind" } else { "size,age,price" };
        place.write("bad.csv", format!("{header}\n{rows}"));
        let schema = format!("{table}.toml");
        let run =
            place.dp(&[&["train", "--data", "bad.csv", "--schema", &schema, "--out", "m.json"], PRIVATE].concat());
        run.fails(3, code).says("line 3");
        assert!(!place.files().contains(&"m.json".to_owned()), "{rows}");
    };
    refused("flowers", "1,1,iris\n2,2,tulip\n", "label.unknown");
    refused("flowers", "1,1,iris\n2,2,\n", "label.missing");
    refused("houses", "1,1,5\n1,1,NaN\n", "csv.bad_number");
    refused("houses", "1,1,5\n1,1,inf\n", "csv.bad_number");
    refused("houses", "1,1,5\n1,1,cheap\n", "csv.bad_number");
    refused("houses", "1,1,5\n1,1,\n", "label.missing");
    // A number outside the range is clamped, with a warning to the curator.
    place.write("far.csv", "size,age,price\n0.1,0.1,1e9\n0.9,0.2,-5\n0.5,0.5,50\n");
    let far = ["train", "--anyway", "--data", "far.csv", "--schema", "houses.toml", "--out", "far.json"];
    let run = place.dp(&[&far, PRIVATE].concat());
    run.says("2 values of column `price`");
    run.ok();
    // No value of a label stops the run if the schema says so.
    place.write(
        "lenient.toml",
        HOUSES.replace("max = 100", "max = 100\non_missing = \"neutral\"\non_unreadable = \"neutral\""),
    );
    place.write("gaps.csv", "size,age,price\n0.1,0.1,\n0.9,0.2,nan\n0.5,0.5,50\n");
    let gaps = ["train", "--anyway", "--data", "gaps.csv", "--schema", "lenient.toml", "--out", "gaps.json"];
    place.dp(&[&gaps, PRIVATE].concat()).ok();
    let schema_of =
        |label: &str| format!("[label]\ncolumn = \"kind\"\n{label}\n[columns.length]\ntype = \"indicator\"\n");
    for (label, code) in [
        ("classes = [\"a\"]", "schema.label"),
        ("classes = [\"a\", \"b\", \"a\"]", "schema.label"),
        ("type = \"numeric\"\nmin = 0", "bounds.missing"),
        ("type = \"numeric\"\nmin = 1\nmax = 1", "bounds.order"),
        ("type = \"numeric\"\nmin = nan\nmax = 1", "bounds.not_finite"),
    ] {
        place.write("bad.toml", schema_of(label));
        let arguments = ["train", "--data", "flowers.csv", "--schema", "bad.toml", "--out", "m.json"];
        place.dp(&[&arguments, PRIVATE].concat()).fails(3, code).says("bad.toml");
    }
}

#[test]
fn labels_that_are_named_on_the_command_line() {
    let place = place();
    let from_data = |label: &str, data: &str, more: &[&str]| {
        let arguments = ["train", "--data", data, "--label", label, "--schema-from-data", "--out", "m.json", "--force"];
        place.dp(&[&arguments, PLAIN, more].concat())
    };
    // By default the kind of label is inferred from the data, and the certificate records that the classes were.
    from_data("kind", "flowers.csv", &["--json"]).json();
    let assumed = &place.json("m.json")["certificate"]["assumptions"];
    assert!(assumed.to_string().contains("\"kind\""), "{assumed}");
    from_data("price", "houses.csv", &["--json"]).json();
    assert_eq!(place.json("m.json")["model"]["kind"], "linear-regression");
    // Classes given by flag are not taken from the data.
    from_data("kind", "flowers.csv", &["--classes", "rose,lily,iris"]).ok();
    let file = place.json("m.json");
    assert_eq!(file["model"]["classes"], serde_json::json!(["rose", "lily", "iris"]));
    assert!(!file["certificate"]["assumptions"].to_string().contains("\"kind\""));
    from_data("kind", "flowers.csv", &["--classes", "rose,lily"]).fails(3, "label.unknown");
    from_data("price", "houses.csv", &["--label-range", "-100", "100"]).ok();
    assert_eq!(place.json("m.json")["model"]["range"]["min"], -100.0);
    for (flags, code) in [
        (&["--classes", "rose"][..], "usage.value"),
        (&["--classes", "rose,rose"], "usage.value"),
        (&["--label-range", "3", "3"], "usage.value"),
        (&["--label-range", "0", "inf"], "usage.value"),
        (&["--label-range", "NaN", "1"], "usage.value"),
    ] {
        from_data("kind", "flowers.csv", flags).fails(2, code);
    }
    for other in [&["--positive", "rose"][..], &["--negative", "rose"], &["--label-range", "0", "1"]] {
        let both = from_data("kind", "flowers.csv", &[&["--classes", "rose,lily"], other].concat());
        assert_eq!(both.code, 2);
        both.says("cannot be used with").says(other[0]);
    }
    // A schema takes precedence.
    let with = |table: &str, more: &[&str]| {
        let (data, schema) = (format!("{table}.csv"), format!("{table}.toml"));
        let arguments = ["train", "--data", &data, "--schema", &schema, "--out", "m.json", "--force"];
        place.dp(&[&arguments, PLAIN, more].concat())
    };
    with("flowers", &["--classes", "iris,lily,rose"]).ok();
    with("flowers", &["--classes", "iris,rose,lily"]).fails(2, "usage.conflict").says("--classes");
    with("houses", &["--label-range", "0", "100"]).ok();
    with("houses", &["--label-range", "0", "200"]).fails(2, "usage.conflict").says("--label-range");
    with("houses", &["--positive", "50"]).fails(2, "usage.conflict").says("--positive");
    // Drafts.
    let draft = place.dp(&["schema", "flowers.csv", "--label", "kind"]).ok();
    assert!(draft.contains("classes = [\"iris\", \"lily\", \"rose\"]"), "{draft}");
    assert!(draft.contains("reviewed = false # REVIEW: which classes"), "{draft}");
    let draft = place.dp(&["schema", "houses.csv", "--label", "price", "--label-range", "0", "100"]).ok();
    assert!(draft.contains("type = \"numeric\"\nmin = 0\nmax = 100\non_missing = \"neutral\"\n\n[columns"), "{draft}");
}

#[test]
fn sparse_lines_of_several_classes_and_of_numbers() {
    let place = Workplace::new();
    let mut dice = Dice(5);
    let digits: String =
        (0..900).map(|i| format!("{} {}:1 {}:0.5\n", [3, 5, 7][i % 3], i % 3 + 1, 4 + i % 2)).collect();
    place.write("digits.libsvm", &digits);
    let amounts: String =
        (0..900).map(|i| format!("{:.2} {}:1\n", f64::from(i % 2) * 8.0 - 4.0 + dice.unit(), i % 2 + 1)).collect();
    place.write("amounts.libsvm", &amounts);
    let train = |data: &str, more: &[&str]| {
        let arguments = ["train", "--data", data, "--dim", "5", "--out", "m.json", "--force"];
        place.dp(&[&arguments, SEEDED, more].concat())
    };
    train("digits.libsvm", &["--classes", "3,5,7"]).ok();
    let measured = place.dp(&["evaluate", "--model", "m.json", "--data", "digits.libsvm", "--json"]).json();
    assert!(measured["accuracy"].as_f64().unwrap() > 0.6, "{measured}");
    train("digits.libsvm", &["--classes", "3,5,8"]).fails(3, "label.unknown");
    train("digits.libsvm", &[]).fails(3, "label.unknown");
    train("amounts.libsvm", &["--label-range", "-10", "10"]).ok();
    let measured = place.dp(&["evaluate", "--model", "m.json", "--data", "amounts.libsvm", "--json"]).json();
    assert!(measured["r2"].as_f64().unwrap() > 0.3, "{measured}");
    place.write("nan.libsvm", "1 1:1\nnan 2:1\n");
    train("nan.libsvm", &["--label-range", "-10", "10"]).fails(3, "libsvm.bad_value").says("line 2");
}

#[test]
fn a_record_of_which_nothing_is_known_gets_no_answer() {
    let place = place();
    for table in ["flowers", "houses"] {
        let schema = if table == "flowers" { FLOWERS } else { HOUSES };
        place.write(&format!("{table}.toml"), format!("on_missing = \"neutral\"\n{schema}"));
        train(&place, table, PLAIN);
        let (header, blank) = if table == "flowers" { ("length,width", ",,,") } else { ("size,age", "\"\"") };
        place.write("new.csv", format!("{header}\n,1\n0.5,0.5\n"));
        let predicted = place.dp(&["predict", "--model", "m.json", "--data", "new.csv"]).ok();
        let lines: Vec<&str> = predicted.lines().collect();
        assert!(lines.len() == 3 && lines[1] == blank && lines[2] != blank, "{predicted}");
    }
}

#[test]
fn a_model_that_was_edited_to_another_kind_is_refused() {
    let place = place();
    train(&place, "houses", PRIVATE);
    let mut file = place.json("m.json");
    let reseal = |file: &mut Value| {
        file["certificate"]["model_sha256"] = dp::canonical::sha256(&file["model"]).into();
        file["certificate_sha256"] = dp::canonical::sha256(&file["certificate"]).into();
    };
    for (pointer, value) in [
        ("/model/kind", Value::from("linear-classifier")),
        ("/model/range/max", 200.0.into()),
        ("/model/loss", serde_json::json!({ "name": "logistic" })),
        ("/model/nothing", 1.into()),
    ] {
        let mut edited = file.clone();
        match pointer.rsplit_once('/') {
            Some((parent, name)) => edited.pointer_mut(parent).unwrap()[name] = value,
            None => unreachable!("a pointer has a slash"),
        }
        reseal(&mut edited);
        place.write("edited.json", edited.to_string());
        place.dp(&["predict", "--model", "edited.json", "--data", "houses-test.csv"]).fails(3, "model.format");
    }
    reseal(&mut file);
    place.write("same.json", file.to_string());
    place.dp(&["verify", "same.json"]).ok();
}

/// Three models share one budget: the division rules that can train, certify and predict, and the noise of each model.
#[test]
fn one_model_for_each_class() {
    let place = place();
    let seeded = |more: &[&str]| train(&place, "flowers", &[SEEDED, more].concat());
    for share in ["joint", "composed", "split"] {
        let trained = seeded(&["--one-vs-all", share, "--algorithm", "bolt-on-strongly-convex"]);
        assert_eq!((&trained["loss"], &trained["dim"]), (&"logistic".into(), &3.into()), "{trained}");
        assert_eq!(trained["one_vs_all"], 3);
        let model = place.json("m.json");
        assert_eq!(model["model"]["kind"], "multi-class-linear");
        assert_eq!(model["model"]["weights"].as_array().unwrap().len(), 9);
        assert_eq!(model["certificate"]["derivation"]["classes"], 3);
        let measured = evaluate(&place, "flowers");
        let least = if share == "split" { 0.5 } else { 0.6 };
        assert!(measured["accuracy"].as_f64().unwrap() > least, "{share}: {measured}");
        assert_eq!(measured.get("log_loss"), None, "scores of models apart are no probabilities");
        let scores = place.dp(&["predict", "--model", "m.json", "--data", "flowers-test.csv"]).ok();
        assert_eq!(scores.lines().next(), Some("class,score:iris,score:lily,score:rose"));
    }
    // Unseeded, so that there is a guarantee to verify.
    for algorithm in ["bolt-on-convex", "scs13", "dp-sgd"] {
        train(&place, "flowers", &[PRIVATE, &["--one-vs-all", "composed", "--algorithm", algorithm]].concat());
        assert_eq!(place.dp(&["verify", "m.json", "--json"]).json()["holds"], true, "{algorithm}");
    }
    // A certificate of one model does not cover three.
    let mut file = place.json("m.json");
    let derivation = file["certificate"]["derivation"].clone();
    file["certificate"]["derivation"] = derivation["each"].clone();
    place.write("edited.json", file.to_string());
    assert_ne!(place.dp(&["verify", "edited.json"]).code, 0);
}

#[test]
fn one_model_for_each_class_is_refused_where_there_is_none() {
    let place = place();
    let fails = |table: &str, more: &[&str], exit: i32, code: &str| {
        let (data, schema) = (format!("{table}.csv"), format!("{table}.toml"));
        let arguments = ["train", "--data", &data, "--schema", &schema, "--out", "no.json", "--epsilon", "1"];
        let bolt_on = if more.contains(&"--algorithm") { &[][..] } else { &["--algorithm", "bolt-on-convex"] };
        place.dp(&[&arguments[..], bolt_on, more].concat()).fails(exit, code);
        assert!(!place.path("no.json").exists());
    };
    fails("houses", &["--one-vs-all", "joint"], 2, "usage.conflict");
    fails("flowers", &["--one-vs-all", "joint", "--loss", "softmax"], 2, "usage.conflict");
    fails("flowers", &["--one-vs-all", "joint", "--loss", "squared"], 2, "usage.conflict");
    fails("flowers", &["--one-vs-all", "joint", "--algorithm", "scs13"], 4, "privacy.refused");
}
