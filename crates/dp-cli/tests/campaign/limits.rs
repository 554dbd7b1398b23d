//! System limits set by `prlimit`: memory, size and number of files, processes.

use crate::Campaign;
use crate::judge::{Case, Place, Verdict};
use crate::specimens::words;
use crate::support::Dice;

const COMMANDS: &[(&str, &[&str])] = &[
    (
        "train --data people.csv --schema schema.toml --epsilon 1 --algorithm bolt-on-convex --out m.json --report m.md --json",
        &["m.json", "m.md"],
    ),
    ("tune --data people.csv --schema schema.toml --epsilon 4 --passes 1,2 --out m.json --json", &["m.json"]),
    ("predict --model model.json --data people.csv --out p.csv --json", &["p.csv"]),
    ("evaluate --model images.json --data images.idx --labels labels.idx --json", &[]),
    ("verify gaussian.json --json", &[]),
    ("account batch questions.jsonl --json", &[]),
    ("account dpsgd --noise-multiplier 1.1 --sampling-rate 0.01 --steps 1000 --delta 1e-5 --json", &[]),
    ("audit recipe --algorithm bolt-on-convex --trials 200 --pairs 4 --json", &[]),
    (
        "rank train --data lists.txt --loss listnet --model linear --epsilon 3 --delta 1e-4 --updates 5 --out r.json --json",
        &["r.json"],
    ),
];

pub fn run(campaign: &Campaign, place: &Place, dice: &mut Dice) -> Verdict {
    let (line, outputs) = COMMANDS[dice.below(COMMANDS.len() as u64) as usize];
    // Memory for the program itself, plus a random amount.
    let reach = 3 + dice.below(8);
    let memory = (64 + dice.below(1 << reach)) << 20;
    let limit = match dice.below(4) {
        0 => format!("--nofile={}", 4 + dice.below(12)),
        1 => format!("--fsize={}", dice.below(8192)),
        2 => format!("--nproc={}", 1 + dice.below(3)),
        _ => format!("--as={memory}"),
    };
    let case = Case {
        under: vec!["prlimit".into(), limit],
        arguments: words(line),
        files: campaign.specimens.clone(),
        outputs: outputs.iter().map(|&name| name.to_owned()).collect(),
        ..Case::default()
    };
    let (ran, mut verdict) = place.judge(&case, campaign.patience);
    let stderr = String::from_utf8_lossy(&ran.stderr);
    // The loader failed before `main`.
    if ran.code() == Some(127) && stderr.contains("error while loading") {
        verdict.faults.clear();
    }
    verdict
}
