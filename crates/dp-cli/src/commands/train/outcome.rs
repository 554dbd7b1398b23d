//! The result of `dp train`, for the curator.

use std::time::Duration;

use dp::model::{ModelFile, assumed_public};
use dp::training::USELESS;
use dp::wording::{self, one_line};
use dp_accountant::DpEvent;
use dp_data::Encoder;
use dp_data::encode::{Encoding, FeatureMap, FourierFeatures};
use dp_losses::LossKind;
use dp_optim::catalogue::Advice;
use serde::Serialize;
use serde_json::Value;

use super::algorithm::Foreseen;
use super::config::TrainConfig;
use super::privacy::Method;
use super::target::Target;
use super::tuning::Chosen;
use crate::args::{self, Algorithm};
use crate::atomic;

/// The result of a training. It is for the curator: `seconds` may depend on the records.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// `dp.train/1`, or `dp.tune/1`.
    pub schema: &'static str,
    /// The algorithm.
    pub algorithm: String,
    /// The loss.
    pub loss: String,
    /// The random Fourier features that were tried, if models without and with them were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<FourierFeatures>,
    /// The number of classes, if the model is one of two classes for each of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_vs_all: Option<u32>,
    /// The epsilon reached; the string `inf` without a guarantee.
    pub epsilon: Value,
    /// The delta reached.
    pub delta: f64,
    /// The neighbouring relation.
    pub adjacency: &'static str,
    /// True if the number of records is public; distinguishes the two relations called `add-remove`.
    pub n_public: bool,
    /// The unit of privacy.
    pub unit: String,
    /// Number of records, public under both relations.
    pub n: u64,
    /// The units, if they have several records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<Units>,
    /// Number of features, including the intercept.
    pub dim: u64,
    /// The selection of `dp tune`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
    /// Total seconds; absent if they depend on the records: the number of trainings was random, or the solver ran until its
    /// minimiser was certified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Seconds of planning and training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training_seconds: Option<f64>,
    /// The functions of numeric columns, if they are not lines.
    #[serde(skip_serializing_if = "FeatureMap::is_linear")]
    pub map: FeatureMap,
    /// The random Fourier features, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fourier: Option<FourierFeatures>,
    /// The automatic choice and its expected cost, if the program chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<Advice>,
    /// The features with a non-zero weight, if a penalty set some weights to zero: a function of the released model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected: Option<Vec<String>>,
    /// True if the model carries a guarantee.
    pub private: bool,
    /// The reasons why the guarantee, although valid, is weak; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The facts taken from the data and assumed public.
    pub assumed_public: Vec<String>,
    /// The path of model and certificate; `-` for standard output.
    pub model: String,
    /// SHA-256 of the canonical certificate.
    pub certificate_sha256: String,
    /// The path of the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
}

/// The units of several rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Units {
    /// Their number.
    pub number: u64,
    /// The column that names them.
    pub column: String,
    /// The largest number of rows of one.
    pub most: u64,
}

/// The automatic choices.
pub(super) struct Picked {
    /// The choice of `--algorithm auto`.
    pub(super) advice: Option<Advice>,
    /// The selection of `dp tune`.
    pub(super) chosen: Option<Chosen>,
}

impl Outcome {
    /// Creates the result; `times` are the total duration and that of planning and training.
    pub(super) fn new(
        config: &TrainConfig,
        file: &ModelFile,
        n: u64,
        (elapsed, training): (Duration, Duration),
        Picked { advice, chosen }: Picked,
    ) -> Self {
        let shown = |time: Duration| (!config.time_tells_of_records()).then_some(time.as_secs_f64());
        let certificate = &file.certificate;
        let reached = certificate.reached.filter(|_| certificate.private);
        Self {
            schema: schema(config),
            algorithm: algorithm(config.method),
            loss: config.loss.to_string(),
            tried: config.tried,
            one_vs_all: config.one_vs_all.map(|models| models.classes),
            epsilon: reached.map_or("inf".into(), |reached| reached.epsilon.into()),
            delta: reached.map_or(0.0, |reached| reached.delta),
            adjacency: certificate.adjacency.as_str(),
            n_public: certificate.adjacency.n_public(),
            unit: certificate.unit.to_string(),
            n,
            units: config.unit.as_ref().map(|unit| Units {
                number: config.units(n),
                column: unit.column.clone(),
                most: unit.most,
            }),
            dim: file.model.features.len() as u64,
            chosen,
            seconds: shown(elapsed),
            training_seconds: shown(training),
            map: file.model.encoder.encoding().map,
            fourier: file.model.encoder.encoding().fourier,
            choice: advice,
            selected: file.selected_features(),
            private: certificate.private,
            warnings: file.warnings(),
            assumed_public: assumed_public(&file.model.encoder),
            model: target(&config.out),
            certificate_sha256: file.certificate_sha256.clone(),
            report: config.report.as_deref().map(atomic::shown),
        }
    }

