//! Group norm: each example's channels are normalised in groups.
//!
//! # Formula
//! ```text
//! x̂ = (x - mean) / sqrt(variance + 1e-5)      over the pixels and channels of a group of one example
//! y = γ x̂ + β                                 γ and β for each channel
//! ∂/∂x = (h - mean(h) - x̂ mean(h x̂)) / sqrt(variance + 1e-5),   h = γ g
//! ∂/∂γ = Σ g x̂,   ∂/∂β = Σ g                  over the pixels
//! ```
//! (Wu and He, 2018, arXiv:1803.08494). No statistic mixes examples, so that per-example gradients exist. Means and variances
//! are added in double precision.

use dp_data::images::Shape;

use crate::float::Float;
use crate::kernels::vectorised;

const EPSILON: f64 = 1e-5;

/// A group norm of images, with the scales `γ` and then the shifts `β` as parameters.
#[derive(Debug, Clone)]
pub(crate) struct GroupNorm {
    pub(crate) input: Shape,
    pub(crate) groups: usize,
}

/// The values of the forward pass that the backward pass needs.
pub(crate) struct Normalised<'a, F> {
    /// The values `x̂`, as many as inputs.
    pub(crate) values: &'a mut [F],
    /// `1 / sqrt(variance + 1e-5)` of each example and group.
    pub(crate) scales: &'a mut [F],
}

impl GroupNorm {
    fn values(&self) -> usize {
        self.input.height * self.input.width * self.input.channels
    }

    /// Returns the number of parameters.
    pub(crate) fn parameters(&self) -> usize {
        2 * self.input.channels
    }

    fn of_group(&self) -> usize {
        self.input.channels / self.groups
    }

    /// Returns the mean over group `group` of an example of `f` of the index of a value and its channel.
    #[inline(always)]
    fn mean(&self, group: usize, f: impl Fn(usize, usize) -> f64) -> f64 {
        let (channels, width) = (self.input.channels, self.of_group());
        let mut sum = 0.0;
        for pixel in (0..self.values()).step_by(channels) {
            for channel in group * width..(group + 1) * width {
                sum += f(pixel + channel, channel);
            }
        }
        sum / (self.values() / channels * width) as f64
    }

    pub(crate) fn forward<F: Float>(
        &self,
        parameters: &[F],
        input: &[F],
        normalised: Normalised<'_, F>,
        output: &mut [F],
    ) {
        let (scale, shift) = parameters.split_at(self.input.channels);
        let examples = input
            .chunks_exact(self.values())
            .zip(output.chunks_exact_mut(self.values()))
            .zip(normalised.values.chunks_exact_mut(self.values()))
            .zip(normalised.scales.chunks_exact_mut(self.groups));
        let width = self.of_group();
        vectorised(
            #[inline(always)]
            || {
                for (((x, y), normal), scales) in examples {
                    for (group, inverse) in scales.iter_mut().enumerate() {
                        let mean = self.mean(group, |j, _| x[j].wide());
                        let variance = self.mean(group, |j, _| (x[j].wide() - mean) * (x[j].wide() - mean));
                        let factor = 1.0 / (variance + EPSILON).sqrt();
                        *inverse = F::narrow(factor);
                        for pixel in (0..x.len()).step_by(self.input.channels) {
                            for channel in group * width..(group + 1) * width {
                                let j = pixel + channel;
                                normal[j] = F::narrow((x[j].wide() - mean) * factor);
                                y[j] = scale[channel] * normal[j] + shift[channel];
                            }
                        }
                    }
                }
            },
        );
    }

    /// Writes the gradient of each example's loss with respect to the parameters, and, if asked for, to the input.
    pub(crate) fn backward<F: Float>(
        &self,
        parameters: &[F],
        normalised: Normalised<'_, F>,
        gradient: &[F],
        views: usize,
        per_example: &mut [F],
        mut input_gradient: Option<&mut [F]>,
    ) {
        let (channels, values, width) = (self.input.channels, self.values(), self.of_group());
        let examples = normalised
            .values
            .chunks_exact(values)
            .zip(normalised.scales.chunks_exact(self.groups))
            .zip(gradient.chunks_exact(values))
            .enumerate();
        vectorised(
            #[inline(always)]
            || {
                for (i, ((normal, scales), g)) in examples {
                    let own = &mut per_example[i / views * 2 * channels..][..2 * channels];
                    if i % views == 0 {
                        own.fill(F::zero());
                    }
                    let (of_scale, of_shift) = own.split_at_mut(channels);
                    for (g, normal) in g.chunks_exact(channels).zip(normal.chunks_exact(channels)) {
                        for (channel, (&g, &normal)) in g.iter().zip(normal).enumerate() {
                            of_scale[channel] += g * normal;
                            of_shift[channel] += g;
                        }
                    }
                    let Some(input_gradient) = input_gradient.as_deref_mut() else { continue };
                    let out = &mut input_gradient[i * values..(i + 1) * values];
                    let h = |j: usize, channel: usize| (parameters[channel] * g[j]).wide();
                    for (group, scale) in scales.iter().enumerate() {
                        let mean = self.mean(group, h);
                        let along = self.mean(group, |j, channel| h(j, channel) * normal[j].wide());
                        for pixel in (0..values).step_by(channels) {
                            for channel in group * width..(group + 1) * width {
                                let j = pixel + channel;
                                out[j] = F::narrow((h(j, channel) - mean - normal[j].wide() * along) * scale.wide());
                            }
                        }
                    }
                }
            },
        );
    }
}
