//! Compares two builds of `dp`: models, certificates, reports and answers of all algorithms and commands.
//!
//! ```text
//! cargo test -p dp-cli --test same -- --before OLD/dp        # everything, of an older build beside this one
//! cargo test -p dp-cli --test same                           # a sample, of this build beside itself
//! ```
//!
//! Runs are seeded, so that models are equal to the last bit or were made differently. Times, versions, and the hash of a
//! certificate, which covers versions, are not compared. Models with secret noise are made by the older build and must mean
//! the same to both.
#![allow(clippy::print_stdout, reason = "the table is what people run this for")]

mod cases;
#[path = "../campaign/harness.rs"]
mod harness;
#[path = "../campaign/judge.rs"]
#[allow(dead_code)] // a part of it is the campaign's alone
mod judge;
#[path = "../campaign/specimens.rs"]
mod specimens;
#[path = "../commands/support/mod.rs"]
mod support;
#[path = "../commands/algorithms/table.rs"]
#[allow(dead_code)] // what is refused and edited is for other tests
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Parser;
use serde_json::Value;

use cases::Case;
use harness::Harness;
use judge::{Place, Ran};

/// Compares two builds of `dp`
#[derive(Debug, Parser)]
struct Arguments {
    /// The older build
    #[arg(long)]
    before: Option<PathBuf>,
    /// The newer build [default: the one that was built with this]
    #[arg(long)]
    after: Option<PathBuf>,
    /// Only these groups
    #[arg(long, num_args = 1..)]
    group: Vec<String>,
    /// List the cases
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    harness: Harness,
}

/// A sample contains every case whose number is a multiple of this.
const SAMPLE: usize = 16;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.harness.leaves_out("same") {
        return ExitCode::SUCCESS;
    }
    let named = |case: &Case| arguments.group.is_empty() || arguments.group.iter().any(|name| name == case.group);
    let mut cases: Vec<Case> = cases::all().into_iter().filter(named).collect();
    if arguments.list {
        cases.iter().for_each(|case| println!("{}: test", case.name()));
        return ExitCode::SUCCESS;
    }
    let built = PathBuf::from(env!("CARGO_BIN_EXE_dp"));
    let before = arguments.before.clone().unwrap_or_else(|| built.clone());
    let after = arguments.after.clone().unwrap_or(built);
    if arguments.before.is_none() {
        cases = cases.into_iter().step_by(SAMPLE).collect();
    }
    let specimens = specimens::make(&before);
    let results = compare(&cases, &specimens, &before, &after);
    let mut groups: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for (case, difference) in cases.iter().zip(&results) {
        groups.entry(case.group).or_default()[usize::from(difference.is_some())] += 1;
    }
    println!("{:<12}{:>8}{:>10}", "", "same", "different");
    groups.iter().for_each(|(group, [same, different])| println!("{group:<12}{same:>8}{different:>10}"));
    let differences = || cases.iter().zip(&results).filter_map(|(case, result)| Some((case, result.as_ref()?)));
    differences().for_each(|(case, difference)| println!("\n{}\n{difference}", case.name()));
    if differences().next().is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Returns the first difference of each case, if there is one.
fn compare(cases: &[Case], specimens: &Files, before: &Path, after: &Path) -> Vec<Option<String>> {
    let results = Mutex::new(vec![None; cases.len()]);
    let next = AtomicUsize::new(0);
    let worker = || {
        let (one, other) = (Place::new(before), Place::new(after));
        while let Some((at, case)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, cases.get(at)?)))
        {
            let difference = case_differs(case, specimens, &one, &other);
            results.lock().expect("no thread panics here")[at] = difference;
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(worker))));
    results.into_inner().expect("no thread panicked")
}

type Files = BTreeMap<String, Vec<u8>>;

