//! One layer of a network as it is computed, and what it keeps of a microbatch.

use core::ops::Range;

use crate::architecture::{Activation, Planned, Task};
use crate::float::Float;
use crate::kernels::squared_norm_roundings;
use crate::layers::convolution::Convolution;
use crate::layers::group_norm::{GroupNorm, Normalised};
use crate::layers::linear::Linear;
use crate::layers::pooling::Pool;
use crate::window::Patches;

#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Linear(Linear),
    Convolution(Convolution),
    /// In place.
    Activation(Activation),
    MaxPool(Pool),
    AveragePool(Pool),
    GroupNorm(GroupNorm),
}

/// A layer with its place among the buffers: it reads buffer `slot` and writes buffer `slot + 1`; an activation works in place.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    pub(crate) operation: Operation,
    pub(crate) slot: usize,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// Number of rows of values of one example.
    pub(crate) views: usize,
    pub(crate) parameters: Range<usize>,
}

/// The state of a layer for a microbatch, besides its values and gradients.
#[derive(Clone)]
pub(crate) struct Kept<F> {
    /// Max-pool: the index of each maximum.
    pub(crate) indices: Vec<u8>,
    /// The gradient of each example, where it is stored: of convolutions, of group norms, and of all layers if an example has
    /// several views.
    pub(crate) per_example: Vec<F>,
    /// Group norm: normalised values and scales.
    pub(crate) normalised: Vec<F>,
    pub(crate) scales: Vec<F>,
}

impl<F> Default for Kept<F> {
    fn default() -> Self {
        Self { indices: Vec::new(), per_example: Vec::new(), normalised: Vec::new(), scales: Vec::new() }
    }
}

/// Lengths of the vectors of [`Kept`]: of `per_example` for one example, of the others for one view.
pub(crate) struct KeptSizes {
    pub(crate) indices: usize,
    pub(crate) per_example: usize,
    pub(crate) normalised: usize,
    pub(crate) scales: usize,
}

/// The buffers of a layer in the backward pass.
pub(crate) struct Gradients<'a, F> {
    pub(crate) output: &'a mut [F],
    /// `None` if nothing below has parameters.
    pub(crate) input: Option<&'a mut [F]>,
}

impl Stage {
    pub(crate) fn new(planned: &Planned, slot: usize, views: usize) -> Self {
        let (input, output) = (planned.input, planned.output);
        let pool = |window| Pool { window, input, positions: [output.height, output.width] };
        let operation = match planned.task {
            Task::Linear => Operation::Linear(Linear { inputs: planned.inputs(), outputs: planned.outputs() }),
            Task::Convolution(window) => Operation::Convolution(Convolution {
                patches: Patches::new(window, input, [output.height, output.width]),
                inputs: planned.inputs(),
                channels: output.channels,
            }),
            Task::Activation(activation) => Operation::Activation(activation),
            Task::MaxPool(window) => Operation::MaxPool(pool(window)),
            Task::AveragePool(window) => Operation::AveragePool(pool(window)),
            Task::GroupNorm { groups } => Operation::GroupNorm(GroupNorm { input, groups }),
        };
        Self {
            operation,
            slot,
            inputs: planned.inputs(),
            outputs: planned.outputs(),
            views,
            parameters: planned.parameters.clone(),
        }
    }

