//! The command-line arguments. Each flag is declared once, here; checks that need more than one flag or a theorem are made
//! when a command turns its arguments into its configuration.

mod account;
mod algorithm;
mod audit;
mod check;
mod config;
mod file_name;
mod input;
mod plan;
mod rank;
mod reproduce;
mod settings;
mod short_help;
mod sign;
mod train;
mod tune;

pub use account::{
    AccountArgs, AccountJob, ApproximateArgs, BatchArgs, CertificateArgs, Curve, DpsgdArgs, EventArgs, GdpArgs,
    LaplaceBallArgs, NoiseArgs, PureArgs, QuestionArgs, RandomizedResponseArgs, RepeatArgs, ZcdpArgs,
};
use algorithm::words;
pub use algorithm::{Algorithm, with_dashes};
pub use audit::{
    AuditAllArgs, AuditArgs, AuditClaimArgs, AuditJob, AuditMechanismArgs, AuditParameterArgs, AuditRecipeArgs,
    AuditRunArgs, AuditTableArgs, TrainingKind,
};
pub use check::CheckArgs;
pub use file_name::FileName;
pub(crate) use input::SQLITE;
pub use input::{FormArgs, Format, InputArgs, TextArgs};
pub use plan::PlanArgs;
pub use rank::{
    ListFormat, ListsArgs, RankArgs, RankCvArgs, RankEvaluateArgs, RankJob, RankLoss, RankMetrics, RankModel,
    RankModelArgs, RankPredictArgs, RankPrivacyArgs, RankProtect, RankScaling, RankTrainArgs,
};
pub use reproduce::{ReproduceArgs, ReproduceExportArgs, ReproduceJob, ReproduceListArgs, ReproduceRunArgs};
pub use settings::SettingsArgs;
pub(crate) use settings::refused;
pub use short_help::{Parsed, Refused, parse};
pub use sign::{SignArgs, SignJob, SignModelArgs, SignNewKeyArgs};
pub use train::{Adjacency, Curves, Fourier, Loss, Project, Scale, Threshold, TrainArgs};
pub use tune::{TuneArgs, TuningMethod};

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use dp_data::Workers;
use dp_data::encode::UnknownCategory;
use dp_data::sql::Dialect;

use crate::output::{Color, Console};
use crate::progress::ProgressMode;

/// Learn from people's records with differential privacy.
#[derive(Debug, Parser)]
#[command(
    name = "dp",
    version,
    about = "Learn from people's records with differential privacy",
    disable_help_subcommand = true,
    max_term_width = 110,
    after_help = "`dp help exit-codes` lists the exit codes, `dp explain CODE` the long form of any error.",
    after_long_help = after_long_help()
)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
    /// Flags of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
}

/// Flags that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct GlobalArgs {
    /// Print one JSON object on stdout, errors included
    #[arg(long, global = true)]
    pub json: bool,
    /// Also put the line and the cell of an error into the JSON, under `error.private`; otherwise they go to
    /// stderr only, because logs often keep stdout
    #[arg(long, global = true, requires = "json")]
    pub show_private: bool,
    /// File of flags (TOML), such as `epsilon = 1` below `[train]`; flags and the environment override it
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<FileName>,
    /// Print the given flags as such a file, and do nothing else
    #[arg(long, global = true)]
    pub print_config: bool,
    /// Print only errors on stderr
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Print more on stderr
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// Use of colours
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub color: Color,
    /// Form of progress on stderr
    #[arg(long, global = true, value_enum, value_name = "HOW", default_value_t)]
    pub progress: ProgressMode,
    /// Maximum number of threads [default: one for each core]; no result depends on it
    #[arg(
        long,
        global = true,
        env = "DP_THREADS",
        hide_env_values = true,
        value_name = "NUMBER",
        value_parser = workers,
        allow_hyphen_values = true
    )]
    pub threads: Option<Workers>,
}

/// Maximum number of threads that can be requested.
const MOST_THREADS: usize = 1024;

fn workers(text: &str) -> Result<Workers, String> {
    let threads = text.parse().ok().filter(|threads| (1..=MOST_THREADS).contains(threads)).and_then(NonZeroUsize::new);
    threads.map(Workers::new).ok_or_else(|| format!("a number of threads from 1 to {MOST_THREADS} is needed"))
}

