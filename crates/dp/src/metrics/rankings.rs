//! Metrics of rankings.

use std::collections::BTreeMap;

use dp_rank::metrics::{self, Cutoff};
use dp_rank::{Error, QueryLists, Ranking};
use serde::Serialize;

use crate::ranker::Ranker;

/// The cut-offs of NDCG, precision and ERR.
const CUTOFFS: [usize; 5] = [1, 2, 4, 8, 10];

/// Metrics of a ranker, as means over all lists; lists without relevant documents count as 0.
///
/// # Privacy
/// The metrics are functions of the evaluated lists, computed without noise. They may be published if those lists are public and
/// the guarantee of the ranker holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RankingFigures {
    /// NDCG by cut-off.
    pub ndcg: BTreeMap<usize, f64>,
    /// Mean average precision.
    pub map: f64,
    /// Mean reciprocal rank of the first relevant document.
    pub mrr: f64,
    /// Precision by cut-off.
    pub precision: BTreeMap<usize, f64>,
    /// Expected reciprocal rank by cut-off.
    pub err: BTreeMap<usize, f64>,
}

impl Ranker {
    /// Ranks all lists and computes the metrics. `ndcg` is [`metrics::ndcg`], or [`metrics::ndcg_letor`], the definition of
    /// LETOR's tool.
    ///
    /// # Errors
    /// Those of [`scores`](Self::scores) and [`ListScores::of`](crate::ranker::ListScores::of); [`Error::NoLists`].
    pub fn measure(&self, lists: &QueryLists, ndcg: impl Fn(&Ranking, Cutoff) -> f64) -> Result<RankingFigures, Error> {
        let mut scores = self.scores()?;
        let ranked = lists.iter().map(|list| Ranking::new(scores.of(list)?, list.grades()));
        let rankings: Vec<Ranking> = ranked.collect::<Result<_, Error>>()?;
        let mut figures = RankingFigures {
            map: metrics::mean_over(&rankings, metrics::average_precision)?,
            mrr: metrics::mean_over(&rankings, metrics::reciprocal_rank)?,
            ..RankingFigures::default()
        };
        for at in CUTOFFS {
            let k = Cutoff::new(at)?;
            let mut err = 0.0;
            for ranking in &rankings {
                err += metrics::expected_reciprocal_rank(ranking, k, lists.largest_grade())?;
            }
            figures.ndcg.insert(at, metrics::mean_over(&rankings, |ranking| ndcg(ranking, k))?);
            figures.precision.insert(at, metrics::mean_over(&rankings, |ranking| metrics::precision(ranking, k))?);
            figures.err.insert(at, err / rankings.len() as f64);
        }
        Ok(figures)
    }
}

impl RankingFigures {
    /// Returns the means of several; NaN if there are none.
    pub fn mean<'a>(of: impl IntoIterator<Item = &'a Self>) -> Self {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two lists, ordered by their feature: the relevant document is the second of the first list and the first of the other.
    #[test]
    fn figures_are_means_over_lists() {
        let mut lists = QueryLists::new(1, 1).unwrap();
        lists.push("a", &[2.0, 1.0], &[0, 1]).unwrap();
        lists.push("b", &[2.0, 1.0, 0.0], &[1, 0, 0]).unwrap();
        let ranker = Ranker::linear(&[1.0]);
        let figures = ranker.measure(&lists, metrics::ndcg).unwrap();
        assert_eq!((figures.map, figures.mrr), (0.75, 0.75));
        assert!((figures.ndcg[&2] - (1.0 + 1.0 / 3f64.log2()) / 2.0).abs() < 1e-15);
        assert_eq!((figures.ndcg[&1], figures.precision[&2], figures.err[&1]), (0.5, 0.5, 0.25));
        // LETOR's tool does not discount the second position.
        assert_eq!(ranker.measure(&lists, metrics::ndcg_letor).unwrap().ndcg[&2], 1.0);
        assert_eq!(RankingFigures::mean([&figures, &figures]), figures);
        let zero = RankingFigures { ndcg: [(1, 0.0), (2, 0.0)].into(), ..RankingFigures::default() };
        let half = RankingFigures::mean([&zero, &figures]);
        assert_eq!((half.map, half.ndcg[&1]), (0.375, 0.25));
        assert_eq!(ranker.measure(&QueryLists::new(1, 1).unwrap(), metrics::ndcg), Err(Error::NoLists));
    }
}
