//! `auto`: algorithm and settings by public numbers.

use dp_optim::Auto;
use dp_optim::recipes::AnyRecipe;
use serde::Serialize;

use super::{Built, PrivateAlgorithm, Request, private_arithmetic, refusal};
use crate::args::{self, Adjacency};
use crate::failure::Failure;

pub(super) const AUTO: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::Auto,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: &["--lambda", "--passes", "--radius", "--gradients"],
    records_to_check: |_| 1,
    build,
};

/// What was chosen and why, and what privacy is expected to cost: from public numbers alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The choice and its reason.
    pub reason: String,
    /// Which part of what can be gained over the majority class, or over the mean label, privacy is expected to cost.
    pub expected_loss: f64,
    /// Between which two most of the measured ones lie.
    pub expected_loss_range: [f64; 2],
}

fn build(request: &Request<'_>) -> Result<Built, Failure> {
    let &Request { config, budget, relation, shape } = request;
    let settings = &config.settings;
    let auto = Auto {
        lambda: settings.lambda,
        passes: settings.passes,
        radius: settings.radius,
        noise_mode: config.noise,
        float: config.float,
        ..Auto::new(config.loss)
    };
    let mut choice = auto.choose(shape.n, shape.dim, budget, relation).map_err(|error| refusal(&error))?;
    let (low, high) = choice.expected_cost.range();
    if let AnyRecipe::BoltOn(recipe) = &mut choice.recipe {
        recipe.arithmetic = private_arithmetic(config, shape, recipe.passes, recipe.batch_size, recipe.radius);
    }
    Ok(Built {
        recipe: choice.recipe,
        advice: Some(Advice {
            reason: choice.reason,
            expected_loss: choice.expected_cost.share,
            expected_loss_range: [low, high],
        }),
    })
}