    /// Formats the summary as text of at most 12 lines.
    pub fn text(&self) -> String {
        let time = self.seconds.map_or(String::new(), |seconds| format!(", in {seconds:.2} s"));
        let rows = match &self.units {
            Some(Units { number, column, most }) => {
                format!("{number} units (`{}`) of at most {most} rows", one_line(column))
            }
            None => format!("{} records", self.n),
        };
        let models = self.one_vs_all.map_or(String::new(), |classes| format!(", one-vs-all for {classes} classes"));
        let mut lines =
            vec![format!("trained {} ({}{models}) on {rows}, {} features{time}", self.algorithm, self.loss, self.dim)];
        if let Some(chosen) = &self.chosen {
            lines.push(format!("chosen     {}", chosen.text()));
        }
        lines.extend(self.choice.iter().flat_map(|advice| choice(advice, &self.loss)));
        if self.tried.is_some() {
            let with = if self.fourier.is_some() { "with" } else { "without" };
            lines.push(format!("kept       the model {with} random Fourier features"));
        }
        lines.extend(columns(self.map, self.fourier));
        if let Some(selected) = &self.selected {
            lines.push(format!("selected   {}", wording::selected(selected, self.dim)));
        }
        match self.epsilon.as_f64() {
            Some(epsilon) => {
                let guarantee = wording::guarantee(epsilon, self.delta, self.adjacency, &self.unit);
                lines.push(format!("guarantee  {guarantee}"));
                lines.push(format!("           {}", wording::covers(self.adjacency, self.n_public, &self.unit)));
                lines.extend(self.warnings.iter().map(|warning| format!("WARNING    {warning}")));
            }
            None => lines.push("guarantee  NONE: do not publish this model".to_owned()),
        }
        if !self.assumed_public.is_empty() {
            lines.push(format!(
                "on trust   public though taken from the data: {}",
                wording::names(&self.assumed_public)
            ));
        }
        lines.push(format!("written    {} (model and certificate)", self.model));
        if let Some(report) = &self.report {
            lines.push(format!("           {report} (report)"));
        }
        if self.private && self.model != "-" {
            lines.push(format!("next       dp verify {}", self.model));
        }
        lines.join("\n")
    }
}

/// The result of a dry run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DryOutcome {
    /// `dp.train/1`, or `dp.tune/1`.
    pub schema: &'static str,
    /// Always true.
    pub dry_run: bool,
    /// The algorithm.
    pub algorithm: String,
    /// Epsilon that would be reached, if n is known; `inf` without privacy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<Value>,
    /// Delta that would be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// The event of the release, if n is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<DpEvent>,
    /// The sensitivity of the value to be noised, if n is known and the sensitivity is constant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<f64>,
    /// Noise and settings as text, if n is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The loss.
    pub loss: String,
    /// The functions of numeric columns, if they are not lines.
    #[serde(skip_serializing_if = "FeatureMap::is_linear")]
    pub map: FeatureMap,
    /// The random Fourier features, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fourier: Option<FourierFeatures>,
    /// The random Fourier features that are tried, if models without and with them are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<FourierFeatures>,
    /// The automatic choice and its expected cost, if n is known and the program chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<Advice>,
    /// The neighbouring relation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adjacency: Option<&'static str>,
    /// The unit of privacy.
    pub unit: String,
    /// Number of records, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// Number of features, including the intercept. Without n, if the algorithm chooses the functions of numeric columns by it,
    /// the number for lines.
    pub dim: u64,
    /// True if the algorithm chooses the functions of numeric columns by n, which is not given.
    #[serde(skip)]
    map_awaits_n: bool,
    /// True if the model would carry a guarantee.
    pub private: bool,
    /// The reasons why the guarantee, although valid, would be weak; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The facts that would be assumed public.
    pub assumed_public: Vec<String>,
    /// The path of model and certificate.
    pub model: String,
    /// The path of the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
}

