//! The inputs of a network: images as bytes, or rows of numbers.

use dp_data::images::Shape;
use dp_data::{Block, ImageBatch, Rows};
use nalgebra::convert;

use crate::float::Float;

/// The form of a network's examples.
pub trait Input<F>: Sync {
    /// Borrowed examples of one microbatch.
    type Batch<'a>: Copy;

    /// Returns the number of examples.
    fn examples(&self, batch: Self::Batch<'_>) -> usize;

    /// Returns the number of views of each example, at least 1 and always the same. The network's losses and logits are means
    /// over the views.
    fn views(&self) -> usize {
        1
    }

    /// Writes all values of a view of example `i` and returns the class of the example. Returns `None` for a null record and for
    /// a class that is not below `classes`; what is written then is ignored.
    ///
    /// # Panics
    /// If an example has another number of values than `values`.
    fn read(&self, batch: Self::Batch<'_>, i: usize, view: usize, classes: usize, values: &mut [F]) -> Option<usize>;
}

/// The map from a byte `v` of an image to a number. A public constant: it must not be computed from the images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Scaling {
    /// `v / 255`, in `[0, 1]`.
    #[default]
    Unit,
    /// `v / 127.5 - 1`, in `[-1, 1]`.
    Symmetric,
}

/// The views of an image: the image itself, and others of the same class. In training, the loss of an image is the mean over its
/// views, so that they make one contribution, which is clipped once; the logits of new images are means over their views.
///
/// # Privacy
/// A view is a function of its own image alone.
///
/// # References
/// De, Berrada, Hayes, Smith and Balle, "Unlocking High-Accuracy Differentially Private Image Classification through Scale", 2022,
/// arXiv:2204.13650, "augmentation multiplicity", there with views drawn at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Views {
    /// The image alone.
    #[default]
    One,
    /// Also moved by one pixel up, down, left and right; the byte 0 fills the edge. Five views.
    Shifts,
    /// Also mirrored left to right. Two views.
    Flip,
    /// Each of the five of [`Shifts`](Self::Shifts), and each mirrored. Ten views.
    ShiftsAndFlip,
}

/// Rows and columns by which an image moves, and whether it is mirrored before.
type Move = (isize, isize, bool);

impl Views {
    /// Returns whether there is only the image itself.
    pub fn is_one(&self) -> bool {
        *self == Self::One
    }

    /// Returns the number of views.
    pub fn count(self) -> usize {
        self.moves().len()
    }

    fn moves(self) -> &'static [Move] {
        const MOVES: [Move; 10] = [
            (0, 0, false),
            (-1, 0, false),
            (1, 0, false),
            (0, -1, false),
            (0, 1, false),
            (0, 0, true),
            (-1, 0, true),
            (1, 0, true),
            (0, -1, true),
            (0, 1, true),
        ];
        match self {
            Self::One => &MOVES[..1],
            Self::Shifts => &MOVES[..5],
            Self::Flip => &[MOVES[0], MOVES[5]],
            Self::ShiftsAndFlip => &MOVES,
        }
    }
}

/// Images as bytes, which are converted microbatch by microbatch. A batch is an [`ImageBatch`].
///
/// # Examples
/// ```
/// use dp_nets::{Pixels, Scaling};
/// assert_eq!(Pixels::<f32>::new(Scaling::Symmetric).value(255), 1.0);
/// ```
#[derive(Debug, Clone)]
pub struct Pixels<F> {
    table: [F; 256],
    views: Views,
}

impl<F: Float> Pixels<F> {
    /// Creates the table of the 256 numbers, each rounded once, for one view of each image.
    pub fn new(scaling: Scaling) -> Self {
        let table = core::array::from_fn(|v| {
            let v = v as f64;
            F::narrow(match scaling {
                Scaling::Unit => v / 255.0,
                Scaling::Symmetric => v / 127.5 - 1.0,
            })
        });
        Self { table, views: Views::One }
    }

    /// Sets the views of each image.
    pub fn with_views(self, views: Views) -> Self {
        Self { views, ..self }
    }

    /// Returns the number of a byte.
    pub fn value(&self, byte: u8) -> F {
        self.table[usize::from(byte)]
    }
}

impl<F: Float> Input<F> for Pixels<F> {
    type Batch<'a> = ImageBatch<'a>;

