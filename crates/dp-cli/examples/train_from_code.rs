//! The commands from code: train on a table, verify the file, measure it. `cargo run -p dp-cli --example train_from_code`
#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::fmt::Write as _;

use clap::Parser;
use dp_cli::args::{Cli, Command};
use dp_cli::commands::{evaluate, train, verify};
use dp_cli::failure::Failure;
use dp_cli::model_file::ModelFile;
use dp_cli::output::Console;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (data, model) = (path("people.csv"), path("model.json"));
    std::fs::write(&data, table(20_000))?;

    let console = Console { quiet: true, ..Console::default() };
    // A configuration is checked when it is made from arguments; its fields are public and may be changed.
    let typed =
        ["dp", "train", "--data", &data, "--label", "buys", "--schema-from-data", "--epsilon", "0.5", "--out", &model];
    let trained = match Cli::try_parse_from(typed)? {
        Cli { command: Command::Train(args), global } => {
            train::TrainConfig::new(&args, &global).and_then(|config| train::run(&config, &console)).map_err(shown)?
        }
        _ => return Err("not a training".into()),
    };
    println!("{}", trained.text());

    let verified =
        ModelFile::open(&model.as_str().into()).and_then(|file| verify::run(&file, verify::WORK)).map_err(shown)?;
    println!("verified: epsilon = {:.4} by {}", verified.epsilon, verified.theorem);

    let measured = match Cli::try_parse_from(["dp", "evaluate", "--model", &model, "--data", &data])? {
        Cli { command: Command::Evaluate(args), global } => evaluate::EvaluateConfig::new(&args, &global)
            .and_then(|config| evaluate::run(&config, &console))
            .map_err(shown)?,
        _ => return Err("not an evaluation".into()),
    };
    let accuracy = measured.figures.accuracy().unwrap_or_default();
    println!("accuracy {accuracy:.3} (publishable: {})", measured.publishable);
    assert!(verified.epsilon <= 0.5 && accuracy > 0.7);
    Ok(())
}

/// The failure as a person would see it.
fn shown(failure: Failure) -> String {
    failure.to_text(str::to_owned)
}

/// Ages and visits; who comes often buys.
fn table(rows: u64) -> String {
    let mut text = String::from("age,visits,buys\n");
    for i in 0..rows {
        let (age, visits) = (18 + i * 7 % 60, i * 13 % 31);
        let buys = if 2 * visits + age % 10 > 34 { "yes" } else { "no" };
        let _ = writeln!(text, "{age},{visits},{buys}");
    }
    text
}
