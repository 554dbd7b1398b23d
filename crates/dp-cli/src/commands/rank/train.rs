//! `dp rank train`: trains a ranker on lists and releases it with its certificate.

use std::path::Path;
use std::time::Instant;

use dp::ranking::{Cost, Method};
use dp::wording;
use dp_mechanisms::rng::{ReleaseRng as _, SeededRng};
use serde::Serialize;
use serde_json::Value;

use super::lists::ListsConfig;
use super::settings::Settings;
use super::training::warn_orders;
use crate::args::{GlobalArgs, RankTrainArgs};
use crate::atomic;
use crate::commands::train::secret;
use crate::failure::Failure;
use crate::input::{check_distinct, conflict};
use crate::limit;
use crate::output::Console;
use crate::progress::{Counted, Progress, ProgressMode};
use crate::protection;

/// The result of a training, for the curator.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Outcome {
    schema: &'static str,
    loss: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    k: Option<usize>,
    /// The epsilon reached; the string `inf` without a guarantee.
    epsilon: Value,
    delta: f64,
    adjacency: &'static str,
    n_public: bool,
    unit: String,
    private: bool,
    /// The reasons why the guarantee, although valid, is weak; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// Number of lists. Public.
    n: u64,
    /// Number of documents in all lists; absent if it is protected.
    #[serde(skip_serializing_if = "Option::is_none")]
    documents: Option<u64>,
    /// Number of features of a document.
    dim: u64,
    /// Number of released weights.
    parameters: u64,
    /// Total seconds. For the curator: they depend on the number of sampled lists, which is secret.
    seconds: f64,
    training_seconds: f64,
    /// The path of ranker and certificate.
    model: String,
    certificate_sha256: String,
}

/// The result of a dry run.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct DryOutcome {
    schema: &'static str,
    dry_run: bool,
    reads: Vec<String>,
    writes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    noise_multiplier: Option<f64>,
    adjacency: &'static str,
    unit: String,
    private: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Trains, writes and prints.
pub(super) fn execute(args: &RankTrainArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    let started = Instant::now();
    let config = ListsConfig::new("--data", &args.data, &args.lists, global)?;
    let settings = Settings::new(&args.model, &args.privacy)?;
    if args.out.as_os_str() == "-" {
        return Err(conflict("--out", "a ranker is written to a file").help("name a file"));
    }
    let mut named: Vec<_> = args.data.iter().map(|file| ("--data", Path::new(file))).collect();
    named.push(("--out", &args.out));
    check_distinct(&named)?;
    warn_before(&settings, args.seed, console);
    if args.dry_run {
        return dry_run(args, &config, &settings, global.progress, console);
    }
    atomic::check(&args.out, args.force)?;
    let training = settings.training;
    let (form, lists) = config.read(settings.declared, console)?;
    let (n, documents, dim) = (lists.len() as u64, lists.documents() as u64, lists.width());
    warn_orders(&settings, &lists, console);
    if let Method::Private { budget, .. } = training.method {
        protection::warn(budget, n, "lists", console);
    }
    let trained = Instant::now();
    let updates = args.model.updates;
    let mut progress = Progress::start(global.progress, console, "train", Counted::Updates, Some(updates));
    let planned = limit::silently(settings.limit, || training.plan(n, dim))?;
    let (plan, observer) = (planned.value?, &mut |update, _: &[f64]| progress.update(update, None));
    let file = match args.seed {
        Some(seed) => plan.train(lists, form, 0, &mut SeededRng::new(seed).lend(), observer)?,
        None => plan.train(lists, form, 0, &mut secret()?.lend(), observer)?,
    };
    progress.finish(updates);
    limit::note_planning(planned.is_short, settings.limit, console);
    let training_seconds = trained.elapsed().as_secs_f64();
    let file = file.made_by(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))?;
    atomic::write(&args.out, args.force, file.to_text()?.as_bytes())?;
    let certificate = &file.certificate;
    let reached = certificate.reached.filter(|_| certificate.private);
    let outcome = Outcome {
        schema: "dp.rank-train/1",
        loss: training.loss().name(),
        k: training.loss().k(),
        epsilon: reached.map_or("inf".into(), |reached| reached.epsilon.into()),
        delta: reached.map_or(0.0, |reached| reached.delta),
        adjacency: certificate.adjacency.as_str(),
        n_public: certificate.adjacency.n_public(),
        unit: certificate.unit.to_string(),
        private: certificate.private,
        warnings: file.warnings(),
        n,
        documents: training.protects().has_public_lengths().then_some(documents),
        dim: dim as u64,
        parameters: file.model.weights.len() as u64,
        seconds: started.elapsed().as_secs_f64(),
        training_seconds,
        model: atomic::shown(&args.out),
        certificate_sha256: file.certificate_sha256.clone(),
    };
    console.result(&outcome, &outcome.text())
}

