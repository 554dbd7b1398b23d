//! `obj-pert`, `amp`, `admm-obj-pert` and `noisy-moments`.

use dp_optim::FloatKind;
use dp_optim::recipes::obj_pert::Calibration;
use dp_optim::recipes::{AdmmObjPert, NoisyMoments, ObjPert};

use super::{Built, PrivateAlgorithm, Request, admm, steps};
use crate::args::{self, Adjacency};
use crate::commands::train::config::TrainConfig;
use crate::failure::Failure;
use crate::input::conflict;

pub(super) const OBJ_PERT: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::ObjPert,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: &["--lambda", "--centre-share", "--output-noise", "--tolerance", "--variant", "--gradients"],
    // The sum's regulariser grows with it: what is refused for one record is not refused for many.
    records_to_check: |_| 1 << 20,
    build: obj_pert,
};

pub(super) const AMP: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::Amp,
    flags: &["--lambda", "--tolerance", "--variant", "--gradients"],
    build: amp,
    ..OBJ_PERT
};

pub(super) const ADMM_OBJ_PERT: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::AdmmObjPert,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: &["--lambda", "--steps", "--penalty", "--l1", "--rho", "--output-noise", "--gradients"],
    records_to_check: |_| 1 << 20,
    build: admm_obj_pert,
};

pub(super) const NOISY_MOMENTS: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::NoisyMoments,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: &["--lambda"],
    records_to_check: |_| 1,
    build: noisy_moments,
};

fn obj_pert(request: &Request<'_>) -> Result<Built, Failure> {
    let settings = &request.config.settings;
    let usual = ObjPert::new(request.config.loss);
    let calibration = match settings.variant {
        None => Calibration::Exact,
        Some(args::Variant::Cms11) => Calibration::Cms11,
        Some(args::Variant::Kst12) => Calibration::Kst12,
        Some(args::Variant::Rdp) => Calibration::Rdp,
        Some(args::Variant::Published) => {
            return Err(conflict("--variant", "three papers have published this").expected("cms11, kst12 or rdp"));
        }
    };
    if settings.variant.is_some() && settings.output_noise.is_some() {
        return Err(conflict("--output-noise", "the --variant says which noise there is")
            .help("leave --output-noise or --variant away"));
    }
    as_asked(
        request,
        ObjPert {
            centre_share: settings.centre_share.unwrap_or(usual.centre_share),
            law: steps::output_noise(settings),
            calibration,
            ..usual
        },
    )
}

fn amp(request: &Request<'_>) -> Result<Built, Failure> {
    let published = steps::as_published(&request.config.settings)?;
    let calibration = if published { Calibration::Amp } else { Calibration::Exact };
    as_asked(request, ObjPert { calibration, ..ObjPert::approximate(request.config.loss) })
}

/// What both take from the settings.
fn as_asked(request: &Request<'_>, recipe: ObjPert) -> Result<Built, Failure> {
    let (config, settings) = (request.config, &request.config.settings);
    in_double_precision(config)?;
    let (lambda, gradient_tolerance) = (settings.lambda, settings.tolerance);
    Ok(ObjPert { lambda, gradient_tolerance, noise_mode: config.noise, ..recipe }.into())
}

/// Refuses single precision.
fn in_double_precision(config: &TrainConfig) -> Result<(), Failure> {
    if config.float == FloatKind::F64 {
        return Ok(());
    }
    Err(conflict("--float", "this algorithm certifies its minimiser in double precision")
        .expected("f64")
        .help("leave --float away"))
}

fn admm_obj_pert(request: &Request<'_>) -> Result<Built, Failure> {
    let (config, settings) = (request.config, &request.config.settings);
    in_double_precision(config)?;
    let usual = AdmmObjPert::new(config.loss, admm::penalty(request));
    let recipe = AdmmObjPert {
        lambda: settings.lambda.unwrap_or(usual.lambda),
        intercept: config.encoding.intercept > 0.0,
        iterations: settings.steps.unwrap_or(usual.iterations),
        rho: settings.rho,
        law: steps::output_noise(settings),
        noise_mode: config.noise,
        ..usual
    };
    Ok(recipe.into())
}

fn noisy_moments(request: &Request<'_>) -> Result<Built, Failure> {
    let config = request.config;
    let lambda = config.settings.lambda.unwrap_or(0.0);
    Ok(NoisyMoments { lambda, noise_mode: config.noise, ..NoisyMoments::new(config.loss) }.into())
}
