//! Scores that are linear in the features.

use super::{ParameterBlock, Scorer, check_shapes};
use crate::dense::{add_scaled, dot, multiply_transposed};
use crate::error::Error;
use crate::lists::Features;

/// `f(x, θ) = θ · x`, without an intercept (which does not affect the ranking).
///
/// # Formula
/// ```text
/// φ_i = x_i,   K = X Xᵀ
/// ```
///
/// # Examples
/// ```
/// use dp_rank::Features;
/// use dp_rank::scorer::{Linear, LinearWorkspace, Scorer};
///
/// let (scorer, list) = (Linear::new(2)?, Features::new(&[1.0, 2.0, 3.0, 4.0], 2)?);
/// let (mut scores, mut workspace) = ([0.0; 2], LinearWorkspace::default());
/// scorer.scores(&[1.0, -1.0], list, &mut workspace, &mut scores);
/// assert_eq!(scores, [-1.0, -1.0]);
/// let mut gradient = [0.0; 2];
/// scorer.add_gradient(&[1.0, -1.0], list, &[0.5, -0.5], &mut workspace, &mut gradient);
/// assert_eq!(gradient, [-1.0, -1.0]);
/// # Ok::<(), dp_rank::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Linear {
    features: usize,
}

impl Linear {
    /// Returns a linear scorer of documents with this many features.
    ///
    /// # Errors
    /// [`Error::Zero`].
    pub fn new(features: usize) -> Result<Self, Error> {
        if features == 0 { Err(Error::Zero { what: "the number of features" }) } else { Ok(Self { features }) }
    }
}

/// Buffers of [`Linear`] for one list.
#[derive(Debug, Clone, Default)]
pub struct LinearWorkspace {
    scratch: Vec<f64>,
}

impl Scorer for Linear {
    type Workspace = LinearWorkspace;

    fn features(&self) -> usize {
        self.features
    }

    fn parameters(&self) -> usize {
        self.features
    }

    fn blocks(&self) -> Vec<ParameterBlock> {
        vec![ParameterBlock { name: "theta", range: 0..self.features, rows: 1, columns: self.features }]
    }

    fn scores(&self, parameters: &[f64], list: Features<'_>, _: &mut LinearWorkspace, out: &mut [f64]) {
        check_shapes(self, parameters, list, out.len());
        for (score, row) in out.iter_mut().zip(list.rows()) {
            *score = dot(parameters, row);
        }
    }

    fn add_gradient(
        &self,
        parameters: &[f64],
        list: Features<'_>,
        score_gradient: &[f64],
        _: &mut LinearWorkspace,
        sum: &mut [f64],
    ) {
        check_shapes(self, parameters, list, score_gradient.len());
        assert_eq!(sum.len(), self.features, "a sum of another scorer");
        for (&g, row) in score_gradient.iter().zip(list.rows()) {
            add_scaled(g, row, sum);
        }
    }

    fn gram(&self, parameters: &[f64], list: Features<'_>, workspace: &mut LinearWorkspace, out: &mut [f64]) {
        let n = list.documents();
        check_shapes(self, parameters, list, n);
        assert_eq!(out.len(), n * n, "a Gram matrix of another list");
        let values = list.values();
        multiply_transposed(values, values, list.width(), 0.0, &mut workspace.scratch, out);
    }

    fn gram_terms(&self) -> usize {
        self.features
    }
}
