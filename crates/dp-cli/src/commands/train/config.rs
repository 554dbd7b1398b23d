//! The checked configuration of `dp train`, built from its flags before anything is read.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dp::training::{ChoiceMethod, LARGEST_SUGGESTED_DELTA, suggested_delta};
use dp_accountant::certificate::NoiseMode;
use dp_accountant::guarantee::Unit;
use dp_accountant::{Delta, Epsilon};
use dp_data::Workers;
use dp_data::draft::LabelHint;
use dp_data::encode::{Encoding, FeatureMap, MAX_FEATURES, PROJECTION_SEEDS, RowNorm};
use dp_data::schema::{Label, LabelKind, Scale};
use dp_data::spool::{Room, SpoolOptions};
use dp_losses::LossKind;
use dp_optim::FloatKind;
use dp_optim::catalogue::{self, Settings};
use dp_optim::recipes::per_unit::MOST_ROWS;
use dp_optim::recipes::{Budget, Share};

use super::algorithm::{PrivateAlgorithm, check_flags};
use super::loss::AskedLoss;
use super::tuning::{Tuning, Way};
use crate::args::{self, FileName, Format, GlobalArgs, TrainArgs, TuneArgs};
use crate::atomic;
use crate::failure::Failure;
use crate::input::{InputConfig, TypedTable, check_distinct, check_stdin, conflict, label_hint};
use crate::limit;
use crate::output::write_stdout;
use crate::progress::ProgressMode;

/// The configuration of a training.
#[derive(Debug, Clone)]
pub struct TrainConfig {
    /// The records.
    pub input: InputConfig,
    /// The facts known about the records.
    pub knowledge: Knowledge,
    /// The scaling of rows.
    pub encoding: Encoding,
    /// True if the algorithm chooses the functions of numeric columns.
    pub map_is_chosen: bool,
    /// The target of the feature projection.
    pub projection: Option<args::Project>,
    /// The seed of the projection; `None` draws one.
    pub projection_seed: Option<u64>,
    /// The requested loss.
    pub asked: AskedLoss,
    /// The loss; until the label is known, one that may fit it (see [`for_label`](Self::for_label)).
    pub loss: LossKind,
    /// Settings of one-vs-rest classification.
    pub one_vs_all: Option<OneVsAll>,
    /// True if the model decides at the noisy base rate.
    pub at_base_rate: bool,
    /// The algorithm and, where it is private, its budget.
    pub method: Method,
    /// The given settings; the rest follows from public numbers.
    pub settings: Settings,
    /// The selection among settings, the first of which is `settings`.
    pub tuning: Option<Tuning>,
    /// True if delta follows from the number of records.
    pub delta_is_suggested: bool,
    /// True if a model is trained even if public numbers say that it will be useless.
    pub anyway: bool,
    /// The unit that is protected, if it is not a record.
    pub unit: Option<RowsOfUnit>,
    /// The noise mode.
    pub noise: NoiseMode,
    /// The arithmetic of training.
    pub float: FloatKind,
    /// The seed; a seeded run is reproducible and not private.
    pub seed: Option<u64>,
    /// The limit on the work of calibrating the noise.
    pub limit: Option<f64>,
    /// The destination of model and certificate.
    pub out: Target,
    /// The path of the report.
    pub report: Option<PathBuf>,
    /// True if existing files are replaced.
    pub force: bool,
    /// The dry run, if requested.
    pub dry_run: Option<DryRun>,
    /// The progress display.
    pub progress: ProgressMode,
    /// The threads.
    pub workers: Workers,
    /// The memory for rows, and the place of rows that exceed it.
    pub room: Room,
    /// The number of connections over which a server sums gradients, if the rows stay where they are.
    pub sums: Option<NonZeroUsize>,
    /// The time limit of a runner's statement.
    pub sums_timeout: Duration,
}

/// A unit with several rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsOfUnit {
    /// The column that names it.
    pub column: String,
    /// Its largest number of rows.
    pub most: u64,
}

