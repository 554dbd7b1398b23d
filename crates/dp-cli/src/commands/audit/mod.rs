//! `dp audit`: attacks a mechanism or a training recipe and reports the epsilon that the attack proves.
//!
//! The arguments become a checked [`AuditConfig`], `dp-audit` runs the attack, and an [`Outcome`] is printed, written as a
//! report and drawn. A refuted claim is a result, not an error: it is printed like any other, with exit code 5.

mod catalogue;
mod config;
mod outcome;
mod parameters;
mod picture;
mod report;
mod table;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use dp_audit::{Auditor, Monitor};
use dp_data::Workers;

pub use catalogue::recipes;
pub use config::{AuditConfig, Audited, Effort};
pub use outcome::{Finding, Outcome};
pub use table::Table;

use super::dry_run::Foreseen;
use crate::args::{AuditArgs, GlobalArgs};
use crate::atomic;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::output::Console;
use crate::progress::{Counted, Progress, ProgressMode};

/// Number of points of a claimed curve in a picture.
const CURVE_POINTS: usize = 101;

/// Audits, writes and prints.
///
/// # Errors
/// `usage.*`, `privacy.*`, `audit.failed`, or output that cannot be written. A refuted claim is not an error.
pub fn execute(args: &AuditArgs, global: &GlobalArgs, console: &Console) -> Result<ExitStatus, Failure> {
    let Some(config) = AuditConfig::new(&args.job)? else {
        catalogue::list(console)?;
        return Ok(ExitStatus::Success);
    };
    let outputs: Vec<&Path> =
        [&config.args.report, &config.args.picture].into_iter().flatten().map(|path| &**path).collect();
    if config.args.dry_run {
        let schema = if config.table.is_some() { table::SCHEMA } else { outcome::SCHEMA };
        let audits = foreseen(&config, global.workers()).map_err(|error| failed(&error))?;
        Foreseen { audits, ..Foreseen::new(schema, &[], &outputs, config.args.force)? }.print(console)?;
        return Ok(ExitStatus::Success);
    }
    let outcome = run(&config, global.progress, global.workers(), console)?;
    let report = config.args.report.as_ref().map(|path| (path, report::markdown(&outcome)));
    let picture = match &config.args.picture {
        Some(path) => Some((path, picture::svg(&outcome.panels(CURVE_POINTS)?)?)),
        None => None,
    };
    let files: Vec<(&Path, &[u8])> =
        [&report, &picture].into_iter().flatten().map(|(path, text)| (path.as_path(), text.as_bytes())).collect();
    atomic::write_together(&files, config.args.force)?;
    match &config.table {
        Some(table) => console.result(&table.json(&outcome), &table.text(&outcome))?,
        None => console.result(&outcome.json(), &outcome.text())?,
    }
    Ok(if outcome.is_refuted() { ExitStatus::Verification } else { ExitStatus::Success })
}

/// Runs the audits, with progress on standard error.
///
/// # Errors
/// `audit.failed`.
pub fn run(
    config: &AuditConfig,
    progress: ProgressMode,
    workers: Workers,
    console: &Console,
) -> Result<Outcome, Failure> {
    let auditor = auditor(config, workers).map_err(|error| failed(&error))?;
    let mut trials: u64 = config.audited.iter().map(|audited| auditor.trials_of(&audited.subject)).sum();
    for lineup in &config.lineups {
        trials = trials.saturating_add(auditor.trials_among(&**lineup).map_err(|error| failed(&error))?);
    }
    let total = trials.saturating_mul(2);
    let mut shown = Shown {
        before: 0,
        progress: Mutex::new(Progress::start(progress, console, "audit", Counted::Runs, Some(total))),
    };
    let started = Instant::now();
    let mut findings = Vec::with_capacity(config.audited.len() + config.lineups.len());
    for Audited { subject, distance } in &config.audited {
        let begun = Instant::now();
        let audit = auditor.audit_with(subject, &shown).map_err(|error| failed(&error))?;
        shown.before += 2 * audit.trials;
        findings.push(Finding { audit, distance: *distance, pilot: None, seconds: begun.elapsed().as_secs_f64() });
    }
    for lineup in &config.lineups {
        let begun = Instant::now();
        let (audit, pilot) = auditor.audit_among(&**lineup, &shown).map_err(|error| failed(&error))?;
        shown.before += 2 * (audit.trials + pilot.trials);
        let seconds = begun.elapsed().as_secs_f64();
        findings.push(Finding { audit, distance: None, pilot: Some(pilot), seconds });
    }
    shown.progress.into_inner().unwrap_or_else(PoisonError::into_inner).finish(total);
    Ok(Outcome {
        findings,
        confidence: config.confidence,
        seed: config.seed,
        rerun: config.rerun.clone(),
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// Returns the name and the number of runs of each audit.
fn foreseen(config: &AuditConfig, workers: Workers) -> Result<Vec<String>, dp_audit::Error> {
    let auditor = auditor(config, workers)?;
    let mut audits = Vec::with_capacity(config.audited.len() + config.lineups.len());
    for Audited { subject, .. } in &config.audited {
        audits.push(format!("{}: {} runs", subject.name(), 2 * auditor.trials_of(&**subject)));
    }
    for lineup in &config.lineups {
        let (name, pairs) = (lineup.subject(0)?.name().to_owned(), lineup.pairs());
        audits.push(format!("{name}: {} runs, on the best of {pairs} pairs", 2 * auditor.trials_among(&**lineup)?));
    }
    Ok(audits)
}

/// Creates the auditor, which divides the probability of a false alarm among all subjects.
fn auditor(config: &AuditConfig, workers: Workers) -> Result<Auditor, dp_audit::Error> {
    let auditor = match config.effort {
        Effort::Trials(trials) => Auditor::exactly(trials)?,
        Effort::About { trials, times } => Auditor::new(trials)?.with_multiplier(times),
    };
    let audits = config.audited.len() + config.lineups.len();
    let share = (1.0 - config.confidence) / audits as f64;
    let auditor = auditor.with_failure_probability(share)?.with_seed(config.seed);
    Ok(auditor.with_threads_if_any(workers.threads()))
}

fn failed(error: &dp_audit::Error) -> Failure {
    Failure::new(ExitStatus::Failed, "audit.failed", error.to_string())
        .help("the audit says nothing about privacy; change what the message names and run it again")
}

/// The progress of the whole run.
struct Shown {
    /// Runs of completed audits.
    before: u64,
    progress: Mutex<Progress>,
}

impl Monitor for Shown {
    fn progress(&self, _subject: &str, done: u64, _total: u64) {
        // If another thread is writing, it reports the progress.
        if let Ok(mut progress) = self.progress.try_lock() {
            progress.update(self.before.saturating_add(done), None);
        }
    }
}
