//! `dp audit table`: audits every training as a black box and compares its claim with the result.
//!
//! A row is one audit of one training at one budget. A pilot chooses the pair of data sets among all available ones, and the
//! confidence of the whole command is divided among the rows.

use std::collections::HashMap;
use std::sync::Arc;

use clap::{Parser as _, ValueEnum};
use dp::wording::{self, one_line};
use dp_accountant::AdjacencyKind;
use dp_audit::Lineup;
use dp_audit_recipes::black_box::{AddedUp, DIM, FEWEST_RECORDS, Family, MOST_RECORDS, Pairs, Target};
use dp_audit_recipes::rank::black_box::Pairs as RankPairs;
use dp_data::spool::{SpoolError, SpoolWriter};
use dp_data::{Examples, RowSource, SourceError};
use dp_optim::Error;
use dp_rank::train::Protected;
use serde_json::{Value, json};

use super::outcome::{DIGITS, Finding, Outcome, columns};
use crate::args::{Algorithm, Cli, Command, RankJob, TrainingKind, word};
use crate::commands::train::{ON_SUMS, TrainConfig};
use crate::commands::{rank, train};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::output::number;

/// The schema of the result.
pub(super) const SCHEMA: &str = "dp.audit-table/2";

/// The budgets at which every training is audited: epsilon and delta.
const BUDGETS: [(f64, f64); 2] = [(1.0, 1e-3), (4.0, 1e-5)];

/// Number of classes for multi-class trainings.
const CLASSES: u32 = 3;

/// The algorithms and settings of tuning: noise on the model, in the objective and in every step.
const TUNED: [(&str, &str); 3] =
    [("bolt-on-strongly-convex", "--lambda 0.05,0.5"), ("obj-pert", "--lambda 1,4"), ("dp-gd", "--lambda 0,0.5")];
const TUNING: [&str; 5] = [
    "portions",
    "composition",
    "random-stopping --trial-law logarithmic",
    "random-stopping --trial-law geometric",
    "random-stopping --trial-law poisson",
];

/// Algorithms that read rows from a file in each way: passes, batches of random records, both in turn.
const SPOOLED: [&str; 5] = ["auto", "bolt-on-convex", "dp-gd", "dp-sgd", "dp-svrg"];

/// The protected part of lists, under each relation.
const PROTECTED: [&str; 4] = [
    "--protect grades",
    "--protect lists --adjacency add-remove",
    "--protect lists --adjacency replace-one",
    "--protect documents",
];
/// The rankers, with the protections that they are trained for.
const RANKERS: [(&str, &[&str]); 6] = [
    ("bayesrank --model linear", &PROTECTED),
    ("listnet --model linear", &PROTECTED),
    ("listmle --model linear", &PROTECTED),
    ("bayesrank --model linear --scaling public", &["--protect grades"]),
    ("bayesrank --model linear --scaling public --thin", &["--protect grades"]),
    ("bayesrank --model mlp --hidden 2", &["--protect grades", "--protect documents"]),
];

/// Number of updates of a ranker: a tenth of the default, which allows ten times as many runs.
const UPDATES: u64 = 40;

const HEAD: [&str; 10] =
    ["training", "budget", "claimed", "delta", "at least", "of epsilon", "runs", "pilot", "pairs", "verdict"];

/// A training in the table.
struct Training {
    kind: TrainingKind,
    name: String,
    /// The command line without the budget; its file names are placeholders and never opened.
    command: String,
}

/// A training at one budget.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    kind: TrainingKind,
    name: String,
    command: String,
    /// The requested budget.
    budget: (f64, f64),
}

/// A training that is not audited, or not at some budget.
#[derive(Debug, Clone, PartialEq)]
struct LeftOut {
    name: String,
    budget: Option<(f64, f64)>,
    reason: String,
}

/// The rows of the table, one for each audit of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    rows: Vec<Row>,
    left_out: Vec<LeftOut>,
}

