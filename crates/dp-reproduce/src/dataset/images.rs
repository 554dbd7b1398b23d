//! Images for training and testing.

use std::fs::File;
use std::path::Path;

use dp_data::Images;
use dp_data::images::Shape;
use dp_data::read::{ImageOptions, Input, load_image_bytes};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::{DataFile, DataSet};
use crate::error::Error;
use crate::seed;

/// Images for training, and others for testing.
#[derive(Debug)]
pub struct ImageSets {
    /// The images for training.
    pub train: Images,
    /// The images for testing.
    pub test: Images,
}

pub(super) fn load(set: DataSet, folder: &Path) -> Result<ImageSets, Error> {
    let refuse = |what: String| Error::Data { file: set.to_string(), what };
    let read = |images: &[DataFile], labels: &[DataFile]| -> Result<Images, Error> {
        let open = |file: &DataFile| {
            let (path, name) = (folder.join(file.name), file.name);
            let opened = File::open(&path).map_err(Error::file(&path))?;
            Input::from_reader(name, opened).map_err(|error| refuse(error.message()))
        };
        let all = |files: &[DataFile]| files.iter().map(open).collect::<Result<Vec<_>, _>>();
        load_image_bytes(all(images)?, all(labels)?, &ImageOptions::default()).map_err(|error| refuse(error.message()))
    };
    let files = set.files();
    let (train, test) = match (set, files) {
        (DataSet::MnistImages | DataSet::FashionImages, [images, labels, test_images, test_labels]) => {
            let one = core::slice::from_ref;
            (read(one(images), one(labels))?, read(one(test_images), one(test_labels))?)
        }
        (DataSet::CifarImages, [train @ .., test]) => (read(train, &[])?, read(core::slice::from_ref(test), &[])?),
        (DataSet::MadeUpImages { images }, _) => {
            let mut rng = StdRng::seed_from_u64(seed::of("made-up-images"));
            let mut draw =
                |count: u32| made_up(count, &mut rng).ok_or_else(|| refuse("there are no images".to_owned()));
            (draw(images)?, draw(images / 4)?)
        }
        _ => return Err(refuse("these are no images".to_owned())),
    };
    Ok(ImageSets { train, test })
}

/// Draws images of 6 x 6 pixels, of which two rows, the middle or two columns are bright.
fn made_up(count: u32, rng: &mut StdRng) -> Option<Images> {
    let shape = Shape { height: 6, width: 6, channels: 1 };
    let labels: Vec<u8> = (0..count).map(|i| (i % 3) as u8).collect();
    let mut pixels = Vec::with_capacity(36 * labels.len());
    for label in &labels {
        for (row, column) in (0..36).map(|j| (j / 6, j % 6)) {
            let is_bright = match label {
                0 => row < 2,
                1 => (2..4).contains(&row) && (2..4).contains(&column),
                _ => column >= 4,
            };
            pixels.push(rng.random_range(0..100u8) + if is_bright { 120 } else { 0 });
        }
    }
    Images::new(shape, pixels, labels, 3).ok().filter(|images| !images.is_empty())
}
