//! The answer to a question, for programs and for people. What is printed for people is rounded towards claiming less.

use dp::protection::Meaning;
use dp::wording;
use dp_accountant::Interval;
use serde::Serialize;

use super::evaluate::accountant_of;
use super::question::{self, Question};
use crate::args::{Sampling, Unknown};
use crate::limit;

/// The schema of an answer.
pub const SCHEMA: &str = "dp.account/1";

/// An interval of this relative width needs no note.
const CLOSE: f64 = 1e-3;

/// Digits of the ends of a certified interval.
const INTERVAL_DIGITS: i32 = 10;

/// Digits of what was computed to be used: noise, rates.
const SETTING_DIGITS: i32 = 8;

/// The answer to one question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What the question was called, in a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<serde_json::Value>,
    /// What was released.
    pub job: &'static str,
    /// What was computed.
    pub solved: &'static str,
    /// What is promised at `delta`.
    #[serde(serialize_with = "dp::canonical::number")]
    pub epsilon: f64,
    /// The true epsilon at `delta` is at least this; 0 where nothing is known.
    #[serde(serialize_with = "dp::canonical::number")]
    pub epsilon_lower: f64,
    /// The true epsilon at `delta` is at most this.
    #[serde(serialize_with = "dp::canonical::number")]
    pub epsilon_upper: f64,
    /// Delta of the promise.
    pub delta: f64,
    /// Where delta was computed: the true one at `epsilon` is at least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta_lower: Option<f64>,
    /// Where delta was computed: the true one at `epsilon` is at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta_upper: Option<f64>,
    /// The epsilon that was to be met, where something else was computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_epsilon: Option<f64>,
    /// Who answered.
    pub accountant: &'static str,
    /// The neighbouring relation.
    pub adjacency: &'static str,
    /// Whether the number of records is public.
    pub n_public: bool,
    /// The theorem behind the promise.
    pub theorem: String,
    /// Noise over sensitivity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// How batches are drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<&'static str>,
    /// Probability of taking part in a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_rate: Option<f64>,
    /// Number of steps or releases.
    pub steps: u64,
    /// What a limit on work left open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What the guarantee means, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semantics: Option<Meaning>,
}

/// The numbers that a question ended with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Solution {
    /// Noise over sensitivity, where the job has it.
    pub noise_multiplier: Option<f64>,
    /// Probability of taking part, likewise.
    pub sampling_rate: Option<f64>,
    /// Number of steps.
    pub steps: u64,
    /// Epsilon at `delta`.
    pub epsilon: Interval,
    /// Delta of the promise.
    pub delta: f64,
    /// The interval of delta, where it was computed.
    pub certified_delta: Option<Interval>,
}

impl Answer {
    /// The answer to `question`.
    pub fn new(question: &Question, solution: &Solution) -> Self {
        let theorem = solution.certified_delta.unwrap_or(solution.epsilon).theorem;
        let calibrated = !matches!(question.unknown, Unknown::Epsilon | Unknown::Delta);
        Self {
            schema: SCHEMA,
            id: None,
            job: question.job.name(),
            solved: question::name(question.unknown),
            epsilon: solution.epsilon.upper,
            epsilon_lower: solution.epsilon.lower,
            epsilon_upper: solution.epsilon.upper,
            delta: solution.delta,
            delta_lower: solution.certified_delta.map(|delta| delta.lower),
            delta_upper: solution.certified_delta.map(|delta| delta.upper),
            target_epsilon: calibrated.then_some(question.epsilon),
            accountant: accountant_of(theorem),
            adjacency: question.relation.as_str(),
            n_public: question.relation.n_public(),
            theorem: theorem.to_string(),
            noise_multiplier: solution.noise_multiplier,
            sampling: solution.sampling_rate.map(|_| sampling_word(question.sampling)),
            sampling_rate: solution.sampling_rate,
            steps: solution.steps,
            note: None,
            semantics: None,
        }
    }

    /// The answer with a note, where the limit was reached and something is open for it.
    pub fn noted(mut self, is_short: bool, limit: f64) -> Self {
        let (lower, upper) = match (self.delta_lower, self.delta_upper) {
            (Some(lower), Some(upper)) => (lower, upper),
            _ => (self.epsilon_lower, self.epsilon_upper),
        };
        let is_open = self.target_epsilon.is_some() || self.semantics.is_some() || !(upper - lower <= CLOSE * upper);
        self.note = (is_short && is_open).then(|| limit::note(limit));
        self
    }

    /// The computed number, as people read it.
    pub fn solved_text(&self) -> String {
        match self.solved {
            "delta" => wording::rounded_up(self.delta, 6),
            "noise_multiplier" => {
                self.noise_multiplier.map_or_else(String::new, |noise| wording::rounded_up(noise, SETTING_DIGITS))
            }
            "sampling_rate" => {
                self.sampling_rate.map_or_else(String::new, |rate| wording::rounded_down(rate, SETTING_DIGITS))
            }
            "steps" => self.steps.to_string(),
            _ => wording::epsilon(self.epsilon),
        }
    }

    /// For people; what was computed stands first.
    pub fn text(&self) -> String {
        let given = wording::delta;
        let own = |key: &str, otherwise: String| if self.solved == key { self.solved_text() } else { otherwise };
        let interval_of_delta = self.delta_lower.zip(self.delta_upper).map(|(lower, upper)| interval(lower, upper));
        let mut rows = vec![
            ("epsilon", "epsilon", wording::epsilon(self.epsilon)),
            ("epsilon", "", interval(self.epsilon_lower, self.epsilon_upper)),
            ("delta", "delta", own("delta", given(self.delta))),
        ];
        rows.extend(interval_of_delta.map(|text| ("delta", "", text)));
        if let Some(noise) = self.noise_multiplier {
            rows.push(("noise_multiplier", "noise multiplier", own("noise_multiplier", given(noise))));
        }
        if let (Some(rate), Some(sampling)) = (self.sampling_rate, self.sampling) {
            let rate = own("sampling_rate", given(rate));
            rows.push(("sampling_rate", "sampling rate", format!("{rate}, {sampling}")));
        }
        if self.steps != 1 || self.solved == "steps" || self.sampling.is_some() {
            rows.push(("steps", "steps", self.steps.to_string()));
        }
        rows.extend([
            ("adjacency", "adjacency", self.adjacency.to_owned()),
            ("adjacency", "", wording::relation(self.adjacency, self.n_public).to_owned()),
            ("accountant", "accountant", self.accountant.to_owned()),
            ("theorem", "theorem", self.theorem.clone()),
        ]);
        rows.extend(self.note.clone().map(|note| ("note", "note", note)));
        rows.sort_by_key(|(key, ..)| *key != self.solved);
        let mut text: String = rows.iter().map(|(_, name, value)| format!("{name:<18}{value}\n")).collect();
        if let Some(meaning) = &self.semantics {
            text.push_str(&meaning.text());
        }
        text
    }
}

/// A certified interval in words, its ends rounded outwards.
pub fn interval(lower: f64, upper: f64) -> String {
    if lower > 0.0 {
        let (lower, upper) =
            (wording::rounded_down(lower, INTERVAL_DIGITS), wording::rounded_up(upper, INTERVAL_DIGITS));
        format!("certified: between {lower} and {upper}")
    } else {
        "certified from above; no certified lower bound".to_owned()
    }
}

/// The word for a way of sampling.
pub fn sampling_word(sampling: Sampling) -> &'static str {
    match sampling {
        Sampling::Poisson => "poisson",
        Sampling::WithoutReplacement => "without-replacement",
    }
}
