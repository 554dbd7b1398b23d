//! Training without privacy, as a baseline.

use dp_optim::engine::{BatchLaw, Sampler};

use super::descent::{Descent, Observer};
use super::error::TrainError;
use super::gradient::ListGradient;
use crate::error::Error;
use crate::lists::QueryLists;
use crate::loss::RankingLoss;
use crate::scorer::Scorer;

/// Mini-batch descent without clipping and noise. **Its result is not private.**
///
/// # Examples
/// ```
/// use dp_rank::QueryLists;
/// use dp_rank::loss::BayesRank;
/// use dp_rank::scorer::Linear;
/// use dp_rank::train::NonPrivateRanking;
///
/// let mut lists = QueryLists::new(2, 2)?;
/// lists.push("a", &[0.0, 1.0, 1.0, 0.0, 0.5, 0.5], &[0, 2, 1])?;
/// lists.push("b", &[1.0, 1.0, 0.2, 0.0], &[1, 0])?;
/// let training = NonPrivateRanking::new(BayesRank::TOP_1);
/// let weights = training.train(&Linear::new(2)?, vec![0.0; 2], &lists, [0; 32], &mut |_, _| {})?;
/// assert!(weights[0] > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NonPrivateRanking<L> {
    /// The loss of a list.
    pub loss: L,
    /// The number of lists in a batch (at most all lists); each batch is drawn independently.
    pub batch_size: u64,
    /// The steps.
    pub descent: Descent,
}

impl<L: RankingLoss> NonPrivateRanking<L> {
    /// Batches of ten lists.
    pub fn new(loss: L) -> Self {
        Self { loss, batch_size: 10, descent: Descent::default() }
    }

    /// Trains from `start`, with batches determined by `key`.
    ///
    /// # Errors
    /// [`Error::NoLists`], [`Error::Shape`], and numbers outside their range.
    pub fn train<S: Scorer>(
        &self,
        scorer: &S,
        start: Vec<f64>,
        lists: &QueryLists,
        key: [u8; 32],
        observer: &mut Observer<'_>,
    ) -> Result<Vec<f64>, TrainError> {
        check_lists(scorer, lists)?;
        let size = self.batch_size.min(lists.len() as u64);
        let mut sampler = Sampler::new(BatchLaw::FixedSize { size }, lists.len() as u64, key)?;
        let mut gradients = ListGradient::new(scorer);
        let direction = |_: u64, parameters: &[f64], downhill: &mut [f64]| -> Result<(), TrainError> {
            for &list in sampler.draw()? {
                gradients.add_whole(&self.loss, parameters, lists.list(list as usize), downhill);
            }
            downhill.iter_mut().for_each(|along| *along /= size as f64);
            Ok(())
        };
        self.descent.run(scorer, start, direction, observer)
    }
}

/// Refuses empty lists and documents of another width.
pub(super) fn check_lists(scorer: &impl Scorer, lists: &QueryLists) -> Result<(), TrainError> {
    if lists.is_empty() {
        return Err(Error::NoLists.into());
    }
    let (found, expected) = (lists.width(), scorer.features());
    if found != expected {
        return Err(Error::Shape { what: "a document", found, expected }.into());
    }
    Ok(())
}
