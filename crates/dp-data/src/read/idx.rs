//! IDX files, the format of MNIST: a header of big-endian numbers, then bytes.
//!
//! ```text
//! 0 0 type dimensions | length of each dimension, 4 bytes each | bytes, the last dimension running fastest
//! ```

use std::io::{BufReader, Read, Write};
use std::path::Path;

use super::{Input, read_error};
use crate::encode::{Encoder, InputFormat, RowBuffer};
use crate::error::{DataError, DataErrorKind};

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
}

/// Returns whether a file is IDX by its first bytes, with which no text begins. False for a file that cannot be read.
pub fn looks_like_idx(path: impl AsRef<Path>) -> bool {
    let mut magic = [0; 4];
    let read = Input::open(path).map(|input| input.into_parts().1.read_exact(&mut magic));
    matches!(read, Ok(Ok(()))) && magic[..3] == [0, 0, UNSIGNED_BYTES]
}

/// Reads items one after another.
struct IdxReader {
    file: String,
    source: BufReader<Box<dyn Read + Send>>,
    header: IdxHeader,
    /// Number of items read.
    position: u32,
}

impl IdxReader {
    fn new(input: Input) -> Result<Self, DataError> {
        let (file, source, _) = input.into_parts();
        let mut source = BufReader::with_capacity(256 * 1024, source);
        let header = header(&mut source).map_err(|error| error.in_file(&file))?;
        Ok(Self { file, source, header, position: 0 })
    }

    /// Fills `item` with the next one; returns `false` after the last, after which nothing may follow.
    fn next(&mut self, item: &mut [u8]) -> Result<bool, DataError> {
        if self.position == self.header.items {
            let mut beyond = [0];
            let more = self.source.read(&mut beyond).map_err(|source| read_error(source).in_file(&self.file))?;
            return match more {
                0 => Ok(false),
                _ => Err(length("the file goes on after its last item").in_file(&self.file)),
            };
        }
        fill(&mut self.source, item).map_err(|error| error.in_file(&self.file))?;
        self.position += 1;
        Ok(true)
    }
}

fn header(source: &mut impl Read) -> Result<IdxHeader, DataError> {
    let syntax = |message: &str| {
        DataError::new(DataErrorKind::IdxSyntax, message)
            .expected("an IDX file of unsigned bytes")
            .help("name the file of the images as --data and that of the labels as --labels")
    };
    let mut magic = [0; 4];
    if !read_full(source, &mut magic)? {
        return Err(syntax("the file does not begin as an IDX file"));
    }
    let [0, 0, kind, dimensions] = magic else { return Err(syntax("the file does not begin as an IDX file")) };
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
    match read_full(source, bytes)? {
        true => Ok(()),
        false => Err(length("the file ends before its last item")),
    }
}

/// Returns whether there were enough bytes. Not `read_exact`, whose error for a short file is that of a truncated compressed
/// file.
fn read_full(source: &mut impl Read, bytes: &mut [u8]) -> Result<bool, DataError> {
    let mut filled = 0;
    while filled < bytes.len() {
        match source.read(&mut bytes[filled..]) {
            Ok(0) => return Ok(false),
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(read_error(error)),
        }
    }
    Ok(true)
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
        let counts = |message: String| DataError::new(DataErrorKind::IdxCounts, message);
        if images.header.shape != format.shape {
            return Err(DataError::new(
                DataErrorKind::IdxShape,
                format!("the images are of shape {:?}", images.header.shape),
            )
            .in_file(&images.file)
            .expected(format!("images of shape {:?}", format.shape)));
        }
        if images.header.items == 0 {
            return Err(DataError::new(DataErrorKind::IdxEmpty, "the file holds no image").in_file(&images.file));
        }
        let labels = match labels {
            None if with_labels => {
                return Err(counts("the labels of the images were not given".into())
                    .in_file(&images.file)
                    .help("name their file with --labels"));
            }
            labels => labels.map(IdxReader::new).transpose()?,
        };
        if let Some(labels) = &labels {
            if !labels.header.shape.is_empty() {
                return Err(DataError::new(DataErrorKind::IdxSyntax, "the labels have more than one dimension")
                    .in_file(&labels.file)
                    .expected("one byte for each image"));
            }
            if labels.header.items != images.header.items {
                let message = format!("{} labels for {} images", labels.header.items, images.header.items);
                return Err(counts(message)
                    .in_file(&labels.file)
                    .expected("one label for each image")
                    .help("name two files that belong together"));
            }
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
mod tests;
