//! Flags of `dp train`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use dp_data::encode::ProjectionKind;
use dp_losses::Penalty;

use super::{FileName, InputArgs};

/// A training algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Algorithm {
    /// Chosen, with its settings, by public numbers alone: records, features, budget, loss. Says why and what to expect; takes
    /// --lambda, --passes and --radius.
    Auto,
    /// Bolt-on private SGD for convex losses: noise once, on the trained weights (Wu et al. 2017, Algorithm 1).
    #[default]
    BoltOnConvex,
    /// The same for strongly convex objectives: L2 regularisation makes the sensitivity smaller (Algorithm 2).
    BoltOnStronglyConvex,
    /// Noise in every step, in a ball, on random batches, with steps by the expected gradient (BST14: Bassily et al. 2014).
    Bst14Convex,
    /// The same for strongly convex objectives, with steps 1/(lambda step).
    Bst14StronglyConvex,
    /// DP-SGD: noise on the clipped gradients of each step, on random batches (Abadi et al. 2016). Needs a delta.
    DpSgd,
    /// Gradient descent on all records, noise on each step's sum; as many steps as public numbers suggest. Needs a delta.
    DpGd,
    /// Gradient descent on the records in their order, a batch at a time, with noise that later steps take back in part: needs
    /// no random batches (DP-FTRL, Kairouz et al. 2021). Needs a delta.
    DpFtrl,
    /// Newton's method with noisy curvature: few steps, for smooth losses of two classes (Ganesh et al. 2023). Needs a
    /// delta.
    DpNewton,
    /// DP-SGD with the step sizes of Adam (Kingma and Ba 2015).
    DpAdam,
    /// The same without the noise's part in Adam's mean squares (Tang et al. 2024).
    DpAdambc,
    /// Linearised ADMM with a sparse copy of the model, noise on the gradients of random batches. Needs a delta.
    SsAdmm,
    /// The same on all records at each step, with noise on the model.
    MpAdmm,
    /// Parties with records of their own agree on a model, each with noise on its own gradients (Huang et al. 2020); a record
    /// costs what its own party's sums cost. Needs a delta.
    DpAdmm,
    /// Gradients of all records now and then, and in between noise that shrinks with the distance from there (Johnson, Zhang
    /// 2013; Wang et al. 2017). Needs a delta.
    DpSvrg,
    /// Least squares on noisy second moments, in one pass: for few features, and where others start from.
    NoisyMoments,
    /// A random linear term in the objective, whose certified minimiser is released: the whole model costs what one noisy
    /// gradient costs (Chaudhuri et al. 2011, accounted exactly).
    ObjPert,
    /// The same with Gaussian noise and a minimiser as near as --tolerance says: approximate minima perturbation (Iyengar et
    /// al. 2019, accounted exactly). Needs a delta.
    Amp,
    /// ADMM whose every iteration releases the certified minimiser of a perturbed objective, with a sparse copy of the model;
    /// --steps is the number of iterations.
    AdmmObjPert,
    /// One pass in phases, each half as long as the one before and with shorter steps, noise at the end of each (Feldman et
    /// al. 2020, Algorithm 2).
    PhasedSgd,
    /// The same phases, each a certified minimiser: also for losses with kinks (section 4.2).
    PhasedErm,
    /// Noise on every iterate, of which only the last is released: the noise of later steps hides earlier records (Feldman
    /// et al. 2020, Algorithm 1).
    Pnsgd,
    /// The same in one pass, on batches that grow towards the end as fast as later noise gets scarce (Theorems 3.5, 3.6).
    SnowballSgd,
    /// Gradient descent on the same batches in each pass, averaged and restarted every so many passes; noise once, for
    /// a record whose position is secret. Needs a delta.
    RsgdAr,
    /// The same without averages, with the noise of the worst position. Needs a delta.
    Nsgd,
    /// Descent on the gradient of all records, noise once (Zhang et al. 2017). Needs a delta.
    OutPertGd,
    /// Steps along the coordinates, each chosen by the exponential mechanism: no gradient (Zhang et al. 2013).
    PrivGene,
    /// The same answer for everyone, by a noisy mean of the labels: what any model has to beat.
    Majority,
    /// Gradient descent whose steps are found by a noisy line search, within a budget that is spent as needed. Needs a
    /// delta.
    DpBlgd,
    /// The same in random batches, drawn afresh for each gradient and each search. Needs a delta.
    DpBlsgd,
    /// The same with clipping norms that shrink where gradients disagree. Needs a delta.
    DpBlsgdAc,
    /// Gradient descent whose steps are the best of a few, by a noisy choice (Lee, Kifer 2018). Needs a delta.
    DpAgd,
    /// Noise in every update, so that every iterate might be published (SCS13).
    Scs13,
    /// No privacy at all: for comparison, never for release.
    NonPrivate,
}

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
    /// The same with a smoother passage, which obj-pert needs less noise for.
    LogCosh,
    /// Absolute errors, for numbers; not smooth, so not for every algorithm.
    Absolute,
}

