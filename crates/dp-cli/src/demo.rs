//! `dp demo`: the whole workflow on a synthetic table.
//!
//! Runs the commands that a user would type, through the same parser and functions, and prints them.

mod clinic;

use std::path::Path;
use std::time::Instant;

use clap::Parser;
use dp::wording;
use serde::Serialize;

use crate::args::{Cli, Command, DemoArgs, GlobalArgs};
use crate::atomic;
use crate::commands::dry_run::Foreseen;
use crate::commands::{evaluate, train};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::files;
use crate::output::Console;

/// The files that it writes to its folder.
const FILES: [&str; 6] =
    ["clinic.csv", "clinic-test.csv", "clinic.schema.toml", "model.json", "report.md", "non-private.json"];
/// Rows of the test table.
const TEST_ROWS: usize = 10_000;

/// The result of the demonstration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// `dp.demo/1`.
    pub schema: &'static str,
    /// Rows trained on.
    pub n: u64,
    /// Number of features, including the intercept.
    pub dim: u64,
    /// Epsilon of the private model, as verified from its file.
    pub epsilon: f64,
    /// Delta of the private model.
    pub delta: f64,
    /// Its neighbouring relation.
    pub adjacency: &'static str,
    /// Accuracy on fresh rows of the majority-class prediction.
    pub majority: f64,
    /// Accuracy on fresh rows of the model trained without privacy.
    pub accuracy_without_privacy: f64,
    /// Accuracy on fresh rows of the private model.
    pub accuracy: f64,
    /// Seconds of the private training, including reading.
    pub seconds: f64,
    /// The private model with its certificate.
    pub model: String,
    /// The report that accompanies the model.
    pub report: String,
    /// The training table.
    pub data: String,
}

/// Generates the table, trains with and without privacy, evaluates, verifies and prints.
///
/// # Errors
/// Output files that exist already or cannot be written.
pub fn execute(args: &DemoArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    check(args, global)?;
    if args.dry_run {
        let names = FILES.map(str::to_owned);
        return Foreseen::in_folder("dp.demo/1", Path::new(&args.dir), &names, args.force)?.print(console);
    }
    let outcome = run(args, global, console)?;
    console.result(&outcome, &outcome.text())
}

/// Fewer rows than these may be too few for a useful model.
const FEW_ROWS: usize = 5000;

/// Refuses arguments that no training takes.
fn check(args: &DemoArgs, global: &GlobalArgs) -> Result<(), Failure> {
    if !(1..=10_000_000).contains(&args.rows) {
        let message = format!("--rows is {}", args.rows);
        return Err(Failure::new(ExitStatus::Usage, "usage.value", message).expected("between 1 and 10000000"));
    }
    let (epsilon, delta) = (args.epsilon.to_string(), args.delta.to_string());
    let path = |name: &str| Path::new(&args.dir).join(name).display().to_string();
    let (data, schema, model) = (path("clinic.csv"), path("clinic.schema.toml"), path("model.json"));
    let mut training = vec!["train", "--data", &data, "--schema", &schema, "--out", &model];
    training.extend(["--epsilon", &epsilon, "--delta", &delta]);
    if args.force {
        training.push("--force");
    }
    if let Command::Train(args) = parsed(&training)? {
        train::TrainConfig::new(&args, global)?;
    }
    Ok(())
}

