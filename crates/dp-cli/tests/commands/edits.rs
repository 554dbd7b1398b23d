//! Files of every algorithm and of rankers are edited and their hashes repaired: each number, word and flag of the
//! certificate in turn, each member removed, and weights replaced by some without noise. With `--nocapture` it prints the
//! numbers of tried and refused edits.

#![allow(clippy::print_stdout, reason = "the table is what people run this test for")]

use crate::algorithms::table::ALGORITHMS;
use crate::support::{Workplace, lists, people, reseal};
use dp::model::ModelFile;
use dp::ranker::{RankerFile, SCHEMA as RANKER};
use dp::sealed::Sealed;
use dp::verify::{self, Verification};
use serde_json::Value;

/// Verifies a file as `dp verify` does.
fn verified(file: &Value) -> Result<Verification, dp::Error> {
    let sealed = Sealed::parse(file.to_string().as_bytes())?;
    match sealed.format() {
        Some(RANKER) => verify::ranker(&RankerFile::from_sealed(sealed)?),
        _ => verify::model(&ModelFile::from_sealed(sealed)?, verify::WORK),
    }
}

/// Collects the pointers to all leaves under `path`, and to all members.
fn pointers(value: &Value, path: &str, leaves: &mut Vec<String>, members: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                pointers(item, &format!("{path}/{i}"), leaves, members);
            }
        }
        Value::Object(object) => {
            for (name, member) in object {
                let path = format!("{path}/{name}");
                members.push(path.clone());
                pointers(member, &path, leaves, members);
            }
        }
        _ => leaves.push(path.to_owned()),
    }
}

/// Returns other values for a leaf.
fn edits(leaf: &Value) -> Vec<Value> {
    match leaf {
        Value::Number(number) => match number.as_u64() {
            Some(n) => vec![n.saturating_add(1).into(), n.saturating_sub(1).into()],
            None => {
                let x = number.as_f64().unwrap();
                vec![(0.9 * x).into(), (1.1 * x).into(), (-x).into()]
            }
        },
        Value::String(text) => vec![format!("{text}x").into(), "".into()],
        Value::Bool(flag) => vec![(!flag).into()],
        _ => vec![0.into(), true.into()],
    }
}

/// The numbers of tried and refused edits of a kind.
#[derive(Default, Clone, Copy)]
struct Count {
    tried: usize,
    refused: usize,
}

impl Count {
    /// Counts an edit; returns whether it was refused.
    fn add(&mut self, outcome: &Result<Verification, dp::Error>) -> bool {
        self.tried += 1;
        self.refused += usize::from(outcome.is_err());
        outcome.is_err()
    }
}

/// Path endings of edits outside the recipe that do not change the guarantee: a weaker request is equally true, and a crate
/// may be missing or have another version. Within the recipe, settings without influence on the guarantee may change. All
/// other edits must be refused.
const WITHOUT_EFFECT: &[&str] = &[
    "/requested/epsilon",
    "/requested/delta",
    "/certificate/requested",
    "/versions/dp-cli",
    "/versions/dp-optim",
    "/versions/dp-rank",
    "/certificate/versions",
];

/// Applies all edits to a file: numbers, words and flags, and removed members.
fn sweep(name: &str, file: &Value, unnoticed: &mut Vec<String>) -> [Count; 3] {
    let honest = verified(file).unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
    let (mut leaves, mut members) = (Vec::new(), Vec::new());
    pointers(&file["certificate"], "/certificate", &mut leaves, &mut members);
    let mut counts = [Count::default(); 3];
    let mut judge = |count: &mut Count, path: &str, to: &str, mut edited: Value| {
        reseal(&mut edited);
        let outcome = verified(&edited);
        if count.add(&outcome) {
            return;
        }
        let stated = outcome.unwrap();
        let same = (stated.epsilon / honest.epsilon - 1.0).abs() < 1e-9 && stated.delta == honest.delta;
        let allowed =
            path.starts_with("/certificate/derivation/") || WITHOUT_EFFECT.iter().any(|end| path.ends_with(end));
        if !(same && allowed) {
            unnoticed.push(format!("{name}: {path} = {to}: epsilon {} of {}", stated.epsilon, honest.epsilon));
        }
    };
    for path in leaves.iter().filter(|path| !path.ends_with("/model_sha256")) {
        let leaf = file.pointer(path).unwrap();
        for edit in edits(leaf).into_iter().filter(|edit| edit != leaf) {
            let mut edited = file.clone();
            *edited.pointer_mut(path).unwrap() = edit.clone();
            let kind = usize::from(!leaf.is_number());
            judge(&mut counts[kind], path, &edit.to_string(), edited);
        }
    }
    for path in members.iter().filter(|path| !path.ends_with("/model_sha256")) {
        let (parent, member) = path.rsplit_once('/').unwrap();
        let mut edited = file.clone();
        edited.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(member);
        judge(&mut counts[2], path, "left out", edited);
    }
    counts
}

