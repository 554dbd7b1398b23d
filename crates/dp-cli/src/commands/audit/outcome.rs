//! The findings of audits, as JSON and as text.
//!
//! They never state that something is private: a claim is refuted, or not refuted at this confidence. A claimed epsilon is
//! rounded up, a lower bound rounded down.

use dp::wording::{self, one_line};
use dp_audit::{Audit, BoundKind, Pilot, Statistic, Verdict, report};
use dp_audit_recipes::Distance;
use serde_json::{Value, json};

use super::picture::Panel;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::output::number;

/// The schema of the result.
pub(super) const SCHEMA: &str = "dp.audit/1";

/// The note on Gaussian claims in the table.
const OF_MU: &str = "
For Gaussian claims read `of mu`, which compares whole curves. At a small delta their epsilon depends on
outcomes too rare to observe, so that `of epsilon` stays low however good the attack.
";

/// Number of significant digits in text.
pub(super) const DIGITS: i32 = 4;

/// One audit.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The result of the auditor.
    pub audit: Audit,
    /// The distance of two models trained without noise, for recipes.
    pub distance: Option<Distance>,
    /// The choice of the pair of inputs, if there are several.
    pub pilot: Option<Pilot>,
    /// The duration.
    pub seconds: f64,
}

/// All audits of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The findings, in the order of the catalogue.
    pub findings: Vec<Finding>,
    /// The probability that no sound claim is refuted.
    pub confidence: f64,
    /// The seed of all runs.
    pub seed: u64,
    /// The command line that repeats the results.
    pub rerun: String,
    /// The duration.
    pub seconds: f64,
}

impl Finding {
    /// Returns whether the claim is refuted.
    pub fn is_refuted(&self) -> bool {
        self.audit.verdict == Verdict::Refuted || !self.holds_without_noise()
    }

    /// Returns whether no two trained models were further apart than the sensitivity.
    fn holds_without_noise(&self) -> bool {
        self.distance.is_none_or(|distance| distance.holds())
    }

    /// Returns the verdict's name in JSON.
    pub(super) fn verdict(&self) -> &'static str {
        if self.is_refuted() { "refuted" } else { "not-refuted" }
    }

    /// Describes how the test was chosen and which bound is compared.
    fn method(&self) -> String {
        let test = match self.audit.statistic {
            Statistic::Event => "event fixed beforehand",
            Statistic::Learned => "trained test",
            _ => "threshold of a score",
        };
        let bounds = if self.audit.gaussian.is_some() {
            "Clopper-Pearson, trade-off curve, mu"
        } else {
            "Clopper-Pearson, trade-off curve"
        };
        format!("{test}; {bounds}")
    }

    /// Formats the finding in full, on several lines.
    pub(super) fn statement(&self) -> String {
        let statement = report::statement(&self.audit);
        let mut text: String = statement.lines().map(|line| format!("{}\n", one_line(line))).collect();
        if let Some(distance) = &self.distance {
            let convicts = if distance.holds() { "" } else { " REFUTES" };
            text.push_str(&format!("  {}{convicts}\n", distance_in_words(distance)));
        }
        if let Some(Pilot { tried, of, trials, .. }) = self.pilot {
            text.push_str(&format!(
                "  inputs chosen among {tried} of {of} pairs by a pilot of 2 x {trials} runs, none of them counted\n"
            ));
        }
        text
    }

    /// Describes the evidence against the claim.
    pub(super) fn conviction(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if let Some(distance) = self.distance.filter(|distance| !distance.holds()) {
            sentences.push(format!(
                "without noise two neighbouring models are {} apart, and the sensitivity is said to be {}",
                wording::rounded_down(distance.reached, DIGITS),
                wording::rounded_up(distance.claimed, DIGITS)
            ));
        }
        let Some(conviction) = self.audit.conviction else { return sentences };
        let bound = match (conviction.bound, &self.audit.gaussian) {
            (BoundKind::Epsilon, _) => format!(
                "epsilon is at least {} at delta = {}, claimed is {}",
                wording::rounded_down(self.audit.epsilon_lower, DIGITS),
                wording::delta(self.audit.delta),
                wording::rounded_up(self.audit.claimed_epsilon, DIGITS)
            ),
            (BoundKind::Mu, Some(gaussian)) => format!(
                "mu is at least {}, claimed is {}",
                wording::rounded_down(gaussian.mu_lower, DIGITS),
                wording::rounded_up(gaussian.claimed_mu, DIGITS)
            ),
            _ => "an attacker errs less than the claim's trade-off curve allows".to_owned(),
        };
        let event = self.audit.tests.get(conviction.test).map(|test| {
            let hits = &test.hits;
            format!(
                "; by `{}`, seen in {} of {} runs on one input and in {} of {} on the other",
                one_line(&test.event),
                hits.true_positives,
                hits.positives,
                hits.false_positives,
                hits.negatives
            )
        });
        sentences.push(bound + &event.unwrap_or_default());
        sentences
    }

    fn json(&self) -> Value {
        let audit = &self.audit;
        let mut value = json!({
            "name": audit.subject,
            "inputs": audit.pair,
            "claimed_epsilon": number(audit.claimed_epsilon),
            "delta": audit.delta,
            "epsilon_lower": number(audit.epsilon_lower),
            "ratio": number(audit.ratio()),
            "confidence": audit.confidence(),
            "verdict": self.verdict(),
            "method": self.method(),
            "trials": audit.trials,
            "counted": audit.counted,
            "seconds": self.seconds,
        });
        if let Some(gaussian) = &audit.gaussian {
            value["claimed_mu"] = number(gaussian.claimed_mu);
            value["mu_lower"] = number(gaussian.mu_lower);
        }
        if let Some(distance) = &self.distance {
            value["distance"] = json!({
                "reached": number(distance.reached),
                "claimed": number(distance.claimed),
                "ratio": number(distance.ratio()),
                "pairs": distance.pairs,
            });
        }
        let conviction = self.conviction();
        if !conviction.is_empty() {
            value["convicted_by"] = conviction.into();
        }
        value
    }
}

