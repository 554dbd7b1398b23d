//! The time of `dp account` on random questions of every kind, of `dp train --dry-run` on random plans, and of `dp verify` on
//! random certificates.
//!
//! ```text
//! cargo build --release -p dp-cli
//! cargo run --release -p benches --bin questions -- target/release/dp 10000 1
//! ```
//!
//! asks 10,000 questions from seed 1 and prints, for each kind and for all together, their number, the median, the 99th
//! percentile and the maximum of the processor time, and the slowest question. A tenth of the numbers are extreme. A plan is
//! for up to 2^27 records; the verified models are trained on few records, since a certificate requires a model. Each
//! question is a separate process, whose time the kernel counts in hundredths of a second.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Time in seconds above which a question is printed as it occurs.
const LONG: f64 = 2.0;

/// Number of training records, and the name of their file.
const RECORDS: (u64, &str) = (200, "records.svm");

/// The algorithms that are planned or trained.
const ALGORITHMS: &[&str] = &[
    "auto",
    "bolt-on-convex",
    "bolt-on-strongly-convex",
    "bst14-convex",
    "bst14-strongly-convex",
    "dp-sgd",
    "dp-gd",
    "dp-ftrl",
    "dp-newton",
    "dp-adam",
    "ss-admm",
    "mp-admm",
    "dp-admm",
    "dp-svrg",
    "noisy-moments",
    "obj-pert",
    "amp",
    "admm-obj-pert",
    "phased-sgd",
    "pnsgd",
    "snowball-sgd",
    "rsgd-ar",
    "dp-blgd",
    "dp-agd",
    "scs13",
];

/// Returns the processor seconds of all finished child processes.
fn children() -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').ok_or("unknown form of /proc/self/stat")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks =
        |index: usize| fields.get(index).ok_or("too few fields")?.parse::<f64>().map_err(Box::<dyn Error>::from);
    Ok((ticks(13)? + ticks(14)?) / 100.0)
}

/// The random numbers of a question.
struct Draw(StdRng);

