//! Windows that slide over an image: of convolutions and of pooling.

use dp_data::images::Shape;

use crate::float::Float;
use crate::kernels::add;

/// A window: its size, its steps and the zeros around the image, each as rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) size: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [usize; 2],
}

impl Window {
    /// Returns the numbers of rows and columns of positions, `floor((H + 2p - k) / s) + 1`; `None` if the window is larger than
    /// the padded image.
    pub(crate) fn positions(&self, input: Shape) -> Option<[usize; 2]> {
        let along = |length: usize, axis: usize| {
            let room = (length + 2 * self.padding[axis]).checked_sub(self.size[axis])?;
            Some(room / self.stride[axis] + 1)
        };
        Some([along(input.height, 0)?, along(input.width, 1)?])
    }

    /// Returns the number of pixels in the window.
    pub(crate) fn area(&self) -> usize {
        self.size[0] * self.size[1]
    }
}

/// All windows of an image as rows of a matrix ("im2col"): one row for each position, in row order, with the pixels of the
/// window in the order row, column, channel.
#[derive(Debug, Clone)]
pub(crate) struct Patches {
    window: Window,
    input: Shape,
    positions: [usize; 2],
}

impl Patches {
    /// `positions` is that of the window and the input.
    pub(crate) fn new(window: Window, input: Shape, positions: [usize; 2]) -> Self {
        Self { window, input, positions }
    }

    /// Returns the number of positions.
    pub(crate) fn count(&self) -> usize {
        self.positions[0] * self.positions[1]
    }

    /// Returns the number of values in a window.
    pub(crate) fn values(&self) -> usize {
        self.window.area() * self.input.channels
    }

    /// Calls `f(start in the patches, start in the image, length)` for every run of values that is contiguous in both.
    #[inline(always)]
    fn for_each_run(&self, mut f: impl FnMut(usize, usize, usize)) {
        let Self { window: Window { size, stride, padding }, input, positions } = *self;
        let (row, run) = (input.width * input.channels, size[1] * input.channels);
        for top in (0..positions[0]).map(|y| y * stride[0]) {
            for left in (0..positions[1]).map(|x| x * stride[1]) {
                let patch = ((top / stride[0]) * positions[1] + left / stride[1]) * size[0] * run;
                // The columns of the window that lie inside the image.
                let first = padding[1].saturating_sub(left).min(size[1]);
                let end = (input.width + padding[1]).saturating_sub(left).min(size[1]).max(first);
                for y in 0..size[0] {
                    let inside = (top + y).checked_sub(padding[0]).filter(|&y| y < input.height && end > first);
                    if let Some(image_y) = inside {
                        let image_x = left + first - padding[1];
                        f(
                            patch + y * run + first * input.channels,
                            image_y * row + image_x * input.channels,
                            (end - first) * input.channels,
                        );
                    }
                }
            }
        }
    }

    /// Writes the patches of one image; zeros where a window leaves it.
    #[inline(always)]
    pub(crate) fn gather<F: Float>(&self, image: &[F], patches: &mut [F]) {
        let run = self.window.size[1] * self.input.channels;
        if self.window.padding != [0, 0] {
            patches.fill(F::zero());
            self.for_each_run(|patch, pixel, length| {
                let (from, to) = (&image[pixel..pixel + length], &mut patches[patch..patch + length]);
                match length {
                    8..16 => in_two_parts::<F, 8>(from, to),
                    16..=32 => in_two_parts::<F, 16>(from, to),
                    _ => to.copy_from_slice(from),
                }
            });
            return;
        }
        // Most runs are a few numbers long, for which a call of `memcpy` takes longer than the copy.
        match run {
            1 => self.gather_inside(image, patches, in_two_parts::<F, 1>),
            2..4 => self.gather_inside(image, patches, in_two_parts::<F, 2>),
            4..8 => self.gather_inside(image, patches, in_two_parts::<F, 4>),
            8..16 => self.gather_inside(image, patches, in_two_parts::<F, 8>),
            16..=32 => self.gather_inside(image, patches, in_two_parts::<F, 16>),
            _ => self.gather_inside(
                image,
                patches,
                #[inline(always)]
                |from: &[F], to: &mut [F]| to.copy_from_slice(from),
            ),
        }
    }

