//! CIFAR-10: records of a label and three planes of pixels, one for each colour.

use std::io::{BufReader, Read};

use super::{ImageLabels, LABELS, PIXELS, no_image, not_a_class};
use crate::error::{DataError, DataErrorKind};
use crate::images::{Images, Shape};
use crate::memory::reserve;
use crate::read::Input;
use crate::read::input::read_full;

/// Number of classes.
pub(super) const CLASSES: u8 = 10;
pub(super) const SHAPE: Shape = Shape { height: 32, width: 32, channels: 3 };
/// Number of pixels.
const PLANE: usize = SHAPE.height * SHAPE.width;
/// Number of bytes of a record.
pub(super) const RECORD: usize = 1 + SHAPE.channels * PLANE;

/// Reads the records of all files.
pub(super) fn read(files: Vec<Input>, expected: &ImageLabels) -> Result<Images, DataError> {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for input in files {
        let (file, source, _) = input.into_parts();
        let mut source = BufReader::with_capacity(256 * 1024, source);
        append(&mut source, expected, &mut pixels, &mut labels).map_err(|error| error.in_file(&file))?;
    }
    Ok(Images::new(SHAPE, pixels, labels, expected.classes())?)
}

fn append(
    source: &mut impl Read,
    expected: &ImageLabels,
    pixels: &mut Vec<u8>,
    labels: &mut Vec<u8>,
) -> Result<(), DataError> {
    let (table, mut record) = (expected.table(), [0; RECORD]);
    let mut number = 0;
    loop {
        number += 1;
        match read_full(source, &mut record)? {
            RECORD => {}
            0 if number > 1 => return Ok(()),
            0 => return Err(no_image()),
            _ => {
                return Err(DataError::new(DataErrorKind::CifarLength, "the file ends within a record")
                    .expected(format!("records of {RECORD} bytes"))
                    .help("fetch the file again and compare its size or checksum"));
            }
        }
        let [label, planes @ ..] = &record;
        let class = table[usize::from(*label)].filter(|_| *label < CLASSES);
        let class = class.ok_or_else(|| not_a_class(expected, number))?;
        reserve(pixels, planes.len(), PIXELS)?;
        reserve(labels, 1, LABELS)?;
        labels.push(class);
        let (red, others) = planes.split_at(PLANE);
        let (green, blue) = others.split_at(PLANE);
        pixels.extend(red.iter().zip(green).zip(blue).flat_map(|((&red, &green), &blue)| [red, green, blue]));
    }
}