/// The facts known about the records before they are read.
#[derive(Debug, Clone, PartialEq)]
pub enum Knowledge {
    /// A schema file, with the columns declared public.
    Schema {
        /// The file; `-` for standard input.
        file: FileName,
        /// The label given by flag, which must be that of the schema.
        label: Option<String>,
        /// The label values given by flag, which must agree with the schema.
        named: NamedLabel,
        /// Columns declared public without review.
        assume_public: Vec<String>,
    },
    /// Nothing: the schema is inferred from the data and assumed public.
    FromData {
        /// The label.
        label: String,
        /// The label values given by flag.
        named: NamedLabel,
    },
    /// A libsvm file.
    Libsvm {
        /// Number of features; `None` for the largest index, assumed public.
        features: Option<u32>,
        /// The label values. If one of two classes is given, all other values belong to the other; by default +1 against -1
        /// and 0.
        named: NamedLabel,
    },
    /// Images and labels in two IDX files, whose headers give the image size.
    Images {
        /// The label values. If one of two classes is given, all other values belong to the other; by default the ten digits.
        named: NamedLabel,
        /// The largest value of a pixel, publicly known.
        max: u8,
    },
}

/// The label values given on the command line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NamedLabel {
    /// The value that counts as positive.
    pub positive: Option<String>,
    /// The value that counts as negative.
    pub negative: Option<String>,
    /// Several classes, or a number in a range.
    pub hint: Option<LabelHint>,
}

/// One-vs-rest classification: one model per class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneVsAll {
    /// The division of the budget among the models.
    pub share: Share,
    /// Number of classes; two until the label is known.
    pub classes: u32,
}

/// The algorithm.
#[derive(Debug, Clone, Copy)]
pub enum Method {
    /// A private algorithm.
    Private {
        /// The algorithm.
        algorithm: PrivateAlgorithm,
        /// The privacy budget.
        budget: Budget,
        /// The neighbouring relation.
        adjacency: args::Adjacency,
    },
    /// The non-private baseline.
    NonPrivate,
}

/// The destination of model and certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl Target {
    /// Checks the outputs, model and report.
    ///
    /// # Errors
    /// `usage.conflict`, `usage.value`.
    pub(in crate::commands) fn new(args: &TrainArgs, global: &GlobalArgs) -> Result<Self, Failure> {
        let out = if args.out.as_os_str() == "-" { Self::Stdout } else { Self::File(args.out.clone()) };
        if out == Self::Stdout && global.json {
            return Err(conflict("--out", "the model and the JSON result cannot both go to standard output")
                .help("name a file for the model, or omit --json"));
        }
        if args.report.as_deref().is_some_and(|report| report.as_os_str() == "-") {
            return Err(Failure::usage("--report", "standard output is taken by the result").help("name a file"));
        }
        Ok(out)
    }

    /// Returns the file of the model.
    pub(in crate::commands) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stdout => None,
        }
    }

    /// Returns what readers call the model.
    pub(in crate::commands) fn name(&self) -> String {
        match self {
            Self::File(path) => path.file_name().map_or("model".into(), |name| name.to_string_lossy().into_owned()),
            Self::Stdout => "MODEL".to_owned(),
        }
    }

    /// Writes the model and the report.
    ///
    /// # Errors
    /// `output.*`. No file is left then.
    pub(in crate::commands) fn write(
        &self,
        model: &str,
        report: Option<(&Path, &str)>,
        force: bool,
    ) -> Result<(), Failure> {
        let report = report.map(|(path, text)| (path, text.as_bytes()));
        match self {
            Self::File(path) => {
                let files: Vec<_> = [(path.as_path(), model.as_bytes())].into_iter().chain(report).collect();
                atomic::write_together(&files, force)
            }
            Self::Stdout => {
                let report = report.map(|(path, text)| atomic::PendingFile::create(path, force)?.with(text));
                let report = report.transpose()?;
                write_stdout(model.as_bytes(), b"")?;
                report.map_or(Ok(()), atomic::PendingFile::commit)
            }
        }
    }
}

/// The facts available to a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DryRun {
    /// The number of records, if given.
    pub n: Option<u64>,
}

impl TrainConfig {
    /// Checks the flags.
    ///
    /// # Errors
    /// `usage.*`.
    pub fn new(args: &TrainArgs, global: &GlobalArgs) -> Result<Self, Failure> {
        Self::with(args, global, args.settings.settings()?, None)
    }

