//! `dp evaluate --epsilon`: metrics of private records, released with noise and a certificate.

use std::path::PathBuf;

use dp::metrics::released::{Estimate, MetricsFile, NoisyMetrics};
use dp::wording::{self, one_line};
use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, Epsilon};
use dp_mechanisms::rng::OsSeeded;
use serde::Serialize;

use super::subject::Subject;
use super::{EvaluateConfig, table};
use crate::args::{Adjacency, EvaluateArgs};
use crate::atomic;
use crate::commands::train::refusal;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::output::Console;

/// A requested release.
#[derive(Debug, Clone)]
pub struct Release {
    epsilon: Epsilon,
    relation: AdjacencyKind,
    /// The output file.
    pub(super) out: PathBuf,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Outcome {
    schema: &'static str,
    n: u64,
    classes: Vec<String>,
    #[serde(flatten)]
    metrics: NoisyMetrics,
    epsilon: f64,
    delta: f64,
    adjacency: &'static str,
    n_public: bool,
    unit: String,
    publishable: bool,
    file: String,
    certificate_sha256: String,
}

impl Release {
    /// Checks the flags.
    ///
    /// # Errors
    /// `usage.value`, `privacy.adjacency`.
    pub(super) fn new(args: &EvaluateArgs) -> Result<Option<Self>, Failure> {
        let (Some(epsilon), Some(out)) = (args.epsilon, &args.out) else { return Ok(None) };
        let epsilon = Epsilon::new(epsilon).map_err(|error| {
            Failure::usage("--epsilon", error.to_string()).expected("a finite number, at least 2^-50 (about 1e-15)")
        })?;
        let relation = match args.adjacency {
            None | Some(Adjacency::AddRemove) => AdjacencyKind::ZeroOut,
            Some(Adjacency::ReplaceOne) => AdjacencyKind::ReplaceOne,
            Some(Adjacency::ChangeListLabels) => {
                let message = "metrics have no proof under this neighbouring relation";
                return Err(Failure::new(ExitStatus::Privacy, "privacy.adjacency", message)
                    .at_flag("--adjacency")
                    .expected("add-remove or replace-one"));
            }
        };
        Ok(Some(Self { epsilon, relation, out: out.clone() }))
    }
}

/// Counts, releases, writes and prints.
///
/// # Errors
/// Errors in the model or the records, and output that cannot be written.
pub(super) fn execute(config: &EvaluateConfig, release: &Release, console: &Console) -> Result<(), Failure> {
    atomic::check(&release.out, config.args.force)?;
    let subject = Subject::new(config)?;
    if let Err(error) = &subject.guarantee {
        let why =
            format!("the guarantee of the model does not hold, so that no metric of it may be published: {error}");
        return Err(Failure::new(ExitStatus::Privacy, "privacy.refused", why)
            .at_flag("--model")
            .help("omit --epsilon for metrics that are not published"));
    }
    let mut counted = subject.counts(config)?;
    if subject.unit != Unit::Record {
        console.warn(&format!(
            "the model protects {}, these metrics a single record\n\
             evaluate a file with one row of each unit for the same protection",
            subject.unit
        ));
    }
    let mut push = |scores: &[f64], target: f64| {
        counted.push(scores, target);
        Ok(())
    };
    let n = subject.for_each_record(config, console, &mut push)?.rows;
    let mut rng = OsSeeded::new().map_err(|error| refusal(&error.into()))?;
    let metrics = counted.release(n, release.epsilon, release.relation, &mut rng)?;
    atomic::write(&release.out, config.args.force, metrics.to_text()?.as_bytes())?;
    let outcome = outcome(&metrics, n, atomic::shown(&release.out));
    console.result(&outcome, &text(&outcome))
}

fn outcome(file: &MetricsFile, n: u64, written: String) -> Outcome {
    let certificate = &file.certificate;
    Outcome {
        schema: "dp.evaluate-released/1",
        n,
        classes: file.model.classes.clone(),
        metrics: file.metrics(),
        epsilon: certificate.reached.map_or(f64::INFINITY, |reached| reached.epsilon),
        delta: certificate.reached.map_or(0.0, |reached| reached.delta),
        adjacency: certificate.adjacency.as_str(),
        n_public: certificate.adjacency.n_public(),
        unit: certificate.unit.to_string(),
        publishable: true,
        file: written,
        certificate_sha256: file.certificate_sha256.clone(),
    }
}

fn text(outcome: &Outcome) -> String {
    let row = |name: String, estimate: Option<Estimate>| match estimate {
        Some(Estimate { value, standard_error }) => vec![name, format!("{value:.4}"), format!("{standard_error:.4}")],
        None => vec![name, "-".to_owned(), "-".to_owned()],
    };
    let mut rows = vec![["metric", "value", "standard error"].map(str::to_owned).to_vec()];
    rows.push(row("accuracy".to_owned(), outcome.metrics.accuracy));
    if outcome.metrics.auc.is_some() {
        rows.push(row("auc".to_owned(), outcome.metrics.auc));
    }
    let recalls = outcome.classes.iter().zip(&outcome.metrics.recalls);
    rows.extend(recalls.map(|(class, recall)| row(format!("recall of {}", one_line(class)), *recall)));
    let guarantee = wording::guarantee(outcome.epsilon, outcome.delta, outcome.adjacency, &outcome.unit);
    [
        table(&rows).trim().to_owned(),
        String::new(),
        format!("records    {}; standard errors are those of the noise", outcome.n),
        format!("guarantee  {guarantee}, in addition to the model's for people that are in both files"),
        format!("written    {} (noisy counts and certificate; `dp verify` recomputes it)", outcome.file),
    ]
    .join("\n")
}