fn run(args: &DemoArgs, global: &GlobalArgs, console: &Console) -> Result<Outcome, Failure> {
    let folder = Path::new(&args.dir);
    std::fs::create_dir_all(folder).map_err(|error| crate::output::write_failure(&error, &args.dir))?;
    let path = |name: &str| folder.join(name);
    for name in FILES {
        atomic::check(&path(name), args.force)?;
    }
    let shown = |name: &str| path(name).display().to_string();
    let (data, schema, test, model, report) = (
        shown("clinic.csv"),
        shown("clinic.schema.toml"),
        shown("clinic-test.csv"),
        shown("model.json"),
        shown("report.md"),
    );
    let epsilon = args.epsilon.to_string();
    let delta = args.delta.to_string();

    let mut private = vec!["train", "--data", &data, "--schema", &schema, "--epsilon", &epsilon, "--delta", &delta];
    private.extend(["--out", &model, "--report", &report]);
    // A demonstration on few rows shows how little they give.
    if args.rows < FEW_ROWS {
        private.push("--anyway");
    }
    if args.force {
        private.push("--force");
    }
    let table = clinic::csv(args.rows, args.data_seed);
    let test_table = clinic::csv(TEST_ROWS, args.data_seed.wrapping_add(1));
    for (name, text) in
        [("clinic.csv", &*table), ("clinic-test.csv", &*test_table), ("clinic.schema.toml", clinic::SCHEMA)]
    {
        atomic::write(&path(name), args.force, text.as_bytes())?;
    }
    // These records are synthetic, so that the time may depend on them.
    let started = Instant::now();
    let trained = train_by(&private, global, console)?;
    let seconds = started.elapsed().as_secs_f64();
    let verified = dp::verify::model(&files::model(&model.as_str().into())?, dp::verify::WORK)?;
    console.note(&format!("$ dp verify {model}"));
    let measured = evaluate_by(&["evaluate", "--model", &model, "--data", &test, "--public-data"], global, console)?;

    let baseline_model = shown("non-private.json");
    let mut baseline = vec!["train", "--data", &data, "--schema", &schema, "--algorithm", "non-private"];
    baseline.extend(["--out", &baseline_model]);
    if args.force {
        baseline.push("--force");
    }
    train_by(&baseline, global, console)?;
    let plain = evaluate_by(&["evaluate", "--model", &baseline_model, "--data", &test], global, console)?;

    Ok(Outcome {
        schema: "dp.demo/1",
        n: trained.n,
        dim: trained.dim,
        epsilon: verified.epsilon,
        delta: verified.delta,
        adjacency: verified.adjacency,
        majority: clinic::majority(TEST_ROWS, args.data_seed.wrapping_add(1)),
        accuracy_without_privacy: plain.figures.accuracy().unwrap_or(f64::NAN),
        accuracy: measured.figures.accuracy().unwrap_or(f64::NAN),
        seconds,
        model,
        report,
        data,
    })
}

impl Outcome {
    fn text(&self) -> String {
        format!(
            "\na private model of a synthetic hospital's readmissions, from {} records, {} features\n\n  \
             accuracy on {TEST_ROWS} held-out records\n    majority class           {:.3}\n    without privacy          {:.3}\n    \
             with privacy             {:.3}\n\n  guarantee    epsilon = {}, delta = {}, {}, verified from the file \
             alone\n  trained in   {:.2} s, reading included\n  model        {} (with its certificate)\n  report       \
             {}\n  data         {}\n\nnext: dp verify {}",
            self.n,
            self.dim,
            self.majority,
            self.accuracy_without_privacy,
            self.accuracy,
            wording::epsilon(self.epsilon),
            wording::delta(self.delta),
            self.adjacency,
            self.seconds,
            self.model,
            self.report,
            self.data,
            self.model
        )
    }
}

/// Prints a command as typed and parses it.
fn typed(arguments: &[&str], console: &Console) -> Result<Command, Failure> {
    console.note(&format!("$ dp {}", arguments.join(" ")));
    parsed(arguments)
}

fn parsed(arguments: &[&str]) -> Result<Command, Failure> {
    Cli::try_parse_from(std::iter::once("dp").chain(arguments.iter().copied())).map(|cli| cli.command).map_err(
        |error| Failure::new(ExitStatus::Usage, "usage.arguments", error.render().to_string().trim().to_owned()),
    )
}

fn train_by(arguments: &[&str], global: &GlobalArgs, console: &Console) -> Result<train::Outcome, Failure> {
    match typed(arguments, console)? {
        Command::Train(args) => train::run(&train::TrainConfig::new(&args, global)?, console),
        _ => Err(Failure::new(ExitStatus::Usage, "usage.arguments", "not a training")),
    }
}

fn evaluate_by(arguments: &[&str], global: &GlobalArgs, console: &Console) -> Result<evaluate::Outcome, Failure> {
    match typed(arguments, console)? {
        Command::Evaluate(args) => evaluate::run(&evaluate::EvaluateConfig::new(&args, global)?, console),
        _ => Err(Failure::new(ExitStatus::Usage, "usage.arguments", "not an evaluation")),
    }
}
