//! What a network reads: images as bytes, or rows of numbers.

use dp_data::{Block, ImageBatch, Rows};
use nalgebra::convert;

use crate::float::Float;

/// How a network reads its examples.
pub trait Input<F>: Sync {
    /// Borrowed examples of one microbatch.
    type Batch<'a>: Copy;

    /// Returns the number of examples.
    fn examples(&self, batch: Self::Batch<'_>) -> usize;

    /// Writes all values of example `i` and returns its class. Returns `None` for a null record and for a class that is not
    /// below `classes`; what is written then is ignored.
    ///
    /// # Panics
    /// If an example has another number of values than `values`.
    fn read(&self, batch: Self::Batch<'_>, i: usize, classes: usize, values: &mut [F]) -> Option<usize>;
}

/// How a byte `v` of an image becomes a number. A public constant: it must not be computed from the images.
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
}

impl<F: Float> Pixels<F> {
    /// Creates the table of the 256 numbers, each rounded once.
    pub fn new(scaling: Scaling) -> Self {
        let table = core::array::from_fn(|v| {
            let v = v as f64;
            F::narrow(match scaling {
                Scaling::Unit => v / 255.0,
                Scaling::Symmetric => v / 127.5 - 1.0,
            })
        });
        Self { table }
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

    fn read(&self, batch: ImageBatch<'_>, i: usize, classes: usize, values: &mut [F]) -> Option<usize> {
        let pixels = batch.pixels(i);
        assert_eq!(pixels.len(), values.len(), "images have the shape of the network's input");
        values.iter_mut().zip(pixels).for_each(|(value, &byte)| *value = self.value(byte));
        Some(batch.label(i)).filter(|&label| label < classes)
    }
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

    fn read(&self, batch: Block<'_, F>, i: usize, classes: usize, values: &mut [F]) -> Option<usize> {
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
