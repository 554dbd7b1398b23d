//! `dp-ftrl`.

use dp_mechanisms::clip::ClippingNorm;
use dp_optim::Averaging;
use dp_optim::recipes::DpFtrl;
use dp_optim::recipes::dp_ftrl::PASSES;

use super::{Built, PrivateAlgorithm, Request, refusal, steps};
use crate::args::{self, Adjacency};
use crate::failure::Failure;

pub(super) const DP_FTRL: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::DpFtrl,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: &[
        "--lambda",
        "--passes",
        "--batch-size",
        "--bands",
        "--in-order",
        "--clip",
        "--radius",
        "--step-size",
        "--schedule",
        "--averaging",
    ],
    records_to_check: |settings| settings.batch_size.unwrap_or(1).clamp(1, 1 << 20),
    build,
};

fn build(request: &Request<'_>) -> Result<Built, Failure> {
    let &Request { config, budget, relation, shape } = request;
    let settings = &config.settings;
    let refused = |error: dp_optim::Error| refusal(&error);
    let usual = DpFtrl { passes: PASSES, ..DpFtrl::new(config.loss) };
    let mut recipe = DpFtrl {
        lambda: settings.lambda.unwrap_or(usual.lambda),
        passes: settings.passes.unwrap_or(usual.passes),
        bands: settings.bands,
        clipping: match settings.clip {
            None => None,
            Some(norm) => Some(ClippingNorm::new(norm).map_err(|error| refusal(&error.into()))?),
        },
        radius: settings.radius,
        declared_order: settings.in_order,
        noise_mode: config.noise,
        float: config.float,
        ..usual
    };
    recipe = match settings.batch_size {
        Some(batch_size) => {
            DpFtrl { batch_size, ..recipe }.with_suited_steps(shape.n, shape.dim, budget, relation).map_err(refused)?
        }
        None => recipe.with_suited_batches(shape.n, shape.dim, budget, relation).map_err(refused)?,
    };
    if let Some(schedule) = steps::schedule(config, recipe.lambda, shape.n)? {
        recipe.schedule = Some(schedule);
    }
    if let Some(averaging) = settings.averaging {
        recipe.averaging = match averaging {
            args::Averaging::Last => Averaging::Last,
            args::Averaging::Uniform => Averaging::Uniform,
            // The half that is recommended.
            args::Averaging::Suffix => recipe.averaging,
            args::Averaging::Polynomial => Averaging::Polynomial,
        };
    }
    Ok(recipe.into())
}
