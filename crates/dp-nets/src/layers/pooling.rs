//! Pooling: the maximum or the mean of each window, channel by channel.
//!
//! # Formula
//! ```text
//! max-pool       y = max over the window; the gradient goes to the first maximum in row order
//! average-pool   y = mean over the window; the gradient divided by the size of the window goes to each of its pixels
//! ```
//! The index of the maximum within its window is kept from the forward pass. NaN in a window is its maximum.

use dp_data::images::Shape;
use nalgebra::convert;

use crate::float::Float;
use crate::kernels::{add_scaled, vectorised};
use crate::window::Window;

/// A pooling layer.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    pub(crate) window: Window,
    pub(crate) input: Shape,
    pub(crate) positions: [usize; 2],
}

impl Pool {
    fn input_values(&self) -> usize {
        self.input.height * self.input.width * self.input.channels
    }

    fn output_values(&self) -> usize {
        self.positions[0] * self.positions[1] * self.input.channels
    }

    /// Returns the first value of the window at each position, as offsets in the image, in the order of the outputs.
    #[inline(always)]
    fn corners(&self) -> impl Iterator<Item = usize> {
        let Self { window, input, positions } = self;
        let (row, column) = (input.width * input.channels, input.channels);
        let (down, right) = (window.stride[0] * row, window.stride[1] * column);
        let columns = positions[1];
        (0..positions[0]).flat_map(move |y| (0..columns).map(move |x| y * down + x * right))
    }

    /// Returns the pixels of a window, as offsets from its first value, in row order.
    #[inline(always)]
    fn pixels(&self) -> impl Iterator<Item = usize> {
        let (row, column, width) = (self.input.width * self.input.channels, self.input.channels, self.window.size[1]);
        (0..self.window.size[0]).flat_map(move |y| (0..width).map(move |x| y * row + x * column))
    }

    /// `indices` holds one number for each output.
    pub(crate) fn forward_max<F: Float>(&self, input: &[F], indices: &mut [u8], output: &mut [F]) {
        let channels = self.input.channels;
        let images = input.chunks_exact(self.input_values()).zip(output.chunks_exact_mut(self.output_values()));
        vectorised(
            #[inline(always)]
            || {
                for ((image, output), indices) in images.zip(indices.chunks_exact_mut(self.output_values())) {
                    let outputs = output.chunks_exact_mut(channels).zip(indices.chunks_exact_mut(channels));
                    for (corner, (largest, index)) in self.corners().zip(outputs) {
                        largest.copy_from_slice(&image[corner..corner + channels]);
                        index.fill(0);
                        for (j, offset) in self.pixels().enumerate().skip(1) {
                            let pixel = &image[corner + offset..corner + offset + channels];
                            for ((largest, index), &x) in largest.iter_mut().zip(&mut *index).zip(pixel) {
                                // NaN is larger than a number; nothing is larger than NaN.
                                let is_larger = x > *largest || x.partial_cmp(&x).is_none();
                                *largest = if is_larger { x } else { *largest };
                                *index = if is_larger { j as u8 } else { *index };
                            }
                        }
                    }
                }
            },
        );
    }

    pub(crate) fn backward_max<F: Float>(&self, indices: &[u8], gradient: &[F], input_gradient: &mut [F]) {
        let channels = self.input.channels;
        let offsets: [usize; 256] = {
            let mut offsets = [0; 256];
            offsets.iter_mut().zip(self.pixels()).for_each(|(entry, offset)| *entry = offset);
            offsets
        };
        let images =
            input_gradient.chunks_exact_mut(self.input_values()).zip(gradient.chunks_exact(self.output_values()));
        for ((image, gradient), indices) in images.zip(indices.chunks_exact(self.output_values())) {
            image.fill(F::zero());
            let outputs = gradient.chunks_exact(channels).zip(indices.chunks_exact(channels));
            for (corner, (gradient, indices)) in self.corners().zip(outputs) {
                for (channel, (&g, &index)) in gradient.iter().zip(indices).enumerate() {
                    image[corner + offsets[usize::from(index)] + channel] += g;
                }
            }
        }
    }

