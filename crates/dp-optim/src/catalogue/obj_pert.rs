//! `obj-pert`, `amp`, `admm-obj-pert` and `noisy-moments`.

use dp_accountant::AdjacencyKind;

use super::{Built, Entry, Request, Variant, admm, conflict, steps};
use crate::FloatKind;
use crate::error::Error;
use crate::recipes::obj_pert::Calibration;
use crate::recipes::{AdmmObjPert, NoisyMoments, ObjPert};

pub(super) const OBJ_PERT: Entry = Entry {
    name: "obj-pert",
    docs: include_str!("../recipes/obj_pert.rs"),
    about: "Objective perturbation: a random linear term in the objective, whose certified minimiser is released at \
            the cost of one noisy gradient (Chaudhuri et al. 2011, accounted exactly)",
    relations: &[AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne],
    settings: &["lambda", "centre-share", "output-noise", "tolerance", "variant", "gradients"],
    // For `records_to_check`: the regulariser of the sum grows with the number of records, so that few records could be
    // refused where many are not.
    data_dependent_time: true,
    records_to_check: |_| 1 << 20,
    build: obj_pert,
};

pub(super) const AMP: Entry = Entry {
    name: "amp",
    docs: include_str!("../recipes/obj_pert.rs"),
    about: "Approximate minima perturbation: objective perturbation with Gaussian noise and a minimiser within \
            `tolerance` (Iyengar et al. 2019, accounted exactly)",
    settings: &["lambda", "tolerance", "variant", "gradients"],
    build: amp,
    ..OBJ_PERT
};

pub(super) const ADMM_OBJ_PERT: Entry = Entry {
    name: "admm-obj-pert",
    docs: include_str!("../recipes/admm_obj_pert.rs"),
    about: "ADMM with a sparse copy of the weights; each iteration releases the certified minimiser of a perturbed \
            objective. `steps` is the number of iterations",
    relations: &[AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne],
    settings: &["lambda", "steps", "penalty", "l1", "rho", "output-noise", "gradients"],
    data_dependent_time: true,
    records_to_check: |_| 1 << 20,
    build: admm_obj_pert,
};

pub(super) const NOISY_MOMENTS: Entry = Entry {
    name: "noisy-moments",
    docs: include_str!("../recipes/noisy_moments.rs"),
    about: "Least squares on noisy second moments, in one pass: for few features, and as a warm start",
    relations: &[AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne],
    settings: &["lambda"],
    data_dependent_time: false,
    records_to_check: |_| 1,
    build: noisy_moments,
};

fn obj_pert(request: &Request<'_>) -> Result<Built, Error> {
    let settings = request.settings;
    let usual = ObjPert::new(request.loss);
    let calibration = match settings.variant {
        None => Calibration::Exact,
        Some(Variant::Cms11) => Calibration::Cms11,
        Some(Variant::Kst12) => Calibration::Kst12,
        Some(Variant::Rdp) => Calibration::Rdp,
        Some(Variant::Published) => {
            return Err(conflict("variant", "obj-pert has three published variants").expected("cms11, kst12 or rdp"));
        }
    };
    if settings.variant.is_some() && settings.output_noise.is_some() {
        return Err(conflict("output-noise", "the `variant` says which noise there is")
            .help("omit `output-noise` or `variant`"));
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

fn amp(request: &Request<'_>) -> Result<Built, Error> {
    let published = steps::as_published(request.settings)?;
    let calibration = if published { Calibration::Amp } else { Calibration::Exact };
    as_asked(request, ObjPert { calibration, ..ObjPert::approximate(request.loss) })
}

/// Applies the settings common to both.
fn as_asked(request: &Request<'_>, recipe: ObjPert) -> Result<Built, Error> {
    let settings = request.settings;
    in_double_precision(request)?;
    let (lambda, gradient_tolerance) = (settings.lambda, settings.tolerance);
    Ok(ObjPert { lambda, gradient_tolerance, noise_mode: request.noise_mode, ..recipe }.into())
}

/// Refuses single precision.
fn in_double_precision(request: &Request<'_>) -> Result<(), Error> {
    if request.float == FloatKind::F64 {
        return Ok(());
    }
    Err(conflict("float", "this algorithm certifies its minimiser in double precision")
        .expected("f64")
        .help("omit `float`"))
}

fn admm_obj_pert(request: &Request<'_>) -> Result<Built, Error> {
    let settings = request.settings;
    in_double_precision(request)?;
    let usual = AdmmObjPert::new(request.loss, admm::penalty(request));
    let recipe = AdmmObjPert {
        lambda: settings.lambda.unwrap_or(usual.lambda),
        intercept: request.intercept,
        iterations: settings.steps.unwrap_or(usual.iterations),
        rho: settings.rho,
        law: steps::output_noise(settings),
        noise_mode: request.noise_mode,
        ..usual
    };
    Ok(recipe.into())
}

fn noisy_moments(request: &Request<'_>) -> Result<Built, Error> {
    let lambda = request.settings.lambda.unwrap_or(0.0);
    Ok(NoisyMoments { lambda, noise_mode: request.noise_mode, ..NoisyMoments::new(request.loss) }.into())
}
