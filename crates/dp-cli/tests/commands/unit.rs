//! `--unit`: the guarantee of a person with several rows, from the file to its verification.

use serde_json::Value;

use crate::support::{Dice, Workplace};

/// Visits of patients, one to seven of each.
fn visits(patients: u64) -> String {
    let mut dice = Dice(9);
    let mut rows = Vec::new();
    for patient in 0..patients {
        for _ in 0..=patient % 7 {
            let (age, pulse) = (20 + dice.below(70), 50 + dice.below(60));
            let again = dice.unit() < 1.0 / (1.0 + (-(pulse as f64 - 80.0) / 8.0).exp());
            rows.push(format!("P{patient},{age},{pulse},{}\n", if again { "yes" } else { "no" }));
        }
    }
    // Visits of one patient are far apart.
    let rows: String = (0..rows.len()).map(|i| rows[i * 577 % rows.len()].as_str()).collect();
    format!("patient,age,pulse,again\n{rows}")
}

fn place() -> Workplace {
    let place = Workplace::new();
    place.write("visits.csv", visits(1400));
    let draft = place.dp(&["schema", "visits.csv", "--label", "again"]).ok();
    place.write("s.toml", draft.replace("reviewed = false", "reviewed = true"));
    place
}

const TRAIN: &str = "train --data visits.csv --schema s.toml --epsilon 1 --out m.json --force --json";

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// The plan is for the training that takes place: of as many records as the units can have.
#[test]
fn a_plan_for_patients_is_that_of_their_training() {
    let place = place();
    for epsilon in ["1", "2", "5"] {
        let plan = format!("plan --rows 3000 --units 1400 --max-rows 3 --schema s.toml --epsilon {epsilon} --json");
        let plan = place.dp(&words(&plan)).json();
        let train = format!("train --data visits.csv --schema s.toml --epsilon {epsilon} --out m.json --unit patient");
        let train = place.dp(&words(&(train + " --max-rows 3 --dry-run --n 1400 --json"))).json();
        let planned = &plan["forecasts"][0];
        assert_eq!((&planned["dim"], &planned["delta"]), (&train["dim"], &train["delta"]), "{plan} {train}");
        // Fewer rows than the units can have tell less.
        let [of_plan, of_train] = [planned, &train["choice"]].map(|outcome| outcome["expected_loss"].as_f64().unwrap());
        assert!(of_plan >= of_train && of_plan < 2.0 * of_train, "{plan} {train}");
    }
}

#[test]
fn a_label_names_no_unit() {
    let place = place();
    let run = place.dp(&words(&format!("{} --unit again --max-rows 3 --anyway", TRAIN.replace(" --json", ""))));
    run.fails(3, "schema.label").says("names no unit");
}

#[test]
fn all_visits_of_a_patient_are_protected_together() {
    let place = place();
    for (more, rows) in [
        ("--algorithm auto --delta 1e-6", 3),
        ("--algorithm auto --delta 1e-6 --threshold base-rate", 2),
        ("--algorithm bolt-on-convex", 7),
        ("--algorithm dp-sgd --delta 1e-6", 5),
        ("--algorithm dp-gd --delta 1e-6 --float f32", 5),
    ] {
        let flags = format!("{TRAIN} {more} --unit patient --max-rows {rows} --report r.md");
        let outcome = place.dp(&words(&flags)).json();
        assert_eq!(outcome["units"], serde_json::json!({ "number": 1400, "column": "patient", "most": rows }));
        assert_eq!((&outcome["n"], &outcome["unit"]), (&(1400 * rows).into(), &"all records of one patient".into()));
        let epsilon = outcome["epsilon"].as_f64().unwrap();
        assert!(epsilon <= 1.0 && epsilon > 0.99, "{more}: {epsilon}");
        let file = place.json("m.json");
        let event = &file["certificate"]["event"];
        assert_eq!((&event["type"], &event["size"]), (&"group".into(), &rows.into()));
        assert_eq!(file["certificate"]["unit"], serde_json::json!({ "column": "patient" }));
        let verified = place.dp(&["verify", "m.json"]).ok();
        assert!(verified.contains("for all records of one patient"), "{verified}");
        assert!(verified.contains(&format!("At most {rows} of each were used")), "{verified}");
        assert!(!verified.contains("Each person has one row"), "{verified}");
        let accounted = place.dp(&["account", "certificate", "m.json", "--delta", "1e-6", "--semantics"]).ok();
        assert!(accounted.contains("all records of one patient") && accounted.contains("one unit"), "{accounted}");
        let report = place.read("r.md");
        let question = match file["certificate"]["adjacency"].as_str() {
            Some("add-remove") => "whether the rows of one unit are there",
            _ => "which of two sets of rows one unit has",
        };
        assert!(report.contains("for all records of one patient") && report.contains(question), "{report}");
        std::fs::remove_file(place.path("r.md")).unwrap();
    }
}

