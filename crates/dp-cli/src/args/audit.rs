//! Flags of `dp audit`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use dp_accountant::certificate::NoiseMode;

use super::account::count;
use super::algorithm::words;
use super::{Adjacency, Algorithm, Loss};
use crate::commands::audit;

/// Arguments of `dp audit`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  dp audit list
  dp audit mechanism gaussian laplace
  dp audit mechanism gaussian --std-dev 2.5 --sensitivity 0.1 --dim 100
  dp audit recipe --algorithm bolt-on-convex --epsilon 1 --delta 1e-5 --report audit.md --picture audit.svg
  dp audit mechanism laplace --claim-epsilon 0.5
  dp audit table

An audit plays the attacker: it runs a mechanism on two neighbouring inputs many times, picks a test on one half of the
runs and bounds epsilon from below on the other half. A bound above the claim refutes it, and the exit code is 5. A bound
below it refutes nothing at this confidence, which is not a proof.")]
pub struct AuditArgs {
    /// The subject of the audit
    #[command(subcommand)]
    pub job: AuditJob,
}

/// The subject of the audit.
#[derive(Debug, Clone, Subcommand)]
pub enum AuditJob {
    /// List the mechanisms and recipes that can be audited
    List,
    /// Audit a mechanism on its worst-case inputs
    Mechanism(Box<AuditMechanismArgs>),
    /// Audit a training recipe, noise included, on canary data of the given shape
    Recipe(Box<AuditRecipeArgs>),
    /// Audit trainings of models, tuned models and rankers as black boxes; print claim and bound
    Table(Box<AuditTableArgs>),
    /// Audit all mechanisms and recipes
    All(Box<AuditAllArgs>),
}

/// Effort and output.
#[derive(Debug, Clone, Default, Args)]
pub struct AuditRunArgs {
    /// Runs on each of the two inputs, half of them to choose the test [default: depends on the cost of a run]
    #[arg(long, value_name = "NUMBER", value_parser = count, allow_hyphen_values = true, help_heading = "Effort")]
    pub trials: Option<u64>,
    /// Use a hundred times as many runs
    #[arg(long, conflicts_with = "trials", help_heading = "Effort")]
    pub long: bool,
    /// Confidence: probability that the whole command refutes no sound claim
    #[arg(long, value_name = "NUMBER", default_value_t = 0.999, allow_hyphen_values = true, help_heading = "Effort")]
    pub confidence: f64,
    /// The seed of all runs, or `random`
    #[arg(long, value_name = "SEED", default_value = "1", allow_hyphen_values = true, help_heading = "Effort")]
    pub seed: String,

    /// Output file of a report, in Markdown
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Output file of a picture (.svg): the claimed trade-off curve and the attack's errors
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub picture: Option<PathBuf>,
    /// Replace existing output files
    #[arg(long, help_heading = "Output")]
    pub force: bool,
    /// Check all flags, prepare the audits and list the files to be written, without running an audit
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
}

/// A claim that replaces the subject's own.
#[derive(Debug, Clone, Default, Args)]
pub struct AuditClaimArgs {
    /// Epsilon to refute, instead of the claimed one
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Claim")]
    pub claim_epsilon: Option<f64>,
    /// Delta to refute [default: the claimed one]
    #[arg(long, value_name = "NUMBER", requires = "claim_epsilon", allow_hyphen_values = true, help_heading = "Claim")]
    pub claim_delta: Option<f64>,
}

/// Public parameters of a mechanism.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Parameters of your own")]
pub struct AuditParameterArgs {
    /// Standard deviation of Gaussian noise
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub std_dev: Option<f64>,
    /// Scale of the noise
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub scale: Option<f64>,
    /// Epsilon of the calibration of the noise
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub epsilon: Option<f64>,
    /// Sensitivity: distance of neighbours [default: 1]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub sensitivity: Option<f64>,
    /// Number of coordinates, at most 2^20 [default: 1]
    #[arg(long, value_name = "NUMBER", value_parser = count, allow_hyphen_values = true)]
    pub dim: Option<u64>,
    /// Number of possible answers [default: 2]
    #[arg(long, value_name = "NUMBER", value_parser = count, allow_hyphen_values = true)]
    pub buckets: Option<u64>,
    /// Noise mode [default: exact]
    #[arg(long, value_parser = words(dp::words::NOISE), value_name = "MODE")]
    pub noise: Option<NoiseMode>,
}

/// Arguments of `dp audit mechanism`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  dp audit mechanism gaussian
  dp audit mechanism laplace staircase/4 --trials 1e6 --confidence 0.999999 --json
  dp audit mechanism gaussian --std-dev 2.5 --sensitivity 0.1 --dim 100
  dp audit mechanism randomized-response --epsilon 1.5 --buckets 12

A name stands for all pairs of inputs that begin with it: `dp audit list` shows them. With parameters it is one mechanism
as you deploy it: gaussian takes --std-dev; laplace, laplace-ball and discrete-laplace --scale or --epsilon;
discrete-gaussian --scale; staircase --epsilon; randomized-response --epsilon and --buckets.")]
pub struct AuditMechanismArgs {
    /// The mechanisms, or some of their pairs of inputs
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    /// The parameters.
    #[command(flatten)]
    pub of: AuditParameterArgs,
    /// The claim.
    #[command(flatten)]
    pub claim: AuditClaimArgs,
    /// Effort and output.
    #[command(flatten)]
    pub run: AuditRunArgs,
}

