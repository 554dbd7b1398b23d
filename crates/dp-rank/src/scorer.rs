//! Scoring functions of documents: a linear function or a small network of the features.
//!
//! A scorer is a shape; its parameters are one flat vector, as the training engines expect. Call [`Scorer::scores`] for each list
//! first; then [`Scorer::add_gradient`] and [`Scorer::gram`] use the workspace that it filled.

mod linear;
mod mlp;
#[cfg(test)]
mod tests;

use core::ops::Range;

pub use linear::{Linear, LinearWorkspace};
pub use mlp::{Activation, Mlp, MlpWorkspace};

use crate::lists::Features;

/// A named part of the flat parameter vector: a contiguous row-major matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterBlock {
    /// The name, e.g. `w1`.
    pub name: &'static str,
    /// The range in the flat vector.
    pub range: Range<usize>,
    /// Number of rows; 1 for a vector.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
}

/// A scoring function `f(x, θ)` of one document, differentiable in its parameters.
///
/// With `φ_i = ∂f(x_i, θ)/∂θ`, a loss whose gradient with respect to the scores is `g` has the parameter gradient `Σ_i g_i φ_i`.
/// Sensitivities depend on the scorer only through the inner products `φ_i · φ_j`.
///
/// # Panics
/// All methods panic if a slice has another length than documented. Lengths follow from the construction of scorer and lists,
/// never from values in the lists.
pub trait Scorer {
    /// Reusable buffers, as large as the longest list so far.
    type Workspace: Default;

    /// Returns the number of features of a document.
    fn features(&self) -> usize;

    /// Returns the length of the flat parameter vector.
    fn parameters(&self) -> usize;

    /// Returns the parts of the flat vector, in order and without gaps.
    fn blocks(&self) -> Vec<ParameterBlock>;

    /// Computes the scores of all documents of a list: `out[i] = f(x_i, θ)`.
    fn scores(&self, parameters: &[f64], list: Features<'_>, workspace: &mut Self::Workspace, out: &mut [f64]);

    /// Computes `sum += Σ_i score_gradient[i] φ_i`, after [`scores`](Self::scores) of the same list at the same parameters.
    fn add_gradient(
        &self,
        parameters: &[f64],
        list: Features<'_>,
        score_gradient: &[f64],
        workspace: &mut Self::Workspace,
        sum: &mut [f64],
    );

    /// Computes `out[i n + j] = φ_i · φ_j` without forming any `φ`, after [`scores`](Self::scores) of the same list at the same
    /// parameters. Depends on public values and the parameters only.
    fn gram(&self, parameters: &[f64], list: Features<'_>, workspace: &mut Self::Workspace, out: &mut [f64]);

    /// Returns the largest number of terms in an entry of [`gram`](Self::gram), which bounds its rounding error.
    fn gram_terms(&self) -> usize;
}

pub(crate) fn check_shapes(scorer: &impl Scorer, parameters: &[f64], list: Features<'_>, per_document: usize) {
    assert_eq!(parameters.len(), scorer.parameters(), "parameters of another scorer");
    assert_eq!(list.width(), scorer.features(), "documents of another width");
    assert_eq!(per_document, list.documents(), "one number per document");
}
