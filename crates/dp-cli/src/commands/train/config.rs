//! From the flags of `dp train` to a checked configuration, before anything is read.

use std::path::{Path, PathBuf};

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Delta, Epsilon};
use dp_data::encode::{Encoding, MAX_FEATURES, RowNorm};
use dp_losses::{HuberSvm, LossKind};
use dp_optim::FloatKind;
use dp_optim::growth::OrderPolicy;
use dp_optim::recipes::{Budget, Stopping};

use crate::args::{self, Algorithm, Format, GlobalArgs, TrainArgs};
use crate::failure::Failure;
use crate::input::{InputConfig, check_distinct, check_stdin, conflict};
use crate::progress::ProgressMode;

/// What to train, on what, and where to write it.
#[derive(Debug, Clone)]
pub struct TrainConfig {
    /// The records.
    pub input: InputConfig,
    /// What is known of them.
    pub knowledge: Knowledge,
    /// How rows are scaled.
    pub encoding: Encoding,
    /// The loss.
    pub loss: LossKind,
    /// The algorithm and, where it is private, its budget.
    pub method: Method,
    /// Settings that were given; the rest follows from public numbers.
    pub settings: Settings,
    /// How noise is drawn.
    pub noise: NoiseMode,
    /// The arithmetic of training.
    pub float: FloatKind,
    /// A seed makes the run reproducible and not private.
    pub seed: Option<u64>,
    /// Where model and certificate go.
    pub out: Target,
    /// Where the report goes.
    pub report: Option<PathBuf>,
    /// Whether to replace existing files.
    pub force: bool,
    /// Only say what would happen; the number of records, where it was given.
    pub dry_run: Option<DryRun>,
    /// How to show progress.
    pub progress: ProgressMode,
}

/// What is known of the records before they are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Knowledge {
    /// A schema file, and the columns of it that are declared public.
    Schema {
        /// The file; `-` for standard input.
        file: String,
        /// The label that was named, which must be the schema's.
        label: Option<String>,
        /// The classes that were named, which must be the schema's.
        classes: NamedClasses,
        /// Columns that are declared public though nobody reviewed them.
        assume_public: Vec<String>,
    },
    /// Nothing: take it from the data, and assume all of it public.
    FromData {
        /// The label.
        label: String,
        /// The classes that were named.
        classes: NamedClasses,
    },
    /// A libsvm file.
    Libsvm {
        /// Number of features; `None`: the largest index, assumed public.
        features: Option<u32>,
        /// The classes: where one is named all other values are of the other, where none is +1 against -1 and 0.
        classes: NamedClasses,
    },
}

/// The classes that were named on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedClasses {
    /// The value that counts as positive.
    pub positive: Option<String>,
    /// The value that counts as negative.
    pub negative: Option<String>,
}

/// The algorithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// Output perturbation.
    BoltOn {
        /// Algorithm 1 or 2 of Wu et al. (2017).
        algorithm: dp_optim::recipes::Algorithm,
        /// What may be spent.
        budget: Budget,
        /// Under which relation.
        adjacency: args::Adjacency,
    },
    /// None.
    NonPrivate,
}

/// Settings that were given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// L2 regularisation.
    pub lambda: Option<f64>,
    /// Passes over the records.
    pub passes: Option<u64>,
    /// Records in a batch.
    pub batch_size: Option<u64>,
    /// Radius of the ball that weights stay in.
    pub radius: Option<f64>,
    /// First step size.
    pub step_size: Option<f64>,
    /// How the step size changes.
    pub schedule: Option<args::Schedule>,
    /// Which iterates are released.
    pub averaging: Option<args::Averaging>,
    /// Order of the records.
    pub order: Option<OrderPolicy>,
    /// When training stops.
    pub stopping: Option<Stopping>,
}

/// Where model and certificate go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

/// What a dry run knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DryRun {
    /// The number of records.
    pub n: Option<u64>,
}