    fn examples(&self, batch: ImageBatch<'_>) -> usize {
        batch.len()
    }

    fn views(&self) -> usize {
        self.views.count()
    }

    fn read(&self, batch: ImageBatch<'_>, i: usize, view: usize, classes: usize, values: &mut [F]) -> Option<usize> {
        let pixels = batch.pixels(i);
        assert_eq!(pixels.len(), values.len(), "images have the shape of the network's input");
        match self.views.moves()[view] {
            (0, 0, false) => values.iter_mut().zip(pixels).for_each(|(value, &byte)| *value = self.value(byte)),
            moved => {
                let Shape { height, width, channels } = batch.shape();
                values.fill(self.value(0));
                for (y, row) in pixels.chunks_exact(width * channels).enumerate() {
                    for (x, pixel) in row.chunks_exact(channels).enumerate() {
                        let Some(to) = place(moved, [y, x], [height, width]) else { continue };
                        let values = &mut values[to * channels..(to + 1) * channels];
                        values.iter_mut().zip(pixel).for_each(|(value, &byte)| *value = self.value(byte));
                    }
                }
            }
        }
        Some(batch.label(i)).filter(|&label| label < classes)
    }
}

/// Returns the number of the pixel that shows pixel `(y, x)` in a view; `None` outside.
fn place((down, right, is_mirrored): Move, [y, x]: [usize; 2], [height, width]: [usize; 2]) -> Option<usize> {
    let x = if is_mirrored { width - 1 - x } else { x };
    let (y, x) = (y.checked_add_signed(down)?, x.checked_add_signed(right)?);
    (y < height && x < width).then_some(y * width + x)
}

/// Rows of numbers, dense or sparse. A batch is a [`Block`]; the target of a row is its class, `0, 1, ..`, and with two classes
/// also -1 (class 0) and +1 (class 1).
///
/// A row that is marked invalid, or whose target is not a class, is a null record: loss 0, gradient 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct Features;

impl<F: Float> Input<F> for Features {
    type Batch<'a> = Block<'a, F>;

    fn examples(&self, batch: Block<'_, F>) -> usize {
        batch.len()
    }

    fn read(&self, batch: Block<'_, F>, i: usize, _: usize, classes: usize, values: &mut [F]) -> Option<usize> {
        assert_eq!(batch.dim(), values.len(), "rows have the length of the network's input");
        if batch.valid.is_some_and(|valid| !valid[i]) {
            return None;
        }
        match batch.rows {
            Rows::Dense { values: all, dim } => values.copy_from_slice(&all[i * dim..(i + 1) * dim]),
            Rows::Sparse { offsets, indices, values: all, .. } => {
                let row = offsets[i]..offsets[i + 1];
                values.fill(F::zero());
                for (&column, &x) in indices[row.clone()].iter().zip(&all[row]) {
                    values[column as usize] = x;
                }
            }
        }
        class(batch.targets[i], classes)
    }
}

/// Returns the class of a target.
fn class<F: Float>(target: F, classes: usize) -> Option<usize> {
    if classes == 2 && target == convert(-1.0) {
        return Some(0);
    }
    // A fraction, a negative number or NaN is not a class.
    let index = target.wide() as usize;
    (index as f64 == target.wide() && index < classes).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_are_classes() {
        assert_eq!([0.0, 1.0, 2.0].map(|target| class(target, 3)), [Some(0), Some(1), Some(2)]);
        assert!([3.0, -1.0, 0.5, f64::NAN, f64::INFINITY].iter().all(|&target| class(target, 3).is_none()));
        assert_eq!([-1.0_f32, 0.0, 1.0, 2.0].map(|target| class(target, 2)), [Some(0), Some(0), Some(1), None]);
    }

    #[test]
    fn bytes_are_scaled() {
        let unit = Pixels::<f64>::new(Scaling::Unit);
        assert_eq!([0, 51, 255].map(|byte| unit.value(byte)), [0.0, 0.2, 1.0]);
        let symmetric = Pixels::<f32>::new(Scaling::Symmetric);
        assert_eq!([0, 255].map(|byte| symmetric.value(byte)), [-1.0, 1.0]);
        assert_eq!(symmetric.value(1), (1.0_f64 / 127.5 - 1.0) as f32);
    }
}
