//! `dp evaluate`: how well a model predicts records whose labels are known.

use dp_data::read::{Input, RecordReader};
use serde::Serialize;

use super::verify;
use crate::args::{EvaluateArgs, GlobalArgs};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::{InputConfig, check_stdin};
use crate::metrics::ScoredLabels;
use crate::model_file::ModelFile;
use crate::output::Console;
use crate::progress::{Counted, Progress, ProgressMode};

/// What to measure on what.
#[derive(Debug, Clone)]
pub struct EvaluateConfig {
    /// The model file.
    pub model: String,
    /// The records.
    pub input: InputConfig,
    /// Whether the records are declared public.
    pub public_data: bool,
    /// How to show progress.
    pub progress: ProgressMode,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// `dp.evaluate/1`.
    pub schema: &'static str,
    /// Records with a label.
    pub n: u64,
    /// Share of records that are classified rightly.
    pub accuracy: f64,
    /// Area under the ROC curve; absent where all records are of one class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auc: Option<f64>,
    /// Mean logistic loss, the score read as log-odds.
    pub log_loss: f64,
    /// Whether these figures may be published: only where these records were declared public and the guarantee of the
    /// model holds, since figures of a model without one are answers about the records that it was trained on.
    pub publishable: bool,
}

impl EvaluateConfig {
    /// Checks the flags.
    ///
    /// # Errors
    /// `usage.*`.
    pub fn new(args: &EvaluateArgs, global: &GlobalArgs) -> Result<Self, Failure> {
        check_stdin(&[("--model", Some(&args.model)), ("--data", Some(&args.input.data))])?;
        Ok(Self {
            model: args.model.clone(),
            input: InputConfig::new(&args.input)?,
            public_data: args.public_data,
            progress: global.progress,
        })
    }
}

/// Measures and prints.
///
/// # Errors
/// What is wrong with the model or the records.
pub fn execute(args: &EvaluateArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    let outcome = run(&EvaluateConfig::new(args, global)?, console)?;
    let auc = outcome.auc.map_or("none (one class only)".to_owned(), |auc| format!("{auc:.4}"));
    let text = format!(
        "accuracy  {:.4}\nauc       {auc}\nlog loss  {:.4}\nrecords   {}\n{}",
        outcome.accuracy,
        outcome.log_loss,
        outcome.n,
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

/// Measures.
///
/// # Errors
/// What is wrong with the model or the records.
pub fn run(config: &EvaluateConfig, console: &Console) -> Result<Outcome, Failure> {
    let file = ModelFile::open(&config.model)?;
    let encoder = file.encoder_for(&config.input)?;
    let guarantee_holds = verify::run(&file).is_ok();
    if config.public_data && !guarantee_holds {
        console.warn(
            "the guarantee of this model does not hold (`dp verify` says why): figures computed with it may reveal the\n\
             records that it was trained on, and are not publishable however public these records are",
        );
    }
    let from_data = |error: dp_data::DataError| Failure::from_data(&error);
    let input = Input::open(&config.input.data).map_err(from_data)?;
    let name = input.name().to_owned();
    let mut reader = RecordReader::new(input, &encoder, &config.input.csv, true).map_err(from_data)?;
    let mut progress = Progress::start(config.progress, console, "evaluate", Counted::Rows, None);
    let mut labels = ScoredLabels::default();
    let mut null = 0_u64;
    let mut rows = 0;
    while let Some(record) = reader.next_record().map_err(from_data)? {
        match record.row().target() {
            Some(target) => labels.push(record.row().dot(&file.model.weights), target > 0.0),
            None => null += 1,
        }
        rows += 1;
        if rows % 4096 == 0 {
            progress.update(rows, None);
        }
    }
    progress.finish(rows);
    if null > 0 {
        console.warn_curator(&format!("{null} records without usable cells or label were left out"));
    }
    let metrics = labels.metrics().ok_or_else(|| {
        let code = if encoder.schema().is_some() { "csv.no_rows" } else { "libsvm.empty" };
        Failure::new(ExitStatus::Input, code, "there is no record with a label to measure on").at_file(name)
    })?;
    Ok(Outcome {
        schema: "dp.evaluate/1",
        n: metrics.n,
        accuracy: metrics.accuracy,
        auc: metrics.auc,
        log_loss: metrics.log_loss,
        publishable: config.public_data && guarantee_holds,
    })
}
