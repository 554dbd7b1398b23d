//! The answer to a question, for programs and for people. Printed numbers are rounded to the conservative side.

use crate::protection::Meaning;
use crate::wording;
use dp_accountant::Interval;
use dp_accountant::guarantee::Unit;
use serde::Serialize;

use super::Choice as _;
use super::choices::{Unknown, accountant_of};
use super::question::{self, Question};

/// The schema of an answer.
pub const SCHEMA: &str = "dp.account/1";

/// Largest relative width of an interval that needs no note.
const CLOSE: f64 = 1e-3;

/// Number of digits of the ends of a certified interval.
const INTERVAL_DIGITS: i32 = 10;

/// Number of digits of computed settings: noise, rates.
const SETTING_DIGITS: i32 = 8;

/// The answer to one question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The identifier of the question in a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<serde_json::Value>,
    /// The name of the released job.
    pub job: &'static str,
    /// The name of the computed quantity.
    pub solved: &'static str,
    /// The promised epsilon at `delta`.
    #[serde(serialize_with = "crate::canonical::number")]
    pub epsilon: f64,
    /// Lower bound on the true epsilon at `delta`; 0 if nothing is known.
    #[serde(serialize_with = "crate::canonical::number")]
    pub epsilon_lower: f64,
    /// Upper bound on the true epsilon at `delta`.
    #[serde(serialize_with = "crate::canonical::number")]
    pub epsilon_upper: f64,
    /// The promised delta.
    pub delta: f64,
    /// Lower bound on the true delta at `epsilon`, if delta was computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta_lower: Option<f64>,
    /// Upper bound on the true delta at `epsilon`, if delta was computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta_upper: Option<f64>,
    /// The target epsilon, if something else was computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_epsilon: Option<f64>,
    /// The accountant that answered.
    pub accountant: &'static str,
    /// The neighbouring relation.
    pub adjacency: &'static str,
    /// True if the number of records is public.
    pub n_public: bool,
    /// The unit that the events are about; absent for a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Number of units that the guarantee covers at once; absent for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<u64>,
    /// The theorem behind the promise.
    pub theorem: String,
    /// The noise multiplier: noise over sensitivity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// The batch sampling scheme.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<&'static str>,
    /// The sampling rate: probability of taking part in a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_rate: Option<f64>,
    /// Number of steps or releases.
    pub steps: u64,
    /// A note on the precision lost to the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The meaning of the guarantee, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semantics: Option<Meaning>,
}

/// The numbers of a solved question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Solution {
    /// The noise multiplier, if the job has one.
    pub noise_multiplier: Option<f64>,
    /// The sampling rate, if the job has one.
    pub sampling_rate: Option<f64>,
    /// Number of steps.
    pub steps: u64,
    /// Epsilon at `delta`.
    pub epsilon: Interval,
    /// The promised delta.
    pub delta: f64,
    /// The certified interval of delta, if delta was computed.
    pub certified_delta: Option<Interval>,
}

impl Answer {
    /// Creates the answer to `question`.
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
            unit: Some(&question.unit).filter(|unit| **unit != Unit::Record).map(Unit::to_string),
            group: Some(question.group).filter(|group| *group > 1),
            theorem: theorem.to_string(),
            noise_multiplier: solution.noise_multiplier,
            sampling: solution.sampling_rate.map(|_| question.sampling.name()),
            sampling_rate: solution.sampling_rate,
            steps: solution.steps,
            note: None,
            semantics: None,
        }
    }

    /// Adds a note, if a limit on the computation was reached and left the interval wide.
    #[must_use]
    pub fn noted(mut self, is_short: bool, note: impl FnOnce() -> String) -> Self {
        let (lower, upper) = match (self.delta_lower, self.delta_upper) {
            (Some(lower), Some(upper)) => (lower, upper),
            _ => (self.epsilon_lower, self.epsilon_upper),
        };
        let is_open = self.target_epsilon.is_some() || self.semantics.is_some() || !(upper - lower <= CLOSE * upper);
        self.note = (is_short && is_open).then(note);
        self
    }

    /// Formats the computed number.
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

    /// Formats the answer as text; the computed number comes first.
    pub fn text(&self) -> String {
        let (given, unit) = (wording::delta, self.unit.as_deref().unwrap_or("record"));
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
            ("adjacency", "", wording::covers(self.adjacency, self.n_public, unit).to_owned()),
        ]);
        rows.extend(self.unit.clone().map(|unit| ("unit", "unit", unit)));
        let units = if unit == "record" { "records" } else { "units" };
        rows.extend(self.group.map(|group| ("group", "group", format!("the same of any {group} {units} at once"))));
        rows.extend([
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

/// Formats a certified interval, its ends rounded outwards.
pub fn interval(lower: f64, upper: f64) -> String {
    if lower > 0.0 {
        let (lower, upper) =
            (wording::rounded_down(lower, INTERVAL_DIGITS), wording::rounded_up(upper, INTERVAL_DIGITS));
        format!("certified: between {lower} and {upper}")
    } else {
        "certified upper bound only".to_owned()
    }
}
