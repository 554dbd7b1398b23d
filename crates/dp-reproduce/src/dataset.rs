//! The data sets of the experiments, prepared as in the papers.

mod files;
mod images;
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
pub use images::ImageSets;
pub use lists::Fold;

use crate::error::Error;

/// A data set with its preparation: columns, dimension and task.
///
/// Numeric columns are scaled to `[0, 1]` by their minimum and maximum, and every row with norm above 1 is divided by its
/// norm. Ranges are taken from the data: a reproduction measures the quality of an algorithm and releases nothing. Lists of
/// documents, for rankers, are unchanged except for the order of the documents of a list, which is random: files sort them by
/// name, and ListMLE learns the order of documents with equal grades.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DataSet {
    /// Ten digits, 60,000 training rows, with a random Gaussian projection to 50 dimensions, clipped to norm 1.
    Mnist,
    /// The digit 0 against the rest, 15 pixels drawn at random.
    MnistZero,
    /// Forest cover type 2 against the rest, 54 columns and an intercept; 6 of 7 rows for training.
    Covertype,
    /// Signal against background, 28 columns and an intercept.
    Higgs,
    /// Intrusions against normal connections, 34 numeric columns and an intercept; every fifth row for testing.
    KddCup,
    /// The first 50,000 rows, 34 numeric columns, rows of norm 1.
    KddCup34,
    /// KddCup34 with 9 columns drawn at random.
    KddCup9,
    /// Forged against genuine banknotes, 4 columns and an intercept.
    Banknote,
    /// Occupied against empty rooms, 5 columns and an intercept; with separate test sets.
    Occupancy,
    /// 10,000 points on the 5-dimensional unit sphere, separable with margin 0.001.
    Sphere,
    /// Income above 50,000 against the rest, 123 binary columns (a9a) and an intercept, which is the last feature; every
    /// fifth row for testing.
    Adult,
    /// Clients who made a deposit against the rest, 32 numeric columns and an intercept, which is the last feature; every
    /// fifth row for testing.
    Bank,
    /// 100,000 rows of 100 correlated normal features scaled to norm 1, of which 20 determine the class; 10,000 more for
    /// testing.
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
    /// Synthetic lists shaped like those of MQ2008, in five parts.
    MadeUpLists {
        /// Number of lists.
        lists: u32,
    },
    /// MNIST as images: ten digits, 60,000 for training and 10,000 for testing.
    MnistImages,
    /// Fashion-MNIST: ten kinds of clothes, 60,000 images for training and 10,000 for testing.
    FashionImages,
    /// CIFAR-10: ten classes, 50,000 images in colour for training and 10,000 for testing.
    CifarImages,
    /// Synthetic images of 6 x 6 pixels in three classes, and a quarter as many for testing.
    MadeUpImages {
        /// Number of images for training.
        images: u32,
    },
}

/// The records of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// Rows of numbers with a target.
    Rows,
    /// Lists of graded documents.
    Lists,
    /// Images with a class.
    Images,
}

impl DataSet {
    /// All data sets that are read from files.
    pub const FROM_FILES: [Self; 16] = [
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
        Self::MnistImages,
        Self::FashionImages,
        Self::CifarImages,
    ];

    /// Returns the name in texts.
    pub fn title(self) -> &'static str {
        match self {
            Self::Mnist | Self::MnistImages => "MNIST",
            Self::FashionImages => "Fashion-MNIST",
            Self::CifarImages => "CIFAR-10",
            Self::MadeUpImages { .. } => "Made-up images",
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

    /// Returns what its records are.
    pub fn records(self) -> Records {
        match self {
            Self::Mq2007 | Self::Mq2008 | Self::MadeUpLists { .. } => Records::Lists,
            Self::MnistImages | Self::FashionImages | Self::CifarImages | Self::MadeUpImages { .. } => Records::Images,
            _ => Records::Rows,
        }
    }

    /// Returns the number of classes; lists have none.
    pub fn classes(self) -> u32 {
        match (self, self.records()) {
            (Self::MadeUpImages { .. }, _) => 3,
            (Self::Mnist, _) | (_, Records::Images) => 10,
            (_, Records::Lists) => 0,
            (_, Records::Rows) => 2,
        }
    }

    /// Returns its files, by name in the data folder.
    pub fn files(self) -> &'static [DataFile] {
        files::of(self)
    }

    /// Reads or generates its rows.
    ///
    /// # Errors
    /// [`Error::MissingFile`], [`Error::Data`], also for a data set of other records.
    pub fn load(self, folder: &Path) -> Result<Prepared, Error> {
        self.check_files(folder)?;
        load::load(self, folder)
    }

    /// Reads or generates the five folds of its lists: four parts for training and one for ranking, in turn.
    ///
    /// # Errors
    /// [`Error::MissingFile`], [`Error::Data`], also for a data set of other records.
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

    /// Reads or generates its images.
    ///
    /// # Errors
    /// [`Error::MissingFile`], [`Error::Data`], also for a data set of other records.
    ///
    /// # Examples
    /// ```
    /// let sets = dp_reproduce::DataSet::MadeUpImages { images: 200 }.load_images(std::path::Path::new("nowhere"))?;
    /// assert_eq!((sets.train.len(), sets.test.len(), sets.train.classes()), (200, 50, 3));
    /// # Ok::<(), dp_reproduce::Error>(())
    /// ```
    pub fn load_images(self, folder: &Path) -> Result<ImageSets, Error> {
        self.check_files(folder)?;
        images::load(self, folder)
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
            Self::MnistImages => "mnist-images",
            Self::FashionImages => "fashion-images",
            Self::CifarImages => "cifar10",
            Self::MadeUpImages { images } => return write!(f, "made-up-{images}-images"),
        })
    }
}

/// A data set in memory.
///
/// # Shapes
/// Rows have norm at most 1. Targets are -1 and 1, or 0 to `classes - 1` for more than two classes.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The training rows.
    pub train: Examples<f64>,
    /// The test rows; `None` to test on the training rows.
    pub test: Option<Examples<f64>>,
    /// Number of classes.
    pub classes: u32,
    /// The model from which labels were drawn, if known.
    pub truth: Option<Vec<f64>>,
}

impl Prepared {
    /// Returns the rows on which accuracy is measured.
    pub fn held_out(&self) -> &Examples<f64> {
        self.test.as_ref().unwrap_or(&self.train)
    }
}

/// Returns the files of these data sets that are missing from `folder`.
pub fn missing(folder: &Path, sets: impl IntoIterator<Item = DataSet>) -> Vec<DataFile> {
    let mut missing = Vec::new();
    for file in sets.into_iter().flat_map(|set| set.files()) {
        if !folder.join(file.name).is_file() && !missing.contains(file) {
            missing.push(*file);
        }
    }
    missing
}
