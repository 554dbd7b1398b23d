//! Ranking metrics, as defined in the literature and as computed by LETOR's evaluation tool, under separate names.
//!
//! | metric | gain | discount at position i | all-zero list | k beyond the list |
//! |---|---|---|---|---|
//! | [`ndcg`] | `2^grade - 1` | `1 / log2(i + 1)` | 0 | the whole list |
//! | [`ndcg_letor`] | `2^grade - 1` | 1, 1, then `1 / log2(i)` | 0 | 0, as the tool omits it from its sum |
//! | [`mean_ndcg_letor`] | the same | the same | 0 | mean over the list's own positions |
//! | [`average_precision`] | relevant or not | | 0 | |
//! | [`average_precision_at`] | relevant or not | | 0 | the whole list |
//! | [`precision`] | relevant or not | | 0 | still divided by k |
//! | [`reciprocal_rank`] | relevant or not | | 0 | |
//! | [`expected_reciprocal_rank`] | `(2^grade - 1) / 2^largest` | `1 / i` | 0 | the whole list |
//!
//! A document is relevant if its grade is at least 1. Means over lists include lists without relevant documents, as 0.
//!
//! Metrics read grades: published metrics are answers about private data and need noise.

use std::num::NonZeroUsize;

use rand::Rng;

use crate::error::Error;
use crate::random::shuffle;
use crate::ranking::Ranking;

/// A position in a ranking at which a metric is truncated, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cutoff(NonZeroUsize);

impl Cutoff {
    /// Checks the position.
    ///
    /// # Errors
    /// [`Error::ZeroCutoff`].
    pub fn new(k: usize) -> Result<Self, Error> {
        NonZeroUsize::new(k).map(Self).ok_or(Error::ZeroCutoff)
    }

    /// Returns the position.
    pub fn get(self) -> usize {
        self.0.get()
    }
}

/// Returns `2^grade - 1`, exact up to [`LARGEST_GRADE`](crate::ranking::LARGEST_GRADE).
pub(crate) fn gain(grade: u32) -> f64 {
    f64::from(grade).exp2() - 1.0
}

/// Returns the labels in the ideal order.
fn ideal(labels: &[u32]) -> Vec<u32> {
    let mut ideal = labels.to_vec();
    ideal.sort_unstable_by(|a, b| b.cmp(a));
    ideal
}

pub(crate) fn standard_discount(position: usize) -> f64 {
    ((position + 1) as f64).log2().recip()
}

fn letor_discount(position: usize) -> f64 {
    if position < 2 { 1.0 } else { (position as f64).log2().recip() }
}

/// Returns the discounted cumulative gain of the first `k` labels.
fn dcg(labels: &[u32], k: usize, discount: fn(usize) -> f64) -> f64 {
    labels.iter().take(k).enumerate().map(|(index, &grade)| gain(grade) * discount(index + 1)).sum()
}

/// Returns the discounted cumulative gain, with the standard discounts, of the first `k` of labels sorted best first.
pub(crate) fn dcg_of_sorted(labels: &[u32], k: usize) -> f64 {
    dcg(labels, k, standard_discount)
}

fn normalised(dcg: f64, ideal: f64) -> f64 {
    // Rounding may put a perfect ranking one unit above 1.
    if ideal > 0.0 { (dcg / ideal).min(1.0) } else { 0.0 }
}

/// Returns the normalised discounted cumulative gain at `k`.
///
/// # Formula
/// ```text
/// sum_(i <= min(k, n)) (2^grade_i - 1) / log2(i + 1),  divided by the same sum for the best order; 0 where that is 0
/// ```
///
/// # Examples
/// ```
/// use dp_rank::{Ranking, metrics::{self, Cutoff}};
/// let ranking = Ranking::new(&[1.0, 2.0], &[2, 0])?;
/// assert!((metrics::ndcg(&ranking, Cutoff::new(2)?) - 0.6309297535714575).abs() < 1e-15);
/// # Ok::<(), dp_rank::Error>(())
/// ```
///
/// # References
/// Järvelin and Kekäläinen 2002; the exponential gain of Burges et al. 2005.
pub fn ndcg(ranking: &Ranking, k: Cutoff) -> f64 {
    let (labels, k) = (ranking.labels(), k.get());
    normalised(dcg(labels, k, standard_discount), dcg(&ideal(labels), k, standard_discount))
}

