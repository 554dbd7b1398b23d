//! `dp verify`: every edit of the file is found out, and so is every number that does not follow from the recipe.

mod support;

use dp_cli::canonical;
use serde_json::Value;
use support::{Workplace, people};

fn trained(extra: &[&str]) -> (Workplace, Value) {
    let place = Workplace::new();
    place.write("people.csv", people(500, 4));
    let mut arguments = vec![
        "train",
        "--data",
        "people.csv",
        "--label",
        "earns",
        "--positive",
        "yes",
        "--schema-from-data",
        "--out",
        "model.json",
    ];
    arguments.extend(extra);
    place.dp(&arguments).ok();
    let file = place.json("model.json");
    (place, file)
}

/// Pointers to all leaves.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                leaves(item, &format!("{path}/{i}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                leaves(member, &format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

fn all_leaves(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    leaves(value, "", &mut found);
    found
}

/// Other values for a leaf.
fn edits(leaf: &Value) -> Vec<Value> {
    match leaf {
        Value::Number(number) => match number.as_u64() {
            Some(n) => vec![(n + 1).into()],
            None => {
                let x = number.as_f64().unwrap();
                vec![(x + x.abs().max(1e-300) * 1e-12).into(), (-x).into()]
            }
        },
        Value::String(text) => vec![format!("{text}x").into()],
        Value::Bool(flag) => vec![(!flag).into()],
        _ => vec![0.into()],
    }
}

/// Writes both hashes again, as someone would who wants the edit to go unnoticed.
fn reseal(file: &mut Value) {
    file["certificate"]["model_sha256"] = canonical::sha256(&file["model"]).into();
    file["certificate_sha256"] = canonical::sha256(&file["certificate"]).into();
}

#[test]
fn an_untouched_model_holds_however_it_is_laid_out() {
    for extra in [
        &["--epsilon", "1"][..],
        &["--epsilon", "0.5", "--delta", "1e-6"],
        &["--epsilon", "1", "--algorithm", "bolt-on-strongly-convex"],
        &["--epsilon", "1", "--delta", "1e-7", "--algorithm", "bolt-on-strongly-convex", "--loss", "huber-svm"],
        &["--epsilon", "2", "--adjacency", "add-remove", "--float", "f32"],
    ] {
        let (place, file) = trained(extra);
        let verified = place.dp(&["verify", "model.json", "--json"]).json();
        assert_eq!(verified["schema"], "dp.verify/1", "{extra:?}");
        assert_eq!(verified["holds"], true, "{extra:?}");
        assert!(verified["epsilon"].as_f64().unwrap() <= extra[1].parse::<f64>().unwrap(), "{verified}");
        place.write("tight.json", canonical::text(&file));
        place.dp(&["verify", "tight.json"]).ok();
    }
}

#[test]
fn every_edit_is_found_out() {
    let (place, file) = trained(&["--epsilon", "1", "--delta", "1e-6"]);
    let leaves = all_leaves(&file);
    assert!(leaves.len() > 40, "{leaves:?}");
    for path in leaves {
        for edit in edits(file.pointer(&path).unwrap()) {
            let mut edited = file.clone();
            *edited.pointer_mut(&path).unwrap() = edit.clone();
            place.write("edited.json", edited.to_string());
            let run = place.dp(&["verify", "edited.json"]);
            assert_eq!(run.code, 5, "{path} = {edit}: {run:#?}");
        }
    }
}

#[test]
fn a_missing_or_additional_member_is_found_out() {
    let (place, file) = trained(&["--epsilon", "1"]);
    for part in ["model", "certificate"] {
        for name in file[part].as_object().unwrap().keys() {
            let mut edited = file.clone();
            edited[part].as_object_mut().unwrap().remove(name);
            place.write("edited.json", edited.to_string());
            assert_eq!(place.dp(&["verify", "edited.json"]).code, 5, "{part}/{name}");
        }
        let mut edited = file.clone();
        edited[part]["approved_by"] = "the board".into();
        place.write("edited.json", edited.to_string());
        assert_eq!(place.dp(&["verify", "edited.json"]).code, 5);
        reseal(&mut edited);
        place.write("edited.json", edited.to_string());
        place.dp(&["verify", "edited.json"]).fails(3, "model.format");
    }
    for name in ["model", "certificate", "certificate_sha256"] {
        let mut edited = file.clone();
        edited.as_object_mut().unwrap().remove(name);
        place.write("edited.json", edited.to_string());
        place.dp(&["verify", "edited.json"]).fails(3, "model.format");
    }
}

