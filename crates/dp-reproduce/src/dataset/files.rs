//! The files of the data sets.

use super::DataSet;

/// A file supplied by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataFile {
    /// Its name in the data folder.
    pub name: &'static str,
    /// Its size in bytes, if known, to identify it; other compressions of the same content are accepted.
    pub bytes: Option<u64>,
    /// Its origin.
    pub origin: &'static str,
}

impl DataFile {
    /// Returns its size as text.
    ///
    /// # Examples
    /// ```
    /// use dp_reproduce::DataSet;
    /// assert_eq!(DataSet::Banknote.files()[0].size(), "19006 bytes");
    /// assert_eq!(DataSet::Mq2007.files()[0].size(), "size unknown");
    /// ```
    pub fn size(&self) -> String {
        self.bytes.map_or_else(|| "size unknown".to_owned(), |bytes| format!("{bytes} bytes"))
    }
}

const fn file(name: &'static str, bytes: u64, origin: &'static str) -> DataFile {
    DataFile { name, bytes: Some(bytes), origin }
}

/// Creates the entry of a file of unknown size.
const fn unseen(name: &'static str, origin: &'static str) -> DataFile {
    DataFile { name, bytes: None, origin }
}

const MNIST: &[DataFile] = &[
    file(
        "mnist-train-images-idx3-ubyte.gz",
        9630610,
        "the MNIST database of handwritten digits, LeCun, Cortes, Burges",
    ),
    file("mnist-train-labels-idx1-ubyte.gz", 28881, "the MNIST database of handwritten digits, LeCun, Cortes, Burges"),
    file("mnist-t10k-images-idx3-ubyte.gz", 1648877, "the MNIST database of handwritten digits, LeCun, Cortes, Burges"),
    file("mnist-t10k-labels-idx1-ubyte.gz", 4542, "the MNIST database of handwritten digits, LeCun, Cortes, Burges"),
];
const COVERTYPE: &[DataFile] = &[file(
    "covertype_93k.csv.gz",
    1913291,
    "UCI \"Covertype\" (Blackard, Dean 1998), a random 16% of the rows, header and raw values",
)];
const HIGGS: &[DataFile] = &[
    file(
        "higgs_10k_train.csv.gz",
        573076,
        "UCI \"HIGGS\" (Baldi, Sadowski, Whiteson 2014), 10,000 rows, header, `class_label` first",
    ),
    file(
        "higgs_5k_test.csv.gz",
        739557,
        "UCI \"HIGGS\" (Baldi, Sadowski, Whiteson 2014), 5,000 rows, header, `class_label` first",
    ),
];
const KDDCUP: &[DataFile] = &[file(
    "kddcup99_10pct.csv.gz",
    1909330,
    "UCI KDD archive \"KDD Cup 1999\", the 10% sample with a header, labels without the final dot",
)];
const BANKNOTE: &[DataFile] =
    &[file("banknote.csv.gz", 19006, "UCI \"Banknote Authentication\" (Lohweg 2012) with a header")];
const OCCUPANCY: &[DataFile] = &[
    file(
        "occupancy_train.csv.gz",
        99862,
        "UCI \"Occupancy Detection\" (Candanedo, Feldheim 2016), datatraining with a header",
    ),
    file(
        "occupancy_test1.csv.gz",
        39014,
        "UCI \"Occupancy Detection\" (Candanedo, Feldheim 2016), datatest with a header",
    ),
    file(
        "occupancy_test2.csv.gz",
        128475,
        "UCI \"Occupancy Detection\" (Candanedo, Feldheim 2016), datatest2 with a header",
    ),
];

const ADULT: &[DataFile] = &[
    file(
        "a9a_train.libsvm.gz",
        196455,
        "UCI \"Adult\" (Becker, Kohavi 1996) as the LIBSVM page has it, a9a: 123 binary features",
    ),
    file(
        "a9a_test.libsvm.gz",
        98648,
        "UCI \"Adult\" (Becker, Kohavi 1996) as the LIBSVM page has it, a9a.t: 123 binary features",
    ),
];
const BANK: &[DataFile] = &[file(
    "bank33.csv.gz",
    456806,
    "UCI \"Bank Marketing\" (Moro, Cortez, Rita 2014), 32 numeric columns, header, label `y`",
)];

const LETOR_2007: &str =
    "LETOR 4.0 (Qin, Liu 2013), MQ2007, supervised ranking: this part as it is, plain or compressed";
const MQ2007: &[DataFile] = &[
    unseen("mq2007/S1.txt", LETOR_2007),
    unseen("mq2007/S2.txt", LETOR_2007),
    unseen("mq2007/S3.txt", LETOR_2007),
    unseen("mq2007/S4.txt", LETOR_2007),
    unseen("mq2007/S5.txt", LETOR_2007),
];
const LETOR_2008: &str = "LETOR 4.0 (Qin, Liu 2013), MQ2008, supervised ranking: this part as it is";
const MQ2008: &[DataFile] = &[
    file("mq2008/S1.txt.xz", 229520, LETOR_2008),
    file("mq2008/S2.txt.xz", 287712, LETOR_2008),
    file("mq2008/S3.txt.xz", 246028, LETOR_2008),
    file("mq2008/S4.txt.xz", 216900, LETOR_2008),
    file("mq2008/S5.txt.xz", 232764, LETOR_2008),
];

const ZALANDO: &str = "Fashion-MNIST (Xiao, Rasul, Vollgraf 2017), zalandoresearch";
const FASHION: &[DataFile] = &[
    file("fashion-train-images-idx3-ubyte.gz", 26421880, ZALANDO),
    file("fashion-train-labels-idx1-ubyte.gz", 29515, ZALANDO),
    file("fashion-t10k-images-idx3-ubyte.gz", 4422102, ZALANDO),
    file("fashion-t10k-labels-idx1-ubyte.gz", 5148, ZALANDO),
];
const TORONTO: &str = "CIFAR-10, binary version (Krizhevsky 2009)";
const CIFAR: &[DataFile] = &[
    file("cifar-10-batches-bin/data_batch_1.bin", 30730000, TORONTO),
    file("cifar-10-batches-bin/data_batch_2.bin", 30730000, TORONTO),
    file("cifar-10-batches-bin/data_batch_3.bin", 30730000, TORONTO),
    file("cifar-10-batches-bin/data_batch_4.bin", 30730000, TORONTO),
    file("cifar-10-batches-bin/data_batch_5.bin", 30730000, TORONTO),
    file("cifar-10-batches-bin/test_batch.bin", 30730000, TORONTO),
];

pub(super) const fn of(set: DataSet) -> &'static [DataFile] {
    match set {
        DataSet::Mnist | DataSet::MnistZero | DataSet::MnistImages => MNIST,
        DataSet::FashionImages => FASHION,
        DataSet::CifarImages => CIFAR,
        DataSet::Covertype => COVERTYPE,
        DataSet::Higgs => HIGGS,
        DataSet::KddCup | DataSet::KddCup34 | DataSet::KddCup9 => KDDCUP,
        DataSet::Banknote => BANKNOTE,
        DataSet::Occupancy => OCCUPANCY,
        DataSet::Adult => ADULT,
        DataSet::Bank => BANK,
        DataSet::Mq2007 => MQ2007,
        DataSet::Mq2008 => MQ2008,
        DataSet::Sphere
        | DataSet::SparseModel
        | DataSet::MadeUp { .. }
        | DataSet::MadeUpLists { .. }
        | DataSet::MadeUpImages { .. } => &[],
    }
}
