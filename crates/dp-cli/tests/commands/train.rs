//! The workflow from a table to a verified model, for every format of the table.

use crate::support::{Dice, Workplace, gzip, idx, people, xz};
use serde_json::Value;

const FROM_DATA: [&str; 6] = ["--label", "earns", "--positive", "yes", "--schema-from-data", "--json"];

fn train(place: &Workplace, data: &str, out: &str, extra: &[&str]) -> Value {
    let mut arguments = vec!["train", "--data", data, "--out", out];
    arguments.extend(FROM_DATA);
    arguments.extend(extra);
    if !extra.contains(&"--algorithm") {
        arguments.extend(["--algorithm", "bolt-on-convex"]);
    }
    place.dp(&arguments).json()
}

fn evaluate(place: &Workplace, model: &str, data: &str) -> Value {
    place.dp(&["evaluate", "--model", model, "--data", data, "--json"]).json()
}

#[test]
fn the_first_private_model_in_four_commands() {
    let place = Workplace::new();
    place.write("people.csv", people(5000, 11));
    place.write("test.csv", people(2000, 12));

    let drafted = place.dp(&["schema", "people.csv", "--label", "earns", "--positive", "yes", "--out", "schema.toml"]);
    drafted.says("review");
    assert_eq!(drafted.code, 0, "{drafted:#?}");
    let refused =
        place.dp(&["train", "--data", "people.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "m.json"]);
    refused.fails(3, "schema.unreviewed");

    let schema = place.read("schema.toml").replace("reviewed = false", "reviewed = true");
    place.write("schema.toml", schema);
    let trained =
        place.dp(&["train", "--data", "people.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "m.json"]);
    let text = trained.ok();
    assert!(text.lines().count() <= 12, "{text}");
    for word in ["chosen", "expect", "epsilon", "delta", "add-remove", "m.json", "dp verify m.json"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let certificate = &place.json("m.json")["certificate"];
    assert!(!certificate.to_string().contains("assumed_public"), "a reviewed schema assumes nothing by column");
    assert!(certificate.to_string().contains("public_schema"));

    let verified = place.dp(&["verify", "m.json"]).ok();
    assert!(verified.contains("holds"), "{verified}");
    let measured = evaluate(&place, "m.json", "test.csv");
    assert_eq!((&measured["schema"], &measured["n"]), (&"dp.evaluate/1".into(), &2000.into()));
    assert!(measured["accuracy"].as_f64().unwrap() > 0.7, "{measured}");
    assert!(measured["auc"].as_f64().unwrap() > 0.75, "{measured}");
    assert_eq!(measured["publishable"], false);
    let public = place.dp(&["evaluate", "--model", "m.json", "--data", "test.csv", "--public-data", "--json"]).json();
    assert_eq!(public["publishable"], true);
    // Figures of a model without a guarantee reveal its training records, however public the test set is.
    for unprotected in [&["--algorithm", "non-private"][..], &["--epsilon", "1", "--seed", "1"]] {
        let schema = ["train", "--data", "people.csv", "--schema", "schema.toml", "--out", "open.json", "--force"];
        place.dp(&[&schema[..], unprotected].concat()).ok();
        let run = place.dp(&["evaluate", "--model", "open.json", "--data", "test.csv", "--public-data", "--json"]);
        run.says("does not hold");
        assert_eq!(run.json()["publishable"], false);
    }
}

/// Without a word on the algorithm and delta, `auto` trains at a delta that follows from the number of records.
#[test]
fn the_best_choice_is_the_default() {
    let place = Workplace::new();
    place.write("people.csv", people(5000, 11));
    let arguments = ["train", "--data", "people.csv", "--out", "m.json", "--force", "--epsilon", "1"];
    let train = |more: &[&str]| place.dp(&[&arguments[..], &FROM_DATA, more].concat()).json();
    let usual = train(&["--seed", "3"]);
    assert_eq!(usual["algorithm"], "auto");
    let model = place.read("m.json");
    train(&["--seed", "3", "--algorithm", "auto", "--delta", "1e-6"]);
    assert_eq!(model, place.read("m.json"));
    // The requested delta follows from n; the release may need none.
    assert_eq!(place.json("m.json")["certificate"]["requested"]["delta"], 1e-6);
    place.write("many.csv", people(100_001, 11));
    let many = ["train", "--data", "many.csv", "--out", "m.json", "--force", "--epsilon", "1"];
    place.dp(&[&many[..], &FROM_DATA].concat()).json();
    assert_eq!(place.json("m.json")["certificate"]["requested"]["delta"], 1e-7);
    // Another algorithm is pure unless a delta is given.
    train(&["--algorithm", "bolt-on-convex"]);
    assert_eq!(place.json("m.json")["certificate"]["requested"]["delta"], 0.0);
}

/// Where public numbers say that nothing is to be gained, nothing is spent.
#[test]
fn useless_models_are_not_trained() {
    let place = Workplace::new();
    place.write("people.csv", people(100, 11));
    let arguments = ["train", "--data", "people.csv", "--out", "m.json", "--epsilon", "0.1"];
    let arguments = [&arguments[..], &FROM_DATA[..5]].concat();
    let run = place.dp(&arguments);
    run.fails(4, "train.useless").says("100%").says("records").says("--epsilon ").says("--anyway");
    assert_eq!(place.files(), ["people.csv"]);
    // What it advises is enough.
    let advice = run.stderr.split("--epsilon ").nth(1).unwrap().split(',').next().unwrap();
    let rows: usize = run.stderr.split("about ").last().unwrap().split(' ').next().unwrap().parse().unwrap();
    let with = |epsilon: &str, rows: usize| {
        place.write("people.csv", people(rows, 11));
        let arguments = ["train", "--data", "people.csv", "--out", "m.json", "--force", "--epsilon", epsilon, "--json"];
        place.dp(&[&arguments[..], &FROM_DATA[..5]].concat()).json()
    };
    for trained in [with(advice, 100), with("0.1", rows)] {
        assert!(trained["choice"]["expected_loss"].as_f64().unwrap() < 0.35, "{trained}");
    }
    place.write("people.csv", people(100, 11));
    place.dp(&[&arguments[..], &["--anyway", "--force"]].concat()).ok();
    place.dp(&["verify", "m.json"]).ok();
    // A dry run says so, and named algorithms do as they are told.
    let draft = place.dp(&["schema", "people.csv", "--label", "earns"]).ok();
    place.write("s.toml", draft.replace("reviewed = false", "reviewed = true"));
    let dry =
        ["train", "--data", "people.csv", "--schema", "s.toml", "--out", "n.json", "--epsilon", "0.1", "--dry-run"];
    assert!(place.dp(&[&dry[..], &["--n", "100"]].concat()).ok().contains("--anyway"));
    place.dp(&[&dry[..9], &["--algorithm", "bolt-on-convex"]].concat()).ok();
}

#[test]
fn the_result_has_its_members() {
    let place = Workplace::new();
    place.write("people.csv", people(400, 13));
    let result = train(&place, "people.csv", "m.json", &["--epsilon", "0.5", "--delta", "1e-6"]);
    assert_eq!(result["schema"], "dp.train/1");
    assert_eq!(result["algorithm"], "bolt-on-convex");
    assert_eq!(result["adjacency"], "replace-one");
    assert_eq!(result["unit"], "record");
    assert_eq!((&result["n"], &result["private"]), (&400.into(), &true.into()));
    // age, hours, three trades and the intercept
    assert_eq!(result["dim"], 6);
    let epsilon = result["epsilon"].as_f64().unwrap();
    assert!(epsilon <= 0.5 && epsilon > 0.49, "{epsilon}");
    // In few dimensions the Laplace ball has less noise than the Gaussian, and it needs no delta.
    assert_eq!(result["delta"], 0.0);
    assert!(result["seconds"].as_f64().unwrap() >= 0.0);
    assert_eq!(result["model"], "m.json");
    let file = place.json("m.json");
    assert_eq!(file["model"]["schema"], "dp.model/1");
    assert!(!file.to_string().contains("seconds"), "time is not part of what may be published");
}

#[test]
fn the_same_records_give_the_same_model_in_every_packing() {
    let place = Workplace::new();
    let text = people(600, 14);
    place.write("people.csv", &text);
    place.write("people.csv.gz", gzip(text.as_bytes()));
    place.write("people.csv.xz", xz(text.as_bytes()));
    place.write("windows.csv", format!("\u{feff}{}", text.replace('\n', "\r\n")));
    place.write("tabs.csv", text.replace(',', "\t"));
    let seeded = ["--epsilon", "1", "--seed", "5"];
    train(&place, "people.csv", "plain.json", &seeded);
    let plain = place.json("plain.json");
    for data in ["people.csv.gz", "people.csv.xz", "windows.csv"] {
        train(&place, data, "other.json", &[&seeded[..], &["--force"]].concat());
        assert_eq!(place.json("other.json"), plain, "{data}");
    }
    train(&place, "tabs.csv", "other.json", &[&seeded[..], &["--force", "--delimiter", "tab"]].concat());
    let mut tabs = place.json("other.json");
    let input = &mut tabs["model"]["encoder"]["input"];
    let file = input.as_object_mut().unwrap().values_mut().find_map(|table| table.as_object_mut()?.remove("file"));
    assert_eq!(file, Some(serde_json::json!({ "delimiter": "\t" })));
    assert_eq!(
        (&tabs["model"]["weights"], &tabs["model"]["encoder"]),
        (&plain["model"]["weights"], &plain["model"]["encoder"])
    );
    for input in [text.as_bytes().to_vec(), gzip(text.as_bytes()), xz(text.as_bytes())] {
        let mut arguments = vec!["train", "--data", "-", "--out", "other.json", "--force"];
        arguments.extend(["--algorithm", "bolt-on-convex"]);
        arguments.extend(FROM_DATA);
        arguments.extend(seeded);
        place.dp_with_input(&arguments, &input).json();
        assert_eq!(place.json("other.json"), plain, "standard input");
    }
}

#[test]
fn noise_is_fresh_without_a_seed() {
    let place = Workplace::new();
    place.write("people.csv", people(300, 15));
    train(&place, "people.csv", "one.json", &["--epsilon", "1"]);
    train(&place, "people.csv", "two.json", &["--epsilon", "1"]);
    assert_ne!(place.json("one.json")["model"]["weights"], place.json("two.json")["model"]["weights"]);
}

#[test]
fn noise_is_exact_unless_told_otherwise() {
    let place = Workplace::new();
    place.write("people.csv", people(300, 23));
    for (extra, mode, in_report) in [
        (&[][..], "exact", "noise: drawn exactly, on a grid"),
        (&["--noise", "exact"], "exact", "noise: drawn exactly, on a grid"),
        (&["--noise", "rounded"], "rounded", "noise: double precision, rounded to a grid"),
    ] {
        for budget in [&["--epsilon", "1"][..], &["--epsilon", "1", "--delta", "1e-6"]] {
            let arguments = [budget, extra, &["--report", "r.md", "--force"]].concat();
            train(&place, "people.csv", "m.json", &arguments);
            let certificate = &place.json("m.json")["certificate"];
            assert_eq!(certificate["noise"], mode);
            let said = certificate["derivation"]["recipe"]["noise_mode"].as_str();
            assert_eq!(said.unwrap_or("rounded"), mode);
            let idealised = certificate["assumptions"].to_string().contains("idealised_float");
            assert_eq!(idealised, mode == "rounded");
            let report = place.read("r.md");
            assert!(report.contains(in_report), "{report}");
            assert_eq!(report.contains("the theorem is about real numbers"), idealised);
            let verified = place.dp(&["verify", "m.json"]).ok();
            assert_eq!(verified.contains("the theorem is about real numbers"), idealised, "{verified}");
        }
    }
    let refused = ["train", "--data", "people.csv", "--out", "n.json", "--epsilon", "1", "--noise", "none"];
    let run = place.dp(&refused);
    run.says("exact").says("rounded");
    assert_eq!(run.code, 2);
    assert!(!place.path("n.json").exists());
}

#[test]
fn more_budget_gives_a_better_model() {
    let place = Workplace::new();
    place.write("people.csv", people(20_000, 16));
    place.write("test.csv", people(5000, 17));
    let accuracy = |out: &str, extra: &[&str]| {
        train(&place, "people.csv", out, extra);
        evaluate(&place, out, "test.csv")["accuracy"].as_f64().unwrap()
    };
    let best = accuracy("free.json", &["--algorithm", "non-private"]);
    let rich = accuracy("rich.json", &["--epsilon", "4", "--delta", "1e-8"]);
    let strong =
        accuracy("strong.json", &["--epsilon", "4", "--delta", "1e-8", "--algorithm", "bolt-on-strongly-convex"]);
    assert!(best > 0.75, "{best}");
    assert!(rich > best - 0.03, "{rich} against {best}");
    assert!(strong > best - 0.05, "{strong} against {best}");
}

#[test]
fn what_is_not_private_says_so_everywhere() {
    let place = Workplace::new();
    place.write("people.csv", people(300, 18));
    let arguments = |extra: &[&'static str]| {
        let mut all = vec!["train", "--data", "people.csv", "--out", "m.json", "--force"];
        all.extend(FROM_DATA);
        all.extend(extra);
        all
    };
    let free = place.dp(&arguments(&["--algorithm", "non-private"]));
    free.says("NOT PRIVATE");
    let free = free.json();
    assert_eq!((&free["private"], &free["epsilon"]), (&false.into(), &"inf".into()));
    assert_eq!(place.json("m.json")["certificate"]["private"], false);
    assert!(place.json("m.json")["certificate"]["reached"].is_null());

    let seeded = place.dp(&arguments(&["--epsilon", "1", "--seed", "1"]));
    seeded.says("NOT PRIVATE").says("--seed");
    assert_eq!(seeded.json()["private"], false);
    assert_eq!(place.json("m.json")["certificate"]["private"], false);
    assert!(!place.json("m.json")["certificate"].to_string().contains("seed\":1"), "the seed is not recorded");
}

#[test]
fn every_relation_algorithm_loss_and_float() {
    let place = Workplace::new();
    place.write("people.csv", people(300, 19));
    let mut dims = Vec::new();
    for adjacency in ["replace-one", "add-remove"] {
        for algorithm in ["bolt-on-convex", "bolt-on-strongly-convex"] {
            for loss in ["logistic", "huber-svm"] {
                for float in ["f64", "f32"] {
                    let result = train(
                        &place,
                        "people.csv",
                        "m.json",
                        &[
                            "--epsilon",
                            "1",
                            "--adjacency",
                            adjacency,
                            "--algorithm",
                            algorithm,
                            "--loss",
                            loss,
                            "--float",
                            float,
                            "--force",
                        ],
                    );
                    assert_eq!(result["adjacency"], adjacency);
                    dims.push(result["dim"].as_u64().unwrap());
                    place.dp(&["verify", "m.json"]).ok();
                }
            }
        }
    }
    assert!(dims.iter().all(|dim| *dim == dims[0]));
}

#[test]
fn the_settings_of_an_expert_are_taken() {
    let place = Workplace::new();
    place.write("people.csv", people(500, 20));
    for extra in [
        &["--passes", "3", "--batch-size", "7", "--step-size", "0.5"][..],
        &["--radius", "2", "--lambda", "0.01", "--averaging", "uniform"],
        &["--averaging", "suffix", "--order", "fresh"],
        &["--averaging", "polynomial", "--schedule", "inverse-sqrt"],
        &["--scale", "unit", "--row-norm", "unit"],
        &["--scale", "unit", "--row-norm", "clip", "--delta", "1e-6"],
        &["--loss", "squared", "--radius", "1", "--delta", "1e-6"],
        &["--algorithm", "bolt-on-strongly-convex", "--lambda", "0.05", "--stop", "certified"],
        &["--algorithm", "bolt-on-strongly-convex", "--lambda", "0.05", "--passes", "4", "--radius", "20"],
        &["--loss", "huber-svm", "--huber-width", "0.5"],
    ] {
        let mut arguments = vec!["--epsilon", "1", "--force"];
        arguments.extend(extra);
        train(&place, "people.csv", "m.json", &arguments);
        place.dp(&["verify", "m.json"]).ok();
    }
}

/// Sparse text with one strong feature.
fn sparse(rows: usize, seed: u64, first: usize) -> String {
    let mut dice = Dice(seed);
    (0..rows)
        .map(|_| {
            let on = dice.unit() < 0.5;
            let label = if (dice.unit() < 0.9) == on { "+1" } else { "-1" };
            let other = 1 + dice.below(8) as usize;
            match on {
                true => format!("{label} {}:1 {}:1\n", first, first + other),
                false => format!("{label} {}:1\n", first + other),
            }
        })
        .collect()
}

#[test]
fn libsvm_files() {
    let place = Workplace::new();
    place.write("train.libsvm.gz", gzip(sparse(4000, 21, 1).as_bytes()));
    place.write("zero.libsvm", sparse(4000, 21, 0));
    place.write("test.libsvm", sparse(1000, 22, 1));
    let run = |data: &str, out: &str, extra: &[&str]| {
        let mut arguments = vec!["train", "--data", data, "--out", out, "--epsilon", "2", "--json", "--seed", "3"];
        arguments.extend(extra);
        place.dp(&arguments).json()
    };
    let result = run("train.libsvm.gz", "m.json", &["--dim", "9"]);
    assert_eq!((&result["dim"], &result["n"]), (&10.into(), &4000.into()));
    let measured = evaluate(&place, "m.json", "test.libsvm");
    assert!(measured["accuracy"].as_f64().unwrap() > 0.8, "{measured}");
    run("zero.libsvm", "zero.json", &["--dim", "9", "--zero-based"]);
    assert_eq!(place.json("zero.json")["model"]["weights"], place.json("m.json")["model"]["weights"]);
    // Without --dim the width comes from the data, and the certificate records it.
    run("train.libsvm.gz", "free.json", &[]);
    assert!(place.json("free.json")["certificate"].to_string().contains("assumed_public"));
    assert!(!place.json("m.json")["certificate"].to_string().contains("assumed_public"));

    let scores = place.dp(&["predict", "--model", "m.json", "--data", "test.libsvm"]).ok();
    assert_eq!(scores.lines().count(), 1001);
    assert!(scores.lines().skip(1).all(|line| line.ends_with(",+1") || line.ends_with(",-1")));
}

#[test]
fn predictions_keep_the_order_and_do_not_need_the_label() {
    let place = Workplace::new();
    place.write("people.csv", people(3000, 23));
    train(&place, "people.csv", "m.json", &["--epsilon", "1"]);
    let test = people(500, 24);
    place.write("test.csv", &test);
    let unlabelled: String = test.lines().map(|line| format!("{}\n", line.rsplit_once(',').unwrap().0)).collect();
    place.write("unlabelled.csv", &unlabelled);
    let with = place.dp(&["predict", "--model", "m.json", "--data", "test.csv"]).ok();
    let without = place.dp(&["predict", "--model", "m.json", "--data", "unlabelled.csv"]).ok();
    assert_eq!(with, without);
    let mut lines = with.lines();
    assert_eq!(lines.next(), Some("score,probability,class"));

    // The same order as row-by-row reading.
    let header = unlabelled.lines().next().unwrap();
    for (row, line) in unlabelled.lines().skip(1).zip(lines).step_by(97) {
        let single = place
            .dp_with_input(&["predict", "--model", "m.json", "--data", "-"], format!("{header}\n{row}\n").as_bytes());
        assert_eq!(single.ok().lines().nth(1), Some(line));
        let (score, class) = (line.split(',').next().unwrap(), line.split(',').nth(2).unwrap());
        assert_eq!(class, if score.parse::<f64>().unwrap() > 0.0 { "yes" } else { "no" });
    }

    place.dp(&["predict", "--model", "m.json", "--data", "test.csv", "--out", "scores.csv"]).ok();
    assert_eq!(place.read("scores.csv"), with);
    let again = place.dp(&["predict", "--model", "m.json", "--data", "test.csv", "--out", "scores.csv"]);
    again.fails(1, "output.exists");
    std::fs::create_dir(place.path("scores")).unwrap();
    for replace in [&[][..], &["--force"]] {
        let into = ["predict", "--model", "m.json", "--data", "test.csv", "--out", "scores"];
        place.dp(&[&into[..], replace].concat()).fails(1, "output.write").says("a folder");
    }

    // Accuracy counted by hand from the predictions.
    let labels: Vec<&str> = test.lines().skip(1).map(|line| line.rsplit_once(',').unwrap().1).collect();
    let right = with.lines().skip(1).zip(&labels).filter(|(line, label)| line.ends_with(&format!(",{label}"))).count();
    assert_eq!(evaluate(&place, "m.json", "test.csv")["accuracy"], right as f64 / 500.0);
}

#[test]
fn records_of_which_nothing_is_known_get_no_score() {
    let place = Workplace::new();
    let schema = "on_missing = \"neutral\"\n[label]\ncolumn = \"earns\"\npositive = \"yes\"\nnegative = \"no\"\n\
                  [columns.age]\ntype = \"numeric\"\nmin = 0\nmax = 99\n";
    place.write("schema.toml", schema);
    place.write("people.csv", format!("age,earns\n{}", "30,no\n,yes\n60,yes\n".repeat(100)));
    let trained =
        place.dp(&["train", "--data", "people.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "m.json"]);
    trained.says("100 records");
    assert_eq!(trained.code, 0, "{trained:#?}");
    place.write("new.csv", "age\n20\n\"\"\n80\n");
    let run = place.dp(&["predict", "--model", "m.json", "--data", "new.csv"]);
    run.says("1 records");
    let lines: Vec<String> = run.ok().lines().map(str::to_owned).collect();
    assert_eq!((lines.len(), lines[2].as_str()), (4, ",,"));
    assert!(lines[1].len() > 4 && lines[3].len() > 4, "{lines:?}");
    // They are also ignored in evaluation.
    assert_eq!(evaluate(&place, "m.json", "people.csv")["n"], 200);
}

#[test]
fn a_dry_run_reads_no_record_and_writes_nothing() {
    let place = Workplace::new();
    // The second line would be rejected if it were read.
    place.write("people.csv", "age,trade,earns\nbroken\n");
    place.write(
        "schema.toml",
        "[label]\ncolumn = \"earns\"\npositive = \"yes\"\nnegative = \"no\"\n[columns.age]\ntype = \"numeric\"\nmin = \
         0\nmax = 99\n[columns.trade]\ntype = \"drop\"\n",
    );
    let arguments =
        ["train", "--data", "people.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "m.json", "--dry-run"];
    let with_n = place.dp(&[&arguments[..], &["--n", "1000", "--json"]].concat()).json();
    assert_eq!((&with_n["schema"], &with_n["dry_run"]), (&"dp.train/1".into(), &true.into()));
    assert_eq!((&with_n["n"], &with_n["algorithm"]), (&1000.into(), &"auto".into()));
    assert!(with_n["dim"].as_u64().unwrap() >= 2);
    assert!(with_n["event"].is_object() && with_n["epsilon"].as_f64().unwrap() <= 1.0, "{with_n}");
    let without = place.dp(&arguments).ok();
    assert!(without.contains("--n"), "{without}");
    assert_eq!(place.files(), ["people.csv", "schema.toml"]);
    let missing = [&arguments[..2], &["other.csv"], &arguments[3..]].concat();
    place.write("other.csv", "trade,earns\n");
    place.dp(&missing).fails(3, "csv.missing_column");
}

#[test]
fn the_report_is_public() {
    let place = Workplace::new();
    place.write("people.csv", people(400, 25));
    let result = train(&place, "people.csv", "m.json", &["--epsilon", "1", "--delta", "1e-6", "--report", "m.md"]);
    assert_eq!(result["report"], "m.md");
    let report = place.read("m.md");
    for part in [
        "## What is promised",
        "## What was taken on trust",
        "## Settings",
        "## How to check",
        "replace-one",
        "dp verify m.json",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
    assert!(report.contains("RISK") && report.contains("trade"), "{report}");
    assert!(!report.contains("people.csv") && !report.contains(place.path("").to_str().unwrap()));
    let hash = place.json("m.json")["certificate_sha256"].as_str().unwrap().to_owned();
    assert!(report.contains(&hash));
}

#[test]
fn progress_as_json_is_on_stderr_alone() {
    let place = Workplace::new();
    place.write("people.csv", people(400, 26));
    let mut arguments =
        vec!["train", "--data", "people.csv", "--out", "m.json", "--epsilon", "1", "--progress", "json"];
    arguments.extend(FROM_DATA);
    let run = place.dp(&arguments);
    let lines: Vec<Value> = run
        .stderr
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).expect("one object per line"))
        .collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line["schema"] == "dp.progress/1"), "{run:#?}");
    assert!(lines.iter().all(|line| line.get("loss").is_none()));
    run.json();
}

/// The duration of a solver that runs until its minimiser is certified depends on the records: seconds, rates and numbers of
/// processed rows are never printed.
#[test]
fn progress_says_nothing_of_a_certified_solver() {
    let place = Workplace::new();
    place.write("people.csv", people(400, 26));
    let strongly: &[&str] = &["--algorithm", "bolt-on-strongly-convex"];
    for (algorithm, shown) in [
        (strongly, true),
        (&[strongly, &["--stop", "certified"]].concat()[..], false),
        (&["--algorithm", "obj-pert"], false),
        (&["--algorithm", "auto"], false),
        (&["--algorithm", "phased-erm", "--delta", "1e-6"], false),
    ] {
        let arguments = ["train", "--data", "people.csv", "--out", "m.json", "--force", "--epsilon", "1"];
        let run = place.dp(&[&arguments[..], &FROM_DATA, algorithm, &["--progress", "json"]].concat());
        let lines: Vec<Value> = run.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert_eq!(lines.iter().any(|line| line["phase"] == "train"), shown, "{algorithm:?} {run:#?}");
        assert_eq!(run.json().get("seconds").is_some(), shown, "{algorithm:?}");
    }
}

/// The guarantee for a record changed to any other needs no assumption if no record can stop the training, and needs that
/// every record conforms if some can.
#[test]
fn a_schema_that_refuses_records_is_an_assumption() {
    let place = Workplace::new();
    place.write("people.csv", people(300, 8));
    place.dp(&["schema", "people.csv", "--label", "earns", "--positive", "yes", "--out", "schema.toml"]).ok();
    let drafted = place.read("schema.toml").replace("reviewed = false", "reviewed = true");
    let trusts = |schema: &str| {
        place.write("schema.toml", schema);
        let train = ["train", "--data", "people.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "m.json"];
        place.dp(&[&train[..], &["--force"]].concat()).ok();
        let file = place.json("m.json");
        let said = place.dp(&["verify", "m.json"]).ok().contains("Every record conforms to the schema");
        let assumptions = file["certificate"]["assumptions"].as_array().unwrap();
        let listed = assumptions.iter().any(|assumption| assumption["assumption"] == "every_record_conforms");
        assert_eq!(said, listed);
        listed
    };
    assert!(trusts(&drafted), "a cell that is not a number is an error: {drafted}");
    let drafted = format!("on_unreadable = \"neutral\"\n{drafted}");
    assert!(!trusts(&drafted), "{drafted}");
    for (policy, error) in [
        ("on_missing = \"neutral\"", "on_missing = \"error\""),
        ("on_unknown = \"neutral\"", "on_unknown = \"error\""),
        ("others = \"neutral\"", "others = \"error\""),
    ] {
        assert!(drafted.contains(policy), "{policy}: {drafted}");
        assert!(trusts(&drafted.replacen(policy, error, 1)), "{policy}");
    }
    // If a certificate omits it, the verifier reports it.
    let mut file = place.json("m.json");
    let assumptions = file["certificate"]["assumptions"].as_array_mut().unwrap();
    assumptions.retain(|assumption| assumption["assumption"] != "every_record_conforms");
    file["certificate_sha256"] = dp::canonical::sha256(&file["certificate"]).into();
    place.write("m.json", file.to_string());
    assert!(place.dp(&["verify", "m.json"]).ok().contains("Every record conforms to the schema"));
    // A table with records of every kind that the draft has not seen.
    place.write("schema.toml", &drafted);
    let odd = people(300, 8) + "x,1,baker,yes\n,1,clerk,no\n40,1e999,smith,no\n40,40,sailor,yes\n40,40,clerk,perhaps\n";
    place.write("people.csv", &odd);
    assert!(!trusts(&drafted));
    // Without a schema, the cells that are not numbers are to be mended.
    let train = ["train", "--data", "people.csv", "--label", "earns", "--positive", "yes", "--schema-from-data"];
    let train = [&train[..], &["--epsilon", "1", "--out", "m.json", "--force"]].concat();
    place.dp(&train).fails(3, "csv.bad_number").says("line 302");
    place.write("people.csv", odd.replace("x,1,", ",1,").replace("1e999", "\"\""));
    place.dp(&train).ok();
}

/// The examples of `--help` run as printed.
#[test]
fn the_examples_of_the_help_run() {
    let place = Workplace::new();
    place.write(
        "people.csv",
        people(300, 27).replace(",earns", ",income").replace(",yes", ",>50K").replace(",no", ",<=50K"),
    );
    place.write(
        "test.csv",
        people(50, 28).replace(",earns", ",income").replace(",yes", ",>50K").replace(",no", ",<=50K"),
    );
    place.write(
        "new.csv",
        people(50, 29).replace(",earns", ",income").replace(",yes", ",>50K").replace(",no", ",<=50K"),
    );
    place.write("people.libsvm.gz", gzip(sparse(200, 30, 1).as_bytes()));
    let pixels: Vec<u8> = (0..100 * 64_u32).map(|i| (i * i % 251) as u8).collect();
    place.write("images.idx.gz", gzip(&idx(&[100, 8, 8], &pixels)));
    place.write("labels.idx.gz", gzip(&idx(&[100], &(0..100).map(|i| i % 10).collect::<Vec<u8>>())));
    let mut ran = 0;
    for command in [
        "schema",
        "train",
        "evaluate",
        "predict",
        "sign new-key",
        "sign model",
        "verify",
        "explain",
        "completions",
        "man",
    ] {
        let help = place.dp(&[&command.split(' ').collect::<Vec<_>>()[..], &["--help"]].concat()).ok();
        let examples: Vec<&str> = help.lines().map(str::trim).filter(|line| line.starts_with("dp ")).collect();
        assert!(!examples.is_empty(), "{command} has no example");
        for example in examples {
            let line = example.split(" > ").next().unwrap_or(example);
            let words: Vec<String> =
                line.split_whitespace().skip(1).map(|word| word.trim_matches('\'').to_owned()).collect();
            let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
            if words[0] == "train" {
                // The data of the examples are few here.
                words.push("--force");
                if !words.contains(&"--model") {
                    words.push("--anyway");
                }
            }
            place.dp(&words).ok();
            ran += 1;
            if command == "schema" {
                let schema = place.read("schema.toml").replace("reviewed = false", "reviewed = true");
                place.write("schema.toml", schema);
            }
        }
    }
    assert!(ran >= 9, "{ran}");
}

#[test]
fn a_limit_on_planning_gives_more_noise_and_a_model_that_verifies() {
    let place = Workplace::new();
    place.write("people.csv", people(2000, 5));
    let sgd = ["--algorithm", "dp-sgd", "--epsilon", "1", "--delta", "1e-6", "--batch-size", "1", "--passes", "20"];
    let noise = |model: &str| {
        let certificate = place.json(model)["certificate"].clone();
        certificate["derivation"]["std_dev"].as_f64().unwrap_or_else(|| panic!("{certificate}"))
    };
    train(&place, "people.csv", "whole.json", &sgd);
    let limit = ["--limit", "0.001"];
    let within =
        place.dp(&[&["train", "--data", "people.csv", "--out", "within.json"][..], &FROM_DATA, &sgd, &limit].concat());
    within.says("the limit on work was reached: the noise suffices, and --limit 0.01 may find less");
    within.json();
    assert!(noise("within.json") > noise("whole.json"));
    assert!(place.dp(&["verify", "within.json"]).ok().contains("holds"));
    let nothing = [&["train", "--data", "people.csv", "--out", "m.json", "--limit", "0"][..], &FROM_DATA[..5]].concat();
    place.dp(&nothing).fails(2, "usage.value");
}
