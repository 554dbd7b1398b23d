//! Synthetic lists shaped like LETOR's, for tests and for use without real data.

use crate::dense::dot;
use crate::error::Error;
use crate::lists::QueryLists;
use crate::random::Public;

/// The number of features of a document.
pub const FEATURES: usize = 46;
/// The number of features that carry relevance.
pub const INFORMATIVE: usize = 30;
/// The number of common factors of the features.
const FACTORS: usize = 5;

/// The distribution of list lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// 92 % of exactly 40 documents, the rest uniform on 6 to 147.
    Mq2007,
    /// 43 % of 8 documents, 15 % of 16, 8 % of 15, 7 % of 7, the rest geometric on 5 to 121.
    Mq2008,
}

impl Shape {
    /// Returns the number of lists of the data set of that name.
    pub fn lists(self) -> usize {
        match self {
            Self::Mq2007 => 1692,
            Self::Mq2008 => 784,
        }
    }

    fn documents(self, random: &mut Public) -> usize {
        let u = random.uniform();
        match self {
            Self::Mq2007 if u < 0.92 => 40,
            Self::Mq2007 => 6 + random.below(142),
            Self::Mq2008 if u < 0.43 => 8,
            Self::Mq2008 if u < 0.58 => 16,
            Self::Mq2008 if u < 0.66 => 15,
            Self::Mq2008 if u < 0.73 => 7,
            // Mean 45, so that lists have 19.4 documents on average overall; redrawn above 121.
            Self::Mq2008 => loop {
                let extra = ((1.0 - random.uniform()).ln() / (1.0 - 1.0 / 41.0_f64).ln()) as usize;
                if 5 + extra <= 121 {
                    break 5 + extra;
                }
            },
        }
    }
}

/// Lists, and the scorer that generated their relevance.
#[derive(Debug, Clone)]
pub struct Synthetic {
    /// The lists.
    pub lists: QueryLists,
    /// `θ*`: the linear scorer from which the relevance was drawn, as a reference.
    pub theta: Vec<f64>,
}

/// Draws lists of documents with grades 0 to 2 from a public seed.
///
/// # Formula
/// ```text
/// z ~ N(0, A Aᵀ + 0.3 I), A: 46 x 5 standard normal;  a quarter of the entries zeroed at random
/// x = z, each feature mapped to [0, 1] by its range in the list
/// u = θ* · x, standardised in the list, + N(0, 0.5²) + an offset N(0, 1) of the list;  θ* normal on 30 features
/// grade = 2 if u > 2.4, 1 if u > 1.4, else 0
/// ```
/// About 82, 12 and 6 % of the documents have grades 0, 1 and 2. With the shape of MQ2008 32 % of the lists have no grade above
/// 0, with that of MQ2007 16 %. (MQ2008 itself: 81, 13 and 6 %, and 28 % of the lists.)
///
/// # Errors
/// [`Error::Zero`] if the number of lists is 0.
///
/// # Examples
/// ```
/// use dp_rank::synthetic::{Shape, draw};
/// let data = draw(Shape::Mq2008, 50, 7)?;
/// assert_eq!((data.lists.len(), data.lists.width()), (50, 46));
/// assert_eq!(draw(Shape::Mq2008, 50, 7)?.lists, data.lists);
/// # Ok::<(), dp_rank::Error>(())
/// ```
pub fn draw(shape: Shape, lists: usize, seed: u64) -> Result<Synthetic, Error> {
    if lists == 0 {
        return Err(Error::Zero { what: "the number of lists" });
    }
    let mut random = Public::new(seed);
    let loadings: Vec<f64> = (0..FEATURES * FACTORS).map(|_| random.normal()).collect();
    let theta: Vec<f64> =
        (0..FEATURES).map(|feature| if feature < INFORMATIVE { random.normal() } else { 0.0 }).collect();
    let mut drawn = QueryLists::new(FEATURES, 2)?;
    for list in 0..lists {
        let n = shape.documents(&mut random);
        let mut one = QueryLists::new(FEATURES, 2)?;
        one.push("", &features(n, &loadings, &mut random), &vec![0; n])?;
        one.normalise_features();
        let x = one.list(0).features();
        let relevance: Vec<f64> = x.rows().map(|row| dot(row, &theta)).collect();
        let mean = relevance.iter().sum::<f64>() / n as f64;
        let variance = relevance.iter().map(|u| (u - mean) * (u - mean)).sum::<f64>() / n as f64;
        let spread = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        let offset = random.normal();
        let grades: Vec<u32> = relevance
            .iter()
            .map(|u| (u - mean) / spread + 0.5 * random.normal() + offset)
            .map(|u| u32::from(u > 1.4) + u32::from(u > 2.4))
            .collect();
        drawn.push(&format!("{list}"), x.values(), &grades)?;
    }
    Ok(Synthetic { lists: drawn, theta })
}

