//! `dp predict` for networks: the class of each image, with the probabilities of all classes.

use std::fmt::Write as _;
use std::io::Write;

use dp::metrics::{softmax, winner};
use dp::network::NetworkFile;

use super::images::{ImageFiles, check_fit};
use crate::commands::predict::PredictConfig;
use crate::failure::Failure;
use crate::output::{Console, write_failure};
use crate::progress::{Counted, Progress};

/// Writes a line of CSV for each image, and returns their number.
///
/// # Errors
/// Errors in the images, and output that cannot be written.
pub(in crate::commands) fn write(
    config: &PredictConfig,
    file: &NetworkFile,
    files: &ImageFiles,
    console: &Console,
    (mut out, target): (impl Write, &str),
) -> Result<u64, Failure> {
    let images = files.load_unlabelled()?;
    check_fit(&images, file, &config.input.data)?;
    let written = |error: std::io::Error| write_failure(&error, target);
    let classes = file.model.classes();
    let columns: String = classes.iter().map(|class| format!(",probability:{class}")).collect();
    writeln!(out, "class{columns}").map_err(written)?;
    let mut progress = Progress::start(config.progress, console, "predict", Counted::Rows, Some(images.len() as u64));
    let (mut n, mut line, mut probabilities) = (0, String::new(), Vec::new());
    file.model.logits(&images, config.workers, |logits| {
        probabilities.clear();
        probabilities.extend_from_slice(logits);
        softmax(&mut probabilities);
        line.clear();
        line.push_str(classes.get(winner(logits)).map_or("", String::as_str));
        for probability in &probabilities {
            // Writing to a string does not fail.
            let _ = write!(line, ",{probability:?}");
        }
        writeln!(out, "{line}").map_err(written)?;
        n += 1;
        progress.update(n, None);
        Ok::<_, Failure>(())
    })?;
    out.flush().map_err(written)?;
    progress.finish(n);
    Ok(n)
}
