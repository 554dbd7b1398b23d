//! Ranking metrics as text, and errors of scoring.

use std::collections::BTreeMap;

use dp::metrics::RankingFigures;
use dp_rank::Error;

use crate::exit_code::ExitStatus;
use crate::failure::Failure;

/// Converts an error of scores and metrics.
pub(super) fn unmeasured(error: Error) -> Failure {
    match error {
        Error::NanScore { .. } => {
            Failure::new(ExitStatus::Input, "lists.value", "the score of a document is not a number")
                .expected("features of about the size of those in training")
                .help("look for extremely large values among the features")
        }
        error => Failure::new(ExitStatus::Input, "lists.grade", error.to_string()),
    }
}

/// Formats the figures as text.
pub(super) fn text(figures: &RankingFigures) -> String {
    let row = |name: &str, cells: Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("  {cell:>6}")).collect();
        format!("{name:<9}{cells}\n")
    };
    let by_k = |figures: &BTreeMap<usize, f64>| figures.values().map(|value| format!("{value:.4}")).collect();
    let mut text = row("at", figures.ndcg.keys().map(|k| format!("{k}")).collect());
    text.push_str(&row("NDCG", by_k(&figures.ndcg)));
    text.push_str(&row("precision", by_k(&figures.precision)));
    text.push_str(&row("ERR", by_k(&figures.err)));
    text.push_str(&format!("MAP        {:.4}\nMRR        {:.4}\n", figures.map, figures.mrr));
    text
}