impl GlobalArgs {
    /// The threads that a command may use.
    pub fn workers(&self) -> Workers {
        self.threads.unwrap_or_else(Workers::available)
    }

    /// The streams as these flags want them.
    pub fn console(&self) -> Console {
        let Self { json, show_private, quiet, verbose, color, .. } = *self;
        Console { json, quiet, verbose, color, show_private }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Draft a schema from a table, for review
    Schema(SchemaArgs),
    /// List all that is wrong with a table under its schema, and propose a schema
    Check(CheckArgs),
    /// Forecast the cost of privacy from public numbers, before data is read
    Plan(PlanArgs),
    /// Train a model with privacy; writes model and certificate
    Train(Box<TrainArgs>),
    /// Choose settings privately among several and train; writes model and certificate
    Tune(Box<TuneArgs>),
    /// Evaluate a model on records with labels
    Evaluate(EvaluateArgs),
    /// Score records: one line of CSV for each
    Predict(PredictArgs),
    /// Show the contribution of each column to a model's score
    ExplainModel(ExplainModelArgs),
    /// Learn to rank: train, measure and use rankers
    Rank(Box<RankArgs>),
    /// Compute epsilon, delta, noise, sampling rate or steps of releases from the others
    Account(AccountArgs),
    /// Attack a mechanism or a training recipe, and bound its epsilon from below
    Audit(AuditArgs),
    /// Recompute the guarantee of a model from its file alone
    Verify(VerifyArgs),
    /// Make a key and sign the certificate of a model
    Sign(SignArgs),
    /// Train, verify and evaluate a private model on a synthetic table
    Demo(DemoArgs),
    /// Reproduce the experiments of the literature, from files that you provide
    Reproduce(Box<ReproduceArgs>),
    /// Explain an error code or a term, or list all
    Explain(ExplainArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Write the manual pages to a folder
    Man(ManArgs),
    /// Show all flags of a command, `algorithms`, `algorithm NAME` with its settings and theory, `networks`, or `exit-codes`
    Help(HelpArgs),
}

impl Command {
    /// Returns whether standard output carries the complete result: not a summary of written files, and not output that is
    /// often read in part, such as predictions, the answers of a batch or help.
    pub fn result_is_on_stdout(&self) -> bool {
        let is_stdout = |out: &Path| out.as_os_str() == "-";
        match self {
            Self::Train(args) => is_stdout(&args.out),
            Self::Tune(args) => is_stdout(&args.train.out),
            Self::Schema(args) => args.out.as_deref().is_none_or(is_stdout),
            Self::Rank(args) => matches!(args.job, RankJob::Evaluate(_) | RankJob::Cv(_)),
            Self::Account(args) => !matches!(args.job, AccountJob::Batch(_)),
            Self::Check(_)
            | Self::Plan(_)
            | Self::Evaluate(_)
            | Self::ExplainModel(_)
            | Self::Verify(_)
            | Self::Audit(_) => true,
            _ => false,
        }
    }
}

/// Arguments of `dp schema`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  dp schema people.csv --label income --positive '>50K' --out schema.toml")]
pub struct SchemaArgs {
    /// The table: CSV, plain, .gz or .xz; `-` for standard input; Parquet files, a folder of them or a quoted pattern;
    /// an Excel workbook (.xlsx); `sqlite:FILE`
    #[arg(value_name = "FILE")]
    pub data: FileName,
    /// Table or view of the database, or sheet of the workbook, also `SHEET!A3:F200` [default: the only one]
    #[arg(long, value_name = "NAME", conflicts_with = "query")]
    pub table: Option<String>,
    /// Query whose result is the table
    #[arg(long, value_name = "SQL")]
    pub query: Option<String>,
    /// Label column
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Label value of the positive class
    #[arg(long, value_name = "VALUE", requires = "label", allow_hyphen_values = true)]
    pub positive: Option<String>,
    /// Label value of the negative class
    #[arg(long, value_name = "VALUE", requires = "label", allow_hyphen_values = true)]
    pub negative: Option<String>,
    /// Classes of a label of several classes, publicly known, separated by commas
    #[arg(
        long,
        value_name = "VALUES",
        value_delimiter = ',',
        requires = "label",
        allow_hyphen_values = true,
        conflicts_with_all = ["positive", "negative", "label_range"]
    )]
    pub classes: Vec<String>,
    /// Range of a numeric label, publicly known
    #[arg(
        long,
        num_args = 2,
        value_names = ["MIN", "MAX"],
        requires = "label",
        allow_hyphen_values = true,
        conflicts_with_all = ["positive", "negative"]
    )]
    pub label_range: Vec<f64>,
    /// The flags for reading text
    #[command(flatten)]
    pub text: TextArgs,
    /// Output file of the schema [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace an existing output file
    #[arg(long)]
    pub force: bool,
    /// List what would be read and written, without reading a record
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `dp evaluate`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  dp evaluate --model model.json --data test.csv --public-data
  dp evaluate --model model.json --data test.csv --threshold 0.3 --curves curves.svg
  dp evaluate --model model.json --data test.csv --epsilon 0.5 --out metrics.json")]
