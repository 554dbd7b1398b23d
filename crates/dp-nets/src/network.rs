//! Networks as a [`Model`].

use dp_data::{ImageBatch, Images};
use dp_losses::{ChoosesFrom, Model, ParameterBlock};

use crate::architecture::{Architecture, Planned};
use crate::error::Error;
use crate::float::{Float, double_roundoff};
use crate::initial::Initial;
use crate::input::{Input, Pixels};
use crate::layers::{per_example, softmax};
use crate::pass::{Pass, Sizes, grow};
use crate::stage::{Gradients, Stage};

/// Bytes of buffers for which [`Network::recommended_microbatch`] aims.
const CACHE: usize = 1 << 22;

/// A network with the softmax cross-entropy as its loss, for images or rows.
///
/// Its parameters are one flat vector; every layer with parameters is one block, its weights and then its biases, named by
/// position and kind, e.g. `1 convolution`. An example whose input, logits or gradient is not finite has the squared
/// norm infinity in every block. With the coefficient 0, an example adds exactly nothing.
///
/// An activation of an infinite number is its limit: the `tanh` of infinity is 1. If all later values and gradients are finite,
/// so is the norm; it is the norm of what is added.
///
/// # Formula
/// ```text
/// linear             squared norm (|a|² + 1) |g|²       sum  (c g)ᵀ a, one product for the microbatch
/// convolution, norm  the gradient of each example is stored: its squared norm, and the sum of c times it
/// ```
/// with input `a` and gradient `g` at the output. Squared norms are added in double precision in either float type.
///
/// If an example has several views, its loss is the mean over them, and the gradient of each layer is stored.
///
/// # Panics
/// The methods of [`Model`] panic if parameters, coefficients or outputs have lengths other than those of the batch and the
/// model, if the examples have another shape than the input, if a sparse row has a column that is not below its length, or if a
/// batch has another number of examples than that of the last forward pass.
///
/// # Examples
/// ```
/// use dp_data::Examples;
/// use dp_losses::Model;
/// use dp_nets::{Activation, Architecture, Features, Initial, Network};
///
/// let data = Examples::dense(vec![0.6_f64, 0.8, 1.0, 0.0], vec![1.0, 0.0], 2)?;
/// let network = Network::new(Architecture::mlp(Architecture::rows(2), &[3], 2, Activation::Tanh), Features)?;
/// let w = network.initial(Initial::Uniform, 7);
/// let mut pass = network.pass(2);
/// network.forward(&w, data.block(), &mut pass);
/// network.backward(&w, data.block(), &mut pass);
/// let mut squared_norms = [0.0; 4]; // two examples, two layers
/// network.squared_norms(data.block(), &mut pass, &mut squared_norms);
/// let coefficients = squared_norms.map(|square| f64::min(1.0, 0.1 / square.sqrt()));
/// let mut sum = vec![0.0; w.len()];
/// network.add_weighted(data.block(), &mut pass, &coefficients, &mut sum);
/// // Two contributions of norm 0.1 at most in each of the two layers.
/// assert!(sum.iter().map(|s| s * s).sum::<f64>().sqrt() <= 0.2 * 2f64.sqrt() + 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # References
/// Norms of the gradients of linear layers: Goodfellow, "Efficient Per-Example Gradient Computations", 2015, arXiv:1510.01799.
#[derive(Debug, Clone)]
pub struct Network<F, I> {
    architecture: Architecture,
    input: I,
    plan: Vec<Planned>,
    stages: Vec<Stage>,
    sizes: Sizes,
    blocks: Vec<ParameterBlock>,
    /// The first layer with parameters: gradients go no further down.
    first: usize,
    classes: usize,
    float: core::marker::PhantomData<fn() -> F>,
}