impl Draw {
    fn chance(&mut self, share: f64) -> bool {
        self.0.random::<f64>() < share
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.0.random_range(0..of.len())]
    }

    /// Draws on a logarithmic scale, with four digits.
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

    /// Draws a question and its kind; its inputs are written to files of this folder.
    fn question(&mut self) -> Result<(String, Vec<String>), Box<dyn Error>> {
        let split = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (kind, mut words) = match self.0.random_range(0..20) {
            0 | 1 => {
                fs::write("tree.json", self.event(2))?;
                ("event", split("account event tree.json"))
            }
            2 => ("certificate", split("account certificate model.json")),
            3 => {
                let lines: Vec<String> = (0..self.count(1.0, 10.0)).map(|_| line(&self.numbers().1)).collect();
                fs::write("lines.jsonl", lines.join("\n"))?;
                return Ok(("batch".to_owned(), split("account batch lines.jsonl")));
            }
            4..=6 => return Ok(self.training(Some((10.0, (1u64 << 27) as f64)))),
            7 => return Ok(self.training(None)),
            8 => return Ok(("verify".to_owned(), split("verify model.json"))),
            _ => return Ok(self.numbers()),
        };
        let (flag, value) = if self.chance(0.7) { ("--delta", self.delta()) } else { ("--epsilon", self.epsilon()) };
        words.extend([flag.to_owned(), value.to_string()]);
        Ok((format!("{kind} {}", flag.trim_start_matches('-')), words))
    }

    /// Draws a tree of events.
    fn event(&mut self, depth: u32) -> String {
        let gaussian = |draw: &mut Self| format!(r#"{{"type":"gaussian","std_dev":{},"sensitivity":1}}"#, draw.noise());
        match self.0.random_range(0..if depth == 0 { 4 } else { 6 }) {
            0 => gaussian(self),
            1 => format!(r#"{{"type":"laplace","scale":{},"sensitivity":1}}"#, self.noise()),
            2 => format!(r#"{{"type":"pure-dp","epsilon":{}}}"#, self.between(1e-3, 10.0)),
            3 => {
                let (rate, event) = (self.rate(), gaussian(self));
                format!(r#"{{"type":"poisson-sampled","sampling_rate":{rate},"event":{event}}}"#)
            }
            4 => {
                let (event, count) = (self.event(depth - 1), self.steps());
                format!(r#"{{"type":"self-composed","event":{event},"count":{count}}}"#)
            }
            _ => {
                let events: Vec<String> = (0..self.count(2.0, 5.0)).map(|_| self.event(depth - 1)).collect();
                format!(r#"{{"type":"composed","events":[{}]}}"#, events.join(","))
            }
        }
    }

    /// Draws a plan for a number of records in this range, or a training on the few existing ones.
    fn training(&mut self, records: Option<(f64, f64)>) -> (String, Vec<String>) {
        let (algorithm, epsilon, delta) = (self.one(ALGORITHMS), self.epsilon(), self.delta());
        let what = format!("train --data {} --format libsvm --algorithm {algorithm} --epsilon {epsilon}", RECORDS.1);
        let mut words: Vec<String> = what.split(' ').map(str::to_owned).collect();
        let n = records.map_or(RECORDS.0, |(low, high)| self.count(low, high));
        let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
        add("--out", "model.json".to_owned());
        add("--delta", delta.to_string());
        if self.chance(0.2) {
            add("--adjacency", "replace-one".to_owned());
        }
        if self.chance(0.3) {
            add("--lambda", self.between(1e-4, 1.0).to_string());
        }
        if algorithm.contains("sgd") || algorithm.contains("bst14") || algorithm.contains("adam") {
            let batch = if self.chance(0.2) { 1 } else { self.count(1.0, n as f64) };
            add("--batch-size", batch.to_string());
        }
        if records.is_none() {
            words.push("--force".to_owned());
            return ("train".to_owned(), words);
        }
        add("--dim", self.count(1.0, 1000.0).to_string());
        add("--n", n.to_string());
        words.push("--dry-run".to_owned());
        (format!("plan {algorithm}"), words)
    }

    /// Draws a question about numbers and its kind.
    fn numbers(&mut self) -> (String, Vec<String>) {
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

/// Returns the line of a batch that asks for one number of the job given by these words.
fn line(words: &[String]) -> String {
    let mut members = vec![format!(r#""job":"{}""#, words[1])];
    for pair in words[2..].windows(2).filter(|pair| pair[0].starts_with("--") && !pair[1].starts_with("--")) {
        let (key, value) = (pair[0][2..].replace('-', "_"), &pair[1]);
        let value = if value.parse::<f64>().is_ok() { value.clone() } else { format!(r#""{value}""#) };
        members.extend((key != "curve").then(|| format!(r#""{key}":{value}"#)));
    }
    format!("{{{}}}", members.join(","))
}

/// The seconds of some questions, each with its words.
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
    let dp = fs::canonicalize(dp)?;
    let folder = std::env::temp_dir().join(format!("dp-questions-{}", std::process::id()));
    fs::create_dir(&folder)?;
    std::env::set_current_dir(&folder)?;
    let asked = ask(&dp, number, seed);
    std::env::set_current_dir(std::env::temp_dir())?;
    fs::remove_dir_all(folder)?;
    asked
}

fn ask(dp: &Path, number: &str, seed: &str) -> Result<(), Box<dyn Error>> {
    let mut draw = Draw(StdRng::seed_from_u64(seed.parse()?));
    let records = (0..RECORDS.0).map(|_| {
        let label = draw.one(&["+1", "-1"]);
        format!("{label} 1:{} 2:{}\n", draw.0.random::<f64>(), draw.0.random::<f64>())
    });
    fs::write(RECORDS.1, records.collect::<String>())?;
    // A first model for questions about the last one.
    let train = format!("train --data {} --format libsvm --dim 2 --epsilon 1 --out model.json -q", RECORDS.1);
    if !Command::new(dp).args(train.split(' ')).stdout(Stdio::null()).status()?.success() {
        return Err("no model to ask about".into());
    }
    let (mut all, mut kinds, mut answered) = (Times::default(), BTreeMap::<String, Times>::new(), 0);
    for _ in 0..number.parse::<u64>()? {
        let (kind, words) = draw.question()?;
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