pub struct EvaluateArgs {
    /// Output of `dp train`
    #[arg(long, value_name = "FILE")]
    pub model: FileName,
    /// Records with labels; `-` for standard input
    #[command(flatten)]
    pub input: InputArgs,
    /// Treatment of a category that the schema does not list [default: the schema's]
    #[arg(long, value_parser = words(dp::words::ON_UNKNOWN), value_name = "HOW", help_heading = "Data")]
    pub on_unknown: Option<UnknownCategory>,
    /// Probability above which the class is the positive one, of two [default: the model's threshold]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub threshold: Option<f64>,
    /// Output file of the curves over all thresholds: a picture (.svg) or JSON (.json)
    #[arg(long, value_name = "FILE")]
    pub curves: Option<PathBuf>,
    /// Replace an existing output file
    #[arg(long)]
    pub force: bool,
    /// Declare that these records are public, so that the metrics of a model whose guarantee holds may be published
    #[arg(long)]
    pub public_data: bool,
    /// Release the metrics of private records with noise, at this epsilon for these records
    #[arg(
        long,
        value_name = "NUMBER",
        requires = "out",
        conflicts_with_all = ["public_data", "curves"],
        allow_hyphen_values = true,
        help_heading = "Privacy"
    )]
    pub epsilon: Option<f64>,
    /// Neighbouring relation of this release [default: add-remove]
    #[arg(long, value_enum, value_name = "RELATION", requires = "epsilon", help_heading = "Privacy")]
    pub adjacency: Option<Adjacency>,
    /// Output file of the released metrics and their certificate
    #[arg(long, value_name = "FILE", requires = "epsilon", help_heading = "Privacy")]
    pub out: Option<PathBuf>,
}

/// Arguments of `dp predict`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  dp predict --model model.json --data new.csv --out scores.csv
  dp predict --model model.json --sql postgres --table ward.people")]
pub struct PredictArgs {
    /// Output of `dp train`
    #[arg(long, value_name = "FILE")]
    pub model: FileName,
    /// Print a query in this dialect instead, which returns the columns of --table (inserted as SQL) and the predictions;
    /// nothing is read
    #[arg(long, value_name = "DIALECT", value_parser = dialects(), requires = "table", conflicts_with = "data")]
    pub sql: Option<Dialect>,
    /// The records, with or without the label, as for `dp train`; `-` for standard input
    #[arg(long, value_name = "FILE", required_unless_present = "sql", help_heading = "Data")]
    pub data: Option<FileName>,
    /// The flags for reading them
    #[command(flatten)]
    pub form: FormArgs,
    /// Treatment of a category that the schema does not list [default: the schema's]
    #[arg(long, value_parser = words(dp::words::ON_UNKNOWN), value_name = "HOW", help_heading = "Data", conflicts_with = "sql")]
    pub on_unknown: Option<UnknownCategory>,
    /// Column of the records that is copied before the scores, such as the number of a patient; may be repeated
    #[arg(long, value_name = "COLUMN", help_heading = "Data", conflicts_with = "sql")]
    pub id: Vec<String>,
    /// Probability above which the class is the positive one, of two [default: the model's threshold]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub threshold: Option<f64>,
    /// Output file of the scores [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace an existing output file
    #[arg(long)]
    pub force: bool,
    /// List what would be read and written, without reading a record
    #[arg(long)]
    pub dry_run: bool,
}