impl Outcome {
    fn text(&self) -> String {
        let k = self.k.map_or(String::new(), |k| format!(", k = {k}"));
        let documents = self.documents.map_or(String::new(), |documents| format!("{documents} documents, "));
        let mut lines = vec![format!(
            "trained a ranker ({}{k}) on {} lists, {documents}{} features, in {:.2} s",
            self.loss, self.n, self.dim, self.seconds
        )];
        match self.epsilon.as_f64() {
            Some(epsilon) => {
                let guarantee = wording::guarantee(epsilon, self.delta, self.adjacency, &self.unit);
                lines.push(format!("guarantee  {guarantee}"));
                lines.push(format!("           {}", wording::covers(self.adjacency, self.n_public, &self.unit)));
                lines.extend(self.warnings.iter().map(|warning| format!("WARNING    {warning}")));
                lines.push(format!("ranker     {} (with its certificate)", self.model));
                lines.push(format!("next       dp verify {}", self.model));
            }
            None => {
                lines.push("guarantee  NONE: not private".to_owned());
                lines.push(format!("ranker     {}", self.model));
            }
        }
        lines.join("\n")
    }
}

fn warn_before(settings: &Settings, seed: Option<u64>, console: &Console) {
    if matches!(settings.training.method, Method::NonPrivate(_)) {
        console.warn(
            "NOT PRIVATE: --non-private adds no noise; the ranker may reveal the grades that it was trained on\n\
             use it for comparison, and do not publish it",
        );
    } else if seed.is_some() {
        protection::warn_seeded("ranker", console);
    }
}

/// Computes the cost of a run, without reading a list.
fn dry_run(
    args: &RankTrainArgs,
    config: &ListsConfig,
    settings: &Settings,
    mode: ProgressMode,
    console: &Console,
) -> Result<(), Failure> {
    atomic::check_name(&args.out, args.force)?;
    let width = config.header_width()?;
    let width = settings.declared.features.or(width);
    let training = settings.training;
    let private = matches!(training.method, Method::Private { .. }) && args.seed.is_none();
    let (relation, unit) = (training.protects().adjacency(), training.protects().unit().to_string());
    let mut outcome = DryOutcome {
        schema: "dp.rank-train/1",
        dry_run: true,
        reads: args.data.iter().map(String::from).collect(),
        writes: vec![atomic::shown(&args.out)],
        epsilon: (!private).then(|| "inf".into()),
        delta: None,
        noise_multiplier: None,
        adjacency: relation.as_str(),
        unit: unit.clone(),
        private,
        warnings: Vec::new(),
    };
    let mut lines = vec!["dry run: no list was read, nothing was written".to_owned()];
    let cost = match (training.method, args.n, width) {
        (Method::Private { budget, .. }, Some(lists), Some(width)) => {
            let plan = limit::planning(settings.limit, mode, console, || Ok(training.plan(lists, width)?))?;
            protection::warn(budget, lists, "lists", console);
            plan.cost().map(|cost| (lists, cost))
        }
        _ => None,
    };
    if let Some((lists, Cost { reached, noise_multiplier })) = cost {
        outcome.delta = Some(reached.delta);
        outcome.noise_multiplier = Some(noise_multiplier);
        if private {
            outcome.epsilon = Some(reached.epsilon.into());
            let guarantee = wording::guarantee(reached.epsilon, reached.delta, relation.as_str(), &unit);
            lines.push(format!("cost   {guarantee}"));
            lines.push(format!("       {}", wording::covers(relation.as_str(), true, &unit)));
            outcome.warnings = dp::protection::warnings(reached.epsilon, reached.delta, Some(lists), "lists");
            lines.extend(outcome.warnings.iter().map(|warning| format!("WARNING {warning}")));
        }
        lines.push(format!("noise  {noise_multiplier:.4} times the distance of neighbouring sums, with {lists} lists"));
    } else if private {
        lines.push("cost   at most what was asked for; give the number of lists (--n) and of features".into());
        lines.push("       (--features) for the noise and the exact figure".to_owned());
    }
    if !private {
        lines.push("cost   no guarantee at all".to_owned());
    }
    lines.push(format!("reads  {}", wording::names(&outcome.reads)));
    lines.push(format!("writes {}", wording::names(&outcome.writes)));
    console.result(&outcome, &lines.join("\n"))
}
