//! The files of images and of their labels.

use std::path::Path;

use dp::network::NetworkFile;
use dp_data::Images;
use dp_data::images::Shape;
use dp_data::read::{self, ImageKind, ImageLabels, ImageOptions, Input};

use crate::args::{FileName, Format};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::InputConfig;

/// The files of images, and of their labels if they have some of their own.
pub(in crate::commands) struct ImageFiles {
    kind: ImageKind,
    images: Vec<FileName>,
    labels: Vec<FileName>,
    /// The label of each class.
    pub(super) classes: Vec<u8>,
}

impl ImageFiles {
    /// Finds the files that the input names, of images of these classes.
    ///
    /// # Errors
    /// `model.mismatch` for records that are no images, and `file.open` if no file matches a pattern.
    pub(super) fn new(input: &InputConfig, classes: Vec<u8>) -> Result<Self, Failure> {
        let kind = match input.format {
            Format::Idx => ImageKind::Idx,
            Format::Cifar10 => ImageKind::Cifar10,
            other => {
                let message = format!("a network does not read {}", other.name());
                return Err(Failure::new(ExitStatus::Input, "model.mismatch", message)
                    .at_file(&input.data)
                    .expected("IDX images, or CIFAR-10 images")
                    .help("if they are images, say so with --format"));
            }
        };
        let labels = input.labels.as_ref().map(|labels| files(labels, "--labels")).transpose()?;
        Ok(Self { kind, images: files(&input.data, "--data")?, labels: labels.unwrap_or_default(), classes })
    }

    /// Finds the files that the input names, of images of a network's classes.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(in crate::commands) fn of_network(input: &InputConfig, file: &NetworkFile) -> Result<Self, Failure> {
        Self::new(input, file.model.labels.clone())
    }

    /// Returns every file with its flag.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let images = self.images.iter().map(|file| ("--data", Path::new(file)));
        images.chain(self.labels.iter().map(|file| ("--labels", Path::new(file))))
    }

    /// Returns the shape of the images, from the first header.
    ///
    /// # Errors
    /// `file.*`, `idx.*`.
    pub(super) fn shape(&self) -> Result<Shape, Failure> {
        let first = self.images.first().map_or_else(|| Ok(Input::from_bytes("", Vec::new())), open)?;
        self.kind.shape(first).map_err(|error| Failure::from_data(&error))
    }

    /// Reads all images with their labels.
    ///
    /// # Errors
    /// `file.*`, `images.*`, `idx.*`, `cifar.*`, `memory.exhausted`.
    pub(in crate::commands) fn load(&self) -> Result<Images, Failure> {
        self.load_with(ImageLabels::Classes(self.classes.clone()))
    }

    /// Reads all images without their labels.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub(in crate::commands) fn load_unlabelled(&self) -> Result<Images, Failure> {
        self.load_with(ImageLabels::Unread { classes: self.classes.len() })
    }

    fn load_with(&self, labels: ImageLabels) -> Result<Images, Failure> {
        let open_all = |files: &[FileName]| files.iter().map(open).collect::<Result<Vec<_>, _>>();
        let (images, of_labels) = (open_all(&self.images)?, open_all(&self.labels)?);
        let options = ImageOptions { kind: Some(self.kind), labels };
        read::load_image_bytes(images, of_labels, &options).map_err(|error| {
            let failure = Failure::from_data(&error);
            if error.code() == "images.label" { failure.at_flag("--classes") } else { failure }
        })
    }
}

fn open(file: &FileName) -> Result<Input, Failure> {
    Input::open(file).map_err(|error| Failure::from_data(&error))
}

/// Returns the files that a name or a pattern names.
fn files(name: &FileName, flag: &str) -> Result<Vec<FileName>, Failure> {
    let found = read::matching(name).map_err(|error| Failure::from_data(&error).at_flag(flag))?;
    Ok(found.into_iter().map(|file| FileName::from(file.into_os_string())).collect())
}

/// Rejects images that a network does not classify.
///
/// # Errors
/// `model.mismatch`.
pub(in crate::commands) fn check_fit(images: &Images, file: &NetworkFile, data: &FileName) -> Result<(), Failure> {
    let expected = file.model.architecture.input;
    if images.shape() == expected {
        return Ok(());
    }
    Err(Failure::new(ExitStatus::Input, "model.mismatch", format!("the images are of {} values", images.shape()))
        .at_file(data)
        .expected(format!("images of {expected} values, as in training")))
}

/// Returns the label of each class as typed, by default the digits: bytes, each once.
///
/// # Errors
/// `usage.value`.
pub(super) fn classes(typed: &[String]) -> Result<Vec<u8>, Failure> {
    if typed.is_empty() {
        return Ok((0..10).collect());
    }
    let refused = |message: String| {
        Failure::usage("--classes", message).expected("for images at least two numbers from 0 to 255, each once")
    };
    let mut classes = Vec::with_capacity(typed.len().min(256));
    for text in typed {
        let label = text.trim().parse().map_err(|_| refused(format!("`{text}` is no label of an image")))?;
        if classes.contains(&label) {
            return Err(refused(format!("the class {label} is given twice")));
        }
        classes.push(label);
    }
    if classes.len() < 2 { Err(refused("there is one class".to_owned())) } else { Ok(classes) }
}
