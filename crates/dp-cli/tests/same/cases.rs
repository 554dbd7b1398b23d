//! The cases of the comparison.

use crate::specimens::words;
use crate::table::ALGORITHMS;

/// Commands that both builds run, each in its own folder, after some that only the older one has run.
pub struct Case {
    pub group: &'static str,
    pub before: Vec<Vec<String>>,
    pub commands: Vec<Vec<String>>,
}

impl Case {
    fn new(group: &'static str, commands: &[String]) -> Self {
        Self { group, before: vec![], commands: commands.iter().map(|command| words(command)).collect() }
    }

    fn after(mut self, command: &str) -> Self {
        self.before.push(words(command));
        self
    }

    /// Returns whether a command must succeed: comparing two equal errors shows nothing.
    pub fn must_succeed(&self, command: &[String]) -> bool {
        self.group != "refusals" && ["train", "tune", "rank", "account", "audit"].contains(&command[0].as_str())
    }

    pub fn name(&self) -> String {
        format!(
            "{} {}",
            self.group,
            self.before.iter().chain(&self.commands).next().map_or(String::new(), |words| words.join(" "))
        )
    }
}

const TABLE: &str = "train --data table.csv --schema schema.toml --out m.json";

pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for row in ALGORITHMS {
        for run in row.runs {
            for relation in row.relations {
                let flags = format!("--algorithm {} --adjacency {relation} {}", row.name, run.join(" "));
                cases.push(training(&format!("{TABLE} {flags}")));
                cases.push(honest(&format!("{TABLE} {flags}")));
            }
        }
        for (flags, ..) in row.refused {
            cases
                .push(Case::new("refusals", &[format!("{TABLE} --algorithm {} {} --json", row.name, flags.join(" "))]));
        }
        cases.push(Case::new(
            "refusals",
            &[format!("{TABLE} --algorithm {} --epsilon 1 {}", row.name, row.untaken.join(" "))],
        ));
        let sparse = format!(
            "train --data rows.svm --format libsvm --dim 9 --out m.json --algorithm {} {}",
            row.name,
            row.runs[0].join(" ")
        );
        cases.push(Case::new(
            "sparse",
            &[format!("{sparse} --seed 3 --json"), "predict --model m.json --data rows.svm".into()],
        ));
    }
    cases.extend(OTHER_TRAININGS.iter().map(|line| training(line)));
    cases.extend(OTHER_TRAININGS.iter().filter(|line| !line.contains("non-private")).map(|line| honest(line)));
    cases.extend(RANKERS.iter().map(|flags| ranker(flags)));
    for (group, lines) in [("accounting", ACCOUNTING), ("audits", AUDITS), ("words", WORDS)] {
        cases.extend(lines.iter().map(|line| Case::new(group, &[(*line).to_owned()])));
    }
    cases
}

/// A seeded training, its report and the predictions of its model; and a dry run of the same training.
fn training(line: &str) -> Case {
    let data = line.split(' ').nth(2).expect("the records").to_owned();
    let labels = if line.contains("labels.idx") { " --labels labels.idx" } else { "" };
    let group = if line.starts_with("tune") { "tuning" } else { "training" };
    let mut commands = vec![
        format!("{line} --seed 7 --report m.md --json"),
        "verify m.json --json".into(),
        format!("evaluate --model m.json --data {data}{labels} --json"),
        format!("predict --model m.json --data {data}"),
        format!("{line} --seed 7 --force"),
        format!("evaluate --model m.json --data {data}{labels}"),
    ];
    // A dry run reads no records, so that it cannot infer a schema from them.
    if !line.contains("--schema-from-data") {
        commands.insert(0, format!("{line} --dry-run --json"));
    }
    Case::new(group, &commands)
}

/// A model with secret noise, made by the older build: both must find the same guarantee in it.
fn honest(line: &str) -> Case {
    let commands =
        ["verify m.json --json", "verify m.json", "account certificate m.json --delta 1e-4 --json"].map(String::from);
    Case::new("verifying", &commands).after(line)
}

fn ranker(flags: &str) -> Case {
    let train = format!("rank train --data lists.txt --epsilon 3 --delta 1e-4 --updates 20 --out r.json {flags}");
    let commands = [
        format!("{train} --seed 7 --json"),
        "rank evaluate --model r.json --data lists.txt --json".into(),
        "rank predict --model r.json --data lists.txt".into(),
        "verify r.json --json".into(),
        format!("{train} --seed 7 --force"),
        format!("{train} --dry-run --n 20 --json --force"),
    ];
    Case::new("rankers", &commands)
}