/// Arguments of `dp audit recipe`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  dp audit recipe --algorithm bolt-on-convex --epsilon 1 --delta 1e-5
  dp audit recipe --algorithm bolt-on-strongly-convex --epsilon 0.5 --loss logistic --lambda 0.01 --n 1000 --dim 5

First, models are trained without noise on many pairs of data sets that differ in one record: the models of a pair may
differ by at most the claimed sensitivity. Then the whole recipe, noise included, runs on the pair with the largest
difference. All data are synthetic: no file is read. A flag that has no effect on the recipe's audit is refused; each
recipe of rankers (rank-grades, rank-list-presence, rank-lists, rank-documents) has its own relation and loss.")]
pub struct AuditRecipeArgs {
    /// The recipe: `dp audit list` shows them
    #[arg(long, value_name = "NAME", value_parser = recipes())]
    pub algorithm: String,
    /// Epsilon of the release
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, default_value_t = 1.0, help_heading = "Recipe")]
    pub epsilon: f64,
    /// Delta of the release; 0 selects pure differential privacy
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, default_value_t = 1e-5, help_heading = "Recipe")]
    pub delta: f64,
    /// Neighbouring relation [default: replace-one]
    #[arg(long, value_enum, value_name = "RELATION", help_heading = "Recipe")]
    pub adjacency: Option<Adjacency>,
    /// The loss [default: huber-svm]
    #[arg(long, value_enum, value_name = "NAME", help_heading = "Recipe")]
    pub loss: Option<Loss>,
    /// Half width of the smooth part of the hinge [default: 0.1]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Recipe")]
    pub huber_width: Option<f64>,
    /// L2 regularisation [default: 0.5 if the recipe needs it, otherwise none]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Recipe")]
    pub lambda: Option<f64>,
    /// Passes over the records [default: 1]
    #[arg(long, value_name = "NUMBER", help_heading = "Recipe")]
    pub passes: Option<u32>,
    /// Batch size [default: 4]
    #[arg(long, value_name = "NUMBER", help_heading = "Recipe")]
    pub batch_size: Option<u64>,
    /// Radius of the ball onto which weights are projected
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Recipe")]
    pub radius: Option<f64>,
    /// Noise mode [default: both in turn]
    #[arg(long, value_parser = words(dp::words::NOISE), value_name = "MODE", help_heading = "Recipe")]
    pub noise: Option<NoiseMode>,
    /// Number of records
    #[arg(long, value_name = "NUMBER", value_parser = count, allow_hyphen_values = true, default_value = "20", help_heading = "Recipe")]
    pub n: u64,
    /// Number of features
    #[arg(long, value_name = "NUMBER", default_value_t = 2, help_heading = "Recipe")]
    pub dim: u32,
    /// Number of candidate pairs of data sets, of which the farthest is used
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, help_heading = "Effort")]
    pub pairs: u32,
    /// The claim.
    #[command(flatten)]
    pub claim: AuditClaimArgs,
    /// Effort and output.
    #[command(flatten)]
    pub run: AuditRunArgs,
}

/// A kind of training in `dp audit table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TrainingKind {
    /// Every algorithm of `dp train`, of two classes.
    TwoClasses,
    /// The same for three classes, by softmax regression.
    Softmax,
    /// The same for three classes, one-vs-all.
    OneVsAll,
    /// The private methods of `dp tune`, with two settings.
    Tune,
    /// Trainings of two classes on rows in a temporary file, and on sums of an engine that keeps its rows.
    Sources,
    /// Rankers of `dp rank train`, for every loss and every protected unit.
    Rank,
}

/// Arguments of `dp audit table`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  dp audit table
  dp audit table --algorithm dp-sgd obj-pert --trials 10000
  dp audit table --kind tune rank
  dp audit table --long --seed random --json
  dp audit table --kind two-classes --algorithm bolt-on-convex --claim-epsilon 0.3

Each training is that of a command (shown with --json) at (1, 1e-3) and at (4, 1e-5), under its default relation, on data
sets of 2 to 7 records (lists) that differ in one. The attacker sees only what is released. All pairs of data sets of
extreme records are listed, up to symmetry. For each row a pilot with its own runs chooses one pair, among all or, if its
runs do not suffice, among a sample drawn by the seed. Then half of the runs choose a direction and a threshold, and the
other half are counted. The confidence of the command is divided among the rows.")]
pub struct AuditTableArgs {
    /// The kinds of training [default: all]
    #[arg(long, value_enum, value_name = "KIND", num_args = 1..)]
    pub kind: Vec<TrainingKind>,
    /// The algorithms, as for `dp train`; not for rankers [default: all]
    #[arg(long, value_enum, value_name = "NAME", num_args = 1.., hide_possible_values = true)]
    pub algorithm: Vec<Algorithm>,
    /// The claim.
    #[command(flatten)]
    pub claim: AuditClaimArgs,
    /// Effort and output.
    #[command(flatten)]
    pub run: AuditRunArgs,
}

/// Arguments of `dp audit all`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  dp audit all\n  dp audit all --long --seed random --report audit.md")]
pub struct AuditAllArgs {
    /// Effort and output.
    #[command(flatten)]
    pub run: AuditRunArgs,
}

fn recipes() -> PossibleValuesParser {
    PossibleValuesParser::new(audit::recipes().map(|(name, _)| name))
}
