//! IDX files, the format of MNIST: a header of big-endian numbers, then bytes.
//!
//! ```text
//! 0 0 type dimensions | length of each dimension, 4 bytes each | bytes, the last dimension running fastest
//! ```

use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::slice::from_ref;

use super::input::read_full;
use super::{Input, read_error};
use crate::encode::{Encoder, InputFormat, RowBuffer};
use crate::error::{DataError, DataErrorKind};
use crate::images::{ImagesError, Shape};
use crate::memory::reserve;

/// The type of unsigned bytes.
const UNSIGNED_BYTES: u8 = 0x08;
/// Maximum number of dimensions of images.
const MOST_DIMENSIONS: u8 = 8;

/// The contents of the header of an IDX file of bytes. Only the number of records depends on the records.
///
/// # Examples
/// ```
/// use dp_data::read::{IdxHeader, Input};
/// let header = IdxHeader::read(Input::from_bytes("i", vec![0, 0, 8, 3, 0, 0, 0, 9, 0, 0, 0, 28, 0, 0, 0, 28]))?;
/// assert_eq!((header.items, header.shape), (9, vec![28, 28]));
/// # Ok::<(), dp_data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdxHeader {
    /// The length of the first dimension: the number of images or labels.
    pub items: u32,
    /// The lengths of the other dimensions; empty for labels.
    pub shape: Vec<u32>,
}

impl IdxHeader {
    /// Reads the header only.
    ///
    /// # Errors
    /// `idx.syntax`, `idx.length`, `file.*`.
    pub fn read(input: Input) -> Result<Self, DataError> {
        IdxReader::new(input).map(|reader| reader.header)
    }

    /// Returns the shape of an image in height, width and, if there are so many dimensions, channels.
    ///
    /// # Errors
    /// `idx.syntax` for another number of dimensions, `idx.shape` for an image without pixels.
    pub fn image_shape(&self) -> Result<Shape, DataError> {
        let (height, width, channels) = match self.shape[..] {
            [height, width] => (height, width, 1),
            [height, width, channels] => (height, width, channels),
            _ => {
                let message = format!("the number of dimensions of the images is {}", 1 + self.shape.len());
                return Err(DataError::new(DataErrorKind::IdxSyntax, message)
                    .expected("3 dimensions (images, rows, columns), or 4 (and channels)")
                    .help("labels, with one dimension, are named separately"));
            }
        };
        let shape = Shape { height: height as usize, width: width as usize, channels: channels as usize };
        shape.values().map(|_| shape).ok_or_else(|| ImagesError::Shape { shape }.into())
    }

    /// Returns the number of bytes of all items, or the largest number.
    pub(super) fn bytes(&self) -> u64 {
        self.shape.iter().fold(self.items.into(), |bytes: u64, &length| bytes.saturating_mul(length.into()))
    }
}

/// Returns whether a file is IDX by its first bytes, with which no text begins. False for a file that cannot be read.
pub fn looks_like_idx(path: impl AsRef<Path>) -> bool {
    let mut magic = [0; 4];
    let read = Input::open(path).map(|input| input.into_parts().1.read_exact(&mut magic));
    matches!(read, Ok(Ok(()))) && magic[..3] == [0, 0, UNSIGNED_BYTES]
}

/// Returns whether a file that begins like this is IDX, of bytes or of other numbers.
pub(super) fn is_idx(head: &[u8]) -> bool {
    matches!(head, [0, 0, 0x08..=0x0e, 1..=MOST_DIMENSIONS, ..])
}

/// Reads items one after another.
pub(super) struct IdxReader {
    pub(super) file: String,
    source: BufReader<Box<dyn Read + Send>>,
    pub(super) header: IdxHeader,
    /// Number of items read.
    position: u32,
}

impl IdxReader {
    /// Opens a file of the labels of images.
    pub(super) fn labels(input: Input) -> Result<Self, DataError> {
        let labels = Self::new(input)?;
        match labels.header.shape[..] {
            [] => Ok(labels),
            _ => Err(DataError::new(DataErrorKind::IdxSyntax, "the labels have more than one dimension")
                .in_file(&labels.file)
                .expected("one byte for each image")),
        }
    }

    pub(super) fn new(input: Input) -> Result<Self, DataError> {
        let (file, source, _) = input.into_parts();
        let mut source = BufReader::with_capacity(256 * 1024, source);
        let header = header(&mut source).map_err(|error| error.in_file(&file))?;
        Ok(Self { file, source, header, position: 0 })
    }

    pub(super) fn check_not_empty(&self) -> Result<(), DataError> {
        match self.header.items {
            0 => Err(DataError::new(DataErrorKind::IdxEmpty, "the file holds no image").in_file(&self.file)),
            _ => Ok(()),
        }
    }

    /// Fills `item` with the next one; returns `false` after the last, after which nothing may follow.
    fn next(&mut self, item: &mut [u8]) -> Result<bool, DataError> {
        if self.position == self.header.items {
            return self.end().map(|()| false).map_err(|error| error.in_file(&self.file));
        }
        fill(&mut self.source, item).map_err(|error| error.in_file(&self.file))?;
        self.position += 1;
        Ok(true)
    }

    /// Appends the bytes of all items, after which nothing may follow.
    pub(super) fn append_all(mut self, bytes: &mut Vec<u8>, what: &'static str) -> Result<(), DataError> {
        self.append(bytes, what).and_then(|()| self.end()).map_err(|error| error.in_file(&self.file))
    }

