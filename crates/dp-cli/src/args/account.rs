//! Flags of `dp account`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use dp::accounting::{Accountant, Choice as _, Sampling, Unknown};

use super::algorithm::words;
use super::{Adjacency, FileName};

/// The curve to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Curve {
    /// Epsilon against delta.
    EpsilonDelta,
    /// Epsilon against the number of steps.
    EpsilonSteps,
    /// The trade-off curve: an attacker's type II error (missed detections) against the type I error (false alarms).
    TradeOff,
}

/// Arguments of `dp account`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  dp account dpsgd --noise-multiplier 1.1 --sampling-rate 0.01 --steps 10000 --delta 1e-5
  dp account dpsgd --epsilon 2 --delta 1e-5 --sampling-rate 0.01 --steps 10000
  dp account gaussian --noise-multiplier 4 --steps 12 --delta 1e-6 --compare
  dp account event tree.json --delta 1e-6 --json

The omitted number is computed from the others: epsilon, delta, the noise multiplier, the sampling rate or the steps.
The reported value is the upper end of the certified interval.")]
pub struct AccountArgs {
    /// The release: mechanism or training
    #[command(subcommand)]
    pub job: AccountJob,
}

/// The release: mechanism or training.
#[derive(Debug, Clone, Subcommand)]
pub enum AccountJob {
    /// DP-SGD: noisy sums of clipped gradients over random batches
    Dpsgd(Box<DpsgdArgs>),
    /// Gaussian noise
    Gaussian(Box<NoiseArgs>),
    /// Laplace noise in each coordinate
    Laplace(Box<NoiseArgs>),
    /// Noise of density exp(-|z|/scale) in d dimensions
    LaplaceBall(Box<LaplaceBallArgs>),
    /// Randomised response: each record reports its value or, with some probability, a random one
    RandomizedResponse(Box<RandomizedResponseArgs>),
    /// Any epsilon-DP release
    Pure(Box<PureArgs>),
    /// Any (epsilon, delta)-DP release
    Approximate(Box<ApproximateArgs>),
    /// Any rho-zCDP release
    Zcdp(Box<ZcdpArgs>),
    /// Any mu-Gaussian-DP release
    Gdp(Box<GdpArgs>),
    /// Any tree of events, as JSON
    Event(Box<EventArgs>),
    /// The event in the certificate of a model
    Certificate(Box<CertificateArgs>),
    /// Questions as JSON lines, answers as JSON lines
    Batch(BatchArgs),
}

/// The question and the form of the answer.
#[derive(Debug, Clone, Default, Args)]
pub struct QuestionArgs {
    /// Epsilon of the guarantee
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Question")]
    pub epsilon: Option<f64>,
    /// Delta of the guarantee
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Question")]
    pub delta: Option<f64>,
    /// The number to compute [default: the omitted one]
    #[arg(long, value_parser = words(Unknown::ALL), value_name = "WHAT", help_heading = "Question")]
    pub solve: Option<Unknown>,
    /// Neighbouring relation [default: the relation of the theorem, add-remove if it allows several]
    #[arg(long, value_enum, value_name = "RELATION", help_heading = "Question")]
    pub adjacency: Option<Adjacency>,
    /// The number of records is secret (add-remove only): a neighbour has one record more or fewer. Otherwise n is public, and add-remove replaces a record by a null record (zero-out)
    #[arg(long, help_heading = "Question")]
    pub secret_n: bool,
    /// Number of records that the guarantee covers at once, such as all those of one person
    #[arg(long, value_name = "NUMBER", value_parser = count, allow_hyphen_values = true, help_heading = "Question")]
    pub group: Option<u64>,
    /// The accountant
    #[arg(long, value_parser = words(Accountant::ALL), value_name = "ACCOUNTANT", default_value = "auto", help_heading = "Question")]
    pub accountant: Accountant,

    /// Compare all accountants
    #[arg(long, conflicts_with_all = ["accountant", "curve", "semantics"], help_heading = "Answer")]
    pub compare: bool,
    /// Add the meaning of the guarantee for an attacker
    #[arg(long, conflicts_with = "curve", help_heading = "Answer")]
    pub semantics: bool,
    /// Compute a curve instead of one number
    #[arg(long, value_enum, value_name = "CURVE", help_heading = "Answer")]
    pub curve: Option<Curve>,
    /// Points of the curve
    #[arg(long, value_name = "NUMBER", requires = "curve", help_heading = "Answer")]
    pub points: Option<usize>,
    /// Output file of the curve, .csv or .svg [default: CSV on standard output]
    #[arg(long, value_name = "FILE", requires = "curve", help_heading = "Answer")]
    pub out: Option<PathBuf>,
    /// Replace an existing output file
    #[arg(long, requires = "out", help_heading = "Answer")]
    pub force: bool,
    /// Limit on the work; 1 is about a second. If it is reached, the certified interval is wider, and a note says so
    #[arg(long, value_name = "NUMBER", default_value = "1", allow_hyphen_values = true, help_heading = "Answer")]
    pub limit: f64,
    /// Check all flags and list the files to be written, without computing
    #[arg(long, help_heading = "Answer")]
    pub dry_run: bool,
}