    /// Returns whether the layer works in place.
    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self.operation, Operation::Activation(_))
    }

    /// Returns the linear layer whose gradients are products that need not be stored: each example has one view.
    pub(crate) fn factored(&self) -> Option<&Linear> {
        match &self.operation {
            Operation::Linear(linear) if self.views == 1 => Some(linear),
            _ => None,
        }
    }

    pub(crate) fn kept(&self) -> KeptSizes {
        let mut sizes = KeptSizes { indices: 0, per_example: 0, normalised: 0, scales: 0 };
        match &self.operation {
            Operation::MaxPool(_) => sizes.indices = self.outputs,
            Operation::Convolution(convolution) => sizes.per_example = convolution.parameters(),
            Operation::GroupNorm(norm) => {
                sizes.per_example = norm.parameters();
                sizes.normalised = self.inputs;
                sizes.scales = norm.groups;
            }
            Operation::Linear(linear) if self.views > 1 => sizes.per_example = linear.parameters(),
            Operation::Linear(_) | Operation::Activation(_) | Operation::AveragePool(_) => {}
        }
        sizes
    }

    /// Returns the required length of the shared buffer for a microbatch of `examples`: windows, or scaled gradients.
    pub(crate) fn buffer(&self, examples: usize) -> usize {
        match &self.operation {
            Operation::Convolution(convolution) => convolution.buffer(examples * self.views),
            Operation::Linear(linear) if self.views == 1 => linear.outputs * examples,
            _ => 0,
        }
    }

    /// Returns a bound on the roundings of the squared norms in double precision; 0 without parameters.
    pub(crate) fn norm_roundings(&self) -> f64 {
        match self.factored() {
            Some(linear) => linear.norm_roundings(),
            None if self.parameters.is_empty() => 0.0,
            None => squared_norm_roundings(self.parameters.len()),
        }
    }

    /// Computes the output of a microbatch; `parameters` is the flat vector. An activation overwrites `input`.
    pub(crate) fn forward<F: Float>(
        &self,
        parameters: &[F],
        input: &mut [F],
        kept: &mut Kept<F>,
        (buffer, spare): (&mut [F], &mut Vec<F>),
        output: &mut [F],
    ) {
        let parameters = &parameters[self.parameters.clone()];
        let n = input.len() / self.inputs;
        match &self.operation {
            Operation::Linear(linear) => linear.forward(parameters, input, spare, output),
            Operation::Convolution(convolution) => convolution.forward(parameters, input, buffer, output),
            Operation::Activation(activation) => activation.forward(input),
            Operation::MaxPool(pool) => pool.forward_max(input, &mut kept.indices[..n * self.outputs], output),
            Operation::AveragePool(pool) => pool.forward_average(input, output),
            Operation::GroupNorm(norm) => {
                norm.forward(parameters, input, normalised(norm, n * self.inputs, n, kept), output);
            }
        }
    }

    /// Computes the gradient with respect to the input from that with respect to the output, and gradients that are stored for
    /// each example. `values` is the input; of an activation, its output.
    pub(crate) fn backward<F: Float>(
        &self,
        parameters: &[F],
        values: &[F],
        kept: &mut Kept<F>,
        (buffer, spare): (&mut [F], &mut Vec<F>),
        gradients: Gradients<'_, F>,
    ) {
        let parameters = &parameters[self.parameters.clone()];
        let n = values.len() / self.inputs;
        let Gradients { output, input } = gradients;
        let examples = n / self.views;
        match (&self.operation, input) {
            (Operation::Convolution(convolution), input) => {
                let per_example = &mut kept.per_example[..examples * convolution.parameters()];
                convolution.backward(parameters, values, output, self.views, buffer, per_example, input);
            }
            (Operation::GroupNorm(norm), input) => {
                let mut per_example = core::mem::take(&mut kept.per_example);
                let own = &mut per_example[..examples * norm.parameters()];
                norm.backward(parameters, normalised(norm, n * self.inputs, n, kept), output, self.views, own, input);
                kept.per_example = per_example;
            }
            (Operation::Activation(activation), _) => activation.backward(values, output),
            (Operation::Linear(linear), input) => {
                if self.views > 1 {
                    let per_example = &mut kept.per_example[..examples * linear.parameters()];
                    linear.per_example(values, output, self.views, per_example);
                }
                if let Some(input) = input {
                    linear.backward(parameters, output, spare, input);
                }
            }
            (Operation::MaxPool(pool), Some(input)) => {
                pool.backward_max(&kept.indices[..n * self.outputs], output, input);
            }
            (Operation::AveragePool(pool), Some(input)) => pool.backward_average(output, input),
            (Operation::MaxPool(_) | Operation::AveragePool(_), None) => {}
        }
    }
}

fn normalised<'a, F>(norm: &GroupNorm, values: usize, examples: usize, kept: &'a mut Kept<F>) -> Normalised<'a, F> {
    Normalised { values: &mut kept.normalised[..values], scales: &mut kept.scales[..examples * norm.groups] }
}