fn dialects() -> impl TypedValueParser<Value = Dialect> {
    PossibleValuesParser::new(Dialect::ALL.map(Dialect::id))
        .try_map(|id| Dialect::of_id(&id).ok_or("there is no such dialect"))
}

/// Arguments of `dp explain-model`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example:
  dp explain-model model.json --out shapes.svg

A number contributes a curve over its public range, a category a bar; the score is their sum divided by the norm of
the record. All of it follows from the released model, so that it costs no privacy.")]
pub struct ExplainModelArgs {
    /// Output of `dp train`; `-` for standard input
    #[arg(value_name = "MODEL")]
    pub model: FileName,
    /// Class whose score is explained, of several [default: the first]
    #[arg(long, value_name = "CLASS", allow_hyphen_values = true)]
    pub class: Option<String>,
    /// Output file of a picture (SVG)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace an existing output file
    #[arg(long, requires = "out")]
    pub force: bool,
}

/// Arguments of `dp verify`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example:
  dp verify model.json
  dp verify model.json --key curator.key.pub

Exits with 5 if the guarantee does not hold. It verifies that the guarantee follows from the training that the
certificate describes. Only the curator can vouch that this training took place (number of records, secret noise, public
ranges): check the curator's signature with --key, or compare the printed SHA-256 with the one that the curator
published.")]
pub struct VerifyArgs {
    /// The model file; `-` for standard input
    #[arg(value_name = "MODEL")]
    pub model: FileName,
    /// Public key of the curator, whose signature is then required
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Limit on the steps of the recomputation: an untrusted file could require days
    #[arg(long, value_name = "NUMBER", default_value_t = dp::verify::WORK)]
    pub work: u64,
    /// Signature file [default: MODEL.sig]
    #[arg(long, value_name = "FILE", requires = "key")]
    pub signature: Option<PathBuf>,
}

/// Arguments of `dp demo`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  dp demo --dir demo --epsilon 0.5")]
pub struct DemoArgs {
    /// Folder for data, models and report; created if it does not exist
    #[arg(long, value_name = "DIR", default_value = "demo")]
    pub dir: String,
    /// Number of training rows
    #[arg(long, value_name = "NUMBER", default_value_t = 50_000)]
    pub rows: usize,
    /// Epsilon of the private model
    #[arg(long, value_name = "NUMBER", default_value_t = 1.0, allow_hyphen_values = true)]
    pub epsilon: f64,
    /// Delta of the private model
    #[arg(long, value_name = "NUMBER", default_value_t = 1e-6, allow_hyphen_values = true)]
    pub delta: f64,
    /// Seed of the synthetic table (the noise of the private model is never seeded)
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub data_seed: u64,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    /// List what would be read and written, without reading a record
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `dp explain`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  dp explain csv.ragged\n  dp explain clipping-norm")]
pub struct ExplainArgs {
    /// Error code, as in the brackets of a message, or a term such as `epsilon` or `zero-out` [default: list all]
    #[arg(value_name = "CODE")]
    pub code: Option<String>,
}

/// Arguments of `dp completions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  dp completions bash > dp.bash")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `dp man`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  dp man manual-pages")]
pub struct ManArgs {
    /// The folder; created if it does not exist
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Replace existing pages
    #[arg(long)]
    pub force: bool,
    /// List what would be read and written, without reading a record
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `dp help`.
#[derive(Debug, Clone, Args)]
pub struct HelpArgs {
    /// A command, as `train` or `account dpsgd`; `algorithms`; `algorithm NAME`; `networks`; or `exit-codes`
    #[arg(value_name = "TOPIC", num_args = 0..)]
    pub topic: Vec<String>,
}

/// Returns a value as typed.
pub(crate) fn word<T: ValueEnum>(value: &T) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn after_long_help() -> String {
    format!(
        "Examples:\n  dp schema people.csv --label income --positive '>50K' --out schema.toml\n  dp train --data \
         people.csv --schema schema.toml --epsilon 1 --out model.json\n  dp verify model.json\n  dp account dpsgd --noise-multiplier 1.1 --sampling-rate 0.01 --steps 10000 --delta 1e-5\n\nExit codes:\n{}\n\
         `dp explain CODE` explains any error at length.",
        crate::exit_code::table()
    )
}