impl<F: Float, I: Input<F>> Network<F, I> {
    /// Creates the network of an architecture, which reads its examples through `input`: [`Pixels`] or
    /// [`Features`](crate::Features).
    ///
    /// # Errors
    /// Layers that do not fit, settings out of their ranges, and architectures beyond the limits.
    pub fn new(architecture: Architecture, input: I) -> Result<Self, Error> {
        let plan = architecture.plan()?;
        let mut stages: Vec<Stage> = Vec::with_capacity(plan.len());
        let mut values = vec![architecture.input.values().unwrap_or(0)];
        let mut blocks = Vec::new();
        for planned in &plan {
            let stage = Stage::new(planned, values.len() - 1, input.views());
            if !stage.is_in_place() {
                values.push(stage.outputs);
            }
            if !planned.parameters.is_empty() {
                let name = format!("{} {}", planned.name.position, planned.name.kind);
                blocks.push(ParameterBlock { name, range: planned.parameters.clone() });
            }
            stages.push(stage);
        }
        let first = stages.iter().position(|stage| !stage.parameters.is_empty()).unwrap_or(0);
        let without = stages.get(first).map_or(0, |stage| stage.slot);
        let gradients = values.iter().enumerate().map(|(slot, &size)| if slot > without { size } else { 0 }).collect();
        let (classes, sizes) = (values.last().copied().unwrap_or(0), Sizes { views: input.views(), values, gradients });
        Ok(Self { architecture, input, plan, stages, sizes, blocks, first, classes, float: core::marker::PhantomData })
    }

    /// Returns the architecture.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// Returns the number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Draws initial parameters from a public seed. The same seed gives the same parameters, rounded to `F`.
    ///
    /// # Privacy
    /// The draw reads no data. The seed is public; it must not be the seed of privacy noise.
    pub fn initial(&self, initial: Initial, seed: u64) -> Vec<F> {
        initial.draw(&self.plan, seed)
    }

    /// Returns the size in bytes of all buffers of a pass that grow with the microbatch, for each example.
    pub fn bytes_per_example(&self) -> usize {
        let views = self.sizes.views;
        let mut numbers = views * self.sizes.values.iter().chain(&self.sizes.gradients).sum::<usize>();
        for stage in &self.stages {
            let kept = stage.kept();
            numbers += kept.per_example + views * (kept.normalised + kept.scales);
        }
        numbers += self.stages.iter().filter_map(Stage::factored).map(|linear| linear.outputs).max().unwrap_or(0);
        numbers * size_of::<F>() + views * self.stages.iter().map(|stage| stage.kept().indices).sum::<usize>()
    }

    /// Returns the number of examples for which the buffers of a pass fit a cache of 4 MB: between 16 and 512, and 512 if the
    /// buffers of a few hundred are smaller than the weights of linear layers, which are read once for each microbatch.
    pub fn recommended_microbatch(&self) -> usize {
        let linear = self.stages.iter().filter_map(Stage::factored);
        let weights: usize = linear.map(|linear| linear.parameters() * size_of::<F>()).sum();
        let least = if 128 * self.bytes_per_example() <= weights { 512 } else { 16 };
        (CACHE / self.bytes_per_example().max(1)).clamp(least, 512)
    }

    fn stages_with_parameters(&self) -> impl Iterator<Item = (usize, &Stage)> {
        self.stages.iter().enumerate().filter(|(_, stage)| !stage.parameters.is_empty())
    }

    fn check_batch(&self, batch: I::Batch<'_>, pass: &Pass<F>) -> usize {
        let n = self.input.examples(batch);
        assert_eq!(n, pass.examples, "the batch of the last forward pass");
        n
    }
}

impl<F: Float> Network<F, Pixels<F>> {
    /// Checks that images have the shape and the classes that the network expects.
    ///
    /// # Errors
    /// [`Error::Data`] if they have not.
    pub fn check_images(&self, images: &Images) -> Result<(), Error> {
        let (expected, classes) = (self.architecture.input, self.classes);
        if (images.shape(), images.classes()) == (expected, classes) {
            return Ok(());
        }
        Err(Error::Data { found: images.shape(), found_classes: images.classes(), expected, classes })
    }
}

impl<F: Float, I: Input<F>> Model<F> for Network<F, I> {
    type Batch<'a> = I::Batch<'a>;
    type Pass = Pass<F>;

    fn blocks(&self) -> &[ParameterBlock] {
        &self.blocks
    }

