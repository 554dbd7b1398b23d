//! `dp predict`: for each record, in order, a class with its score, the probabilities of all classes, or a number; or a query
//! that computes them in a database.

use std::io::Write;
use std::path::{Path, PathBuf};

use dp::ModelFile;
use dp::metrics::{probability, softmax};
use dp::model::{Model, ModelKind, Prediction};
use dp::network::NetworkFile;
use dp::wording::one_line;
use dp_data::read::RecordReader;
use dp_data::sql::Dialect;
use dp_data::{Encoder, Workers};
use serde::Serialize;

use super::dry_run::Foreseen;
use super::network::{self, ImageFiles};
use crate::args::{GlobalArgs, PredictArgs};
use crate::atomic::{self, PendingFile};
use crate::failure::Failure;
use crate::files::{self, AnyModel};
use crate::input::{InputConfig, check_distinct, check_stdin, conflict, meaningless};
use crate::output::{Console, STANDARD_OUTPUT, write_failure};
use crate::progress::{Counted, Progress, ProgressMode};

/// The configuration of `dp predict`.
#[derive(Debug, Clone)]
pub struct PredictConfig {
    /// The flags as given.
    pub args: PredictArgs,
    /// The records.
    pub input: InputConfig,
    /// The output file; `None` for standard output.
    pub out: Option<PathBuf>,
    /// The progress display.
    pub progress: ProgressMode,
    /// The threads that read and score records.
    pub workers: Workers,
}

/// The result of a prediction run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// `dp.predict/1`.
    pub schema: &'static str,
    /// Records scored.
    pub n: u64,
    /// The file that holds the scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl PredictConfig {
    /// Checks the flags.
    ///
    /// # Errors
    /// `usage.*`.
    pub fn new(args: &PredictArgs, global: &GlobalArgs) -> Result<Self, Failure> {
        let missing =
            || Failure::usage("--data", "the records were not named").help("add --data FILE, or --sql DIALECT");
        let data = args.data.as_ref().ok_or_else(missing)?;
        check_stdin(&[
            ("--model", Some(&args.model)),
            ("--data", Some(data)),
            ("--labels", args.form.labels.as_deref()),
        ])?;
        let input = InputConfig::new(data, &args.form)?;
        let out = args.out.clone().filter(|out| out.as_os_str() != "-");
        let mut named = vec![("--model", Path::new(&args.model))];
        named.extend(input.named());
        named.extend(out.as_deref().map(|out| ("--out", out)));
        check_distinct(&named)?;
        if global.json && out.is_none() {
            return Err(conflict("--json", "the scores are CSV and would mix with JSON on standard output")
                .help("add --out FILE, or omit --json"));
        }
        let (progress, workers) = (global.progress, global.workers());
        let ids = ("--id", !args.id.is_empty() && !input.format.is_table());
        meaningless(&[ids], format_args!("for {}, which has no columns", input.format.name()))?;
        Ok(Self { args: args.clone(), input, out, progress, workers })
    }
}

