//! `dp rank cv`: five-fold cross-validation, as in the literature. An experiment, not a release.

use std::time::Instant;

use dp::metrics::RankingFigures;
use dp::ranking::Method;
use dp::wording;
use dp_mechanisms::rng::{ReleaseRng as _, SeededRng};
use serde::Serialize;
use serde_json::Value;

use super::figures::{self, unmeasured};
use super::lists::{ListsConfig, ReadLists, extend};
use super::settings::Settings;
use super::training::warn_orders;
use crate::args::{GlobalArgs, RankCvArgs, word};
use crate::failure::Failure;
use crate::limit;
use crate::output::Console;
use crate::progress::{Counted, Progress};
use crate::protection;

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Outcome {
    schema: &'static str,
    loss: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    k: Option<usize>,
    metrics: String,
    /// Means over folds and repetitions, on the test parts.
    #[serde(flatten)]
    test: RankingFigures,
    /// The same on the validation parts, which are not used for selection.
    validation: RankingFigures,
    folds: Vec<Fold>,
    repetitions: u64,
    /// The maximum over the folds; the string `inf` without privacy.
    epsilon: Value,
    delta: f64,
    adjacency: &'static str,
    unit: String,
    /// Seconds of all trainings, without reading and evaluation.
    training_seconds: f64,
    /// Total seconds.
    seconds: f64,
    /// Always false: the noise is seeded and the figures are computed without noise.
    private_release: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Fold {
    fold: usize,
    /// Number of training lists.
    n: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon: Option<f64>,
    test: RankingFigures,
    validation: RankingFigures,
}

/// Trains, tests and prints.
pub(super) fn execute(args: &RankCvArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    let started = Instant::now();
    let config = ListsConfig::new("--parts", &args.parts, &args.lists, global)?;
    let settings = Settings::new(&args.model, &args.privacy)?;
    if args.repetitions == 0 {
        return Err(Failure::usage("--repetitions", "--repetitions is 0").expected("at least 1"));
    }
    let training = settings.training;
    let ReadLists { parts, form } = config.read_each(settings.declared, console)?;
    let count = parts.len();
    let total = args.repetitions.saturating_mul(count as u64);
    let mut progress = Progress::start(global.progress, console, "cv", Counted::Runs, Some(total));
    let (mut folds, mut done, mut training_seconds) = (Vec::with_capacity(count), 0, 0.0);
    for fold in 0..count {
        let part = |next: usize| (fold + next) % count;
        let mut lists = parts[fold].clone();
        for next in 1..3 {
            extend(&mut lists, &parts[part(next)], &args.parts[part(next)])?;
        }
        if fold == 0 {
            warn_orders(&settings, &lists, console);
        }
        if fold == 0
            && let Method::Private { budget, .. } = training.method
        {
            protection::warn(budget, lists.len() as u64, "lists", console);
        }
        let (mut tests, mut validations) = (Vec::new(), Vec::new());
        let planned = Instant::now();
        let plan = limit::silently(settings.limit, || training.plan(lists.len() as u64, lists.width()))?.value?;
        training_seconds += planned.elapsed().as_secs_f64();
        for repetition in 0..args.repetitions {
            let seed = args.seed.wrapping_add((fold as u64).wrapping_mul(args.repetitions)).wrapping_add(repetition);
            let trained = Instant::now();
            let mut noise = SeededRng::new(seed);
            let ranker = plan.train(lists.clone(), form.clone(), seed, &mut noise.lend(), &mut |_, _| {})?.model;
            training_seconds += trained.elapsed().as_secs_f64();
            let measured = |part| ranker.measure(part, args.metrics.ndcg()).map_err(unmeasured);
            validations.push(measured(&parts[part(3)])?);
            tests.push(measured(&parts[part(4)])?);
            done += 1;
            progress.update(done, None);
        }
        let (test, validation) = (RankingFigures::mean(&tests), RankingFigures::mean(&validations));
        let epsilon = plan.cost().map(|cost| cost.reached.epsilon);
        folds.push(Fold { fold: fold + 1, n: lists.len() as u64, epsilon, test, validation });
    }
    progress.finish(done);
    let epsilon = folds.iter().filter_map(|fold| fold.epsilon).reduce(f64::max);
    let delta = match training.method {
        Method::Private { budget, .. } => budget.delta.get(),
        Method::NonPrivate(_) => 0.0,
    };
    let outcome = Outcome {
        schema: "dp.rank-cv/1",
        loss: training.loss().name(),
        k: training.loss().k(),
        metrics: word(&args.metrics),
        test: RankingFigures::mean(folds.iter().map(|fold| &fold.test)),
        validation: RankingFigures::mean(folds.iter().map(|fold| &fold.validation)),
        repetitions: args.repetitions,
        epsilon: epsilon.map_or("inf".into(), Into::into),
        delta,
        adjacency: training.protects().adjacency().as_str(),
        unit: training.protects().unit().to_string(),
        training_seconds,
        seconds: started.elapsed().as_secs_f64(),
        private_release: false,
        folds,
    };
    console.result(&outcome, &outcome.text())
}

impl Outcome {
    fn text(&self) -> String {
        let mut text =
            format!("on the test parts, means of {} folds\n{}\n", self.folds.len(), figures::text(&self.test));
        text.push_str("fold   lists     MAP  NDCG@8    validation MAP\n");
        for Fold { fold, n, test, validation, .. } in &self.folds {
            let ndcg = test.ndcg.get(&8).copied().unwrap_or_default();
            text.push_str(&format!("{fold:>4}  {n:>6}  {:.4}  {ndcg:.4}    {:.4}\n", test.map, validation.map));
        }
        let guarantee = match self.epsilon.as_f64() {
            Some(epsilon) => wording::guarantee(epsilon, self.delta, self.adjacency, &self.unit),
            None => "NOT PRIVATE: trained without noise".to_owned(),
        };
        text.push_str(&format!(
            "each training: {guarantee}\n{:.2} s, {:.2} s of them training\n\
             an experiment, no private release: noise is seeded, and the figures are computed from grades without noise",
            self.seconds, self.training_seconds
        ));
        text
    }
}
