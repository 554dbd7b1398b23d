//! Flags of `dp train`.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use dp_accountant::certificate::NoiseMode;
use dp_data::encode::{FourierFeatures, MAX_BANDWIDTH, MAX_COSINES, MAX_MAPPED, ProjectionKind, RowNorm};
use dp_data::memory::Bytes;
use dp_nets::Views;
use dp_optim::FloatKind;
use dp_optim::recipes::Share;

use super::algorithm::{Algorithm, words};
use super::settings::SettingsArgs;
use super::{FileName, InputArgs};

/// A loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Loss {
    /// Logistic regression, for two classes.
    #[default]
    Logistic,
    /// Support vector machine with a smoothed hinge, for two classes.
    HuberSvm,
    /// Support vector machine, for two classes; not smooth, so not for every algorithm.
    Hinge,
    /// Logistic regression of several classes at once.
    Softmax,
    /// Least squares, for numbers and for the classes -1 and +1; its gradients are bounded by a radius only.
    Squared,
    /// Least squares for small errors and absolute errors for large ones, for numbers.
    HuberRegression,
    /// The same with a smoother transition, for which obj-pert needs less noise.
    LogCosh,
    /// Absolute errors, for numbers; not smooth, so not for every algorithm.
    Absolute,
}

/// The neighbouring relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Adjacency {
    /// One record is replaced by a null record (zero-out); the number of records is public.
    AddRemove,
    /// One record is replaced by any other; the number of records is public.
    ReplaceOne,
    /// The labels of one list change: for `dp rank` only.
    ChangeListLabels,
}

/// The decision threshold of two classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Threshold {
    /// Probability 0.5: the fewest errors.
    #[default]
    Half,
    /// The noisy base rate, for a twentieth of epsilon: balances the error rates of a rare and a frequent class.
    BaseRate,
}

/// The scaling of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Scale {
    /// Numeric columns to [-1, 1], then each row divided by its norm.
    #[default]
    UnitRows,
    /// Numeric columns to [0, 1], then `--row-norm`.
    Unit,
}

/// The functions of numeric columns as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curves {
    /// The coordinate of each column.
    None,
    /// Cosines of each column.
    Cosines {
        /// Their number.
        number: u32,
        /// True if products of pairs of columns are added.
        pairs: bool,
    },
}

impl FromStr for Curves {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None);
        }
        let (number, pairs) = match text.strip_suffix("+pairs") {
            Some(number) => (number, true),
            None => (text, false),
        };
        let known = number.parse().ok().filter(|number| (1..=MAX_COSINES).contains(number));
        known
            .map(|number| Self::Cosines { number, pairs })
            .ok_or_else(|| format!("expected none, or NUMBER or NUMBER+pairs with up to {MAX_COSINES} cosines"))
    }
}

/// Random Fourier features as typed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fourier {
    /// Their number.
    pub features: u32,
    /// The standard deviation of their frequencies.
    pub bandwidth: f64,
}

impl FromStr for Fourier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, bandwidth) = text.split_once(':').map_or((text, None), |(number, rest)| (number, Some(rest)));
        let bandwidth = bandwidth.map_or(Ok(FourierFeatures::BANDWIDTH), str::parse);
        match (number.parse(), bandwidth) {
            (Ok(features), Ok(bandwidth))
                if (1..=MAX_MAPPED).contains(&u64::from(features)) && bandwidth > 0.0 && bandwidth <= MAX_BANDWIDTH =>
            {
                Ok(Self { features, bandwidth })
            }
            _ => Err(format!(
                "expected NUMBER or NUMBER:BANDWIDTH, as 2000 or 2000:1.5, a number up to {MAX_MAPPED} and a bandwidth above 0, \
                 up to {MAX_BANDWIDTH}"
            )),
        }
    }
}

/// A random projection as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Project {
    /// The projection.
    pub kind: ProjectionKind,
    /// The number of features after it, without the intercept.
    pub features: u32,
}

