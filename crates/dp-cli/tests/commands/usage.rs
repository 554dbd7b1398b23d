//! Unusable values of flags are rejected before any record is read, with the flag's name and a remedy.

use crate::support::{Workplace, one_value, people};

/// Trains on 200 people with `extra` flags after the default ones.
fn train(place: &Workplace, extra: &[&str]) -> crate::support::Run {
    if !place.path("people.csv").exists() {
        place.write("people.csv", people(200, 1));
    }
    let mut arguments =
        vec!["train", "--data", "people.csv", "--label", "earns", "--positive", "yes", "--schema-from-data"];
    arguments.extend(extra);
    if !extra.contains(&"--algorithm") {
        arguments.extend(["--algorithm", "bolt-on-convex"]);
    }
    if !extra.contains(&"--out") {
        arguments.extend(["--out", "model.json"]);
    }
    place.dp(&arguments)
}

#[test]
fn epsilon_out_of_range() {
    let place = Workplace::new();
    for epsilon in ["-1", "0", "NaN", "inf", "-inf", "1e-300"] {
        let run = train(&place, &["--epsilon", epsilon]);
        run.fails(2, "usage.value").says("--epsilon");
    }
    train(&place, &["--epsilon", "one"]).says("--epsilon");
    assert_eq!(place.files(), ["people.csv"]);
}

#[test]
fn delta_out_of_range() {
    let place = Workplace::new();
    for delta in ["1", "1.5", "-1e-9", "NaN", "inf"] {
        train(&place, &["--epsilon", "1", "--delta", delta]).fails(2, "usage.value").says("--delta");
    }
    assert_eq!(place.files(), ["people.csv"]);
}

#[test]
fn delta_zero_is_pure_and_delta_above_one_over_n_warns() {
    let place = Workplace::new();
    let pure = train(&place, &["--epsilon", "1", "--delta", "0", "--json", "--out", "pure.json"]);
    assert!(pure.stderr.lines().all(|line| !line.contains("delta")), "{pure:#?}");
    assert_eq!(pure.json()["delta"], 0.0);
    let loose = train(&place, &["--epsilon", "1", "--delta", "0.01", "--json", "--out", "loose.json"]);
    loose.says("delta = 0.01 is not below 1/n = 1/");
    let fine = train(&place, &["--epsilon", "1", "--delta", "1e-6", "--json", "--out", "fine.json"]);
    assert!(!fine.stderr.contains("1/n"), "{fine:#?}");
}

#[test]
fn parameters_out_of_range_name_their_flag() {
    let place = Workplace::new();
    for (flag, values) in [
        ("--lambda", &["-1", "NaN", "inf"][..]),
        ("--radius", &["0", "-1", "NaN"]),
        ("--step-size", &["0", "-1", "NaN", "inf"]),
        ("--huber-width", &["0", "-1", "NaN"]),
        ("--passes", &["0"]),
        ("--batch-size", &["0"]),
    ] {
        for value in values {
            let run = train(&place, &["--epsilon", "1", "--loss", "huber-svm", flag, value]);
            run.fails(2, "usage.value").says(flag);
        }
    }
    assert_eq!(place.files(), ["people.csv"]);
}

#[test]
fn refused_numbers_are_short_and_name_their_flag() {
    let place = Workplace::new();
    for (flag, value) in
        [("--lambda", "1e300"), ("--radius", "1e300"), ("--epsilon", "1e300"), ("--passes", "4294967295")]
    {
        let extra: &[&str] = if flag == "--epsilon" { &[flag, value] } else { &["--epsilon", "1", flag, value] };
        let run = train(&place, extra);
        run.fails(4, "privacy.refused").says(flag).says(value);
        assert!(run.stderr.lines().all(|line| line.len() < 150), "{run:#?}");
    }
    train(&place, &["--epsilon", "1e-300"]).fails(2, "usage.value").says("2^-50");
}

#[test]
fn what_matters_is_not_guessed() {
    let place = Workplace::new();
    train(&place, &[]).fails(2, "usage.missing").says("--epsilon");
    place
        .dp(&["train", "--data", "people.csv", "--epsilon", "1", "--out", "m.json"])
        .fails(2, "usage.missing")
        .says("--schema");
    place
        .dp(&["train", "--data", "people.csv", "--schema-from-data", "--epsilon", "1", "--out", "m.json"])
        .fails(2, "usage.missing")
        .says("--label");
}

#[test]
fn flags_that_contradict_each_other() {
    let place = Workplace::new();
    for extra in [
        &["--epsilon", "1", "--huber-width", "0.1"][..],
        &["--epsilon", "1", "--row-norm", "unit"],
        &["--epsilon", "1", "--dim", "5"],
        &["--epsilon", "1", "--zero-based"],
        &["--epsilon", "1", "--algorithm", "non-private"],
        &["--algorithm", "non-private", "--adjacency", "replace-one"],
        &["--algorithm", "non-private", "--noise", "rounded"],
        &["--epsilon", "1", "--delimiter", "::"],
        &["--epsilon", "1", "--out", "-", "--json"],
        &["--epsilon", "1", "--out", "x.json", "--report", "x.json"],
        &["--epsilon", "1", "--out", "people.csv", "--force"],
        &["--epsilon", "1", "--schedule", "decreasing", "--step-size", "1"],
        &["--epsilon", "1", "--schedule", "strongly-convex"],
        &["--epsilon", "1", "--dry-run"],
    ] {
        let run = train(&place, extra);
        assert_eq!(run.code, 2, "{extra:?} {run:#?}");
    }
    train(&place, &["--epsilon", "1", "--dim", "5"]).fails(2, "usage.conflict").says("--dim");
    assert_eq!(place.files(), ["people.csv"]);
}

#[test]
fn standard_input_only_once() {
    let place = Workplace::new();
    place
        .dp(&["train", "--data", "-", "--schema", "-", "--epsilon", "1", "--out", "m.json"])
        .fails(2, "usage.stdin_twice");
    place.dp(&["evaluate", "--model", "-", "--data", "-"]).fails(2, "usage.stdin_twice");
    place.dp(&["predict", "--model", "-", "--data", "-"]).fails(2, "usage.stdin_twice");
}

#[test]
fn what_has_no_proof_is_refused_for_privacy() {
    let place = Workplace::new();
    // Without regularisation no loss is strongly convex; a gradient step on a loss with a kink need not contract.
    train(&place, &["--epsilon", "1", "--algorithm", "bolt-on-strongly-convex", "--lambda", "0"])
        .fails(4, "privacy.refused");
    train(&place, &["--epsilon", "1", "--loss", "hinge"]).fails(4, "privacy.refused").says("huber-svm");
    train(&place, &["--epsilon", "1", "--stop", "certified"]).fails(4, "privacy.refused").says("lambda");
    train(&place, &["--epsilon", "1", "--adjacency", "change-list-labels"])
        .fails(4, "privacy.adjacency")
        .says("replace-one");
    train(&place, &["--epsilon", "1", "--passes", "4000000000"]).fails(4, "privacy.refused").says("--passes");
    assert_eq!(place.files(), ["people.csv"]);
}

#[test]
fn errors_are_json_when_asked() {
    let place = Workplace::new();
    let run = train(&place, &["--epsilon", "-1", "--json"]);
    assert_eq!(run.code, 2);
    let error = one_value(&run.stdout);
    assert_eq!(error["error"]["code"], "usage.value");
    assert_eq!(error["error"]["where"]["flag"], "--epsilon");
    assert!(error["error"]["help"].is_string());
}
