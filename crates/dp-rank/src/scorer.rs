//! What gives each document of a list a score: a linear function or a small network of its features.
//!
//! A scorer is a shape; its parameters are one flat vector, as the training engines want them. Per list:
//! [`Scorer::scores`], then, from what that left in the workspace, [`Scorer::add_gradient`] and [`Scorer::gram`].

mod linear;
mod mlp;
#[cfg(test)]
mod tests;

use core::ops::Range;

pub use linear::{Linear, LinearWorkspace};
pub use mlp::{Activation, Mlp, MlpWorkspace};

use crate::lists::Features;

/// A named part of the flat parameter vector: a matrix whose rows lie one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterBlock {
    /// Its name, e.g. `w1`.
    pub name: &'static str,
    /// Where it lies in the flat vector.
    pub range: Range<usize>,
    /// Rows; a vector has 1.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
}

/// A scoring function `f(x, θ)` of one document, differentiable in its parameters.
///
/// With `φ_i = ∂f(x_i, θ)/∂θ`, a loss whose gradient with respect to the scores is `g` has the parameter gradient
/// `Σ_i g_i φ_i`, and the inner products `φ_i · φ_j` are all that sensitivities need to know of the scorer.
///
/// # Panics
/// All methods panic when a slice has another length than documented. Shapes are agreed on when scorer and lists are
/// made; no value in the lists matters to them.
pub trait Scorer {
    /// Reusable buffers for one list; they grow to the longest list and then stay.
    type Workspace: Default;

    /// The number of features of a document.
    fn features(&self) -> usize;

    /// The length of the flat parameter vector.
    fn parameters(&self) -> usize;

    /// The parts of the flat vector, in order, covering it.
    fn blocks(&self) -> Vec<ParameterBlock>;

    /// Scores of all documents of a list: `out[i] = f(x_i, θ)`.
    fn scores(&self, parameters: &[f64], list: Features<'_>, workspace: &mut Self::Workspace, out: &mut [f64]);

    /// `sum += Σ_i score_gradient[i] φ_i`, after [`scores`](Self::scores) of the same list at the same parameters.
    fn add_gradient(
        &self,
        parameters: &[f64],
        list: Features<'_>,
        score_gradient: &[f64],
        workspace: &mut Self::Workspace,
        sum: &mut [f64],
    );

    /// `out[i n + j] = φ_i · φ_j`, without forming any `φ`, after [`scores`](Self::scores) of the same list at the same
    /// parameters. Depends on public values and the parameters only.
    fn gram(&self, parameters: &[f64], list: Features<'_>, workspace: &mut Self::Workspace, out: &mut [f64]);

    /// The most terms that one number of [`gram`](Self::gram) is a sum of: what its rounding is bounded by.
    fn gram_terms(&self) -> usize;
}

pub(crate) fn check_shapes(scorer: &impl Scorer, parameters: &[f64], list: Features<'_>, per_document: usize) {
    assert_eq!(parameters.len(), scorer.parameters(), "parameters of another scorer");
    assert_eq!(list.width(), scorer.features(), "documents of another width");
    assert_eq!(per_document, list.documents(), "one number per document");
}
