//! Images with class labels as bytes, from IDX files or CIFAR-10 records.

mod cifar;
mod pairs;
#[cfg(test)]
mod tests;

use super::Input;
use super::idx::{IdxHeader, is_idx};
use crate::error::{DataError, DataErrorKind};
use crate::images::{Images, ImagesError, Shape};

/// The contents of messages about memory.
const PIXELS: &str = "the pixels of the images";
/// The contents of messages about memory.
const LABELS: &str = "the labels of the images";

/// The kind of a file of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageKind {
    /// IDX of bytes, the format of MNIST: `images x height x width`, on request `x channels`, and the labels in files of their
    /// own.
    Idx,
    /// The binary records of CIFAR-10: a label, then 32 x 32 values of red, of green and of blue.
    Cifar10,
}

impl ImageKind {
    /// Returns the shape of the images of a file, from its header if it has one.
    ///
    /// # Errors
    /// `file.*`, `idx.*`.
    pub fn shape(self, file: Input) -> Result<Shape, DataError> {
        match self {
            Self::Cifar10 => Ok(cifar::SHAPE),
            Self::Idx => {
                let name = file.name().to_owned();
                IdxHeader::read(file)?.image_shape().map_err(|error| error.in_file(&name))
            }
        }
    }

    /// Returns the kind of a file with these first bytes, of which four are needed.
    ///
    /// CIFAR-10 has no mark but its first label. A file whose first image has label 0 and almost black pixels may look like IDX.
    ///
    /// # Examples
    /// ```
    /// use dp_data::read::ImageKind;
    /// assert_eq!(ImageKind::detect(&[0, 0, 8, 3, 0, 0]), Some(ImageKind::Idx));
    /// assert_eq!(ImageKind::detect(&[6, 59, 43, 50]), Some(ImageKind::Cifar10));
    /// assert_eq!(ImageKind::detect(b"\x89PNG"), None);
    /// ```
    pub fn detect(head: &[u8]) -> Option<Self> {
        match head {
            head if is_idx(head) => Some(Self::Idx),
            [0..cifar::CLASSES, _, _, _, ..] => Some(Self::Cifar10),
            _ => None,
        }
    }
}

/// The labels of images, publicly known and never taken from the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageLabels {
    /// The label of each class, in the order of the classes. Other labels are refused.
    Classes(Vec<u8>),
    /// No label is read: all images are of the first of this many classes.
    Unread {
        /// Number of classes.
        classes: usize,
    },
}

impl ImageLabels {
    /// Returns the number of classes.
    pub fn classes(&self) -> usize {
        match self {
            Self::Classes(labels) => labels.len(),
            Self::Unread { classes } => *classes,
        }
    }

    /// Returns the class of each label.
    fn table(&self) -> [Option<u8>; 256] {
        let mut classes = [None; 256];
        match self {
            Self::Unread { .. } => classes = [Some(0); 256],
            Self::Classes(labels) => {
                for (class, &label) in (0..=u8::MAX).zip(labels).rev() {
                    classes[usize::from(label)] = Some(class);
                }
            }
        }
        classes
    }
}

/// Public knowledge about files of images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageOptions {
    /// The kind of the files; `None` detects it.
    pub kind: Option<ImageKind>,
    /// The labels: 0 to 9 by default.
    pub labels: ImageLabels,
}

impl Default for ImageOptions {
    fn default() -> Self {
        Self { kind: None, labels: ImageLabels::Classes((0..10).collect()) }
    }
}

/// Reads images with class labels, as bytes. Several files are concatenated in their order; all are of one kind and shape.
///
/// IDX files have their labels in `labels`, one or several files with as many labels as there are images; none if labels are
/// [`Unread`](ImageLabels::Unread). CIFAR-10 records contain theirs.
///
/// Memory is that of the pixels and labels and a buffer. It is not reserved on the word of a header alone.
///
/// # Errors
/// `images.*`, `idx.*`, `cifar.length`, `file.*`, `memory.exhausted`.
///
/// # Examples
/// ```
/// use dp_data::read::{self, Input};
/// use dp_data::Images;
///
/// // Two images of one row and two columns, and their labels.
/// let images = [&[0, 0, 8, 3][..], &[0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2], &[255, 0, 0, 51]].concat();
/// let labels = vec![0, 0, 8, 1, 0, 0, 0, 2, 7, 9];
/// let [images, labels] = [("images", images), ("labels", labels)].map(|(name, file)| Input::from_bytes(name, file));
/// let images: Images = read::load_image_bytes([images], [labels], &Default::default())?;
/// let second = images.choose(&[1]);
/// assert_eq!((second.pixels(0), second.label(0)), (&[0, 51][..], 9));
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub fn load_image_bytes(
    images: impl IntoIterator<Item = Input>,
    labels: impl IntoIterator<Item = Input>,
    options: &ImageOptions,
) -> Result<Images, DataError> {
    let mut images: Vec<_> = images.into_iter().collect();
    let labels: Vec<_> = labels.into_iter().collect();
    let kind = match options.kind {
        Some(kind) => kind,
        None => detect(&mut images)?,
    };
    match kind {
        _ if images.is_empty() => Err(no_image()),
        ImageKind::Idx => pairs::read(images, labels, &options.labels),
        ImageKind::Cifar10 => match labels.first() {
            None => cifar::read(images, &options.labels),
            Some(file) => Err(unknown("labels were given for CIFAR-10 records", file).expected("images only")),
        },
    }
}

/// Returns the kind of all files, which may be none.
fn detect(files: &mut [Input]) -> Result<ImageKind, DataError> {
    let mut all = None;
    for file in files {
        let Some(kind) = ImageKind::detect(&file.peek(4)?) else {
            return Err(unknown("the file does not begin as one of images", file)
                .expected("an IDX file of unsigned bytes, or CIFAR-10 records"));
        };
        if *all.get_or_insert(kind) != kind {
            return Err(unknown("the files of images are of two kinds", file).expected("files of one kind"));
        }
    }
    Ok(all.unwrap_or(ImageKind::Idx))
}

fn no_image() -> DataError {
    DataError::new(DataErrorKind::ImagesNumber, "there is no image")
}

fn unknown(message: &str, file: &Input) -> DataError {
    DataError::new(DataErrorKind::ImagesKind, message).in_file(file.name())
}

/// The label of this record, from 1, is no class. The message tells nothing else about it.
fn not_a_class(labels: &ImageLabels, record: u64) -> DataError {
    let classes = labels.classes();
    let expected = match labels {
        ImageLabels::Classes(labels)
            if labels.iter().enumerate().any(|(class, &label)| class != usize::from(label)) =>
        {
            "one of the stated labels".to_owned()
        }
        _ => format!("labels below {classes}"),
    };
    DataError::from(ImagesError::Label { classes })
        .at_line(record)
        .expected(expected)
        .help("compare the declared classes with the description of the data, and the size or checksum of the file")
}