/// The noise grows in proportion to the rows; which rows are used depends on the seed, and not on the threads.
#[test]
fn rows_and_noise_follow_the_bound() {
    let place = place();
    let dry = |rows: u64| -> Value {
        let flags = format!("{TRAIN} --algorithm bolt-on-convex --unit patient --max-rows {rows} --dry-run --n 1400");
        place.dp(&words(&flags)).json()
    };
    let scale = |planned: &Value| planned["event"]["event"]["scale"].as_f64().unwrap();
    let per_sensitivity = |planned: &Value| scale(planned) / planned["sensitivity"].as_f64().unwrap();
    let (one, four) = (dry(1), dry(4));
    assert_eq!((&one["n"], &four["n"]), (&1400.into(), &5600.into()));
    assert!((per_sensitivity(&four) / per_sensitivity(&one) - 4.0).abs() < 1e-3);
    let seeded = |rest: &str| {
        place.dp(&words(&format!("{TRAIN} --unit patient --max-rows 2 {rest}"))).json();
        place.read("m.json")
    };
    let model = seeded("--seed 4 --threads 1");
    assert_eq!(model, seeded("--seed 4 --threads 2"));
    assert_ne!(model, seeded("--seed 5"));
    // The curator learns what was left out.
    let run = place.dp(&words(&format!("{TRAIN} --unit patient --max-rows 2")));
    // Patients have 1, 2, ..., 7 visits: 0 + 0 + 1 + ... + 5 of seven are too many.
    run.says("3000 rows beyond the bound for one `patient` were left out (for your eyes only");
    let mut result = crate::support::one_value(&run.stdout);
    // These have any digits.
    for name in ["certificate_sha256", "seconds", "training_seconds"] {
        result.as_object_mut().unwrap().remove(name);
    }
    assert!(!result.to_string().contains("3000"), "{result}");
}

/// Whoever does not say what the unit is learns that rows may be of one person.
#[test]
fn shared_identifiers_are_pointed_out() {
    let place = place();
    let hint = "up to 7 rows";
    let draft = place.dp(&["schema", "visits.csv", "--label", "again"]);
    draft.says("column `patient`: Dropped, as it looks like an identifier of up to 7 rows each");
    let schema = draft.ok();
    assert!(schema.contains("--unit patient --max-rows") && !schema.contains("[columns.patient]\ntype = \"numeric\""));
    for threads in ["1", "2"] {
        let run = place.dp(&words(&format!("{TRAIN} --threads {threads}")));
        run.says(hint).says("--unit patient");
        assert!(!run.stdout.contains("up to"));
        let run = place.dp(&words(&format!("{TRAIN} --threads {threads} --unit patient --max-rows 3")));
        assert!(run.code == 0 && !run.stderr.contains(hint), "{run:?}");
    }
    let train = "train --data visits.csv --label again --schema-from-data --epsilon 1 --out m.json --force";
    place.dp(&words(train)).says("--unit patient --max-rows");
    // One row of each is nobody's business.
    let mut seen = std::collections::BTreeSet::new();
    let lines = place.read("visits.csv");
    let first = lines.lines().filter(|line| seen.insert(line.split(',').next().map(str::to_owned)));
    place.write("visits.csv", first.map(|line| format!("{line}\n")).collect::<String>());
    let run = place.dp(&words(TRAIN));
    assert!(run.code == 0 && !run.stderr.contains("--unit"), "{run:?}");
}

