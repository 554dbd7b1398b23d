//! `dp rank evaluate`: measures how well a ranker orders lists with known grades.

use std::path::Path;

use dp::metrics::RankingFigures;
use serde::Serialize;

use super::figures::{self, unmeasured};
use super::lists::{Declared, ListsConfig};
use crate::args::{FileName, GlobalArgs, RankEvaluateArgs, word};
use crate::failure::Failure;
use crate::files;
use crate::input::{check_distinct, check_stdin};
use crate::output::Console;

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Outcome {
    schema: &'static str,
    metrics: String,
    /// Number of lists.
    n: u64,
    /// Number of documents in all lists.
    documents: u64,
    #[serde(flatten)]
    figures: RankingFigures,
    /// True if these figures may be published: the lists were declared public and the guarantee holds.
    publishable: bool,
    /// Always false: no noise was added.
    private_release: bool,
}

/// Rejects a model and lists that are the same file or both standard input.
pub(super) fn check_names<'a>(model: &'a FileName, data: &'a [FileName], out: Option<&'a Path>) -> Result<(), Failure> {
    let mut streams = vec![("--model", Some(&**model))];
    streams.extend(data.iter().map(|file| ("--data", Some(&**file))));
    check_stdin(&streams)?;
    let mut named = vec![("--model", Path::new(model))];
    named.extend(data.iter().map(|file| ("--data", Path::new(file))));
    named.extend(out.map(|out| ("--out", out)));
    check_distinct(&named)
}

/// Evaluates and prints.
pub(super) fn execute(args: &RankEvaluateArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    check_names(&args.model, &args.data, None)?;
    let config = ListsConfig::new("--data", &args.data, &args.lists, global)?;
    let file = files::ranker(&args.model)?;
    let guarantee_holds = dp::verify::ranker(&file).is_ok();
    if args.public_data && !guarantee_holds {
        console.warn(
            "the guarantee of this ranker does not hold (`dp verify` says why): figures computed with it may reveal the\n\
             grades that it was trained on, and are not publishable however public these lists are",
        );
    }
    let ranker = &file.model;
    let declared = Declared {
        form: Some(&ranker.input),
        features: Some(ranker.width),
        largest_grade: ranker.largest_grade,
        grades_needed: true,
    };
    let (_, lists) = config.read(declared, console)?;
    let figures = ranker.measure(&lists, args.metrics.ndcg()).map_err(unmeasured)?;
    let outcome = Outcome {
        schema: "dp.rank-evaluate/1",
        metrics: word(&args.metrics),
        n: lists.len() as u64,
        documents: lists.documents() as u64,
        figures,
        publishable: args.public_data && guarantee_holds,
        private_release: false,
    };
    let publishable = match (outcome.publishable, args.public_data) {
        (true, _) => "publishable: you declared these lists public, and the ranker's guarantee holds",
        (false, true) => "NOT publishable: the ranker has no guarantee",
        (false, false) => {
            "NOT publishable: these figures are about these lists, computed from their grades without noise, and are no\n\
             private release (--public-data if the lists are public)"
        }
    };
    let text = format!(
        "{}lists      {} ({} documents), metrics as {} has them\n{publishable}",
        figures::text(&outcome.figures),
        outcome.n,
        outcome.documents,
        if outcome.metrics == "letor" { "LETOR's tool" } else { "the literature" },
    );
    console.result(&outcome, &text)
}
