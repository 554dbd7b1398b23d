//! `dp sign` and `dp verify --key`: a curator's signature of a model.

use crate::support::{Workplace, people};
use dp::canonical;
use serde_json::Value;

fn trained() -> Workplace {
    let place = Workplace::new();
    place.write("people.csv", people(300, 5));
    train(&place, "model.json");
    place
}

fn train(place: &Workplace, out: &str) {
    let table = ["train", "--data", "people.csv", "--label", "earns", "--positive", "yes", "--schema-from-data"];
    place.dp(&[&table[..], &["--epsilon", "1", "--out", out]].concat()).ok();
}

#[test]
fn from_a_key_to_a_verified_signature() {
    let place = trained();
    let made = place.dp(&["sign", "new-key", "curator.key", "--json"]).json();
    assert_eq!((&made["schema"], &made["public_key_file"]), (&"dp.sign-new-key/1".into(), &"curator.key.pub".into()));
    assert!(place.read("curator.key").starts_with("-----BEGIN PRIVATE KEY-----"));
    assert!(place.read("curator.key.pub").starts_with("-----BEGIN PUBLIC KEY-----"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(place.path("curator.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    }
    let signed = place.dp(&["sign", "model", "model.json", "--key", "curator.key", "--json"]).json();
    let statement = "The noise of this release was drawn once, from the system's generator.";
    assert_eq!((&signed["statement"], &signed["signature_file"]), (&statement.into(), &"model.json.sig".into()));
    let verified = place.dp(&["verify", "model.json", "--key", "curator.key.pub", "--json"]).json();
    assert_eq!((&verified["signed"], &verified["holds"]), (&statement.into(), &true.into()));
    assert_eq!(verified["certificate_sha256"], signed["certificate_sha256"]);
    assert!(place.dp(&["verify", "model.json", "--key", "curator.key.pub"]).ok().contains(statement));
    assert!(place.dp(&["verify", "model.json", "--json"]).json().get("signed").is_none());
    // With standard input, the signature must be given by flag.
    let model = place.read("model.json");
    let named = ["verify", "-", "--key", "curator.key.pub", "--signature", "model.json.sig"];
    place.dp_with_input(&named, model.as_bytes()).ok();
    place.dp_with_input(&named[..4], model.as_bytes()).fails(2, "usage.conflict");
    place.dp_with_input(&["sign", "model", "-", "--key", "curator.key"], model.as_bytes()).fails(2, "usage.conflict");
}

#[test]
fn keys_and_signatures_are_never_lost() {
    let place = trained();
    place.dp(&["sign", "new-key", "a.key"]).ok();
    let (secret, public) = (place.read("a.key"), place.read("a.key.pub"));
    place.dp(&["sign", "new-key", "a.key"]).fails(1, "output.exists");
    std::fs::remove_file(place.path("a.key")).unwrap();
    // If one of the two key files cannot be created, neither is.
    place.dp(&["sign", "new-key", "a.key"]).fails(1, "output.exists");
    assert!(!place.path("a.key").exists() && place.read("a.key.pub") == public);
    place.write("a.key", secret);
    place.dp(&["sign", "model", "model.json", "--key", "a.key"]).ok();
    place.dp(&["sign", "model", "model.json", "--key", "a.key"]).fails(1, "output.exists");
    place.dp(&["sign", "model", "model.json", "--key", "a.key", "--force"]).ok();
    assert!(place.files().iter().all(|name| !name.ends_with(".part")), "{:?}", place.files());
}

/// The command that the summary recommends runs.
#[test]
fn the_next_command_names_a_signature_elsewhere() {
    let place = trained();
    place.dp(&["sign", "new-key", "a.key"]).ok();
    for (out, rest) in [(&[][..], ""), (&["--out", "elsewhere.sig"][..], " --signature elsewhere.sig")] {
        let said = place.dp(&[&["sign", "model", "model.json", "--key", "a.key"], out].concat()).ok();
        let next = format!("next       dp verify model.json --key a.key.pub{rest}");
        assert!(said.lines().any(|line| line == next), "{said}");
        place.dp(&next.split_whitespace().skip(2).collect::<Vec<_>>()).ok();
    }
    // The public key is no output, and standard output is taken.
    let over = ["sign", "model", "model.json", "--key", "a.key", "--force", "--out"];
    place.dp(&[&over[..], &["a.key.pub"]].concat()).fails(2, "usage.conflict");
    place.dp(&[&over[..], &["-"]].concat()).fails(2, "usage.value").says("standard output");
    std::fs::remove_file(place.path("a.key.pub")).unwrap();
    let said = place.dp(&["sign", "model", "model.json", "--key", "a.key", "--force"]).ok();
    assert!(!said.contains("next"), "{said}");
}

#[test]
fn other_keys_files_and_models_are_refused() {
    let place = trained();
    for key in ["a.key", "b.key"] {
        place.dp(&["sign", "new-key", key]).ok();
    }
    place.dp(&["sign", "model", "model.json", "--key", "a.key"]).ok();
    place.dp(&["verify", "model.json", "--key", "b.key.pub"]).fails(5, "verify.signature").says("another key");
    place.dp(&["verify", "model.json", "--key", "a.key"]).fails(3, "key.format").says("secret");
    place
        .dp(&["sign", "model", "model.json", "--key", "a.key.pub", "--out", "x.sig"])
        .fails(3, "key.format")
        .says("public");
    place.dp(&["verify", "model.json", "--key", "none.pub"]).fails(1, "key.read");
    place.dp(&["verify", "model.json", "--key", "people.csv"]).fails(3, "key.format");
    train(&place, "other.json");
    place.dp(&["verify", "other.json", "--key", "a.key.pub"]).fails(1, "signature.read");
    place
        .dp(&["verify", "other.json", "--key", "a.key.pub", "--signature", "model.json.sig"])
        .fails(5, "verify.signature")
        .says("another certificate");
    // A signature of one certificate, relabelled for the other.
    let mut relabelled: Value = place.json("model.json.sig");
    relabelled["certificate_sha256"] = place.json("other.json")["certificate_sha256"].clone();
    place.write("relabelled.sig", relabelled.to_string());
    place
        .dp(&["verify", "other.json", "--key", "a.key.pub", "--signature", "relabelled.sig"])
        .fails(5, "verify.signature")
        .says("does not hold");
    place.write("bad.sig", "{}");
    place.dp(&["verify", "model.json", "--key", "a.key.pub", "--signature", "bad.sig"]).fails(3, "signature.format");
    let mut edited: Value = place.json("model.json.sig");
    for member in ["signature", "statement", "certificate_sha256", "public_key"] {
        let mut file = edited.clone();
        let turned: String = file[member].as_str().unwrap().chars().rev().collect();
        file[member] = turned.into();
        place.write("edited.sig", file.to_string());
        let run = place.dp(&["verify", "model.json", "--key", "a.key.pub", "--signature", "edited.sig"]);
        run.fails(5, "verify.signature");
    }
    edited["note"] = "the board has seen it".into();
    place.write("edited.sig", edited.to_string());
    let run = place.dp(&["verify", "model.json", "--key", "a.key.pub", "--signature", "edited.sig"]);
    run.fails(3, "signature.format");
}

#[test]
fn nobody_vouches_for_what_does_not_hold() {
    let place = trained();
    place.dp(&["sign", "new-key", "a.key"]).ok();
    let mut file = place.json("model.json");
    file["certificate"]["reached"]["epsilon"] = 0.5.into();
    file["certificate_sha256"] = canonical::sha256(&file["certificate"]).into();
    place.write("lie.json", file.to_string());
    place.dp(&["sign", "model", "lie.json", "--key", "a.key"]).fails(5, "verify.guarantee");
    assert!(!place.path("lie.json.sig").exists());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(place.path("a.key"), std::fs::Permissions::from_mode(0o644)).unwrap();
        let run = place.dp(&["sign", "model", "model.json", "--key", "a.key"]);
        assert!(run.code == 0 && run.stderr.contains("others may read"), "{run:#?}");
    }
}
