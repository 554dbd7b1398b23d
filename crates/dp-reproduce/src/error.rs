//! What can go wrong when experiments are run again.

use std::path::PathBuf;

use crate::dataset::DataFile;

/// Why an experiment could not be run, kept or drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of a data set is not in the folder.
    #[error("{} is missing ({}, {})", path.display(), file.size(), file.origin)]
    MissingFile {
        /// Where it was looked for.
        path: PathBuf,
        /// Which file it is.
        file: DataFile,
    },
    /// A file of a data set holds something else than expected.
    #[error("{file}: {what}")]
    Data {
        /// The file.
        file: String,
        /// What is wrong with it.
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
        /// What the system said.
        source: std::io::Error,
    },
    /// The record of finished runs is not one.
    #[error("{}, line {line}: {what}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// The record of finished runs is held by a run that has not ended.
    #[error("{}: another run is under way in this folder", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A training refused its parameters or failed.
    #[error("{run}: {source}")]
    Training {
        /// Which run.
        run: String,
        /// Why.
        source: dp_optim::Error,
    },
    /// A training of a ranker refused its parameters or failed.
    #[error("{run}: {source}")]
    Ranking {
        /// Which run.
        run: String,
        /// Why.
        source: dp_rank::train::TrainError,
    },
    /// A number outside its range.
    #[error("{name} = {value}: expected {range}")]
    OutOfRange {
        /// Which number.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Where it may lie.
        range: &'static str,
    },
    /// A picture could not be drawn.
    #[error("cannot draw: {what}")]
    Drawing {
        /// Why.
        what: String,
    },
    /// Cancelled from outside; what had finished is kept.
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