/// Parts of the certificate that someone can change and seal again without changing what is promised: a wider
/// statement is true as well, and names of versions are free text.
fn promises_no_more(path: &str) -> bool {
    path.starts_with("/certificate/versions/") || path.starts_with("/certificate/requested/")
}

#[test]
fn resealed_edits_of_the_certificate_are_found_out() {
    for extra in [
        &["--epsilon", "1"][..],
        &["--epsilon", "1", "--delta", "1e-6"],
        &["--epsilon", "1", "--delta", "1e-6", "--algorithm", "bolt-on-strongly-convex"],
    ] {
        let (place, file) = trained(extra);
        for path in all_leaves(&file).iter().filter(|path| path.starts_with("/certificate/")) {
            if promises_no_more(path) || path.ends_with("/model_sha256") {
                continue;
            }
            let leaf = file.pointer(path).unwrap();
            let edits = match leaf.as_f64() {
                Some(x) if leaf.is_f64() => vec![Value::from(0.9 * x)],
                _ => edits(leaf),
            };
            for edit in edits {
                let mut edited = file.clone();
                *edited.pointer_mut(path).unwrap() = edit.clone();
                reseal(&mut edited);
                place.write("edited.json", edited.to_string());
                let run = place.dp(&["verify", "edited.json"]);
                assert!(run.code == 5 || run.code == 3, "{extra:?} {path} = {edit}: {run:#?}");
            }
        }
    }
}

#[test]
fn a_certificate_belongs_to_its_model() {
    let (place, mut one) = trained(&["--epsilon", "1"]);
    let (_, other) = trained(&["--epsilon", "1"]);
    assert_ne!(one["model"]["weights"], other["model"]["weights"], "noise is fresh");
    one["model"] = other["model"].clone();
    place.write("mixed.json", one.to_string());
    place.dp(&["verify", "mixed.json"]).fails(5, "verify.model_hash");
}

#[test]
fn what_is_not_private_does_not_hold() {
    let (place, _) = trained(&["--epsilon", "1", "--seed", "7"]);
    place.dp(&["verify", "model.json"]).fails(5, "verify.not_private").says("seed");
    let (place, _) = trained(&["--algorithm", "non-private"]);
    place.dp(&["verify", "model.json"]).fails(5, "verify.not_private");
    let (place, mut file) = trained(&["--epsilon", "1", "--seed", "7"]);
    file["certificate"]["private"] = true.into();
    reseal(&mut file);
    place.write("lie.json", file.to_string());
    assert_eq!(place.dp(&["verify", "lie.json"]).code, 5);
}

#[test]
fn files_that_are_no_models() {
    let place = Workplace::new();
    place.dp(&["verify", "nothing.json"]).fails(1, "model.read");
    for content in [
        "",
        "{}",
        "[1]",
        "{\"model\":1,\"model\":2}",
        "\u{fffd}",
        "{\"model\":{},\"certificate\":{},\"certificate_sha256\":\"\"}x",
    ] {
        place.write("x.json", content);
        place.dp(&["verify", "x.json"]).fails(3, "model.format");
    }
    place.write("x.json", [0xff, 0xfe]);
    place.dp(&["verify", "x.json"]).fails(3, "model.format");
}

#[test]
fn certificates_say_what_was_assumed_and_nothing_about_the_machine() {
    let (place, file) = trained(&["--epsilon", "1", "--delta", "1e-6"]);
    let text = canonical::text(&file);
    for secret in [place.path("").to_str().unwrap(), "people.csv", env!("CARGO_MANIFEST_DIR")] {
        assert!(!text.contains(secret), "{secret}");
    }
    let assumptions = file["certificate"]["assumptions"].as_array().unwrap();
    let named = |name: &str| assumptions.iter().find(|entry| entry["assumption"] == name);
    assert!(named("public_n").is_some() && named("row_norm").is_some() && named("idealised_float").is_some());
    let public = named("assumed_public").expect("columns taken from the data")["columns"].as_array().unwrap();
    for column in ["age", "hours", "trade"] {
        assert!(public.contains(&column.into()), "{column}: {public:?}");
    }
}