impl TrainConfig {
    /// Checks the flags.
    ///
    /// # Errors
    /// `usage.*`.
    pub fn new(args: &TrainArgs, global: &GlobalArgs) -> Result<Self, Failure> {
        check_stdin(&[("--data", Some(&args.input.data)), ("--schema", args.schema.as_deref())])?;
        let input = InputConfig::new(&args.input)?;
        let knowledge = knowledge(args, input.format)?;
        let method = method(args)?;
        let out = if args.out.as_os_str() == "-" { Target::Stdout } else { Target::File(args.out.clone()) };
        if out == Target::Stdout && global.json {
            return Err(conflict("--out", "the model and the JSON result cannot both go to standard output")
                .help("name a file for the model, or leave --json away"));
        }
        if args.report.as_deref().is_some_and(|report| report.as_os_str() == "-") {
            return Err(Failure::usage("--report", "standard output is taken by the result").help("name a file"));
        }
        let data = [("--data", Path::new(&args.input.data))];
        let schema = args.schema.as_deref().map(|schema| ("--schema", Path::new(schema)));
        let report = args.report.as_deref().map(|report| ("--report", report));
        let named: Vec<_> =
            data.into_iter().chain(schema).chain([("--out", args.out.as_path())]).chain(report).collect();
        check_distinct(&named)?;
        let dry_run = args.dry_run.then_some(DryRun { n: args.n });
        let needs_rows = matches!(knowledge, Knowledge::FromData { .. } | Knowledge::Libsvm { features: None, .. });
        if dry_run.is_some() && needs_rows {
            return Err(conflict(
                "--dry-run",
                "--dry-run reads no record, so it cannot take a schema or a width from them",
            )
            .help(match input.format {
                Format::Csv => "add --schema",
                Format::Libsvm => "add --dim",
            }));
        }
        Ok(Self {
            knowledge,
            encoding: encoding(args, input.format)?,
            loss: loss(args.loss, args.huber_width)?,
            method,
            settings: settings(args)?,
            noise: match args.noise.unwrap_or_default() {
                args::Noise::Exact => NoiseMode::Exact,
                args::Noise::Rounded => NoiseMode::Rounded,
            },
            float: match args.float {
                args::Float::F64 => FloatKind::F64,
                args::Float::F32 => FloatKind::F32,
            },
            seed: args.seed,
            out,
            report: args.report.clone(),
            force: args.force,
            dry_run,
            progress: global.progress,
            input,
        })
    }

    /// The files to be written.
    pub fn outputs(&self) -> impl Iterator<Item = &Path> {
        let model = match &self.out {
            Target::File(path) => Some(path.as_path()),
            Target::Stdout => None,
        };
        model.into_iter().chain(self.report.as_deref())
    }
}

fn missing(flag: &str, message: &str) -> Failure {
    Failure { code: "usage.missing", ..Failure::usage(flag, message) }
}

fn knowledge(args: &TrainArgs, format: Format) -> Result<Knowledge, Failure> {
    let classes = NamedClasses { positive: args.positive.clone(), negative: args.negative.clone() };
    if classes.positive.is_some() && classes.positive == classes.negative {
        return Err(conflict("--negative", "--positive and --negative are the same value"));
    }
    match format {
        Format::Libsvm => {
            for (given, flag) in [
                (args.schema.is_some(), "--schema"),
                (args.schema_from_data, "--schema-from-data"),
                (args.label.is_some(), "--label"),
                (!args.assume_public.is_empty(), "--assume-public"),
            ] {
                if given {
                    return Err(conflict(flag, format!("{flag} has no meaning for libsvm, which names no columns")));
                }
            }
            let features = match args.dim {
                None => None,
                Some(dim) => {
                    Some(u32::try_from(dim).ok().filter(|dim| (1..=MAX_FEATURES).contains(dim)).ok_or_else(|| {
                        Failure::usage("--dim", format!("--dim is {dim}"))
                            .expected(format!("between 1 and {MAX_FEATURES} features"))
                    })?)
                }
            };
            Ok(Knowledge::Libsvm { features, classes })
        }
        Format::Csv => {
            if args.dim.is_some() {
                return Err(conflict("--dim", "--dim has no meaning for CSV: the schema says how wide rows are"));
            }
            match (&args.schema, args.schema_from_data) {
                (Some(file), _) => Ok(Knowledge::Schema {
                    file: file.clone(),
                    label: args.label.clone(),
                    classes,
                    assume_public: args.assume_public.clone(),
                }),
                (None, true) if !args.assume_public.is_empty() => {
                    Err(conflict("--assume-public", "--schema-from-data assumes all columns to be public already"))
                }
                (None, true) => match &args.label {
                    Some(label) => Ok(Knowledge::FromData { label: label.clone(), classes }),
                    None => Err(missing("--label", "which column is to be predicted was not said")
                        .help("add --label COLUMN, and --positive VALUE")),
                },
                (None, false) => Err(missing("--schema", "ranges and categories of the columns are not known")
                    .expected("--schema FILE, with what is publicly known")
                    .help(
                        "draft one with `dp schema` and review it, or add --schema-from-data to take them from the \
                         data and assume that they are public",
                    )),
            }
        }
    }
}

