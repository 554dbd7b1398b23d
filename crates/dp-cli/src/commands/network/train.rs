//! `dp train --model`: trains a network on images and releases it with its certificate.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use dp::network::{Checkpoint, Method, NetworkPlan, NetworkStep, NetworkTrainError, NetworkTraining};
use dp::report;
use dp::training::suggested_delta;
use dp_accountant::work;
use dp_data::images::Shape;
use dp_mechanisms::rng::{ReleaseRng as _, SeededRng};
use dp_optim::Error;
use dp_optim::catalogue::{ModelRequest, non_private_model};
use dp_optim::engine::Control;
use dp_optim::recipes::Budget;

use super::checkpoint::{self, Keeper, keeper, resumed};
use super::config::{NetworkConfig, Privacy};
use super::layers::{Layers, unfit};
use super::outcome::{DryOutcome, Outcome};
use crate::args::{FileName, GlobalArgs, TrainArgs};
use crate::atomic;
use crate::commands::train::{Target, check_room, refusal, secret};
use crate::failure::Failure;
use crate::limit;
use crate::output::{Console, check_stdout};
use crate::progress::{Counted, Progress};
use crate::protection;

/// Trains, writes and prints.
///
/// # Errors
/// `usage.*`, `network.*`, errors in images or outputs, and `privacy.*` if no guarantee is possible.
pub(in crate::commands) fn execute(
    args: &TrainArgs,
    model: &FileName,
    global: &GlobalArgs,
    console: &Console,
) -> Result<(), Failure> {
    let config = NetworkConfig::new(args, model, global)?;
    if config.privacy.is_none() {
        console.warn(
            "NOT PRIVATE: --algorithm non-private adds no noise; the network may reveal the images that it was trained on\n\
             use it for comparison, and do not publish it",
        );
    } else if config.args.seed.is_some() {
        protection::warn_seeded("network", console);
    }
    if let Some(n) = config.dry_run {
        let outcome = dry_run(&config, n, console)?;
        return console.result(&outcome, &outcome.text());
    }
    let outcome = run(&config, console)?;
    config.out.print(&outcome, &outcome.text(), console)
}

fn run(config: &NetworkConfig, console: &Console) -> Result<Outcome, Failure> {
    let started = Instant::now();
    let args = &config.args;
    config.outputs().try_for_each(|path| atomic::check(path, args.force))?;
    args.checkpoint.as_deref().map_or(Ok(()), |path| {
        atomic::check(path, args.force || args.resume).map_err(|failure| match failure.code {
            "output.exists" => failure
                .help("add --resume to go on, or --force for a new training, whose cost adds to that of the old one"),
            _ => failure,
        })
    })?;
    if config.out == Target::Stdout {
        check_stdout()?;
    }
    checkpoint::check_replaced(config)?;
    let layers = Layers::new(&config.model)?;
    check_settings(config)?;
    let resumed = resumed(config)?;
    let images = config.images.load()?;
    let n = images.len() as u64;
    let trained = Instant::now();
    let plan = plan(config, &layers, images.shape(), n, console)?;
    let steps = plan.training().method.steps();
    let mut keeper = keeper(config, &plan, resumed.as_ref(), console)?;
    let resumed = resumed.map(|resumed| resumed.checkpoint);
    let lost = resumed.as_ref().map_or(0, Checkpoint::lost);
    if lost >= steps.div_ceil(10) {
        console.warn(&format!(
            "{lost} of {steps} steps were lost when the training was interrupted: expect a worse network"
        ));
    }
    let mut progress = Progress::start(config.progress, console, "train", Counted::Updates, Some(steps));
    let cancelled = AtomicBool::new(false);
    let mut control = Control { workers: config.workers, cancelled: Some(&cancelled), ..Control::default() };
    let observer = &mut |step: &NetworkStep<'_>| {
        progress.update(step.number, None);
        if let Some(keeper) = &mut keeper {
            keeper.see(step, &cancelled);
        }
    };
    let file = match args.seed {
        Some(seed) => plan.train(&images, resumed, &mut SeededRng::new(seed).lend(), &mut control, observer),
        None => plan.train(&images, resumed, &mut secret()?.lend(), &mut control, observer),
    };
    let held = keeper.map(Keeper::end).transpose()?;
    let mut file = file?;
    progress.finish(steps);
    file = file.made_by(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))?;
    let training = trained.elapsed();
    let report = args.report.as_deref().map(|path| (path, report::of_network(&file, &config.out.name())));
    let report = report.as_ref().map(|(path, text)| (*path, text.as_str()));
    config.out.write(&file.to_text()?, report, args.force)?;
    if let Some(path) = &args.checkpoint {
        // The network is there; a checkpoint that stays is of a training that has ended.
        let _ = std::fs::remove_file(path);
    }
    drop(held);
    Ok(Outcome::new(config, n, &file, &plan, lost, (started.elapsed(), training)))
}