    /// Returns `1 / (number of pixels of the window)`.
    fn share<F: Float>(&self) -> F {
        F::one() / convert(self.window.area() as f64)
    }

    pub(crate) fn forward_average<F: Float>(&self, input: &[F], output: &mut [F]) {
        let (channels, share) = (self.input.channels, self.share());
        let images = input.chunks_exact(self.input_values()).zip(output.chunks_exact_mut(self.output_values()));
        vectorised(
            #[inline(always)]
            || {
                for (image, output) in images {
                    output.fill(F::zero());
                    for (corner, mean) in self.corners().zip(output.chunks_exact_mut(channels)) {
                        for start in self.pixels().map(|offset| corner + offset) {
                            add_scaled(share, &image[start..start + channels], mean);
                        }
                    }
                }
            },
        );
    }

    pub(crate) fn backward_average<F: Float>(&self, gradient: &[F], input_gradient: &mut [F]) {
        let (channels, share) = (self.input.channels, self.share());
        let images =
            input_gradient.chunks_exact_mut(self.input_values()).zip(gradient.chunks_exact(self.output_values()));
        vectorised(
            #[inline(always)]
            || {
                for (image, gradient) in images {
                    image.fill(F::zero());
                    for (corner, gradient) in self.corners().zip(gradient.chunks_exact(channels)) {
                        for start in self.pixels().map(|offset| corner + offset) {
                            add_scaled(share, gradient, &mut image[start..start + channels]);
                        }
                    }
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(size: usize, stride: usize) -> Pool {
        let input = Shape { height: 2, width: 3, channels: 2 };
        let window = Window { size: [size; 2], stride: [stride; 2], padding: [0; 2] };
        Pool { window, input, positions: window.positions(input).unwrap() }
    }

    #[test]
    fn the_first_maximum_in_row_order_wins() {
        let pool = pool(2, 1);
        // Channel 0 has ties, channel 1 none.
        let image = [5.0, 0.0, 5.0, 1.0, 2.0, 2.0, 5.0, 3.0, 1.0, 4.0, 5.0, 5.0];
        let (mut indices, mut output) = ([9; 4], [0.0; 4]);
        pool.forward_max(&image, &mut indices, &mut output);
        assert_eq!((output, indices), ([5.0, 4.0, 5.0, 5.0], [0, 3, 0, 3]));
        let mut back = [9.0; 12];
        pool.backward_max(&indices, &[1.0, 10.0, 100.0, 1000.0], &mut back);
        assert_eq!(back, [1.0, 0.0, 100.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0, 0.0, 1000.0]);
    }

    #[test]
    fn nan_is_the_maximum_wherever_it_lies() {
        let pool = pool(2, 1);
        for j in [0, 2, 6, 8] {
            let mut image = [1.0; 12];
            image[j] = f64::NAN;
            let (mut indices, mut output) = ([0; 4], [0.0; 4]);
            pool.forward_max(&image, &mut indices, &mut output);
            assert!(output[0].is_nan() && output[1] == 1.0, "{j}");
        }
    }

    #[test]
    fn the_mean_of_each_window() {
        let pool = pool(2, 1);
        let image: Vec<f64> = (0..12).map(f64::from).collect();
        let (mut output, mut back) = ([f64::NAN; 4], [f64::NAN; 12]);
        pool.forward_average(&image, &mut output);
        assert_eq!(output, [4.0, 5.0, 6.0, 7.0]);
        pool.backward_average(&[4.0, 0.0, 8.0, 0.0], &mut back);
        assert_eq!(back, [1.0, 0.0, 3.0, 0.0, 2.0, 0.0, 1.0, 0.0, 3.0, 0.0, 2.0, 0.0]);
    }
}