/// Trainings missing in the table of algorithms: several classes, numbers, images, projections, penalties, tuning.
const OTHER_TRAININGS: &[&str] = &[
    "train --data table.csv --schema schema.toml --out m.json --algorithm non-private",
    "train --data table.csv --schema schema.toml --out m.json --algorithm non-private --loss huber-svm --lambda 0.01",
    "train --data table.csv --schema schema.toml --algorithm bolt-on-convex --out m.json --epsilon 1 --project gaussian:3 --project-seed 5",
    "train --data table.csv --schema schema.toml --algorithm bolt-on-convex --out m.json --epsilon 1 --project coordinates:2 --project-seed 5",
    "train --data table.csv --schema schema.toml --algorithm bolt-on-convex --out m.json --epsilon 1 --scale unit --row-norm unit",
    "train --data table.csv --schema schema.toml --algorithm bolt-on-convex --out m.json --epsilon 1 --float f32",
    "train --data table.csv --schema schema.toml --out m.json --algorithm dp-gd --epsilon 1 --delta 1e-6 --penalty group:0.01:2,2",
    "train --data table.csv --schema-from-data --label age --label-range 0 120 --out m.json --epsilon 1 --algorithm obj-pert",
    "train --data table.csv --schema-from-data --label hours --label-range 0 80 --out m.json --epsilon 1 --delta 1e-6 --algorithm dp-gd",
    "train --data table.csv --schema-from-data --label trade --classes baker,clerk,smith --out m.json --epsilon 2 --delta 1e-6 --algorithm dp-gd",
    "train --data table.csv --schema-from-data --label trade --classes baker,clerk,smith --algorithm bolt-on-convex --out m.json --epsilon 2 --one-vs-all joint",
    "train --data table.csv --schema-from-data --label trade --classes baker,clerk,smith --algorithm bolt-on-convex --out m.json --epsilon 2 --one-vs-all composed",
    "train --data table.csv --schema-from-data --label trade --classes baker,clerk,smith --algorithm bolt-on-convex --out m.json --epsilon 2 --one-vs-all split",
    "train --data images.idx --labels labels.idx --classes 0,1,2,3 --out m.json --epsilon 2 --delta 1e-6 --algorithm dp-gd",
    "train --data images.idx --labels labels.idx --classes 0,1,2,3 --out m.json --epsilon 2 --delta 1e-6 --algorithm dp-sgd",
    "tune --data table.csv --schema schema.toml --out m.json --epsilon 4 --passes 1,2",
    "train --data table.csv --schema schema.toml --out m.json --epsilon 4 --delta 1e-6 --fourier 20 --fourier-if-better",
    "tune --data table.csv --schema schema.toml --out m.json --epsilon 4 --delta 1e-6 --algorithm bolt-on-strongly-convex --lambda 0.01,0.1 --method composition",
    "tune --data table.csv --schema schema.toml --out m.json --epsilon 4 --algorithm bolt-on-strongly-convex --lambda 0.01,0.1 --method random-stopping --trials 3",
    "tune --data table.csv --schema schema.toml --out m.json --epsilon 4 --delta 1e-6 --algorithm bolt-on-strongly-convex --lambda 0.01,0.1 --method random-stopping --trial-law geometric",
    "tune --data table.csv --schema schema.toml --out m.json --epsilon 4 --passes 1,2 --method public --public people.csv",
];

const RANKERS: &[&str] = &[
    "--loss bayesrank --model linear",
    "--loss bayesrank --model linear --thin --k 2",
    "--loss bayesrank --model linear --scaling public",
    "--loss listmle --model mlp --hidden 4",
    "--loss bayesrank --model mlp --hidden 4 --activation tanh --normalise always",
    "--loss listnet --model linear --features 5 --protect lists",
    "--loss listnet --model linear --features 5 --protect lists --adjacency replace-one",
    "--loss bayesrank --model linear --features 5 --protect documents",
];

const ACCOUNTING: &[&str] = &[
    "account dpsgd --noise-multiplier 1.1 --sampling-rate 0.01 --steps 1000 --delta 1e-5 --json",
    "account dpsgd --noise-multiplier 1.1 --sampling-rate 0.01 --steps 1000 --delta 1e-5 --compare",
    "account dpsgd --noise-multiplier 1.1 --sampling-rate 0.01 --steps 1000 --delta 1e-5 --semantics",
    "account dpsgd --epsilon 1 --sampling-rate 0.01 --steps 1000 --delta 1e-5 --json",
    "account gaussian --noise-multiplier 2 --delta 1e-6 --json",
    "account gaussian --epsilon 1 --delta 1e-6 --json",
    "account laplace --noise-multiplier 2 --delta 1e-6 --json",
    "account laplace-ball --noise-multiplier 2 --dim 10 --delta 1e-6 --json",
    "account randomized-response --buckets 2 --noise 0.3 --delta 1e-6 --json",
    "account pure --step-epsilon 0.1 --steps 10 --delta 1e-6 --json",
    "account approximate --step-epsilon 0.1 --step-delta 1e-8 --steps 10 --delta 1e-6 --json",
    "account zcdp --rho 0.1 --delta 1e-6 --json",
    "account gdp --mu 1 --delta 1e-6 --json",
    "account event tree.json --delta 1e-6 --json",
    "account event tree.json --delta 1e-6 --compare",
    "account certificate gaussian.json --delta 1e-4 --json",
    "account batch questions.jsonl",
];

const AUDITS: &[&str] = &[
    "audit list --json",
    "audit mechanism laplace gaussian --trials 2000 --json",
    "audit recipe --algorithm bolt-on-convex --trials 1000 --pairs 8 --json",
    "audit recipe --algorithm dp-sgd --trials 400 --pairs 8 --json",
    "audit recipe --algorithm rank-grades --trials 400 --pairs 8 --json",
    "audit table --algorithm majority obj-pert --kind two-classes --trials 400 --json",
];

/// Texts for people, which change when the wording improves.
const WORDS: &[&str] = &[
    "--help",
    "train --help",
    "tune --help",
    "rank train --help",
    "account --help",
    "audit --help",
    "verify --help",
    "explain",
    "explain privacy.refused",
    "help exit-codes",
    "reproduce list",
    "demo --dry-run",
    "schema people.csv --label earns",
];
