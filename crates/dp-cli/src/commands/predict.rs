//! `dp predict`: a score and a class for each record, in the order of the records.

use std::io::Write;
use std::path::{Path, PathBuf};

use dp_data::read::{Input, RecordReader};
use serde::Serialize;

use super::dry_run::Foreseen;
use crate::args::{GlobalArgs, PredictArgs};
use crate::atomic::{self, PendingFile};
use crate::failure::Failure;
use crate::input::{InputConfig, check_distinct, check_stdin, conflict};
use crate::model_file::ModelFile;
use crate::output::{Console, STANDARD_OUTPUT, write_failure};
use crate::progress::{Counted, Progress, ProgressMode};

/// What to score, and where to write.
#[derive(Debug, Clone)]
pub struct PredictConfig {
    /// The model file.
    pub model: String,
    /// The records.
    pub input: InputConfig,
    /// Where to write; `None` for standard output.
    pub out: Option<PathBuf>,
    /// Whether to replace an existing file.
    pub force: bool,
    /// How to show progress.
    pub progress: ProgressMode,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// `dp.predict/1`.
    pub schema: &'static str,
    /// Records scored.
    pub n: u64,
    /// Where the scores are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl PredictConfig {
    /// Checks the flags.
    ///
    /// # Errors
    /// `usage.*`.
    pub fn new(args: &PredictArgs, global: &GlobalArgs) -> Result<Self, Failure> {
        check_stdin(&[("--model", Some(&args.model)), ("--data", Some(&args.input.data))])?;
        let out = args.out.clone().filter(|out| out.as_os_str() != "-");
        let mut named = vec![("--model", Path::new(&args.model)), ("--data", Path::new(&args.input.data))];
        named.extend(out.as_deref().map(|out| ("--out", out)));
        check_distinct(&named)?;
        if global.json && out.is_none() {
            return Err(conflict("--json", "the scores are CSV and would mix with JSON on standard output")
                .help("add --out FILE, or leave --json away"));
        }
        Ok(Self {
            model: args.model.clone(),
            input: InputConfig::new(&args.input)?,
            out,
            force: args.force,
            progress: global.progress,
        })
    }
}

/// Scores and prints.
///
/// # Errors
/// What is wrong with the model, the records or with writing.
pub fn execute(args: &PredictArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    let config = PredictConfig::new(args, global)?;
    if args.dry_run {
        return dry_run(&config)?.print(console);
    }
    let outcome = run(&config, console)?;
    match &outcome.file {
        Some(file) => console.result(&outcome, &format!("scored {} records: {file}", outcome.n)),
        None => Ok(()),
    }
}

/// Checks the model, the records' header and the output.
///
/// # Errors
/// What is wrong with them.
pub fn dry_run(config: &PredictConfig) -> Result<Foreseen, Failure> {
    let file = ModelFile::open(&config.model)?;
    let encoder = file.encoder_for(&config.input)?;
    let from_data = |error: dp_data::DataError| Failure::from_data(&error);
    let input = Input::open(&config.input.data).map_err(from_data)?;
    RecordReader::new(input, &encoder, &config.input.csv, false).map_err(from_data)?;
    let writes: Vec<&Path> = config.out.as_deref().into_iter().collect();
    Foreseen::new("dp.predict/1", &[&config.model, &config.input.data], &writes, config.force)
}

/// Scores into the file or to standard output.
///
/// # Errors
/// What is wrong with the model, the records or with writing. A file is then not there; what went to standard output
/// before stays there.
pub fn run(config: &PredictConfig, console: &Console) -> Result<Outcome, Failure> {
    let n = match &config.out {
        Some(out) => {
            let mut file = PendingFile::create(out, config.force)?;
            let n = score(config, console, &mut file, &atomic::shown(out))?;
            file.commit()?;
            n
        }
        None => {
            let stdout = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
            score(config, console, stdout, STANDARD_OUTPUT)?
        }
    };
    Ok(Outcome { schema: "dp.predict/1", n, file: config.out.as_deref().map(atomic::shown) })
}

fn score(config: &PredictConfig, console: &Console, mut out: impl Write, target: &str) -> Result<u64, Failure> {
    let file = ModelFile::open(&config.model)?;
    let encoder = file.encoder_for(&config.input)?;
    let from_data = |error: dp_data::DataError| Failure::from_data(&error);
    let input = Input::open(&config.input.data).map_err(from_data)?;
    let mut reader = RecordReader::new(input, &encoder, &config.input.csv, false).map_err(from_data)?;
    let mut progress = Progress::start(config.progress, console, "predict", Counted::Rows, None);
    let classes = &file.model.classes;
    let (positive, negative) = (csv_cell(&classes.positive), csv_cell(&classes.negative));
    let written = |error: std::io::Error| write_failure(&error, target);
    out.write_all(b"score,class\n").map_err(written)?;
    let (mut n, mut unknown) = (0_u64, 0_u64);
    while let Some(record) = reader.next_record().map_err(from_data)? {
        let row = record.row();
        if row.is_null() {
            // Nothing is known of it: no score is an answer, 0 would be a wrong one.
            unknown += 1;
            out.write_all(b",\n").map_err(written)?;
        } else {
            let score = row.dot(&file.model.weights);
            let class = if score > 0.0 { &positive } else { &negative };
            writeln!(out, "{score:?},{class}").map_err(written)?;
        }
        n += 1;
        if n % 4096 == 0 {
            progress.update(n, None);
        }
    }
    out.flush().map_err(written)?;
    progress.finish(n);
    if unknown > 0 {
        console.warn_curator(&format!("{unknown} records have missing or undeclared cells and got no score"));
    }
    Ok(n)
}

/// A cell as RFC 4180 writes it.
fn csv_cell(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_needed() {
        assert_eq!(csv_cell(">50K"), ">50K");
        assert_eq!(csv_cell("a \"b\", c"), "\"a \"\"b\"\", c\"");
    }
}