/// Returns the file with other weights.
fn with_weights(file: &Value, weights: &[f64]) -> Value {
    let mut edited = file.clone();
    edited["model"]["weights"] = weights.into();
    reseal(&mut edited);
    edited
}

#[test]
fn resealed_edits_and_pasted_weights() {
    let place = Workplace::new();
    place.write("people.csv", people(400, 31));
    let table = ["train", "--data", "people.csv", "--label", "earns", "--positive", "yes", "--schema-from-data"];
    let train = |more: &[&str]| {
        place.dp(&[&table[..], more, &["--out", "m.json", "--force"]].concat()).ok();
        place.json("m.json")
    };
    let plain = train(&["--algorithm", "non-private", "--passes", "3"]);
    let plain: Vec<f64> = plain["model"]["weights"].as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect();
    println!("{:<26}{:>18}{:>18}{:>18}{:>12}", "tried/refused", "numbers", "words, flags", "left out", "weights");
    let line = |name: &str, counts: [Count; 4]| {
        let [a, b, c, d] = counts.map(|count| format!("{}/{}", count.tried, count.refused));
        println!("{name:<26}{a:>18}{b:>18}{c:>18}{d:>12}");
    };
    let mut unnoticed = Vec::new();
    for row in ALGORITHMS {
        let file = train(&[&["--algorithm", row.name], row.runs[0]].concat());
        let [numbers, words, members] = sweep(row.name, &file, &mut unnoticed);
        // Another run, sometimes with a radius; also short weights, which lie in any ball.
        let file = train(&[&["--algorithm", row.name], *row.runs.get(1).unwrap_or(&row.runs[0])].concat());
        let mut pasted = Count::default();
        for length in [1.0, 0.1, 0.01] {
            let weights: Vec<f64> = plain.iter().map(|weight| length * weight).collect();
            pasted.add(&verified(&with_weights(&file, &weights)));
        }
        line(row.name, [numbers, words, members, pasted]);
        let expected = if row.weights_are_held { 3 } else { 0 };
        if pasted.refused != expected {
            unnoticed.push(format!("{}: {} of {} models that met no noise", row.name, pasted.refused, pasted.tried));
        }
    }
    for algorithm in ["auto", "bolt-on-convex", "dp-sgd"] {
        let of_units = ["--epsilon", "1", "--delta", "1e-6", "--unit", "age", "--max-rows", "3"];
        let file = train(&[&["--algorithm", algorithm][..], &of_units].concat());
        let name = format!("{algorithm}, per unit");
        let [numbers, words, members] = sweep(&name, &file, &mut unnoticed);
        line(&name, [numbers, words, members, Count::default()]);
    }
    for (name, more) in [
        ("rank, linear", &["--loss", "bayesrank", "--model", "linear"][..]),
        (
            "rank, network",
            &["--loss", "bayesrank", "--k", "2", "--model", "mlp", "--hidden", "3", "--normalise", "always", "--thin"],
        ),
    ] {
        let place = lists::place();
        let budget = ["rank", "train", "--data", "train.txt", "--epsilon", "3", "--delta", "1e-4", "--updates", "50"];
        place.dp(&[&budget[..], more, &["--out", "r.json"]].concat()).ok();
        let file = place.json("r.json");
        let [numbers, words, members] = sweep(name, &file, &mut unnoticed);
        line(name, [numbers, words, members, Count::default()]);
        // A ranker whose description differs from its certificate.
        let mut edited = file.clone();
        let normalised = file["model"]["normalise_features"].as_bool().unwrap();
        edited["model"]["normalise_features"] = (!normalised).into();
        reseal(&mut edited);
        if verified(&edited).is_ok() {
            unnoticed.push(format!("{name}: a ranker that was trained in another way"));
        }
    }
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
}