/// Returns NDCG at `k` as LETOR 4.0's evaluation tool computes it: no discount at the second position, `1 / log2(i)` from the
/// third on, and 0 for a list of fewer than `k` documents.
///
/// Use this only to compare with published tables: by the last rule, values at large `k` depend on the number of short lists.
/// Otherwise use [`ndcg`].
///
/// # References
/// Qin and Liu 2013, "Introducing LETOR 4.0 datasets", arXiv:1306.2597.
pub fn ndcg_letor(ranking: &Ranking, k: Cutoff) -> f64 {
    let (labels, k) = (ranking.labels(), k.get());
    if k > labels.len() {
        return 0.0;
    }
    normalised(dcg(labels, k, letor_discount), dcg(&ideal(labels), k, letor_discount))
}

/// Returns the mean of [`ndcg_letor`] over all positions of the list: the tool's "MeanNDCG" of one list.
pub fn mean_ndcg_letor(ranking: &Ranking) -> f64 {
    let labels = ranking.labels();
    let ideal = ideal(labels);
    let (mut reached, mut best, mut sum) = (0.0, 0.0, 0.0);
    for (index, (&grade, &ideal_grade)) in labels.iter().zip(&ideal).enumerate() {
        let discount = letor_discount(index + 1);
        reached += gain(grade) * discount;
        best += gain(ideal_grade) * discount;
        sum += normalised(reached, best);
    }
    sum / labels.len() as f64
}

/// Returns the fraction of relevant documents among the first `k`; the divisor is `k` for shorter lists too.
pub fn precision(ranking: &Ranking, k: Cutoff) -> f64 {
    let relevant = ranking.labels().iter().take(k.get()).filter(|&&grade| grade > 0).count();
    relevant as f64 / k.get() as f64
}

/// Returns the average precision: the mean, over the relevant documents, of the precision at their positions; 0 if there is none.
///
/// # Examples
/// ```
/// use dp_rank::{Ranking, metrics};
/// let ranking = Ranking::new(&[5.0, 4.0, 3.0, 2.0, 1.0], &[1, 0, 1, 1, 0])?;
/// let expected = (1.0 + 2.0 / 3.0 + 3.0 / 4.0) / 3.0;
/// assert!((metrics::average_precision(&ranking) - expected).abs() < 1e-15);
/// # Ok::<(), dp_rank::Error>(())
/// ```
pub fn average_precision(ranking: &Ranking) -> f64 {
    average_precision_of(ranking.labels())
}

/// Returns the average precision over the first `k` positions, divided by the number of relevant documents *among these*, as some
/// papers on private ranking define it. Equal to [`average_precision`] at `k = n`; for smaller `k` it overstates, since relevant
/// documents ranked lower do not count.
pub fn average_precision_at(ranking: &Ranking, k: Cutoff) -> f64 {
    average_precision_of(&ranking.labels()[..k.get().min(ranking.labels().len())])
}

fn average_precision_of(labels: &[u32]) -> f64 {
    let (mut relevant, mut sum) = (0usize, 0.0);
    for (index, &grade) in labels.iter().enumerate() {
        if grade > 0 {
            relevant += 1;
            sum += relevant as f64 / (index + 1) as f64;
        }
    }
    if relevant == 0 { 0.0 } else { sum / relevant as f64 }
}

/// Returns the reciprocal position of the first relevant document, 0 if there is none. MRR is its mean over lists.
///
/// # Examples
/// ```
/// use dp_rank::{Ranking, metrics};
/// let ranking = Ranking::new(&[3.0, 2.0, 1.0], &[0, 0, 2])?;
/// assert_eq!(metrics::reciprocal_rank(&ranking), 1.0 / 3.0);
/// # Ok::<(), dp_rank::Error>(())
/// ```
pub fn reciprocal_rank(ranking: &Ranking) -> f64 {
    ranking.labels().iter().position(|&grade| grade > 0).map_or(0.0, |index| ((index + 1) as f64).recip())
}

