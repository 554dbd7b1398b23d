//! `--compare`: asks the same question of every accountant.

use dp::accounting::{Accountant, Answer, Choice, Question, RefusalKind, Unknown, interval, solve};
use std::time::{Duration, Instant};

use dp::wording;
use dp_accountant::work;
use serde::Serialize;

use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::limit;

/// The answers side by side. Times are shown to people only and omitted from the JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The tightest answer, as without `--compare`.
    #[serde(flatten)]
    pub best: Answer,
    /// One entry for each accountant.
    pub compare: Vec<Entry>,
}

/// The result of one accountant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The accountant.
    pub accountant: &'static str,
    /// The answer.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The computation time.
    #[serde(skip)]
    pub time: Duration,
}

/// An answer, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// The numbers of the answer.
    Answer(Box<Numbers>),
    /// The accountant has no theorem for the question, or no number meets the target.
    Refusal {
        /// The reason.
        refused: String,
    },
}

/// The numbers that differ between accountants.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Numbers {
    /// The promised epsilon.
    #[serde(serialize_with = "dp::canonical::number")]
    pub epsilon: f64,
    /// The certified lower bound on epsilon.
    #[serde(serialize_with = "dp::canonical::number")]
    pub epsilon_lower: f64,
    /// The certified upper bound on epsilon.
    #[serde(serialize_with = "dp::canonical::number")]
    pub epsilon_upper: f64,
    /// The promised delta.
    pub delta: f64,
    /// The noise multiplier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// The sampling rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_rate: Option<f64>,
    /// Number of steps.
    pub steps: u64,
    /// The theorem.
    pub theorem: String,
    /// The computed number as text, and the interval behind it.
    #[serde(skip)]
    pub shown: (String, String),
}

/// Asks all accountants, each within the limit on work.
///
/// # Errors
/// Errors in the question itself.
pub fn run(question: &Question, allowed: f64) -> Result<Comparison, Failure> {
    let mut best = None;
    let mut compare = Vec::with_capacity(Accountant::ALL.len());
    for &(accountant, ..) in Accountant::ALL {
        let started = Instant::now();
        let asked = Question { accountant, ..question.clone() };
        let found = work::limited(allowed * work::USUAL, || solve::answer(&asked));
        let time = started.elapsed();
        let outcome = match found.value {
            Ok(answer) => {
                let numbers = Outcome::Answer(Box::new(numbers(&answer)));
                best.get_or_insert(answer.noted(found.is_short, || limit::note(allowed)));
                numbers
            }
            Err(refusal) if accountant != Accountant::Auto && refusal.kind == RefusalKind::Privacy => {
                Outcome::Refusal { refused: refusal.message }
            }
            Err(refusal) => return Err(refusal.into()),
        };
        compare.push(Entry { accountant: accountant.name(), outcome, time });
    }
    match best {
        Some(best) => Ok(Comparison { best, compare }),
        None => Err(Failure::new(ExitStatus::Privacy, "account.unsupported", "no accountant answers")),
    }
}

fn numbers(answer: &Answer) -> Numbers {
    let interval = match (answer.delta_lower, answer.delta_upper) {
        (Some(lower), Some(upper)) => interval(lower, upper),
        _ => interval(answer.epsilon_lower, answer.epsilon_upper),
    };
    Numbers {
        epsilon: answer.epsilon,
        epsilon_lower: answer.epsilon_lower,
        epsilon_upper: answer.epsilon_upper,
        delta: answer.delta,
        noise_multiplier: answer.noise_multiplier,
        sampling_rate: answer.sampling_rate,
        steps: answer.steps,
        theorem: answer.theorem.clone(),
        shown: (answer.solved_text(), interval),
    }
}

impl Comparison {
    /// Formats the comparison as a table.
    pub fn text(&self, question: &Question) -> String {
        let solved = self.best.solved.replace('_', " ");
        let certified = if question.unknown == Unknown::Delta { "of delta" } else { "of epsilon" };
        let mut text = format!("{:<12}{solved:<18}{:<12}certified interval {certified}\n", "accountant", "time");
        for entry in &self.compare {
            let time = format!("{:.2} ms", entry.time.as_secs_f64() * 1e3);
            let (value, interval) = match &entry.outcome {
                Outcome::Answer(numbers) => (numbers.shown.0.as_str(), numbers.shown.1.as_str()),
                Outcome::Refusal { refused } => ("-", refused.as_str()),
            };
            text.push_str(&format!("{:<12}{value:<18}{time:<12}{interval}\n", entry.accountant));
        }
        let (adjacency, n_public) = (self.best.adjacency, self.best.n_public);
        text.push_str(&format!("\n{adjacency}: {}", wording::relation(adjacency, n_public)));
        if let Some(group) = self.best.group {
            text.push_str(&format!("\nThe same of any {group} records at once."));
        }
        if let Some(note) = &self.best.note {
            text.push_str(&format!("\nnote: {note}"));
        }
        text
    }
}
