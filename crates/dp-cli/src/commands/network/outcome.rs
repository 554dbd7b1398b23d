//! The result of the training of a network, for the curator.

use std::time::Duration;

use dp::network::{Method, NetworkFile, NetworkPlan};
use dp::wording;
use serde::Serialize;
use serde_json::Value;

use super::config::NetworkConfig;
use crate::atomic;

const SCHEMA: &str = "dp.train-network/1";

/// The result of a training. It is for the curator: the seconds, and the steps that an interruption loses, depend on the numbers
/// of drawn images.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Outcome {
    schema: &'static str,
    network: String,
    algorithm: &'static str,
    /// The epsilon reached; the string `inf` without a guarantee.
    epsilon: Value,
    delta: f64,
    adjacency: &'static str,
    n_public: bool,
    unit: String,
    /// Number of images, public.
    n: u64,
    classes: usize,
    /// Number of weights.
    parameters: u64,
    steps: u64,
    /// Number of steps that were paid for and lost when the training was interrupted; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_steps: Option<u64>,
    batch_size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    noise_multiplier: Option<f64>,
    seconds: f64,
    training_seconds: f64,
    private: bool,
    /// The reasons why the guarantee, although valid, is weak; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The path of network and certificate; `-` for standard output.
    model: String,
    certificate_sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<String>,
}

impl Outcome {
    /// Creates the result; the times are the total duration and that of planning and training.
    pub(super) fn new(
        config: &NetworkConfig,
        n: u64,
        file: &NetworkFile,
        plan: &NetworkPlan,
        lost: u64,
        (elapsed, training): (Duration, Duration),
    ) -> Self {
        let certificate = &file.certificate;
        let reached = certificate.reached.filter(|_| certificate.private);
        let method = &plan.training().method;
        Self {
            schema: SCHEMA,
            network: config.model.to_string(),
            algorithm: algorithm(config),
            epsilon: reached.map_or("inf".into(), |reached| reached.epsilon.into()),
            delta: reached.map_or(0.0, |reached| reached.delta),
            adjacency: certificate.adjacency.as_str(),
            n_public: certificate.adjacency.n_public(),
            unit: certificate.unit.to_string(),
            n,
            classes: file.model.labels.len(),
            parameters: file.model.weights.len() as u64,
            steps: method.steps(),
            lost_steps: (lost > 0).then_some(lost),
            batch_size: method.batch_size(),
            noise_multiplier: plan.noise_multiplier(),
            seconds: elapsed.as_secs_f64(),
            training_seconds: training.as_secs_f64(),
            private: certificate.private,
            warnings: file.warnings(),
            model: target(config),
            certificate_sha256: file.certificate_sha256.clone(),
            report: config.args.report.as_deref().map(atomic::shown),
        }
    }

    /// Formats the summary as text.
    pub(super) fn text(&self) -> String {
        let mut lines = vec![
            format!(
                "trained {} ({}) on {} images of {} classes, {} weights, in {:.2} s",
                wording::one_line(&self.network),
                self.algorithm,
                self.n,
                self.classes,
                self.parameters,
                self.seconds
            ),
            match self.noise_multiplier {
                Some(noise) => {
                    format!(
                        "steps      {} of about {} images, noise multiplier {noise:.4}",
                        self.steps, self.batch_size
                    )
                }
                None => format!("steps      {} of {} images", self.steps, self.batch_size),
            },
        ];
        if let Some(lost) = self.lost_steps {
            lines.push(format!("           {lost} of the steps were lost when the training was interrupted"));
        }
        match self.epsilon.as_f64() {
            Some(epsilon) => {
                lines.extend(guarantee("guarantee", epsilon, self.delta, self.adjacency, &self.unit));
                lines.extend(self.warnings.iter().map(|warning| format!("WARNING    {warning}")));
            }
            None => lines.push("guarantee  NONE: do not publish this network".to_owned()),
        }
        lines.push(format!("written    {} (network and certificate)", self.model));
        lines.extend(self.report.iter().map(|report| format!("           {report} (report)")));
        if self.private && self.model != "-" {
            lines.push(format!("next       dp verify {}", self.model));
        }
        lines.join("\n")
    }
}

