//! The checked configuration of the training of a network.

use std::path::Path;

use dp_accountant::AdjacencyKind;
use dp_accountant::certificate::NoiseMode;
use dp_data::Workers;
use dp_nets::Views;
use dp_optim::FloatKind;
use dp_optim::catalogue::{self, Entry, FOR_MODELS, MODEL_SETTINGS, Settings};
use dp_optim::recipes::Budget;

use super::images::{ImageFiles, classes};
use crate::args::{self, FileName, GlobalArgs, TrainArgs};
use crate::commands::train::{PrivateAlgorithm, Target, budget, check_flags, check_non_private};
use crate::failure::Failure;
use crate::input::{InputConfig, check_distinct, check_stdin, conflict};
use crate::limit;
use crate::progress::ProgressMode;

/// The configuration of a training.
pub(super) struct NetworkConfig {
    /// The flags as given.
    pub(super) args: TrainArgs,
    /// The name of the network, or a file of its layers.
    pub(super) model: FileName,
    /// The images.
    pub(super) images: ImageFiles,
    /// The public seed of the start.
    pub(super) start_seed: u64,
    /// The views of an image.
    pub(super) views: Views,
    /// Its privacy; `None` for the baseline.
    pub(super) privacy: Option<Privacy>,
    /// The given settings; the rest follows from public numbers.
    pub(super) settings: Settings,
    /// The floating-point type of training.
    pub(super) float: FloatKind,
    /// The destination of network and certificate.
    pub(super) out: Target,
    /// Number of images, for a dry run; `None` inside if it is not given.
    pub(super) dry_run: Option<Option<u64>>,
    /// The progress display.
    pub(super) progress: ProgressMode,
    /// The threads.
    pub(super) workers: Workers,
}

/// The privacy of a training.
#[derive(Clone, Copy)]
pub(super) struct Privacy {
    /// The algorithm.
    pub(super) algorithm: &'static Entry,
    /// The budget; until the number of images is known, with a usual delta if none is given.
    pub(super) budget: Budget,
    /// True if delta follows from the number of images.
    pub(super) delta_is_suggested: bool,
    /// The neighbouring relation.
    pub(super) relation: AdjacencyKind,
    /// The noise mode.
    pub(super) noise: NoiseMode,
}

impl NetworkConfig {
    /// Checks the flags.
    ///
    /// # Errors
    /// `usage.*`, `privacy.adjacency`, and patterns of names that no file matches.
    pub(super) fn new(args: &TrainArgs, model: &FileName, global: &GlobalArgs) -> Result<Self, Failure> {
        check_applicable(args)?;
        check_stdin(&[
            ("--model", Some(model)),
            ("--data", Some(&args.input.data)),
            ("--labels", args.input.form.labels.as_deref()),
        ])?;
        args.limit.map_or(Ok(()), limit::check)?;
        check_checkpoint(args)?;
        let input = InputConfig::new(&args.input.data, &args.input.form)?.with_labels()?;
        let images = ImageFiles::new(&input, classes(&args.classes)?)?;
        let privacy = privacy(args)?;
        let settings = args.settings.settings()?;
        check_flags("a network", MODEL_SETTINGS, &settings)?;
        let out = Target::new(args, global)?;
        let mut named: Vec<(&str, &Path)> = images.named().collect();
        named.push(("--model", Path::new(model)));
        named.push(("--out", &args.out));
        named.extend(args.report.as_deref().map(|report| ("--report", report)));
        named.extend(args.checkpoint.as_deref().map(|path| ("--checkpoint", path)));
        check_distinct(&named)?;
        Ok(Self {
            args: args.clone(),
            model: model.clone(),
            images,
            start_seed: args.start_seed.unwrap_or(1),
            views: args.views.unwrap_or_default(),
            privacy,
            settings,
            float: args.float.unwrap_or(FloatKind::F32),
            out,
            dry_run: args.dry_run.then_some(args.n),
            progress: global.progress,
            workers: global.workers(),
        })
    }

    /// Returns the files to be written.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &Path> {
        self.out.file().into_iter().chain(self.args.report.as_deref())
    }
}

/// Checks the flags of checkpoints.
fn check_checkpoint(args: &TrainArgs) -> Result<(), Failure> {
    let Some(path) = &args.checkpoint else { return Ok(()) };
    if path.as_os_str() == "-" {
        return Err(Failure::usage("--checkpoint", "a checkpoint is replaced again and again").expected("a file"));
    }
    if args.seed.is_some() {
        return Err(conflict("--checkpoint", "a training with --seed goes on with other noise than its own")
            .help("omit --checkpoint: the same command gives the same network"));
    }
    Ok(())
}

/// Returns the algorithm with its budget; `None` for the baseline.
fn privacy(args: &TrainArgs) -> Result<Option<Privacy>, Failure> {
    let usual = FOR_MODELS.first().and_then(|name| catalogue::find(name));
    let algorithm = match args.algorithm {
        None => usual,
        Some(args::Algorithm::Private(entry)) => Some(entry),
        Some(args::Algorithm::NonPrivate) => {
            check_non_private(args)?;
            return Ok(None);
        }
    };
    let Some(algorithm) = algorithm.filter(|entry| FOR_MODELS.contains(&entry.name)) else {
        let name = args.algorithm.map_or("it", args::Algorithm::name);
        return Err(conflict("--algorithm", format!("{name} does not train networks"))
            .expected(format!("{} or non-private", FOR_MODELS.join(", "))));
    };
    let relation = args.adjacency.unwrap_or(args::Adjacency::AddRemove);
    // For networks all hold under the relations of the usual one.
    let relation = PrivateAlgorithm(usual.unwrap_or(algorithm)).relation(relation)?;
    let delta_is_suggested = args.delta.is_none();
    let budget = budget(args, delta_is_suggested)?;
    Ok(Some(Privacy { algorithm, budget, delta_is_suggested, relation, noise: args.noise.unwrap_or(NoiseMode::Exact) }))
}

/// Rejects the flags of other models.
fn check_applicable(args: &TrainArgs) -> Result<(), Failure> {
    let given = [
        ("--label", args.label.is_some()),
        ("--positive", args.positive.is_some()),
        ("--negative", args.negative.is_some()),
        ("--label-range", !args.label_range.is_empty()),
        ("--schema", args.schema.is_some()),
        ("--schema-from-data", args.schema_from_data),
        ("--assume-public", !args.assume_public.is_empty()),
        ("--dim", args.dim.is_some()),
        ("--pixel-max", args.pixel_max.is_some()),
        ("--scale", args.scale != args::Scale::default()),
        ("--curves", args.curves.is_some()),
        ("--coordinate", args.coordinate.is_some()),
        ("--fourier", args.fourier.is_some()),
        ("--row-norm", args.row_norm.is_some()),
        ("--sums", args.sums.is_some()),
        ("--memory", args.memory.is_some()),
        ("--spool", args.spool.is_some()),
        ("--spool-encrypted", args.spool_encrypted.is_some()),
        ("--project", args.project.is_some()),
        ("--unit", args.unit.is_some()),
        ("--loss", args.loss.is_some()),
        ("--one-vs-all", args.one_vs_all.is_some()),
        ("--threshold", args.threshold != args::Threshold::default()),
        ("--anyway", args.anyway),
        ("--huber-width", args.huber_width.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(conflict(flag, format!("{flag} has no meaning for a network"))
            .help(format!("omit {flag}, or omit --model for a linear model"))),
        None => Ok(()),
    }
}
