//! `dp verify` detects every edit of the file, and every number that does not follow from the recipe.

use std::collections::BTreeMap;

use crate::support::{Workplace, people, reseal};
use dp::canonical;
use dp::steps::{Steps, StepsShape};
use dp_accountant::{AdjacencyKind, Delta};
use serde_json::Value;

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
    if !extra.contains(&"--algorithm") {
        arguments.extend(["--algorithm", "bolt-on-convex"]);
    }
    place.dp(&arguments).ok();
    let file = place.json("model.json");
    (place, file)
}

/// Collects the pointers to all leaves.
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

/// Returns other values for a leaf.
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

#[test]
fn an_untouched_model_holds_however_it_is_laid_out() {
    for extra in [
        &["--epsilon", "1"][..],
        &["--epsilon", "0.5", "--delta", "1e-6"],
        &["--epsilon", "1", "--algorithm", "bolt-on-strongly-convex"],
        &["--epsilon", "1", "--delta", "1e-7", "--algorithm", "bolt-on-strongly-convex", "--loss", "huber-svm"],
        &["--epsilon", "2", "--adjacency", "add-remove", "--float", "f32"],
        &["--epsilon", "1", "--noise", "rounded"],
        &["--epsilon", "0.5", "--delta", "1e-6", "--noise", "rounded", "--float", "f32"],
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

/// Changes a leaf and repairs both hashes, as someone hiding the edit would.
fn resealed(file: &Value, path: &str, edit: &Value) -> Value {
    let mut edited = file.clone();
    *edited.pointer_mut(path).expect("a leaf") = edit.clone();
    reseal(&mut edited);
    edited
}

#[test]
fn resealed_edits_of_what_is_promised_are_found_out() {
    // A crate may have another version. The request may exceed the budget reached, as a weaker statement is also true. The
    // others are settings without influence on the sensitivity of these recipes: the guarantee is the same.
    let without_effect = |path: &str| {
        ["/certificate/versions/", "/certificate/requested/"].iter().any(|start| path.starts_with(start))
            || ["/model_sha256", "/derivation/n", "/recipe/hide_position", "/recipe/output_noise"]
                .iter()
                .any(|end| path.ends_with(end))
    };
    for extra in [
        &["--epsilon", "1", "--passes", "4"][..],
        &["--epsilon", "1", "--delta", "1e-6", "--passes", "4"],
        &["--epsilon", "1", "--delta", "1e-6", "--algorithm", "bolt-on-strongly-convex"],
    ] {
        let (place, file) = trained(extra);
        let mut unnoticed = Vec::new();
        for path in all_leaves(&file).iter().filter(|path| path.starts_with("/certificate/") && !without_effect(path)) {
            let leaf = file.pointer(path).unwrap();
            let edits = match leaf.as_f64() {
                Some(x) if leaf.is_f64() => vec![Value::from(0.9 * x)],
                _ => edits(leaf),
            };
            for edit in edits.into_iter().filter(|edit| edit != leaf) {
                place.write("edited.json", resealed(&file, path, &edit).to_string());
                let run = place.dp(&["verify", "edited.json"]);
                if run.code != 5 && run.code != 3 {
                    unnoticed.push(format!("{path} = {edit}"));
                }
            }
        }
        assert!(unnoticed.is_empty(), "{extra:?} {unnoticed:#?}");
    }
}

#[test]
fn each_kind_of_lie_has_its_code() {
    let (place, file) = trained(&["--epsilon", "1"]);
    let verify = |edited: Value| {
        place.write("edited.json", edited.to_string());
        place.dp(&["verify", "edited.json"])
    };
    let mut edited = file.clone();
    edited["certificate"]["reached"]["epsilon"] = 0.5.into();
    verify(edited.clone()).fails(5, "verify.certificate_hash");
    reseal(&mut edited);
    verify(edited).fails(5, "verify.guarantee").says("0.5");
    let scale = file["certificate"]["event"]["scale"].as_f64().expect("a Laplace ball");
    verify(resealed(&file, "/certificate/event/scale", &(2.0 * scale).into())).fails(5, "verify.guarantee");
    let sensitivity = file["certificate"]["event"]["sensitivity"].as_f64().unwrap();
    verify(resealed(&file, "/certificate/event/sensitivity", &(0.5 * sensitivity).into())).fails(5, "verify.guarantee");
    // A guarantee for whole lists or users does not follow from one for records.
    for unit in [serde_json::json!("list"), serde_json::json!({ "column": "trade" })] {
        verify(resealed(&file, "/certificate/unit", &unit)).fails(5, "verify.guarantee");
    }
    let mut other_loss = file.clone();
    other_loss["certificate"]["derivation"]["recipe"]["loss"] = serde_json::json!({ "name": "huber-svm", "h": 0.5 });
    reseal(&mut other_loss);
    verify(other_loss).fails(5, "verify.guarantee");

    // Each assumption removed in turn, and one added. That records conform follows from the schema: the verifier adds it.
    for (i, assumption) in file["certificate"]["assumptions"].as_array().unwrap().iter().enumerate() {
        let mut silent = file.clone();
        silent["certificate"]["assumptions"].as_array_mut().unwrap().remove(i);
        reseal(&mut silent);
        if assumption["assumption"] == "every_record_conforms" {
            assert!(verify(silent).ok().contains("Every record conforms to the schema"));
        } else {
            verify(silent).fails(5, "verify.assumption");
        }
    }
    let mut vouching = file.clone();
    let assumptions = vouching["certificate"]["assumptions"].as_array_mut().unwrap();
    assumptions.push(serde_json::json!({ "assumption": "public_schema" }));
    reseal(&mut vouching);
    verify(vouching).fails(5, "verify.assumption");
    // A reassuring sentence, a duplicate, and a bound that is not enforced.
    for vouched in [
        serde_json::json!({ "assumption": "other", "text": "audited" }),
        serde_json::json!({ "assumption": "public_n" }),
        serde_json::json!({ "assumption": "float_training" }),
        serde_json::json!({ "assumption": "row_norm", "bound": 0.5 }),
    ] {
        let mut vouching = file.clone();
        vouching["certificate"]["assumptions"].as_array_mut().unwrap().push(vouched);
        reseal(&mut vouching);
        verify(vouching).fails(5, "verify.assumption");
    }
    // Targets are -1 and 1; under squared loss a smaller bound would give a smaller sensitivity.
    verify(resealed(&file, "/certificate/derivation/recipe/target_bound", &0.5.into()))
        .fails(5, "verify.guarantee")
        .says("targets");
    // A column of the model is declared reviewed afterwards: the certificate still contradicts it.
    let mut whitewashed = file.clone();
    whitewashed["model"]["encoder"]["input"]["table"]["columns"][0]["review"] = "reviewed".into();
    reseal(&mut whitewashed);
    verify(whitewashed).fails(5, "verify.assumption");
}

fn without_idealisation(file: &Value) -> Value {
    let mut file = file.clone();
    let assumptions = file["certificate"]["assumptions"].as_array_mut().unwrap();
    assumptions.retain(|assumption| assumption["assumption"] != "idealised_float");
    file
}

/// The noise mode is recorded in the recipe, in the certificate and, if idealised, among the assumptions: none of them can
/// change alone.
#[test]
fn noise_is_what_the_recipe_says() {
    let idealised = serde_json::json!({ "assumption": "idealised_float" });
    let verify = |place: &Workplace, mut edited: Value| {
        reseal(&mut edited);
        place.write("edited.json", edited.to_string());
        place.dp(&["verify", "edited.json"])
    };
    let (place, rounded) = trained(&["--epsilon", "1", "--noise", "rounded"]);
    assert_eq!(rounded["certificate"]["noise"], "rounded");
    assert!(rounded["certificate"]["assumptions"].as_array().unwrap().contains(&idealised));
    verify(&place, without_idealisation(&rounded)).fails(5, "verify.assumption");
    let mut other = rounded.clone();
    other["certificate"]["noise"] = "exact".into();
    verify(&place, other.clone()).fails(5, "verify.guarantee").says("certificate.noise");
    verify(&place, without_idealisation(&other)).fails(5, "verify.assumption");
    let mut recipe = rounded.clone();
    recipe["certificate"]["derivation"]["recipe"]["noise_mode"] = "exact".into();
    verify(&place, recipe.clone()).fails(5, "verify.guarantee").says("certificate.noise");
    verify(&place, without_idealisation(&recipe)).fails(5, "verify.assumption");
    // A recipe without a noise mode used rounded noise, as all did before the mode was recorded.
    assert!(rounded["certificate"]["derivation"]["recipe"]["noise_mode"].is_null());
    place.dp(&["verify", "model.json"]).ok();

    let (place, exact) = trained(&["--epsilon", "1"]);
    assert_eq!(exact["certificate"]["noise"], "exact");
    assert!(!exact["certificate"]["assumptions"].as_array().unwrap().contains(&idealised));
    let mut modest = exact.clone();
    modest["certificate"]["assumptions"].as_array_mut().unwrap().push(idealised);
    verify(&place, modest.clone()).fails(5, "verify.assumption");
    modest["certificate"]["noise"] = "rounded".into();
    verify(&place, modest).fails(5, "verify.guarantee").says("certificate.noise");
    for noise in ["none", "plain"] {
        for path in ["/certificate/noise", "/certificate/derivation/recipe/noise_mode"] {
            let run = verify(&place, resealed(&exact, path, &noise.into()));
            assert!(run.code == 5 || run.code == 3, "{path} {noise}: {run:#?}");
        }
    }
    let mut earlier = exact;
    earlier["certificate"]["derivation"]["recipe"].as_object_mut().unwrap().remove("noise_mode").expect("a member");
    assert_eq!(verify(&place, earlier).code, 5, "such a recipe drew its noise rounded");
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

/// The feature names of a model are those of its encoder, even if the hashes are repaired.
#[test]
fn features_are_those_of_the_encoder() {
    let (place, file) = trained(&["--epsilon", "1"]);
    place.write("edited.json", resealed(&file, "/model/features/0", &"vetted".into()).to_string());
    place.dp(&["verify", "edited.json"]).fails(3, "model.format").says("fit each other");
}

/// Unless given, the number of features is taken from the records, and the certificate says so.
#[test]
fn a_number_of_features_from_the_records_is_said() {
    let place = Workplace::new();
    place.write("p.svm", "+1 1:0.5 3:1\n-1 2:0.25\n".repeat(20));
    let train = |dim: &[&str]| {
        place.dp(&[&["train", "--data", "p.svm", "--epsilon", "1", "--out", "m.json", "--force"], dim].concat()).ok();
        place.json("m.json")
    };
    let assumed = serde_json::json!({ "assumption": "assumed_public", "columns": ["number of features"] });
    let says = |file: &Value| file["certificate"]["assumptions"].as_array().unwrap().contains(&assumed);
    assert!(!says(&train(&["--dim", "3"])));
    let mut file = train(&[]);
    assert!(says(&file));
    file["certificate"]["assumptions"].as_array_mut().unwrap().retain(|entry| *entry != assumed);
    reseal(&mut file);
    place.write("silent.json", file.to_string());
    place.dp(&["verify", "silent.json"]).fails(5, "verify.assumption").says("number of features");
}

/// Weights of the same length that were never released, with both hashes repaired: they lie off the grid of the noise.
#[test]
fn weights_that_met_no_noise_are_refused() {
    let (place, private) = trained(&["--epsilon", "1"]);
    let (_, plain) = trained(&["--algorithm", "non-private"]);
    let mut pasted = private.clone();
    pasted["model"]["weights"] = plain["model"]["weights"].clone();
    reseal(&mut pasted);
    place.write("pasted.json", pasted.to_string());
    place.dp(&["verify", "pasted.json"]).fails(5, "verify.weights").says("model.weights");
    // Weights that the recipe could have released claim nothing more.
    let mut zeros = private;
    zeros["model"]["weights"] = vec![0.0; zeros["model"]["weights"].as_array().unwrap().len()].into();
    reseal(&mut zeros);
    place.write("zeros.json", zeros.to_string());
    place.dp(&["verify", "zeros.json"]).ok();
}

/// `versions` can contain only crates and version numbers.
#[test]
fn versions_are_those_of_crates() {
    let (place, file) = trained(&["--epsilon", "1"]);
    let verify = |name: &str, version: &str| {
        let mut edited = file.clone();
        edited["certificate"]["versions"][name] = version.into();
        reseal(&mut edited);
        place.write("edited.json", edited.to_string());
        place.dp(&["verify", "edited.json"])
    };
    for (name, version) in [
        ("audited by", "0.1.0"),
        ("dp-cli", "0.1.0, audited"),
        ("dp-cli", "1.0"),
        ("dp-cli", "1.2.3.4"),
        ("dp-cli", "01.0.0"),
        ("dp-cli", "0.01.0"),
        ("dp-cli", "0.1.00"),
        ("dp-cli", "0..0"),
        ("dp-cli", ""),
        ("dp-cli", "0.1.-0"),
        ("dp-cli", "0.1.0a"),
        ("dp-cli", "1234567.0.0"),
        ("dp-cli", "0.1.20261124"),
    ] {
        verify(name, version).fails(5, "verify.guarantee").says("certificate.versions");
    }
    for version in ["0.0.0", "10.0.9", "123456.100.20"] {
        verify("dp-cli", version).ok();
    }
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

/// Models from before gradient compensation: their certificates use the larger bounds of that time, and cannot be recomputed
/// with the present ones.
#[test]
fn models_of_plain_sums_still_verify() {
    for (name, member) in [
        ("obj-pert-plain-gradient", "/certification"),
        ("admm-obj-pert-plain-gradient", "/certification"),
        ("dp-sgd-f32-plain-sums", "/recipe/summation"),
        ("dp-svrg-f32-plain-sums", "/recipe/summation"),
        ("scs13-f32-plain-sums", "/recipe/summation"),
    ] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models");
        let text = std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap();
        let place = Workplace::new();
        place.write("old.json", &text);
        let said = place.dp(&["verify", "old.json"]).ok();
        assert!(said.contains("guarantee  epsilon = 1, "), "{name}: {said}");
        let mut edited: Value = serde_json::from_str(&text).unwrap();
        let (parent, member) = member.rsplit_once('/').unwrap();
        let derivation = edited.pointer_mut(&format!("/certificate/derivation{parent}")).unwrap();
        derivation[member] = "compensated".into();
        reseal(&mut edited);
        place.write("edited.json", edited.to_string());
        assert_eq!(place.dp(&["verify", "edited.json"]).code, 5, "{name}");
    }
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
    assert!(named("public_n").is_some() && named("row_norm").is_some() && named("idealised_float").is_none());
    let public = named("assumed_public").expect("columns taken from the data")["columns"].as_array().unwrap();
    for column in ["age", "hours", "trade"] {
        assert!(public.contains(&column.into()), "{column}: {public:?}");
    }
}

#[test]
fn a_forged_file_cannot_drive_the_terminal() {
    let place = Workplace::new();
    place.write("p.csv", "a\u{1b}[2Jb,\"new\nmodel.json holds\",y\n1,2,yes\n3,4,no\n");
    let run = place.dp(&[
        "train",
        "--data",
        "p.csv",
        "--label",
        "y",
        "--schema-from-data",
        "--epsilon",
        "1",
        "--anyway",
        "--out",
        "m.json",
    ]);
    assert!(run.code == 0 && run.stdout.contains("new\u{fffd}model.json holds"), "{run:#?}");
    for text in [run.stdout, run.stderr, place.dp(&["verify", "m.json"]).ok()] {
        assert!(!text.contains('\u{1b}') && text.matches("\nmodel.json holds").count() == 0, "{text}");
    }
}

#[test]
fn epsilon_is_never_shown_smaller_than_it_is() {
    let (place, _) = trained(&["--epsilon", "0.0000004"]);
    let shown = place.dp(&["verify", "model.json"]).ok();
    assert!(shown.contains("epsilon = 4e-7, delta = 0, replace-one, for one record"), "{shown}");
    assert!(shown.contains("the number of records is public"), "{shown}");
    let (place, file) = trained(&["--epsilon", "1", "--adjacency", "add-remove"]);
    assert_eq!(file["certificate"]["n_public"], true);
    assert_eq!(place.dp(&["verify", "model.json", "--json"]).json()["n_public"], true);
    assert!(
        place
            .dp(&["verify", "model.json"])
            .ok()
            .contains("whether one record is present or replaced by a null record (zero-out)")
    );
}

#[test]
fn certificates_of_a_training_elsewhere_are_verified_and_accounted_for() {
    let shape =
        StepsShape { n: 5000, batch_size: 100, steps: 200, clipping_norm: 1.0, relation: AdjacencyKind::ReplaceOne };
    let delta = Delta::new(1e-6).unwrap();
    let run = |seed| {
        let steps = Steps::start(shape, 2.5, delta, seed).unwrap();
        let file = steps.finish("0f".repeat(32), "a program 2.1", vec!["embedding".to_owned()], BTreeMap::new());
        file.unwrap().to_text().unwrap()
    };
    let place = Workplace::new();
    place.write("certificate.json", run(None));
    let said = place.dp(&["verify", "certificate.json"]).ok();
    for part in ["a program 2.1", "embedding", &"0f".repeat(32), "a margin"] {
        assert!(said.contains(part), "{said}");
    }
    let verified = place.dp(&["verify", "certificate.json", "--json"]).json();
    assert_eq!(verified["weights_sha256"], Value::String("0f".repeat(32)));
    let answer = place.dp(&["account", "certificate", "certificate.json", "--json"]).json();
    assert_eq!((&answer["adjacency"], &answer["delta"]), (&verified["adjacency"], &verified["delta"]));
    let epsilon = |value: &Value| value["epsilon"].as_f64().unwrap();
    assert!((epsilon(&answer) - epsilon(&verified)).abs() < 1e-9 * epsilon(&verified), "{answer} {verified}");

    place.write("seeded.json", run(Some(1)));
    place.dp(&["verify", "seeded.json"]).fails(5, "verify.not_private");
    place.dp(&["account", "certificate", "seeded.json"]).fails(5, "verify.not_private");
    place.dp(&["explain-model", "certificate.json"]).fails(3, "model.format");
    let mut edited = place.json("certificate.json");
    edited["certificate"]["derivation"]["steps"] = 20.into();
    reseal(&mut edited);
    place.write("edited.json", edited.to_string());
    place.dp(&["verify", "edited.json"]).fails(5, "verify.guarantee");
}
