//! Shapes, ranges of parameters and the order of computation, inferred from an architecture.

use core::ops::{Range, RangeInclusive};

use dp_data::images::Shape;

use super::{Activation, Architecture, Layer};
use crate::error::{Error, LayerName};
use crate::window::Window;

const MOST_LAYERS: usize = 1024;
const MOST_VALUES: usize = 1 << 24;
const MOST_WINDOWS: usize = 1 << 27;
const MOST_PARAMETERS: usize = 1 << 31;

/// The computation of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Linear,
    Convolution(Window),
    Activation(Activation),
    MaxPool(Window),
    AveragePool(Window),
    GroupNorm { groups: usize },
}

/// A layer with its shapes and its range of the parameters, which is empty if it has none.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) name: LayerName,
    pub(crate) task: Task,
    pub(crate) input: Shape,
    pub(crate) output: Shape,
    pub(crate) parameters: Range<usize>,
}

impl Planned {
    pub(crate) fn inputs(&self) -> usize {
        values(self.input)
    }

    pub(crate) fn outputs(&self) -> usize {
        values(self.output)
    }

    /// Returns the number of inputs of one unit: `K` of a convolution, all inputs of a linear layer.
    pub(crate) fn fan_in(&self) -> usize {
        match self.task {
            Task::Convolution(window) => window.area() * self.input.channels,
            _ => self.inputs(),
        }
    }
}

fn values(shape: Shape) -> usize {
    shape.values().unwrap_or(0)
}

impl Architecture {
    /// Infers all shapes, and returns the layers in the order in which they are computed.
    ///
    /// An activation before a max-pool is computed after it: both are monotone, so that the function is the same, and fewer
    /// values remain.
    pub(crate) fn plan(&self) -> Result<Vec<Planned>, Error> {
        if self.input.values().is_none_or(|values| values > MOST_VALUES) {
            return Err(Error::Input { found: self.input, most: MOST_VALUES });
        }
        let mut plan: Vec<Planned> = Vec::new();
        for (position, layer) in (1..).zip(&self.layers) {
            let name = LayerName { position, kind: layer.kind() };
            if position > MOST_LAYERS {
                return Err(Error::TooLarge { layer: name, what: "layers up to it", most: MOST_LAYERS });
            }
            let before = plan.last();
            let previous = before.map_or(LayerName::INPUT, |planned| planned.name);
            let is_activation = |planned: &Planned| matches!(planned.task, Task::Activation(_));
            if layer.activation().is_some() && before.is_some_and(is_activation) {
                return Err(Error::Activations { layer: name, previous });
            }
            let step = Inference { name, previous, input: before.map_or(self.input, |planned| planned.output) };
            let start = before.map_or(0, |planned| planned.parameters.end);
            let (task, output, parameters) = step.infer(layer)?;
            let end = start.saturating_add(parameters);
            if end > MOST_PARAMETERS {
                return Err(Error::TooLarge { layer: name, what: "parameters up to it", most: MOST_PARAMETERS });
            }
            plan.push(Planned { name, task, input: step.input, output, parameters: start..end });
        }
        match self.layers.last() {
            Some(Layer::Linear { units: 2.. }) => {}
            _ => {
                let last = plan.last().map_or(LayerName::INPUT, |planned| planned.name);
                return Err(Error::Last { last });
            }
        }
        pool_first(&mut plan);
        Ok(plan)
    }
}

/// Moves each activation behind the max-pool that follows it, unless it would then stand before another activation.
fn pool_first(plan: &mut [Planned]) {
    for i in 1..plan.len() {
        let (Task::Activation(_), Task::MaxPool(_)) = (plan[i - 1].task, plan[i].task) else { continue };
        if plan.get(i + 1).is_some_and(|next| matches!(next.task, Task::Activation(_))) {
            continue;
        }
        plan.swap(i - 1, i);
        let pooled = plan[i - 1].output;
        (plan[i].input, plan[i].output) = (pooled, pooled);
    }
}

/// A layer that is to be fitted to the output of the layer before it.
struct Inference {
    name: LayerName,
    previous: LayerName,
    input: Shape,
}