    /// Returns whether the duration or speed of training depends on the records: it runs until its minimiser is certified, or
    /// is repeated a random number of times.
    pub(super) fn time_tells_of_records(&self) -> bool {
        let repeated = matches!(&self.tuning, Some(Tuning { way: Way::Private(ChoiceMethod::RandomStopping(_)), .. }));
        let certified = match self.method {
            Method::Private { algorithm, .. } => algorithm.0.time_depends_on_records(&self.settings),
            Method::NonPrivate => false,
        };
        repeated || certified
    }

    /// Checks the flags of `dp tune`.
    ///
    /// # Errors
    /// `usage.*`.
    pub fn tuned(args: &TuneArgs, global: &GlobalArgs) -> Result<Self, Failure> {
        let algorithm = args.train.algorithm.unwrap_or_else(args::Algorithm::tuned);
        if algorithm == args::Algorithm::NonPrivate {
            return Err(conflict("--algorithm", "without privacy there is nothing to be paid for a choice")
                .help("choose a private --algorithm, or compare trainings by `dp evaluate`"));
        }
        let delta = args.train.delta.unwrap_or(0.0);
        let tuning = Tuning::new(args, args.train.settings.grid()?, delta)?;
        let first = tuning.grid.first().cloned().unwrap_or_default();
        let of_training = TrainArgs { algorithm: Some(algorithm), delta: Some(delta), ..args.train.clone() };
        Self::with(&of_training, global, first, Some(tuning))
    }

    fn with(
        args: &TrainArgs,
        global: &GlobalArgs,
        settings: Settings,
        tuning: Option<Tuning>,
    ) -> Result<Self, Failure> {
        if args.model.is_some() {
            return Err(conflict("--model", "networks are trained by dp train alone").help("omit --model"));
        }
        check_stdin(&[
            ("--data", Some(&args.input.data)),
            ("--labels", args.input.form.labels.as_deref()),
            ("--schema", args.schema.as_deref()),
        ])?;
        args.limit.map_or(Ok(()), limit::check)?;
        let input = InputConfig::new(&args.input.data, &args.input.form)?.with_labels()?;
        let knowledge = knowledge(args, input.format)?;
        let method = method(args)?;
        let one_vs_all = one_vs_all(args)?;
        check_sums(args, &input, tuning.is_some())?;
        let at_base_rate = at_base_rate(args, tuning.is_some())?;
        let unit = unit(args, &input)?;
        let asked = AskedLoss::new(args.loss, args.huber_width)?;
        let asked = if one_vs_all.is_some() { asked.one_against_the_rest()? } else { asked };
        let taken = match args.algorithm() {
            args::Algorithm::Private(entry) => entry.settings,
            args::Algorithm::NonPrivate => catalogue::NON_PRIVATE,
        };
        check_flags(args.algorithm().name(), taken, &settings)?;
        let out = Target::new(args, global)?;
        let schema = args.schema.as_ref().map(|schema| ("--schema", Path::new(schema)));
        let report = args.report.as_deref().map(|report| ("--report", report));
        let public = tuning.as_ref().and_then(Tuning::public_file).map(|file| ("--public", file));
        let inputs = input.named().chain(schema).chain(public);
        let named: Vec<_> = inputs.chain([("--out", args.out.as_path())]).chain(report).collect();
        check_distinct(&named)?;
        let records_of_unit = unit.as_ref().map_or(1, |unit: &RowsOfUnit| unit.most);
        let dry_run = args.dry_run.then_some(DryRun { n: args.n.map(|n| n.saturating_mul(records_of_unit)) });
        let needs_rows = matches!(knowledge, Knowledge::FromData { .. } | Knowledge::Libsvm { features: None, .. });
        if dry_run.is_some() && needs_rows {
            return Err(conflict(
                "--dry-run",
                "--dry-run reads no record, so it cannot take a schema or a width from them",
            )
            .help(if input.format == Format::Libsvm { "add --dim" } else { "add --schema" }));
        }
        if args.project.is_some() && matches!(knowledge, Knowledge::Libsvm { features: None, .. }) {
            return Err(conflict("--project", "a projection has to know how many features there are").help("add --dim"));
        }
        Ok(Self {
            knowledge,
            encoding: encoding(args, input.format)?,
            map_is_chosen: map_is_chosen(args, input.format),
            projection: args.project,
            projection_seed: projection_seed(args.project_seed)?,
            loss: asked.provisional(),
            asked,
            one_vs_all,
            at_base_rate,
            method,
            settings,
            tuning,
            delta_is_suggested: is_suggested(args),
            anyway: args.anyway,
            unit,
            noise: noise_mode(args.noise),
            float: args.float.map_or(FloatKind::F64, float_kind),
            seed: args.seed,
            limit: args.limit,
            out,
            report: args.report.clone(),
            force: args.force,
            dry_run,
            progress: global.progress,
            workers: global.workers(),
            room: room(args, &input, global.workers())?,
            sums: args.sums,
            sums_timeout: args
                .sums_timeout
                .map_or(SUMS_TIMEOUT, |seconds| Duration::from_secs(u64::from(seconds.get()))),
            input,
        })
    }

