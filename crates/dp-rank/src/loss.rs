//! Losses of one list as functions of its scores and grades, with their gradients.
//!
//! | loss | of | cost for n documents | trained privately |
//! |---|---|---|---|
//! | [`ListNet`] | cross entropy of top-k probabilities | `O(n)`, `O(n^k)` for k > 1 | yes |
//! | [`ListMle`] | log-likelihood of the sorted grades | `O(n log n)` | yes |
//! | [`BayesRank`] | expected NDCG@k under Plackett–Luce | `O(n)`, `O(n^k)` or `O(400 n k)` | yes |
//! | [`RankNet`] | logistic loss of pairs | `O(n²)` | baseline only |
//! | [`LambdaRank`] | the same, weighted by the change in NDCG from a swap | `O(n²)` | baseline only |
//!
//! Private trainers take a [`ListLoss`]. The non-private baselines implement only [`RankingLoss`], so no private trainer accepts
//! them.
//!
//! All losses are to be minimised, are unchanged when a constant is added to all scores (so the gradients sum to 0), and do not
//! depend on the order of the documents unless said otherwise.

mod bayes_rank;
mod list_mle;
mod list_net;
mod pairwise;
#[cfg(test)]
mod tests;

pub use bayes_rank::BayesRank;
pub use list_mle::ListMle;
pub use list_net::ListNet;
pub use pairwise::{LambdaRank, RankNet};

use crate::error::Error;
use crate::sensitivity::{Gram, ImageBounds};

/// Reusable buffers of the losses, as large as the longest list so far.
#[derive(Debug, Clone, Default)]
pub struct LossBuffers {
    pub(crate) weights: Vec<f64>,
    pub(crate) targets: Vec<f64>,
    pub(crate) levels: Vec<f64>,
    pub(crate) order: Vec<usize>,
    pub(crate) taken: Vec<bool>,
}

/// A loss of one list.
pub trait RankingLoss {
    /// Returns the loss of one list and writes its gradient with respect to the scores to `gradient`.
    ///
    /// # Shapes
    /// `scores`, `grades` and `gradient` hold one number per document.
    ///
    /// # Panics
    /// If the lengths differ or there is no document.
    fn evaluate(&self, scores: &[f64], grades: &[u32], buffers: &mut LossBuffers, gradient: &mut [f64]) -> f64;
}

/// A loss whose gradients a private trainer may release, clipped or with a known sensitivity.
///
/// # Privacy
/// The gradient of one list in the parameters is `Σ_i g_i φ_i`. Its public part is `Σ_i z_i φ_i`, with `z` the
/// [`public_centre`](Self::public_centre). It depends on scores alone, so a trainer may subtract it before clipping and add it
/// back without noise.
pub trait ListLoss: RankingLoss {
    /// Returns the recommended first step at epsilon 1, with the other settings of
    /// [`PrivateRanking::new`](crate::train::PrivateRanking::new); the longer a loss's gradients, the shorter the step. Public.
    fn usual_step(&self) -> f64 {
        0.2
    }

    /// Returns whether the public centre is not identically 0.
    fn has_public_centre(&self) -> bool {
        false
    }

    /// Returns whether [`image`](Self::image) bounds the set of gradients over all grades.
    fn has_known_image(&self) -> bool {
        false
    }

    /// Returns bounds on the distances of a list's parameter gradients from each other and from 0 over all grades, from scores
    /// and the inner products of their gradients alone. If `thinned`, only one document has a nonzero grade. Infinite by default.
    ///
    /// # Errors
    /// If the scores do not fit the inner products or are NaN.
    fn image(&self, scores: &[f64], gram: &Gram<'_>, thinned: bool) -> Result<ImageBounds, Error> {
        let _ = (scores, gram, thinned);
        Ok(ImageBounds { diameter: f64::INFINITY, radius: f64::INFINITY })
    }

    /// Computes a gradient that does not depend on the grades, at the centre of the gradients over all grades. 0 by default.
    ///
    /// # Panics
    /// If the lengths differ or there is no document.
    fn public_centre(&self, scores: &[f64], buffers: &mut LossBuffers, centre: &mut [f64]) {
        let _ = buffers;
        assert_eq!(scores.len(), centre.len(), "one number per document");
        centre.fill(0.0);
    }
}

impl<L: RankingLoss> RankingLoss for &L {
    fn evaluate(&self, scores: &[f64], grades: &[u32], buffers: &mut LossBuffers, gradient: &mut [f64]) -> f64 {
        (**self).evaluate(scores, grades, buffers, gradient)
    }
}

impl<L: ListLoss> ListLoss for &L {
    fn usual_step(&self) -> f64 {
        (**self).usual_step()
    }

    fn has_public_centre(&self) -> bool {
        (**self).has_public_centre()
    }

    fn public_centre(&self, scores: &[f64], buffers: &mut LossBuffers, centre: &mut [f64]) {
        (**self).public_centre(scores, buffers, centre);
    }

    fn has_known_image(&self) -> bool {
        (**self).has_known_image()
    }

    fn image(&self, scores: &[f64], gram: &Gram<'_>, thinned: bool) -> Result<ImageBounds, Error> {
        (**self).image(scores, gram, thinned)
    }
}

fn check_lengths(scores: &[f64], grades: &[u32], gradient: &[f64]) {
    assert!(!scores.is_empty(), "a list has documents");
    assert_eq!((scores.len(), grades.len()), (grades.len(), gradient.len()), "one number per document");
}
