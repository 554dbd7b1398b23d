//! Scores by a network with one hidden layer.

use super::{ParameterBlock, Scorer, check_shapes};
use crate::dense::{add_scaled, dot, multiply, multiply_transposed, multiply_with_itself};
use crate::error::Error;
use crate::lists::Features;
use crate::random::Public;

/// The activation function of the hidden units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Activation {
    /// `max(h, 0)`, with derivative 0 at 0.
    #[default]
    Relu,
    /// `tanh h`.
    Tanh,
}

impl Activation {
    /// Returns the value and the derivative.
    fn apply(self, h: f64) -> (f64, f64) {
        match self {
            Self::Relu => {
                if h > 0.0 {
                    (h, 1.0)
                } else {
                    (0.0, 0.0)
                }
            }
            Self::Tanh => {
                let a = h.tanh();
                (a, 1.0 - a * a)
            }
        }
    }
}

/// `f(x, θ) = w2 · act(W1 x + b1) + b2`, with `θ = (W1, b1, w2)`.
///
/// The output bias `b2` is a constant of the scorer, not a parameter: it does not affect the ranking, and under every loss of
/// this crate its gradient is `Σ_i g_i = 0`.
///
/// # Formula
/// ```text
/// h_i = W1 x_i + b1,  a_i = act(h_i),  D_i = w2 ⊙ act'(h_i)
/// ∂f/∂W1 = D_i x_iᵀ,  ∂f/∂b1 = D_i,  ∂f/∂w2 = a_i
/// K_ij = a_i · a_j + (D_i · D_j)(x_i · x_j + 1)
/// ```
///
/// # Shapes
/// The flat vector holds `W1` (hidden rows of `features`), then `b1`, then `w2` (hidden each). Scores and gradients cost
/// `O(n hidden features)`; the Gram matrix costs `O(n² (hidden + features))`.
///
/// # Examples
/// ```
/// use dp_rank::Features;
/// use dp_rank::scorer::{Activation, Mlp, MlpWorkspace, Scorer};
///
/// let scorer = Mlp::new(2, 3, Activation::Relu)?;
/// assert_eq!(scorer.parameters(), 3 * 2 + 3 + 3);
/// // Units x_0, x_1 and 1 - x_0, summed.
/// let parameters = [1.0, 0.0, 0.0, 1.0, -1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0];
/// let list = Features::new(&[0.5, 2.0, 3.0, -1.0], 2)?;
/// let mut scores = [0.0; 2];
/// scorer.scores(&parameters, list, &mut MlpWorkspace::default(), &mut scores);
/// assert_eq!(scores, [3.0, 3.0]);
/// # Ok::<(), dp_rank::Error>(())
/// ```
///
/// # References
/// D. Rumelhart, G. Hinton and R. Williams 1986; the derivative is taken at the unit's input `h`, not at its output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mlp {
    features: usize,
    hidden: usize,
    activation: Activation,
    output_bias: f64,
}

impl Mlp {
    /// Returns a network without output bias.
    ///
    /// # Errors
    /// [`Error::Zero`] if there is no feature or no hidden unit.
    pub fn new(features: usize, hidden: usize, activation: Activation) -> Result<Self, Error> {
        if features == 0 {
            return Err(Error::Zero { what: "the number of features" });
        }
        if hidden == 0 {
            return Err(Error::Zero { what: "the number of hidden units" });
        }
        Ok(Self { features, hidden, activation, output_bias: 0.0 })
    }

    /// Adds a constant to every score, as in networks trained elsewhere.
    #[must_use]
    pub fn with_output_bias(self, output_bias: f64) -> Self {
        Self { output_bias, ..self }
    }

    /// Returns the number of hidden units.
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// Returns the activation function.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// Returns initial parameters from a public seed: `W1` and `b1` normal with variance `2 / (features + 1)` (ReLU) or
    /// `1 / (features + 1)` (tanh), so that the inputs of hidden units are of order 1; `w2` normal with variance `1 / hidden`.
    ///
    /// # References
    /// K. He, X. Zhang, S. Ren and J. Sun 2015 (ReLU); X. Glorot and Y. Bengio 2010.
    pub fn initial(&self, seed: u64) -> Vec<f64> {
        let mut random = Public::new(seed);
        let inputs = (self.features + 1) as f64;
        let first = match self.activation {
            Activation::Relu => (2.0 / inputs).sqrt(),
            Activation::Tanh => inputs.recip().sqrt(),
        };
        let second = (self.hidden as f64).recip().sqrt();
        let split = self.hidden * (self.features + 1);
        (0..self.parameters()).map(|at| random.normal() * if at < split { first } else { second }).collect()
    }

    /// Returns `W1`, `b1` and `w2` in the flat vector.
    fn parts<'a>(&self, parameters: &'a [f64]) -> (&'a [f64], &'a [f64], &'a [f64]) {
        let (w1, rest) = parameters.split_at(self.hidden * self.features);
        let (b1, w2) = rest.split_at(self.hidden);
        (w1, b1, w2)
    }
}

