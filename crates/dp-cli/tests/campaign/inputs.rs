//! Mutated files, given to every command that reads them.

use serde_json::Value;

use crate::Campaign;
use crate::judge::{Case, Ending, Fault, Place, Verdict};
use crate::mutate::mutate;
use crate::specimens::words;
use crate::support::Dice;

type Names = &'static [&'static str];

/// Commands, the files that are mutated in turn, other files, and the outputs of a success.
const USES: &[(&str, Names, Names, Names)] = &[
    ("schema people.csv --label earns --out s.toml", &["people.csv"], &[], &["s.toml"]),
    ("schema people.csv.gz --label age --label-range 0 99", &["people.csv.gz"], &[], &[]),
    (
        "train --data people.csv --schema schema.toml --epsilon 1 --algorithm bolt-on-convex --out m.json",
        &["people.csv", "schema.toml"],
        &["people.csv", "schema.toml"],
        &["m.json"],
    ),
    (
        "train --data people.csv --schema schema.toml --epsilon 1 --delta 1e-5 --algorithm ALGORITHM --out m.json --report m.md",
        &["people.csv", "schema.toml"],
        &["people.csv", "schema.toml"],
        &["m.json", "m.md"],
    ),
    (
        "train --data people.csv.gz --schema-from-data --label earns --epsilon 1 --algorithm bolt-on-convex --out m.json",
        &["people.csv.gz"],
        &[],
        &["m.json"],
    ),
    (
        "train --data people.csv.xz --schema schema.toml --epsilon 1 --float f32 --algorithm bolt-on-convex --out m.json",
        &["people.csv.xz"],
        &["schema.toml"],
        &["m.json"],
    ),
    (
        "train --data rows.svm --format libsvm --epsilon 1 --algorithm bolt-on-convex --out m.json",
        &["rows.svm"],
        &[],
        &["m.json"],
    ),
    (
        "train --data rows.svm --format libsvm --dim 9 --epsilon 1 --delta 1e-5 --algorithm ALGORITHM --out m.json",
        &["rows.svm"],
        &[],
        &["m.json"],
    ),
    (
        "train --data images.idx --labels labels.idx --classes 0,1,2,3 --epsilon 1 --delta 1e-5 --algorithm dp-gd --out m.json",
        &["images.idx", "labels.idx"],
        &["images.idx", "labels.idx"],
        &["m.json"],
    ),
    (
        "tune --data people.csv --schema schema.toml --epsilon 4 --passes 1,2 --out m.json",
        &["people.csv", "schema.toml"],
        &["people.csv", "schema.toml"],
        &["m.json"],
    ),
    (
        "evaluate --model model.json --data people.csv",
        &["people.csv", "model.json"],
        &["people.csv", "model.json"],
        &[],
    ),
    (
        "predict --model model.json --data people.csv --out p.csv",
        &["people.csv", "model.json"],
        &["people.csv", "model.json"],
        &["p.csv"],
    ),
    ("predict --model sparse.json --data rows.svm", &["rows.svm", "sparse.json"], &["rows.svm", "sparse.json"], &[]),
    (
        "evaluate --model images.json --data images.idx --labels labels.idx",
        &["images.idx", "labels.idx", "images.json"],
        &["images.idx", "labels.idx", "images.json"],
        &[],
    ),
    ("verify model.json", &["model.json"], &[], &[]),
    ("verify gaussian.json", &["gaussian.json"], &[], &[]),
    ("verify images.json", &["images.json"], &[], &[]),
    ("verify ranker.json", &["ranker.json"], &[], &[]),
    (
        "verify model.json --key key.pub",
        &["key.pub", "model.json.sig", "model.json"],
        &["key.pub", "model.json.sig", "model.json"],
        &[],
    ),
    ("sign model model.json --key key", &["key", "model.json"], &["key", "model.json"], &["model.json.sig"]),
    (
        "rank train --data lists.txt --loss listnet --model linear --epsilon 3 --delta 1e-4 --updates 5 --out r.json",
        &["lists.txt"],
        &[],
        &["r.json"],
    ),
    (
        "rank train --data lists.csv --query user --label clicks --loss bayesrank --model linear --epsilon 3 --delta 1e-4 --updates 5 --out r.json",
        &["lists.csv"],
        &[],
        &["r.json"],
    ),
    (
        "rank evaluate --model ranker.json --data lists.txt",
        &["lists.txt", "ranker.json"],
        &["lists.txt", "ranker.json"],
        &[],
    ),
    (
        "rank predict --model ranker.json --data lists.txt",
        &["lists.txt", "ranker.json"],
        &["lists.txt", "ranker.json"],
        &[],
    ),
    ("account event tree.json --delta 1e-6", &["tree.json"], &[], &[]),
    ("account certificate gaussian.json --delta 1e-4", &["gaussian.json"], &[], &[]),
    ("account batch questions.jsonl", &["questions.jsonl"], &[], &[]),
    ("reproduce thesis-6 --quick --repetitions 1 --algorithm noiseless --out out", &["out/runs.csv"], &[], &[]),
];