/// Returns one list's features before they are mapped to `[0, 1]`.
fn features(documents: usize, loadings: &[f64], random: &mut Public) -> Vec<f64> {
    let mut values = Vec::with_capacity(documents * FEATURES);
    for _ in 0..documents {
        let factors: Vec<f64> = (0..FACTORS).map(|_| random.normal()).collect();
        for loading in loadings.chunks_exact(FACTORS) {
            let value = dot(loading, &factors) + 0.3_f64.sqrt() * random.normal();
            values.push(if random.uniform() < 0.25 { 0.0 } else { value });
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ranking;
    use crate::metrics::{average_precision, mean_over};

    /// Returns the fractions of grades 0 to 2 and of lists without relevant documents.
    fn shares(lists: &QueryLists) -> [f64; 4] {
        let of_documents = |grade| {
            lists.iter().flat_map(|list| list.grades()).filter(|&&g| g == grade).count() as f64
                / lists.documents() as f64
        };
        let silent = lists.iter().filter(|list| list.grades().iter().all(|&g| g == 0)).count();
        [of_documents(0), of_documents(1), of_documents(2), silent as f64 / lists.len() as f64]
    }

    #[test]
    fn shares_are_as_documented() {
        let mq2008 = draw(Shape::Mq2008, 1500, 1).unwrap().lists;
        let mq2007 = draw(Shape::Mq2007, 800, 2).unwrap().lists;
        for (got, expected) in
            [(shares(&mq2008), [0.82, 0.12, 0.06, 0.32]), (shares(&mq2007), [0.82, 0.12, 0.06, 0.16])]
        {
            for (got, expected) in got.iter().zip(expected) {
                assert!((got - expected).abs() < 0.045, "{got} {expected}");
            }
        }
        let of_eight = mq2008.iter().filter(|list| list.documents() == 8).count() as f64 / 1500.0;
        assert!((of_eight - 0.43).abs() < 0.05, "{of_eight}");
        let mean = mq2008.documents() as f64 / 1500.0;
        assert!((mean - 19.4).abs() < 2.0, "{mean}");
        assert!(mq2008.iter().all(|list| (5..=121).contains(&list.documents())));
        assert!(mq2007.iter().all(|list| (6..=147).contains(&list.documents())));
        assert!(mq2008.list(3).features().values().iter().all(|x| (0.0..=1.0).contains(x)));
    }

    #[test]
    fn the_true_scorer_ranks_well_and_seeds_differ() {
        let data = draw(Shape::Mq2008, 200, 3).unwrap();
        let judged = |score: &dyn Fn(&[f64]) -> f64| {
            let rankings: Vec<Ranking> = data
                .lists
                .iter()
                .map(|list| {
                    let scores: Vec<f64> = list.features().rows().map(score).collect();
                    Ranking::new(&scores, list.grades()).unwrap()
                })
                .collect();
            mean_over(&rankings, average_precision).unwrap()
        };
        let (truth, blind) = (judged(&|row| dot(row, &data.theta)), judged(&|row| row[FEATURES - 1]));
        assert!(truth > blind + 0.15, "{truth} {blind}");
        assert_ne!(draw(Shape::Mq2008, 200, 4).unwrap().lists, data.lists);
        assert!(draw(Shape::Mq2007, 0, 3).is_err());
    }
}
