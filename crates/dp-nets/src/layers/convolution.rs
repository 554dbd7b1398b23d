//! The convolution, as a matrix product with the windows of the image.
//!
//! # Formula
//! ```text
//! U = windows of the image: T x K,   T = positions,   K = kernel rows · kernel columns · input channels
//! z = U Wᵀ + b     ∂/∂U = g W, added up per pixel     ∂/∂(W, b) = (gᵀ U, Σ_t g_t)
//! ```
//! for one example; `z` and `g` are `T x C`, `W` is `C x K`, row by row, and `b` follows it. Images are
//! `height x width x channels` with the channel running fastest, so that `z` is an image again (Chellapilla, Puri and Simard, 2006).
//!
//! The windows are written for a few examples at a time, in the forward and again in the backward pass: they are several times
//! larger than the image, and copying them within the cache is faster than keeping them.

use crate::float::Float;
use crate::kernels::{add, vectorised};
use crate::product::{Matrix, Output, least_rows, multiply};
use crate::window::Patches;

/// Numbers in the buffer for windows; one example may need more.
const BUFFER: usize = 1 << 16;

/// A convolution.
#[derive(Debug, Clone)]
pub(crate) struct Convolution {
    pub(crate) patches: Patches,
    /// Number of values of an input image.
    pub(crate) inputs: usize,
    /// Number of channels of the output.
    pub(crate) channels: usize,
}

impl Convolution {
    /// Returns the number of parameters.
    pub(crate) fn parameters(&self) -> usize {
        self.channels * (self.patches.values() + 1)
    }

    fn windows(&self) -> usize {
        self.patches.count() * self.patches.values()
    }

    /// Returns the number of examples whose windows are held and multiplied at once: one, if the order of sums would depend on
    /// their number.
    fn group(&self) -> usize {
        let (k, channels) = (self.patches.values(), self.channels);
        let least = least_rows(channels, k).max(least_rows(k, channels));
        if channels == 1 || k == 1 || self.patches.count() < least { 1 } else { (BUFFER / self.windows()).max(1) }
    }

    /// Returns the required length of the buffer for windows, for a microbatch of `examples`.
    pub(crate) fn buffer(&self, examples: usize) -> usize {
        self.windows() * self.group().min(examples)
    }

    fn outputs(&self) -> usize {
        self.patches.count() * self.channels
    }

    fn gather<F: Float>(&self, images: &[F], windows: &mut [F]) {
        let examples = images.chunks_exact(self.inputs).zip(windows.chunks_exact_mut(self.windows()));
        vectorised(
            #[inline(always)]
            || {
                for (image, windows) in examples {
                    self.patches.gather(image, windows);
                }
            },
        );
    }

    pub(crate) fn forward<F: Float>(&self, parameters: &[F], input: &[F], buffer: &mut [F], output: &mut [F]) {
        let k = self.patches.values();
        let (weights, bias) = parameters.split_at(self.channels * k);
        let weights = Matrix::new(weights, self.channels, k).transposed();
        let groups = input.chunks(self.group() * self.inputs).zip(output.chunks_mut(self.group() * self.outputs()));
        for (images, output) in groups {
            let rows = images.len() / self.inputs * self.patches.count();
            let windows = &mut buffer[..rows * k];
            self.gather(images, windows);
            output.chunks_exact_mut(self.channels).for_each(|pixel| pixel.copy_from_slice(bias));
            multiply(Matrix::new(windows, rows, k), weights, Output::Add, output);
        }
    }

    /// Writes the gradient of each example's loss with respect to the parameters, the sum over its `views` images, and, if asked
    /// for, that with respect to the input.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn backward<F: Float>(
        &self,
        parameters: &[F],
        input: &[F],
        gradient: &[F],
        views: usize,
        buffer: &mut [F],
        per_example: &mut [F],
        mut input_gradient: Option<&mut [F]>,
    ) {
        let (t, k, channels) = (self.patches.count(), self.patches.values(), self.channels);
        let weights = Matrix::new(&parameters[..channels * k], channels, k);
        let groups =
            input.chunks(self.group() * self.inputs).zip(gradient.chunks(self.group() * self.outputs())).enumerate();
        for (index, (images, gradient)) in groups {
            let count = images.len() / self.inputs;
            let windows = &mut buffer[..count * self.windows()];
            self.gather(images, windows);
            let each = windows.chunks_exact(self.windows()).zip(gradient.chunks_exact(self.outputs()));
            for (image, (windows, gradient)) in (index * self.group()..).zip(each) {
                let own = &mut per_example[image / views * self.parameters()..][..self.parameters()];
                let (of_weights, of_bias) = own.split_at_mut(channels * k);
                let gradients = Matrix::new(gradient, t, channels).transposed();
                let is_first = image % views == 0;
                let output = if is_first { Output::Set } else { Output::Add };
                multiply(gradients, Matrix::new(windows, t, k), output, of_weights);
                if is_first {
                    of_bias.fill(F::zero());
                }
                vectorised(
                    #[inline(always)]
                    || {
                        for pixel in gradient.chunks_exact(channels) {
                            add(pixel, of_bias);
                        }
                    },
                );
            }
            if let Some(input_gradient) = input_gradient.as_deref_mut() {
                multiply(Matrix::new(gradient, count * t, channels), weights, Output::Set, windows);
                let start = index * self.group() * self.inputs;
                let images = input_gradient[start..start + images.len()].chunks_exact_mut(self.inputs);
                vectorised(
                    #[inline(always)]
                    || {
                        for (windows, image) in windows.chunks_exact(self.windows()).zip(images) {
                            self.patches.scatter(windows, image);
                        }
                    },
                );
            }
        }
    }
}