    /// Memory beyond what was reserved follows the bytes that arrive: the header may promise more than there is.
    fn append(&mut self, bytes: &mut Vec<u8>, what: &'static str) -> Result<(), DataError> {
        const STEP: u64 = 1 << 16;
        let mut left = self.header.bytes();
        while left > 0 {
            reserve(bytes, left.min(STEP) as usize, what)?;
            let step = left.min((bytes.capacity() - bytes.len()) as u64);
            let read = self.source.by_ref().take(step).read_to_end(bytes).map_err(read_error)?;
            if (read as u64) < step {
                return Err(short());
            }
            left -= step;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), DataError> {
        match read_full(&mut self.source, &mut [0])? {
            0 => Ok(()),
            _ => Err(length("the file goes on after its last item")),
        }
    }
}

/// Checks that the files of labels hold one for each image.
pub(super) fn check_counts(images: &[IdxReader], labels: &[IdxReader]) -> Result<(), DataError> {
    let counts =
        |message: String, file: &IdxReader| DataError::new(DataErrorKind::IdxCounts, message).in_file(&file.file);
    let count = |files: &[IdxReader]| files.iter().map(|file| u64::from(file.header.items)).sum::<u64>();
    match (labels.first(), images.first()) {
        (None, Some(file)) => {
            let message = "the labels of the images were not given".into();
            Err(counts(message, file).help("name their file with --labels"))
        }
        (Some(file), _) if count(images) != count(labels) => {
            Err(counts(format!("{} labels for {} images", count(labels), count(images)), file)
                .expected("one label for each image")
                .help("name two files that belong together"))
        }
        _ => Ok(()),
    }
}

fn header(source: &mut impl Read) -> Result<IdxHeader, DataError> {
    let syntax = |message: &str| {
        DataError::new(DataErrorKind::IdxSyntax, message)
            .expected("an IDX file of unsigned bytes")
            .help("name the file of the images as --data and that of the labels as --labels")
    };
    let mut magic = [0; 4];
    let (4, [0, 0, kind, dimensions]) = (read_full(source, &mut magic)?, magic) else {
        return Err(syntax("the file does not begin as an IDX file"));
    };
    if kind != UNSIGNED_BYTES {
        return Err(syntax("the IDX file holds numbers of another type"));
    }
    if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
        return Err(syntax("the IDX file has a number of dimensions that no images or labels have"));
    }
    let mut lengths = Vec::with_capacity(dimensions.into());
    for _ in 0..dimensions {
        let mut bytes = [0; 4];
        fill(source, &mut bytes)?;
        lengths.push(u32::from_be_bytes(bytes));
    }
    let items = lengths.remove(0);
    Ok(IdxHeader { items, shape: lengths })
}

fn fill(source: &mut impl Read, bytes: &mut [u8]) -> Result<(), DataError> {
    if read_full(source, bytes)? < bytes.len() { Err(short()) } else { Ok(()) }
}

fn short() -> DataError {
    length("the file ends before its last item")
}

fn length(message: &str) -> DataError {
    DataError::new(DataErrorKind::IdxLength, message)
        .expected("as many bytes as the header says")
        .help("fetch the file again and compare its size or checksum")
}

/// Reads images, and their labels from a second file.
pub(super) struct ImageReader {
    images: IdxReader,
    labels: Option<IdxReader>,
    pixels: Vec<u8>,
    /// The largest value of a pixel.
    max: f64,
}

impl ImageReader {
    /// Opens both files, or only that of the images if labels are not needed.
    pub(super) fn new(mut input: Input, encoder: &Encoder, with_labels: bool) -> Result<Self, DataError> {
        let InputFormat::Images(format) = encoder.input() else {
            return Err(DataError::new(DataErrorKind::SchemaColumns, "the encoder is not one for images"));
        };
        let labels = input.take_labels().filter(|_| with_labels);
        let images = IdxReader::new(input)?;
        if images.header.shape != format.shape {
            return Err(DataError::new(
                DataErrorKind::IdxShape,
                format!("the images are of shape {:?}", images.header.shape),
            )
            .in_file(&images.file)
            .expected(format!("images of shape {:?}", format.shape)));
        }
        images.check_not_empty()?;
        let labels = labels.map(IdxReader::labels).transpose()?;
        if with_labels {
            check_counts(from_ref(&images), labels.as_slice())?;
        }
        let pixels = format.shape.iter().map(|&length| length as usize).product();
        Ok(Self { images, labels, pixels: vec![0; pixels], max: f64::from(format.max) })
    }

    /// Encodes the next image with its label and returns its number, from 1; `None` after the last.
    pub(super) fn next_image(&mut self, encoder: &Encoder, row: &mut RowBuffer) -> Result<Option<u64>, DataError> {
        let mut label = [0];
        let more = self.images.next(&mut self.pixels)?;
        let labelled = self.labels.as_mut().map(|labels| labels.next(&mut label)).transpose()?;
        if !more {
            return Ok(None);
        }
        row.clear();
        for (index, &byte) in (0..).zip(&self.pixels) {
            row.push(index, (f64::from(byte) / self.max).min(1.0));
        }
        let number = u64::from(self.images.position);
        let mut digits = [0; 3];
        let text = decimal(label[0], &mut digits);
        let label_file = self.labels.as_ref().map_or(&self.images.file, |labels| &labels.file);
        encoder
            .finish_row(labelled.map(|_| text.into()), row)
            .map_err(|error| error.in_file(label_file).at_line(number))?;
        Ok(Some(number))
    }
}

/// Returns a byte in decimal.
fn decimal(byte: u8, digits: &mut [u8; 3]) -> &[u8] {
    let mut rest = &mut digits[..];
    // Three digits suffice for every byte, so that writing cannot fail.
    let written = write!(rest, "{byte}");
    debug_assert!(written.is_ok());
    let left = rest.len();
    &digits[..3 - left]
}

#[cfg(test)]
pub(super) mod tests;