fn guarantee(word: &str, epsilon: f64, delta: f64, adjacency: &str, unit: &str) -> [String; 2] {
    let guarantee = wording::guarantee(epsilon, delta, adjacency, unit);
    [format!("{word:<10} {guarantee}"), format!("           {}", wording::covers(adjacency, true, unit))]
}

fn algorithm(config: &NetworkConfig) -> &'static str {
    config.privacy.map_or("non-private", |privacy| privacy.algorithm.name)
}

fn target(config: &NetworkConfig) -> String {
    config.out.file().map_or("-".to_owned(), atomic::shown)
}

/// The result of a dry run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct DryOutcome {
    schema: &'static str,
    dry_run: bool,
    network: String,
    algorithm: &'static str,
    /// Number of weights.
    parameters: u64,
    /// Number of images, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u64>,
    /// Epsilon that would be reached, if n is known; `inf` without privacy.
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    noise_multiplier: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    adjacency: Option<&'static str>,
    unit: &'static str,
    private: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<String>,
}

impl DryOutcome {
    pub(super) fn new(config: &NetworkConfig, parameters: u64, n: Option<u64>, plan: Option<&NetworkPlan>) -> Self {
        let private = config.privacy.is_some() && config.args.seed.is_none();
        let reached = plan.and_then(NetworkPlan::reached);
        let method = plan.map(|plan| &plan.training().method);
        let warnings = reached
            .filter(|_| private)
            .map(|reached| dp::protection::warnings(reached.epsilon, reached.delta, n, "images"));
        Self {
            schema: SCHEMA,
            dry_run: true,
            network: config.model.to_string(),
            algorithm: algorithm(config),
            parameters,
            n,
            epsilon: if private { reached.map(|reached| reached.epsilon.into()) } else { Some("inf".into()) },
            delta: reached.map(|reached| reached.delta),
            noise_multiplier: plan.and_then(NetworkPlan::noise_multiplier),
            steps: method.map(Method::steps),
            batch_size: method.map(Method::batch_size),
            adjacency: config.privacy.map(|privacy| privacy.relation.as_str()),
            unit: "record",
            private,
            warnings: warnings.unwrap_or_default(),
            model: target(config),
            report: config.args.report.as_deref().map(atomic::shown),
        }
    }

    /// Formats the summary as text.
    pub(super) fn text(&self) -> String {
        let network = wording::one_line(&self.network);
        let mut lines =
            vec![format!("dry run: {network} ({}), {} weights; no image was read", self.algorithm, self.parameters)];
        match (self.epsilon.as_ref().map(|epsilon| epsilon.as_f64().unwrap_or(f64::INFINITY)), self.private) {
            (Some(epsilon), true) => {
                lines.extend(guarantee(
                    "cost",
                    epsilon,
                    self.delta.unwrap_or(0.0),
                    self.adjacency.unwrap_or_default(),
                    self.unit,
                ));
                lines.extend(self.warnings.iter().map(|warning| format!("WARNING    {warning}")));
            }
            (None, true) => {
                lines.push(
                    "cost       at most what was asked for; give the number of images (--n) for the noise".into(),
                );
            }
            (_, false) => lines.push("cost       no guarantee at all".to_owned()),
        }
        lines.extend(self.noise_multiplier.map(|noise| format!("noise      {noise:.4} times the clipping norm")));
        if let (Some(steps), Some(batch), Some(n)) = (self.steps, self.batch_size, self.n) {
            lines.push(format!("steps      {steps} of about {batch} of {n} images"));
        }
        lines.push(format!("would write {}", self.model));
        lines.extend(self.report.iter().map(|report| format!("            {report}")));
        lines.join("\n")
    }
}
