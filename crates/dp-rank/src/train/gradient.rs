//! Gradients of lists in the parameters of a scorer.

use crate::error::Error;
use crate::lists::{Features, QueryList};
use crate::loss::{ListLoss, LossBuffers, RankingLoss};
use crate::scorer::Scorer;
use crate::sensitivity::{Gram, ImageBounds};

/// Computes gradients of lists one after another, in buffers as large as the longest list so far.
///
/// # Formula
/// ```text
/// Σ_i g_i φ_i            the gradient of a list
/// Σ_i z_i φ_i            its public part: no grade takes part in it
/// Σ_i (g_i - z_i) φ_i    what is private about it
/// ```
/// with `g` the loss's gradient and `z` its [public centre](ListLoss::public_centre), both in the scores, and `φ_i` the gradient
/// of the score of document `i`.
pub struct ListGradient<'s, S: Scorer> {
    scorer: &'s S,
    workspace: S::Workspace,
    buffers: LossBuffers,
    scores: Vec<f64>,
    of_scores: Vec<f64>,
    centre: Vec<f64>,
    products: Vec<f64>,
}

impl<'s, S: Scorer> ListGradient<'s, S> {
    /// Creates the buffers for this scorer.
    pub fn new(scorer: &'s S) -> Self {
        let (workspace, buffers) = (S::Workspace::default(), LossBuffers::default());
        let (scores, of_scores, centre, products) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { scorer, workspace, buffers, scores, of_scores, centre, products }
    }

    fn score(&mut self, parameters: &[f64], features: Features<'_>) {
        for buffer in [&mut self.scores, &mut self.of_scores, &mut self.centre] {
            buffer.resize(features.documents(), 0.0);
        }
        self.scorer.scores(parameters, features, &mut self.workspace, &mut self.scores);
    }

    fn add(&mut self, parameters: &[f64], features: Features<'_>, sum: &mut [f64]) {
        self.scorer.add_gradient(parameters, features, &self.of_scores, &mut self.workspace, sum);
    }

    /// Adds a list's gradient to `sum` and returns its loss.
    ///
    /// # Panics
    /// As [`Scorer`], on slices of other lengths than the scorer's and the list's.
    pub fn add_whole(
        &mut self,
        loss: &impl RankingLoss,
        parameters: &[f64],
        list: QueryList<'_>,
        sum: &mut [f64],
    ) -> f64 {
        self.score(parameters, list.features());
        let value = loss.evaluate(&self.scores, list.grades(), &mut self.buffers, &mut self.of_scores);
        self.add(parameters, list.features(), sum);
        value
    }

    /// Adds the private part of a list's gradient to `sum`.
    ///
    /// # Panics
    /// As [`add_whole`](Self::add_whole).
    pub fn add_private(&mut self, loss: &impl ListLoss, parameters: &[f64], list: QueryList<'_>, sum: &mut [f64]) {
        self.score(parameters, list.features());
        loss.evaluate(&self.scores, list.grades(), &mut self.buffers, &mut self.of_scores);
        loss.public_centre(&self.scores, &mut self.buffers, &mut self.centre);
        self.of_scores.iter_mut().zip(&self.centre).for_each(|(of_score, centre)| *of_score -= centre);
        self.add(parameters, list.features(), sum);
    }

    /// Adds `weight` times the public part of a list's gradient to `sum`. Grades are not used.
    ///
    /// # Panics
    /// As [`add_whole`](Self::add_whole).
    pub fn add_public(
        &mut self,
        loss: &impl ListLoss,
        parameters: &[f64],
        features: Features<'_>,
        weight: f64,
        sum: &mut [f64],
    ) {
        self.score(parameters, features);
        loss.public_centre(&self.scores, &mut self.buffers, &mut self.of_scores);
        self.of_scores.iter_mut().for_each(|of_score| *of_score *= weight);
        self.add(parameters, features, sum);
    }

    /// Returns bounds on a list's gradients over all grades, rounding included: [`ListLoss::image`]. Grades are not used.
    ///
    /// # Errors
    /// If a score is NaN.
    ///
    /// # Panics
    /// As [`add_whole`](Self::add_whole).
    pub fn image(
        &mut self,
        loss: &impl ListLoss,
        parameters: &[f64],
        features: Features<'_>,
        thinned: bool,
    ) -> Result<ImageBounds, Error> {
        self.score(parameters, features);
        let gram = Gram::of(self.scorer, parameters, features, &mut self.workspace, &mut self.products);
        loss.image(&self.scores, &gram, thinned)
    }
}