    fn pass(&self, microbatch: usize) -> Pass<F> {
        Pass::new(&self.stages, &self.sizes, microbatch)
    }

    fn forward(&self, parameters: &[F], batch: I::Batch<'_>, pass: &mut Pass<F>) {
        assert_eq!(parameters.len(), self.parameters(), "the parameters of the network");
        let n = self.input.examples(batch);
        pass.reserve(&self.stages, &self.sizes, n);
        let (views, size) = (self.sizes.views, self.sizes.values[0]);
        pass.examples = n;
        pass.classes.clear();
        for (i, values) in pass.values[0][..n * views * size].chunks_exact_mut(views * size).enumerate() {
            let views = values.chunks_exact_mut(size).enumerate();
            let classes = views.map(|(view, values)| self.input.read(batch, i, view, self.classes, values));
            let class = classes.reduce(Option::and).flatten().filter(|&class| class < self.classes);
            if class.is_none() {
                values.fill(F::zero());
            }
            pass.classes.push(class);
        }
        let n = n * views;
        for (stage, kept) in self.stages.iter().zip(&mut pass.kept) {
            let (below, above) = pass.values.split_at_mut(stage.slot + 1);
            let input = &mut below[stage.slot][..n * stage.inputs];
            let output =
                above.first_mut().filter(|_| !stage.is_in_place()).map(|output| &mut output[..n * stage.outputs]);
            stage.forward(parameters, input, kept, (&mut pass.buffer, &mut pass.spare), output.unwrap_or(&mut []));
        }
        let logits = pass.values.last().map_or(&[][..], |logits| &logits[..n * self.classes]);
        softmax::mean_of_views(logits, views, self.classes, &mut pass.logits);
    }

    fn losses(&self, batch: I::Batch<'_>, pass: &Pass<F>, out: &mut [F]) {
        assert_eq!(out.len(), self.check_batch(batch, pass), "one loss per example");
        let of_example = self.sizes.views * self.classes;
        let logits = pass.values.last().map_or(&[][..], Vec::as_slice).chunks_exact(of_example);
        for ((out, logits), &class) in out.iter_mut().zip(logits).zip(&pass.classes) {
            *out = softmax::mean_loss(logits, self.classes, class);
        }
    }

    fn backward(&self, parameters: &[F], batch: I::Batch<'_>, pass: &mut Pass<F>) {
        assert_eq!(parameters.len(), self.parameters(), "the parameters of the network");
        let views = self.sizes.views;
        let n = self.check_batch(batch, pass) * views;
        pass.reserve_gradients(&self.stages, &self.sizes);
        let Pass { classes, values, gradients, kept, buffer, spare, .. } = pass;
        if let (Some(logits), Some(gradient)) = (values.last(), gradients.last_mut()) {
            let length = n * self.classes;
            softmax::gradients(&logits[..length], classes, views, &mut gradient[..length]);
        }
        let stages = self.stages.iter().zip(kept).enumerate().skip(self.first).rev();
        for (index, (stage, kept)) in stages {
            let values = &values[stage.slot][..n * stage.inputs];
            let (below, above) = gradients.split_at_mut(stage.slot + 1);
            let of_input = &mut below[stage.slot];
            let gradients = if stage.is_in_place() {
                Gradients { output: &mut of_input[..n * stage.inputs], input: None }
            } else {
                let input = (index > self.first).then(|| &mut of_input[..n * stage.inputs]);
                Gradients { output: &mut above[0][..n * stage.outputs], input }
            };
            stage.backward(parameters, values, kept, (buffer, spare), gradients);
        }
    }

