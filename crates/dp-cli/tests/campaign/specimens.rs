//! Small valid files of every kind that `dp` reads, some of them made by `dp` itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::judge::Place;
use crate::support::{Dice, gzip, idx, lists, people, xz};

pub const SCHEMA: &str = r#"missing = ["", "NA"]
label = { column = "earns", positive = "yes", negative = "no" }

[columns.age]
type = "numeric"
min = 0
max = 120

[columns.hours]
type = "numeric"
min = 0
max = 80

[columns.trade]
type = "categorical"
categories = ["baker", "clerk", "smith"]
on_unknown = "error"
"#;

/// The commands that make files from those above them.
const MADE: &[(&str, &str)] = &[
    ("drafted.toml", "schema people.csv --label earns --out drafted.toml"),
    (
        "model.json",
        "train --data people.csv --schema schema.toml --epsilon 1 --algorithm bolt-on-convex --out model.json",
    ),
    (
        "gaussian.json",
        "train --data people.csv --schema schema.toml --epsilon 1 --delta 1e-5 --algorithm dp-gd --out gaussian.json",
    ),
    (
        "sparse.json",
        "train --data rows.svm --format libsvm --dim 9 --epsilon 1 --algorithm bolt-on-convex --out sparse.json",
    ),
    (
        "images.json",
        "train --data images.idx --labels labels.idx --classes 0,1,2,3 --epsilon 4 --delta 1e-5 --algorithm dp-gd --out images.json",
    ),
    (
        "ranker.json",
        "rank train --data lists.txt --loss listnet --model linear --epsilon 3 --delta 1e-4 --updates 20 --out ranker.json",
    ),
    ("key", "sign new-key key"),
    ("model.json.sig", "sign model model.json --key key"),
    ("out/runs.csv", "reproduce thesis-6 --quick --repetitions 1 --algorithm noiseless --out out"),
];

/// All files by name.
pub fn make(dp: &Path) -> BTreeMap<String, Vec<u8>> {
    let place = Place::new(dp);
    let people = people(60, 1);
    let mut files = BTreeMap::new();
    let mut add = |name: &str, content: Vec<u8>| drop(files.insert(name.to_owned(), content));
    add("people.csv.gz", gzip(people.as_bytes()));
    add("people.csv.xz", xz(people.as_bytes()));
    add("people.csv", people.into_bytes());
    add("schema.toml", SCHEMA.into());
    add("rows.svm", rows(60).into_bytes());
    let (images, labels) = images(40);
    add("images.idx", images);
    add("labels.idx", labels);
    let lists = lists::draw(20, 1);
    add("lists.txt", lists::letor(&lists).into_bytes());
    add("lists.csv", lists::csv(&lists).into_bytes());
    add("tree.json", TREE.into());
    add("questions.jsonl", QUESTIONS.into());
    place.prepare(&files);
    for (name, command) in MADE {
        let ran = place.run(&[], &words(command), None, Duration::from_secs(60));
        assert_eq!(ran.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    let found = place.files();
    assert!(MADE.iter().all(|(name, _)| found.contains_key(*name)), "{:?}", found.keys());
    found
}

pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn rows(count: usize) -> String {
    let mut dice = Dice(3);
    let mut text = String::new();
    for _ in 0..count {
        text.push_str(if dice.below(2) == 0 { "+1" } else { "-1" });
        for feature in 1..10 {
            if dice.below(2) == 0 {
                text.push_str(&format!(" {feature}:{}", (dice.unit() * 100.0).round() / 100.0));
            }
        }
        text.push('\n');
    }
    text
}

fn images(count: u32) -> (Vec<u8>, Vec<u8>) {
    let mut dice = Dice(4);
    let labels: Vec<u8> = (0..count).map(|_| dice.below(4) as u8).collect();
    let pixels: Vec<u8> = (0..count * 6).map(|_| dice.next() as u8).collect();
    (idx(&[count, 3, 2], &pixels), idx(&[count], &labels))
}

const TREE: &str = r#"{"event": {"type": "composed", "events": [
  {"type": "self-composed", "count": 20, "event": {"type": "poisson-sampled", "sampling_rate": 0.1,
    "event": {"type": "gaussian", "std_dev": 2.0, "sensitivity": 1.0}}},
  {"type": "laplace", "scale": 4.0, "sensitivity": 1.0}]}, "adjacency": "add-remove"}
"#;

const QUESTIONS: &str = r#"{"job": "dpsgd", "noise_multiplier": 1.1, "sampling_rate": 0.01, "steps": 100, "delta": 1e-5}
{"job": "gaussian", "noise_multiplier": 2.0, "delta": 1e-6, "id": "b"}
{"event": {"type": "zcdp", "rho": 0.1}, "delta": 1e-6}
{"event": {"type": "laplace", "scale": 1.0, "sensitivity": 1.0}, "epsilon": 0.5}
"#;
