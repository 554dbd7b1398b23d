//! Ranking metrics.

use dp_rank::metrics::{self, Cutoff};
use dp_rank::scorer::Scorer;
use dp_rank::{Error, QueryLists, Ranking};
use rand::Rng;

/// The positions at which NDCG is measured.
pub const NDCG_AT: [usize; 4] = [1, 2, 4, 8];

/// Number of random orders that are averaged.
const ORDERS: usize = 100;

/// Ranking metrics, averaged over all lists: LETOR's metrics, each at most 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ranked {
    /// Mean average precision.
    pub map: f64,
    /// Mean NDCG as computed by LETOR's tool, at each of [`NDCG_AT`].
    pub ndcg: [f64; 4],
}

impl Ranked {
    /// Returns the means of all numbers; 0 for an empty slice.
    pub fn mean(all: &[Self]) -> Self {
        let n = all.len().max(1) as f64;
        let mean = |of: &dyn Fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / n;
        Self { map: mean(&|one| one.map), ndcg: core::array::from_fn(|i| mean(&|one| one.ndcg[i])) }
    }

    /// Returns the numbers in order: MAP, then NDCG.
    pub(crate) fn to_array(self) -> [f64; 5] {
        let [one, two, four, eight] = self.ndcg;
        [self.map, one, two, four, eight]
    }

    /// The inverse of [`to_array`](Self::to_array).
    pub(crate) fn from_array([map, one, two, four, eight]: [f64; 5]) -> Self {
        Self { map, ndcg: [one, two, four, eight] }
    }
}

/// Returns the metric of one list at an index of [`Ranked::to_array`].
fn metric(place: usize, ranking: &Ranking) -> Result<f64, Error> {
    match place.checked_sub(1).and_then(|index| NDCG_AT.get(index)) {
        Some(&position) => Ok(metrics::ndcg_letor(ranking, Cutoff::new(position)?)),
        None => Ok(metrics::average_precision(ranking)),
    }
}

/// Measures how well a scorer ranks `lists`.
pub(super) fn of_scorer<S: Scorer>(scorer: &S, parameters: &[f64], lists: &QueryLists) -> Result<Ranked, Error> {
    let (mut workspace, mut scores, mut sums) = (S::Workspace::default(), Vec::new(), [0.0; 5]);
    for list in lists.iter() {
        scores.resize(list.documents(), 0.0);
        scorer.scores(parameters, list.features(), &mut workspace, &mut scores);
        let ranking = Ranking::new(&scores, list.grades())?;
        for (place, sum) in sums.iter_mut().enumerate() {
            *sum += metric(place, &ranking)?;
        }
    }
    mean_of_lists(sums, lists)
}

/// Measures random orders of the documents, approximately in expectation.
pub(super) fn of_random_order<R: Rng + ?Sized>(lists: &QueryLists, random: &mut R) -> Result<Ranked, Error> {
    let mut sums = [0.0; 5];
    for list in lists.iter() {
        for (place, sum) in sums.iter_mut().enumerate() {
            let of_order = |ranking: &Ranking| metric(place, ranking).unwrap_or(f64::NAN);
            let equal = vec![0.0; list.documents()];
            *sum += metrics::mean_over_ties(&equal, list.grades(), ORDERS, random, of_order)?;
        }
    }
    mean_of_lists(sums, lists)
}

fn mean_of_lists(sums: [f64; 5], lists: &QueryLists) -> Result<Ranked, Error> {
    if lists.is_empty() {
        return Err(Error::NoLists);
    }
    Ok(Ranked::from_array(sums.map(|sum| sum / lists.len() as f64)))
}

#[cfg(test)]
mod tests {
    use dp_rank::scorer::Linear;
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    /// Two lists: one ranks its only relevant document second of two, the other has no relevant document.
    fn lists() -> QueryLists {
        let mut lists = QueryLists::new(1, 2).unwrap();
        lists.push("a", &[0.0, 1.0], &[2, 0]).unwrap();
        lists.push("b", &[0.0, 1.0], &[0, 0]).unwrap();
        lists
    }

    #[test]
    fn metrics_are_letors_and_all_lists_count() {
        let ranked = of_scorer(&Linear::new(1).unwrap(), &[1.0], &lists()).unwrap();
        // AP 1/2; NDCG@1 0, NDCG@2 1 with LETOR's discounts, and 0 beyond the length of a list; averaged over two lists.
        assert_eq!(ranked, Ranked { map: 0.25, ndcg: [0.0, 0.5, 0.0, 0.0] });
        assert_eq!(Ranked::from_array(ranked.to_array()), ranked);
        let best = of_scorer(&Linear::new(1).unwrap(), &[-1.0], &lists()).unwrap();
        assert_eq!(Ranked::mean(&[ranked, best]), Ranked { map: 0.375, ndcg: [0.25, 0.5, 0.0, 0.0] });
    }

    /// Over 100 orders of two documents, the mean of AP, which is 1/2 or 1, has a standard error of 0.025.
    #[test]
    fn a_random_order_is_half_right() {
        let ranked = of_random_order(&lists(), &mut StdRng::seed_from_u64(4)).unwrap();
        assert!((ranked.map - 0.375).abs() < 0.07 && (ranked.ndcg[0] - 0.25).abs() < 0.14, "{ranked:?}");
        assert_eq!(ranked.ndcg[1..], [0.5, 0.0, 0.0]);
        assert!(of_random_order(&QueryLists::new(1, 2).unwrap(), &mut StdRng::seed_from_u64(4)).is_err());
    }
}
