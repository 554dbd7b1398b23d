//! `dp audit table`: every algorithm of `dp train` as a black box, its claim beside what was reached.
//!
//! A row is one algorithm at one budget. It stands for several audits, one for each pair of data sets; the largest bound is
//! shown, and the confidence of the whole command is divided among all of them.

use std::ops::Range;

use clap::{Parser as _, ValueEnum as _};
use dp_optim::audit::black_box::{self, Pair};
use serde_json::{Value, json};

use super::config::Audited;
use super::outcome::{DIGITS, Finding, Outcome, columns, number};
use crate::args::{Algorithm, Cli, Command};
use crate::commands::train;
use crate::exit_code::ExitStatus;
use crate::failure::{Failure, one_line};
use crate::wording;

/// The schema of the result.
pub(super) const SCHEMA: &str = "dp.audit-table/1";

/// The budgets at which every algorithm is audited: epsilon and delta.
const BUDGETS: [(f64, f64); 2] = [(1.0, 1e-3), (4.0, 1e-5)];

const HEAD: [&str; 9] =
    ["algorithm", "budget", "claimed", "delta", "at least", "of epsilon", "runs", "pairs", "verdict"];

/// An algorithm at a budget.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    algorithm: String,
    /// What was asked for.
    budget: (f64, f64),
    /// Which of the audits are its own.
    audits: Range<usize>,
}

/// An algorithm that is not audited at a budget.
#[derive(Debug, Clone, PartialEq)]
struct LeftOut {
    algorithm: String,
    budget: Option<(f64, f64)>,
    reason: String,
}

/// What the audits of a run stand for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    rows: Vec<Row>,
    left_out: Vec<LeftOut>,
}

/// The table of these algorithms, or of all, and what is audited for it.
///
/// # Errors
/// `usage.value` where none of them can be audited.
pub(super) fn of(algorithms: &[Algorithm]) -> Result<(Table, Vec<Audited>), Failure> {
    let (mut table, mut audited) = (Table::default(), Vec::new());
    for &algorithm in Algorithm::value_variants() {
        if !algorithms.is_empty() && !algorithms.contains(&algorithm) {
            continue;
        }
        let name = algorithm.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        if algorithm == Algorithm::NonPrivate {
            let reason = "claims nothing".to_owned();
            table.left_out.push(LeftOut { algorithm: name, budget: None, reason });
            continue;
        }
        for budget in BUDGETS {
            let begin = audited.len();
            match pairs(&name, budget, &mut audited) {
                Ok(()) => table.rows.push(Row { algorithm: name.clone(), budget, audits: begin..audited.len() }),
                Err(failure) => {
                    let reason = one_line(&failure.message);
                    table.left_out.push(LeftOut { algorithm: name.clone(), budget: Some(budget), reason });
                }
            }
        }
    }
    if audited.is_empty() {
        let reasons: Vec<&str> = table.left_out.iter().map(|left| left.reason.as_str()).collect();
        let message = format!("there is nothing to audit: {}", reasons.join("; "));
        return Err(Failure::usage("--algorithm", message).expected("a private algorithm that takes few records"));
    }
    Ok((table, audited))
}

/// Appends one subject for each pair of data sets that the algorithm can be trained on; fails where there is none.
fn pairs(algorithm: &str, (epsilon, delta): (f64, f64), audited: &mut Vec<Audited>) -> Result<(), Failure> {
    // Of what `dp train` makes of these flags: names stand for files that are not opened.
    let typed = format!(
        "dp train --data records --format libsvm --dim {} --out model --algorithm {algorithm} --epsilon {epsilon} --delta {delta}",
        black_box::DIM
    );
    let unusable = |message: String| Failure::new(ExitStatus::Failed, "audit.failed", message);
    let cli = Cli::try_parse_from(typed.split(' ')).map_err(|error| unusable(error.to_string()))?;
    let Command::Train(args) = cli.command else { return Err(unusable("no training".to_owned())) };
    let relation = train::planned(&args, black_box::MOST_RECORDS, black_box::DIM)?.relation;
    let (begin, mut refused) = (audited.len(), None);
    let all = Pair::all(relation).map_err(|error| train::refusal(&error))?;
    for (index, pair) in all.iter().enumerate() {
        let name = format!("{algorithm}/epsilon={epsilon},delta={}/pair={}", wording::delta(delta), index + 1);
        let subject = train::planned(&args, pair.n(), black_box::DIM).and_then(|planned| {
            black_box::subject(name, &planned.recipe, relation, planned.budget, pair)
                .map_err(|error| train::refusal(&error))
        });
        match subject {
            Ok(subject) => audited.push(Audited { subject, distance: None }),
            Err(failure) => refused = Some(failure),
        }
    }
    match refused {
        Some(failure) if audited.len() == begin => Err(failure),
        _ => Ok(()),
    }
}

