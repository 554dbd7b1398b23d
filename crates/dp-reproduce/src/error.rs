//! Errors of reproducing experiments.

use std::path::PathBuf;

use crate::dataset::DataFile;

/// The reason why an experiment could not be run, stored or drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of a data set is missing from the folder.
    #[error("{} is missing ({}, {})", path.display(), file.size(), file.origin)]
    MissingFile {
        /// The expected path.
        path: PathBuf,
        /// The file.
        file: DataFile,
    },
    /// A file of a data set has unexpected content.
    #[error("{file}: {what}")]
    Data {
        /// The file.
        file: String,
        /// The error in it.
        what: String,
    },
    /// There is no figure of this name.
    #[error("there is no figure `{name}`")]
    UnknownFigure {
        /// The name.
        name: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The record of finished runs is invalid.
    #[error("{}, line {line}: {what}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The error in it.
        what: String,
    },
    /// The record of finished runs is locked by another run.
    #[error("{}: another run is under way in this folder", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A training rejected its parameters or failed.
    #[error("{run}: {source}")]
    Training {
        /// The run.
        run: String,
        /// The reason.
        source: dp_optim::Error,
    },
    /// A training of a ranker rejected its parameters or failed.
    #[error("{run}: {source}")]
    Ranking {
        /// The run.
        run: String,
        /// The reason.
        source: dp_rank::train::TrainError,
    },
    /// A number is out of range.
    #[error("{name} = {value}: expected {range}")]
    OutOfRange {
        /// The name of the number.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The accepted range.
        range: &'static str,
    },
    /// A picture could not be drawn.
    #[error("cannot draw: {what}")]
    Drawing {
        /// The reason.
        what: String,
    },
    /// Cancelled from outside; finished runs are kept.
    #[error("interrupted; finished runs are kept")]
    Interrupted,
}

impl Error {
    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }

    pub(crate) fn drawing(error: impl core::fmt::Display) -> Self {
        Self::Drawing { what: error.to_string() }
    }
}