/// Which data sets count as neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Adjacency {
    /// One record is present, or replaced by a null record; the number of records is public.
    AddRemove,
    /// One record is changed to any other; the number of records is public.
    ReplaceOne,
    /// The labels of one list change: for rankers, which `dp train` does not train.
    ChangeListLabels,
}

/// How the step size changes from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Schedule {
    /// The same at each step.
    Constant,
    /// Falls like 1/sqrt(step), from `--step-size` on.
    InverseSqrt,
    /// 2/(smoothness (step + sqrt(n))).
    Decreasing,
    /// 2/(smoothness (sqrt(step) + sqrt(n))).
    SquareRoot,
    /// min(1/smoothness, 1/(lambda step)), for strongly convex objectives.
    StronglyConvex,
    /// Halved from phase to phase, each half as long as the one before; for `snowball-sgd`.
    Halving,
    /// Falls like 1/pass, from `--step-size` on; for `rsgd-ar` and `nsgd`.
    PerPass,
    /// The same, counted anew from each restart; for `rsgd-ar`.
    Restart,
}

/// Which of the iterates is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Averaging {
    /// The last one.
    Last,
    /// The mean of all.
    Uniform,
    /// The mean of the second half.
    Suffix,
    /// A mean with weights that grow with the step.
    Polynomial,
}

/// The order of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// One secret random order, the same in every pass.
    Fixed,
    /// A new secret random order for each pass.
    Fresh,
}

/// When training stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stop {
    /// After the given number of passes.
    Passes,
    /// As soon as the weights are provably near the minimiser; the guarantee does not depend on when that is.
    Certified,
}

/// How the records of a step are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BatchSampling {
    /// Each record by itself, with the same probability.
    Poisson,
    /// A uniformly random batch of fixed size.
    Fixed,
    /// All records in a secret order, a batch at a time.
    Passes,
}

/// A form of an algorithm that is not the one of today.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Variant {
    /// Noise as the paper prints it, where the accountant finds it enough; for scs13, bst14 and amp.
    Published,
    /// obj-pert with the noise of Chaudhuri, Monteleoni and Sarwate 2011, without delta.
    Cms11,
    /// obj-pert with the noise of Kifer, Smith and Thakurta 2012.
    Kst12,
    /// obj-pert with the noise of Redberg, Koskela and Wang 2023, by a Renyi bound.
    Rdp,
}

/// How `dp-blgd` and its kin find the length of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LineSearch {
    /// The first that lowers the loss enough, from the longest on.
    Backtracking,
    /// One that lowers it more than others, by the exponential mechanism.
    Selection,
}

/// Where the curvature of `dp-newton` comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Curvature {
    /// The Hessian at each step's point, released with the gradient.
    EachStep,
    /// An upper bound, released once: faster where there are many features.
    Once,
}

/// How the models of the classes share the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Share {
    /// One release of all models together; for the bolt-on algorithms.
    Joint,
    /// Each model is released by itself, with the noise with which all of them together stay within the budget.
    Composed,
    /// Each model gets an equal part of epsilon and delta: for comparison with the literature, never better.
    Split,
}

/// The distribution of the noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputNoise {
    /// Whichever of the two has the smaller expected norm.
    Least,
    /// The Laplace ball: pure epsilon.
    LaplaceBall,
    /// The Gaussian: needs a delta.
    Gaussian,
}

/// How rows are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Scale {
    /// Numeric columns to [-1, 1], then each row divided by its own norm.
    #[default]
    UnitRows,
    /// Numeric columns to [0, 1], then `--row-norm`.
    Unit,
}

/// What makes the norm of a row at most 1 under `--scale unit` and for libsvm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RowNorm {
    /// Rows longer than 1 are shortened to 1.
    Clip,
    /// Every row is divided by its norm.
    Unit,
}

/// A random projection as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Project {
    /// Which map.
    pub kind: ProjectionKind,
    /// The number of features after it, the intercept not counted.
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

/// How noise is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Noise {
    /// By exact samplers, on a grid: the theorem as stated.
    #[default]
    Exact,
    /// Double precision, rounded to a grid; the certificate names the idealisation.
    Rounded,
}

/// The arithmetic of training. Privacy arithmetic is always double.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Float {
    /// Double precision.
    #[default]
    F64,
    /// Single precision: half the memory; the certificate names what is assumed of its rounding.
    F32,
}

