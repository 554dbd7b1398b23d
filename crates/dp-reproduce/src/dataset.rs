//! The data sets of the experiments, prepared as the papers say.

mod files;
mod lists;
mod load;
mod synthetic;
#[cfg(test)]
mod tests;
mod transform;

use core::fmt;
use std::path::Path;

use dp_data::Examples;

pub use files::DataFile;
pub use lists::Fold;

use crate::error::Error;

/// A data set with its preparation: which columns, which dimension, which task.
///
/// Numeric columns are scaled to `[0, 1]` by their smallest and largest value, and every row is divided by its norm where
/// that exceeds 1. Ranges are read off the data: a reproduction says how good an algorithm is and releases nothing.
/// Lists of documents, which rankers learn from, are taken as they are, but for the order of a list's documents, which is drawn at
/// random: files have them by name, and ListMLE learns the order of what is graded alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DataSet {
    /// Ten digits, 60,000 training rows, projected at random (Gaussian) to 50 dimensions and clipped to norm 1.
    Mnist,
    /// The digit 0 against the rest, 15 pixels drawn at random.
    MnistZero,
    /// Forest cover type 2 against the rest, 54 columns and an intercept; 6 of 7 rows to train on.
    Covertype,
    /// Signal against background, 28 columns and an intercept.
    Higgs,
    /// Intrusions against normal connections, 34 numeric columns and an intercept; every fifth row is for testing.
    KddCup,
    /// The first 50,000 rows, 34 numeric columns, rows of norm 1.
    KddCup34,
    /// The same, 9 of the columns drawn at random.
    KddCup9,
    /// Forged against genuine banknotes, 4 columns and an intercept.
    Banknote,
    /// Occupied against empty rooms, 5 columns and an intercept; its own test sets.
    Occupancy,
    /// 10,000 points on the 5-dimensional unit sphere, separable with margin 0.001.
    Sphere,
    /// Income above 50,000 against the rest, 123 binary columns (a9a) and an intercept, which is the last feature; every fifth
    /// row is for testing.
    Adult,
    /// Clients who took a deposit against the rest, 32 numeric columns and an intercept, which is the last feature; every
    /// fifth row is for testing.
    Bank,
    /// 100,000 rows of 100 correlated normal features scaled to norm 1, of which 20 tell the class; 10,000 more for testing.
    SparseModel,
    /// Two noisy classes in 50 dimensions, of this many thousand rows: for measuring time.
    MadeUp {
        /// Thousands of training rows.
        thousands: u32,
    },
    /// LETOR 4.0, MQ2007: 1,692 lists in five parts, 46 features, grades 0 to 2.
    Mq2007,
    /// LETOR 4.0, MQ2008: 784 lists in five parts, 46 features, grades 0 to 2.
    Mq2008,
    /// Made-up lists shaped like those of MQ2008, in five parts.
    MadeUpLists {
        /// How many.
        lists: u32,
    },
}

impl DataSet {
    /// All that are read from files.
    pub const FROM_FILES: [Self; 13] = [
        Self::Mnist,
        Self::MnistZero,
        Self::Covertype,
        Self::Higgs,
        Self::KddCup,
        Self::KddCup34,
        Self::KddCup9,
        Self::Banknote,
        Self::Occupancy,
        Self::Adult,
        Self::Bank,
        Self::Mq2007,
        Self::Mq2008,
    ];

