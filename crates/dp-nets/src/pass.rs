//! The buffers of a network for one microbatch.

use core::fmt;

use crate::float::Float;
use crate::stage::{Kept, Stage};

/// Buffers of a [`Network`](crate::Network) for one microbatch. They grow when a larger microbatch comes and never shrink, so
/// that nothing is allocated once they have seen the largest one.
///
/// `Debug` shows nothing of them: all are functions of records.
#[derive(Clone)]
pub struct Pass<F> {
    /// Of the last forward pass: the number of examples, and the class and the mean logits of each.
    pub(crate) examples: usize,
    pub(crate) classes: Vec<Option<usize>>,
    pub(crate) logits: Vec<F>,
    /// Input and outputs of the layers, and gradients with respect to them. Those that nothing needs stay empty.
    pub(crate) values: Vec<Vec<F>>,
    pub(crate) gradients: Vec<Vec<F>>,
    pub(crate) kept: Vec<Kept<F>>,
    /// Windows of a convolution, or scaled gradients of a linear layer.
    pub(crate) buffer: Vec<F>,
    /// Few rows with rows of zeros.
    pub(crate) spare: Vec<F>,
    /// The coefficients of one block.
    pub(crate) column: Vec<F>,
    /// Squared norms, examples x blocks.
    pub(crate) norms: Vec<f64>,
    /// Factors of a linear layer in double precision.
    pub(crate) wide_input: Vec<f64>,
    pub(crate) wide: Vec<f64>,
}

impl<F> fmt::Debug for Pass<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").finish_non_exhaustive()
    }
}

/// Makes a buffer at least `length` long.
pub(crate) fn grow<T: Clone>(buffer: &mut Vec<T>, length: usize, zero: T) {
    if buffer.len() < length {
        buffer.resize(length, zero);
    }
}

/// The sizes of a network's buffers for one view of an example, and the number of views.
#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    pub(crate) views: usize,
    pub(crate) values: Vec<usize>,
    pub(crate) gradients: Vec<usize>,
}

impl<F: Float> Pass<F> {
    pub(crate) fn new(stages: &[Stage], sizes: &Sizes, microbatch: usize) -> Self {
        let mut pass = Self {
            examples: 0,
            classes: Vec::with_capacity(microbatch),
            logits: Vec::with_capacity(microbatch * sizes.values.last().copied().unwrap_or(0)),
            values: vec![Vec::new(); sizes.values.len()],
            gradients: vec![Vec::new(); sizes.gradients.len()],
            kept: stages.iter().map(|_| Kept::default()).collect(),
            buffer: Vec::new(),
            spare: Vec::new(),
            column: Vec::with_capacity(microbatch),
            norms: Vec::new(),
            wide_input: Vec::new(),
            wide: Vec::new(),
        };
        pass.reserve(stages, sizes, microbatch);
        pass
    }

    /// Makes the buffers of the forward pass large enough for `examples`.
    pub(crate) fn reserve(&mut self, stages: &[Stage], sizes: &Sizes, examples: usize) {
        let zero = F::zero();
        let views = examples * sizes.views;
        self.values.iter_mut().zip(&sizes.values).for_each(|(buffer, size)| grow(buffer, views * size, zero));
        for (stage, kept) in stages.iter().zip(&mut self.kept) {
            let sizes = stage.kept();
            grow(&mut kept.indices, views * sizes.indices, 0);
            grow(&mut kept.normalised, views * sizes.normalised, zero);
            grow(&mut kept.scales, views * sizes.scales, zero);
            grow(&mut self.buffer, stage.buffer(examples), zero);
        }
    }

    /// Makes those of the backward pass large enough: predictions do not need them.
    pub(crate) fn reserve_gradients(&mut self, stages: &[Stage], sizes: &Sizes) {
        let (zero, examples) = (F::zero(), self.examples);
        let views = examples * sizes.views;
        self.gradients.iter_mut().zip(&sizes.gradients).for_each(|(buffer, size)| grow(buffer, views * size, zero));
        for (stage, kept) in stages.iter().zip(&mut self.kept) {
            grow(&mut kept.per_example, examples * stage.kept().per_example, zero);
        }
    }

    /// Returns the logits of the last forward pass, `examples x classes`: means over the views of each example.
    ///
    /// # Privacy
    /// They are functions of the records.
    pub fn logits(&self) -> &[F] {
        &self.logits
    }
}