impl DryOutcome {
    pub(super) fn new(config: &TrainConfig, encoder: &Encoder, n: Option<u64>, planned: Option<Foreseen>) -> Self {
        let (event, reached, summary, choice) = match planned {
            Some(Foreseen { event, reached, summary, advice }) => (Some(event), Some(reached), Some(summary), advice),
            None => (None, None, None, None),
        };
        let private = matches!(config.method, Method::Private { .. }) && config.seed.is_none();
        let is_useless = |advice: &&Advice| advice.expected_loss >= USELESS && !config.anyway;
        let useless =
            choice.as_ref().filter(is_useless).map(|_| "training is refused as useless without --anyway".to_owned());
        Self {
            schema: schema(config),
            dry_run: true,
            algorithm: algorithm(config.method),
            epsilon: if private { reached.map(|reached| reached.epsilon.into()) } else { Some("inf".into()) },
            delta: reached.map(|reached| reached.delta),
            event,
            sensitivity: summary.as_ref().and_then(|summary| summary.sensitivity),
            plan: summary.map(|summary| summary.text),
            loss: config.loss.to_string(),
            map: encoder.encoding().map,
            fourier: encoder.encoding().fourier,
            tried: config.tried,
            choice,
            adjacency: match config.method {
                Method::Private { adjacency: args::Adjacency::AddRemove, .. } => Some("add-remove"),
                Method::Private { adjacency: args::Adjacency::ReplaceOne, .. } => Some("replace-one"),
                _ => None,
            },
            unit: config.protected().to_string(),
            n,
            dim: encoder.dim() as u64,
            map_awaits_n: config.map_is_chosen && n.is_none(),
            private,
            warnings: reached
                .filter(|_| private)
                .map(|reached| {
                    let n = n.map(|n| config.units(n));
                    dp::protection::warnings(reached.epsilon, reached.delta, n, config.units_are_called())
                })
                .unwrap_or_default()
                .into_iter()
                .chain(useless)
                .collect(),
            assumed_public: assumed_public(encoder),
            model: target(&config.out),
            report: config.report.as_deref().map(atomic::shown),
        }
    }

    /// Formats the summary as text.
    pub fn text(&self) -> String {
        let mut lines =
            vec![format!("dry run: {} on {} features; nothing was read or written", self.algorithm, self.dim)];
        lines.extend(self.choice.iter().flat_map(|advice| choice(advice, &self.loss)));
        lines.extend(columns(self.map, self.fourier));
        if let Some(FourierFeatures { features, .. }) = self.tried {
            lines.push(format!("tried      {features} random Fourier features of all columns, in a second model"));
        }
        if self.map_awaits_n {
            lines.push("columns    lines, or more features as curves, by the number of records (--n)".to_owned());
        }
        match (&self.epsilon, self.private) {
            (Some(epsilon), true) => {
                let epsilon = epsilon.as_f64().unwrap_or(f64::INFINITY);
                let adjacency = self.adjacency.unwrap_or_default();
                let guarantee = wording::guarantee(epsilon, self.delta.unwrap_or(0.0), adjacency, &self.unit);
                lines.push(format!("cost       {guarantee}"));
                lines.push(format!("           {}", wording::covers(adjacency, true, &self.unit)));
                lines.extend(self.warnings.iter().map(|warning| format!("WARNING    {warning}")));
            }
            (None, true) => {
                lines.push("cost       at most what was asked for; give the number of records (--n) for".to_owned());
                lines.push("           sensitivity, noise and the exact figure".to_owned());
            }
            (_, false) => lines.push("cost       no guarantee at all".to_owned()),
        }
        if let (Some(plan), Some(n)) = (&self.plan, self.n) {
            lines.push(format!("noise      {plan}"));
            lines.push(format!("           with {n} records"));
        }
        if !self.assumed_public.is_empty() {
            lines.push(format!("on trust   {}", wording::names(&self.assumed_public)));
        }
        lines.push(format!("would write {}", self.model));
        if let Some(report) = &self.report {
            lines.push(format!("            {report}"));
        }
        lines.join("\n")
    }
}

/// Formats the functions of columns, unless they are lines.
fn columns(map: FeatureMap, fourier: Option<FourierFeatures>) -> Option<String> {
    let encoding = Encoding { map, fourier, ..Encoding::UNIT_ROWS };
    wording::functions(&encoding).map(|functions| format!("columns    {functions}"))
}

/// Formats the choice and its expected cost, in two lines.
fn choice(advice: &Advice, loss: &str) -> [String; 2] {
    [format!("chosen     {}", advice.reason), format!("expect     {}", expectation(advice, loss))]
}

/// Formats the expected cost of privacy.
pub(super) fn expectation(advice: &Advice, loss: &str) -> String {
    let of = match loss.parse::<LossKind>().ok().and_then(|loss| loss.classes()) {
        Some(_) => "of what can be gained over the majority class",
        None => "of what the features explain",
    };
    let [low, high] = advice.expected_loss_range.map(percent);
    format!("to lose about {} {of} ({low} to {high})", percent(advice.expected_loss))
}

/// Formats a fraction in percent, small ones to a tenth.
pub(in crate::commands) fn percent(share: f64) -> String {
    format!("{:.1$}%", 100.0 * share, usize::from(share < 0.1))
}

fn algorithm(method: Method) -> String {
    match method {
        Method::Private { algorithm, .. } => algorithm.name(),
        Method::NonPrivate => Algorithm::NonPrivate.name().to_owned(),
    }
}

/// Returns the schema of the result.
fn schema(config: &TrainConfig) -> &'static str {
    if config.tuning.is_some() { "dp.tune/1" } else { "dp.train/1" }
}

fn target(target: &Target) -> String {
    match target {
        Target::Stdout => "-".to_owned(),
        Target::File(path) => atomic::shown(path),
    }
}
