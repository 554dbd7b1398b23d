//! `scs13`.

use dp_accountant::AdjacencyKind;

use super::{Built, Entry, NoiseLaw, Request, steps};
use crate::error::Error;
use crate::recipes::Scs13;
use crate::recipes::scs13::{StepCalibration, StepLaw};

pub(super) const SCS13: Entry = Entry {
    name: "scs13",
    docs: include_str!("../recipes/scs13.rs"),
    about: "SGD with noise on each update, so that every iterate can be released (Song et al. 2013)",
    relations: &[AdjacencyKind::ReplaceOne, AdjacencyKind::ZeroOut],
    settings: &[
        "lambda",
        "passes",
        "batch-size",
        "clip",
        "radius",
        "step-size",
        "schedule",
        "averaging",
        "order",
        "output-noise",
        "variant",
    ],
    data_dependent_time: false,
    records_to_check: |settings| settings.batch_size.unwrap_or(1),
    build,
};

fn build(request: &Request<'_>) -> Result<Built, Error> {
    let &Request { settings, n, .. } = request;
    let mut recipe = Scs13::new(request.loss);
    recipe.lambda = settings.lambda.unwrap_or(recipe.lambda);
    recipe.passes = settings.passes.unwrap_or(recipe.passes);
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    recipe.radius = settings.radius;
    recipe.clipping = steps::clipping(settings)?;
    recipe.order = settings.order.map_or(recipe.order, Into::into);
    recipe.law = match settings.output_noise {
        None | Some(NoiseLaw::Least) => StepLaw::Least,
        Some(NoiseLaw::LaplaceBall) => StepLaw::LaplaceBall,
        Some(NoiseLaw::Gaussian) => StepLaw::Gaussian,
    };
    recipe.calibration =
        if steps::as_published(settings)? { StepCalibration::AsPublished } else { StepCalibration::Joint };
    recipe.noise_mode = request.noise_mode;
    recipe.float = request.float;
    recipe.averaging = steps::averaging(settings, n, recipe.batch_size, recipe.passes);
    recipe.schedule = request.schedule(recipe.lambda)?;
    Ok(recipe.into())
}
