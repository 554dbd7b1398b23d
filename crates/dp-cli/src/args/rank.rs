//! Flags of `dp rank`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use dp::ranker::NamedActivation;
use dp_rank::Ranking;
use dp_rank::metrics::{self, Cutoff};
use dp_rank::read::SplitLists;
use dp_rank::spectral::Normalise;

use super::account::count;
use super::algorithm::words;
use super::{Adjacency, FileName, TextArgs};

/// Arguments of `dp rank`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  dp rank train --data train.txt --loss bayesrank --model linear --epsilon 1 --delta 1e-4 --out ranker.json
  dp verify ranker.json
  dp rank evaluate --model ranker.json --data test.txt
  dp rank predict --model ranker.json --data new.txt --out scores.csv

A list is the result of one query: documents with features, each with a relevance grade. The grades of one list, as one
user gave them, are protected (--adjacency change-list-labels): documents, their features, the queries and the number of
lists are public. `--protect lists` protects a whole list, features and length included; only the number of lists is then
public. `--protect documents` protects all of one document; the lengths of lists are then public too. `--model` names a
kind of model in training, and a file elsewhere.")]
pub struct RankArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub job: RankJob,
}

/// The subcommands of `dp rank`.
#[derive(Debug, Clone, Subcommand)]
pub enum RankJob {
    /// Train a ranker with privacy; writes ranker and certificate
    Train(RankTrainArgs),
    /// Evaluate a ranker on lists with grades: NDCG, MAP, MRR, precision, ERR
    Evaluate(RankEvaluateArgs),
    /// Score documents: one line of CSV for each
    Predict(RankPredictArgs),
    /// Five-fold cross-validation, as an experiment: no private release
    Cv(RankCvArgs),
}

/// The format of a file of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// LETOR and SVMrank: `grade qid:ID index:value index:value …`, features numbered from 1.
    Letor,
    /// CSV with a header, one document per row.
    Csv,
}

/// Flags for reading lists.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Data")]
pub struct ListsArgs {
    /// Format of the files [default: by file name or first bytes]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<ListFormat>,
    /// Column of the query (CSV)
    #[arg(long, value_name = "COLUMN")]
    pub query: Option<String>,
    /// Column of the grade (CSV)
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// The flags for reading text
    #[command(flatten)]
    pub text: TextArgs,
    /// Treatment of a query whose rows are not consecutive
    #[arg(long, value_parser = words(dp::words::SPLIT_LISTS), value_name = "HOW", default_value = "refuse")]
    pub split_lists: SplitLists,
}

/// A listwise loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RankLoss {
    /// Minus the expected NDCG of the first k positions of a random ranking by the scores (Kuo et al. 2009).
    Bayesrank,
    /// The cross entropy of grades and scores over the first k positions (Cao et al. 2007).
    Listnet,
    /// The likelihood of the order of the grades (Xia et al. 2008).
    Listmle,
}

/// A kind of scorer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RankModel {
    /// A weighted sum of features.
    Linear,
    /// A network of one hidden layer.
    Mlp,
}

/// The bound on a list's gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum RankScaling {
    /// Clip each list's gradient to --clip.
    #[default]
    Clip,
    /// One weight for all gradients of a list, computed from its public features: for bayesrank with protected grades.
    Public,
}

