//! How long `dp account` takes over random questions of every kind.
//!
//! ```text
//! cargo build --release -p dp-cli
//! cargo run --release -p benches --bin questions -- target/release/dp 10000 1
//! ```
//!
//! asks 10,000 questions from seed 1 and prints, for each kind and for all together, their number, the median, the 99th
//! percentile and the largest processor time, and the question that took the largest. A tenth of the numbers are extreme.
//! Each question is a process of its own, whose time the kernel counts in hundredths of a second.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;
use std::process::{Command, Stdio};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Questions that take longer are named as they come.
const LONG: f64 = 2.0;

/// Processor seconds of all child processes that have ended.
fn children() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').ok_or("unknown form of /proc/self/stat")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks =
        |index: usize| fields.get(index).ok_or("too few fields")?.parse::<f64>().map_err(Box::<dyn Error>::from);
    Ok((ticks(13)? + ticks(14)?) / 100.0)
}

/// Random numbers of a question.
struct Draw(StdRng);

impl Draw {
    fn chance(&mut self, share: f64) -> bool {
        self.0.random::<f64>() < share
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.0.random_range(0..of.len())]
    }

    /// On a logarithmic scale, with four digits.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        let number = low * (high / low).powf(self.0.random::<f64>());
        format!("{number:.3e}").parse().unwrap_or(number)
    }

    fn count(&mut self, low: f64, high: f64) -> u64 {
        self.between(low, high) as u64
    }

    fn noise(&mut self) -> f64 {
        if self.chance(0.9) { self.between(0.1, 30.0) } else { self.between(0.01, 1e4) }
    }

    fn steps(&mut self) -> u64 {
        if self.chance(0.9) { self.count(1.0, 1e5) } else { self.count(1.0, 1e9) }
    }

    fn rate(&mut self) -> f64 {
        if self.chance(0.9) { self.between(1e-4, 1.0) } else { self.between(1e-9, 1.0) }
    }

    fn epsilon(&mut self) -> f64 {
        if self.chance(0.9) { self.between(0.05, 20.0) } else { self.between(1e-6, 1e6) }
    }

    fn delta(&mut self) -> f64 {
        match self.0.random_range(0..20) {
            0 => 0.5,
            1 => 0.9,
            2 => 0.999,
            3 | 4 => self.between(1e-300, 1.0),
            _ => self.between(1e-12, 1e-3),
        }
    }

    /// A question, and its kind.
    fn question(&mut self) -> (String, Vec<String>) {
        let job = self.one(&[
            "dpsgd",
            "dpsgd",
            "dpsgd",
            "gaussian",
            "laplace",
            "laplace",
            "laplace-ball",
            "randomized-response",
            "pure",
            "approximate",
            "zcdp",
            "gdp",
        ]);
        let own: &[&str] = match job {
            "dpsgd" => &["--noise-multiplier", "--sampling-rate", "--steps"],
            "gaussian" | "laplace" | "laplace-ball" => &["--noise-multiplier", "--steps"],
            _ => &["--steps"],
        };
        let form = match self.0.random_range(0..10) {
            0..=4 => "",
            5 | 6 => "--semantics",
            7 => "--compare",
            _ => self.one(&["--curve epsilon-delta", "--curve epsilon-steps", "--curve trade-off"]),
        };
        let unknown = match self.0.random_range(0..8) {
            _ if form == "--curve epsilon-steps" => "--epsilon",
            0..=3 => "--epsilon",
            4 => "--delta",
            _ => self.one(own),
        };
        let mut words = vec!["account".to_owned(), job.to_owned()];
        let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
        for &flag in own.iter().chain(&["--epsilon", "--delta"]).filter(|flag| **flag != unknown) {
            let value = match flag {
                "--noise-multiplier" => self.noise().to_string(),
                "--sampling-rate" => self.rate().to_string(),
                "--steps" => self.steps().to_string(),
                "--epsilon" => self.epsilon().to_string(),
                _ => self.delta().to_string(),
            };
            add(flag, value);
        }
        match job {
            "laplace-ball" => add("--dim", self.count(1.0, 1e4).to_string()),
            "randomized-response" => {
                add("--noise", self.between(1e-3, 1.0).to_string());
                add("--buckets", self.count(2.0, 1e6).to_string());
            }
            "pure" => add("--step-epsilon", self.between(1e-3, 10.0).to_string()),
            "approximate" => {
                add("--step-epsilon", self.between(1e-3, 10.0).to_string());
                add("--step-delta", self.between(1e-15, 1e-2).to_string());
            }
            "zcdp" => add("--rho", self.between(1e-6, 10.0).to_string()),
            "gdp" => add("--mu", self.between(1e-3, 10.0).to_string()),
            "dpsgd" if self.chance(0.3) => match self.one(&["--adjacency", "--sampling"]) {
                "--adjacency" => add("--adjacency", "replace-one".to_owned()),
                _ => add("--sampling", "without-replacement".to_owned()),
            },
            _ => {}
        }
        if form != "--compare" && self.chance(0.1) {
            add("--accountant", self.one(&["exact", "rdp", "zcdp", "gdp"]).to_owned());
        }
        words.extend(form.split_whitespace().map(str::to_owned));
        if self.chance(0.2) {
            words.push("--json".to_owned());
        }
        let solved = if form.starts_with("--curve") { form } else { unknown };
        (format!("{job} {}", solved.trim_start_matches('-')), words)
    }
}

/// Seconds of some questions, each with its words.
#[derive(Default)]
struct Times(Vec<(f64, String)>);

impl Times {
    fn row(&mut self, kind: &str) {
        self.0.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some((most, question)) = self.0.last() else { return };
        let at = |share: f64| self.0[((self.0.len() - 1) as f64 * share) as usize].0;
        println!("| {kind} | {} | {:.2} | {:.2} | {most:.2} | `{question}` |", self.0.len(), at(0.5), at(0.99));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, dp, number, seed] = arguments.as_slice() else {
        return Err("usage: questions DP NUMBER SEED".into());
    };
    let mut draw = Draw(StdRng::seed_from_u64(seed.parse()?));
    let (mut all, mut kinds, mut answered) = (Times::default(), BTreeMap::<String, Times>::new(), 0);
    for _ in 0..number.parse::<u64>()? {
        let (kind, words) = draw.question();
        let before = children()?;
        let status = Command::new(dp).args(&words).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        let seconds = children()? - before;
        answered += u64::from(status.success());
        let question = words.join(" ");
        if seconds > LONG {
            eprintln!("{seconds:.2} s: dp {question}");
        }
        all.0.push((seconds, question.clone()));
        kinds.entry(kind).or_default().0.push((seconds, question));
    }
    println!("{answered} of {number} were answered, the others refused.\n");
    println!("| kind | questions | median s | 99 % s | largest s | which |\n|---|---|---|---|---|---|");
    for (kind, times) in &mut kinds {
        times.row(kind);
    }
    all.row("all");
    Ok(())
}