/// Arguments of `dp account dpsgd`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  dp account dpsgd --noise-multiplier 1.1 --sampling-rate 0.01 --steps 10000 --delta 1e-5
  dp account dpsgd --noise-multiplier 1.1 --batch-size 256 --records 60000 --epochs 60 --delta 1e-5
  dp account dpsgd --epsilon 2 --delta 1e-5 --sampling-rate 0.01 --steps 10000
  dp account dpsgd --noise-multiplier 1.1 --sampling-rate 0.01 --epsilon 2 --delta 1e-5

The last two give the least noise and the most steps. The noise multiplier is the noise's standard deviation over the
sensitivity of the summed gradients: the clipping norm under add-remove, twice that under replace-one.")]
pub struct DpsgdArgs {
    /// Standard deviation of the noise over the sensitivity of the sum
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Training")]
    pub noise_multiplier: Option<f64>,
    /// Sampling rate: probability that a record takes part in a step
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Training")]
    pub sampling_rate: Option<f64>,
    /// Number of steps
    #[arg(long, value_name = "NUMBER", value_parser = count, allow_hyphen_values = true, help_heading = "Training")]
    pub steps: Option<u64>,
    /// Expected batch size, instead of --sampling-rate
    #[arg(
        long,
        value_name = "NUMBER",
        value_parser = count,
        allow_hyphen_values = true,
        requires = "records",
        conflicts_with = "sampling_rate",
        help_heading = "Training"
    )]
    pub batch_size: Option<u64>,
    /// Number of records, which is then public
    #[arg(long, value_name = "NUMBER", value_parser = count, allow_hyphen_values = true, help_heading = "Training")]
    pub records: Option<u64>,
    /// Number of epochs, instead of --steps
    #[arg(
        long,
        value_name = "NUMBER",
        allow_hyphen_values = true,
        conflicts_with = "steps",
        help_heading = "Training"
    )]
    pub epochs: Option<f64>,
    /// Sampling of a step's records
    #[arg(long, value_parser = words(Sampling::ALL), value_name = "HOW", default_value = "poisson", help_heading = "Training")]
    pub sampling: Sampling,
    /// The question.
    #[command(flatten)]
    pub question: QuestionArgs,
}

/// The number of compositions.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct RepeatArgs {
    /// Number of compositions [default: 1, unless it is computed]
    #[arg(long, visible_alias = "count", value_name = "NUMBER", value_parser = count, allow_hyphen_values = true)]
    pub steps: Option<u64>,
}

/// Arguments of `dp account gaussian` and `laplace`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  dp account gaussian --noise-multiplier 4 --steps 12 --delta 1e-6")]
pub struct NoiseArgs {
    /// Noise multiplier: standard deviation over L2 sensitivity, or Laplace scale over L1 sensitivity
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub noise_multiplier: Option<f64>,
    /// The number of compositions.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// The question.
    #[command(flatten)]
    pub question: QuestionArgs,
}

/// Arguments of `dp account laplace-ball`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  dp account laplace-ball --noise-multiplier 2 --dim 50 --steps 10 --delta 1e-6")]
pub struct LaplaceBallArgs {
    /// Noise multiplier: scale of the noise over the L2 sensitivity
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub noise_multiplier: Option<f64>,
    /// Dimension of the release
    #[arg(long, value_name = "NUMBER", value_parser = count, allow_hyphen_values = true)]
    pub dim: u64,
    /// The number of compositions.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// The question.
    #[command(flatten)]
    pub question: QuestionArgs,
}

/// Arguments of `dp account randomized-response`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  dp account randomized-response --buckets 2 --noise 0.5")]
pub struct RandomizedResponseArgs {
    /// Number of possible answers
    #[arg(long, value_name = "NUMBER", value_parser = count, allow_hyphen_values = true, default_value = "2")]
    pub buckets: u64,
    /// Probability of a uniformly random answer
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub noise: f64,
    /// The number of compositions.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// The question.
    #[command(flatten)]
    pub question: QuestionArgs,
}

/// Arguments of `dp account pure`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  dp account pure --step-epsilon 0.1 --steps 100 --delta 1e-6")]
pub struct PureArgs {
    /// Epsilon of one release
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub step_epsilon: f64,
    /// The number of compositions.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// The question.
    #[command(flatten)]
    pub question: QuestionArgs,
}

