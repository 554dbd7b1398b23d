//! Losses of one list as functions of its scores and grades, with their gradients.
//!
//! | loss | of | cost for n documents | trained privately |
//! |---|---|---|---|
//! | [`ListNet`] | cross entropy of top-k probabilities | `O(n)`, `O(n^k)` for k > 1 | yes |
//! | [`ListMle`] | log-likelihood of the sorted grades | `O(n log n)` | yes |
//! | [`BayesRank`] | expected NDCG@k under Plackett–Luce | `O(n)`, `O(n^k)` or `O(400 n k)` | yes |
//! | [`RankNet`] | logistic loss of pairs | `O(n²)` | anchor only |
//! | [`LambdaRank`] | the same, weighted by what a swap does to NDCG | `O(n²)` | anchor only |
//!
//! Private trainers take a [`ListLoss`]; the anchors, against which rankers without privacy are measured, implement only
//! [`RankingLoss`], so no private trainer accepts them by mistake.
//!
//! All losses are in descent form (smaller is better), unchanged when a constant is added to all scores (so the
//! gradients sum to 0), and do not depend on the order of the documents unless said otherwise.

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

/// Reusable buffers of the losses; they grow to the longest list and then stay.
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
    /// The loss of one list, its gradient with respect to the scores into `gradient`.
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
/// [`public_centre`](Self::public_centre): it depends on scores alone, so a trainer may take it out of what it hides and
/// add it back without noise.
pub trait ListLoss: RankingLoss {
    /// The first step that serves at epsilon 1 with the other numbers of
    /// [`PrivateRanking::new`](crate::train::PrivateRanking::new): the longer a loss's gradients, the shorter. Public.
    fn usual_step(&self) -> f64 {
        0.2
    }

    /// Whether the public centre is anything but 0.
    fn has_public_centre(&self) -> bool {
        false
    }

    /// Whether [`image`](Self::image) bounds what grades make of a gradient.
    fn has_known_image(&self) -> bool {
        false
    }

    /// How far a list's gradients in the parameters are from each other and from 0 over all grades, from scores and the
    /// products of their gradients alone; where `thinned`, over all grades of which one document has any. Infinite unless the
    /// loss says otherwise.
    ///
    /// # Errors
    /// Scores that do not fit the products or are NaN.
    fn image(&self, scores: &[f64], gram: &Gram<'_>, thinned: bool) -> Result<ImageBounds, Error> {
        let _ = (scores, gram, thinned);
        Ok(ImageBounds { diameter: f64::INFINITY, radius: f64::INFINITY })
    }

    /// A gradient that does not depend on the grades and lies in the middle of what the grades can make of it.
    /// 0 unless the loss says otherwise.
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