    /// Returns the configuration with the loss for this label.
    ///
    /// # Errors
    /// `usage.value` for a loss that does not fit the label.
    pub fn for_label(&self, label: &Label) -> Result<Self, Failure> {
        let loss = self.asked.for_label(label)?;
        let classes = match &label.kind {
            LabelKind::Classes { classes, .. } => classes.len() as u32,
            _ => 2,
        };
        if let Some(tuning) = &self.tuning {
            tuning.check_loss(loss)?;
        }
        let one_vs_all = self.one_vs_all.map(|asked| OneVsAll { classes, ..asked });
        Ok(Self { loss, one_vs_all, ..self.clone() })
    }

    /// Returns the configuration for `n` records, which decide a delta that was not given.
    #[must_use]
    pub(super) fn for_records(&self, n: u64) -> Self {
        match (self.method, suggested_delta(self.units(n))) {
            (Method::Private { algorithm, budget, adjacency }, Ok(delta)) if self.delta_is_suggested => {
                let method = Method::Private { algorithm, budget: Budget { delta, ..budget }, adjacency };
                Self { method, ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    /// Returns the number of units of which there are `n` records.
    pub(super) fn units(&self, n: u64) -> u64 {
        self.unit.as_ref().map_or(n, |unit| n / unit.most)
    }

    /// Returns what the units are called.
    pub(super) fn units_are_called(&self) -> &'static str {
        if self.unit.is_some() { "units" } else { "records" }
    }

    /// Returns the unit of the guarantee.
    pub(super) fn protected(&self) -> Unit {
        self.unit.as_ref().map_or(Unit::Record, |unit| Unit::Column(unit.column.clone()))
    }

    /// Returns the number of scores per record.
    pub fn scores(&self) -> u32 {
        self.one_vs_all.map_or(self.loss.outputs(), |models| models.classes)
    }

    /// Returns the configuration of one combination to select among.
    pub(super) fn for_settings(&self, settings: &Settings) -> Self {
        Self { settings: settings.clone(), tuning: None, ..self.clone() }
    }

    /// Returns the files to be written.
    pub fn outputs(&self) -> impl Iterator<Item = &Path> {
        self.out.file().into_iter().chain(self.report.as_deref())
    }
}

/// Returns the room for rows. A folder that was named must take a temporary file, whether or not one is needed.
fn room(args: &TrainArgs, input: &InputConfig, workers: Workers) -> Result<Room, Failure> {
    let usual = Room::default();
    let memory = args.memory.map_or(usual.memory, |memory| memory.0);
    let folder = args.spool.clone().unwrap_or(usual.spool.folder);
    // Rows of a server were not on this disk before.
    let encrypted = args.spool_encrypted.unwrap_or(input.typed.as_ref().is_some_and(TypedTable::is_remote));
    let spool = SpoolOptions { folder, encrypted, workers };
    if args.spool.is_some() {
        spool.check().map_err(|error| Failure::from_data(&error.into()).at_flag("--spool"))?;
    }
    Ok(Room { memory, spool })
}

/// The default time limit of a runner's statement.
const SUMS_TIMEOUT: Duration = Duration::from_secs(3600);

/// The algorithms that add noise to each sum over all records and need nothing else.
pub(crate) const ON_SUMS: [&str; 4] = ["auto", "dp-gd", "noisy-moments", "majority"];
/// Those of them that add noise many times.
const MANY_SUMS: [&str; 2] = ["auto", "dp-gd"];

/// Rejects flags that do not apply while the rows stay where they are.
fn check_sums(args: &TrainArgs, input: &InputConfig, tuned: bool) -> Result<(), Failure> {
    if args.sums.is_none() {
        return match input.typed {
            Some(TypedTable::Runner(..)) => {
                Err(conflict("--format", "a runner answers with sums, not with rows").help("add --sums"))
            }
            _ => Ok(()),
        };
    }
    let refused = |why: &str| Err(conflict("--sums", why));
    if !input.typed.as_ref().is_some_and(TypedTable::is_remote) {
        return Err(conflict("--sums", "--sums is for rows that an engine keeps")
            .expected("--data postgres://HOST/DATABASE, or --data COMMAND --format runner"));
    }
    let is_runner = matches!(input.typed, Some(TypedTable::Runner(..)));
    if is_runner && args.sums != Some(NonZeroUsize::MIN) {
        return refused("a runner has one connection: omit the number");
    }
    if !is_runner && args.sums_timeout.is_some() {
        return Err(conflict("--sums-timeout", "--sums-timeout is for a runner")
            .help("set PGOPTIONS='-c statement_timeout=MILLISECONDS'"));
    }
    let name = args.algorithm().name();
    if !ON_SUMS.contains(&name) {
        let why = format!("{name} needs the rows: what it asks of an engine would not be private");
        return Err(conflict("--sums", why)
            .expected(ON_SUMS.map(|name| format!("--algorithm {name}")).join(" or "))
            .help("omit --sums: rows that memory does not hold go to a temporary file, under any algorithm"));
    }
    if MANY_SUMS.contains(&name) && args.delta.map_or(name != "auto", |delta| !(delta > 0.0)) {
        return refused("without a delta, every step needs as much noise as a training: add --delta");
    }
    if tuned {
        return refused("settings are chosen by trainings on rows: name them, or omit --sums");
    }
    if args.float == Some(args::Float::F32) {
        return refused("engines compute in double precision: omit --float f32, or --sums");
    }
    Ok(())
}

/// Returns the unit that is protected, if it is not a record.
fn unit(args: &TrainArgs, input: &InputConfig) -> Result<Option<RowsOfUnit>, Failure> {
    let (Some(column), Some(most)) = (&args.unit, args.max_rows) else { return Ok(None) };
    if !input.format.is_table() {
        let why = format!("{} has no columns that name a unit", input.format.name());
        return Err(conflict("--unit", why).expected("a table: CSV, Parquet, Excel or a database"));
    }
    if args.sums.is_some() {
        return Err(conflict("--unit", "which rows of a unit are used is drawn where they are read")
            .help("omit --sums, or make one row of each unit in a query or a view"));
    }
    if most.get() > MOST_ROWS {
        return Err(Failure::usage("--max-rows", format!("{most} rows of a unit need too much noise"))
            .expected(format!("at most {MOST_ROWS}")));
    }
    Ok(Some(RowsOfUnit { column: column.clone(), most: most.get() }))
}

/// Returns whether the model decides at the noisy base rate.
fn at_base_rate(args: &TrainArgs, tuned: bool) -> Result<bool, Failure> {
    let refused = |why| Err(conflict("--threshold", why).help("omit --threshold"));
    match args.threshold {
        args::Threshold::Half => Ok(false),
        args::Threshold::BaseRate if args.algorithm() == args::Algorithm::NonPrivate => {
            refused("without privacy there is no noisy base rate")
        }
        args::Threshold::BaseRate if args.one_vs_all.is_some() => {
            refused("only a model of two classes has a threshold")
        }
        args::Threshold::BaseRate if tuned => refused("candidates are compared by their errors at the threshold 0.5"),
        args::Threshold::BaseRate => Ok(true),
    }
}

fn one_vs_all(args: &TrainArgs) -> Result<Option<OneVsAll>, Failure> {
    let Some(share) = args.one_vs_all else { return Ok(None) };
    if args.algorithm() == args::Algorithm::NonPrivate {
        return Err(conflict("--one-vs-all", "--one-vs-all says how models share a budget, and there is none")
            .help("omit --one-vs-all, or choose a private --algorithm"));
    }
    let share = match share {
        args::Share::Joint => Share::Joint,
        args::Share::Composed => Share::Composed,
        args::Share::Split => Share::Split,
    };
    Ok(Some(OneVsAll { share, classes: 2 }))
}

fn missing(flag: &str, message: &str) -> Failure {
    Failure { code: "usage.missing", ..Failure::usage(flag, message) }
}

fn knowledge(args: &TrainArgs, format: Format) -> Result<Knowledge, Failure> {
    let named = NamedLabel {
        positive: args.positive.clone(),
        negative: args.negative.clone(),
        hint: label_hint(&args.classes, &args.label_range)?,
    };
    if named.positive.is_some() && named.positive == named.negative {
        return Err(conflict("--negative", "--positive and --negative are the same value"));
    }
    if !format.is_table() {
        let name = format.name();
        for (given, flag) in [
            (args.schema.is_some(), "--schema"),
            (args.schema_from_data, "--schema-from-data"),
            (args.label.is_some(), "--label"),
            (!args.assume_public.is_empty(), "--assume-public"),
            (args.curves.is_some(), "--curves"),
            (args.coordinate.is_some(), "--coordinate"),
        ] {
            if given {
                return Err(conflict(flag, format!("{flag} has no meaning for {name}, which name no columns")));
            }
        }
    }
    if args.pixel_max.is_some() && format != Format::Idx {
        return Err(conflict("--pixel-max", "--pixel-max is for IDX images").help("omit --pixel-max"));
    }
    match format {
        Format::Cifar10 => Err(conflict("--data", "CIFAR-10 images are for networks").help("add --model")),
        Format::Idx if args.dim.is_some() => {
            Err(conflict("--dim", "--dim has no meaning for images: their file says how large they are"))
        }
        Format::Idx => Ok(Knowledge::Images { named, max: args.pixel_max.unwrap_or(u8::MAX) }),
        Format::Libsvm => {
            let features = match args.dim {
                None => None,
                Some(dim) => {
                    Some(u32::try_from(dim).ok().filter(|dim| (1..=MAX_FEATURES).contains(dim)).ok_or_else(|| {
                        Failure::usage("--dim", format!("--dim is {dim}"))
                            .expected(format!("between 1 and {MAX_FEATURES} features"))
                    })?)
                }
            };
            Ok(Knowledge::Libsvm { features, named })
        }
        _ => {
            if args.dim.is_some() {
                return Err(conflict("--dim", "--dim has no meaning for a table: the schema says how wide rows are"));
            }
            match (&args.schema, args.schema_from_data) {
                (Some(file), _) => Ok(Knowledge::Schema {
                    file: file.clone(),
                    label: args.label.clone(),
                    named,
                    assume_public: args.assume_public.clone(),
                }),
                (None, true) if !args.assume_public.is_empty() => {
                    Err(conflict("--assume-public", "--schema-from-data assumes all columns to be public already"))
                }
                (None, true) => match &args.label {
                    Some(label) => Ok(Knowledge::FromData { label: label.clone(), named }),
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

/// Returns the noise mode as typed.
pub(in crate::commands) fn noise_mode(noise: Option<args::Noise>) -> NoiseMode {
    match noise.unwrap_or_default() {
        args::Noise::Exact => NoiseMode::Exact,
        args::Noise::Rounded => NoiseMode::Rounded,
    }
}

/// Returns the floating-point type as typed.
pub(in crate::commands) fn float_kind(float: args::Float) -> FloatKind {
    match float {
        args::Float::F64 => FloatKind::F64,
        args::Float::F32 => FloatKind::F32,
    }
}

/// Returns the requested budget; until the number of records is known, with a usual delta if it follows from that.
///
/// # Errors
/// `usage.missing`, `usage.value`.
pub(in crate::commands) fn budget(args: &TrainArgs, delta_is_suggested: bool) -> Result<Budget, Failure> {
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
    let delta = args.delta.unwrap_or(if delta_is_suggested { LARGEST_SUGGESTED_DELTA } else { 0.0 });
    let delta = Delta::new(delta).map_err(|error| {
        Failure::usage("--delta", error.to_string())
            .expected("a number in [0, 1), far below 1/n; 0 is pure differential privacy")
            .help("use --delta 1e-8, say, or omit it")
    })?;
    Ok(Budget { epsilon, delta })
}

/// Rejects flags that have no meaning without privacy.
///
/// # Errors
/// `usage.conflict`.
pub(in crate::commands) fn check_non_private(args: &TrainArgs) -> Result<(), Failure> {
    let given = [
        ("--epsilon", args.epsilon.is_some()),
        ("--delta", args.delta.is_some_and(|delta| delta != 0.0)),
        ("--adjacency", args.adjacency.is_some()),
        ("--noise", args.noise.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(conflict(flag, format!("{flag} has no meaning without privacy"))
            .help("omit it, or choose a private --algorithm")),
        None => Ok(()),
    }
}

fn method(args: &TrainArgs) -> Result<Method, Failure> {
    let args::Algorithm::Private(entry) = args.algorithm() else {
        check_non_private(args)?;
        return Ok(Method::NonPrivate);
    };
    let algorithm = PrivateAlgorithm(entry);
    let adjacency = args.adjacency.unwrap_or_else(|| algorithm.usual_relation());
    Ok(Method::Private { algorithm, budget: budget(args, is_suggested(args))?, adjacency })
}

/// Returns whether delta follows from the number of records.
fn is_suggested(args: &TrainArgs) -> bool {
    args.delta.is_none() && args.algorithm() == args::Algorithm::auto()
}

fn projection_seed(seed: Option<u64>) -> Result<Option<u64>, Failure> {
    match seed {
        Some(seed) if seed >= PROJECTION_SEEDS => {
            Err(Failure::usage("--project-seed", format!("--project-seed is {seed}")).expected("a number below 2^53"))
        }
        _ => Ok(seed),
    }
}

fn encoding(args: &TrainArgs, format: Format) -> Result<Encoding, Failure> {
    let row_norm = args.row_norm.map(|row_norm| match row_norm {
        args::RowNorm::Clip => RowNorm::Clip,
        args::RowNorm::Unit => RowNorm::Unit,
    });
    let map = feature_map(args);
    match (format.is_table(), args.scale, row_norm) {
        (true, args::Scale::UnitRows, None) => Ok(Encoding::UNIT_ROWS.with_map(map)),
        (true, args::Scale::UnitRows, Some(_)) => {
            Err(conflict("--row-norm", "--scale unit-rows makes every row of norm 1 already")
                .help("add --scale unit, or omit --row-norm"))
        }
        (_, _, row_norm) => Ok(Encoding::unit_scale(row_norm.unwrap_or(RowNorm::Clip)).with_map(map)),
    }
}

fn map_is_chosen(args: &TrainArgs, format: Format) -> bool {
    let chooses = matches!(args.algorithm(), args::Algorithm::Private(entry) if entry.chooses_cosines());
    // Each feature is one more sum in every statement.
    chooses && args.sums.is_none() && format.is_table() && args.curves.is_none() && args.coordinate.is_none()
}

/// Returns the stated functions of numeric columns.
fn feature_map(args: &TrainArgs) -> FeatureMap {
    let (cosines, pairs) = match args.curves {
        None | Some(args::Curves::None) => (0, false),
        Some(args::Curves::Cosines { number, pairs }) => (number, pairs),
    };
    let scale = match args.coordinate {
        Some(args::Coordinate::Linear) => Scale::Linear,
        Some(args::Coordinate::Log) => Scale::Log,
        Some(args::Coordinate::ByRange) => Scale::ByRange,
        None => FeatureMap::curves(cosines).scale,
    };
    FeatureMap { scale, cosines, pairs }
}