/// Predicts and prints.
///
/// # Errors
/// Errors in the model or the records, and output that cannot be written.
pub fn execute(args: &PredictArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    if let Some(dialect) = args.sql {
        return write_query(args, dialect, console);
    }
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

/// The result of writing a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Query {
    /// `dp.predict-sql/1`.
    schema: &'static str,
    /// The query.
    #[serde(skip_serializing_if = "Option::is_none")]
    sql: Option<String>,
    /// The file that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

/// Writes the query of the predictions to the file or to standard output.
fn write_query(args: &PredictArgs, dialect: Dialect, console: &Console) -> Result<(), Failure> {
    let out = args.out.as_deref().filter(|out| out.as_os_str() != "-");
    if let Some(out) = out {
        check_distinct(&[("--model", Path::new(&args.model)), ("--out", out)])?;
    }
    let file = files::deciding_at(files::model(&args.model)?, &args.model, args.threshold)?;
    let table = args.form.table.as_deref().unwrap_or_default();
    let sql =
        dp::sql::query(&file.model, dialect, table).map_err(|error| Failure::from_data(&error).at_file(&args.model))?;
    let schema = "dp.predict-sql/1";
    match out {
        None => console.result(&Query { schema, sql: Some(sql.clone()), file: None }, &sql),
        Some(_) if args.dry_run => {
            Foreseen::new("dp.predict/1", &[&args.model], &out.into_iter().collect::<Vec<_>>(), args.force)?
                .print(console)
        }
        Some(out) => {
            let shown = atomic::shown(out);
            let mut file = PendingFile::create(out, args.force)?;
            writeln!(file, "{sql}").map_err(|error| write_failure(&error, &shown))?;
            file.commit()?;
            console
                .result(&Query { schema, sql: None, file: Some(shown.clone()) }, &format!("wrote the query: {shown}"))
        }
    }
}

/// Checks the model, the header of the records and the output.
///
/// # Errors
/// Errors in any of them.
pub fn dry_run(config: &PredictConfig) -> Result<Foreseen, Failure> {
    match Subject::new(config)? {
        Subject::Network(..) => {}
        Subject::Linear(_, encoder) => {
            let input = config.input.open()?;
            RecordReader::keeping(input, &encoder, &config.input.csv, false, &config.args.id)?;
        }
    }
    let writes: Vec<&Path> = config.out.as_deref().into_iter().collect();
    Foreseen::new("dp.predict/1", &[&config.args.model, &config.input.data], &writes, config.args.force)
}

/// Writes the predictions to the file or to standard output.
///
/// # Errors
/// Errors in the model or the records, and output that cannot be written. A failed run leaves no file; text already on
/// standard output stays.
pub fn run(config: &PredictConfig, console: &Console) -> Result<Outcome, Failure> {
    let n = match &config.out {
        Some(out) => {
            let mut file = PendingFile::create(out, config.args.force)?;
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

/// The model with its reading of records.
enum Subject {
    Linear(Box<ModelFile>, Box<Encoder>),
    Network(Box<NetworkFile>, ImageFiles),
}

impl Subject {
    /// Reads the model, and checks that it fits the flags and the kind of records.
    fn new(config: &PredictConfig) -> Result<Self, Failure> {
        match files::any_model(&config.args.model)? {
            AnyModel::Linear(file) => {
                let file = files::deciding_at(*file, &config.args.model, config.args.threshold)?;
                let encoder = files::encoder_for(&file, &config.input, config.args.on_unknown)?;
                Ok(Self::Linear(Box::new(file), Box::new(encoder)))
            }
            AnyModel::Network(_) if config.args.on_unknown.is_some() => {
                Err(conflict("--on-unknown", "images have no categories"))
            }
            AnyModel::Network(_) if config.args.threshold.is_some() => Err(files::no_threshold(&config.args.model)),
            AnyModel::Network(file) => {
                let images = ImageFiles::of_network(&config.input, &file)?;
                Ok(Self::Network(file, images))
            }
        }
    }
}

fn score(config: &PredictConfig, console: &Console, mut out: impl Write, target: &str) -> Result<u64, Failure> {
    let (file, encoder) = match Subject::new(config)? {
        Subject::Network(file, images) => {
            return network::write_predictions(config, &file, &images, console, (out, target));
        }
        Subject::Linear(file, encoder) => (file, encoder),
    };
    let input = config.input.open()?.with_workers(config.workers);
    let mut reader = RecordReader::keeping(input, &encoder, &config.input.csv, false, &config.args.id)?;
    let mut progress = Progress::start(config.progress, console, "predict", Counted::Rows, None);
    let layout = Layout::of(&file.model);
    let written = |error: std::io::Error| write_failure(&error, target);
    let ids: String = config.args.id.iter().map(|name| csv_cell(name) + ",").collect();
    writeln!(out, "{ids}{}", layout.header).map_err(written)?;
    let of_part = |records: &mut RecordReader<'_>| {
        let (mut part, mut scores) = (Part::default(), vec![0.0; file.model.kind.outputs()]);
        while let Some(record) = records.next_record()? {
            part.n += 1;
            record.for_each_kept(|cell| {
                part.lines.push_str(&csv_cell(cell));
                part.lines.push(',');
            });
            if record.row().is_null() {
                // All features are unknown: the score is empty, as 0 would be wrong.
                part.unknown += 1;
                part.lines.push_str(&layout.blank);
            } else {
                file.model.score(record.row(), &mut scores);
                layout.append(&mut scores, &mut part.lines);
            }
            part.lines.push('\n');
        }
        Ok(part)
    };
    let (mut n, mut unknown) = (0, 0);
    reader.for_each_part(of_part, |part| {
        out.write_all(part.lines.as_bytes()).map_err(written)?;
        (n, unknown) = (n + part.n, unknown + part.unknown);
        progress.update(n, None);
        Ok::<_, Failure>(())
    })?;
    out.flush().map_err(written)?;
    progress.finish(n);
    reader.warnings().iter().for_each(|warning| console.warn_curator(&one_line(&warning.to_string())));
    if unknown > 0 {
        console.warn_curator(&format!("{unknown} records have missing or undeclared cells and got no score"));
    }
    Ok(n)
}

/// Scores of some records.
#[derive(Default)]
struct Part {
    lines: String,
    n: u64,
    unknown: u64,
}

/// The layout of an output line.
struct Layout<'m> {
    model: &'m Model,
    header: String,
    /// The line of a record without any known feature.
    blank: String,
    /// The class names, as CSV cells.
    classes: Vec<String>,
}

impl<'m> Layout<'m> {
    fn of(model: &'m Model) -> Self {
        let (header, blank, classes) = match &model.kind {
            ModelKind::LinearClassifier { classes } => {
                let cells = [&classes.positive, &classes.negative].map(|class| csv_cell(class));
                let (header, blank) =
                    if model.has_probabilities() { ("score,probability,class", ",,") } else { ("score,class", ",") };
                (header.to_owned(), blank.to_owned(), cells.to_vec())
            }
            ModelKind::MultiClassLinear { classes } => {
                let what = if model.has_probabilities() { "probability" } else { "score" };
                let columns: String =
                    classes.iter().map(|class| format!(",{}", csv_cell(&format!("{what}:{class}")))).collect();
                let cells = classes.iter().map(|class| csv_cell(class)).collect();
                (format!("class{columns}"), ",".repeat(classes.len()), cells)
            }
            // A blank line would not count as a record, so the empty cell is quoted.
            ModelKind::LinearRegression { .. } => ("prediction".to_owned(), "\"\"".to_owned(), Vec::new()),
        };
        Self { model, header, blank, classes }
    }

    /// Appends the line of a record, without its end.
    fn append(&self, scores: &mut [f64], lines: &mut String) {
        let class = match self.model.prediction(scores) {
            Prediction::Number(value) => return push(lines, format_args!("{value:?}")),
            Prediction::Class { index, .. } => self.classes.get(index).map_or("", |class| class),
        };
        if let ([score], ModelKind::LinearClassifier { .. }) = (&*scores, &self.model.kind) {
            return match self.model.has_probabilities() {
                true => push(lines, format_args!("{score:?},{:?},{class}", probability(*score))),
                false => push(lines, format_args!("{score:?},{class}")),
            };
        }
        lines.push_str(class);
        if self.model.has_probabilities() {
            softmax(scores);
        }
        scores.iter().for_each(|score| push(lines, format_args!(",{score:?}")));
    }
}

fn push(lines: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = std::fmt::Write::write_fmt(lines, text);
}

/// Formats a cell according to RFC 4180.
pub(super) fn csv_cell(text: &str) -> String {
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