/// Returns the table of these kinds and algorithms, or of all, with its line-ups.
///
/// # Errors
/// `usage.value` if none of them can be audited.
pub(super) fn of(kinds: &[TrainingKind], algorithms: &[Algorithm]) -> Result<(Table, Vec<Box<dyn Lineup>>), Failure> {
    let (mut table, mut lineups, mut known) = (Table::default(), Vec::new(), Known::default());
    for &kind in TrainingKind::value_variants() {
        if !kinds.is_empty() && !kinds.contains(&kind) {
            continue;
        }
        let (trainings, left_out) = trainings(kind, algorithms);
        table.left_out.extend(left_out);
        for Training { kind, name, command } in trainings {
            let mut refused = Vec::new();
            for budget in BUDGETS {
                let command = format!("{command} --epsilon {} --delta {}", budget.0, wording::delta(budget.1));
                let unique = format!("{name}/epsilon={},delta={}", budget.0, wording::delta(budget.1));
                match known.lineup(kind, unique, &command) {
                    Ok(lineup) => {
                        table.rows.push(Row { kind, name: name.clone(), command, budget });
                        lineups.push(lineup);
                    }
                    Err(failure) => refused.push((budget, one_line(&failure.message))),
                }
            }
            // A common reason is stated once.
            match &refused[..] {
                [(_, reason), (_, other)] if reason == other => {
                    table.left_out.push(LeftOut { name, budget: None, reason: reason.clone() });
                }
                _ => table.left_out.extend(refused.into_iter().map(|(budget, reason)| LeftOut {
                    name: name.clone(),
                    budget: Some(budget),
                    reason,
                })),
            }
        }
    }
    if lineups.is_empty() {
        let mut reasons: Vec<&str> = table.left_out.iter().map(|left| left.reason.as_str()).collect();
        if reasons.is_empty() {
            reasons.push("no training of these kinds has such an algorithm");
        }
        let message = format!("there is nothing to audit: {}", reasons.join("; "));
        return Err(Failure::usage("--algorithm", message).expected("a private training that takes few records"));
    }
    Ok((table, lineups))
}

/// Returns the trainings of a kind, and the combinations known to be impossible.
fn trainings(kind: TrainingKind, algorithms: &[Algorithm]) -> (Vec<Training>, Vec<LeftOut>) {
    let chosen = |name: &str| algorithms.is_empty() || algorithms.iter().any(|algorithm| algorithm.name() == name);
    let (mut all, mut left_out) = (Vec::new(), Vec::new());
    let mut leave_out = |name: &str, reason: &str| {
        left_out.push(LeftOut { name: name.to_owned(), budget: None, reason: reason.to_owned() });
    };
    let records = format!("--data records --format libsvm --dim {DIM} --out model");
    let classes = (1..=CLASSES).map(|class| class.to_string()).collect::<Vec<_>>().join(",");
    match kind {
        TrainingKind::TwoClasses | TrainingKind::Softmax | TrainingKind::OneVsAll => {
            for algorithm in Algorithm::value_variants().iter().filter(|algorithm| chosen(algorithm.name())) {
                let name = algorithm.name().to_owned();
                if *algorithm == Algorithm::NonPrivate {
                    if kind == TrainingKind::TwoClasses {
                        leave_out(&name, "claims nothing");
                    }
                    continue;
                }
                let command = format!("dp train {records} --algorithm {name}");
                let mut add = |name: String, flags: &str| {
                    all.push(Training { kind, name, command: format!("{command}{flags}") });
                };
                match kind {
                    TrainingKind::TwoClasses => add(name, ""),
                    TrainingKind::Softmax => add(format!("{name} softmax"), &format!(" --classes {classes}")),
                    _ => {
                        let bolt_on = algorithm.name().starts_with("bolt-on-");
                        let shares: &[&str] = if bolt_on { &["composed", "joint", "split"] } else { &["composed"] };
                        for share in shares {
                            add(
                                format!("{name} one-vs-all {share}"),
                                &format!(" --classes {classes} --one-vs-all {share}"),
                            );
                        }
                    }
                }
            }
        }
        TrainingKind::Tune => {
            for (name, grid) in TUNED.iter().filter(|(name, _)| chosen(name)) {
                for method in TUNING {
                    all.push(Training {
                        kind,
                        name: format!("{} of {name}", method.replace(" --trial-law", "")),
                        command: format!("dp tune {records} --algorithm {name} {grid} --method {method}"),
                    });
                }
            }
            leave_out("public", "the choice is made on public records and costs nothing: its training is dp train's");
            if algorithms.is_empty() {
                leave_out(
                    "tuning of other algorithms",
                    "the choice is made around an algorithm's own plan, the same way for each",
                );
            }
        }
        TrainingKind::Sources => {
            for name in SPOOLED.iter().filter(|name| chosen(name)) {
                let command = format!("dp train {records} --algorithm {name} --memory 1MB");
                all.push(Training { kind, name: format!("{name}, temporary file"), command });
            }
            let source = "--data postgres:///records --table records --schema schema --out model --sums";
            for name in ON_SUMS.iter().filter(|name| chosen(name)) {
                let command = format!("dp train {source} --algorithm {name}");
                all.push(Training { kind, name: format!("{name}, sums"), command });
            }
        }
        TrainingKind::Rank => {
            if !algorithms.is_empty() {
                return (all, left_out);
            }
            for (loss, protected) in RANKERS {
                for protect in protected {
                    let short = |flags: &str| {
                        let plain = flags.replace("--adjacency add-remove", "present").replace("--adjacency ", "");
                        plain
                            .replace("--protect ", "")
                            .replace("--model ", "")
                            .replace("--scaling ", "")
                            .replace("--", "")
                    };
                    all.push(Training {
                        kind,
                        name: format!("{}, {}", short(loss), short(protect)),
                        command: format!(
                            "dp rank train --data lists --features {DIM} --updates {UPDATES} --out ranker --loss {loss} {protect}"
                        ),
                    });
                }
            }
            leave_out("dp rank cv", "an experiment, whose figures are no release");
        }
    }
    (all, left_out)
}