/// Flags of model and training.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model")]
pub struct RankModelArgs {
    /// The listwise loss
    #[arg(long, value_enum, value_name = "LOSS")]
    pub loss: RankLoss,
    /// Number of top positions in the loss of bayesrank and listnet [default: 1]
    #[arg(long, value_name = "NUMBER", value_parser = count)]
    pub k: Option<u64>,
    /// The scorer
    #[arg(long, value_enum, value_name = "KIND")]
    pub model: RankModel,
    /// Hidden units of a network [default: 256]
    #[arg(long, value_name = "NUMBER", value_parser = count)]
    pub hidden: Option<u64>,
    /// Activation function of hidden units [default: relu]
    #[arg(long, value_parser = words(dp::words::ACTIVATION), value_name = "FUNCTION")]
    pub activation: Option<NamedActivation>,
    /// Spectral normalisation of a network's weight matrix; costs no privacy
    #[arg(long, value_parser = words(dp::words::NORMALISE), value_name = "WHEN")]
    pub normalise: Option<Normalise>,
    /// Map each feature of a list to [0, 1] by its range in that list
    #[arg(long)]
    pub normalise_features: bool,
    /// Number of features of a document [default: the largest index in the files, if features are public]
    #[arg(long, value_name = "NUMBER", value_parser = count)]
    pub features: Option<u64>,
    /// Largest possible grade, publicly known
    #[arg(long, value_name = "GRADE", default_value_t = 2)]
    pub largest_grade: u32,
    /// Expected batch size, in lists [default: 40, or 10 without privacy]
    #[arg(long, value_name = "NUMBER", value_parser = count)]
    pub batch_size: Option<u64>,
    /// Number of updates
    #[arg(long, value_name = "NUMBER", value_parser = count, default_value_t = 400)]
    pub updates: u64,
    /// Initial learning rate, which decays [default: epsilon, at most 4, or a fifth of that for listnet and
    /// listmle; without privacy 1, or 0.1 for listmle]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub step: Option<f64>,
    /// Clipping norm of a list's gradient [default: 0.1]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub clip: Option<f64>,
    /// Bound on gradients
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub scaling: RankScaling,
    /// Keep the largest grade for one random document of each drawn list (bayesrank)
    #[arg(long)]
    pub thin: bool,
}

/// The protected unit of a ranker's training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RankProtect {
    /// The grades of one list; documents, features and lengths are public.
    Grades,
    /// One whole list; the number of lists is public.
    Lists,
    /// One document of one list, its features and its grade; the number of lists and their lengths are public.
    Documents,
}

/// Flags of the privacy budget.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Privacy")]
pub struct RankPrivacyArgs {
    /// Epsilon of the guarantee, for one protected unit
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub epsilon: Option<f64>,
    /// Delta of the guarantee, more than 0 and far below one over the number of lists
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub delta: Option<f64>,
    /// Protected unit [default: grades]
    ///
    /// With `grades` features are public and may be read off the files, with `lists` and `documents` they are secret: the
    /// number of features has to be declared (--features), and queries and documents stay out of what is published. Replacing a
    /// whole list or document costs as much as changing the grades of a list; the presence of a list (lists with --adjacency
    /// add-remove) costs less.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub protect: Option<RankProtect>,
    /// Neighbouring relation [default: add-remove for lists; other units have one only]
    #[arg(long, value_enum, value_name = "RELATION")]
    pub adjacency: Option<Adjacency>,
    /// Limit on the work of calibrating the noise; 1 is about a second. If it is reached, the noise can be larger than needed
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub limit: Option<f64>,
    /// Train without privacy, for comparison
    #[arg(long)]
    pub non_private: bool,
}

/// Arguments of `dp rank train`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  dp rank train --data train.txt --loss bayesrank --model linear --epsilon 1 --delta 1e-4 --out ranker.json
  dp rank train --data views.csv --query user --label clicks --loss listnet --model mlp --hidden 16 --normalise always \
--epsilon 3 --delta 1e-4 --out network.json

  dp rank train --data train.txt --features 46 --protect lists --loss bayesrank --model linear --epsilon 1 --delta 1e-4 \
--out ranker.json

The guarantee is for one list: its grades, or all of it with --protect lists. For two lists of one person, epsilon is
twice as large and delta more than twice.")]
pub struct RankTrainArgs {
    /// The lists, in one file or several: LETOR or CSV, plain, .gz or .xz; `-` for standard input
    #[arg(long, value_name = "LISTS", num_args = 1.., required = true)]
    pub data: Vec<FileName>,
    /// Reading of lists.
    #[command(flatten)]
    pub lists: ListsArgs,
    /// Model and training.
    #[command(flatten)]
    pub model: RankModelArgs,
    /// Privacy budget.
    #[command(flatten)]
    pub privacy: RankPrivacyArgs,
    /// Make the noise reproducible, and the ranker NOT private
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Output file of ranker and certificate
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Replace an existing output file
    #[arg(long)]
    pub force: bool,
    /// List what would be read, written and spent, without reading a list
    #[arg(long)]
    pub dry_run: bool,
    /// Number of lists, for a dry run that computes the noise
    #[arg(long, value_name = "NUMBER", value_parser = count, requires = "dry_run")]
    pub n: Option<u64>,
}

