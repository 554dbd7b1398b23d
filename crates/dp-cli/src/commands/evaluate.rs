//! `dp evaluate`: measures the quality of a model on labelled records.

mod curves;
mod released;
mod subject;

use std::path::Path;

use dp::metrics::{AtThreshold, ClassOutcome, Figures, NumberMetrics};
use dp::wording::one_line;
use dp_data::Workers;
use serde::Serialize;

use subject::{Read, Subject};

use crate::args::{EvaluateArgs, Format, GlobalArgs};
use crate::atomic;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::{InputConfig, check_distinct, check_stdin};
use crate::output::Console;
use crate::progress::ProgressMode;

/// The configuration of `dp evaluate`.
#[derive(Debug, Clone)]
pub struct EvaluateConfig {
    /// The flags as given.
    pub args: EvaluateArgs,
    /// The records.
    pub input: InputConfig,
    /// The output file of the curves.
    pub curves: Option<curves::Target>,
    /// The release of noisy metrics, if requested.
    pub release: Option<released::Release>,
    /// The progress display.
    pub progress: ProgressMode,
    /// The threads that read and score records.
    pub workers: Workers,
}

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// `dp.evaluate/1`.
    pub schema: &'static str,
    /// Records with a label.
    pub n: u64,
    /// The metrics that fit the kind of model.
    #[serde(flatten)]
    pub figures: Figures,
    /// The file that holds the curves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curves: Option<String>,
    /// True if these figures may be published: the records were declared public and the guarantee of the model holds. Figures
    /// of a model without a guarantee reveal its training records.
    pub publishable: bool,
}

/// Largest number of classes for which the confusion matrix is printed as text.
const MOST_SHOWN: usize = 12;

/// Formats the figures as text, one per line.
fn text(figures: &Figures) -> String {
    match figures {
        Figures::Two { threshold, metrics, log_loss, thresholds, .. } => {
            let of_both =
                |share: &Option<f64>| share.map_or("none (one class only)".to_owned(), |share| format!("{share:.4}"));
            let mut text = format!(
                "threshold          {}\naccuracy           {:.4}\nbalanced accuracy  {}\ntrue-positive rate {}\ntrue-negative rate {}\n\
                 auc                {}\n",
                significant(*threshold),
                metrics.accuracy,
                of_both(&metrics.balanced_accuracy),
                of_both(&metrics.true_positive_rate),
                of_both(&metrics.true_negative_rate),
                of_both(&metrics.auc)
            );
            if let Some(log_loss) = log_loss {
                text.push_str(&format!("log loss           {log_loss:.4}\n"));
            }
            let row = |name: &str, counts: [u64; 2]| [name.to_owned(), counts[0].to_string(), counts[1].to_string()];
            let counts = &metrics.confusion;
            text.push_str(&table(&[
                ["true \\ predicted", "positive", "negative"].map(str::to_owned).to_vec(),
                row("positive", [counts.true_positives, counts.false_negatives]).to_vec(),
                row("negative", [counts.false_positives, counts.true_negatives]).to_vec(),
            ]));
            text.push_str(&threshold_table(thresholds));
            text
        }
        Figures::Number(NumberMetrics { rmse, mae, r2 }) => {
            let r2 = r2.map_or("none (all labels are the same)".to_owned(), |r2| format!("{r2:.4}"));
            format!("rmse      {}\nmae       {}\nr2        {r2}\n", significant(*rmse), significant(*mae))
        }
        Figures::Several { accuracy, macro_f1, log_loss, classes, confusion } => {
            let mut text = format!("accuracy  {accuracy:.4}\nmacro f1  {macro_f1:.4}\n");
            if let Some(log_loss) = log_loss {
                text.push_str(&format!("log loss  {log_loss:.4}\n"));
            }
            text.push_str(&class_table(classes, confusion.as_deref().filter(|_| classes.len() <= MOST_SHOWN)));
            text
        }
    }
}

/// Formats the rates at other thresholds.
fn threshold_table(thresholds: &[AtThreshold]) -> String {
    let share = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{share:.4}"));
    let header =
        ["threshold", "accuracy", "true-positive rate", "false-positive rate", "precision", "predicted positive"];
    let rows = thresholds.iter().map(|at| {
        vec![
            // Scores that are no logits have many digits.
            format!("{:.4}", at.threshold).trim_end_matches('0').to_owned(),
            format!("{:.4}", at.accuracy),
            share(at.true_positive_rate),
            share(at.false_positive_rate),
            share(at.precision),
            format!("{:.4}", at.positive_share),
        ]
    });
    table(&[header.map(str::to_owned).to_vec()].into_iter().chain(rows).collect::<Vec<_>>())
}

/// Formats a number with four significant digits or more.
fn significant(value: f64) -> String {
    if (0.1..1e6).contains(&value) { format!("{value:.4}") } else { format!("{value:.4e}") }
}