impl Table {
    /// The findings of a row, and the one that reached the most, a refuted one first.
    fn findings<'o>(&self, row: &Row, outcome: &'o Outcome) -> Option<(&'o [Finding], &'o Finding)> {
        let findings = outcome.findings.get(row.audits.clone())?;
        let best = findings.iter().max_by(|a, b| {
            let order = a.is_refuted().cmp(&b.is_refuted());
            order.then(a.audit.epsilon_lower.total_cmp(&b.audit.epsilon_lower))
        })?;
        Some((findings, best))
    }

    /// The result as JSON.
    pub(super) fn json(&self, outcome: &Outcome) -> Value {
        let rows = self.rows.iter().filter_map(|row| {
            let (findings, best) = self.findings(row, outcome)?;
            let mut value = json!({
                "algorithm": row.algorithm,
                "requested": { "epsilon": row.budget.0, "delta": row.budget.1 },
                "claimed_epsilon": number(best.audit.claimed_epsilon),
                "delta": best.audit.delta,
                "epsilon_lower": number(best.audit.epsilon_lower),
                "ratio": number(best.audit.ratio()),
                "runs": runs(findings),
                "pairs": findings.len(),
                "inputs": best.audit.pair,
                "seconds": findings.iter().map(|finding| finding.seconds).sum::<f64>(),
                "verdict": best.verdict(),
            });
            let conviction = best.conviction();
            if !conviction.is_empty() {
                value["convicted_by"] = conviction.into();
            }
            Some(value)
        });
        let left_out = self.left_out.iter().map(|left| {
            let mut value = json!({ "algorithm": left.algorithm, "reason": left.reason });
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

    /// The result for people.
    pub(super) fn text(&self, outcome: &Outcome) -> String {
        let rows = self.rows.iter().filter_map(|row| {
            let (findings, best) = self.findings(row, outcome)?;
            Some([
                row.algorithm.clone(),
                in_brackets(row.budget),
                wording::rounded_up(best.audit.claimed_epsilon, DIGITS),
                wording::delta(best.audit.delta),
                wording::rounded_down(best.audit.epsilon_lower, DIGITS),
                wording::rounded_down(best.audit.ratio(), 3),
                runs(findings).to_string(),
                findings.len().to_string(),
                if best.is_refuted() { "REFUTED" } else { "not refuted" }.to_owned(),
            ])
        });
        let mut text = columns(HEAD, &rows.collect::<Vec<_>>());
        if !self.left_out.is_empty() {
            text.push_str("\nleft out\n");
        }
        for LeftOut { algorithm, budget, reason } in &self.left_out {
            let at = budget.map_or_else(String::new, |budget| format!(" at {}", in_brackets(budget)));
            text.push_str(&format!("  {algorithm}{at}: {reason}\n"));
        }
        text + &outcome.closing()
    }
}

fn in_brackets((epsilon, delta): (f64, f64)) -> String {
    format!("({epsilon}, {})", wording::delta(delta))
}

/// Trainings of all pairs, on both data sets of each.
fn runs(findings: &[Finding]) -> u64 {
    findings.iter().map(|finding| finding.audit.trials.saturating_mul(2)).fold(0, u64::saturating_add)
}