    fn squared_norms(&self, batch: I::Batch<'_>, pass: &mut Pass<F>, out: &mut [F]) {
        let (n, blocks) = (self.check_batch(batch, pass), self.blocks.len());
        assert_eq!(out.len(), n * blocks, "one norm per example and block");
        let Pass { values, gradients, kept, norms, .. } = pass;
        grow(norms, n * blocks, 0.0);
        let norms = &mut norms[..n * blocks];
        for (block, (index, stage)) in self.stages_with_parameters().enumerate() {
            let column = norms.iter_mut().skip(block).step_by(blocks);
            match stage.factored() {
                // One view of each example.
                Some(linear) => {
                    let input = &values[stage.slot][..n * stage.inputs];
                    linear.squared_norms(input, &gradients[stage.slot + 1][..n * stage.outputs], column);
                }
                None => {
                    let length = stage.parameters.len();
                    per_example::squared_norms(&kept[index].per_example[..n * length], length, column);
                }
            }
        }
        for (out, norms) in out.chunks_exact_mut(blocks).zip(norms.chunks_exact(blocks)) {
            out.iter_mut().zip(norms).for_each(|(out, &norm)| *out = F::narrow(norm));
            if out.iter().any(|norm| !norm.is_finite()) {
                out.fill(F::narrow(f64::INFINITY));
            }
        }
    }

    /// # Formula
    /// ```text
    /// 1 + r · (unit roundoff of double precision / unit roundoff of F)
    /// ```
    /// with `r` the largest number of roundings of one block's norm in double
    /// precision, which is rounded once to `F`.
    fn norm_roundings(&self) -> f64 {
        let of_block = self.stages.iter().map(Stage::norm_roundings).fold(0.0, f64::max);
        1.0 + of_block * double_roundoff::<F>()
    }

    fn add_weighted(&self, batch: I::Batch<'_>, pass: &mut Pass<F>, coefficients: &[F], sum: &mut [F]) {
        let (n, blocks) = (self.check_batch(batch, pass), self.blocks.len());
        assert!(
            coefficients.len() == n * blocks && sum.len() == self.parameters(),
            "coefficients and sum fit the network"
        );
        let Pass { values, gradients, kept, buffer, column, .. } = pass;
        for (block, (index, stage)) in self.stages_with_parameters().enumerate() {
            column.clear();
            column.extend(coefficients.iter().skip(block).step_by(blocks));
            let (length, sum) = (stage.parameters.len(), &mut sum[stage.parameters.clone()]);
            match stage.factored() {
                Some(linear) => linear.add_weighted(
                    &mut values[stage.slot][..n * stage.inputs],
                    &mut gradients[stage.slot + 1][..n * stage.outputs],
                    column,
                    &mut buffer[..n * stage.outputs],
                    sum,
                ),
                None => per_example::add_weighted(&kept[index].per_example[..n * length], column, sum),
            }
        }
    }

    fn add_weighted_in_double(&self, batch: I::Batch<'_>, pass: &mut Pass<F>, coefficients: &[F], sum: &mut [f64]) {
        if let Some(sum) = F::from_doubles(sum) {
            return self.add_weighted(batch, pass, coefficients, sum);
        }
        let (n, blocks) = (self.check_batch(batch, pass), self.blocks.len());
        assert!(
            coefficients.len() == n * blocks && sum.len() == self.parameters(),
            "coefficients and sum fit the network"
        );
        let Pass { values, gradients, kept, buffer, column, wide_input, wide, .. } = pass;
        for (block, (index, stage)) in self.stages_with_parameters().enumerate() {
            column.clear();
            column.extend(coefficients.iter().skip(block).step_by(blocks));
            let (length, sum) = (stage.parameters.len(), &mut sum[stage.parameters.clone()]);
            match stage.factored() {
                Some(linear) => {
                    grow(wide_input, n * stage.inputs, 0.0);
                    grow(wide, n * stage.outputs, 0.0);
                    linear.add_weighted_in_double(
                        &values[stage.slot][..n * stage.inputs],
                        &gradients[stage.slot + 1][..n * stage.outputs],
                        column,
                        &mut buffer[..n * stage.outputs],
                        &mut wide_input[..n * stage.inputs],
                        &mut wide[..n * stage.outputs],
                        sum,
                    );
                }
                None => per_example::add_weighted_in_double(&kept[index].per_example[..n * length], column, sum),
            }
        }
    }
}

impl<F: Float> ChoosesFrom<F, Images> for Network<F, Pixels<F>> {
    fn choose<'a>(&self, images: &'a Images, positions: &'a [u32]) -> ImageBatch<'a> {
        images.choose(positions)
    }
}

#[cfg(test)]
mod tests;