/// Pairs that have been listed already.
#[derive(Default)]
struct Known {
    pairs: HashMap<(AdjacencyKind, u32), Arc<Pairs>>,
    of_rankers: HashMap<(Protected, bool), Arc<RankPairs>>,
}

impl Known {
    /// Returns the training of a command line, on all its pairs; fails if there is no such training.
    fn lineup(&mut self, kind: TrainingKind, name: String, command: &str) -> Result<Box<dyn Lineup>, Failure> {
        let unusable = |message: String| Failure::new(ExitStatus::Failed, "audit.failed", message);
        let cli = Cli::try_parse_from(command.split(' ')).map_err(|error| unusable(error.to_string()))?;
        let global = cli.global;
        let config = match cli.command {
            Command::Train(args) => TrainConfig::new(&args, &global)?,
            Command::Tune(args) => TrainConfig::tuned(&args, &global)?,
            Command::Rank(args) => {
                let RankJob::Train(args) = args.job else { return Err(unusable("no training".to_owned())) };
                return rank::family(name, &args, |protected, linear| {
                    let new = || Arc::new(RankPairs::new(protected, linear));
                    self.of_rankers.entry((protected, linear)).or_insert_with(new).clone()
                });
            }
            _ => return Err(unusable("no training".to_owned())),
        };
        let classes = if matches!(kind, TrainingKind::Softmax | TrainingKind::OneVsAll) { CLASSES } else { 2 };
        let config = train::for_classes(&config, classes)?;
        let (mut targets, mut relation, mut refused) = (Vec::new(), None, None);
        for n in FEWEST_RECORDS..=MOST_RECORDS {
            let target = train::planned(&config, n, DIM).and_then(|planned| {
                relation = Some(planned.relation);
                Target::new(&planned.recipe, planned.relation, planned.budget, n, classes)
                    .map_err(|error| train::refusal(&error))
            });
            match target {
                Ok(target) if kind == TrainingKind::Sources => targets.push(target.with_source(source(&config))),
                Ok(target) => targets.push(target),
                Err(failure) => refused = Some(failure),
            }
        }
        let (false, Some(relation)) = (targets.is_empty(), relation) else {
            return Err(refused.unwrap_or_else(|| unusable("no data set fits".to_owned())));
        };
        let refusal = |error| train::refusal(&error);
        let pairs = match self.pairs.get(&(relation, classes)) {
            Some(pairs) => pairs.clone(),
            None => {
                let pairs = Arc::new(Pairs::new(relation, classes).map_err(refusal)?);
                self.pairs.insert((relation, classes), pairs.clone());
                pairs
            }
        };
        Ok(Box::new(Family::new(name, targets, pairs).map_err(refusal)?))
    }
}

