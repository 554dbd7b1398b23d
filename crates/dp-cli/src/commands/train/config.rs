//! The checked configuration of `dp train`, built from its flags before anything is read.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dp::training::{ChoiceMethod, LARGEST_SUGGESTED_DELTA, encoding_of, suggested_delta};
use dp_accountant::certificate::NoiseMode;
use dp_accountant::guarantee::Unit;
use dp_data::Workers;
use dp_data::encode::{Encoding, FeatureMap, FourierFeatures, PROJECTION_SEEDS, RowNorm};
use dp_data::schema::{Label, LabelKind};
use dp_data::spool::{Room, SpoolOptions};
use dp_losses::LossKind;
use dp_optim::FloatKind;
use dp_optim::catalogue::{self, Settings};
use dp_optim::recipes::per_unit::MOST_ROWS;
use dp_optim::recipes::{Budget, Share};

use super::algorithm::check_flags;
use super::knowledge::{Knowledge, knowledge};
use super::loss::AskedLoss;
use super::privacy::{Method, is_suggested, method};
use super::target::Target;
use super::tuning::{Tuning, Way};
use crate::args::{self, Format, GlobalArgs, TrainArgs, TuneArgs};
use crate::failure::Failure;
use crate::input::{InputConfig, TypedTable, check_distinct, check_stdin, conflict};
use crate::limit;
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
    /// The Fourier features that are tried, if a model with them and one without them are compared.
    pub tried: Option<FourierFeatures>,
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

/// One-vs-rest classification: one model per class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneVsAll {
    /// The division of the budget among the models.
    pub share: Share,
    /// Number of classes; two until the label is known.
    pub classes: u32,
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
        let of_training = TrainArgs { algorithm: Some(algorithm), ..args.train.clone() };
        let suggested = if is_suggested(&of_training) { LARGEST_SUGGESTED_DELTA } else { 0.0 };
        let delta = args.train.delta.unwrap_or(suggested);
        let tuning = Tuning::new(args, args.train.settings.grid()?, delta)?;
        let first = tuning.grid.first().cloned().unwrap_or_default();
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
        check_trial(args, tuning.is_some())?;
        let fourier = fourier(args)?;
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
        let encoding = encoding(args, input.format, fourier.filter(|_| !args.fourier_if_better))?;
        Ok(Self {
            knowledge,
            encoding: match args.algorithm() {
                args::Algorithm::Private(entry) => encoding_of(entry, encoding),
                args::Algorithm::NonPrivate => encoding,
            },
            tried: fourier.filter(|_| args.fourier_if_better),
            map_is_chosen: map_is_chosen(args, input.format),
            projection: args.project,
            projection_seed: args.project_seed.map(|seed| public_seed("--project-seed", seed)).transpose()?,
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
            noise: args.noise.unwrap_or(NoiseMode::Exact),
            float: args.float.unwrap_or_default(),
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
        if self.tried.is_some() && loss.classes().is_none() {
            let why = format!("{loss} is a loss of numbers; models are compared by their mistakes");
            return Err(
                conflict("--fourier-if-better", why).help("omit --fourier-if-better: --fourier alone always uses them")
            );
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
    if args.float == Some(FloatKind::F32) {
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
    Ok(Some(OneVsAll { share, classes: 2 }))
}

fn public_seed(flag: &str, seed: u64) -> Result<u64, Failure> {
    if seed < PROJECTION_SEEDS {
        return Ok(seed);
    }
    Err(Failure::usage(flag, format!("{flag} is {seed}")).expected("a number below 2^53"))
}

/// Rejects a comparison of models with and without Fourier features that cannot be made.
fn check_trial(args: &TrainArgs, tuned: bool) -> Result<(), Failure> {
    let refused = |why| Err(conflict("--fourier-if-better", why).help("omit --fourier-if-better"));
    if !args.fourier_if_better {
        return Ok(());
    }
    if args.algorithm() == args::Algorithm::NonPrivate {
        return refused("without privacy no budget is shared: compare two trainings by `dp evaluate`");
    }
    if tuned {
        return refused("dp tune makes one choice, among settings");
    }
    if args.threshold == args::Threshold::BaseRate {
        return refused("models are compared by their mistakes at the threshold 0.5");
    }
    Ok(())
}

/// Returns the requested Fourier features.
fn fourier(args: &TrainArgs) -> Result<Option<FourierFeatures>, Failure> {
    let seed = public_seed("--fourier-seed", args.fourier_seed)?;
    Ok(args.fourier.map(|args::Fourier { features, bandwidth }| FourierFeatures {
        bandwidth,
        seed,
        ..FourierFeatures::new(features)
    }))
}

fn encoding(args: &TrainArgs, format: Format, fourier: Option<FourierFeatures>) -> Result<Encoding, Failure> {
    let with_functions = |encoding: Encoding| Encoding { map: feature_map(args), fourier, ..encoding };
    match (format.is_table(), args.scale, args.row_norm) {
        (true, args::Scale::UnitRows, None) => Ok(with_functions(Encoding::UNIT_ROWS)),
        (true, args::Scale::UnitRows, Some(_)) => {
            Err(conflict("--row-norm", "--scale unit-rows makes every row of norm 1 already")
                .help("add --scale unit, or omit --row-norm"))
        }
        (_, _, row_norm) => Ok(with_functions(Encoding::unit_scale(row_norm.unwrap_or(RowNorm::Clip)))),
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
    let scale = args.coordinate.unwrap_or(FeatureMap::curves(cosines).scale);
    FeatureMap { scale, cosines, pairs }
}