/// Arguments of `dp train`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  dp train --data people.csv --schema schema.toml --epsilon 1 --out model.json
  dp train --data people.csv --label income --schema-from-data --epsilon 1 --out model.json
  dp train --data people.libsvm.gz --dim 123 --epsilon 0.5 --out sparse.json
  dp train --data people.libsvm.gz --dim 123 --project gaussian:50 --epsilon 1 --out small.json
  dp train --data images.idx.gz --labels labels.idx.gz --positive 0 --epsilon 1 --out zero.json")]
pub struct TrainArgs {
    /// The records.
    #[command(flatten)]
    pub input: InputArgs,
    /// The column to be predicted (CSV) [default: the schema's]
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    pub label: Option<String>,
    /// The value of the label that counts as positive [default: the schema's; +1 for libsvm]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true, help_heading = "Data")]
    pub positive: Option<String>,
    /// The value of the label that counts as negative [default: the schema's; -1 and 0 for libsvm]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true, help_heading = "Data")]
    pub negative: Option<String>,
    /// The classes of a label of several classes, publicly known, divided by commas [default: the schema's]
    #[arg(
        long,
        value_name = "VALUES",
        value_delimiter = ',',
        allow_hyphen_values = true,
        conflicts_with_all = ["positive", "negative", "label_range"],
        help_heading = "Data"
    )]
    pub classes: Vec<String>,
    /// The range of a label that is a number, publicly known [default: the schema's]
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
    /// How columns are scaled (CSV)
    #[arg(long, value_enum, value_name = "HOW", default_value_t, help_heading = "Data")]
    pub scale: Scale,
    /// What makes rows short [default: clip]
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Data")]
    pub row_norm: Option<RowNorm>,
    /// Project the features at random to fewer: gaussian:NUMBER or coordinates:NUMBER
    #[arg(long, value_name = "HOW", help_heading = "Data")]
    pub project: Option<Project>,
    /// The public seed of the projection [default: drawn afresh]; never one that was chosen by looking at records
    #[arg(long, value_name = "NUMBER", requires = "project", help_heading = "Data")]
    pub project_seed: Option<u64>,

    /// Epsilon of the guarantee
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Privacy")]
    pub epsilon: Option<f64>,
    /// Delta of the guarantee; 0 is pure differential privacy
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, default_value_t = 0.0, help_heading = "Privacy")]
    pub delta: f64,
    /// Which data sets count as neighbours [default: as in the algorithm's paper, replace-one for bolt-on; add-remove for auto and dp-sgd]
    #[arg(long, value_enum, value_name = "RELATION", help_heading = "Privacy")]
    pub adjacency: Option<Adjacency>,
    /// How noise is drawn [default: exact]
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Privacy")]
    pub noise: Option<Noise>,
    /// Draw noise from this seed: reproducible and therefore NOT private
    #[arg(long, value_name = "NUMBER", help_heading = "Privacy")]
    pub seed: Option<u64>,

    /// The algorithm
    #[arg(long, value_enum, value_name = "NAME", default_value_t, help_heading = "Algorithm")]
    pub algorithm: Algorithm,
    /// The loss [default: by the label: logistic for two classes, softmax for several, log-cosh for numbers]
    #[arg(long, value_enum, value_name = "NAME", help_heading = "Algorithm")]
    pub loss: Option<Loss>,
    /// For a label of several classes: one model for each class against the rest, in place of softmax regression
    #[arg(long, value_enum, value_name = "SHARE", help_heading = "Algorithm")]
    pub one_vs_all: Option<Share>,
    /// Half width of the smooth part of huber-svm [default: 0.1], of huber-regression and of log-cosh [default: 0.5]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Algorithm")]
    pub huber_width: Option<f64>,
    /// L2 regularisation [default: by n, d and the budget where strongly convex, 0.001 without privacy, else none]
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', allow_hyphen_values = true, help_heading = "Algorithm")]
    pub lambda: Vec<f64>,
    /// Passes over the records [default: 10, more on small tables where strongly convex or without privacy]
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', help_heading = "Algorithm")]
    pub passes: Vec<u32>,
    /// Steps, for algorithms that count steps and not passes; of dp-svrg those after each gradient of all records, of which
    /// --passes is the number
    #[arg(long, value_name = "NUMBER", help_heading = "Algorithm")]
    pub steps: Option<u64>,
    /// Records in a batch
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', help_heading = "Algorithm")]
    pub batch_size: Vec<u64>,
    /// How the records of a step are drawn
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Algorithm")]
    pub sampling: Option<BatchSampling>,
    /// Another form of the algorithm [default: that with the least noise]
    #[arg(long, value_enum, value_name = "NAME", help_heading = "Algorithm")]
    pub variant: Option<Variant>,
    /// Share of the cost spent on the point that the regulariser pulls to, from noisy moments [default: 0, no such point]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, help_heading = "Algorithm")]
    pub centre_share: Option<f64>,
    /// The minimiser is certified once the mean objective's gradient is no longer than this; the less exact, the more noise on
    /// it [default: as exact as rounding lets be certified]
    #[arg(long, value_name = "NORM", allow_hyphen_values = true, help_heading = "Algorithm")]
    pub tolerance: Option<f64>,
    /// Share of the cost spent on gradients of all records, where steps on batches have the rest [default: 0.7]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, help_heading = "Algorithm")]
    pub full_share: Option<f64>,
    /// Each record's gradient is clipped to this norm
    #[arg(long, value_name = "NORM", allow_hyphen_values = true, help_heading = "Algorithm")]
    pub clip: Option<f64>,
    /// A penalty that makes weights zero: l1:NUMBER, elastic-net:NUMBER:RIDGE, group:NUMBER:SIZES, nuclear:NUMBER,
    /// scad:NUMBER:A or mcp:NUMBER:GAMMA, of which SIZES, A and GAMMA may be left away; the intercept's is not shrunk [default:
    /// none; l1:0.001 for ADMM]
    #[arg(long, value_name = "KIND:NUMBER", help_heading = "Algorithm")]
    pub penalty: Option<Penalty>,
    /// Short for --penalty l1:NUMBER
    #[arg(
        long,
        value_name = "NUMBER",
        allow_hyphen_values = true,
        conflicts_with = "penalty",
        help_heading = "Algorithm"
    )]
    pub l1: Option<f64>,
    /// How strongly the copies of ADMM draw each other [default: 0.25 for ss-admm, 0.5 for mp-admm, 0.05 for dp-admm, by n, d and the budget for admm-obj-pert]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Algorithm")]
    pub rho: Option<f64>,
    /// Where the curvature comes from [default: each-step]
    #[arg(long, value_enum, value_name = "WHERE", help_heading = "Algorithm")]
    pub curvature: Option<Curvature>,
    /// Share of the cost that is the curvature's [default: 0.4, which costs nothing for the logistic loss; 0.2 if released once]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, help_heading = "Algorithm")]
    pub curvature_share: Option<f64>,
    /// Over how many steps noise is correlated [default: as many as serve best]
    #[arg(long, value_name = "STEPS", help_heading = "Algorithm")]
    pub bands: Option<u64>,
    /// Take the records in the order in which they come, which may be known to anyone but must not depend on what they
    /// hold; else in a random one
    #[arg(long, help_heading = "Algorithm")]
    pub in_order: bool,
    /// Parties of dp-admm, each with an equal part of the records [default: 2]
    #[arg(long, value_name = "NUMBER", help_heading = "Algorithm")]
    pub parties: Option<u64>,
    /// Each record's loss is clamped to this
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Algorithm")]
    pub clip_loss: Option<f64>,
    /// How the length of a step is found
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Algorithm")]
    pub line_search: Option<LineSearch>,
    /// The weights are kept within this distance of 0 [default: 2 for bolt-on with the squared loss]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Algorithm")]
    pub radius: Option<f64>,
    /// First step size
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Algorithm")]
    pub step_size: Option<f64>,
    /// How the step size changes
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Algorithm")]
    pub schedule: Option<Schedule>,
    /// Which of the iterates is released
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Algorithm")]
    pub averaging: Option<Averaging>,
    /// Go on from the mean of every so many passes [default: half of them for rsgd-ar]
    #[arg(long, value_name = "PASSES", help_heading = "Algorithm")]
    pub restart_every: Option<u64>,
    /// The order of the records
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Algorithm")]
    pub order: Option<Order>,
    /// When training stops
    #[arg(long, value_enum, value_name = "WHEN", help_heading = "Algorithm")]
    pub stop: Option<Stop>,
    /// Look for a certified minimiser with at least so many gradients, so that time tells of no record unless more are needed
    #[arg(long, value_name = "N", help_heading = "Algorithm")]
    pub gradients: Option<u64>,
    /// The distribution of the noise: on the released model, on each update, or in the objective
    #[arg(long, value_enum, value_name = "LAW", help_heading = "Algorithm")]
    pub output_noise: Option<OutputNoise>,
    /// The arithmetic of training
    #[arg(long, value_enum, value_name = "KIND", default_value_t, help_heading = "Algorithm")]
    pub float: Float,

    /// Where to write model and certificate; `-` for standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: PathBuf,
    /// Where to write a short report for readers of the model
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Replace existing output files
    #[arg(long, help_heading = "Output")]
    pub force: bool,
    /// Say what would happen and what it would cost; read no record
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    /// Number of records, for --dry-run
    #[arg(long, value_name = "NUMBER", requires = "dry_run", help_heading = "Output")]
    pub n: Option<u64>,
}