/// Buffers of [`Mlp`] for one list. Matrices are hidden x documents, so that the list is transposed and not the weights.
#[derive(Debug, Clone, Default)]
pub struct MlpWorkspace {
    /// `a`, hidden x documents.
    activations: Vec<f64>,
    /// `D`, hidden x documents.
    slopes: Vec<f64>,
    /// hidden x documents, or documents x documents.
    scratch: Vec<f64>,
    /// A transposed factor.
    turned: Vec<f64>,
}

impl Scorer for Mlp {
    type Workspace = MlpWorkspace;

    fn features(&self) -> usize {
        self.features
    }

    fn parameters(&self) -> usize {
        self.hidden * (self.features + 2)
    }

    fn blocks(&self) -> Vec<ParameterBlock> {
        let (hidden, split) = (self.hidden, self.hidden * self.features);
        vec![
            ParameterBlock { name: "w1", range: 0..split, rows: hidden, columns: self.features },
            ParameterBlock { name: "b1", range: split..split + hidden, rows: 1, columns: hidden },
            ParameterBlock { name: "w2", range: split + hidden..split + 2 * hidden, rows: 1, columns: hidden },
        ]
    }

    fn scores(&self, parameters: &[f64], list: Features<'_>, workspace: &mut MlpWorkspace, out: &mut [f64]) {
        check_shapes(self, parameters, list, out.len());
        let (n, hidden) = (list.documents(), self.hidden);
        let (w1, b1, w2) = self.parts(parameters);
        workspace.activations.resize(n * hidden, 0.0);
        workspace.slopes.resize(n * hidden, 0.0);
        let MlpWorkspace { activations, slopes, turned, .. } = workspace;
        multiply_transposed(w1, list.values(), self.features, 0.0, turned, activations);
        out.fill(self.output_bias);
        let units = activations.chunks_exact_mut(n).zip(slopes.chunks_exact_mut(n));
        for (((activations, slopes), b), w) in units.zip(b1).zip(w2) {
            for (a, slope) in activations.iter_mut().zip(slopes) {
                let (value, derivative) = self.activation.apply(*a + b);
                (*a, *slope) = (value, w * derivative);
            }
            add_scaled(*w, activations, out);
        }
    }

    fn add_gradient(
        &self,
        parameters: &[f64],
        list: Features<'_>,
        score_gradient: &[f64],
        workspace: &mut MlpWorkspace,
        sum: &mut [f64],
    ) {
        check_shapes(self, parameters, list, score_gradient.len());
        let (n, hidden) = (list.documents(), self.hidden);
        assert_eq!(sum.len(), self.parameters(), "a sum of another scorer");
        assert_eq!(workspace.slopes.len(), n * hidden, "scores of this list come first");
        let (w1_sum, rest) = sum.split_at_mut(hidden * self.features);
        let (b1_sum, w2_sum) = rest.split_at_mut(hidden);
        let MlpWorkspace { activations, slopes, scratch, .. } = workspace;
        // g_i D_i, hidden x documents.
        scratch.resize(n * hidden, 0.0);
        let units = slopes.chunks_exact(n).zip(scratch.chunks_exact_mut(n)).zip(activations.chunks_exact(n));
        for (((slopes, weighted), activations), (b1, w2)) in units.zip(b1_sum.iter_mut().zip(w2_sum)) {
            for ((weighted, slope), g) in weighted.iter_mut().zip(slopes).zip(score_gradient) {
                *weighted = g * slope;
            }
            *b1 += weighted.iter().sum::<f64>();
            *w2 += dot(score_gradient, activations);
        }
        multiply(scratch, list.values(), hidden, n, self.features, 1.0, w1_sum);
    }

    fn gram(&self, parameters: &[f64], list: Features<'_>, workspace: &mut MlpWorkspace, out: &mut [f64]) {
        let (n, hidden) = (list.documents(), self.hidden);
        check_shapes(self, parameters, list, n);
        assert_eq!(out.len(), n * n, "a Gram matrix of another list");
        assert_eq!(workspace.slopes.len(), n * hidden, "scores of this list come first");
        let MlpWorkspace { activations, slopes, scratch, turned } = workspace;
        scratch.resize(n * n, 0.0);
        multiply_transposed(list.values(), list.values(), self.features, 0.0, turned, scratch);
        multiply_with_itself(slopes, n, 0.0, turned, out);
        for (out, inputs) in out.iter_mut().zip(scratch.iter()) {
            *out *= inputs + 1.0;
        }
        multiply_with_itself(activations, n, 1.0, turned, out);
    }

    fn gram_terms(&self) -> usize {
        // A product of two sums and one more sum.
        2 * self.hidden + self.features + 2
    }
}
