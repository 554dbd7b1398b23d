//! `dp train --project`: training features, the model's description, and predictions.

use crate::support::{Dice, Workplace};
use serde_json::Value;

/// Sparse text of twelve features; the sign of the third is the class.
fn table(rows: usize, seed: u64) -> String {
    let mut dice = Dice(seed);
    let mut text = String::new();
    for _ in 0..rows {
        let features: Vec<f64> = (0..12).map(|_| (dice.unit() * 200.0).round() / 100.0 - 1.0).collect();
        text.push_str(if features[2] > 0.0 { "+1" } else { "-1" });
        for (i, value) in features.iter().enumerate() {
            let value = if i == 2 { 5.0 * value } else { *value };
            text.push_str(&format!(" {}:{value}", i + 1));
        }
        text.push('\n');
    }
    text
}

fn place() -> Workplace {
    let place = Workplace::new();
    place.write("train.libsvm", table(3000, 1));
    place.write("test.libsvm", table(500, 2));
    place
}

const TRAIN: [&str; 7] = ["train", "--data", "train.libsvm", "--dim", "12", "--epsilon", "2"];

fn train(place: &Workplace, out: &str, more: &[&str]) -> Value {
    place.dp(&[&TRAIN[..], more, &["--out", out, "--force", "--json"]].concat()).json()
}

#[test]
fn a_projected_model_is_small_verified_and_predicts() {
    let place = place();
    for (how, features) in [("gaussian:8", 9), ("coordinates:11", 12), ("gaussian:12", 13)] {
        let result = train(&place, "m.json", &["--project", how, "--report", "m.md"]);
        assert_eq!(result["dim"], features, "{how}");
        let file = place.json("m.json");
        assert_eq!(file["model"]["weights"].as_array().unwrap().len(), features);
        let projection = &file["model"]["encoder"]["projection"];
        assert_eq!(projection["generator"], "chacha20/1");
        assert!(projection["seed"].as_u64().unwrap() < 1 << 53);
        assert!(file.to_string().len() < 20_000, "the matrix is not in the file");
        assert!(place.dp(&["verify", "m.json"]).ok().contains("mapped at random"));
        assert!(place.read("m.md").contains("mapped at random"));
        let scores = place.dp(&["predict", "--model", "m.json", "--data", "test.libsvm"]).ok();
        assert_eq!(scores.lines().count(), 501);
        let measured = place.dp(&["evaluate", "--model", "m.json", "--data", "test.libsvm", "--json"]).json();
        assert!(measured["accuracy"].as_f64().unwrap() > 0.4, "{how} {measured}");
    }
    // Each coordinate keeps its name.
    train(&place, "m.json", &["--project", "coordinates:3", "--project-seed", "1"]);
    let names = place.json("m.json")["model"]["features"].clone();
    let names: Vec<u32> =
        names.as_array().unwrap()[..3].iter().map(|name| name.as_str().unwrap().parse().unwrap()).collect();
    assert!(names.is_sorted() && names.iter().all(|name| (1..=12).contains(name)), "{names:?}");
}

#[test]
fn projecting_costs_little_where_features_are_many() {
    let place = place();
    let accuracy = |more: &[&str]| {
        let free = ["train", "--data", "train.libsvm", "--dim", "12", "--algorithm", "non-private"];
        place.dp(&[&free[..], more, &["--out", "m.json", "--force"]].concat()).ok();
        let measured = place.dp(&["evaluate", "--model", "m.json", "--data", "test.libsvm", "--json"]).json();
        measured["accuracy"].as_f64().unwrap()
    };
    let full = accuracy(&[]);
    let square = accuracy(&["--project", "gaussian:12", "--project-seed", "3"]);
    // A square Gaussian matrix is invertible, so that only the regularisation causes a loss.
    assert!(full > 0.9 && square > full - 0.1, "{full} {square}");
}

