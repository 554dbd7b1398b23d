//! Audits as text: one table for many, one statement for each.

use core::fmt::Write as _;

use crate::audit::{Audit, BoundKind, Verdict};
use crate::auditor::TOLERANCE;
use crate::bounds::trade_off;
use crate::subject::Side;

/// The headings of the table.
const HEADINGS: [&str; 8] =
    ["subject", "claim", "delta", "lower bound", "ratio", "mu: bound/claim", "runs a side", "verdict"];

/// Formats a plain-text table with one line per audit.
pub fn plain(audits: &[Audit]) -> String {
    let rows = rows(audits);
    let widths: Vec<usize> = (0..HEADINGS.len())
        .map(|column| {
            rows.iter().map(|row| row[column].chars().count()).chain([HEADINGS[column].len()]).max().unwrap_or(0)
        })
        .collect();
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let headings = HEADINGS.map(str::to_owned);
    core::iter::once(line(&headings)).chain(rows.iter().map(|row| line(row))).collect()
}

/// Formats the audits as a Markdown table.
pub fn markdown(audits: &[Audit]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let headings = HEADINGS.map(str::to_owned);
    let rule = HEADINGS.map(|_| "---".to_owned());
    let rows = rows(audits).into_iter().map(|row| row.map(|cell| cell.replace('|', "\\|")));
    [headings, rule].into_iter().chain(rows).map(|row| line(&row)).collect()
}

fn rows(audits: &[Audit]) -> Vec<[String; 8]> {
    audits
        .iter()
        .map(|audit| {
            [
                audit.subject.clone(),
                number(audit.claimed_epsilon),
                if audit.delta == 0.0 { "0".to_owned() } else { format!("{:e}", audit.delta) },
                number(audit.epsilon_lower),
                format!("{:.3}", audit.ratio()),
                audit.gaussian.map_or_else(
                    || "-".to_owned(),
                    |gaussian| format!("{}/{}", number(gaussian.mu_lower), number(gaussian.claimed_mu)),
                ),
                audit.trials.to_string(),
                verdict(audit.verdict).to_owned(),
            ]
        })
        .collect()
}

/// Formats four digits, rounded to the weaker statement: a bound of an attack is truncated.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        format!("{value}")
    } else if (1e-3..1e4).contains(&value) {
        format!("{:.4}", (value * 1e4 * (1.0 + 4.0 * f64::EPSILON)).floor() / 1e4)
    } else {
        format!("{value:.3e}")
    }
}

/// Returns the verdict in words, which never state that something is private.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NotRefuted => "not refuted",
        Verdict::Refuted => "REFUTED",
    }
}

/// Formats one audit in full: claim, bound, confidence, counts, the pair, the seed, and the evidence.
pub fn statement(audit: &Audit) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}: {} at confidence {}", audit.subject, verdict(audit.verdict), audit.confidence());
    let _ = writeln!(text, "  inputs       {}", audit.pair);
    let _ = writeln!(
        text,
        "  claim        epsilon <= {} at delta {}, event {}",
        audit.claimed_epsilon,
        audit.delta,
        audit.event.name()
    );
    let _ = writeln!(text, "  lower bound  epsilon >= {} (ratio {:.3})", number(audit.epsilon_lower), audit.ratio());
    if let Ok((low, high)) = audit.credible_interval(0.95) {
        let _ =
            writeln!(text, "  description  epsilon in [{}, {}], 95 % credible; no bound", number(low), number(high));
    }
    if let Some(gaussian) = audit.gaussian {
        let _ = writeln!(
            text,
            "  as Gaussian  mu >= {} against {}; epsilon {} if Gaussian",
            number(gaussian.mu_lower),
            number(gaussian.claimed_mu),
            number(gaussian.epsilon)
        );
    }
    let _ = writeln!(
        text,
        "  runs         {} a side, {} of them counted; seed {}",
        audit.trials, audit.counted, audit.seed
    );
    let _ = writeln!(
        text,
        "  tolerance    a bound exceeds a claim if by more than a factor of 1 + {TOLERANCE:e}, or {:e} of a curve",
        trade_off::TOLERANCE
    );
    for (index, test) in audit.tests.iter().enumerate() {
        let convicts = audit.conviction.filter(|conviction| conviction.test == index);
        let _ = write!(
            text,
            "  test {}       {} favours {}: {}/{} against {}/{}, epsilon >= {}, mu >= {}",
            index + 1,
            test.event,
            match test.accused {
                Side::Base => "the first",
                Side::Neighbour => "the second",
            },
            test.hits.true_positives,
            test.hits.positives,
            test.hits.false_positives,
            test.hits.negatives,
            number(test.epsilon_lower),
            number(test.mu_lower),
        );
        if let Some(conviction) = convicts {
            let _ = match (conviction.bound, test.least_type_two) {
                (BoundKind::TradeOff, Some(least)) => write!(
                    text,
                    " REFUTES: misses at most {} at type I error {}, where the claim allows no less than {least}",
                    test.limits.type_two_upper(),
                    test.limits.false_positive.value,
                ),
                (BoundKind::Mu, _) => write!(text, " REFUTES by mu"),
                _ => write!(text, " REFUTES by epsilon"),
            };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