/// Returns the expected reciprocal rank at `k`, for a declared largest grade: the mean of `1 / i` for a reader who goes down the
/// list and stops at a document of grade `y` with probability `(2^y - 1) / 2^largest`.
///
/// # Formula
/// ```text
/// Σ_{i <= min(k, n)} (1/i) R_i Π_{j < i} (1 - R_j),   R_i = (2^grade_i - 1) / 2^largest
/// ```
///
/// # Errors
/// [`Error::GradeTooLarge`] if a grade of the list is above `largest`, or `largest` is above
/// [`LARGEST_GRADE`](crate::ranking::LARGEST_GRADE); the error's document is a position in the *ranking*.
///
/// # Examples
/// ```
/// use dp_rank::{Ranking, metrics::{self, Cutoff}};
/// let ranking = Ranking::new(&[3.0, 2.0, 1.0], &[1, 0, 2])?;
/// let err = metrics::expected_reciprocal_rank(&ranking, Cutoff::new(10)?, 2)?;
/// assert!((err - (0.25 + 0.75 * 0.75 / 3.0)).abs() < 1e-15);
/// # Ok::<(), dp_rank::Error>(())
/// ```
///
/// # References
/// O. Chapelle, D. Metzler, Y. Zhang and P. Grinspan 2009, "Expected reciprocal rank for graded relevance".
pub fn expected_reciprocal_rank(ranking: &Ranking, k: Cutoff, largest: u32) -> Result<f64, Error> {
    let limit = crate::ranking::LARGEST_GRADE;
    if largest > limit {
        return Err(Error::GradeTooLarge { document: 0, label: largest, limit });
    }
    if let Some(document) = ranking.labels().iter().position(|&grade| grade > largest) {
        return Err(Error::GradeTooLarge { document, label: ranking.labels()[document], limit: largest });
    }
    let (mut reached, mut sum) = (1.0, 0.0);
    for (index, &grade) in ranking.labels().iter().take(k.get()).enumerate() {
        let stops = gain(grade) / f64::from(largest).exp2();
        sum += reached * stops / (index + 1) as f64;
        reached *= 1.0 - stops;
    }
    Ok(sum)
}

/// Returns the mean of a metric of one list over random orders of tied documents, for scorers with many ties (at `θ = 0` all
/// documents tie), where a fixed order would favour the order of the file.
///
/// `orders` rankings are drawn; without ties they are identical. The generator determines public orders only.
///
/// # Errors
/// As [`Ranking::new`]; [`Error::Zero`] if `orders` is 0.
///
/// # Examples
/// ```
/// use dp_rank::metrics::{self, Cutoff};
/// use rand::{SeedableRng, rngs::StdRng};
/// let k = Cutoff::new(1)?;
/// let mut random = StdRng::seed_from_u64(7);
/// let mean = metrics::mean_over_ties(&[0.0; 4], &[1, 0, 0, 0], 4000, &mut random, |list| metrics::ndcg(list, k))?;
/// assert!((mean - 0.25).abs() < 0.03);
/// # Ok::<(), dp_rank::Error>(())
/// ```
pub fn mean_over_ties<R: Rng + ?Sized>(
    scores: &[f64],
    labels: &[u32],
    orders: usize,
    random: &mut R,
    metric: impl Fn(&Ranking) -> f64,
) -> Result<f64, Error> {
    if orders == 0 {
        return Err(Error::Zero { what: "the number of orders" });
    }
    // Checked before anything is drawn.
    let given = Ranking::new(scores, labels)?;
    let ranked = given.order();
    if ranked.windows(2).all(|pair| scores[pair[0]] != scores[pair[1]]) {
        return Ok(metric(&given));
    }
    // A stable sort of randomly ordered documents keeps ties in random order.
    let mut documents: Vec<usize> = (0..scores.len()).collect();
    let mut sum = 0.0;
    for _ in 0..orders {
        shuffle(&mut documents, random);
        let shuffled_scores: Vec<f64> = documents.iter().map(|&document| scores[document]).collect();
        let shuffled_labels: Vec<u32> = documents.iter().map(|&document| labels[document]).collect();
        sum += metric(&Ranking::new(&shuffled_scores, &shuffled_labels)?);
    }
    Ok(sum / orders as f64)
}

/// Returns the mean of a metric over lists, all of which count: MAP is the mean of [`average_precision`].
///
/// # Errors
/// [`Error::NoLists`].
///
/// # Examples
/// ```
/// use dp_rank::{Ranking, metrics};
/// let lists = [Ranking::new(&[2.0, 1.0], &[1, 0])?, Ranking::new(&[2.0, 1.0], &[0, 0])?];
/// assert_eq!(metrics::mean_over(&lists, metrics::average_precision)?, 0.5);
/// # Ok::<(), dp_rank::Error>(())
/// ```
pub fn mean_over(lists: &[Ranking], metric: impl Fn(&Ranking) -> f64) -> Result<f64, Error> {
    if lists.is_empty() {
        return Err(Error::NoLists);
    }
    Ok(lists.iter().map(metric).sum::<f64>() / lists.len() as f64)
}

#[cfg(test)]
mod tests;