impl Inference {
    /// Returns what the layer computes, its output and its number of parameters.
    fn infer(&self, layer: &Layer) -> Result<(Task, Shape, usize), Error> {
        let input = self.input;
        match *layer {
            Layer::Linear { units } => {
                self.setting("units", units, 1..=MOST_VALUES, "[1, 2^24]")?;
                Ok((Task::Linear, Architecture::rows(units), (values(input) + 1).saturating_mul(units)))
            }
            Layer::Convolution { channels, kernel, stride, padding } => {
                self.setting("channels", channels, 1..=MOST_VALUES, "[1, 2^24]")?;
                for axis in [0, 1] {
                    self.setting("kernel", kernel[axis], 1..=4096, "[1, 4096]")?;
                    self.setting("padding", padding[axis], 0..=4096, "[0, 4096]")?;
                }
                let window = Window { size: kernel, stride, padding };
                let output = self.output(window, channels)?;
                let fan_in = window.area().checked_mul(input.channels).filter(|&k| k <= MOST_WINDOWS);
                let windows = fan_in.and_then(|k| k.checked_mul(output.height)?.checked_mul(output.width));
                match (fan_in, windows) {
                    (Some(fan_in), Some(0..=MOST_WINDOWS)) => {
                        Ok((Task::Convolution(window), output, (fan_in + 1).saturating_mul(channels)))
                    }
                    _ => Err(self.too_large("values in the windows of one example", MOST_WINDOWS)),
                }
            }
            Layer::Relu => Ok((Task::Activation(Activation::Relu), input, 0)),
            Layer::Tanh => Ok((Task::Activation(Activation::Tanh), input, 0)),
            Layer::MaxPool { size, stride } => {
                let window = self.pool(size, stride)?;
                Ok((Task::MaxPool(window), self.output(window, input.channels)?, 0))
            }
            Layer::AveragePool { size, stride } => {
                let window = self.pool(size, stride)?;
                Ok((Task::AveragePool(window), self.output(window, input.channels)?, 0))
            }
            Layer::GroupNorm { groups } => {
                self.setting("groups", groups, 1..=MOST_VALUES, "[1, 2^24]")?;
                if !input.channels.is_multiple_of(groups) {
                    return Err(self.misfit(format!("a number of channels that {groups} groups divide")));
                }
                Ok((Task::GroupNorm { groups }, input, 2 * input.channels))
            }
        }
    }

    fn pool(&self, size: [usize; 2], stride: [usize; 2]) -> Result<Window, Error> {
        self.setting("size", size[0], 1..=256, "[1, 256]")?;
        self.setting("size", size[1], 1..=256 / size[0], "[1, 256 / rows]")?;
        Ok(Window { size, stride, padding: [0, 0] })
    }

    /// Returns the output of a window over the input.
    fn output(&self, window: Window, channels: usize) -> Result<Shape, Error> {
        for axis in [0, 1] {
            self.setting("stride", window.stride[axis], 1..=4096, "[1, 4096]")?;
        }
        let Some([height, width]) = window.positions(self.input) else {
            let least = |axis: usize| window.size[axis].saturating_sub(2 * window.padding[axis]).max(1);
            return Err(self.misfit(format!("at least {} x {} pixels", least(0), least(1))));
        };
        let output = Shape { height, width, channels };
        match output.values() {
            Some(1..=MOST_VALUES) => Ok(output),
            _ => Err(self.too_large("outputs", MOST_VALUES)),
        }
    }

    fn setting(
        &self,
        setting: &'static str,
        value: usize,
        accepted: RangeInclusive<usize>,
        range: &'static str,
    ) -> Result<(), Error> {
        if accepted.contains(&value) { Ok(()) } else { Err(Error::Setting { layer: self.name, setting, value, range }) }
    }

    fn misfit(&self, expected: String) -> Error {
        Error::Shape { layer: self.name, previous: self.previous, found: self.input, expected }
    }

    fn too_large(&self, what: &'static str, most: usize) -> Error {
        Error::TooLarge { layer: self.name, what, most }
    }
}
