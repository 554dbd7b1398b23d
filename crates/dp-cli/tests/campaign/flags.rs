//! Random flags and values, drawn from the command's own description, on valid files.

use std::sync::LazyLock;

use clap::{ArgAction, CommandFactory};
use dp_cli::args::Cli;

use crate::Campaign;
use crate::judge::{Case, Place, Verdict};
use crate::specimens::words;
use crate::support::Dice;

/// Command lines that reach the work behind the flags, with the outputs of a success.
const STARTS: &[(&str, &[&str])] = &[
    ("train --data people.csv --schema schema.toml --epsilon 1 --algorithm bolt-on-convex --out m.json", &["m.json"]),
    (
        "train --data people.csv --schema schema.toml --epsilon 1 --delta 1e-5 --algorithm bolt-on-convex --out m.json",
        &["m.json"],
    ),
    (
        "train --data rows.svm --format libsvm --dim 9 --epsilon 1 --delta 1e-5 --algorithm bolt-on-convex --out m.json",
        &["m.json"],
    ),
    (
        "train --data images.idx --labels labels.idx --classes 0,1,2,3 --epsilon 1 --delta 1e-5 --algorithm bolt-on-convex --out m.json",
        &["m.json"],
    ),
    ("tune --data people.csv --schema schema.toml --epsilon 4 --delta 1e-5 --passes 1,2 --out m.json", &["m.json"]),
    ("evaluate --model model.json --data people.csv", &[]),
    ("evaluate --model model.json --data people.csv --curves c.svg", &["c.svg"]),
    ("evaluate --model model.json --data people.csv --epsilon 1 --out e.json", &["e.json"]),
    ("plan --rows 1000 --features 5 --out p.svg", &["p.svg"]),
    ("explain-model model.json --out s.svg", &["s.svg"]),
    ("predict --model model.json --data people.csv", &[]),
    ("schema people.csv --label earns", &[]),
    (
        "rank train --data lists.txt --loss bayesrank --model linear --epsilon 3 --delta 1e-4 --updates 5 --out r.json",
        &["r.json"],
    ),
    ("rank evaluate --model ranker.json --data lists.txt", &[]),
    ("rank predict --model ranker.json --data lists.txt", &[]),
    ("rank cv --data lists.txt --loss listnet --model linear --epsilon 3 --delta 1e-4 --updates 2", &[]),
    ("account dpsgd --noise-multiplier 1.1 --sampling-rate 0.01 --steps 100 --delta 1e-5", &[]),
    ("account dpsgd --noise-multiplier 2 --steps 50", &[]),
    ("account gaussian --delta 1e-5", &[]),
    ("account laplace --delta 1e-5", &[]),
    ("account laplace-ball", &[]),
    ("account randomized-response", &[]),
    ("account pure", &[]),
    ("account approximate", &[]),
    ("account zcdp", &[]),
    ("account gdp", &[]),
    ("account event tree.json --delta 1e-6", &[]),
    ("account certificate gaussian.json", &[]),
    ("account batch questions.jsonl", &[]),
    ("verify model.json", &[]),
    ("sign model model.json --key key", &["model.json.sig"]),
    ("sign new-key k", &["k", "k.pub"]),
    ("audit mechanism laplace --trials 200", &[]),
    ("audit recipe --algorithm bolt-on-convex --trials 200 --pairs 4", &[]),
    ("audit table --algorithm majority --trials 100", &[]),
    ("audit list", &[]),
    ("demo --rows 200 --dry-run", &["demo"]),
    ("reproduce list", &[]),
    ("reproduce thesis-6 --quick --dry-run", &["reproduction"]),
    ("explain", &[]),
    ("help", &[]),
    ("completions bash", &[]),
];

/// Values for flags without a fixed set of words.
const VALUES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "10",
    "100",
    "1000",
    "0.5",
    "0.1",
    "1e-5",
    "1e-9",
    "-1",
    "-0",
    "0.999999",
    "1e-300",
    "5e-324",
    "1e300",
    "1e308",
    "1e400",
    "nan",
    "inf",
    "-inf",
    "",
    " ",
    "x",
    "18446744073709551615",
    "9007199254740993",
    "4294967296",
    "1000000000000",
    "65537",
    "0x10",
    "1_000",
    "1,2",
    "0.1,0.2,nan",
    "l1:0.1",
    "group:0.1:3",
    "scad:0.1:3.7",
    "gaussian:3",
    "coordinates:2",
    "people.csv",
    "schema.toml",
    "model.json",
    "missing",
    "/",
    ".",
    "-",
    "new/out.json",
    "tab",
    ";",
    "yes",
    "no",
    "age",
    "earns",
    "trade",
    "user",
    "clicks",
    "0,1,2",
    "--quiet",
    "random",
    "m.md",
];

/// Flags that name an output.
const WRITES: &[&str] = &["--out", "--report", "--picture"];

/// A flag: its name, its number of values, and its words.
struct Flag {
    name: String,
    values: usize,
    words: Vec<String>,
}

/// Returns the flags of a subcommand, given by its path.
fn flags_of(path: &[String]) -> Vec<Flag> {
    static ROOT: LazyLock<clap::Command> = LazyLock::new(|| {
        let mut root = Cli::command();
        root.build();
        root
    });
    let mut command = &*ROOT;
    for word in path {
        match command.find_subcommand(word) {
            Some(inner) => command = inner,
            None => break,
        }
    }
    let flag = |argument: &clap::Arg| {
        let takes = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
        let values = if takes { argument.get_num_args().map_or(1, |range| range.min_values().max(1)) } else { 0 };
        let words = argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        argument.get_long().map(|name| Flag { name: format!("--{name}"), values, words })
    };
    command.get_arguments().filter_map(flag).collect()
}

pub fn run(campaign: &Campaign, place: &Place, dice: &mut Dice) -> Verdict {
    let (start, outputs) = STARTS[dice.below(STARTS.len() as u64) as usize];
    let mut arguments = words(start);
    let flags = flags_of(&arguments);
    // Sometimes an argument of the start is omitted.
    if dice.below(6) == 0 && arguments.len() > 1 {
        arguments.remove(1 + dice.below(arguments.len() as u64 - 1) as usize);
    }
    for _ in 0..dice.below(5) {
        if flags.is_empty() {
            break;
        }
        let flag = &flags[dice.below(flags.len() as u64) as usize];
        // A repeated flag is usually a usage error, so that of the start is replaced.
        if let Some(at) = arguments.iter().position(|word| *word == flag.name) {
            arguments.drain(at..(at + 1 + flag.values).min(arguments.len()));
        }
        arguments.push(flag.name.clone());
        for _ in 0..flag.values {
            let word = !flag.words.is_empty() && dice.below(10) > 0;
            arguments.push(match word {
                true => flag.words[dice.below(flag.words.len() as u64) as usize].clone(),
                false => VALUES[dice.below(VALUES.len() as u64) as usize].to_owned(),
            });
        }
    }
    // A success may write the files named by flags: any value that follows one of them.
    let mut written: Vec<String> = outputs.iter().map(|&name| name.to_owned()).collect();
    let pairs = arguments.iter().zip(arguments.iter().skip(1));
    written.extend(pairs.filter(|(flag, _)| WRITES.contains(&flag.as_str())).map(|(_, name)| name.clone()));
    written.extend(written.clone().iter().map(|name| format!("{name}.pub")));
    let case = Case { arguments, files: campaign.specimens.clone(), outputs: written, ..Case::default() };
    place.judge(&case, campaign.patience).1
}