fn case_differs(case: &Case, specimens: &Files, before: &Place, after: &Place) -> Option<String> {
    let mut files = specimens.clone();
    files.insert("table.csv".into(), support::people(400, 31).into_bytes());
    before.prepare(&files);
    for command in &case.before {
        let ran = before.run(&[], command, None, PATIENCE);
        if ran.code() != Some(0) {
            return Some(format!("  the older build fails: {}", String::from_utf8_lossy(&ran.stderr)));
        }
    }
    after.prepare(&before.files());
    for command in &case.commands {
        let ran = [before, after].map(|place| place.run(&[], command, None, PATIENCE));
        if case.must_succeed(command) && ran[0].code() != Some(0) {
            let error = String::from_utf8_lossy(&ran[0].stderr);
            return Some(format!("  `dp {}` fails before: {error}", command.join(" ")));
        }
        let [one, other] = ran.map(|ran| said(&ran));
        if let Some((what, one, other)) =
            one.iter().zip(&other).find_map(|((what, one), (_, other))| (one != other).then_some((what, one, other)))
        {
            return Some(format!("  {what} of `dp {}`\n{}", command.join(" "), first_difference(one, other)));
        }
    }
    let [one, other] = [before, after].map(|place| place.files());
    let names: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    names.into_iter().find_map(|name| {
        let [one, other] = [&one, &other].map(|files| files.get(name).map(|content| comparable(content)));
        match (one, other) {
            (Some(one), Some(other)) if one == other => None,
            (Some(one), Some(other)) => Some(format!("  {name}\n{}", first_difference(&one, &other))),
            (one, _) => Some(format!("  {name} is left {} alone", if one.is_some() { "before" } else { "after" })),
        }
    })
}

const PATIENCE: Duration = Duration::from_secs(300);

/// Returns the outputs of a run with their names.
fn said(ran: &Ran) -> [(&'static str, String); 3] {
    [
        ("exit code", format!("{:?}", ran.code())),
        ("stdout", comparable(&ran.stdout)),
        ("stderr", comparable(&ran.stderr)),
    ]
}

/// Returns the first line in which two texts differ.
fn first_difference(one: &str, other: &str) -> String {
    let (mut one, mut other) = (one.lines(), other.lines());
    loop {
        match (one.next(), other.next()) {
            (Some(one), Some(other)) if one == other => {}
            (one, other) => return format!("    before: {}\n    after:  {}", one.unwrap_or("-"), other.unwrap_or("-")),
        }
    }
}

/// Returns a text without the parts that always differ between runs. JSON gets one member per line.
fn comparable(content: &[u8]) -> String {
    let text = String::from_utf8_lossy(content);
    let json = |text: &str| {
        let mut value: Value = serde_json::from_str(text).ok()?;
        strip(&mut value);
        serde_json::to_string_pretty(&value).ok()
    };
    json(&text)
        .unwrap_or_else(|| text.lines().map(|line| json(line).unwrap_or_else(|| timeless(line)) + "\n").collect())
}

/// Members that are not compared.
const STRIPPED: &[&str] = &["seconds", "training_seconds", "versions", "certificate_sha256"];

fn strip(value: &mut Value) {
    match value {
        Value::Object(object) => {
            STRIPPED.iter().for_each(|&name| drop(object.remove(name)));
            object.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Returns a line with its times and certificate hashes replaced.
fn timeless(line: &str) -> String {
    let is_hash =
        |word: &str| word.trim_matches('`').len() == 64 && word.chars().all(|c| c == '`' || c.is_ascii_hexdigit());
    let is_time = |word: &str, next: Option<&&str>| {
        let unit = next.is_some_and(|next| ["s", "ms", "min", "s,", "s;", "s)"].contains(next));
        unit && word.trim_start_matches('(').parse::<f64>().is_ok()
    };
    let words: Vec<&str> = line.split(' ').collect();
    let shown = |(at, word): (usize, &&str)| match () {
        () if is_hash(word.trim_end_matches('.')) => "HASH".to_owned(),
        () if is_time(word, words.get(at + 1)) => "TIME".to_owned(),
        () => (*word).to_owned(),
    };
    words.iter().enumerate().map(shown).collect::<Vec<_>>().join(" ")
}
