//! Images with class labels, as bytes.

use core::fmt;

use crate::memory::OutOfMemory;
use crate::samples::Samples;

/// The shape of every image of a set; public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Number of rows of pixels.
    pub height: usize,
    /// Number of pixels in a row.
    pub width: usize,
    /// Number of values of a pixel: 1 for grey, 3 for colour.
    pub channels: usize,
}

impl Shape {
    /// Returns the number of values of an image; `None` if it is 0 or not addressable.
    pub fn values(&self) -> Option<usize> {
        self.height.checked_mul(self.width)?.checked_mul(self.channels).filter(|&values| values > 0)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} x {}", self.height, self.width, self.channels)
    }
}

/// A fault of a set of images.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImagesError {
    /// Images without pixels, or larger than memory can address.
    #[error("images of {shape} values cannot be held")]
    Shape {
        /// The shape.
        shape: Shape,
    },
    /// Pixels and labels differ in number.
    #[error("{pixels} bytes of pixels for {labels} labels of images of {shape} values")]
    Counts {
        /// Number of bytes.
        pixels: usize,
        /// Number of labels.
        labels: usize,
        /// The shape.
        shape: Shape,
    },
    /// A label is not below the number of classes. The message names no record.
    #[error("a label is not one of the {classes} classes")]
    Label {
        /// Number of classes.
        classes: usize,
    },
    /// More images than positions of 32 bits can name.
    #[error("{images} images are more than 2^32 - 1")]
    TooMany {
        /// Number of images.
        images: usize,
    },
    /// Memory is exhausted.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}

/// Images of one shape with class labels: one byte for each value, `height x width x channels` with the channel running fastest,
/// image by image. A quarter of the memory of single precision; models convert them microbatch by microbatch.
///
/// `Debug` shows shape and number, never a pixel or a label.
///
/// # Examples
/// ```
/// use dp_data::{Images, images::Shape};
///
/// let shape = Shape { height: 1, width: 2, channels: 1 };
/// let images = Images::new(shape, vec![0, 10, 20, 30, 40, 50], vec![1, 0, 1], 2)?;
/// let batch = images.choose(&[0, 2]);
/// assert_eq!((batch.len(), batch.pixels(1), batch.label(1)), (2, &[40, 50][..], 1));
/// # Ok::<(), dp_data::images::ImagesError>(())
/// ```
#[derive(Clone)]
pub struct Images {
    shape: Shape,
    /// Number of values of an image.
    values: usize,
    pixels: Vec<u8>,
    labels: Vec<u8>,
    classes: usize,
}

impl fmt::Debug for Images {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Images")
            .field("images", &self.labels.len())
            .field("shape", &self.shape)
            .field("classes", &self.classes)
            .finish_non_exhaustive()
    }
}

impl Images {
    /// Creates a set from the bytes of all images and one label each, below `classes`.
    ///
    /// # Errors
    /// [`ImagesError`]: contradictory sizes, and labels outside the classes.
    pub fn new(shape: Shape, pixels: Vec<u8>, labels: Vec<u8>, classes: usize) -> Result<Self, ImagesError> {
        let values = shape.values().ok_or(ImagesError::Shape { shape })?;
        if labels.len().checked_mul(values) != Some(pixels.len()) {
            return Err(ImagesError::Counts { pixels: pixels.len(), labels: labels.len(), shape });
        }
        if u32::try_from(labels.len()).is_err() {
            return Err(ImagesError::TooMany { images: labels.len() });
        }
        if labels.iter().any(|&label| usize::from(label) >= classes) {
            return Err(ImagesError::Label { classes });
        }
        Ok(Self { shape, values, pixels, labels, classes })
    }

    /// Returns the shape of an image.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Returns the number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Returns the class of image `i`.
    ///
    /// # Panics
    /// If there is no such image.
    pub fn label(&self, i: usize) -> usize {
        self.labels[i].into()
    }

    /// Returns the images at `positions`, in this order. Reading one of a position that is not below [`len`](Self::len) panics.
    pub fn choose<'a>(&'a self, positions: &'a [u32]) -> ImageBatch<'a> {
        ImageBatch { images: self, positions }
    }
}

/// Some of the images, in the order of their positions.
///
/// `Debug` shows the shape only: the number of drawn images is secret.
#[derive(Clone, Copy)]
pub struct ImageBatch<'a> {
    images: &'a Images,
    positions: &'a [u32],
}

impl fmt::Debug for ImageBatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageBatch").field("shape", &self.images.shape).finish_non_exhaustive()
    }
}

impl<'a> ImageBatch<'a> {
    /// Returns the number of chosen images.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Returns whether none is chosen.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Returns the shape of an image.
    pub fn shape(&self) -> Shape {
        self.images.shape
    }

    /// Returns the bytes of chosen image `i`.
    ///
    /// # Panics
    /// If there is no such image.
    pub fn pixels(&self, i: usize) -> &'a [u8] {
        let start = self.positions[i] as usize * self.images.values;
        &self.images.pixels[start..start + self.images.values]
    }

    /// Returns the class of chosen image `i`.
    ///
    /// # Panics
    /// If there is no such image.
    pub fn label(&self, i: usize) -> usize {
        self.images.label(self.positions[i] as usize)
    }
}

impl Samples for Images {
    fn count(&self) -> u64 {
        self.labels.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_labels_are_checked() {
        let shape = Shape { height: 2, width: 1, channels: 3 };
        let new = |pixels, labels: &[u8], classes| Images::new(shape, vec![0; pixels], labels.to_vec(), classes);
        assert_eq!(new(12, &[0, 1], 2).unwrap().len(), 2);
        assert!(new(0, &[], 2).unwrap().is_empty());
        assert_eq!(new(11, &[0, 1], 2).unwrap_err(), ImagesError::Counts { pixels: 11, labels: 2, shape });
        let error = new(12, &[0, 2], 2).unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), error),
            ("a label is not one of the 2 classes", ImagesError::Label { classes: 2 })
        );
        for shape in [Shape { width: 0, ..shape }, Shape { height: usize::MAX, ..shape }] {
            assert_eq!(Images::new(shape, Vec::new(), Vec::new(), 2).unwrap_err(), ImagesError::Shape { shape });
        }
    }

    #[test]
    fn images_are_chosen_in_any_order_and_never_shown() {
        let shape = Shape { height: 1, width: 2, channels: 1 };
        let images = Images::new(shape, (0..8).collect(), vec![3, 1, 0, 2], 4).unwrap();
        let batch = images.choose(&[3, 0, 3]);
        let found: Vec<_> = (0..batch.len()).map(|i| (batch.pixels(i).to_vec(), batch.label(i))).collect();
        assert_eq!(found, [(vec![6, 7], 2), (vec![0, 1], 3), (vec![6, 7], 2)]);
        assert!(images.choose(&[]).is_empty() && !images.is_null(0));
        let text = format!("{images:?} {batch:?}");
        let expected = "Images { images: 4, shape: Shape { height: 1, width: 2, channels: 1 }, classes: 4, .. } \
                        ImageBatch { shape: Shape { height: 1, width: 2, channels: 1 }, .. }";
        assert_eq!(text, expected);
    }
}
