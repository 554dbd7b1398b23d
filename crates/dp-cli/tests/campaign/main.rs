//! A seeded robustness campaign against `dp`: mutated files, random flags, failing system calls, limits and signals.
//!
//! ```text
//! cargo test -p dp-cli --test campaign                      # a sample
//! cargo test -p dp-cli --test campaign -- --long            # all of it
//! cargo test -p dp-cli --test campaign -- --kind flags --case 17
//! ```
//!
//! It prints a table of cases and faults, and keeps the folder of each faulty case. A case depends only on the seed, its kind
//! and its number; the noise of a run, and files that `dp` made for the campaign, do not depend on the seed.
#![allow(clippy::print_stdout, reason = "the table is what people run this for")]

mod faults;
mod flags;
mod harness;
mod inputs;
mod judge;
mod kills;
mod limits;
mod mutate;
mod readers;
mod specimens;
#[path = "../commands/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;

use harness::Harness;
use judge::{Ending, Fault, Place, Verdict};
use support::Dice;

/// Mutated files, random flags, failing system calls, limits and signals, by a seed.
#[derive(Debug, Parser)]
struct Arguments {
    /// All cases in place of a sample
    #[arg(long)]
    long: bool,
    /// Only these kinds
    #[arg(long, num_args = 1..)]
    kind: Vec<String>,
    /// So many cases of each kind
    #[arg(long)]
    cases: Option<u64>,
    /// The case of this number alone
    #[arg(long)]
    case: Option<u64>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads [default: one for each core]
    #[arg(long)]
    threads: Option<usize>,
    /// Another `dp` than the one that was built; the readers are those that were built all the same
    #[arg(long)]
    dp: Option<PathBuf>,
    /// List kinds and their numbers of cases
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    harness: Harness,
}

/// The data shared by all cases.
pub struct Campaign {
    /// Valid files by name.
    pub specimens: BTreeMap<String, Vec<u8>>,
    /// Time that a run may take before it is asked to end.
    pub patience: Duration,
}

/// A kind of cases.
struct Kind {
    name: &'static str,
    about: &'static str,
    /// Number of cases in a sample and in total.
    cases: [u64; 2],
    /// A program that it requires.
    needs: Option<&'static str>,
    run: fn(&Campaign, &Place, &mut Dice) -> Verdict,
}

const KINDS: &[Kind] = &[
    Kind { name: "inputs", about: "mutated files", cases: [1200, 36_000], needs: None, run: inputs::run },
    Kind { name: "flags", about: "flags at random", cases: [300, 8_700], needs: None, run: flags::run },
    Kind {
        name: "readers",
        about: "mutated files, without a process",
        cases: [20_000, 1_000_000],
        needs: None,
        run: readers::run,
    },
    Kind { name: "faults", about: "failing system calls", cases: [40, 1_400], needs: Some("strace"), run: faults::run },
    Kind {
        name: "limits",
        about: "memory, files, processes",
        cases: [80, 2_000],
        needs: Some("prlimit"),
        run: limits::run,
    },
    Kind { name: "kills", about: "signals at random times", cases: [24, 1_600], needs: Some("kill"), run: kills::run },
];

/// The results of the cases of a kind.
#[derive(Debug, Default)]
struct Tally {
    endings: [u64; 4],
    faults: BTreeMap<Fault, u64>,
    /// The duration of the longest case, in seconds.
    longest: f64,
    said: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let named = |kind: &&Kind| arguments.kind.is_empty() || arguments.kind.iter().any(|name| name == kind.name);
    let kinds: Vec<&Kind> = KINDS.iter().filter(named).collect();
    if arguments.list {
        kinds.iter().for_each(|kind| println!("{}: test", kind.name));
        return ExitCode::SUCCESS;
    }
    if arguments.harness.leaves_out("campaign") {
        return ExitCode::SUCCESS;
    }
    let dp = arguments.dp.clone().unwrap_or_else(|| env!("CARGO_BIN_EXE_dp").into());
    let campaign = Campaign { specimens: specimens::make(&dp), patience: Duration::from_secs(10) };
    // Panics of the readers are caught and counted.
    std::panic::set_hook(Box::new(|_| {}));
    println!("seed {}", arguments.seed);
    println!("{:<9}{:>9}{:>9}{:>9}{:>8}{:>8}  {}  longest", "", "cases", "done", "refused", "asked", "killed", heads());
    let mut wrong = false;
    for kind in kinds {
        if let Some(program) = kind.needs.filter(|program| !support::has(program)) {
            println!("{:<9}SKIPPED: no {program} on this machine ({})", kind.name, kind.about);
            continue;
        }
        let tally = run(kind, &campaign, &dp, &arguments);
        let [succeeded, refused, interrupted, killed] = tally.endings;
        let all: u64 = tally.endings.iter().sum();
        print!("{:<9}{all:>9}{succeeded:>9}{refused:>9}{interrupted:>8}{killed:>8}  ", kind.name);
        for (fault, name) in Fault::ALL {
            print!("{:>1$} ", tally.faults.get(&fault).unwrap_or(&0), name.len());
        }
        println!(" {:.1} s", tally.longest);
        tally.said.iter().for_each(|line| println!("  {line}"));
        wrong |= !tally.faults.is_empty();
    }
    if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn heads() -> String {
    Fault::ALL.map(|(_, name)| format!("{name} ")).concat()
}

/// Runs the cases of a kind on all threads.
fn run(kind: &Kind, campaign: &Campaign, dp: &Path, arguments: &Arguments) -> Tally {
    let cases = arguments.cases.unwrap_or(kind.cases[usize::from(arguments.long)]);
    let (first, end) = arguments.case.map_or((0, cases), |case| (case, case + 1));
    let next = AtomicU64::new(first);
    let tally = Mutex::new(Tally::default());
    let threads = arguments.threads.or_else(|| std::thread::available_parallelism().ok().map(Into::into)).unwrap_or(1);
    let worker = || {
        let place = Place::new(dp);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= end {
                return;
            }
            let start = Instant::now();
            let verdict = (kind.run)(campaign, &place, &mut dice(arguments.seed, kind.name, number));
            let seconds = start.elapsed().as_secs_f64();
            let mut tally = tally.lock().expect("no thread panics here");
            tally.longest = tally.longest.max(seconds);
            tally.endings[match verdict.ending {
                Ending::Succeeded => 0,
                Ending::Refused => 1,
                Ending::Interrupted => 2,
                Ending::Killed => 3,
            }] += 1;
            for (fault, what) in verdict.faults {
                *tally.faults.entry(fault).or_default() += 1;
                if tally.said.len() < 40 {
                    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("campaign-{}-{number}", kind.name));
                    place.keep(&kept);
                    tally.said.push(format!("{fault:?}: {} {number}: {what}", kind.name));
                }
            }
        }
    };
    std::thread::scope(|scope| (0..threads.max(1)).for_each(|_| drop(scope.spawn(worker))));
    tally.into_inner().expect("no thread panicked")
}

/// Returns the random generator of a case.
fn dice(seed: u64, kind: &str, number: u64) -> Dice {
    let mut dice = Dice(kind.bytes().fold(seed, |state, byte| state.wrapping_mul(257).wrapping_add(byte.into())));
    let start = dice.next();
    Dice(start ^ number.wrapping_mul(0xd1b5_4a32_d192_ed03))
}