#[test]
fn the_seed_is_public_and_decides_the_map() {
    let place = place();
    let weights = |more: &[&str]| {
        train(&place, "m.json", &[&["--project", "gaussian:5", "--seed", "9"][..], more].concat());
        let file = place.json("m.json");
        (file["model"]["weights"].clone(), file["model"]["encoder"]["projection"]["seed"].as_u64().unwrap())
    };
    let (one, seed) = weights(&[]);
    assert_eq!(weights(&[]), (one.clone(), seed), "the same --seed gives the same projection");
    assert_eq!(weights(&["--project-seed", &seed.to_string()]), (one.clone(), seed));
    assert_ne!(weights(&["--project-seed", "4"]).0, one);
    // Without a seed each run draws another map.
    let fresh = || {
        train(&place, "m.json", &["--project", "gaussian:5"]);
        place.json("m.json")["model"]["encoder"]["projection"]["seed"].clone()
    };
    assert_ne!(fresh(), fresh());
}

#[test]
fn the_projection_is_an_assumption_that_cannot_be_dropped_or_added() {
    let place = place();
    train(&place, "m.json", &["--project", "gaussian:5"]);
    let file = place.json("m.json");
    let projected = serde_json::json!({ "assumption": "public_projection" });
    let verify = |mut edited: Value| {
        edited["certificate"]["model_sha256"] = dp::canonical::sha256(&edited["model"]).into();
        edited["certificate_sha256"] = dp::canonical::sha256(&edited["certificate"]).into();
        place.write("edited.json", edited.to_string());
        place.dp(&["verify", "edited.json"])
    };
    let mut silent = file.clone();
    let assumptions = silent["certificate"]["assumptions"].as_array_mut().unwrap();
    assert!(assumptions.contains(&projected));
    assumptions.retain(|assumption| *assumption != projected);
    verify(silent).fails(5, "verify.assumption");
    // A map of another width changes the number of weights.
    let mut narrower = file.clone();
    narrower["model"]["encoder"]["projection"]["features"] = 4.into();
    verify(narrower).fails(3, "model.format");
    let mut unknown = file;
    unknown["model"]["encoder"]["projection"]["generator"] = "chacha20/9".into();
    verify(unknown).fails(3, "model.format");
    train(&place, "m.json", &[]);
    let mut vouching = place.json("m.json");
    assert!(vouching["model"]["encoder"]["projection"].is_null());
    vouching["certificate"]["assumptions"].as_array_mut().unwrap().push(projected);
    verify(vouching).fails(5, "verify.assumption");
}

#[test]
fn projections_that_cannot_be_are_refused() {
    let place = place();
    let before = place.files();
    let refused = |more: &[&str]| place.dp(&[&TRAIN[..], more, &["--out", "m.json"]].concat());
    for how in ["gaussian", "gaussian:", "gaussian:0", "gaussian:-3", "gaussian:2.5", "random:3", "coordinates:x", ":4"]
    {
        let run = refused(&["--project", how]);
        assert_eq!(run.code, 2, "{how}: {run:#?}");
        run.says("--project").says("gaussian:50");
    }
    refused(&["--project", "gaussian:13"]).fails(3, "projection.invalid").says("--project").says("between 1 and 12");
    refused(&["--project", "coordinates:13"]).fails(3, "projection.invalid").says("between 1 and 12");
    let huge = ["--project", "gaussian:5", "--project-seed", "9007199254740992"];
    refused(&huge).fails(2, "usage.value").says("--project-seed").says("2^53");
    assert_eq!(refused(&["--project-seed", "5"]).code, 2);
    let unknown_width =
        ["train", "--data", "train.libsvm", "--epsilon", "1", "--project", "gaussian:3", "--out", "m.json"];
    place.dp(&unknown_width).fails(2, "usage.conflict").says("--dim");
    assert_eq!(place.files(), before);
    // A dry run reports the width of the model.
    let foreseen =
        place.dp(&[&TRAIN[..], &["--project", "gaussian:5", "--out", "m.json", "--dry-run", "--json"]].concat());
    assert_eq!(foreseen.json()["dim"], 6);
}