/// Computes the cost of a run, without reading an image.
fn dry_run(config: &NetworkConfig, n: Option<u64>, console: &Console) -> Result<DryOutcome, Failure> {
    let args = &config.args;
    config.outputs().try_for_each(|path| atomic::check_name(path, args.force))?;
    args.checkpoint.as_deref().map_or(Ok(()), |path| atomic::check_name(path, args.force || args.resume))?;
    checkpoint::check_replaced(config)?;
    let layers = Layers::new(&config.model)?;
    check_settings(config)?;
    let architecture = layers.for_images(config.images.shape()?, config)?;
    let parameters = architecture.parameters().map_err(|error| unfit(&error))?;
    let plan = n.map(|n| plan(config, &layers, architecture.input, n, console)).transpose()?;
    Ok(DryOutcome::new(config, parameters as u64, n, plan.as_ref()))
}

/// Refuses settings that are wrong for every number of images, before one is read. Which noise meets a budget depends on it.
fn check_settings(config: &NetworkConfig) -> Result<(), Failure> {
    let made_up = config.settings.batch_size.unwrap_or_default().clamp(1 << 20, 1 << 40);
    // Without work for the noise.
    match work::limited(0.0, || method(config, made_up)).value {
        Ok(_) | Err(Error::Accountant(_)) => Ok(()),
        Err(error) => Err(refusal(&error)),
    }
}

/// Returns the method for `n` images, with a microbatch of one image.
fn method(config: &NetworkConfig, n: u64) -> Result<Method, Error> {
    let NetworkConfig { settings, float, .. } = config;
    match config.privacy {
        None => non_private_model(settings, n, *float).map(Method::NonPrivate),
        Some(Privacy { algorithm, budget, delta_is_suggested, relation, noise: noise_mode }) => {
            let delta = if delta_is_suggested { suggested_delta(n)? } else { budget.delta };
            let budget = Budget { delta, ..budget };
            let request = ModelRequest { settings, n, microbatch: 1, float: *float, noise_mode, budget, relation };
            request.build(algorithm).map(|recipe| Method::Private { recipe, budget, relation })
        }
    }
}

/// Plans the training of a network on `n` images of this shape.
fn plan(
    config: &NetworkConfig,
    layers: &Layers,
    shape: Shape,
    n: u64,
    console: &Console,
) -> Result<NetworkPlan, Failure> {
    let architecture = layers.for_images(shape, config)?;
    let parameters = architecture.parameters().map_err(|error| unfit(&error))?;
    let of_threads = if config.views.is_one() { 0 } else { config.workers.threads().saturating_mul(BYTES_OF_VIEWS) };
    let of_checkpoint = if config.args.checkpoint.is_some() { BYTES_OF_CHECKPOINT } else { 0 };
    let needed = parameters.saturating_mul(BYTES_PER_WEIGHT.saturating_add(of_threads).saturating_add(of_checkpoint));
    check_room(&format!("a network of {parameters} weights"), needed, parameters as u64).map_err(|failure| {
        failure.help("take a smaller network, or train where there is more memory; nothing was released")
    })?;
    limit::planning(config.args.limit, config.progress, console, || {
        let mut training = NetworkTraining::new(method(config, n).map_err(|error| refusal(&error))?, architecture)?;
        (training.labels, training.seed) = (config.images.classes.clone(), config.start_seed);
        training.views = config.views;
        let microbatch = training.recommended_microbatch()?;
        if let Method::Private { recipe, budget, .. } = &mut training.method {
            protection::warn(*budget, n, "images", console);
            recipe.microbatch = microbatch;
        }
        Ok(training.plan(n)?)
    })
}

/// Bytes per weight for training and writing: iterate, sums, noise, optimiser and the text of the file. 70 were measured in single
/// precision on two threads.
const BYTES_PER_WEIGHT: usize = 200;

/// Bytes per weight for a checkpoint: four vectors in double precision, and the file.
const BYTES_OF_CHECKPOINT: usize = 80;

/// Bytes per weight and thread for several views: the gradients of 16 images in double precision.
const BYTES_OF_VIEWS: usize = 128;

impl From<NetworkTrainError> for Failure {
    fn from(error: NetworkTrainError) -> Self {
        match error {
            NetworkTrainError::Network(error) => unfit(&error),
            NetworkTrainError::Recipe(error) => refusal(&error),
            NetworkTrainError::Model(error) => error.into(),
            error => Self::usage("--classes", error.to_string()),
        }
    }
}
