//! Ranking metrics.

use std::collections::BTreeMap;

use dp_rank::metrics::{self, Cutoff};
use dp_rank::scorer::Scorer as _;
use dp_rank::{QueryLists, Ranking};
use serde::Serialize;

use super::AnyScorer;
use crate::args::RankMetrics;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;

/// The cut-offs of NDCG, precision and ERR.
pub(super) const CUTOFFS: [usize; 5] = [1, 2, 4, 8, 10];

/// Means over all lists.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Figures {
    /// NDCG by cut-off.
    pub(super) ndcg: BTreeMap<usize, f64>,
    /// Mean average precision.
    pub(super) map: f64,
    /// Mean reciprocal rank of the first relevant document.
    pub(super) mrr: f64,
    /// Precision by cut-off.
    pub(super) precision: BTreeMap<usize, f64>,
    /// Expected reciprocal rank by cut-off.
    pub(super) err: BTreeMap<usize, f64>,
}

/// Scores the lists one after another.
pub(super) fn for_each_list(
    scorer: &AnyScorer,
    weights: &[f64],
    lists: &QueryLists,
    mut each: impl FnMut(dp_rank::QueryList<'_>, &[f64]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut workspace, mut scores) = (Default::default(), Vec::new());
    for list in lists.iter() {
        scores.resize(list.documents(), 0.0);
        scorer.scores(weights, list.features(), &mut workspace, &mut scores);
        if scores.iter().any(|score| score.is_nan()) {
            return Err(Failure::new(ExitStatus::Input, "lists.value", "the score of a document is not a number")
                .expected("features of about the size of those in training")
                .help("look for extremely large values among the features"));
        }
        each(list, &scores)?;
    }
    Ok(())
}

/// Ranks all lists and computes the means.
pub(super) fn measure(
    scorer: &AnyScorer,
    weights: &[f64],
    lists: &QueryLists,
    whose: RankMetrics,
) -> Result<Figures, Failure> {
    let refused = |error: dp_rank::Error| Failure::new(ExitStatus::Input, "lists.grade", error.to_string());
    let mut rankings = Vec::with_capacity(lists.len());
    for_each_list(scorer, weights, lists, |list, scores| {
        rankings.push(Ranking::new(scores, list.grades()).map_err(refused)?);
        Ok(())
    })?;
    let mean = |metric: &dyn Fn(&Ranking) -> f64| metrics::mean_over(&rankings, metric).map_err(refused);
    let mut figures = Figures {
        map: mean(&metrics::average_precision)?,
        mrr: mean(&metrics::reciprocal_rank)?,
        ..Figures::default()
    };
    let largest = lists.largest_grade();
    for at in CUTOFFS {
        let k = Cutoff::new(at).map_err(refused)?;
        let ndcg = match whose {
            RankMetrics::Letor => metrics::ndcg_letor,
            RankMetrics::Standard => metrics::ndcg,
        };
        let mut err = 0.0;
        for ranking in &rankings {
            err += metrics::expected_reciprocal_rank(ranking, k, largest).map_err(refused)?;
        }
        figures.ndcg.insert(at, mean(&|ranking| ndcg(ranking, k))?);
        figures.precision.insert(at, mean(&|ranking| metrics::precision(ranking, k))?);
        figures.err.insert(at, err / rankings.len() as f64);
    }
    Ok(figures)
}

impl Figures {
    /// Returns the mean of several.
    pub(super) fn mean<'a>(of: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        let mut count = 0.0;
        for figures in of {
            count += 1.0;
            sum.map += figures.map;
            sum.mrr += figures.mrr;
            for (to, from) in
                [(&mut sum.ndcg, &figures.ndcg), (&mut sum.precision, &figures.precision), (&mut sum.err, &figures.err)]
            {
                from.iter().for_each(|(&k, value)| *to.entry(k).or_default() += value);
            }
        }
        sum.map /= count;
        sum.mrr /= count;
        for by_k in [&mut sum.ndcg, &mut sum.precision, &mut sum.err] {
            by_k.values_mut().for_each(|value| *value /= count);
        }
        sum
    }

    /// Formats the figures as text.
    pub(super) fn text(&self) -> String {
        let row = |name: &str, cells: Vec<String>| {
            let cells: String = cells.iter().map(|cell| format!("  {cell:>6}")).collect();
            format!("{name:<9}{cells}\n")
        };
        let by_k = |figures: &BTreeMap<usize, f64>| figures.values().map(|value| format!("{value:.4}")).collect();
        let mut text = row("at", CUTOFFS.iter().map(|k| format!("{k}")).collect());
        text.push_str(&row("NDCG", by_k(&self.ndcg)));
        text.push_str(&row("precision", by_k(&self.precision)));
        text.push_str(&row("ERR", by_k(&self.err)));
        text.push_str(&format!("MAP        {:.4}\nMRR        {:.4}\n", self.map, self.mrr));
        text
    }
}