impl FromStr for Project {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kind = |name| match name {
            "gaussian" => Some(ProjectionKind::Gaussian),
            "coordinates" => Some(ProjectionKind::Coordinates),
            _ => None,
        };
        text.split_once(':')
            .and_then(|(name, number)| Some(Self { kind: kind(name)?, features: number.parse().ok()? }))
            .filter(|project| project.features > 0)
            .ok_or_else(|| "expected gaussian:NUMBER or coordinates:NUMBER, as gaussian:50".to_owned())
    }
}

/// Arguments of `dp train`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  dp train --data people.csv --schema schema.toml --epsilon 1 --out model.json
  dp train --data people.csv --label income --schema-from-data --epsilon 1 --out model.json
  dp train --data people.libsvm.gz --dim 123 --epsilon 0.5 --out sparse.json
  dp train --data people.libsvm.gz --dim 123 --project gaussian:50 --epsilon 1 --out small.json
  dp train --data images.idx.gz --labels labels.idx.gz --positive 0 --epsilon 1 --out zero.json
  dp train --data images.idx.gz --labels labels.idx.gz --model mlp:64 --epsilon 2 --out net.json")]
pub struct TrainArgs {
    /// The records.
    #[command(flatten)]
    pub input: InputArgs,
    /// Label column (CSV) [default: the schema's]
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    pub label: Option<String>,
    /// Label value of the positive class [default: the schema's; +1 for libsvm]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true, help_heading = "Data")]
    pub positive: Option<String>,
    /// Label value of the negative class [default: the schema's; -1 and 0 for libsvm]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true, help_heading = "Data")]
    pub negative: Option<String>,
    /// Classes of a label of several classes, publicly known, separated by commas [default: the schema's]
    #[arg(
        long,
        value_name = "VALUES",
        value_delimiter = ',',
        allow_hyphen_values = true,
        conflicts_with_all = ["positive", "negative", "label_range"],
        help_heading = "Data"
    )]
    pub classes: Vec<String>,
    /// Range of a numeric label, publicly known [default: the schema's]
    #[arg(
        long,
        num_args = 2,
        value_names = ["MIN", "MAX"],
        allow_hyphen_values = true,
        conflicts_with_all = ["positive", "negative"],
        help_heading = "Data"
    )]
    pub label_range: Vec<f64>,
    /// The reviewed schema of the records (CSV)
    #[arg(long, value_name = "FILE", conflicts_with = "schema_from_data", help_heading = "Data")]
    pub schema: Option<FileName>,
    /// Take ranges and categories from the data and assume that they are public
    #[arg(long, help_heading = "Data")]
    pub schema_from_data: bool,
    /// Columns of an unreviewed schema whose ranges or categories you declare to be public
    #[arg(long, value_name = "COLUMN", num_args = 1.., value_delimiter = ',', help_heading = "Data")]
    pub assume_public: Vec<String>,
    /// Number of features (libsvm) [default: the largest index in the data, assumed public]
    #[arg(long, value_name = "NUMBER", help_heading = "Data")]
    pub dim: Option<usize>,
    /// Largest value of a pixel, publicly known (IDX) [default: 255]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..), help_heading = "Data")]
    pub pixel_max: Option<u8>,
    /// Scaling of columns (CSV)
    #[arg(long, value_enum, value_name = "HOW", default_value_t, help_heading = "Data")]
    pub scale: Scale,
    /// Basis functions of numeric columns (CSV): none for linear terms, NUMBER of cosines per column, or NUMBER+pairs [default:
    /// chosen by auto unless --coordinate is given, else none]
    #[arg(long, value_name = "HOW", help_heading = "Data")]
    pub curves: Option<Curves>,
    /// Scale of numeric columns, on which basis functions are taken (CSV); without --curves these are linear terms [default: by-range
    /// with cosines, else linear]
    #[arg(long, value_parser = words(dp::words::COORDINATE), value_name = "HOW", help_heading = "Data")]
    pub coordinate: Option<dp_data::schema::Scale>,
    /// Random Fourier features of all columns together, for interactions (CSV): NUMBER or NUMBER:BANDWIDTH [default: none]
    #[arg(long, value_name = "HOW", help_heading = "Data")]
    pub fourier: Option<Fourier>,
    /// Train without and with the Fourier features on nine tenths of the records, and keep the better one on the rest, chosen
    /// privately; both trainings share the budget
    #[arg(long, requires = "fourier", help_heading = "Data", conflicts_with_all = ["sums", "project"])]
    pub fourier_if_better: bool,
    /// Public seed of Fourier features, chosen without looking at records
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "fourier", help_heading = "Data")]
    pub fourier_seed: u64,
    /// Row normalisation [default: clip]
    #[arg(long, value_parser = words(dp::words::ROW_NORM), value_name = "HOW", help_heading = "Data")]
    pub row_norm: Option<RowNorm>,
    /// Leave the rows where they are: the server or runner of --data computes the sums, a server over this many connections
    /// (auto, dp-gd, noisy-moments, majority)
    #[arg(long, value_name = "CONNECTIONS", num_args = 0..=1, require_equals = true, default_missing_value = "1", help_heading = "Data", conflicts_with_all = ["schema_from_data", "memory", "spool", "spool_encrypted", "one_vs_all"])]
    pub sums: Option<NonZeroUsize>,
    /// Time limit of a runner's statement; a runner that exceeds it is restarted, at most twice in a step [default: 3600]
    #[arg(long, value_name = "SECONDS", requires = "sums", help_heading = "Data")]
    pub sums_timeout: Option<NonZeroU32>,
    /// Memory for the rows, as 500MB or 4GiB; more rows go to a temporary file without a name [default: half of what is free]
    #[arg(long, value_name = "SIZE", help_heading = "Data")]
    pub memory: Option<Bytes>,
    /// Folder of the temporary file [default: that of TMPDIR, else /var/tmp]
    #[arg(long, value_name = "FOLDER", help_heading = "Data")]
    pub spool: Option<PathBuf>,
    /// Encrypt the temporary file, under a key that never leaves the process: true or false [default: true for the rows of a
    /// server]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Data")]
    pub spool_encrypted: Option<bool>,
    /// Random projection to fewer features: gaussian:NUMBER or coordinates:NUMBER
    #[arg(long, value_name = "HOW", help_heading = "Data")]
    pub project: Option<Project>,
    /// Public seed of the projection, chosen without looking at records [default: random]
    #[arg(long, value_name = "NUMBER", requires = "project", help_heading = "Data")]
    pub project_seed: Option<u64>,

    /// Epsilon of the guarantee
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Privacy")]
    pub epsilon: Option<f64>,
    /// Delta of the guarantee; 0 is pure differential privacy [default for auto and networks: the largest power of ten that is at most
    /// 1e-6 and 1/(10 n); for other algorithms: 0]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Privacy")]
    pub delta: Option<f64>,
    /// Protect all rows with one value of this column together, such as those of one patient
    #[arg(long, value_name = "COLUMN", requires = "max_rows", help_heading = "Privacy")]
    pub unit: Option<String>,
    /// Largest number of rows of a unit: more are left out, drawn at random; the noise grows in proportion
    #[arg(long, value_name = "NUMBER", requires = "unit", help_heading = "Privacy")]
    pub max_rows: Option<NonZeroU64>,
    /// Neighbouring relation [default: that of the algorithm's paper: replace-one for bolt-on, add-remove for auto and dp-sgd]
    #[arg(long, value_enum, value_name = "RELATION", help_heading = "Privacy")]
    pub adjacency: Option<Adjacency>,
    /// Noise mode [default: exact]
    #[arg(long, value_parser = words(dp::words::NOISE), value_name = "MODE", help_heading = "Privacy")]
    pub noise: Option<NoiseMode>,
    /// Seed of the noise: makes the run reproducible and therefore NOT private
    #[arg(long, value_name = "NUMBER", help_heading = "Privacy")]
    pub seed: Option<u64>,
    /// Limit on the work of calibrating the noise; 1 is about a second. If it is reached, the noise can be larger than needed
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Privacy")]
    pub limit: Option<f64>,

    /// Train a network on images instead of a linear model: mlp:UNITS,.., a name of `dp help networks`, or a FILE.toml of layers
    #[arg(long, value_name = "NETWORK", help_heading = "Algorithm")]
    pub model: Option<FileName>,
    /// Public seed of the network's initial weights, chosen without looking at images [default: 1]
    #[arg(long, value_name = "NUMBER", requires = "model", help_heading = "Algorithm")]
    pub start_seed: Option<u64>,
    /// File from which an interrupted training goes on: written before the first step, now and then, and at Ctrl-C; removed at
    /// the end
    ///
    /// It holds the weights and the state of the optimiser, no keys and no images. Do not publish it: its number of steps at a given
    /// time depends on the sizes of drawn batches.
    #[arg(long, value_name = "FILE", requires = "model", help_heading = "Output")]
    pub checkpoint: Option<PathBuf>,
    /// Resume from the file of --checkpoint, with the same data. Steps that may have begun since are charged and not repeated
    #[arg(long, requires = "checkpoint", help_heading = "Output")]
    pub resume: bool,
    /// Views of each image over which training averages the loss, and prediction the logits [default: one]
    ///
    /// Augmentation multiplicity: all views of an image make one clipped gradient. Training takes longer in proportion to their
    /// number. Handwritten digits gain accuracy by shifts; Fashion-MNIST loses by shifts and by flips.
    #[arg(long, value_parser = words(dp::words::VIEWS), value_name = "WHICH", requires = "model", help_heading = "Algorithm")]
    pub views: Option<Views>,
    /// The algorithm, one of `dp help algorithms` [default: auto; for dp tune bolt-on-convex, for networks dp-sgd]
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true, help_heading = "Algorithm")]
    pub algorithm: Option<Algorithm>,
    /// The loss [default: by the label: logistic for two classes, softmax for several, log-cosh for numbers]
    #[arg(long, value_enum, value_name = "NAME", help_heading = "Algorithm")]
    pub loss: Option<Loss>,
    /// One-vs-all: one model for each class against the rest, instead of softmax regression
    #[arg(long, value_parser = words(dp::words::SHARE), value_name = "SHARE", help_heading = "Algorithm")]
    pub one_vs_all: Option<Share>,
    /// Decision threshold on the probability of the positive class, for the logistic loss
    #[arg(long, value_enum, value_name = "WHERE", default_value_t, help_heading = "Algorithm")]
    pub threshold: Threshold,
    /// Half width of the smooth part of huber-svm [default: 0.1], of huber-regression and of log-cosh [default: 0.5]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Algorithm")]
    pub huber_width: Option<f64>,
    /// The settings of algorithms.
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Floating-point type of training [default: f64, for networks f32]
    #[arg(long, value_parser = words(dp::words::FLOAT), value_name = "KIND", help_heading = "Algorithm")]
    pub float: Option<FloatKind>,

    /// Output file of model and certificate; `-` for standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: PathBuf,
    /// Output file of a short report in Markdown, for readers of the model
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Train even if public numbers say that the model will lose half or more of what can be gained (auto)
    #[arg(long, help_heading = "Algorithm")]
    pub anyway: bool,
    /// Replace existing output files
    #[arg(long, help_heading = "Output")]
    pub force: bool,
    /// Print the plan and its cost, without reading a record
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    /// Number of records (with --unit, of units), for --dry-run
    #[arg(long, value_name = "NUMBER", requires = "dry_run", help_heading = "Output")]
    pub n: Option<u64>,
}

impl TrainArgs {
    /// Returns the algorithm: by default the one that chooses.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm.unwrap_or_else(Algorithm::auto)
    }
}