    /// The name for readers.
    pub fn title(self) -> &'static str {
        match self {
            Self::Mnist => "MNIST",
            Self::MnistZero => "MNIST, 0 against the rest",
            Self::Covertype => "Covertype",
            Self::Higgs => "HIGGS",
            Self::KddCup | Self::KddCup34 | Self::KddCup9 => "KDD Cup 99",
            Self::Banknote => "Banknote",
            Self::Occupancy => "Occupancy",
            Self::Sphere => "Sphere",
            Self::Adult => "Adult",
            Self::Bank => "Bank",
            Self::SparseModel => "Simulated",
            Self::MadeUp { .. } => "Made up",
            Self::Mq2007 => "MQ2007",
            Self::Mq2008 => "MQ2008",
            Self::MadeUpLists { .. } => "Made-up lists",
        }
    }

    /// Whether it has lists of documents in place of rows.
    pub fn has_lists(self) -> bool {
        matches!(self, Self::Mq2007 | Self::Mq2008 | Self::MadeUpLists { .. })
    }

    /// Number of classes; lists have none.
    pub fn classes(self) -> u32 {
        match self {
            Self::Mnist => 10,
            set if set.has_lists() => 0,
            _ => 2,
        }
    }

    /// Which files it is made of, by their names in the data folder.
    pub fn files(self) -> &'static [DataFile] {
        files::of(self)
    }

    /// Reads or generates its rows.
    ///
    /// # Errors
    /// [`Error::MissingFile`], [`Error::Data`], also for a set of lists.
    pub fn load(self, folder: &Path) -> Result<Prepared, Error> {
        self.check_files(folder)?;
        load::load(self, folder)
    }

    /// Reads or generates its lists of documents, five times: four parts to train on and one to rank, in turn.
    ///
    /// # Errors
    /// [`Error::MissingFile`], [`Error::Data`], also for a set of rows.
    ///
    /// # Examples
    /// ```
    /// let folds = dp_reproduce::DataSet::MadeUpLists { lists: 20 }.load_lists(std::path::Path::new("nowhere"))?;
    /// assert_eq!((folds.len(), folds[0].train.len(), folds[0].test.len()), (5, 16, 4));
    /// # Ok::<(), dp_reproduce::Error>(())
    /// ```
    pub fn load_lists(self, folder: &Path) -> Result<Vec<Fold>, Error> {
        self.check_files(folder)?;
        lists::load(self, folder)
    }

    fn check_files(self, folder: &Path) -> Result<(), Error> {
        for file in self.files() {
            let path = folder.join(file.name);
            if !path.is_file() {
                return Err(Error::MissingFile { path, file: *file });
            }
        }
        Ok(())
    }
}

impl fmt::Display for DataSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mnist => "mnist",
            Self::MnistZero => "mnist-0",
            Self::Covertype => "covertype",
            Self::Higgs => "higgs",
            Self::KddCup => "kddcup99",
            Self::KddCup34 => "kddcup99-34",
            Self::KddCup9 => "kddcup99-9",
            Self::Banknote => "banknote",
            Self::Occupancy => "occupancy",
            Self::Sphere => "sphere",
            Self::Adult => "adult",
            Self::Bank => "bank",
            Self::SparseModel => "sparse-model",
            Self::MadeUp { thousands } => return write!(f, "made-up-{thousands}k"),
            Self::Mq2007 => "mq2007",
            Self::Mq2008 => "mq2008",
            Self::MadeUpLists { lists } => return write!(f, "made-up-{lists}-lists"),
        })
    }
}

/// A data set in memory.
///
/// # Shapes
/// Rows of norm at most 1. Targets are -1 and 1, or 0 to `classes - 1` where there are more than two classes.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// To train on.
    pub train: Examples<f64>,
    /// To test on; `None`: the training rows.
    pub test: Option<Examples<f64>>,
    /// Number of classes.
    pub classes: u32,
    /// The model that labels were drawn from, where it is known.
    pub truth: Option<Vec<f64>>,
}

impl Prepared {
    /// What accuracy is measured on.
    pub fn held_out(&self) -> &Examples<f64> {
        self.test.as_ref().unwrap_or(&self.train)
    }
}

/// The files that are missing from `folder` for these data sets.
pub fn missing(folder: &Path, sets: impl IntoIterator<Item = DataSet>) -> Vec<DataFile> {
    let mut missing = Vec::new();
    for file in sets.into_iter().flat_map(|set| set.files()) {
        if !folder.join(file.name).is_file() && !missing.contains(file) {
            missing.push(*file);
        }
    }
    missing
}