/// Arguments of `dp account approximate`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Example:\n  dp account approximate --step-epsilon 0.1 --step-delta 1e-9 --steps 100 --delta 1e-6"
)]
pub struct ApproximateArgs {
    /// Epsilon of one release
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub step_epsilon: f64,
    /// Delta of one release
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub step_delta: f64,
    /// The number of compositions.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// The question.
    #[command(flatten)]
    pub question: QuestionArgs,
}

/// Arguments of `dp account zcdp`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  dp account zcdp --rho 0.1 --delta 1e-6")]
pub struct ZcdpArgs {
    /// rho of one release
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub rho: f64,
    /// The number of compositions.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// The question.
    #[command(flatten)]
    pub question: QuestionArgs,
}

/// Arguments of `dp account gdp`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  dp account gdp --mu 0.5 --delta 1e-6")]
pub struct GdpArgs {
    /// mu of one release
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub mu: f64,
    /// The number of compositions.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// The question.
    #[command(flatten)]
    pub question: QuestionArgs,
}

/// Arguments of `dp account event`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example:
  echo '{\"type\": \"gaussian\", \"std_dev\": 2.0, \"sensitivity\": 1.0}' | dp account event - --delta 1e-6

A tree of events, as in a certificate: each an object with its `type` and its numbers. It may stand in an object with
its relation: {\"event\": {…}, \"adjacency\": \"add-remove\", \"n_public\": true}.")]
pub struct EventArgs {
    /// The file; `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: FileName,
    /// The number of compositions.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// The question.
    #[command(flatten)]
    pub question: QuestionArgs,
}

/// Arguments of `dp account certificate`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example:
  dp account certificate model.json --delta 1e-6

Reads the events and the relation from the certificate; whether they follow from the recipe is what `dp verify` checks.
Without --epsilon and --delta, delta is the certificate's.")]
pub struct CertificateArgs {
    /// The model file; `-` for standard input
    #[arg(value_name = "MODEL")]
    pub model: FileName,
    /// The number of compositions.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// The question.
    #[command(flatten)]
    pub question: QuestionArgs,
}

/// Arguments of `dp account batch`.
#[derive(Debug, Clone, Args)]
#[command(after_help = BATCH_HELP)]
pub struct BatchArgs {
    /// Questions, one JSON object per line; `-` for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: FileName,
    /// Limit on the work for each question; 1 is about a second. If it is reached, the certified interval is wider,
    /// and the answer's `note` says so
    #[arg(long, value_name = "NUMBER", default_value = "1", allow_hyphen_values = true)]
    pub limit: f64,
}

/// The schema of a line.
const BATCH_HELP: &str = "\
Each line is one object; its answer is one line, in the order of the questions:
  {\"job\": \"dpsgd\", \"noise_multiplier\": 1.1, \"sampling_rate\": 0.01, \"steps\": 10000, \"delta\": 1e-5}
  {\"event\": {\"type\": \"gaussian\", \"std_dev\": 2, \"sensitivity\": 1}, \"delta\": 1e-6, \"id\": \"a\"}

Keys, named as the flags of the other forms:
  job         dpsgd, gaussian, laplace, laplace-ball, randomized-response, pure, approximate, zcdp, gdp, event
  dpsgd       noise_multiplier, sampling_rate or batch_size and records, steps or epochs, sampling
  gaussian    noise_multiplier, steps (so too laplace; laplace-ball also dim)
  others      buckets and noise; step_epsilon; step_epsilon and step_delta; rho; mu; event; each with steps
  any         epsilon, delta, solve, adjacency, n_public, group, accountant, id

The omitted number is computed. `id` (text or a number) is returned with the answer. Numbers are JSON numbers:
no text, no NaN, no Infinity; counts are whole (1e4 is). Unknown keys and duplicate keys are errors.

A line that cannot be answered gives {\"error\": {\"code\", \"message\", \"where\": {\"line\", \"field\"}, \"help\"}} in its place
and the rest goes on; so do lines that are not UTF-8, not JSON or longer than 4 MiB. A line of more than 64 MiB ends the
batch. Blank lines give nothing. A byte order mark and CRLF are accepted. Exits with 0 if each question was answered and
with 3 if one was not.";

/// A whole number, also as 1e6.
pub(super) fn count(text: &str) -> Result<u64, String> {
    if let Ok(count) = text.parse::<u64>() {
        return Ok(count);
    }
    match text.parse::<f64>() {
        Ok(number) if number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number) => Ok(number as u64),
        _ => Err("a whole number of at least 0 is needed, as 10000 or 1e4".to_owned()),
    }
}