/// The definitions of the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum RankMetrics {
    /// Those of LETOR's evaluation tool, as in published tables: 0 for lists shorter than k, no discount at position 2.
    #[default]
    Letor,
    /// Those of the literature: discount 1/log2(position + 1), short lists taken whole.
    Standard,
}

impl RankMetrics {
    /// The NDCG of one list by these definitions.
    pub fn ndcg(self) -> fn(&Ranking, Cutoff) -> f64 {
        match self {
            Self::Letor => metrics::ndcg_letor,
            Self::Standard => metrics::ndcg,
        }
    }
}

/// Arguments of `dp rank evaluate`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example:
  dp rank evaluate --model ranker.json --data test.txt

The figures are about these lists and computed from their grades without noise: no private release.")]
pub struct RankEvaluateArgs {
    /// Output of `dp rank train`
    #[arg(long, value_name = "FILE")]
    pub model: FileName,
    /// Lists with grades, in one file or several; `-` for standard input
    #[arg(long, value_name = "LISTS", num_args = 1.., required = true)]
    pub data: Vec<FileName>,
    /// Reading of lists.
    #[command(flatten)]
    pub lists: ListsArgs,
    /// Definitions of the metrics
    #[arg(long, value_enum, value_name = "WHOSE", default_value_t)]
    pub metrics: RankMetrics,
    /// Declare that these lists are public, so that the metrics of a ranker whose guarantee holds may be published
    #[arg(long)]
    pub public_data: bool,
}

/// Arguments of `dp rank predict`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example:
  dp rank predict --model ranker.json --data new.txt --out scores.csv

Grades play no role here and may be absent: lines of LETOR that begin with `qid:`, CSV without the column of grades.")]
pub struct RankPredictArgs {
    /// Output of `dp rank train`
    #[arg(long, value_name = "FILE")]
    pub model: FileName,
    /// Lists, in one file or several; `-` for standard input
    #[arg(long, value_name = "LISTS", num_args = 1.., required = true)]
    pub data: Vec<FileName>,
    /// Reading of lists.
    #[command(flatten)]
    pub lists: ListsArgs,
    /// Output file of the scores [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace an existing output file
    #[arg(long)]
    pub force: bool,
    /// List what would be read and written, without reading a list
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `dp rank cv`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example:
  dp rank cv --parts S1.txt S2.txt S3.txt S4.txt S5.txt --loss bayesrank --model linear --epsilon 1 --delta 1e-4 --json

Fold f trains on parts f, f+1 and f+2, validates on f+3 and tests on f+4, modulo 5. Nothing is chosen on the validation
part: its figures are reported beside those of the test part, and choosing by them would cost privacy that epsilon does
not include. Batches and noise are seeded, so that the figures are reproducible; they are computed from the grades
without noise. This is an experiment, not a private release.")]
pub struct RankCvArgs {
    /// The five parts: LETOR or CSV, plain, .gz or .xz
    #[arg(long, value_name = "LISTS", num_args = 5, required = true)]
    pub parts: Vec<FileName>,
    /// Reading of lists.
    #[command(flatten)]
    pub lists: ListsArgs,
    /// Model and training.
    #[command(flatten)]
    pub model: RankModelArgs,
    /// Privacy budget.
    #[command(flatten)]
    pub privacy: RankPrivacyArgs,
    /// Repetitions of each fold, with other batches and noise
    #[arg(long, value_name = "NUMBER", value_parser = count, default_value_t = 1)]
    pub repetitions: u64,
    /// The seed of the first training
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub seed: u64,
    /// Definitions of the metrics
    #[arg(long, value_enum, value_name = "WHOSE", default_value_t)]
    pub metrics: RankMetrics,
}