impl Outcome {
    /// Returns whether any claim is refuted.
    pub fn is_refuted(&self) -> bool {
        self.findings.iter().any(Finding::is_refuted)
    }

    /// Returns the result as JSON.
    pub fn json(&self) -> Value {
        json!({
            "schema": SCHEMA,
            "verdict": if self.is_refuted() { "refuted" } else { "not-refuted" },
            "confidence": self.confidence,
            "seed": self.seed,
            "audits": self.findings.iter().map(Finding::json).collect::<Vec<_>>(),
            "rerun": self.rerun,
            "seconds": self.seconds,
        })
    }

    /// Formats the result as text.
    pub fn text(&self) -> String {
        columns(HEAD, &self.rows()) + &self.closing()
    }

    /// Formats the text below a table: evidence, verdict and command line.
    pub(super) fn closing(&self) -> String {
        let mut text = String::new();
        for finding in self.findings.iter().filter(|finding| finding.is_refuted()) {
            text.push('\n');
            text.push_str(&finding.statement());
        }
        if self.findings.iter().any(|finding| finding.audit.gaussian.is_some()) {
            text.push_str(OF_MU);
        }
        text.push_str(&format!(
            "\n{}\nseed    {}\ntime    {:.1} s\nagain   {}\n",
            self.verdict(),
            self.seed,
            self.seconds,
            self.rerun
        ));
        text
    }

    /// Formats the verdict as a sentence.
    pub(super) fn verdict(&self) -> String {
        let (all, refuted) = (self.findings.len(), self.findings.iter().filter(|finding| finding.is_refuted()).count());
        let confidence = self.confidence;
        match (all, refuted) {
            (1, 0) => format!("the claim is not refuted at confidence {confidence}, which is no proof of it"),
            (_, 0) => format!("none of {all} claims is refuted at confidence {confidence}, which is no proof of them"),
            (1, _) => format!("the claim is refuted at confidence {confidence}"),
            _ => format!("{refuted} of {all} claims refuted at confidence {confidence}"),
        }
    }

    /// Returns one row of cells for each audit.
    pub(super) fn rows(&self) -> Vec<[String; HEAD.len()]> {
        self.findings.iter().map(row).collect()
    }

    /// Returns the panels of the picture: `points` of each claimed curve beside the attack's errors.
    ///
    /// # Errors
    /// A claim whose curve cannot be computed.
    pub(super) fn panels(&self, points: usize) -> Result<Vec<Panel>, Failure> {
        self.findings
            .iter()
            .map(|Finding { audit, .. }| {
                let curve = audit
                    .claimed_curve(points)
                    .map_err(|error| Failure::new(ExitStatus::Failed, "audit.failed", error.to_string()))?;
                Ok(Panel {
                    title: audit.subject.clone(),
                    claimed: curve.iter().map(|errors| (errors.type_one, errors.type_two)).collect(),
                    reached: audit.reached.points.iter().map(|point| (point.type_one, point.type_two)).collect(),
                })
            })
            .collect()
    }
}

/// The column headings of the table.
pub(super) const HEAD: [&str; 10] =
    ["audit", "claimed", "delta", "at least", "of epsilon", "of mu", "noise-free", "runs", "seconds", "verdict"];

fn row(finding: &Finding) -> [String; HEAD.len()] {
    let audit = &finding.audit;
    let of_mu = audit
        .gaussian
        .map_or(String::from("-"), |gaussian| wording::rounded_down(gaussian.mu_lower / gaussian.claimed_mu, 3));
    [
        one_line(&audit.subject),
        wording::rounded_up(audit.claimed_epsilon, DIGITS),
        wording::delta(audit.delta),
        wording::rounded_down(audit.epsilon_lower, DIGITS),
        wording::rounded_down(audit.ratio(), 3),
        of_mu,
        finding.distance.map_or(String::from("-"), |distance| wording::rounded_down(distance.ratio(), 3)),
        format!("2 x {}", audit.trials),
        format!("{:.2}", finding.seconds),
        if finding.is_refuted() { "REFUTED" } else { "not refuted" }.to_owned(),
    ]
}

/// Formats rows of cells below their headings, in columns as wide as needed.
pub(super) fn columns<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let mut text = String::new();
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).chain([head[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in [head.map(str::to_owned)].iter().chain(rows) {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Formats `without noise: …`.
fn distance_in_words(distance: &Distance) -> String {
    format!(
        "without noise: models at most {} apart in {} pairs of data sets, sensitivity {} (ratio {})",
        wording::rounded_up(distance.reached, DIGITS),
        distance.pairs,
        wording::rounded_up(distance.claimed, DIGITS),
        wording::rounded_down(distance.ratio(), 3)
    )
}
