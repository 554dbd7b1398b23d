//! `scs13`.

use dp_mechanisms::clip::ClippingNorm;
use dp_optim::recipes::Scs13;
use dp_optim::recipes::scs13::{StepCalibration, StepLaw};

use super::{Built, PrivateAlgorithm, Request, refusal, steps};
use crate::args::{self, Adjacency};
use crate::failure::Failure;

pub(super) const SCS13: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::Scs13,
    relations: &[Adjacency::ReplaceOne, Adjacency::AddRemove],
    flags: &[
        "--lambda",
        "--passes",
        "--batch-size",
        "--clip",
        "--radius",
        "--step-size",
        "--schedule",
        "--averaging",
        "--order",
        "--output-noise",
        "--variant",
    ],
    records_to_check: |settings| settings.batch_size.unwrap_or(1),
    build,
};

fn build(request: &Request<'_>) -> Result<Built, Failure> {
    let &Request { config, shape, .. } = request;
    let settings = &config.settings;
    let mut recipe = Scs13::new(config.loss);
    recipe.lambda = settings.lambda.unwrap_or(recipe.lambda);
    recipe.passes = settings.passes.unwrap_or(recipe.passes);
    recipe.batch_size = settings.batch_size.unwrap_or(recipe.batch_size);
    recipe.radius = settings.radius;
    recipe.clipping = match settings.clip {
        Some(norm) => Some(ClippingNorm::new(norm).map_err(|error| refusal(&error.into()))?),
        None => None,
    };
    recipe.order = settings.order.unwrap_or(recipe.order);
    recipe.law = match settings.output_noise {
        None | Some(args::OutputNoise::Least) => StepLaw::Least,
        Some(args::OutputNoise::LaplaceBall) => StepLaw::LaplaceBall,
        Some(args::OutputNoise::Gaussian) => StepLaw::Gaussian,
    };
    recipe.calibration =
        if steps::as_published(settings)? { StepCalibration::AsPublished } else { StepCalibration::Joint };
    recipe.noise_mode = config.noise;
    recipe.float = config.float;
    recipe.averaging = steps::averaging(settings, shape.n, recipe.batch_size, recipe.passes);
    recipe.schedule = steps::schedule(config, recipe.lambda, shape.n)?;
    Ok(recipe.into())
}
