//! Signals at a random time: a file under its final name is complete, catchable signals leave nothing else, and the next run
//! succeeds.

use std::time::Duration;

use serde_json::Value;

use crate::Campaign;
use crate::judge::{Ending, Fault, Place, Ran, Signal, Verdict, ending, how_it_ended};
use crate::specimens::words;
use crate::support::Dice;

const COMMANDS: &[(&str, &[&str], &[&str])] = &[
    (
        "train --data people.csv --schema schema.toml --epsilon 1 --algorithm bolt-on-convex --passes 500 --out m.json --report m.md --force",
        &["people.csv", "schema.toml"],
        &["m.json", "m.md"],
    ),
    (
        "tune --data people.csv --schema schema.toml --epsilon 4 --passes 100,200 --out m.json --force",
        &["people.csv", "schema.toml"],
        &["m.json"],
    ),
    (
        "rank train --data lists.txt --loss listnet --model linear --epsilon 3 --delta 1e-4 --updates 300 --out m.json --force",
        &["lists.txt"],
        &["m.json"],
    ),
    ("reproduce thesis-6 --quick --repetitions 2 --algorithm noiseless --out out", &[], &[]),
];

pub fn run(campaign: &Campaign, place: &Place, dice: &mut Dice) -> Verdict {
    let (line, files, outputs) = COMMANDS[dice.below(COMMANDS.len() as u64) as usize];
    let arguments = words(line);
    let names = ["KILL", "KILL", "TERM", "INT", "HUP"];
    // Log-uniform delay: as often below a millisecond as within a tenth of a second.
    let reach = 8 + dice.below(10);
    let signal = Signal {
        after: Duration::from_micros(dice.below(1 << reach)),
        name: names[dice.below(names.len() as u64) as usize],
    };
    let start = files.iter().map(|&name| (name.to_owned(), campaign.specimens[name].clone())).collect();
    place.prepare(&start);
    let ran = place.run(&[], &arguments, Some(signal), campaign.patience);
    let killed = signal.name == "KILL";
    let mut faults = if killed && ran.code().is_none() { vec![] } else { how_it_ended(&ran) };
    let ended = if killed && ran.code().is_none() { Ending::Killed } else { ending(&ran) };
    // A signal before the handler is installed ends the process directly.
    let now = place.files();
    if !killed && ran.code().is_none() && before_the_handler(&ran) && now == start {
        faults.clear();
    }
    for (name, content) in &start {
        if now.get(name) != Some(content) {
            faults.push((Fault::Torn, format!("{name} has changed")));
        }
    }
    if !killed && ended == Ending::Interrupted && now.keys().any(|name| name.contains(".part")) {
        faults.push((Fault::Torn, "a temporary file is left".into()));
    }
    let whole = |now: &[u8]| serde_json::from_slice::<Value>(now).is_ok_and(|value| value["certificate"].is_object());
    if now.get("m.json").is_some_and(|model| !whole(model)) {
        faults.push((Fault::Torn, "half a model".into()));
    }
    faults.extend(goes_on(campaign, place, &arguments, outputs));
    for fault in &mut faults {
        fault.1 = format!("{} [{line}; {signal:?}]", fault.1);
    }
    Verdict { ending: ended, faults }
}

fn before_the_handler(ran: &Ran) -> bool {
    ran.stdout.is_empty() && ran.stderr.is_empty()
}

/// Runs the same command again: it succeeds and leaves exactly its outputs.
fn goes_on(campaign: &Campaign, place: &Place, arguments: &[String], outputs: &[&str]) -> Option<(Fault, String)> {
    let again = place.run(&[], arguments, None, campaign.patience);
    if again.code() != Some(0) {
        let said = String::from_utf8_lossy(&again.stderr).into_owned();
        return Some((Fault::Torn, format!("the next run fails: {said}")));
    }
    let now = place.files();
    if let Some(part) = now.keys().find(|name| name.contains(".part")) {
        return Some((Fault::Torn, format!("the next run leaves {part}")));
    }
    if let Some(missing) = outputs.iter().find(|name| !now.contains_key(**name)) {
        return Some((Fault::Torn, format!("the next run leaves no {missing}")));
    }
    if let Some(log) = now.get("out/runs.csv") {
        let lines = String::from_utf8_lossy(log).lines().count();
        if lines != 1 + 2 * RUNS {
            return Some((Fault::Torn, format!("the log has {lines} lines")));
        }
        return None;
    }
    let verified = place.run(&[], &words("verify m.json"), None, campaign.patience);
    (verified.code() != Some(0)).then(|| (Fault::Torn, "the model of the next run does not verify".into()))
}

/// Number of runs in one repetition of the figure.
const RUNS: usize = 8;