#[test]
fn a_schema_of_the_data_leaves_the_unit_out() {
    let place = place();
    let train =
        "train --data visits.csv --label again --schema-from-data --epsilon 1 --out m.json --unit patient --max-rows 2";
    place.dp(&words(train)).ok();
    let file = place.json("m.json");
    let names: Vec<&str> =
        file["model"]["features"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(!names.iter().any(|name| name.contains("patient")), "{names:?}");
}

#[test]
fn settings_are_chosen_for_units_too() {
    let place = place();
    place.write("public.csv", visits(300));
    let tune = "tune --data visits.csv --schema s.toml --epsilon 2 --algorithm bolt-on-strongly-convex --lambda 0.01,0.1 \
                --out m.json --force --unit patient --max-rows 2";
    for method in
        ["--method portions", "--method composition", "--method random-stopping", "--method public --public public.csv"]
    {
        place.dp(&words(&format!("{tune} {method}"))).ok();
        let verified = place.dp(&["verify", "m.json"]).ok();
        assert!(verified.contains("for all records of one patient"), "{method}: {verified}");
    }
}

#[test]
fn what_has_no_units_is_refused() {
    let place = place();
    place.write("x.libsvm", "1 1:1\n-1 2:1\n");
    let before = place.files();
    let train = |flags: &str| place.dp(&words(flags));
    let start = "train --data visits.csv --schema s.toml --epsilon 1 --out m.json";
    assert_eq!(train(&format!("{start} --unit patient")).code, 2);
    assert_eq!(train(&format!("{start} --max-rows 2")).code, 2);
    assert_eq!(train(&format!("{start} --unit patient --max-rows 0")).code, 2);
    train(&format!("{start} --unit patient --max-rows 2000000")).fails(2, "usage.value").says("--max-rows");
    train(&format!("{start} --unit patient --max-rows 1000000 --delta 1e-6"))
        .fails(4, "privacy.refused")
        .says("fewer rows");
    train(&format!("{start} --unit person --max-rows 2")).fails(3, "csv.missing_column").says("person");
    train(&format!("{start} --unit person --max-rows 2 --dry-run")).fails(3, "csv.missing_column").says("person");
    train("train --data x.libsvm --epsilon 1 --out m.json --unit patient --max-rows 2")
        .fails(2, "usage.conflict")
        .says("--unit");
    let sums =
        "train --data postgres:///d --schema s.toml --sums --algorithm auto --epsilon 1 --delta 1e-6 --out m.json";
    train(&format!("{sums} --unit patient --max-rows 2")).fails(2, "usage.conflict").says("--unit");
    assert_eq!(place.files(), before);
}

/// A group under Gaussian noise costs what one record of so many times the sensitivity costs.
#[test]
fn groups_are_accounted_for() {
    let place = Workplace::new();
    let epsilon = |flags: &str| {
        let answer = place.dp(&words(&format!("account {flags} --json"))).json();
        (answer["epsilon"].as_f64().unwrap(), answer["group"].clone())
    };
    let (group, size) = epsilon("gaussian --noise-multiplier 12 --delta 1e-6 --group 3");
    let (one, none) = epsilon("gaussian --noise-multiplier 4 --delta 1e-6");
    assert!((group / one - 1.0).abs() < 1e-9);
    assert_eq!((size, none), (3.into(), Value::Null));
    assert!((epsilon("pure --step-epsilon 0.2 --group 4").0 - 0.8).abs() < 1e-12);
    let noise = "dpsgd --epsilon 2 --delta 1e-6 --sampling-rate 0.01 --steps 100 --group 2 --json";
    let answer = place.dp(&words(&format!("account {noise}"))).json();
    let found = answer["noise_multiplier"].as_f64().unwrap();
    let check = format!("dpsgd --noise-multiplier {found} --delta 1e-6 --sampling-rate 0.01 --steps 100 --group 2");
    assert!(epsilon(&check).0 <= 2.0);
    let text = place.dp(&words("account gaussian --noise-multiplier 12 --delta 1e-6 --group 3 --semantics")).ok();
    assert!(text.contains("any 3 records at once"), "{text}");
    place.dp(&words("account gaussian --noise-multiplier 12 --delta 1e-6 --group 3 --compare")).ok();
    place.write("q.jsonl", "{\"job\":\"gaussian\",\"noise_multiplier\":12,\"delta\":1e-6,\"group\":3}\n");
    let batch = place.dp(&["account", "batch", "q.jsonl"]).ok();
    let answer: Value = serde_json::from_str(batch.lines().next().unwrap()).unwrap();
    assert_eq!(answer["epsilon"].as_f64(), Some(group));
}