    /// Writes the patches of one image without padding, each run of values by `copy`.
    #[inline(always)]
    fn gather_inside<F: Float>(&self, image: &[F], patches: &mut [F], copy: impl Fn(&[F], &mut [F])) {
        let Self { window: Window { size, stride, .. }, input, positions } = *self;
        let (row, run, step) = (input.width * input.channels, size[1] * input.channels, stride[1] * input.channels);
        for (top, patches) in patches.chunks_exact_mut(positions[1] * size[0] * run).enumerate() {
            for y in 0..size[0] {
                let from = &image[(top * stride[0] + y) * row..][..row];
                for (left, patch) in patches.chunks_exact_mut(size[0] * run).enumerate() {
                    copy(&from[left * step..][..run], &mut patch[y * run..][..run]);
                }
            }
        }
    }

    /// Adds every value of the patches to the pixel that it was read from ("col2im").
    #[inline(always)]
    pub(crate) fn scatter<F: Float>(&self, patches: &[F], image: &mut [F]) {
        image.fill(F::zero());
        self.for_each_run(|patch, pixel, length| {
            add(&patches[patch..patch + length], &mut image[pixel..pixel + length])
        });
    }
}

/// Copies a slice of `N` to `2 N` numbers as its first and its last `N`, which may overlap.
#[inline(always)]
fn in_two_parts<F: Copy, const N: usize>(from: &[F], to: &mut [F]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk::<N>()) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: one value at a time.
    fn gathered(window: Window, input: Shape, image: &[f64]) -> Vec<f64> {
        let positions = window.positions(input).unwrap();
        let mut patches = Vec::new();
        for oy in 0..positions[0] {
            for ox in 0..positions[1] {
                for ky in 0..window.size[0] {
                    for kx in 0..window.size[1] {
                        for channel in 0..input.channels {
                            let y = (oy * window.stride[0] + ky).wrapping_sub(window.padding[0]);
                            let x = (ox * window.stride[1] + kx).wrapping_sub(window.padding[1]);
                            let inside = y < input.height && x < input.width;
                            let at = || image[(y * input.width + x) * input.channels + channel];
                            patches.push(if inside { at() } else { 0.0 });
                        }
                    }
                }
            }
        }
        patches
    }

    #[test]
    fn patches_are_those_of_the_definition_and_scatter_is_the_transpose() {
        let shapes = [(5, 4, 1), (6, 6, 3), (3, 7, 2), (2, 2, 9), (3, 4, 7), (2, 4, 40)];
        let windows = [
            ([2, 2], [1, 1], [0, 0]),
            ([1, 3], [1, 1], [0, 0]),
            ([1, 1], [2, 1], [0, 0]),
            ([3, 2], [2, 1], [1, 1]),
            ([1, 1], [1, 2], [0, 2]),
            ([2, 4], [3, 2], [2, 3]),
        ];
        for (height, width, channels) in shapes {
            for (size, stride, padding) in windows {
                let (input, window) = (Shape { height, width, channels }, Window { size, stride, padding });
                let Some(positions) = window.positions(input) else { continue };
                let patches = Patches::new(window, input, positions);
                let image: Vec<f64> = (0..height * width * channels).map(|j| (j as f64).sin()).collect();
                let mut found = vec![f64::NAN; patches.count() * patches.values()];
                patches.gather(&image, &mut found);
                if padding == [0, 0] {
                    assert!(found.iter().all(|x| !x.is_nan()));
                }
                assert_eq!(found, gathered(window, input, &image), "{window:?} {input}");
                // <gather a, b> = <a, scatter b>
                let other: Vec<f64> = (0..found.len()).map(|j| (j as f64 * 1.3).cos()).collect();
                let mut back = vec![f64::NAN; image.len()];
                patches.scatter(&other, &mut back);
                let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                assert!((dot(&found, &other) - dot(&image, &back)).abs() < 1e-11, "{window:?} {input}");
            }
        }
    }
}
