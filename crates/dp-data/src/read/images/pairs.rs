//! IDX files of images, and IDX files of their labels.

use super::{ImageLabels, LABELS, PIXELS, no_image, not_a_class};
use crate::error::{DataError, DataErrorKind};
use crate::images::{Images, ImagesError, Shape};
use crate::memory::reserve;
use crate::read::Input;
use crate::read::idx::{IdxReader, check_counts};

/// Bytes that are reserved on the word of the headers.
const TRUSTED: u64 = 64 << 20;

/// Reads the images and the labels of all files. Every header is checked before the first item is read.
pub(super) fn read(images: Vec<Input>, labels: Vec<Input>, expected: &ImageLabels) -> Result<Images, DataError> {
    let images = images.into_iter().map(IdxReader::new).collect::<Result<Vec<_>, _>>()?;
    let shape = check_shapes(&images)?;
    let are_read = matches!(expected, ImageLabels::Classes(_));
    let labels = labels.into_iter().filter(|_| are_read).map(IdxReader::labels).collect::<Result<Vec<_>, _>>()?;
    if are_read {
        check_counts(&images, &labels)?;
    }
    let items = images.iter().map(|file| u64::from(file.header.items)).sum::<u64>();
    if u32::try_from(items).is_err() {
        return Err(ImagesError::TooMany { images: usize::try_from(items).unwrap_or(usize::MAX) }.into());
    }

    let (table, mut classes) = (expected.table(), Vec::new());
    for file in labels {
        let (name, start) = (file.file.clone(), classes.len());
        file.append_all(&mut classes, LABELS)?;
        for (i, label) in classes[start..].iter_mut().enumerate() {
            *label = table[usize::from(*label)].ok_or_else(|| not_a_class(expected, i as u64 + 1).in_file(&name))?;
        }
    }
    let bytes = images.iter().fold(0u64, |bytes, file| bytes.saturating_add(file.header.bytes()));
    let mut pixels = Vec::new();
    reserve(&mut pixels, bytes.min(TRUSTED) as usize, PIXELS)?;
    for file in images {
        file.append_all(&mut pixels, PIXELS)?;
    }
    if !are_read {
        let images = pixels.len() / shape.values().unwrap_or(usize::MAX);
        reserve(&mut classes, images, LABELS)?;
        classes.resize(images, 0);
    }
    Ok(Images::new(shape, pixels, classes, expected.classes())?)
}

/// Returns the shape of all images.
fn check_shapes(files: &[IdxReader]) -> Result<Shape, DataError> {
    let mut all = None;
    for file in files {
        let shape = file.header.image_shape().map_err(|error| error.in_file(&file.file))?;
        let expected = *all.get_or_insert(shape);
        if shape != expected {
            return Err(DataError::new(DataErrorKind::IdxShape, format!("the images are of {shape} values"))
                .in_file(&file.file)
                .expected(format!("images of {expected} values, as in the first file")));
        }
        file.check_not_empty()?;
    }
    all.ok_or_else(no_image)
}