/// Returns how a training holds the records of an audit.
fn source(
    config: &TrainConfig,
) -> impl Fn(Examples<f64>, f64) -> Result<Box<dyn RowSource<f64>>, Error> + Send + Sync + 'static {
    let (elsewhere, options) = (config.sums.is_some(), config.room.spool.clone());
    move |examples, target_bound| {
        if elsewhere {
            return Ok(Box::new(AddedUp::new(examples, 1.0, target_bound)));
        }
        let failed = |error: SpoolError| SourceError::Engine { engine: "spool", message: error.to_string() };
        let spool = || {
            let mut writer = SpoolWriter::create(&options, examples.dim(), false)?.with_bounds(1.0, target_bound);
            writer.append(examples)?;
            writer.finish()
        };
        Ok(Box::new(spool().map_err(failed)?))
    }
}

impl Table {
    /// Returns the result as JSON.
    pub(super) fn json(&self, outcome: &Outcome) -> Value {
        let rows = self.rows.iter().zip(&outcome.findings).map(|(row, finding)| {
            let audit = &finding.audit;
            let mut value = json!({
                "kind": word(&row.kind),
                "training": row.name,
                "command": row.command,
                "requested": { "epsilon": row.budget.0, "delta": row.budget.1 },
                "claimed_epsilon": number(audit.claimed_epsilon),
                "delta": audit.delta,
                "epsilon_lower": number(audit.epsilon_lower),
                "ratio": number(audit.ratio()),
                "runs": audit.trials.saturating_mul(2),
                "inputs": audit.pair,
                "seconds": finding.seconds,
                "verdict": finding.verdict(),
            });
            if let Some(pilot) = finding.pilot {
                value["pilot_runs"] = pilot.trials.saturating_mul(2).into();
                value["pairs"] = json!({ "tried": pilot.tried, "of": pilot.of });
            }
            let conviction = finding.conviction();
            if !conviction.is_empty() {
                value["convicted_by"] = conviction.into();
            }
            value
        });
        let left_out = self.left_out.iter().map(|left| {
            let mut value = json!({ "training": left.name, "reason": left.reason });
            if let Some((epsilon, delta)) = left.budget {
                value["requested"] = json!({ "epsilon": epsilon, "delta": delta });
            }
            value
        });
        json!({
            "schema": SCHEMA,
            "verdict": if outcome.is_refuted() { "refuted" } else { "not-refuted" },
            "confidence": outcome.confidence,
            "seed": outcome.seed,
            "rows": rows.collect::<Vec<_>>(),
            "left_out": left_out.collect::<Vec<_>>(),
            "rerun": outcome.rerun,
            "seconds": outcome.seconds,
        })
    }

    /// Formats the result as text.
    pub(super) fn text(&self, outcome: &Outcome) -> String {
        let cells: Vec<_> = self.rows.iter().zip(&outcome.findings).map(|(row, finding)| cells(row, finding)).collect();
        let mut text = columns(HEAD, &cells);
        if !self.left_out.is_empty() {
            text.push_str("\nleft out\n");
        }
        for LeftOut { name, budget, reason } in &self.left_out {
            let at = budget.map_or_else(String::new, |budget| format!(" at {}", in_brackets(budget)));
            text.push_str(&format!("  {name}{at}: {reason}\n"));
        }
        text + &outcome.closing()
    }
}

fn cells(row: &Row, finding: &Finding) -> [String; HEAD.len()] {
    let audit = &finding.audit;
    let (pilot, pairs) = finding.pilot.map_or_else(Default::default, |pilot| {
        (pilot.trials.saturating_mul(2).to_string(), format!("{} of {}", pilot.tried, pilot.of))
    });
    [
        row.name.clone(),
        in_brackets(row.budget),
        wording::rounded_up(audit.claimed_epsilon, DIGITS),
        wording::delta(audit.delta),
        wording::rounded_down(audit.epsilon_lower, DIGITS),
        wording::rounded_down(audit.ratio(), 3),
        audit.trials.saturating_mul(2).to_string(),
        pilot,
        pairs,
        if finding.is_refuted() { "REFUTED" } else { "not refuted" }.to_owned(),
    ]
}

fn in_brackets((epsilon, delta): (f64, f64)) -> String {
    format!("({epsilon}, {})", wording::delta(delta))
}