fn method(args: &TrainArgs) -> Result<Method, Failure> {
    let algorithm = match args.algorithm {
        Algorithm::BoltOnConvex => dp_optim::recipes::Algorithm::Convex,
        Algorithm::BoltOnStronglyConvex => dp_optim::recipes::Algorithm::StronglyConvex,
        Algorithm::NonPrivate => {
            for (given, flag) in [
                (args.epsilon.is_some(), "--epsilon"),
                (args.delta != 0.0, "--delta"),
                (args.adjacency.is_some(), "--adjacency"),
                (args.noise.is_some(), "--noise"),
            ] {
                if given {
                    return Err(conflict(flag, format!("{flag} has no meaning without privacy"))
                        .help("leave it away, or choose a private --algorithm"));
                }
            }
            return Ok(Method::NonPrivate);
        }
    };
    let Some(epsilon) = args.epsilon else {
        return Err(missing("--epsilon", "how much privacy to spend was not said")
            .expected("a number greater than 0; 1 is a common choice, smaller is more private")
            .help("add --epsilon 1"));
    };
    let epsilon = Epsilon::new(epsilon).map_err(|error| {
        Failure::usage("--epsilon", error.to_string())
            .expected("a finite number, at least 2^-50 (about 1e-15)")
            .help("use --epsilon 1, say; smaller is more private")
    })?;
    let delta = Delta::new(args.delta).map_err(|error| {
        Failure::usage("--delta", error.to_string())
            .expected("a number in [0, 1), far below 1/n; 0 is pure differential privacy")
            .help("use --delta 1e-8, say, or leave it away")
    })?;
    let adjacency = args.adjacency.unwrap_or(args::Adjacency::ReplaceOne);
    Ok(Method::BoltOn { algorithm, budget: Budget { epsilon, delta }, adjacency })
}

/// The loss with its parameter.
pub(crate) fn loss(loss: args::Loss, huber_width: Option<f64>) -> Result<LossKind, Failure> {
    if huber_width.is_some() && loss != args::Loss::HuberSvm {
        return Err(conflict("--huber-width", "--huber-width belongs to --loss huber-svm"));
    }
    Ok(match loss {
        args::Loss::Logistic => LossKind::Logistic,
        args::Loss::Squared => LossKind::Squared,
        args::Loss::HuberSvm => {
            let width = huber_width.unwrap_or(0.1);
            LossKind::HuberSvm(HuberSvm::new(width).map_err(|error| {
                Failure::usage("--huber-width", error.to_string()).expected("a positive number, such as 0.1")
            })?)
        }
    })
}

fn encoding(args: &TrainArgs, format: Format) -> Result<Encoding, Failure> {
    let row_norm = args.row_norm.map(|row_norm| match row_norm {
        args::RowNorm::Clip => RowNorm::Clip,
        args::RowNorm::Unit => RowNorm::Unit,
    });
    match (format, args.scale, row_norm) {
        (Format::Csv, args::Scale::UnitRows, None) => Ok(Encoding::UNIT_ROWS),
        (Format::Csv, args::Scale::UnitRows, Some(_)) => {
            Err(conflict("--row-norm", "--scale unit-rows makes every row of norm 1 already")
                .help("add --scale unit, or leave --row-norm away"))
        }
        (_, _, row_norm) => Ok(Encoding::unit_scale(row_norm.unwrap_or(RowNorm::Clip))),
    }
}

fn settings(args: &TrainArgs) -> Result<Settings, Failure> {
    let number = |flag: &str, value: Option<f64>, zero: bool| match value {
        Some(x) if !(x.is_finite() && (x > 0.0 || (zero && x == 0.0))) => {
            let range = if zero { "a finite number, 0 or above" } else { "a finite number greater than 0" };
            Err(Failure::usage(flag, format!("{flag} is {x}")).expected(range))
        }
        _ => Ok(value),
    };
    let count = |flag: &str, value: Option<u64>| match value {
        Some(0) => Err(Failure::usage(flag, format!("{flag} is 0")).expected("1 or more")),
        _ => Ok(value),
    };
    Ok(Settings {
        lambda: number("--lambda", args.lambda, true)?,
        passes: count("--passes", args.passes.map(u64::from))?,
        batch_size: count("--batch-size", args.batch_size)?,
        radius: number("--radius", args.radius, false)?,
        step_size: number("--step-size", args.step_size, false)?,
        schedule: args.schedule,
        averaging: args.averaging,
        order: args.order.map(|order| match order {
            args::Order::Fixed => OrderPolicy::Fixed,
            args::Order::Fresh => OrderPolicy::Fresh,
        }),
        stopping: args.stop.map(|stop| match stop {
            args::Stop::Passes => Stopping::Passes,
            args::Stop::Certified => Stopping::CertifiedMinimiser { tolerance: None },
        }),
    })
}
