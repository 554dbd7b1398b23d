//! `auto`: algorithm and settings chosen by public numbers.

use dp_accountant::AdjacencyKind;

use super::{Advice, Built, Entry, Request};
use crate::Auto;
use crate::error::Error;
use crate::recipes::AnyRecipe;

pub(super) const AUTO: Entry = Entry {
    name: "auto",
    about: "Chosen, with its settings, by public numbers alone: records, features, budget, loss. Says why and what \
            to expect; takes `lambda`, `passes` and `radius`",
    relations: &[AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne],
    settings: &["lambda", "passes", "radius", "gradients"],
    data_dependent_time: true,
    records_to_check: |_| 1,
    build,
};

fn build(request: &Request<'_>) -> Result<Built, Error> {
    let &Request { settings, budget, relation, n, dim, .. } = request;
    let auto = Auto {
        lambda: settings.lambda,
        passes: settings.passes,
        radius: settings.radius,
        noise_mode: request.noise_mode,
        float: request.float,
        ..Auto::new(request.loss)
    };
    let mut choice = auto.choose(n, dim, budget, relation)?;
    let (low, high) = choice.expected_cost.range();
    if let AnyRecipe::BoltOn(recipe) = &mut choice.recipe {
        recipe.arithmetic = request.private_arithmetic(recipe.passes, recipe.batch_size, recipe.radius);
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