/// Algorithms that train on sixty records quickly.
const QUICK: &[&str] = &[
    "auto",
    "bolt-on-convex",
    "obj-pert",
    "dp-gd",
    "dp-sgd",
    "dp-ftrl",
    "dp-newton",
    "majority",
    "amp",
    "noisy-moments",
    "phased-sgd",
    "dp-adam",
];

/// A cell value that no specimen contains.
const SECRET: &str = "zq7secret";

pub fn run(campaign: &Campaign, place: &Place, dice: &mut Dice) -> Verdict {
    let (line, mutable, others, outputs) = USES[dice.below(USES.len() as u64) as usize];
    let line = line.replace("ALGORITHM", QUICK[dice.below(QUICK.len() as u64) as usize]);
    let mut case = Case { arguments: words(&line), ..Case::default() };
    if dice.below(2) == 0 {
        case.arguments.push("--json".into());
    }
    case.outputs = outputs.iter().map(|&name| name.to_owned()).collect();
    for name in mutable.iter().chain(others) {
        case.files.insert((*name).to_owned(), campaign.specimens[*name].clone());
    }
    let chosen = mutable[dice.below(mutable.len() as u64) as usize];
    let honest = &campaign.specimens[chosen];
    let mut content = mutate(chosen, honest, dice);
    if line.starts_with("train") && chosen == "people.csv" && dice.below(4) == 0 {
        // Replaces the content of a cell in a row.
        let text = String::from_utf8_lossy(&content).replacen("baker", SECRET, 1);
        if text.contains(SECRET) {
            content = text.into_bytes();
            case.secret = Some(SECRET.to_owned());
        }
    }
    case.files.insert(chosen.to_owned(), content);
    let reproduces = line.starts_with("reproduce");
    if reproduces {
        // Pictures and tables are redrawn; runs missing from the log are repeated.
        case.outputs = campaign.specimens.keys().filter(|name| name.starts_with("out/")).cloned().collect();
    }
    let (_, mut verdict) = place.judge(&case, campaign.patience);
    if verdict.ending == Ending::Succeeded {
        verdict.faults.extend(believed(campaign, place, &line, chosen, &case));
    }
    verdict
}

/// Returns a fault if a success accepted changed content, or left a model that does not verify.
fn believed(campaign: &Campaign, place: &Place, line: &str, chosen: &str, case: &Case) -> Option<(Fault, String)> {
    if line.starts_with("verify") && chosen.ends_with(".json") {
        let part = |bytes: &[u8]| {
            let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
            (value["model"].clone(), value["certificate"].clone())
        };
        let (now, honest) = (part(&case.files[chosen]), part(&campaign.specimens[chosen]));
        // Another certificate is another claim, which the edit tests cover.
        if now.0 != honest.0 && now.1 == honest.1 {
            return Some((Fault::Believed, format!("{chosen} verifies with another model")));
        }
    }
    if line.starts_with("reproduce") {
        let lines = |bytes: &[u8]| {
            let mut lines: Vec<String> = String::from_utf8_lossy(bytes).lines().map(measured).collect();
            lines.sort();
            // A duplicated line carries no other content.
            lines.dedup();
            lines
        };
        let (now, honest) = (&place.files()["out/runs.csv"], &campaign.specimens["out/runs.csv"]);
        if lines(now) != lines(honest) {
            return Some((Fault::Believed, "the log has other runs than were done".to_owned()));
        }
    }
    let model = ["m.json", "r.json"].into_iter().find(|name| place.work().join(name).exists())?;
    let verified = place.run(&[], &words(&format!("verify {model}")), None, campaign.patience);
    (verified.code() != Some(0)).then(|| {
        (Fault::Torn, format!("{model} does not verify: {}", String::from_utf8_lossy(&verified.stderr).trim_end()))
    })
}

/// Returns a line of the log without its time and its digest, which depends on the time.
fn measured(line: &str) -> String {
    let cells: Vec<&str> = line.trim_end().split(',').collect();
    let kept = cells.iter().enumerate().filter(|&(column, _)| column != SECONDS && column + 1 != cells.len());
    kept.map(|(_, cell)| *cell).collect::<Vec<_>>().join(",")
}

/// The index of the time column of the log.
const SECONDS: usize = 14;