/// Formats the table of the classes, with their rows of the confusion matrix if there is one.
fn class_table(classes: &[ClassOutcome], confusion: Option<&[Vec<u64>]>) -> String {
    let share = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{share:.4}"));
    let mut rows = vec![["class", "records", "recall", "precision", "f1"].map(str::to_owned).to_vec()];
    for class in classes {
        let figures = &class.figures;
        rows.push(vec![
            one_line(&class.class),
            figures.records.to_string(),
            share(figures.recall),
            share(figures.precision),
            share(figures.f1),
        ]);
    }
    let mut text = table(&rows);
    if let Some(confusion) = confusion {
        let names = classes.iter().map(|class| one_line(&class.class));
        let mut rows = vec![std::iter::once("true \\ predicted".to_owned()).chain(names.clone()).collect::<Vec<_>>()];
        for (name, counts) in names.zip(confusion) {
            rows.push(std::iter::once(name).chain(counts.iter().map(u64::to_string)).collect());
        }
        text.push_str(&table(&rows));
    }
    text
}

/// Aligns cells in columns: the first to the left, the others to the right.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::from("\n");
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("  {cell:>width$}"),
        });
        text.push_str(cells.collect::<String>().trim_end());
        text.push('\n');
    }
    text
}

impl EvaluateConfig {
    /// Checks the flags.
    ///
    /// # Errors
    /// `usage.*`.
    pub fn new(args: &EvaluateArgs, global: &GlobalArgs) -> Result<Self, Failure> {
        check_stdin(&[
            ("--model", Some(&args.model)),
            ("--data", Some(&args.input.data)),
            ("--labels", args.input.form.labels.as_deref()),
        ])?;
        let input = InputConfig::new(&args.input.data, &args.input.form)?.with_labels()?;
        let curves = args.curves.clone().map(curves::Target::new).transpose()?;
        let mut named: Vec<(&str, &Path)> = vec![("--model", Path::new(&args.model))];
        named.extend(input.named());
        named.extend(curves.as_ref().map(|target| ("--curves", target.file.as_path())));
        let release = released::Release::new(args)?;
        named.extend(release.as_ref().map(|release| ("--out", release.out.as_path())));
        check_distinct(&named)?;
        let (progress, workers) = (global.progress, global.workers());
        Ok(Self { args: args.clone(), input, curves, release, progress, workers })
    }
}

/// Evaluates and prints.
///
/// # Errors
/// Errors in the model or the records.
pub fn execute(args: &EvaluateArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    let config = EvaluateConfig::new(args, global)?;
    if let Some(release) = &config.release {
        return released::execute(&config, release, console);
    }
    let outcome = run(&config, console)?;
    let written = outcome.curves.as_ref().map(|file| format!("written   {file} (curves)\n"));
    let text = format!(
        "{}records   {}\n{}{}",
        text(&outcome.figures),
        outcome.n,
        written.unwrap_or_default(),
        match (outcome.publishable, args.public_data) {
            (true, _) => "publishable: you declared these records public, and the model's guarantee holds",
            (false, true) => "NOT publishable: the model has no guarantee",
            (false, false) => {
                "NOT publishable: these figures are computed from the records without noise (--public-data if they are \
                 public)"
            }
        }
    );
    console.result(&outcome, &text)
}

/// Evaluates the model.
///
/// # Errors
/// Errors in the model or the records.
pub fn run(config: &EvaluateConfig, console: &Console) -> Result<Outcome, Failure> {
    if let Some(target) = &config.curves {
        atomic::check(&target.file, config.args.force)?;
    }
    let subject = Subject::new(config)?;
    let guarantee_holds = subject.guarantee.is_ok();
    if let (Some(_), false) = (&config.curves, subject.has_curves()) {
        return Err(curves::none().at_file(&config.args.model));
    }
    if config.args.public_data && !guarantee_holds {
        console.warn(
            "the guarantee of this model does not hold (`dp verify` says why): figures computed with it may reveal the\n\
             records that it was trained on, and are not publishable however public these records are",
        );
    }
    let mut measure = subject.measure();
    let mut push = |scores: &[f64], target: f64| measure.push(scores, target).map_err(Failure::from);
    let Read { name, .. } = subject.for_each_record(config, console, &mut push)?;
    let (n, figures) = measure.finish().ok_or_else(|| {
        let code = match config.input.format {
            Format::Libsvm => "libsvm.empty",
            Format::Idx => "idx.empty",
            _ => "csv.no_rows",
        };
        Failure::new(ExitStatus::Input, code, "there is no record with a label to measure on").at_file(name)
    })?;
    let publishable = config.args.public_data && guarantee_holds;
    if let Some(target) = &config.curves {
        let content = target.content(&figures, publishable)?;
        atomic::write(&target.file, config.args.force, content.as_bytes())?;
    }
    let curves = config.curves.as_ref().map(|target| atomic::shown(&target.file));
    Ok(Outcome { schema: "dp.evaluate/1", n, figures, curves, publishable })
}
